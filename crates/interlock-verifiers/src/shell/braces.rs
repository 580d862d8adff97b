//! Brace expansion: one word becomes several, before anything else is expanded.

use std::borrow::Cow;

use super::syntax::{Part, Word};

/// The most words one word may become.
const WORDS_MAX: usize = 256;
/// The most opening braces of one word.
const BRACES_MAX: usize = 64;
/// The most characters of a word with braces: each word it becomes is a copy of it.
const ATOMS_MAX: usize = 2_048;

/// One character that is not quoted, or anything else.
#[derive(Debug, Clone)]
enum Atom {
    Char(char),
    Part(Box<Part>),
}

/// The words a word becomes; `None` if they are too many or too long.
pub(super) fn expand(word: &Word) -> Option<Cow<'_, [Word]>> {
    let braces = word.parts.iter().map(|part| match part {
        Part::Text { text, quoted: false } => text.bytes().filter(|byte| *byte == b'{').count(),
        Part::Text { .. } | Part::Parameter(_) | Part::Command { .. } | Part::Arithmetic(_) | Part::Process(_) => 0,
    });
    match braces.fold(0usize, usize::saturating_add) {
        0 => return Some(Cow::Borrowed(core::slice::from_ref(word))),
        1..=BRACES_MAX => {}
        _ => return None,
    }
    let mut atoms = Vec::new();
    for part in &word.parts {
        match part {
            Part::Text { text, quoted: false } => atoms.extend(text.chars().map(Atom::Char)),
            Part::Text { .. } | Part::Parameter(_) | Part::Command { .. } | Part::Arithmetic(_) | Part::Process(_) => {
                atoms.push(Atom::Part(Box::new(part.clone())));
            }
        }
    }
    if atoms.len() > ATOMS_MAX {
        return None;
    }
    let words = expand_atoms(&atoms, 0)?;
    let words = words.into_iter().map(|atoms| Word { parts: parts_of(atoms), ..word.clone() });
    Some(Cow::Owned(words.collect()))
}

fn expand_atoms(atoms: &[Atom], depth: usize) -> Option<Vec<Vec<Atom>>> {
    if depth > WORDS_MAX {
        return None;
    }
    let mut from = 0usize;
    while let Some(found) = atoms.get(from..).and_then(|rest| rest.iter().position(|atom| is(atom, '{'))) {
        let open = from.saturating_add(found);
        let Some(close) = closing(atoms, open) else {
            from = open.saturating_add(1);
            continue;
        };
        let inner = atoms.get(open.saturating_add(1)..close).unwrap_or_default();
        let Some(choices) = choices(inner, depth)? else {
            from = open.saturating_add(1);
            continue;
        };
        let before = atoms.get(..open).unwrap_or_default();
        let after = expand_atoms(atoms.get(close.saturating_add(1)..).unwrap_or_default(), depth.saturating_add(1))?;
        if choices.len().saturating_mul(after.len()) > WORDS_MAX {
            return None;
        }
        let mut words = Vec::new();
        for choice in &choices {
            for rest in &after {
                words.push(before.iter().chain(choice).chain(rest).cloned().collect());
            }
        }
        return Some(words);
    }
    Some(vec![atoms.to_vec()])
}

/// What a pair of braces offers; nothing inside if it is no expansion, nothing at all if it is too much.
fn choices(inner: &[Atom], depth: usize) -> Option<Option<Vec<Vec<Atom>>>> {
    let mut level = 0u32;
    let mut parts: Vec<&[Atom]> = Vec::new();
    let mut start = 0usize;
    for (at, atom) in inner.iter().enumerate() {
        match atom {
            Atom::Char('{') => level = level.saturating_add(1),
            Atom::Char('}') => level = level.saturating_sub(1),
            Atom::Char(',') if level == 0 => {
                parts.push(inner.get(start..at).unwrap_or_default());
                start = at.saturating_add(1);
            }
            Atom::Char(_) | Atom::Part(_) => {}
        }
    }
    if parts.is_empty() {
        return sequence(inner);
    }
    parts.push(inner.get(start..).unwrap_or_default());
    let mut all = Vec::new();
    for part in parts {
        all.extend(expand_atoms(part, depth.saturating_add(1))?);
        if all.len() > WORDS_MAX {
            return None;
        }
    }
    Some(Some(all))
}

/// `1..5`, `a..e`, `1..9..2`.
fn sequence(inner: &[Atom]) -> Option<Option<Vec<Vec<Atom>>>> {
    let mut text = String::new();
    for atom in inner {
        match atom {
            Atom::Char(character) => text.push(*character),
            Atom::Part(_) => return Some(None),
        }
    }
    let pieces: Vec<&str> = text.split("..").collect();
    let (first, last, step) = match pieces.as_slice() {
        [first, last] => (*first, *last, "1"),
        [first, last, step] => (*first, *last, *step),
        _ => return Some(None),
    };
    let Ok(step) = step.parse::<i64>() else { return Some(None) };
    let one = |text: &str| {
        let mut characters = text.chars();
        characters.next().filter(|character| character.is_ascii_alphabetic() && characters.next().is_none())
    };
    let (from, to, letters) = match (first.parse::<i64>(), last.parse::<i64>(), one(first), one(last)) {
        (Ok(from), Ok(to), _, _) => (from, to, false),
        (_, _, Some(from), Some(to)) => (i64::from(u32::from(from)), i64::from(u32::from(to)), true),
        _ => return Some(None),
    };
    let step = i64::try_from(step.unsigned_abs().max(1)).ok()?;
    let count = from.abs_diff(to).checked_div(step.unsigned_abs())?;
    if usize::try_from(count).ok()? >= WORDS_MAX {
        return None;
    }
    let mut words = Vec::new();
    let mut value = from;
    for _ in 0..=count {
        let text = match (letters, u32::try_from(value).ok().and_then(char::from_u32)) {
            (true, Some(letter)) => letter.to_string(),
            (true, None) => return Some(None),
            (false, _) => value.to_string(),
        };
        words.push(text.chars().map(Atom::Char).collect());
        value = if from <= to { value.checked_add(step)? } else { value.checked_sub(step)? };
    }
    Some(Some(words))
}

fn closing(atoms: &[Atom], open: usize) -> Option<usize> {
    let mut level = 0u32;
    for (at, atom) in atoms.iter().enumerate().skip(open) {
        match atom {
            Atom::Char('{') => level = level.saturating_add(1),
            Atom::Char('}') => {
                level = level.saturating_sub(1);
                if level == 0 {
                    return Some(at);
                }
            }
            Atom::Char(_) | Atom::Part(_) => {}
        }
    }
    None
}

fn is(atom: &Atom, wanted: char) -> bool {
    matches!(atom, Atom::Char(character) if *character == wanted)
}

fn parts_of(atoms: Vec<Atom>) -> Vec<Part> {
    let mut parts: Vec<Part> = Vec::new();
    for atom in atoms {
        match atom {
            Atom::Char(character) => {
                if let Some(Part::Text { text, quoted: false }) = parts.last_mut() {
                    text.push(character);
                } else {
                    parts.push(Part::Text { text: character.to_string(), quoted: false });
                }
            }
            Atom::Part(part) => parts.push(*part),
        }
    }
    parts
}
