//! The verifiers from outside.

mod math;
