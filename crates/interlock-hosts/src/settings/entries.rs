//! Our entries in files of JSON: how they are written, and how they are known again.

use interlock_core::json::Json;
use interlock_core::rule::shell_quoted;

use super::place::hooked;
use super::prefix::{self, ENV, PREFIX_VARIABLE, shell_prefix};
use super::surgery::{self, Step};
use super::{Installed, Part, Problem, Wanted};
use crate::event::Host;
use crate::shape::is_about_tools;

/// Whether the values can be written down so that every reader understands the same.
pub(super) fn check(wanted: &Wanted) -> Result<(), Problem> {
    // Hosts replace names behind a `$`, also inside quotes.
    let path = |path: &str| path.starts_with('/') && !path.contains(|c: char| c.is_control() || c == '$');
    if !path(&wanted.binary) {
        return Err(Problem::Unwritable("the path of the binary"));
    }
    if !path(&wanted.home) {
        return Err(Problem::Unwritable("the home directory"));
    }
    let plain = |c: char| c.is_ascii_alphanumeric() || ":-_+/=.".contains(c);
    if wanted.daemon.is_empty() || !wanted.daemon.chars().all(plain) {
        return Err(Problem::Unwritable("the daemon's fingerprint"));
    }
    if wanted.timeout_s == 0 {
        return Err(Problem::Unwritable("a timeout of nothing"));
    }
    Ok(())
}

/// Puts one part into a text, or into a new one. The text has none of ours.
pub(super) fn insert(host: Host, part: Part, text: Option<&str>, wanted: &Wanted) -> Result<String, Problem> {
    let Some(text) = text else { return Ok(whole(host, part, wanted)) };
    match part {
        Part::Server => {
            let entry = format!("{}: {}", json("interlock"), server(host, wanted));
            put(text, "mcpServers", &[(None, entry)])
        }
        Part::Prefix => {
            if prefix::prefix_of(surgery::read(text)?.root()).is_some() {
                return Err(Problem::PrefixTaken);
            }
            put(text, ENV, &[(None, prefix_entry(wanted))])
        }
        Part::Hooks => {
            let entry = |event: &&str| (Some((*event).to_owned()), group(host, event, wanted));
            put(text, "hooks", &hooked(host).iter().map(entry).collect::<Vec<_>>())
        }
    }
}

/// Takes one part out of a text; nothing is left if it was there for our sake.
pub(super) fn remove(host: Host, part: Part, text: &str) -> Result<Option<String>, Problem> {
    let mut text = text.to_owned();
    let fresh = created(host, part, &text)?;
    for _ in 0..OURS_MAX {
        let Some(path) = ours(host, part, &text)? else {
            return Ok(if fresh && only_version(&text)? { None } else { Some(text) });
        };
        match surgery::remove(&text, &path).ok_or(UNFOLLOWED)? {
            Some(rest) => text = rest,
            None => return Ok(None),
        }
    }
    Err(Problem::Shape("it has too many entries that look like ours"))
}

/// Whether a text has one part, and as it is wanted.
pub(super) fn state(host: Host, part: Part, text: &str, wanted: &Wanted) -> Result<Installed, Problem> {
    if ours(host, part, text)?.is_none() {
        return Ok(Installed::No);
    }
    let stripped = remove(host, part, text)?;
    let fresh = insert(host, part, stripped.as_deref(), wanted)?;
    Ok(if same(host, part, &fresh, text)? { Installed::Yes } else { Installed::Other })
}

/// A line for the user.
pub(super) fn added(host: Host, part: Part) -> String {
    match part {
        Part::Hooks => format!("hooks added: {}", hooked(host).join(", ")),
        Part::Server => "MCP server `interlock` added".to_owned(),
        Part::Prefix => format!("`{PREFIX_VARIABLE}` set: command lines are handed to Interlock's runner"),
    }
}

/// A line for the user.
pub(super) fn removed(part: Part) -> String {
    match part {
        Part::Hooks => "hooks removed".to_owned(),
        Part::Server => "MCP server `interlock` removed".to_owned(),
        Part::Prefix => format!("`{PREFIX_VARIABLE}` removed"),
    }
}

/// The words of the command that is our hook.
fn words(host: Host, wanted: &Wanted) -> [&str; 6] {
    ["hook", host.as_str(), "--home", &wanted.home, "--daemon", &wanted.daemon]
}

/// The words of the command that is our server, with which the agent changes its phase.
pub(super) fn server_words(host: Host, wanted: &Wanted) -> [&str; 6] {
    ["gateway", "--control-only", "--host", host.as_str(), "--home", &wanted.home]
}

/// A text in JSON or TOML. It has no control characters, so both write it alike.
pub(super) fn json(text: &str) -> String {
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""))
}

/// An array of texts, in JSON or TOML.
pub(super) fn array(words: &[&str]) -> String {
    format!("[{}]", words.iter().map(|word| json(word)).collect::<Vec<_>>().join(", "))
}

/// Far more than any host has events: a text with more was not written by us.
const OURS_MAX: usize = 64;

const UNFOLLOWED: Problem = Problem::Shape("an entry of ours could not be taken out");

/// One hook, as an item of an event's array.
fn group(host: Host, event: &str, wanted: &Wanted) -> String {
    let Wanted { binary, timeout_s, .. } = wanted;
    let words = words(host, wanted);
    let line = || {
        json(
            &[&[binary.as_str()], &words[..]]
                .concat()
                .iter()
                .map(|word| shell_quoted(word))
                .collect::<Vec<_>>()
                .join(" "),
        )
    };
    let matcher = if is_about_tools(host, event) { "\"matcher\": \"*\", " } else { "" };
    match host {
        // Without a shell, and failing closed.
        Host::ClaudeCode => format!(
            "{{{matcher}\"hooks\": [{{\"type\": \"command\", \"command\": {}, \"args\": {}, \"timeout\": {timeout_s}, \
             \"onFailure\": \"block\"}}]}}",
            json(binary),
            array(&words),
        ),
        Host::Codex => {
            format!("{{\"hooks\": [{{\"type\": \"command\", \"command\": {}, \"timeout\": {timeout_s}}}]}}", line())
        }
        // Here without a matcher, which would be read as a pattern of commands, too.
        Host::Cursor => {
            format!("{{\"command\": {}, \"timeout\": {timeout_s}, \"failClosed\": true}}", line())
        }
        // Milliseconds.
        Host::Gemini => format!(
            "{{{matcher}\"hooks\": [{{\"type\": \"command\", \"name\": \"interlock\", \"command\": {}, \
             \"timeout\": {}}}]}}",
            line(),
            u64::from(*timeout_s).saturating_mul(1000),
        ),
    }
}

/// The server.
fn server(host: Host, wanted: &Wanted) -> String {
    let kind = if matches!(host, Host::ClaudeCode) { "\"type\": \"stdio\", " } else { "" };
    format!("{{{kind}\"command\": {}, \"args\": {}}}", json(&wanted.binary), array(&server_words(host, wanted)))
}

/// The variable that names the prefix.
fn prefix_entry(wanted: &Wanted) -> String {
    format!("{}: {}", json(PREFIX_VARIABLE), json(&shell_prefix(&wanted.home)))
}

/// A file that holds one part alone. It begins with a line break, which says that nobody else made it.
fn whole(host: Host, part: Part, wanted: &Wanted) -> String {
    let inner = match part {
        Part::Server => format!("\"mcpServers\": {{\n    {}: {}\n  }}", json("interlock"), server(host, wanted)),
        Part::Prefix => format!("{}: {{\n    {}\n  }}", json(ENV), prefix_entry(wanted)),
        Part::Hooks => {
            let arrays: Vec<_> =
                hooked(host).iter().map(|event| array_of(event, &group(host, event, wanted), "    ")).collect();
            let hooks = format!("\"hooks\": {{\n    {}\n  }}", arrays.join(",\n    "));
            // After the hooks, where we put it into no file that was there before.
            if matches!(host, Host::Cursor) { format!("{hooks},\n  {VERSION}") } else { hooks }
        }
    };
    format!("{{\n  {inner}\n}}\n")
}

const VERSION: &str = "\"version\": 1";

/// An array for our sake: it begins with a line break.
fn array_of(event: &str, item: &str, margin: &str) -> String {
    format!("{}: [\n{margin}  {item}\n{margin}]", json(event))
}

/// Puts entries into the object under a key, making it if need be: as members, or as items of the arrays they name.
fn put(text: &str, key: &str, entries: &[(Option<String>, String)]) -> Result<String, Problem> {
    let member = |(event, entry): &(Option<String>, String), margin: &str| match event {
        Some(event) => array_of(event, entry, margin),
        None => entry.clone(),
    };
    let document = surgery::read(text)?;
    let Some(outer) = document.root().get(key) else {
        let object = |margin: &str| {
            let inner = format!("{margin}  ");
            let members: Vec<_> = entries.iter().map(|entry| member(entry, &inner)).collect();
            format!("{}: {{\n{inner}{}\n{margin}}}", json(key), members.join(&format!(",\n{inner}")))
        };
        return surgery::insert(text, document.root(), object).ok_or(UNFOLLOWED);
    };
    if key == "mcpServers" && outer.get("interlock").is_some() {
        return Err(Problem::NameTaken);
    }
    if outer.as_object().is_none() {
        return Err(Problem::Shape("what should hold our entries is not an object"));
    }
    let mut text = text.to_owned();
    for entry in entries {
        let document = surgery::read(&text)?;
        let outer = document.root().get(key).ok_or(UNFOLLOWED)?;
        let array = entry.0.as_deref().and_then(|event| outer.get(event));
        let edited = match array {
            None => surgery::insert(&text, outer, |margin| member(entry, margin)),
            Some(array) if array.as_array().is_some() => surgery::insert(&text, array, |_| entry.1.clone()),
            Some(_) => return Err(Problem::Shape("the hooks of an event are not an array")),
        };
        text = edited.ok_or(UNFOLLOWED)?;
    }
    Ok(text)
}

/// The way to the first entry of ours.
fn ours(host: Host, part: Part, text: &str) -> Result<Option<Vec<Step>>, Problem> {
    let document = surgery::read(text)?;
    let member = |key: &str| Step::Member(key.to_owned());
    match part {
        Part::Server => {
            let path = vec![member("mcpServers"), member("interlock")];
            let found = surgery::find(document.root(), &path).map(Json::of);
            Ok(found.is_some_and(|server| is_server(&server)).then_some(path))
        }
        Part::Prefix => {
            let found = prefix::prefix_of(document.root()).filter(prefix::is_ours);
            Ok(found.map(|_| vec![member(ENV), member(PREFIX_VARIABLE)]))
        }
        Part::Hooks => {
            let hooks = document.root().get("hooks").map(Json::of);
            let Some(Json::Object(events)) = hooks else { return Ok(None) };
            for (event, groups) in &events {
                let Json::Array(groups) = groups else { continue };
                for (index, group) in groups.iter().enumerate() {
                    let path = vec![member("hooks"), member(event), Step::Item(index)];
                    let handlers = group.as_object().and_then(|group| group.get("hooks"));
                    let Some(Json::Array(handlers)) = handlers else {
                        if is_hook(host, group) {
                            return Ok(Some(path));
                        }
                        continue;
                    };
                    let Some(own) = handlers.iter().position(|handler| is_hook(host, handler)) else { continue };
                    if handlers.len() == 1 {
                        return Ok(Some(path));
                    }
                    // Somebody put theirs beside ours.
                    return Ok(Some([path, vec![member("hooks"), Step::Item(own)]].concat()));
                }
            }
            Ok(None)
        }
    }
}

/// Whether a handler calls our hook, whichever binary, home and daemon it names.
pub(super) fn is_hook(host: Host, handler: &Json) -> bool {
    let Some(members) = handler.as_object() else { return false };
    let name = host.as_str();
    if let Some(Json::Array(words)) = members.get("args") {
        let words: Vec<_> = words.iter().filter_map(Json::as_str).collect();
        return matches!(words.as_slice(), ["hook", host, "--home", _, "--daemon", _] if *host == name);
    }
    let line = members.get("command").and_then(Json::as_str).unwrap_or_default();
    line.contains(&format!(" hook {name} --home ")) && line.contains(" --daemon ")
}

/// Whether a server is ours.
fn is_server(server: &Json) -> bool {
    let words = server.as_object().and_then(|members| members.get("args"));
    let Some(Json::Array(words)) = words else { return false };
    let words: Vec<_> = words.iter().filter_map(Json::as_str).collect();
    matches!(words.as_slice(), ["gateway", "--control-only", "--host", _, "--home", _])
}

/// Whether two texts have the same entries of ours, wherever among others' they stand.
fn same(host: Host, part: Part, left: &str, right: &str) -> Result<bool, Problem> {
    let entries = |text: &str| -> Result<Vec<String>, Problem> {
        let document = surgery::read(text)?;
        let mut found = Vec::new();
        match part {
            Part::Server => {
                found.extend(document.root().get("mcpServers").and_then(|all| all.get("interlock")).map(Json::of));
            }
            Part::Prefix => found.extend(prefix::prefix_of(document.root())),
            Part::Hooks => {
                if let Some(Json::Object(events)) = document.root().get("hooks").map(Json::of) {
                    for (event, groups) in events {
                        let Json::Array(groups) = groups else { continue };
                        let ours = groups.into_iter().filter(|group| mentions(host, group));
                        found.extend(ours.map(|group| Json::Array(vec![Json::from(event.as_str()), group])));
                    }
                }
            }
        }
        Ok(found.iter().map(Json::canonical).collect())
    };
    Ok(entries(left)? == entries(right)?)
}

/// Whether a group, or a handler that stands alone, is or has ours.
fn mentions(host: Host, group: &Json) -> bool {
    match group.as_object().and_then(|group| group.get("hooks")) {
        Some(Json::Array(handlers)) => handlers.iter().any(|handler| is_hook(host, handler)),
        _ => is_hook(host, group),
    }
}

/// Whether a file of Cursor's was made by us: only then do the hooks stand before the version.
fn created(host: Host, part: Part, text: &str) -> Result<bool, Problem> {
    let document = surgery::read(text)?;
    let keys: Vec<_> = document.root().as_object().into_iter().flatten().map(|(key, _)| key.text()).collect();
    let ordered = matches!(keys.as_slice(), ["hooks", "version"]);
    Ok(ordered && matches!((host, part), (Host::Cursor, Part::Hooks)) && ours(host, part, text)?.is_some())
}

fn only_version(text: &str) -> Result<bool, Problem> {
    let document = surgery::read(text)?;
    let members: Vec<_> = document.root().as_object().into_iter().flatten().collect();
    Ok(matches!(members.as_slice(), [(key, value)] if key.text() == "version" && value.source() == "1"))
}
