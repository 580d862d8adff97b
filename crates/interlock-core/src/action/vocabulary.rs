//! The words of the gate: trust, risk, engine, status, decision, time and money.

use core::fmt;

use serde::{Deserialize, Serialize};

/// Milliseconds since 1970, UTC.
pub type Millis = u64;

/// Amounts of money, in millionths of a US dollar.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct UsdMicros(pub u64);

/// The largest amount anything may be given as: a billion dollars.
const USD_MICROS_MAX: u64 = 1_000_000_000_000_000;

impl UsdMicros {
    /// Reads a plain decimal with at most six places, such as `0.01`.
    ///
    /// ```
    /// use interlock_core::action::UsdMicros;
    ///
    /// assert_eq!(UsdMicros::parse("0.01"), Some(UsdMicros(10_000)));
    /// assert_eq!(UsdMicros::parse("1e2"), Some(UsdMicros(100_000_000)));
    /// assert_eq!(UsdMicros::parse("0.0000001"), None);
    /// assert_eq!(UsdMicros::parse("-1"), None);
    /// ```
    pub fn parse(text: &str) -> Option<UsdMicros> {
        let (mantissa, exponent) = match text.split_once(['e', 'E']) {
            Some((mantissa, exponent)) => (mantissa, exponent.parse::<i64>().ok()?),
            None => (text, 0),
        };
        let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
        let digits = whole.bytes().chain(fraction.bytes());
        let mut value = 0_u128;
        for digit in digits {
            let digit = u128::from(digit.checked_sub(b'0').filter(|digit| *digit <= 9)?);
            value = value.checked_mul(10)?.checked_add(digit)?;
        }
        if whole.is_empty() {
            return None;
        }
        // The value is `value * 10^shift` millionths.
        let shift = exponent.checked_add(6)?.checked_sub(i64::try_from(fraction.len()).ok()?)?;
        if value == 0 {
            return Some(UsdMicros(0));
        }
        let power = 10_u128.checked_pow(u32::try_from(shift.unsigned_abs()).ok()?)?;
        let micros = if shift >= 0 {
            value.checked_mul(power)?
        } else {
            (value.checked_rem(power)? == 0).then(|| value.checked_div(power))??
        };
        u64::try_from(micros).ok().filter(|micros| *micros <= USD_MICROS_MAX).map(UsdMicros)
    }
}

impl fmt::Display for UsdMicros {
    /// As a JSON decimal: `0.01`, `100`, `45.5`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (whole, micros) = (self.0.checked_div(1_000_000), self.0.checked_rem(1_000_000));
        let (whole, micros) = (whole.unwrap_or(0), micros.unwrap_or(0));
        if micros == 0 {
            return write!(f, "{whole}");
        }
        let digits = format!("{micros:06}");
        write!(f, "{whole}.{}", digits.trim_end_matches('0'))
    }
}

/// How far an agent is trusted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(into = "u8", try_from = "u8")]
pub enum Trust {
    /// No autonomous actions.
    Untrusted,
    /// Low risk alone.
    Supervised,
    /// Most actions alone.
    Autonomous,
    /// Full autonomy.
    Trusted,
}

impl From<Trust> for u8 {
    fn from(trust: Trust) -> u8 {
        match trust {
            Trust::Untrusted => 0,
            Trust::Supervised => 1,
            Trust::Autonomous => 2,
            Trust::Trusted => 3,
        }
    }
}

impl TryFrom<u8> for Trust {
    type Error = &'static str;

    fn try_from(level: u8) -> Result<Trust, &'static str> {
        match level {
            0 => Ok(Trust::Untrusted),
            1 => Ok(Trust::Supervised),
            2 => Ok(Trust::Autonomous),
            3 => Ok(Trust::Trusted),
            _ => Err("a trust level is 0, 1, 2 or 3"),
        }
    }
}

macro_rules! words {
    ($(#[$meta:meta])* $name:ident: $what:literal { $($(#[$doc:meta])* $variant:ident = $text:literal,)* }) => {
        $(#[$meta])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        pub enum $name {
            $($(#[$doc])* #[serde(rename = $text)] $variant,)*
        }

        impl $name {
            /// All of them, in order.
            pub const ALL: &'static [$name] = &[$($name::$variant,)*];

            /// The word as it is sent.
            pub fn as_str(self) -> &'static str {
                match self { $($name::$variant => $text,)* }
            }

            #[doc = concat!("The ", $what, " with this name.")]
            pub fn parse(text: &str) -> Option<$name> {
                $name::ALL.iter().copied().find(|word| word.as_str() == text)
            }
        }

        impl core::fmt::Display for $name {
            fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
                f.write_str(self.as_str())
            }
        }
    };
}
pub(crate) use words;

words! {
    /// What an action may do at worst.
    Risk: "risk" {
        /// Reads, computes.
        Low = "low",
        /// Reaches out.
        Medium = "medium",
        /// Changes things.
        High = "high",
        /// Destroys things, or runs code.
        Critical = "critical",
    }
}

words! {
    /// What verifies an action.
    Engine: "engine" {
        /// Arithmetic.
        Math = "math",
        /// Formulas.
        Logic = "logic",
        /// Database statements.
        Sql = "sql",
        /// Programs.
        Code = "code",
        /// Claims against sources.
        Fact = "fact",
        /// Command lines.
        Shell = "shell",
        /// Governed tools: registry, permissions and rules.
        ToolControl = "tool_control",
    }
}

words! {
    /// What a verifier found.
    Status: "status" {
        /// Checked, with a certificate.
        Verified = "VERIFIED",
        /// Wrong, but a right version is known.
        Corrected = "CORRECTED",
        /// Not understood, so not approved.
        Uncertain = "UNCERTAIN",
        /// Wrong.
        Failed = "FAILED",
    }
}

words! {
    /// The answer to an action, from the mildest to the strictest.
    Decision: "decision" {
        /// The action may run.
        Approved = "APPROVED",
        /// Its corrected form may run.
        Corrected = "CORRECTED",
        /// A person has to agree first.
        Pending = "PENDING",
        /// A limit is reached.
        BudgetExceeded = "BUDGET_EXCEEDED",
        /// It may not run.
        Denied = "DENIED",
    }
}

impl Decision {
    /// Whether the action runs without further ado: it is charged and its fingerprint kept.
    pub fn lets_run(self) -> bool {
        matches!(self, Decision::Approved | Decision::Corrected)
    }

    /// Whether the step is used up.
    pub fn consumes_step(self) -> bool {
        self.lets_run() || self == Decision::Pending
    }
}
