//! Kills at every system call that writes: of keeping, undoing and pruning.
//!
//! The work is done by this test binary again, under `strace`, which kills it as it enters the n-th call of a kind, for
//! every kind and every n until the work gets done.

use std::fs;
use std::path::Path;
use std::process::Command;

use interlock_keep::{Bounds, Fate, Scope, SnapshotId, Store};

use crate::world::{LEAVE_OUT, LINKING, Looks, World, looks, shell, undo};

/// Every call by which something comes to be on a disk, or ceases to be.
const CALLS: [&str; 17] = [
    "write",
    "pwrite64",
    "rename",
    "renameat",
    "renameat2",
    "unlink",
    "unlinkat",
    "rmdir",
    "mkdir",
    "mkdirat",
    "linkat",
    "symlinkat",
    "fchmod",
    "ftruncate",
    "fsync",
    "fdatasync",
    "fsetxattr",
];

/// A project with two snapshots, of which the later is how it looks now.
struct Ground {
    world: World,
    before: SnapshotId,
    looked_before: Looks,
    looked_now: Looks,
}

/// A program that may not do more with a directory than its permissions say, even if a superuser runs the tests.
fn as_owner(program: &str) -> Command {
    if !rustix::process::geteuid().is_root() {
        return Command::new(program);
    }
    let mut command = Command::new("setpriv");
    command.args(["--bounding-set", "-dac_override,-dac_read_search", program]);
    command
}

fn ground() -> Ground {
    let mut world = World::new();
    world.shell(
        "git init -q --template= .; for n in 1 2 3 4 5 6; do echo $n > f$n; done; mkdir -p d/e; echo deep > d/e/deep; ln -s f1 l
         ln f6 f6-too; head -c 1500000 /dev/zero | tr '\\0' x > large; chmod 755 f2; mkdir closed; echo c > closed/c; git add f1
         head -c 2000000 /dev/urandom > .git/objects/huge; chmod 444 .git/objects/huge
         mkdir -p shut/in half; echo s > shut/in/s; echo h > half/h; chmod 500 shut shut/in; chmod 555 half",
    );
    crate::world::set_xattr(&world.path("f1"), "user.note", "x");
    let (before, looked_before) = (world.keep(), world.tree());
    world.shell(
        "chmod -R u+w shut half; rm -rf shut half/h; chmod 555 half; rm -rf d l .git f3; echo changed > f1; echo changed > f6; chmod 600 f2; rm f4; mkdir f4; echo in > f4/in; mkdir -p n/m
         echo new > n/m/new; echo y > large; chmod 700 closed",
    );
    world.keep();
    let looked_now = world.tree();
    Ground { world, before, looked_before, looked_now }
}

impl Ground {
    /// Does some work in a process that is killed at one call after the other, and checks the ground after each.
    fn kill_everywhere(&self, work: &str, check: impl Fn(&Ground, &str)) {
        let base = self.world.directory.path();
        let template = base.with_extension("template");
        shell(base, &format!("cp -a . {}", template.display()));
        let mut kills = 0;
        for call in CALLS {
            for count in 1.. {
                let place = format!("{work}, {call} {count}");
                shell(base, &format!("rm -rf ./* && cp -a {}/. .", template.display()));
                let done = as_owner("strace")
                    .args(["-f", "-qq", "-o", "/dev/null", "-e"])
                    .arg(format!("trace={call}"))
                    .arg("-e")
                    .arg(format!("inject={call}:signal=KILL:when={count}"))
                    .arg(std::env::current_exe().expect("a path"))
                    .args(["--exact", "crash::child", "--ignored"])
                    .envs([("KEEP_WORK", work), ("KEEP_BEFORE", self.before.as_str())])
                    .envs([("KEEP_PROJECT", &self.world.project), ("KEEP_STORES", &self.world.stores)])
                    .output()
                    .expect("strace");
                if done.status.code() == Some(0) {
                    break;
                }
                assert_eq!(done.status.code(), None, "{place}: {}", String::from_utf8_lossy(&done.stdout));
                check(self, &place);
                kills += 1;
                assert!(count < 10_000, "{place}: never done");
            }
        }
        assert!(kills > 12, "{work} was killed {kills} times only");
        fs::remove_dir_all(template).expect("removed");
    }

    /// Whether a path looks as in one of the trees. A directory may be open wider to its owner.
    fn is_either(&self, path: &Path, look: Option<&String>) -> bool {
        let wide = |look: &String| {
            let mode = look.strip_prefix("directory ").and_then(|mode| u32::from_str_radix(mode, 8).ok());
            mode.map_or_else(|| look.clone(), |mode| format!("directory {:o}", mode | 0o700))
        };
        let trees = [self.looked_before.get(path), self.looked_now.get(path)];
        trees.into_iter().any(|known| known == look || known.map(wide).as_ref() == look)
    }

    /// Every snapshot in the log can be brought back, and the first one looks as it did.
    fn check_store(&self, place: &str) {
        let mut store = self.world.reopened();
        let known = store.snapshots().unwrap_or_else(|fault| panic!("{place}: {fault}"));
        assert!(known.iter().any(|snapshot| snapshot.id == self.before), "{place}: lost");
        let now = store.keep(&Scope::All, LEAVE_OUT, 50).unwrap_or_else(|fault| panic!("{place}: {fault}")).id;
        for snapshot in known.iter().map(|snapshot| &snapshot.id).chain([&now, &self.before]) {
            let current = store.keep(&Scope::All, LEAVE_OUT, 51).expect("kept").id;
            let plan = store.plan(&undo(snapshot, &current, &[]), LEAVE_OUT, 52);
            let plan = plan.unwrap_or_else(|fault| panic!("{place}: {fault}"));
            store.carry_out(&plan, LEAVE_OUT, 53).unwrap_or_else(|fault| panic!("{place}: {fault}"));
        }
        assert_eq!(looks(&self.world.project), self.looked_before, "{place}");
    }
}

#[test]
fn keeping_can_be_killed_anywhere() {
    let mut ground = ground();
    // Something that the store does not have yet.
    ground
        .world
        .shell("echo more > more; git init -q --template= .; head -c 1200000 /dev/urandom > .git/objects/other");
    ground.looked_now = ground.world.tree();
    ground.kill_everywhere("keep", |ground, place| {
        assert_eq!(looks(&ground.world.project), ground.looked_now, "{place}");
        ground.check_store(place);
    });
}

#[test]
fn undoing_can_be_killed_anywhere_and_done_again() {
    let ground = ground();
    ground.kill_everywhere("undo", |ground, place| {
        let torn = Path::new("f6");
        let mut found = looks(&ground.world.project);
        found.retain(|path, _| !path.to_string_lossy().starts_with(".interlock-undo-"));
        let paths = ground.looked_before.keys().chain(ground.looked_now.keys()).chain(found.keys());
        for path in paths.filter(|path| !path.starts_with(torn) && !path.starts_with("f6-too")) {
            assert!(ground.is_either(path, found.get(path)), "{place}: {} is neither", path.display());
        }
        let mut store = ground.world.reopened();
        let known = store.snapshots().expect("snapshots");
        let after = known[1].id.clone();
        let plan = store.plan(&undo(&ground.before, &after, &[]), LEAVE_OUT, 60).expect("a plan");
        let undone = store.carry_out(&plan, LEAVE_OUT, 61).unwrap_or_else(|fault| panic!("{place}: {fault}"));
        let is_whole = undone.paths.iter().all(|(_, fate)| matches!(fate, Fate::Restored | Fate::AsBefore));
        if !is_whole {
            // A file with two names is written in place, so it can be torn; then it is a clash, and naming it helps.
            let clashes = undone.paths.iter().filter(|(_, fate)| matches!(fate, Fate::Clash(_)));
            let named: Vec<_> = clashes.map(|(path, _)| path.to_str().expect("UTF-8")).collect();
            assert!(named.iter().all(|path| path.starts_with("f6")), "{place}: {undone:?}");
            let plan = store.plan(&undo(&ground.before, &after, &named), LEAVE_OUT, 62).expect("a plan");
            store.carry_out(&plan, LEAVE_OUT, 63).expect("carried out");
        }
        assert_eq!(looks(&ground.world.project), ground.looked_before, "{place}");
    });
}

#[test]
fn pruning_can_be_killed_anywhere() {
    let mut ground = ground();
    // Many small packs, half of which nobody will need.
    for round in 0..20 {
        ground.world.write("round", format!("{round} ").repeat(500));
        ground.world.store.keep(&Scope::All, LEAVE_OUT, 30).expect("kept");
    }
    ground.kill_everywhere("prune", Ground::check_store);
}

#[test]
#[ignore = "run by the others, and killed"]
fn child() {
    let value = |name: &str| std::env::var(name).unwrap_or_default();
    let (project, stores) = (value("KEEP_PROJECT"), value("KEEP_STORES"));
    let mut store = Store::open(Path::new(&stores), Path::new(&project), LINKING).expect("a store");
    let before = SnapshotId::parse(&value("KEEP_BEFORE")).expect("an id");
    match value("KEEP_WORK").as_str() {
        "keep" => _ = store.keep(&Scope::All, LEAVE_OUT, 40).expect("kept"),
        "undo" => {
            let after = store.snapshots().expect("snapshots")[1].id.clone();
            let plan = store.plan(&undo(&before, &after, &[]), LEAVE_OUT, 40).expect("a plan");
            store.carry_out(&plan, LEAVE_OUT, 41).expect("carried out");
        }
        "prune" => {
            // All snapshots but the first, which is held, and the last ones are older than that.
            let bounds = Bounds { age_ms_max: 0, bytes_max: u64::MAX };
            let pruned = store.prune(&bounds, &[before], 1_000).expect("pruned");
            assert!(!pruned.dropped.is_empty());
        }
        other => panic!("`{other}` is no work"),
    }
    // What the walks saw is written when the store is closed.
    drop(store);
    std::process::exit(0);
}
