//! A tool call, as rules are matched with it.

use std::collections::{BTreeMap, BTreeSet};

use super::pattern::fold_case;
use super::subject::{Identity, PathText, ReachedHost, Subject, TouchedPath, UNNAMED_HOST, fold_name};
use crate::call::{Effect, McpTool};
use crate::json::Json;

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

impl CallSubject<'_> {
    /// As rules are matched with it. `known` are the arguments they ask about, `own` the places of this very server.
    pub(super) fn subject(&self, known: &BTreeSet<String>, own: &[String]) -> Subject<'_> {
        let path = |touched: &CallPath| TouchedPath {
            text: touched.path.as_deref().map_or(PathText::Anywhere, |path| PathText::Resolved(fold_case(path))),
            writes: touched.writes,
            removes: touched.removes,
            sweeps: touched.sweeps,
            command: touched.command,
        };
        let host = |reached: &CallHost| ReachedHost {
            host: reached.host.as_deref().map_or_else(|| UNNAMED_HOST.to_owned(), str::to_lowercase),
            command: reached.command,
        };
        let mut arguments = BTreeMap::new();
        if !known.is_empty() {
            add_arguments(self.arguments, &mut String::new(), DEPTH_MAX, known, &mut arguments);
        }
        let fold = |places: &[String]| -> Vec<String> { places.iter().map(|place| fold_case(place)).collect() };
        Subject {
            identity: Identity::Call { names: &self.names, mcp: self.mcp, effects: self.effects },
            arguments,
            paths: self.paths.iter().map(path).collect(),
            mentioned: BTreeSet::new(),
            hosts: self.hosts.iter().map(host).collect(),
            commands: self.commands.into(),
            own: [fold(self.own), own.to_vec()].concat().into(),
            own_if_removed: fold(self.own_there).into(),
            own_if_swept: fold(self.own_elsewhere).into(),
            armed: fold(self.armed),
            is_resolved: true,
            is_registered: self.is_registered,
        }
    }
}

/// The scalar arguments that rules ask about, by dotted name; an item of an array has the name of the array.
fn add_arguments(
    value: &Json,
    name: &mut String,
    depth: u32,
    known: &BTreeSet<String>,
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
    use crate::rule::index::Via;
    use crate::rule::{Rule, RuleSource, Rules, Then};

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
                let subject = call.subject(&rules.arguments, &[]);
                let expected =
                    rules.find_among(&subject, |consider| all.iter().for_each(|at| consider(*at, Via::Else)));
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
        let mut candidates = 0_u32;
        rules.index.candidates(&call.subject(&rules.arguments, &[]), &mut |_, _| candidates += 1);
        assert!(candidates <= 6, "{candidates} of 10,000 rules were asked");
        assert_eq!(rules.find_call(&call).matched.len(), 3);
    }
}
