//! The ledger for outsiders: entries, and proofs about them. The bytes of an entry are those that were hashed.

use interlock_core::json::RawJson;

use crate::schema::{Node, answer, integer, list, map, of, one_of, only, only_json, text};
use crate::words::{AgentId, Digest, EntryKind};

wire! {
    /// A page of the ledger.
    answer EntryPage {
        /// Entries, oldest first.
        entries: Vec<EntryRow> = list(EntryRow::members()).max_items(1000),
        /// Where the next page begins; null on the last one.
        next_cursor: String | null = text().pattern("^[0-9]{1,16}$"),
    }

    // An entry, and where it stands.
    answer EntryRow {
        /// Where it stands in the ledger, from 0.
        index: u64,
        /// The hash of its bytes, as the tree has it (RFC 6962).
        leaf_hash: String = Digest,
        entry: RawJson = Entry,
    }

    /// A proof that needs nothing but the signed checkpoint to be checked.
    answer Proof [one_of([InclusionProof.into(), ConsistencyProof.into()])] {
        /// The form of the proof.
        format: u64 = only_json(1),
        kind: String,
        /// The entry.
        index?: u64,
        /// The size of the tree.
        size: u64,
        /// The hash of the entry's bytes.
        leaf_hash?: String = Digest,
        /// The root of the tree.
        root: String = Digest,
        /// The hashes that lead from the one to the other, as in RFC 6962.
        hashes: Vec<String> = list(Digest).max_items(128),
        /// The signed note with this size and root; absent if a size was asked for that is not the signed one.
        checkpoint?: String,
        /// The size it had.
        old_size?: u64,
        /// The root it had.
        old_root?: String = Digest,
    }
}

named! {
    /// An event as it is stored and hashed. Secrets are in it as hashes only.
    Entry = answer()
        .always("format", "The form of the entry.", integer().min(1))
        .always("rules", "The revision of the rules it was decided by.", integer().min(1))
        .always("kind", "", EntryKind)
        .maybe("agent", "The agent it is about; absent if it is about none, but about the service.", AgentId)
        .maybe(
            "agent_seq",
            "The how manieth entry of that agent, or of the service, it is: from 1, without gaps. Entries of the service \
             before format 6 do not say.",
            integer().min(1),
        )
        .maybe(
            "previous",
            "Before format 6 only: the index of that agent's entry before it; absent on its first.",
            of::<u64>(),
        )
        .always("at", "When, in milliseconds since 1970.", of::<u64>())
        .always(
            "body",
            "What happened: one member, named like `kind`. Its members are those of that event in this form of \
             entries.",
            map()
                .of_members(EntryKind, map().of_anything())
                .with("minProperties", Node::Raw("1".to_owned()))
                .with("maxProperties", Node::Raw("1".to_owned())),
        );

    /// An entry is in the ledger.
    InclusionProof = Proof::members()
        .titled("Inclusion")
        .always("kind", "", only("inclusion"))
        .without(&["old_size", "old_root"])
        .requiring(&["index", "leaf_hash"]);

    /// The ledger continues what it was.
    ConsistencyProof = Proof::members()
        .titled("Consistency")
        .always("kind", "", only("consistency"))
        .without(&["index", "leaf_hash"])
        .requiring(&["old_size", "old_root"]);
}
