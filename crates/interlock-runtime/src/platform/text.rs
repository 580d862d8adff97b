//! Files that are looked into, whatever lies there.

use std::fs;
use std::io::{self, Read};
use std::path::Path;

use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;

/// What a file holds; `None` if there is none. An error if it is no plain file, is larger than so many bytes, or is no
/// text. Nothing is waited for.
pub(crate) fn text_of(path: &Path, bytes_max: u64) -> io::Result<Option<String>> {
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOFOLLOW | OFlags::NOCTTY | OFlags::CLOEXEC;
    let file = match rustix::fs::open(path, flags, Mode::empty()) {
        Ok(descriptor) => fs::File::from(descriptor),
        Err(Errno::NOENT | Errno::NOTDIR) => return Ok(None),
        Err(error) => return Err(error.into()),
    };
    let mut text = String::new();
    let found = file.metadata()?;
    if !found.is_file() || found.len() > bytes_max {
        return Err(io::Error::other("no plain file, or a large one"));
    }
    file.take(bytes_max).read_to_string(&mut text)?;
    Ok(Some(text))
}
