//! Patterns: literal text with `*`. In a path `*` stays within a name and `**` does not.

use core::fmt;

/// What `*` may not cross.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Separator {
    /// Nothing; `**` means the same as `*`.
    None,
    /// The slash of a path. Case does not count.
    Slash,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Part {
    Literal(char),
    /// One character, whichever.
    One,
    /// Anything but the separator.
    Within,
    /// Anything.
    Across,
}

/// The longest pattern.
const PATTERN_CHARS_MAX: usize = 512;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Pattern {
    parts: Vec<Part>,
    separator: Separator,
    /// The longest literal text that is in everything it matches.
    needle: String,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum PatternError {
    Empty,
    TooLong,
}

impl fmt::Display for PatternError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PatternError::Empty => f.write_str("an empty pattern can never match"),
            PatternError::TooLong => write!(f, "a pattern has at most {PATTERN_CHARS_MAX} characters"),
        }
    }
}

impl core::error::Error for PatternError {}

impl Pattern {
    pub(crate) fn parse(text: &str, separator: Separator) -> Result<Pattern, PatternError> {
        if text.is_empty() {
            return Err(PatternError::Empty);
        }
        if text.chars().count() > PATTERN_CHARS_MAX {
            return Err(PatternError::TooLong);
        }
        let folded = match separator {
            Separator::None => text.to_owned(),
            Separator::Slash => fold_case(text),
        };
        let mut parts = Vec::new();
        for character in folded.chars() {
            match (character, parts.last()) {
                ('*', Some(Part::Within | Part::Across)) => {
                    parts.pop();
                    parts.push(Part::Across);
                }
                ('*', _) if separator == Separator::None => parts.push(Part::Across),
                ('*', _) => parts.push(Part::Within),
                (literal, _) => parts.push(Part::Literal(literal)),
            }
        }
        if separator == Separator::Slash && !matches!(parts.as_slice(), [Part::Literal('/') | Part::Across, ..]) {
            // A name without a place is meant wherever it is.
            parts.splice(0..0, [Part::Across, Part::Literal('/')]);
        }
        let needle = longest_literal(about_itself(&parts, separator).unwrap_or(&parts));
        Ok(Pattern { parts, separator, needle })
    }

    /// A pattern as shells write it: `*` for any text, `?` for one character, `[…]` for any one: too much, never too
    /// little.
    fn of_shell(text: &str) -> Pattern {
        let mut parts = Vec::new();
        let mut left = text.chars();
        while let Some(sign) = left.next() {
            // A `]` that comes first is one of the characters.
            let rest = left.as_str();
            let after_set = || {
                let end = rest.char_indices().skip(1).find(|(_, character)| *character == ']').map(|(at, _)| at)?;
                rest.get(end.saturating_add(1)..)
            };
            match (sign, after_set()) {
                ('*', _) => parts.push(Part::Across),
                ('?', _) => parts.push(Part::One),
                ('[', Some(after)) => {
                    parts.push(Part::One);
                    left = after.chars();
                }
                (literal, _) => parts.push(Part::Literal(literal)),
            }
        }
        let needle = longest_literal(&parts);
        Pattern { parts, separator: Separator::None, needle }
    }

    /// Whether the whole text matches, in time proportional to both lengths. Paths begin with a slash; `X/**` is also
    /// about `X` itself.
    pub(crate) fn matches(&self, text: &str) -> bool {
        // Most texts do not, and this tells soonest.
        if !text.contains(&self.needle) {
            return false;
        }
        about_itself(&self.parts, self.separator).is_some_and(|parts| matches(parts, text))
            || matches(&self.parts, text)
    }

    /// The literal text every match begins with.
    pub(crate) fn prefix(&self) -> String {
        self.parts.iter().map_while(Part::literal).collect()
    }

    /// The literal text every match ends with.
    pub(crate) fn suffix(&self) -> String {
        let mut reversed: Vec<char> = self.parts.iter().rev().map_while(Part::literal).collect();
        reversed.reverse();
        reversed.into_iter().collect()
    }

    /// A whole name that every path it matches has in it.
    pub(crate) fn whole_name(&self) -> Option<String> {
        let names = self.parts.split(|part| part.literal() == Some('/'));
        let whole = names.filter_map(|name| name.iter().map(Part::literal).collect::<Option<String>>());
        whole.filter(|name| !name.is_empty()).max_by_key(String::len)
    }

    pub(crate) fn is_literal(&self) -> bool {
        self.parts.iter().all(|part| part.literal().is_some())
    }

    /// Whether it is about one place on the disk.
    pub(crate) fn is_anchored(&self) -> bool {
        matches!(self.parts.first(), Some(Part::Literal('/')))
    }

    pub(crate) fn matches_everything(&self) -> bool {
        self.parts.iter().all(|part| matches!(part, Part::Across))
    }

    /// Paths are resolved before they are asked about.
    pub(crate) fn never_matches_a_path(&self) -> bool {
        let text: String = self.parts.iter().map(|part| part.literal().unwrap_or('*')).collect();
        text.split('/').skip(1).any(|name| name.is_empty() || name == "." || name == ".." || name.starts_with('~'))
    }
}

/// A pattern for names as shells write it. Case does not count.
#[derive(Debug, Clone)]
pub struct ShellPattern(Pattern);

impl ShellPattern {
    /// Reads a pattern; every text is one.
    pub fn new(text: &str) -> ShellPattern {
        ShellPattern(Pattern::of_shell(&fold_case(text)))
    }

    /// Whether it stands for a name, or may.
    pub fn matches(&self, name: &str) -> bool {
        self.0.matches(&fold_case(name))
    }
}

impl Part {
    fn literal(&self) -> Option<char> {
        match self {
            Part::Literal(literal) => Some(*literal),
            Part::One | Part::Within | Part::Across => None,
        }
    }
}

/// Case is folded as careless file systems fold it: letters with one capital in common are one (`ſ` and `s`), and
/// characters that are not seen do not count.
pub(crate) fn fold_case(text: &str) -> String {
    if text.is_ascii() {
        return text.to_ascii_lowercase();
    }
    let seen: String = text.chars().filter(|character| !is_unseen(*character)).collect();
    crate::json::nfc(&seen.to_uppercase().to_lowercase()).into_owned()
}

/// What some file systems leave out of names when they compare them.
fn is_unseen(character: char) -> bool {
    matches!(character, '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}')
}

/// Of `X/**` the `X`.
fn about_itself(parts: &[Part], separator: Separator) -> Option<&[Part]> {
    match (separator, parts) {
        (Separator::Slash, [parts @ .., Part::Literal('/'), Part::Across]) => Some(parts),
        (Separator::Slash | Separator::None, _) => None,
    }
}

fn longest_literal(parts: &[Part]) -> String {
    let runs = parts.split(|part| part.literal().is_none());
    runs.map(|run| run.iter().filter_map(Part::literal).collect::<String>()).max_by_key(String::len).unwrap_or_default()
}

/// The set of parts that may come next, moved over the text one character at a time.
fn matches(parts: &[Part], text: &str) -> bool {
    let mut open = vec![false; parts.len().saturating_add(1)];
    let skip_stars = |open: &mut Vec<bool>| {
        let mut carried = false;
        for (position, part) in parts.iter().enumerate() {
            let here = open.get(position).copied().unwrap_or(false) || carried;
            if let Some(slot) = open.get_mut(position) {
                *slot = here;
            }
            carried = here && matches!(part, Part::Within | Part::Across);
        }
        if let Some(last) = open.last_mut() {
            *last = *last || carried;
        }
    };
    if let Some(first) = open.first_mut() {
        *first = true;
    }
    skip_stars(&mut open);
    let mut next = vec![false; open.len()];
    for character in text.chars() {
        next.fill(false);
        for (position, part) in parts.iter().enumerate() {
            if !open.get(position).copied().unwrap_or(false) {
                continue;
            }
            let to = match part {
                Part::Literal(literal) if *literal == character => position.saturating_add(1),
                Part::One => position.saturating_add(1),
                Part::Within if character != '/' => position,
                Part::Across => position,
                Part::Literal(_) | Part::Within => continue,
            };
            if let Some(slot) = next.get_mut(to) {
                *slot = true;
            }
        }
        skip_stars(&mut next);
        std::mem::swap(&mut open, &mut next);
    }
    open.last().copied().unwrap_or(false)
}
