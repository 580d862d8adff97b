//! Proofs and notes against a naive tree, against the implementations of others, and against ledgers that were changed.

use std::convert::Infallible;
use std::fs;
use std::path::Path;
use std::process::Command;

use interlock_core::Digest;
use interlock_core::ledger::{
    Claim, EntryName, Frontier, Proof, ProofError, Subtree, leaf_hash, prove_consistency, prove_inclusion, tree_root,
    verify_consistency, verify_inclusion,
};
use interlock_runtime::ledger::{
    BLOCK_LEN, Changes, CheckpointFile, LedgerKey, MemoryStore, NewEntry, NoteVerifier, ProofFault, Reader,
    SignedCheckpoint, SqliteReader, SqliteStore, Store, TreeCache, prove_continuation, prove_entry,
};
use interlock_testkit::generate::Random;
use interlock_testkit::repository;
use tlog_tiles::{Checkpoint as OtherCheckpoint, Hash, check_record, check_tree, record_hash};

/// The tree as RFC 6962 defines it, word for word.
mod naive {
    use std::cell::RefCell;
    use std::collections::HashMap;

    use interlock_core::Digest;

    thread_local! {
        // All leaves here are the beginning of one list, so the first and their number say which they are.
        static KNOWN: RefCell<HashMap<(Digest, usize), Digest>> = RefCell::default();
    }

    fn node(left: Digest, right: Digest) -> Digest {
        Digest::of_bytes(&[[1].as_slice(), &left.bytes(), &right.bytes()].concat())
    }

    fn split(len: usize) -> usize {
        let mut half = 1;
        while half * 2 < len {
            half *= 2;
        }
        half
    }

    /// MTH.
    pub(super) fn root(leaves: &[Digest]) -> Digest {
        match leaves {
            [] => Digest::of_bytes(b""),
            [leaf] => *leaf,
            [first, ..] => {
                let key = (*first, leaves.len());
                if let Some(known) = KNOWN.with_borrow(|known| known.get(&key).copied()) {
                    return known;
                }
                let (left, right) = leaves.split_at(split(leaves.len()));
                let root = node(root(left), root(right));
                KNOWN.with_borrow_mut(|known| known.insert(key, root));
                root
            }
        }
    }

    /// PATH.
    pub(super) fn path(index: usize, leaves: &[Digest]) -> Vec<Digest> {
        if leaves.len() == 1 {
            return Vec::new();
        }
        let half = split(leaves.len());
        let (left, right) = leaves.split_at(half);
        let (mut path, sibling) =
            if index < half { (path(index, left), root(right)) } else { (path(index - half, right), root(left)) };
        path.push(sibling);
        path
    }

    /// SUBPROOF.
    pub(super) fn subproof(old: usize, leaves: &[Digest], whole: bool) -> Vec<Digest> {
        if old == leaves.len() {
            return if whole { Vec::new() } else { vec![root(leaves)] };
        }
        let half = split(leaves.len());
        let (left, right) = leaves.split_at(half);
        let (mut path, sibling) = if old <= half {
            (subproof(old, left, whole), root(right))
        } else {
            (subproof(old - half, right, false), root(left))
        };
        path.push(sibling);
        path
    }
}

fn entry(index: u64) -> Vec<u8> {
    format!("entry {index}").into_bytes()
}

fn some_leaves(count: u64) -> Vec<Digest> {
    (0..count).map(|index| leaf_hash(&entry(index))).collect()
}

fn at(number: u64) -> usize {
    usize::try_from(number).expect("small")
}

/// Answers for complete subtrees, and only for those.
fn source(leaves: &[Digest]) -> impl FnMut(Subtree) -> Result<Digest, Infallible> + '_ {
    |Subtree { level, index }| Ok(naive::root(&leaves[at(index << level)..at((index + 1) << level)]))
}

fn other(digest: Digest) -> Hash {
    Hash(digest.bytes())
}

fn others(digests: &[Digest]) -> Vec<Hash> {
    digests.iter().map(|digest| other(*digest)).collect()
}

/// One size: every leaf and every older size, or a sample of them.
fn check_size(leaves: &[Digest], indexes: &[u64], olds: &[u64]) {
    let size = leaves.len() as u64;
    let root = naive::root(leaves);
    assert_eq!(tree_root(size, source(leaves)), Ok(root), "size {size}");
    for index in indexes.iter().copied() {
        let leaf = leaves[at(index)];
        let hashes = prove_inclusion(index, size, source(leaves)).expect("a proof");
        assert_eq!(hashes, naive::path(at(index), leaves), "entry {index} of {size}");
        assert!(verify_inclusion(leaf, index, size, &hashes, root), "entry {index} of {size}");
        check_record(&others(&hashes), size, other(root), index, other(leaf)).expect("others agree");
        refutes_inclusion(leaf, index, size, &hashes, root);
    }
    for old in olds.iter().copied() {
        let old_root = naive::root(&leaves[..at(old)]);
        let hashes = prove_consistency(old, size, source(leaves)).expect("a proof");
        if old > 0 {
            assert_eq!(hashes, naive::subproof(at(old), leaves, true), "{old} to {size}");
            check_tree(&others(&hashes), size, other(root), old, other(old_root)).expect("others agree");
        }
        assert!(verify_consistency(old, old_root, size, root, &hashes), "{old} to {size}");
        refutes_consistency(old, old_root, size, root, &hashes);
    }
    assert!(prove_inclusion(size, size, source(leaves)).is_err());
    assert!(prove_consistency(size + 1, size, source(leaves)).is_err());
}

/// A proof is good for what it was made for and nothing else.
fn refutes_inclusion(leaf: Digest, index: u64, size: u64, hashes: &[Digest], root: Digest) {
    let wrong = Digest::of(&["wrong"]);
    assert!(!verify_inclusion(wrong, index, size, hashes, root));
    assert!(!verify_inclusion(leaf, index, size, hashes, wrong));
    assert!(!verify_inclusion(leaf, index, size, &[hashes, &[wrong]].concat(), root), "one hash more");
    for position in 0..hashes.len() {
        let mut changed = hashes.to_vec();
        changed[position] = wrong;
        assert!(!verify_inclusion(leaf, index, size, &changed, root), "hash {position} is another");
        changed.remove(position);
        assert!(!verify_inclusion(leaf, index, size, &changed, root), "hash {position} is gone");
    }
    for other in [index + 1, index ^ 1, size, u64::MAX].into_iter().filter(|other| *other != index) {
        assert!(!verify_inclusion(leaf, other, size, hashes, root), "as entry {other} of {size}, not {index}");
    }
    for other in [0, 1, size / 2].into_iter().filter(|other| *other != size && *other <= index) {
        assert!(!verify_inclusion(leaf, index, other, hashes, root), "beyond size {other}");
    }
}

fn refutes_consistency(old: u64, old_root: Digest, new: u64, new_root: Digest, hashes: &[Digest]) {
    let wrong = Digest::of(&["wrong"]);
    assert!(!verify_consistency(old, wrong, new, new_root, hashes), "{old} to {new}, another old root");
    if old > 0 {
        assert!(!verify_consistency(old, old_root, new, wrong, hashes), "{old} to {new}, another new root");
    }
    assert!(!verify_consistency(old, old_root, new, new_root, &[hashes, &[wrong]].concat()), "one hash more");
    for position in 0..hashes.len() {
        let mut changed = hashes.to_vec();
        changed[position] = wrong;
        assert!(!verify_consistency(old, old_root, new, new_root, &changed), "hash {position} is another");
        changed.remove(position);
        assert!(!verify_consistency(old, old_root, new, new_root, &changed), "hash {position} is gone");
    }
    if old != new {
        assert!(!verify_consistency(new, new_root, old, old_root, hashes), "backwards");
    }
}

#[test]
fn every_small_tree_is_proven_as_defined() {
    let leaves = some_leaves(130);
    for size in 0..=130 {
        let (indexes, olds): (Vec<u64>, Vec<u64>) = ((0..size).collect(), (0..=size).collect());
        check_size(&leaves[..at(size)], &indexes, &olds);
    }
}

#[test]
fn large_trees_are_proven_as_defined() {
    let mut random = Random::new(20_261_115);
    for _ in 0..40 {
        let size = 131 + random.below(20_000) as u64;
        let leaves = some_leaves(size);
        let mut below = |count: u64| random.below(at(count)) as u64;
        let indexes = [0, size - 1, below(size), below(size)];
        let olds = [0, 1, size, size - 1, below(size), size.next_power_of_two() / 2];
        check_size(&leaves, &indexes, &olds);
    }
}

/// A store with so many entries, in batches of random sizes.
fn filled(mut store: Box<dyn Store>, count: u64) -> Box<dyn Reader> {
    let mut random = Random::new(count);
    let mut frontier = Frontier::default();
    while frontier.size() < count {
        let batch = (1 + random.below(700) as u64).min(count - frontier.size());
        let entries: Vec<Vec<u8>> = (frontier.size()..frontier.size() + batch).map(entry).collect();
        let first = frontier.size() + 1;
        entries.iter().for_each(|entry| frontier.append(leaf_hash(entry)));
        let new = (first..).zip(entries);
        let entries = new.map(|(seq, bytes)| NewEntry { name: EntryName::of_service(seq), bytes }).collect();
        let changes = Changes { entries, frontier: frontier.clone(), ..Changes::default() };
        let mut txn = store.begin().expect("a transaction");
        txn.write(&changes).expect("written");
        txn.commit(changes).expect("committed");
    }
    store.reader().expect("a reader")
}

#[test]
fn a_store_yields_the_same_proofs_whatever_is_remembered() {
    let scratch = tempfile::tempdir().expect("a directory");
    let block = BLOCK_LEN;
    let count = 5 * block + 17;
    let leaves = some_leaves(count);
    let readers = [
        filled(Box::new(MemoryStore::default()), count),
        filled(Box::new(SqliteStore::open(scratch.path()).expect("a store")), count),
    ];
    let edges = [0, 1, 2, block - 1, block, block + 1, 2 * block, 3 * block - 1, 4 * block + 100, count - 1, count];
    for mut reader in readers {
        let mut warm = TreeCache::new();
        for size in edges.into_iter().rev() {
            let root = naive::root(&leaves[..at(size)]);
            for other in edges.into_iter().filter(|other| *other <= size) {
                for cache in [&mut warm, &mut TreeCache::new()] {
                    let proof = cache.consistency(reader.as_mut(), other, size).expect("a proof");
                    assert!(proof.holds() && proof.root == root, "{other} to {size}");
                    let expected =
                        if other == 0 { Vec::new() } else { naive::subproof(at(other), &leaves[..at(size)], true) };
                    assert_eq!(proof.hashes, expected, "{other} to {size}");
                    if other < size {
                        let proof = cache.inclusion(reader.as_mut(), other, size).expect("a proof");
                        assert!(proof.holds() && proof.root == root, "entry {other} of {size}");
                        assert_eq!(
                            proof.hashes,
                            naive::path(at(other), &leaves[..at(size)]),
                            "entry {other} of {size}"
                        );
                        let claim = Claim::Inclusion { index: other, leaf_hash: leaves[at(other)] };
                        assert_eq!(proof.claim, claim);
                        assert_eq!(Proof::parse(&proof.to_json()), Ok(proof));
                    }
                }
            }
        }
        assert_eq!(warm.covered(), 5 * block);
        assert_eq!(
            warm.inclusion(reader.as_mut(), 3, count + 1),
            Err(ProofFault::Beyond { size: count + 1, head: count })
        );
        assert_eq!(warm.inclusion(reader.as_mut(), 7, 7), Err(ProofFault::NoSuchEntry { index: 7, size: 7 }));
        assert_eq!(warm.consistency(reader.as_mut(), 8, 7), Err(ProofFault::Backwards { old: 8, size: 7 }));
        let mut slowly = TreeCache::new();
        assert_eq!(slowly.extend(reader.as_mut(), 2), Ok(false));
        assert_eq!(
            (slowly.covered(), slowly.extend(reader.as_mut(), 9), slowly.covered()),
            (2 * block, Ok(true), 5 * block)
        );
    }
}

#[test]
fn proofs_are_read_strictly() {
    let mut reader = filled(Box::new(MemoryStore::default()), 20);
    let mut cache = TreeCache::new();
    let inclusion = cache.inclusion(reader.as_mut(), 5, 20).expect("a proof").to_json();
    let consistency = cache.consistency(reader.as_mut(), 5, 20).expect("a proof").to_json();
    for text in [&inclusion, &consistency] {
        assert!(Proof::parse(text).expect("a proof").holds());
        let changes = [
            ("{\"format\":1", "{\"format\":2"),
            ("\"size\":20", "\"size\":20.5"),
            ("\"size\":20", "\"size\":-1"),
            ("\"size\":20", "\"size\":20,\"size\":20"),
            ("\"size\":20", "\"size\":20,\"extra\":1"),
            ("\"size\":20,", ""),
            ("sha256:", "sha1:"),
            ("\"kind\":\"", "\"kind\":\"x"),
            ("\"inclusion\"", "\"consistency\""),
            ("\"consistency\"", "\"inclusion\""),
            ("\"index\":5,", ""),
            ("\"index\":5,", "\"index\":5,\"old_size\":5,"),
            ("\"old_size\":5,", ""),
            ("\"old_size\":5,", "\"old_size\":5,\"index\":5,"),
        ];
        for (from, to) in changes.into_iter().filter(|(from, _)| text.contains(from)) {
            let changed = text.replacen(from, to, 1);
            assert!(Proof::parse(&changed).is_err(), "{changed}");
        }
        // A change that can be read is a proof of something else, and does not hold.
        let changed = text.replacen("\"size\":20", "\"size\":40", 1);
        assert!(!Proof::parse(&changed).expect("a proof").holds(), "{changed}");
    }
    let newer = inclusion.replacen("\"format\":1", "\"format\":2", 1);
    assert_eq!(Proof::parse(&newer), Err(ProofError::Newer(2)));
    let hash = format!("\"{}\",", Digest::of(&[""]));
    let long = inclusion.replacen("\"hashes\":[", &format!("\"hashes\":[{}", hash.repeat(200)), 1);
    assert!(Proof::parse(&long).expect_err("too long").to_string().contains("128"));
    for text in ["", "{}", "[]", "null", "\u{feff}{}", "{\"format\":1}"] {
        assert!(Proof::parse(text).is_err(), "{text}");
    }
}

#[test]
fn notes_are_opened_by_the_public_key_as_others_open_them() {
    let key = LedgerKey::from_seed(&[1; 32]).expect("a key");
    let text = key.verifier().to_string();
    let verifier = NoteVerifier::parse(&text).expect("a verifier");
    let theirs = || signed_note::StandardVerifier::new(&text).expect("a verifier of others");
    for size in [0, 1, 22, 1_000] {
        let mut frontier = Frontier::default();
        some_leaves(size).iter().for_each(|leaf| frontier.append(*leaf));
        let note = key.sign(&frontier);
        let opened = verifier.open(&note).expect("a checkpoint");
        assert_eq!((opened.size, opened.root), (size, frontier.root()));
        assert_eq!(key.open_note(&note), Some(opened));
        // Others read the same.
        let parsed = signed_note::Note::from_bytes(note.as_bytes()).expect("a note");
        let known = signed_note::VerifierList::new(vec![Box::new(theirs())]);
        assert_eq!(parsed.verify(&known).expect("a signature").0.len(), 1);
        let checkpoint = OtherCheckpoint::from_bytes(parsed.text()).expect("a checkpoint");
        assert_eq!((checkpoint.size(), checkpoint.hash().0), (size, frontier.root().bytes()));
        assert_eq!((checkpoint.origin(), checkpoint.extension()), (key.origin(), "same-user\n"));
        // A witness may sign as well, and what it signs is not our affair; a broken line is.
        let beside = format!("{note}\u{2014} example.com/witness AAAAAAAAAAAA\n");
        assert_eq!(verifier.open(&beside), Some(opened));
        let end = note.len();
        for wrong in [
            note.replacen("\n\n", "\n", 1),
            note.replacen("same-user", "own-user", 1),
            note.replacen("\u{2014}", "-", 1),
            note[..end - 1].to_owned(),
            format!("{note}\n"),
            format!("{note}x\n"),
            format!("{note}\u{2014} example.com/witness !!\n"),
            format!("\n{note}"),
            format!("{note}{}", "\u{2014} example.com/witness AAAAAAAAAAAA\n".repeat(100)),
            note.replace('\n', "\r\n"),
        ] {
            assert_eq!(verifier.open(&wrong), None, "{wrong}");
        }
        assert_eq!(LedgerKey::from_seed(&[2; 32]).expect("a key").open_note(&note), None, "another key");
    }
    for (position, character) in text.char_indices() {
        let mut wrong = text.clone();
        wrong.replace_range(position..=position, if character == 'x' { "y" } else { "x" });
        assert_eq!(NoteVerifier::parse(&wrong), None, "{wrong}");
    }
    for wrong in ["", "+", "a+b", "a+b+c", "a b+00000000+AQ==", &format!("{text}="), &format!(" {text}")] {
        assert_eq!(NoteVerifier::parse(wrong), None, "{wrong}");
    }
}

/// A data directory with a signed checkpoint over plain entries.
fn signed_directory(directory: &Path, count: u64) -> SignedCheckpoint {
    let mut reader = filled(Box::new(SqliteStore::open(directory).expect("a store")), count);
    let file = CheckpointFile::new(directory, LedgerKey::from_seed(&[9; 32]).expect("a key"));
    file.write(&reader.head().expect("a head")).expect("written");
    file.read_signed().expect("readable").expect("a checkpoint")
}

#[test]
fn a_note_goes_with_the_size_it_signs() {
    let scratch = tempfile::tempdir().expect("a directory");
    let signed = signed_directory(scratch.path(), 600);
    let mut store = SqliteStore::open(scratch.path()).expect("a store");
    let mut reader = store.reader().expect("a reader");
    let mut frontier = reader.head().expect("a head");
    frontier.append(leaf_hash(&entry(600)));
    let new = NewEntry { name: EntryName::of_service(601), bytes: entry(600) };
    let changes = Changes { entries: vec![new], frontier, ..Changes::default() };
    let mut txn = store.begin().expect("a transaction");
    txn.write(&changes).expect("written");
    txn.commit(changes).expect("committed");

    let mut cache = TreeCache::new();
    let mut prove = |index, size| prove_entry(&mut cache, reader.as_mut(), Some(&signed), index, size);
    let proof = prove(599, None).expect("a proof");
    assert_eq!((proof.size, proof.checkpoint.as_deref()), (600, Some(signed.note.as_str())));
    assert_eq!(prove(600, None), Err(ProofFault::NotSigned { index: 600, signed: 600 }));
    let proof = prove(600, Some(601)).expect("a proof");
    assert!(proof.holds() && proof.checkpoint.is_none());
    assert!(prove(3, Some(300)).expect("a proof").checkpoint.is_none());
    let mut prove = |old, size| prove_continuation(&mut cache, reader.as_mut(), Some(&signed), old, size);
    assert_eq!(prove(300, None).expect("a proof").checkpoint, Some(signed.note.clone()));
    assert!(prove(300, Some(601)).expect("a proof").checkpoint.is_none());
    let whole = prove_continuation(&mut cache, reader.as_mut(), None, 0, None).expect("a proof");
    assert_eq!((whole.size, whole.hashes.len(), whole.holds()), (601, 0, true));
}

/// Changes the database behind everybody's back.
fn tamper(directory: &Path, sql: &str) {
    let connection = rusqlite::Connection::open(directory.join("ledger.db")).expect("a database");
    connection.execute_batch(sql).expect("tampered");
}

/// Gives the store the edge of the tree that its entries have, as somebody would who knows how.
fn rehash(directory: &Path) {
    let connection = rusqlite::Connection::open(directory.join("ledger.db")).expect("a database");
    let mut select = connection.prepare("SELECT bytes FROM entries ORDER BY number").expect("a statement");
    let mut frontier = Frontier::default();
    for bytes in select.query_map([], |row| row.get::<_, Vec<u8>>(0)).expect("rows") {
        frontier.append(leaf_hash(&bytes.expect("bytes")));
    }
    let last = at(frontier.size()) as i64 - 1;
    let update = "UPDATE entries SET frontier = ?1 WHERE number = ?2";
    connection.execute(update, rusqlite::params![frontier.to_bytes(), last]).expect("rehashed");
}

const SWAP: &str =
    "UPDATE entries SET number = -1 WHERE number = 40; UPDATE entries SET number = 40 WHERE number = 300;
    UPDATE entries SET number = 300 WHERE number = -1;";

#[test]
fn nothing_is_proven_of_a_ledger_that_was_changed() {
    let changes = [
        ("a byte", "UPDATE entries SET bytes = x'00' WHERE number = 40"),
        ("a byte in the last block", "UPDATE entries SET bytes = x'00' WHERE number = 590"),
        ("the tail is gone", "DELETE FROM entries WHERE number >= 500"),
        ("the tail is gone, blocks too", "DELETE FROM entries WHERE number >= 200"),
        ("one is gone", "DELETE FROM entries WHERE number = 40"),
        ("two are swapped", SWAP),
    ];
    for (what, sql) in changes {
        for (covered_up, warm) in [(false, false), (true, false), (false, true), (true, true)] {
            if covered_up && what == "one is gone" {
                continue;
            }
            let scratch = tempfile::tempdir().expect("a directory");
            let signed = signed_directory(scratch.path(), 600);
            let mut cache = TreeCache::new();
            let mut reader = SqliteReader::open(scratch.path()).expect("a reader");
            if warm {
                assert_eq!(cache.extend(&mut reader, u64::MAX), Ok(true));
            }
            tamper(scratch.path(), sql);
            if covered_up {
                rehash(scratch.path());
            }
            for index in [0, 40, 300, 599] {
                let proven = prove_entry(&mut cache, &mut reader, Some(&signed), index, None);
                // A warm cache may still know the roots that were; then the proof is one of what was signed.
                let harmless = warm && proven.as_ref().is_ok_and(|proof| proof.root == signed.checkpoint.root);
                if (what, covered_up, warm, index) == ("a byte", false, true, 0) {
                    let said = proven.as_ref().map_err(ToString::to_string).expect_err("changed");
                    assert_eq!(said, "the entries from 0 on are not those that were hashed before");
                }
                assert!(proven.is_err() || harmless, "{what}, covered up {covered_up}, warm {warm}, entry {index}");
            }
            let proven = prove_entry(&mut TreeCache::new(), &mut reader, Some(&signed), 40, None);
            assert!(proven.is_err(), "{what}, covered up {covered_up}");
            // Who holds an old root is shown no continuation of it either, whatever the size.
            for size in [None, Some(300), Some(450)] {
                let proven = prove_continuation(&mut TreeCache::new(), &mut reader, None, 260, size);
                let of_kept = |proof: Proof| match proof.claim {
                    Claim::Consistency { old_root, .. } => old_root == naive::root(&some_leaves(260)),
                    Claim::Inclusion { .. } => false,
                };
                let before = sql.contains("= 40");
                assert!(!before || !proven.is_ok_and(of_kept), "{what}: {size:?}");
            }
        }
    }
}

#[test]
fn a_fork_of_the_same_size_is_no_continuation_of_a_kept_checkpoint() {
    let scratch = tempfile::tempdir().expect("a directory");
    let kept = signed_directory(scratch.path(), 600);
    tamper(scratch.path(), "UPDATE entries SET bytes = CAST('another' AS BLOB) WHERE number = 333");
    rehash(scratch.path());
    // Whoever has the key can sign the fork as well; store, head and checkpoint agree with one another.
    let mut reader = SqliteReader::open(scratch.path()).expect("a reader");
    let file = CheckpointFile::new(scratch.path(), LedgerKey::from_seed(&[9; 32]).expect("a key"));
    file.write(&reader.head().expect("a head")).expect("written");
    let forked = file.read_signed().expect("readable").expect("a checkpoint");
    assert_eq!(forked.checkpoint.size, kept.checkpoint.size);
    assert_ne!(forked.checkpoint.root, kept.checkpoint.root);
    let mut cache = TreeCache::new();
    let proof = prove_continuation(&mut cache, &mut reader, Some(&forked), 600, None).expect("of itself");
    assert!(proof.holds());
    let (old, new) = (kept.checkpoint, forked.checkpoint);
    assert!(!verify_consistency(old.size, old.root, new.size, new.root, &proof.hashes), "but not of what was kept");
    assert!(prove_entry(&mut cache, &mut reader, Some(&kept), 5, None).is_err());
}

/// The verifier in Python shares nothing with this one but the formats.
fn python(arguments: &[&str]) -> (bool, String) {
    let script = repository().join("scripts/check-proof");
    let output = Command::new("python3").arg(script).args(arguments).output().expect("python3");
    let said = [output.stdout, output.stderr].concat();
    (output.status.success(), String::from_utf8(said).expect("UTF-8"))
}

#[test]
fn a_verifier_in_python_agrees() {
    let scratch = tempfile::tempdir().expect("a directory");
    let path = |name: &str| scratch.path().join(name).to_str().expect("UTF-8").to_owned();
    let signed = signed_directory(scratch.path(), 777);
    let mut reader = SqliteReader::open(scratch.path()).expect("a reader");
    let mut cache = TreeCache::new();
    let key = LedgerKey::from_seed(&[9; 32]).expect("a key").verifier().to_string();
    fs::write(path("note"), &signed.note).expect("written");
    fs::write(path("entry"), entry(300)).expect("written");
    for index in [0, 300, 776] {
        let proof = prove_entry(&mut cache, &mut reader, Some(&signed), index, None).expect("a proof").to_json();
        fs::write(path("proof"), &proof).expect("written");
        let arguments = [&path("proof"), "--key", &key, "--checkpoint", &path("note")];
        assert_eq!(python(&arguments), (true, format!("entry {index} is in the ledger of 777 entries\n")));
        let entry_path = path("entry");
        let with_entry = [&arguments[..], &["--entry", &entry_path]].concat();
        assert_eq!(python(&with_entry).0, index == 300);
        for (from, to) in [("\"hashes\":[\"sha256:", "\"hashes\":[\"sha256:0"), ("\"index\":", "\"index\":1")] {
            fs::write(path("proof"), proof.replacen(from, to, 1)).expect("written");
            let (held, said) = python(&arguments);
            assert!(!held && !said.contains("Traceback"), "{said}");
        }
    }
    for old in [0, 1, 256, 300, 776, 777] {
        let proof = prove_continuation(&mut cache, &mut reader, Some(&signed), old, None).expect("a proof").to_json();
        fs::write(path("proof"), &proof).expect("written");
        let said = format!("the ledger of 777 entries continues that of {old}\n");
        assert_eq!(python(&[&path("proof"), "--key", &key]), (true, said));
        let other = proof.replacen(&format!("\"old_size\":{old}"), &format!("\"old_size\":{}", old + 3), 1);
        fs::write(path("proof"), other).expect("written");
        assert!(!python(&[&path("proof"), "--key", &key]).0);
    }
    let stranger = LedgerKey::from_seed(&[8; 32]).expect("a key").verifier().to_string();
    let proof = prove_entry(&mut cache, &mut reader, Some(&signed), 5, None).expect("a proof").to_json();
    fs::write(path("proof"), &proof).expect("written");
    assert!(!python(&[&path("proof"), "--key", &stranger]).0);
    for (position, _) in
        signed.note.char_indices().filter(|(_, character)| character.is_ascii_alphanumeric()).step_by(17)
    {
        let mut note = signed.note.clone();
        note.replace_range(position..=position, if &note[position..=position] == "x" { "y" } else { "x" });
        fs::write(path("note"), note).expect("written");
        assert!(!python(&[&path("proof"), "--key", &key, "--checkpoint", &path("note")]).0, "byte {position}");
    }
}

#[test]
fn others_hash_entries_as_we_do() {
    assert_eq!(record_hash(b"an entry").0, leaf_hash(b"an entry").bytes());
}
