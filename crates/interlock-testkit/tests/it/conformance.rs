//! Every case of `conformance/` through the core, and commits through the runtime.

use std::collections::BTreeMap;

use interlock_core::state::StateGuard;
use interlock_core::{Code, Denial};
use interlock_runtime::StateFiles;
use interlock_testkit::conformance::{Case, load};

#[test]
fn every_case_holds_in_the_core() {
    let mut failures = Vec::new();
    for file in load() {
        for case in &file.cases {
            let name = format!("{}: {}", file.name, case.name);
            if let Err(panic) = std::panic::catch_unwind(|| check(case, &name)) {
                let reason = panic.downcast_ref::<String>().cloned();
                failures.push(reason.unwrap_or_else(|| name.clone()));
            }
        }
    }
    assert!(failures.is_empty(), "{} cases fail:\n{}", failures.len(), failures.join("\n"));
}

#[test]
fn every_code_has_three_cases() {
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    for case in load().into_iter().flat_map(|file| file.cases) {
        if let Some(code) = case.expect.code {
            *counts.entry(code).or_default() += 1;
        }
    }
    for code in Code::ALL.iter().filter(|code| code.as_str().starts_with("QWED-AGENT-STATE-1")) {
        assert!(counts.get(code.as_str()).is_some_and(|count| *count >= 3), "{code} has too few cases");
    }
    assert!(counts.keys().all(|code| Code::parse(code).is_some()), "a case names a code that does not exist");
}

/// What a surface says about a case.
struct Answer {
    canonical: String,
    proof: String,
}

fn check(case: &Case, name: &str) {
    let scratch = tempfile::tempdir().expect("a directory");
    let place = case.commit.as_ref().map(|commit| commit.make(scratch.path()));
    let guard = match (StateGuard::load_file(&case.guard_file(place.as_ref())), &case.expect.error) {
        (Ok(guard), None) => guard,
        (Ok(_), Some(error)) => panic!("{name}: the guard should not be built: {error}"),
        (Err(error), Some(expected)) => {
            assert!(error.to_string().contains(expected), "{name}: {error}");
            return;
        }
        (Err(error), None) => panic!("{name}: {error}"),
    };
    let proposed = case.proposed();
    let proposed = proposed.as_slice();
    let answer: Result<Answer, Denial> = match (&case.current, &place) {
        (None, _) => guard
            .verify_payload(proposed)
            .map(|state| Answer { canonical: state.canonical().to_owned(), proof: state.proof().to_string() }),
        (Some(current), None) => guard.verify_transition(current.as_str(), proposed).map(|transition| Answer {
            canonical: transition.proposed().canonical().to_owned(),
            proof: transition.proof().to_string(),
        }),
        (Some(current), Some(place)) => {
            let files = StateFiles::new(guard);
            let committed = files.verify_transition_and_commit(current.as_str(), proposed, &place.target);
            committed.map(|committed| {
                let state = committed.transition().proposed();
                Answer { canonical: state.canonical().to_owned(), proof: state.digest().to_string() }
            })
        }
    };
    compare(case, name, answer);
    if let Some(place) = place {
        place.check(case, name);
    }
}

fn compare(case: &Case, name: &str, answer: Result<Answer, Denial>) {
    let expect = &case.expect;
    match (answer, expect.status.as_deref()) {
        (Ok(answer), Some("VERIFIED")) => {
            if let Some(canonical) = &expect.canonical {
                assert_eq!(&answer.canonical, canonical, "{name}: canonical text");
            }
            if let Some(proof) = &expect.proof_ref {
                assert_eq!(&answer.proof, proof, "{name}: proof");
            }
            assert!(expect.code.is_none() && expect.message.is_none(), "{name}: a code for a success");
        }
        (Err(denial), Some("BLOCKED")) => {
            assert_eq!(Some(denial.code.as_str()), expect.code.as_deref(), "{name}: {denial}");
            assert!(denial.message.starts_with("Blocked: "), "{name}: {denial}");
            if let Some(part) = &expect.message {
                assert!(denial.message.contains(part), "{name}: {denial}");
            }
            if let Some(at) = &expect.at {
                let place = denial.place.and_then(|place| place.path);
                assert_eq!(place.as_ref(), Some(at), "{name}: {}", denial.message);
                assert!(denial.message.contains(at), "{name}: {} does not name {at}", denial.message);
            }
        }
        (Ok(_), status) => panic!("{name}: verified, expected {status:?} {:?}", expect.code),
        (Err(denial), status) => panic!("{name}: {denial}, expected {status:?}"),
    }
}
