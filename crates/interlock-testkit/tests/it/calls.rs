//! The cases under `conformance/calls/`.

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
