//! Programs that are asked for their version or for help: who answers, the program or what a file of the project chose.
//!
//! Version managers stand in the place of other programs and run the one that a file in the directory, or above it, names.
//! One of the installed ones is a program like any other; one in the project is not.

use std::sync::Arc;

use interlock_core::places::{CHOOSERS, Chooser};

use super::reduce::Argument;
use super::table::Spec;
use super::walk::{Run, Walk};
use super::{AS_INSTALLED, Label};

/// Programs that may run anything, and say their version or how they are used before they look at the project. All
/// others of that kind may load what it names: plugins, wrappers, another version of themselves.
#[rustfmt::skip]
const ANSWERING: &[&str] = &[
    "python", "python2", "python2.7", "python3", "python3.6", "python3.7", "python3.8", "python3.9", "python3.10",
    "python3.11", "python3.12", "python3.13", "python3.14", "pypy", "pypy3", "node", "nodejs", "deno", "bun", "npm",
    "npx", "ruby", "perl", "perl5", "php", "lua", "luajit", "lua5.1", "lua5.2", "lua5.3", "lua5.4", "R", "Rscript",
    "java", "javac", "javap", "jshell", "jar", "tcc", "gcc", "cc", "g++", "c++", "clang", "clang++", "cpp", "gfortran",
    "as", "ld", "ld.lld", "ld.gold", "lld", "mold", "nasm", "yasm", "ghc", "ocaml", "protoc", "bison", "flex", "make",
    "gmake", "bmake", "cmake", "ctest", "ninja", "pkg-config", "autoconf", "automake", "ccache", "sccache", "tsc",
    "pip", "pip3", "gem", "uv", "ruff", "rustup", "cargo", "rustc", "rustdoc", "rustfmt", "docker", "docker-compose",
    "podman", "buildah", "kubectl", "oc", "helm", "aws", "gcloud", "gsutil", "bq", "az", "gh", "glab", "doctl",
    "psql", "mysql", "mariadb", "sqlite3", "duckdb", "mongosh", "redis-cli", "clickhouse", "etcdctl", "pg_restore",
    "mysqladmin", "openssl", "gpg", "age", "ssh-add", "rclone", "aria2c", "7z", "unrar", "rar", "patchelf", "apt",
    "apt-get", "apt-cache", "apt-mark", "dpkg", "rpm", "dnf", "pacman", "apk", "brew", "nix", "systemctl",
    "systemd-run", "systemd-analyze", "loginctl", "resolvectl", "networkctl", "udevadm", "crontab", "at", "service",
    "ip", "iptables", "nft", "ufw", "strace", "modprobe", "ldd", "ldconfig", "hdparm", "cryptsetup", "getent", "htop",
    "umount", "chroot", "useradd", "setcap", "updatedb", "rename", "units", "m4", "fzf", "ack", "ugrep", "wdiff",
    "colordiff", "diffstat", "xmlstarlet", "pandoc", "convert", "magick", "identify", "ffmpeg", "ffprobe", "sox",
    "exiftool", "gs", "less", "more", "zless", "zmore", "man", "info", "vim", "vi", "nvim", "nano", "emacs", "tmux",
    "svn", "git-lfs", "nginx", "shellcheck", "clang-format", "hyperfine", "claude", "codex", "gemini",
    "cursor-agent", "ollama", "entr", "ctags", "tar", "cloc",
];

/// Whether a program is asked for its version or for help, and for nothing else.
pub(super) fn is_asked(arguments: &[Argument], entries: &[Arc<Spec>]) -> bool {
    let [only] = arguments else { return false };
    match only.known_text() {
        Some("--version" | "--help") => true,
        Some(text) => entries.iter().any(|spec| spec.version.iter().any(|version| version == text)),
        None => false,
    }
}

/// Whether such a program runs nothing of the project to answer.
pub(super) fn answers(walk: &mut Walk<'_, '_>, run: &Run<'_>, entries: &[Arc<Spec>]) -> bool {
    if entries.iter().all(|spec| spec.effect != Label::Unknown) {
        return true;
    }
    if !ANSWERING.contains(&run.name) {
        return false;
    }
    let plain = run.name.trim_end_matches(|letter: char| letter.is_ascii_digit() || letter == '.');
    let chooses = |chooser: &&Chooser| chooser.programs.contains(&plain);
    let is_chosen = CHOOSERS.iter().any(|chooser| chooses(&chooser));
    let Some(found) = &walk.setting.choosers else {
        walk.assume(AS_INSTALLED);
        return true;
    };
    let is_there = |chooser: &&Chooser| found.files.iter().any(|file| file == chooser.file);
    let by_file = CHOOSERS.iter().filter(|chooser| chooser.programs.is_empty() || chooses(chooser)).find(is_there);
    let by_file = by_file.map(|chooser| format!("`{}` says which program this is", chooser.file));
    let by_line = || {
        // A line that writes may bring such a file.
        let writes = walk.findings.effects.iter().any(|found| found.effect > Label::ReadOnly);
        (is_chosen && (writes || found.is_unknown)).then(|| "a file may say which program this is".to_owned())
    };
    match by_file.or_else(by_line) {
        Some(why) => {
            walk.add(Label::Unknown, run.name, &run.span, why);
            false
        }
        None => {
            if walk.directory.is_some() {
                walk.assume(AS_INSTALLED);
            }
            true
        }
    }
}
