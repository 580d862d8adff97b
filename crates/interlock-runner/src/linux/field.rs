//! Where a command may write, and who sees to it: the kernel, or the runner.

use std::path::{Component, Path, PathBuf};

/// Where a command may write, as it sees it.
#[derive(Debug, Default)]
pub(crate) struct Field {
    /// Places that may be written.
    pub(crate) write: Vec<PathBuf>,
    /// What may not, although it lies there.
    pub(crate) guarded: Vec<PathBuf>,
    /// Set where the kernel's rules do without mounts.
    pub(crate) by_hand: Option<ByHand>,
}

/// What the runner does itself.
#[derive(Debug, Default)]
pub(crate) struct ByHand {
    /// Places of `write` with something guarded in them: the kernel lets the command write nothing there.
    pub(crate) written: Vec<PathBuf>,
    /// Those with something hidden in them: files that were made since are not readable there either.
    pub(crate) read: Vec<PathBuf>,
    /// What is hidden.
    pub(crate) hidden: Vec<PathBuf>,
}

/// Who sees to it that a place is written or not.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Standing {
    /// The kernel lets the command write there.
    Kernel,
    /// It may be written, by the runner.
    Hand,
    /// It may not be written.
    Refused,
}

impl Field {
    pub(crate) fn standing(&self, path: &Path) -> Standing {
        let within = |places: &[PathBuf]| places.iter().any(|place| path.starts_with(place));
        if !within(&self.write) || within(&self.guarded) {
            return Standing::Refused;
        }
        match &self.by_hand {
            Some(hand) if within(&hand.written) => Standing::Hand,
            _ => Standing::Kernel,
        }
    }

    /// The same for a name that would lead elsewhere afterwards: what is guarded must not lie beneath it.
    pub(crate) fn standing_of_name(&self, path: &Path) -> Standing {
        match self.guarded.iter().any(|guarded| guarded.starts_with(path)) {
            true => Standing::Refused,
            false => self.standing(path),
        }
    }

    /// Whether a path says by itself that it may be written, if no link is on the way.
    pub(crate) fn is_plainly_written(&self, path: &Path) -> bool {
        !path.components().any(|part| part == Component::ParentDir) && self.standing_of_name(path) != Standing::Refused
    }

    pub(crate) fn is_read_by_hand(&self, path: &Path) -> bool {
        let within = |places: &[PathBuf]| places.iter().any(|place| path.starts_with(place));
        self.by_hand.as_ref().is_some_and(|hand| within(&hand.read) && !within(&hand.hidden))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_guarded_is_neither_written_nor_moved_away() {
        let paths = |list: &[&str]| list.iter().map(PathBuf::from).collect::<Vec<_>>();
        let by_hand = ByHand { written: paths(&["/p"]), ..ByHand::default() };
        let field = Field {
            write: paths(&["/p", "/t"]),
            guarded: paths(&["/p/.git/hooks", "/p/.envrc"]),
            by_hand: Some(by_hand),
        };
        for (path, standing, of_name) in [
            ("/p/a", Standing::Hand, Standing::Hand),
            ("/p/.git", Standing::Hand, Standing::Refused),
            ("/p/.git/hooks", Standing::Refused, Standing::Refused),
            ("/p/.git/hooks/a", Standing::Refused, Standing::Refused),
            ("/p/.git/hooksome", Standing::Hand, Standing::Hand),
            ("/p/.envrc", Standing::Refused, Standing::Refused),
            ("/p", Standing::Hand, Standing::Refused),
            ("/pp", Standing::Refused, Standing::Refused),
            ("/t/a", Standing::Kernel, Standing::Kernel),
            ("/", Standing::Refused, Standing::Refused),
        ] {
            let path = Path::new(path);
            assert_eq!((field.standing(path), field.standing_of_name(path)), (standing, of_name), "{path:?}");
        }
        assert!(field.is_plainly_written(Path::new("/p/a")));
        assert!(!field.is_plainly_written(Path::new("/p/../etc")) && !field.is_plainly_written(Path::new("/p/.git")));
    }
}
