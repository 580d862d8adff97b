//! One batch: read, decide each command against what the ones before it did, write once, commit, answer.
//!
//! Nothing here knows threads, queues or files, so the simulation runs it unchanged. The overlay (rows, tree, clock)
//! becomes the writer's state only after the commit.

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use interlock_core::action::{
    Agent, AgentStatus, Charge, Conversation, Decision, Evidence, Facts, Figures, Millis, Profile, Ruling, RulingError,
    Trust, decide,
};
use interlock_core::bundle::Bundle;
use interlock_core::ledger::{
    AgentRegistered, Body, BundleActivated, Entry, Frontier, Idempotency, Ruled, StateHead, StateIntent, StateOutcome,
    UnauthenticatedRequests, apply_registered, apply_ruled, leaf_hash,
};
use interlock_core::{Code, Denial, Digest};

use super::store::{Changes, KEPT_MS, KeptAnswer, Store, StoreFault, Txn};
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
}

/// Runs one batch. On an error nothing of it may be answered as recorded, and the state must be read again.
pub fn run_batch<S: Store + ?Sized>(
    store: &mut S,
    state: &mut State,
    commands: Vec<Command>,
    now: Millis,
    entropy: &dyn Entropy,
) -> Result<(Vec<Answer>, Vec<Arc<Agent>>), StoreFault> {
    let mut txn = store.begin()?;
    let mut batch = Batch {
        txn: txn.as_mut(),
        entropy,
        state: State { clock: state.clock.max(now), ..state.clone() },
        agents: BTreeMap::new(),
        conversations: BTreeMap::new(),
        heads: BTreeMap::new(),
        kept: BTreeMap::new(),
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
    let Batch { state: after, agents, conversations, heads, kept, entries, .. } = batch;
    if entries.is_empty() {
        return Ok((answers, Vec::new()));
    }
    let changes = Changes {
        entries,
        agents: agents.into_values().filter_map(|(agent, changed)| agent.filter(|_| changed)).collect(),
        conversations: conversations
            .into_iter()
            .filter_map(|((agent, id), (row, changed))| changed.then_some((agent, id, row)))
            .collect(),
        heads: heads.into_iter().collect(),
        kept: kept.into_iter().map(|((agent, key), kept)| (agent, key, kept)).collect(),
        frontier: after.frontier.clone(),
    };
    let agents = changes.agents.clone();
    txn.write(&changes)?;
    txn.commit(changes)?;
    *state = after;
    Ok((answers, agents))
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
        match command {
            Command::Register { profile, token, trust } => self.register(*profile, token, trust),
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
        }
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
        self.agents.insert(id, (Some(Arc::new(agent)), true));
        Ok(answer)
    }

    fn rule(&mut self, command: RuleCommand) -> Result<Answer, Trouble> {
        let RuleCommand { agent: id, token, request, idempotency, corrected } = command;
        let Some(agent) = self.agent(&id)? else { return Ok(Answer::Refused(Code::AgentUnknown)) };
        if !agent.has_token(token) {
            return Ok(Answer::Refused(Code::AgentToken));
        }
        // A suspended agent gets no old approval either.
        if let Some(idempotency) = idempotency.filter(|_| agent.status == AgentStatus::Active)
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
                let (decision_id, bundle) = (self.decision_id()?, bundle.digest());
                let facts = Some(*facts);
                (
                    Ruled { decision_id, bundle, facts, evidence, figures, ruling, idempotency },
                    Some((key, conversation)),
                )
            }
        };
        let corrected = corrected.filter(|_| ruled.ruling.decision == Decision::Corrected);
        let index = self.next_index();
        let mut agent = Agent::clone(&agent);
        let (key, mut row) = conversation.map_or((None, Conversation::default()), |(key, row)| (Some(key), row));
        let before = row.clone();
        let entry_of = (agent.entries.saturating_add(1), Some(agent.last_index));
        apply_ruled(&mut agent, &mut row, &ruled, now, index);
        let entry = Entry::new(Some((&id, entry_of.0, entry_of.1)), now, Body::Ruled(Box::new(ruled)));
        let mut answer = self.append(entry)?;
        // From here on nothing fails: rows and entry go together.
        self.agents.insert(id.clone(), (Some(Arc::new(agent)), true));
        if let Some(key) = key {
            let changed = row != before || self.conversations.get(&key).is_some_and(|(_, changed)| *changed);
            self.conversations.insert(key, (row, changed));
        }
        if let Some(Idempotency { key, .. }) = idempotency {
            self.kept.insert((id, key), KeptAnswer { index, at: now, corrected: corrected.clone() });
        }
        if let Answer::Recorded(recorded) = &mut answer {
            recorded.corrected = corrected;
        }
        Ok(answer)
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
        let in_batch = kept.index.checked_sub(self.first_index).and_then(|at| usize::try_from(at).ok());
        let bytes = match in_batch.and_then(|at| self.entries.get(at)) {
            Some(bytes) => Some(bytes.clone()),
            None => self.txn.entry(kept.index)?,
        };
        let bytes = bytes.ok_or_else(|| StoreFault(format!("entry {} is missing", kept.index)))?;
        let entry = Entry::from_bytes(&bytes).map_err(|error| StoreFault(error.to_string()))?;
        let same = match &entry.body {
            Body::Ruled(ruled) => ruled.idempotency == Some(idempotency),
            Body::Registered(_)
            | Body::BundleActivated(_)
            | Body::Unauthenticated(_)
            | Body::StateIntent(_)
            | Body::StateOutcome(_) => false,
        };
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
        let agent = self.txn.agent(id)?.map(Arc::new);
        self.agents.insert(id.to_owned(), (agent.clone(), false));
        Ok(agent)
    }

    fn conversation(&mut self, key: &(String, String)) -> Result<Conversation, StoreFault> {
        if let Some((row, _)) = self.conversations.get(key) {
            return Ok(row.clone());
        }
        Ok(self.txn.conversation(&key.0, &key.1)?.unwrap_or_default())
    }

    fn decision_id(&self) -> Result<String, Trouble> {
        new_id("dec_", self.entropy).map_err(|_| Trouble::Internal)
    }

    fn next_index(&self) -> u64 {
        self.state.frontier.size()
    }

    fn append(&mut self, entry: Entry) -> Result<Answer, Trouble> {
        let bytes = entry.to_bytes().map_err(|_| Trouble::Internal)?;
        let (leaf, index) = (leaf_hash(&bytes), self.next_index());
        self.state.frontier.append(leaf);
        self.state.clock = self.state.clock.max(entry.at);
        self.entries.push(bytes);
        Ok(Answer::Recorded(Box::new(Recorded { entry, index, leaf, replayed: false, corrected: None })))
    }
}
