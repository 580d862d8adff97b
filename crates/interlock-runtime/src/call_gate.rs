//! The way of a tool call: look at where the run stands, read the call there, submit; once more if the run has moved on
//! meanwhile, then deny.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::Arc;

use interlock_core::Digest;
use interlock_core::action::{CallEvidence, Engine, Evidence, Facts, PhaseEvidence};
use interlock_core::bundle::Bundle;
use interlock_core::call::Call;
use interlock_core::places::{is_beneath, is_within};
use interlock_core::rule::CommandPattern;
use interlock_core::workflow::{Allowance, Fact, Position, Run, Workflow, may_write, state_of};
use interlock_verifiers::Ground;
use interlock_verifiers::shell::Setting;

use crate::call_policy::{CallFindings, CallPlace, PATHS_LISTED_MAX, covers, examine_call};
use crate::gate::Gate;
use crate::ledger::{CallCommand, Command, StoreFault};
use crate::paths::{self, Base, Missing};
use crate::scripts::{Script, script_of};

/// A tool call of a coding agent.
#[derive(Debug)]
pub struct CallAsking<'a> {
    /// The agent.
    pub agent: &'a str,
    /// What the host told.
    pub facts: Facts,
    /// Projects in which refusals hold, if in that of its session they do not.
    pub held: &'a [String],
    /// The agents of other hosts that work in the same files.
    pub beside: Vec<String>,
    /// The call.
    pub call: &'a Call,
    /// Where it is made.
    pub place: CallPlace<'a>,
    /// The text, in case it is to be kept.
    pub text: Option<Arc<str>>,
}

/// Where an agent stands.
#[derive(Debug, Clone)]
pub struct Standing {
    /// What is known of its calls.
    pub run: Run,
    /// The workflow its run is in, if it is in one that can be read.
    pub workflow: Option<Arc<Workflow>>,
}

impl Gate {
    /// Where an agent stands, as last committed.
    pub fn standing(&self, agent: &str) -> Result<Standing, StoreFault> {
        let run = self.ledger().run(agent)?.unwrap_or_default();
        let Some(position) = &run.position else { return Ok(Standing { run, workflow: None }) };
        if let Some(workflow) = self.known_workflow(position.workflow) {
            return Ok(Standing { run, workflow: Some(workflow) });
        }
        let found = self.ledger().entry_of(Some(agent), position.started)?;
        let started = found.as_ref().and_then(|found| found.entry.body.started());
        let workflow = started.and_then(|started| Workflow::from_text(&started.workflow).ok()).map(Arc::new);
        if let Some(workflow) = &workflow {
            self.remember_workflow(Arc::clone(workflow));
        }
        Ok(Standing { run, workflow })
    }

    /// The command for a call, with everything that was found by reading it.
    pub fn prepare_call(&self, asking: &CallAsking<'_>) -> Result<Command, StoreFault> {
        let standing = self.standing(asking.agent)?;
        let bundle = self.bundle();
        let evidence = self.with_ground(|ground| {
            // A reader that panics has found nothing, so nothing is approved.
            catch_unwind(AssertUnwindSafe(|| evidence_of(&bundle, ground, asking, &standing))).ok()
        });
        Ok(Command::Call(Box::new(CallCommand {
            agent: asking.agent.to_owned(),
            facts: Box::new(asking.facts.clone()),
            evidence: evidence.flatten(),
            text: asking.text.clone(),
            beside: asking.beside.clone(),
        })))
    }
}

fn evidence_of(bundle: &Bundle, ground: &Ground, asking: &CallAsking<'_>, standing: &Standing) -> Evidence {
    let mut found = examine_call(bundle, ground, asking.call, &asking.place);
    let session = asking.facts.call.as_ref().map_or("", |call| call.session.as_str());
    let allowed = |found: &CallFindings| -> Vec<String> {
        let matching = standing.run.allowances.iter().filter(|it| matches(it, asking, found));
        matching.map(|allowance| allowance.allowance_id.clone()).collect()
    };
    let allowances = allowed(&found);
    if found.bound.is_some() && !allowances.is_empty() {
        // What an operator lets pass runs as it is, so it is judged as it is.
        let place = CallPlace { runner: None, ..asking.place };
        found = examine_call(bundle, ground, asking.call, &place);
    }
    let call = CallEvidence {
        effects: found.effects.clone(),
        shell: found.label,
        edit_lines: found.edit_lines,
        files: files_of(&found, standing, session),
        known_by: found.allowed.clone(),
        allowances,
        phase: phase_of(asking, standing, &found, session, ground),
        held_in: asking.held.iter().find(|project| found.touches(project)).cloned(),
        bound: found.bound.clone(),
    };
    Evidence {
        bundle: bundle.digest(),
        engine: Engine::ToolControl,
        version: 1,
        status: found.status,
        risk: Some(found.risk),
        checks: found.checks,
        rules: found.rules,
        matched: found.matched,
        certificate: Some(found.certificate),
        hostile: false,
        call: Some(Box::new(call)),
    }
}

/// The files a call changes, by their paths. Where a phase counts them and nobody can, they are more than it allows.
fn files_of(found: &CallFindings, standing: &Standing, session: &str) -> Vec<Digest> {
    let mut files: Vec<Digest> = found.writes.iter().map(|path| Digest::of(&[path])).collect();
    let position = standing.run.position_for(session);
    let state = position.and_then(|position| state_of(standing.workflow.as_deref()?, position));
    if !found.files_known && state.is_some_and(|state| state.max_files_per_state.is_some()) {
        // No path is empty, or begins with a number.
        let others = (files.len()..PATHS_LISTED_MAX).map(|number| Digest::of(&[&number.to_string()]));
        files.extend(others);
    }
    files
}

/// What the call is in the phase the run is in.
fn phase_of(
    asking: &CallAsking<'_>,
    standing: &Standing,
    found: &CallFindings,
    session: &str,
    ground: &Ground,
) -> Option<PhaseEvidence> {
    let position = standing.run.position_for(session)?;
    let state = standing.workflow.as_deref().and_then(|workflow| state_of(workflow, position));
    let covered = state.and_then(|state| {
        let patterns = patterns(state.allowed_commands.as_deref()?);
        let is_covered = |words| covers(words, &patterns, may_write(state), &found.setting).is_ok();
        Some(is_at_home(asking) && !found.lines.is_empty() && found.lines.iter().all(is_covered))
    });
    let named = fact_of(asking, standing);
    let altered = named.is_some_and(|fact| is_altered(fact, position, asking.place.project, ground));
    let name = named.map(|fact| fact.name.clone());
    let (fact, altered) = if altered { (None, name) } else { (name, None) };
    Some(PhaseEvidence { workflow: position.workflow, state: position.state.clone(), covered, fact, altered })
}

fn patterns(texts: &[String]) -> Vec<CommandPattern> {
    texts.iter().filter_map(|text| CommandPattern::parse(text).ok()).collect()
}

/// The declared fact a call is the command of: exactly that line, in the project's own directory, and nothing beside it.
fn fact_of<'a>(asking: &CallAsking<'_>, standing: &'a Standing) -> Option<&'a Fact> {
    let intent = &asking.call.intent;
    let [line] = intent.commands.as_slice() else { return None };
    let place = &asking.place;
    let elsewhere = intent.directory.as_deref().is_some_and(|directory| !is_project(directory, place));
    if place.cwd != place.project || elsewhere || !intent.unread.is_empty() {
        return None;
    }
    let facts = standing.workflow.as_deref()?.facts();
    facts.iter().find(|fact| fact.command == *line)
}

/// Whether the command of a fact runs another script than when the run began: then it says nothing about that fact.
fn is_altered(fact: &Fact, position: &Position, project: &str, ground: &Ground) -> bool {
    let Some(noted) = position.scripts.get(&fact.name) else { return false };
    let setting = Setting::with(ground.commands.clone());
    script_of(&fact.command, Path::new(project), &setting) != Script::Is(*noted)
}

/// Whether a directory that a call names is the project's own. What a host makes of `~` or of an address, nobody can tell.
fn is_project(directory: &str, place: &CallPlace<'_>) -> bool {
    let Some(project) = paths::resolve(place.project, place.cwd, place.home).known().map(str::to_owned) else {
        return false;
    };
    let readings = paths::readings(directory, Base { cwd: place.cwd, home: place.home, missing: Missing::Plain });
    directory.starts_with(['/', '.']) && readings.iter().all(|reading| reading.known() == Some(&project))
}

/// Whether the commands of a call run within the project. A list of commands means them there: elsewhere `make test` is
/// another one.
fn is_at_home(asking: &CallAsking<'_>) -> bool {
    let place = &asking.place;
    let base = Base { cwd: place.cwd, home: place.home, missing: Missing::Plain };
    let project = paths::resolve_from(place.project, base);
    let within = |directory: &paths::Resolved| {
        project.known().zip(directory.known()).is_some_and(|(project, directory)| is_within(directory, project))
    };
    paths::readings(asking.call.intent.directory.as_deref().unwrap_or(place.cwd), base).iter().all(within)
}

/// Whether an allowance is about this call.
fn matches(allowance: &Allowance, asking: &CallAsking<'_>, found: &CallFindings) -> bool {
    if let Some(fingerprint) = allowance.fingerprint {
        return fingerprint == asking.facts.agreed_to();
    }
    if !asking.call.names().any(|name| name == allowance.tool) || !asking.call.intent.unread.is_empty() {
        return false;
    }
    let by_command = allowance.command.as_ref().map(|command| {
        let patterns = patterns(std::slice::from_ref(command));
        is_at_home(asking)
            && !found.lines.is_empty()
            && found.lines.iter().all(|words| covers(words, &patterns, false, &found.setting).is_ok())
    });
    let by_path = allowance.path.as_ref().map(|path| {
        let whole = found.writes.len() < PATHS_LISTED_MAX && found.files_known && found.lines.is_empty();
        whole && !found.writes.is_empty() && found.writes.iter().all(|written| is_beneath(written, path))
    });
    match (by_command, by_path) {
        (None, None) => false,
        (command, path) => command.unwrap_or(true) && path.unwrap_or(true),
    }
}

#[cfg(test)]
mod tests {
    use interlock_verifiers::shell::Executor;

    use super::*;

    #[test]
    fn the_project_s_directory_is_known_however_it_is_spelt() {
        let root = std::env::temp_dir().join(format!("interlock-call-gate-{}", std::process::id()));
        let project = root.join("project");
        std::fs::create_dir_all(project.join("sub")).expect("made");
        std::os::unix::fs::symlink(&project, root.join("link")).expect("a link");
        let text = |path: &std::path::Path| path.to_str().expect("text").to_owned();
        let (root_text, project_text) = (text(&root), text(&project));
        let place = CallPlace {
            cwd: &project_text,
            home: Some(&project_text),
            project: &project_text,
            own: &[],
            on_path: &[],
            executor: Executor::Bash,
            runner: None,
        };
        let beneath = |name: &str| format!("{root_text}/{name}");
        for same in [beneath("project"), beneath("project/"), beneath("link"), ".".to_owned(), "./sub/..".to_owned()] {
            assert!(is_project(&same, &place), "{same}");
        }
        for other in [beneath("project/sub"), root_text.clone(), "..".to_owned(), "~".to_owned(), String::new()] {
            assert!(!is_project(&other, &place), "{other}");
        }
        std::fs::remove_dir_all(&root).expect("removed");
    }
}
