//! Removes Markdown markup from a line.

/// One line without markup: links become their text, images are removed.
pub fn plain(markdown: &str) -> String {
    written(markdown, true)
}

/// Whether all words of a line are in links: a menu, or the title of another page.
pub fn is_only_links(markdown: &str) -> bool {
    let has_words = |text: &str| text.chars().any(char::is_alphanumeric);
    has_words(&plain(markdown)) && !has_words(&written(markdown, false))
}

fn written(markdown: &str, with_links: bool) -> String {
    let mut plain = String::with_capacity(markdown.len());
    let mut rest = markdown;
    while let Some(letter) = rest.chars().next() {
        let after = &rest[letter.len_utf8()..];
        match letter {
            '\\' if after.starts_with(|next: char| next.is_ascii_punctuation()) => {
                plain.extend(after.chars().next());
                rest = &after[1..];
            }
            '!' if after.starts_with('[') && link(after).is_some() => {
                rest = link(after).map_or(after, |(_, after)| after);
            }
            '[' => match link(rest) {
                Some((words, after)) => {
                    if with_links {
                        plain.push_str(&self::plain(words));
                    }
                    rest = after;
                }
                None => {
                    plain.push('[');
                    rest = after;
                }
            },
            '<' if address(after).is_some() => rest = address(after).unwrap_or_default(),
            '*' | '`' => rest = after,
            '~' if after.starts_with('~') => rest = &after[1..],
            '_' => {
                // An underscore within a word is kept.
                let inside = plain.ends_with(char::is_alphanumeric) && after.starts_with(char::is_alphanumeric);
                if inside {
                    plain.push('_');
                }
                rest = after;
            }
            _ => {
                plain.push(letter);
                rest = after;
            }
        }
    }
    plain.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// The text of the link that begins here, and the rest of the line.
fn link(text: &str) -> Option<(&str, &str)> {
    let close = closing(text, b'[', b']')?;
    let target = &text[close + 1..];
    let end = if target.starts_with('(') {
        closing(target, b'(', b')')?
    } else if target.starts_with('[') {
        closing(target, b'[', b']')?
    } else {
        return None;
    };
    Some((&text[1..close], &target[end + 1..]))
}

/// The position of the bracket that closes the first one. Searches a limited distance, so that many unclosed brackets cost
/// little.
fn closing(text: &str, open: u8, close: u8) -> Option<usize> {
    let mut depth = 0;
    let mut escaped = false;
    for (at, byte) in text.bytes().enumerate().take(3_000) {
        match byte {
            _ if escaped => escaped = false,
            b'\\' => escaped = true,
            byte if byte == open => depth += 1,
            byte if byte == close => {
                depth -= 1;
                if depth == 0 {
                    return Some(at);
                }
            }
            _ => {}
        }
    }
    None
}

/// The text after an address in angle brackets.
fn address(after: &str) -> Option<&str> {
    let (inner, rest) = after.split_once('>')?;
    let is_address = inner.starts_with("http") || inner.starts_with("mailto:");
    (is_address && !inner.contains(char::is_whitespace)).then_some(rest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn markup_is_removed() {
        assert_eq!(
            plain(
                "**The** [tall *light*](http://x.example/a_(b) \"t\") ![pic](y.png)is `31 m` snake_case \\*high\\* <https://z.example>"
            ),
            "The tall light is 31 m snake_case *high*"
        );
        assert_eq!(plain("a [b] c ![d e"), "a [b] c ![d e");
        assert!(plain(&"[".repeat(50_000)).len() == 50_000);
        assert!(
            is_only_links("**[Tides](/a)** | [Ferries](/b)")
                && !is_only_links("[Tides](/a) turn.")
                && !is_only_links("—")
        );
    }
}
