//! Every code a ruling can carry, in one table. Each has a page under `docs/errors/`.

use core::fmt;

macro_rules! codes {
    ($($(#[$doc:meta])* $variant:ident = $text:literal, $title:literal;)*) => {
        /// The reason behind a ruling that is not an approval.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Code {
            $($(#[$doc])* #[doc = concat!("`", $text, "`: ", $title)] $variant,)*
        }

        impl Code {
            /// All codes, in the order of the table.
            pub const ALL: &'static [Code] = &[$(Code::$variant,)*];

            /// The code as it is sent and documented.
            pub fn as_str(self) -> &'static str {
                match self { $(Code::$variant => $text,)* }
            }

            /// What the code means, in a few words.
            pub fn title(self) -> &'static str {
                match self { $(Code::$variant => $title,)* }
            }
        }
    };
}

codes! {
    // State guard.
    StateNotText = "QWED-AGENT-STATE-101", "the state is not a non-empty text";
    StateNotJson = "QWED-AGENT-STATE-102", "the state is not strict JSON";
    StateNotInSchema = "QWED-AGENT-STATE-103", "the state does not match the schema";
    StateNoRules = "QWED-AGENT-STATE-104", "no transition rules are configured";
    StateCurrentBad = "QWED-AGENT-STATE-105", "the current state fails verification";
    StateTransition = "QWED-AGENT-STATE-106", "the transition breaks a rule";
    StateTarget = "QWED-AGENT-STATE-107", "the commit target is not acceptable";
    StateWrite = "QWED-AGENT-STATE-108", "the state could not be written";
    // Our own.
    ConfigInvalid = "INTERLOCK-CONFIG-001", "a configuration is invalid";
    FaultInternal = "INTERLOCK-FAULT-001", "an internal fault, answered as a denial";
}

impl Code {
    /// The code with this spelling, upper or lower case.
    ///
    /// ```
    /// use interlock_core::Code;
    ///
    /// assert_eq!(Code::parse("qwed-agent-state-106"), Some(Code::StateTransition));
    /// assert_eq!(Code::parse("QWED-AGENT-STATE-999"), None);
    /// ```
    pub fn parse(text: &str) -> Option<Code> {
        Code::ALL.iter().copied().find(|code| code.as_str().eq_ignore_ascii_case(text))
    }
}

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
