//! Research: questions, pages, and what the pages say to the questions, in the pages' own words. Pure: no network, no clock.
//!
//! | module | what it does |
//! |---|---|
//! | [`plan`], [`answers`] | a topic as questions, and what kind of answer each wants |
//! | [`text`], [`markup`], [`sentences`] | a page as sentences that can be quoted |
//! | [`statement`] | which of them state something |
//! | [`words`], [`near`] | texts as the words they are compared by, and words that say nearly the same |
//! | [`choose`] | which sentences answer which question, if any do |
//! | [`claims`] | statements with their quotations, and the checks of both |
//! | [`excerpts`], [`writer`] | the same by a language model: what it is told, and what is believed of its answer |
//! | [`report`] | statements as a report |
//!
//! What always holds: a statement has a quotation, the quotation stands in the text of the page it names, and a question
//! to which nothing was found is listed as such. Whoever wrote the statement, it is checked here, after it was written.

pub mod answers;
pub mod choose;
pub mod claims;
pub mod excerpts;
pub mod markup;
pub mod near;
pub mod plan;
pub mod report;
pub mod sentences;
pub mod statement;
pub mod text;
pub mod words;
pub mod writer;

#[cfg(test)]
mod tests;

pub use claims::Claim;
pub use plan::Question;

/// A page that was read.
#[derive(Clone, Debug)]
pub struct Page {
    /// Where it was found in the end.
    pub url: String,
    pub title: String,
    pub published_at: Option<String>,
    pub text: text::Text,
}

/// What the pages say.
#[derive(Clone, Debug, Default)]
pub struct Findings {
    pub claims: Vec<Claim>,
    /// Statements that their quotations do not support, or whose quotations stand nowhere: left out.
    pub dropped: usize,
}

impl Findings {
    /// Whether anything was found to this question.
    pub fn answers(&self, question: usize) -> bool {
        self.claims.iter().any(|claim| claim.answers(question))
    }

    /// The questions to which nothing was found, by their numbers.
    pub fn unanswered(&self, questions: usize) -> Vec<usize> {
        (0..questions).filter(|question| !self.answers(*question)).collect()
    }

    /// Adds what others found to these questions, and nothing of it that is told already.
    pub fn add_quoted(&mut self, quoted: Findings, questions: &[usize]) {
        for mut claim in quoted.claims {
            let all = std::iter::once(claim.question).chain(claim.also.iter().copied());
            let mut wanted: Vec<usize> = all.filter(|number| questions.contains(number)).collect();
            if let Some(known) = self.claims.iter_mut().find(|known| known.text == claim.text) {
                known.also.extend(wanted);
            } else if !wanted.is_empty() {
                claim.question = wanted.remove(0);
                claim.also = wanted;
                self.claims.push(claim);
            }
        }
        self.claims.sort_by_key(|claim| claim.question);
    }

    /// Leaves out every statement whose quotation does not stand in its page, whoever made it.
    pub fn check(&mut self, pages: &[Page]) {
        let before = self.claims.len();
        self.claims.retain(|claim| {
            pages.get(claim.page).is_some_and(|page| claims::found(&claim.quote, &page.text.plain).is_some())
        });
        self.dropped += before - self.claims.len();
    }
}
