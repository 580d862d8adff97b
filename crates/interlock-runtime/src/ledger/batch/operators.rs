//! What operators do: register agents, change them, erase their texts, make and revoke keys. Their own keys are looked at
//! again here, in the transaction.

use interlock_core::action::{Actor, Profile, Trust};
use interlock_core::ledger::{AgentRegistered, Body, KeyCreated, KeyRevoked, OperatorKey, Role, TextsErased};
use interlock_core::{Code, Digest};

use super::{Answer, Batch, Read, Trouble};
use crate::ledger::store::StoreFault;

impl Batch<'_> {
    /// Whether an operator's key still counts: it may have been revoked since the edge looked.
    pub(super) fn may(&mut self, by: &Actor, roles: &[Role]) -> Result<bool, StoreFault> {
        let Some(id) = &by.key_id else { return Ok(true) };
        Ok(self.operator_key(id)?.is_some_and(|key| !key.revoked && roles.contains(&key.role)))
    }

    pub(super) fn register(&mut self, mut profile: Profile, token: Digest, trust: Trust) -> Result<Answer, Trouble> {
        profile.created_at = self.state.clock;
        let registered = AgentRegistered { profile, token, trust_level: trust };
        self.record_alone(Body::Registered(Box::new(registered)))
    }

    pub(super) fn change(&mut self, id: &str, change: Body) -> Result<Answer, Trouble> {
        let Some(agent) = self.agent(id)? else { return Ok(Answer::Refused(Code::AgentUnknown)) };
        let now = self.state.clock.max(agent.last_at);
        self.record(Read::agent(agent), now, change)
    }

    pub(super) fn erase_texts(&mut self, id: &str, by: Actor, reason: Option<String>) -> Result<Answer, Trouble> {
        let in_batch = self.texts.iter().filter(|text| text.agent == id).count();
        let stored = if self.erased.iter().any(|erased| erased == id) { 0 } else { self.txn.texts_count(id)? };
        let texts = stored.saturating_add(u64::try_from(in_batch).unwrap_or(0));
        self.change(id, Body::TextsErased(TextsErased { texts, by, reason }))
    }

    /// The texts of an agent are gone, with those of this batch.
    pub(super) fn forget_texts(&mut self, id: &str) {
        self.texts.retain(|text| text.agent != id);
        for ((agent, _), kept) in &mut self.kept {
            if agent == id {
                kept.corrected = None;
            }
        }
        self.erased.push(id.to_owned());
    }

    pub(super) fn create_key(&mut self, mut key: OperatorKey) -> Result<Answer, Trouble> {
        key.created_at = self.state.clock;
        self.record_alone(Body::KeyCreated(KeyCreated { key }))
    }

    pub(super) fn revoke_key(&mut self, revoked: KeyRevoked) -> Result<Answer, Trouble> {
        if self.operator_key(&revoked.key_id)?.is_none_or(|key| key.revoked) {
            return Ok(Answer::Refused(Code::OperatorKeyUnknown));
        }
        self.record_alone(Body::KeyRevoked(revoked))
    }

    pub(super) fn operator_key(&mut self, id: &str) -> Result<Option<OperatorKey>, StoreFault> {
        match self.keys.get(id) {
            Some(key) => Ok(Some(key.clone())),
            None => self.txn.key(id),
        }
    }
}
