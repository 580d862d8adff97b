//! What was ruled: of one agent or of all, newest first, for a period, with what became of it.

use std::sync::Arc;

use axum::extract::{RawQuery, State};
use axum::http::{HeaderMap, StatusCode};
use interlock_core::Code;
use interlock_core::action::{Agent, Decision, Millis};
use interlock_core::ledger::{Body as EntryBody, Entry, Executed, Repeat, Role, Ruled};
use interlock_wire::{Activity, ActivityPage, ActivitySummary, RawJson, Repeats, ReportedExecution, write};

use crate::Service;
use crate::answer::{Refusal, dollars, json};
use crate::auth::Credentials;
use crate::keep::changes_of;
use crate::query::Query;
use crate::request::malformed;
use crate::routes::{Answered, Parts, parts};
use crate::write::time;

/// How many entries one request looks at; more are on the next page.
const LOOKED_AT_MAX: usize = 10_000;
/// How many agents are read at a time.
const AGENTS_PAGE: usize = 500;
/// How many entries of all agents are read at a time.
const PAGE: u64 = 256;

/// A time span: from its first moment up to, and without, its last.
#[derive(Debug, Clone, Copy)]
struct Period {
    from: Option<Millis>,
    to: Option<Millis>,
}

impl Period {
    fn read(query: &Query) -> Result<Period, Refusal> {
        let (from, to) = (query.time("from")?, query.time("to")?);
        if from.zip(to).is_some_and(|(from, to)| from > to) {
            return Err(malformed("from must not be after to"));
        }
        Ok(Period { from, to })
    }

    fn is_before(self, at: Millis) -> bool {
        self.from.is_some_and(|from| at < from)
    }

    fn is_after(self, at: Millis) -> bool {
        self.to.is_some_and(|to| at >= to)
    }

    fn holds(self, at: Millis) -> bool {
        !self.is_before(at) && !self.is_after(at)
    }

    fn is_whole(self) -> bool {
        self.from.is_none() && self.to.is_none()
    }
}

pub(crate) async fn of_agent(
    State(service): State<Arc<Service>>,
    path: Parts<String>,
    RawQuery(query): RawQuery,
    headers: HeaderMap,
) -> Answered {
    let agent = service.readable_agent(&parts(path)?, &headers)?;
    let asker = service.reader_of(&agent, &Credentials::read(&headers));
    let query = Query::read(query.as_deref(), &["limit", "cursor", "from", "to"])?;
    let cursor = query.hidden_cursor(service.gate.ledger(), Some(&agent.profile.agent_id))?;
    let (limit, period) = (query.limit()?, Period::read(&query)?);
    let reader = Arc::clone(&service);
    let work = move |read: &mut usize| reader.agent_activity(&agent, limit, cursor, period, read);
    let body = service.read_apart(asker, work).await?;
    Ok(json(StatusCode::OK, body))
}

pub(crate) async fn of_all(
    State(service): State<Arc<Service>>,
    RawQuery(query): RawQuery,
    headers: HeaderMap,
) -> Answered {
    service.count_request();
    let operator = service.operator(&Credentials::read(&headers))?.only(&[Role::Admin, Role::Approver])?;
    let query = Query::read(query.as_deref(), &["limit", "cursor", "from", "to"])?;
    let cursor = query.hidden_cursor(service.gate.ledger(), None)?;
    let (limit, period) = (query.limit()?, Period::read(&query)?);
    let reader = Arc::clone(&service);
    let body = service.read_apart(operator.asker(), move |_| reader.all_activity(limit, cursor, period)).await?;
    Ok(json(StatusCode::OK, body))
}

/// How many rulings of each kind.
#[derive(Default)]
struct Summary {
    counts: [u64; 5],
    complete: bool,
}

impl Summary {
    fn add(&mut self, told: &[(Decision, u64)]) {
        for (decision, more) in told {
            let known = Decision::ALL.iter().zip(&mut self.counts).find(|(known, _)| *known == decision);
            if let Some((_, count)) = known {
                *count = count.saturating_add(*more);
            }
        }
    }

    fn show(&self) -> ActivitySummary {
        let count = |decision: Decision| {
            let found = Decision::ALL.iter().zip(self.counts).find(|(known, _)| **known == decision);
            found.map_or(0, |(_, count)| count)
        };
        ActivitySummary {
            total: self.counts.iter().fold(0_u64, |sum, count| sum.saturating_add(*count)),
            approved: count(Decision::Approved),
            corrected: count(Decision::Corrected),
            pending: count(Decision::Pending),
            budget_exceeded: count(Decision::BudgetExceeded),
            denied: count(Decision::Denied),
            complete: self.complete,
        }
    }
}

impl Service {
    /// Goes back through an agent's entries, from its last one or from a cursor on.
    fn agent_activity(
        &self,
        agent: &Agent,
        limit: usize,
        cursor: Option<u64>,
        period: Period,
        looked_at: &mut usize,
    ) -> Result<String, Refusal> {
        let (mut rows, mut summary) = (Vec::new(), Summary::default());
        let id = agent.profile.agent_id.as_str();
        let mut at = Some(cursor.unwrap_or(agent.entries)).filter(|seq| *seq > 0);
        // The first ruling of the next page, once this one is full.
        let mut next = None;
        // Without a period the totals are in the agent's row; with one they are counted on the first page.
        let counts_on = !period.is_whole() && cursor.is_none();
        while let Some(seq) = at.filter(|_| next.is_none() || counts_on) {
            if *looked_at >= LOOKED_AT_MAX {
                next = next.or(Some(seq));
                break;
            }
            *looked_at = looked_at.saturating_add(1);
            let entry = self.entry_of(id, seq)?.ok_or_else(|| Refusal::of_code(Code::FaultStore))?;
            at = Some(seq.saturating_sub(1)).filter(|before| *before > 0 && !period.is_before(entry.at));
            let told = told_by(&entry.body);
            if told.is_empty() || !period.holds(entry.at) {
                continue;
            }
            summary.add(&told);
            if next.is_none() && fits(&rows, &told, limit) {
                rows.extend(self.rows(&entry, false)?);
            } else {
                next = next.or(Some(seq));
            }
        }
        if period.is_whole() {
            summary.counts = agent.totals;
        }
        summary.complete = period.is_whole() || at.is_none();
        let next = next.map(|seq| self.gate.ledger().hide_number(Some(id), seq));
        Ok(page(rows, next, cursor.is_none().then_some(&summary)))
    }

    /// Goes back through all entries, from the last one, from the end of the period, or from a cursor on.
    fn all_activity(&self, limit: usize, cursor: Option<u64>, period: Period) -> Result<String, Refusal> {
        let mut end = match cursor {
            Some(cursor) => cursor.saturating_add(1).min(self.gate.ledger().size()),
            None => self.end_of(period)?,
        };
        let (mut rows, mut summary, mut looked_at) = (Vec::new(), Summary::default(), 0_usize);
        let (mut next, mut done) = (None, false);
        let counts_on = !period.is_whole() && cursor.is_none();
        while end > 0 && !done && (next.is_none() || counts_on) {
            if looked_at >= LOOKED_AT_MAX {
                next = next.or(end.checked_sub(1));
                break;
            }
            let from = end.saturating_sub(PAGE);
            let count = usize::try_from(end.saturating_sub(from)).unwrap_or(0);
            let read = self.gate.ledger().with_reader(|reader| reader.entries(from, count));
            let read = read.map_err(|_| Refusal::of_code(Code::FaultStore))?;
            looked_at = looked_at.saturating_add(read.len());
            for (index, bytes) in (from..).zip(&read).collect::<Vec<_>>().into_iter().rev() {
                let entry = Entry::from_bytes(bytes).map_err(|_| Refusal::of_code(Code::FaultStore))?;
                if period.is_before(entry.at) {
                    done = true;
                    break;
                }
                let told = told_by(&entry.body);
                if told.is_empty() || !period.holds(entry.at) {
                    continue;
                }
                summary.add(&told);
                if next.is_none() && fits(&rows, &told, limit) {
                    rows.extend(self.rows(&entry, true)?);
                } else {
                    next = next.or(Some(index));
                }
            }
            end = from;
        }
        summary.complete = done || end == 0;
        if period.is_whole() && cursor.is_none() {
            summary = self.totals()?;
        }
        let next = next.map(|index| self.gate.ledger().hide_number(None, index));
        Ok(page(rows, next, cursor.is_none().then_some(&summary)))
    }

    /// The totals of all agents, as their rows have them.
    fn totals(&self) -> Result<Summary, Refusal> {
        let mut summary = Summary { complete: true, ..Summary::default() };
        let (mut after, mut looked_at) = (String::new(), 0_usize);
        loop {
            let agents =
                self.gate.ledger().agents(&after, AGENTS_PAGE).map_err(|_| Refusal::of_code(Code::FaultStore))?;
            for agent in &agents {
                for (count, total) in summary.counts.iter_mut().zip(agent.totals) {
                    *count = count.saturating_add(total);
                }
                after.clone_from(&agent.profile.agent_id);
            }
            looked_at = looked_at.saturating_add(agents.len());
            if agents.len() < AGENTS_PAGE {
                return Ok(summary);
            }
            if looked_at >= LOOKED_AT_MAX {
                return Ok(Summary { complete: false, ..summary });
            }
        }
    }

    /// The index after the last entry of a period: entries are in the order of time, so halving finds it.
    fn end_of(&self, period: Period) -> Result<u64, Refusal> {
        let (mut low, mut high) = (0_u64, self.gate.ledger().size());
        if period.to.is_none() {
            return Ok(high);
        }
        while low < high {
            let middle = low.saturating_add(high.saturating_sub(low) >> 1);
            let entry = self.read_entry(middle)?.ok_or_else(|| Refusal::of_code(Code::FaultStore))?;
            if period.is_after(entry.at) {
                high = middle;
            } else {
                low = middle.saturating_add(1);
            }
        }
        Ok(low)
    }

    fn read_entry(&self, index: u64) -> Result<Option<Entry>, Refusal> {
        let found = self.gate.ledger().entry(index).map_err(|_| Refusal::of_code(Code::FaultStore))?;
        Ok(found.and_then(|bytes| Entry::from_bytes(&bytes).ok()))
    }

    pub(crate) fn entry_of(&self, agent: &str, seq: u64) -> Result<Option<Entry>, Refusal> {
        let found = self.gate.ledger().entry_of(Some(agent), seq).map_err(|_| Refusal::of_code(Code::FaultStore))?;
        Ok(found.map(|found| found.entry))
    }

    /// What an entry tells of rulings: one, or those that were counted.
    fn rows(&self, entry: &Entry, of_all: bool) -> Result<Vec<Activity>, Refusal> {
        if let Some(ruled) = entry.body.ruled() {
            return self.row(entry, ruled, of_all).map(|row| vec![row]);
        }
        let Some(repeated) = entry.body.repeated() else { return Ok(Vec::new()) };
        let agent = entry.agent.as_deref().filter(|_| of_all);
        let row = |repeat: &Repeat| Activity {
            timestamp: time(entry.at),
            agent_id: agent.map(str::to_owned),
            decision_id: repeat.decision_id.clone(),
            decision: repeat.decision.to_string(),
            enforced: !repeat.observed && !repeat.dry_run,
            code: repeat.code.map(|code| code.as_str().to_owned()),
            cost_usd: RawJson::written("0".to_owned()),
            dry_run: repeat.dry_run,
            repeats: Some(Repeats {
                count: repeat.count,
                likeness: repeat.likeness.to_string(),
                first_at: time(repeat.first_at),
                last_at: time(repeat.last_at),
                digest: repeat.digest.to_string(),
            }),
            ..Activity::default()
        };
        Ok(repeated.rulings().map(row).collect())
    }

    fn row(&self, entry: &Entry, ruled: &Ruled, of_all: bool) -> Result<Activity, Refusal> {
        let facts = ruled.facts.as_ref();
        let verification = ruled.ruling.verification.as_ref();
        let agent = entry.agent.as_deref().filter(|_| of_all);
        let (whose, decision) = (entry.agent.as_deref().unwrap_or_default(), entry.agent_seq.unwrap_or_default());
        let report = self.gate.ledger().execution(whose, decision).map_err(|_| Refusal::of_code(Code::FaultStore))?;
        let report = report.map(|report| self.entry_of(whose, report)).transpose()?.flatten();
        let execution = match report.as_ref().map(|report| (report.at, &report.body)) {
            Some((at, EntryBody::Executed(executed))) => Some(shown(executed, at)),
            Some(_) | None => None,
        };
        Ok(Activity {
            timestamp: time(entry.at),
            agent_id: agent.map(str::to_owned),
            decision_id: ruled.decision_id.clone(),
            action_type: facts.map(|facts| facts.action.shown().to_owned()),
            decision: ruled.ruling.decision.to_string(),
            enforced: !ruled.observed && facts.is_none_or(|facts| !facts.dry_run),
            code: ruled.ruling.error.as_ref().map(|error| error.code.as_str().to_owned()),
            approval_id: ruled.ticket.as_ref().map(|ticket| ticket.approval_id.clone()),
            conversation_id: facts.map(|facts| facts.conversation.clone()),
            step_number: facts.map(|facts| facts.step.get()),
            engine: verification.map(|verification| verification.engine.to_string()),
            status: verification.map(|verification| verification.status.to_string()),
            risk_level: verification.map(|verification| verification.risk_level.to_string()),
            cost_usd: dollars(ruled.ruling.charge.cost_usd),
            dry_run: facts.is_some_and(|facts| facts.dry_run),
            execution,
            repeats: None,
            changes: changes_of(ruled),
        })
    }
}

fn page(activities: Vec<Activity>, next_cursor: Option<String>, summary: Option<&Summary>) -> String {
    write(&ActivityPage { activities, next_cursor, summary: summary.map(Summary::show) })
}

/// The rulings an entry tells of.
fn told_by(body: &EntryBody) -> Vec<(Decision, u64)> {
    match body.repeated() {
        Some(repeated) => repeated.rulings().map(|repeat| (repeat.decision, repeat.count)).collect(),
        None => body.ruled().map(|ruled| (ruled.ruling.decision, 1)).into_iter().collect(),
    }
}

/// What one entry tells stays on one page, however long that gets.
fn fits(rows: &[Activity], told: &[(Decision, u64)], limit: usize) -> bool {
    rows.is_empty() || rows.len().saturating_add(told.len()) <= limit
}

fn shown(executed: &Executed, at: Millis) -> ReportedExecution {
    ReportedExecution {
        timestamp: time(at),
        success: executed.success,
        result_hash: executed.result_hash.clone(),
        cost_usd: dollars(executed.usage.cost_usd),
        tokens: executed.usage.tokens,
    }
}
