//! A server and its client in one process, to be looked at from outside: twenty approvals on a store of its own.
//! `twenty_approvals DIR synced|unsynced`

use std::path::Path;

use interlock_core::bundle::Bundle;
use interlock_runtime::ledger::SqliteStore;
use interlock_testkit::gate::register;
use interlock_testkit::service::Server;

fn main() {
    let mut arguments = std::env::args().skip(1);
    let (Some(directory), Some(how), None) = (arguments.next(), arguments.next(), arguments.next()) else {
        panic!("twenty_approvals DIR synced|unsynced");
    };
    let open = match how.as_str() {
        "synced" => SqliteStore::open,
        "unsynced" => SqliteStore::open_unsynced,
        other => panic!("neither synced nor unsynced: {other}"),
    };
    let store = open(Path::new(&directory)).expect("a store");
    let server = Server::start(Box::new(store), None, Bundle::built_in().expect("a bundle"));
    let mut client = server.client();
    let agent = register(&mut client, r#"{"name":"a","type":"supervised","principal_id":"p"}"#).expect("an agent");
    let verify = format!("/agents/{}/verify", agent.id);
    for step in 1..=20 {
        let body = format!(
            r#"{{"action":{{"type":"calculate","query":"{step}+1"}},"context":{{"conversation_id":"c","step_number":{step}}}}}"#
        );
        let answer = client.send("POST", &verify, &[("x-agent-token", &agent.token)], &body).expect("an answer");
        assert!(answer.body.contains("APPROVED"), "{}", answer.body);
    }
}
