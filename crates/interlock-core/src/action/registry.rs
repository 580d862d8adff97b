//! Which action types have a meaning: the built-in table, extended by the bundle.

use core::fmt;
use core::hash::{BuildHasherDefault, Hasher};
use std::collections::HashMap;
use std::sync::Arc;

use super::vocabulary::{Engine, Risk, UsdMicros};

/// A type with its meaning.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Registered {
    /// What verifies it.
    pub engine: Engine,
    /// What it may do at worst, unless a verifier knows better.
    pub risk: Risk,
    /// What it costs at least.
    pub price: UsdMicros,
    /// How the tools door treats it.
    pub category: Category,
    /// The one name of all its aliases.
    pub identity: Arc<str>,
}

/// The three categories of document 001.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Category {
    /// Approved at the tools door.
    Safe,
    /// Always needs approval.
    Dangerous,
    /// Registered as an action, unknown at the tools door.
    Unlisted,
}

/// The price of an action that names none.
const PRICE: UsdMicros = UsdMicros(10_000);

/// The most types a registry may hold.
const TYPES_MAX: usize = 20_000;

#[rustfmt::skip]
const BUILT_IN: &[(&str, Engine, Risk, Category)] = &[
    ("execute_sql",     Engine::Sql,         Risk::High,     Category::Unlisted),
    ("execute_code",    Engine::Code,        Risk::Critical, Category::Unlisted),
    ("calculate",       Engine::Math,        Risk::Low,      Category::Unlisted),
    ("verify_math",     Engine::Math,        Risk::Low,      Category::Unlisted),
    ("verify",          Engine::Math,        Risk::Low,      Category::Unlisted),
    ("prove",           Engine::Math,        Risk::Low,      Category::Unlisted),
    ("verify_logic",    Engine::Logic,       Risk::Low,      Category::Unlisted),
    ("verify_fact",     Engine::Fact,        Risk::Low,      Category::Unlisted),
    ("database_read",   Engine::ToolControl, Risk::Low,      Category::Unlisted),
    ("read_database",   Engine::ToolControl, Risk::Low,      Category::Safe),
    ("query_data",      Engine::ToolControl, Risk::Low,      Category::Safe),
    ("file_read",       Engine::ToolControl, Risk::Low,      Category::Unlisted),
    ("read_file",       Engine::ToolControl, Risk::Low,      Category::Unlisted),
    ("search_web",      Engine::ToolControl, Risk::Low,      Category::Safe),
    ("get_weather",     Engine::ToolControl, Risk::Low,      Category::Safe),
    ("log_message",     Engine::ToolControl, Risk::Low,      Category::Safe),
    ("send_email",      Engine::ToolControl, Risk::Medium,   Category::Safe),
    ("api_call",        Engine::ToolControl, Risk::Medium,   Category::Unlisted),
    ("file_write",      Engine::ToolControl, Risk::High,     Category::Unlisted),
    ("database_write",  Engine::ToolControl, Risk::High,     Category::Unlisted),
    ("file_delete",     Engine::ToolControl, Risk::Critical, Category::Unlisted),
    ("delete_database", Engine::ToolControl, Risk::Critical, Category::Dangerous),
    ("drop_table",      Engine::ToolControl, Risk::Critical, Category::Dangerous),
    ("send_money",      Engine::ToolControl, Risk::Critical, Category::Dangerous),
    ("delete_files",    Engine::ToolControl, Risk::Critical, Category::Dangerous),
    ("shutdown_server", Engine::ToolControl, Risk::Critical, Category::Dangerous),
    ("revoke_access",   Engine::ToolControl, Risk::Critical, Category::Dangerous),
];

/// Names of one and the same thing: what blocks the one blocks the other.
const ALIASES: &[(&str, &str)] = &[("read_file", "file_read"), ("read_database", "database_read")];

/// Why a registry cannot be extended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RegistryError {
    /// It would make a built-in type milder.
    Looser {
        /// The type.
        name: String,
        /// What would become milder.
        what: &'static str,
    },
    /// There are too many types.
    TooMany,
}

impl fmt::Display for RegistryError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RegistryError::Looser { name, what } => {
                write!(f, "the built-in type `{name}` may be tightened, not loosened: {what}")
            }
            RegistryError::TooMany => write!(f, "more than {TYPES_MAX} action types"),
        }
    }
}

impl core::error::Error for RegistryError {}

/// The registered types.
#[derive(Debug, Clone)]
pub struct Registry {
    types: HashMap<Arc<str>, Registered, BuildHasherDefault<NameHasher>>,
}

impl Registry {
    /// The types of the documents.
    pub fn built_in() -> Registry {
        let row = |(name, engine, risk, category): &(&str, Engine, Risk, Category)| {
            let identity = identity_of(name);
            (Arc::from(*name), Registered { engine: *engine, risk: *risk, price: PRICE, category: *category, identity })
        };
        Registry { types: BUILT_IN.iter().map(row).collect() }
    }

    /// The meaning of a type, if it has one.
    pub fn get(&self, name: &str) -> Option<&Registered> {
        self.types.get(name)
    }

    /// The one name of a tool and its aliases, whether registered or not.
    pub fn identity<'a>(&'a self, name: &'a str) -> &'a str {
        self.types.get(name).map_or(name, |registered| &registered.identity)
    }

    /// Adds a type, or tightens one.
    pub(crate) fn extend(
        &mut self,
        name: &str,
        engine: Engine,
        risk: Option<Risk>,
        price: Option<UsdMicros>,
    ) -> Result<(), RegistryError> {
        let looser = |what| RegistryError::Looser { name: name.to_owned(), what };
        if let Some(known) = self.types.get(name) {
            if known.engine != engine {
                return Err(looser("its engine is fixed"));
            }
            let identity = Arc::clone(&known.identity);
            // What is said of one name is said of its aliases.
            for row in self.types.values_mut().filter(|row| row.identity == identity) {
                if risk.is_some_and(|risk| risk < row.risk) {
                    return Err(looser("its risk may only rise"));
                }
                row.risk = risk.unwrap_or(row.risk);
                row.price = price.unwrap_or(row.price);
            }
            return Ok(());
        }
        if self.types.len() >= TYPES_MAX {
            return Err(RegistryError::TooMany);
        }
        // What nobody rated is rated as what it could be at worst.
        let risk = risk.unwrap_or(Risk::High);
        let (price, identity) = (price.unwrap_or(PRICE), Arc::from(name));
        let row = Registered { engine, risk, price, category: Category::Unlisted, identity };
        self.types.insert(Arc::from(name), row);
        Ok(())
    }

    /// Lists a tool as safe or dangerous at the tools door, registering it if it is not.
    pub(crate) fn categorise(&mut self, name: &str, category: Category) -> Result<(), RegistryError> {
        let risk = if category == Category::Dangerous { Risk::Critical } else { Risk::Medium };
        if !self.types.contains_key(name) {
            self.extend(name, Engine::ToolControl, Some(risk), None)?;
        }
        let Some(identity) = self.types.get(name).map(|row| Arc::clone(&row.identity)) else {
            return Err(RegistryError::TooMany);
        };
        if self.types.get(name).is_some_and(|row| row.engine != Engine::ToolControl) {
            return Err(RegistryError::Looser {
                name: name.to_owned(),
                what: "it is verified by an engine, not a tool",
            });
        }
        for (other, row) in self.types.iter_mut().filter(|(_, row)| row.identity == identity) {
            if row.category == Category::Dangerous && category != Category::Dangerous {
                return Err(RegistryError::Looser { name: name.to_owned(), what: "it is dangerous" });
            }
            // A danger is one under every name; safe is only the name that was listed.
            if category == Category::Dangerous || **other == *name {
                row.category = category;
            }
            if category == Category::Dangerous {
                row.risk = row.risk.max(risk);
            }
        }
        Ok(())
    }
}

/// FNV-1a: the same on every machine. Only an operator adds names, so nobody can choose them to collide.
#[derive(Debug, Clone)]
struct NameHasher(u64);

impl Default for NameHasher {
    fn default() -> NameHasher {
        NameHasher(0xcbf2_9ce4_8422_2325)
    }
}

impl Hasher for NameHasher {
    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = (self.0 ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
        }
    }

    fn finish(&self) -> u64 {
        self.0
    }
}

fn identity_of(name: &str) -> Arc<str> {
    Arc::from(ALIASES.iter().find(|(alias, _)| *alias == name).map_or(name, |(_, identity)| identity))
}
