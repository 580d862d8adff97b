//! How many of an agent's requests may wait at once. Each holds a connection, and those are everybody's.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

/// More of one agent's are answered at once, with what there is.
const AGENT_WAITS_MAX: u32 = 32;

/// The requests that wait, by agent.
#[derive(Debug, Default)]
pub(crate) struct Waits(Mutex<HashMap<String, u32>>);

/// A place among them, until it is dropped.
#[derive(Debug)]
pub(crate) struct Wait<'a> {
    waits: &'a Waits,
    agent: String,
}

impl Waits {
    /// A place for one more request of this agent, if there is any.
    pub(crate) fn enter(&self, agent: &str) -> Option<Wait<'_>> {
        let mut waits = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let count = waits.entry(agent.to_owned()).or_default();
        *count = count.checked_add(1).filter(|count| *count <= AGENT_WAITS_MAX)?;
        Some(Wait { waits: self, agent: agent.to_owned() })
    }
}

impl Drop for Wait<'_> {
    fn drop(&mut self) {
        let mut waits = self.waits.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(count) = waits.get_mut(&self.agent) {
            *count = count.saturating_sub(1);
            if *count == 0 {
                waits.remove(&self.agent);
            }
        }
    }
}
