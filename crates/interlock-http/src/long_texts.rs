//! Long texts take long to read. Who sends them waits for one another; everybody else does not wait for them.

use std::thread::available_parallelism;

use interlock_runtime::gate::Asking;
use interlock_runtime::ledger::Command;
use tokio::runtime::{Handle, RuntimeFlavor};
use tokio::sync::Semaphore;

use crate::Service;

/// A request with more is read apart from the others.
const LONG_BYTES: usize = 2_048;

/// How many long texts may be read at once: half of the processors.
#[derive(Debug)]
pub(crate) struct LongTexts(Semaphore);

impl Default for LongTexts {
    fn default() -> LongTexts {
        let processors = available_parallelism().map_or(1, usize::from);
        LongTexts(Semaphore::new(processors.div_ceil(2)))
    }
}

impl Service {
    /// Reads what an agent asks for, in a request of so many bytes, and prepares the command.
    pub(crate) async fn prepare(&self, asking: &Asking<'_>, bytes: usize) -> Command {
        // A runtime with one thread has nobody to go on meanwhile.
        if bytes <= LONG_BYTES || Handle::current().runtime_flavor() == RuntimeFlavor::CurrentThread {
            return self.gate.prepare(asking);
        }
        let _turn = self.long_texts.0.acquire().await;
        tokio::task::block_in_place(|| self.gate.prepare(asking))
    }
}
