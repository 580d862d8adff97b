//! The Python module `interlock._interlock`: translates between Python objects and the state guard, decides nothing.

mod config;
mod guard;
mod objects;

use pyo3::prelude::*;

#[pymodule]
fn _interlock(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    module.add("MAX_VALIDATION_DEPTH", interlock_core::json::STATE_DEPTH_MAX)?;
    module.add_class::<guard::AgentStateGuard>()
}
