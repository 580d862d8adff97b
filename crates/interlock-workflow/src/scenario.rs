//! Scenarios: what a workflow is to do, as data beside it, for a project's own tests.
//!
//! ```toml
//! [[scenario]]
//! name  = "nothing is written before the cause is known"
//! steps = [
//!     { tool = "Write", expect = "INTERLOCK-WF-001" },
//!     { event = "UNDERSTOOD", data = { cause = "off by one" }, expect = "reproducing" },
//!     { tool = "Write", expect = "pass" },
//!     { observe = "tests", exit_code = 1 },
//!     { event = "REPRODUCED", expect = "fixing" },
//! ]
//! ```

use std::collections::BTreeSet;

use interlock_core::json::Json;
use interlock_core::workflow::{Context, LineJudge, Workflow};
use interlock_core::{Code, display};

use super::analysis::PlacePart;
use super::rehearsal::{Done, Rehearsal};
use super::suggest::nearest;

/// The most scenarios of one file, and the most steps of one scenario.
pub const SCENARIOS_MAX: usize = 1_000;
/// See [`SCENARIOS_MAX`].
pub const STEPS_MAX: usize = 1_000;

/// A scenario.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Scenario {
    /// What it shows.
    pub name: String,
    /// In order.
    pub steps: Vec<ScenarioStep>,
}

/// A step and what is expected of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ScenarioStep {
    action: Action,
    expect: Expect,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Action {
    Event(String, Context),
    Tool(String),
    Command(String, Option<i64>),
    Observe(String, i64),
    Decide(bool),
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Expect {
    /// No refusal.
    Fine,
    State(String),
    Asks,
    /// Any refusal.
    Refused,
    Code(Code),
}

/// What is wrong with a file of scenarios.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ScenarioError {
    /// Where.
    pub place: Vec<PlacePart>,
    /// What.
    pub message: String,
}

/// A step that did something else.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    /// Which scenario, from 0.
    pub scenario: usize,
    /// Which step, from 0.
    pub step: usize,
    /// What was done.
    pub action: String,
    /// What was expected.
    pub expected: String,
    /// What happened.
    pub got: String,
}

/// What a set of scenarios showed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Report {
    /// How many ran.
    pub scenarios: usize,
    /// Each scenario's first step that did something else.
    pub failures: Vec<Failure>,
    /// States that were entered.
    pub states: BTreeSet<String>,
    /// Ways that were taken: state, event, state.
    pub ways: BTreeSet<(String, String, String)>,
}

/// Reads the scenarios of a document.
pub fn scenarios(document: &Json, workflow: &Workflow) -> Result<Vec<Scenario>, Vec<ScenarioError>> {
    let mut reader = Reader { workflow, errors: Vec::new() };
    let found = reader.document(document);
    if reader.errors.is_empty() { Ok(found) } else { Err(reader.errors) }
}

/// Runs scenarios, each from the beginning.
pub fn rehearse(workflow: &Workflow, scenarios: &[Scenario], judge: &dyn LineJudge) -> Report {
    let mut report = Report { scenarios: scenarios.len(), ..Report::default() };
    for (place, scenario) in scenarios.iter().enumerate() {
        let mut rehearsal = Rehearsal::new(workflow, judge);
        for (number, step) in scenario.steps.iter().enumerate() {
            if let Some(got) = step.run(&mut rehearsal) {
                report.failures.push(Failure {
                    scenario: place,
                    step: number,
                    action: step.action.to_string(),
                    expected: step.expect.to_string(),
                    got,
                });
                break;
            }
        }
        report.states.extend(rehearsal.states().iter().cloned());
        report.ways.extend(rehearsal.visited().iter().cloned());
    }
    report
}

impl Report {
    /// States of the workflow that no scenario entered.
    pub fn states_missed<'w>(&self, workflow: &'w Workflow) -> Vec<&'w str> {
        let names = workflow.states().map(|(_, state)| state.name.as_str());
        names.filter(|name| !self.states.contains(*name)).collect()
    }

    /// Ways of the workflow that no scenario took: state, event, state.
    pub fn ways_missed(&self, workflow: &Workflow) -> Vec<(String, String, String)> {
        all_ways(workflow).into_iter().filter(|way| !self.ways.contains(way)).collect()
    }
}

/// Every way of a workflow: state, event, state.
pub fn all_ways(workflow: &Workflow) -> BTreeSet<(String, String, String)> {
    let name = |id| workflow.state(id).map(|state| state.name.clone()).unwrap_or_default();
    let mut ways = BTreeSet::new();
    for (_, state) in workflow.states() {
        for (event, rows) in &state.on {
            ways.extend(rows.iter().map(|row| (state.name.clone(), event.clone(), name(row.target))));
        }
    }
    ways
}

impl ScenarioStep {
    /// Takes the step; what happened instead of what is expected, if something else did.
    fn run(&self, rehearsal: &mut Rehearsal<'_>) -> Option<String> {
        let done = match &self.action {
            Action::Event(event, data) => rehearsal.event(event, data),
            Action::Tool(tool) => rehearsal.tool(tool),
            Action::Command(line, exit_code) => rehearsal.command(line, *exit_code),
            Action::Observe(fact, exit_code) => rehearsal.observe(fact, *exit_code),
            Action::Decide(agreed) => rehearsal.decide(*agreed),
        };
        let met = match (&self.expect, &done) {
            (Expect::Fine, Ok(_)) | (Expect::Refused, Err(_)) | (Expect::Asks, Ok(Done::Asks { .. })) => true,
            (Expect::State(state), Ok(Done::Moved(to))) => state == to,
            (Expect::Code(code), Err(refusal)) => *code == refusal.code,
            (Expect::Fine | Expect::State(_) | Expect::Asks, _) => false,
            (Expect::Refused | Expect::Code(_), Ok(_)) => false,
        };
        if met {
            return None;
        }
        Some(match done {
            Ok(Done::Moved(to)) => format!("`{to}`"),
            Ok(Done::Asks { target, .. }) => format!("asks a person about `{target}`"),
            Ok(Done::Denied) => "denied".to_owned(),
            Ok(Done::Passed) => "pass".to_owned(),
            Ok(Done::Observed) => "observed".to_owned(),
            Err(refusal) => format!("{}: {}", refusal.code, refusal.message),
        })
    }
}

impl core::fmt::Display for Action {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            Action::Event(event, _) => write!(f, "event {}", display(event)),
            Action::Tool(tool) => write!(f, "tool {}", display(tool)),
            Action::Command(line, _) => write!(f, "command {}", display(line)),
            Action::Observe(fact, code) => write!(f, "observe {} {code}", display(fact)),
            Action::Decide(true) => f.write_str("approve"),
            Action::Decide(false) => f.write_str("deny"),
        }
    }
}

impl core::fmt::Display for Expect {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            Expect::Fine => f.write_str("pass"),
            Expect::State(state) => write!(f, "`{}`", display(state)),
            Expect::Asks => f.write_str("asks a person"),
            Expect::Refused => f.write_str("refuse"),
            Expect::Code(code) => write!(f, "{code}"),
        }
    }
}

fn whole(value: &Json) -> Option<i64> {
    let Json::Number(number) = value else { return None };
    number.number().to_i128().and_then(|code| i64::try_from(code).ok())
}

struct Reader<'a> {
    workflow: &'a Workflow,
    errors: Vec<ScenarioError>,
}

type Members = std::collections::BTreeMap<String, Json>;

impl Reader<'_> {
    fn error<T>(&mut self, place: &[PlacePart], message: impl Into<String>) -> Option<T> {
        self.errors.push(ScenarioError { place: place.to_vec(), message: message.into() });
        None
    }

    fn document(&mut self, document: &Json) -> Vec<Scenario> {
        let Some(members) = document.as_object() else {
            self.error::<()>(&[], "expected an object with `scenario`, a list");
            return Vec::new();
        };
        self.known(members, &["scenario"], &[]);
        let place = [PlacePart::Key("scenario".to_owned())];
        let Some(Json::Array(items)) = members.get("scenario") else {
            self.error::<()>(&place, "`scenario` is missing or no list");
            return Vec::new();
        };
        if items.len() > SCENARIOS_MAX {
            self.error::<()>(&place, format!("more than {SCENARIOS_MAX} scenarios"));
            return Vec::new();
        }
        let each = items.iter().enumerate();
        each.filter_map(|(number, item)| {
            let place = [place.as_slice(), &[PlacePart::Item(number)]].concat();
            self.scenario(item, &place)
        })
        .collect()
    }

    fn scenario(&mut self, item: &Json, place: &[PlacePart]) -> Option<Scenario> {
        let Some(members) = item.as_object() else { return self.error(place, "a scenario is an object") };
        self.known(members, &["name", "steps"], place);
        let at = |key: &str| [place, &[PlacePart::Key(key.to_owned())]].concat();
        let Some(name) = members.get("name").and_then(Json::as_str) else {
            return self.error(&at("name"), "a scenario needs a `name`");
        };
        let Some(Json::Array(items)) = members.get("steps") else {
            return self.error(&at("steps"), "a scenario needs `steps`, a list");
        };
        if items.is_empty() || items.len() > STEPS_MAX {
            return self.error(&at("steps"), format!("a scenario has 1 to {STEPS_MAX} steps"));
        }
        let mut steps = Vec::new();
        for (number, item) in items.iter().enumerate() {
            let place = [at("steps").as_slice(), &[PlacePart::Item(number)]].concat();
            steps.extend(self.step(item, &place));
        }
        Some(Scenario { name: name.to_owned(), steps })
    }

    fn step(&mut self, item: &Json, place: &[PlacePart]) -> Option<ScenarioStep> {
        let Some(members) = item.as_object() else { return self.error(place, "a step is an object") };
        let kinds = ["event", "tool", "command", "observe", "approve", "deny"];
        let named: Vec<&str> = kinds.into_iter().filter(|kind| members.contains_key(*kind)).collect();
        let [kind] = named.as_slice() else {
            return self.error(place, "a step has one of `event`, `tool`, `command`, `observe`, `approve`, `deny`");
        };
        let allowed: &[&str] = match *kind {
            "event" => &["event", "data", "expect"],
            "command" => &["command", "exit_code", "expect"],
            "observe" => &["observe", "exit_code"],
            "approve" | "deny" => &["approve", "deny", "expect"],
            _ => &["tool", "expect"],
        };
        self.known(members, allowed, place);
        let action = self.action(kind, members, place)?;
        let expect = self.expect(kind, members, place)?;
        Some(ScenarioStep { action, expect })
    }

    fn action(&mut self, kind: &str, members: &Members, place: &[PlacePart]) -> Option<Action> {
        let at = |key: &str| [place, &[PlacePart::Key(key.to_owned())]].concat();
        let exit_code = match members.get("exit_code") {
            None => None,
            Some(value) => match whole(value) {
                Some(code) => Some(code),
                None => return self.error(&at("exit_code"), "`exit_code` is a whole number"),
            },
        };
        let value = members.get(kind)?;
        if matches!(kind, "approve" | "deny") {
            if *value != Json::Bool(true) {
                return self.error(&at(kind), format!("write `{kind}: true`"));
            }
            return Some(Action::Decide(kind == "approve"));
        }
        let Some(text) = value.as_str() else { return self.error(&at(kind), format!("`{kind}` is a string")) };
        let text = text.to_owned();
        match (kind, exit_code) {
            ("event", _) => match members.get("data") {
                None => Some(Action::Event(text, Context::default())),
                Some(Json::Object(data)) => Some(Action::Event(text, data.clone().into())),
                Some(_) => self.error(&at("data"), "`data` is an object"),
            },
            ("command", exit_code) => Some(Action::Command(text, exit_code)),
            ("observe", Some(exit_code)) => Some(Action::Observe(text, exit_code)),
            ("observe", None) => self.error(place, "`observe` needs an `exit_code`"),
            (_, _) => Some(Action::Tool(text)),
        }
    }

    fn expect(&mut self, kind: &str, members: &Members, place: &[PlacePart]) -> Option<Expect> {
        let place = [place, &[PlacePart::Key("expect".to_owned())]].concat();
        let Some(value) = members.get("expect") else { return Some(Expect::Fine) };
        let Some(text) = value.as_str() else { return self.error(&place, "`expect` is a string") };
        let code = Code::parse(text).or_else(|| Code::parse(&format!("INTERLOCK-{text}")));
        let moves = matches!(kind, "event" | "approve");
        match (text, code) {
            (_, Some(code)) => Some(Expect::Code(code)),
            // A state with such a name is meant before anything else.
            (name, None) if moves && self.workflow.find(name).is_some() => Some(Expect::State(name.to_owned())),
            ("asks", None) if kind == "event" => Some(Expect::Asks),
            ("pass", None) => Some(Expect::Fine),
            ("refuse", None) => Some(Expect::Refused),
            (name, None) => {
                let states: Vec<&str> = self.workflow.states().map(|(_, state)| state.name.as_str()).collect();
                let near = nearest(name, &states).filter(|_| moves);
                let hint = near.map_or_else(String::new, |near| format!("; did you mean `{near}`?"));
                let message = if moves {
                    format!("expected a state, `asks`, `refuse` or a code{hint}")
                } else {
                    "expected `pass`, `refuse` or a code".to_owned()
                };
                self.error(&place, message)
            }
        }
    }

    fn known(&mut self, members: &Members, allowed: &[&str], place: &[PlacePart]) {
        for key in members.keys().filter(|key| !allowed.contains(&key.as_str())) {
            let known = allowed.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ");
            let place = [place, &[PlacePart::Key(key.clone())]].concat();
            self.error::<()>(&place, format!("unknown field `{}`; known are {known}", display(key)));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Format, Limits, document, load};
    use interlock_core::call::Effect;

    struct Table;

    impl LineJudge for Table {
        fn judge(&self, line: &str, listed: Option<&[String]>, _: bool) -> (Effect, Option<bool>) {
            let effect = if line.starts_with("cat") { Effect::ReadOnly } else { Effect::Unknown };
            (effect, listed.map(|listed| listed.iter().any(|known| known == line)))
        }
    }

    fn workflow() -> Workflow {
        let text = r#"{"id": "w", "initial": "plan", "after_final": "closed", "max_transitions": 9,
            "facts": {"tests": {"command": "make test"}},
            "guards": {"pass": {"field": "observed.tests", "op": "eq", "value": 0}},
            "states": {
                "plan": {"allowed_tools": ["Read", "Bash"], "on": {"GO": {"target": "work", "requires_approval": true}}},
                "work": {"allowed_tools": ["Edit", "Bash"], "allowed_commands": ["make test"], "max_iterations": 3,
                         "on": {"END": {"target": "done", "guard": "pass"}}},
                "done": {"type": "final"}}}"#;
        load(text, Format::Json, &Limits::MAX).expect("it loads").workflow
    }

    fn run(steps: &str) -> Report {
        let text = format!("[[scenario]]\nname = \"one\"\nsteps = [{steps}]\n");
        let document = document(&text, Format::Toml).expect("TOML");
        let workflow = workflow();
        let scenarios = scenarios(&document, &workflow).unwrap_or_else(|errors| panic!("{steps}: {errors:?}"));
        rehearse(&workflow, &scenarios, &Table)
    }

    #[test]
    fn a_whole_run_is_as_the_machine_makes_it() {
        let report = run(
            r#"{tool = "Edit", expect = "WF-001"}, {command = "make test", expect = "SHELL-001"}, {command = "cat x"},
               {event = "GO", expect = "asks"}, {tool = "Read"}, {command = "make x", expect = "WF-006"},
               {deny = true}, {event = "GO", expect = "asks"}, {approve = true, expect = "work"},
               {event = "END", expect = "WF-003"}, {command = "make test", exit_code = 0}, {tool = "Edit"},
               {event = "END", expect = "refuse"}, {observe = "tests", exit_code = 0}, {tool = "Edit", expect = "WF-004"},
               {event = "END", expect = "done"}, {tool = "Edit", expect = "WF-001"}"#,
        );
        assert_eq!(report.failures, []);
        assert!(report.states_missed(&workflow()).is_empty() && report.ways_missed(&workflow()).is_empty());
    }

    #[test]
    fn what_happens_instead_is_told() {
        let report = run(r#"{tool = "Read"}, {event = "GO", expect = "work"}, {tool = "Read"}"#);
        let failure = report.failures.first().expect("it fails");
        assert_eq!((failure.step, failure.got.as_str()), (1, "asks a person about `work`"));
        assert_eq!(report.states_missed(&workflow()), ["done", "work"]);
    }

    #[test]
    fn a_misspelt_file_is_an_error_with_its_place() {
        let cases = [
            (r#"{event = "GO", expect = "wrk"}"#, "expected a state, `asks`, `refuse` or a code; did you mean `work`?"),
            (r#"{tool = "Read", expect = "work"}"#, "expected `pass`, `refuse` or a code"),
            (r#"{tool = "Read", evnt = "GO"}"#, "unknown field `evnt`; known are `tool`, `expect`"),
            (r#"{observe = "tests"}"#, "`observe` needs an `exit_code`"),
            (r#"{tool = "Read", event = "GO"}"#, "a step has one of"),
            (r#"{approve = false}"#, "write `approve: true`"),
        ];
        for (step, message) in cases {
            let text = format!("[[scenario]]\nname = \"one\"\nsteps = [{step}]\n");
            let read = scenarios(&document(&text, Format::Toml).expect("TOML"), &workflow());
            let errors = read.expect_err(step);
            assert!(errors.first().is_some_and(|error| error.message.starts_with(message)), "{step}: {errors:?}");
        }
    }
}
