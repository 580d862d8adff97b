//! A project, a place outside it, and commands that are held to the one.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use tempfile::TempDir;

/// A user who owns nothing.
const NOBODY: u32 = 65534;

/// As whom tests run: root runs them as root and as nobody.
pub(crate) fn users() -> Vec<u32> {
    let own = fs::metadata("/proc/self").expect("a process").uid();
    if own == 0 { vec![0, NOBODY] } else { vec![own] }
}

/// By what commands are held.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Rung {
    /// Namespaces.
    Full,
    /// None, and nothing in the project is guarded.
    Narrow,
    /// None, and the runner does what the command asks, because something is.
    ByHand,
}

impl Rung {
    pub(crate) fn is_narrow(self) -> bool {
        self != Rung::Full
    }
}

/// Every user, with and without namespaces.
pub(crate) fn grounds() -> Vec<(u32, Rung)> {
    let rungs = [Rung::Full, Rung::Narrow, Rung::ByHand];
    users().into_iter().flat_map(|user| rungs.map(|rung| (user, rung))).collect()
}

/// A project, a place outside, and a user who owns both.
pub(crate) struct World {
    pub(crate) user: u32,
    pub(crate) rung: Rung,
    root: TempDir,
    runner: PathBuf,
}

impl World {
    pub(crate) fn new(user: u32) -> World {
        World::on((user, Rung::Full))
    }

    pub(crate) fn on((user, rung): (u32, Rung)) -> World {
        let root = tempfile::Builder::new().prefix("interlock-").tempdir_in(base()).expect("a directory");
        fs::set_permissions(root.path(), fs::Permissions::from_mode(0o755)).expect("a mode");
        let runner = root.path().join("runner");
        fs::copy(env!("CARGO_BIN_EXE_interlock-contain"), &runner).expect("a copy of the runner");
        let world = World { user, rung, root, runner };
        fs::write(world.path("project.report"), "").expect("a file");
        world.give(&world.path("project.report"));
        for name in ["project", "outside"] {
            fs::create_dir(world.path(name)).expect("a directory");
            world.give(&world.path(name));
        }
        if rung == Rung::ByHand {
            world.write("project/.guarded/hidden", "hidden");
            world.directory("project/.guarded/locked");
        }
        world.write("outside/file", "as it was");
        world.write("outside/secret", "a secret");
        world
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.root.path().join(name)
    }

    pub(crate) fn text(&self, name: &str) -> String {
        self.path(name).to_str().expect("UTF-8").to_owned()
    }

    /// Makes a file, and the directories on the way to it.
    pub(crate) fn write(&self, name: &str, text: &str) {
        let path = self.path(name);
        self.directory(Path::new(name).parent().and_then(Path::to_str).unwrap_or(""));
        fs::write(&path, text).expect("a file");
        self.give(&path);
    }

    pub(crate) fn directory(&self, name: &str) {
        let mut path = self.root.path().to_owned();
        for part in Path::new(name) {
            path.push(part);
            if !path.exists() {
                fs::create_dir(&path).expect("a directory");
                self.give(&path);
            }
        }
    }

    pub(crate) fn give(&self, path: &Path) {
        if users().len() > 1 {
            chown(path, Some(self.user), Some(self.user)).expect("an owner");
        }
    }

    /// A bound in which the project can be written, with more fields of JSON.
    pub(crate) fn bound(&self, more: &str) -> String {
        let mut more = if more.is_empty() { String::new() } else { format!(", {more}") };
        for name in ["locked", "hidden"] {
            if self.rung == Rung::ByHand && !more.contains(name) {
                more.push_str(&format!(r#", "{name}": ["{}"]"#, self.text(&format!("project/.guarded/{name}"))));
            }
        }
        self.bound_of(&format!(r#""write": ["{}"]{more}"#, self.text("project")))
    }

    /// A bound with these fields.
    pub(crate) fn bound_of(&self, fields: &str) -> String {
        let rung = match self.rung {
            Rung::Full => "",
            Rung::Narrow | Rung::ByHand => r#", "rung": "narrow""#,
        };
        let fields = if fields.is_empty() { String::new() } else { format!(", {fields}") };
        format!(r#"{{"profile": "test"{rung}{fields}}}"#)
    }

    /// A command that is held to a bound; to nothing if that is `-`.
    pub(crate) fn held(&self, bound: &str, program: &[&str]) -> Command {
        let mut command = Command::new(&self.runner);
        command.arg(bound).args(program);
        self.as_user(&mut command);
        command.env("INTERLOCK_CONTAIN_REPORT", self.path("project.report"));
        command
    }

    /// The same command without the runner.
    pub(crate) fn bare(&self, program: &[&str]) -> Command {
        let mut command = Command::new(program[0]);
        command.args(&program[1..]);
        self.as_user(&mut command);
        command
    }

    fn as_user(&self, command: &mut Command) {
        command.current_dir(self.path("project")).stdin(Stdio::null());
        command.env_clear().env("PATH", "/usr/local/bin:/usr/bin:/bin").env("HOME", self.path("project"));
        command.env("LC_ALL", "C");
        if users().len() > 1 && self.user != 0 {
            command.uid(self.user).gid(self.user);
        }
    }

    /// Runs a line of a shell inside, and returns what it wrote.
    pub(crate) fn line(&self, bound: &str, line: &str) -> Output {
        self.held(bound, &["/bin/bash", "-c", line]).output().expect("the runner")
    }

    /// What the runner wrote down about the last command.
    pub(crate) fn report(&self) -> String {
        fs::read_to_string(self.path("project.report")).unwrap_or_default()
    }

    /// Everything outside as it is now: any change of a file, its mode, owner, times or attributes makes a difference.
    pub(crate) fn outside(&self) -> Vec<String> {
        self.tree("outside")
    }

    /// The same of another directory.
    pub(crate) fn tree(&self, name: &str) -> Vec<String> {
        let mut found = Vec::new();
        let mut open = vec![self.path(name)];
        while let Some(path) = open.pop() {
            let Ok(it) = fs::symlink_metadata(&path) else { continue };
            let text = if it.is_file() { fs::read(&path).unwrap_or_default() } else { Vec::new() };
            if it.is_dir() {
                open.extend(fs::read_dir(&path).expect("a directory").map(|entry| entry.expect("an entry").path()));
            }
            let times = (it.mtime(), it.mtime_nsec(), it.ctime(), it.ctime_nsec());
            found.push(format!("{path:?} {:o} {} {} {} {times:?} {text:?}", it.mode(), it.uid(), it.nlink(), it.ino()));
        }
        found.sort();
        found
    }
}

/// Waits until something has happened.
pub(crate) fn wait_for(what: &str, mut happened: impl FnMut() -> bool) {
    for _ in 0..6000 {
        if happened() {
            return;
        }
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    panic!("waited for {what}");
}

/// Whether a process runs whose arguments contain this.
pub(crate) fn is_running(arguments: &str) -> bool {
    let processes = fs::read_dir("/proc").expect("processes").filter_map(Result::ok);
    processes.filter(|one| one.file_name().to_str().is_some_and(|name| name.parse::<u32>().is_ok())).any(|one| {
        fs::read(one.path().join("cmdline"))
            .is_ok_and(|line| line.windows(arguments.len()).any(|part| part == arguments.as_bytes()))
    })
}

/// A directory that every user can reach and that is no place for temporary files: those are masked inside.
fn base() -> PathBuf {
    let target = PathBuf::from(env!("CARGO_TARGET_TMPDIR"));
    let open = |path: &Path| path.ancestors().all(|one| fs::metadata(one).is_ok_and(|it| it.mode() & 0o5 == 0o5));
    let found = [target.clone(), "/opt".into(), "/srv".into()].into_iter().find(|path| open(path));
    found.unwrap_or(target)
}

pub(crate) fn stdout(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

pub(crate) fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}
