//! Keeping, telling apart and bringing back, on plain trees.

use std::fs;
use std::os::unix::fs::{MetadataExt, symlink};
use std::path::{Path, PathBuf};

use interlock_keep::{Clash, Fate, Kind, Recoverable, Scope, Undo, Way, Why};

use crate::world::{LEAVE_OUT, World, fate, set_mode, set_xattr, undo};

fn furnished() -> World {
    let world = World::new();
    world.write("src/main.rs", "fn main() {}\n");
    world.write("src/deep/er/lib.rs", "//! lib\n".repeat(400));
    world.write("run.sh", "#!/bin/sh\n");
    world.write("empty.txt", "");
    world.write("big.bin", vec![7_u8; 3_500_000]);
    fs::create_dir_all(world.path("nothing/here")).expect("a directory");
    symlink("src/main.rs", world.path("link")).expect("a link");
    symlink("/nonexistent/place", world.path("dangling")).expect("a link");
    set_mode(&world.path("run.sh"), 0o755);
    set_mode(&world.path("src/deep"), 0o750);
    set_xattr(&world.path("src/main.rs"), "user.note", "kept");
    set_xattr(&world.path("nothing"), "user.note", "directory");
    world
}

#[test]
fn whatever_a_call_did_comes_back() {
    let mut world = furnished();
    let (looked, before) = (world.tree(), world.keep());
    world.shell(
        "rm -rf src/deep nothing link
         printf changed > src/main.rs; chmod 600 src/main.rs
         chmod 644 run.sh; mkdir -p new/dir; echo x > new/dir/file; ln -s a new/link
         rm dangling; mkdir dangling; echo y > dangling/inside
         rm empty.txt; ln -s big.bin empty.txt; truncate -s 100 big.bin",
    );
    rustix::fs::removexattr(world.path("src/main.rs"), "user.note").expect("an attribute less");
    let after = world.keep();
    let undone = world.undo(&before, &after);
    assert_eq!(world.tree(), looked);
    assert!(undone.paths.iter().all(|(_, fate)| *fate == Fate::Restored), "{undone:?}");
    // And the undo is undone.
    let again = world.undo(&undone.kept, &undone.after);
    assert!(again.paths.iter().all(|(_, fate)| *fate == Fate::Restored), "{again:?}");
    assert_eq!(world.read("src/main.rs"), "changed");
    assert_eq!(world.read("new/dir/file"), "x\n");
    assert!(!world.path("src/deep").exists());
}

#[test]
fn an_unchanged_tree_stores_nothing() {
    let mut world = furnished();
    let first = world.try_keep().expect("kept");
    let packs = world.store_files(".pack");
    for _ in 0..3 {
        let next = world.try_keep().expect("kept");
        assert_eq!((next.nodes, next.bytes, next.stored_bytes), (first.nodes, first.bytes, 0));
        assert_eq!(world.store.changes(&first.id, &next.id).expect("changes"), []);
    }
    let next = world.reopened().keep(&Scope::All, LEAVE_OUT, 5).expect("kept");
    assert_eq!(next.stored_bytes, 0);
    assert_eq!(world.store_files(".pack"), packs);
}

#[test]
fn a_directory_in_place_of_an_alike_one_is_the_same() {
    let mut world = furnished();
    let (looked, before) = (world.tree(), world.keep());
    world.shell("cp -a src other; rm -r src; mv other src");
    let after = world.keep();
    assert_eq!(world.store.changes(&before, &after).expect("changes"), []);
    world.shell("rm -r src");
    let gone = world.keep();
    world.undo(&after, &gone);
    assert_eq!(world.tree(), looked);
}

#[test]
fn changes_say_how_each_path_differs_and_give_both_contents() {
    let mut world = furnished();
    let before = world.keep();
    world.write("src/main.rs", "fn main() { loop {} }\n");
    set_mode(&world.path("run.sh"), 0o700);
    fs::remove_file(world.path("link")).expect("gone");
    symlink("elsewhere", world.path("link")).expect("a link");
    fs::remove_file(world.path("empty.txt")).expect("gone");
    fs::create_dir(world.path("empty.txt")).expect("a directory");
    set_xattr(&world.path("nothing"), "user.note", "other");
    fs::remove_dir(world.path("nothing/here")).expect("gone");
    world.write("added", "1");
    let after = world.keep();
    let changes = world.store.changes(&before, &after).expect("changes");
    let ways: Vec<(&str, Vec<Way>)> =
        changes.iter().map(|change| (change.path.to_str().expect("UTF-8"), change.ways())).collect();
    assert_eq!(
        ways,
        [
            ("added", vec![Way::Added]),
            ("empty.txt", vec![Way::Kind, Way::Mode]),
            ("link", vec![Way::Target]),
            ("nothing", vec![Way::Xattrs]),
            ("nothing/here", vec![Way::Removed]),
            ("run.sh", vec![Way::Mode]),
            ("src/main.rs", vec![Way::Content]),
        ]
    );
    let main = changes.last().expect("the last");
    let mut content = |node: &Option<interlock_keep::Node>| {
        let bytes = world.store.content(node.as_ref().expect("a node"), 100).expect("read");
        String::from_utf8(bytes.expect("few bytes")).expect("UTF-8")
    };
    assert_eq!(content(&main.before), "fn main() {}\n");
    assert_eq!(content(&main.after), "fn main() { loop {} }\n");
    assert_eq!(world.store.content(main.before.as_ref().expect("a node"), 3).expect("read"), None);
}

#[test]
fn what_changed_since_stays_unless_it_is_named() {
    let mut world = furnished();
    let before = world.keep();
    world.shell("echo agent > src/main.rs; echo agent > run.sh; mkdir made; echo agent > made/file");
    let after = world.keep();
    world.shell("echo person > src/main.rs; echo person > made/mine");
    let plan = world.store.plan(&undo(&before, &after, &[]), LEAVE_OUT, 5).expect("a plan");
    assert!(plan.has_clashes());
    let undone = world.store.carry_out(&plan, LEAVE_OUT, 6).expect("carried out");
    assert_eq!(fate(&undone, "src/main.rs"), Some(Fate::Clash(Clash::ChangedSince)));
    assert_eq!(fate(&undone, "made"), Some(Fate::Clash(Clash::HoldsOthers)));
    assert_eq!(fate(&undone, "made/file"), Some(Fate::Restored));
    assert_eq!(world.read("src/main.rs"), "person\n");
    assert_eq!(world.read("made/mine"), "person\n");
    assert_eq!(world.read("run.sh"), "#!/bin/sh\n");
    let undone = world.undo_named(&before, &after, &["src/main.rs"]);
    assert_eq!(undone.paths, [(PathBuf::from("src/main.rs"), Fate::Restored)]);
    assert_eq!(world.read("src/main.rs"), "fn main() {}\n");
    let again = world.undo(&undone.kept, &undone.after);
    assert_eq!(again.paths, [(PathBuf::from("src/main.rs"), Fate::Restored)]);
    assert_eq!(world.read("src/main.rs"), "person\n");
}

#[test]
fn what_overlapping_calls_touched_is_a_clash() {
    let mut world = furnished();
    let first = world.keep();
    world.shell("echo one > a; echo one > b");
    let second = world.keep();
    world.shell("echo two > b");
    let third = world.keep();
    let ask = Undo { overlapping: vec![(second, third.clone())], ..undo(&first, &third, &[]) };
    let plan = world.store.plan(&ask, LEAVE_OUT, 5).expect("a plan");
    let fates: Vec<_> = plan.steps.iter().map(|step| (step.path.to_str().expect("UTF-8"), step.fate)).collect();
    assert_eq!(fates, [("a", Fate::Restored), ("b", Fate::Clash(Clash::Overlapping))]);
}

#[test]
fn a_person_who_edits_after_the_plan_loses_nothing() {
    let mut world = furnished();
    let before = world.keep();
    world.shell("echo agent > src/main.rs; rm run.sh; echo new > extra");
    let after = world.keep();
    let plan = world.store.plan(&undo(&before, &after, &[]), LEAVE_OUT, 5).expect("a plan");
    world.shell("echo person > src/main.rs; echo person > run.sh; echo person >> extra");
    let undone = world.store.carry_out(&plan, LEAVE_OUT, 6).expect("carried out");
    for path in ["src/main.rs", "run.sh", "extra"] {
        assert_eq!(fate(&undone, path), Some(Fate::Clash(Clash::ChangedSince)), "{path}");
        assert!(world.read(path).contains("person"), "{path}");
    }
}

#[test]
fn an_attribute_that_a_person_sets_after_the_plan_is_not_lost() {
    for reopen in [false, true] {
        let mut world = furnished();
        let before = world.keep();
        world.shell("echo agent > src/main.rs; echo agent > made");
        let after = world.keep();
        let plan = world.store.plan(&undo(&before, &after, &[]), LEAVE_OUT, 5).expect("a plan");
        for path in ["src/main.rs", "made"] {
            set_xattr(&world.path(path), "user.mine", "x");
        }
        let mut store = if reopen {
            world.reopened()
        } else {
            {
                let other = world.reopened();
                std::mem::replace(&mut world.store, other)
            }
        };
        let undone = store.carry_out(&plan, LEAVE_OUT, 6).expect("carried out");
        for path in ["src/main.rs", "made"] {
            assert_eq!(fate(&undone, path), Some(Fate::Clash(Clash::ChangedSince)), "{path}");
            assert_eq!(world.read(path), "agent\n");
        }
    }
}

#[test]
fn a_named_path_comes_back_with_the_directories_it_lay_in() {
    let mut world = furnished();
    let looked = world.tree();
    let before = world.keep();
    world.shell("echo agent > src/deep/er/lib.rs");
    let after = world.keep();
    world.shell("rm -rf src");
    let undone = world.undo(&before, &after);
    assert_eq!(fate(&undone, "src/deep/er/lib.rs"), Some(Fate::Clash(Clash::ChangedSince)));
    world.undo_named(&before, &after, &["src/deep/er/lib.rs"]);
    for path in ["src/deep", "src/deep/er", "src/deep/er/lib.rs"] {
        assert_eq!(world.tree().get(Path::new(path)), looked.get(Path::new(path)), "{path}");
    }
}

#[test]
fn what_is_left_out_is_said_to_be_out() {
    let mut world = furnished();
    world.write("node_modules/x/index.js", "x");
    world.write(".env", "KEY=1");
    world.write(".git/refs/heads/target/x", "a branch");
    world.shell("mkfifo pipe");
    std::os::unix::net::UnixListener::bind(world.path("socket")).expect("a socket");
    let before = world.keep();
    let mut left_out = world.store.left_out(&before).expect("left out");
    left_out.sort();
    let names: Vec<_> = left_out.iter().map(|(path, why)| (path.to_str().expect("UTF-8"), *why)).collect();
    assert_eq!(
        names,
        [(".env", Why::Secret), ("node_modules", Why::Regenerable), ("pipe", Why::Special), ("socket", Why::Special)]
    );
    let mut ask = |path: &str| world.store.recoverable(&before, Path::new(path)).expect("an answer");
    assert_eq!(ask("src"), Recoverable::Kept);
    assert_eq!(ask("src/main.rs"), Recoverable::Kept);
    assert_eq!(ask("node_modules"), Recoverable::Regenerable);
    assert_eq!(ask("node_modules/x/index.js"), Recoverable::Regenerable);
    assert_eq!(ask("no/such"), Recoverable::Absent);
    assert_eq!(ask(".env"), Recoverable::NotKept { path: ".env".into(), why: Why::Secret });
    assert!(matches!(ask(""), Recoverable::NotKept { .. }));
    assert_eq!(ask(".git/refs/heads/target/x"), Recoverable::Kept);
    // What was never kept is neither brought back nor overwritten.
    world.shell("rm -rf node_modules pipe; echo other > .env; mkdir target; echo built > target/out; rm run.sh");
    let after = world.keep();
    let undone = world.undo(&before, &after);
    assert_eq!(fate(&undone, "run.sh"), Some(Fate::Restored));
    assert_eq!(fate(&undone, "node_modules"), Some(Fate::NotKept(Why::Regenerable)));
    assert_eq!(fate(&undone, "target"), Some(Fate::NotKept(Why::Regenerable)));
    assert_eq!(fate(&undone, "pipe"), Some(Fate::NotKept(Why::Special)));
    assert_eq!((world.read(".env"), world.read("target/out")), ("other\n".into(), "built\n".into()));
}

#[test]
fn named_paths_are_kept_alone() {
    let mut world = furnished();
    let scope = Scope::Paths(vec!["src/main.rs".into(), "src/new.rs".into(), "no/dir/file".into()]);
    let before = world.store.keep(&scope, LEAVE_OUT, 1).expect("kept").id;
    world.shell("echo edited > src/main.rs; echo new > src/new.rs; mkdir -p no/dir; echo f > no/dir/file; rm run.sh");
    let after = world.store.keep(&scope, LEAVE_OUT, 2).expect("kept").id;
    let mut ask = |path: &str| world.store.recoverable(&before, Path::new(path)).expect("an answer");
    assert_eq!(ask("src/main.rs"), Recoverable::Kept);
    assert_eq!(ask("src/new.rs"), Recoverable::Absent);
    assert_eq!(ask("run.sh"), Recoverable::NotAsked);
    let whole = world.keep();
    assert_eq!(world.store.changes(&before, &whole).expect("changes").len(), 3);
    let undone = world.undo(&before, &after);
    assert_eq!(undone.paths.len(), 3);
    assert_eq!(world.read("src/main.rs"), "fn main() {}\n");
    assert!(!world.path("src/new.rs").exists() && !world.path("no/dir/file").exists());
    assert!(!world.path("run.sh").exists(), "what was not asked about stays");
    for bad in ["../outside", "/etc/passwd"] {
        let fault = world.store.keep(&Scope::Paths(vec![bad.into()]), LEAVE_OUT, 1).expect_err("outside");
        assert!(fault.to_string().contains("no path beneath the project"), "{fault}");
    }
    symlink("/etc", world.path("etc")).expect("a link");
    world.store.keep(&Scope::Paths(vec!["etc/passwd".into()]), LEAVE_OUT, 1).map(|kept| kept.nodes).expect("the link");
    let kept = world.store.keep(&Scope::Paths(vec!["etc/passwd".into()]), LEAVE_OUT, 1).expect("kept").id;
    assert!(matches!(
        world.store.node(&kept, Path::new("etc")).expect("a node").map(|node| node.kind),
        Some(Kind::Link { .. })
    ));
}

#[test]
fn a_hard_linked_file_is_written_in_place() {
    let mut world = furnished();
    fs::hard_link(world.path("run.sh"), world.path("second")).expect("linked");
    let outside = world.directory.path().join("outside");
    fs::hard_link(world.path("run.sh"), &outside).expect("linked");
    let before = world.keep();
    world.shell("echo agent > run.sh");
    let after = world.keep();
    let inode = fs::metadata(&outside).expect("metadata").ino();
    let undone = world.undo(&before, &after);
    assert!(undone.paths.iter().all(|(_, fate)| *fate == Fate::Restored), "{undone:?}");
    for path in [world.path("run.sh"), world.path("second"), outside] {
        assert_eq!(fs::metadata(&path).expect("metadata").ino(), inode);
        assert_eq!(fs::read_to_string(&path).expect("read"), "#!/bin/sh\n");
    }
}

#[test]
fn a_name_that_became_another_file_s_goes_back_alone() {
    let mut world = furnished();
    world.write("first", "one");
    world.write("second", "two");
    let outside = world.directory.path().join("outside");
    fs::write(&outside, "not the project's").expect("written");
    world.write("third", "three");
    let before = world.keep();
    world.shell("ln -f first second; ln -f ../outside third");
    let after = world.keep();
    let undone = world.undo(&before, &after);
    assert!(undone.paths.iter().all(|(_, fate)| *fate == Fate::Restored), "{undone:?}");
    let texts = ["first", "second", "third"].map(|name| world.read(name));
    assert_eq!(texts, ["one", "two", "three"]);
    assert_eq!(fs::read_to_string(&outside).expect("read"), "not the project's");
}

#[test]
fn a_file_goes_back_though_the_undo_takes_another_name_of_it_away() {
    let mut world = furnished();
    let before = world.keep();
    world.shell("ln run.sh again; echo agent >> again");
    let after = world.keep();
    let undone = world.undo(&before, &after);
    assert!(undone.paths.iter().all(|(_, fate)| *fate == Fate::Restored), "{undone:?}");
    assert_eq!(world.read("run.sh"), "#!/bin/sh\n");
    assert!(!world.path("again").exists());
}

#[test]
fn the_store_may_lie_in_the_project_and_is_left_out() {
    let mut world = furnished();
    let inside = world.path("state");
    let mut store =
        interlock_keep::Store::open(&inside, &world.project, interlock_keep::Limits::USUAL).expect("a store");
    let first = store.keep(&Scope::All, LEAVE_OUT, 1).expect("kept");
    let second = store.keep(&Scope::All, LEAVE_OUT, 1).expect("kept");
    assert_eq!(store.changes(&first.id, &second.id).expect("changes"), []);
    let left_out = store.left_out(&second.id).expect("left out");
    assert!(left_out.iter().any(|(path, why)| path.starts_with("state") && *why == Why::Own), "{left_out:?}");
    world.keep();
}

#[test]
fn links_are_never_followed() {
    let mut world = furnished();
    let outside = world.directory.path().join("elsewhere");
    fs::create_dir(&outside).expect("a directory");
    fs::write(outside.join("file"), "outside").expect("written");
    let before = world.keep();
    world.shell("echo agent > src/main.rs; echo agent > src/file");
    let after = world.keep();
    let plan = world.store.plan(&undo(&before, &after, &[]), LEAVE_OUT, 5).expect("a plan");
    fs::rename(world.path("src"), world.path("moved")).expect("moved");
    symlink(&outside, world.path("src")).expect("a link");
    let undone = world.store.carry_out(&plan, LEAVE_OUT, 6).expect("carried out");
    assert_eq!(fate(&undone, "src/main.rs"), Some(Fate::Clash(Clash::ChangedSince)));
    assert_eq!(fs::read_dir(&outside).expect("a directory").count(), 1);
    assert_eq!(fs::read_to_string(outside.join("file")).expect("read"), "outside");
}

#[test]
fn undoing_an_undo_leaves_alone_what_a_person_changed_meanwhile_elsewhere() {
    let mut world = furnished();
    let before = world.keep();
    world.shell("echo agent > src/main.rs; rm -rf nothing; mkdir -p made/deep; echo agent > made/deep/file");
    let (looked, after) = (world.tree(), world.keep());
    let plan = world.store.plan(&undo(&before, &after, &[]), LEAVE_OUT, 5).expect("a plan");
    world.shell("echo person > run.sh; echo person > src/other");
    let undone = world.store.carry_out(&plan, LEAVE_OUT, 6).expect("carried out");
    let now = world.keep();
    let since = world.store.changes(&undone.after, &now).expect("changes");
    let paths: Vec<_> = since.iter().map(|change| change.path.to_str().expect("UTF-8")).collect();
    assert_eq!(paths, ["run.sh", "src/other"], "the rest is as the undo says it left it");
    world.undo(&undone.kept, &undone.after);
    assert_eq!((world.read("run.sh"), world.read("src/other")), ("person\n".into(), "person\n".into()));
    world.shell("rm src/other; printf '#!/bin/sh\\n' > run.sh");
    assert_eq!(world.tree(), looked);
}

#[test]
fn calls_are_undone_together_but_for_what_somebody_else_changed_between_them() {
    let mut world = World::new();
    world.write("mine", "1");
    world.write("both", "1");
    world.write("between", "1");
    let first = world.keep();
    world.write("mine", "2");
    world.write("both", "2");
    world.write("between", "2");
    let second = world.keep();
    world.write("between", "a person's");
    let third = world.keep();
    world.write("both", "3");
    world.write("between", "4");
    world.write("new", "4");
    let fourth = world.keep();
    let ask = Undo { earlier: vec![(first, second)], ..undo(&third, &fourth, &[]) };
    let plan = world.store.plan(&ask, LEAVE_OUT, 5).expect("a plan");
    let fates: Vec<_> = plan.steps.iter().map(|step| (step.path.to_str().expect("UTF-8"), step.fate)).collect();
    let clash = Fate::Clash(Clash::ChangedSince);
    assert_eq!(
        fates,
        [("between", clash), ("both", Fate::Restored), ("mine", Fate::Restored), ("new", Fate::Restored)]
    );
    world.store.carry_out(&plan, LEAVE_OUT, 6).expect("undone");
    let read = |name: &str| std::fs::read_to_string(world.project.join(name)).ok();
    assert_eq!((read("mine").as_deref(), read("both").as_deref()), (Some("1"), Some("1")));
    assert_eq!((read("between").as_deref(), read("new")), (Some("4"), None));
}
