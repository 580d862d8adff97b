//! Ways out, each tried by a real program; whatever it reports, the outside is as it was.

use crate::support::{World, stderr, stdout, users};

#[test]
fn a_shell_writes_the_project_and_nothing_else() {
    for user in users() {
        let world = World::new(user);
        let line = format!("echo inside > made; echo no > {0}/file; touch {0}/new; cat made", world.text("outside"));
        let output = world.line(&world.bound(""), &line);
        assert_eq!(stdout(&output), "inside\n", "{}", stderr(&output));
        assert!(stderr(&output).contains("Read-only file system"), "{}", stderr(&output));
        world.assert_outside_unchanged("a shell");
    }
}
