//! How many requests a minute: for each known key, and for all together. It decides whether a request is let in before
//! anything of it is read; it does not know what a request asks, and nothing it refuses is recorded. Admins and approvers
//! have no limit and take nothing of that of the others.
//!
//! A window slides: sixty seconds in buckets of one second. The oldest bucket lies in the window with a part only and is
//! counted whole, so no sixty seconds ever hold more than the limit. What is refused does not count, or a client that
//! hammers would never be let in again.

use std::collections::HashMap;
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use axum::extract::{Request, State};
use axum::http::{HeaderMap, HeaderName, HeaderValue, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use interlock_core::bundle::Bundle;
use interlock_core::ledger::Role;
use interlock_core::{Code, Digest};

use crate::Service;
use crate::answer::Refusal;
use crate::apart::long;
use crate::auth::Credentials;

/// How many seconds a window has.
const WINDOW_SECONDS: u64 = 60;
/// The seconds of a window, and the one that lies in it with a part.
const BUCKETS: u64 = WINDOW_SECONDS + 1;
const BUCKETS_LEN: usize = 61;
/// How many keys may have windows of their own; about 300 bytes each.
const WINDOWS_MAX: usize = 100_000;
/// How many locks the windows are spread over.
const SHARDS: usize = 16;

const LIMIT: HeaderName = HeaderName::from_static("ratelimit-limit");
const REMAINING: HeaderName = HeaderName::from_static("ratelimit-remaining");
const RESET: HeaderName = HeaderName::from_static("ratelimit-reset");

/// How many requests a minute are let in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RateLimits {
    /// For each known key, and for everybody without one together.
    pub requests_per_minute_per_key: u32,
    /// For all together, if there is a limit.
    pub requests_per_minute: Option<u32>,
}

impl RateLimits {
    /// What a bundle allows.
    pub fn of(bundle: &Bundle) -> RateLimits {
        let number = |limit: u64| u32::try_from(limit).unwrap_or(u32::MAX);
        RateLimits {
            requests_per_minute_per_key: number(bundle.key_requests_per_minute()),
            requests_per_minute: bundle.requests_per_minute().map(number),
        }
    }
}

impl Default for RateLimits {
    fn default() -> RateLimits {
        RateLimits { requests_per_minute_per_key: 100_000, requests_per_minute: None }
    }
}

/// Whether a request is let in, and how far the limit is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use]
pub struct Verdict {
    /// Whether it is let in.
    pub allowed: bool,
    /// The limit that is nearer, the key's own or that of all.
    pub limit: u32,
    /// How many more are let in at this moment.
    pub remaining: u32,
    /// After how many seconds there is room for more.
    pub reset_seconds: u32,
}

/// What judges how many requests are let in. The windows of this process answer at once; what several processes share has
/// to be asked.
pub trait Limiter: std::fmt::Debug + Send + Sync {
    /// Judges a request that comes now, and counts it if it is let in. `key` is the digest of a key that is known to be
    /// right; whatever has none shares one window.
    fn judge_now(&self, key: Option<Digest>) -> Judging;
}

/// What a limiter says, or will say.
pub enum Judging {
    /// At once.
    Done(Verdict),
    /// As soon as it was asked.
    Asked(Pin<Box<dyn Future<Output = Verdict> + Send>>),
}

impl Limiter for RateLimiter {
    fn judge_now(&self, key: Option<Digest>) -> Judging {
        Judging::Done(self.check_now(key))
    }
}

/// Whether a request was let in. It is judged once, however often it is asked about.
#[derive(Debug, Default)]
pub(crate) struct Admission(Option<Verdict>);

impl Admission {
    /// Says in the head of the answer how far the limit is.
    pub(crate) fn tell(self, response: Response) -> Response {
        match self.0 {
            Some(verdict) => verdict.tell(response),
            None => response,
        }
    }
}

/// The windows of all keys.
#[derive(Debug)]
pub struct RateLimiter {
    limits: RateLimits,
    shards: [Mutex<HashMap<Digest, Window>>; SHARDS],
    /// Shared by whatever came with no key that is known.
    unknown: Mutex<Window>,
    all: Mutex<Window>,
    windows: AtomicUsize,
    windows_max: usize,
    /// The second in which idle windows were last dropped.
    dropped_at: AtomicU64,
    started: Instant,
}

impl RateLimiter {
    /// Empty windows.
    pub fn new(limits: RateLimits) -> RateLimiter {
        RateLimiter::with_windows_max(limits, WINDOWS_MAX)
    }

    /// Empty windows, with room for so many keys.
    pub fn with_windows_max(limits: RateLimits, windows_max: usize) -> RateLimiter {
        RateLimiter {
            limits,
            shards: std::array::from_fn(|_| Mutex::default()),
            unknown: Mutex::default(),
            all: Mutex::default(),
            windows: AtomicUsize::new(0),
            windows_max,
            dropped_at: AtomicU64::new(u64::MAX),
            started: Instant::now(),
        }
    }

    /// Judges a request that comes now. The time is counted from the start of the limiter, so that a machine's clock
    /// that is set neither opens a window nor keeps one shut.
    pub fn check_now(&self, key: Option<Digest>) -> Verdict {
        self.check(key, u64::try_from(self.started.elapsed().as_millis()).unwrap_or(u64::MAX))
    }

    /// Judges a request and counts it if it is let in. `key` is the digest of a key that is known to be right; whatever
    /// has none shares one window. A time before one that was seen already counts as that one.
    pub fn check(&self, key: Option<Digest>, now_ms: u64) -> Verdict {
        let Some(key) = key else { return self.judge(&mut lock(&self.unknown), now_ms) };
        let Some(shard) = self.shards.get(usize::from(key.bytes().first().map_or(0, |byte| byte % 16))) else {
            return self.no_room();
        };
        for _ in 0..2 {
            let mut windows = lock(shard);
            if let Some(window) = windows.get_mut(&key) {
                return self.judge(window, now_ms);
            }
            if self.take_room() {
                return self.judge(windows.entry(key).or_default(), now_ms);
            }
            drop(windows);
            self.drop_idle(now_ms);
        }
        // Forgetting an active window would let its key in beyond the limit.
        self.no_room()
    }

    /// How many keys have windows.
    pub fn windows(&self) -> usize {
        self.windows.load(Ordering::Relaxed)
    }

    fn judge(&self, own: &mut Window, now_ms: u64) -> Verdict {
        own.slide(now_ms);
        let per_key = self.limits.requests_per_minute_per_key;
        let Some(limit) = self.limits.requests_per_minute else {
            let allowed = own.has_room(per_key);
            own.count_if(allowed);
            return own.verdict(allowed, per_key);
        };
        // A key's window is locked before that of all, always.
        let mut all = lock(&self.all);
        all.slide(now_ms);
        let allowed = own.has_room(per_key) && all.has_room(limit);
        own.count_if(allowed);
        all.count_if(allowed);
        let (own, all) = (own.verdict(allowed, per_key), all.verdict(allowed, limit));
        // Fewer left is nearer, then longer until there is more, then the key's own.
        let nearer = |verdict: &Verdict| (verdict.remaining, u32::MAX.wrapping_sub(verdict.reset_seconds));
        if nearer(&own) <= nearer(&all) { own } else { all }
    }

    fn take_room(&self) -> bool {
        let more = |windows: usize| windows.checked_add(1).filter(|more| *more <= self.windows_max);
        self.windows.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more).is_ok()
    }

    /// Drops windows that hold nothing. In one second nothing new becomes idle, so once is enough.
    fn drop_idle(&self, now_ms: u64) {
        let second = second_of(now_ms);
        if self.dropped_at.swap(second, Ordering::Relaxed) == second {
            return;
        }
        for shard in &self.shards {
            let mut windows = lock(shard);
            let before = windows.len();
            windows.retain(|_, window| {
                window.slide(now_ms);
                window.total > 0
            });
            self.windows.fetch_sub(before.saturating_sub(windows.len()), Ordering::Relaxed);
        }
    }

    fn no_room(&self) -> Verdict {
        let limit = self.limits.requests_per_minute_per_key;
        Verdict { remaining: 0, ..Window::default().verdict(false, limit) }
    }
}

/// A lock is poisoned only by a panic, and the code under these has none.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn second_of(ms: u64) -> u64 {
    ms.checked_div(1_000).unwrap_or(0)
}

/// The requests of the last minute.
#[derive(Debug)]
struct Window {
    counts: [u32; BUCKETS_LEN],
    // Invariant: the sum of `counts`.
    total: u32,
    at_ms: u64,
    // Invariant: unless the window is empty, the second of the oldest bucket that holds something.
    oldest: u64,
}

impl Default for Window {
    fn default() -> Window {
        Window { counts: [0; BUCKETS_LEN], total: 0, at_ms: 0, oldest: 0 }
    }
}

impl Window {
    /// Moves on to a time; never back.
    fn slide(&mut self, now_ms: u64) {
        let (from, to) = (second_of(self.at_ms), second_of(now_ms));
        self.at_ms = self.at_ms.max(now_ms);
        for second in (from.saturating_add(1)..=to).take(BUCKETS_LEN) {
            let left = self.bucket(second).map(std::mem::take).unwrap_or(0);
            self.total = self.total.saturating_sub(left);
        }
        if to > from && self.total > 0 {
            let first = to.saturating_sub(WINDOW_SECONDS).max(self.oldest);
            let oldest = (first..=to).find(|second| self.bucket(*second).is_some_and(|count| *count > 0));
            self.oldest = oldest.unwrap_or(to);
        }
    }

    fn bucket(&mut self, second: u64) -> Option<&mut u32> {
        let slot = usize::try_from(second.checked_rem(BUCKETS)?).ok()?;
        self.counts.get_mut(slot)
    }

    fn has_room(&self, limit: u32) -> bool {
        self.total < limit
    }

    fn count_if(&mut self, allowed: bool) {
        let more = u32::from(allowed);
        if self.total == 0 {
            self.oldest = second_of(self.at_ms);
        }
        if let Some(bucket) = self.bucket(second_of(self.at_ms)) {
            *bucket = bucket.saturating_add(more);
            self.total = self.total.saturating_add(more);
        }
    }

    fn verdict(&self, allowed: bool, limit: u32) -> Verdict {
        Verdict { allowed, limit, remaining: limit.saturating_sub(self.total), reset_seconds: self.reset_seconds() }
    }

    /// Until the oldest bucket that holds something has left the window.
    fn reset_seconds(&self) -> u32 {
        let oldest = if self.total > 0 { self.oldest } else { second_of(self.at_ms) };
        let leaves_ms = oldest.saturating_add(BUCKETS).saturating_mul(1_000);
        let left = leaves_ms.saturating_sub(self.at_ms).div_ceil(1_000);
        u32::try_from(left).unwrap_or(u32::MAX)
    }
}

/// Lets a request in or answers 429, and says in either case how far the limit is. Requests for rulings come another way:
/// they know their agent already, so they ask [`Service::consult`] themselves.
pub(crate) async fn limited(State(service): State<Arc<Service>>, request: Request, next: Next) -> Response {
    let key = match service.known_key(request.headers()) {
        Asker::Operator => return next.run(request).await,
        Asker::Key(key) => Some(key),
        Asker::Stranger => None,
    };
    let mut admission = Admission::default();
    let response = match service.consult(&mut admission, key).await {
        Ok(()) => next.run(request).await,
        Err(refusal) => refusal.into_response(),
    };
    admission.tell(response)
}

/// Who asks, as far as limits go.
enum Asker {
    /// Somebody who decides or administers. Whoever has to stop an agent is not held up by how much agents ask, so
    /// these requests are neither limited nor counted.
    Operator,
    /// An agent, or a registrar.
    Key(Digest),
    /// Nobody who is known.
    Stranger,
}

impl Verdict {
    /// Says in the head of an answer how far the limit is.
    pub(crate) fn tell(self, mut response: Response) -> Response {
        let headers = response.headers_mut();
        if !self.allowed {
            headers.insert(header::RETRY_AFTER, decimal(self.reset_seconds));
        }
        headers.insert(LIMIT, decimal(self.limit));
        headers.insert(REMAINING, decimal(self.remaining));
        headers.insert(RESET, decimal(self.reset_seconds));
        response
    }
}

/// A number as a header, in one allocation; the conversion of the library takes two.
fn decimal(number: u32) -> HeaderValue {
    HeaderValue::from_str(itoa::Buffer::new().format(number)).unwrap_or_else(|_| HeaderValue::from(number))
}

impl Service {
    /// Counts a request of a known key, or of nobody known, unless it was counted; a refusal if there are too many.
    pub(crate) async fn consult(&self, admission: &mut Admission, key: Option<Digest>) -> Result<(), Refusal> {
        let verdict = match admission.0 {
            Some(verdict) => verdict,
            None => {
                let verdict = match self.rate.judge_now(key) {
                    Judging::Done(verdict) => verdict,
                    Judging::Asked(asked) => asked.await,
                };
                if !verdict.allowed {
                    self.count_limited();
                }
                *admission.0.insert(verdict)
            }
        };
        let message = "too many requests a minute; wait as long as Retry-After says";
        if verdict.allowed { Ok(()) } else { Err(Refusal::new(Code::RateLimited, message)) }
    }

    /// Counts a request that a limit refused.
    pub(crate) fn count_limited(&self) {
        self.metrics.limited.fetch_add(1, Ordering::Relaxed);
    }

    /// Whose key is in the headers, if it is one that counts: an operator's, or an agent's.
    fn known_key(&self, headers: &HeaderMap) -> Asker {
        let credentials = Credentials::read(headers);
        if let Ok(operator) = self.operator(&credentials) {
            return match operator.role {
                Role::Admin | Role::Approver => Asker::Operator,
                Role::Registrar => Asker::Key(operator.digest),
            };
        }
        let Some(token) = credentials.agent_token(None) else { return Asker::Stranger };
        match long(|| self.gate.ledger().agent_by_token(token)) {
            Ok(Some(_)) => Asker::Key(token),
            Ok(None) | Err(_) => Asker::Stranger,
        }
    }
}
