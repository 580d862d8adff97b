//! What operators do: register agents, change them, erase their texts, make and revoke keys. Their own keys are looked at
//! again here, in the transaction.

use std::sync::Arc;

use interlock_core::action::{Actor, Agent, Profile, Trust};
use interlock_core::ledger::{
    AgentRegistered, Body, Entry, KeyCreated, KeyRevoked, OperatorKey, Role, TextsErased, apply_registered,
    apply_to_agent,
};
use interlock_core::{Code, Digest};

use super::{Answer, Batch, Chain, Trouble};
use crate::ledger::store::StoreFault;

impl Batch<'_> {
    /// Whether an operator's key still counts: it may have been revoked since the edge looked.
    pub(super) fn may(&mut self, by: &Actor, roles: &[Role]) -> Result<bool, StoreFault> {
        let Some(id) = &by.key_id else { return Ok(true) };
        Ok(self.operator_key(id)?.is_some_and(|key| !key.revoked && roles.contains(&key.role)))
    }

    pub(super) fn register(&mut self, mut profile: Profile, token: Digest, trust: Trust) -> Result<Answer, Trouble> {
        profile.created_at = self.state.clock;
        let id = profile.agent_id.clone();
        if self.agent(&id)?.is_some() {
            return Err(Trouble::Internal);
        }
        let registered = AgentRegistered { profile, token, trust_level: trust };
        let agent = apply_registered(&registered, self.next_index());
        let entry = Entry::new(Some((&id, 1, None)), self.state.clock, Body::Registered(Box::new(registered)));
        let answer = self.append(entry)?;
        self.tokens.push((token, id.clone()));
        self.agents.insert(id, (Some(Arc::new(agent)), true));
        Ok(answer)
    }

    pub(super) fn change(&mut self, id: &str, change: Body) -> Result<Answer, Trouble> {
        let Some(agent) = self.agent(id)? else { return Ok(Answer::Refused(Code::AgentUnknown)) };
        let now = self.state.clock.max(agent.last_at);
        let (mut agent, index) = (Agent::clone(&agent), self.next_index());
        let mut chain = Chain::new(&agent);
        apply_to_agent(&mut agent, &change, now, index);
        let entry = chain.entry(id, now, change);
        let outbox = self.events(&agent, &entry, now, index);
        let answer = self.append(entry)?;
        if let Answer::Recorded(recorded) = &answer
            && let Body::TokenRotated(rotated) = &recorded.entry.body
        {
            self.tokens.push((rotated.token, id.to_owned()));
        }
        self.agents.insert(id.to_owned(), (Some(Arc::new(agent)), true));
        self.outbox.extend(outbox);
        Ok(answer)
    }

    pub(super) fn erase_texts(&mut self, id: &str, by: Actor, reason: Option<String>) -> Result<Answer, Trouble> {
        let in_batch = self.texts.iter().filter(|text| text.agent == id).count();
        let stored = if self.erased.iter().any(|erased| erased == id) { 0 } else { self.txn.texts_count(id)? };
        let texts = stored.saturating_add(u64::try_from(in_batch).unwrap_or(0));
        let answer = self.change(id, Body::TextsErased(TextsErased { texts, by, reason }))?;
        if matches!(answer, Answer::Recorded(_)) {
            self.texts.retain(|text| text.agent != id);
            for ((agent, _), kept) in &mut self.kept {
                if agent == id {
                    kept.corrected = None;
                }
            }
            self.erased.push(id.to_owned());
        }
        Ok(answer)
    }

    pub(super) fn create_key(&mut self, mut key: OperatorKey) -> Result<Answer, Trouble> {
        key.created_at = self.state.clock;
        if self.operator_key(&key.key_id)?.is_some() {
            return Err(Trouble::Internal);
        }
        let body = Body::KeyCreated(KeyCreated { key: key.clone() });
        let answer = self.append(Entry::new(None, self.state.clock, body))?;
        self.keys.insert(key.key_id.clone(), key);
        Ok(answer)
    }

    pub(super) fn revoke_key(&mut self, revoked: KeyRevoked) -> Result<Answer, Trouble> {
        let Some(mut key) = self.operator_key(&revoked.key_id)?.filter(|key| !key.revoked) else {
            return Ok(Answer::Refused(Code::OperatorKeyUnknown));
        };
        let answer = self.append(Entry::new(None, self.state.clock, Body::KeyRevoked(revoked)))?;
        key.revoked = true;
        self.keys.insert(key.key_id.clone(), key);
        Ok(answer)
    }

    fn operator_key(&mut self, id: &str) -> Result<Option<OperatorKey>, StoreFault> {
        match self.keys.get(id) {
            Some(key) => Ok(Some(key.clone())),
            None => self.txn.key(id),
        }
    }
}
