//! From words to arguments: braces expanded, quotes removed, and what can be known of the rest.

use core::ops::Range;
use std::borrow::Cow;

use super::braces;
use super::syntax::{Command, CommandKind, Part, Script, Word};
use super::values::Values;

/// The most texts that are tried for one argument.
const TEXTS_MAX: usize = 16;
/// The most bytes of one text that values take part in.
const TEXT_BYTES_MAX: usize = 16_384;
/// The most arguments of one command, after braces and values made more of them.
const ARGUMENTS_MAX: usize = 65_536;
/// The most bytes of all texts that the arguments of one command can be.
const ARGUMENTS_BYTES_MAX: usize = 1_048_576;

/// An argument as the command will see it.
#[derive(Debug, Clone, Default)]
pub(super) struct Argument {
    /// The text, if there is only one it can be.
    pub(super) text: Option<String>,
    /// What is known of a text that is not written out.
    pub(super) partly: Option<Box<Partly>>,
    /// It is not known, and could be an option.
    pub(super) may_be_option: bool,
    /// It can become several words.
    pub(super) splits: bool,
    /// It is not known, and the line assigns what it depends on.
    pub(super) is_assigned: bool,
    /// It is `name=( … )`, read as an array already.
    pub(super) is_compound: bool,
    /// It is a pattern for names of files.
    pub(super) has_glob: bool,
    pub(super) span: Range<usize>,
}

/// What is known of an argument that is not written out.
#[derive(Debug, Clone, Default)]
pub(super) struct Partly {
    /// Every text it can be; empty if nobody knows.
    pub(super) texts: Vec<String>,
    /// What stands before the first part that is not known.
    pub(super) prefix: String,
    /// The text with a word in the place of every part that is not known.
    pub(super) skeleton: String,
    /// The patterns of which it is a name, and names beside them; empty if it can be something else.
    pub(super) names: Vec<String>,
}

impl Argument {
    /// A known argument.
    pub(super) fn known(text: impl Into<String>, span: Range<usize>) -> Argument {
        Argument { text: Some(text.into()), span, ..Argument::default() }
    }

    /// An argument that can be anything, after a text that is known.
    pub(super) fn after(prefix: impl Into<String>, span: Range<usize>) -> Argument {
        let prefix = prefix.into();
        let partly = Partly { skeleton: prefix.clone(), prefix, ..Partly::default() };
        Argument { partly: Some(Box::new(partly)), ..Argument::unknown(span) }
    }

    /// Every text it can be; empty if nobody knows.
    pub(super) fn texts(&self) -> &[String] {
        match (&self.partly, &self.text) {
            (Some(partly), _) => &partly.texts,
            (None, Some(text)) => core::slice::from_ref(text),
            (None, None) => &[],
        }
    }

    /// What stands before the first part that is not known.
    pub(super) fn prefix(&self) -> &str {
        self.partly.as_ref().map_or_else(|| self.text.as_deref().unwrap_or(""), |partly| &partly.prefix)
    }

    /// The text with a word in the place of every part that is not known.
    pub(super) fn skeleton(&self) -> &str {
        self.partly.as_ref().map_or_else(|| self.text.as_deref().unwrap_or(""), |partly| &partly.skeleton)
    }

    /// An argument that can be anything.
    pub(super) fn unknown(span: Range<usize>) -> Argument {
        Argument { may_be_option: true, splits: true, span, ..Argument::default() }
    }

    /// Whether it is not known and can become one of these words, as far as a pattern tells.
    pub(super) fn may_become(&self, words: &[&str]) -> bool {
        if self.text.is_some() || !self.may_be_option {
            return false;
        }
        let pattern = self.prefix();
        if !self.has_glob || pattern != self.skeleton() {
            return true;
        }
        let is_sign = |letter: char| matches!(letter, '*' | '?' | '[' | ']');
        let tail = pattern.rsplit(is_sign).next().unwrap_or("");
        words.iter().any(|word| word.ends_with(tail))
    }

    /// The text, if it is known.
    pub(super) fn known_text(&self) -> Option<&str> {
        self.text.as_deref()
    }
}

/// The arguments that words become; `None` if they are too many or too long.
pub(super) fn arguments(words: &[Word], values: &Values) -> Option<Vec<Argument>> {
    let mut arguments = Vec::new();
    let mut bytes = 0usize;
    for word in words {
        let from = arguments.len();
        if let Some(pieces) = split(word, values) {
            arguments.extend(pieces.into_iter().map(|text| Argument::known(text, word.span.clone())));
        } else {
            arguments.extend(braces::expand(word)?.iter().map(|word| argument(word, values)));
        }
        let texts = arguments.iter().skip(from).flat_map(|argument: &Argument| argument.texts());
        bytes = texts.fold(bytes, |sum, text| sum.saturating_add(text.len()));
        if arguments.len() > ARGUMENTS_MAX || bytes > ARGUMENTS_BYTES_MAX {
            return None;
        }
    }
    Some(arguments)
}

/// The words that `$x` becomes without quotes, if there is one text it can be and blanks separate them.
fn split(word: &Word, values: &Values) -> Option<Vec<String>> {
    let [Part::Parameter(parameter)] = word.parts.as_slice() else { return None };
    let value = values.get(&parameter.name).filter(|value| value.is_known())?;
    let [text] = value.texts.as_slice() else { return None };
    let plain = parameter.plain && !parameter.quoted && !parameter.indirect && !values.is_array(&parameter.name);
    let blanks = text.contains([' ', '\t', '\n']) && !text.contains(['*', '?', '[']) && values.get("IFS").is_none();
    (plain && blanks).then(|| text.split_ascii_whitespace().map(str::to_owned).collect())
}

/// Whether `$x` becomes several words without quotes, all of them known; and options, if only those count.
pub(super) fn falls_apart(word: &Word, values: &Values, only_options: bool) -> bool {
    split(word, values).is_some_and(|words| !only_options || words.first().is_some_and(|word| word.starts_with('-')))
}

/// The argument that one word becomes, its braces left alone.
pub(super) fn argument(word: &Word, values: &Values) -> Argument {
    let has_glob = has_glob(word);
    if let Some(text) = word.text()
        && !has_glob
    {
        return Argument { is_compound: word.is_compound, ..Argument::known(text, word.span.clone()) };
    }
    let texts = if has_glob { Vec::new() } else { texts(word, values) };
    let text = match texts.as_slice() {
        [only] => Some(only.clone()),
        _ => None,
    };
    let later = |part: &Part| match part {
        Part::Parameter(parameter) => values.splits(parameter) && values.may_be_option(parameter),
        Part::Command { quoted, script } => !quoted && !prints_a_path(script) && !prints_a_number(script),
        Part::Text { .. } | Part::Arithmetic(_) | Part::Process(_) => false,
    };
    let may_be_option = text.is_none() && (may_be_option(word, values) || word.parts.iter().any(later));
    let skeleton = skeleton(word);
    let splits = text.is_none()
        && word.parts.iter().any(|part| match part {
            Part::Parameter(parameter) => values.splits(parameter),
            Part::Command { quoted, script } => !quoted && !prints_a_path(script) && !prints_a_number(script),
            Part::Text { .. } | Part::Arithmetic(_) | Part::Process(_) => false,
        });
    let is_assigned = word.parts.iter().any(|part| match part {
        Part::Parameter(parameter) => values.get(&parameter.name).is_some(),
        Part::Command { .. } => true,
        Part::Text { .. } | Part::Arithmetic(_) | Part::Process(_) => false,
    });
    let span = word.span.clone();
    let is_compound = word.is_compound;
    let names = names_of_files(word, values);
    let partly = Some(Box::new(Partly { texts, prefix: prefix(word, values), skeleton, names }));
    Argument { text, partly, may_be_option, splits, is_assigned, is_compound, has_glob, span }
}

/// Whether a word has a pattern in it.
pub(super) fn has_glob(word: &Word) -> bool {
    word.parts.iter().any(|part| match part {
        Part::Text { text, quoted: false } => text.contains(['*', '?']) || text.contains('[') && text != "[",
        Part::Text { quoted: true, .. }
        | Part::Parameter(_)
        | Part::Command { .. }
        | Part::Arithmetic(_)
        | Part::Process(_) => false,
    })
}

/// Whether a pattern can become the name of a file that begins with a dash: `*`, `?x`, `[!a]*`, and not `[a-z]*`.
pub(super) fn may_become_option(pattern: &str) -> bool {
    match pattern.as_bytes().first() {
        Some(b'*' | b'?') => true,
        Some(b'[') => {
            let class = pattern.get(1..).and_then(|rest| rest.split_once(']')).map(|(class, _)| class.as_bytes());
            let Some(class) = class else { return true };
            // Letters and digits, alone or from one to another.
            let plain = |at: usize| class.get(at).is_some_and(u8::is_ascii_alphanumeric);
            let between = |at: usize| at.checked_sub(1).is_some_and(plain) && plain(at.saturating_add(1));
            class.is_empty() || !(0..class.len()).all(|at| plain(at) || class.get(at) == Some(&b'-') && between(at))
        }
        _ => false,
    }
}

fn prefix(word: &Word, values: &Values) -> String {
    let mut prefix = String::new();
    for part in &word.parts {
        match part {
            Part::Text { text, .. } => prefix.push_str(text),
            // The home directory, as far as a path is concerned.
            Part::Parameter(parameter)
                if parameter.plain && parameter.name == "HOME" && prefix.is_empty() && values.get("HOME").is_none() =>
            {
                prefix.push('~');
            }
            Part::Parameter(_) | Part::Command { .. } | Part::Arithmetic(_) | Part::Process(_) => break,
        }
    }
    prefix
}

/// The patterns of which a variable alone holds a name.
fn names_of_files(word: &Word, values: &Values) -> Vec<String> {
    // Quotes leave empty texts behind.
    let is_empty = |part: &&Part| matches!(part, Part::Text { text, .. } if text.is_empty());
    let mut parts = word.parts.iter().filter(|part| !is_empty(part));
    let (Some(Part::Parameter(parameter)), None) = (parts.next(), parts.next()) else { return Vec::new() };
    let value = values.get(&parameter.name).filter(|_| parameter.plain && !parameter.indirect);
    let Some(value) = value.filter(|value| value.files && !value.any && !value.numbers && !value.is_inherited) else {
        return Vec::new();
    };
    value.patterns.iter().flat_map(|patterns| patterns.iter().chain(&value.texts)).cloned().collect()
}

/// The text with a word in the place of every part that is not known.
fn skeleton(word: &Word) -> String {
    let mut skeleton = String::new();
    for part in &word.parts {
        match part {
            Part::Text { text, .. } => skeleton.push_str(text),
            Part::Parameter(_) | Part::Command { .. } | Part::Arithmetic(_) | Part::Process(_) => skeleton.push('x'),
        }
    }
    skeleton
}

/// Every text the word can be; empty if there is a part nobody knows.
fn texts(word: &Word, values: &Values) -> Vec<String> {
    let mut texts = vec![String::new()];
    for part in &word.parts {
        match part {
            Part::Text { text, .. } => texts.iter_mut().for_each(|whole| whole.push_str(text)),
            Part::Parameter(parameter) if parameter.plain && !parameter.indirect => {
                let known = values.get(&parameter.name).filter(|value| value.is_known());
                let Some(known) = known else { return Vec::new() };
                let splits = |text: &String| text.contains([' ', '\t', '\n', '*', '?', '[']) || text.is_empty();
                if !parameter.quoted && known.texts.iter().any(splits) {
                    return Vec::new();
                }
                if texts.len().saturating_mul(known.texts.len()) > TEXTS_MAX {
                    return Vec::new();
                }
                let mut next = Vec::new();
                for whole in &texts {
                    for text in &known.texts {
                        next.push(format!("{whole}{text}"));
                    }
                }
                if next.iter().any(|text| text.len() > TEXT_BYTES_MAX) {
                    return Vec::new();
                }
                texts = next;
            }
            Part::Process(_) => texts.iter_mut().for_each(|whole| whole.push_str("/dev/fd/63")),
            Part::Parameter(_) | Part::Command { .. } | Part::Arithmetic(_) => return Vec::new(),
        }
    }
    texts.sort();
    texts.dedup();
    texts
}

/// Whether a word that is not known could become an option.
fn may_be_option(word: &Word, values: &Values) -> bool {
    for part in &word.parts {
        match part {
            Part::Text { text, quoted: _ } if text.is_empty() => {}
            // The names of files that a pattern becomes are options if they begin with a dash.
            Part::Text { text, quoted } => return text.starts_with('-') || !quoted && may_become_option(text),
            Part::Parameter(parameter) => {
                if values.may_be_option(parameter) {
                    return true;
                }
                // Empty or not, what follows is then no longer the beginning; if it can be empty, look on.
                let empty = values.get(&parameter.name).is_some_and(|value| value.texts.iter().any(String::is_empty));
                if !empty {
                    return false;
                }
            }
            Part::Command { script, .. } => return !prints_a_path(script) && !prints_a_number(script),
            Part::Arithmetic(_) | Part::Process(_) => return false,
        }
    }
    false
}

/// The commands of a script that is one pipeline.
fn pipeline(script: &Script) -> Option<&[Command]> {
    let [list] = script.lists.as_slice() else { return None };
    let [pipeline] = list.pipelines.as_slice() else { return None };
    Some(&pipeline.commands)
}

/// The words of a simple command. What is not known is no word that is looked for below.
fn words_of(command: &Command) -> Option<Vec<Cow<'_, str>>> {
    match &command.kind {
        CommandKind::Simple { words, .. } => Some(
            words
                .iter()
                .map(|word| match word.bare() {
                    Some(text) => Cow::Borrowed(text),
                    None => word.text().map_or(Cow::Borrowed("\u{0}"), Cow::Owned),
                })
                .collect(),
        ),
        CommandKind::Group(_)
        | CommandKind::Subshell(_)
        | CommandKind::Branches { .. }
        | CommandKind::Function { .. }
        | CommandKind::Arithmetic(_)
        | CommandKind::Condition(_)
        | CommandKind::Coprocess { .. } => None,
    }
}

/// `$(pwd)`, `$(git merge-base …)`: what it prints begins with a slash, a letter or a digit, and is one word.
fn prints_a_path(script: &Script) -> bool {
    let Some([command]) = pipeline(script) else { return false };
    let Some(words) = words_of(command) else { return false };
    let texts: Vec<&str> = words.iter().map(AsRef::as_ref).collect();
    match texts.as_slice() {
        ["pwd" | "nproc" | "whoami" | "uname" | "arch" | "date" | "realpath" | "hostname", rest @ ..] => {
            rest.iter().all(|text| !text.starts_with("+-") && !text.contains('\u{0}'))
        }
        ["git", "merge-base", ..] => true,
        ["git", "rev-parse", rest @ ..] => rest.iter().all(|text| {
            let known = ["--show-toplevel", "--abbrev-ref", "--short", "--verify", "--git-dir"];
            !text.contains('\u{0}') && (!text.starts_with('-') || known.contains(text))
        }),
        _ => false,
    }
}

/// `$(wc -l < f)`, `$(seq 1 5)`: what it prints are whole numbers.
pub(super) fn prints_a_number(script: &Script) -> bool {
    let Some(mut commands) = pipeline(script) else { return false };
    // Tidying up after a number leaves a number.
    while let Some((last, before)) = commands.split_last()
        && !before.is_empty()
        && tidies(last)
    {
        commands = before;
    }
    let Some(words) = commands.last().and_then(words_of) else { return false };
    let texts: Vec<&str> = words.iter().map(AsRef::as_ref).collect();
    let numeric = |text: &&str| text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'-');
    match texts.as_slice() {
        ["wc", "-l" | "-c" | "-w" | "-m"] | ["nproc"] | ["id", "-u" | "-g"] => true,
        ["date", format] => format.strip_prefix('+').is_some_and(|format| {
            format.len() > 1
                && format.split('%').skip(1).all(|part| "sYmdHMSjNuyVwGCe".contains(part) && part.len() == 1)
        }),
        ["seq", rest @ ..] => !rest.is_empty() && rest.iter().all(|text| numeric(text) || *text == "\u{0}"),
        ["grep", rest @ ..] => {
            let counts = rest.iter().any(|text| text.starts_with('-') && !text.starts_with("--") && text.contains('c'));
            // With several files each count has a name in front.
            let operands = rest.iter().filter(|text| !text.starts_with('-')).count();
            let many = rest.iter().any(|text| text.starts_with('-') && text.contains(['r', 'R', 'H', 'e', 'f']));
            counts && operands <= 2 && !many
        }
        ["git", "rev-list", rest @ ..] => rest.contains(&"--count"),
        ["stat", "-c" | "--format", "%s" | "%Y" | "%u" | "%g" | "%a", _] => true,
        _ => false,
    }
}

/// `tr -d ' '`, `xargs`: nothing but blanks goes.
fn tidies(command: &Command) -> bool {
    let words = words_of(command).unwrap_or_default();
    let texts: Vec<&str> = words.iter().map(AsRef::as_ref).collect();
    matches!(texts.as_slice(), ["tr", "-d", " " | "[:space:]" | "[:blank:]"] | ["xargs"])
}
