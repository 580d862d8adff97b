//! What operators do about agents: list them, suspend and reactivate, watch instead of enforce, new tokens, erasure.

use std::sync::Arc;

use axum::extract::{RawQuery, Request, State};
use axum::http::{HeaderMap, StatusCode};
use interlock_core::action::{Actor, AgentStatus, Mode};
use interlock_core::ledger::{Body as EntryBody, ModeChanged, Role, StatusChanged, TokenRotated};
use interlock_core::{Code, Digest};
use interlock_runtime::clock::hex;
use interlock_runtime::ledger::{AgentChange, Command};
use interlock_wire::{AgentPage, ErasedTexts, write};

use crate::Service;
use crate::answer::{self, Refusal, json, recorded};
use crate::auth::Credentials;
use crate::query::Query;
use crate::request::read_reason;
use crate::routes::{Answered, Parts, parts, read_body};

/// How many agents one request looks at.
const LOOKED_AT_MAX: usize = 10_000;
/// How many are read at a time.
const PAGE: usize = 500;

pub(crate) async fn agents(
    State(service): State<Arc<Service>>,
    RawQuery(query): RawQuery,
    headers: HeaderMap,
) -> Answered {
    service.count_request();
    let operator = service.operator(&Credentials::read(&headers))?;
    let query = Query::read(query.as_deref(), &["limit", "cursor"])?;
    let (limit, mut after) = (query.limit()?, query.agent_cursor()?.unwrap_or("").to_owned());
    let (reader, asker) = (Arc::clone(&service), operator.asker());
    let body = reader
        .read_apart(asker, move |_| {
            let (mut shown, mut looked_at, mut next) = (Vec::new(), 0_usize, None);
            let ledger = service.gate.ledger();
            'pages: loop {
                let page = ledger.agents(&after, PAGE).map_err(|_| Refusal::of_code(Code::FaultStore))?;
                let full = page.len() == PAGE;
                for agent in page {
                    looked_at = looked_at.saturating_add(1);
                    let readable = operator.may_read(&agent);
                    if looked_at > LOOKED_AT_MAX || (readable && shown.len() == limit) {
                        // Those in between were not readable, so the next page may begin after them.
                        next = Some(after);
                        break 'pages;
                    }
                    after.clone_from(&agent.profile.agent_id);
                    if readable {
                        shown.push(answer::agent(&agent, None));
                    }
                }
                if !full {
                    break;
                }
            }
            Ok::<_, Refusal>(write(&AgentPage { agents: shown, next_cursor: next }))
        })
        .await?;
    Ok(json(StatusCode::OK, body))
}

/// What can be done to an agent.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Deed {
    Suspend,
    Complaint,
    Reactivate,
    Observe,
    Enforce,
    RotateToken,
    Erase,
}

pub(crate) async fn change(service: Arc<Service>, deed: Deed, path: Parts<String>, request: Request) -> Answered {
    service.count_request();
    let id = parts(path)?;
    let by = service.operator(&Credentials::read(request.headers()))?.only(&[Role::Admin])?.actor;
    let bytes = read_body(request).await?;
    let reason = read_reason(&bytes)?;
    service.find_agent(&id)?.ok_or_else(Refusal::unknown_agent)?;
    if let Deed::Erase = deed {
        return service.erase(id, by, reason).await;
    }
    let (change, token) = service.change_of(deed, by, reason)?;
    recorded(service.submit(Command::Change { agent: id.clone(), change }).await)?;
    let agent = service.find_agent(&id)?.ok_or_else(Refusal::unknown_agent)?;
    Ok(json(StatusCode::OK, write(&answer::agent(&agent, token.as_deref()))))
}

impl Service {
    /// The entry a deed is, and the new token if it makes one.
    fn change_of(
        &self,
        deed: Deed,
        by: Actor,
        reason: Option<String>,
    ) -> Result<(AgentChange, Option<String>), Refusal> {
        let status =
            |status, complaint, by, reason| AgentChange::Status(StatusChanged { status, complaint, by, reason });
        Ok(match deed {
            Deed::Suspend => (status(AgentStatus::Suspended, false, by, reason), None),
            Deed::Complaint => (status(AgentStatus::Suspended, true, by, reason), None),
            Deed::Reactivate => (status(AgentStatus::Active, false, by, reason), None),
            Deed::Observe => (AgentChange::Mode(ModeChanged { mode: Mode::Observe, by, reason }), None),
            Deed::Enforce => (AgentChange::Mode(ModeChanged { mode: Mode::Enforce, by, reason }), None),
            Deed::RotateToken => {
                let token = format!("qwed_agent_{}", self.random_hex()?);
                (AgentChange::Token(TokenRotated { token: Digest::of(&[&token]), by, reason }), Some(token))
            }
            Deed::Erase => return Err(Refusal::of_code(Code::FaultInternal)),
        })
    }

    /// 256 random bits.
    pub(crate) fn random_hex(&self) -> Result<String, Refusal> {
        let mut random = [0; 32];
        self.entropy.0.fill(&mut random).map_err(|_| Refusal::of_code(Code::FaultInternal))?;
        Ok(hex(&random))
    }

    async fn erase(&self, agent: String, by: Actor, reason: Option<String>) -> Answered {
        let answer = self.submit(Command::EraseTexts { agent: agent.clone(), by, reason }).await;
        let recorded = recorded(answer)?;
        let EntryBody::TextsErased(erased) = &recorded.entry.body else {
            return Err(Refusal::of_code(Code::FaultInternal));
        };
        Ok(json(StatusCode::OK, write(&ErasedTexts { agent_id: agent, erased: erased.texts })))
    }
}
