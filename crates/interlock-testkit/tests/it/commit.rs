//! Commits under faults: every call fails in turn, power cuts at every point, two writers, links that move.

use std::fs;
use std::io::ErrorKind;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;

use interlock_core::state::{CommitTarget, StateGuard, VerifiedTransition};
use interlock_core::{Code, Denial};
use interlock_runtime::commit::TEMPORARY_NAME;
use interlock_runtime::{HeldDirectory, PreparedCommit, StateFiles};
use interlock_testkit::faults::{Disk, Failing, Operation, Recording, after_power_cut};
use interlock_testkit::generate::Random;
use tempfile::TempDir;

const SCHEMA: &str =
    r#"{"type": "object", "properties": {"n": {"type": "integer"}, "pad": {"type": "string"}}, "required": ["n"]}"#;
const RULES: &str = r#"{"monotonic_integer_paths": ["$.n"]}"#;

struct World {
    directory: TempDir,
    guard: StateGuard,
}

impl World {
    fn new() -> World {
        let directory = tempfile::tempdir().expect("a directory");
        let guard = StateGuard::load(SCHEMA, Some(RULES), &[directory.path().to_str().expect("UTF-8")]);
        World { directory, guard: guard.expect("a guard") }
    }

    fn target(&self) -> PathBuf {
        self.directory.path().join("state.json")
    }

    fn commit(&self, current: &str, proposed: &str) -> Result<(), Denial> {
        let files = StateFiles::new(self.guard.clone());
        files.verify_transition_and_commit(current, proposed, self.target().to_str().expect("UTF-8")).map(drop)
    }

    fn contents(&self) -> Option<String> {
        fs::read_to_string(self.target()).ok()
    }

    fn names(&self) -> Vec<String> {
        names(self.directory.path())
    }

    fn transition<'t>(&self, current: &'t str, proposed: &'t str) -> VerifiedTransition<'t> {
        self.guard.verify_transition(current, proposed).expect("verified")
    }

    fn held(&self) -> HeldDirectory {
        HeldDirectory::open(self.directory.path()).expect("a directory")
    }

    fn commit_target(&self) -> CommitTarget {
        CommitTarget::parse(self.target().to_str().expect("UTF-8")).expect("a target")
    }
}

fn names(directory: &Path) -> Vec<String> {
    let mut names: Vec<_> = fs::read_dir(directory)
        .expect("a directory")
        .map(|entry| entry.expect("an entry").file_name().into_string().expect("UTF-8"))
        .collect();
    names.sort();
    names
}

const OLD: &str = r#"{"n":1}"#;
const NEW: &str = r#"{"n":2,"pad":"xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"}"#;

#[test]
fn every_call_that_fails_blocks_and_leaves_a_whole_state() {
    let mut failed = Vec::new();
    for existing_file in [false, true] {
        for error in [ErrorKind::StorageFull, ErrorKind::PermissionDenied, ErrorKind::Other] {
            for fail_at in 0.. {
                let world = World::new();
                if existing_file {
                    world.commit(OLD, OLD).expect("a first commit");
                    fs::set_permissions(world.target(), fs::Permissions::from_mode(0o640)).expect("a mode");
                }
                let failing = Failing::new(world.held(), fail_at, error);
                let transition = world.transition(OLD, NEW);
                let ruling = PreparedCommit::in_directory(&failing, world.commit_target(), transition).commit();
                let Some(call) = failing.failed() else {
                    assert!(ruling.is_ok(), "nothing failed and yet {:?}", ruling.err());
                    break;
                };
                failed.push(call);
                let denial = ruling.err().unwrap_or_else(|| panic!("{call} failed and the commit was acknowledged"));
                // Before anything is written it is the target's fault, afterwards the write's.
                let before_the_write = call == "compare" || call == "is_in_place" && fail_at == 1;
                let code = if before_the_write { Code::StateTarget } else { Code::StateWrite };
                assert_eq!(denial.code, code, "{call}: {denial}");
                let before = existing_file.then(|| OLD.to_owned());
                let contents = world.contents();
                assert!(contents == before || contents.as_deref() == Some(NEW), "{call}: {contents:?}");
                // The next commit finds its way from whatever is there, and leaves nothing else behind.
                let current = contents.unwrap_or_else(|| OLD.to_owned());
                world.commit(&current, NEW).unwrap_or_else(|denial| panic!("after {call} failed: {denial}"));
                assert_eq!(world.contents().as_deref(), Some(NEW));
                assert_eq!(world.names(), ["state.json"], "after {call} failed");
            }
        }
    }
    failed.sort_unstable();
    failed.dedup();
    assert_eq!(
        failed,
        ["compare", "create", "is_in_place", "lock", "rename", "set_mode", "sync", "sync_file", "write"]
    );
}

#[test]
fn a_directory_somebody_else_keeps_locked_is_a_denial() {
    let world = World::new();
    let failing = Failing::new(world.held(), 0, ErrorKind::WouldBlock);
    let commit = PreparedCommit::in_directory(&failing, world.commit_target(), world.transition(OLD, NEW));
    let denial = commit.commit().expect_err("denied");
    assert_eq!(denial.code, Code::StateWrite);
    assert!(denial.message.contains("another commit"), "{denial}");
    assert!(world.names().is_empty());
}

/// What a commit does to the disk, recorded on a real one.
fn recorded(existing_file: bool, litter: bool) -> (Disk, Vec<Operation>) {
    let world = World::new();
    let mut before = Disk::new();
    if existing_file {
        world.commit(OLD, OLD).expect("a first commit");
        before.insert("state.json".to_owned(), OLD.as_bytes().to_vec());
    }
    if litter {
        fs::write(world.directory.path().join(TEMPORARY_NAME), "half a sta").expect("litter");
        before.insert(TEMPORARY_NAME.to_owned(), b"half a sta".to_vec());
    }
    let recording = Recording::new(world.held());
    let commit = PreparedCommit::in_directory(&recording, world.commit_target(), world.transition(OLD, NEW));
    let _committed = commit.commit().expect("committed");
    (before, recording.operations())
}

/// Whether every power cut leaves the old or the new state, and the new one once the commit was acknowledged.
fn survives_power_cuts(before: &Disk, operations: &[Operation]) -> Result<usize, String> {
    let (old, mut count) = (before.get("state.json"), 0);
    for length in 0..=operations.len() {
        for disk in after_power_cut(before, &operations[..length]) {
            let state = disk.get("state.json");
            let is_new = state.map(Vec::as_slice) == Some(NEW.as_bytes());
            if !is_new && (state != old || length == operations.len()) {
                return Err(format!(
                    "after {length} operations: {:?}",
                    state.map(|bytes| String::from_utf8_lossy(bytes))
                ));
            }
            count += 1;
        }
    }
    Ok(count)
}

#[test]
fn no_power_cut_leaves_less_than_a_whole_state() {
    for (existing_file, litter) in [(false, false), (true, false), (false, true), (true, true)] {
        let (before, operations) = recorded(existing_file, litter);
        let count = survives_power_cuts(&before, &operations).expect("safe");
        assert!(count > 20, "only {count} disks were looked at");
    }
}

#[test]
fn the_power_cut_model_would_notice_a_missing_sync() {
    let (before, operations) = recorded(true, false);
    for missing in [Operation::SyncFile { file: 0 }, Operation::SyncDirectory] {
        let without: Vec<_> = operations.iter().filter(|operation| **operation != missing).cloned().collect();
        assert_eq!(without.len() + 1, operations.len(), "{missing:?} is not in {operations:?}");
        assert!(survives_power_cuts(&before, &without).is_err(), "nobody missed {missing:?}");
    }
}

#[test]
fn of_two_writers_with_the_same_current_state_exactly_one_wins() {
    let world = World::new();
    world.commit(r#"{"n":0}"#, r#"{"n":0}"#).expect("a first commit");
    for round in 0..40 {
        let current = world.contents().expect("a state");
        let winners = AtomicUsize::new(0);
        thread::scope(|scope| {
            for writer in 0..4 {
                let (world, current, winners) = (&world, &current, &winners);
                scope.spawn(move || {
                    let proposed = format!(r#"{{"n":{},"pad":"{writer}"}}"#, round + 1);
                    match world.commit(current, &proposed) {
                        Ok(()) => drop(winners.fetch_add(1, Ordering::SeqCst)),
                        Err(denial) => assert_eq!(denial.code, Code::StateTarget, "{denial}"),
                    }
                });
            }
        });
        assert_eq!(winners.load(Ordering::SeqCst), 1, "round {round}");
    }
}

#[test]
fn a_new_file_is_private_and_an_old_one_keeps_its_mode() {
    let world = World::new();
    let mode = || fs::metadata(world.target()).expect("a file").permissions().mode() & 0o7777;
    world.commit(OLD, OLD).expect("committed");
    assert_eq!(mode(), 0o600);
    fs::set_permissions(world.target(), fs::Permissions::from_mode(0o644)).expect("a mode");
    world.commit(OLD, NEW).expect("committed");
    assert_eq!(mode(), 0o644);
}

#[test]
fn links_that_move_during_a_commit_never_lead_outside() {
    let outside = tempfile::tempdir().expect("a directory");
    let inside = tempfile::tempdir().expect("a directory");
    fs::create_dir(inside.path().join("real")).expect("a directory");
    let door = inside.path().join("door");
    symlink("real", &door).expect("a link");
    let guard = StateGuard::load(SCHEMA, Some(RULES), &[inside.path().to_str().expect("UTF-8")]).expect("a guard");
    let files = StateFiles::new(guard);
    let stop = AtomicBool::new(false);
    let (mut committed, mut blocked, mut wrong) = (0, 0, Vec::new());
    thread::scope(|scope| {
        scope.spawn(|| {
            let (spare, mut random) = (inside.path().join("spare"), Random::new(1));
            while !stop.load(Ordering::Relaxed) {
                for to in [outside.path(), Path::new("real")] {
                    symlink(to, &spare).expect("a link");
                    fs::rename(&spare, &door).expect("renamed");
                }
                // Long enough for some commits to go through between two moves.
                thread::sleep(std::time::Duration::from_micros(random.bits() % 3_000));
            }
        });
        let target = door.join("state.json");
        for round in 0..1_500 {
            let real = inside.path().join("real/state.json");
            let current = fs::read_to_string(&real).unwrap_or_else(|_| r#"{"n":0}"#.to_owned());
            let proposed = format!(r#"{{"n":{round}}}"#);
            match files.verify_transition_and_commit(
                current.as_str(),
                proposed.as_str(),
                target.to_str().expect("UTF-8"),
            ) {
                Ok(_) => committed += 1,
                Err(denial) => {
                    // Noticed before the write, or after it; never acknowledged.
                    let noticed = denial.code == Code::StateTarget || denial.message.contains("moved or replaced");
                    if !noticed {
                        wrong.push(denial.to_string());
                    }
                    blocked += 1;
                }
            }
        }
        stop.store(true, Ordering::Relaxed);
    });
    assert_eq!(wrong, Vec::<String>::new());
    assert!(committed > 0 && blocked > 0, "{committed} committed, {blocked} blocked: the race was not run");
    assert!(names(outside.path()).is_empty(), "something was written outside the root");
}

#[test]
fn the_target_becoming_a_link_is_noticed() {
    let world = World::new();
    let outside = tempfile::tempdir().expect("a directory");
    let victim = outside.path().join("victim.json");
    fs::write(&victim, OLD).expect("a file");
    let files = StateFiles::new(world.guard.clone());
    let prepared = files.prepare(OLD, NEW, world.target().to_str().expect("UTF-8")).expect("verified");
    symlink(&victim, world.target()).expect("a link");
    let denial = prepared.commit().expect_err("denied");
    assert_eq!(denial.code, Code::StateTarget, "{denial}");
    assert_eq!(fs::read_to_string(&victim).expect("the victim"), OLD);
}

#[test]
fn what_somebody_puts_at_the_temporary_name_is_not_written_through() {
    let outside = tempfile::tempdir().expect("a directory");
    let victim = outside.path().join("victim");
    fs::write(&victim, "precious").expect("a file");
    let world = World::new();
    symlink(&victim, world.directory.path().join(TEMPORARY_NAME)).expect("a link");
    world.commit(OLD, NEW).expect("committed");
    assert_eq!(fs::read_to_string(&victim).expect("the victim"), "precious");
    assert_eq!(world.names(), ["state.json"]);

    let world = World::new();
    fs::create_dir(world.directory.path().join(TEMPORARY_NAME)).expect("a directory");
    assert_eq!(world.commit(OLD, NEW).expect_err("denied").code, Code::StateWrite);
    assert_eq!(world.contents(), None);
}

#[test]
fn a_pipe_or_directory_at_the_target_is_refused_without_waiting() {
    let world = World::new();
    let status = std::process::Command::new("mkfifo").arg(world.target()).status().expect("mkfifo");
    assert!(status.success());
    assert_eq!(world.commit(OLD, NEW).expect_err("denied").code, Code::StateTarget);
    fs::remove_file(world.target()).expect("removed");
    fs::create_dir(world.target()).expect("a directory");
    assert_eq!(world.commit(OLD, NEW).expect_err("denied").code, Code::StateTarget);
}

#[test]
fn a_root_that_comes_later_is_found_and_one_that_goes_is_missed() {
    let top = tempfile::tempdir().expect("a directory");
    let root = top.path().join("later");
    let guard = StateGuard::load(SCHEMA, Some(RULES), &[root.to_str().expect("UTF-8")]).expect("a guard");
    let files = StateFiles::new(guard);
    let target = root.join("state.json");
    let target = target.to_str().expect("UTF-8");
    assert_eq!(files.verify_transition_and_commit(OLD, NEW, target).expect_err("denied").code, Code::StateTarget);
    fs::create_dir(&root).expect("a directory");
    assert!(files.verify_transition_and_commit(OLD, NEW, target).is_ok());
    fs::remove_dir_all(&root).expect("removed");
    assert_eq!(files.verify_transition_and_commit(OLD, NEW, target).expect_err("denied").code, Code::StateTarget);
    assert!(!root.exists());
    fs::create_dir(&root).expect("another directory");
    assert_eq!(files.verify_transition_and_commit(OLD, NEW, target).expect_err("denied").code, Code::StateTarget);
}

#[test]
fn a_directory_that_moves_away_is_not_committed_to() {
    let top = tempfile::tempdir().expect("a directory");
    let (root, outside) = (top.path().join("root"), top.path().join("outside"));
    fs::create_dir_all(root.join("team")).expect("a directory");
    fs::create_dir(&outside).expect("a directory");
    let guard = StateGuard::load(SCHEMA, Some(RULES), &[root.to_str().expect("UTF-8")]).expect("a guard");
    let files = StateFiles::new(guard);
    let target = root.join("team/state.json");
    let prepared = files.prepare(OLD, NEW, target.to_str().expect("UTF-8")).expect("verified");
    fs::rename(root.join("team"), outside.join("team")).expect("moved");
    assert_eq!(prepared.commit().expect_err("denied").code, Code::StateTarget);
    assert!(names(&outside.join("team")).is_empty());

    fs::rename(outside.join("team"), root.join("team")).expect("moved back");
    let prepared = files.prepare(OLD, NEW, target.to_str().expect("UTF-8")).expect("verified");
    fs::rename(&root, top.path().join("old")).expect("moved");
    fs::create_dir_all(root.join("team")).expect("another root");
    assert_eq!(prepared.commit().expect_err("denied").code, Code::StateTarget);
    let denial = files.verify_transition_and_commit(OLD, NEW, target.to_str().expect("UTF-8")).expect_err("denied");
    assert!(denial.code == Code::StateTarget && denial.message.contains("build the guard again"), "{denial}");
    assert!(names(&root.join("team")).is_empty() && names(&top.path().join("old/team")).is_empty());
}
