//! The way to the daemon of this user: one request over its socket, one answer, within limits and by a deadline.
//!
//! What a request or an answer means is the caller's business. Who may ask is decided by the files: the socket lies in
//! a directory that only its user may write.

use std::fs::{self, DirBuilder, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use interlock_core::json::BYTES_MAX;
use interlock_core::{Code, Digest, visible};
use interlock_http::client::{self as http, Request, Timed};
use interlock_runtime::clock::{Entropy, SystemEntropy, hex};
use interlock_runtime::ledger::is_proven;
use interlock_runtime::startup::{check_files, make_directory};
use interlock_wire::Running;

use crate::{Fault, version};

/// Where a home keeps what is of one run of the daemon.
pub const RUN: &str = "run";
/// Where the socket lies in a home.
pub const SOCKET: &str = "run/interlock.sock";
/// What a caller must know, in a file of its owner's alone.
const TOKEN: &str = "run/token";
/// Held by whoever starts the daemon.
const START_LOCK: &str = "run/start.lock";
/// What the daemon says while nobody listens.
const LOG: &str = "run/daemon.log";
/// How long to wait between two attempts to reach a daemon that starts.
const RETRY: Duration = Duration::from_millis(3);
/// How long to wait before another attempt to start one while the last is on its way out; longer each time.
const RESTART: Duration = Duration::from_millis(30);
const RESTART_MAX: Duration = Duration::from_secs(1);
/// How much is read of what a daemon said that did not start.
const LOG_BYTES_MAX: u64 = 600;
/// The environment a daemon that hooks start gets: an agent's own could redirect it.
const ENVIRONMENT: [&str; 7] = ["HOME", "PATH", "LANG", "LC_ALL", "TZ", "USER", "LOGNAME"];

/// The directory of one run of the daemon, its owner's alone.
pub fn make_run_directory(home: &Path) -> io::Result<()> {
    match DirBuilder::new().mode(0o700).create(home.join(RUN)) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(error),
        Ok(()) | Err(_) => Ok(()),
    }
}

/// Draws the token of this run and leaves it for callers; what the daemon keeps is its SHA-256.
pub fn new_token(home: &Path) -> io::Result<Digest> {
    let mut random = [0; 32];
    SystemEntropy::new().fill(&mut random)?;
    let token = hex(&random);
    let (path, partial) = (home.join(TOKEN), home.join(format!("{TOKEN}.new")));
    let mut options = OpenOptions::new();
    let mut file = options.write(true).create(true).truncate(true).mode(0o600).open(&partial)?;
    file.write_all(token.as_bytes())?;
    fs::rename(partial, path)?;
    Ok(Digest::of_bytes(token.as_bytes()))
}

/// What the daemon answered.
#[derive(Debug)]
pub struct Told {
    /// The status of HTTP.
    pub status: u16,
    /// Its version, if it says so.
    pub version: Option<String>,
    /// What it said.
    pub body: String,
}

/// The daemon of one home.
#[derive(Debug)]
pub struct Daemon {
    home: PathBuf,
    socket: PathBuf,
    /// The SHA-256 of its key, if the caller knows it.
    fingerprint: Option<Digest>,
    /// What is started where none runs; without one, this very program.
    binary: Option<PathBuf>,
}

impl Daemon {
    /// Whoever listens in a home.
    pub fn of(home: &Path) -> Daemon {
        Daemon { home: home.to_owned(), socket: home.join(SOCKET), fingerprint: None, binary: None }
    }

    /// The same, believed only if it proves to hold this key.
    #[must_use]
    pub fn pinned(self, fingerprint: Digest) -> Daemon {
        Daemon { fingerprint: Some(fingerprint), ..self }
    }

    /// The same, with this program where one has to be started.
    #[must_use]
    pub fn started_as(self, binary: &Path) -> Daemon {
        Daemon { binary: Some(binary.to_owned()), ..self }
    }

    /// Starts a daemon unless one runs, and waits until it listens. Of many who try at once one starts it.
    pub fn ensure(&self, deadline: Instant) -> Result<(), Fault> {
        if UnixStream::connect(&self.socket).is_ok() {
            return Ok(());
        }
        let trouble = |error: io::Error| Fault::new(format!("the Interlock daemon cannot be started: {error}"));
        make_directory(&self.home).map_err(|fault| Fault::with_code(fault.code, fault.message))?;
        make_run_directory(&self.home).map_err(trouble)?;
        let mut options = OpenOptions::new();
        let lock = options.write(true).create(true).truncate(false).mode(0o600).open(self.home.join(START_LOCK));
        let lock = lock.map_err(trouble)?;
        let (mut started, mut pause): (Option<Child>, Duration) = (None, RESTART);
        while Instant::now() < deadline {
            if UnixStream::connect(&self.socket).is_ok() {
                return Ok(());
            }
            let is_over = match &mut started {
                Some(child) => child.try_wait().map_err(trouble)?.is_some(),
                None => false,
            };
            if is_over {
                self.judge_end()?;
                thread::sleep(pause.min(deadline.saturating_duration_since(Instant::now())));
                pause = pause.saturating_mul(2).min(RESTART_MAX);
            }
            if is_over || (started.is_none() && lock.try_lock().is_ok()) {
                started = Some(self.start().map_err(trouble)?);
            }
            thread::sleep(RETRY);
        }
        let next = format!("what it said is in {}", visible(&self.home.join(LOG).display().to_string()));
        Err(Fault::new("the Interlock daemon did not start in time").and_then_do(next).transient())
    }

    /// Whether to try again after a daemon ended instead of listening: only if the one before it is still on its way out.
    fn judge_end(&self) -> Result<(), Fault> {
        let mut said = Vec::new();
        let log = fs::File::open(self.home.join(LOG)).and_then(|log| log.take(LOG_BYTES_MAX).read_to_end(&mut said));
        let said = if log.is_ok() { String::from_utf8_lossy(&said).into_owned() } else { String::new() };
        if said.contains(Code::EnvironmentInUse.as_str()) {
            return Ok(());
        }
        let said = if said.trim().is_empty() { "it said nothing" } else { said.trim() };
        Err(Fault::new(format!("the Interlock daemon does not start: {}", visible(said)))
            .and_then_do("ask a person to run `interlock doctor`"))
    }

    fn start(&self) -> io::Result<Child> {
        let mut options = OpenOptions::new();
        let log = options.write(true).create(true).truncate(true).mode(0o600).open(self.home.join(LOG))?;
        let binary = self.binary.clone().map_or_else(std::env::current_exe, Ok)?;
        let mut command = Command::new(binary);
        command.args(["serve", "--socket-only", "--home"]).arg(&self.home).env_clear();
        command.envs(ENVIRONMENT.iter().filter_map(|name| Some((name, std::env::var_os(name)?))));
        // Its own group, and none of the caller's streams: a host waits until they are closed.
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(log).current_dir("/").process_group(0);
        command.spawn()
    }

    /// What runs there, by its own word.
    pub fn who(&self, deadline: Instant) -> Result<Running, Fault> {
        let told = self.request("GET", "/daemon", &[], &[], deadline)?;
        let unclear = || Fault::new(format!("the daemon at {} does not say who it is", self.shown()));
        interlock_wire::read(&told.body).map_err(|_| unclear())
    }

    /// Puts a daemon of this version in the place of an older one. Of many who try at once, each stops the old one only.
    pub fn replace_older(&self, deadline: Instant) -> Result<(), Fault> {
        let running = self.who(deadline)?;
        if version::is_newer(version::OWN, &running.version) {
            self.post("/daemon/stop", &running.process.to_string(), deadline)?;
            // It answers before it goes.
            let still = |other: Running| other.process == running.process;
            while Instant::now() < deadline && self.who(deadline).is_ok_and(still) {
                thread::sleep(RETRY);
            }
        }
        self.ensure(deadline)
    }

    fn token(&self) -> Result<String, Fault> {
        let path = self.home.join(TOKEN);
        fs::read_to_string(&path)
            .map_err(|error| Fault::new(format!("{}: {error}", visible(&path.display().to_string()))).transient())
    }

    /// Sends a body to a path; answers with the status and the body, whatever they are.
    ///
    /// A fault before the request left says that nothing was changed; one after it cannot.
    pub fn post(&self, path: &str, body: &str, deadline: Instant) -> Result<(u16, String), Fault> {
        let told = self.request("POST", path, body.as_bytes(), &[], deadline)?;
        Ok((told.status, told.body))
    }

    /// The same for any method and bytes, with more headers.
    pub fn request(
        &self,
        method: &str,
        path: &str,
        body: &[u8],
        headers: &[(&str, &str)],
        deadline: Instant,
    ) -> Result<Told, Fault> {
        // First the socket: that nobody listens says more than that a file is missing.
        let stream = self.connect(deadline)?;
        let token = self.token()?;
        let mut random = [0; 16];
        SystemEntropy::new().fill(&mut random).map_err(|error| Fault::new(error.to_string()))?;
        let challenge = hex(&random);
        let broken = |error: io::Error| {
            let what = match error.kind() {
                io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => "did not answer in time".to_owned(),
                io::ErrorKind::InvalidData => format!("answered with what is not HTTP: {error}"),
                _ => format!("broke the connection off: {error}"),
            };
            let next = "it may have been done or not; look before you try again";
            Fault::new(format!("the daemon at {} {what}", self.shown())).and_then_do(next).transient()
        };
        let mut all = vec![
            ("accept", "application/json"),
            ("content-type", "application/json"),
            ("x-interlock-token", token.trim()),
            ("x-interlock-challenge", &challenge),
        ];
        all.extend_from_slice(headers);
        let request = Request { method, target: path, authority: "interlock", headers: &all, body: Some(body) };
        let answer = http::exchange(stream, &request, BYTES_MAX).and_then(http::Answer::text);
        let (head, body) = answer.map_err(broken)?;
        if let Some(fingerprint) = self.fingerprint {
            let proof = head.header("x-interlock-proof").unwrap_or("");
            if !is_proven(fingerprint, &challenge, body.as_bytes(), proof) {
                let next =
                    "ask a person to run `interlock doctor`; after a move of the home, `interlock install` again";
                let message = format!("whoever listens at {} is not the daemon this was installed for", self.shown());
                return Err(Fault::new(message).and_then_do(next));
            }
        }
        let version = head.header("x-interlock-version").map(str::to_owned);
        Ok(Told { status: head.status, version, body })
    }

    /// A connection to our own daemon, or none at all: what others can put there may be theirs.
    fn connect(&self, deadline: Instant) -> Result<Timed<UnixStream>, Fault> {
        let next = "nothing was changed; ask a person to run `interlock doctor`";
        check_files(&self.socket).map_err(|fault| Fault::with_code(fault.code, fault.message).and_then_do(next))?;
        http::connect_unix(&self.socket, deadline).map_err(|error| {
            let what = match error.kind() {
                io::ErrorKind::TimedOut => "it takes no more connections".to_owned(),
                io::ErrorKind::NotFound => "there is no such socket".to_owned(),
                io::ErrorKind::ConnectionRefused => "nobody listens there".to_owned(),
                _ => error.to_string(),
            };
            let message = format!("the Interlock daemon does not run at {}: {what}", self.shown());
            Fault::new(message).and_then_do(next).transient()
        })
    }

    fn shown(&self) -> String {
        visible(&self.socket.display().to_string())
    }
}
