//! What somebody may have meant: the nearest of the names that would have been right.

/// Steps of comparing that one text may take. Without a limit, many wrong names times many right ones would be a way to
/// keep the loader busy; past it there are no more suggestions, and nothing else changes.
const STEPS_MAX: usize = 20_000_000;
/// Longer names are not compared.
const COMPARED_CHARS_MAX: usize = 64;

/// The known name that is most like another, if one is like it at all.
pub fn nearest<'k>(name: &str, known: &[&'k str]) -> Option<&'k str> {
    Suggester::new().nearest(name, known.iter().copied())
}

/// Gives suggestions until its steps are used up.
#[derive(Debug)]
pub(crate) struct Suggester {
    steps_left: usize,
}

impl Suggester {
    pub(crate) fn new() -> Suggester {
        Suggester { steps_left: STEPS_MAX }
    }

    /// The candidate nearest to a name, if one is near: the first of several that are equally near.
    pub(crate) fn nearest<'c>(&mut self, name: &str, candidates: impl IntoIterator<Item = &'c str>) -> Option<&'c str> {
        let (name, len) = lower(name)?;
        let reach = len.div_ceil(3);
        let mut best: Option<(usize, &str)> = None;
        for candidate in candidates {
            let Some((other, other_len)) = lower(candidate) else { continue };
            if len.abs_diff(other_len) > reach {
                self.steps_left = self.steps_left.checked_sub(1)?;
                continue;
            }
            let steps = len.saturating_add(1).saturating_mul(other_len.saturating_add(1));
            self.steps_left = self.steps_left.checked_sub(steps)?;
            // Two neighbours that are swapped count as one step.
            let distance = strsim::osa_distance(&name, &other);
            // Where every character differs nothing is near.
            let near = distance <= reach && distance < len.max(other_len);
            if near && best.is_none_or(|(least, _)| distance < least) {
                best = Some((distance, candidate));
            }
        }
        best.map(|(_, candidate)| candidate)
    }

    /// The nearest candidate as help: "did you mean `planning`?".
    pub(crate) fn help<'c>(&mut self, name: &str, candidates: impl IntoIterator<Item = &'c str>) -> Option<String> {
        self.nearest(name, candidates).map(did_you_mean)
    }
}

pub(crate) fn did_you_mean(name: &str) -> String {
    format!("did you mean {}?", crate::load::quoted(name))
}

/// A text without case, and how many characters it has; `None` for what is too long to compare.
fn lower(text: &str) -> Option<(String, usize)> {
    let lower: String = text.chars().flat_map(char::to_lowercase).take(COMPARED_CHARS_MAX.saturating_add(1)).collect();
    let len = lower.chars().count();
    (len <= COMPARED_CHARS_MAX).then_some((lower, len))
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
}
