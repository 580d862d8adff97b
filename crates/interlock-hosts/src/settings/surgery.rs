//! Putting something into a JSON text, and taking it out, without touching any other byte.
//!
//! What we put in remembers by its white space what it was put into. Into an array or object that has something, it
//! goes after the last one, behind a comma. Into an empty one it goes right after the bracket, behind one single space.
//! And an array or object that is there only for our sake begins with a line break. So taking out the only item tells
//! whether what is left was there before: it stays after the space, and goes after the line break.

use core::ops::Range;

use interlock_core::json::{Content, Document, Limits, Value, parse};

use super::Problem;
use crate::envelope::unquoted;

/// The way to a value, from the root.
pub(super) type Path<'p> = &'p [Step];

/// One step of the way to a value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Step {
    Member(String),
    Item(usize),
}

/// Reads a settings file. What our reader does not take as strict JSON, another might read differently: comments,
/// trailing commas, a key that stands twice.
pub(super) fn read(text: &str) -> Result<Document<'_>, Problem> {
    let document = parse(text, &Limits::CONFIG)
        .map_err(|error| Problem::NotStrict(format!("it is not strict JSON: {}", unquoted(&error))))?;
    if document.root().as_object().is_none() {
        return Err(Problem::Shape("it does not hold an object"));
    }
    Ok(document)
}

/// Puts a child into an array or object. `child` is told with which white space its lines begin.
pub(super) fn insert(text: &str, container: Value<'_>, child: impl Fn(&str) -> String) -> Option<String> {
    let inner = Inner::of(text, container)?;
    let Some((last, before)) = inner.children.split_last() else {
        return splice(text, inner.open..inner.open, &format!("{MARK}{}", child("")));
    };
    // As the one before it stands, so does ours.
    let from = before.last().map_or(inner.open, |previous| after_comma(text, previous.end));
    let space = text.get(from..last.start)?;
    let (space, margin) = match space.rsplit_once('\n') {
        Some((_, margin)) => (space, margin),
        None => (MARK, ""),
    };
    splice(text, last.end..last.end, &format!(",{space}{}", child(margin)))
}

/// Takes a value out, and with it what was there only to hold it; nothing is left if that was the whole file.
pub(super) fn remove(text: &str, path: Path<'_>) -> Option<Option<String>> {
    let document = read(text).ok()?;
    let mut path = path;
    // Each turn leaves one step behind.
    while let Some((step, way)) = path.split_last() {
        let container = find(document.root(), way)?;
        let inner = Inner::of(text, container)?;
        let index = position(container, step)?;
        let child = inner.children.get(index)?;
        if inner.children.len() > 1 {
            let cut = match index.checked_sub(1) {
                Some(previous) => inner.children.get(previous)?.end..child.end,
                None => child.start..inner.children.get(1)?.start,
            };
            return Some(Some(splice(text, cut, "")?));
        }
        let lead = text.get(inner.open..child.start)?;
        if lead == MARK {
            return Some(Some(splice(text, inner.open..child.end, "")?));
        }
        if !lead.contains('\n') {
            // Somebody wrote it anew: an empty one does no harm.
            return Some(Some(splice(text, inner.open..inner.close, "")?));
        }
        path = way;
    }
    Some(None)
}

/// The value at the end of a way.
pub(super) fn find<'d>(root: Value<'d>, path: Path<'_>) -> Option<Value<'d>> {
    let mut value = root;
    for step in path {
        value = match step {
            Step::Member(key) => value.get(key)?,
            Step::Item(index) => value.as_array()?.nth(*index)?,
        };
    }
    Some(value)
}

/// What stands before the only child of an array or object that was empty.
const MARK: &str = " ";

/// The inside of an array or object: where it begins and ends, and its children, a member from its key on.
struct Inner {
    open: usize,
    close: usize,
    children: Vec<Range<usize>>,
}

impl Inner {
    fn of(text: &str, container: Value<'_>) -> Option<Inner> {
        let values: Vec<Range<usize>> = match container.content()? {
            Content::Array(items) => items.map(|item| item.span()).collect(),
            Content::Object(members) => members.map(|(_, member)| member.span()).collect(),
            Content::Null | Content::Boolean(_) | Content::Number(_) | Content::String(_) => return None,
        };
        let span = container.span();
        let (open, close) = (span.start.checked_add(1)?, span.end.checked_sub(1)?);
        let mut children = Vec::with_capacity(values.len());
        let mut at = open;
        for value in values {
            let start =
                if children.is_empty() { skip_space(text, at) } else { skip_space(text, after_comma(text, at)) };
            at = value.end;
            children.push(start..value.end);
        }
        Some(Inner { open, close, children })
    }
}

/// Which child a step means.
fn position(container: Value<'_>, step: &Step) -> Option<usize> {
    match step {
        Step::Item(index) => Some(*index),
        Step::Member(key) => container.as_object()?.position(|(name, _)| name.nfc() == key.as_str()),
    }
}

fn skip_space(text: &str, from: usize) -> usize {
    let rest = text.get(from..).unwrap_or_default();
    from.saturating_add(rest.len().saturating_sub(rest.trim_start_matches([' ', '\t', '\n', '\r']).len()))
}

/// The place after the comma that follows a child.
fn after_comma(text: &str, from: usize) -> usize {
    skip_space(text, from).saturating_add(1)
}

fn splice(text: &str, range: Range<usize>, with: &str) -> Option<String> {
    Some([text.get(..range.start)?, with, text.get(range.end..)?].concat())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn put(text: &str, path: &[Step]) -> String {
        let document = read(text).unwrap();
        let array = document.root().get("a").and_then(|value| value.as_array());
        let child = if path.is_empty() { r#""new":1"# } else { "7" };
        assert!(path.is_empty() || array.is_some());
        insert(text, find(document.root(), path).unwrap(), |_| child.to_owned()).unwrap()
    }

    #[test]
    fn what_is_put_in_can_be_taken_out() {
        let array = [Step::Member("a".to_owned())];
        for text in [
            "{}",
            "{ }\n",
            "{\n}\n",
            r#"{"a":[]}"#,
            "{\"a\":[ \n\t]}",
            "{\"a\": [ 1 , 2\n]\n}",
            "{\n  \"a\": [\n    1,\n    2\n  ]\n}\n",
            "{\r\n\t\"a\": [{\"b\": [\"]\"]}]\r\n}",
        ] {
            let with = put(text, &[]);
            assert_eq!(remove(&with, &[Step::Member("new".to_owned())]), Some(Some(text.to_owned())), "{with:?}");
            if text.contains("\"a\"") {
                let with = put(text, &array);
                let document = read(&with).unwrap();
                let last = find(document.root(), &array).unwrap().as_array().unwrap().count() - 1;
                let path = [array[0].clone(), Step::Item(last)];
                assert_eq!(remove(&with, &path), Some(Some(text.to_owned())), "{with:?}");
            }
        }
    }

    #[test]
    fn what_stands_around_stays() {
        let at = |index| [Step::Member("a".to_owned()), Step::Item(index)];
        assert_eq!(remove("{\"a\": [1, 7, 2]}", &at(1)), Some(Some("{\"a\": [1, 2]}".to_owned())));
        assert_eq!(remove("{\"a\": [ 7, 2]}", &at(0)), Some(Some("{\"a\": [ 2]}".to_owned())));
        assert_eq!(remove("{\"a\": [7]}", &at(0)), Some(Some("{\"a\": []}".to_owned())));
        assert_eq!(remove("{\n\"a\": [\n7]}", &at(0)), Some(None), "all of it was there for the one item");
        assert_eq!(remove("{\"b\": 1,\"a\": [\n7]}", &at(0)), Some(Some("{\"b\": 1}".to_owned())));
    }
}
