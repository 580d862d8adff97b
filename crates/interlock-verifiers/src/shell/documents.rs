//! Here-documents: where their bodies are, and what is expanded in them.

use core::ops::Range;

use super::cursor::Stop;
use super::parse::Parser;
use super::syntax::{Redirect, RedirectKind, Word};

/// The most here-documents that begin on one line.
const DOCUMENTS_MAX: usize = 8;

/// A here-document that is still without body.
#[derive(Debug)]
pub(super) struct Pending {
    delimiter: String,
    quoted: bool,
    strips_tabs: bool,
}

/// The place of a redirect in its command, to be filled when the body is known.
type Bodies = Vec<(String, Range<usize>, bool)>;

impl Parser<'_> {
    /// A here-document after its sign. The body stands after the end of the line; since everything before it on the
    /// line has to be read first, the body is looked up ahead and skipped when the line ends.
    pub(super) fn here_document(&mut self, strips_tabs: bool, start: usize) -> Result<Redirect, Stop> {
        let raw_start = self.cursor.at();
        let Some(word) = self.word()? else { return self.cursor.stop("a here-document without a delimiter") };
        let quoted = self.cursor.since(raw_start).contains(['\'', '"', '\\']);
        let Some(delimiter) = word.text() else { return self.cursor.stop("a delimiter that is no plain word") };
        if delimiter.contains('\n') {
            return self.cursor.stop("a delimiter of several lines");
        }
        if self.pending.len() >= DOCUMENTS_MAX {
            return self.cursor.stop("too many here-documents on a line");
        }
        self.pending.push(Pending { delimiter, quoted, strips_tabs });
        let mut bodies = Bodies::new();
        self.look_up_bodies(&mut bodies)?;
        let Some((body, span, quoted)) = bodies.pop() else { return self.cursor.stop("a here-document without body") };
        let span = self.cursor.origin().unwrap_or(span);
        let target = if quoted {
            Word::of_text(body, span)
        } else {
            let mut inner = Parser::new(&body, Some(span.clone()), self.depth().saturating_add(1));
            inner.nodes = self.nodes;
            let parts = inner.document_parts()?;
            self.nodes = inner.nodes;
            self.note_all(inner.only_bash, inner.not_zsh);
            Word { parts, span, is_compound: false }
        };
        let kind = RedirectKind::HereDocument { quoted };
        Ok(Redirect { kind, target, descriptor: None, kept_in: None, span: self.cursor.span_from(start) })
    }

    /// Finds the bodies of all pending here-documents without moving on.
    pub(super) fn look_up_bodies(&mut self, bodies: &mut Bodies) -> Result<(), Stop> {
        let here = self.cursor.at();
        let Some(line_end) = self.line_end_ahead() else { return self.cursor.stop("a here-document without body") };
        let mut next = here.saturating_add(line_end).saturating_add(1);
        let rest = self.cursor.rest();
        for pending in &self.pending {
            let from = next.saturating_sub(here);
            let Some(found) = find_body(rest.get(from..).unwrap_or(""), pending) else {
                return self.cursor.stop("a here-document that does not end");
            };
            let body_start = next;
            next = next.saturating_add(found.length);
            bodies.push((found.body, body_start..next, pending.quoted));
        }
        Ok(())
    }

    /// Where the line ends on which here-documents begin. Quotes that run over several lines are not looked into: their
    /// line ends count, which bash does not do, so such a line is not understood.
    pub(super) fn line_end_ahead(&self) -> Option<usize> {
        let rest = self.cursor.rest();
        let end = rest.find('\n')?;
        let line = rest.get(..end)?;
        let odd = |quote: char| line.matches(quote).count() % 2 == 1;
        (!odd('\'') && !odd('"') && !odd('`') && !line.ends_with('\\')).then_some(end)
    }

    /// Takes the end of a line, and the bodies of here-documents that begin there.
    pub(super) fn line_end(&mut self) -> Result<(), Stop> {
        self.cursor.skip(1);
        for pending in core::mem::take(&mut self.pending) {
            let Some(found) = find_body(self.cursor.rest(), &pending) else {
                return self.cursor.stop("a here-document that does not end");
            };
            self.cursor.skip(found.length);
        }
        Ok(())
    }

    /// Puts bodies that are due aside, for a part that has none of them.
    pub(super) fn take_due(&mut self) -> Vec<Pending> {
        core::mem::take(&mut self.pending)
    }

    /// Puts them back.
    pub(super) fn put_due(&mut self, due: Vec<Pending>) {
        self.pending = due;
    }

    /// Stops where a line end would mean something else than the start of a body that is due.
    pub(super) fn no_body_due(&self) -> Result<(), Stop> {
        if self.pending.is_empty() { Ok(()) } else { self.cursor.stop("a here-document inside of something else") }
    }
}

/// A body that was found: its text as the command reads it, and how many bytes it and its delimiter take.
struct FoundBody {
    body: String,
    length: usize,
}

/// Finds a body in the lines that follow.
fn find_body(text: &str, pending: &Pending) -> Option<FoundBody> {
    let mut body = String::new();
    let mut length = 0usize;
    let mut joins = false;
    for raw in text.split_inclusive('\n') {
        length = length.saturating_add(raw.len());
        let line = raw.strip_suffix('\n').unwrap_or(raw);
        let line = if pending.strips_tabs { line.trim_start_matches('\t') } else { line };
        if line == pending.delimiter && !joins {
            return Some(FoundBody { body, length });
        }
        // A line that ends in a backslash goes on in the next, which is then no delimiter.
        let slashes = line.bytes().rev().take_while(|byte| *byte == b'\\').count();
        joins = !pending.quoted && slashes % 2 == 1;
        body.push_str(line);
        body.push('\n');
    }
    None
}
