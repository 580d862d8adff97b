//! The table itself: every name and place that is guarded, each once for each reason.

use super::Concern;

/// What a row says where which program runs is written.
pub(super) const CHOOSES: &str = "writes which program a name stands for";

/// What a row says where programs are looked for.
pub(super) const PROGRAMS: &str = "writes where programs are found";

/// Directories of the system that hold its programs: a program in there is the one of that name.
pub const PROGRAM_DIRECTORIES: [&str; 5] = ["/bin", "/usr/bin", "/sbin", "/usr/sbin", "/usr/local/bin"];

/// Why a place is guarded, what it holds or what writing it does, and patterns for it.
///
/// A pattern that begins with `/` is one place on the disk; one that begins with `**/` is a name, wherever it lies.
/// `*` stays within a name. `X/**` is about `X`, too. Everything is in lower case.
#[rustfmt::skip]
pub(super) const PLACES: &[(Concern, &str, &[&str])] = &[
    (Concern::Secret, "keys and passwords", &[
        "**/.env", "**/.env.*", "**/*.pem", "**/*.key", "**/*.p12", "**/*.pfx", "**/id_rsa*", "**/id_dsa*",
        "**/id_ecdsa*", "**/id_ed25519*", "**/.ssh/**", "**/.gnupg/**", "**/.aws/**", "**/.azure/**",
        "**/.kube/config", "**/.netrc", "**/.pgpass", "**/.npmrc", "**/.pypirc", "**/.git-credentials",
        "**/.docker/config.json", "**/credentials", "**/credentials.*", "**/secrets.*", "**/*.keystore", "**/*.jks",
        "**/shadow", "**/.vault-token", "**/.envrc", "**/.config/gcloud/**", "**/.config/glab-cli/**",
        "**/.terraform.d/**", "**/*.tfstate", "**/.cargo/credentials*", "**/.my.cnf", "**/.password-store/**",
        "**/*.kdbx", "**/gshadow", "**/.config/containers/auth.json", "**/*.ppk", "**/.htpasswd",
        "**/.local/share/keyrings/**", "/proc/*/environ", "/run/secrets/**", "/var/run/secrets/**",
        "/private/var/run/secrets/**", "**/gh/hosts.yml",
    ]),
    (Concern::Secret, "what was typed: shells, interpreters, databases, pagers", &[
        "**/.bash_history", "**/.zsh_history", "**/.*_history", "**/*_history.txt", "**/fish_history", "**/.histfile",
        "**/.zhistory", "**/.lesshst", "**/.viminfo", "**/.zsh_sessions/**", "**/.bash_sessions/**",
        "**/.local/share/nushell/**", "**/.config/nushell/history*", "**/.local/share/powershell/**",
        "**/.local/share/xonsh/**", "**/.ipython/**/history.sqlite*", "**/.mongodb/mongosh/**", "**/.dbshell",
        "**/.rediscli_auth", "**/.mylogin.cnf", "**/.pg_service.conf", "**/.odbc.ini", "**/.snowsql/**",
        "**/.snowflake/**", "**/.dbt/profiles.yml",
    ]),
    (Concern::Secret, "agents and their hosts", &[
        "**/.credentials.json", "**/oauth_creds.json", "**/.gemini/google_accounts.json",
        "**/.gemini/mcp-oauth-tokens*", "**/.config/github-copilot/**", "**/.local/share/*/auth.json",
        "**/.config/*/auth.json", "**/.continue/config.*", "**/.config/goose/**", "**/.config/openai/**",
        "**/.openai/**", "**/.config/anthropic/**", "**/.anthropic/**", "**/.aider.conf.yml", "**/.config/cursor/**",
    ]),
    (Concern::Secret, "clouds and services", &[
        "**/.config/rclone/**", "**/.rclone.conf", "**/.s3cfg", "**/.boto", "**/.oci/**", "**/.config/doctl/**",
        "**/.fly/**", "**/.netlify/config.json", "**/.config/netlify/**", "**/.config/configstore/**",
        "**/.databrickscfg", "**/.config/hcloud/**", "**/.linode-cli", "**/.config/linode-cli", "**/.config/scw/**",
        "**/.aliyun/**", "**/.bluemix/**", "**/.railway/**", "**/.config/railway/**", "**/.config/.wrangler/**",
        "**/.wrangler/config/**", "**/.dev.vars", "**/.dev.vars.*", "**/.supabase/access-token",
        "**/.config/firebase/**", "**/.config/op/**", "**/.config/bitwarden*/**", "**/.config/hub",
        "**/.config/gh/**", "**/.config/tea/**", "**/.config/stripe/**", "**/.config/ngrok/**", "**/.ngrok2/**",
        "**/.cloudflared/**", "**/.config/helm/registry/**", "**/.mc/config.json", "**/.sentryclirc", "**/.dockercfg",
        "**/kubeconfig", "**/.kube/*.yaml", "**/*.tfvars", "**/*.tfvars.json", "**/.terraformrc",
        "**/.config/sops/**", "**/.config/age/**", "**/.cache/huggingface/token", "**/.huggingface/token",
        "**/.kaggle/**", "**/.config/kaggle/**", "**/client_secret*.json", "**/service-account*.json",
    ]),
    (Concern::Secret, "registries", &[
        "**/.m2/settings*.xml", "**/.gradle/gradle.properties", "**/.yarnrc.yml", "**/.config/pip/pip.conf",
        "**/.pip/pip.conf", "/etc/pip.conf", "**/.config/pypoetry/auth.toml", "**/.bundle/config", "**/nuget.config",
        "**/.composer/auth.json", "**/.conan/credentials*", "**/.condarc",
    ]),
    (Concern::Secret, "browsers, mail, key rings, wallets", &[
        "**/.mozilla/**", "**/snap/firefox/**", "**/.config/google-chrome*/**", "**/.config/chromium/**",
        "**/.config/bravesoftware/**", "**/.config/microsoft-edge*/**", "**/.config/vivaldi/**",
        "**/.config/opera*/**", "**/library/application support/google/chrome/**",
        "**/library/application support/firefox/**", "**/library/keychains/**", "**/library/cookies/**",
        "**/logins.json", "**/key4.db", "**/login data*", "**/cookies.sqlite*", "**/.thunderbird/**", "**/.authinfo*",
        "**/.msmtprc", "**/.fetchmailrc", "**/.vnc/passwd", "**/.smbcredentials", "**/*.keytab", "/tmp/krb5cc_*",
        "**/*.p8", "**/*.pkcs12", "**/*.jceks", "**/*.ovpn", "/etc/wireguard/**",
        "/etc/networkmanager/system-connections/**", "/etc/sudoers", "/etc/sudoers.d/**", "/etc/ssh/ssh_host_*",
        "**/wallet.dat", "**/.ethereum/keystore/**", "**/.config/solana/id.json", "**/.electrum/**",
    ]),
    (Concern::Own, "writes files of Interlock, or settings by which hosts ask it", &[
        "**/interlock.toml", "**/operator.key", "**/ledger.key", "**/ledger.db*", "**/.codex/**",
        "**/.claude/settings*.json", "**/.cursor/hooks.json", "**/.gemini/settings.json", "**/.cursor/hooks/**",
        "**/.claude/hooks/**", "**/.gemini/hooks/**", "/etc/claude-code/**", "/etc/codex/**", "/etc/cursor/**",
        "/etc/gemini-cli/**", "**/.github/hooks/**", "**/.copilot/hooks/**", "**/.copilot/config.json",
        "**/.config/github-copilot/hooks/**", "**/.qwen/settings.json", "**/.config/opencode/**", "**/opencode.json",
        "**/.opencode/**", "**/.codeium/windsurf/hooks.json", "**/.windsurf/hooks.json", "**/.amazonq/cli-agents/**",
        "/library/application support/claudecode/**", "/library/application support/cursor/**",
    ]),
    (Concern::RunsLater, "writes hooks or the configuration of a repository", &[
        "**/.gitattributes", "**/.gitmodules", "**/.git/**", "**/.gitconfig", "**/.config/git/**", "/etc/gitconfig",
        "**/.husky/**", "**/.githooks/**", "**/.git-hooks/**", "**/.pre-commit-config.y*ml",
        "**/.pre-commit-hooks.y*ml", "**/lefthook.y*ml", "**/lefthook.toml", "**/lefthook.json", "**/.lefthook.*",
        "**/lefthook-local.*", "**/.lefthook-local.*", "**/.lefthook/**", "**/.overcommit.yml", "**/.huskyrc*",
        "**/.lintstagedrc*", "**/.simple-git-hooks.*", "**/simple-git-hooks.*", "**/.hg/**", "**/.hgrc", "**/.jj/**",
    ]),
    (Concern::RunsLater, "writes a start file of a shell", &[
        "**/.bashrc", "**/.bash_profile", "**/.bash_login", "**/.bash_logout", "**/.profile", "**/.zshrc",
        "**/.zshenv", "**/.zprofile", "**/.zlogin", "**/.config/fish/**", "/etc/profile", "/etc/profile.d/**",
        "**/.envrc", "**/.bash_aliases", "**/.bashrc.d/**", "**/.zlogout", "**/.zsh/**", "**/.oh-my-zsh/**",
        "**/.kshrc", "**/.mkshrc", "**/.cshrc", "**/.tcshrc", "**/.login", "**/.logout", "**/.inputrc", "**/.xinitrc",
        "**/.xprofile", "**/.xsession", "**/.xsessionrc", "**/.direnvrc", "**/.config/direnv/**", "/etc/bash.bashrc",
        "/etc/bashrc", "/etc/environment", "/etc/zsh/**", "/etc/zshenv", "/etc/zshrc", "/etc/zprofile",
        "/etc/bash_completion.d/**", "**/.bashrc.local", "**/.zshrc.local", "**/.zshenv.local", "**/.bash_completion",
        "**/.config/bash/**", "**/.config/zsh/**", "**/.zimrc", "**/.config/nushell/**", "**/.config/powershell/**",
        "**/.config/environment.d/**", "**/.pam_environment", "**/.config/starship.toml", "**/.rvmrc", "**/.autoenv",
        "**/.autoenv.zsh",
    ]),
    (Concern::RunsLater, "writes what the system starts", &[
        "/etc/cron*/**", "/etc/crontab", "/var/spool/cron/**", "**/.config/systemd/**", "/etc/systemd/**",
        "/etc/anacrontab", "/etc/rc.local", "/etc/init.d/**", "/etc/inittab", "/etc/sudoers", "/etc/sudoers.d/**",
        "/etc/ld.so.preload", "/etc/ld.so.conf", "/etc/ld.so.conf.d/**", "/lib/systemd/**", "/usr/lib/systemd/**",
        "/usr/local/sbin/**", "/opt/homebrew/bin/**", "/etc/xdg/autostart/**", "/etc/update-motd.d/**",
        "/var/spool/at/**", "/etc/apt/apt.conf.d/**", "**/.config/autostart/**", "**/.local/share/systemd/**",
        "**/crontab", "**/library/launchagents/**", "**/library/launchdaemons/**", "**/.ssh/config", "**/.ssh/rc",
        "**/.ssh/environment", "**/authorized_keys*",
    ]),
    (Concern::RunsLater, PROGRAMS, &[
        "**/.local/bin/**", "**/.cargo/bin/**", "**/go/bin/**", "**/node_modules/.bin/**", "**/.venv/bin/**",
        "**/venv/bin/**",
    ]),
    (Concern::RunsLater, "writes a pipeline, or a container for development", &[
        "**/.github/workflows/**", "**/.gitlab-ci.yml", "**/.circleci/**", "**/jenkinsfile", "**/.github/actions/**",
        "**/.travis.yml", "**/azure-pipelines.yml", "**/bitbucket-pipelines.yml", "**/.drone.yml", "**/.appveyor.yml",
        "**/appveyor.yml", "**/cloudbuild.yaml", "**/.woodpecker.yml", "**/.woodpecker/**", "**/.buildkite/**",
        "**/.gitea/**", "**/.forgejo/**", "**/.devcontainer/**", "**/.devcontainer.json", "**/.gitlab-ci.yaml",
        "**/.gitlab/**", "**/azure-pipelines.yaml", "**/.drone.yaml", "**/cloudbuild.yml", "**/.woodpecker.yaml",
        "**/.cirrus.*", "**/.teamcity/**", "**/.semaphore/**", "**/.build.yml", "**/.builds/**", "**/.tekton/**",
        "**/buildspec.y*ml", "**/codemagic.yaml", "**/.gitpod.*", "**/.replit", "**/devfile.yaml", "**/.devfile.yaml",
        "**/.idx/**", "**/.codesandbox/**",
    ]),
    (Concern::RunsLater, "writes settings of an agent or an editor", &[
        "**/.vscode/**", "**/.idea/**", "**/.claude/**", "**/.cursor/**", "**/.gemini/**", "**/.interlock/**",
        "**/.mcp.json", "**/.claude.json", "**/.aider.conf.yml", "**/.continue/**", "**/.windsurf/**", "**/.zed/**",
        "**/.config/zed/**", "**/.config/nvim/**", "**/.vim/**", "**/.emacs.d/**", "**/.vimrc", "**/.gvimrc",
        "**/.exrc", "**/.nvimrc", "**/.ideavimrc", "**/.emacs", "**/.dir-locals.el", "**/.nanorc", "**/.copilot/**",
        "**/.qwen/**", "**/.cursorrules", "**/.windsurfrules", "**/.roo/**", "**/.kiro/**", "**/.amazonq/**",
        "**/.aws/amazonq/**", "**/.trae/**", "**/.augment/**", "**/.junie/**", "**/.cline/**", "**/.clinerules",
        "**/.clinerules/**", "**/.goose/**", "**/.goosehints", "**/.config/goose/**", "**/crush.json",
        "**/.crush.json", "**/.codeium/**", "**/.fleet/**", "**/.nova/**", "**/.theia/**", "**/.run/**",
        "**/*.code-workspace", "**/*.sublime-project", "**/.helix/**", "**/.config/helix/**", "**/.nvim.lua",
        "**/.lvimrc", "**/.local.vimrc", "**/.vimrc.local", "**/.dir-locals-2.el", "**/.ycm_extra_conf.py",
    ]),
    (Concern::RunsLater, "writes what a tool reads before it does anything", &[
        "**/.gdbinit", "**/.lldbinit", "**/.pythonrc", "**/.pdbrc", "**/.irbrc", "**/.psqlrc", "**/.sqliterc",
        "**/.npmrc", "**/.yarnrc", "**/.yarnrc.yml", "**/.wgetrc", "**/.curlrc", "**/.screenrc", "**/.tmux.conf",
        "**/pip.conf", "**/sitecustomize.py", "**/usercustomize.py", "**/*.pth", "**/.mise/**", "**/.config/mise/**",
        "**/.pnpmfile.*", "**/pnpmfile.*", "**/.yarn/releases/**", "**/.yarn/plugins/**", "**/bunfig.toml",
        "**/.bunfig.toml", "**/.mvn/**", "**/.mavenrc", "**/.gradle/init.gradle*", "**/.gradle/init.d/**",
        "**/.sbtrc", "**/.pryrc", "**/.pythonstartup", "**/.rprofile", "**/.renviron", "**/.julia/config/**",
        "**/.octaverc", "**/.ghci", "**/.ocamlinit", "**/.iex.exs", "**/.mongorc.js", "**/.mongoshrc.js",
        "**/.ripgreprc", "**/.lessfilter", "**/.lesskey", "**/.config/tmux/**", "**/.wezterm.lua",
        "**/.config/wezterm/**", "**/.config/kitty/**", "**/.hammerspoon/**", "**/.forward", "**/.procmailrc",
        "**/.pydistutils.cfg", "**/.config/pip/**", "**/.cargo/config*",
    ]),
    (Concern::RunsLater, CHOOSES, &[
        "**/.rustup/**", "**/.*-version", "**/.*-versions", "**/.*version", "**/.nvmrc", "**/.nvm/**", "**/.sdkmanrc",
        "**/.sdkman/**", "**/.jabbarc", "**/.prototools", "**/.proto/**", "**/.asdfrc", "**/.asdf/**", "**/.volta/**",
        "**/.pyenv/**", "**/.rbenv/**", "**/.nodenv/**", "**/.goenv/**", "**/.jenv/**", "**/.tfenv/**", "**/.rvm/**",
        "**/.local/share/mise/**", "**/.local/share/rtx/**", "**/.config/rtx/**", "**/.config/fnm/**",
        "**/.local/share/fnm/**", "**/mise/config*.toml", "**/mise.*.toml", "**/.mise.*.toml", "**/aqua.y*ml",
        "**/.aqua.y*ml", "**/devbox.json", "**/shell.nix", "**/flake.nix", "**/.pnp.*", "**/.yarn/sdks/**",
        "**/.yarn/unplugged/**", "**/gradle/wrapper/**", "**/gradlew", "**/gradlew.bat", "**/mvnw", "**/mvnw.cmd",
        "**/.sbtopts", "**/.jvmopts", "**/project/build.properties", "**/tools/bazel", "**/.bazeliskrc",
        "**/.bazelrc", "**/.buckconfig", "**/global.json", "**/.config/dotnet-tools.json", "**/pyvenv.cfg",
        "**/.autoenv/**",
    ]),
];

/// Directories of a user's home that are guarded nowhere else: `bin` tends to be on the path at the next login.
pub(super) const HOME_DIRECTORIES: &[(Concern, &str)] = &[(Concern::RunsLater, "bin")];

/// Directories that are made anew from what a project says: caches, packages, what was built.
#[rustfmt::skip]
pub const REGENERABLE: &[&str] = &[
    "node_modules", "target", ".venv", "venv", "__pycache__", ".tox", ".nox", ".mypy_cache", ".pytest_cache", ".ruff_cache",
    ".next", ".nuxt", ".turbo", ".parcel-cache", ".gradle", ".terraform", ".eggs", "bower_components",
];

/// Caches of the user's package managers, from the home directory on.
#[rustfmt::skip]
pub const USER_CACHES: &[&str] = &[
    ".cache", ".npm", ".cargo/registry", ".cargo/git", "go/pkg", ".local/share/pnpm", ".m2/repository", ".gradle/caches",
    ".yarn/berry", ".bun/install/cache", ".nuget/packages", ".pub-cache", ".deno", ".ivy2", ".sbt", ".stack", ".cabal/packages",
];

/// Those of them for which programs look elsewhere if a variable says so.
pub const CACHE_VARIABLES: &[(&str, &str)] = &[
    (".cache", "XDG_CACHE_HOME"),
    (".npm", "npm_config_cache"),
    ("go/pkg", "GOMODCACHE"),
    (".deno", "DENO_DIR"),
    (".bun/install/cache", "BUN_INSTALL_CACHE_DIR"),
];

/// Entries of a home directory that hold programs and packages, beside hidden ones.
#[rustfmt::skip]
pub const VISIBLE_IN_HOME: &[&str] = &[
    "go", "sdk", "bin", "opt", "perl5", "miniconda3", "anaconda3", "miniforge3", "mambaforge", "snap", "Android",
];

/// Usual names of secrets that only a pattern of [`PLACES`] stands for.
#[rustfmt::skip]
pub(super) const USUAL_SECRETS: &[&str] = &[
    ".env.local", ".env.development", ".env.production", ".env.staging", ".env.test", ".psql_history", ".python_history",
    ".node_repl_history",
];

/// A file by which version managers choose programs, looked for upwards from where one is run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Chooser {
    /// Its name, or its path from the directory on.
    pub file: &'static str,
    /// The programs it chooses, `python3.12` as `python`; none if it may be any.
    pub programs: &'static [&'static str],
    /// Texts in it by which it names a program by its place, or may: one of the installed ones is harmless.
    pub place_marks: &'static [&'static str],
}

const RUST: &[&str] = &["cargo", "rustc", "rustdoc", "rustfmt", "rustup"];
/// A key of a toolchain can be written with escapes.
const IN_TOOLCHAIN: &[&str] = &["path", "\\"];
/// The name of a directory beneath those of all versions.
const IN_VERSION: &[&str] = &["..", "\\"];
/// Paths, settings that source a file or run something, and templates.
const IN_MISE: &[&str] = &["path", "..", "\\", "_.", "hooks", "{{"];

const fn chooser(
    file: &'static str,
    programs: &'static [&'static str],
    place_marks: &'static [&'static str],
) -> Chooser {
    Chooser { file, programs, place_marks }
}

/// Files by which version managers choose programs. Whoever writes one decides what runs later.
#[rustfmt::skip]
pub const CHOOSERS: &[Chooser] = &[
    chooser("rust-toolchain.toml",      RUST,                                          IN_TOOLCHAIN),
    chooser("rust-toolchain",           RUST,                                          IN_TOOLCHAIN),
    chooser(".python-version",          &["python", "pypy", "pip"],                    IN_VERSION),
    chooser(".node-version",            &["node", "nodejs", "npm", "npx", "tsc"],      IN_VERSION),
    chooser(".ruby-version",            &["ruby", "gem"],                              IN_VERSION),
    chooser(".java-version",            &["java", "javac", "javap", "jshell", "jar"],  IN_VERSION),
    chooser(".perl-version",            &["perl"],                                     IN_VERSION),
    chooser(".php-version",             &["php"],                                      IN_VERSION),
    chooser(".lua-version",             &["lua", "luajit"],                            IN_VERSION),
    chooser(".tool-versions",           &[],                                           &["path:", "..", "\\"]),
    chooser("mise.toml",                &[],                                           IN_MISE),
    chooser(".mise.toml",               &[],                                           IN_MISE),
    chooser("mise.local.toml",          &[],                                           IN_MISE),
    chooser(".mise.local.toml",         &[],                                           IN_MISE),
    chooser(".rtx.toml",                &[],                                           IN_MISE),
    chooser("mise/config.toml",         &[],                                           IN_MISE),
    chooser(".mise/config.toml",        &[],                                           IN_MISE),
    chooser(".config/mise.toml",        &[],                                           IN_MISE),
    chooser(".config/mise/config.toml", &[],                                           IN_MISE),
];

/// A file or directory by which a host calls us, or keeps from calling us.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HostFile {
    /// The host, by its name on the command line.
    pub host: &'static str,
    /// The path, from the user's home directory or from the project's root.
    pub path: &'static str,
    /// It is read in the user's home directory. There, nobody but its user touches it.
    pub in_home: bool,
    /// It is read in a project.
    pub in_project: bool,
    /// What of ours is written into it.
    pub holds: Holds,
}

/// What of ours is written into a file of a host.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Holds {
    /// Nothing, but it can switch us off.
    Nothing,
    /// The hooks.
    Hooks,
    /// The MCP server of the control tools.
    Server,
    /// Both.
    HooksAndServer,
}

const fn file(host: &'static str, path: &'static str, in_home: bool, in_project: bool, holds: Holds) -> HostFile {
    HostFile { host, path, in_home, in_project, holds }
}

/// The files of hosts, in the order in which they are written.
#[rustfmt::skip]
pub const HOST_FILES: &[HostFile] = &[
    //   host           path                           home   project  holds
    file("claude-code", ".claude/settings.json",       true,  true,    Holds::Hooks),
    file("claude-code", ".claude.json",                true,  false,   Holds::Server),
    file("claude-code", ".mcp.json",                   false, true,    Holds::Server),
    file("claude-code", ".claude/settings.local.json", true,  true,    Holds::Nothing),
    file("codex",       ".codex/hooks.json",           true,  true,    Holds::Hooks),
    file("codex",       ".codex/config.toml",          true,  true,    Holds::Server),
    file("codex",       ".codex",                      true,  false,   Holds::Nothing),
    file("cursor",      ".cursor/hooks.json",          true,  true,    Holds::Hooks),
    file("cursor",      ".cursor/mcp.json",            true,  true,    Holds::Server),
    file("gemini",      ".gemini/settings.json",       true,  true,    Holds::HooksAndServer),
];

/// Where a project keeps its settings for Interlock.
pub const PROJECT_SETTINGS: &str = ".interlock";
/// What can lie in there: the workflow, in one of these.
pub const WORKFLOW_FILES: [&str; 4] = ["workflow.json", "workflow.yaml", "workflow.yml", "workflow.toml"];
