//! What lies beside the rows of a ledger: texts, answers that are kept, events that wait. Each belongs to an entry and is
//! what that entry gave; what an entry gave and nothing took away is there.
//!
//! A server may go on beside the audit. Rows and their entries are committed together, so a row that is read has an entry
//! that can be read after it; what was taken away meanwhile, a later entry says.

use std::collections::BTreeMap;
use std::time::Instant;

use interlock_core::Digest;
use interlock_core::action::{Millis, Status};
use interlock_core::bundle::{Bundle, Payloads};
use interlock_core::ledger::{Body, Entry};

use super::is_text_of;
use crate::ledger::batch::{REVIEW_MS, is_refused_call};
use crate::ledger::decision_id::DecisionIds;
use crate::ledger::outbox::due;
use crate::ledger::store::{KEPT_MS, KeptAnswer, Reader, StoreFault};

/// How many texts, answers and events are read at a time.
const TEXTS_PAGE: usize = 256;
const KEPT_PAGE: usize = 1024;
const EVENTS_PAGE: usize = 256;
/// How many entries are read at a time that came after the audit began.
const PAGE: usize = 1024;

/// What the entries say should lie beside the rows.
pub(super) struct Beside {
    now: Millis,
    started: Instant,
    /// Which texts the bundle in force keeps; `None` if it cannot be read.
    payloads: Option<Payloads>,
    /// Texts that nothing took away: by agent and entry, each with the end it has.
    texts: BTreeMap<String, BTreeMap<u64, End>>,
    /// Answers of the last day, by agent and key: entry and time.
    kept: BTreeMap<(String, Digest), (u64, Millis)>,
}

/// When a text goes by itself; unknown if the bundle of that time cannot be read.
type End = Option<Option<Millis>>;

impl Beside {
    pub(super) fn new(now: Millis) -> Beside {
        let (texts, kept) = (BTreeMap::new(), BTreeMap::new());
        Beside { now, started: Instant::now(), payloads: None, texts, kept }
    }

    /// The time at this moment of the audit.
    fn now(&self) -> Millis {
        let elapsed = u64::try_from(self.started.elapsed().as_millis()).unwrap_or(u64::MAX);
        self.now.saturating_add(elapsed)
    }

    /// What an entry gives, and what it takes away.
    pub(super) fn add(&mut self, entry: &Entry, index: u64) {
        if let Some(text) = entry.body.activated() {
            self.payloads = Bundle::from_text(text).ok().map(|bundle| bundle.payloads());
        }
        // The ledger's time may be ahead of the clock here; then what went by that time went rightly.
        self.now = self.now.max(entry.at);
        let Some(agent) = entry.agent.as_deref() else { return };
        if entry.body.text().is_some() {
            let end = self.payloads.map(|payloads| if payloads == Payloads::All { None } else { end_of(entry) });
            self.texts.entry(agent.to_owned()).or_default().insert(index, end);
        }
        if let Some(idempotency) = entry.body.ruled().and_then(|ruled| ruled.idempotency)
            && entry.at.saturating_add(KEPT_MS) > self.now
        {
            self.kept.insert((agent.to_owned(), idempotency.key), (index, entry.at));
        }
        self.take_away(entry, agent);
    }

    /// A person decided, so nobody needs the text any more, unless all are kept; or an operator erased all.
    fn take_away(&mut self, entry: &Entry, agent: &str) {
        if matches!(entry.body, Body::TextsErased(_)) {
            self.texts.remove(agent);
        }
        if let Body::ApprovalResolved(resolved) = &entry.body
            && let Some(texts) = self.texts.get_mut(agent)
            && texts.get(&resolved.opened).is_some_and(|end| *end != Some(None))
        {
            texts.remove(&resolved.opened);
        }
    }
}

/// When the text of an entry goes, where only those are kept that a person needs.
fn end_of(entry: &Entry) -> Option<Millis> {
    if let Body::TrustRequested(requested) = &entry.body {
        return Some(requested.expires_at);
    }
    let ruled = entry.body.ruled()?;
    match &ruled.ticket {
        Some(ticket) => Some(ticket.expires_at),
        None => is_refused_call(ruled).then(|| entry.at.saturating_add(REVIEW_MS)),
    }
}

/// Compares all of it with what the first `size` entries say.
pub(super) fn compare(
    reader: &mut dyn Reader,
    mut beside: Beside,
    size: u64,
    ids: Option<DecisionIds>,
    found: &mut dyn FnMut(String),
) -> Result<(), StoreFault> {
    if let Some(ids) = ids {
        compare_events(reader, ids, found)?;
    }
    compare_texts(reader, &mut beside, size, found)?;
    compare_kept(reader, &mut beside, ids, found)?;
    // What is not there may have been taken away while this was read.
    let mut index = size;
    loop {
        let page = reader.entries(index, PAGE)?;
        if page.is_empty() {
            break;
        }
        for bytes in page {
            if let Ok(entry) = Entry::from_bytes(&bytes)
                && let Some(agent) = entry.agent.clone()
            {
                beside.take_away(&entry, &agent);
                if let Some(idempotency) = entry.body.ruled().and_then(|ruled| ruled.idempotency) {
                    beside.kept.remove(&(agent, idempotency.key));
                }
            }
            index = index.saturating_add(1);
        }
    }
    let now = beside.now();
    for (agent, texts) in &beside.texts {
        let missing = texts.iter().filter(|(_, end)| end.is_some_and(|end| end.is_none_or(|end| end > now)));
        for (index, _) in missing {
            found(format!("the text of entry {index} of {agent} is gone, and no entry says why"));
        }
    }
    for ((agent, _), (index, _)) in beside.kept.iter().filter(|(_, (_, at))| at.saturating_add(KEPT_MS) > now) {
        found(format!("the answer of entry {index} is not kept for {agent} any more"));
    }
    Ok(())
}

/// Every event that waits must be the one its entry is worth: it goes out with a signature.
fn compare_events(reader: &mut dyn Reader, ids: DecisionIds, found: &mut dyn FnMut(String)) -> Result<(), StoreFault> {
    let mut after = 0;
    loop {
        let page = reader.events(after, EVENTS_PAGE)?;
        let full = page.len() == EVENTS_PAGE;
        for event in page {
            after = event.id;
            if due(reader, ids, &event)?.is_none() {
                found(format!("the event that waits for entry {} is not the one it is worth", event.id));
            }
        }
        if !full {
            return Ok(());
        }
    }
}

/// Every text that is kept must be the one its entry speaks of: an approver decides on it. It is kept for ever, until its
/// ticket expires or is decided on, or until a refusal is too old to be looked at. Those that are there are crossed off.
fn compare_texts(
    reader: &mut dyn Reader,
    beside: &mut Beside,
    size: u64,
    found: &mut dyn FnMut(String),
) -> Result<(), StoreFault> {
    let mut after = (String::new(), 0);
    loop {
        let page = reader.texts((&after.0, after.1), TEXTS_PAGE)?;
        let full = page.len() == TEXTS_PAGE;
        for kept in page {
            let index = kept.index;
            let expected = beside.texts.get_mut(&kept.agent).and_then(|texts| texts.remove(&index));
            if !is_text_of(reader, &kept)? {
                found(format!("the text kept for entry {index} is not the one it speaks of"));
            } else if index < size {
                match expected {
                    None => found(format!("the text kept for entry {index} should have gone")),
                    Some(Some(end)) if end != kept.until => {
                        found(format!("the text kept for entry {index} has another end than it should"));
                    }
                    Some(_) => {}
                }
            }
            after = (kept.agent, index);
        }
        if !full {
            return Ok(());
        }
    }
}

/// Every answer that is kept must be one that its entry gave under that key. Those that are there are crossed off.
fn compare_kept(
    reader: &mut dyn Reader,
    beside: &mut Beside,
    ids: Option<DecisionIds>,
    found: &mut dyn FnMut(String),
) -> Result<(), StoreFault> {
    let mut after = (String::new(), Digest::from_bytes([0; 32]));
    loop {
        let page = reader.kept((&after.0, after.1), KEPT_PAGE)?;
        let full = page.len() == KEPT_PAGE;
        for (agent, key, kept) in page {
            let index = kept.index;
            let sound = is_kept_answer(reader, &agent, key, &kept, ids)?;
            after = (agent, key);
            // A later answer took its place, and it may have come since; an earlier one cannot.
            let newest = beside.kept.remove(&after).map_or(index, |(newest, _)| newest);
            if !sound || index < newest {
                found(format!("the answer kept for {} is not the one entry {index} gave", after.0));
            }
        }
        if !full {
            return Ok(());
        }
    }
}

fn is_kept_answer(
    reader: &mut dyn Reader,
    agent: &str,
    key: Digest,
    kept: &KeptAnswer,
    ids: Option<DecisionIds>,
) -> Result<bool, StoreFault> {
    let bytes = reader.entries(kept.index, 1)?.pop();
    let Some(entry) = bytes.and_then(|bytes| Entry::from_bytes(&bytes).ok()) else { return Ok(false) };
    let Some(ruled) = entry.body.ruled() else { return Ok(false) };
    let same = entry.agent.as_deref() == Some(agent)
        && entry.at == kept.at
        && ruled.idempotency.is_some_and(|idempotency| idempotency.key == key);
    let status = ruled.ruling.verification.as_ref().map(|verification| verification.status);
    let corrected = kept.corrected.as_ref().is_none_or(|sealed| {
        status == Some(Status::Corrected) && ids.is_none_or(|ids| ids.open_text(agent, kept.index, sealed).is_some())
    });
    Ok(same && corrected)
}
