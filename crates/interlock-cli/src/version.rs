//! Which of two versions is the newer one.

use std::cmp::Ordering;

/// This program's version.
pub const OWN: &str = env!("CARGO_PKG_VERSION");

/// Whether one version comes after another. Of a text that is no version nothing is said, so it is never older.
pub fn is_newer(one: &str, other: &str) -> bool {
    match (Version::parse(one), Version::parse(other)) {
        (Some(one), Some(other)) => one.compare(&other) == Ordering::Greater,
        (None, _) | (_, None) => false,
    }
}

/// A semantic version; what stands behind a `+` does not count.
struct Version<'t> {
    numbers: [u64; 3],
    before: Option<&'t str>,
}

impl<'t> Version<'t> {
    fn parse(text: &'t str) -> Option<Version<'t>> {
        let text = text.split('+').next()?;
        let (numbers, before) = match text.split_once('-') {
            Some((numbers, before)) => (numbers, Some(before)),
            None => (text, None),
        };
        let mut parts = numbers.split('.').map(|part| part.parse().ok());
        let numbers = [parts.next()??, parts.next()??, parts.next()??];
        parts.next().is_none().then_some(Version { numbers, before })
    }

    fn compare(&self, other: &Version<'_>) -> Ordering {
        let before = match (self.before, other.before) {
            (None, None) => Ordering::Equal,
            // What comes before a release is older than it.
            (None, Some(_)) => Ordering::Greater,
            (Some(_), None) => Ordering::Less,
            (Some(one), Some(other)) => compare_words(one, other),
        };
        self.numbers.cmp(&other.numbers).then(before)
    }
}

fn compare_words(one: &str, other: &str) -> Ordering {
    let (mut one, mut other) = (one.split('.'), other.split('.'));
    loop {
        let found = match (one.next(), other.next()) {
            (None, None) => return Ordering::Equal,
            (None, Some(_)) => Ordering::Less,
            (Some(_), None) => Ordering::Greater,
            (Some(one), Some(other)) => match (one.parse::<u64>(), other.parse::<u64>()) {
                (Ok(one), Ok(other)) => one.cmp(&other),
                (Ok(_), Err(_)) => Ordering::Less,
                (Err(_), Ok(_)) => Ordering::Greater,
                (Err(_), Err(_)) => one.cmp(other),
            },
        };
        if found != Ordering::Equal {
            return found;
        }
    }
}
