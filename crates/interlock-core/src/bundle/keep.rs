//! `[keep]`: what is kept of a project before a call changes it, and for how long.

use serde::{Deserialize, Serialize};

use crate::cause::Cause;
use crate::places::REGENERABLE;

const MIB: u64 = 1 << 20;
const DAY_MS: u64 = 86_400_000;
/// What holds unless the bundle says otherwise, and at most.
const SIZE_MIB: (u64, u64) = (4_096, 1 << 24);
const AGE_DAYS: (u64, u64) = (14, 3_650);
const FILE_MIB: (u64, u64) = (1_024, 1 << 20);
const FILES: (u64, u64) = (500_000, 10_000_000);
/// The most names that can be made again, beside the known ones.
const NAMES_MAX: usize = 256;

/// `[keep]`, as it is written.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct KeepSettings {
    /// Whether anything is kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub enabled: Option<bool>,
    /// What the kept states of one project may take, in MiB.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub size_mib_max: Option<u64>,
    /// How long they stay, in days.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub age_days_max: Option<u64>,
    /// The largest file that is kept, in MiB.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file_mib_max: Option<u64>,
    /// The most files, links and directories of a project.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub files_max: Option<u64>,
    /// Whether places of secrets are kept too.
    #[serde(default, skip_serializing_if = "core::ops::Not::not")]
    pub secrets: bool,
    /// Names of directories that can be made again, beside the known ones.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub regenerable: Vec<String>,
}

impl KeepSettings {
    pub(super) fn check(&self) -> Result<(), Cause> {
        let within = |what: &str, value: Option<u64>, (_, max): (u64, u64)| match value {
            Some(value) if value == 0 || value > max => Err(Cause::from(format!("keep.{what}: 1 to {max}"))),
            Some(_) | None => Ok(()),
        };
        within("size_mib_max", self.size_mib_max, SIZE_MIB)?;
        within("age_days_max", self.age_days_max, AGE_DAYS)?;
        within("file_mib_max", self.file_mib_max, FILE_MIB)?;
        within("files_max", self.files_max, FILES)?;
        let is_name = |name: &String| {
            !name.is_empty() && name.len() <= 255 && !name.contains('/') && !matches!(&**name, "." | ".." | ".git")
        };
        if self.regenerable.len() > NAMES_MAX || !self.regenerable.iter().all(is_name) {
            let message = format!("keep.regenerable: at most {NAMES_MAX} names of directories, without `/`");
            return Err(Cause::from(message));
        }
        Ok(())
    }
}

/// What is kept, with every default in place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Keeping {
    /// Whether anything is kept.
    pub enabled: bool,
    /// What the kept states of one project may take.
    pub bytes_max: u64,
    /// How long they stay.
    pub age_ms_max: u64,
    /// The largest file that is kept.
    pub file_bytes_max: u64,
    /// The most files, links and directories of a project.
    pub files_max: u64,
    /// Whether places of secrets are kept too.
    pub secrets: bool,
    /// Names of directories that can be made again.
    pub regenerable: Vec<String>,
}

impl Keeping {
    pub(super) fn of(settings: Option<&KeepSettings>) -> Keeping {
        let none = KeepSettings::default();
        let settings = settings.unwrap_or(&none);
        let known = REGENERABLE.iter().map(|name| (*name).to_owned());
        Keeping {
            enabled: settings.enabled.unwrap_or(true),
            bytes_max: settings.size_mib_max.unwrap_or(SIZE_MIB.0).saturating_mul(MIB),
            age_ms_max: settings.age_days_max.unwrap_or(AGE_DAYS.0).saturating_mul(DAY_MS),
            file_bytes_max: settings.file_mib_max.unwrap_or(FILE_MIB.0).saturating_mul(MIB),
            files_max: settings.files_max.unwrap_or(FILES.0),
            secrets: settings.secrets,
            regenerable: known.chain(settings.regenerable.iter().cloned()).collect(),
        }
    }
}
