//! What stands between `git` and its subcommand, and which settings name a program.

use super::options::{self, Given};
use super::paths::normalise;
use super::reduce::Argument;
use super::walk::{Run, Walk};
use super::{Effect, table};

use Effect::{ReadOnly, Unknown};

/// Options before the subcommand that ask for a version, a path or help. `--exec-path` does, where it names no path.
const ASKING: &str = "--html-path --man-path --info-path --version -v --help -h --exec-path";

/// Settings that change how things look, and nothing else.
#[rustfmt::skip]
const PLAIN_SETTINGS: &[&str] = &[
    "core.quotepath", "core.abbrev", "core.autocrlf", "core.safecrlf", "core.ignorecase", "core.precomposeunicode",
    "core.filemode", "core.whitespace", "core.longpaths", "core.preloadindex", "core.untrackedcache", "diff.renames",
    "diff.renamelimit", "diff.algorithm", "diff.context", "diff.colormoved", "diff.mnemonicprefix", "diff.noprefix",
    "diff.wserrorhighlight", "diff.indentheuristic", "diff.submodule", "diff.ignoresubmodules", "merge.conflictstyle",
    "merge.renames", "rerere.enabled", "init.defaultbranch", "gc.auto", "protocol.version", "pull.rebase",
    "push.default", "fetch.prune", "rebase.autostash", "tag.sort", "branch.sort", "versionsort.suffix",
    "commit.verbose", "core.commentchar", "safe.directory", "core.symlinks", "format.pretty",
];

/// Sections whose settings can name programs, or where those come from.
#[rustfmt::skip]
const PROGRAM_SECTIONS: &[&str] = &[
    "alias", "pager", "credential", "gpg", "include", "includeif", "filter", "difftool", "mergetool", "url",
    "uploadpack", "receive", "sendemail", "trailer", "browser", "man", "instaweb", "gui", "guitool", "web", "hook",
    "protocol", "http", "extensions", "bundle", "maintenance", "tar", "imap", "ssh", "trace2", "safe",
];

/// The last words of settings that can, whatever their section is.
#[rustfmt::skip]
const PROGRAM_SETTINGS: &[&str] = &[
    "command", "textconv", "driver", "cmd", "uploadpack", "receivepack", "vcs", "editor", "pager", "sshcommand",
    "fsmonitor", "hookspath", "askpass", "external", "gitproxy", "attributesfile", "worktree", "templatedir",
    "alternaterefscommand", "difffilter", "update", "proxy", "program", "helper", "excludesfile",
    "fsmonitorhookversion", "tool", "path", "custompath", "logwindowcommand", "promisor", "partialclonefilter",
    "bundleuri", "bundlecreationtoken", "ignorerevsfile", "showsignature",
];

/// Options before the subcommand. Hands back where it is.
pub(super) fn global_options(walk: &mut Walk<'_, '_>, run: &Run<'_>) -> Option<usize> {
    let Some(spec) = table::grammar(run.name) else {
        walk.add(Unknown, run.name, &run.span, "options that no table lists");
        return None;
    };
    let call = options::read_until_verb(spec, run.arguments);
    let asks = |given: &&Given<'_>| given.value.is_none() && !call.is_inexact;
    // What stands behind a question is an argument of what answers it.
    let question = call.each(ASKING).find(asks).map(|given| given.at);
    let is_own = |at: usize| question.is_none_or(|question| at < question);
    let span = |at: usize| run.arguments.get(at).map_or(&run.span, |argument| &argument.span);
    let mut named = Named::default();
    for given in call.given.iter().filter(|given| is_own(given.at)) {
        let value = given.value.as_ref().and_then(Argument::known_text);
        named.place(given.name, value);
        if given.name == "-c" && !value.is_some_and(is_plain_setting) {
            walk.add(Unknown, run.name, span(given.at), "a setting that can name a program");
        }
    }
    for (_, at) in call.effects.iter().filter(|(_, at)| is_own(*at)) {
        walk.add(Unknown, run.name, span(*at), "an option that can name a program, or is not known");
    }
    if !named.is_plain() {
        walk.add(Unknown, run.name, &run.span, "a repository or a tree that is not found from the directory");
    }
    if question.is_some() {
        walk.add(ReadOnly, run.name, &run.span, "asks for a version, a path or help");
        return None;
    }
    let at = call.first_operand.unwrap_or(run.arguments.len());
    let is_ended = run.arguments.iter().take(at).any(|argument| argument.known_text() == Some("--"));
    if (!call.is_sure() || is_ended) && call.effects.is_empty() {
        walk.add(Unknown, run.name, &run.span, "a subcommand that is not known before the line runs");
    }
    Some(at)
}

/// What options name instead of what git would find from the directory it is run in.
#[derive(Debug, Default)]
struct Named {
    /// The directory of the repository; `Some(None)` if it is not known.
    repository: Option<Option<String>>,
    /// The work tree, likewise.
    tree: Option<Option<String>>,
    /// The directory itself is taken for a repository.
    is_bare: bool,
}

impl Named {
    /// An option that may name a place.
    fn place(&mut self, option: &str, value: Option<&str>) {
        match option {
            "--git-dir" => self.repository = Some(value.map(normalise)),
            "--work-tree" => self.tree = Some(value.map(normalise)),
            "--bare" => self.is_bare = true,
            _ => {}
        }
    }

    /// Whether the repository is in a `.git`, where only git writes, and the tree is the one around it. Any other
    /// directory can be made a repository whose configuration names programs.
    fn is_plain(&self) -> bool {
        let around = match &self.repository {
            None => "",
            Some(None) => return false,
            Some(Some(path)) => {
                let Some(around) = path.strip_suffix(".git") else {
                    return path.split('/').any(|name| name == ".git") && self.tree.is_none() && !self.is_bare;
                };
                if !around.is_empty() && !around.ends_with('/') {
                    return false;
                }
                around.strip_suffix('/').unwrap_or(around)
            }
        };
        let tree = match &self.tree {
            None => true,
            Some(tree) => tree.as_deref() == Some(around),
        };
        tree && !self.is_bare
    }
}

/// Whether `key=value` changes how things look, and nothing else.
fn is_plain_setting(setting: &str) -> bool {
    let (key, value) = setting.split_once('=').unwrap_or((setting, "true"));
    let key = key.to_ascii_lowercase();
    let prefixes = ["color.", "advice.", "user.", "log.", "i18n.", "column.", "status.", "blame.", "grep.linenumber"];
    let off = ["commit.gpgsign", "tag.gpgsign", "core.fsmonitor", "log.showsignature", "commit.gpgSign"];
    let plain = prefixes.iter().any(|prefix| key.starts_with(prefix)) && key != "log.showsignature";
    let switched_off = (off.contains(&key.as_str()) || key.starts_with("pager."))
        && matches!(value.to_ascii_lowercase().as_str(), "false" | "no" | "off" | "0");
    !value.starts_with('!') && (plain || PLAIN_SETTINGS.contains(&key.as_str()) || switched_off)
}

/// Whether a key of the configuration can name a program, or where programs come from.
pub(super) fn names_program(key: &str) -> bool {
    let key = key.to_ascii_lowercase();
    let section = key.split('.').next().unwrap_or("");
    let last = key.rsplit('.').next().unwrap_or("");
    PROGRAM_SECTIONS.contains(&section) || PROGRAM_SETTINGS.contains(&last)
}
