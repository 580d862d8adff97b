//! However the beginning and the end of a server meet, it ends.

use std::sync::Arc;
use std::time::Duration;

use interlock_core::Digest;
use interlock_core::bundle::Bundle;
use interlock_core::contain::Abilities;
use interlock_http::Service;
use interlock_http::hooks::{Hooks, HooksSetup, serve_socket};
use interlock_runtime::clock::{SystemClock, SystemEntropy};
use interlock_runtime::gate::Gate;
use interlock_runtime::ledger::{Ledger, LedgerKey, MemoryStore, Ports};
use interlock_testkit::service::OPERATOR_KEY;
use tokio::net::TcpListener;
use tokio::sync::Notify;

/// On one thread, so that what is started runs only once everything before it has: the order to stop is there before the
/// socket is looked at for the first time.
#[test]
fn a_server_that_is_to_stop_before_it_has_begun_ends() {
    let home = tempfile::tempdir().expect("a directory");
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    runtime.block_on(async {
        let bundle = Arc::new(Bundle::load("", &std::collections::BTreeMap::new(), false).expect("a bundle"));
        let entropy = Arc::new(SystemEntropy::new());
        let key = LedgerKey::open(home.path(), entropy.as_ref()).expect("a key");
        let ports = Ports {
            store: Box::new(MemoryStore::default()),
            clock: Arc::new(SystemClock),
            entropy: Arc::<SystemEntropy>::clone(&entropy) as _,
            checkpoint: None,
        };
        let ledger = Ledger::start(ports, Arc::clone(&bundle)).expect("a ledger");
        let service = Service::new(Arc::new(Gate::new(ledger, bundle)), OPERATOR_KEY, entropy);
        let setup = HooksSetup {
            home: home.path().to_owned(),
            user_home: None,
            on_path: Vec::new(),
            token: Digest::of(&["a token"]),
            key,
            stop: Arc::new(Notify::new()),
            abilities: Abilities::default(),
            binary: String::new(),
        };
        let hooks = Arc::new(Hooks::new(Arc::clone(&service), setup).expect("a door"));
        let socket = serve_socket(hooks, &home.path().join("run/socket")).expect("a socket");
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let ended = async {
            interlock_http::serve(service, listener, std::future::ready(())).await.expect("a clean stop");
            socket.end().await;
        };
        // Far more than it may take: without an end there would be no end to the test either.
        tokio::time::timeout(Duration::from_secs(120), ended).await.expect("an end");
    });
}
