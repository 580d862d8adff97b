//! Whether many texts are all different, in linear time whatever they are.

use std::borrow::Cow;
use std::collections::HashSet;
use std::hash::{BuildHasher, DefaultHasher, Hasher};

use crate::digest::Running;

/// Up to this many texts are compared with each other.
const PAIRWISE_MAX: usize = 8;

/// Whether no two of the texts are equal. `texts` is asked for them more than once.
pub(super) fn all_distinct<'t, I: Iterator<Item = Cow<'t, str>>>(count: usize, texts: impl Fn() -> I) -> bool {
    if count <= PAIRWISE_MAX {
        return texts().enumerate().all(|(position, text)| texts().take(position).all(|earlier| earlier != text));
    }
    let mut digest = Running::new();
    for text in texts() {
        digest.update(&text);
        digest.update("\0");
    }
    let seed = Seed(digest.finish().bytes());
    let mut seen = HashSet::with_capacity_and_hasher(count, seed);
    texts().all(|text| seen.insert(text))
}

/// Whether a text comes after another, shorter ones first: as counters and time stamps do. Texts that rise are distinct.
pub(super) fn is_after(previous: &str, text: &str) -> bool {
    (previous.len(), previous.as_bytes()) < (text.len(), text.as_bytes())
}

/// Hashes under a seed taken from all the texts. Whoever looks for texts that collide changes the seed by choosing
/// them, so collisions cannot be prepared; and no chance is needed, so every machine takes the same steps.
#[derive(Clone)]
struct Seed([u8; 32]);

impl BuildHasher for Seed {
    type Hasher = DefaultHasher;

    fn build_hasher(&self) -> DefaultHasher {
        let mut hasher = DefaultHasher::new();
        hasher.write(self.0.get(..16).unwrap_or(&self.0));
        hasher
    }
}
