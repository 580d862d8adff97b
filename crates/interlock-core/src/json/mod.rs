//! Strict JSON: the one parser, its tree, its canonical text.
//!
//! Every text the product reads goes through [`parse`]: states, schemas, rules, requests. What two readers could
//! understand differently (duplicate keys, keys that Unicode makes equal, huge numbers, lone surrogates) is refused.

mod canonical;
mod de;
mod document;
mod equal;
mod error;
mod keys;
mod limits;
mod nodes;
mod number;
mod owned;
mod parse;
mod ser;
mod string;
mod value_list;

pub(crate) use canonical::{append_alike, append_canonical, append_quoted, by_value, canonical_between, shown};
pub use canonical::{canonical, quote};
pub use de::{LoadError, RawJson, from_str};
pub use document::{CanonicalMembers, Content, Document, Items, Kind, Members, Value, push_key};
pub use equal::equal;
pub use error::{JsonError, JsonErrorKind};
pub use limits::{BYTES_MAX, CONFIG_DEPTH_MAX, DIGITS_MAX, EXPONENT_MAX, Limits, NODES_MAX, STATE_DEPTH_MAX};
pub(crate) use nodes::NodeIndex;
pub use number::Number;
pub use owned::{Json, JsonNumber};
pub use parse::{parse, parse_bytes};
pub use ser::{WriteError, to_bytes, to_string};
pub use string::{Str, nfc};
pub(crate) use value_list::ValueList;
