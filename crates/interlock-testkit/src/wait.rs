//! Waiting for what happens, never for time to pass: a busy machine makes a test slow, and nothing else.

use std::thread;
use std::time::{Duration, Instant};

/// Nothing that works takes as long, however busy the machine is; what does hangs.
pub const HANG: Duration = Duration::from_secs(900);
/// Between two looks.
const PAUSE: Duration = Duration::from_millis(5);

/// Looks until it holds.
pub fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !holds() {
        assert!(begun.elapsed() < HANG, "it never came to be that {what}");
        thread::sleep(PAUSE);
    }
}
