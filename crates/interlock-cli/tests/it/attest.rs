//! `interlock attest`: what it says about tokens that were signed once and for all, and where it takes keys from.

use std::fs;

use interlock_testkit::repository;

use crate::golden::check;
use crate::{interlock, path, run, run_with_input, text};

const KEYS: &str = "crates/interlock-testkit/tests/golden/attestation-jwks-1.json";
/// A second after both tokens were decided, and their last second.
const AT: &str = "2026-11-15T10:35:18Z";
const LAST: &str = "2026-11-16T10:35:16.999Z";

fn token(number: usize) -> String {
    let file = repository().join("crates/interlock-testkit/tests/golden/attestations-1.txt");
    fs::read_to_string(file).expect("tokens").lines().nth(number).expect("a token").to_owned()
}

#[test]
fn it_says_what_is_attested_by_which_key_and_until_when() {
    for (number, name) in [(0, "es256"), (1, "eddsa")] {
        let token = token(number);
        let verify = ["attest", "verify", &token, "--jwks", KEYS, "--at"];
        let at = |time: &'static str| [&verify[..], &[time]].concat();
        check(&format!("attest_{name}.txt"), 0, &run(&at(AT)));
        check(&format!("attest_{name}.json"), 0, &run(&[&at(AT)[..], &["--json"]].concat()));
        for (time, exit) in [
            ("2026-11-15T10:35:17Z", 0),
            ("2026-11-15T11:35:17+01:00", 0),
            ("1794738917000", 0),
            (LAST, 0),
            ("2026-11-15T10:35:16.999Z", 1),
            ("2026-11-16T10:35:17Z", 1),
            ("2026-11-15", 1),
            ("2026-02-29T10:35:17Z", 2),
            ("yesterday", 2),
        ] {
            assert_eq!(run(&at(time)).status.code(), Some(exit), "{time}: {}", text(&run(&at(time)).stdout));
        }
    }
    let late = token(0);
    let late = ["attest", "verify", &late, "--jwks", KEYS, "--at", "2026-11-16T10:35:17Z"];
    check("attest_expired.txt", 1, &run(&late));
    check("attest_expired.json", 1, &run(&[&late[..], &["--json"]].concat()));
}

#[test]
fn a_token_may_come_through_a_pipe_and_keys_from_a_data_directory() {
    let scratch = tempfile::tempdir().expect("a directory");
    let golden = repository().join("crates/interlock-testkit/tests/golden");
    let data = path(scratch.path());
    let verify = ["attest", "verify", "-", "--data", data, "--at", AT];
    let input = format!("{}\n", token(0));
    let missing = run_with_input(&verify, input.as_bytes());
    assert_eq!(missing.status.code(), Some(2), "no keys is no answer: {}", text(&missing.stderr));
    fs::copy(golden.join("attestation-keys-1.jsonl"), scratch.path().join("attestation.keys")).expect("copied");
    let verified = run_with_input(&verify, input.as_bytes());
    assert_eq!(verified.status.code(), Some(0), "{}{}", text(&verified.stdout), text(&verified.stderr));
    let keys = run(&["attest", "keys", "--data", data]);
    assert_eq!(text(&keys.stdout), fs::read_to_string(golden.join("attestation-jwks-1.json")).expect("keys"));
    assert!(!text(&keys.stdout).contains("\"d\""), "public parts only");
    fs::create_dir(scratch.path().join("data")).expect("a directory");
    fs::rename(scratch.path().join("attestation.keys"), scratch.path().join("data/attestation.keys")).expect("moved");
    let keys = interlock(&["attest", "keys"]).env("INTERLOCK_HOME", scratch.path()).output().expect("it runs");
    assert_eq!(keys.status.code(), Some(0), "{}", text(&keys.stderr));
    fs::write(scratch.path().join("data/attestation.keys"), "{}\n").expect("written");
    let damaged = interlock(&["attest", "keys"]).env("INTERLOCK_HOME", scratch.path()).output().expect("it runs");
    assert!(damaged.status.code() == Some(2) && text(&damaged.stderr).contains("is damaged"), "{damaged:?}");
}

#[test]
fn what_does_not_hold_is_not_valid() {
    let token = token(1);
    let changed = token.replacen('S', "T", 1);
    for wrong in [changed.as_str(), "", "a.b.c", &token[1..], "\u{202e}"] {
        let output = run(&["attest", "verify", wrong, "--jwks", KEYS, "--at", AT]);
        assert_eq!(output.status.code(), Some(1), "{wrong}");
        assert!(text(&output.stdout).starts_with("NOT VALID "), "{}", text(&output.stdout));
        let output = run(&["attest", "verify", wrong, "--jwks", KEYS, "--at", AT, "--json"]);
        assert!(text(&output.stdout).starts_with("{\"valid\":false,\"reason\":\""), "{}", text(&output.stdout));
    }
    for arguments in [
        ["attest", "verify", &token, "--jwks", "no-such-file"],
        ["attest", "verify", &token, "--jwks", "Cargo.toml"],
        ["attest", "verify", "-", "--jwks", "-"],
    ] {
        assert_eq!(run(&arguments).status.code(), Some(2), "{arguments:?}");
    }
}
