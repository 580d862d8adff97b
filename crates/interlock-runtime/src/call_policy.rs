//! The base policy: what a tool call does, how risky that is, and what the rules say to it.
//!
//! Reads the file system to see where paths lead, what git is configured to run and who answers for a version; changes
//! nothing, starts nothing.
//! Everything is counted, so that no call takes long. What is not understood is never VERIFIED.

use std::collections::BTreeSet;
use std::path::Path;

use interlock_core::Digest;
use interlock_core::action::{Check, CheckName, Risk, Status};
use interlock_core::bundle::Bundle;
use interlock_core::call::{Call, Effect, Family, FileChange, lines_changed};
use interlock_core::contain::BoundEvidence;
use interlock_core::json::Json;
use interlock_core::places::{Concern, PROJECT_SETTINGS, WORKFLOW_FILES, in_home, is_within};
use interlock_core::rule::{CallHost, CallPath, CallSubject, RuleFinding, Then, hosts_in};
use interlock_verifiers::shell::{Analysis, Assumption, Choosers, GitBlame, GitPrograms, Setting, examine};

pub use interlock_verifiers::Ground;
pub use interlock_verifiers::shell::{Executor, Words, covers};

use crate::paths::{self, Base, Missing, Resolved};
use crate::platform;
use crate::{choosers, git_config};

mod containable;
mod place;
mod repositories;
pub(crate) mod selected;
mod unread_fields;

pub use containable::{RunnerGround, TEMPORARY, inner_line, profile_of};
use place::Places;

/// The version of this policy. Rises when a call could be judged differently, or its certificate is written differently.
const VERSION: u32 = 3;
/// The most paths that are listed of one kind.
pub const PATHS_LISTED_MAX: usize = 256;
/// The largest file whose lines are counted, in bytes.
const TEXT_BYTES_MAX: u64 = 4 << 20;
/// The most command lines in one call.
const LINES_MAX: usize = 32;
/// The most directories in which files that choose programs are looked for.
const CHANGED_MAX: usize = 16;

/// Where a call is made.
#[derive(Debug, Clone, Copy)]
pub struct CallPlace<'a> {
    /// The working directory of the agent: absolute.
    pub cwd: &'a str,
    /// The home directory of its user.
    pub home: Option<&'a str>,
    /// The root of the project.
    pub project: &'a str,
    /// Files and directories that are Interlock's own here: its home, its keys, settings of hosts, the workflow file.
    pub own: &'a [String],
    /// The directories in which the agent's shell looks for programs.
    pub on_path: &'a [String],
    /// The shell that command lines are given to.
    pub executor: Executor,
    /// The runner that runs them, where one does.
    pub runner: Option<RunnerGround>,
}

/// Everything a ruling needs to know about a call.
#[derive(Debug, Clone)]
pub struct CallFindings {
    /// The label of its command lines, if it has any.
    pub label: Option<Effect>,
    /// What it does, from the mildest to the strictest.
    pub effects: Vec<Effect>,
    /// How bad that could be.
    pub risk: Risk,
    /// Whether all of it was understood.
    pub status: Status,
    /// The strictest verdict of the rules.
    pub rules: Option<Then>,
    /// The rules with that verdict.
    pub matched: Vec<String>,
    /// The rules with `allow` by which the operator knows this call, or a command of it.
    pub allowed: Vec<String>,
    /// Where it reads, resolved; at most [`PATHS_LISTED_MAX`].
    pub reads: Vec<String>,
    /// Where it writes or may write, resolved; at most [`PATHS_LISTED_MAX`].
    pub writes: Vec<String>,
    /// Those are all: nothing else is written that could have a name.
    pub files_known: bool,
    /// How many lines its edits change; the largest number if that cannot be told.
    pub edit_lines: u64,
    /// Everything it touches, resolved.
    touched: Vec<CallPath>,
    /// Something is written, or may be, outside of the project.
    pub outside_project: bool,
    /// The hosts it reaches; `None` for one that is not known.
    pub hosts: Vec<Option<String>>,
    /// The commands of each of its command lines, for `allowed_commands`.
    pub lines: Vec<Words>,
    /// What those lines were judged in.
    pub setting: Setting,
    /// What was looked at.
    pub checks: Vec<Check>,
    /// The SHA-256 of all this, of the call and of the bundle.
    pub certificate: Digest,
    /// The bound in which it would run: the rules were asked about that.
    pub bound: Option<BoundEvidence>,
}

impl CallFindings {
    /// Whether it touches what is in a directory: by a path in it, by taking away or reading all that is above it, or by
    /// working there. What may lead anywhere counts for its own project alone.
    pub fn touches(&self, directory: &str) -> bool {
        self.touched.iter().any(|touched| {
            let covers = touched.removes || touched.sweeps;
            let is_it = |path: &str| is_within(path, directory) || covers && is_within(directory, path);
            touched.path.as_deref().is_some_and(is_it)
        })
    }
}

/// Says everything a ruling needs to know about a call.
pub fn examine_call(bundle: &Bundle, ground: &Ground, call: &Call, place: &CallPlace<'_>) -> CallFindings {
    let mut seen = Seen::default();
    let mut places = Places::new(place);
    let start = directory_of(call, place);
    let setting = setting_of(ground, place, &start);
    seen.lines(&setting, &start, call, place.home, &mut places);
    seen.repositories(&start, place, &places);
    seen.files(call, place, &mut places);
    let registered = registered_name(call).and_then(|name| bundle.registry().get(&name));
    // What a tool means that is of no family, nobody here can tell: whatever looks like a path or an address counts.
    if is_bookkeeping(call) {
        // Texts for the agent and its user: a path in them is not touched.
    } else if call.family.is_none() {
        unread_fields::all(&call.input, &mut seen, place, &mut places);
    } else {
        let unread = |name: &String| call.input.as_object().and_then(|members| members.get(name));
        call.intent
            .unread
            .iter()
            .filter_map(unread)
            .for_each(|it| unread_fields::all(it, &mut seen, place, &mut places));
    }
    let mut own = with_resolved(place.own, place);
    let own_elsewhere = outside_of_project(&own, place);
    places.add_aliases(&own);
    let worked_in = seen.worked_in(&start, &places);
    let paths = places.finish();
    own.extend(paths.iter().filter_map(|touched| settings_of_project(touched.path.as_deref()?)));
    let own_there: Vec<String> = own.iter().filter(|own| Path::new(own).symlink_metadata().is_ok()).cloned().collect();
    seen.effects(call, registered.map(|row| row.risk));
    let effects: Vec<Effect> = seen.labels.iter().copied().collect();
    let at_home = place.home.iter().flat_map(|home| in_home(Concern::RunsLater).map(move |it| format!("{home}/{it}")));
    let armed: Vec<String> = place.on_path.iter().cloned().chain(at_home).collect();
    let armed = with_resolved(&armed, place);
    let mut subject = CallSubject {
        names: call.names().collect(),
        mcp: call.mcp.as_ref(),
        effects: &effects,
        paths,
        hosts: seen.hosts.iter().cloned().collect(),
        arguments: &call.input,
        commands: &seen.commands,
        own: &own,
        own_there: &own_there,
        own_elsewhere: &own_elsewhere,
        armed: &armed,
        // Of commands it is known what they reach; no entry answers for them.
        is_registered: registered.is_some() && seen.commands.is_empty(),
    };
    let project = paths::resolve(place.project, place.cwd, place.home);
    let bound = place
        .runner
        .zip(project.known())
        .and_then(|(ground, project)| containable::bound_for(bundle, call, &seen, &subject, project, ground));
    if bound.is_some() {
        // What may lead anywhere leads no further than the bound; what is named is asked about all the same.
        subject.paths.retain(|touched| touched.path.is_some());
        subject.hosts.clear();
    }
    let found = bundle.find_call_rules(&subject);
    let outside = is_outside(&subject.paths, place);
    let of_others = |path: &&CallPath| !seen.is_known(path.command, &found);
    let left: Vec<CallPath> = subject.paths.iter().filter(of_others).cloned().collect();
    let outside = Outside { any: outside, left: is_outside(&left, place) };
    let judged = Judged::new(call, &seen, &found, outside, registered.map(|row| row.risk));
    let mut checks = checks(&judged, &found, &seen);
    let passed = |name: &'static str| Check { name: name.into(), passed: true };
    checks.extend(bound.as_ref().map(|_| passed("contained")));
    checks.extend(bound.as_ref().filter(|bound| bound.brings_back(&effects)).map(|_| passed("recoverable")));
    let certificate = certificate(bundle, call, &judged, &found, &subject, bound.as_ref());
    let list = |writes: bool| {
        let known = subject.paths.iter().filter(|path| path.writes == writes).filter_map(|path| path.path.clone());
        known.collect::<BTreeSet<_>>().into_iter().take(PATHS_LISTED_MAX).collect()
    };
    let (reads, writes) = (list(false), list(true));
    let touched = subject.paths.iter().cloned().chain(worked_in).collect();
    let hosts: BTreeSet<Option<String>> = subject.hosts.iter().map(|host| host.host.clone()).collect();
    CallFindings {
        label: seen.label,
        risk: judged.risk,
        status: judged.status,
        rules: found.then,
        matched: found.matched,
        allowed: found.allowed,
        reads,
        writes,
        files_known: seen.files_known(&subject.paths),
        edit_lines: seen.edit_lines,
        touched,
        outside_project: outside.any,
        hosts: hosts.into_iter().collect(),
        lines: seen.lines,
        setting,
        checks,
        certificate,
        effects,
        bound,
    }
}

/// Where the command lines of a call are run.
fn directory_of(call: &Call, place: &CallPlace<'_>) -> Resolved {
    let base = Base { cwd: place.cwd, home: place.home, missing: Missing::Plain };
    let mut readings = paths::readings(call.intent.directory.as_deref().unwrap_or(place.cwd), base).into_iter();
    match (readings.next(), readings.next()) {
        (Some(Resolved::Known(_)), None) if call.intent.directory.is_none() => Resolved::Known(place.cwd.to_owned()),
        (Some(only), None) => only,
        // One that can be read in two ways may be any.
        (None, _) | (Some(_), Some(_)) => Resolved::Unresolvable,
    }
}

/// What command lines are judged in.
fn setting_of(ground: &Ground, place: &CallPlace<'_>, start: &Resolved) -> Setting {
    let mut setting = Setting::with(ground.commands.clone());
    setting.executor = place.executor;
    // Nobody can look at the configuration of a directory that is not known.
    let home = place.home.map(Path::new);
    let programs = |start| git_config::programs_for(Path::new(start), home, Path::new(place.project));
    let nowhere = || GitPrograms { always: Some("a directory that is not known".to_owned()), ..GitPrograms::default() };
    setting.git = Some(start.known().map_or_else(nowhere, programs));
    setting
}

/// Which files choose programs wherever a line may be.
fn choosers_for(words: &Words, start: &Resolved, home: Option<&str>) -> Choosers {
    let mut directories: BTreeSet<String> = start.known().map(str::to_owned).into_iter().collect();
    let mut is_unknown = directories.is_empty();
    for change in &words.changes {
        let to = change.to.as_deref().filter(|_| directories.len() <= CHANGED_MAX);
        let Some(to) = to else {
            is_unknown = true;
            break;
        };
        let found: Vec<Resolved> = directories.iter().map(|from| paths::resolve(to, from, home)).collect();
        is_unknown |= found.iter().any(|place| place.known().is_none());
        directories.extend(found.iter().filter_map(|place| place.known().map(str::to_owned)));
    }
    Choosers { is_unknown, ..choosers::choosers(directories.iter().map(Path::new)) }
}

/// What was seen in a call.
#[derive(Debug, Default)]
struct Seen {
    label: Option<Effect>,
    labels: BTreeSet<Effect>,
    lines: Vec<Words>,
    /// The words of all commands of all lines.
    commands: Vec<Vec<Option<String>>>,
    hosts: BTreeSet<CallHost>,
    edit_lines: u64,
    /// Something in the call was not understood.
    has_unread: bool,
    /// The setting of git that makes a command what it is.
    setting_to_blame: Option<GitBlame>,
}

impl Seen {
    /// Reads the command lines.
    fn lines(&mut self, setting: &Setting, start: &Resolved, call: &Call, home: Option<&str>, places: &mut Places<'_>) {
        if call.intent.commands.is_empty() {
            return;
        }
        let mut label = Effect::ReadOnly;
        for line in call.intent.commands.iter().take(LINES_MAX) {
            let (mut analysis, mut words) = examine(line, setting);
            if analysis.assumes.contains(&Assumption::AsInstalled) {
                // Only now is it worth a look, and where to look is known as well.
                let choosers = Some(choosers_for(&words, start, home));
                (analysis, words) = examine(line, &Setting { choosers, ..setting.clone() });
            }
            label = label.max(analysis.label);
            self.setting_to_blame = self.setting_to_blame.take().or_else(|| blamed(&analysis));
            self.labels.extend(analysis.causes.iter().map(|found| found.effect));
            if !analysis.understood {
                // It may be missing among very many effects.
                self.labels.insert(Effect::Unknown);
            }
            let first = self.commands.len();
            let of_all = |command: Option<usize>| command.map(|at| at.saturating_add(first));
            places.add_line(&words, start, of_all);
            for reached in &words.hosts {
                self.hosts.insert(CallHost { host: reached.host.clone(), command: of_all(reached.command) });
            }
            self.commands.extend(words.commands.iter().map(|command| command.words.clone()));
            self.lines.push(words);
        }
        if call.intent.commands.len() > LINES_MAX {
            label = label.max(Effect::Unknown);
            self.labels.insert(Effect::Unknown);
            self.has_unread = true;
        }
        if call.intent.goes_on && label > Effect::ReadOnly {
            // It may do it at any time.
            label = label.max(Effect::Unknown);
            self.labels.insert(Effect::Unknown);
        }
        // Reading is what is left if nothing else is done.
        if label > Effect::ReadOnly {
            self.labels.remove(&Effect::ReadOnly);
        } else {
            self.labels.insert(Effect::ReadOnly);
        }
        self.label = Some(label);
    }

    /// The directories in which the commands of the lines run.
    fn worked_in(&self, start: &Resolved, places: &Places<'_>) -> Vec<CallPath> {
        let directories = self.lines.iter().filter_map(|words| places.directories_of(words, start, |_| true));
        let at = |path| CallPath { path: Some(path), writes: false, removes: false, sweeps: false, command: None };
        directories.flatten().map(at).collect()
    }

    /// Looks where git is run: in a repository that the agent can write, it may start anything.
    fn repositories(&mut self, start: &Resolved, place: &CallPlace<'_>, places: &Places<'_>) {
        let foreign = repositories::foreign(&self.lines, start, place, places);
        if foreign.is_empty() {
            return;
        }
        let commands = self.lines.iter_mut().flat_map(|words| words.commands.iter_mut()).enumerate();
        for (_, command) in commands.filter(|(at, _)| foreign.contains(at)) {
            command.label = command.label.max(Effect::Unknown);
        }
        self.label = self.label.map(|label| label.max(Effect::Unknown));
        self.labels.insert(Effect::Unknown);
        self.labels.remove(&Effect::ReadOnly);
    }

    /// Whether the files that are written can be counted: not behind a pattern, or in a directory that is taken along.
    fn files_known(&self, paths: &[CallPath]) -> bool {
        let is_directory = |path: &str| Path::new(path).is_dir();
        let countless = |path: &CallPath| {
            path.writes && path.path.as_deref().is_none_or(|path_of| path.removes && is_directory(path_of))
        };
        let spreads = |words: &Words| {
            words.touches.iter().any(|touch| {
                let command = touch.command.and_then(|at| words.commands.get(at));
                let copies = command.is_some_and(|command| command.copies_many);
                touch.is_glob && touch.writes || (touch.is_glob || touch.sweeps) && copies
            })
        };
        !paths.iter().any(countless) && !self.lines.iter().any(spreads)
    }

    /// Whether the operator knows a command of the call, or one that runs it.
    fn is_known(&self, command: Option<usize>, found: &RuleFinding) -> bool {
        let Some(command) = command.filter(|_| !self.has_unread) else { return false };
        let mut first = 0usize;
        for words in &self.lines {
            let known = words.known(|at| found.known_commands.contains(&at.saturating_add(first)));
            if let Some(known) = command.checked_sub(first).and_then(|at| known.get(at)) {
                return *known;
            }
            first = first.saturating_add(words.commands.len());
        }
        false
    }

    /// Reads the files and addresses that the call names.
    fn files(&mut self, call: &Call, place: &CallPlace<'_>, places: &mut Places<'_>) {
        let base = Base { cwd: place.cwd, home: place.home, missing: Missing::Plain };
        // A search in files reads all that is in a directory; without one, in that of the call.
        let sweeps = call.family == Some(Family::Grep);
        let how = CallPath { path: None, writes: false, removes: false, sweeps, command: None };
        for path in &call.intent.reads {
            places.insert_readings(path, base, &how);
        }
        for pattern in &call.intent.patterns {
            places.insert_pattern(pattern, base, &how);
            // A list of names is no reading.
            if call.family != Some(Family::Glob) {
                places.insert_secret(pattern, base, &how);
            }
        }
        if sweeps && call.intent.reads.is_empty() {
            places.insert(paths::resolve_from(".", base), &how);
        }
        for change in &call.intent.writes {
            let how = CallPath { path: None, writes: true, removes: change.deletes, sweeps: false, command: None };
            places.insert_readings(&change.path, base, &how);
            self.edit_lines = self.edit_lines.saturating_add(lines_of(change, base).unwrap_or(u64::MAX));
            self.labels.insert(if change.deletes { Effect::Destructive } else { Effect::Write });
        }
        for path in &call.intent.sought {
            let how = CallPath { path: None, writes: true, removes: false, sweeps: false, command: None };
            places.insert_sought(path, base, &how);
        }
        for url in &call.intent.urls {
            if url.get(..5).is_some_and(|scheme| scheme.eq_ignore_ascii_case("file:")) {
                places.insert_readings(url, base, &CallPath { sweeps: false, ..how.clone() });
            }
            let hosts = hosts_in(url, true);
            // An address without a host that can be read is one that nobody knows.
            let unknown = hosts.is_empty().then_some(None);
            self.hosts.extend(hosts.into_iter().chain(unknown).map(|host| CallHost { host, command: None }));
            self.labels.insert(Effect::Network);
        }
    }

    /// What a call does by its family, beside what it names.
    fn effects(&mut self, call: &Call, registered: Option<Risk>) {
        let intent = &call.intent;
        self.has_unread |= call.family.is_some() && !intent.unread.is_empty();
        match call.family {
            Some(Family::Read | Family::Grep | Family::Glob) => {
                self.labels.insert(Effect::ReadOnly);
            }
            Some(Family::Edit | Family::Write) => {
                // Which files are changed has to be known.
                self.has_unread |= intent.writes.is_empty();
                self.labels.insert(Effect::Write);
            }
            Some(Family::WebFetch) => {
                self.labels.insert(Effect::Network);
            }
            Some(Family::Bash) => {
                if intent.commands.is_empty() {
                    self.has_unread = true;
                    self.labels.insert(Effect::Unknown);
                }
            }
            None if is_bookkeeping(call) => {
                self.labels.insert(Effect::ReadOnly);
            }
            // What an operator registered is as bad as its risk says; what it does, only a harmless one tells.
            Some(Family::Agent) | None => match registered {
                Some(Risk::Low) => drop(self.labels.insert(Effect::ReadOnly)),
                Some(Risk::Medium | Risk::High | Risk::Critical) => {}
                None => drop(self.labels.insert(Effect::Unknown)),
            },
        }
        if self.has_unread {
            self.labels.insert(Effect::Unknown);
        }
        if self.labels.iter().any(|label| *label > Effect::ReadOnly) {
            self.labels.remove(&Effect::ReadOnly);
        }
        if self.labels.contains(&Effect::Network) && self.hosts.is_empty() {
            self.hosts.insert(CallHost { host: None, command: None });
        }
    }
}

/// How many lines a change writes and takes away, where that can be told.
fn lines_of(change: &FileChange, base: Base<'_>) -> Option<u64> {
    let (Some(whole), false) = (&change.whole, change.deletes) else { return change.lines };
    // The end of the last line is no line.
    let ended = |text: &str| text.strip_suffix('\n').unwrap_or(text).to_owned();
    let mut most = 0;
    for reading in paths::readings(&change.path, base) {
        let lines = match platform::text_of(Path::new(reading.known()?), TEXT_BYTES_MAX).ok()? {
            Some(held) => lines_changed(&ended(&held), &ended(whole)),
            None => change.lines?,
        };
        most = lines.max(most);
    }
    Some(most)
}

/// Whether something is written outside of the project, or may be.
#[derive(Debug, Clone, Copy)]
struct Outside {
    any: bool,
    /// By what no rule of the operator knows.
    left: bool,
}

/// How risky a call is, and whether it was understood.
struct Judged {
    risk: Risk,
    status: Status,
}

impl Judged {
    fn new(call: &Call, seen: &Seen, found: &RuleFinding, outside: Outside, registered: Option<Risk>) -> Judged {
        let mut risk = Risk::Low;
        let mut understood = !seen.has_unread;
        let mut at_least = |other: Risk| risk = risk.max(other);
        if let Some(label) = seen.label {
            let left = left_of(seen, found);
            match left {
                // The operator knows some of the commands: what is left counts as it is.
                Some(left) => {
                    at_least(left.risk().max(Risk::Medium));
                    understood &= left < Effect::Unknown;
                }
                None => {
                    at_least(label.risk());
                    understood &= !seen.labels.contains(&Effect::Unknown);
                }
            }
        }
        // A line that writes elsewhere is what an edit there is.
        if seen.label.is_some_and(|label| label > Effect::ReadOnly) && outside.left {
            at_least(Risk::High);
        }
        let outside = outside.any;
        for change in &call.intent.writes {
            at_least(match (change.deletes, outside) {
                (false, false) => Risk::Medium,
                (false, true) | (true, false) => Risk::High,
                (true, true) => Risk::Critical,
            });
        }
        let listed = !found.allowed.is_empty();
        match call.family {
            Some(Family::Read | Family::Grep | Family::Glob | Family::Bash) => {}
            Some(Family::Edit | Family::Write) => at_least(if outside { Risk::High } else { Risk::Medium }),
            Some(Family::WebFetch) => {
                at_least(if listed { Risk::Medium } else { registered.unwrap_or(Risk::High) });
            }
            None if is_bookkeeping(call) => {}
            Some(Family::Agent) | None => match (registered, listed) {
                (Some(registered), _) => at_least(registered),
                (None, true) => at_least(Risk::Medium),
                (None, false) => {
                    at_least(Risk::High);
                    understood = false;
                }
            },
        }
        // An operator can rate a known tool higher, not lower.
        if let Some(registered) = registered {
            at_least(registered);
        }
        if seen.has_unread {
            at_least(Risk::High);
        }
        Judged { risk, status: if understood { Status::Verified } else { Status::Uncertain } }
    }
}

/// The strictest effect of what no rule of the operator knows; nothing if no rule knows any of it.
fn left_of(seen: &Seen, found: &RuleFinding) -> Option<Effect> {
    if found.known_commands.is_empty() || seen.has_unread {
        return None;
    }
    let mut first = 0usize;
    let mut left = Effect::ReadOnly;
    for words in &seen.lines {
        let rest = words.rest(|at| found.known_commands.contains(&at.saturating_add(first)));
        left = left.max(rest).max(words.loose);
        first = first.saturating_add(words.commands.len());
    }
    Some(left)
}

/// Whether a call stays within the agent, all of it understood.
fn is_bookkeeping(call: &Call) -> bool {
    call.bookkeeping && call.family.is_none() && call.mcp.is_none() && call.intent.unread.is_empty()
}

/// The name under which an operator may have registered the tool. Server and tool of MCP are joined only where that can
/// be read in one way.
fn registered_name(call: &Call) -> Option<String> {
    let Some(mcp) = &call.mcp else {
        let joined = call.tool.strip_prefix("mcp__");
        let in_one_way = joined.is_none_or(|joined| joined.matches("__").count() == 1 && !joined.contains("___"));
        return in_one_way.then(|| call.tool.clone());
    };
    let (server, tool) = (&mcp.server, &mcp.tool);
    let in_one_way = !server.contains("__") && !server.ends_with('_') && !tool.starts_with('_') && !server.is_empty();
    in_one_way.then(|| format!("mcp__{server}__{tool}"))
}

/// Places as they are given, and where they lead if links are in them.
fn with_resolved(places: &[String], place: &CallPlace<'_>) -> Vec<String> {
    let resolved = |text: &String| paths::resolve(text, place.cwd, place.home).known().map(str::to_owned);
    let all: BTreeSet<String> = places.iter().flat_map(|text| [Some(text.clone()), resolved(text)]).flatten().collect();
    all.into_iter().collect()
}

/// The directory with the settings of some project for Interlock that a path is in: one that holds a workflow, and not
/// only has the name.
fn settings_of_project(path: &str) -> Option<String> {
    let is_named = |level: &&Path| level.file_name().is_some_and(|name| name.eq_ignore_ascii_case(PROJECT_SETTINGS));
    let directory = Path::new(path).ancestors().find(is_named)?;
    let has = |name: &&str| directory.join(name).symlink_metadata().is_ok();
    WORKFLOW_FILES.iter().any(has).then(|| directory.to_str().map(str::to_owned)).flatten()
}

/// Those of some places that are not in the project: what is in it belongs to whoever reads the project.
fn outside_of_project(places: &[String], place: &CallPlace<'_>) -> Vec<String> {
    let roots = with_resolved(&[place.project.to_owned()], place);
    let is_inside = |path: &str| roots.iter().any(|root| is_within(path, root));
    places.iter().filter(|path| !is_inside(path)).cloned().collect()
}

/// Whether something is written outside of the project, or may be.
fn is_outside(touched: &[CallPath], place: &CallPlace<'_>) -> bool {
    let project = paths::resolve(place.project, place.cwd, place.home);
    let Some(root) = project.known() else { return touched.iter().any(|path| path.writes) };
    touched
        .iter()
        .filter(|path| path.writes)
        .any(|path| path.path.as_deref().is_none_or(|path| !is_within(path, root) && !is_stream(path)))
}

/// Whether a path is no file but one of the streams that a command has anyway, or nowhere.
fn is_stream(path: &str) -> bool {
    path.starts_with("/dev/fd/") || matches!(path, "/dev/null" | "/dev/stdout" | "/dev/stderr" | "/dev/tty")
}

/// The setting of git that is to blame for what a line does.
fn blamed(analysis: &Analysis) -> Option<GitBlame> {
    analysis.causes.iter().filter_map(|cause| cause.blame.as_ref()).min().cloned()
}

fn checks(judged: &Judged, found: &RuleFinding, seen: &Seen) -> Vec<Check> {
    let check = |name: &'static str, passed| Check { name: name.into(), passed };
    let git = seen.setting_to_blame.iter();
    let git = git.map(|blame| Check { name: CheckName::GitSetting(blame.setting().to_owned()), passed: false });
    let mut checks = vec![
        check("all_read", !seen.has_unread),
        check("understood", judged.status == Status::Verified),
        check("no_destructive_operations", !seen.labels.contains(&Effect::Destructive)),
        check("rules", !matches!(found.then, Some(Then::Ask | Then::Deny))),
    ];
    checks.extend(git);
    checks
}

/// The SHA-256 of the call, of the bundle and of what was found, written as JSON: it says the same wherever it is made.
fn certificate(
    bundle: &Bundle,
    call: &Call,
    judged: &Judged,
    found: &RuleFinding,
    subject: &CallSubject<'_>,
    bound: Option<&BoundEvidence>,
) -> Digest {
    let number = |at: usize| Json::from(u64::try_from(at).unwrap_or(u64::MAX));
    let of_command = |command: Option<usize>| command.map_or(Json::Null, number);
    let name = |name: &Option<String>| name.as_deref().map_or(Json::Null, Json::from);
    let texts = |texts: &[String]| Json::Array(texts.iter().map(|text| text.as_str().into()).collect());
    let path = |touched: &CallPath| {
        let CallPath { path, writes, removes, sweeps, command } = touched;
        let flags = [writes, removes, sweeps].map(|is| Json::Bool(*is));
        Json::Array([name(path)].into_iter().chain(flags).chain([of_command(*command)]).collect())
    };
    let host = |reached: &CallHost| Json::Array(vec![name(&reached.host), of_command(reached.command)]);
    let mut pieces = vec![
        "call policy".into(),
        u64::from(VERSION).into(),
        (&*call.fingerprint().to_string()).into(),
        (&*bundle.digest().to_string()).into(),
        judged.risk.as_str().into(),
        judged.status.as_str().into(),
        Json::Array(subject.effects.iter().map(|effect| effect.as_str().into()).collect()),
        Json::Array(subject.paths.iter().map(path).collect()),
        Json::Array(subject.hosts.iter().map(host).collect()),
        found.then.map_or(Json::Null, |then| then.as_str().into()),
        texts(&found.matched),
        texts(&found.allowed),
        Json::Array(found.known_commands.iter().copied().map(number).collect()),
    ];
    let held = |bound: &BoundEvidence| [bound.digest.to_string(), bound.abilities.shown()].map(|text| (&*text).into());
    pieces.extend(bound.into_iter().flat_map(held));
    pieces.extend(bound.filter(|bound| bound.keeps).map(|_| "the project is kept".into()));
    Digest::of(&[&Json::Array(pieces).canonical()])
}
