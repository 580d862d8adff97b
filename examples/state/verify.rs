//! The state guard from Rust: one transition is verified, another blocked with a reason.
//!
//! ```text
//! cargo run --example state_guard
//! ```

use interlock_core::state::StateGuard;

/// Judges two ways on from one state, and prints what the guard says.
pub(crate) fn main() {
    let guard = StateGuard::load_file(include_str!("guard.json")).expect("the guard of the example");
    let current = include_str!("current.json");
    for (name, proposed) in [("finished", include_str!("finished.json")), ("reopened", include_str!("reopened.json"))] {
        match guard.verify_transition(current, proposed) {
            Ok(transition) => println!("{name}: VERIFIED {}", transition.proof()),
            Err(denial) => println!("{name}: {denial}"),
        }
    }
}
