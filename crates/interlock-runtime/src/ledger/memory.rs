//! A store in memory: the model the others are compared with, and what the simulation crashes.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use interlock_core::Digest;
use interlock_core::action::{Agent, Conversation, Millis, Ticket};
use interlock_core::ledger::{EntryName, Frontier, OperatorKey, StateHead, WorkflowHead};
use interlock_core::workflow::Run;

use super::decision_id::mark_of;
use super::places::Places;
use super::store::{
    Changes, KEPT_MS, KeptAnswer, KeptText, Lane, Outgoing, Reader, Rows, Store, StoreFault, TicketQuery, Txn,
};

/// A store in memory. Clones share what they hold.
#[derive(Debug, Clone, Default)]
pub struct MemoryStore {
    held: Arc<Mutex<Held>>,
}

#[derive(Debug, Default)]
struct Held {
    entries: Vec<Vec<u8>>,
    places: Places,
    agents: BTreeMap<String, Arc<Agent>>,
    conversations: BTreeMap<(String, String), Conversation>,
    kept: BTreeMap<(String, Digest), KeptAnswer>,
    heads: BTreeMap<String, StateHead>,
    frontiers: BTreeMap<u64, Frontier>,
    /// In the order in which they were opened.
    tickets: Vec<Ticket>,
    /// By agent and decision.
    executions: BTreeMap<(String, u64), u64>,
    keys: BTreeMap<String, OperatorKey>,
    runs: BTreeMap<String, Run>,
    workflows: BTreeMap<String, WorkflowHead>,
    texts: BTreeMap<(String, u64), KeptText>,
    /// By agent and entry.
    outbox: BTreeMap<(String, u64), Outgoing>,
}

impl Held {
    fn ticket(&self, id: &str) -> Option<Ticket> {
        self.tickets.iter().find(|ticket| ticket.approval_id == id).cloned()
    }

    fn entry_of(&self, agent: Option<&str>, seq: u64) -> Option<(u64, Vec<u8>)> {
        let place = self.places.place(agent, seq)?;
        Some((place, self.entries.get(usize::try_from(place).ok()?)?.clone()))
    }
}

impl MemoryStore {
    fn held(&self) -> MutexGuard<'_, Held> {
        // Nothing here panics half way through a change.
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Store for MemoryStore {
    fn begin(&mut self) -> Result<Box<dyn Txn + '_>, StoreFault> {
        Ok(Box::new(MemoryTxn { held: self.held() }))
    }

    fn reopen(&mut self) -> Result<(), StoreFault> {
        Ok(())
    }

    fn reader(&self) -> Result<Box<dyn Reader>, StoreFault> {
        Ok(Box::new(self.clone()))
    }
}

struct MemoryTxn<'a> {
    held: MutexGuard<'a, Held>,
}

impl Txn for MemoryTxn<'_> {
    fn agent(&mut self, id: &str) -> Result<Option<Arc<Agent>>, StoreFault> {
        Ok(self.held.agents.get(id).cloned())
    }

    fn conversation(&mut self, agent: &str, id: &str) -> Result<Option<Conversation>, StoreFault> {
        Ok(self.held.conversations.get(&(agent.to_owned(), id.to_owned())).cloned())
    }

    fn kept(&mut self, agent: &str, key: Digest) -> Result<Option<KeptAnswer>, StoreFault> {
        Ok(self.held.kept.get(&(agent.to_owned(), key)).cloned())
    }

    fn entry(&mut self, place: u64) -> Result<Option<Vec<u8>>, StoreFault> {
        Ok(usize::try_from(place).ok().and_then(|place| self.held.entries.get(place)).cloned())
    }

    fn entry_of(&mut self, agent: Option<&str>, seq: u64) -> Result<Option<(u64, Vec<u8>)>, StoreFault> {
        Ok(self.held.entry_of(agent, seq))
    }

    fn head(&mut self, path: &str) -> Result<Option<StateHead>, StoreFault> {
        Ok(self.held.heads.get(path).cloned())
    }

    fn ticket(&mut self, id: &str) -> Result<Option<Ticket>, StoreFault> {
        Ok(self.held.ticket(id))
    }

    fn execution(&mut self, agent: &str, decision: u64) -> Result<Option<u64>, StoreFault> {
        Ok(self.held.executions.get(&(agent.to_owned(), decision)).copied())
    }

    fn key(&mut self, id: &str) -> Result<Option<OperatorKey>, StoreFault> {
        Ok(self.held.keys.get(id).cloned())
    }

    fn run(&mut self, agent: &str) -> Result<Option<Run>, StoreFault> {
        Ok(self.held.runs.get(agent).cloned())
    }

    fn workflow(&mut self, id: &str) -> Result<Option<WorkflowHead>, StoreFault> {
        Ok(self.held.workflows.get(id).cloned())
    }

    fn texts_count(&mut self, agent: &str) -> Result<u64, StoreFault> {
        let count = self.held.texts.keys().filter(|(owner, _)| owner == agent).count();
        Ok(u64::try_from(count).unwrap_or(u64::MAX))
    }

    fn write(&mut self, _changes: &Changes) -> Result<(), StoreFault> {
        Ok(())
    }

    fn commit(mut self: Box<Self>, changes: Changes) -> Result<(), StoreFault> {
        let held = &mut *self.held;
        for new in changes.entries {
            let place = u64::try_from(held.entries.len()).unwrap_or(u64::MAX);
            held.places.add(new.name.agent.as_deref(), place);
            held.entries.push(new.bytes);
        }
        held.agents.extend(changes.agents.into_iter().map(|agent| (agent.profile.agent_id.clone(), agent)));
        held.conversations.extend(changes.conversations.into_iter().map(|(agent, id, row)| ((agent, id), row)));
        held.texts.retain(|(agent, _), _| !changes.erased.contains(agent));
        for ((agent, _), kept) in &mut held.kept {
            if changes.erased.contains(agent) {
                kept.corrected = None;
            }
        }
        let newest = changes.kept.iter().map(|(_, _, kept)| kept.at).max().unwrap_or(0);
        held.kept.extend(changes.kept.into_iter().map(|(agent, key, kept)| ((agent, key), kept)));
        held.kept.retain(|_, kept| kept.at.saturating_add(KEPT_MS) > newest);
        held.heads.extend(changes.heads);
        for ticket in changes.tickets {
            match held.tickets.iter_mut().find(|known| known.approval_id == ticket.approval_id) {
                Some(known) => *known = ticket,
                None => held.tickets.push(ticket),
            }
        }
        let executions = changes.executions.into_iter();
        held.executions.extend(executions.map(|(agent, decision, report)| ((agent, decision), report)));
        held.keys.extend(changes.keys.into_iter().map(|key| (key.key_id.clone(), key)));
        held.runs.extend(changes.runs);
        held.workflows.extend(changes.workflows.into_iter().map(|head| (head.id.clone(), head)));
        held.texts.extend(changes.texts.into_iter().map(|text| ((text.agent.clone(), text.seq), text)));
        for key in changes.forgotten {
            if held.texts.get(&key).is_some_and(|text| text.until.is_some()) {
                held.texts.remove(&key);
            }
        }
        held.texts.retain(|_, text| text.until.is_none_or(|until| until > changes.now));
        held.outbox.extend(changes.outbox.into_iter().map(|event| ((event.agent.clone(), event.seq), event)));
        held.outbox.retain(|_, event| !changes.delivered.contains(&event.name()));
        held.frontiers.insert(changes.frontier.size(), changes.frontier);
        Ok(())
    }
}

impl Reader for MemoryStore {
    fn agent(&mut self, id: &str) -> Result<Option<Agent>, StoreFault> {
        Ok(self.held().agents.get(id).map(|agent| Agent::clone(agent)))
    }

    fn conversation(&mut self, agent: &str, id: &str) -> Result<Option<Conversation>, StoreFault> {
        Ok(self.held().conversations.get(&(agent.to_owned(), id.to_owned())).cloned())
    }

    fn entries(&mut self, from: u64, count: usize) -> Result<Vec<Vec<u8>>, StoreFault> {
        let from = usize::try_from(from).unwrap_or(usize::MAX);
        Ok(self.held().entries.iter().skip(from).take(count).cloned().collect())
    }

    fn entry_of(&mut self, agent: Option<&str>, seq: u64) -> Result<Option<(u64, Vec<u8>)>, StoreFault> {
        Ok(self.held().entry_of(agent, seq))
    }

    fn of_service(&mut self) -> Result<u64, StoreFault> {
        Ok(self.held().places.count(None))
    }

    fn agents_marked(&mut self, mark: u32) -> Result<Vec<String>, StoreFault> {
        Ok(self.held().agents.keys().filter(|id| mark_of(id) == mark).cloned().collect())
    }

    fn head(&mut self) -> Result<Frontier, StoreFault> {
        Ok(self.held().frontiers.last_key_value().map(|(_, frontier)| frontier.clone()).unwrap_or_default())
    }

    fn frontier(&mut self, size: u64) -> Result<Option<Frontier>, StoreFault> {
        if size == 0 {
            return Ok(Some(Frontier::default()));
        }
        Ok(self.held().frontiers.get(&size).cloned())
    }

    fn heads(&mut self) -> Result<Vec<(String, StateHead)>, StoreFault> {
        Ok(self.held().heads.iter().map(|(path, row)| (path.clone(), row.clone())).collect())
    }

    fn agents(&mut self, after: &str, count: usize) -> Result<Vec<Agent>, StoreFault> {
        let held = self.held();
        let later = held.agents.iter().filter(|(id, _)| id.as_str() > after);
        Ok(later.take(count).map(|(_, agent)| Agent::clone(agent)).collect())
    }

    fn agent_by_token(&mut self, token: Digest) -> Result<Option<String>, StoreFault> {
        Ok(self.held().agents.values().find(|agent| agent.token == token).map(|agent| agent.profile.agent_id.clone()))
    }

    fn ticket(&mut self, id: &str) -> Result<Option<Ticket>, StoreFault> {
        Ok(self.held().ticket(id))
    }

    fn tickets(&mut self, query: &TicketQuery, count: usize) -> Result<Vec<(u64, Ticket)>, StoreFault> {
        let held = self.held();
        let numbered = (0_u64..).zip(&held.tickets).collect::<Vec<_>>();
        let asked = numbered.into_iter().rev().filter(|(number, ticket)| {
            query.before.is_none_or(|before| *number < before)
                && query.agent.as_ref().is_none_or(|agent| ticket.agent == *agent)
                && (!query.undecided || ticket.resolution.is_none())
                && query.expires_after.is_none_or(|after| ticket.expires_at > after)
        });
        Ok(asked.take(count).map(|(number, ticket)| (number, ticket.clone())).collect())
    }

    fn execution(&mut self, agent: &str, decision: u64) -> Result<Option<u64>, StoreFault> {
        Ok(self.held().executions.get(&(agent.to_owned(), decision)).copied())
    }

    fn keys(&mut self) -> Result<Vec<OperatorKey>, StoreFault> {
        Ok(self.held().keys.values().cloned().collect())
    }

    fn run(&mut self, agent: &str) -> Result<Option<Run>, StoreFault> {
        Ok(self.held().runs.get(agent).cloned())
    }

    fn runs(&mut self, after: &str, count: usize) -> Result<Vec<(String, Run)>, StoreFault> {
        let held = self.held();
        let later = held.runs.iter().filter(|(agent, _)| agent.as_str() > after);
        Ok(later.take(count).map(|(agent, run)| (agent.clone(), run.clone())).collect())
    }

    fn workflow(&mut self, id: &str) -> Result<Option<WorkflowHead>, StoreFault> {
        Ok(self.held().workflows.get(id).cloned())
    }

    fn workflows(&mut self, after: &str, count: usize) -> Result<Vec<WorkflowHead>, StoreFault> {
        let held = self.held();
        let later = held.workflows.iter().filter(|(id, _)| id.as_str() > after);
        Ok(later.take(count).map(|(_, head)| head.clone()).collect())
    }

    fn texts(&mut self, after: (&str, u64), count: usize) -> Result<Vec<KeptText>, StoreFault> {
        let held = self.held();
        let later = held.texts.iter().filter(|((agent, seq), _)| (agent.as_str(), *seq) > after);
        Ok(later.take(count).map(|(_, text)| text.clone()).collect())
    }

    fn text(&mut self, agent: &str, seq: u64) -> Result<Option<KeptText>, StoreFault> {
        Ok(self.held().texts.get(&(agent.to_owned(), seq)).cloned())
    }

    fn told_agent(&mut self, principal: &str, lane: Lane, after: &str) -> Result<Option<String>, StoreFault> {
        let held = self.held();
        let waiting = held.outbox.values().filter(|event| event.principal == principal && event.lane == lane);
        Ok(waiting.map(|event| &event.agent).filter(|agent| agent.as_str() > after).min().cloned())
    }

    fn outbox(&mut self, principal: &str, lane: Lane, agent: &str, count: usize) -> Result<Vec<Outgoing>, StoreFault> {
        let held = self.held();
        let of_lane = |event: &&Outgoing| event.principal == principal && event.lane == lane && event.agent == agent;
        Ok(held.outbox.values().filter(of_lane).take(count).cloned().collect())
    }

    fn outbox_before(&mut self, principal: &str, at: Millis, count: usize) -> Result<Vec<EntryName>, StoreFault> {
        let held = self.held();
        let old = held.outbox.values().filter(|event| event.principal == principal && event.at < at);
        let mut old: Vec<&Outgoing> = old.collect();
        old.sort_by(|left, right| (left.at, &left.agent, left.seq).cmp(&(right.at, &right.agent, right.seq)));
        Ok(old.into_iter().take(count).map(Outgoing::name).collect())
    }

    fn backlog(&mut self) -> Result<Vec<(String, u64)>, StoreFault> {
        let mut counts: BTreeMap<String, u64> = BTreeMap::new();
        for event in self.held().outbox.values() {
            let count = counts.entry(event.principal.clone()).or_default();
            *count = count.saturating_add(1);
        }
        Ok(counts.into_iter().collect())
    }

    fn events(&mut self, after: (&str, u64), count: usize) -> Result<Vec<Outgoing>, StoreFault> {
        let held = self.held();
        let later = held.outbox.iter().filter(|((agent, seq), _)| (agent.as_str(), *seq) > after);
        Ok(later.take(count).map(|(_, event)| event.clone()).collect())
    }

    fn kept(&mut self, after: (&str, Digest), count: usize) -> Result<Vec<(String, Digest, KeptAnswer)>, StoreFault> {
        let held = self.held();
        let later = held.kept.iter().filter(|((agent, key), _)| (agent.as_str(), *key) > after);
        Ok(later.take(count).map(|((agent, key), kept)| (agent.clone(), *key, kept.clone())).collect())
    }

    fn foreign(&mut self) -> Result<Vec<String>, StoreFault> {
        Ok(Vec::new())
    }

    fn rows(&mut self) -> Result<Rows, StoreFault> {
        let (head, heads) = (Reader::head(self)?, self.heads()?);
        let held = self.held();
        Ok(Rows {
            head,
            heads,
            tickets: held.tickets.clone(),
            executions: held
                .executions
                .iter()
                .map(|((agent, decision), report)| (agent.clone(), *decision, *report))
                .collect(),
            places: held.places.clone(),
            keys: held.keys.values().cloned().collect(),
            runs: held.runs.iter().map(|(agent, run)| (agent.clone(), run.clone())).collect(),
            workflows: held.workflows.iter().map(|(id, head)| (id.clone(), head.clone())).collect(),
            tokens: held.agents.iter().map(|(id, agent)| (id.clone(), agent.token)).collect(),
            misfiled: Vec::new(),
            without_totals: false,
            agents: held.agents.values().map(|agent| Agent::clone(agent)).collect(),
            conversations: held
                .conversations
                .iter()
                .map(|((agent, id), row)| (agent.clone(), id.clone(), row.clone()))
                .collect(),
        })
    }
}
