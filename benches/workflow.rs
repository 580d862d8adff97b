//! The machine against the crate `statewright-engine` on the same definition: transitions a second, and whether they stay
//! the same however many states there are.
//!
//!     cargo bench --bench workflow

mod limits;

use std::fmt::Write;
use std::hint::black_box;
use std::time::{Duration, Instant};

use interlock_core::json::{self, Json, Limits};
use interlock_core::workflow::{Context, Position, Run, Step, TransitionAsked, Workflow, move_to_state, transition};
use interlock_workflow::Format;
use statewright_engine::{MachineDefinition, resolve_transition};

/// How long one figure is taken for, and how often.
const TIME: Duration = Duration::from_millis(100);
const ROUNDS: usize = 21;

/// A ring of states; every way on has two guards. They hold before the event as well: the other engine looks at what the
/// event brings only afterwards.
fn definition(states: usize) -> String {
    let mut text = String::from(
        r#"{"id":"ring","initial":"s0000","context":{"test_result":"pass","attempts":0,"coverage":81.5},
           "guards":{"passed":{"field":"test_result","op":"eq","value":"pass"},
                     "covered":{"field":"coverage","op":"gte","value":80}},"states":{"#,
    );
    for number in 0..states {
        let next = (number + 1) % states;
        let _ = write!(
            text,
            r#""s{number:04}":{{"allowed_tools":["Read","Edit"],"instructions":"Go on.","max_iterations":10,
               "on":{{"NEXT":{{"target":"s{next:04}","guards":["passed","covered"]}},"FAIL":"failed"}}}},"#
        );
    }
    text.push_str(r#""failed":{"type":"final"}}}"#);
    text
}

const DATA: &str = r#"{"test_result":"pass","attempts":1,"rationale":"the tests are green"}"#;

/// Transitions a second, in one round.
fn rate(mut once: impl FnMut()) -> f64 {
    let (started, mut count) = (Instant::now(), 0_u32);
    while started.elapsed() < TIME {
        for _ in 0..100 {
            once();
        }
        count += 100;
    }
    f64::from(count) / started.elapsed().as_secs_f64()
}

fn median(mut figures: Vec<f64>) -> f64 {
    figures.sort_by(f64::total_cmp);
    figures[figures.len() / 2]
}

fn ours(text: &str) -> f64 {
    // A bench goes round more often than a run may.
    let text = text.replacen("{\"id\"", "{\"max_transitions\":100000,\"id\"", 1);
    let loaded = interlock_workflow::load(&text, Format::Json, &interlock_workflow::Limits::MAX);
    let workflow: Workflow = loaded.unwrap_or_else(|problems| panic!("{problems:?}")).workflow;
    let document = json::parse(DATA, &Limits::STATE).expect("JSON");
    let data = Context::from(Json::of(document.root()).as_object().expect("an object").clone());
    let fresh = || Run { position: Some(Position::start(&workflow, "run_1".to_owned(), 0, None)), ..Run::default() };
    let mut run = fresh();
    rate(|| {
        let asked = TransitionAsked { event: "NEXT", data: &data, expected_revision: None };
        match transition(&workflow, black_box(&run), &asked, 0) {
            Ok(Step::Move { id, .. }) => move_to_state(&mut run, &workflow, id, &data),
            Ok(Step::Ask { .. }) => panic!("nobody is asked here"),
            // The limit of transitions, which the other engine does not have.
            Err(_) => run = fresh(),
        }
        black_box(&run);
    })
}

fn theirs(text: &str) -> f64 {
    let definition: MachineDefinition = serde_json::from_str(text).expect("a definition");
    let data: serde_json::Value = serde_json::from_str(DATA).expect("JSON");
    let (mut state, mut context) = (definition.initial.clone(), definition.context.clone());
    rate(|| {
        let moved = resolve_transition(black_box(&state), "NEXT", &data, &context, &definition).expect("a transition");
        state = moved.new_state;
        context = moved.new_context;
        black_box(&context);
    })
}

fn main() {
    println!("states     ours/s    statewright/s   ratio   limit");
    let mut first = None;
    for states in [3, 10, 100, 1_000] {
        let text = definition(states);
        // Turn by turn: whatever else the machine does is borne by both.
        let rounds: Vec<(f64, f64)> = (0..ROUNDS).map(|_| (ours(&text), theirs(&text))).collect();
        let (ours, theirs) = rounds.iter().copied().unzip();
        let ratio = median(rounds.iter().map(|(ours, theirs)| ours / theirs).collect());
        let (ours, theirs) = (median(ours), median(theirs));
        let limit = limits::judge("workflow-engine", ratio);
        println!("{states:>6} {ours:>10.0} {theirs:>16.0} {ratio:>7.1}   {limit}");
        let base = *first.get_or_insert(ours);
        if states == 1_000 {
            println!("1,000 states cost {:.2} times what 3 do", base / ours);
        }
    }
    limits::end();
}
