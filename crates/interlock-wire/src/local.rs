//! What commands read of a server beside its routes: who runs there, and what its socket answers to hooks. Hosts hear
//! the answer of a hook from the command; it is in no document.

use serde::Deserialize;

/// The daemon that runs behind a socket.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Running {
    pub version: String,
    pub process: u32,
}

/// What a hook says to its host: texts, and the code it exits with.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct HookAnswer {
    pub exit: u8,
    pub stdout: String,
    pub stderr: String,
}

/// The beginning of the document.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct About {
    pub info: Info,
}

/// What is described.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Info {
    pub version: String,
}
