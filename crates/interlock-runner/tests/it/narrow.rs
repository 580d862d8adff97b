//! Without namespaces: what only mounts and namespaces would hold is closed as well, or nothing runs.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::Stdio;

use crate::behaviour::LINES;
use crate::support::{Rung, World, is_running, stderr, stdout, users, wait_for};

fn worlds() -> impl Iterator<Item = World> {
    users().into_iter().flat_map(|user| [Rung::Narrow, Rung::ByHand].map(|rung| World::on((user, rung))))
}

/// A machine that gives nobody a user namespace: the runner finds out, holds what it can, and refuses the rest.
#[test]
fn where_there_are_no_user_namespaces() {
    for world in worlds() {
        // In a namespace of its own the limit can be set, and holds for everything beneath.
        let line = "echo 0 > /proc/sys/user/max_user_namespaces || exit 99; exec \"$@\"";
        let without = |program: &[&str]| {
            let mut words = vec!["/usr/bin/unshare", "--user", "--map-root-user", "/bin/bash", "-c", line, "-"];
            words.extend(program);
            world.bare(&words).output().expect("the program")
        };
        let runner = world.text("runner");
        let probed = without(&[&runner, "--probe"]);
        let told = stdout(&probed);
        assert!(told.contains(r#""rung": "narrow""#), "{told}{}", stderr(&probed));
        assert!(told.contains("sysctl -w user.max_user_namespaces"), "{told}");
        let outside = world.text("outside");
        let line = format!("echo made > made; chmod 700 {outside}/file; touch {outside}/new; cat made");
        let before = world.outside();
        let held = without(&[&runner, &world.bound(""), "/bin/bash", "-c", &line]);
        assert_eq!(stdout(&held), "made\n", "{}", stderr(&held));
        assert_eq!(world.outside(), before);
        // What was decided for namespaces is not held by less.
        let full = world.bound("").replace(r#", "rung": "narrow""#, "");
        let refused = without(&[&runner, &full, "/bin/bash", "-c", "touch ran"]);
        assert_eq!(refused.status.code(), Some(126), "{}", stderr(&refused));
        assert!(!world.path("project/ran").exists());
    }
}

#[test]
fn hosts_are_refused_and_nothing_runs() {
    for world in worlds() {
        let bound = world.bound(r#""reach": {"hosts": ["packages.example.org"]}"#);
        let output = world.line(&bound, "touch ran");
        assert_eq!(output.status.code(), Some(126));
        assert_eq!(
            stderr(&output),
            "without user namespaces no host can be reached: Landlock knows ports and no names\n"
        );
        assert!(!world.path("project/ran").exists());
    }
}

/// What changes another process, and what tells more of one than everybody may know.
const ON_OTHERS: &str = r"
import ctypes, os, resource, sys
other = int(sys.argv[1])
libc = ctypes.CDLL(None, use_errno=True)
def attempt(name, call):
    try:
        call()
        print(name)
    except OSError:
        pass
attempt('limit', lambda: resource.prlimit(other, resource.RLIMIT_NOFILE, (5, 5)))
attempt('priority', lambda: os.setpriority(os.PRIO_PROCESS, other, 19))
attempt('priority of the user', lambda: os.setpriority(os.PRIO_USER, 0, 19))
attempt('priority of the group', lambda: os.setpriority(os.PRIO_PGRP, 0, 19))
attempt('processors', lambda: os.sched_setaffinity(other, {0}))
attempt('schedule', lambda: os.sched_setscheduler(other, os.SCHED_BATCH, os.sched_param(0)))
if libc.syscall(251, 1, other, 3 << 13) == 0: print('disk priority')
attempt('signal', lambda: os.kill(other, 9))
attempt('adjust', lambda: open(f'/proc/{other}/oom_score_adj', 'w').write('500'))
attempt('variables', lambda: open(f'/proc/{other}/environ').read())
attempt('memory', lambda: open(f'/proc/{other}/mem', 'rb'))
attempt('map', lambda: open(f'/proc/{other}/maps').read())
attempt('root', lambda: os.listdir(f'/proc/{other}/root' + '/'))
attempt('descriptors', lambda: os.readlink(f'/proc/{other}/fd/0'))
if libc.ptrace(0x4206, other, 0, 0) == 0: print('traced')
";

#[test]
fn other_processes_are_neither_changed_nor_read() {
    for world in worlds() {
        let mut other = world.bare(&["/bin/sleep", "600"]).spawn().expect("a process");
        let id = other.id().to_string();
        let state = || {
            let read = |name: &str| fs::read_to_string(format!("/proc/{id}/{name}")).unwrap_or_default();
            let stat = read("stat");
            let priority: Vec<_> = stat.split(' ').skip(17).take(2).map(str::to_owned).collect();
            (read("limits"), read("oom_score_adj"), priority)
        };
        let before = state();
        let program = ["/usr/bin/python3", "-c", ON_OTHERS, &id];
        let output = world.held(&world.bound(""), &program).output().expect("the runner");
        assert_eq!(stdout(&output), "", "{}", stderr(&output));
        assert_eq!(state(), before);
        assert!(other.try_wait().expect("an answer").is_none());
        let bare = world.bare(&program).output().expect("the program");
        assert!(stdout(&bare).starts_with("limit\npriority\n"), "the attempts do nothing at all: {}", stderr(&bare));
        let _ = other.kill();
        other.wait().expect("an end");
    }
}

/// What belongs to the machine and would outlive the call.
const LEFT_BEHIND: &str = r"
import ctypes, os
libc = ctypes.CDLL(None, use_errno=True)
if libc.shmget(0x1234567, 4096, 0o1600) >= 0: print('memory')
if libc.semget(0x1234567, 1, 0o1600) >= 0: print('locks')
if libc.msgget(0x1234567, 0o1600) >= 0: print('messages')
queue = ctypes.CDLL('librt.so.1', use_errno=True)
if queue.mq_open(b'/interlock-escape', 0o101, 0o600, None) >= 0: print('queue')
for place in ['/dev/shm/interlock-escape', '/dev/pts/0', '/dev/ptmx', '/dev/vsock']:
    try:
        open(place, 'w')
        print(place)
    except OSError:
        pass
";

#[test]
fn nothing_of_the_machine_is_left_behind() {
    for world in worlds() {
        let program = ["/usr/bin/python3", "-c", LEFT_BEHIND];
        let output = world.held(&world.bound(""), &program).output().expect("the runner");
        assert_eq!(stdout(&output), "", "{}", stderr(&output));
        assert!(output.status.success(), "{}", stderr(&output));
    }
}

/// Faster than it can be ended one by one; without the runner it would go on for ever.
const FORKS: &str = "/usr/bin/python3 -c \"
import os, time
if os.fork() == 0:
    os.setsid()
    while True:
        try:
            if os.fork() != 0: os._exit(0)
        except OSError: os._exit(1)
time.sleep(0.2)
\"";

#[test]
fn what_forks_without_end_ends_with_its_call() {
    for world in worlds() {
        let line = FORKS.replace("import os", &format!("'mark {}'; import os", world.text("mark")));
        let output = world.line(&world.bound(""), &line);
        assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
        assert!(!is_running(&world.text("mark")), "it goes on");
    }
}

/// A host that ends a call ends the whole process group: who ends the rest is not in it.
#[test]
fn what_left_the_group_ends_with_it() {
    for world in worlds() {
        let mark = format!("35{}", std::process::id());
        let line = format!("setsid sleep {mark} & touch ready; wait");
        let mut command = world.held(&world.bound(""), &["/bin/bash", "-c", &line]);
        let mut running = command.process_group(0).stderr(Stdio::null()).spawn().expect("the runner");
        wait_for("the command", || world.path("project/ready").exists() && is_running(&format!("sleep\0{mark}")));
        let group = rustix::process::Pid::from_raw(i32::try_from(running.id()).expect("a number")).expect("a group");
        rustix::process::kill_process_group(group, rustix::process::Signal::KILL).expect("a signal");
        running.wait().expect("an end");
        wait_for("everything to end", || !is_running(&format!("sleep\0{mark}")));
    }
}

#[test]
fn a_call_ends_with_the_owner_of_its_session() {
    for world in worlds() {
        let mark = format!("36{}", std::process::id());
        let mut owner = world.bare(&["/bin/sleep", "3600"]).spawn().expect("an owner");
        let mut command =
            world.held(&world.bound(""), &["/bin/bash", "-c", &format!("touch ready; sleep {mark}; touch after")]);
        world.directory("session");
        let session = format!("{}:{}", world.text("session"), owner.id());
        let mut running = command.env("INTERLOCK_CONTAIN_SESSION", session).spawn().expect("the runner");
        wait_for("the command", || is_running(&format!("sleep\0{mark}")));
        owner.kill().expect("a signal");
        owner.wait().expect("an end");
        running.wait().expect("an end");
        assert!(!is_running(&format!("sleep\0{mark}")), "it goes on");
        assert!(!world.path("project/after").exists());
    }
}

/// What the runner does instead of the command is what the kernel would have done.
#[test]
fn what_is_done_by_the_runner_is_done_as_asked() {
    for user in users() {
        let world = World::on((user, Rung::ByHand));
        let line = "umask 027; echo one > a; mkdir -p d/e; mv a d/e/b; ln d/e/b hard; ln -s d/e/b soft; \
                    echo two >> soft; cat hard; mkfifo pipe; (echo through > pipe &); cat pipe; \
                    chmod 640 hard; touch -d @1000000 hard; truncate -s 3 d/e/b; cat hard; echo; \
                    stat -c '%a %h' d; stat -c '%a %h' hard; \
                    rm soft; rmdir d 2> /dev/null || echo full; rm -r d; echo x > /dev/stdout > out; \
                    exec 7>> out; echo seven >&7; echo again > /proc/self/fd/7; cat out; \
                    (set -C; echo no > out) 2> /dev/null || echo there; echo sub > new/x 2> /dev/null || echo none; \
                    cp hard copy; touch -d @2000000 hard; cp -p hard kept; stat -c %Y kept; mv -n copy kept; ls; \
                    /usr/bin/python3 -c 'import os; os.setxattr(\"hard\", \"user.a\", b\"b\"); print(os.getxattr(\"hard\", \"user.a\")); \
                    os.removexattr(\"hard\", \"user.a\"); print(os.listxattr(\"hard\")); f = os.open(\".\", os.O_TMPFILE | os.O_RDWR); \
                    os.write(f, b\"tmp\"); os.link(f\"/proc/self/fd/{f}\", \"linked\", src_dir_fd=f, follow_symlinks=True); print(open(\"linked\").read())'";
        let bare = World::on((user, Rung::ByHand));
        let expected = bare.bare(&["/bin/bash", "-c", line]).output().expect("a shell");
        let output = world.line(&world.bound(""), line);
        assert_eq!(stdout(&output), stdout(&expected), "{}", stderr(&output));
        assert!(stdout(&expected).contains("through"), "{}", stdout(&expected));
        for name in ["hard", "kept", "out", "linked"] {
            let state = |world: &World| {
                fs::metadata(world.path(&format!("project/{name}")))
                    .map(|it| (it.permissions().mode(), it.uid(), it.len()))
            };
            assert_eq!(state(&world).ok(), state(&bare).ok(), "{name}");
        }
    }
}

/// A hidden place that is not there takes nothing away from what lies beside it.
#[test]
fn beside_what_is_hidden_and_not_there_everything_is() {
    for world in worlds() {
        let absent = world.text("project/absent/key");
        for more in [format!(r#""hidden": ["{absent}"]"#), format!(r#""hidden": ["{absent}"], "locked": ["{absent}"]"#)]
        {
            let output =
                world.line(&world.bound(&more), "echo made > made; cat made; cp /bin/echo run; ./run ran; rm made run");
            assert_eq!(stdout(&output), "made\nran\n", "{more}: {}", stderr(&output));
        }
    }
}

/// What needs a network, memory that processes share by name, or a new terminal.
const NOT_THERE: [&str; 4] = ["gethostbyname", "multiprocessing", "openpty", "createServer"];

#[test]
fn other_lines_write_and_end_as_without_it() {
    for user in users() {
        for line in LINES.iter().filter(|line| !NOT_THERE.iter().any(|absent| line.contains(absent))) {
            let (bare, held) = (World::on((user, Rung::ByHand)), World::on((user, Rung::ByHand)));
            let program = ["/bin/bash", "-c", line];
            let expected = bare.bare(&program).output().expect("a shell");
            let output = held.held(&held.bound(""), &program).output().expect("the runner");
            let said = |world: &World, output: &std::process::Output| {
                (stdout(output) + &stderr(output)).replace(&world.text(""), "@/")
            };
            assert_eq!(said(&held, &output), said(&bare, &expected), "{line} for {user}");
            let ends = |status: std::process::ExitStatus| (status.code(), status.signal());
            assert_eq!(ends(output.status), ends(expected.status), "{line} for {user}");
        }
    }
}
