//! System calls that have no safe function: the one place where `unsafe` stands.
//!
//! Each function does one thing and has a signature that cannot be misused from safe code; what a call means is decided
//! elsewhere. Nothing here allocates after a fork.

#![expect(unsafe_code, reason = "clone, exec, seccomp, Landlock and mount_setattr have no safe functions")]

use std::ffi::{CString, c_char, c_int, c_long, c_ulong};
use std::io;
use std::mem;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::ptr;

use rustix::process::Pid;

/// One instruction of a filter.
pub(crate) type Instruction = libc::sock_filter;

/// What the kernel tells about a call that waits for an answer.
pub(crate) type Notification = libc::seccomp_notif;

fn checked(result: c_long) -> io::Result<c_long> {
    if result == -1 { Err(io::Error::last_os_error()) } else { Ok(result) }
}

fn owned(result: c_long) -> io::Result<OwnedFd> {
    let raw = RawFd::try_from(checked(result)?).map_err(|_| io::Error::from_raw_os_error(libc::EBADF))?;
    // Safety: the kernel has just handed this descriptor out, and nobody else knows it.
    Ok(unsafe { OwnedFd::from_raw_fd(raw) })
}

/// Starts a process with new namespaces (`flags` of clone), which runs `body` and ends with its value.
///
/// Invariant: `body` neither allocates nor takes a lock. Other threads of this process may have held one, and in the new
/// process nobody would ever release it.
pub(crate) fn fork(flags: c_int, body: impl FnOnce() -> c_int) -> io::Result<Pid> {
    let flags = c_long::from(flags) | c_long::from(libc::SIGCHLD);
    // Safety: without CLONE_VM this is a fork: the new process has its own copy of the memory and of this stack.
    let pid = checked(unsafe { libc::syscall(libc::SYS_clone, flags, 0, 0, 0, 0) })?;
    if pid == 0 {
        let code = body();
        // Safety: ends this process at once; no destructor of the process it was copied from runs.
        unsafe { libc::_exit(code) }
    }
    let pid = i32::try_from(pid).ok().and_then(Pid::from_raw);
    pid.ok_or_else(|| io::Error::from_raw_os_error(libc::ESRCH))
}

/// A program with its arguments and variables, in the form that the kernel takes.
pub(crate) struct Image {
    candidates: Vec<CString>,
    _texts: Vec<CString>,
    arguments: Vec<*const c_char>,
    variables: Vec<*const c_char>,
}

impl Image {
    /// `candidates` are the files to try, in this order.
    pub(crate) fn new(candidates: Vec<CString>, arguments: Vec<CString>, variables: Vec<CString>) -> Image {
        let pointers = |texts: &[CString]| texts.iter().map(|text| text.as_ptr()).chain([ptr::null()]).collect();
        let (argument_pointers, variable_pointers) = (pointers(&arguments), pointers(&variables));
        let mut texts = arguments;
        texts.extend(variables);
        Image { candidates, _texts: texts, arguments: argument_pointers, variables: variable_pointers }
    }

    /// Becomes the program. Returns only if no candidate could be started, with the error that says most.
    pub(crate) fn execute(&self) -> io::Error {
        let mut said = io::Error::from_raw_os_error(libc::ENOENT);
        for file in &self.candidates {
            // Safety: all three are texts and lists that end in NUL, and live as long as `self`.
            unsafe { libc::execve(file.as_ptr(), self.arguments.as_ptr(), self.variables.as_ptr()) };
            let error = io::Error::last_os_error();
            match error.raw_os_error() {
                Some(libc::ENOENT | libc::ENOTDIR) => {}
                // A file that is there says more than a directory of `PATH` that cannot be searched.
                Some(libc::EACCES) if rustix::fs::stat(file.as_c_str()).is_ok() => said = error,
                Some(libc::EACCES) if self.candidates.len() > 1 => {}
                _ => return error,
            }
        }
        said
    }
}

/// Sets and clears attributes of a mount, or of all mounts beneath it.
pub(crate) fn mount_setattr(mount: BorrowedFd<'_>, recursive: bool, set: u64, private: bool) -> io::Result<()> {
    let attributes = libc::mount_attr {
        attr_set: set,
        attr_clr: 0,
        propagation: if private { libc::MS_PRIVATE } else { 0 },
        userns_fd: 0,
    };
    let flags = libc::AT_EMPTY_PATH | if recursive { libc::AT_RECURSIVE } else { 0 };
    // Safety: the path is an empty text, and the struct is as long as we say.
    let result = unsafe {
        libc::syscall(
            libc::SYS_mount_setattr,
            mount.as_raw_fd(),
            c"".as_ptr(),
            flags,
            ptr::from_ref(&attributes),
            mem::size_of::<libc::mount_attr>(),
        )
    };
    checked(result).map(drop)
}

#[repr(C)]
struct RulesetAttributes {
    handled_access_fs: u64,
    handled_access_net: u64,
    scoped: u64,
}

#[repr(C, packed)]
struct PathBeneath {
    allowed_access: u64,
    parent_fd: i32,
}

/// The version of Landlock's interface; zero without it.
pub(crate) fn landlock_abi() -> u32 {
    const VERSION: c_ulong = 1;
    // Safety: with this flag the kernel reads no memory.
    let version = unsafe { libc::syscall(libc::SYS_landlock_create_ruleset, ptr::null::<u8>(), 0, VERSION) };
    u32::try_from(version).unwrap_or(0)
}

/// An empty set of rules that governs these accesses and scopes.
pub(crate) fn landlock_ruleset(handled_access_fs: u64, scoped: u64) -> io::Result<OwnedFd> {
    let attributes = RulesetAttributes { handled_access_fs, handled_access_net: 0, scoped };
    // Older kernels know a shorter struct, and refuse a longer one unless the rest is zero, which it is there.
    let length = mem::size_of::<RulesetAttributes>();
    // Safety: the struct is as long as we say.
    owned(unsafe { libc::syscall(libc::SYS_landlock_create_ruleset, ptr::from_ref(&attributes), length, 0) })
}

/// Allows `access` to `place` and whatever is beneath it.
pub(crate) fn landlock_allow(ruleset: BorrowedFd<'_>, place: BorrowedFd<'_>, access: u64) -> io::Result<()> {
    const PATH_BENEATH: c_int = 1;
    let rule = PathBeneath { allowed_access: access, parent_fd: place.as_raw_fd() };
    // Safety: the kernel reads the struct of this kind of rule.
    let result = unsafe {
        libc::syscall(libc::SYS_landlock_add_rule, ruleset.as_raw_fd(), PATH_BENEATH, ptr::from_ref(&rule), 0)
    };
    checked(result).map(drop)
}

/// Holds this thread, and whatever it starts, to the rules.
pub(crate) fn landlock_restrict(ruleset: BorrowedFd<'_>) -> io::Result<()> {
    // Safety: no memory is read.
    checked(unsafe { libc::syscall(libc::SYS_landlock_restrict_self, ruleset.as_raw_fd(), 0) }).map(drop)
}

/// Installs a filter of system calls for this thread and whatever it starts. Calls that it hands over wait at the
/// descriptor that is returned.
pub(crate) fn seccomp(filter: &[Instruction]) -> io::Result<OwnedFd> {
    let length = u16::try_from(filter.len()).map_err(|_| io::Error::from_raw_os_error(libc::EINVAL))?;
    // The kernel only reads it, although the type says otherwise.
    let program = libc::sock_fprog { len: length, filter: filter.as_ptr().cast_mut() };
    let install = |flags: c_ulong| {
        // Safety: the program points to as many instructions as it says.
        owned(unsafe {
            libc::syscall(libc::SYS_seccomp, libc::SECCOMP_SET_MODE_FILTER, flags, ptr::from_ref(&program))
        })
    };
    // A signal must not make a call that is being answered begin again; kernels before 5.19 do not know the flag.
    let killable = libc::SECCOMP_FILTER_FLAG_NEW_LISTENER | libc::SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV;
    match install(killable) {
        Err(error) if error.raw_os_error() == Some(libc::EINVAL) => install(libc::SECCOMP_FILTER_FLAG_NEW_LISTENER),
        other => other,
    }
}

/// The next call that waits. `None` if it is gone already.
pub(crate) fn next_notification(listener: BorrowedFd<'_>) -> io::Result<Option<Notification>> {
    // Safety: all zeros is a value of this struct, and what the kernel wants to find.
    let mut notification: Notification = unsafe { mem::zeroed() };
    let into = ptr::from_mut(&mut notification);
    // Safety: the kernel fills one struct of this type.
    let result = unsafe { libc::ioctl(listener.as_raw_fd(), libc::SECCOMP_IOCTL_NOTIF_RECV as _, into) };
    match checked(c_long::from(result)) {
        Ok(_) => Ok(Some(notification)),
        Err(error) if matches!(error.raw_os_error(), Some(libc::ENOENT | libc::EINTR)) => Ok(None),
        Err(error) => Err(error),
    }
}

/// Whether a call still waits, so that what was learnt about its process was about that process.
pub(crate) fn still_waits(listener: BorrowedFd<'_>, id: u64) -> bool {
    // Safety: the kernel reads one number.
    unsafe { libc::ioctl(listener.as_raw_fd(), libc::SECCOMP_IOCTL_NOTIF_ID_VALID as _, ptr::from_ref(&id)) == 0 }
}

/// What becomes of a call that waits.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Answer {
    /// It returns this.
    Value(i64),
    /// It fails with this number.
    Error(i32),
    /// The kernel carries it out, or refuses it, as if nobody had looked.
    Continue,
}

/// Answers a call that waits. Nobody may be waiting any more.
pub(crate) fn answer(listener: BorrowedFd<'_>, id: u64, answer: Answer) {
    let (value, error, flags) = match answer {
        Answer::Value(value) => (value, 0, 0),
        Answer::Error(number) => (0, number.saturating_neg(), 0),
        Answer::Continue => (0, 0, u32::try_from(libc::SECCOMP_USER_NOTIF_FLAG_CONTINUE).unwrap_or(0)),
    };
    let response = libc::seccomp_notif_resp { id, val: value, error, flags };
    // Safety: the kernel reads one struct of this type.
    unsafe { libc::ioctl(listener.as_raw_fd(), libc::SECCOMP_IOCTL_NOTIF_SEND as _, ptr::from_ref(&response)) };
}

/// Answers a call that waits with a descriptor of ours, which its process gets a copy of.
pub(crate) fn answer_with(
    listener: BorrowedFd<'_>,
    id: u64,
    descriptor: BorrowedFd<'_>,
    on_exec: OnExec,
) -> io::Result<()> {
    let added = libc::seccomp_notif_addfd {
        id,
        flags: u32::try_from(libc::SECCOMP_ADDFD_FLAG_SEND).unwrap_or(0),
        srcfd: u32::try_from(descriptor.as_raw_fd()).map_err(|_| io::Error::from_raw_os_error(libc::EBADF))?,
        newfd: 0,
        newfd_flags: if on_exec == OnExec::Closes { libc::O_CLOEXEC.unsigned_abs() } else { 0 },
    };
    // Safety: the kernel reads one struct of this type.
    let result =
        unsafe { libc::ioctl(listener.as_raw_fd(), libc::SECCOMP_IOCTL_NOTIF_ADDFD as _, ptr::from_ref(&added)) };
    checked(c_long::from(result)).map(drop)
}

/// What becomes of a descriptor when its process starts another program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum OnExec {
    Closes,
    Stays,
}

/// Has whoever waits for an answer and whoever gives it take turns on one processor. Kernels before 6.6 do not know this,
/// and calls take longer there.
pub(crate) fn take_turns(listener: BorrowedFd<'_>) {
    const SYNC_WAKE_UP: c_ulong = 1;
    // Safety: takes numbers only.
    unsafe { libc::ioctl(listener.as_raw_fd(), libc::SECCOMP_IOCTL_NOTIF_SET_FLAGS as _, SYNC_WAKE_UP) };
}

/// Gives this thread a mask for new files, and a working directory, of its own.
pub(crate) fn unshare_mask() -> io::Result<()> {
    // Safety: takes numbers only; no descriptor is shared or lost by it.
    checked(c_long::from(unsafe { libc::unshare(libc::CLONE_FS) })).map(drop)
}

/// Reads the memory of another process. Returns how much could be read.
pub(crate) fn read_memory(pid: Pid, address: u64, into: &mut [u8]) -> io::Result<usize> {
    let local = libc::iovec { iov_base: into.as_mut_ptr().cast(), iov_len: into.len() };
    let address = usize::try_from(address).map_err(|_| io::Error::from_raw_os_error(libc::EFAULT))?;
    let remote = libc::iovec { iov_base: ptr::without_provenance_mut(address), iov_len: into.len() };
    // Safety: the local part is `into`; the remote part is looked up in the other process and may fail.
    let read = unsafe { libc::process_vm_readv(pid.as_raw_nonzero().get(), &local, 1, &remote, 1, 0) };
    usize::try_from(read).map_err(|_| io::Error::last_os_error())
}

/// Connects a socket to an address in the form that the kernel takes.
pub(crate) fn connect(socket: BorrowedFd<'_>, address: &[u8]) -> io::Result<()> {
    let length = libc::socklen_t::try_from(address.len()).map_err(|_| io::Error::from_raw_os_error(libc::EINVAL))?;
    // Safety: the kernel reads as many bytes as we say.
    let result = unsafe { libc::connect(socket.as_raw_fd(), address.as_ptr().cast(), length) };
    checked(c_long::from(result)).map(drop)
}

/// Has every descriptor from `first` on closed when a program is executed.
pub(crate) fn close_on_exec_from(first: RawFd) -> io::Result<()> {
    let first = u32::try_from(first).unwrap_or(0);
    // Safety: only marks descriptors; none is closed while somebody holds it.
    let result = unsafe { libc::syscall(libc::SYS_close_range, first, u32::MAX, libc::CLOSE_RANGE_CLOEXEC) };
    checked(result).map(drop)
}

/// Closes every descriptor of this process but those in `keep`, which is in ascending order.
///
/// Invariant: only for a new process that uses no other descriptor again and ends by `_exit`.
pub(crate) fn close_all_but(keep: &[RawFd]) {
    let mut first: u32 = 0;
    for fd in keep.iter().filter_map(|fd| u32::try_from(*fd).ok()) {
        if let Some(last) = fd.checked_sub(1).filter(|last| *last >= first) {
            // Safety: the caller promises that nothing uses these any more.
            unsafe { libc::syscall(libc::SYS_close_range, first, last, 0) };
        }
        first = fd.saturating_add(1);
    }
    // Safety: as above.
    unsafe { libc::syscall(libc::SYS_close_range, first, u32::MAX, 0) };
}

/// Brings up the loopback of this process's network namespace.
pub(crate) fn loopback_up(socket: BorrowedFd<'_>) -> io::Result<()> {
    // Safety: all zeros is a value of this struct.
    let mut request: libc::ifreq = unsafe { mem::zeroed() };
    for (to, from) in request.ifr_name.iter_mut().zip(b"lo") {
        *to = *from as c_char;
    }
    let flags = libc::IFF_UP | libc::IFF_RUNNING;
    request.ifr_ifru.ifru_flags = i16::try_from(flags).unwrap_or(0);
    // Safety: the kernel reads one struct of this type.
    let result = unsafe { libc::ioctl(socket.as_raw_fd(), libc::SIOCSIFFLAGS as _, ptr::from_ref(&request)) };
    checked(c_long::from(result)).map(drop)
}

/// Takes away all capabilities of this process, for whatever it starts as well.
pub(crate) fn drop_capabilities() -> io::Result<()> {
    #[repr(C)]
    struct Header {
        version: u32,
        pid: i32,
    }
    #[repr(C)]
    struct Sets {
        effective: u32,
        permitted: u32,
        inheritable: u32,
    }
    const VERSION_3: u32 = 0x2008_0522;
    for capability in 0..64 as c_ulong {
        // Safety: takes numbers only. It fails for numbers beyond those that the kernel knows.
        if unsafe { libc::prctl(libc::PR_CAPBSET_DROP, capability, 0, 0, 0) } == -1 {
            break;
        }
    }
    // Safety: takes numbers only.
    let ambient = unsafe { libc::prctl(libc::PR_CAP_AMBIENT, libc::PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0) };
    checked(c_long::from(ambient))?;
    let header = Header { version: VERSION_3, pid: 0 };
    let none = [const { Sets { effective: 0, permitted: 0, inheritable: 0 } }; 2];
    // Safety: this version of the header goes with two structs.
    checked(unsafe { libc::syscall(libc::SYS_capset, ptr::from_ref(&header), none.as_ptr()) }).map(drop)
}

/// A set of signals.
#[derive(Clone, Copy)]
pub(crate) struct Signals(libc::sigset_t);

impl Signals {
    /// These signals.
    pub(crate) fn of(numbers: &[c_int]) -> Signals {
        // Safety: all zeros is a value of this struct.
        let mut set: libc::sigset_t = unsafe { mem::zeroed() };
        // Safety: both only write the set.
        unsafe { libc::sigemptyset(&mut set) };
        for number in numbers {
            // Safety: as above; a number that is no signal changes nothing.
            unsafe { libc::sigaddset(&mut set, *number) };
        }
        Signals(set)
    }

    /// Holds these back from this thread, and returns what was held back before.
    pub(crate) fn block(&self) -> io::Result<Signals> {
        let mut before = Signals::of(&[]);
        // Safety: reads one set and writes the other.
        let result = unsafe { libc::pthread_sigmask(libc::SIG_BLOCK, &self.0, &mut before.0) };
        if result == 0 { Ok(before) } else { Err(io::Error::from_raw_os_error(result)) }
    }

    /// Holds back exactly these.
    pub(crate) fn restore(&self) {
        // Safety: reads one set.
        unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, &self.0, ptr::null_mut()) };
    }

    /// A descriptor from which these are read instead of being delivered.
    pub(crate) fn descriptor(&self) -> io::Result<OwnedFd> {
        // Safety: reads one set.
        owned(c_long::from(unsafe { libc::signalfd(-1, &self.0, libc::SFD_CLOEXEC | libc::SFD_NONBLOCK) }))
    }
}

/// The next signal that waits at a descriptor: its number, and whether a process sent it.
pub(crate) fn next_signal(descriptor: BorrowedFd<'_>) -> Option<(c_int, bool)> {
    // Safety: all zeros is a value of this struct.
    let mut info: libc::signalfd_siginfo = unsafe { mem::zeroed() };
    let length = mem::size_of::<libc::signalfd_siginfo>();
    // Safety: the struct is as long as we say.
    let read = unsafe { libc::read(descriptor.as_raw_fd(), ptr::from_mut(&mut info).cast(), length) };
    let number = c_int::try_from(info.ssi_signo).ok()?;
    (usize::try_from(read) == Ok(length)).then_some((number, info.ssi_code <= 0))
}

/// Gives a signal its usual effect again.
pub(crate) fn usual_effect(signal: c_int) {
    // Safety: no handler of ours is involved.
    unsafe { libc::signal(signal, libc::SIG_DFL) };
}

/// Has the kernel reap whatever becomes a child of this process.
pub(crate) fn reap_by_itself() {
    // Safety: no handler of ours is involved.
    unsafe { libc::signal(libc::SIGCHLD, libc::SIG_IGN) };
}

/// Sends a signal by its number.
pub(crate) fn send_signal(pid: Pid, signal: c_int) -> io::Result<()> {
    // Safety: takes numbers only.
    checked(c_long::from(unsafe { libc::kill(pid.as_raw_nonzero().get(), signal) })).map(drop)
}

/// Sends a signal to every process of this namespace but this one. Fails if there is none.
///
/// Invariant: only for the first process of a namespace.
pub(crate) fn signal_all(signal: c_int) -> io::Result<()> {
    if rustix::process::getpid().as_raw_nonzero().get() != 1 {
        return Err(io::Error::from_raw_os_error(libc::EPERM));
    }
    // Safety: takes numbers only.
    checked(c_long::from(unsafe { libc::kill(-1, signal) })).map(drop)
}

/// Stops this process by a signal until somebody lets it go on, and holds that signal back again.
pub(crate) fn stop_by(signal: c_int) {
    let only = Signals::of(&[signal]);
    // What a terminal sent to the whole process group waits here, and would stop us a second time.
    // Safety: reads sets; the signals that stop have no handler of ours.
    unsafe {
        libc::raise(signal);
        libc::pthread_sigmask(libc::SIG_UNBLOCK, &only.0, ptr::null_mut());
        libc::pthread_sigmask(libc::SIG_BLOCK, &only.0, ptr::null_mut());
    }
}

/// Ends this process by a signal, without a core file of its own. Returns if the signal does not end processes.
pub(crate) fn die_of(signal: c_int) {
    let none = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // Safety: reads one struct.
    unsafe { libc::setrlimit(libc::RLIMIT_CORE, &none) };
    usual_effect(signal);
    let only = Signals::of(&[signal]);
    // Safety: reads one set; afterwards the signal is delivered to this very thread.
    unsafe {
        libc::pthread_sigmask(libc::SIG_UNBLOCK, &only.0, ptr::null_mut());
        libc::raise(signal);
    }
}
