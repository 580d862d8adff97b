//! Tickets: what a person decides, who asks for trust, and what is reported as done. Whether it may be is decided by
//! `interlock_core::action::Ticket`; here it is read, recorded and put into rows.

use std::sync::Arc;

use interlock_core::Code;
use interlock_core::action::{
    Actor, Charge, Executable, Stale, Ticket, TicketRefusal, TicketSubject, Verdict, check_trust_request,
    decide_execution,
};
use interlock_core::bundle::Payloads;
use interlock_core::ledger::{
    ApprovalResolved, Body, Entry, EntryName, EntryRef, Executed, Ruled, TrustRequested, is_of_run, resolve_for_run,
};

use super::{Answer, Batch, Execution, Read, Trouble, TrustRequest, digest_of_text};
use crate::ledger::store::StoreFault;

impl Batch<'_> {
    pub(super) fn resolve(
        &mut self,
        approval_id: &str,
        verdict: Verdict,
        by: Actor,
        reason: Option<String>,
    ) -> Result<Answer, Trouble> {
        let Some(ticket) = self.ticket(approval_id)? else { return Ok(Answer::Refused(Code::ApprovalUnknown)) };
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
        let (approval_id, opened) = (ticket.approval_id.clone(), EntryName::of_agent(&id, ticket.opened));
        let opened = EntryRef::Named(opened);
        let resolved = ApprovalResolved { approval_id, opened, verdict, by, reason, expires_at, charge };
        let mut read = Read::agent(agent);
        if is_of_run(&ticket) {
            let run = self.run_row(&id)?;
            let workflow = self.workflow_of(&id, &run)?;
            // Whether it can still be made is decided by making it, on a copy.
            if let Err(code) = resolve_for_run(&mut run.clone(), workflow.as_deref(), &ticket, &resolved) {
                return Ok(if code == Code::ApprovalStale { Answer::Stale(Stale::Run) } else { Answer::Refused(code) });
            }
            read.run = Some(Box::new(run));
        }
        read.ticket = Some(Box::new(ticket));
        self.record(read, now, Body::ApprovalResolved(Box::new(resolved)))
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
        let (seq, expires_at) = (agent.entries.saturating_add(1), now.saturating_add(bundle.ticket_expiry_ms()));
        let until = match bundle.payloads() {
            Payloads::None => None,
            Payloads::Pending => Some(Some(expires_at)),
            Payloads::All => Some(None),
        };
        let kept = justification.zip(until).map(|(text, until)| self.salted(&id, seq, text, until)).transpose()?;
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
        let answer = self.record(Read::agent(agent), now, Body::TrustRequested(Box::new(requested)))?;
        self.texts.extend(kept);
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
            Some((decision, _)) => {
                self.executions.contains_key(&(id.clone(), *decision)) || self.txn.execution(&id, *decision)?.is_some()
            }
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
        let ticket = ticket.filter(|_| ruling.spends);
        let executed = Executed {
            decision_id,
            decision: EntryRef::Named(EntryName::of_agent(&id, decision)),
            approval_id: ticket.as_ref().map(|ticket| ticket.approval_id.clone()),
            success,
            result_hash,
            usage,
            charge: ruling.charged.raised_by(usage),
        };
        let read = Read { agent: Some(agent), ticket: ticket.map(Box::new), ..Read::default() };
        self.record(read, now, Body::Executed(Box::new(executed)))
    }

    /// A ruling of an agent by its id, with the number of its entry.
    fn find_ruling(&mut self, agent: &str, decision_id: &str) -> Result<Option<(u64, Ruled)>, Trouble> {
        let Some((_, seq)) = self.state.ids.open(decision_id) else { return Ok(None) };
        let is_it = |ruled: &Ruled| ruled.decision_id == decision_id;
        let named = self.entry_of(Some(agent), seq)?.and_then(|found| found.entry.body.into_ruled()).filter(is_it);
        if let Some(ruled) = named {
            return Ok(Some((seq, ruled)));
        }
        // An id from before the sixth format hides a place, which was sealed long ago.
        let place = self.state.ids.open_place(decision_id).filter(|place| *place < self.first_index);
        let Some(bytes) = place.map_or(Ok(None), |place| self.txn.entry(place))? else { return Ok(None) };
        let entry = Entry::from_bytes(&bytes).map_err(StoreFault::from)?;
        let seq = entry.agent_seq.filter(|_| entry.agent.as_deref() == Some(agent));
        Ok(seq.zip(entry.body.into_ruled().filter(is_it)))
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
