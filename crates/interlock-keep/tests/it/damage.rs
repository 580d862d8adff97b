//! Stores that are not what they were: found before anything is written, and never passed on.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use interlock_keep::{FaultKind, Scope};

use crate::world::{LEAVE_OUT, World, files, set_mode, undo};

/// A store with one change in it, and how the project looks.
fn changed() -> (World, interlock_keep::SnapshotId, interlock_keep::SnapshotId) {
    let mut world = World::new();
    for number in 0..20 {
        world.write(&format!("d/{number}"), format!("text number {number} ").repeat(40));
    }
    world.write("large", (0..2_500_000_u32).map(|at| (at.wrapping_mul(2_654_435_761) >> 24) as u8).collect::<Vec<_>>());
    let before = world.keep();
    world.shell("rm -rf d large; echo new > new");
    let after = world.keep();
    (world, before, after)
}

#[test]
fn a_flipped_bit_anywhere_in_a_pack_is_found_before_anything_is_written() {
    let (world, before, after) = changed();
    let looked = world.tree();
    let pack = world.store_files(".pack").into_iter().max_by_key(|path| path.metadata().expect("metadata").len());
    let pack = pack.expect("a pack");
    let bytes = fs::read(&pack).expect("read");
    let (mut found, step) = (0, bytes.len() / 60);
    let last = (bytes.len() - 60..bytes.len()).step_by(7);
    for at in (0..bytes.len()).step_by(step).chain(last) {
        let mut flipped = bytes.clone();
        flipped[at] ^= 1 << (at % 8);
        fs::write(&pack, &flipped).expect("written");
        let mut store = world.reopened();
        let outcome = store
            .plan(&undo(&before, &after, &[]), LEAVE_OUT, 5)
            .and_then(|plan| store.carry_out(&plan, LEAVE_OUT, 6).map(|_| ()));
        let fault = outcome.expect_err("the flipped bit was not found");
        assert_eq!(fault.kind(), FaultKind::Damaged, "at {at}: {fault}");
        assert_eq!(world.tree(), looked, "at {at}");
        found += 1;
    }
    assert!(found > 60);
    fs::write(&pack, &bytes).expect("written");
    let mut store = world.reopened();
    let plan = store.plan(&undo(&before, &after, &[]), LEAVE_OUT, 5).expect("a plan");
    store.carry_out(&plan, LEAVE_OUT, 6).expect("whole again");
    assert!(world.path("d/19").exists());
}

#[test]
fn a_flipped_bit_in_any_file_of_the_store_is_found_or_does_not_matter() {
    let mut world = World::new();
    world.shell(
        "git init -q --template= .; head -c 1500000 /dev/urandom > .git/objects/huge; chmod 444 .git/objects/huge",
    );
    world.write("first", "one ".repeat(200));
    world.keep();
    world.write("second", "two ".repeat(200));
    let (looked_before, before) = (world.tree(), world.keep());
    world.shell("rm -rf .git first second; echo new > new");
    let (looked, after) = (world.tree(), world.keep());
    world.store = world.reopened();
    let mut found = 0;
    for path in files(&world.stores).into_iter().filter(|path| path.metadata().expect("metadata").len() > 0) {
        let bytes = fs::read(&path).expect("read");
        for at in (0..bytes.len()).step_by(bytes.len() / 11 + 1) {
            let mut flipped = bytes.clone();
            flipped[at] ^= 0x10;
            write_over(&path, &flipped);
            let place = format!("{} at {at}", path.display());
            let mut store = world.reopened();
            let outcome = store
                .plan(&undo(&before, &after, &[]), LEAVE_OUT, 5)
                .and_then(|plan| store.carry_out(&plan, LEAVE_OUT, 6));
            match outcome {
                Err(fault) => {
                    assert_eq!(fault.kind(), FaultKind::Damaged, "{place}: {fault}");
                    assert_eq!(world.tree(), looked, "{place}");
                    found += 1;
                }
                Ok(undone) => {
                    assert_eq!(world.tree(), looked_before, "{place}");
                    let plan = store.plan(&undo(&undone.kept, &undone.after, &[]), LEAVE_OUT, 7).expect("a plan");
                    store.carry_out(&plan, LEAVE_OUT, 8).expect("undone");
                }
            }
            drop(store);
            write_over(&path, &bytes);
        }
    }
    assert!(found > 30, "{found}");
}

/// Other bytes for a file that stays the same one, with its permissions.
fn write_over(path: &Path, bytes: &[u8]) {
    let mode = path.metadata().expect("metadata").mode();
    set_mode(path, 0o600);
    fs::write(path, bytes).expect("written");
    set_mode(path, mode);
}

#[test]
fn a_pack_that_is_cut_short_or_gone_is_stored_again_by_the_next_keep() {
    for cut in [true, false] {
        let (world, _, _) = changed();
        for pack in world.store_files(".pack") {
            match cut {
                true => fs::File::options().write(true).open(&pack).and_then(|file| file.set_len(100)).expect("cut"),
                false => fs::remove_file(&pack).expect("removed"),
            }
        }
        let looked = world.tree();
        let mut store = world.reopened();
        let before = store.keep(&Scope::All, LEAVE_OUT, 7).expect("kept").id;
        world.shell("rm new");
        let after = store.keep(&Scope::All, LEAVE_OUT, 8).expect("kept").id;
        let plan = store.plan(&undo(&before, &after, &[]), LEAVE_OUT, 9).expect("a plan");
        store.carry_out(&plan, LEAVE_OUT, 9).expect("carried out");
        assert_eq!(world.tree(), looked);
    }
}

#[test]
fn a_line_without_its_end_is_cut_off_and_any_other_damage_of_the_log_is_a_fault() {
    let (world, before, after) = changed();
    let log = world.store_files("/snapshots").remove(0);
    let whole = fs::read(&log).expect("read");
    for tail in [&b"17 1000 5 1"[..], &[0; 40], b"x"] {
        fs::write(&log, [&whole[..], tail].concat()).expect("written");
        let mut store = world.reopened();
        let ids: Vec<_> = store.snapshots().expect("snapshots").into_iter().map(|snapshot| snapshot.id).collect();
        assert_eq!(ids, [before.clone(), after.clone()]);
        let third = store.keep(&Scope::All, LEAVE_OUT, 9).expect("kept");
        assert_eq!((third.number, store.snapshots().expect("snapshots").len()), (3, 3));
    }
    for at in (0..whole.len() - 1).step_by(3) {
        let mut flipped = whole.clone();
        flipped[at] ^= 1;
        fs::write(&log, &flipped).expect("written");
        let mut store = world.reopened();
        assert_eq!(store.snapshots().expect_err("found").kind(), FaultKind::Damaged, "at {at}");
        assert_eq!(store.keep(&Scope::All, LEAVE_OUT, 9).expect_err("found").kind(), FaultKind::Damaged, "at {at}");
    }
}

#[test]
fn an_index_that_was_changed_is_not_used() {
    let mut world = World::new();
    world.write("file", "one");
    let first = world.keep();
    // It is written when the store is closed.
    world.store = world.reopened();
    let index = world.store_files("/seen").remove(0);
    let whole = fs::read(&index).expect("read");
    for at in (0..whole.len()).step_by(5) {
        let mut flipped = whole.clone();
        flipped[at] ^= 4;
        fs::write(&index, &flipped).expect("written");
        let mut store = world.reopened();
        let next = store.keep(&Scope::All, LEAVE_OUT, 2).expect("kept").id;
        assert_eq!(store.changes(&first, &next).expect("changes"), []);
    }
}

#[test]
fn a_snapshot_that_is_gone_is_said_to_be_gone() {
    let (mut world, before, after) = changed();
    let bounds = interlock_keep::Bounds { age_ms_max: 0, bytes_max: u64::MAX };
    world.store.prune(&bounds, &[], 1_000_000).expect("pruned");
    let fault = world.store.plan(&undo(&before, &after, &[]), LEAVE_OUT, 5).expect_err("gone");
    assert!(fault.to_string().contains(before.as_str()), "{fault}");
}
