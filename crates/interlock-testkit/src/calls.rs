//! The cases under `conformance/calls/`: tool calls in a small world of files, and what the base policy must find.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use interlock_core::action::ActionText;
use interlock_core::bundle::Bundle;
use interlock_core::call::{Call, Effect, Family, FileChange, Intent, McpTool};
use interlock_core::contain::Abilities;
use interlock_core::json::{Json, Limits, parse, quote};
use interlock_core::rule::Then;
use interlock_runtime::call_policy::{CallFindings, CallPlace, Executor, Ground, RunnerGround, examine_call};
use interlock_runtime::command_lines::read_line;
use serde::Deserialize;

use crate::conformance::files_under;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct RawFile {
    #[serde(default)]
    bundle: String,
    case: Vec<CallCase>,
}

/// One case.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CallCase {
    /// Unique in its file.
    pub name: String,
    bundle: Option<String>,
    tool: Option<String>,
    family: Option<String>,
    mcp: Option<[String; 2]>,
    input: Option<String>,
    /// A command line, for a tool of the family Bash.
    run: Option<String>,
    directory: Option<String>,
    #[serde(default)]
    read: Vec<String>,
    #[serde(default)]
    patterns: Vec<String>,
    #[serde(default)]
    write: Vec<String>,
    /// All that the files in `write` will hold.
    whole: Option<String>,
    #[serde(default)]
    sought: Vec<String>,
    #[serde(default)]
    delete: Vec<String>,
    #[serde(default)]
    urls: Vec<String>,
    #[serde(default)]
    unread: Vec<String>,
    /// The commands go on behind the agent's back.
    #[serde(default)]
    goes_on: bool,
    /// The host's table says that the tool stays within the agent.
    #[serde(default)]
    bookkeeping: bool,
    shell: Option<String>,
    /// A runner runs the line, on a kernel that can hold it.
    #[serde(default)]
    runner: bool,
    /// That kernel has no namespaces for it.
    #[serde(default)]
    narrow: bool,
    /// The host may run the line without it.
    #[serde(default)]
    advisory: bool,
    /// It keeps the project before a line starts.
    #[serde(default)]
    keeps: bool,
    /// An action that asks for the same command line gets the same from the rules.
    #[serde(default)]
    both_doors: bool,
    #[serde(default)]
    files: BTreeMap<String, String>,
    #[serde(default)]
    links: BTreeMap<String, String>,
    #[serde(default)]
    hard_links: BTreeMap<String, String>,
    expect: Expect,
}

/// What must be found; what is not given is not looked at.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
struct Expect {
    effects: Option<Vec<String>>,
    risk: Option<String>,
    status: Option<String>,
    /// `allow`, `ask`, `deny` or `none`.
    rules: Option<String>,
    matched: Option<Vec<String>>,
    allowed: Option<Vec<String>>,
    writes: Option<Vec<String>>,
    reads: Option<Vec<String>>,
    hosts: Option<Vec<String>>,
    outside: Option<bool>,
    edit_lines: Option<u64>,
    files_known: Option<bool>,
    /// The profile that holds it, or `none`.
    contained: Option<String>,
    /// What it destroys can be brought back.
    recoverable: Option<bool>,
}

/// A kernel that can hold whatever a profile says.
const ABLE: Abilities = Abilities { namespaces: true, landlock: 7, seccomp: true, narrow: false };

/// The files that every world has.
const FILES: [&str; 12] = [
    "project/src/main.rs",
    "project/src/lib.rs",
    "project/README.md",
    "project/.env",
    "project/.git/HEAD",
    "project/.git/config",
    "project/sub/deep/note.txt",
    "user/.ssh/id_rsa",
    "user/.bashrc",
    "user/docs/note.txt",
    "user/.interlock/operator.key",
    "other/plain.txt",
];

/// Every case, with the name of its file. An unknown field and a name that stands twice are errors.
pub fn load() -> Vec<(String, CallCase)> {
    let top = crate::repository().join("conformance/calls");
    let mut cases = Vec::new();
    for path in files_under(&top) {
        let name = path.file_name().and_then(|name| name.to_str()).expect("UTF-8").to_owned();
        let text = fs::read_to_string(&path).expect("a case file");
        let file: RawFile = toml::from_str(&text).unwrap_or_else(|error| panic!("conformance/calls/{name}: {error}"));
        for mut case in file.case {
            case.bundle.get_or_insert_with(|| file.bundle.clone());
            let twice = cases.iter().any(|(of, other): &(String, CallCase)| *of == name && other.name == case.name);
            assert!(!twice, "conformance/calls/{name}: `{}` stands twice", case.name);
            cases.push((name.clone(), case));
        }
    }
    cases
}

impl CallCase {
    /// Makes the world in an empty directory, examines the call there, and says where the findings are not as expected.
    pub fn run(&self, root: &Path) -> Result<(), String> {
        let top = root.canonicalize().expect("a directory").to_str().expect("UTF-8").to_owned();
        let fill = |text: &str| {
            text.replace("{project}", &format!("{top}/project"))
                .replace("{home}", &format!("{top}/user"))
                .replace("{root}", &top)
        };
        self.make(Path::new(&top), &fill);
        let bundle = Bundle::load(&fill(self.bundle.as_deref().unwrap_or("")), &BTreeMap::new(), false);
        let bundle = bundle.map_err(|error| error.to_string())?;
        let ground = Ground::load(&bundle).map_err(|cause| cause.to_string())?;
        let (cwd, home) = (format!("{top}/project"), format!("{top}/user"));
        let own = ["user/.interlock", "user/flow.json", "project/.interlock"].map(|name| format!("{top}/{name}"));
        let executor = Executor::named(self.shell.as_deref().unwrap_or("bash"));
        let on_path = [format!("{top}/user/tools")];
        let place = CallPlace {
            cwd: &cwd,
            home: Some(&home),
            project: &cwd,
            own: &own,
            on_path: &on_path,
            executor,
            runner: self.runner.then_some(RunnerGround {
                abilities: Abilities { namespaces: !self.narrow, narrow: self.narrow, ..ABLE },
                advisory: self.advisory,
                keeps: self.keeps,
            }),
        };
        let call = self.call(&fill);
        let found = examine_call(&bundle, &ground, &call, &place);
        let again = examine_call(&bundle, &ground, &call, &place);
        assert_eq!(found.certificate, again.certificate, "`{}`: two certificates", self.name);
        self.expect.check(&found, &fill)?;
        if self.both_doors { self.check_action(&bundle, &ground, &found) } else { Ok(()) }
    }

    /// Asks the action gate's rules about the same line, as an action of the type `run`.
    fn check_action(&self, bundle: &Bundle, ground: &Ground, found: &CallFindings) -> Result<(), String> {
        let line = quote(self.run.as_deref().expect("a command line"));
        let line = parse(&line, &Limits::STATE).expect("JSON");
        let query = Some(line.root());
        let action = ActionText { kind: "run", query, code: None, target: None, parameters: None };
        let other = bundle.find_rules(&action, &mut |line| read_line(line, ground));
        let same = (found.rules, &found.matched) == (other.then, &other.matched);
        if same { Ok(()) } else { Err(format!("an action gets {:?} by {:?}", other.then, other.matched)) }
    }

    fn make(&self, root: &Path, fill: &impl Fn(&str) -> String) {
        let put = |name: &str, text: &str| {
            let path = root.join(name);
            fs::create_dir_all(path.parent().expect("a parent")).expect("a directory");
            fs::write(&path, text).expect("a file");
            // A script is there to be run.
            if text.starts_with("#!") {
                fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).expect("a mode");
            }
        };
        FILES.iter().for_each(|name| put(name, ""));
        self.files.iter().for_each(|(name, text)| put(name, text));
        for (name, to) in &self.links {
            let link = root.join(name);
            fs::create_dir_all(link.parent().expect("a parent")).expect("a directory");
            std::os::unix::fs::symlink(fill(to), link).expect("a link");
        }
        for (name, to) in &self.hard_links {
            fs::hard_link(root.join(to), root.join(name)).expect("a second name");
        }
    }

    fn call(&self, fill: &impl Fn(&str) -> String) -> Call {
        let default = if self.run.is_some() {
            "Bash"
        } else if !self.write.is_empty() || !self.delete.is_empty() {
            "Edit"
        } else if !self.urls.is_empty() {
            "WebFetch"
        } else {
            "Read"
        };
        let family = match self.family.as_deref() {
            Some("none") => None,
            Some(name) => Some(Family::parse(name).expect("a family")),
            None if self.mcp.is_some() => None,
            None => Some(Family::parse(default).expect("a family")),
        };
        let input = fill(self.input.as_deref().unwrap_or("{}"));
        let input = Json::of(parse(&input, &Limits::STATE).expect("JSON").root());
        let whole = self.whole.clone();
        let lines = whole.as_ref().map_or(1, |whole| u64::try_from(whole.lines().count()).expect("few lines"));
        let change = |deletes| {
            let whole = whole.clone();
            move |path: String| FileChange { path, lines: Some(lines), whole: whole.clone(), deletes }
        };
        let texts = |texts: &[String]| texts.iter().map(|text| fill(text)).collect::<Vec<_>>();
        let written = texts(&self.write).into_iter().map(change(false));
        let intent = Intent {
            commands: self.run.iter().map(|line| fill(line)).collect(),
            directory: self.directory.as_deref().map(fill),
            reads: texts(&self.read),
            patterns: texts(&self.patterns),
            writes: written.chain(texts(&self.delete).into_iter().map(change(true))).collect(),
            sought: texts(&self.sought),
            urls: texts(&self.urls),
            goes_on: self.goes_on,
            unread: self.unread.clone(),
            remarks: Vec::new(),
        };
        let mcp = self.mcp.clone().map(|[server, tool]| McpTool { server, tool });
        let name = mcp.as_ref().map(|mcp| format!("mcp__{}__{}", mcp.server, mcp.tool));
        let tool = self.tool.clone().or(name).unwrap_or_else(|| default.to_owned());
        Call { tool, family, mcp, input, intent, bookkeeping: self.bookkeeping }
    }
}

impl Expect {
    fn check(&self, found: &CallFindings, fill: &impl Fn(&str) -> String) -> Result<(), String> {
        let rules = found.rules.map_or("none", Then::as_str).to_owned();
        let hosts = || found.hosts.iter().map(|host| host.clone().unwrap_or_else(|| "?".to_owned()));
        let filled = |list: &Vec<String>| list.iter().map(|text| fill(text)).collect::<Vec<_>>();
        let effects = || found.effects.iter().map(Effect::to_string);
        let mut wrong = Vec::new();
        let mut same = |what: &str, expected: Option<String>, found: String| {
            if expected.is_some_and(|expected| expected != found) {
                wrong.push(format!("{what} is {found}"));
            }
        };
        let shown = |list: Vec<String>| format!("{list:?}");
        same("effects", self.effects.clone().map(shown), shown(effects().collect()));
        same("risk", self.risk.clone(), found.risk.as_str().to_owned());
        same("status", self.status.clone(), found.status.as_str().to_owned());
        same("rules", self.rules.clone(), rules);
        same("matched", self.matched.clone().map(shown), shown(found.matched.clone()));
        same("allowed", self.allowed.clone().map(shown), shown(found.allowed.clone()));
        same("writes", self.writes.as_ref().map(filled).map(shown), shown(found.writes.clone()));
        same("reads", self.reads.as_ref().map(filled).map(shown), shown(found.reads.clone()));
        same("hosts", self.hosts.clone().map(shown), shown(hosts().collect()));
        same("outside", self.outside.map(|it| it.to_string()), found.outside_project.to_string());
        let profile = found.bound.as_ref().map_or("none", |bound| bound.profile.as_str());
        same("contained", self.contained.clone(), profile.to_owned());
        let is_recoverable = found.checks.iter().any(|check| check.passed && check.name.word() == "recoverable");
        same("recoverable", self.recoverable.map(|it| it.to_string()), is_recoverable.to_string());
        same("edit_lines", self.edit_lines.map(|it| it.to_string()), found.edit_lines.to_string());
        same("files_known", self.files_known.map(|it| it.to_string()), found.files_known.to_string());
        if wrong.is_empty() { Ok(()) } else { Err(wrong.join("; ")) }
    }
}
