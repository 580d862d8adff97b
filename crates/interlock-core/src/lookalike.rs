//! Whether a name reads as another one: to a person, whatever the characters are.

use unicode_normalization::UnicodeNormalization;
use unicode_normalization::char::is_combining_mark;

/// Letters of other alphabets, and digits, that look like a Latin one.
const LOOKALIKES: &[(char, &str)] = &[
    ('a', "аαɑ"),
    ('c', "сϲ"),
    ('d', "ԁ"),
    ('e', "еєεҽ3"),
    ('g', "ɡ"),
    ('h', "һ"),
    ('i', "іιı1|!"),
    ('j', "јϳ"),
    ('k', "кκ"),
    ('l', "ӏ"),
    ('m', "м"),
    ('n', "ո"),
    ('o', "оοօσ0"),
    ('p', "рρ"),
    ('q', "ԛ"),
    ('r', "гɼʀ"),
    ('s', "ѕ5$"),
    ('t', "тτ7+"),
    ('u', "υս"),
    ('v', "νѵ"),
    ('w', "ѡԝ"),
    ('x', "хχ"),
    ('y', "уγү"),
];

/// Whether a name reads as a known one: case, marks, the form of letters and whatever is no letter do not count.
///
/// ```
/// assert!(interlock_core::reads_as(" Op\u{435}rator\u{200b} ", "operator"));
/// assert!(!interlock_core::reads_as("operator of the night", "operator"));
/// ```
pub fn reads_as(name: &str, known: &str) -> bool {
    folded(name) == folded(known)
}

fn folded(name: &str) -> String {
    let letters = name.nfkd().filter(|c| !is_combining_mark(*c)).flat_map(char::to_lowercase);
    let latin = letters.map(|letter| {
        let found = LOOKALIKES.iter().find(|(_, others)| others.contains(letter));
        found.map_or(letter, |(latin, _)| *latin)
    });
    latin.filter(|letter| letter.is_alphanumeric()).collect()
}
