//! Takes the tables of commands apart: which entry each name leads to, and the text of each entry. A program that judges
//! one line then reads the few entries that the line needs, and not a thousand.
//!
//! A table that is no TOML, or has a name twice, does not build. What its entries say is read where they are used.

use std::collections::BTreeMap;
use std::error::Error;
use std::fmt::Write as _;
use std::path::Path;
use std::{env, fs};

use toml::{Table, Value};

/// The columns that hold the names of an entry.
const NAMES: [&str; 3] = ["aliases", "names", "because"];

/// A name, and its own reason.
type Named = (String, Option<String>);

fn main() -> Result<(), Box<dyn Error>> {
    let out = env::var_os("OUT_DIR").ok_or("no OUT_DIR")?;
    for table in ["commands", "git"] {
        let path = format!("src/shell/{table}.toml");
        println!("cargo::rerun-if-changed={path}");
        let entries: Table = fs::read_to_string(&path)?.parse().map_err(|error| format!("{path}: {error}"))?;
        let index = index_of(&entries).map_err(|error| format!("{path}: {error}"))?;
        fs::write(Path::new(&out).join(format!("{table}.rs")), index)?;
    }
    println!("cargo::rerun-if-changed=build.rs");
    Ok(())
}

/// Names and entries as two constants, each in order.
fn index_of(entries: &Table) -> Result<String, Box<dyn Error>> {
    let (mut names, mut texts) = (BTreeMap::new(), String::new());
    let in_order: BTreeMap<&String, &Value> = entries.iter().collect();
    for (at, (heading, entry)) in in_order.into_iter().enumerate() {
        let entry = entry.as_table().ok_or_else(|| format!("`{heading}` is no entry"))?;
        for (name, why) in names_of(heading, entry)? {
            if names.insert(name.clone(), (at, why)).is_some() {
                return Err(format!("`{name}` is there twice").into());
            }
        }
        let mut text = String::new();
        for (column, value) in entry.iter().filter(|(column, _)| !NAMES.contains(&column.as_str())) {
            writeln!(text, "{column:?} = {}", written(value)?)?;
        }
        writeln!(texts, "    ({heading:?}, {text:?}),")?;
    }
    let mut rows = String::new();
    for (name, (at, why)) in &names {
        writeln!(rows, "    ({name:?}, {at}, {why:?}),")?;
    }
    let (names, entries) = (names.len(), entries.len());
    Ok(format!(
        "pub(super) static NAMES: [super::Name; {names}] = [\n{rows}];\n\
         pub(super) static ENTRIES: [(&str, &str); {entries}] = [\n{texts}];\n"
    ))
}

/// The names that an entry is about, with the reason where there is one for each.
fn names_of(heading: &str, entry: &Table) -> Result<Vec<Named>, Box<dyn Error>> {
    let words = |value: Option<&Value>, why: Option<&str>| -> Vec<Named> {
        let words = value.and_then(Value::as_str).unwrap_or("").split_ascii_whitespace();
        words.map(|word| (word.to_owned(), why.map(str::to_owned))).collect()
    };
    let because = entry.get("because").and_then(Value::as_table);
    if because.is_none() && !entry.contains_key("names") {
        let mut names = words(entry.get("aliases"), None);
        names.push((heading.to_owned(), None));
        return Ok(names);
    }
    if entry.contains_key("aliases") {
        return Err(format!("`{heading}` has names and aliases").into());
    }
    let mut names = words(entry.get("names"), None);
    for (why, listed) in because.into_iter().flatten() {
        names.extend(words(Some(listed), Some(why)));
    }
    Ok(names)
}

/// A value as TOML. Texts of the tables are plain enough to look in TOML as they do in Rust.
fn written(value: &Value) -> Result<String, Box<dyn Error>> {
    Ok(match value {
        Value::Table(members) => {
            let member = |(key, value): (&String, &Value)| Ok(format!("{key:?} = {}", written(value)?));
            let members: Result<Vec<String>, Box<dyn Error>> = members.iter().map(member).collect();
            format!("{{ {} }}", members?.join(", "))
        }
        Value::Array(values) => {
            let values: Result<Vec<String>, Box<dyn Error>> = values.iter().map(written).collect();
            format!("[{}]", values?.join(", "))
        }
        Value::String(text) => format!("{text:?}"),
        Value::Integer(number) => number.to_string(),
        Value::Boolean(is) => is.to_string(),
        Value::Float(_) | Value::Datetime(_) => return Err("a number or a time that no column has".into()),
    })
}
