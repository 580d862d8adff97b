//! Times as people write and read them. Only what the commands need: two forms to read, and durations to show.

use interlock_core::action::Millis;
use interlock_core::instant;

const SECOND: Millis = 1_000;
const MINUTE: Millis = 60 * SECOND;
const HOUR: Millis = 60 * MINUTE;
const DAY: Millis = 24 * HOUR;

/// Reads `Sun, 15 Nov 2026 12:00:30 GMT`, as HTTP has it.
pub(crate) fn parse_http_date(text: &str) -> Option<Millis> {
    const MONTHS: [&str; 12] = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
    let mut words = text.strip_suffix(" GMT")?.split(' ').skip(1);
    let day = words.next()?;
    let month = words.next()?;
    let month = MONTHS.iter().position(|name| *name == month)?.checked_add(1)?;
    let year = words.next()?;
    let clock = words.next()?;
    instant::parse(&format!("{year}-{month:02}-{day:0>2}T{clock}Z"))
}

/// What `--from` and `--to` say: a time that the server reads, or a while ago as in `15m`, `2h`, `7d`.
pub(crate) fn parse_bound(text: &str, now: Millis) -> String {
    let ago = text.split_at_checked(text.len().saturating_sub(1)).and_then(|(count, unit)| {
        let unit = match unit {
            "s" => SECOND,
            "m" => MINUTE,
            "h" => HOUR,
            "d" => DAY,
            _ => return None,
        };
        count.parse::<u64>().ok()?.checked_mul(unit)
    });
    ago.map_or_else(|| text.to_owned(), |ago| now.saturating_sub(ago).to_string())
}

/// `2026-11-15 12:00:30` from a time as the service writes it; anything else stays as it is.
pub(crate) fn short(text: &str) -> String {
    match (instant::parse(text), text.get(..10), text.get(11..19)) {
        (Some(_), Some(date), Some(clock)) => format!("{date} {clock}"),
        _ => text.to_owned(),
    }
}

/// `12 min 30 s`: two units at most.
pub(crate) fn duration(millis: Millis) -> String {
    let (days, hours) = (millis / DAY, millis % DAY / HOUR);
    let (minutes, seconds) = (millis % HOUR / MINUTE, millis % MINUTE / SECOND);
    match (days, hours, minutes) {
        (0, 0, 0) => format!("{seconds} s"),
        (0, 0, _) => format!("{minutes} min {seconds} s"),
        (0, _, _) => format!("{hours} h {minutes} min"),
        _ => format!("{days} d {hours} h"),
    }
}

/// How long until then: `12 min 30 s`, or `none` once it has passed.
pub(crate) fn left(until: &str, now: Millis) -> String {
    match instant::parse(until) {
        Some(until) if until > now => duration(until - now),
        Some(_) => "none".to_owned(),
        None => "unknown".to_owned(),
    }
}
