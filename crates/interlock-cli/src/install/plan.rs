//! What a command would do to files: shown first, done together, undone together if one of them fails.

use std::fs;
use std::io::{self, BufRead, IsTerminal, Write};
use std::path::{Path, PathBuf};

use interlock_core::json::quote;
use interlock_core::{Digest, visible};
use interlock_hosts::Host;
use interlock_hosts::settings::{self, Base, Place, Scope, Wanted, places};

use super::diff::difference;
use super::file::{TargetFile, shown};
use super::programs;
use super::remembered::Record;
use crate::Fault;
use crate::style::{BAD, FAINT, GOOD, RESET};

/// One file and what becomes of it.
pub(crate) struct Step {
    pub(crate) file: TargetFile,
    /// What it is to say; nothing: it goes.
    pub(crate) next: Option<Vec<u8>>,
    /// What is different then, a line each.
    pub(crate) changes: Vec<String>,
    memory: Memory,
}

/// What is remembered of a step.
enum Memory {
    Nothing,
    Keep(Box<Record>),
    Forget(Box<Record>),
}

/// Where the settings of a host are edited.
#[derive(Clone, Copy)]
pub(crate) struct Ground<'g> {
    pub(crate) scope: Scope,
    /// The user's own directory, or the project's.
    pub(crate) base: &'g Path,
    /// The home of Interlock.
    pub(crate) home: &'g Path,
}

impl Ground<'_> {
    fn look(&self, place: &Place) -> Result<TargetFile, Fault> {
        TargetFile::look(self.base, place.path, place.base == Base::Home)
    }
}

impl Step {
    /// A file of our own that is to be there.
    pub(crate) fn write(file: TargetFile, bytes: Vec<u8>, what: String) -> Step {
        Step { file, next: Some(bytes), changes: vec![what], memory: Memory::Nothing }
    }

    /// A file of our own that is to go.
    pub(super) fn remove(file: TargetFile, what: String) -> Step {
        Step { file, next: None, changes: vec![what], memory: Memory::Nothing }
    }

    pub(crate) fn is_change(&self) -> bool {
        self.file.bytes != self.next
    }

    /// What is different; of what is no text, nothing can be shown.
    fn difference(&self) -> String {
        let text = |bytes: &Option<Vec<u8>>| String::from_utf8(bytes.clone().unwrap_or_default()).unwrap_or_default();
        difference(&text(&self.file.bytes), &text(&self.next))
    }

    fn state(&self) -> &'static str {
        match (&self.file.bytes, &self.next) {
            (before, after) if before == after => "unchanged",
            (None, _) => "new",
            (Some(_), Some(_)) => "edited",
            (Some(_), None) => "removed",
        }
    }
}

/// What `install` does for a host.
pub(crate) fn install(host: Host, ground: Ground<'_>, wanted: &Wanted) -> Result<Vec<Step>, Fault> {
    // First what the settings name: a host whose prefix is missing runs nothing.
    let mut steps = programs::install(host, ground.home, wanted)?;
    for place in places(host, ground.scope) {
        let file = ground.look(&place)?;
        let refused = |problem: settings::Problem| refusal(&file.path, &problem);
        let edited = settings::install(host, &place, file.text(), wanted).map_err(refused)?;
        let path = path_text(&file.path)?;
        let known = Record::of(ground.home, host, &file.path);
        let is_ours = |record: &Record| file.text().map(digest) == Some(record.after);
        let (before, made) = match known {
            // Installed again: what was there before is what was there before the first time.
            Some(record) if is_ours(&record) => (record.before, record.made),
            known => {
                let stripped = settings::uninstall(host, &place, file.text()).map_err(refused)?;
                (stripped.text, known.map(|record| record.made).unwrap_or_default())
            }
        };
        let record = Record {
            host,
            is_user: ground.scope == Scope::User,
            base: path_text(ground.base)?,
            path,
            before,
            after: digest(edited.text.as_deref().unwrap_or_default()),
            made,
        };
        let memory = Memory::Keep(Box::new(record));
        steps.push(Step { file, next: edited.text.map(String::into_bytes), changes: edited.changes, memory });
    }
    Ok(steps)
}

/// What `uninstall` does for a host.
pub(crate) fn uninstall(host: Host, ground: Ground<'_>) -> Result<Vec<Step>, Fault> {
    let mut steps = Vec::new();
    for place in places(host, ground.scope) {
        let file = ground.look(&place)?;
        let known = Record::of(ground.home, host, &file.path);
        let memory = |known: Option<Record>| known.map_or(Memory::Nothing, |record| Memory::Forget(Box::new(record)));
        if let Some(record) = &known
            && file.text().map(digest) == Some(record.after)
        {
            let next = record.before.clone().map(String::into_bytes);
            let changes = vec!["restored as it was, to the byte".to_owned()];
            steps.push(Step { file, next, changes, memory: memory(known) });
            continue;
        }
        let refused = |problem: settings::Problem| refusal(&file.path, &problem);
        let edited = settings::uninstall(host, &place, file.text()).map_err(refused)?;
        let mut changes = edited.changes;
        if !changes.is_empty() && known.is_some() {
            changes.push("somebody changed the file since: only ours was taken out".to_owned());
        }
        let next = edited.text.map(String::into_bytes);
        steps.push(Step { file, next, changes, memory: memory(known) });
    }
    let forgotten = steps.iter().filter(|step| matches!(step.memory, Memory::Forget(_))).count();
    steps.extend(programs::uninstall(ground.home, forgotten)?);
    Ok(steps)
}

/// Does all of it, or nothing.
pub(crate) fn apply(steps: &[Step], home: &Path) -> Result<(), Fault> {
    let mut made = Vec::new();
    for (count, step) in steps.iter().enumerate() {
        if let Err(fault) = apply_one(step, home, &mut made) {
            let undone: Vec<io::Result<()>> =
                steps.iter().take(count).filter(|step| step.is_change()).map(|step| step.file.give_back()).collect();
            remove_empty(made);
            let next = if undone.iter().all(Result::is_ok) {
                "nothing was changed".to_owned()
            } else {
                "some files were changed already: `interlock uninstall` takes that back".to_owned()
            };
            return Err(fault.and_then_do(next));
        }
    }
    // Last, because several files may lie in one of them.
    let forgotten = |step: &Step| match &step.memory {
        Memory::Forget(record) => record.made.iter().map(PathBuf::from).collect(),
        Memory::Nothing | Memory::Keep(_) => Vec::new(),
    };
    remove_empty(steps.iter().flat_map(forgotten).collect());
    programs::remove_directory(home);
    Ok(())
}

/// Takes back directories that were made, the innermost first. One that somebody uses by now stays.
fn remove_empty(mut directories: Vec<PathBuf>) {
    directories.sort_by_key(|directory| std::cmp::Reverse(directory.components().count()));
    for directory in directories {
        let _ = fs::remove_dir(directory);
    }
}

fn apply_one(step: &Step, home: &Path, all_made: &mut Vec<PathBuf>) -> Result<(), Fault> {
    match &step.memory {
        Memory::Nothing if step.is_change() => {
            all_made.extend(step.file.replace(step.next.as_deref())?);
            Ok(())
        }
        Memory::Nothing => Ok(()),
        Memory::Keep(record) => {
            record.write(home)?;
            if !step.is_change() {
                return Ok(());
            }
            let made = step.file.replace(step.next.as_deref())?;
            if made.is_empty() {
                return Ok(());
            }
            all_made.extend(made.iter().cloned());
            let made = made.iter().map(|path| path_text(path)).collect::<Result<_, _>>()?;
            Record { made, ..Record::clone(record) }.write(home)
        }
        Memory::Forget(record) => {
            if step.is_change() {
                step.file.replace(step.next.as_deref())?;
            }
            record.forget(home);
            Ok(())
        }
    }
}

/// The steps for people.
pub(crate) fn show(steps: &[Step]) -> String {
    let mut out = String::new();
    for step in steps {
        let state = match step.state() {
            "new" => format!("{GOOD}new file{RESET}"),
            "removed" => format!("{BAD}goes{RESET}"),
            state => state.to_owned(),
        };
        out.push_str(&format!("{} ({state})\n", shown(&step.file.path)));
        for change in &step.changes {
            out.push_str(&format!("  {}\n", visible(change)));
        }
        for line in step.difference().lines() {
            let colour = match line.chars().next() {
                Some('+') => GOOD,
                Some('-') => BAD,
                _ => FAINT,
            };
            out.push_str(&format!("    {colour}{line}{RESET}\n"));
        }
    }
    out
}

/// The steps for programs: an array of objects.
pub(crate) fn show_json(steps: &[Step]) -> String {
    let rows: Vec<String> = steps
        .iter()
        .map(|step| {
            let changes: Vec<String> = step.changes.iter().map(|change| quote(change)).collect();
            format!(
                "{{\"path\":{},\"state\":{},\"changes\":[{}],\"diff\":{}}}",
                quote(&shown(&step.file.path)),
                quote(step.state()),
                changes.join(","),
                quote(&step.difference())
            )
        })
        .collect();
    format!("[{}]", rows.join(","))
}

/// Whether somebody can be asked, or need not be. Without a terminal it has to be said beforehand.
pub(crate) fn askable(yes: bool, json: bool) -> Result<(), Fault> {
    if yes || (!json && io::stdin().is_terminal()) {
        return Ok(());
    }
    let next = "look with --dry-run, then say --yes";
    Err(Fault::new("nothing was changed: there is nobody to ask").and_then_do(next))
}

/// Asks whether to go on.
pub(crate) fn confirm(question: &str, yes: bool) -> Result<bool, Fault> {
    if yes {
        return Ok(true);
    }
    let mut err = anstream::stderr();
    let _ = write!(err, "{question} [y/N] ").and_then(|()| err.flush());
    let mut answer = String::new();
    io::stdin().lock().read_line(&mut answer).map_err(|error| Fault::new(format!("no answer: {error}")))?;
    Ok(matches!(answer.trim().to_ascii_lowercase().as_str(), "y" | "yes"))
}

fn refusal(path: &Path, problem: &settings::Problem) -> Fault {
    let next = "nothing was changed; mend the file, or leave this host out";
    Fault::new(format!("{}: {problem}", shown(path))).refused().and_then_do(next)
}

fn digest(text: &str) -> Digest {
    Digest::of_bytes(text.as_bytes())
}

/// A path as text: settings files are text.
pub(crate) fn path_text(path: &Path) -> Result<String, Fault> {
    path.to_str().map(str::to_owned).ok_or_else(|| Fault::new(format!("{} is not UTF-8", shown(path))))
}
