//! The process that stays outside: starts the first process inside, passes signals on, and learns how the command ended.

use std::ffi::c_int;
use std::io::{self, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags};
use rustix::net::{AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SocketFlags, SocketType};
use rustix::process::{Pid, WaitOptions, WaitStatus};

use super::child::{self, Cell, Hold, REPORT_LEN, Stage};
use super::plan::OuterRules;
use super::steps::{self, told};
use super::sys::{self, Signals};
use crate::{ContainFault, How};

/// Signals that the command is to get when somebody sends them to the runner. From a terminal it gets them by itself.
#[rustfmt::skip]
const PASSED_ON: [c_int; 8] = [
    libc::SIGHUP, libc::SIGINT, libc::SIGQUIT, libc::SIGTERM, libc::SIGTSTP, libc::SIGUSR1, libc::SIGUSR2,
    libc::SIGWINCH,
];

/// Namespaces of a held command.
const NAMESPACES: c_int =
    libc::CLONE_NEWUSER | libc::CLONE_NEWNS | libc::CLONE_NEWPID | libc::CLONE_NEWNET | libc::CLONE_NEWIPC;

/// What the process inside hands over.
pub(crate) enum Handed {
    /// Calls that wait for an answer.
    Calls(OwnedFd),
    /// The socket at which the proxy is asked.
    Proxy(OwnedFd),
    /// A cache begins empty.
    NoLayers,
    /// The command has ended: what it left may start nothing more.
    Ending,
}

/// Starts the command and waits for its end. `outer` is made while it is set up, and `handed` is called while it is and runs.
pub(crate) fn supervise(
    mut cell: Cell,
    program: &str,
    outer: Option<OuterRules>,
    mut handed: impl FnMut(Handed),
) -> Result<(How, Duration), ContainFault> {
    let signals = Signals::of(&PASSED_ON);
    let set_up = || ContainFault::of("the supervisor");
    let descriptor = signals.descriptor().map_err(set_up())?;
    let held = signals.block().map_err(set_up())?;
    cell.mask = held;
    let result = attend(&mut cell, program, outer, descriptor.as_fd(), &mut handed);
    // What came too late for the command is for whoever called.
    held.restore();
    result
}

fn attend(
    cell: &mut Cell,
    program: &str,
    outer: Option<OuterRules>,
    signals: BorrowedFd<'_>,
    handed: &mut dyn FnMut(Handed),
) -> Result<(How, Duration), ContainFault> {
    let set_up = || ContainFault::of("the supervisor");
    let (ours, theirs) =
        rustix::net::socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None)
            .map_err(io::Error::from)
            .map_err(set_up())?;
    // Sandboxes of hosts refuse options of sockets; then the command is found as the only child of the first process.
    match rustix::net::sockopt::set_socket_passcred(&ours, true) {
        Ok(()) | Err(rustix::io::Errno::PERM) => {}
        Err(error) => return Err(set_up()(error.into())),
    }
    let (faults, their_faults) =
        rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC).map_err(io::Error::from).map_err(set_up())?;
    let began = Instant::now();
    let mut hold = cell.hold.take();
    let first = match &mut hold {
        Some(hold) if cell.session.is_some() => {
            sys::fork(0, || child::join(cell, hold, theirs.as_fd(), their_faults.as_fd())).map_err(set_up())?
        }
        Some(hold) if cell.is_narrow => {
            sys::fork(0, || child::first(cell, hold, theirs.as_fd(), their_faults.as_fd())).map_err(set_up())?
        }
        Some(hold) => sys::fork(NAMESPACES, || child::first(cell, hold, theirs.as_fd(), their_faults.as_fd()))
            .map_err(ContainFault::of("namespaces"))?,
        None => sys::fork(0, || child::become_free(cell, theirs.as_fd(), their_faults.as_fd())).map_err(set_up())?,
    };
    drop((theirs, their_faults));
    let mut watch = Watch {
        ours,
        first,
        has_begun: false,
        command: None,
        is_free: hold.is_none(),
        must_be_gone: cell.is_narrow || cell.session.is_none() && !cell.layers.is_empty(),
        status: None,
    };
    let ruled = outer.map_or(Ok(()), OuterRules::make);
    if ruled.is_ok() && hold.is_some() {
        // Whoever has ended by now does not hear it, and has said why.
        let _ = steps::tell(watch.ours.as_fd(), told::RULED, 0);
    }
    let started = ruled.and_then(|()| watch.until_started(&faults, hold.as_ref(), program, handed));
    let result = started.and_then(|()| watch.until_ended(signals, cell.owner.as_ref(), handed));
    watch.finish(result.is_err());
    result.map(|how| (how, began.elapsed()))
}

struct Watch {
    ours: OwnedFd,
    first: Pid,
    /// The command is about to be executed.
    has_begun: bool,
    /// Its process, where that could be told before it ended.
    command: Option<Pid>,
    is_free: bool,
    /// Whether even the namespaces must be gone at the end.
    must_be_gone: bool,
    /// Of a free command, once it was waited for.
    status: Option<WaitStatus>,
}

impl Watch {
    /// Waits until the command is running. An end of `faults` without a word is the sign: it closes with `execve`.
    fn until_started(
        &mut self,
        faults: &OwnedFd,
        hold: Option<&Hold>,
        program: &str,
        handed: &mut dyn FnMut(Handed),
    ) -> Result<(), ContainFault> {
        let set_up = || ContainFault::of("the command");
        loop {
            let mut polled = [PollFd::new(&self.ours, PollFlags::IN), PollFd::new(faults, PollFlags::IN)];
            match rustix::event::poll(&mut polled, None) {
                Ok(_) | Err(rustix::io::Errno::INTR) => {}
                Err(error) => return Err(set_up()(error.into())),
            }
            let [channel, pipe] = polled.map(|one| !one.revents().is_empty());
            if channel && !self.has_begun {
                match receive(self.ours.as_fd()).map_err(set_up())? {
                    Some(message) => self.take(message, handed),
                    None => return Err(self.fault(faults, hold, program)),
                }
                continue;
            }
            if pipe {
                let mut bytes = [0; REPORT_LEN];
                return match rustix::io::read(faults, &mut bytes) {
                    Ok(0) if self.has_begun => Ok(()),
                    Ok(0) => Err(ended_early()),
                    Ok(_) => Err(named(&bytes, hold, program)),
                    Err(error) => Err(set_up()(error.into())),
                };
            }
        }
    }

    fn take(&mut self, message: Message, handed: &mut dyn FnMut(Handed)) {
        match (message.what, message.descriptor) {
            (told::STARTS, descriptor) => {
                self.has_begun = true;
                self.command = message.sender.or_else(|| only_child(self.first));
                if let Some(descriptor) = descriptor {
                    handed(Handed::Calls(descriptor));
                }
            }
            (told::LISTENS, Some(socket)) => handed(Handed::Proxy(socket)),
            (told::NO_LAYERS, _) => handed(Handed::NoLayers),
            _ => {}
        }
    }

    /// What went wrong, when the channel has closed before the command started.
    fn fault(&self, faults: &OwnedFd, hold: Option<&Hold>, program: &str) -> ContainFault {
        let mut bytes = [0; REPORT_LEN];
        match rustix::io::read(faults, &mut bytes) {
            Ok(REPORT_LEN) => named(&bytes, hold, program),
            _ => ended_early(),
        }
    }

    fn until_ended(
        &mut self,
        signals: BorrowedFd<'_>,
        owner: Option<&OwnedFd>,
        handed: &mut dyn FnMut(Handed),
    ) -> Result<How, ContainFault> {
        if self.is_free {
            return self.until_free_ended(signals);
        }
        loop {
            let third = owner.map_or(signals, AsFd::as_fd);
            let mut polled = [
                PollFd::new(&self.ours, PollFlags::IN),
                PollFd::new(&signals, PollFlags::IN),
                PollFd::new(&third, PollFlags::IN),
            ];
            if let Err(error) = rustix::event::poll(&mut polled, None)
                && error != rustix::io::Errno::INTR
            {
                return Err(ContainFault::of("the supervisor")(error.into()));
            }
            let [channel, signalled, is_over] = polled.map(|one| !one.revents().is_empty());
            if signalled {
                self.pass_on(signals);
            }
            if is_over && owner.is_some() {
                return Ok(self.abandon());
            }
            if !channel {
                continue;
            }
            match receive(self.ours.as_fd()) {
                Ok(Some(message)) if message.what == told::ENDED => return Ok(how_of(message.value)),
                Ok(Some(message)) if message.what == told::ENDING => handed(Handed::Ending),
                Ok(Some(message)) if message.what == told::STOPPED => self.follow_stop(message.value),
                Ok(Some(_)) => {}
                // The first process inside was killed, and everything inside with it.
                Ok(None) | Err(_) => {
                    self.must_be_gone = true;
                    return Ok(How::Signal(libc::SIGKILL));
                }
            }
        }
    }

    /// A command that nothing holds is a child of ours: it is waited for, and its descriptor tells when.
    fn until_free_ended(&mut self, signals: BorrowedFd<'_>) -> Result<How, ContainFault> {
        let set_up = || ContainFault::of("the supervisor");
        let flags = rustix::process::PidfdFlags::empty();
        let ended = rustix::process::pidfd_open(self.first, flags).map_err(io::Error::from).map_err(set_up())?;
        loop {
            // A stop of a child is only told by a wait, so look from time to time.
            let while_stopping = rustix::event::Timespec { tv_sec: 0, tv_nsec: 200_000_000 };
            let mut polled = [PollFd::new(&ended, PollFlags::IN), PollFd::new(&signals, PollFlags::IN)];
            let _ = rustix::event::poll(&mut polled, Some(&while_stopping));
            self.pass_on(signals);
            match rustix::process::waitpid(Some(self.first), WaitOptions::UNTRACED | WaitOptions::NOHANG) {
                Ok(Some((_, status))) if status.stopped() => {
                    self.follow_stop(status.stopping_signal().unwrap_or(libc::SIGSTOP));
                }
                Ok(Some((_, status))) => {
                    self.status = Some(status);
                    return Ok(how_of(status.as_raw()));
                }
                Ok(None) | Err(rustix::io::Errno::INTR) => {}
                Err(error) => return Err(set_up()(error.into())),
            }
        }
    }

    fn pass_on(&self, signals: BorrowedFd<'_>) {
        while let Some((number, was_sent)) = sys::next_signal(signals) {
            // A terminal sends to the whole process group: the command has it already.
            if let Some(command) = self.command.filter(|_| was_sent) {
                let _ = sys::send_signal(command, number);
            }
        }
    }

    /// The command stopped: so do we, by the same signal, that whoever started us sees it. Never before it: a shell that
    /// takes us for stopped reads from the terminal again, and so might the command that is not stopped yet.
    fn follow_stop(&self, signal: c_int) {
        if let Some(command) = self.command.filter(|command| is_stopped(*command)) {
            sys::stop_by(signal);
            let _ = sys::send_signal(command, libc::SIGCONT);
        }
    }

    /// Nobody wants to know any more: the first process sees that the channel is closed, and ends everything.
    fn abandon(&mut self) -> How {
        let _ = rustix::net::shutdown(&self.ours, rustix::net::Shutdown::Both);
        self.must_be_gone = true;
        How::Signal(libc::SIGKILL)
    }

    /// Sees to it that nothing is left.
    fn finish(&mut self, failed: bool) {
        if self.status.is_some() {
            return;
        }
        if failed {
            let _ = sys::send_signal(self.first, libc::SIGKILL);
        }
        // All others have ended before we were told. What is left is taking down namespaces, which takes the kernel longer
        // than a short command, and longer still where a layer of a cache is written out; that layer must be free before
        // somebody else uses it. In a session the process between sees to that. Whom nobody waits for here is waited for by
        // the system once this process has ended, which it does with its command.
        if failed || self.must_be_gone {
            let first = Some(self.first);
            while let Err(rustix::io::Errno::INTR) = rustix::process::waitpid(first, WaitOptions::empty()) {}
        }
    }
}

/// The child of a process that has exactly one.
fn only_child(parent: Pid) -> Option<Pid> {
    let parent = parent.as_raw_nonzero();
    let children = std::fs::read_to_string(format!("/proc/{parent}/task/{parent}/children")).ok()?;
    let mut numbers = children.split_ascii_whitespace();
    let (Some(only), None) = (numbers.next(), numbers.next()) else { return None };
    Pid::from_raw(only.parse().ok()?)
}

fn is_stopped(pid: Pid) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{}/stat", pid.as_raw_nonzero()));
    stat.is_ok_and(|stat| stat.rsplit(')').next().is_some_and(|rest| rest.trim_start().starts_with('T')))
}

fn how_of(raw: i32) -> How {
    let status = ExitStatus::from_raw(raw);
    match (status.code(), status.signal()) {
        (Some(code), _) => How::Exit(code),
        (None, Some(signal)) => How::Signal(signal),
        (None, None) => How::Signal(libc::SIGKILL),
    }
}

fn ended_early() -> ContainFault {
    let source = io::Error::new(io::ErrorKind::UnexpectedEof, "the process inside ended before the command started");
    ContainFault::of("the command")(source)
}

fn named(bytes: &[u8; REPORT_LEN], hold: Option<&Hold>, program: &str) -> ContainFault {
    let Some((stage, source)) = Stage::parse(bytes) else { return ended_early() };
    let part = match stage {
        Stage::Step(at) => {
            let step = usize::try_from(at).ok().and_then(|at| hold.and_then(|hold| hold.steps.get(at)));
            step.map_or_else(|| "a step".to_owned(), super::steps::Step::describe)
        }
        Stage::Session => "the namespaces of the session".to_owned(),
        Stage::Directory => "the working directory".to_owned(),
        Stage::Capabilities => "the loss of capabilities".to_owned(),
        Stage::Landlock => "Landlock".to_owned(),
        Stage::Descriptors => "descriptors".to_owned(),
        Stage::Filter => "the filter of system calls".to_owned(),
        Stage::Fork => "the command".to_owned(),
        Stage::Program => return ContainFault::Program { program: program.to_owned(), source },
    };
    ContainFault::SetUp { part, source }
}

struct Message {
    what: u8,
    value: i32,
    descriptor: Option<OwnedFd>,
    sender: Option<Pid>,
}

/// The next word of the process inside; `None` at its end.
fn receive(channel: BorrowedFd<'_>) -> io::Result<Option<Message>> {
    let mut space = [MaybeUninit::<u8>::uninit(); rustix::cmsg_space!(ScmRights(1), ScmCredentials(1))];
    let mut extra = RecvAncillaryBuffer::new(&mut space);
    let mut bytes = [0; 5];
    let received = loop {
        let mut parts = [IoSliceMut::new(&mut bytes)];
        match rustix::net::recvmsg(channel, &mut parts, &mut extra, RecvFlags::CMSG_CLOEXEC) {
            Err(rustix::io::Errno::INTR) => {}
            // It ended without having heard us.
            Err(rustix::io::Errno::CONNRESET) => return Ok(None),
            other => break other?,
        }
    };
    if received.bytes == 0 {
        return Ok(None);
    }
    let [what, a, b, c, d] = bytes;
    let mut message = Message { what, value: i32::from_le_bytes([a, b, c, d]), descriptor: None, sender: None };
    for one in extra.drain() {
        match one {
            RecvAncillaryMessage::ScmRights(mut descriptors) => message.descriptor = descriptors.next(),
            RecvAncillaryMessage::ScmCredentials(credentials) => message.sender = Some(credentials.pid),
            _ => {}
        }
    }
    Ok(Some(message))
}
