//! The cases under `conformance/calls/`, and which project a call is in.

use std::fs;
use std::path::PathBuf;

use interlock_runtime::coding_agents::{Known, project_of};
use interlock_testkit::calls;

#[test]
fn every_call_is_judged_as_its_case_says() {
    let cases = calls::load();
    assert!(cases.len() >= 120, "only {} cases", cases.len());
    let mut wrong = Vec::new();
    for (file, case) in &cases {
        let world = tempfile::tempdir().expect("a directory");
        if let Err(why) = case.run(world.path()) {
            wrong.push(format!("{file}: `{}`: {why}", case.name));
        }
    }
    assert!(wrong.is_empty(), "{} of {}:\n{}", wrong.len(), cases.len(), wrong.join("\n"));
}

#[test]
fn the_home_of_interlock_marks_no_project() {
    let scratch = tempfile::tempdir().expect("a directory");
    let user = fs::canonicalize(scratch.path()).expect("a directory");
    let (shop, deep) = (user.join("shop"), user.join("shop/src/deep"));
    fs::create_dir_all(&deep).expect("a directory");
    let project = || project_of(&deep, |_| Known::No).map(PathBuf::from);
    fs::create_dir_all(user.join(".interlock/data")).expect("a directory");
    assert_eq!(project(), Some(deep.clone()), "nothing marks one");
    fs::create_dir_all(shop.join(".interlock")).expect("a directory");
    assert_eq!(project(), Some(shop.clone()), "settings do");
    fs::create_dir_all(shop.join("src/.git")).expect("a directory");
    assert_eq!(project(), Some(shop.join("src")), "a repository does");
    // A repository in which Interlock lives is one all the same.
    fs::create_dir_all(user.join(".git")).expect("a directory");
    assert_eq!(project_of(&user, |_| Known::No).map(PathBuf::from), Some(user));
}
