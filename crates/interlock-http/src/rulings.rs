//! The way of a ruling: admit, read, ask.
//!
//! - **Admit**: whose request it is, as far as its head says, and whether the limit lets it in. The limiter is consulted
//!   once for each request: at once where the head or the path tells whom to count it for, else when the body is there.
//! - **Read**: the body becomes facts and a text, when it is its turn if it is long. A malformed request of a known agent
//!   is on record too.
//! - **Ask**: the text is verified, the command submitted, and what was recorded is attested and written.

use std::sync::Arc;

use axum::extract::Request;
use axum::http::{HeaderMap, HeaderName, HeaderValue};
use axum::response::{IntoResponse, Response};
use interlock_core::action::{Agent, Door};
use interlock_core::bundle::Payloads;
use interlock_core::ledger::{Body as EntryBody, Idempotency};
use interlock_core::{Code, Digest};
use interlock_runtime::gate::{Asking, Gate};
use interlock_runtime::ledger::{Answer, Command, Request as LedgerRequest, RuleCommand};

use crate::Service;
use crate::answer::{self, AnswerContext, Refusal};
use crate::apart::{Asker, long};
use crate::auth::Credentials;
use crate::body::{Counter, Received, read_body, read_unproven};
use crate::rate::Admission;
use crate::request::{Body, Question, malformed};
use crate::routes::Answered;
use crate::turns::Turn;

const IDEMPOTENCY_KEY: HeaderName = HeaderName::from_static("idempotency-key");
/// The longest Idempotency-Key.
const KEY_BYTES_MAX: usize = 255;

/// What is asked, as the path says.
pub(crate) struct RulingPath {
    pub(crate) door: Door,
    /// The agent.
    pub(crate) id: String,
    /// The tool; empty where the body says what is asked.
    pub(crate) tool: String,
}

/// A request whose body is there.
struct Arrived {
    bytes: Received,
    key: Result<Option<Digest>, Refusal>,
    /// Where it went, if it can be asked again.
    path: String,
    /// It is long, and it is its turn.
    turn: Option<Turn>,
}

/// A request that is read.
struct Read<'a> {
    token: Digest,
    question: Question<'a>,
    idempotency: Option<Idempotency>,
    text: Option<Arc<str>>,
}

/// Why a request of a known agent cannot be asked: that is on record.
struct Unasked {
    token: Digest,
    refusal: Refusal,
}

impl Service {
    /// A ruling, from the request to the answer.
    pub(crate) async fn rule(&self, path: RulingPath, request: Request) -> Response {
        self.count_request();
        let mut admission = Admission::default();
        let ruled = self.try_rule(&mut admission, &path, request).await;
        let response = ruled.unwrap_or_else(|refusal| {
            self.count_stranger(&refusal);
            refusal.decided().into_response()
        });
        admission.tell(response)
    }

    async fn try_rule(&self, admission: &mut Admission, path: &RulingPath, request: Request) -> Answered {
        let credentials = Credentials::read(request.headers());
        let agent = self.admit(admission, &path.id, &credentials).await?;
        let opened_at = agent.entries;
        let arrived = self.receive(admission, &agent, &credentials, request).await;
        let arrived = match arrived {
            Ok(arrived) => arrived,
            Err(refusal) => return self.refuse_unread(admission, &agent, &credentials, path.door, refusal).await,
        };
        let Arrived { bytes, key, path: asked_at, mut turn } = arrived;
        let body = match in_turn(turn.as_ref(), || Body::read(&bytes)) {
            Ok(body) => body,
            Err(refusal) => {
                drop(turn);
                return self.refuse_unread(admission, &agent, &credentials, path.door, refusal).await;
            }
        };
        let token = credentials.agent_token(body.agent_token()).filter(|token| agent.has_token(*token));
        self.consult(admission, token).await?;
        let token = token.ok_or_else(Refusal::wrong_token)?;
        if turn.is_some() && !credentials.names_agent() {
            // From here on it is known whose work it is.
            drop(turn.take());
            turn = self.turn_if_long(|| Asker::Agent(path.id.clone()), bytes.len()).await?;
        }
        let read = in_turn(turn.as_ref(), || {
            let key = key?;
            let bundle = self.gate.bundle();
            let mut question = match path.door {
                Door::Verify => body.verify(&path.id, &bundle),
                Door::Tools | Door::Call => body.tool(&path.id, &path.tool, &bundle),
            }?;
            question.facts.opened_at = opened_at;
            let idempotency = key.map(|key| Idempotency { key, request: body.digest(&asked_at) });
            let keeps = bundle.payloads() != Payloads::None;
            let text = keeps.then(|| Arc::from(body.kept_text(path.door, &path.tool)));
            Ok(Read { token, question, idempotency, text })
        });
        let asked = match read {
            Ok(read) => self.ask(&agent, path.door, read, bytes.len(), turn).await?,
            Err(refusal) => {
                drop(turn);
                Err(Unasked { token, refusal })
            }
        };
        match asked {
            Ok(response) => Ok(response),
            Err(unasked) => Ok(self.record_malformed(&agent, &unasked, path.door).await),
        }
    }

    /// Admit: the agent, whose token in the head is its own if there is one.
    async fn admit(
        &self,
        admission: &mut Admission,
        id: &str,
        credentials: &Credentials,
    ) -> Result<Arc<Agent>, Refusal> {
        let found = self.find_agent(id);
        let known = found.as_ref().ok().and_then(Option::as_ref);
        let token = credentials.agent_token(None).filter(|token| known.is_some_and(|agent| agent.has_token(*token)));
        // A token in the body is known once the body is read; it is counted then.
        if credentials.names_agent() || known.is_none() {
            self.consult(admission, token).await?;
        }
        let agent = found?.ok_or_else(Refusal::unknown_agent)?;
        if credentials.names_agent() && token.is_none() {
            return Err(Refusal::wrong_token());
        }
        Ok(agent)
    }

    /// Waits for the body, and for its turn if it is long.
    async fn receive(
        &self,
        admission: &mut Admission,
        agent: &Agent,
        credentials: &Credentials,
        request: Request,
    ) -> Result<Arrived, Refusal> {
        let key = idempotency_key(request.headers());
        // Only a request that can be asked again is compared with others.
        let path = matches!(key, Ok(Some(_))).then(|| request.uri().path().to_owned()).unwrap_or_default();
        let (bytes, asker) = if credentials.names_agent() {
            (read_body(request).await?, Asker::Agent(agent.profile.agent_id.clone()))
        } else {
            // It is counted before it takes more room than others, and not only once it is there.
            let counter = Counter { service: self, admission };
            (read_unproven(request, Some(counter)).await?, Asker::Stranger)
        };
        let turn = self.turn_if_long(|| asker, bytes.len()).await?;
        Ok(Arrived { bytes, key, path, turn })
    }

    /// The answer to a body that could not be read. It is on record if the head says whose it is.
    async fn refuse_unread(
        &self,
        admission: &mut Admission,
        agent: &Agent,
        credentials: &Credentials,
        door: Door,
        refusal: Refusal,
    ) -> Answered {
        // A server that has no room says nothing about the agent.
        if matches!(refusal.code(), Code::FaultBusy | Code::RateLimited) {
            return Err(refusal);
        }
        match credentials.agent_token(None) {
            Some(token) => Ok(self.record_malformed(agent, &Unasked { token, refusal }, door).await),
            // Nobody is known to have asked.
            None => {
                self.consult(admission, None).await?;
                Err(refusal)
            }
        }
    }

    /// Ask: verify, submit, attest, write.
    async fn ask(
        &self,
        agent: &Agent,
        door: Door,
        read: Read<'_>,
        length: usize,
        turn: Option<Turn>,
    ) -> Result<Result<Response, Unasked>, Refusal> {
        let Read { token, question: Question { facts, action }, idempotency, text } = read;
        let reservation = if facts.dry_run { None } else { self.gate.reserve(&facts, &agent.profile.agent_id) };
        if reservation.is_none() && !facts.dry_run && idempotency.is_none() {
            let refusal = Refusal::new(Code::LoopReplay, "this step is being decided on for another request");
            return Ok(Err(Unasked { token, refusal }));
        }
        let mut asked = AnswerContext { door, action: Some(action), attestation: None };
        let asking = Asking { agent, token, facts, action, idempotency, text };
        let command = self.prepare(&asking, length, turn).await?;
        let mut answer = self.submit(command).await;
        if let Answer::NeedsEvidence(bundle) = &answer {
            let command = self.prepare_again(&asking, bundle).await?;
            answer = self.submit(command).await;
            if matches!(answer, Answer::NeedsEvidence(_)) {
                answer = Gate::without_evidence();
            }
        }
        drop(reservation);
        self.count_decision(&answer);
        asked.attestation = self.attest(&answer, &asked)?;
        Ok(Ok(answer::ruling(answer, &asked)))
    }

    /// Every request of an authenticated agent is on record, one that cannot be asked too.
    async fn record_malformed(&self, agent: &Agent, unasked: &Unasked, door: Door) -> Response {
        let Unasked { token, refusal } = unasked;
        let (code, message) = (refusal.code(), refusal.message().to_owned());
        let command = Command::Rule(Box::new(RuleCommand {
            agent: agent.profile.agent_id.clone(),
            token: *token,
            request: LedgerRequest::Malformed { code, message },
            idempotency: None,
            corrected: None,
            text: None,
        }));
        let answer = self.submit(command).await;
        self.count_decision(&answer);
        answer::ruling(answer, &AnswerContext { door, action: None, attestation: None })
    }

    /// Counts a request that proved no identity.
    pub(crate) fn count_stranger(&self, refusal: &Refusal) {
        if matches!(refusal.code(), Code::AgentUnknown | Code::AgentToken) {
            self.gate.ledger().count_unauthenticated(refusal.code());
        }
    }

    fn count_decision(&self, answer: &Answer) {
        if let Answer::Recorded(recorded) = answer
            && let EntryBody::Ruled(ruled) = &recorded.entry.body
        {
            self.metrics.count(ruled.ruling.decision);
            self.note(|note| note.ruled(recorded, ruled));
        }
    }
}

/// What is long is done where no answer waits.
fn in_turn<T>(turn: Option<&Turn>, work: impl FnOnce() -> T) -> T {
    if turn.is_some() { long(work) } else { work() }
}

fn idempotency_key(headers: &HeaderMap) -> Result<Option<Digest>, Refusal> {
    let mut keys = headers.get_all(IDEMPOTENCY_KEY).iter().map(HeaderValue::as_bytes);
    match keys.next() {
        None => Ok(None),
        Some(key) if !keys.all(|other| other == key) => Err(malformed("there are two Idempotency-Keys")),
        Some(key) if key.is_empty() || key.len() > KEY_BYTES_MAX => {
            Err(malformed(format!("Idempotency-Key has 1 to {KEY_BYTES_MAX} bytes")))
        }
        Some(key) => Ok(Some(Digest::of_bytes(key))),
    }
}
