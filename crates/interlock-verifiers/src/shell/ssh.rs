//! `ssh`: a connection, and what is run at its other end.

use super::Effect;
use super::options::{Given, read_until_verb};
use super::reduce::Argument;
use super::walk::{Run, Walk};

/// Settings of `ssh` that name no program.
#[rustfmt::skip]
const PLAIN_SSH_SETTINGS: [&str; 14] = [
    "batchmode", "connecttimeout", "connectionattempts", "stricthostkeychecking", "userknownhostsfile", "loglevel",
    "port", "user", "hostname", "serveraliveinterval", "serveralivecountmax", "compression", "requesttty",
    "identitiesonly",
];

/// `ssh [OPTION]… HOST [OPTION]… [COMMAND …]`: the table has its options; what it runs elsewhere may destroy there.
pub(super) fn run(walk: &mut Walk<'_, '_>, run: &Run<'_>) {
    let spec = walk.setting.commands.get(run.name).into_iter().flatten().next().cloned();
    let Some(spec) = spec else { return };
    let first = read_until_verb(&spec, run.arguments);
    let after = first.first_operand.and_then(|host| run.arguments.get(host.saturating_add(1)..)).unwrap_or_default();
    let second = read_until_verb(&spec, after);
    // A few settings name programs; one that is not known may.
    if first.each("-o").chain(second.each("-o")).any(|given| !is_plain_setting(given)) {
        walk.add(Effect::Unknown, run.name, &run.span, "a setting that can name a program");
    }
    for (effect, _) in &second.effects {
        walk.add(*effect, run.name, &run.span, "an option that runs something, or is not known");
    }
    let command = second.first_operand.and_then(|at| after.get(at..)).unwrap_or_default();
    let words: Vec<&str> = command.iter().map(Argument::skeleton).collect();
    walk.partly(&words.join(" "), &run.span);
}

/// Whether a setting names no program: `-o Port=22`, `-o "Port 22"`.
fn is_plain_setting(given: &Given<'_>) -> bool {
    let Some(setting) = &given.value else { return false };
    let key = setting.prefix().split_once(['=', ' ']).map(|(key, _)| key).or(setting.known_text());
    key.is_some_and(|key| PLAIN_SSH_SETTINGS.contains(&key.to_ascii_lowercase().as_str()))
}
