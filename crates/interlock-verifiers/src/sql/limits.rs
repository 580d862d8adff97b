//! Limits, each with a name. A text beyond one of them is not judged: uncertain, never verified.

/// The longest text that is read, in bytes.
pub const TEXT_BYTES_MAX: usize = 65_536;

/// How deep parentheses, brackets and braces may be nested.
pub const NESTING_MAX: usize = 32;

/// How many tokens may follow one another without a comma or a parenthesis. The parser makes a tree of such a run that
/// is as deep as the run is long, and a tree is freed recursively.
pub const RUN_TOKENS_MAX: u32 = 1_000;

/// How deep the parser itself may recurse.
pub(super) const PARSER_DEPTH_MAX: usize = 36;

/// How deep the tree may be where it is walked.
pub(super) const TREE_DEPTH_MAX: u32 = 160;

/// How many statements of a text are looked at; several are refused anyway.
pub(super) const STATEMENTS_MAX: usize = 8;

/// The most columns of a table in a schema. Names are looked up one by one, so this bounds the time.
pub const COLUMNS_MAX: usize = 2_000;

/// The work of reading one byte in one dialect, in units of fuel.
pub(super) const BYTE_WORK: u64 = 200;

/// The longest schema that is read, in bytes.
pub const SCHEMA_BYTES_MAX: usize = 1_048_576;
