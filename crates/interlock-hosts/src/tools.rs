//! How the input of a tool is read: by a table of its fields, and by nothing else.
//!
//! The tables are closed. A field that is not in them, or holds something else than its row says, goes to
//! [`Intent::unread`]: what it asks for cannot be told.

use interlock_core::call::{Call, Family, FileChange, Intent, McpTool, lines_changed};
use interlock_core::json::Json;
use interlock_core::rule::shell_quoted;

use crate::{names, patch};

/// A tool of a host.
pub(crate) struct Tool {
    pub(crate) name: &'static str,
    pub(crate) family: Option<Family>,
    /// Fields without which nobody knows what is asked for; one of them is enough.
    pub(crate) needs: &'static [&'static str],
    pub(crate) fields: &'static [(&'static str, Role)],
}

/// What a field means, and with it which values it may hold.
#[derive(Clone, Copy)]
pub(crate) enum Role {
    /// A command line.
    Command,
    /// A command line that goes on behind the agent's back.
    LastingCommand,
    /// Whether the command goes on behind the agent's back.
    Lasting,
    /// A command line, or its words.
    CommandOrWords,
    /// The directory commands are run in.
    Directory,
    /// A file or directory to be read.
    Path,
    /// Several of them, or patterns of them.
    Paths,
    /// The directory to be searched; the working directory if it is not given.
    Root,
    /// A pattern of names beneath the directory to be searched.
    Names,
    /// The same, of files whose contents are shown; some hosts take it apart at blanks and commas.
    ReadNames,
    /// The file to be changed.
    Target,
    /// The same; if a relative path leads to no file, the host takes one in the project whose path ends so.
    Sought,
    /// The file to be deleted.
    Doomed,
    /// All that the target will hold.
    Content,
    /// What is replaced in the target.
    Old,
    /// What it is replaced by.
    New,
    /// Every place where it is found is replaced: nobody knows how many.
    Everywhere,
    /// Replacements, each with its old and new text.
    Edits,
    /// What becomes of a cell of a notebook.
    CellMode,
    /// A patch of several files.
    Patch,
    /// An address.
    Url,
    /// A text whose addresses are visited.
    UrlsIn,
    /// A text that asks for nothing a rule is about.
    Text,
    /// A text for people about the call: the host does the same whatever it says.
    Remark,
    /// A number that asks for nothing a rule is about.
    Number,
    /// A boolean that asks for nothing a rule is about.
    Flag,
    /// A boolean that asks for nothing as long as it is false.
    Off,
    /// A plain word, which names a kind of files.
    Plain,
    /// One of these words; any other asks for something else.
    Word(&'static [&'static str]),
    /// Anything; whatever it holds, nothing is done with it but shown or kept by the host.
    Inert,
}

/// A call of a tool, read by the host's table. A tool of a server is never one of the host's, whatever its name.
pub(crate) fn call(table: &[Tool], name: &str, input: Json, mcp: Option<McpTool>) -> Call {
    let tool = if mcp.is_some() { None } else { table.iter().find(|tool| tool.name == name) };
    let intent = match (tool, input.as_object()) {
        (_, None) => Intent { unread: vec![WHOLE.to_owned()], ..Intent::default() },
        (None, Some(members)) => Intent { unread: members.keys().cloned().collect(), ..Intent::default() },
        (Some(tool), Some(members)) => InputReader::default().tool(tool, members),
    };
    let family = tool.and_then(|tool| tool.family);
    Call { tool: name.to_owned(), family, mcp, input, intent, bookkeeping: false }
}

/// The name of an input that has no fields.
const WHOLE: &str = "$";

/// What was read so far.
#[derive(Default)]
struct InputReader {
    intent: Intent,
    /// A directory is searched: which, and which names in it.
    root: Option<String>,
    names: Option<Vec<String>>,
    target: Option<String>,
    content: Option<String>,
    old: Option<String>,
    new: Option<String>,
    everywhere: bool,
    edits: Option<u64>,
    keeps_cell: Option<bool>,
}

impl InputReader {
    fn tool(mut self, tool: &Tool, members: &std::collections::BTreeMap<String, Json>) -> Intent {
        for (key, value) in members {
            let field = tool.fields.iter().find(|(name, _)| name == key);
            let understood = match field {
                None => false,
                // Null is what some hosts write for absent.
                Some(_) if *value == Json::Null => true,
                Some((_, role)) => self.take(*role, value).is_some(),
            };
            if understood && matches!(field, Some((_, Role::Remark))) {
                self.intent.remarks.push(key.clone());
            }
            if !understood {
                self.intent.unread.push(key.clone());
            }
        }
        let given = |name: &&&str| members.get(**name).is_some_and(|value| *value != Json::Null);
        if let Some(first) = tool.needs.first()
            && !tool.needs.iter().any(|name| given(&name))
        {
            self.intent.unread.push((*first).to_owned());
        }
        self.finish(tool)
    }

    /// Notes what a field asks for; nothing if its value is not what the table says.
    fn take(&mut self, role: Role, value: &Json) -> Option<()> {
        match role {
            Role::Command => self.intent.commands.push(value.as_str()?.to_owned()),
            Role::LastingCommand => {
                self.intent.commands.push(value.as_str()?.to_owned());
                self.intent.goes_on = true;
            }
            Role::Lasting => self.intent.goes_on |= flag(value)?,
            Role::CommandOrWords => self.intent.commands.push(command(value)?),
            Role::Directory => once(&mut self.intent.directory, path(value)?)?,
            Role::Path => self.intent.reads.push(path(value)?),
            Role::Paths => {
                for path in paths(value)? {
                    // Some hosts take a backslash for a slash.
                    let plain = names::alternatives(&path).filter(|_| !path.contains('\\'))?;
                    let (patterns, plain) = plain.into_iter().partition::<Vec<_>, _>(|path| names::is_pattern(path));
                    self.intent.patterns.extend(patterns);
                    self.intent.reads.extend(plain);
                }
            }
            Role::Root => once(&mut self.root, path(value)?)?,
            Role::Names => once(&mut self.names, vec![path(value)?])?,
            Role::ReadNames => {
                let patterns = names::pieces(&path(value)?);
                let is_plain = !patterns.iter().any(|pattern| names::may_find_hidden(pattern));
                once(&mut self.names, patterns)?;
                is_plain.then_some(())?;
            }
            Role::Target => once(&mut self.target, path(value)?)?,
            Role::Sought => {
                let path = path(value)?;
                once(&mut self.target, path.clone())?;
                self.intent.sought.extend((!path.starts_with('/')).then_some(path));
            }
            Role::Doomed => {
                self.intent.writes.push(FileChange { path: path(value)?, lines: None, whole: None, deletes: true });
            }
            Role::Content => once(&mut self.content, value.as_str()?.to_owned())?,
            Role::Old => self.old = Some(value.as_str()?.to_owned()),
            Role::New => self.new = Some(value.as_str()?.to_owned()),
            Role::Everywhere => self.everywhere = flag(value)?,
            Role::Edits => self.edits = edits(value)?,
            Role::CellMode => self.keeps_cell = Some(word(value, &["replace", "insert", "delete"])? == "insert"),
            Role::Patch => self.intent.writes.extend(patch::read(value.as_str()?)?),
            Role::Url => self.intent.urls.push(path(value)?),
            Role::UrlsIn => self.intent.urls.extend(urls_in(value.as_str()?)?),
            Role::Text | Role::Remark => drop(value.as_str()?),
            Role::Number => number(value)?,
            Role::Flag => drop(flag(value)?),
            Role::Off => (!flag(value)?).then_some(())?,
            Role::Plain => value.as_str().filter(|text| names::is_kind(text)).map(drop)?,
            Role::Word(words) => drop(word(value, words)?),
            Role::Inert => {}
        }
        Some(())
    }

    fn finish(mut self, tool: &Tool) -> Intent {
        if tool.fields.iter().any(|(_, role)| matches!(role, Role::Root)) {
            let root = self.root.take();
            for names in self.names.take().into_iter().flatten() {
                let absolute = names.starts_with(['/', '~']) || root.is_none();
                let beneath = root.as_deref().unwrap_or_default().trim_end_matches('/');
                self.intent.reads.push(if absolute { names } else { format!("{beneath}/{names}") });
            }
            // Without a directory it is the working directory that is searched.
            self.intent.reads.push(root.unwrap_or_else(|| ".".to_owned()));
        }
        if let Some(path) = self.target.take() {
            let lines = self.lines();
            self.intent.writes.push(FileChange { path, lines, whole: self.content.take(), deletes: false });
        }
        self.intent
    }

    /// How many lines of the target are written or taken away, where that can be told.
    fn lines(&self) -> Option<u64> {
        if let Some(keeps) = self.keeps_cell {
            return if keeps { self.new.as_deref().map(count) } else { None };
        }
        if self.everywhere {
            return None;
        }
        match (&self.old, &self.new) {
            (Some(old), Some(new)) => Some(lines_changed(old, new)),
            _ => self.content.as_deref().map(count).or(self.edits),
        }
    }
}

/// The lines of a text.
fn count(text: &str) -> u64 {
    u64::try_from(text.lines().count()).unwrap_or(u64::MAX)
}

/// Keeps a value, unless another field said the same thing already: which one the host means, nobody can tell.
fn once<T>(slot: &mut Option<T>, value: T) -> Option<()> {
    slot.is_none().then(|| *slot = Some(value))
}

/// A command line as it is, or made from its words so that a shell would read the same words.
fn command(value: &Json) -> Option<String> {
    match value {
        Json::String(line) => Some(line.clone()),
        Json::Array(words) if !words.is_empty() => {
            let words: Option<Vec<String>> = words.iter().map(|word| Some(shell_quoted(word.as_str()?))).collect();
            Some(words?.join(" "))
        }
        Json::Null | Json::Bool(_) | Json::Number(_) | Json::Array(_) | Json::Object(_) => None,
    }
}

/// A text that names something.
fn path(value: &Json) -> Option<String> {
    value.as_str().filter(|text| !text.is_empty()).map(str::to_owned)
}

fn paths(value: &Json) -> Option<Vec<String>> {
    match value {
        Json::Array(items) => items.iter().map(path).collect(),
        Json::Null | Json::Bool(_) | Json::Number(_) | Json::String(_) | Json::Object(_) => Some(vec![path(value)?]),
    }
}

fn flag(value: &Json) -> Option<bool> {
    if let Json::Bool(flag) = value { Some(*flag) } else { None }
}

/// A number, or the digits of one: models quote them.
fn number(value: &Json) -> Option<()> {
    let quoted = value.as_str().is_some_and(|text| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit()));
    (quoted || matches!(value, Json::Number(_))).then_some(())
}

fn word<'v>(value: &'v Json, words: &[&str]) -> Option<&'v str> {
    value.as_str().filter(|text| words.contains(text))
}

/// The addresses in a text; a text without one is not understood.
fn urls_in(text: &str) -> Option<Vec<String>> {
    let urls: Vec<_> = text.split_whitespace().filter(|word| word.contains("://")).map(str::to_owned).collect();
    (!urls.is_empty()).then_some(urls)
}

/// The lines of several replacements; the inner nothing is a number nobody knows.
#[expect(clippy::option_option, reason = "not understood, and understood but not to be counted, are two things")]
fn edits(value: &Json) -> Option<Option<u64>> {
    let Json::Array(items) = value else { return None };
    let mut total = Some(0_u64);
    for item in items {
        let members = item.as_object()?;
        let known = ["old_string", "new_string", "replace_all"];
        members.keys().all(|key| known.contains(&key.as_str())).then_some(())?;
        let text = |key: &str| members.get(key)?.as_str();
        let everywhere = members.get("replace_all").map_or(Some(false), flag)?;
        let lines = lines_changed(text("old_string")?, text("new_string")?);
        total = if everywhere { None } else { total.map(|total| total.saturating_add(lines)) };
    }
    Some(total)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_become_the_line_a_shell_reads_the_same_way() {
        let words = ["bash", "-lc", "rm -rf 'a b'", "x=1", ""].map(Json::from).to_vec();
        assert_eq!(command(&Json::Array(words)).as_deref(), Some(r"bash -lc 'rm -rf '\''a b'\''' 'x=1' ''"));
        assert_eq!(command(&Json::Array(Vec::new())), None);
        assert_eq!(command(&Json::Bool(true)), None);
    }
    #[test]
    fn a_server_s_tool_is_never_one_of_the_host_s() {
        const TABLE: &[Tool] =
            &[Tool { name: "Read", family: Some(Family::Read), needs: &[], fields: &[("path", Role::Path)] }];
        let input = || Json::Object([("path".to_owned(), Json::from("x"))].into());
        assert_eq!(call(TABLE, "Read", input(), None).intent.reads, ["x"]);
        let posing = call(TABLE, "Read", input(), Some(McpTool { server: "s".to_owned(), tool: "Read".to_owned() }));
        assert_eq!((posing.family, posing.intent.unread), (None, vec!["path".to_owned()]));
    }
}
