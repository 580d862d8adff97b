//! A list of configured values, ready to find a payload's value in it without looking at each.

use super::canonical::by_value;
use super::document::{Kind, Value};
use super::equal::equal;

/// Lists up to this length are searched one by one, unless the value would have to be normalised for each.
const FEW_MAX: usize = 8;

/// Distinct values with their positions.
#[derive(Debug, Clone)]
pub(crate) struct ValueList {
    /// Sorted by the text that equal values share.
    texts: Vec<(String, usize)>,
}

impl ValueList {
    /// Reads an array; of equal values the first counts.
    pub(crate) fn of(array: Value<'_>) -> ValueList {
        let items = array.as_array().into_iter().flatten().enumerate();
        let mut texts: Vec<_> = items.map(|(position, item)| (by_value(item), position)).collect();
        texts.sort_unstable();
        texts.dedup_by(|later, earlier| later.0 == earlier.0);
        ValueList { texts }
    }

    /// How many distinct values there are.
    pub(crate) fn len(&self) -> usize {
        self.texts.len()
    }

    /// The position of a value in `array`, the array this list was read from.
    pub(crate) fn position(&self, array: Value<'_>, value: Value<'_>) -> Option<usize> {
        let simple = match value.kind()? {
            Kind::String => value.as_str()?.is_plain(),
            Kind::Null | Kind::Boolean | Kind::Integer | Kind::Number => true,
            Kind::Array | Kind::Object => false,
        };
        if simple && self.texts.len() <= FEW_MAX {
            return array.as_array()?.position(|item| equal(item, value));
        }
        let text = by_value(value);
        let at = self.texts.binary_search_by(|(candidate, _)| candidate.as_str().cmp(&text)).ok()?;
        self.texts.get(at).map(|(_, position)| *position)
    }
}
