//! A run that nobody makes: for stepping through a workflow and for tests of one. The machine decides; what would come
//! from hosts and people is said by hand. There is no base policy here: only what the phases allow.

use std::collections::BTreeSet;

use interlock_core::action::Millis;
use interlock_core::call::{Effect, Family};
use interlock_core::workflow::{
    CallAsked, CallBegun, CallEnded, Context, LineJudge, MachineRefusal, OpenCall, Parked, Position, Run, State, Step,
    TransitionAsked, WayOut, Workflow, begin_call, check_call, end_call, may_write, move_to, park, resolve_parked,
    state_of, transition, ways_out,
};
use interlock_core::{Code, Digest};

/// The ticket of the one transition that can wait.
const TICKET: &str = "appr_rehearsal";

/// A run under rehearsal.
pub struct Rehearsal<'a> {
    workflow: &'a Workflow,
    judge: &'a dyn LineJudge,
    run: Run,
    calls: u64,
    visited: BTreeSet<(String, String, String)>,
    states: BTreeSet<String>,
}

impl core::fmt::Debug for Rehearsal<'_> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Rehearsal").field("run", &self.run).finish_non_exhaustive()
    }
}

/// What became of a step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Done {
    /// The run is in this state now.
    Moved(String),
    /// A person is asked whether it may go to this state.
    Asks {
        /// Where it would go.
        target: String,
        /// What the person is told.
        message: Option<String>,
    },
    /// The person said no.
    Denied,
    /// The call passes.
    Passed,
    /// The fact counts from now on.
    Observed,
}

impl<'a> Rehearsal<'a> {
    /// A run at its beginning.
    pub fn new(workflow: &'a Workflow, judge: &'a dyn LineJudge) -> Rehearsal<'a> {
        let position = Position::start(workflow, "run_rehearsal".to_owned(), 0, None);
        let states = BTreeSet::from([position.state.clone()]);
        let run = Run { position: Some(position), ..Run::default() };
        Rehearsal { workflow, judge, run, calls: 0, visited: BTreeSet::new(), states }
    }

    /// The run.
    pub fn run(&self) -> &Run {
        &self.run
    }

    /// The state it is in.
    pub fn state(&self) -> Option<&'a State> {
        self.run.position.as_ref().and_then(|position| state_of(self.workflow, position))
    }

    /// The ways out of it.
    pub fn ways_out(&self) -> Vec<WayOut> {
        ways_out(self.workflow, &self.run)
    }

    /// Ways that were taken: state, event, state.
    pub fn visited(&self) -> &BTreeSet<(String, String, String)> {
        &self.visited
    }

    /// States that were entered.
    pub fn states(&self) -> &BTreeSet<String> {
        &self.states
    }

    /// The transition that waits for a person: event and target.
    pub fn waiting(&self) -> Option<(&str, &str)> {
        let parked = self.run.position.as_ref()?.parked.as_ref()?;
        Some((&parked.event, &parked.target))
    }

    /// The agent asks for a transition.
    pub fn event(&mut self, event: &str, data: &Context) -> Result<Done, MachineRefusal> {
        let asked = TransitionAsked { event, data, expected_revision: None };
        match transition(self.workflow, &self.run, &asked, 0)? {
            Step::Move { target, .. } => {
                let from = self.here();
                move_to(&mut self.run, self.workflow, target, data);
                self.note(from, event.to_owned());
                Ok(Done::Moved(target.to_owned()))
            }
            Step::Ask { target, message, .. } => {
                let parked = Parked {
                    approval_id: TICKET.to_owned(),
                    expires_at: Millis::MAX,
                    event: event.to_owned(),
                    data: data.clone(),
                    target: target.to_owned(),
                };
                park(&mut self.run, parked);
                Ok(Done::Asks { target: target.to_owned(), message: message.map(str::to_owned) })
            }
        }
    }

    /// A person says yes or no to the transition that waits.
    pub fn decide(&mut self, agreed: bool) -> Result<Done, MachineRefusal> {
        let from = self.here();
        let Some(event) = self.waiting().map(|(event, _)| event.to_owned()) else {
            return Err(refused(Code::ApprovalStale, "nothing waits for a person"));
        };
        resolve_parked(&mut self.run, self.workflow, TICKET, agreed)
            .map_err(|code| refused(code, "what was asked for is not possible any more: a guard does not hold now"))?;
        if !agreed {
            return Ok(Done::Denied);
        }
        self.note(from, event);
        Ok(Done::Moved(self.here()))
    }

    /// The agent calls a tool, by the name of its family or its own.
    pub fn tool(&mut self, tool: &str) -> Result<Done, MachineRefusal> {
        let family = Family::parse(tool);
        self.ask(&CallAsked { family, ..plain(tool) })?;
        let changes = !matches!(family, Some(Family::Read | Family::Grep | Family::Glob | Family::WebFetch));
        self.begin(tool, tool, changes, None);
        Ok(Done::Passed)
    }

    /// The agent runs a command line. With an exit code it ends, and is observed if it is the command of a fact.
    pub fn command(&mut self, line: &str, exit_code: Option<i64>) -> Result<Done, MachineRefusal> {
        let state = self.state();
        let listed = state.and_then(|state| state.allowed_commands.as_deref());
        let (effect, covered) = self.judge.judge(line, listed, state.is_some_and(may_write));
        let tool = Family::Bash.as_str();
        self.ask(&CallAsked { family: Some(Family::Bash), shell: Some(effect), covered, ..plain(tool) })?;
        let fact = self.workflow.facts().iter().find(|fact| fact.command == line).map(|fact| fact.name.clone());
        let fingerprint = self.begin(tool, line, fact.is_none() && effect > Effect::ReadOnly, fact);
        if let Some(exit_code) = exit_code {
            self.end(fingerprint, exit_code);
        }
        Ok(Done::Passed)
    }

    /// The command of a fact ran, wherever that was, and ended so.
    pub fn observe(&mut self, fact: &str, exit_code: i64) -> Result<Done, MachineRefusal> {
        if !self.workflow.facts().iter().any(|known| known.name == fact) {
            let known: Vec<String> = self.workflow.facts().iter().map(|fact| format!("`{}`", fact.name)).collect();
            let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
            return Err(refused(Code::WorkflowData, format!("there is no such fact; declared: {known}")));
        }
        let fingerprint = self.begin(Family::Bash.as_str(), fact, false, Some(fact.to_owned()));
        self.end(fingerprint, exit_code);
        Ok(Done::Observed)
    }

    fn here(&self) -> String {
        self.run.position.as_ref().map(|position| position.state.clone()).unwrap_or_default()
    }

    fn note(&mut self, from: String, event: String) {
        let to = self.here();
        self.states.insert(to.clone());
        self.visited.insert((from, event, to));
    }

    fn ask(&self, call: &CallAsked<'_>) -> Result<(), MachineRefusal> {
        match &self.run.position {
            Some(position) => check_call(self.workflow, position, call, 0),
            None => Ok(()),
        }
    }

    fn begin(&mut self, tool: &str, input: &str, changes: bool, fact: Option<String>) -> Digest {
        // Calls that were begun without an end have ended by now: here nothing runs beside anything.
        self.run.open.clear();
        self.calls = self.calls.saturating_add(1);
        let call_id = self.calls.to_string();
        let fingerprint = Digest::of(&[tool, " ", input, " ", &call_id]);
        let open = OpenCall {
            ticket: None,
            gist: None,
            call_id: Some(call_id),
            process: Digest::of(&["rehearsal"]),
            subagent: None,
            fingerprint,
            decision: 0,
            at: 0,
            changes,
            left: false,
            foreign: false,
            fact: fact.map(|name| (name, 0)),
        };
        begin_call(
            &mut self.run,
            Some(self.workflow),
            CallBegun { open, files: Vec::new(), session: String::new(), unseen: None },
        );
        fingerprint
    }

    fn end(&mut self, fingerprint: Digest, exit_code: i64) {
        let call_id = self.calls.to_string();
        let ended = CallEnded {
            // A rehearsal says what a runner would have seen.
            tells_how: true,
            carried: None,
            call_id: Some(&call_id),
            process: Digest::of(&["rehearsal"]),
            fingerprint,
            tool: Family::Bash.as_str(),
            is_command: true,
            ok: Some(exit_code == 0),
            exit_code: Some(exit_code),
            result: None,
            files: &[],
        };
        // It was begun a moment ago, by the same process: it is found.
        let _ = end_call(&mut self.run, &ended);
    }
}

fn plain(tool: &str) -> CallAsked<'_> {
    // What a workflow says is rehearsed as it is where a runner runs.
    CallAsked { tool, family: None, shell: None, covered: None, runner: true, low: false, edit_lines: 0, files: &[] }
}

fn refused(code: Code, message: impl Into<String>) -> MachineRefusal {
    MachineRefusal { code, message: message.into(), unmet: Vec::new() }
}
