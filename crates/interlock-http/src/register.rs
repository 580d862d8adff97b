//! How a registration is read: flat, or with the agent's own fields in `agent`.

use interlock_core::Code;
use interlock_core::action::{AgentKind, BudgetLimits, Engine, Permissions, Profile, Trust, UsdMicros};
use interlock_core::json::{Content, Value};
use interlock_core::ledger::Role;
use interlock_wire::{BudgetInput, FlatRegistration, NestedRegistration, PermissionsInput};

use crate::answer::Refusal;
use crate::auth::Operator;
use crate::request::{Body, count, dollars, malformed, object_or_null, only, present, required_object, text_or_null};

/// The longest name, description and the like.
const TEXT_BYTES_MAX: usize = 1_024;
/// The longest identifier of a principal, and the longest tool name.
const ID_BYTES_MAX: usize = 128;
/// The most tools in a list.
const LIST_LEN_MAX: usize = 1_000;

/// A registration that can be recorded; id and time are still open.
#[derive(Debug)]
pub(crate) struct Registration {
    pub(crate) profile: Profile,
    pub(crate) trust: Trust,
}

impl Registration {
    pub(crate) fn read(body: &Body<'_>, operator: &Operator) -> Result<Registration, Refusal> {
        let root = body.root();
        let own = if root.get("agent").is_some() {
            only(root, NestedRegistration::MEMBERS)?;
            let own = required_object(root, "agent")?;
            let is_own = |name: &&&str| !NestedRegistration::MEMBERS.contains(name);
            only(own, &FlatRegistration::MEMBERS.iter().filter(is_own).copied().collect::<Vec<_>>())?;
            own
        } else {
            only(root, FlatRegistration::MEMBERS)?;
            root
        };
        let kind = required_text(own, "type", ID_BYTES_MAX)?;
        let kind =
            AgentKind::parse(&kind).ok_or_else(|| malformed("type must be supervised, autonomous or trusted"))?;
        let profile = Profile {
            agent_id: String::new(),
            name: required_text(own, "name", TEXT_BYTES_MAX)?,
            kind,
            principal_id: required_text(own, "principal_id", ID_BYTES_MAX)?,
            description: short_text(own, "description", TEXT_BYTES_MAX)?,
            framework: short_text(own, "framework", TEXT_BYTES_MAX)?,
            model: short_text(own, "model", TEXT_BYTES_MAX)?,
            permissions: permissions(object_or_null(root, "permissions")?)?,
            budget: budget(object_or_null(root, "budget")?)?,
            created_at: 0,
            registered_by: operator.actor.key_id.clone(),
        };
        let trust = match count(own, "trust_level")? {
            Some(level) => u8::try_from(level).ok().and_then(|level| Trust::try_from(level).ok()),
            None => Some(kind.trust()),
        };
        let trust = trust.ok_or_else(|| malformed("trust_level must be 0, 1, 2 or 3"))?;
        // A higher level than the type's is honoured from an admin alone, and a registrar has a ceiling of its own.
        let ceiling = operator.max_trust.map(|max| max.min(kind.trust()));
        if operator.role != Role::Admin && ceiling.is_none_or(|ceiling| trust > ceiling) {
            let ceiling = ceiling.map_or(0, u8::from);
            let message = format!("this key registers agents of this type up to trust level {ceiling}");
            return Err(Refusal::new(Code::OperatorRole, message));
        }
        // A ceiling on trust would be none if whoever is under it could list the tools that pass without it.
        let looser = profile.permissions.loosens().or_else(|| profile.budget.loosens());
        if let Some(field) = looser.filter(|_| operator.role != Role::Admin) {
            let message = format!("{field} is more than the default; only an admin registers an agent with more");
            return Err(Refusal::new(Code::OperatorRole, message));
        }
        Ok(Registration { profile, trust })
    }
}

pub(crate) fn required_text(object: Value<'_>, key: &str, bytes_max: usize) -> Result<String, Refusal> {
    let text = short_text(object, key, bytes_max)?.filter(|text| !text.trim().is_empty());
    text.ok_or_else(|| malformed(format!("{key} is required, a string that is not blank")))
}

fn short_text(object: Value<'_>, key: &str, bytes_max: usize) -> Result<Option<String>, Refusal> {
    let text = text_or_null(object, key)?.and_then(|text| text.as_str()).map(|text| text.text().to_owned());
    match text {
        Some(text) if text.len() > bytes_max => Err(malformed(format!("{key} has more than {bytes_max} bytes"))),
        text => Ok(text),
    }
}

fn permissions(given: Option<Value<'_>>) -> Result<Permissions, Refusal> {
    let defaults = Permissions::default();
    let Some(given) = given else { return Ok(defaults) };
    only(given, PermissionsInput::MEMBERS)?;
    let engines = match texts(given, "allowed_engines")? {
        None => defaults.allowed_engines,
        Some(names) => {
            let engine = |name: &String| Engine::parse(name).filter(|engine| *engine != Engine::ToolControl);
            let engines: Option<Vec<Engine>> = names.iter().map(engine).collect();
            engines.ok_or_else(|| malformed("allowed_engines are math, logic, sql, code, fact and shell"))?
        }
    };
    Ok(Permissions {
        allowed_engines: engines,
        allowed_tools: texts(given, "allowed_tools")?.unwrap_or_default(),
        blocked_tools: texts(given, "blocked_tools")?.unwrap_or_default(),
    })
}

fn texts(object: Value<'_>, key: &str) -> Result<Option<Vec<String>>, Refusal> {
    let refused = || malformed(format!("{key} must be a list of at most {LIST_LEN_MAX} short strings"));
    let Some(list) = present(object, key) else { return Ok(None) };
    let items = list.as_array().filter(|items| items.len() <= LIST_LEN_MAX).ok_or_else(refused)?;
    let text =
        |item: Value<'_>| item.as_str().map(|text| text.text().to_owned()).filter(|text| text.len() <= ID_BYTES_MAX);
    let texts: Option<Vec<String>> = items.map(text).collect();
    texts.map(Some).ok_or_else(refused)
}

fn budget(given: Option<Value<'_>>) -> Result<BudgetLimits, Refusal> {
    let defaults = BudgetLimits::default();
    let Some(given) = given else { return Ok(defaults) };
    only(given, BudgetInput::MEMBERS)?;
    let is_null = |key: &str| matches!(given.get(key).and_then(|value| value.content()), Some(Content::Null));
    let cost = |key: &str, default: Option<UsdMicros>| -> Result<Option<UsdMicros>, Refusal> {
        if is_null(key) { Ok(None) } else { Ok(dollars(given, key)?.or(default)) }
    };
    let number = |key: &str, default: Option<u64>| -> Result<Option<u64>, Refusal> {
        if is_null(key) { Ok(None) } else { Ok(count(given, key)?.or(default)) }
    };
    Ok(BudgetLimits {
        max_daily_cost_usd: cost("max_daily_cost_usd", defaults.max_daily_cost_usd)?,
        max_cost_per_request_usd: cost("max_cost_per_request_usd", defaults.max_cost_per_request_usd)?,
        max_requests_per_hour: number("max_requests_per_hour", defaults.max_requests_per_hour)?,
        max_requests_per_day: number("max_requests_per_day", defaults.max_requests_per_day)?,
        max_tokens_per_request: number("max_tokens_per_request", defaults.max_tokens_per_request)?,
        max_daily_tokens: number("max_daily_tokens", defaults.max_daily_tokens)?,
    })
}
