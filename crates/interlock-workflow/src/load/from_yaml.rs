//! YAML into the tree: the core schema of YAML 1.2, and of that only what a reader can tell from the line alone.
//!
//! `yes`, `no` and `on` are strings. Refused are anchors, aliases, merge keys and tags (a value is where it stands),
//! keys that are no strings, second documents, directives, and numbers that JSON does not know.

use core::ops::Range;

use saphyr_parser::{Event, Parser, ScalarStyle, ScanError, Span, StrInput, Tag};

use super::node::{Member, Node, NodeValue};
use super::problem::{Path, ProblemList};
use super::{Limits, READ_DEPTH_MAX};

/// The tree of a YAML text; `None` if there is none to speak of.
pub(super) fn read(text: &str, limits: &Limits, errors: &mut ProblemList) -> Option<Node> {
    if let Some(span) = directive(text) {
        let help = "YAML 1.2 is understood without being told".to_owned();
        errors.add_with_help(&span, &Path::Root, "directives are not supported", help);
        return None;
    }
    let parser = Parser::new_from_str(text);
    let mut convert = Convert { text, parser, places: Places::of(text), limits, errors, values_left: limits.values };
    let root = convert.documents();
    if root.is_none() && convert.errors.is_empty() {
        convert.errors.add(&(0..0), &Path::Root, "the text is empty");
    }
    root
}

/// The first line that says something, if it is a directive: `%YAML 1.1` would give `on` another meaning elsewhere.
fn directive(text: &str) -> Option<Range<usize>> {
    let mut start = 0_usize;
    for line in text.split_inclusive('\n') {
        if line.starts_with('%') {
            return Some(start..start.saturating_add(line.trim_end().len()));
        }
        if !line.trim().is_empty() && !line.trim_start().starts_with('#') {
            return None;
        }
        start = start.saturating_add(line.len());
    }
    None
}

/// From the parser's places, which count characters, to bytes.
struct Places {
    /// The first byte of each character; empty where every character is one byte.
    starts: Vec<usize>,
    bytes: usize,
}

impl Places {
    fn of(text: &str) -> Places {
        let starts = if text.is_ascii() { Vec::new() } else { text.char_indices().map(|(at, _)| at).collect() };
        Places { starts, bytes: text.len() }
    }

    fn byte(&self, character: usize) -> usize {
        if self.starts.is_empty() {
            return character.min(self.bytes);
        }
        self.starts.get(character).copied().unwrap_or(self.bytes)
    }

    fn span(&self, span: Span) -> Range<usize> {
        let start = self.byte(span.start.index());
        start..self.byte(span.end.index()).max(start)
    }
}

struct Convert<'t, 'c> {
    text: &'t str,
    parser: Parser<'t, StrInput<'t>>,
    places: Places,
    limits: &'c Limits,
    errors: &'c mut ProblemList,
    values_left: usize,
}

impl<'t> Convert<'t, '_> {
    /// The one document of a stream. `None` where there is none, or where an error ended the reading.
    #[expect(clippy::wildcard_enum_match_arm, reason = "whatever else begins a document is a node, or refused there")]
    fn documents(&mut self) -> Option<Node> {
        let mut root = None;
        loop {
            let (event, span) = self.next()?;
            match event {
                Event::StreamStart | Event::DocumentEnd | Event::Nothing => {}
                Event::StreamEnd => return root,
                Event::DocumentStart(_) if root.is_some() => {
                    self.errors.add(&self.places.span(span), &Path::Root, "a second document begins here");
                    return None;
                }
                Event::DocumentStart(_) => {
                    let (event, span) = self.next()?;
                    root = Some(self.node(event, span, &Path::Root, 0)?);
                }
                _ => return self.not_understood(span),
            }
        }
    }

    fn next(&mut self) -> Option<(Event<'t>, Span)> {
        match self.parser.next_event()? {
            Ok(found) => Some(found),
            Err(error) => {
                self.syntax(&error);
                None
            }
        }
    }

    fn syntax(&mut self, error: &ScanError) {
        let start = self.places.byte(error.marker().index());
        let span = start..start.saturating_add(1);
        if self.text.get(start..).is_some_and(|rest| rest.starts_with(['*', '&'])) {
            return self.unshared(&span, &Path::Root);
        }
        self.errors.add(&span, &Path::Root, format!("this is not YAML: {}", interlock_core::visible(error.info())));
    }

    fn unshared(&mut self, span: &Range<usize>, path: &Path<'_>) {
        let help = "write the value out in each place".to_owned();
        self.errors.add_with_help(span, path, "anchors and aliases are not supported", help);
    }

    fn not_understood(&mut self, span: Span) -> Option<Node> {
        self.errors.add(&self.places.span(span), &Path::Root, "this is not YAML: not understood");
        None
    }

    /// The value that begins with an event. `None` ends the reading; an error was told of.
    #[expect(clippy::wildcard_enum_match_arm, reason = "the end of something else cannot begin a value")]
    fn node(&mut self, event: Event<'t>, at: Span, path: &Path<'_>, depth: usize) -> Option<Node> {
        let span = self.places.span(at);
        if depth >= self.limits.depth.min(READ_DEPTH_MAX) {
            self.errors.add(&span, path, format!("nested more than {} deep", self.limits.depth));
            return None;
        }
        let Some(left) = self.values_left.checked_sub(1) else {
            self.errors.add(&span, path, format!("the text has more than {} values", self.limits.values));
            return None;
        };
        self.values_left = left;
        match event {
            Event::Alias(_) => {
                self.unshared(&span, path);
                Some(Node::refused(span))
            }
            Event::Scalar(text, style, anchor, tag) => {
                let plain = self.plain(anchor, tag.as_deref(), &span, path);
                let node = if style == ScalarStyle::Plain {
                    self.plain_scalar(&text, span.clone(), path)
                } else {
                    Node::string(&text, span.clone())
                };
                Some(if plain { node } else { Node::refused(span) })
            }
            Event::SequenceStart(anchor, tag) => {
                self.plain(anchor, tag.as_deref(), &span, path);
                self.sequence(span, path, depth)
            }
            Event::MappingStart(anchor, tag) => {
                self.plain(anchor, tag.as_deref(), &span, path);
                self.mapping(span, path, depth)
            }
            _ => self.not_understood(at),
        }
    }

    /// Whether a value is without anchor and tag; tells of them otherwise.
    fn plain(&mut self, anchor: usize, tag: Option<&Tag>, span: &Range<usize>, path: &Path<'_>) -> bool {
        if anchor != 0 {
            self.unshared(span, path);
        }
        if tag.is_some() {
            let help = "a string is what stands in quotes".to_owned();
            self.errors.add_with_help(span, path, "tags are not supported", help);
        }
        anchor == 0 && tag.is_none()
    }

    fn sequence(&mut self, span: Range<usize>, path: &Path<'_>, depth: usize) -> Option<Node> {
        let mut items = Vec::new();
        loop {
            let (event, at) = self.next()?;
            if event == Event::SequenceEnd {
                let end = self.places.span(at).end.max(span.end);
                return Some(Node { value: NodeValue::Array(items), span: span.start..end });
            }
            let item = self.node(event, at, &path.item(items.len()), depth.saturating_add(1))?;
            items.push(item);
        }
    }

    fn mapping(&mut self, span: Range<usize>, path: &Path<'_>, depth: usize) -> Option<Node> {
        let mut members = Vec::new();
        loop {
            let (event, at) = self.next()?;
            if event == Event::MappingEnd {
                let end = self.places.span(at).end.max(span.end);
                return Some(Node::object(members, span.start..end, path, self.errors));
            }
            let key_span = self.places.span(at);
            let key = self.key(event, at, path, depth)?;
            let (event, at) = self.next()?;
            let name = key.as_deref().unwrap_or_default();
            let value = self.node(event, at, &path.key(name), depth.saturating_add(1))?;
            if let Some(key) = key {
                members.push(Member { key, key_span, value });
            }
        }
    }

    /// A key, if it is a string; tells of it otherwise.
    fn key(&mut self, event: Event<'t>, at: Span, path: &Path<'_>, depth: usize) -> Option<Option<String>> {
        let merge = matches!(&event, Event::Scalar(text, ScalarStyle::Plain, _, _) if text == "<<");
        let before = self.errors.count();
        let key = self.node(event, at, path, depth.saturating_add(1))?;
        if merge {
            let help = "write the members out in each place".to_owned();
            self.errors.add_with_help(&key.span, path, "merge keys are not supported", help);
            return Some(None);
        }
        if let NodeValue::String(text) = key.value {
            return Some(Some(text));
        }
        if self.errors.count() == before {
            let help = match key.value {
                NodeValue::Array(_) | NodeValue::Object(_) => None,
                NodeValue::Null
                | NodeValue::Bool(_)
                | NodeValue::Number(_)
                | NodeValue::String(_)
                | NodeValue::Refused => Some("put it in quotes".to_owned()),
            };
            self.errors.add_with_help(&key.span, path, format!("a key must be a string, this is {}", key.kind()), help);
        }
        Some(None)
    }

    /// What a scalar without quotes is, by the core schema.
    fn plain_scalar(&mut self, text: &str, span: Range<usize>, path: &Path<'_>) -> Node {
        let value = match text {
            "" | "~" | "null" | "Null" | "NULL" => NodeValue::Null,
            "true" | "True" | "TRUE" => NodeValue::Bool(true),
            "false" | "False" | "FALSE" => NodeValue::Bool(false),
            _ if is_number(text) => {
                return Node::number(text, span.clone(), self.limits).unwrap_or_else(|| {
                    let help = "write it as in JSON, or in quotes for a string".to_owned();
                    self.errors.add_with_help(&span, path, "this number is not supported", help);
                    Node::refused(span)
                });
            }
            _ => return Node::string(text, span),
        };
        Node { value, span }
    }
}

/// Whether the core schema calls it a number, `.inf` and `.nan` included.
fn is_number(text: &str) -> bool {
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    if let Some(octal) = text.strip_prefix("0o") {
        return !octal.is_empty() && octal.bytes().all(|byte| matches!(byte, b'0'..=b'7'));
    }
    if let Some(hexadecimal) = text.strip_prefix("0x") {
        return !hexadecimal.is_empty() && hexadecimal.bytes().all(|byte| byte.is_ascii_hexdigit());
    }
    if matches!(text, ".nan" | ".NaN" | ".NAN") {
        return true;
    }
    let unsigned = text.strip_prefix(['-', '+']).unwrap_or(text);
    if matches!(unsigned, ".inf" | ".Inf" | ".INF") {
        return true;
    }
    let (mantissa, exponent) = match unsigned.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, Some(exponent)),
        None => (unsigned, None),
    };
    let exponent = exponent.is_none_or(|exponent| digits(exponent.strip_prefix(['-', '+']).unwrap_or(exponent)));
    let mantissa = match mantissa.split_once('.') {
        Some(("", fraction)) => digits(fraction),
        Some((whole, fraction)) => digits(whole) && (fraction.is_empty() || digits(fraction)),
        None => digits(mantissa),
    };
    mantissa && exponent
}
