//! One batch: read, decide each command against what the ones before it did, write once, commit, answer.
//!
//! Nothing here knows threads, queues or files, so the simulation runs it unchanged. The overlay (rows, tree, clock)
//! becomes the writer's state only after the commit.

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use interlock_core::action::{
    Actor, Agent, AgentStatus, Breach, Charge, Conversation, Decision, Evidence, Facts, Figures, Merits, Millis, Mode,
    Profile, Ruling, RulingError, Status, Ticket, TicketRefusal, TicketSubject, Trust, Usage, Verdict, decide,
    is_violation, price_of,
};
use interlock_core::bundle::{Bundle, Payloads};
use interlock_core::json::quote;
use interlock_core::ledger::{
    AgentRegistered, ApprovalResolved, Body, BundleActivated, Entry, Executed, Frontier, Idempotency, KeyCreated,
    KeyRevoked, ModeChanged, OperatorKey, RULES, Role, Ruled, SigningKeyRotated, StateHead, StateIntent, StateOutcome,
    StatusChanged, TextsErased, TicketOpened, TokenRotated, TrustChanged, TrustRequested, UnauthenticatedRequests,
    apply_executed, apply_registered, apply_resolved, apply_ruled, apply_to_agent, apply_trust_requested, leaf_hash,
};
use interlock_core::{Code, Denial, Digest};

use super::decision_id::DecisionIds;
use super::event::event_of;
use super::store::{Changes, KEPT_MS, KeptAnswer, KeptText, Outgoing, Store, StoreFault, Txn};
use crate::clock::{Entropy, new_id};

/// What the writer is asked to do.
#[derive(Debug, Clone)]
pub enum Command {
    /// Record a new agent.
    Register {
        /// What was said about it; its time is set by the writer.
        profile: Box<Profile>,
        /// The SHA-256 of its token.
        token: Digest,
        /// How far it is trusted.
        trust: Trust,
        /// Who registers it.
        by: Actor,
    },
    /// Rule on a request.
    Rule(Box<RuleCommand>),
    /// Put a bundle into force, unless it is.
    Activate(Arc<Bundle>),
    /// Record how many requests proved no identity.
    CountUnauthenticated(UnauthenticatedRequests),
    /// Record that a state file is about to be replaced.
    BeginState(StateIntent),
    /// Record what became of that.
    EndState(StateOutcome),
    /// Record what a person decided on a ticket, if it can be decided.
    Resolve {
        /// The ticket.
        approval_id: String,
        /// Yes or no.
        verdict: Verdict,
        /// Who.
        by: Actor,
        /// Why.
        reason: Option<String>,
    },
    /// Open a ticket for more trust.
    RequestTrust(Box<TrustRequest>),
    /// Record that what was let run has run.
    Execute(Box<Execution>),
    /// Record a change of the agent itself.
    Change {
        /// The agent.
        agent: String,
        /// The change.
        change: AgentChange,
    },
    /// Remove the kept texts of an agent.
    EraseTexts {
        /// The agent.
        agent: String,
        /// Who.
        by: Actor,
        /// Why.
        reason: Option<String>,
    },
    /// Record a new key of an operator; its time is set by the writer.
    CreateKey(Box<OperatorKey>),
    /// Record that a key counts no more.
    RevokeKey(KeyRevoked),
    /// Record that attestations are signed by another key.
    RotateSigningKey(SigningKeyRotated),
    /// These events need no more delivery; nothing is recorded.
    Delivered(Vec<u64>),
}

/// What operators change about an agent.
#[derive(Debug, Clone)]
pub enum AgentChange {
    /// It is suspended or reactivated.
    Status(StatusChanged),
    /// Refusals hold for it, or are only shown.
    Mode(ModeChanged),
    /// It has another token.
    Token(TokenRotated),
}

impl From<AgentChange> for Body {
    fn from(change: AgentChange) -> Body {
        match change {
            AgentChange::Status(changed) => Body::StatusChanged(changed),
            AgentChange::Mode(changed) => Body::ModeChanged(changed),
            AgentChange::Token(rotated) => Body::TokenRotated(rotated),
        }
    }
}

/// A request for more trust.
#[derive(Debug, Clone)]
pub struct TrustRequest {
    /// The agent.
    pub agent: String,
    /// The SHA-256 of the token it came with; none if an operator asks.
    pub token: Option<Digest>,
    /// The operator who asks; none if it is the agent itself.
    pub by: Option<Actor>,
    /// The level that is asked for.
    pub to_level: Trust,
    /// The level the caller believes there is.
    pub from_level: Option<Trust>,
    /// Why, in the caller's words.
    pub justification: Option<String>,
    /// What the ledger says for and against it.
    pub merits: Merits,
}

/// What has run.
#[derive(Debug, Clone)]
pub struct Execution {
    /// The agent.
    pub agent: String,
    /// The SHA-256 of the token it came with.
    pub token: Digest,
    /// The decision that let it run.
    pub decision_id: String,
    /// Whether it succeeded.
    pub success: bool,
    /// The SHA-256 of its result.
    pub result_hash: Option<String>,
    /// What it used.
    pub usage: Usage,
}

/// A request of an agent.
#[derive(Debug, Clone)]
pub struct RuleCommand {
    /// The agent it names.
    pub agent: String,
    /// The SHA-256 of the token it came with.
    pub token: Digest,
    /// What it asks.
    pub request: Request,
    /// Under which key its answer can be asked for again.
    pub idempotency: Option<Idempotency>,
    /// The corrected text that came with the evidence.
    pub corrected: Option<String>,
    /// The text of the request, in case it is to be kept.
    pub text: Option<Arc<str>>,
}

/// What a request asks.
#[derive(Debug, Clone)]
pub enum Request {
    /// A well-formed question.
    Facts {
        /// What the edge read.
        facts: Box<Facts>,
        /// What verifiers found, if they ran.
        evidence: Option<Evidence>,
    },
    /// Something that cannot be asked.
    Malformed {
        /// Why.
        code: Code,
        /// In words.
        message: String,
    },
}

/// What became of a command.
#[derive(Debug, Clone)]
pub enum Answer {
    /// It is on record.
    Recorded(Box<Recorded>),
    /// The text has to be read first, under this bundle.
    NeedsEvidence(Arc<Bundle>),
    /// A state file may not be replaced now.
    Blocked(Box<Denial>),
    /// Refused without an entry: unknown agent, wrong token, key used for another request.
    Refused(Code),
    /// A ticket cannot be approved: the budget is spent. It stays as it is.
    BudgetSpent(Box<Breach>),
    /// Done, and nothing had to be recorded.
    Done,
    /// Our trouble. Nothing is approved.
    Fault(Code),
}

/// A recorded entry.
#[derive(Debug, Clone)]
pub struct Recorded {
    /// The entry.
    pub entry: Entry,
    /// Where it stands in the ledger.
    pub index: u64,
    /// The hash of its bytes.
    pub leaf: Digest,
    /// It was recorded by an earlier request with the same key.
    pub replayed: bool,
    /// The corrected text, if the decision is CORRECTED.
    pub corrected: Option<String>,
}

/// What the writer knows between batches.
#[derive(Debug, Clone)]
pub struct State {
    /// The tree.
    pub frontier: Frontier,
    /// The time of the last entry.
    pub clock: Millis,
    /// The bundle in force.
    pub bundle: Arc<Bundle>,
    /// How ids of decisions are made.
    pub ids: DecisionIds,
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
        texts: Vec::new(),
        forgotten: Vec::new(),
        erased: Vec::new(),
        outbox: Vec::new(),
        delivered: Vec::new(),
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
    let Some((after, changes)) = batch.changes() else { return Ok((answers, Published::default())) };
    let published = Published {
        agents: changes.agents.clone(),
        keys: changes.keys.clone(),
        tickets: changes.tickets.iter().map(|ticket| ticket.approval_id.clone()).collect(),
        events: !changes.outbox.is_empty(),
    };
    txn.write(&changes)?;
    txn.commit(changes)?;
    *state = after;
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
    executions: BTreeMap<u64, u64>,
    keys: BTreeMap<String, OperatorKey>,
    texts: Vec<KeptText>,
    forgotten: Vec<(String, u64)>,
    erased: Vec<String>,
    outbox: Vec<Outgoing>,
    delivered: Vec<u64>,
    entries: Vec<Vec<u8>>,
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
                let recorded = self.append(Entry::new(None, self.state.clock, body))?;
                self.state.bundle = bundle;
                Ok(recorded)
            }
            Command::BeginState(intent) => self.begin_state(intent),
            Command::EndState(outcome) => {
                let mut head = self.head(&outcome.path)?;
                head.end(&outcome);
                let path = outcome.path.clone();
                let answer = self.append(Entry::new(None, self.state.clock, Body::StateOutcome(outcome)))?;
                self.heads.insert(path, head);
                Ok(answer)
            }
            Command::CountUnauthenticated(counts) => {
                self.append(Entry::new(None, self.state.clock, Body::Unauthenticated(counts)))
            }
            Command::Resolve { approval_id, verdict, by, reason } => self.resolve(&approval_id, verdict, by, reason),
            Command::RequestTrust(request) => self.request_trust(*request),
            Command::Execute(execution) => self.execute(*execution),
            Command::Change { agent, change } => self.change(&agent, change.into()),
            Command::EraseTexts { agent, by, reason } => self.erase_texts(&agent, by, reason),
            Command::CreateKey(key) => self.create_key(*key),
            Command::RevokeKey(revoked) => self.revoke_key(revoked),
            Command::RotateSigningKey(rotated) => {
                self.append(Entry::new(None, self.state.clock, Body::SigningKeyRotated(rotated)))
            }
            Command::Delivered(ids) => {
                self.delivered.extend(ids);
                Ok(Answer::Done)
            }
        }
    }

    /// Whether an operator's key still counts: it may have been revoked since the edge looked.
    fn may(&mut self, by: &Actor, roles: &[Role]) -> Result<bool, StoreFault> {
        let Some(id) = &by.key_id else { return Ok(true) };
        Ok(self.operator_key(id)?.is_some_and(|key| !key.revoked && roles.contains(&key.role)))
    }

    fn begin_state(&mut self, mut intent: StateIntent) -> Result<Answer, Trouble> {
        let mut head = self.head(&intent.path)?;
        if let Err(denial) = head.check(intent.current) {
            return Ok(Answer::Blocked(Box::new(denial)));
        }
        intent.first = head.committed.is_none();
        head.begin(&intent, self.next_index());
        let path = intent.path.clone();
        let answer = self.append(Entry::new(None, self.state.clock, Body::StateIntent(intent)))?;
        self.heads.insert(path, head);
        Ok(answer)
    }

    fn head(&mut self, path: &str) -> Result<StateHead, StoreFault> {
        match self.heads.get(path) {
            Some(head) => Ok(head.clone()),
            None => Ok(self.txn.head(path)?.unwrap_or_default()),
        }
    }

    fn register(&mut self, mut profile: Profile, token: Digest, trust: Trust) -> Result<Answer, Trouble> {
        profile.created_at = self.state.clock;
        let id = profile.agent_id.clone();
        if self.agent(&id)?.is_some() {
            return Err(Trouble::Internal);
        }
        let registered = AgentRegistered { profile, token, trust_level: trust };
        let agent = apply_registered(&registered, self.next_index());
        let entry = Entry::new(Some((&id, 1, None)), self.state.clock, Body::Registered(Box::new(registered)));
        let answer = self.append(entry)?;
        self.tokens.push((token, id.clone()));
        self.agents.insert(id, (Some(Arc::new(agent)), true));
        Ok(answer)
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
                    decision_id: self.decision_id()?,
                    bundle: bundle.digest(),
                    violation: is_violation(bundle, &agent, &facts, evidence.as_ref(), &ruling),
                    observed: self.is_observed(&agent, &ruling),
                    ticket: self.ticket_of(&facts, &ruling, now)?,
                    text: None,
                    facts: None,
                    evidence,
                    figures,
                    ruling,
                    idempotency,
                };
                ruled.facts = Some(*facts);
                (ruled, Some((key, conversation)))
            }
        };
        let mut ruled = ruled;
        // A corrected form counts only where the ruling rests on it: beside what nobody read it proves nothing.
        let status = ruled.ruling.verification.as_ref().map(|verification| verification.status);
        let rests_on_it = ruled.ruling.decision.consumes_step() && status == Some(Status::Corrected);
        let corrected = corrected.filter(|_| rests_on_it);
        let index = self.next_index();
        let kept_text = self.keep_text(&id, &ruled, text, corrected.as_deref(), index)?;
        ruled.text = kept_text.as_ref().map(digest_of_text);
        let mut agent = Agent::clone(&agent);
        let (key, mut row) = conversation.map_or((None, Conversation::default()), |(key, row)| (Some(key), row));
        let mut chain = Chain::new(&agent);
        let consequences = apply_ruled(&mut agent, &mut row, &ruled, RULES, now, index);
        let first = chain.entry(&id, now, Body::Ruled(Box::new(ruled)));
        let events = self.events(&agent, &first, now, index);
        let (mut entries, mut outbox) = (vec![first], events);
        if let Some(changed) = consequences.trust {
            self.follow_trust(&mut agent, &mut chain, changed, now, &mut entries, &mut outbox);
        }
        let mut answer = self.append_all(entries)?;
        // From here on nothing fails: rows and entries go together.
        self.agents.insert(id.clone(), (Some(Arc::new(agent)), true));
        if let Some(key) = key {
            let changed = consequences.took_step || self.conversations.get(&key).is_some_and(|(_, changed)| *changed);
            self.conversations.insert(key, (row, changed));
        }
        if let Some(Idempotency { key, .. }) = idempotency {
            self.kept.insert((id, key), KeptAnswer { index, at: now, corrected: corrected.clone() });
        }
        self.tickets.extend(consequences.ticket.map(|ticket| (ticket.approval_id.clone(), ticket)));
        self.texts.extend(kept_text);
        self.outbox.extend(outbox);
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

    /// Observe mode covers rulings alone: who may not ask at all is refused in any mode.
    fn is_observed(&self, agent: &Agent, ruling: &Ruling) -> bool {
        let observes = agent.mode == Mode::Observe || self.state.bundle.mode() == Mode::Observe;
        observes && ruling.error.as_ref().is_none_or(|error| error.code != Code::AgentSuspended)
    }

    /// The text of a request, if it is to be kept.
    fn keep_text(
        &self,
        agent: &str,
        ruled: &Ruled,
        text: Option<Arc<str>>,
        corrected: Option<&str>,
        index: u64,
    ) -> Result<Option<KeptText>, Trouble> {
        let until = match (self.state.bundle.payloads(), &ruled.ticket) {
            (Payloads::None, _) | (Payloads::Pending, None) => return Ok(None),
            (Payloads::Pending, Some(ticket)) => Some(ticket.expires_at),
            (Payloads::All, _) => None,
        };
        let whole = |text: Arc<str>| match (text.strip_suffix('}'), corrected) {
            // What may run is the corrected form, so whoever decides has to see it.
            (Some(open), Some(corrected)) => format!("{open},\"corrected\":{}}}", quote(corrected)),
            (Some(_) | None, _) => text.to_string(),
        };
        text.map(|text| self.salted(agent, index, whole(text), until)).transpose()
    }

    fn salted(&self, agent: &str, index: u64, text: String, until: Option<Millis>) -> Result<KeptText, Trouble> {
        let mut salt = [0; 16];
        self.entropy.fill(&mut salt).map_err(|_| Trouble::Internal)?;
        Ok(KeptText { agent: agent.to_owned(), index, salt, text, until })
    }

    /// The event of an entry, if its agent's principal wants to be told.
    fn events(&self, agent: &Agent, entry: &Entry, at: Millis, index: u64) -> Vec<Outgoing> {
        if !self.state.bundle.principals().contains_key(&agent.profile.principal_id) {
            return Vec::new();
        }
        event_of(self.state.ids, agent, &entry.body, at, index).into_iter().collect()
    }

    /// The entry by which trust changes, right after the one that made it change.
    fn follow_trust(
        &self,
        agent: &mut Agent,
        chain: &mut Chain,
        changed: TrustChanged,
        now: Millis,
        entries: &mut Vec<Entry>,
        outbox: &mut Vec<Outgoing>,
    ) {
        let index = self.next_index().saturating_add(u64::try_from(entries.len()).unwrap_or(u64::MAX));
        let id = agent.profile.agent_id.clone();
        chain.went_on(index.saturating_sub(1));
        let entry = chain.entry(&id, now, Body::TrustChanged(changed));
        apply_to_agent(agent, &entry.body, now, index);
        outbox.extend(self.events(agent, &entry, now, index));
        entries.push(entry);
    }

    fn resolve(
        &mut self,
        approval_id: &str,
        verdict: Verdict,
        by: Actor,
        reason: Option<String>,
    ) -> Result<Answer, Trouble> {
        let Some(mut ticket) = self.ticket(approval_id)? else { return Ok(Answer::Refused(Code::ApprovalUnknown)) };
        let id = ticket.agent.clone();
        let Some(agent) = self.agent(&id)? else { return Err(Trouble::Internal) };
        let now = self.state.clock.max(agent.last_at);
        let bundle = &self.state.bundle;
        if let Err(refusal) = ticket.check_decidable(verdict, &agent, bundle.digest(), now) {
            return Ok(refused(refusal));
        }
        let charge = match (&ticket.subject, verdict) {
            (TicketSubject::Action(action), Verdict::Approved) => action.charge,
            (TicketSubject::Action(_) | TicketSubject::Trust(_), _) => Charge::default(),
        };
        let expires_at = match verdict {
            Verdict::Approved => now.saturating_add(bundle.ticket_expiry_ms()),
            Verdict::Denied => ticket.expires_at,
        };
        let (approval_id, opened) = (ticket.approval_id.clone(), ticket.opened);
        let resolved = ApprovalResolved { approval_id, opened, verdict, by, reason, expires_at, charge };
        let key = match &ticket.subject {
            TicketSubject::Action(action) => Some((id.clone(), action.conversation.clone())),
            TicketSubject::Trust(_) => None,
        };
        let mut row = match &key {
            Some(key) => self.conversation(key)?,
            None => Conversation::default(),
        };
        let (mut agent, index) = (Agent::clone(&agent), self.next_index());
        let mut chain = Chain::new(&agent);
        let risen = apply_resolved(&mut agent, &mut row, &mut ticket, &resolved, now, index);
        let first = chain.entry(&id, now, Body::ApprovalResolved(Box::new(resolved)));
        let events = self.events(&agent, &first, now, index);
        let (mut entries, mut outbox) = (vec![first], events);
        if let Some(changed) = risen {
            self.follow_trust(&mut agent, &mut chain, changed, now, &mut entries, &mut outbox);
        }
        let answer = self.append_all(entries)?;
        self.agents.insert(id.clone(), (Some(Arc::new(agent)), true));
        if let Some(key) = key.filter(|_| verdict == Verdict::Approved) {
            self.conversations.insert(key, (row, true));
        }
        self.forgotten.push((id, ticket.opened));
        self.tickets.insert(ticket.approval_id.clone(), ticket);
        self.outbox.extend(outbox);
        Ok(answer)
    }

    fn request_trust(&mut self, request: TrustRequest) -> Result<Answer, Trouble> {
        let TrustRequest { agent: id, token, by, to_level, from_level, justification, merits } = request;
        let Some(agent) = self.agent(&id)? else { return Ok(Answer::Refused(Code::AgentUnknown)) };
        if token.is_some_and(|token| !agent.has_token(token)) || (token.is_none() && by.is_none()) {
            return Ok(Answer::Refused(Code::AgentToken));
        }
        if agent.status == AgentStatus::Suspended {
            return Ok(Answer::Refused(Code::AgentSuspended));
        }
        let now = self.state.clock.max(agent.last_at);
        if to_level <= agent.trust || from_level.is_some_and(|level| level != agent.trust) {
            return Ok(Answer::Refused(Code::ApprovalStale));
        }
        let bundle = Arc::clone(&self.state.bundle);
        if agent.waits_for_trust(now) || agent.open_count(now) >= bundle.open_tickets_max() {
            return Ok(Answer::Refused(Code::ApprovalsOpen));
        }
        let (index, expires_at) = (self.next_index(), now.saturating_add(bundle.ticket_expiry_ms()));
        let until = match bundle.payloads() {
            Payloads::None => None,
            Payloads::Pending => Some(Some(expires_at)),
            Payloads::All => Some(None),
        };
        let kept = justification.zip(until).map(|(text, until)| self.salted(&id, index, text, until)).transpose()?;
        let requested = TrustRequested {
            approval_id: self.approval_id()?,
            expires_at,
            bundle: bundle.digest(),
            from_level: agent.trust,
            to_level,
            merits,
            text: kept.as_ref().map(digest_of_text),
            by,
        };
        let mut agent = Agent::clone(&agent);
        let mut chain = Chain::new(&agent);
        let ticket = apply_trust_requested(&mut agent, &requested, now, index);
        let entry = chain.entry(&id, now, Body::TrustRequested(Box::new(requested)));
        let outbox = self.events(&agent, &entry, now, index);
        let answer = self.append(entry)?;
        self.agents.insert(id, (Some(Arc::new(agent)), true));
        self.tickets.insert(ticket.approval_id.clone(), ticket);
        self.texts.extend(kept);
        self.outbox.extend(outbox);
        Ok(answer)
    }

    fn execute(&mut self, execution: Execution) -> Result<Answer, Trouble> {
        let Execution { agent: id, token, decision_id, success, result_hash, usage } = execution;
        let Some(agent) = self.agent(&id)? else { return Ok(Answer::Refused(Code::AgentUnknown)) };
        if !agent.has_token(token) {
            return Ok(Answer::Refused(Code::AgentToken));
        }
        if agent.status == AgentStatus::Suspended {
            return Ok(Answer::Refused(Code::AgentSuspended));
        }
        let Some((decision, ruled)) = self.find_ruling(&id, &decision_id)? else {
            return Ok(Answer::Refused(Code::ExecutionUnknown));
        };
        let reported = match self.executions.get(&decision) {
            Some(_) => true,
            None => self.txn.execution(decision)?.is_some(),
        };
        if reported {
            return Ok(Answer::Refused(Code::ExecutionReported));
        }
        let now = self.state.clock.max(agent.last_at);
        let dry_run = ruled.facts.as_ref().is_none_or(|facts| facts.dry_run);
        let ticket = match &ruled.ticket {
            // Without its row nobody can tell whether it was approved.
            Some(opened) => Some(self.ticket(&opened.approval_id)?.ok_or(Trouble::Internal)?),
            None => None,
        };
        let undecided = ticket.as_ref().is_some_and(|ticket| ticket.resolution.is_none());
        let (mut ticket, charged) = match (&ruled.ticket, ticket) {
            // In observe mode a refused call may have run all the same; saying so is welcome and spends nothing.
            _ if ruled.observed && !dry_run && (undecided || !ruled.ruling.decision.consumes_step()) => {
                (None, Charge::default())
            }
            (Some(opened), ticket) => (ticket, opened.charge),
            (None, _) if ruled.ruling.decision.lets_run() && !dry_run => (None, ruled.ruling.charge),
            (None, _) => return Ok(Answer::Refused(Code::ExecutionNotAllowed)),
        };
        if let Some(ticket) = &ticket
            && let Err(refusal) = ticket.check_spendable(&agent, self.state.bundle.digest(), now)
        {
            return Ok(refused(refusal));
        }
        let executed = Executed {
            decision_id,
            decision,
            approval_id: ticket.as_ref().map(|ticket| ticket.approval_id.clone()),
            success,
            result_hash,
            usage,
            charge: charged.raised_by(usage),
        };
        let (mut agent, index) = (Agent::clone(&agent), self.next_index());
        let mut chain = Chain::new(&agent);
        apply_executed(&mut agent, ticket.as_mut(), &executed, now, index);
        let entry = chain.entry(&id, now, Body::Executed(Box::new(executed)));
        let answer = self.append(entry)?;
        self.agents.insert(id, (Some(Arc::new(agent)), true));
        self.executions.insert(decision, index);
        self.tickets.extend(ticket.map(|ticket| (ticket.approval_id.clone(), ticket)));
        Ok(answer)
    }

    /// A ruling of an agent by its id.
    fn find_ruling(&mut self, agent: &str, decision_id: &str) -> Result<Option<(u64, Ruled)>, Trouble> {
        let Some(index) = self.state.ids.open(decision_id).filter(|index| *index < self.next_index()) else {
            return Ok(None);
        };
        let entry = match self.entry_bytes(index)? {
            Some(bytes) => Entry::from_bytes(&bytes).map_err(|error| StoreFault(error.to_string()))?,
            None => return Ok(None),
        };
        let own = entry.agent.as_deref() == Some(agent);
        let ruled = entry.body.into_ruled().filter(|ruled| own && ruled.decision_id == decision_id);
        Ok(ruled.map(|ruled| (index, ruled)))
    }

    fn change(&mut self, id: &str, change: Body) -> Result<Answer, Trouble> {
        let Some(agent) = self.agent(id)? else { return Ok(Answer::Refused(Code::AgentUnknown)) };
        let now = self.state.clock.max(agent.last_at);
        let (mut agent, index) = (Agent::clone(&agent), self.next_index());
        let mut chain = Chain::new(&agent);
        apply_to_agent(&mut agent, &change, now, index);
        let entry = chain.entry(id, now, change);
        let outbox = self.events(&agent, &entry, now, index);
        let answer = self.append(entry)?;
        if let Answer::Recorded(recorded) = &answer
            && let Body::TokenRotated(rotated) = &recorded.entry.body
        {
            self.tokens.push((rotated.token, id.to_owned()));
        }
        self.agents.insert(id.to_owned(), (Some(Arc::new(agent)), true));
        self.outbox.extend(outbox);
        Ok(answer)
    }

    fn erase_texts(&mut self, id: &str, by: Actor, reason: Option<String>) -> Result<Answer, Trouble> {
        let in_batch = self.texts.iter().filter(|text| text.agent == id).count();
        let stored = if self.erased.iter().any(|erased| erased == id) { 0 } else { self.txn.texts_count(id)? };
        let texts = stored.saturating_add(u64::try_from(in_batch).unwrap_or(0));
        let answer = self.change(id, Body::TextsErased(TextsErased { texts, by, reason }))?;
        if matches!(answer, Answer::Recorded(_)) {
            self.texts.retain(|text| text.agent != id);
            for ((agent, _), kept) in &mut self.kept {
                if agent == id {
                    kept.corrected = None;
                }
            }
            self.erased.push(id.to_owned());
        }
        Ok(answer)
    }

    fn create_key(&mut self, mut key: OperatorKey) -> Result<Answer, Trouble> {
        key.created_at = self.state.clock;
        if self.operator_key(&key.key_id)?.is_some() {
            return Err(Trouble::Internal);
        }
        let body = Body::KeyCreated(KeyCreated { key: key.clone() });
        let answer = self.append(Entry::new(None, self.state.clock, body))?;
        self.keys.insert(key.key_id.clone(), key);
        Ok(answer)
    }

    fn revoke_key(&mut self, revoked: KeyRevoked) -> Result<Answer, Trouble> {
        let Some(mut key) = self.operator_key(&revoked.key_id)?.filter(|key| !key.revoked) else {
            return Ok(Answer::Refused(Code::OperatorKeyUnknown));
        };
        let answer = self.append(Entry::new(None, self.state.clock, Body::KeyRevoked(revoked)))?;
        key.revoked = true;
        self.keys.insert(key.key_id.clone(), key);
        Ok(answer)
    }

    fn operator_key(&mut self, id: &str) -> Result<Option<OperatorKey>, StoreFault> {
        match self.keys.get(id) {
            Some(key) => Ok(Some(key.clone())),
            None => self.txn.key(id),
        }
    }

    fn ticket(&mut self, id: &str) -> Result<Option<Ticket>, StoreFault> {
        match self.tickets.get(id) {
            Some(ticket) => Ok(Some(ticket.clone())),
            None => self.txn.ticket(id),
        }
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
            decision_id: self.decision_id()?,
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
        let bytes = self.entry_bytes(kept.index)?;
        let bytes = bytes.ok_or_else(|| StoreFault(format!("entry {} is missing", kept.index)))?;
        let entry = Entry::from_bytes(&bytes).map_err(|error| StoreFault(error.to_string()))?;
        let same = entry.body.ruled().is_some_and(|ruled| ruled.idempotency == Some(idempotency));
        if !same {
            return Ok(Some(Answer::Refused(Code::RequestKeyReused)));
        }
        let (index, leaf, corrected) = (kept.index, leaf_hash(&bytes), kept.corrected);
        Ok(Some(Answer::Recorded(Box::new(Recorded { entry, index, leaf, replayed: true, corrected }))))
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

    /// The bytes of an entry, of this batch or before it.
    fn entry_bytes(&mut self, index: u64) -> Result<Option<Vec<u8>>, StoreFault> {
        let in_batch = index.checked_sub(self.first_index).and_then(|at| usize::try_from(at).ok());
        match in_batch {
            Some(at) => Ok(self.entries.get(at).cloned()),
            None => self.txn.entry(index),
        }
    }

    /// The id of the decision that will be the next entry.
    fn decision_id(&self) -> Result<String, Trouble> {
        let mut random = [0; 8];
        self.entropy.fill(&mut random).map_err(|_| Trouble::Internal)?;
        Ok(self.state.ids.seal(self.next_index(), u64::from_be_bytes(random)))
    }

    fn approval_id(&self) -> Result<String, Trouble> {
        new_id("appr_", self.entropy).map_err(|_| Trouble::Internal)
    }

    fn next_index(&self) -> u64 {
        self.state.frontier.size()
    }

    fn append(&mut self, entry: Entry) -> Result<Answer, Trouble> {
        let bytes = entry.to_bytes().map_err(|_| Trouble::Internal)?;
        let (index, leaf) = self.push(bytes, entry.at);
        Ok(Answer::Recorded(Box::new(Recorded { entry, index, leaf, replayed: false, corrected: None })))
    }

    /// Appends entries that belong together; the answer is about the first. Nothing is appended unless all can be.
    fn append_all(&mut self, entries: Vec<Entry>) -> Result<Answer, Trouble> {
        let mut entries = entries.into_iter();
        let first = entries.next().ok_or(Trouble::Internal)?;
        let rest: Result<Vec<_>, _> = entries.map(|entry| entry.to_bytes().map(|bytes| (bytes, entry.at))).collect();
        let rest = rest.map_err(|_| Trouble::Internal)?;
        let answer = self.append(first)?;
        for (bytes, at) in rest {
            self.push(bytes, at);
        }
        Ok(answer)
    }

    fn push(&mut self, bytes: Vec<u8>, at: Millis) -> (u64, Digest) {
        let (leaf, index) = (leaf_hash(&bytes), self.next_index());
        self.state.frontier.append(leaf);
        self.state.clock = self.state.clock.max(at);
        self.entries.push(bytes);
        (index, leaf)
    }

    /// The state and the rows after this batch; `None` if nothing changed.
    fn changes(self) -> Option<(State, Changes)> {
        if self.entries.is_empty() && self.delivered.is_empty() {
            return None;
        }
        let Batch { state, agents, conversations, heads, kept, tickets, executions, keys, .. } = self;
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
            tickets: tickets.into_values().collect(),
            executions: executions.into_iter().collect(),
            keys: keys.into_values().collect(),
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

/// Who asks for a command that needs an operator's key, and which keys will do.
fn operator_of(command: &Command) -> Option<(&Actor, &'static [Role])> {
    match command {
        Command::Register { by, .. } => Some((by, &[Role::Registrar, Role::Admin])),
        Command::Resolve { by, .. } => Some((by, &[Role::Approver, Role::Admin])),
        Command::RequestTrust(request) => request.by.as_ref().map(|by| (by, &[Role::Admin][..])),
        Command::Change { change: AgentChange::Status(StatusChanged { by, .. }), .. }
        | Command::Change { change: AgentChange::Mode(ModeChanged { by, .. }), .. }
        | Command::Change { change: AgentChange::Token(TokenRotated { by, .. }), .. }
        | Command::EraseTexts { by, .. }
        | Command::RevokeKey(KeyRevoked { by, .. })
        | Command::RotateSigningKey(SigningKeyRotated { by, .. }) => Some((by, &[Role::Admin])),
        Command::CreateKey(key) => Some((&key.created_by, &[Role::Admin])),
        Command::Rule(_)
        | Command::Activate(_)
        | Command::CountUnauthenticated(_)
        | Command::BeginState(_)
        | Command::EndState(_)
        | Command::Execute(_)
        | Command::Delivered(_) => None,
    }
}

/// Where in its agent's chain of entries the next one stands.
struct Chain {
    next: u64,
    previous: u64,
}

impl Chain {
    fn new(agent: &Agent) -> Chain {
        Chain { next: agent.entries.saturating_add(1), previous: agent.last_index }
    }

    fn entry(&mut self, agent: &str, at: Millis, body: Body) -> Entry {
        let entry = Entry::new(Some((agent, self.next, Some(self.previous))), at, body);
        self.next = self.next.saturating_add(1);
        entry
    }

    /// The last entry got this index.
    fn went_on(&mut self, index: u64) {
        self.previous = index;
    }
}

fn refused(refusal: TicketRefusal) -> Answer {
    match refusal {
        TicketRefusal::Code(code) => Answer::Refused(code),
        TicketRefusal::Budget(breach) => Answer::BudgetSpent(breach),
    }
}

/// What an entry says of a text that is kept beside it.
pub(super) fn digest_of_text(kept: &KeptText) -> Digest {
    Digest::of_bytes(&[kept.salt.as_slice(), kept.text.as_bytes()].concat())
}
