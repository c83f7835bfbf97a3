//! A buyer's wish in words, as edits of a plan.

mod clauses;
mod look;
mod structure;
mod wording;

use crate::plan::{Content, Plan};

/// What became of a wish.
pub struct Refined {
    pub plan: Plan,
    /// One sentence for each edit that was made.
    pub done: Vec<String>,
    /// Parts of the wish that no rule understands.
    pub not_understood: Vec<String>,
}

/// Applies what the rules understand of `changes`, clause by clause. A clause is done as a whole or not at all.
pub fn refine(plan: &Plan, changes: &str) -> Refined {
    let mut refined = Refined { plan: plan.clone(), done: Vec::new(), not_understood: Vec::new() };
    for clause in clauses::split(changes) {
        let mut edited = refined.plan.clone();
        match edit(&mut edited, &clause) {
            Some(done) => {
                tidy(&mut edited);
                refined.plan = edited;
                refined.done.extend(done);
            }
            None => refined.not_understood.push(clause),
        }
    }
    refined
}

/// Words and sections before looks: "a section about red wine" asks for no colour.
fn edit(plan: &mut Plan, clause: &str) -> Option<Vec<String>> {
    let wish = clauses::Wish::of(clause);
    if wish.negated() {
        return None;
    }
    wording::edit(plan, &wish)
        .or_else(|| structure::edit(plan, &wish))
        .map(|done| vec![done])
        .or_else(|| look::edit(&mut plan.look, &wish))
}

/// Drops links to what is gone, and knows whether a form is left.
fn tidy(plan: &mut Plan) {
    let paths: Vec<String> = plan.pages.iter().map(|page| page.path.clone()).collect();
    for page in &mut plan.pages {
        let ids: Vec<String> = page.sections.iter().map(|section| section.id.clone()).collect();
        for section in &mut page.sections {
            if let Content::Hero { actions, .. } | Content::Action { actions, .. } = &mut section.content {
                actions.retain(|link| match link.to.strip_prefix('#') {
                    Some(id) => ids.iter().any(|known| known == id),
                    None => !link.to.starts_with('/') || paths.contains(&link.to),
                });
            }
        }
        // A section that was nothing but a link.
        page.sections.retain(|section| !matches!(&section.content, Content::Action { text, actions } if text.is_empty() && actions.is_empty()));
    }
    let form = |content: &Content| matches!(content, Content::Contact { form: true, .. });
    plan.lead_capture &= plan.pages.iter().flat_map(|page| &page.sections).any(|section| form(&section.content));
}

#[cfg(test)]
mod tests;
