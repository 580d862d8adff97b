//! Events from whoever wants to get past: each is refused, none stops the reader.

use interlock_core::json::{BYTES_MAX, STATE_DEPTH_MAX};
use interlock_hosts::{Host, Kind, read, render_unreadable};
use proptest::prelude::*;

/// The event before a tool, with the members of every host.
fn before(host: Host, tool: &str, input: &str) -> String {
    let name = match host {
        Host::ClaudeCode | Host::Codex => "PreToolUse",
        Host::Cursor => "preToolUse",
        Host::Gemini => "BeforeTool",
    };
    let ids = r#""session_id":"s","conversation_id":"s","cwd":"/src""#;
    format!(r#"{{"hook_event_name":"{name}",{ids},"tool_name":"{tool}","tool_input":{input}}}"#)
}

fn refused(host: Host, text: impl AsRef<[u8]>) {
    let text = text.as_ref();
    let start = String::from_utf8_lossy(text.get(..text.len().min(120)).unwrap_or_default()).into_owned();
    let Err(unreadable) = read(host, text, None) else { panic!("{host} read {start}") };
    let said = render_unreadable(host, &unreadable.reason);
    assert_eq!(said.exit, 2);
    assert!(!said.stderr.trim().is_empty());
    assert!(!unreadable.reason.contains("s3cret"), "{}", unreadable.reason);
}

#[test]
fn what_is_not_strict_json_is_refused() {
    for host in Host::ALL {
        let fine = before(host, "T", "{}");
        assert!(read(host, fine.as_bytes(), None).is_ok(), "{host}");
        for text in [
            "",
            "null",
            "[]",
            "\"PreToolUse\"",
            "{}",
            "{",
            "nonsense",
            &format!("\u{feff}{fine}"),
            &format!("{fine}{fine}"),
            &format!("{fine},"),
            &fine.replacen('{', "{\"s3cret\":1,\"s3cret\":2,", 1),
            &fine.replacen("\"cwd\"", "\"cwd\":\"/etc\",\"cwd\"", 1),
            &fine.replacen("\"cwd\"", "\"cwd\":\"/etc\",\"\\u0063wd\"", 1),
            &fine.replacen("{}", r#"{"command":"a","command":"b"}"#, 1),
            &fine.replacen("{}", r#"{"é":"a","é":"b"}"#, 1),
            &fine.replacen("{}", r#""\ud800""#, 1),
            &fine.replacen("{}", r#"{"a":"\udc00\ud800"}"#, 1),
            &fine.replacen("{}", "{\"a\":NaN}", 1),
            &fine.replacen("{}", "{\"a\":1e9999999}", 1),
            &fine.replacen("{}", "{\"a\":\"\u{1}\"}", 1),
            &fine.replacen("{}", "/* all right */{}", 1),
        ] {
            refused(host, text);
        }
        let mut bytes = fine.clone().into_bytes();
        *bytes.iter_mut().rev().nth(1).unwrap() = 0xFF;
        refused(host, &bytes);
        refused(host, [0xFF, 0xFE, b'{', 0]);
    }
}

#[test]
fn limits_have_an_inside_and_an_outside() {
    let host = Host::ClaudeCode;
    // The event is one level, the input is the second.
    let nested = |depth: usize| before(host, "T", &format!("{}{}", "[".repeat(depth), "]".repeat(depth)));
    assert!(read(host, nested(STATE_DEPTH_MAX - 1).as_bytes(), None).is_ok());
    refused(host, nested(STATE_DEPTH_MAX));
    refused(host, nested(1_000_000));
    let empty = before(host, "Write", r#"{"file_path":"a","content":""}"#).len();
    let filled = |bytes: usize| {
        before(host, "Write", &format!(r#"{{"file_path":"a","content":"{}"}}"#, "x".repeat(bytes - empty)))
    };
    assert!(read(host, filled(BYTES_MAX).as_bytes(), None).is_ok());
    refused(host, filled(BYTES_MAX + 1));
}

#[test]
fn what_must_be_there_must_be_there_and_be_what_it_is() {
    for host in Host::ALL {
        let fine = before(host, "T", "{}");
        let session = if host == Host::Cursor { "conversation_id" } else { "session_id" };
        for key in ["hook_event_name", session, "cwd", "tool_name", "tool_input"] {
            refused(host, fine.replacen(&format!("\"{key}\""), "\"other\"", 1));
            if key == "tool_input" {
                continue;
            }
            let start = fine.find(&format!("\"{key}\":")).unwrap() + key.len() + 3;
            let end = start + 1 + fine[start + 1..].find('"').unwrap() + 1;
            for value in ["null", "7", "[\"s3cret\"]", "{}", "\"\"", "true"] {
                refused(host, format!("{}{value}{}", &fine[..start], &fine[end..]));
            }
        }
        for name in ["PreToolUse2", "pretooluse", "PRETOOLUSE", "BeforeEverything", "beforeShell", "PreToolUse "] {
            let start = fine.find(':').unwrap() + 1;
            let end = fine.find(',').unwrap();
            refused(host, format!("{}\"{name}\"{}", &fine[..start], &fine[end..]));
        }
        for odd in
            ["\"tool_use_id\":7", "\"agent_id\":[]", "\"subagent_id\":{}", "\"mcp_server\":1", "\"mcp_context\":{}"]
        {
            let text = fine.replacen('{', &format!("{{{odd},"), 1);
            // Members of other hosts are none of this one's.
            let own = match odd.get(1..5) {
                Some("tool") => true,
                Some("agen") => host != Host::Cursor,
                Some("suba") => host == Host::Cursor,
                _ if odd.contains("mcp_server") => matches!(host, Host::ClaudeCode | Host::Codex),
                _ => host == Host::Gemini,
            };
            if own {
                refused(host, text);
            } else {
                assert!(read(host, text.as_bytes(), None).is_ok(), "{host} {odd}");
            }
        }
    }
}

/// A field of a tool that does not hold what it should is unread, whichever field and whichever value.
#[test]
fn wrong_types_are_unread() {
    let cases = [
        (Host::ClaudeCode, "Bash", "command"),
        (Host::ClaudeCode, "Read", "file_path"),
        (Host::ClaudeCode, "Write", "file_path"),
        (Host::ClaudeCode, "Write", "content"),
        (Host::ClaudeCode, "Edit", "replace_all"),
        (Host::ClaudeCode, "MultiEdit", "edits"),
        (Host::ClaudeCode, "NotebookEdit", "edit_mode"),
        (Host::ClaudeCode, "Glob", "pattern"),
        (Host::ClaudeCode, "WebFetch", "url"),
        (Host::Codex, "Bash", "command"),
        (Host::Codex, "apply_patch", "command"),
        (Host::Cursor, "Shell", "command"),
        (Host::Cursor, "Delete", "path"),
        (Host::Gemini, "run_shell_command", "command"),
        (Host::Gemini, "run_shell_command", "dir_path"),
        (Host::Gemini, "read_many_files", "include"),
        (Host::Gemini, "web_fetch", "prompt"),
    ];
    for (host, tool, field) in cases {
        for value in ["7", "{}", "[[\"x\"]]", "[{\"path\":\"x\"}]", "1e3", "[7]"] {
            let event = before(host, tool, &format!("{{\"{field}\":{value}}}"));
            let Ok(Kind::BeforeTool { call, .. }) = read(host, event.as_bytes(), None).map(|event| event.kind) else {
                panic!("{event}");
            };
            assert!(call.intent.unread.contains(&field.to_owned()), "{host} {tool} {field} {value}");
            assert!(call.intent.commands.is_empty() && call.intent.writes.is_empty() && call.intent.urls.is_empty());
        }
        // The name in other letters is another field.
        let event = before(host, tool, &format!("{{\"{}\":\"x\"}}", field.to_uppercase()));
        let Ok(Kind::BeforeTool { call, .. }) = read(host, event.as_bytes(), None).map(|event| event.kind) else {
            panic!("{event}");
        };
        assert!(call.intent.unread.contains(&field.to_uppercase()));
    }
}

proptest! {
    /// Bytes changed at random: an event or a refusal.
    #[test]
    fn no_bytes_stop_the_reader(
        host in 0..4_usize,
        flips in proptest::collection::vec((0..300_usize, any::<u8>()), 1..6),
    ) {
        let host = Host::ALL[host];
        let input = r#"{"command":"ls","file_path":"/a","edits":[{"old_string":"a"}]}"#;
        let mut bytes = before(host, "Bash", input).into_bytes();
        for (at, byte) in flips {
            let at = at % bytes.len();
            bytes[at] = byte;
        }
        drop(read(host, &bytes, None));
    }

    /// Whatever a patch is made of.
    #[test]
    fn no_patch_stops_the_reader(lines in proptest::collection::vec(
        prop_oneof![
            Just("*** Begin Patch".to_owned()), Just("*** End Patch".to_owned()), Just("*** Add File: a".to_owned()),
            Just("*** Update File: b".to_owned()), Just("*** Move to: c".to_owned()),
            Just("*** Delete File: d".to_owned()),
            Just("@@".to_owned()), Just("*** End of File".to_owned()), "[ +-]?[a-z *]{0,5}",
        ], 0..12))
    {
        let patch = lines.join("\\n");
        let event = before(Host::Codex, "apply_patch", &format!("{{\"command\":\"{patch}\"}}"));
        let Ok(Kind::BeforeTool { call, .. }) = read(Host::Codex, event.as_bytes(), None).map(|event| event.kind) else {
            panic!("{event}");
        };
        // Read as a whole, or not at all.
        prop_assert_eq!(call.intent.unread.is_empty(), !call.intent.writes.is_empty());
        let headers = ["*** Add File: ", "*** Update File: ", "*** Move to: ", "*** Delete File: "];
        let named = lines.iter().filter(|line| headers.iter().any(|header| line.starts_with(header)));
        if call.intent.unread.is_empty() {
            prop_assert_eq!(call.intent.writes.len(), named.count(), "no header goes unseen");
        }
    }
}
