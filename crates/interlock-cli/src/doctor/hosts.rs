//! The hosts of coding agents: where our hooks are installed, whether they are the ones that were, whether they work, and
//! what goes past them.

use std::collections::BTreeSet;
use std::env;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use interlock_core::Cause;
use interlock_hosts::settings::{
    self, HookCommand, Installed, Named, Part, Place, Problem, Scope, commands, places, read_places, switched_off,
};
use interlock_hosts::{Host, PAST_ALL, Strength, past, strength};
use interlock_runtime::coding_agents::{Known, project_of};

use super::probe::Prober;
use super::{Visit, shown};
use crate::install::{Site, all_remembered, scope_name, undo, user_home};
use crate::serve::{Places, shell_word};

const NAME: &str = "hosts";

/// Settings of a host that are looked at.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Target {
    host: Host,
    scope: Scope,
    base: PathBuf,
    /// Whether `install` was run for it, as far as the home remembers.
    is_remembered: bool,
}

impl Target {
    /// The command that mends it.
    fn install(&self) -> String {
        match self.scope {
            Scope::User => format!("interlock install {}", self.host),
            Scope::Project => {
                let base = shell_word(&self.base.display().to_string());
                format!("interlock install {} --project {base}", self.host)
            }
        }
    }

    fn place(&self) -> String {
        match self.scope {
            Scope::User => scope_name(self.scope).to_owned(),
            Scope::Project => format!("for the project {}", shown(&self.base)),
        }
    }
}

impl Visit {
    /// All hosts. With `tries`, every installed hook is run.
    pub(super) fn hosts(&mut self, places: &Places, tries: bool) {
        let Some(home) = &places.home else { return };
        let site = match Site::find() {
            Ok(site) => site,
            Err(fault) => return self.warn(NAME, fault.message, "run doctor where the hooks were installed"),
        };
        let key = tries.then_some(places.key.as_path());
        let mut installed: BTreeSet<Host> = BTreeSet::new();
        for target in targets(home) {
            if self.host(&target, &site, key) {
                installed.insert(target.host);
            }
        }
        if installed.is_empty() {
            return self.note(NAME, "no host is installed; `interlock init` finds those that are there");
        }
        for host in &installed {
            match strength(*host) {
                Strength::Enforcing => self.ok(host.as_str(), "enforcing: a hook that fails stops the tool"),
                Strength::Advisory => self.warn(
                    host.as_str(),
                    "advisory: this host runs the tool when its hook fails, so whoever can make it fail is past it",
                    "rely on it for mistakes, not against an attacker; claude-code and cursor are enforcing",
                ),
            }
            for gap in past(*host) {
                self.note(host.as_str(), format!("not covered: {gap}"));
            }
        }
        self.runner(&installed, &site);
        for gap in PAST_ALL {
            self.note(NAME, format!("not covered, whichever host: {gap}"));
        }
    }

    /// One host's settings; whether our hooks are in them. With the operator's key, they are tried.
    fn host(&mut self, target: &Target, site: &Site, key: Option<&Path>) -> bool {
        let name = target.host.as_str();
        let mut found: BTreeSet<HookCommand> = BTreeSet::new();
        let mut states = Vec::new();
        for place in places(target.host, target.scope) {
            let path = target.base.join(place.path);
            let text = fs::read_to_string(&path).ok();
            match look(target.host, &place, text.as_deref(), site) {
                Ok((hooks, state)) => {
                    found.extend(hooks);
                    states.push((path.clone(), state));
                }
                Err(problem) if target.is_remembered => {
                    let message = format!("{}: {problem}", shown(&path));
                    self.fail(name, message, format!("mend the file, then `{}`", target.install()));
                }
                Err(_) => {}
            }
        }
        if states.iter().all(|(_, state)| *state == Installed::No) {
            if target.is_remembered {
                let message = format!("it was installed {}, and its entries are gone", target.place());
                let fix = format!("`{}`, or `{}`", target.install(), undo(target.host, target.scope, &target.base));
                self.fail(name, message, fix);
            }
            return false;
        }
        let before = self.findings.len();
        for command in &found {
            self.named(target, command, site);
        }
        self.switches(target);
        if self.findings.len() == before {
            for (path, state) in &states {
                if *state != Installed::Yes {
                    let message = format!("{} does not have what `install` writes there", shown(path));
                    self.fail(name, message, format!("`{}`", target.install()));
                }
            }
        }
        if self.findings.len() == before {
            self.ok(name, format!("installed {}, with this binary, home and daemon", target.place()));
        }
        if let Some(key) = key {
            match Prober::new(&site.home, key) {
                Err(why) => {
                    self.warn(name, format!("its hooks cannot be tried: {why}"), "run doctor as the owner of the home");
                }
                Ok(prober) => {
                    for command in &found {
                        self.tried(target, prober.try_hook(target.host, command));
                    }
                }
            }
        }
        true
    }

    /// Whether a hook names what is there.
    fn named(&mut self, target: &Target, command: &HookCommand, site: &Site) {
        let name = target.host.as_str();
        let fix = format!("`{}`", target.install());
        let Some(Named { binary, home, daemon }) = command.named() else {
            return self.fail(name, format!("a hook {} is not written as `install` writes it", target.place()), fix);
        };
        let program = Path::new(&binary);
        let runs = fs::metadata(program).is_ok_and(|found| found.is_file() && found.permissions().mode() & 0o111 != 0);
        if !runs {
            self.fail(name, format!("the hook {} runs {}, which is not there", target.place(), shown(program)), fix);
        } else if fs::canonicalize(program).ok().as_deref() != Some(Path::new(&site.binary)) {
            let message = format!("the hook {} runs {}, not this binary", target.place(), shown(program));
            self.warn(name, message, format!("`{}` if this one should be used", target.install()));
        } else if Path::new(&home) != site.home {
            let message = format!("the hook {} uses the home {}", target.place(), shown(Path::new(&home)));
            self.warn(name, message, "run doctor with INTERLOCK_HOME set to that home, or install again");
        } else if site.fingerprint.is_none_or(|own| own.to_string() != daemon) {
            let message = format!("the hook {} believes another daemon than the one of this home", target.place());
            self.fail(name, message, fix);
        }
    }

    /// Settings that keep the host from asking us.
    fn switches(&mut self, target: &Target) {
        for place in read_places(target.host, target.scope) {
            let path = target.base.join(place.path);
            let Ok(text) = fs::read_to_string(&path) else { continue };
            for off in switched_off(target.host, &place, Some(&text)).unwrap_or_default() {
                let message = format!("hooks are switched off in {}: {off}", shown(&path));
                self.fail(target.host.as_str(), message, "take that setting out");
            }
        }
    }

    fn tried(&mut self, target: &Target, tried: Result<bool, Cause>) {
        let (name, place) = (target.host.as_str(), target.place());
        match tried {
            Ok(true) => self.ok(name, format!("the hook {place} works: it was run, and both probes are on record")),
            Ok(false) => self.warn(
                name,
                format!("the hook {place} answers; what was recorded cannot be looked at"),
                "run doctor as the owner of the home, who may read operator.key",
            ),
            Err(why) => {
                let fix = format!("`{}`; what the daemon said is in run/daemon.log of the home", target.install());
                self.fail(name, format!("the hook {place} does not work: {why}"), fix);
            }
        }
    }
}

/// The hooks of a file, and whether it has what this site would write.
fn look(
    host: Host,
    place: &Place,
    text: Option<&str>,
    site: &Site,
) -> Result<(BTreeSet<HookCommand>, Installed), Problem> {
    let hooks = match text {
        Some(text) if place.parts.contains(&Part::Hooks) => commands(host, place, text)?,
        Some(_) | None => Vec::new(),
    };
    let wanted = site.wanted().map_err(|_| Problem::Unwritable("the home directory"))?;
    let state = settings::installed(host, place, text, &wanted)?;
    Ok((hooks.into_iter().map(|hooked| hooked.command).collect(), state))
}

/// The settings of the user, of the project one is in, and wherever else `install` was run.
fn targets(home: &Path) -> Vec<Target> {
    let remembered = all_remembered(home);
    let mut targets = Vec::new();
    let mut add = |host: Host, scope: Scope, base: &Path| {
        let is_user = scope == Scope::User;
        let mine = |record: &crate::install::Record| {
            record.host == host && record.is_user == is_user && Path::new(&record.base) == base
        };
        let is_remembered = remembered.iter().any(mine);
        let target = Target { host, scope, base: base.to_owned(), is_remembered };
        if !targets.contains(&target) {
            targets.push(target);
        }
    };
    let user = user_home().and_then(|user| fs::canonicalize(user).ok());
    let project = env::current_dir().ok().and_then(|directory| project_of(&directory, |_| Known::No));
    for host in Host::ALL {
        if let Some(user) = &user {
            add(host, Scope::User, user);
        }
        if let Some(project) = project.as_deref().map(Path::new).filter(|project| user.as_deref() != Some(project)) {
            add(host, Scope::Project, project);
        }
    }
    for record in &remembered {
        let scope = if record.is_user { Scope::User } else { Scope::Project };
        add(record.host, scope, Path::new(&record.base));
    }
    targets
}
