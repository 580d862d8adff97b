//! What a bound means where there are no namespaces: Landlock says what can be read, and written where nothing in a place
//! is guarded; where something is, the runner does what the command asks (`deeds.rs`). What cannot be held so is a fault.
//!
//! Landlock knows no exceptions beneath a directory. So what is hidden has its siblings named one by one, and a writable
//! place with something guarded in it may not be written by the command at all.

use std::ffi::OsString;
use std::fs::{self, DirBuilder};
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use interlock_core::contain::{Bound, NARROW_LANDLOCK_MIN, Reach};
use interlock_core::places::CACHE_VARIABLES;

use super::child::Hold;
use super::field::{ByHand, Field};
use super::filter::{self, Kind};
use super::locked::Placeholders;
use super::plan::{DEVICES, Places, Plan, is_there};
use super::rules::{self, Rules};
use super::sys;
use crate::{ContainFault, Start};

/// A directory for temporary files that goes with the call.
#[derive(Debug)]
pub(crate) struct OwnTemporary(PathBuf);

impl OwnTemporary {
    fn make() -> io::Result<OwnTemporary> {
        const TRIES: u32 = 64;
        let base = fs::canonicalize(std::env::temp_dir())?;
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        for number in 0..TRIES {
            let path = base.join(format!("interlock-{}-{}-{number}", std::process::id(), now.subsec_nanos()));
            match DirBuilder::new().mode(0o700).create(&path) {
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                other => return other.map(|()| OwnTemporary(path)),
            }
        }
        Err(io::Error::from_raw_os_error(libc::EEXIST))
    }
}

impl Drop for OwnTemporary {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Plans what `bound` means for a command that starts now, without namespaces.
pub(crate) fn plan(start: &Start, bound: &Bound) -> Result<Plan, ContainFault> {
    let abi = sys::landlock_abi();
    if abi < NARROW_LANDLOCK_MIN {
        let what = format!("Landlock {NARROW_LANDLOCK_MIN} is needed (Linux 6.12), and this kernel has {abi}");
        return Err(ContainFault::Narrow { what });
    }
    if matches!(bound.reach, Reach::Hosts(_)) {
        let what = "no host can be reached: Landlock knows ports and no names".to_owned();
        return Err(ContainFault::Narrow { what });
    }
    let places = Places::read(start, bound)?;
    if let Some(path) = places.write.iter().find(|write| places.hidden.iter().any(|one| write.starts_with(one))) {
        let path = path.to_string_lossy().into_owned();
        return Err(ContainFault::Bound { path, why: "it may be written and lies in what is hidden" });
    }
    let part = || ContainFault::of("the directory for temporary files");
    let (temporary, own_temporary) = match &start.temp {
        Some(temp) => (fs::canonicalize(temp).map_err(part())?, None),
        None => {
            let own = OwnTemporary::make().map_err(part())?;
            (own.0.clone(), Some(own))
        }
    };
    let mut rules = Rules::new(abi, true)?;
    let mut field = field(&places)?;
    allow_places(&mut rules, &places, &field)?;
    rules.allow(&temporary, rules::WRITE)?;
    let variables = allow_caches(&mut rules, &places, &mut field)?;
    for name in DEVICES {
        rules.allow(&Path::new("/dev").join(name), rules::DEVICE)?;
    }
    rules.allow_streams()?;
    field.write.push(temporary.clone());
    let reads = field.by_hand.as_ref().is_some_and(|hand| !hand.read.is_empty());
    Ok(Plan {
        outer: None,
        hold: Hold {
            steps: Vec::new(),
            slots: Vec::new(),
            ruleset: rules.into_descriptor(),
            filter: filter::filter(Kind::Narrow { reads }),
        },
        placeholders: Placeholders::default(),
        field,
        layers: Vec::new(),
        notes: Vec::new(),
        temporary,
        own_temporary,
        variables,
    })
}

/// Which places are written by the command, and which by the runner.
fn field(places: &Places) -> Result<Field, ContainFault> {
    let within = |path: &Path| places.write.iter().any(|write| path.starts_with(write));
    let mut hidden = Vec::new();
    for path in places.hidden.iter().filter(|path| within(path)) {
        match fs::symlink_metadata(path) {
            // What a link leads to is hidden too.
            Ok(kind) if !kind.is_symlink() => hidden.push(path.clone()),
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(ContainFault::of(format!("the rule for `{}`", path.display()))(error)),
        }
    }
    let locked: Vec<_> = places.locked.iter().filter(|path| within(path)).cloned().collect();
    for path in &locked {
        // A link in its place, or on the way to it, cannot be locked.
        is_there(path)?;
    }
    let roots_of = |guarded: &[PathBuf]| -> Vec<PathBuf> {
        let holds = |root: &&PathBuf| guarded.iter().any(|one| one.starts_with(root));
        places.write.iter().filter(holds).cloned().collect()
    };
    let read = roots_of(&hidden);
    let guarded = [locked, hidden.clone()].concat();
    let by_hand = ByHand { written: roots_of(&guarded), read, hidden };
    Ok(Field { write: places.write.clone(), guarded, by_hand: Some(by_hand) })
}

fn allow_places(rules: &mut Rules, places: &Places, field: &Field) -> Result<(), ContainFault> {
    let masks = places.masks().cloned().chain([PathBuf::from("/dev")]);
    let unread: Vec<_> = places.hidden.iter().cloned().chain(masks).collect();
    rules.allow_all_but(&unread, &[])?;
    for path in &places.visible {
        rules.allow_beneath(path, &places.hidden)?;
    }
    for path in &places.write {
        match field.by_hand.as_ref().filter(|hand| hand.written.contains(path)) {
            Some(hand) => rules.allow_beneath(path, &hand.hidden)?,
            None => rules.allow(path, rules::WRITE)?,
        }
    }
    Ok(())
}

/// The user's caches are read-only, and the project's own are found by variables, as far as there are some.
fn allow_caches(
    rules: &mut Rules,
    places: &Places,
    field: &mut Field,
) -> Result<Vec<(OsString, OsString)>, ContainFault> {
    let mut variables = Vec::new();
    for (directory, [_, _, plain]) in &places.caches {
        rules.allow_beneath(directory, &places.hidden)?;
        let Some((_, name)) = CACHE_VARIABLES.iter().find(|(end, _)| directory.ends_with(end)) else { continue };
        let part = || ContainFault::of(format!("the cache `{}`", directory.display()));
        fs::create_dir_all(plain).map_err(part())?;
        let plain = fs::canonicalize(plain).map_err(part())?;
        rules.allow(&plain, rules::WRITE)?;
        variables.push(((*name).into(), plain.clone().into_os_string()));
        field.write.push(plain);
    }
    Ok(variables)
}
