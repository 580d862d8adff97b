//! What runners ask: may this command start, and how it ended.

use std::path::Path;

use interlock_core::Code;
use interlock_core::action::{PassAsked, PassRuling};
use interlock_core::contain::{PROJECT, Rung};
use interlock_core::ledger::ExecEnded;
use interlock_hosts::Host;
use interlock_runtime::exec_door::{StartAnswer, StartComing};
use interlock_runtime::keep_door::code_of;
use interlock_runtime::tool_door::{Caller, DoorFault};
use interlock_wire::{ExecEnd, ExecForm, ExecStart, ExecStarted};

use super::{Hooks, words};

/// How much of one list that a runner tells is kept.
const LISTED_MAX: usize = 64;
/// The longest text in it.
const LISTED_BYTES_MAX: usize = 512;

/// Where files go that were made and run later, in a home.
const ASIDE: &str = "aside";

/// Why a runner is refused.
#[derive(Debug)]
pub(super) struct ExecRefused {
    pub(super) code: Code,
    pub(super) message: String,
}

impl From<DoorFault> for ExecRefused {
    fn from(fault: DoorFault) -> ExecRefused {
        let code = match &fault {
            DoorFault::Refused(code) => *code,
            DoorFault::Unreadable(_) => Code::ContainTicket,
            DoorFault::Store(_) => Code::ContainRecord,
            DoorFault::NotKept(fault) => code_of(fault),
        };
        ExecRefused { code, message: words::fault(&fault) }
    }
}

fn refused(message: &str) -> ExecRefused {
    ExecRefused { code: Code::ContainTicket, message: message.to_owned() }
}

impl Hooks {
    /// Whether a command may start. It is on record then.
    pub(super) fn start(&self, asked: &ExecStart, caller: Caller) -> Result<ExecStarted, ExecRefused> {
        if !Path::new(&asked.directory).is_absolute() {
            return Err(refused("the directory of the command is not absolute"));
        }
        match (asked.form, &asked.ticket) {
            (_, Some(ticket)) => self.start_judged(asked, ticket, caller),
            (ExecForm::HostLine, None) => self.start_without(asked, PassAsked::Unticketed),
            (ExecForm::HostOwn, None) => self.start_without(asked, PassAsked::HostCommand),
            (ExecForm::Command, None) => match self.door.only_open(&asked.line, &asked.directory)? {
                Some(ticket) => self.start_judged(asked, &ticket, caller),
                None => self.start_own(asked),
            },
        }
    }

    fn start_judged(&self, asked: &ExecStart, ticket: &str, caller: Caller) -> Result<ExecStarted, ExecRefused> {
        let ExecStart { line, directory, .. } = asked;
        let coming = StartComing { ticket, line, directory, process: caller.process, by_hook: false };
        let started = self.started(ticket, self.door.start(&coming)?);
        // It could ask: what was left for one that cannot is of no use any more.
        self.forget_left(ticket);
        Ok(started)
    }

    /// What a runner is answered that may start a command.
    pub(super) fn started(&self, ticket: &str, answer: StartAnswer) -> ExecStarted {
        let ask_for_more = answer.bound.as_ref().map(|bound| words::held(&bound.profile, &answer.decision_id));
        ExecStarted {
            ticket: Some(ticket.to_owned()),
            exec_id: answer.exec_id,
            bound: answer.bound,
            aside: self.aside(),
            ask_for_more,
            temp: answer.temp.map(|temp| temp.to_string_lossy().into_owned()),
            env_blocked: answer.env_blocked,
            env_set: answer.env_set.into_iter().collect(),
        }
    }

    /// A command of the host's own, or a line without a ticket where refusals are only shown: it runs as it is.
    fn start_without(&self, asked: &ExecStart, pass: PassAsked) -> Result<ExecStarted, ExecRefused> {
        let host = asked.host.as_deref().and_then(Host::parse);
        let host = host.ok_or_else(|| refused("no host that is known here started this"))?.as_str();
        match self.door.start_without(host, &asked.directory, pass)? {
            PassRuling::Passes(_) => Ok(self.unattributed(None)),
            PassRuling::Judged | PassRuling::NotForSubagents => {
                Err(refused("this command line was not judged: only what Interlock let pass is started here"))
            }
        }
    }

    fn start_own(&self, asked: &ExecStart) -> Result<ExecStarted, ExecRefused> {
        let profile = asked.profile.as_deref().unwrap_or(PROJECT);
        // Where nothing can be held, the runner says why.
        let rung = match self.abilities.rung() {
            Rung::Narrow => Rung::Narrow,
            Rung::Full | Rung::None => Rung::Full,
        };
        let bound = self.door.start_own(profile, &asked.directory, asked.project.as_deref(), rung)?;
        Ok(self.unattributed(Some(bound)))
    }

    fn unattributed(&self, bound: Option<interlock_core::contain::Bound>) -> ExecStarted {
        ExecStarted {
            ticket: None,
            exec_id: String::new(),
            bound,
            aside: self.aside(),
            ask_for_more: None,
            temp: None,
            env_blocked: Vec::new(),
            env_set: std::collections::BTreeMap::new(),
        }
    }

    fn aside(&self) -> String {
        self.home.join(ASIDE).to_string_lossy().into_owned()
    }

    /// How a command ended. Of what no agent's call was, nobody keeps it.
    pub(super) fn end(&self, told: ExecEnd) -> Result<(), ExecRefused> {
        if told.exec_id.is_empty() {
            return Ok(());
        }
        let ticket = told.ticket.as_deref().ok_or_else(|| refused("no such command was started"))?;
        let short = |texts: Vec<String>| -> Vec<String> {
            let cut = |text: String| text.chars().take(LISTED_BYTES_MAX).collect();
            texts.into_iter().take(LISTED_MAX).map(cut).collect()
        };
        let (reached, unreached): (Vec<_>, Vec<_>) = told.reached.into_iter().partition(|reached| reached.allowed);
        let hosts = |list: Vec<interlock_wire::ExecReached>| short(list.into_iter().map(|it| it.host).collect());
        let ended = ExecEnded {
            exec_id: told.exec_id,
            exit_code: told.exit_code,
            signal: told.signal,
            duration_ms: told.duration_ms,
            refused: short(told.refused),
            set_aside: short(told.set_aside),
            reached: hosts(reached),
            unreached: hosts(unreached),
        };
        Ok(self.door.end_exec(ticket, ended)?)
    }
}
