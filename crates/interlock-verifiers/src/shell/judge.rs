//! The classifier of command lines, as findings, proofs and rehearsals of workflows ask it. Git's configuration is
//! taken for plain where nobody looked.

use interlock_core::call::Effect;
use interlock_core::rule::CommandPattern;
use interlock_core::workflow::{CommandJudge, LineJudge, Reach};

use super::{Label, Setting, classify, covers, examine};

impl CommandJudge for Setting {
    fn reach(&self, line: &str) -> Reach {
        let analysis = classify(line, self);
        // A line that destroys may run unknown code as well; the label alone would not say so.
        if analysis.effects.iter().any(|found| found.effect == Label::Unknown) {
            return Reach::Anything;
        }
        match analysis.label {
            Label::Unknown => Reach::Anything,
            Label::ReadOnly => Reach::Reads,
            Label::Write | Label::Network | Label::Destructive => Reach::Known,
        }
    }
}

impl LineJudge for Setting {
    fn judge(&self, line: &str, listed: Option<&[String]>, may_write: bool) -> (Effect, Option<bool>) {
        let (analysis, words) = examine(line, self);
        let effect = Effect::parse(analysis.label.as_str()).unwrap_or(Effect::Unknown);
        let covered = listed.map(|listed| {
            let patterns: Vec<_> = listed.iter().filter_map(|text| CommandPattern::parse(text).ok()).collect();
            covers(&words, &patterns, may_write, self).is_ok()
        });
        (effect, covered)
    }
}
