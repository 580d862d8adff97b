//! The port: what a commit needs of one directory that is held open.
//!
//! Names are single file names, never paths, so nothing here can leave the directory. The real one is
//! [`HeldDirectory`](crate::HeldDirectory); tests wrap it to fail, record or kill at every call.

use std::io;
use std::time::Duration;

/// What stands at a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Entry {
    /// Nothing.
    Absent,
    /// A regular file.
    File {
        /// Whether its bytes are the expected ones.
        as_expected: bool,
        /// Its permission bits.
        mode: u32,
    },
    /// A symbolic link, wherever it leads.
    Link,
    /// A directory, a device, a pipe or a socket.
    Other,
}

/// One directory, held by descriptor.
pub trait Directory {
    /// A file being written.
    type File;
    /// Held while this lives.
    type Lock;

    /// Takes the directory's exclusive lock, waiting at most `wait`; `None` when somebody else kept it that long.
    fn lock(&self, wait: Duration) -> io::Result<Option<Self::Lock>>;
    /// Whether the directory is still where it was found: its path and its root's lead to it, and not to another.
    fn is_in_place(&self) -> io::Result<bool>;
    /// Looks at a name without following links, and compares a regular file with the bytes it should hold.
    fn compare(&self, name: &str, expected: &[u8]) -> io::Result<Entry>;
    /// Creates a file that must not exist, readable by its owner only.
    fn create(&self, name: &str) -> io::Result<Self::File>;
    /// Appends bytes; may take several calls to the system.
    fn write(&self, file: &mut Self::File, bytes: &[u8]) -> io::Result<()>;
    /// Sets the permission bits.
    fn set_mode(&self, file: &mut Self::File, mode: u32) -> io::Result<()>;
    /// Returns once the file's bytes and mode are on the disk.
    fn sync_file(&self, file: &mut Self::File) -> io::Result<()>;
    /// Puts one name in place of another, in one step.
    fn rename(&self, from: &str, to: &str) -> io::Result<()>;
    /// Returns once the names are on the disk.
    fn sync(&self) -> io::Result<()>;
    /// Removes a name; one that is not there is no error.
    fn remove(&self, name: &str) -> io::Result<()>;
}
