//! What a ruling costs once the evidence is at hand, and that it costs the same however much is configured.
//!
//!     cargo bench --bench decide                 times, and instruction counts if valgrind is installed
//!     … -- --repeat TYPES COUNT                  what is run under valgrind

mod limits;

use std::collections::BTreeMap;
use std::fmt::Write;
use std::hint::black_box;
use std::process::Command;
use std::time::Instant;

use interlock_core::Digest;
use interlock_core::action::{
    ActionContext, ActionName, Agent, AgentKind, BudgetLimits, Check, Conversation, Door, Engine, Evidence, Facts,
    Permissions, Profile, Status, StepNumber, decide,
};
use interlock_core::bundle::Bundle;

struct Asked {
    bundle: Bundle,
    agent: Agent,
    conversation: Conversation,
    facts: Facts,
    evidence: Evidence,
}

/// A bundle with so many types and as many rules, and a request for one of them.
fn asked(types: usize) -> Asked {
    let mut text = String::new();
    for number in 0..types {
        let _ = write!(text, "[actions.type_{number}]\nengine = \"tool_control\"\nrisk = \"low\"\n");
    }
    for number in 0..types {
        let _ = write!(text, "[[rule]]\naction = \"type_{number}\"\npath = \"/srv/{number}/**\"\nthen = \"deny\"\n");
    }
    let bundle = Bundle::load(&text, &BTreeMap::new(), false).expect("a bundle");
    let profile = Profile {
        agent_id: "agent_1".to_owned(),
        name: "a".to_owned(),
        kind: AgentKind::Supervised,
        principal_id: "p".to_owned(),
        description: None,
        framework: None,
        model: None,
        permissions: Permissions::default(),
        budget: BudgetLimits::default(),
        created_at: 0,
        registered_by: None,
    };
    let agent = Agent::registered(profile, Digest::of(&["token"]), AgentKind::Supervised.trust());
    let step = StepNumber::new(1).expect("not zero");
    let context = ActionContext { conversation: "c".to_owned(), step, observed: None };
    let action = ActionName::parse(&format!("type_{}", types / 2));
    let facts = Facts::new(Door::Verify, action, Digest::of(&["action"]), context);
    let checks = ["registered", "permitted", "rules", "parameters"];
    let evidence = Evidence {
        bundle: bundle.digest(),
        engine: Engine::ToolControl,
        version: 1,
        status: Status::Verified,
        risk: None,
        checks: checks.iter().map(|name| Check { name: (*name).into(), passed: true }).collect(),
        rules: None,
        matched: Vec::new(),
        certificate: None,
        hostile: false,
        call: None,
    };
    Asked { bundle, agent, conversation: Conversation::default(), facts, evidence }
}

fn once(asked: &Asked) {
    let Asked { bundle, agent, conversation, facts, evidence } = asked;
    let ruling = decide(bundle, agent, conversation, facts, Some(evidence), 1_794_744_030_000).expect("a ruling");
    assert!(black_box(ruling).decision.lets_run());
}

const SIZES: [usize; 3] = [10, 1_000, 10_000];

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).filter(|argument| argument != "--bench").collect();
    if let [repeat, types, count] = arguments.as_slice()
        && repeat == "--repeat"
    {
        let asked = asked(types.parse().expect("a number"));
        (0..count.parse().expect("a number")).for_each(|_| once(&asked));
        return;
    }
    println!("| types and rules | p50 | limit | instructions | of those at 10 | limit |\n|---|---|---|---|---|---|");
    let mut first = None;
    for types in SIZES {
        let asked = asked(types);
        let mut times: Vec<f64> = (0..20_000)
            .map(|_| {
                let start = Instant::now();
                once(&asked);
                start.elapsed().as_secs_f64() * 1e6
            })
            .collect();
        times.sort_by(f64::total_cmp);
        let counted = instructions(types);
        let ratio = counted.map(|count| count / *first.get_or_insert(count));
        let shown =
            |value: Option<f64>, digits| value.map_or_else(|| "-".to_owned(), |value| format!("{value:.digits$}"));
        let time = times[times.len() / 2];
        let kept = limits::judge("decide-time", time);
        let grown = ratio.map(|ratio| limits::judge("decide-growth", ratio)).unwrap_or_default();
        println!("| {types} | {time:.2} µs | {kept} | {} | {}x | {grown} |", shown(counted, 0), shown(ratio, 2));
    }
    limits::end();
}

/// Instructions of one ruling: the difference between many and few, so that loading does not count.
fn instructions(types: usize) -> Option<f64> {
    let program = std::env::current_exe().ok()?;
    let count = |repeats: usize| {
        let output = Command::new("valgrind")
            .args(["--tool=callgrind", "--callgrind-out-file=/dev/null"])
            .arg(&program)
            .args(["--repeat", &types.to_string(), &repeats.to_string()])
            .output()
            .ok()?;
        let text = String::from_utf8_lossy(&output.stderr).into_owned();
        text.lines().find_map(|line| line.split("Collected : ").nth(1)?.trim().parse::<f64>().ok())
    };
    Some((count(1_100)? - count(100)?) / 1_000.0)
}
