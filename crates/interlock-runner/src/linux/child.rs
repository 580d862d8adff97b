//! The two processes inside: the first of the namespace, which sets it up and reaps, and the one that becomes the command.
//!
//! The first one is outside the rules that hold the command and cannot be traced: what it says about the command's end is
//! a fact. Nothing here allocates or takes a lock; see `sys::fork`.

use std::ffi::{CString, c_int};
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};

use rustix::event::{PollFd, PollFlags};
use rustix::fs::Mode;
use rustix::process::{DumpableBehavior, Pid, Signal, WaitOptions};

use super::session::{Joined, SHARED};
use super::steps::{Ground, Step, await_rules, hand_over, tell, told};
use super::sys::{self, Image, Instruction, Signals};

/// Everything that the processes inside need, prepared before they exist.
pub(crate) struct Cell {
    pub(crate) session: Option<Joined>,
    pub(crate) hold: Option<Hold>,
    pub(crate) image: Image,
    pub(crate) cwd: CString,
    pub(crate) mask: Signals,
    /// Locks on layers of caches, which nobody else may use before the namespaces are gone. In order.
    pub(crate) layers: Vec<RawFd>,
    /// Whether it is held without namespaces.
    pub(crate) is_narrow: bool,
    /// The process whose end ends a command that is held without namespaces.
    pub(crate) owner: Option<OwnedFd>,
}

/// What holds the command.
pub(crate) struct Hold {
    pub(crate) steps: Vec<Step>,
    pub(crate) slots: Vec<Option<OwnedFd>>,
    pub(crate) ruleset: OwnedFd,
    pub(crate) filter: Vec<Instruction>,
}

/// Where the way to the command ended too early.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stage {
    Step(u32),
    Session,
    Directory,
    Capabilities,
    Landlock,
    Descriptors,
    Filter,
    Fork,
    Program,
}

impl Stage {
    fn code(self) -> (u8, u32) {
        match self {
            Stage::Step(at) => (b's', at),
            Stage::Session => (b'n', 0),
            Stage::Directory => (b'd', 0),
            Stage::Capabilities => (b'c', 0),
            Stage::Landlock => (b'l', 0),
            Stage::Descriptors => (b'r', 0),
            Stage::Filter => (b'f', 0),
            Stage::Fork => (b'k', 0),
            Stage::Program => (b'p', 0),
        }
    }

    /// Reads what `report` wrote.
    pub(crate) fn parse(bytes: &[u8; REPORT_LEN]) -> Option<(Stage, io::Error)> {
        let [kind, a, b, c, d, e, f, g, h] = *bytes;
        let at = u32::from_le_bytes([a, b, c, d]);
        let stages = [
            Stage::Session,
            Stage::Directory,
            Stage::Capabilities,
            Stage::Landlock,
            Stage::Descriptors,
            Stage::Filter,
            Stage::Fork,
            Stage::Program,
        ];
        let stage = if kind == b's' { Stage::Step(at) } else { stages.into_iter().find(|one| one.code().0 == kind)? };
        Some((stage, io::Error::from_raw_os_error(i32::from_le_bytes([e, f, g, h]))))
    }
}

/// How long a report is.
pub(crate) const REPORT_LEN: usize = 9;

fn report(to: BorrowedFd<'_>, stage: Stage, error: &io::Error) -> c_int {
    let (kind, at) = stage.code();
    let ([a, b, c, d], [e, f, g, h]) = (at.to_le_bytes(), error.raw_os_error().unwrap_or(0).to_le_bytes());
    let _ = rustix::io::write(to, &[kind, a, b, c, d, e, f, g, h]);
    126
}

/// The process between the supervisor and the first one of a call in a session: joins the namespaces, which only the
/// next process is then in, and ends after it, when its view is gone. Only then others may use the layers of its caches.
pub(crate) fn join(cell: &mut Cell, hold: &mut Hold, channel: BorrowedFd<'_>, faults: BorrowedFd<'_>) -> c_int {
    let Some(session) = &cell.session else { return 126 };
    if let Err(error) = rustix::thread::move_into_thread_name_spaces(session.holder.as_fd(), SHARED) {
        return report(faults, Stage::Session, &error.into());
    }
    let first = match sys::fork(libc::CLONE_NEWNS, || first(cell, hold, channel, faults)) {
        Ok(first) => first,
        Err(error) => return report(faults, Stage::Session, &error),
    };
    sys::close_all_but(&cell.layers);
    while let Err(rustix::io::Errno::INTR) = rustix::process::waitpid(Some(first), WaitOptions::empty()) {}
    0
}

/// The first process of the namespaces: sets them up, starts the command, reaps, tells how it ended.
pub(crate) fn first(cell: &mut Cell, hold: &mut Hold, channel: BorrowedFd<'_>, faults: BorrowedFd<'_>) -> c_int {
    // Whatever happens to the supervisor, this process ends with it, and with this process all others. In a session, and
    // without namespaces, others live on, so there this process has to end them: it adopts what its command leaves, and
    // looks at the channel.
    let is_among_others = cell.session.is_some() || cell.is_narrow;
    let bound_to_parent = match is_among_others {
        false => rustix::process::set_parent_process_death_signal(Some(Signal::KILL)),
        true => rustix::process::set_child_subreaper(Some(rustix::process::getpid())),
    };
    if let Err(error) = bound_to_parent {
        return report(faults, Stage::Fork, &error.into());
    }
    if is_alone(channel) {
        return 126;
    }
    let group = match cell.is_narrow.then(stand_apart).transpose() {
        Ok(group) => group,
        Err(error) => return report(faults, Stage::Fork, &error),
    };
    let umask = rustix::process::umask(Mode::empty());
    let mut ground = Ground { slots: &mut hold.slots, ruleset: hold.ruleset.as_fd(), channel };
    for (at, step) in hold.steps.iter().enumerate() {
        if let Err(error) = step.carry_out(&mut ground) {
            return report(faults, Stage::Step(u32::try_from(at).unwrap_or(u32::MAX)), &error);
        }
    }
    if let Err(error) = rustix::process::chdir(cell.cwd.as_c_str()) {
        return report(faults, Stage::Directory, &error.into());
    }
    if let Err(error) = sys::drop_capabilities() {
        return report(faults, Stage::Capabilities, &error);
    }
    // Nobody inside may trace this process, read its memory or take its descriptors.
    if let Err(error) = rustix::process::set_dumpable_behavior(DumpableBehavior::NotDumpable) {
        return report(faults, Stage::Capabilities, &error.into());
    }
    // Ends of processes are read from a descriptor, so that the end of the supervisor is seen as well.
    let ends = Signals::of(&[libc::SIGCHLD]);
    let ends = match ends.block().and_then(|_| ends.descriptor()) {
        Ok(ends) => ends,
        Err(error) => return report(faults, Stage::Fork, &error),
    };
    let command = sys::fork(0, || {
        rustix::process::umask(umask);
        if let Some(Err(error)) = group.map(|group| rustix::process::setpgid(None, Some(group))) {
            return report(faults, Stage::Fork, &error.into());
        }
        become_held(cell, hold, channel, faults)
    });
    let command = match command {
        Ok(command) => command,
        Err(error) => return report(faults, Stage::Fork, &error),
    };
    let mut kept = [channel.as_raw_fd(), ends.as_raw_fd()];
    kept.sort_unstable();
    sys::close_all_but(&kept);
    let ended = reap(command, channel, ends.as_fd());
    // Everything ends before anybody is told that the command has: what is on disk then stays as it is.
    match is_among_others {
        true if cell.is_narrow => {
            // From now on nobody starts a process: the supervisor refuses it, or is gone.
            let _ = tell(channel, told::ENDING, 0);
            end_adopted(usize::MAX);
        }
        true => end_adopted(ROUNDS),
        false => end_others(),
    }
    match ended {
        Some(status) => {
            let _ = tell(channel, told::ENDED, status);
            0
        }
        None => 126,
    }
}

/// Takes this process out of the group of whoever started the runner: what ends the group must not end who ends the rest.
/// Returns the group. What is left can only be found where the kernel lists it.
fn stand_apart() -> io::Result<Pid> {
    let group = rustix::process::getpgrp();
    rustix::process::setpgid(None, None)?;
    rustix::fs::open(CHILDREN, rustix::fs::OFlags::RDONLY, Mode::empty())?;
    Ok(group)
}

/// Where the kernel lists children.
const CHILDREN: &std::ffi::CStr = c"/proc/thread-self/children";
/// How often what is left in a session is looked for.
const ROUNDS: usize = 2_000;

/// Whether the supervisor is gone already.
fn is_alone(channel: BorrowedFd<'_>) -> bool {
    let mut polled = [PollFd::new(&channel, PollFlags::empty())];
    let now = rustix::event::Timespec { tv_sec: 0, tv_nsec: 0 };
    let result = rustix::event::poll(&mut polled, Some(&now));
    result.is_err() || polled.iter().any(|one| one.revents().contains(PollFlags::HUP))
}

/// Waits for everything that ends in here, until the command has, and returns how; nothing if nobody wants to know.
fn reap(command: Pid, channel: BorrowedFd<'_>, ends: BorrowedFd<'_>) -> Option<c_int> {
    loop {
        loop {
            let (pid, status) = match rustix::process::wait(WaitOptions::UNTRACED | WaitOptions::NOHANG) {
                Ok(Some(waited)) => waited,
                Ok(None) => break,
                Err(rustix::io::Errno::INTR) => continue,
                Err(_) => return None,
            };
            if pid != command {
                continue;
            }
            match status.stopping_signal() {
                Some(signal) => tell(channel, told::STOPPED, signal).ok()?,
                None => return Some(status.as_raw()),
            }
        }
        let mut polled = [PollFd::new(&ends, PollFlags::IN), PollFd::new(&channel, PollFlags::empty())];
        let _ = rustix::event::poll(&mut polled, None);
        let [_, is_over] = polled.map(|one| one.revents().contains(PollFlags::HUP));
        if is_over {
            return None;
        }
        while sys::next_signal(ends).is_some() {}
    }
}

/// Ends every other process of the namespace. The kernel would do it when this one ends, but tells nobody when.
fn end_others() {
    if sys::signal_all(libc::SIGKILL).is_ok() {
        while !matches!(rustix::process::wait(WaitOptions::empty()), Err(rustix::io::Errno::CHILD)) {}
    }
}

/// Ends what the command has left, where others live on. In a session what forks faster than it is ended ends with the
/// session.
fn end_adopted(rounds: usize) {
    for _ in 0..rounds {
        let mut bytes = [0; 4096];
        let count = match rustix::fs::open(CHILDREN, rustix::fs::OFlags::RDONLY, Mode::empty()) {
            Ok(children) => rustix::io::read(&children, &mut bytes).unwrap_or(0),
            Err(_) => 0,
        };
        // A number that was cut off would be somebody else's: only what a space follows counts.
        let whole = bytes.get(..count).unwrap_or(&[]);
        let end = whole.iter().rposition(|byte| *byte == b' ').unwrap_or(0);
        for word in whole.get(..end).unwrap_or(&[]).split(|byte| *byte == b' ') {
            let number = word.iter().try_fold(0i32, |number, digit| {
                let digit = digit.checked_sub(b'0').filter(|digit| *digit <= 9)?;
                number.checked_mul(10)?.checked_add(i32::from(digit))
            });
            if let Some(child) = number.and_then(Pid::from_raw) {
                let _ = sys::send_signal(child, libc::SIGKILL);
            }
        }
        loop {
            match rustix::process::wait(WaitOptions::NOHANG) {
                Ok(Some(_)) | Err(rustix::io::Errno::INTR) => {}
                Ok(None) => break,
                Err(_) => return,
            }
        }
        let moment = rustix::thread::Timespec { tv_sec: 0, tv_nsec: 500_000 };
        let _ = rustix::thread::nanosleep(&moment);
    }
}

/// Puts on what holds the command, in the only order that works, and becomes it.
fn become_held(cell: &Cell, hold: &Hold, channel: BorrowedFd<'_>, faults: BorrowedFd<'_>) -> c_int {
    cell.mask.restore();
    sys::usual_effect(libc::SIGPIPE);
    if let Err(error) = rustix::thread::set_no_new_privs(true) {
        return report(faults, Stage::Capabilities, &error.into());
    }
    if let Err(error) = await_rules(channel).and_then(|()| sys::landlock_restrict(hold.ruleset.as_fd())) {
        return report(faults, Stage::Landlock, &error);
    }
    if let Err(error) = sys::close_on_exec_from(3) {
        return report(faults, Stage::Descriptors, &error);
    }
    let listener = match sys::seccomp(&hold.filter) {
        Ok(listener) => listener,
        Err(error) => return report(faults, Stage::Filter, &error),
    };
    if let Err(error) = hand_over(channel, told::STARTS, listener.as_fd()) {
        return report(faults, Stage::Filter, &error);
    }
    drop(listener);
    report(faults, Stage::Program, &cell.image.execute())
}

/// Becomes a command that nothing holds.
pub(crate) fn become_free(cell: &Cell, channel: BorrowedFd<'_>, faults: BorrowedFd<'_>) -> c_int {
    cell.mask.restore();
    sys::usual_effect(libc::SIGPIPE);
    if let Err(error) = rustix::process::chdir(cell.cwd.as_c_str()) {
        return report(faults, Stage::Directory, &error.into());
    }
    if let Err(error) = tell(channel, told::STARTS, 0) {
        return report(faults, Stage::Fork, &error);
    }
    report(faults, Stage::Program, &cell.image.execute())
}
