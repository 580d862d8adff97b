//! Kept states of projects: one store for each project, used by one at a time, in the order in which they came.
//!
//! What is left out is said here: secrets, unless the operator wants them kept, and what can be made again. What git tracks
//! is neither: whoever has the project has it, and nobody makes it again.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError};

use interlock_core::action::Millis;
use interlock_core::bundle::Keeping;
use interlock_core::places::is_guarded_secret;
use interlock_keep::{Bounds, KeepFault, LeaveOut, Limits, Pruned, Scope, Snapshot, SnapshotId, Store, Why};

use crate::git_index;

/// How many projects are remembered with what the last walk over them saw.
const LANES_MAX: usize = 16;
/// How many states before calls that are under way are held in one project.
const HELD_MAX: usize = 256;
/// After so many kept states the store is put in order, whatever its size.
const TIDY_EVERY: u32 = 64;

/// The stores of all projects.
#[derive(Debug)]
pub struct Keeper {
    stores: PathBuf,
    user_home: Option<PathBuf>,
    lanes: Mutex<HashMap<PathBuf, Arc<Lane>>>,
}

/// A state that was kept.
#[derive(Debug, Clone)]
pub struct Taken {
    /// Its record.
    pub snapshot: Snapshot,
    /// What is not in it, and why, by path beneath the project.
    pub left_out: Vec<(PathBuf, Why)>,
}

impl Taken {
    /// How many places were left out, by the reason.
    pub fn left_out_kinds(&self) -> BTreeMap<String, u64> {
        let mut kinds = BTreeMap::new();
        for (_, why) in &self.left_out {
            let count: &mut u64 = kinds.entry(why.word().to_owned()).or_default();
            *count = count.saturating_add(1);
        }
        kinds
    }
}

/// One project.
#[derive(Debug, Default)]
struct Lane {
    turns: Mutex<Turns>,
    moved: Condvar,
    opened: Mutex<Opened>,
}

#[derive(Debug, Default)]
struct Turns {
    next: u64,
    served: u64,
}

#[derive(Debug, Default)]
struct Opened {
    store: Option<(Limits, Store)>,
    /// States before calls that are under way, by the decision; the oldest first.
    held: Vec<(String, SnapshotId)>,
    since_tidied: u32,
}

impl Opened {
    fn held(&self) -> Vec<SnapshotId> {
        self.held.iter().map(|(_, snapshot)| snapshot.clone()).collect()
    }
}

/// A place in the order of those who use a project's store. It is taken at once, and waited for later.
#[derive(Debug)]
pub struct Turn {
    lane: Arc<Lane>,
    number: u64,
}

impl Turn {
    fn wait(&self) {
        let mut turns = self.lane.turns.lock().unwrap_or_else(PoisonError::into_inner);
        while turns.served != self.number {
            turns = self.lane.moved.wait(turns).unwrap_or_else(PoisonError::into_inner);
        }
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        // Nobody who came later goes first, even if this one was given up.
        self.wait();
        let mut turns = self.lane.turns.lock().unwrap_or_else(PoisonError::into_inner);
        turns.served = turns.served.saturating_add(1);
        self.lane.moved.notify_all();
    }
}

impl Keeper {
    /// The stores in a directory. The home directory of the user is no project: it is not kept as a whole.
    pub fn new(stores: PathBuf, user_home: Option<PathBuf>) -> Keeper {
        Keeper { stores, user_home, lanes: Mutex::default() }
    }

    /// Whether anything of a project is kept.
    pub fn covers(&self, project: &Path, keeping: &Keeping) -> bool {
        let holds_home = self.user_home.as_deref().is_some_and(|home| home.starts_with(project));
        keeping.enabled && !holds_home && project != Path::new("/")
    }

    /// Takes the next turn of a project.
    pub fn turn(&self, project: &Path) -> Turn {
        let lane = {
            let mut lanes = self.lanes.lock().unwrap_or_else(PoisonError::into_inner);
            if lanes.len() >= LANES_MAX && !lanes.contains_key(project) {
                // Whoever has a turn holds its lane; the others only remember what need not be read again.
                lanes.retain(|_, lane| Arc::strong_count(lane) > 1);
            }
            Arc::clone(lanes.entry(project.to_owned()).or_default())
        };
        let number = {
            let mut turns = lane.turns.lock().unwrap_or_else(PoisonError::into_inner);
            let number = turns.next;
            turns.next = number.saturating_add(1);
            number
        };
        Turn { lane, number }
    }

    /// Keeps the state of a project before a call, or of some files of it. It is held until the state after it is kept.
    pub fn keep_before(
        &self,
        project: &Path,
        scope: &Scope,
        keeping: &Keeping,
        decision_id: &str,
        now: Millis,
    ) -> Result<Taken, KeepFault> {
        let turn = self.turn(project);
        self.in_turn(&turn, project, keeping, |opened, store, leave_out| {
            let taken = take(store, scope, leave_out, now)?;
            // The end of some calls is never told.
            if opened.held.len() >= HELD_MAX {
                opened.held.remove(0);
            }
            opened.held.push((decision_id.to_owned(), taken.snapshot.id.clone()));
            Ok(taken)
        })
    }

    /// Keeps the state after a call, in a turn that was taken when its end was told; and drops what is beyond the limits.
    pub fn keep_after(
        &self,
        turn: &Turn,
        project: &Path,
        scope: &Scope,
        keeping: &Keeping,
        decision_id: &str,
        now: Millis,
    ) -> Result<(Taken, Option<Pruned>), KeepFault> {
        self.in_turn(turn, project, keeping, |opened, store, leave_out| {
            opened.held.retain(|(held, _)| held != decision_id);
            let taken = take(store, scope, leave_out, now)?;
            opened.since_tidied = opened.since_tidied.saturating_add(1);
            // What cannot be dropped now is dropped another time: the state is kept.
            let pruned = tidy(opened, store, keeping, now).unwrap_or(None);
            Ok((taken, pruned.filter(|pruned| !pruned.dropped.is_empty())))
        })
    }

    /// Uses the store of a project, after all who came before.
    pub fn with<T>(
        &self,
        project: &Path,
        keeping: &Keeping,
        act: impl FnOnce(&mut Store, LeaveOut<'_>) -> Result<T, KeepFault>,
    ) -> Result<T, KeepFault> {
        let turn = self.turn(project);
        self.in_turn(&turn, project, keeping, |_, store, leave_out| act(store, leave_out))
    }

    /// Drops what is beyond some bounds, but for the states before calls that are under way.
    pub fn prune(&self, project: &Path, keeping: &Keeping, bounds: &Bounds, now: Millis) -> Result<Pruned, KeepFault> {
        let turn = self.turn(project);
        self.in_turn(&turn, project, keeping, |opened, store, _| store.prune(bounds, &opened.held(), now))
    }

    fn in_turn<T>(
        &self,
        turn: &Turn,
        project: &Path,
        keeping: &Keeping,
        act: impl FnOnce(&mut Opened, &mut Store, LeaveOut<'_>) -> Result<T, KeepFault>,
    ) -> Result<T, KeepFault> {
        turn.wait();
        let mut opened: MutexGuard<'_, Opened> = turn.lane.opened.lock().unwrap_or_else(PoisonError::into_inner);
        let limits = limits_of(keeping);
        let mut store = match opened.store.take() {
            // A project that was moved, or made anew, has another directory by that name.
            Some((known, store)) if known == limits => store,
            Some(_) | None => Store::open(&self.stores, project, limits)?,
        };
        let done = with_leave_out(project, keeping, |leave_out| act(&mut opened, &mut store, leave_out));
        // After a fault everything is read again: what was remembered may be what was wrong.
        opened.store = done.is_ok().then_some((limits, store));
        done
    }
}

fn limits_of(keeping: &Keeping) -> Limits {
    Limits { nodes_max: keeping.files_max, file_bytes_max: keeping.file_bytes_max, ..Limits::USUAL }
}

fn bounds_of(keeping: &Keeping) -> Bounds {
    Bounds { age_ms_max: keeping.age_ms_max, bytes_max: keeping.bytes_max }
}

fn take(store: &mut Store, scope: &Scope, leave_out: LeaveOut<'_>, now: Millis) -> Result<Taken, KeepFault> {
    let snapshot = store.keep(scope, leave_out, now)?;
    let left_out = match scope {
        _ if snapshot.left_out == 0 => Vec::new(),
        Scope::All => store.last_left_out(),
        Scope::Paths(_) => store.left_out(&snapshot.id)?,
    };
    Ok(Taken { snapshot, left_out })
}

/// Drops what is beyond the limits of the bundle, if there may be something.
fn tidy(opened: &mut Opened, store: &mut Store, keeping: &Keeping, now: Millis) -> Result<Option<Pruned>, KeepFault> {
    let bounds = bounds_of(keeping);
    let oldest = store.snapshots()?.first().map(|snapshot| snapshot.time_ms);
    let is_old = oldest.is_some_and(|oldest| now.saturating_sub(oldest) > bounds.age_ms_max);
    if !is_old && store.bytes()? <= bounds.bytes_max && opened.since_tidied < TIDY_EVERY {
        return Ok(None);
    }
    opened.since_tidied = 0;
    store.prune(&bounds, &opened.held(), now).map(Some)
}

/// What of a project is left out.
fn with_leave_out<T>(project: &Path, keeping: &Keeping, act: impl FnOnce(LeaveOut<'_>) -> T) -> T {
    let is_made_again = |name: &OsStr| keeping.regenerable.iter().any(|known| name == OsStr::new(known));
    let has_name_of_secret =
        |path: &Path| path.to_str().is_some_and(|path| is_guarded_secret(&format!("/{}", path.to_lowercase())));
    // Only a project in which such a name was met has its index read.
    let tracked: OnceLock<BTreeSet<PathBuf>> = OnceLock::new();
    let tracked = || {
        tracked.get_or_init(|| {
            let is_wanted = |name: &OsStr| {
                let path = Path::new(name);
                path.iter().any(is_made_again) || has_name_of_secret(path)
            };
            git_index::tracked(&project.join(".git"), is_wanted).into_iter().collect()
        })
    };
    let is_secret = |path: &Path| !keeping.secrets && has_name_of_secret(path) && !tracked().contains(path);
    let is_regenerable = |path: &Path| {
        let has_tracked = || tracked().range(path.to_owned()..).next().is_some_and(|first| first.starts_with(path));
        path.file_name().is_some_and(is_made_again) && !has_tracked()
    };
    act(LeaveOut { is_regenerable: &is_regenerable, is_secret: &is_secret })
}
