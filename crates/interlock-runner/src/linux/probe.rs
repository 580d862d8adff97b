//! What this machine can hold a command with: the whole set-up is tried, because single parts may be allowed where the
//! whole is not.

use std::fs;
use std::path::Path;

use interlock_core::contain::{Bound, Cache};

use super::{run, sys};
use crate::{Abilities, Ended, How, Rung, Start};

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

/// Tries the whole set-up in a child, and says what is missing.
pub fn probe() -> Abilities {
    let place = std::env::temp_dir().join(format!("interlock-probe-{}", std::process::id()));
    let named = |name: &str| place.join(name).to_string_lossy().into_owned();
    let mut bound = Bound { profile: "probe".to_owned(), ..Bound::default() };
    if fs::create_dir(&place).is_ok() && fs::canonicalize(&place).is_ok_and(|real| real == place) {
        bound.caches.push(Cache { directory: named("cache"), own: named("own") });
    }
    let tries_layers = !bound.caches.is_empty();
    let start = Start {
        program: vec!["true".into()],
        cwd: "/".into(),
        env: std::env::vars_os().filter(|(name, _)| name == "PATH").collect(),
        bound: Some(bound),
        ..Start::default()
    };
    let result = run(&start);
    let _ = fs::remove_dir_all(&place);
    let landlock_abi = sys::landlock_abi();
    let (works, overlay) = match &result {
        Ok(Ended { how: How::Exit(0), notes, .. }) => (true, tries_layers && notes.is_empty()),
        Ok(_) | Err(_) => (false, false),
    };
    let missing = match result {
        Err(fault) => Some(fault.to_string()),
        Ok(_) if !works => Some("a command that does nothing failed inside".to_owned()),
        Ok(_) => None,
    };
    Abilities {
        rung: if works { Rung::Full } else { Rung::None },
        landlock_abi,
        namespaces: works,
        seccomp: works,
        notifier: works,
        overlay,
        advice: missing.as_ref().and_then(|_| advice(landlock_abi)),
        missing,
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
}
