//! Runs of coding agents through the real ledger, in memory and on disk: what passes, what a person's word is worth,
//! what operators can do, and that the ledger says the same when everything is decided again.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, Barrier, Mutex};
use std::thread;

use interlock_core::action::{
    ActionContext, ActionName, Actor, AgentKind, AgentStatus, BudgetLimits, CallEvidence, CallFacts, Check, Door,
    Engine, Evidence, Facts, LineToRun, Mode, PassAsked, PassKind, PassRuling, Permissions, PhaseEvidence, Profile,
    Risk, Stale, Status, StepNumber, TicketStatus, Trust, Usage, Verdict,
};
use interlock_core::bundle::Bundle;
use interlock_core::call::{Effect, Family};
use interlock_core::contain::{Abilities, BoundEvidence};
use interlock_core::json::{Json, Limits as JsonLimits, parse};
use interlock_core::ledger::{
    AllowanceGiven, AllowanceTaken, Body, CallEndReported, ExecEnded, ExecStarted, ModeChanged, Ruled, RunSteered,
    SessionBound, StatusChanged, Steer, TokenRotated, TransitionOutcome, TurnEnded,
};
use interlock_core::rule::Then;
use interlock_core::workflow::{Allowance, Context, Ended, HostSeen, Run, Unseen, Workflow};
use interlock_core::{Code, Digest};
use interlock_runtime::clock::SystemEntropy;
use interlock_runtime::coding_agents::{self, Sessions, agent_id};
use interlock_runtime::ledger::{
    AgentChange, Answer, CallCommand, Command, Enrolment, Execution, Ledger, MemoryStore, Ports, RunChange,
    SqliteReader, SqliteStore, StartGround, Store, TransitionCommand, replay, verify,
};
use interlock_testkit::service::ManualClock;
use interlock_workflow::{Format, Limits, load};

const AGENT: &str = "agent_0123456789abcdef0123456789abcdef";
const PROJECT: &str = "/srv/shop";

fn ended(report: CallEndReported, beside: &[&str]) -> RunChange {
    RunChange::CallEnded { report: Box::new(report), beside: beside.iter().map(|agent| (*agent).to_owned()).collect() }
}
const EXPIRY_MS: u64 = 15 * 60_000;
const FLOW: &str = r#"{"id":"fix","initial":"planning","context":{"tries":0},
  "facts":{"tests":{"command":"make test"}},
  "guards":{"passed":{"field":"observed.tests","op":"eq","value":0}},
  "states":{
    "planning":{"on":{"READY":"working","ASK":{"target":"working","requires_approval":true}},
                "allowed_tools":["Read","Bash"],"max_iterations":5},
    "working":{"on":{"DONE":{"target":"done","guard":"passed","requires_approval":true},"BACK":"planning"}},
    "done":{"type":"final"}}}"#;

fn workflow(text: &str) -> Arc<Workflow> {
    Arc::new(load(text, Format::Json, &Limits::MAX).unwrap_or_else(|problems| panic!("{problems:?}")).workflow)
}

fn ann() -> Actor {
    Actor { name: "ann".to_owned(), key_id: None }
}

/// A runner runs, and nobody can tell what the commands of facts run.
fn ground() -> StartGround {
    let scripts = ["make test", "make lint"].map(|line| (line.to_owned(), None));
    StartGround { has_runner: true, scripts: BTreeMap::from(scripts) }
}

fn data(text: &str) -> Context {
    match Json::of(parse(text, &JsonLimits::STATE).expect("JSON").root()) {
        Json::Object(members) => Context::from(members),
        other => panic!("no object: {other:?}"),
    }
}

/// A ledger with one coding agent.
struct Fixture {
    ledger: Ledger,
    clock: Arc<ManualClock>,
    bundle: Mutex<Arc<Bundle>>,
    /// Workflows by digest, to read calls in their phases as the gate does.
    flow: Mutex<Option<Arc<Workflow>>>,
}

fn bundle(text: &str) -> Arc<Bundle> {
    Arc::new(Bundle::load(text, &BTreeMap::new(), false).expect("a bundle"))
}

impl Fixture {
    fn start(store: Box<dyn Store>) -> Fixture {
        Fixture::start_with(store, ManualClock::new())
    }

    fn start_with(store: Box<dyn Store>, clock: Arc<ManualClock>) -> Fixture {
        let bundle = bundle("");
        let ports = Ports {
            store,
            clock: Arc::<ManualClock>::clone(&clock),
            entropy: Arc::new(SystemEntropy::new()),
            checkpoint: None,
        };
        let ledger = Ledger::start(ports, Arc::clone(&bundle)).expect("a ledger");
        Fixture { ledger, clock, bundle: Mutex::new(bundle), flow: Mutex::new(None) }
    }

    fn submit(&self, command: Command) -> Answer {
        self.ledger.submit_and_wait(command)
    }

    fn done(&self, command: Command) -> Body {
        match self.submit(command) {
            Answer::Recorded(recorded) => recorded.entry.body,
            other => panic!("not recorded: {other:?}"),
        }
    }

    fn enrol(&self, mode: Mode, budget: BudgetLimits) {
        let profile = Profile {
            agent_id: AGENT.to_owned(),
            name: "claude-code in shop".to_owned(),
            kind: AgentKind::Autonomous,
            principal_id: "local".to_owned(),
            description: Some(PROJECT.to_owned()),
            framework: Some("claude-code".to_owned()),
            model: None,
            permissions: Permissions::default(),
            budget,
            created_at: 0,
            registered_by: None,
        };
        let enrolment = Enrolment { profile: Box::new(profile), token: Digest::of(&["token"]), mode, by: ann() };
        self.done(Command::Enrol(Box::new(enrolment.clone())));
        assert!(matches!(self.submit(Command::Enrol(Box::new(enrolment))), Answer::Done), "once is enough");
    }

    fn change(&self, change: RunChange) -> Answer {
        self.submit(Command::ChangeRun { agent: AGENT.to_owned(), change })
    }

    fn begin(&self, text: &str, session: Option<&str>) {
        let workflow = workflow(text);
        *self.flow.lock().expect("a lock") = Some(Arc::clone(&workflow));
        let (run_id, session) = ("run_0123456789abcdef0123456789abcdef".to_owned(), session.map(str::to_owned));
        // Somebody looked at every fact that it has, and no script is behind any.
        let mut ground = ground();
        ground.scripts.extend(workflow.facts().iter().map(|fact| (fact.command.clone(), None)));
        let started = self.change(RunChange::Start { workflow, run_id, session, ground, by: ann() });
        assert!(matches!(started, Answer::Recorded(_)), "{started:?}");
    }

    fn run(&self) -> Run {
        self.ledger.run(AGENT).expect("read").unwrap_or_default()
    }

    fn state(&self) -> String {
        self.run().position.expect("a position").state
    }

    fn call(&self, ask: &Ask) -> Ruled {
        let answer = self.submit(ask.command(&self.run(), &self.bundle.lock().expect("a lock")));
        match answer {
            Answer::Recorded(recorded) => recorded.entry.body.into_ruled().expect("a ruling"),
            other => panic!("{ask:?}: {other:?}"),
        }
    }

    fn decides(&self, ask: &Ask) -> (&'static str, Option<Code>) {
        let ruled = self.call(ask);
        (ruled.ruling.decision.as_str(), ruled.ruling.error.map(|error| error.code))
    }

    fn passes(&self, ask: &Ask) -> bool {
        self.decides(ask) == ("APPROVED", None)
    }

    fn end(&self, ask: &Ask, exit_code: i64) -> Answer {
        for step in ask.executed(&self.run(), exit_code) {
            assert!(matches!(self.change(step), Answer::Recorded(_)), "{ask:?}");
        }
        self.change(ended(ask.ended(exit_code), &[&agent_id("codex", PROJECT)]))
    }

    fn event(&self, event: &str, said: &str, expected_revision: Option<u64>) -> TransitionOutcome {
        let (agent, event) = (AGENT.to_owned(), event.to_owned());
        let command = TransitionCommand { agent, event, data: data(said), expected_revision };
        match self.done(Command::Transition(Box::new(command))) {
            Body::Transitioned(made) => made.outcome,
            other => panic!("no transition: {other:?}"),
        }
    }

    fn refused(&self, event: &str, said: &str, expected_revision: Option<u64>) -> Code {
        let before = self.run();
        match self.event(event, said, expected_revision) {
            TransitionOutcome::Refused { code, .. } => {
                assert_eq!(self.run(), before, "a refused transition changed something");
                code
            }
            other => panic!("not refused: {other:?}"),
        }
    }

    fn parked(&self, event: &str) -> String {
        match self.event(event, r#"{"why":"ready"}"#, None) {
            TransitionOutcome::Parked { approval_id, .. } => approval_id,
            other => panic!("not parked: {other:?}"),
        }
    }

    fn resolve(&self, ticket: &str, verdict: Verdict) -> Answer {
        self.submit(Command::Resolve { approval_id: ticket.to_owned(), verdict, by: ann(), reason: None })
    }

    fn refuses(&self, ticket: &str, verdict: Verdict) -> Code {
        let before = self.run();
        match self.resolve(ticket, verdict) {
            Answer::Refused(code) => {
                assert_eq!(self.run(), before, "a refused resolution changed something");
                code
            }
            Answer::Stale(Stale::Run | Stale::Bundle | Stale::Trust { .. }) => {
                assert_eq!(self.run(), before, "a refused resolution changed something");
                Code::ApprovalStale
            }
            other => panic!("not refused: {other:?}"),
        }
    }

    fn agrees(&self, ticket: &str) {
        let resolved = self.resolve(ticket, Verdict::Approved);
        assert!(matches!(resolved, Answer::Recorded(_)), "{resolved:?}");
    }

    fn steer(&self, steer: Steer) -> Answer {
        self.change(RunChange::Steer(RunSteered { steer, by: ann(), reason: None }))
    }

    fn activate(&self, text: &str) {
        let bundle = bundle(text);
        self.done(Command::Activate(Arc::clone(&bundle)));
        *self.bundle.lock().expect("a lock") = bundle;
    }

    fn set_status(&self, status: AgentStatus) {
        let change = AgentChange::Status(StatusChanged { status, complaint: false, by: ann(), reason: None });
        self.done(Command::Change { agent: AGENT.to_owned(), change });
    }

    fn set_mode(&self, mode: Mode) {
        let change = AgentChange::Mode(ModeChanged { mode, by: ann(), reason: None });
        self.done(Command::Change { agent: AGENT.to_owned(), change });
    }

    fn allow(&self, allowance: Allowance) {
        let given = AllowanceGiven { allowance, by: ann(), reason: None };
        assert!(matches!(self.change(RunChange::Allow(Box::new(given))), Answer::Recorded(_)));
    }

    fn is_sound(&self) {
        self.ledger.with_reader(|reader| {
            let report = verify(reader, None, interlock_testkit::service::START_MS, &mut |_, _| {}).expect("verified");
            assert!(report.findings.is_empty(), "{:?}", report.findings);
            let again = replay(reader, None, &mut |_, _| {}).expect("replayed");
            assert_eq!((again.differences_count, again.findings.len()), (0, 0), "{again:?}");
        });
    }
}

/// A tool call with what was found by reading it.
#[derive(Debug, Clone)]
struct Ask {
    tool: &'static str,
    input: String,
    session: &'static str,
    subagent: Option<&'static str>,
    call_id: Option<String>,
    shell: Option<Effect>,
    status: Status,
    risk: Risk,
    rules: Option<(Then, &'static str)>,
    allowances: Vec<String>,
    fact: Option<&'static str>,
    files: Vec<&'static str>,
    lines: u64,
    hostile: bool,
    claims: Usage,
    dry_run: bool,
    foreign: bool,
    held_in: Option<&'static str>,
    /// A runner runs it in the profile `project`.
    contained: bool,
}

fn ask(tool: &'static str, input: &str) -> Ask {
    let writes = matches!(tool, "Edit" | "Write");
    Ask {
        tool,
        input: input.to_owned(),
        session: "s1",
        subagent: None,
        call_id: Some(format!("{tool} {input}")),
        shell: (tool == "Bash").then_some(Effect::ReadOnly),
        status: Status::Verified,
        risk: Risk::Low,
        rules: None,
        allowances: Vec::new(),
        fact: None,
        files: if writes { vec!["a"] } else { Vec::new() },
        lines: u64::from(writes),
        hostile: false,
        claims: Usage::default(),
        dry_run: false,
        foreign: false,
        held_in: None,
        contained: false,
    }
}

/// What holds a call in the project, on a kernel that can.
fn bound(bundle: &Bundle) -> BoundEvidence {
    let profile = bundle.profiles().get("project").expect("a profile");
    let abilities = Abilities { namespaces: true, landlock: 7, seccomp: true, narrow: false };
    BoundEvidence { profile: profile.name.clone(), digest: profile.digest(), abilities, advisory: false, keeps: false }
}

/// A call that a rule wants a person to look at.
fn asks(input: &str) -> Ask {
    Ask { rules: Some((Then::Ask, "secrets")), ..ask("Read", input) }
}

impl Ask {
    fn fingerprint(&self) -> Digest {
        Digest::of(&[self.tool, ":", &self.input])
    }

    fn effects(&self) -> Vec<Effect> {
        let by_tool = if matches!(self.tool, "Edit" | "Write") { Effect::Write } else { Effect::ReadOnly };
        vec![self.shell.unwrap_or(by_tool)]
    }

    fn command(&self, run: &Run, bundle: &Bundle) -> Command {
        let step = StepNumber::new(1).expect("a step");
        let context = ActionContext { conversation: self.session.to_owned(), step, observed: None };
        let mut facts = Facts::new(Door::Call, ActionName::parse(self.tool), self.fingerprint(), context);
        facts.usage = self.claims;
        facts.dry_run = self.dry_run;
        facts.call = Some(Box::new(CallFacts {
            runs: (self.tool == "Bash").then(|| self.runs()),
            place: None,
            gist: Some(self.fingerprint()),
            host: "claude-code".to_owned(),
            tool: self.tool.to_owned(),
            family: Family::parse(self.tool),
            session: self.session.to_owned(),
            process: Digest::of(&["process"]),
            call_id: self.call_id.clone(),
            subagent: self.subagent.map(str::to_owned),
            foreign: self.foreign,
        }));
        let phase = run.position_for(self.session).map(|position| PhaseEvidence {
            workflow: position.workflow,
            state: position.state.clone(),
            covered: None,
            fact: self.fact.map(str::to_owned),
            altered: None,
        });
        let evidence = Evidence {
            bundle: bundle.digest(),
            engine: Engine::ToolControl,
            version: 1,
            status: self.status,
            risk: Some(self.risk),
            checks: vec![Check { name: "by_hand".into(), passed: self.status == Status::Verified }],
            rules: self.rules.map(|(then, _)| then),
            matched: self.rules.iter().map(|(_, name)| (*name).to_owned()).collect(),
            certificate: None,
            hostile: self.hostile,
            call: Some(Box::new(CallEvidence {
                bound: self.contained.then(|| bound(bundle)),
                effects: self.effects(),
                shell: self.shell,
                edit_lines: self.lines,
                files: self.files.iter().map(|file| Digest::of(&[file])).collect(),
                known_by: Vec::new(),
                allowances: self.allowances.clone(),
                phase,
                held_in: self.held_in.map(str::to_owned),
            })),
        };
        let text = Some("{\"tool\":\"by hand\"}".into());
        let evidence = Some(evidence);
        Command::Call(Box::new(CallCommand {
            agent: AGENT.to_owned(),
            facts: Box::new(facts),
            evidence,
            text,
            beside: vec![agent_id("codex", PROJECT)],
        }))
    }

    fn runs(&self) -> LineToRun {
        LineToRun { line: self.fingerprint(), directory: Digest::of(&[PROJECT]) }
    }

    /// What a runner tells of its command, if it has a ticket.
    fn executed(&self, run: &Run, exit_code: i64) -> Vec<RunChange> {
        let mine = run.open.iter().find(|open| open.fingerprint == self.fingerprint() && open.call_id == self.call_id);
        let Some(ticket) = mine.and_then(|open| open.ticket.clone()) else { return Vec::new() };
        let LineToRun { line, directory } = self.runs();
        let exec_id = format!("exec_{}", ticket.decision_id);
        let started = ExecStarted {
            exec_id: exec_id.clone(),
            decision_id: ticket.decision_id,
            line,
            directory,
            profile: ticket.profile,
            bound: None,
            foreign: self.foreign,
            by_hook: false,
            kept: None,
        };
        let ended = ExecEnded {
            exec_id,
            exit_code: i32::try_from(exit_code).ok(),
            signal: None,
            duration_ms: 1,
            refused: Vec::new(),
            set_aside: Vec::new(),
            reached: Vec::new(),
            unreached: Vec::new(),
        };
        vec![RunChange::StartExec(Box::new(started)), RunChange::EndExec(Box::new(ended))]
    }

    fn ended(&self, exit_code: i64) -> CallEndReported {
        CallEndReported {
            session: self.session.to_owned(),
            process: Digest::of(&["process"]),
            call_id: self.call_id.clone(),
            tool: self.tool.to_owned(),
            fingerprint: self.fingerprint(),
            is_command: self.tool == "Bash",
            ok: Some(exit_code == 0),
            exit_code: (self.tool == "Bash").then_some(exit_code),
            result: None,
            carried: None,
            files: Vec::new(),
        }
    }
}

/// The same on every store.
fn on_every_store(test: impl Fn(&Fixture)) {
    let memory = Fixture::start(Box::new(MemoryStore::default()));
    test(&memory);
    memory.is_sound();
    let scratch = tempfile::tempdir().expect("a directory");
    let on_disk = Fixture::start(Box::new(SqliteStore::open(scratch.path()).expect("a store")));
    test(&on_disk);
    on_disk.is_sound();
    on_disk.ledger.stop().expect("stopped");
}

fn tests_pass(fixture: &Fixture, number: u32) {
    let mut tests = Ask { fact: Some("tests"), shell: Some(Effect::Unknown), ..ask("Bash", "make test") };
    tests.call_id = Some(format!("tests {number}"));
    assert!(fixture.passes(&tests));
    assert!(matches!(fixture.end(&tests, 0), Answer::Recorded(_)));
}

#[test]
fn a_registered_workflow_governs_the_runs_that_are_started_with_it_and_no_others() {
    let tighter = FLOW.replace(r#"["Read","Bash"]"#, r#"["Read"]"#);
    on_every_store(|fixture| {
        fixture.enrol(Mode::Enforce, BudgetLimits::default());
        let start = |id: &str| {
            let (workflow, run_id) = (id.to_owned(), "run_0123456789abcdef0123456789abcdef".to_owned());
            fixture.change(RunChange::StartRegistered { workflow, run_id, session: None, ground: ground(), by: ann() })
        };
        let register = |text: &str| {
            let answer = fixture.submit(Command::RegisterWorkflow { workflow: workflow(text), by: ann() });
            let Answer::Recorded(recorded) = answer else { panic!("not recorded: {answer:?}") };
            let registered = recorded.entry.body.workflow_registered().expect("a workflow").clone();
            (registered.version, recorded.index, recorded.replayed)
        };
        assert!(matches!(start("fix"), Answer::Refused(Code::WorkflowNoRun)));
        let (first, size) = (register(FLOW), fixture.ledger.size());
        assert_eq!(first, (1, size - 1, false));
        assert_eq!((register(FLOW), fixture.ledger.size()), ((1, size - 1, true), size), "nothing new");
        assert!(matches!(start("Fix"), Answer::Refused(Code::WorkflowNoRun)), "an id is exact");
        assert!(matches!(start("fix"), Answer::Recorded(_)));
        assert!(fixture.passes(&ask("Bash", "ls")));
        assert_eq!(fixture.decides(&ask("Edit", "a")), ("DENIED", Some(Code::WorkflowTool)));
        // A newer one is for new runs.
        assert_eq!(register(&tighter).0, 2);
        assert!(fixture.passes(&ask("Bash", "ls again")), "the run keeps its own");
        assert!(matches!(start("fix"), Answer::Recorded(_)));
        assert_eq!(fixture.decides(&ask("Bash", "ls")), ("DENIED", Some(Code::WorkflowTool)));
        assert!(matches!(fixture.event("READY", "{}", None), TransitionOutcome::Moved { .. }));
        assert_eq!(fixture.state(), "working");
        // The first one again is the third.
        assert_eq!((register(FLOW).0, register(FLOW).2), (3, true));
        let head = fixture.ledger.workflow("fix").expect("read").expect("a workflow");
        assert_eq!((head.version, head.digest, head.states), (3, workflow(FLOW).digest(), 3));
        // A key that counts no more registers and starts nothing.
        let by = Actor { name: "gone".to_owned(), key_id: Some("key_0".to_owned()) };
        let size = fixture.ledger.size();
        let refused = fixture.submit(Command::RegisterWorkflow { workflow: workflow(&tighter), by: by.clone() });
        assert!(matches!(refused, Answer::Refused(Code::Operator)), "{refused:?}");
        let (workflow, run_id) = ("fix".to_owned(), "run_1".to_owned());
        let change = RunChange::StartRegistered { workflow, run_id, session: None, ground: ground(), by };
        assert!(matches!(fixture.change(change), Answer::Refused(Code::Operator)));
        assert_eq!(fixture.ledger.size(), size);
    });
}

/// A line that only reads sees variables like any other.
#[test]
fn a_phase_that_keeps_or_gives_variables_lets_no_line_pass_that_no_runner_runs() {
    let keeps = FLOW.replace(r#""max_iterations":5"#, r#""blocked_env":["TOKEN"]"#);
    let gives = FLOW.replace(r#""max_iterations":5"#, r#""env_overrides":{"CI":"1"}"#);
    on_every_store(|fixture| {
        fixture.enrol(Mode::Enforce, BudgetLimits::default());
        let unrun = |ask: &Ask| {
            let command = ask.command(&fixture.run(), &fixture.bundle.lock().expect("a lock"));
            let Command::Call(mut call) = command else { panic!("another command") };
            call.facts.call.as_mut().expect("a call").runs = None;
            let Body::Ruled(ruled) = fixture.done(Command::Call(call)) else { panic!("no ruling") };
            ruled.ruling.error.map(|error| (error.code, error.message))
        };
        for (number, (text, setting)) in [(&keeps, "blocked_env"), (&gives, "env_overrides")].into_iter().enumerate() {
            let run_id = "run_0123456789abcdef0123456789abcdef".to_owned();
            let ground = StartGround { has_runner: false, ..ground() };
            let change = RunChange::Start { workflow: workflow(text), run_id, session: None, ground, by: ann() };
            assert!(matches!(fixture.change(change), Answer::Refused(Code::ConfigInvalid)), "no runner, no run");
            fixture.begin(text, None);
            let line = ask("Bash", &format!("printenv {number}"));
            let (code, message) = unrun(&line).expect("a refusal");
            assert_eq!(code, Code::ShellEffect);
            assert!(message.contains(&format!("`{setting}`, which a runner enforces")), "{message}");
            assert!(fixture.passes(&line), "a runner runs it");
            assert_eq!(unrun(&ask("Read", &number.to_string())), None, "no command, no variables");
            assert!(matches!(fixture.event("READY", "{}", None), TransitionOutcome::Moved { .. }));
            assert_eq!(unrun(&line), None, "a phase without them asks for no runner");
        }
    });
}

/// What the command of a fact runs is noted before it can change, or the run does not begin.
#[test]
fn a_run_whose_facts_nobody_looked_at_does_not_begin_and_what_was_found_goes_with_it() {
    on_every_store(|fixture| {
        fixture.enrol(Mode::Enforce, BudgetLimits::default());
        let start = |scripts: BTreeMap<String, Option<Digest>>| {
            let (run_id, ground) = ("run_1".to_owned(), StartGround { has_runner: true, scripts });
            fixture.change(RunChange::Start { workflow: workflow(FLOW), run_id, session: None, ground, by: ann() })
        };
        let size = fixture.ledger.size();
        for scripts in [BTreeMap::new(), BTreeMap::from([("make tests".to_owned(), None)])] {
            assert!(matches!(start(scripts), Answer::NeedsEvidence(_)));
        }
        assert_eq!(fixture.ledger.size(), size);
        let script = Digest::of(&["a script"]);
        let Answer::Recorded(recorded) = start(BTreeMap::from([("make test".to_owned(), Some(script))])) else {
            panic!("not recorded");
        };
        let noted = BTreeMap::from([("tests".to_owned(), script)]);
        assert_eq!(recorded.entry.body.started().map(|started| &started.scripts), Some(&noted));
        assert_eq!(fixture.run().position.map(|position| position.scripts), Some(noted));
    });
}

#[test]
fn a_run_goes_along_its_definition_and_nowhere_else() {
    on_every_store(|fixture| {
        fixture.enrol(Mode::Enforce, BudgetLimits::default());
        assert_eq!(fixture.refused("READY", "{}", None), Code::WorkflowNoRun);
        fixture.begin(FLOW, None);
        assert!(fixture.passes(&ask("Read", "a")));
        assert_eq!(fixture.decides(&ask("Edit", "a")), ("DENIED", Some(Code::WorkflowTool)));
        let line = Ask { shell: Some(Effect::Write), ..ask("Bash", "touch a") };
        assert_eq!(fixture.decides(&line), ("DENIED", Some(Code::ShellEffect)));
        assert_eq!(fixture.run().position.expect("one").iterations, 1, "what is refused is not charged");
        assert!(fixture.passes(&Ask { dry_run: true, ..ask("Read", "b") }), "a dry run answers");
        assert_eq!(fixture.run().position.expect("one").iterations, 1, "and uses nothing up");
        let revision = fixture.run().revision;
        assert_eq!(fixture.refused("READY", "{}", Some(revision + 1)), Code::WorkflowRevision);
        assert_eq!(fixture.refused("NEVER", "{}", None), Code::WorkflowEvent);
        assert_eq!(fixture.refused("READY", r#"{"observed":{"tests":0}}"#, None), Code::WorkflowData);
        assert!(matches!(fixture.event("READY", r#"{"tries":1}"#, Some(revision)), TransitionOutcome::Moved { .. }));
        assert_eq!(fixture.refused("BACK", "{}", Some(revision)), Code::WorkflowRevision, "it has moved on");
        assert_eq!(fixture.run().position.expect("one").context.text(), r#"{"tries":1}"#);
        assert_eq!(fixture.refused("DONE", r#"{"lost":1}"#, None), Code::WorkflowGuard);
        tests_pass(fixture, 1);
        // A change after the tests, and the tests count no more.
        let edit = ask("Edit", "a");
        assert!(fixture.passes(&edit));
        fixture.end(&edit, 0);
        assert_eq!(fixture.refused("DONE", "{}", None), Code::WorkflowGuard);
        tests_pass(fixture, 2);
        let ticket = fixture.parked("DONE");
        assert_eq!(fixture.decides(&ask("Edit", "b")), ("DENIED", Some(Code::WorkflowParked)));
        assert!(fixture.passes(&ask("Read", "c")));
        fixture.agrees(&ticket);
        let position = fixture.run().position.expect("one");
        assert_eq!((position.state.as_str(), position.transitions), ("done", 2));
        assert!(matches!(position.ended, Some(Ended::Final(_))));
        assert_eq!(fixture.refused("BACK", "{}", None), Code::WorkflowEvent, "it is over");
        assert!(fixture.passes(&ask("Edit", "d")), "the phase's limits are lifted");
        let critical = Ask { risk: Risk::Critical, ..ask("Edit", "e") };
        assert_eq!(fixture.decides(&critical), ("DENIED", Some(Code::TrustTooLow)), "the base policy is not");
    });
}

#[test]
fn a_transition_that_waits_is_made_once_a_person_agreed_and_only_if_it_still_could_be() {
    on_every_store(|fixture| {
        fixture.enrol(Mode::Enforce, BudgetLimits::default());
        fixture.begin(FLOW, None);
        // No.
        let ticket = fixture.parked("ASK");
        assert_eq!(fixture.refused("READY", "{}", None), Code::WorkflowParked, "one at a time");
        assert!(matches!(fixture.resolve(&ticket, Verdict::Denied), Answer::Recorded(_)));
        assert_eq!((fixture.state().as_str(), fixture.run().position.expect("one").parked), ("planning", None));
        assert_eq!(fixture.refuses(&ticket, Verdict::Approved), Code::ApprovalDecided);
        // Too late.
        let ticket = fixture.parked("ASK");
        fixture.clock.advance(EXPIRY_MS);
        assert_eq!(fixture.refuses(&ticket, Verdict::Approved), Code::ApprovalExpired);
        assert_eq!(fixture.refuses(&ticket, Verdict::Denied), Code::ApprovalExpired);
        // Another bundle.
        let ticket = fixture.parked("ASK");
        fixture.activate("payloads = 'all'");
        assert_eq!(fixture.refuses(&ticket, Verdict::Approved), Code::ApprovalStale);
        assert!(matches!(fixture.resolve(&ticket, Verdict::Denied), Answer::Recorded(_)), "no is still possible");
        // Yes.
        let ticket = fixture.parked("ASK");
        fixture.set_status(AgentStatus::Suspended);
        assert_eq!(fixture.refuses(&ticket, Verdict::Approved), Code::AgentSuspended);
        assert_eq!(fixture.refused("READY", "{}", None), Code::AgentSuspended);
        fixture.set_status(AgentStatus::Active);
        fixture.agrees(&ticket);
        let position = fixture.run().position.expect("one");
        assert_eq!(
            (position.state.as_str(), position.context.text().as_str()),
            ("working", r#"{"tries":0,"why":"ready"}"#)
        );
        // The guard held when it was asked, and does not when a person agrees: a change that waited meanwhile runs.
        tests_pass(fixture, 1);
        let slow = Ask { call_id: Some("slow".to_owned()), ..ask("Edit", "slow") };
        let ticket = fixture.parked("DONE");
        fixture.set_mode(Mode::Observe);
        assert_eq!(fixture.decides(&slow), ("DENIED", Some(Code::WorkflowParked)), "shown, and it runs all the same");
        fixture.set_mode(Mode::Enforce);
        assert_eq!(fixture.refuses(&ticket, Verdict::Approved), Code::ApprovalStale);
        assert_eq!(fixture.state(), "working");
    });
}

#[test]
fn no_is_possible_whatever_became_of_the_run() {
    on_every_store(|fixture| {
        fixture.enrol(Mode::Enforce, BudgetLimits::default());
        for steer in [Steer::Stop, Steer::Force("planning".to_owned())] {
            fixture.begin(FLOW, None);
            let ticket = fixture.parked("ASK");
            fixture.steer(steer);
            assert_eq!(fixture.refuses(&ticket, Verdict::Approved), Code::ApprovalStale);
            let run = fixture.run();
            let denied = fixture.resolve(&ticket, Verdict::Denied);
            assert!(matches!(denied, Answer::Recorded(_)), "{denied:?}");
            assert_eq!(fixture.run(), run, "nothing waited any more");
        }
        // A ticket of an earlier run says nothing about the one there is now.
        fixture.begin(FLOW, None);
        let old = fixture.parked("ASK");
        fixture.begin(FLOW, None);
        let new = fixture.parked("ASK");
        assert_eq!(fixture.refuses(&old, Verdict::Approved), Code::ApprovalStale);
        assert!(matches!(fixture.resolve(&old, Verdict::Denied), Answer::Recorded(_)));
        assert!(fixture.run().position.expect("one").parked.is_some_and(|parked| parked.approval_id == new));
        fixture.agrees(&new);
        assert_eq!(fixture.state(), "working");
    });
}

/// A call that waits, and its ticket.
fn waits(fixture: &Fixture, ask: &Ask) -> String {
    let ruled = fixture.call(ask);
    assert_eq!(ruled.ruling.decision.as_str(), "PENDING", "{ruled:?}");
    ruled.ticket.expect("a ticket").approval_id
}

#[test]
fn a_call_a_person_agreed_to_is_made_once_and_no_other_is() {
    on_every_store(|fixture| {
        fixture.enrol(Mode::Enforce, BudgetLimits::default());
        let call = asks("secret");
        let ticket = waits(fixture, &call);
        let denied = waits(fixture, &asks("other"));
        fixture.agrees(&ticket);
        assert!(matches!(fixture.resolve(&denied, Verdict::Denied), Answer::Recorded(_)));
        assert_eq!(fixture.decides(&asks("third")).0, "PENDING", "another call");
        assert_eq!(fixture.decides(&asks("other")).0, "PENDING", "the one that was denied");
        let dry = fixture.call(&Ask { dry_run: true, ..call.clone() });
        assert_eq!((dry.ruling.decision.as_str(), dry.redeemed), ("APPROVED", None), "a dry run uses nothing up");
        let made = fixture.call(&call);
        assert_eq!((made.ruling.decision.as_str(), made.redeemed.as_deref()), ("APPROVED", Some(ticket.as_str())));
        let row = fixture.ledger.ticket(&ticket).expect("read").expect("a ticket");
        assert!(row.spent && row.status(fixture.ledger.now()) == TicketStatus::Approved);
        assert!(fixture.run().granted.is_empty());
        assert_eq!(fixture.decides(&call).0, "PENDING", "a second time");
    });
}

#[test]
fn what_a_person_agreed_to_ends_with_its_time_the_bundle_the_trust_and_the_agent() {
    on_every_store(|fixture| {
        fixture.enrol(Mode::Enforce, BudgetLimits::default());
        let granted = |input: &str| {
            let call = asks(input);
            let ticket = waits(fixture, &call);
            fixture.agrees(&ticket);
            call
        };
        let call = granted("expires");
        fixture.clock.advance(EXPIRY_MS - 1);
        let late = granted("expires later");
        fixture.clock.advance(1);
        assert_eq!(fixture.decides(&call).0, "PENDING", "its time is over");
        assert!(fixture.passes(&late), "and that of the other is not");
        let call = granted("bundle");
        fixture.activate("payloads = 'all'");
        assert_eq!(fixture.decides(&call).0, "PENDING", "another bundle");
        let call = granted("suspended");
        fixture.set_status(AgentStatus::Suspended);
        assert_eq!(fixture.decides(&call), ("DENIED", Some(Code::AgentSuspended)));
        fixture.set_status(AgentStatus::Active);
        // Hostile text costs two levels.
        let call = granted("trust");
        let attack = Ask { status: Status::Failed, hostile: true, ..ask("Bash", "attack") };
        assert_eq!(fixture.decides(&attack).0, "DENIED");
        assert_eq!(fixture.ledger.agent(AGENT).expect("read").expect("one").trust, Trust::Untrusted);
        assert_eq!(fixture.decides(&call).0, "PENDING", "who is trusted less now is not whom the person agreed to");
    });
}

#[test]
fn an_agreement_is_charged_once() {
    on_every_store(|fixture| {
        let budget = BudgetLimits { max_requests_per_hour: Some(2), ..BudgetLimits::default() };
        fixture.enrol(Mode::Enforce, budget);
        assert!(fixture.passes(&ask("Read", "a")));
        let call = asks("secret");
        let ticket = waits(fixture, &call);
        fixture.agrees(&ticket);
        // The second request of the hour is the one that the person agreed to.
        assert_eq!(fixture.decides(&ask("Read", "b")), ("BUDGET_EXCEEDED", Some(Code::BudgetRate)));
        assert_eq!(fixture.decides(&asks("third")), ("BUDGET_EXCEEDED", Some(Code::BudgetRate)));
        let made = fixture.call(&call);
        assert_eq!((made.ruling.decision.as_str(), made.redeemed), ("APPROVED", Some(ticket)), "{:?}", made.ruling);
        let now = fixture.ledger.now();
        assert_eq!(fixture.ledger.agent(AGENT).expect("read").expect("one").spent.hour_requests(now), 2);
        assert_eq!(fixture.decides(&call), ("BUDGET_EXCEEDED", Some(Code::BudgetRate)), "a second time it is not paid");
    });
}

#[test]
fn an_agreement_is_not_spent_by_a_report_and_once_more_by_the_call() {
    on_every_store(|fixture| {
        fixture.enrol(Mode::Enforce, BudgetLimits::default());
        let call = asks("secret");
        let ruled = fixture.call(&call);
        fixture.agrees(&ruled.ticket.as_ref().expect("a ticket").approval_id);
        let token = Digest::of(&["a token somebody has"]);
        let change = AgentChange::Token(TokenRotated { token, by: ann(), reason: None });
        fixture.done(Command::Change { agent: AGENT.to_owned(), change });
        let (agent, decision_id) = (AGENT.to_owned(), ruled.decision_id);
        let usage = Usage::default();
        let execution = Execution { agent, token, decision_id, success: true, result_hash: None, usage };
        let reported = fixture.submit(Command::Execute(Box::new(execution.clone())));
        assert!(matches!(reported, Answer::Refused(Code::ExecutionNotAllowed)), "{reported:?}");
        assert!(fixture.passes(&call));
        assert!(!matches!(fixture.submit(Command::Execute(Box::new(execution))), Answer::Recorded(_)));
    });
}

fn allowance(number: u8, call: &Ask) -> Allowance {
    Allowance {
        allowance_id: format!("allow_{number:032}"),
        decision_id: String::new(),
        fingerprint: Some(call.fingerprint()),
        tool: call.tool.to_owned(),
        command: None,
        path: None,
        lifts: Vec::new(),
        until: None,
        session: None,
        once: false,
    }
}

/// The call as the gate reads it once there is this allowance.
fn under(call: &Ask, allowance: &Allowance) -> Ask {
    Ask { allowances: vec![allowance.allowance_id.clone()], ..call.clone() }
}

#[test]
fn an_allowance_answers_for_what_it_lists_as_long_as_it_counts() {
    on_every_store(|fixture| {
        fixture.enrol(Mode::Enforce, BudgetLimits::default());
        let unsure = |input: &str| Ask { status: Status::Uncertain, risk: Risk::High, ..ask("Bash", input) };
        let pending = ("PENDING", Some(Code::TrustNeedsApproval));
        // One that nobody gave is none, whatever the evidence says.
        let call = unsure("make a");
        let own = allowance(1, &call);
        assert_eq!(fixture.decides(&under(&call, &own)), pending);
        fixture.allow(own.clone());
        assert!(fixture.passes(&under(&call, &own)));
        assert_eq!(fixture.decides(&unsure("make b")), pending, "exactly that call");
        assert!(matches!(
            fixture.change(RunChange::Disallow(AllowanceTaken { allowance_id: own.allowance_id.clone(), by: ann() })),
            Answer::Recorded(_)
        ));
        assert_eq!(fixture.decides(&under(&call, &own)), pending, "it was taken back");
        // Once.
        let call = unsure("make once");
        let once = Allowance { once: true, ..allowance(2, &call) };
        fixture.allow(once.clone());
        assert_eq!(fixture.call(&under(&call, &once)).used, Some(once.allowance_id.clone()));
        assert_eq!(fixture.decides(&under(&call, &once)), pending, "it is used up");
        // Until.
        let call = unsure("make until");
        let until = Allowance { until: Some(fixture.ledger.now() + 1_000), ..allowance(3, &call) };
        fixture.allow(until.clone());
        fixture.clock.advance(999);
        assert!(fixture.passes(&under(&call, &until)));
        fixture.clock.advance(1);
        assert_eq!(fixture.decides(&under(&call, &until)), pending, "its time is over");
        // In a session.
        let call = unsure("make session");
        let session = Allowance { session: Some("s2".to_owned()), ..allowance(4, &call) };
        fixture.allow(session.clone());
        assert_eq!(fixture.decides(&under(&call, &session)), pending, "another session");
        assert!(fixture.passes(&Ask { session: "s2", ..under(&call, &session) }));
        // It answers for the rules it lists.
        let call = Ask { status: Status::Uncertain, ..asks("key") };
        let other = Allowance { lifts: vec!["egress".to_owned()], ..allowance(5, &call) };
        fixture.allow(other.clone());
        assert_eq!(fixture.decides(&under(&call, &other)), pending);
        let lifts = Allowance { lifts: vec!["secrets".to_owned()], ..allowance(6, &call) };
        fixture.allow(lifts.clone());
        assert!(fixture.passes(&under(&call, &lifts)));
    });
}

#[test]
fn an_allowance_lifts_no_denial_no_phase_no_budget_and_no_failure() {
    on_every_store(|fixture| {
        let budget = BudgetLimits { max_requests_per_hour: Some(1), ..BudgetLimits::default() };
        fixture.enrol(Mode::Enforce, budget);
        let mut number = 10;
        let mut allowed = |call: &Ask| {
            number += 1;
            let all = vec!["secrets".to_owned(), "own".to_owned()];
            let given = Allowance { lifts: all, ..allowance(number, call) };
            fixture.allow(given.clone());
            under(call, &given)
        };
        let denied = allowed(&Ask { rules: Some((Then::Deny, "own")), ..ask("Read", "denied") });
        assert_eq!(fixture.decides(&denied), ("DENIED", Some(Code::ToolNotAllowed)));
        let failed = allowed(&Ask { status: Status::Failed, ..ask("Read", "failed") });
        assert_eq!(fixture.decides(&failed), ("DENIED", Some(Code::VerificationFailed)));
        fixture.begin(FLOW, None);
        let phase = allowed(&ask("Edit", "phase"));
        assert_eq!(fixture.decides(&phase), ("DENIED", Some(Code::WorkflowTool)));
        let line = allowed(&Ask { shell: Some(Effect::Destructive), risk: Risk::Critical, ..ask("Bash", "rm a") });
        assert_eq!(fixture.decides(&line), ("DENIED", Some(Code::ShellEffect)));
        let one = allowed(&ask("Read", "one"));
        let two = allowed(&ask("Read", "two"));
        assert!(fixture.passes(&one));
        assert_eq!(fixture.decides(&two), ("BUDGET_EXCEEDED", Some(Code::BudgetRate)));
        assert_eq!(fixture.run().allowances.len(), 6, "none was used up");
    });
}

#[test]
fn what_is_only_shown_is_recorded_as_it_is_counts_for_nothing_and_costs_no_trust() {
    for paused in [false, true] {
        on_every_store(|fixture| {
            fixture.enrol(if paused { Mode::Enforce } else { Mode::Observe }, BudgetLimits::default());
            fixture.begin(FLOW, None);
            if paused {
                let until = fixture.ledger.now() + 1_000;
                assert!(matches!(fixture.steer(Steer::Pause(until)), Answer::Recorded(_)));
            }
            for number in 0..60 {
                let call = Ask { risk: Risk::Critical, ..ask("Read", &format!("critical {number}")) };
                let ruled = fixture.call(&call);
                assert_eq!((ruled.ruling.decision.as_str(), ruled.observed), ("DENIED", true));
                fixture.end(&call, 0);
            }
            let ruled = fixture.call(&ask("Edit", "a"));
            assert_eq!(ruled.ruling.error.map(|error| error.code), Some(Code::WorkflowTool));
            assert_eq!(fixture.run().open.len(), 1, "it runs, so its end is awaited");
            assert_eq!(fixture.run().position.expect("one").iterations, 0);
            let agent = fixture.ledger.agent(AGENT).expect("read").expect("one");
            assert_eq!((agent.trust, agent.record.is_empty()), (Trust::Autonomous, true));
            // Whoever is suspended is refused in any mode.
            fixture.set_status(AgentStatus::Suspended);
            let ruled = fixture.call(&ask("Read", "suspended"));
            assert!(!ruled.observed && ruled.ruling.decision.as_str() == "DENIED");
            fixture.set_status(AgentStatus::Active);
            if paused {
                fixture.clock.advance(1_000);
                assert!(!fixture.call(&ask("Edit", "b")).observed, "the pause is over");
            } else {
                fixture.set_mode(Mode::Enforce);
                assert!(!fixture.call(&ask("Edit", "b")).observed, "refusals hold again");
            }
        });
    }
}

#[test]
fn what_a_person_decides_costs_no_trust_and_reaching_for_us_does() {
    on_every_store(|fixture| {
        fixture.enrol(Mode::Enforce, BudgetLimits::default());
        fixture.begin(FLOW, None);
        let trust = || fixture.ledger.agent(AGENT).expect("read").expect("one").trust;
        for number in 0..60 {
            assert_eq!(fixture.decides(&ask("Edit", &number.to_string())).1, Some(Code::WorkflowTool));
        }
        assert_eq!(trust(), Trust::Autonomous);
        for number in 0..50 {
            let call = Ask { risk: Risk::Critical, ..ask("Read", &format!("c{number}")) };
            assert_eq!(fixture.decides(&call).1, Some(Code::TrustTooLow));
        }
        for number in 0..50 {
            let call = Ask { rules: Some((Then::Deny, "push")), ..ask("Read", &format!("d{number}")) };
            assert_eq!(fixture.decides(&call).1, Some(Code::ToolNotAllowed));
        }
        for number in 0..60 {
            fixture.decides(&asks(&format!("e{number}")));
        }
        assert_eq!(fixture.decides(&asks("more")).1, Some(Code::ApprovalsOpen));
        assert_eq!(
            fixture.refused("ASK", "{}", None),
            Code::ApprovalsOpen,
            "a transition that asks is one more ticket"
        );
        assert_eq!(trust(), Trust::Autonomous);
        for number in 0..50 {
            let call = Ask { rules: Some((Then::Deny, "self")), ..ask("Read", &format!("f{number}")) };
            assert_eq!(fixture.decides(&call).1, Some(Code::ToolNotAllowed));
        }
        assert_eq!(trust(), Trust::Supervised);
    });
}

#[test]
fn a_call_that_nobody_judged_freezes_the_run_until_an_operator_looked() {
    on_every_store(|fixture| {
        fixture.enrol(Mode::Enforce, BudgetLimits::default());
        fixture.begin(FLOW, None);
        let read = ask("Read", "a");
        assert!(fixture.passes(&read));
        // What was executed is not what was judged.
        let other = Ask { call_id: read.call_id.clone(), ..ask("Read", "b") };
        assert!(matches!(fixture.end(&other, 0), Answer::Recorded(_)));
        assert!(fixture.run().frozen.is_some());
        assert_eq!(fixture.decides(&ask("Read", "c")), ("DENIED", Some(Code::WorkflowFrozen)));
        assert_eq!(fixture.refused("READY", "{}", None), Code::WorkflowFrozen);
        fixture.steer(Steer::Thaw);
        assert!(fixture.run().frozen.is_none() && fixture.run().open.is_empty());
        assert!(fixture.passes(&ask("Read", "c")));
        // An end without a beginning.
        fixture.end(&ask("Bash", "never judged"), 0);
        assert!(fixture.run().frozen.is_some());
        fixture.steer(Steer::Thaw);
        // A turn that ended leaves its calls behind, and only a turn that had some is recorded.
        let left = ask("Read", "d");
        assert!(fixture.passes(&left));
        let all_left = || fixture.run().open.iter().all(|open| open.left);
        let turn = |subagent: Option<&str>| {
            let subagent = subagent.map(str::to_owned);
            fixture.change(RunChange::TurnEnded(TurnEnded { process: Digest::of(&["process"]), subagent }))
        };
        assert!(matches!(turn(Some("sub")), Answer::Done), "no call of a subagent is under way");
        assert!(!all_left() && matches!(turn(None), Answer::Recorded(_)) && all_left());
        assert!(matches!(turn(None), Answer::Done));
        // Told in a later turn, its end is still that of a call that was judged, once.
        fixture.end(&left, 0);
        assert!(fixture.run().frozen.is_none() && fixture.run().open.is_empty());
        // A subagent goes on when the main agent's turn ends, and the end of its call is the end of one that was judged.
        let behind = Ask { subagent: Some("sub"), ..ask("Read", "e") };
        assert!(fixture.passes(&behind) && matches!(turn(None), Answer::Done));
        fixture.end(&behind, 0);
        assert!(fixture.run().frozen.is_none() && fixture.run().open.is_empty());
        assert!(fixture.passes(&Ask { subagent: Some("sub"), ..ask("Read", "f") }));
        assert!(matches!(turn(Some("other")), Answer::Done));
        assert!(!all_left() && matches!(turn(Some("sub")), Answer::Recorded(_)) && all_left());
        fixture.end(&left, 0);
        assert!(fixture.run().frozen.is_some(), "it has ended once already");
        fixture.steer(Steer::Thaw);
        let bind = || fixture.change(RunChange::BindSession(SessionBound { session: "s1".to_owned(), host: None }));
        assert!(matches!(bind(), Answer::Recorded(_)) && matches!(bind(), Answer::Done));
    });
}

#[test]
fn an_operator_moves_and_stops_a_run_within_its_definition() {
    on_every_store(|fixture| {
        fixture.enrol(Mode::Enforce, BudgetLimits::default());
        fixture.begin(FLOW, None);
        let before = fixture.run();
        let nowhere = fixture.steer(Steer::Force("nowhere".to_owned()));
        assert!(matches!(nowhere, Answer::Refused(_)), "{nowhere:?}");
        assert_eq!(fixture.run(), before);
        fixture.steer(Steer::Force("done".to_owned()));
        assert!(matches!(fixture.run().position.expect("one").ended, Some(Ended::Final(_))));
        fixture.steer(Steer::Force("working".to_owned()));
        assert!(fixture.passes(&ask("Edit", "a")), "it goes on");
        fixture.steer(Steer::Stop);
        assert_eq!(fixture.refused("BACK", "{}", None), Code::WorkflowEvent, "it is over");
        assert!(fixture.passes(&ask("Edit", "b")), "no phase holds any more");
        // A run that only one session is in.
        fixture.begin(FLOW, Some("s1"));
        assert_eq!(fixture.decides(&ask("Edit", "c")), ("DENIED", Some(Code::WorkflowTool)));
        assert!(fixture.passes(&Ask { session: "s2", ..ask("Edit", "d") }), "another session is not in it");
        assert_eq!(fixture.run().position.expect("one").iterations, 0);
    });
}

#[test]
fn a_fact_of_one_run_says_nothing_in_the_next() {
    on_every_store(|fixture| {
        fixture.enrol(Mode::Enforce, BudgetLimits::default());
        fixture.begin(FLOW, None);
        fixture.event("READY", "{}", None);
        let tests = Ask { fact: Some("tests"), shell: Some(Effect::Unknown), ..ask("Bash", "make test") };
        assert!(fixture.passes(&tests));
        // The next workflow means another command by the same name.
        fixture.begin(&FLOW.replace("make test", "make all-tests"), None);
        fixture.end(&tests, 0);
        assert!(fixture.run().seen.facts.is_empty(), "{:?}", fixture.run().seen);
        fixture.event("READY", "{}", None);
        assert_eq!(fixture.refused("DONE", "{}", None), Code::WorkflowGuard);
    });
}

#[test]
fn what_a_stranger_tells_is_nothing_that_was_observed() {
    on_every_store(|fixture| {
        fixture.enrol(Mode::Enforce, BudgetLimits::default());
        fixture.begin(FLOW, None);
        fixture.event("READY", "{}", None);
        let tests = Ask { fact: Some("tests"), shell: Some(Effect::Unknown), ..ask("Bash", "make test") };
        let before = fixture.run().seen;
        let forged = Ask { foreign: true, ..tests.clone() };
        assert!(fixture.passes(&forged), "it is judged like any other");
        fixture.end(&forged, 0);
        let mut run = fixture.run();
        assert_eq!(run.seen.unseen.remove("tests"), Some(Unseen::Foreign), "the agent can be told why");
        assert_eq!(run.seen, before, "neither a fact, nor a command, nor a tool");
        assert!(run.open.is_empty() && run.frozen.is_none());
        assert_eq!(fixture.refused("DONE", "{}", None), Code::WorkflowGuard);
        // It takes facts away as any call does that may change something.
        let tests = |number: u32| Ask { call_id: Some(format!("tests {number}")), ..tests.clone() };
        assert!(fixture.passes(&tests(1)));
        fixture.end(&tests(1), 0);
        assert_eq!(fixture.run().seen.facts.len(), 1);
        assert!(fixture.passes(&Ask { foreign: true, fact: None, ..tests(2) }));
        assert!(fixture.run().seen.facts.is_empty());
    });
}

#[test]
fn a_process_that_tells_of_a_run_is_remembered_once() {
    on_every_store(|fixture| {
        fixture.enrol(Mode::Enforce, BudgetLimits::default());
        let seen = |process: &str, boot: &str, began: bool| HostSeen {
            process: Digest::of(&[process]),
            started: 7,
            boot: Digest::of(&[boot]),
            group: Digest::of(&["group"]),
            began,
        };
        let bind = |host: HostSeen| {
            fixture.change(RunChange::BindSession(SessionBound { session: "s1".to_owned(), host: Some(host) }))
        };
        assert!(matches!(bind(seen("a", "boot", false)), Answer::Recorded(_)));
        assert!(matches!(bind(seen("a", "boot", false)), Answer::Done), "nothing is new");
        assert!(matches!(bind(seen("a", "boot", true)), Answer::Recorded(_)), "it began a session");
        assert!(matches!(bind(seen("b", "boot", false)), Answer::Recorded(_)));
        assert_eq!(fixture.run().hosts, [seen("a", "boot", true), seen("b", "boot", false)]);
        for number in 0..40 {
            bind(seen(&number.to_string(), "boot", false));
        }
        let run = fixture.run();
        assert_eq!((run.hosts.len(), run.hosts.first()), (32, Some(&seen("a", "boot", true))), "the first one stays");
        bind(seen("c", "another boot", true));
        assert_eq!(fixture.run().hosts, [seen("c", "another boot", true)], "of the last boot nobody is left");
        assert_eq!(fixture.run().sessions, ["s1"]);
    });
}

#[test]
fn a_project_in_which_refusals_hold_holds_whoever_touches_it() {
    on_every_store(|fixture| {
        fixture.enrol(Mode::Observe, BudgetLimits::default());
        let denied = Ask { rules: Some((Then::Deny, "own")), ..ask("Bash", "rm") };
        let ruled = fixture.call(&denied);
        assert!(ruled.observed, "its own project is only observed");
        let ruled = fixture.call(&Ask { held_in: Some("/srv/held"), ..denied.clone() });
        assert!(!ruled.observed, "this one is held to refusals");
        fixture.set_mode(Mode::Enforce);
        fixture.steer(Steer::Pause(u64::MAX));
        let denied = |input: &str| Ask { rules: Some((Then::Deny, "own")), ..ask("Bash", input) };
        let ruled = fixture.call(&denied("a"));
        assert!(ruled.observed, "its own run is paused");
        let ruled = fixture.call(&Ask { held_in: Some("/srv/held"), ..denied("b") });
        assert!(!ruled.observed, "a pause of its own run is none there");
    });
}

#[test]
fn what_one_agent_writes_the_facts_of_the_others_in_the_project_do_not_survive() {
    on_every_store(|fixture| {
        fixture.enrol(Mode::Enforce, BudgetLimits::default());
        let profile = coding_agents::profile("codex", PROJECT);
        let codex = profile.agent_id.clone();
        let token = Digest::of(&["other token"]);
        let enrolment = Enrolment { profile: Box::new(profile), token, mode: Mode::Enforce, by: ann() };
        fixture.done(Command::Enrol(Box::new(enrolment)));
        let change = |change| fixture.submit(Command::ChangeRun { agent: codex.clone(), change });
        let run = || fixture.ledger.run(&codex).expect("read").unwrap_or_default();
        let call = |ask: &Ask| {
            let command = ask.command(&run(), &fixture.bundle.lock().expect("a lock"));
            let Command::Call(mut call) = command else { panic!("another command") };
            call.agent.clone_from(&codex);
            call.beside = vec![AGENT.to_owned()];
            assert!(matches!(fixture.submit(Command::Call(call)), Answer::Recorded(_)));
        };
        let end = |ask: &Ask| {
            ask.executed(&run(), 0).into_iter().for_each(|step| drop(change(step)));
            change(ended(ask.ended(0), &[AGENT]))
        };
        let (workflow, run_id) = (workflow(FLOW), "run_fedcba9876543210fedcba9876543210".to_owned());
        change(RunChange::Start { workflow, run_id, session: None, ground: ground(), by: ann() });
        let steer = Steer::Force("working".to_owned());
        change(RunChange::Steer(RunSteered { steer, by: ann(), reason: None }));
        let tests = Ask { fact: Some("tests"), shell: Some(Effect::Unknown), ..ask("Bash", "make test") };
        let revision = run().revision;
        for (number, order) in ["tTe", "teTE", "etTE"].into_iter().enumerate() {
            let edit = ask("Edit", &format!("edit {number}"));
            let tests = Ask { call_id: Some(format!("tests {number}")), ..tests.clone() };
            for step in order.chars() {
                match step {
                    't' => call(&tests),
                    'T' => drop(end(&tests)),
                    'e' => assert!(fixture.passes(&edit)),
                    _ => drop(fixture.end(&edit, 0)),
                }
            }
            assert!(run().seen.facts.is_empty(), "{order}");
            fixture.end(&edit, 0);
            fixture.steer(Steer::Thaw);
        }
        let tests = Ask { call_id: Some("last".to_owned()), ..tests };
        call(&tests);
        end(&tests);
        assert_eq!(run().seen.facts.len(), 1, "nobody writes any more");
        assert_eq!(run().revision, revision, "where it stands is as it was");
    });
}

#[test]
fn of_many_calls_at_once_as_many_pass_as_the_phase_allows() {
    on_every_store(|fixture| {
        let budget = BudgetLimits { max_requests_per_hour: None, ..BudgetLimits::default() };
        fixture.enrol(Mode::Enforce, budget);
        for round in 0..3 {
            fixture.begin(FLOW, None);
            let (run, bundle) = (fixture.run(), Arc::clone(&fixture.bundle.lock().expect("a lock")));
            let barrier = Barrier::new(64);
            let decided: Vec<_> = thread::scope(|scope| {
                let threads: Vec<_> = (0..64)
                    .map(|number| {
                        let (barrier, run, bundle) = (&barrier, &run, &bundle);
                        scope.spawn(move || {
                            let call = ask("Read", &format!("{round} {number}"));
                            barrier.wait();
                            fixture.submit(call.command(run, bundle))
                        })
                    })
                    .collect();
                threads.into_iter().map(|thread| thread.join().expect("a thread")).collect()
            });
            let codes: Vec<Option<Code>> = decided
                .into_iter()
                .map(|answer| match answer {
                    Answer::Recorded(recorded) => {
                        let ruled = recorded.entry.body.into_ruled().expect("a ruling");
                        ruled.ruling.error.map(|error| error.code)
                    }
                    other => panic!("{other:?}"),
                })
                .collect();
            assert_eq!(codes.iter().filter(|code| code.is_none()).count(), 5);
            assert_eq!(codes.iter().filter(|code| **code == Some(Code::WorkflowIterations)).count(), 59);
            assert_eq!(fixture.run().position.expect("one").iterations, 5);
        }
    });
}

#[test]
fn a_call_read_in_another_phase_has_to_be_read_again() {
    on_every_store(|fixture| {
        fixture.enrol(Mode::Enforce, BudgetLimits::default());
        let before = fixture.run();
        fixture.begin(FLOW, None);
        let bundle = Arc::clone(&fixture.bundle.lock().expect("a lock"));
        let planning = fixture.run();
        assert!(matches!(fixture.submit(ask("Read", "a").command(&before, &bundle)), Answer::NeedsEvidence(_)));
        fixture.event("READY", "{}", None);
        assert!(matches!(fixture.submit(ask("Read", "a").command(&planning, &bundle)), Answer::NeedsEvidence(_)));
        assert!(fixture.passes(&ask("Read", "a")));
    });
}

/// A data directory in which everything happened, and what was known at the end.
fn everything(directory: &Path) -> (Run, String) {
    let fixture = Fixture::start(Box::new(SqliteStore::open(directory).expect("a store")));
    fixture.enrol(Mode::Enforce, BudgetLimits::default());
    fixture.begin(FLOW, None);
    assert!(fixture.passes(&ask("Read", "a")));
    fixture.event("READY", r#"{"n":7}"#, None);
    tests_pass(&fixture, 1);
    let open = ask("Read", "open");
    assert!(fixture.passes(&open));
    let granted = asks("granted");
    let ticket = waits(&fixture, &granted);
    fixture.agrees(&ticket);
    fixture.allow(Allowance { lifts: vec!["secrets".to_owned()], ..allowance(1, &granted) });
    waits(&fixture, &asks("waits"));
    fixture.change(RunChange::BindSession(SessionBound { session: "s1".to_owned(), host: None }));
    fixture.steer(Steer::Pause(1));
    fixture.parked("DONE");
    fixture.is_sound();
    let run = fixture.run();
    fixture.ledger.stop().expect("stopped");
    (run, ticket)
}

#[test]
fn a_session_stays_with_its_project_however_many_others_begin() {
    on_every_store(|fixture| {
        fixture.enrol(Mode::Enforce, BudgetLimits::default());
        fixture.change(RunChange::BindSession(SessionBound { session: "first".to_owned(), host: None }));
        let sessions = Sessions::load(&fixture.ledger).expect("read");
        for number in 0..10_000 {
            let session = format!("other-{number}");
            sessions.bind(&fixture.ledger, "claude-code", &session, "/srv/elsewhere").expect("bound");
        }
        let project = |session| sessions.project("claude-code", session);
        assert_eq!(project("first").as_deref(), Some(PROJECT));
        assert_eq!(project("other-9999").as_deref(), Some("/srv/elsewhere"));
        sessions.bind(&fixture.ledger, "claude-code", "first", "/srv/elsewhere").expect("bound");
        assert_eq!(project("first").as_deref(), Some(PROJECT), "it does not move");
    });
}

#[test]
fn a_run_is_the_same_after_a_restart() {
    let scratch = tempfile::tempdir().expect("a directory");
    let (run, ticket) = everything(scratch.path());
    let fixture = Fixture::start(Box::new(SqliteStore::open(scratch.path()).expect("a store")));
    assert_eq!(fixture.run(), run);
    // The writer has forgotten the workflow, and reads it from the ledger.
    assert_eq!(fixture.refused("DONE", "{}", None), Code::WorkflowParked);
    assert!(fixture.passes(&ask("Read", "b")));
    assert_eq!(fixture.run().position.expect("one").iterations, run.position.expect("one").iterations + 1);
    let made = fixture.call(&asks("granted"));
    assert_eq!(made.redeemed, Some(ticket));
    assert!(matches!(fixture.end(&ask("Read", "open"), 0), Answer::Recorded(_)));
    assert!(fixture.run().frozen.is_none(), "a call that began before the restart may end after it");
    let parked = fixture.run().position.expect("one").parked.expect("parked").approval_id;
    fixture.agrees(&parked);
    assert_eq!(fixture.state(), "done");
    fixture.is_sound();
    fixture.ledger.stop().expect("stopped");
}

#[test]
fn an_audit_finds_every_edit_of_a_run_and_of_its_entries() {
    let edit = |kind: &str, from: &str, to: &str| {
        format!(
            "UPDATE entries SET bytes = CAST(replace(CAST(bytes AS TEXT), '{from}', '{to}') AS BLOB) \
             WHERE CAST(bytes AS TEXT) LIKE '%\"kind\":\"{kind}\"%' AND CAST(bytes AS TEXT) LIKE '%{from}%'"
        )
    };
    for (sql, finding) in [
        ("UPDATE runs SET row = replace(row, '\"iterations\":', '\"iterations\":1')".to_owned(), "row of the run"),
        ("UPDATE runs SET row = replace(row, '\"working\"', '\"planning\"')".to_owned(), "row of the run"),
        ("UPDATE runs SET row = replace(row, '\"exit_code\":0', '\"exit_code\":1')".to_owned(), "row of the run"),
        ("DELETE FROM runs".to_owned(), "no row"),
        ("UPDATE runs SET agent = 'agent_other'".to_owned(), "no row"),
        (edit("transitioned", r#""to":"working""#, r#""to":"done""#), "comes out differently"),
        (edit("transitioned", r#"\"n\":7"#, r#"\"n\":8"#), "root"),
        (edit("run_started", "make test", "make lint"), "root"),
        (edit("run_started", r#"\"max_iterations\":5"#, r#"\"max_iterations\":9"#), "root"),
        (edit("call_ended", r#""ok":true"#, r#""ok":false"#), "root"),
        (edit("allowance_given", "secrets", "egress"), "root"),
        (edit("run_steered", r#""pause":1"#, r#""pause":2"#), "root"),
        (edit("run_steered", r#""at":17"#, r#""at":16"#), "older than the agent's entry before it"),
    ] {
        let scratch = tempfile::tempdir().expect("a directory");
        everything(scratch.path());
        let connection = rusqlite::Connection::open(scratch.path().join("ledger.db")).expect("a database");
        let changed = connection.execute(&sql, []).expect("tampered");
        assert!(changed > 0, "nothing was changed: {sql}");
        drop(connection);
        let mut reader = SqliteReader::open(scratch.path()).expect("a reader");
        let found =
            verify(&mut reader, None, interlock_testkit::service::START_MS, &mut |_, _| {}).expect("an audit").findings;
        assert!(found.iter().any(|found| found.contains(finding)), "{sql}: {found:?}");
    }
}

#[test]
fn what_an_audit_must_find_is_told_although_the_root_was_made_to_fit() {
    // Whoever can rewrite entries and head alike is still told of by the rows and by what comes out differently.
    let scratch = tempfile::tempdir().expect("a directory");
    everything(scratch.path());
    let mut reader = SqliteReader::open(scratch.path()).expect("a reader");
    let before = replay(&mut reader, None, &mut |_, _| {}).expect("replayed");
    assert_eq!((before.differences_count, before.findings.len()), (0, 0));
    let connection = rusqlite::Connection::open(scratch.path().join("ledger.db")).expect("a database");
    let forced = "UPDATE entries SET bytes = CAST(replace(CAST(bytes AS TEXT), '\"pause\":1', '\"force\":\"nowhere\"') AS BLOB) \
                  WHERE CAST(bytes AS TEXT) LIKE '%\"pause\":1%'";
    assert_eq!(connection.execute(forced, []).expect("tampered"), 1);
    drop(connection);
    let after = replay(&mut reader, None, &mut |_, _| {}).expect("replayed");
    let told = after.findings.iter().any(|finding| finding.contains("no such state"));
    assert!(told, "{:?}", after.findings);
}

#[test]
fn data_that_no_context_takes_is_not_kept_and_the_ledger_can_be_read_again() {
    on_every_store(|fixture| {
        fixture.enrol(Mode::Enforce, BudgetLimits::default());
        fixture.begin(FLOW, None);
        let (before, size) = (fixture.run(), fixture.ledger.size());
        let say = |event: &str, said: String| {
            let data = Context::from(BTreeMap::from([("said".to_owned(), Json::String(said))]));
            let (agent, event) = (AGENT.to_owned(), event.to_owned());
            fixture.submit(Command::Transition(Box::new(TransitionCommand {
                agent,
                event,
                data,
                expected_revision: None,
            })))
        };
        // Quotes are escaped twice in an entry: from eight million bytes come more than can be read.
        for said in ["x".repeat(70_000), "\"".repeat(5_000_000)] {
            assert!(matches!(say("READY", said), Answer::Refused(Code::WorkflowData)));
        }
        assert!(matches!(say(&"\"".repeat(9_000_000), String::new()), Answer::Refused(Code::WorkflowData)));
        // Whatever else is too long for a reader is not written.
        let mut report = ask("Read", "a").ended(0);
        report.files = vec!["\"".repeat(9_000_000)];
        assert!(matches!(fixture.change(ended(report, &[])), Answer::Fault(Code::FaultInternal)));
        assert_eq!((fixture.run(), fixture.ledger.size()), (before, size));
    });
}

#[test]
fn refused_calls_and_transitions_are_counted_beyond_a_bound() {
    on_every_store(|fixture| {
        fixture.enrol(Mode::Enforce, BudgetLimits::default());
        fixture.begin(FLOW, None);
        let size = fixture.ledger.size();
        let refused: Vec<Ruled> = (0..60).map(|_| fixture.call(&ask("Edit", "a"))).collect();
        assert!(refused.iter().all(|ruled| ruled.ruling.error.as_ref().map(|it| it.code) == Some(Code::WorkflowTool)));
        let last = refused.last().expect("a ruling").decision_id.clone();
        let known = fixture.ledger.ruling(&last).expect("read").expect("the answer names one on record");
        let asked = known.entry.body.ruled().and_then(|ruled| ruled.facts.clone()).expect("facts");
        assert_eq!(asked.fingerprint, ask("Edit", "a").fingerprint(), "and that one asked for the same");
        let codes: Vec<Code> = (0..60).map(|_| fixture.refused("NO_SUCH_EVENT", "{}", None)).collect();
        assert!(codes.iter().all(|code| *code == codes[0]));
        assert_eq!(fixture.ledger.size(), size + 20);
        // What passes is written as ever.
        assert!(fixture.passes(&ask("Bash", "ls")));
        assert!(matches!(fixture.submit(Command::CountRepeats), Answer::Done));
        let agent = fixture.ledger.agent(AGENT).expect("read").expect("an agent");
        assert_eq!(agent.refusals(), 60, "a transition is no ruling");
    });
}

#[test]
fn what_needs_no_ruling_is_on_record_and_counted() {
    on_every_store(|fixture| {
        fixture.enrol(Mode::Enforce, BudgetLimits::default());
        let pass = |pass| match fixture.submit(Command::Pass { agent: AGENT.to_owned(), pass }) {
            Answer::Passed(ruling) => ruling,
            other => panic!("{other:?}"),
        };
        let last = || {
            let index = fixture.ledger.size() - 1;
            let bytes = fixture.ledger.entry(index).expect("read").expect("an entry");
            interlock_core::ledger::Entry::from_bytes(&bytes).expect("an entry").body
        };
        let counts = |body: Body| match body {
            Body::Passed(passed) => passed.passes.iter().map(|pass| (pass.kind, pass.count)).collect::<Vec<_>>(),
            other => panic!("{other:?}"),
        };
        let size = fixture.ledger.size();
        let get_state = PassAsked::Control { transition: false, subagent: true };
        assert_eq!(pass(get_state), PassRuling::Passes(PassKind::GetState));
        assert_eq!(fixture.ledger.size(), size + 1, "the first is on record before it is answered");
        assert_eq!(counts(last()), [(PassKind::GetState, 1)]);
        for _ in 0..40 {
            assert_eq!(pass(get_state), PassRuling::Passes(PassKind::GetState));
        }
        assert_eq!(fixture.ledger.size(), size + 1, "the others are counted");
        assert!(matches!(fixture.submit(Command::CountRepeats), Answer::Done));
        assert_eq!((fixture.ledger.size(), counts(last())), (size + 2, vec![(PassKind::GetState, 40)]));
        // After an hour the next one is on record at once again.
        fixture.clock.advance(3_600_001);
        pass(get_state);
        assert_eq!((fixture.ledger.size(), counts(last())), (size + 3, vec![(PassKind::GetState, 1)]));
        // Nobody knows whose an event is that cannot be read: it goes on only while refusals hold nowhere.
        let unread = |holds| match fixture.submit(Command::PassUnread { holds }) {
            Answer::Passed(ruling) => ruling,
            other => panic!("{other:?}"),
        };
        assert_eq!(unread(true), PassRuling::Judged);
        assert_eq!(fixture.ledger.size(), size + 3);
        assert_eq!(unread(false), PassRuling::Passes(PassKind::Unread));
        assert_eq!((fixture.ledger.size(), counts(last())), (size + 4, vec![(PassKind::Unread, 1)]));
    });
}

#[test]
fn only_what_the_table_says_needs_no_ruling() {
    on_every_store(|fixture| {
        fixture.enrol(Mode::Enforce, BudgetLimits::default());
        let pass = |pass| match fixture.submit(Command::Pass { agent: AGENT.to_owned(), pass }) {
            Answer::Passed(ruling) => ruling,
            other => panic!("{other:?}"),
        };
        let control = |transition, subagent| PassAsked::Control { transition, subagent };
        assert_eq!(pass(control(true, false)), PassRuling::Passes(PassKind::Transition));
        assert_eq!(pass(control(true, true)), PassRuling::NotForSubagents);
        assert_eq!(pass(PassAsked::LoadTools), PassRuling::Passes(PassKind::LoadTools));
        // What runs afterwards is not told away.
        for kind in PassKind::ALL.iter().copied() {
            let runs = [
                PassKind::GetState,
                PassKind::Transition,
                PassKind::LoadTools,
                PassKind::Echo,
                PassKind::Unread,
                PassKind::HostCommand,
                PassKind::Unticketed,
                PassKind::OwnRun,
            ];
            let expected = if runs.contains(&kind) { PassRuling::Judged } else { PassRuling::Passes(kind) };
            assert_eq!(pass(PassAsked::Told(kind)), expected);
        }
        // A runner starts nothing without a ticket while refusals hold; what the host runs for itself it does.
        assert_eq!(pass(PassAsked::HostCommand), PassRuling::Passes(PassKind::HostCommand));
        assert_eq!(pass(PassAsked::Unticketed), PassRuling::Judged);
        fixture.set_mode(Mode::Observe);
        assert_eq!(pass(PassAsked::Unticketed), PassRuling::Passes(PassKind::Unticketed));
        fixture.set_mode(Mode::Enforce);
        // An echo is one of a call that was let run a moment ago, by the same process.
        let call = ask("Bash", "ls");
        assert!(fixture.passes(&call));
        let open = fixture.run().open.first().expect("a call").clone();
        let gist = open.gist.expect("a gist");
        let echo = |process, gist| pass(PassAsked::Echo { process, gist });
        assert_eq!(echo(open.process, gist), PassRuling::Passes(PassKind::Echo));
        assert_eq!(echo(Digest::of(&["another"]), gist), PassRuling::Judged);
        assert_eq!(echo(open.process, Digest::of(&["another"])), PassRuling::Judged);
        fixture.clock.advance(30_000);
        assert_eq!(echo(open.process, gist), PassRuling::Judged);
        // Where nothing passes, an agent may only look why.
        fixture.change(ended(ask("Bash", "never judged").ended(0), &[]));
        assert!(fixture.run().frozen.is_some());
        assert_eq!(pass(PassAsked::LoadTools), PassRuling::Judged);
        assert_eq!(pass(control(false, false)), PassRuling::Passes(PassKind::GetState));
        let status = StatusChanged { status: AgentStatus::Suspended, complaint: false, by: ann(), reason: None };
        fixture.done(Command::Change { agent: AGENT.to_owned(), change: AgentChange::Status(status) });
        assert_eq!(pass(control(false, false)), PassRuling::Judged);
        assert_eq!(pass(control(true, false)), PassRuling::Judged);
        assert_eq!(pass(PassAsked::Told(PassKind::Stop)), PassRuling::Passes(PassKind::Stop));
    });
}

/// Calls of a runner: what starts is what was judged, where it was judged, in time, and once.
#[test]
fn a_command_starts_by_its_ticket_once_and_as_it_was_judged() {
    on_every_store(|fixture| {
        fixture.enrol(Mode::Enforce, BudgetLimits::default());
        let tests = ask("Bash", "make test");
        assert!(fixture.passes(&tests));
        let steps = tests.executed(&fixture.run(), 3);
        let [RunChange::StartExec(started), RunChange::EndExec(over)] = steps.as_slice() else { panic!("{steps:?}") };
        let start = |change: &dyn Fn(&mut ExecStarted)| {
            let mut started = started.clone();
            change(&mut started);
            fixture.change(RunChange::StartExec(started))
        };
        let end = || fixture.change(RunChange::EndExec(over.clone()));
        let refused = |answer: Answer| matches!(answer, Answer::Refused(Code::ContainTicket));
        let before = fixture.run();
        assert!(refused(end()), "it has not started");
        assert!(refused(start(&|it| it.line = Digest::of(&["make tests"]))), "another line");
        assert!(refused(start(&|it| it.directory = Digest::of(&["/elsewhere"]))), "another directory");
        assert!(refused(start(&|it| it.decision_id = "dec_00000000000000000000000000000000".to_owned())));
        assert!(refused(start(&|it| it.profile = Some("project".to_owned()))), "another bound");
        assert_eq!(fixture.run(), before, "nothing was spent");
        assert!(matches!(start(&|_| ()), Answer::Recorded(_)));
        assert!(refused(start(&|_| ())), "a ticket is for one start");
        assert!(matches!(end(), Answer::Recorded(_)));
        assert!(refused(end()), "a command ends once");
        let seen = fixture.run().seen.last_command.expect("a command");
        assert_eq!((seen.ok, seen.exit_code), (false, Some(3)));
        // What the host says of it afterwards ends the call, and says nothing about how.
        fixture.change(ended_by_host(&tests));
        let run = fixture.run();
        assert_eq!((run.seen.last_command.expect("a command").exit_code, run.open.len()), (Some(3), 0));
        // Late, suspended and frozen: nothing starts.
        let late = ask("Bash", "ls");
        assert!(fixture.passes(&late));
        fixture.clock.advance(3_600_000);
        let first = |ask: &Ask| ask.executed(&fixture.run(), 0).swap_remove(0);
        assert!(refused(fixture.change(first(&late))), "an hour has passed");
        let frozen = ask("Bash", "pwd");
        assert!(fixture.passes(&frozen));
        let start = first(&frozen);
        fixture.change(ended(ask("Bash", "never judged").ended(0), &[]));
        assert!(matches!(fixture.change(start), Answer::Refused(Code::WorkflowFrozen)));
    });
}

#[test]
fn what_is_held_runs_by_its_runner_or_the_run_is_frozen() {
    on_every_store(|fixture| {
        fixture.enrol(Mode::Enforce, BudgetLimits::default());
        let held =
            Ask { contained: true, shell: Some(Effect::Unknown), status: Status::Uncertain, ..ask("Bash", "make") };
        assert!(fixture.passes(&held), "the kernel holds what nobody understood");
        let ticket = fixture.run().open.first().and_then(|open| open.ticket.clone()).expect("a ticket");
        assert_eq!((ticket.profile.as_deref(), ticket.is_held), (Some("project"), true));
        fixture.change(ended_by_host(&held));
        assert!(fixture.run().frozen.is_some(), "it ran, and nobody held it");
        fixture.steer(Steer::Thaw);
        // Without a bound that holds, the same line is asked about.
        let open = Ask { contained: false, ..held.clone() };
        assert_eq!(fixture.decides(&open).0, "PENDING");
        // What destroys is never only contained.
        let destroys = Ask { shell: Some(Effect::Destructive), risk: Risk::Critical, ..held.clone() };
        let command = destroys.command(&fixture.run(), &fixture.bundle.lock().expect("a lock"));
        assert!(matches!(fixture.submit(command), Answer::NeedsEvidence(_)), "its rules were asked about a bound");
        // While refusals are only shown, nothing is held.
        fixture.set_mode(Mode::Observe);
        fixture.call(&Ask { call_id: Some("observed".to_owned()), ..held });
        let open = fixture.run().open.last().and_then(|open| open.ticket.clone()).expect("a ticket");
        assert_eq!((open.profile, open.is_held), (None, false));
    });
}

fn ended_by_host(ask: &Ask) -> RunChange {
    ended(ask.ended(0), &[])
}
