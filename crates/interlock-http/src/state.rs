//! `POST /state/verify`: the state guard over HTTP. With a target the state is committed, by guards of the bundle only.

use axum::http::StatusCode;
use interlock_core::state::{StateGuard, StateText, decision, target};
use interlock_core::{Code, Denial};
use interlock_runtime::StateFiles;
use interlock_runtime::state_commit::{CommitRefusal, commit_recorded};
use interlock_wire::StateRequest;

use crate::Service;
use crate::answer::Refusal;
use crate::request::{Body, malformed, only, present, text_or_null};

impl Service {
    pub(crate) fn verify_state(&self, body: &Body<'_>) -> Result<String, Refusal> {
        let root = body.root();
        only(root, StateRequest::MEMBERS)?;
        let named = present(root, "guard").ok_or_else(|| malformed("guard is required, a name or an object"))?;
        let inline;
        let guard = match named.as_str() {
            Some(name) => self.files.get(name.text()).map(StateFiles::guard).ok_or_else(|| {
                let name = interlock_core::display(name.text());
                let message = format!("the bundle has no guard `{name}`");
                Refusal::new(Code::ConfigInvalid, message).with_status(StatusCode::NOT_FOUND)
            })?,
            None => {
                inline = StateGuard::load_file(named.source())
                    .map_err(|error| Refusal::new(Code::ConfigInvalid, error.to_string()))?;
                &inline
            }
        };
        let text = |key| match present(root, key) {
            Some(value) => value.as_str().map_or(StateText::NotText, |text| StateText::Text(text.text())),
            None => StateText::NotText,
        };
        let proposed = text("proposed_state_json");
        if let Some(path) = text_or_null(root, "target_path")?.and_then(|path| path.as_str()) {
            let Some((name, files)) = named.as_str().and_then(|name| self.files.get_key_value(name.text())) else {
                let denial = target::refused("only a guard of the bundle may commit; name one instead of sending it");
                return Ok(blocked(&denial));
            };
            let (current, ledger) = (text("current_state_json"), self.gate.ledger());
            return match commit_recorded(ledger, name, files, current, proposed, path.text()) {
                Ok(decision) => Ok(decision),
                Err(CommitRefusal::Blocked(denial)) => Ok(blocked(&denial)),
                Err(CommitRefusal::Fault(code)) => Err(Refusal::of_code(code)),
                Err(CommitRefusal::Unknown) => Err(Refusal::unknown()),
                Err(CommitRefusal::Unsettled) => Err(Refusal::new(
                    Code::FaultStore,
                    "the outcome of this commit is not on record; the file holds the old state or the new one, and \
                     nothing more is committed to it until the next start has settled which",
                )),
            };
        }
        Ok(match present(root, "current_state_json") {
            None => match guard.verify_payload(proposed) {
                Ok(state) => decision::payload(&state),
                Err(denial) => blocked(&denial),
            },
            Some(_) => match guard.verify_transition(text("current_state_json"), proposed) {
                Ok(transition) => decision::transition(&transition),
                Err(denial) => blocked(&denial),
            },
        })
    }
}

fn blocked(denial: &Denial) -> String {
    decision::failure(denial)
}
