//! Asks the daemon, runs the command, and tells how it ended.

use std::env;
use std::ffi::OsString;
use std::fs::{self, DirBuilder, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::os::unix::net::UnixStream;
use std::os::unix::process::{CommandExt, parent_id};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::time::{Duration, Instant};

use interlock_core::json::{self, Limits};
use interlock_core::{Code, visible};
use interlock_hosts::{HandedLine, Host};
use interlock_runner::{ContainFault, Ended, How, Session, Start, temporary_inside};
use interlock_wire::{ExecEnd, ExecReached, ExecStart, ExecStarted};

use super::asked::{Asked, Program};
use super::{Ground, NOT_FOUND, NOT_RUN, NotRun, shut_in};
use crate::Fault;
use crate::daemon::{Daemon, RUN, SOCKET};

/// How long the daemon may take to answer, its start included.
const ANSWER_TIME_MAX: Duration = Duration::from_secs(10);
/// How long the answer to a start may take: the project is kept before it is given, the first time all of it.
const START_TIME_MAX: Duration = Duration::from_secs(600);
/// Where it is written down which process holds the namespaces of a session, in the directory of one run.
const SESSIONS: &str = "sessions";
/// The longest name of a directory that is handed back to a host.
const DIRECTORY_BYTES_MAX: u64 = 8 * 1024;

/// Starts what is asked for, if the daemon lets it, and ends as it ends.
pub(super) fn run(asked: Asked, ground: &Ground) -> Result<ExitCode, NotRun> {
    let home = &ground.home;
    let daemon = Daemon::of(home);
    let daemon = ground.daemon.into_iter().fold(daemon, Daemon::pinned);
    let daemon = ground.binary.iter().fold(daemon, |daemon, binary| daemon.started_as(binary));
    let Some(started) = start(&daemon, home, &asked.start)? else { return shut_in::run(asked, home) };
    let environment = environment(&started);
    if started.bound.is_none() && started.exec_id.is_empty() {
        return Err(replace(asked.program, environment));
    }
    let owner = owner(&asked.program);
    let ticket = started.ticket.clone().or(asked.start.ticket);
    let exec = Exec { daemon, ticket, started, owner };
    if let Some(temporary) = exec.temporary()
        && let Err(error) = DirBuilder::new().recursive(true).mode(0o700).create(temporary)
    {
        let why = format!("its directory for temporary files cannot be made: {error}");
        return Err(exec.failed(NotRun::new(Code::ContainSetup, why)));
    }
    let (program, returns) = exec.prepare(asked.program);
    let begin = Start {
        program,
        cwd: PathBuf::from(&asked.start.directory),
        env: environment,
        bound: exec.started.bound.clone(),
        temp: exec.temporary(),
        aside: Some(PathBuf::from(&exec.started.aside)).filter(|aside| aside.is_absolute()),
        session: exec.session(home),
    };
    let ended = interlock_runner::run(&begin).map_err(|fault| exec.failed(not_started(&fault)));
    if let Some(returns) = returns.filter(|_| ended.is_ok()) {
        returns.give_back();
    }
    let ended = ended?;
    exec.end(&ended);
    ended.exit_process()
}

/// What the kernel can hold commands to here, in words.
pub(super) fn probe() -> Result<ExitCode, NotRun> {
    let abilities = interlock_runner::probe();
    let text = json::to_string(&abilities, 256).unwrap_or_default();
    let said = writeln!(io::stdout().lock(), "{text}");
    Ok(if said.is_ok() { ExitCode::SUCCESS } else { ExitCode::from(2) })
}

/// A command that may start.
struct Exec {
    daemon: Daemon,
    ticket: Option<String>,
    started: ExecStarted,
    /// The host's process.
    owner: u32,
}

impl Exec {
    /// The words to start, and how the directory comes back in which a host's line ends.
    fn prepare(&self, program: Program) -> (Vec<OsString>, Option<Returns>) {
        let (shell, handed) = match program {
            Program::Words(words) => return (words, None),
            Program::Text { shell, handed } => (shell, handed),
        };
        let named = handed.directory_file.as_deref();
        let returns = self.temporary().zip(named).and_then(|(temporary, file)| Returns::new(&temporary, file));
        let file = match &returns {
            Some(returns) => format!("{}/{}", self.temporary_inside(), returns.name),
            None => named.unwrap_or_default().to_owned(),
        };
        (words(shell, &handed, &file), returns)
    }

    /// The directory that a command in a bound has for temporary files, as it is outside.
    fn temporary(&self) -> Option<PathBuf> {
        let is_held = self.started.bound.is_some();
        self.started.temp.as_ref().filter(|_| is_held).map(PathBuf::from).filter(|temp| temp.is_absolute())
    }

    /// The same as the command sees it.
    fn temporary_inside(&self) -> String {
        let held = self.started.bound.as_ref().zip(self.temporary());
        let inside = held.map(|(bound, temporary)| temporary_inside(bound.rung, &temporary));
        inside.unwrap_or_default().to_string_lossy().into_owned()
    }

    /// The session that the command belongs to: what the host runs in the background is there for later calls. It ends with
    /// the host's process.
    fn session(&self, home: &Path) -> Option<Session> {
        let name = Path::new(self.started.temp.as_ref()?).file_name()?;
        Some(Session { directory: home.join(RUN).join(SESSIONS).join(name), owner: self.owner })
    }

    /// A command that did not start after all: that is told too.
    fn failed(&self, not_run: NotRun) -> NotRun {
        self.tell(&ExecEnd {
            exec_id: self.started.exec_id.clone(),
            ticket: self.ticket.clone(),
            ..ExecEnd::default()
        });
        not_run
    }

    /// Tells the daemon how it ended, and the agent what held it.
    fn end(&self, ended: &Ended) {
        let end = end_of(self.started.exec_id.clone(), ended);
        self.tell(&ExecEnd { ticket: self.ticket.clone(), ..end });
        say_held(ended, self.started.ask_for_more.as_deref());
    }

    fn tell(&self, end: &ExecEnd) {
        if end.exec_id.is_empty() {
            return;
        }
        let body = interlock_wire::write(end);
        let told = self.daemon.post("/exec/end", &body, Instant::now() + ANSWER_TIME_MAX);
        let trouble = match told {
            Ok((200, _)) => return,
            Ok((_, body)) => refusal(&body).message,
            Err(fault) => fault.message,
        };
        // What nobody heard of meets no fact; the command has ended all the same.
        say(&format!("how this ended is not on record: {trouble}"));
    }
}

/// How many of the things that were refused an agent is told.
const TOLD_MAX: usize = 5;

/// What was refused, in one line; nothing if nothing was.
fn refused_in(ended: &Ended) -> Option<String> {
    let deeds = ended.refusals.iter().map(|refusal| format!("{} {}", refusal.attempt, refusal.target));
    let hosts = ended.reached.iter().filter(|reached| !reached.allowed).map(|reached| format!("host {}", reached.host));
    let all: Vec<String> = deeds.chain(hosts).collect();
    let told = all.iter().take(TOLD_MAX).cloned().collect::<Vec<_>>().join(", ");
    let more = match all.len().saturating_sub(TOLD_MAX) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    (!all.is_empty()).then(|| format!("refused: {told}{more}"))
}

/// How a command ended, as it is told.
pub(super) fn end_of(exec_id: String, ended: &Ended) -> ExecEnd {
    let (exit_code, signal) = match ended.how {
        How::Exit(code) => (Some(code), None),
        How::Signal(signal) => (None, Some(signal)),
    };
    ExecEnd {
        exec_id,
        exit_code,
        signal,
        duration_ms: u64::try_from(ended.duration.as_millis()).unwrap_or(u64::MAX),
        refused: ended.refusals.iter().map(|refusal| format!("{} {}", refusal.attempt, refusal.target)).collect(),
        set_aside: ended.set_aside.iter().map(|file| file.path.clone()).collect(),
        reached: ended.reached.iter().map(reached).collect(),
        ..ExecEnd::default()
    }
}

/// Tells the agent of a command that failed what held it.
pub(super) fn say_held(ended: &Ended, ask_for_more: Option<&str>) {
    let refused = refused_in(ended);
    let was_held = refused.is_some() || !ended.set_aside.is_empty();
    if ended.how != How::Exit(0) && was_held {
        for line in refused.iter().chain(&ended.notes).map(String::as_str).chain(ask_for_more) {
            say(line);
        }
    }
}

fn reached(reached: &interlock_runner::Reached) -> ExecReached {
    ExecReached { host: reached.host.clone(), allowed: reached.allowed }
}

/// The host's process: it started this one itself, or Gemini CLI the shell that did, which ends with the line.
fn owner(program: &Program) -> u32 {
    let parent = parent_id();
    let is_shell = matches!(program, Program::Text { handed, .. } if handed.host == Host::Gemini);
    let above = || {
        let status = fs::read_to_string(format!("/proc/{parent}/status")).ok()?;
        status.lines().find_map(|line| line.strip_prefix("PPid:"))?.trim().parse().ok()
    };
    is_shell.then(above).flatten().unwrap_or(parent)
}

/// One line for the agent, behind what the command said.
fn say(line: &str) {
    // Whether anybody reads it changes nothing.
    let _ = writeln!(io::stderr().lock(), "interlock: {}", visible(line));
}

/// Whether the kernel keeps this process from the daemon's socket: waiting would not help.
fn is_shut_in(home: &Path) -> bool {
    let reached = UnixStream::connect(home.join(SOCKET));
    reached.is_err_and(|error| error.kind() == io::ErrorKind::PermissionDenied)
}

/// Asks whether it may start. It is on record then. Nothing, where the kernel keeps this process from the daemon.
fn start(daemon: &Daemon, home: &Path, asked: &ExecStart) -> Result<Option<ExecStarted>, NotRun> {
    let deadline = Instant::now() + ANSWER_TIME_MAX;
    let body = interlock_wire::write(asked);
    let send = || daemon.post("/exec/start", &body, Instant::now() + START_TIME_MAX);
    let unrecorded = |fault: Fault| NotRun::new(Code::ContainRecord, fault.message);
    let (status, body) = match send() {
        Err(fault) if !fault.is_transient => return Err(unrecorded(fault)),
        Err(_) if is_shut_in(home) => return Ok(None),
        // Nobody listens yet, or the last one has just gone. A ticket that was spent unheard is refused now.
        Err(_) => daemon.ensure(deadline).and_then(|()| send()).map_err(unrecorded)?,
        Ok(told) => told,
    };
    if status != 200 {
        return Err(refusal(&body));
    }
    let unread = || NotRun::new(Code::ContainRecord, "the daemon answered, and not as it should");
    interlock_wire::read::<ExecStarted>(&body).map(Some).map_err(|_| unread())
}

/// What a daemon says that refuses.
fn refusal(body: &str) -> NotRun {
    let document = json::parse(body, &Limits::CONFIG).ok();
    let member = |key: &str| {
        let error = document.as_ref()?.root().get("error")?;
        Some(error.get(key)?.as_str()?.text().to_owned())
    };
    let unclear = || "the daemon refused, and not as it should".to_owned();
    NotRun {
        code: Some(Code::ContainRecord),
        told: member("code"),
        message: member("message").unwrap_or_else(unclear),
        exit: NOT_RUN,
    }
}

/// The variables of the command: the caller's, without those that its phase takes away, and with those that it sets.
pub(super) fn environment(started: &ExecStarted) -> Vec<(OsString, OsString)> {
    let is_set = |name: &OsString| name.to_str().is_some_and(|name| started.env_set.contains_key(name));
    let is_blocked = |name: &OsString| started.env_blocked.iter().any(|blocked| name == blocked.as_str());
    let kept = env::vars_os().filter(|(name, _)| !is_set(name) && !is_blocked(name));
    let set = started.env_set.iter().map(|(name, value)| (name.into(), value.into()));
    kept.chain(set).collect()
}

/// What nobody watches takes the place of this process. It comes back only if it could not be started.
fn replace(program: Program, environment: Vec<(OsString, OsString)>) -> NotRun {
    let words = match program {
        Program::Words(words) => words,
        Program::Text { shell, handed } => {
            let file = handed.directory_file.clone().unwrap_or_default();
            words(shell, &handed, &file)
        }
    };
    let Some((name, rest)) = words.split_first() else {
        return NotRun::new(Code::FaultInternal, "there is nothing to run");
    };
    let error = Command::new(name).args(rest).env_clear().envs(environment).exec();
    not_found(&name.to_string_lossy(), &error)
}

pub(super) fn words(shell: OsString, handed: &HandedLine, directory_file: &str) -> Vec<OsString> {
    vec![shell, "-c".into(), handed.text(directory_file).into()]
}

pub(super) fn not_started(fault: &ContainFault) -> NotRun {
    match fault {
        ContainFault::Program { program, source } => not_found(program, source),
        other => NotRun::new(Code::ContainSetup, other.to_string()),
    }
}

fn not_found(program: &str, error: &io::Error) -> NotRun {
    let exit = if error.kind() == io::ErrorKind::NotFound { NOT_FOUND } else { NOT_RUN };
    NotRun { code: None, told: None, message: format!("{program} cannot be run: {error}"), exit }
}

/// The way back of the directory in which a host's line ends: the host reads it from a file in a place that commands in a
/// bound have a place of their own instead of. So it is written there, and carried over once they have ended.
struct Returns {
    /// The name of the file, inside.
    name: String,
    /// The same file, as it is outside.
    inside: PathBuf,
    /// The host's file.
    file: PathBuf,
}

impl Returns {
    fn new(temporary: &Path, file: &str) -> Option<Returns> {
        let file = PathBuf::from(file);
        let name = file.file_name()?.to_str()?.to_owned();
        Some(Returns { inside: temporary.join(&name), name, file })
    }

    /// Carries the directory over, if the line got as far as to say it. What goes wrong leaves the host where it was.
    fn give_back(self) {
        let found = fs::symlink_metadata(&self.inside);
        let is_file = found.is_ok_and(|found| found.is_file() && found.len() <= DIRECTORY_BYTES_MAX);
        if is_file && let Ok(said) = fs::read(&self.inside) {
            // Made anew: whoever put a link there gets nothing written behind it.
            let _ = fs::remove_file(&self.file);
            let made = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&self.file);
            let _ = made.and_then(|mut file| file.write_all(&said));
        }
        let _ = fs::remove_file(&self.inside);
    }
}
