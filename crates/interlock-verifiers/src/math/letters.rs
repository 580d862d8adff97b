//! Single letters: units or unknowns.
//!
//! `5 m` is five metres and `5 m + n` is not. One reading is chosen for all of the text, the query and the expected
//! value together.

use super::lex::{Token, TokenKind};
use super::vocabulary::{is_letter, unit};

/// What single letters are in a text: all of them units, or all of them unknowns.
pub(super) struct Letters<'t> {
    pub(super) are_units: bool,
    /// The letters that occur alone.
    alone: Vec<&'t str>,
}

impl<'t> Letters<'t> {
    /// Letters are units if every one of them is a unit and stands where only a unit can: behind a number, or behind
    /// a unit and a sign of division.
    pub(super) fn of(texts: &[&[Token<'t>]]) -> Letters<'t> {
        let mut letters = Letters { are_units: true, alone: Vec::new() };
        for tokens in texts {
            let mut before: [Option<&Token<'_>>; 2] = [None, None];
            let mut after_unit = false;
            for token in *tokens {
                let [second, first] = before;
                let divided =
                    matches!(first.map(|token| &token.kind), Some(TokenKind::Divide | TokenKind::Word("per")));
                let measured = matches!(first.map(|token| &token.kind), Some(TokenKind::Number(_)))
                    || (divided && after_unit && second.is_some());
                let mut is_unit = false;
                if let TokenKind::Word(word) = token.kind {
                    is_unit = measured && unit(word).is_some();
                    if is_letter(word) {
                        letters.are_units &= is_unit;
                        if !letters.alone.contains(&word) {
                            letters.alone.push(word);
                        }
                    }
                }
                // Stays true over the sign of division that may follow.
                after_unit = is_unit
                    || (after_unit
                        && matches!(token.kind, TokenKind::Divide | TokenKind::Word("per") | TokenKind::Raised(_)));
                before = [first, Some(token)];
            }
        }
        letters.are_units &= !letters.alone.is_empty();
        letters
    }

    /// Splits words that are unknowns multiplied, as in `2xy`, into their letters. A word is taken for that only if
    /// each of its letters occurs alone too, or if all are of those that everybody uses.
    pub(super) fn split(&self, tokens: Vec<Token<'t>>) -> Vec<Token<'t>> {
        let is_product = |word: &str| {
            let alone = |letter: char| self.alone.iter().any(|known| known.starts_with(letter));
            let usual = |set: &str| word.chars().all(|letter| set.contains(letter));
            !self.are_units
                && matches!(word.len(), 2 | 3)
                && unit(word).is_none()
                && (word.chars().all(alone) || usual("xyz") || usual("abc"))
        };
        if !tokens.iter().any(|token| matches!(token.kind, TokenKind::Word(word) if is_product(word))) {
            return tokens;
        }
        let mut split = Vec::new();
        for token in tokens {
            let TokenKind::Word(word) = token.kind else {
                split.push(token);
                continue;
            };
            if !is_product(word) {
                split.push(token);
                continue;
            }
            for (index, _) in word.char_indices() {
                let at = token.at.saturating_add(index);
                let letter = word.get(index..index.saturating_add(1)).unwrap_or_default();
                split.push(Token { kind: TokenKind::Word(letter), at, end: at.saturating_add(1) });
            }
        }
        split
    }
}
