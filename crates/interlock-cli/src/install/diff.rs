//! The difference of two texts, line by line, as small as it can be shown.

use interlock_core::visible;

/// How many lines that stay are shown around one that changes.
const AROUND: usize = 1;
/// How many pairs of lines are compared at most; beyond that everything between the first and the last change is shown
/// as taken out and put in.
const PAIRS_MAX: usize = 4_000_000;
/// The longest line that is shown whole.
const LINE_CHARS_MAX: usize = 400;

enum Line<'t> {
    Same(&'t str),
    Out(&'t str),
    In(&'t str),
}

/// What was taken out (`-`) and what was put in (`+`), with a line around.
pub(super) fn difference(before: &str, after: &str) -> String {
    let (old, new): (Vec<&str>, Vec<&str>) = (before.lines().collect(), after.lines().collect());
    let all = compare(&old, &new);
    let changes: Vec<usize> = (0..all.len()).filter(|at| !matches!(all.get(*at), Some(Line::Same(_)) | None)).collect();
    let mut out = String::new();
    let mut last_shown: Option<usize> = None;
    for (at, line) in all.iter().enumerate() {
        let near = |change: &usize| change.abs_diff(at) <= AROUND;
        if !changes.iter().any(near) {
            continue;
        }
        if last_shown.map_or(at > 0, |last| last + 1 < at) {
            out.push_str("  …\n");
        }
        last_shown = Some(at);
        let (mark, text) = match line {
            Line::Same(text) => (' ', text),
            Line::Out(text) => ('-', text),
            Line::In(text) => ('+', text),
        };
        out.push_str(&format!("{mark} {}\n", shown(text)));
    }
    if before != after && changes.is_empty() {
        out.push_str("  (the end of the last line)\n");
    }
    out
}

fn shown(line: &str) -> String {
    let mut short: String = line.chars().take(LINE_CHARS_MAX).collect();
    if line.chars().nth(LINE_CHARS_MAX).is_some() {
        short.push_str(&format!("… ({} characters)", line.chars().count()));
    }
    visible(&short)
}

/// A longest common part, after what is alike at both ends.
fn compare<'t>(old: &[&'t str], new: &[&'t str]) -> Vec<Line<'t>> {
    let head = old.iter().zip(new).take_while(|(one, other)| one == other).count();
    let (old_rest, new_rest) = (old.get(head..).unwrap_or_default(), new.get(head..).unwrap_or_default());
    let tail = old_rest.iter().rev().zip(new_rest.iter().rev()).take_while(|(one, other)| one == other).count();
    let (out, end) = old_rest.split_at(old_rest.len() - tail);
    let put = new_rest.get(..new_rest.len() - tail).unwrap_or_default();
    let mut all: Vec<Line<'t>> = old.iter().take(head).map(|line| Line::Same(line)).collect();
    if out.len().saturating_mul(put.len()) > PAIRS_MAX {
        all.extend(out.iter().map(|line| Line::Out(line)));
        all.extend(put.iter().map(|line| Line::In(line)));
    } else {
        all.extend(common(out, put));
    }
    all.extend(end.iter().map(|line| Line::Same(line)));
    all
}

fn common<'t>(old: &[&'t str], new: &[&'t str]) -> Vec<Line<'t>> {
    // Cell (i, j): how many lines `old[i..]` and `new[j..]` have in common.
    let width = new.len() + 1;
    let mut lengths = vec![0_u32; (old.len() + 1) * width];
    for (i, one) in old.iter().enumerate().rev() {
        for (j, other) in new.iter().enumerate().rev() {
            lengths[i * width + j] = if one == other {
                lengths[(i + 1) * width + j + 1] + 1
            } else {
                lengths[(i + 1) * width + j].max(lengths[i * width + j + 1])
            };
        }
    }
    let (mut i, mut j) = (0, 0);
    let mut all = Vec::new();
    loop {
        match (old.get(i), new.get(j)) {
            (Some(one), Some(other)) if one == other => {
                all.push(Line::Same(one));
                (i, j) = (i + 1, j + 1);
            }
            (Some(one), Some(_)) if lengths[(i + 1) * width + j] >= lengths[i * width + j + 1] => {
                all.push(Line::Out(one));
                i += 1;
            }
            (Some(_) | None, Some(other)) => {
                all.push(Line::In(other));
                j += 1;
            }
            (Some(one), None) => {
                all.push(Line::Out(one));
                i += 1;
            }
            (None, None) => return all,
        }
    }
}
