//! Every place in the product from which a yes can leave is named in ARCHITECTURE.md.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use interlock_testkit::repository;

/// The sources of all crates but the testkit: where each lies, as ARCHITECTURE.md names it, and what it says outside of
/// its tests.
fn sources() -> Vec<(String, String)> {
    let mut found = Vec::new();
    let crates = repository().join("crates");
    for entry in fs::read_dir(&crates).expect("crates") {
        let name = entry.expect("a crate").file_name().into_string().expect("UTF-8");
        let short = name.strip_prefix("interlock-").expect("a crate of ours").to_owned();
        if short != "testkit" {
            collect(&crates.join(&name).join("src"), &format!("{short}/src"), &mut found);
        }
    }
    assert!(found.len() > 200, "only {} sources were found", found.len());
    found
}

fn collect(directory: &Path, named: &str, found: &mut Vec<(String, String)>) {
    for entry in fs::read_dir(directory).expect("sources") {
        let path = entry.expect("a source").path();
        let name = path.file_name().and_then(|name| name.to_str()).expect("UTF-8").to_owned();
        if path.is_dir() {
            collect(&path, &format!("{named}/{name}"), found);
        } else if name.ends_with(".rs") {
            let text = fs::read_to_string(&path).expect("a source");
            let text = text.split("#[cfg(test)]").next().unwrap_or_default();
            let code = text.lines().filter(|line| !line.trim_start().starts_with("//"));
            found.push((format!("{named}/{name}"), code.collect::<Vec<_>>().join("\n")));
        }
    }
}

fn quoted(cell: &str) -> Vec<String> {
    cell.split('`').skip(1).step_by(2).map(str::to_owned).collect()
}

#[test]
fn every_yes_leaves_through_a_place_that_is_named() {
    let page = fs::read_to_string(repository().join("ARCHITECTURE.md")).expect("the page");
    let section = page.split("\n## Where a yes is made\n").nth(1).and_then(|rest| rest.split("\n## ").next());
    let rows: Vec<Vec<&str>> = section
        .expect("a section")
        .lines()
        .filter(|line| line.starts_with('|'))
        .skip(2)
        .map(|line| line.trim_matches('|').split('|').collect())
        .collect();
    assert!(rows.len() >= 12, "{rows:?}");
    let sources = sources();
    for row in rows {
        let [_, _, word, made, handed] = row[..] else { panic!("five columns: {row:?}") };
        let word = quoted(word).pop().expect("a word");
        let named: BTreeSet<String> = quoted(made).into_iter().chain(quoted(handed)).collect();
        let found: BTreeSet<String> =
            sources.iter().filter(|(_, text)| text.contains(&word)).map(|(name, _)| name.clone()).collect();
        assert_eq!(found, named, "`{word}`: where it stands, and what ARCHITECTURE.md says");
    }
}

/// Whoever answers a host with a yes has it from the door, and the door from the ledger.
#[test]
fn no_host_is_told_yes_but_by_the_door() {
    let sources = sources();
    let (_, hooks) = sources.iter().find(|(name, _)| name == "http/src/hooks/mod.rs").expect("the hooks");
    for (at, _) in hooks.match_indices("Reply::Pass") {
        let before = &hooks[at.saturating_sub(700)..at];
        let asked = ["self.door.pass(", "self.door.end_call(", "answer.goes_on()"];
        assert!(asked.iter().any(|asked| before.contains(asked)), "a yes that nobody made:\n{before}");
    }
}
