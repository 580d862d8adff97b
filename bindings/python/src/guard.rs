//! `AgentStateGuard`: the documented class. Once it is built, none of its methods raises.

use std::panic::{AssertUnwindSafe, catch_unwind};

use interlock_core::json::{BYTES_MAX, STATE_DEPTH_MAX};
use interlock_core::state::{StateGuard, StateText, VerifiedState, VerifiedTransition, decision};
use interlock_core::{Code, Denial, Digest};
use interlock_runtime::StateFiles;
use pyo3::exceptions::{PyException, PyValueError};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString, PyTuple};

use crate::config;
use crate::objects::{Builder, SharedStrings, freeze, length};

/// A schema, transition rules and commit roots, checked once and never changed.
#[pyclass(frozen, subclass, module = "interlock")]
pub(crate) struct AgentStateGuard {
    files: StateFiles,
    strings: SharedStrings,
    templates: Templates,
    /// The schema, read-only; lists appear as tuples.
    #[pyo3(get)]
    required_schema: Py<PyAny>,
    /// The rules, read-only, with every kind of rule present; lists appear as tuples.
    #[pyo3(get)]
    transition_rules: Py<PyAny>,
    /// The directories commits may go to.
    #[pyo3(get)]
    allowed_commit_roots: Py<PyTuple>,
}

#[pymethods]
impl AgentStateGuard {
    #[classattr]
    const MAX_VALIDATION_DEPTH: usize = STATE_DEPTH_MAX;

    #[new]
    #[pyo3(signature = (required_schema, transition_rules=None, allowed_commit_roots=None))]
    fn new(
        required_schema: &Bound<'_, PyAny>,
        transition_rules: Option<&Bound<'_, PyAny>>,
        allowed_commit_roots: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<AgentStateGuard> {
        let py = required_schema.py();
        let schema = config::to_json("required_schema", required_schema).map_err(as_value_error(py))?;
        let rules = transition_rules.map(|rules| config::to_json("transition_rules", rules)).transpose();
        let rules = rules.map_err(as_value_error(py))?;
        let roots = allowed_commit_roots.map(config::roots_to_json).transpose().map_err(as_value_error(py))?;
        let guard = StateGuard::load_json(&schema, rules.as_deref(), roots.as_deref())
            .map_err(|error| PyValueError::new_err(error.to_string()))?;
        let strings = SharedStrings::of(py, guard.schema().source().root());
        let objects = Builder::new(py, &strings);
        let required_schema = objects.frozen(guard.schema().source().root())?.unbind();
        let transition_rules = rules_view(py, &objects, &guard)?.unbind();
        let allowed_commit_roots = PyTuple::new(py, guard.roots().iter().map(|root| root.path()))?.unbind();
        let files = StateFiles::new(guard);
        Ok(AgentStateGuard {
            files,
            strings,
            templates: Templates::new(py)?,
            required_schema,
            transition_rules,
            allowed_commit_roots,
        })
    }

    /// Verify a proposed state against the schema.
    fn verify_state_payload<'py>(
        &self,
        py: Python<'py>,
        proposed_state_json: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyDict>> {
        answer(py, || {
            let proposed = state_text(proposed_state_json);
            let verified = detached(py, &[proposed], || {
                let state = self.files.guard().verify_payload(proposed)?;
                let proof = state.proof();
                Ok::<_, Denial>((state, proof))
            });
            let (state, proof) = match verified {
                Ok(verified) => verified,
                Err(denial) => return blocked(py, &denial),
            };
            let result = success(py, &self.templates.payload, proof)?;
            set_normalized_state(&result, &Builder::new(py, &self.strings), &state)?;
            Ok(result)
        })
    }

    /// Verify both states against the schema and the way from one to the other against the rules.
    fn verify_state_transition<'py>(
        &self,
        py: Python<'py>,
        current_state_json: &Bound<'py, PyAny>,
        proposed_state_json: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyDict>> {
        answer(py, || {
            let (current, proposed) = (state_text(current_state_json), state_text(proposed_state_json));
            let verified = detached(py, &[current, proposed], || {
                let transition = self.files.guard().verify_transition(current, proposed)?;
                let proof = transition.proof();
                Ok::<_, Denial>((transition, proof))
            });
            match verified {
                Ok((transition, proof)) => {
                    let result = success(py, &self.templates.transition, proof)?;
                    set_normalized_states(&result, &Builder::new(py, &self.strings), &transition)?;
                    Ok(result)
                }
                Err(denial) => blocked(py, &denial),
            }
        })
    }

    /// Verify a transition and write the proposed state to a file in one step, or do nothing.
    fn verify_transition_and_commit_state<'py>(
        &self,
        py: Python<'py>,
        current_state_json: &Bound<'py, PyAny>,
        proposed_state_json: &Bound<'py, PyAny>,
        target_path: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyDict>> {
        answer(py, || {
            let (current, proposed) = (state_text(current_state_json), state_text(proposed_state_json));
            let target = path_text(target_path);
            let prepared = py.detach(|| {
                let prepared = self.files.prepare(current, proposed, &target)?;
                let proofs = (prepared.transition().proposed().digest(), prepared.transition().proof());
                Ok::<_, Denial>((prepared, proofs))
            });
            let (prepared, (proof, transition_proof)) = match prepared {
                Ok(prepared) => prepared,
                Err(denial) => return blocked(py, &denial),
            };
            // The answer is built first: a fault in building it must not come after the write.
            let bytes = prepared.transition().proposed().canonical().len();
            let result = success(py, &self.templates.commit, proof)?;
            set_normalized_states(&result, &Builder::new(py, &self.strings), prepared.transition())?;
            result.set_item(intern!(py, "transition_proof_ref"), digest_text(py, transition_proof))?;
            result.set_item(intern!(py, "committed_path"), &target)?;
            result.set_item(intern!(py, "committed_bytes"), length(py, bytes)?)?;
            match py.detach(|| prepared.commit().map(drop)) {
                Ok(()) => Ok(result),
                Err(denial) => blocked(py, &denial),
            }
        })
    }
}

/// Runs a method; whatever goes wrong on our side of it is an answer too, and never an approval.
fn answer<'py>(py: Python<'py>, run: impl FnOnce() -> PyResult<Bound<'py, PyDict>>) -> PyResult<Bound<'py, PyDict>> {
    match catch_unwind(AssertUnwindSafe(run)) {
        Ok(Ok(result)) => Ok(result),
        Ok(Err(_)) | Err(_) => {
            blocked(py, &Denial::blocked(Code::FaultInternal, "internal fault while answering; nothing was approved"))
        }
    }
}

/// Runs a verification without the interpreter's lock. A short text is verified sooner than the lock is handed over.
fn detached<T: Send>(py: Python<'_>, texts: &[StateText<'_>], verify: impl FnOnce() -> T + Send) -> T {
    const SHORT: usize = 1024;
    let is_short = |text: &StateText<'_>| matches!(text, StateText::Text(text) if text.len() <= SHORT);
    if texts.iter().all(is_short) { verify() } else { py.detach(verify) }
}

fn as_value_error(py: Python<'_>) -> impl Fn(PyErr) -> PyErr {
    move |error| {
        // An interrupt is for the program to see, not for us to word anew.
        if error.is_instance_of::<PyValueError>(py) || !error.is_instance_of::<PyException>(py) {
            return error;
        }
        PyValueError::new_err(format!("the configuration cannot be read: {error}"))
    }
}

/// A state as it was given. What is longer than any state may be is not converted at all.
fn state_text<'a>(given: &'a Bound<'_, PyAny>) -> StateText<'a> {
    let Ok(string) = given.cast::<PyString>() else { return StateText::NotText };
    // Called on `str` itself: a subclass may answer what it likes.
    let method = |name| given.py().get_type::<PyString>().call_method1(name, (given,));
    let exact = given.is_exact_instance_of::<PyString>();
    let count = if exact { given.len() } else { method("__len__").and_then(|count| count.extract()) };
    match count {
        Ok(count) if count > BYTES_MAX => {
            let blank = method("isspace").and_then(|blank| blank.extract::<bool>());
            if blank.unwrap_or(false) { StateText::NotText } else { StateText::TooLong }
        }
        Ok(_) => string.to_str().map_or(StateText::NotUnicode, StateText::Text),
        Err(_) => StateText::NotText,
    }
}

/// A path as text; what is no path is the empty text, which no target can have.
fn path_text(given: &Bound<'_, PyAny>) -> String {
    let path = match given.cast::<PyString>() {
        Ok(_) => Ok(given.clone()),
        Err(_) => given.call_method0("__fspath__"),
    };
    let text = path.ok().and_then(|path| path.cast_into::<PyString>().ok()?.to_str().ok().map(str::to_owned));
    text.unwrap_or_default()
}

fn blocked<'py>(py: Python<'py>, denial: &Denial) -> PyResult<Bound<'py, PyDict>> {
    let result = PyDict::new(py);
    result.set_item(intern!(py, "verified"), false)?;
    result.set_item(intern!(py, "status"), intern!(py, "BLOCKED"))?;
    result.set_item(intern!(py, "error_code"), denial.code.as_str())?;
    result.set_item(intern!(py, "message"), &denial.message)?;
    Ok(result)
}

fn digest_text(py: Python<'_>, digest: Digest) -> Bound<'_, PyString> {
    PyString::new(py, str::from_utf8(&digest.to_ascii()).unwrap_or_default())
}

/// Successful answers without what differs from one to the next. Copying a dictionary is cheaper than filling one.
struct Templates {
    payload: Template,
    transition: Template,
    commit: Template,
}

struct Template {
    answer: Py<PyDict>,
    developer_fields: Py<PyDict>,
}

impl Templates {
    fn new(py: Python<'_>) -> PyResult<Templates> {
        const STATE: &[&str] = &["proof_ref", "developer_fields", "normalized_state"];
        const STATES: &[&str] = &["proof_ref", "developer_fields", "normalized_state", "normalized_previous_state"];
        const FILE: &[&str] = &["transition_proof_ref", "committed_path", "committed_bytes"];
        let template = |proof: &str, open: &[&[&str]]| {
            let (answer, developer_fields) = (PyDict::new(py), PyDict::new(py));
            let proof = PyString::new(py, proof);
            answer.set_item("verified", true)?;
            answer.set_item("status", "VERIFIED")?;
            answer.set_item("proof", &proof)?;
            for key in open.iter().flat_map(|keys| keys.iter()) {
                answer.set_item(PyString::intern(py, key), py.None())?;
            }
            developer_fields.set_item("proof_reason", proof)?;
            Ok::<_, PyErr>(Template { answer: answer.unbind(), developer_fields: developer_fields.unbind() })
        };
        Ok(Templates {
            payload: template(decision::PAYLOAD_PROOF, &[STATE])?,
            transition: template(decision::TRANSITION_PROOF, &[STATES])?,
            commit: template(decision::COMMIT_PROOF, &[STATES, FILE])?,
        })
    }
}

/// A copy of a template with its proof.
fn success<'py>(py: Python<'py>, template: &Template, proof_ref: Digest) -> PyResult<Bound<'py, PyDict>> {
    let result = template.answer.bind(py).copy()?;
    result.set_item(intern!(py, "proof_ref"), digest_text(py, proof_ref))?;
    result.set_item(intern!(py, "developer_fields"), template.developer_fields.bind(py).copy()?)?;
    Ok(result)
}

fn set_normalized_state<'py>(
    result: &Bound<'py, PyDict>,
    objects: &Builder<'py, '_>,
    state: &VerifiedState<'_>,
) -> PyResult<()> {
    result.set_item(intern!(result.py(), "normalized_state"), objects.plain(state.document().root())?)
}

fn set_normalized_states<'py>(
    result: &Bound<'py, PyDict>,
    objects: &Builder<'py, '_>,
    transition: &VerifiedTransition<'_>,
) -> PyResult<()> {
    set_normalized_state(result, objects, transition.proposed())?;
    let previous = objects.plain(transition.current().document().root())?;
    result.set_item(intern!(result.py(), "normalized_previous_state"), previous)
}

/// The rules as they were given, with the kinds that were not.
fn rules_view<'py>(py: Python<'py>, objects: &Builder<'py, '_>, guard: &StateGuard) -> PyResult<Bound<'py, PyAny>> {
    let view = PyDict::new(py);
    view.set_item("immutable_paths", PyTuple::empty(py))?;
    view.set_item("monotonic_integer_paths", PyTuple::empty(py))?;
    view.set_item("ordered_enum_paths", freeze(&PyDict::new(py)))?;
    view.set_item("keyed_object_array_paths", freeze(&PyDict::new(py)))?;
    let given = guard.rules().and_then(|rules| rules.source().root().as_object());
    for (kind, rule) in given.into_iter().flatten() {
        view.set_item(kind.text(), objects.frozen(rule)?)?;
    }
    Ok(freeze(&view))
}
