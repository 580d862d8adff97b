//! What it means to write to a path, told by its name alone.

use interlock_core::places::{Concern, PROGRAM_DIRECTORIES, guarding, in_home, is_within};

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
    match runs_later(path) {
        Some(why) => Target::Arms(why),
        None => Target::File,
    }
}

/// Why writing to a path means that something runs later, if it does.
fn runs_later(path: &str) -> Option<&'static str> {
    let folded = path.to_ascii_lowercase();
    let is_absolute = folded.starts_with('/');
    let at_home = folded.strip_prefix("~/").or_else(|| folded.strip_prefix("$home/"));
    if at_home.is_some_and(|rest| in_home(Concern::RunsLater).any(|place| is_within(rest, place))) {
        return Some("writes where programs are found");
    }
    let whole = if is_absolute { folded } else { format!("/{folded}") };
    let mut places = guarding(&whole, is_absolute).filter(|place| place.concern != Concern::Secret);
    places.next().map(|place| place.why)
}

/// `/dev/tcp/…` and `/dev/udp/…`, which bash makes connections of.
pub(super) fn is_socket(path: &str) -> bool {
    path.starts_with("/dev/tcp/") || path.starts_with("/dev/udp/")
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
    (PROGRAM_DIRECTORIES.contains(&directory) && path.starts_with('/')).then(|| name.to_owned())
}
