//! Findings as a report in Markdown. All of it is put together here: of strangers' texts only the statements that were
//! checked, their quotations, and the titles of their pages, none of which can write Markdown of its own.

use std::fmt::Write;

use super::{Findings, Page, Question};

/// Who wrote the statements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Author<'a> {
    /// Nobody: they are quotations.
    Nobody,
    /// The language model of this name.
    Model(&'a str),
}

/// The pages that findings rest on, in the order in which they are first named; a report counts them from 1.
pub fn sources(findings: &Findings) -> Vec<usize> {
    let mut sources = Vec::new();
    for claim in &findings.claims {
        if !sources.contains(&claim.page) {
            sources.push(claim.page);
        }
    }
    sources
}

/// The report.
pub fn markdown(
    topic: &str,
    questions: &[Question],
    findings: &Findings,
    pages: &[Page],
    author: Author<'_>,
) -> String {
    let sources = sources(findings);
    let number = |page: usize| sources.iter().position(|source| *source == page).map_or(0, |at| at + 1);
    let mut report = format!("# {}\n\n", harmless(topic));
    match author {
        Author::Nobody => report.push_str(
            "*Extractive report: sentences quoted from the sources word for word, not checked against each other. No \
             language model wrote any of it.*\n",
        ),
        Author::Model(name) => {
            let _ = writeln!(
                report,
                "*Written by the language model {}. Every statement rests on a quotation that was checked to stand in its \
                 source; {} statements without such support were removed.*",
                harmless(name),
                findings.dropped,
            );
        }
    }
    for (index, question) in questions.iter().enumerate() {
        let claims: Vec<_> = findings.claims.iter().filter(|claim| claim.question == index).collect();
        if claims.is_empty() {
            continue;
        }
        let _ = write!(report, "\n## {}\n", harmless(&question.text));
        for claim in claims {
            let date = pages[claim.page].published_at.as_deref().map(|date| format!(", {}", harmless(date)));
            let (page, date) = (number(claim.page), date.unwrap_or_default());
            let quote = harmless(&claim.quote);
            let _ = match author {
                Author::Nobody => {
                    write!(report, "\n> {quote}\n>\n> — [{page}] <{}>{date}\n", pages[claim.page].url)
                }
                Author::Model(_) => {
                    write!(report, "\n- {} [{page}]{date}\n  > {quote}\n", harmless(&claim.text))
                }
            };
        }
    }
    let missing = findings.unanswered(questions.len());
    if !missing.is_empty() {
        report.push_str("\n## Not found\n\n");
        for question in missing {
            let _ = writeln!(report, "- {}", harmless(&questions[question].text));
        }
    }
    if !sources.is_empty() {
        report.push_str("\n## Sources\n\n");
        for (index, page) in sources.iter().enumerate() {
            let page = &pages[*page];
            let title = if page.title.is_empty() { String::new() } else { format!("{} — ", harmless(&page.title)) };
            let date = page.published_at.as_deref().map(|date| format!(", {}", harmless(date))).unwrap_or_default();
            let _ = writeln!(report, "{}. {title}<{}>{date}", index + 1, page.url);
        }
    }
    report
}

/// A stranger's text on one line, that is no markup in Markdown or HTML.
fn harmless(text: &str) -> String {
    let mut harmless = String::with_capacity(text.len());
    for (index, word) in text.split_whitespace().enumerate() {
        if index > 0 {
            harmless.push(' ');
        }
        for letter in word.chars() {
            if matches!(letter, '[' | ']' | '<' | '>' | '`' | '*' | '_' | '\\') {
                harmless.push('\\');
            }
            harmless.push(letter);
        }
    }
    if harmless.starts_with(['#', '-', '+', '=', '|', '!']) {
        harmless.insert(0, '\\');
    }
    harmless
}

#[cfg(test)]
mod tests {
    use super::super::{Claim, text};
    use super::*;

    #[test]
    fn a_report_names_its_sources_and_what_is_missing_and_lets_nobody_write_markup() {
        let quote = "![x](http://evil.example/?q) The tower is [31](http://evil.example) high.";
        let page = |url: &str, title: &str| Page {
            url: url.to_owned(),
            title: title.to_owned(),
            published_at: Some("2026-01-02".to_owned()),
            text: text::Text { plain: quote.to_owned(), sentences: Vec::new() },
        };
        let pages = [page("http://a.example/", "A"), page("http://b.example/", "# B <b>")];
        let claim = Claim { question: 0, text: quote.to_owned(), quote: quote.to_owned(), page: 1 };
        let findings = Findings { claims: vec![claim], dropped: 2 };
        let questions = [Question::new("How high?"), Question::new("How old?")];
        let report = markdown("Towers", &questions, &findings, &pages, Author::Nobody);
        assert!(report.contains("— [1] <http://b.example/>, 2026-01-02"), "{report}");
        assert!(report.contains("## Not found\n\n- How old?\n"), "{report}");
        assert!(report.contains("1. \\# B \\<b\\> — <http://b.example/>"), "{report}");
        assert!(!report.contains("[x](") && !report.contains("a.example"), "{report}");
        let report = markdown("Towers", &questions, &findings, &pages, Author::Model("m"));
        assert!(
            report.contains("language model m") && report.contains("2 statements without such support"),
            "{report}"
        );
    }
}
