//! The machine: what a call or an event does to a run. Pure, total, and the only place where a run changes its state.
//!
//! A tool call never changes the state. A transition is made by its event alone, and only along an edge of the
//! definition whose guards hold.

use serde::{Deserialize, Serialize};

use super::context::{Context, KeyMark};
use super::definition::{AfterFinal, Edge, GuardId, State, StateId, StateKind, ToolPattern, Workflow};
use super::guard::{OBSERVED, Sight};
use super::run::{
    CALL_MS_MAX, Ended, FILES_LEN, FinishedCall, Hint, LEFT_CALLS_MAX, OPEN_CALLS_MAX, OpenCall, OpenExec, Parked,
    Position, Run, SeenCommand, SeenTool, TOOLS_LEN, WINDOW_LEN,
};
use super::unseen::{Unseen, why_unmet};
use crate::action::{Millis, StartAsked};
use crate::call::{Effect, Family};
use crate::code::Code;
use crate::digest::Digest;

/// The largest context, in bytes of its canonical text.
pub const CONTEXT_BYTES_MAX: usize = 65_536;
/// How many commands may be under way at runners.
const EXECS_MAX: usize = 256;
/// What shells add to the number of a signal for an exit code.
const SIGNALLED: i32 = 128;
/// So many calls with the same result, one after the other or among the last ones, are a loop.
const SAME_MAX: usize = 3;
/// The most files of a phase that can be told apart: a call lists so many at most and one more, which stands for any
/// number. A limit above it is this one.
const FILES_COUNTED_MAX: u32 = 255;

/// Why the machine says no.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MachineRefusal {
    /// For machines.
    pub code: Code,
    /// For the agent: what is wrong, and what it could do.
    pub message: String,
    /// Guards that do not hold.
    pub unmet: Vec<String>,
}

fn refused(code: Code, message: impl Into<String>) -> MachineRefusal {
    MachineRefusal { code, message: message.into(), unmet: Vec::new() }
}

/// What the machine has to know of a call.
#[derive(Debug, Clone, Copy)]
pub struct CallAsked<'a> {
    /// The tool, as its host names it.
    pub tool: &'a str,
    /// What kind of tool that is.
    pub family: Option<Family>,
    /// The strictest thing a command line does; none if the tool runs none.
    pub shell: Option<Effect>,
    /// Whether every command is one the state lists; none if nobody looked.
    pub covered: Option<bool>,
    /// A runner runs the command line.
    pub runner: bool,
    /// The operator's entry says the tool is harmless.
    pub low: bool,
    /// Lines it changes.
    pub edit_lines: u64,
    /// Files it changes, by the SHA-256 of their paths.
    pub files: &'a [Digest],
}

/// Whether a call may be made in the state a run is in.
pub fn check_call(
    workflow: &Workflow,
    position: &Position,
    call: &CallAsked<'_>,
    now: Millis,
) -> Result<(), MachineRefusal> {
    let Some(state) = state_of(workflow, position) else {
        return Err(refused(Code::WorkflowTool, "the run is in a state its workflow does not have"));
    };
    if let StateKind::Final(_) = state.kind {
        return match workflow.after_final() {
            AfterFinal::Open => Ok(()),
            AfterFinal::Closed => {
                let message = format!("the workflow ended in `{}` and is closed: no tool passes any more", state.name);
                Err(refused(Code::WorkflowTool, message))
            }
        };
    }
    // Waiting takes away and gives nothing: what the phase does not allow does not pass meanwhile either.
    if let Some(parked) = position.parked_at(now) {
        check_parked(parked, call)?;
    }
    check_tool(state, call)?;
    if state.max_iterations.is_some_and(|max| position.iterations >= max) {
        let message = format!(
            "`{}` allows {} tool calls, and they are used up: make a transition",
            state.name, position.iterations
        );
        return Err(refused(Code::WorkflowIterations, message));
    }
    check_environment(state, call)?;
    check_shell(state, call)?;
    check_limits(state, position, call)
}

fn check_parked(parked: &Parked, call: &CallAsked<'_>) -> Result<(), MachineRefusal> {
    let reads = matches!(call.family, Some(Family::Read | Family::Grep | Family::Glob));
    if reads || call.low || call.shell == Some(Effect::ReadOnly) {
        return Ok(());
    }
    let message = format!(
        "the way to `{}` waits for a person ({}); until then only reading tools pass",
        parked.target, parked.approval_id
    );
    Err(refused(Code::WorkflowParked, message))
}

fn names(list: &[ToolPattern], call: &CallAsked<'_>) -> bool {
    let family = call.family.map(Family::as_str);
    list.iter().any(|pattern| pattern.matches(call.tool) || family.is_some_and(|family| pattern.matches(family)))
}

fn check_tool(state: &State, call: &CallAsked<'_>) -> Result<(), MachineRefusal> {
    let listed = state.allowed_tools.as_ref().is_none_or(|list| names(list, call));
    if listed && !names(&state.disallowed_tools, call) {
        return Ok(());
    }
    Err(refused(Code::WorkflowTool, format!("`{}` does not allow {}", state.name, shown(call))))
}

/// The word for a tool in messages: its family where it has one, as a workflow's author would write it.
fn shown(call: &CallAsked<'_>) -> String {
    let plain = call.tool.len() <= 128 && call.tool.bytes().all(|byte| byte.is_ascii_graphic());
    match (call.family, plain) {
        (Some(family), _) => format!("`{family}`"),
        (None, true) => format!("`{}`", call.tool),
        (None, false) => "this tool".to_owned(),
    }
}

/// Whether a state lets files be changed by tools.
pub fn may_write(state: &State) -> bool {
    [Family::Write, Family::Edit].into_iter().any(|family| {
        let call = CallAsked {
            tool: family.as_str(),
            family: Some(family),
            shell: None,
            covered: None,
            runner: false,
            low: false,
            edit_lines: 0,
            files: &[],
        };
        check_tool(state, &call).is_ok()
    })
}

/// A line that only reads sees variables too, so nothing but a runner keeps them from it, or gives them to it.
fn check_environment(state: &State, call: &CallAsked<'_>) -> Result<(), MachineRefusal> {
    let Some(setting) = state.needs_runner().filter(|_| call.shell.is_some() && !call.runner) else { return Ok(()) };
    let message = format!(
        "`{}` has `{setting}`, which a runner enforces, and none runs this command line; a person can look with \
         `interlock doctor`",
        state.name
    );
    Err(refused(Code::ShellEffect, message))
}

fn check_shell(state: &State, call: &CallAsked<'_>) -> Result<(), MachineRefusal> {
    let Some(effect) = call.shell.filter(|effect| *effect != Effect::ReadOnly) else { return Ok(()) };
    let message = match (&state.allowed_commands, call.covered) {
        (Some(_), Some(true)) => return Ok(()),
        (Some(commands), Some(false) | None) if !commands.is_empty() => {
            let listed = commands.iter().map(|command| format!("`{command}`")).collect::<Vec<_>>().join(", ");
            format!("`{}` allows these commands beside reading ones: {listed}; this line is `{effect}`", state.name)
        }
        (None, _) if may_write(state) => return Ok(()),
        (Some(_) | None, _) => {
            format!("`{}` allows no changes, so command lines may only read; this one is `{effect}`", state.name)
        }
    };
    Err(refused(Code::ShellEffect, message))
}

fn check_limits(state: &State, position: &Position, call: &CallAsked<'_>) -> Result<(), MachineRefusal> {
    if let Some(max) = state.max_edit_lines
        && call.edit_lines > u64::from(max)
    {
        let has = if call.edit_lines == u64::MAX {
            "how many this one changes cannot be told".to_owned()
        } else {
            format!("this one has {}", call.edit_lines)
        };
        let message = format!("`{}` allows edits of at most {max} lines; {has}", state.name);
        return Err(refused(Code::WorkflowLimit, message));
    }
    if let Some(max) = state.max_files_per_state.map(|max| max.min(FILES_COUNTED_MAX)) {
        let more = call.files.iter().filter(|file| !position.files.contains(file)).count();
        let after = position.files.len().saturating_add(more);
        if u64::try_from(after).unwrap_or(u64::MAX) > u64::from(max) && more > 0 {
            let message = format!("`{}` allows changes of at most {max} files before a transition", state.name);
            return Err(refused(Code::WorkflowLimit, message));
        }
    }
    Ok(())
}

/// Whether a call would be the third with the same result: in a row, or among the last ones. A change by another call in
/// between begins anew: the world is not the same any more.
pub fn check_loops(run: &Run, fingerprint: Digest) -> Result<(), Code> {
    let unchanged = |call: &&FinishedCall| call.fingerprint == fingerprint || !call.changes;
    let since: Vec<&FinishedCall> = run.recent.iter().rev().take_while(unchanged).collect();
    let same = |call: &&&FinishedCall| call.fingerprint == fingerprint;
    let Some(result) = since.iter().find(same).and_then(|call| call.result) else { return Ok(()) };
    let again = |call: &&&FinishedCall| call.fingerprint == fingerprint && call.result == Some(result);
    let before = SAME_MAX.saturating_sub(1);
    if since.iter().take(before).filter(again).count() >= before {
        return Err(Code::LoopRepetition);
    }
    if since.iter().filter(again).count() >= before {
        return Err(Code::LoopNoProgress);
    }
    Ok(())
}

/// A call that was let run, for the run to remember.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CallBegun {
    /// What is remembered until it ends.
    pub open: OpenCall,
    /// Files it changes, by the SHA-256 of their paths.
    pub files: Vec<Digest>,
    /// The session it belongs to.
    pub session: String,
    /// The declared fact that it would be the command of, and why nothing of it will be observed.
    pub unseen: Option<(String, Unseen)>,
}

/// A call is let run: it is counted, and what was observed of a tree that it may change counts no more.
pub fn begin_call(run: &mut Run, workflow: Option<&Workflow>, begun: CallBegun) {
    let CallBegun { mut open, files, session, unseen } = begun;
    run.open.retain(|known| open.at.saturating_sub(known.at) < CALL_MS_MAX);
    if open.changes {
        run.changes = run.changes.saturating_add(1);
        run.seen.lapse();
    }
    // What is changed by a call that is under way already may be changed before or after the command looks at it.
    if run.open.iter().any(|other| other.changes && !other.left)
        && let Some((name, _)) = open.fact.take()
    {
        run.seen.lose(name, Unseen::WrittenMeanwhile);
    }
    if let Some((name, why)) = unseen {
        run.seen.lose(name, why);
    }
    if let Some((_, changes)) = &mut open.fact {
        *changes = run.changes;
    }
    if run.open.len() >= OPEN_CALLS_MAX {
        // A change that is under way is forgotten last: as long as one is known, no fact begins.
        let harmless = run.open.iter().position(|other| other.left || !other.changes);
        run.open.remove(harmless.unwrap_or(0));
    }
    run.open.push(open);
    let active = |position: &&mut Position| {
        position.ended.is_none() && position.session.as_deref().is_none_or(|own| own == session)
    };
    if let (Some(_), Some(position)) = (workflow, run.position.as_mut().filter(active)) {
        position.iterations = position.iterations.saturating_add(1);
        for file in files {
            if !position.files.contains(&file) && position.files.len() < FILES_LEN {
                position.files.push(file);
            }
        }
    }
}

/// The ticket in the text that a host says it ran.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Carried {
    /// None.
    Nothing,
    /// That of the ruling with this number among the agent's entries.
    Of(u64),
    /// One that was not issued to this agent.
    Unknown,
}

impl Carried {
    /// Whether a text with it is the one that the host was told to run for a call.
    fn is_of(self, open: &OpenCall) -> bool {
        match self {
            Carried::Of(decision) => decision == open.decision,
            Carried::Unknown => false,
            // A line that was to be held ran as it was. Where nothing runs without a ticket, it did not run.
            Carried::Nothing => !open.ticket.as_ref().is_some_and(|ticket| ticket.profile.is_some() && !ticket.is_held),
        }
    }
}

/// What became of a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CallEnded<'a> {
    /// The host's id for it.
    pub call_id: Option<&'a str>,
    /// Which host process tells.
    pub process: Digest,
    /// Tool and input, as they were executed.
    pub fingerprint: Digest,
    /// The tool, as its host names it.
    pub tool: &'a str,
    /// It ran a command line.
    pub is_command: bool,
    /// Whether the host calls it a success, if it says.
    pub ok: Option<bool>,
    /// The exit code, where the host tells.
    pub exit_code: Option<i64>,
    /// What came out of it.
    pub result: Option<Digest>,
    /// Files it changed.
    pub files: &'a [String],
    /// Whether the host is believed how a command ended, and not only that it did.
    pub tells_how: bool,
    /// The ticket that its command carried, where hosts are told to put one there.
    pub carried: Option<Carried>,
}

/// A call ended. `Err` says why it cannot be one that was judged: then the run is frozen.
pub fn end_call(run: &mut Run, ended: &CallEnded<'_>) -> Result<(), &'static str> {
    let same = |open: &OpenCall| open.process == ended.process && open.call_id.as_deref() == ended.call_id;
    let told = |open: &OpenCall| ended.carried.is_none_or(|carried| carried.is_of(open));
    let at = match ended.call_id {
        // A host may ask twice about one call, and runs it as it was told last.
        Some(_) => run.open.iter().position(|open| same(open) && told(open)).or_else(|| run.open.iter().position(same)),
        None => run.open.iter().position(|open| same(open) && told(open) && open.fingerprint == ended.fingerprint),
    };
    let Some(at) = at else { return Err("a call ended that was never judged, or by another process") };
    if run.open.get(at).is_some_and(|open| open.fingerprint != ended.fingerprint || !told(open)) {
        return Err("what was executed is not what was judged");
    }
    let is_unspent = |open: &OpenCall| open.ticket.as_ref().is_some_and(|ticket| ticket.is_held);
    if ended.ok == Some(true) && run.open.get(at).is_some_and(is_unspent) {
        return Err("a command ran that no runner started");
    }
    let open = run.open.remove(at);
    if run.recent.len() >= WINDOW_LEN {
        run.recent.remove(0);
    }
    // Whoever was to tell of its command has done so by now, or never will.
    let execs = run.execs.len();
    run.execs.retain(|exec| exec.by_hook != Some(open.decision));
    if let Some((name, _)) = open.fact.as_ref().filter(|_| open.ticket.is_some()) {
        let was_started = run.execs.len() < execs;
        run.seen.lose(name.clone(), if was_started { Unseen::Untold } else { Unseen::NoRunner });
    }
    let changes = open.changes;
    if open.left && changes {
        // What it changed meanwhile, no fact could know of.
        run.changes = run.changes.saturating_add(1);
        run.seen.lapse();
    }
    run.recent.push(FinishedCall { fingerprint: ended.fingerprint, result: ended.result, changes });
    // Whoever is not the host can say that a call ended, and not how.
    let Some(ok) = ended.ok.filter(|_| !open.foreign) else { return Ok(()) };
    note_tool(run, ended.tool, ok);
    if ended.is_command && ended.tells_how {
        let exit_code = ended.exit_code.or(ok.then_some(0));
        let seen = SeenCommand { ok, exit_code, command_digest: ended.fingerprint };
        run.seen.last_command = Some(seen.clone());
        // Nothing may have changed while it ran, or it says nothing about the tree there is now.
        if let Some((name, _)) = open.fact.filter(|(_, changes)| *changes == run.changes) {
            run.seen.meet(name, seen);
        }
    }
    if ok {
        for file in ended.files {
            if run.seen.files_changed.contains(file) {
                continue;
            }
            if run.seen.files_changed.len() < FILES_LEN {
                run.seen.files_changed.push(file.clone());
            } else {
                run.seen.more_files = true;
            }
        }
    }
    Ok(())
}

/// A command that starts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ExecBegun<'a> {
    /// What was asked.
    pub asked: StartAsked<'a>,
    /// By what its end is told.
    pub exec_id: &'a str,
    /// It was not started by the host that asked.
    pub foreign: bool,
    /// It was started with the ruling itself.
    pub by_hook: bool,
    /// When.
    pub at: Millis,
}

/// The command of a call starts: its ticket is spent, and whatever becomes of it is its runner's to tell. One that starts
/// with the ruling leaves the ticket to a runner that can ask.
pub fn begin_exec(run: &mut Run, begun: &ExecBegun<'_>) {
    let ExecBegun { asked, exec_id, foreign, by_hook, at } = *begun;
    let is_it =
        |open: &&mut OpenCall| open.ticket.as_ref().is_some_and(|ticket| ticket.decision_id == asked.decision_id);
    let Some(open) = run.open.iter_mut().find(is_it) else { return };
    let decision = open.decision;
    let fact = if by_hook {
        open.fact.clone()
    } else {
        open.ticket = None;
        open.fact.take()
    };
    if foreign && let Some((name, _)) = &fact {
        run.seen.lose(name.clone(), Unseen::Foreign);
    }
    let fact = fact.filter(|_| !foreign);
    let exec = OpenExec {
        exec_id: exec_id.to_owned(),
        fingerprint: open.fingerprint,
        at,
        changes: open.changes,
        foreign,
        fact,
        by_hook: by_hook.then_some(decision),
    };
    run.execs.retain(|other| other.by_hook != Some(decision));
    if run.execs.len() >= EXECS_MAX {
        run.execs.remove(0);
    }
    run.execs.push(exec);
}

/// The command of a call ended.
pub fn end_exec(run: &mut Run, exec_id: &str, exit_code: Option<i32>, signal: Option<i32>) {
    let Some(at) = run.execs.iter().position(|exec| exec.exec_id == exec_id) else { return };
    let exec = run.execs.remove(at);
    // Its ticket was left to a runner that could ask: there is nothing left to start.
    for open in run.open.iter_mut().filter(|open| exec.by_hook == Some(open.decision)) {
        (open.ticket, open.fact) = (None, None);
    }
    // What never began, nobody saw end.
    if exec.foreign || exit_code.is_none() && signal.is_none() {
        if let Some((name, _)) = exec.fact {
            run.seen.lose(name, Unseen::Untold);
        }
        return;
    }
    let code = exit_code.or_else(|| signal.map(|signal| signal.saturating_add(SIGNALLED)));
    let seen =
        SeenCommand { ok: exit_code == Some(0), exit_code: code.map(i64::from), command_digest: exec.fingerprint };
    run.seen.last_command = Some(seen.clone());
    // Nothing may have changed while it ran, or it says nothing about the tree there is now.
    let changing =
        run.open.iter().any(|other| other.changes && !other.left) || run.execs.iter().any(|other| other.changes);
    match exec.fact {
        Some((name, changes)) if changes == run.changes && !changing => run.seen.meet(name, seen),
        Some((name, _)) => run.seen.lose(name, Unseen::WrittenMeanwhile),
        None => {}
    }
}

/// A turn ended. What of it is under way stands in no fact's way from now on: most of it never ran, and nobody will tell.
/// If it is told to have ended all the same, it is a call that was judged; but it is the command of no fact any more.
pub fn end_turn(run: &mut Run, had: impl Fn(&OpenCall) -> bool) {
    for open in run.open.iter_mut().filter(|open| had(open)) {
        open.left = true;
        if let Some((name, _)) = open.fact.take() {
            run.seen.lose(name, Unseen::TurnOver);
        }
        // It may go on, as its call may: it stands in no fact's way either.
        for exec in run.execs.iter_mut().filter(|exec| exec.by_hook == Some(open.decision)) {
            (exec.changes, exec.fact) = (false, None);
        }
    }
    let left = run.open.iter().filter(|open| open.left).count();
    let mut over = left.saturating_sub(LEFT_CALLS_MAX);
    run.open.retain(|open| {
        let goes = open.left && over > 0;
        over = over.saturating_sub(usize::from(goes));
        !goes
    });
}

fn note_tool(run: &mut Run, tool: &str, ok: bool) {
    let known = run.seen.tools.contains_key(tool) || run.seen.tools.len() < TOOLS_LEN;
    let name = if known { tool } else { "other" };
    let seen = run.seen.tools.entry(name.to_owned()).or_insert(SeenTool { ok, count: 0 });
    *seen = SeenTool { ok, count: seen.count.saturating_add(1) };
}

/// An event an agent asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TransitionAsked<'a> {
    /// The event.
    pub event: &'a str,
    /// What it says along with it.
    pub data: &'a Context,
    /// The revision it has seen.
    pub expected_revision: Option<u64>,
}

/// What an event leads to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step<'a> {
    /// The run goes on in another state, or in the same one anew.
    Move {
        /// Where to.
        target: &'a str,
        /// The same.
        id: StateId,
    },
    /// A person has to agree first.
    Ask {
        /// Where to.
        target: &'a str,
        /// The same.
        id: StateId,
        /// What that person is told.
        message: Option<&'a str>,
    },
}

/// What an event leads to now. Nothing is changed.
pub fn transition<'a>(
    workflow: &'a Workflow,
    run: &Run,
    asked: &TransitionAsked<'_>,
    now: Millis,
) -> Result<Step<'a>, MachineRefusal> {
    let Some(position) = &run.position else { return Err(refusals::no_run()) };
    if let Some(expected) = asked.expected_revision
        && expected != run.revision
    {
        return Err(refusals::stale(run.revision, expected));
    }
    if let Some(reason) = &run.frozen {
        return Err(refusals::frozen(reason));
    }
    let state = state_of(workflow, position).filter(|_| position.ended.is_none());
    let Some(state) = state else { return Err(refusals::ended(position)) };
    if let Some(parked) = position.parked_at(now) {
        return Err(refusals::parked(parked));
    }
    let Some((_, rows)) = state.on.iter().find(|(event, _)| event == asked.event) else {
        return Err(refusals::no_event(state, asked.event));
    };
    if position.transitions >= workflow.max_transitions() {
        return Err(refusals::too_many_transitions(position));
    }
    check_data(position, asked.data)?;
    let edge = choose(workflow, &Sight::new(&position.context, asked.data, &run.seen), rows)?;
    let Some(target) = workflow.state(edge.target) else {
        return Err(refused(Code::WorkflowEvent, "the edge leads nowhere"));
    };
    let (name, id) = (target.name.as_str(), edge.target);
    if edge.requires_approval || target.requires_approval {
        return Ok(Step::Ask { target: name, id, message: edge.approval_message.as_deref() });
    }
    Ok(Step::Move { target: name, id })
}

/// Why an event leads nowhere. Apart from what leads somewhere, which is to be short.
mod refusals {
    use super::{Code, Edge, MachineRefusal, OBSERVED, Parked, Position, Sight, State, Workflow, refused, unmet};

    #[cold]
    pub(super) fn no_run() -> MachineRefusal {
        refused(Code::WorkflowNoRun, "no workflow runs here; a person starts one with `interlock workflow start`")
    }

    #[cold]
    pub(super) fn stale(revision: u64, expected: u64) -> MachineRefusal {
        let message = format!("the run is at revision {revision}, not {expected}; read the state again");
        refused(Code::WorkflowRevision, message)
    }

    #[cold]
    pub(super) fn frozen(reason: &str) -> MachineRefusal {
        refused(Code::WorkflowFrozen, format!("the run is frozen until an operator looked: {reason}"))
    }

    #[cold]
    pub(super) fn ended(position: &Position) -> MachineRefusal {
        refused(Code::WorkflowEvent, format!("the run ended in `{}`", position.state))
    }

    #[cold]
    pub(super) fn parked(parked: &Parked) -> MachineRefusal {
        let message = format!("the way to `{}` waits for a person already ({})", parked.target, parked.approval_id);
        refused(Code::WorkflowParked, message)
    }

    #[cold]
    pub(super) fn no_event(state: &State, event: &str) -> MachineRefusal {
        let events = state.on.iter().map(|(event, _)| format!("`{event}`")).collect::<Vec<_>>().join(", ");
        let event = crate::display(event);
        refused(Code::WorkflowEvent, format!("`{}` has no event `{event}`; it has {events}", state.name))
    }

    #[cold]
    pub(super) fn too_many_transitions(position: &Position) -> MachineRefusal {
        let message = format!("the run has made {} transitions, which is its limit", position.transitions);
        refused(Code::WorkflowLimit, message)
    }

    #[cold]
    pub(super) fn no_guard_holds(workflow: &Workflow, sight: &Sight<'_>, rows: &[Edge]) -> MachineRefusal {
        let mut missing: Vec<String> = rows.iter().flat_map(|edge| unmet(workflow, edge, sight)).collect();
        missing.dedup();
        let told = missing.iter().map(|guard| format!("`{guard}`")).collect::<Vec<_>>().join(", ");
        MachineRefusal { code: Code::WorkflowGuard, message: format!("not met: {told}"), unmet: missing }
    }

    #[cold]
    pub(super) fn claims_observed() -> MachineRefusal {
        let message = format!("`{OBSERVED}` is what Interlock saw itself; data cannot say it");
        refused(Code::WorkflowData, message)
    }

    #[cold]
    pub(super) fn too_much_context() -> MachineRefusal {
        let message = format!("the context would have more than {} bytes", super::CONTEXT_BYTES_MAX);
        refused(Code::WorkflowData, message)
    }
}

/// The first row whose guards hold.
fn choose<'a>(workflow: &Workflow, sight: &Sight<'_>, rows: &'a [Edge]) -> Result<&'a Edge, MachineRefusal> {
    let open = rows.iter().find(|edge| first_unmet(workflow, edge, sight).is_none());
    open.ok_or_else(|| refusals::no_guard_holds(workflow, sight, rows))
}

fn first_unmet<'a>(workflow: &Workflow, edge: &'a Edge, sight: &Sight<'_>) -> Option<&'a GuardId> {
    edge.guards.iter().find(|id| workflow.guard(**id).is_none_or(|guard| !sight.meets(guard)))
}

/// The guards of an edge that do not hold, by name.
fn unmet(workflow: &Workflow, edge: &Edge, sight: &Sight<'_>) -> Vec<String> {
    let fails = |id: &&GuardId| workflow.guard(**id).is_none_or(|guard| !sight.meets(guard));
    let name = |id: &GuardId| workflow.guard(*id).map_or_else(String::new, |guard| guard.name.clone());
    edge.guards.iter().filter(fails).map(name).collect()
}

/// Whether what a transition brings may go into the context: what was observed cannot be claimed, and there is an end.
fn check_data(position: &Position, data: &Context) -> Result<(), MachineRefusal> {
    if data.get_marked(KeyMark::OBSERVED, OBSERVED).is_some() {
        return Err(refusals::claims_observed());
    }
    let at_most = position.context.len_at_most().saturating_add(data.len_at_most());
    if at_most > CONTEXT_BYTES_MAX && !data.is_empty() && is_too_much(&position.context, data) {
        return Err(refusals::too_much_context());
    }
    Ok(())
}

#[cold]
fn is_too_much(context: &Context, data: &Context) -> bool {
    let mut context = context.clone();
    context.merge(data);
    context.text().len() > CONTEXT_BYTES_MAX
}

/// The run goes on in another state: counters begin anew, the context keeps what came with the event.
pub fn move_to(run: &mut Run, workflow: &Workflow, target: &str, data: &Context) {
    if let Some(id) = workflow.find(target) {
        move_to_state(run, workflow, id, data);
    }
}

/// The same for a state that was found already.
pub fn move_to_state(run: &mut Run, workflow: &Workflow, id: StateId, data: &Context) {
    let (Some(position), Some(state)) = (&mut run.position, workflow.state(id)) else { return };
    position.context.merge(data);
    position.state.clone_from(&state.name);
    position.hint = Hint(Some(id));
    position.iterations = 0;
    position.files.clear();
    position.transitions = position.transitions.saturating_add(1);
    position.parked = None;
    position.ended = ended_in(state);
    run.revision = run.revision.saturating_add(1);
}

/// A transition waits for a person from now on.
pub fn park(run: &mut Run, parked: Parked) {
    if let Some(position) = &mut run.position {
        position.parked = Some(parked);
        run.revision = run.revision.saturating_add(1);
    }
}

/// A person agreed or not. `Err` if the transition could not be made now: then nothing is changed.
pub fn resolve_parked(run: &mut Run, workflow: &Workflow, approval_id: &str, agreed: bool) -> Result<(), Code> {
    let position = run.position.as_ref().filter(|position| position.ended.is_none());
    let parked = position.and_then(|position| position.parked.clone());
    let Some(parked) = parked.filter(|parked| parked.approval_id == approval_id) else {
        // What waits no more cannot be made; saying no to it is possible and changes nothing.
        return if agreed { Err(Code::ApprovalStale) } else { Ok(()) };
    };
    if !agreed {
        if let Some(position) = &mut run.position {
            position.parked = None;
        }
        run.revision = run.revision.saturating_add(1);
        return Ok(());
    }
    // Decided anew: what was observed may count no more.
    let mut free = run.clone();
    if let Some(position) = &mut free.position {
        position.parked = None;
    }
    let asked = TransitionAsked { event: &parked.event, data: &parked.data, expected_revision: None };
    match transition(workflow, &free, &asked, 0) {
        Ok(Step::Move { target, id } | Step::Ask { target, id, .. }) if target == parked.target => {
            move_to_state(run, workflow, id, &parked.data);
            Ok(())
        }
        Ok(_) | Err(_) => Err(Code::ApprovalStale),
    }
}

/// How a run that enters this state ends, if it does.
pub(super) fn ended_in(state: &State) -> Option<Ended> {
    match state.kind {
        StateKind::Active => None,
        StateKind::Final(outcome) => Some(Ended::Final(outcome)),
    }
}

/// The state a run is in.
pub fn state_of<'a>(workflow: &'a Workflow, position: &Position) -> Option<&'a State> {
    let hinted = position.hint.0.and_then(|id| workflow.state(id)).filter(|state| state.name == position.state);
    hinted.or_else(|| workflow.find(&position.state).and_then(|id| workflow.state(id)))
}

/// A way out of a state, as the agent is told of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WayOut {
    /// The event.
    pub event: String,
    /// Where it leads, if the guards hold; the first row if none does.
    pub target: String,
    /// Guards that do not hold now.
    pub unmet: Vec<String>,
    /// Why, as far as the run knows.
    pub why: Vec<String>,
    /// A person has to agree.
    pub asks: bool,
}

/// The ways out of the state a run is in.
pub fn ways_out(workflow: &Workflow, run: &Run) -> Vec<WayOut> {
    let Some(position) = run.position.as_ref().filter(|position| position.ended.is_none()) else { return Vec::new() };
    let Some(state) = state_of(workflow, position) else { return Vec::new() };
    let nothing = Context::default();
    let sight = Sight::new(&position.context, &nothing, &run.seen);
    let way = |(event, rows): &(String, Vec<Edge>)| {
        let open = rows.iter().find(|edge| first_unmet(workflow, edge, &sight).is_none());
        let edge = open.or_else(|| rows.first())?;
        let target = workflow.state(edge.target)?;
        let unmet = unmet(workflow, edge, &sight);
        Some(WayOut {
            event: event.clone(),
            target: target.name.clone(),
            why: why_unmet(workflow, run, &unmet),
            unmet,
            asks: edge.requires_approval || target.requires_approval,
        })
    };
    state.on.iter().filter_map(way).collect()
}
