//! Options and operands of a call, read by a command's own grammar.
//!
//! What makes a call harmless counts only as long as nothing else in the call can take it back: its negation, another
//! mode, an option that is not known here.

use core::ops::Range;

use super::Effect;
use super::reduce::Argument;
use super::table::{Does, Opt, Spec, Takes};

/// What a call says.
#[derive(Debug, Default)]
pub(super) struct Call<'a> {
    /// Options with an effect of their own: the effect, and which argument it is.
    pub(super) effects: Vec<(Effect, usize)>,
    /// Arguments of options that name files which are written.
    pub(super) outputs: Vec<Argument>,
    /// Every listed option, in order.
    pub(super) given: Vec<Given<'a>>,
    /// An option makes the whole call read only, and nothing takes that back.
    pub(super) is_lowered: bool,
    /// An option that makes the whole call read only.
    lowers: bool,
    /// A mode in which the whole call reads only.
    in_mode: bool,
    /// Another mode. Some programs take the last one, others the written out ones first: none counts then.
    is_raised: bool,
    /// Something that may undo either.
    is_taken_back: bool,
    /// An option that is not in the list.
    pub(super) has_unlisted: bool,
    /// The operands.
    pub(super) operands: Vec<&'a Argument>,
    /// Where the operands begin, for commands whose options end there.
    pub(super) first_operand: Option<usize>,
    /// An argument that is not known and could be an option.
    pub(super) may_have_options: bool,
    /// An argument that can become several words.
    pub(super) splits: bool,
    /// An option that is abbreviated, or whose end is not known: which words are its own is likely, and not sure.
    pub(super) is_inexact: bool,
    /// Options that are taken back: `--no-NAME`.
    negated: Vec<&'a str>,
}

/// A listed option that was given.
#[derive(Debug)]
pub(super) struct Given<'a> {
    /// As it is listed; of an abbreviation, the worst that it begins.
    pub(super) name: &'a str,
    /// Its argument: attached, or the next word. Nothing if it has none, or if that is missing.
    pub(super) value: Option<Argument>,
    /// Which argument it is.
    pub(super) at: usize,
    /// What follows it and its argument.
    pub(super) next: usize,
}

impl<'a> Call<'a> {
    /// How often one of some options is given, with its arguments.
    pub(super) fn each<'c>(&'c self, options: &'c str) -> impl DoubleEndedIterator<Item = &'c Given<'a>> {
        self.given.iter().filter(|given| is_among(given.name, options))
    }

    /// Whether one of some options is given.
    pub(super) fn has(&self, options: &str) -> bool {
        self.each(options).next().is_some()
    }

    /// Whether one of some options is given, and none is taken back.
    pub(super) fn has_still(&self, options: &str) -> bool {
        self.has(options) && !self.negated.iter().any(|name| is_among(name, options))
    }

    /// The arguments of some options; `None` for one that is not known, or missing.
    pub(super) fn values<'c>(&'c self, options: &'c str) -> impl Iterator<Item = Option<&'c str>> {
        self.each(options).map(|given| given.value.as_ref().and_then(Argument::known_text))
    }

    /// Whether it is sure where the operands begin: every option is listed and written out, and nothing before them, nor
    /// the first of them, can become more or other words.
    pub(super) fn is_sure(&self) -> bool {
        let splits = |given: &Given<'_>| given.value.as_ref().is_some_and(|value| value.splits);
        let is_split = self.given.iter().any(splits) || self.operands.first().is_some_and(|first| first.splits);
        !(self.has_unlisted || self.is_inexact || self.may_have_options || is_split)
    }
}

/// Whether a column of the table lists an option.
fn is_among(option: &str, column: &str) -> bool {
    column.split_ascii_whitespace().any(|listed| listed == option)
}

/// An option as it is listed.
type Listed<'a> = (&'a str, Opt);

/// Reads the arguments of a call; those of a command with subcommands up to the first operand.
pub(super) fn read_until_verb<'a>(spec: &'a Spec, arguments: &'a [Argument]) -> Call<'a> {
    let stops = spec.is_posix || spec.has_verbs();
    let mut call = Call::default();
    let mut at = 0usize;
    let mut ended = false;
    while let Some(argument) = arguments.get(at) {
        let here = at;
        at = at.saturating_add(1);
        let Some(text) = argument.known_text().or_else(|| dashed_prefix(argument)) else {
            if !ended && argument.may_be_option {
                call.may_have_options = true;
            }
            call.splits |= argument.splits;
            operand(&mut call, argument, here);
            ended |= stops;
            continue;
        };
        // Of `--"$x"` nobody knows how it goes on: that is an option, and no end of them.
        if !ended && argument.known_text() == Some("--") {
            ended = !spec.is_endless;
            continue;
        }
        let is_listed = || text.len() > 1 && spec.options.contains_key(text);
        if ended || !is_option(text) && !is_listed() {
            if spec.dashless && here == 0 && !ended {
                bundle(spec, Letters { text, is_dashless: true }, arguments, here, &mut at, &mut call);
                continue;
            }
            operand(&mut call, argument, here);
            ended |= stops;
            continue;
        }
        // Of `-e"$x"` the rest is its argument, as in a bundle.
        let is_word = argument.known_text().is_some() && spec.options.contains_key(text);
        if text.starts_with("--") || spec.single_dash || is_word {
            long(spec, argument, text, arguments, here, &mut at, &mut call);
        } else {
            let letters = Letters { text: text.get(1..).unwrap_or(""), is_dashless: false };
            bundle(spec, letters, arguments, here, &mut at, &mut call);
        }
        call.is_inexact |= argument.known_text().is_none() && !(text.starts_with("--") && text.contains('='));
        if argument.known_text().is_none() && argument.may_be_option {
            // `-n"$x"`: an option whose argument is not known is one; anything else could be a bundle.
            let known = call.effects.iter().any(|(_, index)| *index == here);
            call.may_have_options |= !known && !takes_rest(spec, text) || argument.splits && argument.may_be_option;
            call.splits |= argument.splits;
        }
    }
    call.is_lowered = (call.lowers || call.in_mode && !call.is_raised) && !call.is_taken_back;
    call
}

/// An option that is not in the list: harmless only where any is, and there it may still be one that undoes another.
fn unlisted(spec: &Spec, here: usize, call: &mut Call<'_>) {
    call.is_taken_back = true;
    call.has_unlisted = true;
    if !spec.is_open {
        call.effects.push((Effect::Unknown, here));
    }
}

/// The texts of arguments, as far as they are known.
pub(super) fn texts(arguments: &[Argument]) -> impl Iterator<Item = &str> {
    arguments.iter().map(|argument| argument.known_text().unwrap_or(argument.prefix()))
}

/// Whether a word begins as an option does.
pub(super) fn is_option(text: &str) -> bool {
    text.len() > 1 && text.starts_with('-')
}

/// Whether a word is among the arguments that a column of the table means. There, `-x` is an option of one letter, alone
/// or in a bundle; `first=` is the first word, `verb=` the first that is no option; `*` stands for any text, and alone for
/// every call.
pub(super) fn has_any(arguments: &[Argument], column: &str) -> bool {
    let means = |pattern: &str| match pattern.split_once('=') {
        _ if pattern == "*" => true,
        Some(("first", pattern)) => texts(arguments).next().is_some_and(|text| is_like(pattern, text)),
        Some(("verb", pattern)) => {
            texts(arguments).find(|text| !is_option(text)).is_some_and(|text| is_like(pattern, text))
        }
        _ => texts(arguments).any(|text| match pattern.strip_prefix('-') {
            Some(letter) if letter.len() == 1 => is_option(text) && !text.starts_with("--") && text.contains(letter),
            Some(_) | None => is_like(pattern, text),
        }),
    };
    column.split_ascii_whitespace().any(means)
}

/// Whether a text is as a pattern says, in which `*` stands for any text.
pub(super) fn is_like(pattern: &str, text: &str) -> bool {
    let Some((before, after)) = pattern.split_once('*') else { return pattern == text };
    let Some(mut rest) = text.strip_prefix(before) else { return false };
    let (middle, last) = after.rsplit_once('*').unwrap_or(("", after));
    for piece in middle.split('*') {
        let Some((_, behind)) = rest.split_once(piece) else { return false };
        rest = behind;
    }
    rest.ends_with(last)
}

/// Whether the beginning of an argument is an option that takes the rest for its own.
fn takes_rest(spec: &Spec, prefix: &str) -> bool {
    if prefix.split_once('=').is_some_and(|(name, _)| spec.is_open || spec.options.contains_key(name)) {
        return true;
    }
    let first = prefix.get(..2).unwrap_or("");
    spec.options.get(first).is_some_and(|option| option.takes != Takes::Nothing)
}

/// The known beginning of an argument, if it is that of an option.
fn dashed_prefix(argument: &Argument) -> Option<&str> {
    (argument.prefix().len() > 1 && argument.prefix().starts_with('-')).then_some(argument.prefix())
}

fn operand<'a>(call: &mut Call<'a>, argument: &'a Argument, at: usize) {
    if call.first_operand.is_none() {
        call.first_operand = Some(at);
    }
    call.operands.push(argument);
}

/// An option of this name.
fn listed<'a>(spec: &'a Spec, name: &str) -> Option<Listed<'a>> {
    spec.options.get_key_value(name).map(|(name, option)| (name.as_str(), *option))
}

/// An option written out: `--name`, `--name=value`, or `-name` where a command writes them so.
fn long<'a>(
    spec: &'a Spec,
    argument: &Argument,
    text: &str,
    arguments: &[Argument],
    here: usize,
    at: &mut usize,
    call: &mut Call<'a>,
) {
    let (name, attached) = match text.split_once('=') {
        Some((name, value)) => (name, Some(value)),
        None => (text, None),
    };
    let exact = listed(spec, name);
    // Such programs take `--name` for `-name`, and a letter with its argument attached.
    if exact.is_none() && spec.single_dash {
        let other = name.strip_prefix("--").and_then(|name| listed(spec, &format!("-{name}")));
        let letter = text.get(..2).and_then(|letter| listed(spec, letter));
        match (other, letter) {
            (Some(option), _) if option.1.takes == Takes::Argument && attached.is_none() => {
                let next = next_value(arguments, at, call);
                apply(spec, option, next, here..*at, call);
            }
            (Some(option), _) => {
                let value = attached.map(|value| Argument::known(value, argument.span.clone()));
                apply(spec, option, value, here..*at, call);
            }
            (None, Some(option)) if option.1.takes != Takes::Nothing => {
                let value = text.get(2..).unwrap_or("");
                apply(spec, option, Some(Argument::known(value, argument.span.clone())), here..*at, call);
            }
            (None, _) => unlisted(spec, here, call),
        }
        return;
    }
    if exact.is_none()
        && spec.negates
        && attached.is_none()
        && let Some((name, negated)) = negated(spec, name)
    {
        call.is_taken_back |= is_lowering(negated.does);
        call.negated.push(name);
        return;
    }
    // Programs take an abbreviation for the option it begins; of several, the worst.
    let abbreviated = || {
        let begun = spec.options.range(name.to_owned()..).take_while(|(option, _)| option.starts_with(name));
        let worst = begun.max_by_key(|(_, option)| (option.does.worst(), !is_lowering(option.does)));
        worst.map(|(name, option)| (name.as_str(), *option))
    };
    let found = exact.or_else(|| (name.len() > 2 && name.starts_with("--")).then(abbreviated).flatten());
    let Some(found) = found else { return unlisted(spec, here, call) };
    let (_, option) = found;
    call.is_inexact |= exact.is_none();
    // `--dry-run=false`: some programs read that.
    if attached.is_some() && option.takes == Takes::Nothing && is_lowering(option.does) {
        return unlisted(spec, here, call);
    }
    let value = match (option.takes, attached) {
        // How `--out"$x"` goes on is not known; the next word is not its argument.
        (Takes::Argument, None) if argument.known_text().is_none() => Some(Argument::unknown(argument.span.clone())),
        (Takes::Argument, None) => next_value(arguments, at, call),
        (_, Some(value)) => match argument.known_text() {
            Some(_) => Some(Argument::known(value, argument.span.clone())),
            None => Some(Argument::after(value, argument.span.clone())),
        },
        (Takes::Nothing | Takes::MaybeAttached, None) => None,
    };
    apply(spec, found, value, here..*at, call);
}

/// The option that `--no-NAME` takes back, where a program has one for every option.
fn negated<'a>(spec: &'a Spec, name: &str) -> Option<Listed<'a>> {
    let name = name.strip_prefix("--no-")?;
    listed(spec, &format!("--{name}"))
}

/// Options of one letter in one word.
#[derive(Clone, Copy)]
struct Letters<'t> {
    text: &'t str,
    /// The arguments of all of them follow as words.
    is_dashless: bool,
}

/// Reads options of one letter, one after the other.
fn bundle<'a>(
    spec: &'a Spec,
    Letters { text: letters, is_dashless }: Letters<'_>,
    arguments: &[Argument],
    here: usize,
    at: &mut usize,
    call: &mut Call<'a>,
) {
    let mut rest = letters.chars();
    while let Some(letter) = rest.next() {
        let number = || listed(spec, "-NUM").filter(|_| letter.is_ascii_digit());
        let Some(found) = listed(spec, &format!("-{letter}")).or_else(number) else {
            unlisted(spec, here, call);
            if !spec.is_open {
                return;
            }
            continue;
        };
        let (_, option) = found;
        if option.is_alone && !stands_alone(option, letters, rest.as_str()) {
            return unlisted(spec, here, call);
        }
        let attached = rest.as_str();
        let is_whole = arguments.get(here).is_some_and(|argument| argument.text.is_some());
        let value = || {
            let span = arguments.get(here).map(|argument| argument.span.clone()).unwrap_or_default();
            if is_whole { Argument::known(attached, span) } else { Argument::unknown(span) }
        };
        match option.takes {
            Takes::Nothing => apply(spec, found, None, here..*at, call),
            Takes::MaybeAttached if is_dashless => apply(spec, found, None, here..*at, call),
            Takes::Argument if is_dashless => {
                let next = next_value(arguments, at, call);
                apply(spec, found, next, here..*at, call);
            }
            Takes::MaybeAttached => {
                let value = (!attached.is_empty() || !is_whole).then(value);
                return apply(spec, found, value, here..*at, call);
            }
            Takes::Argument if attached.is_empty() && is_whole => {
                let next = next_value(arguments, at, call);
                return apply(spec, found, next, here..*at, call);
            }
            Takes::Argument => return apply(spec, found, Some(value()), here..*at, call),
        }
    }
}

/// Whether an option that a program knows as a word of its own is one here: with nothing around it but its argument, or
/// the rest of a number. What such a program makes of anything else, and of the next word, is not known.
fn stands_alone(option: Opt, letters: &str, rest: &str) -> bool {
    if letters.bytes().all(|byte| byte.is_ascii_digit()) {
        return true;
    }
    let is_first = rest.len().saturating_add(1) == letters.len();
    is_first && (rest.is_empty() || option.takes != Takes::Nothing)
}

/// The argument of an option, as the next word. One that can become several words brings options along.
fn next_value(arguments: &[Argument], at: &mut usize, call: &mut Call<'_>) -> Option<Argument> {
    let next = arguments.get(*at).cloned();
    *at = at.saturating_add(1);
    let splits = next.as_ref().is_some_and(|next| next.splits);
    call.may_have_options |= next.as_ref().is_some_and(|next| next.splits && next.may_be_option);
    call.splits |= splits;
    next
}

fn apply<'a>(
    spec: &Spec,
    (name, option): Listed<'a>,
    value: Option<Argument>,
    range: Range<usize>,
    call: &mut Call<'a>,
) {
    match option.does {
        Does::Effect(Effect::ReadOnly) => {}
        Does::Effect(label) => call.effects.push((label, range.start)),
        Does::Asks => call.effects.push((Effect::Unknown, range.start)),
        Does::WritesArgument => match &value {
            Some(value) => call.outputs.push(value.clone()),
            None => call.effects.push((Effect::Write, range.start)),
        },
        // Programs that work through their arguments did the ones before already.
        Does::Lowers | Does::Mode if spec.is_leading && call.first_operand.is_some() => {}
        Does::Lowers => call.lowers = true,
        Does::Mode => call.in_mode = true,
        Does::Raises => call.is_raised = true,
    }
    call.given.push(Given { name, value, at: range.start, next: range.end });
}

fn is_lowering(does: Does) -> bool {
    matches!(does, Does::Lowers | Does::Mode)
}
