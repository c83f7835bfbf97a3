//! Research: splits a topic into questions and answers them with quotations from pages. Pure: no network, no clock.
//!
//! | module | what it does |
//! |---|---|
//! | [`plan`], [`answers`] | splits a topic into questions, and finds the kind of answer each wants |
//! | [`text`], [`markup`], [`sentences`] | splits a page into sentences that can be quoted |
//! | [`statement`] | tells which sentences state something |
//! | [`words`], [`near`] | words in a form that can be compared, and words with nearly the same meaning |
//! | [`choose`] | chooses the sentences that answer a question |
//! | [`claims`] | statements with their quotations, and how both are checked |
//! | [`excerpts`], [`writer`] | the same with a language model: its prompts, and how its answers are checked |
//! | [`report`] | writes the report |
//!
//! Invariants: every statement has a quotation, the quotation occurs in the text of the page it names, and questions
//! without an answer are listed. A model's statements pass the same checks after they were written.

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

#[derive(Clone, Debug)]
pub struct Page {
    /// The final address, after redirects.
    pub url: String,
    pub title: String,
    pub published_at: Option<String>,
    pub text: text::Text,
}

/// The statements found in the pages.
#[derive(Clone, Debug, Default)]
pub struct Findings {
    pub claims: Vec<Claim>,
    /// Statements left out because their quotation does not support them or does not occur in the page.
    pub dropped: usize,
}

impl Findings {
    pub fn answers(&self, question: usize) -> bool {
        self.claims.iter().any(|claim| claim.answers(question))
    }

    /// The numbers of the questions without an answer.
    pub fn unanswered(&self, questions: usize) -> Vec<usize> {
        (0..questions).filter(|question| !self.answers(*question)).collect()
    }

    /// Adds the claims of `quoted` that answer these questions. A claim that is already here is not repeated.
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

    /// Drops every claim whose quotation does not occur in its page.
    pub fn check(&mut self, pages: &[Page]) {
        let before = self.claims.len();
        self.claims.retain(|claim| {
            pages.get(claim.page).is_some_and(|page| claims::found(&claim.quote, &page.text.plain).is_some())
        });
        self.dropped += before - self.claims.len();
    }
}
