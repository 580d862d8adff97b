//! Which functions of the servers are harmless: a table beside this file.

use std::sync::LazyLock;

use super::dialect::Dialect;

/// What a call of a function can do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Effect {
    /// Its value depends on its arguments only.
    Pure,
    /// Harmless, but its value depends on more than its arguments.
    Varying,
    /// It does harm, or may.
    Harmful,
}

const TABLE: &str = include_str!("functions.txt");

/// One function: for which dialects it is what. A dialect may be in `harmful` beside another; harm wins.
#[derive(Debug, Clone, Copy, Default)]
struct Row {
    pure: u8,
    varying: u8,
    harmful: u8,
}

#[derive(Debug, Default)]
struct Functions {
    /// Sorted by name.
    rows: Vec<(&'static str, Row)>,
    /// Beginnings of names, sorted, with the dialects in which they are harmful.
    prefixes: Vec<(&'static str, u8)>,
}

static FUNCTIONS: LazyLock<Functions> = LazyLock::new(load);

/// What a function of this name does in a dialect; `None` if it is not known.
pub(super) fn effect_of(name: &str, dialect: Dialect) -> Option<Effect> {
    let bit = dialect.bit();
    let functions = &*FUNCTIONS;
    let found = functions.rows.binary_search_by(|(known, _)| compare(known, name)).ok();
    let row = found.and_then(|index| functions.rows.get(index)).map_or(Row::default(), |(_, row)| *row);
    if row.harmful & bit != 0 {
        Some(Effect::Harmful)
    } else if row.varying & bit != 0 {
        Some(Effect::Varying)
    } else if row.pure & bit != 0 {
        Some(Effect::Pure)
    } else {
        let begins = |prefix: &str| name.get(..prefix.len()).is_some_and(|start| start.eq_ignore_ascii_case(prefix));
        let harmful = functions.prefixes.iter().any(|(prefix, dialects)| dialects & bit != 0 && begins(prefix));
        harmful.then_some(Effect::Harmful)
    }
}

/// Compares a name of the table with one as written.
fn compare(known: &str, name: &str) -> core::cmp::Ordering {
    known.bytes().cmp(name.bytes().map(|byte| byte.to_ascii_lowercase()))
}

fn load() -> Functions {
    let mut functions = Functions::default();
    let mut rows = std::collections::BTreeMap::<&str, Row>::new();
    let mut section = ("", 0);
    for line in TABLE.lines().filter(|line| !line.starts_with('#')) {
        if let Some(head) = line.strip_prefix('[').and_then(|line| line.strip_suffix(']')) {
            let mut words = head.split(' ');
            let effect = words.next().unwrap_or_default();
            let dialects = words.filter_map(|name| Dialect::ALL.into_iter().find(|dialect| dialect.name() == name));
            section = (effect, dialects.fold(0, |bits, dialect| bits | dialect.bit()));
            continue;
        }
        for word in line.split_ascii_whitespace() {
            let (effect, dialects) = section;
            if let Some(prefix) = word.strip_suffix('*') {
                functions.prefixes.push((prefix, dialects));
                continue;
            }
            let row = rows.entry(word).or_default();
            match effect {
                "pure" => row.pure |= dialects,
                "varying" => row.varying |= dialects,
                _ => row.harmful |= dialects,
            }
        }
    }
    functions.rows = rows.into_iter().collect();
    functions
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_section_names_a_known_effect_and_known_dialects() {
        for head in TABLE.lines().filter_map(|line| line.strip_prefix('[')?.strip_suffix(']')) {
            let (effect, dialects) = head.split_once(' ').unwrap();
            assert!(["pure", "varying", "harmful"].contains(&effect), "{head}");
            for name in dialects.split(' ') {
                assert!(Dialect::ALL.iter().any(|dialect| dialect.name() == name), "{head}");
            }
        }
    }

    #[test]
    fn the_names_are_in_lower_case_and_many() {
        let rows = &FUNCTIONS.rows;
        assert!(rows.len() > 900, "{}", rows.len());
        assert!(rows.iter().all(|(name, _)| *name == name.to_ascii_lowercase()));
        assert!(rows.is_sorted_by(|(one, _), (other, _)| one < other));
    }

    #[test]
    fn a_function_is_harmless_only_where_it_is_listed() {
        assert_eq!(effect_of("LOWER", Dialect::Postgres), Some(Effect::Pure));
        assert_eq!(effect_of("count", Dialect::Mssql), Some(Effect::Varying));
        assert_eq!(effect_of("date_trunc", Dialect::Postgres), Some(Effect::Pure));
        assert_eq!(effect_of("date_trunc", Dialect::Mysql), None);
        assert_eq!(effect_of("pg_sleep_for", Dialect::Postgres), Some(Effect::Harmful));
        assert_eq!(effect_of("XP_CmdShell", Dialect::Mssql), Some(Effect::Harmful));
        assert_eq!(effect_of("nextval", Dialect::Postgres), None);
        assert_eq!(effect_of("ts_rewrite", Dialect::Postgres), Some(Effect::Harmful));
        assert_eq!(effect_of("sqlite_version", Dialect::Sqlite), Some(Effect::Varying));
    }
}
