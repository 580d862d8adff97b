//! Webhooks: what waits in the outbox is sent to the addresses an operator configured, one after the other for each
//! destination, until it has arrived or is given up. It decides when to try again; which event is next at a destination
//! is the outbox's to say, before every attempt. It knows neither what an event means nor how the outbox is kept, and it
//! sends to no address that was not configured.
//!
//! Each destination has a task of its own, so one that is slow or gone delays no other, and never the service. An event
//! may arrive twice, if this process dies between the answer and the record of it; its `webhook-id` is the same then.
//!
//! | to find | look in |
//! |---|---|
//! | what a destination may look like, and how events are signed | `destination.rs` |
//! | one exchange: connecting, limits, what counts as success | `client.rs` |
//! | checkpoints to a webhook or a file elsewhere | `checkpoint.rs` |

mod checkpoint;
mod client;
mod destination;
mod ledger;

pub use checkpoint::{CHECKPOINT_DESTINATION, Checkpoints, Newest, keep_file, replace_file};
pub use destination::{Destination, DestinationError, Destinations};
pub use ledger::{LedgerOutbox, checkpoint_destination_of, destinations_of};

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use interlock_core::Cause;
use interlock_core::action::Millis;
use interlock_core::ledger::EntryName;
use interlock_runtime::clock::{Clock, Entropy};
use interlock_runtime::ledger::Turn;
use interlock_runtime::startup::StartupFault;
use tokio::sync::{Notify, watch};
use tokio::task::JoinSet;

use client::{Client, Outcome};

/// How many events that nobody wants any more are given up at a time.
const GIVEN_UP_MAX: usize = 16;

/// What waits to be sent. Calls may block; they are made on threads where that is allowed.
pub trait Outbox: Send + Sync {
    /// How many events wait, by destination, for those destinations that have any.
    fn backlog(&self) -> Result<Vec<(String, u64)>, Cause>;
    /// What goes to a destination next, which is whatever has the first turn then; and whose turn comes after it.
    fn next(&self, destination: &str, turn: Turn) -> Result<(Turn, Option<Outgoing>), Cause>;
    /// Events that have waited for a destination since before a moment, at most so many.
    fn older(&self, destination: &str, before: Millis, limit: usize) -> Result<Vec<EntryName>, Cause>;
    /// The events have arrived. An error means that this is not on record; it is told again then.
    fn delivered(&self, ids: &[EntryName]) -> Result<(), Cause>;
    /// The events will not be tried any more.
    fn abandoned(&self, ids: &[EntryName], reason: &str) -> Result<(), Cause>;
}

/// An event that waits, or one in the place of several.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outgoing {
    /// What they are in the outbox: the entries they tell of.
    pub ids: Vec<EntryName>,
    /// The name of its destination.
    pub destination: String,
    /// What the receiver knows it by, the same at every attempt: visible ASCII.
    pub event_id: String,
    /// The event, CloudEvents 1.0 as JSON.
    pub body: String,
    /// When it was put here.
    pub opened_at: Millis,
}

/// When things are tried, and how long they may take.
#[derive(Debug, Clone, Copy)]
pub struct Schedule {
    /// How long to wait after the first failure in a row; each further one doubles it.
    pub first_retry: Duration,
    /// The longest wait between two attempts.
    pub longest_retry: Duration,
    /// How old an event is when it is given up.
    pub give_up_after: Duration,
    /// How many failures in a row, since this process started, come before anything is given up: events must not be lost
    /// because the service itself stood still for days.
    pub failures_before_giving_up: u32,
    /// How often to look into the outbox when nobody says that there is something new.
    pub look_every: Duration,
    /// The shortest time between two looks.
    pub look_pause: Duration,
    /// How long finding the address and connecting may take.
    pub connect_time_max: Duration,
    /// How long everything up to the head of the answer may take.
    pub exchange_time_max: Duration,
    /// How long a stop waits for exchanges that are under way.
    pub stop_time_max: Duration,
}

impl Default for Schedule {
    fn default() -> Schedule {
        Schedule {
            first_retry: Duration::from_secs(1),
            longest_retry: Duration::from_secs(60 * 60),
            give_up_after: Duration::from_secs(3 * 24 * 60 * 60),
            failures_before_giving_up: 8,
            look_every: Duration::from_secs(5),
            look_pause: Duration::from_millis(100),
            connect_time_max: Duration::from_secs(5),
            exchange_time_max: Duration::from_secs(10),
            stop_time_max: Duration::from_secs(2),
        }
    }
}

impl Schedule {
    /// The longest wait after so many failures in a row.
    pub fn wait_after(&self, failures: u32) -> Duration {
        let doubled = 2_u32.saturating_pow(failures.saturating_sub(1));
        self.first_retry.saturating_mul(doubled).min(self.longest_retry)
    }
}

/// What was sent, for `/metrics`.
#[derive(Debug, Default)]
pub struct DeliveryMetrics {
    /// Events that arrived.
    pub delivered: AtomicU64,
    /// Attempts that failed.
    pub failed: AtomicU64,
    /// Events that were given up.
    pub abandoned: AtomicU64,
    /// Events that waited when the outbox was last looked into.
    pub waiting: AtomicU64,
    /// Calls of the outbox that failed.
    pub faults: AtomicU64,
}

impl DeliveryMetrics {
    /// Name, kind, help and value of each, as `/metrics` lists them.
    #[rustfmt::skip]
    pub fn rows(&self) -> [(&'static str, &'static str, &'static str, u64); 5] {
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        [
            ("interlock_webhooks_delivered_total", "counter", "Events that arrived.", read(&self.delivered)),
            ("interlock_webhooks_failed_total", "counter", "Attempts that failed.", read(&self.failed)),
            ("interlock_webhooks_abandoned_total", "counter", "Events that were given up.", read(&self.abandoned)),
            ("interlock_webhooks_waiting", "gauge", "Events waiting, when last looked.", read(&self.waiting)),
            ("interlock_webhooks_faults_total", "counter", "Calls of the outbox that failed.", read(&self.faults)),
        ]
    }
}

/// Tells the deliveries that the outbox has something new. Cheap, never blocks.
#[derive(Debug, Clone)]
pub struct Wake(Arc<Notify>);

impl Wake {
    /// Have them look soon.
    pub fn wake(&self) {
        self.0.notify_one();
    }
}

/// Deliveries under way; dropped, they end at once, and what was not recorded is sent again at the next start.
#[derive(Debug)]
pub struct Deliveries {
    wake: Wake,
    metrics: Arc<DeliveryMetrics>,
    stopping: watch::Sender<bool>,
    stop_time_max: Duration,
    tasks: JoinSet<()>,
}

impl Deliveries {
    /// Starts delivering, on the runtime it is called in.
    pub fn start(
        outbox: Arc<dyn Outbox>,
        destinations: Destinations,
        schedule: Schedule,
        clock: Arc<dyn Clock>,
        entropy: Arc<dyn Entropy>,
    ) -> Result<Deliveries, StartupFault> {
        let client = Client::new(&destinations, schedule)?;
        let (stopping, stopped) = watch::channel(false);
        let (wake, metrics) = (Wake(Arc::default()), Arc::<DeliveryMetrics>::default());
        let common = Common { outbox, schedule, clock, entropy, client, stopped, metrics: Arc::clone(&metrics) };
        let (mut tasks, mut bells) = (JoinSet::new(), BTreeMap::new());
        for (name, destination) in destinations.known {
            let bell = Arc::new(Notify::new());
            let courier = Courier {
                common: common.clone(),
                name: name.clone(),
                destination,
                turn: Turn::default(),
                failures: 0,
                last: String::new(),
            };
            tasks.spawn(courier.run(Arc::clone(&bell)));
            bells.insert(name, bell);
        }
        tasks.spawn(common.look(Arc::clone(&wake.0), bells));
        Ok(Deliveries { wake, metrics, stopping, stop_time_max: schedule.stop_time_max, tasks })
    }

    /// Something to wake them with.
    pub fn wake(&self) -> Wake {
        self.wake.clone()
    }

    /// What was sent so far.
    pub fn metrics(&self) -> &Arc<DeliveryMetrics> {
        &self.metrics
    }

    /// Starts nothing new, and waits a moment for what is under way.
    pub async fn stop(mut self) {
        let _ = self.stopping.send(true);
        let ended = async { while self.tasks.join_next().await.is_some() {} };
        let _ = tokio::time::timeout(self.stop_time_max, ended).await;
    }
}

/// What every task needs.
#[derive(Clone)]
struct Common {
    outbox: Arc<dyn Outbox>,
    schedule: Schedule,
    clock: Arc<dyn Clock>,
    entropy: Arc<dyn Entropy>,
    client: Client,
    stopped: watch::Receiver<bool>,
    metrics: Arc<DeliveryMetrics>,
}

/// The server is to stop.
struct Stopped;

impl Common {
    /// Looks into the outbox when told to, and now and then, and rings for those destinations that have something.
    async fn look(self, wake: Arc<Notify>, bells: BTreeMap<String, Arc<Notify>>) {
        loop {
            let backlog = self.ask(|outbox| outbox.backlog()).await.unwrap_or_default();
            let waiting = backlog.iter().fold(0_u64, |sum, (_, count)| sum.saturating_add(*count));
            self.metrics.waiting.store(waiting, Ordering::Relaxed);
            for (name, _) in backlog {
                match bells.get(&name) {
                    Some(bell) => bell.notify_one(),
                    None => self.give_up_unaddressed(name).await,
                }
            }
            if self.pause(self.schedule.look_pause).await.is_err() {
                return;
            }
            tokio::select! {
                () = wake.notified() => {}
                paused = self.pause(self.schedule.look_every) => {
                    if paused.is_err() {
                        return;
                    }
                }
            }
        }
    }

    /// A destination that is not configured any more may come back; for old events it comes too late.
    async fn give_up_unaddressed(&self, name: String) {
        let age = u64::try_from(self.schedule.give_up_after.as_millis()).unwrap_or(u64::MAX);
        let before = self.clock.now().saturating_sub(age).saturating_add(1);
        let asked = self.ask(move |outbox| outbox.older(&name, before, GIVEN_UP_MAX)).await;
        for id in asked.unwrap_or_default() {
            let reason = "no webhook is configured for this destination";
            if self.ask(move |outbox| outbox.abandoned(&[id], reason)).await.is_some() {
                self.metrics.abandoned.fetch_add(1, Ordering::Relaxed);
            }
        }
    }

    fn is_stale(&self, event: &Outgoing) -> bool {
        u128::from(self.clock.now().saturating_sub(event.opened_at)) >= self.schedule.give_up_after.as_millis()
    }

    /// Calls the outbox where blocking is allowed; nothing if that failed.
    async fn ask<T: Send + 'static>(
        &self,
        call: impl FnOnce(&dyn Outbox) -> Result<T, Cause> + Send + 'static,
    ) -> Option<T> {
        let outbox = Arc::clone(&self.outbox);
        let answered = tokio::task::spawn_blocking(move || call(&*outbox)).await;
        let answer = answered.ok().and_then(Result::ok);
        if answer.is_none() {
            self.metrics.faults.fetch_add(1, Ordering::Relaxed);
        }
        answer
    }

    async fn pause(&self, time: Duration) -> Result<(), Stopped> {
        let mut stopped = self.stopped.clone();
        tokio::select! {
            () = tokio::time::sleep(time) => Ok(()),
            // Nobody left to say it is the same as being told.
            _ = stopped.wait_for(|stopped| *stopped) => Err(Stopped),
        }
    }

    /// How long to wait after so many failures in a row: doubling, and up to a half less by chance, so that many do not
    /// come back at the same moment.
    fn retry_after(&self, failures: u32) -> Duration {
        let longest = self.schedule.wait_after(failures);
        let mut chance = [0];
        // Without chance it is the whole time.
        let _ = self.entropy.fill(&mut chance);
        let less = longest.checked_div(512).unwrap_or_default().saturating_mul(u32::from(chance[0]));
        longest.saturating_sub(less)
    }
}

/// Carries events to one destination.
struct Courier {
    common: Common,
    name: String,
    destination: Destination,
    turn: Turn,
    /// In a row, whichever event it was: what fails is the destination.
    failures: u32,
    /// Why the last one failed.
    last: String,
}

impl Courier {
    async fn run(mut self, bell: Arc<Notify>) {
        let mut stopped = self.common.stopped.clone();
        loop {
            tokio::select! {
                () = bell.notified() => {}
                _ = stopped.wait_for(|stopped| *stopped) => return,
            }
            while let Ok(Some(turn)) = self.carry_next().await {
                self.turn = turn;
            }
            if *stopped.borrow() {
                return;
            }
        }
    }

    /// Makes one attempt with whatever has the first turn now: while a destination does not answer, what is more urgent
    /// may have come. Returns whose turn it is after that; `None` if nothing waits.
    async fn carry_next(&mut self) -> Result<Option<Turn>, Stopped> {
        // Not even one attempt for each old event, or a receiver that comes back after days meets them all at once.
        if self.failures >= self.common.schedule.failures_before_giving_up
            && let Some((next, Some(event))) = self.next().await
            && self.common.is_stale(&event)
        {
            let reason = if self.last.is_empty() { "the destination does not answer" } else { &self.last };
            self.abandon(event.ids, format!("given up: {reason}")).await?;
            return Ok(Some(next));
        }
        if self.failures > 0 {
            self.common.pause(self.common.retry_after(self.failures)).await?;
        }
        if *self.common.stopped.borrow() {
            return Err(Stopped);
        }
        let Some((next, Some(event))) = self.next().await else { return Ok(None) };
        let now_seconds = self.common.clock.now().checked_div(1_000).unwrap_or(0);
        match self.common.client.send(&self.destination, &event, now_seconds).await {
            Outcome::Delivered => {
                self.failures = 0;
                let count = u64::try_from(event.ids.len()).unwrap_or(u64::MAX);
                self.settle(move |outbox| outbox.delivered(&event.ids)).await?;
                self.common.metrics.delivered.fetch_add(count, Ordering::Relaxed);
                Ok(Some(next))
            }
            Outcome::Refused(reason) => {
                self.failures = 0;
                self.abandon(event.ids, reason).await?;
                Ok(Some(next))
            }
            Outcome::Failed(reason) => {
                self.failures = self.failures.saturating_add(1);
                self.common.metrics.failed.fetch_add(1, Ordering::Relaxed);
                self.last = reason;
                Ok(Some(self.turn.clone()))
            }
        }
    }

    /// What is next; nothing if the outbox fails, and then the next look rings again.
    async fn next(&self) -> Option<(Turn, Option<Outgoing>)> {
        let (name, turn) = (self.name.clone(), self.turn.clone());
        self.common.ask(move |outbox| outbox.next(&name, turn)).await
    }

    async fn abandon(&self, ids: Vec<EntryName>, reason: String) -> Result<(), Stopped> {
        let count = u64::try_from(ids.len()).unwrap_or(u64::MAX);
        self.settle(move |outbox| outbox.abandoned(&ids, &reason)).await?;
        self.common.metrics.abandoned.fetch_add(count, Ordering::Relaxed);
        Ok(())
    }

    /// Has the outbox record what became of an event, for as long as it takes: going on without would send it again.
    async fn settle(
        &self,
        record: impl Fn(&dyn Outbox) -> Result<(), Cause> + Send + Sync + 'static,
    ) -> Result<(), Stopped> {
        let record = Arc::new(record);
        loop {
            let record = Arc::clone(&record);
            if self.common.ask(move |outbox| record(outbox)).await.is_some() {
                return Ok(());
            }
            self.common.pause(self.common.schedule.look_every).await?;
        }
    }
}
