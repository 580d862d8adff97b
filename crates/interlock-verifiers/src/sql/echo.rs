//! Whether a tree still holds all the words of its text: a second opinion on the parser.
//!
//! A parser that passes over words without keeping them makes a harmless tree of a text that is not. So the tree is
//! written out again, and every word of the text must be in it as often as in the text. Two words may be taken for one
//! another; that is rare enough for an opinion on which nothing else rests.

use core::fmt::{self, Write};

use sqlparser::ast::Statement;
use sqlparser::tokenizer::{Token, TokenWithSpan};

/// How many kinds of words are told apart.
const BUCKETS: usize = 4_096;

/// Words that may be left out without another meaning, or that are written otherwise.
const OPTIONAL: &[&str] = &["as", "asc", "inner", "next", "outer", "row"];

/// Whether a word of the text is missing in the tree.
pub(super) fn drops_a_word(tokens: &[TokenWithSpan], statement: &Statement) -> bool {
    let mut words = Words { counts: vec![0; BUCKETS], hash: None };
    if write!(words, "{statement} ").is_err() {
        return true;
    }
    tokens.iter().any(|token| {
        let Token::Word(word) = &token.token else { return false };
        let is_kept =
            word.quote_style.is_none() && !OPTIONAL.iter().any(|known| known.eq_ignore_ascii_case(&word.value));
        is_kept && !words.take(&word.value)
    })
}

/// Counts the words that are written to it.
struct Words {
    counts: Vec<u32>,
    /// The word that is being written.
    hash: Option<usize>,
}

impl Words {
    fn add(hash: Option<usize>, byte: u8) -> usize {
        hash.unwrap_or(5_381).wrapping_mul(33) ^ usize::from(byte.to_ascii_lowercase())
    }

    fn count(&mut self, hash: usize) -> Option<&mut u32> {
        self.counts.get_mut(hash & (BUCKETS - 1))
    }

    /// Takes one such word away, if there is one.
    fn take(&mut self, word: &str) -> bool {
        // A word with signs in it, as BigQuery has them, is several.
        word.split(|letter: char| letter.is_ascii() && !is_part(letter as u8)).filter(|part| !part.is_empty()).all(
            |part| {
                let hash = part.bytes().fold(None, |hash, byte| Some(Words::add(hash, byte)));
                match hash.and_then(|hash| self.count(hash)) {
                    Some(count) if *count > 0 => {
                        *count = count.saturating_sub(1);
                        true
                    }
                    Some(_) | None => false,
                }
            },
        )
    }
}

fn is_part(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'$' | b'@' | b'#') || !byte.is_ascii()
}

impl Write for Words {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        for byte in text.bytes() {
            if is_part(byte) {
                self.hash = Some(Words::add(self.hash, byte));
            } else if let Some(count) = self.hash.take().and_then(|hash| self.count(hash)) {
                *count = count.saturating_add(1);
            }
        }
        Ok(())
    }
}
