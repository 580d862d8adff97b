//! The writer's batch function in a world that crashes, loses answers and sends everything twice, all by one seed.
//!
//! The function is the real one; store, clock, chance and clients are simulated. After every run the ledger must say by
//! itself that nothing happened that must not: one approval per step, no budget exceeded, hashes and rows sound, every
//! ruling the same when it is decided again, and everything that was acknowledged still there.

mod coding;

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use interlock_core::action::{
    ActionContext, ActionName, Actor, AgentKind, AgentStatus, BudgetLimits, Check, Door, Engine, Evidence, Facts,
    Merits, Mode, Permissions, Profile, Status, StepNumber, Ticket, TicketSubject, Trust, Usage, UsdMicros, Verdict,
};
use interlock_core::bundle::Bundle;
use interlock_core::ledger::{
    Body, Entry, Idempotency, KeyRevoked, ModeChanged, OperatorKey, Role, StatusChanged, TokenRotated,
    TransitionOutcome,
};
use interlock_core::{Code, Digest};
use interlock_runtime::clock::Entropy;
use interlock_runtime::ledger::{
    AgentChange, Answer, Changes, Command, Execution, KeptAnswer, Left, MemoryStore, Outgoing, Reader, Request,
    RuleCommand, State, Store, StoreFault, TicketQuery, TrustRequest, Txn, recover, replay, run_batch, verify,
};

use self::coding::{CODER_HOUR_MAX, CODERS, Coding, Runs};
use crate::generate::Random;

/// What may go wrong in a transaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fault {
    /// The call fails; nothing is durable.
    Fails,
    /// The commit is durable, and the writer dies before it hears so.
    DiesAfterCommit,
    /// The call panics.
    Panics,
}

/// A store whose transactions fail at a chosen call.
struct SimulatedStore {
    inner: MemoryStore,
    /// How many calls until the fault.
    plan: Option<(usize, Fault)>,
}

struct SimulatedTxn<'a> {
    inner: Box<dyn Txn + 'a>,
    plan: &'a mut Option<(usize, Fault)>,
}

fn step(plan: &mut Option<(usize, Fault)>, is_commit: bool) -> Result<bool, StoreFault> {
    let Some((left, fault)) = plan else { return Ok(false) };
    if *left > 0 && !is_commit {
        *left -= 1;
        return Ok(false);
    }
    let fault = *fault;
    match (fault, is_commit) {
        (Fault::DiesAfterCommit, false) => Ok(false),
        (Fault::DiesAfterCommit, true) => {
            *plan = None;
            Ok(true)
        }
        // A panic outside a command would end the process, which is the same as failing.
        (Fault::Panics, false) => {
            *plan = None;
            panic!("simulated");
        }
        (Fault::Panics, true) | (Fault::Fails, _) => {
            *plan = None;
            Err(StoreFault::new("simulated"))
        }
    }
}

impl Store for SimulatedStore {
    fn begin(&mut self) -> Result<Box<dyn Txn + '_>, StoreFault> {
        if let Some((0, Fault::Fails)) = self.plan {
            self.plan = None;
            return Err(StoreFault::new("simulated"));
        }
        Ok(Box::new(SimulatedTxn { inner: self.inner.begin()?, plan: &mut self.plan }))
    }

    fn reopen(&mut self) -> Result<(), StoreFault> {
        Ok(())
    }

    fn reader(&self) -> Result<Box<dyn Reader>, StoreFault> {
        self.inner.reader()
    }
}

impl Txn for SimulatedTxn<'_> {
    fn agent(&mut self, id: &str) -> Result<Option<Arc<interlock_core::action::Agent>>, StoreFault> {
        step(self.plan, false)?;
        self.inner.agent(id)
    }

    fn conversation(
        &mut self,
        agent: &str,
        id: &str,
    ) -> Result<Option<interlock_core::action::Conversation>, StoreFault> {
        step(self.plan, false)?;
        self.inner.conversation(agent, id)
    }

    fn kept(&mut self, agent: &str, key: Digest) -> Result<Option<KeptAnswer>, StoreFault> {
        step(self.plan, false)?;
        self.inner.kept(agent, key)
    }

    fn entry(&mut self, index: u64) -> Result<Option<Vec<u8>>, StoreFault> {
        step(self.plan, false)?;
        self.inner.entry(index)
    }

    fn entry_of(&mut self, agent: Option<&str>, seq: u64) -> Result<Option<(u64, Vec<u8>)>, StoreFault> {
        step(self.plan, false)?;
        self.inner.entry_of(agent, seq)
    }

    fn head(&mut self, path: &str) -> Result<Option<interlock_core::ledger::StateHead>, StoreFault> {
        step(self.plan, false)?;
        self.inner.head(path)
    }

    fn ticket(&mut self, id: &str) -> Result<Option<Ticket>, StoreFault> {
        step(self.plan, false)?;
        self.inner.ticket(id)
    }

    fn execution(&mut self, agent: &str, decision: u64) -> Result<Option<u64>, StoreFault> {
        step(self.plan, false)?;
        self.inner.execution(agent, decision)
    }

    fn key(&mut self, id: &str) -> Result<Option<OperatorKey>, StoreFault> {
        step(self.plan, false)?;
        self.inner.key(id)
    }

    fn run(&mut self, agent: &str) -> Result<Option<interlock_core::workflow::Run>, StoreFault> {
        step(self.plan, false)?;
        self.inner.run(agent)
    }

    fn workflow(&mut self, id: &str) -> Result<Option<interlock_core::ledger::WorkflowHead>, StoreFault> {
        step(self.plan, false)?;
        self.inner.workflow(id)
    }

    fn texts_count(&mut self, agent: &str) -> Result<u64, StoreFault> {
        step(self.plan, false)?;
        self.inner.texts_count(agent)
    }

    fn write(&mut self, changes: &Changes) -> Result<(), StoreFault> {
        if let Some((_, Fault::Fails)) = self.plan {
            step(self.plan, false)?;
        }
        self.inner.write(changes)
    }

    fn commit(self: Box<Self>, changes: Changes) -> Result<(), StoreFault> {
        let SimulatedTxn { inner, plan } = *self;
        let dies = step(plan, true)?;
        inner.commit(changes)?;
        if dies { Err(StoreFault::new("simulated").of_commit()) } else { Ok(()) }
    }
}

/// A store whose next transaction fails: before anything is written, or after the commit, so that the writer does not hear
/// of what is recorded.
pub fn failing_once(store: MemoryStore, is_recorded: bool) -> Box<dyn Store> {
    let fault = if is_recorded { Fault::DiesAfterCommit } else { Fault::Fails };
    Box::new(SimulatedStore { inner: store, plan: Some((0, fault)) })
}

/// Ids by number.
#[derive(Debug, Default)]
struct Counter(AtomicU64);

impl Entropy for Counter {
    fn fill(&self, bytes: &mut [u8]) -> io::Result<()> {
        let number = self.0.fetch_add(1, Ordering::Relaxed);
        bytes.fill(0);
        for (slot, byte) in bytes.iter_mut().zip(number.to_be_bytes()) {
            *slot = byte;
        }
        Ok(())
    }
}

/// Dearer, keeps every text, and tells a principal what happens.
const SECOND_BUNDLE: &str = "payloads = 'all'
[actions.calculate]
engine = 'math'
price_usd = 0.02
[principals.p]
webhook = 'http://127.0.0.1:1/'
secret = 'a secret of the simulation, long'
";
const AGENTS: usize = 3;
const HOUR_MAX: u64 = 2;
const DAY_MAX: u64 = 4;
const DAY_COST_MAX: UsdMicros = UsdMicros(70_000);
const HOUR_MS: u64 = 3_600_000;
const DAY_MS: u64 = 86_400_000;

struct World {
    random: Random,
    store: SimulatedStore,
    state: State,
    now: u64,
    entropy: Counter,
    bundles: [Arc<Bundle>; 2],
    /// Requests that may be sent again.
    sent: Vec<RuleCommand>,
    /// Decision ids whose answers were delivered.
    acknowledged: BTreeSet<String>,
    /// How many refusals were answered by the id of one that they are like, and not lost with a crash.
    folded: BTreeMap<String, u64>,
    crashes: usize,
    coding: Coding,
}

/// Runs the same commands on two stores and tells where they come to differ. `reopen` makes the second one anew from
/// what it kept.
pub fn compare(seed: u64, batches: usize, reopen: &mut dyn FnMut() -> Box<dyn Store>) -> Result<(), String> {
    let mut world = World::new(seed)?;
    let (mut other, mut other_state) = (reopen(), world.state.clone());
    let other_entropy = Counter::default();
    let mut commands = vec![Command::Activate(Arc::clone(&world.bundles[0]))];
    commands.extend((0..AGENTS).map(registration));
    commands.extend((0..CODERS).map(|number| Coding::enrolment(number, Mode::Enforce)));
    for _ in 0..batches {
        let ours = run_batch(&mut world.store, &mut world.state, commands.clone(), world.now, &world.entropy);
        let theirs = run_batch(other.as_mut(), &mut other_state, commands, world.now, &other_entropy);
        let (ours, theirs) = (ours.map_err(|fault| fault.to_string())?, theirs.map_err(|fault| fault.to_string())?);
        let (ours, theirs) = (format!("{:?}", ours.0), format!("{:?}", theirs.0));
        if ours != theirs {
            return Err(format!("answers differ:\n{ours}\n{theirs}"));
        }
        if world.random.one_in(5) {
            drop(other);
            other = reopen();
        }
        commands = world.commands();
    }
    let mut readers = [world.store.reader(), other.reader()].map(|reader| reader.expect("a reader"));
    let rows = readers.each_mut().map(|reader| {
        let mut rows = reader.rows().expect("rows");
        rows.agents.sort_by(|left, right| left.profile.agent_id.cmp(&right.profile.agent_id));
        rows.tickets.sort_by(|left, right| left.approval_id.cmp(&right.approval_id));
        rows.executions.sort_unstable();
        rows.tokens.sort_unstable_by(|left, right| left.0.cmp(&right.0));
        rows.conversations.sort_by(|left, right| (&left.0, &left.1).cmp(&(&right.0, &right.1)));
        rows.runs.sort_by(|left, right| left.0.cmp(&right.0));
        rows.workflows.sort_by(|left, right| left.0.cmp(&right.0));
        format!("{rows:?}")
    });
    let texts = readers.each_mut().map(|reader| reader.texts(("", 0), usize::MAX).expect("texts"));
    let lists = readers.each_mut().map(|reader| {
        let tickets = reader.tickets(&TicketQuery::default(), usize::MAX).expect("tickets");
        tickets.into_iter().map(|(_, ticket)| ticket.approval_id).collect::<Vec<_>>()
    });
    if lists[0] != lists[1] {
        return Err("tickets come in another order".to_owned());
    }
    let outboxes = readers.each_mut().map(|reader| reader.events(("", 0), usize::MAX).expect("events"));
    if texts[0] != texts[1] || outboxes[0] != outboxes[1] {
        return Err("texts or events differ".to_owned());
    }
    let entries = readers.each_mut().map(|reader| reader.entries(0, usize::MAX).expect("entries"));
    let frontiers = readers.each_mut().map(|reader| {
        let size = reader.head().expect("a head").size();
        reader.frontier(size)
    });
    if rows[0] != rows[1] || entries[0] != entries[1] || frontiers[0] != frontiers[1] {
        return Err("what is kept differs".to_owned());
    }
    Ok(())
}

/// What a run went through.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct Summary {
    /// Entries in the ledger.
    pub entries: u64,
    /// Approvals among them.
    pub approvals: usize,
    /// Batches that failed.
    pub crashes: usize,
    /// Calls of coding agents that passed.
    pub calls: usize,
    /// Transitions that were made.
    pub moves: usize,
    /// Calls that passed because a person agreed.
    pub redeemed: usize,
}

/// Runs one world and checks what it left behind.
pub fn run(seed: u64, batches: usize) -> Result<Summary, String> {
    let mut world = World::new(seed)?;
    let mut first = vec![Command::Activate(Arc::clone(&world.bundles[0]))];
    first.extend((0..AGENTS).map(registration));
    first.extend((0..CODERS).map(|number| Coding::enrolment(number, Mode::Enforce)));
    world.batch(first);
    for _ in 0..batches {
        world.turn();
    }
    world.check()
}

fn agent_id(number: usize) -> String {
    format!("agent_{number:032}")
}

fn token(number: usize) -> Digest {
    Digest::of(&["token", &number.to_string()])
}

fn registration(number: usize) -> Command {
    let budget = BudgetLimits {
        max_requests_per_hour: Some(HOUR_MAX),
        max_requests_per_day: Some(DAY_MAX),
        max_daily_cost_usd: Some(DAY_COST_MAX),
        ..BudgetLimits::default()
    };
    let profile = Profile {
        agent_id: agent_id(number),
        name: "simulated".to_owned(),
        kind: AgentKind::Supervised,
        principal_id: "p".to_owned(),
        description: None,
        framework: None,
        model: None,
        permissions: Permissions { blocked_tools: vec!["file_delete".to_owned()], ..Permissions::default() },
        budget,
        created_at: 0,
        registered_by: None,
    };
    let by = Actor { name: "ann".to_owned(), key_id: None };
    Command::Register { profile: Box::new(profile), token: token(number), trust: Trust::Trusted, by }
}

/// The two bundles of every world, read once.
fn bundles() -> Result<[Arc<Bundle>; 2], String> {
    static BUNDLES: OnceLock<Result<[Arc<Bundle>; 2], String>> = OnceLock::new();
    let bundle = |text: &str| Bundle::load(text, &BTreeMap::new(), false).map(Arc::new).map_err(|e| e.to_string());
    BUNDLES.get_or_init(|| Ok([bundle("")?, bundle(SECOND_BUNDLE)?])).clone()
}

impl World {
    fn new(seed: u64) -> Result<World, String> {
        let bundles = bundles()?;
        let store = SimulatedStore { inner: MemoryStore::default(), plan: None };
        let now = crate::service::START_MS;
        let mut reader = store.reader().map_err(|fault| fault.to_string())?;
        let state = recover(reader.as_mut(), None, &bundles[0], now).map_err(|fault| fault.to_string())?;
        Ok(World {
            random: Random::new(seed),
            store,
            state,
            now,
            entropy: Counter::default(),
            bundles,
            sent: Vec::new(),
            acknowledged: BTreeSet::new(),
            folded: BTreeMap::new(),
            crashes: 0,
            coding: Coding::new(),
        })
    }

    fn turn(&mut self) {
        let commands = self.commands();
        if self.random.one_in(4) {
            let fault = *self.random.pick(&[Fault::Fails, Fault::Fails, Fault::DiesAfterCommit, Fault::Panics]);
            self.store.plan = Some((self.random.below(3 * commands.len()), fault));
        }
        self.batch(commands);
    }

    fn commands(&mut self) -> Vec<Command> {
        // Mostly minutes, now and then hours, seldom back.
        match self.random.below(12) {
            0 => self.now += u64::try_from(self.random.below(20 * 3_600_000)).expect("small"),
            1 => self.now = self.now.saturating_sub(60_000),
            _ => self.now += u64::try_from(self.random.below(4 * 60_000)).expect("small"),
        }
        let count = 1 + self.random.below(12);
        let mut commands = Vec::new();
        for _ in 0..count {
            let again = !self.sent.is_empty() && self.random.one_in(3);
            let command = if again { self.random.pick(&self.sent).clone() } else { self.request() };
            self.sent.push(command.clone());
            commands.push(Command::Rule(Box::new(command)));
        }
        for _ in 0..self.random.below(4) {
            let command = self.deed();
            let place = self.random.below(commands.len() + 1);
            commands.insert(place, command);
        }
        let mut reader = self.store.inner.clone();
        for _ in 0..self.random.below(8) {
            let command = self.coding.command(&mut self.random, &mut reader, &self.bundles);
            let place = self.random.below(commands.len() + 1);
            commands.insert(place, command);
        }
        // Somebody asks for the same again and again, and now and then that is put on record.
        if self.random.one_in(12) {
            let mut hammered = self.request();
            hammered.idempotency = None;
            let times = 1 + self.random.below(24);
            commands.extend((0..times).map(|_| Command::Rule(Box::new(hammered.clone()))));
        }
        if self.random.one_in(4) {
            let place = self.random.below(commands.len() + 1);
            commands.insert(place, Command::CountRepeats);
        }
        if self.random.one_in(25) {
            let bundle = Arc::clone(&self.bundles[self.random.below(2)]);
            commands.push(Command::Activate(bundle));
        }
        commands
    }

    /// What operators do, and what agents do beside asking.
    fn deed(&mut self) -> Command {
        let by = Actor { name: "ann".to_owned(), key_id: None };
        let mut reader = self.store.inner.clone();
        let tickets = Reader::tickets(&mut reader, &TicketQuery::default(), 12).expect("tickets");
        let number = self.random.below(AGENTS);
        let agent = agent_id(number);
        let ticket = if tickets.is_empty() { None } else { Some(self.random.pick(&tickets).1.clone()) };
        match self.random.below(16) {
            12 => {
                let number = self.random.below(3);
                let key_id = format!("key_{number}");
                let digest = Digest::of(&["key", &key_id]);
                let (name, role) = (key_id.clone(), *self.random.pick(&[Role::Admin, Role::Approver]));
                let key = OperatorKey {
                    key_id,
                    name,
                    role,
                    max_trust: None,
                    digest,
                    created_at: 0,
                    created_by: by,
                    revoked: false,
                };
                Command::CreateKey(Box::new(key))
            }
            13 => {
                let key_id = format!("key_{}", self.random.below(3));
                Command::RevokeKey(KeyRevoked { key_id, by, reason: None })
            }
            14 => {
                let change = AgentChange::Token(TokenRotated { token: token(number), by, reason: None });
                Command::Change { agent, change }
            }
            15 => {
                let waiting = Reader::events(&mut reader, ("", 0), 3).expect("events");
                Command::Delivered(waiting.iter().map(Outgoing::name).collect())
            }
            0..=4 => {
                // Some decide with a key, which may have been revoked or never made.
                let key_id = self.random.one_in(2).then(|| format!("key_{}", self.random.below(3)));
                let by = Actor { key_id, ..by };
                let verdict = if self.random.one_in(4) { Verdict::Denied } else { Verdict::Approved };
                let known = ticket.map(|ticket| ticket.approval_id);
                let approval_id = known.unwrap_or_else(|| "appr_unknown".to_owned());
                Command::Resolve { approval_id, verdict, by, reason: None }
            }
            5..=7 => {
                let waiting = ticket.and_then(|ticket| match ticket.subject {
                    TicketSubject::Action(action) => Some((ticket.agent, action.decision_id)),
                    TicketSubject::Trust(_) | TicketSubject::Transition(_) => None,
                });
                let known = self.acknowledged.iter().next_back().map(|id| (agent.clone(), id.clone()));
                let either = if self.random.one_in(2) { waiting.or(known) } else { known };
                let (agent, decision_id) = either.unwrap_or((agent, "dec_unknown".to_owned()));
                let number = (0..AGENTS).find(|number| agent_id(*number) == agent).unwrap_or(0);
                let usage = Usage { cost_usd: UsdMicros(*self.random.pick(&[0, 15_000])), tokens: 0 };
                let token = if self.random.one_in(10) { token(9) } else { token(number) };
                let execution = Execution { agent, token, decision_id, success: true, result_hash: None, usage };
                Command::Execute(Box::new(execution))
            }
            8 => {
                let suspended = self.random.one_in(6);
                let status = if suspended { AgentStatus::Suspended } else { AgentStatus::Active };
                let change = AgentChange::Status(StatusChanged { status, complaint: false, by, reason: None });
                Command::Change { agent, change }
            }
            9 => Command::RequestTrust(Box::new(TrustRequest {
                agent,
                token: Some(token(number)),
                by: None,
                to_level: *self.random.pick(&[Trust::Supervised, Trust::Autonomous, Trust::Trusted]),
                from_level: None,
                justification: Some("please".to_owned()),
                merits: Merits::default(),
            })),
            10 => Command::EraseTexts { agent, by, reason: None },
            _ => {
                let mode = *self.random.pick(&[Mode::Observe, Mode::Enforce]);
                Command::Change { agent, change: AgentChange::Mode(ModeChanged { mode, by, reason: None }) }
            }
        }
    }

    fn request(&mut self) -> RuleCommand {
        let number = self.random.below(AGENTS);
        let conversation = format!("c{}", self.random.below(4));
        let step = match self.random.below(10) {
            0 => 50 + self.random.below(3),
            _ => 1 + self.random.below(20),
        };
        let step = StepNumber::new(u64::try_from(step).expect("small")).expect("not zero");
        let action =
            *self.random.pick(&["calculate", "calculate", "calculate", "send_email", "nonsense", "file_delete"]);
        let fingerprint = Digest::of(&[action, &self.random.below(6).to_string()]);
        let context = ActionContext { conversation, step, observed: None };
        let mut facts = Facts::new(Door::Verify, ActionName::parse(action), fingerprint, context);
        let known = Reader::agent(&mut self.store.inner.clone(), &agent_id(number)).expect("an agent");
        let entries = known.map_or(0, |agent| agent.entries);
        facts.opened_at = entries.saturating_sub(u64::try_from(self.random.below(4)).expect("small"));
        facts.dry_run = self.random.one_in(15);
        facts.usage = Usage { cost_usd: UsdMicros(*self.random.pick(&[0, 0, 30_000])), tokens: 0 };
        let tools = ["send_email", "file_delete"];
        let engine = if tools.contains(&action) { Engine::ToolControl } else { Engine::Math };
        let status = *self.random.pick(&[Status::Verified, Status::Verified, Status::Uncertain, Status::Failed]);
        let evidence = Evidence {
            bundle: self.bundles[self.random.below(8).min(1) ^ 1].digest(),
            engine,
            version: 1,
            status,
            risk: None,
            checks: vec![Check { name: "simulated".into(), passed: status == Status::Verified }],
            rules: None,
            matched: Vec::new(),
            certificate: None,
            hostile: status == Status::Failed && self.random.one_in(4),
            call: None,
        };
        let evidence = (!self.random.one_in(8)).then_some(evidence);
        let key = |n: usize| Digest::of(&["key", &n.to_string()]);
        let idempotency = self.random.one_in(3).then(|| {
            let request = Digest::of(&[&fingerprint.to_string(), &step.get().to_string()]);
            Idempotency { key: key(self.random.below(40)), request }
        });
        let token = if self.random.one_in(20) { token(9) } else { token(number) };
        let agent = if self.random.one_in(30) { "agent_nobody".to_owned() } else { agent_id(number) };
        let request = if self.random.one_in(20) {
            Request::Malformed { code: Code::RequestMalformed, message: "simulated".to_owned() }
        } else {
            Request::Facts { facts: Box::new(facts), evidence }
        };
        let text = Some("{\"action\":{}}".into());
        RuleCommand { agent, token, request, idempotency, corrected: None, text }
    }

    fn batch(&mut self, commands: Vec<Command>) {
        let ran = run_batch(&mut self.store, &mut self.state, commands, self.now, &self.entropy);
        self.store.plan = None;
        match ran {
            Ok((answers, _)) => {
                for answer in answers {
                    if let Answer::Recorded(recorded) = &answer
                        && recorded.folded.is_some()
                        && let Some(id) = recorded.entry.body.decision_id()
                    {
                        *self.folded.entry(id.to_owned()).or_default() += 1;
                    }
                    // Some answers are lost on their way.
                    if let (Answer::Recorded(recorded), false) = (answer, self.random.one_in(10))
                        && let Body::Ruled(ruled) = recorded.entry.body
                    {
                        self.acknowledged.insert(ruled.decision_id);
                    }
                }
            }
            Err(fault) => {
                self.crashes += 1;
                let mut reader = self.store.reader().expect("a reader");
                let size = reader.head().expect("a head").size();
                assert!(fault.left == Left::Unknown || size == self.state.frontier.size(), "recorded all the same");
                // The clock of the next process may be behind; the ledger's is not.
                let now = self.now.max(self.state.clock);
                self.state = recover(reader.as_mut(), None, &self.state.bundle, now).expect("recovers");
                // What no entry counted by then is forgotten.
                let entries = reader.entries(0, usize::MAX).expect("entries");
                self.folded = counted(entries.iter().map(|bytes| Entry::from_bytes(bytes).expect("an entry")));
            }
        }
    }

    fn check(mut self) -> Result<Summary, String> {
        self.batch(vec![Command::CountRepeats]);
        let mut reader = self.store.reader().map_err(|fault| fault.to_string())?;
        let report = verify(reader.as_mut(), None, self.now, &mut |_, _| {}).map_err(|fault| fault.to_string())?;
        if !report.findings.is_empty() {
            return Err(format!("the ledger is not sound: {:?}", report.findings));
        }
        let replayed = replay(reader.as_mut(), None, &mut |_, _| {}).map_err(|fault| fault.to_string())?;
        if replayed.differences_count > 0 || !replayed.findings.is_empty() {
            return Err(format!("decided again: {:?} {:?}", replayed.differences, replayed.findings));
        }
        let entries = reader.entries(0, usize::MAX).map_err(|fault| fault.to_string())?;
        let entries: Vec<Entry> = entries
            .iter()
            .map(|bytes| Entry::from_bytes(bytes))
            .collect::<Result<_, _>>()
            .map_err(|e| e.to_string())?;
        let approvals = self.check_entries(&entries)?;
        let on_record = counted(entries.iter().cloned());
        if on_record != self.folded {
            return Err(format!("counted {on_record:?} instead of {:?}", self.folded));
        }
        let mut runs = Runs::default();
        for entry in &entries {
            runs.check(entry)?;
        }
        runs.compare(reader.as_mut())?;
        self.random.bits();
        let (calls, moves, redeemed) = (runs.passed, runs.moves, runs.redeemed);
        Ok(Summary { entries: report.entries, approvals, crashes: self.crashes, calls, moves, redeemed })
    }

    /// The promises, counted from the entries by nothing that the gate uses.
    fn check_entries(&self, entries: &[Entry]) -> Result<usize, String> {
        let (mut taken, mut recorded) = (BTreeSet::new(), BTreeSet::new());
        let mut keys: BTreeMap<(String, Digest), (Digest, u64)> = BTreeMap::new();
        let mut runs: BTreeMap<&str, Vec<(u64, u64)>> = BTreeMap::new();
        let mut tickets = Tickets::default();
        for entry in entries {
            let agent = entry.agent.as_deref().unwrap_or("");
            if let Some(cost) = tickets.check(entry)? {
                runs.entry(agent).or_default().push((entry.at, cost));
            }
            let Body::Ruled(ruled) = &entry.body else { continue };
            recorded.insert(ruled.decision_id.clone());
            if let Some(Idempotency { key, request }) = ruled.idempotency
                && let Some((other, at)) = keys.insert((agent.to_owned(), key), (request, entry.at))
                && at + DAY_MS > entry.at
            {
                return Err(format!("a key was recorded twice within a day: {other} and {request}"));
            }
            let Some(facts) = ruled.facts.as_ref().filter(|facts| !facts.dry_run) else { continue };
            let decision = ruled.ruling.decision.as_str();
            if matches!(decision, "APPROVED" | "CORRECTED" | "PENDING")
                && facts.call.is_none()
                && !taken.insert((agent, facts.conversation.as_str(), facts.step))
            {
                return Err(format!("step {} of {} was taken twice", facts.step.get(), facts.conversation));
            }
            // What a person agreed to was counted when that was said.
            if matches!(decision, "APPROVED" | "CORRECTED") && ruled.redeemed.is_none() {
                runs.entry(agent).or_default().push((entry.at, ruled.ruling.charge.cost_usd.0));
            }
        }
        for (agent, runs) in &runs {
            for (at, _) in runs {
                let hour = runs.iter().filter(|(other, _)| *other <= *at && *other + HOUR_MS > *at).count();
                let day: Vec<u64> =
                    runs.iter().filter(|(other, _)| other / DAY_MS == at / DAY_MS).map(|(_, cost)| *cost).collect();
                let is_coder = (0..CODERS).any(|number| coding::coder_id(number) == **agent);
                let (hour_max, day_max) = if is_coder { (CODER_HOUR_MAX, u64::MAX) } else { (HOUR_MAX, DAY_MAX) };
                let over = u64::try_from(hour).expect("small") > hour_max
                    || u64::try_from(day.len()).expect("small") > day_max
                    || day.iter().sum::<u64>() > DAY_COST_MAX.0;
                if over {
                    return Err(format!("{agent} exceeded its budget: {hour} an hour, {day:?} a day"));
                }
            }
        }
        if let Some(lost) = self.acknowledged.difference(&recorded).next() {
            return Err(format!("{lost} was acknowledged and is not there"));
        }
        Ok(runs.values().map(Vec::len).sum())
    }
}

/// How many refusals entries count, by the decision that their answers named.
fn counted(entries: impl Iterator<Item = Entry>) -> BTreeMap<String, u64> {
    let mut counts = BTreeMap::new();
    for entry in entries {
        if let Body::RefusalsRepeated(repeated) = entry.body {
            for repeat in repeated.repeats {
                *counts.entry(repeat.decision_id).or_default() += repeat.count;
            }
        }
    }
    counts
}

/// What must hold of tickets, counted from the entries by nothing that the gate uses.
#[derive(Default)]
struct Tickets<'a> {
    /// When each was opened, and under which bundle.
    opened: BTreeMap<&'a str, (u64, Option<Digest>)>,
    resolved: BTreeMap<&'a str, bool>,
    /// Decisions that let something run, and tickets by decision.
    lets_run: BTreeMap<&'a str, Option<&'a str>>,
    observed: BTreeSet<&'a str>,
    /// Keys that count.
    keys: BTreeSet<&'a str>,
    executed: BTreeSet<&'a str>,
    suspended: BTreeSet<&'a str>,
    bundle: Option<Digest>,
}

impl<'a> Tickets<'a> {
    /// Checks an entry; the cost of what it lets run, if a person did.
    fn check(&mut self, entry: &'a Entry) -> Result<Option<u64>, String> {
        let agent = entry.agent.as_deref().unwrap_or("");
        let (expiry, wrong) = (15 * 60_000, |what: &str| Err(format!("{what}: {entry:?}")));
        match &entry.body {
            Body::KeyCreated(created) => {
                self.keys.insert(&created.key.key_id);
            }
            Body::KeyRevoked(revoked) => {
                self.keys.remove(revoked.key_id.as_str());
            }
            Body::BundleActivated(bundle) => {
                self.bundle = Bundle::from_text(&bundle.text).ok().map(|bundle| bundle.digest());
            }
            Body::StatusChanged(changed) if changed.status == AgentStatus::Suspended => {
                self.suspended.insert(agent);
            }
            Body::StatusChanged(_) => {
                self.suspended.remove(agent);
            }
            Body::Ruled(ruled) => {
                let dry_run = ruled.facts.as_ref().is_none_or(|facts| facts.dry_run);
                let pending = ruled.ruling.decision.as_str() == "PENDING" && !dry_run;
                if pending != ruled.ticket.is_some() {
                    return wrong("PENDING without a ticket, or a ticket without PENDING");
                }
                if ruled.ruling.decision.lets_run() && self.suspended.contains(agent) {
                    return wrong("a suspended agent was let run");
                }
                let ticket = ruled.ticket.as_ref().map(|ticket| ticket.approval_id.as_str());
                if (pending || ruled.ruling.decision.lets_run()) && !dry_run {
                    self.lets_run.insert(&ruled.decision_id, ticket);
                }
                if ruled.observed {
                    self.observed.insert(&ruled.decision_id);
                }
                self.opened.extend(ticket.map(|ticket| (ticket, (entry.at, Some(ruled.bundle)))));
            }
            Body::Transitioned(asked) => {
                if let TransitionOutcome::Parked { approval_id, .. } = &asked.outcome {
                    self.opened.insert(approval_id, (entry.at, Some(asked.bundle)));
                }
            }
            Body::TrustRequested(requested) => {
                self.opened.insert(&requested.approval_id, (entry.at, Some(requested.bundle)));
            }
            Body::ApprovalResolved(resolved) => {
                let yes = resolved.verdict == Verdict::Approved;
                if resolved.by.key_id.as_deref().is_some_and(|key| !self.keys.contains(key)) {
                    return wrong("decided with a key that does not count");
                }
                let Some((at, bundle)) = self.opened.get(resolved.approval_id.as_str()) else {
                    return wrong("an unknown ticket was decided on");
                };
                if self.resolved.insert(&resolved.approval_id, yes).is_some() {
                    return wrong("a ticket was decided on twice");
                }
                if entry.at >= at + expiry || (yes && (self.suspended.contains(agent) || *bundle != self.bundle)) {
                    return wrong("approved after expiry, suspension or a change of the bundle");
                }
                let action = self.lets_run.values().any(|ticket| *ticket == Some(&resolved.approval_id));
                return Ok((yes && action).then_some(resolved.charge.cost_usd.0));
            }
            Body::Executed(executed) => {
                if !self.executed.insert(&executed.decision_id) {
                    return wrong("executed twice");
                }
                let observed = self.observed.contains(executed.decision_id.as_str());
                let allowed = match self.lets_run.get(executed.decision_id.as_str()) {
                    // In observe mode what nobody decided on may be reported; it spends nothing.
                    Some(Some(ticket)) => match self.resolved.get(ticket) {
                        Some(yes) => *yes && executed.approval_id.is_some(),
                        None => observed && executed.approval_id.is_none(),
                    },
                    Some(None) => true,
                    None => observed,
                };
                if !allowed || self.suspended.contains(agent) {
                    return wrong("executed without a permit");
                }
            }
            _ => {}
        }
        Ok(None)
    }
}
