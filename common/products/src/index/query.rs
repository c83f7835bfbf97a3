//! What a query asks for: words, and bounds of the price.

use base::words::{is_stop_word, words};
use rust_decimal::Decimal;
use rust_decimal::prelude::ToPrimitive;

use super::bytes::{PRICE_DECIMALS, currency_number};
use crate::price;

/// Longest query looked at, in bytes, and most words of one.
const MAX_QUERY_BYTES: usize = 1_000;
const MAX_WORDS: usize = 16;
/// Words before the highest and before the lowest price.
const HIGHEST: [&str; 9] = ["under", "below", "max", "maximum", "cheaper than", "less than", "up to", "at most", "<"];
const LOWEST: [&str; 7] = ["over", "above", "min", "minimum", "more than", "at least", ">"];
/// Words that may follow a number that is a price.
const AFTER: [&str; 8] = ["for", "with", "in", "and", "or", "from", "that", "to"];

/// A query, read.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Query {
    pub(super) words: Vec<String>,
    pub(super) bounds: Bounds,
}

/// Bounds of the price, in the unit of the index, both included. With any, products without a price do not match.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Bounds {
    pub(super) lowest: Option<i64>,
    pub(super) highest: Option<i64>,
    /// 0 if any currency will do.
    pub(super) currency: u16,
}

impl Bounds {
    pub(super) fn any(&self) -> bool {
        self.lowest.is_some() || self.highest.is_some()
    }
}

pub(super) fn parse(text: &str) -> Query {
    let text = &text[..text.floor_char_boundary(MAX_QUERY_BYTES)];
    let tokens: Vec<&str> = text.split_whitespace().take(4 * MAX_WORDS).collect();
    let mut bounds = Bounds::default();
    let mut rest = String::new();
    let mut at = 0;
    while at < tokens.len() {
        match bound(&tokens[at..]) {
            Some(bound) => {
                let side = if bound.is_highest { &mut bounds.highest } else { &mut bounds.lowest };
                *side = Some(bound.amount);
                bounds.currency = bound.currency.unwrap_or(bounds.currency);
                at += bound.tokens;
            }
            None => {
                rest.push_str(tokens[at]);
                rest.push(' ');
                at += 1;
            }
        }
    }
    let all = words(&rest, 4 * MAX_WORDS);
    let mut words: Vec<String> = Vec::new();
    let is_bound = |word: &str| HIGHEST.contains(&word) || LOWEST.contains(&word);
    for word in all.iter().filter(|word| !is_stop_word(word) && !is_bound(word)).take(MAX_WORDS) {
        if !words.contains(word) {
            words.push(word.clone());
        }
    }
    Query { words, bounds }
}

/// A bound of the price at the start of some tokens.
struct Bound {
    is_highest: bool,
    amount: i64,
    currency: Option<u16>,
    /// How many tokens say it.
    tokens: usize,
}

fn bound(tokens: &[&str]) -> Option<Bound> {
    let (is_highest, size) = [(true, &HIGHEST[..]), (false, &LOWEST[..])].iter().find_map(|(is_highest, all)| {
        let size = all.iter().find_map(|phrase| starts(tokens, phrase))?;
        Some((*is_highest, size))
    })?;
    let number = tokens.get(size)?;
    let next = tokens.get(size + 1).copied();
    let unit = next.filter(|next| price::code(next).is_some() && !next.bytes().any(|byte| byte.is_ascii_digit()));
    let said = match unit {
        Some(unit) => price::parts(&format!("{number} {unit}"), None),
        None => price::parts(number, None),
    };
    let is_number = number.chars().any(|c| c.is_ascii_digit());
    // `under 20 inch` is no price.
    let ends = next.is_none_or(|next| AFTER.iter().any(|word| next.eq_ignore_ascii_case(word)));
    let follows = tokens
        .get(size + 1..)
        .is_some_and(|rest| HIGHEST.iter().chain(&LOWEST).any(|phrase| starts(rest, phrase).is_some()));
    if !is_number || said.currency.is_none() && !ends && !follows {
        return None;
    }
    let amount = scaled(said.amount?)?;
    let currency = said.currency.map(currency_number);
    Some(Bound { is_highest, amount, currency, tokens: size + 1 + usize::from(unit.is_some()) })
}

/// How many tokens a phrase at their start takes.
fn starts(tokens: &[&str], phrase: &str) -> Option<usize> {
    let size = phrase.split(' ').count();
    let same =
        tokens.len() >= size && phrase.split(' ').zip(tokens).all(|(word, token)| token.eq_ignore_ascii_case(word));
    same.then_some(size)
}

fn scaled(amount: Decimal) -> Option<i64> {
    amount.checked_mul(10_i64.pow(PRICE_DECIMALS).into())?.to_i64()
}
