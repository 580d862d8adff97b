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

/// `2026-11-15T12:00:30.000Z`.
pub fn rfc3339(at: Millis) -> String {
    const DAY_MS: u64 = 86_400_000;
    let part = |value: u64, by: u64| (value.checked_div(by).unwrap_or(0), value.checked_rem(by).unwrap_or(0));
    let (days, in_day) = part(at, DAY_MS);
    let (hours, rest) = part(in_day, 3_600_000);
    let (minutes, rest) = part(rest, 60_000);
    let (seconds, millis) = part(rest, 1_000);
    let (year, month, day) = date(days);
    format!("{year:04}-{month:02}-{day:02}T{hours:02}:{minutes:02}:{seconds:02}.{millis:03}Z")
}

/// The date so many days after 1970-01-01. Years are counted from March, so that leap days come last.
#[allow(clippy::arithmetic_side_effects, reason = "bounded by u64::MAX milliseconds, which are 2e11 days")]
fn date(days: u64) -> (u64, u64, u64) {
    let days = days + 719_468;
    let (era, of_era) = (days / 146_097, days % 146_097);
    let year_of_era = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted = (5 * of_year + 2) / 153;
    let day = of_year - (153 * shifted + 2) / 5 + 1;
    let month = if shifted < 10 { shifted + 3 } else { shifted - 9 };
    (year_of_era + era * 400 + u64::from(month <= 2), month, day)
}

/// Reads `2026-11-15`, `2026-11-15T12:00:30Z`, the same with a fraction or an offset, or milliseconds since 1970.
///
/// ```
/// use interlock_runtime::clock::{parse_time, rfc3339};
///
/// assert_eq!(parse_time("2026-11-15T12:00:30.25Z").map(rfc3339).as_deref(), Some("2026-11-15T12:00:30.250Z"));
/// assert_eq!(parse_time("2026-11-15T13:00:30+01:00"), parse_time("2026-11-15T12:00:30Z"));
/// assert_eq!(parse_time("2026-02-29"), None);
/// ```
pub fn parse_time(text: &str) -> Option<Millis> {
    if !text.is_empty() && text.len() <= 15 && text.bytes().all(|byte| byte.is_ascii_digit()) {
        return text.parse().ok();
    }
    let number = |part: &str, digits: usize, max: u64| {
        let plain = part.len() == digits && part.bytes().all(|byte| byte.is_ascii_digit());
        part.parse::<u64>().ok().filter(|number| plain && *number <= max)
    };
    let (day, rest) = match text.split_once(['T', 't', ' ']) {
        Some((day, rest)) => (day, Some(rest)),
        None => (text, None),
    };
    let mut parts = day.splitn(3, '-');
    let (year, month, of_month) =
        (number(parts.next()?, 4, 9_999)?, number(parts.next()?, 2, 12)?, number(parts.next()?, 2, 31)?);
    let days = days_of(year, month, of_month)?;
    let start = days.checked_mul(86_400_000)?;
    let Some(rest) = rest else { return Some(start) };
    let split = rest.find(['Z', 'z', '+', '-'])?;
    let (clock, zone) = rest.split_at_checked(split)?;
    let (clock, fraction) = clock.split_once('.').unwrap_or((clock, ""));
    let mut parts = clock.splitn(3, ':');
    let (hours, minutes, seconds) =
        (number(parts.next()?, 2, 23)?, number(parts.next()?, 2, 59)?, number(parts.next()?, 2, 59)?);
    let plain = fraction.len() <= 9 && fraction.bytes().all(|byte| byte.is_ascii_digit());
    let millis: u64 = format!("{fraction:0<3}").get(..3).filter(|_| plain)?.parse().ok()?;
    let minutes = hours.checked_mul(60)?.checked_add(minutes)?;
    let at = start.checked_add(minutes.checked_mul(60)?.checked_add(seconds)?.checked_mul(1_000)?)?;
    let at = at.checked_add(millis)?;
    if zone.eq_ignore_ascii_case("z") {
        return Some(at);
    }
    let (sign, offset) = zone.split_at_checked(1)?;
    let (hours, minutes) = offset.split_once(':')?;
    let minutes = number(hours, 2, 23)?.checked_mul(60)?.checked_add(number(minutes, 2, 59)?)?;
    let offset = minutes.checked_mul(60_000)?;
    if sign == "+" { at.checked_sub(offset) } else { at.checked_add(offset) }
}

/// Days since 1970-01-01 of a date that exists.
fn days_of(year: u64, month: u64, of_month: u64) -> Option<u64> {
    if year < 1970 || month == 0 || of_month == 0 {
        return None;
    }
    // The day is found from its number, which is easier to be sure of.
    let guess = year.checked_sub(1970)?.checked_mul(365)?;
    (guess..guess.checked_add(2_500)?).find(|days| date(*days) == (year, month, of_month))
}
