//! Work that takes long, apart from what everybody needs.
//!
//! Reading the text of an agent's request is tried at once with little fuel ([`FUEL_AT_ONCE`]), which most requests need
//! far less than. What needs more, what is long, and what reads much of the ledger takes a turn first: agents have turns
//! for half of the processors, fairly among them, and operators have turns of their own. So probes, answers, operators'
//! commands and small requests never stand behind somebody's work; and an agent that asks for more work than its bundle
//! allows per second is refused, dry runs too.

use std::sync::Arc;
use std::thread::available_parallelism;

use interlock_core::bundle::Bundle;
use interlock_core::{Code, Digest};
use interlock_runtime::gate::Asking;
use interlock_runtime::ledger::Command;
use tokio::runtime::{Handle, RuntimeFlavor};

use crate::Service;
use crate::answer::Refusal;
use crate::meter::FuelMeter;
use crate::routes::blocking;
use crate::turns::{Turn, Turns};

/// A request with more bytes takes a turn before it is read.
const LONG_BYTES: usize = 2_048;
/// How much work is done at once, for whoever asks; about a quarter of a millisecond.
const FUEL_AT_ONCE: u64 = 1 << 18;
/// What costs less is not charged: requests per minute bound it.
const FUEL_FREE: u64 = 1 << 14;
/// The fuel for each byte of a long request: parsing, fingerprint, argument rules.
const BYTE_FUEL: u64 = 64;
/// The fuel for each entry of the ledger that is read.
pub(crate) const ENTRY_FUEL: u64 = 1 << 14;
/// The asker of whatever proves nobody.
const STRANGER: &str = "";

/// Who asks for work.
#[derive(Debug, Clone)]
pub(crate) enum Asker {
    /// An agent, by its id.
    Agent(String),
    /// Somebody with an operator's key.
    Operator(Digest),
    /// Nobody who is known yet.
    Stranger,
}

/// The turns, and what agents owe.
#[derive(Debug)]
pub(crate) struct Apart {
    agents: Arc<Turns>,
    operators: Arc<Turns>,
    meter: FuelMeter,
}

impl Apart {
    pub(crate) fn new(bundle: &Bundle) -> Apart {
        let half = available_parallelism().map_or(1, usize::from).div_ceil(2);
        let meter = FuelMeter::new(bundle.fuel_per_second_per_agent());
        Apart { agents: Turns::new(half), operators: Turns::new(half), meter }
    }

    pub(crate) fn waiting(&self) -> usize {
        self.agents.waiting().saturating_add(self.operators.waiting())
    }

    fn check(&self, agent: &str) -> Result<(), Refusal> {
        let message = "this agent asks for too much work; wait as long as Retry-After says";
        let checked = self.meter.check(agent, self.meter.now_ms());
        checked.map_err(|seconds| Refusal::new(Code::RateLimited, message).with_retry_after(seconds))
    }

    fn charge(&self, agent: &str, fuel: u64) {
        if fuel > FUEL_FREE {
            self.meter.charge(agent, fuel, self.meter.now_ms());
        }
    }
}

impl Service {
    /// The turns of agents, for whoever wants to see that others go on while all are taken.
    pub fn agents_turns(&self) -> &Arc<Turns> {
        &self.apart.agents
    }

    /// Waits for a turn. An agent that owes too much gets none, whether it owed that before it waited or since.
    pub(crate) async fn turn(&self, asker: &Asker) -> Result<Turn, Refusal> {
        let taken = match asker {
            Asker::Operator(key) => self.apart.operators.take(&key.to_string()).await,
            Asker::Stranger => self.apart.agents.take(STRANGER).await,
            Asker::Agent(agent) => {
                self.apart.check(agent).inspect_err(|_| self.count_limited())?;
                let taken = self.apart.agents.take(agent).await;
                self.apart.check(agent).inspect_err(|_| self.count_limited())?;
                taken
            }
        };
        let message = "too many requests of this kind wait to be worked on; wait as long as Retry-After says";
        taken.ok_or_else(|| {
            self.count_limited();
            Refusal::new(Code::RateLimited, message).with_retry_after(1)
        })
    }

    /// A turn for a request of so many bytes, if it is long.
    pub(crate) async fn turn_if_long(
        &self,
        asker: impl FnOnce() -> Asker,
        bytes: usize,
    ) -> Result<Option<Turn>, Refusal> {
        if bytes > LONG_BYTES { self.turn(&asker()).await.map(Some) } else { Ok(None) }
    }

    /// Reads what an agent asks for and prepares the command: at once if that is little work, else when it is its turn.
    pub(crate) async fn prepare(
        &self,
        asking: &Asking<'_>,
        bytes: usize,
        turn: Option<Turn>,
    ) -> Result<Command, Refusal> {
        let agent = asking.agent.profile.agent_id.as_str();
        let turn = match turn {
            Some(turn) => turn,
            None => {
                let owes = self.apart.check(agent);
                let fuel = if owes.is_ok() { FUEL_AT_ONCE } else { FUEL_FREE };
                if let Some(prepared) = self.gate.prepare_within(asking, fuel) {
                    self.apart.charge(agent, prepared.fuel);
                    return Ok(prepared.command);
                }
                self.turn(&Asker::Agent(agent.to_owned())).await?
            }
        };
        let prepared = long(|| self.gate.prepare_within(asking, u64::MAX));
        drop(turn);
        let prepared = prepared.ok_or_else(|| Refusal::of_code(Code::FaultInternal))?;
        let length = BYTE_FUEL.saturating_mul(u64::try_from(bytes).unwrap_or(u64::MAX));
        self.apart.charge(agent, prepared.fuel.saturating_add(length));
        Ok(prepared.command)
    }

    /// The same once more, under another bundle.
    pub(crate) async fn prepare_again(&self, asking: &Asking<'_>, bundle: &Arc<Bundle>) -> Result<Command, Refusal> {
        let agent = asking.agent.profile.agent_id.as_str();
        let turn = self.turn(&Asker::Agent(agent.to_owned())).await?;
        let prepared = long(|| self.gate.prepare_again(asking, bundle));
        drop(turn);
        self.apart.charge(agent, prepared.fuel);
        Ok(prepared.command)
    }

    /// Does what reads much of the ledger, or takes long for another reason, when it is the asker's turn. The work says
    /// how many entries it has read.
    pub(crate) async fn read_apart<T: Send + 'static>(
        self: &Arc<Self>,
        asker: Asker,
        work: impl FnOnce(&mut usize) -> Result<T, Refusal> + Send + 'static,
    ) -> Result<T, Refusal> {
        let (turn, service) = (self.turn(&asker).await?, Arc::clone(self));
        // The turn goes along: who hangs up does not end the work.
        blocking(move || {
            let mut entries = 0;
            let done = work(&mut entries);
            if let Asker::Agent(agent) = &asker {
                service.apart.charge(agent, ENTRY_FUEL.saturating_mul(u64::try_from(entries).unwrap_or(u64::MAX)));
            }
            drop(turn);
            done
        })
        .await
    }
}

/// Does something that takes long on a thread that no answer waits for.
pub(crate) fn long<T>(work: impl FnOnce() -> T) -> T {
    // A runtime with one thread has nobody to go on meanwhile.
    if Handle::current().runtime_flavor() == RuntimeFlavor::CurrentThread {
        return work();
    }
    tokio::task::block_in_place(work)
}
