//! Whose word counts for what was observed: that of the host which began the session, and of nobody whom a judged call
//! may have started.
//!
//! A process that a call leaves behind can send events as well as a host can. It stands beneath the host, or, once its
//! parents are gone, beneath whoever takes in orphans. What is known of processes is told by the caller; nothing is
//! looked up here.

use serde::{Deserialize, Serialize};

use crate::digest::Digest;

/// How many processes of a run are remembered.
pub(super) const HOSTS_LEN: usize = 32;

/// A process that told of calls or began a session.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HostSeen {
    /// Its name: its number and its start.
    pub process: Digest,
    /// When it started, in ticks since the machine did.
    pub started: u64,
    /// Which start of the machine that was.
    pub boot: Digest,
    /// The group of processes that the system keeps it in.
    pub group: Digest,
    /// It began a session and comes of no call: what it tells is observed.
    #[serde(default, skip_serializing_if = "core::ops::Not::not")]
    pub began: bool,
}

/// A process and those it comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lineage {
    /// The process.
    pub host: HostSeen,
    /// Its parent, the parent of that, and so on.
    pub above: Vec<Forebear>,
    /// The last of them, or the process itself, came in from outside of what can be seen here, as into a container.
    pub from_outside: bool,
}

/// A process that another comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Forebear {
    /// Its name.
    pub process: Digest,
    /// When it started.
    pub started: u64,
    /// The one below it may be an orphan that it took in.
    pub adopts: bool,
}

/// Whether a process may begin a session whose facts count. `known` are all that told of calls, in any run. `Err` says
/// why not.
pub fn check_host(known: &[HostSeen], lineage: &Lineage) -> Result<(), &'static str> {
    let own = &lineage.host;
    let others = || known.iter().filter(|known| known.boot == own.boot && known.process != own.process);
    if lineage.above.iter().any(|above| others().any(|other| other.process == above.process)) {
        return Err("it runs beneath a host, so a call may have started it");
    }
    // What a call starts is younger than the host that made the call.
    let Some(first) = others().map(|other| other.started).min() else { return Ok(()) };
    if own.started <= first {
        return Ok(());
    }
    // Up to one that is older than every call: beyond it nothing can come of one.
    let older = lineage.above.iter().position(|above| above.started <= first);
    let may_be_left_over = match older {
        Some(older) => lineage.above.iter().take(older.saturating_add(1)).any(|above| above.adopts),
        None => !lineage.from_outside || lineage.above.iter().any(|above| above.adopts),
    };
    // A service manager starts each program in a group of its own; what a call leaves behind stays in that of its host.
    let is_apart = || others().all(|other| other.group != own.group);
    if may_be_left_over && !is_apart() {
        return Err("it may be left over by a call of an earlier host");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(name: &str) -> Digest {
        Digest::of(&[name])
    }

    fn seen(name: &str, started: u64) -> HostSeen {
        let (boot, group) = (named("boot"), named("group"));
        HostSeen { process: named(name), started, boot, group, began: true }
    }

    /// A line, from the process up: names, starts, and whether the process before may have been taken in.
    fn line(processes: &[(&str, u64, bool)]) -> Lineage {
        let (host, above) = processes.split_first().expect("a process");
        let forebear = |(name, started, adopts): &(&str, u64, bool)| Forebear {
            process: named(name),
            started: *started,
            adopts: *adopts,
        };
        Lineage { host: seen(host.0, host.1), above: above.iter().map(forebear).collect(), from_outside: false }
    }

    #[test]
    fn only_who_comes_of_no_call_begins_a_session() {
        let known = [seen("host", 100), seen("later host", 300)];
        let accepted = |processes: &[(&str, u64, bool)]| check_host(&known, &line(processes)).is_ok();
        let init = ("init", 1, true);
        // The same host again, one from the same shell, one that is older than any call.
        assert!(accepted(&[("host", 100, false), ("shell", 50, false), init]));
        assert!(accepted(&[("second", 400, false), ("shell", 50, false), init]));
        assert!(accepted(&[("old", 90, false), init]));
        // A shell that was opened later, in a terminal that was there before.
        assert!(accepted(&[("second", 400, false), ("shell", 390, false), ("terminal", 20, false), init]));
        // Beneath a host, however deep.
        assert!(!accepted(&[("child", 400, false), ("host", 100, false), ("shell", 50, false), init]));
        assert!(!accepted(&[
            ("child", 400, false),
            ("sh", 399, false),
            ("later host", 300, false),
            ("shell", 50, false)
        ]));
        // Orphans, and what orphans start.
        assert!(!accepted(&[("orphan", 400, false), init]));
        assert!(!accepted(&[("child", 410, false), ("orphan", 400, false), init]));
        // Nobody knows where it comes from.
        assert!(!accepted(&[("second", 400, false)]));
        let outside = Lineage { from_outside: true, ..line(&[("second", 400, false), ("shell", 390, false)]) };
        assert!(check_host(&known, &outside).is_ok(), "from outside of the container");
        // Started by a service manager, in a group of its own.
        let mut apart = line(&[("second", 400, false), ("terminal", 390, false), init]);
        apart.host.group = named("another");
        assert!(check_host(&known, &apart).is_ok());
        // Nobody told of anything since the machine started.
        let mut after_boot = line(&[("orphan", 400, false), init]);
        after_boot.host.boot = named("another");
        assert!(check_host(&known, &after_boot).is_ok());
        assert!(check_host(&[], &line(&[("first", 400, false), init])).is_ok());
    }
}
