//! However early or late a signal comes, and whatever goes on then, the server ends and leaves a ledger that is sound.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use interlock_testkit::service::Client;

use crate::serve::{KEY, PROGRAM, clean, command, is_sound, scratch, start};

/// Far more than the server may take to end; only one that hangs meets it.
const HANGS: Duration = Duration::from_secs(120);
const SOCKET: &str = "run/interlock.sock";
const TERM: i32 = 15;
const INTERRUPT: i32 = 2;

fn send(child: &Child, signal: i32) {
    let status = Command::new("kill").args([format!("-{signal}"), child.id().to_string()]).status();
    assert!(status.expect("kill").success());
}

fn ended(child: &mut Child) -> ExitStatus {
    let began = Instant::now();
    loop {
        if let Some(status) = child.try_wait().expect("a child") {
            return status;
        }
        if began.elapsed() > HANGS {
            let _ = child.kill();
            panic!("it hangs");
        }
        thread::sleep(Duration::from_millis(5));
    }
}

/// Stopped as told, or by the signal itself if it came before there was anything to stop.
fn is_an_end(status: ExitStatus, signals: &[i32]) -> bool {
    use std::os::unix::process::ExitStatusExt;
    status.success() || status.signal().is_some_and(|signal| signals.contains(&signal))
}

/// A server with a home, so with a socket beside the address.
fn of_home(home: &Path) -> Command {
    let mut command = Command::new(PROGRAM);
    command.args(["serve", "--json", "--listen", "127.0.0.1:0", "--home"]).arg(home);
    clean(&mut command);
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

#[test]
fn a_signal_at_any_moment_of_the_start_ends_it() {
    let scratch = scratch();
    // What the server makes, in this order; a signal comes as soon as it is there.
    let made =
        ["", "data/lock", "data/ledger.db", "data/ledger.key", "data/attestation.keys", "run/token", SOCKET, "said"];
    for round in 0..5 {
        // It begins anew, and finds what was left behind the other times.
        let home = scratch.path().join(if round % 2 == 0 { format!("home{round}") } else { "home0".to_owned() });
        for (number, what) in made.into_iter().enumerate() {
            let signals: &[i32] = [&[TERM][..], &[INTERRUPT], &[TERM, TERM, INTERRUPT]][(round + number) % 3];
            let mut child = of_home(&home).spawn().expect("the server");
            match what {
                "" => {}
                "said" => {
                    let mut line = String::new();
                    let read = BufReader::new(child.stdout.as_mut().expect("its output")).read_line(&mut line);
                    assert!(read.expect("a line") > 0);
                }
                file => {
                    while !home.join(file).exists() && child.try_wait().expect("a child").is_none() {
                        thread::yield_now();
                    }
                }
            }
            for signal in signals {
                send(&child, *signal);
            }
            let status = ended(&mut child);
            let mut errors = String::new();
            let _ = child.stderr.take().expect("its errors").read_to_string(&mut errors);
            assert!(is_an_end(status, signals), "{what}: {status}: {errors}");
            // From when it says that it runs, a signal is an order to stop.
            assert!(what != "said" || status.success(), "{status}: {errors}");
        }
        is_sound(&home.join("data"));
    }
}

#[test]
fn a_signal_ends_it_whoever_waits() {
    let scratch = scratch();
    let data = scratch.path().join("data");
    let mut served = start(command(&data));
    let agent = crate::serve::agent(&served);
    // Somebody who waits for a ticket, who never finishes a request, who never begins one, and who reads no answer.
    let body =
        r#"{"action":{"type":"delete_database","parameters":{}},"context":{"conversation_id":"c","step_number":1}}"#;
    let token = [("x-agent-token", agent.token.as_str())];
    let mut client = Client::new(served.address);
    let asked = client.send("POST", &format!("/agents/{}/verify", agent.id), &token, body).expect("an answer");
    let asked: serde_json::Value = serde_json::from_str(&asked.body).expect("JSON");
    let mut idle = Vec::new();
    let mut open = |text: String| {
        let mut stream = TcpStream::connect(served.address).expect("a connection");
        stream.write_all(text.as_bytes()).expect("sent");
        idle.push(stream);
    };
    if let Some(ticket) = asked["approval_id"].as_str() {
        open(format!("GET /approvals/{ticket}?wait=60 HTTP/1.1\r\nhost: a\r\nx-agent-token: {}\r\n\r\n", agent.token));
    }
    open("POST /agents/register HTTP/1.1\r\nhost: a\r\n".to_owned());
    open(format!("POST /agents/register HTTP/1.1\r\nhost: a\r\nx-api-key: {KEY}\r\ncontent-length: 9\r\n\r\n{{"));
    open(String::new());
    open("GET /openapi.json HTTP/1.1\r\nhost: a\r\n\r\n".repeat(40));
    assert_eq!(client.send("GET", "/healthz", &[], "").expect("an answer").status, 200);
    send(&served.child, TERM);
    send(&served.child, TERM);
    assert!(ended(&mut served.child).success());
    drop(idle);
    is_sound(&data);
}

/// A process that has no descriptor left says so, goes on with those who are there, and takes others again later.
#[test]
fn running_out_of_descriptors_is_told() {
    let scratch = scratch();
    let mut command = command(&scratch.path().join("data"));
    command.args(["--log", "json"]);
    let mut served = start(command);
    let process = served.child.id();
    let mut early = Client::new(served.address);
    assert_eq!(early.send("GET", "/healthz", &[], "").expect("an answer").status, 200);
    let limit = |files: &str| {
        let set = Command::new("prlimit").args(["--pid", &process.to_string(), &format!("--nofile={files}:")]).status();
        assert!(set.expect("prlimit").success());
    };
    // The next number would be the first that is not in use; from there on none is allowed.
    let open = std::fs::read_dir(format!("/proc/{process}/fd")).expect("descriptors");
    let open: Vec<u32> = open.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok()).collect();
    let next = (0..).find(|number| !open.contains(number)).expect("a number");
    limit(&next.to_string());
    let late = TcpStream::connect(served.address).expect("a connection of the system");
    let mut lines = BufReader::new(served.child.stderr.take().expect("its errors")).lines();
    let told = lines.find_map(|line| line.ok().filter(|line| line.contains("connections_unaccepted"))).expect("a line");
    assert!(told.contains("open files") && told.contains("LimitNOFILE"), "{told}");
    assert_eq!(early.send("GET", "/healthz", &[], "").expect("an answer").status, 200);
    limit("1000");
    drop(late);
    assert_eq!(Client::new(served.address).send("GET", "/healthz", &[], "").expect("an answer").status, 200);
    let metrics = early.send("GET", "/metrics", &[("x-api-key", KEY)], "").expect("an answer").body;
    let counted = metrics.lines().find_map(|line| line.strip_prefix("interlock_http_unaccepted_total "));
    assert!(counted.expect("a count").parse::<u64>().expect("a number") > 0);
}
