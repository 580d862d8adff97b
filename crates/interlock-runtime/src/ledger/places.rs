//! Where entries stand in the tree, by their names: the agent's, or the service's, and the number among theirs.
//!
//! Only this and the entries themselves know places: what one entry or row says of another is a name. The store keeps
//! places in blocks of so many entries of one stream. The block that an agent is filling lies in its own row, which every
//! entry writes anyway; it is put beside the others when it is full.

use std::collections::BTreeMap;

/// So many places are one block.
pub(super) const BLOCK_LEN: u64 = 64;

/// The places of all entries, each stream in its order.
#[derive(Debug, Clone, Default)]
pub struct Places {
    agents: BTreeMap<String, Vec<u64>>,
    service: Vec<u64>,
}

impl Places {
    /// The next entry of a stream stands here.
    pub(super) fn add(&mut self, agent: Option<&str>, place: u64) {
        match agent {
            None => self.service.push(place),
            Some(id) => match self.agents.get_mut(id) {
                Some(places) => places.push(place),
                None => {
                    self.agents.insert(id.to_owned(), vec![place]);
                }
            },
        }
    }

    /// All of one stream.
    pub(super) fn of(&self, agent: Option<&str>) -> &[u64] {
        match agent {
            None => &self.service,
            Some(id) => self.agents.get(id).map_or(&[], Vec::as_slice),
        }
    }

    /// How many entries a stream has.
    pub(super) fn count(&self, agent: Option<&str>) -> u64 {
        to_number(self.of(agent).len())
    }

    /// How many entries there are.
    pub(super) fn total(&self) -> u64 {
        let of_agents = self.agents.values().map(Vec::len);
        of_agents.fold(to_number(self.service.len()), |sum, count| sum.saturating_add(to_number(count)))
    }

    /// Where an entry stands.
    pub(super) fn place(&self, agent: Option<&str>, seq: u64) -> Option<u64> {
        let at = usize::try_from(seq.checked_sub(1)?).ok()?;
        self.of(agent).get(at).copied()
    }

    /// The number of the entry of a stream that stands at a place.
    pub(super) fn seq_at(&self, agent: Option<&str>, place: u64) -> Option<u64> {
        self.of(agent).binary_search(&place).ok().map(|at| to_number(at).saturating_add(1))
    }

    /// How many entries of a stream are among the first so many.
    pub(super) fn before(&self, agent: Option<&str>, size: u64) -> u64 {
        to_number(self.of(agent).partition_point(|place| *place < size))
    }
}

/// Places of entries of one stream, in a row.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Block {
    /// The how manieth of its stream it is, from 0.
    number: u64,
    places: Vec<u64>,
}

impl Block {
    /// The block that has an entry's place.
    pub(super) fn number_of(seq: u64) -> u64 {
        seq.saturating_sub(1).checked_div(BLOCK_LEN).unwrap_or_default()
    }

    pub(super) fn number(&self) -> u64 {
        self.number
    }

    pub(super) fn places(&self) -> &[u64] {
        &self.places
    }

    pub(super) fn is_full(&self) -> bool {
        to_number(self.places.len()) >= BLOCK_LEN
    }

    /// How many entries the stream has by the end of it.
    pub(super) fn count(&self) -> u64 {
        self.number.saturating_mul(BLOCK_LEN).saturating_add(to_number(self.places.len()))
    }

    /// The empty block after this one.
    pub(super) fn next(&self) -> Block {
        Block { number: self.number.saturating_add(1), places: Vec::new() }
    }

    /// Where an entry stands, if it is in this block.
    pub(super) fn place(&self, seq: u64) -> Option<u64> {
        let first = self.number.saturating_mul(BLOCK_LEN).saturating_add(1);
        self.places.get(usize::try_from(seq.checked_sub(first)?).ok()?).copied()
    }

    /// One more entry; `false` if it is not the next one of the stream, or the block is full.
    #[must_use]
    pub(super) fn push(&mut self, seq: u64, place: u64) -> bool {
        let is_next = seq == self.count().saturating_add(1) && self.places.last().is_none_or(|last| *last < place);
        if is_next && !self.is_full() {
            self.places.push(place);
            return true;
        }
        false
    }

    /// The number, then the first place, then how far each is from the one before it: seven bits to a byte, the lowest
    /// first, all but the last of a number with the highest bit set.
    pub(super) fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(self.places.len().saturating_mul(2).saturating_add(10));
        push_number(&mut bytes, self.number);
        let mut before = 0;
        for place in &self.places {
            push_number(&mut bytes, place.saturating_sub(before));
            before = *place;
        }
        bytes
    }

    /// Reads what was written so; `None` if it was not.
    pub(super) fn from_bytes(mut bytes: &[u8]) -> Option<Block> {
        let (number, mut block) = (take_number(&mut bytes)?, Block::default());
        block.number = number;
        let mut before = 0_u64;
        while !bytes.is_empty() {
            before = before.checked_add(take_number(&mut bytes)?)?;
            let seq = block.count().checked_add(1)?;
            block.push(seq, before).then_some(())?;
        }
        Some(block)
    }
}

fn push_number(bytes: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        bytes.push(u8::try_from(number & 0x7f).unwrap_or_default() | 0x80);
        number >>= 7;
    }
    bytes.push(u8::try_from(number).unwrap_or_default());
}

fn take_number(bytes: &mut &[u8]) -> Option<u64> {
    let (mut number, mut shift) = (0_u64, 0_u32);
    loop {
        let (first, rest) = bytes.split_first()?;
        *bytes = rest;
        let bits = u64::from(first & 0x7f);
        let shifted = bits.checked_shl(shift).filter(|shifted| shifted.checked_shr(shift) == Some(bits))?;
        number |= shifted;
        if first & 0x80 == 0 {
            // One number has one spelling.
            return (*first != 0 || shift == 0).then_some(number);
        }
        shift = shift.checked_add(7)?;
    }
}

fn to_number(count: usize) -> u64 {
    u64::try_from(count).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_block_reads_as_it_was_written_and_nothing_else_is_one() {
        for places in [vec![], vec![0], vec![3, 4, 1_000, 1_127, u64::MAX], (0..64).map(|at| at * 700).collect()] {
            let mut block = Block { number: 300, places: Vec::new() };
            for (at, place) in places.iter().enumerate() {
                assert!(block.push(300 * BLOCK_LEN + 1 + at as u64, *place));
            }
            let bytes = block.to_bytes();
            assert_eq!(Block::from_bytes(&bytes), Some(block.clone()));
            assert_eq!(block.count(), 300 * BLOCK_LEN + places.len() as u64);
            for (at, place) in places.iter().enumerate() {
                assert_eq!(block.place(300 * BLOCK_LEN + 1 + at as u64), Some(*place));
            }
            assert_eq!((block.place(1), block.place(block.count() + 1)), (None, None));
        }
        let too_many: Vec<u8> = std::iter::once(0).chain((0..65).map(|_| 1)).collect();
        for bytes in [&[][..], &[0x80], &[0, 0x80, 0], &[0, 5, 0], &[0xff; 11], &too_many] {
            assert_eq!(Block::from_bytes(bytes), None, "{bytes:?}");
        }
    }

    #[test]
    fn a_block_takes_only_the_next_entry_of_its_stream() {
        let mut block = Block::default();
        assert!(!block.push(2, 5) && block.push(1, 5) && !block.push(2, 5) && !block.push(2, 4) && block.push(2, 6));
        for seq in 3..=BLOCK_LEN {
            assert!(block.push(seq, 10 + seq));
        }
        assert!(block.is_full() && !block.push(65, 1_000));
        assert!(block.next().push(65, 1_000));
        assert_eq!((Block::number_of(64), Block::number_of(65)), (0, 1));
    }
}
