//! Generated sequences of shell and git commands on generated trees: after the undo of any part of them, everything is as
//! it was.

use interlock_keep::{Fate, Scope};
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRng, TestRunner};

use crate::world::{LEAVE_OUT, World, set_xattr, undo};

/// One thing an agent may do. Names are few, so that things meet; what cannot be done does nothing.
fn command() -> impl Strategy<Value = String> {
    let name =
        prop_oneof![Just("a"), Just("b"), Just("c"), Just("d/a"), Just("d/b"), Just("d/e/a"), Just("é ñ"), Just("-x")];
    let pair = (name.clone(), name.clone(), 0..100_000_u32);
    pair.prop_flat_map(|(one, other, number)| {
        let (one, other) = (format!("./{one}"), format!("./{other}"));
        prop_oneof![
            Just(format!("mkdir -p \"$(dirname '{one}')\"; echo {number} > '{one}'")),
            Just(format!("echo {number} >> '{one}'")),
            Just(format!("rm -rf '{one}'")),
            Just(format!("mkdir -p '{one}'")),
            Just(format!("mv -f '{one}' '{other}'")),
            Just(format!("cp -r '{one}' '{other}'")),
            Just(format!("ln -s '{other}' '{one}'")),
            Just(format!("ln '{other}' '{one}'")),
            Just(format!("ln -f '{other}' '{one}'")),
            Just(format!("chmod {} '{one}'", ["644", "755", "600", "400", "2755"][number as usize % 5])),
            Just(format!("head -c {} /dev/urandom > '{one}'", number * 20)),
            Just(format!("truncate -s {} '{one}'", number)),
            Just("git add -A".to_owned()),
            Just(format!("git commit -qm {number}")),
            Just("git stash -q".to_owned()),
            Just("git stash pop -q".to_owned()),
            Just("git stash clear".to_owned()),
            Just("git reset -q --hard".to_owned()),
            Just("git reset -q --hard HEAD~1".to_owned()),
            Just("git clean -qfdx".to_owned()),
            Just("git gc -q --prune=now".to_owned()),
            Just(format!("git checkout -qb branch-{number}")),
            Just("git checkout -q -".to_owned()),
            Just("git commit -q --amend -m amended".to_owned()),
            Just("git rebase -q --root".to_owned()),
            Just("git reflog expire --expire=now --all".to_owned()),
            Just("rm -rf .git; git init -q --template= .".to_owned()),
        ]
    })
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
        let (first_look, first_said, before) = (world.tree(), said(&world), world.keep());
        run(&world, &second);
        let (second_look, middle) = (world.tree(), world.keep());
        run(&world, &third);
        let (third_look, after) = (world.tree(), world.keep());
        // The last call alone, then both, each from what the one before left.
        for (from, to, look) in [(&middle, &after, &second_look), (&before, &middle, &first_look)] {
            let undone = world.undo(from, to);
            let is_whole = undone.paths.iter().all(|(_, fate)| matches!(fate, Fate::Restored | Fate::AsBefore));
            prop_assert!(is_whole, "{undone:?}");
            prop_assert_eq!(&world.tree(), look);
        }
        prop_assert_eq!(said(&world), first_said);
        // All of it at once, in another process, forward.
        let mut store = world.reopened();
        let now = store.keep(&Scope::All, LEAVE_OUT, 9).expect("kept").id;
        let plan = store.plan(&undo(&after, &now, &[]), LEAVE_OUT, 9).expect("a plan");
        store.carry_out(&plan, LEAVE_OUT, 9).expect("carried out");
        prop_assert_eq!(&world.tree(), &third_look);
        Ok(())
    });
    if let Err(why) = outcome {
        panic!("{why}");
    }
}
