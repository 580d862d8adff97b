//! Time and chance, as inputs.

use std::io;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

use interlock_core::action::Millis;
use ring::rand::{SecureRandom, SystemRandom};

/// Tells the time.
pub trait Clock: Send + Sync {
    /// Milliseconds since 1970, UTC.
    fn now(&self) -> Millis;
}

/// The machine's clock.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    fn now(&self) -> Millis {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Millis::try_from(since.as_millis()).unwrap_or(Millis::MAX)
    }
}

/// Draws random bytes.
pub trait Entropy: Send + Sync {
    /// Fills a buffer; a source that cannot is a fault, never a guess.
    fn fill(&self, bytes: &mut [u8]) -> io::Result<()>;
}

/// The system's source.
#[derive(Clone)]
pub struct SystemEntropy {
    source: SystemRandom,
    drawn: Arc<Mutex<Drawn>>,
}

/// So many bytes or fewer hide a number and keep no secret; they are drawn for many at a time, because asking the system
/// costs each of them more than using them does. Whatever is longer, keys, tokens and salts, is asked for when it is due.
const NONCE_BYTES_MAX: usize = 8;
const DRAWN_BYTES: usize = 1024;

/// Bytes that were drawn and not used yet.
struct Drawn {
    bytes: [u8; DRAWN_BYTES],
    left: usize,
}

impl std::fmt::Debug for SystemEntropy {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SystemEntropy").finish_non_exhaustive()
    }
}

impl Default for SystemEntropy {
    fn default() -> SystemEntropy {
        SystemEntropy::new()
    }
}

impl SystemEntropy {
    /// The system's source.
    pub fn new() -> SystemEntropy {
        let drawn = Drawn { bytes: [0; DRAWN_BYTES], left: 0 };
        SystemEntropy { source: SystemRandom::new(), drawn: Arc::new(Mutex::new(drawn)) }
    }

    fn draw(&self, bytes: &mut [u8]) -> io::Result<()> {
        self.source.fill(bytes).map_err(|_| io::Error::other("the system has no random bytes"))
    }
}

impl Entropy for SystemEntropy {
    fn fill(&self, bytes: &mut [u8]) -> io::Result<()> {
        if bytes.len() > NONCE_BYTES_MAX {
            return self.draw(bytes);
        }
        let mut drawn = self.drawn.lock().unwrap_or_else(PoisonError::into_inner);
        if drawn.left < bytes.len() {
            // Nothing is left until all of it is new.
            drawn.left = 0;
            self.draw(&mut drawn.bytes)?;
            drawn.left = DRAWN_BYTES;
        }
        let rest = drawn.left.saturating_sub(bytes.len());
        for (byte, fresh) in bytes.iter_mut().zip(drawn.bytes.iter_mut().skip(rest)) {
            *byte = std::mem::take(fresh);
        }
        drawn.left = rest;
        Ok(())
    }
}

/// A prefix and 128 random bits.
pub(crate) fn new_id(prefix: &str, entropy: &dyn Entropy) -> io::Result<String> {
    let mut bytes = [0; 16];
    entropy.fill(&mut bytes)?;
    Ok(format!("{prefix}{}", hex(&bytes)))
}

/// Lower-case hexadecimal digits.
pub fn hex(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len().saturating_mul(2));
    push_hex(&mut text, bytes);
    text
}

/// Lower-case hexadecimal digits, after whatever there is already.
pub(crate) fn push_hex(text: &mut String, bytes: &[u8]) {
    let digits = bytes.iter().flat_map(|byte| [byte >> 4, byte & 0xF]);
    text.extend(digits.filter_map(|digit| char::from_digit(u32::from(digit), 16)));
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn nothing_that_was_drawn_is_given_twice() {
        let entropy = SystemEntropy::new();
        let mut seen = BTreeSet::new();
        for turn in 0..1000 {
            // Other lengths in between, so that what is drawn at a time does not end evenly.
            let mut odd = [0; 3];
            let mut nonce = [0; NONCE_BYTES_MAX];
            let mut secret = [0; 32];
            assert!(entropy.fill(&mut odd).is_ok() && entropy.clone().fill(&mut nonce).is_ok(), "turn {turn}");
            assert!(entropy.fill(&mut secret).is_ok() && secret != [0; 32], "turn {turn}");
            assert!(nonce != [0; NONCE_BYTES_MAX] && seen.insert(nonce), "turn {turn}");
        }
    }
}
