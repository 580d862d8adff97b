//! What an agent and its person are told: short, what is allowed now, what leads on, and what a person can run.

use interlock_core::action::{CheckName, Mode, Trust};
use interlock_core::contain::{PROJECT, READ};
use interlock_core::ledger::Ruled;
use interlock_core::rule::SELF_RULE;
use interlock_core::workflow::{ToolPattern, WayOut, state_of, ways_out};
use interlock_core::{Code, display};
use interlock_hosts::Kind;
use interlock_runtime::call_gate::Standing;
use interlock_runtime::keep_door::{code_of, told};
use interlock_runtime::tool_door::DoorFault;

pub(super) const SUBAGENT: &str =
    "Interlock: a subagent works within the phase it was started in; only the main agent makes transitions";

pub(super) const OPEN_LINE: &str = "Interlock refused this: the line is not at an end where it ends (an open quote, a \
    here-document without its last line, a backslash), so nothing can be put behind it. Write it so that it ends.";

pub(super) const DISPLACED: &str = "Interlock refused this change of settings: its shell prefix \
    (CLAUDE_CODE_SHELL_PREFIX) would no longer be in force. The session goes on with the settings it has.";

pub(super) fn unreadable(reason: &str) -> String {
    format!("Interlock could not read this event, so it is refused: {reason}. A person can run `interlock doctor`.")
}

/// What an agent is told whose host hands nothing to the runner.
pub(super) fn by_hand(line: &str) -> String {
    format!(" Held by the kernel it may pass: run `{line}`, alone.")
}

/// What an agent is told whose command failed while it was held.
pub(super) fn held(profile: &str, decision_id: &str) -> String {
    let more = match profile {
        READ => "it could only read",
        PROJECT => "it could write in the project and reach nothing outside of it",
        _ => "it could write in the project and reach the hosts that are listed for it",
    };
    format!(
        "Interlock held this command to the profile `{profile}`: {more}. If it failed for that, a person can let it run \
         as it is: `interlock allow {decision_id}`."
    )
}

/// What a person is told of a line that destroys what is kept.
pub(super) fn recoverable(ruled: &Ruled) -> Option<String> {
    let call = ruled.evidence.as_ref()?.call.as_ref()?;
    let id = &ruled.decision_id;
    call.bound.as_ref()?.brings_back(&call.effects).then(|| {
        format!("Interlock keeps what this may delete: `interlock undo {id}` brings it back, `interlock changes {id}` shows it.")
    })
}

pub(super) fn fault(fault: &DoorFault) -> String {
    match fault {
        DoorFault::Unreadable(reason) => unreadable(reason),
        DoorFault::Refused(code) => {
            format!("Interlock refused this ({code}: {}). A person can run `interlock explain {code}`.", code.title())
        }
        DoorFault::NotKept(fault) => format!(
            "Interlock refused this: what it may change cannot be kept ({}: {}). A person can run `interlock explain {}`.",
            code_of(fault),
            told(fault),
            code_of(fault)
        ),
        DoorFault::Store(_) => {
            "Interlock could not record this, so it is refused (INTERLOCK-FAULT-002). A person can run `interlock \
             doctor`."
                .to_owned()
        }
    }
}

/// Why a call is refused, and what to do.
///
/// `is_own` says that the decision's id leads to this very call: what is only counted by its code names another one, and
/// nobody should allow that by mistake.
pub(super) fn refusal(ruled: &Ruled, is_own: bool, standing: &Standing, agent: &str, session: &str) -> String {
    let Some(error) = &ruled.ruling.error else { return "Interlock refused this".to_owned() };
    let mut text = format!("Interlock refused this: {}{} ({}).", error.message, why(ruled), error.code);
    let position = standing.run.position_for(session);
    if let (Some(position), Some(workflow)) = (position, standing.workflow.as_deref())
        && position.ended.is_none()
    {
        if let Some(tools) = state_of(workflow, position).and_then(|state| state.allowed_tools.as_deref()) {
            text.push_str(&format!(" `{}` allows {}.", position.state, listed(tools)));
        }
        for way in ways_out(workflow, &standing.run).iter().take(8) {
            text.push_str(&way_out(way));
        }
    }
    // An allowance makes a call known, of medium risk: below level 2 it would wait or be denied all the same.
    let fallen = ruled.figures.map(|figures| figures.trust).filter(|trust| *trust < Trust::Autonomous);
    let person = match (&ruled.ticket, error.code) {
        (Some(ticket), _) if fallen.is_some() => format!(
            " A person decides: `interlock approvals approve {}`, then make exactly this call again.",
            ticket.approval_id
        ),
        (None, Code::TrustTooLow) if fallen.is_some() => String::new(),
        (Some(ticket), _) => format!(
            " A person decides: `interlock approvals approve {}`, then make exactly this call again; or \
             `interlock allow {}` lets it pass once (`--project`: from now on).",
            ticket.approval_id, ruled.decision_id
        ),
        (None, Code::TrustTooLow) if is_own => {
            format!(" If this is a false alarm, a person can run `interlock allow {}`.", ruled.decision_id)
        }
        (None, Code::WorkflowFrozen) => {
            " A person looks with `interlock doctor` and `interlock workflow thaw`.".to_owned()
        }
        (None, code) => format!(" What it means: `interlock explain {code}`."),
    };
    text.push_str(&person);
    if let Some(level) = fallen {
        let level = u8::from(level);
        text.push_str(&format!(
            " Trust in this agent has fallen to level {level}; `interlock activity` shows why, and a person restores it \
             with `interlock agents trust {agent} 2`."
        ));
    }
    text
}

/// What of the call made it so: its worst effect, or what was not understood.
fn why(ruled: &Ruled) -> String {
    let code = ruled.ruling.error.as_ref().map(|error| error.code);
    let found = ruled.evidence.as_ref().and_then(|evidence| evidence.call.as_deref());
    let worst = found.and_then(|found| found.shell.or_else(|| found.effects.iter().max().copied()));
    // What is certainly ours is denied: that rule asks only about what may lead anywhere.
    let leads_anywhere =
        ruled.evidence.as_ref().is_some_and(|evidence| evidence.matched.iter().any(|id| id == SELF_RULE));
    match (code, worst) {
        (Some(Code::TrustNeedsApproval), Some(worst)) if leads_anywhere => format!(
            "; it is `{worst}`, and which files it touches is not known before it runs (name them, or search with \
             `grep -r` or `find … -exec … {{}} +`)"
        ),
        (Some(Code::TrustTooLow | Code::TrustNeedsApproval), Some(worst)) => match setting_of(ruled) {
            Some(setting) => format!("; it is `{worst}` by git's configuration, {}", display(setting)),
            None => format!("; it is `{worst}`"),
        },
        _ => String::new(),
    }
}

/// The setting of git that is to blame.
fn setting_of(ruled: &Ruled) -> Option<&str> {
    let checks = ruled.evidence.as_ref().map_or(&[][..], |evidence| &evidence.checks);
    checks.iter().find_map(|check| match &check.name {
        CheckName::GitSetting(setting) => Some(setting.as_str()),
        CheckName::Word(_) => None,
    })
}

fn listed(tools: &[ToolPattern]) -> String {
    if tools.is_empty() {
        return "no tool".to_owned();
    }
    tools.iter().map(|tool| format!("`{tool}`")).collect::<Vec<_>>().join(", ")
}

fn way_out(way: &WayOut) -> String {
    let mut unmet = way.unmet.iter().map(|guard| format!("`{guard}`")).collect::<Vec<_>>().join(", ");
    if !way.why.is_empty() {
        unmet.push_str(&format!(" ({})", way.why.join("; ")));
    }
    let needs = match (unmet.is_empty(), way.asks) {
        (true, false) => String::new(),
        (true, true) => ", once a person agrees".to_owned(),
        (false, false) => format!(", not yet met: {unmet}"),
        (false, true) => format!(", not yet met: {unmet}, and a person has to agree"),
    };
    format!(" {} leads to `{}`{needs}.", display(&way.event), way.target)
}

/// What an agent is told at the beginning of a turn.
pub(super) fn at_turn(standing: &Standing, mode: Mode, session: &str, kind: &Kind) -> Option<String> {
    let mut text = String::new();
    if let (Some(position), Some(workflow)) = (standing.run.position_for(session), standing.workflow.as_deref())
        && let Some(state) = state_of(workflow, position)
        && position.ended.is_none()
    {
        text.push_str(&format!("Interlock: the workflow `{}` is in the phase `{}`.", workflow.id(), state.name));
        if let Some(instructions) = &state.instructions {
            text.push(' ');
            text.push_str(instructions);
        }
        if let Some(tools) = state.allowed_tools.as_deref() {
            text.push_str(&format!(" Allowed here: {}.", listed(tools)));
        }
        if let Some(max) = state.max_iterations {
            text.push_str(&format!(" Tool calls left: {}.", max.saturating_sub(position.iterations)));
        }
        for way in ways_out(workflow, &standing.run).iter().take(8) {
            text.push_str(&way_out(way));
        }
        text.push_str(" Make transitions with the tool `interlock_transition`.");
    }
    if mode == Mode::Observe && matches!(kind, Kind::SessionStart { .. }) {
        text.push_str(" Interlock observes: it judges and records what you do, and blocks nothing.");
    }
    let text = text.trim().to_owned();
    (!text.is_empty()).then_some(text)
}
