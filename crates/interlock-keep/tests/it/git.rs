//! Real git: whatever it destroys comes back, and git itself agrees.

use std::os::unix::fs::MetadataExt;

use interlock_keep::{Fate, FaultKind, Limits};

use crate::world::{LEAVE_OUT, World, set_mode, undo};

/// A repository with three commits, a branch, a stash, staged and unstaged changes, untracked and ignored files.
fn repository() -> World {
    let world = World::new();
    world.shell(
        "git init -q -b main --template= .
         echo one > a; mkdir dir; echo one > dir/b; echo '*.log' > .gitignore; git add .; git commit -qm one
         echo two > a; git commit -qam two; git branch side HEAD~1; echo three > a; git commit -qam three
         git checkout -q side; echo side > s; git add s; git commit -qm side; git checkout -q main
         echo stashed > dir/b; git stash -q; echo again > a; git stash -q
         echo staged > dir/b; git add dir/b; echo unstaged > a; echo untracked > u; echo ignored > i.log
         git config user.name A; git config user.email a@example.com",
    );
    world
}

/// What git says about a repository.
fn said(world: &World) -> String {
    world.shell(
        "export GIT_OPTIONAL_LOCKS=0; git status --porcelain=v2 --branch --ignored; git stash list; git for-each-ref; git log --all --format='%H %s'
         git reflog; git -c diff.autoRefreshIndex=false diff; git diff --cached; git fsck --full 2>&1",
    )
}

fn comes_back(destroying: &str) {
    let mut world = repository();
    let said_before = said(&world);
    let (looked, before) = (world.tree(), world.keep());
    world.shell(destroying);
    let after = world.keep();
    let changes = world.store.changes(&before, &after).expect("changes");
    assert!(!changes.is_empty(), "{destroying}: nothing changed");
    let undone = world.undo(&before, &after);
    assert!(undone.paths.iter().all(|(_, fate)| *fate == Fate::Restored), "{destroying}: {undone:?}");
    assert_eq!(world.tree(), looked, "{destroying}");
    assert_eq!(said(&world), said_before, "{destroying}");
    // And forward again.
    world.undo(&undone.kept, &undone.after);
    let forward = world.keep();
    assert_eq!(world.store.changes(&after, &forward).expect("changes"), [], "{destroying}");
}

#[test]
fn whatever_git_destroys_comes_back() {
    for destroying in [
        "git reset -q --hard HEAD~2",
        "git checkout -q -- a",
        "git checkout -qf side",
        "git restore --staged --worktree .",
        "git clean -qfdx",
        "git stash drop -q",
        "git stash clear",
        "git branch -qD side",
        "git update-ref -d refs/heads/side",
        "git stash -q; git rebase -q side; git stash drop -q",
        "git commit -q --amend -am amended",
        "git gc -q --prune=now",
        "git reflog expire --expire=now --all; git gc -q --prune=now",
        "git stash clear; git reflog expire --expire=now --all; git prune --expire=now",
        "git reset -q --hard; git stash pop -q; rm u",
        "rm -rf .git",
        "rm -rf .git && git init -q --template= . && git add . && git commit -qm other",
        "git reset -q --hard; git merge -q side -m merged; git cherry-pick side~1 || git cherry-pick --abort || true",
        "git stash -q; FILTER_BRANCH_SQUELCH_WARNING=1 git filter-branch -f --msg-filter 'sed s/o/0/' HEAD > ../said 2>&1",
    ] {
        comes_back(destroying);
    }
}

#[test]
fn a_pack_that_a_program_writes_into_comes_back() {
    let mut world = World::with_limits(Limits::USUAL);
    world.shell(
        "git init -q -b main --template= .; head -c 3000000 /dev/urandom > noise; git add .; git commit -qm noise; git repack -qad",
    );
    let (looked, said_before, before) = (world.tree(), said(&world), world.keep());
    world.shell("chmod -R u+w .git/objects/pack; for pack in .git/objects/pack/*.pack; do echo x > \"$pack\"; done");
    let after = world.keep();
    world.undo(&before, &after);
    assert_eq!(world.tree(), looked);
    assert_eq!(said(&world), said_before);
}

#[test]
fn large_packs_are_kept_by_a_second_name_and_come_back() {
    let mut world = World::new();
    world.shell(
        "git init -q -b main --template= .; head -c 3000000 /dev/urandom > noise; git add .; git commit -qm noise; git repack -qad",
    );
    let pack = world.shell("echo .git/objects/pack/*.pack");
    let pack = world.path(pack.trim());
    let (looked, said_before, kept) = (world.tree(), said(&world), world.try_keep().expect("kept"));
    let linked =
        world.store_files("").into_iter().filter(|path| path.parent().is_some_and(|it| it.ends_with("linked")));
    let linked: Vec<_> = linked.collect();
    assert_eq!(linked.len(), 1, "{linked:?}");
    // The pack is not stored a second time, and not read again.
    assert!(kept.stored_bytes < 3_200_000, "only the file in the work tree: {}", kept.stored_bytes);
    let is_second_name = linked[0].metadata().expect("metadata").ino() == pack.metadata().expect("metadata").ino();
    world.shell("rm -rf .git noise");
    let after = world.keep();
    world.undo(&kept.id, &after);
    assert_eq!(world.tree(), looked);
    assert_eq!(said(&world), said_before);
    if is_second_name {
        // A program that writes into the file itself is found, before anything is brought back.
        set_mode(&pack, 0o644);
        world.shell(&format!("printf x | dd of={} bs=1 seek=2000000 conv=notrunc status=none", pack.display()));
        set_mode(&pack, 0o444);
        world.shell("rm -rf .git; echo left > noise");
        let looked = world.tree();
        let after = world.keep();
        let plan = world.store.plan(&undo(&kept.id, &after, &[]), LEAVE_OUT, 5).expect("a plan");
        let fault = world.store.carry_out(&plan, LEAVE_OUT, 6).expect_err("damaged");
        assert_eq!(fault.kind(), FaultKind::Damaged, "{fault}");
        assert_eq!(world.tree(), looked, "nothing was touched");
    }
}
