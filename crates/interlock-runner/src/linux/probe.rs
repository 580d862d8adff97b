//! What this machine can hold a command with: the whole set-up is tried, because single parts may be allowed where the
//! whole is not.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};

use interlock_core::contain::{Bound, Cache, Rung};

use super::{run, sys};
use crate::{Abilities, Ended, How, Start};

/// What stops unprivileged namespaces, and what a person may do about it.
const SETTINGS: [(&str, &str, &str); 3] = [
    (
        "/proc/sys/kernel/apparmor_restrict_unprivileged_userns",
        "1",
        "this system lets only named programs make user namespaces. As root, write this to \
         `/etc/apparmor.d/interlock` and run `apparmor_parser -r /etc/apparmor.d/interlock`:\n",
    ),
    (
        "/proc/sys/kernel/unprivileged_userns_clone",
        "0",
        "user namespaces are switched off. As root: `sysctl -w kernel.unprivileged_userns_clone=1`",
    ),
    (
        "/proc/sys/user/max_user_namespaces",
        "0",
        "user namespaces are switched off. As root: `sysctl -w user.max_user_namespaces=15000`",
    ),
];

/// Tries the whole set-up in a child, the best first, and says what is missing for it.
pub fn probe() -> Abilities {
    let place = std::env::temp_dir().join(format!("interlock-probe-{}", std::process::id()));
    let is_made = fs::create_dir(&place).is_ok() && fs::canonicalize(&place).is_ok_and(|real| real == place);
    let full = try_full(is_made.then_some(place.as_path()));
    let rung = match &full {
        Ok(_) => Rung::Full,
        Err(_) if is_made && try_narrow(&place).is_ok() => Rung::Narrow,
        Err(_) => Rung::None,
    };
    let _ = fs::remove_dir_all(&place);
    let landlock_abi = sys::landlock_abi();
    let missing = full.as_ref().err().cloned();
    Abilities {
        rung,
        landlock_abi,
        namespaces: rung == Rung::Full,
        seccomp: rung != Rung::None,
        notifier: rung != Rung::None,
        overlay: full.is_ok_and(|overlay| overlay),
        advice: missing.as_ref().and_then(|_| advice(landlock_abi)),
        missing,
    }
}

/// Whether a command runs in namespaces; if so, whether caches have layers there.
fn try_full(place: Option<&Path>) -> Result<bool, String> {
    let mut bound = Bound { profile: "probe".to_owned(), ..Bound::default() };
    let named = |place: &Path, name: &str| place.join(name).to_string_lossy().into_owned();
    bound.caches =
        place.map(|place| Cache { directory: named(place, "cache"), own: named(place, "own") }).into_iter().collect();
    let tries_layers = !bound.caches.is_empty();
    let ended = try_one(bound, "/".into(), vec!["true".into()])?;
    Ok(tries_layers && ended.notes.is_empty())
}

/// Makes, changes and moves what may be, and tries what may not be.
const NARROW_LINE: &str = "mkdir made && echo > made/file && chmod 600 made/file && mv made moved || exit 1
if echo > locked/new || chmod 700 locked || mv locked away || cat hidden; then exit 2; fi";

/// Whether a command is held without namespaces: what the kernel refuses, and what the runner does instead.
fn try_narrow(place: &Path) -> Result<Ended, String> {
    let project = place.join("project");
    let made = fs::create_dir_all(project.join("locked")).and_then(|()| fs::write(project.join("hidden"), "hidden"));
    made.map_err(|error| error.to_string())?;
    let named = |name: &str| vec![project.join(name).to_string_lossy().into_owned()];
    let bound = Bound {
        profile: "probe".to_owned(),
        rung: Rung::Narrow,
        write: vec![project.to_string_lossy().into_owned()],
        locked: named("locked"),
        hidden: named("hidden"),
        ..Bound::default()
    };
    let line = format!("exec > /dev/null 2> /dev/null\n{NARROW_LINE}");
    try_one(bound, project, vec!["sh".into(), "-c".into(), line.into()])
}

fn try_one(bound: Bound, cwd: PathBuf, program: Vec<OsString>) -> Result<Ended, String> {
    let env = std::env::vars_os().filter(|(name, _)| name == "PATH").collect();
    match run(&Start { program, cwd, env, bound: Some(bound), ..Start::default() }) {
        Ok(ended) if ended.how == How::Exit(0) => Ok(ended),
        Ok(_) => Err("a command that only tries this failed inside".to_owned()),
        Err(fault) => Err(fault.to_string()),
    }
}

/// What a person may do, if this is a case that is known.
fn advice(landlock_abi: u32) -> Option<String> {
    for (path, value, text) in SETTINGS {
        if fs::read_to_string(path).is_ok_and(|found| found.trim() == value) {
            let profile = if path.contains("apparmor") { apparmor_profile() } else { String::new() };
            return Some(format!("{text}{profile}"));
        }
    }
    if landlock_abi == 0 {
        return Some(
            "Landlock is not there: it needs Linux 5.13 and `landlock` among the modules of `lsm=`".to_owned(),
        );
    }
    if Path::new("/.dockerenv").exists() || Path::new("/run/.containerenv").exists() {
        return Some(
            "this is a container that allows no namespaces or masks `/proc`; its runtime can allow both".to_owned(),
        );
    }
    None
}

/// A profile that lets this program make user namespaces and confines it in nothing.
fn apparmor_profile() -> String {
    let program = std::env::current_exe().unwrap_or_default();
    format!(
        "abi <abi/4.0>,\ninclude <tunables/global>\nprofile interlock \"{}\" flags=(unconfined) {{\n  userns,\n}}\n",
        program.display()
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_profile_names_this_program_and_allows_namespaces() {
        let profile = apparmor_profile();
        assert!(profile.contains("userns,") && profile.contains(&*std::env::current_exe().unwrap().to_string_lossy()));
    }

    /// Where the tests run, commands can be held; elsewhere every other test would fail too.
    #[test]
    fn the_whole_set_up_is_tried() {
        let abilities = probe();
        assert_eq!((abilities.rung, abilities.missing.as_deref()), (Rung::Full, None));
        assert!(abilities.landlock_abi >= 1 && abilities.notifier && abilities.namespaces);
    }

    #[test]
    fn so_is_that_without_namespaces() {
        let place = tempfile::tempdir().expect("a directory");
        let place = fs::canonicalize(place.path()).expect("a path");
        let ended = try_narrow(&place);
        assert!(ended.is_ok(), "{ended:?}");
        // If what may not be were done, the probe would fail.
        fs::remove_dir_all(place.join("project")).expect("removed");
        let unheld = Bound { profile: "probe".to_owned(), rung: Rung::None, ..Bound::default() };
        assert!(try_one(unheld, "/".into(), vec!["true".into()]).is_err());
    }
}
