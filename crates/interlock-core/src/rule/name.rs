//! Patterns for tools: by the name a host gives them, or by server and tool of MCP.

use super::Then;
use super::index::Texts;
use super::pattern::{Pattern, PatternError, Separator, fold_case};
use crate::call::McpTool;
use crate::cause::Cause;

/// What the joined names of tools of MCP begin with.
const MCP: &str = "mcp__";
/// Stands between server and tool in what is looked up.
const BETWEEN: char = '\0';

/// A pattern for tools.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ToolPattern {
    pub(super) text: String,
    exact: Names,
    /// Case does not count.
    folded: Names,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Names {
    whole: Pattern,
    /// `mcp__SERVER__TOOL`: every way to read it as two names. A joined name is never compared.
    servers: Vec<(Pattern, Pattern)>,
}

impl ToolPattern {
    pub(super) fn parse(text: &str, then: Then) -> Result<ToolPattern, Cause> {
        if text.chars().any(|character| character.is_whitespace() || character.is_control()) {
            return Err("no tool has blanks in its name, so it can never match".into());
        }
        let exact = Names::parse(text).map_err(Cause::of)?;
        if then == Then::Allow && exact.servers.len() > 1 {
            return Err("can be read as the tools of two servers; `allow` needs one".into());
        }
        let folded = Names::parse(&fold_case(text)).map_err(Cause::of)?;
        Ok(ToolPattern { text: text.to_owned(), exact, folded })
    }

    /// Whether it is about this tool. Who allows means the very name; who refuses means its lookalikes, too.
    pub(super) fn matches(&self, names: &[&str], mcp: Option<&McpTool>, then: Then) -> bool {
        let is_allowing = then == Then::Allow;
        let patterns = if is_allowing { &self.exact } else { &self.folded };
        let fold = |text: &str| if is_allowing { text.to_owned() } else { fold_case(text) };
        if let Some(mcp) = mcp {
            if !patterns.servers.is_empty() {
                let (server, tool) = (fold(&mcp.server), fold(&mcp.tool));
                return patterns.servers.iter().any(|(of, named)| of.matches(&server) && named.matches(&tool));
            }
            if is_allowing {
                return false;
            }
        }
        // A joined name that can be read as that of two servers is nobody's to allow.
        let is_clear = |name: &&&str| {
            let joined = name.strip_prefix(MCP);
            !is_allowing || joined.is_none_or(|joined| joined.matches("__").count() == 1 && !joined.contains("___"))
        };
        names.iter().filter(is_clear).any(|name| patterns.whole.matches(&fold(name)))
    }

    /// Whether it is about an action with this name.
    pub(super) fn matches_name(&self, name: &str) -> bool {
        self.folded.whole.matches(&fold_case(name))
    }

    /// Files it under everything by which [`look_up`] could ask for it.
    pub(super) fn insert_into(&self, texts: &mut Texts, position: usize) {
        texts.insert(&self.folded.whole, position);
        for (server, tool) in split(&fold_case(&self.text)) {
            if let Ok(pattern) = Pattern::parse(&format!("{server}{BETWEEN}{tool}"), Separator::None) {
                texts.insert(&pattern, position);
            }
        }
    }
}

/// Calls back with the position of every pattern that may be about a tool, some more than once.
pub(super) fn look_up(texts: &Texts, names: &[&str], mcp: Option<&McpTool>, mut found: impl FnMut(usize)) {
    for name in names {
        texts.candidates(&fold_case(name), &mut found);
    }
    if let Some(mcp) = mcp {
        texts.candidates(&format!("{}{BETWEEN}{}", fold_case(&mcp.server), fold_case(&mcp.tool)), &mut found);
    }
}

impl Names {
    fn parse(text: &str) -> Result<Names, PatternError> {
        let pattern = |text: &str| Pattern::parse(text, Separator::None);
        let servers = split(text).into_iter().map(|(server, tool)| Ok((pattern(server)?, pattern(tool)?)));
        Ok(Names { whole: pattern(text)?, servers: servers.collect::<Result<_, PatternError>>()? })
    }
}

/// Every way to read `mcp__SERVER__TOOL` as a server and a tool.
fn split(text: &str) -> Vec<(&str, &str)> {
    let Some(rest) = text.strip_prefix(MCP) else { return Vec::new() };
    let ways = rest.match_indices("__").map(|(at, _)| (rest.get(..at), rest.get(at.saturating_add(2)..)));
    let ways = ways.filter_map(|(server, tool)| server.zip(tool));
    let ways: Vec<_> = ways.filter(|(server, tool)| !server.is_empty() && !tool.is_empty()).collect();
    match rest.ends_with('*') {
        // All tools of the servers that are named.
        true if ways.is_empty() => vec![(rest, "*")],
        true | false => ways,
    }
}
