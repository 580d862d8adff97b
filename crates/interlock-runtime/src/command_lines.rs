//! What a command line names, for the rules of the action gate: read by the same grammar that reads those of tool calls.
//!
//! An action has no working directory, so nothing is looked up: a pattern in a path may lead anywhere.

use interlock_core::call::Effect;
use interlock_core::rule::{CallHost, CallPath, CommandLine};
use interlock_verifiers::shell::{Setting, Touch, examine_within};
use interlock_verifiers::{Fuel, Ground};

use crate::call_policy::selected;
use crate::paths::{NAME_BYTES_MAX, PATH_BYTES_MAX};

/// The most directories on the disk in which relative paths of a line are looked at. The directories count themselves.
const ELSEWHERE_MAX: usize = 4;

/// Reads a command line.
pub fn read_line(text: &str, ground: &Ground) -> CommandLine {
    read_line_within(text, ground, &mut Fuel::full())
}

/// Reads a command line with so much work.
pub(crate) fn read_line_within(text: &str, ground: &Ground, fuel: &mut Fuel) -> CommandLine {
    let (analysis, words) = examine_within(text, &Setting::with(ground.commands.clone()), fuel);
    let is_path = |touch: &&Touch| !touch.path.as_deref().is_some_and(leads_nowhere);
    let touched = words.touches.iter().filter(is_path).map(|touch| {
        let is_known = |path: &&String| !touch.is_glob || !path.contains(['/', '~']);
        let path = touch.path.as_ref().filter(is_known).cloned();
        let Touch { writes, removes, sweeps, command, .. } = *touch;
        CallPath { path, writes, removes, sweeps, command }
    });
    // A line that goes elsewhere touches where it goes, and its relative paths lead there.
    let goes = words.changes.iter().map(|change| CallPath {
        path: change.to.clone(),
        writes: change.to.is_none() && words.touches.iter().any(|touch| touch.writes),
        removes: false,
        sweeps: false,
        command: change.by,
    });
    let touched: Vec<CallPath> = touched.chain(goes).collect();
    let is_far = |to: &&str| to.starts_with('/');
    let elsewhere = words.changes.iter().filter_map(|change| change.to.as_deref()).filter(is_far).take(ELSEWHERE_MAX);
    let there = elsewhere.flat_map(|to| {
        let relative = touched.iter().filter(|it| it.path.as_deref().is_some_and(|path| !path.starts_with(['/', '~'])));
        relative.map(move |it| CallPath { path: it.path.as_deref().map(|path| format!("{to}/{path}")), ..it.clone() })
    });
    let selected = selected::secrets(&words).into_iter().map(|(path, command)| {
        let path = Some(path);
        CallPath { path, writes: false, removes: false, sweeps: false, command }
    });
    let mut hosts: Vec<CallHost> =
        words.hosts.iter().map(|it| CallHost { host: it.host.clone(), command: it.command }).collect();
    if hosts.is_empty() && analysis.causes.iter().any(|found| found.effect == Effect::Network) {
        hosts.push(CallHost { host: None, command: None });
    }
    CommandLine {
        paths: there.chain(selected).chain(touched.iter().cloned()).collect(),
        hosts,
        commands: words.commands.iter().map(|command| command.words.clone()).collect(),
        is_understood: analysis.understood,
    }
}

/// Words that no file can have as its path: standard input, addresses, and sentences too long for a name.
pub(crate) fn leads_nowhere(text: &str) -> bool {
    let is_address = text.contains("://") && !text.get(..5).is_some_and(|scheme| scheme.eq_ignore_ascii_case("file:"));
    let is_sentence = text.contains(char::is_whitespace)
        && (text.len() > PATH_BYTES_MAX || text.split('/').any(|name| name.len() > NAME_BYTES_MAX));
    text == "-" || text.is_empty() || is_address || is_sentence
}
