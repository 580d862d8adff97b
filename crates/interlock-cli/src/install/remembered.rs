//! What was in a settings file before `install`, kept in the home for `uninstall` and `doctor`.
//!
//! A record is written before the file it tells of: if the write in between fails, the file is not the one the record
//! names, and taking our entries out finds none.

use std::fs;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use interlock_core::Digest;
use interlock_core::json::{self, Json, Limits, quote};
use interlock_hosts::Host;
use interlock_runtime::startup::make_directory;

use super::file::TargetFile;
use crate::Fault;

/// Where records lie in a home.
const DIRECTORY: &str = "installed";
/// The most records that are read.
const RECORDS_MAX: usize = 1_000;
/// A settings file as a JSON string takes at most six times its size.
const BYTES_MAX: u64 = 100 * 1024 * 1024;

/// What is remembered of one file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Record {
    pub(crate) host: Host,
    /// Whether it is the user's settings, or a project's.
    pub(crate) is_user: bool,
    /// The directory that the settings belong to.
    pub(crate) base: String,
    /// The file.
    pub(crate) path: String,
    /// What it said; nothing: there was none.
    pub(crate) before: Option<String>,
    /// The digest of what was written.
    pub(crate) after: Digest,
    /// Directories that were made for it, the innermost first.
    pub(crate) made: Vec<String>,
}

impl Record {
    /// Reads what is remembered of a file, if anything is and can be read.
    pub(crate) fn of(home: &Path, host: Host, file: &Path) -> Option<Record> {
        read(&place(home, host, file))
    }

    pub(crate) fn write(&self, home: &Path) -> Result<(), Fault> {
        make_directory(&home.join(DIRECTORY)).map_err(|fault| Fault::with_code(fault.code, fault.message))?;
        let name = file_name(self.host, Path::new(&self.path));
        let file = TargetFile::look(&home.join(DIRECTORY), &name, true)?;
        let next = self.json();
        if file.text() != Some(&next) {
            file.replace(Some(next.as_bytes()))?;
        }
        Ok(())
    }

    pub(crate) fn forget(&self, home: &Path) {
        // What stays is told by its digest to be out of date.
        let _ = fs::remove_file(place(home, self.host, Path::new(&self.path)));
        let _ = fs::remove_dir(home.join(DIRECTORY));
    }

    fn json(&self) -> String {
        let before = self.before.as_deref().map_or_else(|| "null".to_owned(), quote);
        let made: Vec<String> = self.made.iter().map(|path| quote(path)).collect();
        format!(
            "{{\"host\":{},\"scope\":{},\"base\":{},\"path\":{},\"after\":{},\"made\":[{}],\"before\":{before}}}\n",
            quote(self.host.as_str()),
            quote(if self.is_user { "user" } else { "project" }),
            quote(&self.base),
            quote(&self.path),
            quote(&self.after.to_string()),
            made.join(",")
        )
    }
}

/// Everything that is remembered in a home.
pub(crate) fn all(home: &Path) -> Vec<Record> {
    let Ok(entries) = fs::read_dir(home.join(DIRECTORY)) else { return Vec::new() };
    let mut paths: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).take(RECORDS_MAX).collect();
    paths.sort();
    paths.iter().filter_map(|path| read(path)).collect()
}

fn file_name(host: Host, file: &Path) -> String {
    let digest = Digest::of_bytes(file.as_os_str().as_encoded_bytes()).to_string();
    let digits: String = digest.chars().skip("sha256:".len()).take(16).collect();
    format!("{host}-{digits}.json")
}

fn place(home: &Path, host: Host, file: &Path) -> PathBuf {
    home.join(DIRECTORY).join(file_name(host, file))
}

fn read(path: &Path) -> Option<Record> {
    let mut text = String::new();
    let read = fs::File::open(path).and_then(|file| file.take(BYTES_MAX).read_to_string(&mut text));
    read.map_err(|_: io::Error| ()).ok()?;
    let document = json::parse(&text, &Limits::CONFIG).ok()?;
    let root = document.root();
    let member = |key: &str| Some(root.get(key)?.as_str()?.text().to_owned());
    let before = match root.get("before").map(Json::of)? {
        Json::Null => None,
        Json::String(text) => Some(text),
        Json::Bool(_) | Json::Number(_) | Json::Array(_) | Json::Object(_) => return None,
    };
    let made = root.get("made")?.as_array()?.filter_map(|path| Some(path.as_str()?.text().to_owned())).collect();
    Some(Record {
        host: Host::parse(&member("host")?)?,
        is_user: member("scope")? == "user",
        base: member("base")?,
        path: member("path")?,
        before,
        after: Digest::parse(&member("after")?)?,
        made,
    })
}
