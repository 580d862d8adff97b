//! What an undo would do, path by path, before anything is done.
//!
//! A path that is now as the call left it goes back to what it was before. One that changed since, or that another call
//! touched meanwhile, is a clash and stays as it is, unless the caller names it. What was never kept is neither brought
//! back nor taken away.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::PathBuf;

use crate::fault::KeepFault;
use crate::limits::LeaveOut;
use crate::log::{Snapshot, SnapshotId};
use crate::named::{Lies, Named};
use crate::node::{Kind, Node, Tree, Why};
use crate::project::{joined, shown, spelled, split};
use crate::store::{Scope, Store};

/// Which change is to be undone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Undo {
    /// The tree before the call.
    pub before: SnapshotId,
    /// The tree after it.
    pub after: SnapshotId,
    /// The trees before and after earlier calls that are undone with it, the newest first.
    pub earlier: Vec<(SnapshotId, SnapshotId)>,
    /// The trees before and after calls that ran meanwhile: what they touched too is a clash.
    pub overlapping: Vec<(SnapshotId, SnapshotId)>,
    /// If there are any, only what lies at or beneath these is undone, clash or not.
    pub named: Vec<PathBuf>,
}

/// What an undo would do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Plan {
    /// What was asked.
    pub undo: Undo,
    /// The tree that the plan is about: as it was when the plan was made.
    pub now: SnapshotId,
    /// Every path that the call changed, in order.
    pub steps: Vec<Step>,
}

/// What would become of one path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Step {
    /// Beneath the project; empty for the project's own directory.
    pub path: PathBuf,
    /// What it was before the call; nothing if it was not there.
    pub before: Option<Node>,
    /// What it is now; nothing if it is not there.
    pub now: Option<Node>,
    /// What happens to it.
    pub fate: Fate,
}

/// What happens to a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Fate {
    /// It goes back to what it was.
    Restored,
    /// It is what it was already.
    AsBefore,
    /// It stays: it is not what the call left.
    Clash(Clash),
    /// It stays: what it was, or what it is, is not kept.
    NotKept(Why),
}

/// Why a path is not undone unless it is named.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Clash {
    /// It changed after the call ended.
    ChangedSince,
    /// A call that ran meanwhile changed it too.
    Overlapping,
    /// It is a directory that holds something else by now.
    HoldsOthers,
}

/// A step by its path as the store spells it.
#[derive(Debug, Clone)]
pub(crate) struct Planned {
    pub(crate) path: Vec<u8>,
    pub(crate) before: Option<Node>,
    pub(crate) now: Option<Node>,
    pub(crate) fate: Fate,
}

impl Undo {
    /// The trees before and after each call, the newest first.
    fn calls(&self) -> impl Iterator<Item = (&SnapshotId, &SnapshotId)> {
        let earlier = self.earlier.iter().map(|(before, after)| (before, after));
        std::iter::once((&self.before, &self.after)).chain(earlier)
    }
}

impl Plan {
    /// Whether something stays as it is because it clashes.
    pub fn has_clashes(&self) -> bool {
        self.steps.iter().any(|step| matches!(step.fate, Fate::Clash(_)))
    }
}

impl Store {
    /// Says what an undo would do. The tree is kept first, so that the plan is about one moment.
    pub fn plan(&mut self, undo: &Undo, leave_out: LeaveOut<'_>, now_ms: u64) -> Result<Plan, KeepFault> {
        let _lock = self.lock()?;
        self.clean_up()?;
        let (now, steps) = self.plan_locked(undo, leave_out, now_ms)?;
        let steps = steps
            .into_iter()
            .map(|step| Step { path: shown(&step.path), before: step.before, now: step.now, fate: step.fate })
            .collect();
        self.planned = Some(now.id.clone());
        Ok(Plan { undo: undo.clone(), now: now.id, steps })
    }

    /// Keeps the tree, as far as the undo is about it, and makes the plan; the lock is held.
    pub(crate) fn plan_locked(
        &mut self,
        undo: &Undo,
        leave_out: LeaveOut<'_>,
        now_ms: u64,
    ) -> Result<(Snapshot, Vec<Planned>), KeepFault> {
        self.objects.refresh()?;
        let mut calls = Vec::new();
        let mut scope = Scope::Paths(Vec::new());
        for (before, after) in undo.calls() {
            let (before, after) = (self.find(before)?, self.find(after)?);
            scope = scope.and(self.scope_of(&before)?);
            calls.push((before, after));
        }
        let now = self.keep_locked(&scope, leave_out, now_ms)?;
        let steps = self.steps(undo, &calls, &now)?;
        Ok((now, steps))
    }

    /// What a snapshot is about.
    pub(crate) fn scope_of(&self, snapshot: &Snapshot) -> Result<Scope, KeepFault> {
        let named = self.named(snapshot)?;
        Ok(named.map_or(Scope::All, |named| Scope::Paths(named.0.iter().map(|path| shown(path)).collect())))
    }

    fn steps(&self, undo: &Undo, calls: &[(Snapshot, Snapshot)], now: &Snapshot) -> Result<Vec<Planned>, KeepFault> {
        let paths: Vec<Vec<u8>> = undo.named.iter().map(|path| spelled(path)).collect::<Result<_, _>>()?;
        let is_named = !paths.is_empty();
        let named = Named::new(paths);
        let mut overlapping = BTreeSet::new();
        for (before, after) in &undo.overlapping {
            let differing = self.differing(&self.find(before)?, &self.find(after)?)?;
            overlapping.extend(differing.into_iter().map(|(path, _, _)| path));
        }
        let (changed, since) = self.changed_by(calls, now)?;
        let mut steps = Vec::new();
        for (path, Changed { before, now, is_as_left }) in changed {
            if is_named && named.lies(&path) != Lies::Within {
                continue;
            }
            let clash = match (is_as_left, overlapping.contains(&path)) {
                _ if is_named => None,
                (false, _) => Some(Clash::ChangedSince),
                (true, true) => Some(Clash::Overlapping),
                (true, false) => None,
            };
            let fate = fate(&before, &now, clash);
            steps.push(Planned { path, before, now, fate });
        }
        self.find_held(&mut steps, now)?;
        if let Some((first, _)) = calls.last() {
            self.add_missing(&mut steps, &since, first)?;
        }
        Ok(steps)
    }

    /// What calls changed, by path: what it was before the first of them, what it is now, and whether nobody else changed
    /// it between them or since. And what changed since, of what they left alone.
    fn changed_by(
        &self,
        calls: &[(Snapshot, Snapshot)],
        now: &Snapshot,
    ) -> Result<(ByPath<Changed>, Since), KeepFault> {
        let (mut changed, mut others) = (ByPath::<Changed>::new(), Since::new());
        for (before, after) in calls {
            let mut since: Since = self.differing(after, now)?.into_iter().map(|(path, _, now)| (path, now)).collect();
            for (path, before, after) in self.differing(before, after)? {
                let since = since.remove(&path);
                match changed.entry(path) {
                    // A later call went on from what this one left, or from what somebody else made of it.
                    Entry::Occupied(mut later) => {
                        let later = later.get_mut();
                        later.is_as_left &= are_alike(&later.before, &after);
                        later.before = before;
                    }
                    Entry::Vacant(new) => {
                        let is_as_left = since.is_none();
                        new.insert(Changed { before, now: since.unwrap_or(after), is_as_left });
                    }
                }
            }
            for (path, now) in since {
                others.entry(path).or_insert(now);
            }
        }
        others.retain(|path, _| !changed.contains_key(path));
        Ok((changed, others))
    }

    /// What comes back needs the directories it lay in, even if the call left those alone and somebody else did not.
    fn add_missing(&self, steps: &mut Vec<Planned>, since: &Since, before: &Snapshot) -> Result<(), KeepFault> {
        let comes_back = |step: &&Planned| step.fate == Fate::Restored && step.before.is_some();
        let mut missing: BTreeSet<Vec<u8>> = BTreeSet::new();
        for step in steps.iter().filter(comes_back) {
            let mut directory = split(&step.path).0;
            while !directory.is_empty() {
                if since.get(directory) == Some(&None) {
                    missing.insert(directory.to_vec());
                }
                directory = split(directory).0;
            }
        }
        for path in missing {
            let before = self.node_beneath(self.root(before)?, &path)?;
            steps.push(Planned { path, before, now: None, fate: Fate::Restored });
        }
        steps.sort_by(|left, right| left.path.cmp(&right.path));
        Ok(())
    }

    /// A directory can go only if all that it holds now goes.
    fn find_held(&self, steps: &mut [Planned], now: &Snapshot) -> Result<(), KeepFault> {
        let is_gone = |step: &Planned| step.fate == Fate::Restored && step.before.is_none();
        let mut gone: BTreeSet<Vec<u8>> =
            steps.iter().filter(|step| is_gone(step)).map(|step| step.path.clone()).collect();
        let mut trees = Trees { store: self, read: HashMap::from([(Vec::new(), self.names_of(&self.root(now)?)?)]) };
        // From the leaves up: a directory that stays holds its parent.
        for step in steps.iter_mut().rev() {
            let stays_directory = step.before.as_ref().is_some_and(Node::is_directory);
            let is_directory = step.now.as_ref().is_some_and(Node::is_directory);
            if step.fate != Fate::Restored || stays_directory || !is_directory {
                continue;
            }
            let names = trees.names(&step.path)?;
            if names.iter().any(|(name, _)| !gone.contains(&joined(&step.path, name))) {
                step.fate = Fate::Clash(Clash::HoldsOthers);
                gone.remove(&step.path);
            }
        }
        Ok(())
    }

    /// The names in a directory; none in anything else.
    pub(crate) fn names_of(&self, node: &Node) -> Result<Tree, KeepFault> {
        match node.kind {
            Kind::Directory { tree } => self.objects.tree(tree),
            Kind::File { .. } | Kind::Link { .. } | Kind::LeftOut { .. } => Ok(Tree::new()),
        }
    }
}

/// Directories of one snapshot, each read once.
struct Trees<'a> {
    store: &'a Store,
    read: HashMap<Vec<u8>, Tree>,
}

impl Trees<'_> {
    /// The names in a directory; none if there is no such directory.
    fn names(&mut self, path: &[u8]) -> Result<&Tree, KeepFault> {
        if !self.read.contains_key(path) {
            let (directory, name) = split(path);
            let node = self.names(directory)?.iter().find(|(known, _)| known == name).map(|(_, node)| node.clone());
            let names = node.map_or(Ok(Tree::new()), |node| self.store.names_of(&node))?;
            self.read.insert(path.to_vec(), names);
        }
        Ok(self.read.entry(path.to_vec()).or_default())
    }
}

/// By path, as the store spells it.
type ByPath<T> = BTreeMap<Vec<u8>, T>;
/// What became of paths since.
type Since = ByPath<Option<Node>>;

/// A path that calls changed.
struct Changed {
    before: Option<Node>,
    now: Option<Node>,
    is_as_left: bool,
}

fn are_alike(one: &Option<Node>, other: &Option<Node>) -> bool {
    match (one, other) {
        (None, None) => true,
        (Some(one), Some(other)) => one.is_like(other),
        _ => false,
    }
}

fn fate(before: &Option<Node>, now: &Option<Node>, clash: Option<Clash>) -> Fate {
    let is_as_before = are_alike(before, now);
    let not_kept = [before, now].into_iter().flatten().find_map(|node| match node.kind {
        Kind::LeftOut { why, .. } => Some(why),
        _ => None,
    });
    match (is_as_before, not_kept, clash) {
        (true, _, _) => Fate::AsBefore,
        (false, Some(why), _) => Fate::NotKept(why),
        (false, None, Some(clash)) => Fate::Clash(clash),
        (false, None, None) => Fate::Restored,
    }
}
