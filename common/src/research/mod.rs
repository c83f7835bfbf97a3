//! Research: questions, pages, and what the pages say to the questions, in the pages' own words. Pure: no network, no clock.
//!
//! | module | what it does |
//! |---|---|
//! | [`plan`] | a topic as questions |
//! | [`text`] | a page as sentences that can be quoted |
//! | [`words`] | texts as the words they are compared by |
//! | [`choose`] | which sentences answer which question, if any do |
//! | [`claims`] | statements with their quotations, and the checks of both |
//! | [`writer`] | the same by a language model: what it is told, and what is believed of its answer |
//! | [`report`] | statements as a report |
//!
//! What always holds: a statement has a quotation, the quotation stands in the text of the page it names, and a question
//! to which nothing was found is listed as such. Whoever wrote the statement, it is checked here, after it was written.

pub mod choose;
pub mod claims;
pub mod plan;
pub mod report;
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
    /// The questions to which nothing was found, by their numbers.
    pub fn unanswered(&self, questions: usize) -> Vec<usize> {
        (0..questions).filter(|question| self.claims.iter().all(|claim| claim.question != *question)).collect()
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
