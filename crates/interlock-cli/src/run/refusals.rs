//! What was refused, or would have been, as it is on record: read again with the table of its host, so that its shape
//! can be told and a pattern tried on it. Nothing is judged anew: what the server ruled stands.

use std::path::Path;

use interlock_core::call::{Call, Effect, Family};
use interlock_core::json::{self, Json, Limits};
use interlock_core::rule::CommandPattern;
use interlock_core::{Code, visible};
use interlock_hosts::{Host, recorded_call};
use interlock_runtime::git_config::programs;
use interlock_runtime::paths;
use interlock_verifiers::shell::{Setting, SimpleCommand, Words, covers, examine};
use interlock_wire::{CallDecision, RefusedCall, RefusedCalls};

use super::Known;
use crate::Fault;
use crate::client::Client;

/// The shipped rules that an allowance can answer for.
const LIFTED: [&str; 3] = ["secrets", "arms", "egress"];
/// The rule that guards Interlock's own files.
const SELF: &str = "self";
/// What no allowance lifts, beside phases: faults, limits, loops, and what the operator forbade by name.
#[rustfmt::skip]
const FIRM: [Code; 13] = [
    Code::FaultStore, Code::FaultBusy, Code::FaultInternal, Code::LoopLength, Code::LoopReplay, Code::LoopRepetition,
    Code::LoopNoProgress, Code::BudgetCost, Code::BudgetRate, Code::BudgetTokens, Code::AgentSuspended,
    Code::ToolNotAllowed, Code::VerificationFailed,
];

/// A refusal on record.
#[derive(Debug, Clone)]
pub(super) struct Refused {
    pub(super) agent: Known,
    pub(super) decision_id: String,
    pub(super) at: String,
    pub(super) tool: String,
    pub(super) session: String,
    pub(super) code: String,
    pub(super) message: String,
    pub(super) rules: Vec<String>,
    pub(super) effects: Vec<String>,
    /// The command that shows what it changed, if it ran all the same.
    pub(super) changes: Option<String>,
    /// The call; nothing once its text is no longer kept.
    pub(super) call: Option<Call>,
}

/// The refusals of an agent, newest first, and how many calls passed meanwhile.
pub(super) fn of_agent(client: &Client, agent: &Known, limit: usize) -> Result<(Vec<Refused>, u64), Fault> {
    let answer = client.get(&agent.path(&format!("/refusals?limit={limit}")))?;
    let RefusedCalls { refusals, passed } = answer.read()?;
    Ok((refusals.into_iter().filter_map(|row| Refused::of(row, agent)).collect(), passed))
}

impl Refused {
    pub(super) fn of(row: RefusedCall, agent: &Known) -> Option<Refused> {
        let tool = row.tool?;
        let input = row.input.and_then(|input| {
            let document = json::parse(input.text(), &Limits::STATE).ok()?;
            Some(Json::of(document.root()))
        });
        Some(Refused {
            agent: agent.clone(),
            decision_id: row.decision_id,
            at: row.at,
            session: row.session.unwrap_or_default(),
            code: row.code.unwrap_or_default(),
            message: row.message.unwrap_or_default(),
            rules: row.rules,
            effects: row.effects,
            changes: row.changes,
            call: input.map(|input| recorded_call(agent.host, &tool, input)),
            tool,
        })
    }

    /// Why no allowance lifts it; nothing if one can.
    pub(super) fn firm(&self) -> Option<&'static str> {
        if self.rules.iter().any(|rule| rule == SELF) {
            return Some("it is about Interlock's own files, which no allowance opens");
        }
        let code = Code::parse(&self.code);
        if code.is_some_and(Code::is_of_phase) {
            return Some("the phase of the workflow says so: a transition, or another workflow");
        }
        // A code that is not known here is that of another program: nobody can tell what would lift it.
        let is_unknown = code.is_none() && !self.code.is_empty();
        if is_unknown || code.is_some_and(|code| FIRM.contains(&code)) {
            return Some("a rule that denies, a limit or a loop says so: see `interlock explain` for its code");
        }
        if self.rules.iter().any(|rule| !LIFTED.contains(&rule.as_str())) {
            return Some("a rule of your bundle asks; change it there (interlock.toml)");
        }
        None
    }

    /// Whether an allowance made from that decision answers for the rules that asked here.
    pub(super) fn is_lifted_with(&self, rules: &[String]) -> bool {
        self.firm().is_none() && self.rules.iter().all(|rule| rules.contains(rule))
    }

    pub(super) fn family(&self) -> Option<Family> {
        self.call.as_ref().and_then(|call| call.family)
    }

    /// The same call.
    pub(super) fn same_call(&self, other: &Refused) -> bool {
        match (&self.call, &other.call) {
            (Some(one), Some(other)) => one.fingerprint() == other.fingerprint(),
            (Some(_) | None, _) => self.decision_id == other.decision_id,
        }
    }

    /// What it wanted, on one line.
    pub(super) fn wanted(&self) -> String {
        let Some(call) = &self.call else { return "its input is not kept any more".to_owned() };
        let intent = &call.intent;
        let writes = intent.writes.iter().map(|change| change.path.clone());
        let parts: Vec<String> = intent.commands.iter().cloned().chain(writes).collect();
        let parts = if parts.is_empty() { [&intent.reads[..], &intent.urls[..]].concat() } else { parts };
        if parts.is_empty() { call.input.canonical() } else { parts.join("; ") }
    }

    /// The words of its command lines.
    pub(super) fn lines(&self, shell: &Shell) -> Vec<Words> {
        let lines = self.call.as_ref().map(|call| call.intent.commands.as_slice()).unwrap_or_default();
        lines.iter().map(|line| shell.words(line)).collect()
    }

    /// Where it writes, links followed; nothing if that cannot be told.
    pub(super) fn writes(&self) -> Option<Vec<String>> {
        let call = self.call.as_ref()?;
        let home = std::env::var("HOME").ok();
        let resolve =
            |path: &str| paths::resolve(path, &self.agent.project, home.as_deref()).known().map(str::to_owned);
        call.intent.writes.iter().map(|change| resolve(&change.path)).collect()
    }

    /// What the refusals of one group have in common beside code and tool.
    pub(super) fn shape(&self, shell: &Shell) -> String {
        let Some(call) = &self.call else { return "input no longer kept".to_owned() };
        if !call.intent.commands.is_empty() {
            let lines = self.lines(shell);
            let mut shapes: Vec<String> = Vec::new();
            // What only reads matters where nothing does more.
            let more = lines.iter().any(|words| worst(words).next().is_some());
            let commands = lines.iter().flat_map(|words| words.commands.iter());
            for command in commands.filter(|command| !more || command.label > Effect::ReadOnly) {
                let shape = shape_of(command);
                if !shapes.contains(&shape) {
                    shapes.push(shape);
                }
            }
            return if shapes.is_empty() { "a redirect or assignment".to_owned() } else { shapes.join(" ; ") };
        }
        if let Some(writes) = self.writes().filter(|writes| !writes.is_empty()) {
            return writes.join(" ; ");
        }
        if !call.intent.reads.is_empty() {
            return call.intent.reads.join(" ; ");
        }
        if let Some(url) = call.intent.urls.first() {
            let host = url.split("://").nth(1).unwrap_or(url).split('/').next().unwrap_or(url);
            return host.to_owned();
        }
        "any input".to_owned()
    }
}

/// The commands of a line that do more than read.
pub(super) fn worst(words: &Words) -> impl Iterator<Item = &SimpleCommand> {
    words.commands.iter().filter(|command| command.label > Effect::ReadOnly)
}

/// The program and its first argument: `cargo test`, `rm -rf`.
fn shape_of(command: &SimpleCommand) -> String {
    let words: Vec<String> =
        command.words.iter().take(2).map(|word| word.as_deref().map_or_else(|| "?".to_owned(), visible)).collect();
    words.join(" ")
}

/// The analysis of command lines, as near to the server's as can be had here: the built-in table, and the configuration
/// of git in the project.
pub(super) struct Shell {
    setting: Setting,
}

impl Shell {
    pub(super) fn of_project(project: &str) -> Result<Shell, Fault> {
        let mut setting = Setting::built_in().map_err(|cause| Fault::new(cause.to_string()))?;
        setting.git = Some(programs(Path::new(project)));
        Ok(Shell { setting })
    }

    pub(super) fn words(&self, line: &str) -> Words {
        examine(line, &self.setting).1
    }

    pub(super) fn label(&self, line: &str) -> Effect {
        examine(line, &self.setting).0.label
    }

    /// Whether a pattern covers all of these lines.
    pub(super) fn is_covered(&self, lines: &[Words], pattern: &CommandPattern) -> bool {
        let is_covered = |words| covers(words, std::slice::from_ref(pattern), false, &self.setting).is_ok();
        !lines.is_empty() && lines.iter().all(is_covered)
    }

    /// The narrowest pattern for lines that differ only at the end of one command: its common words, at least program
    /// and what it is to do, and `*`. Nothing if there is none that says as much.
    pub(super) fn pattern(&self, refused: &[&Refused]) -> Option<String> {
        let lines: Vec<Vec<Words>> = refused.iter().map(|refused| refused.lines(self)).collect();
        let commands: Vec<&SimpleCommand> = lines.iter().flatten().flat_map(worst).collect();
        let first = commands.first()?;
        let plain = |word: &Option<String>| word.as_deref().is_some_and(is_plain);
        let common = commands.iter().map(|other| {
            let pairs = first.words.iter().zip(&other.words);
            pairs.take_while(|(one, other)| one == other && plain(one)).count()
        });
        let common = common.min()?;
        let differ = commands.iter().any(|command| command.words.len() != common);
        // Program and subcommand: a program alone, or an option that says how, could be given anything to do.
        let says_what = first.words.get(1).and_then(Option::as_deref).is_some_and(|word| !word.starts_with('-'));
        if differ && (common < 2 || !says_what) || commands.iter().any(|command| command.label == Effect::Destructive) {
            return None;
        }
        let mut words: Vec<&str> = first.words.iter().take(common).filter_map(Option::as_deref).collect();
        words.extend(differ.then_some("*"));
        let text = words.join(" ");
        let pattern = CommandPattern::parse(&text).ok()?;
        lines.iter().all(|lines| self.is_covered(lines, &pattern)).then_some(text)
    }
}

/// Whether a word stands for itself in a pattern, and in a shell.
fn is_plain(word: &str) -> bool {
    !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_./:=@%+,-".contains(&byte))
}

/// The agent a decision is about.
pub(super) fn agent_of(decision: &CallDecision) -> Option<Known> {
    let host = Host::parse(decision.host.as_deref()?)?;
    let (agent_id, project) = (decision.agent_id.clone(), decision.project.clone()?);
    Some(Known { agent_id, host, project, enforced: false })
}
