//! What the rules say about a tool call.
//!
//! A rule that asks or denies counts if it may be about anything in the call. One that allows counts for exactly what
//! it certainly is about: it lifts the question of a shipped rule for one path, one host or one command, never for what
//! stands beside it.

use std::collections::BTreeMap;

use super::guarded::{ARMS_RULE, EGRESS, SECRETS_RULE, SELF_RULE, rule_about, steers_interlock};
use super::pattern::{Pattern, fold_case};
use super::subject::{PathText, Subject, UNNAMED_HOST, fold_name};
use super::{About, Rule, RuleFinding, Rules, Then};
use crate::call::{Effect, McpTool};
use crate::json::Json;
use crate::places::{Concern, guarding, is_example, is_within};

/// How deep arguments are looked into; no parser of ours hands out deeper ones.
const DEPTH_MAX: u32 = 256;

/// A tool call as rules see it: everything in it is resolved already.
#[derive(Debug, Clone)]
pub struct CallSubject<'a> {
    /// The tool as its host names it, and its family.
    pub names: Vec<&'a str>,
    /// Server and tool, if it is one of MCP.
    pub mcp: Option<&'a McpTool>,
    /// What the call does.
    pub effects: &'a [Effect],
    /// Every path it touches.
    pub paths: Vec<CallPath>,
    /// Every host it reaches.
    pub hosts: Vec<CallHost>,
    /// Its whole input.
    pub arguments: &'a Json,
    /// The words of the simple commands it runs; `None` where a word is not known.
    pub commands: &'a [Vec<Option<String>>],
    /// Places that are Interlock's own on this machine, beside those of the bundle.
    pub own: &'a [String],
    /// Those of them that are there: whoever takes away what is above them takes them away.
    pub own_there: &'a [String],
    /// Those of them that are not in the project: whoever reads all that is in a directory above them reads them.
    pub own_elsewhere: &'a [String],
    /// Directories on this machine in which everything runs later: those on the path.
    pub armed: &'a [String],
    /// The operator registered this tool: that it reaches hosts nobody can name is known.
    pub is_registered: bool,
}

/// A path that a call touches.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct CallPath {
    /// Absolute, links resolved; `None` if it may lead anywhere.
    pub path: Option<String>,
    /// It is written, or may be.
    pub writes: bool,
    /// It is taken away, moved or changed with all that is in it.
    pub removes: bool,
    /// All that is in it is read.
    pub sweeps: bool,
    /// The command that touches it, by its position among the commands.
    pub command: Option<usize>,
}

/// A host that a call reaches.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct CallHost {
    /// Its name; `None` if it may be any.
    pub host: Option<String>,
    /// The command that reaches it, by its position among the commands.
    pub command: Option<usize>,
}

/// One thing in a call, with the command it belongs to.
#[derive(Debug, Clone, Copy)]
enum Item<'a> {
    Path(&'a str, Option<usize>),
    Host(&'a str, Option<usize>),
    Unknown(Option<usize>),
    Command(usize),
}

impl Rules {
    /// What the rules say about a tool call.
    pub fn find_call(&self, call: &CallSubject<'_>) -> RuleFinding {
        let asked = FoldedCall::new(call, &self.arguments);
        let mut positions = Vec::new();
        self.index.call_candidates(call, &asked.subject, |position| positions.push(position));
        positions.sort_unstable();
        positions.dedup();
        self.find_call_among(&asked, &positions)
    }

    /// What the rules at these positions say, and the shipped ones.
    fn find_call_among(&self, asked: &FoldedCall<'_>, positions: &[usize]) -> RuleFinding {
        let rules = || positions.iter().filter_map(|position| self.rules.get(*position));
        let mut found = RuleFinding::default();
        for rule in rules().filter(|rule| rule.then != Then::Allow) {
            if asked.may_match(rule) {
                found.add(rule.then, &rule.id);
            }
        }
        let allowing: Vec<&Rule> =
            rules().filter(|rule| rule.then == Then::Allow && rule.says_something && asked.names(rule)).collect();
        self.find_shipped(asked, &allowing, &mut found);
        for rule in &allowing {
            let commands = (0..asked.call.commands.len()).filter(|at| asked.allows(rule, Item::Command(*at)));
            let before = found.known_commands.len();
            if rule.command.is_some() {
                found.known_commands.extend(commands);
            }
            if found.known_commands.len() > before || asked.knows_all(rule) {
                found.allowed.push(rule.id.clone());
                found.add(Then::Allow, &rule.id);
            }
        }
        found.finish()
    }

    /// Whatever the shipped rules ask, unless a rule of the operator answered it for that very thing.
    fn find_shipped(&self, asked: &FoldedCall<'_>, allowing: &[&Rule], found: &mut RuleFinding) {
        let lifted =
            |id: &str, item: Item<'_>| allowing.iter().any(|rule| rule.lifts.contains(&id) && asked.allows(rule, item));
        for (path, source) in asked.paths.iter().zip(&asked.call.paths) {
            let is_own = |path: &str| {
                let removes = || source.removes && asked.own_there.iter().any(|own| is_within(own, path));
                asked.own.iter().chain(&self.own).any(|own| is_within(path, own)) || removes()
            };
            if path.as_deref().is_some_and(is_own) {
                found.add(Then::Deny, SELF_RULE);
            }
            let is_above = |path: &str| asked.own_elsewhere.iter().any(|own| is_within(own, path));
            if source.sweeps && path.as_deref().is_some_and(is_above) {
                found.add(Then::Deny, SELF_RULE);
            }
            let item = path.as_deref().map_or(Item::Unknown(source.command), |path| Item::Path(path, source.command));
            // Whoever reads all of it reads the environments of all processes.
            let reads_processes = source.sweeps && path.as_deref().is_some_and(|path| is_within(path, "/proc"));
            if reads_processes && !lifted(SECRETS_RULE, item) {
                found.add(Then::Ask, SECRETS_RULE);
            }
            let is_armed = path.as_deref().is_some_and(|path| asked.armed.iter().any(|place| is_within(path, place)));
            if source.writes && is_armed && !lifted(ARMS_RULE, item) {
                found.add(Then::Ask, ARMS_RULE);
            }
            let concerns: Vec<Concern> = match path.as_deref() {
                Some(path) => {
                    let counts = |concern: &Concern| *concern != Concern::Secret || !is_example(path);
                    guarding(path, true).map(|place| place.concern).filter(counts).collect()
                }
                None => Concern::ALL.to_vec(),
            };
            for concern in concerns.into_iter().filter(|concern| source.writes || *concern != Concern::RunsLater) {
                let (id, then) = rule_about(concern);
                if !lifted(id, item) {
                    // What may lead anywhere may lead to ourselves, but most of it does not: a person has to look.
                    found.add(if path.is_some() { then } else { Then::Ask }, id);
                }
            }
        }
        if asked.call.commands.iter().any(|words| steers_interlock(words)) {
            found.add(Then::Deny, SELF_RULE);
        }
        for (host, reached) in asked.hosts.iter().zip(&asked.call.hosts) {
            let listed = match host.as_deref() {
                Some(name) => {
                    let item = Item::Host(name, reached.command);
                    lifted(EGRESS, item) || allowing.iter().any(|rule| rule.host.is_some() && asked.allows(rule, item))
                }
                None => asked.call.is_registered || lifted(EGRESS, Item::Unknown(reached.command)),
            };
            if !listed {
                found.add(Then::Ask, EGRESS);
            }
        }
    }
}

/// A call with its texts folded.
struct FoldedCall<'a> {
    call: &'a CallSubject<'a>,
    subject: Subject,
    /// The paths of the call, in its order.
    paths: Vec<Option<String>>,
    /// Its hosts, in its order.
    hosts: Vec<Option<String>>,
    /// Those that are written.
    written: Subject,
    own: Vec<String>,
    own_there: Vec<String>,
    own_elsewhere: Vec<String>,
    armed: Vec<String>,
}

impl<'a> FoldedCall<'a> {
    fn new(call: &'a CallSubject<'a>, known: &std::collections::BTreeSet<String>) -> FoldedCall<'a> {
        let paths: Vec<Option<String>> =
            call.paths.iter().map(|touched| touched.path.as_deref().map(fold_case)).collect();
        let text = |path: &Option<String>| path.clone().map_or(PathText::Unresolvable, PathText::Absolute);
        let hosts: Vec<Option<String>> =
            call.hosts.iter().map(|reached| reached.host.as_deref().map(str::to_lowercase)).collect();
        let named = |host: &Option<String>| host.clone().unwrap_or_else(|| UNNAMED_HOST.to_owned());
        let mut subject = Subject {
            arguments: BTreeMap::new(),
            paths: paths.iter().map(text).collect(),
            hosts: hosts.iter().map(named).collect(),
            commands: call.commands.to_vec(),
            ..Subject::default()
        };
        if !known.is_empty() {
            add_arguments(call.arguments, &mut String::new(), DEPTH_MAX, known, &mut subject.arguments);
        }
        let written = paths.iter().zip(&call.paths).filter(|(_, touched)| touched.writes).map(|(path, _)| text(path));
        let written = Subject { paths: written.collect(), ..Subject::default() };
        let fold = |places: &[String]| -> Vec<String> { places.iter().map(|place| fold_case(place)).collect() };
        let (own, own_there) = (fold(call.own), fold(call.own_there));
        let (own_elsewhere, armed) = (fold(call.own_elsewhere), fold(call.armed));
        FoldedCall { call, subject, paths, hosts, written, own, own_there, own_elsewhere, armed }
    }

    /// Whether a rule is about this tool, or an effect of this call.
    fn names(&self, rule: &Rule) -> bool {
        match &rule.about {
            About::Everything => true,
            About::Tool(pattern, _) => pattern.matches(&self.call.names, self.call.mcp, rule.then),
            About::Effect(effect) => self.call.effects.contains(effect),
            About::Action(_) => false,
        }
    }

    /// Whether a rule may be about anything in the call.
    fn may_match(&self, rule: &Rule) -> bool {
        // A rule about what is written means the paths that are.
        let writing = matches!(rule.about, About::Effect(Effect::Write | Effect::Destructive));
        let conditions = if writing && rule.path.is_some() {
            let paths = self.written.paths.clone();
            let one = Subject {
                paths,
                arguments: self.subject.arguments.clone(),
                hosts: self.subject.hosts.clone(),
                commands: self.subject.commands.clone(),
                ..Subject::default()
            };
            rule.matches(&one)
        } else {
            rule.matches(&self.subject)
        };
        conditions && self.names(rule)
    }

    /// Whether a rule that allows is certainly about one thing in the call. Its name was looked at already.
    fn allows(&self, rule: &Rule, item: Item<'_>) -> bool {
        let command = match item {
            Item::Path(_, command) | Item::Host(_, command) | Item::Unknown(command) => command,
            Item::Command(at) => Some(at),
        };
        let commanded = rule.command.as_ref().is_none_or(|pattern| {
            command.and_then(|at| self.call.commands.get(at)).is_some_and(|words| pattern.covers(words))
        });
        let of_command = |other: Option<usize>| command.is_none() || other == command;
        let path = rule.path.as_ref().is_none_or(|pattern| match item {
            Item::Path(path, _) => pattern.matches(path),
            Item::Host(..) | Item::Unknown(_) => false,
            Item::Command(_) => {
                let touched =
                    self.paths.iter().zip(&self.call.paths).filter(|(_, touched)| of_command(touched.command));
                matches_all(pattern, touched.map(|(path, _)| path))
            }
        });
        let host = rule.host.as_ref().is_none_or(|pattern| match item {
            Item::Host(host, _) => pattern.matches(host),
            Item::Path(..) | Item::Unknown(_) => false,
            Item::Command(_) => {
                let reached =
                    self.hosts.iter().zip(&self.call.hosts).filter(|(_, reached)| of_command(reached.command));
                matches_all(pattern, reached.map(|(host, _)| host))
            }
        });
        commanded && path && host && rule.meets_arguments(&self.subject, 0)
    }

    /// Whether a rule that allows is certainly about everything in the call that it could be about.
    fn knows_all(&self, rule: &Rule) -> bool {
        let (paths, hosts, commands) = (&self.paths, &self.hosts, self.call.commands);
        rule.path.as_ref().is_none_or(|pattern| matches_all(pattern, paths.iter()))
            && rule.host.as_ref().is_none_or(|pattern| matches_all(pattern, hosts.iter()))
            && rule
                .command
                .as_ref()
                .is_none_or(|pattern| !commands.is_empty() && commands.iter().all(|words| pattern.covers(words)))
            && rule.meets_arguments(&self.subject, 0)
    }
}

/// Whether there are texts, all known, and a pattern matches each.
fn matches_all<'t>(pattern: &Pattern, texts: impl Iterator<Item = &'t Option<String>>) -> bool {
    let mut texts = texts.peekable();
    texts.peek().is_some() && texts.all(|text| text.as_deref().is_some_and(|text| pattern.matches(text)))
}

/// The scalar arguments that rules ask about, by dotted name; an item of an array has the name of the array.
fn add_arguments(
    value: &Json,
    name: &mut String,
    depth: u32,
    known: &std::collections::BTreeSet<String>,
    found: &mut BTreeMap<String, Vec<String>>,
) {
    let Some(depth) = depth.checked_sub(1) else { return };
    let text = match value {
        Json::Object(members) => {
            for (key, member) in members {
                let length = name.len();
                if !name.is_empty() {
                    name.push('.');
                }
                name.push_str(&fold_name(key));
                add_arguments(member, name, depth, known, found);
                name.truncate(length);
            }
            return;
        }
        Json::Array(items) => {
            return items.iter().for_each(|item| add_arguments(item, name, depth, known, found));
        }
        Json::String(text) => text.clone(),
        Json::Number(_) | Json::Bool(_) | Json::Null => value.canonical(),
    };
    super::argument::note(found, known, name, || text);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::action::Registry;
    use crate::rule::RuleSource;

    const TOOLS: [&str; 7] = ["*", "Bash", "Re*", "mcp__git__*", "mcp__git__get_x", "mcp__*", "file_read"];
    const COMMANDS: [&str; 6] = ["git push *", "git *", "* --version", "npm run b*", "ls", "git push origin"];
    const PATHS: [&str; 6] = ["/a/**", "**/b", "**/*.c", "/a/b", "**/d/**", "c*"];
    const HOSTS: [&str; 4] = ["*.x.y", "x.y", "a*", "q.x.y"];

    struct Chance(u64);

    impl Chance {
        fn below(&mut self, end: usize) -> usize {
            self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            usize::try_from(self.0 >> 33).unwrap_or(0).checked_rem(end).unwrap_or(0)
        }

        fn one<'t>(&mut self, texts: &[&'t str]) -> &'t str {
            let at = self.below(texts.len());
            texts.get(at).copied().unwrap_or("")
        }

        fn effect(&mut self, effects: &[Effect]) -> Effect {
            let at = self.below(effects.len());
            effects.get(at).copied().unwrap_or(Effect::Unknown)
        }

        fn maybe(&mut self, texts: &[&str]) -> Option<String> {
            (self.below(3) == 0).then(|| self.one(texts).to_owned())
        }

        fn rule(&mut self) -> RuleSource {
            let then = [Then::Allow, Then::Ask, Then::Deny].get(self.below(3)).copied().unwrap_or(Then::Deny);
            let effect = (self.below(4) == 0).then(|| self.effect(Effect::ALL).to_string());
            let tool = effect.is_none().then(|| self.one(&TOOLS).to_owned());
            let arg = self.maybe(&["1", "t*"]).map(|value| ("k.n".to_owned(), value));
            let lifts = if then == Then::Allow && self.below(2) == 0 { vec!["egress".to_owned()] } else { Vec::new() };
            RuleSource {
                tool,
                effect,
                command: self.maybe(&COMMANDS),
                path: self.maybe(&PATHS),
                host: self.maybe(&HOSTS),
                arg: arg.into_iter().collect(),
                lifts,
                ..RuleSource::empty(then)
            }
        }
    }

    /// Everything the index finds, and nothing else, is what asking every rule finds.
    #[test]
    fn the_index_of_calls_finds_what_asking_every_rule_finds() {
        let mut chance = Chance(20_261_115);
        let registry = Registry::built_in();
        let mut verdicts = BTreeMap::new();
        for _ in 0..300 {
            let written: Vec<RuleSource> = (0..16).map(|_| chance.rule()).collect();
            let loads = |rule: &RuleSource| Rule::load(rule, String::new(), &registry).is_ok();
            let written: Vec<RuleSource> = written.into_iter().filter(loads).collect();
            let Ok(rules) = Rules::load(&written, &registry, &[]) else { continue };
            let all: Vec<usize> = (0..rules.rules.len()).collect();
            for _ in 0..20 {
                let line = chance.one(&["git push origin", "git -C x push", "ls", "npm run build", "? y", "git ?"]);
                let words = line.split(' ').map(|word| (word != "?").then(|| word.to_owned())).collect();
                let commands = if chance.below(2) == 0 { vec![words] } else { Vec::new() };
                let mcp = McpTool { server: chance.one(&["git", "Git", "x__y"]).to_owned(), tool: "get_x".to_owned() };
                let path = |chance: &mut Chance| CallPath {
                    path: (chance.below(6) > 0).then(|| chance.one(&["/a/b", "/a", "/x/d/e", "/B", "/q.c"]).to_owned()),
                    writes: chance.below(2) == 0,
                    removes: false,
                    sweeps: false,
                    command: (chance.below(2) == 0).then_some(0),
                };
                let host = |chance: &mut Chance| CallHost {
                    host: (chance.below(6) > 0).then(|| chance.one(&["x.y", "q.x.y", "a.b"]).to_owned()),
                    command: (chance.below(2) == 0).then_some(0),
                };
                let number = Json::from(1_u64);
                let input = Json::Object([("n".to_owned(), number)].into());
                let input = Json::Object([("K".to_owned(), input)].into());
                let effects = [chance.effect(&[Effect::Write, Effect::Network, Effect::ReadOnly])];
                let call = CallSubject {
                    names: vec![chance.one(&["Bash", "Read", "file_read", "other"])],
                    mcp: (chance.below(3) == 0).then_some(&mcp),
                    effects: &effects,
                    paths: (0..chance.below(3)).map(|_| path(&mut chance)).collect(),
                    hosts: (0..chance.below(3)).map(|_| host(&mut chance)).collect(),
                    arguments: &input,
                    commands: &commands,
                    own: &[],
                    own_there: &[],
                    own_elsewhere: &[],
                    armed: &[],
                    is_registered: false,
                };
                let found = rules.find_call(&call);
                let expected = rules.find_call_among(&FoldedCall::new(&call, &rules.arguments), &all);
                assert_eq!(found, expected, "{call:?} under {written:?}");
                *verdicts.entry(found.then).or_insert(0_u32) += 1;
            }
        }
        assert!(verdicts.len() == 4 && verdicts.values().all(|count| *count > 100), "{verdicts:?}");
    }

    /// The time does not grow with the rules: the index hands out a handful of them, whatever there is beside.
    #[test]
    fn ten_thousand_rules_are_not_asked() {
        let sources = |number: usize| {
            let tool = RuleSource { tool: Some(format!("mcp__s{number}__*")), ..RuleSource::empty(Then::Deny) };
            let bash = RuleSource { tool: Some("Bash".to_owned()), ..RuleSource::empty(Then::Deny) };
            let command = RuleSource { command: Some(format!("npm run task{number} *")), ..bash.clone() };
            let path = RuleSource { path: Some(format!("/srv/{number}/**")), ..bash.clone() };
            let host = RuleSource { host: Some(format!("h{number}.example")), ..bash };
            [tool, command, path, host]
        };
        let written: Vec<RuleSource> = (0..2_500).flat_map(sources).collect();
        let rules = Rules::load(&written, &Registry::built_in(), &[]).expect("they load");
        let words = ["npm", "run", "task77", "--fast"].map(|word| Some(word.to_owned())).to_vec();
        let commands = [words];
        let call = CallSubject {
            names: vec!["Bash"],
            mcp: None,
            effects: &[Effect::Unknown],
            paths: vec![CallPath {
                path: Some("/srv/99/x".to_owned()),
                writes: true,
                removes: false,
                sweeps: false,
                command: Some(0),
            }],
            hosts: vec![CallHost { host: Some("h5.example".to_owned()), command: Some(0) }],
            arguments: &Json::Null,
            commands: &commands,
            own: &[],
            own_there: &[],
            own_elsewhere: &[],
            armed: &[],
            is_registered: false,
        };
        let asked = FoldedCall::new(&call, &rules.arguments);
        let mut candidates = 0_u32;
        rules.index.call_candidates(&call, &asked.subject, |_| candidates += 1);
        assert!(candidates <= 6, "{candidates} of 10,000 rules were asked");
        assert_eq!(rules.find_call(&call).matched.len(), 3);
    }
}
