//! How many lines a change writes or takes away.

/// The lines of a text.
pub(crate) fn count(text: &str) -> u64 {
    narrow(text.lines().count())
}

/// The lines that differ when `old` becomes `new`: those taken away and those written, without what both begin and end
/// with.
pub(crate) fn changed(old: &str, new: &str) -> u64 {
    let (old, new) = (pieces(old), pieces(new));
    let before = old.iter().zip(&new).take_while(|(left, right)| left == right).count();
    let (old, new) = (old.get(before..).unwrap_or_default(), new.get(before..).unwrap_or_default());
    let after = old.iter().rev().zip(new.iter().rev()).take_while(|(left, right)| left == right).count();
    let left = |lines: &[&str]| narrow(lines.len().saturating_sub(after));
    left(old).saturating_add(left(new))
}

/// The lines, the empty one after a last line's end included: without it, adding that end would change nothing.
fn pieces(text: &str) -> Vec<&str> {
    if text.is_empty() { Vec::new() } else { text.split('\n').collect() }
}

fn narrow(count: usize) -> u64 {
    u64::try_from(count).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_stays_is_not_counted() {
        assert_eq!(changed("a\nb\nc", "a\nB\nc"), 2);
        assert_eq!(changed("a\nc", "a\nb\nc"), 1);
        assert_eq!(changed("a", "a"), 0);
        assert_eq!(changed("a\na", "a\na\na"), 1, "a line that both begin and end with counts once");
        assert_eq!(changed("", "a\nb"), 2);
        assert_eq!(changed("a", "a\n"), 1);
        assert_eq!(count("a\nb\n"), 2);
        assert_eq!(count(""), 0);
    }
}
