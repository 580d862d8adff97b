//! A bundle: what an operator configures. It extends or tightens what is built in and loosens nothing.

mod engines;
mod keep;

use core::fmt;
use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::action::{ActionName, ActionText, Category, Engine, Millis, Mode, Registry, Risk, UsdMicros};
use crate::cause::Cause;
use crate::contain::{ProfileSource, Profiles};
use crate::digest::Digest;
use crate::json;
use crate::rule::{CallSubject, CommandLine, Language, RuleFinding, RuleSource, Rules};
use crate::state::StateGuard;

pub use engines::{ShellSettings, SqlSettings};
pub use keep::{KeepSettings, Keeping};

/// The format of bundles this version reads.
const FORMAT: u32 = 1;
/// The format of canonical texts this version writes. In the first, the digest covered the server's own places.
const TEXT_FORMAT: u32 = 2;
/// What an action costs that has no price of its own.
const PRICE: UsdMicros = UsdMicros(10_000);

/// How long a ticket waits for a person, unless the bundle says otherwise, and at most.
const EXPIRY_SECONDS: u64 = 900;
const EXPIRY_SECONDS_MAX: u64 = 7 * 86_400;
/// How many tickets of an agent may wait, unless the bundle says otherwise, and at most.
const OPEN_TICKETS: usize = 20;
const OPEN_TICKETS_MAX: usize = 1_000;
/// Requests a minute of one key, unless the bundle says otherwise.
const KEY_REQUESTS: u64 = 100_000;
/// The work of one agent in a second; a unit is about a nanosecond, so this is a quarter of a processor.
const AGENT_FUEL: u64 = 250_000_000;
const AGENT_FUEL_MAX: u64 = 1_000_000_000_000;
/// The longest address of a webhook.
const ADDRESS_BYTES_MAX: usize = 2_048;

/// Everything an operator configured, with every name resolved.
#[derive(Debug, Clone)]
pub struct Bundle {
    text: String,
    digest: Digest,
    registry: Registry,
    rules: Rules,
    guards: BTreeMap<String, StateGuard>,
    profiles: Profiles,
    observed_required: bool,
    settings: Settings,
    /// Secrets of webhooks by their digest; the text holds only that.
    secrets: BTreeMap<Digest, String>,
}

crate::action::words! {
    /// Which texts of requests are kept beside the ledger.
    Payloads: "payload policy" {
        /// None.
        None = "none",
        /// Those a person has to decide on, until then.
        Pending = "pending",
        /// All.
        All = "all",
    }
}

/// What the bundle sets beside types, rules and guards.
#[derive(Debug, Clone, Default)]
struct Settings {
    observe: bool,
    host_may_approve: bool,
    payloads: Option<Payloads>,
    approvals: Option<ApprovalSettings>,
    limits: Option<LimitSettings>,
    principals: BTreeMap<String, Webhook>,
    checkpoints: Option<CheckpointSettings>,
    sql: Option<SqlSettings>,
    shell: Option<ShellSettings>,
    keep: Option<KeepSettings>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct ApprovalSettings {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    expiry_seconds: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    open_per_agent: Option<usize>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct LimitSettings {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    requests_per_minute_per_key: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    requests_per_minute: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    fuel_per_second_per_agent: Option<u64>,
}

/// Where events about a principal's agents are sent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Webhook {
    /// `https://…` or `http://…`.
    pub webhook: String,
    /// The SHA-256 of the secret events are signed with; [`Bundle::secret`] has the secret.
    pub secret: Digest,
}

/// Where checkpoints are sent as well.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CheckpointSettings {
    /// A file, best on another machine.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// `https://…` or `http://…`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub webhook: Option<String>,
    /// The SHA-256 of the secret they are signed with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub secret: Option<Digest>,
}

/// A webhook as it is written: with its secret.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct WebhookFile {
    webhook: String,
    secret: String,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct CheckpointFile {
    file: Option<String>,
    webhook: Option<String>,
    secret: Option<String>,
}

/// Why a bundle is refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BundleError(Cause);

impl fmt::Display for BundleError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl std::error::Error for BundleError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.0.source()
    }
}

impl<C: Into<Cause>> From<C> for BundleError {
    fn from(cause: C) -> BundleError {
        BundleError(cause.into())
    }
}

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
    #[serde(default)]
    observe: bool,
    #[serde(default)]
    host_may_approve: bool,
    payloads: Option<Payloads>,
    approvals: Option<ApprovalSettings>,
    limits: Option<LimitSettings>,
    #[serde(default)]
    principals: BTreeMap<String, WebhookFile>,
    checkpoints: Option<CheckpointFile>,
    sql: Option<SqlSettings>,
    shell: Option<ShellSettings>,
    keep: Option<KeepSettings>,
    #[serde(default)]
    contain: BTreeMap<String, ProfileSource>,
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
    fn text(&self, files: &BTreeMap<String, String>) -> Result<String, Cause> {
        match (&self.file, &self.required_schema, &self.transition_rules, &self.allowed_commit_roots) {
            (Some(file), None, None, None) => {
                files.get(file).cloned().ok_or_else(|| format!("there is no file `{}`", crate::display(file)).into())
            }
            (None, Some(_), _, _) => serde_json::to_string(self).map_err(Cause::of),
            _ => {
                Err("needs `required_schema` (with `transition_rules`, `allowed_commit_roots`), or `file` alone".into())
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
    #[serde(default, skip_serializing_if = "core::ops::Not::not")]
    observe: bool,
    #[serde(default, skip_serializing_if = "core::ops::Not::not")]
    host_may_approve: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    payloads: Option<Payloads>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    approvals: Option<ApprovalSettings>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    limits: Option<LimitSettings>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    principals: BTreeMap<String, Webhook>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    checkpoints: Option<CheckpointSettings>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    sql: Option<SqlSettings>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    shell: Option<ShellSettings>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    keep: Option<KeepSettings>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    contain: BTreeMap<String, ProfileSource>,
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
        let file: BundleFile = toml::from_str(text).map_err(|error| not_toml(text, &error))?;
        if file.format.is_some_and(|format| format != FORMAT) {
            return Err(BundleError::from(format!("this version reads bundles of format {FORMAT}")));
        }
        let mut guards = BTreeMap::new();
        for (name, guard) in file.guards {
            let text = guard
                .text(files)
                .map_err(|reason| BundleError(Cause::while_doing(format!("guards.{name}"), reason)))?;
            guards.insert(name, text);
        }
        let mut actions = BTreeMap::new();
        for (name, action) in file.actions {
            let price_usd = action
                .price_usd
                .map(|price| {
                    read_price(&price).ok_or_else(|| {
                        BundleError::from(format!(
                            "actions.{name}.price_usd: a number of dollars with at most six places"
                        ))
                    })
                })
                .transpose()?;
            actions.insert(name, ActionSource { engine: action.engine, risk: action.risk, price_usd });
        }
        let mut secrets = BTreeMap::new();
        let mut hidden = |secret: String| {
            let digest = Digest::of(&["webhook secret\n", &secret]);
            secrets.insert(digest, secret);
            digest
        };
        let principals = file
            .principals
            .into_iter()
            .map(|(name, hook)| (name, Webhook { webhook: hook.webhook, secret: hidden(hook.secret) }));
        let principals = principals.collect();
        let checkpoints = file.checkpoints.map(|sink| CheckpointSettings {
            file: sink.file,
            webhook: sink.webhook,
            secret: sink.secret.map(&mut hidden),
        });
        let (mut sql, mut shell) = (file.sql, file.shell);
        sql.as_mut().map_or(Ok(()), |sql| sql.read_files(files))?;
        shell.as_mut().map_or(Ok(()), |shell| shell.read_files(files))?;
        let mut bundle = Bundle::resolve(BundleText {
            format: TEXT_FORMAT,
            actions,
            tools: file.tools,
            doom_loop_guard_required: file.doom_loop_guard_required || observed_required,
            rules: file.rules,
            guards,
            own_places: own_places.to_vec(),
            observe: file.observe,
            host_may_approve: file.host_may_approve,
            payloads: file.payloads,
            approvals: file.approvals,
            limits: file.limits,
            principals,
            checkpoints,
            sql,
            shell,
            keep: file.keep,
            contain: file.contain,
        })?;
        bundle.secrets = secrets;
        Ok(bundle)
    }

    /// Reads a bundle from its canonical text, as it stands in the ledger.
    pub fn from_text(text: &str) -> Result<Bundle, BundleError> {
        let text: BundleText = json::from_str(text).map_err(Cause::of)?;
        if !(FORMAT..=TEXT_FORMAT).contains(&text.format) {
            return Err(BundleError::from(format!(
                "this version reads bundles up to {TEXT_FORMAT}, not {}",
                text.format
            )));
        }
        Bundle::resolve(text)
    }

    fn resolve(mut source: BundleText) -> Result<Bundle, BundleError> {
        let written = |source: &BundleText| serde_json::to_string(source).map_err(Cause::of);
        let text = written(&source)?;
        // Where the server's own files are decides nothing that an entry could tell, and moving them changes no bundle.
        let digest = if source.format < 2 || source.own_places.is_empty() {
            Digest::of(&[&text])
        } else {
            let places = core::mem::take(&mut source.own_places);
            let without = written(&source)?;
            source.own_places = places;
            Digest::of(&[&without])
        };
        let source = &source;
        let mut registry = Registry::built_in();
        for (name, action) in &source.actions {
            check_name("actions", name)?;
            let extended = registry.extend(name, action.engine, action.risk, action.price_usd);
            extended.map_err(|error| Cause::while_doing(format!("actions.{name}"), error))?;
        }
        // The dangerous ones last: a tool in both lists is dangerous.
        for (names, category) in [(&source.tools.safe, Category::Safe), (&source.tools.dangerous, Category::Dangerous)]
        {
            for name in names {
                check_name("tools", name)?;
                registry.categorise(name, category).map_err(|error| Cause::while_doing("tools", error))?;
            }
        }
        let rules = Rules::load(&source.rules, &registry, &source.own_places).map_err(Cause::of)?;
        let mut guards = BTreeMap::new();
        for (name, text) in &source.guards {
            let guard =
                StateGuard::load_file(text).map_err(|error| Cause::while_doing(format!("guards.{name}"), error))?;
            guards.insert(name.clone(), guard);
        }
        let profiles = Profiles::load(&source.contain).map_err(|error| BundleError(Cause::of(error)))?;
        let observed_required = source.doom_loop_guard_required;
        let settings = Settings {
            observe: source.observe,
            host_may_approve: source.host_may_approve,
            payloads: source.payloads,
            approvals: source.approvals,
            limits: source.limits,
            principals: source.principals.clone(),
            checkpoints: source.checkpoints.clone(),
            sql: source.sql.clone(),
            shell: source.shell.clone(),
            keep: source.keep.clone(),
        };
        settings.check()?;
        let secrets = BTreeMap::new();
        Ok(Bundle { text, digest, registry, rules, guards, profiles, observed_required, settings, secrets })
    }

    /// The canonical text, as the ledger keeps it.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The SHA-256 of the canonical text without the places of the server's own files: whoever moves them has changed
    /// nothing that was decided.
    pub fn digest(&self) -> Digest {
        self.digest
    }

    /// The registered types.
    pub fn registry(&self) -> &Registry {
        &self.registry
    }

    /// What the argument rules say about an action. Its command lines are read by whoever asks.
    pub fn find_rules(&self, action: &ActionText<'_>, read_line: &mut dyn FnMut(&str) -> CommandLine) -> RuleFinding {
        let language = match self.registry.get(action.kind).map_or(Engine::ToolControl, |row| row.engine) {
            Engine::ToolControl => Language::Words,
            Engine::Shell => Language::CommandLine,
            Engine::Code => Language::Program,
            Engine::Sql => Language::Statement,
            Engine::Math | Engine::Logic | Engine::Fact => Language::Claim,
        };
        self.rules.find(self.registry.identity(action.kind), language, action, read_line)
    }

    /// What the rules say about a tool call.
    pub fn find_call_rules(&self, call: &CallSubject<'_>) -> RuleFinding {
        self.rules.find_call(call)
    }

    /// The state guards by name.
    pub fn guards(&self) -> &BTreeMap<String, StateGuard> {
        &self.guards
    }

    /// What contained commands may touch.
    pub fn profiles(&self) -> &Profiles {
        &self.profiles
    }

    /// Whether every action must say what state it was proposed in.
    pub fn observed_required(&self) -> bool {
        self.observed_required
    }

    /// Whether refusals hold.
    pub fn mode(&self) -> Mode {
        if self.settings.observe { Mode::Observe } else { Mode::Enforce }
    }

    /// Whether a yes at a host's own prompt counts as a person's agreement.
    pub fn host_may_approve(&self) -> bool {
        self.settings.host_may_approve
    }

    /// Which texts are kept beside the ledger.
    pub fn payloads(&self) -> Payloads {
        self.settings.payloads.unwrap_or(Payloads::Pending)
    }

    /// How long a ticket waits for a person, and how long an approved one for its execution.
    pub fn ticket_expiry_ms(&self) -> Millis {
        let seconds = self.settings.approvals.and_then(|approvals| approvals.expiry_seconds);
        seconds.unwrap_or(EXPIRY_SECONDS).saturating_mul(1_000)
    }

    /// How many tickets of one agent may wait.
    pub fn open_tickets_max(&self) -> usize {
        self.settings.approvals.and_then(|approvals| approvals.open_per_agent).unwrap_or(OPEN_TICKETS)
    }

    /// Requests a minute of one key.
    pub fn key_requests_per_minute(&self) -> u64 {
        self.settings.limits.and_then(|limits| limits.requests_per_minute_per_key).unwrap_or(KEY_REQUESTS)
    }

    /// How much work an agent may ask for in a second, on average.
    pub fn fuel_per_second_per_agent(&self) -> u64 {
        self.settings.limits.and_then(|limits| limits.fuel_per_second_per_agent).unwrap_or(AGENT_FUEL)
    }

    /// Requests a minute altogether; `None` is no limit.
    pub fn requests_per_minute(&self) -> Option<u64> {
        self.settings.limits.and_then(|limits| limits.requests_per_minute)
    }

    /// Where events about a principal's agents are sent.
    pub fn principals(&self) -> &BTreeMap<String, Webhook> {
        &self.settings.principals
    }

    /// Where checkpoints are sent as well.
    pub fn checkpoints(&self) -> Option<&CheckpointSettings> {
        self.settings.checkpoints.as_ref()
    }

    /// What the operator says of databases.
    pub fn sql(&self) -> Option<&SqlSettings> {
        self.settings.sql.as_ref()
    }

    /// What the operator says of commands.
    pub fn shell(&self) -> Option<&ShellSettings> {
        self.settings.shell.as_ref()
    }

    /// What is kept before calls change it, and for how long.
    pub fn keeping(&self) -> Keeping {
        Keeping::of(self.settings.keep.as_ref())
    }

    /// A secret by its digest. A bundle that was read from the ledger has none.
    pub fn secret(&self, digest: Digest) -> Option<&str> {
        self.secrets.get(&digest).map(String::as_str)
    }

    /// What an action costs that has no price of its own.
    pub(crate) fn price(&self) -> UsdMicros {
        PRICE
    }
}

impl Settings {
    fn check(&self) -> Result<(), BundleError> {
        let within = |what: &str, value: Option<u64>, max: u64| match value {
            Some(value) if value == 0 || value > max => Err(BundleError::from(format!("{what}: 1 to {max}"))),
            Some(_) | None => Ok(()),
        };
        let approvals = self.approvals.unwrap_or_default();
        within("approvals.expiry_seconds", approvals.expiry_seconds, EXPIRY_SECONDS_MAX)?;
        let open = approvals.open_per_agent.map(|open| u64::try_from(open).unwrap_or(u64::MAX));
        within("approvals.open_per_agent", open, u64::try_from(OPEN_TICKETS_MAX).unwrap_or(u64::MAX))?;
        let limits = self.limits.unwrap_or_default();
        within("limits.requests_per_minute_per_key", limits.requests_per_minute_per_key, u64::from(u32::MAX))?;
        within("limits.requests_per_minute", limits.requests_per_minute, u64::from(u32::MAX))?;
        within("limits.fuel_per_second_per_agent", limits.fuel_per_second_per_agent, AGENT_FUEL_MAX)?;
        if let Some(keep) = &self.keep {
            keep.check()?;
        }
        for (name, principal) in &self.principals {
            check_address(&format!("principals.{}.webhook", crate::display(name)), &principal.webhook)?;
        }
        let checkpoints = self.checkpoints.as_ref();
        if let Some(address) = checkpoints.and_then(|checkpoints| checkpoints.webhook.as_ref()) {
            check_address("checkpoints.webhook", address)?;
        }
        if checkpoints.is_some_and(|checkpoints| checkpoints.webhook.is_some() != checkpoints.secret.is_some()) {
            return Err("checkpoints: `webhook` and `secret` come together".into());
        }
        if let Some(file) = checkpoints.and_then(|checkpoints| checkpoints.file.as_ref())
            && !file.starts_with('/')
        {
            return Err("checkpoints.file: an absolute path".into());
        }
        Ok(())
    }
}

fn check_address(what: &str, address: &str) -> Result<(), BundleError> {
    let rest = address.strip_prefix("https://").or_else(|| address.strip_prefix("http://"));
    let host = rest.and_then(|rest| rest.split(['/', '?', '#']).next()).unwrap_or("");
    let plain = address.len() <= ADDRESS_BYTES_MAX && address.bytes().all(|byte| byte.is_ascii_graphic());
    if plain && !host.is_empty() && !host.contains('@') && !address.contains('#') {
        return Ok(());
    }
    Err(BundleError::from(format!("{what}: an address `https://HOST[:PORT]/PATH` without user, password or fragment")))
}

/// What is wrong and where, in one line. The library would print the line as well, and that may hold a secret.
fn not_toml(text: &str, error: &toml::de::Error) -> BundleError {
    let message = error.message().lines().map(str::trim).collect::<Vec<_>>().join(", ");
    let Some(before) = error.span().and_then(|span| text.get(..span.start)) else { return message.into() };
    let line = before.matches('\n').count().saturating_add(1);
    let column = before.rsplit('\n').next().unwrap_or("").chars().count().saturating_add(1);
    format!("line {line}, column {column}: {message}").into()
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
    let table: toml::Table = toml::from_str(text).map_err(|error| not_toml(text, &error))?;
    let mut keys = Vec::new();
    collect("", &table, &mut keys);
    Ok(keys)
}

fn check_name(section: &str, name: &str) -> Result<(), BundleError> {
    match ActionName::parse(name).as_str() {
        Some(_) => Ok(()),
        None => Err(BundleError::from(format!(
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
