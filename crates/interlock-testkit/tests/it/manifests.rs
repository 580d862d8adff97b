//! The arrows between crates, read from the manifests and the lock file.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;

use interlock_testkit::repository;
use toml::Table;

/// What each crate of ours may depend on, of ours. `cli → {http, mcp}`, `http → {runtime, hosts}`,
/// `runtime → {verifiers, core}`, `{mcp, hosts} → core`; the testkit stands beside them.
const ARROWS: [(&str, &[&str]); 8] = [
    ("interlock-core", &[]),
    ("interlock-verifiers", &["interlock-core"]),
    ("interlock-hosts", &["interlock-core"]),
    ("interlock-runtime", &["interlock-core", "interlock-verifiers"]),
    ("interlock-http", &["interlock-core", "interlock-runtime", "interlock-hosts"]),
    ("interlock-mcp", &["interlock-core"]),
    (
        "interlock-cli",
        &[
            "interlock-verifiers",
            "interlock-core",
            "interlock-hosts",
            "interlock-runtime",
            "interlock-http",
            "interlock-mcp",
        ],
    ),
    ("interlock-testkit", &["interlock-core", "interlock-runtime", "interlock-http"]),
];

/// Everything the core may stand on, directly or through others. Nothing here does I/O, tells the time, draws random
/// numbers or runs tasks; a new name must be added by hand, after a look at what it does.
#[rustfmt::skip]
const PURE: &[&str] = &[
    "aho-corasick", "allocator-api2", "arraydeque", "block-buffer", "cfg-if", "cpufeatures", "crypto-common", "digest", "equivalent",
    "foldhash", "hashbrown", "hybrid-array", "indexmap", "itoa", "libc", "memchr", "proc-macro2", "quote", "regex-automata", "regex-syntax", "serde", "serde_core", "serde_derive",
    "saphyr-parser", "serde_json", "serde_spanned", "sha2", "syn", "thiserror", "thiserror-impl", "tinyvec", "tinyvec_macros", "toml", "toml_datetime", "toml_parser",
    "toml_writer",
    "typenum", "unicode-ident", "unicode-normalization", "winnow", "zmij",
];

fn manifest(name: &str) -> Table {
    let path = repository().join("crates").join(name).join("Cargo.toml");
    fs::read_to_string(&path).expect("a manifest").parse().expect("TOML")
}

fn dependencies(manifest: &Table, section: &str) -> Vec<String> {
    let mut tables: Vec<&Table> = manifest.get(section).and_then(|table| table.as_table()).into_iter().collect();
    for target in manifest.get("target").and_then(|target| target.as_table()).into_iter().flat_map(Table::values) {
        tables.extend(target.get(section).and_then(|table| table.as_table()));
    }
    tables.into_iter().flat_map(|table| table.keys().cloned()).collect()
}

#[test]
fn arrows_point_one_way() {
    let members: BTreeSet<String> = fs::read_dir(repository().join("crates"))
        .expect("crates")
        .map(|entry| entry.expect("an entry").file_name().into_string().expect("UTF-8"))
        .collect();
    assert_eq!(members, ARROWS.iter().map(|(name, _)| (*name).to_owned()).collect(), "a crate without arrows");
    for (name, allowed) in ARROWS {
        let manifest = manifest(name);
        for section in ["dependencies", "build-dependencies"] {
            for dependency in dependencies(&manifest, section) {
                if dependency.starts_with("interlock-") {
                    assert!(allowed.contains(&dependency.as_str()), "{name} may not depend on {dependency}");
                }
            }
        }
    }
}

#[test]
fn the_core_stands_on_nothing_that_has_effects() {
    let lock: Table =
        fs::read_to_string(repository().join("Cargo.lock")).expect("the lock file").parse().expect("TOML");
    // A name with several versions is a package with several graphs; a dependency then says which one it means.
    let mut graph: BTreeMap<String, BTreeMap<String, Vec<String>>> = BTreeMap::new();
    for package in lock["package"].as_array().expect("packages") {
        let text = |key: &str| package[key].as_str().expect("a text").to_owned();
        let dependencies = package.get("dependencies").and_then(|list| list.as_array()).cloned().unwrap_or_default();
        let dependencies = dependencies.iter().map(|name| name.as_str().expect("a name").to_owned()).collect();
        graph.entry(text("name")).or_default().insert(text("version"), dependencies);
    }
    let (mut reached, mut open) = (BTreeSet::new(), vec!["interlock-core".to_owned()]);
    while let Some(package) = open.pop() {
        let (name, version) = package.split_once(' ').unwrap_or((&package, ""));
        let versions = graph[name].iter().filter(|(known, _)| version.is_empty() || *known == version);
        for dependency in versions.flat_map(|(_, dependencies)| dependencies) {
            if reached.insert(dependency.split(' ').next().expect("a name").to_owned()) {
                open.push(dependency.clone());
            }
        }
    }
    let impure: Vec<_> = reached.iter().filter(|name| !PURE.contains(&name.as_str())).collect();
    assert!(impure.is_empty(), "the core came to depend on {impure:?}");
    assert!(reached.contains("sha2"), "the walk over the lock file found nothing");
}

#[test]
fn the_core_names_nothing_that_has_effects() {
    #[rustfmt::skip]
    const FORBIDDEN: [&str; 12] = [
        "std::fs", "std::net", "std::env", "std::time", "std::thread", "std::process", "std::io", "RandomState",
        ": f64", "as f64", "f64::", "async fn",
    ];
    for pure in ["interlock-core", "interlock-hosts"] {
        for path in sources(&repository().join("crates").join(pure).join("src")) {
            let text = fs::read_to_string(&path).expect("a source");
            for word in FORBIDDEN {
                assert!(!text.contains(word), "{} names {word}", path.display());
            }
        }
    }
}

#[test]
fn versions_are_declared_once() {
    for (name, _) in ARROWS {
        let manifest = manifest(name);
        for section in ["dependencies", "dev-dependencies", "build-dependencies"] {
            let table = manifest.get(section).and_then(|table| table.as_table()).cloned().unwrap_or_default();
            for (dependency, value) in table {
                let inherited = value.get("workspace").and_then(toml::Value::as_bool);
                assert_eq!(inherited, Some(true), "{name}: {dependency} declares a version of its own");
            }
        }
    }
}

#[test]
fn no_file_names_a_machine() {
    // Spelled in pieces, or this file would be found.
    let words = [["/wo", "rk/"], ["/ro", "ot/"], ["/ho", "me/"]].map(|pieces| pieces.concat());
    for directory in ["crates", "docs", "conformance", "examples", "scripts", "benches", "fuzz", "bindings"] {
        for path in sources(&repository().join(directory)) {
            let Ok(text) = fs::read_to_string(&path) else { continue };
            for word in &words {
                assert!(!text.contains(word.as_str()), "{} names {word}", path.display());
            }
        }
    }
}

/// The files under a directory that belong to the project.
fn sources(directory: &std::path::Path) -> Vec<std::path::PathBuf> {
    const NOT_OURS: [&str; 8] =
        ["target", ".venv", "corpus", "artifacts", "__pycache__", "build", ".mypy_cache", ".pytest_cache"];
    let Ok(entries) = fs::read_dir(directory) else { return Vec::new() };
    let mut paths: Vec<_> = entries.map(|entry| entry.expect("an entry").path()).collect();
    paths.retain(|path| !NOT_OURS.iter().any(|name| path.ends_with(name)));
    paths.into_iter().flat_map(|path| if path.is_dir() { sources(&path) } else { vec![path] }).collect()
}
