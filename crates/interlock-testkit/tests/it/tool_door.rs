//! The door for tool calls and the one for runners, in a project on disk: which variables a command gets, and which
//! script makes it the command of a fact.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use interlock_core::action::{Actor, Decision, Mode};
use interlock_core::bundle::Bundle;
use interlock_core::call::{Call, Family, Intent};
use interlock_core::contain::Abilities;
use interlock_core::json::Json;
use interlock_core::workflow::{Context, Workflow};
use interlock_core::{Code, Digest};
use interlock_runtime::call_policy::RunnerGround;
use interlock_runtime::clock::{Entropy, SystemClock, SystemEntropy};
use interlock_runtime::coding_agents::{agent_id, profile};
use interlock_runtime::exec_door::{StartAnswer, StartComing};
use interlock_runtime::gate::Gate;
use interlock_runtime::ledger::{Answer, Command, Enrolment, Ledger, MemoryStore, Ports, RunChange, StartGround};
use interlock_runtime::tool_door::{
    Arrival, CallAnswer, CallComing, Caller, DoorFault, DoorGround, Origin, Place, ToolDoor,
};
use interlock_workflow::{Format, Limits, load};
use tempfile::TempDir;

const HOST: &str = "claude-code";

/// A project on disk, and the doors of a ledger in memory.
struct World {
    root: TempDir,
    gate: Arc<Gate>,
    door: ToolDoor,
    ledger: Ledger,
    project: String,
}

fn ann() -> Actor {
    Actor { name: "ann".to_owned(), key_id: None }
}

impl World {
    fn new(mode: Mode) -> World {
        let root = tempfile::tempdir().expect("a directory");
        let real = std::fs::canonicalize(root.path()).expect("a path");
        let project = real.join("project");
        std::fs::create_dir_all(project.join(".git")).expect("made");
        let project = project.to_str().expect("text").to_owned();
        let bundle = Arc::new(Bundle::load("", &BTreeMap::new(), false).expect("a bundle"));
        let entropy: Arc<dyn Entropy> = Arc::new(SystemEntropy::new());
        let ports = Ports {
            store: Box::new(MemoryStore::default()),
            clock: Arc::new(SystemClock),
            entropy: Arc::clone(&entropy),
            checkpoint: None,
        };
        let ledger = Ledger::start(ports, Arc::clone(&bundle)).expect("a ledger");
        let enrolment =
            Enrolment { profile: Box::new(profile(HOST, &project)), token: Digest::of(&["token"]), mode, by: ann() };
        assert!(matches!(ledger.submit_and_wait(Command::Enrol(Box::new(enrolment))), Answer::Recorded(_)));
        let ground = DoorGround {
            own: Vec::new(),
            user_home: None,
            on_path: Vec::new(),
            doctor: real.join("doctor"),
            home: real.join("home"),
        };
        let gate = Arc::new(Gate::new(ledger.clone(), bundle));
        let door = ToolDoor::new(Arc::clone(&gate), Arc::default(), entropy, ground).expect("a door");
        World { root, gate, door, ledger, project }
    }

    fn begin(&self, text: &str) {
        let workflow =
            load(text, Format::Json, &Limits::MAX).unwrap_or_else(|problems| panic!("{problems:?}")).workflow;
        let ground = self.ground(&workflow);
        let run_id = "run_0123456789abcdef0123456789abcdef".to_owned();
        let change = RunChange::Start { workflow: Arc::new(workflow), run_id, session: None, ground, by: ann() };
        let command = Command::ChangeRun { agent: agent_id(HOST, &self.project), change };
        let answer = self.ledger.submit_and_wait(command);
        assert!(matches!(answer, Answer::Recorded(_)), "{answer:?}");
    }

    fn ground(&self, workflow: &Workflow) -> StartGround {
        let scripts = self.gate.scripts_of(workflow.facts(), &self.project).expect("a ground");
        StartGround { has_runner: true, scripts }
    }

    /// The fact that a line is the command of now, and the one that it would be if its script had stayed.
    fn fact(&self, line: &str) -> (Option<String>, Option<String>) {
        let found = self.ask(line).ruled.evidence.expect("evidence").call.expect("a call");
        let phase = found.phase.expect("a phase");
        (phase.fact, phase.altered)
    }

    fn origin(&self) -> Origin<'_> {
        Origin {
            host: HOST,
            session: "s1",
            cwd: &self.project,
            roots: &[],
            pinned: None,
            subagent: None,
            caller: Caller { process: Digest::of(&["process"]), hook: None },
            runner: Some(RunnerGround { abilities: Abilities::default(), advisory: false, keeps: false }),
        }
    }

    fn place(&self) -> Place {
        self.door.place(&self.origin(), Arrival::Calls).expect("a place")
    }

    fn ask(&self, line: &str) -> CallAnswer {
        let intent = Intent { commands: vec![line.to_owned()], ..Intent::default() };
        let input = Json::Object(BTreeMap::from([("command".to_owned(), Json::from(line))]));
        let (tool, family) = ("Bash".to_owned(), Some(Family::Bash));
        let call = Call { tool, family, mcp: None, input, intent, bookkeeping: false };
        let coming = CallComing { call: &call, call_id: None, echo: false };
        self.door.ask(&self.origin(), &self.place(), &coming).expect("a ruling")
    }

    fn start(&self, answer: &CallAnswer, line: &str) -> Result<StartAnswer, DoorFault> {
        let ticket = answer.ticket.as_deref().expect("a ticket");
        let process = Digest::of(&["process"]);
        self.door.start(&StartComing { ticket, line, directory: &self.project, process, by_hook: false })
    }

    fn moves(&self, event: &str) {
        let event = event.to_owned();
        self.door.transition(HOST, &self.place(), event, Context::default(), None).expect("recorded");
    }

    fn write(&self, name: &str, text: &str) {
        std::fs::write(Path::new(&self.project).join(name), text).expect("written");
    }
}

const FLOW: &str = r#"{"id":"kept","initial":"a","states":{
    "a":{"blocked_env":["TOKEN","HOME"],"env_overrides":{"CI":"1"},"on":{"GO":"b"}},
    "b":{"on":{"END":"z"}},"z":{"type":"final"}}}"#;

fn environment(started: &StartAnswer) -> (Vec<&str>, Vec<(&str, &str)>) {
    let set = started.env_set.iter().map(|(name, value)| (name.as_str(), value.as_str()));
    (started.env_blocked.iter().map(String::as_str).collect(), set.collect())
}

#[test]
fn a_command_gets_the_variables_of_the_phase_it_was_judged_in() {
    let world = World::new(Mode::Enforce);
    world.write("file", "");
    world.begin(FLOW);
    let kept = (vec!["TOKEN", "HOME"], vec![("CI", "1")]);
    let answer = world.ask("cat file");
    assert_eq!(answer.ruled.ruling.decision, Decision::Approved, "{:?}", answer.ruled.ruling);
    assert_eq!(environment(&world.start(&answer, "cat file").expect("a start")), kept);
    // Judged here, and the run goes on before it starts: what this phase keeps, it does not get from the next one.
    let answer = world.ask("head file");
    world.moves("GO");
    assert_eq!(environment(&world.start(&answer, "head file").expect("a start")), kept);
    let answer = world.ask("tail file");
    assert_eq!(environment(&world.start(&answer, "tail file").expect("a start")), (Vec::new(), Vec::new()));
    // Nobody can say any more what the phase of another workflow kept.
    let answer = world.ask("wc file");
    world.begin(&FLOW.replace("kept", "other"));
    let refused = world.start(&answer, "wc file").expect_err("no start");
    assert!(matches!(refused, DoorFault::Refused(Code::ContainTicket)), "{refused:?}");
    assert!(world.root.path().exists());
}

#[test]
fn while_refusals_are_only_shown_variables_stay_as_they_are() {
    let world = World::new(Mode::Observe);
    world.write("file", "");
    world.begin(FLOW);
    let answer = world.ask("cat file");
    assert_eq!(environment(&world.start(&answer, "cat file").expect("a start")), (Vec::new(), Vec::new()));
}

#[test]
fn the_command_of_a_fact_runs_the_script_that_the_run_began_with() {
    let world = World::new(Mode::Enforce);
    let flow = r#"{"id":"fix","initial":"a","facts":{"tests":{"command":"npm test"},"lint":{"command":"make lint"},
        "types":{"command":"mypy src"}},"states":{"a":{"on":{"END":"z"}},"z":{"type":"final"}}}"#;
    let package = |test: &str| format!(r#"{{"scripts":{{"build":"tsc","test":"{test}"}}}}"#);
    let met = |name: &str| (Some(name.to_owned()), None);
    let altered = |name: &str| (None, Some(name.to_owned()));
    world.write("package.json", &package("jest"));
    world.begin(flow);
    assert_eq!(world.fact("npm test"), met("tests"));
    world.write("package.json", &package("true"));
    assert_eq!(world.fact("npm test"), altered("tests"), "another script");
    world.write("package.json", &package("jest").replace("tsc", "tsc -b"));
    assert_eq!(world.fact("npm test"), met("tests"), "another script than this one may change");
    // There was none when the run began.
    assert_eq!(world.fact("make lint"), met("lint"));
    world.write("Makefile", "lint:\n");
    assert_eq!(world.fact("make lint"), altered("lint"));
    assert_eq!(world.fact("mypy src"), met("types"), "what it runs cannot be told");
    // A person who starts the run again says that this is the script now.
    world.begin(flow);
    assert_eq!(world.fact("make lint"), met("lint"));
}
