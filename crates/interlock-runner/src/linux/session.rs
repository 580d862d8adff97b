//! Sessions: calls that share processes, network and ipc, so that a later one reaches what an earlier one left running in
//! the background.
//!
//! A holder is the first process of the shared namespaces. It does nothing: it may touch no file, and ends with the process
//! that owns the session, and with it everything inside. Each call still has its own view of the file system and its own
//! rules. Which process the holder is, is written down in a directory that no command may reach.

use std::ffi::CStr;
use std::fs;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::path::Path;

use rustix::event::{PollFd, PollFlags};
use rustix::fs::{FlockOperation, Mode, OFlags};
use rustix::process::{Pid, PidfdFlags, WaitOptions};
use rustix::thread::ThreadNameSpaceType;

use super::rules::Rules;
use super::steps::{Ground, Step};
use super::sys;
use crate::{ContainFault, Session};

/// Namespaces that calls share.
pub(crate) const SHARED: ThreadNameSpaceType = ThreadNameSpaceType::USER
    .union(ThreadNameSpaceType::INTER_PROCESS_COMMUNICATION)
    .union(ThreadNameSpaceType::NETWORK)
    .union(ThreadNameSpaceType::PROCESS_ID);

/// The holder of a session, whose namespaces are to be joined.
pub(crate) struct Joined {
    pub(crate) holder: OwnedFd,
}

/// Finds the holder of a session, or starts one.
pub(crate) fn join(session: &Session) -> Result<Joined, ContainFault> {
    join_or_start(session).map_err(ContainFault::of("the namespaces of the session"))
}

fn join_or_start(session: &Session) -> io::Result<Joined> {
    fs::create_dir_all(&session.directory)?;
    let _lock = lock(&session.directory)?;
    if let Some(holder) = holder_of(&session.directory) {
        return Ok(Joined { holder });
    }
    let number = start(session)?;
    let holder = rustix::process::pidfd_open(number, PidfdFlags::empty())?;
    let began = started_at(number).ok_or_else(|| io::Error::from_raw_os_error(libc::ESRCH))?;
    let mut file = fs::File::create(session.directory.join("holder"))?;
    writeln!(file, "{} {began}", number.as_raw_nonzero())?;
    Ok(Joined { holder })
}

/// Ends a session, and every process in it. Nothing happens if there is none.
pub fn end_session(directory: &Path) -> io::Result<()> {
    if !directory.exists() {
        return Ok(());
    }
    let _lock = lock(directory)?;
    if let Some(holder) = holder_of(directory) {
        rustix::process::pidfd_send_signal(&holder, rustix::process::Signal::KILL)?;
        let mut polled = [PollFd::new(&holder, PollFlags::IN)];
        let patience = rustix::event::Timespec { tv_sec: 10, tv_nsec: 0 };
        let _ = rustix::event::poll(&mut polled, Some(&patience));
    }
    match fs::remove_file(directory.join("holder")) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

/// One at a time: two first calls of a session must not start two holders.
fn lock(directory: &Path) -> io::Result<OwnedFd> {
    let flags = OFlags::RDWR | OFlags::CREATE | OFlags::CLOEXEC | OFlags::NOFOLLOW;
    let lock = rustix::fs::open(directory.join("lock"), flags, Mode::from_raw_mode(0o600))?;
    rustix::fs::flock(&lock, FlockOperation::LockExclusive)?;
    Ok(lock)
}

/// The holder that is written down, if it still is that process.
fn holder_of(directory: &Path) -> Option<OwnedFd> {
    let text = fs::read_to_string(directory.join("holder")).ok()?;
    let (number, began) = text.trim().split_once(' ')?;
    let number = Pid::from_raw(number.parse().ok()?)?;
    // First the descriptor, then the look: who has the number now, and began when the holder did, had it before as well.
    let holder = rustix::process::pidfd_open(number, PidfdFlags::empty()).ok()?;
    (started_at(number)? == began.parse::<u64>().ok()?).then_some(holder)
}

/// When a process started, in ticks since the machine did: tells it from a later one of the same number.
fn started_at(pid: Pid) -> Option<u64> {
    let stat = fs::read_to_string(format!("/proc/{}/stat", pid.as_raw_nonzero())).ok()?;
    let mut fields = stat.rsplit(')').next()?.split_whitespace();
    // A process that has ended holds nothing, even if nobody has waited for it.
    let state = fields.next()?;
    if matches!(state, "Z" | "X") {
        return None;
    }
    fields.nth(18)?.parse().ok()
}

/// Starts a holder that is nobody's child, and waits until its namespaces are set up.
fn start(session: &Session) -> io::Result<Pid> {
    let owner = i32::try_from(session.owner).ok().and_then(Pid::from_raw);
    let owner = owner.ok_or_else(|| io::Error::from_raw_os_error(libc::ESRCH))?;
    let owner = rustix::process::pidfd_open(owner, PidfdFlags::empty())?;
    let steps = steps();
    let ruleset = Rules::new(sys::landlock_abi(), false)
        .map_err(|_| io::Error::from_raw_os_error(libc::ENOSYS))?
        .into_descriptor();
    let (ready, theirs) = rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC)?;
    let between = sys::fork(0, || {
        let flags =
            libc::CLONE_NEWUSER | libc::CLONE_NEWNS | libc::CLONE_NEWPID | libc::CLONE_NEWNET | libc::CLONE_NEWIPC;
        let holder = sys::fork(flags, || hold(&steps, ruleset.as_fd(), owner.as_fd(), theirs.as_fd()));
        let number = holder.map_or(0, |pid| pid.as_raw_nonzero().get());
        i32::from(rustix::io::write(&theirs, &number.to_le_bytes()).is_err())
    })?;
    drop(theirs);
    let _ = rustix::process::waitpid(Some(between), WaitOptions::empty());
    // The number from the one process, and a word from the other: in either order.
    let mut said = Vec::new();
    fs::File::from(ready).take(64).read_to_end(&mut said)?;
    // The highest byte of a number is zero.
    let number = match said.as_slice() {
        [a, b, c, 0, READY] | [READY, a, b, c, 0] => Some(i32::from_le_bytes([*a, *b, *c, 0])),
        _ => None,
    };
    number.and_then(Pid::from_raw).ok_or_else(|| io::Error::other("the holder could not set up its namespaces"))
}

/// The holder's word that it is ready.
const READY: u8 = 0xFF;

fn steps() -> Vec<Step> {
    let (user, group) = (rustix::process::geteuid().as_raw(), rustix::process::getegid().as_raw());
    let write = |path: &CStr, text: String| Step::Write { path: path.to_owned(), text: text.into_bytes() };
    vec![
        write(c"/proc/self/setgroups", "deny".to_owned()),
        write(c"/proc/self/uid_map", format!("{user} {user} 1")),
        write(c"/proc/self/gid_map", format!("{group} {group} 1")),
        Step::Loopback,
        Step::SealAll,
    ]
}

/// What the holder does. It neither allocates nor takes a lock; see `sys::fork`.
fn hold(steps: &[Step], ruleset: BorrowedFd<'_>, owner: BorrowedFd<'_>, ready: BorrowedFd<'_>) -> i32 {
    let mut ground = Ground { slots: &mut [], ruleset, channel: ready };
    if steps.iter().any(|step| step.carry_out(&mut ground).is_err()) {
        return 1;
    }
    // Nobody inside can trace it: it is held to rules that are not theirs, and may itself touch no file.
    let held = rustix::process::setsid().is_ok()
        && rustix::process::chdir(c"/").is_ok()
        && sys::drop_capabilities().is_ok()
        && rustix::thread::set_no_new_privs(true).is_ok()
        && sys::landlock_restrict(ruleset).is_ok();
    if !held || rustix::io::write(ready, &[READY]).is_err() {
        return 1;
    }
    sys::reap_by_itself();
    sys::close_all_but(&[owner.as_raw_fd()]);
    loop {
        let mut polled = [PollFd::new(&owner, PollFlags::IN)];
        match rustix::event::poll(&mut polled, None) {
            Ok(_) => return 0,
            Err(rustix::io::Errno::INTR) => {}
            Err(_) => return 1,
        }
    }
}
