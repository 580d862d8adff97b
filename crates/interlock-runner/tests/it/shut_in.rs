//! Behind a filter like that of a host's own sandbox: commands are held there as elsewhere, and end as they end.

use std::fs;
use std::os::unix::process::ExitStatusExt;
use std::process::Output;

use crate::support::{World, stderr, stdout, users};

fn shut_in(world: &World, line: &str) -> Output {
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/shut_in.py");
    fs::copy(script, world.path("shut_in.py")).expect("a copy");
    let hidden = format!(r#""hidden": ["{}"]"#, world.text("outside/secret"));
    let program = ["/usr/bin/python3", &world.text("shut_in.py"), &world.text("runner"), &world.bound(&hidden)];
    world.bare(&[&program[..], &["/bin/bash", "-c", line]].concat()).output().expect("the runner")
}

#[test]
fn behind_another_filter_commands_are_held_and_end_as_they_end() {
    for user in users() {
        let world = World::new(user);
        let before = world.outside();
        let outside = world.text("outside");
        let line = format!("echo in > made; echo out > {outside}/new; cat {outside}/secret; echo said; exit 7");
        let output = shut_in(&world, &line);
        assert_eq!((output.status.code(), stdout(&output).as_str()), (Some(7), "said\n"), "{}", stderr(&output));
        assert!(world.path("project/made").exists());
        assert_eq!(world.outside(), before);
        assert_eq!(shut_in(&world, "kill -TERM $$").status.signal(), Some(15));
        // What ends at once is not taken for what never began.
        for _ in 0..20 {
            let output = shut_in(&world, "exit 3");
            assert_eq!(output.status.code(), Some(3), "{}", stderr(&output));
        }
    }
}
