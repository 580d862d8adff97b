//! Whose turn it is to work long. There are few turns, so that what takes long never takes every processor; who waits for
//! one waits behind its own requests and one of each of the others. It does not know what is worked on.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::oneshot;

/// How many requests of one asker may wait for a turn.
pub(crate) const WAITING_MAX: usize = 32;

/// A number of turns, and who waits for one.
#[derive(Debug)]
pub struct Turns(Mutex<State>);

#[derive(Debug)]
struct State {
    // Invariant: nobody waits while a turn is free.
    free: usize,
    /// Who waits, by asker, in the order of their coming.
    waiting: HashMap<String, VecDeque<oneshot::Sender<Turn>>>,
    /// Who is next: each asker who waits, once.
    round: VecDeque<String>,
}

/// Leave to work, until it is dropped.
#[derive(Debug)]
pub struct Turn {
    /// `None` once it was handed on.
    turns: Option<Arc<Turns>>,
}

impl Turns {
    /// So many turns, and at least one.
    pub fn new(count: usize) -> Arc<Turns> {
        Arc::new(Turns(Mutex::new(State { free: count.max(1), waiting: HashMap::new(), round: VecDeque::new() })))
    }

    /// A turn, if one is free.
    pub fn try_take(self: &Arc<Self>) -> Option<Turn> {
        self.lock().take_free().then(|| Turn { turns: Some(Arc::clone(self)) })
    }

    /// Waits for a turn; `None` if too many requests of this asker wait already.
    pub async fn take(self: &Arc<Self>, asker: &str) -> Option<Turn> {
        let given = {
            let mut state = self.lock();
            if state.take_free() {
                return Some(Turn { turns: Some(Arc::clone(self)) });
            }
            state.wait(asker)?
        };
        // A turn that is given to somebody who has left is dropped with what it was given through, and so handed on.
        given.await.ok()
    }

    /// How many requests wait.
    pub fn waiting(&self) -> usize {
        self.lock().waiting.values().map(VecDeque::len).fold(0, usize::saturating_add)
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // Poisoned only by a panic, and the code under it has none.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Hands a turn on to who is next, or keeps it.
    fn hand_on(self: &Arc<Self>) {
        loop {
            let next = {
                let mut state = self.lock();
                let next = state.next();
                if next.is_none() {
                    state.free = state.free.saturating_add(1);
                }
                next
            };
            let Some(next) = next else { return };
            match next.send(Turn { turns: Some(Arc::clone(self)) }) {
                Ok(()) => return,
                // It has left in this moment.
                Err(mut turn) => turn.turns = None,
            }
        }
    }
}

impl State {
    fn take_free(&mut self) -> bool {
        let left = self.free.checked_sub(1);
        self.free = left.unwrap_or(0);
        left.is_some()
    }

    fn wait(&mut self, asker: &str) -> Option<oneshot::Receiver<Turn>> {
        let (give, given) = oneshot::channel();
        match self.waiting.get_mut(asker) {
            Some(queue) => {
                if queue.len() >= WAITING_MAX {
                    // Those who hung up wait for nothing.
                    queue.retain(|waiting| !waiting.is_closed());
                }
                if queue.len() >= WAITING_MAX {
                    return None;
                }
                queue.push_back(give);
            }
            None => {
                self.waiting.insert(asker.to_owned(), VecDeque::from([give]));
                self.round.push_back(asker.to_owned());
            }
        }
        Some(given)
    }

    fn next(&mut self) -> Option<oneshot::Sender<Turn>> {
        while let Some(asker) = self.round.pop_front() {
            let Some(queue) = self.waiting.get_mut(&asker) else { continue };
            let next = queue.pop_front();
            if queue.is_empty() {
                self.waiting.remove(&asker);
            } else {
                self.round.push_back(asker);
            }
            if let Some(next) = next.filter(|next| !next.is_closed()) {
                return Some(next);
            }
        }
        None
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        if let Some(turns) = self.turns.take() {
            turns.hand_on();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::future::Future;
    use std::pin::{Pin, pin};
    use std::task::{Context, Poll, Waker};

    use super::*;

    type Asking = Pin<Box<dyn Future<Output = Option<Turn>>>>;

    /// Asks, and has to wait.
    fn asked(turns: &Arc<Turns>, asker: &'static str) -> Asking {
        let turns = Arc::clone(turns);
        let mut asking: Asking = Box::pin(async move { turns.take(asker).await });
        assert!(is_given(&mut asking).is_none(), "a turn was free");
        asking
    }

    fn is_given(asking: &mut Asking) -> Option<Turn> {
        match asking.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(turn) => Some(turn.expect("a turn")),
            Poll::Pending => None,
        }
    }

    fn free(turns: &Arc<Turns>) -> Turn {
        let turn = turns.try_take().expect("a free turn");
        assert!(turns.try_take().is_none());
        turn
    }

    #[test]
    fn who_asks_much_waits_behind_who_asks_little() {
        let turns = Turns::new(1);
        let mut turn = free(&turns);
        let asking = ["busy", "busy", "busy", "busy", "calm", "calm", "other"];
        let mut waiting: Vec<_> = asking.into_iter().map(|asker| (asker, asked(&turns, asker))).collect();
        assert_eq!(turns.waiting(), 7);
        let mut order = Vec::new();
        while !waiting.is_empty() {
            drop(turn);
            let given = waiting.iter_mut().enumerate().find_map(|(at, (_, asking))| Some((at, is_given(asking)?)));
            let (at, next) = given.expect("a turn");
            order.push(waiting.remove(at).0);
            turn = next;
        }
        assert_eq!(order, ["busy", "calm", "other", "busy", "calm", "busy", "busy"]);
        drop(turn);
        drop(free(&turns));
    }

    #[test]
    fn no_more_of_one_asker_wait_than_may() {
        let turns = Turns::new(1);
        let turn = free(&turns);
        let mut waiting: Vec<_> = (0..WAITING_MAX).map(|_| asked(&turns, "a")).collect();
        let refused = pin!(turns.take("a")).poll(&mut Context::from_waker(Waker::noop()));
        assert!(matches!(refused, Poll::Ready(None)));
        let _another = asked(&turns, "b");
        // Who hangs up makes room.
        drop(waiting.pop());
        waiting.push(asked(&turns, "a"));
        drop(turn);
        assert!(is_given(waiting.first_mut().expect("the first")).is_some());
    }

    #[test]
    fn a_turn_of_somebody_who_left_is_the_next_ones() {
        let turns = Turns::new(1);
        let turn = free(&turns);
        let (left, before, mut stays) = (asked(&turns, "a"), asked(&turns, "b"), asked(&turns, "c"));
        drop(left);
        drop(turn);
        // It was given to `b`, who leaves without having looked.
        assert!(is_given(&mut stays).is_none());
        drop(before);
        assert!(is_given(&mut stays).is_some());
        drop(stays);
        drop(free(&turns));
    }
}
