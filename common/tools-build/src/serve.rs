//! What visitors of sites are served: `/<slug>/…` is the current version, `/<slug>/v<n>/…` that version for ever. Sites have a
//! host of their own, so that nothing on them is of the service's origin.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use base::clock::Timestamp;
use base::ids::RequestId;
use platform::store::{Blobs, Db, StoreError, Write};
use serde::Deserialize;
use uuid::Uuid;

use crate::site::{self, ROOT, Site, State};

/// The policy of every page: its own styles, fonts and pictures, its form, and nothing else. No script runs.
pub const POLICY: &str = "default-src 'none'; style-src 'self'; font-src 'self'; img-src 'self' data:; form-action 'self'; \
                          base-uri 'none'; frame-ancestors 'none'";
/// Most bytes that a site serves in a UTC day.
pub const MAX_BYTES_A_DAY: u64 = 2 << 30;
/// The bytes of a site are counted in the database in steps of this many.
const STEP: u64 = 4 << 20;
/// Most sites whose bytes are counted in a process at once.
const MAX_COUNTED: usize = 1_000;

/// The answer to a visitor.
#[derive(Debug, PartialEq, Eq)]
pub enum Served {
    File {
        content_type: &'static str,
        bytes: Vec<u8>,
        max_age_secs: u32,
        build: Uuid,
    },
    /// The page of the site that says that there is no such page.
    Missing {
        bytes: Vec<u8>,
        build: Uuid,
    },
    /// To this path.
    Moved(String),
    /// The site was taken down, or its time is over.
    Gone,
    /// There is no such site.
    Nothing,
}

/// A path below the host, taken apart.
#[derive(Debug, PartialEq, Eq)]
struct Wanted<'a> {
    slug: &'a str,
    build: Uuid,
    version: Option<u32>,
    /// Of the file, such as `/about/index.html`.
    path: String,
}

/// # Errors
/// If the database or the blob store fails.
pub async fn serve(db: &Db, blobs: &dyn Blobs, path: &str) -> Result<Served, StoreError> {
    let wanted = match wanted(path) {
        Ok(wanted) => wanted,
        Err(moved) => return Ok(moved.map_or(Served::Nothing, Served::Moved)),
    };
    let site: Option<Site> = db.get(&db.tables.agents, site::key(wanted.build)).await?;
    let Some(site) = site.filter(|site| site.slug == wanted.slug) else { return Ok(Served::Nothing) };
    if site.state != State::Live {
        return Ok(Served::Gone);
    }
    let job = match wanted.version {
        None => site.job,
        Some(number) => match site::load_version(db, site.build, number).await? {
            Some(version) => version.job,
            None => return missing(blobs, &site, site.job).await,
        },
    };
    let Some(content_type) = content_type(&wanted.path) else { return missing(blobs, &site, job).await };
    let Some(bytes) = blobs.get(&site::blob_key(site.build, job, &wanted.path)).await? else {
        return missing(blobs, &site, job).await;
    };
    let root = match wanted.version {
        None => format!("/{}", site.slug),
        Some(number) => format!("/{}/v{number}", site.slug),
    };
    let is_font = content_type == "font/woff2";
    let max_age_secs = if wanted.version.is_some() || is_font { 86_400 } else { 60 };
    Ok(Served::File { content_type, bytes: rooted(content_type, &bytes, &root), max_age_secs, build: site.build })
}

async fn missing(blobs: &dyn Blobs, site: &Site, job: RequestId) -> Result<Served, StoreError> {
    let page = blobs.get(&site::blob_key(site.build, job, "/404.html")).await?;
    let bytes = rooted("text/html; charset=utf-8", &page.unwrap_or_default(), &format!("/{}", site.slug));
    Ok(Served::Missing { bytes, build: site.build })
}

/// What a path asks for. `Err(Some(_))`: where it has moved.
fn wanted(path: &str) -> Result<Wanted<'_>, Option<String>> {
    let rest = path.strip_prefix('/').ok_or(None)?;
    let (slug, rest) = rest.split_once('/').map_or((rest, None), |(slug, rest)| (slug, Some(rest)));
    let build = site::build_of(slug).ok_or(None)?;
    let Some(rest) = rest else { return Err(Some(format!("/{slug}/"))) };
    if rest.split('/').any(|part| part.starts_with('.')) || rest.contains(['%', '\\', '\0']) {
        return Err(None);
    }
    let number = |part: &str| part.strip_prefix('v')?.parse::<u32>().ok();
    let (version, rest) = match rest.split_once('/') {
        Some((first, after)) if number(first).is_some() => (number(first), after),
        None if number(rest).is_some() => return Err(Some(format!("{path}/"))),
        _ => (None, rest),
    };
    let path = match rest {
        "" => "/index.html".to_owned(),
        folder if folder.ends_with('/') => format!("/{folder}index.html"),
        file if file.rsplit('/').next().is_some_and(|name| name.contains('.')) => format!("/{file}"),
        _ => return Err(Some(format!("{path}/"))),
    };
    Ok(Wanted { slug, build, version, path })
}

fn content_type(path: &str) -> Option<&'static str> {
    Some(match path.rsplit_once('.')?.1 {
        "html" => "text/html; charset=utf-8",
        "css" => "text/css; charset=utf-8",
        "svg" => "image/svg+xml",
        "woff2" => "font/woff2",
        "txt" => "text/plain; charset=utf-8",
        "xml" => "application/xml",
        "png" => "image/png",
        "jpg" => "image/jpeg",
        _ => return None,
    })
}

/// A stored file with the site's address path in it.
pub fn rooted(content_type: &str, bytes: &[u8], root: &str) -> Vec<u8> {
    let is_text = content_type.starts_with("text/") || content_type.contains("xml");
    match std::str::from_utf8(bytes) {
        Ok(text) if is_text && text.contains(ROOT) => text.replace(ROOT, root).into_bytes(),
        _ => bytes.to_vec(),
    }
}

/// Counts the bytes that sites serve. A process keeps small amounts to itself, so that a page does not cost a write.
#[derive(Default)]
pub struct Traffic(Mutex<HashMap<Uuid, Counted>>);

#[derive(Clone, Copy, Default)]
struct Counted {
    day: i64,
    /// Not yet in the database.
    pending: u64,
    /// In the database when it was last written.
    total: u64,
}

#[derive(Deserialize)]
struct Day {
    #[serde(default)]
    bytes: u64,
}

impl Traffic {
    /// Counts an answer. False if the site has served as much today as it may.
    ///
    /// # Errors
    /// If the database fails.
    pub async fn take(&self, db: &Db, build: Uuid, bytes: usize, now: Timestamp) -> Result<bool, StoreError> {
        let day = now.secs().div_euclid(24 * 3600);
        let pending = {
            let mut counted = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            if counted.len() >= MAX_COUNTED && !counted.contains_key(&build) {
                counted.clear();
            }
            let of = counted.entry(build).or_default();
            if of.day != day {
                *of = Counted { day, ..Counted::default() };
            }
            of.pending += bytes as u64;
            if of.total + of.pending > MAX_BYTES_A_DAY {
                return Ok(false);
            }
            if of.pending < STEP {
                return Ok(true);
            }
            std::mem::take(&mut of.pending)
        };
        let add =
            Write::update(&db.tables.agents, site::day_key(build, now), "SET #expires = :expires ADD #bytes :bytes")
                .bind("bytes", pending)?
                .bind("expires", (day + 2) * 24 * 3600)?;
        db.write(add).await.map_err(StoreError::new)?;
        let stored: Option<Day> = db.get(&db.tables.agents, site::day_key(build, now)).await?;
        let total = stored.map_or(pending, |day| day.bytes);
        let mut counted = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        counted.entry(build).or_default().total = total;
        Ok(total <= MAX_BYTES_A_DAY)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_name_a_site_a_version_and_a_file() {
        let slug = format!("four-miche-{}", Uuid::nil().simple());
        let file = |path: &str| {
            let path = format!("/{slug}{path}");
            wanted(&path)
                .map(|wanted| (wanted.version, wanted.path))
                .map_err(|moved| moved.map(|to| to.replace(&slug, "S")))
        };
        let some = |version, path: &str| Ok((version, path.to_owned()));
        assert_eq!(file("/"), some(None, "/index.html"));
        assert_eq!(file("/about/"), some(None, "/about/index.html"));
        assert_eq!(file("/style.css"), some(None, "/style.css"));
        assert_eq!(file("/v3/"), some(Some(3), "/index.html"));
        assert_eq!(file("/v3/a/b.svg"), some(Some(3), "/a/b.svg"));
        for (from, to) in [("", "/S/"), ("/about", "/S/about/"), ("/v3", "/S/v3/"), ("/v3/a", "/S/v3/a/")] {
            assert_eq!(file(from), Err(Some(to.to_owned())), "{from}");
        }
        for hidden in ["/../x.html", "/.env", "/a/./b.html", "/%2e%2e/a.html", "/a\\b.html"] {
            assert_eq!(file(hidden), Err(None), "{hidden}");
        }
        for path in ["/", "", "//", "/x/", "/favicon.ico", "x"] {
            assert!(matches!(wanted(path), Err(None)), "{path}");
        }
    }

    #[test]
    fn only_texts_get_an_address() {
        let text = format!("<a href=\"{ROOT}/about/\">");
        assert_eq!(rooted("text/html; charset=utf-8", text.as_bytes(), "/s/v2"), b"<a href=\"/s/v2/about/\">");
        assert_eq!(rooted("text/html", text.as_bytes(), ""), b"<a href=\"/about/\">");
        assert_eq!(rooted("font/woff2", text.as_bytes(), ""), text.as_bytes());
        assert_eq!(rooted("text/html", &[0xff, 0xfe], ""), [0xff, 0xfe]);
    }
}
