//! What it costs to keep a tree, of `cp -r` of the same tree; and to bring files back, of copying them.
//!
//!     cargo bench --bench keep [-- --runs N] [--in DIRECTORY] [small] [large] [many]
//!
//! What is compared takes turns, and a ratio is the median of those of all turns. The store stays open, as a daemon has it;
//! one line without a limit opens it anew for every keep, as a command would. What was written is on the disk before
//! anything is measured: otherwise the one measured first would wait for it.
//!
//! An undo removes the files that it replaces. A file system that tells the disk of every file that goes, and waits for it
//! (ext4 without a journal, mounted with `discard`), makes that slower than anything else in it; `--in` names another.

#[path = "limits.rs"]
mod limits;

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use interlock_core::places::REGENERABLE;
use interlock_keep::{LeaveOut, Limits, Scope, Snapshot, Store, Undo};

const LEAVE_OUT: LeaveOut<'static> = LeaveOut {
    is_regenerable: &|path| path.file_name().is_some_and(|name| REGENERABLE.iter().any(|known| name == *known)),
    is_secret: &|_| false,
};

struct Ground {
    base: tempfile::TempDir,
    project: PathBuf,
}

impl Ground {
    fn new(files: usize, bytes: usize) -> Ground {
        // Not among temporary files, which may be in memory: trees are on disks.
        let place = after("--in").unwrap_or_else(|| env!("CARGO_TARGET_TMPDIR").to_owned());
        let base = tempfile::Builder::new().prefix("keep-bench-").tempdir_in(place).expect("a directory");
        let project = base.path().join("project");
        for number in 0..files {
            let path = project.join(name(number));
            fs::create_dir_all(path.parent().expect("a parent")).expect("directories");
            fs::write(path, text(number, bytes)).expect("written");
        }
        // What was written long ago need not be read again.
        std::thread::sleep(Duration::from_millis(20));
        Ground { base, project }
    }

    fn stores(&self) -> PathBuf {
        self.base.path().join("stores")
    }

    fn store(&self) -> Store {
        Store::open(&self.stores(), &self.project, Limits::USUAL).expect("a store")
    }

    /// Everything that was written is on the disk.
    fn settle(&self) {
        let opened = fs::File::open(&self.project).expect("a directory");
        rustix::fs::syncfs(opened).expect("synced");
    }

    fn change(&self, count: usize, round: usize) {
        for number in 0..count {
            fs::write(self.project.join(name(number)), text(number + 7_919 * (round + 1), 2_000)).expect("written");
        }
    }

    /// How long `cp -r` of something takes. The copies stay until the end: a file system that has just removed files can be
    /// far slower at making new ones, and that would be counted against `cp`.
    fn copy(&self, of: &Path) -> Duration {
        let copied = tempfile::Builder::new().prefix("copied-").tempdir_in(&self.base).expect("a directory").keep();
        timed(|| {
            let done = Command::new("cp").arg("-r").arg(of).arg(&copied).status().expect("cp");
            assert!(done.success());
        })
    }
}

/// The word after another one of the command line.
fn after(word: &str) -> Option<String> {
    std::env::args().skip_while(|argument| argument != word).nth(1)
}

fn name(number: usize) -> PathBuf {
    PathBuf::from(format!("d{}/e{}/file-{number}.txt", number / 1_000, number / 100 % 10))
}

/// Text that can be compressed about as well as sources can.
fn text(seed: usize, bytes: usize) -> Vec<u8> {
    let mut state = (seed as u64 + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    let mut text = Vec::with_capacity(bytes + 16);
    while text.len() < bytes {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        let word = (state >> 33) % 4_096;
        write!(text, "word{word} ").expect("text");
    }
    text.truncate(bytes);
    text
}

fn timed(act: impl FnOnce()) -> Duration {
    let began = Instant::now();
    act();
    began.elapsed()
}

fn keep(store: &mut Store) -> Snapshot {
    store.keep(&Scope::All, LEAVE_OUT, 1).expect("kept")
}

/// Runs both in turns and prints the median of the ratios, beside the limit if there is one.
fn compare(limit: Option<&str>, what: &str, runs: usize, mut turn: impl FnMut(usize) -> (Duration, Duration)) {
    let mut rounds: Vec<(f64, Duration, Duration)> = (0..runs)
        .map(|round| {
            let (kept, copied) = turn(round);
            (kept.as_secs_f64() / copied.as_secs_f64(), kept, copied)
        })
        .collect();
    rounds.sort_by(|left, right| left.0.total_cmp(&right.0));
    let (ratio, kept, copied) = rounds[rounds.len() / 2];
    let bound = limit.map_or_else(String::new, |limit| limits::judge(limit, ratio));
    println!("{what:46} {kept:>10.1?} of {copied:>10.1?}  {ratio:6.3}x   {bound}");
}

/// Keeps a tree in which some files changed. Without a store that is open, one is opened for every keep.
fn incremental(ground: &Ground, limit: Option<&str>, what: &str, runs: usize, changed: usize) {
    let mut open = limit.map(|_| ground.store());
    keep(open.as_mut().unwrap_or(&mut ground.store()));
    compare(limit, what, runs, |round| {
        ground.change(changed, round);
        ground.settle();
        let mut kept = || timed(|| _ = keep(open.as_mut().unwrap_or(&mut ground.store())));
        if round % 2 == 0 {
            let kept = kept();
            (kept, ground.copy(&ground.project))
        } else {
            let copied = ground.copy(&ground.project);
            ground.settle();
            (kept(), copied)
        }
    });
}

fn first_time(ground: &Ground, limit: &str, what: &str, runs: usize) {
    compare(Some(limit), what, runs, |_| {
        let _ = fs::remove_dir_all(ground.stores());
        ground.settle();
        let copied = ground.copy(&ground.project);
        ground.settle();
        (timed(|| _ = keep(&mut ground.store())), copied)
    });
}

/// Every round has other files in place of a thousand, and brings them back.
fn undo(ground: &Ground, runs: usize) {
    let mut store = ground.store();
    compare(Some("keep-undo"), "undo of 1,000 files", runs, |round| {
        let before = keep(&mut store).id;
        ground.change(1_000, round + 100);
        let after = keep(&mut store).id;
        ground.settle();
        let copied = ground.copy(&ground.project.join("d0"));
        ground.settle();
        let undone = timed(|| {
            let undo = Undo { before, after, earlier: Vec::new(), overlapping: Vec::new(), named: Vec::new() };
            let plan = store.plan(&undo, LEAVE_OUT, 2).expect("a plan");
            let done = store.carry_out(&plan, LEAVE_OUT, 3).expect("carried out");
            assert_eq!(done.paths.len(), 1_000);
        });
        (undone, copied)
    });
}

/// Keeps a tree twice in a process of its own, and prints the most memory it had, in MB.
fn memory_of(project: &Path, stores: &Path) {
    let mut store = Store::open(stores, project, Limits::USUAL).expect("a store");
    for _ in 0..2 {
        store.keep(&Scope::All, LEAVE_OUT, 1).expect("kept");
    }
    let status = fs::read_to_string("/proc/self/status").expect("a status");
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).expect("a peak");
    let kilobytes: f64 = line.trim().trim_end_matches(" kB").parse().expect("a number");
    println!("{}", kilobytes / 1_000.0);
}

fn memory(ground: &Ground) {
    let _ = fs::remove_dir_all(ground.stores());
    let run = || {
        let output = Command::new(std::env::current_exe().expect("a path"))
            .args(["--memory-of", ground.project.to_str().expect("UTF-8"), ground.stores().to_str().expect("UTF-8")])
            .output()
            .expect("a process");
        String::from_utf8(output.stdout).expect("UTF-8").trim().parse::<f64>().expect("a number")
    };
    // The first keeps everything, the second reads what the first has seen.
    let megabytes = run().max(run());
    println!("{:46} {megabytes:.1} MB   {}", "memory at 100,000 files", limits::judge("keep-memory", megabytes));
}

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    if let [_, flag, project, stores, ..] = arguments.as_slice()
        && flag == "--memory-of"
    {
        return memory_of(Path::new(project), Path::new(stores));
    }
    let is_wanted = |which: &str| {
        let named: Vec<_> =
            arguments.iter().skip(1).filter(|word| ["small", "large", "many"].contains(&word.as_str())).collect();
        named.is_empty() || named.iter().any(|word| *word == which)
    };
    let runs = after("--runs").map_or(11, |runs| runs.parse().expect("a number"));
    if is_wanted("small") {
        let ground = Ground::new(10_000, 2_000);
        first_time(&ground, "keep-first", "10,000 files, first time", runs);
        incremental(&ground, Some("keep-none"), "10,000 files, none changed", runs, 0);
        incremental(&ground, None, "10,000 files, none changed, store opened anew", runs, 0);
        incremental(&ground, Some("keep-ten"), "10,000 files, ten changed", runs, 10);
        incremental(&ground, Some("keep-thousand"), "10,000 files, 1,000 changed", runs, 1_000);
        undo(&ground, runs);
    }
    if is_wanted("large") {
        first_time(&Ground::new(8, 1 << 27), "keep-first-large", "1 GB in 8 files, first time", runs.min(5));
    }
    if is_wanted("many") {
        let ground = Ground::new(100_000, 2_000);
        incremental(&ground, Some("keep-none-many"), "100,000 files, none changed", runs.min(5), 0);
        memory(&ground);
    }
    limits::end();
}
