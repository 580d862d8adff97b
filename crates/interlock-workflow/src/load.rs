//! From a text to a workflow with every name resolved, or to all that is wrong with the text. What is found right here is
//! built by the reader of canonical texts.
//!
//! | to find | look in |
//! |---|---|
//! | JSON, YAML and TOML into one tree with places | `from_json.rs`, `from_yaml.rs`, `from_toml.rs`, `node.rs` |
//! | the fields of the document | `document.rs` |
//! | states and the ways between them | `states.rs` |
//! | guards, and what can be observed | `guards.rs` |
//! | what no run can reach, or leave | `graph.rs` |
//! | where something stands in a text | `locate.rs` |
//! | types, names, limits of single fields | `fields.rs` |
//! | what is told about problems | `problem.rs`, `../suggest.rs` |

mod document;
mod fields;
mod from_json;
mod from_toml;
mod from_yaml;
mod graph;
mod guards;
mod locate;
mod node;
mod problem;
mod states;

pub use document::{FACTS_MAX, LINE_BYTES_MAX, PROSE_BYTES_MAX, TRANSITIONS_CEILING};
pub use fields::NAME_CHARS_MAX;
pub use guards::{FIELD_PARTS_MAX, GUARDS_MAX};
pub use locate::{document, locate};
pub(crate) use problem::quoted;
pub use problem::{PROBLEMS_MAX, Problem};
pub use states::{COUNT_MAX, EVENTS_MAX, LIST_ITEMS_MAX, ROW_GUARDS_MAX};

use interlock_core::json;
use interlock_core::workflow::{CANONICAL_BYTES_MAX, DEPTH_MAX, VALUES_MAX, Workflow};

use self::fields::Reader;
use self::problem::{Path, Problems};
use crate::suggest::Suggester;

/// The most bytes of a text.
pub const TEXT_BYTES_MAX: usize = 1024 * 1024;
/// The most states.
pub const STATES_MAX: usize = 10_000;
/// The most rows of one event.
pub const ROWS_MAX: usize = 64;
/// Readers never go deeper than this, whatever a parser let through.
const READ_DEPTH_MAX: usize = DEPTH_MAX;

/// The limits one text is read under. They can be lowered; values above the ceilings count as the ceilings.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of the text.
    pub bytes: usize,
    /// Values of every kind, at every depth.
    pub values: usize,
    /// The first depth that is refused.
    pub depth: usize,
    /// States of the workflow.
    pub states: usize,
    /// Rows of one event.
    pub rows: usize,
}

impl Limits {
    /// The ceilings.
    pub const MAX: Limits =
        Limits { bytes: TEXT_BYTES_MAX, values: VALUES_MAX, depth: DEPTH_MAX, states: STATES_MAX, rows: ROWS_MAX };

    fn capped(&self) -> Limits {
        Limits {
            bytes: self.bytes.min(TEXT_BYTES_MAX),
            values: self.values.min(VALUES_MAX),
            depth: self.depth.min(DEPTH_MAX),
            states: self.states.min(STATES_MAX),
            rows: self.rows.min(ROWS_MAX),
        }
    }

    /// The limits of the JSON parser, which also reads the numbers of the other formats.
    fn of_json(&self) -> json::Limits {
        json::Limits { bytes: self.bytes, nodes: self.values, depth: self.depth, ..json::Limits::CONFIG }
    }
}

/// How a text is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Format {
    /// Strict JSON.
    Json,
    /// YAML 1.2, the core schema, without anchors, aliases and tags.
    Yaml,
    /// TOML, without dates.
    Toml,
}

impl Format {
    /// The format that the end of a file's name speaks of.
    ///
    /// ```
    /// use interlock_workflow::Format;
    ///
    /// assert_eq!(Format::of_file_name("bugfix.yml"), Some(Format::Yaml));
    /// assert_eq!(Format::of_file_name("bugfix.txt"), None);
    /// ```
    pub fn of_file_name(name: &str) -> Option<Format> {
        let (stem, ending) = name.rsplit_once('.')?;
        let named = !stem.is_empty() && !stem.ends_with(['/', '\\']);
        match ending.to_ascii_lowercase().as_str() {
            "json" if named => Some(Format::Json),
            "yaml" | "yml" if named => Some(Format::Yaml),
            "toml" if named => Some(Format::Toml),
            _ => None,
        }
    }
}

/// A workflow, and what looks wrong with it all the same.
#[derive(Debug, Clone)]
pub struct Loaded {
    /// The workflow.
    pub workflow: Workflow,
    /// In the order of the text.
    pub warnings: Vec<Problem>,
}

/// Loads a workflow, or tells of everything that is wrong, in the order of the text.
///
/// The result does not depend on the format or on the order of members: states, events and guards stand in the order of
/// their names, so that one digest is one workflow.
///
/// ```
/// use interlock_workflow::{Format, Limits, load};
///
/// let text = r#"{"id": "fix", "initial": "work", "states": {
///     "work": {"on": {"DONE": "don"}},
///     "done": {"type": "final"}}}"#;
/// let problems = load(text, Format::Json, &Limits::MAX).unwrap_err();
/// let first = &problems[0];
/// assert_eq!((first.line, first.column, first.path.as_str()), (2, 29, "states.work.on.DONE"));
/// assert_eq!(first.message, "there is no state `don`");
/// assert_eq!(first.help.as_deref(), Some("did you mean `done`?"));
/// ```
pub fn load(text: &str, format: Format, limits: &Limits) -> Result<Loaded, Vec<Problem>> {
    let mut reader = Reader { problems: Problems::default(), suggester: Suggester::new() };
    let workflow = read(text, format, &limits.capped(), &mut reader);
    let Problems { errors, warnings } = reader.problems;
    match workflow {
        Some(workflow) if errors.is_empty() => Ok(Loaded { workflow, warnings: warnings.finish(text) }),
        _ => Err(errors.finish(text)),
    }
}

/// `None` only where an error was told of.
fn read(text: &str, format: Format, limits: &Limits, reader: &mut Reader) -> Option<Workflow> {
    if text.len() > limits.bytes {
        reader.error(&(0..0), &Path::Root, format!("the text has more than {} bytes", limits.bytes));
        return None;
    }
    if text.starts_with('\u{feff}') {
        reader.error(&(0..0), &Path::Root, "the text begins with a byte order mark");
        return None;
    }
    let errors = &mut reader.problems.errors;
    let tree = match format {
        Format::Json => from_json::read(text, limits, errors),
        Format::Yaml => from_yaml::read(text, limits, errors),
        Format::Toml => from_toml::read(text, limits, errors),
    }?;
    document::check(&tree, limits, reader);
    if !reader.problems.errors.is_empty() {
        return None;
    }
    let canonical = tree.to_json().canonical();
    if canonical.len() > CANONICAL_BYTES_MAX {
        reader.error(&(0..0), &Path::Root, format!("the canonical text has more than {CANONICAL_BYTES_MAX} bytes"));
        return None;
    }
    // What entries are read by builds the workflow, so what was started is what is read again later.
    match Workflow::from_text(&canonical) {
        Ok(workflow) => Some(workflow),
        Err(error) => {
            reader.error(&(0..0), &Path::Root, format!("this cannot be a workflow: {error}"));
            None
        }
    }
}

#[cfg(test)]
mod tests;
