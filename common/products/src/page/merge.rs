//! One product for each thing: merges what several notations say, and finds the product that the page is about.

use base::words::words;
use url::Url;

use super::meta::Head;
use super::schema::Found;
use crate::Product;

/// Words of a title that are compared.
const MAX_WORDS: usize = 40;

/// The products, merged; the one of the page first.
pub(super) fn merged(found: Vec<Found>, head: Head, url: &Url) -> Vec<Product> {
    let mut kept: Vec<Titled> = Vec::new();
    for found in found {
        let found = Titled { words: words(&found.product.title, MAX_WORDS), found };
        match kept.iter_mut().find(|kept| kept.is_same(&found)) {
            Some(same) => same.take(found.found),
            None => kept.push(found),
        }
    }
    let page = place(head.canonical.as_deref().unwrap_or(url.as_str()));
    let title = words(&head.product.title, MAX_WORDS);
    let most = kept
        .iter()
        .map(|one| one.score(&page, url, &title))
        .enumerate()
        .max_by_key(|(at, score)| (*score, usize::MAX - at));
    let main = most.filter(|(_, score)| *score > 0 || kept.len() == 1).map(|(at, _)| at);
    if let Some(main) = main {
        let main = kept.remove(main);
        kept.insert(0, main);
    }
    add_head(&mut kept, head, &title, main.is_some());
    kept.into_iter().map(|one| complete(one.found.product, url)).collect()
}

/// Merges what the head says into the product of the page. Without one, the head may describe a product alone.
fn add_head(kept: &mut Vec<Titled>, head: Head, title: &[String], has_main: bool) {
    let has_price = head.product.price.is_some();
    let (alone, is_empty) = (kept.len() == 1, kept.is_empty());
    match kept.first_mut().filter(|_| has_main) {
        Some(main) if alone && !main.found.is_aside || head.is_product || has_price || overlaps(&main.words, title) => {
            main.found.take_missing(head.product);
        }
        None if is_empty && (has_price || head.is_product) && !head.product.title.is_empty() => {
            let found =
                Found { product: head.product, syntax: super::items::Syntax::Rdfa, has_url: true, is_aside: false };
            kept.push(Titled { words: Vec::new(), found });
        }
        _ => {}
    }
}

fn complete(mut product: Product, url: &Url) -> Product {
    if product.url.is_empty() {
        product.url = url.to_string();
    }
    product
}

struct Titled {
    words: Vec<String>,
    found: Found,
}

impl Titled {
    /// Whether both describe the same thing.
    fn is_same(&self, other: &Self) -> bool {
        let (one, two) = (&self.found.product, &other.found.product);
        let both = |one: &str, two: &str| !one.is_empty() && !two.is_empty();
        if let (Some(one), Some(two)) = (&one.gtin, &two.gtin) {
            return one == two;
        }
        if both(&one.id, &two.id) && one.id == two.id {
            return true;
        }
        let other_syntax = self.found.syntax != other.found.syntax;
        if both(&one.id, &two.id) && !other_syntax {
            return false;
        }
        let other_url = both(&one.url, &two.url) && place(&one.url) != place(&two.url);
        if self.words == other.words && !self.words.is_empty() {
            return !other_url || other_syntax && !self.found.is_aside && !other.found.is_aside;
        }
        let same_price = match (&one.price, &two.price) {
            (Some(one), Some(two)) => one == two,
            _ => true,
        };
        let beside = self.found.is_aside || other.found.is_aside;
        other_syntax && !beside && !other_url && same_price && overlaps(&self.words, &other.words)
    }

    fn take(&mut self, other: Found) {
        self.found.is_aside &= other.is_aside;
        self.found.take_missing(other.product);
    }

    /// How likely it is that the page is about this product.
    fn score(&self, page: &str, url: &Url, title: &[String]) -> i32 {
        let product = &self.found.product;
        let own = place(&product.url);
        let is_page = self.found.has_url && (own == page || own == place(url.as_str()));
        let mut score = 0;
        score += if is_page { 4 } else { 0 };
        score += if overlaps(&self.words, title) { 2 } else { 0 };
        score += if self.found.is_aside { -3 } else { 1 };
        score + if self.found.has_url && !is_page { -1 } else { 0 } + i32::from(product.price.is_some())
    }
}

impl Found {
    /// Takes what this one does not say.
    fn take_missing(&mut self, other: Product) {
        let one = &mut self.product;
        if one.price.is_none() {
            one.price = other.price;
            one.list_price = other.list_price;
        } else if one.list_price.is_none() && one.price == other.price {
            one.list_price = other.list_price;
        }
        for (known, other) in [(&mut one.id, other.id), (&mut one.url, other.url), (&mut one.title, other.title)] {
            if known.is_empty() {
                *known = other;
            }
        }
        one.image_url = one.image_url.take().or(other.image_url);
        one.vendor = one.vendor.take().or(other.vendor);
        one.rating = one.rating.or(other.rating);
        one.review_count = one.review_count.or(other.review_count);
        one.in_stock = one.in_stock.or(other.in_stock);
        one.description = one.description.take().or(other.description);
        one.gtin = one.gtin.take().or(other.gtin);
        one.category = one.category.take().or(other.category);
        one.group = one.group.take().or(other.group);
        if one.variants.is_empty() {
            one.variants = other.variants;
        }
    }
}

/// Whether all words of the shorter title are in the longer one.
fn overlaps(one: &[String], other: &[String]) -> bool {
    let (short, long) = if one.len() <= other.len() { (one, other) } else { (other, one) };
    !short.is_empty() && short.iter().all(|word| long.contains(word))
}

/// An address without what does not change the page: scheme, `www.`, fragment, closing slash.
fn place(url: &str) -> String {
    let url = url.split('#').next().unwrap_or_default();
    let url = url.split_once("://").map_or(url, |(_, rest)| rest);
    url.strip_prefix("www.").unwrap_or(url).trim_end_matches('/').to_owned()
}
