//! Calls that wait for an answer: connections, because a read-only mount does not stop them; what changes files, for
//! `deeds.rs`; and, without namespaces, new processes.
//!
//! A connection is made from here, on a copy of the socket: what was looked at is what is connected, whatever the
//! command does to its memory or its descriptors meanwhile. By path only where the command may write; sockets of a
//! network, and those without a path, belong to the command's own network namespace.

use std::fs;
use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd, RawFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

use rustix::event::{PollFd, PollFlags};
use rustix::fs::{Mode, OFlags, ResolveFlags};
use rustix::process::{Pid, PidfdFlags, PidfdGetfdFlags};

use super::deeds::{Answered, Deeds};
use super::field::Field;
use super::filter::is_fork;
use super::found::open_again;
use super::sys::{self, Answer, Notification, OnExec};
use crate::Refusal;
use crate::start::NAMED_MAX;

/// The longest address that the kernel takes.
const ADDRESS_MAX: usize = 128;
/// The longest path that is written down.
const NOTED_LEN_MAX: usize = 1024;
/// How many calls may wait for their other side at once.
const WAITING_MAX: usize = 64;

/// What was refused, each once.
pub(crate) type Refusals = Arc<Mutex<Vec<Refusal>>>;

/// Answers calls that wait, until nobody is left who could make one.
pub(crate) fn attend(listener: OwnedFd, field: Field, refusals: Refusals, is_ending: Arc<AtomicBool>) {
    let deeds = Deeds::new(field, refusals);
    let desk = Arc::new(Desk { listener, deeds, is_ending, waiting: AtomicUsize::new(0) });
    // A thread of its own; without one, calls wait until the command ends, which refuses them.
    let _ = thread::Builder::new().name("calls".to_owned()).spawn(move || {
        if !desk.is_prepared() {
            return;
        }
        loop {
            let mut polled = [PollFd::new(&desk.listener, PollFlags::IN)];
            match rustix::event::poll(&mut polled, None) {
                Ok(_) if polled.iter().any(|one| one.revents().contains(PollFlags::IN)) => {}
                Err(rustix::io::Errno::INTR) => continue,
                _ => return,
            }
            match sys::next_notification(desk.listener.as_fd()) {
                Ok(Some(call)) => Desk::consider(&desk, &call),
                Ok(None) => {}
                Err(_) => return,
            }
        }
    });
}

struct Desk {
    listener: OwnedFd,
    deeds: Deeds,
    /// Set when no process may be started any more.
    is_ending: Arc<AtomicBool>,
    waiting: AtomicUsize,
}

/// What is connected to what.
struct Wish {
    socket: OwnedFd,
    address: Vec<u8>,
    /// Keeps the place that the address names.
    place: Option<OwnedFd>,
}

impl Wish {
    fn connect(self) -> io::Result<()> {
        let result = sys::connect(self.socket.as_fd(), &self.address);
        drop(self.place);
        result
    }
}

impl Desk {
    /// What is done from here is done with the rights of a held command: without capabilities, and with modes as asked.
    fn is_prepared(&self) -> bool {
        sys::take_turns(self.listener.as_fd());
        if self.deeds.field.by_hand.is_none() {
            return true;
        }
        let has_own_mask = sys::unshare_mask().is_ok();
        if has_own_mask {
            rustix::process::umask(Mode::empty());
        }
        has_own_mask && sys::drop_capabilities().is_ok()
    }

    fn consider(desk: &Arc<Desk>, call: &Notification) {
        let number = libc::c_long::from(call.data.nr);
        match number {
            libc::SYS_connect => Desk::connect(desk, call),
            _ if is_fork(number) => {
                let is_ending = desk.is_ending.load(Ordering::Acquire);
                let answer = if is_ending { Answer::Error(libc::EAGAIN) } else { Answer::Continue };
                sys::answer(desk.listener.as_fd(), call.id, answer);
            }
            _ => Desk::change(desk, call),
        }
    }

    /// What changes files.
    fn change(desk: &Arc<Desk>, call: &Notification) {
        let (id, listener) = (call.id, desk.listener.as_fd());
        let Some(task) = i32::try_from(call.pid).ok().and_then(Pid::from_raw) else {
            return sys::answer(listener, id, Answer::Error(libc::ESRCH));
        };
        match desk.deeds.consider(task, &call.data, || sys::still_waits(listener, id)) {
            Answered::Continue => sys::answer(listener, id, Answer::Continue),
            Answered::Done => sys::answer(listener, id, Answer::Value(0)),
            Answered::Fails(number) => sys::answer(listener, id, Answer::Error(number)),
            Answered::Opened(opened, on_exec) => desk.hand_out(id, Ok(opened), on_exec),
            Answered::Waits { at, flags } => {
                let on_exec = if flags.contains(OFlags::CLOEXEC) { OnExec::Closes } else { OnExec::Stays };
                let theirs = Arc::clone(desk);
                Desk::apart(desk, id, move || theirs.hand_out(id, open_again(at.as_fd(), flags), on_exec));
            }
        }
    }

    fn hand_out(&self, id: u64, opened: io::Result<OwnedFd>, on_exec: OnExec) {
        let handed = opened.and_then(|opened| sys::answer_with(self.listener.as_fd(), id, opened.as_fd(), on_exec));
        if let Err(error) = handed {
            self.answer(id, &Err(error));
        }
    }

    /// Whoever waits for the other side must not keep others waiting.
    fn apart(desk: &Arc<Desk>, id: u64, wait: impl FnOnce() + Send + 'static) {
        let theirs = Arc::clone(desk);
        let may = desk.waiting.fetch_add(1, Ordering::AcqRel) < WAITING_MAX;
        let spawned = may.then(|| {
            thread::Builder::new().spawn(move || {
                wait();
                theirs.waiting.fetch_sub(1, Ordering::AcqRel);
            })
        });
        if spawned.is_none_or(|spawned| spawned.is_err()) {
            desk.waiting.fetch_sub(1, Ordering::AcqRel);
            desk.answer(id, &Err(io::Error::from_raw_os_error(libc::EAGAIN)));
        }
    }

    fn connect(desk: &Arc<Desk>, call: &Notification) {
        let id = call.id;
        let wish = match desk.read(call) {
            Ok(wish) => wish,
            Err(error) => return desk.answer(id, &Err(error)),
        };
        let blocks = rustix::fs::fcntl_getfl(&wish.socket).is_ok_and(|flags| !flags.contains(OFlags::NONBLOCK));
        if !blocks {
            return desk.answer(id, &wish.connect());
        }
        let theirs = Arc::clone(desk);
        Desk::apart(desk, id, move || theirs.answer(id, &wish.connect()));
    }

    fn answer(&self, id: u64, result: &io::Result<()>) {
        let answer = match result {
            Ok(()) => Answer::Value(0),
            Err(error) => Answer::Error(error.raw_os_error().unwrap_or(libc::EACCES)),
        };
        sys::answer(self.listener.as_fd(), id, answer);
    }

    /// Reads once what the call asks for. Later changes of the command's memory change nothing.
    fn read(&self, call: &Notification) -> io::Result<Wish> {
        let refused = || io::Error::from_raw_os_error(libc::EACCES);
        let [socket, address, length, ..] = call.data.args;
        let thread = i32::try_from(call.pid).ok().and_then(Pid::from_raw).ok_or_else(refused)?;
        // The kernel reads the lower half of both numbers.
        let length = usize::try_from(length & 0xFFFF_FFFF).unwrap_or(usize::MAX);
        if !(2..=ADDRESS_MAX).contains(&length) {
            return Err(io::Error::from_raw_os_error(libc::EINVAL));
        }
        let mut bytes = vec![0; length];
        if sys::read_memory(thread, address, &mut bytes)? != length {
            return Err(io::Error::from_raw_os_error(libc::EFAULT));
        }
        let process = rustix::process::pidfd_open(process_of(thread)?, PidfdFlags::empty())?;
        let number = RawFd::try_from(socket & 0xFFFF_FFFF).map_err(|_| io::Error::from_raw_os_error(libc::EBADF))?;
        let socket = rustix::process::pidfd_getfd(&process, number, PidfdGetfdFlags::empty())?;
        // The number of the process may have gone to another one while it was looked at.
        if !sys::still_waits(self.listener.as_fd(), call.id) {
            return Err(refused());
        }
        let family = bytes.first_chunk().map(|pair| u16::from_ne_bytes(*pair)).map(i32::from);
        let is_by_path = family == Some(libc::AF_UNIX) && bytes.get(2).is_some_and(|byte| *byte != 0);
        if !is_by_path {
            return Ok(Wish { socket, address: bytes, place: None });
        }
        let name = bytes.get(2..).unwrap_or(&[]).split(|byte| *byte == 0).next().unwrap_or(&[]);
        let place = self.place(thread, name)?;
        if !sys::still_waits(self.listener.as_fd(), call.id) {
            return Err(refused());
        }
        // By its descriptor: between looking and connecting nobody can put another socket there.
        let mut address = libc::AF_UNIX.to_ne_bytes().first_chunk::<2>().map_or(Vec::new(), |pair| pair.to_vec());
        address.extend_from_slice(format!("/proc/self/fd/{}\0", place.as_raw_fd()).as_bytes());
        Ok(Wish { socket, address, place: Some(place) })
    }

    /// The socket at a path as the command sees it, if it lies where the command may write.
    fn place(&self, thread: Pid, name: &[u8]) -> io::Result<OwnedFd> {
        let of = |what: &str| format!("/proc/{}/{what}", thread.as_raw_nonzero());
        let mut path = PathBuf::from(std::ffi::OsString::from_vec(name.to_vec()));
        if path.is_relative() {
            path = fs::read_link(of("cwd"))?.join(path);
        }
        let flags = OFlags::PATH | OFlags::CLOEXEC;
        let root = rustix::fs::open(of("root"), flags | OFlags::DIRECTORY, Mode::empty())?;
        let resolve = ResolveFlags::IN_ROOT | ResolveFlags::NO_MAGICLINKS;
        let place = rustix::fs::openat2(&root, &path, flags, Mode::empty(), resolve)?;
        let really = fs::read_link(format!("/proc/self/fd/{}", place.as_raw_fd()))?;
        if self.deeds.field.write.iter().any(|allowed| really.starts_with(allowed)) {
            return Ok(place);
        }
        note(&self.deeds.refusals, "connect", &really);
        Err(io::Error::from_raw_os_error(libc::EACCES))
    }
}

/// Writes down what was refused, once.
pub(crate) fn note(refusals: &Refusals, attempt: &'static str, path: &Path) {
    let target: String = String::from_utf8_lossy(path.as_os_str().as_bytes()).chars().take(NOTED_LEN_MAX).collect();
    let refusal = Refusal { attempt, target };
    let mut refusals = refusals.lock().unwrap_or_else(PoisonError::into_inner);
    if refusals.len() < NAMED_MAX && !refusals.contains(&refusal) {
        refusals.push(refusal);
    }
}

/// The process that a thread belongs to.
fn process_of(thread: Pid) -> io::Result<Pid> {
    let status = fs::read_to_string(format!("/proc/{}/status", thread.as_raw_nonzero()))?;
    let line = status.lines().find_map(|line| line.strip_prefix("Tgid:"));
    let number = line.and_then(|text| text.trim().parse().ok()).and_then(Pid::from_raw);
    number.ok_or_else(|| io::Error::from_raw_os_error(libc::ESRCH))
}
