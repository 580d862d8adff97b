//! Programs: those with a language of their own, and those of the table.

use super::options::{self, Call};
use super::reduce::Argument;
use super::table::{self, Operands, Spec};
use super::traits::{Fact, Language};
use super::walk::{Run, Walk};
use super::{Effect, awk, builtins, find, git, paths, sed, shells, ssh, tar, versions, wrappers};

type Handler = fn(&mut Walk<'_, '_>, &Run<'_>);

/// The code for a language.
#[rustfmt::skip]
fn handler(language: Language) -> Option<Handler> {
    Some(match language {
        Language::Sed        => sed::run,
        Language::Awk        => awk::run,
        Language::Find       => find::run,
        Language::Fd         => find::fd,
        Language::Tar        => tar::run,
        Language::Dd         => dd,
        Language::Socat      => socat,
        Language::Ssh        => ssh::run,
        Language::Git        => git::run,
        Language::Env        => wrappers::env,
        Language::Xargs      => wrappers::xargs,
        Language::Parallel   => wrappers::parallel,
        Language::Flock      => wrappers::flock,
        Language::Script     => wrappers::script,
        Language::Watch      => wrappers::watch,
        Language::Time       => wrappers::time,
        Language::Privileged => wrappers::privileged,
        Language::Multicall  => |walk, run| walk.program(run, run.arguments),
        Language::Shell      => shells::run,
        // The shell itself runs those; what a program of the same name does, `run` asks.
        Language::Builtin    => return None,
    })
}

/// Whether a name alone says that something is destroyed.
pub(super) fn destroys(walk: &Walk<'_, '_>, name: &str) -> bool {
    let name = name.rsplit('/').next().unwrap_or(name);
    walk.setting.commands.get(name).iter().flatten().any(|spec| spec.effect == Effect::Destructive)
}

/// Runs a program.
pub(super) fn run(walk: &mut Walk<'_, '_>, run: &Run<'_>) {
    let entries: Vec<_> = walk.setting.commands.get(run.name).into_iter().flatten().cloned().collect();
    let traits = walk.setting.commands.traits(run.name);
    let handler = traits.language.and_then(handler);
    let known = handler.is_some() || !entries.is_empty();
    if known && versions::is_asked(run.arguments, &entries) && versions::answers(walk, run, &entries) {
        return walk.add(Effect::ReadOnly, run.name, &run.span, "asks for a version or for help");
    }
    if let Some(handler) = handler {
        handler(walk, run);
    }
    for spec in &entries {
        by_table(walk, run, spec, run.arguments, run.name);
    }
    if traits.is(Fact::OpensAddresses) && opens_addresses(run) {
        walk.add(Effect::Network, run.name, &run.span, "opens an address");
    }
    if traits.is(Fact::Cloud) && names_destruction(run, traits.is(Fact::HasMethods)) {
        walk.add(Effect::Destructive, run.name, &run.span, "destroys what is elsewhere");
    }
    if known || traits.is(Fact::Program) && builtins::run(walk, run) {
        return;
    }
    walk.add(Effect::Unknown, run.name, &run.span, "not in the table of commands");
}

/// What a call of a command with a language of its own says by its options, and what those do. If the table does not list
/// them, nobody can tell.
pub(super) fn own_call<'a>(walk: &mut Walk<'_, '_>, run: &Run<'a>) -> Option<Call<'a>> {
    let Some(spec) = table::grammar(run.name) else {
        walk.add(Effect::Unknown, run.name, &run.span, "options that no table lists");
        return None;
    };
    let call = options::read_until_verb(spec, run.arguments);
    own_effects(walk, run, &call, run.arguments, run.name);
    if call.may_have_options {
        walk.add(Effect::Unknown, run.name, &run.span, "an argument that is not known could be an option");
    }
    Some(call)
}

/// Whether a program is given an address, which it opens.
fn opens_addresses(run: &Run<'_>) -> bool {
    let is_address = |text: &str| {
        let scheme = text.split_once("://").map(|(scheme, _)| scheme.rsplit('=').next().unwrap_or(""));
        scheme.is_some_and(|scheme| !scheme.eq_ignore_ascii_case("file"))
    };
    options::texts(run.arguments).any(is_address)
}

/// A call judged by an entry of the table.
fn by_table(walk: &mut Walk<'_, '_>, run: &Run<'_>, spec: &Spec, arguments: &[Argument], name: &str) {
    let call = options::read_until_verb(spec, arguments);
    if spec.has_verbs() {
        return by_verb(walk, run, spec, &call, arguments, name);
    }
    judge(walk, run, spec, &call, arguments, name);
}

pub(super) fn by_verb(
    walk: &mut Walk<'_, '_>,
    run: &Run<'_>,
    spec: &Spec,
    call: &Call<'_>,
    arguments: &[Argument],
    name: &str,
) {
    own_effects(walk, run, call, arguments, name);
    let Some(at) = call.first_operand else {
        let why = spec.why.clone().unwrap_or_else(|| effect_why(spec.effect).to_owned());
        let effect = if call.is_lowered { Effect::ReadOnly } else { spec.effect };
        return walk.add(effect, name, &run.span, why);
    };
    // An option that is not known may have taken the next word for its own, so the verb may be a later one.
    if call.effects.iter().any(|(effect, _)| *effect == Effect::Unknown) {
        let later = arguments.iter().skip(at).filter_map(Argument::known_text);
        if let Some(verb) = later.into_iter().find(|word| spec.verb_destroys(word)) {
            walk.add(Effect::Destructive, &format!("{name} {verb}"), &run.span, effect_why(Effect::Destructive));
        }
    }
    let Some(verb) = arguments.get(at).and_then(Argument::known_text) else {
        return walk.add(Effect::Unknown, name, &run.span, "a subcommand that is not known before the line runs");
    };
    let rest = arguments.get(at.saturating_add(1)..).unwrap_or_default();
    let whole = format!("{name} {verb}");
    if let Some(sub) = spec.subcommands.get(verb) {
        return by_table(walk, run, sub, rest, &whole);
    }
    match spec.verb(verb) {
        Some(effect) => {
            walk.add(effect, &whole, &run.span, effect_why(effect));
        }
        None => match &spec.any {
            Some(any) => by_table(walk, run, any, rest, &whole),
            None => {
                // An operand, or a verb that the table does not have.
                let plain = spec.effect != Effect::ReadOnly && spec.operands != Operands::None;
                let effect = if plain { spec.effect } else { spec.effect.max(Effect::Unknown) };
                let why = spec.why.clone().unwrap_or_else(|| effect_why(effect).to_owned());
                walk.add(effect, name, &run.span, why);
            }
        },
    }
}

/// What the options of a call do by themselves.
fn own_effects(walk: &mut Walk<'_, '_>, run: &Run<'_>, call: &Call<'_>, arguments: &[Argument], name: &str) {
    for (effect, at) in &call.effects {
        let span = arguments.get(*at).map_or(&run.span, |argument| &argument.span);
        walk.add(*effect, name, span, option_why(*effect));
    }
    for output in &call.outputs {
        walk.writes(output, name, &output.span);
    }
}

/// A verb that destroys, wherever it stands among the words.
fn names_destruction(run: &Run<'_>, has_methods: bool) -> bool {
    let destroys = |text: &str| {
        matches!(text, "delete" | "destroy" | "terminate" | "purge")
            || ["delete-", "terminate-", "destroy-"].iter().any(|verb| text.starts_with(verb))
    };
    let by_method = |text: &str| has_methods && matches!(text, "DELETE" | "--method=DELETE" | "-XDELETE");
    let mut words = run.arguments.iter().filter_map(Argument::known_text);
    words.any(|text| destroys(text) || by_method(text))
}

pub(super) fn judge(
    walk: &mut Walk<'_, '_>,
    run: &Run<'_>,
    spec: &Spec,
    call: &Call<'_>,
    arguments: &[Argument],
    name: &str,
) {
    own_effects(walk, run, call, arguments, name);
    if spec.operands == Operands::Command {
        return wrapped(walk, run, spec, call, arguments, name);
    }
    let base = if call.is_lowered { Effect::ReadOnly } else { spec.effect };
    if call.may_have_options && has_worse(spec, base, call) {
        walk.add(
            Effect::Unknown,
            name,
            &run.span,
            "an argument that is not known could be an option that writes or runs",
        );
    }
    if !call.is_lowered || spec.operands == Operands::Remote {
        operands(walk, run, spec, call, name);
    }
    // A program that only writes what it is told has no effect of its own.
    let own = if spec.operands == Operands::Outputs { Effect::ReadOnly } else { base };
    let why = match (&spec.why, call.is_lowered) {
        (Some(why), false) => why.clone(),
        (Some(why), true) if spec.effect == Effect::ReadOnly && spec.operands != Operands::Outputs => why.clone(),
        (Some(_) | None, true) => "only shows what it would do".to_owned(),
        (None, false) => effect_why(own).to_owned(),
    };
    walk.add(own, name, &run.span, why);
}

/// Whether an option that is not known could make a call worse than it is.
fn has_worse(spec: &Spec, base: Effect, call: &Call<'_>) -> bool {
    let worst = spec.worst_option();
    match base {
        Effect::ReadOnly if call.is_lowered => worst > Effect::ReadOnly || spec.can_raise(),
        // What it writes anyway is judged by where.
        Effect::ReadOnly if spec.operands == Operands::Outputs && !call.operands.is_empty() => worst >= Effect::Unknown,
        // Of git the options are known where a subcommand can come out as harmless.
        Effect::ReadOnly => worst > Effect::ReadOnly || !spec.is_open && !spec.negates,
        Effect::Write | Effect::Network => worst >= Effect::Unknown,
        Effect::Unknown | Effect::Destructive => false,
    }
}

fn operands(walk: &mut Walk<'_, '_>, run: &Run<'_>, spec: &Spec, call: &Call<'_>, name: &str) {
    match spec.operands {
        Operands::Inputs | Operands::Command => {}
        Operands::Files => {
            for operand in &call.operands {
                arms(walk, operand, name);
            }
        }
        Operands::Outputs => {
            for operand in &call.operands {
                walk.writes(operand, name, &operand.span);
            }
        }
        Operands::SecondIsOutput => match call.operands.get(1) {
            Some(output) => walk.writes(output, name, &output.span),
            None if call.splits || call.operands.iter().any(|operand| operand.has_glob) => {
                walk.add(Effect::Write, name, &run.span, "an argument that can name an output");
            }
            None => {}
        },
        Operands::Made | Operands::SecondIsMade => {
            let first = usize::from(spec.operands == Operands::SecondIsMade);
            let several = call.splits || call.operands.iter().any(|operand| operand.has_glob);
            if call.operands.len() > first || several && !call.operands.is_empty() {
                walk.add(Effect::Write, name, &run.span, "an operand that names what is made");
            }
        }
        Operands::Remote => {
            for operand in &call.operands {
                let text = operand.known_text().unwrap_or(operand.prefix());
                if is_remote(text) {
                    walk.add(Effect::Network, name, &operand.span, "names another machine");
                } else {
                    arms(walk, operand, name);
                }
            }
        }
        Operands::None => {
            if !call.operands.is_empty() {
                walk.add(Effect::Unknown, name, &run.span, "an operand where none is expected");
            }
        }
        Operands::Plus => {
            if call.operands.iter().any(|operand| !operand.prefix().starts_with('+')) {
                walk.add(Effect::Write, name, &run.span, "an operand that sets something");
            }
        }
    }
}

/// A file that is changed: worse than that if it runs later, or is a device.
pub(super) fn arms(walk: &mut Walk<'_, '_>, operand: &Argument, name: &str) {
    let directory = walk.directory.clone();
    let guesses = [operand.prefix(), operand.skeleton()];
    let texts =
        operand.texts().iter().map(String::as_str).chain(guesses.into_iter().filter(|_| operand.texts().is_empty()));
    for text in texts {
        let (effect, why) = paths::target(text, directory.as_deref()).effect();
        if effect > Effect::Write {
            return walk.add(effect, name, &operand.span, why);
        }
    }
}

/// `host:path`, `user@host:path`, `scheme://…`.
fn is_remote(text: &str) -> bool {
    let before_slash = text.split('/').next().unwrap_or("");
    text.contains("://") || before_slash.contains(':') && !text.starts_with(['/', '.'])
}

/// A wrapper of the table: what it runs is judged.
fn wrapped(walk: &mut Walk<'_, '_>, run: &Run<'_>, spec: &Spec, call: &Call<'_>, arguments: &[Argument], name: &str) {
    if walk.background && walk.setting.commands.traits(run.name).is(Fact::Detaches) {
        walk.add(Effect::Unknown, name, &run.span, "a job that outlives the call");
    }
    let own =
        call.first_operand.map_or(arguments, |at| arguments.get(..at.saturating_add(spec.skip)).unwrap_or_default());
    if call.may_have_options || own.iter().any(|argument| argument.splits) {
        walk.add(Effect::Unknown, name, &run.span, "the command is not known before the line runs");
    }
    let start = call.first_operand.map(|at| at.saturating_add(spec.skip));
    let command = start.and_then(|start| arguments.get(start..)).unwrap_or_default();
    if command.is_empty() {
        return walk.add(spec.effect, name, &run.span, effect_why(spec.effect));
    }
    walk.program(run, command);
}

/// `socat`: an address can be a program; connections and the standard streams are only connections.
fn socat(walk: &mut Walk<'_, '_>, run: &Run<'_>) {
    #[rustfmt::skip]
    const PLAIN: [&str; 20] = [
        "tcp", "tcp4", "tcp6", "tcp-connect", "tcp4-connect", "tcp6-connect", "tcp-listen", "tcp4-listen",
        "tcp6-listen", "tcp-l", "udp", "udp4", "udp6", "udp-connect", "udp-listen", "ssl", "openssl",
        "openssl-connect", "ssl-l", "openssl-listen",
    ];
    let is_plain = |argument: &Argument| {
        argument.known_text().is_some_and(|text| {
            let kind = text.split([':', ',']).next().unwrap_or("").to_ascii_lowercase();
            let stream = matches!(kind.as_str(), "-" | "stdio" | "stdin" | "stdout" | "stderr");
            !text.contains("!!") && (stream || PLAIN.contains(&kind.as_str()))
        })
    };
    if run.arguments.iter().all(is_plain) {
        walk.add(Effect::Network, run.name, &run.span, "opens a connection");
    } else {
        walk.add(Effect::Unknown, run.name, &run.span, "an address that can be a program or a file");
    }
}

/// `dd`: writes what `of=` names.
fn dd(walk: &mut Walk<'_, '_>, run: &Run<'_>) {
    for argument in run.arguments {
        let text = argument.known_text().unwrap_or(argument.prefix());
        if argument.splits {
            walk.add(Effect::Write, run.name, &argument.span, "an argument that can name an output");
        }
        if let Some(path) = text.strip_prefix("of=") {
            let target = match argument.known_text() {
                Some(_) => Argument::known(path, argument.span.clone()),
                None => Argument::after(path, argument.span.clone()),
            };
            walk.writes(&target, run.name, &argument.span);
        } else if argument.known_text().is_none() && !text.contains('=') {
            walk.add(Effect::Unknown, run.name, &argument.span, "an argument that is not known could name an output");
        }
    }
    walk.add(Effect::ReadOnly, run.name, &run.span, "copies to what it is told");
}

fn option_why(effect: Effect) -> &'static str {
    match effect {
        Effect::ReadOnly => "an option that reads",
        Effect::Write => "an option that writes",
        Effect::Network => "an option that reaches out",
        Effect::Unknown => "an option that runs something, or is not known",
        Effect::Destructive => "an option that destroys",
    }
}

fn effect_why(effect: Effect) -> &'static str {
    match effect {
        Effect::ReadOnly => "reads",
        Effect::Write => "writes files or settings",
        Effect::Network => "reaches other machines",
        Effect::Unknown => "runs what cannot be seen here",
        Effect::Destructive => "destroys",
    }
}
