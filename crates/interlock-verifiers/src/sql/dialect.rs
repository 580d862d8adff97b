//! The dialects: their names, their parsers, and the settings of a server on which the reading of a text depends.

use sqlparser::dialect::{
    BigQueryDialect, Dialect as Grammar, MsSqlDialect, MySqlDialect, PostgreSqlDialect, SQLiteDialect, SnowflakeDialect,
};

/// A dialect of SQL.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Dialect {
    /// PostgreSQL.
    Postgres,
    /// MySQL and MariaDB.
    Mysql,
    /// SQLite.
    Sqlite,
    /// Transact-SQL of SQL Server.
    Mssql,
    /// Snowflake.
    Snowflake,
    /// GoogleSQL of BigQuery.
    Bigquery,
}

/// What a name of a dialect stands for: one dialect, or none in particular.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Named {
    One(Dialect),
    Generic,
}

impl Dialect {
    /// Every dialect, in the order in which they are tried.
    pub const ALL: [Dialect; 6] =
        [Dialect::Postgres, Dialect::Mysql, Dialect::Sqlite, Dialect::Mssql, Dialect::Snowflake, Dialect::Bigquery];

    /// Its name in bundles, actions and certificates.
    pub fn name(self) -> &'static str {
        match self {
            Dialect::Postgres => "postgres",
            Dialect::Mysql => "mysql",
            Dialect::Sqlite => "sqlite",
            Dialect::Mssql => "mssql",
            Dialect::Snowflake => "snowflake",
            Dialect::Bigquery => "bigquery",
        }
    }

    /// The dialect of a name; `generic` means the same as no dialect.
    pub(super) fn named(name: &str) -> Option<Named> {
        if name.eq_ignore_ascii_case("generic") {
            return Some(Named::Generic);
        }
        Dialect::ALL.into_iter().find(|dialect| name.eq_ignore_ascii_case(dialect.name())).map(Named::One)
    }

    /// One bit for each dialect, for tables.
    pub(super) fn bit(self) -> u8 {
        match self {
            Dialect::Postgres => 1,
            Dialect::Mysql => 2,
            Dialect::Sqlite => 4,
            Dialect::Mssql => 8,
            Dialect::Snowflake => 16,
            Dialect::Bigquery => 32,
        }
    }

    /// The parser's word for it.
    pub(super) fn grammar(self) -> &'static dyn Grammar {
        match self {
            Dialect::Postgres => &PostgreSqlDialect {},
            Dialect::Mysql => &MySqlDialect {},
            Dialect::Sqlite => &SQLiteDialect {},
            Dialect::Mssql => &MsSqlDialect {},
            Dialect::Snowflake => &SnowflakeDialect,
            Dialect::Bigquery => &BigQueryDialect,
        }
    }

    /// How a server of this dialect reads text unless it is told otherwise.
    pub(super) fn modes(self) -> Modes {
        let strings = Modes { backslash_escapes: true, double_quotes_strings: false, pipes_or: false };
        match self {
            Dialect::Postgres | Dialect::Sqlite | Dialect::Mssql => Modes { backslash_escapes: false, ..strings },
            Dialect::Mysql => Modes { double_quotes_strings: true, pipes_or: true, ..strings },
            Dialect::Snowflake => strings,
            Dialect::Bigquery => Modes { double_quotes_strings: true, ..strings },
        }
    }

    /// The settings that another server of this dialect could have.
    pub(super) fn open_modes(self) -> Doubts {
        match self {
            // standard_conforming_strings
            Dialect::Postgres => Doubts { backslash: true, ..Doubts::NONE },
            // NO_BACKSLASH_ESCAPES, ANSI_QUOTES, PIPES_AS_CONCAT
            Dialect::Mysql => Doubts { backslash: true, double_quotes: true, pipes: true, ..Doubts::NONE },
            // A name in double quotes that names nothing is a string; SET QUOTED_IDENTIFIER
            Dialect::Sqlite | Dialect::Mssql => Doubts { double_quotes: true, ..Doubts::NONE },
            Dialect::Snowflake | Dialect::Bigquery => Doubts::NONE,
        }
    }

    /// Whether names that differ in accents or width may be one name, by the collation of the server.
    pub(super) fn folds_names(self) -> bool {
        match self {
            Dialect::Mysql | Dialect::Mssql => true,
            Dialect::Postgres | Dialect::Sqlite | Dialect::Snowflake | Dialect::Bigquery => false,
        }
    }
}

/// How a text is read where servers of one dialect differ.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Modes {
    /// A backslash in a string escapes what follows.
    pub(super) backslash_escapes: bool,
    /// Double quotes enclose a string, not a name.
    pub(super) double_quotes_strings: bool,
    /// `||` means OR, not concatenation.
    pub(super) pipes_or: bool,
}

/// What in a text has a meaning that depends on a setting of the server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Doubts {
    pub(super) backslash: bool,
    pub(super) double_quotes: bool,
    pub(super) pipes: bool,
    /// A name that the collation of the server may fold to another.
    pub(super) names: bool,
}

impl Doubts {
    pub(super) const NONE: Doubts = Doubts { backslash: false, double_quotes: false, pipes: false, names: false };

    pub(super) fn any(self) -> bool {
        self.backslash || self.double_quotes || self.pipes || self.names
    }

    /// The other readings of a text with these doubts; the usual one is not among them.
    pub(super) fn other_readings(self, usual: Modes) -> Vec<Modes> {
        let mut readings = vec![usual];
        if self.backslash {
            let flipped: Vec<_> =
                readings.iter().map(|m| Modes { backslash_escapes: !m.backslash_escapes, ..*m }).collect();
            readings.extend(flipped);
        }
        if self.double_quotes {
            let flipped: Vec<_> =
                readings.iter().map(|m| Modes { double_quotes_strings: !m.double_quotes_strings, ..*m }).collect();
            readings.extend(flipped);
        }
        if self.pipes {
            let flipped: Vec<_> = readings.iter().map(|m| Modes { pipes_or: !m.pipes_or, ..*m }).collect();
            readings.extend(flipped);
        }
        readings.into_iter().skip(1).collect()
    }
}
