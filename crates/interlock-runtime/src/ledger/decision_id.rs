//! Ids of decisions: 64 random bits, then the entry's name hidden by them and a secret: a mark of the agent and the number
//! among its entries.
//!
//! A decision can be found by its id without an index over all of them, which would cost every approval a random page.
//! Who does not know the secret learns nothing of the ledger from an id. Entries before the sixth format have ids that
//! hide the place in the tree; those are still found.

use interlock_core::Digest;
use interlock_core::ledger::NAMES_SINCE;

use super::store::FoundEntry;
use crate::clock::push_hex;

const PREFIX: &str = "dec_";
/// How tickets for runners begin.
const TICKET: &str = "tkt_";
const ID_BYTES: usize = 36;
/// The hexadecimal digits of a SHA-256.
const MARK_BYTES: usize = 64;
/// An id has so many bits for the number of an entry, and the rest of a word for its agent's mark.
const SEQ_BITS: u32 = 40;
const SEQ_MAX: u64 = (1 << SEQ_BITS) - 1;

/// A few bits of an agent's id, by which few agents are alike.
pub(super) fn mark_of(agent: &str) -> u32 {
    let [first, second, third, ..] = Digest::of(&[agent]).bytes();
    u32::from_be_bytes([0, first, second, third])
}

/// Makes ids and reads them.
#[derive(Debug, Clone, Copy)]
pub struct DecisionIds(Digest);

impl DecisionIds {
    /// Ids under a secret.
    pub fn new(secret: Digest) -> DecisionIds {
        DecisionIds(secret)
    }

    /// The id of an agent's entry with this number; `None` if the number is too high for one.
    pub(super) fn seal(&self, agent: &str, seq: u64, random: u64) -> Option<String> {
        let name = (u64::from(mark_of(agent)) << SEQ_BITS) | Some(seq).filter(|seq| *seq <= SEQ_MAX)?;
        let mut id = String::with_capacity(ID_BYTES);
        id.push_str(PREFIX);
        push_hex(&mut id, &random.to_be_bytes());
        push_hex(&mut id, &(name ^ self.mask(random)).to_be_bytes());
        Some(id)
    }

    /// The agent's mark and the number of the entry that an id hides. A made-up id yields made-up ones: the entry must
    /// bear the id.
    pub(super) fn open(&self, id: &str) -> Option<(u32, u64)> {
        let name = self.open_place(id)?;
        Some((u32::try_from(name >> SEQ_BITS).ok()?, name & SEQ_MAX))
    }

    /// The place in the tree that an id hides, if it is of an entry before the sixth format.
    pub(super) fn open_place(&self, id: &str) -> Option<u64> {
        let digits = id.strip_prefix(PREFIX).filter(|digits| digits.len() == 32)?;
        let (random, hidden) = digits.split_at_checked(16)?;
        let number = |digits: &str| {
            let plain = digits.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
            u64::from_str_radix(digits, 16).ok().filter(|_| plain)
        };
        Some(number(hidden)? ^ self.mask(number(random)?))
    }

    /// The same for numbers of an agent's entries: what hides one leads nowhere with another agent.
    pub(super) fn of_agent(&self, agent: &str) -> DecisionIds {
        DecisionIds(Digest::of(&[&self.0.to_string(), "\n", agent]))
    }

    /// What an event about an agent's entry is known by.
    pub(super) fn event_id(&self, agent: &str, seq: u64) -> String {
        format!("evt_{}", self.of_agent(agent).hide(seq))
    }

    /// What an event about an entry before the sixth format is known by.
    pub(super) fn event_id_at(&self, place: u64) -> String {
        format!("evt_{}", self.hide(place))
    }

    /// A number for somebody who may go on from it and may not know it: the same text every time.
    pub(super) fn hide(&self, number: u64) -> String {
        let random = self.mask(!number);
        format!("{random:016x}{:016x}", number ^ self.mask(random))
    }

    /// The number behind such a text; `None` if it was made up.
    pub(super) fn find(&self, hidden: &str) -> Option<u64> {
        let number = self.open_place(&format!("{PREFIX}{hidden}"))?;
        (self.hide(number) == hidden).then_some(number)
    }

    /// A text that is kept for an agent's entry, with what shows that nobody changed it since. No entry holds its digest.
    pub(super) fn seal_text(&self, agent: &str, seq: u64, text: &str) -> String {
        format!("{}{text}", self.mark(agent, seq, text))
    }

    /// The text that was sealed for this entry; `None` if it is another one. For entries before the sixth format it was
    /// sealed with their place in the tree.
    pub(super) fn open_text<'t>(&self, found: &FoundEntry, sealed: &'t str) -> Option<&'t str> {
        let FoundEntry { place, entry, .. } = found;
        let number = if entry.format < NAMES_SINCE { *place } else { entry.agent_seq? };
        let (mark, text) = sealed.split_at_checked(MARK_BYTES)?;
        (mark == self.mark(entry.agent.as_deref()?, number, text)).then_some(text)
    }

    /// The ticket with which a runner may start what a decision let run: nobody without the secret can make one.
    pub(super) fn seal_ticket(&self, decision_id: &str) -> Option<String> {
        let digits = decision_id.strip_prefix(PREFIX)?;
        Some(format!("{TICKET}{digits}{}", self.mark(TICKET, 0, decision_id)))
    }

    /// The decision that a ticket is for; `None` if it was made up.
    pub(super) fn open_ticket(&self, ticket: &str) -> Option<String> {
        let (digits, _) = ticket.strip_prefix(TICKET)?.split_at_checked(ID_BYTES.saturating_sub(PREFIX.len()))?;
        let decision_id = format!("{PREFIX}{digits}");
        let made = self.seal_ticket(&decision_id)?;
        // Compared by their digests, so that the time it takes tells nothing.
        Digest::of(&[&made]).same_as(Digest::of(&[ticket])).then_some(decision_id)
    }

    fn mark(&self, agent: &str, number: u64, text: &str) -> String {
        let mark = self.0.mark(&[agent, "\n", &number.to_string(), "\n", text]);
        let mut digits = String::with_capacity(MARK_BYTES);
        push_hex(&mut digits, &mark.bytes());
        digits
    }

    fn mask(&self, random: u64) -> u64 {
        let mut bytes = [0; 40];
        let (secret, nonce) = bytes.split_at_mut(32);
        secret.copy_from_slice(&self.0.bytes());
        nonce.copy_from_slice(&random.to_be_bytes());
        Digest::of_bytes(&bytes).bytes().first_chunk().map_or(0, |chunk| u64::from_be_bytes(*chunk))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ticket_leads_to_its_decision_and_cannot_be_made_up() {
        let ids = DecisionIds::new(Digest::of(&["a"]));
        let decision = ids.seal("agent_a", 7, 8).expect("an id");
        let ticket = ids.seal_ticket(&decision).expect("a ticket");
        assert_eq!(ids.open_ticket(&ticket).as_deref(), Some(decision.as_str()));
        assert_eq!(DecisionIds::new(Digest::of(&["b"])).open_ticket(&ticket), None);
        for at in 0..ticket.len() {
            let mut forged = ticket.clone().into_bytes();
            forged[at] ^= 1;
            assert_eq!(ids.open_ticket(&String::from_utf8_lossy(&forged)), None, "byte {at}");
        }
        assert_eq!(ids.open_ticket("tkt_"), None);
    }

    #[test]
    fn an_id_leads_back_to_its_entry_with_its_secret_only() {
        let ids = DecisionIds::new(Digest::of(&["a"]));
        for seq in [0, 1, 77, SEQ_MAX] {
            let id = ids.seal("agent_a", seq, seq.wrapping_mul(0x9e37_79b9_7f4a_7c15)).unwrap_or_default();
            assert_eq!(id.len(), 36);
            assert_eq!(ids.open(&id), Some((mark_of("agent_a"), seq)));
            assert_ne!(DecisionIds::new(Digest::of(&["b"])).open(&id), Some((mark_of("agent_a"), seq)));
        }
        assert_eq!(ids.seal("agent_a", SEQ_MAX + 1, 0), None);
        let (cursor, other) = (ids.of_agent("agent_a").hide(7), ids.of_agent("agent_b"));
        assert_eq!((ids.of_agent("agent_a").find(&cursor), other.find(&cursor)), (Some(7), None));
        for id in
            ["", "dec_", "dec_zz", "appr_00000000000000000000000000000000", "dec_+000000000000000000000000000000f"]
        {
            assert_eq!(ids.open(id), None, "{id}");
        }
    }
}
