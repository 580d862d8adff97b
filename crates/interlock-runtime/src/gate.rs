//! The way of a request: screen, verify, submit; once more if the evidence was missing, then deny.

use std::collections::HashSet;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, PoisonError, RwLock};

use interlock_core::action::{
    ActionText, Agent, Check, Door, Engine, Evidence, Facts, Risk, Status, StepNumber, screen,
};
use interlock_core::bundle::Bundle;
use interlock_core::ledger::Idempotency;
use interlock_core::rule::Then;
use interlock_core::workflow::Workflow;
use interlock_core::{Code, Digest};
use interlock_verifiers::math::Math;
use interlock_verifiers::shell::Shell;
use interlock_verifiers::sql::Sql;
use interlock_verifiers::{Fuel, Ground, Verifier};

use crate::action_texts;
use crate::command_lines::read_line_within;
use crate::ledger::{Answer, Command, Ledger, Request, RuleCommand};

/// The ledger with the bundle in force and the steps that are being worked on.
#[derive(Debug)]
pub struct Gate {
    ledger: Ledger,
    active: RwLock<Arc<Active>>,
    in_flight: Mutex<HashSet<Arc<InFlight>>>,
    /// Workflows that runs are in, as far as they were needed; the newest last.
    workflows: Mutex<Vec<Arc<Workflow>>>,
}

/// How many workflows are remembered, resolved.
const WORKFLOWS_LEN: usize = 64;

/// Agent, conversation and step.
type InFlight = (String, String, StepNumber);

/// The bundle in force and what it tells the verifiers.
#[derive(Debug)]
struct Active {
    bundle: Arc<Bundle>,
    /// None if the verifiers refuse what the bundle says: then nothing is evidence, and nothing is approved. A server
    /// does not start with such a bundle.
    ground: Option<Ground>,
}

impl Active {
    fn new(bundle: Arc<Bundle>) -> Arc<Active> {
        let ground = Ground::load(&bundle).ok();
        Arc::new(Active { bundle, ground })
    }
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

/// A command, and how much work it was to prepare it.
#[derive(Debug)]
pub struct Prepared {
    /// The command.
    pub command: Command,
    /// What reading the text cost, in units of the verifiers' fuel.
    pub fuel: u64,
}

impl Gate {
    /// A gate in front of a ledger.
    pub fn new(ledger: Ledger, bundle: Arc<Bundle>) -> Gate {
        Gate {
            ledger,
            active: RwLock::new(Active::new(bundle)),
            in_flight: Mutex::default(),
            workflows: Mutex::default(),
        }
    }

    /// The ledger.
    pub fn ledger(&self) -> &Ledger {
        &self.ledger
    }

    /// The bundle in force.
    pub fn bundle(&self) -> Arc<Bundle> {
        Arc::clone(&self.active().bundle)
    }

    fn active(&self) -> Arc<Active> {
        Arc::clone(&self.active.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Lends what the bundle in force tells the verifiers; nothing if they refuse it.
    pub(crate) fn with_ground<T>(&self, read: impl FnOnce(&Ground) -> T) -> Option<T> {
        self.active().ground.as_ref().map(read)
    }

    pub(crate) fn known_workflow(&self, digest: Digest) -> Option<Arc<Workflow>> {
        let known = self.workflows.lock().unwrap_or_else(PoisonError::into_inner);
        known.iter().find(|workflow| workflow.digest() == digest).cloned()
    }

    pub(crate) fn remember_workflow(&self, workflow: Arc<Workflow>) {
        let mut known = self.workflows.lock().unwrap_or_else(PoisonError::into_inner);
        if known.len() >= WORKFLOWS_LEN {
            known.remove(0);
        }
        known.push(workflow);
    }

    /// Prepares the command for a request: reads its text, unless it is refused without. `None` if that takes more fuel
    /// than there is; then it has to be asked again with more.
    pub fn prepare_within(&self, asking: &Asking<'_>, fuel: u64) -> Option<Prepared> {
        let active = self.active();
        let mut fuel = Fuel::of(fuel);
        let skip = screen(&active.bundle, asking.agent, &asking.facts, self.ledger.now());
        let (evidence, corrected) =
            if skip { (None, None) } else { examine_safely(&active, &asking.facts, &asking.action, &mut fuel) };
        if fuel.fell_short() {
            return None;
        }
        let request = Request::Facts { facts: Box::new(asking.facts.clone()), evidence };
        Some(Prepared { command: command(asking, request, corrected), fuel: fuel.spent() })
    }

    /// The command once more, after the writer asked for evidence under another bundle.
    pub fn prepare_again(&self, asking: &Asking<'_>, bundle: &Arc<Bundle>) -> Prepared {
        let active = Active::new(Arc::clone(bundle));
        let mut fuel = Fuel::full();
        let (evidence, corrected) = examine_safely(&active, &asking.facts, &asking.action, &mut fuel);
        *self.active.write().unwrap_or_else(PoisonError::into_inner) = active;
        let request = Request::Facts { facts: Box::new(asking.facts.clone()), evidence };
        Prepared { command: command(asking, request, corrected), fuel: fuel.spent() }
    }

    /// Marks a step as being worked on; `None` if it is already. Losing the mark does no harm: the step is taken by its
    /// committed row and nothing else.
    pub fn reserve(self: &Arc<Self>, facts: &Facts, agent: &str) -> Option<Reservation> {
        let key = Arc::new((agent.to_owned(), facts.conversation.clone(), facts.step));
        let fresh = self.in_flight.lock().unwrap_or_else(PoisonError::into_inner).insert(Arc::clone(&key));
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
    key: Arc<InFlight>,
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
fn examine_safely(
    active: &Active,
    facts: &Facts,
    action: &ActionText<'_>,
    fuel: &mut Fuel,
) -> (Option<Evidence>, Option<String>) {
    let Some(ground) = &active.ground else { return (None, None) };
    let examined = catch_unwind(AssertUnwindSafe(|| examine(&active.bundle, ground, facts, action, fuel)));
    examined.map_or((None, None), |examined| (Some(examined.evidence), examined.corrected))
}

/// The argument rules, and the verifier of its engine.
fn examine(bundle: &Bundle, ground: &Ground, facts: &Facts, action: &ActionText<'_>, fuel: &mut Fuel) -> Examined {
    let registered = bundle.registry().get(action.kind);
    let engine = match facts.door {
        Door::Tools | Door::Call => Engine::ToolControl,
        Door::Verify => registered.map_or(Engine::ToolControl, |row| row.engine),
    };
    let found = bundle.find_rules(action, &mut |line| read_line_within(line, ground, fuel));
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
        call: None,
    };
    let mut corrected = None;
    let check = |name: &'static str, passed| Check { name: name.into(), passed };
    match verifier_of(engine) {
        None if engine == Engine::ToolControl => {
            let kept = found.then != Some(Then::Deny);
            evidence.status = if kept { Status::Verified } else { Status::Failed };
            evidence.checks = ["registered", "permitted", "rules", "parameters"]
                .map(|name| check(name, kept || name != "rules"))
                .into();
            let identity = bundle.registry().identity(action.kind);
            if let Some((status, risk)) = action_texts::more_than_reading(action, identity, ground, fuel) {
                (evidence.status, evidence.risk) = (evidence.status.max(status), Some(risk));
                evidence.checks.push(check("reads_only", false));
            }
            let row = registered.map_or("", |row| row.risk.as_str());
            evidence.certificate = Some(Digest::of(&[action.kind, "\n", row, "\n", &bundle.digest().to_string()]));
        }
        None => evidence.checks = vec![check("engine_available", false)],
        Some(verifier) => {
            let mut outcome = verifier.verify_within(action, ground, fuel);
            let base = registered.map_or(Risk::High, |row| row.risk);
            for text in action_texts::beside(engine, action) {
                let other = verifier.verify_within(&action_texts::alone(action, text), ground, fuel);
                outcome = action_texts::stricter(outcome, other, base);
                // Corrected is one text, and nobody knows which of them is run.
                outcome.corrected = None;
            }
            evidence.version = verifier.version();
            evidence.status = outcome.status;
            evidence.risk = outcome.risk;
            evidence.checks = outcome.checks.iter().map(|found| check(found.name, found.passed)).collect();
            evidence.certificate = outcome.evidence_digest(verifier, facts.fingerprint);
            evidence.hostile = outcome.hostile;
            corrected = outcome.corrected;
            if action.code.is_some() && engine != Engine::Shell {
                // Code beside a calculation or a statement was read by nobody. The risk stays: what an agent adds can
                // only tighten, and below the registry's it would need a proof.
                evidence.status = evidence.status.max(Status::Uncertain);
                evidence.checks.push(check("all_read", false));
                if evidence.status == Status::Uncertain {
                    evidence.certificate = None;
                    corrected = None;
                }
            }
        }
    }
    Examined { evidence, corrected }
}

/// What reads the texts of an engine; `None` where nothing does.
fn verifier_of(engine: Engine) -> Option<&'static dyn Verifier> {
    match engine {
        Engine::Math => Some(&Math),
        Engine::Sql => Some(&Sql),
        Engine::Shell => Some(&Shell),
        Engine::Logic | Engine::Code | Engine::Fact | Engine::ToolControl => None,
    }
}
