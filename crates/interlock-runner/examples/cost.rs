//! What the runner costs over a bare shell: medians of `bash -c true`, in turns, in one run.
//!
//! `cargo run --release -p interlock-runner --example cost -- target/release/interlock-contain [TURNS]`

use std::env;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

fn main() {
    let mut arguments = env::args().skip(1);
    let runner = arguments.next().unwrap_or_else(|| "target/release/interlock-contain".to_owned());
    let turns: usize = arguments.next().and_then(|text| text.parse().ok()).unwrap_or(300);
    let project = env::current_dir().expect("a directory").to_string_lossy().into_owned();
    let home = env::var("HOME").unwrap_or_default();
    let write = format!(
        r#"{{"profile": "project", "write": ["{project}"], "locked": ["{project}/.git/hooks", "{project}/.git/config", "{project}/.claude", "{project}/.envrc"], "hidden": ["{home}/.ssh", "{home}/.aws", "{home}/.netrc"]}}"#
    );
    let bare = vec!["bash", "-c", "true"];
    let cases: Vec<(&str, Vec<&str>)> = vec![
        ("bare", bare.clone()),
        ("observed", vec![&runner, "-", "bash", "-c", "true"]),
        ("read", vec![&runner, r#"{"profile": "read"}"#, "bash", "-c", "true"]),
        ("project", vec![&runner, &write, "bash", "-c", "true"]),
    ];
    let mut times: Vec<Vec<Duration>> = vec![Vec::new(); cases.len()];
    for turn in 0..turns + 20 {
        for ((_, program), times) in cases.iter().zip(&mut times) {
            let began = Instant::now();
            let status = Command::new(program[0]).args(&program[1..]).stdin(Stdio::null()).status().expect("a process");
            assert!(status.success(), "{program:?}");
            if turn >= 20 {
                times.push(began.elapsed());
            }
        }
    }
    let median = |times: &mut Vec<Duration>| {
        times.sort();
        (times[times.len() / 2], times[times.len() * 95 / 100])
    };
    let (first, _) = median(&mut times[0]);
    for ((name, _), times) in cases.iter().zip(&mut times) {
        let (p50, p95) = median(times);
        println!(
            "{name:9} p50 {:.2} ms  p95 {:.2} ms  {:.2}x",
            p50.as_secs_f64() * 1e3,
            p95.as_secs_f64() * 1e3,
            p50.as_secs_f64() / first.as_secs_f64()
        );
    }
}
