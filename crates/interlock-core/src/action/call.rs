//! The ruling on a tool call of a coding agent: the checks of [`decide`](super::decide), with the phase of a workflow
//! among them. Steps and conversations do not count here; the run does.

use super::agent::{Agent, AgentStatus};
use super::budget::Charge;
use super::conversation::Conversation;
use super::decide::{ActionMeaning, NeedsEvidence, Objection, Outcome, Question, Ruling, denied};
use super::facts::{CallEvidence, CallFacts, Evidence, Facts};
use super::registry::Category;
use super::vocabulary::{Decision, Engine, Millis, Risk, Status, UsdMicros};
use crate::bundle::Bundle;
use crate::call::Family;
use crate::code::Code;
use crate::contain::BoundEvidence;
use crate::digest::Digest;
use crate::rule::Then;
use crate::workflow::{self, Allowance, CallAsked, CallBegun, ExecTicket, Grant, OpenCall, Run, Unseen, Workflow};

/// What a ruling on a call rests on beside the agent.
#[derive(Debug, Clone, Copy)]
pub struct CallSnapshot<'a> {
    /// What is known of the agent's calls.
    pub run: &'a Run,
    /// The workflow the run is in, if it is in one.
    pub workflow: Option<&'a Workflow>,
}

/// The ruling on a call, and what it used up.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CallRuling {
    /// The ruling.
    pub ruling: Ruling,
    /// The ticket whose agreement it is.
    pub redeemed: Option<String>,
    /// The allowance it used up.
    pub used: Option<String>,
}

/// Rules on a tool call.
pub fn decide_call(
    bundle: &Bundle,
    agent: &Agent,
    snapshot: CallSnapshot<'_>,
    facts: &Facts,
    evidence: Option<&Evidence>,
    now: Millis,
) -> Result<CallRuling, NeedsEvidence> {
    let nothing = Conversation::default();
    let question = CallQuestion {
        question: Question { bundle, agent, conversation: &nothing, facts, now },
        run: snapshot.run,
        workflow: snapshot.workflow,
    };
    let evidence = evidence.filter(|evidence| evidence.bundle == bundle.digest());
    let parts = facts.call.as_deref().zip(evidence.and_then(|evidence| Some((evidence, evidence.call.as_deref()?))));
    let Some((call, (evidence, found))) = parts else { return Err(NeedsEvidence) };
    // Rules that were asked about a bound say nothing of a call that nothing holds.
    let is_held = |bound: &BoundEvidence| bound.holds(bundle.profiles(), &found.effects);
    if !question.was_read_here(call, found) || found.bound.as_ref().is_some_and(|bound| !is_held(bound)) {
        return Err(NeedsEvidence);
    }
    let mut answer = CallRuling { ruling: question.ruling(Outcome::from(unruled())), redeemed: None, used: None };
    let outcome = match question.before_matrices(call, found, evidence) {
        Err(refusal) => Outcome::from(refusal),
        Ok(asked) => question.by_matrices(&asked, call, found, evidence, &mut answer),
    };
    answer.ruling = match answer.redeemed {
        Some(_) => question.question.ruling_of_paid(outcome),
        None => question.ruling(outcome),
    };
    if facts.dry_run {
        (answer.redeemed, answer.used) = (None, None);
    }
    Ok(answer)
}

fn unruled() -> Objection {
    denied(Code::FaultInternal, "not ruled on")
}

struct CallQuestion<'a> {
    question: Question<'a>,
    run: &'a Run,
    workflow: Option<&'a Workflow>,
}

impl CallQuestion<'_> {
    fn ruling(&self, outcome: Outcome) -> Ruling {
        self.question.ruling(outcome)
    }

    /// Whether the evidence is about the phase the run is in now.
    fn was_read_here(&self, call: &CallFacts, found: &CallEvidence) -> bool {
        let here = self.run.position_for(&call.session).map(|position| (position.workflow, position.state.as_str()));
        found.phase.as_ref().map(|phase| (phase.workflow, phase.state.as_str())) == here
    }

    /// 003, WF-008, LOOP, WF-001 to -006, SHELL-001, BUDGET, 004 by name.
    fn before_matrices(
        &self,
        call: &CallFacts,
        found: &CallEvidence,
        evidence: &Evidence,
    ) -> Result<ActionMeaning, Objection> {
        let Question { agent, facts, bundle, .. } = self.question;
        if agent.status == AgentStatus::Suspended {
            return Err(denied(Code::AgentSuspended, "the agent is suspended"));
        }
        if let Some(reason) = &self.run.frozen {
            let message = format!("nothing passes until an operator looked: {reason}");
            return Err(denied(Code::WorkflowFrozen, message));
        }
        workflow::check_loops(self.run, facts.fingerprint).map_err(|code| {
            denied(code, "the same call a third time with the same result; do something else, or tell the person why")
        })?;
        let row = bundle.registry().get(&call.tool).filter(|row| row.engine == Engine::ToolControl);
        self.check_phase(call, found, row.is_some_and(|row| row.risk == Risk::Low))?;
        let risk = evidence.risk.unwrap_or(Risk::High);
        let price = row.map_or(UsdMicros(0), |row| row.price);
        let category = row.map_or(Category::Unlisted, |row| row.category);
        let asked = ActionMeaning { risk, engine: evidence.engine, price, category };
        // What a person agreed to was charged then; whether it is needed is not known yet.
        if self.grant().is_none() {
            self.question.check_budget(&asked)?;
        }
        let blocked = &agent.profile.permissions.blocked_tools;
        let names = [Some(call.tool.as_str()), call.family.map(Family::as_str)];
        if names.into_iter().flatten().any(|name| self.question.names_tool(blocked, name)) {
            return Err(denied(Code::ToolNotAllowed, "this tool is blocked for this agent"));
        }
        Ok(asked)
    }

    fn check_phase(&self, call: &CallFacts, found: &CallEvidence, low: bool) -> Result<(), Objection> {
        let Some(position) = self.run.position_for(&call.session) else { return Ok(()) };
        let Some(workflow) = self.workflow.filter(|workflow| workflow.digest() == position.workflow) else {
            return Err(denied(Code::FaultInternal, "the workflow of this run cannot be read"));
        };
        let asked = CallAsked {
            tool: &call.tool,
            family: call.family,
            shell: found.shell,
            covered: found.phase.as_ref().and_then(|phase| phase.covered),
            runner: call.runs.is_some(),
            low,
            edit_lines: found.edit_lines,
            files: &found.files,
        };
        workflow::check_call(workflow, position, &asked, self.question.now)
            .map_err(|refusal| denied(refusal.code, refusal.message))
    }

    /// Rules, verification and trust; what the operator knows counts as verified and at most of medium risk.
    fn by_matrices(
        &self,
        asked: &ActionMeaning,
        call: &CallFacts,
        found: &CallEvidence,
        evidence: &Evidence,
        answer: &mut CallRuling,
    ) -> Outcome {
        let allowance = self.allowance(call, found, evidence);
        let known = allowance.is_some();
        let mut read = evidence.clone();
        if known && read.status == Status::Uncertain {
            read.status = Status::Verified;
        }
        // What the kernel holds in a bound is as bad as the bound: an edit inside the project.
        let contained = found.bound.is_some();
        if contained && read.status == Status::Uncertain {
            read.status = Status::Verified;
        }
        if known || contained {
            read.risk = read.risk.map(|risk| risk.min(Risk::Medium));
        }
        if read.rules == Some(Then::Ask) && allowance.is_some_and(|allowance| lifts(allowance, &read.matched)) {
            read.rules = None;
        }
        let asked = ActionMeaning { risk: read.risk.unwrap_or(asked.risk), ..*asked };
        let outcome = self.question.with_evidence(&asked, &read);
        if let Some(grant) = self.grant() {
            let code = outcome.error.as_ref().map(|error| error.code);
            if matches!(code, Some(Code::TrustNeedsApproval | Code::ApprovalsOpen)) {
                answer.redeemed = Some(grant.approval_id.clone());
                // It was charged when the person agreed.
                return Outcome { decision: Decision::Approved, error: None, charge: Charge::default(), ..outcome };
            }
            // It passes by itself, so it is paid for like any other.
            if outcome.decision.lets_run()
                && let Err(refusal) = self.question.check_budget(&asked)
            {
                return Outcome::from(refusal);
            }
        }
        if outcome.decision.lets_run() {
            answer.used = allowance.filter(|allowance| allowance.once).map(|it| it.allowance_id.clone());
        }
        outcome
    }

    /// The allowance that speaks for the call: one that answers for everything that is asked, if there is one.
    fn allowance(&self, call: &CallFacts, found: &CallEvidence, evidence: &Evidence) -> Option<&Allowance> {
        let matching = self.run.allowances.iter().filter(|allowance| {
            found.allowances.contains(&allowance.allowance_id) && allowance.counts(self.question.now, &call.session)
        });
        let asks = evidence.rules == Some(Then::Ask);
        let mut matching: Vec<&Allowance> = matching.collect();
        matching.sort_by_key(|allowance| (asks && !lifts(allowance, &evidence.matched), allowance.once));
        matching.first().copied()
    }

    /// A person's agreement to this very call.
    fn grant(&self) -> Option<&Grant> {
        let Question { facts, bundle, agent, now, .. } = self.question;
        self.run.granted.iter().find(|grant| {
            grant.fingerprint == facts.agreed_to()
                && grant.bundle == bundle.digest()
                && grant.trust <= agent.trust
                && now < grant.expires_at
        })
    }
}

/// Whether an allowance answers for all the rules that ask.
fn lifts(allowance: &Allowance, matched: &[String]) -> bool {
    matched.iter().all(|rule| allowance.lifts.contains(rule))
}

/// What a ruling on a call changes of the run. `observed` says that the call runs whatever the ruling says.
pub fn apply_call(
    run: &mut Run,
    workflow: Option<&Workflow>,
    facts: &Facts,
    found: Option<&CallEvidence>,
    ruled: &CallApplied<'_>,
) {
    let Some(call) = facts.call.as_deref() else { return };
    if let Some(redeemed) = ruled.redeemed {
        run.granted.retain(|grant| grant.approval_id != redeemed);
    }
    if let Some(used) = ruled.used {
        run.allowances.retain(|allowance| allowance.allowance_id != used);
    }
    run.granted.retain(|grant| ruled.at < grant.expires_at);
    run.allowances.retain(|allowance| allowance.until.is_none_or(|until| ruled.at < until));
    let lets_run = ruled.decision.lets_run();
    if !lets_run && !ruled.observed {
        return;
    }
    let phase = found.and_then(|found| found.phase.as_ref());
    // Anybody can tell of a call and of its end; a fact comes from the host alone.
    let fact = phase.and_then(|phase| phase.fact.clone()).filter(|_| !call.foreign);
    let unseen = phase.and_then(|phase| match (&phase.fact, &phase.altered) {
        (_, Some(name)) => Some((name, Unseen::Script)),
        (Some(name), None) if call.foreign => Some((name, Unseen::Foreign)),
        (Some(name), None) if call.runs.is_none() => Some((name, Unseen::NoRunner)),
        (Some(_) | None, None) => None,
    });
    let unseen = unseen.map(|(name, why)| (name.clone(), why));
    let ticket = call.runs.map(|runs| ExecTicket {
        decision_id: ruled.decision_id.to_owned(),
        runs,
        profile: ruled.bound.filter(|_| !ruled.observed).map(|bound| bound.profile.clone()),
        is_held: ruled.bound.is_some_and(|bound| !bound.advisory && !ruled.observed),
    });
    let open = OpenCall {
        ticket,
        call_id: call.call_id.clone(),
        process: call.process,
        subagent: call.subagent.clone(),
        fingerprint: facts.fingerprint,
        gist: call.gist,
        decision: ruled.seq,
        at: ruled.at,
        left: false,
        foreign: call.foreign,
        // A declared command is there to look, whatever it is made of.
        changes: fact.is_none() && found.is_none_or(CallEvidence::changes),
        fact: fact.map(|name| (name, 0)),
    };
    let files: Vec<Digest> = found.map(|found| found.files.clone()).unwrap_or_default();
    // What was refused and ran all the same is not counted, as under enforcement it would not be.
    let counted = workflow.filter(|_| lets_run);
    workflow::begin_call(run, counted, CallBegun { open, files, session: call.session.clone(), unseen });
}

/// What of a ruling changes a run.
#[derive(Debug, Clone, Copy)]
pub struct CallApplied<'a> {
    /// The decision.
    pub decision: Decision,
    /// The call runs whatever the decision is.
    pub observed: bool,
    /// The ticket whose agreement it is.
    pub redeemed: Option<&'a str>,
    /// The allowance it used up.
    pub used: Option<&'a str>,
    /// When.
    pub at: Millis,
    /// The entry: the number among the agent's.
    pub seq: u64,
    /// The id of the decision.
    pub decision_id: &'a str,
    /// What a command of it is held to.
    pub bound: Option<&'a BoundEvidence>,
}
