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
}

/// A listed option that was given.
#[derive(Debug)]
pub(super) struct Given<'a> {
    /// As it is listed; of an abbreviation, the worst that it begins.
    pub(super) name: &'a str,
    /// Its argument: attached, or the next word. Nothing if it has none, or if that is missing.
    pub(super) value: Option<Argument>,
    /// What follows it and its argument.
    pub(super) next: usize,
}

impl<'a> Call<'a> {
    /// How often one of some options is given, with its arguments.
    pub(super) fn each<'c>(&'c self, names: &'c [&str]) -> impl Iterator<Item = &'c Given<'a>> {
        self.given.iter().filter(|given| names.contains(&given.name))
    }
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

/// Whether one of some options is given, as the command's own grammar reads them.
pub(super) fn has(spec: Option<&Spec>, arguments: &[Argument], options: &str) -> bool {
    !options.is_empty() && !values(spec, arguments, options).is_empty()
}

/// The arguments of some options, wherever they are given: attached or the next word, in a bundle, abbreviated. `None`
/// for one that is not known, or missing. Of an option without an argument, how often it is given.
pub(super) fn values(spec: Option<&Spec>, arguments: &[Argument], options: &str) -> Vec<Option<String>> {
    let wanted = || options.split_ascii_whitespace();
    let is_letter = |letter: char| wanted().any(|option| option.len() == 2 && option.ends_with(letter));
    let mut found = Vec::new();
    let mut at = 0usize;
    while let Some(argument) = arguments.get(at) {
        at = at.saturating_add(1);
        let is_whole = argument.known_text().is_some();
        let text = argument.known_text().unwrap_or(argument.prefix());
        let next = || arguments.get(at).and_then(Argument::known_text).map(str::to_owned);
        if is_whole && text == "--" {
            break;
        }
        if let Some(option) = text.strip_prefix("--") {
            let (name, value) = option.split_once('=').map_or((option, None), |(name, value)| (name, Some(value)));
            let is_listed = || spec.is_some_and(|spec| spec.options.contains_key(&format!("--{name}")));
            let mut long = wanted().filter_map(|option| option.strip_prefix("--"));
            let is_it =
                long.clone().any(|long| long == name) || long.any(|long| long.starts_with(name)) && !is_listed();
            if is_it {
                found.push(match value {
                    Some(value) => is_whole.then(|| value.to_owned()),
                    None if is_whole => next(),
                    None => None,
                });
            }
            // The argument of another option is none.
            let takes = spec.and_then(|spec| spec.options.get(text)).map(|option| option.takes);
            at = at.saturating_add(usize::from(!is_it && takes == Some(Takes::Argument)));
            continue;
        }
        let Some(bundle) = text.strip_prefix('-') else { continue };
        let mut letters = bundle.chars();
        while let Some(one) = letters.next() {
            let attached = letters.as_str();
            if is_letter(one) {
                found.push(match attached {
                    "" if is_whole => next(),
                    attached => is_whole.then(|| attached.to_owned()),
                });
                // Of an option without an argument the rest are more options; that none is missed, they are looked at.
            }
            let option = spec.and_then(|spec| spec.options.get(&format!("-{one}")));
            if option.is_some_and(|option| option.takes != Takes::Nothing) {
                let is_apart = attached.is_empty() && option.is_some_and(|option| option.takes == Takes::Argument);
                at = at.saturating_add(usize::from(is_apart));
                break;
            }
        }
    }
    found
}

/// An option that was given, with its argument.
pub(super) type Leading = (String, Option<Argument>);

/// The options before the operands of a call, and where those begin; nothing if there is an option that is not listed, or
/// may be.
pub(super) fn leading(spec: &Spec, arguments: &[Argument]) -> Option<(usize, Vec<Leading>)> {
    let mut found = Vec::new();
    let mut at = 0usize;
    while let Some(argument) = arguments.get(at) {
        let text = match argument.known_text() {
            Some(text) => text,
            None if argument.splits => return None,
            None if argument.prefix().starts_with("--") && argument.prefix().contains('=') => argument.prefix(),
            None if argument.may_be_option => return None,
            None => break,
        };
        if text == "--" {
            at = at.saturating_add(1);
            break;
        }
        if !is_option(text) {
            break;
        }
        at = at.saturating_add(1);
        let next = || {
            let next = arguments.get(at).cloned();
            at = at.saturating_add(1);
            next
        };
        if text.starts_with("--") {
            let (name, attached) = text.split_once('=').map_or((text, None), |(name, value)| (name, Some(value)));
            let attached = attached.map(|value| match argument.known_text() {
                Some(_) => Argument::known(value, argument.span.clone()),
                None => Argument::unknown(argument.span.clone()),
            });
            let value = match spec.options.get(name)?.takes {
                Takes::Argument => attached.or_else(next),
                Takes::Nothing | Takes::MaybeAttached => attached,
            };
            found.push((name.to_owned(), value));
            continue;
        }
        let mut letters = text.get(1..).unwrap_or("").chars();
        while let Some(letter) = letters.next() {
            let option = format!("-{letter}");
            if spec.options.get(&option)?.takes == Takes::Argument {
                let attached = Some(letters.as_str()).filter(|attached| !attached.is_empty());
                let value = attached.map(|attached| Argument::known(attached, argument.span.clone()));
                found.push((option, value.or_else(next)));
                break;
            }
            found.push((option, None));
        }
    }
    // A value that becomes several words is the command.
    let splits = |(_, value): &Leading| value.as_ref().is_some_and(|value| value.splits);
    (!found.iter().any(splits)).then_some((at, found))
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
        && let Some(negated) = negated(spec, name)
    {
        call.is_taken_back |= matches!(negated.does, Does::Lowers | Does::Mode);
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
fn negated(spec: &Spec, name: &str) -> Option<Opt> {
    let name = name.strip_prefix("--no-")?;
    spec.options.get(&format!("--{name}")).copied()
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
    call.given.push(Given { name, value, next: range.end });
}

fn is_lowering(does: Does) -> bool {
    matches!(does, Does::Lowers | Does::Mode)
}
