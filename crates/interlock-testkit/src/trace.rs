//! What a trace of system calls says about answers and syncs.

use std::collections::BTreeMap;

/// What `strace` is asked to note for [`answers_come_after_syncs`].
pub const SYNC_OPTIONS: [&str; 4] =
    ["-s", "256", "-e", "trace=openat,pwrite64,write,writev,sendto,sendmsg,fsync,fdatasync"];

/// Whether every answer in a trace comes after a sync that ended after the last write to the log: how many did, or the
/// first that did not.
pub fn answers_come_after_syncs(trace: &str) -> Result<usize, String> {
    // Readers open the log as well as the writer does, so it has several descriptors; each write needs a sync of its own.
    let mut unsynced: BTreeMap<&str, bool> = BTreeMap::new();
    // What a thread is syncing, until it resumes. A write that comes meanwhile is not covered by it.
    let mut syncing: BTreeMap<&str, &str> = BTreeMap::new();
    let mut answers = 0;
    for line in trace.lines() {
        let (thread, call) = line.split_once(' ').ok_or("a line without a thread")?;
        let call = call.trim_start();
        let descriptor = |name: &str| call.strip_prefix(name)?.strip_prefix('(')?.split([',', ')', ' ']).next();
        if call.starts_with("openat") && call.contains("ledger.db-wal") {
            let opened = call.rsplit("= ").next().unwrap_or("").trim();
            unsynced.insert(opened, false);
        } else if let Some(is_unsynced) = descriptor("pwrite64").and_then(|log| unsynced.get_mut(log)) {
            *is_unsynced = true;
            syncing.retain(|_, log| Some(*log) != descriptor("pwrite64"));
        } else if let Some(log) = descriptor("fsync").or_else(|| descriptor("fdatasync")) {
            if !unsynced.contains_key(log) {
                continue;
            } else if call.contains("= 0") {
                unsynced.insert(log, false);
            } else if call.contains("unfinished") {
                syncing.insert(thread, log);
            }
        } else if call.contains("sync resumed") {
            if let Some(log) = syncing.remove(thread).filter(|_| call.contains("= 0")) {
                unsynced.insert(log, false);
            }
        } else if call.contains("HTTP/1.1 200 OK") && call.contains("decision") {
            answers += 1;
            if unsynced.values().any(|is_unsynced| *is_unsynced) {
                return Err(format!("answered before it was on the disk: {line:.200}"));
            }
        }
    }
    Ok(answers)
}
