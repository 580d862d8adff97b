//! What a statement is held against: tables and columns that exist, columns nobody may read, functions that may run.

use std::collections::{BTreeMap, BTreeSet};

use sqlparser::ast::{ObjectName, ObjectNamePart};

/// Columns that hold secrets by their name, whatever the table.
#[rustfmt::skip]
const SENSITIVE: &[&str] = &[
    "access_key", "access_token", "account_password", "api_key", "api_secret", "api_token", "apikey", "auth_token",
    "authentication_string", "bank_account_number", "bearer_token", "card_cvc", "card_cvv", "card_number",
    "cc_number", "client_secret", "credit_card", "credit_card_number", "creditcard", "cvc", "cvv", "cvv2",
    "encrypted_password", "encryption_key", "hashed_password", "id_token", "mfa_secret", "otp_secret", "pass_hash",
    "passphrase", "passwd", "passwd_hash", "password", "password_digest", "password_hash", "password_salt",
    "passwordhash", "pin", "pin_code", "private_key", "privatekey", "pwd", "pwd_hash", "recovery_code",
    "refresh_token", "rolpassword", "secret", "secret_access_key", "secret_key", "secret_token", "security_answer",
    "session_token", "signing_key", "social_security", "social_security_number", "ssn", "totp_secret", "umoptions",
    "user_password", "webhook_secret",
];

/// System tables with a column of that kind.
const SENSITIVE_TABLES: &[(&str, &str)] = &[
    ("mysql.user", "authentication_string"),
    ("pg_authid", "rolpassword"),
    ("pg_shadow", "passwd"),
    ("pg_user_mapping", "umoptions"),
    ("pg_user_mappings", "umoptions"),
    ("pg_subscription", "subconninfo"),
    ("sql_logins", "password_hash"),
];

/// A column that is sensitive by the operator's word, in one table or in all.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct SensitiveColumn {
    pub(super) table: Option<String>,
    pub(super) column: String,
}

/// Tables that exist.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Schema {
    /// By the last part of their name, in lower case.
    tables: BTreeMap<String, Vec<Table>>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Table {
    /// What stands before the last part of its name, in lower case.
    pub(super) qualifiers: Vec<String>,
    pub(super) columns: Vec<Column>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Column {
    pub(super) name: String,
    pub(super) sensitive: bool,
}

impl Table {
    pub(super) fn column(&self, name: &str) -> Option<&Column> {
        self.columns.iter().find(|column| {
            column.name.eq_ignore_ascii_case(name) || (!name.is_ascii() && column.name == name.to_lowercase())
        })
    }
}

impl Schema {
    /// Adds a table; false if it is there already.
    pub(super) fn add(&mut self, name: &str, table: Table) -> bool {
        let tables = self.tables.entry(name.to_lowercase()).or_default();
        let is_new = tables.iter().all(|known| known.qualifiers != table.qualifiers);
        if is_new {
            tables.push(table);
        }
        is_new
    }

    pub(super) fn is_empty(&self) -> bool {
        self.tables.is_empty()
    }

    /// How many columns all tables have.
    pub(super) fn columns_len(&self) -> usize {
        self.tables.values().flatten().map(|table| table.columns.len()).sum()
    }

    /// The table of a name. Where one of the two is qualified and the other is not, they are the same.
    pub(super) fn table(&self, parts: &[&str]) -> Option<&Table> {
        let (name, qualifiers) = parts.split_last()?;
        let tables = self.tables.get(&name.to_lowercase())?;
        tables.iter().find(|table| {
            let pairs = table.qualifiers.iter().rev().zip(qualifiers.iter().rev());
            pairs.into_iter().all(|(known, given)| *known == given.to_lowercase())
        })
    }
}

/// All of it for one statement.
#[derive(Debug, Clone, Copy)]
pub(super) struct Rules<'r> {
    pub(super) schema: Option<&'r Schema>,
    pub(super) sensitive: &'r [SensitiveColumn],
    /// In lower case, parts joined by full stops.
    pub(super) functions: &'r BTreeSet<String>,
}

impl Rules<'_> {
    /// Whether a column is sensitive whatever the table.
    pub(super) fn is_sensitive(&self, column: &str) -> bool {
        // SQL Server does not mind blanks at the end of a name.
        let column = column.trim_end();
        is_sensitive_name(column)
            || self.sensitive.iter().any(|known| known.table.is_none() && known.column.eq_ignore_ascii_case(column))
    }

    /// Whether a column is sensitive in this table.
    pub(super) fn is_sensitive_in(&self, table: &str, column: &str) -> bool {
        self.sensitive.iter().any(|known| {
            known.table.as_deref().is_some_and(|known| known.eq_ignore_ascii_case(table))
                && known.column.eq_ignore_ascii_case(column)
        }) || SENSITIVE_TABLES
            .iter()
            .any(|(known, secret)| known.eq_ignore_ascii_case(table) && secret.eq_ignore_ascii_case(column))
    }

    /// Whether a table is known to have a sensitive column that is not excepted.
    pub(super) fn has_sensitive(&self, table: &str, excepted: &dyn Fn(&str) -> bool) -> bool {
        self.sensitive.iter().any(|known| {
            known.table.as_deref().is_some_and(|known| known.eq_ignore_ascii_case(table)) && !excepted(&known.column)
        }) || SENSITIVE_TABLES.iter().any(|(known, secret)| known.eq_ignore_ascii_case(table) && !excepted(secret))
    }

    /// Whether the operator named a function as harmless.
    pub(super) fn allows_function(&self, name: &ObjectName) -> bool {
        if self.functions.is_empty() {
            return false;
        }
        let parts: Vec<_> =
            name.0.iter().filter_map(ObjectNamePart::as_ident).map(|part| part.value.as_str()).collect();
        self.functions.contains(&parts.join(".").to_lowercase())
    }
}

/// Whether a name is one that secrets go by.
fn is_sensitive_name(column: &str) -> bool {
    // Most names have no length in common with any of these.
    (3..=24).contains(&column.len()) && SENSITIVE.iter().any(|known| known.eq_ignore_ascii_case(column))
}
