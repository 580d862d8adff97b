//! Where paths lead: the limits, from both sides.

use std::fs;
use std::os::unix::fs::symlink;

use interlock_runtime::paths::{
    Base, Expansion, GLOB_PATHS_MAX, LINKS_MAX, Missing, NAME_BYTES_MAX, PATH_BYTES_MAX, Resolved, expand,
    from_project, resolve, resolve_from,
};

fn top(directory: &tempfile::TempDir) -> String {
    directory.path().canonicalize().expect("a directory").to_str().expect("UTF-8").to_owned()
}

#[test]
fn every_limit_holds_from_both_sides() {
    let world = tempfile::tempdir().expect("a directory");
    let cwd = top(&world);
    let known = |text: &str| resolve(text, &cwd, None) != Resolved::Unresolvable;
    assert!(known(&"a".repeat(NAME_BYTES_MAX)));
    assert!(!known(&"a".repeat(NAME_BYTES_MAX + 1)));
    let long = |length: usize| format!("/{}", "b/".repeat(length / 2)).chars().take(length).collect::<String>();
    assert!(known(&long(PATH_BYTES_MAX - 200)));
    assert!(!known(&long(PATH_BYTES_MAX + 1)));
    let links = usize::try_from(LINKS_MAX).expect("small");
    for number in 0..=links {
        symlink(format!("l{}", number + 1), world.path().join(format!("l{number}"))).expect("a link");
    }
    assert_eq!(resolve("l1", &cwd, None), Resolved::Known(format!("{cwd}/l{}", links + 1)));
    assert_eq!(resolve("l0", &cwd, None), Resolved::Unresolvable);
    assert!(!known("a\0b"));
    assert!(!known("~/x"), "there is no home");
    assert_eq!(resolve("x", "relative", None), Resolved::Unresolvable);
}

/// Workflows write one path for a file, whichever way the host spells it.
#[test]
fn a_path_in_the_project_is_written_from_there() {
    let world = tempfile::tempdir().expect("a directory");
    let project = top(&world);
    fs::create_dir(world.path().join("docs")).expect("made");
    let docs = format!("{project}/docs");
    let from = |text: &str, cwd: &str| from_project(text, cwd, None, &project);
    assert_eq!(from("docs/a.md", &project), "docs/a.md");
    assert_eq!(from(&format!("{project}/docs/a.md"), &project), "docs/a.md");
    assert_eq!(from("a.md", &docs), "docs/a.md");
    assert_eq!(from("../docs/./a.md", &docs), "docs/a.md");
    assert_eq!(from("/etc/hosts.new", &project), "/etc/hosts.new");
    assert_eq!(from(&format!("{project}-other/a.md"), &project), format!("{project}-other/a.md"));
    symlink("/etc", world.path().join("link")).expect("a link");
    assert_eq!(from("link/a.md", &project), "/etc/a.md", "it lies elsewhere");
}

#[test]
fn patterns_stand_for_what_is_there() {
    let world = tempfile::tempdir().expect("a directory");
    let cwd = top(&world);
    for number in 0..GLOB_PATHS_MAX {
        fs::write(world.path().join(format!("f{number:04}")), "").expect("a file");
    }
    fs::create_dir(world.path().join("d")).expect("a directory");
    fs::write(world.path().join("d/.hidden"), "").expect("a file");
    symlink("../f0001", world.path().join("d/link")).expect("a link");
    let base = Base { cwd: &cwd, home: None, missing: Missing::Plain };
    let found = |pattern: &str| -> Vec<String> {
        let shown = |it: Resolved| it.known().map_or("?".to_owned(), |path| path.replace(&cwd, ""));
        let Expansion { found, looked_into } = expand(pattern, base);
        let mut all: Vec<_> = found.into_iter().chain(looked_into).map(shown).collect();
        all.sort();
        all
    };
    assert_eq!(found("d/*"), ["/d", "/f0001"], "a link is what it leads to, a hidden file is not meant");
    assert_eq!(found("d/.h*"), ["/d", "/d/.hidden"]);
    assert_eq!(found("?/.h[i]*n"), ["", "/d", "/d/.hidden"]);
    assert_eq!(found("none*"), [""], "the directory itself");
    assert_eq!(found("f000[12]").len(), 11, "a set is taken for any character");
    assert_eq!(found("f*"), ["?"], "with the directory they are one too many");
    assert_eq!(found("f0*").len(), 1_001);
    assert_eq!(found("D*/LINK*"), ["", "/d", "/f0001"], "case does not count");
}

#[test]
fn what_is_missing_is_plain_unless_a_link_may_come() {
    let world = tempfile::tempdir().expect("a directory");
    let cwd = top(&world);
    let through = |text: &str, missing| resolve_from(text, Base { cwd: &cwd, home: None, missing });
    assert_eq!(through("new/../x", Missing::Plain), Resolved::Known(format!("{cwd}/x")));
    assert_eq!(through("new/../x", Missing::Anything), Resolved::Unresolvable);
    assert_eq!(through("new/x", Missing::Anything), Resolved::Unresolvable);
    assert_eq!(through("new", Missing::Anything), Resolved::Known(format!("{cwd}/new")));
    symlink("nowhere/at/all", world.path().join("dangling")).expect("a link");
    assert_eq!(through("dangling", Missing::Plain), Resolved::Known(format!("{cwd}/nowhere/at/all")));
}
