//! Every format that was ever written must be read for ever. The golden files are never changed, only added to.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

use interlock_core::Digest;
use interlock_core::bundle::Bundle;
use interlock_core::ledger::{Entry, EntryError, Frontier, leaf_hash};
use interlock_runtime::attestation::{AttestationKeys, FILE_NAME, Jwks, verify};
use interlock_runtime::ledger::{Checkpoint, LedgerKey, Recorded};
use interlock_testkit::repository;

fn golden(name: &str) -> String {
    let path: PathBuf = repository().join("crates/interlock-testkit/tests/golden").join(name);
    fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

#[test]
fn entries_of_format_1() {
    let mut kinds = Vec::new();
    let mut frontier = Frontier::default();
    for line in golden("entries-1.jsonl").lines() {
        let entry = Entry::from_bytes(line.as_bytes()).unwrap_or_else(|error| panic!("{error}: {line}"));
        kinds.push(format!("{:?}", entry.kind));
        assert_eq!(String::from_utf8(entry.to_bytes().expect("bytes")).expect("UTF-8"), line, "written as it was read");
        frontier.append(leaf_hash(line.as_bytes()));
    }
    kinds.sort();
    kinds.dedup();
    assert_eq!(kinds, ["BundleActivated", "Registered", "Ruled", "Unauthenticated"]);
    assert_eq!(Frontier::from_bytes(&frontier.to_bytes()), Some(frontier.clone()));
    let key = LedgerKey::from_seed(&[1; 32]).expect("a key");
    let note = golden("checkpoint-1.txt");
    assert_eq!(key.sign(&frontier), note, "signed as it was signed");
    assert_eq!(key.open_note(&note), Some(Checkpoint { size: frontier.size(), root: frontier.root() }));
    for (position, _) in note.char_indices().filter(|(_, character)| character.is_ascii_alphanumeric()) {
        let mut other = note.clone();
        let changed = if &note[position..=position] == "x" { "y" } else { "x" };
        other.replace_range(position..=position, changed);
        assert_eq!(key.open_note(&other), None, "a changed byte at {position}");
    }
}

#[test]
fn entries_of_state_commits_of_format_1() {
    for (line, kind) in golden("entries-1-state.jsonl").lines().zip(["StateIntent", "StateOutcome"]) {
        let entry = Entry::from_bytes(line.as_bytes()).unwrap_or_else(|error| panic!("{error}: {line}"));
        assert_eq!(format!("{:?}", entry.kind), kind);
        assert_eq!(String::from_utf8(entry.to_bytes().expect("bytes")).expect("UTF-8"), line, "written as it was read");
    }
}

#[test]
fn entries_of_format_2() {
    let mut kinds = Vec::new();
    for line in golden("entries-2.jsonl").lines() {
        let entry = Entry::from_bytes(line.as_bytes()).unwrap_or_else(|error| panic!("{error}: {line}"));
        kinds.push(format!("{:?}", entry.kind));
        assert_eq!(String::from_utf8(entry.to_bytes().expect("bytes")).expect("UTF-8"), line, "written as it was read");
    }
    kinds.sort();
    kinds.dedup();
    let expected = [
        "ApprovalResolved",
        "Executed",
        "KeyCreated",
        "KeyRevoked",
        "ModeChanged",
        "Registered",
        "Ruled",
        "SigningKeyRotated",
        "StatusChanged",
        "TextsErased",
        "TokenRotated",
        "TrustChanged",
        "TrustRequested",
    ];
    assert_eq!(kinds, expected);
}

#[test]
fn newer_entries_are_refused() {
    let line = golden("entries-1.jsonl").lines().next().expect("an entry").to_owned();
    for (old, new) in [("\"format\":1", "\"format\":3"), ("\"rules\":1", "\"rules\":3")] {
        let newer = line.replacen(old, new, 1);
        assert!(matches!(Entry::from_bytes(newer.as_bytes()), Err(EntryError::Newer(3))), "{newer}");
    }
    assert!(Entry::from_bytes(line.replacen("\"at\":", "\"extra\":0,\"at\":", 1).as_bytes()).is_err());
}

#[test]
fn bundles_of_format_1() {
    let text = golden("bundle-1.json");
    let bundle = Bundle::from_text(text.trim_end()).expect("a bundle");
    assert_eq!(bundle.text(), text.trim_end(), "written as it was read");
    assert_eq!(bundle.digest(), Digest::of(&[text.trim_end()]));
}

#[test]
fn attestations_and_their_keys_of_format_1() {
    let scratch = tempfile::tempdir().expect("a directory");
    let path = scratch.path().join(FILE_NAME);
    fs::write(&path, golden("attestation-keys-1.jsonl")).expect("written");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).expect("a mode");
    let keys = AttestationKeys::open(scratch.path(), "interlock/0123456789abcdef").expect("keys");
    let published = Jwks::parse(&golden("attestation-jwks-1.json")).expect("a key set");
    assert_eq!(keys.jwks(), published, "published as they were published");
    let tokens = golden("attestations-1.txt");
    let entries = golden("entries-1.jsonl");
    let line = entries.lines().find(|line| line.contains("\"decision\":\"APPROVED\"")).expect("an approval");
    let entry = Entry::from_bytes(line.as_bytes()).expect("an entry");
    let recorded = Recorded { entry, index: 2, leaf: leaf_hash(line.as_bytes()), replayed: false, corrected: None };
    let said: Vec<_> =
        tokens.lines().map(|token| verify(token, &published, 1_794_738_917).expect("it holds")).collect();
    assert_eq!(said[0].claims.leaf_hash, recorded.leaf);
    // Ed25519 has one signature for each text.
    let again = keys.attest(&recorded, None, Some(recorded.leaf)).expect("a token");
    assert_eq!(tokens.lines().nth(1), Some(again.as_str()), "signed as it was signed");
}
