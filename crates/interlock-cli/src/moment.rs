//! Times as people write and read them. Only what the commands need: two forms to read, and durations to show.

use interlock_core::action::Millis;

const SECOND: Millis = 1_000;
const MINUTE: Millis = 60 * SECOND;
const HOUR: Millis = 60 * MINUTE;
const DAY: Millis = 24 * HOUR;

/// Reads `2026-11-15T12:00:30.000Z`, as the service writes it.
pub(crate) fn parse_rfc3339(text: &str) -> Option<Millis> {
    let (date, time) = text.strip_suffix('Z')?.split_once('T')?;
    let mut date = date.splitn(3, '-').map(|part| part.parse::<u64>().ok());
    let (year, month, day) = (date.next()??, date.next()??, date.next()??);
    let (clock, millis) = time.split_once('.').unwrap_or((time, "0"));
    let mut clock = clock.splitn(3, ':').map(|part| part.parse::<u64>().ok());
    let (hour, minute, second) = (clock.next()??, clock.next()??, clock.next()??);
    let millis: u64 = format!("{millis:0<3}").get(..3)?.parse().ok()?;
    moment(year, month, day, hour, minute, second)?.checked_add(millis)
}

/// Reads `Sun, 15 Nov 2026 12:00:30 GMT`, as HTTP has it.
pub(crate) fn parse_http_date(text: &str) -> Option<Millis> {
    const MONTHS: [&str; 12] = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
    let mut words = text.strip_suffix(" GMT")?.split(' ').skip(1);
    let day = words.next()?.parse().ok()?;
    let month = words.next()?;
    let month = MONTHS.iter().position(|name| *name == month)?.checked_add(1)?;
    let year = words.next()?.parse().ok()?;
    let mut clock = words.next()?.splitn(3, ':').map(|part| part.parse::<u64>().ok());
    let (hour, minute, second) = (clock.next()??, clock.next()??, clock.next()??);
    moment(year, u64::try_from(month).ok()?, day, hour, minute, second)
}

/// Days are counted from March, so that leap days come last.
fn moment(year: u64, month: u64, day: u64, hour: u64, minute: u64, second: u64) -> Option<Millis> {
    let fits = (1970..10_000).contains(&year)
        && (1..=12).contains(&month)
        && (1..=31).contains(&day)
        && hour < 24
        && minute < 60
        && second <= 60;
    if !fits {
        return None;
    }
    let year = if month <= 2 { year - 1 } else { year };
    let (era, of_era) = (year / 400, year % 400);
    let of_year = (153 * (if month > 2 { month - 3 } else { month + 9 }) + 2) / 5 + day - 1;
    let days = era * 146_097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719_468;
    Some(days * DAY + hour * HOUR + minute * MINUTE + second * SECOND)
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
    match (parse_rfc3339(text), text.get(..10), text.get(11..19)) {
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
    match parse_rfc3339(until) {
        Some(until) if until > now => duration(until - now),
        Some(_) => "none".to_owned(),
        None => "unknown".to_owned(),
    }
}
