//! The ledger for outsiders: the signed checkpoint for everybody, entries and proofs for admins.

use std::sync::{Arc, PoisonError};
use std::time::Duration;

use axum::extract::{RawQuery, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::Response;
use interlock_core::Code;
use interlock_core::ledger::leaf_hash;
use interlock_runtime::ledger::{ProofFault, prove_continuation, prove_entry};
use interlock_wire::{EntryPage, EntryRow, RawJson, write};

use crate::Service;
use crate::answer::{Refusal, json};
use crate::auth::Credentials;
use crate::query::Query;
use crate::request::malformed;
use crate::routes::{Answered, blocking, text};

pub(crate) async fn checkpoint(State(service): State<Arc<Service>>) -> Result<Response, Refusal> {
    let signed = service.gate.ledger().signed_checkpoint();
    let missing = || Refusal::new(Code::FaultBusy, "there is no checkpoint yet; one is written within a second");
    Ok(text(signed.ok_or_else(missing)?.note.clone()))
}

pub(crate) async fn entries(
    State(service): State<Arc<Service>>,
    RawQuery(query): RawQuery,
    headers: HeaderMap,
) -> Answered {
    service.count_request();
    let asker = service.admin(&Credentials::read(&headers))?.asker();
    let query = Query::read(query.as_deref(), &["from", "limit", "cursor"])?;
    let (limit, from) = (query.limit()?, query.cursor()?.or(query.number("from")?).unwrap_or(0));
    let reader = Arc::clone(&service);
    let body = reader
        .read_apart(asker, move |_| {
            let page = service.gate.ledger().with_reader(|reader| reader.entries(from, limit));
            let page = page.map_err(|_| Refusal::of_code(Code::FaultStore))?;
            let next = from.saturating_add(u64::try_from(page.len()).unwrap_or(0));
            let next = (page.len() == limit && next < service.gate.ledger().size()).then_some(next);
            let rows = (from..).zip(page).map(|(index, bytes)| EntryRow {
                index,
                leaf_hash: leaf_hash(&bytes).to_string(),
                entry: RawJson::written(String::from_utf8_lossy(&bytes).into_owned()),
            });
            let page = EntryPage { entries: rows.collect(), next_cursor: next.map(|cursor| cursor.to_string()) };
            Ok::<_, Refusal>(write(&page))
        })
        .await?;
    Ok(json(StatusCode::OK, body))
}

pub(crate) async fn proof(
    State(service): State<Arc<Service>>,
    RawQuery(query): RawQuery,
    headers: HeaderMap,
) -> Answered {
    service.count_request();
    let asker = service.admin(&Credentials::read(&headers))?.asker();
    let query = Query::read(query.as_deref(), &["index", "decision", "old", "size"])?;
    let decision = query.text("decision").map(str::to_owned);
    let (index, old, size) = (query.number("index")?, query.number("old")?, query.number("size")?);
    let asked = match (index, decision, old) {
        (Some(index), None, None) => ToProve::Entry(index),
        (None, Some(decision), None) => ToProve::Decision(decision),
        (None, None, Some(old)) => ToProve::Continuation(old),
        _ => return Err(malformed("exactly one of index, decision and old is required")),
    };
    let prover = Arc::clone(&service);
    let body = service.read_apart(asker, move |_| prover.prove(asked, size)).await?;
    Ok(json(StatusCode::OK, body))
}

/// What is to be proven.
enum ToProve {
    /// That an entry is in the ledger.
    Entry(u64),
    /// That the entry of a decision is.
    Decision(String),
    /// That the ledger continues what it was at a size.
    Continuation(u64),
}

/// How many blocks of the tree are hashed at a time, so that nobody waits long for the reader.
const BLOCKS_AT_A_TIME: u64 = 32;

impl Service {
    /// Hashes the tree as far as it goes, in short turns: the first proof would have to otherwise.
    pub(crate) async fn warm_tree(self: Arc<Self>) {
        loop {
            let service = Arc::clone(&self);
            let done = blocking(move || {
                let mut tree = service.tree.lock().unwrap_or_else(PoisonError::into_inner);
                let extended = service.gate.ledger().with_reader(|reader| tree.extend(reader, BLOCKS_AT_A_TIME));
                // A proof will meet the same fault, and tell.
                Ok(extended.unwrap_or(true))
            });
            if done.await.unwrap_or(true) {
                return;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    fn prove(&self, asked: ToProve, size: Option<u64>) -> Result<String, Refusal> {
        let ledger = self.gate.ledger();
        let signed = ledger.signed_checkpoint();
        let signed = signed.as_deref();
        let mut tree = self.tree.lock().unwrap_or_else(PoisonError::into_inner);
        let proof = match asked {
            ToProve::Entry(index) => ledger.with_reader(|reader| prove_entry(&mut tree, reader, signed, index, size)),
            ToProve::Decision(id) => {
                let found = ledger.ruling(&id).map_err(|_| Refusal::of_code(Code::FaultStore))?;
                let missing = || malformed("there is no such decision").with_status(StatusCode::NOT_FOUND);
                let index = found.ok_or_else(missing)?.place;
                ledger.with_reader(|reader| prove_entry(&mut tree, reader, signed, index, size))
            }
            ToProve::Continuation(old) => {
                ledger.with_reader(|reader| prove_continuation(&mut tree, reader, signed, old, size))
            }
        };
        proof.map(|proof| proof.to_json()).map_err(|fault| match fault {
            ProofFault::Damaged(reason) => Refusal::new(Code::LedgerDamaged, reason),
            ProofFault::Store(_) => Refusal::of_code(Code::FaultStore),
            other @ (ProofFault::Beyond { .. }
            | ProofFault::NoSuchEntry { .. }
            | ProofFault::NotSigned { .. }
            | ProofFault::Backwards { .. }) => malformed(other.to_string()),
        })
    }
}
