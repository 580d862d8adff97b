//! JSON into the tree, by the strict parser.

use interlock_core::json::{self, Content, JsonErrorKind, Value};

use super::node::{Member, Node, NodeValue};
use super::problem::{Path, ProblemList, quoted};
use super::{Limits, READ_DEPTH_MAX};

/// The tree of a JSON text; `None` if there is none to speak of.
pub(super) fn read(text: &str, limits: &Limits, errors: &mut ProblemList) -> Option<Node> {
    match json::parse(text, &limits.of_json()) {
        Ok(document) => Some(node(document.root(), &Path::Root, 0, limits, errors)),
        Err(error) => {
            let message = match &error.kind {
                JsonErrorKind::Expected(_) | JsonErrorKind::UnexpectedEnd | JsonErrorKind::TrailingText => {
                    format!("this is not JSON: {}", error.kind)
                }
                JsonErrorKind::TooDeep { limit, .. } => format!("nested more than {limit} deep"),
                JsonErrorKind::DuplicateKey(key) | JsonErrorKind::DuplicateNormalizedKey(key) => {
                    format!("the key {} stands twice", quoted(key))
                }
                JsonErrorKind::NotUtf8
                | JsonErrorKind::ByteOrderMark
                | JsonErrorKind::NonStandardConstant(_)
                | JsonErrorKind::ControlCharacter
                | JsonErrorKind::BadEscape
                | JsonErrorKind::LoneSurrogate
                | JsonErrorKind::TooManyBytes(_)
                | JsonErrorKind::TooManyNodes(_)
                | JsonErrorKind::TooManyDigits(_)
                | JsonErrorKind::ExponentTooLarge(_) => error.kind.to_string(),
            };
            errors.add(&(error.offset..error.offset.saturating_add(1)), &Path::Root, message);
            None
        }
    }
}

fn node(value: Value<'_>, path: &Path<'_>, depth: usize, limits: &Limits, errors: &mut ProblemList) -> Node {
    let span = value.span();
    if depth > READ_DEPTH_MAX {
        return Node::refused(span); // Not reached: the parser's limit is lower.
    }
    let deeper = depth.saturating_add(1);
    let value = match value.content() {
        Some(Content::Null) | None => NodeValue::Null,
        Some(Content::Boolean(boolean)) => NodeValue::Bool(boolean),
        Some(Content::Number(number)) => {
            let read = Node::number(number.literal(), span.clone(), limits);
            return read.unwrap_or_else(|| {
                errors.add(&span, path, "this number is not supported");
                Node::refused(span.clone())
            });
        }
        Some(Content::String(text)) => return Node::string(text.text(), span),
        Some(Content::Array(items)) => NodeValue::Array(
            items
                .enumerate()
                .map(|(position, item)| node(item, &path.item(position), deeper, limits, errors))
                .collect(),
        ),
        Some(Content::Object(members)) => {
            let members = members
                .map(|(key, member)| Member {
                    key: key.text().to_owned(),
                    key_span: member.key_span(),
                    value: node(member, &path.key(key.text()), deeper, limits, errors),
                })
                .collect();
            return Node::object(members, span, path, errors);
        }
    };
    Node { value, span }
}
