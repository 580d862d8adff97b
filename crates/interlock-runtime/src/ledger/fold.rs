//! The rows that follow from the entries, folded with the function the writer uses; and what cannot follow.

use std::collections::HashMap;
use std::convert::Infallible;
use std::sync::Arc;

use interlock_core::Digest;
use interlock_core::action::{
    Agent, Conversation, Executable, Figures, Ticket, Verdict, check_trust_request, decide_execution,
    decide_transition, is_observed,
};
use interlock_core::bundle::Bundle;
use interlock_core::ledger::{
    Body, Consequences, Entry, EntryName, Executed, Moment, NAMES_SINCE, OperatorKey, RefusalKind, Rows, Ruled,
    StateHead, TransitionOutcome, TrustChanged, WorkflowHead, apply,
};
use interlock_core::workflow::{Run, Workflow};

use super::places::Places;

/// The rows that follow from the entries so far.
#[derive(Default)]
pub(super) struct Fold {
    pub(super) agents: HashMap<String, Agent>,
    pub(super) conversations: HashMap<(String, String), Conversation>,
    pub(super) heads: HashMap<String, StateHead>,
    pub(super) tickets: HashMap<String, Ticket>,
    /// By agent and decision.
    pub(super) executions: HashMap<(String, u64), u64>,
    pub(super) keys: HashMap<String, OperatorKey>,
    pub(super) runs: HashMap<String, Run>,
    /// The newest workflow under each id.
    pub(super) registered: HashMap<String, WorkflowHead>,
    /// Workflows by the SHA-256 of their text.
    workflows: HashMap<Digest, Arc<Workflow>>,
    /// Bundles that were put into force.
    bundles: HashMap<Digest, Arc<Bundle>>,
    /// The one in force.
    in_force: Option<Arc<Bundle>>,
    /// Rulings by which something can be executed, of each agent in their order, with the tickets that some of them opened.
    executable: HashMap<String, Vec<ExecutableRuling>>,
    /// Refusals that are written out: those that later ones may be like.
    refusals: HashMap<EntryName, RefusalKind>,
    /// How many entries the service has.
    pub(super) of_service: u64,
    /// Where the entries of formats before the sixth stand: they speak of each other so.
    pub(super) places: Places,
    /// Changes of trust that the next entry of the agent must be.
    due: HashMap<String, TrustChanged>,
    /// The time of the last entry that is about no agent.
    clock: u64,
}

/// A ruling by which something can be executed: its number, and the ticket it opened.
type ExecutableRuling = (u64, Executable, Option<Box<str>>);

/// The rows of a fold while an entry is added.
struct Adding<'f, B> {
    fold: &'f mut Fold,
    /// Sees a ruling with what it was decided on.
    before: Option<B>,
    /// The agent that was handed over, by its id.
    agent: Option<String>,
    /// The conversation that was handed over.
    conversation: Option<(String, String)>,
    wrong: Vec<&'static str>,
}

impl<B: FnOnce(&Moment<'_>, Option<&Bundle>, &Ruled)> Rows for Adding<'_, B> {
    type Fault = Infallible;

    fn agent(&mut self, id: &str) -> Result<Option<Agent>, Infallible> {
        let Some((id, agent)) = self.fold.agents.remove_entry(id) else { return Ok(None) };
        self.agent = Some(id);
        Ok(Some(agent))
    }

    fn conversation(&mut self, agent: &str, id: &str) -> Result<Conversation, Infallible> {
        let key = (agent.to_owned(), id.to_owned());
        let row = self.fold.conversations.remove(&key).unwrap_or_default();
        self.conversation = Some(key);
        Ok(row)
    }

    fn run(&mut self, agent: &str) -> Result<Run, Infallible> {
        Ok(self.fold.runs.remove(agent).unwrap_or_default())
    }

    fn workflow(&mut self, _agent: &str, run: &Run) -> Result<Option<Arc<Workflow>>, Infallible> {
        let position = run.position.as_ref();
        Ok(position.and_then(|position| self.fold.workflows.get(&position.workflow)).cloned())
    }

    fn read_workflow(&mut self, text: &str) -> Option<Arc<Workflow>> {
        let workflow = Arc::new(Workflow::from_text(text).ok()?);
        self.fold.workflows.insert(workflow.digest(), Arc::clone(&workflow));
        Some(workflow)
    }

    fn ticket(&mut self, id: &str) -> Result<Option<Ticket>, Infallible> {
        Ok(self.fold.tickets.remove(id))
    }

    fn head(&mut self, path: &str) -> Result<StateHead, Infallible> {
        Ok(self.fold.heads.remove(path).unwrap_or_default())
    }

    fn key(&mut self, id: &str) -> Result<Option<OperatorKey>, Infallible> {
        Ok(self.fold.keys.remove(id))
    }

    fn registered(&mut self, id: &str) -> Result<Option<WorkflowHead>, Infallible> {
        Ok(self.fold.registered.remove(id))
    }

    fn of_service(&mut self) -> Result<u64, Infallible> {
        Ok(self.fold.of_service)
    }

    fn seq_at(&mut self, agent: Option<&str>, place: u64) -> Option<u64> {
        self.fold.places.seq_at(agent, place)
    }

    fn entries_before(&mut self, agent: &str, size: u64) -> u64 {
        self.fold.places.before(Some(agent), size)
    }

    /// What was decided is decided again.
    fn before(&mut self, entry: &Entry, moment: &Moment<'_>) {
        let agent = moment.agent;
        let in_force = self.fold.in_force.as_ref().map(|bundle| bundle.digest());
        if let Some(bundle) = bundle_of(&entry.body)
            && in_force != Some(bundle)
        {
            self.wrong.push("it was decided under another bundle than the one in force");
        }
        if let Body::ApprovalResolved(resolved) = &entry.body
            && let Some(ticket) = self.fold.tickets.get(&resolved.approval_id)
            && resolved.verdict == Verdict::Approved
            && in_force != Some(ticket.bundle)
        {
            self.wrong.push("it approved what was asked under another bundle");
        }
        if let Some(kind) = RefusalKind::of(&entry.body, agent.trust, entry.rules).filter(|_| entry.rules >= 5) {
            let seq = agent.entries.saturating_add(1);
            self.fold.refusals.insert(EntryName::of_agent(&agent.profile.agent_id, seq), kind);
        }
        if let Body::Ruled(ruled) = &entry.body {
            let facts = ruled.facts.as_ref();
            let figures = facts.map(|facts| Figures::read(agent, moment.conversation, facts, entry.at));
            if figures.is_some() && ruled.figures != figures {
                self.wrong.push("the figures it was decided on are not those of that moment");
            }
            let bundle = self.fold.bundles.get(&ruled.bundle).map(Arc::as_ref);
            if let Some(before) = self.before.take() {
                before(moment, bundle, ruled);
            }
            let evidence = ruled.evidence.as_ref();
            let observed = bundle
                .filter(|_| facts.is_some())
                .is_some_and(|bundle| is_observed(bundle, agent, moment.run, evidence, &ruled.ruling, entry.at));
            if observed != ruled.observed {
                self.wrong.push("whether it holds or is only shown comes out differently");
            }
        }
        if let (Body::Transitioned(asked), Some(run)) = (&entry.body, moment.run) {
            let bundle = self.fold.bundles.get(&asked.bundle);
            let decided =
                bundle.map(|bundle| decide_transition(bundle, agent, run, moment.workflow, &asked.asked(), entry.at));
            if !decided.is_some_and(|decided| is_outcome(decided, &asked.outcome)) {
                self.wrong.push("the transition comes out differently");
            }
        }
        if let Body::RunSteered(steered) = &entry.body
            && !steered.steer.is_possible(moment.workflow)
        {
            self.wrong.push("its workflow has no such state to go on in");
        }
        if let Body::TrustRequested(requested) = &entry.body {
            let (to, from) = (requested.to_level, Some(requested.from_level));
            let bundle = self.fold.bundles.get(&requested.bundle);
            let asked = bundle.map(|bundle| check_trust_request(bundle, agent, to, from, entry.at));
            if asked != Some(Ok(())) {
                self.wrong.push("more trust could not be asked for then");
            }
        }
        if let Body::Executed(executed) = &entry.body {
            self.wrong.extend(self.fold.check_execution(agent, executed, entry));
        }
    }
}

impl Fold {
    /// Adds an entry. `before` sees a ruling with what it was decided on; `wrong` is told what cannot be. Where it stands in
    /// the tree counts for entries before the sixth format, which speak of each other so.
    pub(super) fn add(
        &mut self,
        entry: &Entry,
        place: u64,
        before: impl FnOnce(&Moment<'_>, Option<&Bundle>, &Ruled),
        mut wrong: impl FnMut(&str),
    ) {
        // An agent has its own time, which `apply` looks at: entries of two agents may come in any order.
        if entry.agent.is_none() {
            if entry.at < self.clock {
                wrong("it is older than the entry of the service before it");
            }
            self.clock = self.clock.max(entry.at);
        }
        if let Some(text) = entry.body.activated() {
            match Bundle::from_text(text).map(Arc::new) {
                Ok(bundle) => {
                    self.bundles.insert(bundle.digest(), Arc::clone(&bundle));
                    self.in_force = Some(bundle);
                }
                Err(error) => wrong(&error.to_string()),
            }
        }
        let mut adding =
            Adding { fold: self, before: Some(before), agent: None, conversation: None, wrong: Vec::new() };
        let Ok(after) = apply(entry, &mut adding);
        let Adding { agent, conversation, wrong: decided_wrong, .. } = adding;
        decided_wrong.iter().chain(&after.impossible).for_each(|reason| wrong(reason));
        self.check_beside_rows(entry, &mut wrong);
        self.keep(entry, after, agent, conversation);
        if entry.format < NAMES_SINCE {
            self.places.add(entry.agent.as_deref(), place);
        }
    }

    /// How many entries an agent has so far.
    pub(super) fn entries_of(&self, agent: &str) -> u64 {
        self.agents.get(agent).map_or(0, |agent| agent.entries)
    }

    /// What is said of other entries, which have no rows.
    fn check_beside_rows(&mut self, entry: &Entry, wrong: &mut impl FnMut(&str)) {
        let Some(id) = &entry.agent else { return };
        let changed = if let Body::TrustChanged(changed) = &entry.body { Some(changed) } else { None };
        if self.due.remove(id).as_ref() != changed {
            wrong("trust changed without a cause, or did not change as it had to");
        }
        if let Body::RefusalsRepeated(repeated) = &entry.body {
            for repeat in &repeated.repeats {
                let named = entry.seq_of(&repeat.entry, |agent, place| self.places.seq_at(agent, place));
                let known = named.and_then(|seq| self.refusals.get(&EntryName::of_agent(id, seq)));
                let same = known.is_some_and(|kind| kind.is_of(repeat));
                if !same || repeat.count == 0 || repeat.first_at > repeat.last_at || repeat.last_at > entry.at {
                    wrong("it counts repeats of something else than a refusal of this agent");
                }
            }
        }
    }

    /// What is wrong with a report that something was done.
    fn check_execution(&self, agent: &Agent, executed: &Executed, entry: &Entry) -> Option<&'static str> {
        let id = &agent.profile.agent_id;
        let decision = entry.seq_of(&executed.decision, |agent, place| self.places.seq_at(agent, place));
        let own = self.executable.get(id).map_or(&[][..], Vec::as_slice);
        let found = decision.and_then(|seq| own.binary_search_by_key(&seq, |(seq, ..)| *seq).ok());
        let found = found.and_then(|at| own.get(at));
        let opened = found.and_then(|(_, _, opened)| opened.as_deref());
        let ticket = opened.and_then(|opened| self.tickets.get(opened));
        let ticket = ticket.filter(|ticket| ticket.agent == *id);
        let reported = decision.is_some_and(|seq| self.executions.contains_key(&(id.clone(), seq)));
        let executable = found.map(|(_, executable, _)| *executable);
        let Some(bundle) = self.in_force.as_ref().map(|bundle| bundle.digest()) else {
            return Some("no bundle was in force to report it under");
        };
        let Ok(ruling) = decide_execution(agent, executable, ticket, reported, bundle, entry.at) else {
            return Some("this execution could not be reported then");
        };
        let spent = ticket.filter(|_| ruling.spends).map(|ticket| &ticket.approval_id);
        let same =
            spent == executed.approval_id.as_ref() && ruling.charged.raised_by(executed.usage) == executed.charge;
        (!same).then_some("it spent another ticket than its decision had opened, or cost something else")
    }

    /// Puts the rows back as the entry left them.
    fn keep(
        &mut self,
        entry: &Entry,
        after: Consequences,
        agent: Option<String>,
        conversation: Option<(String, String)>,
    ) {
        self.of_service = after.of_service.unwrap_or(self.of_service);
        if let Some(row) = after.agent {
            let id = agent.unwrap_or_else(|| row.profile.agent_id.clone());
            if let Some(executable) = entry.body.ruled().map(Executable::of).filter(Executable::is_possible) {
                let opened = after.opened.as_ref().map(|ticket| ticket.approval_id.as_str().into());
                let executable = (row.entries, executable, opened);
                match self.executable.get_mut(&id) {
                    Some(own) => own.push(executable),
                    None => {
                        self.executable.insert(id.clone(), vec![executable]);
                    }
                }
            }
            self.executions.extend(after.executed.map(|decision| ((id.clone(), decision), row.entries)));
            self.runs.extend(after.run.map(|run| (id.clone(), *run)));
            self.due.extend(after.trust.map(|due| (id.clone(), due)));
            self.agents.insert(id, row);
        }
        self.conversations.extend(conversation.zip(after.conversation));
        let tickets = after.ticket.into_iter().chain(after.opened);
        self.tickets.extend(tickets.map(|ticket| (ticket.approval_id.clone(), *ticket)));
        self.heads.extend(after.head.map(|head| *head));
        self.keys.extend(after.key.map(|key| (key.key_id.clone(), *key)));
        self.registered.extend(after.workflow.map(|head| (head.id.clone(), *head)));
    }

    /// What is still missing once every entry was added.
    pub(super) fn finish(&self, mut wrong: impl FnMut(&str)) {
        for id in self.due.keys() {
            wrong(&format!("trust of {id} had to change after its last ruling and did not"));
        }
    }
}

/// The bundle that an entry says it was decided under.
fn bundle_of(body: &Body) -> Option<Digest> {
    if let Body::Transitioned(asked) = body {
        return Some(asked.bundle);
    }
    if let Body::TrustRequested(requested) = body {
        return Some(requested.bundle);
    }
    body.ruled().map(|ruled| ruled.bundle)
}

/// Whether a recorded outcome is the one that was decided; the id of a ticket was drawn then.
fn is_outcome(mut decided: TransitionOutcome, recorded: &TransitionOutcome) -> bool {
    if let (TransitionOutcome::Parked { approval_id, .. }, TransitionOutcome::Parked { approval_id: drawn, .. }) =
        (&mut decided, recorded)
    {
        approval_id.clone_from(drawn);
    }
    decided == *recorded
}
