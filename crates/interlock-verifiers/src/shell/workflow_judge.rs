//! The classifier of command lines, as findings, proofs and rehearsals of workflows ask it. Git's configuration is
//! taken for plain where nobody looked.

use interlock_core::call::Effect;
use interlock_core::rule::CommandPattern;
use interlock_core::workflow::{CommandJudge, LineJudge, Reach};

use super::{Setting, classify, covers, examine};

impl CommandJudge for Setting {
    fn reach(&self, line: &str) -> Reach {
        let analysis = classify(line, self);
        // A line that destroys may run unknown code as well; the label alone would not say so.
        if analysis.causes.iter().any(|found| found.effect == Effect::Unknown) {
            return Reach::Anything;
        }
        match analysis.label {
            Effect::Unknown => Reach::Anything,
            Effect::ReadOnly => Reach::Reads,
            Effect::Write | Effect::Network | Effect::Destructive => Reach::Known,
        }
    }

    fn speaks_with_others(&self, line: &str) -> bool {
        classify(line, self).causes.iter().any(|found| found.effect == Effect::Network)
    }
}

impl LineJudge for Setting {
    fn judge(&self, line: &str, listed: Option<&[String]>, may_write: bool) -> (Effect, Option<bool>) {
        let (analysis, words) = examine(line, self);
        let covered = listed.map(|listed| {
            let patterns: Vec<_> = listed.iter().filter_map(|text| CommandPattern::parse(text).ok()).collect();
            covers(&words, &patterns, may_write, self).is_ok()
        });
        (analysis.label, covered)
    }
}
