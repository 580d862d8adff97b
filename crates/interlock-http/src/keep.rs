//! What operators ask about kept states: what a call changed, an undo, the states there are. Agents may ask none of it.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use axum::extract::{RawQuery, Request, State};
use axum::http::{HeaderMap, StatusCode};
use interlock_core::json::Value;
use interlock_core::ledger::{Role, Ruled};
use interlock_core::{Code, Digest, instant, unified_diff};
use interlock_keep::{Change, Clash, Fate, KeepFault, Kind, Node, SnapshotId, Step, Store, Way};
use interlock_runtime::keep_door::{code_of, told};
use interlock_runtime::keeper::Keeper;
use interlock_runtime::kept_calls::KeptCall;
use interlock_runtime::undo_door::{Chosen, UndoDoor, UndoFault, Which};
use interlock_wire::{self as wire, write};

use crate::Service;
use crate::answer::{Refusal, json};
use crate::auth::{Credentials, Operator};
use crate::query::Query;
use crate::request::{Body, boolean, malformed, only, present, text_or_null};
use crate::routes::{Answered, Parts, parts, read_body};
use crate::write::time;

/// The longest text whose lines are compared.
const TEXT_BYTES_MAX: u64 = 1 << 20;
/// The most bytes of diffs in one answer.
const DIFFS_BYTES_MAX: usize = 8 << 20;
/// The most paths that an undo may name.
const PATHS_MAX: usize = 10_000;

/// The command that shows what a call changed, if it may have changed something.
pub(crate) fn changes_of(ruled: &Ruled) -> Option<String> {
    ruled.may_have_changed().then(|| format!("interlock changes {}", ruled.decision_id))
}

/// Approvers and admins may ask.
fn operator(service: &Service, headers: &HeaderMap) -> Result<Operator, Refusal> {
    service.count_request();
    service.operator(&Credentials::read(headers))?.only(&[Role::Approver, Role::Admin])
}

/// `GET /changes`.
pub(crate) async fn changes(
    State(service): State<Arc<Service>>,
    RawQuery(query): RawQuery,
    headers: HeaderMap,
) -> Answered {
    let operator = operator(&service, &headers)?;
    let query = Query::read(query.as_deref(), &["directory", "call", "stat"])?;
    let directory = directory_in(query.text("directory"))?;
    let which = Which { call: query.text("call").map(str::to_owned), ..Which::default() };
    let with_diffs = query.text("stat") != Some("true");
    let reader = Arc::clone(&service);
    let body = service
        .read_apart(operator.asker(), move |_| {
            let keeper = reader.keeper()?;
            let door = reader.undo_door(&keeper);
            let chosen = door.choose(&directory, &which).map_err(refused)?;
            let call = chosen.calls.first().ok_or_else(|| refused(UndoFault::NothingKept))?;
            let mut room = if with_diffs { DIFFS_BYTES_MAX } else { 0 };
            let files = door.changes(&chosen.project, call, |store, change| shown_change(store, change, &mut room));
            Ok(write(&wire::Changes {
                project: chosen.project.clone(),
                call: call.id.clone(),
                at: time(call.at),
                tool: call.tool.clone(),
                session: call.session.clone(),
                is_open: call.after.is_none(),
                before: call.before.as_ref().map(|(id, _)| id.to_string()).unwrap_or_default(),
                after: call.after.as_ref().map(|(id, _)| id.to_string()),
                files: files.map_err(refused)?,
            }))
        })
        .await?;
    Ok(json(StatusCode::OK, body))
}

/// `POST /undo`.
pub(crate) async fn undo(State(service): State<Arc<Service>>, request: Request) -> Answered {
    let operator = operator(&service, request.headers())?;
    let (asker, by) = (operator.asker(), operator.actor);
    let bytes = read_body(request).await?;
    let asked = UndoAsked::read(&bytes)?;
    let worker = Arc::clone(&service);
    let body = service
        .read_apart(asker, move |_| {
            let keeper = worker.keeper()?;
            let door = worker.undo_door(&keeper);
            let chosen = door.choose(&asked.directory, &asked.which).map_err(refused)?;
            let paths = beneath(&chosen.project, &asked.paths)?;
            let Some(plan) = asked.plan else {
                let planned = door.plan(&chosen, &paths).map_err(refused)?;
                let steps = planned.plan.steps.iter().map(|step| shown_step(step, step.fate)).collect();
                return Ok(write(&answer(&chosen, planned.digest, steps, None)));
            };
            let done = door.carry_out(&chosen, &paths, plan, by).map_err(refused)?;
            let fates = done.undone.paths.iter();
            let fate_of = |step: &Step| fates.clone().find(|(path, _)| *path == step.path).map(|(_, fate)| *fate);
            let steps = done.plan.steps.iter().map(|step| shown_step(step, fate_of(step).unwrap_or(step.fate)));
            Ok(write(&answer(&chosen, plan, steps.collect(), Some(done.undo_id))))
        })
        .await?;
    Ok(json(StatusCode::OK, body))
}

/// `GET /snapshots`.
pub(crate) async fn snapshots(
    State(service): State<Arc<Service>>,
    RawQuery(query): RawQuery,
    headers: HeaderMap,
) -> Answered {
    let operator = operator(&service, &headers)?;
    let query = Query::read(query.as_deref(), &["directory"])?;
    let directory = directory_in(query.text("directory"))?;
    let reader = Arc::clone(&service);
    let work = move |_: &mut usize| {
        let keeper = reader.keeper()?;
        let door = reader.undo_door(&keeper);
        let project = door.project(&directory).map_err(refused)?;
        let (states, bytes) = door.snapshots(&project).map_err(refused)?;
        let states = states.iter().map(shown_state).collect();
        Ok(write(&wire::KeptStates { project, bytes, states }))
    };
    Ok(json(StatusCode::OK, service.read_apart(operator.asker(), work).await?))
}

/// `GET /snapshots/:id`.
pub(crate) async fn snapshot(
    State(service): State<Arc<Service>>,
    path: Parts<String>,
    RawQuery(query): RawQuery,
    headers: HeaderMap,
) -> Answered {
    let operator = operator(&service, &headers)?;
    let id = parts(path)?;
    let query = Query::read(query.as_deref(), &["directory"])?;
    let directory = directory_in(query.text("directory"))?;
    let reader = Arc::clone(&service);
    let work = move |_: &mut usize| {
        let keeper = reader.keeper()?;
        let door = reader.undo_door(&keeper);
        let id = SnapshotId::parse(&id).ok_or_else(|| refused(UndoFault::NothingKept))?;
        let project = door.project(&directory).map_err(refused)?;
        let is_gone = |fault: &UndoFault| matches!(fault, UndoFault::Keep(KeepFault::NoSuchSnapshot { .. }));
        let found = door.snapshot(&project, &id);
        let (state, left_out) =
            found.map_err(|fault| refused(if is_gone(&fault) { UndoFault::NothingKept } else { fault }))?;
        let place = |(path, why): &(PathBuf, interlock_keep::Why)| wire::LeftOutPlace {
            path: shown_path(path),
            why: why.word().to_owned(),
        };
        let places = Some(left_out.iter().map(place).collect());
        Ok(write(&wire::KeptState { places, ..shown_state(&state) }))
    };
    Ok(json(StatusCode::OK, service.read_apart(operator.asker(), work).await?))
}

/// `POST /snapshots/prune`.
pub(crate) async fn prune(State(service): State<Arc<Service>>, request: Request) -> Answered {
    let operator = operator(&service, request.headers())?;
    let (asker, by) = (operator.asker(), operator.actor);
    let bytes = read_body(request).await?;
    let (directory, all) = {
        let body = Body::read(&bytes)?;
        only(body.root(), wire::PruneRequest::MEMBERS)?;
        (directory_in(text(body.root(), "directory")?.as_deref())?, boolean(body.root(), "all")?)
    };
    let worker = Arc::clone(&service);
    let work = move |_: &mut usize| {
        let keeper = worker.keeper()?;
        let door = worker.undo_door(&keeper);
        let project = door.project(&directory).map_err(refused)?;
        let pruned = door.prune(&project, all, by).map_err(refused)?;
        let snapshots = pruned.dropped.iter().map(ToString::to_string).collect();
        let (bytes_before, bytes_after) = (pruned.bytes_before, pruned.bytes_after);
        Ok(write(&wire::PrunedStates { project, snapshots, bytes_before, bytes_after }))
    };
    Ok(json(StatusCode::OK, service.read_apart(asker, work).await?))
}

impl Service {
    fn keeper(&self) -> Result<Arc<Keeper>, Refusal> {
        self.keeper.get().map(Arc::clone).ok_or_else(|| refused(UndoFault::NothingKept))
    }

    fn undo_door<'a>(&'a self, keeper: &'a Keeper) -> UndoDoor<'a> {
        UndoDoor { gate: &self.gate, projects: &self.projects, keeper, entropy: &*self.entropy.0 }
    }
}

/// An undo as it was asked for.
struct UndoAsked {
    directory: PathBuf,
    which: Which,
    paths: Vec<PathBuf>,
    plan: Option<Digest>,
}

impl UndoAsked {
    fn read(bytes: &[u8]) -> Result<UndoAsked, Refusal> {
        let body = Body::read(bytes)?;
        let root = body.root();
        only(root, wire::UndoRequest::MEMBERS)?;
        let directory = directory_in(text(root, "directory")?.as_deref())?;
        let refused = || malformed("since must be a time such as 2026-11-15T12:00:00Z, or milliseconds");
        let since = text(root, "since")?.map(|since| instant::parse(&since).ok_or_else(refused)).transpose()?;
        let which = Which { call: text(root, "call")?, since, session: text(root, "session")? };
        let mut paths = Vec::new();
        if let Some(listed) = present(root, "paths") {
            let refused = || malformed(format!("paths is a list of at most {PATHS_MAX} strings"));
            for path in listed.as_array().ok_or_else(refused)?.take(PATHS_MAX.saturating_add(1)) {
                paths.push(PathBuf::from(path.as_str().ok_or_else(refused)?.text()));
            }
            if paths.len() > PATHS_MAX {
                return Err(refused());
            }
        }
        let plan = text(root, "plan")?;
        let plan =
            plan.map(|plan| Digest::parse(&plan).ok_or_else(|| malformed("plan must be one that an answer gave")));
        Ok(UndoAsked { directory, which, paths, plan: plan.transpose()? })
    }
}

/// Paths as the store has them: beneath the project.
fn beneath(project: &str, paths: &[PathBuf]) -> Result<Vec<PathBuf>, Refusal> {
    let inside = |path: &PathBuf| match path.is_absolute() {
        true => path.strip_prefix(project).ok().map(Path::to_owned),
        false => Some(path.clone()),
    };
    let refused = || malformed("a path lies outside of the project");
    paths.iter().map(|path| inside(path).ok_or_else(refused)).collect()
}

fn text(root: Value<'_>, key: &str) -> Result<Option<String>, Refusal> {
    Ok(text_or_null(root, key)?.and_then(|text| text.as_str().map(|text| text.text().to_owned())))
}

fn directory_in(given: Option<&str>) -> Result<PathBuf, Refusal> {
    let given = given.filter(|directory| Path::new(directory).is_absolute());
    given.map(PathBuf::from).ok_or_else(|| malformed("directory must be an absolute path"))
}

fn refused(fault: UndoFault) -> Refusal {
    match fault {
        UndoFault::NoProject => {
            Refusal::new(Code::ExecutionUnknown, "no coding agent works in this directory, so nothing is kept of it")
        }
        UndoFault::NothingKept => {
            Refusal::new(Code::ExecutionUnknown, "there is no such call, or nothing was kept for it")
        }
        UndoFault::PlanChanged => {
            Refusal::new(Code::KeepConflict, "the project changed since the plan was made; look again")
        }
        UndoFault::Keep(fault) => Refusal::new(code_of(&fault), told(&fault)),
        UndoFault::Refused(code) => Refusal::of_code(code),
        UndoFault::Store(_) => Refusal::of_code(Code::FaultStore),
    }
}

fn answer(chosen: &Chosen, plan: Digest, steps: Vec<wire::UndoStep>, undo_id: Option<String>) -> wire::UndoAnswer {
    let count = |fates: &[&str]| {
        let found = steps.iter().filter(|step| fates.contains(&step.fate.as_str())).count();
        u64::try_from(found).unwrap_or(u64::MAX)
    };
    wire::UndoAnswer {
        project: chosen.project.clone(),
        calls: chosen.calls.iter().map(|call: &KeptCall| call.id.clone()).collect(),
        plan: plan.to_string(),
        restored: count(&["create", "restore", "remove"]),
        conflicts: count(&["conflict"]),
        steps,
        undo_id,
    }
}

fn shown_step(step: &Step, fate: Fate) -> wire::UndoStep {
    let (fate, why) = match fate {
        Fate::Restored => match (&step.before, &step.now) {
            (Some(_), None) => ("create", None),
            (None, _) => ("remove", None),
            (Some(_), Some(_)) => ("restore", None),
        },
        Fate::AsBefore => ("as_before", None),
        Fate::Clash(clash) => ("conflict", Some(clash_words(clash))),
        Fate::NotKept(why) => ("not_kept", Some(why.word())),
    };
    wire::UndoStep { path: shown_path(&step.path), fate: fate.to_owned(), why: why.map(str::to_owned) }
}

fn clash_words(clash: Clash) -> &'static str {
    match clash {
        Clash::ChangedSince => "it changed after the call ended",
        Clash::Overlapping => "a call that ran meanwhile changed it too",
        Clash::HoldsOthers => "it holds something else by now",
    }
}

fn shown_state(state: &interlock_keep::Snapshot) -> wire::KeptState {
    wire::KeptState {
        snapshot: state.id.to_string(),
        at: time(state.time_ms),
        nodes: state.nodes,
        bytes: state.bytes,
        stored_bytes: state.stored_bytes,
        left_out: state.left_out,
        places: None,
    }
}

fn shown_path(path: &Path) -> String {
    if path.as_os_str().is_empty() { ".".to_owned() } else { path.to_string_lossy().into_owned() }
}

fn shown_change(store: &mut Store, change: &Change, room: &mut usize) -> Result<wire::ChangedFile, KeepFault> {
    let ways = change.ways();
    let word = |way: &Way| match way {
        Way::Added => "added",
        Way::Removed => "removed",
        Way::Kind => "kind",
        Way::Content => "content",
        Way::Target => "target",
        Way::Mode => "mode",
        Way::Owner => "owner",
        Way::Xattrs => "xattrs",
    };
    let has_lines = ways.iter().any(|way| matches!(way, Way::Added | Way::Removed | Way::Content | Way::Kind));
    let (diff, no_diff) = match has_lines && *room > 0 {
        true => diff(store, change, room)?,
        false => (None, None),
    };
    Ok(wire::ChangedFile {
        path: shown_path(&change.path),
        ways: ways.iter().map(|way| word(way).to_owned()).collect(),
        before: change.before.as_ref().map(shown_node),
        after: change.after.as_ref().map(shown_node),
        diff,
        no_diff: no_diff.map(str::to_owned),
    })
}

type Told = (Option<String>, Option<&'static str>);

/// How the lines of a file changed, or why that is not told.
fn diff(store: &mut Store, change: &Change, room: &mut usize) -> Result<Told, KeepFault> {
    let is_file = |node: &Option<Node>| node.as_ref().is_none_or(|node| matches!(node.kind, Kind::File { .. }));
    if !is_file(&change.before) || !is_file(&change.after) {
        return Ok((None, None));
    }
    let mut texts = Vec::new();
    for node in [&change.before, &change.after] {
        let bytes = match node {
            Some(node) => store.content(node, TEXT_BYTES_MAX)?,
            None => Some(Vec::new()),
        };
        let Some(bytes) = bytes else { return Ok((None, Some("too long"))) };
        let is_text = !bytes.contains(&0);
        let Some(text) = String::from_utf8(bytes).ok().filter(|_| is_text) else { return Ok((None, Some("binary"))) };
        texts.push(text);
    }
    let [before, after] = texts.as_slice() else { return Ok((None, None)) };
    let diff = unified_diff(before, after);
    let Some(left) = room.checked_sub(diff.len()) else { return Ok((None, Some("too much in one answer"))) };
    *room = left;
    Ok((Some(diff), None))
}

/// What a path was, in words.
fn shown_node(node: &Node) -> String {
    let kind = match &node.kind {
        Kind::File { size, .. } => format!("file, {size} bytes"),
        Kind::Link { target } => format!("link to {}", String::from_utf8_lossy(target)),
        Kind::Directory { .. } => "directory".to_owned(),
        Kind::LeftOut { why, .. } => return format!("not kept: {}", why.word()),
    };
    format!("{kind}, mode {:o}", node.mode)
}
