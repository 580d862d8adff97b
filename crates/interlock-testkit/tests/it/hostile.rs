//! Inputs made to hang, overflow or leak: each must end in a ruling, on a small stack, without showing a value.

use std::thread;

use interlock_core::Code;
use interlock_core::json::{self, JsonErrorKind, Limits};
use interlock_core::state::{StateGuard, StateText};
use interlock_testkit::conformance::OPEN_SCHEMA;
use interlock_testkit::generate::Random;

/// Runs on a stack a tenth of the usual one.
fn on_a_small_stack(run: impl FnOnce() + Send + 'static) {
    on_a_stack_of(768 * 1024, run);
}

fn on_a_stack_of(bytes: usize, run: impl FnOnce() + Send + 'static) {
    thread::Builder::new().stack_size(bytes).spawn(run).expect("a thread").join().expect("no panic");
}

fn guard(schema: &str) -> StateGuard {
    StateGuard::load(schema, None, &[]).expect("a guard")
}

#[test]
fn depth_is_refused_without_recursion() {
    on_a_small_stack(|| {
        let open = guard(OPEN_SCHEMA);
        for depth in [64, 1_000, 499_999] {
            let closed = format!("{{\"a\":{}{}}}", "[".repeat(depth), "]".repeat(depth));
            assert_eq!(open.verify_payload(closed.as_str()).expect_err("deep").code, Code::StateNotInSchema, "{depth}");
            let unclosed = format!("{{\"a\":{}", "[".repeat(depth));
            assert_eq!(open.verify_payload(unclosed.as_str()).expect_err("open").code, Code::StateNotJson, "{depth}");
            let objects = "{\"a\":".repeat(depth);
            assert_eq!(open.verify_payload(objects.as_str()).expect_err("open").code, Code::StateNotJson, "{depth}");
        }
        // As deep as a state may be, through every reader.
        let deepest = format!("{{\"a\":{}{}}}", "[".repeat(63), "]".repeat(63));
        let state = open.verify_payload(deepest.as_str()).expect("just inside");
        assert_eq!(state.canonical(), deepest);
    });
}

#[test]
fn configurations_may_not_be_bottomless() {
    // Loading recurses, to a bounded depth: what a thread has by default is enough even without optimisation.
    on_a_stack_of(1024 * 1024, || {
        let schema = |depth: usize| {
            format!("{}{{\"type\":\"null\"}}{}", "{\"type\":\"array\",\"items\":".repeat(depth), "}".repeat(depth))
        };
        assert!(StateGuard::load(&schema(150), None, &[]).is_ok());
        assert!(StateGuard::load(&schema(200), None, &[]).is_err());
        assert!(StateGuard::load(&schema(100_000), None, &[]).is_err());
    });
}

#[test]
fn many_keys_are_told_apart_in_time() {
    on_a_small_stack(|| {
        let open = guard(OPEN_SCHEMA);
        let members: Vec<_> =
            (0..400_000).map(|n| format!("\"{:x}\":0", (n as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15))).collect();
        let text = format!("{{{}}}", members.join(","));
        assert!(open.verify_payload(text.as_str()).is_ok());
        let twice = format!("{{{},{}}}", members.join(","), members[200_000]);
        let denial = open.verify_payload(twice.as_str()).expect_err("a duplicate");
        assert!(denial.message.contains("Duplicate key"), "{denial}");
    });
}

#[test]
fn many_items_are_told_apart_in_time() {
    let unique = guard(r#"{"type": "array", "items": {"type": "number"}, "uniqueItems": true}"#);
    let items: Vec<_> = (0..300_000).map(|n| n.to_string()).collect();
    assert!(unique.verify_payload(format!("[{}]", items.join(",")).as_str()).is_ok());
    let denial = unique.verify_payload(format!("[{},7.0]", items.join(",")).as_str()).expect_err("7 equals 7.0");
    assert!(denial.message.contains("must not contain equal items"), "{denial}");
}

#[test]
fn keyed_arrays_of_many_items_and_many_fields_are_judged_in_time() {
    let rules = r#"{"keyed_object_array_paths": {"$.t": {"key": "id", "monotonic_boolean_fields": ["d"]}}}"#;
    let guard = StateGuard::load(OPEN_SCHEMA, Some(rules), &[]).expect("a guard");
    let items: Vec<_> = (0..200_000).map(|n| format!("{{\"id\":\"{n}\",\"d\":true}}")).collect();
    let state = format!("{{\"t\":[{}]}}", items.join(","));
    assert!(guard.verify_transition(state.as_str(), state.as_str()).is_ok());
    let fields: Vec<_> = (0..200_000).map(|n| format!("\"f{n}\":0")).collect();
    let mut backwards = fields.clone();
    backwards.reverse();
    let current = format!("{{\"t\":[{{\"id\":1,{}}}]}}", fields.join(","));
    let proposed = format!("{{\"t\":[{{{},\"id\":1}}]}}", backwards.join(","));
    assert!(guard.verify_transition(current.as_str(), proposed.as_str()).is_ok());
    let removed = format!("{{\"t\":[{{{},\"id\":1}}]}}", backwards[1..].join(","));
    let denial = guard.verify_transition(current.as_str(), removed.as_str()).expect_err("a field is gone");
    assert_eq!(denial.code, Code::StateTransition);
}

#[test]
fn reordered_objects_are_compared_once_at_every_depth() {
    let nested = |tail: &str| (0..60).fold("1".to_owned(), |inner, _| format!("{{\"a\":{inner},{tail}}}"));
    let (left, right) = (nested(r#""b":1,"c":1"#), nested(r#""c":1,"b":1"#));
    let guard = StateGuard::load(OPEN_SCHEMA, Some(r#"{"immutable_paths": ["$.x"]}"#), &[]).expect("a guard");
    let state = |inner: &str| format!("{{\"x\":{inner}}}");
    assert!(guard.verify_transition(state(&left).as_str(), state(&right).as_str()).is_ok());
    let schema = r#"{"type": "array", "items": {"type": "object", "properties": {}, "additionalProperties": true}, "uniqueItems": true}"#;
    let unique = StateGuard::load(schema, None, &[]).expect("a guard");
    assert!(unique.verify_payload(format!("[{left},{right}]").as_str()).is_err());
}

#[test]
fn long_names_are_normalised_once() {
    let long = "e\u{301}".repeat(200_000);
    let rules = r#"{"keyed_object_array_paths": {"$.t": {"key": "id", "allow_new_fields": true}}}"#;
    let guard = StateGuard::load(OPEN_SCHEMA, Some(rules), &[]).expect("a guard");
    let fields: Vec<_> = (0..2_000).map(|n| format!("\"f{n}\":0")).collect();
    let current = format!("{{\"t\":[{{\"id\":1,\"{long}\":0}}]}}");
    let proposed = format!("{{\"t\":[{{\"{long}\":0,{},\"id\":1}}]}}", fields.join(","));
    assert!(guard.verify_transition(current.as_str(), proposed.as_str()).is_ok());
    let paths: Vec<_> = (0..200).map(|n| format!("\"$.k{n}\"")).collect();
    let members: Vec<_> = (0..200).map(|n| format!("\"k{n}\":0")).collect();
    let guard = StateGuard::load(OPEN_SCHEMA, Some(&format!("{{\"immutable_paths\": [{}]}}", paths.join(","))), &[]);
    let state = format!("{{\"{long}\":0,{}}}", members.join(","));
    assert!(guard.expect("a guard").verify_transition(state.as_str(), state.as_str()).is_ok());
}

#[test]
fn long_enums_and_long_values_do_not_multiply() {
    let values: Vec<_> = (0..2_000).map(|n| format!("\"v\u{e9}{n}\"")).collect();
    let items = format!(r#"{{"type": "string", "enum": [{}]}}"#, values.join(","));
    let guard = guard(&format!(r#"{{"type": "array", "items": {items}}}"#));
    let state: Vec<_> = (0..50_000).map(|n| format!("\"ve\u{301}{}\"", n % 2_000)).collect();
    assert!(guard.verify_payload(format!("[{}]", state.join(",")).as_str()).is_ok());
    let long = format!("[\"{}\"]", "e\u{301}".repeat(500_000));
    assert_eq!(guard.verify_payload(long.as_str()).expect_err("unlisted").code, Code::StateNotInSchema);
    let open = guard_of_required(100);
    let members: Vec<_> = (0..100_000).map(|n| format!("\"e\u{301}{n}\":0")).collect();
    let denial = open.verify_payload(format!("{{{}}}", members.join(",")).as_str()).expect_err("missing");
    assert!(denial.message.contains("missing required keys"), "{denial}");
}

fn guard_of_required(count: usize) -> StateGuard {
    let names: Vec<_> = (0..count).map(|n| format!("\"r{n}\"")).collect();
    let properties: Vec<_> = names.iter().map(|name| format!("{name}: {{\"type\": \"null\"}}")).collect();
    guard(&format!(
        r#"{{"type": "object", "properties": {{{}}}, "required": [{}], "additionalProperties": true}}"#,
        properties.join(","),
        names.join(",")
    ))
}

#[test]
fn patterns_mean_what_they_mean_in_json_schema() {
    let matches = |pattern: &str, text: &str| {
        let schema = format!(r#"{{"type": "string", "pattern": {}}}"#, json::quote(pattern));
        guard(&schema).verify_payload(json::quote(text).as_str()).is_ok()
    };
    for (pattern, good, bad) in [
        (r"^\d+$", "123", "\u{663}"),
        (r"^\w$", "_", "\u{e9}"),
        (r"^.$", "\u{1f600}", "\u{2028}"),
        (r"^[\d.-]$", "-", "x"),
        (r"^[^--a]*$", "zz", "B5"),
        (r"^[a\-z]$", "-", "b"),
        (r"^[a&&b]+$", "&ab", "c"),
        (r"^[[]$", "[", "]"),
        (r"^a\/b\u00e9\x41$", "a/b\u{e9}A", "a/bA"),
        (r"^(?<year>\d{4})-(?:\d\d)$", "2026-11", "2026-1"),
        (r"^\p{Lu}\P{Lu}$", "Aa", "AA"),
        (r"b\b", "ab", "ba"),
        (r"^\s$", "\u{3000}", "x"),
        ("z]", "xz]", "z"),
        ("^a{2,3}{}$", "aa{}", "a{}"),
    ] {
        assert!(matches(pattern, good), "{pattern} refuses {good}");
        assert!(!matches(pattern, bad), "{pattern} accepts {bad}");
    }
    for pattern in [
        "[]a]", "[^]", "^[].]$", "(?i)a", "(?x)a", "(?P<n>a)", r"\A", r"\z", r"\a", r"\x{41}", r"[z-a]", r"[\d-z]",
        "[a", r"\1",
    ] {
        let schema = format!(r#"{{"type": "string", "pattern": {}}}"#, json::quote(pattern));
        assert!(StateGuard::load(&schema, None, &[]).is_err(), "{pattern} is loaded");
    }
}

#[test]
fn patterns_are_matched_in_one_pass() {
    for pattern in ["^(x+x+)+y$", "(x*)*y", "x{1,900}y", "(x|x)*y"] {
        let guard = guard(&format!(r#"{{"type": "string", "pattern": "{pattern}"}}"#));
        let text = format!("\"{}\"", "x".repeat(8_000_000));
        assert_eq!(guard.verify_payload(text.as_str()).expect_err("no y").code, Code::StateNotInSchema);
    }
    // What cannot be had in a small table is refused when it is loaded.
    for pattern in ["(a|b)*a(a|b){20}", r"(a)\\1", "(?=a)b", "a{1000}{1000}"] {
        let schema = format!(r#"{{"type": "string", "pattern": "{pattern}"}}"#);
        assert!(StateGuard::load(&schema, None, &[]).is_err(), "{pattern}");
    }
}

#[test]
fn combining_marks_without_end_are_normalised_in_time() {
    let open = guard(OPEN_SCHEMA);
    let marks = "\u{315}\u{300}".repeat(400_000);
    let text = format!("{{\"e{marks}\":\"e{marks}\"}}");
    let ruling = open.verify_payload(text.as_str());
    assert!(ruling.is_ok(), "{:?}", ruling.err());
}

#[test]
fn texts_that_are_no_texts_are_refused_in_order() {
    let open = guard(OPEN_SCHEMA);
    let code = |given: StateText<'_>| open.verify_payload(given).expect_err("refused").code;
    assert_eq!(code(StateText::NotText), Code::StateNotText);
    assert_eq!(code(StateText::NotUnicode), Code::StateNotJson);
    assert_eq!(code(StateText::TooLong), Code::StateNotJson);
    assert_eq!(code(StateText::Bytes(b"\xff")), Code::StateNotJson);
    assert_eq!(code(StateText::Bytes(b" \n")), Code::StateNotText);
    let blank = " ".repeat(json::BYTES_MAX + 1);
    assert_eq!(code(StateText::Text(&blank)), Code::StateNotText);
    let cut = [vec![b'"'; json::BYTES_MAX], vec![0xC3]].concat();
    let denial = open.verify_payload(cut.as_slice()).expect_err("too long");
    assert!(denial.message.contains("more than"), "{denial}");
}

#[test]
fn limits_can_be_lowered_and_not_raised() {
    let lower = guard(OPEN_SCHEMA).with_limits(&Limits { depth: 2, nodes: 3, ..Limits::STATE });
    assert!(lower.verify_payload(r#"{"a":1,"b":2}"#).is_ok());
    assert!(lower.verify_payload(r#"{"a":1,"b":2,"c":3}"#).is_err());
    assert!(lower.verify_payload(r#"{"a":{"b":{}}}"#).is_err());
    let wide = Limits { depth: usize::MAX, bytes: usize::MAX, digits: usize::MAX, ..Limits::STATE };
    let deep = "[".repeat(1_000) + &"]".repeat(1_000);
    let error = json::parse(&deep, &wide).expect_err("too deep");
    assert!(matches!(error.kind, JsonErrorKind::TooDeep { .. }), "{error}");
    assert!(json::parse(&"1".repeat(4_097), &wide).is_err());
    let narrow = Limits { exponent: 10, ..Limits::STATE };
    assert!(json::parse("0.00000000000001", &narrow).is_err(), "it would be printed with an exponent beyond the limit");
}

#[test]
fn a_canonical_text_that_is_too_long_is_refused_before_it_is_written() {
    let open = guard(OPEN_SCHEMA);
    let text = format!("{{\"a\":\"{}\"}}", "é".repeat(3_000_000));
    let denial = open.verify_payload(text.as_str()).expect_err("18 MB when escaped");
    assert_eq!(denial.code, Code::StateNotJson, "{denial}");
}

#[test]
fn messages_never_hold_a_value() {
    const SECRET: &str = "s3cr3t";
    let guarded =
        guard(r#"{"type": "object", "properties": {"a": {"type": "integer"}}, "additionalProperties": false}"#);
    for value in [r#""s3cr3t""#, r#"["s3cr3t"]"#, r#"{"k": "s3cr3t"}"#, r#"1.5e7777"#, r#""s3cr3t"#, r#""s3cr3t\q""#] {
        for key in ["a", "b"] {
            let text = format!("{{\"{key}\": {value}}}");
            let message = guarded.verify_payload(text.as_str()).expect_err("refused").message;
            assert!(!message.contains(SECRET) && !message.contains("7777"), "{message}");
        }
    }
    let mut random = Random::new(7);
    for _ in 0..2_000 {
        let rules = random.rules().to_json();
        let (current, proposed) = (random.task_state(), random.task_state());
        let with_secret = |text: String| text.replace("\"t0\"", "\"s3cr3t\"").replace("\"lost\"", "\"s3cr3t\"");
        let (current, proposed) = (with_secret(current.to_json()), with_secret(proposed.to_json()));
        let guard = StateGuard::load(OPEN_SCHEMA, Some(&rules), &[]).expect("a guard");
        if let Err(denial) = guard.verify_transition(current.as_str(), proposed.as_str()) {
            assert!(!denial.message.contains(SECRET), "{denial}");
        }
    }
}

#[test]
fn keys_in_messages_are_shown_safely() {
    let closed = guard(r#"{"type": "object", "properties": {}}"#);
    let keys = ["\\u001b[2J", "\\u202e", "a\\nb", "\u{200b}"];
    for key in keys {
        let message = closed.verify_payload(format!("{{\"{key}\": 1}}").as_str()).expect_err("unexpected").message;
        assert!(message.chars().all(interlock_core::is_visible), "{message:?}");
    }
    let long = "k".repeat(90_000);
    let message = closed.verify_payload(format!("{{\"{long}\": 1}}").as_str()).expect_err("unexpected").message;
    assert!(message.len() < 400, "{} bytes", message.len());
}
