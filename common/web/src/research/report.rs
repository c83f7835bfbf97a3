//! Writes the findings as a Markdown report. Untrusted text enters it only as checked statements, their quotations and page
//! titles, and is escaped.

use std::fmt::Write;

use super::{Claim, Findings, Page, Question};

/// The author of the statements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Author<'a> {
    /// No model: all statements are quotations.
    Nobody,
    /// A language model, with its name.
    Model(&'a str),
}

/// The introduction of a report.
#[derive(Clone, Debug)]
pub struct About<'a> {
    pub author: Author<'a>,
    /// Says what was searched.
    pub searched: &'a str,
    /// Why a model wrote nothing or only a part, if one was configured.
    pub note: Option<&'a str>,
}

/// The pages cited, in order of their first citation. A report numbers them from 1.
pub fn sources(findings: &Findings) -> Vec<usize> {
    let mut sources = Vec::new();
    for claim in &findings.claims {
        if !sources.contains(&claim.page) {
            sources.push(claim.page);
        }
    }
    sources
}

pub fn markdown(topic: &str, questions: &[Question], findings: &Findings, pages: &[Page], about: &About<'_>) -> String {
    let sources = sources(findings);
    let mut report = format!("# {}\n\n", harmless(topic));
    let removed = match findings.dropped {
        1 => "1 statement without such support was removed".to_owned(),
        count => format!("{count} statements without such support were removed"),
    };
    match about.author {
        Author::Nobody => report.push_str(
            "*Extractive report: sentences quoted from the sources word for word, not checked against each other. No \
             language model wrote any of it.*\n",
        ),
        Author::Model(name) => {
            let _ = writeln!(
                report,
                "*Written by the language model {}. Every statement rests on a quotation that was checked to stand in its \
                 source; {removed}.*",
                harmless(name),
            );
        }
    }
    let _ = writeln!(report, "\n*{}*", harmless(about.searched));
    if let Some(note) = about.note {
        let _ = writeln!(report, "\n*{}*", harmless(note));
    }
    for (number, question) in questions.iter().enumerate().filter(|(number, _)| findings.answers(*number)) {
        let _ = write!(report, "\n## {}\n", harmless(&question.text));
        for claim in findings.claims.iter().filter(|claim| claim.question == number) {
            let source = sources.iter().position(|source| *source == claim.page).map_or(0, |at| at + 1);
            told(&mut report, claim, &pages[claim.page], source);
        }
        // A statement listed under another question is only referred to.
        for claim in findings.claims.iter().filter(|claim| claim.also.contains(&number)) {
            let source = sources.iter().position(|source| *source == claim.page).map_or(0, |at| at + 1);
            let (begin, other) = (harmless(&begin(&claim.text)), harmless(&questions[claim.question].text));
            let _ = write!(report, "\n- See “{begin}” [{source}], under “{other}”\n");
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
            let _ = writeln!(report, "{}. {title}<{}>{}", index + 1, page.url, dated(page));
        }
    }
    report
}

/// Writes a statement with its quotation, source and context.
fn told(report: &mut String, claim: &Claim, page: &Page, source: usize) {
    let (quote, date) = (harmless(&claim.quote), dated(page));
    let context: Vec<String> = claim.context.iter().map(|piece| harmless(piece)).collect();
    let _ = match (claim.is_quotation(), context.is_empty()) {
        (false, _) => write!(report, "\n- {} [{source}]{date}\n  > {quote}\n", harmless(&claim.text)),
        (true, true) => write!(report, "\n> {quote}\n>\n> — [{source}] <{}>{date}\n", page.url),
        (true, false) => {
            let context = context.join(" / ");
            write!(report, "\n> {quote}\n>\n> (context: {context})\n>\n> — [{source}] <{}>{date}\n", page.url)
        }
    };
}

fn dated(page: &Page) -> String {
    // Show the date only, even of a full RFC 3339 timestamp.
    let day = |date: &str| match date.split_once('T') {
        Some((day, _)) if day.len() == 10 => day.to_owned(),
        _ => date.to_owned(),
    };
    page.published_at.as_deref().map(|date| format!(", {}", harmless(&day(date)))).unwrap_or_default()
}

/// The first words of a text, with an ellipsis if it is longer.
fn begin(text: &str) -> String {
    const WORDS: usize = 8;
    let words: Vec<&str> = text.split_whitespace().collect();
    let end = if words.len() > WORDS { "…" } else { "" };
    format!("{}{end}", words[..words.len().min(WORDS)].join(" "))
}

/// Untrusted text on one line, escaped for Markdown and HTML.
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
    use super::super::text;
    use super::*;

    #[test]
    fn reports_list_sources_and_gaps_and_escape_markup() {
        let quote = "![x](http://evil.example/?q) The tower is [31](http://evil.example) high.";
        let page = |url: &str, title: &str| Page {
            url: url.to_owned(),
            title: title.to_owned(),
            published_at: Some("2026-01-02".to_owned()),
            text: text::Text { plain: quote.to_owned(), sentences: Vec::new() },
        };
        let pages = [page("http://a.example/", "A"), page("http://b.example/", "# B <b>")];
        let questions = [Question::new("How high?"), Question::new("How old?"), Question::new("How tall is it?")];
        let claim = Claim { also: vec![2], context: vec!["The tower:".to_owned()], ..Claim::quoted(0, quote, 1) };
        let findings = Findings { claims: vec![claim], dropped: 2 };
        let about = About { author: Author::Nobody, searched: "Searched 3 pages.", note: None };
        let report = markdown("Towers", &questions, &findings, &pages, &about);
        assert!(report.contains("any of it.*\n\n*Searched 3 pages.*\n\n## How high?\n"), "{report}");
        assert!(report.contains("(context: The tower:)\n>\n> — [1] <http://b.example/>, 2026-01-02"), "{report}");
        assert!(report.contains("## Not found\n\n- How old?\n"), "{report}");
        assert!(report.contains("1. \\# B \\<b\\> — <http://b.example/>"), "{report}");
        assert!(!report.contains("[x](") && !report.contains("a.example"), "{report}");
        let again = report.split("## How tall is it?").nth(1).unwrap();
        assert!(
            again.contains("high. [1]") || again.contains("\\[31\\]") && again.contains("under “How high?”"),
            "{report}"
        );
        assert_eq!(report.matches("> \\!\\[x").count(), 1, "told once: {report}");
        let claim = Claim { text: "It is 31 high.".to_owned(), ..Claim::quoted(0, quote, 1) };
        let findings = Findings { claims: vec![claim], ..findings };
        let about = About { author: Author::Model("m"), note: Some("Only in part."), ..about };
        let report = markdown("Towers", &questions, &findings, &pages, &about);
        assert!(
            report.contains("language model m") && report.contains("2 statements without such support"),
            "{report}"
        );
        assert!(report.contains("*Only in part.*") && report.contains("- It is 31 high. [1]"), "{report}");
    }
}
