//! `POST /state/verify`: the state guard over HTTP. Commits are made by the command line and the Python package; here a
//! target is refused, because a commit through the service has to be an entry first.

use axum::http::StatusCode;
use interlock_core::state::{StateGuard, StateText, decision, target};
use interlock_core::{Code, Denial};

use crate::Service;
use crate::answer::Refusal;
use crate::request::{Body, malformed, only, present, text_or_null};

impl Service {
    pub(crate) fn verify_state(&self, body: &Body<'_>) -> Result<String, Refusal> {
        let root = body.root();
        only(root, &["guard", "current_state_json", "proposed_state_json", "target_path"])?;
        let named = present(root, "guard").ok_or_else(|| malformed("guard is required, a name or an object"))?;
        let inline;
        let guard = match named.as_str() {
            Some(name) => self.guards.get(name.text()).ok_or_else(|| {
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
        if text_or_null(root, "target_path")?.is_some() {
            let denial = target::refused("commits are not made through this service; use `interlock state verify`");
            return Ok(blocked(&denial));
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
