//! Times as people and programs write them on the command line: RFC 3339, or milliseconds since 1970.

use interlock_core::action::Millis;

/// Reads `2026-11-15T12:00:30Z`, with a fraction or another offset if need be, or a number of milliseconds.
pub(crate) fn parse(text: &str) -> Result<Millis, String> {
    let read = if text.bytes().all(|byte| byte.is_ascii_digit()) { text.parse().ok() } else { rfc3339(text) };
    read.ok_or_else(|| "a time is like 2026-11-15T12:00:30Z, or milliseconds since 1970".to_owned())
}

fn rfc3339(text: &str) -> Option<Millis> {
    let (date, rest) = (text.get(..10)?, text.get(10..)?);
    let (clock, rest) = (rest.strip_prefix(['T', 't', ' '])?.get(..8)?, rest.get(9..)?);
    let [year, month, day] = numbers(date, '-', [4, 2, 2])?;
    let [hour, minute, second] = numbers(clock, ':', [2, 2, 2])?;
    let (millis, rest) = match rest.strip_prefix('.') {
        Some(rest) => {
            let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
            let fraction = rest.get(..digits.min(3)).filter(|digits| !digits.is_empty())?;
            (format!("{fraction:0<3}").parse().ok()?, rest.get(digits..)?)
        }
        None => (0, rest),
    };
    let offset_minutes = match rest {
        "Z" | "z" => 0,
        _ => {
            let sign = if rest.starts_with('-') { -1 } else { 1 };
            let [hours, minutes] = numbers(rest.strip_prefix(['+', '-'])?, ':', [2, 2])?;
            (hours < 24 && minutes < 60).then_some(sign * (hours * 60 + minutes))?
        }
    };
    let leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    let days_of = [31, if leap { 29 } else { 28 }, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];
    let last = usize::try_from(month - 1).ok().and_then(|month| days_of.get(month))?;
    if day < 1 || day > *last || hour > 23 || minute > 59 || second > 59 {
        return None;
    }
    // Days since 1970; years are counted from March, so that leap days come last.
    let (years, months) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    let days = 365 * years + years.div_euclid(4) - years.div_euclid(100)
        + years.div_euclid(400)
        + (153 * months + 2) / 5
        + day
        - 719_469;
    let seconds = ((days * 24 + hour) * 60 + minute - offset_minutes) * 60 + second;
    Millis::try_from(seconds * 1_000 + millis).ok()
}

/// Digits of exactly these widths, with a character between them.
fn numbers<const N: usize>(text: &str, between: char, widths: [usize; N]) -> Option<[i64; N]> {
    let mut parts = text.split(between);
    let mut numbers = [0; N];
    for (number, width) in numbers.iter_mut().zip(widths) {
        let part = parts.next().filter(|part| part.len() == width && part.bytes().all(|byte| byte.is_ascii_digit()))?;
        *number = part.parse().ok()?;
    }
    parts.next().is_none().then_some(numbers)
}
