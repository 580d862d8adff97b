//! Calls of one session reach what others of it left running, and nothing of it outlives the session.

use std::fs;
use std::process::{Child, Command, Stdio};

use crate::support::{World, is_running, stderr, stdout, users, wait_for};

/// A session with an owner that can be ended.
struct Session {
    world: World,
    owner: Child,
}

impl Session {
    fn new(user: u32) -> Session {
        let world = World::new(user);
        world.directory("session");
        let owner = world.bare(&["/bin/sleep", "3600"]).spawn().expect("an owner");
        Session { world, owner }
    }

    fn call(&self, line: &str) -> Command {
        self.call_with("", line)
    }

    fn call_with(&self, more: &str, line: &str) -> Command {
        let bound = format!(r#""hidden": ["{}"]{more}"#, self.world.text("session"));
        let mut command = self.world.held(&self.world.bound(&bound), &["/bin/bash", "-c", line]);
        let session = format!("{}:{}", self.world.text("session"), self.owner.id());
        command.env("INTERLOCK_CONTAIN_SESSION", session).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    fn end(&mut self) {
        self.owner.kill().expect("a signal");
        self.owner.wait().expect("an end");
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        let _ = self.owner.kill();
        let _ = self.owner.wait();
    }
}

#[test]
fn a_later_call_reaches_and_signals_what_an_earlier_one_runs() {
    for user in users() {
        let session = Session::new(user);
        let server = "exec /usr/bin/python3 -u -c \"import socket, os\ns = socket.create_server(('127.0.0.1', 8080))\n\
                      open('pid', 'w').write(str(os.getpid()))\nos.rename('pid', 'ready')\nc = s.accept()[0]; c.send(b'served')\n\
                      import time; time.sleep(600)\"";
        let first = session.call(server).spawn().expect("the runner");
        wait_for("the server", || session.world.path("project/ready").exists());
        let client = "/usr/bin/python3 -c \"import socket; print(socket.create_connection(('127.0.0.1', 8080)).recv(9))\"; \
                      cat /proc/$(cat ready)/comm; kill -TERM $(cat ready); exit 5";
        let second = session.call(client).output().expect("the runner");
        assert_eq!(stdout(&second), "b'served'\npython3\n", "{}", stderr(&second));
        assert_eq!(second.status.code(), Some(5));
        let first = first.wait_with_output().expect("an end");
        assert_eq!(std::os::unix::process::ExitStatusExt::signal(&first.status), Some(15), "{}", stderr(&first));
        // A call outside the session reaches nothing of it.
        let other = session.world.line(&session.world.bound(""), "ls /proc | grep -c '^[0-9]'; kill -0 1 && echo one");
        assert!(stdout(&other).lines().next().is_some_and(|count| count.parse().is_ok_and(|it: u32| it < 8)));
    }
}

/// A call is over before its view is gone, and the next one gets the same layer all the same.
#[test]
fn calls_one_after_another_write_the_same_cache() {
    for user in users() {
        let session = Session::new(user);
        session.world.write("outside/cache/old", "");
        session.world.directory("own");
        let [cache, own] = ["outside/cache", "own"].map(|place| session.world.text(place));
        let caches = format!(r#", "caches": [{{"directory": "{cache}", "own": "{own}"}}]"#);
        let before = session.world.outside();
        for number in 0..12 {
            let line = format!("echo $(cat {cache}/all 2> /dev/null | wc -l); echo x >> {cache}/all");
            let output = session.call_with(&caches, &line).output().expect("the runner");
            assert_eq!(stdout(&output), format!("{number}\n"), "{}", stderr(&output));
            assert!(!session.world.report().contains("another command uses it"), "{}", session.world.report());
        }
        assert_eq!(session.world.outside(), before);
    }
}

#[test]
fn a_call_is_held_to_its_bound_in_a_session_too() {
    for user in users() {
        let session = Session::new(user);
        let before = session.world.outside();
        let outside = session.world.text("outside");
        let line = format!(
            "touch {outside}/new; chmod 777 {outside}/file; ls {0}; cat {0}/holder; kill -9 1; kill -9 0; \
             kill -9 {1}; root=root; cat /proc/1/$root/etc/hostname; readlink /proc/1/fd/*; ls /proc/1/cwd/; exit 3",
            session.world.text("session"),
            session.owner.id()
        );
        let output = session.call(&line).output().expect("the runner");
        assert_eq!(output.status.code(), Some(3), "{}", stderr(&output));
        assert_eq!(stdout(&output), "", "{}", stderr(&output));
        assert_eq!(session.world.outside(), before);
        assert_eq!(session.call("echo still").output().map(|it| stdout(&it)).expect("the runner"), "still\n");
    }
}

#[test]
fn what_a_call_leaves_ends_with_it_and_all_ends_with_the_session() {
    for user in users() {
        let mut session = Session::new(user);
        let (left, long) = (format!("33{}", std::process::id()), format!("34{}", std::process::id()));
        let mut long_call = session.call(&format!("sleep {long} & touch ready; wait")).spawn().expect("the runner");
        wait_for("the long call", || session.world.path("project/ready").exists());
        let line = format!(
            "setsid nohup sleep {left} > /dev/null 2>&1 & (sleep {left} &) ; (setsid sleep {left} &); echo done"
        );
        let output = session.call(&line).output().expect("the runner");
        assert_eq!(stdout(&output), "done\n", "{}", stderr(&output));
        assert!(!is_running(&format!("sleep\0{left}")), "a process outlived its call");
        assert!(is_running(&format!("sleep\0{long}")), "another call was ended");
        // A runner that is killed ends what it started.
        let line = format!("sleep {left} & touch second; wait");
        let mut killed = session.call(&line).spawn().expect("the runner");
        wait_for("the call", || session.world.path("project/second").exists());
        killed.kill().expect("a signal");
        killed.wait().expect("an end");
        wait_for("its processes to end", || !is_running(&format!("sleep\0{left}")));
        session.end();
        wait_for("the session to end", || !is_running(&format!("sleep\0{long}")));
        long_call.wait().expect("an end");
        let holder = fs::read_to_string(session.world.path("session/holder")).expect("the holder");
        let number = holder.split(' ').next().expect("a number").to_owned();
        wait_for("the holder to end", || fs::read_to_string(format!("/proc/{number}/stat")).is_err());
    }
}
