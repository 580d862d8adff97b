//! A start inside a host's own sandbox, from within which nothing reaches the daemon. What the daemon would answer was left
//! in its home with the ruling, and how the command ended is told in its output, where the host's next event carries it.
//!
//! Nobody marks what was left as used: so it is good for this line, in this directory, in this call of the host, for a
//! minute.

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{SystemTime, UNIX_EPOCH};

use interlock_core::contain::{Bound, Reach};
use interlock_core::{Code, Digest};
use interlock_hosts::trailer;
use interlock_runner::{ContainFault, Ended, Start};
use interlock_wire::{ExecEnd, ExecLeft, ExecStart};

use super::NotRun;
use super::asked::{Asked, Program};
use super::run::{end_of, environment, not_started, say_held, words};

/// The largest file that is read.
const LEFT_BYTES_MAX: u64 = 4 * 1024 * 1024;
/// How far the daemon's clock may be ahead.
const AHEAD_MS_MAX: u64 = 5_000;
/// How many things of one kind are told, and how much of each: hosts cut long outputs.
const TOLD_MAX: usize = 8;
const TOLD_CHARS_MAX: usize = 160;

/// Starts what was left for this call, and ends as it ends.
pub(super) fn run(asked: Asked, home: &Path) -> Result<ExitCode, NotRun> {
    let Program::Text { shell, handed } = asked.program else { return Err(nothing_left()) };
    let left = left_for(&asked.start, home)?;
    let begin = Start {
        program: words(shell, &handed, ""),
        cwd: PathBuf::from(&asked.start.directory),
        env: environment(&left.started),
        bound: left.started.bound.clone().map(narrowed),
        ..Start::default()
    };
    match interlock_runner::run(&begin) {
        Ok(ended) => {
            say_held(&ended, left.started.ask_for_more.as_deref());
            tell(&left, &ended);
            ended.exit_process()
        }
        Err(fault) => {
            let unheld = !matches!(fault, ContainFault::Program { .. });
            let exec_id = left.started.exec_id.clone();
            tell_end(&left, &ExecEnd { exec_id, unheld, ..ExecEnd::default() });
            let mut not_run = not_started(&fault);
            if unheld {
                not_run.message.push_str(UNHELD);
            }
            Err(not_run)
        }
    }
}

/// What the agent is told where the host's sandbox leaves no way to hold anything.
const UNHELD: &str = ". The host's own sandbox is around this: from the next command line on, Interlock judges them as \
    without a runner";

fn nothing_left() -> NotRun {
    let message = "a sandbox of the host's own keeps the runner from the daemon, and nothing was left for this command there: \
                   only command lines of Codex that were judged a moment ago run inside it";
    NotRun::new(Code::ContainRecord, message)
}

/// What was left for a start, if it is this one.
fn left_for(start: &ExecStart, home: &Path) -> Result<ExecLeft, NotRun> {
    let ticket = start.ticket.as_deref().ok_or_else(nothing_left)?;
    let path = home.join(ExecLeft::DIRECTORY).join(ExecLeft::name(ticket));
    let is_file = fs::symlink_metadata(&path).is_ok_and(|found| found.is_file() && found.len() <= LEFT_BYTES_MAX);
    let text = is_file.then(|| fs::read_to_string(&path).ok()).flatten().ok_or_else(nothing_left)?;
    let left: ExecLeft = interlock_wire::read(&text).map_err(|_| nothing_left())?;
    let is_it = left.line == Digest::of(&[&start.line])
        && left.directory == Digest::of(&[&start.directory])
        && start.call_id.as_deref() == Some(&*left.call_id);
    let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(u128::MAX, |since| since.as_millis());
    let now = u64::try_from(now).unwrap_or(u64::MAX);
    let is_good = now < left.at.saturating_add(left.lives_ms) && now.saturating_add(AHEAD_MS_MAX) >= left.at && is_it;
    let other = "this ticket is for another call, or too old: ask for the command line again";
    if is_good { Ok(left) } else { Err(NotRun::new(Code::ContainTicket, other)) }
}

/// What of a bound can be had inside a sandbox: it lets nobody reach a host, and write nowhere in our home.
fn narrowed(bound: Bound) -> Bound {
    Bound { reach: Reach::Nothing, caches: Vec::new(), ..bound }
}

fn tell(left: &ExecLeft, ended: &Ended) {
    let end = end_of(left.started.exec_id.clone(), ended);
    let short = |texts: Vec<String>| -> Vec<String> {
        texts.into_iter().take(TOLD_MAX).map(|text| text.chars().take(TOLD_CHARS_MAX).collect()).collect()
    };
    tell_end(left, &ExecEnd { refused: short(end.refused), set_aside: short(end.set_aside), ..end });
}

/// Written at once and to the error output, whatever the command did with its own.
fn tell_end(left: &ExecLeft, end: &ExecEnd) {
    let line = trailer(&interlock_wire::write(end), left.secret);
    // What nobody heard of meets no fact.
    let _ = io::stderr().lock().write_all(line.as_bytes());
}
