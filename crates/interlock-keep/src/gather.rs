//! From what the threads of a walk found to all that it saw: what is as it was is taken over and not made again.

use std::collections::{BTreeSet, HashMap};

use crate::index::{Seen, SeenDirectory, SeenName, Stamp};
use crate::node::{Node, Why};

/// What a walk found, or one thread of it.
#[derive(Debug, Default)]
pub(crate) struct Found {
    /// When the walk began, by the clock that file systems use.
    pub(crate) walk_ns: i64,
    pub(crate) entered: Vec<Entered>,
    /// Names of directories, each part with the number of its directory.
    pub(crate) parts: Vec<(usize, Part)>,
    /// Directories that could not be entered; those that are gone have no reason.
    pub(crate) not_entered: Vec<(Vec<u8>, Option<Why>)>,
    pub(crate) files_read: u64,
}

/// A directory that was entered.
#[derive(Debug)]
pub(crate) struct Entered {
    pub(crate) number: usize,
    pub(crate) path: Vec<u8>,
    pub(crate) stamp: Stamp,
    /// Nothing if it is as it was known.
    pub(crate) node: Option<Node>,
}

/// Some names of a directory.
#[derive(Debug, Default)]
pub(crate) struct Part {
    /// Where those stand among the known ones that are as they were.
    pub(crate) same: Vec<u32>,
    /// The others.
    pub(crate) others: Vec<SeenName>,
}

/// All that a walk saw, and where that is other than what was known.
#[derive(Debug, Default)]
pub(crate) struct Walked {
    pub(crate) seen: Seen,
    /// Directories that are not as they were known, or have names that are not.
    pub(crate) touched: BTreeSet<Vec<u8>>,
    /// Directories that could not be entered; those that are gone have no reason.
    pub(crate) not_entered: HashMap<Vec<u8>, Option<Why>>,
    /// How many names the next walk need not look into, because this one did.
    pub(crate) learned: u64,
}

impl Found {
    /// What two threads found.
    pub(crate) fn and(mut self, mut other: Found) -> Found {
        self.entered.append(&mut other.entered);
        self.parts.append(&mut other.parts);
        self.not_entered.append(&mut other.not_entered);
        self.files_read = self.files_read.saturating_add(other.files_read);
        self
    }

    /// All of it. `known` hands over what was known of a directory.
    pub(crate) fn gathered(self, mut known: impl FnMut(&[u8]) -> Option<SeenDirectory>) -> Walked {
        let mut parts: Vec<Vec<Part>> = Vec::new();
        parts.resize_with(self.entered.len(), Vec::new);
        for (number, part) in self.parts {
            if let Some(of_directory) = parts.get_mut(number) {
                of_directory.push(part);
            }
        }
        let mut walked = Walked {
            not_entered: self.not_entered.into_iter().collect(),
            learned: self.files_read,
            ..Walked::default()
        };
        walked.seen.walk_ns = self.walk_ns;
        walked.seen.directories.reserve(self.entered.len());
        for entered in self.entered {
            let parts = parts.get_mut(entered.number).map(std::mem::take).unwrap_or_default();
            let known = known(&entered.path);
            let is_new = known.is_none();
            let mut directory = known.unwrap_or_else(|| SeenDirectory::unknown(entered.stamp));
            directory.stamp = entered.stamp;
            let is_other = entered.node.is_some_and(|node| directory.replace_node(node));
            let others = directory.replace_names(parts);
            walked.learned = walked.learned.saturating_add(others.unwrap_or(0)).saturating_add(u64::from(is_other));
            if is_new || is_other || others.is_some() {
                walked.touched.insert(entered.path.clone());
            }
            walked.seen.directories.insert(entered.path, directory);
        }
        walked
    }
}

impl SeenDirectory {
    fn unknown(stamp: Stamp) -> SeenDirectory {
        SeenDirectory { stamp, node: Node::left_out(Why::Unreadable, true), names: Vec::new() }
    }

    /// Takes another node for the directory itself; whether it is other. The digest of the names stays.
    fn replace_node(&mut self, node: Node) -> bool {
        let kind = if self.node.is_directory() { self.node.kind.clone() } else { node.kind };
        let node = Node { kind, ..node };
        let is_other = node != self.node;
        self.node = node;
        is_other
    }

    /// Takes the names that were found; how many are new, if they are not the known ones.
    fn replace_names(&mut self, parts: Vec<Part>) -> Option<u64> {
        let same = parts.iter().fold(0_usize, |sum, part| sum.saturating_add(part.same.len()));
        if same == self.names.len() && parts.iter().all(|part| part.others.is_empty()) {
            return None;
        }
        let mut is_same = vec![false; self.names.len()];
        let mut others = Vec::new();
        for mut part in parts {
            for at in part.same.iter().filter_map(|at| usize::try_from(*at).ok()) {
                is_same.get_mut(at).into_iter().for_each(|is_same| *is_same = true);
            }
            others.append(&mut part.others);
        }
        let mut is_same = is_same.into_iter();
        self.names.retain(|_| is_same.next() == Some(true));
        let count = u64::try_from(others.len()).unwrap_or(u64::MAX);
        self.names.append(&mut others);
        self.names.shrink_to_fit();
        self.sort();
        Some(count)
    }
}
