//! Blocks of places in the database: where an entry stands, found by its name. An agent's open block lies in the agent's
//! row, the service's beside the full ones.

use std::collections::HashMap;

use rusqlite::{Connection, OptionalExtension, params};

use super::{to_i64, to_u64};
use crate::ledger::places::{Block, Places};
use crate::ledger::store::{NewEntry, StoreFault};

/// Whose blocks are the service's.
pub(in crate::ledger) const SERVICE: &str = "";

/// The blocks that agents, and the service, are filling.
pub(super) type OpenBlocks = HashMap<String, Block>;

/// Puts new entries into their blocks: those that are full go into the database, the others stay open. `known` are the
/// open blocks at hand; those that are needed are taken from it.
pub(super) fn add(
    connection: &Connection,
    known: &mut OpenBlocks,
    entries: &[NewEntry],
    first: u64,
) -> Result<OpenBlocks, StoreFault> {
    let mut open = OpenBlocks::new();
    for (place, new) in (first..).zip(entries) {
        let whose = new.name.agent.as_deref().unwrap_or(SERVICE);
        let block = match open.get_mut(whose) {
            Some(block) => block,
            None => {
                let block = match known.remove(whose) {
                    Some(block) => block,
                    None => read_open(connection, whose)?.unwrap_or_default(),
                };
                open.entry(whose.to_owned()).or_insert(block)
            }
        };
        if !block.push(new.name.seq, place) {
            return Err(StoreFault::new(format!("entry {} is not the next one", new.name)));
        }
        if block.is_full() {
            write(connection, whose, block)?;
            *block = block.next();
        }
    }
    Ok(open)
}

/// Puts a block beside the full ones.
pub(in crate::ledger) fn write(connection: &Connection, whose: &str, block: &Block) -> Result<(), StoreFault> {
    let replace = "INSERT OR REPLACE INTO places (agent, block, bytes) VALUES (?1, ?2, ?3)";
    let number = to_i64(block.number())?;
    connection.prepare_cached(replace)?.execute(params![whose, number, block.to_bytes()])?;
    Ok(())
}

/// The block that somebody is filling; none if nothing of theirs is on record.
pub(super) fn read_open(connection: &Connection, whose: &str) -> Result<Option<Block>, StoreFault> {
    let Some(bytes) = open_bytes(connection, whose)? else { return Ok(None) };
    let damaged = || StoreFault::new(format!("the places of entries of {} are damaged", shown(whose)));
    let block = Block::from_bytes(&bytes).ok_or_else(damaged)?;
    Ok(Some(if block.is_full() { block.next() } else { block }))
}

fn open_bytes(connection: &Connection, whose: &str) -> Result<Option<Vec<u8>>, StoreFault> {
    let select = if whose == SERVICE {
        "SELECT bytes FROM places WHERE agent = ?1 ORDER BY block DESC LIMIT 1"
    } else {
        "SELECT places FROM agents WHERE id = ?1"
    };
    let mut select = connection.prepare_cached(select)?;
    Ok(select.query_row([whose], |row| row.get(0)).optional()?)
}

/// An entry by its name: its place in the tree, and its bytes.
pub(super) fn entry_of(
    connection: &Connection,
    agent: Option<&str>,
    seq: u64,
) -> Result<Option<(u64, Vec<u8>)>, StoreFault> {
    let block = block_of(connection, agent.unwrap_or(SERVICE), seq)?;
    let Some(place) = block.and_then(|block| block.place(seq)) else { return Ok(None) };
    entry_at(connection, place)
}

/// An entry by its place.
pub(super) fn entry_at(connection: &Connection, place: u64) -> Result<Option<(u64, Vec<u8>)>, StoreFault> {
    let mut select = connection.prepare_cached("SELECT bytes FROM entries WHERE number = ?1")?;
    let bytes = select.query_row([to_i64(place)?], |row| row.get(0)).optional()?;
    Ok(bytes.map(|bytes| (place, bytes)))
}

/// The block that an entry's place should be in. One that is damaged leads to nothing, and an audit says so.
pub(super) fn block_of(connection: &Connection, whose: &str, seq: u64) -> Result<Option<Block>, StoreFault> {
    let number = Block::number_of(seq);
    let mut select = connection.prepare_cached("SELECT bytes FROM places WHERE agent = ?1 AND block = ?2")?;
    let bytes = select.query_row(params![whose, to_i64(number)?], |row| row.get::<_, Vec<u8>>(0)).optional()?;
    let bytes = match bytes {
        Some(bytes) => Some(bytes),
        None => open_bytes(connection, whose)?,
    };
    Ok(bytes.and_then(|bytes| Block::from_bytes(&bytes)))
}

/// The places of all entries; `wrong` is told what is no block, or none that can follow the one before it.
pub(super) fn read_all(connection: &Connection, mut wrong: impl FnMut(String)) -> Result<Places, StoreFault> {
    let mut places = Places::default();
    let mut take = |whose: &str, number: Option<i64>, bytes: &[u8]| {
        let agent = Some(whose).filter(|whose| *whose != SERVICE);
        let follows = |block: &Block| {
            let filed = number.is_none_or(|number| to_u64(number).ok() == Some(block.number()));
            let places_len = u64::try_from(block.places().len()).unwrap_or(u64::MAX);
            filed && block.count().checked_sub(places_len) == Some(places.count(agent))
        };
        match Block::from_bytes(bytes).filter(follows) {
            Some(block) => block.places().iter().for_each(|place| places.add(agent, *place)),
            None => wrong(format!("the places of entries of {} are damaged", shown(whose))),
        }
    };
    let mut select = connection.prepare("SELECT agent, block, bytes FROM places ORDER BY agent, block")?;
    let mut rows = select.query([])?;
    while let Some(row) = rows.next()? {
        let (whose, number, bytes): (String, i64, Vec<u8>) = (row.get(0)?, row.get(1)?, row.get(2)?);
        take(&whose, Some(number), &bytes);
    }
    let mut select = connection.prepare("SELECT id, places FROM agents ORDER BY id")?;
    let mut rows = select.query([])?;
    while let Some(row) = rows.next()? {
        let (whose, bytes): (String, Vec<u8>) = (row.get(0)?, row.get(1)?);
        take(&whose, None, &bytes);
    }
    Ok(places)
}

fn shown(whose: &str) -> &str {
    if whose == SERVICE { "the service" } else { whose }
}
