//! The ruling on an action: every check in the documented order, pure and total.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

use super::agent::{Agent, AgentStatus};
use super::budget::{Breach, Charge, Remaining, Spent};
use super::conversation::{self, Conversation, STEPS_MAX};
use super::facts::{Door, Evidence, Facts};
use super::matrix::{by_trust, by_verification};
use super::registry::{Category, Registered};
use super::vocabulary::{Decision, Engine, Millis, Risk, Status, Trust, UsdMicros};
use crate::bundle::Bundle;
use crate::code::Code;
use crate::rule::Then;

/// The text of a request has to be read first, under the bundle in force.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NeedsEvidence;

/// The ruling on a request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Ruling {
    /// The answer.
    pub decision: Decision,
    /// What was verified, once something was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verification: Option<Verification>,
    /// Why not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<RulingError>,
    /// What it costs, if it runs.
    pub charge: Charge,
    /// What is left afterwards.
    pub remaining: Remaining,
}

/// Why the answer is not yes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RulingError {
    /// For machines.
    pub code: Code,
    /// For people.
    pub message: String,
    /// The figures behind it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub details: Option<ErrorDetails>,
}

/// The figures behind a limit.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ErrorDetails {
    /// The limit, as a decimal.
    pub limit: String,
    /// What is used, as a decimal.
    pub current: String,
    /// When the same request could pass.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reset_at: Option<Millis>,
}

/// What was verified.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Verification {
    /// What was found.
    pub status: Status,
    /// By what.
    pub engine: Engine,
    /// The risk the decision rests on.
    pub risk_level: Risk,
    /// What held.
    pub checks_passed: Vec<Cow<'static, str>>,
    /// What did not.
    pub checks_failed: Vec<Cow<'static, str>>,
}

/// What a ruling read of agent and conversation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Figures {
    /// How far the agent was trusted.
    pub trust: Trust,
    /// The highest step that was taken.
    pub head: u64,
    /// The action in a row, this one counted.
    pub repeats: u32,
    /// The action on this state, this one counted.
    pub runs: usize,
    /// Requests of the last hour.
    pub hour_requests: u64,
    /// Requests of the day.
    pub day_requests: u64,
    /// Cost of the day.
    pub day_cost: UsdMicros,
    /// Tokens of the day.
    pub day_tokens: u64,
}

impl Figures {
    /// The figures a ruling on these facts reads.
    pub fn read(agent: &Agent, conversation: &Conversation, facts: &Facts, now: Millis) -> Figures {
        Figures {
            trust: agent.trust,
            head: conversation.head(),
            repeats: conversation.repeats_with(facts.seen_as()),
            runs: facts.on_state().map_or(0, |on_state| conversation.runs_with(on_state)),
            hour_requests: agent.spent.hour_requests(now),
            day_requests: agent.spent.day_requests(now),
            day_cost: agent.spent.day_cost(now),
            day_tokens: agent.spent.day_tokens(now),
        }
    }
}

/// Whether a request is refused already without its text: with this answer a verifier need not run. It is no ruling.
pub fn screen(bundle: &Bundle, agent: &Agent, facts: &Facts, now: Millis) -> bool {
    decide(bundle, agent, &Conversation::default(), facts, None, now).is_ok()
}

/// Rules on a well-formed request of an authenticated agent.
pub fn decide(
    bundle: &Bundle,
    agent: &Agent,
    conversation: &Conversation,
    facts: &Facts,
    evidence: Option<&Evidence>,
    now: Millis,
) -> Result<Ruling, NeedsEvidence> {
    let question = Question { bundle, agent, conversation, facts, now };
    let outcome = match question.before_evidence() {
        Err(refusal) => Outcome::from(refusal),
        Ok(action) => match evidence.filter(|evidence| evidence.bundle == bundle.digest()) {
            None => return Err(NeedsEvidence),
            Some(evidence) => question.with_evidence(&action, evidence),
        },
    };
    Ok(question.ruling(outcome))
}

/// What an action costs if it runs.
pub fn price_of(bundle: &Bundle, facts: &Facts) -> Charge {
    let row = facts.action.as_str().and_then(|name| bundle.registry().get(name));
    // What coding agents do on their own machine costs nothing unless the operator says so.
    let unlisted = if facts.call.is_some() { UsdMicros(0) } else { bundle.price() };
    Charge::of(row.map_or(unlisted, |row| row.price), facts.usage)
}

/// Whether a ruling tells of an attack rather than of a mistake: a tool that was blocked by name, or hostile text.
pub fn is_violation(
    bundle: &Bundle,
    agent: &Agent,
    facts: &Facts,
    evidence: Option<&Evidence>,
    ruling: &Ruling,
) -> bool {
    let code = ruling.error.as_ref().map(|error| error.code);
    if code == Some(Code::VerificationFailed) {
        return evidence.is_some_and(|evidence| evidence.hostile);
    }
    let blocked = &agent.profile.permissions.blocked_tools;
    code == Some(Code::ToolNotAllowed) && facts.action.as_str().is_some_and(|name| is_among(bundle, blocked, name))
}

fn is_among(bundle: &Bundle, list: &[String], name: &str) -> bool {
    let registry = bundle.registry();
    list.iter().any(|listed| registry.identity(listed) == registry.identity(name))
}

pub(super) struct Question<'a> {
    pub(super) bundle: &'a Bundle,
    pub(super) agent: &'a Agent,
    pub(super) conversation: &'a Conversation,
    pub(super) facts: &'a Facts,
    pub(super) now: Millis,
}

/// What is asked for, with its meaning.
pub(super) struct ActionMeaning {
    pub(super) risk: Risk,
    pub(super) engine: Engine,
    pub(super) price: UsdMicros,
    pub(super) category: Category,
}

pub(super) struct Objection {
    decision: Decision,
    code: Code,
    message: String,
    details: Option<ErrorDetails>,
}

pub(super) struct Outcome {
    pub(super) decision: Decision,
    pub(super) verification: Option<Verification>,
    pub(super) error: Option<RulingError>,
    pub(super) charge: Charge,
}

impl From<Objection> for Outcome {
    fn from(refusal: Objection) -> Outcome {
        let Objection { decision, code, message, details } = refusal;
        Outcome {
            decision,
            verification: None,
            error: Some(RulingError { code, message, details }),
            charge: Charge::default(),
        }
    }
}

pub(super) fn denied(code: Code, message: impl Into<String>) -> Objection {
    Objection { decision: Decision::Denied, code, message: message.into(), details: None }
}

impl Question<'_> {
    /// 003, STATE-001, LOOP-001 to LOOP-004, ACTION-001, BUDGET, 004.
    fn before_evidence(&self) -> Result<ActionMeaning, Objection> {
        if self.agent.status == AgentStatus::Suspended {
            return Err(denied(Code::AgentSuspended, "the agent is suspended"));
        }
        if self.bundle.observed_required() && self.facts.observed.is_none() {
            return Err(denied(
                Code::StateFields,
                "pre_action_state_hash and state_source are required by this server",
            ));
        }
        self.check_loops()?;
        let asked = self.check_registered()?;
        self.check_budget(&asked)?;
        self.check_permissions(&asked)?;
        Ok(asked)
    }

    fn check_loops(&self) -> Result<(), Objection> {
        let (facts, conversation) = (self.facts, self.conversation);
        if facts.step.get() > STEPS_MAX {
            return Err(denied(Code::LoopLength, format!("a conversation has at most {STEPS_MAX} steps")));
        }
        if !conversation.is_free(facts.step, facts.opened_at) {
            let (step, head) = (facts.step.get(), conversation.head());
            let message = format!("step {step} was used or passed; the last committed step is {head}");
            return Err(denied(Code::LoopReplay, message));
        }
        if conversation::is_repetition(conversation.repeats_with(facts.seen_as())) {
            let message = "the same action a third time in a row; another action may use this step";
            return Err(denied(Code::LoopRepetition, message));
        }
        if facts.on_state().is_some_and(|on_state| conversation::is_no_progress(conversation.runs_with(on_state))) {
            let message = "the same action a third time on an unchanged state; another action may use this step";
            return Err(denied(Code::LoopNoProgress, message));
        }
        Ok(())
    }

    fn check_registered(&self) -> Result<ActionMeaning, Objection> {
        let name = self.facts.action.as_str();
        let registered = name.and_then(|name| self.bundle.registry().get(name));
        match (self.facts.door, registered) {
            (Door::Verify, None) => {
                let shown = self.facts.action.shown();
                let message =
                    format!("Unknown action_type '{shown}' cannot be verified without explicit registered semantics");
                Err(denied(Code::ActionUnknown, message))
            }
            (Door::Verify, Some(Registered { engine, risk, price, category, identity: _ })) => {
                Ok(ActionMeaning { risk: *risk, engine: *engine, price: *price, category: *category })
            }
            (Door::Call, _) => Err(denied(Code::FaultInternal, "a tool call is ruled on by `decide_call`")),
            (Door::Tools, row) => {
                // What an engine verifies is no tool: listing it would let it pass unverified.
                let is_tool = row.is_none_or(|row| row.engine == Engine::ToolControl);
                let allowed = is_tool
                    && name.is_some_and(|name| self.names_tool(&self.agent.profile.permissions.allowed_tools, name));
                let listed = row.map_or(Category::Unlisted, |row| row.category);
                let category = match (listed, allowed) {
                    (Category::Dangerous, _) => Category::Dangerous,
                    (Category::Safe, _) | (Category::Unlisted, true) => Category::Safe,
                    (Category::Unlisted, false) => Category::Unlisted,
                };
                Ok(ActionMeaning {
                    risk: row.map_or(Risk::High, |row| row.risk),
                    engine: Engine::ToolControl,
                    price: row.map_or_else(|| self.bundle.price(), |row| row.price),
                    category,
                })
            }
        }
    }

    pub(super) fn check_budget(&self, asked: &ActionMeaning) -> Result<(), Objection> {
        let charge = Charge::of(asked.price, self.facts.usage);
        let limits = &self.agent.profile.budget;
        self.agent.spent.check(limits, charge, self.now).map_err(|breach| {
            let Breach { code, what, limit, current, reset_at } = *breach;
            Objection {
                decision: Decision::BudgetExceeded,
                code,
                message: format!("{what}: {current} of {limit}"),
                details: Some(ErrorDetails { limit, current, reset_at }),
            }
        })
    }

    fn check_permissions(&self, asked: &ActionMeaning) -> Result<(), Objection> {
        let permissions = &self.agent.profile.permissions;
        let shown = self.facts.action.shown();
        let name = self.facts.action.as_str();
        if name.is_some_and(|name| self.names_tool(&permissions.blocked_tools, name)) {
            return Err(denied(Code::ToolNotAllowed, format!("'{shown}' is blocked for this agent")));
        }
        if self.facts.door == Door::Tools && asked.category == Category::Unlisted {
            let tenths = self.facts.risk_tenths.unwrap_or(10);
            let (whole, tenth) = (tenths.checked_div(10).unwrap_or(0), tenths.checked_rem(10).unwrap_or(0));
            let message = format!("Unknown tool '{shown}' requires explicit allowlisting (risk_score={whole}.{tenth})");
            return Err(denied(Code::ToolNotAllowed, message));
        }
        if asked.engine != Engine::ToolControl && !permissions.allowed_engines.contains(&asked.engine) {
            let message = format!("the engine `{}` is not allowed for this agent", asked.engine);
            return Err(denied(Code::ToolNotAllowed, message));
        }
        Ok(())
    }

    pub(super) fn names_tool(&self, list: &[String], name: &str) -> bool {
        is_among(self.bundle, list, name)
    }

    /// 004 by rules, 005, then the strictest of both matrices, the rules and the caller's own threshold.
    pub(super) fn with_evidence(&self, asked: &ActionMeaning, evidence: &Evidence) -> Outcome {
        // Evidence of another engine than the registered one proves nothing here.
        let status = if evidence.engine == asked.engine { evidence.status } else { Status::Uncertain };
        // Risk rises on evidence; it falls only on proof.
        let risk = match evidence.risk {
            Some(risk) if status == Status::Verified => risk,
            Some(risk) => risk.max(asked.risk),
            None => asked.risk,
        };
        let names = |passed: bool| {
            let chosen = evidence.checks.iter().filter(move |check| check.passed == passed);
            chosen.map(|check| check.name.word()).collect::<Vec<_>>()
        };
        let verification = Verification {
            status,
            engine: evidence.engine,
            risk_level: risk,
            checks_passed: names(true),
            checks_failed: names(false),
        };
        let (decision, error) = self.strictest(asked, status, risk, evidence);
        let charge = if decision.lets_run() { Charge::of(asked.price, self.facts.usage) } else { Charge::default() };
        Outcome { decision, verification: Some(verification), error, charge }
    }

    fn strictest(
        &self,
        asked: &ActionMeaning,
        status: Status,
        risk: Risk,
        evidence: &Evidence,
    ) -> (Decision, Option<RulingError>) {
        let error = |code, message: &str| Some(RulingError { code, message: message.to_owned(), details: None });
        if evidence.rules == Some(Then::Deny) {
            let message = format!("denied by the rule {}", named(&evidence.matched));
            return (Decision::Denied, error(Code::ToolNotAllowed, &message));
        }
        if status == Status::Failed {
            let failed: Vec<_> =
                evidence.checks.iter().filter(|check| !check.passed).map(|check| check.name.word()).collect();
            return (Decision::Denied, error(Code::VerificationFailed, &format!("failed: {}", failed.join(", "))));
        }
        let by_door = match (self.facts.door, asked.category) {
            (Door::Verify | Door::Call, Category::Dangerous) => by_trust(self.agent.trust, risk).max(Decision::Pending),
            (Door::Verify | Door::Call, Category::Safe | Category::Unlisted) => by_trust(self.agent.trust, risk),
            (Door::Tools, Category::Safe) if self.agent.trust == Trust::Untrusted => Decision::Pending,
            (Door::Tools, Category::Safe) => Decision::Approved,
            (Door::Tools, Category::Dangerous) => Decision::Pending,
            (Door::Tools, Category::Unlisted) => Decision::Denied,
        };
        let by_rules = match evidence.rules {
            Some(Then::Ask) => Decision::Pending,
            Some(Then::Deny) => Decision::Denied,
            Some(Then::Allow) | None => Decision::Approved,
        };
        let over_threshold = self.facts.risk_threshold.is_some_and(|threshold| risk > threshold);
        let by_threshold = if over_threshold { Decision::Pending } else { Decision::Approved };
        let otherwise = by_door.max(by_verification(status, risk)).max(by_rules);
        let decision = otherwise.max(by_threshold);
        let level = u8::from(self.agent.trust);
        let message = match decision {
            Decision::Approved | Decision::Corrected => return (decision, None),
            Decision::Denied => {
                let message = format!("trust level {level} is not enough for {risk} risk");
                return (decision, error(Code::TrustTooLow, &message));
            }
            Decision::Pending | Decision::BudgetExceeded if by_rules == Decision::Pending => {
                format!("needs approval by the rule {}", named(&evidence.matched))
            }
            Decision::Pending | Decision::BudgetExceeded if otherwise < Decision::Pending => {
                let threshold = self.facts.risk_threshold.map_or("", Risk::as_str);
                format!("{risk} risk is above the risk_threshold of the request, {threshold}: needs approval")
            }
            Decision::Pending | Decision::BudgetExceeded => {
                format!("{risk} risk, {status}, at trust level {level}: needs approval")
            }
        };
        if self.agent.open_count(self.now) >= self.bundle.open_tickets_max() {
            let message = format!("{message}, and too many approvals of this agent are open already");
            return (Decision::Denied, error(Code::ApprovalsOpen, &message));
        }
        (decision, error(Code::TrustNeedsApproval, &message))
    }

    pub(super) fn ruling(&self, outcome: Outcome) -> Ruling {
        let mut spent = self.agent.spent.clone();
        if outcome.decision.lets_run() && !self.facts.dry_run {
            spent.charge(outcome.charge, self.now);
        }
        self.ruling_with(outcome, &spent)
    }

    /// The ruling on what was paid for already.
    pub(super) fn ruling_of_paid(&self, outcome: Outcome) -> Ruling {
        self.ruling_with(outcome, &self.agent.spent)
    }

    fn ruling_with(&self, outcome: Outcome, spent: &Spent) -> Ruling {
        Ruling {
            decision: outcome.decision,
            verification: outcome.verification,
            error: outcome.error,
            charge: outcome.charge,
            remaining: spent.remaining(&self.agent.profile.budget, self.now),
        }
    }
}

fn named(rules: &[String]) -> String {
    rules.iter().map(|rule| format!("`{rule}`")).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::action::{ActionContext, ActionName, AgentKind, BudgetLimits, Permissions, Profile, StepNumber};
    use crate::digest::Digest;

    fn ruled(action: &str, engine: Engine, status: Status, risk: Option<Risk>) -> Option<(Decision, Risk)> {
        let bundle = Bundle::built_in().ok()?;
        let profile = Profile {
            agent_id: "agent_1".to_owned(),
            name: "a".to_owned(),
            kind: AgentKind::Supervised,
            principal_id: "p".to_owned(),
            description: None,
            framework: None,
            model: None,
            permissions: Permissions { allowed_engines: vec![Engine::Sql, Engine::Math], ..Permissions::default() },
            budget: BudgetLimits::default(),
            created_at: 0,
            registered_by: None,
        };
        let agent = Agent::registered(profile, Digest::of(&["t"]), Trust::Supervised);
        let context = ActionContext { conversation: "c".to_owned(), step: StepNumber::new(1)?, observed: None };
        let facts = Facts::new(Door::Verify, ActionName::parse(action), Digest::of(&["a"]), context);
        let (checks, matched) = (Vec::new(), Vec::new());
        let bundle_digest = bundle.digest();
        let evidence = Evidence {
            bundle: bundle_digest,
            engine,
            version: 1,
            status,
            risk,
            checks,
            rules: None,
            matched,
            certificate: None,
            hostile: false,
            call: None,
        };
        let ruling = decide(&bundle, &agent, &Conversation::default(), &facts, Some(&evidence), 1).ok()?;
        Some((ruling.decision, ruling.verification?.risk_level))
    }

    #[test]
    fn risk_rises_on_evidence_and_falls_on_proof_only() {
        let sql = |status, risk| ruled("execute_sql", Engine::Sql, status, risk);
        assert_eq!(sql(Status::Verified, Some(Risk::Low)), Some((Decision::Approved, Risk::Low)));
        assert_eq!(sql(Status::Verified, None), Some((Decision::Denied, Risk::High)));
        assert_eq!(sql(Status::Uncertain, Some(Risk::Low)), Some((Decision::Denied, Risk::High)));
        assert_eq!(sql(Status::Corrected, Some(Risk::Low)), Some((Decision::Denied, Risk::High)));
        let math = |status, risk| ruled("calculate", Engine::Math, status, risk);
        assert_eq!(math(Status::Verified, Some(Risk::Critical)), Some((Decision::Denied, Risk::Critical)));
        // Another engine's proof is none.
        assert_eq!(
            ruled("execute_sql", Engine::Math, Status::Verified, Some(Risk::Low)),
            Some((Decision::Denied, Risk::High))
        );
    }
}
