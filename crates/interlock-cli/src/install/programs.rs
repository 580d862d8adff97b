//! The two programs that hosts hand command lines to, in the home: the shell prefix of Claude Code, and the script that
//! shells of Codex and Gemini CLI read.
//!
//! Both only find the binary, and stay when it is gone: then they say what to do, and the line does not run. They are
//! scripts, because a program of its own starts no faster than the system's shell and would have to be shipped beside.

use std::path::Path;

use interlock_core::rule::shell_quoted;
use interlock_hosts::settings::{Wanted, run_script, shell_prefix};
use interlock_hosts::{Host, Rewriting};

use super::file::TargetFile;
use super::plan::Step;
use super::remembered::all;
use crate::Fault;

/// The directory of the programs, in a home.
const DIRECTORY: &str = "bin";

/// What `install` writes for a host.
pub(super) fn install(host: Host, home: &Path, wanted: &Wanted) -> Result<Vec<Step>, Fault> {
    if host.rewrites() == Rewriting::None {
        return Ok(Vec::new());
    }
    let mut steps = Vec::new();
    for (path, text, what) in programs(wanted) {
        let file = TargetFile::program(home, &relative(&path, wanted))?;
        steps.push(Step::write(file, text, what.to_owned()));
    }
    Ok(steps)
}

/// What `uninstall` takes away with the last host that used it. `forgotten` are the records that go.
pub(super) fn uninstall(home: &Path, forgotten: usize) -> Result<Vec<Step>, Fault> {
    if all(home).len() > forgotten {
        return Ok(Vec::new());
    }
    let mut steps = Vec::new();
    for name in [shell_prefix(""), run_script("")] {
        let file = TargetFile::program(home, name.trim_start_matches('/'))?;
        steps.push(Step::remove(file, "no host uses it any more".to_owned()));
    }
    Ok(steps)
}

/// Takes the directory away if nothing is in it.
pub(super) fn remove_directory(home: &Path) {
    // What somebody put there stays, and keeps it.
    let _ = std::fs::remove_dir(home.join(DIRECTORY));
}

/// Whether the programs are there, as `install` writes them: what is wrong, a line each.
pub(crate) fn wrong_programs(home: &Path, wanted: &Wanted) -> Vec<String> {
    let look = |path: &str| TargetFile::program(home, &relative(path, wanted));
    let is_wrong = |(path, text, _): (String, String, &str)| match look(&path) {
        Ok(file) if file.text.as_deref() == Some(&*text) && file.is_executable() => None,
        Ok(file) if file.text.is_none() => Some(format!("{path} is not there")),
        Ok(_) => Some(format!("{path} is not what `install` writes")),
        Err(fault) => Some(fault.message),
    };
    programs(wanted).into_iter().filter_map(is_wrong).collect()
}

fn relative(path: &str, wanted: &Wanted) -> String {
    path.strip_prefix(wanted.home.trim_end_matches('/')).unwrap_or(path).trim_start_matches('/').to_owned()
}

/// The programs: where each lies, what it says, and what it is.
fn programs(wanted: &Wanted) -> [(String, String, &'static str); 2] {
    let [binary, home, daemon] = [&wanted.binary, &wanted.home, &wanted.daemon].map(|word| shell_quoted(word));
    let prefix = format!(
        "#!/bin/sh\n\
         # The shell prefix of Claude Code, written by `interlock install`: it hands a command line to the runner.\n\
         if [ \"$#\" -ne 1 ]; then\n\
         \x20 echo 'interlock-shell: one command line is run, and nothing else' >&2\n\
         \x20 exit 126\n\
         fi\n\
         if [ ! -x {binary} ]; then\n\
         \x20 echo 'interlock-shell: Interlock is gone, so nothing was run: install it again, or take \
         CLAUDE_CODE_SHELL_PREFIX and the hooks out of the settings of Claude Code' >&2\n\
         \x20 exit 126\n\
         fi\n\
         exec {binary} exec --home {home} --daemon {daemon} --prefixed=\"$1\"\n"
    );
    let script = format!(
        "# Read by the shells of Codex and Gemini CLI, written by `interlock install`: it hands the line behind it to the\n\
         # runner, in the place of this shell.\n\
         if [ -z \"${{BASH_EXECUTION_STRING-}}\" ]; then\n\
         \x20 echo 'interlock: this shell is not bash, so nothing was run' >&2\n\
         \x20 exit 126\n\
         fi\n\
         if [ ! -x {binary} ]; then\n\
         \x20 echo 'interlock: Interlock is gone, so nothing was run: install it again, or take its hooks out of the \
         settings' >&2\n\
         \x20 exit 126\n\
         fi\n\
         exec {binary} exec --home {home} --daemon {daemon} --sourced=\"$BASH_EXECUTION_STRING\"\n\
         exit 126\n"
    );
    [
        (shell_prefix(&wanted.home), prefix, "the shell prefix of Claude Code"),
        (run_script(&wanted.home), script, "the script that Codex and Gemini CLI hand their command lines over with"),
    ]
}
