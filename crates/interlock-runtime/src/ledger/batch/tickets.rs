//! Tickets: what a person decides, who asks for trust, and what is reported as done. Whether it may be is decided by
//! `interlock_core::action::Ticket`; here it is read, recorded and put into rows.

use std::sync::Arc;

use interlock_core::Code;
use interlock_core::action::{
    Actor, Agent, Charge, Conversation, Executable, Stale, Ticket, TicketRefusal, TicketSubject, Verdict,
    check_trust_request, decide_execution,
};
use interlock_core::bundle::Payloads;
use interlock_core::ledger::{
    ApprovalResolved, Body, Entry, Executed, RULES, Ruled, TrustRequested, apply_executed, apply_resolved,
    apply_resolved_run, apply_trust_requested,
};

use super::{Answer, Batch, Chain, Execution, Trouble, TrustRequest, digest_of_text};
use crate::ledger::store::StoreFault;

impl Batch<'_> {
    pub(super) fn resolve(
        &mut self,
        approval_id: &str,
        verdict: Verdict,
        by: Actor,
        reason: Option<String>,
    ) -> Result<Answer, Trouble> {
        let Some(mut ticket) = self.ticket(approval_id)? else { return Ok(Answer::Refused(Code::ApprovalUnknown)) };
        let id = ticket.agent.clone();
        let Some(agent) = self.agent(&id)? else { return Err(Trouble::Internal) };
        let now = self.state.clock.max(agent.last_at);
        let bundle = &self.state.bundle;
        if let Err(refusal) = ticket.check_decidable(verdict, &agent, bundle.digest(), now) {
            return Ok(refused(refusal));
        }
        let charge = match (&ticket.subject, verdict) {
            (TicketSubject::Action(action), Verdict::Approved) => action.charge,
            (TicketSubject::Action(_) | TicketSubject::Trust(_) | TicketSubject::Transition(_), _) => Charge::default(),
        };
        let expires_at = match verdict {
            Verdict::Approved => now.saturating_add(bundle.ticket_expiry_ms()),
            Verdict::Denied => ticket.expires_at,
        };
        let (approval_id, opened) = (ticket.approval_id.clone(), ticket.opened);
        let resolved = ApprovalResolved { approval_id, opened, verdict, by, reason, expires_at, charge };
        let key = match &ticket.subject {
            TicketSubject::Action(action) if action.call.is_none() => Some((id.clone(), action.conversation.clone())),
            TicketSubject::Action(_) | TicketSubject::Trust(_) | TicketSubject::Transition(_) => None,
        };
        let mut row = match &key {
            Some(key) => self.conversation(key)?,
            None => Conversation::default(),
        };
        let mut run = match &ticket.subject {
            TicketSubject::Transition(_) => Some(self.run_row(&id)?),
            TicketSubject::Action(action) if action.call.is_some() => Some(self.run_row(&id)?),
            TicketSubject::Action(_) | TicketSubject::Trust(_) => None,
        };
        if let Some(run) = &mut run {
            let workflow = self.workflow_of(run)?;
            if let Err(code) = apply_resolved_run(run, workflow.as_deref(), &ticket, &resolved) {
                return Ok(if code == Code::ApprovalStale { Answer::Stale(Stale::Run) } else { Answer::Refused(code) });
            }
        }
        let (mut agent, index) = (Agent::clone(&agent), self.next_index());
        let mut chain = Chain::new(&agent);
        let risen = apply_resolved(&mut agent, &mut row, &mut ticket, &resolved, now, index);
        let first = chain.entry(&id, now, Body::ApprovalResolved(Box::new(resolved)));
        let events = self.events(&agent, &first, now, index);
        let (mut entries, mut outbox) = (vec![first], events);
        if let Some(changed) = risen {
            self.follow_trust(&mut agent, &mut chain, changed, now, &mut entries, &mut outbox);
        }
        let answer = self.append_all(entries)?;
        self.agents.insert(id.clone(), (Some(Arc::new(agent)), true));
        if let Some(key) = key.filter(|_| verdict == Verdict::Approved) {
            self.conversations.insert(key, (row, true));
        }
        self.forgotten.push((id.clone(), ticket.opened));
        self.runs.extend(run.map(|run| (id, run)));
        self.tickets.insert(ticket.approval_id.clone(), ticket);
        self.outbox.extend(outbox);
        Ok(answer)
    }

    pub(super) fn request_trust(&mut self, request: TrustRequest) -> Result<Answer, Trouble> {
        let TrustRequest { agent: id, token, by, to_level, from_level, justification, merits } = request;
        let Some(agent) = self.agent(&id)? else { return Ok(Answer::Refused(Code::AgentUnknown)) };
        if token.is_some_and(|token| !agent.has_token(token)) || (token.is_none() && by.is_none()) {
            return Ok(Answer::Refused(Code::AgentToken));
        }
        let now = self.state.clock.max(agent.last_at);
        let bundle = Arc::clone(&self.state.bundle);
        if let Err(code) = check_trust_request(&bundle, &agent, to_level, from_level, now) {
            return Ok(Answer::Refused(code));
        }
        let (index, expires_at) = (self.next_index(), now.saturating_add(bundle.ticket_expiry_ms()));
        let until = match bundle.payloads() {
            Payloads::None => None,
            Payloads::Pending => Some(Some(expires_at)),
            Payloads::All => Some(None),
        };
        let kept = justification.zip(until).map(|(text, until)| self.salted(&id, index, text, until)).transpose()?;
        let requested = TrustRequested {
            approval_id: self.approval_id()?,
            expires_at,
            bundle: bundle.digest(),
            from_level: agent.trust,
            to_level,
            merits,
            text: kept.as_ref().map(digest_of_text),
            by,
        };
        let mut agent = Agent::clone(&agent);
        let mut chain = Chain::new(&agent);
        let ticket = apply_trust_requested(&mut agent, &requested, RULES, now, index);
        let entry = chain.entry(&id, now, Body::TrustRequested(Box::new(requested)));
        let outbox = self.events(&agent, &entry, now, index);
        let answer = self.append(entry)?;
        self.agents.insert(id, (Some(Arc::new(agent)), true));
        self.tickets.insert(ticket.approval_id.clone(), ticket);
        self.texts.extend(kept);
        self.outbox.extend(outbox);
        Ok(answer)
    }

    pub(super) fn execute(&mut self, execution: Execution) -> Result<Answer, Trouble> {
        let Execution { agent: id, token, decision_id, success, result_hash, usage } = execution;
        let Some(agent) = self.agent(&id)? else { return Ok(Answer::Refused(Code::AgentUnknown)) };
        if !agent.has_token(token) {
            return Ok(Answer::Refused(Code::AgentToken));
        }
        let found = self.find_ruling(&id, &decision_id)?;
        let reported = match &found {
            Some((decision, _)) => self.executions.contains_key(decision) || self.txn.execution(*decision)?.is_some(),
            None => false,
        };
        let now = self.state.clock.max(agent.last_at);
        let ticket = match found.as_ref().and_then(|(_, ruled)| ruled.ticket.as_ref()) {
            // Without its row nobody can tell whether it was approved.
            Some(opened) => Some(self.ticket(&opened.approval_id)?.ok_or(Trouble::Internal)?),
            None => None,
        };
        let executable = found.as_ref().map(|(_, ruled)| Executable::of(ruled));
        let bundle = self.state.bundle.digest();
        let ruling = match decide_execution(&agent, executable, ticket.as_ref(), reported, bundle, now) {
            Ok(ruling) => ruling,
            Err(refusal) => return Ok(refused(refusal)),
        };
        let (decision, _) = found.ok_or(Trouble::Internal)?;
        let mut ticket = ticket.filter(|_| ruling.spends);
        let executed = Executed {
            decision_id,
            decision,
            approval_id: ticket.as_ref().map(|ticket| ticket.approval_id.clone()),
            success,
            result_hash,
            usage,
            charge: ruling.charged.raised_by(usage),
        };
        let (mut agent, index) = (Agent::clone(&agent), self.next_index());
        let mut chain = Chain::new(&agent);
        apply_executed(&mut agent, ticket.as_mut(), &executed, now, index);
        let entry = chain.entry(&id, now, Body::Executed(Box::new(executed)));
        let answer = self.append(entry)?;
        self.agents.insert(id, (Some(Arc::new(agent)), true));
        self.executions.insert(decision, index);
        self.tickets.extend(ticket.map(|ticket| (ticket.approval_id.clone(), ticket)));
        Ok(answer)
    }

    /// A ruling of an agent by its id.
    fn find_ruling(&mut self, agent: &str, decision_id: &str) -> Result<Option<(u64, Ruled)>, Trouble> {
        let Some(index) = self.state.ids.open(decision_id).filter(|index| *index < self.next_index()) else {
            return Ok(None);
        };
        let entry = match self.entry_bytes(index)? {
            Some(bytes) => Entry::from_bytes(&bytes).map_err(|error| StoreFault(error.to_string()))?,
            None => return Ok(None),
        };
        let own = entry.agent.as_deref() == Some(agent);
        let ruled = entry.body.into_ruled().filter(|ruled| own && ruled.decision_id == decision_id);
        Ok(ruled.map(|ruled| (index, ruled)))
    }

    pub(super) fn ticket(&mut self, id: &str) -> Result<Option<Ticket>, StoreFault> {
        match self.tickets.get(id) {
            Some(ticket) => Ok(Some(ticket.clone())),
            None => self.txn.ticket(id),
        }
    }
}

fn refused(refusal: TicketRefusal) -> Answer {
    match refusal {
        TicketRefusal::Code(code) => Answer::Refused(code),
        TicketRefusal::Stale(stale) => Answer::Stale(stale),
        TicketRefusal::Budget(breach) => Answer::BudgetSpent(breach),
    }
}
