//! The vocabulary: functions, constants, units and the words that stand for signs.
//!
//! Knows what a word can be. What it is where it stands is the parser's to say.

/// A function that can be called.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Function {
    Sqrt,
    Cbrt,
    Abs,
    Min,
    Max,
    Sum,
    Mean,
    Median,
    Floor,
    Ceil,
    Round,
    Factorial,
    Gcd,
    Lcm,
    Mod,
    Exp,
    Ln,
    Log,
    Log10,
    Log2,
    Sin,
    Cos,
    Tan,
}

/// A number with a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Constant {
    Pi,
    E,
}

/// What a number can be a number of. Two spellings are one unit only if no reader could take them for two.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[rustfmt::skip]
pub(super) enum Unit {
    Dollar, UsDollar, Euro, Sterling, YenSign, Yen, Yuan, Rupee, Franc, Cent, Pound,
    Kilometre, Metre, Decimetre, Centimetre, Millimetre, Mile, Yard, Foot, Inch,
    Tonne, Kilogram, Gram, Milligram, PoundMass, Ounce,
    Litre, Millilitre, Gallon,
    Year, Month, Week, Day, Hour, Minute, Second, Millisecond,
    MilesPerHour, KilometresPerHour, Watt, Kilowatt, KilowattHour, Volt, Ampere, Joule, Newton, Hertz,
    Byte, Kilobyte, Megabyte, Gigabyte, Terabyte,
    Item, Single, Piece, Person, Apple, Orange, Book, Ticket, Point, Degree,
}

/// Every function with its name and how many operands it takes.
#[rustfmt::skip]
const FUNCTIONS: [(&str, Function, usize, usize); 23] = [
    ("sqrt",      Function::Sqrt,      1, 1),
    ("cbrt",      Function::Cbrt,      1, 1),
    ("abs",       Function::Abs,       1, 1),
    ("min",       Function::Min,       1, usize::MAX),
    ("max",       Function::Max,       1, usize::MAX),
    ("sum",       Function::Sum,       1, usize::MAX),
    ("mean",      Function::Mean,      1, usize::MAX),
    ("median",    Function::Median,    1, usize::MAX),
    ("floor",     Function::Floor,     1, 1),
    ("ceil",      Function::Ceil,      1, 1),
    ("round",     Function::Round,     1, 2),
    ("factorial", Function::Factorial, 1, 1),
    ("gcd",       Function::Gcd,       2, usize::MAX),
    ("lcm",       Function::Lcm,       2, usize::MAX),
    ("mod",       Function::Mod,       2, 2),
    ("exp",       Function::Exp,       1, 1),
    ("ln",        Function::Ln,        1, 1),
    ("log",       Function::Log,       1, 2),
    ("log10",     Function::Log10,     1, 1),
    ("log2",      Function::Log2,      1, 1),
    ("sin",       Function::Sin,       1, 1),
    ("cos",       Function::Cos,       1, 1),
    ("tan",       Function::Tan,       1, 1),
];

/// Every unit with its spellings.
#[rustfmt::skip]
const UNITS: &[(Unit, &[&str])] = &[
    (Unit::Dollar,            &["dollar", "dollars"]),
    (Unit::UsDollar,          &["USD", "usd"]),
    (Unit::Euro,              &["euro", "euros", "EUR", "eur"]),
    (Unit::Sterling,          &["GBP", "gbp"]),
    (Unit::Yen,               &["yen", "JPY", "jpy"]),
    (Unit::Yuan,              &["yuan", "CNY", "cny"]),
    (Unit::Rupee,             &["rupee", "rupees", "INR", "inr"]),
    (Unit::Franc,             &["CHF", "chf"]),
    (Unit::Cent,              &["cent", "cents"]),
    (Unit::Pound,             &["pound", "pounds"]),
    (Unit::Kilometre,         &["km", "kilometre", "kilometres", "kilometer", "kilometers"]),
    (Unit::Metre,             &["m", "metre", "metres", "meter", "meters"]),
    (Unit::Decimetre,         &["dm"]),
    (Unit::Centimetre,        &["cm", "centimetre", "centimetres", "centimeter", "centimeters"]),
    (Unit::Millimetre,        &["mm", "millimetre", "millimetres", "millimeter", "millimeters"]),
    (Unit::Mile,              &["mi", "mile", "miles"]),
    (Unit::Yard,              &["yd", "yard", "yards"]),
    (Unit::Foot,              &["ft", "foot", "feet"]),
    (Unit::Inch,              &["inch", "inches"]),
    (Unit::Tonne,             &["tonne", "tonnes"]),
    (Unit::Kilogram,          &["kg", "kilogram", "kilograms"]),
    (Unit::Gram,              &["g", "gram", "grams"]),
    (Unit::Milligram,         &["mg", "milligram", "milligrams"]),
    (Unit::PoundMass,         &["lb", "lbs"]),
    (Unit::Ounce,             &["oz", "ounce", "ounces"]),
    (Unit::Litre,             &["l", "L", "litre", "litres", "liter", "liters"]),
    (Unit::Millilitre,        &["ml", "mL", "millilitre", "millilitres", "milliliter", "milliliters"]),
    (Unit::Gallon,            &["gal", "gallon", "gallons"]),
    (Unit::Year,              &["yr", "yrs", "year", "years"]),
    (Unit::Month,             &["month", "months"]),
    (Unit::Week,              &["week", "weeks"]),
    (Unit::Day,               &["day", "days"]),
    (Unit::Hour,              &["h", "hr", "hrs", "hour", "hours"]),
    (Unit::Minute,            &["min", "mins", "minute", "minutes"]),
    (Unit::Second,            &["s", "sec", "secs", "second", "seconds"]),
    (Unit::Millisecond,       &["ms", "millisecond", "milliseconds"]),
    (Unit::MilesPerHour,      &["mph"]),
    (Unit::KilometresPerHour, &["kph", "kmh"]),
    (Unit::Watt,              &["W", "watt", "watts"]),
    (Unit::Kilowatt,          &["kW", "kilowatt", "kilowatts"]),
    (Unit::KilowattHour,      &["kWh", "kwh"]),
    (Unit::Volt,              &["V", "volt", "volts"]),
    (Unit::Ampere,            &["A", "amp", "amps"]),
    (Unit::Joule,             &["J", "joule", "joules"]),
    (Unit::Newton,            &["N", "newton", "newtons"]),
    (Unit::Hertz,             &["Hz", "hz"]),
    (Unit::Byte,              &["B", "byte", "bytes"]),
    (Unit::Kilobyte,          &["KB", "kB"]),
    (Unit::Megabyte,          &["MB"]),
    (Unit::Gigabyte,          &["GB"]),
    (Unit::Terabyte,          &["TB"]),
    (Unit::Item,              &["item", "items"]),
    (Unit::Single,            &["unit", "units"]),
    (Unit::Piece,             &["piece", "pieces"]),
    (Unit::Person,            &["person", "persons", "people"]),
    (Unit::Apple,             &["apple", "apples"]),
    (Unit::Orange,            &["orange", "oranges"]),
    (Unit::Book,              &["book", "books"]),
    (Unit::Ticket,            &["ticket", "tickets"]),
    (Unit::Point,             &["point", "points"]),
    (Unit::Degree,            &["deg", "degree", "degrees"]),
];

impl Function {
    /// The name, as in normal text.
    pub(super) fn name(self) -> &'static str {
        FUNCTIONS.iter().find(|(_, function, ..)| *function == self).map_or("", |(name, ..)| *name)
    }

    /// Whether it can take so many operands.
    pub(super) fn takes(self, operands: usize) -> bool {
        FUNCTIONS.iter().any(|(_, function, least, most)| *function == self && (*least..=*most).contains(&operands))
    }

    /// Whether it can take more than one operand.
    pub(super) fn takes_several(self) -> bool {
        self.takes(2)
    }
}

impl Unit {
    /// The sign before a number, of a currency that has one.
    pub(super) fn sign(self) -> Option<&'static str> {
        const SIGNS: [(Unit, &str); 5] =
            [(Unit::Dollar, "$"), (Unit::Euro, "€"), (Unit::Sterling, "£"), (Unit::YenSign, "¥"), (Unit::Rupee, "₹")];
        SIGNS.iter().find(|(unit, _)| *unit == self).map(|(_, sign)| *sign)
    }

    /// A word for it that nobody takes for an unknown.
    pub(super) fn spelling(self) -> &'static str {
        let spellings = UNITS.iter().find(|(unit, _)| *unit == self).map(|(_, spellings)| *spellings);
        spellings.and_then(|spellings| spellings.iter().find(|word| word.len() > 1)).copied().unwrap_or_default()
    }
}

impl Constant {
    /// The name, as in normal text.
    pub(super) fn name(self) -> &'static str {
        match self {
            Constant::Pi => "pi",
            Constant::E => "e",
        }
    }
}

/// The function of that name.
pub(super) fn function(word: &str) -> Option<Function> {
    let name = match word {
        "average" | "avg" => "mean",
        "ceiling" => "ceil",
        _ => word,
    };
    FUNCTIONS.iter().find(|(known, ..)| *known == name).map(|(_, function, ..)| *function)
}

/// The constant of that name.
pub(super) fn constant(word: &str) -> Option<Constant> {
    match word {
        "pi" => Some(Constant::Pi),
        "e" => Some(Constant::E),
        _ => None,
    }
}

/// The unit of that name.
pub(super) fn unit(word: &str) -> Option<Unit> {
    UNITS.iter().find(|(_, spellings)| spellings.contains(&word)).map(|(unit, _)| *unit)
}

/// Whether a word is one letter that can stand for an unknown. `e` is a constant; `i` is a root of -1 to many.
pub(super) fn is_letter(word: &str) -> bool {
    word.len() == 1 && !matches!(word, "e" | "i")
}

/// Whether a word is an unknown with a number, as in `x_1`.
pub(super) fn is_numbered(word: &str) -> bool {
    word.split_once('_').is_some_and(|(letter, number)| {
        letter.len() == 1 && is_letter(letter) && !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit())
    })
}

/// Whether a word leads from premises to a conclusion.
pub(super) fn implies(word: &str) -> bool {
    matches!(word, "therefore" | "implies" | "hence" | "so")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_has_one_meaning_but_for_min() {
        for (name, ..) in FUNCTIONS {
            assert!(constant(name).is_none() && !implies(name), "{name}");
            assert_eq!(unit(name).is_some(), name == "min", "{name}");
        }
        let mut spellings: Vec<&str> = UNITS.iter().flat_map(|(_, spellings)| spellings.iter().copied()).collect();
        let count = spellings.len();
        spellings.sort_unstable();
        spellings.dedup();
        assert_eq!(spellings.len(), count, "a spelling of two units");
    }

    #[test]
    fn unknowns_are_letters_with_or_without_a_number() {
        assert!(["x", "Q", "m"].into_iter().all(is_letter));
        assert!(!["e", "i", "xy", ""].into_iter().any(is_letter));
        assert!(["x_1", "a_12"].into_iter().all(is_numbered));
        assert!(!["x1", "x_", "_1", "e_1", "xy_1", "x_a"].into_iter().any(is_numbered));
    }
}
