//! The ledger's outbox: events that were recorded with what they tell of, until they have arrived.

use std::io::Write;
use std::sync::Arc;

use interlock_core::bundle::Bundle;
use interlock_runtime::ledger::{Answer, Command, Ledger};

use super::{Destination, DestinationError, Destinations, Outbox, Outgoing};

/// The outbox of a ledger.
#[derive(Debug, Clone)]
pub struct LedgerOutbox(Ledger);

impl LedgerOutbox {
    /// The outbox of this ledger.
    pub fn new(ledger: Ledger) -> Arc<LedgerOutbox> {
        Arc::new(LedgerOutbox(ledger))
    }

    fn settle(&self, id: u64) -> Result<(), String> {
        match self.0.submit_and_wait(Command::Delivered(vec![id])) {
            Answer::Done => Ok(()),
            Answer::Recorded(_)
            | Answer::NeedsEvidence(_)
            | Answer::Blocked(_)
            | Answer::BudgetSpent(_)
            | Answer::Refused(_)
            | Answer::Fault(_) => Err("the ledger is not available".to_owned()),
        }
    }
}

impl Outbox for LedgerOutbox {
    fn backlog(&self) -> Result<Vec<(String, u64)>, String> {
        self.0.backlog().map_err(|fault| fault.to_string())
    }

    fn waiting(&self, destination: &str, after: Option<u64>, limit: usize) -> Result<Vec<Outgoing>, String> {
        let events = self.0.outbox(destination, after.unwrap_or(0), limit).map_err(|fault| fault.to_string())?;
        let events = events.into_iter().map(|event| Outgoing {
            id: event.id,
            destination: event.principal,
            event_id: event.event_id,
            body: event.body,
            opened_at: event.at,
        });
        Ok(events.collect())
    }

    fn delivered(&self, id: u64) -> Result<(), String> {
        self.settle(id)
    }

    fn abandoned(&self, id: u64, reason: &str) -> Result<(), String> {
        // Whether or not anybody can read it.
        let _ = writeln!(std::io::stderr(), "interlock: an event was given up: {}", interlock_core::visible(reason));
        self.settle(id)
    }
}

/// The webhooks of a bundle's principals. The bundle must be as it was written: one from the ledger has no secrets.
pub fn destinations_of(bundle: &Bundle) -> Result<Destinations, DestinationError> {
    let mut destinations = Destinations::default();
    for (name, hook) in bundle.principals() {
        let secret = bundle.secret(hook.secret).unwrap_or_default();
        destinations.add(name, Destination::parse(&hook.webhook, secret)?)?;
    }
    Ok(destinations)
}
