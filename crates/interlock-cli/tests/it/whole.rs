//! Whole ways through the real server: from nothing to an approved action on the command line, events that survive a
//! kill, checkpoints kept elsewhere, and the documentation's samples.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Command, Output};
use std::sync::mpsc::{Receiver, channel};
use std::thread;

use interlock_testkit::gate::{TestAgent, register_with};
use interlock_testkit::repository;
use interlock_testkit::service::{Answer, Client};
use interlock_testkit::wait::{HANG, until};

use crate::serve::{KEY, PROGRAM, Served, clean, command, is_sound, scratch, start};
use crate::text;

fn ask(served: &Served, agent: &TestAgent, tool: &str, step: u64) -> Answer {
    let body = format!(r#"{{"parameters":{{}},"context":{{"conversation_id":"c","step_number":{step}}}}}"#);
    let path = format!("/agents/{}/tools/{tool}", agent.id);
    let headers = [("x-agent-token", agent.token.as_str())];
    Client::new(served.address).send("POST", &path, &headers, &body).expect("an answer")
}

fn agent(served: &Served) -> TestAgent {
    let body = r#"{"name":"bot","type":"supervised","principal_id":"ops"}"#;
    register_with(&mut Client::new(served.address), KEY, body).expect("an agent")
}

fn operate(served: &Served, key: &str, arguments: &[&str]) -> Output {
    let mut command = Command::new(PROGRAM);
    command.args(arguments).args(["--server", &format!("http://{}", served.address)]);
    clean(&mut command);
    command.env("INTERLOCK_OPERATOR_KEY", key).output().expect("it runs")
}

fn member(text: &str, name: &str) -> String {
    let rest = text.split(&format!("\"{name}\":\"")).nth(1).unwrap_or_else(|| panic!("no {name} in {text}"));
    rest.split('"').next().expect("a value").to_owned()
}

#[test]
fn an_approver_decides_on_the_command_line_and_a_registrar_does_not() {
    let scratch = scratch();
    let data = scratch.path().join("data");
    let served = start(command(&data));
    let agent = agent(&served);
    let made = |role: &str| {
        let output = operate(&served, KEY, &["keys", "create", "--name", "Ada", "--role", role, "--json"]);
        member(text(&output.stdout), "key")
    };
    let (approver, registrar) = (made("approver"), made("registrar"));
    let asked = ask(&served, &agent, "drop_table", 1);
    let ticket = member(&asked.body, "approval_id");
    let listed = operate(&served, &approver, &["approvals", "list"]);
    assert!(text(&listed.stdout).contains("drop_table"), "{listed:?}");
    let shown = operate(&served, &approver, &["approvals", "show", &ticket]);
    assert!(text(&shown.stdout).contains("bot") && text(&shown.stdout).contains("drop_table"), "{shown:?}");
    let refused = operate(&served, &registrar, &["approvals", "approve", &ticket]);
    assert_eq!(refused.status.code(), Some(1), "{refused:?}");
    assert!(text(&refused.stderr).contains("INTERLOCK-AUTH-002"), "{refused:?}");
    let approved = operate(&served, &approver, &["approvals", "approve", &ticket, "--reason", "checked"]);
    assert!(approved.status.success() && text(&approved.stdout).starts_with("APPROVED"), "{approved:?}");
    let shown = operate(&served, &approver, &["approvals", "show", &ticket]);
    assert!(text(&shown.stdout).contains("Ada") && text(&shown.stdout).contains("checked"), "{shown:?}");
    let again = operate(&served, &approver, &["approvals", "deny", &ticket]);
    assert!(again.status.code() == Some(1) && text(&again.stderr).contains("INTERLOCK-APPROVAL-001"), "{again:?}");
    let suspended = operate(&served, KEY, &["agents", "suspend", &agent.id, "--reason", "odd"]);
    assert!(suspended.status.success(), "{suspended:?}");
    let refused = ask(&served, &agent, "read_database", 2);
    assert!(refused.status == 403 && refused.body.contains("QWED-AGENT-003"), "{}", refused.body);
    let rotated = operate(&served, KEY, &["agents", "rotate-token", &agent.id]);
    assert!(text(&rotated.stdout).contains("qwed_agent_"), "{rotated:?}");
    assert_eq!(ask(&served, &agent, "read_database", 2).status, 401, "the old token is refused at once");
    let activity = operate(&served, &approver, &["activity", "--limit", "5"]);
    assert!(text(&activity.stdout).contains("PENDING"), "{activity:?}");
    drop(served);
    is_sound(&data);
}

/// What a receiver got: the head and the body of each request, answered with 204.
fn receive(listener: TcpListener) -> Receiver<(String, String)> {
    let (sender, receiver) = channel();
    thread::spawn(move || {
        for stream in listener.incoming() {
            let Ok(stream) = stream else { return };
            if let Some(request) = read_request(stream)
                && sender.send(request).is_err()
            {
                return;
            }
        }
    });
    receiver
}

fn read_request(stream: TcpStream) -> Option<(String, String)> {
    stream.set_read_timeout(Some(HANG)).ok()?;
    let mut reader = BufReader::new(stream);
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        if reader.read_line(&mut head).ok()? == 0 {
            return None;
        }
    }
    let lower = head.to_ascii_lowercase();
    let length = lower.lines().find_map(|line| line.strip_prefix("content-length: ")?.trim().parse().ok())?;
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    reader.get_mut().write_all(b"HTTP/1.1 204 No Content\r\nconnection: close\r\n\r\n").ok()?;
    Some((lower, String::from_utf8(body).ok()?))
}

fn bundle(directory: &Path, text: &str) {
    fs::create_dir(directory).expect("a directory");
    fs::write(directory.join("interlock.toml"), text).expect("a bundle");
}

#[test]
fn an_event_outlives_the_server_and_a_checkpoint_is_kept_elsewhere() {
    let scratch = scratch();
    let (data, policy) = (scratch.path().join("data"), scratch.path().join("policy"));
    // Nothing listens there until the server was killed.
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = listener.local_addr().expect("an address").port();
    drop(listener);
    let elsewhere = scratch.path().join("elsewhere.txt");
    bundle(
        &policy,
        &format!(
            "[principals.ops]\nwebhook = 'http://127.0.0.1:{port}/hook'\nsecret = 'a secret of at least 24 bytes'\n\
             [checkpoints]\nfile = '{}'\n",
            elsewhere.display()
        ),
    );
    let serve = || {
        let mut command = command(&data);
        command.arg("--bundle").arg(&policy);
        start(command)
    };
    let mut served = serve();
    let agent = agent(&served);
    let ticket = member(&ask(&served, &agent, "drop_table", 1).body, "approval_id");
    served.child.kill().expect("killed");
    served.child.wait().expect("an end");
    let received = receive(TcpListener::bind(("127.0.0.1", port)).expect("the port again"));
    let served = serve();
    let (head, body) = received.recv_timeout(HANG).expect("the event");
    assert!(head.starts_with("post /hook http/1.1"), "{head}");
    for name in ["webhook-id: evt_", "webhook-timestamp: ", "webhook-signature: v1,"] {
        assert!(head.contains(name), "no {name} in {head}");
    }
    assert!(body.contains("interlock.approval.pending") && body.contains(&ticket), "{body}");
    operate(&served, KEY, &["approvals", "deny", &ticket]);
    let (_, body) = received.recv_timeout(HANG).expect("the next event");
    assert!(body.contains("interlock.approval.resolved") && body.contains("\"cause\":\"denied\""), "{body}");
    // What was delivered is not sent again after a restart, once that is on record.
    let delivered = || {
        let headers = [("x-api-key", KEY)];
        let metrics = Client::new(served.address).send("GET", "/metrics", &headers, "").expect("an answer");
        metrics.body.contains("\ninterlock_webhooks_delivered_total 2\n")
    };
    until("both are on record", delivered);
    drop(served);
    let served = serve();
    // They are sent in order, so what comes next is the next one.
    let ticket = member(&ask(&served, &agent, "drop_table", 2).body, "approval_id");
    let (_, body) = received.recv_timeout(HANG).expect("another event");
    assert!(body.contains("interlock.approval.pending") && body.contains(&ticket), "an event came twice: {body}");
    until("a checkpoint is elsewhere", || elsewhere.exists());
    let kept = fs::read_to_string(&elsewhere).expect("a checkpoint elsewhere");
    assert!(kept.starts_with("interlock/"), "{kept}");
    drop(served);
    let mut check = Command::new(PROGRAM);
    check.args(["audit", "consistency"]).arg(&elsewhere).arg("--data").arg(&data);
    clean(&mut check);
    let output = check.output().expect("it runs");
    assert!(output.status.success(), "{output:?}");
    is_sound(&data);
}

#[test]
fn the_samples_of_the_documentation_run() {
    let scratch = scratch();
    let served = start(command(&scratch.path().join("data")));
    let output = Command::new("python3")
        .arg(repository().join("examples/agent/document_001.py"))
        .env("INTERLOCK_URL", format!("http://{}", served.address))
        .env("INTERLOCK_API_KEY", KEY)
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .output()
        .expect("python");
    assert!(output.status.success(), "{}\n{}", text(&output.stdout), text(&output.stderr));
    assert!(text(&output.stdout).lines().count() >= 15, "{}", text(&output.stdout));
}
