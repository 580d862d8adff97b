//! Any bytes from any host: no panic; an answer that lets a tool run is silent or rewrites its command, a refusal has a
//! reason, and nothing else is ever allowed in the host's name.
#![no_main]

use interlock_hosts::{Host, Kind, Reply, read, render, render_unreadable};

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    for host in Host::ALL {
        let event = match read(host, bytes, Some("/run.sh")) {
            Ok(event) => event,
            Err(unreadable) => {
                let said = render_unreadable(host, &unreadable.reason);
                assert!(said.exit == 2 && !said.stderr.trim().is_empty());
                continue;
            }
        };
        let reason = || event.session.clone();
        for reply in [
            Reply::Pass { context: Some(reason()) },
            Reply::Rewrite {
                ticket: "AAAABBBBCCCCDDDD".to_owned(),
                script: "/run.sh".to_owned(),
                note: Some(reason()),
            },
            Reply::Deny { reason: reason() },
            Reply::Ask { reason: reason() },
            Reply::Continue { reason: reason() },
        ] {
            let said = render(&event, &reply);
            assert!(said.exit == 0 || said.exit == 2 && !said.stderr.trim().is_empty());
            let before = matches!(event.kind, Kind::BeforeTool { .. });
            match reply {
                Reply::Pass { .. } if before => assert!(said.exit == 0 && said.stdout.is_empty()),
                Reply::Deny { .. } | Reply::Continue { .. } if before => assert_eq!(said.exit, 2),
                _ => {}
            }
            if !said.stdout.is_empty() {
                let limits = interlock_core::json::Limits::STATE;
                assert!(interlock_core::json::parse(&said.stdout, &limits).is_ok(), "hosts read JSON");
            }
        }
    }
});
