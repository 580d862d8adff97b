//! Many small worlds; `INTERLOCK_SEEDS=100000 cargo nextest run simulation` runs more of them.

use std::panic;

use interlock_testkit::simulation::{Summary, run};

fn seeds() -> u64 {
    std::env::var("INTERLOCK_SEEDS").ok().and_then(|text| text.parse().ok()).unwrap_or(1_000)
}

#[test]
fn no_world_breaks_a_promise() {
    // The simulated panics are meant to happen; their stories are not told.
    panic::set_hook(Box::new(|info| {
        let simulated = info.payload().downcast_ref::<&str>().is_some_and(|text| *text == "simulated");
        if !simulated {
            eprintln!("{info}");
        }
    }));
    let threads: Vec<_> = (0..2)
        .map(|half| {
            std::thread::spawn(move || {
                let mut all = Summary::default();
                for seed in (half..seeds()).step_by(2) {
                    let summary = run(seed, 15).unwrap_or_else(|reason| panic!("seed {seed}: {reason}"));
                    all.entries += summary.entries;
                    all.approvals += summary.approvals;
                    all.crashes += summary.crashes;
                    all.calls += summary.calls;
                    all.moves += summary.moves;
                    all.redeemed += summary.redeemed;
                }
                all
            })
        })
        .collect();
    for thread in threads {
        let all = thread.join().expect("a world broke a promise");
        // A world in which nothing happens proves nothing.
        let worlds = usize::try_from(seeds() / 2).expect("small");
        assert!(all.approvals > worlds * 3 && all.crashes > worlds, "{all:?}");
        assert!(all.calls > worlds && all.moves > worlds / 4 && all.redeemed > worlds / 50, "{all:?}");
    }
}

#[test]
fn a_seed_is_a_world() {
    assert_eq!(run(7, 30), run(7, 30));
}
