//! What operators see and do of coding agents: where each stands, what was refused, what they let pass, workflows put in
//! force, runs steered.

use std::sync::Arc;

use axum::extract::{RawQuery, Request, State};
use axum::http::{HeaderMap, StatusCode};
use interlock_core::action::{Actor, Agent, Check, Facts, Mode};
use interlock_core::json::{self, Json, Limits, RawJson, Value, nfc};
use interlock_core::ledger::{AllowanceGiven, AllowanceTaken, Body as EntryBody, Role, Ruled, RunSteered, Steer};
use interlock_core::rule::CommandPattern;
use interlock_core::workflow::{Allowance, Workflow};
use interlock_core::{Code, display};
use interlock_hosts::Host;
use interlock_runtime::call_gate::Standing;
use interlock_runtime::coding_agents::{agent_id, profile};
use interlock_runtime::ledger::{Answer, Command, Enrolment, FoundEntry, RunChange, StartGround};
use interlock_wire::{self as wire, write};

use crate::Service;
use crate::answer::{Refusal, dollars, json, recorded};
use crate::apart::long;
use crate::auth::Credentials;
use crate::hooks::state_object;
use crate::keep::changes_of;
use crate::query::Query;
use crate::request::{Body, count, malformed, only, present, read_reason, reason, text_or_null};
use crate::routes::{Answered, Parts, blocking, parts, read_body};
use crate::workflows::{definition, no_runner, unknown_workflow};
use crate::write::time;

/// How many runs are read at a time.
const PAGE: usize = 256;
/// How many entries of an agent one look at its refusals goes back over.
const LOOKED_AT_MAX: usize = 20_000;
/// The longest name of a session.
const SESSION_CHARS_MAX: usize = 256;
/// The longest pause, in seconds: a working day.
const PAUSE_SECONDS_MAX: u64 = 8 * 3_600;
/// How long an allowance may be given for: a year.
const ALLOWANCE_SECONDS_MAX: u64 = 365 * 86_400;

/// `GET /runs`.
pub(crate) async fn runs(
    State(service): State<Arc<Service>>,
    RawQuery(query): RawQuery,
    headers: HeaderMap,
) -> Answered {
    service.count_request();
    let asker = service.admin(&Credentials::read(&headers))?.asker();
    let query = Query::read(query.as_deref(), &["limit", "cursor"])?;
    let (limit, mut after) = (query.limit()?, query.agent_cursor()?.unwrap_or("").to_owned());
    let body = Arc::clone(&service)
        .read_apart(asker, move |_| {
            let fault = |_| Refusal::of_code(Code::FaultStore);
            let ledger = service.gate.ledger();
            let mut shown = Vec::new();
            let mut next = None;
            'pages: loop {
                let page = ledger.runs(&after, PAGE).map_err(fault)?;
                let full = page.len() == PAGE;
                for (id, _) in page {
                    if shown.len() == limit {
                        next = Some(after);
                        break 'pages;
                    }
                    if let Some(agent) = ledger.agent(&id).map_err(fault)? {
                        shown.push(service.shown_run(&agent)?);
                    }
                    after = id;
                }
                if !full {
                    break;
                }
            }
            Ok(write(&wire::RunPage { runs: shown, next_cursor: next }))
        })
        .await?;
    Ok(json(StatusCode::OK, body))
}

/// `GET /runs/:id`, by the run's id or its agent's.
pub(crate) async fn run(State(service): State<Arc<Service>>, path: Parts<String>, headers: HeaderMap) -> Answered {
    service.count_request();
    let asker = service.admin(&Credentials::read(&headers))?.asker();
    let id = parts(path)?;
    let body = Arc::clone(&service)
        .read_apart(asker, move |_| service.find_run(&id).and_then(|agent| service.shown_run(&agent)))
        .await?;
    Ok(json(StatusCode::OK, write(&body)))
}

/// The workflow a run is to be started with: written out, or registered under an id.
enum Wanted {
    Written(Arc<Workflow>),
    Registered(String),
}

/// `POST /runs`: a coding agent is made known, and a workflow put in force for it if one is given or named.
pub(crate) async fn start(State(service): State<Arc<Service>>, request: Request) -> Answered {
    service.count_request();
    let by = service.operator(&Credentials::read(request.headers()))?.only(&[Role::Admin])?.actor;
    let bytes = read_body(request).await?;
    let body = Body::read(&bytes)?;
    let root = body.root();
    only(root, wire::StartRequest::MEMBERS)?;
    let host = needed(root, "host")?;
    let host = Host::parse(&host).ok_or_else(|| malformed("host is claude-code, codex, cursor or gemini"))?;
    let project = needed(root, "project")?;
    if !project.starts_with('/') {
        return Err(malformed("project is an absolute path"));
    }
    let session = text(root, "session")?;
    if session.as_ref().is_some_and(|session| session.chars().count() > SESSION_CHARS_MAX) {
        return Err(malformed(format!("session has at most {SESSION_CHARS_MAX} characters")));
    }
    let workflow =
        present(root, "workflow").map(|workflow| long(|| service.wanted_workflow(workflow, host))).transpose()?;
    let agent = service.enrol_coding_agent(host, &project, &by).await?;
    if let Some(wanted) = workflow {
        let run_id = format!("run_{}", service.random_hex()?.chars().take(32).collect::<String>());
        let begin = || -> Result<Command, Refusal> {
            let ground = long(|| service.ground_of(&wanted, host, &project))?;
            let (run_id, session, by) = (run_id.clone(), session.clone(), by.clone());
            let change = match &wanted {
                Wanted::Written(workflow) => {
                    RunChange::Start { workflow: Arc::clone(workflow), run_id, session, ground, by }
                }
                Wanted::Registered(id) => {
                    RunChange::StartRegistered { workflow: id.clone(), run_id, session, ground, by }
                }
            };
            Ok(Command::ChangeRun { agent: agent.clone(), change })
        };
        let mut answer = service.submit(begin()?).await;
        // It was registered anew meanwhile, with facts that nobody looked at.
        if matches!(answer, Answer::NeedsEvidence(_)) {
            answer = service.submit(begin()?).await;
        }
        if matches!(answer, Answer::Refused(Code::WorkflowNoRun)) {
            return Err(unknown_workflow());
        }
        if matches!(answer, Answer::Refused(Code::ConfigInvalid)) {
            return Err(no_runner("a setting", host));
        }
        recorded(answer)?;
    }
    let shown = blocking(move || service.find_run(&agent).and_then(|agent| service.shown_run(&agent))).await?;
    Ok(json(StatusCode::CREATED, write(&shown)))
}

/// What operators do with a run.
#[derive(Debug, Clone, Copy)]
pub(crate) enum RunDeed {
    Force,
    Stop,
    Thaw,
    Pause,
    Allow,
    Disallow,
}

/// `POST /runs/:id/…`.
pub(crate) async fn change(service: Arc<Service>, deed: RunDeed, path: Parts<String>, request: Request) -> Answered {
    service.count_request();
    let id = parts(path)?;
    let operator = service.operator(&Credentials::read(request.headers()))?;
    let by = match deed {
        RunDeed::Allow => operator.only(&[Role::Approver, Role::Admin])?.actor,
        RunDeed::Force | RunDeed::Stop | RunDeed::Thaw | RunDeed::Pause | RunDeed::Disallow => {
            operator.only(&[Role::Admin])?.actor
        }
    };
    let bytes = read_body(request).await?;
    let agent = {
        let (service, id) = (Arc::clone(&service), id.clone());
        blocking(move || service.find_run(&id)).await?
    };
    let steered = |steer, reason| RunChange::Steer(RunSteered { steer, by: by.clone(), reason });
    let change = match deed {
        RunDeed::Stop => steered(Steer::Stop, read_reason(&bytes)?),
        RunDeed::Thaw => steered(Steer::Thaw, read_reason(&bytes)?),
        RunDeed::Force => {
            let body = Body::read(&bytes)?;
            only(body.root(), wire::ForceRequest::MEMBERS)?;
            let state = needed(body.root(), "state")?;
            long(|| service.check_state(&agent, &state))?;
            steered(Steer::Force(state), reason(body.root(), "reason")?)
        }
        RunDeed::Pause => {
            let body = Body::read(&bytes)?;
            only(body.root(), wire::PauseRequest::MEMBERS)?;
            let seconds = count(body.root(), "seconds")?.filter(|seconds| *seconds <= PAUSE_SECONDS_MAX);
            let seconds = seconds.ok_or_else(|| malformed(format!("seconds is 0 to {PAUSE_SECONDS_MAX}")))?;
            let until = service.gate.ledger().now().saturating_add(seconds.saturating_mul(1_000));
            steered(Steer::Pause(until), reason(body.root(), "reason")?)
        }
        RunDeed::Allow => {
            RunChange::Allow(Box::new(long(|| service.allowance(&agent, &Body::read(&bytes)?, by.clone()))?))
        }
        RunDeed::Disallow => {
            let body = Body::read(&bytes)?;
            only(body.root(), wire::DisallowRequest::MEMBERS)?;
            RunChange::Disallow(AllowanceTaken { allowance_id: needed(body.root(), "allowance_id")?, by: by.clone() })
        }
    };
    let id = agent.profile.agent_id.clone();
    let made = recorded(service.submit(Command::ChangeRun { agent: id.clone(), change }).await)?;
    if let EntryBody::AllowanceGiven(given) = &made.entry.body {
        return Ok(json(StatusCode::CREATED, write(&shown_allowance(&given.allowance))));
    }
    let shown = blocking(move || service.find_run(&id).and_then(|agent| service.shown_run(&agent))).await?;
    Ok(json(StatusCode::OK, write(&shown)))
}

/// `GET /runs/:id/refusals`: what was refused, or would have been, newest first.
pub(crate) async fn refusals(
    State(service): State<Arc<Service>>,
    path: Parts<String>,
    RawQuery(query): RawQuery,
    headers: HeaderMap,
) -> Answered {
    service.count_request();
    let asker = service.admin(&Credentials::read(&headers))?.asker();
    let id = parts(path)?;
    let limit = Query::read(query.as_deref(), &["limit"])?.limit()?;
    let body = Arc::clone(&service)
        .read_apart(asker, move |_| {
            let fault = |_| Refusal::of_code(Code::FaultStore);
            let agent = service.find_run(&id)?;
            let ledger = service.gate.ledger();
            let mut shown = Vec::new();
            let (whose, mut passed) = (agent.profile.agent_id.as_str(), 0_u64);
            for seq in (1..=agent.entries).rev().take(LOOKED_AT_MAX) {
                let Some(FoundEntry { entry, .. }) = ledger.entry_of(Some(whose), seq).map_err(fault)? else { break };
                let Some(ruled) = entry.body.ruled() else { continue };
                if ruled.ruling.decision.lets_run() {
                    passed = passed.saturating_add(1);
                    continue;
                }
                if shown.len() < limit {
                    let kept = ledger.text(whose, seq).map_err(fault)?;
                    shown.push(shown_call(ruled, entry.at, kept.as_ref().map(|kept| kept.text.as_str())));
                }
            }
            Ok(write(&wire::RefusedCalls { refusals: shown, passed }))
        })
        .await?;
    Ok(json(StatusCode::OK, body))
}

/// `GET /decisions/:id`: a decision at any door, and whose it was, so that a person can look at it, or allow a tool call,
/// by its id alone.
pub(crate) async fn decision(State(service): State<Arc<Service>>, path: Parts<String>, headers: HeaderMap) -> Answered {
    service.count_request();
    let asker = service.operator(&Credentials::read(&headers))?.only(&[Role::Approver, Role::Admin])?.asker();
    let id = parts(path)?;
    let body = Arc::clone(&service)
        .read_apart(asker, move |_| {
            let fault = |_| Refusal::of_code(Code::FaultStore);
            let ledger = service.gate.ledger();
            let unknown = || Refusal::new(Code::ExecutionUnknown, "there is no such decision");
            let FoundEntry { entry, .. } = ledger.ruling(&id).map_err(fault)?.ok_or_else(unknown)?;
            let agent = entry.agent.as_deref().ok_or_else(unknown)?;
            let agent = service.find_agent(agent)?.ok_or_else(unknown)?;
            let ruled = entry.body.ruled().ok_or_else(unknown)?;
            let seq = entry.agent_seq.ok_or_else(unknown)?;
            let kept = ledger.text(&agent.profile.agent_id, seq).map_err(fault)?;
            Ok(write(&wire::CallDecision {
                agent_id: agent.profile.agent_id.clone(),
                agent_name: agent.profile.name.clone(),
                host: agent.profile.framework.clone(),
                project: agent.profile.description.clone(),
                ruling: shown_ruling(ruled, entry.at, kept.as_ref().map(|kept| kept.text.as_str())),
                grounds: grounds(ruled),
            }))
        })
        .await?;
    Ok(json(StatusCode::OK, body))
}

/// What a ruling rests on.
fn grounds(ruled: &Ruled) -> wire::Grounds {
    let verification = ruled.ruling.verification.as_ref();
    let evidence = ruled.evidence.as_ref();
    let bound = evidence.and_then(|evidence| evidence.call.as_ref()).and_then(|call| call.bound.as_ref());
    let details = ruled.ruling.error.as_ref().and_then(|error| error.details.as_ref());
    let shown = |check: &Check| wire::DecisionCheck { name: check.name.word().into_owned(), held: check.passed };
    wire::Grounds {
        bundle: ruled.bundle.to_string(),
        trust_level: ruled.figures.as_ref().map(|figures| u64::from(u8::from(figures.trust))),
        engine: verification.map(|it| it.engine.to_string()),
        status: verification.map(|it| it.status.to_string()),
        risk_level: verification.map(|it| it.risk_level.to_string()),
        checks: evidence.into_iter().flat_map(|evidence| &evidence.checks).map(shown).collect(),
        certificate: evidence.and_then(|evidence| evidence.certificate).map(|digest| digest.to_string()),
        profile: bound.map(|bound| bound.profile.clone()),
        kernel: bound.map(|bound| bound.abilities.shown()),
        approved_by: ruled.redeemed.clone(),
        allowed_by: ruled.used.clone(),
        limit: details.map(|details| details.limit.clone()),
        current: details.map(|details| details.current.clone()),
    }
}

/// A ruling at any door: what there is to say of a tool call, and of an action at the gate.
fn shown_ruling(ruled: &Ruled, at: u64, text: Option<&str>) -> wire::RefusedCall {
    let shown = shown_call(ruled, at, text);
    let Some(facts) = ruled.facts.as_ref().filter(|facts| facts.call.is_none()) else { return shown };
    let verification = ruled.ruling.verification.as_ref();
    wire::RefusedCall {
        door: Some(facts.door.as_str().to_owned()),
        action_type: Some(facts.action.shown().to_owned()),
        conversation_id: Some(facts.conversation.clone()),
        step_number: Some(facts.step.get()),
        dry_run: Some(facts.dry_run),
        action_hash: Some(facts.fingerprint.to_string()),
        engine: verification.map(|verification| verification.engine.to_string()),
        status: verification.map(|verification| verification.status.to_string()),
        risk_level: verification.map(|verification| verification.risk_level.to_string()),
        cost_usd: Some(dollars(ruled.ruling.charge.cost_usd)),
        ..shown
    }
}

pub(crate) fn shown_call(ruled: &Ruled, at: u64, text: Option<&str>) -> wire::RefusedCall {
    let call = ruled.facts.as_ref().and_then(|facts| facts.call.as_ref());
    let evidence = ruled.evidence.as_ref();
    let found = evidence.and_then(|evidence| evidence.call.as_ref());
    let error = ruled.ruling.error.as_ref();
    let parameters = text.and_then(|text| {
        let document = json::parse(text, &Limits::STATE).ok()?;
        let parameters = document.root().get("action")?.get("parameters")?.source().to_owned();
        Some(RawJson::written(parameters))
    });
    wire::RefusedCall {
        decision_id: ruled.decision_id.clone(),
        at: time(at),
        decision: ruled.ruling.decision.to_string(),
        enforced: !ruled.observed,
        tool: call.map(|call| call.tool.clone()),
        session: call.map(|call| call.session.clone()),
        code: error.map(|error| error.code.as_str().to_owned()),
        message: error.map(|error| error.message.clone()),
        effects: found.iter().flat_map(|found| &found.effects).map(|effect| effect.as_str().to_owned()).collect(),
        rules: evidence.map(|evidence| evidence.matched.clone()).unwrap_or_default(),
        approval_id: ruled.ticket.as_ref().map(|ticket| ticket.approval_id.clone()),
        changes: changes_of(ruled),
        input: parameters,
        ..wire::RefusedCall::default()
    }
}

pub(crate) fn no_run() -> Refusal {
    Refusal::new(Code::WorkflowNoRun, "there is no such run").with_status(StatusCode::NOT_FOUND)
}

fn shown_allowance(allowance: &Allowance) -> wire::Allowance {
    wire::Allowance {
        allowance_id: allowance.allowance_id.clone(),
        decision_id: allowance.decision_id.clone(),
        tool: allowance.tool.clone(),
        exact: allowance.fingerprint.is_some(),
        command: allowance.command.clone(),
        path: allowance.path.clone(),
        lifts: allowance.lifts.clone(),
        until: allowance.until.map(time),
        session: allowance.session.clone(),
        once: allowance.once,
    }
}

fn text(root: Value<'_>, key: &str) -> Result<Option<String>, Refusal> {
    Ok(text_or_null(root, key)?.and_then(|text| text.as_str().map(|text| text.text().to_owned())))
}

fn needed(root: Value<'_>, key: &str) -> Result<String, Refusal> {
    text(root, key)?.filter(|text| !text.is_empty()).ok_or_else(|| malformed(format!("{key} must be a string")))
}

impl Service {
    /// Makes a coding agent known, unless it is.
    async fn enrol_coding_agent(&self, host: Host, project: &str, by: &Actor) -> Result<String, Refusal> {
        let id = agent_id(host.as_str(), project);
        if self.find_agent(&id)?.is_some() {
            return Ok(id);
        }
        let token = interlock_core::Digest::of(&[&self.random_hex()?]);
        let profile = Box::new(profile(host.as_str(), project));
        let enrolment = Enrolment { profile, token, mode: Mode::Observe, by: by.clone() };
        let answer = self.submit(Command::Enrol(Box::new(enrolment))).await;
        // Another call may have made it known meanwhile.
        if !matches!(answer, Answer::Done) {
            recorded(answer)?;
        }
        self.projects.note(host.as_str(), project);
        Ok(id)
    }

    /// An object is a workflow, a string the id of a registered one.
    fn wanted_workflow(&self, given: Value<'_>, host: Host) -> Result<Wanted, Refusal> {
        match given.as_str() {
            None => {
                let workflow = definition(given)?;
                self.check_runner(&workflow, host)?;
                Ok(Wanted::Written(Arc::new(workflow)))
            }
            Some(id) => {
                self.check_registered(id.text(), host)?;
                Ok(Wanted::Registered(nfc(id.text()).into_owned()))
            }
        }
    }

    /// What a run that is to start finds in its project.
    fn ground_of(&self, wanted: &Wanted, host: Host, project: &str) -> Result<StartGround, Refusal> {
        let facts = match wanted {
            Wanted::Written(workflow) => workflow.facts().to_vec(),
            // What cannot be read is refused where a run would be started with it.
            Wanted::Registered(id) => {
                let found = self.gate.registered(id).ok().flatten();
                found.map(|(_, workflow)| workflow.facts().to_vec()).unwrap_or_default()
            }
        };
        let scripts = self.gate.scripts_of(&facts, project).ok_or_else(|| Refusal::of_code(Code::FaultInternal))?;
        Ok(StartGround { has_runner: self.has_runner(host), scripts })
    }

    /// The agent of a run, by either id.
    fn find_run(&self, id: &str) -> Result<Arc<Agent>, Refusal> {
        let fault = |_| Refusal::of_code(Code::FaultStore);
        let ledger = self.gate.ledger();
        if id.starts_with("agent_") {
            return self.find_agent(id)?.ok_or_else(Refusal::unknown_agent);
        }
        let mut after = String::new();
        loop {
            let page = ledger.runs(&after, PAGE).map_err(fault)?;
            let Some((last, _)) = page.last() else { break };
            after.clone_from(last);
            let found = page.iter().find(|(_, run)| run.position.as_ref().is_some_and(|it| it.run_id == id));
            if let Some((agent, _)) = found {
                return self.find_agent(agent)?.ok_or_else(Refusal::unknown_agent);
            }
        }
        Err(no_run())
    }

    fn shown_run(&self, agent: &Agent) -> Result<wire::Run<RawJson>, Refusal> {
        let standing = self.gate.standing(&agent.profile.agent_id).map_err(|_| Refusal::of_code(Code::FaultStore))?;
        let Standing { run, .. } = &standing;
        let now = self.gate.ledger().now();
        let observes = agent.mode == Mode::Observe || self.gate.bundle().mode() == Mode::Observe;
        let paused = run.paused_until.filter(|until| now < *until);
        let mode = if observes || paused.is_some() { Mode::Observe } else { Mode::Enforce };
        let allowances = run.allowances.iter().filter(|it| it.until.is_none_or(|until| now < until));
        let open_calls = run.open.iter().filter(|open| !open.left).count();
        Ok(wire::Run {
            agent_id: agent.profile.agent_id.clone(),
            agent_name: agent.profile.name.clone(),
            host: agent.profile.framework.clone(),
            project: agent.profile.description.clone(),
            mode: mode.to_string(),
            paused_until: paused.map(time),
            frozen: run.frozen.clone(),
            open_calls: u64::try_from(open_calls).unwrap_or(u64::MAX),
            allowances: allowances.map(shown_allowance).collect(),
            workflow_digest: run.position.as_ref().map(|position| position.workflow.to_string()),
            run: run.position.as_ref().map(|_| RawJson::written(state_object(&standing))),
        })
    }

    fn check_state(&self, agent: &Agent, state: &str) -> Result<(), Refusal> {
        let standing = self.gate.standing(&agent.profile.agent_id).map_err(|_| Refusal::of_code(Code::FaultStore))?;
        let Some(workflow) = &standing.workflow else {
            return Err(Refusal::new(Code::WorkflowNoRun, "no workflow runs here").with_status(StatusCode::CONFLICT));
        };
        match workflow.find(state) {
            Some(_) => Ok(()),
            None => Err(malformed(format!("the workflow has no state `{}`", display(state)))),
        }
    }

    /// The allowance a body asks for: exactly the call of a decision, or what a pattern says.
    fn allowance(&self, agent: &Agent, body: &Body<'_>, by: Actor) -> Result<AllowanceGiven, Refusal> {
        let root = body.root();
        only(root, wire::AllowRequest::MEMBERS)?;
        let (command, path) = (text(root, "command")?, text(root, "path")?);
        if let Some(command) = &command {
            CommandPattern::parse(command).map_err(|error| malformed(error.to_string()))?;
            if command.trim().starts_with('*') {
                return Err(malformed("command must begin with a command: a pattern for everything allows everything"));
            }
        }
        if path.as_ref().is_some_and(|path| !path.starts_with('/') || path == "/**") {
            return Err(malformed("path is absolute: a file, or a directory and `/**`"));
        }
        let decision_id = text(root, "decision_id")?;
        let ruled = match &decision_id {
            Some(id) => Some(self.ruled_call(agent, id)?),
            None => None,
        };
        let exact = command.is_none() && path.is_none();
        let facts = ruled.as_ref().and_then(|ruled| ruled.facts.as_ref());
        let tool = match (text(root, "tool")?, facts.and_then(|facts| facts.call.as_ref())) {
            (Some(tool), _) => tool,
            (None, Some(call)) => call.family.map_or_else(|| call.tool.clone(), |family| family.as_str().to_owned()),
            (None, None) => "Bash".to_owned(),
        };
        let fingerprint = facts.map(Facts::agreed_to).filter(|_| exact);
        if exact && fingerprint.is_none() {
            return Err(malformed("decision_id, command or path says what is allowed; a tool alone would be too much"));
        }
        let seconds = count(root, "seconds")?;
        if seconds.is_some_and(|seconds| seconds > ALLOWANCE_SECONDS_MAX) {
            return Err(malformed(format!(
                "seconds is 0 to {ALLOWANCE_SECONDS_MAX}, a year; without it an allowance has no end"
            )));
        }
        let until = seconds.map(|seconds| self.gate.ledger().now().saturating_add(seconds.saturating_mul(1_000)));
        let session = match (text(root, "session")?, facts) {
            (Some(session), _) if !session.is_empty() => Some(session),
            (Some(_), Some(facts)) => Some(facts.conversation.clone()),
            (Some(_), None) | (None, _) => None,
        };
        let evidence = ruled.as_ref().and_then(|ruled| ruled.evidence.as_ref());
        let shipped = ["secrets", "arms", "egress"];
        let lifts = evidence.map(|evidence| evidence.matched.clone()).unwrap_or_default();
        let lifts = lifts.into_iter().filter(|rule| shipped.contains(&rule.as_str())).collect();
        let once = matches!(present(root, "once").map(Json::of), Some(Json::Bool(true)));
        let allowance_id = format!("allow_{}", self.random_hex()?.chars().take(32).collect::<String>());
        let decision_id = decision_id.unwrap_or_default();
        let allowance =
            Allowance { allowance_id, decision_id, fingerprint, tool, command, path, lifts, until, session, once };
        Ok(AllowanceGiven { allowance, by, reason: reason(root, "reason")? })
    }

    fn ruled_call(&self, agent: &Agent, decision_id: &str) -> Result<Ruled, Refusal> {
        let found = self.gate.ledger().ruling(decision_id).map_err(|_| Refusal::of_code(Code::FaultStore))?;
        let entry =
            found.map(|found| found.entry).filter(|entry| entry.agent.as_ref() == Some(&agent.profile.agent_id));
        let ruled = entry.and_then(|entry| entry.body.into_ruled());
        let ruled = ruled.filter(|ruled| ruled.facts.as_ref().is_some_and(|facts| facts.call.is_some()));
        ruled.ok_or_else(|| Refusal::of_code(Code::ExecutionUnknown))
    }
}
