//! A bundle: what an operator configures. It extends or tightens what is built in and loosens nothing.

use core::fmt;
use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::action::{ActionName, ActionText, Category, Engine, Registry, Risk, UsdMicros};
use crate::digest::Digest;
use crate::json;
use crate::rule::{RuleFinding, RuleSource, Rules};
use crate::state::StateGuard;

/// The format of bundles this version reads.
const FORMAT: u32 = 1;
/// What an action costs that has no price of its own.
const PRICE: UsdMicros = UsdMicros(10_000);

/// Everything an operator configured, with every name resolved.
#[derive(Debug, Clone)]
pub struct Bundle {
    text: String,
    digest: Digest,
    registry: Registry,
    rules: Rules,
    guards: BTreeMap<String, StateGuard>,
    observed_required: bool,
}

/// Why a bundle is refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BundleError(String);

impl fmt::Display for BundleError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for BundleError {}

/// `interlock.toml`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct BundleFile {
    #[serde(default)]
    format: Option<u32>,
    #[serde(default)]
    actions: BTreeMap<String, ActionFile>,
    #[serde(default)]
    tools: Tools,
    #[serde(default)]
    doom_loop_guard_required: bool,
    #[serde(default, rename = "rule")]
    rules: Vec<RuleSource>,
    #[serde(default)]
    guards: BTreeMap<String, GuardTable>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct ActionFile {
    engine: Engine,
    risk: Option<Risk>,
    price_usd: Option<toml::Value>,
}

/// A state guard: written out, or in a file beside the bundle.
#[derive(Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
struct GuardTable {
    #[serde(default, skip_serializing)]
    file: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    required_schema: Option<toml::Value>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    transition_rules: Option<toml::Value>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    allowed_commit_roots: Option<Vec<String>>,
}

impl GuardTable {
    /// The text of a guard file.
    fn text(&self, files: &BTreeMap<String, String>) -> Result<String, String> {
        match (&self.file, &self.required_schema, &self.transition_rules, &self.allowed_commit_roots) {
            (Some(file), None, None, None) => {
                files.get(file).cloned().ok_or_else(|| format!("there is no file `{}`", crate::display(file)))
            }
            (None, Some(_), _, _) => serde_json::to_string(self).map_err(|error| error.to_string()),
            _ => {
                Err("needs `required_schema` (with `transition_rules`, `allowed_commit_roots`), or `file` alone"
                    .to_owned())
            }
        }
    }
}

/// The canonical form of a bundle: everything it says, each thing in one spelling.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct BundleText {
    format: u32,
    actions: BTreeMap<String, ActionSource>,
    tools: Tools,
    doom_loop_guard_required: bool,
    rules: Vec<RuleSource>,
    /// Guard files by name.
    guards: BTreeMap<String, String>,
    /// Where the server's own files are.
    own_places: Vec<String>,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct ActionSource {
    engine: Engine,
    risk: Option<Risk>,
    price_usd: Option<UsdMicros>,
}

#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Tools {
    #[serde(default)]
    safe: Vec<String>,
    #[serde(default)]
    dangerous: Vec<String>,
}

impl Bundle {
    /// What holds without any configuration.
    pub fn built_in() -> Result<Bundle, BundleError> {
        Bundle::load("", &BTreeMap::new(), false)
    }

    /// Reads `interlock.toml` with the texts of the files it names. `observed_required` can only switch that demand on.
    pub fn load(text: &str, files: &BTreeMap<String, String>, observed_required: bool) -> Result<Bundle, BundleError> {
        Bundle::load_for(text, files, observed_required, &[])
    }

    /// The same for a server whose own files are in these places: no agent may touch them.
    pub fn load_for(
        text: &str,
        files: &BTreeMap<String, String>,
        observed_required: bool,
        own_places: &[String],
    ) -> Result<Bundle, BundleError> {
        let file: BundleFile =
            toml::from_str(text).map_err(|error| BundleError(error.to_string().trim_end().to_owned()))?;
        if file.format.is_some_and(|format| format != FORMAT) {
            return Err(BundleError(format!("this version reads bundles of format {FORMAT}")));
        }
        let mut guards = BTreeMap::new();
        for (name, guard) in file.guards {
            let text = guard.text(files).map_err(|reason| BundleError(format!("guards.{name}: {reason}")))?;
            guards.insert(name, text);
        }
        let mut actions = BTreeMap::new();
        for (name, action) in file.actions {
            let price_usd = action
                .price_usd
                .map(|price| {
                    read_price(&price).ok_or_else(|| {
                        BundleError(format!("actions.{name}.price_usd: a number of dollars with at most six places"))
                    })
                })
                .transpose()?;
            actions.insert(name, ActionSource { engine: action.engine, risk: action.risk, price_usd });
        }
        Bundle::resolve(&BundleText {
            format: FORMAT,
            actions,
            tools: file.tools,
            doom_loop_guard_required: file.doom_loop_guard_required || observed_required,
            rules: file.rules,
            guards,
            own_places: own_places.to_vec(),
        })
    }

    /// Reads a bundle from its canonical text, as it stands in the ledger.
    pub fn from_text(text: &str) -> Result<Bundle, BundleError> {
        let text: BundleText = json::from_str(text).map_err(|error| BundleError(error.to_string()))?;
        if text.format != FORMAT {
            return Err(BundleError(format!("this version reads bundles of format {FORMAT}, not {}", text.format)));
        }
        Bundle::resolve(&text)
    }

    fn resolve(source: &BundleText) -> Result<Bundle, BundleError> {
        let text = serde_json::to_string(source).map_err(|error| BundleError(error.to_string()))?;
        let mut registry = Registry::built_in();
        for (name, action) in &source.actions {
            check_name("actions", name)?;
            let extended = registry.extend(name, action.engine, action.risk, action.price_usd);
            extended.map_err(|error| BundleError(format!("actions.{name}: {error}")))?;
        }
        // The dangerous ones last: a tool in both lists is dangerous.
        for (names, category) in [(&source.tools.safe, Category::Safe), (&source.tools.dangerous, Category::Dangerous)]
        {
            for name in names {
                check_name("tools", name)?;
                registry.categorise(name, category).map_err(|error| BundleError(format!("tools: {error}")))?;
            }
        }
        let rules = Rules::load(&source.rules, &registry, &source.own_places)
            .map_err(|error| BundleError(error.to_string()))?;
        let mut guards = BTreeMap::new();
        for (name, text) in &source.guards {
            let guard = StateGuard::load_file(text).map_err(|error| BundleError(format!("guards.{name}: {error}")))?;
            guards.insert(name.clone(), guard);
        }
        let digest = Digest::of(&[&text]);
        let observed_required = source.doom_loop_guard_required;
        Ok(Bundle { text, digest, registry, rules, guards, observed_required })
    }

    /// The canonical text: what the digest covers and the ledger keeps.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The SHA-256 of the canonical text.
    pub fn digest(&self) -> Digest {
        self.digest
    }

    /// The registered types.
    pub fn registry(&self) -> &Registry {
        &self.registry
    }

    /// What the argument rules say about an action.
    pub fn find_rules(&self, action: &ActionText<'_>) -> RuleFinding {
        let governed = self.registry.get(action.kind).is_none_or(|row| row.engine == Engine::ToolControl);
        self.rules.find(self.registry.identity(action.kind), governed, action)
    }

    /// The state guards by name.
    pub fn guards(&self) -> &BTreeMap<String, StateGuard> {
        &self.guards
    }

    /// Whether every action must say what state it was proposed in.
    pub fn observed_required(&self) -> bool {
        self.observed_required
    }

    /// What an action costs that has no price of its own.
    pub(crate) fn price(&self) -> UsdMicros {
        PRICE
    }
}

/// The keys that an `interlock.toml` sets, dotted, tables down to their values; lists count as one key.
pub fn keys_given(text: &str) -> Result<Vec<String>, BundleError> {
    fn collect(prefix: &str, table: &toml::Table, keys: &mut Vec<String>) {
        for (key, value) in table {
            let key = if prefix.is_empty() { key.clone() } else { format!("{prefix}.{key}") };
            match value.as_table() {
                Some(table) => collect(&key, table, keys),
                None => keys.push(key),
            }
        }
    }
    let table: toml::Table =
        toml::from_str(text).map_err(|error| BundleError(error.to_string().trim_end().to_owned()))?;
    let mut keys = Vec::new();
    collect("", &table, &mut keys);
    Ok(keys)
}

fn check_name(section: &str, name: &str) -> Result<(), BundleError> {
    match ActionName::parse(name).as_str() {
        Some(_) => Ok(()),
        None => Err(BundleError(format!(
            "{section}: `{}` is not a name; use letters, digits and _ . : -, at most 64 of them",
            crate::display(name)
        ))),
    }
}

fn read_price(value: &toml::Value) -> Option<UsdMicros> {
    match value {
        toml::Value::Integer(dollars) => UsdMicros::parse(&dollars.to_string()),
        // Printed as short as it reads back, which is how it was written if it has at most six places.
        toml::Value::Float(dollars) => UsdMicros::parse(&dollars.to_string()),
        toml::Value::String(dollars) => UsdMicros::parse(dollars),
        toml::Value::Boolean(_) | toml::Value::Datetime(_) | toml::Value::Array(_) | toml::Value::Table(_) => None,
    }
}
