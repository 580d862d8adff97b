//! Any root and any target: no panic, and a directory found beneath a root cannot leave it.
#![no_main]

use interlock_core::state::{CommitRoot, CommitTarget};

libfuzzer_sys::fuzz_target!(|text: &str| {
    let (root, path) = text.split_once('\u{1f}').unwrap_or(("/srv", text));
    let Ok(target) = CommitTarget::parse(path) else { return };
    assert!(path.starts_with('/') && !path.contains('\0'));
    assert!(path.to_ascii_lowercase().ends_with(".json"));
    assert!(!target.file_name().contains('/') && target.file_name() != ".json");
    let Ok(root) = CommitRoot::parse(root) else { return };
    if let Some(directory) = target.directory_beneath(root.path()) {
        assert!(!directory.starts_with('/') && !directory.is_empty());
        assert!(directory.split('/').all(|name| !name.is_empty() && name != ".."), "{directory}");
    }
});
