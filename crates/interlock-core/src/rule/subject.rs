//! What rules look at: the arguments of an action, the paths and the hosts it names.

use std::collections::{BTreeMap, BTreeSet};

use super::pattern::fold_case;
use crate::action::ActionText;
use crate::json::{self, Content, Value};

/// Parameters that hold a path, whatever it looks like.
const PATH_NAMES: [&str; 9] =
    ["path", "file", "filename", "file_path", "directory", "source", "destination", "folder", "dir"];
/// Parameters that hold a host or an address.
const HOST_NAMES: [&str; 5] = ["url", "uri", "host", "hostname", "endpoint"];

/// Everything in an action that a rule may ask about.
#[derive(Debug, Default)]
pub(super) struct Subject {
    /// The scalar parameters by dotted name; an item of an array has the name of the array.
    pub(super) arguments: BTreeMap<String, Vec<String>>,
    pub(super) paths: BTreeSet<PathText>,
    /// In lower case.
    pub(super) hosts: BTreeSet<String>,
}

/// A path as far as it can be known here.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum PathText {
    Absolute(String),
    Relative(String),
    /// It may lead anywhere.
    Unresolvable,
}

impl Subject {
    pub(super) fn read(action: &ActionText<'_>, governed: bool) -> Subject {
        let mut subject = Subject::default();
        let texts =
            [("target", true, action.target), ("query", governed, action.query), ("code", governed, action.code)];
        for (name, counts, text) in texts {
            if let Some(text) = text.filter(|_| counts).and_then(|text| text.as_str()) {
                subject.add_text(name, text.text());
                subject.arguments.entry(name.to_owned()).or_default().push(text.text().to_owned());
            }
        }
        if let Some(parameters) = action.parameters {
            subject.add_value(&mut String::new(), "", parameters);
        }
        subject
    }

    /// Depth is bounded by the parser.
    fn add_value(&mut self, name: &mut String, key: &str, value: Value<'_>) {
        match value.content() {
            Some(Content::Object(members)) => {
                for (key, member) in members {
                    let length = name.len();
                    if !name.is_empty() {
                        name.push('.');
                    }
                    name.push_str(key.text());
                    self.add_value(name, key.text(), member);
                    name.truncate(length);
                }
            }
            Some(Content::Array(items)) => items.for_each(|item| self.add_value(name, key, item)),
            Some(Content::String(text)) => {
                self.add_text(key, text.text());
                self.arguments.entry(name.clone()).or_default().push(text.text().to_owned());
            }
            Some(Content::Number(_) | Content::Boolean(_) | Content::Null) => {
                self.arguments.entry(name.clone()).or_default().push(json::canonical(value));
            }
            None => {}
        }
    }

    fn add_text(&mut self, key: &str, text: &str) {
        let names = |list: &[&str]| list.iter().any(|name| key.eq_ignore_ascii_case(name));
        if let Some(host) = host_of(text, names(&HOST_NAMES)) {
            self.hosts.insert(host);
            return;
        }
        let looks_like_path = text.contains(['/', '\\', '\0']) || text.starts_with(['~', '.']);
        if names(&PATH_NAMES) || (looks_like_path && !text.contains(char::is_whitespace)) {
            self.paths.insert(PathText::resolve(text));
        }
    }
}

/// The host of an address; a bare word counts where a host is expected.
fn host_of(text: &str, expected: bool) -> Option<String> {
    let rest = match text.split_once("://") {
        Some((scheme, rest)) if scheme.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"+-.".contains(&byte)) => {
            if scheme.eq_ignore_ascii_case("file") {
                return None;
            }
            rest
        }
        Some(_) | None if expected => text.trim_start_matches('/'),
        Some(_) | None => return None,
    };
    let authority = rest.split(['/', '?', '#', '\\']).next().unwrap_or("");
    let host = authority.rsplit_once('@').map_or(authority, |(_, host)| host);
    let host = match host.strip_prefix('[').and_then(|host| host.split_once(']')) {
        Some((address, _)) => address,
        None => host.split(':').next().unwrap_or(""),
    };
    let host = host.trim_end_matches('.').to_lowercase();
    (!host.is_empty()).then_some(host)
}

impl PathText {
    fn resolve(text: &str) -> PathText {
        let text = text.strip_prefix("file://").unwrap_or(text);
        let folded = fold_case(text).replace('\\', "/");
        let folded = match folded.as_bytes() {
            // A drive letter.
            [b'a'..=b'z', b':', b'/', ..] => {
                folded.split_at_checked(2).map_or_else(String::new, |(_, path)| path.to_owned())
            }
            _ => folded,
        };
        if folded.starts_with('~') || folded.contains(['\0', '$', '*', '?', '`', '%']) {
            return PathText::Unresolvable;
        }
        let absolute = folded.starts_with('/');
        let mut names: Vec<&str> = Vec::new();
        for name in folded.split('/') {
            match name {
                "" | "." => {}
                ".." if names.pop().is_none() && !absolute => return PathText::Unresolvable,
                ".." => {}
                name => names.push(name),
            }
        }
        // Through these the whole disk can be reached under another name.
        if absolute && matches!(names.first(), Some(&"proc" | &"dev")) {
            return PathText::Unresolvable;
        }
        let joined = names.join("/");
        if absolute { PathText::Absolute(format!("/{joined}")) } else { PathText::Relative(joined) }
    }
}
