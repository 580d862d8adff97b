//! What somebody may have meant: the nearest of the names that would have been right.

/// Steps of comparing that one text may take. Without a limit, many wrong names times many right ones would be a way to
/// keep the loader busy; past it there are no more suggestions, and nothing else changes.
const STEPS_MAX: usize = 20_000_000;
/// Longer names are not compared.
const COMPARED_CHARS_MAX: usize = 64;

/// Gives suggestions until its steps are used up.
#[derive(Debug)]
pub(super) struct Suggester {
    steps_left: usize,
}

impl Suggester {
    pub(super) fn new() -> Suggester {
        Suggester { steps_left: STEPS_MAX }
    }

    /// The candidate nearest to a name, if one is near: the first of several that are equally near.
    pub(super) fn nearest<'c>(&mut self, name: &str, candidates: impl IntoIterator<Item = &'c str>) -> Option<&'c str> {
        let name = lower(name)?;
        let reach = name.len().div_ceil(3);
        let mut best: Option<(usize, &str)> = None;
        for candidate in candidates {
            let Some(other) = lower(candidate) else { continue };
            if name.len().abs_diff(other.len()) > reach {
                self.steps_left = self.steps_left.checked_sub(1)?;
                continue;
            }
            let steps = name.len().saturating_add(1).saturating_mul(other.len().saturating_add(1));
            self.steps_left = self.steps_left.checked_sub(steps)?;
            let distance = distance(&name, &other);
            // Where every character differs nothing is near.
            let near = distance <= reach && distance < name.len().max(other.len());
            if near && best.is_none_or(|(least, _)| distance < least) {
                best = Some((distance, candidate));
            }
        }
        best.map(|(_, candidate)| candidate)
    }

    /// The nearest candidate as help: "did you mean `planning`?".
    pub(super) fn help<'c>(&mut self, name: &str, candidates: impl IntoIterator<Item = &'c str>) -> Option<String> {
        self.nearest(name, candidates).map(did_you_mean)
    }
}

pub(super) fn did_you_mean(name: &str) -> String {
    format!("did you mean {}?", super::problem::quoted(name))
}

/// Characters without case; `None` for what is too long to compare.
fn lower(text: &str) -> Option<Vec<char>> {
    let characters: Vec<char> =
        text.chars().flat_map(char::to_lowercase).take(COMPARED_CHARS_MAX.saturating_add(1)).collect();
    (characters.len() <= COMPARED_CHARS_MAX).then_some(characters)
}

/// Characters to insert, drop, replace or swap with their neighbour to get from one text to the other.
fn distance(left: &[char], right: &[char]) -> usize {
    let mut before: Vec<usize> = Vec::new();
    let mut above: Vec<usize> = (0..=right.len()).collect();
    let mut left_before = None;
    for (row, l) in left.iter().enumerate() {
        let mut current = vec![row.saturating_add(1)];
        let mut right_before = None;
        for (column, r) in right.iter().enumerate() {
            let at = |line: &[usize], place: usize| line.get(place).copied().unwrap_or(usize::MAX);
            let next = column.saturating_add(1);
            let replaced = at(&above, column).saturating_add(usize::from(l != r));
            let dropped = at(&above, next).saturating_add(1);
            let inserted = at(&current, column).saturating_add(1);
            let mut least = replaced.min(dropped).min(inserted);
            if left_before == Some(r) && right_before == Some(l) && column > 0 {
                least = least.min(at(&before, column.saturating_sub(1)).saturating_add(1));
            }
            current.push(least);
            right_before = Some(r);
        }
        before = above;
        above = current;
        left_before = Some(l);
    }
    above.last().copied().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_name_is_suggested_and_a_far_one_is_not() {
        let names = ["planning", "implementing", "done", "failed"];
        let suggest = |name: &str| Suggester::new().nearest(name, names);
        assert_eq!(suggest("planing"), Some("planning"));
        assert_eq!(suggest("Done"), Some("done"), "case counts for nothing");
        assert_eq!(suggest("dnoe"), Some("done"), "two neighbours swapped are one step");
        assert_eq!(suggest("deploying"), None, "five of nine characters differ");
        assert_eq!(suggest("zzz"), None);
        assert_eq!(Suggester::new().nearest("b", ["a"]), None, "nothing of it is the same");
        assert_eq!(suggest(""), None);
    }

    #[test]
    fn suggestions_end_with_the_steps() {
        let mut tired = Suggester { steps_left: 10 };
        assert_eq!(tired.nearest("planing", ["planning"]), None);
    }

    #[test]
    fn distances_are_those_of_the_definition() {
        let chars = |text: &str| text.chars().collect::<Vec<_>>();
        for (left, right, expected) in [
            ("", "", 0),
            ("", "ab", 2),
            ("abc", "abc", 0),
            ("abc", "acb", 1),
            ("ab", "ba", 1),
            ("kitten", "sitting", 3),
        ] {
            assert_eq!(distance(&chars(left), &chars(right)), expected, "{left} {right}");
            assert_eq!(distance(&chars(right), &chars(left)), expected, "{right} {left}");
        }
    }
}
