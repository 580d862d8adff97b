//! The commands of ours that a settings file has: what a host would run, to the letter.

use interlock_core::json::Json;
use interlock_core::rule::shell_words;

use super::entries::is_hook;
use super::{Part, Place, Problem, surgery};
use crate::event::Host;

/// A hook of ours in a settings file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hooked {
    /// The event it is run for.
    pub event: String,
    /// What is run.
    pub command: HookCommand,
}

/// What a host runs.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum HookCommand {
    /// A program with words, without a shell.
    Words(Vec<String>),
    /// A line for a shell.
    Line(String),
}

/// What one of our hooks names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Named {
    /// The binary.
    pub binary: String,
    /// The home directory of Interlock.
    pub home: String,
    /// The fingerprint of the daemon that may answer.
    pub daemon: String,
}

impl HookCommand {
    /// What it names, if it is written as `install` writes it.
    pub fn named(&self) -> Option<Named> {
        let split;
        let words = match self {
            HookCommand::Words(words) => words,
            HookCommand::Line(line) => {
                split = shell_words(line)?;
                &split
            }
        };
        match words.as_slice() {
            [binary, hook, _, home_flag, home, daemon_flag, daemon]
                if hook == "hook" && home_flag == "--home" && daemon_flag == "--daemon" =>
            {
                Some(Named { binary: binary.clone(), home: home.clone(), daemon: daemon.clone() })
            }
            _ => None,
        }
    }
}

/// The hooks of ours that a file has.
///
/// ```
/// use interlock_hosts::Host;
/// use interlock_hosts::settings::{HookCommand, Scope, commands, places};
///
/// let text = r#"{"hooks": {"BeforeTool": [{"hooks": [{"type": "command",
///     "command": "/bin/interlock hook gemini --home '/a b' --daemon sha256:00"}]}]}}"#;
/// let found = commands(Host::Gemini, &places(Host::Gemini, Scope::User)[0], text)?;
/// assert_eq!(found[0].event, "BeforeTool");
/// assert_eq!(found[0].command.named().unwrap().home, "/a b");
/// # Ok::<(), interlock_hosts::settings::Problem>(())
/// ```
pub fn commands(host: Host, place: &Place, text: &str) -> Result<Vec<Hooked>, Problem> {
    if place.is_toml() || !place.parts.contains(&Part::Hooks) {
        return Ok(Vec::new());
    }
    let document = surgery::read(text)?;
    let Some(Json::Object(events)) = document.root().get("hooks").map(Json::of) else { return Ok(Vec::new()) };
    let mut found = Vec::new();
    for (event, groups) in &events {
        let Json::Array(groups) = groups else { continue };
        for group in groups {
            let handlers = match group.as_object().and_then(|group| group.get("hooks")) {
                Some(Json::Array(handlers)) => handlers.as_slice(),
                Some(_) | None => core::slice::from_ref(group),
            };
            let ours = handlers.iter().filter(|handler| is_hook(host, handler));
            let ours = ours.filter_map(command).map(|command| Hooked { event: event.clone(), command });
            found.extend(ours);
        }
    }
    Ok(found)
}

fn command(handler: &Json) -> Option<HookCommand> {
    let members = handler.as_object()?;
    let command = members.get("command").and_then(Json::as_str)?.to_owned();
    Some(match members.get("args") {
        Some(Json::Array(words)) => {
            let words = words.iter().filter_map(Json::as_str).map(str::to_owned);
            HookCommand::Words([command].into_iter().chain(words).collect())
        }
        Some(_) | None => HookCommand::Line(command),
    })
}

#[cfg(test)]
mod tests {
    use super::super::{Scope, Wanted, install, places};
    use super::*;
    use interlock_core::rule::shell_quoted;

    #[test]
    fn what_is_installed_is_found_as_it_was_wanted() {
        let wanted = Wanted {
            binary: "/opt/it's here/interlock".to_owned(),
            home: "/var/a \\ b/é".to_owned(),
            daemon: "sha256:00".to_owned(),
            timeout_s: 60,
        };
        for host in Host::ALL {
            for scope in [Scope::User, Scope::Project] {
                let mut count = 0_usize;
                for place in places(host, scope) {
                    let text = install(host, &place, None, &wanted).unwrap().text.unwrap();
                    for hooked in commands(host, &place, &text).unwrap() {
                        count += 1;
                        // A character that a shell reads as it is, and we do not, is not read at all.
                        if let Some(named) = hooked.command.named() {
                            assert_eq!(named.binary, wanted.binary);
                            assert_eq!((named.home, named.daemon), (wanted.home.clone(), wanted.daemon.clone()));
                        } else {
                            panic!("{host}: {:?}", hooked.command);
                        }
                    }
                }
                assert_eq!(count, super::super::place::hooked(host).len(), "{host}");
            }
        }
    }

    #[test]
    fn words_are_split_as_they_are_quoted() {
        for words in [vec!["a", "b c", "it's", "'", ""], vec!["$x", "\\", "`", "\"\""], vec!["plain"]] {
            let line = words.iter().map(|word| shell_quoted(word)).collect::<Vec<_>>().join(" ");
            assert_eq!(
                shell_words(&line).as_deref(),
                Some(words.iter().map(|w| (*w).to_owned()).collect::<Vec<_>>().as_slice())
            );
        }
        for line in ["a \"b\"", "a $b", "'open", "a\\b", "a;b", "a\tb"] {
            assert_eq!(shell_words(line), None, "{line}");
        }
    }
}
