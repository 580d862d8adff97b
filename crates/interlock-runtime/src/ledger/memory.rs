//! A store in memory: the model the others are compared with, and what the simulation crashes.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use interlock_core::Digest;
use interlock_core::action::{Agent, Conversation};
use interlock_core::ledger::{Frontier, StateHead};

use super::store::{Changes, KEPT_MS, KeptAnswer, Reader, Rows, Store, StoreFault, Txn};

/// A store in memory. Clones share what they hold.
#[derive(Debug, Clone, Default)]
pub struct MemoryStore {
    held: Arc<Mutex<Held>>,
}

#[derive(Debug, Default)]
struct Held {
    entries: Vec<Vec<u8>>,
    agents: BTreeMap<String, Arc<Agent>>,
    conversations: BTreeMap<(String, String), Conversation>,
    kept: BTreeMap<(String, Digest), KeptAnswer>,
    heads: BTreeMap<String, StateHead>,
    frontiers: BTreeMap<u64, Frontier>,
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
    fn agent(&mut self, id: &str) -> Result<Option<Agent>, StoreFault> {
        Ok(self.held.agents.get(id).map(|agent| Agent::clone(agent)))
    }

    fn conversation(&mut self, agent: &str, id: &str) -> Result<Option<Conversation>, StoreFault> {
        Ok(self.held.conversations.get(&(agent.to_owned(), id.to_owned())).cloned())
    }

    fn kept(&mut self, agent: &str, key: Digest) -> Result<Option<KeptAnswer>, StoreFault> {
        Ok(self.held.kept.get(&(agent.to_owned(), key)).cloned())
    }

    fn entry(&mut self, index: u64) -> Result<Option<Vec<u8>>, StoreFault> {
        Ok(usize::try_from(index).ok().and_then(|index| self.held.entries.get(index)).cloned())
    }

    fn head(&mut self, path: &str) -> Result<Option<StateHead>, StoreFault> {
        Ok(self.held.heads.get(path).cloned())
    }

    fn write(&mut self, _changes: &Changes) -> Result<(), StoreFault> {
        Ok(())
    }

    fn commit(mut self: Box<Self>, changes: Changes) -> Result<(), StoreFault> {
        let held = &mut *self.held;
        held.entries.extend(changes.entries);
        held.agents.extend(changes.agents.into_iter().map(|agent| (agent.profile.agent_id.clone(), agent)));
        held.conversations.extend(changes.conversations.into_iter().map(|(agent, id, row)| ((agent, id), row)));
        let newest = changes.kept.iter().map(|(_, _, kept)| kept.at).max().unwrap_or(0);
        held.kept.extend(changes.kept.into_iter().map(|(agent, key, kept)| ((agent, key), kept)));
        held.kept.retain(|_, kept| kept.at.saturating_add(KEPT_MS) > newest);
        held.heads.extend(changes.heads);
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

    fn rows(&mut self) -> Result<Rows, StoreFault> {
        let (head, heads) = (Reader::head(self)?, self.heads()?);
        let held = self.held();
        Ok(Rows {
            head,
            heads,
            agents: held.agents.values().map(|agent| Agent::clone(agent)).collect(),
            conversations: held
                .conversations
                .iter()
                .map(|((agent, id), row)| (agent.clone(), id.clone(), row.clone()))
                .collect(),
        })
    }
}
