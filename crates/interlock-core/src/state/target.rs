//! Where a commit may go, as far as its spelling tells. What the file system makes of it is the runtime's to find out.

use core::fmt;

use crate::cause::Cause;
use crate::code::Code;
use crate::display;
use crate::ruling::Denial;

/// A directory that commits may go to: an absolute path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommitRoot {
    path: String,
}

impl CommitRoot {
    /// Reads a root; it need not exist yet.
    pub fn parse(path: &str) -> Result<CommitRoot, Cause> {
        if path.trim().is_empty() {
            return Err("allowed_commit_roots entries must be non-empty strings: absolute paths of directories".into());
        }
        if path.contains('\0') || !path.starts_with('/') || components(path).any(|part| part == "..") {
            let reason = "allowed_commit_roots entries must be absolute paths without `..`";
            return Err(format!("{reason}: {}", display(path)).into());
        }
        Ok(CommitRoot { path: path.to_owned() })
    }

    /// The path as it was given.
    pub fn path(&self) -> &str {
        &self.path
    }
}

/// The target of a commit: an absolute path to a `.json` file, split at its last name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommitTarget {
    path: String,
}

impl CommitTarget {
    /// Checks everything about a target that its spelling shows.
    ///
    /// ```
    /// use interlock_core::state::CommitTarget;
    ///
    /// assert!(CommitTarget::parse("/srv/state/agent.json").is_ok());
    /// assert!(CommitTarget::parse("state/agent.json").is_err());
    /// assert!(CommitTarget::parse("/srv/state/../agent.json").is_err());
    /// ```
    pub fn parse(path: &str) -> Result<CommitTarget, Denial> {
        let refuse = |reason: fmt::Arguments<'_>| Err(refused(reason));
        if path.trim().is_empty() {
            return refuse(format_args!("target_path must be a non-empty absolute path"));
        }
        if path.contains('\0') {
            return refuse(format_args!("target_path must not contain a NUL character"));
        }
        if !path.starts_with('/') {
            return refuse(format_args!("target_path must be an absolute path"));
        }
        if components(path).any(|part| part == "..") {
            return refuse(format_args!("target_path must not contain `..`"));
        }
        let name = path.rsplit('/').next().unwrap_or("");
        let is_json = name.len() > ".json".len()
            && name.get(name.len().saturating_sub(5)..).is_some_and(|end| end.eq_ignore_ascii_case(".json"));
        if !is_json {
            return refuse(format_args!("target_path must name a file that ends in .json"));
        }
        Ok(CommitTarget { path: path.to_owned() })
    }

    /// The path as it was given.
    pub fn path(&self) -> &str {
        &self.path
    }

    /// The name of the file.
    pub fn file_name(&self) -> &str {
        self.path.rsplit('/').next().unwrap_or("")
    }

    /// The directory of the file, relative to `root` (`.` for the root itself), if it is spelled beneath it.
    ///
    /// ```
    /// use interlock_core::state::CommitTarget;
    ///
    /// let target = CommitTarget::parse("/srv/state/team/agent.json")?;
    /// assert_eq!(target.directory_beneath("/srv/state"), Some("team".to_owned()));
    /// assert_eq!(target.directory_beneath("/srv/state/team/"), Some(".".to_owned()));
    /// assert_eq!(target.directory_beneath("/srv/sta"), None);
    /// # Ok::<(), interlock_core::Denial>(())
    /// ```
    pub fn directory_beneath(&self, root: &str) -> Option<String> {
        let mut parts = components(&self.path);
        for expected in components(root) {
            if parts.next() != Some(expected) {
                return None;
            }
        }
        let parts: Vec<_> = parts.collect();
        match parts.split_last()? {
            (_, []) => Some(".".to_owned()),
            (_, directories) => Some(directories.join("/")),
        }
    }
}

/// The names in a path; empty ones and `.` say nothing.
fn components(path: &str) -> impl Iterator<Item = &str> {
    path.split('/').filter(|part| !part.is_empty() && *part != ".")
}

/// A target that is refused, wherever that was noticed.
pub fn refused(reason: impl fmt::Display) -> Denial {
    Denial::blocked(Code::StateTarget, reason)
}
