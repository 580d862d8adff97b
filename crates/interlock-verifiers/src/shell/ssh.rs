//! `ssh`: a connection, and what is run at its other end.

use super::Effect;
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
    let first = super::options::read_until_verb(&spec, run.arguments);
    // A few settings name programs; one that is not known may.
    for (at, argument) in run.arguments.iter().enumerate() {
        let known = |argument: &Argument| argument.known_text().unwrap_or(argument.prefix()).to_owned();
        let is_whole = |argument: &Argument| argument.known_text().is_some();
        let setting = match known(argument).strip_prefix("-o") {
            Some("") if is_whole(argument) => {
                run.arguments.get(at.saturating_add(1)).map(|next| (known(next), is_whole(next)))
            }
            Some(attached) => Some((attached.to_owned(), is_whole(argument))),
            None => None,
        };
        let plain = |(setting, is_whole): (String, bool)| {
            let key = setting.split_once(['=', ' ']).map(|(key, _)| key).or(is_whole.then_some(setting.as_str()));
            key.is_some_and(|key| PLAIN_SSH_SETTINGS.contains(&key.to_ascii_lowercase().as_str()))
        };
        if setting.is_some_and(|setting| !plain(setting)) {
            walk.add(Effect::Unknown, run.name, &argument.span, "a setting that can name a program");
        }
    }
    let Some(host) = first.first_operand else { return };
    let after = run.arguments.get(host.saturating_add(1)..).unwrap_or_default();
    let second = super::options::read_until_verb(&spec, after);
    for (effect, _) in &second.effects {
        walk.add(*effect, run.name, &run.span, "an option that runs something, or is not known");
    }
    let command = second.first_operand.and_then(|at| after.get(at..)).unwrap_or_default();
    let words: Vec<&str> = command.iter().map(Argument::skeleton).collect();
    walk.partly(&words.join(" "), &run.span);
}
