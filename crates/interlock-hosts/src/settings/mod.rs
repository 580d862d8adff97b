//! The settings files of hosts: what `install` writes into them, and how it is taken out again.
//!
//! Texts in, texts out. An edit inserts our entries and keeps every other byte; taking them out gives back the text
//! from before, byte for byte, if nobody changed it since, and removes nothing but ours if somebody did. What was there
//! before is told by the white space our entries stand in (see `surgery.rs`), so nothing has to be remembered.

mod commands;
mod entries;
mod off;
mod place;
mod prefix;
mod surgery;
mod toml_block;

use core::fmt;

pub use commands::{HookCommand, Hooked, Named, commands};
pub use off::switched_off;
pub use place::{Base, Part, Place, Scope, places, read_places};
pub use prefix::{PREFIX_VARIABLE, keeps_prefix, prefix_displaced, run_script, shell_prefix};

use crate::event::Host;

/// What the entries are to say.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wanted {
    /// The binary, by its absolute path: nothing in the environment can put another in its place.
    pub binary: String,
    /// The home directory of Interlock, by its absolute path.
    pub home: String,
    /// The fingerprint of the daemon that may answer.
    pub daemon: String,
    /// After how many seconds the host gives up; the hook answers before that.
    pub timeout_s: u32,
}

/// A settings file after an edit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Edited {
    /// Its text; nothing: the file held only what `install` wrote, and is to be removed.
    pub text: Option<String>,
    /// What is different now, one line each; none: the text is as it was.
    pub changes: Vec<String>,
}

/// Whether a settings file has our entries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Installed {
    /// It has none.
    No,
    /// It has some, but not the ones wanted: fewer, or with another binary, home or daemon.
    Other,
    /// It has exactly the ones wanted.
    Yes,
}

/// Why a settings file was not edited.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Problem {
    /// The file cannot be read for certain, so it cannot be edited: the rule, and where.
    NotStrict(String),
    /// A value is not of the kind the host expects there.
    Shape(&'static str),
    /// There is a server `interlock` that is not ours.
    NameTaken,
    /// There is a shell prefix that is not ours.
    PrefixTaken,
    /// A path or fingerprint that cannot be written down safely.
    Unwritable(&'static str),
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Problem::NotStrict(why) => write!(f, "the file was left alone: {why}"),
            Problem::Shape(what) => write!(f, "the file was left alone: {what}"),
            Problem::NameTaken => f.write_str("the file was left alone: it has another server named `interlock`"),
            Problem::PrefixTaken => f.write_str(
                "the file was left alone: its `env.CLAUDE_CODE_SHELL_PREFIX` is another program, and there can be only one",
            ),
            Problem::Unwritable(what) => write!(f, "{what} cannot be written into a settings file"),
        }
    }
}

impl std::error::Error for Problem {}

/// Writes our entries into a file, or brings those it has up to date. `existing` is its text; nothing: there is no such
/// file.
///
/// ```
/// use interlock_hosts::Host;
/// use interlock_hosts::settings::{Scope, Wanted, install, places, uninstall};
///
/// let wanted = Wanted {
///     binary: "/usr/bin/interlock".to_owned(),
///     home: "/var/lib/interlock".to_owned(),
///     daemon: "sha256:00".to_owned(),
///     timeout_s: 60,
/// };
/// let place = &places(Host::ClaudeCode, Scope::Project)[0];
/// let before = "{\"model\": \"opus\"}\n";
/// let after = install(Host::ClaudeCode, place, Some(before), &wanted)?.text;
/// assert_eq!(install(Host::ClaudeCode, place, after.as_deref(), &wanted)?.text, after);
/// assert_eq!(uninstall(Host::ClaudeCode, place, after.as_deref())?.text.as_deref(), Some(before));
/// # Ok::<(), interlock_hosts::settings::Problem>(())
/// ```
pub fn install(host: Host, place: &Place, existing: Option<&str>, wanted: &Wanted) -> Result<Edited, Problem> {
    entries::check(wanted)?;
    if let Some(text) = existing
        && installed(host, place, Some(text), wanted)? == Installed::Yes
    {
        return Ok(Edited { text: Some(text.to_owned()), changes: Vec::new() });
    }
    let stripped = uninstall(host, place, existing)?;
    let mut text = stripped.text;
    let mut changes = stripped.changes;
    for part in place.parts {
        text = Some(match place.is_toml() {
            true => toml_block::insert(host, text.as_deref(), wanted)?,
            false => entries::insert(host, *part, text.as_deref(), wanted)?,
        });
        changes.push(entries::added(host, *part));
    }
    Ok(Edited { text, changes })
}

/// Takes our entries out of a file.
pub fn uninstall(host: Host, place: &Place, existing: Option<&str>) -> Result<Edited, Problem> {
    let mut edited = Edited { text: existing.map(str::to_owned), changes: Vec::new() };
    for part in place.parts.iter().rev() {
        let Some(text) = edited.text.take() else { break };
        let rest = if place.is_toml() { toml_block::remove(&text)? } else { entries::remove(host, *part, &text)? };
        if rest.as_deref() != Some(&text) {
            edited.changes.push(entries::removed(*part));
        }
        edited.text = rest;
    }
    Ok(edited)
}

/// Whether a file has our entries, and the ones wanted.
pub fn installed(host: Host, place: &Place, existing: Option<&str>, wanted: &Wanted) -> Result<Installed, Problem> {
    let Some(text) = existing else { return Ok(Installed::No) };
    let mut states = Vec::new();
    for part in place.parts {
        states.push(match place.is_toml() {
            true => toml_block::state(host, text, wanted)?,
            false => entries::state(host, *part, text, wanted)?,
        });
    }
    let all = |state: Installed| states.iter().all(|found| *found == state);
    Ok(if all(Installed::Yes) {
        Installed::Yes
    } else if all(Installed::No) {
        Installed::No
    } else {
        Installed::Other
    })
}
