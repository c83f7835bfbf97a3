//! Searches an index.

use base::words::{typos, typos_allowed};

use super::bytes::{HEAD_BYTES, ID_BYTES, MAGIC, NO_PRICE, PRODUCT_BYTES, hash, u16_at, u32_at, u64_at, varint};
use super::query::{Bounds, Query, parse};
use super::words::{joined, term};
use super::{Hit, MAX_HITS, NotAnIndex};
use crate::Product;

/// Constants of BM25.
const K1: f32 = 1.2;
const B: f32 = 0.5;
/// What a weight of a term counts as one occurrence.
const WEIGHT_OF_ONE: f32 = 4.0;
/// What a match by typo or by beginning counts.
const NEAR: f32 = 0.5;
/// Most terms that one word may stand for.
const MAX_NEAR: usize = 12;
/// Shortest word that may stand for words that it begins.
const MIN_PREFIX_CHARS: usize = 3;
/// Longest block, unpacked: a guard against files that [`super::Builder`] did not write.
const MAX_BLOCK_BYTES: usize = 4 * 1024 * 1024;

/// An index of products over its bytes.
pub struct Index<B> {
    bytes: B,
    products: usize,
    blocks: usize,
    terms: usize,
    mean_length: f32,
    /// Where the parts of the file start.
    block_ends: usize,
    fixed: usize,
    ids: usize,
    entries: usize,
    term_ends: usize,
}

/// A term that a query's word stands for, with what it counts.
struct Meant {
    term: usize,
    factor: f32,
}

impl<B: AsRef<[u8]>> Index<B> {
    /// Opens an index, without reading it whole.
    pub fn open(bytes: B) -> Result<Self, NotAnIndex> {
        let file = bytes.as_ref();
        let is_ours = file.get(..MAGIC.len()) == Some(MAGIC);
        let number = |at: usize| {
            let number = u32_at(file, MAGIC.len() + 4 * at).filter(|_| is_ours).ok_or(NotAnIndex)?;
            usize::try_from(number).map_err(|_| NotAnIndex)
        };
        let (products, block_bytes, blocks) = (number(0)?, number(1)?, number(2)?);
        let (terms, entry_bytes, mean) = (number(3)?, number(4)?, number(5)?);
        let after = |start: usize, count: usize, size: usize| {
            count.checked_mul(size).and_then(|bytes| bytes.checked_add(start)).ok_or(NotAnIndex)
        };
        let block_ends = after(HEAD_BYTES, block_bytes, 1)?;
        let fixed = after(block_ends, blocks, 4)?;
        let ids = after(fixed, products, PRODUCT_BYTES)?;
        let entries = after(ids, products, ID_BYTES)?;
        let term_ends = after(entries, entry_bytes, 1)?;
        if after(term_ends, terms, 4)? != file.len() {
            return Err(NotAnIndex);
        }
        let mean_length = mean.max(1) as f32;
        Ok(Self { bytes, products, blocks, terms, mean_length, block_ends, fixed, ids, entries, term_ends })
    }

    /// The number of products.
    pub fn len(&self) -> usize {
        self.products
    }

    pub fn is_empty(&self) -> bool {
        self.products == 0
    }

    /// The product with this id; of a product without an id, its address is the id.
    pub fn get(&self, id: &str) -> Option<Product> {
        let wanted = hash(id);
        let at = |index: usize| u64_at(self.file(), self.ids + ID_BYTES * index);
        let (mut low, mut high) = (0, self.products);
        while low < high {
            let middle = low.midpoint(high);
            match at(middle)? < wanted {
                true => low = middle + 1,
                false => high = middle,
            }
        }
        let found = at(low).filter(|hash| low < self.products && *hash == wanted);
        let number = found.and_then(|_| u32_at(self.file(), self.ids + ID_BYTES * low + 8))?;
        let product = self.product(number)?;
        let own = if product.id.is_empty() { &product.url } else { &product.id };
        (own == id).then_some(product)
    }

    /// The products that match a query best, at most `limit` (and [`MAX_HITS`]). A product must have at least half of the
    /// query's words; of a group of variants, the best one counts. `under 50 eur`, `over 20` and the like bound the price.
    /// A query without words, or one that matches nothing, gives nothing.
    pub fn search(&self, query: &str, limit: usize) -> Vec<Hit> {
        let query = parse(query);
        let scored = self.scored(&query);
        let limit = limit.min(MAX_HITS);
        let mut hits: Vec<Hit> = Vec::new();
        let mut groups = Vec::new();
        for (score, number) in best_first(scored, limit) {
            if hits.len() >= limit {
                break;
            }
            let group = self.fixed(number).map_or(0, |fixed| fixed.group);
            if group != 0 && groups.contains(&group) {
                continue;
            }
            groups.push(group);
            hits.extend(self.product(number).map(|product| Hit { product, score }));
        }
        hits
    }

    /// All products with enough of the words and within the bounds.
    fn scored(&self, query: &Query) -> Vec<(f32, u32)> {
        let meant: Vec<Vec<Meant>> = self.meant(&query.words);
        if meant.iter().all(Vec::is_empty) {
            return Vec::new();
        }
        let mut scores = vec![0.0_f32; self.products];
        let mut counts = vec![0_u8; self.products];
        let mut last = vec![u8::MAX; self.products];
        for (word, terms) in (0_u8..).zip(&meant) {
            for meant in terms {
                self.add(meant, word, &mut scores, &mut counts, &mut last);
            }
        }
        let needed = meant.len().div_ceil(2);
        let all = meant.len().max(1) as f32;
        let found = counts.iter().enumerate().filter(|(_, count)| usize::from(**count) >= needed);
        let found =
            found.filter_map(|(at, count)| Some((u32::try_from(at).ok()?, f32::from(*count) / all, scores.get(at)?)));
        found
            .filter(|(number, ..)| self.is_within(*number, &query.bounds))
            .map(|(number, part, score)| (score * part, number))
            .collect()
    }

    /// Adds what one term counts to all its products.
    fn add(&self, meant: &Meant, word: u8, scores: &mut [f32], counts: &mut [u8], last: &mut [u8]) {
        let Some((_, mut postings)) = self.entry(meant.term) else { return };
        // Nearly exact, and without a pass over the postings: one takes two bytes or more.
        let with_term = (postings.len() / 2).min(self.products) as f32;
        let idf = (1.0 + (self.products as f32 - with_term + 0.5) / (with_term + 0.5)).ln();
        let mut number = 0_u32;
        while let Some(distance) = varint(&mut postings) {
            let Some((weight, rest)) = postings.split_first() else { return };
            postings = rest;
            number = number.saturating_add(distance);
            let Ok(at) = usize::try_from(number) else { return };
            let (Some(score), Some(count), Some(last)) = (scores.get_mut(at), counts.get_mut(at), last.get_mut(at))
            else {
                return;
            };
            let occurrences = f32::from(*weight) / WEIGHT_OF_ONE;
            let length = u16_at(self.file(), self.fixed + PRODUCT_BYTES * at + 4).map_or(0.0, f32::from);
            let norm = K1 * (1.0 - B + B * length / self.mean_length);
            *score += meant.factor * idf * occurrences * (K1 + 1.0) / (occurrences + norm);
            if *last != word {
                *last = word;
                *count = count.saturating_add(1);
            }
        }
    }

    /// The terms that each word stands for: itself; or with its neighbour (`256 gb`); or, if it is unknown, words near it.
    fn meant(&self, words: &[String]) -> Vec<Vec<Meant>> {
        let mut all: Vec<Vec<Meant>> = words.iter().map(|word| self.exact(&term(word)).into_iter().collect()).collect();
        for (at, pair) in words.windows(2).enumerate() {
            let one = joined(&pair[0], &pair[1]).and_then(|word| self.find(&term(&word)));
            for place in [at, at + 1] {
                if let (Some(term), Some(meant)) = (one, all.get_mut(place)) {
                    meant.push(Meant { term, factor: 1.0 });
                }
            }
        }
        for (meant, word) in all.iter_mut().zip(words) {
            if meant.is_empty() {
                *meant = self.near(&term(word));
            }
        }
        all
    }

    fn exact(&self, term: &str) -> Option<Meant> {
        self.find(term).map(|term| Meant { term, factor: 1.0 })
    }

    /// Terms that begin with a word, or else that differ by a typo and share its first letter.
    fn near(&self, word: &str) -> Vec<Meant> {
        let Some(first) = word.chars().next() else { return Vec::new() };
        let meant = |term: usize| Meant { term, factor: NEAR };
        if word.chars().count() >= MIN_PREFIX_CHARS {
            let begun = self.terms_from(word).take_while(|(_, term)| term.starts_with(word.as_bytes()));
            let begun: Vec<Meant> = begun.take(MAX_NEAR).map(|(number, _)| meant(number)).collect();
            if !begun.is_empty() {
                return begun;
            }
        }
        let most = typos_allowed(word);
        if most == 0 || word.bytes().any(|byte| byte.is_ascii_digit()) {
            return Vec::new();
        }
        let mut letter = [0; 4];
        let letter = first.encode_utf8(&mut letter).as_bytes();
        let same_letter = self.terms_from(word.get(..first.len_utf8()).unwrap_or_default());
        let same_letter = same_letter.take_while(|(_, term)| term.starts_with(letter));
        let similar = same_letter.filter(|(_, term)| term.len().abs_diff(word.len()) <= 2 * most);
        let mut found: Vec<(usize, usize)> = similar
            .filter_map(|(number, term)| Some((typos(word, std::str::from_utf8(term).ok()?, most)?, number)))
            .collect();
        found.sort_unstable();
        let fewest = found.first().map_or(0, |(typos, _)| *typos);
        let fewest = found.into_iter().take_while(|(typos, _)| *typos == fewest);
        fewest.take(MAX_NEAR).map(|(_, number)| meant(number)).collect()
    }

    fn is_within(&self, number: u32, bounds: &Bounds) -> bool {
        if !bounds.any() {
            return true;
        }
        let Some(fixed) = self.fixed(number).filter(|fixed| fixed.price != NO_PRICE) else { return false };
        bounds.lowest.is_none_or(|lowest| lowest <= fixed.price)
            && bounds.highest.is_none_or(|highest| fixed.price <= highest)
            && (bounds.currency == 0 || bounds.currency == fixed.currency)
    }

    fn file(&self) -> &[u8] {
        self.bytes.as_ref()
    }

    /// A term and its encoded postings.
    fn entry(&self, index: usize) -> Option<(&[u8], &[u8])> {
        let file = self.file();
        let end = |index: usize| usize::try_from(u32_at(file, self.term_ends + 4 * index)?).ok();
        if index >= self.terms {
            return None;
        }
        let from = index.checked_sub(1).map_or(Some(0), end)?;
        let entries = file.get(self.entries..self.term_ends)?;
        let (size, rest) = entries.get(from..end(index)?)?.split_first()?;
        rest.split_at_checked(usize::from(*size))
    }

    /// The number of the first term that is not before this one.
    fn lower(&self, term: &[u8]) -> usize {
        let (mut low, mut high) = (0, self.terms);
        while low < high {
            let middle = low.midpoint(high);
            match self.entry(middle) {
                Some((other, _)) if other < term => low = middle + 1,
                _ => high = middle,
            }
        }
        low
    }

    fn find(&self, term: &str) -> Option<usize> {
        let at = self.lower(term.as_bytes());
        self.entry(at).filter(|(other, _)| *other == term.as_bytes()).map(|_| at)
    }

    fn terms_from(&self, start: &str) -> impl Iterator<Item = (usize, &[u8])> {
        (self.lower(start.as_bytes())..self.terms).map_while(|index| Some((index, self.entry(index)?.0)))
    }

    fn fixed(&self, number: u32) -> Option<Fixed> {
        let at = usize::try_from(number).ok().filter(|number| *number < self.products)?;
        let at = self.fixed + PRODUCT_BYTES * at;
        let file = self.file();
        Some(Fixed {
            block: usize::try_from(u32_at(file, at)?).ok()?,
            currency: u16_at(file, at + 6)?,
            price: u64_at(file, at + 8)?.cast_signed(),
            group: u64_at(file, at + 16)?,
        })
    }

    /// Unpacks a product.
    fn product(&self, number: u32) -> Option<Product> {
        let block = self.fixed(number)?.block;
        if block >= self.blocks {
            return None;
        }
        // The place within its block: how many before it are of the same block.
        let place = (1..=number).take_while(|back| self.fixed(number - back).is_some_and(|fixed| fixed.block == block));
        let place = place.take(1_000).count();
        let end = |block: usize| usize::try_from(u32_at(self.file(), self.block_ends + 4 * block)?).ok();
        let from = block.checked_sub(1).map_or(Some(0), end)?;
        let packed = self.file().get(HEAD_BYTES..self.block_ends)?.get(from..end(block)?)?;
        let json = miniz_oxide::inflate::decompress_to_vec_with_limit(packed, MAX_BLOCK_BYTES).ok()?;
        let products: Vec<Product> = serde_json::from_slice(&json).ok()?;
        products.into_iter().nth(place)
    }
}

/// The part of a product that a search reads.
struct Fixed {
    block: usize,
    currency: u16,
    price: i64,
    group: u64,
}

/// The best, in order. More than asked for, because of groups.
fn best_first(mut scored: Vec<(f32, u32)>, limit: usize) -> Vec<(f32, u32)> {
    let order = |one: &(f32, u32), two: &(f32, u32)| two.0.total_cmp(&one.0).then(one.1.cmp(&two.1));
    let most = limit.saturating_mul(20).max(200);
    if scored.len() > most {
        scored.select_nth_unstable_by(most, order);
        scored.truncate(most);
    }
    scored.sort_unstable_by(order);
    scored
}
