//! `interlock hook HOST`: an event of a host in, the host's answer out.
//!
//! It only carries: the daemon reads, judges and records. Whatever goes wrong on the way is the host's refusal: exit code 2
//! with a reason on standard error, never anything else. Only an event that nothing hangs on passes then: to refuse an
//! agent its stop is to order it on, each time.

use std::env;
use std::io::{self, Read, Write};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::mpsc::channel;
use std::thread;
use std::time::{Duration, Instant};

use clap::Args;
use interlock_core::Digest;
use interlock_core::action::PassKind;
use interlock_hosts::settings::PREFIX_VARIABLE;
use interlock_hosts::{Host, read, render_unreadable, told};
use interlock_wire::HookAnswer;
use percent_encoding::{AsciiSet, CONTROLS, utf8_percent_encode};

use crate::daemon::Daemon;
use crate::{Fault, serve, version};

/// The largest event that is carried.
const EVENT_BYTES_MAX: u64 = 16 * 1024 * 1024;
/// When the refusal is given, unless told otherwise: well before a host gives up and goes on.
const DEADLINE_MS: u64 = 40_000;
/// No host waits longer.
const DEADLINE_MS_MAX: u64 = 600_000;
/// How long putting a newer daemon in place may hold up an answer.
const REPLACE_TIME_MAX: Duration = Duration::from_secs(5);

#[derive(Debug, Args)]
#[command(after_help = "Example: interlock hook claude-code < event.json

Hosts run it; `interlock install HOST` tells them to. Exit codes: 0 go on, 2 refused, with the reason on standard error.")]
pub(crate) struct HookArguments {
    /// The host: claude-code, codex, cursor or gemini
    #[arg(value_parser = parse_host)]
    host: Host,
    /// The home of the daemon [default: INTERLOCK_HOME, else ~/.interlock]
    #[arg(long, value_name = "DIR")]
    home: Option<PathBuf>,
    /// Believe only the daemon that holds this key
    #[arg(long, value_name = "FINGERPRINT", value_parser = parse_fingerprint)]
    daemon: Option<Digest>,
    /// The project all sessions of this host belong to [default: where the session began]
    #[arg(long, value_name = "DIR")]
    project: Option<PathBuf>,
    /// Refuse after this long
    #[arg(long, value_name = "MS", default_value_t = DEADLINE_MS,
        value_parser = clap::value_parser!(u64).range(1..=DEADLINE_MS_MAX))]
    deadline_ms: u64,
}

pub(crate) fn parse_host(text: &str) -> Result<Host, String> {
    let known = || Host::ALL.map(Host::as_str).join(", ");
    Host::parse(text).ok_or_else(|| format!("a host is one of {}", known()))
}

pub(crate) fn parse_fingerprint(text: &str) -> Result<Digest, String> {
    Digest::parse(text).ok_or_else(|| "a fingerprint is `sha256:` and 64 hexadecimal digits".to_owned())
}

/// Carries one event. The exit code is 0 or 2 whatever happens.
pub(crate) fn run(arguments: &HookArguments) -> ExitCode {
    let deadline = Instant::now() + Duration::from_millis(arguments.deadline_ms);
    let (event, fault) = match unless_it_panics(|| read_event(deadline)) {
        Ok(event) => match unless_it_panics(|| carry(arguments, event.as_deref(), deadline)) {
            Ok(answer) => return say(answer.exit, &answer.stdout, &answer.stderr),
            Err(fault) => (event, fault),
        },
        Err(fault) => (None, fault),
    };
    let next = fault.next.as_deref().map_or_else(String::new, |next| format!(" ({next})"));
    if event.is_some_and(|event| may_go_unanswered(arguments.host, &event)) {
        // Whether anybody hears this changes nothing.
        let _ = writeln!(io::stderr().lock(), "Interlock did not see this: {}{next}", fault.message);
        return ExitCode::SUCCESS;
    }
    let reason = format!("Interlock refused this: {}{next}", fault.message);
    let refusal = render_unreadable(arguments.host, &reason);
    say(refusal.exit, &refusal.stdout, &refusal.stderr)
}

fn unless_it_panics<T>(act: impl FnOnce() -> Result<T, Fault>) -> Result<T, Fault> {
    catch_unwind(AssertUnwindSafe(act)).unwrap_or_else(|_| Err(Fault::new("internal fault")))
}

/// Whether an event lets nothing happen that was not let happen before: an agent stops, or the host only informs.
fn may_go_unanswered(host: Host, event: &[u8]) -> bool {
    let kind = unless_it_panics(|| read(host, event, None).map_err(|unreadable| Fault::new(unreadable.reason)));
    kind.is_ok_and(|event| told(&event.kind).is_some_and(PassKind::goes_on_unasked))
}

/// Carries an event to the daemon and its answer back; an event that is not given was too large.
fn carry(arguments: &HookArguments, event: Option<&[u8]>, deadline: Instant) -> Result<HookAnswer, Fault> {
    let home = arguments.home.clone().or_else(serve::home);
    let home = home.ok_or_else(|| Fault::new("neither INTERLOCK_HOME nor HOME is set"))?;
    let daemon = Daemon::of(&home);
    let daemon = match arguments.daemon {
        Some(fingerprint) => daemon.pinned(fingerprint),
        None => daemon,
    };
    let project = arguments.project.as_ref().map(|project| project.to_string_lossy().into_owned());
    let project = project.map(|project| escape(&project));
    let mut headers = Vec::new();
    headers.extend(project.as_ref().map(|project| ("x-interlock-project", project.as_str())));
    let prefix = prefix_in_force(arguments.host).map(|prefix| escape(&prefix));
    headers.extend(prefix.as_ref().map(|prefix| ("x-interlock-prefix", prefix.as_str())));
    let event = event.unwrap_or_else(|| {
        headers.push(("x-interlock-unread", "the event is larger than any host sends"));
        &[]
    });
    let path = format!("/hook/{}", arguments.host);
    let send = || daemon.request("POST", &path, event, &headers, deadline);
    let told = send().or_else(|fault| {
        if !fault.is_transient {
            return Err(fault);
        }
        // Nobody listens yet, or the last one has just gone. An event that was recorded and not answered is refused
        // when it is sent again, or judged once more; neither lets more through.
        daemon.ensure(deadline)?;
        send()
    })?;
    if told.version.as_deref().is_some_and(|running| version::is_newer(version::OWN, running)) {
        // The answer stands. If this fails, the next event tries it again.
        let _ = daemon.replace_older(deadline.min(Instant::now() + REPLACE_TIME_MAX));
    }
    let wrong = || Fault::new(format!("the daemon answered {}, and not as it should", told.status));
    read_answer(&told.body).ok_or_else(wrong)
}

/// The program to which the host hands command lines right now: it gives its hooks the variables of its settings, as they
/// are in force. Others have no such thing.
fn prefix_in_force(host: Host) -> Option<String> {
    let set = (host == Host::ClaudeCode).then(|| env::var_os(PREFIX_VARIABLE)).flatten();
    set.map(|prefix| prefix.to_string_lossy().into_owned())
}

/// What the host sent, or nothing if that is too much. A host that never ends its event is refused by the deadline.
fn read_event(deadline: Instant) -> Result<Option<Vec<u8>>, Fault> {
    let (done, read) = channel();
    let spawned = thread::Builder::new().spawn(move || {
        let mut event = Vec::new();
        let mut stdin = io::stdin().lock();
        let all = stdin.by_ref().take(EVENT_BYTES_MAX.saturating_add(1)).read_to_end(&mut event);
        let is_whole = u64::try_from(event.len()).unwrap_or(u64::MAX) <= EVENT_BYTES_MAX;
        if !is_whole {
            // Read to the end all the same: hosts take a pipe that breaks for a hook that failed.
            let _ = io::copy(&mut stdin, &mut io::sink());
        }
        // Whoever asked may have given up.
        let _ = done.send(all.map(|_| is_whole.then_some(event)));
    });
    spawned.map_err(|error| Fault::new(format!("the event cannot be read: {error}")))?;
    let left = deadline.saturating_duration_since(Instant::now());
    let read = read.recv_timeout(left).map_err(|_| Fault::new("the event did not arrive in time"))?;
    read.map_err(|error| Fault::new(format!("the event cannot be read: {error}")))
}

fn read_answer(body: &str) -> Option<HookAnswer> {
    interlock_wire::read(body).ok().filter(|answer: &HookAnswer| matches!(answer.exit, 0 | 2))
}

/// Says it to the host. What cannot be said is a refusal: a host that hears nothing goes on.
fn say(exit: u8, stdout: &str, stderr: &str) -> ExitCode {
    let error = io::stderr().lock().write_all(stderr.as_bytes());
    let out = io::stdout().lock().write_all(stdout.as_bytes()).and_then(|()| io::stdout().lock().flush());
    if error.is_err() || out.is_err() {
        return ExitCode::from(2);
    }
    ExitCode::from(exit)
}

/// A path for a header: what is not printable ASCII, and `%`, as `%XX`.
fn escape(text: &str) -> String {
    const ENCODED: &AsciiSet = &CONTROLS.add(b'%');
    utf8_percent_encode(text, ENCODED).to_string()
}
