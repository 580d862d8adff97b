//! `interlock audit key`, `prove`, `consistency` and `check`: proofs are made beside a server and checked anywhere.
//!
//! Making one needs the data directory. Checking one needs the proof, a checkpoint and the public key, nothing else.

use std::path::{Path, PathBuf};

use clap::Args;
use interlock_core::json::quote;
use interlock_core::ledger::{Body, Claim, Entry, Proof, leaf_hash};
use interlock_core::{Code, display};
use interlock_runtime::ledger::{
    Checkpoint, CheckpointFile, LedgerKey, NoteVerifier, ProofFault, Reader, SignedCheckpoint, SqliteReader, TreeCache,
    prove_continuation, prove_entry,
};

use super::{NoEntropy, clear_progress, is_there, open, progress, refuse};
use crate::input::Inputs;
use crate::serve::Places;
use crate::{Fault, Outcome, print, style};

/// How many entries are read at a time when one is looked for.
const PAGE: usize = 1024;

#[derive(Debug, Args)]
#[command(after_help = "Example: interlock audit key > ledger.pub    hand it to whoever checks your proofs")]
pub(crate) struct KeyArguments {
    /// Where the ledger is kept [default: INTERLOCK_HOME/data]
    #[arg(long, value_name = "DIR")]
    data: Option<PathBuf>,
    /// Print JSON
    #[arg(long)]
    pub(super) json: bool,
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  interlock audit prove 41 > proof.json
  interlock audit prove dec_1c0d81907c8511dac180148e070a3ac1 --save-entry entry.json > proof.json
  interlock audit check proof.json --key ledger.pub --entry entry.json")]
pub(crate) struct ProveArguments {
    /// The entry: its index, counted from 0, or the id of a decision
    #[arg(value_name = "N")]
    entry: String,
    /// Prove it in the tree of this size instead of the signed checkpoint's
    #[arg(long, value_name = "M")]
    size: Option<u64>,
    /// Write the entry, byte for byte, to a new file
    #[arg(long, value_name = "FILE")]
    save_entry: Option<PathBuf>,
    /// Where the ledger is kept [default: INTERLOCK_HOME/data]
    #[arg(long, value_name = "DIR")]
    data: Option<PathBuf>,
    /// Print errors as JSON too; the proof always is
    #[arg(long)]
    pub(super) json: bool,
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  interlock audit consistency kept-last-month.txt > proof.json    does the ledger continue a checkpoint that was kept?
  interlock audit consistency 1000 2000 > proof.json")]
pub(crate) struct ConsistencyArguments {
    /// The older tree: its size, or a file with its checkpoint
    #[arg(value_name = "OLD")]
    old: String,
    /// The newer tree: its size, or a file with its checkpoint [default: the signed checkpoint]
    #[arg(value_name = "NEW")]
    new: Option<String>,
    /// Where the ledger is kept [default: INTERLOCK_HOME/data]
    #[arg(long, value_name = "DIR")]
    data: Option<PathBuf>,
    /// Print errors as JSON too; the proof always is
    #[arg(long)]
    pub(super) json: bool,
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  interlock audit check proof.json --checkpoint checkpoint.txt --key ledger.pub
  interlock audit check proof.json --key ledger.pub --old kept-last-month.txt

No data directory is needed. Have the key from somebody you trust; a proof is worth no more than its key.")]
pub(crate) struct CheckArguments {
    /// The proof, - being standard input
    #[arg(value_name = "PROOF.json")]
    proof: String,
    /// The signed checkpoint the proof must lead to [default: the one in the proof]
    #[arg(long, value_name = "FILE")]
    checkpoint: Option<String>,
    /// The verifier key, or a file with it
    #[arg(long, value_name = "KEY|FILE")]
    key: String,
    /// The entry that was proven, byte for byte
    #[arg(long, value_name = "FILE")]
    entry: Option<String>,
    /// The signed checkpoint of the older tree, for a consistency proof
    #[arg(long, value_name = "FILE")]
    old: Option<String>,
    /// Print JSON
    #[arg(long)]
    pub(super) json: bool,
}

/// The ledger's key and its signed checkpoint, which is read before the store: that can only be ahead of it.
pub(super) fn signed(data: &Path) -> Result<(CheckpointFile, Option<SignedCheckpoint>), Fault> {
    is_there(data)?;
    let damaged = |error: std::io::Error| Fault::with_code(Code::LedgerDamaged, format!("checkpoint: {error}"));
    let file = CheckpointFile::new(data, LedgerKey::open(data, &NoEntropy).map_err(damaged)?);
    let signed = file.read_signed().map_err(damaged)?;
    Ok((file, signed))
}

pub(super) fn run_key(arguments: &KeyArguments) -> Result<Outcome, Fault> {
    let data = Places::find(arguments.data.as_deref())?.data;
    is_there(&data)?;
    let key = LedgerKey::open(&data, &NoEntropy).map_err(|error| {
        Fault::with_code(Code::LedgerDamaged, format!("{} holds no ledger: {error}", data.display()))
    })?;
    let verifier = key.verifier();
    let text = if arguments.json {
        format!("{{\"verifier_key\":{}}}\n", quote(&verifier.to_string()))
    } else {
        format!("{verifier}\n")
    };
    print(text.as_bytes())?;
    Ok(Outcome::Clean)
}

pub(super) fn run_prove(arguments: &ProveArguments) -> Result<Outcome, Fault> {
    let data = Places::find(arguments.data.as_deref())?.data;
    let (_, signed) = signed(&data)?;
    let mut reader = open(&data)?;
    let index = match arguments.entry.parse() {
        Ok(index) => index,
        Err(_) if arguments.entry.starts_with("dec_") => find_decision(&mut reader, &arguments.entry, arguments.json)?,
        Err(_) => {
            let given = display(&arguments.entry);
            return Err(Fault::new(format!("`{given}` is neither the index of an entry nor the id of a decision")));
        }
    };
    let proof = prove_entry(&mut TreeCache::new(), &mut reader, signed.as_ref(), index, arguments.size);
    let proof = match proof {
        Ok(proof) => proof,
        Err(fault) => return answer_fault(&fault, arguments.json),
    };
    if let Some(path) = &arguments.save_entry {
        save_entry(&mut reader, index, &proof, path)?;
    }
    print_proof(&proof)
}

pub(super) fn run_consistency(arguments: &ConsistencyArguments) -> Result<Outcome, Fault> {
    let data = Places::find(arguments.data.as_deref())?.data;
    let (file, signed) = signed(&data)?;
    let verifier = file.key().verifier();
    let mut inputs = Inputs::default();
    let old = Tree::read("OLD", &arguments.old, verifier, &mut inputs)?;
    let new = match &arguments.new {
        Some(new) => Some(Tree::read("NEW", new, verifier, &mut inputs)?),
        None => None,
    };
    // A checkpoint that was given is the one to prove, and its note goes with the proof.
    let given = new.as_ref().and_then(Tree::signed);
    let signed = given.cloned().or(signed);
    let size = new.as_ref().map(Tree::size);
    let mut reader = open(&data)?;
    if let Some(kept) = old.signed() {
        let head = reader.head().map_err(|fault| Fault::with_code(Code::FaultStore, fault.to_string()))?.size();
        if kept.checkpoint.size > head {
            let (size, name) = (kept.checkpoint.size, display(&arguments.old).to_string());
            let reason = format!("the checkpoint `{name}` covers {size} entries, and the store holds {head}");
            return Ok(refuse(Code::LedgerDamaged, reason, arguments.json));
        }
    }
    let proof = prove_continuation(&mut TreeCache::new(), &mut reader, signed.as_ref(), old.size(), size);
    let proof = match proof {
        Ok(proof) => proof,
        Err(fault) => return answer_fault(&fault, arguments.json),
    };
    if let (Some(kept), Claim::Consistency { old_size, old_root }) = (old.signed(), proof.claim)
        && kept.checkpoint.root != old_root
    {
        let reason = format!(
            "the first {old_size} entries do not have the root of the checkpoint `{}`",
            display(&arguments.old)
        );
        return Ok(refuse(Code::LedgerDamaged, reason, arguments.json));
    }
    print_proof(&proof)
}

pub(super) fn run_check(arguments: &CheckArguments) -> Result<Outcome, Fault> {
    let mut inputs = Inputs::default();
    let verifier = read_key(&arguments.key, &mut inputs)?;
    let proof = inputs.read("PROOF.json", &arguments.proof)?;
    let text = utf8(&proof.bytes).ok_or_else(|| Fault::new(format!("`{}` is not a text", proof.name)))?;
    let proof = Proof::parse(text).map_err(|error| Fault::new(format!("`{}`: {error}", display(&proof.name))))?;
    let note = match &arguments.checkpoint {
        Some(path) => read_note("--checkpoint", path, &mut inputs)?,
        None => proof
            .checkpoint
            .clone()
            .ok_or_else(|| Fault::new("the proof carries no checkpoint; give one with --checkpoint FILE"))?,
    };
    let old = arguments.old.as_deref().map(|path| read_note("--old", path, &mut inputs)).transpose()?;
    let entry = arguments.entry.as_deref().map(|path| inputs.read("--entry", path)).transpose()?;
    match (proof.claim, &old, &entry) {
        (Claim::Inclusion { .. }, Some(_), _) => return Err(Fault::new("--old goes with a consistency proof")),
        (Claim::Consistency { .. }, _, Some(_)) => return Err(Fault::new("--entry goes with an inclusion proof")),
        _ => {}
    }
    let refuted = refute(&proof, &verifier, &note, old.as_deref(), entry.as_ref().map(|entry| entry.bytes.as_slice()));
    let text = if arguments.json {
        check_json(&proof, refuted.as_deref())
    } else {
        check_text(&proof, &verifier, &note, old.is_some(), entry.is_some(), refuted.as_deref())
    };
    print(text.as_bytes())?;
    Ok(if refuted.is_none() { Outcome::Clean } else { Outcome::Refused })
}

/// What is wrong with a proof; `None` if nothing is.
fn refute(
    proof: &Proof,
    verifier: &NoteVerifier,
    note: &str,
    old: Option<&str>,
    entry: Option<&[u8]>,
) -> Option<String> {
    let Some(Checkpoint { size, root }) = verifier.open(note) else {
        return Some("the checkpoint is not signed by this key".to_owned());
    };
    if (size, root) != (proof.size, proof.root) {
        return Some(format!("the checkpoint covers {size} entries with root {root}, and the proof is about others"));
    }
    if let (Some(entry), Claim::Inclusion { leaf_hash: leaf, .. }) = (entry, proof.claim) {
        // Editors like to end a file with a newline; the entry has none.
        let trimmed = entry.strip_suffix(b"\n").unwrap_or(entry);
        if leaf_hash(entry) != leaf && leaf_hash(trimmed) != leaf {
            return Some("the entry is not the one that was proven".to_owned());
        }
    }
    if let (Some(old), Claim::Consistency { old_size, old_root }) = (old, proof.claim) {
        match verifier.open(old) {
            None => return Some("the older checkpoint is not signed by this key".to_owned()),
            Some(old) if (old.size, old.root) != (old_size, old_root) => {
                let Checkpoint { size, root } = old;
                return Some(format!("the older checkpoint covers {size} entries with root {root}, not the proof's"));
            }
            Some(_) => {}
        }
    }
    (!proof.holds()).then(|| "the hashes of the proof do not lead to its root".to_owned())
}

fn check_json(proof: &Proof, refuted: Option<&str>) -> String {
    let (kind, about) = match proof.claim {
        Claim::Inclusion { index, leaf_hash } => {
            ("inclusion", format!("\"index\":{index},\"leaf_hash\":\"{leaf_hash}\""))
        }
        Claim::Consistency { old_size, old_root } => {
            ("consistency", format!("\"old_size\":{old_size},\"old_root\":\"{old_root}\""))
        }
    };
    let reason = refuted.map_or_else(String::new, |reason| format!(",\"reason\":{}", quote(reason)));
    let (ok, size, root) = (refuted.is_none(), proof.size, proof.root);
    format!("{{\"ok\":{ok},\"kind\":\"{kind}\",{about},\"size\":{size},\"root\":\"{root}\"{reason}}}\n")
}

fn check_text(
    proof: &Proof,
    verifier: &NoteVerifier,
    note: &str,
    with_old: bool,
    with_entry: bool,
    refuted: Option<&str>,
) -> String {
    if let Some(reason) = refuted {
        return format!("{}NOT PROVEN{} {reason}\n", style::BAD, style::RESET);
    }
    let size = proof.size;
    let (what, detail) = match proof.claim {
        Claim::Inclusion { index, leaf_hash } => {
            let whose = if with_entry { "the entry given" } else { "an entry with this hash; --entry compares one" };
            (format!("entry {index} is in the ledger of {size} entries"), format!("leaf {leaf_hash}, {whose}"))
        }
        Claim::Consistency { old_size, old_root } => {
            let whose = if with_old { "as signed" } else { "as the proof says; --old compares a checkpoint you kept" };
            (
                format!("the ledger of {size} entries continues that of {old_size}"),
                format!("old root {old_root}, {whose}"),
            )
        }
    };
    // The fourth line of a checkpoint says what it covers. It is signed like the rest.
    let reach = note.lines().nth(3).filter(|line| !line.is_empty()).unwrap_or("no reach given");
    let (good, reset, root, name) = (style::GOOD, style::RESET, proof.root, display(verifier.name()));
    format!("{good}PROVEN{reset} {what}\n  {detail}\n  root {root}\n  signed by {name}, {}\n", display(reach))
}

/// A tree that was named on the command line.
enum Tree {
    OfSize(u64),
    Signed(SignedCheckpoint),
}

impl Tree {
    fn read(what: &'static str, text: &str, verifier: &NoteVerifier, inputs: &mut Inputs) -> Result<Tree, Fault> {
        if let Ok(size) = text.parse() {
            return Ok(Tree::OfSize(size));
        }
        let note = read_note(what, text, inputs)?;
        let foreign = || Fault::new(format!("`{}` is no checkpoint signed by this ledger's key", display(text)));
        let checkpoint = verifier.open(&note).ok_or_else(foreign)?;
        Ok(Tree::Signed(SignedCheckpoint { note, checkpoint }))
    }

    fn size(&self) -> u64 {
        match self {
            Tree::OfSize(size) => *size,
            Tree::Signed(signed) => signed.checkpoint.size,
        }
    }

    fn signed(&self) -> Option<&SignedCheckpoint> {
        match self {
            Tree::OfSize(_) => None,
            Tree::Signed(signed) => Some(signed),
        }
    }
}

fn utf8(bytes: &[u8]) -> Option<&str> {
    std::str::from_utf8(bytes).ok()
}

fn read_note(what: &'static str, path: &str, inputs: &mut Inputs) -> Result<String, Fault> {
    let input = inputs.read(what, path)?;
    let text = utf8(&input.bytes).map(str::to_owned);
    text.ok_or_else(|| Fault::new(format!("{what} `{}` is not a checkpoint", display(&input.name))))
}

/// A key as it stands on the command line, or in the file that is named there.
fn read_key(text: &str, inputs: &mut Inputs) -> Result<NoteVerifier, Fault> {
    if let Some(verifier) = NoteVerifier::parse(text) {
        return Ok(verifier);
    }
    let input = inputs.read("--key", text)?;
    let verifier = utf8(&input.bytes).and_then(|text| NoteVerifier::parse(text.trim()));
    verifier.ok_or_else(|| {
        let name = display(&input.name).to_string();
        Fault::new(format!(
            "`{name}` holds no verifier key; one reads name+hash+base64, as `interlock audit key` prints"
        ))
    })
}

/// Looks for a decision from the end, because recent ones are asked for most.
fn find_decision(reader: &mut SqliteReader, id: &str, json: bool) -> Result<u64, Fault> {
    let store = |fault: interlock_runtime::ledger::StoreFault| Fault::with_code(Code::FaultStore, fault.to_string());
    let size = reader.head().map_err(store)?.size();
    let wanted = format!("\"decision_id\":{}", quote(id));
    let mut progress = progress(json);
    let mut end = size;
    while end > 0 {
        let from = end.saturating_sub(u64::try_from(PAGE).unwrap_or(1));
        let count = usize::try_from(end.saturating_sub(from)).unwrap_or(PAGE);
        let page = reader.entries(from, count).map_err(store)?;
        let found =
            page.iter().rposition(|bytes| utf8(bytes).is_some_and(|text| text.contains(&wanted)) && decides(bytes, id));
        if let Some(position) = found.and_then(|position| u64::try_from(position).ok()) {
            clear_progress(json);
            return Ok(from.saturating_add(position));
        }
        end = from;
        progress(size.saturating_sub(end), size);
    }
    clear_progress(json);
    Err(Fault::new(format!("there is no decision `{}` among {size} entries", display(id))))
}

fn decides(bytes: &[u8], id: &str) -> bool {
    Entry::from_bytes(bytes).is_ok_and(|entry| matches!(&entry.body, Body::Ruled(ruled) if ruled.decision_id == id))
}

fn save_entry(reader: &mut SqliteReader, index: u64, proof: &Proof, path: &Path) -> Result<(), Fault> {
    let page = reader.entries(index, 1).map_err(|fault| Fault::with_code(Code::FaultStore, fault.to_string()))?;
    let proven =
        |bytes: &&Vec<u8>| matches!(proof.claim, Claim::Inclusion { leaf_hash: leaf, .. } if leaf_hash(bytes) == leaf);
    let changed = || Fault::with_code(Code::LedgerDamaged, format!("entry {index} changed while it was proven"));
    let bytes = page.first().filter(proven).ok_or_else(changed)?;
    let written = std::fs::OpenOptions::new().write(true).create_new(true).open(path);
    let written = written.and_then(|mut file| std::io::Write::write_all(&mut file, bytes));
    written.map_err(|error| Fault::new(format!("cannot write `{}`: {error}", path.display())))
}

fn print_proof(proof: &Proof) -> Result<Outcome, Fault> {
    print(format!("{}\n", proof.to_json()).as_bytes())?;
    Ok(Outcome::Clean)
}

/// A ledger that was changed is a finding; everything else is a fault of the question or of the store.
fn answer_fault(fault: &ProofFault, json: bool) -> Result<Outcome, Fault> {
    match fault {
        ProofFault::Damaged(reason) => Ok(refuse(Code::LedgerDamaged, reason.clone(), json)),
        ProofFault::Store(_) => Err(Fault::with_code(Code::FaultStore, fault.to_string())),
        ProofFault::Beyond { .. }
        | ProofFault::NoSuchEntry { .. }
        | ProofFault::NotSigned { .. }
        | ProofFault::Backwards { .. } => Err(Fault::new(fault.to_string())),
    }
}
