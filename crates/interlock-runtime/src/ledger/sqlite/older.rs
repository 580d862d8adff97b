//! Rows of layouts before the sixth, which spoke of entries by their places in the tree, read as this version has them.
//!
//! What leads to no entry of the agent, or of the service, leads to none afterwards either, so that an audit finds it.

use std::sync::Arc;

use interlock_core::action::{Agent, Conversation, Ticket, TicketSubject};
use interlock_core::ledger::{Entry, StateHead, WorkflowHead};
use interlock_core::workflow::Run;
use rusqlite::Connection;

use super::to_u64;
use crate::ledger::places::Places;
use crate::ledger::store::StoreFault;

/// The number of an entry that there is not.
const NONE: u64 = u64::MAX;

/// Where the entries of an older database stand.
#[derive(Debug, Clone, Default)]
pub(super) struct Older {
    places: Arc<Places>,
    /// The place after the last one that was read.
    next: i64,
}

impl Older {
    /// Reads the entries that came since: an older database does not say which are whose.
    pub(super) fn read_on(&mut self, connection: &Connection) -> Result<(), StoreFault> {
        let places = Arc::make_mut(&mut self.places);
        let mut select =
            connection.prepare_cached("SELECT number, bytes FROM entries WHERE number >= ?1 ORDER BY number")?;
        let mut rows = select.query([self.next])?;
        while let Some(row) = rows.next()? {
            let (number, bytes): (i64, Vec<u8>) = (row.get(0)?, row.get(1)?);
            // What is no entry is nobody's, and an audit says so.
            if let Ok(entry) = Entry::from_bytes(&bytes) {
                places.add(entry.agent.as_deref(), to_u64(number)?);
            }
            self.next = number.saturating_add(1);
        }
        Ok(())
    }

    pub(super) fn places(&self) -> &Places {
        &self.places
    }

    /// The number of an agent's entry.
    pub(super) fn seq(&self, agent: &str, place: u64) -> u64 {
        self.places.seq_at(Some(agent), place).unwrap_or(NONE)
    }

    /// The place after which a page begins; what leads nowhere is past all others of its agent.
    pub(super) fn place_after(&self, after: (&str, u64)) -> u64 {
        self.places.place(Some(after.0), after.1).unwrap_or(u64::MAX >> 1)
    }

    fn of_service(&self, place: u64) -> u64 {
        self.places.seq_at(None, place).unwrap_or(NONE)
    }

    pub(super) fn agent(&self, mut agent: Agent) -> Agent {
        let id = agent.profile.agent_id.clone();
        if let Some(cost) = &mut agent.cost {
            cost.entry = self.seq(&id, cost.entry);
        }
        agent
    }

    pub(super) fn conversation(&self, agent: &str, row: Conversation) -> Conversation {
        row.renumbered(|place| self.seq(agent, place).saturating_sub(1))
    }

    pub(super) fn head(&self, mut head: StateHead) -> StateHead {
        if let Some(open) = &mut head.open {
            open.seq = self.of_service(open.seq);
        }
        head
    }

    pub(super) fn ticket(&self, mut ticket: Ticket) -> Ticket {
        ticket.opened = self.seq(&ticket.agent, ticket.opened);
        if let Some(resolution) = &mut ticket.resolution {
            resolution.entry = self.seq(&ticket.agent, resolution.entry);
        }
        if let TicketSubject::Trust(asked) = &mut ticket.subject {
            // Where nothing was looked at, there is no entry.
            let through = self.places.seq_at(Some(&ticket.agent), asked.merits.through);
            asked.merits.through = through.unwrap_or_default();
        }
        ticket
    }

    pub(super) fn run(&self, agent: &str, mut run: Run) -> Run {
        run.open.iter_mut().for_each(|open| open.decision = self.seq(agent, open.decision));
        if let Some(position) = &mut run.position {
            position.started = self.seq(agent, position.started);
        }
        run
    }

    pub(super) fn workflow(&self, mut head: WorkflowHead) -> WorkflowHead {
        head.entry = self.of_service(head.entry);
        head
    }
}

/// Whose an entry is.
pub(super) fn agent_at(connection: &Connection, place: u64) -> Option<String> {
    let mut select = connection.prepare_cached("SELECT bytes FROM entries WHERE number = ?1").ok()?;
    let bytes: Vec<u8> = select.query_row([i64::try_from(place).ok()?], |row| row.get(0)).ok()?;
    Entry::from_bytes(&bytes).ok()?.agent
}
