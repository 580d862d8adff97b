//! The revisions of the protocol that are spoken here, oldest first.
//!
//! Those up to 2025-11-25 are opened by `initialize` (the legacy era); since 2026-07-28 every request says itself which
//! revision it is of (the modern era).

use interlock_core::json::Json;

/// A revision of the protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Revision {
    V2024_11_05,
    V2025_03_26,
    V2025_06_18,
    V2025_11_25,
    V2026_07_28,
}

impl Revision {
    /// Newest first: the order in which clients are told.
    const ALL: [Revision; 5] = [
        Revision::V2026_07_28,
        Revision::V2025_11_25,
        Revision::V2025_06_18,
        Revision::V2025_03_26,
        Revision::V2024_11_05,
    ];

    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Revision::V2024_11_05 => "2024-11-05",
            Revision::V2025_03_26 => "2025-03-26",
            Revision::V2025_06_18 => "2025-06-18",
            Revision::V2025_11_25 => "2025-11-25",
            Revision::V2026_07_28 => "2026-07-28",
        }
    }

    /// What an `initialize` that asks for `wanted` is answered with. A client that does not know the answer leaves.
    pub(crate) fn negotiate(wanted: &str) -> Revision {
        let known = Revision::ALL.into_iter().filter(|revision| !revision.is_modern());
        known.into_iter().find(|revision| revision.as_str() == wanted).unwrap_or(Revision::V2025_11_25)
    }

    /// Every revision, for a client that asked for another one. The legacy ones are named too, because a client that
    /// finds none of its modern ones here can still open with `initialize`.
    pub(crate) fn supported() -> Json {
        Json::Array(Revision::ALL.into_iter().map(|revision| Json::from(revision.as_str())).collect())
    }

    pub(crate) fn is_modern(self) -> bool {
        self >= Revision::V2026_07_28
    }

    /// Whether a line may hold several messages. Only one revision ever said so.
    pub(crate) fn has_batches(self) -> bool {
        self == Revision::V2025_03_26
    }

    pub(crate) fn has_annotations(self) -> bool {
        self >= Revision::V2025_03_26
    }

    /// Whether definitions have a `title`, and results a `structuredContent`.
    pub(crate) fn has_structure(self) -> bool {
        self >= Revision::V2025_06_18
    }
}
