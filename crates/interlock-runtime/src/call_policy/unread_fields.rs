//! Paths and addresses in an input whose fields nobody here knows: every string that could be one counts.

use interlock_core::field_names::holds_path_or_address;
use interlock_core::json::Json;
use interlock_core::rule::{CallHost, hosts_in};

use super::place::Places;
use super::{CallPlace, Seen};
use crate::paths::{self, Base, Missing, PATH_BYTES_MAX, Resolved};

/// The most strings that are looked at.
const STRINGS_MAX: u32 = 512;
/// How deep they may stand.
const DEPTH_MAX: u32 = 64;

/// Looks at everything in a value.
pub(super) fn all(value: &Json, seen: &mut Seen, place: &CallPlace<'_>, places: &mut Places<'_>) {
    let mut reader = FieldReader { seen, place, places, left: STRINGS_MAX };
    reader.value("", value, DEPTH_MAX);
}

struct FieldReader<'g, 'p, 'a> {
    seen: &'g mut Seen,
    place: &'g CallPlace<'g>,
    places: &'p mut Places<'a>,
    left: u32,
}

impl FieldReader<'_, '_, '_> {
    fn value(&mut self, key: &str, value: &Json, depth: u32) {
        let Some(depth) = depth.checked_sub(1) else { return self.places.add(Resolved::Unresolvable, true, None) };
        match value {
            Json::Object(members) => {
                for (key, member) in members {
                    if key.contains(['/', '\\', '~']) {
                        self.text("", key);
                    }
                    self.value(key, member, depth);
                }
            }
            Json::Array(items) => items.iter().for_each(|item| self.value(key, item, depth)),
            Json::String(text) => self.text(key, text),
            Json::Number(_) | Json::Bool(_) | Json::Null => {}
        }
    }

    fn text(&mut self, key: &str, text: &str) {
        match self.left.checked_sub(1) {
            Some(left) => self.left = left,
            None => return self.places.add(Resolved::Unresolvable, true, None),
        }
        let (is_path, is_address) = holds_path_or_address(key);
        let hosts = hosts_in(text, is_address).into_iter().map(|host| CallHost { host, command: None });
        self.seen.hosts.extend(hosts);
        let trimmed = text.trim();
        if trimmed.contains("://") && !trimmed.to_ascii_lowercase().starts_with("file:") {
            return;
        }
        let expected = is_path && !is_address;
        let written_out = trimmed.starts_with(['/', '~', '.']);
        if trimmed.is_empty() || !expected && !written_out && trimmed.contains(char::is_whitespace) {
            return;
        }
        if trimmed.len() > PATH_BYTES_MAX && !expected {
            return;
        }
        let base = Base { cwd: self.place.cwd, home: self.place.home, missing: Missing::Plain };
        for resolved in paths::readings(trimmed, base) {
            match resolved {
                // A long word is no name of a file; a field that is meant to hold one says otherwise.
                Resolved::Unresolvable if !expected && !written_out => {}
                Resolved::Known(_) | Resolved::Unresolvable => self.places.add(resolved, true, None),
            }
        }
    }
}
