//! Carrying out an undo.
//!
//! First everything that will be needed is made in a directory of its own inside the project, from objects that are
//! checked on the way: a store that is damaged is found before anything of the project is touched. Then what has to go is
//! taken away, what has to come is put in its place by a rename, and permissions of directories are set last. What is
//! displaced is looked at once more: if it is not what the snapshot before the undo holds, it goes back and is a clash.
//!
//! A process that dies leaves each path as it was or as it will be, some directories wider than that, and the directory of
//! its own. The next undo narrows those and removes this; then the undo can be done again.

use std::collections::{HashMap, HashSet};
use std::os::fd::{AsFd, OwnedFd};
use std::path::PathBuf;

use rustix::fs::AtFlags;
use rustix::io::Errno;

use crate::fault::KeepFault;
use crate::index::Stamp;
use crate::limits::LeaveOut;
use crate::log::{Snapshot, SnapshotId};
use crate::node::Node;
use crate::place::{self, Expected, Placed};
use crate::plan::{Clash, Fate, Plan, Planned};
use crate::project::{Names, Project, mode_of, shown, spelled, split, stat_name};
use crate::stage::Staging;
use crate::store::Store;
use crate::visit::is_git_object;
use crate::widened::{OWNER, Widened};

/// How the name of the directory begins in which files are made before they are put in place.
pub(crate) const STAGING: &[u8] = b".interlock-undo-";

/// How many threads put files in their places.
const THREADS: usize = 2;

/// What an undo did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Undone {
    /// The tree before the undo: by it the undo can be undone.
    pub kept: SnapshotId,
    /// The tree after it: the tree before with what was restored.
    pub after: SnapshotId,
    /// What became of each path, in order.
    pub paths: Vec<(PathBuf, Fate)>,
}

impl Store {
    /// Does what a plan says. What changed since the plan was made is a clash and stays.
    pub fn carry_out(&mut self, plan: &Plan, leave_out: LeaveOut<'_>, now_ms: u64) -> Result<Undone, KeepFault> {
        let _lock = self.lock()?;
        self.clean_up()?;
        let (kept, mut steps) = match self.steps_as_planned(plan)? {
            Some(planned) => planned,
            None => self.plan_again(plan, leave_out, now_ms)?,
        };
        if steps.iter().any(|step| step.fate == Fate::Restored) {
            let staging = Staging::fill(self, &kept.id, &steps)?;
            let done = Applying::new(self, &staging, &steps).apply(&mut steps);
            staging.remove()?;
            done?;
        }
        let after = self.keep_grafted(&kept, &steps, now_ms)?;
        let paths = steps.into_iter().map(|step| (shown(&step.path), step.fate)).collect();
        Ok(Undone { kept: kept.id, after: after.id, paths })
    }
}

impl Store {
    /// The steps of a plan, if this store made it and has not looked at the tree since: then what the plan saw is what
    /// every path is held against before it is touched, and the snapshot of the plan is the one before the undo.
    fn steps_as_planned(&mut self, plan: &Plan) -> Result<Option<(Snapshot, Vec<Planned>)>, KeepFault> {
        self.objects.refresh()?;
        if self.planned.take().as_ref() != Some(&plan.now) {
            return Ok(None);
        }
        self.project.check_in_place()?;
        // Another process may have dropped it.
        let Ok(kept) = self.find(&plan.now) else { return Ok(None) };
        let steps = plan.steps.iter().map(|step| {
            let (before, now) = (step.before.clone(), step.now.clone());
            Ok(Planned { path: spelled(&step.path)?, before, now, fate: step.fate })
        });
        Ok(Some((kept, steps.collect::<Result<_, KeepFault>>()?)))
    }

    /// Makes the plan once more; what is not as it was planned is a clash.
    fn plan_again(
        &mut self,
        plan: &Plan,
        leave_out: LeaveOut<'_>,
        now_ms: u64,
    ) -> Result<(Snapshot, Vec<Planned>), KeepFault> {
        let (kept, mut steps) = self.plan_locked(&plan.undo, leave_out, now_ms)?;
        let planned: HashMap<_, _> = plan.steps.iter().map(|step| (step.path.as_path(), step)).collect();
        for step in steps.iter_mut().filter(|step| step.fate == Fate::Restored) {
            let is_as_planned = planned
                .get(shown(&step.path).as_path())
                .is_some_and(|planned| planned.fate == Fate::Restored && planned.now == step.now);
            if !is_as_planned {
                step.fate = Fate::Clash(Clash::ChangedSince);
            }
        }
        Ok((kept, steps))
    }
}

impl Store {
    /// Removes what an undo that was cut short has left. What it displaced is kept: the snapshot was made before.
    pub(crate) fn clean_up(&self) -> Result<(), KeepFault> {
        let project = &self.project;
        Widened::narrow_leftovers(&self.directory, project)?;
        let fault = |why: Errno| KeepFault::read(project.path(), why);
        let names = project.open_directory(b"").and_then(|root| Names::list(&root)).map_err(fault)?;
        for name in (0..names.len()).filter_map(|at| names.get(at)).filter(|name| name.starts_with(STAGING)) {
            let path = project.path_of(name);
            // Follows no link, whoever replaces what while it runs.
            std::fs::remove_dir_all(&path).map_err(|source| KeepFault::write(&path, source))?;
        }
        Ok(())
    }
}

/// What is put in its place at the same time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Turn {
    Directories,
    Shared,
    Others,
}

/// An undo that is being carried out.
struct Applying<'a> {
    store: &'a Store,
    staging: &'a Staging,
    widened: Widened,
    /// Inodes of files of which several names are restored.
    shared: HashSet<u64>,
}

impl<'a> Applying<'a> {
    fn new(store: &'a Store, staging: &'a Staging, steps: &[Planned]) -> Applying<'a> {
        let (mut once, mut shared) = (HashSet::new(), HashSet::new());
        for step in steps.iter().filter(|step| step.fate == Fate::Restored) {
            if let Some(inode) = step.now.as_ref().and_then(|now| now.inode)
                && !once.insert(inode)
            {
                shared.insert(inode);
            }
        }
        Applying { store, staging, widened: Widened::new(&store.directory), shared }
    }

    /// What the last walk saw at a path.
    fn expected(&self, path: &[u8]) -> Option<Expected> {
        let stamp = self.store.last_stamp(path)?;
        Some(Expected { stamp, is_shared: self.shared.contains(&stamp.inode) })
    }

    fn apply(self, steps: &mut [Planned]) -> Result<(), KeepFault> {
        let cleared = self.note_staged(steps).and_then(|()| self.clear(steps));
        let placed = cleared.and_then(|()| self.place_all(steps));
        let set = self.set_directories(steps);
        placed.and(set)
    }

    /// Notes the directories that were staged, and those whose own permissions change: they are wide until the end.
    fn note_staged(&self, steps: &[Planned]) -> Result<(), KeepFault> {
        let fault = |why: std::io::Error| KeepFault::write(self.store.project.path(), why);
        let mut staged = Vec::new();
        for (at, step) in steps.iter().enumerate().filter(|(_, step)| self.turn(step) == Some(Turn::Directories)) {
            let name = Staging::name_of(at);
            let stat =
                stat_name(self.staging.descriptor().as_fd(), name.as_bytes()).map_err(|why| fault(why.into()))?;
            let mode = step.before.as_ref().map_or(0, |before| before.mode);
            staged.push((step.path.clone(), Stamp::of(&stat).inode, mode));
        }
        self.widened.add(staged).map_err(fault)
    }

    /// Takes away what is not to be there; the deepest first.
    fn clear(&self, steps: &mut [Planned]) -> Result<(), KeepFault> {
        let mut last = None;
        for (at, step) in steps.iter_mut().enumerate().rev() {
            let (Fate::Restored, None, Some(now)) = (step.fate, &step.before, &step.now) else { continue };
            let (directory, name) = split(&step.path);
            let expected = self.expected(&step.path);
            let out = format!("out-{at}");
            let cleared = self.in_directory(directory, &mut last, |parent| {
                if now.is_directory() {
                    rustix::fs::unlinkat(parent, name, AtFlags::REMOVEDIR).map(|()| Placed::Done)
                } else {
                    place::take_out(parent, name, self.staging.descriptor(), out.as_bytes(), expected.as_ref())
                }
            });
            settle(step, cleared, &self.store.project)?;
        }
        Ok(())
    }

    /// Puts the directories that are to be there in their places, the highest first, then files of which several names are
    /// restored, one after the other because they are one file, and then every other file and link.
    fn place_all(&self, steps: &mut [Planned]) -> Result<(), KeepFault> {
        self.place_some(steps, 0, Turn::Directories)?;
        self.place_some(steps, 0, Turn::Shared)?;
        let share = steps.len().div_ceil(THREADS).max(1);
        let failed = || Err(KeepFault::write(self.store.project.path(), std::io::Error::other("a thread failed")));
        std::thread::scope(|scope| {
            let shares = steps.chunks_mut(share).enumerate();
            let threads: Vec<_> = shares
                .map(|(at, steps)| scope.spawn(move || self.place_some(steps, at.saturating_mul(share), Turn::Others)))
                .collect();
            threads.into_iter().try_for_each(|thread| thread.join().unwrap_or_else(|_| failed()))
        })
    }

    /// When a step has its turn to put something in its place; nothing if it has none.
    fn turn(&self, step: &Planned) -> Option<Turn> {
        let before = step.before.as_ref().filter(|_| step.fate == Fate::Restored)?;
        let now = step.now.as_ref();
        match (before.is_directory(), now.is_some_and(Node::is_directory)) {
            (true, true) => None,
            (true, false) => Some(Turn::Directories),
            (false, _) if now.and_then(|now| now.inode).is_some_and(|inode| self.shared.contains(&inode)) => {
                Some(Turn::Shared)
            }
            (false, _) => Some(Turn::Others),
        }
    }

    /// Puts what has its turn in its place. The first of these steps is the step `first` of all.
    fn place_some(&self, steps: &mut [Planned], first: usize, turn: Turn) -> Result<(), KeepFault> {
        let mut last = None;
        for (at, step) in steps.iter_mut().enumerate() {
            let Some(before) = step.before.as_ref().filter(|_| self.turn(step) == Some(turn)) else { continue };
            let (directory, name) = split(&step.path);
            let expected = self.expected(&step.path).filter(|_| step.now.is_some());
            let staged = Staging::name_of(first.saturating_add(at));
            let is_same_file = expected.is_some_and(|expected| before.inode == Some(expected.stamp.inode));
            let in_place = is_same_file && !is_git_object(&step.path);
            let placed = self.in_directory(directory, &mut last, |parent| {
                let staging = self.staging.descriptor();
                place::put(parent, name, staging, staged.as_bytes(), expected.as_ref(), in_place)
            });
            settle(step, placed, &self.store.project)?;
        }
        Ok(())
    }

    /// Sets permissions and attributes of directories, the deepest first: one that is closed can no longer be entered.
    fn set_directories(self, steps: &mut [Planned]) -> Result<(), KeepFault> {
        let project = &self.store.project;
        for step in steps.iter_mut().rev() {
            let (Fate::Restored, Some(before)) = (step.fate, &step.before) else { continue };
            if !before.is_directory() {
                continue;
            }
            let set = project.open_directory(&step.path).and_then(|directory| place::set(&directory, before));
            settle(step, set.map(|()| Placed::Done), project)?;
        }
        self.widened.narrow(project)
    }

    /// Does something in a directory, which may be the last one that was open. If its permissions forbid that, they are
    /// widened until the end.
    fn in_directory(
        &self,
        path: &[u8],
        last: &mut Option<(Vec<u8>, OwnedFd)>,
        act: impl Fn(&OwnedFd) -> Result<Placed, Errno>,
    ) -> Result<Placed, Errno> {
        let opened = match last.take().filter(|(known, _)| known == path) {
            Some((_, opened)) => opened,
            None => match self.store.project.open_directory(path) {
                // It was taken away, or is something else by now.
                Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => return Ok(Placed::Clashes(Clash::ChangedSince)),
                other => other?,
            },
        };
        let mut done = act(&opened);
        if let Err(Errno::ACCESS | Errno::PERM) = done {
            let found = Stamp::of(&rustix::fs::fstat(&opened)?);
            let mode = found.mode & 0o7777;
            let noted = self.widened.add([(path.to_vec(), found.inode, mode)]);
            noted.map_err(|why| Errno::from_io_error(&why).unwrap_or(Errno::IO))?;
            rustix::fs::fchmod(&opened, mode_of(mode | OWNER))?;
            done = act(&opened);
        }
        *last = Some((path.to_vec(), opened));
        done
    }
}

/// Notes what came of a step; whatever the system refuses for no reason of the path's own ends the undo.
fn settle(step: &mut Planned, placed: Result<Placed, Errno>, project: &Project) -> Result<(), KeepFault> {
    match placed {
        Ok(Placed::Done) => Ok(()),
        Ok(Placed::Clashes(clash)) => {
            step.fate = Fate::Clash(clash);
            Ok(())
        }
        Err(Errno::NOTEMPTY) => {
            step.fate = Fate::Clash(Clash::HoldsOthers);
            Ok(())
        }
        Err(Errno::NOENT | Errno::EXIST | Errno::NOTDIR | Errno::ISDIR) => {
            step.fate = Fate::Clash(Clash::ChangedSince);
            Ok(())
        }
        Err(why) => Err(KeepFault::write(project.path_of(&step.path), why)),
    }
}
