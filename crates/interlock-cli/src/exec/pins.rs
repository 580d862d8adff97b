//! The shell prefix of hosts: a program of its own, because it starts with every command line of an agent. `install` copies
//! it into the home, and writes beside it whom it asks.
//!
//! The copy outlives the Interlock that it came from: then it says what to do, and the line does not run. Where another
//! Interlock has taken that one's place, its program takes over.

use std::env;
use std::ffi::OsString;
use std::fs;
use std::io;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use interlock_core::json::{self, Limits, quote};
use interlock_core::{Code, Digest};

use super::{Ground, NOT_RUN, NotRun, Wish, run, told};

/// The name of the program: beside `interlock`, and in a home.
const SHELL: &str = "interlock-shell";
/// Behind the name of the program in a home: whom it asks.
const PINS: &str = ".json";
/// Before what a shell runs that reads our script.
const SOURCED: &str = "--sourced";
/// Before the file that says whom to ask, where it does not lie beside the program.
const PINNED: &str = "--pins";

const GONE: &str = "Interlock is gone, so nothing was run: install it again, or take its hooks, and for Claude Code \
    CLAUDE_CODE_SHELL_PREFIX, out of the settings";

/// Whom a shell prefix asks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pins {
    /// The program `interlock`.
    pub binary: String,
    /// The home of the daemon.
    pub home: String,
    /// The fingerprint of the daemon's key.
    pub daemon: String,
    /// The length and time of the program beside `interlock` that was copied.
    pub copied: String,
}

impl Pins {
    /// Whom to ask, for a copy of the program that lies beside `interlock`.
    pub fn new(binary: &str, home: &str, daemon: &str) -> io::Result<Pins> {
        let copied = stamp(&beside(Path::new(binary)))?;
        Ok(Pins { binary: binary.to_owned(), home: home.to_owned(), daemon: daemon.to_owned(), copied })
    }

    /// The text of the file.
    pub fn to_text(&self) -> String {
        let member = |(name, value): (&str, &String)| format!("  {}: {}", quote(name), quote(value));
        let members =
            [("binary", &self.binary), ("home", &self.home), ("daemon", &self.daemon), ("copied", &self.copied)];
        format!("{{\n{}\n}}\n", members.map(member).join(",\n"))
    }

    /// Where the file lies for a program.
    pub fn path(shell: &str) -> String {
        format!("{shell}{PINS}")
    }

    fn read(text: &str) -> Option<Pins> {
        let document = json::parse(text, &Limits::CONFIG).ok()?;
        let member = |key: &str| Some(document.root().get(key)?.as_str()?.text().to_owned());
        Some(Pins {
            binary: member("binary")?,
            home: member("home")?,
            daemon: member("daemon")?,
            copied: member("copied")?,
        })
    }
}

/// The program `interlock-shell` that belongs to a program `interlock`.
pub fn beside(binary: &Path) -> PathBuf {
    binary.with_file_name(SHELL)
}

/// What tells one program from a later one in its place.
fn stamp(path: &Path) -> io::Result<String> {
    let found = fs::metadata(path)?;
    Ok(format!("{} {}.{:09}", found.len(), found.mtime(), found.mtime_nsec()))
}

/// The program `interlock-shell`: one command line is run, and nothing else.
pub fn shell() -> ExitCode {
    told(|| {
        let words: Vec<OsString> = env::args_os().skip(1).collect();
        let (file, words) = match words.as_slice() {
            [option, file, rest @ ..] if option == PINNED => (PathBuf::from(file), rest),
            all => (own_pins()?, all),
        };
        let wish = match words {
            [text] => Wish::Prefixed(utf8(text)?),
            [option, text] if option == SOURCED => Wish::Sourced(utf8(text)?),
            _ => return Err(said("one command line is run, and nothing else")),
        };
        let unread = |why: &str| said(&format!("{} {why}: `interlock install` again", file.display()));
        let text = fs::read_to_string(&file).map_err(|error| unread(&format!("cannot be read ({error})")))?;
        let pins = Pins::read(&text).ok_or_else(|| unread("is not what `install` writes"))?;
        let daemon = Digest::parse(&pins.daemon).ok_or_else(|| unread("names no daemon"))?;
        let binary = PathBuf::from(&pins.binary);
        if !fs::metadata(&binary).is_ok_and(|found| found.is_file() && found.permissions().mode() & 0o111 != 0) {
            return Err(said(GONE));
        }
        let newer = beside(&binary);
        // What cannot be looked at is not there any more, and this copy does as well.
        if stamp(&newer).is_ok_and(|stamp| stamp != pins.copied) && env::current_exe().is_ok_and(|own| own != newer) {
            let error = Command::new(&newer).arg(PINNED).arg(&file).args(words).exec();
            return Err(said(&format!("{} cannot be run: {error}", newer.display())));
        }
        let ground = Ground { home: PathBuf::from(&pins.home), daemon: Some(daemon), binary: Some(binary) };
        Ok(run(&wish, Some(&ground)))
    })
}

/// The file beside this very program.
fn own_pins() -> Result<PathBuf, NotRun> {
    let own = env::current_exe().map_err(|error| said(&format!("this program cannot find itself: {error}")))?;
    let own = own.to_str().ok_or_else(|| said("the path of this program is not UTF-8"))?;
    Ok(PathBuf::from(Pins::path(own)))
}

fn utf8(text: &OsString) -> Result<String, NotRun> {
    text.to_str().map(str::to_owned).ok_or_else(|| NotRun::new(Code::ContainTicket, "the command line is not UTF-8"))
}

/// Nothing was run, and no page says more about it.
fn said(message: &str) -> NotRun {
    NotRun { code: None, told: None, message: message.to_owned(), exit: NOT_RUN }
}
