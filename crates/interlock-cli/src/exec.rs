//! Runs a command line that was judged, held by the kernel to what was decided about it: `interlock exec`, and the shell
//! prefix of hosts.
//!
//! It asks the daemon, which records the start before it answers, and carries out what is answered; it decides nothing.
//! Whatever goes wrong before the command starts, nothing has run: exit code 126 and one line. Afterwards streams,
//! signals and the exit code are the command's.

mod asked;
mod pins;
mod run;
mod shut_in;

use std::io::{self, Write};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use interlock_core::{Code, Digest, visible};

pub use pins::{Pins, beside, shell};

/// The exit code of what was not run, as shells have it.
const NOT_RUN: u8 = 126;
/// The exit code of a program that is not there, as shells have it.
const NOT_FOUND: u8 = 127;

/// What is to be run.
#[derive(Debug)]
pub enum Wish {
    /// What Claude Code hands to its shell prefix.
    Prefixed(String),
    /// What a shell of Codex or Gemini CLI runs that reads our script.
    Sourced(String),
    /// A person's own command, or one that is the whole of a judged line.
    Own(OwnCommand),
}

/// A person's own command, or one that is the whole of a judged line.
#[derive(Debug)]
pub struct OwnCommand {
    /// The ticket of a call that was judged.
    pub ticket: Option<String>,
    /// What to hold it to.
    pub profile: Option<String>,
    /// The project it belongs to.
    pub project: Option<PathBuf>,
    /// A line for bash.
    pub line: Option<String>,
    /// Or a program and its arguments.
    pub words: Vec<String>,
}

/// Whom to ask.
#[derive(Debug)]
pub struct Ground {
    /// The home of the daemon.
    pub home: PathBuf,
    /// Believe only the daemon that holds this key.
    pub daemon: Option<Digest>,
    /// The program that is started as the daemon where none runs; without one, this very program.
    pub binary: Option<PathBuf>,
}

impl Ground {
    /// A home, and whoever listens there.
    pub fn of(home: &Path) -> Ground {
        Ground { home: home.to_owned(), daemon: None, binary: None }
    }
}

/// Why nothing was run.
struct NotRun {
    code: Option<Code>,
    /// A code that a newer daemon may have sent.
    told: Option<String>,
    message: String,
    exit: u8,
}

impl NotRun {
    fn new(code: Code, message: impl Into<String>) -> NotRun {
        NotRun { code: Some(code), told: None, message: message.into(), exit: NOT_RUN }
    }

    /// One line for whoever reads the command's error output.
    fn line(&self) -> String {
        let code = self.told.as_deref().or(self.code.map(Code::as_str));
        let code = code.map_or_else(String::new, |code| format!(" {}:", visible(code)));
        format!("interlock exec:{code} {}\n", visible(&self.message))
    }
}

/// Runs what is wished for. It comes back only if nothing was run.
pub fn run(wish: &Wish, ground: Option<&Ground>) -> ExitCode {
    told(|| {
        let nowhere = || NotRun::new(Code::ContainRecord, "neither INTERLOCK_HOME nor HOME is set");
        let ground = ground.ok_or_else(nowhere)?;
        let asked = asked::of(wish, &ground.home)?;
        run::run(asked, ground)
    })
}

/// Says what the kernel can hold commands to here, and runs nothing.
pub fn probe() -> ExitCode {
    told(run::probe)
}

/// Whatever goes wrong, in one line and by the exit code.
fn told(run: impl FnOnce() -> Result<ExitCode, NotRun>) -> ExitCode {
    let not_run = match catch_unwind(AssertUnwindSafe(run)) {
        Ok(Ok(code)) => return code,
        Ok(Err(not_run)) => not_run,
        Err(_) => NotRun::new(Code::FaultInternal, "internal fault"),
    };
    // Whether anybody reads it changes nothing.
    let _ = io::stderr().lock().write_all(not_run.line().as_bytes());
    ExitCode::from(not_run.exit)
}
