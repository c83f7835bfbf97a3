//! Who may sell goods here.

use std::collections::BTreeSet;

use super::Reader;

/// `GOODS_SELLERS`: comma-separated slugs or ids of the souls that may sell goods to be shipped; `*` for all. Default: none.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GoodsSellers {
    all: bool,
    named: BTreeSet<String>,
}

impl GoodsSellers {
    /// Whether a soul with this slug and this id may sell.
    pub fn allow(&self, slug: &str, id: &str) -> bool {
        self.all || self.named.contains(slug) || self.named.contains(id)
    }

    pub fn is_empty(&self) -> bool {
        !self.all && self.named.is_empty()
    }
}

impl Reader<'_> {
    pub(super) fn goods_sellers(&mut self) -> GoodsSellers {
        let named: BTreeSet<String> = self.list("GOODS_SELLERS").into_iter().collect();
        let is_name = |name: &String| {
            let is_plain = name.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-');
            name == "*" || (is_plain && (3..=100).contains(&name.len()))
        };
        if !named.iter().all(is_name) {
            self.problem("GOODS_SELLERS", "must be slugs or ids of souls, or *");
        }
        GoodsSellers { all: named.contains("*"), named }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seller_is_named_by_slug_or_id() {
        let read = |text: &str| {
            let text = text.to_owned();
            let lookup = move |name: &str| (name == "GOODS_SELLERS").then(|| text.clone());
            let mut reader = Reader { lookup: &lookup, problems: Vec::new() };
            let sellers = reader.goods_sellers();
            (sellers, reader.problems.len())
        };
        let (some, problems) = read("lamp-shop, 0b1c");
        assert_eq!(
            (some.allow("lamp-shop", "x"), some.allow("x", "0b1c"), some.allow("other", "x"), problems),
            (true, true, false, 0)
        );
        assert!(read("*").0.allow("anybody", "x"));
        assert!(read("").0.is_empty());
        assert_eq!(read("Lamp Shop").1, 1);
    }
}
