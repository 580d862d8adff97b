//! `git`: the subcommand and its options decide. What those do is in `git.toml`; here is what no table can tell.

use super::git_settings::global_options;
use super::options::{self, Call};
use super::reduce::Argument;
use super::table::{self, Spec};
use super::traits::Fact;
use super::walk::{Run, Walk};
use super::{Assumption, Effect, GitBlame, GitPrograms, Hooks, git_config, programs};

use Effect::{Destructive, Network, ReadOnly, Unknown, Write};

/// The strategies that git itself has.
const STRATEGIES: [&str; 7] = ["ort", "recursive", "resolve", "octopus", "ours", "subtree", "theirs"];
/// Tasks of maintenance that stay within the repository.
#[rustfmt::skip]
const LOCAL_TASKS: [&str; 9] = [
    "gc", "commit-graph", "loose-objects", "incremental-repack", "pack-refs", "reflog-expire", "worktree-prune",
    "rerere-gc", "geometric-repack",
];

/// Runs `git`.
pub(super) fn run(walk: &mut Walk<'_, '_>, run: &Run<'_>) {
    match &walk.setting.git {
        None => walk.assume(Assumption::PlainRepository),
        Some(GitPrograms { always: Some(setting), .. }) => {
            let blame = GitBlame::Program(setting.clone());
            walk.blame(Unknown, run.name, &run.span, blame);
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
    let whole = format!("git {name}");
    if matches!(arguments, [only] if matches!(only.known_text(), Some("--help" | "-h"))) {
        let effect = if arguments.first().and_then(Argument::known_text) == Some("-h") { ReadOnly } else { Unknown };
        return walk.add(effect, &whole, &run.span, "prints help");
    }
    let from = walk.findings.causes.len();
    judge(walk, name, &whole, arguments, run);
    let found = walk.findings.causes.iter().skip(from).map(|found| found.effect);
    let effect = found.max().unwrap_or(ReadOnly);
    configured(walk, name, &whole, run, effect);
}

/// Judges a subcommand: by the table, and by what no table can tell.
fn judge(walk: &mut Walk<'_, '_>, name: &str, whole: &str, arguments: &[Argument], run: &Run<'_>) {
    if name == "config" {
        let (effect, why) = git_config::judge(walk, arguments, run);
        return walk.add(effect, whole, &run.span, why);
    }
    let Some(spec) = table::git(name) else {
        return walk.add(Unknown, whole, &run.span, "a subcommand that is not known, or runs programs");
    };
    let given = Given { spec, call: options::read_until_verb(spec, arguments), arguments };
    match name {
        "push" | "send-pack" => push(walk, whole, &given, run),
        "clone" => clone(walk, whole, &given, run),
        "restore" if given.is_staged() => {
            walk.add(Write, whole, &run.span, "changes the index");
        }
        "rm" if !given.call.is_lowered && !given.call.has_unlisted && given.call.has_still("--cached") => {
            walk.add(Write, whole, &run.span, "changes the index");
        }
        "maintenance" if given.has_local_tasks() => {
            walk.add(Write, whole, &run.span, "changes the index, references, the tree or settings");
        }
        _ if spec.has_verbs() => programs::by_verb(walk, run, spec, &given.call, arguments, whole),
        _ => programs::judge(walk, run, spec, &given.call, arguments, whole),
    }
    match name {
        "branch" if given.call.has_still("-d --delete") && given.call.has_still("-f --force") => {
            walk.add(Destructive, whole, &run.span, "deletes a branch, merged or not");
        }
        "checkout" if replaces_files(&given) => {
            walk.add(Destructive, whole, &run.span, "replaces files in the tree");
        }
        // One word behind the dashes is the file; with more of them options are read there.
        "blame" | "annotate" if given.behind_dashes().len() > 1 || given.behind_dashes().iter().any(is_several) => {
            walk.add(Unknown, whole, &run.span, "words behind `--` that can be options");
        }
        // What these run is a command line of its own.
        "submodule" | "bisect" if matches!(given.verb(), Some("foreach" | "run")) => {
            let words: Vec<&str> = arguments.iter().skip(1).map(Argument::skeleton).collect();
            walk.partly(&words.join(" "), &run.span);
        }
        _ if spec.traits.is(Fact::Merges) && given.has_own_strategy() => {
            walk.add(Unknown, whole, &run.span, "runs a program");
        }
        _ => {}
    }
    let verifies = |argument: &Argument| argument.prefix().contains("%G") || argument.prefix().contains("%(signature");
    if arguments.iter().any(verifies) {
        walk.add(Unknown, whole, &run.span, "a format for which a program checks signatures");
    }
    let runs = |operand: &&Argument| operand.prefix().starts_with("ext::") || operand.prefix().starts_with("fd::");
    if given.call.operands.iter().any(runs) {
        walk.add(Unknown, whole, &run.span, "a transport that runs a program");
    }
}

/// Whether an argument can become several words.
fn is_several(argument: &Argument) -> bool {
    argument.splits || argument.has_glob
}

/// A call of a subcommand.
struct Given<'a> {
    spec: &'a Spec,
    call: Call<'a>,
    arguments: &'a [Argument],
}

impl Given<'_> {
    /// Whether `git restore` leaves the tree alone.
    fn is_staged(&self) -> bool {
        let call = &self.call;
        call.has_still("-S --staged") && !call.has("-W --worktree") && !call.has_unlisted && call.effects.is_empty()
    }

    /// Whether `git maintenance` runs what stays within the repository: not what fetches beforehand, nor jobs for later.
    fn has_local_tasks(&self) -> bool {
        let Some(spec) = self.spec.subcommands.get("run").filter(|_| self.verb() == Some("run")) else { return false };
        let behind = self.call.first_operand.and_then(|at| self.arguments.get(at.saturating_add(1)..));
        let call = options::read_until_verb(spec, behind.unwrap_or_default());
        let is_plain = !call.has_unlisted && !call.may_have_options && call.operands.is_empty();
        is_plain && call.values("--task").all(|task| task.is_some_and(|task| LOCAL_TASKS.contains(&task)))
    }

    /// Whether a strategy is named that is none of git's own: `git-merge-NAME` is run.
    fn has_own_strategy(&self) -> bool {
        // `--"$x"` may go on so.
        let may_be = |argument: &Argument| argument.known_text().is_none() && matches!(argument.prefix(), "-" | "--");
        let is_own = |name: Option<&str>| name.is_none_or(|name| !STRATEGIES.contains(&name));
        self.call.values("-s --strategy").any(is_own) || self.arguments.iter().any(may_be)
    }

    /// What stands behind `--`.
    fn behind_dashes(&self) -> &[Argument] {
        let at = self.arguments.iter().position(|argument| argument.known_text() == Some("--"));
        at.and_then(|at| self.arguments.get(at.saturating_add(1)..)).unwrap_or_default()
    }

    /// The verb of a subcommand with verbs.
    fn verb(&self) -> Option<&str> {
        self.call.operands.first().and_then(|operand| operand.known_text())
    }
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
fn configured(walk: &mut Walk<'_, '_>, name: &str, whole: &str, run: &Run<'_>, effect: Effect) {
    let Some(git) = &walk.setting.git else { return };
    let alias = git.aliases.contains(&name.to_ascii_lowercase());
    let traits = table::git_traits(name);
    let is_hooked = |hooks: &&Hooks| {
        let present = hooks.present.as_ref();
        let runs = present.is_none_or(|present| present.iter().any(|hook| runs_hook(name, hook)));
        let is_loose = !hooks.are_guarded && (effect > ReadOnly || traits.is(Fact::Indexes));
        traits.is(Fact::Hooked) && runs || is_loose
    };
    let hooks = git.hooks.as_ref().filter(is_hooked).map(|hooks| hooks.setting.clone());
    let stays = options::has_any(run.arguments, "--no-lazy-fetch");
    let needs_objects = !matches!(name, "config" | "version" | "help" | "init");
    let fetches = git.fetches.clone().filter(|_| needs_objects && !stays);
    if alias {
        let why = format!("the configuration says what this subcommand is: `alias.{name}`");
        walk.add(Unknown, whole, &run.span, why);
    }
    if let Some(setting) = hooks {
        walk.blame(Unknown, whole, &run.span, GitBlame::Hooks(setting));
    }
    if let Some(setting) = fetches {
        walk.blame(Network, whole, &run.span, GitBlame::Fetch(setting));
    }
}

/// `git clone`: from a directory beside, or from another machine.
fn clone(walk: &mut Walk<'_, '_>, whole: &str, given: &Given<'_>, run: &Run<'_>) {
    let call = &given.call;
    let local = |text: &str| text.starts_with(['/', '.', '~']) || text.starts_with("file://");
    let source = call.operands.first().and_then(|source| source.known_text());
    if source.is_some_and(local) && call.effects.is_empty() {
        return walk.add(Write, whole, &run.span, "copies a local repository");
    }
    programs::judge(walk, run, given.spec, call, given.arguments, whole);
}

/// `git push`: with force, or with a refspec that forces or deletes.
fn push(walk: &mut Walk<'_, '_>, whole: &str, given: &Given<'_>, run: &Run<'_>) {
    let call = &given.call;
    let refspec = |operand: &&Argument| operand.prefix().starts_with('+') || operand.prefix().starts_with(':');
    let forces = call.effects.iter().any(|(effect, _)| *effect == Destructive) || call.operands.iter().any(refspec);
    if forces && !call.is_lowered {
        walk.add(Destructive, whole, &run.span, "rewrites or deletes what the remote has");
    }
    if call.effects.iter().any(|(effect, _)| *effect == Unknown) || call.may_have_options {
        walk.add(Unknown, whole, &run.span, "an option that runs a program, or may be one");
    }
    walk.add(Network, whole, &run.span, "speaks with a remote");
}

/// Whether `git checkout` is given paths, or what is more likely one than a branch.
fn replaces_files(given: &Given<'_>) -> bool {
    if !given.behind_dashes().is_empty() {
        return true;
    }
    if ["-b", "-B", "--orphan", "-t --track", "-d --detach"].iter().any(|options| given.call.has_still(options)) {
        return false;
    }
    match given.call.operands.as_slice() {
        [] => false,
        [only] => looks_like_path(only.prefix()),
        _ => true,
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
