//! The classifier of command lines, as proofs and rehearsals ask it.

use interlock_core::call::Effect;
use interlock_core::rule::CommandPattern;
use interlock_core::workflow::{CommandJudge, LineJudge, Reach};
use interlock_verifiers::shell::{Label, Setting, classify, covers, examine};

use crate::Fault;

pub(crate) struct Shell {
    setting: Setting,
}

impl Shell {
    /// The built-in table; git's configuration is taken for plain.
    pub(crate) fn new() -> Result<Shell, Fault> {
        Setting::built_in().map(|setting| Shell { setting }).map_err(Fault::new)
    }
}

impl CommandJudge for Shell {
    fn reach(&self, line: &str) -> Reach {
        let analysis = classify(line, &self.setting);
        // A line that destroys may run unknown code as well; the label alone would not say so.
        let unknown = analysis.effects.iter().any(|found| found.effect == Label::Unknown);
        match analysis.label {
            Label::Unknown => Reach::Anything,
            _ if unknown => Reach::Anything,
            Label::ReadOnly => Reach::Reads,
            Label::Write | Label::Network | Label::Destructive => Reach::Known,
        }
    }
}

impl LineJudge for Shell {
    fn judge(&self, line: &str, listed: Option<&[String]>, may_write: bool) -> (Effect, Option<bool>) {
        let (analysis, words) = examine(line, &self.setting);
        let effect = Effect::parse(analysis.label.as_str()).unwrap_or(Effect::Unknown);
        let covered = listed.map(|listed| {
            let patterns: Vec<_> = listed.iter().filter_map(|text| CommandPattern::parse(text).ok()).collect();
            covers(&words, &patterns, may_write, &self.setting).is_ok()
        });
        (effect, covered)
    }
}
