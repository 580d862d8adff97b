//! Looking at paths without opening what they lead to.

use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// The largest table of users that is read, in bytes.
const USERS_BYTES_MAX: u64 = 1 << 20;

/// What is at a path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Looked {
    /// Something that is no link.
    Plain,
    /// A link to this.
    Link(String),
    /// Nothing.
    Missing,
    /// It cannot be seen, or its link is no text.
    Unknown,
}

/// Looks at a path whose directories are no links.
pub(crate) fn look(path: &Path) -> Looked {
    match path.symlink_metadata() {
        Ok(found) if found.is_symlink() => {
            let target = fs::read_link(path).ok().and_then(|target| target.to_str().map(str::to_owned));
            target.map_or(Looked::Unknown, Looked::Link)
        }
        Ok(_) => Looked::Plain,
        Err(error) if is_missing(&error) => Looked::Missing,
        Err(_) => Looked::Unknown,
    }
}

fn is_missing(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
}

/// The names in a directory, in order; `None` if it is no directory. An error if they are more than so many, if they
/// cannot be read, or if one is no text: it could match a pattern, and nobody can say where it leads.
pub(crate) fn names_in(path: &Path, names_max: usize) -> io::Result<Option<Vec<String>>> {
    let entries = match fs::read_dir(path) {
        Ok(entries) => entries,
        Err(error) if is_missing(&error) => return Ok(None),
        Err(error) => return Err(error),
    };
    let mut names = Vec::new();
    for entry in entries {
        if names.len() >= names_max {
            return Err(io::Error::other("more names than are read"));
        }
        let name = entry?.file_name();
        names.push(name.to_str().ok_or_else(|| io::Error::other("a name that is no text"))?.to_owned());
    }
    names.sort();
    Ok(Some(names))
}

/// What a file is, whatever it is called, and how many names it has. Directories have one.
pub(crate) fn identity(path: &Path) -> Option<((u64, u64), u64)> {
    let found = path.symlink_metadata().ok()?;
    found.is_file().then(|| ((found.dev(), found.ino()), found.nlink()))
}

/// The home directory of a user of this machine.
pub(crate) fn home_of(user: &str) -> Option<String> {
    let users = Path::new("/etc/passwd");
    let small = fs::metadata(users).is_ok_and(|found| found.len() <= USERS_BYTES_MAX);
    let text = small.then(|| fs::read_to_string(users).ok()).flatten()?;
    text.lines().find_map(|line| {
        let mut fields = line.split(':');
        (fields.next() == Some(user)).then(|| fields.nth(4).map(str::to_owned)).flatten()
    })
}
