//! Coding agents in the simulated worlds: enrolments, runs, calls, transitions, and what operators do with them; and
//! what must hold of all that, counted from the entries by nothing that the gate uses.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use interlock_core::Digest;
use interlock_core::action::{
    ActionContext, ActionName, Actor, AgentKind, AgentStatus, BudgetLimits, CallEvidence, CallFacts, Door, Engine,
    Evidence, Facts, Mode, PassAsked, PassKind, Permissions, PhaseEvidence, Profile, Risk, Status, StepNumber, Verdict,
};
use interlock_core::bundle::Bundle;
use interlock_core::call::{Effect, Family};
use interlock_core::json::Json;
use interlock_core::ledger::{
    AllowanceGiven, AllowanceTaken, Body, CallEndReported, Entry, ModeChanged, Ruled, RunSteered, SessionBound,
    StatusChanged, Steer, TransitionOutcome, TurnEnded,
};
use interlock_core::rule::Then;
use interlock_core::workflow::{Allowance, CALL_MS_MAX, Context, LEFT_CALLS_MAX, Run, Workflow};
use interlock_runtime::ledger::{
    AgentChange, CallCommand, Command, Enrolment, Reader, RunChange, StartGround, TransitionCommand,
};
use interlock_workflow::{Format, Limits, load};

use crate::generate::Random;

/// How many coding agents there are.
pub(super) const CODERS: usize = 2;
pub(super) const CODER_HOUR_MAX: u64 = 9;
const PLANNING_MAX: u32 = 2;
const WORKING_MAX: u32 = 4;
const TRANSITIONS_MAX: u32 = 6;

pub(super) fn coder_id(number: usize) -> String {
    format!("agent_c{number:031}")
}

/// A workflow with a fact, a guard and a way that waits; the second one calls another command by the fact's name.
fn workflow(second: bool) -> Arc<Workflow> {
    let command = if second { "make all" } else { "make test" };
    let text = format!(
        r#"{{"id":"simulated","initial":"planning","max_transitions":{TRANSITIONS_MAX},
        "facts":{{"tests":{{"command":"{command}"}}}},
        "guards":{{"passed":{{"field":"observed.tests","op":"eq","value":0}},"said":{{"field":"said","op":"gte","value":2}}}},
        "states":{{
          "planning":{{"on":{{"GO":"working","ASK":{{"target":"working","requires_approval":true}}}},
                       "allowed_tools":["Read","Bash"],"max_iterations":{PLANNING_MAX}}},
          "working":{{"on":{{"GO":[{{"target":"done","guards":["passed","said"]}},{{"target":"planning","guard":"said"}}],
                            "ASK":{{"target":"done","guard":"passed","requires_approval":true}}}},
                      "max_iterations":{WORKING_MAX},"max_files_per_state":2}},
          "done":{{"type":"final"}}}}}}"#
    );
    Arc::new(load(&text, Format::Json, &Limits::MAX).expect("a workflow").workflow)
}

/// What coding agents, their hosts and their operators do.
#[derive(Debug)]
pub(super) struct Coding {
    workflows: [Arc<Workflow>; 2],
    /// For ids.
    count: u64,
}

fn ann() -> Actor {
    Actor { name: "ann".to_owned(), key_id: None }
}

fn process(number: usize) -> Digest {
    Digest::of(&["process", &number.to_string()])
}

/// An input of a call, by which it is known again.
fn fingerprint(tool: &str, input: usize) -> Digest {
    Digest::of(&[tool, &input.to_string()])
}

impl Coding {
    pub(super) fn new() -> Coding {
        Coding { workflows: [workflow(false), workflow(true)], count: 0 }
    }

    /// The command by which an agent is known first.
    pub(super) fn enrolment(number: usize, mode: Mode) -> Command {
        let profile = Profile {
            agent_id: coder_id(number),
            name: "simulated".to_owned(),
            kind: AgentKind::Autonomous,
            principal_id: "p".to_owned(),
            description: None,
            framework: None,
            model: None,
            permissions: Permissions::default(),
            budget: BudgetLimits { max_requests_per_hour: Some(CODER_HOUR_MAX), ..BudgetLimits::default() },
            created_at: 0,
            registered_by: None,
        };
        let token = Digest::of(&["coder", &number.to_string()]);
        Command::Enrol(Box::new(Enrolment { profile: Box::new(profile), token, mode, by: ann() }))
    }

    /// Somebody looked at every fact that there is, and could not tell what its command runs.
    fn ground(&self) -> StartGround {
        let facts = self.workflows.iter().flat_map(|workflow| workflow.facts());
        StartGround { has_runner: false, scripts: facts.map(|fact| (fact.command.clone(), None)).collect() }
    }

    /// Something that happens, given what is committed.
    pub(super) fn command(
        &mut self,
        random: &mut Random,
        reader: &mut dyn Reader,
        bundles: &[Arc<Bundle>; 2],
    ) -> Command {
        let number = random.below(CODERS);
        let agent = coder_id(number);
        let run = reader.run(&agent).expect("a run").unwrap_or_default();
        self.count += 1;
        let change = match random.below(24) {
            0..=8 => return self.call(random, agent, &run, bundles),
            9..=12 => self.end(random, &run),
            13..=16 => {
                let event = (*random.pick(&["GO", "GO", "ASK", "NEVER"])).to_owned();
                let (key, worth) =
                    *random.pick(&[("said", 1_u64), ("said", 2), ("said", 3), ("observed", 0), ("x", 1)]);
                let data = Context::from(BTreeMap::from([(key.to_owned(), Json::from(worth))]));
                let expected_revision =
                    random.one_in(4).then(|| run.revision.saturating_sub(u64::from(random.one_in(2))));
                let command = TransitionCommand { agent, event, data, expected_revision };
                return Command::Transition(Box::new(command));
            }
            17 => return Coding::enrolment(number, *random.pick(&[Mode::Enforce, Mode::Observe])),
            18 | 19 if run.position.is_none() || random.one_in(3) => RunChange::Start {
                workflow: Arc::clone(random.pick(&self.workflows)),
                run_id: format!("run_{:032}", self.count),
                session: random.one_in(5).then(|| "s1".to_owned()),
                ground: self.ground(),
                by: ann(),
            },
            18 | 19 if random.one_in(4) => {
                let workflow = Arc::clone(random.pick(&self.workflows));
                return Command::RegisterWorkflow { workflow, by: ann() };
            }
            18 | 19 if random.one_in(5) => RunChange::StartRegistered {
                workflow: (*random.pick(&["simulated", "simulated", "unknown"])).to_owned(),
                run_id: format!("run_{:032}", self.count),
                session: None,
                ground: self.ground(),
                by: ann(),
            },
            18..=20 => {
                let states = ["planning", "working", "done", "nowhere"];
                let steer = match random.below(8) {
                    0 => Steer::Force((*random.pick(&states)).to_owned()),
                    1 => Steer::Stop,
                    2 => {
                        Steer::Pause(crate::service::START_MS + u64::try_from(random.below(3_600_000)).expect("small"))
                    }
                    _ => Steer::Thaw,
                };
                RunChange::Steer(RunSteered { steer, by: ann(), reason: None })
            }
            21 => self.allowance(random, &run),
            22 => {
                let mode = *random.pick(&[Mode::Observe, Mode::Enforce, Mode::Enforce]);
                let status = if random.one_in(6) { AgentStatus::Suspended } else { AgentStatus::Active };
                let change = if random.one_in(2) {
                    AgentChange::Mode(ModeChanged { mode, by: ann(), reason: None })
                } else {
                    AgentChange::Status(StatusChanged { status, complaint: false, by: ann(), reason: None })
                };
                return Command::Change { agent, change };
            }
            _ if random.one_in(2) => {
                let kind = *random.pick(PassKind::ALL);
                let gist = run.open.first().and_then(|open| open.gist).unwrap_or_else(|| Digest::of(&["none"]));
                let pass = match random.below(4) {
                    0 => PassAsked::Control { transition: random.one_in(2), subagent: random.one_in(4) },
                    1 => PassAsked::LoadTools,
                    2 => PassAsked::Echo { process: process(0), gist },
                    _ => PassAsked::Told(kind),
                };
                return Command::Pass { agent, pass };
            }
            _ if random.one_in(2) => {
                RunChange::TurnEnded(TurnEnded { process: process(random.below(2)), subagent: None })
            }
            _ => RunChange::BindSession(SessionBound { session: format!("s{}", random.below(3)), host: None }),
        };
        Command::ChangeRun { agent, change }
    }

    fn allowance(&self, random: &mut Random, run: &Run) -> RunChange {
        if let (Some(known), true) = (run.allowances.first(), random.one_in(3)) {
            return RunChange::Disallow(AllowanceTaken { allowance_id: known.allowance_id.clone(), by: ann() });
        }
        let tool = *random.pick(&["Read", "Bash", "Edit"]);
        let allowance = Allowance {
            allowance_id: format!("allow_{:032}", self.count),
            decision_id: String::new(),
            fingerprint: Some(fingerprint(tool, random.below(4))),
            tool: tool.to_owned(),
            command: None,
            path: None,
            lifts: if random.one_in(2) { vec!["secrets".to_owned()] } else { Vec::new() },
            until: random
                .one_in(3)
                .then(|| crate::service::START_MS + u64::try_from(random.below(7_200_000)).expect("small")),
            session: random.one_in(4).then(|| "s1".to_owned()),
            once: random.one_in(2),
        };
        RunChange::Allow(Box::new(AllowanceGiven { allowance, by: ann(), reason: None }))
    }

    fn call(&self, random: &mut Random, agent: String, run: &Run, bundles: &[Arc<Bundle>; 2]) -> Command {
        let mut tool = *random.pick(&["Read", "Read", "Bash", "Bash", "Edit"]);
        let mut input = random.below(4);
        // What a person agreed to is mostly asked for again.
        if let (Some(grant), false) = (run.granted.first(), random.one_in(3)) {
            let known = ["Read", "Bash", "Edit"].into_iter().flat_map(|tool| (0..4).map(move |input| (tool, input)));
            let mut meant = known.filter(|(tool, input)| fingerprint(tool, *input) == grant.fingerprint);
            (tool, input) = meant.next().unwrap_or((tool, input));
        }
        let session = (*random.pick(&["s1", "s1", "s2"])).to_owned();
        let print = fingerprint(tool, input);
        let step = StepNumber::new(1).expect("a step");
        let context = ActionContext { conversation: session.clone(), step, observed: None };
        let mut facts = Facts::new(Door::Call, ActionName::parse(tool), print, context);
        facts.dry_run = random.one_in(12);
        facts.call = Some(Box::new(CallFacts {
            runs: None,
            place: None,
            gist: None,
            host: "simulated".to_owned(),
            tool: tool.to_owned(),
            family: Family::parse(tool),
            session: session.clone(),
            process: process(random.below(2)),
            call_id: (!random.one_in(4)).then(|| self.count.to_string()),
            subagent: None,
            foreign: random.one_in(10),
        }));
        let shell = (tool == "Bash").then(|| *random.pick(&[Effect::ReadOnly, Effect::Write, Effect::Unknown]));
        let fact = (tool == "Bash" && input == 0).then(|| "tests".to_owned());
        // Sometimes it was read before the run moved on.
        let stale = random.one_in(15);
        let phase = run.position_for(&session).filter(|_| !stale).map(|position| PhaseEvidence {
            workflow: position.workflow,
            state: position.state.clone(),
            covered: None,
            fact,
            altered: None,
        });
        let effect = shell.unwrap_or(if tool == "Edit" { Effect::Write } else { Effect::ReadOnly });
        let matching = run.allowances.iter().filter(|allowance| allowance.fingerprint == Some(print));
        let status =
            *random.pick(&[Status::Verified, Status::Verified, Status::Verified, Status::Uncertain, Status::Failed]);
        let asks = random.one_in(4);
        let denies = random.one_in(20);
        let evidence = Evidence {
            bundle: bundles[random.below(8).min(1) ^ 1].digest(),
            engine: Engine::ToolControl,
            version: 1,
            status,
            risk: Some(*random.pick(&[Risk::Low, Risk::Low, Risk::Medium, Risk::High, Risk::Critical])),
            checks: Vec::new(),
            rules: if denies { Some(Then::Deny) } else { asks.then_some(Then::Ask) },
            matched: if asks || denies { vec!["secrets".to_owned()] } else { Vec::new() },
            certificate: None,
            hostile: status == Status::Failed && random.one_in(6),
            call: Some(Box::new(CallEvidence {
                bound: None,
                effects: vec![effect],
                shell,
                edit_lines: u64::from(tool == "Edit"),
                files: if tool == "Edit" { vec![Digest::of(&[&random.below(4).to_string()])] } else { Vec::new() },
                known_by: Vec::new(),
                allowances: matching.map(|allowance| allowance.allowance_id.clone()).collect(),
                phase,
                held_in: random.one_in(10).then(|| "/srv/held".to_owned()),
            })),
        };
        let (facts, text) = (Box::new(facts), Some("{}".into()));
        Command::Call(Box::new(CallCommand { agent, facts, evidence: Some(evidence), text, beside: Vec::new() }))
    }

    fn end(&self, random: &mut Random, run: &Run) -> RunChange {
        let ok = *random.pick(&[Some(true), Some(true), Some(false), None]);
        let mut report = CallEndReported {
            session: "s1".to_owned(),
            process: process(0),
            call_id: Some("never".to_owned()),
            tool: "Bash".to_owned(),
            fingerprint: fingerprint("Bash", 0),
            is_command: true,
            ok,
            exit_code: ok.map(|ok| i64::from(!ok)),
            result: random.one_in(2).then(|| Digest::of(&["result"])),
            carried: None,
            files: if random.one_in(4) { vec![format!("f{}", random.below(3))] } else { Vec::new() },
        };
        if run.open.is_empty() {
            return RunChange::TurnEnded(TurnEnded { process: process(0), subagent: None });
        }
        if !random.one_in(25) {
            let open = random.pick(&run.open);
            report.process = open.process;
            report.call_id.clone_from(&open.call_id);
            report.fingerprint = open.fingerprint;
        }
        RunChange::CallEnded { report: Box::new(report), beside: Vec::new() }
    }
}

/// What must hold of runs, counted from the entries by nothing that the gate uses.
#[derive(Default)]
pub(super) struct Runs<'a> {
    by_agent: BTreeMap<&'a str, Counted>,
    /// Transitions that wait, by ticket: where they lead.
    waiting: BTreeMap<&'a str, &'a str>,
    /// Calls that wait, by ticket.
    asked: BTreeMap<&'a str, (Digest, Digest)>,
    /// Calls a person agreed to, by ticket: which call, under which bundle, until when.
    agreed: BTreeMap<&'a str, (Digest, Digest, u64)>,
    /// Allowances that hold for one call.
    once: BTreeSet<&'a str>,
    /// The workflow that was registered last under each id, and how many were.
    registered: BTreeMap<&'a str, (&'a str, u64)>,
    /// How many calls passed, and how many moves were made.
    pub(super) passed: usize,
    pub(super) moves: usize,
    pub(super) redeemed: usize,
}

/// One run, counted.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Counted {
    state: String,
    session: Option<String>,
    over: bool,
    iterations: u32,
    transitions: u32,
    frozen: bool,
    /// Calls under way: process, id, input, when they began.
    open: Vec<(Digest, Option<String>, Digest, u64, bool)>,
}

impl Counted {
    fn enter(&mut self, state: &str) {
        state.clone_into(&mut self.state);
        self.iterations = 0;
        self.transitions += 1;
        self.over = state == "done";
    }
}

impl<'a> Runs<'a> {
    pub(super) fn check(&mut self, entry: &'a Entry) -> Result<(), String> {
        let wrong = |what: &str| Err(format!("{what}: {entry:?}"));
        let agent = entry.agent.as_deref().unwrap_or("");
        match &entry.body {
            Body::RunStarted(started) => {
                let (state, session) = ("planning".to_owned(), started.session.clone());
                let before = self.by_agent.remove(agent).unwrap_or_default();
                let (frozen, open) = (before.frozen, before.open);
                self.by_agent.insert(agent, Counted { state, session, frozen, open, ..Counted::default() });
            }
            Body::RunSteered(steered) => {
                let run = self.by_agent.entry(agent).or_default();
                match &steered.steer {
                    Steer::Force(state) if !["planning", "working", "done"].contains(&state.as_str()) => {
                        return wrong("a run was moved to a state that there is not");
                    }
                    Steer::Force(state) => run.enter(state),
                    Steer::Stop => run.over = true,
                    Steer::Thaw => {
                        run.frozen = false;
                        run.open.clear();
                    }
                    Steer::Pause(_) | Steer::Changed => {}
                }
            }
            Body::Transitioned(asked) => match &asked.outcome {
                TransitionOutcome::Moved { from, to } => {
                    let run = self.by_agent.entry(agent).or_default();
                    if run.over || run.frozen || run.state != *from || run.transitions >= TRANSITIONS_MAX {
                        return wrong("a transition that could not be made");
                    }
                    if asked.data.get("observed").is_some() {
                        return wrong("data said what only Interlock can see");
                    }
                    run.enter(to);
                    self.moves += 1;
                }
                TransitionOutcome::Parked { approval_id, to, .. } => {
                    self.waiting.insert(approval_id, to);
                }
                TransitionOutcome::Refused { .. } => {}
            },
            Body::ApprovalResolved(resolved) if resolved.verdict == Verdict::Approved => {
                if let Some(target) = self.waiting.remove(resolved.approval_id.as_str()) {
                    let run = self.by_agent.entry(agent).or_default();
                    if run.over || run.frozen || run.transitions >= TRANSITIONS_MAX {
                        return wrong("a transition that waited could not be made");
                    }
                    run.enter(target);
                    self.moves += 1;
                }
                if let Some((print, bundle)) = self.asked.get(resolved.approval_id.as_str()) {
                    self.agreed.insert(&resolved.approval_id, (*print, *bundle, resolved.expires_at));
                }
            }
            Body::ApprovalResolved(resolved) => {
                self.waiting.remove(resolved.approval_id.as_str());
            }
            Body::CallEnded(told) => {
                let run = self.by_agent.entry(agent).or_default();
                let same = |open: &(Digest, Option<String>, Digest, u64, bool)| {
                    (open.0, &open.1) == (told.process, &told.call_id)
                        && (told.call_id.is_some() || open.2 == told.fingerprint)
                };
                match run.open.iter().position(same).filter(|at| run.open[*at].2 == told.fingerprint) {
                    Some(at) => drop(run.open.remove(at)),
                    None => run.frozen = true,
                }
            }
            Body::TurnEnded(turn) => {
                let run = self.by_agent.entry(agent).or_default();
                run.open.iter_mut().filter(|open| open.0 == turn.process).for_each(|open| open.4 = true);
                while run.open.iter().filter(|open| open.4).count() > LEFT_CALLS_MAX {
                    let oldest = run.open.iter().position(|open| open.4).expect("one that is left");
                    run.open.remove(oldest);
                }
            }
            Body::AllowanceGiven(given) if given.allowance.once => {
                self.once.insert(&given.allowance.allowance_id);
            }
            Body::AllowanceTaken(taken) => {
                self.once.remove(taken.allowance_id.as_str());
            }
            Body::WorkflowRegistered(registered) => {
                let (newest, count) = self.registered.entry(&registered.id).or_insert(("", 0));
                if *newest == registered.workflow || registered.version != *count + 1 {
                    return wrong("a workflow was registered that was the newest already, or not as the next one");
                }
                (*newest, *count) = (&registered.workflow, registered.version);
            }
            Body::Ruled(ruled) => return self.check_call(agent, entry, ruled),
            _ => {}
        }
        Ok(())
    }

    fn check_call(&mut self, agent: &'a str, entry: &'a Entry, ruled: &'a Ruled) -> Result<(), String> {
        let wrong = |what: &str| Err(format!("{what}: {entry:?}"));
        let Some(facts) = ruled.facts.as_ref().filter(|facts| !facts.dry_run) else {
            return if ruled.redeemed.is_some() || ruled.used.is_some() {
                wrong("a dry run used something up")
            } else {
                Ok(())
            };
        };
        let Some(call) = &facts.call else { return Ok(()) };
        if let Some(ticket) = &ruled.ticket {
            self.asked.insert(&ticket.approval_id, (facts.fingerprint, ruled.bundle));
        }
        if let Some(redeemed) = &ruled.redeemed {
            // Each once, for this very call, under that bundle, in time.
            let Some((print, bundle, until)) = self.agreed.remove(redeemed.as_str()) else {
                return wrong("an agreement that nobody gave, or that was used before");
            };
            if (print, bundle) != (facts.fingerprint, ruled.bundle) || entry.at >= until {
                return wrong("an agreement to something else");
            }
            self.redeemed += 1;
        }
        if let Some(used) = &ruled.used
            && !self.once.remove(used.as_str())
        {
            return wrong("an allowance was used twice");
        }
        let run = self.by_agent.entry(agent).or_default();
        if ruled.ruling.decision.lets_run() || ruled.observed {
            run.open.retain(|open| entry.at - open.3 < CALL_MS_MAX);
            run.open.push((call.process, call.call_id.clone(), facts.fingerprint, entry.at, false));
        }
        if !ruled.ruling.decision.lets_run() {
            return Ok(());
        }
        if run.frozen {
            return wrong("a frozen run let a call pass");
        }
        self.passed += 1;
        if ruled.evidence.as_ref().is_none_or(|evidence| evidence.rules == Some(Then::Deny)) {
            return wrong("a rule that denies was passed by");
        }
        let Some(run) = self.by_agent.get_mut(agent).filter(|run| !run.over) else { return Ok(()) };
        if run.session.as_ref().is_some_and(|session| *session != call.session) || run.state.is_empty() {
            return Ok(());
        }
        run.iterations += 1;
        let max = match run.state.as_str() {
            "planning" => PLANNING_MAX,
            _ => WORKING_MAX,
        };
        if run.iterations > max {
            return wrong("more calls than the phase allows");
        }
        if run.state == "planning" && call.tool == "Edit" {
            return wrong("a tool that the phase does not allow");
        }
        Ok(())
    }

    /// The rows say what was counted.
    pub(super) fn compare(&self, reader: &mut dyn Reader) -> Result<(), String> {
        let heads = reader.workflows("", usize::MAX).map_err(|fault| fault.to_string())?;
        let theirs: Vec<_> = heads.iter().map(|head| (head.id.as_str(), head.digest, head.version)).collect();
        let ours = self.registered.iter().map(|(id, (text, count))| (*id, Digest::of(&[text]), *count));
        if theirs != ours.collect::<Vec<_>>() {
            return Err(format!("the registered workflows are {theirs:?}, and others were counted"));
        }
        for (agent, counted) in &self.by_agent {
            let run = reader.run(agent).map_err(|fault| fault.to_string())?.unwrap_or_default();
            let Some(position) = &run.position else { continue };
            let theirs = (position.state.as_str(), position.iterations, position.transitions, position.ended.is_some());
            let ours = (counted.state.as_str(), counted.iterations, counted.transitions, counted.over);
            if (run.frozen.is_some(), run.open.len()) != (counted.frozen, counted.open.len()) || theirs != ours {
                return Err(format!("the run of {agent} is {theirs:?}, and was counted as {ours:?}"));
            }
        }
        Ok(())
    }
}
