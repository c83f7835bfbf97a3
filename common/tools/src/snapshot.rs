//! The operator's own copies of registers, imported by hand (docs/LOOKUPS.md) and read by lookups.
//!
//! A copy is one immutable compressed blob, named by its hash, and a pointer that says which blob is current. It holds
//! lines of three columns: key, names, record. Lines are sorted by key, so a key is found by binary search; a name is
//! compared with every line.
//!
//! Memory: at most [`MAX_BYTES`] unpacked per copy, and `MAX_OPEN` open copies.

use std::collections::VecDeque;
use std::io::{Read, Write as _};
use std::sync::{Arc, Mutex, PoisonError};

use base::clock::Timestamp;
use base::digest;
use platform::store::{Blobs, StoreError};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

/// Largest copy, unpacked, in bytes.
pub const MAX_BYTES: usize = 64 * 1024 * 1024;
const MAX_OPEN: usize = 3;
/// A search by name stops after this many matches.
const MAX_SCORED: usize = 5_000;

/// The copies that `import-snapshot` can make.
pub const NAMES: [&str; 5] = ["ofac", "gleif", "fdic", "npi", "edgar-tickers"];

/// The current copy of a register.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pointer {
    /// Hash of the blob.
    pub generation: String,
    /// The day the register was published or fetched: `YYYY-MM-DD`.
    pub as_of: String,
    pub records: usize,
    /// Unpacked size.
    pub bytes: usize,
}

impl Pointer {
    /// Days since `as_of`.
    pub fn age_days(&self, now: Timestamp) -> Option<i64> {
        let day = |text: &str| chrono::NaiveDate::parse_from_str(text, "%Y-%m-%d").ok();
        Some(day(now.to_string().get(..10)?)?.signed_duration_since(day(&self.as_of)?).num_days())
    }
}

/// An open copy.
pub struct Copy {
    pub as_of: String,
    text: String,
    /// Offsets of the lines.
    lines: Vec<u32>,
}

/// One record of a copy.
#[derive(Clone, Debug, PartialEq)]
pub struct Record {
    /// The exact key.
    pub key: String,
    /// Names to search by, each on its own.
    pub names: Vec<String>,
    pub value: Value,
}

fn pointer_key(name: &str) -> String {
    format!("snapshots/{name}/pointer.json")
}

fn blob_key(name: &str, generation: &str) -> String {
    format!("snapshots/{name}/{generation}.deflate")
}

/// Makes a new copy current: stores the blob first, then the pointer.
pub async fn publish(
    blobs: &dyn Blobs,
    name: &str,
    as_of: &str,
    mut records: Vec<Record>,
) -> Result<Pointer, StoreError> {
    records.sort_by(|one, other| one.key.cmp(&other.key));
    let mut text = String::new();
    for record in &records {
        let clean = |text: &str| text.replace(['\t', '\n', '\r', '|'], " ");
        let names: Vec<String> =
            record.names.iter().map(|name| normal(&clean(name))).filter(|n| !n.is_empty()).collect();
        text.push_str(&format!("{}\t{}\t{}\n", clean(&record.key), names.join("|"), record.value));
        if text.len() > MAX_BYTES {
            return Err(StoreError::new(format_args!(
                "the copy is larger than {MAX_BYTES} bytes: import a part of it"
            )));
        }
    }
    let generation = const_hex::encode(&digest::sha256(text.as_bytes())[..16]);
    let mut packer = flate2::write::DeflateEncoder::new(Vec::new(), flate2::Compression::default());
    packer.write_all(text.as_bytes()).map_err(StoreError::new)?;
    let packed = packer.finish().map_err(StoreError::new)?;
    blobs.put(&blob_key(name, &generation), "application/octet-stream", packed).await?;
    let pointer = Pointer { generation, as_of: as_of.to_owned(), records: records.len(), bytes: text.len() };
    let json = serde_json::to_vec(&pointer).map_err(StoreError::new)?;
    blobs.put(&pointer_key(name), "application/json", json).await?;
    Ok(pointer)
}

/// The current copy's pointer, if there is a copy.
pub async fn in_force(blobs: &dyn Blobs, name: &str) -> Result<Option<Pointer>, StoreError> {
    let Some(pointer) = blobs.get(&pointer_key(name)).await? else { return Ok(None) };
    serde_json::from_slice(&pointer).map(Some).map_err(StoreError::new)
}

/// The current copy, if there is one. The last `MAX_OPEN` copies are cached; blobs never change.
pub async fn open(blobs: &dyn Blobs, name: &str) -> Result<Option<Arc<Copy>>, StoreError> {
    static OPEN: Mutex<VecDeque<(String, Arc<Copy>)>> = Mutex::new(VecDeque::new());
    let Some(pointer) = in_force(blobs, name).await? else { return Ok(None) };
    let id = format!("{name}/{}/{}", pointer.generation, pointer.as_of);
    let known = {
        let open = OPEN.lock().unwrap_or_else(PoisonError::into_inner);
        open.iter().find(|(known, _)| *known == id).map(|(_, copy)| copy.clone())
    };
    if known.is_some() {
        return Ok(known);
    }
    let Some(packed) = blobs.get(&blob_key(name, &pointer.generation)).await? else { return Ok(None) };
    let as_of = pointer.as_of.clone();
    let unpacked = tokio::task::spawn_blocking(move || unpack(&packed, as_of)).await;
    let copy = Arc::new(unpacked.map_err(StoreError::new)??);
    let mut open = OPEN.lock().unwrap_or_else(PoisonError::into_inner);
    open.push_back((id, copy.clone()));
    while open.len() > MAX_OPEN {
        open.pop_front();
    }
    Ok(Some(copy))
}

fn unpack(packed: &[u8], as_of: String) -> Result<Copy, StoreError> {
    let mut text = String::new();
    let mut reader = flate2::read::DeflateDecoder::new(packed).take(MAX_BYTES as u64 + 1);
    reader.read_to_string(&mut text).map_err(StoreError::new)?;
    if text.len() > MAX_BYTES {
        return Err(StoreError::new("the copy is too large"));
    }
    Ok(Copy::of(text, as_of))
}

impl Copy {
    fn of(text: String, as_of: String) -> Copy {
        let mut lines = vec![0];
        lines.extend(text.bytes().zip(1_u32..).filter(|(byte, _)| *byte == b'\n').map(|(_, next)| next));
        lines.pop();
        Copy { as_of, text, lines }
    }

    fn line(&self, at: usize) -> (&str, &str, &str) {
        let begin = self.lines[at] as usize;
        let end = self.lines.get(at + 1).map_or(self.text.len(), |next| *next as usize);
        let mut columns = self.text[begin..end].trim_end_matches('\n').splitn(3, '\t');
        let mut next = || columns.next().unwrap_or_default();
        (next(), next(), next())
    }

    /// At most 20 records with exactly this key.
    pub fn by_key(&self, key: &str) -> Vec<Value> {
        let indices: Vec<usize> = (0..self.lines.len()).collect();
        let first = indices.partition_point(|at| self.line(*at).0 < key);
        let same = (first..self.lines.len()).take_while(|at| self.line(*at).0 == key).take(20);
        same.filter_map(|at| serde_json::from_str(self.line(at).2).ok()).collect()
    }

    /// Records with a similar name, best first: score, the name that matched, record.
    pub fn by_name(&self, name: &str, min_score: f64, fits: impl Fn(&Value) -> bool) -> Vec<(f64, String, Value)> {
        let wanted = normal(name);
        let words: Vec<&str> = wanted.split(' ').collect();
        let mut scored: Vec<(f64, String, usize)> = Vec::new();
        for at in 0..self.lines.len() {
            let (_, names, _) = self.line(at);
            let best = names
                .split('|')
                // A cheap check first, which skips most names.
                .filter(|name| shares_a_beginning(&words, name))
                .map(|name| (similarity(&words, &name.split(' ').collect::<Vec<_>>()), name))
                .max_by(|one, other| one.0.total_cmp(&other.0));
            if let Some((score, name)) = best.filter(|(score, _)| *score >= min_score) {
                scored.push((score, name.to_owned(), at));
            }
            if scored.len() >= MAX_SCORED {
                break;
            }
        }
        scored.sort_by(|one, other| other.0.total_cmp(&one.0));
        let records = scored.into_iter().filter_map(|(score, name, at)| {
            let value: Value = serde_json::from_str(self.line(at).2).ok()?;
            fits(&value).then_some((score, name, value))
        });
        records.collect()
    }
}

/// The normal form of a name for comparison: capitals without accents, words separated by one space, without legal forms
/// (INC, GMBH).
pub fn normal(name: &str) -> String {
    // "S.A." and "O'Neil" become one word each.
    let letters = name.chars().filter(|letter| !".'’".contains(*letter));
    let plain: String = letters.map(without_accent).collect::<String>().to_uppercase();
    let words = plain.split(|letter: char| !letter.is_alphanumeric()).filter(|word| !word.is_empty());
    let all: Vec<&str> = words.collect();
    const FORMS: [&str; 19] = [
        "INC",
        "LLC",
        "LTD",
        "LIMITED",
        "CO",
        "CORP",
        "CORPORATION",
        "COMPANY",
        "SA",
        "AG",
        "GMBH",
        "PLC",
        "LP",
        "LLP",
        "BV",
        "NV",
        "SARL",
        "THE",
        "AND",
    ];
    let telling: Vec<&str> = all.iter().copied().filter(|word| !FORMS.contains(word)).collect();
    (if telling.is_empty() { all } else { telling }).join(" ")
}

/// Removes the marks of common Latin letters.
fn without_accent(letter: char) -> char {
    const MARKED: &str = "àáâãäåāăąçćčďđèéêëēėęěğìíîïīįıłñńňòóôõöøōőŕřśšşťùúûüūůűųýÿžźżÀÁÂÃÄÅĀĂĄÇĆČĎĐÈÉÊËĒĖĘĚĞÌÍÎÏĪĮŁÑŃŇÒÓÔÕÖØŌŐŔŘŚŠŞŤÙÚÛÜŪŮŰŲÝŽŹŻ";
    const PLAIN: &str = "aaaaaaaaacccddeeeeeeeegiiiiiiilnnnoooooooorrsssTuuuuuuuuyyzzzAAAAAAAAACCCDDEEEEEEEEGIIIIIILNNNOOOOOOOORRSSSTUUUUUUUUYZZZ";
    match MARKED.chars().position(|marked| marked == letter) {
        Some(at) => PLAIN.chars().nth(at).unwrap_or(letter),
        None => letter,
    }
}

fn shares_a_beginning(words: &[&str], name: &str) -> bool {
    let head = |word: &str| word.chars().next();
    name.split(' ').any(|theirs| words.iter().any(|ours| head(ours) == head(theirs)))
}

/// Similarity of two names, 0 to 1: each word counts with its most similar word in the other name, in any order, weighted
/// by length. Words without a similar word lower the score.
pub fn similarity(ours: &[&str], theirs: &[&str]) -> f64 {
    let side = |from: &[&str], to: &[&str]| {
        let total: usize = from.iter().map(|word| word.chars().count()).sum();
        let fitting: f64 = from
            .iter()
            .map(|word| {
                let best = to.iter().map(|other| jaro_winkler(word, other)).fold(0.0, f64::max);
                // Below 0.75 it is a different word.
                let best = if best < 0.75 { 0.0 } else { best };
                best * word.chars().count() as f64
            })
            .sum();
        fitting / total.max(1) as f64
    };
    // The searched name counts twice, because names in lists are longer than the names that people use.
    let score = (2.0 * side(ours, theirs) + side(theirs, ours)) / 3.0;
    (score * 1_000.0).round() / 1_000.0
}

/// Jaro-Winkler similarity of two words, 0 to 1.
pub fn jaro_winkler(one: &str, other: &str) -> f64 {
    let (one, other): (Vec<char>, Vec<char>) = (one.chars().take(64).collect(), other.chars().take(64).collect());
    if one == other {
        return 1.0;
    }
    if one.is_empty() || other.is_empty() {
        return 0.0;
    }
    let reach = (one.len().max(other.len()) / 2).saturating_sub(1);
    let mut used = vec![false; other.len()];
    let mut matched = Vec::new();
    for (at, letter) in one.iter().enumerate() {
        let from = at.saturating_sub(reach);
        let to = (at + reach + 1).min(other.len());
        if let Some(found) = (from..to).find(|index| !used[*index] && other[*index] == *letter) {
            used[found] = true;
            matched.push(*letter);
        }
    }
    if matched.is_empty() {
        return 0.0;
    }
    let theirs = other.iter().zip(&used).filter(|(_, used)| **used).map(|(letter, _)| letter);
    let moved = matched.iter().zip(theirs).filter(|(ours, theirs)| ours != theirs).count() as f64 / 2.0;
    let count = matched.len() as f64;
    let jaro = (count / one.len() as f64 + count / other.len() as f64 + (count - moved) / count) / 3.0;
    let same = one.iter().zip(&other).take(4).take_while(|(ours, theirs)| ours == theirs).count() as f64;
    jaro + same * 0.1 * (1.0 - jaro)
}

fn given<'a>(input: &'a Map<String, Value>, name: &str) -> Option<&'a str> {
    input.get(name).and_then(Value::as_str)
}

/// Entries of the sanctions list with a name similar to the input.
pub fn find_sanctions(copy: &Copy, input: &Map<String, Value>, persons: bool) -> Value {
    let min_score = input.get("min_score").and_then(Value::as_f64).unwrap_or(0.85);
    let is_wanted = |entry: &Value| (entry["kind"] == "individual") == persons;
    let found = copy.by_name(given(input, "name").unwrap_or_default(), min_score, is_wanted);
    let total = found.len();
    let matches: Vec<Value> = found
        .into_iter()
        .take(25)
        .map(|(score, matched, mut entry)| {
            if let Some(entry) = entry.as_object_mut() {
                entry.insert("score".to_owned(), json!(score));
                entry.insert("matched".to_owned(), json!(matched));
            }
            entry
        })
        .collect();
    json!({"total": total, "matches": matches, "list": "SDN"})
}

/// Companies by ticker, or by name.
pub fn find_ticker(copy: &Copy, input: &Map<String, Value>) -> Value {
    let found = match given(input, "ticker") {
        Some(ticker) => copy.by_key(&ticker.to_uppercase()),
        None => named(copy, given(input, "name")),
    };
    json!({"companies": found})
}

/// Banks, in the format of BankFind.
pub fn find_bank(copy: &Copy, input: &Map<String, Value>) -> Value {
    let found = match input.get("fdic_certificate").and_then(Value::as_i64) {
        Some(certificate) => copy.by_key(&certificate.to_string()),
        None => named(copy, given(input, "name")),
    };
    json!({"meta": {"total": found.len()}, "data": found})
}

/// Entities, in the format of GLEIF.
pub fn find_entity(copy: &Copy, input: &Map<String, Value>) -> Value {
    let found = match given(input, "lei") {
        Some(lei) => copy.by_key(&lei.to_uppercase()),
        None => named(copy, given(input, "name")),
    };
    json!({"meta": {"pagination": {"total": found.len()}}, "data": found})
}

/// Providers, in the format of the NPI registry; by number only, because a name without a state is ambiguous.
pub fn find_provider(copy: &Copy, input: &Map<String, Value>, kind: &str) -> Value {
    let mut found = given(input, "npi").map(|npi| copy.by_key(npi)).unwrap_or_default();
    found.retain(|record| record["enumeration_type"] == kind);
    json!({"result_count": found.len(), "results": found})
}

fn named(copy: &Copy, name: Option<&str>) -> Vec<Value> {
    let found = copy.by_name(name.unwrap_or_default(), 0.85, |_| true);
    found.into_iter().take(20).map(|(.., record)| record).collect()
}
