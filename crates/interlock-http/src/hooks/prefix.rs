//! The shell prefix of Claude Code: whether the one in force is ours, and whether it stays so when settings change.

use std::fs::{self, File};
use std::io::{ErrorKind, Read};
use std::path::Path;

use interlock_hosts::settings::keeps_prefix;

use super::{Hooks, SHELL_PREFIX};

/// The user's own settings, in the directory of the user.
const USER_SETTINGS: &str = ".claude/settings.json";
/// How much of a settings file is read.
const BYTES_MAX: u64 = 16 * 1024 * 1024;

impl Hooks {
    /// Whether a prefix is the one of this home.
    pub(super) fn is_own_prefix(&self, prefix: &str) -> bool {
        let directory = Path::new(prefix).parent().and_then(|directory| fs::canonicalize(directory).ok());
        let name = Path::new(prefix).file_name();
        directory.zip(name).is_some_and(|(directory, name)| directory.join(name) == self.home.join(SHELL_PREFIX))
    }

    /// Whether settings that changed take our prefix away, which is in force now. A file that is not named, or cannot be
    /// read, might.
    pub(super) fn displaces_prefix(&self, prefix: Option<&str>, source: Option<&str>, path: Option<&str>) -> bool {
        let Some(prefix) = prefix.filter(|prefix| self.is_own_prefix(prefix)) else { return false };
        if source == Some("skills") {
            return false;
        }
        let Some(path) = path.filter(|path| Path::new(path).is_absolute()) else { return true };
        let holds = match source {
            // Nothing of ours is ever written there.
            Some("local_settings" | "policy_settings") => false,
            // Unless the user's own settings name it.
            Some("project_settings") => {
                let user = self.user_home.as_deref().map(|user| Path::new(user).join(USER_SETTINGS));
                !user.is_some_and(|user| keeps_prefix(read(&user).as_deref(), true, prefix))
            }
            Some(_) | None => true,
        };
        !keeps_prefix(read(Path::new(path)).as_deref(), holds, prefix)
    }
}

/// What a file says; nothing if there is none. One that cannot be read says what no settings say.
fn read(path: &Path) -> Option<String> {
    let mut text = String::new();
    match File::open(path).and_then(|file| file.take(BYTES_MAX).read_to_string(&mut text)) {
        Ok(_) => Some(text),
        Err(error) if error.kind() == ErrorKind::NotFound => None,
        Err(_) => Some(String::new()),
    }
}
