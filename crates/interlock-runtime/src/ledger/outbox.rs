//! Which event goes to a principal next: what waits for a person first, then what happened, then what was found wrong;
//! agents take turns, so none of them keeps the others from being told of. Whatever does not follow from its entry stays
//! where it is.

use interlock_core::action::{Millis, Profile};
use interlock_core::ledger::{Body, Entry, EntryName};

use super::decision_id::DecisionIds;
use super::event::{event_for_all, event_of};
use super::store::{FoundEntry, Lane, Outgoing, Reader, StoreFault};

/// So many events of one lane go in a row; then others have a turn, if any wait.
const IN_A_ROW_MAX: u32 = 8;
/// If more than so many wait that something of one agent was found wrong, they are sent as one.
const ALONE_MAX: usize = 16;
/// So many are sent as one at most.
const TOGETHER_MAX: usize = 1_024;

/// Whose turn it is at one destination.
#[derive(Debug, Clone, Default)]
pub struct Turn {
    /// The agent that was told of last, in each lane.
    last: [String; 3],
    /// The lane of the last event, and how many of it went in a row.
    row: Option<(Lane, u32)>,
}

/// What is sent at once: an event, or one in the place of several.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Parcel {
    /// The events it stands for, by the entries they tell of.
    pub ids: Vec<EntryName>,
    /// What the receiver knows it by.
    pub event_id: String,
    /// A CloudEvents JSON object.
    pub body: String,
    /// When the newest of them happened.
    pub at: Millis,
}

/// The next parcel for a principal, and the events that were found on the way and do not follow from their entries.
pub(super) fn next_parcel(
    reader: &mut dyn Reader,
    ids: DecisionIds,
    principal: &str,
    turn: &mut Turn,
) -> Result<(Option<Parcel>, Vec<EntryName>), StoreFault> {
    let mut forged = Vec::new();
    for lane in turn.lanes() {
        let after = turn.last.get(lane_index(lane)).cloned().unwrap_or_default();
        let mut agent = reader.told_agent(principal, lane, &after)?;
        let mut wrapped = agent.is_none();
        if wrapped {
            agent = reader.told_agent(principal, lane, "")?;
        }
        while let Some(id) = agent.filter(|id| !wrapped || *id <= after) {
            let events = reader.outbox(principal, lane, &id, TOGETHER_MAX)?;
            if let Some(parcel) = parcel_of(reader, ids, events, &mut forged)? {
                turn.took(lane, id);
                return Ok((Some(parcel), forged));
            }
            agent = reader.told_agent(principal, lane, &id)?;
            if agent.is_none() && !wrapped {
                wrapped = true;
                agent = reader.told_agent(principal, lane, "")?;
            }
        }
    }
    Ok((None, forged))
}

fn lane_index(lane: Lane) -> usize {
    usize::try_from(lane.number()).unwrap_or(0)
}

impl Turn {
    /// The lanes, the most urgent first; one that had many turns in a row comes last.
    fn lanes(&self) -> [Lane; 3] {
        let [waiting, told, failed] = Lane::ALL;
        match self.row {
            Some((Lane::Waiting, count)) if count >= IN_A_ROW_MAX => [told, failed, waiting],
            Some((Lane::Told, count)) if count >= IN_A_ROW_MAX => [waiting, failed, told],
            Some(_) | None => [waiting, told, failed],
        }
    }

    fn took(&mut self, lane: Lane, agent: String) {
        let before = self.row.filter(|(last, _)| *last == lane).map_or(0, |(_, count)| count);
        self.row = Some((lane, before.saturating_add(1)));
        if let Some(last) = self.last.get_mut(lane_index(lane)) {
            *last = agent;
        }
    }
}

/// The oldest event of an agent in a lane, or one for all of them; `None` if none follows from its entry.
fn parcel_of(
    reader: &mut dyn Reader,
    ids: DecisionIds,
    events: Vec<Outgoing>,
    forged: &mut Vec<EntryName>,
) -> Result<Option<Parcel>, StoreFault> {
    let together = events.len() > ALONE_MAX && events.iter().all(|event| event.lane == Lane::Failed);
    let mut told: Vec<(Entry, Outgoing)> = Vec::new();
    let mut profile = None;
    for event in events {
        match due(reader, ids, &event)? {
            Some((entry, of)) => {
                told.push((entry, event));
                profile = Some(of);
            }
            None => forged.push(event.name()),
        }
        if !together && !told.is_empty() {
            break;
        }
    }
    let Some((profile, (_, last))) = profile.zip(told.last()) else { return Ok(None) };
    let (event_id, at) = (last.event_id.clone(), last.at);
    let all: Vec<(Millis, &Body)> = told.iter().map(|(entry, _)| (entry.at, &entry.body)).collect();
    let body = if all.len() > 1 { event_for_all(&profile, &all, &event_id) } else { Some(last.body.clone()) };
    let body = body.ok_or_else(|| StoreFault::new("an event could not be written"))?;
    Ok(Some(Parcel { ids: told.iter().map(|(_, event)| event.name()).collect(), event_id, body, at }))
}

/// The entry an event follows from, and whose it is; `None` if it does not: it would go out with a signature.
pub(super) fn due(
    reader: &mut dyn Reader,
    ids: DecisionIds,
    event: &Outgoing,
) -> Result<Option<(Entry, Profile)>, StoreFault> {
    let found = reader.entry_of(Some(&event.agent), event.seq)?;
    let found = FoundEntry::read(Some(&event.agent), event.seq, found).ok().flatten();
    let Some(FoundEntry { place, entry, .. }) = found else { return Ok(None) };
    let Some(agent) = reader.agent(&event.agent)? else { return Ok(None) };
    let worth = event_of(ids, &agent.profile, &entry, place);
    Ok((worth.as_ref() == Some(event)).then(|| (entry, Profile::clone(&agent.profile))))
}
