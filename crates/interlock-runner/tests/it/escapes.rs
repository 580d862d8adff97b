//! Ways out, each tried by a real program. What the program reports does not matter: the outside is as it was. Whatever
//! can work at all is tried without the runner as well, or the attempt would prove nothing.

use std::fs;
use std::io::{ErrorKind, Read};
use std::net::{TcpListener, UdpSocket};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{SocketAddr, UnixDatagram, UnixListener};
use std::process::Command;

use crate::support::{World, grounds, is_running, stderr, stdout, users, wait_for};

/// Attempts of `escape.c`, and whether they work without the runner for a user who owns the place outside.
#[rustfmt::skip]
const ATTEMPTS: &[(&str, bool)] = &[
    ("open", true), ("creat", true), ("append", true), ("truncating open", true), ("openat2", true),
    ("unnamed file", true), ("rename out", true), ("rename in", true), ("rename over", true), ("exchange", true),
    ("link out", true), ("hard link", true), ("symlink", true), ("through a link", true), ("fifo", true),
    ("socket file", true), ("mkdir", true), ("unlink", true), ("truncate", true), ("chmod", true), ("fchmod", true),
    ("fchmodat2", true), ("chmod of the directory", true), ("chown", true), ("utimes", true), ("futimens", true),
    ("setxattr", true), ("fsetxattr", true), ("file flags", true), ("io_uring", true), ("/proc/self/root", true),
    ("/proc/1/root", false), ("/proc/1/cwd", false), ("tracing the first process", false), ("from memory", true),
    ("user namespace", true), ("bind mount", false), ("remount", false), ("unmount", false),
    ("joining the first process", true), ("joining the parent", true), ("chroot", false), ("by handle", false),
    ("copy_file_range", true), ("swapped text, chmod", true), ("swapped text, open", true),
    ("swapped link, chmod", true), ("swapped link, open", true),
];

/// The same from languages that agents write.
#[rustfmt::skip]
const SCRIPTS: &[(&str, &str, &str)] = &[
    ("/usr/bin/python3", "-c", "open(OUT + '/new', 'w').write('x')"),
    ("/usr/bin/python3", "-c", "import os; os.chmod(OUT + '/file', 0o777)"),
    ("/usr/bin/python3", "-c", "import os; os.utime(OUT + '/file', (1, 1))"),
    ("/usr/bin/python3", "-c", "import shutil; shutil.rmtree(OUT)"),
    ("/usr/bin/python3", "-c", "import os; os.chdir(OUT); os.mkdir('new')"),
    ("/usr/bin/python3", "-c", "import subprocess; subprocess.run(['cp', '/etc/passwd', OUT + '/new'])"),
    ("/usr/bin/python3", "-c", "import ctypes; ctypes.CDLL(None).syscall(2, (OUT + '/new').encode(), 0o101, 0o644)"),
    ("/usr/bin/node", "-e", "require('fs').writeFileSync(OUT + '/new', 'x')"),
    ("/usr/bin/node", "-e", "require('fs').chmodSync(OUT + '/file', 0o777)"),
    ("/usr/bin/node", "-e", "require('fs').rmSync(OUT + '/file')"),
    ("/usr/bin/node", "-e", "require('fs').promises.appendFile(OUT + '/file', 'x')"),
    ("/usr/bin/node", "-e", "require('child_process').execSync('touch ' + OUT + '/new')"),
];

/// Compiles the program of attempts into the project.
fn compile(world: &World) {
    let source = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/escape.c");
    let built = Command::new("cc").args(["-w", "-pthread", "-o"]).arg(world.path("escape")).arg(source).status();
    assert!(built.expect("a compiler").success());
}

#[test]
fn no_system_call_changes_the_outside() {
    for ground in grounds() {
        let compiled = World::on(ground);
        compile(&compiled);
        for (name, works_outside) in ATTEMPTS {
            let world = World::on(ground);
            fs::copy(compiled.path("escape"), world.path("escape")).expect("a copy");
            let (program, outside) = (world.text("escape"), world.text("outside"));
            let before = world.outside();
            let output = world.held(&world.bound(""), &[&program, name, &outside, "300"]).output().expect("the runner");
            assert_ne!(output.status.code(), Some(2), "{name} is not known");
            assert_ne!(output.status.code(), Some(126), "{name}: {}", stderr(&output));
            assert_eq!(world.outside(), before, "{name} changed the outside for {ground:?}: {}", stderr(&output));
            if *works_outside {
                let bare = world.bare(&[&program, name, &outside, "10000000"]).output().expect("the program");
                assert_ne!(world.outside(), before, "{name} does nothing at all for {ground:?}: {}", stderr(&bare));
            }
        }
    }
}

#[test]
fn no_script_changes_the_outside() {
    for ground in grounds() {
        for (program, option, text) in SCRIPTS.iter().filter(|(program, ..)| fs::exists(program).is_ok_and(|is| is)) {
            let world = World::on(ground);
            let text = text.replace("OUT", &format!("'{}'", world.text("outside")));
            let before = world.outside();
            let output = world.held(&world.bound(""), &[program, option, &text]).output().expect("the runner");
            assert_eq!(world.outside(), before, "{text} changed the outside: {}", stderr(&output));
            world.bare(&[program, option, &text]).output().expect("the program");
            assert_ne!(world.outside(), before, "{text} does nothing at all");
        }
    }
}

#[test]
fn a_shell_writes_the_project_and_nothing_else() {
    for ground in grounds() {
        let world = World::on(ground);
        let before = world.outside();
        let line = format!("echo inside > made; echo no > {0}/file; touch {0}/new; cat made", world.text("outside"));
        let output = world.line(&world.bound(""), &line);
        assert_eq!(stdout(&output), "inside\n", "{}", stderr(&output));
        let refusal = if world.rung.is_narrow() { "Permission denied" } else { "Read-only file system" };
        assert!(stderr(&output).contains(refusal), "{}", stderr(&output));
        assert_eq!(world.outside(), before);
        assert_eq!(fs::read(world.path("project/made")).expect("the file"), b"inside\n");
    }
}

/// A profile that may write nothing but its private directory.
#[test]
fn nothing_is_written_where_nothing_may_be() {
    for ground in grounds() {
        let world = World::on(ground);
        let line = "touch new; echo x > $TMPDIR/a; cat $TMPDIR/a; f=$(mktemp); echo y > $f; cat $f; echo $TMPDIR; \
                    for place in /tmp /var/tmp /dev/shm /run; do touch $place/interlock-escape; done";
        let output = world.line(&world.bound_of(""), line);
        let said = stdout(&output);
        let place = said.strip_prefix("x\ny\n").map(str::trim).unwrap_or_default();
        assert_eq!(place == "/tmp", !world.rung.is_narrow(), "{said}{}", stderr(&output));
        assert!(!world.path("project/new").exists());
        assert!(!fs::exists(format!("{place}/a")).expect("an answer"));
        for place in ["/tmp", "/var/tmp", "/dev/shm", "/run"] {
            assert!(!fs::exists(format!("{place}/interlock-escape")).expect("an answer"), "{place}");
        }
    }
}

/// A pipe by name is written through a read-only mount; Landlock stops that.
#[test]
fn no_pipe_leads_outside() {
    for ground in grounds() {
        let world = World::on(ground);
        let pipe = world.path("outside/pipe");
        rustix::fs::mknodat(rustix::fs::CWD, &pipe, rustix::fs::FileType::Fifo, 0o666.into(), 0).expect("a pipe");
        world.give(&pipe);
        let mut reader =
            fs::File::options().read(true).write(true).custom(rustix_nonblocking()).open(&pipe).expect("the pipe");
        let line = format!("echo leaked > {}", pipe.display());
        world.line(&world.bound(""), &line);
        let mut read = [0; 16];
        assert_eq!(reader.read(&mut read).map_err(|error| error.kind()), Err(ErrorKind::WouldBlock));
        assert!(world.bare(&["/bin/bash", "-c", &line]).status().expect("a shell").success());
        assert_eq!(reader.read(&mut read).expect("what was written"), 7);
    }
}

fn rustix_nonblocking() -> i32 {
    rustix::fs::OFlags::NONBLOCK.bits() as i32
}

trait CustomFlags {
    fn custom(&mut self, flags: i32) -> &mut Self;
}

impl CustomFlags for fs::OpenOptions {
    fn custom(&mut self, flags: i32) -> &mut Self {
        std::os::unix::fs::OpenOptionsExt::custom_flags(self, flags)
    }
}

const CONNECTIONS: &str = r"
import socket, sys
def attempt(name, call):
    try:
        call()
        print(name, 'sent')
    except OSError as error:
        print(name, error.errno)
def stream(family, address):
    def call():
        one = socket.socket(family, socket.SOCK_STREAM); one.settimeout(5); one.connect(address); one.send(b'x')
    return call
def datagram(family, address):
    def call():
        one = socket.socket(family, socket.SOCK_DGRAM); one.sendto(b'x', address)
    return call
def pair(address):
    def call():
        one, other = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM); one.sendto(b'x', address)
    return call
tcp4, tcp6, udp, abstract, path, datagrams = sys.argv[1:]
attempt('tcp4', stream(socket.AF_INET, ('127.0.0.1', int(tcp4))))
attempt('tcp6', stream(socket.AF_INET6, ('::1', int(tcp6))))
attempt('udp', datagram(socket.AF_INET, ('127.0.0.1', int(udp))))
attempt('abstract', stream(socket.AF_UNIX, '\0' + abstract))
attempt('path', stream(socket.AF_UNIX, path))
attempt('datagram', datagram(socket.AF_UNIX, datagrams))
attempt('pair', pair(datagrams))
";

/// What came in at six sockets since it was last asked.
struct Listeners {
    tcp: Vec<TcpListener>,
    udp: UdpSocket,
    unix: Vec<UnixListener>,
    datagrams: UnixDatagram,
    arguments: Vec<String>,
}

impl Listeners {
    fn new(world: &World) -> Listeners {
        let tcp: Vec<_> = ["127.0.0.1:0", "[::1]:0"].map(|at| TcpListener::bind(at).expect("a port")).into();
        let udp = UdpSocket::bind("127.0.0.1:0").expect("a port");
        let name = format!("interlock-{}", world.text("x").replace('/', "-"));
        let abstract_name = SocketAddr::from_abstract_name(&name).expect("a name");
        let path = world.text("outside/socket");
        let unix = vec![
            UnixListener::bind_addr(&abstract_name).expect("a socket"),
            UnixListener::bind(&path).expect("a socket"),
        ];
        let datagram_path = world.text("outside/datagrams");
        let datagrams = UnixDatagram::bind(&datagram_path).expect("a socket");
        for path in [&path, &datagram_path] {
            fs::set_permissions(path, fs::Permissions::from_mode(0o777)).expect("a mode");
        }
        tcp.iter().for_each(|one| one.set_nonblocking(true).expect("a mode"));
        unix.iter().for_each(|one| one.set_nonblocking(true).expect("a mode"));
        udp.set_nonblocking(true).expect("a mode");
        datagrams.set_nonblocking(true).expect("a mode");
        let mut arguments: Vec<_> =
            tcp.iter().map(|one| one.local_addr().expect("an address").port().to_string()).collect();
        arguments.push(udp.local_addr().expect("an address").port().to_string());
        arguments.extend([name, path, datagram_path]);
        Listeners { tcp, udp, unix, datagrams, arguments }
    }

    fn arrived(&self) -> Vec<&'static str> {
        let mut arrived = Vec::new();
        let tcp = ["tcp4", "tcp6"].into_iter().zip(&self.tcp);
        arrived.extend(tcp.filter(|(_, one)| one.accept().is_ok()).map(|(name, _)| name));
        let unix = ["abstract", "path"].into_iter().zip(&self.unix);
        arrived.extend(unix.filter(|(_, one)| one.accept().is_ok()).map(|(name, _)| name));
        let mut space = [0; 8];
        arrived.extend(self.udp.recv(&mut space).is_ok().then_some("udp"));
        while self.datagrams.recv(&mut space).is_ok() {
            arrived.push("datagram");
        }
        arrived
    }
}

#[test]
fn no_connection_leads_outside() {
    for ground in grounds() {
        let world = World::on(ground);
        let listeners = Listeners::new(&world);
        let mut program = vec!["/usr/bin/python3", "-c", CONNECTIONS];
        program.extend(listeners.arguments.iter().map(String::as_str));
        let output = world.held(&world.bound(""), &program).output().expect("the runner");
        let said = stdout(&output);
        assert_eq!(said.lines().count(), 7, "{said}{}", stderr(&output));
        assert_eq!(listeners.arrived(), Vec::<&str>::new(), "{said}");
        assert!(said.contains("path 13\n"), "{said}");
        let is_seen = world.report().contains("outside/socket");
        assert!(is_seen || world.rung.is_narrow(), "{}", world.report());
        world.bare(&program).status().expect("the program");
        let all = ["tcp4", "tcp6", "abstract", "path", "udp", "datagram", "datagram"];
        assert_eq!(listeners.arrived(), all, "the attempts do nothing at all");
    }
}

#[test]
fn other_families_of_sockets_are_closed() {
    for ground in grounds() {
        let world = World::on(ground);
        // vsock, packets, the kernel's ciphers, bluetooth, netlink for audits
        let text = "import socket\nfor family, kind, protocol in [(40, 1, 0), (17, 3, 0), (38, 5, 0), (31, 1, 0), (16, 3, 9)]:\n    \
                    try:\n        socket.socket(family, kind, protocol); print('open', family)\n    \
                    except OSError as error: print(error.errno)";
        let output = world.held(&world.bound(""), &["/usr/bin/python3", "-c", text]).output().expect("the runner");
        let refusal = if world.rung.is_narrow() { "13\n" } else { "97\n" };
        assert_eq!(stdout(&output), refusal.repeat(5), "{}", stderr(&output));
    }
}

#[test]
fn servers_inside_are_reached_inside() {
    for user in users() {
        let world = World::new(user);
        let text = "import socket, os, tempfile\n\
                    for at in ['/tmp/s', os.getcwd() + '/s', 's2', '\\0name']:\n    \
                    server = socket.socket(socket.AF_UNIX); server.bind(at); server.listen()\n    \
                    client = socket.socket(socket.AF_UNIX); client.connect(at); client.send(b'x')\n    \
                    print(server.accept()[0].recv(1))\n\
                    for family, at in [(socket.AF_INET, ('127.0.0.1', 8000)), (socket.AF_INET6, ('::1', 8000))]:\n    \
                    server = socket.create_server(at, family=family)\n    \
                    client = socket.create_connection(at); client.send(b'x')\n    \
                    print(server.accept()[0].recv(1))";
        let output = world.held(&world.bound(""), &["/usr/bin/python3", "-c", text]).output().expect("the runner");
        assert_eq!(stdout(&output), "b'x'\n".repeat(6), "{}", stderr(&output));
    }
}

#[test]
fn what_is_hidden_cannot_be_read() {
    for ground in grounds() {
        let world = World::on(ground);
        world.write("outside/keys/id", "a secret");
        world.write("project/.config/token", "a secret");
        let hidden =
            ["outside/secret", "outside/keys", "outside/absent", "project/.config/token"].map(|name| world.text(name));
        let bound = world.bound(&format!(r#""hidden": ["{}"]"#, hidden.join(r#"", ""#)));
        let outside = world.text("outside");
        for line in [
            "cat OUT/secret",
            "cat OUT/keys/id",
            "cat OUT/keys/*; ls OUT/keys",
            "root=root; cat /proc/self/$root/OUT/secret",
            "cat /proc/self/cwd/../outside/secret",
            "cp OUT/secret copy; cat copy",
            "ln OUT/secret link; cat link",
            "ln -s OUT/secret soft; cat soft",
            "mv OUT/secret moved; cat moved",
            "cat .config/token",
            "mv .config other; cat other/token",
            "mv .config/token other; cat other",
            "ln .config/token hard; cat hard",
            "chmod 644 .config/token; cat .config/token",
            "umount .config/token; cat .config/token",
            "/usr/bin/python3 -c \"import os; print(os.read(os.open('OUT/secret', os.O_RDONLY), 99))\"",
        ] {
            let output = world.line(&bound, &line.replace("OUT", &outside));
            assert_ne!(output.status.code(), Some(126), "{}", stderr(&output));
            assert!(!stdout(&output).contains("secret"), "{line} for {ground:?}");
        }
        // What lies beside it is there as ever.
        assert_eq!(stdout(&world.line(&bound, &format!("cat {outside}/file"))), "as it was");
        // With mounts, what lies above may be moved, and the mask goes with it.
        let moved = if world.rung.is_narrow() { "project/.config/token" } else { "project/other/token" };
        assert_eq!(fs::read_to_string(world.path(moved)).expect("the token"), "a secret");
    }
}

/// Somebody outside replaces what is hidden while the command runs: the mask falls off, and Landlock still holds.
#[test]
fn what_is_hidden_stays_so_when_it_is_replaced() {
    for ground in grounds() {
        let world = World::on(ground);
        let bound = world.bound(&format!(
            r#""hidden": ["{}", "{}"]"#,
            world.text("outside/secret"),
            world.text("outside/later")
        ));
        let line = format!(
            "touch ready; until [ -e go ]; do sleep 0.01; done; cat {0}/secret; cat {0}/later; cat {0}/file",
            world.text("outside")
        );
        let running = world.held(&bound, &["/bin/bash", "-c", &line]).stdout(std::process::Stdio::piped()).spawn();
        let running = running.expect("the runner");
        wait_for("the command", || world.path("project/ready").exists());
        world.write("outside/next", "another secret");
        fs::rename(world.path("outside/next"), world.path("outside/secret")).expect("a rename");
        world.write("outside/later", "a later secret");
        world.write("project/go", "");
        let output = running.wait_with_output().expect("an end");
        assert_eq!(stdout(&output), "as it was", "for {ground:?}");
    }
}

#[test]
fn what_is_locked_cannot_be_replaced() {
    for ground in grounds() {
        for line in [
            "echo x >> .claude/settings.json",
            "rm -f .claude/settings.json",
            "mv .claude/settings.json x; echo y > .claude/settings.json",
            "mv .claude other; mkdir .claude; echo y > .claude/settings.json",
            "rm -rf .claude; mkdir .claude; echo y > .claude/settings.json",
            "mkdir n; echo y > n/settings.json; mv -T n .claude",
            "echo y > n; mv n .claude/settings.json",
            "ln -sfn /tmp .claude",
            "chmod 777 .claude/settings.json",
            "touch -d @1 .claude/settings.json",
            "cp -r .claude copy; rm -rf .claude; mv copy .claude; echo y > .claude/settings.json",
            "echo y > .git/hooks/pre-commit; mv .git x; mkdir -p .git/hooks; echo y > .git/hooks/pre-commit",
            "mkdir -p .cursor/x; echo y > .cursor/hooks.json",
            "mv .cursor z; mkdir .cursor; echo y > .cursor/hooks.json",
            "rmdir .cursor/hooks.json; echo y > .cursor/hooks.json",
            "echo y > .envrc; rm -rf .envrc; echo y > .envrc",
        ] {
            let world = World::on(ground);
            world.write("project/.claude/settings.json", "ours");
            world.write("project/.claude/notes", "theirs");
            world.write("project/.git/hooks/sample", "ours");
            world.write("project/.git/HEAD", "x");
            let locked = [".claude/settings.json", ".git/hooks", ".cursor/hooks.json", ".envrc"]
                .map(|name| world.text(&format!("project/{name}")));
            let bound = world.bound(&format!(r#""locked": ["{}"]"#, locked.join(r#"", ""#)));
            let output = world.line(&bound, &format!("{line}; echo free > .claude/notes; echo free > .git/HEAD"));
            assert_ne!(output.status.code(), Some(126), "{}", stderr(&output));
            let read = |name: &str| fs::read_to_string(world.path(&format!("project/{name}"))).ok();
            assert_eq!(read(".claude/settings.json").as_deref(), Some("ours"), "{line}: {}", stderr(&output));
            assert_eq!(read(".git/hooks/sample").as_deref(), Some("ours"), "{line}");
            assert_eq!(read(".git/HEAD").as_deref(), Some("free\n"), "{line}");
            for absent in [".git/hooks/pre-commit", ".cursor/hooks.json", ".envrc"] {
                assert!(!world.path(&format!("project/{absent}")).exists(), "{line} left {absent}");
            }
        }
    }
}

/// A call makes a directory unusable so that the next one cannot be held in it, and that one undoes it.
#[test]
fn a_directory_that_cannot_be_held_stops_the_call() {
    for ground in grounds() {
        let user = ground.0;
        let world = World::on(ground);
        world.write("project/.git/hooks/sample", "ours");
        world.write("project/.config/token", "a secret");
        let names = |list: &[&str]| list.iter().map(|name| world.text(name)).collect::<Vec<_>>().join(r#"", ""#);
        let bound = world.bound(&format!(
            r#""locked": ["{}"], "hidden": ["{}"]"#,
            names(&["project/.git/hooks", "project/sub/.envrc"]),
            names(&["project/.config/token"])
        ));
        for (first, second) in [
            ("chmod 000 .git", "chmod 755 .git; echo evil > .git/hooks/sample"),
            ("chmod 000 .config", "chmod 755 .config; cat .config/token"),
            ("mkdir -p sub; chmod 555 sub", "chmod 755 sub; echo evil > sub/.envrc"),
        ] {
            world.line(&bound, first);
            let output = world.line(&bound, second);
            assert!(!stdout(&output).contains("secret"), "{first}; {second}");
            let mended = world.bare(&["/bin/sh", "-c", "chmod -R u+rwX . 2> /dev/null; true"]).status();
            assert!(mended.expect("a shell").success());
            let hook = fs::read_to_string(world.path("project/.git/hooks/sample")).expect("the hook");
            assert_eq!(hook, "ours", "{first}; {second}");
            assert!(!world.path("project/sub/.envrc").is_file(), "{first}; {second}");
            // Root is stopped by no mode, and held all the same; so is a place where a placeholder was left.
            // So is what is locked without namespaces, by its name alone.
            let is_held = user == 0 || first.contains("sub") || world.rung.is_narrow() && first.contains(".git");
            let must_stop = !is_held;
            assert!(!must_stop || output.status.code() == Some(126), "{first}: {}", stderr(&output));
        }
    }
}

#[test]
fn processes_outside_are_neither_seen_nor_signalled() {
    for ground in grounds() {
        let world = World::on(ground);
        let mut outside = world.bare(&["/bin/sleep", "600"]).spawn().expect("a process");
        let id = outside.id();
        let line = format!(
            "kill -9 {id}; kill -9 -1; ls /proc/{id}; cat /proc/{id}/cmdline; \
             /usr/bin/python3 -c 'import os; os.kill({id}, 9)'; kill -9 0; true"
        );
        let output = world.line(&world.bound(""), &line);
        // Without namespaces the list of processes is the machine's.
        assert!(stdout(&output).is_empty() || world.rung.is_narrow(), "{}", stdout(&output));
        assert!(outside.try_wait().expect("an answer").is_none(), "the process outside was ended");
        outside.kill().expect("a signal");
        outside.wait().expect("an end");
    }
}

#[test]
fn nothing_outlives_its_call() {
    for ground in grounds() {
        let world = World::on(ground);
        let mark = format!("31{}", std::process::id());
        let line = format!("setsid nohup sleep {mark} >/dev/null 2>&1 & (sleep {mark} & disown); echo started");
        let output = world.line(&world.bound(""), &line);
        assert_eq!(stdout(&output), "started\n");
        assert!(!is_running(&format!("sleep\0{mark}")), "a process outlived its call");
    }
}

#[test]
fn everything_ends_with_the_runner() {
    for ground in grounds() {
        let world = World::on(ground);
        let mark = format!("32{}", std::process::id());
        let line = format!("touch ready; sleep {mark}; touch after");
        let mut running = world.held(&world.bound(""), &["/bin/bash", "-c", &line]).spawn().expect("the runner");
        wait_for("the command", || world.path("project/ready").exists());
        wait_for("the sleep", || is_running(&format!("sleep\0{mark}")));
        running.kill().expect("a signal");
        running.wait().expect("an end");
        wait_for("everything to end", || !is_running(&format!("sleep\0{mark}")));
        assert!(!world.path("project/after").exists());
    }
}

/// Only root can make such a program, and root's tests try it as another user.
#[test]
fn programs_that_lend_rights_lend_none() {
    if users().len() < 2 {
        return;
    }
    let world = World::new(users()[1]);
    fs::copy("/usr/bin/id", world.path("outside/lend")).expect("a copy");
    fs::set_permissions(world.path("outside/lend"), fs::Permissions::from_mode(0o4755)).expect("a mode");
    let program = world.text("outside/lend");
    let bare = world.bare(&[&program, "-u"]).output().expect("the program");
    assert_eq!(stdout(&bare), "0\n", "the attempt does nothing at all");
    let held = world.held(&world.bound(""), &[&program, "-u"]).output().expect("the runner");
    assert_eq!(stdout(&held), format!("{}\n", world.user));
}

#[test]
fn the_machine_is_out_of_reach() {
    for user in users() {
        let world = World::new(user);
        let line = "ls /dev/vda /dev/sda /dev/mem /dev/kmsg /dev/fuse 2>/dev/null; ls -A /run | grep -v hidden; \
                    echo x 2>/dev/null > /proc/sys/kernel/core_pattern && echo wrote; \
                    echo x 2>/dev/null > /proc/sysrq-trigger && echo wrote; \
                    echo x 2>/dev/null > /sys/kernel/mm/ksm/run && echo wrote; \
                    grep -E '^Cap' /proc/self/status | grep -v 0000000000000000; \
                    echo x > /proc/self/comm && cat /proc/self/comm";
        let before = fs::read("/proc/sys/kernel/core_pattern").expect("a setting");
        let output = world.line(&world.bound(""), line);
        assert_eq!(stdout(&output), "cat\n", "{}", stderr(&output));
        assert_eq!(fs::read("/proc/sys/kernel/core_pattern").expect("a setting"), before);
    }
}

#[test]
fn a_place_that_is_a_link_is_refused_and_nothing_runs() {
    for ground in grounds() {
        let world = World::on(ground);
        std::os::unix::fs::symlink(world.path("outside"), world.path("project/link")).expect("a link");
        for bound in [
            world.bound_of(&format!(r#""write": ["{}/project/link"]"#, world.text(""))),
            world.bound_of(&format!(r#""write": ["{}/project/link/sub"]"#, world.text(""))),
            world.bound(&format!(r#""locked": ["{}"]"#, world.text("project/link/file"))),
            world.bound_of(r#""write": ["/"]"#),
            world.bound_of(r#""write": ["relative"]"#),
            world.bound_of(r#""write": ["/a/../etc"]"#),
        ] {
            let output = world.line(&bound.replace("//", "/"), "touch ran");
            assert_eq!(output.status.code(), Some(126), "{bound}: {}", stderr(&output));
            assert!(!world.path("project/ran").exists());
        }
    }
}

#[test]
fn a_cover_shows_only_what_is_named() {
    for user in users() {
        let world = World::new(user);
        world.write("outside/shown/deep/file", "shown");
        world.write("outside/shown/other", "not shown");
        let cover = format!(
            r#""covers": [{{"directory": "{}", "visible": ["{}"]}}]"#,
            world.text("outside"),
            world.text("outside/shown/deep")
        );
        let line = format!(
            "cd {}; find . | sort; cat shown/deep/file; touch new shown/new shown/deep/new",
            world.text("outside")
        );
        let output = world.line(&world.bound(&cover), &line);
        let expected = ".\n./shown\n./shown/deep\n./shown/deep/file\nshown";
        assert_eq!(stdout(&output), expected, "{}", stderr(&output));
    }
}

/// Sockets between a machine and its host know no network namespaces. Where the kernel has them, one is listened at outside,
/// and asked for by every way to a socket there is: made, made in a pair, and by the device that tells the own number.
#[test]
fn no_socket_to_the_host_of_the_machine_is_had() {
    let listen = "import socket, sys\ntry:\n    s = socket.socket(40, 1); s.bind((0xFFFFFFFF, 0xFFFFFFFF)); s.listen()\n\
                  except (OSError, AttributeError) as error: print('none', flush=True); sys.exit()\n\
                  print(s.getsockname()[1], flush=True)\ns.settimeout(600)\ns.accept(); print('arrived', flush=True)";
    let attempt = "import fcntl, socket, sys\n\
                   def made(kind):\n    return socket.socket(40, kind)\n\
                   def stream(kind, cid):\n    one = made(kind); one.settimeout(5); one.connect((cid, int(sys.argv[1])))\n\
                   calls = {f'{kind} {cid}': lambda kind=kind, cid=cid: stream(kind, cid) for kind in (1, 2, 5) for cid in (0, 1, 2)}\n\
                   calls['made'] = lambda: made(1)\n\
                   calls['pair'] = lambda: socket.socketpair(40, 1)\n\
                   calls['device'] = lambda: fcntl.ioctl(open('/dev/vsock'), 0x7B9, bytes(4))\n\
                   for name, call in calls.items():\n    \
                   try:\n        call(); print(name, 'had')\n    except OSError as error: print(name, error.errno)\n";
    for ground in grounds() {
        let world = World::on(ground);
        let mut listening = world.bare(&["/usr/bin/python3", "-c", listen]);
        let mut listening = listening.stdout(std::process::Stdio::piped()).spawn().expect("a listener");
        let mut said = std::io::BufReader::new(listening.stdout.take().expect("a stream"));
        let mut port = String::new();
        std::io::BufRead::read_line(&mut said, &mut port).expect("a port");
        let is_there = port.trim() != "none";
        let port = if is_there { port.trim() } else { "1024" };
        let program = ["/usr/bin/python3", "-c", attempt, port];
        let output = world.held(&world.bound(""), &program).output().expect("the runner");
        let answers = stdout(&output);
        // There is no such family, no such file, or no right to either.
        let is_closed = |line: &&str| ["97", "13", "2"].iter().any(|number| line.ends_with(&format!(" {number}")));
        assert_eq!(answers.lines().filter(is_closed).count(), 12, "{answers}{}", stderr(&output));
        let made = "import socket; socket.socket(40, 1); print('had')";
        let bare = world.bare(&["/usr/bin/python3", "-c", made]).output().expect("the program");
        assert!(!is_there || stdout(&bare) == "had\n", "the attempts do nothing at all: {}", stderr(&bare));
        let _ = listening.kill();
        listening.wait().expect("an end");
        let mut rest = String::new();
        said.read_to_string(&mut rest).expect("what arrived");
        assert_eq!(rest, "", "for {ground:?}");
    }
}
