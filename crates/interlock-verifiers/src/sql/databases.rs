//! What an operator says of databases: `[sql]` and `[sql.targets.NAME]`, with every name resolved.

use std::collections::{BTreeMap, BTreeSet};

use interlock_core::bundle::SqlSettings;
use interlock_core::{Cause, display};

use super::dialect::{Dialect, Named};
use super::rules::{Rules, Schema, SensitiveColumn};
use super::schema;

/// What an operator says of databases, resolved.
#[derive(Debug, Clone, Default)]
pub struct Databases {
    any: Database,
    targets: BTreeMap<String, Database>,
}

/// One database.
#[derive(Debug, Clone, Default)]
pub(super) struct Database {
    pub(super) dialect: Option<Dialect>,
    pub(super) schema: Option<Schema>,
    pub(super) sensitive: Vec<SensitiveColumn>,
    pub(super) functions: BTreeSet<String>,
}

impl Databases {
    /// Resolves the settings of a bundle.
    pub fn load(settings: Option<&SqlSettings>) -> Result<Databases, Cause> {
        let Some(settings) = settings else { return Ok(Databases::default()) };
        let any = Database::load(settings, &Database::default())?;
        let mut targets = BTreeMap::new();
        for (name, settings) in &settings.targets {
            if name.is_empty() {
                return Err("a target has no name".into());
            }
            let target = Database::load(settings, &any)
                .map_err(|why| Cause::while_doing(format!("target `{}`", display(name)), why))?;
            targets.insert(name.clone(), target);
        }
        Ok(Databases { any, targets })
    }

    /// The database an action is for; what holds for any, if its name is not known.
    pub(super) fn of_target(&self, target: Option<&str>) -> &Database {
        target.and_then(|target| self.targets.get(target)).unwrap_or(&self.any)
    }
}

impl Database {
    /// A database that has its own dialect and schema, and columns and functions beside those of all.
    fn load(settings: &SqlSettings, all: &Database) -> Result<Database, Cause> {
        let dialect = match &settings.dialect {
            None => all.dialect,
            Some(name) => match Dialect::named(name) {
                Some(Named::One(dialect)) => Some(dialect),
                Some(Named::Generic) => None,
                None => return Err(format!("unknown dialect `{}`", display(name)).into()),
            },
        };
        let schema = match &settings.schema {
            None => all.schema.clone(),
            Some(text) => Some(schema::read(text, dialect)?),
        };
        let mut sensitive = all.sensitive.clone();
        for name in &settings.sensitive_columns {
            sensitive.push(sensitive_column(name)?);
        }
        let mut functions = all.functions.clone();
        for name in &settings.functions {
            if name.is_empty() || name.split('.').any(str::is_empty) {
                return Err(format!("`{}` is not the name of a function", display(name)).into());
            }
            functions.insert(name.to_lowercase());
        }
        Ok(Database { dialect, schema, sensitive, functions })
    }

    pub(super) fn rules(&self) -> Rules<'_> {
        Rules { schema: self.schema.as_ref(), sensitive: &self.sensitive, functions: &self.functions }
    }
}

/// `column` or `table.column`; a schema before the table is allowed and not looked at.
fn sensitive_column(name: &str) -> Result<SensitiveColumn, Cause> {
    let mut parts: Vec<&str> = name.split('.').collect();
    if parts.iter().any(|part| part.is_empty()) || parts.len() > 3 {
        return Err(format!("`{}` is not the name of a column", display(name)).into());
    }
    let column = parts.pop().unwrap_or_default().to_owned();
    Ok(SensitiveColumn { table: parts.pop().map(str::to_owned), column })
}
