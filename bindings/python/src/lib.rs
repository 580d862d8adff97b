//! The Python module `interlock._interlock`: translates between Python objects and the state guard, decides nothing.

mod config;
mod guard;
mod objects;

use pyo3::prelude::*;

#[pymodule]
fn _interlock(module: &Bound<'_, PyModule>) -> PyResult<()> {
    keep_freed_memory();
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    module.add("MAX_VALIDATION_DEPTH", interlock_core::json::STATE_DEPTH_MAX)?;
    module.add_class::<guard::AgentStateGuard>()
}

/// The C library returns the memory of a large text to the system after each call, only to ask for it again in the
/// next, and a page that comes back costs more than verifying what is written on it. Once it has seen a block of this
/// size freed, it keeps up to twice as much. The block is never touched, so it costs nothing itself.
fn keep_freed_memory() {
    const BLOCK: usize = 8 << 20;
    drop(std::hint::black_box(Vec::<u8>::with_capacity(BLOCK)));
}
