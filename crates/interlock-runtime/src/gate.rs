//! The way of a request: screen, verify, submit; once more if the evidence was missing, then deny.

use std::collections::HashSet;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, PoisonError, RwLock};

use interlock_core::action::{ActionText, Agent, Check, Door, Engine, Evidence, Facts, Status, StepNumber, screen};
use interlock_core::bundle::Bundle;
use interlock_core::ledger::Idempotency;
use interlock_core::rule::Then;
use interlock_core::{Code, Digest};
use interlock_verifiers::math;

use crate::ledger::{Answer, Command, Ledger, Request, RuleCommand};

/// The ledger with the bundle in force and the steps that are being worked on.
#[derive(Debug)]
pub struct Gate {
    ledger: Ledger,
    bundle: RwLock<Arc<Bundle>>,
    in_flight: Mutex<HashSet<(String, String, StepNumber)>>,
}

/// A well-formed request of an agent.
#[derive(Debug)]
pub struct Asking<'a> {
    /// The agent as last committed.
    pub agent: &'a Agent,
    /// The SHA-256 of the token it came with.
    pub token: Digest,
    /// What the edge read.
    pub facts: Facts,
    /// The text the verifiers read.
    pub action: ActionText<'a>,
    /// Under which key the answer can be asked for again.
    pub idempotency: Option<Idempotency>,
    /// The text of the request, in case it is to be kept.
    pub text: Option<Arc<str>>,
}

impl Gate {
    /// A gate in front of a ledger.
    pub fn new(ledger: Ledger, bundle: Arc<Bundle>) -> Gate {
        Gate { ledger, bundle: RwLock::new(bundle), in_flight: Mutex::default() }
    }

    /// The ledger.
    pub fn ledger(&self) -> &Ledger {
        &self.ledger
    }

    /// The bundle in force.
    pub fn bundle(&self) -> Arc<Bundle> {
        Arc::clone(&self.bundle.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Prepares the command for a request: reads its text, unless it is refused without.
    pub fn prepare(&self, asking: &Asking<'_>) -> Command {
        let bundle = self.bundle();
        let skip = screen(&bundle, asking.agent, &asking.facts, self.ledger.now());
        let (evidence, corrected) =
            if skip { (None, None) } else { examine_safely(&bundle, asking.facts.door, &asking.action) };
        command(asking, Request::Facts { facts: Box::new(asking.facts.clone()), evidence }, corrected)
    }

    /// The command once more, after the writer asked for evidence under another bundle.
    pub fn prepare_again(&self, asking: &Asking<'_>, bundle: &Arc<Bundle>) -> Command {
        let (evidence, corrected) = examine_safely(bundle, asking.facts.door, &asking.action);
        *self.bundle.write().unwrap_or_else(PoisonError::into_inner) = Arc::clone(bundle);
        command(asking, Request::Facts { facts: Box::new(asking.facts.clone()), evidence }, corrected)
    }

    /// Marks a step as being worked on; `None` if it is already. Losing the mark does no harm: the step is taken by its
    /// committed row and nothing else.
    pub fn reserve(self: &Arc<Self>, facts: &Facts, agent: &str) -> Option<Reservation> {
        let key = (agent.to_owned(), facts.conversation.clone(), facts.step);
        let fresh = self.in_flight.lock().unwrap_or_else(PoisonError::into_inner).insert(key.clone());
        fresh.then(|| Reservation { gate: Arc::clone(self), key })
    }

    /// The answer to a request whose evidence was missing twice.
    pub fn without_evidence() -> Answer {
        Answer::Fault(Code::FaultInternal)
    }
}

fn command(asking: &Asking<'_>, request: Request, corrected: Option<String>) -> Command {
    Command::Rule(Box::new(RuleCommand {
        agent: asking.agent.profile.agent_id.clone(),
        token: asking.token,
        request,
        idempotency: asking.idempotency,
        corrected,
        text: asking.text.clone(),
    }))
}

/// A step that is being worked on.
#[derive(Debug)]
pub struct Reservation {
    gate: Arc<Gate>,
    key: (String, String, StepNumber),
}

impl Drop for Reservation {
    fn drop(&mut self) {
        self.gate.in_flight.lock().unwrap_or_else(PoisonError::into_inner).remove(&self.key);
    }
}

struct Examined {
    evidence: Evidence,
    corrected: Option<String>,
}

/// Reads the text of an action. A verifier that panics has found nothing, so nothing is approved.
fn examine_safely(bundle: &Bundle, door: Door, action: &ActionText<'_>) -> (Option<Evidence>, Option<String>) {
    let examined = catch_unwind(AssertUnwindSafe(|| examine(bundle, door, action)));
    examined.map_or((None, None), |examined| (Some(examined.evidence), examined.corrected))
}

/// The argument rules, and the verifier of its engine.
fn examine(bundle: &Bundle, door: Door, action: &ActionText<'_>) -> Examined {
    let registered = bundle.registry().get(action.kind);
    let engine = match door {
        Door::Tools => Engine::ToolControl,
        Door::Verify => registered.map_or(Engine::ToolControl, |row| row.engine),
    };
    let found = bundle.find_rules(action);
    let mut evidence = Evidence {
        bundle: bundle.digest(),
        engine,
        version: 1,
        status: Status::Uncertain,
        risk: None,
        checks: Vec::new(),
        rules: found.then,
        matched: found.matched,
        certificate: None,
        hostile: false,
    };
    let mut corrected = None;
    let check = |name: &str, passed| Check { name: name.to_owned(), passed };
    match engine {
        Engine::ToolControl => {
            let kept = found.then != Some(Then::Deny);
            evidence.status = if kept { Status::Verified } else { Status::Failed };
            evidence.checks = ["registered", "permitted", "rules", "parameters"]
                .map(|name| check(name, kept || name != "rules"))
                .into();
            let row = registered.map_or("", |row| row.risk.as_str());
            evidence.certificate = Some(Digest::of(&[action.kind, "\n", row, "\n", &bundle.digest().to_string()]));
        }
        Engine::Math => {
            let query = action.query.and_then(|query| query.as_str()).map(|query| query.text()).unwrap_or("");
            let expected = action.parameters.and_then(|parameters| parameters.get("expected"));
            let expected = expected.map(|expected| match expected.as_str() {
                Some(text) => text.text().to_owned(),
                None => expected.source().to_owned(),
            });
            let outcome = math::verify(query, expected.as_deref());
            evidence.version = math::VERSION;
            evidence.status = match outcome.status {
                interlock_verifiers::Status::Verified => Status::Verified,
                interlock_verifiers::Status::Failed => Status::Failed,
                interlock_verifiers::Status::Corrected => Status::Corrected,
                interlock_verifiers::Status::Uncertain => Status::Uncertain,
            };
            evidence.checks = outcome.checks.iter().map(|found| check(found.name, found.passed)).collect();
            let certified = !outcome.certificate.is_empty();
            evidence.certificate = certified.then(|| Digest::of(&[&outcome.certificate]));
            corrected = outcome.corrected;
            if action.code.is_some() {
                // Code beside a calculation was read by nobody.
                evidence.status = evidence.status.max(Status::Uncertain);
                evidence.checks.push(check("all_read", false));
            }
        }
        Engine::Logic | Engine::Sql | Engine::Code | Engine::Fact => {
            evidence.checks = vec![check("engine_available", false)];
        }
    }
    Examined { evidence, corrected }
}
