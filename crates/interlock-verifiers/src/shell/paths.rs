//! What it means to write to a path, told by its name alone.

use super::Effect;

/// What writing to a path does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Target {
    /// Nothing is kept: a standard stream or the null device.
    Stream,
    /// A file.
    File,
    /// A file that runs later.
    Arms(&'static str),
    /// A disk or memory as a whole.
    Device,
    /// A connection.
    Socket,
}

impl Target {
    /// The effect and its reason.
    pub(super) fn effect(self) -> (Effect, &'static str) {
        match self {
            Target::Stream => (Effect::ReadOnly, "writes to a standard stream or the null device"),
            Target::File => (Effect::Write, "writes a file"),
            Target::Arms(why) => (Effect::Unknown, why),
            Target::Device => (Effect::Destructive, "writes to a device as a whole"),
            Target::Socket => (Effect::Network, "opens a connection"),
        }
    }
}

/// Names of files that run later, wherever they are.
#[rustfmt::skip]
const ARMED_NAMES: &[&str] = &[
    ".gitattributes", ".gitmodules", ".gitconfig", ".bashrc", ".bash_profile", ".bash_login", ".bash_logout",
    ".bash_aliases", ".profile", ".zshrc", ".zshenv", ".zprofile", ".zlogin", ".zlogout", ".kshrc", ".mkshrc",
    ".cshrc", ".tcshrc", ".login", ".logout", ".inputrc", ".xinitrc", ".xprofile", ".xsessionrc", ".envrc",
    ".direnvrc", ".gitlab-ci.yml", ".travis.yml", "jenkinsfile", "azure-pipelines.yml", "bitbucket-pipelines.yml",
    ".drone.yml", ".appveyor.yml", "appveyor.yml", "cloudbuild.yaml", ".woodpecker.yml", ".pre-commit-config.yaml",
    "lefthook.yml", ".mcp.json", ".aider.conf.yml", ".vimrc", ".gvimrc", ".exrc", ".nvimrc", ".ideavimrc", ".emacs",
    ".nanorc", ".gdbinit", ".lldbinit", ".pythonrc", ".pdbrc", ".irbrc", ".psqlrc", ".sqliterc", ".npmrc", ".yarnrc",
    ".yarnrc.yml", ".wgetrc", ".curlrc", ".screenrc", ".tmux.conf", "sitecustomize.py", "usercustomize.py",
    "pip.conf", "crontab", "authorized_keys", ".xsession", ".claude.json", ".mise.toml", "mise.toml",
    ".dir-locals.el",
];

/// Directories in which everything runs later.
#[rustfmt::skip]
const ARMED_DIRECTORIES: &[&str] = &[
    ".git/hooks", ".husky", ".githooks", ".github/workflows", ".github/actions", ".circleci", ".buildkite", ".gitea",
    ".forgejo", ".woodpecker", ".claude", ".codex", ".cursor", ".gemini", ".vscode", ".idea", ".zed", ".continue",
    ".windsurf", ".interlock", ".emacs.d", ".config/nvim", ".config/fish", ".config/git", ".config/autostart",
    ".config/systemd", ".config/direnv", ".config/zed", ".vim", ".zsh", ".bashrc.d", ".oh-my-zsh", ".local/bin",
    ".cargo/bin", ".local/share/systemd", "node_modules/.bin", "library/launchagents", "library/launchdaemons",
    ".devcontainer", "go/bin", ".venv/bin", "venv/bin",
];

/// Directories of the system in which everything runs later.
#[rustfmt::skip]
const ARMED_ROOTS: &[&str] = &[
    "/bin", "/sbin", "/usr/bin", "/usr/sbin", "/usr/local/bin", "/usr/local/sbin", "/opt/homebrew/bin",
    "/etc/profile.d", "/etc/cron.d", "/etc/cron.daily", "/etc/cron.hourly", "/etc/cron.weekly", "/etc/cron.monthly",
    "/etc/systemd", "/etc/init.d", "/lib/systemd", "/usr/lib/systemd", "/var/spool/cron", "/etc/sudoers.d",
    "/etc/ld.so.conf.d", "/etc/zsh", "/etc/bash_completion.d", "/etc/xdg/autostart", "/etc/update-motd.d",
    "/etc/apt/apt.conf.d",
];

/// Files of the system that run later, or change what runs.
#[rustfmt::skip]
const ARMED_FILES: &[&str] = &[
    "/etc/profile", "/etc/bash.bashrc", "/etc/bashrc", "/etc/environment", "/etc/crontab", "/etc/anacrontab",
    "/etc/rc.local", "/etc/sudoers", "/etc/ld.so.preload", "/etc/ld.so.conf", "/etc/gitconfig", "/etc/inittab",
    "/etc/zshenv", "/etc/zshrc", "/etc/zprofile",
];

#[rustfmt::skip]
const DISKS: &[&str] = &[
    "/dev/sd", "/dev/hd", "/dev/vd", "/dev/xvd", "/dev/nvme", "/dev/mmcblk", "/dev/disk", "/dev/rdisk",
    "/dev/mapper/", "/dev/dm-", "/dev/loop", "/dev/md", "/dev/sr", "/dev/nbd", "/dev/zram", "/dev/mem", "/dev/kmem",
    "/dev/port", "/dev/block/", "/dev/fd0", "/dev/ram",
];

/// What writing to a path does, seen from a directory if one is known.
pub(super) fn target(path: &str, directory: Option<&str>) -> Target {
    let plain = normalise(path);
    let alone = judge(&plain);
    if alone != Target::File || path.starts_with('/') {
        return alone;
    }
    match directory {
        Some(directory) => judge(&normalise(&format!("{directory}/{path}"))),
        None => alone,
    }
}

fn judge(path: &str) -> Target {
    if matches!(path, "/dev/null" | "/dev/stdout" | "/dev/stderr") {
        return Target::Stream;
    }
    let numbered = path.strip_prefix("/dev/fd/");
    if numbered.is_some_and(|rest| !rest.is_empty() && rest.bytes().all(|byte| byte.is_ascii_digit())) {
        return Target::Stream;
    }
    if is_socket(path) {
        return Target::Socket;
    }
    if DISKS.iter().any(|disk| path.starts_with(disk)) {
        return Target::Device;
    }
    let folded = path.to_ascii_lowercase();
    let name = folded.rsplit('/').next().unwrap_or("");
    if ARMED_NAMES.contains(&name) {
        return Target::Arms("writes a file that runs later or changes what runs");
    }
    if ARMED_FILES.contains(&folded.as_str()) || name.ends_with(".pth") {
        return Target::Arms("writes a file of the system that runs later");
    }
    if ARMED_ROOTS.iter().any(|root| is_within(&folded, root)) {
        return Target::Arms("writes where programs and start files of the system are");
    }
    if ARMED_DIRECTORIES.iter().any(|directory| holds(&folded, directory)) {
        return Target::Arms("writes where hooks, pipelines, or settings of agents and editors are");
    }
    // The configuration of a repository names programs. So does that of its submodules and worktrees, and other files
    // say which configuration that is: nothing in there is for anyone but git.
    let in_cargo = holds(&folded, ".cargo") && name.starts_with("config");
    if in_cargo || holds(&folded, ".git") {
        return Target::Arms("writes the configuration of a repository");
    }
    if folded == "~/bin" || folded.starts_with("~/bin/") || folded.starts_with("$home/bin/") {
        return Target::Arms("writes a directory on the path");
    }
    if holds(&folded, ".ssh") && matches!(name, "config" | "rc" | "environment" | "authorized_keys2") {
        return Target::Arms("writes a file that runs later or changes what runs");
    }
    Target::File
}

/// `/dev/tcp/…` and `/dev/udp/…`, which bash makes connections of.
pub(super) fn is_socket(path: &str) -> bool {
    path.starts_with("/dev/tcp/") || path.starts_with("/dev/udp/")
}

fn is_within(path: &str, root: &str) -> bool {
    path.strip_prefix(root).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// Whether a path runs through a directory, or is it.
fn holds(path: &str, directory: &str) -> bool {
    path.match_indices(directory).any(|(at, _)| {
        let before = path.get(..at).unwrap_or("");
        let after = path.get(at.saturating_add(directory.len())..).unwrap_or("");
        (before.is_empty() || before.ends_with('/')) && (after.is_empty() || after.starts_with('/'))
    })
}

/// A path without `.`, `..` and doubled slashes, as far as its text tells.
pub(super) fn normalise(path: &str) -> String {
    let absolute = path.starts_with('/');
    let mut parts: Vec<&str> = Vec::new();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." => match parts.last() {
                Some(last) if *last != ".." => {
                    parts.pop();
                }
                Some(_) | None if absolute => {}
                Some(_) | None => parts.push(".."),
            },
            _ => parts.push(part),
        }
    }
    let joined = parts.join("/");
    if absolute { format!("/{joined}") } else { joined }
}

/// The name of a program in a directory of the system; nothing for a program elsewhere.
pub(super) fn system_program(path: &str) -> Option<String> {
    let plain = normalise(path);
    let (directory, name) = plain.rsplit_once('/')?;
    let system = ["/bin", "/usr/bin", "/sbin", "/usr/sbin", "/usr/local/bin"];
    (system.contains(&directory) && path.starts_with('/')).then(|| name.to_owned())
}
