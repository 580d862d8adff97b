//! The arrows between crates, read from the manifests and the lock file.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;

use interlock_testkit::repository;
use toml::Table;

/// What each crate of ours may depend on, of ours. `cli → {http, mcp}`, `http → {runtime, hosts, keep}`,
/// `runtime → {verifiers, workflow, keep, core}`, `{mcp, hosts, verifiers, wire, workflow, runner, keep} → core`; `wire` is what http and cli share; the testkit stands beside them.
const ARROWS: [(&str, &[&str]); 12] = [
    ("interlock-core", &[]),
    ("interlock-wire", &["interlock-core"]),
    ("interlock-workflow", &["interlock-core"]),
    ("interlock-verifiers", &["interlock-core"]),
    ("interlock-hosts", &["interlock-core"]),
    ("interlock-runtime", &["interlock-core", "interlock-keep", "interlock-verifiers", "interlock-workflow"]),
    (
        "interlock-http",
        &[
            "interlock-core",
            "interlock-keep",
            "interlock-runtime",
            "interlock-hosts",
            "interlock-wire",
            "interlock-workflow",
        ],
    ),
    ("interlock-mcp", &["interlock-core"]),
    ("interlock-runner", &["interlock-core"]),
    ("interlock-keep", &["interlock-core"]),
    (
        "interlock-cli",
        &[
            "interlock-verifiers",
            "interlock-wire",
            "interlock-workflow",
            "interlock-core",
            "interlock-hosts",
            "interlock-runner",
            "interlock-runtime",
            "interlock-http",
            "interlock-mcp",
        ],
    ),
    (
        "interlock-testkit",
        &["interlock-core", "interlock-runtime", "interlock-http", "interlock-wire", "interlock-workflow"],
    ),
];

/// Everything the core may stand on, directly or through others. Nothing here does I/O, tells the time, draws random
/// numbers or runs tasks; a new name must be added by hand, after a look at what it does.
#[rustfmt::skip]
const PURE: &[&str] = &[
    "aho-corasick", "allocator-api2", "block-buffer", "cfg-if", "cpufeatures", "crypto-common", "digest", "equivalent",
    "foldhash", "hashbrown", "hybrid-array", "indexmap", "itoa", "libc", "memchr", "percent-encoding", "proc-macro2", "quote", "regex-automata", "regex-syntax", "serde", "serde_core", "serde_derive",
    "serde_json", "serde_spanned", "sha2", "syn", "tinyvec", "tinyvec_macros", "toml", "toml_datetime", "toml_parser",
    "toml_writer",
    "typenum", "unicode-ident", "unicode-normalization", "winnow", "zmij",
];

/// What the crate that reads people's texts may stand on besides.
const PURE_TEXTS: &[&str] = &["arraydeque", "interlock-core", "saphyr-parser", "strsim", "thiserror", "thiserror-impl"];

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
fn the_pure_crates_stand_on_nothing_that_has_effects() {
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
    let pure =
        [("interlock-core", &[][..]), ("interlock-wire", &["interlock-core"]), ("interlock-workflow", PURE_TEXTS)];
    for (of, more) in pure {
        let (mut reached, mut open) = (BTreeSet::new(), vec![of.to_owned()]);
        while let Some(package) = open.pop() {
            let (name, version) = package.split_once(' ').unwrap_or((&package, ""));
            let versions = graph[name].iter().filter(|(known, _)| version.is_empty() || *known == version);
            for dependency in versions.flat_map(|(_, dependencies)| dependencies) {
                if reached.insert(dependency.split(' ').next().expect("a name").to_owned()) {
                    open.push(dependency.clone());
                }
            }
        }
        let pure = |name: &str| PURE.contains(&name) || more.contains(&name);
        let impure: Vec<_> = reached.iter().filter(|name| !pure(name)).collect();
        assert!(impure.is_empty(), "{of} came to depend on {impure:?}");
        assert!(reached.contains("sha2"), "the walk over the lock file found nothing");
    }
}

/// Modules of the standard library that do something to the world, or ask it.
const EFFECTS: [&str; 8] = ["fs", "net", "env", "time", "thread", "process", "io", "os"];
/// Parts of them that only name values.
const WITHOUT_EFFECTS: [&str; 6] = [
    "std::net::IpAddr",
    "std::net::Ipv4Addr",
    "std::net::Ipv6Addr",
    "std::net::SocketAddr",
    "std::time::Duration",
    "std::io::ErrorKind",
];

/// What a source names of the standard library: every path, with groups (`use std::{fs, time}`), other names for them
/// (`use std as s`) and globs written out.
fn std_paths(text: &str) -> Vec<String> {
    let mut code = String::new();
    for line in text.lines() {
        code.push_str(line.split("//").next().unwrap_or(""));
        code.push('\n');
    }
    let code: String = code.replace("r#", "").split_whitespace().collect::<Vec<_>>().join(" ");
    let code = code
        .replace(" ::", "::")
        .replace(":: ", "::")
        .replace("{ ", "{")
        .replace(" }", "}")
        .replace(" ,", ",")
        .replace(", ", ",");
    let mut names = vec!["std".to_owned()];
    let mut found = Vec::new();
    // A crate can be had under another name.
    for (start, _) in code.match_indices("extern crate std as ").chain(code.match_indices("use std as ")) {
        names.extend(word_after(&code[start..], " as "));
    }
    for (start, _) in code.match_indices("std::{self as ") {
        names.extend(word_after(&code[start..], " as "));
    }
    for name in &names {
        for (start, _) in code.match_indices(&format!("{name}::")) {
            let before = code[..start].chars().next_back();
            if !before.is_some_and(|c| c.is_alphanumeric() || c == '_') {
                expand("std", &code[start + name.len() + 2..], &mut found);
            }
        }
    }
    found
}

fn word_after(text: &str, mark: &str) -> Option<String> {
    let rest = text.split_once(mark)?.1;
    Some(rest.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect())
}

/// Writes out what follows `prefix::`, and returns what is behind it.
fn expand<'t>(prefix: &str, text: &'t str, found: &mut Vec<String>) -> &'t str {
    if let Some(mut rest) = text.strip_prefix('{') {
        loop {
            rest = expand(prefix, rest, found);
            // A name of its own, `as x`, says nothing more.
            let end = rest.find([',', '}']).unwrap_or(rest.len());
            match rest.get(end..).and_then(|rest| rest.chars().next()) {
                Some(',') => rest = &rest[end + 1..],
                _ => return rest.get(end + 1..).unwrap_or(""),
            }
            if let Some(rest) = rest.strip_prefix('}') {
                return rest;
            }
        }
    }
    let end = text.find(|c: char| !(c.is_alphanumeric() || c == '_' || c == '*')).unwrap_or(text.len());
    let path = format!("{prefix}::{}", &text[..end]);
    match text[end..].strip_prefix("::") {
        Some(rest) => expand(&path, rest, found),
        None => {
            found.push(path);
            &text[end..]
        }
    }
}

/// What a source names that has effects.
fn effects_in(text: &str) -> Vec<String> {
    let is_within = |path: &str, of: &str| path == of || path.starts_with(&format!("{of}::"));
    let mut found = std_paths(text);
    found.retain(|path| {
        let module = path.split("::").nth(1).unwrap_or("");
        let is_value = WITHOUT_EFFECTS.iter().any(|value| is_within(path, value));
        !is_value && (module == "*" || EFFECTS.contains(&module))
    });
    let words = ["RandomState", ": f64", "as f64", "f64::", "async fn"];
    found.extend(words.iter().filter(|word| text.contains(**word)).map(|word| (*word).to_owned()));
    found
}

#[test]
fn the_pure_crates_name_nothing_that_has_effects() {
    for pure in ["interlock-core", "interlock-wire", "interlock-workflow", "interlock-hosts"] {
        for path in sources(&repository().join("crates").join(pure).join("src")) {
            let text = fs::read_to_string(&path).expect("a source");
            let found = effects_in(&text);
            assert!(found.is_empty(), "{} names {found:?}", path.display());
        }
    }
}

#[test]
fn effects_are_found_however_they_are_named() {
    for text in [
        "use std::fs;",
        "use std::{fs, time};",
        "use std::{collections::BTreeMap, time::{Duration, Instant}};",
        "use std::{\n    collections::BTreeMap,\n    fs,\n};",
        "use std::{self as s};\nfn f() { s::fs::read(x) }",
        "use std as s;\nfn f() { s::env::var(x) }",
        "extern crate std as other; use other::thread;",
        "use std::*;",
        "use std::{io as x};",
        "use ::std::net::TcpStream;",
        "use std :: fs ;",
        "use r#std::r#fs;",
        "fn f() { let _ = std::process::id(); }",
        "use std::time::{Duration, SystemTime as T};",
        "use std::{{fs}, fmt};",
        "use std::os::unix::fs::MetadataExt;",
        "fn f(x: f64) {}",
    ] {
        assert!(!effects_in(text).is_empty(), "{text}");
    }
    for text in [
        "use std::collections::{BTreeMap, BTreeSet};",
        "use std::{borrow::Cow, fmt, sync::Arc};",
        "use std::time::Duration;",
        "use core::net::Ipv4Addr; use std::net::IpAddr;",
        "// std::fs is what runtime uses",
        "use my_std::fs;",
    ] {
        assert_eq!(effects_in(text), Vec::<String>::new(), "{text}");
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

/// `cargo run -- serve`, as the README has it, finds one program and no second one.
#[test]
fn cargo_run_means_the_command() {
    let of = |name: &str| Some(manifest(name).get("package")?.get("default-run")?.as_str()?.to_owned());
    let meant: Vec<(&str, String)> = ARROWS.iter().filter_map(|(name, _)| Some((*name, of(name)?))).collect();
    assert_eq!(meant, [("interlock-cli", "interlock".to_owned())]);
}
