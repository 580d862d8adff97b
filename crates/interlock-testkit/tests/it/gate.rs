//! The cases of the action gate, through HTTP.

use std::collections::BTreeMap;

use interlock_core::Code;
use interlock_core::bundle::Bundle;
use interlock_runtime::ledger::SqliteStore;
use interlock_testkit::service::Server;
use interlock_testkit::{gate, wire};

fn every_case_holds(start: impl Fn(Bundle) -> Server) {
    let (mut count, mut wrong) = (0, Vec::new());
    for (file, cases) in gate::load() {
        for case in cases {
            count += 1;
            if let Err(reason) = gate::run(&case, &start) {
                wrong.push(format!("gate/{file}: {}\n  {reason}", case.name));
            }
        }
    }
    assert!(wrong.is_empty(), "{} of {count} cases:\n{}", wrong.len(), wrong.join("\n"));
    assert!(count >= 650, "only {count} cases were found");
}

#[test]
fn every_case_of_the_gate_holds_through_http() {
    wire::LOOK.set(crate::wire::fits_its_schema).expect("nobody looks yet");
    every_case_holds(Server::in_memory);
}

#[test]
fn every_case_of_the_gate_holds_on_sqlite() {
    // What a case says has nothing to do with the disk, so no case waits for one where there is a directory in memory.
    let memory = tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).expect("a directory");
    let number = std::cell::Cell::new(0);
    let directory = |number: u32| memory.path().join(number.to_string());
    every_case_holds(|bundle| {
        // The case before has ended, and its store is not needed any more.
        let _ = std::fs::remove_dir_all(directory(number.get()));
        number.set(number.get() + 1);
        std::fs::create_dir(directory(number.get())).expect("a directory");
        Server::start(Box::new(SqliteStore::open(&directory(number.get())).expect("a store")), None, bundle)
    });
}

#[test]
fn every_code_that_a_request_can_reach_has_two_cases() {
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    for (_, cases) in gate::load() {
        for case in &cases {
            for code in case.codes() {
                *counts.entry(code.to_owned()).or_default() += 1;
            }
        }
    }
    // The codes from 101 on are the state guard's.
    let elsewhere = |code: &str| code.starts_with("QWED-AGENT-STATE-1");
    let reachable = Code::ALL.iter().map(|code| code.as_str());
    let families = ["QWED-AGENT-", "INTERLOCK-AUTH-", "INTERLOCK-APPROVAL-", "INTERLOCK-EXECUTION-"];
    let known = |code: &&str| families.iter().any(|family| code.starts_with(family));
    let reachable = reachable.filter(|code| known(code) && !elsewhere(code));
    let own = ["INTERLOCK-REQUEST-001", "INTERLOCK-REQUEST-002"];
    for code in reachable.chain(own) {
        assert!(counts.get(code).is_some_and(|count| *count >= 2), "{code} has too few cases");
    }
    assert!(counts.keys().all(|code| Code::parse(code).is_some()), "a case names a code that does not exist");
}
