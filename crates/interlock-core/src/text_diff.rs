//! How one text became another, line by line, as people and tools read it: unified, with three lines around each change.

/// Lines around a change.
const AROUND: usize = 3;
/// How many lines may differ before the whole is shown as replaced: the work grows with the square of it.
const DIFFERENT_MAX: usize = 2_000;

/// What became of a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Step {
    Same,
    Gone,
    New,
}

/// The changes between two texts; empty if there are none.
///
/// ```
/// use interlock_core::unified_diff;
///
/// assert_eq!(unified_diff("a\nb\n", "a\nc\n"), "@@ -1,2 +1,2 @@\n a\n-b\n+c\n");
/// assert_eq!(unified_diff("a\n", "a\n"), "");
/// assert_eq!(unified_diff("", "a"), "@@ -0,0 +1 @@\n+a\n\\ No newline at end of file\n");
/// ```
pub fn unified_diff(old: &str, new: &str) -> String {
    let (old, new): (Vec<&str>, Vec<&str>) = (old.split_inclusive('\n').collect(), new.split_inclusive('\n').collect());
    let steps = steps(&old, &new);
    let mut text = String::new();
    let (mut at, mut lines) = (0_usize, (0_usize, 0_usize));
    while let Some(first) = steps.iter().skip(at).position(|step| *step != Step::Same) {
        let skipped = first.saturating_sub(AROUND);
        lines = (lines.0.saturating_add(skipped), lines.1.saturating_add(skipped));
        at = at.saturating_add(skipped);
        let len = hunk_len(steps.get(at..).unwrap_or_default());
        let hunk = steps.get(at..at.saturating_add(len)).unwrap_or_default();
        lines = write_hunk(&mut text, hunk, lines, &old, &new);
        at = at.saturating_add(len);
    }
    text
}

/// How far a piece goes whose changes lie close to each other.
fn hunk_len(steps: &[Step]) -> usize {
    let (mut end, mut same) = (0, 0_usize);
    for (at, step) in steps.iter().enumerate() {
        if *step != Step::Same {
            (end, same) = (at.saturating_add(1), 0);
            continue;
        }
        same = same.saturating_add(1);
        if end > 0 && same > AROUND.saturating_mul(2) {
            break;
        }
    }
    end.saturating_add(AROUND).min(steps.len())
}

/// Writes one piece that begins after so many lines of each text, and says after how many it ends.
fn write_hunk(text: &mut String, hunk: &[Step], from: (usize, usize), old: &[&str], new: &[&str]) -> (usize, usize) {
    let count = |other: Step| hunk.iter().filter(|step| **step != other).count();
    let (gone, come) = (count(Step::New), count(Step::Gone));
    let range = |from: usize, len: usize| match len {
        0 => format!("{from},0"),
        1 => format!("{}", from.saturating_add(1)),
        len => format!("{},{len}", from.saturating_add(1)),
    };
    text.push_str(&format!("@@ -{} +{} @@\n", range(from.0, gone), range(from.1, come)));
    let (mut at_old, mut at_new) = from;
    for step in hunk {
        let (mark, line) = match step {
            Step::Same => (' ', old.get(at_old)),
            Step::Gone => ('-', old.get(at_old)),
            Step::New => ('+', new.get(at_new)),
        };
        at_old = at_old.saturating_add(usize::from(*step != Step::New));
        at_new = at_new.saturating_add(usize::from(*step != Step::Gone));
        let line = line.copied().unwrap_or_default();
        text.push(mark);
        text.push_str(line);
        if !line.ends_with('\n') {
            text.push_str("\n\\ No newline at end of file\n");
        }
    }
    (at_old, at_new)
}

/// The shortest way from one list of lines to another, or the plain one if that would take long.
fn steps(old: &[&str], new: &[&str]) -> Vec<Step> {
    let before = old.iter().zip(new).take_while(|(old, new)| old == new).count();
    let (old, new) = (old.get(before..).unwrap_or_default(), new.get(before..).unwrap_or_default());
    let after = old.iter().rev().zip(new.iter().rev()).take_while(|(old, new)| old == new).count();
    let old = old.get(..old.len().saturating_sub(after)).unwrap_or_default();
    let new = new.get(..new.len().saturating_sub(after)).unwrap_or_default();
    let plain = || [vec![Step::Gone; old.len()], vec![Step::New; new.len()]].concat();
    let middle = shortest(old, new).unwrap_or_else(plain);
    [vec![Step::Same; before], middle, vec![Step::Same; after]].concat()
}

/// Goes forward along the diagonals that most is alike on, one more difference each round, and back by what each round
/// had reached.
fn shortest(old: &[&str], new: &[&str]) -> Option<Vec<Step>> {
    let most = old.len().saturating_add(new.len()).min(DIFFERENT_MAX);
    let width = most.saturating_mul(2).saturating_add(3);
    // How far each diagonal got in the old text; diagonal 0 stands in the middle.
    let middle = most.saturating_add(1);
    let mut reached = vec![0_usize; width];
    let mut rounds: Vec<Vec<usize>> = Vec::new();
    for round in 0..=most {
        rounds.push(reached.clone());
        for diagonal in (middle.saturating_sub(round)..=middle.saturating_add(round)).step_by(2) {
            let mut x = best(&reached, diagonal, middle, round)?.0;
            let mut y = x.saturating_add(middle).checked_sub(diagonal)?;
            while x < old.len() && y < new.len() && old.get(x) == new.get(y) {
                (x, y) = (x.saturating_add(1), y.saturating_add(1));
            }
            *reached.get_mut(diagonal)? = x;
            if x >= old.len() && y >= new.len() {
                return back(&rounds, middle, old.len(), new.len());
            }
        }
    }
    None
}

/// From where a diagonal is reached in a round, and whether by a new line.
fn best(reached: &[usize], diagonal: usize, middle: usize, round: usize) -> Option<(usize, bool)> {
    let below = *reached.get(diagonal.checked_sub(1)?)?;
    let above = *reached.get(diagonal.saturating_add(1))?;
    let is_lowest = diagonal == middle.saturating_sub(round);
    let is_highest = diagonal == middle.saturating_add(round);
    if round == 0 {
        return Some((0, true));
    }
    let is_new = is_lowest || !is_highest && below < above;
    Some(if is_new { (above, true) } else { (below.saturating_add(1), false) })
}

fn back(rounds: &[Vec<usize>], middle: usize, mut x: usize, mut y: usize) -> Option<Vec<Step>> {
    let mut steps = Vec::new();
    for (round, reached) in rounds.iter().enumerate().rev() {
        let diagonal = x.saturating_add(middle).checked_sub(y)?;
        let (start, is_new) = best(reached, diagonal, middle, round)?;
        while x > start {
            steps.push(Step::Same);
            (x, y) = (x.saturating_sub(1), y.saturating_sub(1));
        }
        if round == 0 {
            break;
        }
        if is_new {
            steps.push(Step::New);
            y = y.saturating_sub(1);
        } else {
            steps.push(Step::Gone);
            x = x.saturating_sub(1);
        }
    }
    steps.reverse();
    Some(steps)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What the changes make of the old text.
    fn applied(old: &str, new: &str) -> String {
        let (old, new): (Vec<&str>, Vec<&str>) =
            (old.split_inclusive('\n').collect(), new.split_inclusive('\n').collect());
        let (mut made, mut from, mut to) = (String::new(), old.iter(), new.iter());
        for step in steps(&old, &new) {
            match step {
                Step::Same => {
                    let (line, same) = (from.next().expect("a line"), to.next().expect("a line"));
                    assert_eq!(line, same);
                    made.push_str(line);
                }
                Step::Gone => assert!(from.next().is_some()),
                Step::New => made.push_str(to.next().expect("a line")),
            }
        }
        assert_eq!((from.next(), to.next()), (None, None));
        made
    }

    #[test]
    fn the_changes_lead_from_the_one_to_the_other() {
        let texts = ["", "a\n", "a\nb\nc\n", "c\nb\na\n", "b\nx\nb\ny\nc", "a\nb\nc\nd\ne\nf\ng\nh\ni\nj\n"];
        for old in texts {
            for new in texts {
                assert_eq!(applied(old, new), new, "{old:?} to {new:?}");
                assert_eq!(unified_diff(old, new).is_empty(), old == new);
            }
        }
        let (many, others) = ("x\n".repeat(5_000), "y\n".repeat(5_000));
        assert_eq!(applied(&many, &others), others, "more than is compared line by line");
    }

    #[test]
    fn changes_far_apart_are_pieces_of_their_own() {
        let old: String = (1..=40).map(|number| format!("{number}\n")).collect();
        let new = old.replace("5\n6\n", "5\nfive and a half\n6\n").replace("30\n", "");
        let text = unified_diff(&old, &new);
        assert!(text.contains("@@ -3,6 +3,7 @@\n 3\n 4\n 5\n+five and a half\n 6\n"), "{text}");
        assert!(text.contains("@@ -27,7 +28,6 @@\n 27\n 28\n 29\n-30\n 31\n"), "{text}");
    }
}
