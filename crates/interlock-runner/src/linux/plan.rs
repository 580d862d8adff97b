//! What a bound means for the kernel: the steps that build a view of the file system, and the rules beneath it.
//!
//! The view is the machine's own tree, read-only, with writable places bound over themselves, and masks over the rest.
//! Whatever is taken as it is (writable places, devices) is taken before the tree is sealed; whatever is only shown again
//! beneath a mask is taken after. This file decides the order and nothing about processes.

use std::collections::BTreeSet;
use std::ffi::{CStr, CString, OsString};
use std::fs;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path, PathBuf};

use interlock_core::contain::{Bound, Reach};
use rustix::fs::{FlockOperation, Mode, OFlags};

use super::child::Hold;
use super::field::Field;
use super::filter;
use super::locked::Placeholders;
use super::narrow::OwnTemporary;
use super::rules::{self, Rules};
use super::steps::{self, NO_DEVICES, NO_EXEC, NO_SUID, READ_ONLY, Slot, Step};
use super::sys;
use crate::start::TEMPORARY;
use crate::{ContainFault, Start};

/// Devices that are there inside.
pub(crate) const DEVICES: [&str; 6] = ["null", "zero", "full", "random", "urandom", "tty"];

/// Links in `/dev` that programs expect.
const DEVICE_LINKS: [(&str, &str); 5] =
    [("fd", "/proc/self/fd"), ("stdin", "fd/0"), ("stdout", "fd/1"), ("stderr", "fd/2"), ("ptmx", "pts/ptmx")];

/// Parts of `/proc` that are about the machine and not about processes. Root may write them without any capability.
const PROC_OF_MACHINE: [&str; 7] =
    ["/proc/sys", "/proc/sysrq-trigger", "/proc/irq", "/proc/bus", "/proc/fs", "/proc/acpi", "/proc/scsi"];

/// Where what is hidden is replaced by.
const NOTHING_DIRECTORY: &str = "/run/.hidden/directory";
const NOTHING_FILE: &str = "/run/.hidden/file";

/// What a bound means here and now.
pub(crate) struct Plan {
    pub(crate) hold: Hold,
    /// Rules that are made while the view is built, if one is.
    pub(crate) outer: Option<OuterRules>,
    /// Made so that nobody else makes them; they go when this does.
    pub(crate) placeholders: Placeholders,
    /// Where the command may write, as it sees it.
    pub(crate) field: Field,
    /// Layers of caches, locked as long as these are kept.
    pub(crate) layers: Vec<Layer>,
    /// What is narrower than the bound says.
    pub(crate) notes: Vec<String>,
    /// Where temporary files go, as the command sees it.
    pub(crate) temporary: PathBuf,
    /// That directory, if it goes with the call.
    pub(crate) own_temporary: Option<OwnTemporary>,
    /// Variables by which it finds what lies elsewhere.
    pub(crate) variables: Vec<(OsString, OsString)>,
}

/// A layer of a cache that only one command writes at a time.
pub(crate) struct Layer {
    /// Locked while its command runs: another one gets no layer meanwhile.
    written: OwnedFd,
    /// Locked until the view of its command is gone as well: another one waits so long.
    pub(crate) work: OwnedFd,
}

/// Plans what `bound` means for a command that starts now.
pub(crate) fn plan(start: &Start, bound: &Bound, port: u16) -> Result<Plan, ContainFault> {
    let abi = sys::landlock_abi();
    let places = Places::read(start, bound)?;
    let mut view = View {
        steps: Vec::new(),
        slots: 0,
        made: BTreeSet::new(),
        rules: Rules::new(abi, start.session.is_none())?,
        layers: Vec::new(),
        notes: Vec::new(),
    };
    // A session has users and a network already, and its calls may send signals to each other.
    let alone = start.session.is_none();
    if alone {
        view.identity();
        view.steps.push(Step::Loopback);
    }
    if matches!(bound.reach, Reach::Hosts(_)) {
        view.steps.push(Step::Listen { port });
    }
    let caches = view.take_caches(&places)?;
    let writable = view.take_all(&places.write, 0)?;
    let (temp, devices) = (view.take_temp(start)?, view.take_devices()?);
    view.steps.push(Step::SealAll);
    let visible = view.take_all(&places.visible, READ_ONLY)?;
    view.masks(&places, temp, devices)?;
    for (slot, path) in visible.into_iter().chain(writable).chain(caches) {
        view.show(&places, slot, &path)?;
    }
    let placeholders = Placeholders::make(&places.locked, &places.write)?;
    view.lock(&places)?;
    view.hide(&places)?;
    view.seal_masks(&places)?;
    view.allow(&places)?;
    let ruleset = view.rules.descriptor().map_err(ContainFault::of("Landlock"))?;
    let filter = filter::filter(Rules::filter_kind(abi, alone));
    let View { steps, slots, rules, layers, notes, .. } = view;
    let slots = std::iter::repeat_with(|| None).take(slots).collect();
    let guarded = places.locked.iter().chain(&places.hidden).cloned().collect();
    Ok(Plan {
        hold: Hold { steps, slots, ruleset, filter },
        placeholders,
        field: Field { write: places.writable_inside(), guarded, by_hand: None },
        outer: Some(OuterRules { rules, places }),
        layers,
        notes,
        temporary: TEMPORARY.into(),
        own_temporary: None,
        variables: Vec::new(),
    })
}

/// The paths of a bound, checked, and what is known about them.
pub(crate) struct Places {
    pub(crate) write: Vec<PathBuf>,
    pub(crate) locked: Vec<PathBuf>,
    pub(crate) hidden: Vec<PathBuf>,
    covers: Vec<PathBuf>,
    /// What is shown, read-only, beneath a mask.
    pub(crate) visible: Vec<PathBuf>,
    /// The directory, what is written, work space, and what is there without layers.
    pub(crate) caches: Vec<(PathBuf, [PathBuf; 3])>,
    /// Places for temporary files, as they really are.
    temporary: Vec<PathBuf>,
    run: PathBuf,
}

impl Places {
    pub(crate) fn read(start: &Start, bound: &Bound) -> Result<Places, ContainFault> {
        let mut places = Places {
            write: Vec::new(),
            locked: read_all(&bound.locked)?,
            hidden: Vec::new(),
            covers: Vec::new(),
            visible: Vec::new(),
            caches: Vec::new(),
            temporary: real_ones(&["/tmp", "/var/tmp"]),
            run: fs::canonicalize("/run").map_err(ContainFault::of("the mask over `/run`"))?,
        };
        for path in read_all(&bound.write)? {
            if is_there(&path)? && !places.write.iter().any(|known| path.starts_with(known)) {
                places.write.push(path);
            }
        }
        for path in read_all(&bound.hidden)? {
            // A link to what is hidden is harmless; what it leads to is not.
            places.hidden.extend(fs::canonicalize(&path).ok().filter(|real| *real != path));
            places.hidden.push(path);
        }
        for cover in &bound.covers {
            // Places for temporary files are empty already; what is named there is shown.
            let is_empty = ["/tmp", "/run"].contains(&cover.directory.as_str());
            if !is_empty {
                let directory = read(&cover.directory)?;
                if is_there(&directory)? && !places.is_masked(&directory) {
                    places.covers.push(directory);
                }
            }
            // What is not there cannot be shown, and what a link leads to may be anything.
            let visible = read_all(&cover.visible)?;
            places.visible.extend(visible.into_iter().filter(|path| is_there(path).is_ok_and(|is| is)));
        }
        places.visible.extend(read_all(&bound.visible)?);
        for cache in &bound.caches {
            let own = read(&cache.own)?;
            places.caches.push((read(&cache.directory)?, ["written", "work", "plain"].map(|name| own.join(name))));
        }
        // A command begins where it was told, even if that lies beneath a mask.
        places.visible.extend(fs::canonicalize(&start.cwd).ok());
        let mut visible = std::mem::take(&mut places.visible);
        visible.retain(|path| places.is_masked(path) && !places.is_writable(path));
        visible.sort();
        visible.dedup();
        places.visible = visible;
        places.covers.sort();
        Ok(places)
    }

    /// Where a new, empty file system lies over what is there.
    pub(crate) fn masks(&self) -> impl Iterator<Item = &PathBuf> {
        self.temporary.iter().chain([&self.run]).chain(&self.covers)
    }

    fn is_masked(&self, path: &Path) -> bool {
        self.masks().any(|mask| path.starts_with(mask) && path != mask) || path.starts_with("/dev/shm")
    }

    fn is_writable(&self, path: &Path) -> bool {
        self.write.iter().any(|write| path.starts_with(write))
    }

    fn writable_inside(&self) -> Vec<PathBuf> {
        let caches = self.caches.iter().map(|(directory, _)| directory);
        let all = self.write.iter().chain(caches).chain(&self.temporary);
        all.cloned().chain([PathBuf::from("/dev/shm")]).collect()
    }
}

/// The view under construction.
struct View {
    steps: Vec<Step>,
    slots: usize,
    /// Directories that were made beneath masks.
    made: BTreeSet<PathBuf>,
    rules: Rules,
    /// Layers of caches that are ours alone.
    layers: Vec<Layer>,
    notes: Vec<String>,
}

impl View {
    /// Users and groups inside are those outside, as far as they are the caller's own.
    fn identity(&mut self) {
        let (user, group) = (rustix::process::geteuid().as_raw(), rustix::process::getegid().as_raw());
        let write = |path: &CStr, text: String| Step::Write { path: path.to_owned(), text: text.into_bytes() };
        self.steps.push(write(c"/proc/self/setgroups", "deny".to_owned()));
        self.steps.push(write(c"/proc/self/uid_map", format!("{user} {user} 1")));
        self.steps.push(write(c"/proc/self/gid_map", format!("{group} {group} 1")));
    }

    fn slot(&mut self) -> Slot {
        let slot = Slot(self.slots);
        self.slots = self.slots.saturating_add(1);
        slot
    }

    fn take(&mut self, path: &Path, set: u64) -> Result<Slot, ContainFault> {
        let to = self.slot();
        self.steps.push(Step::Clone { to, path: text(path)?, set });
        Ok(to)
    }

    fn take_all(&mut self, paths: &[PathBuf], set: u64) -> Result<Vec<(Slot, PathBuf)>, ContainFault> {
        paths.iter().map(|path| Ok((self.take(path, set)?, path.clone()))).collect()
    }

    fn fresh(&mut self, kind: &'static CStr, options: &[(&CStr, &CStr)], set: u64) -> Slot {
        let to = self.slot();
        let options = options.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
        self.steps.push(Step::Fresh { to, kind, options, set });
        to
    }

    /// Caches: what is read comes from the user's directory, what is written goes to the project's.
    fn take_caches(&mut self, places: &Places) -> Result<Vec<(Slot, PathBuf)>, ContainFault> {
        let mut taken = Vec::new();
        for (directory, own) in &places.caches {
            let part = || ContainFault::of(format!("the cache `{}`", directory.display()));
            for path in own.iter().chain([directory]) {
                fs::create_dir_all(path).map_err(part())?;
            }
            let [written, work, plain] = own;
            // Two commands must not write the same layer: the second one gets the plain directory.
            let layer =
                Layer { written: directory_of(written).map_err(part())?, work: directory_of(work).map_err(part())? };
            if rustix::fs::flock(&layer.written, FlockOperation::NonBlockingLockExclusive).is_err() {
                taken.push((self.take(plain, NO_DEVICES)?, directory.clone()));
                self.notes.push(format!("the cache `{}` begins empty: another command uses it", directory.display()));
                continue;
            }
            // The command before has ended; its view may still be on its way out.
            rustix::fs::flock(&layer.work, FlockOperation::LockExclusive).map_err(io::Error::from).map_err(part())?;
            self.layers.push(layer);
            let to = self.slot();
            // A comma or a colon would be read as a list.
            let option = |key: &CStr, path: &Path| -> Result<(CString, CString), ContainFault> {
                let escaped: Vec<u8> = path.as_os_str().as_bytes().to_vec();
                if escaped.iter().any(|byte| matches!(byte, b':' | b',' | b'\\')) {
                    return Err(part()(io::Error::from_raw_os_error(libc::EINVAL)));
                }
                Ok((key.to_owned(), text(path)?))
            };
            let options = vec![
                option(c"lowerdir", directory)?,
                option(c"upperdir", written)?,
                option(c"workdir", work)?,
                (c"userxattr".to_owned(), CString::default()),
            ];
            self.steps.push(Step::Layers { to, options, instead: text(plain)? });
            taken.push((to, directory.clone()));
        }
        Ok(taken)
    }

    fn take_temp(&mut self, start: &Start) -> Result<Slot, ContainFault> {
        match &start.temp {
            Some(temp) => self.take(temp, NO_DEVICES),
            None => Ok(self.fresh(c"tmpfs", &[(c"mode", c"1777")], NO_SUID | NO_DEVICES)),
        }
    }

    fn take_devices(&mut self) -> Result<Vec<(Slot, PathBuf)>, ContainFault> {
        let mut devices = Vec::new();
        for name in DEVICES {
            let path = Path::new("/dev").join(name);
            if path.exists() {
                devices.push((self.take(&path, NO_EXEC)?, path));
            }
        }
        // The terminal itself has no name in a new list of terminals; programs that ask for one find it here.
        let terminal = (0..=2).find_map(|fd| {
            let path = fs::read_link(format!("/proc/self/fd/{fd}")).ok()?;
            (path.starts_with("/dev/pts") || path.starts_with("/dev/tty")).then_some(path)
        });
        if let Some(terminal) = terminal.filter(|path| path.exists()) {
            devices.push((self.take(&terminal, NO_EXEC)?, PathBuf::from("/dev/console")));
        }
        Ok(devices)
    }

    fn attach(&mut self, from: Slot, path: &Path) -> Result<(), ContainFault> {
        self.steps.push(Step::Attach { from, path: text(path)? });
        Ok(())
    }

    fn directory(&mut self, path: &Path, mode: u32) -> Result<(), ContainFault> {
        self.steps.push(Step::Directory { path: text(path)?, mode });
        Ok(())
    }

    fn file(&mut self, path: &Path, mode: u32) -> Result<(), ContainFault> {
        self.steps.push(Step::File { path: text(path)?, mode });
        Ok(())
    }

    /// Lays empty file systems over what is the machine's, the user's or other processes'.
    fn masks(&mut self, places: &Places, temp: Slot, devices: Vec<(Slot, PathBuf)>) -> Result<(), ContainFault> {
        let small: &[(&CStr, &CStr)] = &[(c"mode", c"755"), (c"size", c"1m")];
        let run = self.fresh(c"tmpfs", small, NO_SUID | NO_DEVICES | NO_EXEC);
        self.attach(run, &places.run)?;
        self.directory(Path::new("/run/.hidden"), 0o755)?;
        self.directory(Path::new(NOTHING_DIRECTORY), 0)?;
        self.file(Path::new(NOTHING_FILE), 0)?;
        self.dev(small, devices)?;
        self.proc()?;
        let mut temporary = places.temporary.iter();
        if let Some(first) = temporary.next() {
            self.attach(temp, first)?;
            for other in temporary {
                let same = self.take(first, 0)?;
                self.attach(same, other)?;
            }
        }
        for cover in &places.covers {
            let empty = self.fresh(c"tmpfs", small, NO_SUID | NO_DEVICES | NO_EXEC);
            self.attach(empty, cover)?;
        }
        Ok(())
    }

    fn dev(&mut self, small: &[(&CStr, &CStr)], devices: Vec<(Slot, PathBuf)>) -> Result<(), ContainFault> {
        let dev = self.fresh(c"tmpfs", small, NO_SUID | NO_EXEC);
        self.attach(dev, Path::new("/dev"))?;
        for (slot, path) in devices {
            self.file(&path, 0o666)?;
            self.attach(slot, &path)?;
        }
        for (name, target) in DEVICE_LINKS {
            let path = text(&Path::new("/dev").join(name))?;
            self.steps.push(Step::Link { path, target: text(Path::new(target))? });
        }
        let terminals: &[(&CStr, &CStr)] = &[(c"newinstance", c""), (c"ptmxmode", c"0666"), (c"mode", c"620")];
        let pts = self.fresh(c"devpts", terminals, NO_SUID | NO_EXEC);
        let shared = self.fresh(c"tmpfs", &[(c"mode", c"1777")], NO_SUID | NO_DEVICES);
        for (slot, path) in [(pts, "/dev/pts"), (shared, "/dev/shm")] {
            self.directory(Path::new(path), 0o755)?;
            self.attach(slot, Path::new(path))?;
        }
        Ok(())
    }

    fn proc(&mut self) -> Result<(), ContainFault> {
        let proc = self.fresh(c"proc", &[], NO_SUID | NO_DEVICES | NO_EXEC);
        self.attach(proc, Path::new("/proc"))?;
        for path in PROC_OF_MACHINE.map(Path::new).into_iter().filter(|path| path.exists()) {
            let same = self.take(path, READ_ONLY)?;
            self.attach(same, path)?;
        }
        Ok(())
    }

    /// Shows a mount at its own path. Beneath a mask nothing is there that it could be attached to.
    fn show(&mut self, places: &Places, slot: Slot, path: &Path) -> Result<(), ContainFault> {
        let mask = places.masks().filter(|mask| path.starts_with(mask)).max_by_key(|mask| mask.as_os_str().len());
        let shared = Path::new("/dev/shm");
        let mask = mask.map(PathBuf::as_path).or_else(|| path.starts_with(shared).then_some(shared));
        if let Some(mask) = mask {
            let is_directory = path.is_dir();
            let missing: Vec<_> = path.ancestors().take_while(|one| *one != mask).collect();
            for one in missing.into_iter().rev() {
                if self.made.insert(one.to_owned()) {
                    match one == path && !is_directory {
                        true => self.file(one, 0o644)?,
                        false => self.directory(one, 0o755)?,
                    }
                }
            }
        }
        self.attach(slot, path)
    }

    /// Makes places read-only although they lie in a writable one. Each directory on the way becomes a mount of its own:
    /// the kernel lets nobody move a mount away and put another directory in its place.
    fn lock(&mut self, places: &Places) -> Result<(), ContainFault> {
        let mut mounts: BTreeSet<(usize, PathBuf, bool)> = BTreeSet::new();
        for path in &places.locked {
            let Some(root) = places.write.iter().find(|write| path.starts_with(write)) else { continue };
            // What is not there even with placeholders cannot be made.
            if !is_there(path)? {
                continue;
            }
            let depth = |path: &Path| path.components().count();
            for above in path.ancestors().skip(1).take_while(|above| above != root) {
                mounts.insert((depth(above), above.to_owned(), false));
            }
            mounts.insert((depth(path), path.clone(), true));
        }
        let locked: BTreeSet<_> =
            mounts.iter().filter(|(_, _, locked)| *locked).map(|(_, path, _)| path.clone()).collect();
        for (_, path, is_locked) in mounts {
            // Beneath what is locked everything is.
            if path.ancestors().skip(usize::from(is_locked)).any(|above| locked.contains(above)) {
                continue;
            }
            let slot = self.take(&path, if is_locked { READ_ONLY } else { 0 })?;
            self.attach(slot, &path)?;
        }
        Ok(())
    }

    /// Lays nothing over what is hidden.
    fn hide(&mut self, places: &Places) -> Result<(), ContainFault> {
        for path in &places.hidden {
            let shown = !places.is_masked(path)
                || places.is_writable(path)
                || places.visible.iter().any(|visible| path.starts_with(visible));
            let kind = match fs::symlink_metadata(path) {
                Ok(kind) if shown => kind,
                // A directory of the command's own that cannot be searched now can be later.
                Err(error) if places.is_writable(path) && error.kind() == io::ErrorKind::PermissionDenied => {
                    return Err(ContainFault::of(format!("the mask over `{}`", path.display()))(error));
                }
                Ok(_) | Err(_) => continue,
            };
            if kind.is_symlink() {
                continue;
            }
            let nothing = if kind.is_dir() { NOTHING_DIRECTORY } else { NOTHING_FILE };
            let slot = self.take(Path::new(nothing), READ_ONLY | NO_DEVICES | NO_EXEC)?;
            self.attach(slot, path)?;
        }
        Ok(())
    }

    /// Nobody writes into the masks themselves.
    fn seal_masks(&mut self, places: &Places) -> Result<(), ContainFault> {
        for path in places.covers.iter().map(PathBuf::as_path).chain([&*places.run, Path::new("/dev")]) {
            self.steps.push(Step::Seal { path: text(path)? });
        }
        Ok(())
    }

    /// The rules for what is only there inside.
    fn allow(&mut self, places: &Places) -> Result<(), ContainFault> {
        let mut inside = vec![
            (PathBuf::from("/dev"), rules::DEVICE),
            (PathBuf::from("/dev/shm"), rules::WRITE),
            (PathBuf::from("/proc"), rules::PROC),
        ];
        inside.extend(places.temporary.iter().map(|path| (path.clone(), rules::WRITE)));
        inside.extend(places.caches.iter().map(|(path, _)| (path.clone(), rules::WRITE)));
        inside.extend(places.covers.iter().map(|path| (path.clone(), rules::READ)));
        for (path, access) in inside {
            self.steps.push(Step::Allow { path: text(&path)?, access: self.rules.governed(access) });
        }
        Ok(())
    }
}

/// The rules about what is there already. There are many: they are made while the view is built.
pub(crate) struct OuterRules {
    rules: Rules,
    places: Places,
}

impl OuterRules {
    /// Adds them to the ruleset that the command is held to.
    pub(crate) fn make(mut self) -> Result<(), ContainFault> {
        let hidden: Vec<_> = self.places.hidden.iter().chain(&self.places.covers).cloned().collect();
        self.rules.allow_all_but(&hidden, &self.places.write)?;
        for path in &self.places.write {
            self.rules.allow(path, rules::WRITE)?;
        }
        for path in &self.places.visible {
            self.rules.allow(path, rules::READ)?;
        }
        self.rules.allow_streams()
    }
}

/// Reads a path of a bound.
fn read(path: &str) -> Result<PathBuf, ContainFault> {
    let fault = |why| ContainFault::Bound { path: path.to_owned(), why };
    let read = PathBuf::from(path);
    let mut parts = read.components();
    if parts.next() != Some(Component::RootDir) {
        return Err(fault("it does not begin at the root"));
    }
    if !parts.all(|part| matches!(part, Component::Normal(_))) {
        return Err(fault("it goes back"));
    }
    if path.contains('\0') {
        return Err(fault("it has a NUL in it"));
    }
    if ["/", "/dev", "/proc", "/sys", "/run", "/tmp"].iter().any(|whole| read == Path::new(whole)) {
        return Err(fault("it is not one place but the machine's"));
    }
    // Without what `Components` ignores: double slashes and one at the end.
    Ok(read.components().collect())
}

fn read_all(paths: &[String]) -> Result<Vec<PathBuf>, ContainFault> {
    paths.iter().map(|path| read(path)).collect()
}

/// Whether something is there, and no link on the way to it. A link may be changed between now and then.
pub(crate) fn is_there(path: &Path) -> Result<bool, ContainFault> {
    let shown = || path.to_string_lossy().into_owned();
    let found = steps::place(&text(path)?);
    match found {
        Ok(place) => {
            let stat = rustix::fs::fstat(&place).map_err(io::Error::from).map_err(ContainFault::of(shown()))?;
            match rustix::fs::FileType::from_raw_mode(stat.st_mode).is_symlink() {
                true => Err(ContainFault::Bound { path: shown(), why: "it is a link" }),
                false => Ok(true),
            }
        }
        Err(error) => match error.raw_os_error() {
            Some(libc::ENOENT | libc::ENOTDIR | libc::EACCES) => Ok(false),
            Some(libc::ELOOP) => Err(ContainFault::Bound { path: shown(), why: "there is a link on the way to it" }),
            _ => Err(ContainFault::of(format!("`{}`", shown()))(error)),
        },
    }
}

fn directory_of(path: &Path) -> io::Result<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    Ok(rustix::fs::open(path, flags, Mode::empty())?)
}

fn real_ones(paths: &[&str]) -> Vec<PathBuf> {
    let mut real: Vec<_> = paths.iter().filter_map(|path| fs::canonicalize(path).ok()).collect();
    real.dedup();
    real
}

fn text(path: &Path) -> Result<CString, ContainFault> {
    CString::new(path.as_os_str().as_bytes())
        .map_err(|_| ContainFault::Bound { path: path.to_string_lossy().into_owned(), why: "it has a NUL in it" })
}
