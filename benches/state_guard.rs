//! What the state guard costs, as ratios to `serde_json` within one run.
//!
//! ```text
//! cargo bench --bench state_guard                        times, interleaved rounds, minimum of 30
//! cargo bench --bench state_guard -- --memory            peak memory as a multiple of the input
//! benches/instructions                                   instructions per byte, under callgrind
//! ```

mod limits;

use std::fs;
use std::hint::black_box;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use interlock_core::json::{self, Limits};
use interlock_core::state::StateGuard;
use interlock_runtime::StateFiles;

const ROUNDS: usize = 30;
/// How long one contender runs in one round.
const ROUND_TIME: Duration = Duration::from_millis(20);

const SCHEMA: &str = r#"{
    "type": "object",
    "properties": {
        "agent_id": {"type": "string"},
        "status": {"type": "string", "enum": ["pending", "running", "completed"]},
        "step_count": {"type": "integer"},
        "tasks": {
            "type": "array",
            "items": {
                "type": "object",
                "properties": {"id": {"type": "string"}, "done": {"type": "boolean"}},
                "required": ["id", "done"],
                "additionalProperties": false
            }
        }
    },
    "required": ["agent_id", "status", "step_count", "tasks"],
    "additionalProperties": false
}"#;

const RULES: &str = r#"{
    "immutable_paths": ["$.agent_id"],
    "monotonic_integer_paths": ["$.step_count"],
    "ordered_enum_paths": {"$.status": ["pending", "running", "completed"]},
    "keyed_object_array_paths": {"$.tasks": {"key": "id", "monotonic_boolean_fields": ["done"]}}
}"#;

/// The sizes: two tasks make the document's example of 132 bytes.
const SIZES: [(&str, usize); 3] = [("132 B", 132), ("10 KB", 10_000), ("1 MB", 1_000_000)];

/// A task list of about `bytes` bytes, written as Python's `json.dumps` writes it.
fn task_list(bytes: usize, step: usize) -> String {
    let mut text = format!(r#"{{"agent_id": "a1", "status": "running", "step_count": {step}, "tasks": ["#);
    let mut id = 1;
    loop {
        // Done tasks of the first step are done in the second as well.
        let done = id % (4 / step) == 0;
        text.push_str(&format!(r#"{{"id": "task-{id}", "done": {done}}}"#));
        id += 1;
        if id > 2 && text.len() + 2 >= bytes {
            break;
        }
        text.push_str(", ");
    }
    text.push_str("]}");
    text
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).filter(|argument| argument != "--bench").collect();
    match arguments.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
        [] => times(),
        ["--memory"] => memory(),
        ["--memory-of", what, shape] => memory_of(what, shape),
        ["--repeat", what, bytes, count] => repeat(what, number(bytes), number(count)),
        other => panic!("unknown arguments {other:?}"),
    }
    limits::end();
}

fn number(text: &str) -> usize {
    text.parse().expect("a number")
}

/// One thing to measure.
type Contender<'a> = (&'a str, Box<dyn FnMut() + 'a>);

/// The least time of one call of each contender, over interleaved rounds.
fn measure(contenders: &mut [Contender<'_>]) -> Vec<f64> {
    let mut best = vec![f64::INFINITY; contenders.len()];
    let counts: Vec<u32> = contenders
        .iter_mut()
        .map(|(_, run)| {
            let start = Instant::now();
            run();
            let once = start.elapsed().max(Duration::from_nanos(100));
            u32::try_from((ROUND_TIME.as_nanos() / once.as_nanos()).clamp(3, 100_000)).expect("clamped")
        })
        .collect();
    for _ in 0..ROUNDS {
        for ((best, (_, run)), count) in best.iter_mut().zip(contenders.iter_mut()).zip(&counts) {
            let start = Instant::now();
            for _ in 0..*count {
                run();
            }
            *best = best.min(start.elapsed().as_secs_f64() / f64::from(*count));
        }
    }
    best
}

fn times() {
    let guard = StateGuard::load(SCHEMA, Some(RULES), &[]).expect("the guard");
    println!("| size | measure | time | ratio | limit |");
    println!("|---|---|---|---|---|");
    for (name, bytes) in SIZES {
        let (current, proposed) = (task_list(bytes, 1), task_list(bytes, 2));
        let mut contenders: Vec<Contender<'_>> = vec![
            (
                "serde_json::from_str::<Value>",
                Box::new(|| drop(black_box(serde_json::from_str::<serde_json::Value>(&proposed).expect("JSON")))),
            ),
            ("strict parse", Box::new(|| drop(black_box(json::parse(&proposed, &Limits::STATE).expect("JSON"))))),
            (
                "payload verification",
                Box::new(|| {
                    let state = guard.verify_payload(proposed.as_str()).expect("verified");
                    black_box(state.proof());
                }),
            ),
            (
                "serde_json, both texts",
                Box::new(|| {
                    drop(black_box(serde_json::from_str::<serde_json::Value>(&current).expect("JSON")));
                    drop(black_box(serde_json::from_str::<serde_json::Value>(&proposed).expect("JSON")));
                }),
            ),
            (
                "transition verification",
                Box::new(|| {
                    let transition = guard.verify_transition(current.as_str(), proposed.as_str()).expect("verified");
                    black_box(transition.proof());
                }),
            ),
        ];
        let best = measure(&mut contenders);
        let row = |what: &str, time: f64, base: f64, id: &str| {
            let limit = if id.is_empty() { String::new() } else { limits::judge(id, time / base) };
            println!("| {name} ({} B) | {what} | {} | {:.2}x | {limit} |", proposed.len(), shown(time), time / base);
        };
        row("`serde_json` parse", best[0], best[0], "");
        row("strict parse", best[1], best[0], "state-parse");
        row("payload verification", best[2], best[0], "state-payload");
        row("transition verification (of both parses)", best[4], best[3], "state-transition");
    }
    commit_times();
}

fn shown(seconds: f64) -> String {
    if seconds < 1e-3 { format!("{:.2} µs", seconds * 1e6) } else { format!("{:.2} ms", seconds * 1e3) }
}

/// A commit after its verdict, against the bare calls on the same bytes in the same directory.
fn commit_times() {
    let directory = tempfile::tempdir_in(target_directory()).expect("a directory on the disk of the build");
    let root = directory.path().to_str().expect("UTF-8").to_owned();
    let guard = StateGuard::load(SCHEMA, Some(RULES), &[&root]).expect("the guard");
    let files = StateFiles::new(guard);
    for (name, bytes) in SIZES {
        let text = task_list(bytes, 1);
        let target = directory.path().join("state.json");
        let bare = directory.path().join("bare.json");
        let _ = fs::remove_file(&target);
        let target_path = target.to_str().expect("UTF-8");
        drop(files.verify_transition_and_commit(text.as_str(), text.as_str(), target_path).expect("committed"));
        let canonical = fs::read(&target).expect("the state");
        let (mut best_commit, mut best_bare) = (f64::INFINITY, f64::INFINITY);
        for _ in 0..ROUNDS * 4 {
            let prepared = files.prepare(text.as_str(), text.as_str(), target_path).expect("verified");
            let start = Instant::now();
            let committed = black_box(prepared.commit().expect("committed"));
            best_commit = best_commit.min(start.elapsed().as_secs_f64());
            drop(committed);
            // After a verdict too: what a verification leaves in caches and free lists is the same for both.
            let prepared = files.prepare(text.as_str(), text.as_str(), target_path).expect("verified");
            let start = Instant::now();
            bare_commit(directory.path(), &bare, prepared.transition().proposed().canonical().as_bytes());
            best_bare = best_bare.min(start.elapsed().as_secs_f64());
        }
        println!(
            "| {name} ({} B) | bare write, sync, rename, sync | {} | 1.00x | |",
            canonical.len(),
            shown(best_bare)
        );
        let ratio = best_commit / best_bare;
        println!(
            "| {name} ({} B) | commit after the verdict | {} | {ratio:.2}x | {} |",
            canonical.len(),
            shown(best_commit),
            limits::judge("state-commit", ratio)
        );
    }
}

fn bare_commit(directory: &Path, target: &Path, bytes: &[u8]) {
    use std::io::Write;
    let temporary = directory.join("bare.tmp");
    let mut file = fs::File::create_new(&temporary).expect("a file");
    file.write_all(bytes).expect("written");
    file.sync_all().expect("synced");
    fs::rename(&temporary, target).expect("renamed");
    fs::File::open(directory).expect("the directory").sync_all().expect("synced");
}

fn target_directory() -> PathBuf {
    std::env::current_exe().expect("this program").parent().expect("its directory").to_owned()
}

/// Texts of one megabyte that are hard on memory, each in its own way.
const SHAPES: [&str; 6] = ["tasks", "numbers", "arrays", "objects", "deletes", "escapes"];

fn shape(name: &str) -> String {
    let fill = |before: &str, unit: &str, after: &str| {
        let count = (1_000_000 - before.len() - after.len()) / unit.len();
        format!("{before}{}{after}", unit.repeat(count))
    };
    match name {
        "tasks" => task_list(1_000_000, 1),
        "numbers" => fill("[0", ",0", "]"),
        "arrays" => fill("[[]", ",[]", "]"),
        "objects" => fill("[{}", ",{}", "]"),
        "deletes" => fill("[\"", "\u{7f}", "\"]"),
        "escapes" => fill("[\"", "\\u007f", "\"]"),
        other => panic!("unknown shape {other}"),
    }
}

fn memory() {
    println!("| 1 MB of | measure | peak memory, input included | limit |");
    println!("|---|---|---|---|");
    for shape in SHAPES {
        for what in ["parse", "payload"] {
            let output = Command::new(std::env::current_exe().expect("this program"))
                .args(["--memory-of", what, shape])
                .output()
                .expect("a child");
            let id = if shape == "tasks" { "state-memory-tasks" } else { "state-memory-hostile" };
            let peak = String::from_utf8_lossy(&output.stdout).trim().to_owned();
            let limit = limits::judge(id, peak.parse().expect("a number"));
            println!("| {shape} | {what} | {peak}x | {limit} |");
        }
    }
}

/// Prints how much the peak of this process rose, as a multiple of the input, with the input counted once.
fn memory_of(what: &str, name: &str) {
    let text = shape(name);
    let guard = if name == "tasks" {
        StateGuard::load(SCHEMA, None, &[])
    } else {
        let schema = r#"{"type": "array", "items": ITEM}"#;
        let item = match name {
            "numbers" => r#"{"type": "integer"}"#,
            "arrays" => r#"{"type": "array", "items": {"type": "null"}}"#,
            "objects" => r#"{"type": "object", "properties": {}}"#,
            _ => r#"{"type": "string"}"#,
        };
        StateGuard::load(&schema.replace("ITEM", item), None, &[])
    }
    .expect("the guard");
    let before = peak_kib();
    match what {
        "parse" => drop(black_box(json::parse(&text, &Limits::STATE).expect("JSON"))),
        _ => {
            let state = guard.verify_payload(text.as_str()).expect("verified");
            black_box(state.proof());
        }
    }
    println!("{:.1}", 1.0 + (peak_kib() - before) * 1024.0 / text.len() as f64);
}

/// The most memory this process ever had resident.
fn peak_kib() -> f64 {
    let status = fs::read_to_string("/proc/self/status").expect("Linux");
    let line = status.lines().find(|line| line.starts_with("VmHWM:")).expect("VmHWM");
    line.split_whitespace().nth(1).and_then(|kib| kib.parse().ok()).expect("a number")
}

/// For callgrind: the same work `count` times.
fn repeat(what: &str, bytes: usize, count: usize) {
    let guard = StateGuard::load(SCHEMA, Some(RULES), &[]).expect("the guard");
    let (current, proposed) = (task_list(bytes, 1), task_list(bytes, 2));
    eprintln!("{}", proposed.len());
    for _ in 0..count {
        match what {
            "serde_json" => drop(black_box(serde_json::from_str::<serde_json::Value>(&proposed).expect("JSON"))),
            "parse" => drop(black_box(json::parse(&proposed, &Limits::STATE).expect("JSON"))),
            "payload" => {
                let state = guard.verify_payload(proposed.as_str()).expect("verified");
                black_box(state.proof());
            }
            "transition" => {
                let transition = guard.verify_transition(current.as_str(), proposed.as_str()).expect("verified");
                black_box(transition.proof());
            }
            other => panic!("unknown measure {other}"),
        }
    }
}
