//! Which script the command of a declared fact runs, where that is a file of the project that can be told, and the SHA-256
//! of it: `npm test` with another `"test"` is another fact.
//!
//! It reads no further than the script itself: what that calls in turn is no part of it.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{ErrorKind, Read};
use std::path::{Component, Path};

use interlock_core::Digest;
use interlock_core::json::{self, Limits};
use interlock_core::workflow::Fact;
use interlock_verifiers::shell::{Setting, examine};
use rustix::fs::{Mode, OFlags};

use crate::gate::Gate;

/// The largest script that is read, in bytes.
const BYTES_MAX: u64 = 4 * 1024 * 1024;
/// Where `make` looks, in its own order. One that is made later takes the place of the others.
const MAKEFILES: [&str; 3] = ["GNUmakefile", "makefile", "Makefile"];
/// Where `just` looks.
const JUSTFILES: [&str; 3] = ["justfile", "Justfile", ".justfile"];

/// The script of a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Script {
    /// It runs no file of the project that can be told.
    Untold,
    /// It runs this, or would if it were there.
    Is(Digest),
    /// It runs a file that cannot be read.
    Unreadable,
}

impl Script {
    /// What a run notes of it when it starts. What could not be read then is none that is found later.
    fn noted(self) -> Option<Digest> {
        match self {
            Script::Untold => None,
            Script::Is(digest) => Some(digest),
            Script::Unreadable => Some(Digest::of(&["unreadable"])),
        }
    }
}

impl Gate {
    /// What the commands of facts run in a project, by their lines; nothing if the verifiers refuse the bundle.
    pub fn scripts_of(&self, facts: &[Fact], project: &str) -> Option<BTreeMap<String, Option<Digest>>> {
        let setting = self.with_ground(|ground| Setting::with(ground.commands.clone()))?;
        let noted = |fact: &Fact| {
            let script = script_of(&fact.command, Path::new(project), &setting);
            (fact.command.clone(), script.noted())
        };
        Some(facts.iter().map(noted).collect())
    }
}

/// The script of a command line that is run in a project's own directory: of all its commands together.
pub fn script_of(line: &str, project: &Path, setting: &Setting) -> Script {
    let (_, words) = examine(line, setting);
    // What is run elsewhere is another file.
    if !words.changes.is_empty() {
        return Script::Untold;
    }
    let known = |words: &[Option<String>]| words.iter().map_while(Clone::clone).collect::<Vec<String>>();
    let pieces = words.commands.iter().flat_map(|command| pieces_of(&known(&command.words), project));
    let pieces: Vec<Piece> = pieces.collect();
    if pieces.is_empty() {
        return Script::Untold;
    }
    let told: Option<Vec<String>> = pieces.iter().map(|piece| piece.told(project)).collect();
    told.map_or(Script::Unreadable, |told| Script::Is(Digest::of(&[&told.join("\n")])))
}

/// A part of what a command runs.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Piece {
    /// A file, by its path in the project.
    File(String),
    /// A script of `package.json`, with what runs before and after it.
    Package(String),
}

fn pieces_of(words: &[String], project: &Path) -> Vec<Piece> {
    let Some((program, rest)) = words.split_first() else { return Vec::new() };
    let files = |names: &[&str]| names.iter().map(|name| Piece::File((*name).to_owned())).collect::<Vec<_>>();
    if let Some(path) = program.contains('/').then(|| in_project(program, project)).flatten() {
        return vec![Piece::File(path)];
    }
    let name = program.rsplit('/').next().unwrap_or_default();
    match name {
        "npm" | "pnpm" | "yarn" | "bun" => package_script(rest).map(Piece::Package).into_iter().collect(),
        "make" | "gmake" => {
            let named = named_makefiles(rest).into_iter().filter_map(|path| in_project(path, project));
            files(&MAKEFILES).into_iter().chain(named.map(Piece::File)).collect()
        }
        "just" => files(&JUSTFILES),
        "bash" | "sh" | "node" => interpreted(rest, project),
        _ if name.starts_with("python") => interpreted(rest, project),
        _ => Vec::new(),
    }
}

/// The file that an interpreter is given first. Behind an option there may be code, a module, or a value.
fn interpreted(rest: &[String], project: &Path) -> Vec<Piece> {
    let first = rest.first().filter(|word| !word.starts_with('-'));
    first.and_then(|word| in_project(word, project)).map(Piece::File).into_iter().collect()
}

/// The script that a package manager is asked for: `test`, `run NAME`, and what `NAME` alone is.
fn package_script(rest: &[String]) -> Option<String> {
    let mut words = rest.iter().map(String::as_str).filter(|word| !word.starts_with('-'));
    match words.next()? {
        "run" | "run-script" => words.next().map(str::to_owned),
        "t" | "tst" => Some("test".to_owned()),
        name => Some(name.to_owned()),
    }
}

/// `-f FILE`, in all of its spellings.
fn named_makefiles(rest: &[String]) -> Vec<&str> {
    let mut found = Vec::new();
    let mut words = rest.iter().map(String::as_str);
    while let Some(word) = words.next() {
        if matches!(word, "-f" | "--file" | "--makefile") {
            found.extend(words.next());
        } else {
            let prefixes = ["--file=", "--makefile=", "-f"];
            found.extend(prefixes.iter().find_map(|prefix| word.strip_prefix(prefix)));
        }
    }
    found
}

/// The path in the project that a word names, if it names one there.
fn in_project(word: &str, project: &Path) -> Option<String> {
    let path = Path::new(word);
    let path = if path.is_absolute() { path.strip_prefix(project).ok()? } else { path };
    let goes_down = |part: Component<'_>| matches!(part, Component::Normal(_) | Component::CurDir);
    let text = path.to_str().filter(|text| !text.is_empty())?;
    path.components().all(goes_down).then(|| text.to_owned())
}

/// What a file is, for the one who runs it.
enum Found {
    Absent,
    NoFile,
    Bytes(Vec<u8>),
}

impl Piece {
    /// What it is now, in words that no other has; nothing if it cannot be read.
    fn told(&self, project: &Path) -> Option<String> {
        let (label, path) = match self {
            Piece::File(path) => ("file", path.as_str()),
            Piece::Package(name) => (name.as_str(), "package.json"),
        };
        let told = match (read(&project.join(path)).ok()?, self) {
            (Found::Absent, _) => "absent".to_owned(),
            (Found::NoFile, _) => "no file".to_owned(),
            (Found::Bytes(bytes), Piece::File(_)) => Digest::of_bytes(&bytes).to_string(),
            (Found::Bytes(bytes), Piece::Package(name)) => scripts_named(&bytes, name),
        };
        Some(format!("{}:{}:{told}", json::quote(label), json::quote(path)))
    }
}

/// The script `NAME` of a `package.json`, and those that run before and after it. Of a text that is no strict JSON nobody
/// can say which those are: then the whole of it counts.
fn scripts_named(bytes: &[u8], name: &str) -> String {
    let text = core::str::from_utf8(bytes).ok();
    let document = text.and_then(|text| json::parse(text, &Limits::CONFIG).ok());
    let Some(document) = document else { return Digest::of_bytes(bytes).to_string() };
    let scripts = document.root().get("scripts");
    let one = |name: String| {
        let script = scripts.and_then(|scripts| scripts.get(&name));
        script.map_or_else(|| "absent".to_owned(), json::canonical)
    };
    [format!("pre{name}"), name.to_owned(), format!("post{name}")].map(one).join(",")
}

fn read(path: &Path) -> std::io::Result<Found> {
    // A pipe that nobody writes to must not hold up whoever asks.
    let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NONBLOCK;
    let file = match rustix::fs::open(path, flags, Mode::empty()).map(File::from).map_err(std::io::Error::from) {
        Ok(file) => file,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Found::Absent),
        Err(error) => return Err(error),
    };
    if !file.metadata()?.is_file() {
        return Ok(Found::NoFile);
    }
    let mut bytes = Vec::new();
    let read = file.take(BYTES_MAX.saturating_add(1)).read_to_end(&mut bytes)?;
    if u64::try_from(read).is_ok_and(|read| read <= BYTES_MAX) {
        Ok(Found::Bytes(bytes))
    } else {
        Err(std::io::Error::from(ErrorKind::FileTooLarge))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pieces(line: &str) -> Vec<Piece> {
        let words: Vec<String> = line.split(' ').map(str::to_owned).collect();
        pieces_of(&words, Path::new("/srv/shop"))
    }

    #[test]
    fn what_a_command_runs_is_told_by_its_words() {
        let file = |path: &str| vec![Piece::File(path.to_owned())];
        let package = |name: &str| vec![Piece::Package(name.to_owned())];
        let makefiles = MAKEFILES.map(|name| Piece::File(name.to_owned())).to_vec();
        for (line, expected) in [
            ("npm test", package("test")),
            ("npm t", package("test")),
            ("npm run --silent lint -- --fix", package("lint")),
            ("yarn lint", package("lint")),
            ("pnpm run-script check", package("check")),
            ("npm run", vec![]),
            ("make", makefiles.clone()),
            ("/usr/bin/make -j4 test", makefiles.clone()),
            ("make -f ci.mk test", [makefiles.clone(), file("ci.mk")].concat()),
            ("make --file=ci.mk", [makefiles.clone(), file("ci.mk")].concat()),
            ("just test", JUSTFILES.map(|name| Piece::File(name.to_owned())).to_vec()),
            ("python3.12 tests/run.py -q", file("tests/run.py")),
            ("python -m pytest", vec![]),
            ("bash scripts/check", file("scripts/check")),
            ("bash -c true", vec![]),
            ("node run.js", file("run.js")),
            ("./check --all", file("./check")),
            ("scripts/check", file("scripts/check")),
            ("/srv/shop/check", file("check")),
            ("/srv/shopping/check", vec![]),
            ("../check", vec![]),
            ("pytest -q", vec![]),
        ] {
            assert_eq!(pieces(line), expected, "{line}");
        }
    }

    #[test]
    fn another_script_is_another_digest_and_nothing_else_is() {
        let project = std::env::temp_dir().join(format!("interlock-scripts-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&project);
        std::fs::create_dir_all(&project).unwrap();
        let write = |name: &str, text: &str| std::fs::write(project.join(name), text).unwrap();
        let setting = Setting::built_in().unwrap();
        let script = |line: &str| script_of(line, &project, &setting);
        let mut seen = Vec::new();
        let mut differs = |line: &str| {
            let now = script(line);
            assert!(matches!(now, Script::Is(_)) && !seen.contains(&now), "{line}: {now:?}");
            seen.push(now);
        };
        differs("npm test");
        for text in [
            r#"{"scripts":{}}"#,
            r#"{"scripts":{"test":"jest"}}"#,
            r#"{"scripts":{"test":"true"}}"#,
            r#"{"scripts":{"test":"true","pretest":"x"}}"#,
            r#"{"scripts":{"test":"true","posttest":"x"}}"#,
            r#"{"scripts":{"test":"jest","test":"true"}}"#,
            "no JSON",
        ] {
            write("package.json", text);
            differs("npm test");
        }
        write("package.json", r#"{"scripts":{"test":"jest"}}"#);
        let before = script("CI=1 npm test");
        write("package.json", r#"{ "version": "2", "scripts": {"lint": "x", "test": "jest"} }"#);
        assert_eq!((script("CI=1 npm test"), script("timeout 9 npm test")), (before, before), "the same script");
        differs("make test");
        for (name, text) in [("Makefile", "test:\n\ttrue\n"), ("Makefile", "test:\n"), ("GNUmakefile", "test:\n")] {
            write(name, text);
            differs("make test");
        }
        write("check.sh", "exit 1");
        differs("npm run lint && bash check.sh");
        write("check.sh", "exit 0");
        differs("npm run lint && bash check.sh");
        assert_eq!(script("cd sub && make test"), Script::Untold);
        assert_eq!(script("pytest -q"), Script::Untold);
        write("large.sh", &"#".repeat(usize::try_from(BYTES_MAX).unwrap()));
        differs("sh large.sh");
        write("large.sh", &"#".repeat(usize::try_from(BYTES_MAX).unwrap() + 1));
        assert_eq!(script("sh large.sh"), Script::Unreadable);
        std::fs::remove_dir_all(&project).unwrap();
    }
}
