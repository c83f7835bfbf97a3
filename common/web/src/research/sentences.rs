//! Splits text into sentences.

/// Abbreviations whose dot does not end a sentence.
const SHORT: &str = "mr mrs ms dr prof st vs etc approx no nos vol fig inc ltd co corp dept est e.g i.e cf al jr sr gen col sgt \
    capt rev hon jan feb mar apr jun jul aug sep sept oct nov dec p pp ca bzw z.b d.h usw u.a nr art";

/// The sentences of a line, as slices of it.
pub fn sentences(line: &str) -> Vec<&str> {
    let mut sentences = Vec::new();
    let mut begin = 0;
    let mut letters = line.char_indices().peekable();
    while let Some((at, letter)) = letters.next() {
        let wide = matches!(letter, '。' | '！' | '？');
        if !wide && !matches!(letter, '.' | '!' | '?' | '…') {
            continue;
        }
        let mut end = at + letter.len_utf8();
        // Closing quotation marks and brackets belong to the sentence.
        while let Some((at, closing)) = letters.peek().copied() {
            if !matches!(closing, '"' | '\'' | ')' | ']' | '”' | '’' | '»' | '.' | '!' | '?' | '」') {
                break;
            }
            end = at + closing.len_utf8();
            letters.next();
        }
        let after = &line[end..];
        let ends = wide || after.is_empty() || after.starts_with(char::is_whitespace) && begins(after.trim_start());
        if ends && !(letter == '.' && is_short(&line[begin..at])) {
            sentences.push(line[begin..end].trim());
            begin = end;
        }
    }
    sentences.push(line[begin..].trim());
    sentences.retain(|sentence| !sentence.is_empty());
    sentences
}

fn begins(text: &str) -> bool {
    text.starts_with(|letter: char| !letter.is_lowercase() && !matches!(letter, ',' | ';' | ':' | '–' | '-' | ')'))
}

/// Whether the text ends in an abbreviation or an initial.
fn is_short(text: &str) -> bool {
    let last =
        text.rsplit(|letter: char| letter.is_whitespace() || matches!(letter, '(' | '"')).next().unwrap_or_default();
    let letters = last.chars().count();
    let is_initial = letters == 1 && last.chars().all(|letter| letter.is_alphabetic());
    let lower = last.to_lowercase();
    is_initial || SHORT.split_whitespace().any(|short| short == lower)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_become_sentences() {
        assert_eq!(
            sentences(
                "Dr. A. Stone built it in 1862. It cost 3.5 million! \"Why?\" he asked. e.g. this one, No. 5 ends"
            ),
            ["Dr. A. Stone built it in 1862.", "It cost 3.5 million!", "\"Why?\" he asked. e.g. this one, No. 5 ends"]
        );
        assert_eq!(sentences("灯台は高い。三十メートル。"), ["灯台は高い。", "三十メートル。"]);
    }
}
