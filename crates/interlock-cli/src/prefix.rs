//! Ids on the command line: the beginning of one will do, if it is the beginning of no other.

use interlock_core::display;

use interlock_wire::{AgentPage, KeyList, TicketPage};

use crate::client::{Answer, Client, with_query};
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
    let read = |answer: &Answer| {
        let page: AgentPage = answer.read()?;
        Ok((page.agents.into_iter().map(|agent| agent.agent_id).collect(), page.next_cursor))
    };
    resolve(client, given, &Kind { word: "agent", prefix: "agent_", list: "agents", read })
}

/// The whole id of an approval.
pub(crate) fn approval(client: &Client, given: &str) -> Result<String, Fault> {
    let read = |answer: &Answer| {
        let page: TicketPage = answer.read()?;
        Ok((page.approvals.into_iter().map(|ticket| ticket.approval_id).collect(), page.next_cursor))
    };
    resolve(client, given, &Kind { word: "approval", prefix: "appr_", list: "approvals", read })
}

/// The whole id of a key.
pub(crate) fn key(client: &Client, given: &str) -> Result<String, Fault> {
    let read = |answer: &Answer| {
        let KeyList { keys } = answer.read()?;
        Ok((keys.into_iter().map(|key| key.key_id).collect(), None))
    };
    resolve(client, given, &Kind { word: "key", prefix: "key_", list: "keys", read })
}

/// Whether this is a whole id, so that nothing has to be looked up.
pub(crate) fn is_whole(given: &str, prefix: &str) -> bool {
    given.strip_prefix(prefix).is_some_and(|random| {
        random.len() == RANDOM_DIGITS && random.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
    })
}

/// The ids of a page, and where the next one begins.
type Page = (Vec<String>, Option<String>);

struct Kind {
    word: &'static str,
    prefix: &'static str,
    list: &'static str,
    read: fn(&Answer) -> Result<Page, Fault>,
}

fn resolve(client: &Client, given: &str, kind: &Kind) -> Result<String, Fault> {
    let Kind { word, prefix, list, read } = kind;
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
        let path = format!("/{list}");
        let (ids, next) = read(&client.get(&if *list == "keys" { path } else { with_query(&path, &paged) })?)?;
        found.extend(ids.into_iter().filter(|id| id.starts_with(&beginning)));
        cursor = next;
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
