//! The operator's commands: what they ask, what they show, and how they fail.

use std::fs;
use std::io::Read;
use std::process::Stdio;

use interlock_core::json::{self, Limits};
use interlock_testkit::repository;

use crate::golden::check;
use crate::recorded::{KEY, Recorded, Spawned};
use crate::{run, text};

const APPROVAL: &str = "appr_0123456789abcdef0123456789abcdef";
const AGENT: &str = "agent_0123456789abcdef0123456789abcdef";
const OTHER: &str = "agent_01234fff89abcdef0123456789abcdef";
const KEY_ID: &str = "key_0123456789abcdef0123456789abcdef";

/// What an agent would write that wants to be misread: colours, a cleared screen, a reversed line, nothing at all where
/// something is, markup, a formula, a line that looks like ours, and marks that pile up over other lines.
const HOSTILE: &str = "\u{1b}[2J\u{1b}[31mok\u{202e}dab\u{200b}\u{2066}<script>alert(1)</script>=HYPERLINK(\"x\")\r\n  \
                       APPROVED  by admin  e\u{301}\u{301}\u{301}";

fn ticket(action: &str) -> String {
    format!(
        r#"{{"approval_id":"{APPROVAL}","status":"pending","kind":"action","agent_id":"{AGENT}","agent_name":{},"principal_id":{},"decision_id":"dec_1","action_type":"file_write","action":{action},"corrected_query":"2+2 = 4","user_intent":{},"justification":{},"conversation_id":{},"step_number":4,"risk_level":"high","why":"the rule `writes` asks for a person","opened_at":"2026-11-15T11:57:00.000Z","expires_at":"2026-11-15T12:12:00.000Z","spent":false}}"#,
        json::quote(HOSTILE),
        json::quote("ops@example.com"),
        json::quote("tell\u{202e} them\nyes: interlock approvals approve appr_evil"),
        json::quote(HOSTILE),
        json::quote("a  b"),
    )
}

fn hostile_action() -> String {
    format!(
        r#"{{"type":"file_write","parameters":{{"path":"/etc/passwd","content":{},"lines":{},"deep":[{{"n":1.50,"empty":{{}},"none":null,"yes":true}},[]],{}:1}}}}"#,
        json::quote(&format!("{HOSTILE}{}", "A".repeat(90 * 1024))),
        json::quote("first\nsecond \"quoted\" \\ back\n\u{202e}third\nyes: interlock approvals approve appr_evil"),
        json::quote("\u{1b}]0;title\u{7}"),
    )
}

#[test]
fn hostile_tickets_are_shown_inert() {
    let server = Recorded::start();
    let ticket = ticket(&hostile_action());
    let decided = format!(
        r#"{{"approval_id":"appr_ffff","status":"approved","kind":"action","agent_id":"{AGENT}","agent_name":"漢字 bot","principal_id":"p","action_type":"send_email","risk_level":"medium","why":"w","opened_at":"2026-11-15T11:00:00.000Z","expires_at":"2026-11-15T11:15:00.000Z","decided_by":{},"decided_at":"2026-11-15T11:01:00.000Z","reason":{},"spent":true}}"#,
        json::quote("Ada\u{202e}"),
        json::quote("fine\nby me"),
    );
    let trust = format!(
        r#"{{"approval_id":"appr_eeee","status":"pending","kind":"trust","agent_id":"{AGENT}","agent_name":"climber","principal_id":"p","why":"a person grants trust","trust":{{"from_level":1,"to_level":2,"justification":{},"evidence":{{"rulings":120,"counted":118,"denied":2,"violations":0,"budget_exceeded":1,"executions_succeeded":90,"executions_failed":3,"since":"2026-11-01T00:00:00.000Z","cut":false}}}},"opened_at":"2026-11-15T11:57:00.000Z","expires_at":"2026-11-15T12:00:45.000Z","spent":false}}"#,
        json::quote(HOSTILE),
    );
    server.on(
        "GET /approvals?limit=100",
        200,
        &format!(r#"{{"approvals":[{ticket},{decided},{trust}],"next_cursor":"17"}}"#),
    );
    server.on(&format!("GET /approvals/{APPROVAL}"), 200, &ticket);
    server.on("GET /approvals?limit=1000", 200, &format!(r#"{{"approvals":[{decided},{trust}],"next_cursor":null}}"#));
    server.on("GET /approvals/appr_ffff", 200, &decided);
    server.on("GET /approvals/appr_eeee", 200, &trust);
    check("approvals_list.txt", 0, &server.run(&["approvals", "list", "--status", "all"]));
    check("approvals_show.txt", 0, &server.run(&["approvals", "show", APPROVAL]));
    check("approvals_show_decided.txt", 0, &server.run(&["approvals", "show", "ffff"]));
    check("approvals_show_trust.txt", 0, &server.run(&["approvals", "show", "appr_eeee"]));
    // With everything: still inert, and really everything.
    let full = server.run(&["approvals", "show", APPROVAL, "--full"]);
    let shown = text(&full.stdout);
    assert!(shown.matches('A').count() > 90 * 1024, "{} letters", shown.matches('A').count());
    assert!(!shown.contains("--full"));
    for line in shown.lines() {
        assert!(line.chars().all(interlock_core::is_visible), "{line:?}");
        assert!(line.chars().count() < 400, "{line:.80}");
    }
    // What the agent wrote never begins a line.
    let claim = shown.split("its own words").nth(1).expect("the claim");
    let own = claim.lines().skip(1).take_while(|line| !line.is_empty());
    assert!(own.into_iter().all(|line| line.starts_with("  │ ")), "{claim:.2000}");
    // As JSON it is the same document, and as inert.
    let output = server.run(&["approvals", "show", APPROVAL, "--json"]);
    let said = text(&output.stdout);
    assert!(said.trim_end().chars().all(interlock_core::is_visible), "{said:.300}");
    let (said, recorded) = (json::parse(said, &Limits::CONFIG).expect("JSON"), json::parse(&ticket, &Limits::CONFIG));
    assert!(json::equal(said.root(), recorded.expect("JSON").root()));
}

#[test]
fn agents_keys_and_activity_are_pinned() {
    let server = Recorded::start();
    let agent = |id: &str, name: &str, status: &str, mode: &str| {
        format!(
            r#"{{"agent_id":"{id}","did":"did:qwed:agent:{id}","name":{},"type":"supervised","principal_id":{},"description":{},"status":"{status}","mode":"{mode}","trust_level":1,"created_at":"2026-11-15T10:00:00.000Z","permissions":{{"allowed_engines":["math"],"allowed_tools":[{}],"blocked_tools":[]}},"budget":{{"max_daily_cost_usd":100,"max_cost_per_request_usd":null,"max_requests_per_hour":null,"max_requests_per_day":null,"max_tokens_per_request":null,"max_daily_tokens":null}}}}"#,
            json::quote(name),
            json::quote(&"p".repeat(90)),
            json::quote(HOSTILE),
            json::quote("a, b"),
        )
    };
    let (first, second) = (agent(AGENT, HOSTILE, "active", "enforce"), agent(OTHER, "plain", "suspended", "observe"));
    server.on("GET /agents?limit=100", 200, &format!(r#"{{"agents":[{first},{second}],"next_cursor":null}}"#));
    server.on(&format!("GET /agents/{AGENT}"), 200, &first);
    let budget = r#"{"cost":{"max_daily_usd":100,"current_daily_usd":1.25,"max_per_request_usd":1},"requests":{"max_per_hour":1000,"current_hour":3,"max_per_day":10000,"current_day":30},"tokens":{"max_per_request":null,"max_daily":null,"current_daily":5000}}"#;
    server.on(&format!("GET /agents/{AGENT}/budget"), 200, budget);
    check("agents_list.txt", 0, &server.run(&["agents", "list"]));
    check("agents_show.txt", 0, &server.run(&["agents", "show", AGENT]));
    let keys = format!(
        r#"{{"keys":[{{"key_id":"{KEY_ID}","name":{},"role":"approver","status":"active","created_at":"2026-11-15T10:00:00.000Z","created_by":"operator"}},{{"key_id":"key_ffff","name":"ci","role":"registrar","max_trust":1,"status":"revoked","created_at":"2026-11-15T10:00:00.000Z","created_by":"operator"}}]}}"#,
        json::quote(HOSTILE),
    );
    server.on("GET /keys", 200, &keys);
    check("keys_list.txt", 0, &server.run(&["keys", "list"]));
    server.on("GET /activity?limit=20", 200, &activity(&[4, 3, 2, 1]));
    check("activity.txt", 0, &server.run(&["activity"]));
    server.on("GET /activity?limit=6", 200, &activity(&[4, 3]));
    server.on(
        "GET /approvals?status=pending&limit=1000",
        200,
        &format!(r#"{{"approvals":[{}],"next_cursor":null}}"#, ticket("{}")),
    );
    let metrics = "# HELP interlock_ledger_entries Entries.\ninterlock_ledger_entries 40\ninterlock_ledger_ready 1\n\
                   interlock_ledger_waiting 2\ninterlock_ledger_batches_total 10\ninterlock_ledger_commands_total 35\n\
                   interlock_ledger_batch_microseconds_total 25000\ninterlock_decisions_total{decision=\"APPROVED\"} 30\n\
                   interlock_decisions_total{decision=\"DENIED\"} 5\n";
    server.on("GET /metrics", 200, metrics);
    let output = server.run(&["top", "--once"]);
    let shown = text(&output.stdout).replace(&server.address.to_string(), "ADDRESS");
    check("top.txt", 0, &std::process::Output { stdout: shown.into_bytes(), ..output });
    let output = server.run(&["top", "--once", "--json"]);
    assert!(json::parse(text(&output.stdout), &Limits::CONFIG).is_ok(), "{}", text(&output.stdout));
}

/// Rulings with these numbers, newest first as the server gives them.
fn activity(numbers: &[u32]) -> String {
    let row = |number: &u32| {
        let (decision, code) = match number % 3 {
            0 => ("DENIED", r#","code":"QWED-AGENT-004""#),
            1 => ("APPROVED", ""),
            _ => ("PENDING", r#","code":"QWED-AGENT-TRUST-002""#),
        };
        format!(
            r#"{{"timestamp":"2026-11-15T12:00:{number:02}.000Z","agent_id":"{AGENT}","decision_id":"dec_{number}","action_type":"calculate","decision":"{decision}","enforced":true{code},"conversation_id":{},"step_number":{number},"cost_usd":0.01,"dry_run":false}}"#,
            json::quote(HOSTILE),
        )
    };
    let rows: Vec<String> = numbers.iter().map(row).collect();
    format!(
        r#"{{"activities":[{}],"next_cursor":null,"summary":{{"total":3,"approved":2,"corrected":0,"pending":0,"budget_exceeded":0,"denied":1,"complete":true}}}}"#,
        rows.join(",")
    )
}

#[test]
fn every_command_asks_what_the_routes_expect() {
    // Whichever of them is asked for: an agent, a key, a ticket, what was erased.
    let record = agent_row(AGENT).replacen(
        '{',
        r#"{"agent_token":"qwed_agent_1","key_id":"key_1","key":"ilk_1","role":"admin","created_by":"operator","approval_id":"appr_1","kind":"action","agent_name":"n","why":"w","opened_at":"2026-11-15T11:57:00.000Z","expires_at":"2026-11-15T12:12:00.000Z","spent":false,"erased":3,"#,
        1,
    );
    let (approve, agent, key) =
        (format!("/approvals/{APPROVAL}"), format!("/agents/{AGENT}"), format!("/keys/{KEY_ID}"));
    let post = |path: &str, verb: &str| format!("POST {path}/{verb}");
    #[rustfmt::skip]
    let cases: Vec<(Vec<&str>, String, &str)> = vec![
        (vec!["approvals", "approve", APPROVAL], post(&approve, "approve"), "{}"),
        (vec!["approvals", "deny", APPROVAL, "--reason", "no \"way\""], post(&approve, "deny"), r#"{"reason":"no \"way\""}"#),
        (vec!["agents", "suspend", AGENT, "--reason", "r"], post(&agent, "suspend"), r#"{"reason":"r"}"#),
        (vec!["agents", "reactivate", AGENT], post(&agent, "reactivate"), "{}"),
        (vec!["agents", "complaint", AGENT], post(&agent, "complaint"), "{}"),
        (vec!["agents", "observe", AGENT], post(&agent, "observe"), "{}"),
        (vec!["agents", "enforce", AGENT], post(&agent, "enforce"), "{}"),
        (vec!["agents", "rotate-token", AGENT], post(&agent, "rotate-token"), "{}"),
        (vec!["agents", "erase", AGENT, "--reason", "asked"], post(&agent, "erase"), r#"{"reason":"asked"}"#),
        (vec!["agents", "register", "--name", "n\n", "--type", "trusted", "--principal", "p", "--trust", "0"],
            "POST /agents/register".to_owned(), r#"{"name":"n\n","type":"trusted","principal_id":"p","trust_level":0}"#),
        (vec!["keys", "create", "--name", "n", "--role", "registrar", "--max-trust", "1"],
            "POST /keys".to_owned(), r#"{"name":"n","role":"registrar","max_trust":1}"#),
        (vec!["keys", "revoke", KEY_ID, "--reason", "r"], post(&key, "revoke"), r#"{"reason":"r"}"#),
        (vec!["approvals", "list", "--agent", AGENT, "--limit", "7", "--cursor", "9"],
            format!("GET /approvals?status=pending&agent={AGENT}&limit=7&cursor=9"), ""),
        (vec!["agents", "list", "--limit", "3", "--cursor", "a&b=c"], "GET /agents?limit=3&cursor=a%26b%3Dc".to_owned(), ""),
        (vec!["activity", "--agent", AGENT, "--from", "2026-11-15T12:00:00Z", "--to", "1794744030000"],
            format!("GET {agent}/activity?limit=20&from=2026-11-15T12%3A00%3A00Z&to=1794744030000"), ""),
    ];
    for (arguments, line, body) in cases {
        let server = Recorded::start();
        server.on(&line, 200, &record);
        let output = server.run(&[&arguments[..], &["--json"]].concat());
        assert_eq!(output.status.code(), Some(0), "{arguments:?}: {}", text(&output.stdout));
        assert_eq!(text(&output.stdout), format!("{record}\n"), "{arguments:?}");
        let asked = server.asked();
        let asked = asked.last().expect("a request");
        assert_eq!((asked.line.as_str(), asked.body.as_str()), (line.as_str(), body), "{arguments:?}");
        assert!(asked.head.contains(&format!("authorization: Bearer {KEY}\r\n")), "{}", asked.head);
        if !arguments.contains(&"list") && !arguments.contains(&"activity") {
            let output = server.run(&arguments);
            assert_eq!(output.status.code(), Some(0), "{arguments:?}: {}", text(&output.stderr));
        }
    }
    let server = Recorded::start();
    server.on(&format!("POST {agent}/rotate-token"), 200, &record);
    check("agents_rotate_token.txt", 0, &server.run(&["agents", "rotate-token", AGENT]));
}

/// An agent, as the service tells of one.
fn agent_row(id: &str) -> String {
    format!(
        r#"{{"agent_id":"{id}","did":"did:qwed:agent:{id}","name":"n","type":"supervised","principal_id":"p","status":"active","mode":"enforce","trust_level":1,"created_at":"2026-11-15T10:00:00.000Z","permissions":{{"allowed_engines":[],"allowed_tools":[],"blocked_tools":[]}},"budget":{{"max_daily_cost_usd":null,"max_cost_per_request_usd":null,"max_requests_per_hour":null,"max_requests_per_day":null,"max_tokens_per_request":null,"max_daily_tokens":null}}}}"#
    )
}

#[test]
fn a_while_ago_is_a_time() {
    let server = Recorded::start();
    server.run(&["activity", "--from", "2h"]);
    let line = server.asked()[0].line.clone();
    let from: u64 = line.rsplit("from=").next().and_then(|from| from.parse().ok()).expect("milliseconds");
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).expect("a time").as_millis();
    let ago = u64::try_from(now).expect("now") - from;
    assert!((7_200_000..7_260_000).contains(&ago), "{line}");
}

#[test]
fn the_beginning_of_an_id_will_do_if_it_is_no_others() {
    let server = Recorded::start();
    let row = agent_row;
    server.on("GET /agents?limit=1000", 200, &format!(r#"{{"agents":[{}],"next_cursor":"2"}}"#, row(AGENT)));
    server.on("GET /agents?limit=1000&cursor=2", 200, &format!(r#"{{"agents":[{}],"next_cursor":null}}"#, row(OTHER)));
    for id in [AGENT, OTHER] {
        server.on(&format!("POST /agents/{id}/suspend"), 200, &row(id));
    }
    let suspend = |id: &str| {
        let before = server.asked().iter().filter(|asked| asked.line.starts_with("POST")).count();
        let output = server.run(&["agents", "suspend", id]);
        let posts: Vec<_> = server.asked().into_iter().filter(|asked| asked.line.starts_with("POST")).collect();
        (output.status.code(), text(&output.stderr).to_owned(), posts.get(before).map(|asked| asked.line.clone()))
    };
    let to = |id: &str| Some(format!("POST /agents/{id}/suspend"));
    assert_eq!(suspend("agent_01234fff").2, to(OTHER), "on the second page");
    assert_eq!(suspend("012345").2, to(AGENT), "without the prefix");
    assert_eq!(suspend("agent_01234567…").2, to(AGENT), "as a table cut it off");
    let (code, said, posted) = suspend("agent_01234");
    assert!(code == Some(1) && posted.is_none() && said.contains("is the beginning of 2 ids"), "{said}");
    let (code, said, posted) = suspend("agent_ffff");
    assert!(code == Some(1) && posted.is_none() && said.contains("no agent has an id"), "{said}");
    let (code, said, posted) = suspend("agent_01");
    assert!(code == Some(2) && posted.is_none() && said.contains("too short"), "{said}");
    // Half an id erases nothing.
    let output = server.run(&["agents", "erase", "agent_012345"]);
    assert!(output.status.code() == Some(2) && text(&output.stderr).contains("whole id"));
    // An id is one part of a path, whatever it holds.
    let output = server.run(&["agents", "suspend", "x/../../keys?"]);
    assert_eq!(output.status.code(), Some(1), "{}", text(&output.stderr));
}

#[test]
fn refusals_say_what_to_do_next() {
    #[rustfmt::skip]
    let cases = [
        (401, "INTERLOCK-AUTH-001", 2, "the key from INTERLOCK_API_KEY is not one of this server's"),
        (401, "QWED-AGENT-002", 2, "the key from INTERLOCK_API_KEY is not one of this server's"),
        (403, "INTERLOCK-AUTH-002", 1, "has a role that may not do this"),
        (409, "INTERLOCK-APPROVAL-001", 1, "says who decided"),
        (410, "INTERLOCK-APPROVAL-002", 1, "the agent has to ask again"),
        (409, "INTERLOCK-APPROVAL-004", 1, "deny it"),
        (404, "INTERLOCK-APPROVAL-005", 1, "approvals list --status all"),
        (403, "QWED-AGENT-003", 1, "agents reactivate"),
        (409, "QWED-AGENT-BUDGET-001", 1, "interlock explain QWED-AGENT-BUDGET-001"),
        (429, "INTERLOCK-RATE-001", 2, "try again in 1 s"),
        (503, "INTERLOCK-FAULT-002", 2, "interlock explain INTERLOCK-FAULT-002"),
    ];
    for (status, code, exit, next) in cases {
        let server = Recorded::start();
        let body = format!(r#"{{"error":{{"code":"{code}","message":"said \u001b[31mso"}}}}"#);
        server.on(&format!("POST /approvals/{APPROVAL}/approve"), status, &body);
        let output = server.run(&["approvals", "approve", APPROVAL]);
        let said = text(&output.stderr);
        assert_eq!(output.status.code(), Some(exit), "{code}: {said}");
        assert!(said.contains(code) && said.contains(next) && said.contains("said \\u{1b}[31mso"), "{code}: {said}");
        assert!(output.stdout.is_empty());
        let output = server.run(&["approvals", "approve", APPROVAL, "--json"]);
        assert_eq!((output.status.code(), text(&output.stdout)), (Some(exit), format!("{body}\n").as_str()), "{code}");
        assert!(output.stderr.is_empty());
    }
}

#[test]
fn answers_that_are_none_are_faults() {
    let long = format!("HTTP/1.1 200 OK\r\nx: {}\r\n\r\n", "y".repeat(40_000));
    #[rustfmt::skip]
    let cases: [(&[u8], &str); 12] = [
        (b"", "broke the connection off"),
        (b"SSH-2.0-OpenSSH\r\n\r\n", "not HTTP"),
        (b"HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\n{}", "broke the connection off"),
        (b"HTTP/1.1 200 OK\r\ncontent-length: 99999999999\r\n\r\n{}", "larger than any answer"),
        (b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\ncontent-length: 3\r\n\r\n{}", "two lengths"),
        (b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n", "a chunk has no size"),
        (b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nffffffff\r\n", "larger than any answer"),
        (b"HTTP/1.1 200 OK\r\n\r\n\xff", "not UTF-8"),
        (b"HTTP/1.1 200 OK\r\n\r\n<html>", "not JSON"),
        (b"HTTP/1.1 301 Moved\r\nlocation: http://elsewhere/\r\ncontent-length: 0\r\n\r\n", "redirects to"),
        (b"HTTP/1.1 502 Bad\r\ncontent-length: 6\r\n\r\n<html>", "not as an Interlock server does"),
        (long.as_bytes(), "broke the connection off"),
    ];
    for (answer, part) in cases {
        let server = Recorded::start();
        server.on_bytes("GET /agents?limit=100", answer);
        let output = server.run(&["agents", "list"]);
        let said = text(&output.stderr);
        let shown = String::from_utf8_lossy(answer).chars().take(80).collect::<String>();
        assert!(output.status.code() == Some(2) && said.contains(part), "{shown:?}: {said}");
    }
    let server = Recorded::start();
    server.on_bytes(
        "GET /agents?limit=100",
        b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n3;x=y\r\n{\"a\r\nd\r\ngents\":[     \r\n15\r\n],\"next_cursor\":null}\r\n0\r\n\r\n",
    );
    let output = server.run(&["agents", "list"]);
    assert!(output.status.success(), "{}", text(&output.stderr));
}

#[test]
fn server_and_key_are_found_in_order() {
    let server = Recorded::start();
    server.on("GET /agents?limit=100", 200, r#"{"agents":[],"next_cursor":null}"#);
    server.on("GET /below/agents?limit=100", 200, r#"{"agents":[],"next_cursor":null}"#);
    let directory = tempfile::tempdir().expect("a directory");
    let file = directory.path().join("some.key");
    fs::write(&file, "key-of-a-file\n").expect("a key");
    fs::write(directory.path().join("operator.key"), "key-of-the-home\n").expect("a key");
    let last = || server.asked().last().expect("a request").head.clone();
    let mut command = server.command(&["agents", "list", "--key-file", crate::path(&file)]);
    assert!(command.env("INTERLOCK_OPERATOR_KEY", "key-of-the-operator").output().expect("it runs").status.success());
    assert!(last().contains("Bearer key-of-a-file\r\n"), "{}", last());
    let mut command = server.command(&["agents", "list"]);
    command.env("INTERLOCK_OPERATOR_KEY", "key-of-the-operator").output().expect("it runs");
    assert!(last().contains("Bearer key-of-the-operator\r\n"), "{}", last());
    let mut command = server.command(&["agents", "list", "--server", &format!("http://{}/below/", server.address)]);
    command.env_remove("INTERLOCK_API_KEY").env("INTERLOCK_HOME", directory.path()).output().expect("it runs");
    assert!(last().contains("Bearer key-of-the-home\r\n") && last().starts_with("GET /below/agents"), "{}", last());

    // What cannot be used is said before anything is sent.
    let before = server.asked().len();
    fs::write(&file, "key\r\nx-admin: yes\n").expect("a key");
    let output = server.run(&["agents", "list", "--key-file", crate::path(&file)]);
    assert!(output.status.code() == Some(2) && text(&output.stderr).contains("holds no key"));
    let output = server.run(&["agents", "list", "--key-file", "/nowhere/operator.key"]);
    assert!(output.status.code() == Some(2) && text(&output.stderr).contains("--key-file"));
    for url in
        ["127.0.0.1:1", "ftp://x", "http://", "http://a:b:1", "http://a@b", "http://x:0", "http://x?y", "http://a b"]
    {
        let output = server.run(&["agents", "list", "--server", url]);
        let said = text(&output.stderr);
        assert!(output.status.code() == Some(2) && said.contains("is not the URL of a server"), "{url}: {said}");
    }
    let output = server.run(&["agents", "list", "--server", "https://127.0.0.1:1"]);
    assert!(text(&output.stderr).contains("https://"), "{}", text(&output.stderr));
    let output = server.run(&["agents", "list", "--server", "http://127.0.0.1:1"]);
    let said = text(&output.stderr);
    assert!(output.status.code() == Some(2) && said.contains("interlock serve"), "{said}");
    assert_eq!(server.asked().len(), before);
}

#[test]
fn following_prints_new_rulings_once_oldest_first() {
    let server = Recorded::start();
    server.on("GET /activity?limit=2", 200, &activity(&[2, 1]));
    server.on("GET /activity?limit=1000", 200, &activity(&[2, 1]));
    server.on_bytes("GET /activity?limit=1000", b"HTTP/1.1 503 Later\r\ncontent-length: 0\r\n\r\n");
    server.on("GET /activity?limit=1000", 200, &activity(&[4, 3, 2, 1]));
    server.on("GET /activity?limit=1000", 200, &activity(&[5, 4, 3, 2, 1]));
    let mut child = Spawned::start(&mut server.command(&["activity", "--follow", "--limit", "2", "--json"]));
    let mut lines = child.lines();
    for expected in 1..=5 {
        let line = lines.next().expect("a line").expect("text");
        let document = json::parse(&line, &Limits::CONFIG).expect("one document each");
        let id = document.root().get("decision_id").and_then(|id| id.as_str()).expect("an id").text().to_owned();
        assert_eq!(id, format!("dec_{expected}"));
    }
    child.0.kill().expect("killed");
    let mut said = String::new();
    child.0.stderr.take().expect("a pipe").read_to_string(&mut said).expect("text");
    assert!(said.contains("still trying") && said.contains("answers again"), "{said}");

    // As text each is a line too, and nothing in it moves a cursor.
    let mut child = Spawned::start(&mut server.command(&["activity", "--follow", "--limit", "2"]));
    let mut lines = child.lines();
    let line = lines.next().expect("a line").expect("text");
    assert!(
        line.starts_with("2026-11-15 12:00:01  APPROVED") && line.chars().all(interlock_core::is_visible),
        "{line}"
    );
}

#[test]
fn a_watch_ends_when_nobody_reads() {
    let server = Recorded::start();
    let list = |ids: &[&str]| {
        let rows: Vec<String> = ids.iter().map(|id| ticket("{}").replace(APPROVAL, id)).collect();
        format!(r#"{{"approvals":[{}],"next_cursor":null}}"#, rows.join(","))
    };
    let path = "GET /approvals?status=pending&limit=1000";
    for ids in [&["appr_1"][..], &["appr_2", "appr_1"], &["appr_2"], &["appr_3", "appr_2"], &["appr_4"], &["appr_5"]] {
        server.on(path, 200, &list(ids));
    }
    let mut child = Spawned::start(&mut server.command(&["approvals", "watch", "--interval", "1"]));
    let mut lines = child.lines();
    for expected in ["appr_1", "appr_2", "appr_3"] {
        let line = lines.next().expect("a line").expect("text");
        assert!(line.contains(&format!("  {expected}  file_write of ")), "{line}");
        assert!(line.chars().all(interlock_core::is_visible), "{line}");
    }
    drop(lines);
    // Whoever goes on for nobody never ends.
    assert!(child.0.wait().expect("its end").success());
}

#[test]
fn top_draws_over_a_terminal_and_nowhere_else() {
    let server = Recorded::start();
    server.on("GET /metrics", 200, "interlock_ledger_ready 1\ninterlock_ledger_batches_total 1\n");
    server.on("GET /metrics", 200, "interlock_ledger_ready 1\ninterlock_ledger_batches_total 100001\n");
    // What it says until this was said twice.
    let drawn = |command: &mut std::process::Command, twice: &str| {
        let mut child = Spawned::start(command.env("INTERLOCK_API_KEY", KEY).env("TERM", "xterm"));
        let (mut output, mut said) = (child.0.stdout.take().expect("its output"), Vec::new());
        while String::from_utf8_lossy(&said).matches(twice).count() < 2 {
            let mut some = [0; 4096];
            let length = output.read(&mut some).expect("its output");
            assert!(length > 0, "it ended: {}", String::from_utf8_lossy(&said));
            said.extend_from_slice(&some[..length]);
        }
        String::from_utf8_lossy(&said).into_owned()
    };
    let piped = |forced: bool| {
        let mut command = server.command(&["top", "--interval", "1"]);
        command.env_remove("NO_COLOR");
        if forced {
            command.env("CLICOLOR_FORCE", "1");
        }
        // With the second beginning the first is whole.
        drawn(&mut command, "Interlock at")
    };
    let plain = piped(false);
    assert!(!plain.contains('\u{1b}') && plain.matches("Interlock at").count() >= 2, "{plain}");
    assert!(plain.contains("(- per second)"), "the first look has no rate: {plain}");
    assert!(plain.contains("not found") || plain.contains("no such route"), "{plain}");
    assert!(!piped(true).contains("\u{1b}[H"), "colours may be forced, a screen may not");
    let top = format!("exec {} top --interval 1", env!("CARGO_BIN_EXE_interlock"));
    let mut command = std::process::Command::new("script");
    command.args(["-qec", &top, "/dev/null"]).env("INTERLOCK_URL", format!("http://{}", server.address));
    let drawn = drawn(command.env("NO_COLOR", "1").stdin(Stdio::null()), "\u{1b}[H\u{1b}[J");
    assert!(!drawn.contains("\u{1b}[2m"), "{drawn:?}");
}

/// Every command that can be run, as words: `approvals show`.
fn commands() -> Vec<String> {
    fn descend(words: &[String], found: &mut Vec<String>) {
        let arguments: Vec<&str> = words.iter().map(String::as_str).chain(["--help"]).collect();
        let output = run(&arguments);
        let help = text(&output.stdout).to_owned();
        let Some(list) = help.split("\nCommands:\n").nth(1) else {
            return found.push(words.join(" "));
        };
        for line in list.lines().take_while(|line| !line.is_empty()) {
            let name = line.split_whitespace().next().expect("a name");
            if name != "help" && line.starts_with("  ") && !line.starts_with("   ") {
                descend(&[words, &[name.to_owned()]].concat(), found);
            }
        }
    }
    let mut found = Vec::new();
    descend(&[], &mut found);
    found
}

#[test]
fn every_command_is_on_the_page_with_an_example() {
    let page = fs::read_to_string(repository().join("docs/command-line.md")).expect("the page");
    let commands = commands();
    assert!(commands.len() > 25, "{commands:?}");
    for command in &commands {
        assert!(page.contains(&format!("`interlock {command}")), "`interlock {command}` is not on the page");
        let arguments: Vec<&str> = command.split(' ').chain(["--help"]).collect();
        let help = text(&run(&arguments).stdout).to_owned();
        assert!(help.contains("xample"), "`interlock {command}` has no example");
    }
    // And nothing is on the page that is not there.
    for line in page.lines().filter(|line| line.starts_with("| `interlock ")) {
        let named = line.trim_start_matches("| `interlock ");
        assert!(commands.iter().any(|command| named.starts_with(command.as_str())), "{line}");
    }
}

#[test]
fn completions_know_the_new_commands() {
    for (shell, part) in [("bash", "rotate-token"), ("zsh", "rotate-token"), ("fish", "rotate-token")] {
        let output = run(&["completions", shell]);
        assert!(text(&output.stdout).contains(part), "{shell}");
    }
}
