//! Reading beside the writer, in this process or another: each call a short transaction of its own. Older layouts are read
//! too; what they had no table for is empty.

use std::path::Path;

use interlock_core::Digest;
use interlock_core::action::{Agent, Conversation, Millis, Ticket};
use interlock_core::ledger::{Frontier, OperatorKey, StateHead, WorkflowHead};
use interlock_core::workflow::Run;
use rusqlite::{Connection, OpenFlags, OptionalExtension, Row, params};

use super::{
    DATABASE_NAME, agent_of_row, from_text, frontier_of, read_agent, read_conversation, read_execution, read_heads,
    read_keys, read_run, read_ticket, read_workflow, to_i64, to_u64,
};
use crate::ledger::layout::{BUSY_TIME_MAX, EVENT_LANE, LAYOUT, foreign, nothing_by_itself};
use crate::ledger::store::{KeptAnswer, KeptText, Lane, Outgoing, Reader, Rows, StoreFault, TicketQuery};

/// Reads beside the writer, in this process or another.
#[derive(Debug)]
pub struct SqliteReader {
    connection: Connection,
    /// The first layout has fewer tables; what they would hold is empty.
    layout: i64,
}

impl SqliteReader {
    /// Opens the database of a data directory for reading; it must exist.
    pub fn open(directory: &Path) -> Result<SqliteReader, StoreFault> {
        SqliteReader::open_database(&directory.join(DATABASE_NAME))
    }

    pub(super) fn open_database(path: &Path) -> Result<SqliteReader, StoreFault> {
        // Read-only would not do: the shared-memory file of the log must be writable to be joined.
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let connection = Connection::open_with_flags(path, flags)?;
        connection.busy_timeout(BUSY_TIME_MAX)?;
        connection.pragma_update(None, "query_only", true)?;
        nothing_by_itself(&connection)?;
        let layout: i64 = connection.query_row("PRAGMA user_version", [], |row| row.get(0))?;
        if !(1..=LAYOUT).contains(&layout) {
            return Err(StoreFault::new(format!("layout {layout} is not one this version reads (1 to {LAYOUT})")));
        }
        connection.set_prepared_statement_cache_capacity(48);
        Ok(SqliteReader { connection, layout })
    }

    fn head_frontier(&self) -> Result<Frontier, StoreFault> {
        let select = "SELECT number, frontier FROM entries ORDER BY number DESC LIMIT 1";
        let mut statement = self.connection.prepare_cached(select)?;
        let row = statement.query_row([], |row| Ok((row.get(0)?, row.get(1)?))).optional()?;
        row.map_or_else(|| Ok(Frontier::default()), |(number, bytes)| frontier_of(number, bytes))
    }
}

impl Reader for SqliteReader {
    fn agent(&mut self, id: &str) -> Result<Option<Agent>, StoreFault> {
        read_agent(&self.connection, id)
    }

    fn conversation(&mut self, agent: &str, id: &str) -> Result<Option<Conversation>, StoreFault> {
        read_conversation(&self.connection, agent, id)
    }

    fn entries(&mut self, from: u64, count: usize) -> Result<Vec<Vec<u8>>, StoreFault> {
        let select = "SELECT number, bytes FROM entries WHERE number >= ?1 ORDER BY number LIMIT ?2";
        let mut statement = self.connection.prepare_cached(select)?;
        let limit = i64::try_from(count).unwrap_or(i64::MAX);
        let rows = statement
            .query_map(params![to_i64(from)?, limit], |row| Ok((row.get::<_, i64>(0)?, row.get::<_, Vec<u8>>(1)?)))?;
        let mut entries = Vec::new();
        for (expected, row) in (to_i64(from)?..).zip(rows) {
            let (number, bytes) = row?;
            if number != expected {
                return Err(StoreFault::new(format!("entry {expected} is missing")));
            }
            entries.push(bytes);
        }
        Ok(entries)
    }

    fn head(&mut self) -> Result<Frontier, StoreFault> {
        self.head_frontier()
    }

    fn frontier(&mut self, size: u64) -> Result<Option<Frontier>, StoreFault> {
        let Some(last) = size.checked_sub(1) else { return Ok(Some(Frontier::default())) };
        let mut statement = self.connection.prepare_cached("SELECT frontier FROM entries WHERE number = ?1")?;
        let bytes: Option<Option<Vec<u8>>> = statement.query_row([to_i64(last)?], |row| row.get(0)).optional()?;
        bytes.map(|bytes| frontier_of(to_i64(last)?, bytes)).transpose()
    }

    fn heads(&mut self) -> Result<Vec<(String, StateHead)>, StoreFault> {
        read_heads(&self.connection)
    }

    fn agents(&mut self, after: &str, count: usize) -> Result<Vec<Agent>, StoreFault> {
        let select = "SELECT profile, live FROM agents WHERE id > ?1 ORDER BY id LIMIT ?2";
        let mut select = self.connection.prepare_cached(select)?;
        let limit = i64::try_from(count).unwrap_or(i64::MAX);
        let read = |row: &Row<'_>| Ok((row.get::<_, String>(0)?, row.get::<_, String>(1)?));
        select.query_map(params![after, limit], read)?.map(agent_of_row).collect()
    }

    fn agent_by_token(&mut self, token: Digest) -> Result<Option<String>, StoreFault> {
        if self.layout < 2 {
            return Ok(None);
        }
        let mut select = self.connection.prepare_cached("SELECT agent FROM tokens WHERE digest = ?1")?;
        Ok(select.query_row([token.bytes()], |row| row.get(0)).optional()?)
    }

    fn ticket(&mut self, id: &str) -> Result<Option<Ticket>, StoreFault> {
        if self.layout < 2 {
            return Ok(None);
        }
        read_ticket(&self.connection, id)
    }

    fn tickets(&mut self, query: &TicketQuery, count: usize) -> Result<Vec<Ticket>, StoreFault> {
        let before = query.before.map_or(Ok(i64::MAX), to_i64)?;
        let limit = i64::try_from(count).unwrap_or(i64::MAX);
        if self.layout < 2 {
            return Ok(Vec::new());
        }
        let undecided = if query.undecided { "AND undecided = 1" } else { "" };
        let alive = if query.expires_after.is_some() { "AND expires > ?4" } else { "AND ?4 IS NULL" };
        let whose = if query.agent.is_some() { "agent = ?3" } else { "?3 IS NULL" };
        let select = format!(
            "SELECT row FROM tickets WHERE {whose} AND number < ?1 {undecided} {alive} ORDER BY number DESC LIMIT ?2"
        );
        let mut select = self.connection.prepare_cached(&select)?;
        let after = query.expires_after.map(to_i64).transpose()?;
        let rows = select.query_map(params![before, limit, query.agent, after], |row| row.get::<_, String>(0))?;
        rows.map(|row| from_text(&row?)).collect()
    }

    fn execution(&mut self, decision: u64) -> Result<Option<u64>, StoreFault> {
        if self.layout < 2 {
            return Ok(None);
        }
        read_execution(&self.connection, decision)
    }

    fn keys(&mut self) -> Result<Vec<OperatorKey>, StoreFault> {
        if self.layout < 2 {
            return Ok(Vec::new());
        }
        read_keys(&self.connection)
    }

    fn run(&mut self, agent: &str) -> Result<Option<Run>, StoreFault> {
        if self.layout < 3 {
            return Ok(None);
        }
        read_run(&self.connection, agent)
    }

    fn runs(&mut self, after: &str, count: usize) -> Result<Vec<(String, Run)>, StoreFault> {
        if self.layout < 3 {
            return Ok(Vec::new());
        }
        let select = "SELECT agent, row FROM runs WHERE agent > ?1 ORDER BY agent LIMIT ?2";
        let mut select = self.connection.prepare_cached(select)?;
        let limit = i64::try_from(count).unwrap_or(i64::MAX);
        let rows = select.query_map(params![after, limit], |row| Ok((row.get(0)?, row.get::<_, String>(1)?)))?;
        rows.map(|row| {
            let (agent, row) = row?;
            Ok((agent, from_text(&row)?))
        })
        .collect()
    }

    fn workflow(&mut self, id: &str) -> Result<Option<WorkflowHead>, StoreFault> {
        if self.layout < 4 {
            return Ok(None);
        }
        read_workflow(&self.connection, id)
    }

    fn workflows(&mut self, after: &str, count: usize) -> Result<Vec<WorkflowHead>, StoreFault> {
        if self.layout < 4 {
            return Ok(Vec::new());
        }
        let select = "SELECT row FROM workflows WHERE id > ?1 ORDER BY id LIMIT ?2";
        let mut select = self.connection.prepare_cached(select)?;
        let limit = i64::try_from(count).unwrap_or(i64::MAX);
        let rows = select.query_map(params![after, limit], |row| row.get::<_, String>(0))?;
        rows.map(|row| from_text(&row?)).collect()
    }

    fn texts(&mut self, after: (&str, u64), count: usize) -> Result<Vec<KeptText>, StoreFault> {
        if self.layout < 2 {
            return Ok(Vec::new());
        }
        let select = "SELECT agent, number, salt, text, until FROM texts WHERE (agent, number) > (?1, ?2)
            ORDER BY agent, number LIMIT ?3";
        let mut select = self.connection.prepare_cached(select)?;
        let limit = i64::try_from(count).unwrap_or(i64::MAX);
        let rows = select.query_map(params![after.0, to_i64(after.1)?, limit], |row| {
            Ok((row.get(0)?, row.get::<_, i64>(1)?, row.get(2)?, row.get(3)?, row.get::<_, Option<i64>>(4)?))
        })?;
        rows.map(|row| {
            let (agent, index, salt, text, until) = row?;
            Ok(KeptText { agent, index: to_u64(index)?, salt, text, until: until.map(to_u64).transpose()? })
        })
        .collect()
    }

    fn text(&mut self, agent: &str, index: u64) -> Result<Option<KeptText>, StoreFault> {
        if self.layout < 2 {
            return Ok(None);
        }
        let select = "SELECT salt, text, until FROM texts WHERE agent = ?1 AND number = ?2";
        let mut select = self.connection.prepare_cached(select)?;
        let row = select.query_row(params![agent, to_i64(index)?], |row| {
            Ok((row.get(0)?, row.get(1)?, row.get::<_, Option<i64>>(2)?))
        });
        let Some((salt, text, until)) = row.optional()? else { return Ok(None) };
        let until = until.map(to_u64).transpose()?;
        Ok(Some(KeptText { agent: agent.to_owned(), index, salt, text, until }))
    }

    fn told_agent(&mut self, principal: &str, lane: Lane, after: &str) -> Result<Option<String>, StoreFault> {
        if self.layout < 5 {
            return Ok(None);
        }
        let select =
            "SELECT agent FROM outbox WHERE principal = ?1 AND lane = ?2 AND agent > ?3 ORDER BY agent LIMIT 1";
        let mut select = self.connection.prepare_cached(select)?;
        Ok(select.query_row(params![principal, lane.number(), after], |row| row.get(0)).optional()?)
    }

    fn outbox(&mut self, principal: &str, lane: Lane, agent: &str, count: usize) -> Result<Vec<Outgoing>, StoreFault> {
        if self.layout < 5 {
            return Ok(Vec::new());
        }
        let select = "SELECT id, principal, event_id, body, at, agent, lane FROM outbox
            WHERE principal = ?1 AND lane = ?2 AND agent = ?3 ORDER BY id LIMIT ?4";
        let mut select = self.connection.prepare_cached(select)?;
        let limit = i64::try_from(count).unwrap_or(i64::MAX);
        let rows = select.query_map(params![principal, lane.number(), agent, limit], event_columns)?;
        rows.map(|row| event_of_row(row?)).collect()
    }

    fn outbox_before(&mut self, principal: &str, at: Millis, count: usize) -> Result<Vec<u64>, StoreFault> {
        if self.layout < 2 {
            return Ok(Vec::new());
        }
        let select = "SELECT id FROM outbox WHERE principal = ?1 AND at < ?2 ORDER BY id LIMIT ?3";
        let mut select = self.connection.prepare_cached(select)?;
        let limit = i64::try_from(count).unwrap_or(i64::MAX);
        let rows = select.query_map(params![principal, to_i64(at)?, limit], |row| row.get::<_, i64>(0))?;
        rows.map(|id| to_u64(id?)).collect()
    }

    fn backlog(&mut self) -> Result<Vec<(String, u64)>, StoreFault> {
        if self.layout < 2 {
            return Ok(Vec::new());
        }
        let mut select = self.connection.prepare_cached("SELECT principal, count(*) FROM outbox GROUP BY principal")?;
        let rows = select.query_map([], |row| Ok((row.get(0)?, row.get::<_, i64>(1)?)))?;
        rows.map(|row| {
            let (principal, count) = row?;
            Ok((principal, to_u64(count)?))
        })
        .collect()
    }

    fn events(&mut self, after: u64, count: usize) -> Result<Vec<Outgoing>, StoreFault> {
        if self.layout < 2 {
            return Ok(Vec::new());
        }
        // Before the fifth layout an event alone said what it is about.
        let about = if self.layout < 5 { EVENT_LANE } else { "agent, lane" };
        let select = &format!(
            "SELECT id, principal, event_id, body, at, {about} FROM outbox WHERE id > ?1 ORDER BY id LIMIT ?2"
        );
        let mut select = self.connection.prepare_cached(select)?;
        let limit = i64::try_from(count).unwrap_or(i64::MAX);
        let rows = select.query_map(params![to_i64(after)?, limit], event_columns)?;
        rows.map(|row| event_of_row(row?)).collect()
    }

    fn kept(&mut self, after: (&str, Digest), count: usize) -> Result<Vec<(String, Digest, KeptAnswer)>, StoreFault> {
        let select = "SELECT agent, key, number, at, corrected FROM kept WHERE (agent, key) > (?1, ?2)
            ORDER BY agent, key LIMIT ?3";
        let mut select = self.connection.prepare_cached(select)?;
        let limit = i64::try_from(count).unwrap_or(i64::MAX);
        let rows = select.query_map(params![after.0, after.1.bytes(), limit], |row| {
            Ok((row.get(0)?, row.get(1)?, row.get::<_, i64>(2)?, row.get::<_, i64>(3)?, row.get(4)?))
        })?;
        rows.map(|row| {
            let (agent, key, index, at, corrected) = row?;
            let kept = KeptAnswer { index: to_u64(index)?, at: to_u64(at)?, corrected };
            Ok((agent, Digest::from_bytes(key), kept))
        })
        .collect()
    }

    fn foreign(&mut self) -> Result<Vec<String>, StoreFault> {
        foreign(&self.connection, self.layout)
    }

    fn rows(&mut self) -> Result<Rows, StoreFault> {
        let txn = self.connection.unchecked_transaction()?;
        let head = self.head_frontier()?;
        let mut misfiled = Vec::new();
        let mut select = txn.prepare("SELECT id, profile, live FROM agents")?;
        let read = |row: &Row<'_>| Ok((row.get::<_, String>(0)?, row.get::<_, String>(1)?, row.get::<_, String>(2)?));
        let agents = select.query_map([], read)?.map(|row| {
            let (id, profile, live) = row?;
            let agent = agent_of_row(Ok((profile, live)))?;
            if agent.profile.agent_id != id {
                misfiled.push(format!("the row of {} is found by another id", agent.profile.agent_id));
            }
            Ok(agent)
        });
        let agents = agents.collect::<Result<Vec<_>, StoreFault>>()?;
        let mut select = txn.prepare("SELECT agent, id, row FROM conversations")?;
        let read = |row: &Row<'_>| Ok((row.get(0)?, row.get(1)?, row.get::<_, String>(2)?));
        let conversations = select.query_map([], read)?.map(|row| {
            let (agent, id, row) = row?;
            Ok((agent, id, from_text(&row)?))
        });
        let conversations = conversations.collect::<Result<Vec<_>, StoreFault>>()?;
        let heads = read_heads(&txn)?;
        let mut rows = Rows {
            head,
            agents,
            conversations,
            heads,
            tickets: Vec::new(),
            executions: Vec::new(),
            keys: Vec::new(),
            runs: Vec::new(),
            workflows: Vec::new(),
            tokens: Vec::new(),
            misfiled,
            without_totals: self.layout < 2,
        };
        if self.layout < 2 {
            return Ok(rows);
        }
        let mut select = txn.prepare("SELECT number, id, agent, undecided, expires, row FROM tickets")?;
        let read = |row: &Row<'_>| {
            let filed: (i64, String, String, i64, i64) =
                (row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?, row.get(4)?);
            Ok((filed, row.get::<_, String>(5)?))
        };
        let tickets = select.query_map([], read)?.map(|row| {
            let (filed, row) = row?;
            let ticket: Ticket = from_text(&row)?;
            // Lists and counts go by these columns, so they must say what the row says.
            let (number, expires) = (to_i64(ticket.opened)?, to_i64(ticket.expires_at)?);
            let undecided = i64::from(ticket.resolution.is_none());
            if filed != (number, ticket.approval_id.clone(), ticket.agent.clone(), undecided, expires) {
                rows.misfiled
                    .push(format!("the columns of the ticket {} say another than its row", ticket.approval_id));
            }
            Ok(ticket)
        });
        rows.tickets = tickets.collect::<Result<Vec<_>, StoreFault>>()?;
        let mut select = txn.prepare("SELECT decision, number FROM executions")?;
        let executions = select.query_map([], |row| Ok((row.get::<_, i64>(0)?, row.get::<_, i64>(1)?)))?.map(|row| {
            let (decision, number) = row?;
            Ok((to_u64(decision)?, to_u64(number)?))
        });
        rows.executions = executions.collect::<Result<Vec<_>, StoreFault>>()?;
        let mut select = txn.prepare("SELECT agent, digest FROM tokens")?;
        let tokens = select.query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?.map(|row| {
            let (agent, digest) = row?;
            Ok((agent, Digest::from_bytes(digest)))
        });
        rows.tokens = tokens.collect::<Result<Vec<_>, StoreFault>>()?;
        rows.keys = read_keys(&txn)?;
        let mut select = txn.prepare("SELECT id FROM operator_keys ORDER BY id")?;
        let filed = select.query_map([], |row| row.get::<_, String>(0))?;
        for (filed, key) in filed.zip(&rows.keys) {
            if filed? != key.key_id {
                rows.misfiled.push(format!("the row of {} is found by another id", key.key_id));
            }
        }
        if self.layout < 3 {
            return Ok(rows);
        }
        let mut select = txn.prepare("SELECT agent, row FROM runs")?;
        let runs = select.query_map([], |row| Ok((row.get(0)?, row.get::<_, String>(1)?)))?.map(|row| {
            let (agent, row) = row?;
            Ok((agent, from_text(&row)?))
        });
        rows.runs = runs.collect::<Result<Vec<_>, StoreFault>>()?;
        if self.layout < 4 {
            return Ok(rows);
        }
        let mut select = txn.prepare("SELECT id, row FROM workflows")?;
        let workflows = select.query_map([], |row| Ok((row.get(0)?, row.get::<_, String>(1)?)))?.map(|row| {
            let (id, row) = row?;
            Ok((id, from_text(&row)?))
        });
        rows.workflows = workflows.collect::<Result<Vec<_>, StoreFault>>()?;
        Ok(rows)
    }
}

type EventColumns = (i64, String, String, String, i64, String, i64);

fn event_columns(row: &Row<'_>) -> rusqlite::Result<EventColumns> {
    Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?, row.get(4)?, row.get(5)?, row.get(6)?))
}

fn event_of_row(columns: EventColumns) -> Result<Outgoing, StoreFault> {
    let (id, principal, event_id, body, at, agent, lane) = columns;
    let (id, at, lane) = (to_u64(id)?, to_u64(at)?, Lane::of_number(lane)?);
    Ok(Outgoing { id, principal, agent, lane, event_id, body, at })
}
