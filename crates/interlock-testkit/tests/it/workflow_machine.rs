//! The machine against a slow and obvious model of it, on random workflows and random schedules of calls.
//!
//! The model knows nothing of the machine: it reads the workflow it wrote itself, evaluates guards on values of its
//! own, and knows of facts by the times at which calls began and ended.

use std::collections::{BTreeMap, BTreeSet};

use interlock_core::call::{Effect, Family};
use interlock_core::json::{Json, Limits as JsonLimits, parse, quote};
use interlock_core::workflow::{
    CallAsked, CallBegun, CallEnded, Context, Ended, LEFT_CALLS_MAX, OPEN_CALLS_MAX, OpenCall, Parked, Position, Run,
    Step, TransitionAsked, Workflow, begin_call, check_call, end_call, end_turn, move_to, park, resolve_parked,
    transition,
};
use interlock_core::{Code, Digest};
use interlock_testkit::generate::Random;
use interlock_workflow::{Format, Limits, load};

/// A value of the model. Numbers are a text and what it is worth, in thousandths.
#[derive(Debug, Clone, PartialEq)]
enum Value {
    Null,
    Bool(bool),
    Number(&'static str, i64),
    Text(String),
    Array(Vec<Value>),
    Object(BTreeMap<String, Value>),
}

type Members = BTreeMap<String, Value>;

const NUMBERS: [(&str, i64); 9] = [
    ("0", 0),
    ("-0", 0),
    ("1", 1_000),
    ("1.0", 1_000),
    ("10e-1", 1_000),
    ("2", 2_000),
    ("-1", -1_000),
    ("0.5", 500),
    ("3", 3_000),
];

impl Value {
    fn text(&self) -> String {
        match self {
            Value::Null => "null".to_owned(),
            Value::Bool(it) => it.to_string(),
            Value::Number(literal, _) => (*literal).to_owned(),
            Value::Text(text) => quote(text),
            Value::Array(items) => format!("[{}]", items.iter().map(Value::text).collect::<Vec<_>>().join(",")),
            Value::Object(members) => object(members),
        }
    }

    fn is(&self, other: &Value) -> bool {
        // The one character that the texts here write in two ways.
        let composed = |text: &str| text.replace("e\u{301}", "\u{e9}");
        match (self, other) {
            (Value::Number(_, left), Value::Number(_, right)) => left == right,
            (Value::Text(left), Value::Text(right)) => composed(left) == composed(right),
            (Value::Array(left), Value::Array(right)) => {
                left.len() == right.len() && left.iter().zip(right).all(|(left, right)| left.is(right))
            }
            (left, right) => left == right,
        }
    }

    fn holds(&self, op: &str, value: &Value) -> bool {
        let numbers = match (self, value) {
            (Value::Number(_, left), Value::Number(_, right)) => Some((*left, *right)),
            _ => None,
        };
        match op {
            "eq" => self.is(value),
            "neq" => !self.is(value),
            "gt" => numbers.is_some_and(|(left, right)| left > right),
            "gte" => numbers.is_some_and(|(left, right)| left >= right),
            "lt" => numbers.is_some_and(|(left, right)| left < right),
            "lte" => numbers.is_some_and(|(left, right)| left <= right),
            "in" => matches!(value, Value::Array(items) if items.iter().any(|item| item.is(self))),
            "contains" => match (self, value) {
                (Value::Array(items), value) => items.iter().any(|item| item.is(value)),
                (Value::Text(text), Value::Text(part)) => {
                    text.replace("e\u{301}", "\u{e9}").contains(&part.replace("e\u{301}", "\u{e9}"))
                }
                _ => false,
            },
            other => panic!("no operator: {other}"),
        }
    }
}

fn object(members: &Members) -> String {
    let members: Vec<String> = members.iter().map(|(key, value)| format!("{}:{}", quote(key), value.text())).collect();
    format!("{{{}}}", members.join(","))
}

fn context(members: &Members) -> Context {
    let text = object(members);
    match Json::of(parse(&text, &JsonLimits::STATE).expect("JSON").root()) {
        Json::Object(members) => Context::from(members),
        other => panic!("no object: {other:?}"),
    }
}

#[derive(Debug, Clone)]
struct Guard {
    field: &'static str,
    op: &'static str,
    value: Value,
}

impl Guard {
    fn text(&self) -> String {
        let head = format!(r#""field":"{}","op":"{}""#, self.field, self.op);
        if self.op.ends_with("exists") {
            return format!("{{{head}}}");
        }
        format!(r#"{{{head},"value":{}}}"#, self.value.text())
    }

    fn holds(&self, all: &Members) -> bool {
        let mut found = Some(&Value::Object(all.clone())).cloned();
        for key in self.field.split('.') {
            found = match found {
                Some(Value::Object(members)) => members.get(key).cloned(),
                _ => None,
            };
        }
        let found = found.filter(|value| *value != Value::Null);
        match (self.op, found) {
            ("exists", found) => found.is_some(),
            ("not_exists", found) => found.is_none(),
            (_, None) => false,
            (op, Some(found)) => found.holds(op, &self.value),
        }
    }
}

#[derive(Debug, Clone)]
struct Row {
    target: String,
    guards: Vec<usize>,
    asks: bool,
}

#[derive(Debug, Clone, Default)]
struct Phase {
    is_final: bool,
    asks: bool,
    on: BTreeMap<&'static str, Vec<Row>>,
    allowed: Option<Vec<&'static str>>,
    disallowed: Vec<&'static str>,
    listed_commands: bool,
    max_iterations: Option<u32>,
    max_edit_lines: Option<u32>,
    max_files: Option<u32>,
}

#[derive(Debug, Clone)]
struct Machine {
    phases: BTreeMap<String, Phase>,
    guards: Vec<Guard>,
    context: Members,
    closed: bool,
    max_transitions: u32,
}

const EVENTS: [&str; 3] = ["E0", "E1", "E2"];
const FIELDS: [&str; 4] = ["a", "b", "c.d", "missing"];
const OBSERVED: [&str; 5] = [
    "observed.tests",
    "observed.lint",
    "observed.last_command.exit_code",
    "observed.tools.Bash.count",
    "observed.files_changed",
];
const OPS: [&str; 10] = ["eq", "neq", "gt", "gte", "lt", "lte", "in", "contains", "exists", "not_exists"];
const TOOLS: [&str; 7] = ["Read", "Edit", "Write", "Bash", "mcp__git__log", "mcp__git__*", "*"];
const FACTS: [(&str, &str); 2] = [("tests", "make test"), ("lint", "make lint")];

fn value(random: &mut Random, depth: usize) -> Value {
    match random.below(if depth == 0 { 4 } else { 6 }) {
        0 => Value::Null,
        1 => Value::Bool(random.one_in(2)),
        2 => {
            let (literal, worth) = *random.pick(&NUMBERS);
            Value::Number(literal, worth)
        }
        3 => Value::Text((*random.pick(&["", "a", "ab", "\u{e9}", "e\u{301}"])).to_owned()),
        4 => Value::Array((0..random.below(3)).map(|_| value(random, depth - 1)).collect()),
        _ => Value::Object(
            (0..random.below(3)).map(|at| (["d", "x"][at].to_owned(), value(random, depth - 1))).collect(),
        ),
    }
}

/// What a guard may be compared with.
fn scalar(random: &mut Random) -> Value {
    match value(random, 0) {
        Value::Null => Value::Number("1", 1_000),
        other => other,
    }
}

fn data(random: &mut Random) -> Members {
    (0..random.below(3)).map(|_| ((*random.pick(&["a", "b", "c"])).to_owned(), value(random, 2))).collect()
}

impl Machine {
    fn random(random: &mut Random) -> Machine {
        let count = 2 + random.below(4);
        let names: Vec<String> = (0..count).map(|at| format!("s{at}")).chain(["end".to_owned()]).collect();
        let guards = (0..6)
            .map(|_| {
                let field = if random.one_in(3) { *random.pick(&OBSERVED) } else { *random.pick(&FIELDS) };
                let op = *random.pick(&OPS);
                let value = match op {
                    "in" => Value::Array((0..1 + random.below(3)).map(|_| value(random, 0)).collect()),
                    "gt" | "gte" | "lt" | "lte" => {
                        let (literal, worth) = *random.pick(&NUMBERS);
                        Value::Number(literal, worth)
                    }
                    "contains" => scalar(random),
                    _ if random.one_in(4) => Value::Array((0..1 + random.below(2)).map(|_| scalar(random)).collect()),
                    _ => scalar(random),
                };
                Guard { field, op, value }
            })
            .collect();
        let mut phases = BTreeMap::new();
        for (at, name) in names.iter().enumerate() {
            let asks = at > 0 && random.one_in(6);
            if name == "end" {
                phases.insert(name.clone(), Phase { is_final: true, asks, ..Phase::default() });
                continue;
            }
            let mut on = BTreeMap::new();
            for event in EVENTS {
                let mut rows: Vec<Row> = (0..random.below(3))
                    .map(|_| Row {
                        target: random.pick(&names).clone(),
                        guards: (0..random.below(3))
                            .map(|_| random.below(6))
                            .collect::<BTreeSet<_>>()
                            .into_iter()
                            .collect(),
                        asks: random.one_in(5),
                    })
                    .collect();
                if event == "E0" {
                    // So that every state is reached, and reaches the end.
                    let guards = if random.one_in(2) { vec![random.below(6)] } else { Vec::new() };
                    rows.push(Row { target: names[at + 1].clone(), guards, asks: false });
                }
                if !rows.is_empty() {
                    on.insert(event, rows);
                }
            }
            let list = |random: &mut Random| (0..random.below(4)).map(|_| *random.pick(&TOOLS)).collect::<Vec<_>>();
            let limit =
                |random: &mut Random| random.one_in(2).then(|| 1 + u32::try_from(random.below(4)).expect("small"));
            phases.insert(
                name.clone(),
                Phase {
                    is_final: false,
                    asks,
                    on,
                    allowed: (!random.one_in(3)).then(|| list(random)),
                    disallowed: if random.one_in(3) { list(random) } else { Vec::new() },
                    listed_commands: random.one_in(3),
                    max_iterations: limit(random),
                    max_edit_lines: limit(random),
                    max_files: limit(random),
                },
            );
        }
        Machine {
            phases,
            guards,
            context: data(random),
            closed: random.one_in(2),
            max_transitions: 1 + u32::try_from(random.below(8)).expect("small"),
        }
    }

    fn text(&self) -> String {
        let strings = |list: &[&str]| format!("[{}]", list.iter().map(|it| quote(it)).collect::<Vec<_>>().join(","));
        let row = |row: &Row| {
            let guards: Vec<String> = row.guards.iter().map(|at| format!("\"g{at}\"")).collect();
            let guards = if guards.is_empty() { String::new() } else { format!(r#","guards":[{}]"#, guards.join(",")) };
            let asks = if row.asks { r#","requires_approval":true"# } else { "" };
            format!(r#"{{"target":"{}"{guards}{asks}}}"#, row.target)
        };
        let phase = |phase: &Phase| {
            let mut parts = Vec::new();
            if phase.asks {
                parts.push(r#""requires_approval":true"#.to_owned());
            }
            if phase.is_final {
                parts.push(r#""type":"final""#.to_owned());
                return format!("{{{}}}", parts.join(","));
            }
            let on = phase
                .on
                .iter()
                .map(|(event, rows)| format!(r#""{event}":[{}]"#, rows.iter().map(row).collect::<Vec<_>>().join(",")));
            parts.push(format!(r#""on":{{{}}}"#, on.collect::<Vec<_>>().join(",")));
            parts.extend(phase.allowed.as_ref().map(|list| format!(r#""allowed_tools":{}"#, strings(list))));
            if !phase.disallowed.is_empty() {
                parts.push(format!(r#""disallowed_tools":{}"#, strings(&phase.disallowed)));
            }
            if phase.listed_commands {
                parts.push(r#""allowed_commands":["make *"]"#.to_owned());
            }
            let limits = [
                ("max_iterations", phase.max_iterations),
                ("max_edit_lines", phase.max_edit_lines),
                ("max_files_per_state", phase.max_files),
            ];
            parts.extend(limits.into_iter().filter_map(|(name, max)| Some(format!(r#""{name}":{}"#, max?))));
            format!("{{{}}}", parts.join(","))
        };
        let phases: Vec<String> = self.phases.iter().map(|(name, it)| format!(r#""{name}":{}"#, phase(it))).collect();
        let guards: Vec<String> =
            self.guards.iter().enumerate().map(|(at, guard)| format!(r#""g{at}":{}"#, guard.text())).collect();
        let facts = FACTS.map(|(name, command)| format!(r#""{name}":{{"command":"{command}"}}"#)).join(",");
        format!(
            r#"{{"id":"random","initial":"s0","context":{},"after_final":"{}","max_transitions":{},"facts":{{{facts}}},"guards":{{{}}},"states":{{{}}}}}"#,
            object(&self.context),
            if self.closed { "closed" } else { "open" },
            self.max_transitions,
            guards.join(","),
            phases.join(","),
        )
    }
}

/// A call of the model: when it began and ended, and what of it counts.
#[derive(Debug, Clone)]
struct Call {
    began: u64,
    ended: Option<u64>,
    changes: bool,
    fact: Option<&'static str>,
    tool: &'static str,
    /// Whether it was told to have gone well, and with which code.
    told: Option<(bool, Option<i64>)>,
    file: Option<&'static str>,
}

/// Where the model stands.
#[derive(Debug, Clone)]
struct Model<'m> {
    machine: &'m Machine,
    state: String,
    context: Members,
    iterations: u32,
    transitions: u32,
    files: BTreeSet<usize>,
    parked: Option<(String, &'static str, Members, u64)>,
    revision: u64,
    calls: Vec<Call>,
    tick: u64,
}

fn exit(code: Option<i64>) -> Value {
    let known = [0, 1, 2].map(|at: i64| (at, ["0", "1", "2"][usize::try_from(at).expect("small")]));
    let found = known.iter().find(|(at, _)| Some(*at) == code);
    found.map_or(Value::Null, |(worth, literal)| Value::Number(literal, worth * 1_000))
}

impl<'m> Model<'m> {
    fn new(machine: &'m Machine) -> Model<'m> {
        Model {
            machine,
            state: "s0".to_owned(),
            context: machine.context.clone(),
            iterations: 0,
            transitions: 0,
            files: BTreeSet::new(),
            parked: None,
            revision: 0,
            calls: Vec::new(),
            tick: 0,
        }
    }

    fn phase(&self) -> &'m Phase {
        &self.machine.phases[&self.state]
    }

    /// The exit code of the last run of a declared command with nothing changed since it began.
    fn fact(&self, name: &str) -> Option<Option<i64>> {
        let ran = self.calls.iter().filter(|call| call.fact == Some(name) && call.ended.is_some());
        let undisturbed = ran.filter(|ran| {
            !self.calls.iter().any(|call| call.changes && call.ended.is_none_or(|ended| ended > ran.began))
        });
        let told = undisturbed.filter_map(|ran| Some((ran.ended, ran.told?)));
        told.max_by_key(|(ended, _)| *ended).map(|(_, (ok, code))| code.or(ok.then_some(0)))
    }

    fn observed(&self) -> Value {
        let mut members = Members::new();
        for (name, _) in FACTS {
            members.extend(self.fact(name).map(|code| (name.to_owned(), exit(code))));
        }
        let mut told: Vec<&Call> =
            self.calls.iter().filter(|call| call.told.is_some() && call.ended.is_some()).collect();
        told.sort_by_key(|call| call.ended);
        if let Some((ok, code)) = told.iter().rev().find(|call| call.tool == "Bash").and_then(|call| call.told) {
            let code = exit(code.or(ok.then_some(0)));
            members.insert("last_command".to_owned(), Value::Object([("exit_code".to_owned(), code)].into()));
        }
        let mut tools = Members::new();
        for tool in told.iter().map(|call| call.tool).collect::<BTreeSet<_>>() {
            let count = i64::try_from(told.iter().filter(|call| call.tool == tool).count()).expect("small");
            let count = Value::Number("", count * 1_000);
            tools.insert(tool.to_owned(), Value::Object([("count".to_owned(), count)].into()));
        }
        members.insert("tools".to_owned(), Value::Object(tools));
        let mut files: Vec<&str> = Vec::new();
        for file in told.iter().filter(|call| call.told.is_some_and(|(ok, _)| ok)).filter_map(|call| call.file) {
            if !files.contains(&file) {
                files.push(file);
            }
        }
        let files = files.into_iter().map(|file| Value::Text(file.to_owned())).collect();
        members.insert("files_changed".to_owned(), Value::Array(files));
        Value::Object(members)
    }

    /// Where an event leads with this data, and whether a person is asked.
    fn leads_to(&self, event: &str, data: &Members) -> Result<(String, bool), Code> {
        let phase = self.phase();
        let rows = phase.on.get(event).ok_or(Code::WorkflowEvent)?;
        if self.transitions >= self.machine.max_transitions {
            return Err(Code::WorkflowLimit);
        }
        if data.contains_key("observed") {
            return Err(Code::WorkflowData);
        }
        let mut all = self.context.clone();
        all.extend(data.clone());
        all.insert("observed".to_owned(), self.observed());
        let holds = |row: &&Row| row.guards.iter().all(|at| self.machine.guards[*at].holds(&all));
        let row = rows.iter().find(holds).ok_or(Code::WorkflowGuard)?;
        Ok((row.target.clone(), row.asks || self.machine.phases[&row.target].asks))
    }

    fn transition(&self, event: &str, data: &Members, expected: Option<u64>) -> Result<(String, bool), Code> {
        if expected.is_some_and(|expected| expected != self.revision) {
            return Err(Code::WorkflowRevision);
        }
        if self.phase().is_final {
            return Err(Code::WorkflowEvent);
        }
        if self.parked.as_ref().is_some_and(|(_, _, _, until)| self.tick < *until) {
            return Err(Code::WorkflowParked);
        }
        self.leads_to(event, data)
    }

    fn enter(&mut self, target: &str, data: &Members) {
        self.context.extend(data.clone());
        self.state = target.to_owned();
        self.iterations = 0;
        self.files.clear();
        self.transitions += 1;
        self.parked = None;
        self.revision += 1;
    }

    /// Whether a call passes, by the words of the design.
    fn judge(&self, asked: &ModelCall) -> Result<(), Code> {
        let phase = self.phase();
        if phase.is_final {
            return if self.machine.closed { Err(Code::WorkflowTool) } else { Ok(()) };
        }
        let reads = asked.tool == "Read" || asked.low || asked.shell == Some(Effect::ReadOnly);
        if self.parked.as_ref().is_some_and(|(_, _, _, until)| self.tick < *until) && !reads {
            return Err(Code::WorkflowParked);
        }
        if !phase.lets(asked.tool) {
            return Err(Code::WorkflowTool);
        }
        if phase.max_iterations.is_some_and(|max| self.iterations + 1 > max) {
            return Err(Code::WorkflowIterations);
        }
        let writable = phase.lets("Write") || phase.lets("Edit");
        let shell = match asked.shell {
            None | Some(Effect::ReadOnly) => true,
            Some(_) if phase.listed_commands => asked.covered == Some(true),
            Some(_) => writable,
        };
        if !shell {
            return Err(Code::ShellEffect);
        }
        let lines = phase.max_edit_lines.is_some_and(|max| asked.lines > u64::from(max));
        let mut files = self.files.clone();
        files.extend(asked.files.iter().copied());
        let more = files.len() > self.files.len();
        let files = phase.max_files.is_some_and(|max| more && files.len() > usize::try_from(max).expect("small"));
        if lines || files { Err(Code::WorkflowLimit) } else { Ok(()) }
    }
}

impl Phase {
    fn lets(&self, tool: &str) -> bool {
        let among = |list: &[&str]| {
            list.iter().any(|pattern| match pattern.strip_suffix('*') {
                Some(stem) => tool.starts_with(stem),
                None => tool == *pattern,
            })
        };
        self.allowed.as_ref().is_none_or(|list| among(list)) && !among(&self.disallowed)
    }
}

#[derive(Debug, Clone)]
struct ModelCall {
    tool: &'static str,
    shell: Option<Effect>,
    covered: Option<bool>,
    low: bool,
    lines: u64,
    files: BTreeSet<usize>,
    fact: Option<&'static str>,
}

impl ModelCall {
    fn random(random: &mut Random) -> ModelCall {
        let tool = *random.pick(&["Read", "Edit", "Write", "Bash", "Bash", "mcp__git__log"]);
        let fact = (tool == "Bash" && random.one_in(2)).then(|| random.pick(&FACTS).0);
        let shell = (tool == "Bash").then(|| *random.pick(Effect::ALL));
        let writes = matches!(tool, "Edit" | "Write");
        let files = if writes { (0..1 + random.below(2)).map(|_| random.below(5)).collect() } else { BTreeSet::new() };
        let covered = (tool == "Bash").then(|| random.one_in(2));
        let lines = if writes { u64::try_from(random.below(6)).expect("small") } else { 0 };
        ModelCall { tool, shell, covered, low: random.one_in(10), lines, files, fact }
    }

    fn changes(&self) -> bool {
        let by_shell = self.shell.is_some_and(|effect| !matches!(effect, Effect::ReadOnly | Effect::Network));
        self.fact.is_none() && (by_shell || matches!(self.tool, "Edit" | "Write"))
    }
}

const FILE_NAMES: [&str; 5] = ["f0", "f1", "f2", "f3", "f4"];

/// One world: the real machine and the model beside each other.
struct World<'m> {
    random: Random,
    workflow: Workflow,
    run: Run,
    model: Model<'m>,
    /// Which calls of the model are open, by their place.
    open: Vec<usize>,
    tally: Tally,
}

#[derive(Debug, Default)]
struct Tally {
    moves: usize,
    refusals: BTreeMap<&'static str, usize>,
    passed: usize,
    facts: usize,
    resolved: usize,
}

fn process() -> Digest {
    Digest::of(&["process"])
}

impl World<'_> {
    /// What must hold at all times.
    fn agree(&self) {
        let position = self.run.position.as_ref().expect("a position");
        let model = &self.model;
        assert!(self.workflow.find(&position.state).is_some(), "a state that is not of the definition");
        let theirs = (position.state.as_str(), position.iterations, position.transitions, self.run.revision);
        assert_eq!(theirs, (model.state.as_str(), model.iterations, model.transitions, model.revision));
        // A workflow's own context is in normal form; what agents say is kept as it was said.
        let composed = |text: String| text.replace("e\\u0301", "\\u00e9");
        assert_eq!(composed(position.context.text()), composed(context(&model.context).text()));
        assert_eq!(position.ended.is_some(), model.phase().is_final);
        assert_eq!(position.files.len(), model.files.len());
        assert!(position.context.get("observed").is_none());
        let max = if model.phase().is_final { None } else { model.phase().max_iterations };
        assert!(max.is_none_or(|max| position.iterations <= max), "more calls than {max:?}");
        assert!(position.transitions <= self.workflow.max_transitions());
        for (name, _) in FACTS {
            let theirs = self.run.seen.facts.get(name).map(|seen| seen.exit_code);
            assert_eq!(theirs, model.fact(name), "the fact `{name}`: {:#?}", model.calls);
        }
    }

    fn step(&mut self) {
        self.model.tick += 1;
        match self.random.below(12) {
            0..=4 => self.call(),
            5..=7 => self.end(),
            8..=10 => self.event(),
            _ => self.resolve(),
        }
        self.agree();
    }

    fn call(&mut self) {
        let asked = ModelCall::random(&mut self.random);
        let files: Vec<Digest> = asked.files.iter().map(|file| Digest::of(&[FILE_NAMES[*file]])).collect();
        let question = CallAsked {
            tool: asked.tool,
            family: Family::parse(asked.tool),
            shell: asked.shell,
            covered: asked.covered,
            runner: true,
            low: asked.low,
            edit_lines: asked.lines,
            files: &files,
        };
        let position = self.run.position.clone().expect("a position");
        let passes = check_call(&self.workflow, &position, &question, self.model.tick).map_err(|refusal| refusal.code);
        assert_eq!(passes, self.model.judge(&asked), "{asked:?} in {:?}", self.model.phase());
        if let Err(code) = passes {
            *self.tally.refusals.entry(code.as_str()).or_default() += 1;
            return;
        }
        self.tally.passed += 1;
        let number = self.model.calls.len();
        let open = OpenCall {
            ticket: None,
            gist: None,
            call_id: Some(number.to_string()),
            process: process(),
            subagent: None,
            fingerprint: Digest::of(&["call", &number.to_string()]),
            decision: 1,
            at: self.model.tick,
            changes: asked.changes(),
            left: false,
            foreign: false,
            fact: asked.fact.map(|fact| (fact.to_owned(), 0)),
        };
        begin_call(
            &mut self.run,
            Some(&self.workflow),
            CallBegun { open, files, session: "s".to_owned(), unseen: None },
        );
        let after = self.run.position.as_ref().expect("a position");
        let kept = (&position.state, &position.context, position.transitions, &position.parked, &position.ended);
        assert_eq!(kept, (&after.state, &after.context, after.transitions, &after.parked, &after.ended));
        if !self.model.phase().is_final {
            self.model.iterations += 1;
            self.model.files.extend(asked.files.iter().copied());
        }
        self.open.push(number);
        self.model.calls.push(Call {
            began: self.model.tick,
            ended: None,
            changes: asked.changes(),
            fact: asked.fact,
            tool: asked.tool,
            told: None,
            file: asked.files.first().map(|file| FILE_NAMES[*file]),
        });
    }

    fn end(&mut self) {
        if self.open.is_empty() || self.random.one_in(8) {
            return self.end_what_was_never_judged();
        }
        let at = self.random.below(self.open.len());
        let number = self.open.remove(at);
        let ok = *self.random.pick(&[Some(true), Some(true), Some(false), None]);
        let exit_code = match ok {
            Some(true) => *self.random.pick(&[None, Some(0)]),
            Some(false) => *self.random.pick(&[None, Some(1), Some(2)]),
            None => Some(0),
        };
        let call = &mut self.model.calls[number];
        call.ended = Some(self.model.tick);
        call.told = ok.map(|ok| (ok, exit_code));
        let before = self.run.position.clone();
        let files: Vec<String> = call.file.iter().map(|file| (*file).to_owned()).collect();
        let ended = CallEnded {
            tells_how: true,
            carried: None,
            call_id: Some(&number.to_string()),
            process: process(),
            fingerprint: Digest::of(&["call", &number.to_string()]),
            tool: call.tool,
            is_command: call.tool == "Bash",
            ok,
            exit_code,
            result: None,
            files: &files,
        };
        end_call(&mut self.run, &ended).expect("it was judged");
        assert_eq!(self.run.position, before, "the end of a call moved the run");
        self.tally.facts += usize::from(FACTS.iter().any(|(name, _)| self.model.fact(name).is_some()));
    }

    /// Another call, another process, another input: nothing of the run changes.
    fn end_what_was_never_judged(&mut self) {
        let before = self.run.clone();
        let known = self.open.first().copied();
        let (call_id, told) = match (known, self.random.below(3)) {
            (Some(known), 0) => (known.to_string(), Digest::of(&["another process"])),
            (Some(known), _) => (known.to_string(), process()),
            (None, _) => ("never".to_owned(), process()),
        };
        let ended = CallEnded {
            tells_how: true,
            carried: None,
            call_id: Some(&call_id),
            process: told,
            fingerprint: Digest::of(&["another input"]),
            tool: "Bash",
            is_command: true,
            ok: Some(true),
            exit_code: Some(0),
            result: None,
            files: &[],
        };
        assert!(end_call(&mut self.run, &ended).is_err());
        assert_eq!(self.run, before);
    }

    fn event(&mut self) {
        let event = *self.random.pick(&["E0", "E0", "E1", "E2", "NEVER"]);
        let mut said = data(&mut self.random);
        if self.random.one_in(12) {
            said.insert("observed".to_owned(), Value::Object([("tests".to_owned(), exit(Some(0)))].into()));
        }
        let stale = self.model.revision.wrapping_sub(1 + u64::try_from(self.random.below(2)).expect("small"));
        let expected = *self.random.pick(&[None, None, Some(self.model.revision), Some(stale)]);
        let brought = context(&said);
        let asked = TransitionAsked { event, data: &brought, expected_revision: expected };
        let decided = transition(&self.workflow, &self.run, &asked, self.model.tick);
        let ours = self.model.transition(event, &said, expected);
        let theirs = decided.clone().map_err(|refusal| refusal.code).map(|step| match step {
            Step::Move { target, .. } => (target.to_owned(), false),
            Step::Ask { target, .. } => (target.to_owned(), true),
        });
        assert_eq!(theirs, ours, "`{event}` with {} in `{}`: {:?}", object(&said), self.model.state, decided);
        match decided {
            Err(refusal) => *self.tally.refusals.entry(refusal.code.as_str()).or_default() += 1,
            Ok(Step::Move { target, .. }) => {
                move_to(&mut self.run, &self.workflow, target, &brought);
                self.model.enter(target, &said);
                self.tally.moves += 1;
            }
            Ok(Step::Ask { target, .. }) => {
                let expires_at = self.model.tick + u64::try_from(self.random.below(12)).expect("small");
                let (approval_id, data) = ("appr_1".to_owned(), brought.clone());
                let event_text = event.to_owned();
                park(
                    &mut self.run,
                    Parked { approval_id, expires_at, event: event_text, data, target: target.to_owned() },
                );
                self.model.parked = Some((target.to_owned(), event, said, expires_at));
                self.model.revision += 1;
            }
        }
    }

    fn resolve(&mut self) {
        let before = self.run.clone();
        assert!(resolve_parked(&mut self.run, &self.workflow, "appr_other", true).is_err());
        assert_eq!(self.run, before, "another ticket changes nothing");
        let Some((target, event, said, _)) = self.model.parked.clone() else { return };
        let agreed = self.random.one_in(2);
        let resolved = resolve_parked(&mut self.run, &self.workflow, "appr_1", agreed);
        self.tally.resolved += 1;
        if !agreed {
            assert_eq!(resolved, Ok(()));
            self.model.parked = None;
            self.model.revision += 1;
            return;
        }
        // Decided anew: the same row must still be the one that is taken.
        let now = self.model.leads_to(event, &said).map(|(target, _)| target);
        if now == Ok(target.clone()) {
            assert_eq!(resolved, Ok(()));
            self.model.enter(&target, &said);
        } else {
            assert_eq!(resolved, Err(Code::ApprovalStale));
            assert_eq!(self.run, before, "what cannot be made any more changes nothing");
        }
    }
}

fn seeds() -> u64 {
    std::env::var("INTERLOCK_SEEDS").ok().and_then(|text| text.parse().ok()).unwrap_or(600)
}

#[test]
fn the_machine_does_what_the_model_does_and_no_run_leaves_its_definition() {
    let mut all = Tally::default();
    let mut loaded = 0_u64;
    for seed in 0..seeds() {
        let mut random = Random::new(seed);
        let machine = Machine::random(&mut random);
        let text = machine.text();
        let Ok(found) = load(&text, Format::Json, &Limits::MAX) else { continue };
        loaded += 1;
        let workflow = found.workflow;
        let position = Position::start(&workflow, "run_1".to_owned(), 1, None);
        let run = Run { position: Some(position), ..Run::default() };
        let model = Model::new(&machine);
        let mut world = World { random, workflow, run, model, open: Vec::new(), tally: Tally::default() };
        world.agree();
        let steps = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| (0..120).for_each(|_| world.step())));
        assert!(steps.is_ok(), "SEED {seed}: {text}");
        let Tally { moves, refusals, passed, facts, resolved } = world.tally;
        all.moves += moves;
        all.passed += passed;
        all.facts += facts;
        all.resolved += resolved;
        for (code, count) in refusals {
            *all.refusals.entry(code).or_default() += count;
        }
    }
    // Worlds in which nothing happens prove nothing.
    assert!(loaded * 2 > seeds(), "only {loaded} of the texts are workflows");
    let many = usize::try_from(loaded / 4).expect("small");
    assert!(all.moves > many && all.passed > many && all.facts > many && all.resolved > many / 4, "{all:?}");
    let codes = [1, 2, 3, 4, 5, 6, 9, 10].map(|number| format!("INTERLOCK-WF-{number:03}"));
    for code in codes.iter().map(String::as_str).chain(["INTERLOCK-SHELL-001"]) {
        assert!(all.refusals.contains_key(code), "{code} never came up: {:?}", all.refusals);
    }
}

const FLOW: &str = r#"{"id":"fix","initial":"work","max_transitions":3,
    "facts":{"tests":{"command":"make test"}},
    "states":{"work":{"on":{"AGAIN":"work","DONE":"done"},"max_iterations":3,"max_edit_lines":10,"max_files_per_state":2},
              "done":{"type":"final"}}}"#;

fn workflow(text: &str) -> Workflow {
    load(text, Format::Json, &Limits::MAX).unwrap_or_else(|problems| panic!("{problems:?}")).workflow
}

fn started(workflow: &Workflow) -> Run {
    Run { position: Some(Position::start(workflow, "run_1".to_owned(), 1, None)), ..Run::default() }
}

fn edit<'a>(lines: u64, files: &'a [Digest]) -> CallAsked<'a> {
    let family = Some(Family::Edit);
    CallAsked { tool: "Edit", family, shell: None, covered: None, runner: true, low: false, edit_lines: lines, files }
}

fn begin(run: &mut Run, workflow: &Workflow, id: usize, changes: bool, fact: Option<&str>, files: &[Digest]) {
    let open = OpenCall {
        ticket: None,
        gist: None,
        call_id: Some(id.to_string()),
        process: process(),
        subagent: None,
        fingerprint: Digest::of(&["call", &id.to_string()]),
        decision: 1,
        at: 1,
        changes,
        left: false,
        foreign: false,
        fact: fact.map(|fact| (fact.to_owned(), 0)),
    };
    begin_call(run, Some(workflow), CallBegun { open, files: files.to_vec(), session: "s".to_owned(), unseen: None });
}

fn end(run: &mut Run, id: usize) {
    let ended = CallEnded {
        tells_how: true,
        carried: None,
        call_id: Some(&id.to_string()),
        process: process(),
        fingerprint: Digest::of(&["call", &id.to_string()]),
        tool: "Bash",
        is_command: true,
        ok: Some(true),
        exit_code: Some(0),
        result: None,
        files: &[],
    };
    end_call(run, &ended).expect("it was judged");
}

#[test]
fn limits_are_exact() {
    let workflow = workflow(FLOW);
    let mut run = started(&workflow);
    let code = |run: &Run, call: &CallAsked<'_>| {
        check_call(&workflow, run.position.as_ref().expect("a position"), call, 1).err().map(|refusal| refusal.code)
    };
    let [a, b, c] = ["a", "b", "c"].map(|name| Digest::of(&[name]));
    assert_eq!((code(&run, &edit(10, &[])), code(&run, &edit(11, &[]))), (None, Some(Code::WorkflowLimit)));
    assert_eq!((code(&run, &edit(1, &[a, b])), code(&run, &edit(1, &[a, b, c]))), (None, Some(Code::WorkflowLimit)));
    begin(&mut run, &workflow, 1, true, None, &[a, b]);
    // A file that was changed already is no further file.
    assert_eq!((code(&run, &edit(1, &[a])), code(&run, &edit(1, &[c]))), (None, Some(Code::WorkflowLimit)));
    begin(&mut run, &workflow, 2, true, None, &[a]);
    assert_eq!(code(&run, &edit(1, &[b])), None, "the third call");
    begin(&mut run, &workflow, 3, true, None, &[b]);
    assert_eq!(code(&run, &edit(1, &[b])), Some(Code::WorkflowIterations), "the fourth");
    let nothing = Context::default();
    for number in 0..4 {
        let asked = TransitionAsked { event: "AGAIN", data: &nothing, expected_revision: None };
        let step = transition(&workflow, &run, &asked, 1).map_err(|refusal| refusal.code);
        if number == 3 {
            assert_eq!(step, Err(Code::WorkflowLimit), "the fourth transition");
            break;
        }
        assert!(matches!(step, Ok(Step::Move { target: "work", .. })), "{step:?}");
        move_to(&mut run, &workflow, "work", &nothing);
        assert_eq!(code(&run, &edit(1, &[c])), None, "counters begin anew");
    }
}

#[test]
fn a_limit_of_files_holds_however_large_it_is() {
    for max in [255_usize, 300, 1_000] {
        let text = FLOW.replace(r#""max_files_per_state":2"#, &format!(r#""max_files_per_state":{max}"#));
        let workflow = workflow(&text.replace(r#""max_iterations":3,"#, ""));
        let mut run = started(&workflow);
        let changed = (0..1_100_usize)
            .take_while(|number| {
                let file = [Digest::of(&["file", &number.to_string()])];
                let passes = check_call(&workflow, run.position.as_ref().expect("one"), &edit(1, &file), 1).is_ok();
                if passes {
                    begin(&mut run, &workflow, *number, true, None, &file);
                    end(&mut run, *number);
                }
                passes
            })
            .count();
        assert!(changed <= max, "{changed} files were changed, {max} are allowed");
        assert!(changed >= max.min(255), "only {changed} of {max}");
    }
}

#[test]
fn a_context_has_a_largest_size_and_data_is_kept_on_success_only() {
    let workflow = workflow(FLOW);
    let run = started(&workflow);
    let step = |len: usize| {
        let data = Context::from(BTreeMap::from([("note".to_owned(), Json::from(&*"x".repeat(len)))]));
        let asked = TransitionAsked { event: "AGAIN", data: &data, expected_revision: None };
        transition(&workflow, &run, &asked, 1).map_err(|refusal| refusal.code)
    };
    // {"note":"…"} has eleven more bytes.
    assert!(step(65_536 - 11).is_ok());
    assert_eq!(step(65_536 - 10), Err(Code::WorkflowData));
}

#[test]
fn a_change_that_was_under_way_when_a_fact_began_disturbs_it() {
    let workflow = workflow(&FLOW.replace(r#""max_iterations":3,"#, ""));
    let mut run = started(&workflow);
    begin(&mut run, &workflow, 1, true, None, &[]);
    begin(&mut run, &workflow, 2, false, Some("tests"), &[]);
    end(&mut run, 1);
    end(&mut run, 2);
    assert!(run.seen.facts.is_empty(), "the tree changed while the tests ran");
    begin(&mut run, &workflow, 3, false, Some("tests"), &[]);
    end(&mut run, 3);
    assert_eq!(run.seen.facts.len(), 1, "nothing was under way");
}

#[test]
fn a_call_that_its_turn_left_behind_hinders_no_fact_until_it_ends() {
    let workflow = workflow(&FLOW.replace(r#""max_iterations":3,"#, ""));
    let mut run = started(&workflow);
    begin(&mut run, &workflow, 1, true, None, &[]);
    begin(&mut run, &workflow, 2, false, Some("tests"), &[]);
    end_turn(&mut run, |_| true);
    end(&mut run, 2);
    assert!(run.seen.facts.is_empty(), "a command that outlives its turn is no fact");
    begin(&mut run, &workflow, 3, false, Some("tests"), &[]);
    end(&mut run, 3);
    assert_eq!(run.seen.facts.len(), 1, "most calls that are left behind never ran");
    begin(&mut run, &workflow, 4, false, Some("tests"), &[]);
    end(&mut run, 1);
    assert!(run.seen.facts.is_empty(), "this one did, and may have changed what was looked at");
    end(&mut run, 4);
    assert!(run.seen.facts.is_empty(), "or what is being looked at");
}

#[test]
fn of_the_calls_that_turns_left_behind_the_newest_are_remembered() {
    let workflow = workflow(&FLOW.replace(r#""max_iterations":3,"#, ""));
    for (count, kept) in [(LEFT_CALLS_MAX, LEFT_CALLS_MAX), (LEFT_CALLS_MAX + 1, LEFT_CALLS_MAX)] {
        let mut run = started(&workflow);
        for number in 0..count {
            begin(&mut run, &workflow, number, true, None, &[]);
        }
        end_turn(&mut run, |_| true);
        assert_eq!(run.open.len(), kept);
        end(&mut run, count - 1);
        assert_eq!(run.open.len(), kept - 1, "the newest is known");
    }
}

#[test]
fn a_change_under_way_is_not_forgotten_among_many_calls() {
    let workflow = workflow(&FLOW.replace(r#""max_iterations":3,"#, ""));
    let mut run = started(&workflow);
    begin(&mut run, &workflow, 0, true, None, &[]);
    for number in 1..=OPEN_CALLS_MAX {
        begin(&mut run, &workflow, number, false, None, &[]);
    }
    begin(&mut run, &workflow, 1_000, false, Some("tests"), &[]);
    end(&mut run, 1_000);
    assert!(run.seen.facts.is_empty(), "the first call may still be writing");
    assert!(run.open.len() <= OPEN_CALLS_MAX);
}

#[test]
fn a_parked_run_passes_nothing_that_its_state_does_not_allow() {
    let text = r#"{"id":"fix","initial":"work","states":{
        "work":{"on":{"DONE":{"target":"done","requires_approval":true}},"allowed_tools":["Edit","Grep"],"max_iterations":1},
        "done":{"type":"final"}}}"#;
    let workflow = workflow(text);
    let mut run = started(&workflow);
    let (approval_id, event, target) = ("appr_1".to_owned(), "DONE".to_owned(), "done".to_owned());
    park(&mut run, Parked { approval_id, expires_at: 10, event, data: Context::default(), target });
    let code = |run: &Run, tool: &str, shell: Option<Effect>, now: u64| {
        let asked = CallAsked {
            tool,
            family: Family::parse(tool),
            shell,
            covered: None,
            runner: true,
            low: false,
            edit_lines: 0,
            files: &[],
        };
        check_call(&workflow, run.position.as_ref().expect("a position"), &asked, now).err().map(|refusal| refusal.code)
    };
    assert_eq!(code(&run, "Grep", None, 1), None);
    assert_eq!(code(&run, "Edit", None, 1), Some(Code::WorkflowParked));
    assert_eq!(code(&run, "Edit", None, 10), None, "it waited too long, and waits no more");
    // Waiting lets nothing pass that did not pass before.
    assert_eq!(code(&run, "Read", None, 1), Some(Code::WorkflowTool));
    assert_eq!(code(&run, "Bash", Some(Effect::ReadOnly), 1), Some(Code::WorkflowTool));
    begin(&mut run, &workflow, 1, false, None, &[]);
    assert_eq!(code(&run, "Grep", None, 1), Some(Code::WorkflowIterations));
    assert_eq!(run.position.as_ref().and_then(|position| position.ended.clone()), None::<Ended>);
}
