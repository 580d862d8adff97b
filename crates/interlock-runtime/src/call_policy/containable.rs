//! Which profile gives a command line all that it was seen to need, if one does. What needs more is judged as if nothing
//! could hold it.

use interlock_core::bundle::Bundle;
use interlock_core::call::{Call, Effect, Family};
use interlock_core::contain::{Abilities, BUILD, BoundEvidence, PROJECT, READ, Rung};
use interlock_core::places::is_within;
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
    if !ground.abilities.hold() || !is_line || seen.has_unread || seen.labels.contains(&Effect::Destructive) {
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
    let answers = |reached: &CallHost| match reached.host.as_deref() {
        Some(host) => has_loopback && is_loopback(host) || profile.connects(host),
        None => reached.command.and_then(|at| needs.get(at)) == Some(&Needs::Packages),
    };
    seen.hosts.iter().all(answers).then(|| BoundEvidence {
        profile: profile.name.clone(),
        digest: profile.digest(),
        abilities: ground.abilities,
        advisory: ground.advisory,
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

/// Whether no rule of the operator is about what code that nobody understood might do: a bound keeps it from the places of
/// the shipped rules, and knows nothing of theirs.
fn rules_are_silent(bundle: &Bundle, subject: &CallSubject<'_>) -> bool {
    let is_open = subject.effects.iter().any(|effect| matches!(effect, Effect::Unknown | Effect::Network));
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
