//! Lines that look as if they only read, and write. A label that is wrong about one costs a refused system call: in a bound
//! that may write nothing, nothing changes.

use std::process::{Command, Stdio};

use crate::support::{Rung, World, stderr, stdout, users};

/// Files of the project; `evil` and what is made of the others change something.
const FILES: &[(&str, &str)] = &[
    ("a", "b\na\n"),
    ("yes", "y\n"),
    ("evil", "#!/bin/sh\ntouch new\n"),
    ("x.py", "open('new', 'w')\n"),
    ("x.js", "require('fs').writeFileSync('new', '')\n"),
    ("x.c", "int main(void) { return 0; }\n"),
    ("Makefile", "MADE := $(shell touch new)\nall: a\n"),
    ("page.1", ".TH X 1\n.SH NAME\nx\n"),
    ("magic", "0 string a b\n"),
    ("change", "--- a\n+++ a\n@@ -1,2 +1,2 @@\n b\n-a\n+c\n"),
    ("edits", "1d\nw\nq\n"),
];

/// A repository with a commit, and a change that is not in it.
const PREPARED: &str = "chmod +x evil && git init -q . && git config user.name a && git config user.email a@b && echo old > a \
    && git add -A && git commit -q -m first && tar -cf t.tar a && printf 'b\\na\\n' > a && echo > loose";

fn world(user: u32, rung: Rung) -> World {
    let world = World::on((user, rung));
    for (name, text) in FILES {
        world.write(&format!("project/{name}"), text);
    }
    let prepared = world.bare(&["/bin/bash", "-c", PREPARED]).output().expect("a shell");
    assert!(prepared.status.success(), "{}", stderr(&prepared));
    world
}

fn lines() -> Vec<(String, String)> {
    let member = |line: &str, key: &str| {
        let value: serde_json::Value = serde_json::from_str(line).expect("JSON");
        value[key].as_str().expect("a text").to_owned()
    };
    let text = include_str!("writes.jsonl");
    text.lines().map(|line| (member(line, "line"), member(line, "why"))).collect()
}

fn run(mut command: Command) -> std::process::Output {
    command.stdin(Stdio::null()).output().expect("a process")
}

/// What keeps project and outside, and what puts them back.
const KEEP: &str = "mkdir kept && cp -a project outside kept";
const RESTORE: &str = "rm -rf project outside && cp -a kept/project kept/outside .";

fn in_world(world: &World, line: &str) {
    let done = Command::new("/bin/bash").args(["-c", line]).current_dir(world.path("")).status();
    assert!(done.expect("a shell").success(), "{line}");
}

#[test]
fn what_was_taken_for_reading_changes_nothing() {
    let user = *users().last().expect("a user");
    let (bare, held) = (world(user, Rung::Full), [Rung::Full, Rung::Narrow].map(|rung| world(user, rung)));
    in_world(&bare, KEEP);
    let (mut tried, mut idle, mut wrong) = (0, Vec::new(), Vec::new());
    for (line, why) in lines() {
        let of = |world: &World| line.replace("@OUTSIDE@", &world.text("outside"));
        let state = |world: &World| (world.tree("project"), world.outside());
        in_world(&bare, RESTORE);
        let before = state(&bare);
        let output = run(bare.bare(&["/bin/bash", "-c", &of(&bare)]));
        if state(&bare) == before {
            let said = stderr(&output);
            let is_missing = said.contains("not found") || said.contains("No such file");
            idle.extend((!is_missing).then(|| format!("{line} ({why}): {}{said}", stdout(&output))));
            continue;
        }
        tried += 1;
        for world in &held {
            let before = state(world);
            let output = run(world.held(&world.bound_of(""), &["/bin/bash", "-c", &of(world)]));
            assert_ne!(output.status.code(), Some(126), "{line}: {}", stderr(&output));
            wrong.extend((state(world) != before).then(|| format!("{line} ({why}) for {:?}", world.rung)));
        }
    }
    assert!(wrong.is_empty(), "these wrote: {wrong:#?}");
    assert!(idle.is_empty(), "these do nothing at all: {idle:#?}");
    assert!(tried > 100, "only {tried} lines could be tried");
}
