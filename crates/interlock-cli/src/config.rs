//! `interlock config show`: the settings that `serve` takes from flags, environment and bundle, each with its value, and where that comes from.
//!
//! It finds places and reads the bundle with the functions `serve` uses, so it cannot say something else. Values of keys
//! and secrets are not shown.

use std::env;
use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};
use interlock_core::action::{CONVERSATION_BYTES_MAX, STEPS_MAX};
use interlock_core::bundle::{Bundle, keys_given};
use interlock_core::json::{
    self, BYTES_MAX, CONFIG_DEPTH_MAX, Content, Limits, NODES_MAX, STATE_DEPTH_MAX, Value, quote,
};
use interlock_runtime::ledger::QUEUE_LEN;

use crate::serve::{LISTEN, Places, load_bundle, own_places};
use crate::table::{Table, cell};
use crate::{Fault, Outcome, print};

#[derive(Debug, Subcommand)]
pub(crate) enum ConfigCommand {
    /// Print what `serve` would run with, given the same flags and environment
    Show(ShowArguments),
}

#[derive(Debug, Args)]
#[command(after_help = "Example: interlock config show --data ./data --bundle ./policy")]
pub(crate) struct ShowArguments {
    /// As for serve
    #[arg(long, value_name = "DIR")]
    data: Option<PathBuf>,
    /// As for serve
    #[arg(long, value_name = "ADDR")]
    listen: Option<SocketAddr>,
    /// As for serve
    #[arg(long, value_name = "DIR")]
    bundle: Option<PathBuf>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

impl ConfigCommand {
    pub(crate) fn wants_json(&self) -> bool {
        match self {
            ConfigCommand::Show(arguments) => arguments.json,
        }
    }
}

pub(crate) fn run(command: &ConfigCommand) -> Result<Outcome, Fault> {
    match command {
        ConfigCommand::Show(arguments) => show(arguments),
    }
}

/// One setting.
struct Setting {
    name: String,
    /// JSON.
    value: String,
    source: String,
}

fn show(arguments: &ShowArguments) -> Result<Outcome, Fault> {
    let places = Places::find(arguments.data.as_deref())?;
    let mut settings = server_settings(arguments, &places);
    let own = own_places(arguments.bundle.as_deref().as_slice(), &places);
    let loaded = own.and_then(|own| load_bundle(arguments.bundle.as_deref(), &places, &own));
    let (bundle, from) = loaded.map_err(|fault| Fault::with_code(fault.code, fault.message))?;
    settings.extend(bundle_settings(&bundle, &from)?);
    let digest = Digest::of(&bundle, &places);
    let text = if arguments.json { as_json(&settings, &digest, &from) } else { as_text(&settings, &digest, &from) };
    print(text.as_bytes())?;
    Ok(Outcome::Clean)
}

fn is_set(name: &str) -> bool {
    env::var_os(name).is_some_and(|value| !value.is_empty())
}

fn server_settings(arguments: &ShowArguments, places: &Places) -> Vec<Setting> {
    let setting = |name: &str, value: &str, source: &str| Setting {
        name: name.to_owned(),
        value: quote(value),
        source: source.to_owned(),
    };
    let path = |path: &Path| path.display().to_string();
    let home = if is_set("INTERLOCK_HOME") { "INTERLOCK_HOME" } else { "default, from HOME" };
    let data = if arguments.data.is_some() { "--data" } else { home };
    let key = if is_set("INTERLOCK_HOME") || arguments.data.is_none() { home } else { "--data" };
    let mut settings = vec![
        setting("data", &path(&places.data), data),
        match arguments.listen {
            Some(listen) => setting("listen", &listen.to_string(), "--listen"),
            None => setting("listen", LISTEN, "default"),
        },
    ];
    if is_set("INTERLOCK_OPERATOR_KEY") {
        settings.push(setting("operator_key", "(not shown)", "INTERLOCK_OPERATOR_KEY"));
    } else {
        let made = if places.key.exists() { "" } else { "; made at the first start" };
        settings.push(setting("operator_key", &path(&places.key), &format!("{key}{made}")));
    }
    let bundle = arguments.bundle.clone().unwrap_or_else(|| places.data.join("bundle"));
    settings.push(match (&arguments.bundle, bundle.exists()) {
        (Some(_), _) => setting("bundle", &path(&bundle), "--bundle"),
        (None, true) => setting("bundle", &path(&bundle), "default, in the data directory"),
        (None, false) => setting("bundle", "built in", "default"),
    });
    settings
}

/// What the bundle holds, as its canonical text has it.
fn bundle_settings(bundle: &Bundle, from: &str) -> Result<Vec<Setting>, Fault> {
    let damaged = |error: String| Fault::new(format!("the bundle cannot be read back: {error}"));
    let given = match fs::read_to_string(from) {
        Ok(text) => keys_given(&text).map_err(|error| damaged(error.to_string()))?,
        // It is built in.
        Err(_) => Vec::new(),
    };
    let document = json::parse(bundle.text(), &Limits::CONFIG).map_err(|error| damaged(error.to_string()))?;
    let mut settings = Vec::new();
    flatten("", document.root(), &mut |name, value| {
        // Written in the file under the name of one rule.
        let is_given = given.iter().any(|key| key == name || (name == "rules" && key == "rule"))
            // A text that is in a file of its own is given by the file's name.
            || given.iter().any(|key| key.strip_suffix("_file").is_some_and(|key| key == name))
            || given.iter().any(|key| key.strip_prefix(name).is_some_and(|rest| rest.starts_with('.')))
            || given.iter().any(|key| name.strip_prefix(key.as_str()).is_some_and(|rest| rest.starts_with('.')));
        let source = match name {
            "doom_loop_guard_required" if !is_given && value == "true" => "DOOM_LOOP_GUARD_REQUIRED",
            "own_places" => "where the server's own files are",
            "format" if !is_given => "this version",
            _ if is_given => from,
            _ => "default",
        };
        let is_secret = name.rsplit('.').next().is_some_and(|last| last == "secret");
        let value = if is_secret { quote("(not shown)") } else { value.to_owned() };
        settings.push(Setting { name: name.to_owned(), value, source: source.to_owned() });
    });
    Ok(settings)
}

fn flatten(name: &str, value: Value<'_>, each: &mut dyn FnMut(&str, &str)) {
    match value.content() {
        Some(Content::Object(members)) if members.len() > 0 => {
            for (key, value) in members {
                let name = if name.is_empty() { key.text().to_owned() } else { format!("{name}.{}", key.text()) };
                flatten(&name, value, each);
            }
        }
        _ => each(name, value.source()),
    }
}

/// The digest of the bundle is over the places of the server's own files too, which must be there to be resolved.
enum Digest {
    Known(String),
    NotYet,
}

impl Digest {
    fn of(bundle: &Bundle, places: &Places) -> Digest {
        let is_there = places.data.exists() && (places.key.exists() || is_set("INTERLOCK_OPERATOR_KEY"));
        if is_there { Digest::Known(bundle.digest().to_string()) } else { Digest::NotYet }
    }
}

/// Limits that no setting raises.
#[rustfmt::skip]
fn limits() -> [(&'static str, u64); 7] {
    let number = |limit: usize| u64::try_from(limit).unwrap_or(u64::MAX);
    [
        ("steps_per_conversation", STEPS_MAX),
        ("conversation_id_bytes", number(CONVERSATION_BYTES_MAX)),
        ("commands_waiting", number(QUEUE_LEN)),
        ("state_bytes", number(BYTES_MAX)),
        ("state_values", number(NODES_MAX)),
        ("state_depth", number(STATE_DEPTH_MAX)),
        ("configuration_depth", number(CONFIG_DEPTH_MAX)),
    ]
}

fn as_json(settings: &[Setting], digest: &Digest, from: &str) -> String {
    let rows: Vec<String> = settings
        .iter()
        .map(|Setting { name, value, source }| {
            format!("{{\"name\":{},\"value\":{value},\"source\":{}}}", quote(name), quote(source))
        })
        .collect();
    let limits: Vec<String> = limits().iter().map(|(name, limit)| format!("{}:{limit}", quote(name))).collect();
    let digest = match digest {
        Digest::Known(digest) => quote(digest),
        Digest::NotYet => "null".to_owned(),
    };
    crate::client::inert_json(&format!(
        "{{\"version\":{},\"settings\":[{}],\"bundle\":{{\"from\":{},\"digest\":{digest}}},\"limits\":{{{}}}}}",
        quote(env!("CARGO_PKG_VERSION")),
        rows.join(","),
        quote(from),
        limits.join(",")
    ))
}

fn as_text(settings: &[Setting], digest: &Digest, from: &str) -> String {
    let mut table = Table::new(&["SETTING", "VALUE", "FROM"]);
    for Setting { name, value, source } in settings {
        // A string reads better without its quotes.
        let plain = json::parse(value, &Limits::CONFIG).ok();
        let plain = plain.as_ref().and_then(|value| value.root().as_str()).map(|text| text.text().to_owned());
        table.row(vec![cell(name, 48), cell(plain.as_deref().unwrap_or(value), 64), cell(source, 80)]);
    }
    let mut out = table.render();
    let digest = match digest {
        Digest::Known(digest) => digest.as_str(),
        Digest::NotYet => "known after the first start: the places of the server's own files are part of it",
    };
    out.push_str(&format!("\nbundle  {} ({digest})\n\n", cell(from, 120)));
    let mut table = Table::new(&["LIMIT, FIXED", "VALUE"]);
    for (name, limit) in limits() {
        table.row(vec![name.to_owned(), limit.to_string()]);
    }
    out.push_str(&table.render());
    out
}
