//! Rate limits: the windows by cases, by many threads, against a slow reference, and over HTTP.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;

use interlock_core::Digest;
use interlock_core::bundle::Bundle;
use interlock_http::{RateLimiter, RateLimits, Verdict};
use interlock_testkit::gate::register;
use interlock_testkit::generate::Random;
use interlock_testkit::rate::cases;
use interlock_testkit::service::{Answer, Client, OPERATOR_KEY, Server};

#[test]
fn the_cases() {
    let cases = cases();
    for (file, case) in &cases {
        let limiter = match case.windows_max {
            Some(windows_max) => RateLimiter::with_windows_max(case.limits(), windows_max),
            None => RateLimiter::new(case.limits()),
        };
        println!("{file}: {}", case.name);
        case.run(|key, now_ms| limiter.check(key, now_ms));
    }
    assert!(cases.len() >= 19, "cases were lost");
}

fn limits(per_key: u32, global: Option<u32>) -> RateLimits {
    RateLimits { requests_per_minute_per_key: per_key, requests_per_minute: global }
}

/// Whatever the times, no sixty seconds hold more than the limit; and what is refused is refused for a reason: the
/// sixty-one seconds up to now hold the limit.
#[test]
fn no_sixty_seconds_hold_more_than_the_limit() {
    let mut random = Random::new(7);
    for _ in 0..300 {
        let limit = 1 + random.below(8) as u32;
        let limiter = RateLimiter::new(limits(limit, None));
        let (mut now, mut let_in) = (random.below(100_000) as u64, Vec::new());
        for _ in 0..200 {
            now += [0, 1, 400, 1_000, 7_000, 20_000, 59_999, 61_000][random.below(8)];
            let verdict = limiter.check(Some(Digest::of(&["k"])), now);
            let within = |ms: u64| let_in.iter().filter(|at: &&u64| **at + ms > now).count() as u32;
            let buckets = let_in.iter().filter(|at: &&u64| **at / 1_000 + 61 > now / 1_000).count() as u32;
            assert_eq!(verdict.allowed, buckets < limit, "at {now}: {let_in:?}");
            if verdict.allowed {
                assert!(within(60_000) < limit, "at {now}: {let_in:?}");
                let_in.push(now);
            }
            // What is promised holds: a moment before it there is no room yet, and then there is.
            if !verdict.allowed {
                let wait = u64::from(verdict.reset_seconds) * 1_000;
                let left =
                    |at: u64| let_in.iter().filter(|then: &&u64| **then / 1_000 + 61 > at / 1_000).count() as u32;
                assert!(left(now + wait) < limit, "at {now}: {verdict:?} {let_in:?}");
                assert!(left(now + wait - 1_000) >= limit, "at {now}: {verdict:?} {let_in:?}");
            }
        }
    }
}

#[test]
fn many_threads_exceed_no_limit() {
    let limiter = RateLimiter::new(limits(500, Some(1_700)));
    let let_in: [AtomicU32; 4] = Default::default();
    thread::scope(|scope| {
        for thread in 0..8_usize {
            let (limiter, let_in) = (&limiter, &let_in);
            scope.spawn(move || {
                for turn in 0..2_000_usize {
                    let key = (thread + turn) % 4;
                    let digest = Digest::of(&[&key.to_string()]);
                    if limiter.check(Some(digest), 10).allowed {
                        let_in[key].fetch_add(1, Ordering::Relaxed);
                    }
                }
            });
        }
    });
    let counts = let_in.map(AtomicU32::into_inner);
    assert_eq!(counts.iter().sum::<u32>(), 1_700, "{counts:?}");
    assert!(counts.iter().all(|count| *count <= 500), "{counts:?}");
    assert_eq!(limiter.windows(), 4);
}

#[test]
fn the_table_of_windows_stays_within_its_room_under_many_threads() {
    let limiter = RateLimiter::with_windows_max(limits(5, None), 100);
    thread::scope(|scope| {
        for thread in 0..4_u64 {
            let limiter = &limiter;
            scope.spawn(move || {
                for turn in 0..3_000_u64 {
                    let digest = Digest::of(&[&format!("{}", thread * 10_000 + turn)]);
                    let _: Verdict = limiter.check(Some(digest), turn * 100);
                    assert!(limiter.windows() <= 100);
                }
            });
        }
    });
    assert!(limiter.windows() > 0);
}

fn limited(bundle: &str) -> Server {
    Server::in_memory(Bundle::load(bundle, &BTreeMap::new(), false).expect("a bundle"))
}

fn header<'a>(answer: &'a Answer, name: &str) -> Option<&'a str> {
    answer.head.lines().find_map(|line| {
        let (found, value) = line.split_once(':')?;
        found.eq_ignore_ascii_case(name).then(|| value.trim())
    })
}

#[test]
fn over_http_a_key_has_its_own_limit_and_probes_have_none() {
    let server = limited("[limits]\nrequests_per_minute_per_key = 4\n");
    let mut client = server.client();
    let agent = register(&mut client, r#"{"name":"a","type":"supervised","principal_id":"p"}"#).expect("an agent");
    let other = register(&mut client, r#"{"name":"b","type":"supervised","principal_id":"p"}"#).expect("an agent");
    let budget = format!("/agents/{}/budget", agent.id);
    let token = [("x-agent-token", agent.token.as_str())];
    for left in ["3", "2", "1", "0"] {
        let answer = client.send("GET", &budget, &token, "").expect("an answer");
        assert_eq!(answer.status, 200, "{}", answer.body);
        assert_eq!(header(&answer, "ratelimit-limit"), Some("4"), "{}", answer.head);
        assert_eq!(header(&answer, "ratelimit-remaining"), Some(left), "{}", answer.head);
        assert_eq!(header(&answer, "retry-after"), None, "{}", answer.head);
    }
    let refused = client.send("GET", &budget, &token, "").expect("an answer");
    assert_eq!(refused.status, 429, "{}", refused.body);
    assert!(refused.body.contains(r#"{"error":{"code":"INTERLOCK-RATE-001""#), "{}", refused.body);
    assert_eq!(header(&refused, "ratelimit-remaining"), Some("0"));
    let seconds: u32 = header(&refused, "retry-after").expect("how long").parse().expect("seconds");
    assert!((55..=61).contains(&seconds), "{}", refused.head);
    assert_eq!(header(&refused, "ratelimit-reset"), header(&refused, "retry-after"));

    // The same agent on the way to a ruling: the body says DENIED, and nothing is recorded.
    let size = server.ledger.size();
    let body = r#"{"action":{"type":"calculate","query":"1+1"},"context":{"conversation_id":"c","step_number":1}}"#;
    for path in [format!("/agents/{}/verify", agent.id), format!("/agents/{}/tools/t", agent.id)] {
        let refused = client.send("POST", &path, &token, body).expect("an answer");
        assert_eq!(refused.status, 429);
        assert!(refused.body.starts_with(r#"{"decision":"DENIED","error":{"code":"INTERLOCK-RATE-001""#));
    }
    assert_eq!(server.ledger.size(), size);

    // Others have limits of their own: another agent, and whoever is not known. The operator has none.
    let theirs = [("x-agent-token", other.token.as_str())];
    let answer = client.send("GET", &format!("/agents/{}/budget", other.id), &theirs, "").expect("an answer");
    assert_eq!((answer.status, header(&answer, "ratelimit-remaining")), (200, Some("3")), "{}", answer.head);
    let operator = [("x-api-key", OPERATOR_KEY)];
    for _ in 0..20 {
        let answer = client.send("GET", &budget, &operator, "").expect("an answer");
        assert_eq!((answer.status, header(&answer, "ratelimit-limit")), (200, None), "{}", answer.head);
    }

    // A wrong token, a made-up key, a route that does not exist: one window for all.
    let wrong = [("x-agent-token", "qwed_agent_wrong")];
    for (path, headers, status) in [
        (budget.as_str(), &wrong[..], 401),
        (&budget, &[("x-api-key", "another")], 401),
        ("/nowhere", &[], 404),
        ("/metrics", &[], 401),
    ] {
        assert_eq!(client.send("GET", path, headers, "").expect("an answer").status, status, "{path}");
    }
    for headers in [&wrong[..], &[("x-api-key", "another")], &[("authorization", "Bearer x")], &[]] {
        assert_eq!(client.send("GET", &budget, headers, "").expect("an answer").status, 429);
    }
    // That costs the operator nothing, and probes are never refused.
    let metrics = client.send("GET", "/metrics", &operator, "").expect("an answer");
    assert!(metrics.body.contains("\ninterlock_rate_limited_total 7\n"), "{}", metrics.body);
    for _ in 0..20 {
        for path in ["/healthz", "/readyz"] {
            let answer = client.send("GET", path, &[], "").expect("an answer");
            assert_eq!((answer.status, header(&answer, "ratelimit-limit")), (200, None));
        }
    }
}

#[test]
fn over_http_the_limit_of_all_holds_for_every_key() {
    let server = limited("[limits]\nrequests_per_minute_per_key = 100\nrequests_per_minute = 2\n");
    let mut client = server.client();
    let agent = register(&mut client, r#"{"name":"a","type":"supervised","principal_id":"p"}"#).expect("an agent");
    let (path, token) = (format!("/agents/{}", agent.id), [("x-agent-token", agent.token.as_str())]);
    for left in ["1", "0"] {
        let answer = client.send("GET", &path, &token, "").expect("an answer");
        assert_eq!((answer.status, header(&answer, "ratelimit-remaining")), (200, Some(left)), "{}", answer.head);
    }
    for headers in [&token[..], &[]] {
        let answer = client.send("GET", &path, headers, "").expect("an answer");
        assert_eq!((answer.status, header(&answer, "ratelimit-limit")), (429, Some("2")), "{}", answer.head);
    }
}

/// Whoever has to stop an agent is stopped neither by what agents and strangers send nor by what all of them may.
#[test]
fn a_limit_that_is_used_up_stops_no_operator() {
    let server = limited("[limits]\nrequests_per_minute_per_key = 3\nrequests_per_minute = 4\n");
    let mut client = server.client();
    let admin = [("x-api-key", OPERATOR_KEY)];
    let agent = register(&mut client, r#"{"name":"a","type":"supervised","principal_id":"p"}"#).expect("an agent");
    let key = |client: &mut Client, body: &str| {
        let made = client.send("POST", "/keys", &admin, body).expect("an answer");
        let made: serde_json::Value = serde_json::from_str(&made.body).expect("JSON");
        made["key"].as_str().expect("a key").to_owned()
    };
    let approver = key(&mut client, r#"{"name":"ann","role":"approver"}"#);
    let registrar = key(&mut client, r#"{"name":"bot","role":"registrar","max_trust":1}"#);
    // Strangers use up the limit of all.
    for _ in 0..10 {
        let _ = client.send("GET", "/agents", &[("x-api-key", "made-up")], "").expect("an answer");
    }
    let token = [("x-agent-token", agent.token.as_str())];
    let body = r#"{"action":{"type":"calculate","query":"1+1"},"context":{"conversation_id":"c","step_number":1}}"#;
    while client.send("POST", &format!("/agents/{}/verify", agent.id), &token, body).expect("an answer").status != 429 {
    }
    assert_eq!(client.send("GET", "/agents", &[("x-api-key", &registrar)], "").expect("an answer").status, 429);
    for _ in 0..20 {
        for (path, key) in [("/approvals", approver.as_str()), ("/agents", OPERATOR_KEY), ("/activity", &approver)] {
            let answer =
                client.send("GET", path, &[("authorization", &format!("Bearer {key}"))], "").expect("an answer");
            assert_eq!(answer.status, 200, "{path}: {}", answer.body);
        }
    }
    let suspended = client.send("POST", &format!("/agents/{}/suspend", agent.id), &admin, "").expect("an answer");
    assert_eq!(suspended.status, 200, "{}", suspended.body);
}

#[test]
fn bodies_that_nobody_signed_are_counted_too() {
    let server = limited("[limits]\nrequests_per_minute_per_key = 3\n");
    let mut client = server.client();
    let agent = register(&mut client, r#"{"name":"a","type":"supervised","principal_id":"p"}"#).expect("an agent");
    let path = format!("/agents/{}/verify", agent.id);
    for status in [400, 400, 400, 429, 429] {
        assert_eq!(client.send("POST", &path, &[], "not JSON").expect("an answer").status, status);
    }
    // The agent itself is not cut off by that, wherever its token stands.
    let body = format!(
        r#"{{"agent_token":"{}","action":{{"type":"calculate","query":"1+1"}},"context":{{"conversation_id":"c","step_number":1}}}}"#,
        agent.token
    );
    assert!(client.send("POST", &path, &[], &body).expect("an answer").body.contains("APPROVED"));
}

/// A large body is counted before it is read, as nobody's; it is not counted once more when its token is known.
#[test]
fn a_request_is_counted_once() {
    let server = limited("[limits]\nrequests_per_minute_per_key = 2\n");
    let mut client = server.client();
    let agent = register(&mut client, r#"{"name":"a","type":"supervised","principal_id":"p"}"#).expect("an agent");
    let path = format!("/agents/{}/verify", agent.id);
    let body = |step: u32, token: &str, padding: usize| {
        let padding = " ".repeat(padding);
        format!(
            r#"{{"agent_token":"{token}",{padding}"action":{{"type":"calculate","query":"{step}+1"}},"context":{{"conversation_id":"c","step_number":{step}}}}}"#
        )
    };
    for step in [1, 2] {
        let answer = client.send("POST", &path, &[], &body(step, &agent.token, 40_000)).expect("an answer");
        assert!(answer.body.contains("APPROVED"), "{}", answer.body);
    }
    assert_eq!(client.send("POST", &path, &[], &body(3, &agent.token, 40_000)).expect("an answer").status, 429);
    // The agent's own window is as it was.
    for (step, status) in [(3, 200), (4, 200), (5, 429)] {
        let headers = [("x-agent-token", agent.token.as_str())];
        assert_eq!(
            client.send("POST", &path, &headers, &body(step, &agent.token, 0)).expect("an answer").status,
            status
        );
    }
}
