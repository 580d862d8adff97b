//! A project, a store, and what can be said about a tree by looking at it without the crate.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::Command;

use interlock_keep::{Fate, KeepFault, LeaveOut, Limits, Scope, Snapshot, SnapshotId, Store, Undo, Undone};

/// What the tests leave out.
pub(crate) const LEAVE_OUT: LeaveOut<'static> = LeaveOut {
    is_regenerable: &|path| path.ends_with("node_modules") || path.ends_with("target"),
    is_secret: &|path| path.ends_with(".env"),
};

/// What is usual, but for files of git's objects, which have second names as soon as they are not small.
pub(crate) const LINKING: Limits = Limits { linked_bytes_min: 1 << 20, ..Limits::USUAL };

/// A project beside its store.
pub(crate) struct World {
    pub(crate) directory: tempfile::TempDir,
    pub(crate) project: PathBuf,
    pub(crate) stores: PathBuf,
    pub(crate) store: Store,
}

impl World {
    pub(crate) fn new() -> World {
        World::with_limits(LINKING)
    }

    pub(crate) fn with_limits(limits: Limits) -> World {
        let directory = tempfile::tempdir().expect("a directory");
        let base = directory.path().canonicalize().expect("a path");
        let (project, stores) = (base.join("project"), base.join("stores"));
        fs::create_dir(&project).expect("a project");
        let store = Store::open(&stores, &project, limits).expect("a store");
        World { directory, project, stores, store }
    }

    /// The same store, opened anew: as another process would.
    pub(crate) fn reopened(&self) -> Store {
        Store::open(&self.stores, &self.project, LINKING).expect("a store")
    }

    pub(crate) fn keep(&mut self) -> SnapshotId {
        self.try_keep().expect("kept").id
    }

    pub(crate) fn try_keep(&mut self) -> Result<Snapshot, KeepFault> {
        self.store.keep(&Scope::All, LEAVE_OUT, 1_000)
    }

    pub(crate) fn path(&self, relative: &str) -> PathBuf {
        self.project.join(relative)
    }

    pub(crate) fn write(&self, relative: &str, text: impl AsRef<[u8]>) {
        let path = self.path(relative);
        fs::create_dir_all(path.parent().expect("a parent")).expect("directories");
        fs::write(path, text).expect("written");
    }

    pub(crate) fn read(&self, relative: &str) -> String {
        fs::read_to_string(self.path(relative)).unwrap_or_else(|why| panic!("{relative}: {why}"))
    }

    pub(crate) fn tree(&self) -> Looks {
        looks(&self.project)
    }

    /// Runs lines of shell in the project; they must end well.
    pub(crate) fn shell(&self, lines: &str) -> String {
        shell(&self.project, lines)
    }

    pub(crate) fn undo(&mut self, before: &SnapshotId, after: &SnapshotId) -> Undone {
        self.undo_named(before, after, &[])
    }

    pub(crate) fn undo_named(&mut self, before: &SnapshotId, after: &SnapshotId, named: &[&str]) -> Undone {
        let undo = undo(before, after, named);
        let plan = self.store.plan(&undo, LEAVE_OUT, 2_000).expect("a plan");
        self.store.carry_out(&plan, LEAVE_OUT, 3_000).expect("carried out")
    }

    /// The files of the store with some ending.
    pub(crate) fn store_files(&self, ending: &str) -> Vec<PathBuf> {
        let mut found: Vec<PathBuf> =
            files(&self.stores).into_iter().filter(|path| path.to_string_lossy().ends_with(ending)).collect();
        found.sort();
        found
    }
}

pub(crate) fn undo(before: &SnapshotId, after: &SnapshotId, named: &[&str]) -> Undo {
    let named = named.iter().map(PathBuf::from).collect();
    Undo { before: before.clone(), after: after.clone(), earlier: Vec::new(), overlapping: Vec::new(), named }
}

/// What became of one path.
pub(crate) fn fate(undone: &Undone, path: &str) -> Option<Fate> {
    undone.paths.iter().find(|(known, _)| known == Path::new(path)).map(|(_, fate)| *fate)
}

pub(crate) fn shell(directory: &Path, lines: &str) -> String {
    let done = Command::new("bash")
        .args(["-euc", lines])
        .current_dir(directory)
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .env("GIT_CONFIG_SYSTEM", "/dev/null")
        .env("GIT_AUTHOR_NAME", "A")
        .env("GIT_AUTHOR_EMAIL", "a@example.com")
        .env("GIT_COMMITTER_NAME", "A")
        .env("GIT_COMMITTER_EMAIL", "a@example.com")
        .output()
        .expect("bash");
    let (out, err) = (String::from_utf8_lossy(&done.stdout), String::from_utf8_lossy(&done.stderr));
    assert!(done.status.success(), "{lines}\n{out}{err}");
    out.into_owned()
}

/// A tree by path: kind, mode, and bytes or target, and attributes.
pub(crate) type Looks = BTreeMap<PathBuf, String>;

pub(crate) fn looks(root: &Path) -> Looks {
    let mut all = Looks::new();
    let mut open = vec![root.to_owned()];
    while let Some(path) = open.pop() {
        let found = fs::symlink_metadata(&path).expect("metadata");
        let mode = found.mode() & 0o7777;
        let look = if found.is_dir() {
            open.extend(fs::read_dir(&path).expect("a directory").map(|entry| entry.expect("an entry").path()));
            format!("directory {mode:o}")
        } else if found.is_symlink() {
            format!("link {:?}", fs::read_link(&path).expect("a link"))
        } else if found.is_file() {
            format!("file {mode:o} {} {}", found.len(), digest(&path))
        } else {
            "other".to_owned()
        };
        let attributes = if found.is_symlink() { String::new() } else { xattrs(&path) };
        all.insert(path.strip_prefix(root).expect("beneath").to_owned(), format!("{look}{attributes}"));
    }
    all
}

fn digest(path: &Path) -> String {
    let bytes = fs::read(path).expect("a file");
    interlock_core::Digest::of_bytes(&bytes).to_string()
}

fn xattrs(path: &Path) -> String {
    let mut names = vec![0; 4096];
    let len = rustix::fs::listxattr(path, &mut names[..]).unwrap_or(0);
    let mut shown = String::new();
    for name in names[..len].split(|byte| *byte == 0).filter(|name| name.starts_with(b"user.")) {
        let mut value = vec![0; 4096];
        let len = rustix::fs::getxattr(path, std::ffi::OsStr::from_bytes(name), &mut value[..]).expect("a value");
        shown.push_str(&format!(" {}={}", String::from_utf8_lossy(name), String::from_utf8_lossy(&value[..len])));
    }
    shown
}

pub(crate) fn set_xattr(path: &Path, name: &str, value: &str) {
    rustix::fs::setxattr(path, name, value.as_bytes(), rustix::fs::XattrFlags::empty()).expect("an attribute");
}

pub(crate) fn set_mode(path: &Path, mode: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).expect("a mode");
}

/// All files beneath a directory.
pub(crate) fn files(directory: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(directory).expect("a directory") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            found.extend(files(&path));
        } else {
            found.push(path);
        }
    }
    found
}
