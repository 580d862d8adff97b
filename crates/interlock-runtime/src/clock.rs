//! Time and chance, as inputs.

use std::io;
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
#[derive(Debug, Clone)]
pub struct SystemEntropy(SystemRandom);

impl Default for SystemEntropy {
    fn default() -> SystemEntropy {
        SystemEntropy::new()
    }
}

impl SystemEntropy {
    /// The system's source.
    pub fn new() -> SystemEntropy {
        SystemEntropy(SystemRandom::new())
    }
}

impl Entropy for SystemEntropy {
    fn fill(&self, bytes: &mut [u8]) -> io::Result<()> {
        self.0.fill(bytes).map_err(|_| io::Error::other("the system has no random bytes"))
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
    use std::fmt::Write;
    bytes.iter().fold(String::with_capacity(bytes.len().saturating_mul(2)), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}
