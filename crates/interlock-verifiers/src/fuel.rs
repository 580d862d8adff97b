//! The account of a verifier's work: how much it may do, and how much it did.
//!
//! A unit is about as much work as one operation on words of 64 bits, whatever the engine; every engine says how much
//! of its own work that is. Fuel is counted and never timed, so the same text costs the same on every machine.

/// What may be spent on a text, and what was.
#[derive(Debug)]
pub struct Fuel {
    left: u64,
    spent: u64,
    fell_short: bool,
}

impl Fuel {
    /// So many units.
    pub fn of(units: u64) -> Fuel {
        Fuel { left: units, spent: 0, fell_short: false }
    }

    /// As much as an engine allows itself for one text.
    pub fn full() -> Fuel {
        Fuel::of(u64::MAX)
    }

    /// What was spent.
    pub fn spent(&self) -> u64 {
        self.spent
    }

    /// Whether more was needed than there was. Then nothing is known of the text, whatever the outcome says: it has to
    /// be judged again, with more.
    pub fn fell_short(&self) -> bool {
        self.fell_short
    }

    /// What is left.
    pub(crate) fn left(&self) -> u64 {
        self.left
    }

    /// Pays for work; false if there is not enough left for it.
    pub(crate) fn pay(&mut self, units: u64) -> bool {
        match self.left.checked_sub(units) {
            Some(left) => {
                self.left = left;
                self.spent = self.spent.saturating_add(units);
            }
            None => self.fell_short = true,
        }
        !self.fell_short
    }

    /// Says that an engine stopped for want of more.
    pub(crate) fn fall_short(&mut self) {
        self.fell_short = true;
    }
}
