//! Reading beside the writer, in this process or another: each call a short transaction of its own. Older layouts are read
//! too; what they had no table for is empty, and what they say of entries is read as this layout has it.

use std::collections::BTreeSet;
use std::path::Path;

use interlock_core::action::{Agent, Conversation, Millis, Ticket};
use interlock_core::ledger::{EntryName, Frontier, OperatorKey, StateHead, WorkflowHead};
use interlock_core::workflow::Run;
use interlock_core::{Digest, display};
use rusqlite::{Connection, OpenFlags, OptionalExtension, Row, params};

use super::older::{Older, agent_at};
use super::{
    DATABASE_NAME, agent_of, blocks, from_text, frontier_of, read_agent, read_conversation, read_execution, read_heads,
    read_keys, read_run, read_ticket, read_workflow, to_i64, to_u64,
};
use crate::ledger::decision_id::mark_of;
use crate::ledger::layout::{BUSY_TIME_MAX, EVENT_LANE, LAYOUT, NAMES_LAYOUT, foreign, nothing_by_itself};
use crate::ledger::places::Block;
use crate::ledger::store::{KeptAnswer, KeptText, Lane, Outgoing, Reader, Rows, StoreFault, TicketQuery};

/// Reads beside the writer, in this process or another.
#[derive(Debug)]
pub struct SqliteReader {
    connection: Connection,
    /// The first layout has fewer tables; what they would hold is empty.
    layout: i64,
    /// Where the entries of an older layout stand, once it is needed.
    older: Option<Older>,
    /// The full block that was looked into last, and whose it is: many read one after the other, and it never changes.
    block: Option<(String, Block)>,
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
        Ok(SqliteReader { connection, layout, older: None, block: None })
    }

    /// Where an entry stands.
    fn place_of(&mut self, whose: &str, seq: u64) -> Result<Option<u64>, StoreFault> {
        let known = self.block.as_ref().filter(|(of, _)| of == whose).and_then(|(_, block)| block.place(seq));
        if known.is_some() {
            return Ok(known);
        }
        let Some(block) = blocks::block_of(&self.connection, whose, seq)? else { return Ok(None) };
        let place = block.place(seq);
        if block.is_full() {
            self.block = Some((whose.to_owned(), block));
        }
        Ok(place)
    }

    /// How rows are read that speak of entries by their places; nothing if they do not.
    fn older(&mut self) -> Result<Option<Older>, StoreFault> {
        read_older(&self.connection, self.layout, &mut self.older)
    }
}

fn read_older(connection: &Connection, layout: i64, older: &mut Option<Older>) -> Result<Option<Older>, StoreFault> {
    if layout < NAMES_LAYOUT {
        older.get_or_insert_default().read_on(connection)?;
    }
    Ok(older.clone())
}

fn head_frontier(connection: &Connection) -> Result<Frontier, StoreFault> {
    let select = "SELECT number, frontier FROM entries ORDER BY number DESC LIMIT 1";
    let mut statement = connection.prepare_cached(select)?;
    let row = statement.query_row([], |row| Ok((row.get(0)?, row.get(1)?))).optional()?;
    row.map_or_else(|| Ok(Frontier::default()), |(number, bytes)| frontier_of(number, bytes))
}

impl Reader for SqliteReader {
    fn agent(&mut self, id: &str) -> Result<Option<Agent>, StoreFault> {
        let older = self.older()?;
        Ok(read_agent(&self.connection, id)?.map(|agent| now(&older, agent, Older::agent)))
    }

    fn conversation(&mut self, agent: &str, id: &str) -> Result<Option<Conversation>, StoreFault> {
        let older = self.older()?;
        let row = read_conversation(&self.connection, agent, id)?;
        Ok(row.map(|row| now(&older, row, |older, row| older.conversation(agent, row))))
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

    fn entry_of(&mut self, agent: Option<&str>, seq: u64) -> Result<Option<(u64, Vec<u8>)>, StoreFault> {
        let place = match self.older()? {
            Some(older) => older.places().place(agent, seq),
            None => self.place_of(agent.unwrap_or(blocks::SERVICE), seq)?,
        };
        place.map_or(Ok(None), |place| blocks::entry_at(&self.connection, place))
    }

    fn of_service(&mut self) -> Result<u64, StoreFault> {
        if let Some(older) = self.older()? {
            return Ok(older.places().count(None));
        }
        Ok(blocks::read_open(&self.connection, blocks::SERVICE)?.map_or(0, |block| block.count()))
    }

    fn agents_marked(&mut self, mark: u32) -> Result<Vec<String>, StoreFault> {
        if self.layout < NAMES_LAYOUT {
            return Ok(Vec::new());
        }
        let mut select = self.connection.prepare_cached("SELECT agent FROM marks WHERE mark = ?1 ORDER BY agent")?;
        Ok(select.query_map([mark], |row| row.get(0))?.collect::<rusqlite::Result<Vec<String>>>()?)
    }

    fn head(&mut self) -> Result<Frontier, StoreFault> {
        head_frontier(&self.connection)
    }

    fn frontier(&mut self, size: u64) -> Result<Option<Frontier>, StoreFault> {
        let Some(last) = size.checked_sub(1) else { return Ok(Some(Frontier::default())) };
        let mut statement = self.connection.prepare_cached("SELECT frontier FROM entries WHERE number = ?1")?;
        let bytes: Option<Option<Vec<u8>>> = statement.query_row([to_i64(last)?], |row| row.get(0)).optional()?;
        bytes.map(|bytes| frontier_of(to_i64(last)?, bytes)).transpose()
    }

    fn heads(&mut self) -> Result<Vec<(String, StateHead)>, StoreFault> {
        let older = self.older()?;
        let heads = read_heads(&self.connection)?;
        Ok(heads.into_iter().map(|(path, head)| (path, now(&older, head, Older::head))).collect())
    }

    fn agents(&mut self, after: &str, count: usize) -> Result<Vec<Agent>, StoreFault> {
        let older = self.older()?;
        let select = "SELECT profile, live FROM agents WHERE id > ?1 ORDER BY id LIMIT ?2";
        let mut select = self.connection.prepare_cached(select)?;
        let limit = i64::try_from(count).unwrap_or(i64::MAX);
        let read = |row: &Row<'_>| Ok((row.get::<_, String>(0)?, row.get::<_, String>(1)?));
        let agents = select.query_map(params![after, limit], read)?.map(|row| {
            let (profile, live) = row?;
            Ok(now(&older, agent_of(&profile, &live)?.0, Older::agent))
        });
        agents.collect()
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
        let older = self.older()?;
        Ok(read_ticket(&self.connection, id)?.map(|ticket| now(&older, ticket, Older::ticket)))
    }

    fn tickets(&mut self, query: &TicketQuery, count: usize) -> Result<Vec<(u64, Ticket)>, StoreFault> {
        let older = self.older()?;
        let before = query.before.map_or(Ok(i64::MAX), to_i64)?;
        let limit = i64::try_from(count).unwrap_or(i64::MAX);
        if self.layout < 2 {
            return Ok(Vec::new());
        }
        let undecided = if query.undecided { "AND undecided = 1" } else { "" };
        let alive = if query.expires_after.is_some() { "AND expires > ?4" } else { "AND ?4 IS NULL" };
        let whose = if query.agent.is_some() { "agent = ?3" } else { "?3 IS NULL" };
        let select = format!(
            "SELECT number, row FROM tickets WHERE {whose} AND number < ?1 {undecided} {alive} \
             ORDER BY number DESC LIMIT ?2"
        );
        let mut select = self.connection.prepare_cached(&select)?;
        let after = query.expires_after.map(to_i64).transpose()?;
        let read = |row: &Row<'_>| Ok((row.get::<_, i64>(0)?, row.get::<_, String>(1)?));
        let rows = select.query_map(params![before, limit, query.agent, after], read)?;
        rows.map(|row| {
            let (number, row) = row?;
            Ok((to_u64(number)?, now(&older, from_text(&row)?, Older::ticket)))
        })
        .collect()
    }

    fn execution(&mut self, agent: &str, decision: u64) -> Result<Option<u64>, StoreFault> {
        if self.layout < 2 {
            return Ok(None);
        }
        let Some(older) = self.older()? else { return read_execution(&self.connection, agent, decision) };
        let Some(place) = older.places().place(Some(agent), decision) else { return Ok(None) };
        let mut select = self.connection.prepare_cached("SELECT number FROM executions WHERE decision = ?1")?;
        let report: Option<i64> = select.query_row([to_i64(place)?], |row| row.get(0)).optional()?;
        report.map(|report| Ok(older.seq(agent, to_u64(report)?))).transpose()
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
        let older = self.older()?;
        Ok(read_run(&self.connection, agent)?.map(|run| now(&older, run, |older, run| older.run(agent, run))))
    }

    fn runs(&mut self, after: &str, count: usize) -> Result<Vec<(String, Run)>, StoreFault> {
        if self.layout < 3 {
            return Ok(Vec::new());
        }
        let older = self.older()?;
        let select = "SELECT agent, row FROM runs WHERE agent > ?1 ORDER BY agent LIMIT ?2";
        let mut select = self.connection.prepare_cached(select)?;
        let limit = i64::try_from(count).unwrap_or(i64::MAX);
        let rows = select.query_map(params![after, limit], |row| Ok((row.get(0)?, row.get::<_, String>(1)?)))?;
        rows.map(|row| {
            let (agent, row): (String, String) = row?;
            let run = now(&older, from_text(&row)?, |older, run| older.run(&agent, run));
            Ok((agent, run))
        })
        .collect()
    }

    fn workflow(&mut self, id: &str) -> Result<Option<WorkflowHead>, StoreFault> {
        if self.layout < 4 {
            return Ok(None);
        }
        let older = self.older()?;
        Ok(read_workflow(&self.connection, id)?.map(|head| now(&older, head, Older::workflow)))
    }

    fn workflows(&mut self, after: &str, count: usize) -> Result<Vec<WorkflowHead>, StoreFault> {
        if self.layout < 4 {
            return Ok(Vec::new());
        }
        let older = self.older()?;
        let select = "SELECT row FROM workflows WHERE id > ?1 ORDER BY id LIMIT ?2";
        let mut select = self.connection.prepare_cached(select)?;
        let limit = i64::try_from(count).unwrap_or(i64::MAX);
        let rows = select.query_map(params![after, limit], |row| row.get::<_, String>(0))?;
        rows.map(|row| Ok(now(&older, from_text(&row?)?, Older::workflow))).collect()
    }

    fn texts(&mut self, after: (&str, u64), count: usize) -> Result<Vec<KeptText>, StoreFault> {
        if self.layout < 2 {
            return Ok(Vec::new());
        }
        let older = self.older()?;
        let seq = self.seq_column();
        let select = format!(
            "SELECT agent, {seq}, salt, text, until FROM texts WHERE (agent, {seq}) > (?1, ?2) \
             ORDER BY agent, {seq} LIMIT ?3"
        );
        let mut select = self.connection.prepare_cached(&select)?;
        let limit = i64::try_from(count).unwrap_or(i64::MAX);
        let after_seq = older.as_ref().map_or(after.1, |older| older.place_after(after));
        let rows = select.query_map(params![after.0, to_i64(after_seq)?, limit], |row| {
            Ok((row.get(0)?, row.get::<_, i64>(1)?, row.get(2)?, row.get(3)?, row.get::<_, Option<i64>>(4)?))
        })?;
        rows.map(|row| {
            let (agent, seq, salt, text, until): (String, i64, _, _, Option<i64>) = row?;
            let seq = now(&older, to_u64(seq)?, |older, place| older.seq(&agent, place));
            Ok(KeptText { agent, seq, salt, text, until: until.map(to_u64).transpose()? })
        })
        .collect()
    }

    fn text(&mut self, agent: &str, seq: u64) -> Result<Option<KeptText>, StoreFault> {
        if self.layout < 2 {
            return Ok(None);
        }
        let older = self.older()?;
        let column = self.seq_column();
        let select = format!("SELECT salt, text, until FROM texts WHERE agent = ?1 AND {column} = ?2");
        let mut select = self.connection.prepare_cached(&select)?;
        let number = older.map_or(Some(seq), |older| older.places().place(Some(agent), seq));
        let Some(number) = number else { return Ok(None) };
        let row = select.query_row(params![agent, to_i64(number)?], |row| {
            Ok((row.get(0)?, row.get(1)?, row.get::<_, Option<i64>>(2)?))
        });
        let Some((salt, text, until)) = row.optional()? else { return Ok(None) };
        let until = until.map(to_u64).transpose()?;
        Ok(Some(KeptText { agent: agent.to_owned(), seq, salt, text, until }))
    }

    fn told_agent(&mut self, principal: &str, lane: Lane, after: &str) -> Result<Option<String>, StoreFault> {
        if self.layout < NAMES_LAYOUT {
            return Ok(None);
        }
        let select =
            "SELECT agent FROM outbox WHERE principal = ?1 AND lane = ?2 AND agent > ?3 ORDER BY agent LIMIT 1";
        let mut select = self.connection.prepare_cached(select)?;
        Ok(select.query_row(params![principal, lane.number(), after], |row| row.get(0)).optional()?)
    }

    fn outbox(&mut self, principal: &str, lane: Lane, agent: &str, count: usize) -> Result<Vec<Outgoing>, StoreFault> {
        if self.layout < NAMES_LAYOUT {
            return Ok(Vec::new());
        }
        let select = "SELECT seq, principal, event_id, body, at, agent, lane FROM outbox
            WHERE principal = ?1 AND lane = ?2 AND agent = ?3 ORDER BY seq LIMIT ?4";
        let mut select = self.connection.prepare_cached(select)?;
        let limit = i64::try_from(count).unwrap_or(i64::MAX);
        let rows = select.query_map(params![principal, lane.number(), agent, limit], event_columns)?;
        rows.map(|row| event_of_row(row?)).collect()
    }

    fn outbox_before(&mut self, principal: &str, at: Millis, count: usize) -> Result<Vec<EntryName>, StoreFault> {
        if self.layout < NAMES_LAYOUT {
            return Ok(Vec::new());
        }
        let select = "SELECT agent, seq FROM outbox WHERE principal = ?1 AND at < ?2 ORDER BY at, agent, seq LIMIT ?3";
        let mut select = self.connection.prepare_cached(select)?;
        let limit = i64::try_from(count).unwrap_or(i64::MAX);
        let read = |row: &Row<'_>| Ok((row.get::<_, String>(0)?, row.get::<_, i64>(1)?));
        let rows = select.query_map(params![principal, to_i64(at)?, limit], read)?;
        rows.map(|row| {
            let (agent, seq) = row?;
            Ok(EntryName { agent: Some(agent), seq: to_u64(seq)? })
        })
        .collect()
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

    fn events(&mut self, after: (&str, u64), count: usize) -> Result<Vec<Outgoing>, StoreFault> {
        if self.layout < 2 {
            return Ok(Vec::new());
        }
        if let Some(older) = self.older()? {
            return self.older_events(&older, after, count);
        }
        let select = "SELECT seq, principal, event_id, body, at, agent, lane FROM outbox
            WHERE (agent, seq) > (?1, ?2) ORDER BY agent, seq LIMIT ?3";
        let mut select = self.connection.prepare_cached(select)?;
        let limit = i64::try_from(count).unwrap_or(i64::MAX);
        let rows = select.query_map(params![after.0, to_i64(after.1)?, limit], event_columns)?;
        rows.map(|row| event_of_row(row?)).collect()
    }

    fn kept(&mut self, after: (&str, Digest), count: usize) -> Result<Vec<(String, Digest, KeptAnswer)>, StoreFault> {
        let older = self.older()?;
        let seq = self.seq_column();
        let select = format!(
            "SELECT agent, key, {seq}, at, corrected FROM kept WHERE (agent, key) > (?1, ?2) ORDER BY agent, key LIMIT ?3"
        );
        let mut select = self.connection.prepare_cached(&select)?;
        let limit = i64::try_from(count).unwrap_or(i64::MAX);
        let rows = select.query_map(params![after.0, after.1.bytes(), limit], |row| {
            Ok((row.get(0)?, row.get(1)?, row.get::<_, i64>(2)?, row.get::<_, i64>(3)?, row.get(4)?))
        })?;
        rows.map(|row| {
            let (agent, key, seq, at, corrected): (String, _, i64, i64, _) = row?;
            let seq = now(&older, to_u64(seq)?, |older, place| older.seq(&agent, place));
            let kept = KeptAnswer { seq, at: to_u64(at)?, corrected };
            Ok((agent, Digest::from_bytes(key), kept))
        })
        .collect()
    }

    fn foreign(&mut self) -> Result<Vec<String>, StoreFault> {
        foreign(&self.connection, self.layout)
    }

    fn rows(&mut self) -> Result<Rows, StoreFault> {
        let txn = self.connection.unchecked_transaction()?;
        let head = head_frontier(&txn)?;
        let older = read_older(&txn, self.layout, &mut self.older)?;
        let mut misfiled = Vec::new();
        let places = match &older {
            Some(older) => older.places().clone(),
            None => blocks::read_all(&txn, |wrong| misfiled.push(wrong))?,
        };
        let agents = read_agents(&txn, &older, &mut misfiled)?;
        let mut select = txn.prepare("SELECT agent, id, row FROM conversations")?;
        let read = |row: &Row<'_>| Ok((row.get(0)?, row.get(1)?, row.get::<_, String>(2)?));
        let conversations = select.query_map([], read)?.map(|row| {
            let (agent, id, row): (String, String, String) = row?;
            let row = now(&older, from_text(&row)?, |older, row| older.conversation(&agent, row));
            Ok((agent, id, row))
        });
        let conversations = conversations.collect::<Result<Vec<_>, StoreFault>>()?;
        let heads = read_heads(&txn)?.into_iter();
        let heads = heads.map(|(path, head)| (path, now(&older, head, Older::head))).collect();
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
            places,
            misfiled,
            without_totals: self.layout < 2,
        };
        if self.layout < 2 {
            return Ok(rows);
        }
        rows.tickets = read_tickets(&txn, &older, &mut rows.misfiled)?;
        rows.executions = read_executions(&txn, older.as_ref())?;
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
            let (agent, row): (String, String) = row?;
            let run = now(&older, from_text(&row)?, |older, run| older.run(&agent, run));
            Ok((agent, run))
        });
        rows.runs = runs.collect::<Result<Vec<_>, StoreFault>>()?;
        if self.layout < 4 {
            return Ok(rows);
        }
        let mut select = txn.prepare("SELECT id, row FROM workflows")?;
        let workflows = select.query_map([], |row| Ok((row.get(0)?, row.get::<_, String>(1)?)))?.map(|row| {
            let (id, row): (String, String) = row?;
            Ok((id, now(&older, from_text(&row)?, Older::workflow)))
        });
        rows.workflows = workflows.collect::<Result<Vec<_>, StoreFault>>()?;
        if self.layout >= NAMES_LAYOUT {
            let wrong = wrong_marks(&txn, &rows.agents)?;
            rows.misfiled.extend(wrong);
        }
        Ok(rows)
    }
}

impl SqliteReader {
    /// The column for the number of an entry, as this layout calls it.
    fn seq_column(&self) -> &'static str {
        if self.layout < NAMES_LAYOUT { "number" } else { "seq" }
    }

    /// Events of an older layout, which are few enough to be sorted here.
    fn older_events(&self, older: &Older, after: (&str, u64), count: usize) -> Result<Vec<Outgoing>, StoreFault> {
        // Before the fifth layout an event alone said what it is about.
        let about = if self.layout < 5 { EVENT_LANE } else { "agent, lane" };
        let select = format!("SELECT id, principal, event_id, body, at, {about} FROM outbox");
        let mut select = self.connection.prepare(&select)?;
        let events = select.query_map([], event_columns)?.map(|row| {
            let event = event_of_row(row?)?;
            Ok(Outgoing { seq: older.seq(&event.agent, event.seq), ..event })
        });
        let mut events = events.collect::<Result<Vec<_>, StoreFault>>()?;
        events.retain(|event| (event.agent.as_str(), event.seq) > after);
        events.sort_by(|one, other| (&one.agent, one.seq).cmp(&(&other.agent, other.seq)));
        events.truncate(count);
        Ok(events)
    }
}

/// The agents; told are those that are found by another id, or speak of another last entry.
fn read_agents(
    connection: &Connection,
    older: &Option<Older>,
    misfiled: &mut Vec<String>,
) -> Result<Vec<Agent>, StoreFault> {
    let mut select = connection.prepare("SELECT id, profile, live FROM agents")?;
    let read = |row: &Row<'_>| Ok((row.get::<_, String>(0)?, row.get::<_, String>(1)?, row.get::<_, String>(2)?));
    let agents = select.query_map([], read)?.map(|row| {
        let (id, profile, live) = row?;
        let (agent, last) = agent_of(&profile, &live)?;
        if agent.profile.agent_id != id {
            misfiled.push(format!("the row of {} is found by another id", agent.profile.agent_id));
        }
        let expected = older.as_ref().and_then(|older| older.places().of(Some(&id)).last().copied());
        if last != expected {
            misfiled.push(format!("the row of {id} has another last entry"));
        }
        Ok(now(older, agent, Older::agent))
    });
    agents.collect()
}

/// The tickets; told are those whose columns say another than their rows: lists and counts go by the columns.
fn read_tickets(
    connection: &Connection,
    older: &Option<Older>,
    misfiled: &mut Vec<String>,
) -> Result<Vec<Ticket>, StoreFault> {
    let mut select = connection.prepare("SELECT number, id, agent, undecided, expires, row FROM tickets")?;
    let read = |row: &Row<'_>| {
        let filed: (i64, String, String, i64, i64) = (row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?, row.get(4)?);
        Ok((filed, row.get::<_, String>(5)?))
    };
    let tickets = select.query_map([], read)?.map(|row| {
        let (filed, row) = row?;
        let ticket: Ticket = from_text(&row)?;
        // The number is the store's own; in older layouts it was the place of the entry.
        let number = if older.is_some() { to_i64(ticket.opened)? } else { filed.0 };
        let (undecided, expires) = (i64::from(ticket.resolution.is_none()), to_i64(ticket.expires_at)?);
        if filed != (number, ticket.approval_id.clone(), ticket.agent.clone(), undecided, expires) {
            misfiled.push(format!("the columns of the ticket {} say another than its row", ticket.approval_id));
        }
        Ok(now(older, ticket, Older::ticket))
    });
    tickets.collect()
}

/// Executions: agent, the decision's entry, the report's.
fn read_executions(connection: &Connection, older: Option<&Older>) -> Result<Vec<(String, u64, u64)>, StoreFault> {
    let Some(older) = older else {
        let mut select = connection.prepare("SELECT agent, decision, report FROM executions")?;
        let rows = select.query_map([], |row| Ok((row.get(0)?, row.get::<_, i64>(1)?, row.get::<_, i64>(2)?)))?;
        return rows
            .map(|row| {
                let (agent, decision, report) = row?;
                Ok((agent, to_u64(decision)?, to_u64(report)?))
            })
            .collect();
    };
    let mut select = connection.prepare("SELECT decision, number FROM executions")?;
    let rows = select.query_map([], |row| Ok((row.get::<_, i64>(0)?, row.get::<_, i64>(1)?)))?;
    rows.map(|row| {
        let (decision, report) = row?;
        let (decision, report) = (to_u64(decision)?, to_u64(report)?);
        let agent = agent_at(connection, decision).unwrap_or_default();
        let (decision, report) = (older.seq(&agent, decision), older.seq(&agent, report));
        Ok((agent, decision, report))
    })
    .collect()
}

/// Agents that are not found by their marks, and marks that lead to other agents.
fn wrong_marks(connection: &Connection, agents: &[Agent]) -> Result<Vec<String>, StoreFault> {
    let mut select = connection.prepare("SELECT mark, agent FROM marks")?;
    let marks = select.query_map([], |row| Ok((row.get::<_, u32>(0)?, row.get::<_, String>(1)?)))?;
    let mut marks = marks.collect::<rusqlite::Result<BTreeSet<_>>>()?;
    let unmarked = agents.iter().map(|agent| &agent.profile.agent_id);
    let unmarked = unmarked.filter(|id| !marks.remove(&(mark_of(id), (*id).clone())));
    let mut wrong: Vec<String> = unmarked.map(|id| format!("{id} is not found by the ids of its decisions")).collect();
    wrong.extend(marks.iter().map(|(_, id)| format!("ids of decisions lead to {}, and should not", display(id))));
    Ok(wrong)
}

/// A row as this layout has it.
fn now<T>(older: &Option<Older>, row: T, carry: impl FnOnce(&Older, T) -> T) -> T {
    match older {
        Some(older) => carry(older, row),
        None => row,
    }
}

type EventColumns = (i64, String, String, String, i64, String, i64);

fn event_columns(row: &Row<'_>) -> rusqlite::Result<EventColumns> {
    Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?, row.get(4)?, row.get(5)?, row.get(6)?))
}

fn event_of_row(columns: EventColumns) -> Result<Outgoing, StoreFault> {
    let (seq, principal, event_id, body, at, agent, lane) = columns;
    let (seq, at, lane) = (to_u64(seq)?, to_u64(at)?, Lane::of_number(lane)?);
    Ok(Outgoing { principal, agent, seq, lane, event_id, body, at })
}
