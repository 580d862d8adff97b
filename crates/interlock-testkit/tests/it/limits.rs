//! The limits of the benchmarks: one file, which the benchmarks read and the documentation shows.

use std::fs;
use std::process::{Command, Output};

use interlock_testkit::repository;

fn limits() -> toml::Table {
    fs::read_to_string(repository().join("benches/limits.toml")).expect("limits").parse().expect("TOML")
}

fn python(arguments: &[&str]) -> Output {
    Command::new("python3").arg(repository().join("benches/limits.py")).args(arguments).output().expect("python3")
}

#[test]
fn the_documentation_shows_the_limits_as_they_are() {
    let page = fs::read_to_string(repository().join("docs/benchmarks.md")).expect("the page");
    let section = page.split("\n## Limits\n").nth(1).and_then(|rest| rest.split("\n## ").next()).expect("a section");
    let shown: Vec<&str> = section.lines().filter(|line| line.starts_with('|')).collect();
    let output = python(&[]);
    let table = String::from_utf8(output.stdout).expect("UTF-8");
    assert_eq!(shown, table.lines().collect::<Vec<_>>(), "write what `benches/limits.py` prints into the section");
    assert_eq!(shown.len(), limits().len() + 2);
}

#[test]
fn a_figure_beyond_its_limit_fails() {
    for (id, limit) in limits() {
        let bound = |key: &str| limit.get(key).map(|value| value.as_float().expect("a number with a point"));
        let (within, beyond) = match (bound("at_most"), bound("at_least")) {
            (Some(most), None) => (most, most * 1.01),
            (None, Some(least)) => (least, least * 0.99),
            _ => panic!("{id} must have `at_most` or `at_least`"),
        };
        if !["gate-raw", "decide-time"].contains(&id.as_str()) {
            continue;
        }
        assert!(python(&[&id, &within.to_string()]).status.success(), "{id}");
        let missed = python(&[&id, &beyond.to_string()]);
        assert_eq!(missed.status.code(), Some(1), "{id}");
        assert!(String::from_utf8_lossy(&missed.stderr).starts_with("missed: "), "{id}");
    }
}

/// A limit that nobody reads would be kept for ever.
#[test]
fn every_limit_is_read_by_what_measures_it() {
    let benches = repository().join("benches");
    for (id, limit) in limits() {
        let by = limit["by"].as_str().expect("a command");
        let words: Vec<&str> = by.split(' ').collect();
        let file = match words.as_slice() {
            ["cargo", "bench", "--bench", name, ..] => benches.join(format!("{name}.rs")),
            // A script that calls another program has the limits there.
            ["benches/python", ..] => benches.join("python_state_guard.py"),
            [script, ..] => repository().join(script),
            [] => panic!("{id} is measured by nothing"),
        };
        let text = fs::read_to_string(&file).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
        // A benchmark that forgot what it missed would pass.
        assert!(!by.starts_with("cargo") || text.contains("limits::end();"), "{by}");
        assert!(text.contains(&format!("\"{id}\"")) || text.contains(&format!("limits.py {id} ")), "{by}: {id}");
    }
}
