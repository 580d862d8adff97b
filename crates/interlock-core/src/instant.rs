//! Times as people and other programs write them: RFC 3339, to the millisecond.
//!
//! What time it is, nobody here knows.

use crate::action::Millis;

const DAY_MS: u64 = 86_400_000;
const HOUR_MS: u64 = 3_600_000;
const MINUTE_MS: u64 = 60_000;
/// The last year that has four digits.
const YEAR_MAX: u64 = 9_999;
/// The last moment of that year, and the last that RFC 3339 can say.
const LAST: Millis = 253_402_300_799_999;

/// A time in UTC, such as `2026-11-15T12:00:30.000Z`. Whatever is later than the year 9999 is that year's last moment:
/// what follows would not be a date to any reader.
///
/// ```
/// use interlock_core::instant::to_rfc3339;
///
/// assert_eq!(to_rfc3339(1_794_744_030_000), "2026-11-15T12:00:30.000Z");
/// assert_eq!(to_rfc3339(u64::MAX), "9999-12-31T23:59:59.999Z");
/// ```
pub fn to_rfc3339(at: Millis) -> String {
    let at = at.min(LAST);
    let part = |value: u64, by: u64| (value.checked_div(by).unwrap_or(0), value.checked_rem(by).unwrap_or(0));
    let (days, in_day) = part(at, DAY_MS);
    let (hours, rest) = part(in_day, HOUR_MS);
    let (minutes, rest) = part(rest, MINUTE_MS);
    let (seconds, millis) = part(rest, 1_000);
    let (year, month, day) = date(days);
    format!("{year:04}-{month:02}-{day:02}T{hours:02}:{minutes:02}:{seconds:02}.{millis:03}Z")
}

/// Reads a time: RFC 3339, a date (its first moment in UTC), or milliseconds since 1970.
///
/// ```
/// use interlock_core::instant::parse;
///
/// assert_eq!(parse("2026-11-15T12:00:30Z"), Some(1_794_744_030_000));
/// assert_eq!(parse("2026-11-15T14:00:30.25+02:00"), Some(1_794_744_030_250));
/// assert_eq!(parse("2026-11-15"), Some(1_794_700_800_000));
/// assert_eq!(parse("1794744030000"), Some(1_794_744_030_000));
/// assert_eq!(parse("2026-02-30"), None);
/// assert_eq!(parse("yesterday"), None);
/// ```
pub fn parse(text: &str) -> Option<Millis> {
    if !text.is_ascii() {
        return None;
    }
    if text.bytes().all(|byte| byte.is_ascii_digit()) {
        // Nothing at all is not a number either.
        return text.parse().ok();
    }
    let (date, rest) = text.split_at_checked(10)?;
    let midnight = midnight_of(date)?;
    if rest.is_empty() {
        return Some(midnight);
    }
    let (time, rest) = rest.strip_prefix(['T', 't', ' '])?.split_at_checked(8)?;
    let &[h, hh, b':', m, mm, b':', s, ss] = time.as_bytes() else { return None };
    let (hours, minutes, seconds) = (number(&[h, hh])?, number(&[m, mm])?, number(&[s, ss])?);
    if hours > 23 || minutes > 59 || seconds > 59 {
        return None;
    }
    let (millis, zone) = fraction(rest)?;
    let within = hours.checked_mul(HOUR_MS)?.checked_add(minutes.checked_mul(MINUTE_MS)?)?;
    let within = within.checked_add(seconds.checked_mul(1_000)?)?.checked_add(millis)?;
    let local = midnight.checked_add(within)?;
    match zone {
        "Z" | "z" => Some(local),
        _ => {
            let &[sign @ (b'+' | b'-'), h, hh, b':', m, mm] = zone.as_bytes() else { return None };
            let (hours, minutes) = (number(&[h, hh])?, number(&[m, mm])?);
            if hours > 23 || minutes > 59 {
                return None;
            }
            let ahead = hours.checked_mul(HOUR_MS)?.checked_add(minutes.checked_mul(MINUTE_MS)?)?;
            if sign == b'+' { local.checked_sub(ahead) } else { local.checked_add(ahead) }
        }
    }
}

/// The milliseconds of `.25`, and what follows. Finer digits are read and dropped.
fn fraction(text: &str) -> Option<(u64, &str)> {
    let Some(digits) = text.strip_prefix('.') else { return Some((0, text)) };
    let end = digits.bytes().position(|byte| !byte.is_ascii_digit())?;
    let (digits, rest) = digits.split_at_checked(end).filter(|(digits, _)| !digits.is_empty())?;
    let millis = digits.bytes().chain(*b"00").take(3).collect::<Vec<_>>();
    Some((number(&millis)?, rest))
}

fn number(digits: &[u8]) -> Option<u64> {
    digits.iter().try_fold(0_u64, |value, digit| {
        let digit = digit.checked_sub(b'0').filter(|digit| *digit <= 9)?;
        value.checked_mul(10)?.checked_add(u64::from(digit))
    })
}

fn midnight_of(text: &str) -> Option<Millis> {
    let &[y, yy, yyy, yyyy, b'-', m, mm, b'-', d, dd] = text.as_bytes() else { return None };
    let (year, month, day) = (number(&[y, yy, yyy, yyyy])?, number(&[m, mm])?, number(&[d, dd])?);
    if !(1970..=YEAR_MAX).contains(&year) || !(1..=12).contains(&month) || !(1..=31).contains(&day) {
        return None;
    }
    let days = days_until(year, month, day);
    // The thirtieth of February would be a day in March.
    (date(days) == (year, month, day)).then(|| days.checked_mul(DAY_MS)).flatten()
}

/// The date so many days after 1970-01-01. Years are counted from March, so that leap days come last.
#[expect(clippy::arithmetic_side_effects, reason = "bounded by u64::MAX milliseconds, which are 2e11 days")]
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

/// The days from 1970-01-01 until a date; the reverse of [`date`].
#[expect(clippy::arithmetic_side_effects, reason = "years lie between 1970 and 9999, months and days are small")]
fn days_until(year: u64, month: u64, day: u64) -> u64 {
    let year = year - u64::from(month <= 2);
    let (era, year_of_era) = (year / 400, year % 400);
    let shifted = if month > 2 { month - 3 } else { month + 9 };
    let of_year = (153 * shifted + 2) / 5 + day - 1;
    let of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + of_year;
    era * 146_097 + of_era - 719_468
}

#[cfg(test)]
mod tests {
    use super::{DAY_MS, parse, to_rfc3339};

    #[test]
    fn every_day_until_2100_and_some_moments_are_read_back() {
        for day in 0..=47_482 {
            for at in [day * DAY_MS, day * DAY_MS + 45_296_789] {
                let text = to_rfc3339(at);
                assert_eq!(parse(&text), Some(at), "{text}");
                assert_eq!(text.get(..10).and_then(parse), Some(day * DAY_MS), "{text}");
            }
        }
        assert_eq!(parse(""), None);
        assert_eq!(to_rfc3339(47_482 * DAY_MS), "2100-01-01T00:00:00.000Z");
        assert_eq!(parse("9999-12-31T23:59:59.999Z").map(to_rfc3339).as_deref(), Some("9999-12-31T23:59:59.999Z"));
    }

    #[test]
    fn what_is_no_time_is_refused() {
        for text in [
            "2026-11",
            "2026-13-01",
            "2026-00-10",
            "2026-11-31",
            "2025-02-29",
            "1969-12-31",
            "2026-11-15T",
            "2026-11-15T12:00Z",
            "2026-11-15T24:00:00Z",
            "2026-11-15T12:60:00Z",
            "2026-11-15T12:00:60Z",
            "2026-11-15T12:00:00",
            "2026-11-15T12:00:00.Z",
            "2026-11-15T12:00:00.5",
            "2026-11-15T12:00:00+2:00",
            "2026-11-15T12:00:00+24:00",
            "2026-11-15T12:00:00Zx",
            "1970-01-01T00:00:00+01:00",
            "-5",
            "+5",
            "1e3",
            "2026-11-15t12:00:00Ｚ",
            "99999999999999999999999",
        ] {
            assert_eq!(parse(text), None, "{text}");
        }
    }
}
