//! The part of an address after `?`: known names, each once, each with its type.

use axum::http::StatusCode;
use interlock_core::action::Millis;
use interlock_core::instant;
use interlock_core::{Code, percent_decoded};
use interlock_workflow::NAME_CHARS_MAX;

use interlock_runtime::ledger::Ledger;

use crate::answer::Refusal;
use crate::request::malformed;

/// How many rows a page has, unless asked otherwise, and at most.
const PAGE_LEN: usize = 100;
const PAGE_LEN_MAX: usize = 1_000;
/// The longest number: every index and every cursor is below 2^54, and a store counts no further than 2^63.
const NUMBER_DIGITS_MAX: usize = 16;

/// The parameters of a request.
#[derive(Debug)]
pub(crate) struct Query(Vec<(String, String)>);

impl Query {
    /// Reads parameters; those that are not known, or stand twice, are refused.
    pub(crate) fn read(query: Option<&str>, known: &[&str]) -> Result<Query, Refusal> {
        let mut pairs: Vec<(String, String)> = Vec::new();
        for pair in query.unwrap_or("").split('&').filter(|pair| !pair.is_empty()) {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            let name = name.to_owned();
            if !known.contains(&name.as_str()) || pairs.iter().any(|(other, _)| *other == name) {
                let message = format!("unknown or repeated parameter; known are {}", known.join(", "));
                return Err(Refusal::new(Code::RequestField, message));
            }
            let value = percent_decoded(&value.replace('+', " "))
                .ok_or_else(|| malformed(format!("{name} is not UTF-8 in percent encoding")))?;
            pairs.push((name, value));
        }
        Ok(Query(pairs))
    }

    pub(crate) fn text(&self, name: &str) -> Option<&str> {
        self.0.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    /// An integer of 0 or more.
    pub(crate) fn number(&self, name: &str) -> Result<Option<u64>, Refusal> {
        let plain = |value: &&str| {
            (1..=NUMBER_DIGITS_MAX).contains(&value.len()) && value.bytes().all(|byte| byte.is_ascii_digit())
        };
        match self.text(name) {
            Some(value) => {
                let number = Some(value).filter(plain).and_then(|value| value.parse().ok());
                let refused = || malformed(format!("{name} must be an integer of at most {NUMBER_DIGITS_MAX} digits"));
                number.map(Some).ok_or_else(refused)
            }
            None => Ok(None),
        }
    }

    /// `limit`.
    pub(crate) fn limit(&self) -> Result<usize, Refusal> {
        let refused = || malformed(format!("limit must be 1 to {PAGE_LEN_MAX}"));
        let Some(limit) = self.number("limit").map_err(|_| refused())? else { return Ok(PAGE_LEN) };
        usize::try_from(limit).ok().filter(|limit| (1..=PAGE_LEN_MAX).contains(limit)).ok_or_else(refused)
    }

    /// A number that an answer gave as `next_cursor`.
    pub(crate) fn cursor(&self) -> Result<Option<u64>, Refusal> {
        self.number("cursor").map_err(|_| malformed("cursor must be one that an answer gave"))
    }

    /// A number that an answer gave as `next_cursor`, hidden; one about an agent leads on with that agent alone.
    pub(crate) fn hidden_cursor(&self, ledger: &Ledger, agent: Option<&str>) -> Result<Option<u64>, Refusal> {
        let Some(text) = self.text("cursor") else { return Ok(None) };
        let refused = || malformed("cursor must be one that an answer gave");
        let shaped = text.len() == 32 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
        let found = ledger.find_number(agent, text).map(Some);
        found.ok_or_else(|| if shaped { refused().with_status(StatusCode::NOT_FOUND) } else { refused() })
    }

    /// The id of an agent that an answer gave as `next_cursor`.
    pub(crate) fn agent_cursor(&self) -> Result<Option<&str>, Refusal> {
        let is_id = |text: &str| {
            let digits = text.strip_prefix("agent_").unwrap_or_default();
            digits.len() == 32 && digits.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
        };
        match self.text("cursor") {
            Some(text) if !is_id(text) => Err(malformed("cursor must be one that an answer gave")),
            text => Ok(text),
        }
    }

    /// The id of a workflow that an answer gave as `next_cursor`.
    pub(crate) fn workflow_cursor(&self) -> Result<Option<&str>, Refusal> {
        match self.text("cursor") {
            Some(text) if !(1..=NAME_CHARS_MAX).contains(&text.chars().count()) => {
                Err(malformed("cursor must be one that an answer gave"))
            }
            text => Ok(text),
        }
    }

    /// `from` or `to`.
    pub(crate) fn time(&self, name: &str) -> Result<Option<Millis>, Refusal> {
        let Some(text) = self.text(name) else { return Ok(None) };
        let refused = || malformed(format!("{name} must be a time such as 2026-11-15T12:00:00Z, or milliseconds"));
        instant::parse(text).map(Some).ok_or_else(refused)
    }
}
