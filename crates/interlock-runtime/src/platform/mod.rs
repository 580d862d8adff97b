//! What differs by operating system: directories held by descriptor, and resolution that cannot leave them.
//!
//! Linux resolves a whole path beneath a root in one system call (`openat2`). Elsewhere, and where that call is not
//! permitted, each name is opened in turn and no link is followed at all, which refuses more and never less.

mod directory;
mod look;
mod root;
#[cfg(feature = "ledger")]
mod text;

pub use directory::HeldDirectory;
pub(crate) use look::{Looked, home_of, identity, look, names_in};
pub use root::HeldRoot;
pub(crate) use root::OpenFault;
#[cfg(feature = "ledger")]
pub(crate) use text::text_of;
