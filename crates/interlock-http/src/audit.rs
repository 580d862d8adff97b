//! The ledger for outsiders: the signed checkpoint for everybody, the entries for admins.

use std::sync::Arc;

use axum::extract::{RawQuery, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::Response;
use interlock_core::Code;
use interlock_core::ledger::leaf_hash;

use crate::Service;
use crate::answer::{Refusal, json};
use crate::auth::Credentials;
use crate::query::Query;
use crate::routes::{Answered, text};
use crate::write::{Object, list};

pub(crate) async fn checkpoint(State(service): State<Arc<Service>>) -> Result<Response, Refusal> {
    let note = service.gate.ledger().checkpoint_note();
    if note.is_empty() {
        return Err(Refusal::new(Code::FaultBusy, "there is no checkpoint yet; one is written within a second"));
    }
    Ok(text(note.to_string()))
}

pub(crate) async fn entries(
    State(service): State<Arc<Service>>,
    RawQuery(query): RawQuery,
    headers: HeaderMap,
) -> Answered {
    service.count_request();
    service.admin(&Credentials::read(&headers))?;
    let query = Query::read(query.as_deref(), &["from", "limit", "cursor"])?;
    let (limit, from) = (query.limit()?, query.cursor()?.or(query.number("from")?).unwrap_or(0));
    let read = tokio::task::spawn_blocking(move || {
        let page = service.gate.ledger().with_reader(|reader| reader.entries(from, limit));
        let page = page.map_err(|_| Refusal::of_code(Code::FaultStore))?;
        let next = from.saturating_add(u64::try_from(page.len()).unwrap_or(0));
        let next = (page.len() == limit && next < service.gate.ledger().size()).then_some(next);
        let rows = (from..).zip(&page).map(|(index, bytes)| {
            let object = Object::new().raw("index", index).text("leaf_hash", &leaf_hash(bytes).to_string());
            object.raw("entry", String::from_utf8_lossy(bytes)).end()
        });
        let body =
            Object::new().raw("entries", list(rows)).limit("next_cursor", next.map(|cursor| format!("\"{cursor}\"")));
        Ok::<_, Refusal>(body.end())
    });
    let body = read.await.map_err(|_| Refusal::of_code(Code::FaultInternal))??;
    Ok(json(StatusCode::OK, body))
}
