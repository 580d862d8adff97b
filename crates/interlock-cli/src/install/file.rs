//! One file that is to be changed: where it really is, what it says, and how it is replaced in one go.
//!
//! Links are followed only where they lead to the same place of the person's: a link out of it could make us write
//! anything anywhere.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use interlock_core::visible;
use interlock_runtime::reach::own_user;

use crate::Fault;

/// The largest settings file that is edited.
const BYTES_MAX: u64 = 16 * 1024 * 1024;

/// The largest program of ours.
const PROGRAM_BYTES_MAX: u64 = 256 * 1024 * 1024;

/// The mode of our programs: their owner runs them.
const PROGRAM_MODE: u32 = 0o700;

/// A file, as it was when it was looked at.
pub(crate) struct TargetFile {
    /// Where it really is, links resolved.
    pub(crate) path: PathBuf,
    /// What it said; nothing: there was none. Of settings it is text.
    pub(crate) bytes: Option<Vec<u8>>,
    /// Its mode, or the one it is to get.
    mode: u32,
    /// The mode of directories made for it.
    directory_mode: u32,
}

impl TargetFile {
    /// Looks at a file beneath a directory. `is_private`: what is made new is its owner's alone.
    pub(crate) fn look(base: &Path, relative: &str, is_private: bool) -> Result<TargetFile, Fault> {
        let file = TargetFile::look_at(base, relative, is_private, BYTES_MAX)?;
        match file.text().is_some() || file.bytes.is_none() {
            true => Ok(file),
            false => Err(refused(&base.join(relative), "it is not UTF-8")),
        }
    }

    fn look_at(base: &Path, relative: &str, is_private: bool, bytes_max: u64) -> Result<TargetFile, Fault> {
        let named = base.join(relative);
        let refused = |what: &str| refused(&named, what);
        let system = |error: io::Error| refused(&error.to_string());
        let base = fs::canonicalize(base).map_err(system)?;
        let (mode, directory_mode) = if is_private { (0o600, 0o700) } else { (0o644, 0o755) };
        match fs::symlink_metadata(&named) {
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                let path = resolve_missing(&named).map_err(system)?;
                if !path.starts_with(&base) {
                    return Err(refused("it lies behind a link that leads elsewhere"));
                }
                return Ok(TargetFile { path, bytes: None, mode, directory_mode });
            }
            Err(error) => return Err(system(error)),
        }
        let path = fs::canonicalize(&named).map_err(|_| refused("it is a link that leads nowhere"))?;
        if !path.starts_with(&base) {
            return Err(refused("it is a link that leads elsewhere"));
        }
        let found = fs::metadata(&path).map_err(system)?;
        if !found.is_file() {
            return Err(refused("it is not a file"));
        }
        if found.uid() != own_user() {
            return Err(refused("it belongs to another user"));
        }
        if found.len() > bytes_max {
            return Err(refused("it is larger than what belongs there"));
        }
        let mut bytes = Vec::new();
        File::open(&path).and_then(|file| file.take(bytes_max).read_to_end(&mut bytes)).map_err(system)?;
        Ok(TargetFile { path, bytes: Some(bytes), mode: found.mode() & 0o7777, directory_mode })
    }

    /// Looks at a program of ours in a home, which need not be there yet.
    pub(crate) fn program(home: &Path, relative: &str) -> Result<TargetFile, Fault> {
        let (mode, directory_mode) = (PROGRAM_MODE, 0o700);
        if !home.exists() {
            return Ok(TargetFile { path: home.join(relative), bytes: None, mode, directory_mode });
        }
        Ok(TargetFile { mode, ..TargetFile::look_at(home, relative, true, PROGRAM_BYTES_MAX)? })
    }

    /// What it said, if that is text.
    pub(crate) fn text(&self) -> Option<&str> {
        str::from_utf8(self.bytes.as_deref()?).ok()
    }

    /// Whether its owner can run it.
    pub(crate) fn is_executable(&self) -> bool {
        fs::metadata(&self.path).is_ok_and(|found| found.mode() & 0o100 != 0)
    }

    /// Puts another text in its place, or takes it away; all of it or nothing. Says which directories were made for it.
    ///
    /// A file that changed since it was looked at stays as it is: what was shown is not what would be written.
    pub(crate) fn replace(&self, next: Option<&[u8]>) -> Result<Vec<PathBuf>, Fault> {
        let system = |error: io::Error| Fault::new(format!("{} cannot be written: {error}", shown(&self.path)));
        let now = match fs::read(&self.path) {
            Ok(bytes) => Some(bytes),
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            Err(error) => return Err(system(error)),
        };
        if now != self.bytes {
            return Err(Fault::new(format!("{} was changed meanwhile, and was left alone", shown(&self.path)))
                .and_then_do("try again")
                .refused());
        }
        self.put(next).map_err(system)
    }

    /// Gives back what was there when it was looked at, whatever is there now.
    pub(crate) fn give_back(&self) -> io::Result<()> {
        self.put(self.bytes.as_deref()).map(drop)
    }

    fn put(&self, next: Option<&[u8]>) -> io::Result<Vec<PathBuf>> {
        let parent = self.path.parent().ok_or(io::ErrorKind::InvalidInput)?;
        let Some(next) = next else {
            match fs::remove_file(&self.path) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                Ok(()) | Err(_) => {}
            }
            if parent.exists() {
                File::open(parent)?.sync_all()?;
            }
            return Ok(Vec::new());
        };
        let missing: Vec<PathBuf> =
            parent.ancestors().take_while(|ancestor| !ancestor.exists()).map(Path::to_owned).collect();
        DirBuilder::new().recursive(true).mode(self.directory_mode).create(parent)?;
        let name = self.path.file_name().ok_or(io::ErrorKind::InvalidInput)?.to_string_lossy();
        let partial = parent.join(format!(".{name}.interlock-{}", std::process::id()));
        let written = (|| {
            let mut options = OpenOptions::new();
            let mut file = options.write(true).create_new(true).mode(self.mode).open(&partial)?;
            file.write_all(next)?;
            if self.bytes.is_some() {
                file.set_permissions(fs::Permissions::from_mode(self.mode))?;
            }
            file.sync_all()?;
            fs::rename(&partial, &self.path)?;
            File::open(parent)?.sync_all()
        })();
        if written.is_err() {
            let _ = fs::remove_file(&partial);
            for directory in &missing {
                let _ = fs::remove_dir(directory);
            }
        }
        written.map(|()| missing)
    }
}

fn refused(path: &Path, what: &str) -> Fault {
    Fault::new(format!("{} was left alone: {what}", shown(path))).refused().and_then_do("nothing was changed")
}

/// Where a file would be that is not there yet: the nearest directory above it, links resolved, and the rest.
fn resolve_missing(path: &Path) -> io::Result<PathBuf> {
    for ancestor in path.ancestors().skip(1) {
        if fs::symlink_metadata(ancestor).is_ok() {
            let rest = path.strip_prefix(ancestor).map_err(io::Error::other)?;
            return Ok(fs::canonicalize(ancestor)?.join(rest));
        }
    }
    Err(io::ErrorKind::NotFound.into())
}

/// A path, safe to show.
pub(crate) fn shown(path: &Path) -> String {
    visible(&path.display().to_string())
}
