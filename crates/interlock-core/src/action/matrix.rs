//! The two matrices, as the documents print them.

use super::vocabulary::{Decision, Risk, Status, Trust};

/// Document 001: trust x risk.
#[rustfmt::skip]
pub(super) fn by_trust(trust: Trust, risk: Risk) -> Decision {
    use Decision::{Approved, Denied, Pending};
    let [low, medium, high, critical] = match trust {
        //                    low       medium    high      critical
        Trust::Untrusted  => [Pending,  Denied,   Denied,   Denied],
        Trust::Supervised => [Approved, Pending,  Denied,   Denied],
        Trust::Autonomous => [Approved, Approved, Pending,  Denied],
        Trust::Trusted    => [Approved, Approved, Approved, Approved],
    };
    at(risk, [low, medium, high, critical])
}

/// Document 004, section 2.3: verification x risk.
#[rustfmt::skip]
pub(super) fn by_verification(status: Status, risk: Risk) -> Decision {
    use Decision::{Approved, Corrected, Denied, Pending};
    let row = match status {
        //                    low        medium    high      critical
        Status::Verified  => [Approved,  Approved, Approved, Approved],
        Status::Corrected => [Corrected, Pending,  Pending,  Pending],
        Status::Uncertain => [Pending,   Pending,  Pending,  Pending],
        Status::Failed    => [Denied,    Denied,   Denied,   Denied],
    };
    at(risk, row)
}

fn at(risk: Risk, [low, medium, high, critical]: [Decision; 4]) -> Decision {
    match risk {
        Risk::Low => low,
        Risk::Medium => medium,
        Risk::High => high,
        Risk::Critical => critical,
    }
}
