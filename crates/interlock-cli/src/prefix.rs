//! Ids on the command line: the beginning of one will do, if it is the beginning of no other.

use interlock_core::display;

use crate::client::{Client, with_query};
use crate::table::scalar;
use crate::{Fault, table};

/// How many columns an id has in a table: enough to name it again.
pub(crate) const SHORT_COLUMNS: usize = 18;
/// The random part of a whole id.
const RANDOM_DIGITS: usize = 32;
/// The fewest characters of the random part that are looked up.
const DIGITS_MIN: usize = 4;
/// How many pages of a list are searched.
const PAGES_MAX: usize = 20;

/// The whole id of an agent.
pub(crate) fn agent(client: &Client, given: &str) -> Result<String, Fault> {
    resolve(client, given, &Kind { word: "agent", prefix: "agent_", path: "/agents", list: "agents", id: "agent_id" })
}

/// The whole id of an approval.
pub(crate) fn approval(client: &Client, given: &str) -> Result<String, Fault> {
    let kind = Kind { word: "approval", prefix: "appr_", path: "/approvals", list: "approvals", id: "approval_id" };
    resolve(client, given, &kind)
}

/// The whole id of a key.
pub(crate) fn key(client: &Client, given: &str) -> Result<String, Fault> {
    resolve(client, given, &Kind { word: "key", prefix: "key_", path: "/keys", list: "keys", id: "key_id" })
}

/// Whether this is a whole id, so that nothing has to be looked up.
pub(crate) fn is_whole(given: &str, prefix: &str) -> bool {
    given.strip_prefix(prefix).is_some_and(|random| {
        random.len() == RANDOM_DIGITS && random.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
    })
}

struct Kind {
    word: &'static str,
    prefix: &'static str,
    path: &'static str,
    list: &'static str,
    id: &'static str,
}

fn resolve(client: &Client, given: &str, kind: &Kind) -> Result<String, Fault> {
    let Kind { word, prefix, path, list, id } = kind;
    if is_whole(given, prefix) {
        return Ok(given.to_owned());
    }
    // What a table cut off ends so.
    let beginning = given.trim_end_matches('…');
    let beginning = beginning.strip_prefix(prefix).unwrap_or(beginning);
    if beginning.chars().count() < DIGITS_MIN {
        let what = format!("`{}` is too short for the id of one {word}", display(given));
        return Err(Fault::new(what).and_then_do(format!("give at least {DIGITS_MIN} characters after `{prefix}`")));
    }
    let beginning = format!("{prefix}{beginning}");
    let mut found: Vec<String> = Vec::new();
    let mut cursor = None;
    for _ in 0..PAGES_MAX {
        // Keys come on one page, and the route takes no parameters.
        let paged = [("limit", Some("1000".to_owned())), ("cursor", cursor.take())];
        let answer = client.get(&if *list == "keys" { (*path).to_owned() } else { with_query(path, &paged) })?;
        let document = answer.document()?;
        let rows = document.root().get(list).and_then(|rows| rows.as_array());
        let rows = rows.ok_or_else(|| Fault::new(format!("the server's answer has no `{list}`")))?;
        let ids = rows.filter_map(|row| scalar(row, id));
        found.extend(ids.filter(|id| id.starts_with(&beginning)));
        cursor = scalar(document.root(), "next_cursor");
        if cursor.is_none() {
            break;
        }
    }
    if found.contains(&beginning) {
        return Ok(beginning);
    }
    // Beyond the pages that were read there may be another that begins so.
    if cursor.is_some() {
        return Err(Fault::new(format!("there are too many to look for `{}`", display(given)))
            .and_then_do(format!("give the whole id, `{prefix}` and {RANDOM_DIGITS} digits")));
    }
    match found.as_slice() {
        [only] => Ok(only.clone()),
        [] => {
            let next = format!(
                "`interlock {list} list` shows the ids{}",
                if *list == "approvals" { " with --status all" } else { "" }
            );
            Err(Fault::new(format!("no {word} has an id that begins with `{}`", display(given)))
                .and_then_do(next)
                .refused())
        }
        several => {
            let shown: Vec<String> = several.iter().take(5).map(|id| table::cell(id, 60)).collect();
            let what = format!("`{}` is the beginning of {} ids", display(given), several.len());
            Err(Fault::new(what).and_then_do(format!("give more of it: {}", shown.join(", "))).refused())
        }
    }
}
