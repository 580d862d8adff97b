//! Attestations at the edge: after the commit an answer that lets something risky run gets its token, or does not
//! leave. Which decisions these are, and what a token says, is in `interlock_runtime::attestation`.

use std::sync::Arc;

use axum::extract::{Request, State};
use axum::http::{HeaderName, HeaderValue, StatusCode};
use axum::response::Response;
use interlock_core::action::{ActionText, Ticket, fingerprint};
use interlock_core::json::{self, Limits};
use interlock_core::ledger::{Body as EntryBody, SigningKeyRotated, leaf_hash};
use interlock_core::{Code, Digest};
use interlock_runtime::attestation::{Algorithm, AttestationKeys, is_due, is_due_once_granted};
use interlock_runtime::ledger::{Answer, Command, Recorded};
use interlock_wire as wire;

use crate::Service;
use crate::answer::{AnswerContext, Refusal, corrected_action, json as json_response, recorded};
use crate::apart::long;
use crate::auth::Credentials;
use crate::request::{Body, malformed, only, text_or_null};
use crate::routes::read_body;

/// The header that carries the token beside the body.
const HEADER: HeaderName = HeaderName::from_static("qwed-attestation");

/// `GET /.well-known/jwks.json`.
pub(crate) async fn jwks(State(service): State<Arc<Service>>) -> Response {
    let keys = service.attestation.get();
    json_response(StatusCode::OK, keys.map_or_else(|| "{\"keys\":[]}".to_owned(), |keys| keys.jwks().to_json()))
}

/// `POST /attestation/rotate`.
pub(crate) async fn rotate(State(service): State<Arc<Service>>, request: Request) -> Result<Response, Refusal> {
    service.count_request();
    let credentials = Credentials::read(request.headers());
    let by = service.admin(&credentials)?.actor;
    let bytes = read_body(request).await?;
    let algorithm = read_algorithm(&bytes)?;
    // The body may have taken its time; the key is turned before the ledger can say no.
    service.admin(&credentials)?;
    let fault =
        |message: String| Refusal::new(Code::FaultInternal, message).with_status(StatusCode::SERVICE_UNAVAILABLE);
    let keys = service.attestation.get().cloned();
    let keys = keys.ok_or_else(|| fault("this service issues no attestations".to_owned()))?;
    // It waits for the disk.
    let rotated = tokio::task::spawn_blocking(move || keys.rotate(algorithm));
    let rotated = rotated.await.map_err(|_| Refusal::of_code(Code::FaultInternal))?;
    let key = rotated.map_err(|reason| fault(reason.to_string()))?;
    let (kid, alg) = (key.kid().to_owned(), key.algorithm().as_str().to_owned());
    recorded(service.submit(Command::RotateSigningKey(SigningKeyRotated { kid, alg, by })).await)?;
    let answer = wire::RotatedKey { kid: key.kid().to_owned(), alg: key.algorithm().as_str().to_owned() };
    Ok(json_response(StatusCode::OK, wire::write(&answer)))
}

fn read_algorithm(bytes: &[u8]) -> Result<Option<Algorithm>, Refusal> {
    let Some(body) = Body::read_optional(bytes)? else { return Ok(None) };
    only(body.root(), wire::RotateRequest::MEMBERS)?;
    let Some(word) = text_or_null(body.root(), "alg")?.and_then(|word| word.as_str()) else { return Ok(None) };
    Algorithm::parse(word.text()).map(Some).ok_or_else(|| malformed("alg must be `ES256` or `EdDSA`"))
}

/// Puts a token into the head of an answer.
pub(crate) fn carry(mut response: Response, token: Option<&str>) -> Response {
    // A token is letters, digits, `-`, `_` and `.`, so it is always a header.
    if let Some(value) = token.and_then(|token| HeaderValue::from_str(token).ok()) {
        response.headers_mut().insert(HEADER, value);
    }
    response
}

impl Service {
    /// Lets this service issue attestations. The first keys given stay.
    pub fn with_attestation(self: Arc<Self>, keys: Arc<AttestationKeys>) -> Arc<Service> {
        self.attestation.get_or_init(|| keys);
        self
    }

    /// The token that an answer carries, if one is due. One that is due and cannot be issued is a fault: no approval
    /// leaves without what was asked for.
    pub(crate) fn attest(&self, answer: &Answer, asked: &AnswerContext<'_>) -> Result<Option<String>, Refusal> {
        let Answer::Recorded(recorded) = answer else { return Ok(None) };
        let EntryBody::Ruled(ruled) = &recorded.entry.body else { return Ok(None) };
        if !is_due(ruled) {
            return Ok(None);
        }
        let message = "the decision is on record, but its attestation could not be issued; do not act on it, and ask \
            again with the same Idempotency-Key";
        let refused = || Refusal::new(Code::FaultInternal, message).with_status(StatusCode::SERVICE_UNAVAILABLE);
        self.try_attest(recorded, asked).map(Some).ok_or_else(refused)
    }

    /// The token of a ticket that a person approved, while it may be spent and if one is due.
    pub(crate) fn attest_ticket(&self, ticket: &Ticket) -> Result<Option<String>, Refusal> {
        let ledger = self.gate.ledger();
        let agent = self.find_agent(&ticket.agent)?.ok_or_else(|| Refusal::of_code(Code::FaultStore))?;
        // What could not be spent now is not attested either, whatever a person said before.
        let spendable = ticket.check_spendable(&agent, self.gate.bundle().digest(), ledger.now()).is_ok();
        let Some(granted) = ticket.resolution.as_ref().filter(|_| spendable) else { return Ok(None) };
        let read =
            |seq| ledger.recorded(&ticket.agent, seq).ok().flatten().ok_or_else(|| Refusal::of_code(Code::FaultStore));
        let ruled = read(ticket.opened)?;
        if !ruled.entry.body.ruled().is_some_and(is_due_once_granted) {
            return Ok(None);
        }
        let token =
            self.attestation.get().and_then(|keys| keys.attest_granted(&ruled, &read(granted.entry).ok()?).ok());
        let message = "the approval is on record, but its attestation could not be issued; ask again";
        let refused = || Refusal::new(Code::FaultInternal, message).with_status(StatusCode::SERVICE_UNAVAILABLE);
        token.map(Some).ok_or_else(refused)
    }

    fn try_attest(&self, recorded: &Recorded, asked: &AnswerContext<'_>) -> Option<String> {
        let keys = self.attestation.get()?;
        let entry = &recorded.entry;
        let previous = match entry.agent_seq?.checked_sub(1).filter(|before| *before > 0) {
            Some(before) => {
                let before = long(|| self.gate.ledger().entry_of(entry.agent.as_deref(), before)).ok()??;
                Some(leaf_hash(&before.bytes))
            }
            None => None,
        };
        let corrected = corrected_action(recorded, asked).and_then(|action| fingerprint_of(&action));
        keys.attest(recorded, corrected, previous).ok()
    }
}

/// The fingerprint of an action as an answer has it.
fn fingerprint_of(action: &str) -> Option<Digest> {
    let document = json::parse(action, &Limits::STATE).ok()?;
    let root = document.root();
    let part = |key| root.get(key);
    Some(fingerprint(&ActionText {
        kind: part("type")?.as_str()?.text(),
        query: part("query"),
        code: part("code"),
        target: part("target"),
        parameters: part("parameters"),
    }))
}
