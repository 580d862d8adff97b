//! Database statements: what does this one do, at worst?

use interlock_core::action::{ActionText, Engine};
use interlock_core::bundle::SqlSettings;

use crate::ground::Ground;
use crate::outcome::{Check, Outcome, Verifier};

/// The version of this engine. Rises when a text could get another outcome.
pub const VERSION: u32 = 1;

/// What an operator says of databases, resolved.
#[derive(Debug, Clone, Default)]
pub struct Databases {}

impl Databases {
    /// Resolves the settings of a bundle.
    pub fn load(_settings: Option<&SqlSettings>) -> Result<Databases, String> {
        Ok(Databases {})
    }
}

/// The engine for actions: the statement is in `query`.
#[derive(Debug, Clone, Copy)]
pub struct Sql;

impl Verifier for Sql {
    fn engine(&self) -> Engine {
        Engine::Sql
    }

    fn version(&self) -> u32 {
        VERSION
    }

    fn verify(&self, _action: &ActionText<'_>, _ground: &Ground) -> Outcome {
        Outcome::uncertain(vec![Check::failed("engine_available", "statements are not read yet")])
    }
}
