//! What happened in a run: each entry of its agent that says something of it, oldest first.

use std::ops::Range;
use std::sync::Arc;

use axum::extract::{RawQuery, State};
use axum::http::{HeaderMap, StatusCode};
use interlock_core::Code;
use interlock_core::action::{Actor, Agent};
use interlock_core::json::{self, Limits};
use interlock_core::ledger::{
    Body as EntryBody, Entry, ExecEnded, Ruled, RunStarted, RunSteered, Steer, TransitionOutcome, Transitioned,
};
use interlock_wire::{RawJson, RunEvent, RunHistory, write};

use crate::Service;
use crate::answer::{Refusal, json};
use crate::auth::Credentials;
use crate::query::Query;
use crate::routes::{Answered, Parts, parts};
use crate::runs::{no_run, shown_call};
use crate::write::time;

/// How many entries one request looks at; more are on the next page.
const LOOKED_AT_MAX: usize = 10_000;
/// How many runs are read at a time.
const PAGE: usize = 256;

/// `GET /runs/:id/history`, by the run's id or its agent's.
pub(crate) async fn history(
    State(service): State<Arc<Service>>,
    path: Parts<String>,
    RawQuery(query): RawQuery,
    headers: HeaderMap,
) -> Answered {
    service.count_request();
    let asker = service.admin(&Credentials::read(&headers))?.asker();
    let id = parts(path)?;
    let query = Query::read(query.as_deref(), &["limit", "cursor"])?;
    let body = Arc::clone(&service)
        .read_apart(asker, move |looked_at| {
            let run = service.recorded_run(&id, looked_at)?;
            let agent = run.agent.profile.agent_id.as_str();
            let cursor = query.hidden_cursor(service.gate.ledger(), Some(agent))?;
            let (events, next) = service.events_of(&run, query.limit()?, cursor, looked_at)?;
            let profile = &run.agent.profile;
            Ok(write(&RunHistory {
                agent_id: agent.to_owned(),
                agent_name: profile.name.clone(),
                host: profile.framework.clone(),
                project: profile.description.clone(),
                workflow: run.started.as_ref().and_then(|started| text_of(&started.workflow, "id")),
                run_id: run.started.map(|started| started.run_id),
                events,
                next_cursor: next.map(|seq| service.gate.ledger().hide_number(Some(agent), seq)),
            }))
        })
        .await?;
    Ok(json(StatusCode::OK, body))
}

/// A run, and which entries of its agent it consists of.
struct RecordedRun {
    agent: Arc<Agent>,
    /// None, where no workflow was ever put in force.
    started: Option<RunStarted>,
    entries: Range<u64>,
}

impl Service {
    /// The last run of an agent, or a run by its own id, however long ago it began.
    fn recorded_run(&self, id: &str, looked_at: &mut usize) -> Result<RecordedRun, Refusal> {
        if id.starts_with("agent_") {
            let agent = self.find_agent(id)?.ok_or_else(Refusal::unknown_agent)?;
            return self.last_run(agent);
        }
        let fault = |_| Refusal::of_code(Code::FaultStore);
        let (mut after, mut earlier) = (String::new(), Vec::new());
        loop {
            let page = self.gate.ledger().runs(&after, PAGE).map_err(fault)?;
            let Some((last, _)) = page.last() else { break };
            after.clone_from(last);
            for (agent, run) in &page {
                let Some(position) = &run.position else { continue };
                let agent = self.find_agent(agent)?.ok_or_else(Refusal::unknown_agent)?;
                if position.run_id == id {
                    return self.last_run(agent);
                }
                earlier.push((agent, position.started));
            }
        }
        for (agent, started) in earlier {
            if let Some(run) = self.earlier_run(agent, started, id, looked_at)? {
                return Ok(run);
            }
        }
        Err(no_run())
    }

    fn last_run(&self, agent: Arc<Agent>) -> Result<RecordedRun, Refusal> {
        let id = agent.profile.agent_id.as_str();
        let run = self.gate.ledger().run(id).map_err(|_| Refusal::of_code(Code::FaultStore))?;
        let position = run.and_then(|run| run.position);
        let began = position.map_or(1, |position| position.started);
        let started = self.entry_of(id, began)?.and_then(|entry| entry.body.started().cloned());
        let entries = began..agent.entries.saturating_add(1);
        Ok(RecordedRun { agent, started, entries })
    }

    /// Goes back through an agent's entries to the run with that id.
    fn earlier_run(
        &self,
        agent: Arc<Agent>,
        mut end: u64,
        id: &str,
        looked_at: &mut usize,
    ) -> Result<Option<RecordedRun>, Refusal> {
        for seq in (1..end).rev() {
            if *looked_at >= LOOKED_AT_MAX {
                return Err(no_run());
            }
            *looked_at = looked_at.saturating_add(1);
            let Some(entry) = self.entry_of(&agent.profile.agent_id, seq)? else { break };
            let Some(started) = entry.body.started() else { continue };
            if started.run_id == id {
                return Ok(Some(RecordedRun { agent, started: Some(started.clone()), entries: seq..end }));
            }
            end = seq;
        }
        Ok(None)
    }

    fn events_of(
        &self,
        run: &RecordedRun,
        limit: usize,
        cursor: Option<u64>,
        looked_at: &mut usize,
    ) -> Result<(Vec<RunEvent>, Option<u64>), Refusal> {
        let (agent, mut events) = (run.agent.profile.agent_id.as_str(), Vec::new());
        let session = run.started.as_ref().and_then(|started| started.session.as_deref());
        for seq in cursor.unwrap_or(run.entries.start).max(run.entries.start)..run.entries.end {
            if events.len() == limit || *looked_at >= LOOKED_AT_MAX {
                return Ok((events, Some(seq)));
            }
            *looked_at = looked_at.saturating_add(1);
            let entry = self.entry_of(agent, seq)?.ok_or_else(|| Refusal::of_code(Code::FaultStore))?;
            let ruled = entry.body.ruled().filter(|ruled| is_in(ruled, session));
            let told = match ruled {
                Some(ruled) => Some(self.told_call(agent, seq, &entry, ruled)?),
                None => told(&entry),
            };
            events.extend(told.map(|event| RunEvent { at: time(entry.at), ..event }));
        }
        Ok((events, None))
    }

    fn told_call(&self, agent: &str, seq: u64, entry: &Entry, ruled: &Ruled) -> Result<RunEvent, Refusal> {
        let kept = self.gate.ledger().text(agent, seq).map_err(|_| Refusal::of_code(Code::FaultStore))?;
        let evidence = ruled.evidence.as_ref().and_then(|evidence| evidence.call.as_ref());
        Ok(RunEvent {
            decision_id: Some(ruled.decision_id.clone()),
            call: Some(shown_call(ruled, entry.at, kept.as_ref().map(|kept| kept.text.as_str()))),
            fact: evidence.and_then(|evidence| evidence.phase.as_ref()).and_then(|phase| phase.fact.clone()),
            ..event("call")
        })
    }
}

/// Whether a ruling is on a tool call, and in the session that the run is bound to.
fn is_in(ruled: &Ruled, session: Option<&str>) -> bool {
    let call = ruled.facts.as_ref().and_then(|facts| facts.call.as_ref());
    call.is_some_and(|call| session.is_none_or(|session| call.session == session))
}

fn event(kind: &str) -> RunEvent {
    RunEvent { kind: kind.to_owned(), ..RunEvent::default() }
}

/// What an operator did.
fn deed(kind: &str, by: &Actor, reason: Option<&String>) -> RunEvent {
    RunEvent { by: Some(by.name.clone()), reason: reason.cloned(), ..event(kind) }
}

/// What an entry says of a run, if anything; calls apart.
fn told(entry: &Entry) -> Option<RunEvent> {
    Some(match &entry.body {
        EntryBody::RunStarted(started) => {
            RunEvent { to: text_of(&started.workflow, "initial"), ..deed("started", &started.by, None) }
        }
        EntryBody::RunSteered(steered) => told_steer(steered),
        EntryBody::Transitioned(asked) => told_transition(asked),
        EntryBody::ApprovalResolved(resolved) => RunEvent {
            approval_id: Some(resolved.approval_id.clone()),
            to: Some(resolved.verdict.as_str().to_owned()),
            ..deed("answered", &resolved.by, resolved.reason.as_ref())
        },
        EntryBody::RefusalsRepeated(repeated) => {
            let count = repeated.repeats.iter().fold(0_u64, |sum, repeat| sum.saturating_add(repeat.count));
            RunEvent { count: Some(count), ..event("repeated") }
        }
        EntryBody::ExecStarted(started) => RunEvent {
            exec_id: Some(started.exec_id.clone()),
            decision_id: Some(started.decision_id.clone()),
            profile: started.profile.clone(),
            ..event("command_started")
        },
        EntryBody::ExecEnded(ended) => told_end(ended),
        EntryBody::CallEnded(ended) => RunEvent { ok: ended.ok, exit_code: ended.exit_code, ..event("call_ended") },
        EntryBody::AllowanceGiven(given) => {
            let decision = &given.allowance.decision_id;
            RunEvent {
                decision_id: (!decision.is_empty()).then(|| decision.clone()),
                ..deed("allowed", &given.by, given.reason.as_ref())
            }
        }
        EntryBody::AllowanceTaken(taken) => deed("disallowed", &taken.by, None),
        EntryBody::ModeChanged(changed) => {
            RunEvent { to: Some(changed.mode.to_string()), ..deed("mode", &changed.by, changed.reason.as_ref()) }
        }
        EntryBody::UndoStarted(started) => {
            RunEvent { undo_id: Some(started.undo_id.clone()), ..deed("undone", &started.by, None) }
        }
        // Calls are told apart; the rest says nothing of a run.
        EntryBody::Ruled(_)
        | EntryBody::Registered(_)
        | EntryBody::BundleActivated(_)
        | EntryBody::Unauthenticated(_)
        | EntryBody::StateIntent(_)
        | EntryBody::StateOutcome(_)
        | EntryBody::TrustRequested(_)
        | EntryBody::Executed(_)
        | EntryBody::TrustChanged(_)
        | EntryBody::StatusChanged(_)
        | EntryBody::TokenRotated(_)
        | EntryBody::TextsErased(_)
        | EntryBody::KeyCreated(_)
        | EntryBody::KeyRevoked(_)
        | EntryBody::SigningKeyRotated(_)
        | EntryBody::TurnEnded(_)
        | EntryBody::SessionBound(_)
        | EntryBody::WorkflowRegistered(_)
        | EntryBody::Passed(_)
        | EntryBody::Kept(_)
        | EntryBody::UndoEnded(_)
        | EntryBody::Pruned(_) => return None,
    })
}

fn told_steer(steered: &RunSteered) -> RunEvent {
    let deed = |kind| deed(kind, &steered.by, steered.reason.as_ref());
    match &steered.steer {
        Steer::Force(state) => RunEvent { to: Some(state.clone()), ..deed("forced") },
        Steer::Stop => deed("stopped"),
        Steer::Thaw => deed("thawed"),
        Steer::Pause(until) => RunEvent { until: Some(time(*until)), ..deed("paused") },
        Steer::Changed => event("changed_elsewhere"),
    }
}

fn told_transition(asked: &Transitioned) -> RunEvent {
    let told = RunEvent {
        event: Some(asked.event.clone()),
        data: Some(RawJson::written(asked.data.text().to_owned())),
        decision_id: Some(asked.decision_id.clone()),
        ..RunEvent::default()
    };
    match &asked.outcome {
        TransitionOutcome::Moved { from, to } => {
            RunEvent { kind: "moved".to_owned(), from: Some(from.clone()), to: Some(to.clone()), ..told }
        }
        TransitionOutcome::Parked { approval_id, expires_at, from, to, message } => RunEvent {
            kind: "waits".to_owned(),
            from: Some(from.clone()),
            to: Some(to.clone()),
            approval_id: Some(approval_id.clone()),
            until: Some(time(*expires_at)),
            message: message.clone(),
            ..told
        },
        TransitionOutcome::Refused { code, message, unmet } => RunEvent {
            kind: "refused".to_owned(),
            code: Some(code.as_str().to_owned()),
            message: Some(message.clone()),
            unmet: (!unmet.is_empty()).then(|| unmet.clone()),
            ..told
        },
    }
}

fn told_end(ended: &ExecEnded) -> RunEvent {
    let refused: Vec<String> = ended.refused.iter().chain(&ended.unreached).cloned().collect();
    RunEvent {
        exec_id: Some(ended.exec_id.clone()),
        exit_code: ended.exit_code.map(i64::from),
        signal: ended.signal.map(i64::from),
        duration_ms: Some(ended.duration_ms),
        refused: (!refused.is_empty()).then_some(refused),
        ..event("command_ended")
    }
}

/// A text of a workflow.
fn text_of(workflow: &str, member: &str) -> Option<String> {
    let document = json::parse(workflow, &Limits::STATE).ok()?;
    document.root().get(member)?.as_str().map(|text| text.text().to_owned())
}
