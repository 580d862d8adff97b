//! Any settings file: left alone, or edited so that taking our entries out gives back every byte.
#![no_main]

use interlock_hosts::Host;
use interlock_hosts::settings::{Installed, Scope, Wanted, install, installed, places, uninstall};

libfuzzer_sys::fuzz_target!(|text: &str| {
    let wanted = Wanted {
        binary: "/usr/bin/interlock".to_owned(),
        home: "/var/lib/it's".to_owned(),
        daemon: "sha256:00".to_owned(),
        timeout_s: 60,
    };
    for host in Host::ALL {
        for place in places(host, Scope::Project) {
            // A text that has entries like ours does not get them back.
            if installed(host, &place, Some(text), &wanted) != Ok(Installed::No) {
                continue;
            }
            let Ok(edited) = install(host, &place, Some(text), &wanted) else { continue };
            let with = edited.text.as_deref();
            assert_eq!(installed(host, &place, with, &wanted), Ok(Installed::Yes));
            assert_eq!(install(host, &place, with, &wanted).expect("again").text.as_deref(), with);
            assert_eq!(uninstall(host, &place, with).expect("out").text.as_deref(), Some(text));
        }
    }
});
