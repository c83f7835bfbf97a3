//! What people ask of a mailbox, in their many ways to say it: forward, reply, delete, mark as important.

use super::step::{How, Step, Value, What};
use super::target::{Kind, Relation, Target};
use super::words::{Token, fold, joined};

fn is_mail(token: &Token) -> bool {
    token.is(&["email", "emails", "e-mail", "e-mails", "mail", "mails", "message", "messages"])
}

/// A name: written large, not at the start of the sentence.
fn is_name(token: &Token, at: usize) -> bool {
    let upper = token.text.chars().next().is_some_and(char::is_uppercase);
    at > 0 && upper && !token.quoted && !token.is(&["i", "i'd"]) && !is_mail(token)
}

/// The owner in "Yetty's".
fn owner(token: &Token) -> Option<&str> {
    token.text.strip_suffix("'s").or_else(|| token.text.strip_suffix("’s"))
}

fn named(name: &str) -> Target {
    Target { said: name.to_owned(), name: fold(name), full: fold(name), ..Target::default() }
}

fn press(name: &str, near: Option<&str>) -> What {
    let mut target = named(name);
    target.near = near.map(|who| (Relation::Of, fold(who)));
    What::Click { target, how: How::Once, explore: false }
}

fn write(field: Target, text: &str) -> What {
    What::Fill { value: Value::Text(text.to_owned()), field, enter: false }
}

/// Reads a task about one mail; `None` if it is about something else.
#[must_use]
pub fn read(tokens: &[Token]) -> Option<Vec<Step>> {
    let says = |words: &[&str]| tokens.iter().any(|t| t.is(words));
    // Steps that are written out ("open https://…", "click …, then …") are read as such.
    if tokens.len() > 40
        || says(&["http", "field", "fields", "url", "password", "then"])
        || tokens.iter().any(|t| t.low.contains("://"))
    {
        return None;
    }
    let quoted = tokens.iter().find(|t| t.quoted);
    let told =
        says(&["information", "sent"]) || quoted.is_some() && tokens.first().is_some_and(|t| t.is(&["tell", "email"]));
    if !tokens.iter().any(|t| is_mail(t) || owner(t).is_some()) && !told {
        return None;
    }
    let names: Vec<(usize, &str)> = tokens
        .iter()
        .enumerate()
        .filter(|(at, t)| {
            is_name(t, *at)
                || (*at == 0 && says(&["wants", "waiting"]) && t.text.chars().next().is_some_and(char::is_uppercase))
                || (*at == 0 && t.text.chars().next().is_some_and(char::is_uppercase) && owner(t).is_some())
        })
        .map(|(at, t)| (at, owner(t).unwrap_or(&t.text)))
        .collect();
    let is_after = |at: usize, words: &[&str]| at > 0 && tokens[at - 1].is(words);
    let from = names
        .iter()
        .find(|(at, _)| {
            is_after(*at, &["from", "by"]) || (is_after(*at, &["me"]) && *at > 1 && tokens[at - 2].is(&["by"]))
        })
        .or_else(|| {
            names.iter().find(|(at, _)| {
                is_after(*at, &["message", "email", "information", "mail", "the"])
                    && tokens.get(at + 1).is_some_and(|t| t.is(&["sent", "wrote"]))
            })
        })
        .or_else(|| {
            names.iter().find(|(at, _)| owner(&tokens[*at]).is_some() && tokens.get(at + 1).is_some_and(is_mail))
        })
        .or_else(|| names.iter().find(|(at, _)| tokens.get(at + 1).is_some_and(|t| t.is(&["sent", "wrote", "has"]))));
    let said = joined(tokens);
    let build = |whats: Vec<What>| {
        Some(whats.into_iter().map(|what| Step { said: said.clone(), what, optional: false }).collect())
    };
    let only = || from.or_else(|| names.first().filter(|_| names.len() == 1)).map(|(_, name)| *name);
    let body = Target { kind: Some(Kind::Area), said: "the text".to_owned(), ..Target::default() };

    if let (Some(text), true) = (quoted, says(&["reply", "respond", "answer", "tell", "saying"]) || told) {
        let who = only()?;
        return build(vec![press(who, None), press("reply", None), write(body, &text.text), press("send", None)]);
    }
    if quoted.is_some() {
        return None;
    }
    if says(&["delete", "deleted", "trash", "remove", "recycling", "bin", "rid", "erase"]) {
        let who = only()?;
        return build(vec![press("trash", Some(who))]);
    }
    if says(&["important", "star", "starred", "flag"]) {
        let who = only()?;
        return build(vec![press("star", Some(who))]);
    }
    let forwards = ["forward", "forwarded", "foward", "send", "sent", "resend", "give", "wants", "waiting", "pass"];
    if !says(&forwards) || names.len() < 2 {
        return None;
    }
    let first = tokens.first().filter(|t| t.text.chars().next().is_some_and(char::is_uppercase));
    let (at, sender) = *from?;
    let receiver = names.iter().filter(|(n, _)| *n != at).map(|(_, name)| *name).next_back();
    let receiver = first.filter(|_| says(&["wants", "waiting"])).map(|t| t.text.as_str()).or(receiver)?;
    let to = Target { kind: Some(Kind::Field), ..named("to") };
    build(vec![press(sender, None), press("forward", None), write(to, receiver), press("send", None)])
}

#[cfg(test)]
mod tests {
    use super::super::words::tokens;
    use super::*;

    fn pressed(text: &str) -> Vec<String> {
        let steps = read(&tokens(text)).unwrap_or_default();
        let words = steps.iter().map(|step| match &step.what {
            What::Click { target, .. } => {
                format!("{}{}", target.name, target.near.as_ref().map(|n| format!(" of {}", n.1)).unwrap_or_default())
            }
            What::Fill { value: Value::Text(text), .. } => format!("write {text}"),
            other => format!("{other:?}"),
        });
        words.collect()
    }

    #[test]
    fn sender_and_receiver_are_told_apart() {
        for text in [
            "Send Bettine the information Lidia sent to you in a mail.",
            "Forward the email from Lidia to Bettine.",
            "Find Lidia's email and send it to Bettine.",
        ] {
            assert_eq!(pressed(text), ["lidia", "forward", "write Bettine", "send"], "{text}");
        }
        assert_eq!(pressed("Please delete Amargo's emails."), ["trash of amargo"]);
        assert_eq!(pressed("Click \"Email\" and then click Save."), Vec::<String>::new());
    }
}
