//! What must hold before a server opens its store: no foreign code in the process, no foreign hands on the files.

use std::ffi::OsStr;
use std::fmt;
use std::fs::{self, File, Metadata};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use interlock_core::Code;
use rustix::fs::{FlockOperation, flock};

use crate::clock::{Entropy, hex};
use crate::ledger::RecoveryFault;

/// Why a server does not start.
#[derive(Debug)]
pub struct StartupFault {
    /// For machines.
    pub code: Code,
    /// For people: what is wrong and what to do.
    pub message: String,
}

impl fmt::Display for StartupFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.code, self.message)
    }
}

impl std::error::Error for StartupFault {}

impl StartupFault {
    fn new(code: Code, message: impl Into<String>) -> StartupFault {
        StartupFault { code, message: message.into() }
    }
}

impl From<RecoveryFault> for StartupFault {
    fn from(fault: RecoveryFault) -> StartupFault {
        let code = match fault {
            RecoveryFault::Damaged(_) | RecoveryFault::Checkpoint(_) => Code::LedgerDamaged,
            RecoveryFault::Clock { .. } => Code::EnvironmentClock,
            RecoveryFault::Store(_) => Code::FaultStore,
        };
        StartupFault::new(code, fault.to_string())
    }
}

/// Variables that make the loader run foreign code in this process.
const LOADERS: [&str; 3] = ["LD_PRELOAD", "LD_AUDIT", "DYLD_INSERT_LIBRARIES"];
/// Only worth a word, and not even that where `cargo run` sets it, which names itself.
const WORTH_A_WORD: &str = "LD_LIBRARY_PATH";
const BUILD_TOOL: &str = "CARGO";

/// Refuses an environment that loads foreign code. Returns what is worth a word.
pub fn check_environment<'a>(
    variables: impl Iterator<Item = (&'a OsStr, &'a OsStr)>,
) -> Result<Vec<String>, StartupFault> {
    let (mut words, mut is_built_and_run) = (Vec::new(), false);
    for (name, value) in variables.filter(|(_, value)| !value.is_empty()) {
        is_built_and_run |= name == BUILD_TOOL;
        if LOADERS.iter().any(|loader| name == *loader) {
            let name = name.to_string_lossy();
            let message = format!("{name} loads foreign code into this process; unset it ({} bytes)", value.len());
            return Err(StartupFault::new(Code::EnvironmentLoader, message));
        }
        if name == WORTH_A_WORD {
            words.push(format!("{WORTH_A_WORD} is set: libraries may come from there"));
        }
    }
    if is_built_and_run {
        words.clear();
    }
    Ok(words)
}

/// Refuses a file or directory that others own or can write, or that lies in a directory they can write.
pub fn check_files(path: &Path) -> Result<(), StartupFault> {
    let refused = |path: &Path, what: &str| {
        let message = format!("{} {what}; make it yours alone (chown, chmod go-w)", path.display());
        Err(StartupFault::new(Code::EnvironmentFiles, message))
    };
    let own = rustix::process::geteuid().as_raw();
    let unknown = |path: &Path, error: &io::Error| {
        StartupFault::new(Code::EnvironmentFiles, format!("{} cannot be looked at: {error}", path.display()))
    };
    let found = match fs::metadata(path) {
        Ok(found) => found,
        // What is not there yet is made later, by us.
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(unknown(path, &error)),
    };
    if found.uid() != own {
        return refused(path, "belongs to another user");
    }
    if others_may_write(&found) {
        return refused(path, "can be written by others");
    }
    let resolved = fs::canonicalize(path).map_err(|error| {
        StartupFault::new(Code::EnvironmentFiles, format!("{} cannot be resolved: {error}", path.display()))
    })?;
    for ancestor in resolved.ancestors().skip(1) {
        let found = fs::metadata(ancestor).map_err(|error| unknown(ancestor, &error))?;
        let sticky = found.mode() & 0o1000 != 0;
        // Directories that only one's own group may write are usual where every user has a group.
        let own_group = found.gid() == rustix::process::getegid().as_raw() && found.mode() & 0o002 == 0;
        if others_may_write(&found) && !sticky && !own_group {
            return refused(ancestor, "can be written by others");
        }
        if found.uid() != own && found.uid() != 0 {
            return refused(ancestor, "belongs to another user");
        }
    }
    Ok(())
}

/// Refuses a secret that others can read, or whatever [`check_files`] refuses.
pub fn check_secret_file(path: &Path) -> Result<(), StartupFault> {
    check_files(path)?;
    match fs::metadata(path) {
        Ok(found) if found.mode() & 0o077 != 0 => {
            let message = format!("{} can be read by others; make it yours alone (chmod 600)", path.display());
            Err(StartupFault::new(Code::EnvironmentFiles, message))
        }
        // What cannot be read is refused by whoever reads it.
        Ok(_) | Err(_) => Ok(()),
    }
}

/// Whether a file among ours holds a key, by its name.
pub fn is_key_file(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension == "key" || extension == "keys")
}

fn others_may_write(found: &Metadata) -> bool {
    found.mode() & 0o022 != 0
}

/// Makes a directory for its owner only, unless it is there.
pub fn make_directory(path: &Path) -> Result<(), StartupFault> {
    let made = fs::DirBuilder::new().recursive(true).mode(0o700).create(path);
    let fault = |error| StartupFault::new(Code::FaultStore, format!("{} cannot be made: {error}", path.display()));
    made.map_err(fault)
}

/// A data directory that this process holds alone.
#[derive(Debug)]
pub struct DataDirectory {
    path: PathBuf,
    _lock: File,
}

impl DataDirectory {
    /// Makes the directory if there is none, checks who can write to it, and takes it.
    pub fn take(path: &Path) -> Result<DataDirectory, StartupFault> {
        let fault = |what: &str, error: &io::Error| {
            StartupFault::new(Code::FaultStore, format!("{} {what}: {error}", path.display()))
        };
        make_directory(path)?;
        check_files(path)?;
        for entry in fs::read_dir(path).map_err(|error| fault("cannot be read", &error))? {
            let path = entry.map_err(|error| fault("cannot be read", &error))?.path();
            if is_key_file(&path) { check_secret_file(&path)? } else { check_files(&path)? }
        }
        let lock = fs::OpenOptions::new().create(true).truncate(false).write(true).mode(0o600).open(path.join("lock"));
        let lock = lock.map_err(|error| fault("cannot be locked", &error))?;
        flock(&lock, FlockOperation::NonBlockingLockExclusive).map_err(|_| {
            let message = format!("another process holds {}; stop it or use another --data", path.display());
            StartupFault::new(Code::EnvironmentInUse, message)
        })?;
        Ok(DataDirectory { path: path.to_owned(), _lock: lock })
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

/// The fewest bytes of an operator's key: fewer can be guessed.
const KEY_BYTES_MIN: usize = 16;
const KEY_FORM: &str = "16 visible ASCII characters or more, no blanks";

/// The key in a text: long enough, and of what a header can carry.
fn key_in(text: &str) -> Option<String> {
    let key = text.trim();
    (key.len() >= KEY_BYTES_MIN && key.bytes().all(|byte| byte.is_ascii_graphic())).then(|| key.to_owned())
}

/// The operator's key in a variable of the environment, held to the rules of a file; none if it is empty.
pub fn operator_key_in(name: &str, value: &OsStr) -> Result<Option<String>, StartupFault> {
    if value.is_empty() {
        return Ok(None);
    }
    let key = value.to_str().and_then(key_in);
    let refused = || {
        let message = format!("{name} holds no key ({KEY_FORM}); set another, or unset it to use the key file");
        StartupFault::new(Code::ConfigInvalid, message)
    };
    key.map(Some).ok_or_else(refused)
}

/// Reads the operator's key from a file, making one if there is none.
pub fn operator_key(path: &Path, entropy: &dyn Entropy) -> Result<String, StartupFault> {
    let fault =
        |error: &io::Error| StartupFault::new(Code::FaultStore, format!("{} cannot be used: {error}", path.display()));
    match fs::read_to_string(path) {
        Ok(text) => {
            check_secret_file(path)?;
            key_in(&text).ok_or_else(|| {
                let message = format!("{} holds no key ({KEY_FORM}); remove it to have one made", path.display());
                StartupFault::new(Code::EnvironmentFiles, message)
            })
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            let mut bytes = [0; 32];
            entropy.fill(&mut bytes).map_err(|error| fault(&error))?;
            let key = format!("interlock_{}", hex(&bytes));
            crate::ledger::write_new(path, format!("{key}\n").as_bytes()).map_err(|error| fault(&error))?;
            Ok(key)
        }
        Err(error) => Err(fault(&error)),
    }
}

/// Raises the limit of open files to what is allowed, and says how many connections fit beside our own files.
pub fn room_for_connections(wanted: usize) -> usize {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    /// For store, log, checkpoint, readers and standard streams.
    const OWN_FILES: u64 = 64;
    let limit = getrlimit(Resource::Nofile);
    let raised = setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, maximum: limit.maximum }).is_ok();
    let open = if raised { limit.maximum } else { limit.current };
    let room = open.map_or(u64::MAX, |open| open.saturating_sub(OWN_FILES)).max(1);
    usize::try_from(room).unwrap_or(wanted).min(wanted)
}
