//! The compliance export: what agents asked and what they were answered, as files that stand for themselves.
//!
//! Every entry under the signed checkpoint is read and hashed, whatever the filter says; if the root is not the signed
//! one, nothing is exported. `manifest.json` is written last, so a directory without it is no export. What is in a row
//! is decided in `row.rs`, how it looks in a spreadsheet in `csv.rs`.

mod csv;
mod row;

use std::collections::{BTreeMap, HashMap, HashSet};
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use interlock_core::Digest;
use interlock_core::action::{Decision, Millis};
use interlock_core::instant::to_rfc3339;
use interlock_core::json::quote;
use interlock_core::ledger::{Body, Entry, EntryName, Executed, Frontier, leaf_hash};
use ring::digest::{Context, SHA256};

use crate::ledger::{Checkpoint, FoundEntry, NoteVerifier, Progress, Reader, SignedCheckpoint, StoreFault, find_entry};
use row::{Row, Who};

/// The form of exports.
pub const EXPORT_FORMAT: u32 = 1;
/// How many entries are read at a time.
const PAGE: usize = 1024;
const MANIFEST: &str = "manifest.json";

/// Which entries are exported: those of one agent, and of a span of time.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Filter {
    /// This agent only.
    pub agent: Option<String>,
    /// Not before this moment.
    pub from: Option<Millis>,
    /// Before this moment.
    pub to: Option<Millis>,
}

impl Filter {
    fn matches(&self, entry: &Entry) -> bool {
        (self.agent.is_none() || self.agent == entry.agent)
            && self.from.is_none_or(|from| entry.at >= from)
            && self.to.is_none_or(|to| entry.at < to)
    }

    fn to_json(&self) -> String {
        let time = |at: Option<Millis>| at.map_or_else(|| "null".to_owned(), |at| quote(&to_rfc3339(at)));
        let agent = self.agent.as_deref().map_or_else(|| "null".to_owned(), quote);
        format!("{{\"agent\":{agent},\"from\":{},\"to\":{}}}", time(self.from), time(self.to))
    }
}

/// What was exported.
#[derive(Debug)]
pub struct Export {
    /// How many entries passed the filter, of any kind.
    pub entries: u64,
    /// The rulings among them.
    pub rulings: BTreeMap<Decision, u64>,
    /// How many of these were reported as executed.
    pub executions: u64,
    /// How many agents they are about.
    pub agents: u64,
    /// The files, the manifest not counted.
    pub files: Vec<ExportedFile>,
    /// How many entries of the ledger the export was taken from: those under the checkpoint.
    pub size: u64,
    /// The root over them.
    pub root: Digest,
    /// How many entries the ledger has beyond the checkpoint; they are not in the export.
    pub later: u64,
}

/// A file of an export.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExportedFile {
    /// Its name in the directory.
    pub name: &'static str,
    /// Its size.
    pub bytes: u64,
    /// The SHA-256 of its bytes.
    pub sha256: Digest,
}

/// Why there is no export.
#[derive(Debug, thiserror::Error)]
pub enum ExportFault {
    /// There is something in the directory already.
    #[error("`{}` is there already and not an empty directory; name a new one", .0.display())]
    NotEmpty(PathBuf),
    /// A file or directory could not be written.
    #[error("cannot write `{path}`: {error}", path = .0.display(), error = .1)]
    Write(PathBuf, #[source] io::Error),
    /// The entries are not those that were signed.
    #[error("{0}")]
    Damaged(String),
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreFault),
}

/// What an export is taken from.
#[derive(Debug, Clone, Copy)]
pub struct Sealed<'a> {
    /// The checkpoint: entries beyond it are left out.
    pub signed: &'a SignedCheckpoint,
    /// The one that the server wrote last: what is exported must continue it.
    pub written: Checkpoint,
    /// The key that signed it.
    pub verifier: &'a NoteVerifier,
}

/// Writes `activity.jsonl`, `activity.csv` and `manifest.json` into a directory that is new or empty, and
/// `repeats.jsonl` if there are refusals that were counted and not written out.
///
/// Memory does not grow with the entries, only with the agents, by their names.
pub fn export(
    reader: &mut dyn Reader,
    sealed: Sealed<'_>,
    filter: &Filter,
    directory: &Path,
    created_at: Millis,
    progress: Progress<'_>,
) -> Result<Export, ExportFault> {
    let made = make_directory(directory)?;
    let mut written = Vec::new();
    let exported = fill(reader, sealed, filter, directory, created_at, progress, &mut written);
    if exported.is_err() {
        // What was begun is taken away again; what cannot be is no export, because it has no manifest.
        written.iter().for_each(|path| drop(fs::remove_file(path)));
        if made {
            let _ = fs::remove_dir(directory);
        }
    }
    exported
}

/// Whether the directory had to be made.
fn make_directory(directory: &Path) -> Result<bool, ExportFault> {
    let cannot = |error| ExportFault::Write(directory.to_owned(), error);
    match fs::symlink_metadata(directory) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            DirBuilder::new().recursive(true).mode(0o700).create(directory).map_err(cannot)?;
            Ok(true)
        }
        Err(error) => Err(cannot(error)),
        Ok(found) if found.is_dir() => match fs::read_dir(directory).map_err(cannot)?.next() {
            None => Ok(false),
            Some(_) => Err(ExportFault::NotEmpty(directory.to_owned())),
        },
        Ok(_) => Err(ExportFault::NotEmpty(directory.to_owned())),
    }
}

/// What was reported of the execution of a decision, under the checkpoint.
fn execution_of(
    reader: &mut dyn Reader,
    ruling: &Entry,
    index: u64,
    size: u64,
) -> Result<Option<(Millis, Executed)>, ExportFault> {
    let (Some(agent), Some(seq)) = (&ruling.agent, ruling.agent_seq) else { return Ok(None) };
    let Some(report) = reader.execution(agent, seq)? else { return Ok(None) };
    let name = EntryName::of_agent(agent, seq);
    let wrong = || ExportFault::Damaged(format!("entry {report} of {agent} does not report the execution of {name}"));
    let FoundEntry { place, entry, .. } = find_entry(reader, Some(agent), report)?.ok_or_else(wrong)?;
    if place >= size {
        return Ok(None);
    }
    let Body::Executed(executed) = &entry.body else { return Err(wrong()) };
    if !entry.speaks_of(&executed.decision, &name, index) {
        return Err(wrong());
    }
    Ok(Some((entry.at, (**executed).clone())))
}

fn fill(
    reader: &mut dyn Reader,
    sealed: Sealed<'_>,
    filter: &Filter,
    directory: &Path,
    created_at: Millis,
    progress: Progress<'_>,
    written: &mut Vec<PathBuf>,
) -> Result<Export, ExportFault> {
    let checkpoint = sealed.signed.checkpoint;
    let head = reader.head()?.size();
    let later = head.checked_sub(checkpoint.size).ok_or_else(|| {
        let size = checkpoint.size;
        ExportFault::Damaged(format!("the checkpoint covers {size} entries, and the store holds {head}"))
    })?;
    let mut lines = HashedFile::create(directory, "activity.jsonl", written)?;
    let mut sheet = HashedFile::create(directory, "activity.csv", written)?;
    sheet.write(csv::header().as_bytes())?;

    let mut repeats: Option<HashedFile> = None;
    let mut rulings: BTreeMap<Decision, u64> = Decision::ALL.iter().map(|decision| (*decision, 0)).collect();
    let (mut entries, mut seen, mut who) = (0_u64, HashSet::new(), HashMap::new());
    let (mut frontier, mut executions) = (Frontier::default(), 0_u64);
    while frontier.size() < checkpoint.size {
        let left = usize::try_from(checkpoint.size.saturating_sub(frontier.size())).unwrap_or(PAGE);
        let page = reader.entries(frontier.size(), PAGE.min(left))?;
        if page.is_empty() {
            return Err(ExportFault::Damaged(format!("entry {} is missing", frontier.size())));
        }
        for bytes in page {
            let (index, leaf) = (frontier.size(), leaf_hash(&bytes));
            check_root(&frontier, sealed.written)?;
            frontier.append(leaf);
            let entry = Entry::from_bytes(&bytes);
            let entry = entry.map_err(|error| ExportFault::Damaged(format!("entry {index}: {error}")))?;
            if let Body::Registered(registered) = &entry.body
                && filter.agent.as_ref().is_none_or(|agent| *agent == registered.profile.agent_id)
            {
                who.insert(registered.profile.agent_id.clone(), Who::of(&registered.profile));
            }
            if !filter.matches(&entry) {
                continue;
            }
            entries = entries.saturating_add(1);
            if let Some(agent) = &entry.agent {
                // Half of the digest tells agents apart as well as their names do, and is shorter.
                seen.insert(Digest::of(&[agent]).bytes().first_chunk::<16>().copied());
            }
            if let Body::RefusalsRepeated(repeated) = &entry.body {
                for repeat in repeated.rulings() {
                    let count = rulings.entry(repeat.decision).or_default();
                    *count = count.saturating_add(repeat.count);
                }
                let file = match &mut repeats {
                    Some(file) => file,
                    None => repeats.insert(HashedFile::create(directory, "repeats.jsonl", written)?),
                };
                file.write(row::repeats_to_json(index, leaf, &bytes)?.as_bytes())?;
            }
            let Body::Ruled(ruled) = &entry.body else { continue };
            let count = rulings.entry(ruled.ruling.decision).or_default();
            *count = count.saturating_add(1);
            let who = entry.agent.as_ref().and_then(|agent| who.get(agent));
            let execution = execution_of(reader, &entry, index, checkpoint.size)?;
            executions = executions.saturating_add(u64::from(execution.is_some()));
            let row = Row { index, leaf, entry: &entry, ruled, who, execution, bytes: &bytes };
            lines.write(row.to_json()?.as_bytes())?;
            sheet.write(csv::line(&row).as_bytes())?;
        }
        progress(frontier.size(), checkpoint.size);
    }
    check_root(&frontier, sealed.written)?;
    check_root(&frontier, checkpoint)?;
    let mut files = vec![lines.finish()?, sheet.finish()?];
    files.extend(repeats.map(HashedFile::finish).transpose()?);
    let export = Export {
        entries,
        rulings,
        executions,
        agents: u64::try_from(seen.len()).unwrap_or(u64::MAX),
        files,
        size: checkpoint.size,
        root: checkpoint.root,
        later,
    };
    let mut manifest = HashedFile::create(directory, MANIFEST, written)?;
    manifest.write(manifest_json(&export, sealed, filter, created_at).as_bytes())?;
    manifest.finish()?;
    let synced = File::open(directory).and_then(|directory| directory.sync_all());
    synced.map_err(|error| ExportFault::Write(directory.to_owned(), error))?;
    Ok(export)
}

/// Whether the entries so far are those that a checkpoint of their number signed.
fn check_root(frontier: &Frontier, signed: Checkpoint) -> Result<(), ExportFault> {
    if frontier.size() == signed.size && frontier.root() != signed.root {
        let size = signed.size;
        let reason = format!("the first {size} entries do not have the root the checkpoint signed");
        return Err(ExportFault::Damaged(reason));
    }
    Ok(())
}

fn manifest_json(export: &Export, sealed: Sealed<'_>, filter: &Filter, created_at: Millis) -> String {
    let file = |file: &ExportedFile| {
        let ExportedFile { name, bytes, sha256 } = file;
        format!("    {{\"name\":\"{name}\",\"bytes\":{bytes},\"sha256\":\"{sha256}\"}}")
    };
    let files: Vec<String> = export.files.iter().map(file).collect();
    let rulings: Vec<String> =
        export.rulings.iter().map(|(decision, count)| format!("\"{decision}\":{count}")).collect();
    let mut text = String::from("{\n");
    for (key, value) in [
        ("format", EXPORT_FORMAT.to_string()),
        ("created_at", quote(&to_rfc3339(created_at))),
        ("filter", filter.to_json()),
        ("entries", export.entries.to_string()),
        ("rulings", format!("{{{}}}", rulings.join(","))),
        ("executions", export.executions.to_string()),
        ("agents", export.agents.to_string()),
        ("files", format!("[\n{}\n  ]", files.join(",\n"))),
        ("size", export.size.to_string()),
        ("root", format!("\"{}\"", export.root)),
        ("checkpoint", quote(&sealed.signed.note)),
        ("verifier_key", quote(&sealed.verifier.to_string())),
    ] {
        let comma = if key == "verifier_key" { "" } else { "," };
        text.push_str(&format!("  \"{key}\": {value}{comma}\n"));
    }
    text.push_str("}\n");
    text
}

/// A new file that knows its size and digest.
struct HashedFile {
    name: &'static str,
    path: PathBuf,
    file: BufWriter<File>,
    digest: Context,
    bytes: u64,
}

impl HashedFile {
    fn create(directory: &Path, name: &'static str, written: &mut Vec<PathBuf>) -> Result<HashedFile, ExportFault> {
        let path = directory.join(name);
        let file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path);
        let file = file.map_err(|error| ExportFault::Write(path.clone(), error))?;
        written.push(path.clone());
        Ok(HashedFile { name, path, file: BufWriter::new(file), digest: Context::new(&SHA256), bytes: 0 })
    }

    fn write(&mut self, bytes: &[u8]) -> Result<(), ExportFault> {
        self.digest.update(bytes);
        self.bytes = self.bytes.saturating_add(u64::try_from(bytes.len()).unwrap_or(u64::MAX));
        self.file.write_all(bytes).map_err(|error| ExportFault::Write(self.path.clone(), error))
    }

    fn finish(mut self) -> Result<ExportedFile, ExportFault> {
        let synced = self.file.flush().and_then(|()| self.file.get_ref().sync_all());
        synced.map_err(|error| ExportFault::Write(self.path.clone(), error))?;
        let digest = self.digest.finish().as_ref().try_into().unwrap_or([0; 32]);
        Ok(ExportedFile { name: self.name, bytes: self.bytes, sha256: Digest::from_bytes(digest) })
    }
}
