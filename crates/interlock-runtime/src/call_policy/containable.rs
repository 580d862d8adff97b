//! Which profile gives a command line all that it was seen to need, if one does. What needs more is judged as if nothing
//! could hold it.

use std::os::unix::fs::MetadataExt;
use std::path::Path;

use interlock_core::bundle::Bundle;
use interlock_core::call::{Call, Effect, Family};
use interlock_core::contain::{Abilities, BUILD, BoundEvidence, PROJECT, READ, Rung};
use interlock_core::places::{is_guarded_secret, is_within};
use interlock_core::rule::{CallHost, CallPath, CallSubject, Then, is_shipped, shell_quoted, shell_words};

use interlock_verifiers::shell::{Needs, Setting, examine};

use super::Seen;

/// Directories for temporary files: inside a bound they are the session's own.
pub const TEMPORARY: [&str; 2] = ["/tmp", "/var/tmp"];

/// Where command lines are run by a runner of ours.
#[derive(Debug, Clone, Copy)]
pub struct RunnerGround {
    /// What the kernel can hold.
    pub abilities: Abilities,
    /// The host may run the line as it was, if what it is told gets lost.
    pub advisory: bool,
    /// What lines may change in the project is kept before they start.
    pub keeps: bool,
}

impl RunnerGround {
    /// Whether a line may destroy what lies in its bound: it is kept, and nothing runs the line without the bound.
    fn can_bring_back(self) -> bool {
        self.keeps && !self.advisory
    }
}

/// The bound for a call, and what of it the bound answers for.
pub(super) fn bound_for(
    bundle: &Bundle,
    call: &Call,
    seen: &Seen,
    subject: &CallSubject<'_>,
    project: &str,
    ground: RunnerGround,
) -> Option<BoundEvidence> {
    let is_line = call.family == Some(Family::Bash) && call.intent.commands.len() == 1;
    let label = seen.label?;
    let destroys = seen.labels.contains(&Effect::Destructive);
    if !ground.abilities.hold() || !is_line || seen.has_unread || destroys && !ground.can_bring_back() {
        return None;
    }
    let needs: Vec<Needs> = seen.lines.iter().flat_map(|line| &line.commands).map(|command| command.needs).collect();
    if needs.contains(&Needs::Beyond) {
        return None;
    }
    let is_private = |path: &str| TEMPORARY.iter().any(|directory| is_within(path, directory));
    let stays = |touched: &CallPath| match touched.path.as_deref() {
        Some(path) => is_within(path, project) || is_private(path) || super::is_stream(path),
        None => true,
    };
    if !subject.paths.iter().filter(|touched| touched.writes).all(stays) || !rules_are_silent(bundle, subject) {
        return None;
    }
    let profile = if label == Effect::ReadOnly {
        READ
    } else if needs.contains(&Needs::Packages) {
        BUILD
    } else {
        PROJECT
    };
    let profile = bundle.profiles().get(profile).filter(|profile| ground.abilities.hold_profile(profile))?;
    // Without namespaces there is no loopback of its own.
    let has_loopback = ground.abilities.rung() == Rung::Full;
    // What a profile lets write elsewhere is not kept.
    let keeps =
        ground.can_bring_back() && !profile.write.is_empty() && profile.write.iter().all(|place| is_in_project(place));
    let lost = |touched: &&CallPath| {
        // A project may lie among temporary files; inside it nothing is private.
        let is_kept = |path: &&str| is_within(path, project) || !is_private(path) && !super::is_stream(path);
        let path = touched.path.as_deref().filter(is_kept);
        touched.writes && path.is_some_and(|path| !can_be_kept(Path::new(path), Path::new(project), bundle))
    };
    if destroys && (!keeps || subject.paths.iter().any(|touched| lost(&touched))) {
        return None;
    }
    let answers = |reached: &CallHost| match reached.host.as_deref() {
        Some(host) => has_loopback && is_loopback(host) || profile.connects(host),
        None => reached.command.and_then(|at| needs.get(at)) == Some(&Needs::Packages),
    };
    seen.hosts.iter().all(answers).then(|| BoundEvidence {
        profile: profile.name.clone(),
        digest: profile.digest(),
        abilities: ground.abilities,
        advisory: ground.advisory,
        keeps,
    })
}

/// The profile that a runner holds the unknown code of a command line to, wherever it is run; none if it needs more than
/// one gives.
pub fn profile_of(line: &str, setting: &Setting) -> Option<&'static str> {
    let (analysis, words) = examine(line, setting);
    let needs = words.commands.iter().map(|command| command.needs).max().unwrap_or(Needs::Beyond);
    if analysis.causes.iter().any(|cause| cause.effect == Effect::Destructive) {
        return None;
    }
    match needs {
        Needs::Project => Some(PROJECT),
        Needs::Packages => Some(BUILD),
        Needs::Beyond => None,
    }
}

/// Whether a place of a profile lies in the project.
fn is_in_project(place: &str) -> bool {
    !place.starts_with(['/', '~'])
}

/// Whether what a line names can be brought back. What is beneath a directory and cannot be is made read-only.
fn can_be_kept(path: &Path, project: &Path, bundle: &Bundle) -> bool {
    let keeping = bundle.keeping();
    let is_secret = || path.to_str().is_some_and(|path| is_guarded_secret(&path.to_lowercase()));
    let (Ok(found), Ok(root)) = (path.symlink_metadata(), project.symlink_metadata()) else { return true };
    let kind = found.file_type();
    let is_small = !kind.is_file() || found.len().min(found.blocks().saturating_mul(512)) <= keeping.file_bytes_max;
    let is_known = kind.is_file() || kind.is_dir() || kind.is_symlink();
    is_known && is_small && found.dev() == root.dev() && (keeping.secrets || !is_secret())
}

/// Whether no rule of the operator is about what code that nobody understood might do: a bound keeps it from the places of
/// the shipped rules, and knows nothing of theirs.
fn rules_are_silent(bundle: &Bundle, subject: &CallSubject<'_>) -> bool {
    let leads_anywhere = || subject.paths.iter().any(|touched| touched.writes && touched.path.is_none());
    let is_open = subject.effects.iter().any(|effect| match effect {
        Effect::Unknown | Effect::Network => true,
        Effect::Destructive => leads_anywhere(),
        Effect::ReadOnly | Effect::Write => false,
    });
    if !is_open {
        return true;
    }
    let mut anything = subject.clone();
    anything.paths.push(CallPath { path: None, writes: true, removes: true, sweeps: true, command: None });
    anything.hosts.push(CallHost { host: None, command: None });
    let found = bundle.find_call_rules(&anything);
    found.then == Some(Then::Allow) || found.matched.iter().all(|id| is_shipped(id))
}

/// The command in a line that is nothing but `BINARY exec -- COMMAND`, each word quoted as we quote: then no shell reads it
/// in another way.
pub fn inner_line(line: &str, binary: &str) -> Option<String> {
    let inner = line.trim().strip_prefix(&format!("{} exec -- ", shell_quoted(binary)))?;
    shell_words(inner).filter(|words| !words.is_empty()).map(|_| inner.to_owned())
}

/// Whether a host is this machine itself: inside a bound, the session's own loopback.
fn is_loopback(host: &str) -> bool {
    let host = host.trim_start_matches('[').trim_end_matches(']');
    let is_address = host.parse::<std::net::IpAddr>().is_ok_and(|address| address.is_loopback());
    is_address || host == "localhost" || host.ends_with(".localhost")
}
