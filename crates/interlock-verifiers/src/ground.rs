//! What a verdict may rest on besides the text: the operator's word.

use interlock_core::Cause;
use interlock_core::bundle::Bundle;

use crate::shell::Commands;
use crate::sql::Databases;

/// Everything an operator told the verifiers, with every name resolved.
#[derive(Debug, Clone)]
pub struct Ground {
    /// What is known of databases.
    pub databases: Databases,
    /// What is known of commands.
    pub commands: Commands,
    /// The action is the operator's own, so that a dialect or schema in it counts. Never true for an agent's.
    pub trusts_action: bool,
}

impl Ground {
    /// What a bundle says, or why it is refused.
    pub fn load(bundle: &Bundle) -> Result<Ground, Cause> {
        let databases = Databases::load(bundle.sql()).map_err(|cause| Cause::while_doing("sql", cause))?;
        let commands = Commands::load(bundle.shell()).map_err(|cause| Cause::while_doing("shell", cause))?;
        Ok(Ground { databases, commands, trusts_action: false })
    }
}
