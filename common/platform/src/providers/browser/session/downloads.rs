//! Files that a session's pages send. The browser keeps none, so they are taken from the responses.

use base::encoding::{base64_any, percent_decoded};
use serde_json::json;
use url::Url;

use super::shared::State;
use super::{ActError, MAX_DOWNLOAD, MAX_DOWNLOADS, Session};
use crate::net::{Exchanged, essence};

/// A file that a page sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Download {
    /// As the site names it: one part of a path, at most 100 characters.
    pub name: String,
    pub content_type: String,
    pub bytes: Vec<u8>,
    pub url: String,
}

/// A file that a page made itself, at an address that is valid only there.
pub(super) struct MadeFile {
    pub session: String,
    pub frame: String,
    pub url: String,
    pub name: String,
}

/// Reads such a file, as a `data:` address.
const TAKE: &str = "async function(url, most) { const file = await (await fetch(url)).blob(); \
    if (file.size > most) return null; const reader = new FileReader(); \
    return new Promise((done) => { reader.onload = () => done(reader.result); reader.readAsDataURL(file); }); }";

/// Whether a response to a navigation is a file: it says so, or a browser cannot show it.
pub(super) fn is_file(answer: &Exchanged) -> bool {
    if !(200..300).contains(&answer.status) || matches!(answer.status, 204 | 205) {
        return false;
    }
    let disposition = answer.header("content-disposition").unwrap_or_default().trim_start().to_ascii_lowercase();
    let kind = essence(answer.header("content-type").unwrap_or_default());
    let is_shown = kind.is_empty()
        || ["text/", "image/", "video/", "audio/"].iter().any(|start| kind.starts_with(start))
        || ["+xml", "/xml", "/json", "+json", "/javascript"].iter().any(|end| kind.ends_with(end));
    disposition.starts_with("attachment") || !is_shown || kind == "text/csv" || kind == "text/calendar"
}

/// The name that a response gives its file: from `Content-Disposition`, else from its address.
fn name_of(answer: &Exchanged, url: &Url) -> String {
    let disposition = answer.header("content-disposition").unwrap_or_default();
    let value = |key: &str| {
        let found = disposition.split(';').skip(1).map(str::trim).find_map(|field| {
            let (name, value) = field.split_once('=')?;
            name.trim().eq_ignore_ascii_case(key).then(|| value.trim().trim_matches('"'))
        })?;
        Some(found.to_owned())
    };
    let extended = value("filename*").and_then(|value| value.splitn(3, '\'').nth(2).map(percent_decoded));
    let last = || url.path_segments().and_then(|mut parts| parts.next_back()).map(percent_decoded);
    safe(&extended.or_else(|| value("filename")).or_else(last).unwrap_or_default())
}

/// One part of a path, without signs that mean something to a shell, a file system or a header.
fn safe(name: &str) -> String {
    let last = name.rsplit(['/', '\\']).next().unwrap_or_default();
    let is_odd = |sign: char| sign.is_control() || "\"<>:|?*".contains(sign);
    let kept: String = last.chars().map(|sign| if is_odd(sign) { '_' } else { sign }).take(100).collect();
    let kept = kept.trim_matches(['.', ' ']);
    if kept.is_empty() { "download".to_owned() } else { kept.to_owned() }
}

impl State {
    /// Keeps the file of a response, if there is room.
    pub fn keep(&mut self, url: &Url, answer: Exchanged) {
        let name = name_of(&answer, url);
        let content_type = answer.header("content-type").unwrap_or("application/octet-stream").to_owned();
        if answer.truncated {
            return self.refuse("GET", url.as_str(), "the file is larger than 20 MB, or ended early");
        }
        self.keep_file(Download { name, content_type, bytes: answer.body, url: url.to_string() });
    }

    pub fn keep_file(&mut self, mut file: Download) {
        file.name = safe(&file.name);
        if self.downloads.len() >= MAX_DOWNLOADS {
            self.refuse("GET", &file.url, "too many files were downloaded");
        } else if file.bytes.len() > MAX_DOWNLOAD {
            self.refuse("GET", &file.url, "the file is larger than 20 MB");
        } else {
            self.downloads.push(file);
        }
    }

    /// The page names a file in its link.
    pub fn name_download(&mut self, url: &str, name: &str) {
        if let Some(file) = self.downloads.iter_mut().rev().find(|file| file.url == url)
            && !name.is_empty()
        {
            file.name = safe(name);
        }
    }
}

impl Session {
    /// Takes the files that pages made since the last call.
    pub(super) async fn take_made(&self) -> Result<(), ActError> {
        let made = std::mem::take(&mut self.shared.state().made);
        for MadeFile { session, frame, url, name } in made.into_iter().take(MAX_DOWNLOADS) {
            let taken = self.in_frame(&frame, &session, TAKE, &[json!(url), json!(MAX_DOWNLOAD)]).await;
            let taken = match taken {
                Err(error @ ActError::Lost(_)) => return Err(error),
                taken => taken.unwrap_or_default(),
            };
            let parts = taken.as_str().and_then(|data| data.strip_prefix("data:")?.split_once(";base64,"));
            let file = parts.and_then(|(kind, text)| Some((kind.to_owned(), base64_any(text)?)));
            let mut state = self.shared.state();
            match file {
                Some((content_type, bytes)) => state.keep_file(Download { name, content_type, bytes, url }),
                None => {
                    state.refuse("GET", &name, "the file that the page made cannot be read, or is larger than 20 MB")
                }
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(kind: &str, disposition: &str) -> Exchanged {
        let headers = [("content-type", kind), ("content-disposition", disposition)];
        let headers = headers.into_iter().filter(|(_, value)| !value.is_empty());
        let headers = headers.map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
        Exchanged { status: 200, headers, body: b"x".to_vec(), truncated: false }
    }

    #[test]
    fn files_are_told_from_pages_and_named_safely() {
        let url = Url::parse("https://a.example/files/r%C3%A9sum%C3%A9.pdf?x=1").unwrap();
        for (kind, disposition, name) in [
            ("application/pdf", "", Some("résumé.pdf")),
            ("text/html; charset=utf-8", "", None),
            ("application/xhtml+xml", "inline", None),
            ("", "", None),
            ("text/csv", "", Some("résumé.pdf")),
            ("text/html", "attachment; filename=\"../../etc/a b.html\"", Some("a b.html")),
            ("text/html", "ATTACHMENT; filename=x; filename*=UTF-8''%C3%BCber.txt", Some("über.txt")),
            ("text/html", "attachment; filename=\"..\"", Some("download")),
        ] {
            let answer = answer(kind, disposition);
            assert_eq!(is_file(&answer).then(|| name_of(&answer, &url)).as_deref(), name, "{kind} {disposition}");
        }
    }

    #[test]
    fn only_a_few_files_are_kept() {
        let (url, mut state) = (Url::parse("https://a.example/a").unwrap(), State::default());
        for _ in 0..=MAX_DOWNLOADS {
            state.keep(&url, answer("application/zip", ""));
        }
        assert_eq!((state.downloads.len(), state.refused.len()), (MAX_DOWNLOADS, 1));
        state.name_download(url.as_str(), "b/c.zip");
        assert_eq!(state.downloads[MAX_DOWNLOADS - 1].name, "c.zip");
    }
}
