//! The built-in tables of commands. `build.rs` takes them apart; an entry is read when a line first has a command of it.
//!
//! An entry that cannot be read is none, and its commands are unknown; a test reads them all.

use std::sync::OnceLock;

use interlock_core::Cause;

use super::table::{Entry, Known, Origin, Source, known};

mod commands {
    include!(concat!(env!("OUT_DIR"), "/commands.rs"));
}

mod git {
    include!(concat!(env!("OUT_DIR"), "/git.rs"));
}

/// Every command.
pub(super) static COMMANDS: BuiltIn =
    BuiltIn { names: &commands::NAMES, entries: &commands::ENTRIES, read: &COMMANDS_READ, origin: Origin::BuiltIn };

/// The subcommands of git.
pub(super) static GIT: BuiltIn =
    BuiltIn { names: &git::NAMES, entries: &git::ENTRIES, read: &GIT_READ, origin: Origin::Git };

static COMMANDS_READ: [OnceLock<Option<Known>>; commands::NAMES.len()] =
    [const { OnceLock::new() }; commands::NAMES.len()];
static GIT_READ: [OnceLock<Option<Known>>; git::NAMES.len()] = [const { OnceLock::new() }; git::NAMES.len()];

/// A name, which of the entries it leads to, and its own reason.
type Name = (&'static str, usize, Option<&'static str>);

/// A built-in table.
pub(super) struct BuiltIn {
    /// In order.
    names: &'static [Name],
    /// Headings with what stands under them, in order.
    entries: &'static [(&'static str, &'static str)],
    /// What is known of the names that were asked for.
    read: &'static [OnceLock<Option<Known>>],
    pub(super) origin: Origin,
}

impl BuiltIn {
    /// What is known of a name.
    pub(super) fn get(&'static self, name: &str) -> Option<&'static Known> {
        let at = self.names.binary_search_by(|(listed, ..)| listed.cmp(&name)).ok()?;
        self.read.get(at)?.get_or_init(|| self.read_at(at).ok()).as_ref()
    }

    /// The names, in order.
    pub(super) fn names(&self) -> impl Iterator<Item = &'static str> {
        self.names.iter().map(|(name, ..)| *name)
    }

    /// The entry under a heading.
    pub(super) fn entry(&self, heading: &str) -> Result<Option<Entry>, Cause> {
        let at = self.entries.binary_search_by(|(listed, _)| listed.cmp(&heading)).ok();
        let Some((_, text)) = at.and_then(|at| self.entries.get(at)) else { return Ok(None) };
        toml::from_str(text).map(Some).map_err(|error| format!("`{heading}`: {error}").into())
    }

    fn read_at(&'static self, at: usize) -> Result<Known, Cause> {
        let missing = || Cause::from("a name without an entry");
        let (name, entry, why) = self.names.get(at).ok_or_else(missing)?;
        let (heading, _) = self.entries.get(*entry).ok_or_else(missing)?;
        let entry = self.entry(heading)?.ok_or_else(missing)?;
        known(name, *why, (heading, &entry), &Source::BuiltIn(self))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_entry_can_be_read() {
        for table in [&COMMANDS, &GIT] {
            assert!(table.names.is_sorted() && table.entries.is_sorted_by_key(|(heading, _)| heading));
            for (at, (name, ..)) in table.names.iter().enumerate() {
                table.read_at(at).unwrap_or_else(|cause| panic!("{name}: {cause}"));
                assert!(table.get(name).is_some(), "{name}");
            }
            assert!(table.get("").is_none() && table.get("frobnicate").is_none());
        }
    }

    /// The index leads every name of the files to what stands there.
    #[test]
    fn no_name_is_lost() {
        for (table, text) in [(&COMMANDS, include_str!("commands.toml")), (&GIT, include_str!("git.toml"))] {
            let written: toml::Table = text.parse().expect("TOML");
            let headings: Vec<&str> = table.entries.iter().map(|(heading, _)| *heading).collect();
            assert_eq!(headings, written.keys().map(String::as_str).collect::<Vec<_>>());
            let words = |entry: &toml::Value, column: &str| -> Vec<String> {
                let text = entry.get(column).and_then(toml::Value::as_str).unwrap_or("");
                text.split_ascii_whitespace().map(str::to_owned).collect()
            };
            for (heading, entry) in &written {
                let because = entry.get("because").and_then(toml::Value::as_table);
                let listed = because
                    .into_iter()
                    .flatten()
                    .flat_map(|(_, names)| names.as_str().expect("names").split_ascii_whitespace().map(str::to_owned));
                for name in words(entry, "aliases").into_iter().chain(words(entry, "names")).chain(listed) {
                    let (_, at, _) = table.names.iter().find(|(listed, ..)| *listed == name).expect("a name");
                    assert_eq!(table.entries.get(*at).map(|(heading, _)| *heading), Some(heading.as_str()), "{name}");
                }
            }
        }
    }
}
