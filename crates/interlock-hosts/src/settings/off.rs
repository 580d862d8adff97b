//! Settings that keep a host from asking us, whatever is installed.

use interlock_core::json::Json;

use super::{Place, Problem, surgery, toml_block};
use crate::event::Host;

/// What in a file of a host switches our hooks off; none in most. Settings of an administrator can do so as well, and
/// stand in files that are not ours to read.
pub fn switched_off(host: Host, place: &Place, existing: Option<&str>) -> Result<Vec<&'static str>, Problem> {
    let Some(text) = existing else { return Ok(Vec::new()) };
    let mut found = Vec::new();
    if place.is_toml() {
        let table = toml_block::table(text)?;
        let off =
            |name| table.get("features").and_then(|all| all.get(name)).and_then(toml::Value::as_bool) == Some(false);
        found.extend(["hooks", "codex_hooks"].iter().any(|name| off(*name)).then_some("`features.hooks` is false"));
        return Ok(found);
    }
    let document = surgery::read(text)?;
    let member = |path: &[&str]| {
        let mut value = document.root();
        for key in path {
            value = value.get(key)?;
        }
        Some(Json::of(value))
    };
    match host {
        Host::ClaudeCode => {
            let off = member(&["disableAllHooks"]) == Some(Json::Bool(true));
            found.extend(off.then_some("`disableAllHooks` is true"));
        }
        Host::Gemini => {
            let off = member(&["hooksConfig", "enabled"]) == Some(Json::Bool(false));
            found.extend(off.then_some("`hooksConfig.enabled` is false"));
            if let Some(Json::Array(names)) = member(&["hooksConfig", "disabled"]) {
                let named = names.iter().filter_map(Json::as_str).any(|name| name.contains("interlock"));
                found.extend(named.then_some("`hooksConfig.disabled` names our hook"));
            }
        }
        Host::Codex | Host::Cursor => {}
    }
    Ok(found)
}
