//! Verified states as Python objects: plain and mutable in answers, frozen in a guard's configuration.

use interlock_core::json::{Content, Number, Value};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyBool, PyDict, PyInt, PyList, PyMappingProxy, PyString, PyTuple, PyType};

/// `decimal.Decimal`.
pub(crate) fn decimal_type(py: Python<'_>) -> PyResult<Bound<'_, PyType>> {
    static DECIMAL: PyOnceLock<Py<PyType>> = PyOnceLock::new();
    DECIMAL.import(py, "decimal", "Decimal").cloned()
}

/// Builds objects; one per answer, so that equal keys are one string.
pub(crate) struct Builder<'py> {
    py: Python<'py>,
    keys: Vec<Option<(String, Bound<'py, PyString>)>>,
}

/// Slots for keys that were seen; two keys that share a slot push each other out.
const KEY_SLOTS: usize = 64;

impl<'py> Builder<'py> {
    pub(crate) fn new(py: Python<'py>) -> Builder<'py> {
        Builder { py, keys: Vec::new() }
    }

    /// A dict, list, str, int, Decimal, bool or None; dicts have their keys in canonical order, strings are normalised.
    pub(crate) fn plain(&mut self, value: Value<'_>) -> PyResult<Bound<'py, PyAny>> {
        let py = self.py;
        Ok(match value.content() {
            None | Some(Content::Null) => py.None().into_bound(py),
            Some(Content::Boolean(boolean)) => PyBool::new(py, boolean).to_owned().into_any(),
            Some(Content::Number(number)) => number_object(py, &number)?,
            Some(Content::String(string)) => PyString::new(py, &string.nfc()).into_any(),
            Some(Content::Array(items)) => {
                let items: Vec<_> = items.map(|item| self.plain(item)).collect::<PyResult<_>>()?;
                PyList::new(py, items)?.into_any()
            }
            Some(Content::Object(members)) => {
                let dict = PyDict::new(py);
                for (key, value) in members.in_canonical_order() {
                    let value = self.plain(value)?;
                    dict.set_item(self.key(&key), value)?;
                }
                dict.into_any()
            }
        })
    }

    /// The same, read-only: dicts as mapping proxies in the order they were given, lists as tuples.
    pub(crate) fn frozen(&mut self, value: Value<'_>) -> PyResult<Bound<'py, PyAny>> {
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

    fn key(&mut self, key: &str) -> Bound<'py, PyString> {
        if self.keys.is_empty() {
            self.keys.resize_with(KEY_SLOTS, || None);
        }
        let hash = key.bytes().fold(key.len(), |hash, byte| hash.wrapping_mul(31).wrapping_add(usize::from(byte)));
        let Some(slot) = self.keys.get_mut(hash & (KEY_SLOTS.saturating_sub(1))) else {
            return PyString::new(self.py, key);
        };
        match slot {
            Some((seen, object)) if seen == key => object.clone(),
            _ => {
                let object = PyString::new(self.py, key);
                *slot = Some((key.to_owned(), object.clone()));
                object
            }
        }
    }
}

/// A read-only view that is the only way to reach the dict.
pub(crate) fn freeze<'py>(dict: &Bound<'py, PyDict>) -> Bound<'py, PyAny> {
    PyMappingProxy::new(dict.py(), dict.as_mapping()).into_any()
}

/// Integers as `int`, everything else as `decimal.Decimal`.
fn number_object<'py>(py: Python<'py>, number: &Number<'_>) -> PyResult<Bound<'py, PyAny>> {
    if !number.is_integer() {
        return decimal_type(py)?.call1((number.literal(),));
    }
    match number.literal().parse::<i64>() {
        Ok(small) => Ok(small.into_pyobject(py)?.into_any()),
        Err(_) => large_integer(py, number.literal()),
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
