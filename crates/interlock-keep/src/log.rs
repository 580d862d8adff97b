//! The log of snapshots: one line each, added at the end.
//!
//! A snapshot's id is the digest of its line, so a line that was changed does not have its id. A process that dies while
//! it writes leaves a line without its end; that line was promised to nobody, and the next writer cuts it off. A line
//! with an end that does not have its id is damage.

use std::fs::{self, OpenOptions};
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use interlock_core::Digest;

use crate::bytes::{hex, unhex};
use crate::fault::KeepFault;
use crate::index::Stamp;

const HEADER: &str = "interlock-keep 1\n";

/// The name of a snapshot: `snap_` and 32 hexadecimal digits.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SnapshotId(String);

impl SnapshotId {
    /// Reads the spelling of an id.
    pub fn parse(text: &str) -> Option<SnapshotId> {
        let digits = text.strip_prefix("snap_")?;
        interlock_core::unhex::<16>(digits).map(|_| SnapshotId(text.to_owned()))
    }

    /// Its spelling.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    fn of(line: &str) -> SnapshotId {
        let digits = hex(Digest::of(&[line]));
        SnapshotId(format!("snap_{}", digits.get(..32).unwrap_or_default()))
    }
}

impl std::fmt::Display for SnapshotId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

/// A tree as it was at a time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Snapshot {
    /// Its name.
    pub id: SnapshotId,
    /// Its place in the log: snapshots of one store are numbered from 1.
    pub number: u64,
    /// When it was made, in milliseconds since 1970, by the caller's clock.
    pub time_ms: u64,
    /// How many files, links and directories are in it.
    pub nodes: u64,
    /// How many bytes the files in it have.
    pub bytes: u64,
    /// How many places were left out; [`Store::left_out`](crate::Store::left_out) names them.
    pub left_out: u64,
    /// How many bytes it added to the store.
    pub stored_bytes: u64,
    /// The object of the project's directory.
    pub(crate) root: Digest,
    /// The object that lists the paths it is about; none if it is about all.
    pub(crate) scope: Option<Digest>,
}

impl Snapshot {
    /// Gives a snapshot its number and the id that follows from all of it.
    pub(crate) fn numbered(mut self, number: u64) -> Snapshot {
        self.number = number;
        self.id = SnapshotId::of(&self.fields());
        self
    }

    pub(crate) fn unnamed() -> SnapshotId {
        SnapshotId(String::new())
    }

    fn fields(&self) -> String {
        let scope = self.scope.map_or_else(|| "-".to_owned(), hex);
        let Snapshot { number, time_ms, nodes, bytes, left_out, stored_bytes, .. } = self;
        format!("{number} {time_ms} {nodes} {bytes} {left_out} {stored_bytes} {} {scope}", hex(self.root))
    }

    fn read(line: &str) -> Option<Snapshot> {
        let (fields, id) = line.rsplit_once(' ')?;
        let words: Vec<&str> = fields.split(' ').collect();
        let [number, time_ms, nodes, bytes, left_out, stored_bytes, root, scope] = words.as_slice() else {
            return None;
        };
        let snapshot = Snapshot {
            id: SnapshotId::parse(id)?,
            number: number.parse().ok()?,
            time_ms: time_ms.parse().ok()?,
            nodes: nodes.parse().ok()?,
            bytes: bytes.parse().ok()?,
            left_out: left_out.parse().ok()?,
            stored_bytes: stored_bytes.parse().ok()?,
            root: unhex(root)?,
            scope: if *scope == "-" { None } else { Some(unhex(scope)?) },
        };
        (SnapshotId::of(&snapshot.fields()) == snapshot.id && snapshot.fields() == fields).then_some(snapshot)
    }
}

/// The log of one store.
#[derive(Debug)]
pub(crate) struct Log {
    store: PathBuf,
    path: PathBuf,
    /// What the log was when a line was last added, its length, and the number of that line.
    last: Option<(Stamp, u64, u64)>,
}

impl Log {
    pub(crate) fn new(store: &Path) -> Log {
        Log { store: store.to_owned(), path: store.join("snapshots"), last: None }
    }

    /// All snapshots, oldest first, and how long the log is up to the end of the last whole line.
    pub(crate) fn read(&self) -> Result<(Vec<Snapshot>, u64), KeepFault> {
        let bytes = match fs::read(&self.path) {
            Ok(bytes) => bytes,
            Err(why) if why.kind() == std::io::ErrorKind::NotFound => return Ok((Vec::new(), 0)),
            Err(why) => return Err(KeepFault::read(&self.path, why)),
        };
        let whole = bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at.saturating_add(1));
        let damaged = |line: usize| KeepFault::damaged(format!("line {line} of the log of snapshots"));
        let text = bytes.get(..whole).and_then(|bytes| str::from_utf8(bytes).ok()).ok_or_else(|| damaged(0))?;
        let mut snapshots: Vec<Snapshot> = Vec::new();
        for (at, line) in text.lines().enumerate() {
            let number = at.saturating_add(1);
            if at == 0 {
                if HEADER.trim_end() != line {
                    let is_later = line.starts_with("interlock-keep ");
                    let store = self.store.clone();
                    return Err(if is_later { KeepFault::LaterFormat { store } } else { damaged(number) });
                }
                continue;
            }
            let snapshot = Snapshot::read(line).ok_or_else(|| damaged(number))?;
            if snapshots.last().is_some_and(|last| last.number >= snapshot.number) {
                return Err(damaged(number));
            }
            snapshots.push(snapshot);
        }
        Ok((snapshots, u64::try_from(whole).unwrap_or(0)))
    }

    /// The length of the log and the last number in it; read, unless it is as it was left.
    fn end(&mut self) -> Result<(u64, u64), KeepFault> {
        let now = rustix::fs::stat(&self.path).ok().map(|stat| Stamp::of(&stat));
        if let Some((stamp, whole, number)) = self.last.take()
            && now == Some(stamp)
        {
            return Ok((whole, number));
        }
        let (snapshots, whole) = self.read()?;
        Ok((whole, snapshots.last().map_or(0, |last| last.number)))
    }

    /// Adds a snapshot, whose number follows the last one. The lock must be held.
    pub(crate) fn add(&mut self, snapshot: Snapshot) -> Result<Snapshot, KeepFault> {
        let (whole, number) = self.end()?;
        let snapshot = snapshot.numbered(number.saturating_add(1));
        let header = if whole == 0 { HEADER } else { "" };
        let line = format!("{header}{} {}\n", snapshot.fields(), snapshot.id);
        let unwritten = |source| KeepFault::write(&self.path, source);
        let mut options = OpenOptions::new();
        options.write(true).create(true).truncate(false).mode(0o600);
        let mut file = options.open(&self.path).map_err(unwritten)?;
        file.set_len(whole).map_err(unwritten)?;
        std::io::Seek::seek(&mut file, std::io::SeekFrom::Start(whole)).map_err(unwritten)?;
        if let Err(source) = file.write_all(line.as_bytes()) {
            // A part of a line has no end, so it counts for nothing, even if it cannot be cut off.
            let _ = file.set_len(whole);
            return Err(unwritten(source));
        }
        let len = whole.saturating_add(u64::try_from(line.len()).unwrap_or(0));
        self.last = rustix::fs::fstat(&file).ok().map(|stat| (Stamp::of(&stat), len, snapshot.number));
        Ok(snapshot)
    }

    /// Replaces the log by one with these snapshots alone. The lock must be held.
    pub(crate) fn replace(&self, snapshots: &[Snapshot]) -> Result<(), KeepFault> {
        let mut text = HEADER.to_owned();
        for snapshot in snapshots {
            text.push_str(&format!("{} {}\n", snapshot.fields(), snapshot.id));
        }
        write_whole(&self.path, text.as_bytes())
    }
}

/// Writes a file under another name, syncs it, gives it its name and syncs the directory.
pub(crate) fn write_whole(path: &Path, bytes: &[u8]) -> Result<(), KeepFault> {
    write_named(path, bytes, true)
}

/// Writes a file under another name and gives it its name.
pub(crate) fn write_whole_unsynced(path: &Path, bytes: &[u8]) -> Result<(), KeepFault> {
    write_named(path, bytes, false)
}

fn write_named(path: &Path, bytes: &[u8], is_synced: bool) -> Result<(), KeepFault> {
    let temporary = path.with_extension("tmp");
    let written = || {
        let mut options = OpenOptions::new();
        let mut file = options.write(true).create(true).truncate(true).mode(0o600).open(&temporary)?;
        file.write_all(bytes)?;
        if is_synced {
            file.sync_data()?;
        }
        fs::rename(&temporary, path)?;
        path.parent().filter(|_| is_synced).map_or(Ok(()), |parent| fs::File::open(parent)?.sync_all())
    };
    written().map_err(|source| {
        let _ = fs::remove_file(&temporary);
        KeepFault::write(path, source)
    })
}
