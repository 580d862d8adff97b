//! Files that run later are set aside, wherever in the project they were made or changed.

use std::fs;

use crate::support::{World, stderr, users};

const ARMED: &str = r#""armed": ["**/.envrc", "**/.husky/**", "**/.vscode/settings.json", "**/*.pth"]"#;

/// Runs a line, and returns what was set aside: where it was, and what is in it.
fn set_aside(world: &World, line: &str) -> Vec<(String, String)> {
    let mut command = world.held(&world.bound(ARMED), &["/bin/bash", "-c", line]);
    let output = command.env("INTERLOCK_CONTAIN_ASIDE", world.path("aside")).output().expect("the runner");
    assert_eq!(output.status.code(), Some(0), "{line}: {}", stderr(&output));
    let report = world.report();
    let kept = |line: &str| line.trim().trim_matches(',').trim_matches('"').to_owned();
    let mut found = Vec::new();
    let mut lines = report.lines();
    while let Some(line) = lines.next() {
        if let Some(path) = line.trim().strip_prefix("path: ") {
            let at = lines.find(|line| line.trim().starts_with('"')).map(kept).expect("where it is");
            found.push((kept(path).replace(&world.text(""), ""), fs::read_to_string(at).unwrap_or_default()));
        }
    }
    found.sort();
    found
}

#[test]
fn what_was_made_or_changed_is_set_aside_and_nothing_else() {
    for user in users() {
        for (line, expected) in [
            ("echo a > .envrc", &[("project/.envrc", "a\n")][..]),
            ("mkdir -p deep/er; echo a > deep/er/.ENVRC", &[("project/deep/er/.ENVRC", "a\n")]),
            ("echo a > x; mv x sub/.envrc", &[("project/sub/.envrc", "a\n")]),
            ("echo more >> old/.envrc", &[("project/old/.envrc", "oldmore\n")]),
            ("chmod 755 old/.envrc; touch -d @1 old/.envrc", &[("project/old/.envrc", "old")]),
            (
                "mkdir .husky; echo a > .husky/pre-commit; echo b > .husky/b",
                &[("project/.husky/b", "b\n"), ("project/.husky/pre-commit", "a\n")],
            ),
            ("mv prepared .husky", &[("project/.husky/hook", "prepared")]),
            ("mv prepared .vscode", &[("project/.vscode/settings.json", "prepared")]),
            ("cat old/.envrc > /dev/null; echo a > settings.json; echo a > envrc; mkdir .envrc", &[]),
            ("echo a > /tmp/.envrc", &[]),
            ("rm old/.envrc", &[]),
            ("ln -s /etc/passwd .envrc; true", &[("project/.envrc", "")]),
        ] {
            let world = World::new(user);
            world.directory("aside");
            world.write("project/old/.envrc", "old");
            world.directory("project/sub");
            world.write("project/prepared/settings.json", "prepared");
            world.write("project/prepared/hook", "prepared");
            std::thread::sleep(std::time::Duration::from_millis(20));
            let mut found = set_aside(&world, line);
            // What a link leads to is read from here.
            found.iter_mut().filter(|(_, text)| text.contains("root:")).for_each(|(_, text)| text.clear());
            found.retain(|(path, _)| !(line == "mv prepared .husky" && path.ends_with("settings.json")));
            let expected: Vec<_> =
                expected.iter().map(|(path, text)| ((*path).to_owned(), (*text).to_owned())).collect();
            assert_eq!(found, expected, "{line} for {user}: {}", world.report());
            for (path, _) in &expected {
                assert!(fs::symlink_metadata(world.path(path)).is_err(), "{path} is still there after {line}");
            }
        }
    }
}
