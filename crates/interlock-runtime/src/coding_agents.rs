//! Coding agents: one for each host in each project. Whoever calls from within a project, in whatever session, is that
//! project's agent, and finds the same run and the same figures.

use std::collections::{BTreeSet, HashMap};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use interlock_core::action::{AgentKind, BudgetLimits, Mode, Permissions, Profile};
use interlock_core::places::PROJECT_SETTINGS;
use interlock_core::workflow::{HostSeen, Lineage, Run, check_host};
use interlock_core::{Digest, visible};

use crate::clock::hex;
use crate::ledger::{Ledger, StoreFault};

/// Who answers for coding agents on this machine.
pub const PRINCIPAL: &str = "local";
/// What marks the root of a project: a repository, and settings for Interlock.
const MARKS: [&str; 2] = [".git", PROJECT_SETTINGS];
/// What a home of Interlock has and the settings of a project have not. The user's home directory is no project because
/// Interlock lives in it.
const HOME_MARK: &str = "data";
/// How many tool calls an hour and a day a coding agent may make.
const CALLS_PER_HOUR: u64 = 5_000;
const CALLS_PER_DAY: u64 = 50_000;
/// How many sessions are remembered.
const SESSIONS_MAX: usize = 4_096;
/// How many host processes are remembered.
const HOSTS_MAX: usize = 1_024;
/// How many runs are read at a time.
const PAGE: usize = 256;

/// The id of the agent that is this host's in this project.
pub fn agent_id(host: &str, project: &str) -> String {
    let digest = Digest::of(&["coding agent\n", host, "\n", project]).bytes();
    format!("agent_{}", hex(digest.get(..16).unwrap_or_default()))
}

/// What is said about it.
pub fn profile(host: &str, project: &str) -> Profile {
    let name = Path::new(project).file_name().and_then(|name| name.to_str()).unwrap_or("/");
    let limits = BudgetLimits::default();
    Profile {
        agent_id: agent_id(host, project),
        name: format!("{host} in {}", visible(name)),
        kind: AgentKind::Autonomous,
        principal_id: PRINCIPAL.to_owned(),
        description: Some(project.to_owned()),
        framework: Some(host.to_owned()),
        model: None,
        permissions: Permissions::default(),
        budget: BudgetLimits {
            max_requests_per_hour: Some(CALLS_PER_HOUR),
            max_requests_per_day: Some(CALLS_PER_DAY),
            ..limits
        },
        created_at: 0,
        registered_by: None,
    }
}

/// Which session belongs to which project: it stays with the one it began in.
#[derive(Debug, Default)]
pub struct Sessions {
    known: Mutex<HashMap<(String, String), String>>,
}

impl Sessions {
    /// The sessions that the ledger knows.
    pub fn load(ledger: &Ledger) -> Result<Sessions, StoreFault> {
        Ok(Sessions { known: Mutex::new(recorded(ledger)?) })
    }

    /// The project of a session, if it is known.
    pub fn project(&self, host: &str, session: &str) -> Option<String> {
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        known.get(&(host.to_owned(), session.to_owned())).cloned()
    }

    /// A session begins in a project; one that is known stays where it is. What is too much to remember is read from the
    /// ledger again, which keeps the newest of every run: one that goes on must not lose its project.
    pub fn bind(&self, ledger: &Ledger, host: &str, session: &str, project: &str) -> Result<(), StoreFault> {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if known.len() >= SESSIONS_MAX {
            *known = recorded(ledger)?;
        }
        known.entry((host.to_owned(), session.to_owned())).or_insert_with(|| project.to_owned());
        Ok(())
    }
}

/// The sessions of all runs: host and session, and the project.
fn recorded(ledger: &Ledger) -> Result<HashMap<(String, String), String>, StoreFault> {
    let mut known = HashMap::new();
    for_each_run(ledger, |agent, run| {
        let Some(agent) = ledger.agent(agent)? else { return Ok(()) };
        let (host, project) = (agent.profile.framework.as_ref(), agent.profile.description.as_ref());
        if let Some((host, project)) = host.zip(project) {
            let mine = run.sessions.into_iter().map(|session| ((host.clone(), session), project.clone()));
            known.extend(mine);
        }
        Ok(())
    })?;
    Ok(known)
}

pub(crate) fn for_each_run(
    ledger: &Ledger,
    mut each: impl FnMut(&str, Run) -> Result<(), StoreFault>,
) -> Result<(), StoreFault> {
    let mut after = String::new();
    loop {
        let page = ledger.runs(&after, PAGE)?;
        let Some((last, _)) = page.last() else { return Ok(()) };
        after.clone_from(last);
        for (agent, run) in page {
            each(&agent, run)?;
        }
    }
}

/// The processes that told of calls or began sessions, of all runs.
#[derive(Debug, Default)]
pub struct HostProcesses {
    known: Mutex<Vec<HostSeen>>,
}

impl HostProcesses {
    /// Those that the ledger knows.
    pub fn load(ledger: &Ledger) -> Result<HostProcesses, StoreFault> {
        let mut known = Vec::new();
        for_each_run(ledger, |_, run| {
            known.extend(run.hosts);
            Ok(())
        })?;
        Ok(HostProcesses { known: Mutex::new(known) })
    }

    /// Whether a process began a session and comes of no call: what it tells is observed.
    pub fn began(&self, process: Digest) -> bool {
        self.lock().iter().any(|known| known.process == process && known.began)
    }

    /// What is to be recorded of a process that tells of a call, or begins a session; nothing if it is known already, or
    /// cannot be told from others.
    pub fn newly_seen(
        &self,
        process: Digest,
        begins: bool,
        line: impl FnOnce() -> Option<Lineage>,
    ) -> Option<HostSeen> {
        let known = self.lock();
        if known.iter().any(|known| known.process == process && (known.began || !begins)) {
            return None;
        }
        let line = line().filter(|line| line.host.process == process)?;
        let began = begins && check_host(&known, &line).is_ok();
        let seen = HostSeen { began, ..line.host };
        (!known.contains(&seen)).then_some(seen)
    }

    /// Remembers what was recorded.
    pub fn note(&self, seen: HostSeen) {
        let mut known = self.lock();
        known.retain(|known| known.boot == seen.boot && known.process != seen.process);
        if known.len() >= HOSTS_MAX {
            // The oldest stays: what is younger may come of its calls.
            let oldest = known.iter().map(|known| known.started).min();
            if let Some(at) = known.iter().position(|known| Some(known.started) != oldest) {
                known.remove(at);
            }
        }
        known.push(seen);
    }

    fn lock(&self) -> MutexGuard<'_, Vec<HostSeen>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The projects of coding agents: hosts and directories. Once read, they grow by what is enrolled.
#[derive(Debug, Default)]
pub struct Projects {
    known: Mutex<Option<BTreeSet<(String, String)>>>,
}

impl Projects {
    /// An agent was enrolled.
    pub fn note(&self, host: &str, project: &str) {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        // What was not read yet will be read with it.
        if let Some(known) = known.as_mut() {
            known.insert((host.to_owned(), project.to_owned()));
        }
    }

    /// The agents of the other hosts that work in the same files.
    pub fn beside(&self, ledger: &Ledger, host: &str, project: &str) -> Result<Vec<String>, StoreFault> {
        self.with_known(ledger, |known| {
            let others = known.iter().filter(|(of, there)| of != host && there == project);
            others.map(|(of, there)| agent_id(of, there)).collect()
        })
    }

    /// The agents of all hosts that work in a project.
    pub fn agents_in(&self, ledger: &Ledger, project: &str) -> Result<Vec<String>, StoreFault> {
        self.with_known(ledger, |known| {
            let there = known.iter().filter(|(_, there)| there == project);
            there.map(|(host, there)| agent_id(host, there)).collect()
        })
    }

    /// The nearest directory, from one upwards, that is the project of some agent.
    pub fn above(&self, ledger: &Ledger, directory: &Path) -> Result<Option<String>, StoreFault> {
        let Ok(resolved) = fs::canonicalize(directory) else { return Ok(None) };
        self.with_known(ledger, |known| {
            let is_project = |path: &&str| known.iter().any(|(_, project)| project == path);
            resolved.ancestors().filter_map(Path::to_str).find(is_project).map(str::to_owned)
        })
    }

    /// All directories that are the project of some agent.
    pub fn all(&self, ledger: &Ledger) -> Result<BTreeSet<String>, StoreFault> {
        self.with_known(ledger, |known| known.iter().map(|(_, project)| project.clone()).collect())
    }

    /// Whether refusals hold for any host in any project.
    pub fn hold_anywhere(&self, ledger: &Ledger) -> Result<bool, StoreFault> {
        self.with_known(ledger, |known| {
            known.iter().any(|(host, project)| Known::look_up(ledger, host, project) == Known::Enforced)
        })
    }

    fn with_known<T>(
        &self,
        ledger: &Ledger,
        look: impl FnOnce(&BTreeSet<(String, String)>) -> T,
    ) -> Result<T, StoreFault> {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        Ok(look(match &mut *known {
            Some(known) => known,
            unread @ None => unread.insert(all_projects(ledger)?),
        }))
    }

    /// The projects in which refusals hold for a host: its own, and those of others where it is not known itself.
    pub fn held(&self, ledger: &Ledger, host: &str) -> Result<Vec<String>, StoreFault> {
        let here = |of: &str, project: &str| Known::look_up(ledger, of, project);
        let holds = |(of, project): &&(String, String)| {
            here(of, project) == Known::Enforced && (of == host || here(host, project) != Known::Observed)
        };
        self.with_known(ledger, |known| {
            let held: BTreeSet<&String> = known.iter().filter(holds).map(|(_, project)| project).collect();
            held.into_iter().cloned().collect()
        })
    }
}

/// Host and directory of a coding agent.
fn project_in(profile: &Profile) -> Option<(String, String)> {
    let (host, project) = profile.framework.as_ref().zip(profile.description.as_ref())?;
    // Whoever is registered may say anything of itself; the id of a coding agent is made of these two.
    (profile.agent_id == agent_id(host, project)).then(|| (host.clone(), project.clone()))
}

fn all_projects(ledger: &Ledger) -> Result<BTreeSet<(String, String)>, StoreFault> {
    let mut found = BTreeSet::new();
    let mut after = String::new();
    loop {
        let page = ledger.agents(&after, PAGE)?;
        let Some(last) = page.last() else { return Ok(found) };
        after.clone_from(&last.profile.agent_id);
        found.extend(page.iter().filter_map(|agent| project_in(&agent.profile)));
    }
}

/// What is known of a host in a directory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Known {
    /// It has no agent there.
    No,
    /// It has one, and refusals are only shown.
    Observed,
    /// It has one, and refusals hold.
    Enforced,
}

impl Known {
    /// What the ledger knows of a host in a directory. What cannot be read may be anything, so refusals hold.
    pub fn look_up(ledger: &Ledger, host: &str, directory: &str) -> Known {
        match ledger.agent(&agent_id(host, directory)) {
            Ok(None) => Known::No,
            Ok(Some(agent)) if agent.mode == Mode::Observe => Known::Observed,
            Ok(Some(_)) | Err(_) => Known::Enforced,
        }
    }
}

/// The project a directory belongs to: the nearest one above it in which refusals hold for this host, so that neither a
/// repository within it nor a session above it takes it out of them; else the nearest directory the host is known in or
/// that has the mark of a project; else the directory itself. Links are resolved, so that there is one name for it. A
/// directory that is not absolute belongs to nothing.
pub fn project_of(directory: &Path, known: impl Fn(&str) -> Known) -> Option<String> {
    if !directory.is_absolute() {
        return None;
    }
    let resolved: PathBuf = fs::canonicalize(directory).ok()?;
    let above: Vec<&str> = resolved.ancestors().filter_map(Path::to_str).collect();
    let enforced = above.iter().find(|path| known(path) == Known::Enforced);
    let nearest = || above.iter().find(|path| known(path) == Known::Observed || is_marked(path));
    enforced.or_else(nearest).or(above.first()).map(|path| (*path).to_owned())
}

fn is_marked(directory: &str) -> bool {
    let marks = MARKS.iter().map(|mark| Path::new(directory).join(mark));
    marks.filter(|mark| mark.exists()).any(|mark| !mark.ends_with(PROJECT_SETTINGS) || !mark.join(HOME_MARK).exists())
}
