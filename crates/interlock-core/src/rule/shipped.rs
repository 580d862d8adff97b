//! The rules that are always on: secrets, what runs later, and Interlock's own files.

use super::{RuleSource, Then};

/// The name of what asks about hosts that are not listed.
pub(super) const EGRESS: &str = "egress";
/// The name of what asks about files whose contents open other doors.
pub(super) const SECRETS_RULE: &str = "secrets";
/// The name of what asks about writing what runs later.
pub(super) const ARMS_RULE: &str = "arms";
/// The name of what refuses to touch Interlock itself.
pub const SELF_RULE: &str = "self";
/// What a rule of an operator can answer beforehand.
pub(super) const LIFTABLE: [&str; 3] = [SECRETS_RULE, ARMS_RULE, EGRESS];

/// Files whose contents open other doors.
#[rustfmt::skip]
const SECRETS: &[&str] = &[
    "**/.env", "**/.env.*", "**/*.pem", "**/*.key", "**/*.p12", "**/*.pfx", "**/id_rsa*", "**/id_dsa*", "**/id_ecdsa*",
    "**/id_ed25519*", "**/.ssh/**", "**/.gnupg/**", "**/.aws/**", "**/.azure/**", "**/.kube/config", "**/.netrc",
    "**/.pgpass", "**/.npmrc", "**/.pypirc", "**/.git-credentials", "**/.docker/config.json", "**/credentials",
    "**/credentials.*", "**/secrets.*", "**/*.keystore", "**/*.jks", "**/shadow", "**/.vault-token",
    // what is handed to a service, and a token of GitHub
    "/run/secrets/**", "/var/run/secrets/**", "/private/var/run/secrets/**", "**/gh/hosts.yml",
    // what was typed: shells, interpreters, databases, pagers
    "**/.bash_history", "**/.zsh_history", "**/.*_history", "**/*_history.txt", "**/fish_history", "**/.histfile", "**/.zhistory", "**/.lesshst", "**/.viminfo",
];

/// Whether a file with such a name is there to be shown. `path` is a real one, in lower case.
pub(super) fn is_example(path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or(path);
    let shown = |kind: &str| matches!(kind, "example" | "sample" | "template" | "dist" | "defaults");
    name.strip_prefix(".env.").or_else(|| name.strip_prefix(".dev.vars.")).is_some_and(shown)
        || name.starts_with("id_") && name.ends_with(".pub")
}

/// More of them, where paths are real ones and not words that may be paths.
#[rustfmt::skip]
const SECRETS_AT_CALLS: &[&str] = &[
    "**/.envrc", "**/.config/gcloud/**", "**/.config/glab-cli/**", "**/.terraform.d/**",
    "**/*.tfstate", "**/.cargo/credentials*", "**/.my.cnf", "**/.password-store/**", "**/*.kdbx", "**/gshadow",
    "**/.config/containers/auth.json", "**/*.ppk", "**/.htpasswd",
    "**/.local/share/keyrings/**", "/proc/*/environ",
    // what was typed, in directories of its own
    "**/.zsh_sessions/**", "**/.bash_sessions/**", "**/.local/share/nushell/**", "**/.config/nushell/history*",
    "**/.local/share/powershell/**", "**/.local/share/xonsh/**", "**/.ipython/**/history.sqlite*", "**/.mongodb/mongosh/**",
    "**/.dbshell", "**/.rediscli_auth", "**/.mylogin.cnf", "**/.pg_service.conf", "**/.odbc.ini", "**/.snowsql/**",
    "**/.snowflake/**", "**/.dbt/profiles.yml",
    // agents and their hosts
    "**/.credentials.json", "**/oauth_creds.json", "**/.gemini/google_accounts.json", "**/.gemini/mcp-oauth-tokens*",
    "**/.config/github-copilot/**", "**/.local/share/*/auth.json", "**/.config/*/auth.json", "**/.continue/config.*",
    "**/.config/goose/**", "**/.config/openai/**", "**/.openai/**", "**/.config/anthropic/**", "**/.anthropic/**",
    "**/.aider.conf.yml", "**/.config/cursor/**",
    // clouds and services
    "**/.config/rclone/**", "**/.rclone.conf", "**/.s3cfg", "**/.boto", "**/.oci/**", "**/.config/doctl/**", "**/.fly/**",
    "**/.netlify/config.json", "**/.config/netlify/**", "**/.config/configstore/**", "**/.databrickscfg",
    "**/.config/hcloud/**", "**/.linode-cli", "**/.config/linode-cli", "**/.config/scw/**", "**/.aliyun/**",
    "**/.bluemix/**", "**/.railway/**", "**/.config/railway/**", "**/.config/.wrangler/**", "**/.wrangler/config/**",
    "**/.dev.vars", "**/.dev.vars.*", "**/.supabase/access-token", "**/.config/firebase/**", "**/.config/op/**",
    "**/.config/bitwarden*/**", "**/.config/hub", "**/.config/gh/**", "**/.config/tea/**", "**/.config/stripe/**",
    "**/.config/ngrok/**", "**/.ngrok2/**", "**/.cloudflared/**", "**/.config/helm/registry/**", "**/.mc/config.json",
    "**/.sentryclirc", "**/.dockercfg", "**/kubeconfig", "**/.kube/*.yaml", "**/*.tfvars", "**/*.tfvars.json",
    "**/.terraformrc", "**/.config/sops/**", "**/.config/age/**", "**/.cache/huggingface/token", "**/.huggingface/token",
    "**/.kaggle/**", "**/.config/kaggle/**", "**/client_secret*.json", "**/service-account*.json",
    // registries
    "**/.m2/settings*.xml", "**/.gradle/gradle.properties", "**/.yarnrc.yml", "**/.config/pip/pip.conf", "**/.pip/pip.conf",
    "/etc/pip.conf", "**/.config/pypoetry/auth.toml", "**/.bundle/config", "**/nuget.config", "**/.composer/auth.json",
    "**/.conan/credentials*", "**/.condarc",
    // browsers, mail, key rings, wallets
    "**/.mozilla/**", "**/snap/firefox/**", "**/.config/google-chrome*/**", "**/.config/chromium/**",
    "**/.config/bravesoftware/**", "**/.config/microsoft-edge*/**", "**/.config/vivaldi/**", "**/.config/opera*/**",
    "**/library/application support/google/chrome/**", "**/library/application support/firefox/**",
    "**/library/keychains/**", "**/library/cookies/**", "**/logins.json", "**/key4.db", "**/login data*",
    "**/cookies.sqlite*", "**/.thunderbird/**", "**/.authinfo*", "**/.msmtprc", "**/.fetchmailrc", "**/.vnc/passwd",
    "**/.smbcredentials", "**/*.keytab", "/tmp/krb5cc_*", "**/*.p8", "**/*.pkcs12", "**/*.jceks", "**/*.ovpn",
    "/etc/wireguard/**", "/etc/networkmanager/system-connections/**", "/etc/sudoers", "/etc/sudoers.d/**",
    "/etc/ssh/ssh_host_*", "**/wallet.dat", "**/.ethereum/keystore/**", "**/.config/solana/id.json", "**/.electrum/**",
];

/// Interlock's own files and the hook settings of the hosts it guards, wherever they lie. Directories of ours are known
/// by their places, which the caller names: another one may be called `.interlock` too.
#[rustfmt::skip]
const SELF: &[&str] = &[
    "**/interlock.toml", "**/operator.key", "**/ledger.key", "**/ledger.db*", "**/.codex/**",
    "**/.claude/settings*.json", "**/.cursor/hooks.json", "**/.gemini/settings.json",
];

/// More of them, where paths are real ones.
#[rustfmt::skip]
const SELF_AT_CALLS: &[&str] = &[
    "**/.cursor/hooks/**", "**/.claude/hooks/**", "**/.gemini/hooks/**", "/etc/claude-code/**", "/etc/codex/**",
    "/etc/cursor/**", "/etc/gemini-cli/**", "**/.github/hooks/**", "**/.copilot/hooks/**", "**/.copilot/config.json",
    "**/.config/github-copilot/hooks/**", "**/.qwen/settings.json", "**/.config/opencode/**", "**/opencode.json",
    "**/.opencode/**", "**/.codeium/windsurf/hooks.json", "**/.windsurf/hooks.json", "**/.amazonq/cli-agents/**",
    "/library/application support/claudecode/**", "/library/application support/cursor/**",
];

/// What runs later if it is written now.
#[rustfmt::skip]
const ARMS: &[&str] = &[
    "**/.git/config", "**/.git/hooks/**", "**/.gitattributes", "**/.gitmodules", "**/.bashrc", "**/.bash_profile",
    "**/.bash_login", "**/.bash_logout", "**/.profile", "**/.zshrc", "**/.zshenv", "**/.zprofile", "**/.zlogin",
    "**/.config/fish/**", "/etc/profile", "/etc/profile.d/**", "/etc/cron*/**", "/etc/crontab", "/var/spool/cron/**",
    "/usr/bin/**", "/usr/local/bin/**", "/bin/**", "/sbin/**", "/usr/sbin/**", "**/.local/bin/**", "**/.envrc",
    "**/.github/workflows/**", "**/.gitlab-ci.yml", "**/.circleci/**", "**/jenkinsfile", "**/.vscode/**", "**/.idea/**",
    "**/.claude/**", "**/.cursor/**", "**/.gemini/**", "**/.config/systemd/**", "/etc/systemd/**", "**/.interlock/**",
];

/// More of them, where paths are real ones. The shell verifier knows the same places by their names.
#[rustfmt::skip]
const ARMS_AT_CALLS: &[&str] = &[
    // git
    "**/.git", "**/.git/**", "**/.gitconfig", "**/.config/git/**", "/etc/gitconfig", "**/.husky/**", "**/.githooks/**",
    "**/.git-hooks/**", "**/.pre-commit-config.y*ml", "**/.pre-commit-hooks.y*ml", "**/lefthook.y*ml", "**/lefthook.toml", "**/lefthook.json", "**/.lefthook.*",
    "**/lefthook-local.*", "**/.lefthook-local.*", "**/.lefthook/**", "**/.overcommit.yml", "**/.huskyrc*",
    "**/.lintstagedrc*", "**/.simple-git-hooks.*", "**/simple-git-hooks.*", "**/.hg/**", "**/.hgrc", "**/.jj/**",
    // shells
    "**/.bash_aliases", "**/.bashrc.d/**", "**/.zlogout", "**/.zsh/**", "**/.oh-my-zsh/**", "**/.kshrc", "**/.mkshrc",
    "**/.cshrc", "**/.tcshrc", "**/.login", "**/.logout", "**/.inputrc", "**/.xinitrc", "**/.xprofile", "**/.xsession",
    "**/.xsessionrc", "**/.direnvrc", "**/.config/direnv/**", "/etc/bash.bashrc", "/etc/bashrc", "/etc/environment",
    "/etc/zsh/**", "/etc/zshenv", "/etc/zshrc", "/etc/zprofile", "/etc/bash_completion.d/**", "**/.bashrc.local",
    "**/.zshrc.local", "**/.zshenv.local", "**/.bash_completion", "**/.config/bash/**", "**/.config/zsh/**", "**/.zimrc",
    "**/.config/nushell/**", "**/.config/powershell/**", "**/.config/environment.d/**", "**/.pam_environment",
    "**/.config/starship.toml", "**/.rvmrc", "**/.autoenv", "**/.autoenv.zsh",
    // what the system starts
    "/etc/anacrontab", "/etc/rc.local", "/etc/init.d/**", "/etc/inittab", "/etc/sudoers", "/etc/sudoers.d/**",
    "/etc/ld.so.preload", "/etc/ld.so.conf", "/etc/ld.so.conf.d/**", "/lib/systemd/**", "/usr/lib/systemd/**",
    "/usr/local/sbin/**", "/opt/homebrew/bin/**", "/etc/xdg/autostart/**", "/etc/update-motd.d/**", "/var/spool/at/**",
    "/etc/apt/apt.conf.d/**", "**/.config/autostart/**", "**/.local/share/systemd/**", "**/crontab",
    "**/library/launchagents/**", "**/library/launchdaemons/**", "**/.ssh/config", "**/.ssh/rc", "**/.ssh/environment",
    "**/.ssh/authorized_keys*",
    // directories that tend to be on the path
    "**/.cargo/bin/**", "**/go/bin/**", "**/node_modules/.bin/**", "**/.venv/bin/**", "**/venv/bin/**",
    // pipelines
    "**/.github/actions/**", "**/.travis.yml", "**/azure-pipelines.yml", "**/bitbucket-pipelines.yml", "**/.drone.yml",
    "**/.appveyor.yml", "**/appveyor.yml", "**/cloudbuild.yaml", "**/.woodpecker.yml", "**/.woodpecker/**",
    "**/.buildkite/**", "**/.gitea/**", "**/.forgejo/**", "**/.devcontainer/**", "**/.devcontainer.json",
    "**/.gitlab-ci.yaml", "**/.gitlab/**", "**/azure-pipelines.yaml", "**/.drone.yaml", "**/cloudbuild.yml",
    "**/.woodpecker.yaml", "**/.cirrus.*", "**/.teamcity/**", "**/.semaphore/**", "**/.build.yml", "**/.builds/**",
    "**/.tekton/**", "**/buildspec.y*ml", "**/codemagic.yaml", "**/.gitpod.*", "**/.replit", "**/devfile.yaml",
    "**/.devfile.yaml", "**/.idx/**", "**/.codesandbox/**",
    // agents and editors
    "**/.mcp.json", "**/.claude.json", "**/.aider.conf.yml", "**/.continue/**", "**/.windsurf/**", "**/.zed/**",
    "**/.config/zed/**", "**/.config/nvim/**", "**/.vim/**", "**/.emacs.d/**", "**/.vimrc", "**/.gvimrc", "**/.exrc",
    "**/.nvimrc", "**/.ideavimrc", "**/.emacs", "**/.dir-locals.el", "**/.nanorc", "**/.copilot/**", "**/.qwen/**",
    "**/.cursorrules", "**/.windsurfrules", "**/.roo/**", "**/.kiro/**", "**/.amazonq/**", "**/.aws/amazonq/**",
    "**/.trae/**", "**/.augment/**", "**/.junie/**", "**/.cline/**", "**/.clinerules", "**/.clinerules/**", "**/.goose/**",
    "**/.goosehints", "**/.config/goose/**", "**/crush.json", "**/.crush.json", "**/.codeium/**", "**/.fleet/**",
    "**/.nova/**", "**/.theia/**", "**/.run/**", "**/*.code-workspace", "**/*.sublime-project", "**/.helix/**",
    "**/.config/helix/**", "**/.nvim.lua", "**/.lvimrc", "**/.local.vimrc", "**/.vimrc.local", "**/.dir-locals-2.el",
    "**/.ycm_extra_conf.py",
    // tools that read a file before they do anything
    "**/.gdbinit", "**/.lldbinit", "**/.pythonrc", "**/.pdbrc", "**/.irbrc", "**/.psqlrc", "**/.sqliterc", "**/.npmrc",
    "**/.yarnrc", "**/.yarnrc.yml", "**/.wgetrc", "**/.curlrc", "**/.screenrc", "**/.tmux.conf", "**/pip.conf",
    "**/sitecustomize.py", "**/usercustomize.py", "**/*.pth", "**/.cargo/config", "**/.cargo/config.toml",
    "**/.mise.toml", "**/mise.toml", "**/.mise.local.toml", "**/mise.local.toml", "**/.mise/**", "**/.config/mise/**",
    "**/.rtx.toml", "**/.pnpmfile.*", "**/pnpmfile.*", "**/.yarn/releases/**", "**/.yarn/plugins/**", "**/bunfig.toml",
    "**/.bunfig.toml", "**/.mvn/**", "**/.mavenrc", "**/.gradle/init.gradle*", "**/.gradle/init.d/**", "**/.sbtrc",
    "**/.pryrc", "**/.pythonstartup", "**/.rprofile", "**/.renviron", "**/.julia/config/**", "**/.octaverc", "**/.ghci",
    "**/.ocamlinit", "**/.iex.exs", "**/.mongorc.js", "**/.mongoshrc.js", "**/.ripgreprc", "**/.lessfilter", "**/.lesskey",
    "**/.config/tmux/**", "**/.wezterm.lua", "**/.config/wezterm/**", "**/.config/kitty/**", "**/.hammerspoon/**",
    "**/.forward", "**/.procmailrc", "**/.pydistutils.cfg", "**/.config/pip/**",
    // files that say which program a name stands for: compilers, interpreters, wrappers, shims
    "**/rust-toolchain", "**/rust-toolchain.toml", "**/.rustup/**", "**/.*-version", "**/.*-versions", "**/.*version",
    "**/.nvmrc", "**/.nvm/**", "**/.sdkmanrc", "**/.sdkman/**", "**/.jabbarc", "**/.prototools", "**/.proto/**",
    "**/.asdfrc", "**/.asdf/**", "**/.volta/**", "**/.pyenv/**", "**/.rbenv/**", "**/.nodenv/**", "**/.goenv/**",
    "**/.jenv/**", "**/.tfenv/**", "**/.rvm/**", "**/.local/share/mise/**", "**/.local/share/rtx/**", "**/.config/rtx/**",
    "**/.config/fnm/**", "**/.local/share/fnm/**", "**/mise/config*.toml", "**/mise.*.toml", "**/.mise.*.toml",
    "**/aqua.y*ml", "**/.aqua.y*ml", "**/devbox.json", "**/shell.nix", "**/flake.nix",
    "**/.pnp.*", "**/.yarn/sdks/**", "**/.yarn/unplugged/**", "**/gradle/wrapper/**", "**/gradlew", "**/gradlew.bat",
    "**/mvnw", "**/mvnw.cmd", "**/.sbtopts", "**/.jvmopts", "**/project/build.properties", "**/tools/bazel",
    "**/.bazeliskrc", "**/.bazelrc", "**/.buckconfig", "**/global.json", "**/.config/dotnet-tools.json",
    "**/pyvenv.cfg", "**/.autoenv/**",
];

/// Every place of a secret, as a pattern.
pub(super) fn secret_places() -> impl Iterator<Item = &'static str> {
    SECRETS.iter().chain(SECRETS_AT_CALLS).copied()
}

/// The actions that write files.
const WRITES: [&str; 2] = ["file_write", "file_delete"];

fn by_path(id: &str, action: &str, path: &str, then: Then) -> RuleSource {
    RuleSource {
        id: Some(id.to_owned()),
        action: Some(action.to_owned()),
        path: Some(path.to_owned()),
        ..RuleSource::empty(then)
    }
}

fn within(place: &str) -> String {
    format!("{}/**", place.trim_end_matches('/'))
}

/// The rules at the action gate. `own` are the places of this very server.
pub(super) fn at_actions(own: &[String]) -> Vec<RuleSource> {
    let secrets = SECRETS.iter().map(|path| by_path(SECRETS_RULE, "*", path, Then::Ask));
    let own = own.iter().map(|path| by_path(SELF_RULE, "*", &within(path), Then::Deny));
    let own_names = SELF.iter().map(|path| by_path(SELF_RULE, "*", path, Then::Deny));
    let arms = WRITES.iter().flat_map(|action| ARMS.iter().map(|path| by_path(ARMS_RULE, action, path, Then::Ask)));
    secrets.chain(own).chain(own_names).chain(arms).collect()
}

/// The rules at hooks and gateway, and whether they are about writing only.
pub(super) fn at_calls(own: &[String]) -> Vec<(RuleSource, bool)> {
    let rule = |id, path: &str, then| by_path(id, "*", path, then);
    let secrets = SECRETS.iter().chain(SECRETS_AT_CALLS).map(|path| (rule(SECRETS_RULE, path, Then::Ask), false));
    let own = own.iter().map(|path| (rule(SELF_RULE, &within(path), Then::Deny), false));
    let own_names = SELF.iter().chain(SELF_AT_CALLS).map(|path| (rule(SELF_RULE, path, Then::Deny), false));
    let arms = ARMS.iter().chain(ARMS_AT_CALLS).map(|path| (rule(ARMS_RULE, path, Then::Ask), true));
    secrets.chain(own).chain(own_names).chain(arms).collect()
}
