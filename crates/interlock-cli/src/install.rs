//! `interlock install` and `interlock uninstall`: the settings of hosts, shown before they are changed and given back as
//! they were.
//!
//! What is written into them is decided in `interlock-hosts`; this module finds the files, asks, writes and remembers.

mod diff;
mod file;
mod plan;
mod programs;
mod remembered;

use std::env;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use clap::Args;
use interlock_core::json::quote;
use interlock_core::{Digest, visible};
use interlock_hosts::settings::{Scope, Wanted};
use interlock_hosts::{Host, Strength, strength};
use interlock_runtime::clock::SystemEntropy;
use interlock_runtime::ledger::LedgerKey;
use interlock_runtime::startup::{check_files, make_directory};

pub(crate) use file::{TargetFile, shown};
pub(crate) use plan::{Ground, Step, apply, askable, confirm, install, path_text, show, show_json};
pub(crate) use programs::wrong_programs;
pub(crate) use remembered::{Record, all as all_remembered};

use crate::audit::NoEntropy;
use crate::client::inert_json;
use crate::daemon::Daemon;
use crate::hook::parse_host;
use crate::style::{FAINT, RESET};
use crate::{Fault, Outcome, print, serve};

/// How long a host waits for a hook; the hook answers before.
pub(crate) const TIMEOUT_S: u32 = 60;
/// How long a daemon may take to start.
const START_TIME_MAX: Duration = Duration::from_secs(20);
/// Stands for the fingerprint of a key that is not made yet.
const NOT_MADE: &str = "sha256:known-once-installed";

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  interlock install claude-code --dry-run
  interlock install codex --project . --yes

It starts in observe mode: everything is judged and recorded, nothing is blocked. `interlock uninstall HOST` takes it back.
Exit codes: 0 installed, or it was; 1 refused, or you said no; 2 usage or fault.")]
pub(crate) struct InstallArguments {
    /// The host: claude-code, codex, cursor or gemini
    #[arg(value_parser = parse_host)]
    host: Host,
    /// The settings of a project, not yours [DIR: where you are]
    #[arg(long, value_name = "DIR", num_args = 0..=1, default_missing_value = ".")]
    project: Option<PathBuf>,
    /// Show what would change, and change nothing
    #[arg(long)]
    dry_run: bool,
    /// Do not ask
    #[arg(long)]
    yes: bool,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  interlock uninstall claude-code
  interlock uninstall codex --project .

A file that nobody changed since is given back to the byte; otherwise only what `install` wrote is taken out.
Exit codes: 0 taken out, or nothing was there; 1 refused; 2 usage or fault.")]
pub(crate) struct UninstallArguments {
    /// The host: claude-code, codex, cursor or gemini
    #[arg(value_parser = parse_host)]
    host: Host,
    /// The settings of a project, not yours [DIR: where you are]
    #[arg(long, value_name = "DIR", num_args = 0..=1, default_missing_value = ".")]
    project: Option<PathBuf>,
    /// Show what would change, and change nothing
    #[arg(long)]
    dry_run: bool,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

pub(crate) fn run_install(arguments: &InstallArguments) -> Result<Outcome, Fault> {
    let (scope, base) = scope(arguments.project.as_deref())?;
    let mut site = Site::find()?;
    // First without effects: settings that cannot be edited are told before anything is made.
    let look = |site: &Site| {
        let ground = Ground { scope, base: &base, home: &site.home };
        install(arguments.host, ground, &site.wanted()?)
    };
    let mut steps = look(&site)?;
    let is_change = steps.iter().any(Step::is_change);
    if is_change && !arguments.dry_run {
        askable(arguments.yes, arguments.json)?;
    }
    if !arguments.dry_run && site.make_key()? {
        steps = look(&site)?;
    }
    let summary = Summary {
        host: arguments.host,
        scope,
        is_dry: arguments.dry_run,
        is_done: !arguments.dry_run && is_change,
        site: Some(&site),
    };
    if !arguments.json {
        print(show(&steps).as_bytes())?;
    }
    if !arguments.dry_run {
        if is_change && !confirm("Write this?", arguments.yes)? {
            print(b"nothing was changed\n")?;
            return Ok(Outcome::Refused);
        }
        // Hooks of a daemon that does not start would refuse everything.
        site.prove_daemon()?;
        apply(&steps, &site.home)?;
    }
    if arguments.json {
        print(summary.json(&steps, &notes(arguments.host, scope)).as_bytes())?;
        return Ok(Outcome::Clean);
    }
    let host = arguments.host;
    let mut out = match (is_change, arguments.dry_run) {
        (false, _) => format!("{host} is installed already; nothing to change\n"),
        (true, true) => "a dry run: nothing was changed\n".to_owned(),
        (true, false) => format!("installed: {host}, {}; it observes and blocks nothing yet\n", scope_name(scope)),
    };
    for note in notes(host, scope) {
        out.push_str(&format!("  {FAINT}note: {note}{RESET}\n"));
    }
    if is_change && !arguments.dry_run {
        out.push_str(&format!("next: `interlock doctor` tries it; undo: `{}`\n", undo(host, scope, &base)));
    }
    print(out.as_bytes())?;
    Ok(Outcome::Clean)
}

pub(crate) fn run_uninstall(arguments: &UninstallArguments) -> Result<Outcome, Fault> {
    let (scope, base) = scope(arguments.project.as_deref())?;
    let site = Site::find()?;
    let steps = plan::uninstall(arguments.host, Ground { scope, base: &base, home: &site.home })?;
    let is_change = steps.iter().any(Step::is_change);
    if !arguments.dry_run {
        apply(&steps, &site.home)?;
    }
    let summary = Summary {
        host: arguments.host,
        scope,
        is_dry: arguments.dry_run,
        is_done: !arguments.dry_run && is_change,
        site: None,
    };
    if arguments.json {
        print(summary.json(&steps, &[]).as_bytes())?;
        return Ok(Outcome::Clean);
    }
    let changed: Vec<Step> = steps.into_iter().filter(Step::is_change).collect();
    let mut out = show(&changed);
    out.push_str(&match (is_change, arguments.dry_run) {
        (false, _) => format!("{} is not installed, {}; nothing to change\n", arguments.host, scope_name(scope)),
        (true, true) => "a dry run: nothing was changed\n".to_owned(),
        (true, false) => format!("uninstalled: {}, {}\n", arguments.host, scope_name(scope)),
    });
    print(out.as_bytes())?;
    Ok(Outcome::Clean)
}

/// The settings that are meant, and the directory they belong to.
pub(crate) fn scope(project: Option<&Path>) -> Result<(Scope, PathBuf), Fault> {
    let (scope, base) = match project {
        Some(project) => (Scope::Project, project.to_owned()),
        None => (Scope::User, user_home().ok_or_else(|| Fault::new("HOME is not set; give --project"))?),
    };
    let resolved = fs::canonicalize(&base).map_err(|error| Fault::new(format!("{}: {error}", shown(&base))))?;
    if !resolved.is_dir() {
        return Err(Fault::new(format!("{} is not a directory", shown(&base))));
    }
    Ok((scope, resolved))
}

/// The user's own directory.
pub(crate) fn user_home() -> Option<PathBuf> {
    env::var_os("HOME").filter(|home| !home.is_empty()).map(PathBuf::from)
}

pub(crate) fn scope_name(scope: Scope) -> &'static str {
    match scope {
        Scope::User => "for this user",
        Scope::Project => "for this project",
    }
}

/// The command that takes an installation back.
pub(crate) fn undo(host: Host, scope: Scope, base: &Path) -> String {
    match scope {
        Scope::User => format!("interlock uninstall {host}"),
        Scope::Project => {
            format!("interlock uninstall {host} --project {}", serve::shell_word(&base.display().to_string()))
        }
    }
}

/// What a person should know about an installation.
pub(crate) fn notes(host: Host, scope: Scope) -> Vec<&'static str> {
    let mut notes = Vec::new();
    if scope == Scope::Project {
        notes.push("the files name paths of this machine; whoever shares the repository needs their own");
    }
    if host == Host::Codex {
        notes.push("accept the hooks in Codex with `/hooks`: until then they are not run");
    }
    if strength(host) == Strength::Advisory {
        notes.push("advisory: this host runs a tool when its hook fails; `docs/hosts.md` says more");
    }
    notes
}

/// The binary, home and daemon that settings are to name.
pub(crate) struct Site {
    pub(crate) home: PathBuf,
    pub(crate) binary: String,
    /// The fingerprint of the daemon's key, once there is one.
    pub(crate) fingerprint: Option<Digest>,
}

impl Site {
    /// What is there, without making anything.
    pub(crate) fn find() -> Result<Site, Fault> {
        let home = serve::home().ok_or_else(|| Fault::new("neither INTERLOCK_HOME nor HOME is set"))?;
        let home = fs::canonicalize(&home).or_else(|_| std::path::absolute(&home));
        let home = home.map_err(|error| Fault::new(format!("the home cannot be found: {error}")))?;
        let binary = env::current_exe().and_then(fs::canonicalize);
        let binary = binary.map_err(|error| Fault::new(format!("this program cannot find itself: {error}")))?;
        let key = LedgerKey::open(&home.join("data"), &NoEntropy).ok();
        let fingerprint = key.as_ref().map(LedgerKey::fingerprint);
        Ok(Site { binary: path_text(&binary)?, home, fingerprint })
    }

    pub(crate) fn wanted(&self) -> Result<Wanted, Fault> {
        let daemon = self.fingerprint.map_or_else(|| NOT_MADE.to_owned(), |digest| digest.to_string());
        Ok(Wanted { binary: self.binary.clone(), home: path_text(&self.home)?, daemon, timeout_s: TIMEOUT_S })
    }

    /// Makes the home and the key of its ledger, unless they are there. Whether they were not.
    pub(crate) fn make_key(&mut self) -> Result<bool, Fault> {
        if self.fingerprint.is_some() {
            return Ok(false);
        }
        let data = self.home.join("data");
        for directory in [&self.home, &data] {
            let made = make_directory(directory).and_then(|()| check_files(directory));
            made.map_err(|fault| Fault::with_code(fault.code, fault.message))?;
        }
        self.home = fs::canonicalize(&self.home).map_err(|error| Fault::new(error.to_string()))?;
        let opened = LedgerKey::open(&data, &SystemEntropy::new()).or_else(|error| match error.kind() {
            // A daemon that starts in this very moment made it.
            io::ErrorKind::AlreadyExists => LedgerKey::open(&data, &NoEntropy),
            _ => Err(error),
        });
        let key = opened.map_err(|error| Fault::new(format!("the key of the ledger cannot be used: {error}")))?;
        self.fingerprint = Some(key.fingerprint());
        Ok(true)
    }

    /// Starts the daemon unless it runs, and sees that it is the one whose key lies in this home.
    pub(crate) fn prove_daemon(&self) -> Result<(), Fault> {
        let deadline = Instant::now() + START_TIME_MAX;
        let daemon = Daemon::of(&self.home);
        let daemon = match self.fingerprint {
            Some(fingerprint) => daemon.pinned(fingerprint),
            None => daemon,
        };
        daemon.ensure(deadline)?;
        daemon.who(deadline).map(drop)
    }
}

struct Summary<'s> {
    host: Host,
    scope: Scope,
    is_dry: bool,
    is_done: bool,
    site: Option<&'s Site>,
}

impl Summary<'_> {
    fn json(&self, steps: &[Step], notes: &[&str]) -> String {
        let scope = if self.scope == Scope::User { "user" } else { "project" };
        let notes: Vec<String> = notes.iter().map(|note| quote(note)).collect();
        let site = self.site.map_or_else(String::new, |site| {
            let daemon = site.fingerprint.map_or_else(|| "null".to_owned(), |digest| quote(&digest.to_string()));
            let (binary, home) = (quote(&site.binary), quote(&visible(&site.home.display().to_string())));
            format!("\"binary\":{binary},\"home\":{home},\"daemon\":{daemon},")
        });
        inert_json(&format!(
            "{{\"host\":{},\"scope\":{},{site}\"dry_run\":{},\"changed\":{},\"notes\":[{}],\"files\":{}}}",
            quote(self.host.as_str()),
            quote(scope),
            self.is_dry,
            self.is_done,
            notes.join(","),
            show_json(steps)
        ))
    }
}
