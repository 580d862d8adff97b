//! Caches: what is read is the user's, what is written is the project's own.

use std::fs;

use crate::support::{World, stderr, stdout, users, wait_for};

#[test]
fn what_is_written_to_a_cache_is_the_projects_own() {
    for user in users() {
        let world = World::new(user);
        world.write("outside/cache/registry/old", "the user's");
        world.directory("own");
        let caches = format!(
            r#""caches": [{{"directory": "{}", "own": "{}"}}]"#,
            world.text("outside/cache"),
            world.text("own")
        );
        let before = world.outside();
        let cache = world.text("outside/cache");
        let line = format!(
            "cd {cache}; cat registry/old; echo x > registry/new; echo changed > registry/old; mkdir more; \
             mv registry/new more/moved; rm -r more; echo kept > kept; touch {cache}/../new; true"
        );
        let output = world.line(&world.bound(&caches), &line);
        assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
        let expected = if world.report().contains("begins empty") { "" } else { "the user's" };
        assert_eq!(stdout(&output), expected, "{}", stderr(&output));
        assert_eq!(world.outside(), before);
        let output = world.line(&world.bound(&caches), &format!("cat {cache}/kept"));
        assert_eq!(stdout(&output), "kept\n", "{}", stderr(&output));
        assert_eq!(world.outside(), before);
        // Two commands at once do not write the same layer.
        let line = format!(
            "cat {cache}/registry/old; echo both > {cache}/both; touch ready; until [ -e go ]; do sleep 0.01; done; cat {cache}/both"
        );
        let first = world.held(&world.bound(&caches), &["/bin/bash", "-c", &line]).spawn().expect("the runner");
        wait_for("the first", || world.path("project/ready").exists());
        let second = world.line(
            &world.bound(&caches),
            &format!("cat {cache}/both; echo other > {cache}/both; cat {cache}/both; touch go"),
        );
        assert_eq!(stdout(&second), "other\n", "{}", stderr(&second));
        assert!(world.report().contains("another command uses it"), "{}", world.report());
        assert!(first.wait_with_output().expect("an end").status.success());
        assert_eq!(world.outside(), before);
        assert!(fs::read_dir(world.path("own")).expect("a directory").count() > 0);
    }
}
