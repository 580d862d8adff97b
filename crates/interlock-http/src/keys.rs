//! Operators' keys: made, listed and revoked by an admin. A key is shown once and stored as its SHA-256.

use std::sync::Arc;

use axum::extract::{Request, State};
use axum::http::{HeaderMap, StatusCode};
use interlock_core::action::Trust;
use interlock_core::ledger::{Body as EntryBody, KeyRevoked, OperatorKey, Role};
use interlock_core::{Code, Digest};
use interlock_runtime::ledger::Command;
use interlock_wire::{Key, KeyList, KeyRequest, write};

use crate::Service;
use crate::answer::{Refusal, json, recorded};
use crate::auth::{Credentials, is_first_key_name};
use crate::register::required_text;
use crate::request::{Body, count, malformed, only, read_reason, text_or_null};
use crate::routes::{Answered, Parts, parts, read_body};
use crate::write::time;

/// The longest name of a key.
const NAME_BYTES_MAX: usize = 128;

pub(crate) async fn keys(State(service): State<Arc<Service>>, headers: HeaderMap) -> Answered {
    service.count_request();
    service.admin(&Credentials::read(&headers))?;
    let keys = service.gate.ledger().operator_keys().map_err(|_| Refusal::of_code(Code::FaultStore))?;
    let keys = keys.iter().map(|key| show(key, None)).collect();
    Ok(json(StatusCode::OK, write(&KeyList { keys })))
}

pub(crate) async fn create(State(service): State<Arc<Service>>, request: Request) -> Answered {
    service.count_request();
    let created_by = service.admin(&Credentials::read(request.headers()))?.actor;
    let bytes = read_body(request).await?;
    let body = Body::read(&bytes)?;
    let root = body.root();
    only(root, KeyRequest::MEMBERS)?;
    let name = required_text(root, "name", NAME_BYTES_MAX)?;
    if is_first_key_name(&name) {
        return Err(malformed("name must not be that of the first key, whatever its spelling"));
    }
    let word = text_or_null(root, "role")?.and_then(|word| word.as_str());
    let role = word.and_then(|word| Role::parse(word.text()));
    let role = role.ok_or_else(|| malformed("role must be admin, approver or registrar"))?;
    let max_trust = match count(root, "max_trust")? {
        Some(_) if role != Role::Registrar => return Err(malformed("max_trust is for the role registrar alone")),
        Some(level) => {
            let level = u8::try_from(level).ok().and_then(|level| Trust::try_from(level).ok());
            Some(level.ok_or_else(|| malformed("max_trust must be 0, 1, 2 or 3"))?)
        }
        None if role == Role::Registrar => Some(Trust::Supervised),
        None => None,
    };
    let random = service.random_hex()?;
    let id = service.random_hex()?;
    let key_id = format!("key_{}", id.get(..32).unwrap_or_default());
    let secret = format!("ilk_{random}");
    let digest = Digest::of(&[&secret]);
    let key = OperatorKey { key_id, name, role, max_trust, digest, created_at: 0, created_by, revoked: false };
    let recorded = recorded(service.submit(Command::CreateKey(Box::new(key))).await)?;
    let EntryBody::KeyCreated(created) = &recorded.entry.body else {
        return Err(Refusal::of_code(Code::FaultInternal));
    };
    Ok(json(StatusCode::CREATED, write(&show(&created.key, Some(secret)))))
}

pub(crate) async fn revoke(State(service): State<Arc<Service>>, path: Parts<String>, request: Request) -> Answered {
    service.count_request();
    let key_id = parts(path)?;
    let by = service.admin(&Credentials::read(request.headers()))?.actor;
    let bytes = read_body(request).await?;
    let reason = read_reason(&bytes)?;
    let revoked = KeyRevoked { key_id: key_id.clone(), by, reason };
    recorded(service.submit(Command::RevokeKey(revoked)).await)?;
    let keys = service.gate.ledger().operator_keys().map_err(|_| Refusal::of_code(Code::FaultStore))?;
    let key = keys.iter().find(|key| key.key_id == key_id);
    let key = key.ok_or_else(|| Refusal::of_code(Code::FaultInternal))?;
    Ok(json(StatusCode::OK, write(&show(key, None))))
}

fn show(key: &OperatorKey, secret: Option<String>) -> Key {
    Key {
        key_id: key.key_id.clone(),
        key: secret,
        name: key.name.clone(),
        role: key.role.to_string(),
        max_trust: key.max_trust.map(u8::from),
        status: if key.revoked { "revoked" } else { "active" }.to_owned(),
        created_at: time(key.created_at),
        created_by: key.created_by.name.clone(),
    }
}
