//! What stands between `git` and its subcommand, and which settings name a program.

use super::Effect;
use super::paths::normalise;
use super::reduce::Argument;
use super::walk::{Run, Walk};

use Effect::{ReadOnly, Unknown};

/// Options before the subcommand that change how things look, or how paths are read.
#[rustfmt::skip]
const PLAIN_OPTIONS: &[&str] = &[
    "--no-pager", "-P", "-p", "--paginate", "--no-replace-objects", "--literal-pathspecs", "--glob-pathspecs",
    "--noglob-pathspecs", "--icase-pathspecs", "--no-optional-locks", "--no-lazy-fetch", "--no-advice",
];

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
    let mut named = Named::default();
    let found = read_options(walk, run, &mut named);
    if !named.is_plain() {
        walk.add(Unknown, run.name, &run.span, "a repository or a tree that is not found from the directory");
    }
    found
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
    /// An option that names a place.
    fn place(&mut self, option: &str, value: Option<&str>) {
        match option {
            "--git-dir" => self.repository = Some(value.map(normalise)),
            "--work-tree" => self.tree = Some(value.map(normalise)),
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

fn read_options(walk: &mut Walk<'_, '_>, run: &Run<'_>, named: &mut Named) -> Option<usize> {
    let mut at = 0usize;
    while let Some(argument) = run.arguments.get(at) {
        let text = match argument.known_text() {
            Some(text) => text,
            None if argument.splits => {
                walk.add(Unknown, run.name, &argument.span, "a subcommand that is not known before the line runs");
                return None;
            }
            None if argument.prefix().starts_with("--git-dir=") || argument.prefix().starts_with("--work-tree=") => {
                named.place(argument.prefix().split('=').next().unwrap_or(""), None);
                at = at.saturating_add(1);
                continue;
            }
            None => return Some(at),
        };
        if !text.starts_with('-') {
            return Some(at);
        }
        at = at.saturating_add(1);
        match text {
            "-C" | "--git-dir" | "--work-tree" | "--namespace" | "--attr-source" => {
                if run.arguments.get(at).is_some_and(|value| value.splits) {
                    walk.add(Unknown, run.name, &argument.span, "a subcommand that is not known before the line runs");
                }
                named.place(text, run.arguments.get(at).and_then(Argument::known_text));
                at = at.saturating_add(1);
            }
            "-c" => {
                let setting = run.arguments.get(at);
                at = at.saturating_add(1);
                let plain = setting.and_then(Argument::known_text).is_some_and(is_plain_setting);
                if !plain {
                    walk.add(Unknown, run.name, &argument.span, "a setting that can name a program");
                }
            }
            _ if PLAIN_OPTIONS.contains(&text) => {}
            "--bare" => named.is_bare = true,
            "--exec-path" | "--html-path" | "--man-path" | "--info-path" | "--version" | "-v" | "--help" | "-h" => {
                walk.add(ReadOnly, run.name, &run.span, "asks for a version, a path or help");
                return None;
            }
            _ if ["--git-dir=", "--work-tree=", "--namespace=", "--attr-source="]
                .iter()
                .any(|option| text.starts_with(option)) =>
            {
                let (option, value) = text.split_once('=').unwrap_or((text, ""));
                named.place(option, Some(value));
            }
            _ => walk.add(Unknown, run.name, &argument.span, "an option that can name a program, or is not known"),
        }
    }
    Some(at)
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
