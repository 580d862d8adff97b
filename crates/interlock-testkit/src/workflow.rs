//! The cases under `conformance/workflow/load/`: texts of workflows, and every problem that must be told of.

use std::fs;

use interlock_workflow::{Format, Limits, Problem, load};
use serde::Deserialize;

use crate::conformance::files_under;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct RawFile {
    case: Vec<LoadCase>,
}

/// One case: a text, and either all its problems or, if it loads, all its warnings.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LoadCase {
    /// Unique in its file.
    pub name: String,
    format: String,
    /// The text.
    pub text: String,
    problems: Option<Vec<Told>>,
    warnings: Option<Vec<Told>>,
}

/// What must be told.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
struct Told {
    line: usize,
    column: usize,
    path: String,
    /// A part of it.
    message: String,
    /// A part of it.
    help: Option<String>,
}

impl LoadCase {
    /// The format the text is in.
    pub fn format(&self) -> Format {
        Format::of_file_name(&format!("case.{}", self.format)).expect("a known format")
    }

    /// Whether it must load.
    pub fn loads(&self) -> bool {
        self.problems.is_none()
    }

    /// Loads the text, and panics where something else is told than must be.
    pub fn run(&self) {
        let (expected, found) = match load(&self.text, self.format(), &Limits::MAX) {
            Ok(loaded) => (&self.warnings, loaded.warnings),
            Err(problems) => {
                assert!(!problems.is_empty(), "`{}`: refused without a word", self.name);
                (&self.problems, problems)
            }
        };
        let Some(expected) = expected else { panic!("`{}`: {found:#?}", self.name) };
        let agree = expected.len() == found.len() && expected.iter().zip(&found).all(|(told, found)| told.is(found));
        assert!(agree, "`{}`: expected {expected:#?}, found {found:#?}", self.name);
        for problem in &found {
            assert!(self.text.get(problem.span.clone()).is_some(), "`{}`: {problem:?}", self.name);
        }
    }
}

impl Told {
    fn is(&self, found: &Problem) -> bool {
        (self.line, self.column, self.path.as_str()) == (found.line, found.column, found.path.as_str())
            && found.message.contains(&self.message)
            && self.help.as_ref().is_none_or(|help| found.help.as_ref().is_some_and(|found| found.contains(help)))
    }
}

/// Every case, with the name of its file.
pub fn cases() -> Vec<(String, LoadCase)> {
    let top = crate::repository().join("conformance/workflow/load");
    let mut cases = Vec::new();
    for path in files_under(&top) {
        let name = path.file_name().expect("a name").to_string_lossy().into_owned();
        assert!(name.ends_with(".toml"), "{name} is read by nobody");
        let text = fs::read_to_string(&path).expect("a case file");
        let file: RawFile = toml::from_str(&text).unwrap_or_else(|error| panic!("{name}: {error}"));
        let mut names: Vec<_> = file.case.iter().map(|case| case.name.clone()).collect();
        names.sort_unstable();
        assert!(names.windows(2).all(|pair| pair[0] != pair[1]), "{name}: a name that stands twice");
        for case in file.case {
            assert!(case.problems.is_some() != case.warnings.is_some(), "{name}: `{}`: one of the two", case.name);
            cases.push((name.clone(), case));
        }
    }
    cases
}
