//! The description of the service and the service agree on what there is; Schemathesis checks what it does.

use std::collections::BTreeSet;
use std::fs;

use interlock_core::bundle::Bundle;
use interlock_core::json::{self, Limits};
use interlock_core::ledger::EntryKind;
use interlock_testkit::repository;
use interlock_testkit::service::Server;

#[test]
fn every_route_is_described_and_every_description_is_a_route() {
    let document = json::parse(interlock_wire::document(), &Limits::CONFIG).expect("strict JSON");
    let paths = document.root().get("paths").expect("paths");
    let server = Server::in_memory(Bundle::built_in().expect("a bundle"));
    let mut client = server.client();
    let mut count = 0;
    for (path, methods) in paths.as_object().expect("an object") {
        count += 1;
        for method in ["get", "post", "put", "delete", "patch"] {
            let path = path.text().replace("{id}", "agent_1").replace("{tool}", "t");
            let answer = client.send(&method.to_uppercase(), &path, &[], "").expect("an answer");
            let is_route = !matches!(answer.status, 404 | 405) || !answer.body.contains("INTERLOCK-REQUEST-005");
            assert_eq!(is_route, methods.get(method).is_some(), "{method} {path}: {} {}", answer.status, answer.body);
        }
    }
    let source = fs::read_to_string(repository().join("crates/interlock-http/src/routes.rs")).expect("the routes");
    assert_eq!(count, source.matches(".route(\"").count(), "a route is not described");
}

#[test]
fn every_kind_of_entry_is_described() {
    let document = json::parse(interlock_wire::document(), &Limits::CONFIG).expect("strict JSON");
    let schemas = document.root().get("components").and_then(|components| components.get("schemas")).expect("schemas");
    let listed = schemas.get("EntryKind").and_then(|schema| schema.get("enum")).expect("an enumeration");
    let described: BTreeSet<&str> =
        listed.as_array().expect("a list").filter_map(|kind| Some(kind.as_str()?.text())).collect();
    // A kind that there is not is refused with all that there are.
    let refused = serde_json::from_str::<EntryKind>("\"?\"").expect_err("no kind").to_string();
    let kinds: BTreeSet<&str> = refused.split('`').skip(3).step_by(2).collect();
    assert!(kinds.len() > 20, "{refused}");
    assert_eq!(described, kinds);
}
