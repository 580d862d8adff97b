//! The step to the sixth layout: before it rows spoke of entries by their places in the tree.
//!
//! Rows that follow from entries are written anew, as a fold has them. What lies beside them (texts, kept answers, events)
//! is carried over. Nothing is carried over from a ledger that does not hold: then the migration ends as it began.

use interlock_core::ledger::Entry;
use rusqlite::{Connection, params};

use super::super::fold::Fold;
use super::super::places::{Block, Places};
use super::super::sqlite::blocks::{self, SERVICE};
use super::super::sqlite::{LiveRow, to_text, to_u64, write_execution, write_mark, write_ticket, write_token};
use super::super::store::StoreFault;

/// Changes the layout, and everything in it that spoke of entries.
pub(super) fn carry(connection: &Connection, schema: &str) -> Result<(), StoreFault> {
    let fold = fold_all(connection)?;
    connection.execute_batch("CREATE TEMP TABLE waiting AS SELECT * FROM outbox")?;
    connection.execute_batch(schema)?;
    carry_beside(connection, &fold.places)?;
    connection.execute_batch("DROP TABLE temp.waiting")?;
    write_rows(connection, &fold)
}

fn fold_all(connection: &Connection) -> Result<Fold, StoreFault> {
    let mut fold = Fold::default();
    let mut select = connection.prepare("SELECT number, bytes FROM entries ORDER BY number")?;
    let mut rows = select.query([])?;
    while let Some(row) = rows.next()? {
        let (number, bytes): (i64, Vec<u8>) = (row.get(0)?, row.get(1)?);
        let entry =
            Entry::from_bytes(&bytes).map_err(|error| StoreFault::while_doing(format!("entry {number}"), error))?;
        let mut wrong = None;
        fold.add(
            &entry,
            to_u64(number)?,
            |_, _, _| {},
            |reason| {
                wrong.get_or_insert_with(|| reason.to_owned());
            },
        );
        if let Some(reason) = wrong {
            return Err(StoreFault::new(format!("not migrated: entry {number}: {reason}")));
        }
    }
    Ok(fold)
}

/// The rows, as they follow from the entries.
fn write_rows(connection: &Connection, fold: &Fold) -> Result<(), StoreFault> {
    let mut update = connection.prepare("UPDATE agents SET live = ?2, places = ?3 WHERE id = ?1")?;
    for (id, agent) in &fold.agents {
        let open = write_blocks(connection, id, fold.places.of(Some(id)))?;
        let written = update.execute(params![id, to_text(&LiveRow::of(agent))?, open.to_bytes()])?;
        if written == 0 {
            return Err(StoreFault::new(format!("not migrated: {id} has entries and no row")));
        }
        write_token(connection, agent.token, id)?;
        write_mark(connection, id)?;
    }
    let open = write_blocks(connection, SERVICE, fold.places.of(None))?;
    blocks::write(connection, SERVICE, &open)?;
    let mut update = connection.prepare("UPDATE conversations SET row = ?3 WHERE agent = ?1 AND id = ?2")?;
    for ((agent, id), row) in &fold.conversations {
        update.execute(params![agent, id, to_text(row)?])?;
    }
    let mut replace = connection.prepare("INSERT OR REPLACE INTO heads (path, row) VALUES (?1, ?2)")?;
    for (path, head) in &fold.heads {
        replace.execute(params![path, to_text(head)?])?;
    }
    for ticket in fold.tickets.values() {
        write_ticket(connection, ticket)?;
    }
    for ((agent, decision), report) in &fold.executions {
        write_execution(connection, agent, *decision, *report)?;
    }
    let mut replace = connection.prepare("INSERT OR REPLACE INTO runs (agent, row) VALUES (?1, ?2)")?;
    for (agent, run) in &fold.runs {
        replace.execute(params![agent, to_text(run)?])?;
    }
    let mut replace = connection.prepare("INSERT OR REPLACE INTO workflows (id, row) VALUES (?1, ?2)")?;
    for (id, head) in &fold.registered {
        replace.execute(params![id, to_text(head)?])?;
    }
    Ok(())
}

/// Puts places into blocks; returns the one that is still open.
fn write_blocks(connection: &Connection, whose: &str, places: &[u64]) -> Result<Block, StoreFault> {
    let mut block = Block::default();
    for (seq, place) in (1..).zip(places) {
        if !block.push(seq, *place) {
            return Err(StoreFault::new(format!("not migrated: entry {place} is out of order")));
        }
        if block.is_full() {
            blocks::write(connection, whose, &block)?;
            block = block.next();
        }
    }
    Ok(block)
}

/// Texts, kept answers and events, whose columns hold places by now.
fn carry_beside(connection: &Connection, places: &Places) -> Result<(), StoreFault> {
    let seq_of = |agent: &str, place: i64| {
        let seq = places.seq_at(Some(agent), to_u64(place)?).and_then(|seq| i64::try_from(seq).ok());
        seq.ok_or_else(|| StoreFault::new(format!("not migrated: entry {place} is not one of {agent}")))
    };
    // No number is higher than its place was, so in this order none meets one that is still to be changed.
    let mut update = connection.prepare("UPDATE texts SET seq = ?3 WHERE agent = ?1 AND seq = ?2")?;
    for (agent, place) in pairs(connection, "SELECT agent, seq FROM texts ORDER BY agent, seq")? {
        update.execute(params![agent, place, seq_of(&agent, place)?])?;
    }
    let mut update = connection.prepare("UPDATE kept SET seq = ?3 WHERE agent = ?1 AND seq = ?2")?;
    for (agent, place) in pairs(connection, "SELECT agent, seq FROM kept ORDER BY agent, seq")? {
        update.execute(params![agent, place, seq_of(&agent, place)?])?;
    }
    let insert = "INSERT INTO outbox (agent, seq, principal, lane, event_id, body, at)
        SELECT agent, ?2, principal, lane, event_id, body, at FROM temp.waiting WHERE id = ?1";
    let mut insert = connection.prepare(insert)?;
    for (agent, place) in pairs(connection, "SELECT agent, id FROM temp.waiting")? {
        insert.execute(params![place, seq_of(&agent, place)?])?;
    }
    Ok(())
}

fn pairs(connection: &Connection, select: &str) -> Result<Vec<(String, i64)>, StoreFault> {
    let mut select = connection.prepare(select)?;
    let rows = select.query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?;
    Ok(rows.collect::<rusqlite::Result<Vec<_>>>()?)
}
