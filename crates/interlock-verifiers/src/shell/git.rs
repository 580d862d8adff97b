//! `git`: the subcommand and its options decide.

use super::git_config;
use super::git_settings::global_options;
use super::reduce::Argument;
use super::walk::{Run, Walk};
use super::{GitPrograms, Hooks, Label};

use Label::{Destructive, Network, ReadOnly, Unknown, Write};

/// What is taken for granted where nobody read the repository's configuration.
const PLAIN: &str = "plain repository";

/// Subcommands that read, whatever their options, but for the ones looked at below.
#[rustfmt::skip]
const READERS: &[&str] = &[
    "log", "diff", "show", "status", "shortlog", "describe", "rev-parse", "rev-list", "ls-files", "ls-tree",
    "cat-file", "blame", "annotate", "grep", "whatchanged", "name-rev", "merge-base", "for-each-ref", "show-ref",
    "show-branch", "count-objects", "diff-tree", "diff-index", "diff-files", "cherry", "var", "check-ignore",
    "check-attr", "check-mailmap", "check-ref-format", "verify-commit", "verify-tag", "verify-pack", "range-diff",
    "version", "fast-export", "patch-id", "stripspace", "column", "show-index", "get-tar-commit-id", "merge-tree",
    "fsck", "for-each-repo", "unpack-file", "ls-remote", "archive", "hash-object", "interpret-trailers",
];

/// Subcommands that change the index, references or the tree and lose nothing that is committed.
#[rustfmt::skip]
const WRITERS: &[&str] = &[
    "add", "stage", "commit", "merge", "cherry-pick", "revert", "am", "mv", "init", "pack-refs", "update-index",
    "write-tree", "commit-tree", "mktag", "mktree", "read-tree", "checkout-index", "unpack-objects", "index-pack",
    "repack", "pack-objects", "merge-file", "update-server-info", "commit-graph", "multi-pack-index",
    "fmt-merge-msg", "mailsplit", "mailinfo", "bugreport", "diagnose", "fast-import", "quiltimport",
];

/// Subcommands that run hooks as a matter of course.
#[rustfmt::skip]
const HOOKED: &[&str] = &[
    "commit", "merge", "pull", "push", "checkout", "switch", "rebase", "am", "cherry-pick", "revert", "worktree",
    "clone", "gc", "maintenance", "fetch", "submodule", "stash", "receive-pack",
];
/// Subcommands that read, and write the index anew where it is out of date: there is a hook for that.
const INDEXING: &[&str] = &["status", "diff", "describe", "diff-files", "diff-index", "ls-files", "grep", "blame"];

/// Subcommands that merge, and take the name of a strategy, which is a program.
const MERGING: &[&str] = &["merge", "pull", "rebase", "cherry-pick", "revert", "am"];
/// The strategies that git itself has.
const STRATEGIES: [&str; 7] = ["ort", "recursive", "resolve", "octopus", "ours", "subtree", "theirs"];
/// Tasks of maintenance that stay within the repository.
const LOCAL_TASKS: [&str; 9] = [
    "gc",
    "commit-graph",
    "loose-objects",
    "incremental-repack",
    "pack-refs",
    "reflog-expire",
    "worktree-prune",
    "rerere-gc",
    "geometric-repack",
];

/// Subcommands that speak with another machine.
const SPEAKERS: &[&str] =
    &["fetch", "pull", "send-email", "request-pull", "fetch-pack", "send-pack", "http-fetch", "http-push"];

/// Runs `git`.
pub(super) fn run(walk: &mut Walk<'_, '_>, run: &Run<'_>) {
    match &walk.setting.git {
        None => walk.assume(PLAIN),
        Some(GitPrograms { always: Some(setting), .. }) => {
            let why = format!("the repository's configuration names a program: `{setting}`");
            walk.add(Unknown, run.name, &run.span, why);
        }
        Some(GitPrograms { always: None, .. }) => {}
    }
    let Some(at) = global_options(walk, run) else { return };
    let Some(subcommand) = run.arguments.get(at) else {
        return walk.add(ReadOnly, run.name, &run.span, "prints help");
    };
    let Some(name) = subcommand.known_text() else {
        return walk.add(Unknown, run.name, &subcommand.span, "a subcommand that is not known before the line runs");
    };
    let arguments = run.arguments.get(at.saturating_add(1)..).unwrap_or_default();
    let call = Call::of(name, arguments);
    let whole = format!("git {name}");
    if matches!(arguments, [only] if matches!(only.known_text(), Some("--help" | "-h"))) {
        let effect = if arguments.first().and_then(Argument::known_text) == Some("-h") { ReadOnly } else { Unknown };
        return walk.add(effect, &whole, &run.span, "prints help");
    }
    // What these run is a command line of its own.
    match (name, call.verb()) {
        ("submodule", "foreach") | ("bisect", "run") => {
            let words: Vec<&str> = arguments.iter().skip(1).map(Argument::skeleton).collect();
            walk.partly(&words.join(" "), &run.span);
        }
        _ => {}
    }
    let (effect, why) = judge(walk, name, &call, arguments, run);
    everywhere(walk, name, &whole, &call, run, effect);
    configured(walk, name, &whole, run, effect);
    if matches!(name, "archive" | "format-patch" | "mv" | "bundle") {
        call.operands.iter().for_each(|operand| super::special::arms(walk, operand, &whole));
    }
    walk.add(effect, &whole, &run.span, why);
}

/// The arguments of a subcommand.
struct Call<'a> {
    options: Vec<&'a str>,
    operands: Vec<&'a Argument>,
    /// Operands after `--`.
    paths: Vec<&'a Argument>,
    has_separator: bool,
    /// An argument that is not known and could be an option.
    may_have_options: bool,
}

impl<'a> Call<'a> {
    fn of(name: &str, arguments: &'a [Argument]) -> Call<'a> {
        let mut call = Call {
            options: Vec::new(),
            operands: Vec::new(),
            paths: Vec::new(),
            has_separator: false,
            may_have_options: false,
        };
        let mut is_value = false;
        for argument in arguments {
            // One word after an option with an argument is that, whatever it holds.
            if core::mem::take(&mut is_value) && argument.known_text().is_none() && !argument.splits {
                continue;
            }
            is_value = argument.known_text().is_some_and(|text| takes_value(name, text));
            if call.has_separator {
                call.paths.push(argument);
                continue;
            }
            match argument.known_text() {
                Some("--") => call.has_separator = true,
                Some(text) if text.len() > 1 && text.starts_with('-') => call.options.push(text),
                Some(_) => call.operands.push(argument),
                None => {
                    call.may_have_options |= argument.splits;
                    if argument.prefix().len() > 1 && argument.prefix().starts_with('-') {
                        call.options.push(argument.prefix());
                    } else {
                        call.may_have_options |= argument.may_be_option;
                        call.operands.push(argument);
                    }
                }
            }
        }
        call
    }

    /// Whether an option is there: written out, abbreviated, with a value, or its letter in a bundle.
    fn has(&self, long: &str, letter: Option<char>) -> bool {
        self.options.iter().any(|option| match option.strip_prefix("--") {
            Some(name) => {
                let name = name.split('=').next().unwrap_or("");
                !long.is_empty() && name.len() > 1 && long.starts_with(name) && (name == long || !is_option(name))
            }
            None => letter.is_some_and(|letter| {
                option.chars().skip(1).take_while(char::is_ascii_alphabetic).any(|it| it == letter)
            }),
        })
    }

    fn any(&self, options: &[(&str, Option<char>)]) -> bool {
        options.iter().any(|(long, letter)| self.has(long, *letter))
    }

    fn first(&self) -> Option<&str> {
        self.operands.first().and_then(|operand| operand.known_text())
    }

    /// The verb of a subcommand with verbs; an operand that is not known is one that can be anything.
    fn verb(&self) -> &str {
        match self.operands.first() {
            None => "",
            Some(operand) => operand.known_text().unwrap_or("\u{0}"),
        }
    }
}

/// Whether the next word is the argument of this option.
fn takes_value(name: &str, option: &str) -> bool {
    match name {
        "log" | "show" | "rev-list" | "shortlog" | "whatchanged" | "reflog" => matches!(
            option,
            "-n" | "--max-count"
                | "--since"
                | "--until"
                | "--after"
                | "--before"
                | "--author"
                | "--committer"
                | "--grep"
                | "-S"
                | "-G"
                | "-L"
        ),
        "diff" => matches!(option, "-S" | "-G"),
        "grep" => matches!(option, "-e" | "-f"),
        "blame" => matches!(option, "-L" | "--since"),
        _ => false,
    }
}

/// Full names that are the beginnings of other ones: not abbreviations of those.
fn is_option(name: &str) -> bool {
    matches!(name, "exec" | "out" | "force" | "prune" | "delete" | "all" | "hard" | "merge" | "list" | "edit")
}

/// Whether a subcommand that runs hooks may run this one.
fn runs_hook(subcommand: &str, hook: &str) -> bool {
    match hook {
        "pre-push" => subcommand == "push",
        "pre-commit" | "prepare-commit-msg" | "commit-msg" | "post-commit" => {
            !matches!(subcommand, "push" | "fetch" | "clone" | "gc" | "checkout" | "switch")
        }
        "post-checkout" => !matches!(subcommand, "commit" | "push" | "fetch" | "gc"),
        "post-merge" | "pre-merge-commit" => matches!(subcommand, "merge" | "pull" | "submodule"),
        "pre-rebase" => matches!(subcommand, "rebase" | "pull" | "submodule"),
        "post-rewrite" => matches!(subcommand, "commit" | "rebase" | "pull" | "submodule"),
        _ => true,
    }
}

/// What the configuration makes of a subcommand.
fn configured(walk: &mut Walk<'_, '_>, name: &str, whole: &str, run: &Run<'_>, effect: Label) {
    let Some(git) = &walk.setting.git else { return };
    let alias = git.aliases.contains(&name.to_ascii_lowercase());
    let is_hooked = |hooks: &&Hooks| {
        let present = hooks.present.as_ref();
        let runs = present.is_none_or(|present| present.iter().any(|hook| runs_hook(name, hook)));
        let is_loose = !hooks.are_guarded && (effect > ReadOnly || INDEXING.contains(&name));
        HOOKED.contains(&name) && runs || is_loose
    };
    let hooks = git.hooks.as_ref().filter(is_hooked).map(|hooks| hooks.setting.clone());
    let stays = super::unnamed::texts(run.arguments).any(|text| text == "--no-lazy-fetch");
    let needs_objects = !matches!(name, "config" | "version" | "help" | "init");
    let fetches = git.fetches.clone().filter(|_| needs_objects && !stays);
    if alias {
        let why = format!("the configuration says what this subcommand is: `alias.{name}`");
        walk.add(Unknown, whole, &run.span, why);
    }
    if let Some(setting) = hooks {
        walk.add(Unknown, whole, &run.span, format!("runs hooks of the project: `{setting}`"));
    }
    if let Some(setting) = fetches {
        walk.add(Network, whole, &run.span, format!("fetches objects that are missing: `{setting}`"));
    }
}

/// Options that write, run or reach out with any subcommand.
fn everywhere(walk: &mut Walk<'_, '_>, name: &str, whole: &str, call: &Call<'_>, run: &Run<'_>, effect: Label) {
    for option in &call.options {
        let long = option.strip_prefix("--").unwrap_or("");
        let key = long.split('=').next().unwrap_or("");
        let is = |full: &str| key.len() > 2 && full.starts_with(key);
        if is("output") && key.len() > 3 && key != "output-indicator-new" && !matches!(name, "config") {
            let target = match long.split_once('=') {
                Some((_, path)) => Argument::known(path, run.span.clone()),
                None => Argument::unknown(run.span.clone()),
            };
            walk.writes(&target, whole, &run.span);
        }
        if is("upload-pack")
            || is("receive-pack")
            || is("ext-diff")
            || is("open-files-in-pager")
            || is("extcmd")
            || is("sendmail-cmd")
            || name == "send-email" && (key.ends_with("-cmd") || is("smtp-server"))
        {
            walk.add(Unknown, whole, &run.span, "an option that runs a program");
        }
        if (key == "exec" || is("exec-path")) && name != "rev-parse" {
            walk.add(Unknown, whole, &run.span, "an option that runs a program");
        }
    }
    let runs = |operand: &&&Argument| operand.prefix().starts_with("ext::") || operand.prefix().starts_with("fd::");
    if call.operands.iter().find(runs).is_some() {
        walk.add(Unknown, whole, &run.span, "a transport that runs a program");
    }
    if call.may_have_options && effect == ReadOnly {
        walk.add(Unknown, whole, &run.span, "an argument that is not known could be an option that writes or runs");
    }
}

fn judge(
    walk: &mut Walk<'_, '_>,
    name: &str,
    call: &Call<'_>,
    arguments: &[Argument],
    run: &Run<'_>,
) -> (Label, &'static str) {
    let reads = (ReadOnly, "reads the repository");
    let writes = (Write, "changes the index, references, the tree or settings");
    let destroys = (Destructive, "loses what is not committed, or not referred to any more");
    let speaks = (Network, "speaks with a remote");
    let runs = (Unknown, "runs a program");
    match name {
        "grep" if call.has("open-files-in-pager", Some('O')) => runs,
        "fsck" if call.has("lost-found", None) => writes,
        "fast-export" if call.has("export-marks", None) => writes,
        "unpack-file" => writes,
        // With two commits and no `--trivial-merge` it writes trees.
        "merge-tree" if !call.has("trivial-merge", None) => writes,
        "verify-commit" | "verify-tag" => runs,
        "checkout-index" if call.has("force", Some('f')) => destroys,
        "read-tree" if call.has("reset", None) => destroys,
        "init" if call.has("template", None) => runs,
        "init" | "clone" if call.has("separate-git-dir", None) => {
            (Unknown, "a repository in a directory that anybody may write")
        }
        // Every conflict is handed to a program.
        "merge-index" | "merge-one-file" => runs,
        "maintenance" => maintenance(call, arguments),
        _ if MERGING.contains(&name) && has_own_strategy(arguments) => runs,
        "hash-object" if call.has("", Some('w')) => writes,
        "interpret-trailers" if call.has("in-place", None) => writes,
        "ls-remote" => speaks,
        "for-each-repo" => runs,
        "archive" => {
            if call.has("remote", None) {
                return speaks;
            }
            if call.any(&[("output", None)]) || call.options.iter().any(|option| is_short(option, 'o')) {
                return writes;
            }
            reads
        }
        _ if READERS.contains(&name) => reads,
        "rebase" if call.any(&[("exec", Some('x')), ("interactive", Some('i')), ("edit-todo", None)]) => runs,
        "add"
            if call.any(&[
                ("edit", Some('e')),
                ("interactive", Some('i')),
                ("patch", Some('p')),
                ("intent-to-add", Some('N')),
            ]) =>
        {
            (Unknown, "asks for input or an editor")
        }
        "mv" | "add" if call.has("dry-run", Some('n')) => reads,
        "add" if call.any(&[("edit", Some('e')), ("interactive", Some('i'))]) => {
            (Unknown, "asks for input or an editor")
        }
        "rebase" => writes,
        _ if WRITERS.contains(&name) => writes,
        "fetch" | "pull" if call.operands.iter().any(|operand| operand.prefix().starts_with('+')) => speaks,
        _ if SPEAKERS.contains(&name) => speaks,
        "apply" => {
            let shows = call.any(&[("check", None), ("stat", None), ("numstat", None), ("summary", None)]);
            if shows && !call.options.contains(&"--apply") { reads } else { writes }
        }
        "clone" => clone(call),
        "push" => push(call),
        "branch" => branch(call),
        "tag" => tag(call),
        "stash" => match call.verb() {
            "list" | "show" => reads,
            "drop" | "clear" => destroys,
            "\u{0}" => (Unknown, "a subcommand that is not known"),
            _ => writes,
        },
        "checkout" => checkout(call),
        "switch" if call.any(&[("force", Some('f')), ("discard-changes", None)]) => destroys,
        "switch" => writes,
        "restore" => {
            let staged = call.has("staged", Some('S'));
            let tree = call.has("worktree", Some('W'));
            if staged && !tree { writes } else { destroys }
        }
        "reset" if call.any(&[("hard", None), ("merge", None)]) => destroys,
        "reset" => writes,
        "clean" if call.has("dry-run", Some('n')) => reads,
        "clean" => destroys,
        "rm" if call.has("dry-run", Some('n')) => reads,
        "rm" if call.has("cached", None) => writes,
        "rm" => destroys,
        "remote" => remote(call),
        "submodule" => match call.verb() {
            "" | "status" | "summary" => reads,
            "foreach" => runs,
            "update" | "add" => speaks,
            "deinit" if call.has("force", Some('f')) => destroys,
            "init" | "deinit" | "sync" | "set-branch" | "set-url" => writes,
            // Whatever hooks and settings a repository has, they are the project's own afterwards.
            "absorbgitdirs" => (Unknown, "moves a repository into that of the project"),
            _ => (Unknown, "a subcommand that is not known"),
        },
        "worktree" => match call.verb() {
            "list" => reads,
            "add" | "move" | "lock" | "unlock" | "repair" | "prune" => writes,
            "remove" => destroys,
            _ => (Unknown, "a subcommand that is not known"),
        },
        "notes" => match call.verb() {
            "" | "list" | "show" | "get-ref" => reads,
            "add" | "append" | "copy" | "merge" => writes,
            "remove" | "prune" => destroys,
            _ => (Unknown, "asks for an editor, or is not known"),
        },
        "config" => git_config::judge(walk, arguments, run),
        "gc" if call.has("prune", None) => destroys,
        "gc" => writes,
        "prune" if call.has("dry-run", Some('n')) => reads,
        "prune" => destroys,
        "reflog" => match call.verb() {
            "expire" | "delete" => destroys,
            "\u{0}" => (Unknown, "a subcommand that is not known"),
            _ => reads,
        },
        "update-ref" if call.any(&[("", Some('d')), ("stdin", None)]) => destroys,
        "update-ref" => writes,
        "symbolic-ref" if call.has("delete", Some('d')) => destroys,
        "symbolic-ref" if call.operands.len() < 2 => reads,
        "symbolic-ref" => writes,
        "replace" if call.has("delete", Some('d')) => destroys,
        "replace" if call.has("edit", Some('e')) => (Unknown, "asks for an editor"),
        "replace" if call.has("list", Some('l')) || call.operands.is_empty() => reads,
        "replace" => writes,
        "bisect" => match call.verb() {
            "log" | "terms" | "" | "help" => reads,
            "start" | "good" | "bad" | "new" | "old" | "skip" | "reset" | "next" | "replay" => writes,
            _ => runs,
        },
        "sparse-checkout" if call.verb() == "list" => reads,
        "sparse-checkout" => writes,
        "rerere" => match call.verb() {
            "status" | "diff" | "remaining" => reads,
            "forget" | "clear" | "gc" => destroys,
            _ => writes,
        },
        "bundle" => match call.verb() {
            "verify" | "list-heads" => reads,
            "create" | "unbundle" => writes,
            _ => (Unknown, "a subcommand that is not known"),
        },
        "format-patch" if call.has("stdout", None) => reads,
        "format-patch" => writes,
        "lfs" => match call.verb() {
            "ls-files" | "status" | "env" | "version" => reads,
            "fetch" | "pull" | "push" | "clone" => speaks,
            _ => runs,
        },
        "help" if call.any(&[("all", Some('a')), ("guides", Some('g')), ("config", Some('c'))]) => reads,
        "help" => (Unknown, "opens a pager or a browser"),
        "filter-branch" | "filter-repo" => (Destructive, "rewrites history"),
        _ => (Unknown, "a subcommand that is not known, or runs programs"),
    }
}

fn is_short(option: &str, letter: char) -> bool {
    !option.starts_with("--") && option.chars().nth(1) == Some(letter)
}

/// Whether a strategy is named that is none of git's own: `git-merge-NAME` is run.
fn has_own_strategy(arguments: &[Argument]) -> bool {
    let mut words = arguments.iter();
    let is_own = |value: Option<&str>| value.is_none_or(|value| !STRATEGIES.contains(&value));
    while let Some(argument) = words.next() {
        let text = argument.known_text().unwrap_or(argument.prefix());
        if text == "--" {
            return false;
        }
        let (option, attached) = text.split_once('=').map_or((text, None), |(option, value)| (option, Some(value)));
        let is_long = option.len() > 5 && "--strategy".starts_with(option);
        let short = option.strip_prefix("-s").filter(|_| !text.starts_with("--"));
        let named = match (is_long, short) {
            (true, _) => Some(attached.or_else(|| words.next().and_then(Argument::known_text))),
            (false, Some("")) => Some(words.next().and_then(Argument::known_text)),
            (false, Some(value)) => Some(Some(value)),
            (false, None) => None,
        };
        if named.is_some_and(is_own) {
            return true;
        }
    }
    false
}

/// `git maintenance`: tasks in the repository; what fetches beforehand; jobs that run later.
fn maintenance(call: &Call<'_>, arguments: &[Argument]) -> (Label, &'static str) {
    if call.verb() != "run" {
        let is_query = call.verb() == "is-needed";
        return if is_query { (ReadOnly, "looks at the repository") } else { (Unknown, "a job that runs later") };
    }
    let words: Vec<&str> = arguments.iter().map(|argument| argument.known_text().unwrap_or("")).collect();
    let is_local = words.iter().enumerate().all(|(at, word)| match word.strip_prefix("--task") {
        Some("") => words.get(at.saturating_add(1)).is_some_and(|task| LOCAL_TASKS.contains(task)),
        Some(rest) => rest.strip_prefix('=').is_some_and(|task| LOCAL_TASKS.contains(&task)),
        None => true,
    });
    let is_plain = |word: &&str| {
        let known = ["run", "--auto", "--quiet", "--no-quiet", "--task", "--detach", "--no-detach"];
        known.contains(word) || word.starts_with("--task=") || LOCAL_TASKS.contains(word)
    };
    if is_local && words.iter().all(is_plain) {
        return (Write, "changes the index, references, the tree or settings");
    }
    (Network, "speaks with a remote")
}

fn clone(call: &Call<'_>) -> (Label, &'static str) {
    if call.any(&[("config", Some('c')), ("template", None), ("upload-pack", Some('u'))]) {
        return (Unknown, "an option that can name a program");
    }
    let reaching = [
        ("recurse-submodules", None),
        ("recursive", None),
        ("remote-submodules", None),
        ("bundle-uri", None),
        ("filter", None),
    ];
    let local = |text: &str| text.starts_with(['/', '.', '~']) || text.starts_with("file://");
    match call.first() {
        Some(source) if local(source) && !call.any(&reaching) => (Write, "copies a local repository"),
        Some(_) | None => (Network, "speaks with a remote"),
    }
}

fn push(call: &Call<'_>) -> (Label, &'static str) {
    let forces = [
        ("force", Some('f')),
        ("force-with-lease", None),
        ("force-if-includes", None),
        ("delete", Some('d')),
        ("mirror", None),
        ("prune", None),
    ];
    let refspec = |operand: &&Argument| operand.prefix().starts_with('+') || operand.prefix().starts_with(':');
    let harmless = call.has("dry-run", Some('n'));
    if !harmless && (call.any(&forces) || call.operands.iter().any(refspec)) {
        return (Destructive, "rewrites or deletes what the remote has");
    }
    (Network, "speaks with a remote")
}

fn branch(call: &Call<'_>) -> (Label, &'static str) {
    let deletes = call.has("delete", Some('d'));
    let forces = call.has("force", Some('f'));
    if call.has("", Some('D')) || deletes && forces {
        return (Destructive, "deletes a branch, merged or not");
    }
    if call.has("edit-description", None) {
        return (Unknown, "asks for an editor");
    }
    let changes = [
        ("move", Some('m')),
        ("", Some('M')),
        ("copy", Some('c')),
        ("", Some('C')),
        ("set-upstream-to", Some('u')),
        ("unset-upstream", None),
        ("track", Some('t')),
        ("no-track", None),
        ("create-reflog", None),
    ];
    let lists = [
        ("list", Some('l')),
        ("contains", None),
        ("no-contains", None),
        ("merged", None),
        ("no-merged", None),
        ("points-at", None),
        ("show-current", None),
        ("all", Some('a')),
        ("remotes", Some('r')),
    ];
    // The value of these can be a word of its own.
    let values = call.options.iter().filter(|option| matches!(**option, "--format" | "--sort")).count();
    let listing = call.any(&lists) || call.operands.len() <= values;
    if deletes || forces || call.any(&changes) || !listing {
        return (Write, "changes branches");
    }
    (ReadOnly, "lists branches")
}

fn tag(call: &Call<'_>) -> (Label, &'static str) {
    if call.has("delete", Some('d')) {
        return (Destructive, "deletes a tag");
    }
    let makes = [
        ("annotate", Some('a')),
        ("sign", Some('s')),
        ("local-user", Some('u')),
        ("force", Some('f')),
        ("message", Some('m')),
        ("file", Some('F')),
        ("edit", Some('e')),
        ("create-reflog", None),
    ];
    let lists = [
        ("list", Some('l')),
        ("contains", None),
        ("no-contains", None),
        ("merged", None),
        ("no-merged", None),
        ("points-at", None),
        ("verify", Some('v')),
        ("", Some('n')),
    ];
    if !call.any(&makes) && (call.any(&lists) || call.operands.is_empty()) {
        return (ReadOnly, "lists tags");
    }
    (Write, "makes a tag")
}

fn checkout(call: &Call<'_>) -> (Label, &'static str) {
    let destroys = (Destructive, "replaces files in the tree");
    let forces = [
        ("force", Some('f')),
        ("ours", None),
        ("theirs", None),
        ("patch", Some('p')),
        ("merge", Some('m')),
        ("pathspec-from-file", None),
        ("conflict", None),
    ];
    if call.any(&forces) || !call.paths.is_empty() {
        return destroys;
    }
    let makes = [("", Some('b')), ("", Some('B')), ("orphan", None), ("track", Some('t')), ("detach", Some('d'))];
    if call.any(&makes) {
        return (Write, "makes or switches a branch");
    }
    match call.operands.as_slice() {
        [] => (Write, "looks at the tree"),
        [only] if !looks_like_path(only.prefix()) => (Write, "switches to a commit"),
        _ => destroys,
    }
}

/// A word that is more likely a file than a branch: `.`, `./x`, `a/b.rs`, `*.c`.
fn looks_like_path(text: &str) -> bool {
    let name = text.rsplit('/').next().unwrap_or("");
    let extension = name.rsplit_once('.').map(|(_, extension)| extension);
    let has_extension = extension.is_some_and(|extension| {
        extension.len() <= 5 && extension.bytes().next().is_some_and(|byte| byte.is_ascii_alphabetic())
    });
    matches!(text, "." | "..")
        || text.starts_with("./")
        || text.starts_with("../")
        || text.starts_with(':')
        || text.contains('*')
        || text.ends_with('/')
        || has_extension
}

fn remote(call: &Call<'_>) -> (Label, &'static str) {
    let speaks = (Network, "speaks with a remote");
    match call.verb() {
        "" | "get-url" => (ReadOnly, "lists remotes"),
        "show" if call.has("", Some('n')) => (ReadOnly, "lists remotes"),
        "show" | "update" | "prune" => speaks,
        "add" if call.has("fetch", Some('f')) => speaks,
        "set-head" if call.has("auto", Some('a')) => speaks,
        "add" | "rename" | "remove" | "rm" | "set-head" | "set-branches" | "set-url" => (Write, "changes remotes"),
        _ => (Unknown, "a subcommand that is not known"),
    }
}
