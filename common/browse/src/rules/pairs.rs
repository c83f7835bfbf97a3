//! Several fields of one sentence: "Name with Ada and Email with ada@example.com", "name Ada, email ada@example.com".

use super::words::{Token, joined};

/// Names of fields that people say without a colon behind them.
const FIELDS: &[&str] = &[
    "name",
    "first name",
    "last name",
    "full name",
    "family name",
    "given name",
    "middle name",
    "surname",
    "forename",
    "email",
    "e-mail",
    "mail",
    "email address",
    "e-mail address",
    "phone",
    "phone number",
    "telephone",
    "telephone number",
    "mobile",
    "mobile number",
    "address",
    "street",
    "street address",
    "house number",
    "city",
    "town",
    "zip",
    "zip code",
    "postcode",
    "postal code",
    "post code",
    "state",
    "region",
    "county",
    "country",
    "company",
    "organisation",
    "organization",
    "website",
    "username",
    "user name",
    "user",
    "login",
    "password",
    "passphrase",
    "pin",
    "age",
    "birthday",
    "date of birth",
    "birth date",
    "subject",
    "topic",
    "message",
    "comment",
    "comments",
    "note",
    "notes",
    "description",
    "quantity",
    "feedback",
];
/// Their values hold commas.
const LONG: [&str; 10] = [
    "address",
    "street address",
    "message",
    "comment",
    "comments",
    "note",
    "notes",
    "description",
    "feedback",
    "topic",
];
/// Words between "fill in" and the first name of a list.
const LEAD: &[&str] = &[
    "the",
    "this",
    "my",
    "your",
    "a",
    "with",
    "using",
    "by",
    "of",
    "for",
    "form",
    "forms",
    "fields",
    "contact",
    "registration",
    "signup",
    "sign-up",
    "checkout",
    "shipping",
    "billing",
    "order",
    "booking",
    "these",
    "following",
    "details",
    "data",
    "information",
    "values",
    "below",
    "here",
    "are",
    "as",
    "follows",
    "it",
];
/// Most words of a field's name.
const MOST_NAME: usize = 6;

/// The name of a field and its value.
pub type Pair<'a> = (&'a [Token], &'a [Token]);

fn separates(token: &Token) -> bool {
    matches!(token.after, Some(',' | ';' | '\n'))
}

/// Without "and" at its ends.
fn plain(mut tokens: &[Token]) -> &[Token] {
    while let Some((first, rest)) = tokens.split_first().filter(|(first, _)| first.is(&["and", "also", "then"])) {
        let _ = first;
        tokens = rest;
    }
    while let Some((_, rest)) = tokens.split_last().filter(|(last, _)| last.is(&["and"])) {
        tokens = rest;
    }
    tokens
}

/// "Name with Ada, Email with b, and Message with c": two or more fields, each before its value.
#[must_use]
pub fn names_first<'a>(tokens: &'a [Token], joiners: &[&str]) -> Option<Vec<Pair<'a>>> {
    let joins: Vec<usize> = (0..tokens.len()).filter(|at| tokens[*at].is(joiners)).collect();
    let mut out = Vec::new();
    let (mut start, mut join) = (0, *joins.first()?);
    for next in joins.into_iter().skip(1) {
        // The name of the next field starts behind the last comma or "and".
        let border = (join + 2..next).rev().find(|at| tokens[*at].is(&["and"]) || separates(&tokens[at - 1]));
        let Some(border) = border.filter(|at| !plain(&tokens[*at..next]).is_empty()) else { continue };
        out.push((&tokens[start..join], &tokens[join + 1..border]));
        (start, join) = (border, next);
    }
    out.push((&tokens[start..join], tokens.get(join + 1..)?));
    tidy(out)
}

/// "a as email and b as password": two or more values, each before its field.
#[must_use]
pub fn values_first<'a>(tokens: &'a [Token], joiners: &[&str]) -> Option<Vec<Pair<'a>>> {
    let joins: Vec<usize> = (0..tokens.len()).filter(|at| tokens[*at].is(joiners)).collect();
    let mut out = Vec::new();
    let mut start = 0;
    for (n, &join) in joins.iter().enumerate() {
        if join <= start {
            return None;
        }
        let end = match joins.get(n + 1) {
            Some(&next) => (join + 2..next).find(|at| tokens[*at].is(&["and"]) || separates(&tokens[at - 1]))?,
            None => tokens.len(),
        };
        out.push((tokens.get(join + 1..end)?, &tokens[start..join]));
        start = end;
    }
    tidy(out)
}

fn tidy(pairs: Vec<Pair<'_>>) -> Option<Vec<Pair<'_>>> {
    let pairs: Vec<Pair<'_>> = pairs.into_iter().map(|(name, value)| (plain(name), plain(value))).collect();
    let good = |(name, value): &Pair<'_>| !name.is_empty() && name.len() <= MOST_NAME && !value.is_empty();
    (pairs.len() > 1 && pairs.iter().all(good)).then_some(pairs)
}

/// Where the name of a field at the start of these ends, and whether a colon says so.
fn label(tokens: &[Token]) -> Option<(usize, bool)> {
    let articles = tokens.iter().take_while(|t| t.is(&["the", "my", "your", "a", "an", "-", "*", "•"])).count();
    let names = &tokens[articles..];
    let colon = names.iter().take(MOST_NAME).position(|t| t.after == Some(':'));
    let is_name = |end: usize| names[..end].iter().all(|t| !t.is(&["and"]) && !separates(t));
    if let Some(at) = colon.filter(|at| is_name(*at)) {
        return Some((articles + at + 1, true));
    }
    let longest = (1..=3).rev().find(|n| {
        names.len() > *n
            && names[..*n].iter().all(|t| !t.quoted)
            && names[..n - 1].iter().all(|t| t.after.is_none())
            && FIELDS.contains(&joined(&names[..*n]).to_lowercase().as_str())
    })?;
    let is = names[longest..].iter().take_while(|t| t.is(&["is", "=", "->"])).count();
    let value = names.get(longest + is)?;
    (!value.is(&["and", "field", "fields", "box", "input", "in", "into", "with", "to", "as"])
        && !separates(&names[longest - 1]))
    .then_some((articles + longest + is, false))
}

/// "name: Ada, email: b", "name Ada and email b"; `None` where a part has no name.
#[must_use]
pub fn details(tokens: &[Token]) -> Option<Vec<Pair<'_>>> {
    let mut out = Vec::new();
    let mut at = 0;
    while at < tokens.len() {
        at += tokens[at..].iter().take_while(|t| t.is(&["and", "also"])).count();
        let (name_end, colon) = label(&tokens[at..])?;
        let value = at + name_end;
        let name = &tokens[at..value];
        let long = LONG.contains(&joined(name).trim_end_matches(':').to_lowercase().as_str());
        let mut end = value + 1;
        while end < tokens.len() {
            let cut = separates(&tokens[end - 1]);
            if (cut || tokens[end].is(&["and"])) && label(plain(&tokens[end..])).is_some() {
                break;
            }
            // What follows a comma without a name: nobody knows whether it belongs to the value.
            if cut && !colon && !long {
                return None;
            }
            end += 1;
        }
        out.push((name, plain(tokens.get(value..end)?)));
        at = end;
    }
    let good = |(name, value): &Pair<'_>| !name.is_empty() && !value.is_empty();
    (!out.is_empty() && out.iter().all(good)).then_some(out)
}

/// How many words lead to the list: "the form with these details:".
#[must_use]
pub fn lead(tokens: &[Token]) -> usize {
    let end = tokens.iter().take_while(|t| t.is(LEAD)).count();
    // "my name": the last word may be the article of the first name.
    let says = |words: &[&str]| tokens[..end].iter().any(|t| t.is(words));
    let lists = says(&["form", "forms", "details", "data", "information", "values", "following", "fields", "follows"]);
    if lists { end } else { 0 }
}

/// Whether a clause is nothing but "Name: Ada", as on a line of a list.
#[must_use]
pub fn is_line(tokens: &[Token]) -> bool {
    label(tokens).is_some_and(|(end, colon)| {
        let name = joined(&tokens[..end]).to_lowercase();
        let known = FIELDS.contains(&name.trim_end_matches(':'));
        colon && end < tokens.len() && (known || !tokens.first().is_some_and(super::clause::is_verb))
    })
}

/// The text of a value with the punctuation inside it.
#[must_use]
pub fn text(tokens: &[Token]) -> String {
    if let [one] = tokens
        && one.quoted
    {
        return one.text.clone();
    }
    let mut out = String::new();
    for (n, token) in tokens.iter().enumerate() {
        if n > 0 {
            out.push(' ');
        }
        out.push_str(&token.text);
        let last = n + 1 == tokens.len();
        if let Some(mark) = token.after.filter(|mark| if last { *mark == '!' } else { *mark != '\n' }) {
            out.push(mark);
        } else if last && token.after == Some('\n') && token.mark == Some('!') {
            out.push('!');
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::super::words::tokens;
    use super::*;

    fn said(pairs: Option<Vec<Pair<'_>>>) -> Vec<String> {
        pairs.unwrap_or_default().iter().map(|(name, value)| format!("{}={}", joined(name), text(value))).collect()
    }

    #[test]
    fn fields_and_values_are_told_apart() {
        let words = tokens("Name with Dr. Ada Lovelace, Email with ada@example.com, and Message with Hello, you");
        assert_eq!(
            said(names_first(&words, &["with"])),
            ["Name=Dr. Ada Lovelace", "Email=ada@example.com", "Message=Hello, you"]
        );
        let words = tokens("Message with I agree with you and Email with a@b.c");
        assert_eq!(said(names_first(&words, &["with"])), ["Message=I agree with you", "Email=a@b.c"]);
        let words = tokens("ada@example.com as email and secret123! as password");
        assert_eq!(said(values_first(&words, &["as"])), ["email=ada@example.com", "password=secret123!"]);
        let words = tokens("Red in the box in the corner");
        assert_eq!(said(values_first(&words, &["in"])), Vec::<String>::new());
    }

    #[test]
    fn lists_of_details_have_a_name_for_each_part_or_are_not_read() {
        for (text, is) in [
            (
                "name Ada Lovelace, email ada@example.com, phone +14155550100",
                vec!["name=Ada Lovelace", "email=ada@example.com", "phone=+14155550100"],
            ),
            (
                "Name: Ada, Message: Hello, I want a kettle; City: Rome",
                vec!["Name=Ada", "Message=Hello, I want a kettle", "City=Rome"],
            ),
            (
                "address 12 Main St, Springfield and city Springfield",
                vec!["address=12 Main St, Springfield", "city=Springfield"],
            ),
            ("name Ada Lovelace, colour blue", vec![]),
            ("name and email", vec![]),
        ] {
            assert_eq!(said(details(&tokens(text))), is, "{text}");
        }
        let words = tokens("the contact form using these details: name Ada");
        assert_eq!(joined(&words[lead(&words)..]), "name Ada");
        assert_eq!(lead(&tokens("my name with Ada")), 0);
    }
}
