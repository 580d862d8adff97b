//! The hook as hosts run it, on ground that is not as it should be: it exits with 0 or 2, says why, and one daemon runs.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixListener;
use std::process::{Command, Output, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::Duration;

use interlock_runtime::clock::SystemEntropy;
use interlock_runtime::ledger::LedgerKey;
use interlock_runtime::startup::DataDirectory;
use interlock_testkit::wait::{HANG, until};

use crate::home::{Home, daemons_of, end_daemons_of};
use crate::serve::PROGRAM;
use crate::{path, text};

fn refused(output: &Output, part: &str) {
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(said.contains(part), "`{part}` is not in: {said}");
}

fn passed(output: &Output) {
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    assert!(output.stdout.is_empty(), "{}", text(&output.stdout));
}

#[test]
fn wrong_usage_is_a_refusal_with_a_reason() {
    let home = Home::new();
    let cases: [(&[&str], &str); 7] = [
        (&[], "<HOST>"),
        (&["emacs"], "claude-code, codex, cursor, gemini"),
        (&["claude-code", "--nonsense"], "--nonsense"),
        (&["claude-code", "--daemon", "sha256:00"], "64 hexadecimal digits"),
        (&["claude-code", "--deadline-ms", "0"], "1..=600000"),
        (&["claude-code", "--deadline-ms", "18446744073709551615"], "1..=600000"),
        (&["claude-code", "extra"], "extra"),
    ];
    for (arguments, part) in cases {
        let mut command = home.command(PROGRAM, &["hook"]);
        command.args(arguments);
        let output = home.feed(command, &home.event("c"));
        refused(&output, part);
        assert!(output.stdout.is_empty(), "{arguments:?}");
    }
    assert!(!home.home().exists());
}

#[test]
fn a_thread_that_cannot_be_made_is_a_refusal_with_a_reason() {
    let home = Home::new();
    passed(&home.hook(&[], &home.event("first")));
    let inject = "inject=clone3,clone:error=EAGAIN:when=1+";
    let mut command = home.command("strace", &["-f", "-qq", "-o", "/dev/null", "-e", "trace=clone3,clone", "-e"]);
    command.args([inject, PROGRAM, "hook", "claude-code"]);
    refused(&home.feed(command, &home.event("second")), "the event cannot be read");
}

#[test]
fn ground_that_can_be_mended_is_mended() {
    let home = Home::new();
    passed(&home.hook(&[], &home.event("1")));
    let first = home.daemons();
    assert_eq!(first.len(), 1);
    // A daemon that was killed leaves its socket and token behind.
    Command::new("kill").args(["-KILL", &first[0].to_string()]).status().expect("kill");
    until("it is gone", || home.daemons().is_empty());
    assert!(home.home().join("run/interlock.sock").exists());
    passed(&home.hook(&[], &home.event("2")));
    home.end_daemons();
    // Nothing of the last run at all.
    fs::remove_dir_all(home.home().join("run")).expect("removed");
    passed(&home.hook(&[], &home.event("3")));
    // What lies where the socket should be is nobody's.
    home.end_daemons();
    fs::write(home.home().join("run/interlock.sock"), "").expect("written");
    passed(&home.hook(&[], &home.event("4")));
    assert_eq!(home.daemons().len(), 1);
}

#[test]
fn a_home_that_cannot_be_written_refuses() {
    let home = Home::new();
    refused(&home.hook(&["--home", "/proc/interlock"], &home.event("1")), "cannot be made");
    // A home that was there, on a disk that is read-only by now.
    passed(&home.hook(&[], &home.event("2")));
    home.end_daemons();
    let calls = "openat,mkdir,mkdirat,rename,unlink,unlinkat";
    for (call, error) in [("mkdir,mkdirat", "EROFS"), ("flock", "ENOLCK")] {
        let _ = fs::remove_dir_all(home.home().join("run"));
        let inject = format!("inject={call}:error={error}");
        let trace = format!("trace={calls},flock");
        let mut command = home.command("strace", &["-f", "-qq", "-o", "/dev/null", "-e", &trace, "-e", &inject]);
        command.args([PROGRAM, "hook", "claude-code", "--deadline-ms", "4000"]);
        refused(&home.feed(command, &home.event("3")), "Interlock refused this");
        home.end_daemons();
    }
    passed(&home.hook(&[], &home.event("4")));
}

#[test]
fn a_daemon_that_cannot_start_is_told_at_once() {
    let home = Home::new();
    passed(&home.hook(&[], &home.event("1")));
    home.end_daemons();
    fs::write(home.home().join("data/ledger.key"), "nonsense").expect("written");
    // What is said is why, not that time was up.
    refused(&home.hook(&[], &home.event("2")), "ledger.key is damaged");
    assert!(home.daemons().is_empty());
}

/// To refuse an agent its stop is to order it on, for as long as nobody mends the daemon.
#[test]
fn without_a_daemon_an_agent_may_stop_and_nothing_else() {
    let home = Home::new();
    passed(&home.hook(&[], &home.event("1")));
    home.end_daemons();
    fs::write(home.home().join("data/ledger.key"), "nonsense").expect("written");
    let event = |name: &str, more: &str| {
        let cwd = path(&home.repo()).to_owned();
        format!(r#"{{"session_id":"s","cwd":"{cwd}","hook_event_name":"{name}"{more}}}"#).into_bytes()
    };
    let active = r#","stop_hook_active":true"#;
    for (name, more) in [("Stop", active), ("Stop", ""), ("SubagentStop", active), ("Notification", "")] {
        let output = home.hook(&[], &event(name, more));
        passed(&output);
        assert!(text(&output.stderr).contains("did not see this"), "{name}: {}", text(&output.stderr));
    }
    for name in ["UserPromptSubmit", "SessionStart", "ConfigChange", "Stopp"] {
        refused(&home.hook(&[], &event(name, "")), "Interlock refused this");
    }
    // A stop that cannot be read is no stop.
    refused(&home.hook(&[], br#"{"hook_event_name":"Stop"}"#), "Interlock refused this");
}

#[test]
fn a_full_disk_refuses_and_then_goes_on() {
    // From the start: no file may grow.
    let home = Home::new();
    let line = format!("trap '' XFSZ; ulimit -f 0; exec {PROGRAM} hook claude-code --deadline-ms 5000");
    let output = home.feed(home.command("bash", &["-c", &line]), &home.event("1"));
    refused(&output, "Interlock refused this");
    home.end_daemons();
    passed(&home.hook(&[], &home.event("2")));
    home.end_daemons();
    // And while it runs.
    let inject = "inject=pwrite64:error=ENOSPC:when=20..40";
    let mut daemon = home.command("strace", &["-f", "-qq", "-o", "/dev/null", "-e", "trace=pwrite64", "-e", inject]);
    daemon.args([PROGRAM, "serve", "--socket-only", "--home", path(&home.home())]);
    let mut daemon = daemon.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("strace");
    // A hook that comes before it listens would start another.
    while !home.home().join("run/interlock.sock").exists() {
        assert!(daemon.try_wait().expect("its state").is_none(), "it does not start");
        thread::sleep(Duration::from_millis(5));
    }
    let (mut refusals, mut passes) = (0, 0);
    for call in 0..60 {
        let output = home.hook(&[], &home.event(&format!("full-{call}")));
        match output.status.code() {
            Some(0) => passes += 1,
            Some(2) => {
                refused(&output, "INTERLOCK-FAULT-002");
                refusals += 1;
            }
            code => panic!("{code:?}: {}", text(&output.stderr)),
        }
        if refusals > 0 && passes > 3 && call > 20 {
            break;
        }
    }
    assert!(refusals > 0 && passes > 0, "{refusals} {passes}");
    passed(&home.hook(&[], &home.event("after")));
    home.end_daemons();
    daemon.wait().expect("its end");
}

#[test]
fn what_cannot_be_read_is_refused_unless_the_home_observes() {
    let home = Home::new();
    let large = vec![b' '; 50 << 20];
    let inputs: [(&[u8], &str); 6] = [
        (&large, "larger than any host sends"),
        (b"", "not strict JSON"),
        (b"\xff\xfe\x00garbage", "not strict JSON"),
        (b"[]", "not an object"),
        (br#"{"session_id":"s","session_id":"t"}"#, "a key stands twice"),
        (br#"{"session_id":"s","cwd":"/","hook_event_name":"Nonsense"}"#, ""),
    ];
    for (input, part) in inputs {
        let output = home.hook(&[], input);
        passed(&output);
        let said = text(&output.stderr);
        assert!(said.starts_with("observe: would be refused") && said.contains(part), "{said}");
    }
    passed(&home.hook(&[], &home.event("1")));
    home.enforce();
    for (input, part) in inputs {
        refused(&home.hook(&[], input), part);
    }
    passed(&home.hook(&[], &home.event("2")));
    assert_eq!(home.daemons().len(), 1);
}

#[test]
fn an_event_that_never_ends_is_refused_by_the_deadline() {
    let home = Home::new();
    let mut command = home.command(PROGRAM, &["hook", "claude-code", "--deadline-ms", "300"]);
    let mut child = command.stdin(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it runs");
    let mut stdin = child.stdin.take().expect("a pipe");
    stdin.write_all(b"{\"session_id\":").expect("written");
    let mut said = String::new();
    child.stderr.take().expect("a pipe").read_to_string(&mut said).expect("read");
    assert_eq!(child.wait().expect("its end").code(), Some(2), "{said}");
    assert!(said.contains("did not arrive in time"), "{said}");
    drop(stdin);
}

#[test]
fn a_hundred_hooks_at_once_start_one_daemon() {
    let home = Home::new();
    let outputs: Vec<Output> = thread::scope(|scope| {
        let home = &home;
        let one = |call: usize| scope.spawn(move || home.hook(&[], &home.event(&format!("call-{call}"))));
        let running: Vec<_> = (0..100).map(one).collect();
        running.into_iter().map(|thread| thread.join().expect("an output")).collect()
    });
    for output in &outputs {
        passed(output);
    }
    assert_eq!(home.daemons().len(), 1);
    let activity = home.run(&["activity", "--limit", "200", "--json"]);
    let recorded = text(&activity.stdout).matches("\"decision\":\"APPROVED\"").count();
    assert_eq!(recorded, 100, "every call is on record once: {}", text(&activity.stdout));
}

#[test]
fn what_is_installed_wins_over_the_environment() {
    let home = Home::new();
    let elsewhere = home.file("elsewhere");
    let hook = |more: &[&str]| {
        let mut command = home.command(PROGRAM, &["hook", "claude-code"]);
        command.args(more).env("INTERLOCK_HOME", &elsewhere).env("INTERLOCK_URL", "http://127.0.0.1:1");
        home.feed(command, &home.event("c"))
    };
    let own = home.home();
    passed(&hook(&["--home", path(&own)]));
    let fingerprint = home.fingerprint();
    passed(&hook(&["--home", path(&own), "--daemon", &fingerprint]));
    assert!(!elsewhere.exists());
    // Without the flag the environment says where, and the key pinned says no.
    refused(&hook(&["--daemon", &fingerprint]), "is not the daemon this was installed for");
    assert_eq!((home.daemons().len(), daemons_of(&elsewhere).len()), (1, 1));
    end_daemons_of(&elsewhere);
}

/// Someone who listens where a daemon should and says these things; stops when told to, and lets go a moment later.
struct Poser {
    asked: Receiver<String>,
    thread: thread::JoinHandle<()>,
}

fn pose(home: &Home, version: &'static str, key: Option<LedgerKey>, lock: Option<DataDirectory>) -> Poser {
    let run = home.home().join("run");
    let _ = fs::create_dir(&run);
    let socket = run.join("interlock.sock");
    let _ = fs::remove_file(&socket);
    let listener = UnixListener::bind(&socket).expect("a socket");
    fs::set_permissions(&socket, fs::Permissions::from_mode(0o600)).expect("a mode");
    fs::write(run.join("token"), "token").expect("a token");
    let (sender, asked) = channel();
    let thread = thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.expect("a connection");
            let mut request = BufReader::new(stream.try_clone().expect("cloned"));
            let mut head = String::new();
            while !head.ends_with("\r\n\r\n") {
                // Whoever only looks whether somebody listens says nothing.
                if request.read_line(&mut head).unwrap_or(0) == 0 {
                    break;
                }
            }
            let header = |name: &str| head.split(&format!("{name}: ")).nth(1).and_then(|rest| rest.lines().next());
            let Some(length) = header("content-length").and_then(|length| length.parse().ok()) else { continue };
            let mut body = vec![0; length];
            request.read_exact(&mut body).expect("a body");
            let line = head.lines().next().expect("a line").to_owned();
            let answer = if line.starts_with("GET /daemon ") {
                format!("{{\"version\":\"{version}\",\"fingerprint\":\"x\",\"process\":4242}}")
            } else {
                "{\"exit\":0,\"stdout\":\"\",\"stderr\":\"posed\\n\"}".to_owned()
            };
            let challenge = header("x-interlock-challenge").unwrap_or("");
            let proof = key.as_ref().map_or_else(|| "a.b".to_owned(), |key| key.prove(challenge, answer.as_bytes()));
            let length = answer.len();
            let answer = format!(
                "HTTP/1.1 200 OK\r\nx-interlock-version: {version}\r\nx-interlock-proof: {proof}\r\ncontent-length: {length}\r\n\r\n{answer}"
            );
            stream.write_all(answer.as_bytes()).expect("answered");
            let is_last = line.starts_with("POST /daemon/stop ");
            let _ = sender.send(format!("{line} {}", String::from_utf8_lossy(&body)));
            if is_last {
                break;
            }
        }
        drop(listener);
        thread::sleep(Duration::from_millis(300));
        drop(lock);
    });
    Poser { asked, thread }
}

#[test]
fn whoever_squats_on_the_socket_is_not_believed() {
    let home = Home::new();
    passed(&home.hook(&[], &home.event("1")));
    let fingerprint = home.fingerprint();
    home.end_daemons();
    let poser = pose(&home, "9.9.9", None, None);
    let output = home.hook(&["--daemon", &fingerprint], &home.event("2"));
    refused(&output, "is not the daemon this was installed for");
    assert!(!text(&output.stderr).contains("posed"), "{}", text(&output.stderr));
    assert!(poser.asked.recv().expect("asked").starts_with("POST /hook/claude-code "));
    // A key of somebody's own proves nothing either.
    let other = tempfile::tempdir().expect("a directory");
    let key = LedgerKey::open(other.path(), &SystemEntropy::new()).expect("a key");
    let _another = pose(&home, "9.9.9", Some(key), None);
    refused(&home.hook(&["--daemon", &fingerprint], &home.event("3")), "is not the daemon this was installed for");
    assert!(home.daemons().is_empty(), "none is started beside it");
}

#[test]
fn an_older_daemon_makes_way_and_a_newer_one_stays() {
    let home = Home::new();
    passed(&home.hook(&[], &home.event("1")));
    let fingerprint = home.fingerprint();
    home.end_daemons();
    let data = home.home().join("data");
    let key = || LedgerKey::open(&data, &SystemEntropy::new()).expect("a key");
    let lock = DataDirectory::take(&data).expect("the directory");
    let poser = pose(&home, "0.0.9-rc.1", Some(key()), Some(lock));
    let output = home.hook(&["--daemon", &fingerprint], &home.event("2"));
    passed(&output);
    assert_eq!(text(&output.stderr), "posed\n", "the old one's answer stands");
    let asked: Vec<String> = poser.asked.iter().collect();
    assert!(asked[0].starts_with("POST /hook/claude-code "), "{asked:?}");
    assert_eq!(asked[1..], ["GET /daemon HTTP/1.1 ", "POST /daemon/stop HTTP/1.1 4242"]);
    poser.thread.join().expect("its end");
    // The new one runs, and answers the next event.
    assert_eq!(home.daemons().len(), 1);
    let answer = home.ask("GET /daemon HTTP/1.1", "");
    assert!(answer.contains(concat!("\"version\":\"", env!("CARGO_PKG_VERSION"), "\"")), "{answer}");
    let output = home.hook(&["--daemon", &fingerprint], &home.event("3"));
    passed(&output);
    assert!(output.stderr.is_empty());
    home.end_daemons();
    for version in ["99.0.0", env!("CARGO_PKG_VERSION"), "who knows"] {
        let poser = pose(&home, version, Some(key()), None);
        assert_eq!(text(&home.hook(&["--daemon", &fingerprint], &home.event("4")).stderr), "posed\n");
        // It writes down what it was asked after it answered.
        let first = poser.asked.recv_timeout(HANG);
        assert!(first.is_ok_and(|first| first.starts_with("POST /hook/claude-code ")), "{version}");
        assert_eq!(poser.asked.recv_timeout(Duration::from_millis(100)).ok(), None, "{version}");
    }
}

#[test]
fn a_daemon_stops_for_who_knows_the_token_and_means_it() {
    let home = Home::new();
    passed(&home.hook(&[], &home.event("1")));
    let process = home.daemons()[0];
    let token = home.token();
    let stop =
        |token: &str, body: &str| home.ask(&format!("POST /daemon/stop HTTP/1.1\r\nx-interlock-token: {token}"), body);
    assert!(stop("nonsense", &process.to_string()).starts_with("HTTP/1.1 401"));
    for body in ["1", "", "-1", "{}"] {
        assert!(stop(&token, body).starts_with("HTTP/1.1 409"), "{body}");
    }
    for path in ["/daemon", "/readyz", "/no/such/path"] {
        let answer = home.ask(&format!("GET {path} HTTP/1.1"), "");
        let version = concat!("\r\nx-interlock-version: ", env!("CARGO_PKG_VERSION"), "\r\n");
        assert!(answer.contains(version), "{path}: {answer}");
    }
    assert_eq!(home.daemons(), [process]);
    let answer = stop(&token, &process.to_string());
    assert!(answer.starts_with("HTTP/1.1 200") && answer.ends_with("{\"stopping\":true}"), "{answer}");
    until("it has ended", || home.daemons().is_empty());
    assert!(!home.home().join("run/interlock.sock").exists(), "it took its socket away");
    crate::serve::is_sound(&home.home().join("data"));
    passed(&home.hook(&[], &home.event("2")));
}

#[test]
fn the_session_of_probes_is_reserved() {
    let home = Home::new();
    let event = String::from_utf8(home.event("1")).expect("text").replace("\"s\"", "\"interlock-doctor\"");
    refused(&home.hook(&[], event.as_bytes()), "the name of the session is reserved");
}

#[test]
fn a_subagent_may_look_where_the_run_stands_and_not_move_it() {
    let home = Home::new();
    let event = |tool: &str, subagent: &str| {
        let repo = home.repo();
        format!(
            r#"{{"session_id":"s","transcript_path":"/dev/null","cwd":"{}","permission_mode":"default","hook_event_name":"PreToolUse","tool_name":"mcp__interlock__interlock_{tool}","tool_input":{{}},"tool_use_id":"t"{subagent}}}"#,
            path(&repo)
        )
        .into_bytes()
    };
    let subagent = r#","agent_id":"a1","agent_type":"Explore""#;
    passed(&home.hook(&[], &event("get_state", "")));
    for enforced in [false, true] {
        if enforced {
            home.enforce();
        }
        passed(&home.hook(&[], &event("transition", "")));
        passed(&home.hook(&[], &event("get_state", subagent)));
        refused(&home.hook(&[], &event("transition", subagent)), "only the main agent makes transitions");
    }
}
