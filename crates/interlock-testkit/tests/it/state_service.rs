//! State commits through the service: intent, file, outcome; and what becomes of an intent nobody finished.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use interlock_core::Digest;
use interlock_core::bundle::Bundle;
use interlock_core::json::quote;
use interlock_core::ledger::StateIntent;
use interlock_runtime::ledger::{Answer, Command, SqliteReader, SqliteStore, verify};
use interlock_runtime::state_commit::settle_open_commits;
use interlock_testkit::service::{OPERATOR_KEY, START_MS, Server};

struct World {
    scratch: tempfile::TempDir,
}

impl World {
    fn new() -> World {
        let scratch = tempfile::tempdir().expect("a directory");
        for name in ["data", "states"] {
            fs::create_dir(scratch.path().join(name)).expect("a directory");
        }
        World { scratch }
    }

    fn path(&self, name: &str) -> String {
        self.scratch.path().join(name).to_str().expect("UTF-8").to_owned()
    }

    fn serve(&self) -> Server {
        let bundle = format!(
            "[guards.steps]\nrequired_schema = {{type = \"object\", properties = {{n = {{type = \"integer\"}}}}, required = [\"n\"]}}\n\
             transition_rules = {{monotonic_integer_paths = [\"$.n\"]}}\nallowed_commit_roots = [{}, {}, {}]\n",
            quote(&self.path("states")),
            quote(&self.path("other")),
            quote(&self.path("")),
        );
        let bundle = Bundle::load(&bundle, &BTreeMap::new(), false).expect("a bundle");
        let store = SqliteStore::open(Path::new(&self.path("data"))).expect("a store");
        Server::start(Box::new(store), None, bundle)
    }

    fn commit(&self, server: &Server, from: u64, to: u64) -> String {
        self.commit_to(server, from, to, &self.path("states/a.json"))
    }

    fn commit_to(&self, server: &Server, from: u64, to: u64, path: &str) -> String {
        let body = format!(
            r#"{{"guard":"steps","current_state_json":"{{\"n\":{from}}}","proposed_state_json":"{{\"n\": {to}}}","target_path":{}}}"#,
            quote(path)
        );
        let headers = [("x-api-key", OPERATOR_KEY)];
        server.client().send("POST", "/state/verify", &headers, &body).expect("an answer").body
    }

    fn file(&self) -> Option<String> {
        fs::read_to_string(self.path("states/a.json")).ok()
    }

    fn is_sound(&self) {
        let mut reader = SqliteReader::open(Path::new(&self.path("data"))).expect("a reader");
        let report = verify(&mut reader, None, START_MS, &mut |_, _| {}).expect("an audit");
        assert!(report.findings.is_empty(), "{:?}", report.findings);
    }
}

#[test]
fn a_commit_is_an_intent_a_file_and_an_outcome() {
    let world = World::new();
    let server = world.serve();
    let size = server.ledger.size();
    let answer = world.commit(&server, 1, 2);
    assert!(answer.contains(r#""status":"VERIFIED""#) && answer.contains("committed_path"), "{answer}");
    assert_eq!((world.file().as_deref(), server.ledger.size()), (Some(r#"{"n":2}"#), size + 2));
    assert!(world.commit(&server, 2, 3).contains("VERIFIED"));
    // The rules hold here as everywhere, and a refused transition leaves no entry.
    let size = server.ledger.size();
    assert!(world.commit(&server, 3, 1).contains("QWED-AGENT-STATE-106"));
    assert!(world.commit(&server, 1, 9).contains("QWED-AGENT-STATE-107"), "not the state that was committed last");
    assert_eq!((world.file().as_deref(), server.ledger.size()), (Some(r#"{"n":3}"#), size));
    drop(server);
    world.is_sound();
}

#[test]
fn a_file_that_changed_or_vanished_behind_its_back_is_refused() {
    let world = World::new();
    let server = world.serve();
    assert!(world.commit(&server, 1, 2).contains("VERIFIED"));
    fs::write(world.path("states/a.json"), r#"{"n":7}"#).expect("changed");
    assert!(world.commit(&server, 7, 8).contains("QWED-AGENT-STATE-107"));
    assert!(world.commit(&server, 2, 8).contains("QWED-AGENT-STATE-107"));
    fs::remove_file(world.path("states/a.json")).expect("removed");
    let answer = world.commit(&server, 2, 3);
    assert!(answer.contains("QWED-AGENT-STATE-107") && answer.contains("is gone"), "{answer}");
    assert_eq!(world.file(), None);
    fs::write(world.path("states/a.json"), r#"{"n":2}"#).expect("put back");
    assert!(world.commit(&server, 2, 3).contains("VERIFIED"), "and goes on once it is back");
    drop(server);
    world.is_sound();
}

/// A file has one head, however its path is spelled; a head that was recorded under another spelling stays its head.
#[test]
fn every_spelling_of_a_path_finds_the_same_head() {
    let world = World::new();
    std::os::unix::fs::symlink("states", world.path("link")).expect("a link beneath a root");
    std::os::unix::fs::symlink("states", world.path("other")).expect("a root that is a link");
    let spellings = |world: &World| -> Vec<String> {
        [
            "states//a.json",
            "states/./a.json",
            "/states/a.json",
            "./states/.//a.json",
            "link/a.json",
            "link//a.json",
            "other/a.json",
        ]
        .iter()
        .map(|name| world.path("").trim_end_matches('/').to_owned() + "/" + name)
        .collect()
    };
    let server = world.serve();
    assert!(world.commit(&server, 1, 5).contains("VERIFIED"));
    // Rolled back behind the ledger's back: no spelling goes on from there.
    fs::write(world.path("states/a.json"), r#"{"n":1}"#).expect("changed");
    for path in spellings(&world) {
        let answer = world.commit_to(&server, 1, 2, &path);
        assert!(answer.contains("QWED-AGENT-STATE-107"), "{path}: {answer}");
    }
    fs::write(world.path("states/a.json"), r#"{"n":5}"#).expect("put back");
    for (from, path) in (5..).zip(spellings(&world)) {
        let answer = world.commit_to(&server, from, from + 1, &path);
        assert!(answer.contains("VERIFIED") && answer.contains(&quote(&path)), "{path}: {answer}");
    }
    drop(server);
    world.is_sound();

    let world = World::new();
    std::os::unix::fs::symlink("states", world.path("link")).expect("a link beneath a root");
    std::os::unix::fs::symlink("states", world.path("other")).expect("a root that is a link");
    fs::write(world.path("states/a.json"), r#"{"n":3}"#).expect("a state");
    let before = world.path("states") + "//a.json";
    let server = world.serve();
    let (current, proposed) = (Digest::of_bytes(b"{\"n\":2}"), Digest::of_bytes(b"{\"n\":3}"));
    let intent = StateIntent { guard: "steps".to_owned(), path: before, current, proposed, first: false };
    assert!(matches!(server.ledger.submit_and_wait(Command::BeginState(intent)), Answer::Recorded(_)));
    assert_eq!(settle_open_commits(&server.ledger), Ok(1));
    drop(server);
    let server = world.serve();
    fs::write(world.path("states/a.json"), r#"{"n":1}"#).expect("rolled back");
    assert!(world.commit(&server, 1, 2).contains("QWED-AGENT-STATE-107"), "the head of an older ledger holds");
    fs::write(world.path("states/a.json"), r#"{"n":3}"#).expect("put back");
    assert!(world.commit(&server, 3, 4).contains("VERIFIED"));
    assert!(world.commit_to(&server, 4, 5, &(world.path("link") + "/a.json")).contains("VERIFIED"));
    drop(server);
    world.is_sound();
}

#[test]
fn only_a_guard_of_the_bundle_commits() {
    let world = World::new();
    let server = world.serve();
    let root = quote(&world.path("states"));
    let body = format!(
        r#"{{"guard":{{"required_schema":{{"type":"object","properties":{{}}}},"transition_rules":{{"immutable_paths":["$.a"]}},"allowed_commit_roots":[{root}]}},"current_state_json":"{{}}","proposed_state_json":"{{}}","target_path":{}}}"#,
        quote(&world.path("states/a.json"))
    );
    let answer =
        server.client().send("POST", "/state/verify", &[("x-api-key", OPERATOR_KEY)], &body).expect("an answer");
    assert!(answer.body.contains("QWED-AGENT-STATE-107"), "{}", answer.body);
    assert_eq!(world.file(), None);
}

#[test]
fn an_intent_without_an_outcome_is_settled_by_the_file() {
    for (holds, after) in [(r#"{"n":2}"#, 2), (r#"{"n":3}"#, 3)] {
        let world = World::new();
        let server = world.serve();
        assert!(world.commit(&server, 1, 2).contains("VERIFIED"));
        // As a crash between intent and outcome leaves it, before or after the rename.
        let digest = |text: &str| Digest::of(&[text]);
        let intent = StateIntent {
            guard: "steps".to_owned(),
            path: world.path("states/a.json"),
            current: digest(r#"{"n":2}"#),
            proposed: digest(r#"{"n":3}"#),
            first: false,
        };
        assert!(matches!(server.ledger.submit_and_wait(Command::BeginState(intent)), Answer::Recorded(_)));
        fs::write(world.path("states/a.json"), holds).expect("written");
        assert!(world.commit(&server, after, 4).contains("in progress"), "nothing begins while it is open");
        drop(server);
        let server = world.serve();
        assert_eq!(settle_open_commits(&server.ledger), Ok(1));
        assert_eq!(settle_open_commits(&server.ledger), Ok(0));
        assert!(world.commit(&server, 5 - after, 4).contains("QWED-AGENT-STATE-107"), "the other state");
        assert!(world.commit(&server, after, 4).contains("VERIFIED"), "the state the file holds");
        drop(server);
        world.is_sound();
    }
}

#[test]
fn an_intent_over_what_is_no_file_is_settled_and_does_not_wait() {
    let world = World::new();
    let server = world.serve();
    let intent = StateIntent {
        guard: "steps".to_owned(),
        path: world.path("states/a.json"),
        current: Digest::of(&["old"]),
        proposed: Digest::of(&["new"]),
        first: true,
    };
    assert!(matches!(server.ledger.submit_and_wait(Command::BeginState(intent)), Answer::Recorded(_)));
    // Opening a pipe would wait for a writer.
    let made = std::process::Command::new("mkfifo").arg(world.path("states/a.json")).status().expect("mkfifo");
    assert!(made.success());
    assert_eq!(settle_open_commits(&server.ledger), Ok(1));
    drop(server);
    world.is_sound();
}
