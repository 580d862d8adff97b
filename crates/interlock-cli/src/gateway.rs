//! `interlock gateway`: an MCP server on standard input and output.
//!
//! So far it has the control tools only (`--control-only`). The session reads and answers; the daemon decides. One
//! thread reads lines, one asks the daemon, and this one does the rest, so that a client can ping or cancel while an
//! answer is on its way.

use std::env;
use std::io::{self, BufRead, Read, Write};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, Sender, SyncSender, channel, sync_channel};
use std::thread;
use std::time::{Duration, Instant};

use clap::Args;
use interlock_core::json::quote;
use interlock_mcp::{
    CallId, ControlAnswer, ControlFault, ControlRequest, LINE_BYTES_MAX, Output, PREFIX, PrefixError, Session,
};

use crate::client::{read_error, shorten};
use crate::daemon::Daemon;
use crate::{Fault, Outcome, serve};

/// How long the daemon may take. Clients give up after 60 seconds, many of them sooner.
const ANSWER_TIME_MAX: Duration = Duration::from_secs(20);
/// How many lines and answers may wait for this thread.
const EVENTS_MAX: usize = 8;
/// The longest name of a host.
const HOST_BYTES_MAX: usize = 32;

#[derive(Debug, Args)]
#[command(after_help = "Example: interlock gateway --control-only --host claude-code\n\n\
    It speaks MCP on standard input and output, from 2024-11-05 to 2026-07-28; a host starts it.")]
pub(crate) struct GatewayArguments {
    /// Offer the control tools only: which phase is this, and move to the next
    #[arg(long)]
    control_only: bool,
    /// The host that the agent runs in
    #[arg(long, value_name = "HOST", value_parser = parse_host, required_if_eq("control_only", "true"))]
    host: Option<String>,
    /// The home of the daemon [default: INTERLOCK_HOME, else ~/.interlock]
    #[arg(long, value_name = "DIR")]
    home: Option<PathBuf>,
    /// The project that the agent works on [default: the working directory]
    #[arg(long, value_name = "DIR")]
    project: Option<PathBuf>,
    /// How the tools' names begin
    #[arg(long, value_name = "NAME", default_value = PREFIX, value_parser = parse_prefix)]
    prefix: String,
}

fn parse_host(host: &str) -> Result<String, String> {
    let fits = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    let is_host = !host.is_empty() && host.len() <= HOST_BYTES_MAX && host.bytes().all(fits);
    let rule = || format!("a host is 1 to {HOST_BYTES_MAX} small letters, digits and `-`");
    is_host.then(|| host.to_owned()).ok_or_else(rule)
}

fn parse_prefix(prefix: &str) -> Result<String, PrefixError> {
    Session::new(prefix, "").map(|_| prefix.to_owned())
}

pub(crate) fn run(arguments: &GatewayArguments) -> Result<Outcome, Fault> {
    let (true, Some(host)) = (arguments.control_only, &arguments.host) else {
        return Err(Fault::new("a gateway in front of other servers is not there yet")
            .and_then_do("give --control-only for the control tools"));
    };
    let home = arguments.home.clone().or_else(serve::home);
    let home = home.ok_or_else(|| Fault::new("neither INTERLOCK_HOME nor HOME is set; give --home"))?;
    let door = DaemonDoor {
        daemon: Daemon::of(&home),
        path: format!("/control/{host}"),
        project: project(arguments.project.as_deref())?,
    };
    let session = Session::new(&arguments.prefix, env!("CARGO_PKG_VERSION"));
    drive(session.map_err(|error| Fault::new(error.to_string()))?, door)?;
    Ok(Outcome::Clean)
}

/// The project's directory, as the daemon knows it: absolute, with every link resolved.
fn project(given: Option<&Path>) -> Result<String, Fault> {
    let directory = given.map_or_else(env::current_dir, |given| Ok(given.to_owned()));
    let resolved = directory.and_then(|directory| directory.canonicalize());
    let resolved =
        resolved.map_err(|error| Fault::new(format!("the project's directory cannot be resolved: {error}")))?;
    let text = resolved.into_os_string().into_string();
    text.map_err(|_| Fault::new("the name of the project's directory is not UTF-8"))
}

/// Where control tools get their answers.
trait ControlDoor: Send + 'static {
    /// Asks one question; the answer is JSON.
    fn ask(&self, request: &ControlRequest) -> Result<String, Fault>;
}

/// The daemon, asked about one project.
struct DaemonDoor {
    daemon: Daemon,
    path: String,
    project: String,
}

impl ControlDoor for DaemonDoor {
    fn ask(&self, request: &ControlRequest) -> Result<String, Fault> {
        let body = format!("{{\"project\":{},\"request\":{}}}", quote(&self.project), request.to_json().canonical());
        let (status, body) = self.daemon.post(&self.path, &body, Instant::now() + ANSWER_TIME_MAX)?;
        if status == 200 {
            return Ok(body);
        }
        let Some((code, message)) = read_error(&body) else {
            return Err(Fault::new(format!("the daemon answered {status}, and not as an Interlock daemon does"))
                .and_then_do("ask a person to run `interlock doctor`"));
        };
        Err(Fault { code: Some(code), ..Fault::new(shorten(&message)) })
    }
}

/// What this thread waits for.
enum Event {
    Line(Vec<u8>),
    /// The client has gone, or its lines cannot be read.
    End(io::Result<()>),
    Answer(CallId, Result<ControlAnswer, ControlFault>),
}

/// Serves one client until it closes its end and every call is answered.
fn drive(mut session: Session, door: impl ControlDoor) -> Result<(), Fault> {
    let (events, next) = sync_channel(EVENTS_MAX);
    let (questions, asked) = channel();
    let for_answers = events.clone();
    thread::spawn(move || read_lines(&mut io::stdin().lock(), &events));
    thread::spawn(move || ask_in_order(&door, &asked, &for_answers));
    let mut ended = None;
    while ended.is_none() || session.is_waiting() {
        // Both threads have gone, which neither does before the end.
        let Ok(event) = next.recv() else { break };
        let mut lines = Vec::new();
        match event {
            Event::Line(line) => {
                for output in session.receive(&line) {
                    match output {
                        Output::Send(line) => lines.push(line),
                        Output::Call { id, request } => lines.extend(put(&questions, &mut session, id, request)),
                    }
                }
            }
            Event::Answer(id, said) => lines.extend(session.answer(id, said)),
            Event::End(how) => ended = Some(how),
        }
        if !write_lines(&lines)? {
            return Ok(());
        }
    }
    ended.unwrap_or(Ok(())).map_err(|error| Fault::new(format!("cannot read standard input: {error}")))
}

/// Hands a question on; if nobody takes it, the answer to it.
fn put(
    questions: &Sender<(CallId, ControlRequest)>,
    session: &mut Session,
    id: CallId,
    request: ControlRequest,
) -> Option<String> {
    match questions.send((id, request)) {
        Ok(()) => None,
        Err(_) => session.answer(id, Err(internal())),
    }
}

fn internal() -> ControlFault {
    ControlFault::new("internal fault; nothing was approved").and_then_do("ask a person to restart the gateway")
}

/// Reads lines to the end. Of one that is too long only so much is kept that the session can see it is.
fn read_lines(input: &mut impl BufRead, events: &SyncSender<Event>) {
    let limit = u64::try_from(LINE_BYTES_MAX).unwrap_or(u64::MAX).saturating_add(2);
    loop {
        let mut line = Vec::new();
        let read = input.by_ref().take(limit).read_until(b'\n', &mut line);
        let skipped = match read {
            Ok(0) => Err(None),
            Ok(_) if line.last() == Some(&b'\n') => {
                line.pop();
                Ok(())
            }
            // The rest of a line that is too long, or the end of the last line.
            Ok(_) => skip_line(input).map_err(Some),
            Err(error) => Err(Some(error)),
        };
        if let Err(end) = skipped {
            let _ = events.send(Event::End(end.map_or(Ok(()), Err)));
            return;
        }
        if events.send(Event::Line(line)).is_err() {
            return;
        }
    }
}

fn skip_line(input: &mut impl BufRead) -> io::Result<()> {
    loop {
        let buffer = match input.fill_buf() {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            read => read?,
        };
        if buffer.is_empty() {
            return Ok(());
        }
        let end = buffer.iter().position(|byte| *byte == b'\n');
        let used = end.map_or(buffer.len(), |end| end + 1);
        input.consume(used);
        if end.is_some() {
            return Ok(());
        }
    }
}

/// Asks one question after the other: two moves of one agent never overtake each other.
fn ask_in_order(door: &impl ControlDoor, asked: &Receiver<(CallId, ControlRequest)>, events: &SyncSender<Event>) {
    for (id, request) in asked {
        let said = catch_unwind(AssertUnwindSafe(|| door.ask(&request)));
        let said = match said {
            Ok(Ok(text)) => ControlAnswer::read(&request, &text),
            Ok(Err(fault)) => Err(ControlFault { code: fault.code, reason: fault.message, next: fault.next }),
            Err(_) => Err(internal()),
        };
        if events.send(Event::Answer(id, said)).is_err() {
            return;
        }
    }
}

/// Writes lines to the client; says whether it still reads.
fn write_lines(lines: &[String]) -> Result<bool, Fault> {
    let mut out = io::stdout().lock();
    for line in lines {
        match writeln!(out, "{line}").and_then(|()| out.flush()) {
            Ok(()) => {}
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => return Ok(false),
            Err(error) => return Err(error.into()),
        }
    }
    Ok(true)
}
