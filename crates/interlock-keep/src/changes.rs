//! What differs between two snapshots. The tree as it is now is compared by keeping it first.

use std::path::PathBuf;

use crate::fault::KeepFault;
use crate::log::{Snapshot, SnapshotId};
use crate::named::Lies;
use crate::node::{Kind, Node};
use crate::project::{joined, shown};
use crate::store::Store;

/// A path that is not as it was.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Change {
    /// Beneath the project; empty for the project's own directory.
    pub path: PathBuf,
    /// What it was; nothing if it was not there.
    pub before: Option<Node>,
    /// What it is; nothing if it is not there.
    pub after: Option<Node>,
}

/// In which way something is not as it was.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Way {
    /// It was not there.
    Added,
    /// It is not there.
    Removed,
    /// It is something else, such as a link and no file.
    Kind,
    /// The file's bytes differ.
    Content,
    /// The link says something else.
    Target,
    /// Its permissions differ.
    Mode,
    /// Its user or group differs.
    Owner,
    /// Its attributes differ.
    Xattrs,
}

impl Change {
    /// All ways in which it is not as it was, in order.
    pub fn ways(&self) -> Vec<Way> {
        let (before, after) = match (&self.before, &self.after) {
            (None, None) => return Vec::new(),
            (None, Some(_)) => return vec![Way::Added],
            (Some(_), None) => return vec![Way::Removed],
            (Some(before), Some(after)) => (before, after),
        };
        let first = match (&before.kind, &after.kind) {
            (Kind::File { .. }, Kind::File { .. }) if before.kind != after.kind => Some(Way::Content),
            (Kind::Link { .. }, Kind::Link { .. }) if before.kind != after.kind => Some(Way::Target),
            (Kind::File { .. }, Kind::File { .. })
            | (Kind::Link { .. }, Kind::Link { .. })
            | (Kind::Directory { .. }, Kind::Directory { .. }) => None,
            (one, other) => (one != other).then_some(Way::Kind),
        };
        let others = [
            (before.mode != after.mode, Way::Mode),
            (before.owner != after.owner, Way::Owner),
            (before.xattrs != after.xattrs, Way::Xattrs),
        ];
        first.into_iter().chain(others.into_iter().filter(|(differs, _)| *differs).map(|(_, way)| way)).collect()
    }
}

/// A change by its path as the store spells it.
pub(crate) type Differing = (Vec<u8>, Option<Node>, Option<Node>);

impl Store {
    /// What differs between two snapshots, by path; of two that are about different paths, what lies in both.
    pub fn changes(&mut self, before: &SnapshotId, after: &SnapshotId) -> Result<Vec<Change>, KeepFault> {
        let _lock = self.lock_to_read()?;
        let differing = self.differing(&self.find(before)?, &self.find(after)?)?;
        Ok(differing.into_iter().map(|(path, before, after)| Change { path: shown(&path), before, after }).collect())
    }

    pub(crate) fn differing(&self, before: &Snapshot, after: &Snapshot) -> Result<Vec<Differing>, KeepFault> {
        let scopes = [self.named(before)?, self.named(after)?];
        let lies = |path: &[u8]| {
            let all: Vec<Lies> = scopes.iter().flatten().map(|named| named.lies(path)).collect();
            match all {
                all if all.contains(&Lies::Beside) => Lies::Beside,
                all if all.contains(&Lies::Above) => Lies::Above,
                _ => Lies::Within,
            }
        };
        let mut found = Vec::new();
        let mut open = vec![(Vec::new(), Some(self.root(before)?), Some(self.root(after)?))];
        while let Some((path, before, after)) = open.pop() {
            let lies_here = lies(&path);
            if lies_here == Lies::Beside || before == after {
                continue;
            }
            for (name, before, after) in self.paired(&before, &after)? {
                open.push((joined(&path, &name), before, after));
            }
            let is_like = matches!((&before, &after), (Some(before), Some(after)) if before.is_like(after));
            if lies_here == Lies::Within && !is_like {
                found.push((path, before, after));
            }
        }
        found.sort_unstable_by(|left, right| left.0.cmp(&right.0));
        Ok(found)
    }

    /// The names of two directories, each with what it is in the one and in the other.
    fn paired(&self, before: &Option<Node>, after: &Option<Node>) -> Result<Vec<Differing>, KeepFault> {
        let names = |node: &Option<Node>| match node {
            Some(Node { kind: Kind::Directory { tree }, .. }) => self.objects.tree(*tree),
            _ => Ok(Vec::new()),
        };
        let tree_of = |node: &Option<Node>| match node {
            Some(Node { kind: Kind::Directory { tree }, .. }) => Some(*tree),
            _ => None,
        };
        if tree_of(before) == tree_of(after) {
            return Ok(Vec::new());
        }
        let mut pairs: std::collections::BTreeMap<Vec<u8>, (Option<Node>, Option<Node>)> = Default::default();
        for (name, node) in names(before)? {
            pairs.entry(name).or_default().0 = Some(node);
        }
        for (name, node) in names(after)? {
            pairs.entry(name).or_default().1 = Some(node);
        }
        pairs.retain(|_, (before, after)| before != after);
        Ok(pairs.into_iter().map(|(name, (before, after))| (name, before, after)).collect())
    }
}
