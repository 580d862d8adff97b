//! What is counted, in the text form of Prometheus. Names are fixed by a golden file.

use std::fmt::Write;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use interlock_core::action::Decision;
use interlock_runtime::ledger::{Ledger, TicketQuery};

use crate::deliver::DeliveryMetrics;

use crate::telemetry::Telemetry;

/// Counters of the service.
#[derive(Debug, Default)]
pub(crate) struct HttpMetrics {
    pub(crate) requests: AtomicU64,
    pub(crate) connections: AtomicU64,
    pub(crate) limited: AtomicU64,
    pub(crate) unaccepted: AtomicU64,
    decisions: [AtomicU64; 5],
}

impl HttpMetrics {
    pub(crate) fn count(&self, decision: Decision) {
        let known = Decision::ALL.iter().zip(&self.decisions).find(|(known, _)| **known == decision);
        if let Some((_, counter)) = known {
            counter.fetch_add(1, Ordering::Relaxed);
        }
    }

    pub(crate) fn render(
        &self,
        ledger: &Ledger,
        telemetry: &Telemetry,
        deliveries: &[Arc<DeliveryMetrics>],
        waiting: usize,
    ) -> String {
        let mut text = String::new();
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let metrics = ledger.metrics();
        let (log_dropped, trace_dropped) = telemetry.dropped();
        #[rustfmt::skip]
        let rows = [
            ("interlock_http_requests_total", "counter", "Requests that reached a route.", read(&self.requests)),
            ("interlock_rate_limited_total", "counter", "Requests refused by a rate limit.", read(&self.limited)),
            ("interlock_http_connections", "gauge", "Open connections.", read(&self.connections)),
            ("interlock_http_unaccepted_total", "counter", "Connections that had to wait or were turned away: no room, or no descriptor.", read(&self.unaccepted)),
            ("interlock_work_waiting", "gauge", "Requests that wait for a turn to be worked on.", u64::try_from(waiting).unwrap_or(u64::MAX)),
            ("interlock_ledger_entries", "gauge", "Entries in the ledger.", ledger.size()),
            ("interlock_ledger_ready", "gauge", "1 if commands are accepted.", u64::from(ledger.is_ready())),
            ("interlock_ledger_waiting", "gauge", "Commands waiting or in a batch.", read(&metrics.waiting)),
            ("interlock_ledger_batches_total", "counter", "Batches committed.", read(&metrics.batches)),
            ("interlock_ledger_commands_total", "counter", "Commands in committed batches.", read(&metrics.commands)),
            ("interlock_ledger_batch_microseconds_total", "counter", "Time in batches, commit included.", read(&metrics.batch_micros)),
            ("interlock_ledger_commit_microseconds_total", "counter", "Time in commits, the disk included.", read(&metrics.commit_micros)),
            ("interlock_ledger_faults_total", "counter", "Batches that failed.", read(&metrics.faults)),
            ("interlock_ledger_refused_total", "counter", "Commands refused by a full queue.", read(&metrics.refused)),
            ("interlock_ledger_clock_behind_milliseconds", "gauge", "How far the clock is behind the last entry.", ledger.clock_behind()),
            ("interlock_log_dropped_total", "counter", "Lines of the log that were not written.", log_dropped),
            ("interlock_trace_dropped_total", "counter", "Spans that were not delivered.", trace_dropped),
        ];
        let mut rows = rows.to_vec();
        rows.push((
            "interlock_approvals_open",
            "gauge",
            "Tickets that wait for a person, at most 1000.",
            open_tickets(ledger),
        ));
        // Principals and checkpoints are delivered apart and counted together.
        for (position, row) in DeliveryMetrics::default().rows().into_iter().enumerate() {
            let values = deliveries.iter().filter_map(|metrics| metrics.rows().get(position).map(|row| row.3));
            rows.push((row.0, row.1, row.2, values.fold(0, u64::saturating_add)));
        }
        for (name, kind, help, value) in rows {
            // Writing to a string does not fail.
            let _ = writeln!(text, "# HELP {name} {help}\n# TYPE {name} {kind}\n{name} {value}");
        }
        let name = "interlock_decisions_total";
        let _ = writeln!(text, "# HELP {name} Rulings answered, by decision.\n# TYPE {name} counter");
        for (decision, counter) in Decision::ALL.iter().zip(&self.decisions) {
            let _ = writeln!(text, "{name}{{decision=\"{decision}\"}} {}", read(counter));
        }
        text
    }
}

fn open_tickets(ledger: &Ledger) -> u64 {
    const COUNTED_MAX: usize = 1_000;
    let query = TicketQuery { undecided: true, expires_after: Some(ledger.now()), ..TicketQuery::default() };
    let open = ledger.tickets(&query, COUNTED_MAX).unwrap_or_default();
    u64::try_from(open.len()).unwrap_or(u64::MAX)
}
