//! Verified states as Python objects: plain and mutable in answers, frozen in a guard's configuration.

use std::borrow::Cow;

use interlock_core::json::{Content, Kind, Number, Value};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyBool, PyDict, PyInt, PyList, PyMappingProxy, PyString, PyTuple, PyType};

/// `decimal.Decimal`.
pub(crate) fn decimal_type(py: Python<'_>) -> PyResult<Bound<'_, PyType>> {
    static DECIMAL: PyOnceLock<Py<PyType>> = PyOnceLock::new();
    DECIMAL.import(py, "decimal", "Decimal").cloned()
}

/// The keys a schema names, as Python strings, so that answers share them.
pub(crate) struct Keys {
    slots: Vec<Option<(String, Py<PyString>)>>,
}

/// As many slots as there may be keys to share, four times over, so that a search is short.
const KEY_SLOTS: usize = 1024;
const KEYS_MAX: usize = 256;

impl Keys {
    pub(crate) fn of(py: Python<'_>, schema: Value<'_>) -> Keys {
        let mut keys = Keys { slots: Vec::new() };
        keys.slots.resize_with(KEY_SLOTS, || None);
        let mut left = KEYS_MAX;
        keys.add(py, schema, &mut left);
        keys
    }

    /// Every key of the schema's text counts; those that are keywords do no harm.
    fn add(&mut self, py: Python<'_>, value: Value<'_>, left: &mut usize) {
        for item in value.as_array().into_iter().flatten() {
            self.add(py, item, left);
        }
        for (key, member) in value.as_object().into_iter().flatten() {
            let name = key.nfc().into_owned();
            if *left > 0 && self.find(&name).is_none() {
                let free = slots_for(&name).find(|slot| matches!(self.slots.get(*slot), Some(None)));
                if let Some(slot) = free.and_then(|slot| self.slots.get_mut(slot)) {
                    *slot = Some((name.clone(), PyString::intern(py, &name).unbind()));
                    *left = left.saturating_sub(1);
                }
            }
            self.add(py, member, left);
        }
    }

    fn find(&self, key: &str) -> Option<&Py<PyString>> {
        for slot in slots_for(key) {
            match self.slots.get(slot)? {
                Some((name, object)) if name == key => return Some(object),
                Some(_) => {}
                None => return None,
            }
        }
        None
    }

    fn get<'py>(&self, py: Python<'py>, key: &str) -> Bound<'py, PyString> {
        match self.find(key) {
            Some(object) => object.bind(py).clone(),
            None => PyString::new(py, key),
        }
    }
}

/// The slots a key may stand in, in the order they are tried. Keys are few and chosen by the operator, so three of
/// their properties tell most of them apart.
fn slots_for(key: &str) -> impl Iterator<Item = usize> {
    let (first, last) = (key.bytes().next().unwrap_or(0), key.bytes().next_back().unwrap_or(0));
    let hash = key.len().wrapping_add(usize::from(first) << 3).wrapping_add(usize::from(last) << 5);
    (0..KEY_SLOTS).map(move |step| hash.wrapping_add(step) % KEY_SLOTS)
}

/// Builds Python objects from values.
pub(crate) struct Builder<'py, 'k> {
    py: Python<'py>,
    keys: &'k Keys,
}

impl<'py, 'k> Builder<'py, 'k> {
    pub(crate) fn new(py: Python<'py>, keys: &'k Keys) -> Builder<'py, 'k> {
        Builder { py, keys }
    }

    /// A dict, list, str, int, Decimal, bool or None; dicts have their keys in canonical order, strings are normalised.
    pub(crate) fn plain(&self, value: Value<'_>) -> PyResult<Bound<'py, PyAny>> {
        let py = self.py;
        Ok(match value.kind() {
            Some(Kind::String) => {
                PyString::new(py, &value.as_str().map(|text| text.nfc()).unwrap_or_default()).into_any()
            }
            Some(Kind::Boolean) => PyBool::new(py, value.as_bool().unwrap_or_default()).to_owned().into_any(),
            Some(Kind::Integer | Kind::Number) => match value.as_number() {
                Some(number) => number_object(py, &number)?,
                None => py.None().into_bound(py),
            },
            Some(Kind::Object) => {
                let dict = PyDict::new(py);
                for (key, value) in value.members_in_canonical_order() {
                    let value = self.plain(value)?;
                    dict.set_item(self.keys.get(py, &key.nfc()), value)?;
                }
                dict.into_any()
            }
            Some(Kind::Array) => {
                let items: Vec<_> =
                    value.as_array().into_iter().flatten().map(|item| self.plain(item)).collect::<PyResult<_>>()?;
                PyList::new(py, items)?.into_any()
            }
            Some(Kind::Null) | None => py.None().into_bound(py),
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
