//! The names and types of metrics, which dashboards and alerts rely on. `UPDATE_GOLDEN=1` writes the file anew; read the
//! difference before committing it.

use std::fs;

use interlock_core::bundle::Bundle;
use interlock_testkit::repository;
use interlock_testkit::service::{OPERATOR_KEY, Server};

#[test]
fn the_names_and_types_of_metrics_are_pinned() {
    let server = Server::in_memory(Bundle::built_in().expect("a bundle"));
    let answer = server.client().send("GET", "/metrics", &[("x-api-key", OPERATOR_KEY)], "").expect("an answer");
    assert_eq!(answer.status, 200, "{}", answer.body);
    let types: Vec<&str> = answer.body.lines().filter_map(|line| line.strip_prefix("# TYPE ")).collect();
    let shown: String = types.iter().map(|line| format!("{line}\n")).collect();
    // A sample without a type would escape the list.
    for line in answer.body.lines().filter(|line| !line.starts_with('#')) {
        let name = line.split(['{', ' ']).next().unwrap_or_default();
        let parts = ["_bucket", "_sum", "_count"].map(|part| name.strip_suffix(part));
        let known = |name: &str| types.iter().any(|line| line.split(' ').next() == Some(name));
        assert!(known(name) || parts.into_iter().flatten().any(known), "{name} has no type");
    }
    let path = repository().join("crates/interlock-testkit/tests/golden/metrics.txt");
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        fs::write(&path, &shown).expect("written");
    }
    let expected = fs::read_to_string(&path).unwrap_or_else(|_| panic!("no golden file; it would hold:\n{shown}"));
    assert_eq!(shown, expected);
}
