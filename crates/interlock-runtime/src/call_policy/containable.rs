//! Which profile gives a command line all that it was seen to need, if one does. What needs more is judged as if nothing
//! could hold it.

use interlock_core::bundle::Bundle;
use interlock_core::call::{Call, Effect, Family};
use interlock_core::contain::{Abilities, BUILD, BoundEvidence, PROJECT, READ, Rung};
use interlock_core::places::is_within;
use interlock_core::rule::{CallHost, CallPath, CallSubject, Then, is_shipped, shell_quoted, shell_words};

use super::Seen;

/// Directories for temporary files: inside a bound they are the session's own.
pub const TEMPORARY: [&str; 2] = ["/tmp", "/var/tmp"];

/// Commands that fetch packages from the hosts that the operator lists: what else they reach is refused there.
#[rustfmt::skip]
const FETCHING: &[&str] = &[
    "npm", "pnpm", "yarn", "bun", "npx", "pnpx", "bunx", "corepack", "pip", "pip2", "pip3", "poetry", "pdm", "uv", "uvx",
    "pipx", "pipenv", "hatch", "rye", "flit", "conda", "mamba", "micromamba", "pixi", "tox", "nox", "gem", "bundle",
    "bundler", "cargo", "cross", "go", "composer", "mix", "hex", "opam", "stack", "cabal", "make", "gmake", "cmake", "mvn",
    "mvnw", "gradle", "gradlew", "sbt", "dotnet", "lerna", "nx", "turbo", "pre-commit", "swift",
];

/// Commands that are of no use in any profile: they need another user's rights, another machine, a daemon, or to go on
/// when the call is over.
#[rustfmt::skip]
const BEYOND: &[&str] = &[
    "sudo", "sudo-rs", "su", "doas", "pkexec", "run0", "runuser", "systemctl", "service", "systemd-run", "launchctl",
    "apt", "apt-get", "aptitude", "dpkg", "dnf", "yum", "zypper", "pacman", "apk", "brew", "snap", "flatpak", "port",
    "docker", "docker-compose", "podman", "nerdctl", "buildah", "kubectl", "helm", "minikube", "kind", "vagrant",
    "terraform", "tofu", "pulumi", "ansible", "ansible-playbook", "aws", "gcloud", "az", "doctl", "fly", "flyctl",
    "heroku", "vercel", "netlify", "wrangler", "firebase", "gh", "glab", "hub", "ssh", "scp", "sftp", "rsync", "mosh",
    "mount", "umount", "losetup", "chroot", "nsenter", "unshare", "bwrap", "firejail", "tmux", "screen", "zellij", "at",
    "batch", "crontab", "claude", "codex", "gemini", "cursor-agent", "aider", "goose", "opencode", "osascript",
    "xdg-open", "open", "twine", "rustup", "nvm", "fnm", "volta", "asdf", "mise", "sdk", "mail", "mailx", "sendmail",
    "psql", "mysql", "mongosh", "redis-cli", "iptables", "nft", "ip", "useradd", "usermod", "passwd", "chsh",
];

/// Where command lines are run by a runner of ours.
#[derive(Debug, Clone, Copy)]
pub struct RunnerGround {
    /// What the kernel can hold.
    pub abilities: Abilities,
    /// The host may run the line as it was, if what it is told gets lost.
    pub advisory: bool,
}

/// The bound for a call, and what of it the bound answers for.
pub(super) fn bound_for(
    bundle: &Bundle,
    call: &Call,
    seen: &Seen,
    subject: &CallSubject<'_>,
    project: &str,
    ground: RunnerGround,
) -> Option<BoundEvidence> {
    let is_line = call.family == Some(Family::Bash) && call.intent.commands.len() == 1;
    let label = seen.label?;
    if !ground.abilities.hold() || !is_line || seen.has_unread || seen.labels.contains(&Effect::Destructive) {
        return None;
    }
    if seen.commands.iter().any(|words| name_of(words).is_some_and(|name| BEYOND.contains(&name))) {
        return None;
    }
    let is_private = |path: &str| TEMPORARY.iter().any(|directory| is_within(path, directory));
    let stays = |touched: &CallPath| match touched.path.as_deref() {
        Some(path) => is_within(path, project) || is_private(path) || super::is_stream(path),
        None => true,
    };
    if !subject.paths.iter().filter(|touched| touched.writes).all(stays) || !rules_are_silent(bundle, subject) {
        return None;
    }
    let fetches = seen.commands.iter().any(|words| is_fetching(words));
    let profile = if label == Effect::ReadOnly {
        READ
    } else if fetches {
        BUILD
    } else {
        PROJECT
    };
    let profile = bundle.profiles().get(profile).filter(|profile| ground.abilities.hold_profile(profile))?;
    // Without namespaces there is no loopback of its own.
    let has_loopback = ground.abilities.rung() == Rung::Full;
    let answers = |reached: &CallHost| match reached.host.as_deref() {
        Some(host) => has_loopback && is_loopback(host) || profile.connects(host),
        None => reached.command.and_then(|at| seen.commands.get(at)).is_some_and(|words| is_fetching(words)),
    };
    seen.hosts.iter().all(answers).then(|| BoundEvidence {
        profile: profile.name.clone(),
        digest: profile.digest(),
        abilities: ground.abilities,
        advisory: ground.advisory,
    })
}

/// Whether no rule of the operator is about what code that nobody understood might do: a bound keeps it from the places of
/// the shipped rules, and knows nothing of theirs.
fn rules_are_silent(bundle: &Bundle, subject: &CallSubject<'_>) -> bool {
    let is_open = subject.effects.iter().any(|effect| matches!(effect, Effect::Unknown | Effect::Network));
    if !is_open {
        return true;
    }
    let mut anything = subject.clone();
    anything.paths.push(CallPath { path: None, writes: true, removes: true, sweeps: true, command: None });
    anything.hosts.push(CallHost { host: None, command: None });
    let found = bundle.find_call_rules(&anything);
    found.then == Some(Then::Allow) || found.matched.iter().all(|id| is_shipped(id))
}

/// The command in a line that is nothing but `BINARY exec -- COMMAND`, each word quoted as we quote: then no shell reads it
/// in another way.
pub fn inner_line(line: &str, binary: &str) -> Option<String> {
    let inner = line.trim().strip_prefix(&format!("{} exec -- ", shell_quoted(binary)))?;
    shell_words(inner).filter(|words| !words.is_empty()).map(|_| inner.to_owned())
}

/// Whether a host is this machine itself: inside a bound, the session's own loopback.
fn is_loopback(host: &str) -> bool {
    let host = host.trim_start_matches('[').trim_end_matches(']');
    let is_address = host.parse::<std::net::IpAddr>().is_ok_and(|address| address.is_loopback());
    is_address || host == "localhost" || host.ends_with(".localhost")
}

fn name_of(words: &[Option<String>]) -> Option<&str> {
    let first = words.first()?.as_deref()?;
    Some(first.rsplit('/').next().unwrap_or(first))
}

fn is_fetching(words: &[Option<String>]) -> bool {
    let Some(name) = name_of(words) else { return false };
    let module = words.iter().position(|word| word.as_deref() == Some("-m"));
    let module = module.and_then(|at| words.get(at.saturating_add(1))?.as_deref());
    FETCHING.contains(&name)
        || name.starts_with("python") && module.is_some_and(|module| FETCHING.contains(&module) || module == "build")
}
