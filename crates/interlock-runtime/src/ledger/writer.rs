//! The writer: one thread, one queue, one store. It drains the queue, runs the batch, and answers after the commit.

use std::collections::{BTreeSet, HashMap};
use std::io::{self, Write};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, TrySendError, sync_channel};
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use interlock_core::action::{Agent, Merits, Millis, Ticket};
use interlock_core::bundle::Bundle;
use interlock_core::ledger::{
    Entry, EntryName, MeritsCount, OpenIntent, OperatorKey, UnauthenticatedRequests, WorkflowHead, leaf_hash,
};
use interlock_core::workflow::Run;
use interlock_core::{Code, Digest};

use super::audit::is_text_of;
use super::batch::{Answer, Command, Published, Recorded, State, run_batch};
use super::checkpoint::{CheckpointFile, SignedCheckpoint};
use super::decision_id::{DecisionIds, mark_of};
use super::outbox::{Parcel, Turn, next_parcel};
use super::recovery::{CLOCK_BEHIND_MAX_MS, RecoveryFault, recover};
use super::store::{FoundEntry, KeptText, Left, Reader, Store, StoreFault, TicketQuery, find_entry};
use crate::clock::{Clock, Entropy};

/// How many commands may wait; more are refused.
pub const QUEUE_LEN: usize = 4096;
/// How many commands one transaction takes: while it is decided, those who are answered from the one before it ask again,
/// and no processor stands still.
const BATCH_LEN: usize = 128;
/// The same if the disk takes so many times longer than all the rest: then the fewer transactions, the better.
const BATCH_LEN_MAX: usize = 512;
const SLOW_DISK: u32 = 4;
/// A checkpoint is written at most this often.
const CHECKPOINT_INTERVAL: Duration = Duration::from_secs(1);
/// Unauthenticated requests are counted in one entry this often.
const NOISE_INTERVAL: Duration = Duration::from_secs(60);
/// How many agents are remembered for reading.
const AGENTS_LEN: usize = 50_000;

/// What the writer stands on.
pub struct Ports {
    /// Where it records.
    pub store: Box<dyn Store>,
    /// Tells the time.
    pub clock: Arc<dyn Clock>,
    /// Draws ids.
    pub entropy: Arc<dyn Entropy>,
    /// The file beside the store; a store in memory has none.
    pub checkpoint: Option<CheckpointFile>,
}

impl std::fmt::Debug for Ports {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Ports").finish_non_exhaustive()
    }
}

/// What the writer counts.
#[derive(Debug, Default)]
pub struct LedgerMetrics {
    /// Commands waiting or in a batch.
    pub waiting: AtomicU64,
    /// Batches committed.
    pub batches: AtomicU64,
    /// Commands answered from committed batches.
    pub commands: AtomicU64,
    /// Microseconds spent in batches, commit included.
    pub batch_micros: AtomicU64,
    /// Microseconds of them in commits, which is writing to the disk and waiting for it.
    pub commit_micros: AtomicU64,
    /// Batches that failed.
    pub faults: AtomicU64,
    /// Commands refused because the queue was full.
    pub refused: AtomicU64,
}

/// Why a ledger could not be stopped cleanly.
#[derive(Debug, thiserror::Error)]
pub enum StopFault {
    /// The writer died.
    #[error("the writer died")]
    Died,
    /// The last checkpoint could not be written.
    #[error("the checkpoint could not be written: {0}")]
    Checkpoint(#[source] io::Error),
}

type Reply = Box<dyn FnOnce(Answer) + Send>;

struct Job {
    command: Command,
    reply: Reply,
}

/// A handle to the writer and to what it has committed.
#[derive(Clone)]
pub struct Ledger {
    shared: Arc<Shared>,
}

impl std::fmt::Debug for Ledger {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Ledger").field("size", &self.size()).finish_non_exhaustive()
    }
}

struct Shared {
    queue: Mutex<Option<SyncSender<Job>>>,
    thread: Mutex<Option<JoinHandle<Result<(), StopFault>>>>,
    agents: RwLock<HashMap<String, Arc<Agent>>>,
    reader: Mutex<Box<dyn Reader>>,
    size: AtomicU64,
    /// How often something was published.
    published: AtomicU64,
    ready: AtomicBool,
    clock: Arc<dyn Clock>,
    /// The time of the last entry: the ledger's time never runs back.
    time: AtomicU64,
    metrics: LedgerMetrics,
    unknown_agent: AtomicU64,
    wrong_token: AtomicU64,
    /// Operators' keys that count, by the SHA-256 of the key.
    keys: RwLock<HashMap<Digest, Arc<OperatorKey>>>,
    /// Who waits for a ticket to change.
    waiters: Mutex<Waiters>,
    /// Told that there are events to deliver.
    on_events: Mutex<Option<Notify>>,
    /// The last checkpoint that was written.
    signed: RwLock<Option<Arc<SignedCheckpoint>>>,
    /// For those who read long; see [`Ledger::with_reader`].
    long_reader: Mutex<Box<dyn Reader>>,
    /// Told that the ledger is not available, and why.
    on_fault: Mutex<Option<Alarm>>,
    /// Told that the clock is behind the ledger, and that it no longer is.
    on_clock: Mutex<Option<Alarm>>,
    ids: DecisionIds,
    /// The state files on record, by name; read when first asked for.
    state_files: Mutex<Option<HashMap<String, BTreeSet<String>>>>,
}

type Notify = Box<dyn Fn() + Send>;
type Alarm = Box<dyn Fn(&str) + Send + Sync>;
type Told = Box<dyn FnOnce() + Send>;

#[derive(Default)]
struct Waiters {
    next: u64,
    /// By ticket; each with a number to leave by.
    by_ticket: HashMap<String, Vec<(u64, Told)>>,
}

/// A place in the queue for a ticket's change; dropped, it is left.
pub struct TicketWait {
    shared: Arc<Shared>,
    ticket: String,
    number: u64,
}

impl std::fmt::Debug for TicketWait {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TicketWait").field("ticket", &self.ticket).finish_non_exhaustive()
    }
}

impl Drop for TicketWait {
    fn drop(&mut self) {
        let mut waiters = lock(&self.shared.waiters);
        if let Some(waiting) = waiters.by_ticket.get_mut(&self.ticket) {
            waiting.retain(|(number, _)| *number != self.number);
            if waiting.is_empty() {
                waiters.by_ticket.remove(&self.ticket);
            }
        }
    }
}

impl Ledger {
    /// Checks the store, puts the bundle into force and starts the writer.
    pub fn start(ports: Ports, bundle: Arc<Bundle>) -> Result<Ledger, RecoveryFault> {
        let Ports { mut store, clock, entropy, checkpoint } = ports;
        let mut reader = store.reader()?;
        let mut state = recover(reader.as_mut(), checkpoint.as_ref(), &bundle, clock.now())?;
        if state.frontier.size() == 0 || state.bundle.digest() != bundle.digest() {
            let activate = vec![Command::Activate(Arc::clone(&bundle))];
            run_batch(store.as_mut(), &mut state, activate, clock.now(), entropy.as_ref())?;
        }
        let keys = reader.keys()?.into_iter().filter(|key| !key.revoked).map(|key| (key.digest, Arc::new(key)));
        let keys = keys.collect();
        let (queue, jobs) = sync_channel(QUEUE_LEN);
        let shared = Arc::new(Shared {
            queue: Mutex::new(Some(queue)),
            thread: Mutex::new(None),
            agents: RwLock::default(),
            reader: Mutex::new(reader),
            size: AtomicU64::new(state.frontier.size()),
            published: AtomicU64::new(0),
            ready: AtomicBool::new(true),
            clock: Arc::clone(&clock),
            time: AtomicU64::new(state.clock),
            metrics: LedgerMetrics::default(),
            unknown_agent: AtomicU64::new(0),
            wrong_token: AtomicU64::new(0),
            keys: RwLock::new(keys),
            waiters: Mutex::default(),
            on_events: Mutex::new(None),
            signed: RwLock::new(None),
            long_reader: Mutex::new(store.reader()?),
            on_fault: Mutex::new(None),
            on_clock: Mutex::new(None),
            ids: state.ids,
            state_files: Mutex::new(None),
        });
        let now = Instant::now();
        let writer = Writer {
            store,
            clock,
            entropy,
            checkpoint,
            bundle,
            state: Some(state),
            shared: Arc::clone(&shared),
            sealed: None,
            sealed_at: now.checked_sub(CHECKPOINT_INTERVAL).unwrap_or(now),
            counted_at: now,
            is_disk_slow: false,
            is_behind: false,
        };
        let spawned = thread::Builder::new().name("ledger".to_owned()).spawn(move || writer.run(&jobs));
        let thread = spawned.map_err(RecoveryFault::Checkpoint)?;
        *lock(&shared.thread) = Some(thread);
        Ok(Ledger { shared })
    }

    /// Hands a command to the writer. The answer comes after the commit, whoever still waits for it. A full queue or a
    /// stopped writer answers at once, with a fault.
    pub fn submit(&self, command: Command, reply: impl FnOnce(Answer) + Send + 'static) {
        let queue = lock(&self.shared.queue).clone();
        let Some(queue) = queue else { return reply(Answer::Fault(Code::FaultBusy)) };
        self.shared.metrics.waiting.fetch_add(1, Ordering::Relaxed);
        let refused = match queue.try_send(Job { command, reply: Box::new(reply) }) {
            Ok(()) => return,
            Err(TrySendError::Full(job) | TrySendError::Disconnected(job)) => job,
        };
        self.shared.metrics.waiting.fetch_sub(1, Ordering::Relaxed);
        self.shared.metrics.refused.fetch_add(1, Ordering::Relaxed);
        (refused.reply)(Answer::Fault(Code::FaultBusy));
    }

    /// Hands a command to the writer and waits for its answer.
    pub fn submit_and_wait(&self, command: Command) -> Answer {
        let (sender, receiver) = std::sync::mpsc::channel();
        self.submit(command, move |answer| {
            let _ = sender.send(answer);
        });
        receiver.recv().unwrap_or(Answer::Fault(Code::FaultInternal))
    }

    /// How many entries are committed.
    pub fn size(&self) -> u64 {
        self.shared.size.load(Ordering::Acquire)
    }

    /// Whether commands are accepted.
    pub fn is_ready(&self) -> bool {
        self.shared.ready.load(Ordering::Acquire)
    }

    /// What the writer counts.
    pub fn metrics(&self) -> &LedgerMetrics {
        &self.shared.metrics
    }

    /// The time, as the writer tells it: that of the clock, or of the last entry while the clock is behind it.
    pub fn now(&self) -> Millis {
        self.shared.clock.now().max(self.shared.time.load(Ordering::Acquire))
    }

    /// How far the clock is behind the last entry: so long the ledger's time stands still.
    pub fn clock_behind(&self) -> Millis {
        self.shared.time.load(Ordering::Acquire).saturating_sub(self.shared.clock.now())
    }

    /// An agent as last committed, if it need not be read from the store.
    pub fn agent_at_hand(&self, id: &str) -> Option<Arc<Agent>> {
        self.shared.agents.read().unwrap_or_else(PoisonError::into_inner).get(id).cloned()
    }

    /// An agent as last committed.
    pub fn agent(&self, id: &str) -> Result<Option<Arc<Agent>>, StoreFault> {
        if let Some(agent) = self.agent_at_hand(id) {
            return Ok(Some(agent));
        }
        // What the writer publishes while this reads is newer, so then nothing is remembered.
        let before = self.shared.published.load(Ordering::Acquire);
        let found = lock(&self.shared.reader).agent(id)?.map(Arc::new);
        if let Some(agent) = &found {
            let mut agents = self.shared.agents.write().unwrap_or_else(PoisonError::into_inner);
            if self.shared.published.load(Ordering::Acquire) == before && agents.len() < AGENTS_LEN {
                agents.insert(id.to_owned(), Arc::clone(agent));
            }
        }
        Ok(found)
    }

    /// Agents by id, after one of them, at most so many.
    pub fn agents(&self, after: &str, count: usize) -> Result<Vec<Agent>, StoreFault> {
        lock(&self.shared.long_reader).agents(after, count)
    }

    /// The agent whose token has this SHA-256.
    pub fn agent_by_token(&self, token: Digest) -> Result<Option<Arc<Agent>>, StoreFault> {
        let id = lock(&self.shared.reader).agent_by_token(token)?;
        let agent = id.map_or(Ok(None), |id| self.agent(&id))?;
        // The row of an agent says which token counts, and nothing else does.
        Ok(agent.filter(|agent| agent.has_token(token)))
    }

    /// The operator's key with this SHA-256, if it counts.
    pub fn operator_key(&self, digest: Digest) -> Option<Arc<OperatorKey>> {
        self.shared.keys.read().unwrap_or_else(PoisonError::into_inner).get(&digest).cloned()
    }

    /// The operators' keys, revoked ones too.
    pub fn operator_keys(&self) -> Result<Vec<OperatorKey>, StoreFault> {
        lock(&self.shared.reader).keys()
    }

    /// What is known of a coding agent's calls, as last committed.
    pub fn run(&self, agent: &str) -> Result<Option<Run>, StoreFault> {
        lock(&self.shared.reader).run(agent)
    }

    /// Runs by agent, after one of them, at most so many.
    pub fn runs(&self, after: &str, count: usize) -> Result<Vec<(String, Run)>, StoreFault> {
        lock(&self.shared.long_reader).runs(after, count)
    }

    /// The newest workflow under an id.
    pub fn workflow(&self, id: &str) -> Result<Option<WorkflowHead>, StoreFault> {
        lock(&self.shared.reader).workflow(id)
    }

    /// The newest workflows by id, after one of them, at most so many.
    pub fn workflows(&self, after: &str, count: usize) -> Result<Vec<WorkflowHead>, StoreFault> {
        lock(&self.shared.long_reader).workflows(after, count)
    }

    /// A ticket as last committed.
    pub fn ticket(&self, id: &str) -> Result<Option<Ticket>, StoreFault> {
        lock(&self.shared.reader).ticket(id)
    }

    /// Tickets, newest first, at most so many, each with its number in the store.
    pub fn tickets(&self, query: &TicketQuery, count: usize) -> Result<Vec<(u64, Ticket)>, StoreFault> {
        lock(&self.shared.long_reader).tickets(query, count)
    }

    /// Calls `changed` once a ticket has changed; ask for the ticket after this call, not before.
    pub fn wait_for_ticket(&self, id: &str, changed: impl FnOnce() + Send + 'static) -> TicketWait {
        let mut waiters = lock(&self.shared.waiters);
        let number = waiters.next;
        waiters.next = number.wrapping_add(1);
        waiters.by_ticket.entry(id.to_owned()).or_default().push((number, Box::new(changed)));
        TicketWait { shared: Arc::clone(&self.shared), ticket: id.to_owned(), number }
    }

    /// How many wait for a ticket to change.
    pub fn waiters_count(&self) -> usize {
        lock(&self.shared.waiters).by_ticket.values().map(Vec::len).sum()
    }

    /// The text that is kept beside an entry of an agent.
    pub fn text(&self, agent: &str, seq: u64) -> Result<Option<KeptText>, StoreFault> {
        let now = self.now();
        let mut reader = lock(&self.shared.reader);
        let text = reader.text(agent, seq)?.filter(|text| text.until.is_none_or(|until| until > now));
        match text {
            // A person decides on it, so it must be what was asked.
            Some(text) if !is_text_of(reader.as_mut(), &text)? => {
                Err(StoreFault::new(format!("the text kept for entry {seq} of {agent} is not the one it speaks of")))
            }
            text => Ok(text),
        }
    }

    /// A number for somebody who may go on from it and may not know it; among an agent's entries, or of the whole store.
    pub fn hide_number(&self, agent: Option<&str>, number: u64) -> String {
        self.cursors(agent).hide(number)
    }

    /// The number behind such a text; `None` if it was made up, or is another agent's.
    pub fn find_number(&self, agent: Option<&str>, hidden: &str) -> Option<u64> {
        self.cursors(agent).find(hidden)
    }

    /// The ticket with which a runner may start what a decision let run.
    pub fn ticket_for(&self, decision_id: &str) -> Option<String> {
        self.shared.ids.seal_ticket(decision_id)
    }

    /// The decision that a runner's ticket is for; `None` if the ticket was made up.
    pub fn decision_of(&self, ticket: &str) -> Option<String> {
        self.shared.ids.open_ticket(ticket)
    }

    /// Which ruling a ticket is for: its number among this agent's entries; `None` if the ticket was made up, or is another
    /// agent's.
    pub fn number_of_ticket(&self, agent: &str, ticket: &str) -> Option<u64> {
        self.shared.ids.open(&self.decision_of(ticket)?).filter(|(mark, _)| *mark == mark_of(agent)).map(|(_, seq)| seq)
    }

    fn cursors(&self, agent: Option<&str>) -> DecisionIds {
        agent.map_or(self.shared.ids, |agent| self.shared.ids.of_agent(agent))
    }

    /// The ruling with this id.
    pub fn ruling(&self, decision_id: &str) -> Result<Option<FoundEntry>, StoreFault> {
        let ids = self.shared.ids;
        let is_it = |entry: &Entry| entry.body.ruled().is_some_and(|ruled| ruled.decision_id == decision_id);
        let Some((mark, seq)) = ids.open(decision_id) else { return Ok(None) };
        let mut reader = lock(&self.shared.reader);
        for agent in reader.agents_marked(mark)? {
            let found = find_entry(reader.as_mut(), Some(&agent), seq)?.filter(|found| is_it(&found.entry));
            if found.is_some() {
                return Ok(found);
            }
        }
        // An id from before the sixth format hides a place in the tree.
        let Some(place) = ids.open_place(decision_id).filter(|place| *place < self.size()) else { return Ok(None) };
        let Some(bytes) = reader.entries(place, 1)?.pop() else { return Ok(None) };
        let entry = Entry::from_bytes(&bytes)?;
        Ok(is_it(&entry).then_some(FoundEntry { place, entry, bytes }))
    }

    /// What the ledger says for and against more trust for an agent.
    pub fn merits(&self, agent: &Agent) -> Result<Merits, StoreFault> {
        let mut count = MeritsCount::default();
        let id = &agent.profile.agent_id;
        for seq in (1..=agent.entries).rev() {
            let found = find_entry(lock(&self.shared.long_reader).as_mut(), Some(id), seq)?;
            let found = found.ok_or_else(|| StoreFault::new(format!("entry {seq} of {id} is missing")))?;
            if !count.add(&found.entry, found.place) {
                break;
            }
        }
        Ok(count.finish())
    }

    /// The entry of an agent that reported the execution of a decision, which is its entry `decision`.
    pub fn execution(&self, agent: &str, decision: u64) -> Result<Option<u64>, StoreFault> {
        lock(&self.shared.reader).execution(agent, decision)
    }

    /// What goes to a principal next, and the events that were found on the way and do not follow from their entries.
    pub fn next_parcel(
        &self,
        principal: &str,
        turn: &mut Turn,
    ) -> Result<(Option<Parcel>, Vec<EntryName>), StoreFault> {
        next_parcel(lock(&self.shared.long_reader).as_mut(), self.shared.ids, principal, turn)
    }

    /// Events that have waited for a principal since before a moment, at most so many.
    pub fn outbox_before(&self, principal: &str, at: Millis, count: usize) -> Result<Vec<EntryName>, StoreFault> {
        lock(&self.shared.long_reader).outbox_before(principal, at, count)
    }

    /// How many events wait, by principal, for those that have any.
    pub fn backlog(&self) -> Result<Vec<(String, u64)>, StoreFault> {
        lock(&self.shared.long_reader).backlog()
    }

    /// Calls `told` whenever there are new events to deliver; it must not wait for anything.
    pub fn on_events(&self, told: impl Fn() + Send + 'static) {
        *lock(&self.shared.on_events) = Some(Box::new(told));
    }

    /// The last checkpoint that was written, as it was signed.
    pub fn signed_checkpoint(&self) -> Option<Arc<SignedCheckpoint>> {
        self.shared.signed.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Calls `told` with the reason when the clock is found behind the ledger, and when it has caught up; it must not wait
    /// for anything.
    pub fn on_clock(&self, told: impl Fn(&str) + Send + Sync + 'static) {
        *lock(&self.shared.on_clock) = Some(Box::new(told));
    }

    /// Calls `told` with the reason whenever the ledger becomes unavailable, instead of printing it to standard error; it
    /// must not wait for anything.
    pub fn on_fault(&self, told: impl Fn(&str) + Send + Sync + 'static) {
        *lock(&self.shared.on_fault) = Some(Box::new(told));
    }

    /// Lends the reader for what reads much. Others who do so wait meanwhile; rulings do not.
    pub fn with_reader<T>(&self, read: impl FnOnce(&mut dyn Reader) -> T) -> T {
        read(lock(&self.shared.long_reader).as_mut())
    }

    /// State files whose last commit has no known outcome.
    pub fn open_commits(&self) -> Result<Vec<(String, OpenIntent)>, StoreFault> {
        let heads = lock(&self.shared.reader).heads()?;
        Ok(heads.into_iter().filter_map(|(path, head)| Some((path, head.open?))).collect())
    }

    /// The path under which a state file is on record, or will be. Files that were recorded by another spelling keep it:
    /// `is_same` tells whether another path with the same last name leads to the same file.
    pub fn known_state_file(&self, place: &str, is_same: impl Fn(&str) -> bool) -> Result<String, StoreFault> {
        let name_of = |path: &str| path.rsplit('/').next().unwrap_or(path).to_owned();
        let mut state_files = lock(&self.shared.state_files);
        let known = match &mut *state_files {
            Some(known) => known,
            None => {
                let mut known: HashMap<String, BTreeSet<String>> = HashMap::new();
                for (path, _) in lock(&self.shared.reader).heads()? {
                    known.entry(name_of(&path)).or_default().insert(path);
                }
                state_files.insert(known)
            }
        };
        let known = known.entry(name_of(place)).or_default();
        if !known.contains(place) {
            if let Some(other) = known.iter().find(|other| is_same(other)) {
                return Ok(other.clone());
            }
            known.insert(place.to_owned());
        }
        Ok(place.to_owned())
    }

    /// The bytes of an entry, by its place in the tree.
    pub fn entry(&self, place: u64) -> Result<Option<Vec<u8>>, StoreFault> {
        Ok(lock(&self.shared.reader).entries(place, 1)?.pop())
    }

    /// An entry by its name: of an agent, or of the service.
    pub fn entry_of(&self, agent: Option<&str>, seq: u64) -> Result<Option<FoundEntry>, StoreFault> {
        find_entry(lock(&self.shared.reader).as_mut(), agent, seq)
    }

    /// An entry of an agent, as it was answered when it was recorded.
    pub fn recorded(&self, agent: &str, seq: u64) -> Result<Option<Recorded>, StoreFault> {
        let Some(FoundEntry { place: index, entry, bytes }) = self.entry_of(Some(agent), seq)? else { return Ok(None) };
        Ok(Some(Recorded { entry, index, leaf: leaf_hash(&bytes), replayed: false, folded: None, corrected: None }))
    }

    /// Counts a request that proved no identity.
    pub fn count_unauthenticated(&self, code: Code) {
        let counter = if code == Code::AgentUnknown { &self.shared.unknown_agent } else { &self.shared.wrong_token };
        counter.fetch_add(1, Ordering::Relaxed);
    }

    /// Takes no more commands, finishes those it has, writes the checkpoint.
    pub fn stop(&self) -> Result<(), StopFault> {
        self.shared.ready.store(false, Ordering::Release);
        drop(lock(&self.shared.queue).take());
        let thread = lock(&self.shared.thread).take();
        match thread.map(JoinHandle::join) {
            Some(Ok(result)) => result,
            Some(Err(_)) => Err(StopFault::Died),
            None => Ok(()),
        }
    }
}

impl Shared {
    /// What a committed batch changed, for those who read beside the writer.
    fn publish(&self, changed: Published) {
        let mut agents = self.agents.write().unwrap_or_else(PoisonError::into_inner);
        self.published.fetch_add(1, Ordering::AcqRel);
        if agents.len() >= AGENTS_LEN {
            agents.clear();
        }
        agents.extend(changed.agents.into_iter().map(|agent| (agent.profile.agent_id.clone(), agent)));
        drop(agents);
        if !changed.keys.is_empty() {
            let mut keys = self.keys.write().unwrap_or_else(PoisonError::into_inner);
            for key in changed.keys {
                if key.revoked {
                    keys.remove(&key.digest);
                } else {
                    keys.insert(key.digest, Arc::new(key));
                }
            }
        }
        for ticket in &changed.tickets {
            let waiting = lock(&self.waiters).by_ticket.remove(ticket).unwrap_or_default();
            for (_, told) in waiting {
                told();
            }
        }
        if changed.events
            && let Some(told) = lock(&self.on_events).as_ref()
        {
            told();
        }
    }

    /// Everything anew, after a fault.
    fn publish_again(&self, keys: Vec<OperatorKey>) {
        let mut agents = self.agents.write().unwrap_or_else(PoisonError::into_inner);
        self.published.fetch_add(1, Ordering::AcqRel);
        agents.clear();
        drop(agents);
        let keys = keys.into_iter().filter(|key| !key.revoked).map(|key| (key.digest, Arc::new(key)));
        *self.keys.write().unwrap_or_else(PoisonError::into_inner) = keys.collect();
        let waiting = std::mem::take(&mut lock(&self.waiters).by_ticket);
        for (_, told) in waiting.into_values().flatten() {
            told();
        }
        if let Some(told) = lock(&self.on_events).as_ref() {
            told();
        }
    }

    fn publish_checkpoint(&self, signed: SignedCheckpoint) {
        *self.signed.write().unwrap_or_else(PoisonError::into_inner) = Some(Arc::new(signed));
    }
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

struct Writer {
    store: Box<dyn Store>,
    clock: Arc<dyn Clock>,
    entropy: Arc<dyn Entropy>,
    checkpoint: Option<CheckpointFile>,
    bundle: Arc<Bundle>,
    /// `None` after a fault, until everything has been read again.
    state: Option<State>,
    shared: Arc<Shared>,
    /// The size the last checkpoint covers, once one was written.
    sealed: Option<u64>,
    sealed_at: Instant,
    counted_at: Instant,
    /// The last batch took much longer to commit than all the rest of it.
    is_disk_slow: bool,
    /// It was told that the clock is behind.
    is_behind: bool,
}

/// Ends the process if the writer dies: nobody could record anything any more.
struct DeadWriter;

impl Drop for DeadWriter {
    fn drop(&mut self) {
        if thread::panicking() {
            std::process::abort();
        }
    }
}

impl Writer {
    fn run(mut self, jobs: &Receiver<Job>) -> Result<(), StopFault> {
        let _dead = DeadWriter;
        loop {
            let first = match jobs.recv_timeout(CHECKPOINT_INTERVAL) {
                Ok(job) => Some(job),
                Err(RecvTimeoutError::Timeout) => None,
                Err(RecvTimeoutError::Disconnected) => return self.finish(),
            };
            if first.is_none() {
                self.store.idle();
                if self.state.is_none()
                    && let Err(fault) = self.commit(Vec::new())
                {
                    self.fault(&fault);
                }
            }
            let mut batch: Vec<Job> = first.into_iter().collect();
            let most = if self.is_disk_slow { BATCH_LEN_MAX } else { BATCH_LEN };
            while batch.len() < most
                && let Ok(job) = jobs.try_recv()
            {
                batch.push(job);
            }
            self.count_noise(&mut batch);
            if !batch.is_empty() {
                self.run_jobs(batch);
            }
            self.look_at_clock();
            if self.sealed_at.elapsed() >= CHECKPOINT_INTERVAL {
                self.store.purge();
            }
            if self.sealed_at.elapsed() >= CHECKPOINT_INTERVAL
                && let Err(error) = self.seal()
            {
                // Without a checkpoint a loss could go unnoticed, so nothing more is accepted until it can be written.
                self.fault(&RecoveryFault::Checkpoint(error));
            }
        }
    }

    fn run_jobs(&mut self, batch: Vec<Job>) {
        let count = u64::try_from(batch.len()).unwrap_or(0);
        let (commands, replies): (Vec<_>, Vec<_>) = batch.into_iter().map(|job| (job.command, job.reply)).unzip();
        let start = Instant::now();
        let result = self.commit(commands);
        let (whole, commit) = (start.elapsed(), self.store.commit_time());
        self.is_disk_slow = commit > whole.saturating_sub(commit).saturating_mul(SLOW_DISK);
        let metrics = &self.shared.metrics;
        let micros = |time: Duration| u64::try_from(time.as_micros()).unwrap_or(0);
        metrics.batch_micros.fetch_add(micros(whole), Ordering::Relaxed);
        metrics.commit_micros.fetch_add(micros(commit), Ordering::Relaxed);
        metrics.waiting.fetch_sub(count, Ordering::Relaxed);
        match result {
            Ok(answers) => {
                metrics.batches.fetch_add(1, Ordering::Relaxed);
                metrics.commands.fetch_add(count, Ordering::Relaxed);
                for (reply, answer) in replies.into_iter().zip(answers) {
                    reply(answer);
                }
            }
            Err(fault) => {
                self.fault(&fault);
                let is_unknown = matches!(&fault, RecoveryFault::Store(fault) if fault.left == Left::Unknown);
                for reply in replies {
                    reply(if is_unknown { Answer::Unknown } else { Answer::Fault(Code::FaultStore) });
                }
            }
        }
    }

    /// Runs a batch on what was read last, reading again after a fault.
    fn commit(&mut self, commands: Vec<Command>) -> Result<Vec<Answer>, RecoveryFault> {
        let now = self.clock.now();
        let state = match &mut self.state {
            Some(state) => state,
            None => {
                self.store.reopen()?;
                let mut reader = self.store.reader()?;
                let state = recover(reader.as_mut(), self.checkpoint.as_ref(), &self.bundle, now)?;
                if let Some(file) = &self.checkpoint {
                    // What could not be sealed before is sealed now, or nothing more is accepted.
                    let signed = file.write(&state.frontier).map_err(RecoveryFault::Checkpoint)?;
                    self.shared.publish_checkpoint(signed);
                    self.sealed = Some(state.frontier.size());
                }
                let keys = reader.keys()?;
                *lock(&self.shared.reader) = reader;
                // What was answered as a fault may be recorded all the same.
                self.shared.publish_again(keys);
                self.shared.ready.store(true, Ordering::Release);
                self.state.insert(state)
            }
        };
        let (answers, changed) = run_batch(self.store.as_mut(), state, commands, now, self.entropy.as_ref())?;
        self.bundle = Arc::clone(&state.bundle);
        let size = state.frontier.size();
        self.shared.time.store(state.clock, Ordering::Release);
        self.shared.publish(changed);
        self.shared.size.store(size, Ordering::Release);
        Ok(answers)
    }

    /// Says so when the clock was set back, or right after it was ahead: time stands still until it has caught up, and
    /// nothing expires meanwhile.
    fn look_at_clock(&mut self) {
        let behind = self.shared.time.load(Ordering::Acquire).saturating_sub(self.clock.now());
        if (behind > CLOCK_BEHIND_MAX_MS) == self.is_behind || (self.is_behind && behind > 0) {
            return;
        }
        self.is_behind = !self.is_behind;
        let seconds = behind.div_ceil(1_000);
        let message = if self.is_behind {
            format!(
                "the clock is {seconds} s behind the ledger: for so long time stands still, and tickets expire so much later"
            )
        } else {
            "the clock has caught up with the ledger".to_owned()
        };
        match lock(&self.shared.on_clock).as_ref() {
            Some(told) => told(&message),
            None => {
                let _ = writeln!(io::stderr(), "interlock: {message}");
            }
        }
    }

    fn fault(&mut self, reason: &RecoveryFault) {
        self.state = None;
        self.shared.ready.store(false, Ordering::Release);
        self.shared.metrics.faults.fetch_add(1, Ordering::Relaxed);
        let message = format!("the ledger is not available, everything is denied: {reason}");
        match lock(&self.shared.on_fault).as_ref() {
            Some(told) => told(&message),
            // Whether or not anybody can read it.
            None => {
                let _ = writeln!(io::stderr(), "interlock: {message}");
            }
        }
    }

    fn count_noise(&mut self, batch: &mut Vec<Job>) {
        if self.counted_at.elapsed() < NOISE_INTERVAL {
            return;
        }
        self.counted_at = Instant::now();
        let unknown_agent = self.shared.unknown_agent.swap(0, Ordering::Relaxed);
        let wrong_token = self.shared.wrong_token.swap(0, Ordering::Relaxed);
        if unknown_agent > 0 || wrong_token > 0 {
            let command = Command::CountUnauthenticated(UnauthenticatedRequests { unknown_agent, wrong_token });
            self.shared.metrics.waiting.fetch_add(1, Ordering::Relaxed);
            batch.push(Job { command, reply: Box::new(|_| {}) });
        }
        if self.state.as_ref().is_some_and(|state| state.refusals.are_waiting()) {
            self.shared.metrics.waiting.fetch_add(1, Ordering::Relaxed);
            batch.push(Job { command: Command::CountRepeats, reply: Box::new(|_| {}) });
        }
    }

    /// Writes the checkpoint, if there is something new to cover.
    fn seal(&mut self) -> io::Result<()> {
        self.sealed_at = Instant::now();
        let (Some(file), Some(state)) = (&self.checkpoint, &self.state) else { return Ok(()) };
        let size = state.frontier.size();
        if self.sealed == Some(size) {
            return Ok(());
        }
        let signed = file.write(&state.frontier)?;
        self.shared.publish_checkpoint(signed);
        self.sealed = Some(size);
        Ok(())
    }

    fn finish(mut self) -> Result<(), StopFault> {
        let mut last = Vec::new();
        self.counted_at = self.counted_at.checked_sub(NOISE_INTERVAL).unwrap_or(self.counted_at);
        self.count_noise(&mut last);
        if !last.is_empty() {
            self.run_jobs(last);
        }
        self.seal().map_err(StopFault::Checkpoint)?;
        self.store.purge();
        self.store.idle();
        Ok(())
    }
}
