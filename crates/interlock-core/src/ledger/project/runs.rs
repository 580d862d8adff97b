//! What entries change of the run of a coding agent.

use super::Stamp;
use crate::action::{CallApplied, Millis, Ticket, TicketSubject, Verdict, apply_call};
use crate::code::Code;
use crate::ledger::entry::{ApprovalResolved, Ruled};
use crate::ledger::exec_entry::{ExecEnded, ExecStarted};
use crate::ledger::run_entry::{CallEndReported, RunStarted, Steer, TransitionOutcome, Transitioned};
use crate::rule::Then;
use crate::workflow::{self, CallEnded, Context, Ended, ExecBegun, Grant, Parked, Position, Run, Seen, Workflow};

/// From this revision of the rules on, runners alone tell how a command ended.
const RUNNER_RULES: u32 = 6;

/// What a ruling on a tool call changes.
pub(super) fn rule(run: &mut Run, workflow: Option<&Workflow>, ruled: &Ruled, stamp: Stamp) {
    let Some(facts) = ruled.facts.as_ref().filter(|facts| !facts.dry_run) else { return };
    let found = ruled.evidence.as_ref().and_then(|evidence| evidence.call.as_deref());
    // What a person agreed to, or knows although a rule asks, runs as it is: a bound would take back their yes.
    let asks = ruled.evidence.as_ref().is_some_and(|evidence| evidence.rules == Some(Then::Ask));
    let bound = found.and_then(|found| found.bound.as_ref()).filter(|_| ruled.redeemed.is_none() && !asks);
    let applied = CallApplied {
        decision_id: &ruled.decision_id,
        bound,
        decision: ruled.ruling.decision,
        observed: ruled.observed,
        redeemed: ruled.redeemed.as_deref(),
        used: ruled.used.as_deref(),
        at: stamp.at,
        seq: stamp.seq,
    };
    apply_call(run, workflow, facts, found, &applied);
}

/// What a transition changes.
pub(super) fn transition(run: &mut Run, workflow: Option<&Workflow>, asked: &Transitioned) {
    match (&asked.outcome, workflow) {
        (TransitionOutcome::Moved { to, .. }, Some(workflow)) => workflow::move_to(run, workflow, to, &asked.data),
        (TransitionOutcome::Parked { approval_id, expires_at, to, .. }, _) => workflow::park(
            run,
            Parked {
                approval_id: approval_id.clone(),
                expires_at: *expires_at,
                event: asked.event.clone(),
                data: asked.data.clone(),
                target: to.clone(),
            },
        ),
        (TransitionOutcome::Moved { .. } | TransitionOutcome::Refused { .. }, _) => {}
    }
}

/// Whether a ticket is about something of a run, so that a decision on it changes the run.
pub fn is_of_run(ticket: &Ticket) -> bool {
    match &ticket.subject {
        TicketSubject::Action(action) => action.call.is_some(),
        TicketSubject::Transition(_) => true,
        TicketSubject::Trust(_) => false,
    }
}

/// What a person's decision changes of the run. `Err` if a transition cannot be made any more.
pub fn resolve_for_run(
    run: &mut Run,
    workflow: Option<&Workflow>,
    ticket: &Ticket,
    resolved: &ApprovalResolved,
) -> Result<(), Code> {
    let agreed = resolved.verdict == Verdict::Approved;
    match &ticket.subject {
        TicketSubject::Transition(_) => {
            let workflow = workflow.ok_or(Code::ApprovalStale)?;
            workflow::resolve_parked(run, workflow, &ticket.approval_id, agreed)
        }
        TicketSubject::Action(action) => {
            if let (Some(fingerprint), true) = (action.call, agreed) {
                let (approval_id, expires_at) = (ticket.approval_id.clone(), resolved.expires_at);
                let (bundle, trust) = (ticket.bundle, action.trust);
                run.granted.push(Grant { approval_id, fingerprint, expires_at, bundle, trust });
            }
            Ok(())
        }
        TicketSubject::Trust(_) => Ok(()),
    }
}

/// A workflow is put in force.
pub(super) fn start(run: &mut Run, workflow: &Workflow, started: &RunStarted, seq: u64) {
    let session = started.session.clone();
    let mut position = Position::start(workflow, started.run_id.clone(), seq, session);
    position.scripts.clone_from(&started.scripts);
    run.position = Some(position);
    run.seen = Seen::default();
    // What this workflow calls by the name of a fact may be another command: of the old ones none counts.
    for open in run.open.iter_mut().filter(|open| open.fact.is_some()) {
        open.fact = None;
        open.changes = true;
    }
    run.execs.iter_mut().for_each(|exec| exec.fact = None);
    run.revision = run.revision.saturating_add(1);
}

/// A runner starts the command of a call: its ticket is spent.
pub(super) fn start_exec(run: &mut Run, started: &ExecStarted, at: Millis) {
    let ExecStarted { exec_id, foreign, by_hook, .. } = started;
    let begun = ExecBegun { asked: started.asked(), exec_id, foreign: *foreign, by_hook: *by_hook, at };
    workflow::begin_exec(run, &begun);
}

/// A runner tells how a command ended.
pub(super) fn end_exec(run: &mut Run, ended: &ExecEnded) {
    workflow::end_exec(run, &ended.exec_id, ended.exit_code, ended.signal);
}

/// A host tells what became of a call. One that nobody was told of freezes the run.
pub(super) fn end_call(run: &mut Run, told: &CallEndReported, rules: u32) {
    let ended = CallEnded {
        call_id: told.call_id.as_deref(),
        process: told.process,
        fingerprint: told.fingerprint,
        tool: &told.tool,
        is_command: told.is_command,
        ok: told.ok,
        exit_code: told.exit_code,
        result: told.result,
        files: &told.files,
        // Before there was a runner, hosts were believed.
        tells_how: rules < RUNNER_RULES,
        carried: told.carried,
    };
    if let Err(reason) = workflow::end_call(run, &ended) {
        run.frozen = Some(reason.to_owned());
    }
}

/// What an operator does with a run.
pub(super) fn steer(run: &mut Run, workflow: Option<&Workflow>, steer: &Steer) {
    // Where a run stands is as it was when somebody else writes files.
    run.revision = run.revision.saturating_add(u64::from(*steer != Steer::Changed));
    match (steer, workflow) {
        (Steer::Force(to), Some(workflow)) => {
            if let Some(position) = &mut run.position {
                position.parked = None;
                position.ended = None;
            }
            workflow::move_to(run, workflow, to, &Context::default());
        }
        (Steer::Force(_), None) => {}
        (Steer::Stop, _) => {
            if let Some(position) = &mut run.position {
                position.parked = None;
                position.ended = Some(Ended::Stopped);
            }
        }
        (Steer::Thaw, _) => {
            run.frozen = None;
            run.open.clear();
            run.execs.retain(|exec| exec.by_hook.is_none());
        }
        (Steer::Pause(until), _) => run.paused_until = Some(*until),
        (Steer::Changed, _) => {
            run.changes = run.changes.saturating_add(1);
            run.seen.lapse();
        }
    }
}
