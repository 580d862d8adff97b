//! Generated sequences of shell and git commands on generated trees: after the undo of any part of them, everything is as
//! it was.

use std::path::Path;

use interlock_keep::{Fate, Scope, Undone, Why};
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRng, TestRunner};

use crate::world::{LEAVE_OUT, Looks, World, set_xattr, undo};

/// Names as bash spells them: few, so that things meet, and some that are trouble.
fn name() -> impl Strategy<Value = String> {
    let names = [
        "a",
        "b",
        "c",
        "d",
        "d/a",
        "d/b",
        "d/e",
        "d/e/a",
        "d2",
        "d2/a",
        "é ñ",
        "-x",
        r"n\nl",
        r"\xff\xfe",
        r"d/\xe9\t",
    ];
    let long = ["l".repeat(255), format!("d/{}", "é".repeat(127)), vec!["deep"; 40].join("/")];
    let names: Vec<String> = names.into_iter().map(str::to_owned).chain(long).collect();
    proptest::sample::select(names).prop_map(|name| format!("$'./{name}'"))
}

/// One thing an agent may do; what cannot be done does nothing.
fn command() -> impl Strategy<Value = String> {
    (name(), name(), 0..100_000_u32).prop_flat_map(|(one, other, number)| {
        // Only a superuser reads a file that nobody may read; for others it is left out.
        let closed = if rustix::process::geteuid().is_root() { "000" } else { "400" };
        let mode = ["644", "755", "600", "400", "2755", closed][number as usize % 6];
        prop_oneof![
            files(&one, &other, number, mode),
            Just(format!("git commit -qm {number}; git checkout -qb branch-{}", number % 3)),
            proptest::sample::select(GIT.to_vec()).prop_map(str::to_owned),
        ]
    })
}

fn files(one: &str, other: &str, number: u32, mode: &str) -> impl Strategy<Value = String> + use<> {
    prop_oneof![
        Just(format!("mkdir -p \"$(dirname {one})\"; echo {number} > {one}")),
        Just(format!("echo {number} >> {one}")),
        Just(format!("rm -rf {one}")),
        Just(format!("mkdir -p {one}")),
        Just(format!("mv -f {one} {other}")),
        Just(format!("mv -fT {one} {other}")),
        Just(format!("mkdir -p {one} {other}; rm -rf {other}/*; mv -fT {one} {other}")),
        Just(format!("mv -f {one} swap; mv -f {other} {one}; mv -f swap {other}")),
        Just(format!("cp -r {one} {other}")),
        Just(format!("cp -al {one} {other}")),
        Just(format!("ln -s {other} {one}")),
        Just(format!("ln {other} {one}")),
        Just(format!("ln -f {other} {one}")),
        Just(format!("chmod {mode} {one}")),
        Just(format!("head -c {} /dev/urandom > {one}", number * 20)),
        Just(format!("truncate -s {number} {one}")),
        Just(format!("git restore {one}; git restore --staged {other}")),
        Just(format!("git worktree add -q {one}")),
        Just(format!(
            "git init -q --template= {one}; cd {one} && echo {number} > f && git add f && git commit -qm nested"
        )),
        Just("rm -f pipe; mkfifo pipe".to_owned()),
    ]
}

const GIT: [&str; 19] = [
    "git add -A",
    "git stash -q",
    "git stash pop -q",
    "git stash drop -q",
    "git stash clear",
    "git reset -q --hard",
    "git reset -q --hard HEAD~1",
    "git clean -qfdx",
    "git gc -q --prune=now",
    "git checkout -q -",
    "git branch -D branch-0 branch-1 branch-2",
    "git restore --staged --worktree .",
    "git commit -q --amend -m amended",
    "git rebase -q --root",
    "git reflog expire --expire=now --all",
    "git worktree prune",
    "git worktree list --porcelain | sed -n 's/^worktree //p' | tail -n 1 | xargs git worktree remove -f",
    "rm -rf .git; git init -q --template= .",
    "rm -rf ./*",
];

/// A tree without the one pipe, which is not kept.
fn kept_of(world: &World) -> Looks {
    let mut looks = world.tree();
    looks.remove(Path::new("pipe"));
    looks
}

/// Whether everything of an undo is as it was before.
fn is_whole(undone: &Undone) -> bool {
    let is_pipe = |path: &Path, fate: Fate| path == Path::new("pipe") && fate == Fate::NotKept(Why::Special);
    let mut paths = undone.paths.iter();
    paths.all(|(path, fate)| matches!(fate, Fate::Restored | Fate::AsBefore) || is_pipe(path, *fate))
}

fn run(world: &World, commands: &[String]) {
    for command in commands {
        world.shell(&format!("set +e; {{ {command}; }} > /dev/null 2>&1; true"));
    }
}

fn said(world: &World) -> String {
    world.shell(
        "set +e; export GIT_OPTIONAL_LOCKS=0; git status --porcelain --ignored 2>&1; git stash list 2>&1; git fsck 2>&1; true",
    )
}

#[test]
fn whatever_a_sequence_did_comes_back() {
    let sequences = (
        proptest::collection::vec(command(), 4..14),
        proptest::collection::vec(command(), 1..10),
        proptest::collection::vec(command(), 1..6),
    );
    // The same ones each time; `PROPTEST_CASES` asks for so many others.
    let others = std::env::var("PROPTEST_CASES").is_ok();
    let config = Config { failure_persistence: None, ..Config::default() };
    let mut runner = if others {
        TestRunner::new(config)
    } else {
        let config = Config { cases: 24, ..config };
        let algorithm = config.rng_algorithm;
        TestRunner::new_with_rng(config, TestRng::deterministic_rng(algorithm))
    };
    let outcome = runner.run(&sequences, |(first, second, third)| {
        let mut world = World::new();
        world.shell("git init -q --template= .; echo 0 > a; git add a; git commit -qm first");
        run(&world, &first);
        if world.path("a").is_file() {
            set_xattr(&world.path("a"), "user.note", "x");
        }
        let (first_look, first_said, before) = (kept_of(&world), said(&world), world.keep());
        run(&world, &second);
        let (second_look, middle) = (kept_of(&world), world.keep());
        run(&world, &third);
        let (third_look, after) = (kept_of(&world), world.keep());
        // The last call alone, then both, each from what the one before left.
        for (from, to, look) in [(&middle, &after, &second_look), (&before, &middle, &first_look)] {
            let undone = world.undo(from, to);
            prop_assert!(is_whole(&undone), "{undone:?}");
            prop_assert_eq!(&kept_of(&world), look);
        }
        prop_assert_eq!(said(&world), first_said);
        // All of it at once, in another process, forward.
        let mut store = world.reopened();
        let now = store.keep(&Scope::All, LEAVE_OUT, 9).expect("kept").id;
        let plan = store.plan(&undo(&after, &now, &[]), LEAVE_OUT, 9).expect("a plan");
        store.carry_out(&plan, LEAVE_OUT, 9).expect("carried out");
        prop_assert_eq!(&kept_of(&world), &third_look);
        Ok(())
    });
    if let Err(why) = outcome {
        panic!("{why}");
    }
}
