//! What was refused because of the bound is named, and nothing else is.

use crate::support::{World, grounds, stderr};

/// A line, and the paths that it is refused: `@` is the world.
const LINES: &[(&str, &[&str])] = &[
    ("echo x > @/outside/file", &["outside/file"]),
    ("echo x >> @/outside/new", &["outside/new"]),
    ("cd @/outside && touch new", &["outside/new"]),
    ("mkdir @/outside/new", &["outside/new"]),
    ("rm @/outside/file", &["outside/file"]),
    ("mv @/outside/file taken", &["outside/file"]),
    ("touch own; mv own @/outside/new", &["outside/new"]),
    ("touch own; ln own @/outside/new", &["outside/new"]),
    ("ln -s own @/outside/new", &["outside/new"]),
    ("ln -s @/outside soft; echo x > soft/new", &["outside/new"]),
    ("chmod 700 @/outside/file", &["outside/file"]),
    ("touch @/outside/file", &["outside/file"]),
    ("truncate -s 0 @/outside/file", &["outside/file"]),
    ("rmdir @/outside/sub", &["outside/sub"]),
    ("echo x > locked/file", &["project/locked/file"]),
    ("mv locked away", &["project/locked"]),
    ("echo x > @/outside/file; echo x > @/outside/file; rm @/outside/secret", &["outside/file", "outside/secret"]),
    // What fails for other reasons is not the bound's doing.
    ("cat @/outside/absent; rm @/outside/absent; echo x > @/outside/absent/new; mkdir @/outside", &[]),
    ("echo x > absent/file; rm absent; mkdir locked/../locked; echo x > made; cat made > /dev/null", &[]),
    ("cat @/outside/file > copy; cp @/outside/file other; ls @/outside; echo x > $TMPDIR/a", &[]),
    ("chmod 500 closed; echo x > closed/file", &[]),
];

#[test]
fn what_was_refused_is_named_and_nothing_else() {
    for ground in grounds() {
        for (line, expected) in LINES {
            let world = World::on(ground);
            world.directory("project/locked");
            world.directory("project/closed");
            world.directory("outside/sub");
            let bound = world.bound(&format!(r#""locked": ["{}"]"#, world.text("project/locked")));
            let output = world.line(&bound, &line.replace('@', world.text("").trim_end_matches('/')));
            let report = world.report();
            let mut named: Vec<_> = report
                .lines()
                .filter_map(|line| line.trim().strip_prefix("target: \"")?.strip_suffix("\","))
                .map(|path| path.replace(&world.text(""), ""))
                .collect();
            named.sort();
            assert_eq!(named, *expected, "{line} for {ground:?}: {report}{}", stderr(&output));
        }
    }
}

/// A user who may not write a place is not kept from it by the bound.
#[test]
fn what_would_fail_without_a_bound_is_not_named() {
    for ground in grounds().into_iter().filter(|(user, _)| *user != 0) {
        let world = World::on(ground);
        let output =
            world.line(&world.bound(""), "echo x > /etc/passwd; rm /etc/passwd; mkdir /etc/new; chmod 777 /etc/passwd");
        assert!(world.report().contains("refusals: []"), "{}{}", world.report(), stderr(&output));
    }
}

/// The list ends, and the command goes on.
#[test]
fn no_more_are_named_than_anybody_reads() {
    for ground in grounds() {
        let world = World::on(ground);
        let line = format!("for i in $(seq 200); do echo x 2> /dev/null > {}/$i; done; exit 0", world.text("outside"));
        let output = world.line(&world.bound(""), &line);
        assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
        assert_eq!(world.report().matches("attempt: \"write\"").count(), 64);
    }
}
