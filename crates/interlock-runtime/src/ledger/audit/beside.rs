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
use interlock_core::ledger::{Body, Entry, EntryName};

use super::is_text_of;
use crate::ledger::batch::{REVIEW_MS, is_refused_call};
use crate::ledger::decision_id::DecisionIds;
use crate::ledger::outbox::due;
use crate::ledger::places::Places;
use crate::ledger::store::{FoundEntry, KEPT_MS, KeptAnswer, Reader, StoreFault};

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
    /// Texts that nothing took away: by agent and number of the entry, each with the end it has.
    texts: BTreeMap<String, BTreeMap<u64, End>>,
    /// Answers of the last day, by agent and key: number of the entry and time.
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

    /// What an entry gives, and what it takes away. `places` are those of the entries before it.
    pub(super) fn add(&mut self, entry: &Entry, places: &Places) {
        if let Some(text) = entry.body.activated() {
            self.payloads = Bundle::from_text(text).ok().map(|bundle| bundle.payloads());
        }
        // The ledger's time may be ahead of the clock here; then what went by that time went rightly.
        self.now = self.now.max(entry.at);
        let (Some(agent), Some(seq)) = (entry.agent.as_deref(), entry.agent_seq) else { return };
        if entry.body.text().is_some() {
            let end = self.payloads.map(|payloads| if payloads == Payloads::All { None } else { end_of(entry) });
            self.texts.entry(agent.to_owned()).or_default().insert(seq, end);
        }
        if let Some(idempotency) = entry.body.ruled().and_then(|ruled| ruled.idempotency)
            && entry.at.saturating_add(KEPT_MS) > self.now
        {
            self.kept.insert((agent.to_owned(), idempotency.key), (seq, entry.at));
        }
        self.take_away(entry, agent, places);
    }

    /// A person decided, so nobody needs the text any more, unless all are kept; or an operator erased all.
    fn take_away(&mut self, entry: &Entry, agent: &str, places: &Places) {
        if matches!(entry.body, Body::TextsErased(_)) {
            self.texts.remove(agent);
        }
        if let Body::ApprovalResolved(resolved) = &entry.body
            && let Some(texts) = self.texts.get_mut(agent)
            && let Some(opened) = entry.seq_of(&resolved.opened, |agent, place| places.seq_at(agent, place))
            && texts.get(&opened).is_some_and(|end| *end != Some(None))
        {
            texts.remove(&opened);
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

/// Compares all of it with what the first `size` entries say, which stand at these places.
pub(super) fn compare(
    reader: &mut dyn Reader,
    mut beside: Beside,
    (size, places): (u64, &Places),
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
                beside.take_away(&entry, &agent, places);
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
        for (seq, _) in missing {
            found(format!("the text of entry {seq} of {agent} is gone, and no entry says why"));
        }
    }
    for ((agent, _), (seq, _)) in beside.kept.iter().filter(|(_, (_, at))| at.saturating_add(KEPT_MS) > now) {
        found(format!("the answer of entry {seq} of {agent} is not kept any more"));
    }
    Ok(())
}

/// Every event that waits must be the one its entry is worth: it goes out with a signature.
fn compare_events(reader: &mut dyn Reader, ids: DecisionIds, found: &mut dyn FnMut(String)) -> Result<(), StoreFault> {
    let mut after = (String::new(), 0);
    loop {
        let page = reader.events((&after.0, after.1), EVENTS_PAGE)?;
        let full = page.len() == EVENTS_PAGE;
        for event in page {
            if due(reader, ids, &event)?.is_none() {
                found(format!("the event that waits for entry {} is not the one it is worth", event.name()));
            }
            after = (event.agent, event.seq);
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
            let name = EntryName::of_agent(&kept.agent, kept.seq);
            let expected = beside.texts.get_mut(&kept.agent).and_then(|texts| texts.remove(&kept.seq));
            let place = reader.entry_of(Some(&kept.agent), kept.seq)?.map_or(u64::MAX, |(place, _)| place);
            if !is_text_of(reader, &kept)? {
                found(format!("the text kept for entry {name} is not the one it speaks of"));
            } else if place < size {
                match expected {
                    None => found(format!("the text kept for entry {name} should have gone")),
                    Some(Some(end)) if end != kept.until => {
                        found(format!("the text kept for entry {name} has another end than it should"));
                    }
                    Some(_) => {}
                }
            }
            after = (kept.agent, kept.seq);
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
            let seq = kept.seq;
            let sound = is_kept_answer(reader, &agent, key, &kept, ids)?;
            after = (agent, key);
            // A later answer took its place, and it may have come since; an earlier one cannot.
            let newest = beside.kept.remove(&after).map_or(seq, |(newest, _)| newest);
            if !sound || seq < newest {
                found(format!("the answer kept for {} is not the one its entry {seq} gave", after.0));
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
    let found = reader.entry_of(Some(agent), kept.seq)?;
    let Some(found) = FoundEntry::read(Some(agent), kept.seq, found).ok().flatten() else { return Ok(false) };
    let Some(ruled) = found.entry.body.ruled() else { return Ok(false) };
    let same = found.entry.at == kept.at && ruled.idempotency.is_some_and(|idempotency| idempotency.key == key);
    let status = ruled.ruling.verification.as_ref().map(|verification| verification.status);
    let corrected = kept.corrected.as_ref().is_none_or(|sealed| {
        status == Some(Status::Corrected) && ids.is_none_or(|ids| ids.open_text(&found, sealed).is_some())
    });
    Ok(same && corrected)
}
