//! The proofs against a search that is as simple as can be: all worlds, all paths, the machine itself.
//!
//! It shares nothing with the proofs but the reader of properties. Edges are found by trying values, paths by walking
//! them all to the last transition, and calls by asking `check_call` about concrete ones.

#![expect(clippy::arithmetic_side_effects, reason = "small numbers in tests")]

use std::collections::{BTreeMap, BTreeSet};

use interlock_core::Digest;
use interlock_core::call::{Effect, Family};
use interlock_core::json::{Json, quote};
use interlock_core::workflow::{
    AfterFinal, CallAsked, CommandJudge, Context, Edge, Guard, GuardId, Operator, Position, Reach, Run, SeenCommand,
    Source, State, StateId, StateKind, Step, ToolPattern, TransitionAsked, Workflow, check_call, may_write, transition,
};

use super::proof::{Answer, prove};
use super::property::Property;

const MACHINES: u64 = 10_000;

struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from((self.0 >> 11) % u64::try_from(sides).unwrap()).unwrap()
    }

    fn pick<'a, T: ?Sized>(&mut self, from: &[&'a T]) -> &'a T {
        from[self.roll(from.len())]
    }
}

const TOOLS: [&str; 9] = ["Read", "Write", "Edit", "Bash", "mcp__x__a", "mcp__x*", "*", "zzz", "W*"];
const COMMANDS: [&str; 6] = ["git push *", "git *", "pytest *", "npm test", "make t*", "cat *"];
/// Calls there could be: exact names, and the family they belong to where they have one.
const CALLS: [&str; 9] = ["Read", "Write", "Edit", "Bash", "mcp__x__a", "mcp__xy", "WebFetch", "zzz", "other"];
#[rustfmt::skip]
const LINES: [(&str, Effect); 12] = [
    ("git push", Effect::Network), ("git push origin", Effect::Network), ("git evil", Effect::Unknown),
    ("git push --unknown", Effect::Unknown), ("pytest", Effect::Unknown), ("pytest -q", Effect::Unknown),
    ("npm test", Effect::Unknown), ("make t", Effect::Unknown), ("make test", Effect::Unknown),
    ("cat x", Effect::ReadOnly), ("cat", Effect::ReadOnly), ("rm x", Effect::Destructive),
];

struct Table;

impl CommandJudge for Table {
    fn reach(&self, line: &str) -> Reach {
        match line {
            "cat" | "cat \"$@\"" => Reach::Reads,
            "git push" | "rm" | "rm \"$@\"" => Reach::Known,
            _ => Reach::Anything,
        }
    }
}

fn list(items: impl IntoIterator<Item = String>) -> String {
    format!("[{}]", items.into_iter().collect::<Vec<_>>().join(","))
}

fn members(items: impl IntoIterator<Item = (String, String)>) -> String {
    let items: Vec<String> = items.into_iter().map(|(key, value)| format!("{}:{value}", quote(&key))).collect();
    format!("{{{}}}", items.join(","))
}

fn patterns(dice: &mut Dice, most: usize) -> String {
    list((0..dice.roll(most + 1)).map(|_| quote(dice.pick(&TOOLS))))
}

fn guard(dice: &mut Dice) -> String {
    let fields = [
        ("a", "context"),
        ("a", "context"),
        ("observed.tests", "observed"),
        ("observed.last_command.ok", "context"),
        ("a", "observed"),
        ("observed.last_command.exit_code", "observed"),
        ("observed.nobody", "observed"),
    ];
    let (field, source) = fields[dice.roll(fields.len())];
    let op = Operator::ALL[dice.roll(Operator::ALL.len())];
    let even = |dice: &mut Dice| (dice.roll(3) * 2).to_string();
    let value = match (field, op) {
        (_, Operator::Exists | Operator::NotExists) => None,
        (_, Operator::In) => Some(list((0..dice.roll(3)).map(|_| even(dice)))),
        ("observed.last_command.ok", _) => Some((dice.roll(2) == 0).to_string()),
        (_, Operator::Contains) => Some(quote(dice.pick(&["x", "y", "xy"]))),
        (_, _) => Some(even(dice)),
    };
    let said = [("field", quote(field)), ("op", quote(op.as_str())), ("source", quote(source))];
    let said = said.into_iter().chain(value.map(|value| ("value", value)));
    members(said.map(|(key, value)| (key.to_owned(), value)))
}

fn row(dice: &mut Dice, states: usize, guards: usize) -> String {
    let mut said = vec![("target".to_owned(), quote(&format!("s{}", dice.roll(states))))];
    let asked = if guards == 0 { 0 } else { dice.roll(3) };
    if asked > 0 {
        let asked = (0..asked).map(|_| quote(&format!("g{}", dice.roll(guards))));
        said.push(("guards".to_owned(), list(asked.collect::<Vec<_>>())));
    }
    said.push(("requires_approval".to_owned(), (dice.roll(4) == 0).to_string()));
    members(said)
}

fn state(dice: &mut Dice, states: usize, guards: usize) -> String {
    let mut said = Vec::new();
    let mut say = |key: &str, value: Option<String>| said.extend(value.map(|value| (key.to_owned(), value)));
    say("type", (dice.roll(4) == 0).then(|| quote("final")));
    let events = (0..1 + dice.roll(2)).map(|event| {
        let rows = (0..1 + dice.roll(3)).map(|_| row(dice, states, guards)).collect::<Vec<_>>();
        (format!("E{event}"), list(rows))
    });
    say("on", Some(members(events.collect::<Vec<_>>())));
    say("allowed_tools", (dice.roll(5) > 0).then(|| patterns(dice, 4)));
    say("disallowed_tools", (dice.roll(3) == 0).then(|| patterns(dice, 2)));
    let commands = |dice: &mut Dice| list((0..dice.roll(3)).map(|_| quote(dice.pick(&COMMANDS))).collect::<Vec<_>>());
    say("allowed_commands", (dice.roll(2) == 0).then(|| commands(dice)));
    say("requires_approval", Some((dice.roll(8) == 0).to_string()));
    members(said)
}

/// Much of it no text that loads would say: final states with ways out, guards on what nobody observes.
fn random_machine(dice: &mut Dice) -> Workflow {
    let (states, guards) = (1 + dice.roll(4), dice.roll(5));
    let guarded = (0..guards).map(|place| (format!("g{place}"), guard(dice))).collect::<Vec<_>>();
    let placed = (0..states).map(|place| (format!("s{place}"), state(dice, states, guards))).collect::<Vec<_>>();
    let said = [
        ("id", quote("random")),
        ("guards", members(guarded)),
        ("states", members(placed)),
        ("initial", quote(&format!("s{}", dice.roll(states)))),
        ("facts", r#"{"tests":{"command":"pytest"}}"#.to_owned()),
        ("after_final", quote(if dice.roll(2) == 0 { "open" } else { "closed" })),
        ("max_transitions", (1 + dice.roll(5)).to_string()),
    ];
    let text = members(said.map(|(key, value)| (key.to_owned(), value)));
    Workflow::from_text(&text).unwrap_or_else(|error| panic!("{error}: {text}"))
}

fn index(id: StateId) -> usize {
    usize::try_from(id.place()).unwrap()
}

fn state_at(workflow: &Workflow, place: usize) -> &State {
    workflow.states().nth(place).unwrap().1
}

fn number_of(workflow: &Workflow, wanted: GuardId) -> usize {
    workflow.guards().position(|(id, _)| id == wanted).unwrap()
}

/// An edge as it was found: by trying.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Found {
    event: String,
    row: usize,
    target: usize,
    approved: bool,
    observed: BTreeSet<String>,
    claimed: BTreeSet<String>,
}

struct Brute<'a> {
    workflow: &'a Workflow,
    edges: Vec<BTreeSet<Found>>,
    /// Every walk, as states and edges.
    walks: Vec<(Vec<usize>, Vec<Found>)>,
}

fn worlds() -> [Vec<World>; 3] {
    let texts = |items: &[&str]| Json::Array(items.iter().map(|item| Json::from(*item)).collect());
    let half = |literal: &str| {
        Json::of(interlock_core::json::parse(literal, &interlock_core::json::Limits::CONFIG).unwrap().root())
    };
    let mut claims: Vec<Option<Json>> =
        vec![None, Some(Json::from("x")), Some(Json::from("y")), Some(Json::from("xy"))];
    claims.extend([
        Some(texts(&["x"])),
        Some(texts(&["x", "y", "xy"])),
        Some(texts(&["y", "xy"])),
        Some(Json::Bool(true)),
    ]);
    claims.extend([
        Some(Json::from("xy y")),
        Some(texts(&["x", "y"])),
        Some(Json::from("yx")),
        Some(texts(&["x", "xy"])),
    ]);
    claims.extend(["-1", "0", "0.5", "1.5", "2", "3", "4", "5"].map(|literal| Some(half(literal))));
    let mut commands: Vec<Option<SeenCommand>> = vec![None];
    for exit_code in [None, Some(-1), Some(0), Some(1), Some(2), Some(3), Some(4), Some(5)] {
        for ok in [true, false] {
            commands.push(Some(SeenCommand { ok, exit_code, command_digest: Digest::of(&["c"]) }));
        }
    }
    let world = |context: BTreeMap<String, Json>, run: Run| {
        let observed = run.seen.to_json();
        World { context, run, observed }
    };
    let claimed = claims
        .into_iter()
        .map(|claim| world(claim.into_iter().map(|value| ("a".to_owned(), value)).collect(), Run::default()));
    let tests = commands.iter().map(|command| {
        let mut run = Run::default();
        run.seen.facts.extend(command.iter().map(|command| ("tests".to_owned(), command.clone())));
        world(BTreeMap::new(), run)
    });
    let last = commands.iter().map(|command| {
        let mut run = Run::default();
        run.seen.last_command.clone_from(command);
        world(BTreeMap::new(), run)
    });
    [claimed.collect(), tests.collect(), last.collect()]
}

/// What an agent says, what was seen of the declared command, what was seen of the last one: each may be anything.
#[derive(Clone)]
struct World {
    context: BTreeMap<String, Json>,
    run: Run,
    observed: Json,
}

/// Every way in which the guards of a workflow can hold or not, with a world in which they do.
fn kinds_of_worlds(workflow: &Workflow, parts: &[Vec<World>; 3]) -> Vec<(Vec<bool>, BTreeMap<String, Json>, Run)> {
    let part_of = |guard: &Guard| match guard.field.get(1).map(String::as_str) {
        None => 0,
        Some("last_command") => 2,
        Some(_) => 1,
    };
    let mut distinct: [BTreeMap<Vec<bool>, World>; 3] = Default::default();
    for (place, worlds) in parts.iter().enumerate() {
        for world in worlds {
            let holds = |guard: &Guard| part_of(guard) == place && guard.holds(&world.context, &world.observed);
            distinct[place]
                .entry(workflow.guards().map(|(_, guard)| holds(guard)).collect())
                .or_insert_with(|| world.clone());
        }
    }
    let mut kinds = Vec::new();
    for (first, claimed) in &distinct[0] {
        for (second, tests) in &distinct[1] {
            for (third, last) in &distinct[2] {
                let truth = (0..first.len()).map(|guard| first[guard] || second[guard] || third[guard]).collect();
                let mut run = tests.run.clone();
                run.seen.last_command.clone_from(&last.run.seen.last_command);
                kinds.push((truth, claimed.context.clone(), run));
            }
        }
    }
    kinds
}

impl<'a> Brute<'a> {
    fn new(workflow: &'a Workflow, worlds: &[Vec<World>; 3]) -> Brute<'a> {
        let mut edges = vec![BTreeSet::new(); workflow.states().count()];
        // Worlds in which the same guards hold are the same to the machine: one of each will do.
        let kinds = kinds_of_worlds(workflow, worlds);
        for (place, (_, state)) in workflow.states().enumerate() {
            if matches!(state.kind, StateKind::Final(_)) {
                continue;
            }
            for (truth, context, run) in &kinds {
                for (event, rows) in &state.on {
                    let met = |edge: &Edge| edge.guards.iter().all(|id| truth[number_of(workflow, *id)]);
                    let Some(row) = rows.iter().position(met) else { continue };
                    let edge = &rows[row];
                    let target = index(edge.target);
                    let guards = || edge.guards.iter().map(|id| workflow.guard(*id).unwrap());
                    let is_observed = |guard: &Guard| guard.field[0] == "observed" || guard.source == Source::Observed;
                    let names = |wanted: bool| {
                        guards().filter(|guard| is_observed(guard) == wanted).map(|guard| guard.name.clone()).collect()
                    };
                    let found = Found {
                        event: event.clone(),
                        row,
                        target,
                        approved: edge.requires_approval || state_at(workflow, target).requires_approval,
                        observed: names(true),
                        claimed: names(false),
                    };
                    if edges[place].insert(found.clone()) && workflow.max_transitions() > 0 {
                        agrees_with_the_machine(workflow, &state.name, run, context.clone(), &found);
                    }
                }
            }
        }
        let mut brute = Brute { workflow, edges, walks: Vec::new() };
        brute.walk(&[index(workflow.initial())], &[]);
        brute
    }

    fn walk(&mut self, states: &[usize], edges: &[Found]) {
        let last = *states.last().unwrap();
        let more = u32::try_from(edges.len()).unwrap() < self.workflow.max_transitions();
        self.walks.push((states.to_vec(), edges.to_vec()));
        if !more || self.walks.len() > 50_000 {
            return;
        }
        for edge in self.edges[last].clone() {
            let (mut states, mut edges) = (states.to_vec(), edges.to_vec());
            states.push(edge.target);
            edges.push(edge);
            self.walk(&states, &edges);
        }
    }

    fn is_final(&self, state: usize) -> bool {
        matches!(state_at(self.workflow, state).kind, StateKind::Final(_))
    }

    fn asks<'c>(&self, state: usize, call: CallAsked<'c>) -> bool {
        let mut position = Position::start(self.workflow, "run_".to_owned(), 0, None);
        position.state.clone_from(&state_at(self.workflow, state).name);
        check_call(self.workflow, &position, &call, 0).is_ok()
    }

    fn tool_passes(&self, state: usize, tool: &str) -> bool {
        let call = CallAsked {
            tool,
            family: Family::parse(tool),
            shell: None,
            covered: None,
            runner: true,
            low: false,
            edit_lines: 0,
            files: &[],
        };
        self.asks(state, call)
    }

    fn line_passes(&self, state: usize, line: &str, effect: Effect) -> bool {
        let listed = state_at(self.workflow, state).allowed_commands.as_ref();
        let covered = listed.map(|listed| listed.iter().any(|pattern| line_matches(pattern, line, false)));
        let call = CallAsked {
            tool: "Bash",
            family: Some(Family::Bash),
            shell: Some(effect),
            covered,
            runner: true,
            low: false,
            edit_lines: 0,
            files: &[],
        };
        self.asks(state, call)
    }

    /// Whether some concrete call of this kind passes.
    fn passes(&self, state: usize, asked: &str) -> bool {
        if let Some(command) = asked.strip_prefix("Bash(").and_then(|rest| rest.strip_suffix(')')) {
            let harmless = command.starts_with("cat");
            return LINES.iter().any(|(line, effect)| {
                line_matches(command, line, true)
                    && (*effect != Effect::ReadOnly || harmless)
                    && self.line_passes(state, line, *effect)
            });
        }
        let matches = |name: &&&str| asked.strip_suffix('*').map_or(**name == asked, |stem| name.starts_with(stem));
        CALLS.iter().filter(matches).any(|name| self.tool_passes(state, name))
    }

    /// Whether something passes that can do more than its name says.
    fn opaque(&self, state: usize, asked: &str) -> bool {
        if self.is_final(state) {
            return self.workflow.after_final() == AfterFinal::Open;
        }
        let unknown_line =
            LINES.iter().any(|(line, effect)| *effect == Effect::Unknown && self.line_passes(state, line, *effect));
        let strange = |name: &&&str| Family::parse(name).is_none();
        let strange_tool = CALLS.iter().filter(strange).any(|name| self.tool_passes(state, name));
        let names = |pattern: &ToolPattern| {
            let left = |refused: &ToolPattern| !(refused.matches(&pattern.stem) && (refused.open || !pattern.open));
            pattern.open && state_at(self.workflow, state).disallowed_tools.iter().all(left)
        };
        let open_pattern = state_at(self.workflow, state).allowed_tools.iter().flatten().any(names);
        let host_name = ["zzz", "W*"].contains(&asked) && CALLS.iter().any(|name| self.tool_passes(state, name));
        let everything = state_at(self.workflow, state).allowed_tools.is_none();
        unknown_line || strange_tool || open_pattern || host_name || everything
    }
}

/// The machine makes the same transition from the same world.
fn agrees_with_the_machine(workflow: &Workflow, from: &str, run: &Run, data: BTreeMap<String, Json>, found: &Found) {
    let mut run = run.clone();
    let mut position = Position::start(workflow, "run_".to_owned(), 0, None);
    from.clone_into(&mut position.state);
    position.ended = None;
    run.position = Some(position);
    let asked = TransitionAsked { event: &found.event, data: &Context::from(data), expected_revision: None };
    let name = state_at(workflow, found.target).name.clone();
    let step = transition(workflow, &run, &asked, 0).expect("an edge that was found");
    match step {
        Step::Move { target, .. } => assert!(target == name && !found.approved),
        Step::Ask { target, .. } => assert!(target == name && found.approved),
    }
}

fn line_matches(pattern: &str, line: &str, asked: bool) -> bool {
    let mut words: Vec<&str> = pattern.split(' ').collect();
    let open = words.last() == Some(&"*");
    if open {
        words.pop();
    }
    let rest = open || (asked && pattern.ends_with('*'));
    let given: Vec<&str> = line.split(' ').collect();
    let word = |(pattern, given): (&&str, &&str)| {
        pattern.strip_suffix('*').map_or(pattern == given, |stem| given.starts_with(stem))
    };
    (given.len() == words.len() || (rest && given.len() > words.len())) && words.iter().zip(&given).all(word)
}

/// What walking everything says: the length of the shortest walk that breaks it, or whether something opaque passes.
struct Expected {
    broken: Option<usize>,
    opaque: bool,
}

fn expect(brute: &Brute<'_>, bad: impl Fn(&[usize], &[Found]) -> bool, call: Option<&str>) -> Expected {
    let mut expected = Expected { broken: None, opaque: false };
    let states = 0..brute.workflow.states().count();
    let passes: Vec<bool> = states.clone().map(|at| call.is_none_or(|call| brute.passes(at, call))).collect();
    let opaque: Vec<bool> = states.map(|at| call.is_some_and(|call| brute.opaque(at, call))).collect();
    for (states, edges) in brute.walks.iter().filter(|(states, edges)| bad(states, edges)) {
        let last = *states.last().unwrap();
        if passes[last] {
            expected.broken = Some(expected.broken.map_or(edges.len(), |least| least.min(edges.len())));
        }
        expected.opaque |= opaque[last];
    }
    expected
}

fn compare(
    workflow: &Workflow,
    text: &str,
    expected: &Expected,
    brute: &Brute<'_>,
    counts: &mut BTreeMap<String, u32>,
) {
    let property = Property::parse(text, workflow).unwrap_or_else(|error| panic!("{text}: {error}"));
    let proof = prove(workflow, &property, &Table);
    let said = match &proof.answer {
        Answer::Broken { path, .. } => {
            check_path(workflow, brute, path);
            format!("broken after {}", path.len())
        }
        Answer::Proven => "proven".to_owned(),
        Answer::ProvenForCalls { .. } => "proven for calls".to_owned(),
        Answer::Bounded { .. } => "bounded".to_owned(),
    };
    let wanted = match expected.broken {
        Some(length) => format!("broken after {length}"),
        None if expected.opaque => "proven for calls".to_owned(),
        None => "proven".to_owned(),
    };
    assert_eq!(said, wanted, "{text}\n{workflow:#?}\n{:#?}", brute.edges);
    *counts.entry(wanted.split(" after").next().unwrap().to_owned()).or_default() += 1;
}

/// A path that is shown is one that can be walked.
fn check_path(workflow: &Workflow, brute: &Brute<'_>, path: &[super::ways::PathStep]) {
    let mut at = index(workflow.initial());
    for step in path {
        assert_eq!(state_at(workflow, at).name, step.from);
        let to = index(workflow.find(&step.to).unwrap());
        let known = brute.edges[at].iter().any(|edge| {
            edge.event == step.event
                && edge.target == to
                && edge.approved == step.approved
                && step.observed.iter().cloned().collect::<BTreeSet<_>>() == edge.observed
        });
        assert!(known, "{step:?}");
        at = to;
    }
}

#[test]
fn proofs_agree_with_walking_every_path_of_ten_thousand_machines() {
    let mut dice = Dice(0x9e37_79b9_7f4a_7c15);
    let worlds = worlds();
    let mut counts = BTreeMap::new();
    let mut compared = 0_u64;
    while compared < MACHINES {
        let workflow = random_machine(&mut dice);
        let brute = Brute::new(&workflow, &worlds);
        if brute.walks.len() > 5_000 {
            continue;
        }
        compared += 1;
        every_form(&mut dice, &workflow, &brute, &mut counts);
    }
    for answer in ["broken", "proven", "proven for calls", "bounded"] {
        assert!(counts.get(answer).is_some_and(|count| *count > 500), "{answer} is rare: {counts:?}");
    }
}

fn every_form(dice: &mut Dice, workflow: &Workflow, brute: &Brute<'_>, counts: &mut BTreeMap<String, u32>) {
    let calls = [
        "Write",
        "Bash",
        "Read",
        "mcp__x*",
        "mcp__x__a",
        "tool zzz",
        "W*",
        "Bash(git push*)",
        "Bash(npm test)",
        "Bash(cat *)",
        "Bash(make*)",
        "Bash(rm *)",
        "WebFetch",
    ];
    let call = calls[dice.roll(calls.len())];
    let bare = call.trim_start_matches("tool ");
    let states = workflow.states().count();
    let (one, two) = (dice.roll(states), dice.roll(states));
    let (s1, s2) = (format!("s{one}"), format!("s{two}"));
    let before_last = |walk: &[usize]| walk.split_last().map_or_else(Vec::new, |(_, rest)| rest.to_vec());
    let approved = |edges: &[Found]| edges.iter().any(|edge| edge.approved);
    let check = |text: String, expected: Expected, counts: &mut BTreeMap<String, u32>| {
        compare(workflow, &text, &expected, brute, counts);
    };

    let walks = expect(brute, |_, edges| !approved(edges), Some(bare));
    check(format!("{call} only after approved"), walks, counts);
    let walks = expect(brute, |states, edges| states.last() == Some(&one) && !approved(edges), None);
    check(format!("{s1} only after approved"), walks, counts);
    let walks = expect(brute, |states, _| !before_last(states).contains(&one), Some(bare));
    check(format!("{call} only after {s1}"), walks, counts);
    let walks = expect(brute, |states, _| states.last() == Some(&two) && !before_last(states).contains(&one), None);
    check(format!("{s2} only after {s1}"), walks, counts);
    let walks = expect(brute, |states, _| states.last() == Some(&two) && !states.contains(&one), None);
    check(format!("never {s2} before {s1}"), walks, counts);
    let walks = expect(brute, |states, _| !states.contains(&one), Some(bare));
    check(format!("never {call} before {s1}"), walks, counts);
    let walks = expect(brute, |states, _| ![one, two].contains(states.last().unwrap()), Some(bare));
    check(format!("{call} only in {s1}, {s2}"), walks, counts);
    let walks = expect(brute, |states, _| states.last() == Some(&one), Some(bare));
    check(format!("never {call} in {s1}"), walks, counts);
    let walks = expect(brute, |states, _| before_last(states).contains(&one), Some(bare));
    check(format!("no {call} after {s1}"), walks, counts);
    if workflow.guards().next().is_some() {
        let guard = format!("g{}", dice.roll(workflow.guards().count()));
        let seen = |edges: &[Found]| edges.iter().any(|edge| edge.observed.contains(&guard));
        let walks = expect(brute, |states, edges| states.last() == Some(&one) && !seen(edges), None);
        check(format!("never {s1} before {guard}"), walks, counts);
        let told =
            |edges: &[Found]| edges.iter().any(|edge| edge.observed.contains(&guard) || edge.claimed.contains(&guard));
        let honest = expect(brute, |states, edges| states.last() == Some(&one) && !told(edges), None).broken.is_none();
        let property = Property::parse(&format!("never {s1} before {guard}"), workflow).unwrap();
        if let Answer::Broken { if_honest, .. } = prove(workflow, &property, &Table).answer {
            assert_eq!(if_honest, honest, "never {s1} before {guard}: {workflow:#?}");
        }
    }
    endings(dice, workflow, brute, counts);
}

fn endings(dice: &mut Dice, workflow: &Workflow, brute: &Brute<'_>, counts: &mut BTreeMap<String, u32>) {
    let unfinished = |length: u32| {
        let length = usize::try_from(length.min(workflow.max_transitions())).unwrap();
        brute.walks.iter().any(|(states, edges)| edges.len() == length && !brute.is_final(*states.last().unwrap()))
    };
    // A state is lost if no final one is among those that can be reached from it in any number of steps.
    let lost = |state: usize| {
        let mut reached = BTreeSet::from([state]);
        for _ in 0..workflow.states().count() {
            let next: Vec<usize> =
                reached.iter().flat_map(|at| brute.edges[*at].iter().map(|edge| edge.target)).collect();
            reached.extend(next);
        }
        !reached.iter().any(|state| brute.is_final(*state))
    };
    let stuck = expect(brute, |states, _| lost(*states.last().unwrap()), None);
    let property = Property::parse("always eventually final", workflow).unwrap();
    let answer = prove(workflow, &property, &Table).answer;
    let said = match &answer {
        Answer::Broken { path, .. } => {
            check_path(workflow, brute, path);
            Some(path.len())
        }
        Answer::Proven | Answer::Bounded { .. } | Answer::ProvenForCalls { .. } => None,
    };
    assert_eq!(said, stuck.broken, "always eventually final: {workflow:#?}");
    if stuck.broken.is_none() {
        let bounded = matches!(answer, Answer::Bounded { .. });
        if let Answer::Bounded { path, .. } = &answer {
            check_path(workflow, brute, path);
        }
        assert_eq!(bounded, unfinished(workflow.max_transitions()), "bounded: {workflow:#?}");
        if bounded {
            *counts.entry("bounded".to_owned()).or_default() += 1;
        }
    }
    let limit = u32::try_from(dice.roll(7)).unwrap();
    let property = Property::parse(&format!("always final within {limit}"), workflow).unwrap();
    let broken = match prove(workflow, &property, &Table).answer {
        Answer::Broken { path, .. } => {
            check_path(workflow, brute, &path);
            assert_eq!(path.len(), usize::try_from(limit.min(workflow.max_transitions())).unwrap());
            true
        }
        Answer::Proven | Answer::Bounded { .. } | Answer::ProvenForCalls { .. } => false,
    };
    assert_eq!(broken, unfinished(limit), "final within {limit}: {workflow:#?}");
}

#[test]
fn writing_is_seen_as_the_machine_sees_it() {
    let mut dice = Dice(7);
    for _ in 0..2_000 {
        let workflow = random_machine(&mut dice);
        for (_, state) in workflow.states() {
            let permits = super::permits::Permits::new(&workflow, state, &Table);
            let active = matches!(state.kind, StateKind::Active);
            let writes = [Family::Write, Family::Edit].into_iter().any(|family| permits.family_passes(family));
            assert!(!active || writes == may_write(state));
        }
    }
}
