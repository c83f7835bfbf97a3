//! Several wishes in one clause, and sentences beside a wish: each is planned, or the clause is refused.

use std::collections::BTreeMap;

use crate::build::Builder;
use crate::clauses::Clause;
use crate::fill::Filler;
use crate::meaning::Meaning;
use crate::phrase::is_verb_word;
use crate::values::Found;
use crate::words::{FILLERS, PRONOUNS, RESULTS, Token};
use crate::{Refusal, Source, recipients};

impl Builder<'_> {
    /// "recalls and crash ratings of a 2019 Honda Accord": a clause for each noun, if each has a tool of its own.
    pub(crate) fn nouns(&self, clause: &Clause, found: &[Found]) -> Result<Option<Vec<Clause>>, Refusal> {
        let Some(parts) = noun_parts(clause, found) else { return Ok(None) };
        let whole = self.picker.pick(clause, found, &self.last_words);
        let takes_words = |at: usize| recipients::talks(&self.picker.slots[at]);
        if whole.as_ref().is_ok_and(|at| self.picker.tools[*at].acts || takes_words(*at)) {
            return Ok(None);
        }
        let mut tools = Vec::new();
        for part in &parts {
            let at = self.picker.pick(part, &crate::values::find(&part.tokens), &self.last_words)?;
            if self.picker.tools[at].acts {
                return Ok(None);
            }
            tools.push(at);
        }
        let is_one = whole.is_ok_and(|whole| tools.iter().all(|at| *at == whole));
        Ok((!is_one).then_some(parts))
    }

    /// Refuses a clause whose first word nothing explains, a second wish among the words of a search, and sentences beside
    /// the clause that gave it nothing. The words that are refused, and why.
    pub(crate) fn beside(
        &self,
        at: usize,
        filler: &Filler,
        context: &[Filler],
        input: &BTreeMap<String, Source>,
    ) -> Result<(), (String, String)> {
        let (tool, tokens) = (&self.picker.tools[at], &filler.clause.tokens);
        let has_words =
            self.picker.slots[at].iter().any(|slot| slot.meaning == Meaning::Query && input.contains_key(&slot.name));
        let own = self.picker.vocabulary(at);
        let explains = |token: &Token| {
            const ASKS: &[&str] =
                &["how", "where", "when", "why", "does", "do", "did", "whose", "any", "what's", "who's"];
            is_verb_word(token)
                || token.is(FILLERS)
                || token.is(ASKS)
                || token.is(PRONOUNS)
                || token.is(RESULTS)
                || token.quoted
                || token.has_digit()
                || own.contains(&base::words::stem(&token.lower))
        };
        let is_value = filler.used[0] || filler.found.iter().any(|one| one.from == 0);
        let first = &tokens[0];
        if !tool.acts && !has_words && !is_value && !explains(first) && !first.text.contains('_') {
            let why = format!(
                "\u{201c}{}\u{201d} is not understood. Begin with what is to be done: find, read, verify, email \u{2026}",
                first.text
            );
            return Err((filler.clause.text.clone(), why));
        }
        let is_web = tokens.iter().take(4).any(|token| token.is(&["web", "internet"]));
        if is_web && first.is(&["search", "google", "look"]) && !tool.acts && !own.contains("web") {
            let why = "what to search the web for is not clear. Write it in quotation marks";
            return Err((filler.clause.text.clone(), why.to_owned()));
        }
        if !tool.acts
            && has_words
            && let Some(word) = second_wish(tokens)
        {
            let why = format!("\u{201c}{word}\u{201d} may begin a second wish: write a sentence for each");
            return Err((filler.clause.text.clone(), why));
        }
        for beside in context {
            let is_courtesy = crate::around::is_courtesy(beside.clause);
            let contacts = beside.found.iter().filter(|one| matches!(one.meaning, Meaning::Email | Meaning::Phone));
            let is_unsure = filler.reading.is_some() && contacts.count() > 1;
            if !is_courtesy && (is_unsure || !beside.used.contains(&true)) {
                let why =
                    "what this sentence asks for is not understood. Begin it with what is to be done, or leave it out";
                return Err((beside.clause.text.clone(), why.to_owned()));
            }
        }
        Ok(())
    }
}

/// "for lighthouses and research tide tables".
fn second_wish(tokens: &[Token]) -> Option<&str> {
    const STARTS: &[&str] =
        &["research", "search", "google", "email", "e-mail", "mail", "text", "sms", "call", "phone", "message", "book"];
    let is_start = |at: &usize| {
        let before = &tokens[at - 1];
        let has_object = tokens.get(at + 1).is_some_and(|next| !next.is(&["and", "or", "of", "in", "for"]));
        tokens[*at].is(STARTS) && before.is(&["and", "then", "plus"]) && has_object && !tokens[*at].pauses()
    };
    (2..tokens.len()).find(is_start).map(|at| tokens[at].text.as_str())
}

/// The clause once for each noun before "of", a name or a value: "the function and the domains of P04637".
fn noun_parts(clause: &Clause, found: &[Found]) -> Option<Vec<Clause>> {
    const LEADS: &[&str] = &["what", "what's", "is", "are", "the", "a", "an", "me", "us", "all", "which", "any"];
    const PREPOSITIONS: &[&str] = &["of", "for", "in", "at", "near", "about", "on", "from", "by", "with"];
    let tokens = &clause.tokens;
    let mut from = usize::from(tokens.first().is_some_and(is_verb_word));
    while tokens.get(from).is_some_and(|token| token.is(LEADS)) {
        from += 1;
    }
    let ends = |at: &usize| {
        let token = &tokens[*at];
        token.is(PREPOSITIONS)
            || token.quoted
            || token.has_digit()
            || token.is_capital() && *at > 0
            || found.iter().any(|one| one.from == *at)
    };
    let end = (from..tokens.len()).find(ends)?;
    let mut parts: Vec<Vec<Token>> = vec![Vec::new()];
    for token in &tokens[from..end] {
        let is_link = token.is(&["and", "plus", "&"]);
        if !is_link && !token.is(LEADS) {
            parts.last_mut()?.push(token.clone());
        }
        if is_link || token.tail.contains(',') {
            parts.push(Vec::new());
        }
    }
    parts.retain(|part| !part.is_empty());
    let is_short = parts.len() <= 6;
    let with = |part: Vec<Token>| Clause {
        tokens: tokens[..from].iter().chain(&part).chain(&tokens[end..]).cloned().collect(),
        ..clause.clone()
    };
    (parts.len() > 1 && is_short).then(|| parts.into_iter().map(with).collect())
}
