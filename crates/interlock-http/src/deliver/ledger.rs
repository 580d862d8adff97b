//! The ledger's outbox: events that were recorded with what they tell of, until they have arrived.

use std::sync::Arc;

use interlock_core::bundle::Bundle;
use interlock_core::display;
use interlock_runtime::ledger::{Answer, Command, Ledger};

use super::{Destination, DestinationError, Destinations, Outbox, Outgoing};

/// The outbox of a ledger.
pub struct LedgerOutbox {
    ledger: Ledger,
    given_up: Box<dyn Fn(&str) + Send + Sync>,
}

impl LedgerOutbox {
    /// The outbox of this ledger; `given_up` hears of every event that never arrived, and why.
    pub fn new(ledger: Ledger, given_up: impl Fn(&str) + Send + Sync + 'static) -> Arc<LedgerOutbox> {
        Arc::new(LedgerOutbox { ledger, given_up: Box::new(given_up) })
    }

    fn settle(&self, id: u64) -> Result<(), String> {
        match self.ledger.submit_and_wait(Command::Delivered(vec![id])) {
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

impl std::fmt::Debug for LedgerOutbox {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("LedgerOutbox").finish_non_exhaustive()
    }
}

impl Outbox for LedgerOutbox {
    fn backlog(&self) -> Result<Vec<(String, u64)>, String> {
        self.ledger.backlog().map_err(|fault| fault.to_string())
    }

    fn waiting(&self, destination: &str, after: Option<u64>, limit: usize) -> Result<Vec<Outgoing>, String> {
        let events = self.ledger.outbox(destination, after.unwrap_or(0), limit).map_err(|fault| fault.to_string())?;
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
        (self.given_up)(reason);
        self.settle(id)
    }
}

/// The webhooks of a bundle's principals. The bundle must be as it was written: one from the ledger has no secrets.
pub fn destinations_of(bundle: &Bundle) -> Result<Destinations, DestinationError> {
    let mut destinations = Destinations::default();
    for (name, hook) in bundle.principals() {
        let secret = bundle.secret(hook.secret).unwrap_or_default();
        let destination = Destination::parse(&hook.webhook, secret);
        destinations.add(name, destination.map_err(|error| error.of(&format!("principals.{}", display(name))))?)?;
    }
    Ok(destinations)
}

/// Where checkpoints go, if the bundle wants them told of.
pub fn checkpoint_destination_of(bundle: &Bundle) -> Result<Option<Destination>, DestinationError> {
    let Some(elsewhere) = bundle.checkpoints() else { return Ok(None) };
    let Some((address, secret)) = elsewhere.webhook.as_ref().zip(elsewhere.secret) else { return Ok(None) };
    let destination = Destination::parse(address, bundle.secret(secret).unwrap_or_default());
    destination.map(Some).map_err(|error| error.of("checkpoints"))
}
