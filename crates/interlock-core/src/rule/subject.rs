//! What rules look at: the arguments of an action, the paths and the hosts it names.
//!
//! An action names a path or a host in many ways, and what is overlooked is let through. So every string counts that
//! could be one, keys of objects included; what cannot be read for certain is taken for what a rule would object to.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use super::call::CallPath;
use super::command::{CommandLine, shell_quoted};
use super::pattern::fold_case;
use super::{address, argument};
use crate::action::ActionText;
use crate::call::{Effect, McpTool};
use crate::field_names::{Meaning, holds_path_or_address, may_hold};
use crate::json::{self, Content, Value};

/// Devices that are no way to anything else.
const PLAIN_DEVICES: [&str; 5] = ["null", "zero", "full", "random", "urandom"];
/// Who names more paths, or more hosts, may name any.
const NAMED_LEN_MAX: usize = 8_192;
/// The most command lines of one action that the grammar reads; others count as not understood.
pub(super) const LINES_MAX: usize = 32;
/// No system opens a path that is longer.
const PATH_BYTES_MAX: usize = 4_096;
/// Arguments with longer names are known by no rule.
const NAME_BYTES_MAX: usize = 256;
/// Stands for a host that two readers could read differently; no rule lists it, and every other rule may be about it.
pub(super) const UNREADABLE_HOST: &str = "\u{1}";
/// Stands for a host that a call reaches without naming it; no rule lists it.
pub(super) const UNNAMED_HOST: &str = "\u{2}";

/// Everything in an action or a call that a rule may ask about, and how the door at which it was handed in knows it.
#[derive(Debug)]
pub(super) struct Subject<'a> {
    pub(super) identity: Identity<'a>,
    /// The scalar parameters that rules know, by dotted name; an item of an array has the name of the array.
    pub(super) arguments: BTreeMap<String, Vec<String>>,
    pub(super) paths: BTreeSet<TouchedPath>,
    /// Paths that a sentence or a list speaks of. Whether they are touched nobody knows, so whatever a rule says of them,
    /// a person has to look.
    pub(super) mentioned: BTreeSet<TouchedPath>,
    pub(super) hosts: BTreeSet<ReachedHost>,
    /// The words of simple commands; `None` where a word is not known.
    pub(super) commands: Cow<'a, [Vec<Option<String>>]>,
    /// Places that are Interlock's own, in lower case like those that follow.
    pub(super) own: Cow<'a, [String]>,
    /// Those of them that go with what is above them when that is taken away.
    pub(super) own_if_removed: Cow<'a, [String]>,
    /// Those of them that are read with what is above them.
    pub(super) own_if_swept: Cow<'a, [String]>,
    /// Directories in which everything runs later.
    pub(super) armed: Vec<String>,
    /// All of it is known as the machine has it: links are followed, and each thing belongs to its command.
    pub(super) is_resolved: bool,
    /// That it reaches hosts nobody can name is known.
    pub(super) is_registered: bool,
}

/// What rules are compared with by what they are about.
#[derive(Debug, Clone, Copy)]
pub(super) enum Identity<'a> {
    /// An action, by the name it is registered under.
    Action(&'a str),
    /// A tool call.
    Call {
        /// The tool as its host names it, and its family.
        names: &'a [&'a str],
        /// Server and tool, if it is one of MCP.
        mcp: Option<&'a McpTool>,
        /// What the call does.
        effects: &'a [Effect],
    },
}

impl Identity<'_> {
    /// Whether whatever it names may be written. Of a call each path says that for itself.
    pub(super) fn writes(&self) -> bool {
        matches!(self, Identity::Action("file_write" | "file_delete"))
    }
}

/// A path that an action or a call touches, or may.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct TouchedPath {
    pub(super) text: PathText,
    pub(super) writes: bool,
    /// It is taken away, moved or changed with all that is in it.
    pub(super) removes: bool,
    /// All that is in it is read.
    pub(super) sweeps: bool,
    /// The command that touches it, by its position among the commands.
    pub(super) command: Option<usize>,
}

impl TouchedPath {
    fn named(text: PathText) -> TouchedPath {
        TouchedPath { text, writes: false, removes: false, sweeps: false, command: None }
    }
}

/// A host that an action or a call reaches.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct ReachedHost {
    /// In lower case.
    pub(super) host: String,
    /// The command that reaches it, by its position among the commands.
    pub(super) command: Option<usize>,
}

impl ReachedHost {
    /// Its name, if it has one that all read alike.
    pub(super) fn name(&self) -> Option<&str> {
        Some(self.host.as_str()).filter(|host| *host != UNREADABLE_HOST && *host != UNNAMED_HOST)
    }
}

/// A path as far as it can be known here. Case is folded.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum PathText {
    /// Written out from the root, as the machine has it: links are followed.
    Resolved(String),
    /// Written out from the root.
    Absolute(String),
    /// Its base is not known, or `..` leads through what may be a link; this is how it ends.
    Floating(String),
    /// A word that may be the name of a file.
    Word(String),
    /// It may lead anywhere.
    Unresolvable,
    /// A command line or a text in which a path may be put together that leads anywhere. Most do not lead to us, so
    /// where a shipped rule would refuse, a person has to look.
    Anywhere,
}

/// What an action's own text is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Language {
    /// Nobody reads it but the rules.
    Words,
    /// A line for a shell.
    CommandLine,
    /// A program, in whatever language.
    Program,
    /// A statement for a database. The addresses in it are data.
    Statement,
    /// A calculation or a claim, which touches nothing.
    Claim,
}

/// How an action is read.
pub(super) struct ActionReader<'a> {
    /// What `query` and `code` are.
    pub(super) language: Language,
    /// `target` is an address.
    pub(super) calls_out: bool,
    /// The arguments rules ask about.
    pub(super) known: &'a BTreeSet<String>,
    /// Reads command lines.
    pub(super) read_line: &'a mut dyn FnMut(&str) -> CommandLine,
    /// How many of them it still reads.
    pub(super) lines_left: usize,
}

impl<'a> Subject<'a> {
    /// An action. `own` are the places of this very server.
    pub(super) fn of_action(
        identity: &'a str,
        action: &ActionText<'_>,
        reader: &mut ActionReader<'_>,
        own: &'a [String],
    ) -> Subject<'a> {
        let own = Cow::Borrowed(own);
        let mut subject = Subject {
            identity: Identity::Action(identity),
            arguments: BTreeMap::new(),
            paths: BTreeSet::new(),
            mentioned: BTreeSet::new(),
            hosts: BTreeSet::new(),
            commands: Cow::Borrowed(&[]),
            own_if_removed: own.clone(),
            own_if_swept: own.clone(),
            own,
            armed: Vec::new(),
            is_resolved: false,
            is_registered: false,
        };
        subject.read(action, reader);
        subject
    }

    fn read(&mut self, action: &ActionText<'_>, reader: &mut ActionReader<'_>) {
        let target = if reader.calls_out { "url" } else { "path" };
        if let Some(text) = action.target.and_then(|text| text.as_str()) {
            self.add_text(reader, target, text.text());
            self.add_argument(reader, "target", || text.text().to_owned());
        }
        for (name, text) in [("query", action.query), ("code", action.code)] {
            let Some(text) = text.and_then(|text| text.as_str()) else { continue };
            match reader.language {
                Language::Words => {
                    // What the tool does with it nobody knows.
                    if name == "code" {
                        self.add_line(reader, text.text());
                        self.add_program(text.text());
                    } else {
                        self.add_text(reader, "", text.text());
                    }
                    self.add_argument(reader, name, || text.text().to_owned());
                }
                Language::CommandLine => self.add_line(reader, text.text()),
                Language::Program => {
                    self.add_line(reader, text.text());
                    self.add_program(text.text());
                }
                Language::Statement => mentioned_in(text.text(), |path| self.add_path(path)),
                Language::Claim => {}
            }
        }
        if let Some(parameters) = action.parameters {
            self.add_value(reader, &mut String::new(), "", parameters);
        }
        self.bound();
    }

    /// Whoever names very many may name any, and nobody has to look at each.
    fn bound(&mut self) {
        for paths in [&mut self.paths, &mut self.mentioned] {
            if paths.len() > NAMED_LEN_MAX {
                let writes = paths.iter().any(|path| path.writes);
                *paths = [TouchedPath { writes, ..TouchedPath::named(PathText::Anywhere) }].into();
            }
        }
        if self.hosts.len() > NAMED_LEN_MAX {
            self.hosts = [ReachedHost { host: UNREADABLE_HOST.to_owned(), command: None }].into();
        }
    }

    /// Depth is bounded by the parser.
    fn add_value(&mut self, reader: &mut ActionReader<'_>, name: &mut String, key: &str, value: Value<'_>) {
        match value.content() {
            Some(Content::Object(members)) => {
                let parent = key;
                for (key, member) in members {
                    let key = key.text();
                    // Most keys are plain words; those that are not may name what is to be touched.
                    if key.contains(['/', '\\', '.', '~']) {
                        self.add_text(reader, "", key);
                    }
                    let length = name.len();
                    // A name that is too long is cut, and then no rule knows it.
                    if name.len().saturating_add(key.len()) <= NAME_BYTES_MAX {
                        if !name.is_empty() {
                            name.push('.');
                        }
                        name.push_str(&fold_name(key));
                    } else {
                        name.push('\0');
                    }
                    // What is within a command line's parameter is a part of the line.
                    let within = may_hold(parent, Meaning::CommandLine).then(|| format!("{parent} {key}"));
                    self.add_value(reader, name, within.as_deref().unwrap_or(key), member);
                    name.truncate(length);
                }
            }
            Some(Content::Array(items)) => {
                if may_hold(key, Meaning::CommandLine) {
                    // Its items may be lines; or all of them the words of one.
                    let words = items.filter_map(|item| Some(shell_quoted(item.as_str()?.text())));
                    let words: Vec<String> = words.collect();
                    self.add_line(reader, &words.join(" "));
                }
                items.for_each(|item| self.add_value(reader, name, key, item));
            }
            Some(Content::String(text)) => {
                self.add_text(reader, key, text.text());
                self.add_argument(reader, name, || text.text().to_owned());
            }
            Some(Content::Number(_) | Content::Boolean(_) | Content::Null) => {
                self.add_argument(reader, name, || json::canonical(value));
            }
            None => {}
        }
    }

    fn add_argument(&mut self, reader: &ActionReader<'_>, name: &str, value: impl FnOnce() -> String) {
        argument::note(&mut self.arguments, reader.known, name, value);
    }

    fn add_text(&mut self, reader: &mut ActionReader<'_>, key: &str, text: &str) {
        let (expected, is_address) = holds_path_or_address(key);
        if may_hold(key, Meaning::CommandLine) {
            self.add_line(reader, text);
            if !expected && !is_address {
                return;
            }
        }
        self.add_hosts(text, is_address);
        if expected || !is_address {
            mentioned_in(text, |path| add_to(&mut self.mentioned, TouchedPath::named(path)));
        }
        // What has a scheme is an address; what only looks like one may be a path all the same.
        if text.contains("://") && !text.trim_start().to_ascii_lowercase().starts_with("file:") {
            return;
        }
        if is_address && !expected {
            return;
        }
        if expected || may_be_one_path(text.trim()) {
            PathText::resolve(text, expected).into_iter().for_each(|path| self.add_path(path));
        }
    }

    fn add_path(&mut self, path: PathText) {
        add_to(&mut self.paths, TouchedPath::named(path));
    }

    fn add_host(&mut self, host: String) {
        add_to(&mut self.hosts, ReachedHost { host, command: None });
    }

    /// What a command line names, as the shell's grammar reads it. What that does not understand is read as a program.
    fn add_line(&mut self, reader: &mut ActionReader<'_>, text: &str) {
        let line = match reader.lines_left.checked_sub(1) {
            Some(left) => {
                reader.lines_left = left;
                (reader.read_line)(text)
            }
            None => CommandLine::default(),
        };
        for touched in line.paths {
            let paths = touched.path.as_deref().map_or_else(|| vec![PathText::Anywhere], PathText::all_of_word);
            let CallPath { writes, removes, sweeps, .. } = touched;
            for text in paths {
                add_to(&mut self.paths, TouchedPath { writes, removes, sweeps, ..TouchedPath::named(text) });
            }
        }
        for reached in line.hosts {
            self.add_host(reached.host.unwrap_or_else(|| UNNAMED_HOST.to_owned()));
        }
        self.commands.to_mut().extend(line.commands);
        if !line.is_understood {
            self.add_program(text);
        }
    }

    /// The paths and hosts that a program names, or may name, in whatever language it is written.
    fn add_program(&mut self, text: &str) {
        self.add_hosts(text, false);
        // What is put together out of something else may be any path.
        if text.contains(['$', '`']) {
            self.add_path(PathText::Anywhere);
        }
        let is_between = |c: char| c.is_whitespace() || "`<>()|;,:=&".contains(c);
        let is_quote = |c: char| matches!(c, '"' | '\'');
        // As it is written, with a line in quotes read as well; and as a shell joins what is quoted in part.
        let joined = text.contains(|c| is_quote(c) || c == '\\');
        let joined: String =
            if joined { text.chars().filter(|c| !is_quote(*c) && *c != '\\').collect() } else { String::new() };
        for word in text.split(|c| is_between(c) || is_quote(c)).chain(joined.split(is_between)) {
            let is_place = word.contains('/') || word.starts_with('~');
            if is_place && word.contains(['*', '?', '[', '{']) {
                self.add_path(PathText::Anywhere);
            }
            PathText::all_of_word(word).into_iter().for_each(|path| self.add_path(path));
        }
    }

    /// Every address in a text; the whole of it where an address is expected.
    fn add_hosts(&mut self, text: &str, expected: bool) {
        address::hosts_in(text, expected, |host| self.add_host(host.unwrap_or_else(|| UNREADABLE_HOST.to_owned())));
    }
}

/// The hosts that a text names; all of it is an address where one is expected. `None` is a host that two readers could
/// read differently.
pub fn hosts_in(text: &str, expected: bool) -> Vec<Option<String>> {
    let mut hosts = BTreeSet::new();
    address::hosts_in(text, expected, |host| add_to(&mut hosts, host));
    hosts.into_iter().collect()
}

/// Adds what is named to what was named before, until there is more than anybody looks at.
fn add_to<T: Ord>(named: &mut BTreeSet<T>, one: T) {
    if named.len() <= NAMED_LEN_MAX {
        named.insert(one);
    }
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

/// The paths that a sentence, a list or a statement mentions, if it is more than one word.
fn mentioned_in(text: &str, mut found: impl FnMut(PathText)) {
    let is_between = |c: char| c.is_whitespace() || "\"'`<>(){}[]|;,:=&".contains(c);
    if !text.contains(['/', '\\']) || !text.contains(is_between) {
        return;
    }
    for piece in text.split(is_between) {
        let piece = piece.trim_end_matches(['.', '!', '?']);
        if !piece.contains(['/', '\\']) || piece.starts_with("//") {
            continue;
        }
        let begins_path = piece.starts_with(['/', '\\', '.']);
        let path = match piece.strip_prefix('~') {
            Some(rest) => rest.split_once('/').and_then(|(_, rest)| PathText::resolve_within(rest)),
            None if begins_path => PathText::resolve(piece, false),
            None => PathText::resolve_within(piece).map(PathText::into_word),
        };
        path.into_iter().for_each(|path| found(path.within_text()));
    }
}

/// Names are compared without case and without blanks around them.
pub(super) fn fold_name(name: &str) -> String {
    fold_case(name).trim().to_owned()
}

/// Whether a text as a whole may be a path, though nothing says so: a word, or what begins as paths do or turns back on
/// its way. Else it is a sentence.
fn may_be_one_path(text: &str) -> bool {
    if !text.contains(char::is_whitespace) {
        // `~5` is about five; `~`, `~name` and `~/x` are somebody's home.
        let is_about = text.strip_prefix('~').is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()));
        return !is_about || text.contains(['/', '\\']);
    }
    let first = text.split(char::is_whitespace).next().unwrap_or(text);
    let turns_back = text.split(['/', '\\']).any(|name| name.trim() == "..");
    text.starts_with(['/', '\\']) || text.starts_with(['.', '~']) && first.contains(['/', '\\']) || turns_back
}

impl PathText {
    /// What a word of a command line may lead to.
    fn all_of_word(word: &str) -> Vec<PathText> {
        let (base, path) = match word.strip_prefix('~') {
            Some(rest) => {
                // Wherever that is, it is not the root.
                let within = rest.split_once('/').and_then(|(_, rest)| PathText::resolve_within(rest));
                (Some(PathText::Anywhere), within.map(PathText::into_word))
            }
            None if word.contains('/') => (None, PathText::resolve(word, false)),
            None => (None, PathText::resolve_within(word).map(PathText::into_word)),
        };
        base.into_iter().chain(path.map(PathText::within_text)).collect()
    }

    /// The same, where more than it is in the text.
    fn within_text(self) -> PathText {
        if self == PathText::Unresolvable { PathText::Anywhere } else { self }
    }

    /// The same, where it is no more than a word.
    fn into_word(self) -> PathText {
        match self {
            PathText::Absolute(path) | PathText::Floating(path) => PathText::Word(path),
            other @ (PathText::Resolved(_) | PathText::Word(_) | PathText::Unresolvable | PathText::Anywhere) => other,
        }
    }

    /// It, if it is known as the machine has it.
    pub(super) fn resolved(&self) -> Option<&str> {
        match self {
            PathText::Resolved(path) => Some(path),
            PathText::Absolute(_)
            | PathText::Floating(_)
            | PathText::Word(_)
            | PathText::Unresolvable
            | PathText::Anywhere => None,
        }
    }

    /// A path whose base is not known, as it is written; nothing in it is expanded.
    fn resolve_within(text: &str) -> Option<PathText> {
        let folded = fold_case(text).replace('\\', "/");
        let names: Vec<&str> = folded.split('/').filter(|name| !matches!(*name, "" | "." | "..")).collect();
        let joined = format!("/{}", names.join("/"));
        (!names.is_empty() && joined.len() <= PATH_BYTES_MAX).then_some(PathText::Floating(joined))
    }

    /// A path as far as its text tells; nothing if it is too long for any system to open.
    fn resolve(text: &str, expected: bool) -> Option<PathText> {
        let text = text.trim();
        let text = text.strip_prefix("file://").unwrap_or(text);
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
            return Some(PathText::Unresolvable);
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
        let is_plain = matches!(names.as_slice(), ["dev", name] if PLAIN_DEVICES.contains(name));
        if absolute && !is_plain && matches!(names.first(), Some(&"proc" | &"dev")) {
            return Some(PathText::Unresolvable);
        }
        let joined = format!("/{}", names.join("/"));
        if joined.len() > PATH_BYTES_MAX {
            return None;
        }
        Some(match (floats, has_slash || expected) {
            (false, _) => PathText::Absolute(joined),
            (true, true) => PathText::Floating(joined),
            (true, false) => PathText::Word(joined),
        })
    }
}
