//! One batch: read, decide each command against what the ones before it did, write once, commit, answer.
//!
//! Nothing here knows threads, queues or files, so the simulation runs it unchanged. The overlay (rows, tree, clock)
//! becomes the writer's state only after the commit.
//!
//! | to find | look in |
//! |---|---|
//! | what can be asked, and answered | `batch/command.rs` |
//! | rulings, the order of it all | here |
//! | the overlay: how an entry becomes rows and is recorded | `batch/record.rs` |
//! | approvals, requests for trust, executions | `batch/tickets.rs` |
//! | agents, keys and texts, by operators | `batch/operators.rs` |
//! | refusals that are counted instead of written out | `batch/refusals.rs` |
//! | tool calls of coding agents, transitions, runs, registered workflows | `batch/runs.rs` |

mod command;
mod operators;
mod record;
mod refusals;
mod runs;
mod tickets;

pub use command::{
    AgentChange, Answer, CallCommand, Command, Enrolment, Execution, Recorded, Request, RuleCommand, RunChange,
    StartGround, TransitionCommand, TrustRequest,
};
pub use refusals::Refusals;
pub use runs::Workflows;

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use interlock_core::action::{
    Agent, AgentStatus, Charge, Conversation, Decision, Facts, Figures, Millis, Ruling, RulingError, Status, Ticket,
    decide, is_observed, is_violation, price_of,
};
use interlock_core::bundle::{Bundle, Payloads};
use interlock_core::json::quote;
use interlock_core::ledger::{
    Body, BundleActivated, EntryName, Frontier, Idempotency, OperatorKey, RULES, RefusalKind, Ruled, StateHead,
    StateIntent, TicketOpened, WorkflowHead, leaf_hash,
};
use interlock_core::workflow::Run;
use interlock_core::{Code, Digest};

use command::operator_of;
use record::Read;
use refusals::AgentRefusals;

use super::decision_id::DecisionIds;
use super::store::{Changes, FoundEntry, KEPT_MS, KeptAnswer, KeptText, NewEntry, Outgoing, Store, StoreFault, Txn};
use crate::clock::{Entropy, new_id};

/// How long the text of a refused tool call is kept for a person to look at: a week.
pub(super) const REVIEW_MS: Millis = 7 * 24 * 3_600_000;

/// What the writer knows between batches.
#[derive(Debug, Clone)]
pub struct State {
    /// The tree.
    pub frontier: Frontier,
    /// How many entries the service has.
    pub of_service: u64,
    /// The time of the last entry.
    pub clock: Millis,
    /// The bundle in force.
    pub bundle: Arc<Bundle>,
    /// How ids of decisions are made.
    pub ids: DecisionIds,
    /// Workflows that runs are in, as far as they were needed.
    pub workflows: Workflows,
    /// What agents were refused of late.
    pub refusals: Refusals,
}

/// What others read, as a committed batch left it.
#[derive(Debug, Default)]
pub struct Published {
    /// Agents that changed.
    pub agents: Vec<Arc<Agent>>,
    /// Keys that changed.
    pub keys: Vec<OperatorKey>,
    /// Tickets that changed.
    pub tickets: Vec<String>,
    /// Whether there are new events to be delivered.
    pub events: bool,
}

/// Runs one batch. On an error nothing of it may be answered as recorded, and the state must be read again.
pub fn run_batch<S: Store + ?Sized>(
    store: &mut S,
    state: &mut State,
    commands: Vec<Command>,
    now: Millis,
    entropy: &dyn Entropy,
) -> Result<(Vec<Answer>, Published), StoreFault> {
    let mut txn = store.begin()?;
    let mut batch = Batch {
        txn: txn.as_mut(),
        entropy,
        state: State { clock: state.clock.max(now), ..state.clone() },
        agents: BTreeMap::new(),
        conversations: BTreeMap::new(),
        heads: BTreeMap::new(),
        kept: BTreeMap::new(),
        tokens: Vec::new(),
        tickets: BTreeMap::new(),
        executions: BTreeMap::new(),
        keys: BTreeMap::new(),
        runs: BTreeMap::new(),
        workflows: BTreeMap::new(),
        texts: Vec::new(),
        forgotten: Vec::new(),
        erased: Vec::new(),
        outbox: Vec::new(),
        delivered: Vec::new(),
        refused: BTreeMap::new(),
        entries: Vec::new(),
        first_index: state.frontier.size(),
    };
    let mut answers = Vec::with_capacity(commands.len());
    for command in commands {
        // A panic leaves the overlay as the last command left it: a command changes it in its last step only.
        let outcome = catch_unwind(AssertUnwindSafe(|| batch.run(command)));
        answers.push(match outcome {
            Ok(Ok(answer)) => answer,
            Ok(Err(Trouble::Store(fault))) => return Err(fault),
            Ok(Err(Trouble::Internal)) | Err(_) => Answer::Fault(Code::FaultInternal),
        });
    }
    let refused = std::mem::take(&mut batch.refused);
    let Some((after, changes)) = batch.changes() else {
        state.refusals.update(refused, state.clock);
        return Ok((answers, Published::default()));
    };
    let published = Published {
        agents: changes.agents.clone(),
        keys: changes.keys.clone(),
        tickets: changes.tickets.iter().map(|ticket| ticket.approval_id.clone()).collect(),
        events: !changes.outbox.is_empty(),
    };
    txn.write(&changes)?;
    txn.commit(changes)?;
    *state = after;
    state.refusals.update(refused, state.clock);
    Ok((answers, published))
}

/// The overlay: what the batch has read and done so far.
struct Batch<'a> {
    txn: &'a mut (dyn Txn + 'a),
    entropy: &'a dyn Entropy,
    state: State,
    /// Each with whether it changed.
    agents: BTreeMap<String, (Option<Arc<Agent>>, bool)>,
    conversations: BTreeMap<(String, String), (Conversation, bool)>,
    /// Those that changed.
    heads: BTreeMap<String, StateHead>,
    kept: BTreeMap<(String, Digest), KeptAnswer>,
    tokens: Vec<(Digest, String)>,
    tickets: BTreeMap<String, Ticket>,
    /// By agent and decision.
    executions: BTreeMap<(String, u64), u64>,
    keys: BTreeMap<String, OperatorKey>,
    /// Those that changed, by agent.
    runs: BTreeMap<String, Run>,
    /// Those that are new.
    workflows: BTreeMap<String, WorkflowHead>,
    texts: Vec<KeptText>,
    forgotten: Vec<(String, u64)>,
    erased: Vec<String>,
    outbox: Vec<Outgoing>,
    delivered: Vec<EntryName>,
    /// What agents were refused, of those whose refusals changed.
    refused: BTreeMap<String, AgentRefusals>,
    entries: Vec<NewEntry>,
    first_index: u64,
}

enum Trouble {
    Store(StoreFault),
    Internal,
}

impl From<StoreFault> for Trouble {
    fn from(fault: StoreFault) -> Trouble {
        Trouble::Store(fault)
    }
}

impl Batch<'_> {
    fn run(&mut self, command: Command) -> Result<Answer, Trouble> {
        if let Some((by, roles)) = operator_of(&command)
            && !self.may(by, roles)?
        {
            return Ok(Answer::Refused(Code::Operator));
        }
        match command {
            Command::Register { profile, token, trust, .. } => self.register(*profile, token, trust),
            Command::Rule(command) => self.rule(*command),
            Command::Activate(bundle) => {
                let body = Body::BundleActivated(BundleActivated { text: bundle.text().to_owned() });
                let recorded = self.record_alone(body)?;
                self.state.bundle = bundle;
                Ok(recorded)
            }
            Command::BeginState(intent) => self.begin_state(intent),
            Command::EndState(outcome) => self.record_alone(Body::StateOutcome(outcome)),
            Command::CountUnauthenticated(counts) => self.record_alone(Body::Unauthenticated(counts)),
            Command::CountRepeats => self.count_repeats(),
            Command::Resolve { approval_id, verdict, by, reason } => self.resolve(&approval_id, verdict, by, reason),
            Command::RequestTrust(request) => self.request_trust(*request),
            Command::Execute(execution) => self.execute(*execution),
            Command::Change { agent, change } => self.change(&agent, change.into()),
            Command::EraseTexts { agent, by, reason } => self.erase_texts(&agent, by, reason),
            Command::CreateKey(key) => self.create_key(*key),
            Command::RevokeKey(revoked) => self.revoke_key(revoked),
            Command::RotateSigningKey(rotated) => self.record_alone(Body::SigningKeyRotated(rotated)),
            Command::Enrol(enrolment) => self.enrol(*enrolment),
            Command::Call(command) => self.call(*command),
            Command::Pass { agent, pass } => self.pass(&agent, pass),
            Command::PassUnread { holds } => self.pass_unread(holds),
            Command::PassOwnRun => self.pass_own_run(),
            Command::Transition(command) => self.transition(*command),
            Command::ChangeRun { agent, change } => self.change_run(&agent, change),
            Command::RegisterWorkflow { workflow, by } => self.register_workflow(workflow, by),
            Command::Delivered(ids) => {
                self.delivered.extend(ids);
                Ok(Answer::Done)
            }
        }
    }

    fn begin_state(&mut self, mut intent: StateIntent) -> Result<Answer, Trouble> {
        let head = self.head(&intent.path)?;
        if let Err(denial) = head.check(intent.current) {
            return Ok(Answer::Blocked(Box::new(denial)));
        }
        intent.first = head.committed.is_none();
        self.record_alone(Body::StateIntent(intent))
    }

    fn head(&mut self, path: &str) -> Result<StateHead, StoreFault> {
        match self.heads.get(path) {
            Some(head) => Ok(head.clone()),
            None => Ok(self.txn.head(path)?.unwrap_or_default()),
        }
    }

    fn rule(&mut self, command: RuleCommand) -> Result<Answer, Trouble> {
        let RuleCommand { agent: id, token, request, idempotency, corrected, text } = command;
        let Some(agent) = self.agent(&id)? else { return Ok(Answer::Refused(Code::AgentUnknown)) };
        if !agent.has_token(token) {
            return Ok(Answer::Refused(Code::AgentToken));
        }
        // A suspended agent gets no old approval either, and being refused does not use its key up.
        let idempotency = idempotency.filter(|_| agent.status == AgentStatus::Active);
        if let Some(idempotency) = idempotency
            && let Some(answer) = self.answer_again(&id, idempotency)?
        {
            return Ok(answer);
        }
        let now = self.state.clock.max(agent.last_at);
        let (ruled, conversation) = match request {
            Request::Malformed { code, message } => (self.malformed(&agent, code, message, idempotency, now)?, None),
            Request::Facts { facts, evidence } => {
                let key = (id.clone(), facts.conversation.clone());
                let conversation = self.conversation(&key)?;
                let bundle = &self.state.bundle;
                let Ok(ruling) = decide(bundle, &agent, &conversation, &facts, evidence.as_ref(), now) else {
                    return Ok(Answer::NeedsEvidence(Arc::clone(bundle)));
                };
                let figures = Some(Figures::read(&agent, &conversation, &facts, now));
                let mut ruled = Ruled {
                    decision_id: self.decision_id(&agent)?,
                    bundle: bundle.digest(),
                    violation: is_violation(bundle, &agent, &facts, evidence.as_ref(), &ruling),
                    observed: is_observed(bundle, &agent, None, evidence.as_ref(), &ruling, now),
                    ticket: self.ticket_of(&facts, &ruling, now)?,
                    text: None,
                    facts: None,
                    evidence,
                    figures,
                    ruling,
                    idempotency,
                    redeemed: None,
                    used: None,
                };
                ruled.facts = Some(*facts);
                (ruled, Some((key, conversation)))
            }
        };
        let mut ruled = ruled;
        // A limit that was broken holds until it does not: the same request may pass under the same key then.
        if ruled.ruling.decision == Decision::BudgetExceeded {
            ruled.idempotency = None;
        }
        // A corrected form counts only where the ruling rests on it: beside what nobody read it proves nothing.
        let status = ruled.ruling.verification.as_ref().map(|verification| verification.status);
        let rests_on_it = ruled.ruling.decision.consumes_step() && status == Some(Status::Corrected);
        let corrected = corrected.filter(|_| rests_on_it);
        let kind = RefusalKind::of_ruling(&ruled, agent.trust, RULES);
        if let Some(kind) = &kind {
            let answer = |decision_id| Body::Ruled(Box::new(Ruled { decision_id, idempotency: None, ..ruled.clone() }));
            if let Some(mut recorded) = self.fold_refusal(&agent, kind, answer, now)? {
                recorded.corrected = corrected;
                return Ok(Answer::Recorded(recorded));
            }
        }
        let idempotency = ruled.idempotency;
        let seq = agent.entries.saturating_add(1);
        let kept_text = self.keep_text(&id, &ruled, text, corrected.as_deref(), seq)?;
        ruled.text = kept_text.as_ref().map(digest_of_text);
        let read = Read { agent: Some(agent), conversation, ..Read::default() };
        let mut answer = self.record(read, now, Body::Ruled(Box::new(ruled)))?;
        if let (Some(kind), Answer::Recorded(recorded)) = (&kind, &answer) {
            self.remember_refusal(&id, kind, recorded, kept_text.as_ref());
        }
        if let Some(Idempotency { key, .. }) = idempotency {
            let sealed = corrected.as_ref().map(|text| self.state.ids.seal_text(&id, seq, text));
            self.kept.insert((id, key), KeptAnswer { seq, at: now, corrected: sealed });
        }
        self.texts.extend(kept_text);
        if let Answer::Recorded(recorded) = &mut answer {
            recorded.corrected = corrected;
        }
        Ok(answer)
    }

    /// The ticket a ruling opens, if it waits for a person.
    fn ticket_of(&self, facts: &Facts, ruling: &Ruling, now: Millis) -> Result<Option<TicketOpened>, Trouble> {
        if ruling.decision != Decision::Pending || facts.dry_run {
            return Ok(None);
        }
        let bundle = &self.state.bundle;
        Ok(Some(TicketOpened {
            approval_id: self.approval_id()?,
            expires_at: now.saturating_add(bundle.ticket_expiry_ms()),
            charge: price_of(bundle, facts),
        }))
    }

    /// The text of a request, if it is to be kept.
    fn keep_text(
        &self,
        agent: &str,
        ruled: &Ruled,
        text: Option<Arc<str>>,
        corrected: Option<&str>,
        seq: u64,
    ) -> Result<Option<KeptText>, Trouble> {
        let until = match (self.state.bundle.payloads(), &ruled.ticket) {
            (Payloads::None, _) => return Ok(None),
            (Payloads::Pending, Some(ticket)) => Some(ticket.expires_at),
            // A person looks at what a coding agent was refused, to allow it or not.
            (Payloads::Pending, None) if is_refused_call(ruled) => Some(self.state.clock.saturating_add(REVIEW_MS)),
            (Payloads::Pending, None) => return Ok(None),
            (Payloads::All, _) => None,
        };
        let whole = |text: Arc<str>| match (text.strip_suffix('}'), corrected) {
            // What may run is the corrected form, so whoever decides has to see it.
            (Some(open), Some(corrected)) => format!("{open},\"corrected\":{}}}", quote(corrected)),
            (Some(_) | None, _) => text.to_string(),
        };
        text.map(|text| self.salted(agent, seq, whole(text), until)).transpose()
    }

    fn salted(&self, agent: &str, seq: u64, text: String, until: Option<Millis>) -> Result<KeptText, Trouble> {
        let mut salt = [0; 16];
        self.entropy.fill(&mut salt).map_err(|_| Trouble::Internal)?;
        Ok(KeptText { agent: agent.to_owned(), seq, salt, text, until })
    }

    fn malformed(
        &self,
        agent: &Agent,
        code: Code,
        message: String,
        idempotency: Option<Idempotency>,
        now: Millis,
    ) -> Result<Ruled, Trouble> {
        let error = match agent.status {
            AgentStatus::Active => RulingError { code, message, details: None },
            AgentStatus::Suspended => {
                let message = "the agent is suspended".to_owned();
                RulingError { code: Code::AgentSuspended, message, details: None }
            }
        };
        Ok(Ruled {
            decision_id: self.decision_id(agent)?,
            bundle: self.state.bundle.digest(),
            ticket: None,
            text: None,
            violation: false,
            observed: false,
            facts: None,
            evidence: None,
            figures: None,
            ruling: Ruling {
                decision: Decision::Denied,
                verification: None,
                error: Some(error),
                charge: Charge::default(),
                remaining: agent.spent.remaining(&agent.profile.budget, now),
            },
            idempotency,
            redeemed: None,
            used: None,
        })
    }

    /// The answer an earlier request with the same key got.
    fn answer_again(&mut self, agent: &str, idempotency: Idempotency) -> Result<Option<Answer>, Trouble> {
        let kept = match self.kept.get(&(agent.to_owned(), idempotency.key)) {
            Some(kept) => Some(kept.clone()),
            None => self.txn.kept(agent, idempotency.key)?,
        };
        let Some(kept) = kept.filter(|kept| kept.at.saturating_add(KEPT_MS) > self.state.clock) else {
            return Ok(None);
        };
        let found = self.needed_entry(Some(agent), kept.seq)?;
        if found.entry.body.ruled().is_none_or(|ruled| ruled.idempotency != Some(idempotency)) {
            return Ok(Some(Answer::Refused(Code::RequestKeyReused)));
        }
        let corrected = match kept.corrected {
            // A correction that somebody wrote into the store is none.
            Some(sealed) => Some(self.state.ids.open_text(&found, &sealed).ok_or(Trouble::Internal)?.to_owned()),
            None => None,
        };
        let FoundEntry { place: index, entry, bytes } = found;
        let leaf = leaf_hash(&bytes);
        Ok(Some(Answer::Recorded(Box::new(Recorded { entry, index, leaf, replayed: true, folded: None, corrected }))))
    }

    fn agent(&mut self, id: &str) -> Result<Option<Arc<Agent>>, StoreFault> {
        if let Some((agent, _)) = self.agents.get(id) {
            return Ok(agent.clone());
        }
        let agent = self.txn.agent(id)?;
        self.agents.insert(id.to_owned(), (agent.clone(), false));
        Ok(agent)
    }

    fn conversation(&mut self, key: &(String, String)) -> Result<Conversation, StoreFault> {
        if let Some((row, _)) = self.conversations.get(key) {
            return Ok(row.clone());
        }
        Ok(self.txn.conversation(&key.0, &key.1)?.unwrap_or_default())
    }

    /// An entry by its name, of this batch or before it.
    fn entry_of(&mut self, agent: Option<&str>, seq: u64) -> Result<Option<FoundEntry>, StoreFault> {
        let is_it = |(_, new): &(u64, &NewEntry)| new.name.seq == seq && new.name.agent.as_deref() == agent;
        let in_batch = (self.first_index..).zip(&self.entries).find(is_it);
        let found = match in_batch {
            Some((place, new)) => Some((place, new.bytes.clone())),
            None => self.txn.entry_of(agent, seq)?,
        };
        FoundEntry::read(agent, seq, found)
    }

    /// An entry that a row speaks of.
    fn needed_entry(&mut self, agent: Option<&str>, seq: u64) -> Result<FoundEntry, StoreFault> {
        let found = self.entry_of(agent, seq)?;
        found.ok_or_else(|| {
            let name = EntryName { agent: agent.map(str::to_owned), seq };
            StoreFault::new(format!("entry {name} is missing"))
        })
    }

    /// The id of the decision that will be the agent's next entry.
    fn decision_id(&self, agent: &Agent) -> Result<String, Trouble> {
        let mut random = [0; 8];
        self.entropy.fill(&mut random).map_err(|_| Trouble::Internal)?;
        let seq = agent.entries.saturating_add(1);
        self.state.ids.seal(&agent.profile.agent_id, seq, u64::from_be_bytes(random)).ok_or(Trouble::Internal)
    }

    fn approval_id(&self) -> Result<String, Trouble> {
        new_id("appr_", self.entropy).map_err(|_| Trouble::Internal)
    }

    fn next_index(&self) -> u64 {
        self.state.frontier.size()
    }

    /// The state and the rows after this batch; `None` if nothing changed.
    fn changes(self) -> Option<(State, Changes)> {
        if self.entries.is_empty() && self.delivered.is_empty() {
            return None;
        }
        let Batch { state, agents, conversations, heads, kept, tickets, executions, keys, runs, .. } = self;
        // Stores number tickets in this order.
        let mut tickets: Vec<Ticket> = tickets.into_values().collect();
        tickets.sort_by(|one, other| {
            (one.opened_at, &one.agent, one.opened).cmp(&(other.opened_at, &other.agent, other.opened))
        });
        let changes = Changes {
            entries: self.entries,
            agents: agents.into_values().filter_map(|(agent, changed)| agent.filter(|_| changed)).collect(),
            conversations: conversations
                .into_iter()
                .filter_map(|((agent, id), (row, changed))| changed.then_some((agent, id, row)))
                .collect(),
            heads: heads.into_iter().collect(),
            kept: kept.into_iter().map(|((agent, key), kept)| (agent, key, kept)).collect(),
            tokens: self.tokens,
            tickets,
            executions: executions.into_iter().map(|((agent, decision), report)| (agent, decision, report)).collect(),
            keys: keys.into_values().collect(),
            runs: runs.into_iter().collect(),
            workflows: self.workflows.into_values().collect(),
            texts: self.texts,
            forgotten: self.forgotten,
            erased: self.erased,
            outbox: self.outbox,
            delivered: self.delivered,
            now: state.clock,
            frontier: state.frontier.clone(),
        };
        Some((state, changes))
    }
}

/// Whether a ruling refuses a tool call: a person may want to look at it.
pub(super) fn is_refused_call(ruled: &Ruled) -> bool {
    !ruled.ruling.decision.lets_run() && ruled.facts.as_ref().is_some_and(|facts| facts.call.is_some())
}

/// What an entry says of a text that is kept beside it.
pub(super) fn digest_of_text(kept: &KeptText) -> Digest {
    Digest::of_bytes(&[kept.salt.as_slice(), kept.text.as_bytes()].concat())
}
