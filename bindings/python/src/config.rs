//! Configuration given as Python objects, written as JSON so that the one strict parser reads it like any other.

use std::fmt::Display;

use interlock_core::json::{BYTES_MAX, CONFIG_DEPTH_MAX, quote};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyFloat, PyInt, PyList, PyMapping, PyString, PyTuple};

/// Writes a constructor argument as JSON.
pub(crate) fn to_json(argument: &str, value: &Bound<'_, PyAny>) -> PyResult<String> {
    let mut writer = Writer { argument, out: String::new() };
    writer.value(value, 0)?;
    Ok(writer.out)
}

/// Writes the commit roots as JSON; paths may be given as path objects.
pub(crate) fn roots_to_json(value: &Bound<'_, PyAny>) -> PyResult<String> {
    let not_a_list = || refuse("allowed_commit_roots must be a list of strings");
    if !value.is_instance_of::<PyList>() && !value.is_instance_of::<PyTuple>() {
        return Err(not_a_list());
    }
    let mut paths = Vec::new();
    for item in value.try_iter()? {
        let item = item?;
        let path = if item.is_instance_of::<PyString>() { Ok(item) } else { item.call_method0("__fspath__") };
        let path = path.map_err(|_| not_a_list())?;
        paths.push(quote(text(path.cast::<PyString>().map_err(|_| not_a_list())?)?));
    }
    Ok(format!("[{}]", paths.join(",")))
}

fn refuse(message: impl Display) -> PyErr {
    PyValueError::new_err(message.to_string())
}

fn text<'a>(string: &'a Bound<'_, PyString>) -> PyResult<&'a str> {
    string.to_str().map_err(|_| refuse("configuration strings must be valid Unicode: one has half of a surrogate pair"))
}

struct Writer<'a> {
    argument: &'a str,
    out: String,
}

impl Writer<'_> {
    /// Depth is bounded here, so a structure that contains itself ends as an error.
    fn value(&mut self, value: &Bound<'_, PyAny>, depth: usize) -> PyResult<()> {
        if depth > CONFIG_DEPTH_MAX || self.out.len() > BYTES_MAX {
            return Err(refuse(format_args!(
                "{} is nested too deeply, contains itself or is too large",
                self.argument
            )));
        }
        if value.is_none() {
            self.out.push_str("null");
        } else if let Ok(boolean) = value.cast::<PyBool>() {
            self.out.push_str(if boolean.is_true() { "true" } else { "false" });
        } else if let Ok(string) = value.cast::<PyString>() {
            self.out.push_str(&quote(text(string)?));
        } else if value.is_instance_of::<PyInt>() || value.is_instance_of::<PyFloat>() || is_decimal(value) {
            self.number(value)?;
        } else if value.is_instance_of::<PyList>() || value.is_instance_of::<PyTuple>() {
            self.list(value, depth)?;
        } else if let Ok(mapping) = value.cast::<PyMapping>() {
            self.mapping(mapping, depth)?;
        } else {
            let kind = value.get_type().name()?.to_string();
            return Err(refuse(format_args!(
                "{} must be a dictionary of JSON values; it contains a value of type {kind}",
                self.argument
            )));
        }
        Ok(())
    }

    /// The shortest text of a float, every digit of anything else; what is no JSON number the parser refuses.
    fn number(&mut self, value: &Bound<'_, PyAny>) -> PyResult<()> {
        let py = value.py();
        let unusable = || refuse(format_args!("{} contains a number that cannot be used", self.argument));
        // Asked of the type itself: a subclass may print what it likes.
        let shown = if value.is_instance_of::<PyFloat>() {
            py.get_type::<PyFloat>().call_method1("__repr__", (value,))
        } else if value.is_instance_of::<PyInt>() {
            py.get_type::<PyInt>().call_method1("__repr__", (value,))
        } else {
            crate::objects::decimal_type(py)?.call_method1("__str__", (value,))
        };
        let shown = shown.and_then(|shown| Ok(shown.cast_into::<PyString>()?)).map_err(|_| unusable())?;
        let literal = text(&shown)?;
        if !literal.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'+' | b'-' | b'.' | b'e' | b'E')) {
            return Err(unusable());
        }
        self.out.push_str(literal);
        Ok(())
    }

    fn list(&mut self, list: &Bound<'_, PyAny>, depth: usize) -> PyResult<()> {
        self.out.push('[');
        for (position, item) in list.try_iter()?.enumerate() {
            if position > 0 {
                self.out.push(',');
            }
            self.value(&item?, depth.saturating_add(1))?;
        }
        self.out.push(']');
        Ok(())
    }

    fn mapping(&mut self, mapping: &Bound<'_, PyMapping>, depth: usize) -> PyResult<()> {
        self.out.push('{');
        for (position, item) in mapping.items()?.iter().enumerate() {
            let (key, value): (Bound<'_, PyAny>, Bound<'_, PyAny>) = item.extract()?;
            let Ok(key) = key.cast::<PyString>() else {
                return Err(refuse(format_args!(
                    "keys in {} must be non-empty strings (paths must use dot-style JSON paths)",
                    self.argument
                )));
            };
            if position > 0 {
                self.out.push(',');
            }
            self.out.push_str(&quote(text(key)?));
            self.out.push(':');
            self.value(&value, depth.saturating_add(1))?;
        }
        self.out.push('}');
        Ok(())
    }
}

fn is_decimal(value: &Bound<'_, PyAny>) -> bool {
    crate::objects::decimal_type(value.py()).is_ok_and(|decimal| value.is_instance(&decimal).unwrap_or(false))
}
