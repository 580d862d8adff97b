//! A bounded queue with a thread of its own behind it: whoever puts something in never waits, and what does not fit is
//! counted. It does not know what it carries.

use std::io;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, TrySendError, channel, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// How long to wait for room before the last item is offered again.
const ROOM_PAUSE: Duration = Duration::from_millis(5);

/// The end where things are put in.
#[derive(Debug)]
pub(crate) struct Queue<T> {
    sender: SyncSender<Item<T>>,
    shared: Arc<Shared>,
    /// Hears from the thread only that it has ended.
    ended: Mutex<Receiver<()>>,
}

/// The end where the thread takes them out.
pub(crate) struct Taking<T> {
    receiver: Receiver<Item<T>>,
    shared: Arc<Shared>,
}

#[derive(Debug, Default)]
struct Shared {
    dropped: AtomicU64,
    closing: AtomicBool,
}

enum Item<T> {
    One(T),
    Last,
}

/// What came out.
pub(crate) enum Taken<T> {
    One(T),
    /// Nothing came in time.
    Nothing,
    /// Nothing will come any more.
    End,
}

impl<T: Send + 'static> Queue<T> {
    /// Starts the thread that takes things out.
    pub(crate) fn start(name: &str, len: usize, work: impl FnOnce(&Taking<T>) + Send + 'static) -> io::Result<Self> {
        let (sender, receiver) = sync_channel(len);
        let (ending, ended) = channel();
        let shared = Arc::<Shared>::default();
        let taking = Taking { receiver, shared: Arc::clone(&shared) };
        thread::Builder::new().name(name.to_owned()).spawn(move || {
            work(&taking);
            drop(ending);
        })?;
        Ok(Queue { sender, shared, ended: Mutex::new(ended) })
    }

    /// Puts something in, or counts it as dropped.
    pub(crate) fn put(&self, item: T) {
        if self.sender.try_send(Item::One(item)).is_err() {
            self.shared.count_dropped(1);
        }
    }

    /// How many were dropped so far.
    pub(crate) fn dropped(&self) -> u64 {
        self.shared.dropped.load(Ordering::Relaxed)
    }

    /// Lets the thread finish what is in the queue, but waits no longer than this.
    pub(crate) fn close(&self, within: Duration) {
        self.shared.closing.store(true, Ordering::Release);
        let began = Instant::now();
        while let Err(TrySendError::Full(_)) = self.sender.try_send(Item::Last) {
            if began.elapsed() >= within {
                return;
            }
            thread::sleep(ROOM_PAUSE);
        }
        let ended = self.ended.lock().unwrap_or_else(PoisonError::into_inner);
        // Either way there is nothing left to do.
        let _ = ended.recv_timeout(within.saturating_sub(began.elapsed()));
    }
}

impl<T> Taking<T> {
    /// The next item, however long it takes to come.
    pub(crate) fn next(&self) -> Taken<T> {
        match self.receiver.recv() {
            Ok(Item::One(item)) => Taken::One(item),
            Ok(Item::Last) | Err(_) => Taken::End,
        }
    }

    /// The next item, if it comes in time.
    pub(crate) fn next_within(&self, time: Duration) -> Taken<T> {
        match self.receiver.recv_timeout(time) {
            Ok(Item::One(item)) => Taken::One(item),
            Err(RecvTimeoutError::Timeout) => Taken::Nothing,
            Ok(Item::Last) | Err(RecvTimeoutError::Disconnected) => Taken::End,
        }
    }

    /// Counts what came out and could not be delivered.
    pub(crate) fn count_dropped(&self, count: u64) {
        self.shared.count_dropped(count);
    }

    /// Whether somebody waits for the end.
    pub(crate) fn is_closing(&self) -> bool {
        self.shared.closing.load(Ordering::Acquire)
    }
}

impl Shared {
    fn count_dropped(&self, count: u64) {
        self.dropped.fetch_add(count, Ordering::Relaxed);
    }
}
