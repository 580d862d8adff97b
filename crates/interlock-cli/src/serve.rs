//! `interlock serve`: puts the parts together, says where everything is, and serves until it is told to stop.

use std::collections::BTreeMap;
use std::env;
use std::fs;
use std::io::Write;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use clap::Args;
use interlock_core::bundle::Bundle;
use interlock_core::contain::Abilities;
use interlock_core::json::quote;
use interlock_core::rule::shell_quoted;
use interlock_core::{Cause, Code, visible};
use interlock_http::deliver::{
    CHECKPOINT_DESTINATION, Checkpoints, Deliveries, Destinations, LedgerOutbox, Newest, Schedule,
    checkpoint_destination_of, destinations_of, keep_file,
};
use interlock_http::hooks::{Hooks, HooksSetup, Served, serve_socket};
use interlock_http::{Level, Service, Tls};
use interlock_runtime::attestation::AttestationKeys;
use interlock_runtime::clock::{SystemClock, SystemEntropy};
use interlock_runtime::gate::Gate;
use interlock_runtime::ledger::{CheckpointFile, Ledger, LedgerKey, Ports, SqliteStore};
use interlock_runtime::reach::{Reach, own_user, reach};
use interlock_runtime::startup::{
    DataDirectory, StartupFault, check_environment, check_files, make_directory, operator_key, operator_key_in,
};
use interlock_runtime::state_commit::settle_open_commits;
use interlock_runtime::undo_door::settle_open_undos;
use interlock_verifiers::Ground;
use tokio::net::TcpListener;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::Notify;

use crate::telemetry::{Reports, TelemetryArguments};
use crate::{Fault, Outcome, Report, daemon, print, style};

/// Where to listen unless told otherwise.
pub(crate) const LISTEN: &str = "127.0.0.1:7878";

#[derive(Debug, Args)]
#[command(after_help = "Example: interlock serve --data ./data --listen 127.0.0.1:7878

Files: the operator's key is INTERLOCK_HOME/operator.key, or DIR/operator.key if --data is given and INTERLOCK_HOME is
not set; INTERLOCK_OPERATOR_KEY overrides it. INTERLOCK_HOME is ~/.interlock by default.")]
pub(crate) struct ServeArguments {
    /// Where the ledger is kept [default: INTERLOCK_HOME/data]
    #[arg(long, value_name = "DIR")]
    data: Option<PathBuf>,
    /// Address and port to listen on; port 0 takes a free one
    #[arg(long, value_name = "ADDR", default_value = LISTEN)]
    listen: SocketAddr,
    /// Where everything of this user is kept, with the socket for hooks [default: INTERLOCK_HOME, else ~/.interlock]
    #[arg(long, value_name = "DIR", conflicts_with = "data")]
    home: Option<PathBuf>,
    /// Take no address at all, only the socket: what hooks start when nothing runs yet
    #[arg(long, conflicts_with_all = ["data", "listen", "tls_cert"])]
    socket_only: bool,
    /// Directory with interlock.toml [default: DATA/bundle, else what is built in]
    #[arg(long, value_name = "DIR")]
    bundle: Option<PathBuf>,
    /// Serve HTTPS with this chain of certificates (PEM, the server's own first); needs --tls-key
    #[arg(long, value_name = "FILE", requires = "tls_key")]
    tls_cert: Option<PathBuf>,
    /// The key of that certificate (PEM, not encrypted, readable by its owner only)
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    tls_key: Option<PathBuf>,
    /// Print where everything is as one line of JSON
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    telemetry: TelemetryArguments,
}

/// Where things are.
pub(crate) struct Places {
    pub(crate) data: PathBuf,
    pub(crate) key: PathBuf,
    /// Where the socket for hooks is, unless a data directory was given.
    pub(crate) home: Option<PathBuf>,
}

impl Places {
    /// The data directory and the key file, as flags and environment say.
    pub(crate) fn find(data: Option<&Path>) -> Result<Places, Fault> {
        let is_set = env::var_os("INTERLOCK_HOME").is_some_and(|home| !home.is_empty());
        if let (Some(data), false) = (data, is_set) {
            return Ok(Places { data: data.to_owned(), key: data.join("operator.key"), home: None });
        }
        let home = home().ok_or_else(|| Fault::new("neither INTERLOCK_HOME nor HOME is set; give --data"))?;
        let key = home.join("operator.key");
        Ok(match data {
            Some(data) => Places { data: data.to_owned(), key, home: None },
            None => Places { data: home.join("data"), key, home: Some(home) },
        })
    }

    /// Everything of one home.
    pub(crate) fn of_home(home: &Path) -> Places {
        Places { data: home.join("data"), key: home.join("operator.key"), home: Some(home.to_owned()) }
    }
}

/// `INTERLOCK_HOME`, else `.interlock` in the user's own directory.
pub(crate) fn home() -> Option<PathBuf> {
    let variable = |name: &str| env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    variable("INTERLOCK_HOME").or_else(|| Some(variable("HOME")?.join(".interlock")))
}

pub(crate) fn run(arguments: &ServeArguments) -> Result<Outcome, Fault> {
    let reports = Reports::start(&arguments.telemetry)?;
    let served = match prepare(arguments, &reports) {
        Ok(ready) => serve(&ready, arguments, &reports),
        Err(Refused::Startup(fault)) => {
            reports.fault(Fault::with_code(fault.code, fault.message)).report(arguments.json);
            Ok(Outcome::Refused)
        }
        Err(Refused::Fault(fault)) => Err(fault),
    };
    let served = served.map_err(|fault| reports.fault(fault));
    reports.close();
    served
}

struct Ready {
    places: Places,
    bundle: Arc<Bundle>,
    bundle_from: String,
    key: String,
    key_from: String,
    ledger: Ledger,
    attestation: Arc<AttestationKeys>,
    /// Whom events are sent to.
    destinations: Destinations,
    /// Whose checkpoints these are.
    source: String,
    tls: Option<Tls>,
    /// What proves to hooks who answers; taken once.
    proving: Mutex<Option<LedgerKey>>,
    /// Held until the end.
    _data: DataDirectory,
}

enum Refused {
    Startup(StartupFault),
    Fault(Fault),
}

impl<T: Into<StartupFault>> From<T> for Refused {
    fn from(fault: T) -> Refused {
        Refused::Startup(fault.into())
    }
}

fn prepare(arguments: &ServeArguments, reports: &Reports) -> Result<Ready, Refused> {
    let variables: Vec<_> = env::vars_os().collect();
    for word in check_environment(variables.iter().map(|(name, value)| (name.as_os_str(), value.as_os_str())))? {
        reports.word(&word);
    }
    let tls = match (&arguments.tls_cert, &arguments.tls_key) {
        (Some(certificate), Some(key)) => Some(Tls::load(certificate, key)?),
        (None, None) => None,
        (Some(_), None) | (None, Some(_)) => {
            return Err(Refused::Fault(Fault::new("--tls-cert and --tls-key come together")));
        }
    };
    let places = match &arguments.home {
        Some(home) => Places::of_home(home),
        None => Places::find(arguments.data.as_deref()).map_err(Refused::Fault)?,
    };
    if let Some(home) = places.key.parent() {
        make_directory(home)?;
        check_files(home)?;
    }
    let data = DataDirectory::take(&places.data)?;
    let entropy = SystemEntropy::new();
    let given = env::var_os(OPERATOR_KEY).map(|value| operator_key_in(OPERATOR_KEY, &value)).transpose()?.flatten();
    let (key, key_from) = match given {
        Some(key) => (key, OPERATOR_KEY.to_owned()),
        None => (operator_key(&places.key, &entropy)?, places.key.display().to_string()),
    };
    let own = [&arguments.bundle, &arguments.tls_cert, &arguments.tls_key];
    let own: Vec<&Path> = own.into_iter().filter_map(|path| path.as_deref()).collect();
    let (bundle, bundle_from) = load_bundle(arguments.bundle.as_deref(), &places, &own_places(&own, &places)?)?;
    let bundle = Arc::new(bundle);
    let store = SqliteStore::open(data.path()).map_err(interlock_runtime::ledger::RecoveryFault::from)?;
    let signing =
        LedgerKey::open(data.path(), &entropy).map_err(interlock_runtime::ledger::RecoveryFault::Checkpoint)?;
    let signing = signing.with_reach(reach_of(data.path()));
    let proving =
        LedgerKey::open(data.path(), &entropy).map_err(interlock_runtime::ledger::RecoveryFault::Checkpoint)?;
    let (destinations, source) = (destinations_of(&bundle).map_err(invalid)?, signing.origin().to_owned());
    let attestation = Arc::new(AttestationKeys::open(data.path(), signing.origin())?);
    let ports = Ports {
        store: Box::new(store),
        clock: Arc::new(SystemClock),
        entropy: Arc::new(entropy),
        checkpoint: Some(CheckpointFile::new(data.path(), signing)),
    };
    let ledger = Ledger::start(ports, Arc::clone(&bundle))?;
    reports.listen_to(&ledger);
    settle_open_commits(&ledger).map_err(interlock_runtime::ledger::RecoveryFault::from)?;
    settle_open_undos(&ledger).map_err(interlock_runtime::ledger::RecoveryFault::from)?;
    Ok(Ready {
        places,
        bundle,
        bundle_from,
        key,
        key_from,
        ledger,
        attestation,
        destinations,
        source,
        tls,
        proving: Mutex::new(Some(proving)),
        _data: data,
    })
}

fn invalid(error: impl std::fmt::Display) -> StartupFault {
    StartupFault { code: Code::ConfigInvalid, message: error.to_string() }
}

/// How far the files of a data directory are from agents; where it cannot be told, the smaller claim.
fn reach_of(data: &Path) -> Reach {
    use std::os::unix::fs::MetadataExt;
    fs::metadata(data).map_or(Reach::SameUser, |found| reach(found.uid(), own_user(), None))
}

/// Where the server's own files are, links resolved: no agent may touch them.
pub(crate) fn own_places(more: &[&Path], places: &Places) -> Result<Vec<String>, StartupFault> {
    let mut own: Vec<PathBuf> = vec![places.data.clone(), places.key.clone()];
    // The home as a whole, whatever it is called: the token of the socket lies in it, and what was installed.
    own.extend(places.home.clone());
    own.extend(more.iter().map(|path| path.to_path_buf()));
    let mut resolved = Vec::new();
    for path in own {
        // What is not there needs no guarding: a key from the environment has no file.
        let Ok(path) = fs::canonicalize(&path) else { continue };
        let text = path.to_str().ok_or_else(|| StartupFault {
            code: Code::EnvironmentFiles,
            message: format!("{} is not UTF-8, so no rule could guard it; use another directory", path.display()),
        })?;
        resolved.push(text.to_owned());
    }
    resolved.sort();
    resolved.dedup();
    Ok(resolved)
}

/// Reads `interlock.toml` and the files beside it that it may name. Without places of its own nothing is written.
pub(crate) fn load_bundle(
    given: Option<&Path>,
    places: &Places,
    own_places: &[String],
) -> Result<(Bundle, String), StartupFault> {
    let invalid = |message: String| StartupFault { code: Code::ConfigInvalid, message };
    // Anything but a plain no switches it on.
    let required = env::var("DOOM_LOOP_GUARD_REQUIRED")
        .is_ok_and(|value| !["", "0", "false", "no", "off"].contains(&value.trim().to_ascii_lowercase().as_str()));
    let directory = given.map_or_else(|| places.data.join("bundle"), Path::to_owned);
    if given.is_none() && !directory.exists() {
        let bundle =
            Bundle::load_for("", &BTreeMap::new(), required, own_places).map_err(|error| invalid(error.to_string()))?;
        return Ok((bundle, "built in".to_owned()));
    }
    check_files(&directory)?;
    let unreadable = |path: &Path, error: std::io::Error| invalid(format!("{}: {error}", path.display()));
    let mut files = BTreeMap::new();
    for entry in fs::read_dir(&directory).map_err(|error| unreadable(&directory, error))? {
        let path = entry.map_err(|error| unreadable(&directory, error))?.path();
        check_files(&path)?;
        let is_named =
            path.extension().is_some_and(|extension| ["json", "sql", "toml"].iter().any(|it| extension == *it));
        if let (true, Some(name)) = (is_named, path.file_name().and_then(|name| name.to_str())) {
            files.insert(name.to_owned(), fs::read_to_string(&path).map_err(|error| unreadable(&path, error))?);
        }
    }
    let path = directory.join("interlock.toml");
    let text = fs::read_to_string(&path).map_err(|error| unreadable(&path, error))?;
    let bundle = Bundle::load_for(&text, &files, required, own_places);
    let bundle = bundle.map_err(|error| invalid(format!("{}: {error}", path.display())))?;
    destinations_of(&bundle).map_err(|error| invalid(format!("{}: {error}", path.display())))?;
    checkpoint_destination_of(&bundle).map_err(|error| invalid(format!("{}: {error}", path.display())))?;
    // What is not there yet is ours all the same: the socket, a key that will be made, what the next version keeps.
    let home = places.key.parent().map(settled).filter(|_| !own_places.is_empty());
    let own: Vec<PathBuf> = own_places.iter().map(PathBuf::from).chain(home).collect();
    check_written(&bundle, &own).map_err(|reason| invalid(format!("{}: {reason}", path.display())))?;
    Ground::load(&bundle).map_err(|error| invalid(format!("{}: {error}", path.display())))?;
    Ok((bundle, path.display().to_string()))
}

/// Refuses places to write to that are the server's own, or hold them: what a bundle has written there would be in the
/// place of a key, the ledger or the bundle itself.
fn check_written(bundle: &Bundle, own_places: &[PathBuf]) -> Result<(), Cause> {
    let own = |path: &Path| {
        // A link is replaced where it lies and written through where it leads, so neither may be ours.
        let lies = path.parent().zip(path.file_name()).map(|(parent, name)| settled(parent).join(name));
        let places = [Some(settled(path)), lies];
        let meets =
            |own: &&PathBuf| places.iter().flatten().any(|place| place.starts_with(own) || own.starts_with(place));
        own_places.iter().find(meets).map(|own| own.display().to_string())
    };
    if let Some(file) = bundle.checkpoints().and_then(|elsewhere| elsewhere.file.as_deref())
        && let Some(own) = own(Path::new(file))
    {
        return Err(format!("checkpoints.file must lie elsewhere; {own} is the server's own").into());
    }
    for (name, guard) in bundle.guards() {
        for root in guard.roots() {
            if let Some(own) = own(Path::new(root.path())) {
                let root = interlock_core::display(root.path());
                return Err(format!(
                    "guards.{name}: allowed_commit_roots must lie elsewhere, neither in the server's own places nor above \
                     them; {root} meets {own}"
                )
                .into());
            }
        }
    }
    Ok(())
}

/// Where a path leads: links resolved as far as it exists, the rest as it is written.
fn settled(path: &Path) -> PathBuf {
    let mut rest = Vec::new();
    for ancestor in path.ancestors() {
        if let Ok(resolved) = fs::canonicalize(ancestor) {
            return rest.iter().rev().fold(resolved, |settled: PathBuf, part: &PathBuf| {
                match part.as_os_str().to_str() {
                    Some("..") => settled.parent().map_or_else(|| settled.clone(), Path::to_path_buf),
                    _ => settled.join(part),
                }
            });
        }
        rest.extend(ancestor.components().next_back().map(|part| PathBuf::from(part.as_os_str())));
    }
    path.to_owned()
}

fn serve(ready: &Ready, arguments: &ServeArguments, reports: &Reports) -> Result<Outcome, Fault> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    let runtime = runtime.map_err(|error| Fault::new(format!("cannot start threads: {error}")))?;
    let served = runtime.block_on(async {
        // Before anybody can know that it runs: from then on a signal is an order to stop, and no longer a sudden end.
        let stop = stop_signal().map_err(|error| Fault::new(format!("cannot wait for signals: {error}")))?;
        let listener = if arguments.socket_only {
            None
        } else {
            let bound = TcpListener::bind(arguments.listen).await;
            Some(bound.map_err(|error| Fault::new(format!("cannot listen on {}: {error}", arguments.listen)))?)
        };
        let address = listener.as_ref().map(TcpListener::local_addr).transpose();
        let address = address.map_err(|error| Fault::new(error.to_string()))?;
        let gate = Arc::new(Gate::new(ready.ledger.clone(), Arc::clone(&ready.bundle)));
        let (entropy, telemetry) = (Arc::new(SystemEntropy::new()), reports.telemetry.clone());
        let service = Service::with_telemetry(gate, &ready.key, entropy, telemetry);
        let service = service.with_attestation(Arc::clone(&ready.attestation));
        let deliveries =
            start_deliveries(ready, reports).map_err(|fault| Fault::with_code(fault.code, fault.message))?;
        let service = service.with_deliveries(deliveries.iter().map(|sent| Arc::clone(sent.metrics())).collect());
        let told_to_stop = Arc::new(Notify::new());
        let socket = open_socket(ready, &service, &told_to_stop)?;
        let place = match (address, &socket) {
            (Some(address), _) => format!("{}://{address}", if ready.tls.is_some() { "https" } else { "http" }),
            (None, Some((socket, _))) => socket.display().to_string(),
            (None, None) => String::new(),
        };
        reports.event(Level::Info, "start", "", &[("version", env!("CARGO_PKG_VERSION")), ("listen", &place)]);
        if let Some(address) = address {
            print(welcome(ready, address, arguments.json).as_bytes())?;
        }
        let stop = async {
            tokio::select! {
                () = stop => {}
                () = told_to_stop.notified() => {}
            }
            end_in_time();
        };
        let served = interlock_http::serve_with(service, listener, ready.tls.clone(), stop).await;
        if let Some((socket, answering)) = socket {
            answering.end().await;
            // Whoever comes now finds nobody, and starts the next one.
            let _ = fs::remove_file(socket);
        }
        // What did not arrive is in the outbox and sent after the next start.
        for sent in deliveries {
            sent.stop().await;
        }
        served.map_err(|fault| Fault::with_code(Code::FaultStore, fault.to_string()))
    });
    // Whoever still reads on a thread of its own has nobody left to tell.
    runtime.shutdown_background();
    served?;
    reports.event(Level::Info, "stop", "", &[]);
    Ok(Outcome::Clean)
}

/// Opens the door for coding agents, where there is a home for it. The token is new with each run.
fn open_socket(ready: &Ready, service: &Arc<Service>, stop: &Arc<Notify>) -> Result<Option<(PathBuf, Served)>, Fault> {
    let Some(home) = &ready.places.home else { return Ok(None) };
    let Some(key) = ready.proving.lock().unwrap_or_else(PoisonError::into_inner).take() else { return Ok(None) };
    let home = fs::canonicalize(home).map_err(|error| Fault::new(format!("{}: {error}", home.display())))?;
    let unwritable = |error: std::io::Error| Fault::new(format!("{}: {error}", home.join(daemon::RUN).display()));
    daemon::make_run_directory(&home).map_err(unwritable)?;
    let token = daemon::new_token(&home).map_err(unwritable)?;
    let user_home = env::var("HOME").ok().filter(|user| !user.is_empty());
    let on_path = env::var("PATH").unwrap_or_default();
    let on_path = on_path.split(':').filter(|place| place.starts_with('/')).map(str::to_owned).collect();
    let abilities = abilities();
    let binary = env::current_exe().map(|path| path.to_string_lossy().into_owned()).unwrap_or_default();
    let setup =
        HooksSetup { home: home.clone(), user_home, on_path, token, key, stop: Arc::clone(stop), abilities, binary };
    let hooks = Hooks::new(Arc::clone(service), setup);
    let hooks = hooks.map_err(|fault| Fault::with_code(Code::FaultStore, fault.to_string()))?;
    let socket = home.join(daemon::SOCKET);
    let served = serve_socket(Arc::new(hooks), &socket)
        .map_err(|fault| Fault::with_code(Code::EnvironmentFiles, fault.to_string()))?;
    Ok(Some((socket, served)))
}

/// What the kernel can hold command lines to.
fn abilities() -> Abilities {
    // What cannot be told holds nothing.
    let of = |told: interlock_runner::Abilities| Abilities {
        namespaces: told.namespaces && told.rung == interlock_runner::Rung::Full,
        landlock: told.landlock_abi,
        seccomp: told.seccomp && told.notifier,
        narrow: told.rung == interlock_runner::Rung::Narrow,
    };
    crate::exec_arguments::probe_apart().map(of).unwrap_or_default()
}

/// The variable with the operator's key.
const OPERATOR_KEY: &str = "INTERLOCK_OPERATOR_KEY";
/// The most that stopping takes: 10 s for requests, 2 s for events and for each of log and spans, and the last commit.
const STOP_TIME_MAX: Duration = Duration::from_secs(20);
/// How often a checkpoint is sent elsewhere.
const CHECKPOINTS_EVERY: Duration = Duration::from_secs(10);

/// Events to principals, and checkpoints to where the bundle wants them as well.
fn start_deliveries(ready: &Ready, reports: &Reports) -> Result<Vec<Deliveries>, StartupFault> {
    let (clock, entropy) = (Arc::new(SystemClock), Arc::new(SystemEntropy::new()));
    let mut started = Vec::new();
    if !ready.destinations.is_empty() {
        let log = reports.telemetry.log.clone();
        let outbox = LedgerOutbox::new(ready.ledger.clone(), move |reason| {
            if let Some(log) = &log {
                log.event(Level::Warn, "event_given_up", reason, &[]);
            }
        });
        let (destinations, schedule) = (ready.destinations.clone(), Schedule::default());
        let principals = Deliveries::start(outbox, destinations, schedule, clock.clone(), entropy.clone())?;
        let wake = principals.wake();
        ready.ledger.on_events(move || wake.wake());
        started.push(principals);
    }
    let Some(elsewhere) = ready.bundle.checkpoints() else { return Ok(started) };
    let ledger = ready.ledger.clone();
    let newest: Newest = Arc::new(move || ledger.signed_checkpoint().map(|signed| signed.note.clone()));
    if let Some(destination) = checkpoint_destination_of(&ready.bundle).map_err(invalid)? {
        let mut destinations = Destinations::default();
        destinations.add(CHECKPOINT_DESTINATION, destination).map_err(invalid)?;
        let outbox = Checkpoints::new(Arc::clone(&newest), &ready.source, CHECKPOINTS_EVERY, clock.clone());
        started.push(Deliveries::start(Arc::new(outbox), destinations, Schedule::default(), clock, entropy)?);
    }
    if let Some(file) = elsewhere.file.clone().map(PathBuf::from) {
        let log = reports.telemetry.log.clone();
        let fault = move |error: &std::io::Error| {
            if let Some(log) = &log {
                log.event(Level::Warn, "checkpoint_elsewhere", &error.to_string(), &[]);
            }
        };
        tokio::spawn(keep_file(newest, file, CHECKPOINTS_EVERY, fault));
    }
    Ok(started)
}

/// Ends the process if stopping takes longer than everything in it may. What was answered is on the disk, so nothing is
/// lost with what hangs.
fn end_in_time() {
    thread::spawn(|| {
        thread::sleep(STOP_TIME_MAX);
        let _ = writeln!(std::io::stderr(), "interlock: stopping took longer than {} s", STOP_TIME_MAX.as_secs());
        std::process::exit(2);
    });
}

fn stop_signal() -> std::io::Result<impl Future<Output = ()>> {
    let (mut interrupt, mut terminate) = (signal(SignalKind::interrupt())?, signal(SignalKind::terminate())?);
    Ok(async move {
        tokio::select! {
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
        }
    })
}

/// A word that a shell reads as it is.
pub(crate) fn shell_word(text: &str) -> String {
    // In quotes it would be a name like any other.
    text.strip_prefix("~/").map_or_else(|| shell_quoted(text), |rest| format!("~/{}", shell_quoted(rest)))
}

fn welcome(ready: &Ready, address: SocketAddr, json: bool) -> String {
    let (data, entries) = (ready.places.data.display().to_string(), ready.ledger.size());
    let (version, digest) = (env!("CARGO_PKG_VERSION"), ready.bundle.digest());
    let scheme = if ready.tls.is_some() { "https" } else { "http" };
    if json {
        return format!(
            "{{\"listen\":{},\"data\":{},\"key\":{},\"entries\":{entries},\"bundle\":{}}}\n",
            quote(&format!("{scheme}://{address}")),
            quote(&data),
            quote(&ready.key_from),
            quote(&digest.to_string()),
        );
    }
    let key = if ready.key_from == OPERATOR_KEY {
        "$INTERLOCK_OPERATOR_KEY".to_owned()
    } else {
        format!("$(cat {})", shell_word(&ready.key_from))
    };
    format!(
        "{}Interlock {version}{} listens on {scheme}://{address}
  data    {} (entries: {entries})
  key     {}
  bundle  {} ({digest})

Register an agent:
  curl -s {scheme}://{address}/agents/register -H \"Authorization: Bearer {key}\" \\
    -d '{{\"name\":\"first\",\"type\":\"supervised\",\"principal_id\":\"me\"}}'
Stop with Ctrl-C.
",
        style::GOOD,
        style::RESET,
        visible(&data),
        visible(&ready.key_from),
        visible(&ready.bundle_from),
    )
}
