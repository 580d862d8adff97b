//! One writer of a store at a time, across processes; readers share.

use std::fs::{File, OpenOptions};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::time::{Duration, Instant};

use rustix::fs::FlockOperation;
use rustix::io::Errno;

use crate::fault::KeepFault;

/// How often a lock that another holds is asked for again.
const PAUSE: Duration = Duration::from_millis(2);

/// Held until it is dropped. The kernel lets go of it when the process dies.
#[derive(Debug)]
pub(crate) struct Lock(#[expect(dead_code, reason = "closing the file is what lets go")] File);

impl Lock {
    /// To write: nobody else reads or writes.
    pub(crate) fn exclusive(store: &Path, wait_ms_max: u64) -> Result<Lock, KeepFault> {
        Lock::take(store, FlockOperation::NonBlockingLockExclusive, wait_ms_max)
    }

    /// To read: nobody takes away what is read.
    pub(crate) fn shared(store: &Path, wait_ms_max: u64) -> Result<Lock, KeepFault> {
        Lock::take(store, FlockOperation::NonBlockingLockShared, wait_ms_max)
    }

    fn take(store: &Path, how: FlockOperation, wait_ms_max: u64) -> Result<Lock, KeepFault> {
        let path = store.join("lock");
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(true).truncate(false).mode(0o600);
        let file = options.open(&path).map_err(|source| KeepFault::write(&path, source))?;
        let began = Instant::now();
        loop {
            match rustix::fs::flock(&file, how) {
                Ok(()) => return Ok(Lock(file)),
                Err(Errno::WOULDBLOCK | Errno::INTR) => {}
                Err(why) => return Err(KeepFault::write(&path, why)),
            }
            if began.elapsed() >= Duration::from_millis(wait_ms_max) {
                return Err(KeepFault::Busy { store: store.to_owned(), waited_ms: wait_ms_max });
            }
            std::thread::sleep(PAUSE);
        }
    }
}
