//! Selects excerpts of the pages for a model.

use std::collections::HashMap;

use super::choose::{Rarity, Scored, scored};
use super::{Page, Question};

/// The sentences nearest to the questions with their neighbours, by page and in page order, about `max_chars` characters in
/// all.
pub fn nearest(questions: &[Question], pages: &[Page], max_chars: usize) -> Vec<(usize, String)> {
    let rarity = Rarity::of(pages);
    let mut ranked: Vec<Vec<Scored<'_>>> = questions.iter().map(|question| scored(question, pages, &rarity)).collect();
    ranked.iter_mut().for_each(|ranked| ranked.reverse());
    let mut chosen: HashMap<usize, Vec<bool>> = HashMap::new();
    let mut chars = 0;
    // Take one sentence per question in turn, so that no question uses all the space.
    while chars < max_chars && ranked.iter().any(|ranked| !ranked.is_empty()) {
        for ranked in &mut ranked {
            let Some(scored) = ranked.pop() else { continue };
            let sentences = &pages[scored.page].text.sentences;
            let marks = chosen.entry(scored.page).or_insert_with(|| vec![false; sentences.len()]);
            for at in scored.at.saturating_sub(1)..=(scored.at + 1).min(sentences.len().saturating_sub(1)) {
                if !std::mem::replace(&mut marks[at], true) {
                    chars += sentences[at].text.chars().count() + 1;
                }
            }
        }
    }
    let mut by_page: Vec<(usize, String)> = chosen
        .into_iter()
        .map(|(page, marks)| {
            let mut excerpt = String::new();
            let mut gap = false;
            for (sentence, mark) in pages[page].text.sentences.iter().zip(marks) {
                if mark {
                    excerpt.push_str(if gap && !excerpt.is_empty() { "\n[…]\n" } else { "\n" });
                    excerpt.push_str(&sentence.text);
                }
                gap = !mark;
            }
            (page, excerpt.trim().to_owned())
        })
        .collect();
    by_page.sort_by_key(|(page, _)| *page);
    by_page
}

#[cfg(test)]
mod tests {
    use super::super::text;
    use super::*;

    #[test]
    fn excerpts_hold_the_nearest_sentences_with_neighbours() {
        let questions = [Question::new("How high is the Skerry lighthouse?")];
        let filler = "Nothing was said of it by those who had been there. ".repeat(20);
        let text = text::read(
            &format!("{filler}\n\nThe Skerry lighthouse has a tower. It is 31 metres high.\n\n{filler}"),
            "",
        );
        let pages = [Page { url: String::new(), title: String::new(), published_at: None, text }];
        let shown = nearest(&questions, &pages, 120);
        let all: String = shown.iter().map(|(_, text)| text.as_str()).collect();
        assert!(all.contains("It is 31 metres high.") && all.chars().count() < 400, "{all}");
        assert!(nearest(&questions, &[], 100).is_empty());
    }
}
