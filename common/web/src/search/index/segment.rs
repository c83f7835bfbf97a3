//! A segment: some pages and their postings, in one immutable blob that is searched in memory without unpacking the
//! postings.
//!
//! ```text
//! "ASG1"  u32 packed size of the pages  pages (deflated JSON)  u32 terms  u32 offset of each  entries
//! entry:  u8 size  term  (varint page number, u8 weight)…
//! ```
//!
//! Numbers are little-endian. Entries are sorted by term: opening a segment decodes only the pages, and looking up a term
//! is a binary search. Equal pages give equal bytes, so a segment is named by its digest.

use std::collections::BTreeMap;

use base::clock::Timestamp;
use base::digest;
use platform::store::StoreError;
use serde::{Deserialize, Serialize};

use super::page::StoredPage;
use super::words;

const MAGIC: &[u8; 4] = b"ASG1";
/// Maximum size of a segment's pages, unpacked, in bytes: a guard against blobs that this service did not write.
const MAX_PAGES_BYTES: usize = 32 * 1024 * 1024;

/// A page without its text.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Doc {
    /// Blob key of the [`StoredPage`].
    pub key: String,
    pub url: String,
    /// See [`super::super::address::same_page`].
    pub same: String,
    pub title: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub site: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub published_at: Option<String>,
    pub read_at: Timestamp,
    /// Words of the text.
    pub length: u32,
}

pub struct Segment {
    pub docs: Vec<Doc>,
    bytes: Vec<u8>,
    /// Start of the offset table, and the number of terms.
    table: usize,
    terms: usize,
}

/// Postings of a segment that is being written.
type Postings = BTreeMap<String, Vec<(u32, u8)>>;

impl Segment {
    /// Encodes a segment of these pages (blob key, page).
    pub fn of(pages: &[(String, StoredPage)]) -> Result<Vec<u8>, StoreError> {
        let mut postings = Postings::new();
        let mut docs = Vec::with_capacity(pages.len());
        for (number, (key, page)) in (0..).zip(pages) {
            let counted = words::count(page);
            for (term, weight) in counted.terms {
                postings.entry(term).or_default().push((number, weight));
            }
            docs.push(Doc {
                key: key.clone(),
                url: page.url.clone(),
                same: page.same.clone(),
                title: page.title.clone(),
                site: page.site.clone(),
                published_at: page.published_at.clone(),
                read_at: page.read_at,
                length: counted.length,
            });
        }
        write(&docs, &postings)
    }

    /// Merges segments into one, without their deleted pages.
    pub fn merged(parts: &[(&Segment, &[u32])]) -> Result<Vec<u8>, StoreError> {
        let mut postings = Postings::new();
        let mut docs = Vec::new();
        for (segment, deleted) in parts {
            let mut numbers = Vec::with_capacity(segment.docs.len());
            for (number, doc) in (0..).zip(&segment.docs) {
                let alive = deleted.binary_search(&number).is_err();
                numbers.push(alive.then_some(docs.len() as u32));
                if alive {
                    docs.push(doc.clone());
                }
            }
            for index in 0..segment.terms {
                let (term, entry) = segment.entry(index).ok_or_else(broken)?;
                let kept =
                    Entry { rest: entry }.filter_map(|(doc, weight)| Some(((*numbers.get(doc as usize)?)?, weight)));
                let kept: Vec<(u32, u8)> = kept.collect();
                if !kept.is_empty() {
                    let term = std::str::from_utf8(term).map_err(StoreError::new)?;
                    postings.entry(term.to_owned()).or_default().extend(kept);
                }
            }
        }
        write(&docs, &postings)
    }

    pub fn open(bytes: Vec<u8>) -> Result<Segment, StoreError> {
        if bytes.get(..4) != Some(MAGIC) {
            return Err(broken());
        }
        let packed = number(&bytes, 4).ok_or_else(broken)?;
        let packed = bytes.get(8..8 + packed).ok_or_else(broken)?;
        let table = 8 + packed.len() + 4;
        let terms = number(&bytes, table - 4).ok_or_else(broken)?;
        let docs = miniz_oxide::inflate::decompress_to_vec_with_limit(packed, MAX_PAGES_BYTES).map_err(|_| broken())?;
        let docs = serde_json::from_slice(&docs).map_err(StoreError::new)?;
        if terms.checked_mul(4).and_then(|size| bytes.len().checked_sub(table + size)).is_none() {
            return Err(broken());
        }
        Ok(Segment { docs, bytes, table, terms })
    }

    /// Size in bytes.
    pub fn size(&self) -> usize {
        self.bytes.len()
    }

    /// Postings of a term: page number and weight.
    pub fn pages_with(&self, term: &str) -> impl Iterator<Item = (u32, u8)> + '_ {
        let (mut low, mut high) = (0, self.terms);
        while low < high {
            let middle = low.midpoint(high);
            match self.entry(middle) {
                Some((other, _)) if other < term.as_bytes() => low = middle + 1,
                Some(_) => high = middle,
                None => break,
            }
        }
        let found = self.entry(low).filter(|(other, _)| *other == term.as_bytes());
        Entry { rest: found.map_or(&[], |(_, rest)| rest) }
    }

    /// Every term, sorted.
    pub fn terms(&self) -> impl Iterator<Item = &str> {
        (0..self.terms).filter_map(|index| std::str::from_utf8(self.entry(index)?.0).ok())
    }

    /// A term and its encoded postings.
    fn entry(&self, index: usize) -> Option<(&[u8], &[u8])> {
        if index >= self.terms {
            return None;
        }
        let start = self.table + 4 * self.terms;
        let from = start + number(&self.bytes, self.table + 4 * index)?;
        let to = match index + 1 < self.terms {
            true => start + number(&self.bytes, self.table + 4 * (index + 1))?,
            false => self.bytes.len(),
        };
        let (size, rest) = self.bytes.get(from..to)?.split_first()?;
        rest.split_at_checked(usize::from(*size))
    }
}

/// Decodes postings. A malformed byte ends them.
struct Entry<'a> {
    rest: &'a [u8],
}

impl Iterator for Entry<'_> {
    type Item = (u32, u8);

    fn next(&mut self) -> Option<(u32, u8)> {
        let doc = varint(&mut self.rest)?;
        let (weight, rest) = self.rest.split_first()?;
        self.rest = rest;
        Some((doc, *weight))
    }
}

fn write(docs: &[Doc], postings: &Postings) -> Result<Vec<u8>, StoreError> {
    let docs = serde_json::to_vec(docs).map_err(StoreError::new)?;
    let docs = miniz_oxide::deflate::compress_to_vec(&docs, 6);
    let mut bytes = MAGIC.to_vec();
    push_number(&mut bytes, docs.len())?;
    bytes.extend(docs);
    push_number(&mut bytes, postings.len())?;
    let (mut offsets, mut entries) = (Vec::new(), Vec::new());
    for (term, pages) in postings {
        push_number(&mut offsets, entries.len())?;
        entries.push(u8::try_from(term.len()).map_err(StoreError::new)?);
        entries.extend(term.as_bytes());
        for (doc, weight) in pages {
            push_varint(&mut entries, *doc);
            entries.push(*weight);
        }
    }
    bytes.extend(offsets);
    bytes.extend(entries);
    Ok(bytes)
}

/// Blob key of a segment.
pub fn key_of(bytes: &[u8]) -> String {
    format!("index/segments/{}", const_hex::encode(&digest::sha256(bytes)[..20]))
}

fn broken() -> StoreError {
    StoreError::new("a blob is not a segment of the search index")
}

fn number(bytes: &[u8], at: usize) -> Option<usize> {
    let four: [u8; 4] = bytes.get(at..at + 4)?.try_into().ok()?;
    usize::try_from(u32::from_le_bytes(four)).ok()
}

fn push_number(bytes: &mut Vec<u8>, number: usize) -> Result<(), StoreError> {
    bytes.extend(u32::try_from(number).map_err(StoreError::new)?.to_le_bytes());
    Ok(())
}

fn push_varint(bytes: &mut Vec<u8>, mut number: u32) {
    while number >= 0x80 {
        bytes.push(number as u8 | 0x80);
        number >>= 7;
    }
    bytes.push(number as u8);
}

fn varint(bytes: &mut &[u8]) -> Option<u32> {
    let mut number = 0u32;
    for shift in [0, 7, 14, 21, 28] {
        let (byte, rest) = bytes.split_first()?;
        *bytes = rest;
        number |= u32::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            return Some(number);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page(number: u32, text: &str) -> (String, StoredPage) {
        let url = format!("https://example.org/{number}");
        let page = StoredPage {
            same: url.clone(),
            url,
            title: format!("Number{number}"),
            text: text.to_owned(),
            read_at: Timestamp::from_secs(i64::from(number)),
            ..StoredPage::default()
        };
        (format!("key-{number}"), page)
    }

    fn found(segment: &Segment, term: &str) -> Vec<(u32, u8)> {
        segment.pages_with(term).collect()
    }

    #[test]
    fn merging_keeps_postings_and_drops_deleted_pages() {
        let open = |pages: &[(String, StoredPage)]| Segment::open(Segment::of(pages).unwrap()).unwrap();
        let many: Vec<_> =
            (0..300).map(|number| page(number, if number % 2 == 0 { "even tide tide" } else { "odd" })).collect();
        let one = open(&many);
        assert_eq!(found(&one, "even").len(), 150);
        assert_eq!(found(&one, "tide")[1], (2, 2));
        assert_eq!(found(&one, "number299"), [(299, TITLE_WEIGHT)]);
        assert_eq!(found(&one, "no such term"), []);
        let other = open(&[page(1000, "even more")]);
        let deleted: Vec<u32> = (0..299).collect();
        let merged = Segment::open(Segment::merged(&[(&one, &deleted), (&other, &[])]).unwrap()).unwrap();
        assert_eq!(merged.docs.iter().map(|doc| doc.key.as_str()).collect::<Vec<_>>(), ["key-299", "key-1000"]);
        assert_eq!((found(&merged, "odd"), found(&merged, "even")), (vec![(0, 1)], vec![(1, 1)]));
        assert!(merged.terms().is_sorted() && !merged.terms().any(|term| term == "tide"));
        assert_eq!(key_of(&Segment::of(&many).unwrap()), key_of(&Segment::of(&many).unwrap()));
    }

    const TITLE_WEIGHT: u8 = 6;

    #[test]
    fn malformed_segments_do_not_panic() {
        let good = Segment::of(&[page(1, "one two three"), page(2, "two three four")]).unwrap();
        for end in 0..good.len() {
            let _ = Segment::open(good[..end].to_vec()).map(|segment| segment.terms().count());
            let mut bad = good.clone();
            bad[end] ^= 0xff;
            if let Ok(segment) = Segment::open(bad) {
                let _ = segment.terms().map(|term| segment.pages_with(term).count()).sum::<usize>();
            }
        }
    }
}
