//! Holds figures to their limits, which are in `limits.toml` and nowhere else.

use std::sync::Mutex;

static MISSED: Mutex<Vec<String>> = Mutex::new(Vec::new());

/// What a figure is held to, as tables show it; one that is beyond it is remembered for the [`end`].
pub(crate) fn judge(id: &str, figure: f64) -> String {
    let table: toml::Table = include_str!("limits.toml").parse().expect("limits");
    let limit = &table[id];
    let number = |key: &str| limit.get(key).map(|value| value.as_float().expect("a number with a point"));
    let unit = limit["unit"].as_str().expect("a unit");
    let (bound, kept) = match (number("at_most"), number("at_least")) {
        (Some(most), None) => (format!("at most {most}{unit}"), figure <= most),
        (None, Some(least)) => (format!("at least {least}{unit}"), figure >= least),
        _ => panic!("{id} has not one limit"),
    };
    if kept {
        return bound;
    }
    let what = limit["what"].as_str().expect("a text");
    MISSED.lock().expect("what was missed").push(format!("missed: {what}: {figure:.3}{unit}, {bound}"));
    format!("{bound}, **missed**")
}

/// Ends the benchmark: with 1 if a limit was missed.
pub(crate) fn end() {
    let missed = MISSED.lock().expect("what was missed");
    missed.iter().for_each(|line| eprintln!("{line}"));
    if !missed.is_empty() {
        std::process::exit(1);
    }
}
