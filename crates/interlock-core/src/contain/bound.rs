//! A profile resolved to one call on one machine: absolute paths, names of hosts, variables.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::evidence::Rung;

/// What a contained command may touch. Whatever is not named here can be read and not written.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Bound {
    /// The name of the profile, for messages.
    pub profile: String,
    /// By what it was decided that the command is held. The runner holds it by that, or starts nothing.
    #[serde(default, skip_serializing_if = "Rung::is_full")]
    pub rung: Rung,
    /// Directories that may be written with all that is in them, and files, beside the private directory for temporary files.
    #[serde(default)]
    pub write: Vec<String>,
    /// Files and directories that may not be written although they lie in one of `write`. They need not exist: then
    /// nobody may make them.
    #[serde(default)]
    pub locked: Vec<String>,
    /// Files that nobody may leave behind anywhere in `write`, as patterns of paths (`**/.envrc`). What a command made or
    /// changed of them is set aside when it has ended.
    #[serde(default)]
    pub armed: Vec<String>,
    /// Files and directories that can be neither read nor written, wherever they lie. They need not exist.
    #[serde(default)]
    pub hidden: Vec<String>,
    /// Directories of which only some entries are there.
    #[serde(default)]
    pub covers: Vec<Cover>,
    /// Files and directories that are there to be read although they lie where nothing else is: beneath a cover, or among
    /// temporary files.
    #[serde(default)]
    pub visible: Vec<String>,
    /// What may be reached over a network.
    #[serde(default)]
    pub reach: Reach,
    /// Caches of the user that the project has a copy of its own of.
    #[serde(default)]
    pub caches: Vec<Cache>,
    /// Names of variables that the command does not get.
    #[serde(default)]
    pub env_blocked: Vec<String>,
    /// Variables that are set for it.
    #[serde(default)]
    pub env_set: BTreeMap<String, String>,
}

/// A directory of which only some entries are there.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Cover {
    /// The directory.
    pub directory: String,
    /// Paths beneath it that are there as they are, with all that is in them. Directories between are empty otherwise.
    pub visible: Vec<String>,
}

/// A directory of the user's that commands write to but that other projects read: what is written goes elsewhere.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Cache {
    /// The directory as commands know it. It is read as it is.
    pub directory: String,
    /// The project's own directory, which takes what is written.
    pub own: String,
}

/// What may be reached over a network.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Reach {
    /// Nothing but the loopback of its own namespace.
    #[default]
    Nothing,
    /// These hosts, by name, through a proxy that writes down each of them. `*.example.org` is every name beneath.
    Hosts(Vec<String>),
}
