//! The one parser: RFC 8259 text into a [`Document`], refusing everything that two readers could understand differently.
//!
//! It keeps its own stack, so depth costs nothing but nodes, and it looks at each byte a bounded number of times. A
//! text that is too deep is still read to its end: it is refused for its depth only if nothing else is wrong with it.

use core::ops::ControlFlow;
use std::borrow::Cow;

use super::document::Document;
use super::error::{JsonError, JsonErrorKind};
use super::keys;
use super::limits::Limits;
use super::nodes::{Node, NodeIndex, NodeKind, Nodes, Style};
use super::number::Number;

/// Reads a text strictly.
///
/// ```
/// use interlock_core::json::{self, Limits};
///
/// let document = json::parse(r#"{"step": 1, "cost": 7.50}"#, &Limits::STATE)?;
/// assert_eq!(json::canonical(document.root()), r#"{"cost":7.50,"step":1}"#);
/// assert!(json::parse(r#"{"step": 1, "step": 2}"#, &Limits::STATE).is_err());
/// # Ok::<(), json::JsonError>(())
/// ```
pub fn parse<'t>(text: &'t str, limits: &Limits) -> Result<Document<'t>, JsonError> {
    let limits = limits.capped();
    if text.len() > limits.bytes {
        return Err(JsonError::at(JsonErrorKind::TooManyBytes(limits.bytes), text.as_bytes(), limits.bytes));
    }
    if text.starts_with('\u{feff}') {
        return Err(JsonError::at(JsonErrorKind::ByteOrderMark, text.as_bytes(), 0));
    }
    let mut parser = Parser {
        text,
        rest: text.as_bytes(),
        nodes: Vec::with_capacity(text.len().checked_div(BYTES_PER_NODE).unwrap_or(0).saturating_add(8)),
        unescaped: String::new(),
        values: 0,
        open: NO_NODE,
        open_kind: NodeKind::Missing,
        open_count: 0,
        depth: 0,
        too_deep: None,
        scratch: Vec::new(),
        limits,
    };
    match parser.text() {
        Ok(()) => parser.finish(),
        Err(fault) => Err(JsonError::at(fault.kind, text.as_bytes(), fault.offset)),
    }
}

/// Reads bytes strictly; bytes that are not UTF-8 are refused like any other text.
pub fn parse_bytes<'t>(bytes: &'t [u8], limits: &Limits) -> Result<Document<'t>, JsonError> {
    match core::str::from_utf8(bytes) {
        Ok(text) => parse(text, limits),
        Err(fault) => Err(JsonError::at(JsonErrorKind::NotUtf8, bytes, fault.valid_up_to())),
    }
}

/// What ordinary texts need, so that one allocation holds their nodes.
const BYTES_PER_NODE: usize = 6;

/// No container is open.
const NO_NODE: NodeIndex = NodeIndex::MAX;

struct Parser<'t> {
    text: &'t str,
    /// What has not been read yet.
    rest: &'t [u8],
    nodes: Vec<Node>,
    unescaped: String,
    /// How many values there are; keys are not counted.
    values: usize,
    /// The innermost open container. While open, a container's `second` is the container around it.
    open: NodeIndex,
    /// Its kind, and how many values it has so far; its node is told when another opens in it or it closes.
    open_kind: NodeKind,
    open_count: u32,
    /// How many containers are open.
    depth: usize,
    /// The first value that is too deep.
    too_deep: Option<NodeIndex>,
    /// Reused by the duplicate check of every object.
    scratch: Vec<NodeIndex>,
    limits: Limits,
}

struct Fault {
    kind: JsonErrorKind,
    offset: usize,
}

/// What follows a finished value.
enum Next {
    Value,
    End,
}

impl<'t> Parser<'t> {
    fn text(&mut self) -> Result<(), Fault> {
        loop {
            self.skip_whitespace();
            if self.value()?.is_continue() {
                continue;
            }
            match self.after_value()? {
                Next::Value => {}
                Next::End => return Ok(()),
            }
        }
    }

    fn finish(self) -> Result<Document<'t>, JsonError> {
        let document = Document { text: Cow::Borrowed(self.text), nodes: self.nodes, unescaped: self.unescaped };
        let Some(index) = self.too_deep else { return Ok(document) };
        let value = document.value(index);
        let kind = JsonErrorKind::TooDeep { limit: self.limits.depth, path: value.path() };
        Err(JsonError::at(kind, self.text.as_bytes(), value.span().start))
    }

    /// Reads the start of one value. `Continue`: a container was opened and its first value comes next.
    /// `Break`: a value is complete.
    fn value(&mut self) -> Result<ControlFlow<()>, Fault> {
        let start = self.offset();
        match self.rest {
            [b'"', rest @ ..] => {
                self.rest = rest;
                let node = self.string(start)?;
                self.push_value(node)?;
            }
            [b'{', rest @ ..] => {
                self.rest = rest;
                self.open_container(NodeKind::Object, start)?;
                self.skip_whitespace();
                if let [b'}', rest @ ..] = self.rest {
                    self.rest = rest;
                    self.close_container();
                } else {
                    self.key("`\"` or `}`")?;
                    return Ok(ControlFlow::Continue(()));
                }
            }
            [b'[', rest @ ..] => {
                self.rest = rest;
                self.open_container(NodeKind::Array, start)?;
                self.skip_whitespace();
                if let [b']', rest @ ..] = self.rest {
                    self.rest = rest;
                    self.close_container();
                } else {
                    return Ok(ControlFlow::Continue(()));
                }
            }
            [b'0'..=b'9' | b'-', ..] => {
                let node = self.number(start)?;
                self.push_value(node)?;
            }
            [b't', b'r', b'u', b'e', rest @ ..] => self.literal(NodeKind::True, start, rest)?,
            [b'f', b'a', b'l', b's', b'e', rest @ ..] => self.literal(NodeKind::False, start, rest)?,
            [b'n', b'u', b'l', b'l', rest @ ..] => self.literal(NodeKind::Null, start, rest)?,
            [b'N', b'a', b'N', ..] => return Err(self.fault(JsonErrorKind::NonStandardConstant("NaN"))),
            [b'I', b'n', b'f', b'i', b'n', b'i', b't', b'y', ..] => {
                return Err(self.fault(JsonErrorKind::NonStandardConstant("Infinity")));
            }
            [] => return Err(self.fault(JsonErrorKind::UnexpectedEnd)),
            _ => return Err(self.fault(JsonErrorKind::Expected("a value"))),
        }
        Ok(ControlFlow::Break(()))
    }

    /// Reads what stands between a finished value and the next one.
    fn after_value(&mut self) -> Result<Next, Fault> {
        loop {
            self.skip_whitespace();
            if self.open == NO_NODE {
                return if self.rest.is_empty() { Ok(Next::End) } else { Err(self.fault(JsonErrorKind::TrailingText)) };
            }
            match (self.rest, self.open_kind) {
                ([b',', rest @ ..], NodeKind::Object) => {
                    self.rest = rest;
                    self.skip_whitespace();
                    self.key("`\"`")?;
                    return Ok(Next::Value);
                }
                ([b',', rest @ ..], _) => {
                    self.rest = rest;
                    return Ok(Next::Value);
                }
                ([b'}', rest @ ..], NodeKind::Object) => {
                    self.rest = rest;
                    self.check_keys()?;
                    self.close_container();
                }
                ([b']', rest @ ..], NodeKind::Array) => {
                    self.rest = rest;
                    self.close_container();
                }
                ([], _) => return Err(self.fault(JsonErrorKind::UnexpectedEnd)),
                (_, NodeKind::Object) => return Err(self.fault(JsonErrorKind::Expected("`,` or `}`"))),
                _ => return Err(self.fault(JsonErrorKind::Expected("`,` or `]`"))),
            }
        }
    }

    /// Reads a key and its colon.
    fn key(&mut self, expected: &'static str) -> Result<(), Fault> {
        let start = self.offset();
        let [b'"', rest @ ..] = self.rest else {
            return Err(self.fault_or_end(JsonErrorKind::Expected(expected)));
        };
        self.rest = rest;
        let node = self.string(start)?;
        self.nodes.push(node);
        self.skip_whitespace();
        let [b':', rest @ ..] = self.rest else {
            return Err(self.fault_or_end(JsonErrorKind::Expected("`:`")));
        };
        self.rest = rest;
        Ok(())
    }

    fn literal(&mut self, kind: NodeKind, start: usize, rest: &'t [u8]) -> Result<(), Fault> {
        self.rest = rest;
        self.push_value(Node { kind, style: Style::None, start: narrow(start), first: 0, second: 0 })
    }

    /// Reads a number; what may follow it is the caller's concern.
    fn number(&mut self, start: usize) -> Result<Node, Fault> {
        let mut kind = NodeKind::Integer;
        if let [b'-', rest @ ..] = self.rest {
            if rest.starts_with(b"Infinity") {
                return Err(self.fault(JsonErrorKind::NonStandardConstant("-Infinity")));
            }
            self.rest = rest;
        }
        let mut digits = match self.rest {
            [b'0', rest @ ..] => {
                self.rest = rest;
                if let [b'0'..=b'9', ..] = rest {
                    return Err(self.fault(JsonErrorKind::Expected("no digit after a leading zero")));
                }
                1
            }
            _ => self.digits("a digit")?,
        };
        if let [b'.', rest @ ..] = self.rest {
            self.rest = rest;
            kind = NodeKind::Decimal;
            digits = digits.saturating_add(self.digits("a digit after the decimal point")?);
        }
        if digits > self.limits.digits {
            return Err(Fault { kind: JsonErrorKind::TooManyDigits(self.limits.digits), offset: start });
        }
        if let [b'e' | b'E', rest @ ..] = self.rest {
            self.rest = rest;
            kind = NodeKind::Decimal;
            self.exponent(start)?;
        }
        if kind == NodeKind::Decimal {
            let literal = Number::new(self.text.get(start..self.offset()).unwrap_or(""), false);
            self.check_printed(literal, start)?;
        }
        let length = self.offset().saturating_sub(start);
        Ok(Node { kind, style: Style::None, start: narrow(start), first: 0, second: narrow(length) })
    }

    fn exponent(&mut self, start: usize) -> Result<(), Fault> {
        if let [b'+' | b'-', rest @ ..] = self.rest {
            self.rest = rest;
        }
        let before = self.rest;
        let count = self.digits("a digit in the exponent")?;
        let magnitude = before
            .iter()
            .take(count)
            .fold(0_u32, |value, digit| value.saturating_mul(10).saturating_add(u32::from(digit.wrapping_sub(b'0'))));
        if magnitude > self.limits.exponent {
            return Err(Fault { kind: JsonErrorKind::ExponentTooLarge(self.limits.exponent), offset: start });
        }
        Ok(())
    }

    /// The canonical text of a number moves its point; it must keep the limits too, or it could not be read back.
    fn check_printed(&self, number: Number<'_>, start: usize) -> Result<(), Fault> {
        let printed = number.printed();
        if printed.digits > self.limits.digits {
            return Err(Fault { kind: JsonErrorKind::TooManyDigits(self.limits.digits), offset: start });
        }
        if printed.exponent > self.limits.exponent {
            return Err(Fault { kind: JsonErrorKind::ExponentTooLarge(self.limits.exponent), offset: start });
        }
        Ok(())
    }

    /// Reads at least one digit and says how many there were.
    fn digits(&mut self, expected: &'static str) -> Result<usize, Fault> {
        let mut rest = self.rest;
        while let [b'0'..=b'9', after @ ..] = rest {
            rest = after;
        }
        let count = self.rest.len().saturating_sub(rest.len());
        if count == 0 {
            return Err(self.fault_or_end(JsonErrorKind::Expected(expected)));
        }
        self.rest = rest;
        Ok(count)
    }

    /// Reads a string whose opening quote, at `start`, has been read.
    fn string(&mut self, start: usize) -> Result<Node, Fault> {
        let contents = start.saturating_add(1);
        let mut rest = self.rest;
        while let [b' '..=b'!' | b'#'..=b'[' | b']'..=b'~', after @ ..] = rest {
            rest = after;
        }
        let mut style = Style::Plain;
        if !matches!(rest, [b'"', ..]) {
            style = Style::Direct;
            while let [b' '..=b'!' | b'#'..=b'[' | b']'..=0xFF, after @ ..] = rest {
                rest = after;
            }
        }
        let length = self.rest.len().saturating_sub(rest.len());
        self.rest = rest;
        if let [b'"', after @ ..] = rest {
            self.rest = after;
            let node = Node {
                kind: NodeKind::String,
                style,
                start: narrow(start),
                first: narrow(contents),
                second: narrow(length),
            };
            return Ok(node);
        }
        self.escaped_string(start, contents, length)
    }

    /// Reads on from the first byte that is not copied as it is; `length` bytes from `contents` on are.
    fn escaped_string(&mut self, start: usize, contents: usize, length: usize) -> Result<Node, Fault> {
        let first = self.unescaped.len();
        let (text, mut run_start, mut run) = (self.text, contents, length);
        loop {
            self.unescaped.push_str(text.get(run_start..run_start.saturating_add(run)).unwrap_or(""));
            match self.rest {
                [b'"', rest @ ..] => {
                    self.rest = rest;
                    break;
                }
                [b'\\', ..] => {
                    let character = self.escape()?;
                    self.unescaped.push(character);
                }
                [] => return Err(self.fault(JsonErrorKind::UnexpectedEnd)),
                _ => return Err(self.fault(JsonErrorKind::ControlCharacter)),
            }
            run_start = self.offset();
            let mut rest = self.rest;
            while let [b' '..=b'!' | b'#'..=b'[' | b']'..=0xFF, after @ ..] = rest {
                rest = after;
            }
            run = self.rest.len().saturating_sub(rest.len());
            self.rest = rest;
        }
        let length = self.unescaped.len().saturating_sub(first);
        Ok(Node {
            kind: NodeKind::String,
            style: Style::Escaped,
            start: narrow(start),
            first: narrow(first),
            second: narrow(length),
        })
    }

    /// Reads one escape, from its backslash on.
    fn escape(&mut self) -> Result<char, Fault> {
        let (character, rest) = match self.rest {
            [_, b'"', rest @ ..] => ('"', rest),
            [_, b'\\', rest @ ..] => ('\\', rest),
            [_, b'/', rest @ ..] => ('/', rest),
            [_, b'b', rest @ ..] => ('\u{8}', rest),
            [_, b'f', rest @ ..] => ('\u{c}', rest),
            [_, b'n', rest @ ..] => ('\n', rest),
            [_, b'r', rest @ ..] => ('\r', rest),
            [_, b't', rest @ ..] => ('\t', rest),
            [_, b'u', ..] => self.unicode_escape()?,
            [_] => return Err(Fault { kind: JsonErrorKind::UnexpectedEnd, offset: self.text.len() }),
            _ => return Err(self.fault(JsonErrorKind::BadEscape)),
        };
        self.rest = rest;
        Ok(character)
    }

    /// Reads `\uXXXX`, and the second half of a surrogate pair where the first calls for it.
    fn unicode_escape(&self) -> Result<(char, &'t [u8]), Fault> {
        let (unit, rest) = unicode_unit(self.rest).ok_or_else(|| self.fault(JsonErrorKind::BadEscape))?;
        let (code, rest) = match (unit, unicode_unit(rest)) {
            (0xD800..=0xDBFF, Some((low @ 0xDC00..=0xDFFF, rest))) => {
                let offset = (unit & 0x3FF) << 10 | (low & 0x3FF);
                (offset.saturating_add(0x1_0000), rest)
            }
            _ => (unit, rest),
        };
        // A surrogate that is left over is no character.
        let character = char::from_u32(code).ok_or_else(|| self.fault(JsonErrorKind::LoneSurrogate))?;
        Ok((character, rest))
    }

    fn push_value(&mut self, node: Node) -> Result<(), Fault> {
        self.values = self.values.saturating_add(1);
        if self.values > self.limits.nodes {
            let offset = usize::try_from(node.start).unwrap_or(0);
            return Err(Fault { kind: JsonErrorKind::TooManyNodes(self.limits.nodes), offset });
        }
        if self.depth >= self.limits.depth && self.too_deep.is_none() {
            self.too_deep = Some(self.next_index());
        }
        self.open_count = self.open_count.saturating_add(1);
        self.nodes.push(node);
        Ok(())
    }

    fn open_container(&mut self, kind: NodeKind, start: usize) -> Result<(), Fault> {
        let index = self.next_index();
        let around = self.open;
        // An object without members has its keys in order.
        let style = if kind == NodeKind::Object { Style::SortedKeys } else { Style::None };
        self.push_value(Node { kind, style, start: narrow(start), first: 0, second: around })?;
        self.store_count();
        (self.open, self.open_kind, self.open_count) = (index, kind, 0);
        self.depth = self.depth.saturating_add(1);
        Ok(())
    }

    fn close_container(&mut self) {
        let end = self.next_index();
        self.store_count();
        if let Some(node) = self.open_node() {
            let around = node.second;
            node.second = end;
            self.open = around;
        }
        (self.open_kind, self.open_count) = match self.open_node() {
            Some(node) => (node.kind, node.first),
            None => (NodeKind::Missing, 0),
        };
        self.depth = self.depth.saturating_sub(1);
    }

    fn store_count(&mut self) {
        let count = self.open_count;
        if let Some(node) = self.open_node() {
            node.first = count;
        }
    }

    fn open_node(&mut self) -> Option<&mut Node> {
        usize::try_from(self.open).ok().and_then(|open| self.nodes.get_mut(open))
    }

    fn check_keys(&mut self) -> Result<(), Fault> {
        self.store_count();
        let nodes = Nodes { text: self.text, unescaped: &self.unescaped, nodes: &self.nodes };
        let style = keys::check(nodes, self.open, &mut self.scratch)
            .map_err(|duplicate| Fault { kind: duplicate.kind, offset: duplicate.offset })?;
        if let Some(object) = self.open_node() {
            object.style = style;
        }
        Ok(())
    }

    fn skip_whitespace(&mut self) {
        while let [b' ' | b'\n' | b'\r' | b'\t', rest @ ..] = self.rest {
            self.rest = rest;
        }
    }

    fn next_index(&self) -> NodeIndex {
        narrow(self.nodes.len())
    }

    fn offset(&self) -> usize {
        self.text.len().saturating_sub(self.rest.len())
    }

    fn fault(&self, kind: JsonErrorKind) -> Fault {
        Fault { kind, offset: self.offset() }
    }

    fn fault_or_end(&self, kind: JsonErrorKind) -> Fault {
        self.fault(if self.rest.is_empty() { JsonErrorKind::UnexpectedEnd } else { kind })
    }
}

/// Reads `\uXXXX`.
fn unicode_unit(text: &[u8]) -> Option<(u32, &[u8])> {
    let [b'\\', b'u', a, b, c, d, rest @ ..] = text else { return None };
    let digit = |byte: &u8| char::from(*byte).to_digit(16);
    let unit = digit(a)? << 12 | digit(b)? << 8 | digit(c)? << 4 | digit(d)?;
    Some((unit, rest))
}

/// Offsets and indices fit: the limits keep texts below 16 MiB and nodes (keys included) below two million.
fn narrow(number: usize) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}
