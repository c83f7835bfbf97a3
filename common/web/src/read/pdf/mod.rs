//! The text of a PDF, page by page.
//!
//! Files are untrusted: unpacking has a budget, the work is counted and has a deadline, and panics are caught. Text that
//! nobody sees is left out as far as that can be known without rendering: text drawn without ink, unless it lies over the
//! picture of a scan; letters too small to read, transparent, or in the colour of what lies below them; what is cut off or
//! outside the page or covered by a box; hidden layers. What was added to a page is read as well: values of form fields, typed comments.

mod charset;
mod cmap;
mod collection;
mod font;
mod glyphs;
#[cfg(test)]
mod kinds;
mod layers;
mod layout;
mod page;
#[cfg(test)]
pub(super) mod samples;
mod space;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::{Duration, Instant};

use lopdf::{Document, LoadOptions, Object};

use super::text::{line, literal, visible};

/// Maximum number of pages read.
const MAX_PAGES: usize = 300;
/// Maximum number of bytes unpacked when the file is opened.
const MAX_UNPACKED: usize = 64 * 1024 * 1024;
/// Minimum part of `MAX_UNPACKED` that one object stream gets, in bytes.
const MIN_UNPACKED: usize = 256 * 1024;
/// Time limit; pages not read by then are left out.
const TIME: Duration = Duration::from_secs(4);
const MAX_TITLE_CHARS: usize = 300;

/// The content of a file.
#[derive(Debug, Default)]
pub(super) struct Read {
    pub(super) markdown: String,
    pub(super) title: String,
    pub(super) author: Option<String>,
    /// Creation date, as `YYYY-MM-DD`.
    pub(super) made: Option<String>,
    /// The file has more pages.
    pub(super) cut: bool,
}

/// Reads a file until there are `enough` bytes of text. The error is the reason why there is no text.
pub(super) fn read(body: &[u8], enough: usize) -> Result<Read, &'static str> {
    catch_unwind(AssertUnwindSafe(|| read_checked(body, enough))).unwrap_or(Err("damaged"))
}

/// Whether the first 1,024 bytes contain `%PDF-`.
pub(super) fn is_pdf(body: &[u8]) -> bool {
    body[..body.len().min(1024)].windows(5).any(|run| run == b"%PDF-")
}

fn read_checked(body: &[u8], enough: usize) -> Result<Read, &'static str> {
    let until = Instant::now() + TIME;
    // The library limits each object stream on its own, so the budget is divided by their number.
    let limit = (MAX_UNPACKED / object_streams(body).max(1)).max(MIN_UNPACKED);
    if object_streams(body).saturating_mul(limit) > 2 * MAX_UNPACKED {
        return Err("too large");
    }
    let options = LoadOptions::with_max_decompressed_size(limit);
    let document = Document::load_mem_with_options(body, options).map_err(|_| "damaged")?;
    let mut read = Read::default();
    about(&document, &mut read);
    let mut reader = page::Reader::new(&document, until);
    let mut pages = document.page_iter().enumerate();
    for (index, id) in pages.by_ref().take(MAX_PAGES) {
        let text = page::text_of(&mut reader, id);
        let text = visible(&text);
        if !text.trim().is_empty() {
            if index > 0 {
                read.markdown.push_str(&format!("\n\n## Page {}\n\n", index + 1));
            }
            read.markdown.push_str(&untagged(text.trim()));
        }
        if reader.budget.is_spent() || read.markdown.len() > enough {
            read.cut = true;
            break;
        }
    }
    read.cut |= pages.next().is_some();
    if read.markdown.is_empty() {
        let encrypted = document.is_encrypted() || document.was_encrypted() || document.trailer.has(b"Encrypt");
        return Err(match () {
            // Some encrypted files open with the empty password.
            () if encrypted || contains(body, b"/Encrypt") => "encrypted",
            () if reader.budget.is_spent() => "too large",
            // OCR would be needed.
            () => "no text, only pictures",
        });
    }
    if !read.title.is_empty() {
        read.markdown.insert_str(0, &format!("# {}\n\n", literal(&read.title)));
    }
    Ok(read)
}

/// Escapes `<` where it would start an HTML tag or comment.
fn untagged(text: &str) -> String {
    let mut marked = String::with_capacity(text.len());
    let mut letters = text.chars().peekable();
    while let Some(letter) = letters.next() {
        let opens = |next: &char| next.is_ascii_alphabetic() || matches!(next, '/' | '!' | '?');
        if letter == '<' && letters.peek().is_some_and(opens) {
            marked.push('\\');
        }
        marked.push(letter);
    }
    marked
}

fn contains(body: &[u8], word: &[u8]) -> bool {
    body.windows(word.len()).any(|run| run == word)
}

/// Upper bound of the number of object streams. A name may be written with escapes, so those are counted too.
fn object_streams(body: &[u8]) -> usize {
    let named = body.windows(6).filter(|run| *run == b"ObjStm").count();
    let escaped = body.windows(2).enumerate();
    let escaped = escaped.filter(|(at, run)| {
        let after = &body[at + 2..body.len().min(at + 8)];
        (run == b"/#" || run == b"/O" || run == b"/o") && (run[1] == b'#' || after.contains(&b'#'))
    });
    named + escaped.count()
}

/// Reads title, author and creation date.
fn about(document: &Document, read: &mut Read) {
    let info = document.trailer.get(b"Info").ok().and_then(|info| document.dereference(info).ok());
    let Some(info) = info.and_then(|(_, info)| info.as_dict().ok()) else { return };
    let text = |name: &[u8]| {
        let value = document.dereference(info.get(name).ok()?).ok()?.1;
        lopdf::decode_text_string(value).ok().map(|text| line(&text, MAX_TITLE_CHARS)).filter(|text| !text.is_empty())
    };
    read.title = text(b"Title").unwrap_or_default();
    read.author = text(b"Author");
    let made = info.get(b"CreationDate").ok().and_then(|value| match value {
        Object::String(bytes, _) => std::str::from_utf8(bytes).ok(),
        _ => None,
    });
    // D:20260304073000+01'00'
    let digits = made.and_then(|made| made.strip_prefix("D:")).filter(|made| made.len() >= 8 && made.is_ascii());
    read.made = digits.map(|digits| format!("{}-{}-{}", &digits[..4], &digits[4..6], &digits[6..8]));
    read.made.take_if(|day| chrono::NaiveDate::parse_from_str(day, "%Y-%m-%d").is_err());
}

#[cfg(test)]
mod tests {
    use super::samples::{Sample, hostile};
    use super::*;

    #[test]
    fn text_is_read_in_lines_and_paragraphs() {
        let read = read(&Sample::report().bytes(), 50_000).unwrap();
        assert_eq!((read.title.as_str(), read.made.as_deref()), ("Report on the harbour", Some("2026-03-04")));
        let expected = "# Report on the harbour\n\nThe harbour was dredged in March and is eleven metres deep again.\n\n\
                        A second paragraph says that the quay wall holds.\n\n## Page 2\n\nÜber den Kai – “quoted” and hyphenated.";
        assert_eq!(read.markdown, expected);
        assert!(!read.cut);
    }

    #[test]
    fn invisible_text_is_left_out() {
        let read = read(&Sample::with_hidden().bytes(), 50_000).unwrap();
        assert!(read.markdown.contains("Seen by everybody"), "{}", read.markdown);
        for hidden in ["drawn by no pen", "white on white", "too small"] {
            assert!(!read.markdown.contains(hidden), "{hidden}: {}", read.markdown);
        }
        assert!(read.markdown.contains("White on black"), "{}", read.markdown);
    }

    #[test]
    fn markup_in_text_is_escaped() {
        let read = read(&Sample::with_markup().bytes(), 50_000).unwrap();
        assert_eq!(read.title, "<img src=x onerror=alert(1)> [a](javascript:b)");
        let expected = "# \\<img src=x onerror=alert(1)> \\[a\\](javascript:b)\n\nDepth < 3 and \\<script>alert(2)\\</script> \\<!-- x -->";
        assert_eq!(read.markdown, expected);
    }

    #[test]
    fn unreadable_files_give_a_reason() {
        assert_eq!(read(b"%PDF-1.7\nnothing else", 1_000).unwrap_err(), "damaged");
        assert_eq!(read(&Sample::picture().bytes(), 1_000).unwrap_err(), "no text, only pictures");
        let reason = read(&Sample::encrypted().bytes(), 1_000).unwrap_err();
        assert_eq!(reason, "encrypted");
    }

    #[test]
    fn hostile_files_end_in_time() {
        for (name, body) in hostile() {
            let begun = Instant::now();
            let outcome = read(&body, 50_000);
            let text = outcome.map_or(0, |read| read.markdown.len());
            assert!(begun.elapsed() < TIME + Duration::from_secs(8), "{name}: {:?}", begun.elapsed());
            assert!(text <= 4_000_000, "{name}: {text}");
        }
    }

    #[test]
    fn broken_copies_of_a_good_file_never_panic() {
        let good = Sample::report().bytes();
        for seed in 0..300_usize {
            let mut body = good.clone();
            let at = (seed * 7_919) % body.len();
            body[at] = body[at].wrapping_add(1 + (seed % 250) as u8);
            if seed % 3 == 0 {
                body.truncate((seed * 104_729) % body.len());
            }
            let _ = read_checked(&body, 50_000);
        }
    }
}
