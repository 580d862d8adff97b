//! What rules look at: the arguments of an action, the paths and the hosts it names.
//!
//! An action names a path or a host in many ways, and what is overlooked is let through. So every string counts that
//! could be one, keys of objects included; what cannot be read for certain is taken for what a rule would object to.

use std::collections::{BTreeMap, BTreeSet};

use super::pattern::fold_case;
use crate::action::ActionText;
use crate::json::{self, Content, Value};

/// Parameters that hold a path, whatever it looks like.
const PATH_NAMES: [&str; 6] = ["path", "file", "directory", "folder", "source", "destination"];
/// Parameters that hold a host or an address, whatever it looks like.
const HOST_NAMES: [&str; 6] = ["url", "uri", "host", "endpoint", "domain", "server"];
/// Schemes that are written without slashes now and then.
const NETWORK_SCHEMES: [&str; 6] = ["http", "https", "ws", "wss", "ftp", "ssh"];
/// A path that is longer may lead anywhere.
const PATH_BYTES_MAX: usize = 4_096;
/// Arguments with longer names are known by no rule.
const NAME_BYTES_MAX: usize = 256;
/// Stands for a host that two readers could read differently; no rule lists it.
pub(super) const UNREADABLE_HOST: &str = "\u{1}";

/// Everything in an action that a rule may ask about.
#[derive(Debug, Default)]
pub(super) struct Subject {
    /// The scalar parameters that rules know, by dotted name; an item of an array has the name of the array.
    pub(super) arguments: BTreeMap<String, Vec<String>>,
    pub(super) paths: BTreeSet<PathText>,
    /// In lower case.
    pub(super) hosts: BTreeSet<String>,
    /// The words of simple commands; `None` where a word is not known. Actions have none.
    pub(super) commands: Vec<Vec<Option<String>>>,
}

/// A path as far as it can be known here. Case is folded.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum PathText {
    /// Written out from the root.
    Absolute(String),
    /// Its base is not known, or `..` leads through what may be a link; this is how it ends.
    Floating(String),
    /// A word that may be the name of a file.
    Word(String),
    /// It may lead anywhere.
    Unresolvable,
}

/// How much of an action's text is arguments.
#[derive(Debug, Clone, Copy)]
pub(super) struct Reading<'a> {
    /// All of it: no verifier reads it.
    pub(super) governed: bool,
    /// `target` is an address.
    pub(super) calls_out: bool,
    /// The arguments rules ask about.
    pub(super) known: &'a BTreeSet<String>,
}

impl Subject {
    pub(super) fn read(action: &ActionText<'_>, reading: Reading<'_>) -> Subject {
        let mut subject = Subject::default();
        let governed = reading.governed;
        let target = if reading.calls_out { "url" } else { "path" };
        let texts = [(target, true, action.target), ("", governed, action.query), ("", governed, action.code)];
        for ((key, counts, text), name) in texts.into_iter().zip(["target", "query", "code"]) {
            if let Some(text) = text.filter(|_| counts).and_then(|text| text.as_str()) {
                subject.add_text(key, text.text());
                subject.add_argument(reading, name, || text.text().to_owned());
            }
        }
        if let Some(parameters) = action.parameters {
            subject.add_value(reading, &mut String::new(), "", parameters);
        }
        subject
    }

    /// Depth is bounded by the parser.
    fn add_value(&mut self, reading: Reading<'_>, name: &mut String, key: &str, value: Value<'_>) {
        match value.content() {
            Some(Content::Object(members)) => {
                for (key, member) in members {
                    let key = key.text();
                    // Most keys are plain words; those that are not may name what is to be touched.
                    if key.contains(['/', '\\', '.', '~']) {
                        self.add_text("", key);
                    }
                    let length = name.len();
                    // A name that is too long is cut, and then no rule knows it.
                    if name.len().saturating_add(key.len()) <= NAME_BYTES_MAX {
                        if !name.is_empty() {
                            name.push('.');
                        }
                        name.push_str(&fold_case(key));
                    } else {
                        name.push('\0');
                    }
                    self.add_value(reading, name, key, member);
                    name.truncate(length);
                }
            }
            Some(Content::Array(items)) => items.for_each(|item| self.add_value(reading, name, key, item)),
            Some(Content::String(text)) => {
                self.add_text(key, text.text());
                self.add_argument(reading, name, || text.text().to_owned());
            }
            Some(Content::Number(_) | Content::Boolean(_) | Content::Null) => {
                self.add_argument(reading, name, || json::canonical(value));
            }
            None => {}
        }
    }

    fn add_argument(&mut self, reading: Reading<'_>, name: &str, value: impl FnOnce() -> String) {
        if reading.known.contains(name) {
            self.arguments.entry(name.to_owned()).or_default().push(fold_value(&value()));
        }
    }

    fn add_text(&mut self, key: &str, text: &str) {
        let key = key.to_ascii_lowercase();
        let names = |list: &[&str]| list.iter().any(|name| key.contains(name));
        self.add_hosts(text, names(&HOST_NAMES));
        // What has a scheme is an address; what only looks like one may be a path all the same.
        if text.contains("://") && !text.trim_start().to_ascii_lowercase().starts_with("file:") {
            return;
        }
        let expected = names(&PATH_NAMES);
        if names(&HOST_NAMES) && !expected {
            return;
        }
        let written_out = text.trim_start().starts_with(['/', '~', '.', '\\']);
        if expected || written_out || !text.trim().contains(char::is_whitespace) {
            self.paths.insert(PathText::resolve(text, expected));
        }
    }

    /// Every address in a text; the whole of it where an address is expected.
    fn add_hosts(&mut self, text: &str, expected: bool) {
        let mut rest = text;
        while let Some((before, after)) = rest.split_once("://") {
            let scheme = before.rsplit(|c: char| !c.is_ascii_alphanumeric() && !matches!(c, '+' | '-' | '.')).next();
            if !scheme.is_some_and(|scheme| scheme.eq_ignore_ascii_case("file")) {
                self.add_authority(after);
            }
            rest = after;
        }
        let trimmed = text.trim();
        let bare = trimmed.split_once(':').and_then(|(scheme, after)| {
            let known = NETWORK_SCHEMES.iter().any(|known| scheme.eq_ignore_ascii_case(known));
            (known && !after.starts_with("//")).then_some(after)
        });
        let address = trimmed.starts_with("//") || trimmed.starts_with("\\\\") || expected;
        if let Some(after) = bare {
            self.add_authority(after.trim_start_matches(['/', '\\']));
        } else if address && !trimmed.contains("://") && !trimmed.is_empty() {
            self.add_authority(trimmed.trim_start_matches(['/', '\\']));
        }
    }

    /// The host that the beginning of a text names.
    fn add_authority(&mut self, rest: &str) {
        let authority = rest.split(['/', '?', '#']).next().unwrap_or("");
        let authority = authority.split(char::is_whitespace).next().unwrap_or("");
        let odd = |c: char| c.is_control() || !c.is_ascii() || matches!(c, '\\' | '%' | '"' | '<' | '>' | '{' | '}');
        let host = authority.rsplit_once('@').map_or(authority, |(_, host)| host);
        let host = match host.strip_prefix('[').and_then(|host| host.split_once(']')) {
            Some((address, _)) => address,
            None => host.split(':').next().unwrap_or(""),
        };
        let host = host.trim_end_matches(['.', ',', ';', ')', '\'']).to_ascii_lowercase();
        // Readers disagree about these, so whatever is listed, this is not.
        let unreadable = authority.contains(odd) || host.is_empty();
        self.hosts.insert(if unreadable { UNREADABLE_HOST.to_owned() } else { host });
    }
}

/// The hosts that a text names; all of it is an address where one is expected. `None` is a host that two readers could
/// read differently.
pub fn hosts_in(text: &str, expected: bool) -> Vec<Option<String>> {
    let mut subject = Subject::default();
    subject.add_hosts(text, expected);
    subject.hosts.into_iter().map(|host| (host != UNREADABLE_HOST).then_some(host)).collect()
}

/// Values are compared as careless readers do: without case and blanks around them, numbers by their value.
pub(super) fn fold_value(text: &str) -> String {
    let text = text.trim();
    if text.starts_with(|c: char| c.is_ascii_digit() || c == '-')
        && let Ok(number) = json::parse(text, &json::Limits::CONFIG)
        && number.root().as_number().is_some()
    {
        return fold_case(&json::by_value(number.root()));
    }
    fold_case(text)
}

impl PathText {
    fn resolve(text: &str, expected: bool) -> PathText {
        let text = text.trim();
        let text = text.strip_prefix("file://").unwrap_or(text);
        if text.len() > PATH_BYTES_MAX {
            return PathText::Unresolvable;
        }
        let folded = fold_case(text).replace('\\', "/");
        let folded = match folded.as_bytes() {
            // A drive letter.
            [b'a'..=b'z', b':', b'/', ..] => {
                folded.split_at_checked(2).map_or_else(String::new, |(_, path)| path.to_owned())
            }
            _ => folded,
        };
        let has_slash = folded.contains('/');
        // What a shell or a careless reader would expand. Questions and percents are common in what is no path.
        let special = folded.contains(['\0', '$', '*', '`']) || (expected && folded.contains(['?', '%']));
        if folded.starts_with('~') || (special && (has_slash || expected)) {
            return PathText::Unresolvable;
        }
        let absolute = folded.starts_with('/');
        let (mut names, mut floats): (Vec<&str>, bool) = (Vec::new(), !absolute);
        for name in folded.split('/') {
            match name {
                "" | "." => {}
                ".." => {
                    // What was before it may be a link to anywhere.
                    floats |= names.pop().is_some();
                }
                name => names.push(name),
            }
        }
        // Through these the whole disk can be reached under another name.
        if absolute && matches!(names.first(), Some(&"proc" | &"dev")) {
            return PathText::Unresolvable;
        }
        let joined = format!("/{}", names.join("/"));
        match (floats, has_slash || expected) {
            (false, _) => PathText::Absolute(joined),
            (true, true) => PathText::Floating(joined),
            (true, false) => PathText::Word(joined),
        }
    }
}
