//! The walk over the tree of a statement: every node is on a list, or the statement is not understood.
//!
//! One walk finds everything: what is read and written, which functions are called, which predicates are constant,
//! which names are sensitive or unknown. It judges nothing.

#![expect(
    clippy::wildcard_enum_match_arm,
    reason = "the enums of the parser are large and grow; what is not listed falls into the arm that is not understood"
)]

mod expr;
mod from;
mod function;
mod likeness;
mod predicate;
mod query;
mod scope;
mod statement;
mod write;

use sqlparser::ast::{Ident, ObjectName, ObjectNamePart, Statement};

use super::dialect::Dialect;
use super::keywords;
use super::limits::TREE_DEPTH_MAX;
use super::rules::Rules;
use crate::outcome::Risk;
use scope::{Cte, Scope};

/// What a statement is found to do.
#[derive(Debug)]
pub(super) struct StatementFindings<'a> {
    /// Its kind, for the certificate.
    pub(super) kind: &'static str,
    /// What it does at worst.
    pub(super) risk: Risk,
    pub(super) reads: Vec<Name<'a>>,
    pub(super) writes: Vec<Name<'a>>,
    pub(super) functions: Vec<Name<'a>>,
    /// The first node that is not on the list.
    pub(super) not_understood: Option<&'static str>,
    /// A word where this dialect has no name: the server reads the text otherwise than the parser.
    pub(super) misread: Option<usize>,
    pub(super) tautology: Option<usize>,
    pub(super) function: Option<RefusedFunction>,
    pub(super) sensitive: Option<usize>,
    /// `*` or a whole row where the columns are not known.
    pub(super) unknown_columns: bool,
    pub(super) unknown_name: Option<usize>,
}

/// A name as it is written, in whichever form the tree has it.
#[derive(Debug, Clone, Copy)]
pub(super) enum Name<'a> {
    Object(&'a ObjectName),
    Parts(&'a [Ident]),
    Word(&'a str),
}

impl core::fmt::Display for Name<'_> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        let mut parts = |parts: &mut dyn Iterator<Item = &str>| {
            for (index, part) in parts.enumerate() {
                if index > 0 {
                    f.write_str(".")?;
                }
                f.write_str(part)?;
            }
            Ok(())
        };
        match self {
            Name::Object(name) => {
                parts(&mut name.0.iter().filter_map(ObjectNamePart::as_ident).map(|part| part.value.as_str()))
            }
            Name::Parts(names) => parts(&mut names.iter().map(|part| part.value.as_str())),
            Name::Word(word) => f.write_str(word),
        }
    }
}

/// A function that may not be called.
#[derive(Debug, Clone, Copy)]
pub(super) struct RefusedFunction {
    pub(super) at: usize,
    /// It is known to do harm, not merely unknown.
    pub(super) harmful: bool,
}

/// Walks a statement.
pub(super) fn walk<'a>(statement: &'a Statement, dialect: Dialect, rules: &'a Rules<'a>) -> StatementFindings<'a> {
    let found = StatementFindings {
        kind: "unknown",
        risk: Risk::Low,
        reads: Vec::new(),
        writes: Vec::new(),
        functions: Vec::new(),
        not_understood: None,
        misread: None,
        tautology: None,
        function: None,
        sensitive: None,
        unknown_columns: false,
        unknown_name: None,
    };
    let mut walker = Walker { dialect, rules, found, scopes: Vec::new(), ctes: Vec::new(), depth: 0, data: 0 };
    walker.found.kind = walker.statement(statement);
    walker.found
}

struct Walker<'a> {
    dialect: Dialect,
    rules: &'a Rules<'a>,
    found: StatementFindings<'a>,
    scopes: Vec<Scope<'a>>,
    ctes: Vec<Cte<'a>>,
    depth: u32,
    /// How many things the walk has met that depend on data: columns, tables, parameters, aggregates.
    data: usize,
}

impl<'a> Walker<'a> {
    /// A node, clause or option that is not on the list.
    fn unknown(&mut self, what: &'static str) {
        self.found.not_understood.get_or_insert(what);
    }

    /// Goes one level down, unless that is too deep.
    fn deeper(&mut self) -> bool {
        if self.depth >= TREE_DEPTH_MAX {
            self.unknown("a tree that is too deep");
            return false;
        }
        self.depth = self.depth.saturating_add(1);
        true
    }

    fn back_up(&mut self) {
        self.depth = self.depth.saturating_sub(1);
    }

    /// Not understood unless it is absent.
    fn absent(&mut self, absent: bool, what: &'static str) {
        if !absent {
            self.unknown(what);
        }
    }

    fn raise(&mut self, risk: Risk) {
        self.found.risk = self.found.risk.max(risk);
    }

    /// Something that depends on data.
    fn meets_data(&mut self) {
        self.data = self.data.saturating_add(1);
    }

    fn reads(&mut self, name: &'a ObjectName) {
        self.name(name);
        self.found.reads.push(Name::Object(name));
    }

    fn writes(&mut self, name: &'a ObjectName, risk: Risk) {
        self.name(name);
        self.found.writes.push(Name::Object(name));
        self.raise(risk);
    }

    /// The name of a table or the like: at most three parts, each an identifier.
    fn name(&mut self, name: &'a ObjectName) {
        if name.0.len() > 3 {
            self.unknown("a name of more than three parts");
        }
        for part in &name.0 {
            match part {
                ObjectNamePart::Identifier(part) => self.ident(part),
                ObjectNamePart::Function(_) => self.unknown("a name that is computed"),
            }
        }
    }

    /// Any identifier. In Transact-SQL a reserved word in its place begins another statement: `FROM t SHUTDOWN`.
    fn ident(&mut self, ident: &'a Ident) {
        match ident.quote_style {
            None if self.dialect == Dialect::Mssql && keywords::is_reserved_in_mssql(&ident.value) => {
                self.found.misread.get_or_insert(position(ident));
            }
            Some('\'') => self.unknown("a string in place of a name"),
            None | Some(_) => {}
        }
    }

    /// A name that stands alone. The parser takes words for names that no server does.
    fn not_reserved(&mut self, ident: &'a Ident) {
        if ident.quote_style.is_some() {
            return;
        }
        if keywords::is_reserved_everywhere(&ident.value) {
            self.found.misread.get_or_insert(position(ident));
        }
        if self.dialect == Dialect::Postgres && keywords::is_reserved_in_postgres(&ident.value) {
            self.unknown("a word that is no name");
        }
    }

    /// A column that is named.
    fn column(&mut self, ident: &'a Ident) {
        self.ident(ident);
        if self.rules.is_sensitive(&ident.value) {
            self.found.sensitive.get_or_insert(position(ident));
        }
    }
}

/// Where an identifier begins, in bytes.
fn position(ident: &Ident) -> usize {
    usize::try_from(ident.span.start.column).unwrap_or(usize::MAX).saturating_sub(1)
}

/// The last part of a name.
fn last(name: &ObjectName) -> Option<&Ident> {
    name.0.last().and_then(ObjectNamePart::as_ident)
}
