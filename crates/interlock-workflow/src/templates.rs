//! Workflows to begin with: for common work of coding agents, to be copied and adapted.

use super::load::Format;

/// A workflow to begin with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Template {
    /// Its name, which is its `id` too.
    pub name: &'static str,
    /// What it is for, in one line.
    pub summary: &'static str,
    /// The text, with comments.
    pub text: &'static str,
    /// How the text is written.
    pub format: Format,
}

/// The templates, by name.
pub fn templates() -> &'static [Template] {
    TEMPLATES
}

const fn yaml(name: &'static str, summary: &'static str, text: &'static str) -> Template {
    Template { name, summary, text, format: Format::Yaml }
}

#[rustfmt::skip]
static TEMPLATES: &[Template] = &[
    yaml("bugfix", "understand a bug, show it with a test, fix it", include_str!("templates/bugfix.yaml")),
    yaml("feature", "plan, have the plan approved, build, verify", include_str!("templates/feature.yaml")),
    yaml("incident", "look, change production with approval only, report", include_str!("templates/incident.yaml")),
    yaml("migration", "rehearse on a copy, have it approved, apply, check", include_str!("templates/migration.yaml")),
    yaml("research", "gather sources, write in one place, check claims", include_str!("templates/research.yaml")),
    yaml("review", "read a change and report; nothing can be changed", include_str!("templates/review.yaml")),
];

#[cfg(test)]
mod tests {
    use interlock_core::workflow::{AfterFinal, Outcome, StateKind};

    use super::*;
    use crate::{Limits, load};

    #[test]
    fn every_template_loads_without_a_problem() {
        for template in templates() {
            let loaded = load(template.text, template.format, &Limits::MAX)
                .unwrap_or_else(|problems| panic!("{}: {problems:#?}", template.name));
            assert!(loaded.warnings.is_empty(), "{}: {:#?}", template.name, loaded.warnings);
            let workflow = loaded.workflow;
            assert_eq!(workflow.id(), template.name);
            assert_eq!(workflow.after_final(), AfterFinal::Closed, "{}", template.name);
            for outcome in Outcome::ALL {
                let ends = |kind| kind == StateKind::Final(*outcome);
                assert!(workflow.states().any(|(_, state)| ends(state.kind)), "{}: no {outcome}", template.name);
            }
            for (_, state) in workflow.states().filter(|(_, state)| state.kind == StateKind::Active) {
                let said = state.instructions.is_some() && state.max_iterations.is_some();
                assert!(said && state.allowed_tools.is_some(), "{}: {}", template.name, state.name);
            }
        }
        let names: Vec<_> = templates().iter().map(|template| template.name).collect();
        assert!(names.is_sorted() && names.len() == 6);
    }
}
