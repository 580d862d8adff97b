//! Settings files: what `install` puts in comes out again, and nothing else does.

use std::collections::BTreeSet;
use std::path::Path;
use std::{env, fs};

use interlock_hosts::Host;
use interlock_hosts::settings::{
    Installed, Part, Place, Problem, Scope, Wanted, install, installed, keeps_prefix, places, prefix_displaced,
    shell_prefix, switched_off, uninstall,
};
use proptest::prelude::*;

fn wanted(binary: &str) -> Wanted {
    Wanted {
        binary: binary.to_owned(),
        home: "/var/lib/it's \"interlock\"".to_owned(),
        daemon: "sha256:0a1b".to_owned(),
        timeout_s: 60,
    }
}

/// Every file of every host, once: most have the same path for the user and for a project.
fn all() -> impl Iterator<Item = (Host, Place)> {
    let both = |host| {
        let mut both = [places(host, Scope::User), places(host, Scope::Project)].concat();
        let mut seen = BTreeSet::new();
        both.retain(|place| seen.insert(place.path));
        both
    };
    Host::ALL.into_iter().flat_map(move |host| both(host).into_iter().map(move |place| (host, place)))
}

/// Install, install again, move the binary, uninstall: the text from before.
fn check(host: Host, place: &Place, before: Option<&str>) {
    let (old, new) = (wanted("/opt/old dir/interlock"), wanted("/opt/new/interlock"));
    let put = |text: Option<&str>, wanted: &Wanted| {
        install(host, place, text, wanted)
            .unwrap_or_else(|problem| panic!("{host} {}: {problem}\n{text:?}", place.path))
    };
    let first = put(before, &old);
    assert!(!first.changes.is_empty());
    let text = first.text.as_deref();
    assert_eq!(installed(host, place, text, &old), Ok(Installed::Yes), "{text:?}");
    assert_eq!(installed(host, place, text, &new), Ok(Installed::Other));
    let again = put(text, &old);
    assert_eq!((again.text.as_deref(), again.changes.len()), (text, 0), "install twice is install once");
    let moved = put(text, &new);
    assert_eq!(moved.text, put(before, &new).text, "an entry is brought up to date, not added to");
    for text in [text, moved.text.as_deref()] {
        let after = uninstall(host, place, text).unwrap();
        assert_eq!(after.text.as_deref(), before, "{host} {}: {}", place.path, text.unwrap_or_default());
        assert!(!after.changes.is_empty());
        assert_eq!(uninstall(host, place, after.text.as_deref()).unwrap().changes.len(), 0);
    }
}

#[test]
fn a_file_that_was_not_there_is_not_there_afterwards() {
    for (host, place) in all() {
        check(host, &place, None);
    }
}

/// What is written, to be looked at: into a file of its own, and into one that somebody has.
#[test]
fn what_is_installed_is_written_down() {
    let wanted = Wanted { home: "/var/lib/interlock".to_owned(), ..wanted("/usr/bin/interlock") };
    for (host, place) in all() {
        let theirs = if place.path.ends_with(".toml") {
            "model = \"o\"\n"
        } else {
            "{\n  \"theme\": \"dark\",\n  \"hooks\": {\n    \"Stop\": [{\"hooks\": []}]\n  }\n}\n"
        };
        let mut shown = String::new();
        for before in [None, Some(theirs)] {
            shown += &install(host, &place, before, &wanted).unwrap().text.unwrap();
            shown += "----\n";
        }
        let name = format!("{host}-{}.txt", place.path.trim_start_matches('.').replace('/', "-"));
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/settings").join(name);
        if env::var_os("UPDATE_GOLDEN").is_some() {
            fs::write(&path, &shown).unwrap();
        }
        assert_eq!(fs::read_to_string(&path).unwrap_or_default(), shown, "{}: UPDATE_GOLDEN=1", path.display());
    }
}

#[test]
fn texts_that_look_like_ours_come_back() {
    let texts = [
        "{}",
        "{}\n",
        "{ }",
        "{\n}\n",
        "{\"version\": 1}",
        "{\n  \"version\": 1\n}\n",
        "{\n  \"hooks\": {},\n  \"version\": 1\n}\n",
        "{\n  \"hooks\": {\n  },\n  \"version\": 1\n}\n",
        "{\"hooks\":{\"preToolUse\":[],\"PreToolUse\":[\n],\"BeforeTool\":[ ]}}",
        "{\"mcpServers\":{}}",
        "{\"env\":{}}",
        "{\"env\":{\n},\"hooks\":{}}",
        "{\"env\": {\"CLAUDE_CODE_SHELL\": \"/bin/bash\"}}",
        "{\"mcpServers\": {\n    \"other\": {\"command\": \"x\"}\n  }}",
    ];
    for (host, place) in all().filter(|(_, place)| place.path.ends_with(".json")) {
        for text in texts {
            check(host, &place, Some(text));
        }
    }
    for (host, place) in all().filter(|(_, place)| place.path.ends_with(".toml")) {
        for text in [
            "",
            "\n",
            "a = 1",
            "a = 1\n",
            "# interlock: end\n",
            "# interlock: begin",
            "# interlock: begin\na = 1\n",
            "# interlock: begin, in a file of its own",
            "[mcp_servers.other]\ncommand = \"x\"",
            "[[x]]\n\n",
        ] {
            check(host, &place, Some(text));
        }
    }
}

/// One value, written with white space of every kind.
fn value() -> impl Strategy<Value = String> {
    let leaf = prop_oneof![
        Just("null".to_owned()),
        Just("1.50".to_owned()),
        Just(r#""x, ]} \" hook""#.to_owned()),
        Just(r#"{"type": "command", "command": "other hook codex --home"}"#.to_owned()),
        Just(r#"{"hooks":[{"type":"command","command":"lint"}]}"#.to_owned()),
        "[a-zé]{0,4}".prop_map(|text| format!("\"{text}\"")),
    ];
    leaf.prop_recursive(3, 24, 4, |inner| {
        prop_oneof![
            container(proptest::collection::vec(inner.clone(), 0..4), '[', ']'),
            members(proptest::collection::btree_map("[a-z]{1,3}", inner, 0..4)),
        ]
    })
}

fn space() -> impl Strategy<Value = String> {
    prop_oneof![4 => Just(String::new()), 2 => Just(" ".to_owned()), 2 => "\n {0,4}", 1 => "[ \t\r\n]{0,3}"]
}

/// Items between brackets, with white space around each.
fn container(items: impl Strategy<Value = Vec<String>>, open: char, close: char) -> impl Strategy<Value = String> {
    (items, proptest::collection::vec(space(), 16)).prop_map(move |(items, spaces)| {
        let mut spaces = spaces.into_iter().cycle();
        let mut next = move || spaces.next().unwrap();
        let items: Vec<_> = items.into_iter().map(|item| format!("{}{item}{}", next(), next())).collect();
        let inside = if items.is_empty() { next() } else { items.join(",") };
        format!("{open}{inside}{close}")
    })
}

fn members(map: impl Strategy<Value = std::collections::BTreeMap<String, String>>) -> impl Strategy<Value = String> {
    let items = (map, space()).prop_map(|(map, space)| {
        map.into_iter().map(|(key, value)| format!("\"{key}\"{space}:{value}")).collect::<Vec<_>>()
    });
    container(items.prop_shuffle(), '{', '}')
}

/// A settings file of some host: hooks are arrays by event, servers are an object.
fn file() -> impl Strategy<Value = String> {
    let event = proptest::sample::select(vec!["PreToolUse", "stop", "preToolUse", "Stop", "BeforeTool", "Other"]);
    let arrays = container(proptest::collection::vec(value(), 0..3), '[', ']');
    let hooks = members(proptest::collection::btree_map(event.prop_map(str::to_owned), arrays, 0..4));
    let servers = members(proptest::collection::btree_map("[a-h]{1,3}", value(), 0..3));
    let env = members(proptest::collection::btree_map("[A-H]{1,3}", value(), 0..3));
    let others = proptest::collection::btree_map("[a-g]{1,3}|version", value(), 0..4);
    let root = (others, proptest::option::of(hooks), proptest::option::of(servers), proptest::option::of(env));
    let root = root.prop_map(|(mut map, hooks, servers, env)| {
        map.extend(env.map(|env| ("env".to_owned(), env)));
        map.extend(hooks.map(|hooks| ("hooks".to_owned(), hooks)));
        map.extend(servers.map(|servers| ("mcpServers".to_owned(), servers)));
        map
    });
    (space(), members(root), space()).prop_map(|(before, root, after)| format!("{before}{root}{after}"))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn what_is_installed_can_be_taken_out_to_the_byte(text in file()) {
        for (host, place) in all().filter(|(_, place)| place.path.ends_with(".json")) {
            check(host, &place, Some(&text));
        }
    }

    /// Whatever the bytes are: an edit or a problem, and an edit that can be undone.
    #[test]
    fn no_text_makes_it_panic(text in "[\\[\\]{}\",:a0 \n#=.]{0,40}") {
        for (host, place) in all() {
            if let Ok(edited) = install(host, &place, Some(&text), &wanted("/bin/interlock")) {
                prop_assert_eq!(uninstall(host, &place, edited.text.as_deref()).unwrap().text, Some(text.clone()));
            }
        }
    }
}

#[test]
fn what_others_added_since_stays() {
    let hooks = &places(Host::ClaudeCode, Scope::User)[0];
    let text = install(Host::ClaudeCode, hooks, None, &wanted("/bin/interlock")).unwrap().text.unwrap();
    // Another tool put its hook beside ours, and before ours.
    let theirs = "{\"type\": \"command\", \"command\": \"lint\"}";
    let beside = text.replacen("\"hooks\": [{", &format!("\"hooks\": [{theirs}, {{"), 1);
    let after = uninstall(Host::ClaudeCode, hooks, Some(&beside)).unwrap().text.unwrap();
    assert!(after.contains(theirs) && !after.contains("interlock"), "{after}");
    assert_eq!(installed(Host::ClaudeCode, hooks, Some(&after), &wanted("/bin/interlock")), Ok(Installed::No));

    let toml = &places(Host::Codex, Scope::User)[1];
    let text = install(Host::Codex, toml, Some("a = 1"), &wanted("/bin/interlock")).unwrap().text.unwrap();
    let after = uninstall(Host::Codex, toml, Some(&format!("{text}[b]\nc = 2\n"))).unwrap().text;
    assert_eq!(after.as_deref(), Some("a = 1\n[b]\nc = 2\n"));
}

#[test]
fn a_file_written_anew_by_the_host_loses_only_ours() {
    // As a host's own printer would write it: other white space everywhere.
    let place = &places(Host::Gemini, Scope::User)[0];
    let wanted = wanted("/bin/interlock");
    let text = install(Host::Gemini, place, Some("{\"theme\": \"x\"}"), &wanted).unwrap().text.unwrap();
    let squeezed: String = text.replace('\n', "").replace(": ", ":");
    assert_eq!(installed(Host::Gemini, place, Some(&squeezed), &wanted), Ok(Installed::Yes));
    let after = uninstall(Host::Gemini, place, Some(&squeezed)).unwrap().text.unwrap();
    assert!(!after.contains("interlock") && after.contains("\"theme\":\"x\""), "{after}");
}

#[test]
fn what_cannot_be_edited_safely_is_left_alone() {
    let wanted = wanted("/bin/interlock");
    let hooks = |text: &str| install(Host::ClaudeCode, &places(Host::ClaudeCode, Scope::User)[0], Some(text), &wanted);
    for text in ["", "// a comment\n{}", "{\"a\": 1,}", "{\"a\": 1, \"a\": 2}", "\u{feff}{}", "{"] {
        assert!(matches!(hooks(text), Err(Problem::NotStrict(_))), "{text:?}");
    }
    for text in ["[]", "{\"hooks\": []}", "{\"hooks\": {\"PreToolUse\": {}}}"] {
        assert!(matches!(hooks(text), Err(Problem::Shape(_))), "{text:?}");
    }
    let problem = hooks("{\"secret\": 1, \"secret\": 2}").unwrap_err().to_string();
    assert!(!problem.contains("secret"), "{problem}");
    let taken = "{\"mcpServers\": {\"interlock\": {\"command\": \"other\"}}}";
    let server = &places(Host::Cursor, Scope::User)[1];
    assert_eq!(server.parts, [Part::Server]);
    assert_eq!(install(Host::Cursor, server, Some(taken), &wanted), Err(Problem::NameTaken));
    assert_eq!(uninstall(Host::Cursor, server, Some(taken)).unwrap().text.as_deref(), Some(taken));
    let toml = &places(Host::Codex, Scope::User)[1];
    let toml = |text: &str| install(Host::Codex, toml, Some(text), &wanted).unwrap_err();
    assert_eq!(toml("[mcp_servers.interlock]\ncommand = \"x\""), Problem::NameTaken);
    assert!(matches!(toml("mcp_servers = {}"), Problem::Shape(_)));
    assert!(matches!(toml("= 1"), Problem::NotStrict(_)));
}

#[test]
fn only_what_every_reader_understands_alike_is_written() {
    let place = &places(Host::Gemini, Scope::User)[0];
    let fine = wanted("/bin/interlock");
    let refused = |wanted: Wanted| matches!(install(Host::Gemini, place, None, &wanted), Err(Problem::Unwritable(_)));
    assert!(!refused(fine.clone()));
    assert!(refused(Wanted { binary: "interlock".to_owned(), ..fine.clone() }), "not absolute");
    assert!(refused(Wanted { binary: "/bin/$GEMINI_CWD/x".to_owned(), ..fine.clone() }), "the host would replace it");
    assert!(refused(Wanted { home: "/var\n/x".to_owned(), ..fine.clone() }));
    assert!(refused(Wanted { daemon: "a b".to_owned(), ..fine.clone() }));
    assert!(refused(Wanted { timeout_s: 0, ..fine }));
}

#[test]
fn what_switches_hooks_off_is_found() {
    let off = |host, index: usize, text: &str| {
        switched_off(host, &places(host, Scope::User)[index], Some(text)).unwrap().len()
    };
    assert_eq!(off(Host::ClaudeCode, 0, "{\"disableAllHooks\": true}"), 1);
    assert_eq!(off(Host::ClaudeCode, 0, "{\"disableAllHooks\": false}"), 0);
    assert_eq!(off(Host::Gemini, 0, "{\"hooksConfig\": {\"enabled\": false, \"disabled\": [\"interlock\"]}}"), 2);
    assert_eq!(off(Host::Gemini, 0, "{\"hooksConfig\": {\"enabled\": true, \"disabled\": [\"lint\"]}}"), 0);
    assert_eq!(off(Host::Codex, 1, "[features]\ncodex_hooks = false"), 1);
    assert_eq!(off(Host::Codex, 1, "[features]\nhooks = true"), 0);
}

/// A prefix of the user's own is never overwritten, and one that was taken away is put back.
#[test]
fn a_shell_prefix_is_ours_or_the_user_s() {
    let place = &places(Host::ClaudeCode, Scope::User)[0];
    let wanted = wanted("/bin/interlock");
    for theirs in ["\"/usr/bin/firejail\"", "\"\"", "\"bin/interlock-shell\"", "5"] {
        let text = format!("{{\"env\": {{\"CLAUDE_CODE_SHELL_PREFIX\": {theirs}}}}}");
        assert_eq!(install(Host::ClaudeCode, place, Some(&text), &wanted), Err(Problem::PrefixTaken), "{theirs}");
        assert_eq!(uninstall(Host::ClaudeCode, place, Some(&text)).unwrap().text.as_deref(), Some(text.as_str()));
        assert!(prefix_displaced(&text).unwrap().is_some(), "{theirs}");
        assert!(!keeps_prefix(Some(&text), false, &shell_prefix(&wanted.home)), "{theirs}");
    }
    assert!(matches!(install(Host::ClaudeCode, place, Some("{\"env\": []}"), &wanted), Err(Problem::Shape(_))));
    let text = install(Host::ClaudeCode, place, Some("{\"env\": {\"A\": \"b\"}}"), &wanted).unwrap().text.unwrap();
    assert_eq!(prefix_displaced(&text), Ok(None));
    assert!(keeps_prefix(Some(&text), true, &shell_prefix(&wanted.home)));
    let entry = ", \"CLAUDE_CODE_SHELL_PREFIX\": \"/var/lib/it's \\\"interlock\\\"/bin/interlock-shell\"";
    let without = text.replacen(entry, "", 1);
    assert_ne!(without, text);
    assert_eq!(installed(Host::ClaudeCode, place, Some(&without), &wanted), Ok(Installed::Other));
    assert!(!keeps_prefix(Some(&without), true, &shell_prefix(&wanted.home)));
    assert_eq!(install(Host::ClaudeCode, place, Some(&without), &wanted).unwrap().text.unwrap(), text);
    // Another home's is ours, and brought up to date.
    let moved = text.replace("/var/lib/it's", "/var/lib/other");
    assert_eq!(installed(Host::ClaudeCode, place, Some(&moved), &wanted), Ok(Installed::Other));
    assert_eq!(install(Host::ClaudeCode, place, Some(&moved), &wanted).unwrap().text.unwrap(), text);
    for (text, is_user, keeps) in
        [(None, false, true), (None, true, false), (Some("{\"env\": 1}"), false, false), (Some("{,}"), false, false)]
    {
        assert_eq!(keeps_prefix(text, is_user, &shell_prefix(&wanted.home)), keeps, "{text:?}");
    }
}

/// An entry that was made harmless is not the one that was installed.
#[test]
fn an_entry_that_was_tampered_with_is_another() {
    let place = &places(Host::ClaudeCode, Scope::Project)[0];
    let wanted = wanted("/bin/interlock");
    let text = install(Host::ClaudeCode, place, None, &wanted).unwrap().text.unwrap();
    for (ours, theirs) in [
        ("\"onFailure\": \"block\"", "\"onFailure\": \"continue\""),
        ("\"type\": \"command\",", "\"type\": \"command\", \"async\": true,"),
        ("\"type\": \"command\",", "\"type\": \"command\", \"if\": \"Bash(git *)\","),
        ("\"matcher\": \"*\"", "\"matcher\": \"Read\""),
        ("\"timeout\": 60", "\"timeout\": 1"),
        ("sha256:0a1b", "sha256:ffff"),
    ] {
        let tampered = text.replacen(ours, theirs, 1);
        assert_ne!(tampered, text, "{ours}");
        assert_eq!(installed(Host::ClaudeCode, place, Some(&tampered), &wanted), Ok(Installed::Other), "{theirs}");
        let mended = install(Host::ClaudeCode, place, Some(&tampered), &wanted).unwrap();
        assert_eq!(mended.text.as_deref(), Some(text.as_str()), "{theirs}");
    }
}
