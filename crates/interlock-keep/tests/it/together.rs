//! Several at once: keepers, undoers and pruners in threads and processes of their own.

use std::fs;
use std::sync::atomic::{AtomicBool, Ordering};

use interlock_keep::{Bounds, FaultKind, Limits, Scope, Store};

use crate::world::{LEAVE_OUT, World, undo};

#[test]
fn keepers_undoers_and_pruners_never_damage_the_store() {
    let world = World::new();
    for number in 0..50 {
        world.write(&format!("d{}/{number}", number % 5), format!("{number} ").repeat(100));
    }
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let (world, is_over) = (&world, &is_over);
        scope.spawn(move || {
            for round in 0_u32.. {
                if is_over.load(Ordering::Relaxed) {
                    return;
                }
                world.write(&format!("d{}/{}", round % 5, round % 50), format!("person {round}"));
            }
        });
        let keepers: Vec<_> = (0..3)
            .map(|keeper| {
                scope.spawn(move || {
                    let mut store = world.reopened();
                    for round in 0..12 {
                        let before = store.keep(&Scope::All, LEAVE_OUT, round).expect("kept").id;
                        world.write(&format!("k{keeper}/{round}"), "made by a call");
                        let after = store.keep(&Scope::All, LEAVE_OUT, round).expect("kept").id;
                        let named = format!("k{keeper}/{round}");
                        let ask = undo(&before, &after, &[&named]);
                        let plan = store.plan(&ask, LEAVE_OUT, round).expect("a plan");
                        store.carry_out(&plan, LEAVE_OUT, round).expect("carried out");
                        assert!(!world.path(&named).exists());
                    }
                })
            })
            .collect();
        let pruner = scope.spawn(move || {
            let mut store = world.reopened();
            for _ in 0..12 {
                // Nothing is too old for calls that run, but much is superfluous: packs are joined under their feet.
                store.prune(&Bounds { age_ms_max: u64::MAX, bytes_max: u64::MAX }, &[], 1_000).expect("pruned");
            }
        });
        let ended: Vec<_> = keepers.into_iter().chain([pruner]).map(std::thread::ScopedJoinHandle::join).collect();
        is_over.store(true, Ordering::Relaxed);
        assert!(ended.iter().all(Result::is_ok), "{ended:?}");
    });
    let mut store = world.reopened();
    let snapshots = store.snapshots().expect("snapshots");
    assert_eq!(snapshots.len(), 3 * 12 * 4);
    let pruned = store.prune(&Bounds { age_ms_max: u64::MAX, bytes_max: u64::MAX }, &[], 1_000).expect("pruned");
    assert_eq!(pruned.damaged, []);
    for pair in snapshots.windows(2) {
        for change in store.changes(&pair[0].id, &pair[1].id).expect("changes") {
            for node in [change.before, change.after].into_iter().flatten() {
                store.content(&node, u64::MAX).expect("every content is whole");
            }
        }
    }
}

#[test]
fn who_waits_too_long_for_another_is_told_and_nothing_is_kept() {
    let world = World::with_limits(Limits { wait_ms_max: 20, ..Limits::USUAL });
    let held = fs::File::create(world.stores.join(Store::name_of(&world.project)).join("lock")).expect("a lock");
    held.lock().expect("held");
    let mut world = world;
    let fault = world.try_keep().expect_err("busy");
    assert_eq!(fault.kind(), FaultKind::CannotKeep);
    drop(held);
    world.try_keep().expect("free");
}
