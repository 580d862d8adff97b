//! Codes and their pages are one list.

use std::collections::BTreeSet;
use std::fs;

use interlock_core::Code;
use interlock_testkit::repository;

#[test]
fn every_code_has_a_page_and_every_page_a_code() {
    let pages: BTreeSet<String> = fs::read_dir(repository().join("docs/errors"))
        .expect("docs/errors")
        .map(|entry| entry.expect("an entry").file_name().into_string().expect("UTF-8"))
        .collect();
    let codes: BTreeSet<String> = Code::ALL.iter().map(|code| format!("{code}.md")).collect();
    assert_eq!(pages, codes);
}

#[test]
fn a_page_says_what_it_is_about() {
    for code in Code::ALL {
        let page = fs::read_to_string(repository().join(format!("docs/errors/{code}.md"))).expect("a page");
        assert!(page.starts_with(&format!("# {code}\n")), "{code}: the title");
        for section in ["## Cause", "## Example", "## What to do", "## Where the rule lives"] {
            assert!(page.contains(&format!("\n{section}\n")), "{code}: no section `{section}`");
        }
        for line in page.lines() {
            assert!(line.chars().count() <= 120, "{code}: a line too long for a terminal: {line}");
        }
    }
}

#[test]
fn the_places_a_page_names_exist() {
    for code in Code::ALL {
        let page = fs::read_to_string(repository().join(format!("docs/errors/{code}.md"))).expect("a page");
        for path in page.split('`').filter(|part| part.starts_with("crates/") || part.starts_with("conformance/")) {
            assert!(repository().join(path).exists(), "{code} names `{path}`, which does not exist");
        }
    }
}
