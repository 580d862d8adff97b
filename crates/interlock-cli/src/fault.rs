//! Why a command could not answer, as its programs say it.

use interlock_core::Code;

/// Why a command could not answer: exit code 2, or 1 if a server understood and refused.
#[derive(Debug)]
pub struct Fault {
    /// A server may know codes that this version does not.
    pub code: Option<String>,
    /// What went wrong.
    pub message: String,
    /// What to do about it.
    pub next: Option<String>,
    /// With what the command exits.
    pub exit: u8,
    /// Whether trying again may help.
    pub is_transient: bool,
    /// A server's own words, for `--json`.
    pub document: Option<String>,
    /// A log has it already.
    pub said: bool,
}

impl Fault {
    /// A fault without a code.
    pub fn new(message: impl Into<String>) -> Fault {
        Fault {
            code: None,
            message: message.into(),
            next: None,
            exit: 2,
            is_transient: false,
            document: None,
            said: false,
        }
    }

    /// A fault that a page is about.
    pub fn with_code(code: Code, message: impl Into<String>) -> Fault {
        Fault { code: Some(code.as_str().to_owned()), ..Fault::new(message) }
    }

    /// The same with what to do about it.
    #[must_use]
    pub fn and_then_do(self, next: impl Into<String>) -> Fault {
        Fault { next: Some(next.into()), ..self }
    }

    /// The same as an answer that is no.
    #[must_use]
    pub fn refused(self) -> Fault {
        Fault { exit: 1, ..self }
    }

    /// The same as something that may be gone a moment later.
    #[must_use]
    pub fn transient(self) -> Fault {
        Fault { is_transient: true, ..self }
    }

    /// Whether a server understood and refused.
    pub fn is_refused(&self) -> bool {
        self.exit == 1
    }
}

impl From<std::io::Error> for Fault {
    fn from(reason: std::io::Error) -> Fault {
        Fault::new(format!("cannot write the output: {reason}"))
    }
}
