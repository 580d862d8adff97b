//! Who is asking: the operator by key, an agent by token. Secrets are hashed at once and compared in constant time.

use axum::http::HeaderMap;
use interlock_core::action::Agent;
use interlock_core::{Code, Digest};

use crate::Service;
use crate::answer::Refusal;

/// What the headers carry.
#[derive(Debug)]
pub(crate) struct Credentials {
    agent_token: Option<Digest>,
    bearer: Option<Digest>,
    api_key: Option<Digest>,
}

impl Credentials {
    pub(crate) fn read(headers: &HeaderMap) -> Credentials {
        // A header that is no text is a wrong secret, not an absent one.
        let digest = |name: &str| headers.get(name).map(|value| Digest::of_bytes(value.as_bytes()));
        let bearer = headers.get("authorization").map(|value| {
            let bytes = value.as_bytes();
            let token = bytes.split_at_checked(7).filter(|(scheme, _)| scheme.eq_ignore_ascii_case(b"bearer "));
            Digest::of_bytes(token.map_or(&[], |(_, token)| token.trim_ascii()))
        });
        Credentials { agent_token: digest("x-agent-token"), bearer, api_key: digest("x-api-key") }
    }

    /// The token an agent came with, in the headers or in the body; two that differ are none.
    pub(crate) fn agent_token(&self, in_body: Option<Digest>) -> Option<Digest> {
        let mut tokens = [self.agent_token, self.bearer, in_body].into_iter().flatten();
        let first = tokens.next()?;
        tokens.all(|token| token.same_as(first)).then_some(first)
    }

    /// Whether the headers have a token at all.
    pub(crate) fn names_agent(&self) -> bool {
        self.agent_token.is_some() || self.bearer.is_some()
    }
}

impl Service {
    pub(crate) fn check_operator(&self, credentials: &Credentials) -> Result<(), Refusal> {
        let wrong = |key: Option<Digest>| key.is_some_and(|key| !key.same_as(self.operator));
        // Both are looked at, whichever comes first; a right key beside a wrong one is not believed.
        let (bearer, key) = (credentials.bearer, credentials.api_key);
        if (bearer.is_some() | key.is_some()) & !(wrong(bearer) | wrong(key)) {
            return Ok(());
        }
        Err(Refusal::new(
            Code::Operator,
            "this needs the operator's key, as `Authorization: Bearer KEY` or `X-API-Key: KEY`",
        ))
    }

    /// The operator, or the agent itself.
    pub(crate) fn check_reader(&self, credentials: &Credentials, agent: Option<&Agent>) -> Result<(), Refusal> {
        if self.check_operator(credentials).is_ok() {
            return Ok(());
        }
        let Some(agent) = agent else { return Err(Refusal::unknown_agent()) };
        match credentials.agent_token(None) {
            Some(token) if agent.has_token(token) => Ok(()),
            Some(_) => Err(Refusal::wrong_token()),
            None => self.check_operator(credentials),
        }
    }
}
