//! Connections: a read-only mount does not stop them, so the kernel asks here before each one.
//!
//! The connection is made from here, on a copy of the socket: what was looked at is what is connected, whatever the
//! command does to its memory or its descriptors meanwhile. By path only where the command may write; sockets of a
//! network, and those without a path, belong to the command's own network namespace.

use std::fs;
use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd, RawFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

use rustix::event::{PollFd, PollFlags};
use rustix::fs::{Mode, OFlags, ResolveFlags};
use rustix::process::{Pid, PidfdFlags, PidfdGetfdFlags};

use super::sys::{self, Answer, Notification};
use crate::Refusal;
use crate::start::NAMED_MAX;

/// The longest address that the kernel takes.
const ADDRESS_MAX: usize = 128;
/// How many connections may wait for their other side at once.
const WAITING_MAX: usize = 64;

/// What was refused, each once.
pub(crate) type Refusals = Arc<Mutex<Vec<Refusal>>>;

/// Answers calls that wait, until nobody is left who could make one.
pub(crate) fn attend(listener: OwnedFd, sockets: Vec<PathBuf>, refusals: Refusals) {
    let desk = Arc::new(Desk { listener, sockets, refusals, waiting: AtomicUsize::new(0) });
    // A thread of its own; without one, calls wait until the command ends, which refuses them.
    let _ = thread::Builder::new().name("connections".to_owned()).spawn(move || {
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
    sockets: Vec<PathBuf>,
    refusals: Refusals,
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
    fn consider(desk: &Arc<Desk>, call: &Notification) {
        let id = call.id;
        let wish = match desk.read(call) {
            Ok(wish) => wish,
            Err(error) => return desk.answer(id, &Err(error)),
        };
        let blocks = rustix::fs::fcntl_getfl(&wish.socket).is_ok_and(|flags| !flags.contains(OFlags::NONBLOCK));
        if !blocks {
            return desk.answer(id, &wish.connect());
        }
        // Whoever waits for the other side must not keep others waiting.
        if desk.waiting.fetch_add(1, Ordering::AcqRel) >= WAITING_MAX {
            desk.waiting.fetch_sub(1, Ordering::AcqRel);
            return desk.answer(id, &Err(io::Error::from_raw_os_error(libc::EAGAIN)));
        }
        let theirs = Arc::clone(desk);
        let spawned = thread::Builder::new().spawn(move || {
            theirs.answer(id, &wish.connect());
            theirs.waiting.fetch_sub(1, Ordering::AcqRel);
        });
        if spawned.is_err() {
            desk.waiting.fetch_sub(1, Ordering::AcqRel);
            desk.answer(id, &Err(io::Error::from_raw_os_error(libc::EAGAIN)));
        }
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
        if self.sockets.iter().any(|allowed| really.starts_with(allowed)) {
            return Ok(place);
        }
        self.note(&really);
        Err(io::Error::from_raw_os_error(libc::EACCES))
    }

    fn note(&self, path: &Path) {
        let target = String::from_utf8_lossy(path.as_os_str().as_bytes()).into_owned();
        let refusal = Refusal { attempt: "connect", target };
        let mut refusals = self.refusals.lock().unwrap_or_else(PoisonError::into_inner);
        if refusals.len() < NAMED_MAX && !refusals.contains(&refusal) {
            refusals.push(refusal);
        }
    }
}

/// The process that a thread belongs to.
fn process_of(thread: Pid) -> io::Result<Pid> {
    let status = fs::read_to_string(format!("/proc/{}/status", thread.as_raw_nonzero()))?;
    let line = status.lines().find_map(|line| line.strip_prefix("Tgid:"));
    let number = line.and_then(|text| text.trim().parse().ok()).and_then(Pid::from_raw);
    number.ok_or_else(|| io::Error::from_raw_os_error(libc::ESRCH))
}
