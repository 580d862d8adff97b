//! Directories that misbehave: one that fails at a chosen call, one that records what a commit did, and a model of what
//! a power cut can leave of a record.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::io;
use std::time::Duration;

use interlock_runtime::directory::{Directory, Entry};

/// Passes calls on until the chosen one, which fails. A write that fails has written half of its bytes.
#[derive(Debug)]
pub struct Failing<D> {
    inner: D,
    fail_at: usize,
    error: io::ErrorKind,
    calls: Cell<usize>,
    failed: Cell<Option<&'static str>>,
}

impl<D> Failing<D> {
    /// Fails at the call with this number, counted from 0, and passes every other one on.
    pub fn new(inner: D, fail_at: usize, error: io::ErrorKind) -> Failing<D> {
        Failing { inner, fail_at, error, calls: Cell::new(0), failed: Cell::new(None) }
    }

    /// The name of the call that failed, if it came to that.
    pub fn failed(&self) -> Option<&'static str> {
        self.failed.get()
    }

    fn step(&self, name: &'static str) -> io::Result<()> {
        let call = self.calls.replace(self.calls.get() + 1);
        if call == self.fail_at {
            self.failed.set(Some(name));
            return Err(self.error.into());
        }
        Ok(())
    }
}

impl<D: Directory> Directory for &Failing<D> {
    type File = D::File;
    type Lock = D::Lock;

    fn lock(&self, wait: Duration) -> io::Result<Option<D::Lock>> {
        match self.step("lock") {
            // Somebody else kept it for the whole time.
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(None),
            other => other?,
        }
        self.inner.lock(wait)
    }

    fn is_in_place(&self) -> io::Result<bool> {
        self.step("is_in_place")?;
        self.inner.is_in_place()
    }

    fn compare(&self, name: &str, expected: &[u8]) -> io::Result<Entry> {
        self.step("compare")?;
        self.inner.compare(name, expected)
    }

    fn create(&self, name: &str) -> io::Result<D::File> {
        self.step("create")?;
        self.inner.create(name)
    }

    fn write(&self, file: &mut D::File, bytes: &[u8]) -> io::Result<()> {
        if let Err(error) = self.step("write") {
            self.inner.write(file, &bytes[..bytes.len() / 2])?;
            return Err(error);
        }
        self.inner.write(file, bytes)
    }

    fn set_mode(&self, file: &mut D::File, mode: u32) -> io::Result<()> {
        self.step("set_mode")?;
        self.inner.set_mode(file, mode)
    }

    fn sync_file(&self, file: &mut D::File) -> io::Result<()> {
        self.step("sync_file")?;
        self.inner.sync_file(file)
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        self.step("rename")?;
        self.inner.rename(from, to)
    }

    fn sync(&self) -> io::Result<()> {
        self.step("sync")?;
        self.inner.sync()
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        self.step("remove")?;
        self.inner.remove(name)
    }
}

/// One thing a commit did to the disk. Files are told apart by the order of their creation.
#[derive(Debug, Clone, PartialEq, Eq)]
#[expect(missing_docs, reason = "the fields are what their names say")]
pub enum Operation {
    /// A new file got a name.
    Create { name: String, file: usize },
    /// Bytes were appended.
    Write { file: usize, bytes: Vec<u8> },
    /// The file's bytes are on the disk.
    SyncFile { file: usize },
    /// A name was put in place of another.
    Rename { from: String, to: String },
    /// A name was removed.
    Remove { name: String },
    /// The names are on the disk.
    SyncDirectory,
}

/// Passes every call on and records what changes the disk.
#[derive(Debug)]
pub struct Recording<D> {
    inner: D,
    operations: RefCell<Vec<Operation>>,
    files: Cell<usize>,
}

impl<D> Recording<D> {
    /// An empty record.
    pub fn new(inner: D) -> Recording<D> {
        Recording { inner, operations: RefCell::default(), files: Cell::new(0) }
    }

    /// What was done so far.
    pub fn operations(&self) -> Vec<Operation> {
        self.operations.borrow().clone()
    }

    fn record(&self, operation: Operation) {
        self.operations.borrow_mut().push(operation);
    }
}

impl<D: Directory> Directory for &Recording<D> {
    type File = (usize, D::File);
    type Lock = D::Lock;

    fn lock(&self, wait: Duration) -> io::Result<Option<D::Lock>> {
        self.inner.lock(wait)
    }

    fn is_in_place(&self) -> io::Result<bool> {
        self.inner.is_in_place()
    }

    fn compare(&self, name: &str, expected: &[u8]) -> io::Result<Entry> {
        self.inner.compare(name, expected)
    }

    fn create(&self, name: &str) -> io::Result<(usize, D::File)> {
        let created = self.inner.create(name)?;
        let file = self.files.replace(self.files.get() + 1);
        self.record(Operation::Create { name: name.to_owned(), file });
        Ok((file, created))
    }

    fn write(&self, file: &mut (usize, D::File), bytes: &[u8]) -> io::Result<()> {
        self.inner.write(&mut file.1, bytes)?;
        self.record(Operation::Write { file: file.0, bytes: bytes.to_vec() });
        Ok(())
    }

    fn set_mode(&self, file: &mut (usize, D::File), mode: u32) -> io::Result<()> {
        self.inner.set_mode(&mut file.1, mode)
    }

    fn sync_file(&self, file: &mut (usize, D::File)) -> io::Result<()> {
        self.inner.sync_file(&mut file.1)?;
        self.record(Operation::SyncFile { file: file.0 });
        Ok(())
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        self.inner.rename(from, to)?;
        self.record(Operation::Rename { from: from.to_owned(), to: to.to_owned() });
        Ok(())
    }

    fn sync(&self) -> io::Result<()> {
        self.inner.sync()?;
        self.record(Operation::SyncDirectory);
        Ok(())
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        self.inner.remove(name)?;
        self.record(Operation::Remove { name: name.to_owned() });
        Ok(())
    }
}

/// What a disk may hold after a power cut: names and the bytes of their files.
pub type Disk = BTreeMap<String, Vec<u8>>;

/// Every disk a power cut right after `operations` can leave: what was synced is there, and any part of the rest.
///
/// A synced file keeps the bytes written before the sync; other writes may each be lost, and the last may be torn. A
/// synced directory keeps the names given before the sync; every later change of a name may be lost, whatever came
/// after it.
pub fn after_power_cut(before: &Disk, operations: &[Operation]) -> Vec<Disk> {
    let synced_names =
        operations.iter().rposition(|operation| *operation == Operation::SyncDirectory).map_or(0, |at| at + 1);
    let is_name = |operation: &Operation| {
        matches!(operation, Operation::Create { .. } | Operation::Rename { .. } | Operation::Remove { .. })
    };
    let is_unsynced_write = |at: usize, operation: &Operation| match operation {
        Operation::Write { file, .. } => !operations[at..]
            .iter()
            .any(|later| matches!(later, Operation::SyncFile { file: synced } if synced == file)),
        _ => false,
    };
    let optional: Vec<usize> = (0..operations.len())
        .filter(|at| (*at >= synced_names && is_name(&operations[*at])) || is_unsynced_write(*at, &operations[*at]))
        .collect();
    let mut disks = Vec::new();
    for lost in 0_u32..1 << optional.len() {
        let is_lost = |at: usize| optional.iter().position(|o| *o == at).is_some_and(|bit| lost >> bit & 1 == 1);
        for torn in [false, true] {
            disks.push(replay(before, operations, &is_lost, &|at| torn && is_unsynced_write(at, &operations[at])));
        }
    }
    disks
}

fn replay(
    before: &Disk,
    operations: &[Operation],
    is_lost: &dyn Fn(usize) -> bool,
    is_torn: &dyn Fn(usize) -> bool,
) -> Disk {
    // A file's bytes and its names are two things: a rename can survive when the creation's own entry did not.
    let mut contents: BTreeMap<usize, Vec<u8>> = BTreeMap::new();
    let mut in_memory: BTreeMap<String, usize> = BTreeMap::new();
    let mut on_disk: BTreeMap<String, Option<usize>> = BTreeMap::new();
    for (at, operation) in operations.iter().enumerate() {
        match operation {
            Operation::Create { name, file } => {
                contents.insert(*file, Vec::new());
                in_memory.insert(name.clone(), *file);
                if !is_lost(at) {
                    on_disk.insert(name.clone(), Some(*file));
                }
            }
            Operation::Write { file, bytes } if !is_lost(at) => {
                let kept = if is_torn(at) { bytes.len() / 2 } else { bytes.len() };
                contents.entry(*file).or_default().extend_from_slice(&bytes[..kept]);
            }
            Operation::Rename { from, to } => {
                let file = in_memory.remove(from).expect("a file made by this commit");
                in_memory.insert(to.clone(), file);
                if !is_lost(at) {
                    on_disk.insert(from.clone(), None);
                    on_disk.insert(to.clone(), Some(file));
                }
            }
            Operation::Remove { name } => {
                in_memory.remove(name);
                if !is_lost(at) {
                    on_disk.insert(name.clone(), None);
                }
            }
            Operation::Write { .. } | Operation::SyncFile { .. } | Operation::SyncDirectory => {}
        }
    }
    let mut disk = before.clone();
    for (name, file) in on_disk {
        match file {
            Some(file) => disk.insert(name, contents[&file].clone()),
            None => disk.remove(&name),
        };
    }
    disk
}
