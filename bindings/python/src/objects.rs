//! Verified states as Python objects: plain and mutable in answers, frozen in a guard's configuration.

use std::borrow::Cow;

use interlock_core::json::{Content, Number, Value};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyBool, PyDict, PyInt, PyList, PyMappingProxy, PyString, PyTuple, PyType};

/// `decimal.Decimal`.
pub(crate) fn decimal_type(py: Python<'_>) -> PyResult<Bound<'_, PyType>> {
    static DECIMAL: PyOnceLock<Py<PyType>> = PyOnceLock::new();
    DECIMAL.import(py, "decimal", "Decimal").cloned()
}

/// The strings a schema names, keys and enumerated values, as Python strings, so that answers share them.
pub(crate) struct SharedStrings {
    slots: Vec<Option<(String, Py<PyString>)>>,
}

/// As many slots as there may be strings to share, four times over, so that a search is short.
const SLOTS: usize = 1024;
const SHARED_MAX: usize = 256;
/// Longer strings are seldom named by a schema, and not searched for.
const SHARED_BYTES_MAX: usize = 64;

impl SharedStrings {
    pub(crate) fn of(py: Python<'_>, schema: Value<'_>) -> SharedStrings {
        let mut shared = SharedStrings { slots: Vec::new() };
        shared.slots.resize_with(SLOTS, || None);
        let mut left = SHARED_MAX;
        shared.add_all(py, schema, &mut left);
        shared
    }

    /// Every string of the schema's text counts; those that are keywords or types do no harm.
    fn add_all(&mut self, py: Python<'_>, value: Value<'_>, left: &mut usize) {
        for item in value.as_array().into_iter().flatten() {
            if let Some(text) = item.as_str() {
                self.add(py, &text.nfc(), left);
            }
            self.add_all(py, item, left);
        }
        for (key, member) in value.as_object().into_iter().flatten() {
            self.add(py, &key.nfc(), left);
            self.add_all(py, member, left);
        }
    }

    fn add(&mut self, py: Python<'_>, text: &str, left: &mut usize) {
        if *left == 0 || text.len() > SHARED_BYTES_MAX || self.find(text).is_some() {
            return;
        }
        let free = slots_for(text).find(|slot| matches!(self.slots.get(*slot), Some(None)));
        if let Some(slot) = free.and_then(|slot| self.slots.get_mut(slot)) {
            *slot = Some((text.to_owned(), PyString::intern(py, text).unbind()));
            *left = left.saturating_sub(1);
        }
    }

    #[inline]
    fn find(&self, text: &str) -> Option<&Py<PyString>> {
        if text.len() > SHARED_BYTES_MAX {
            return None;
        }
        for slot in slots_for(text) {
            match self.slots.get(slot)? {
                Some((name, object)) if name == text => return Some(object),
                Some(_) => {}
                None => return None,
            }
        }
        None
    }
}

/// The slots a string may stand in, in the order they are tried. The strings are few and chosen by the operator, so
/// three of their properties tell most of them apart.
#[inline]
fn slots_for(text: &str) -> impl Iterator<Item = usize> {
    let (first, last) = (text.bytes().next().unwrap_or(0), text.bytes().next_back().unwrap_or(0));
    let hash = text.len().wrapping_add(usize::from(first) << 3).wrapping_add(usize::from(last) << 5);
    (0..SLOTS).map(move |step| hash.wrapping_add(step) % SLOTS)
}

/// Builds Python objects from values.
pub(crate) struct Builder<'py, 'k> {
    py: Python<'py>,
    strings: &'k SharedStrings,
}

impl<'py, 'k> Builder<'py, 'k> {
    pub(crate) fn new(py: Python<'py>, strings: &'k SharedStrings) -> Builder<'py, 'k> {
        Builder { py, strings }
    }

    /// A dict, list, str, int, Decimal, bool or None; dicts have their keys in canonical order, strings are normalised.
    pub(crate) fn plain(&self, value: Value<'_>) -> PyResult<Bound<'py, PyAny>> {
        let py = self.py;
        Ok(match value.content() {
            Some(Content::String(text)) => {
                let text = text.nfc();
                match self.strings.find(&text) {
                    Some(shared) => shared.bind(py).clone().into_any(),
                    None => PyString::new(py, &text).into_any(),
                }
            }
            Some(Content::Boolean(value)) => PyBool::new(py, value).to_owned().into_any(),
            Some(Content::Number(number)) => number_object(py, &number)?,
            Some(Content::Object(_)) => {
                let dict = PyDict::new(py);
                for (key, value) in value.members_in_canonical_order() {
                    let (key, value) = (key.nfc(), self.plain(value)?);
                    match self.strings.find(&key) {
                        Some(shared) => dict.set_item(shared.bind(py), value)?,
                        None => dict.set_item(PyString::new(py, &key), value)?,
                    }
                }
                dict.into_any()
            }
            Some(Content::Array(items)) => {
                let items: Vec<_> = items.map(|item| self.plain(item)).collect::<PyResult<_>>()?;
                PyList::new(py, items)?.into_any()
            }
            Some(Content::Null) | None => py.None().into_bound(py),
        })
    }

    /// The same, read-only: dicts as mapping proxies in the order they were given, lists as tuples.
    pub(crate) fn frozen(&self, value: Value<'_>) -> PyResult<Bound<'py, PyAny>> {
        let py = self.py;
        match value.content() {
            Some(Content::Array(items)) => {
                let items: Vec<_> = items.map(|item| self.frozen(item)).collect::<PyResult<_>>()?;
                Ok(PyTuple::new(py, items)?.into_any())
            }
            Some(Content::Object(members)) => {
                let dict = PyDict::new(py);
                for (key, value) in members {
                    dict.set_item(key.text(), self.frozen(value)?)?;
                }
                Ok(freeze(&dict))
            }
            _ => self.plain(value),
        }
    }
}

/// A read-only view that is the only way to reach the dict.
pub(crate) fn freeze<'py>(dict: &Bound<'py, PyDict>) -> Bound<'py, PyAny> {
    PyMappingProxy::new(dict.py(), dict.as_mapping()).into_any()
}

/// Integers as `int`, everything else as `decimal.Decimal`.
fn number_object<'py>(py: Python<'py>, number: &Number<'_>) -> PyResult<Bound<'py, PyAny>> {
    // As it is printed: `1.5e1` is written as 15, and is an integer to whoever reads it.
    let printed = if number.is_integer() { Cow::Borrowed(number.literal()) } else { Cow::Owned(number.canonical()) };
    if printed.contains(['.', 'E']) {
        return decimal_type(py)?.call1((printed,));
    }
    match printed.parse::<i64>() {
        Ok(small) => Ok(small.into_pyobject(py)?.into_any()),
        Err(_) => large_integer(py, &printed),
    }
}

/// Python refuses to read more digits at once than a limit that a program may lower to 640, so they come in parts.
fn large_integer<'py>(py: Python<'py>, literal: &str) -> PyResult<Bound<'py, PyAny>> {
    const PART: usize = 18;
    let digits = literal.trim_start_matches('-').as_bytes();
    let (head, rest) = digits.split_at_checked(digits.len() % PART).unwrap_or((digits, &[]));
    let part =
        |digits: &[u8]| digits.iter().fold(0_u64, |n, digit| n.wrapping_mul(10).wrapping_add(u64::from(digit & 0xF)));
    let mut integer = part(head).into_pyobject(py)?.into_any();
    let scale = 1_000_000_000_000_000_000_u64;
    for chunk in rest.chunks(PART) {
        integer = integer.mul(scale)?.add(part(chunk))?;
    }
    if literal.starts_with('-') { integer.neg() } else { Ok(integer) }
}

/// An unsigned length as a Python integer.
pub(crate) fn length<'py>(py: Python<'py>, length: usize) -> PyResult<Bound<'py, PyInt>> {
    Ok(length.into_pyobject(py)?)
}
