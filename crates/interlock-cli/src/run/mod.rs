//! What a person does about the coding agents of a project: let refusals hold, look at them, allow, pause, trust and
//! steer.
//!
//! | to find | look in |
//! |---|---|
//! | which agents a command is about, and a person's yes | here |
//! | `enforce`, `observe` | `mode.rs` |
//! | `pause` | `pause.rs` |
//! | refusals as they are on record, their shape, what an allowance matches | `refusals.rs` |
//! | `review` | `review.rs` |
//! | `allow` | `allow.rs` |
//! | `trust` | `trust.rs` |
//! | `changes`, `undo`, `snapshots` | `changes.rs`, `undo.rs`, `snapshots.rs` |
//! | `decision explain` | `decision.rs` |
//! | `workflow history` | `history.rs` |
//! | `workflow start`, `status`, `force`, `stop`, `thaw` | `steer.rs` |
//!
//! Nothing is decided here: every change is a request to the server, which records it.

pub(crate) mod allow;
pub(crate) mod changes;
pub(crate) mod decision;
pub(crate) mod history;
pub(crate) mod mode;
pub(crate) mod pause;
mod refusals;
pub(crate) mod review;
pub(crate) mod snapshots;
pub(crate) mod steer;
pub(crate) mod trust;
pub(crate) mod undo;

use std::env;
use std::fs;
use std::io::{BufRead, IsTerminal, Write};
use std::path::{Path, PathBuf};

use clap::Args;
use interlock_core::json::quote;
use interlock_core::rule::shell_quoted;
use interlock_core::visible;
use interlock_hosts::Host;
use interlock_hosts::settings::{Base, Part, Scope, places, uninstall};
use interlock_runtime::coding_agents::{Known as KnownThere, agent_id, project_of};
use interlock_wire::{Agent, AgentPage};

use crate::client::{Client, encode, inert_json, with_query};
use crate::hook::parse_host;
use crate::style::{BAD, RESET};
use crate::{Fault, print};

/// How many pages of agents are looked through.
const PAGES_MAX: usize = 20;
/// The largest settings file of a host that is looked at.
const SETTINGS_BYTES_MAX: u64 = 1024 * 1024;

/// Which project, and which of its coding agents.
#[derive(Debug, Clone, Args)]
pub(crate) struct ProjectArguments {
    /// The project, or a directory in it [default: the one of the working directory]
    #[arg(long, value_name = "DIR")]
    project: Option<PathBuf>,
    /// Only the agent of this host: claude-code, codex, cursor or gemini [default: all hosts known there]
    #[arg(long, value_name = "HOST", value_parser = parse_host)]
    host: Option<Host>,
}

/// A coding agent that the server knows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Known {
    pub(crate) agent_id: String,
    pub(crate) host: Host,
    pub(crate) project: String,
    /// Refusals hold for it.
    enforced: bool,
}

impl Known {
    fn new(host: Host, project: &str) -> Known {
        Known { agent_id: agent_id(host.as_str(), project), host, project: project.to_owned(), enforced: false }
    }

    /// To be shown.
    fn name(&self) -> String {
        format!("{} in {}", self.host, visible(&self.project))
    }

    fn path(&self, rest: &str) -> String {
        format!("/runs/{}{rest}", encode(&self.agent_id))
    }
}

/// The agents of a project.
pub(crate) struct Agents {
    /// The root of the project.
    pub(crate) project: String,
    pub(crate) list: Vec<Known>,
}

/// The directory that is meant, as a text.
fn directory_of(given: Option<&Path>) -> Result<String, Fault> {
    let here = given.unwrap_or(Path::new("."));
    let found = fs::canonicalize(here).map_err(|error| Fault::new(format!("{}: {error}", here.display())))?;
    found.into_os_string().into_string().map_err(|_| Fault::new("the directory is not UTF-8"))
}

/// All coding agents the server knows.
fn all_known(client: &Client) -> Result<Vec<Known>, Fault> {
    let mut found = Vec::new();
    let mut cursor = None;
    for _ in 0..PAGES_MAX {
        let paged = [("limit", Some("1000".to_owned())), ("cursor", cursor.take())];
        let answer = client.get(&with_query("/agents", &paged))?;
        let page: AgentPage = answer.read()?;
        found.extend(page.agents.into_iter().filter_map(known));
        cursor = page.next_cursor;
        if cursor.is_none() {
            return Ok(found);
        }
    }
    Err(Fault::new("the server knows too many agents to look through").and_then_do("name one with `interlock agents`"))
}

/// A coding agent's id follows from host and project; whoever only says so is somebody else.
fn known(agent: Agent) -> Option<Known> {
    let host = Host::parse(&agent.framework?)?;
    let known = Known { enforced: agent.mode == "enforce", ..Known::new(host, &agent.description?) };
    (agent.agent_id == known.agent_id).then_some(known)
}

impl Agents {
    /// The agents of a project that the server knows.
    pub(crate) fn find(client: &Client, arguments: &ProjectArguments) -> Result<Agents, Fault> {
        let directory = match &arguments.project {
            Some(directory) => directory.clone(),
            None => env::current_dir().map_err(|error| Fault::new(format!("no working directory: {error}")))?,
        };
        Agents::of_directory(client, &directory, arguments.host)
    }

    pub(crate) fn of_directory(client: &Client, directory: &Path, host: Option<Host>) -> Result<Agents, Fault> {
        let all = all_known(client)?;
        let there = |host: Option<Host>, path: &str| {
            let known = all.iter().filter(|it| it.project == path && host.is_none_or(|host| it.host == host));
            known.fold(KnownThere::No, |found, it| match found {
                KnownThere::Enforced => found,
                KnownThere::No | KnownThere::Observed if it.enforced => KnownThere::Enforced,
                KnownThere::No | KnownThere::Observed => KnownThere::Observed,
            })
        };
        let directory = &fs::canonicalize(directory).unwrap_or_else(|_| directory.to_owned());
        let project = project_of(directory, |path| there(None, path)).ok_or_else(|| {
            let shown = visible(&directory.display().to_string());
            Fault::new(format!("{shown} is no directory that can be read")).and_then_do("name one with --project DIR")
        })?;
        let wanted = Host::ALL.into_iter().filter(|it| host.is_none_or(|host| *it == host));
        // Each host looks for its own agent, as its hook does.
        let list = wanted.filter_map(|host| {
            let own = project_of(directory, |path| there(Some(host), path))?;
            (there(Some(host), &own) != KnownThere::No).then(|| Known::new(host, &own))
        });
        Ok(Agents { project, list: list.collect() })
    }

    /// The same; where none is known yet, those of the hosts that are named or installed are made known.
    pub(crate) fn find_or_enrol(client: &Client, arguments: &ProjectArguments) -> Result<Agents, Fault> {
        let mut agents = Agents::find(client, arguments)?;
        if agents.list.is_empty() {
            let hosts = match arguments.host {
                Some(host) => vec![host],
                None => Host::ALL.into_iter().filter(|host| is_installed(*host, &agents.project)).collect(),
            };
            for host in hosts {
                client.post("/runs", &mode::start_body(host.as_str(), &agents.project, None, None))?;
                agents.list.push(Known::new(host, &agents.project));
            }
        }
        agents.or_none()
    }

    /// At least one, or what to do about it.
    pub(crate) fn or_none(self) -> Result<Agents, Fault> {
        if self.list.is_empty() {
            let what = format!("no coding agent is known in {}", visible(&self.project));
            let next = "start your agent there once its hook is installed (`interlock install HOST`), or name it with \
                        --host claude-code";
            return Err(Fault::new(what).and_then_do(next).refused());
        }
        Ok(self)
    }
}

/// Whether the hook of a host is in its settings, the user's or the project's.
fn is_installed(host: Host, project: &str) -> bool {
    let home = env::var_os("HOME").map(PathBuf::from);
    let files = [Scope::User, Scope::Project].into_iter().flat_map(|scope| places(host, scope));
    files.filter(|place| place.parts.contains(&Part::Hooks)).any(|place| {
        let base = match place.base {
            Base::Home => home.clone(),
            Base::Project => Some(PathBuf::from(project)),
        };
        let path = base.map(|base| base.join(place.path));
        let small = |path: &PathBuf| fs::metadata(path).is_ok_and(|found| found.len() <= SETTINGS_BYTES_MAX);
        let text = path.filter(small).and_then(|path| fs::read_to_string(path).ok());
        text.is_some_and(|text| uninstall(host, &place, Some(&text)).is_ok_and(|edited| !edited.changes.is_empty()))
    })
}

/// Texts for people: on standard output, or beside it where that is for a program.
struct Teller {
    json: bool,
}

impl Teller {
    fn say(&self, text: &str) -> Result<(), Fault> {
        if self.json {
            anstream::stderr().write_all(text.as_bytes()).map_err(Fault::from)
        } else {
            print(text.as_bytes())
        }
    }

    /// Asks a person; whoever is none has to say so beforehand.
    fn agrees(&self, question: &str, yes: bool) -> Result<bool, Fault> {
        if yes {
            return Ok(true);
        }
        if !std::io::stdin().is_terminal() {
            let next = "look at what is said above; if it is right, run the same with --yes";
            return Err(Fault::new("nothing was changed: a person has to agree").and_then_do(next).refused());
        }
        let mut err = anstream::stderr();
        write!(err, "{question} [y/N] ").and_then(|()| err.flush())?;
        let mut answer = String::new();
        std::io::stdin().lock().read_line(&mut answer).map_err(|error| Fault::new(error.to_string()))?;
        let agreed = ["y", "yes"].contains(&answer.trim().to_ascii_lowercase().as_str());
        if !agreed {
            self.say("nothing was changed\n")?;
        }
        Ok(agreed)
    }
}

/// `{"project":…,"agents":[…]}` of answers of the server.
fn agents_json(project: &str, bodies: &[String]) -> String {
    let rows: Vec<&str> = bodies.iter().map(|body| body.trim_end()).collect();
    inert_json(&format!("{{\"project\":{},\"agents\":[{}]}}", quote(project), rows.join(",")))
}

/// A word as a shell reads it, if every character of it shows.
fn shell_word(text: &str) -> Option<String> {
    (!text.is_empty() && text.chars().all(interlock_core::is_visible)).then(|| shell_quoted(text))
}

/// `30s`, `15m`, `1h`, `2d` in seconds.
pub(crate) fn parse_seconds(text: &str) -> Result<u64, String> {
    let wrong = || "a duration is a number and s, m, h or d: 30s, 15m, 1h".to_owned();
    let (count, unit) = text.split_at_checked(text.len().saturating_sub(1)).ok_or_else(wrong)?;
    let unit = match unit {
        "s" => 1,
        "m" => 60,
        "h" => 3_600,
        "d" => 86_400,
        _ => return Err(wrong()),
    };
    let count: u64 =
        count.bytes().all(|byte| byte.is_ascii_digit()).then(|| count.parse().ok()).flatten().ok_or_else(wrong)?;
    count.checked_mul(unit).ok_or_else(wrong)
}

/// Something a person should not read past.
fn loud(text: &str) -> String {
    format!("{BAD}{text}{RESET}")
}
