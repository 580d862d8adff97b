//! A command behaves as it does without the runner: what it writes, how it ends, what it is told.

use std::fs;
use std::io::Write;
use std::net::{TcpListener, TcpStream};
use std::os::fd::OwnedFd;
use std::os::unix::net::{UnixDatagram, UnixStream};
use std::os::unix::process::ExitStatusExt;
use std::process::Stdio;

use crate::support::{World, grounds, stderr, stdout, users, wait_for};

/// Lines of a shell that must write the same and end the same, with and without the runner.
pub(crate) const LINES: &[&str] = &[
    "true",
    "exit 7",
    "exit 255",
    "exit 256",
    "kill -9 $$",
    "kill -TERM $$",
    "kill -SEGV $$",
    "kill -PIPE $$",
    "no-such-command-at-all",
    "/etc/passwd",
    "echo out; echo err >&2; exit 3",
    "pwd; cd /; pwd; echo $OLDPWD",
    "umask; ulimit -n; ulimit -s",
    "env | grep -v -e ^TMPDIR= -e ^_= | sort",
    "test -t 0; echo $?",
    "trap 'echo caught' USR1; kill -USR1 $$; echo after",
    "trap 'exit 9' EXIT; false",
    "sleep 0.01 & wait $!; echo $?",
    "(exit 3); echo $?",
    "/usr/bin/python3 -c 'import subprocess; print(subprocess.call([\"sh\", \"-c\", \"kill -9 $$\"]))'",
    "set -o pipefail; yes | head -1; echo $?",
    "mkfifo p; (echo through > p &) ; cat p",
    "ln -s a b; readlink b; echo x > a; cat b; ln a c; stat -c '%h %a %U' c",
    "cat <<< text; cat < <(echo substituted); echo err > /dev/stderr; echo out > /dev/stdout",
    "cat /dev/stdin < /etc/hostname",
    "mkdir -p d/e; mv d f; rm -r f; ls -A",
    "touch a; chmod 600 a; touch -d @1000000000 a; stat -c '%a %Y' a",
    "dd if=/dev/zero of=big bs=1M count=3 2>/dev/null; stat -c %s big; truncate -s 10 big; stat -c %s big",
    "tar cf t.tar --owner=0 /etc/hostname 2>/dev/null; tar tf t.tar",
    "head -c 5 /dev/urandom | wc -c; echo > /dev/null",
    "id -u; id -g; whoami",
    "git init -q . 2>/dev/null && git -c user.name=a -c user.email=b commit -q --allow-empty -m x && git log --format=%s",
    "/usr/bin/python3 -c 'import multiprocessing as m; print(m.Pool(2).map(abs, [-1, 2]))'",
    "/usr/bin/python3 -c 'import threading as t; x = t.Thread(target=print, args=[1]); x.start(); x.join()'",
    "/usr/bin/python3 -c 'import socket; print(socket.gethostbyname(\"localhost\"))'",
    "/usr/bin/python3 -c 'import tempfile; tempfile.TemporaryFile().write(b\"x\"); print(1)'",
    "/usr/bin/python3 -c 'import sys; sys.exit(-1)'",
    "/usr/bin/python3 -c 'import os; os.abort()'",
    "/usr/bin/python3 -c 'import os, pty; print(os.isatty(pty.openpty()[1]))'",
    "node -e 'setTimeout(() => process.exit(5), 10)'",
    "node -e 'console.log(require(\"child_process\").execSync(\"echo sub\").toString())'",
    "node -e 'require(\"net\").createServer().listen(0, function () { require(\"net\").connect(this.address().port, \
     () => { console.log(\"connected\"); process.exit() }) })'",
    "strace -o /dev/null true; echo $?",
    "bash -c 'exec 5>file; echo x >&5'; cat file",
];

#[test]
fn lines_write_and_end_as_without_it() {
    for user in users() {
        for line in LINES {
            let (bare, held) = (World::new(user), World::new(user));
            let program = ["/bin/bash", "-c", line];
            let expected = bare.bare(&program).output().expect("a shell");
            let output = held.held(&held.bound(""), &program).output().expect("the runner");
            let free = World::new(user);
            let observed = free.held("-", &program).output().expect("the runner");
            let plain = |world: &World, text: String| text.replace(&world.text(""), "@/");
            for (world, output) in [(&held, &output), (&free, &observed)] {
                assert_eq!(
                    plain(world, stdout(output)),
                    plain(&bare, stdout(&expected)),
                    "{line} for {user}: {}",
                    stderr(output)
                );
                assert_eq!(plain(world, stderr(output)), plain(&bare, stderr(&expected)), "{line} for {user}");
                let ends = |status: std::process::ExitStatus| (status.code(), status.signal());
                assert_eq!(ends(output.status), ends(expected.status), "{line} for {user}");
            }
        }
    }
}

#[test]
fn streams_may_be_files_outside_and_are_opened_again() {
    for user in users() {
        let world = World::new(user);
        for (name, text) in [("outside/in", "from outside\n"), ("outside/out", "")] {
            world.write(name, text);
        }
        let mut command =
            world.held(&world.bound(""), &["/bin/bash", "-c", "cat; cat /dev/stdin; echo a > /dev/stdout"]);
        let open = |name: &str, write: bool| {
            fs::OpenOptions::new().read(!write).append(write).open(world.path(name)).expect("a file")
        };
        let status = command.stdin(open("outside/in", false)).stdout(open("outside/out", true)).status();
        assert_eq!(status.expect("the runner").code(), Some(0));
        // Opened again, a file begins at its start, and is emptied first.
        assert_eq!(fs::read_to_string(world.path("outside/out")).expect("the file"), "a\n");
        let mut command = world.held(&world.bound(""), &["/bin/true"]);
        let directory = fs::File::open(world.path("outside")).expect("a directory");
        let output = command.stdin(directory).output().expect("the runner");
        assert_eq!(output.status.code(), Some(126), "a directory leads out: {}", stderr(&output));
    }
}

/// A socket that was made outside leads to networks outside, unless it is connected for good.
#[test]
fn a_stream_may_be_a_connected_local_socket_and_no_other() {
    for ground in grounds() {
        let world = World::on(ground);
        let (mut ours, theirs) = UnixStream::pair().expect("sockets");
        ours.write_all(b"from a socket").expect("a write");
        drop(ours);
        let mut command = world.held(&world.bound(""), &["/bin/cat"]);
        let output = command.stdin(OwnedFd::from(theirs)).output().expect("the runner");
        assert_eq!(stdout(&output), "from a socket", "{}", stderr(&output));
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let connected = TcpStream::connect(listener.local_addr().expect("an address")).expect("a connection");
        let unconnected = UnixDatagram::unbound().expect("a socket");
        for socket in [OwnedFd::from(listener), connected.into(), unconnected.into()] {
            let mut command = world.held(&world.bound(""), &["/bin/bash", "-c", "touch ran"]);
            let output = command.stdin(socket).output().expect("the runner");
            assert_eq!(output.status.code(), Some(126), "{}", stderr(&output));
            assert!(!world.path("project/ran").exists());
        }
    }
}

#[test]
fn large_streams_pass_both_ways() {
    for user in users() {
        let world = World::new(user);
        let mut running = world
            .held(&world.bound(""), &["/bin/cat"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("the runner");
        let mut stdin = running.stdin.take().expect("a stream");
        let writer = std::thread::spawn(move || stdin.write_all(&vec![b'x'; 4 << 20]).expect("a write"));
        let output = running.wait_with_output().expect("an end");
        writer.join().expect("the writer");
        assert_eq!(output.stdout.len(), 4 << 20);
    }
}

#[test]
fn signals_to_the_runner_reach_the_command() {
    for user in users() {
        for (bound, name) in [("held", "TERM"), ("held", "HUP"), ("held", "INT"), ("held", "USR1"), ("free", "TERM")] {
            let world = World::new(user);
            let bound = if bound == "held" { world.bound("") } else { "-".to_owned() };
            let line = format!("trap 'echo caught; exit 4' {name}; touch ready; while :; do sleep 0.01; done");
            let running =
                world.held(&bound, &["/bin/bash", "-c", &line]).stdout(Stdio::piped()).spawn().expect("the runner");
            wait_for("the command", || world.path("project/ready").exists());
            let sent =
                std::process::Command::new("kill").args([&format!("-{name}"), &running.id().to_string()]).status();
            assert!(sent.expect("a signal").success());
            let output = running.wait_with_output().expect("an end");
            assert_eq!((stdout(&output).as_str(), output.status.code()), ("caught\n", Some(4)), "{name}");
        }
    }
}

#[test]
fn a_terminal_works_as_without_it() {
    for user in users() {
        let world = World::new(user);
        let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/terminal.py");
        fs::copy(script, world.path("terminal.py")).expect("a copy");
        let program = ["/usr/bin/python3", &world.text("terminal.py"), &world.text("runner"), &world.bound("")]
            .map(str::to_owned);
        let program: Vec<_> = program.iter().map(String::as_str).collect();
        let output = world.bare(&program).output().expect("the script");
        let cases = "interrupt with a trap\ninterrupt\nquit\nstop and go on\nstops itself\nterminal\n\
                     interactive shell inside\n/dev/tty\n";
        assert_eq!(stdout(&output), cases.repeat(2), "for {user}: {}", stderr(&output));
    }
}

#[test]
fn variables_are_those_of_the_bound() {
    for user in users() {
        let world = World::new(user);
        let bound = world.bound(r#""env_blocked": ["TOKEN", "HOME"], "env_set": {"MODE": "x", "HOME": "/nowhere"}"#);
        let mut command = world.held(&bound, &["/bin/bash", "-c", "echo $TOKEN $MODE $HOME $KEPT $TMPDIR"]);
        let output = command.env("TOKEN", "a secret").env("KEPT", "kept").output().expect("the runner");
        assert_eq!(stdout(&output), "x /nowhere kept /tmp\n");
    }
}

#[test]
fn a_program_that_is_not_there_is_a_fault() {
    for user in users() {
        let world = World::new(user);
        for (program, code) in [("no-such-program", 127), ("/no/such/program", 127), ("/etc/passwd", 126)] {
            let output = world.held(&world.bound(""), &[program]).output().expect("the runner");
            assert_eq!(output.status.code(), Some(code), "{program}: {}", stderr(&output));
            assert!(stderr(&output).contains(program), "{}", stderr(&output));
        }
    }
}

#[test]
fn the_private_directory_may_outlive_the_call() {
    for user in users() {
        let world = World::new(user);
        world.directory("temp");
        let mut first = world.held(&world.bound(""), &["/bin/bash", "-c", "echo kept > /tmp/a; cat /var/tmp/a"]);
        let output = first.env("INTERLOCK_CONTAIN_TEMP", world.path("temp")).output().expect("the runner");
        assert_eq!(stdout(&output), "kept\n", "{}", stderr(&output));
        let mut second = world.held(&world.bound(""), &["/bin/cat", "/tmp/a"]);
        let output = second.env("INTERLOCK_CONTAIN_TEMP", world.path("temp")).output().expect("the runner");
        assert_eq!(stdout(&output), "kept\n", "{}", stderr(&output));
    }
}

/// Projects lie in places for temporary files too, which are masked.
#[test]
fn a_project_beneath_a_mask_is_there() {
    for user in users() {
        let world = World::new(user);
        let project = tempfile::tempdir_in("/tmp").expect("a directory");
        world.give(project.path());
        let text = project.path().to_str().expect("UTF-8");
        let write = format!(r#"{{"profile": "t", "write": ["{text}"]}}"#);
        for (bound, line, expected) in [
            (write.as_str(), "echo x > made; cat made; ls -A /tmp | wc -l", "x\n1\n"),
            (r#"{"profile": "t"}"#, "cat made; touch more 2> /dev/null || echo no", "x\nno\n"),
        ] {
            let mut command = world.held(bound, &["/bin/bash", "-c", line]);
            let output = command.current_dir(project.path()).output().expect("the runner");
            assert_eq!(stdout(&output), expected, "{}", stderr(&output));
        }
        assert!(!project.path().join("more").exists());
    }
}
