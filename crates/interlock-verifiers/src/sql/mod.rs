//! Database statements: what does this one do, at worst?
//!
//! A statement is split into tokens by the rules of its dialect, parsed, and walked node by node. What is not on the
//! lists is not understood, and what is not understood is never verified. A text whose meaning depends on the server is
//! judged under every meaning, and the worst one counts.
//!
//! | to find | look in |
//! |---|---|
//! | dialects, and the settings of servers that change how a text is read | `dialect.rs` |
//! | text to tokens: quotes, comments, limits | `lex/` |
//! | one reading of a text: tokens to findings | `reading.rs` |
//! | whether the parser kept every word | `echo.rs` |
//! | the nodes that are understood, and what they do | `walk/` |
//! | functions known to be harmless or harmful | `functions.txt` |
//! | findings to a verdict | `verdict.rs` |
//! | the operator's word: dialect, schema, columns, functions | `databases.rs`, `schema.rs`, `rules.rs` |

mod certificate;
mod databases;
mod dialect;
mod echo;
mod functions;
mod keywords;
mod lex;
mod limits;
mod reading;
mod rules;
mod schema;
mod verdict;
mod walk;

use interlock_core::action::{ActionText, Engine};

use crate::fuel::Fuel;
use crate::ground::Ground;
use crate::outcome::{Outcome, Verifier, text_of};

pub use databases::Databases;
pub use dialect::Dialect;
pub use limits::{COLUMNS_MAX, NESTING_MAX, RUN_TOKENS_MAX, SCHEMA_BYTES_MAX, TEXT_BYTES_MAX};

/// The version of this engine. Rises when a text could get another outcome.
pub const VERSION: u32 = 1;

/// The engine for actions: the statement is in `query`, what is said of it in `parameters.dialect` and
/// `parameters.schema`.
#[derive(Debug, Clone, Copy)]
pub struct Sql;

impl Verifier for Sql {
    fn engine(&self) -> Engine {
        Engine::Sql
    }

    fn version(&self) -> u32 {
        VERSION
    }

    fn verify_within(&self, action: &ActionText<'_>, ground: &Ground, fuel: &mut Fuel) -> Outcome {
        let database = ground.databases.of_target(text_of(action.target));
        let parameter = |name| action.parameters.and_then(|parameters| parameters.get(name));
        let question = verdict::Question {
            text: text_of(action.query).unwrap_or(""),
            database,
            dialect: parameter("dialect"),
            schema: parameter("schema"),
            trusted: ground.trusts_action,
        };
        // Reading is linear in the text, so the work is known before it is done.
        if !fuel.pay(verdict::work(&question)) {
            return Outcome::uncertain(Vec::new());
        }
        verdict::judge(&question)
    }
}
