//! What an operator tells the verifiers: `[sql]` and `[shell]`.
//!
//! Kept here as written, so that the digest covers it; the verifiers resolve it and refuse what they cannot.

use std::collections::BTreeMap;

use crate::cause::Cause;
use serde::{Deserialize, Serialize};

/// `[sql]`: what holds for every database, and `[sql.targets.NAME]` for one that an action names as its `target`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SqlSettings {
    /// `postgres`, `mysql`, `sqlite`, `mssql`, `snowflake` or `bigquery`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dialect: Option<String>,
    /// The tables: `CREATE TABLE` statements, or JSON.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub schema: Option<String>,
    /// The file beside the bundle that holds the schema instead.
    #[serde(default, skip_serializing)]
    pub schema_file: Option<String>,
    /// Columns no statement may read, as `column` or `table.column`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sensitive_columns: Vec<String>,
    /// Functions that may be called beside the ones known to be harmless.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub functions: Vec<String>,
    /// What holds for one database: its dialect and schema instead, its columns and functions in addition. Targets have
    /// no targets.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub targets: BTreeMap<String, SqlSettings>,
}

/// `[shell]`: commands beside the built-in table.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ShellSettings {
    /// A table of commands in the syntax of the built-in one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub commands: Option<String>,
    /// The file beside the bundle that holds it instead.
    #[serde(default, skip_serializing)]
    pub commands_file: Option<String>,
}

impl SqlSettings {
    /// Puts the texts of files in place of their names.
    pub(super) fn read_files(&mut self, files: &BTreeMap<String, String>) -> Result<(), Cause> {
        take(&mut self.schema, &mut self.schema_file, files).map_err(|cause| Cause::while_doing("sql", cause))?;
        for (name, target) in &mut self.targets {
            let place = format!("sql.targets.{}", crate::display(name));
            if !target.targets.is_empty() {
                return Err(format!("{place}: a target has no targets").into());
            }
            take(&mut target.schema, &mut target.schema_file, files)
                .map_err(|cause| Cause::while_doing(place, cause))?;
        }
        Ok(())
    }
}

impl ShellSettings {
    /// Puts the text of the file in place of its name.
    pub(super) fn read_files(&mut self, files: &BTreeMap<String, String>) -> Result<(), Cause> {
        take(&mut self.commands, &mut self.commands_file, files).map_err(|cause| Cause::while_doing("shell", cause))
    }
}

fn take(text: &mut Option<String>, file: &mut Option<String>, files: &BTreeMap<String, String>) -> Result<(), Cause> {
    match (&text, file.take()) {
        (_, None) => Ok(()),
        (Some(_), Some(file)) => Err(format!("both a text and the file `{}`", crate::display(&file)).into()),
        (None, Some(file)) => {
            let found = files.get(&file).ok_or_else(|| format!("there is no file `{}`", crate::display(&file)))?;
            *text = Some(found.clone());
            Ok(())
        }
    }
}
