//! What principals are told: CloudEvents about their agents, made from entries in the transaction that records them.

use interlock_core::Code;
use interlock_core::action::{AgentStatus, Millis, Profile};
use interlock_core::instant::to_rfc3339;
use interlock_core::ledger::{
    ApprovalResolved, Body, Entry, NAMES_SINCE, RefusalsRepeated, Repeat, Ruled, StatusChanged, TransitionOutcome,
    Transitioned, TrustChanged, TrustRequested,
};
use serde::Serialize;

use super::decision_id::DecisionIds;
use super::store::{Lane, Outgoing};

/// A person has to decide.
const PENDING: &str = "interlock.approval.pending";
/// Something was found wrong.
const FAILED: &str = "interlock.verification.failed";

/// A CloudEvents object.
#[derive(Serialize)]
struct CloudEvent<'a> {
    specversion: &'static str,
    id: &'a str,
    source: String,
    r#type: &'static str,
    time: String,
    subject: &'a str,
    datacontenttype: &'static str,
    data: EventData<'a>,
}

#[derive(Serialize, Default, Clone)]
struct EventData<'a> {
    agent_id: &'a str,
    agent_name: &'a str,
    principal_id: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    decision_id: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    approval_id: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    expires_at: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    action_type: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    risk_level: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    code: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    message: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    from_level: Option<u8>,
    #[serde(skip_serializing_if = "Option::is_none")]
    to_level: Option<u8>,
    #[serde(skip_serializing_if = "Option::is_none")]
    cause: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    by: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    count: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    first_at: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    last_at: Option<String>,
}

/// The event an entry is worth, if it is worth one; at most one. What it is known by follows from the entry's name, and
/// before the sixth format from its place in the tree.
pub(super) fn event_of(ids: DecisionIds, profile: &Profile, entry: &Entry, place: u64) -> Option<Outgoing> {
    let (kind, data) = data_of(&entry.body, &told_of(profile))?;
    let (seq, at) = (entry.agent_seq?, entry.at);
    let event_id = match entry.format {
        ..NAMES_SINCE => ids.event_id_at(place),
        NAMES_SINCE.. => ids.event_id(&profile.agent_id, seq),
    };
    let event = CloudEvent {
        specversion: "1.0",
        id: &event_id,
        source: format!("/agents/{}", profile.agent_id),
        r#type: kind,
        time: to_rfc3339(at),
        subject: &profile.agent_id,
        datacontenttype: "application/json",
        data,
    };
    let body = serde_json::to_string(&event).ok()?;
    let (principal, agent) = (profile.principal_id.clone(), profile.agent_id.clone());
    Some(Outgoing { principal, agent, seq, lane: lane_of(kind), event_id, body, at })
}

/// What principals are told of an entry; of most kinds nothing.
fn data_of<'a>(body: &'a Body, told: &EventData<'a>) -> Option<(&'static str, EventData<'a>)> {
    if let Body::TrustRequested(requested) = body {
        return Some(of_trust_request(requested, told));
    }
    if let Body::ApprovalResolved(resolved) = body {
        return Some(of_resolution(resolved, told));
    }
    if let Body::TrustChanged(changed) = body {
        return Some(of_trust(changed, told));
    }
    if let Body::StatusChanged(changed) = body {
        return Some(of_status(changed, told));
    }
    if let Body::Transitioned(asked) = body {
        return of_transition(asked, told);
    }
    if let Body::RefusalsRepeated(repeated) = body {
        return of_repeats(repeated, told);
    }
    body.ruled().and_then(|ruled| of_ruling(ruled, told))
}

/// With what an event of a kind waits.
fn lane_of(kind: &str) -> Lane {
    match kind {
        PENDING => Lane::Waiting,
        FAILED => Lane::Failed,
        _ => Lane::Told,
    }
}

/// One event in the place of many of one agent that something was found wrong: how many, from when to when. Its id is that
/// of the last, which is sent alone only if nothing else waits.
pub(super) fn event_for_all(profile: &Profile, told: &[(Millis, &Body)], event_id: &str) -> Option<String> {
    let mut data = told_of(profile);
    let (mut count, mut first_at, mut last_at) = (0_u64, Millis::MAX, 0);
    for (at, body) in told {
        let one = match body.repeated() {
            Some(repeated) => of_repeats(repeated, &told_of(profile)),
            None => body.ruled().and_then(|ruled| of_ruling(ruled, &told_of(profile))),
        };
        let (_, one) = one?;
        data.decision_id = data.decision_id.or(one.decision_id);
        data.code = data.code.or(one.code);
        count = count.saturating_add(one.count.unwrap_or(1));
        (first_at, last_at) = (first_at.min(*at), last_at.max(*at));
    }
    data.count = Some(count);
    data.first_at = Some(to_rfc3339(first_at));
    data.last_at = Some(to_rfc3339(last_at));
    let event = CloudEvent {
        specversion: "1.0",
        id: event_id,
        source: format!("/agents/{}", profile.agent_id),
        r#type: FAILED,
        time: to_rfc3339(last_at),
        subject: &profile.agent_id,
        datacontenttype: "application/json",
        data,
    };
    serde_json::to_string(&event).ok()
}

fn told_of(profile: &Profile) -> EventData<'_> {
    EventData {
        agent_id: &profile.agent_id,
        agent_name: &profile.name,
        principal_id: &profile.principal_id,
        ..EventData::default()
    }
}

fn of_transition<'a>(asked: &'a Transitioned, told: &EventData<'a>) -> Option<(&'static str, EventData<'a>)> {
    let TransitionOutcome::Parked { approval_id, .. } = &asked.outcome else { return None };
    let (decision_id, approval_id) = (Some(asked.decision_id.as_str()), Some(approval_id.as_str()));
    Some((PENDING, EventData { decision_id, approval_id, ..told.clone() }))
}

fn of_ruling<'a>(ruled: &'a Ruled, told: &EventData<'a>) -> Option<(&'static str, EventData<'a>)> {
    let error = ruled.ruling.error.as_ref();
    let kind = match (&ruled.ticket, error.map(|error| error.code)) {
        (Some(_), _) => PENDING,
        (None, Some(Code::VerificationFailed)) => FAILED,
        (None, _) => return None,
    };
    let facts = ruled.facts.as_ref().filter(|facts| !facts.dry_run)?;
    Some((
        kind,
        EventData {
            decision_id: Some(&ruled.decision_id),
            approval_id: ruled.ticket.as_ref().map(|ticket| ticket.approval_id.as_str()),
            expires_at: ruled.ticket.as_ref().map(|ticket| to_rfc3339(ticket.expires_at)),
            action_type: Some(facts.action.shown()),
            risk_level: ruled.ruling.verification.as_ref().map(|verification| verification.risk_level.as_str()),
            code: error.map(|error| error.code.as_str()),
            message: error.map(|error| error.message.as_str()),
            ..told.clone()
        },
    ))
}

/// One event for all that were found wrong and only counted.
fn of_repeats<'a>(repeated: &'a RefusalsRepeated, told: &EventData<'a>) -> Option<(&'static str, EventData<'a>)> {
    let failed = |repeat: &&Repeat| repeat.counted && repeat.code == Some(Code::VerificationFailed);
    let first = repeated.repeats.iter().find(failed)?;
    let all = || repeated.repeats.iter().filter(failed);
    let data = EventData {
        decision_id: Some(&first.decision_id),
        code: first.code.map(Code::as_str),
        count: Some(all().fold(0, |sum, repeat| sum.saturating_add(repeat.count))),
        first_at: all().map(|repeat| repeat.first_at).min().map(to_rfc3339),
        last_at: all().map(|repeat| repeat.last_at).max().map(to_rfc3339),
        ..told.clone()
    };
    Some((FAILED, data))
}

fn of_trust_request<'a>(requested: &'a TrustRequested, told: &EventData<'a>) -> (&'static str, EventData<'a>) {
    let data = EventData {
        approval_id: Some(&requested.approval_id),
        expires_at: Some(to_rfc3339(requested.expires_at)),
        from_level: Some(requested.from_level.into()),
        to_level: Some(requested.to_level.into()),
        ..told.clone()
    };
    (PENDING, data)
}

fn of_resolution<'a>(resolved: &'a ApprovalResolved, told: &EventData<'a>) -> (&'static str, EventData<'a>) {
    let data = EventData {
        approval_id: Some(&resolved.approval_id),
        cause: Some(resolved.verdict.as_str()),
        by: Some(&resolved.by.name),
        ..told.clone()
    };
    ("interlock.approval.resolved", data)
}

fn of_trust<'a>(changed: &'a TrustChanged, told: &EventData<'a>) -> (&'static str, EventData<'a>) {
    let data = EventData {
        from_level: Some(changed.from_level.into()),
        to_level: Some(changed.to_level.into()),
        cause: Some(changed.cause.as_str()),
        approval_id: changed.approval_id.as_deref(),
        ..told.clone()
    };
    ("interlock.trust.changed", data)
}

fn of_status<'a>(changed: &'a StatusChanged, told: &EventData<'a>) -> (&'static str, EventData<'a>) {
    let kind = match changed.status {
        AgentStatus::Suspended => "interlock.agent.suspended",
        AgentStatus::Active => "interlock.agent.reactivated",
    };
    let cause = if changed.complaint { "complaint" } else { "operator" };
    (kind, EventData { cause: Some(cause), by: Some(&changed.by.name), ..told.clone() })
}
