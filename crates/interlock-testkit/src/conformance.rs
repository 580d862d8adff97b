//! The case files under `conformance/`; their README describes the format.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use serde::Deserialize;

/// The schema of a case that gives none: an object that may hold anything.
pub const OPEN_SCHEMA: &str = r#"{"type": "object", "properties": {}, "additionalProperties": true}"#;

/// One file of cases.
#[derive(Debug)]
pub struct CaseFile {
    /// Relative to `conformance/`.
    pub name: String,
    /// Its cases.
    pub cases: Vec<Case>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct RawFile {
    case: Vec<Case>,
}

/// One case.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Case {
    /// Unique in its file.
    pub name: String,
    schema: Option<String>,
    /// Transition rules, as JSON.
    pub rules: Option<String>,
    /// The current state.
    pub current: Option<String>,
    proposed: Option<String>,
    proposed_hex: Option<String>,
    proposed_repeat: Option<Repeat>,
    /// The transition is committed.
    pub commit: Option<Commit>,
    /// What must come out.
    pub expect: Expect,
}

/// A long text in few words.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
struct Repeat {
    before: String,
    unit: String,
    count: usize,
    after: String,
}

/// Where a commit goes; `{root}` and `{outside}` are fresh directories.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Commit {
    /// The target path.
    pub target: String,
    roots: Option<Vec<String>>,
    #[serde(default)]
    files: BTreeMap<String, String>,
    #[serde(default)]
    links: BTreeMap<String, String>,
    #[serde(default)]
    directories: Vec<String>,
}

/// What must come out of a case.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Expect {
    /// `VERIFIED` or `BLOCKED`; absent when the guard cannot be built.
    pub status: Option<String>,
    /// The code of a refusal.
    pub code: Option<String>,
    /// The path a refusal points at.
    pub at: Option<String>,
    /// A part of the message.
    pub message: Option<String>,
    /// The whole canonical text.
    pub canonical: Option<String>,
    /// The proof.
    pub proof_ref: Option<String>,
    /// What the target holds afterwards.
    pub file: Option<String>,
    /// A part of the error, when the guard cannot be built.
    pub error: Option<String>,
}

/// The directories of a commit case.
#[derive(Debug)]
pub struct Place {
    root: PathBuf,
    outside: PathBuf,
    /// The target, with its directories filled in.
    pub target: String,
    /// The commit roots, with their directories filled in.
    pub roots: Vec<String>,
    /// What the target held before, if it was a file.
    pub before: Option<Vec<u8>>,
}

impl Case {
    /// The schema, as JSON.
    pub fn schema(&self) -> &str {
        self.schema.as_deref().unwrap_or(OPEN_SCHEMA)
    }

    /// The proposed state, as bytes.
    pub fn proposed(&self) -> Vec<u8> {
        match (&self.proposed, &self.proposed_hex, &self.proposed_repeat) {
            (Some(text), None, None) => text.clone().into_bytes(),
            (None, Some(hex), None) => unhex(hex),
            (None, None, Some(repeat)) => {
                format!("{}{}{}", repeat.before, repeat.unit.repeat(repeat.count), repeat.after).into_bytes()
            }
            (None, None, None) if self.expect.error.is_some() => Vec::new(),
            _ => panic!("case `{}` must give the proposed state in one way", self.name),
        }
    }

    /// The guard file of this case; `place` fills in the commit roots.
    pub fn guard_file(&self, place: Option<&Place>) -> String {
        let rules = self.rules.as_deref().map(|rules| format!(", \"transition_rules\": {rules}")).unwrap_or_default();
        let roots = place.map_or_else(String::new, |place| {
            let roots: Vec<_> = place.roots.iter().map(|root| interlock_core::json::quote(root)).collect();
            format!(", \"allowed_commit_roots\": [{}]", roots.join(", "))
        });
        format!("{{\"required_schema\": {}{rules}{roots}}}", self.schema())
    }
}

impl Commit {
    /// Makes the directories, files and links of a case inside an empty directory.
    pub fn make(&self, scratch: &Path) -> Place {
        let (root, outside) = (scratch.join("root"), scratch.join("outside"));
        for directory in [&root, &outside] {
            fs::create_dir(directory).expect("a fresh directory");
        }
        let mut place = Place { root, outside, target: String::new(), roots: Vec::new(), before: None };
        for directory in &self.directories {
            fs::create_dir_all(place.root.join(directory)).expect("a directory");
        }
        for (name, contents) in &self.files {
            fs::write(place.root.join(name), contents).expect("a file");
        }
        for (name, to) in &self.links {
            std::os::unix::fs::symlink(place.fill(to), place.root.join(name)).expect("a link");
        }
        place.target = place.fill(&self.target);
        let default = vec!["{root}".to_owned()];
        place.roots = self.roots.as_ref().unwrap_or(&default).iter().map(|root| place.fill(root)).collect();
        place.before = fs::read(&place.target).ok();
        place
    }
}

impl Place {
    fn fill(&self, text: &str) -> String {
        let path = |path: &Path| path.to_str().expect("UTF-8").to_owned();
        text.replace("{root}", &path(&self.root)).replace("{outside}", &path(&self.outside))
    }

    /// Checks what the target holds after the case: what it should, or what it held before.
    pub fn check(&self, case: &Case, name: &str) {
        let after = fs::read(&self.target).ok();
        match &case.expect.file {
            Some(file) => assert_eq!(after.as_deref(), Some(file.as_bytes()), "{name}: the file"),
            None => assert_eq!(after, self.before, "{name}: the file was touched"),
        }
        let litter: Vec<_> = fs::read_dir(&self.root)
            .map(|entries| entries.filter_map(|entry| Some(entry.ok()?.file_name())).collect())
            .unwrap_or_default();
        let made: Vec<&str> = case.commit.iter().flat_map(|commit| &commit.directories).map(String::as_str).collect();
        let is_litter = |name: &str| name.contains("interlock") && !made.contains(&name);
        assert!(!litter.iter().any(|name| is_litter(&name.to_string_lossy())), "{name}: litter {litter:?}");
    }
}

fn unhex(hex: &str) -> Vec<u8> {
    let digits: Vec<u8> = hex
        .chars()
        .filter(|c| !c.is_whitespace())
        .map(|c| u8::try_from(c.to_digit(16).expect("hexadecimal")).expect("a digit"))
        .collect();
    digits.chunks(2).map(|pair| pair[0] * 16 + pair[1]).collect()
}

/// Every case file. A file that cannot be read, an unknown field and a name that stands twice are errors.
pub fn load() -> Vec<CaseFile> {
    let top = crate::repository().join("conformance");
    let mut files = Vec::new();
    for path in files_under(&top) {
        let name = path.strip_prefix(&top).expect("below the top").to_str().expect("UTF-8").to_owned();
        // These have cases of other forms: `gate.rs`, `rate.rs`, `calls.rs` and `workflow.rs` read the first four, the
        // tests of the verifiers and of MCP the rest.
        let elsewhere = ["gate/", "rate/", "calls/", "workflow/", "mcp-control/", "math/", "sql/", "shell/"];
        if name == "README.md" || elsewhere.iter().any(|folder| name.starts_with(folder)) {
            continue;
        }
        assert!(name.ends_with(".toml"), "conformance/{name} is read by nobody");
        let text = fs::read_to_string(&path).expect("a case file");
        let file: RawFile = toml::from_str(&text).unwrap_or_else(|error| panic!("conformance/{name}: {error}"));
        let mut names: Vec<_> = file.case.iter().map(|case| case.name.as_str()).collect();
        names.sort_unstable();
        for pair in names.windows(2) {
            assert_ne!(pair[0], pair[1], "conformance/{name}: a name that stands twice");
        }
        files.push(CaseFile { name, cases: file.case });
    }
    assert!(!files.is_empty(), "there are no conformance cases");
    files
}

pub(crate) fn files_under(directory: &Path) -> Vec<PathBuf> {
    let mut entries: Vec<_> =
        fs::read_dir(directory).expect("a directory").map(|entry| entry.expect("an entry").path()).collect();
    entries.sort();
    entries.into_iter().flat_map(|path| if path.is_dir() { files_under(&path) } else { vec![path] }).collect()
}
