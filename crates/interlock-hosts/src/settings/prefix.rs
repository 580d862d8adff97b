//! The shell prefix of Claude Code: the one program to which it hands every command line.

use interlock_core::json::{Json, Value};

use super::{Problem, surgery};

/// The member of the settings that holds variables.
pub(super) const ENV: &str = "env";
/// The variable that names the prefix.
pub const PREFIX_VARIABLE: &str = "CLAUDE_CODE_SHELL_PREFIX";
/// Where the prefix lies in a home. By its end it is known, whichever home it is.
const PREFIX: &str = "/bin/interlock-shell";
/// Where the script lies by which Codex and Gemini CLI hand over their lines.
const SCRIPT: &str = "/bin/run.sh";

/// The prefix of a home: one path, and no more.
pub fn shell_prefix(home: &str) -> String {
    format!("{}{PREFIX}", home.trim_end_matches('/'))
}

/// The script of a home.
pub fn run_script(home: &str) -> String {
    format!("{}{SCRIPT}", home.trim_end_matches('/'))
}

/// Whether settings that just changed still leave a prefix in force that was in force before. `is_user` says that they are
/// the user's own, which hold it.
///
/// ```
/// use interlock_hosts::settings::keeps_prefix;
///
/// let ours = "/opt/interlock/bin/interlock-shell";
/// assert!(keeps_prefix(Some("{\"model\": \"opus\"}"), false, ours));
/// assert!(!keeps_prefix(Some("{\"model\": \"opus\"}"), true, ours));
/// assert!(!keeps_prefix(Some("{\"env\": {\"CLAUDE_CODE_SHELL_PREFIX\": \"\"}}"), false, ours));
/// ```
pub fn keeps_prefix(text: Option<&str>, is_user: bool, prefix: &str) -> bool {
    let Some(text) = text else { return !is_user };
    // What cannot be read for certain, the host may read in another way.
    let Ok(document) = surgery::read(text) else { return false };
    match prefix_of(document.root()) {
        Some(found) => found.as_str() == Some(prefix),
        None => !is_user && document.root().get(ENV).is_none_or(|env| env.as_object().is_some()),
    }
}

/// The prefix that settings name.
pub(super) fn prefix_of(root: Value<'_>) -> Option<Json> {
    root.get(ENV)?.get(PREFIX_VARIABLE).map(Json::of)
}

/// Whether a prefix is one of ours, of whichever home.
pub(super) fn is_ours(prefix: &Json) -> bool {
    prefix.as_str().is_some_and(|path| path.starts_with('/') && path.ends_with(PREFIX))
}

/// What in settings keeps our prefix from being in force, if anything.
pub(super) fn displaced(root: Value<'_>) -> Option<&'static str> {
    let found = prefix_of(root)?;
    if is_ours(&found) {
        return None;
    }
    let is_empty = found.as_str() == Some("");
    Some(if is_empty { "`env.CLAUDE_CODE_SHELL_PREFIX` is empty" } else { "`env.CLAUDE_CODE_SHELL_PREFIX` is another" })
}

/// What in a settings file of Claude Code keeps our shell prefix from being in force, if anything.
pub fn prefix_displaced(text: &str) -> Result<Option<&'static str>, Problem> {
    Ok(displaced(surgery::read(text)?.root()))
}
