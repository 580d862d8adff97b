//! What is to be run, and for whom: from the arguments to what the daemon is asked.

use std::env;
use std::ffi::OsString;
use std::path::Path;

use interlock_core::Code;
use interlock_core::rule::shell_quoted;
use interlock_hosts::settings::run_script;
use interlock_hosts::{Handed, HandedLine, Host, handed_to_prefix, handed_to_script};
use interlock_wire::{ExecForm, ExecStart};

use super::{NotRun, OwnCommand, Wish};

/// Set for hooks and servers of Claude Code, and not for its command lines.
const OWN_OF_CLAUDE_CODE: &str = "CLAUDE_PROJECT_DIR";

/// A command that is to be started if the daemon lets it.
pub(super) struct Asked {
    pub(super) start: ExecStart,
    pub(super) program: Program,
}

/// What is started.
pub(super) enum Program {
    /// These words.
    Words(Vec<OsString>),
    /// A host's text for this shell, with the agent's line in it.
    Text { shell: OsString, handed: HandedLine },
}

/// What is wished for. What is in no form that is known is not run.
pub(super) fn of(wish: &Wish, home: &Path) -> Result<Asked, NotRun> {
    let here = directory()?;
    match wish {
        Wish::Prefixed(text) => prefixed(text, here),
        Wish::Sourced(text) => sourced(text, here, home),
        Wish::Own(command) => of_person(command, here),
    }
}

fn prefixed(text: &str, here: String) -> Result<Asked, NotRun> {
    let is_own = env::var_os(OWN_OF_CLAUDE_CODE).is_some();
    match handed_to_prefix(text, is_own) {
        Handed::Line(handed) => Ok(line(handed, claude_code_s_shell(), here)),
        Handed::Own => {
            let start = ExecStart { host: Some(name(Host::ClaudeCode)), ..start(ExecForm::HostOwn, text, here) };
            // As the host itself would without a prefix.
            let words = ["/bin/sh", "-c", text].map(OsString::from).to_vec();
            Ok(Asked { start, program: Program::Words(words) })
        }
        Handed::Unknown => Err(unknown_form("Claude Code")),
    }
}

fn sourced(text: &str, here: String, home: &Path) -> Result<Asked, NotRun> {
    let home = home.to_str().ok_or_else(|| NotRun::new(Code::ContainTicket, "the home is not UTF-8"))?;
    match handed_to_script(text, &run_script(home)) {
        Handed::Line(handed) => Ok(line(handed, bash(), here)),
        Handed::Own | Handed::Unknown => Err(unknown_form("Codex or Gemini CLI")),
    }
}

/// A command line of an agent, as its host handed it over.
fn line(handed: HandedLine, shell: OsString, here: String) -> Asked {
    let (session, call_id) = match handed.host {
        Host::ClaudeCode => (variable("CLAUDE_CODE_SESSION_ID"), None),
        Host::Codex => (variable("CODEX_THREAD_ID"), variable("CODEX_TOOL_CALL_ID")),
        Host::Cursor | Host::Gemini => (None, None),
    };
    let start = ExecStart {
        host: Some(name(handed.host)),
        ticket: handed.ticket.clone(),
        session,
        call_id,
        ..start(ExecForm::HostLine, &handed.line, here)
    };
    Asked { start, program: Program::Text { shell, handed } }
}

/// A person's own command, or one that is the whole of a judged line.
fn of_person(command: &OwnCommand, here: String) -> Result<Asked, NotRun> {
    let (text, words) = match &command.line {
        Some(line) => (line.clone(), vec![bash(), "-c".into(), line.into()]),
        None if command.words.is_empty() => {
            let message = "there is nothing to run: give -c LINE, or -- COMMAND";
            return Err(NotRun { code: None, told: None, message: message.to_owned(), exit: 2 });
        }
        None => {
            let quoted: Vec<String> = command.words.iter().map(|word| shell_quoted(word)).collect();
            (quoted.join(" "), command.words.iter().map(OsString::from).collect())
        }
    };
    let project = command.project.as_deref().map(|project| {
        let found = std::fs::canonicalize(project).ok().and_then(|path| path.to_str().map(str::to_owned));
        found.ok_or_else(|| NotRun::new(Code::ContainSetup, format!("{} cannot be found", project.display())))
    });
    let start = ExecStart {
        ticket: command.ticket.clone(),
        profile: command.profile.clone(),
        project: project.transpose()?,
        ..start(ExecForm::Command, &text, here)
    };
    Ok(Asked { start, program: Program::Words(words) })
}

fn start(form: ExecForm, line: &str, directory: String) -> ExecStart {
    let line = line.to_owned();
    ExecStart {
        form,
        host: None,
        ticket: None,
        line,
        directory,
        session: None,
        call_id: None,
        profile: None,
        project: None,
    }
}

fn unknown_form(host: &str) -> NotRun {
    NotRun::new(Code::ContainTicket, format!("{host} handed this over in a form that is not known here"))
}

fn name(host: Host) -> String {
    host.as_str().to_owned()
}

/// Where the command is to begin.
fn directory() -> Result<String, NotRun> {
    let here = env::current_dir().ok().and_then(|here| here.to_str().map(str::to_owned));
    here.ok_or_else(|| NotRun::new(Code::ContainTicket, "the working directory is gone, or is not UTF-8"))
}

fn variable(name: &str) -> Option<String> {
    env::var(name).ok().filter(|value| !value.is_empty())
}

/// The shell that the host's text is written for: it says which, and writes for these two.
fn claude_code_s_shell() -> OsString {
    let told = env::var_os("SHELL").filter(|shell| {
        let path = Path::new(shell);
        let is_known = path.file_name().is_some_and(|name| name == "bash" || name == "zsh");
        is_known && path.is_absolute() && path.is_file()
    });
    told.unwrap_or_else(bash)
}

fn bash() -> OsString {
    let usual = "/bin/bash";
    if Path::new(usual).is_file() { usual.into() } else { "bash".into() }
}
