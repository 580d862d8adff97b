//! The ledger's outbox: events that were recorded with what they tell of, until they have arrived.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};

use interlock_core::action::Millis;
use interlock_core::bundle::Bundle;
use interlock_core::ledger::EntryName;
use interlock_core::{Cause, display};
use interlock_runtime::ledger::{Answer, Command, Ledger, Turn};

use super::{Destination, DestinationError, Destinations, Outbox, Outgoing};

/// The outbox of a ledger.
pub struct LedgerOutbox {
    ledger: Ledger,
    given_up: Box<dyn Fn(&str) + Send + Sync>,
    /// Events that do not follow from the ledger, as far as they were told of.
    told: Mutex<BTreeSet<EntryName>>,
}

/// Of so many events it is told that they do not follow from the ledger.
const TOLD_MAX: usize = 1_000;

impl LedgerOutbox {
    /// The outbox of this ledger; `given_up` hears of every event that never arrived, and why.
    pub fn new(ledger: Ledger, given_up: impl Fn(&str) + Send + Sync + 'static) -> Arc<LedgerOutbox> {
        Arc::new(LedgerOutbox { ledger, given_up: Box::new(given_up), told: Mutex::default() })
    }

    fn settle(&self, ids: &[EntryName]) -> Result<(), Cause> {
        match self.ledger.submit_and_wait(Command::Delivered(ids.to_vec())) {
            Answer::Done => Ok(()),
            Answer::Recorded(_)
            | Answer::NeedsEvidence(_)
            | Answer::Blocked(_)
            | Answer::BudgetSpent(_)
            | Answer::Stale(_)
            | Answer::Refused(_)
            | Answer::Passed(_)
            | Answer::Fault(_)
            | Answer::Unknown => Err("the ledger is not available".into()),
        }
    }
}

impl std::fmt::Debug for LedgerOutbox {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("LedgerOutbox").finish_non_exhaustive()
    }
}

impl Outbox for LedgerOutbox {
    fn backlog(&self) -> Result<Vec<(String, u64)>, Cause> {
        self.ledger.backlog().map_err(Cause::of)
    }

    fn next(&self, destination: &str, mut turn: Turn) -> Result<(Turn, Option<Outgoing>), Cause> {
        let (parcel, forged) = self.ledger.next_parcel(destination, &mut turn).map_err(Cause::of)?;
        for id in forged {
            let mut told = self.told.lock().unwrap_or_else(PoisonError::into_inner);
            // It stays for an audit to find, and is told of once.
            if told.len() < TOLD_MAX && told.insert(id.clone()) {
                (self.given_up)(&format!(
                    "the event of entry {id} does not follow from the ledger and is not sent; run `interlock audit verify`"
                ));
            }
        }
        let outgoing = parcel.map(|parcel| Outgoing {
            ids: parcel.ids,
            destination: destination.to_owned(),
            event_id: parcel.event_id,
            body: parcel.body,
            opened_at: parcel.at,
        });
        Ok((turn, outgoing))
    }

    fn older(&self, destination: &str, before: Millis, limit: usize) -> Result<Vec<EntryName>, Cause> {
        self.ledger.outbox_before(destination, before, limit).map_err(Cause::of)
    }

    fn delivered(&self, ids: &[EntryName]) -> Result<(), Cause> {
        self.settle(ids)
    }

    fn abandoned(&self, ids: &[EntryName], reason: &str) -> Result<(), Cause> {
        (self.given_up)(reason);
        self.settle(ids)
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
