//! Why a declared fact is not met: what the run remembers of its command, in one plain line. No guard looks at it.

use serde::{Deserialize, Serialize};

use super::definition::{Fact, Workflow};
use super::run::{Run, Seen, SeenCommand};

/// Why the command of a fact ran, or was to run, and says nothing now.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Unseen {
    /// It was met, and then something was written.
    WrittenSince,
    /// Something was written while it ran.
    WrittenMeanwhile,
    /// It runs another script than when the run began.
    Script,
    /// No runner ran it.
    NoRunner,
    /// Its runner did not tell how it ended.
    Untold,
    /// A process that is not the host's told of it, or started it.
    Foreign,
    /// Its turn was over before it was.
    TurnOver,
}

impl Unseen {
    fn words(self) -> &'static str {
        match self {
            Unseen::WrittenSince => "was run, but something was written since",
            Unseen::WrittenMeanwhile => "was run, but something was written meanwhile",
            Unseen::Script => "runs another script now than when the run began",
            Unseen::NoRunner => "was run, but without a runner: nobody observed how it ended",
            Unseen::Untold => "was run, but its runner did not tell how it ended",
            Unseen::Foreign => "was not run by the host itself, so it was not observed",
            Unseen::TurnOver => "had not ended when its turn was over",
        }
    }
}

impl Seen {
    /// A declared command ended, and nothing was changed: it is what was observed.
    pub(super) fn meet(&mut self, name: String, seen: SeenCommand) {
        self.unseen.remove(&name);
        self.facts.insert(name, seen);
    }

    /// The command of a fact says nothing, for this reason. What an earlier run of it said counts as long as nothing changes.
    pub(super) fn lose(&mut self, name: String, why: Unseen) {
        self.unseen.insert(name, why);
    }

    /// Something is written: what was observed of the tree counts no more.
    pub(crate) fn lapse(&mut self) {
        let facts = core::mem::take(&mut self.facts);
        self.unseen.extend(facts.into_keys().map(|name| (name, Unseen::WrittenSince)));
    }
}

/// Why guards that do not hold are not met, one line for each that rests on the command of a declared fact.
pub fn why_unmet(workflow: &Workflow, run: &Run, unmet: &[String]) -> Vec<String> {
    let line = |name: &String| {
        let guard = workflow.guard_named(name)?;
        let [_, fact, ..] = guard.field.get(..)? else { return None };
        let fact = workflow.facts().iter().find(|known| guard.is_observed() && known.name == *fact)?;
        Some(format!("`{}` {}", fact.command, state_of_fact(fact, run)))
    };
    let mut lines: Vec<String> = unmet.iter().filter_map(line).collect();
    lines.dedup();
    lines
}

fn state_of_fact(fact: &Fact, run: &Run) -> String {
    let is_it = |of: &Option<(String, u64)>| of.as_ref().is_some_and(|(name, _)| *name == fact.name);
    let is_running = run.open.iter().any(|open| is_it(&open.fact)) || run.execs.iter().any(|exec| is_it(&exec.fact));
    match (run.seen.facts.get(&fact.name), run.seen.unseen.get(&fact.name)) {
        (Some(SeenCommand { exit_code: Some(code), .. }), _) => format!("ended with code {code}"),
        (Some(_), _) => "ended, and with which code nobody told".to_owned(),
        (None, _) if is_running => "has not ended yet".to_owned(),
        (None, Some(why)) => why.words().to_owned(),
        (None, None) => "has not been run yet".to_owned(),
    }
}
