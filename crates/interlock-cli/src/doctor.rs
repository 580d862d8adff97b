//! `interlock doctor`: looks at everything a working installation rests on and says how to fix what is wrong.
//!
//! It changes nothing but for the probes with which it tries installed hooks, and it runs beside a server. What it says
//! about reach is decided in the runtime.

mod hosts;
mod probe;
mod runner;

use std::env;
use std::fmt::Write;
use std::fs::{self, File, Metadata, TryLockError};
use std::io::ErrorKind;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use clap::Args;
use interlock_core::bundle::Bundle;
use interlock_core::json::quote;
use interlock_core::visible;
use interlock_runtime::clock::{Clock, SystemClock};
use interlock_runtime::ledger::{CheckpointFile, LedgerKey, RecoveryFault, SqliteReader, recover};
use interlock_runtime::reach::{Reach, free_bytes, own_user, reach};
use interlock_runtime::startup::{check_environment, is_key_file};
use interlock_wire::About;

use crate::audit::NoEntropy;
use crate::client::Client;
use crate::serve::{Places, load_bundle, own_places};
use crate::style::{BAD, FAINT, GOOD, RESET};
use crate::table::cell;
use crate::{Fault, Outcome, print};

/// Less room than this is a warning, and this a failure: a ledger on a full disk denies everything.
const FREE_BYTES_WARN: u64 = 1024 * 1024 * 1024;
const FREE_BYTES_FAIL: u64 = 100 * 1024 * 1024;
/// How often the ledger is looked at before it is called damaged: beside a running server a checkpoint may be newer
/// than the entries that were read just before it.
const LEDGER_LOOKS_MAX: u32 = 4;
const LEDGER_PAUSE: Duration = Duration::from_millis(150);
/// The variables of the environment that mean something.
const VARIABLES: [&str; 4] = ["INTERLOCK_HOME", "INTERLOCK_OPERATOR_KEY", "INTERLOCK_API_KEY", "INTERLOCK_URL"];

#[derive(Debug, Args)]
#[command(after_help = "Example: interlock doctor --data /var/lib/interlock

Run it as the user your agents run as: what that user can reach is part of what it says. Installed hooks are tried as
their hosts would run them, with two events that are recorded for a project of doctor's own.
Exit codes: 0 nothing failed, 1 something did, 2 usage or fault.")]
pub(crate) struct DoctorArguments {
    /// The data directory [default: INTERLOCK_HOME/data]
    #[arg(long, value_name = "DIR")]
    data: Option<PathBuf>,
    /// Directory with interlock.toml [default: DATA/bundle, else what is built in]
    #[arg(long, value_name = "DIR")]
    bundle: Option<PathBuf>,
    /// The server [default: INTERLOCK_URL, else http://127.0.0.1:7878]
    #[arg(long, value_name = "URL")]
    server: Option<String>,
    /// Do not run the hooks that are installed
    #[arg(long)]
    no_probe: bool,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

pub(crate) fn run(arguments: &DoctorArguments) -> Result<Outcome, Fault> {
    let places = Places::find(arguments.data.as_deref())?;
    let mut visit = Visit { findings: Vec::new(), reach: None, is_closed: false };
    visit.ok("version", format!("interlock {}", env!("CARGO_PKG_VERSION")));
    visit.environment();
    visit.files(&places);
    let is_taken = visit.lock(&places.data);
    visit.server(arguments.server.as_deref(), is_taken);
    if visit.is_closed {
        visit.ok("ledger", "not looked at, nor the bundle: run doctor as the user the files belong to for that");
    } else {
        let in_force = visit.ledger(&places.data);
        visit.bundle(arguments.bundle.as_deref(), &places, in_force.as_deref());
    }
    visit.disk(&places.data);
    visit.hosts(&places, !arguments.no_probe);
    visit.reach(&places.data);
    print(if arguments.json { visit.json() } else { visit.text() }.as_bytes())?;
    Ok(if visit.count(Grade::Fail) == 0 { Outcome::Clean } else { Outcome::Refused })
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Grade {
    Ok,
    /// Good to know, and nothing to mend.
    Note,
    Warn,
    Fail,
}

impl Grade {
    fn as_str(self) -> &'static str {
        match self {
            Grade::Ok => "ok",
            Grade::Note => "note",
            Grade::Warn => "warn",
            Grade::Fail => "fail",
        }
    }
}

struct Finding {
    name: &'static str,
    grade: Grade,
    message: String,
    fix: Option<String>,
}

struct Visit {
    findings: Vec<Finding>,
    reach: Option<Reach>,
    /// Whether the data directory is another user's, who lets nobody in.
    is_closed: bool,
}

impl Visit {
    fn ok(&mut self, name: &'static str, message: impl Into<String>) {
        self.findings.push(Finding { name, grade: Grade::Ok, message: message.into(), fix: None });
    }

    fn note(&mut self, name: &'static str, message: impl Into<String>) {
        self.findings.push(Finding { name, grade: Grade::Note, message: message.into(), fix: None });
    }

    fn warn(&mut self, name: &'static str, message: impl Into<String>, fix: impl Into<String>) {
        self.findings.push(Finding { name, grade: Grade::Warn, message: message.into(), fix: Some(fix.into()) });
    }

    fn fail(&mut self, name: &'static str, message: impl Into<String>, fix: impl Into<String>) {
        self.findings.push(Finding { name, grade: Grade::Fail, message: message.into(), fix: Some(fix.into()) });
    }

    fn count(&self, grade: Grade) -> usize {
        self.findings.iter().filter(|finding| finding.grade == grade).count()
    }

    /// Loader variables, and variables of ours that nobody reads.
    fn environment(&mut self) {
        const NAME: &str = "environment";
        let variables: Vec<_> = env::vars_os().collect();
        let pairs = variables.iter().map(|(name, value)| (name.as_os_str(), value.as_os_str()));
        let before = self.findings.len();
        match check_environment(pairs) {
            Err(fault) => self.fail(NAME, fault.message, "unset it where the server is started"),
            Ok(words) => {
                for word in words {
                    self.warn(NAME, word, "unset LD_LIBRARY_PATH where the server is started");
                }
            }
        }
        for (name, _) in &variables {
            let name = name.to_string_lossy();
            if name.starts_with("INTERLOCK_") && !VARIABLES.contains(&name.as_ref()) {
                let known = VARIABLES.join(", ");
                self.warn(NAME, format!("{} means nothing", cell(&name, 60)), format!("known are {known}"));
            }
        }
        if self.findings.len() == before {
            self.ok(NAME, "nothing in it loads foreign code");
        }
    }

    /// Home, data directory and keys: one owner, and nobody else writes; keys nobody else reads.
    fn files(&mut self, places: &Places) {
        const NAME: &str = "files";
        let Some(data) = self.look(NAME, &places.data) else { return };
        let owner = data.uid();
        let before = self.findings.len();
        let mut paths = vec![places.key.clone()];
        paths.extend(places.key.parent().filter(|home| *home != places.data).map(Path::to_owned));
        match fs::read_dir(&places.data) {
            Ok(entries) => paths.extend(entries.flatten().map(|entry| entry.path())),
            Err(error) if error.kind() == ErrorKind::PermissionDenied && owner != own_user() => {
                // As it should be: the files are another user's, and this one cannot even list them.
                self.is_closed = true;
                self.ok(NAME, format!("{} belongs to {} and is closed to you", shown(&places.data), user(owner)));
                return;
            }
            Err(error) => {
                let message = format!("{} cannot be read: {error}", shown(&places.data));
                self.fail(NAME, message, "run doctor as the user it belongs to");
                return;
            }
        }
        paths.push(places.data.clone());
        paths.sort();
        paths.dedup();
        for path in paths {
            let Ok(found) = fs::metadata(&path) else { continue };
            let name = shown(&path);
            if found.uid() != owner {
                let message = format!("{name} belongs to {}, the data directory to {}", user(found.uid()), user(owner));
                self.fail(NAME, message, format!("chown {owner} {name}"));
            }
            if found.mode() & 0o022 != 0 {
                self.fail(NAME, format!("{name} can be written by others"), format!("chmod go-w {name}"));
            }
            if is_key_file(&path) && found.mode() & 0o044 != 0 {
                // A new ledger.key would make the checkpoint look forged.
                let is_operator = path.file_name().is_some_and(|file| file == "operator.key");
                let more =
                    if is_operator { "; then remove it and restart the server, which makes a new one" } else { "" };
                let fix = format!("chmod 600 {name}; others may have read it{more}");
                self.fail(NAME, format!("{name} can be read by others"), fix);
            }
        }
        if self.findings.len() == before {
            self.ok(NAME, format!("{} and the keys belong to {} alone", shown(&places.data), user(owner)));
        }
        if env::var_os("INTERLOCK_OPERATOR_KEY").is_some_and(|key| !key.is_empty()) {
            let fix = "a file shows its key to fewer: let `serve` make operator.key and unset the variable";
            self.warn(NAME, "the operator's key is in the environment, which children inherit", fix);
        } else if !places.key.exists() {
            let fix = "`interlock serve` makes one at its start";
            self.warn(NAME, format!("there is no {}", shown(&places.key)), fix);
        }
    }

    fn look(&mut self, name: &'static str, data: &Path) -> Option<Metadata> {
        match fs::metadata(data) {
            Ok(found) if found.is_dir() => Some(found),
            Ok(_) => {
                self.fail(name, format!("{} is not a directory", shown(data)), "name another with --data");
                None
            }
            Err(error) if error.kind() == ErrorKind::NotFound => {
                let fix = "`interlock serve` makes it at its first start; or name another with --data";
                self.warn(name, format!("there is no data directory {}", shown(data)), fix);
                None
            }
            Err(error) => {
                let fix = "run doctor as a user that may look at it";
                self.fail(name, format!("{} cannot be looked at: {error}", shown(data)), fix);
                None
            }
        }
    }

    /// Whether a server holds the data directory; `None` if that cannot be told.
    fn lock(&mut self, data: &Path) -> Option<bool> {
        // Shared and given back at once: a server that starts in this very moment would have to be started again.
        let lock = File::open(data.join("lock")).map_err(|error| error.kind());
        match lock {
            Err(ErrorKind::NotFound) => Some(false),
            Err(_) => None,
            Ok(file) => match file.try_lock_shared() {
                Ok(()) => {
                    let _ = file.unlock();
                    Some(false)
                }
                Err(TryLockError::WouldBlock) => Some(true),
                Err(TryLockError::Error(_)) => None,
            },
        }
    }

    /// Whether it answers, is ready, and is of this version.
    fn server(&mut self, url: Option<&str>, is_taken: Option<bool>) {
        const NAME: &str = "server";
        let client = match Client::without_key(url) {
            Ok(client) => client,
            Err(fault) => return self.fail(NAME, visible(&fault.message), fault.next.unwrap_or_default()),
        };
        match (client.get("/readyz"), is_taken) {
            (Ok(_), Some(false)) => {
                let message = format!("{} answers, and no server holds this data directory", client.url());
                self.warn(
                    NAME,
                    message,
                    "it serves another one: name that with --data, or another server with --server",
                );
            }
            (Ok(_), Some(true) | None) => self.ok(NAME, format!("{} is ready", client.url())),
            (Err(fault), Some(true)) if fault.is_transient && fault.code.is_none() => {
                let message = format!("a server holds this data directory and does not answer at {}", client.url());
                self.warn(NAME, message, "name where it listens with --server, or see what it printed");
                return;
            }
            (Err(fault), Some(false) | None) if fault.is_transient && fault.code.is_none() => {
                self.ok(NAME, format!("none runs at {}; start one with `interlock serve`", client.url()));
                return;
            }
            (Err(fault), _) if fault.code.is_none() => {
                let next = fault.next.unwrap_or_default();
                return self.warn(NAME, visible(&fault.message), visible(&next));
            }
            (Err(fault), _) => {
                let fix = "see what the server printed; `interlock explain INTERLOCK-FAULT-002`";
                self.fail(NAME, format!("it is not ready: {}", visible(&fault.message)), fix);
            }
        }
        let about = client.get("/openapi.json").ok().and_then(|answer| answer.read::<About>().ok());
        match about.map(|about| about.info.version) {
            Some(version) if version == env!("CARGO_PKG_VERSION") => {}
            Some(version) => {
                let message =
                    format!("the server is version {}, this command {}", cell(&version, 20), env!("CARGO_PKG_VERSION"));
                self.warn(NAME, message, "restart the server with the version you installed");
            }
            None => self.warn(NAME, "the server does not say its version", "is it an Interlock server? check --server"),
        }
    }

    /// The checks of a start, without a start. The digest of the bundle in force.
    fn ledger(&mut self, data: &Path) -> Option<String> {
        const NAME: &str = "ledger";
        if !data.join(interlock_runtime::ledger::DATABASE_NAME).exists() {
            if data.exists() {
                self.ok(NAME, "there is none yet");
            }
            return None;
        }
        let mut looks = 0;
        let checked = loop {
            let checked = check_ledger(data);
            looks += 1;
            if checked.is_ok() || looks == LEDGER_LOOKS_MAX {
                break checked;
            }
            thread::sleep(LEDGER_PAUSE);
        };
        match checked {
            Ok((entries, clock, digest)) => {
                self.ok(NAME, format!("{entries} entries, and the checkpoint is in them"));
                let now = SystemClock.now();
                if clock > now {
                    let fix = "set the clock right; 5 s behind, and the server does not start";
                    self.warn("clock", format!("it is {} ms behind the last entry", clock - now), fix);
                } else {
                    self.ok("clock", "it is not behind the last entry");
                }
                Some(digest)
            }
            Err(RecoveryFault::Clock { last, now }) => {
                let message = format!("it is {} ms behind the last entry", last.saturating_sub(now));
                self.fail("clock", message, "set the clock right before starting the server");
                None
            }
            Err(RecoveryFault::Store(fault)) => {
                let message = format!("it cannot be read: {}", visible(&fault.to_string()));
                self.fail(
                    NAME,
                    message,
                    "run doctor as the user it belongs to; `interlock explain INTERLOCK-FAULT-002`",
                );
                None
            }
            Err(fault @ (RecoveryFault::Damaged(_) | RecoveryFault::Checkpoint(_))) => {
                let fix =
                    "copy the directory away, then `interlock audit verify`; `interlock explain INTERLOCK-LEDGER-001`";
                self.fail(NAME, visible(&fault.to_string()), fix);
                None
            }
        }
    }

    fn bundle(&mut self, given: Option<&Path>, places: &Places, in_force: Option<&str>) {
        const NAME: &str = "bundle";
        let loaded = own_places(given.as_slice(), places).and_then(|own| load_bundle(given, places, &own));
        match loaded {
            Err(fault) => {
                self.fail(NAME, visible(&fault.message), format!("`interlock explain {}`", fault.code));
            }
            Ok((bundle, from)) => {
                let digest = bundle.digest().to_string();
                match in_force {
                    Some(other) if other != digest => {
                        let message = format!("{} loads and is not the one in force", visible(&from));
                        self.warn(
                            NAME,
                            message,
                            "a start of the server puts it into force; see `interlock config show`",
                        );
                    }
                    Some(_) | None => self.ok(NAME, format!("{} loads", visible(&from))),
                }
            }
        }
    }

    fn disk(&mut self, data: &Path) {
        const NAME: &str = "disk";
        let place = data.ancestors().find(|ancestor| ancestor.exists()).unwrap_or(data);
        let megabytes = |bytes: u64| bytes / (1024 * 1024);
        match free_bytes(place) {
            Ok((free, _)) if free < FREE_BYTES_FAIL => {
                self.fail(NAME, format!("{} MiB are free: soon nothing is approved", megabytes(free)), "make room");
            }
            Ok((free, _)) if free < FREE_BYTES_WARN => {
                self.warn(NAME, format!("{} MiB are free", megabytes(free)), "make room before it is full");
            }
            Ok((free, _)) => self.ok(NAME, format!("{} MiB are free", megabytes(free))),
            Err(error) => self.warn(NAME, format!("free space is unknown: {error}"), "look with df"),
        }
    }

    /// Says which of the two holds, and what follows from it.
    fn reach(&mut self, data: &Path) {
        const NAME: &str = "reach";
        let Ok(found) = fs::metadata(data) else { return };
        let behind_root = env::var("SUDO_UID").ok().and_then(|user| user.parse().ok());
        let reach = reach(found.uid(), own_user(), behind_root);
        self.reach = Some(reach);
        match reach {
            Reach::OwnUser => {
                let message = format!(
                    "own-user: the files belong to {}; an agent that runs as another user cannot change \
                     ledger, keys or rules",
                    user(found.uid())
                );
                self.ok(NAME, message);
            }
            Reach::SameUser => {
                let message = format!(
                    "same-user: the files belong to {}; mistakes and injected instructions are stopped and tampering \
                     shows, but code that runs as that user can change ledger, keys and rules",
                    user(found.uid())
                );
                let fix = "run the server as a user of its own, and agents as another (useradd --system interlock)";
                self.warn(NAME, message, fix);
            }
        }
    }

    fn text(&self) -> String {
        let mut out = String::new();
        for Finding { name, grade, message, fix } in &self.findings {
            let colour = match grade {
                Grade::Ok => GOOD,
                Grade::Note | Grade::Warn => FAINT,
                Grade::Fail => BAD,
            };
            // Writing to a string does not fail.
            let _ = writeln!(out, "{colour}{:<4}{RESET}  {name:<11}  {message}", grade.as_str());
            if let Some(fix) = fix {
                let _ = writeln!(out, "                   {FAINT}fix: {fix}{RESET}");
            }
        }
        let (warnings, failures) = (self.count(Grade::Warn), self.count(Grade::Fail));
        let _ = writeln!(out, "failed: {failures}, warnings: {warnings}");
        out
    }

    fn json(&self) -> String {
        let rows: Vec<String> = self
            .findings
            .iter()
            .map(|Finding { name, grade, message, fix }| {
                let fix = fix.as_ref().map_or_else(String::new, |fix| format!(",\"fix\":{}", quote(fix)));
                let (name, grade, message) = (quote(name), quote(grade.as_str()), quote(message));
                format!("{{\"name\":{name},\"grade\":{grade},\"message\":{message}{fix}}}")
            })
            .collect();
        let reach = self.reach.map_or_else(|| "null".to_owned(), |reach| quote(reach.as_str()));
        let ok = self.count(Grade::Fail) == 0;
        crate::client::inert_json(&format!("{{\"ok\":{ok},\"reach\":{reach},\"checks\":[{}]}}", rows.join(",")))
    }
}

/// Size, time of the last entry and digest of the bundle in force, if a server could go on from here.
fn check_ledger(data: &Path) -> Result<(u64, u64, String), RecoveryFault> {
    let key = LedgerKey::open(data, &NoEntropy).map_err(RecoveryFault::Checkpoint)?;
    let checkpoint = CheckpointFile::new(data, key);
    if checkpoint.read().map_err(RecoveryFault::Checkpoint)?.is_none() {
        // Recovery would write one for an empty ledger, and doctor writes nothing.
        return Err(RecoveryFault::Damaged("there is no checkpoint file".into()));
    }
    let mut reader = SqliteReader::open(data)?;
    let built_in = Bundle::built_in().map_err(RecoveryFault::damaged)?;
    let state = recover(&mut reader, Some(&checkpoint), &Arc::new(built_in), SystemClock.now())?;
    Ok((state.frontier.size(), state.clock, state.bundle.digest().to_string()))
}

fn shown(path: &Path) -> String {
    visible(&path.display().to_string())
}

/// A user by name where the system knows one.
fn user(id: u32) -> String {
    let named = fs::read_to_string("/etc/passwd").ok().and_then(|users| {
        users.lines().find_map(|line| {
            let mut fields = line.split(':');
            let name = fields.next()?;
            (fields.nth(1)?.parse() == Ok(id)).then(|| cell(name, 40))
        })
    });
    named.map_or_else(|| format!("user {id}"), |name| format!("user {name} ({id})"))
}
