//! Argument rules: what the operator says about tools, parameters, paths and hosts.
//!
//! Rules read text, so they yield evidence; `decide` sees only the strictest verdict and the names of what matched.
//! Finding the rules that match costs the same whether there are ten or ten thousand.

mod address;
mod argument;
mod by_pattern;
mod call;
mod command;
mod guarded;
mod index;
mod matcher;
mod name;
mod pattern;
mod subject;

use core::fmt;
use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use crate::action::{ActionText, Registry};
use crate::call::Effect;
use crate::cause::Cause;
use guarded::LIFTABLE;
use index::{RuleIndex, Texts};
use name::ToolPattern;
use pattern::PatternError;
use subject::{ActionReader, Identity, LINES_MAX, Subject, fold_name, fold_value};

pub(crate) use pattern::{Pattern, Separator, fold_case};
pub(crate) use subject::Language;

pub use by_pattern::{names_ordinary_files, secret_by_pattern};
pub use call::{CallHost, CallPath, CallSubject};
pub use command::{CommandLine, CommandPattern, shell_quoted, shell_words};
pub use guarded::{SELF_RULE, is_shipped};
pub use pattern::ShellPattern;
pub use subject::hosts_in;

/// What a rule says, from the mildest to the strictest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Then {
    /// Nothing against it; lists a host.
    Allow,
    /// A person has to agree.
    Ask,
    /// It may not be done.
    Deny,
}

impl Then {
    /// The word for it.
    pub fn as_str(self) -> &'static str {
        match self {
            Then::Allow => "allow",
            Then::Ask => "ask",
            Then::Deny => "deny",
        }
    }
}

/// A rule as it is written.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RuleSource {
    /// Its name in answers; `rule-N` by default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// The action type it is about, or `*`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub action: Option<String>,
    /// The tool it is about: a registered one, a host's, a family of those, `mcp__SERVER__TOOL`; `*` stands for any text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool: Option<String>,
    /// The effect of a tool call that it is about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub effect: Option<String>,
    /// A pattern for one simple command of a call's command lines.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub command: Option<String>,
    /// Parameters (dotted names) and the patterns they must all match.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub arg: BTreeMap<String, String>,
    /// A pattern for paths.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// A pattern for hosts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host: Option<String>,
    /// Shipped rules whose question it answers beforehand, for exactly what it matches. Only with `allow`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub lifts: Vec<String>,
    /// What it says.
    pub then: Then,
}

impl RuleSource {
    /// A rule that says nothing yet of what it is about.
    pub fn empty(then: Then) -> RuleSource {
        RuleSource {
            id: None,
            action: None,
            tool: None,
            effect: None,
            command: None,
            arg: BTreeMap::new(),
            path: None,
            host: None,
            lifts: Vec::new(),
            then,
        }
    }
}

/// Why a rule is refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RuleError {
    /// Which rule.
    pub id: String,
    /// What is wrong with it.
    pub reason: Cause,
}

impl fmt::Display for RuleError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "rule `{}`: {}", self.id, self.reason)
    }
}

impl core::error::Error for RuleError {
    fn source(&self) -> Option<&(dyn core::error::Error + 'static)> {
        Some(&self.reason)
    }
}

/// How many names of rules evidence carries.
const MATCHED_LEN: usize = 16;
/// The most rules a bundle may hold.
const RULES_MAX: usize = 20_000;

/// Rules with every name resolved.
#[derive(Debug, Clone)]
pub struct Rules {
    rules: Vec<Rule>,
    index: RuleIndex,
    /// Hosts that actions may reach.
    listed_hosts: Texts,
    /// The arguments that rules ask about.
    arguments: BTreeSet<String>,
    /// The places of this very server, in lower case.
    own: Vec<String>,
}

#[derive(Debug, Clone)]
struct Rule {
    id: String,
    about: About,
    then: Then,
    args: Vec<(String, Pattern)>,
    path: Option<Pattern>,
    host: Option<Pattern>,
    command: Option<CommandPattern>,
    lifts: Vec<&'static str>,
    /// It has a condition that not everything meets.
    says_something: bool,
}

/// What a rule is about.
#[derive(Debug, Clone)]
enum About {
    /// Every action and every call.
    Everything,
    /// An action, by its identity.
    Action(String),
    /// A tool at every door; where it is registered, by its identity as well.
    Tool(ToolPattern, Option<String>),
    /// Calls with this effect.
    Effect(Effect),
}

impl About {
    /// Whether a rule with this verdict is about such an action, or such a call.
    fn is_about(&self, identity: &Identity<'_>, then: Then) -> bool {
        match (self, identity) {
            (About::Everything, _) => true,
            (About::Action(name), Identity::Action(identity)) => name == identity,
            (About::Tool(pattern, registered), Identity::Action(identity)) => {
                registered.as_deref() == Some(identity) || pattern.matches_name(identity)
            }
            (About::Tool(pattern, _), Identity::Call { names, mcp, .. }) => pattern.matches(names, *mcp, then),
            (About::Effect(effect), Identity::Call { effects, .. }) => effects.contains(effect),
            (About::Action(_), Identity::Call { .. }) | (About::Effect(_), Identity::Action(_)) => false,
        }
    }
}

/// What the rules say about one action.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RuleFinding {
    /// The strictest verdict.
    pub then: Option<Then>,
    /// The names of the rules with that verdict.
    pub matched: Vec<String>,
    /// The names of the rules with `allow` that know a whole call, or a command of it.
    pub allowed: Vec<String>,
    /// Which commands of a call such rules know.
    pub known_commands: BTreeSet<usize>,
}

impl Rules {
    /// Resolves rules against a registry, for use beside those about guarded places. `own` are the places of this very server.
    pub fn load(written: &[RuleSource], registry: &Registry, own: &[String]) -> Result<Rules, RuleError> {
        if written.len() > RULES_MAX {
            let reason = format!("more than {RULES_MAX} rules").into();
            return Err(RuleError { id: format!("rule-{}", RULES_MAX.saturating_add(1)), reason });
        }
        let mut rules = Rules {
            rules: Vec::new(),
            index: RuleIndex::default(),
            listed_hosts: Texts::default(),
            arguments: BTreeSet::new(),
            own: own.iter().map(|place| fold_case(place)).collect(),
        };
        for (position, source) in written.iter().enumerate() {
            rules.add(source, format!("rule-{}", position.saturating_add(1)), registry)?;
        }
        Ok(rules)
    }

    fn add(&mut self, source: &RuleSource, number: String, registry: &Registry) -> Result<(), RuleError> {
        let rule = Rule::load(source, number, registry)?;
        self.arguments.extend(rule.args.iter().map(|(name, _)| name.clone()));
        let position = self.rules.len();
        if let (Then::Allow, Some(host)) = (rule.then, &rule.host) {
            self.listed_hosts.insert(host, position);
        }
        self.index.insert(&rule, position);
        self.rules.push(rule);
        Ok(())
    }

    /// What the rules say about an action, whose own text is in this language.
    pub(crate) fn find(
        &self,
        identity: &str,
        language: Language,
        action: &ActionText<'_>,
        read_line: &mut dyn FnMut(&str) -> CommandLine,
    ) -> RuleFinding {
        let (calls_out, known, lines_left) = (identity == "api_call", &self.arguments, LINES_MAX);
        let mut reader = ActionReader { language, calls_out, known, read_line, lines_left };
        self.find_in(&Subject::of_action(identity, action, &mut reader, &self.own))
    }

    /// What the rules say about a tool call.
    pub fn find_call(&self, call: &CallSubject<'_>) -> RuleFinding {
        self.find_in(&call.subject(&self.arguments, &self.own))
    }
}

impl RuleFinding {
    /// The names in order, each once, and no more of them than evidence carries.
    fn finish(mut self) -> RuleFinding {
        for names in [&mut self.matched, &mut self.allowed] {
            names.sort();
            names.dedup();
            names.truncate(MATCHED_LEN);
        }
        self
    }

    fn add(&mut self, then: Then, id: &str) {
        if self.then.is_some_and(|known| known > then) {
            return;
        }
        if self.then != Some(then) {
            self.matched.clear();
        }
        self.then = Some(then);
        self.matched.push(id.to_owned());
    }
}

/// A dotted name, as the names of parameters are compared.
fn fold_names(name: &str) -> String {
    name.split('.').map(fold_name).collect::<Vec<_>>().join(".")
}

impl Rule {
    fn load(source: &RuleSource, number: String, registry: &Registry) -> Result<Rule, RuleError> {
        let id = source.id.clone().unwrap_or(number);
        let refused = |reason: Cause| RuleError { id: id.clone(), reason };
        let about = About::load(source, registry).map_err(refused)?;
        let pattern = |text: &String, separator| {
            Pattern::parse(text, separator).map_err(|error: PatternError| refused(Cause::of(error)))
        };
        let path = source.path.as_ref().map(|path| pattern(path, Separator::Slash)).transpose()?;
        let host = source.host.as_ref().map(|host| pattern(&address::canonical(host), Separator::None)).transpose()?;
        let command = source.command.as_deref().map(CommandPattern::parse).transpose().map_err(refused)?;
        let args =
            source.arg.iter().map(|(name, text)| Ok((fold_names(name), pattern(&fold_value(text), Separator::None)?)));
        let args = args.collect::<Result<Vec<_>, RuleError>>()?;
        if path.as_ref().is_some_and(Pattern::never_matches_a_path) {
            let reason = "paths are judged resolved, so it can never match";
            let advice = "begin it with `/` or `**/` and leave `.`, `..` and `~` out";
            return Err(refused(format!("path: {reason}; {advice}").into()));
        }
        if command.is_some() && matches!(about, About::Action(_)) {
            return Err(refused("only tool calls have commands; name a `tool`".into()));
        }
        let lifts = source.lifts.iter().map(|name| LIFTABLE.into_iter().find(|known| known == name).ok_or(name));
        let lifts = lifts.collect::<Result<Vec<_>, _>>().map_err(|name| {
            refused(format!("lifts: `{}` cannot be lifted; {} can", crate::display(name), LIFTABLE.join(", ")).into())
        })?;
        if !lifts.is_empty() && source.then != Then::Allow {
            return Err(refused("lifts: only a rule with `then = \"allow\"` can".into()));
        }
        let says_something = path.as_ref().is_some_and(|path| !path.matches_everything())
            || host.as_ref().is_some_and(|host| !host.matches_everything())
            || args.iter().any(|(_, pattern)| !pattern.matches_everything())
            || command.as_ref().is_some_and(|command| !command.matches_everything());
        // Types of actions have a meaning of their own; a tool's name says nothing of what is done with it.
        let has_condition = path.is_some() || host.is_some() || !args.is_empty();
        let every_host = host.as_ref().is_some_and(Pattern::matches_everything) && args.is_empty() && path.is_none();
        let of_action = match about {
            About::Action(_) => !every_host,
            About::Everything => source.action.is_some() && has_condition && !every_host,
            About::Tool(..) | About::Effect(_) => false,
        };
        if source.then == Then::Allow && !says_something && !of_action {
            return Err(refused("would turn a default into allow".into()));
        }
        Ok(Rule { id, about, then: source.then, args, path, host, command, lifts, says_something })
    }
}

impl About {
    fn load(source: &RuleSource, registry: &Registry) -> Result<About, Cause> {
        let (name, is_tool) = match (&source.action, &source.tool, &source.effect) {
            (Some(name), None, None) => (name, false),
            (None, Some(name), None) => (name, true),
            (None, None, Some(effect)) => {
                let unknown =
                    || format!("there is no effect `{}`, so it can never match", crate::display(effect)).into();
                return Effect::parse(effect).map(About::Effect).ok_or_else(unknown);
            }
            _ => return Err("needs exactly one of `action`, `tool` and `effect`".into()),
        };
        let registered = registry.get(name).map(|_| registry.identity(name).to_owned());
        match (name.as_str(), is_tool, registered) {
            ("*", _, _) => Ok(About::Everything),
            (_, true, registered) => Ok(About::Tool(ToolPattern::parse(name, source.then)?, registered)),
            (_, false, Some(identity)) => Ok(About::Action(identity)),
            (_, false, None) => {
                let advice = "so it can never match; register it under [actions] or list it under [tools]";
                Err(format!("`{}` is not registered, {advice}", crate::display(name)).into())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json::{Limits, parse, quote};

    /// Everything the index finds, and nothing else, is what asking every rule finds.
    #[test]
    fn the_index_finds_what_asking_every_rule_finds() {
        let mut state = 20_261_115_u64;
        let mut below = |end: u64| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33).checked_rem(end).unwrap_or(0)
        };
        let registry = Registry::built_in();
        let mut matched = 0_u32;
        for _ in 0..400 {
            let mut text = |parts: &[&str], count: u64| -> String {
                let pick = |at: u64| usize::try_from(at).ok().and_then(|at| parts.get(at)).copied().unwrap_or("a");
                let length = u64::try_from(parts.len()).unwrap_or(1);
                (0..=below(count)).map(|_| pick(below(length))).collect()
            };
            let written: Vec<RuleSource> = (0..12)
                .map(|_| {
                    let path = text(&["/", "**/", "a", "b", ".c", "*", "/**", "/a/", "/b/"], 5);
                    let (path, then) = (Some(path), Then::Ask);
                    let action = Some("file_read".to_owned());
                    RuleSource { action, path, ..RuleSource::empty(then) }
                })
                .filter(|source| Rule::load(source, String::new(), &registry).is_ok())
                .collect();
            let Ok(rules) = Rules::load(&written, &registry, &[]) else { continue };
            for _ in 0..20 {
                let path = text(&["/", "a", "b", ".c", "d", "/a", "/b", "/../"], 6);
                let source = format!("{{\"path\":{}}}", quote(&path));
                let Ok(document) = parse(&source, &Limits::STATE) else { continue };
                let action = ActionText {
                    kind: "file_read",
                    query: None,
                    code: None,
                    target: None,
                    parameters: Some(document.root()),
                };
                let mut none = |_: &str| CommandLine::default();
                let (language, known) = (Language::Words, &rules.arguments);
                let mut reader =
                    ActionReader { language, calls_out: false, known, read_line: &mut none, lines_left: LINES_MAX };
                let subject = Subject::of_action("file_read", &action, &mut reader, &[]);
                if !subject.hosts.is_empty() {
                    continue; // `egress` asks too, which is not the index's doing.
                }
                let all = 0..rules.rules.len();
                let expected = rules.find_among(&subject, |consider| all.for_each(|at| consider(at, index::Via::Else)));
                assert_eq!(rules.find("file_read", language, &action, &mut none), expected, "{path} under {written:?}");
                matched = matched.saturating_add(u32::from(expected.then.is_some()));
            }
        }
        assert!(matched > 500, "only {matched} paths matched any rule");
    }

    fn found(rules: &Rules, kind: &str, parameters: &str) -> RuleFinding {
        let document = parse(parameters, &Limits::STATE).expect("parameters");
        let parameters = Some(document.root());
        let action = ActionText { kind, query: None, code: None, target: None, parameters };
        rules.find(kind, Language::Words, &action, &mut |_| CommandLine::default())
    }

    /// Each path is compared with the rules that may be about it. With every other path as well, this would not end.
    #[test]
    fn many_paths_and_many_hosts_are_looked_at_once_each() {
        let registry = Registry::built_in();
        let about = |path: String| RuleSource {
            action: Some("*".to_owned()),
            path: Some(path),
            ..RuleSource::empty(Then::Ask)
        };
        let listed = RuleSource {
            action: Some("send_email".to_owned()),
            host: Some("*.good.example".to_owned()),
            ..RuleSource::empty(Then::Allow)
        };
        let mut written: Vec<RuleSource> = (0..5_000).map(|number| about(format!("/srv/a{number}/**"))).collect();
        written.push(listed);
        let rules = Rules::load(&written, &registry, &[]).expect("rules");
        let list = |count: usize, text: &dyn Fn(usize) -> String| -> String {
            let items: Vec<String> = (0..count).map(|number| quote(&text(number))).collect();
            format!("{{\"l\":[{}]}}", items.join(","))
        };
        let paths = found(&rules, "send_email", &list(8_000, &|number| format!("/srv/a{number}/x")));
        assert_eq!((paths.then, paths.matched.len()), (Some(Then::Ask), MATCHED_LEN));
        let words = found(&rules, "send_email", &list(8_000, &|number| format!("w{number}@good.example")));
        assert_eq!(words, RuleFinding::default());
        let hosts = list(8_000, &|number| format!("https://a{number}.good.example/"));
        assert_eq!(found(&rules, "send_email", &hosts).then, Some(Then::Allow));
        // More than anybody looks at: they may be any.
        let most = list(60_000, &|number| format!("/other/{number}"));
        assert!(found(&rules, "send_email", &most).matched.iter().any(|id| id == "rule-1"));
        let most = list(30_000, &|number| format!("https://a{number}.good.example/"));
        assert_eq!(found(&rules, "send_email", &most).matched, [guarded::EGRESS]);
    }

    /// A path that no system opens is none, unless it is shorter once it is resolved.
    #[test]
    fn a_text_that_is_too_long_to_be_a_path_is_none() {
        let registry = Registry::built_in();
        let rule = RuleSource {
            action: Some("*".to_owned()),
            path: Some("/srv/ledger/**".to_owned()),
            ..RuleSource::empty(Then::Deny)
        };
        let rules = Rules::load(&[rule], &registry, &[]).expect("rules");
        let asked =
            |name: &str, text: &str| found(&rules, "send_email", &format!("{{{}:{}}}", quote(name), quote(text))).then;
        assert_eq!(asked("attachment", &"QUJD/".repeat(1_200)), None);
        assert_eq!(asked("text", &"x".repeat(6_000)), None);
        for name in ["path", "x"] {
            assert_eq!(asked(name, &format!("{}srv/ledger/a", "/a/../".repeat(900))), Some(Then::Deny));
        }
    }
}
