//! Systems that cannot hold a command: every bound is a fault.

use std::io;
use std::path::Path;

use crate::{Abilities, ContainFault, Ended, Rung, Start};

/// Refuses: there is nothing here that could hold a command, and none is started without.
pub fn run(_: &Start) -> Result<Ended, ContainFault> {
    Err(ContainFault::Unsupported)
}

/// Says that nothing can be held here.
pub fn probe() -> Abilities {
    Abilities {
        rung: Rung::None,
        landlock_abi: 0,
        namespaces: false,
        seccomp: false,
        notifier: false,
        overlay: false,
        missing: Some(ContainFault::Unsupported.to_string()),
        advice: None,
    }
}

/// Does nothing: there are no sessions here.
pub fn end_session(_: &Path) -> io::Result<()> {
    Ok(())
}

impl Ended {
    /// Ends this process as the command ended. No command has run here.
    pub fn exit_process(&self) -> ! {
        match self.how {
            crate::How::Exit(code) => std::process::exit(code),
            crate::How::Signal(signal) => std::process::exit(signal.saturating_add(128)),
        }
    }
}
