//! The runner: whether hosts hand their command lines to it, whether its programs are there, and what the kernel can hold
//! commands to.

use std::collections::BTreeSet;
use std::env;
use std::fs;
use std::path::{Path, PathBuf};

use interlock_hosts::settings::{Scope, prefix_displaced, read_places};
use interlock_hosts::{Host, Rewriting};
use interlock_runner::Rung;
use interlock_runtime::coding_agents::{Known, project_of};

use super::{Visit, shown};
use crate::exec_arguments::probe_apart;
use crate::install::{Site, user_home, wrong_programs};

const NAME: &str = "runner";

impl Visit {
    /// What can be said of the runner for the hosts that are installed.
    pub(super) fn runner(&mut self, installed: &BTreeSet<Host>, site: &Site) {
        if installed.iter().any(|host| host.rewrites() != Rewriting::None) {
            self.programs(site);
            self.abilities();
        }
        for host in installed {
            match host.rewrites() {
                Rewriting::Held => self.prefix(*host),
                Rewriting::Advisory => self.note(
                    host.as_str(),
                    "contained command lines are advisory: this host runs a line as it was if what the hook says is lost",
                ),
                Rewriting::None => self.note(
                    host.as_str(),
                    "command lines are not handed to the runner: only a line `interlock exec -- COMMAND` is contained",
                ),
            }
        }
    }

    fn programs(&mut self, site: &Site) {
        let Ok(wanted) = site.wanted() else { return };
        let wrong = wrong_programs(&site.home, &wanted);
        if wrong.is_empty() {
            self.ok(NAME, format!("its programs are in {}", shown(&site.home.join("bin"))));
        }
        for what in wrong {
            self.fail(NAME, what, "`interlock install HOST` again: hosts run no command line without it");
        }
    }

    fn abilities(&mut self) {
        let Some(found) = probe_apart() else {
            return self.fail(NAME, "what the kernel can hold cannot be tried", "run `interlock exec --probe`");
        };
        if found.rung == Rung::Full {
            let overlay = if found.overlay { ", overlays for caches" } else { "" };
            let layers = format!("namespaces, Landlock {}, seccomp{overlay}", found.landlock_abi);
            return self.ok(NAME, format!("command lines can be contained here: {layers}"));
        }
        if found.rung == Rung::Narrow {
            let missing = found.missing.unwrap_or_default();
            let without = format!("without user namespaces, by Landlock {} and seccomp", found.landlock_abi);
            let narrower = "no network, not even the loopback, and none of the hosts that profiles list";
            let message = format!("command lines are contained here {without}: {narrower} ({missing})");
            let advice = found.advice.unwrap_or_else(|| "docs/containment.md says what is narrower".to_owned());
            return self.warn(NAME, message, advice);
        }
        let missing = found.missing.unwrap_or_else(|| "this system has nothing that could".to_owned());
        let advice =
            found.advice.unwrap_or_else(|| "until then lines whose effect is unknown are asked about".to_owned());
        self.warn(NAME, format!("command lines cannot be contained here: {missing}"), advice);
    }

    /// Whether anything displaces the shell prefix: settings of the user, and of the project one is in.
    fn prefix(&mut self, host: Host) {
        let user = user_home().map(|user| (Scope::User, user));
        let project = env::current_dir().ok().and_then(|here| project_of(&here, |_| Known::No));
        let project = project.map(|project| (Scope::Project, PathBuf::from(project)));
        let mut displaced = false;
        for (scope, base) in user.into_iter().chain(project) {
            for path in read_places(host, scope).iter().map(|place| base.join(place.path)) {
                let Some(what) = displaces(&path) else { continue };
                displaced = true;
                let message = format!("its shell prefix is not in force, because of {}: {what}", shown(&path));
                self.fail(host.as_str(), message, "take that setting out: without the prefix no line is contained");
            }
        }
        if !displaced {
            self.ok(
                host.as_str(),
                "its command lines are handed to the runner, and run with their ticket or not at all",
            );
        }
    }
}

fn displaces(path: &Path) -> Option<&'static str> {
    prefix_displaced(&fs::read_to_string(path).ok()?).ok().flatten()
}
