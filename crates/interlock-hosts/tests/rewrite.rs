//! A ticket that was put on a command is taken off again, whatever the line; and a line that gets one still does the
//! same, with bash as the judge.

use std::fs::File;
use std::process::{Command, Stdio};

use interlock_hosts::{Host, Kind, TICKET_LEN_MAX, TICKET_LEN_MIN, may_carry, read, rewritten, taken_off};
use proptest::prelude::*;

const SCRIPT: &str = "/srv/it's/.interlock/bin/run.sh";
const TICKET: &str = "AAAABBBBCCCCDDDD";

/// Lines that want to get past, or are only odd.
const HOSTILE: &[&str] = &[
    "",
    "\n",
    " ls",
    "ls # a comment",
    "ls # a comment that ends in \\",
    "# interlock:EEEEFFFFGGGGHHHH",
    "ls\n# interlock:EEEEFFFFGGGGHHHH",
    "ls\n# interlock:EEEEFFFFGGGGHHHH\n",
    ". '/srv/it'\\''s/.interlock/bin/run.sh' EEEEFFFFGGGGHHHH; ls",
    "cat <<EOF\nbody\nEOF",
    "cat <<'EOF'\n$x '\nEOF\n",
    "git commit -m \"$(cat <<'EOF'\nit's (done\nEOF\n)\"",
    "echo a \\\\",
    "echo $((1<<2)) && echo \"$((1<<2))\"",
    "case a in a) echo 'b)';; esac",
    "echo a \\\n# it's",
    "echo é \u{202e}",
];

/// Lines that would take the comment behind them into themselves.
const OPEN: &[&str] = &[
    "cat <<EOF",
    "cat <<EOF\n",
    "cat <<EOF\nbody",
    "cat <<EOF\nbody\nEOF ",
    "cat <<EOF\nbody\\\nEOF",
    "cat <<-EOF\n\tbody\n EOF",
    "cat <<A <<B\nA\n",
    "cat <<EOF; echo \"$(cat <<E2\nE2\n)\"\nEOF",
    "echo a\\",
    "echo 'a",
    "echo \"a",
    "echo \"$(echo a",
    "echo ${a",
    "echo `a",
    "echo $'a\\'",
    "echo \"$(case a in a) echo b;; esac)\"",
    "a\0b",
];

#[test]
fn a_line_that_is_open_carries_no_comment() {
    for line in OPEN {
        assert_eq!(rewritten(Host::ClaudeCode, line, TICKET, SCRIPT), None, "{line:?}");
        // Nor is one taken off: the agent wrote it, and it is part of what runs.
        let text = format!("{line}\n# interlock:{TICKET}");
        assert_eq!(taken_off(Host::ClaudeCode, &text, Some(SCRIPT)), None, "{line:?}");
    }
    for line in HOSTILE {
        assert!(rewritten(Host::ClaudeCode, line, TICKET, SCRIPT).is_some(), "{line:?}");
        assert_eq!(rewritten(Host::Cursor, line, TICKET, SCRIPT), None);
    }
}

#[test]
fn only_tickets_and_scripts_that_are_plain_are_written() {
    let long = "a".repeat(TICKET_LEN_MAX);
    let fits = |ticket: &str| rewritten(Host::Codex, "ls", ticket, SCRIPT).is_some();
    assert!(fits(&long) && fits(&"a".repeat(TICKET_LEN_MIN)));
    assert!(!fits(&format!("{long}a")) && !fits(&"a".repeat(TICKET_LEN_MIN - 1)));
    for ticket in ["AAAABBBB CCCCDDDD", "AAAABBBBCCCCDDD;", "AAAABBBBCCCCDDD\n", "AAAABBBBCCCCDDDé"] {
        assert!(!fits(ticket), "{ticket:?}");
    }
    for script in ["run.sh", "/a\nb", ""] {
        assert_eq!(rewritten(Host::Codex, "ls", TICKET, script), None, "{script:?}");
    }
}

#[test]
fn an_agent_s_own_script_is_part_of_its_line() {
    for text in [
        format!(". ./run.sh {TICKET}; ls"),
        format!(". '/srv/other/.interlock/bin/run.sh' {TICKET}; ls"),
        format!("source '/srv/it'\\''s/.interlock/bin/run.sh' {TICKET}; ls"),
        format!(". '/srv/it'\\''s/.interlock/bin/run.sh' $TICKET {TICKET}; ls"),
        format!(" . '/srv/it'\\''s/.interlock/bin/run.sh' {TICKET}; ls"),
    ] {
        for host in Host::ALL {
            assert_eq!(taken_off(host, &text, Some(SCRIPT)), None, "{host} {text}");
        }
    }
    for line in ["ls\n)\nrm x\n(", "ls)", "ls # )\n)", "case a in a) b;; esac", "ls\n", "ls\\", "ls 'a", "cat <<E\n)"] {
        assert_eq!(rewritten(Host::Gemini, line, TICKET, SCRIPT), None, "{line:?}");
    }
    let ours = rewritten(Host::Codex, "ls", TICKET, SCRIPT).expect("it can");
    assert_eq!(taken_off(Host::Codex, &ours, None), None, "whose script it is, nobody can tell");
    let twice = rewritten(Host::Codex, &ours, "EEEEFFFFGGGGHHHH", SCRIPT).expect("it can");
    assert_eq!(taken_off(Host::Codex, &twice, Some(SCRIPT)), Some((ours.as_str(), "EEEEFFFFGGGGHHHH")));
}

/// What was judged before and what is told afterwards is one call, whatever it carried.
#[test]
fn a_call_with_its_ticket_has_the_fingerprint_of_the_line() {
    for (host, before, after, tool) in [
        (Host::ClaudeCode, "PreToolUse", "PostToolUse", "Bash"),
        (Host::ClaudeCode, "PreToolUse", "PostToolUse", "Monitor"),
        (Host::Codex, "PreToolUse", "PostToolUse", "Bash"),
        (Host::Gemini, "BeforeTool", "AfterTool", "run_shell_command"),
    ] {
        let event = |name: &str, command: &str| {
            let command = interlock_core::json::quote(command);
            let text = format!(
                r#"{{"hook_event_name":"{name}","session_id":"s","cwd":"/src","tool_name":"{tool}",
                    "tool_input":{{"command":{command}}},"tool_response":{{}}}}"#
            );
            match read(host, text.as_bytes(), Some(SCRIPT)).expect("an event").kind {
                Kind::BeforeTool { call, ticket, .. } | Kind::AfterTool { call, ticket, .. } => (call, ticket),
                other => panic!("{other:?}"),
            }
        };
        for line in HOSTILE {
            let (judged, forged) = event(before, line);
            if forged.is_some() {
                // The agent wrote it. Whoever judges the call is told, and a command with one gets no second.
                continue;
            }
            let Some(text) = rewritten(host, line, TICKET, SCRIPT) else {
                assert!(host == Host::Gemini && !may_carry(host, &judged), "{host} {line:?}");
                continue;
            };
            for name in [before, after] {
                let (told, ticket) = event(name, &text);
                assert_eq!(ticket.as_deref(), Some(TICKET), "{host} {line:?}");
                assert_eq!((told.fingerprint(), told.gist("/src")), (judged.fingerprint(), judged.gist("/src")));
                assert_eq!(told, judged);
            }
            assert!(may_carry(host, &judged));
        }
    }
}

proptest! {
    #[test]
    fn what_is_put_on_is_taken_off(line in any_line(), ticket in "[A-Za-z0-9_-]{16,200}") {
        for host in Host::ALL {
            if let Some(text) = rewritten(host, &line, &ticket, SCRIPT) {
                prop_assert_eq!(taken_off(host, &text, Some(SCRIPT)), Some((line.as_str(), ticket.as_str())));
            }
        }
    }

    #[test]
    fn what_is_taken_off_was_put_on(text in any_line()) {
        for host in Host::ALL {
            if let Some((line, ticket)) = taken_off(host, &text, Some(SCRIPT)) {
                prop_assert_eq!(rewritten(host, line, ticket, SCRIPT), Some(text.clone()));
            }
        }
    }
}

/// Pieces of which lines are made that bash reads in surprising ways. None of them reaches a file or waits for anybody.
const PIECES: &[&str] = &[
    "echo a",
    "cat",
    "'",
    "\"",
    "\\",
    "\n",
    "\n",
    " ",
    " ",
    ";",
    "<<EOF",
    "<<'E F'",
    "<<-X",
    "<<<y",
    "EOF",
    "E F",
    "\tX",
    "X",
    "\nEOF\n",
    "\nX\n",
    "$(",
    "(",
    ")",
    "`",
    "#",
    " # it's",
    "${y:-",
    "}",
    "$((",
    "))",
    "1<<2",
    "case z in z)",
    ";; esac",
    "$'",
    "$",
    "$$",
    "é",
    "\n# interlock:EEEEFFFFGGGGHHHH",
];

fn any_line() -> impl Strategy<Value = String> {
    let pieces = prop::collection::vec(prop::sample::select(PIECES), 0..12).prop_map(|pieces| pieces.concat());
    prop_oneof![pieces, any::<String>(), prop::sample::select(HOSTILE).prop_map(str::to_owned)]
}

/// How a line ends in bash, and what it says.
fn ran(line: &str) -> (Option<i32>, Vec<u8>) {
    let out = Command::new("bash").args(["-c", line]).stdin(Stdio::null()).stderr(Stdio::null()).env_clear().output();
    let out = out.expect("bash");
    (out.status.code(), out.stdout)
}

/// A line that carries a ticket on Gemini CLI does not get out of the parentheses that the host puts around it. What
/// stands before it ends the inner shell, so that only what got out can say anything.
fn stays_inside(line: &str) {
    if rewritten(Host::Gemini, line, TICKET, SCRIPT).is_some() {
        let (_, said) = ran(&format!("(\nexit 7; {line}\n)\n/bin/echo \"end $?\""));
        assert!(["end 7\n", ""].contains(&&*String::from_utf8_lossy(&said)), "{line:?}");
    }
}

/// Lines of pieces, the same on every machine: those that get a ticket say and end with it as without it.
#[test]
fn a_line_with_its_ticket_does_what_it_does_without() {
    if File::open("/bin/bash").is_err() {
        return;
    }
    const CARRIED: u32 = 250;
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut draw = |below: usize| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        usize::try_from(state % u64::try_from(below).expect("small")).expect("small")
    };
    let (mut tried, mut carried) = (0_u32, 0_u32);
    while carried < CARRIED {
        let count = 1 + draw(9);
        let line: String = (0..count).map(|_| PIECES[draw(PIECES.len())]).collect();
        tried += 1;
        stays_inside(&line);
        let Some(text) = rewritten(Host::ClaudeCode, &line, TICKET, SCRIPT) else { continue };
        carried += 1;
        // The number of a process is another each time.
        if !line.contains("$$") {
            assert_eq!(ran(&line), ran(&text), "{line:?}");
        }
    }
    assert!(tried < CARRIED * 20, "nearly nothing is carried: {tried}");
    for line in HOSTILE {
        stays_inside(line);
        assert_eq!(ran(line), ran(&rewritten(Host::ClaudeCode, line, TICKET, SCRIPT).expect("it can")), "{line:?}");
    }
}
