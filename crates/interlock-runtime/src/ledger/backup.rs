//! Copies of a data directory that can be relied on: taken beside a running server, verified before they count.
//!
//! A backup holds what a ledger cannot do without: the database as of one moment, a checkpoint that this database holds,
//! the keys, and the bundle if it lies in the data directory. Its manifest names every file with its digest. Both
//! directions write to a temporary name and rename at the end, so under the final name there is all or nothing.
//!
//! Nothing here protects a backup from whoever can write to it: its manifest is not signed, the checkpoint in it is.

use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use interlock_core::action::Millis;
use interlock_core::bundle::Bundle;
use interlock_core::{Cause, Code, Digest, json};
use rusqlite::backup::{Backup, StepResult};
use rusqlite::{Connection, OpenFlags};
use serde::{Deserialize, Serialize};

use super::audit::{AuditReport, Progress, verify_with_key};
use super::checkpoint::{CheckpointFile, LedgerKey, write_new};
use super::recovery::{RecoveryFault, recover};
use super::sqlite::{DATABASE_NAME, SqliteReader};
use super::store::{Left, Reader, StoreFault};
use crate::clock::Entropy;

/// The format of manifests this version writes and reads.
const FORMAT: u32 = 1;
/// The manifest of a backup.
pub const MANIFEST_NAME: &str = "manifest.json";
const CHECKPOINT_NAME: &str = "checkpoint";
const KEY_NAME: &str = "ledger.key";
const BUNDLE_NAME: &str = "bundle";
/// The largest file beside the database: keys, checkpoint, files of a bundle.
const SMALL_BYTES_MAX: u64 = 16 * 1024 * 1024;
/// The most files a backup may name.
const FILES_MAX: usize = 4096;
/// How much is copied at a time.
const COPY_BYTES: usize = 64 * 1024;
/// How often a busy database is asked again, and how long between.
const BUSY_TRIES_MAX: u32 = 100;
const BUSY_PAUSE: std::time::Duration = std::time::Duration::from_millis(50);

/// What a backup says about itself.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Manifest {
    /// The format of this manifest.
    pub format: u32,
    /// When the backup was made.
    pub made_at: Millis,
    /// The version that made it.
    pub version: String,
    /// How many entries the ledger has.
    pub entries: u64,
    /// The root over them.
    pub root: Digest,
    /// How many of them the checkpoint covers.
    pub checkpoint: u64,
    /// Every file beside the manifest.
    pub files: Vec<ManifestFile>,
}

/// A file of a backup.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ManifestFile {
    /// Its name, `/` between directory and file.
    pub name: String,
    /// How long it is.
    pub bytes: u64,
    /// The SHA-256 of its bytes.
    pub digest: Digest,
}

/// A backup that was made.
#[derive(Debug)]
pub struct BackupReport {
    /// What it holds.
    pub manifest: Manifest,
    /// What lies in the data directory and was left out, by name.
    pub left_out: Vec<String>,
}

/// A data directory that was made from a backup.
#[derive(Debug)]
pub struct RestoreReport {
    /// What the backup said.
    pub manifest: Manifest,
    /// What the audit of the restored ledger found: nothing.
    pub audit: AuditReport,
}

/// Why there is no backup, or nothing was restored.
#[derive(Debug, thiserror::Error)]
pub enum BackupFault {
    /// A directory is not where or what it must be.
    #[error("{} {reason}", path.display())]
    Place {
        /// Which.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// A file cannot be read.
    #[error("{} cannot be read: {source}", path.display())]
    Read {
        /// Which.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// A file cannot be written.
    #[error("{} cannot be written: {source}", path.display())]
    Write {
        /// Which.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The manifest says what cannot be.
    #[error("{name}: {cause}", name = MANIFEST_NAME, cause = .0)]
    Manifest(#[source] Cause),
    /// A file is not the one the manifest names.
    #[error("`{}` is not the file the manifest names", interlock_core::display(name))]
    Digest {
        /// Which.
        name: String,
    },
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreFault),
    /// The ledger of the copy could not be continued.
    #[error(transparent)]
    Recovery(#[from] RecoveryFault),
    /// The audit of the copy found what is told.
    #[error(
        "the copy does not verify, {} findings, the first: {}",
        .0.findings_count,
        .0.findings.first().map_or("", String::as_str)
    )]
    Findings(AuditReport),
}

impl BackupFault {
    /// For machines.
    pub fn code(&self) -> Code {
        match self {
            BackupFault::Place { .. }
            | BackupFault::Read { .. }
            | BackupFault::Write { .. }
            | BackupFault::Store(_)
            | BackupFault::Recovery(RecoveryFault::Store(_)) => Code::FaultStore,
            BackupFault::Recovery(RecoveryFault::Clock { .. }) => Code::EnvironmentClock,
            BackupFault::Manifest(_)
            | BackupFault::Digest { .. }
            | BackupFault::Recovery(RecoveryFault::Damaged(_) | RecoveryFault::Checkpoint(_))
            | BackupFault::Findings(_) => Code::LedgerDamaged,
        }
    }

    fn place(path: &Path, reason: &str) -> BackupFault {
        BackupFault::Place { path: path.to_owned(), reason: reason.to_owned() }
    }
}

/// Copies a data directory to `out`, which must be absent or empty. A server may run on it meanwhile: everything it had
/// answered when this began is in the copy.
pub fn back_up(data: &Path, out: &Path, made_at: Millis, version: &str) -> Result<BackupReport, BackupFault> {
    let out = check_out(data, out)?;
    let staging = Staging::beside(&out)?;
    let (names, left_out) = choose(data)?;
    for name in &names {
        copy_small(data, staging.path(), name)?;
    }
    // The order matters: the database only grows, so one that is copied after the checkpoint holds it.
    copy_small(data, staging.path(), CHECKPOINT_NAME)?;
    copy_database(&data.join(DATABASE_NAME), &staging.path().join(DATABASE_NAME))?;
    let checkpoint = checkpoint_file(staging.path())?;
    let head = continue_from(staging.path(), &checkpoint, Millis::MAX)?;
    let sealed = checkpoint.read().map_err(RecoveryFault::Checkpoint)?.map_or(0, |checkpoint| checkpoint.size);
    let mut files = Vec::new();
    for name in names.iter().map(String::as_str).chain([CHECKPOINT_NAME, DATABASE_NAME]) {
        let path = staging.path().join(name);
        let (bytes, digest) = digest_of(&path).map_err(|source| BackupFault::Read { path, source })?;
        files.push(ManifestFile { name: name.to_owned(), bytes, digest });
    }
    let manifest = Manifest {
        format: FORMAT,
        made_at,
        version: version.to_owned(),
        entries: head.0,
        root: head.1,
        checkpoint: sealed,
        files,
    };
    let text = serde_json::to_string_pretty(&manifest).map_err(|error| BackupFault::Manifest(Cause::of(error)))?;
    let path = staging.path().join(MANIFEST_NAME);
    write_new(&path, format!("{text}\n").as_bytes()).map_err(|source| BackupFault::Write { path, source })?;
    sync_directories(staging.path()).map_err(|source| BackupFault::Write { path: out.clone(), source })?;
    staging.publish(&out)?;
    Ok(BackupReport { manifest, left_out })
}

/// Makes a data directory from a backup; it must be absent or empty. What is there afterwards was compared with the
/// manifest, passed the checks of a start, and was audited as a whole.
pub fn restore(from: &Path, data: &Path, now: Millis, progress: Progress<'_>) -> Result<RestoreReport, BackupFault> {
    let manifest = read_manifest(from)?;
    let exists = check_empty(data)?;
    let staging = if exists { Staging::within(data)? } else { Staging::beside(data)? };
    for file in &manifest.files {
        let copied = if file.name == DATABASE_NAME {
            copy_file(&from.join(&file.name), &staging.path().join(&file.name), u64::MAX)
        } else {
            copy_small(from, staging.path(), &file.name)
        }?;
        if copied != (file.bytes, file.digest) {
            return Err(BackupFault::Digest { name: file.name.clone() });
        }
    }
    let checkpoint = checkpoint_file(staging.path())?;
    let head = continue_from(staging.path(), &checkpoint, now)?;
    if head != (manifest.entries, manifest.root) {
        return Err(BackupFault::Manifest("it names another ledger than the one beside it".into()));
    }
    let sealed = checkpoint.read().map_err(RecoveryFault::Checkpoint)?;
    let audit = {
        let mut reader = SqliteReader::open(staging.path())?;
        let audited = verify_with_key(&mut reader, sealed, checkpoint.key(), now, progress);
        audited?
    };
    if audit.findings_count > 0 {
        return Err(BackupFault::Findings(audit));
    }
    sync_directories(staging.path()).map_err(|source| BackupFault::Write { path: data.to_owned(), source })?;
    if exists {
        staging.unpack(data, &manifest)?;
    } else {
        staging.publish(data)?;
    }
    Ok(RestoreReport { manifest, audit })
}

/// A source that gives nothing: a copy makes no keys.
struct NoEntropy;

impl Entropy for NoEntropy {
    fn fill(&self, _bytes: &mut [u8]) -> io::Result<()> {
        Err(io::Error::other("there is no ledger.key"))
    }
}

fn checkpoint_file(directory: &Path) -> Result<CheckpointFile, BackupFault> {
    let key = LedgerKey::open(directory, &NoEntropy).map_err(RecoveryFault::Checkpoint)?;
    Ok(CheckpointFile::new(directory, key))
}

/// Runs the checks of a start on a copy; size and root of its ledger.
fn continue_from(directory: &Path, checkpoint: &CheckpointFile, now: Millis) -> Result<(u64, Digest), BackupFault> {
    let built_in = Bundle::built_in().map_err(RecoveryFault::damaged)?;
    let mut reader = SqliteReader::open(directory)?;
    recover(&mut reader, Some(checkpoint), &Arc::new(built_in), now)?;
    let head = reader.head()?;
    Ok((head.size(), head.root()))
}

/// Where the backup goes, once it is clear that it may.
fn check_out(data: &Path, out: &Path) -> Result<PathBuf, BackupFault> {
    check_empty(out)?;
    let name = out.file_name().ok_or_else(|| BackupFault::place(out, "names no directory"))?;
    let parent = out.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let resolve =
        |path: &Path| fs::canonicalize(path).map_err(|source| BackupFault::Read { path: path.to_owned(), source });
    let (data, parent) = (resolve(data)?, resolve(parent)?);
    if parent.starts_with(&data) {
        return Err(BackupFault::place(out, "lies in the data directory, and would be lost with it"));
    }
    Ok(parent.join(name))
}

/// Refuses a directory that holds something; whether it is there at all.
fn check_empty(path: &Path) -> Result<bool, BackupFault> {
    match fs::read_dir(path) {
        Ok(entries) => {
            for entry in entries {
                let entry = entry.map_err(|source| BackupFault::Read { path: path.to_owned(), source })?;
                // A fresh file system has this one at its top.
                if entry.file_name() != "lost+found" {
                    return Err(BackupFault::place(path, "is not empty; name a directory that is, or that is absent"));
                }
            }
            Ok(true)
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(source) => Err(BackupFault::Read { path: path.to_owned(), source }),
    }
}

/// The files of a data directory that go into a backup beside database and checkpoint, and those that do not.
fn choose(data: &Path) -> Result<(Vec<String>, Vec<String>), BackupFault> {
    let unreadable = |path: &Path, source| BackupFault::Read { path: path.to_owned(), source };
    let (mut chosen, mut left_out) = (Vec::new(), Vec::new());
    for entry in fs::read_dir(data).map_err(|error| unreadable(data, error))? {
        let entry = entry.map_err(|error| unreadable(data, error))?;
        let kind = entry.file_type().map_err(|error| unreadable(&entry.path(), error))?;
        let name = entry.file_name().to_string_lossy().into_owned();
        // A key may be a link; what it leads to is the key.
        let is_file = fs::metadata(entry.path()).is_ok_and(|found| found.is_file());
        if is_file && is_key(&name) && !name.starts_with('.') {
            chosen.push(name);
        } else if kind.is_dir() && name == BUNDLE_NAME {
            for file in fs::read_dir(entry.path()).map_err(|error| unreadable(&entry.path(), error))? {
                let file = file.map_err(|error| unreadable(&entry.path(), error))?;
                let path = format!("{BUNDLE_NAME}/{}", file.file_name().to_string_lossy());
                // Links too: what they lead to is part of the bundle.
                if fs::metadata(file.path()).is_ok_and(|found| found.is_file()) && check_name(&path).is_ok() {
                    chosen.push(path);
                } else {
                    left_out.push(path);
                }
            }
        } else if !is_passing(&name) {
            left_out.push(name);
        }
    }
    chosen.sort();
    left_out.sort();
    if !chosen.iter().any(|name| name == KEY_NAME) {
        return Err(BackupFault::place(data, "holds no ledger: there is no ledger.key"));
    }
    Ok((chosen, left_out))
}

fn is_key(name: &str) -> bool {
    name.ends_with(".key") || name.ends_with(".keys")
}

/// What is copied in its own way, or belongs to a running server alone.
fn is_passing(name: &str) -> bool {
    name == CHECKPOINT_NAME || name == "lock" || name == ".checkpoint.tmp" || name.starts_with(DATABASE_NAME)
}

/// Copies a database as of one moment, whoever writes to it meanwhile.
fn copy_database(from: &Path, to: &Path) -> Result<(), BackupFault> {
    // SQLite would make the file readable for others; its journal takes after the file.
    write_new(to, b"").map_err(|source| BackupFault::Write { path: to.to_owned(), source })?;
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let open = |path: &Path| -> Result<Connection, BackupFault> {
        let fault = |error: rusqlite::Error| StoreFault::while_doing(path.display().to_string(), error);
        let connection = Connection::open_with_flags(path, flags).map_err(fault)?;
        connection.busy_timeout(std::time::Duration::from_secs(5)).map_err(fault)?;
        Ok(connection)
    };
    let failed = |error: rusqlite::Error| StoreFault::while_doing("the database cannot be copied", error);
    let source = open(from)?;
    source.pragma_update(None, "query_only", true).map_err(failed)?;
    let mut target = open(to)?;
    {
        let backup = Backup::new(&source, &mut target).map_err(failed)?;
        let mut tries = 0_u32;
        // All pages in one step: between steps a busy writer would make it begin again, for ever.
        while backup.step(-1).map_err(failed)? != StepResult::Done {
            tries = tries.saturating_add(1);
            if tries > BUSY_TRIES_MAX {
                return Err(
                    StoreFault { left: Left::TryAgain, cause: "the database stayed locked; try again".into() }.into()
                );
            }
            std::thread::sleep(BUSY_PAUSE);
        }
    }
    target.close().map_err(|(_, error)| failed(error))?;
    let synced = File::open(to).and_then(|file| file.sync_all());
    synced.map_err(|source| BackupFault::Write { path: to.to_owned(), source })
}

/// Copies a file of reasonable size by its name in a data directory.
fn copy_small(from: &Path, to: &Path, name: &str) -> Result<(u64, Digest), BackupFault> {
    if let Some((directory, _)) = name.split_once('/') {
        let path = to.join(directory);
        let made = fs::DirBuilder::new().recursive(true).mode(0o700).create(&path);
        made.map_err(|source| BackupFault::Write { path, source })?;
    }
    copy_file(&from.join(name), &to.join(name), SMALL_BYTES_MAX)
}

/// Copies a file for its owner only; how long it is, and its digest.
fn copy_file(from: &Path, to: &Path, bytes_max: u64) -> Result<(u64, Digest), BackupFault> {
    let unreadable = |source| BackupFault::Read { path: from.to_owned(), source };
    let unwritable = |source| BackupFault::Write { path: to.to_owned(), source };
    let found = fs::metadata(from).map_err(unreadable)?;
    if !found.is_file() {
        // Opening a pipe would wait for a writer.
        return Err(unreadable(io::Error::other("it is not a file")));
    }
    let mut source = File::open(from).map_err(unreadable)?;
    let mut target = fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(to).map_err(unwritable)?;
    let mut digest = Digesting::default();
    let mut buffer = vec![0; COPY_BYTES];
    loop {
        let count = read_some(&mut source, &mut buffer).map_err(unreadable)?;
        let Some(part) = buffer.get(..count).filter(|part| !part.is_empty()) else { break };
        digest.add(part);
        if digest.bytes > bytes_max {
            return Err(unreadable(io::Error::other("it is larger than any such file should be")));
        }
        target.write_all(part).map_err(unwritable)?;
    }
    target.sync_all().map_err(unwritable)?;
    Ok(digest.end())
}

fn digest_of(path: &Path) -> io::Result<(u64, Digest)> {
    let mut file = File::open(path)?;
    let mut digest = Digesting::default();
    let mut buffer = vec![0; COPY_BYTES];
    loop {
        let count = read_some(&mut file, &mut buffer)?;
        match buffer.get(..count).filter(|part| !part.is_empty()) {
            Some(part) => digest.add(part),
            None => return Ok(digest.end()),
        }
    }
}

fn read_some(file: &mut File, buffer: &mut [u8]) -> io::Result<usize> {
    loop {
        match file.read(buffer) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            read => return read,
        }
    }
}

/// A digest of more bytes than should be in memory.
struct Digesting {
    context: ring::digest::Context,
    bytes: u64,
}

impl Default for Digesting {
    fn default() -> Digesting {
        Digesting { context: ring::digest::Context::new(&ring::digest::SHA256), bytes: 0 }
    }
}

impl Digesting {
    fn add(&mut self, part: &[u8]) {
        self.context.update(part);
        self.bytes = self.bytes.saturating_add(u64::try_from(part.len()).unwrap_or(u64::MAX));
    }

    fn end(self) -> (u64, Digest) {
        let digest = self.context.finish();
        (self.bytes, Digest::from_bytes(digest.as_ref().try_into().unwrap_or_default()))
    }
}

fn read_manifest(from: &Path) -> Result<Manifest, BackupFault> {
    let path = from.join(MANIFEST_NAME);
    let mut text = String::new();
    let read = File::open(&path).and_then(|file| file.take(SMALL_BYTES_MAX).read_to_string(&mut text));
    read.map_err(|source| BackupFault::Read { path, source })?;
    let manifest: Manifest = json::from_str(&text).map_err(|error| BackupFault::Manifest(Cause::of(error)))?;
    if manifest.format != FORMAT {
        let reason = format!("this version reads backups of format {FORMAT}, not {}", manifest.format);
        return Err(BackupFault::Manifest(reason.into()));
    }
    if manifest.files.len() > FILES_MAX {
        return Err(BackupFault::Manifest(format!("it names more than {FILES_MAX} files").into()));
    }
    let mut names: Vec<&str> = manifest.files.iter().map(|file| file.name.as_str()).collect();
    for name in &names {
        check_name(name)?;
    }
    for needed in [DATABASE_NAME, CHECKPOINT_NAME, KEY_NAME] {
        if !names.contains(&needed) {
            return Err(BackupFault::Manifest(format!("it does not name `{needed}`").into()));
        }
    }
    names.sort_unstable();
    let count = names.len();
    names.dedup();
    if names.len() != count {
        return Err(BackupFault::Manifest("it names a file twice".into()));
    }
    Ok(manifest)
}

/// Refuses a name that could lead elsewhere, or that a server would take for something else.
fn check_name(name: &str) -> Result<(), BackupFault> {
    let plain = |part: &str| !part.is_empty() && !part.starts_with('.') && !part.contains(['/', '\\', '\0']);
    let is_plain = match name.split_once('/') {
        Some((directory, file)) => directory == BUNDLE_NAME && plain(file),
        None => plain(name) && (is_key(name) || name == CHECKPOINT_NAME || name == DATABASE_NAME),
    };
    if is_plain {
        return Ok(());
    }
    Err(BackupFault::Manifest(format!("`{}` is no file of a backup", interlock_core::display(name)).into()))
}

fn sync_directories(directory: &Path) -> io::Result<()> {
    let bundle = directory.join(BUNDLE_NAME);
    if bundle.is_dir() {
        File::open(&bundle)?.sync_all()?;
    }
    File::open(directory)?.sync_all()
}

/// A directory under a temporary name; removed unless it was put in its place.
struct Staging {
    path: PathBuf,
    done: bool,
}

impl Staging {
    fn beside(place: &Path) -> Result<Staging, BackupFault> {
        let name = place.file_name().ok_or_else(|| BackupFault::place(place, "names no directory"))?;
        let temporary = format!(".{}.partial-{}", name.to_string_lossy(), std::process::id());
        Staging::make(place.with_file_name(temporary))
    }

    fn within(place: &Path) -> Result<Staging, BackupFault> {
        Staging::make(place.join(format!(".partial-{}", std::process::id())))
    }

    fn make(path: PathBuf) -> Result<Staging, BackupFault> {
        match fs::DirBuilder::new().mode(0o700).create(&path) {
            Ok(()) => Ok(Staging { path, done: false }),
            Err(source) => Err(BackupFault::Write { path, source }),
        }
    }

    fn path(&self) -> &Path {
        &self.path
    }

    /// Gives the directory its name.
    fn publish(mut self, place: &Path) -> Result<(), BackupFault> {
        let unwritable = |source| BackupFault::Write { path: place.to_owned(), source };
        fs::rename(&self.path, place).map_err(unwritable)?;
        self.done = true;
        let parent = place.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
        File::open(parent).and_then(|parent| parent.sync_all()).map_err(unwritable)
    }

    /// Moves the files into the directory around this one, which may be the top of a file system and so cannot be
    /// replaced. The database comes last: a checkpoint without its database is refused at a start, so nothing in between
    /// passes for a ledger.
    fn unpack(self, place: &Path, manifest: &Manifest) -> Result<(), BackupFault> {
        let unwritable = |source| BackupFault::Write { path: place.to_owned(), source };
        let mut names: Vec<&str> = manifest.files.iter().map(|file| top_of(&file.name)).collect();
        names.sort_unstable();
        names.dedup();
        names.retain(|name| *name != DATABASE_NAME);
        names.push(DATABASE_NAME);
        let mut moved: Vec<&str> = Vec::new();
        for name in names {
            if let Err(error) = fs::rename(self.path.join(name), place.join(name)) {
                for name in moved {
                    // Back to where everything is removed together.
                    let _ = fs::rename(place.join(name), self.path.join(name));
                }
                return Err(unwritable(error));
            }
            moved.push(name);
        }
        File::open(place).and_then(|place| place.sync_all()).map_err(unwritable)
    }
}

fn top_of(name: &str) -> &str {
    name.split('/').next().unwrap_or(name)
}

impl Drop for Staging {
    fn drop(&mut self) {
        if !self.done {
            // What cannot be removed has a name that nobody takes for a backup.
            let _ = fs::remove_dir_all(&self.path);
        }
    }
}
