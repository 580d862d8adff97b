//! Argument rules: what the operator says about tools, parameters, paths and hosts.
//!
//! Rules read text, so they yield evidence; `decide` sees only the strictest verdict and the names of what matched.
//! Finding the rules that match costs the same whether there are ten or ten thousand.

mod index;
mod pattern;
mod subject;

use core::fmt;
use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use crate::action::{ActionText, Registry};
use index::Index;
use pattern::{Pattern, PatternError, Separator};
use subject::{PathText, Reading, Subject, UNREADABLE_HOST, fold_value};

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
    /// The tool it is about, or `*`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool: Option<String>,
    /// A shell effect; known, but judged by doors that analyse shell lines only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub effect: Option<String>,
    /// Parameters (dotted names) and the patterns they must all match.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub arg: BTreeMap<String, String>,
    /// A pattern for paths.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// A pattern for hosts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host: Option<String>,
    /// What it says.
    pub then: Then,
}

/// Why a rule is refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RuleError {
    /// Which rule.
    pub id: String,
    /// What is wrong with it.
    pub reason: String,
}

impl fmt::Display for RuleError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "rule `{}`: {}", self.id, self.reason)
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
    by_name: BTreeMap<String, Index>,
    any_name: Index,
    /// Hosts that may be reached.
    listed_hosts: Index,
    /// The arguments that rules ask about.
    arguments: BTreeSet<String>,
}

/// Whose rule it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Origin {
    /// Ours: about a place on the disk only if the path certainly leads there, or every relative path would match.
    Shipped,
    /// The operator's: about a place on the disk also if the path may lead there.
    Written,
}

#[derive(Debug, Clone)]
struct Rule {
    id: String,
    origin: Origin,
    /// The identity it is about; `None` is any.
    name: Option<String>,
    then: Then,
    args: Vec<(String, Pattern)>,
    path: Option<Pattern>,
    host: Option<Pattern>,
}

/// What the rules say about one action.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RuleFinding {
    /// The strictest verdict.
    pub then: Option<Then>,
    /// The names of the rules with that verdict.
    pub matched: Vec<String>,
}

/// The name of what asks about hosts that are not listed.
const EGRESS: &str = "egress";

/// Files whose contents open other doors.
#[rustfmt::skip]
const SECRETS: &[&str] = &[
    "**/.env", "**/.env.*", "**/*.pem", "**/*.key", "**/*.p12", "**/*.pfx", "**/id_rsa*", "**/id_dsa*", "**/id_ecdsa*",
    "**/id_ed25519*", "**/.ssh/**", "**/.gnupg/**", "**/.aws/**", "**/.azure/**", "**/.kube/config", "**/.netrc",
    "**/.pgpass", "**/.npmrc", "**/.pypirc", "**/.git-credentials", "**/.docker/config.json", "**/credentials",
    "**/credentials.*", "**/secrets.*", "**/*.keystore", "**/*.jks", "**/shadow", "**/.vault-token",
];

/// Interlock's own files and the hook settings of the hosts it guards.
#[rustfmt::skip]
const SELF: &[&str] = &[
    "**/.interlock/**", "**/interlock.toml", "**/operator.key", "**/ledger.key", "**/ledger.db*", "**/.codex/**",
    "**/.claude/settings*.json", "**/.cursor/hooks.json", "**/.gemini/settings.json",
];

/// What runs later if it is written now.
#[rustfmt::skip]
const ARMS: &[&str] = &[
    "**/.git/config", "**/.git/hooks/**", "**/.gitattributes", "**/.gitmodules", "**/.bashrc", "**/.bash_profile",
    "**/.bash_login", "**/.bash_logout", "**/.profile", "**/.zshrc", "**/.zshenv", "**/.zprofile", "**/.zlogin",
    "**/.config/fish/**", "/etc/profile", "/etc/profile.d/**", "/etc/cron*/**", "/etc/crontab", "/var/spool/cron/**",
    "/usr/bin/**", "/usr/local/bin/**", "/bin/**", "/sbin/**", "/usr/sbin/**", "**/.local/bin/**", "**/.envrc",
    "**/.github/workflows/**", "**/.gitlab-ci.yml", "**/.circleci/**", "**/jenkinsfile", "**/.vscode/**", "**/.idea/**",
    "**/.claude/**", "**/.cursor/**", "**/.gemini/**", "**/.config/systemd/**", "/etc/systemd/**",
];
/// The actions that write files.
const WRITES: [&str; 2] = ["file_write", "file_delete"];

/// The rules that are always on. `own` are the places of this very server.
fn shipped(own: &[String]) -> Vec<RuleSource> {
    let by_path = |id: &str, action: &str, path: &str, then| RuleSource {
        id: Some(id.to_owned()),
        action: Some(action.to_owned()),
        tool: None,
        effect: None,
        arg: BTreeMap::new(),
        path: Some(path.to_owned()),
        host: None,
        then,
    };
    let secrets = SECRETS.iter().map(|path| by_path("secrets", "*", path, Then::Ask));
    let own = own.iter().map(|path| by_path("self", "*", &format!("{}/**", path.trim_end_matches('/')), Then::Deny));
    let own_names = SELF.iter().map(|path| by_path("self", "*", path, Then::Deny));
    let arms = WRITES.iter().flat_map(|action| ARMS.iter().map(|path| by_path("arms", action, path, Then::Ask)));
    secrets.chain(own).chain(own_names).chain(arms).collect()
}

impl Rules {
    /// Resolves rules against a registry, with the shipped ones beside them. `own` are the places of this very server.
    pub fn load(written: &[RuleSource], registry: &Registry, own: &[String]) -> Result<Rules, RuleError> {
        if written.len() > RULES_MAX {
            let reason = format!("more than {RULES_MAX} rules");
            return Err(RuleError { id: format!("rule-{}", RULES_MAX.saturating_add(1)), reason });
        }
        let mut rules = Rules {
            rules: Vec::new(),
            by_name: BTreeMap::new(),
            any_name: Index::default(),
            listed_hosts: Index::default(),
            arguments: BTreeSet::new(),
        };
        for source in &shipped(own) {
            rules.add(source, String::new(), registry, Origin::Shipped)?;
        }
        for (position, source) in written.iter().enumerate() {
            rules.add(source, format!("rule-{}", position.saturating_add(1)), registry, Origin::Written)?;
        }
        Ok(rules)
    }

    fn add(
        &mut self,
        source: &RuleSource,
        number: String,
        registry: &Registry,
        origin: Origin,
    ) -> Result<(), RuleError> {
        let id = source.id.clone().unwrap_or(number);
        let refused = |reason: String| RuleError { id: id.clone(), reason };
        let name = match (&source.action, &source.tool, &source.effect) {
            (Some(name), None, None) | (None, Some(name), None) => name,
            (None, None, Some(_)) => {
                return Err(refused("no door of this server analyses effects, so it can never match".to_owned()));
            }
            _ => return Err(refused("needs exactly one of `action`, `tool` and `effect`".to_owned())),
        };
        if name != "*" && registry.get(name).is_none() {
            let advice = "so it can never match; register it under [actions] or list it under [tools]";
            return Err(refused(format!("`{}` is not registered, {advice}", crate::display(name))));
        }
        let pattern = |text: &String, separator| {
            Pattern::parse(text, separator).map_err(|error: PatternError| refused(error.to_string()))
        };
        let path = source.path.as_ref().map(|path| pattern(path, Separator::Slash)).transpose()?;
        let host = source.host.as_ref().map(|host| pattern(&host.to_lowercase(), Separator::None)).transpose()?;
        let args = source
            .arg
            .iter()
            .map(|(name, text)| Ok((pattern::fold_case(name), pattern(&fold_value(text), Separator::None)?)));
        let args = args.collect::<Result<Vec<_>, RuleError>>()?;
        if path.as_ref().is_some_and(Pattern::never_matches_a_path) {
            let reason = "paths are judged resolved, so it can never match";
            return Err(refused(format!("path: {reason}; begin it with `/` or `**/` and leave `.`, `..` and `~` out")));
        }
        let unconditional = path.is_none() && host.is_none() && args.is_empty();
        let everything = host.as_ref().is_some_and(Pattern::matches_everything) && args.is_empty() && path.is_none();
        if source.then == Then::Allow && ((unconditional && name == "*") || everything) {
            return Err(refused("would turn a default into allow".to_owned()));
        }
        let name = (name != "*").then(|| registry.identity(name).to_owned());
        self.arguments.extend(args.iter().map(|(name, _)| name.clone()));
        let rule = Rule { id, origin, name, then: source.then, args, path, host };
        let position = self.rules.len();
        if let (Then::Allow, Some(host)) = (rule.then, &rule.host) {
            self.listed_hosts.by_host.insert(host, position);
        }
        let index = match &rule.name {
            None => &mut self.any_name,
            Some(name) => self.by_name.entry(name.clone()).or_default(),
        };
        index.insert(&rule, position);
        self.rules.push(rule);
        Ok(())
    }

    /// What the rules say about an action. `governed` says that its whole text is arguments, for no verifier reads it.
    pub fn find(&self, identity: &str, governed: bool, action: &ActionText<'_>) -> RuleFinding {
        let calls_out = identity == "api_call";
        let subject = Subject::read(action, Reading { governed, calls_out, known: &self.arguments });
        let mut found = RuleFinding { then: None, matched: Vec::new() };
        for index in [self.by_name.get(identity), Some(&self.any_name)].into_iter().flatten() {
            index.candidates(&subject, |position| {
                if let Some(rule) = self.rules.get(position)
                    && rule.matches(&subject)
                {
                    found.add(rule.then, &rule.id);
                }
            });
        }
        // Listed by a rule that is about this action and this very host, not by one that matches another host beside it.
        let is_listed = |host: &str| {
            let mut listed = false;
            if host == UNREADABLE_HOST {
                return false;
            }
            self.listed_hosts.by_host.candidates(host, |position| {
                listed |= self.rules.get(position).is_some_and(|rule| {
                    rule.name.as_deref().is_none_or(|name| name == identity)
                        && rule.host.as_ref().is_some_and(|pattern| pattern.matches(host))
                        && rule.matches(&subject)
                });
            });
            listed
        };
        if subject.hosts.iter().any(|host| !is_listed(host)) {
            found.add(Then::Ask, EGRESS);
        }
        found.matched.sort();
        found.matched.dedup();
        found.matched.truncate(MATCHED_LEN);
        found
    }
}

impl RuleFinding {
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

impl Rule {
    fn may_be_about_it(&self, pattern: &Pattern) -> bool {
        pattern.is_anchored() && self.origin == Origin::Written
    }

    fn matches(&self, subject: &Subject) -> bool {
        let args = self.args.iter().all(|(name, pattern)| {
            subject.arguments.get(name).is_some_and(|values| values.iter().any(|value| pattern.matches(value)))
        });
        let path = self.path.as_ref().is_none_or(|pattern| {
            subject.paths.iter().any(|path| match path {
                PathText::Unresolvable => true,
                PathText::Absolute(path) => pattern.matches(path),
                // Its base is not known here, so a rule about a place on the disk may be about it.
                PathText::Floating(path) => self.may_be_about_it(pattern) || pattern.matches(path),
                PathText::Word(path) => !pattern.is_anchored() && pattern.matches(path),
            })
        });
        let host = self.host.as_ref().is_none_or(|pattern| subject.hosts.iter().any(|host| pattern.matches(host)));
        args && path && host
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
                    let (id, tool, effect, arg, host) = (None, None, None, BTreeMap::new(), None);
                    RuleSource { id, action, tool, effect, arg, path, host, then }
                })
                .filter(|source| Rules::load(core::slice::from_ref(source), &registry, &[]).is_ok())
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
                let reading = Reading { governed: true, calls_out: false, known: &rules.arguments };
                let subject = Subject::read(&action, reading);
                if !subject.hosts.is_empty() {
                    continue; // `egress` asks too, which is not the index's doing.
                }
                let about = |rule: &&Rule| rule.name.as_deref().is_none_or(|name| name == "file_read");
                let all = rules.rules.iter().filter(about).filter(|rule| rule.matches(&subject));
                let mut expected = RuleFinding { then: None, matched: Vec::new() };
                all.for_each(|rule| expected.add(rule.then, &rule.id));
                expected.matched.sort();
                expected.matched.dedup();
                expected.matched.truncate(MATCHED_LEN);
                assert_eq!(rules.find("file_read", true, &action), expected, "{path} under {written:?}");
                matched = matched.saturating_add(u32::from(expected.then.is_some()));
            }
        }
        assert!(matched > 500, "only {matched} paths matched any rule");
    }
}
