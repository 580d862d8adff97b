//! Who is asking: an operator by key, an agent by token. Secrets are hashed at once and compared in constant time.
//!
//! | role | may |
//! |---|---|
//! | agent | ask for rulings, report executions, ask for trust, read its own |
//! | registrar | register agents up to a trust ceiling, read its own |
//! | approver | decide on tickets, read agents, activity and tickets |
//! | admin | everything |

use axum::http::header::AUTHORIZATION;
use axum::http::{HeaderMap, HeaderName};
use interlock_core::action::{Actor, Agent, Trust};
use interlock_core::ledger::Role;
use interlock_core::{Code, Digest};

use crate::Service;
use crate::answer::Refusal;
use crate::apart::Asker;

const AGENT_TOKEN: HeaderName = HeaderName::from_static("x-agent-token");
const API_KEY: HeaderName = HeaderName::from_static("x-api-key");

/// What the headers carry.
#[derive(Debug)]
pub(crate) struct Credentials {
    agent_token: Option<Digest>,
    bearer: Option<Digest>,
    api_key: Option<Digest>,
}

/// Somebody with an operator's key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Operator {
    pub(crate) actor: Actor,
    pub(crate) role: Role,
    /// The highest trust agents may be registered with; `None` is any.
    pub(crate) max_trust: Option<Trust>,
    /// The SHA-256 of the key.
    pub(crate) digest: Digest,
}

impl Operator {
    /// Refuses other roles.
    pub(crate) fn only(self, roles: &[Role]) -> Result<Operator, Refusal> {
        if roles.contains(&self.role) {
            return Ok(self);
        }
        let wanted: Vec<&str> = roles.iter().map(|role| role.as_str()).collect();
        let message = format!("this needs a key of the role {}, not {}", wanted.join(" or "), self.role);
        Err(Refusal::new(Code::OperatorRole, message))
    }

    /// Who asks for work.
    pub(crate) fn asker(&self) -> Asker {
        Asker::Operator(self.digest)
    }

    /// Whether it may read about an agent: a registrar only about those it registered.
    pub(crate) fn may_read(&self, agent: &Agent) -> bool {
        match self.role {
            Role::Admin | Role::Approver => true,
            Role::Registrar => agent.profile.registered_by == self.actor.key_id && self.actor.key_id.is_some(),
        }
    }
}

impl Credentials {
    pub(crate) fn read(headers: &HeaderMap) -> Credentials {
        let digest = |name: HeaderName, read: fn(&[u8]) -> &[u8]| {
            let mut values = headers.get_all(name).iter().map(|value| read(value.as_bytes()));
            let first = values.next()?;
            // A header that is no text is a wrong secret, not an absent one, and so is one that stands there twice with
            // two secrets: whoever is in between may have looked at the other.
            let agreed = values.all(|value| value == first);
            Some(Digest::of_bytes(if agreed { first } else { &[] }))
        };
        Credentials {
            agent_token: digest(AGENT_TOKEN, |bytes| bytes),
            bearer: digest(AUTHORIZATION, |bytes| {
                let token = bytes.split_at_checked(7).filter(|(scheme, _)| scheme.eq_ignore_ascii_case(b"bearer "));
                token.map_or(&[], |(_, token)| token.trim_ascii())
            }),
            api_key: digest(API_KEY, |bytes| bytes),
        }
    }

    /// The token an agent came with, in the headers or in the body; two that differ are none.
    pub(crate) fn agent_token(&self, in_body: Option<Digest>) -> Option<Digest> {
        let mut tokens = [self.agent_token, self.bearer, in_body].into_iter().flatten();
        let first = tokens.next()?;
        tokens.all(|token| token.same_as(first)).then_some(first)
    }

    /// Whether the headers have a token where only agents have one.
    pub(crate) fn is_agent(&self) -> bool {
        self.agent_token.is_some()
    }

    /// Whether the headers have a token at all.
    pub(crate) fn names_agent(&self) -> bool {
        self.agent_token.is_some() || self.bearer.is_some()
    }
}

/// What the first key is called on record. No other key is called so.
const FIRST_KEY_NAME: &str = "operator";

/// Whether a name reads as that of the first key: whatever its case, its letters' form and what is not a letter.
pub(crate) fn is_first_key_name(name: &str) -> bool {
    interlock_core::reads_as(name, FIRST_KEY_NAME)
}

impl Service {
    /// The operator whose key this is. Where it stands twice, both must be the same one.
    pub(crate) fn operator(&self, credentials: &Credentials) -> Result<Operator, Refusal> {
        let refused = || {
            Refusal::new(
                Code::Operator,
                "this needs the operator's key, as `Authorization: Bearer KEY` or `X-API-Key: KEY`",
            )
        };
        let mut keys = [credentials.bearer, credentials.api_key].into_iter().flatten();
        let key = keys.next().ok_or_else(refused)?;
        // A right key beside a wrong one is not believed.
        if !keys.all(|other| other.same_as(key)) {
            return Err(refused());
        }
        if key.same_as(self.operator) {
            self.note(|note| note.by = Some(FIRST_KEY_NAME.to_owned()));
            let actor = Actor { name: FIRST_KEY_NAME.to_owned(), key_id: None };
            return Ok(Operator { actor, role: Role::Admin, max_trust: None, digest: key });
        }
        let found = self.gate.ledger().operator_key(key).filter(|known| known.digest.same_as(key));
        let known = found.ok_or_else(refused)?;
        self.note(|note| note.by = Some(known.name.clone()));
        let actor = Actor { name: known.name.clone(), key_id: Some(known.key_id.clone()) };
        Ok(Operator { actor, role: known.role, max_trust: known.max_trust, digest: key })
    }

    /// An admin.
    pub(crate) fn admin(&self, credentials: &Credentials) -> Result<Operator, Refusal> {
        self.operator(credentials)?.only(&[Role::Admin])
    }

    /// Who reads about an agent: somebody with a key, or else the agent itself.
    pub(crate) fn reader_of(&self, agent: &Agent, credentials: &Credentials) -> Asker {
        let operator = self.operator(credentials).map(|operator| operator.asker());
        operator.unwrap_or_else(|_| Asker::Agent(agent.profile.agent_id.clone()))
    }

    /// An operator who may read about the agent, or the agent itself.
    pub(crate) fn check_reader(&self, credentials: &Credentials, agent: Option<&Agent>) -> Result<ReadsAs, Refusal> {
        match self.operator(credentials) {
            Ok(operator) => match agent {
                Some(agent) if !operator.may_read(agent) => {
                    Err(Refusal::new(Code::OperatorRole, "this key reads only the agents it registered"))
                }
                Some(_) | None => Ok(ReadsAs::Operator),
            },
            Err(refusal) => {
                let Some(agent) = agent else { return Err(Refusal::unknown_agent()) };
                match credentials.agent_token(None) {
                    Some(token) if agent.has_token(token) => Ok(ReadsAs::Agent),
                    Some(_) => Err(Refusal::wrong_token()),
                    None => Err(refusal),
                }
            }
        }
    }
}

/// Who reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ReadsAs {
    /// Somebody with an operator's key.
    Operator,
    /// The agent itself.
    Agent,
}
