//! One table of guarded places and of names of fields: nobody keeps a second list.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use interlock_testkit::repository;

/// So many lines are looked at together.
const WINDOW: usize = 12;
/// So many different names of one table in there are a list.
const LIST: usize = 4;

fn sources(directory: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(directory).expect("a directory") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            sources(&path, found);
        } else if path.extension().is_some_and(|ending| ending == "rs") {
            found.push(path);
        }
    }
}

/// The texts in quotes of a line of code.
fn literals(line: &str) -> Vec<&str> {
    let code = line.trim_start();
    if code.starts_with("//") { Vec::new() } else { code.split('"').skip(1).step_by(2).collect() }
}

/// A pattern or a path without what says where it lies.
fn name_of(literal: &str) -> String {
    let text = literal.strip_prefix("**/").or_else(|| literal.strip_prefix("~/")).unwrap_or(literal);
    text.strip_suffix("/**").unwrap_or(text).to_lowercase()
}

/// The lines of a source that come before its tests.
fn product(path: &Path) -> String {
    let text = fs::read_to_string(path).expect("a source");
    text.split("#[cfg(test)]").next().unwrap_or("").to_owned()
}

/// Where in a source many names of a table stand together, and which.
fn lists(text: &str, is_named: impl Fn(&str) -> bool) -> Option<(usize, BTreeSet<String>)> {
    let lines: Vec<&str> = text.lines().collect();
    let together = lines.windows(WINDOW.min(lines.len().max(1))).enumerate().map(|(at, window)| {
        let names = window.iter().flat_map(|line| literals(line)).map(name_of).filter(|name| is_named(name));
        (at + 1, names.collect::<BTreeSet<String>>())
    });
    together.into_iter().find(|(_, names)| names.len() >= LIST)
}

#[test]
fn nobody_keeps_a_second_list() {
    let crates = repository().join("crates");
    let table = product(&crates.join("interlock-core/src/places/table.rs"));
    let is_path = |name: &String| {
        name.contains(['.', '/']) && name.contains(|letter: char| letter.is_ascii_alphanumeric()) && !name.contains(' ')
    };
    let places: BTreeSet<String> = table.lines().flat_map(literals).map(name_of).filter(is_path).collect();
    let fields = product(&crates.join("interlock-core/src/field_names.rs"));
    let fields = fields.lines().filter(|line| line.starts_with("const PATH") || line.starts_with("const ADDRESS"));
    let fields: BTreeSet<String> = fields.flat_map(literals).map(name_of).collect();
    assert!(places.len() > 500 && fields.len() == 12, "{} {}", places.len(), fields.len());

    let mut files = Vec::new();
    for entry in fs::read_dir(&crates).expect("crates") {
        let path = entry.expect("an entry").path();
        // What tests are made of is no part of the product.
        if !path.ends_with("interlock-testkit") {
            sources(&path.join("src"), &mut files);
        }
    }
    for file in files {
        let name = file.strip_prefix(&crates).expect("in there").to_str().expect("UTF-8").to_owned();
        if name.starts_with("interlock-core/src/places/") || name == "interlock-core/src/field_names.rs" {
            continue;
        }
        let text = product(&file);
        let of_places = lists(&text, |name| places.contains(name));
        assert_eq!(of_places, None, "{name}: guarded places belong into core/src/places/table.rs");
        // A table of a host's tools has its fields one a line.
        let of_fields = text.lines().find(|line| {
            literals(line).into_iter().filter(|name| fields.contains(*name)).collect::<BTreeSet<_>>().len() >= LIST
        });
        assert_eq!(of_fields, None, "{name}: names of fields belong into core/src/field_names.rs");
    }
}

/// The search finds what it is there to find.
#[test]
fn a_second_list_is_seen() {
    let named = |name: &str| [".bashrc", ".zshrc", ".husky", ".env"].contains(&name);
    let list = "const A: &[&str] = &[\n    \"**/.bashrc\", \".zshrc\",\n    \".husky/**\",\n    \"~/.env\",\n];\n";
    assert_eq!(lists(list, named).map(|(_, names)| names.len()), Some(4));
    assert_eq!(lists(&list.replace("\"~/.env\"", "// \"~/.env\""), named), None);
}
