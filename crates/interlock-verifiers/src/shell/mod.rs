//! Command lines: what does this one do, at worst?

use interlock_core::action::{ActionText, Engine};
use interlock_core::bundle::ShellSettings;

use crate::ground::Ground;
use crate::outcome::{Check, Outcome, Verifier};

/// The version of this engine. Rises when a text could get another outcome.
pub const VERSION: u32 = 1;

/// What an operator says of commands, resolved.
#[derive(Debug, Clone, Default)]
pub struct Commands {}

impl Commands {
    /// Resolves the settings of a bundle.
    pub fn load(_settings: Option<&ShellSettings>) -> Result<Commands, String> {
        Ok(Commands {})
    }
}

/// The engine for actions: the command line is in `query`, or in `code`.
#[derive(Debug, Clone, Copy)]
pub struct Shell;

impl Verifier for Shell {
    fn engine(&self) -> Engine {
        Engine::Shell
    }

    fn version(&self) -> u32 {
        VERSION
    }

    fn verify(&self, _action: &ActionText<'_>, _ground: &Ground) -> Outcome {
        Outcome::uncertain(vec![Check::failed("engine_available", "command lines are not read yet")])
    }
}
