//! Checking a ledger from its entries alone: hashes, order, rows; and deciding every ruling again. What lies beside the
//! rows (texts, answers that are kept, events) is compared in `audit/beside.rs`.

mod beside;

use std::collections::{BTreeSet, HashMap};

use interlock_core::Digest;
use interlock_core::action::{
    CallSnapshot, Conversation, Decision, Evidence, Facts, Millis, Ruling, decide, decide_call, is_violation,
};
use interlock_core::bundle::Bundle;
use interlock_core::ledger::{Entry, EntryName, Frontier, Moment, Ruled, leaf_hash};

use beside::Beside;

use super::batch::digest_of_text;
use super::checkpoint::{Checkpoint, LedgerKey};
use super::decision_id::DecisionIds;
use super::fold::Fold;
use super::store::{FoundEntry, KeptText, Reader, Rows, StoreFault};

/// How many entries are read at a time.
const PAGE: usize = 8192;
/// How many findings are told; the rest is counted.
const FINDINGS_MAX: usize = 20;

/// Told how many entries are done, of how many.
pub type Progress<'a> = &'a mut dyn FnMut(u64, u64);

/// What checking found.
#[derive(Debug)]
pub struct AuditReport {
    /// How many entries there are.
    pub entries: u64,
    /// The root over them.
    pub root: Digest,
    /// How many agents.
    pub agents: usize,
    /// How many conversations.
    pub conversations: usize,
    /// What is wrong, the first few; empty if nothing is.
    pub findings: Vec<String>,
    /// How much is wrong.
    pub findings_count: u64,
}

/// Recomputes leaves, root and rows, and compares them with what the store and the checkpoint say. What only the
/// ledger's key could check is not compared.
pub fn verify(
    reader: &mut dyn Reader,
    checkpoint: Option<Checkpoint>,
    now: Millis,
    progress: Progress<'_>,
) -> Result<AuditReport, StoreFault> {
    audit(reader, checkpoint, None, now, progress)
}

/// The same, with the ledger's key: also what is kept for answers, and events that wait.
pub fn verify_with_key(
    reader: &mut dyn Reader,
    checkpoint: Option<Checkpoint>,
    key: &LedgerKey,
    now: Millis,
    progress: Progress<'_>,
) -> Result<AuditReport, StoreFault> {
    audit(reader, checkpoint, Some(DecisionIds::new(key.id_secret())), now, progress)
}

fn audit(
    reader: &mut dyn Reader,
    checkpoint: Option<Checkpoint>,
    ids: Option<DecisionIds>,
    now: Millis,
    progress: Progress<'_>,
) -> Result<AuditReport, StoreFault> {
    // Rows and head of one moment; entries before that head never change, so they can be read in pages afterwards.
    let rows = reader.rows()?;
    let size = rows.head.size();
    let mut findings = Findings::default();
    reader.foreign()?.into_iter().for_each(|found| findings.add(found));
    let mut fold = Fold::default();
    let mut beside = Beside::new(now);
    let mut frontier = Frontier::default();
    // Whose entries are not found: the first of each is told.
    let mut lost = BTreeSet::new();
    let sealed = checkpoint.map(|checkpoint| (checkpoint.size, checkpoint.root));
    if sealed.is_some_and(|(sealed, _)| sealed > size) {
        findings.add(format!("the checkpoint covers more entries than the {size} there are"));
    }
    for_each_entry(reader, size, progress, |index, bytes| {
        if sealed.is_some_and(|(size, root)| size == index && frontier.root() != root) {
            findings.add(format!("the first {index} entries do not have the root the checkpoint signed"));
        }
        frontier.append(leaf_hash(bytes));
        match Entry::from_bytes(bytes) {
            Ok(entry) => {
                beside.add(&entry, &fold.places);
                let seq = entry.agent.as_deref().map_or(fold.of_service, |id| fold.entries_of(id)).saturating_add(1);
                if rows.places.place(entry.agent.as_deref(), seq) != Some(index) && lost.insert(entry.agent.clone()) {
                    let name = EntryName { agent: entry.agent.clone(), seq };
                    findings.add(format!("entry {index} is not found by its name, {name}"));
                }
                fold.add(&entry, index, |_, _, _| {}, |reason| findings.add(format!("entry {index}: {reason}")));
            }
            Err(error) => findings.add(format!("entry {index}: {error}")),
        }
    })?;
    if frontier.size() != size {
        findings.add(format!("entry {} is missing", frontier.size()));
    } else if frontier.root() != rows.head.root() {
        findings.add("the entries do not have the root of the head".to_owned());
    }
    if sealed.is_some_and(|(sealed, root)| sealed == size && frontier.root() != root) {
        findings.add(format!("the {size} entries do not have the root the checkpoint signed"));
    }
    if rows.places.total() != size {
        findings.add(format!("the names of {} entries lead to places, and there are {size}", rows.places.total()));
    }
    let (agents, conversations) = (rows.agents.len(), rows.conversations.len());
    let places = std::mem::take(&mut fold.places);
    compare_rows(fold, rows, &mut findings);
    beside::compare(reader, beside, (size, &places), ids, &mut |finding| findings.add(finding))?;
    let (findings, findings_count) = (findings.told, findings.count);
    Ok(AuditReport { entries: size, root: frontier.root(), agents, conversations, findings, findings_count })
}

/// Every row must follow from the entries, and every row that follows must be there.
fn compare_rows(mut fold: Fold, rows: Rows, findings: &mut Findings) {
    fold.finish(|reason| findings.add(reason.to_owned()));
    rows.misfiled.iter().for_each(|found| findings.add(found.clone()));
    if !rows.without_totals {
        let mut tokens: HashMap<String, Digest> = rows.tokens.into_iter().collect();
        for (id, agent) in &fold.agents {
            if tokens.remove(id) != Some(agent.token) {
                findings.add(format!("the token of {id} is not the one its entries say"));
            }
        }
        for id in tokens.keys() {
            findings.add(format!("{id} has a token and no entries"));
        }
    }
    for row in rows.agents {
        let id = row.profile.agent_id.clone();
        let mut expected = fold.agents.remove(&id);
        if let Some(agent) = expected.as_mut().filter(|_| rows.without_totals) {
            agent.totals = row.totals;
        }
        if expected.as_ref() != Some(&row) {
            findings.add(format!("the row of {id} does not follow from its entries"));
        }
    }
    for (agent, id, row) in rows.conversations {
        let name = interlock_core::display(&id).to_string();
        if fold.conversations.remove(&(agent.clone(), id)).as_ref() != Some(&row) {
            findings.add(format!("the row of conversation `{name}` of {agent} does not follow from its entries"));
        }
    }
    for (path, row) in rows.heads {
        if fold.heads.remove(&path).as_ref() != Some(&row) {
            let path = interlock_core::display(&path).to_string();
            findings.add(format!("the row of the state file `{path}` does not follow from its entries"));
        }
    }
    for ticket in rows.tickets {
        let id = ticket.approval_id.clone();
        if fold.tickets.remove(&id).as_ref() != Some(&ticket) {
            findings.add(format!("the row of the ticket {id} does not follow from its entries"));
        }
    }
    for (agent, decision, report) in rows.executions {
        if fold.executions.remove(&(agent.clone(), decision)) != Some(report) {
            let name = EntryName::of_agent(&agent, decision);
            findings.add(format!("the row of the execution of entry {name} does not follow from the entries"));
        }
    }
    for key in rows.keys {
        let id = key.key_id.clone();
        if fold.keys.remove(&id).as_ref() != Some(&key) {
            findings.add(format!("the row of {id} does not follow from its entries"));
        }
    }
    for (agent, run) in rows.runs {
        if fold.runs.remove(&agent).as_ref() != Some(&run) {
            findings.add(format!("the row of the run of {agent} does not follow from its entries"));
        }
    }
    for (id, head) in rows.workflows {
        if fold.registered.remove(&id).as_ref() != Some(&head) {
            let id = interlock_core::display(&id);
            findings.add(format!("the row of the workflow `{id}` does not follow from its entries"));
        }
    }
    for id in fold.registered.keys() {
        let id = interlock_core::display(id);
        findings.add(format!("the workflow `{id}` has entries and no row"));
    }
    for agent in fold.runs.keys() {
        findings.add(format!("the run of {agent} has entries and no row"));
    }
    for path in fold.heads.keys() {
        let path = interlock_core::display(path);
        findings.add(format!("the state file `{path}` has entries and no row"));
    }
    for id in fold.agents.keys().chain(fold.tickets.keys()).chain(fold.keys.keys()) {
        findings.add(format!("{id} has entries and no row"));
    }
    for (agent, decision) in fold.executions.keys() {
        findings.add(format!("the execution of entry {decision} of {agent} has an entry and no row"));
    }
    for ((agent, id), row) in &fold.conversations {
        if *row != Conversation::default() {
            let name = interlock_core::display(id);
            findings.add(format!("conversation `{name}` of {agent} has entries and no row"));
        }
    }
}

/// Whether a text is the one that its entry speaks of.
pub(super) fn is_text_of(reader: &mut dyn Reader, kept: &KeptText) -> Result<bool, StoreFault> {
    let found = reader.entry_of(Some(&kept.agent), kept.seq)?;
    let found = FoundEntry::read(Some(&kept.agent), kept.seq, found).ok().flatten();
    Ok(found.is_some_and(|found| found.entry.body.text() == Some(digest_of_text(kept))))
}

/// What deciding again found.
#[derive(Debug)]
pub struct Replay {
    /// How many entries were read.
    pub entries: u64,
    /// How many rulings were decided again.
    pub rulings: u64,
    /// Requests that were malformed; there is nothing to decide about them.
    pub malformed: u64,
    /// The rulings that come out differently, the first few.
    pub differences: Vec<Difference>,
    /// How many come out differently.
    pub differences_count: u64,
    /// What is wrong with the ledger itself.
    pub findings: Vec<String>,
}

/// A ruling that comes out differently.
#[derive(Debug)]
pub struct Difference {
    /// The entry.
    pub index: u64,
    /// The decision's id.
    pub decision_id: String,
    /// What was asked.
    pub action: String,
    /// What was decided.
    pub recorded: Decision,
    /// What is decided now; `None` if it would need the text.
    pub decided: Option<Decision>,
}

/// Decides every ruling again, with the bundle that was in force or with another one. With another bundle, what its
/// rules would say about the text is not known; what the recorded ones said is used.
pub fn replay(reader: &mut dyn Reader, other: Option<&Bundle>, progress: Progress<'_>) -> Result<Replay, StoreFault> {
    let size = reader.head()?.size();
    let mut fold = Fold::default();
    let mut replay = Replay {
        entries: size,
        rulings: 0,
        malformed: 0,
        differences: Vec::new(),
        differences_count: 0,
        findings: Vec::new(),
    };
    let mut findings = Findings::default();
    for_each_entry(reader, size, progress, |index, bytes| {
        let entry = match Entry::from_bytes(bytes) {
            Ok(entry) => entry,
            Err(error) => return findings.add(format!("entry {index}: {error}")),
        };
        let decide_again = |moment: &Moment<'_>, in_force: Option<&Bundle>, ruled: &Ruled| {
            let Some(facts) = &ruled.facts else {
                replay.malformed = replay.malformed.saturating_add(1);
                return;
            };
            // Before the sixth format a request told how many entries the ledger had.
            let carried =
                (facts.opened_at != moment.opened_at).then(|| Facts { opened_at: moment.opened_at, ..facts.clone() });
            let facts = carried.as_ref().unwrap_or(facts);
            let bundle = other.or(in_force);
            let decided = bundle.and_then(|bundle| {
                let evidence = ruled.evidence.clone().map(|mut evidence| {
                    if other.is_some() {
                        evidence.bundle = bundle.digest();
                    }
                    evidence
                });
                decided_again(bundle, moment, facts, evidence.as_ref(), ruled, entry.at)
            });
            replay.rulings = replay.rulings.saturating_add(1);
            // What counts against trust is decided again too, where it was decided at all.
            let attack = bundle.is_some_and(|bundle| {
                entry.rules >= 2 && is_violation(bundle, moment.agent, facts, ruled.evidence.as_ref(), &ruled.ruling)
            });
            let same_attack = other.is_some() || attack == ruled.violation;
            if decided.as_ref() != Some(&ruled.ruling) || !same_attack {
                replay.differences_count = replay.differences_count.saturating_add(1);
                if replay.differences.len() < FINDINGS_MAX {
                    replay.differences.push(Difference {
                        index,
                        decision_id: ruled.decision_id.clone(),
                        action: facts.action.shown().to_owned(),
                        recorded: ruled.ruling.decision,
                        decided: decided.map(|ruling| ruling.decision),
                    });
                }
            }
        };
        fold.add(&entry, index, decide_again, |reason| findings.add(format!("entry {index}: {reason}")));
    })?;
    fold.finish(|reason| findings.add(reason.to_owned()));
    replay.findings = findings.told;
    Ok(replay)
}

/// The ruling as it comes out again; none if it would need the text, or if what it used up differs.
fn decided_again(
    bundle: &Bundle,
    moment: &Moment<'_>,
    facts: &Facts,
    evidence: Option<&Evidence>,
    ruled: &Ruled,
    at: Millis,
) -> Option<Ruling> {
    let Some(run) = moment.run else {
        return decide(bundle, moment.agent, moment.conversation, facts, evidence, at).ok();
    };
    let snapshot = CallSnapshot { run, workflow: moment.workflow };
    let decided = decide_call(bundle, moment.agent, snapshot, facts, evidence, at).ok()?;
    (decided.redeemed == ruled.redeemed && decided.used == ruled.used).then_some(decided.ruling)
}

fn for_each_entry(
    reader: &mut dyn Reader,
    size: u64,
    progress: Progress<'_>,
    mut each: impl FnMut(u64, &[u8]),
) -> Result<(), StoreFault> {
    let mut index = 0;
    while index < size {
        let left = usize::try_from(size.saturating_sub(index)).unwrap_or(PAGE);
        let page = reader.entries(index, PAGE.min(left))?;
        if page.is_empty() {
            break;
        }
        for bytes in page {
            each(index, &bytes);
            index = index.saturating_add(1);
        }
        progress(index, size);
    }
    Ok(())
}

#[derive(Default)]
struct Findings {
    told: Vec<String>,
    count: u64,
}

impl Findings {
    fn add(&mut self, finding: String) {
        self.count = self.count.saturating_add(1);
        if self.told.len() < FINDINGS_MAX {
            self.told.push(finding);
        }
    }
}
