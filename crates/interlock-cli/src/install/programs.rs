//! The two programs that hosts hand command lines to, in the home: the shell prefix of Claude Code, which is a copy of the
//! program `interlock-shell` with a file beside it that says whom it asks; and the script that shells of Codex and Gemini
//! CLI read.
//!
//! Both stay when Interlock is gone: then they say what to do, and the line does not run.

use std::fs;
use std::io;
use std::path::Path;

use interlock_cli::exec::{Pins, beside};
use interlock_core::rule::shell_quoted;
use interlock_hosts::settings::{Wanted, run_script, shell_prefix};
use interlock_hosts::{Host, Rewriting};

use super::file::{TargetFile, shown};
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
    for (path, bytes, what) in programs(wanted)? {
        let file = TargetFile::program(home, &relative(&path, wanted))?;
        steps.push(Step::write(file, bytes, what.to_owned()));
    }
    Ok(steps)
}

/// What `uninstall` takes away with the last host that used it. `forgotten` are the records that go.
pub(super) fn uninstall(home: &Path, forgotten: usize) -> Result<Vec<Step>, Fault> {
    if all(home).len() > forgotten {
        return Ok(Vec::new());
    }
    let mut steps = Vec::new();
    for name in [shell_prefix(""), Pins::path(&shell_prefix("")), run_script("")] {
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
    let is_wrong = |(path, bytes, _): Program| match look(&path) {
        Ok(file) if file.bytes.as_ref() == Some(&bytes) && file.is_executable() => None,
        Ok(file) if file.bytes.is_none() => Some(format!("{path} is not there")),
        Ok(_) => Some(format!("{path} is not what `install` writes")),
        Err(fault) => Some(fault.message),
    };
    match programs(wanted) {
        Ok(all) => all.into_iter().filter_map(is_wrong).collect(),
        Err(fault) => vec![fault.message],
    }
}

fn relative(path: &str, wanted: &Wanted) -> String {
    path.strip_prefix(wanted.home.trim_end_matches('/')).unwrap_or(path).trim_start_matches('/').to_owned()
}

/// A file of the programs: where it lies, what is in it, and what it is.
type Program = (String, Vec<u8>, &'static str);

/// The programs.
fn programs(wanted: &Wanted) -> Result<[Program; 3], Fault> {
    let prefix = shell_prefix(&wanted.home);
    let own = beside(Path::new(&wanted.binary));
    let missing = |error: io::Error| {
        let message = format!("{} cannot be read, and hosts hand their command lines to it: {error}", shown(&own));
        Fault::new(message).and_then_do("it belongs beside `interlock`: install both")
    };
    let shell = fs::read(&own).map_err(missing)?;
    let pins = Pins::new(&wanted.binary, &wanted.home, &wanted.daemon).map_err(missing)?;
    let script = format!(
        "# Read by the shells of Codex and Gemini CLI, written by `interlock install`: it hands the line behind it to the\n\
         # runner, in the place of this shell.\n\
         if [ -z \"${{BASH_EXECUTION_STRING-}}\" ]; then\n\
         \x20 echo 'interlock: this shell is not bash, so nothing was run' >&2\n\
         \x20 exit 126\n\
         fi\n\
         exec {} --sourced \"$BASH_EXECUTION_STRING\"\n\
         exit 126\n",
        shell_quoted(&prefix)
    );
    Ok([
        (Pins::path(&prefix), pins.to_text().into_bytes(), "whom the shell prefix asks"),
        (prefix, shell, "the shell prefix of Claude Code"),
        (
            run_script(&wanted.home),
            script.into_bytes(),
            "the script that Codex and Gemini CLI hand their command lines over with",
        ),
    ])
}
