//! Kill the committing processes at random points, many times: the file is always a whole state, no acknowledged commit
//! is lost, and what is left behind is cleaned by the next commit.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::thread;
use std::time::Duration;

use interlock_core::state::StateGuard;
use interlock_runtime::StateFiles;
use interlock_testkit::generate::Random;

const ROUNDS: usize = 500;
const WORKERS: usize = 2;
/// Names the directory to commit to; its presence makes [`worker`] one.
const WORKER: &str = "INTERLOCK_KILL_TEST_DIRECTORY";

const SCHEMA: &str = r#"{"type": "object", "properties": {"n": {"type": "integer"}, "pad": {"type": "string"}}, "required": ["n", "pad"]}"#;
const RULES: &str = r#"{"monotonic_integer_paths": ["$.n"]}"#;

fn state(n: u64) -> String {
    format!(r#"{{"n":{n},"pad":"{}"}}"#, "x".repeat(3000 + usize::try_from(n % 7).expect("small") * 1000))
}

fn files(directory: &Path) -> StateFiles {
    StateFiles::new(StateGuard::load(SCHEMA, Some(RULES), &[directory.to_str().expect("UTF-8")]).expect("a guard"))
}

fn step_on_disk(directory: &Path) -> u64 {
    match fs::read_to_string(directory.join("state.json")) {
        Err(_) => 0,
        Ok(text) => {
            let digits: String = text.chars().skip(5).take_while(char::is_ascii_digit).collect();
            let n = digits.parse().unwrap_or_else(|_| panic!("torn: {text:.60}"));
            assert!(text == state(n), "torn or mixed: {text:.60}");
            n
        }
    }
}

fn commit_next(files: &StateFiles, directory: &Path) -> Option<u64> {
    let n = step_on_disk(directory);
    let (current, proposed) = (state(n), state(n + 1));
    let target = directory.join("state.json");
    let ruling =
        files.verify_transition_and_commit(current.as_str(), proposed.as_str(), target.to_str().expect("UTF-8"));
    ruling.ok().map(|_| n + 1)
}

/// Not a test of its own: what the other one starts and kills.
#[test]
fn worker() {
    let Some(directory) = std::env::var_os(WORKER) else { return };
    let directory = Path::new(&directory);
    let files = files(directory);
    let mut out = std::io::stdout();
    for _ in 0..100_000 {
        if let Some(n) = commit_next(&files, directory) {
            writeln!(out, "\nacknowledged {n}").and_then(|()| out.flush()).expect("the parent listens");
        }
    }
}

fn start(directory: &Path) -> (Child, BufReader<ChildStdout>) {
    let mut child = Command::new(std::env::current_exe().expect("this program"))
        .args(["--exact", "kill::worker", "--nocapture"])
        .env(WORKER, directory)
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("a worker");
    let out = BufReader::new(child.stdout.take().expect("a pipe"));
    (child, out)
}

/// Reads on until a commit was acknowledged.
fn next_acknowledged(out: &mut BufReader<ChildStdout>) -> u64 {
    let mut lines = out.lines().map_while(Result::ok);
    lines.find_map(|line| line.strip_prefix("acknowledged ")?.parse().ok()).expect("a worker that commits")
}

fn last_acknowledged(out: BufReader<ChildStdout>) -> u64 {
    let lines = out.lines().map_while(Result::ok);
    lines.filter_map(|line| line.strip_prefix("acknowledged ")?.parse().ok()).max().unwrap_or(0)
}

#[test]
fn five_hundred_kills_lose_nothing() {
    let directory = tempfile::tempdir().expect("a directory");
    let mut random = Random::new(500);
    let (mut acknowledged, mut interrupted) = (0, 0);
    for round in 0..ROUNDS {
        let mut workers: Vec<_> = (0..WORKERS).map(|_| start(directory.path())).collect();
        // Any moment of a start, and in every fourth round one when commits are under way.
        if round % 4 == 0 {
            acknowledged = acknowledged.max(next_acknowledged(&mut workers[0].1));
        }
        thread::sleep(Duration::from_micros(random.bits() % 9_000));
        for (child, _) in &mut workers {
            child.kill().expect("killed");
            child.wait().expect("gone");
        }
        for (_, out) in workers {
            acknowledged = acknowledged.max(last_acknowledged(out));
        }
        let on_disk = step_on_disk(directory.path());
        assert!(on_disk >= acknowledged, "round {round}: {acknowledged} was acknowledged, {on_disk} is on the disk");
        interrupted += usize::from(fs::read_dir(directory.path()).expect("a directory").count() > 1);
        acknowledged = on_disk;
    }
    assert!(acknowledged > 100, "only {acknowledged} commits: the workers hardly ran");
    assert!(interrupted > 0, "no kill ever hit a commit under way");
    let files = files(directory.path());
    assert!(commit_next(&files, directory.path()).is_some());
    assert_eq!(fs::read_dir(directory.path()).expect("a directory").count(), 1, "litter");
}
