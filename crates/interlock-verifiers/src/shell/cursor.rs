//! A place in a text that moves forward only.

use core::ops::Range;

/// Why a text is not understood, and where.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Stop {
    pub(super) at: usize,
    pub(super) why: &'static str,
}

/// A text and a place in it.
#[derive(Debug)]
pub(super) struct Cursor<'t> {
    text: &'t str,
    at: usize,
    /// The span that everything in this text counts as, where the text is a part of another one.
    origin: Option<Range<usize>>,
}

impl<'t> Cursor<'t> {
    pub(super) fn new(text: &'t str, origin: Option<Range<usize>>) -> Cursor<'t> {
        Cursor { text, at: 0, origin }
    }

    pub(super) fn at(&self) -> usize {
        self.at
    }

    pub(super) fn origin(&self) -> Option<Range<usize>> {
        self.origin.clone()
    }

    /// The span from a place to here, in the text that a person sees.
    pub(super) fn span_from(&self, start: usize) -> Range<usize> {
        self.origin.clone().unwrap_or(start..self.at)
    }

    /// The next byte.
    #[inline]
    pub(super) fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    /// The byte after so many others.
    #[inline]
    pub(super) fn peek_at(&self, ahead: usize) -> Option<u8> {
        self.text.as_bytes().get(self.at.saturating_add(ahead)).copied()
    }

    /// Whether this text comes next.
    pub(super) fn looking_at(&self, text: &str) -> bool {
        self.rest().as_bytes().starts_with(text.as_bytes())
    }

    /// Everything from here.
    pub(super) fn rest(&self) -> &'t str {
        self.text.get(self.at..).unwrap_or("")
    }

    /// What stands between a place and here.
    pub(super) fn since(&self, start: usize) -> &'t str {
        self.text.get(start..self.at).unwrap_or("")
    }

    /// Moves on by so many bytes.
    #[inline]
    pub(super) fn skip(&mut self, bytes: usize) {
        self.at = self.at.saturating_add(bytes).min(self.text.len());
    }

    /// Moves back to a place seen before.
    pub(super) fn back_to(&mut self, at: usize) {
        self.at = at.min(self.at);
    }

    /// Takes this text if it comes next.
    pub(super) fn take(&mut self, text: &str) -> bool {
        let found = self.looking_at(text);
        if found {
            self.skip(text.len());
        }
        found
    }

    /// Takes a whole character.
    pub(super) fn character(&mut self) -> Option<char> {
        let character = self.rest().chars().next()?;
        self.skip(character.len_utf8());
        Some(character)
    }

    /// Takes bytes while they are wanted. Only for bytes of ASCII, or everything up to one.
    #[inline]
    pub(super) fn take_while(&mut self, wanted: impl Fn(u8) -> bool) -> &'t str {
        let start = self.at;
        while self.peek().is_some_and(&wanted) {
            self.skip(1);
        }
        self.since(start)
    }

    /// Says that the text is not understood from here.
    pub(super) fn stop<T>(&self, why: &'static str) -> Result<T, Stop> {
        Err(Stop { at: self.origin.as_ref().map_or(self.at, |origin| origin.start), why })
    }
}
