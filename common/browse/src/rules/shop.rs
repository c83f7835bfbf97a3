//! Clauses about a shop's cart: "add two Blue Mugs to the basket", "remove the Red Kettle from the cart", "go to the
//! cart".

use super::step::What;
use super::words::{Token, count, fold, joined, ordinal};

/// What people call a cart.
pub const CARTS: &[&str] = &["cart", "basket", "bag", "trolley"];
/// Words beside it that say nothing more.
const AROUND: &[&str] = &["the", "my", "your", "a", "shopping", "page", "this"];

/// What is done with a cart.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Cart {
    /// Puts so many of a product in; without a name the one that the page is about.
    Add {
        product: String,
        count: usize,
    },
    Remove {
        product: String,
    },
    Open,
}

/// Whether words name a cart and nothing else.
#[must_use]
pub fn is_cart(tokens: &[Token]) -> bool {
    tokens.iter().any(|t| t.is(CARTS)) && tokens.iter().all(|t| t.is(CARTS) || t.is(AROUND))
}

/// Reads a clause about a cart; `None` if it is about something else.
#[must_use]
pub fn read(verb: &Token, rest: &[Token]) -> Option<Vec<What>> {
    let steps = |list: Vec<Cart>| Some(list.into_iter().map(What::Cart).collect());
    match verb.low.as_str() {
        _ if verb.quoted => None,
        "add" | "put" | "place" => {
            let object = before_cart(rest, &["to", "in", "into"])?;
            steps(products(object)?.into_iter().map(|(product, count)| Cart::Add { product, count }).collect())
        }
        "remove" | "delete" | "take" => {
            let object = before_cart(rest, &["from", "of"])?;
            let object = object.split_last().filter(|(last, _)| last.is(&["out"])).map_or(object, |(_, front)| front);
            let list = products(object)?;
            let named = list.iter().all(|(product, count)| !product.is_empty() && *count == 1);
            named.then(|| steps(list.into_iter().map(|(product, _)| Cart::Remove { product }).collect()))?
        }
        "go" | "open" | "view" | "navigate" | "visit" | "show" | "proceed" | "return" => {
            let to = rest.iter().take_while(|t| t.is(&["to", "into", "back", "me"])).count();
            is_cart(&rest[to..]).then(|| steps(vec![Cart::Open]))?
        }
        _ => None,
    }
}

/// What stands before "to the cart".
fn before_cart<'a>(rest: &'a [Token], joiners: &[&str]) -> Option<&'a [Token]> {
    let at = rest.iter().rposition(|t| t.is(joiners)).filter(|at| is_cart(&rest[at + 1..]))?;
    Some(&rest[..at])
}

/// "the Red Kettle", "two Blue Mugs", "3 x Cup", "the Red Kettle and two Blue Mugs"; an empty name is "it".
fn products(tokens: &[Token]) -> Option<Vec<(String, usize)>> {
    let starts = |t: &Token| t.quoted || t.is(&["the", "a", "an", "one"]) || times(t).is_some();
    let mut out = Vec::new();
    let mut start = 0;
    for at in 1..tokens.len() {
        // "Salt and Pepper" is one product: another one begins with an article, a number or a quote.
        let cut = tokens[at].is(&["and"]) || tokens[at - 1].after == Some(',');
        let next = if tokens[at].is(&["and"]) { at + 1 } else { at };
        if cut && next > start && tokens.get(next).is_some_and(starts) {
            out.push(product(&tokens[start..at])?);
            start = next;
        }
    }
    out.push(product(&tokens[start..])?);
    Some(out)
}

fn times(token: &Token) -> Option<usize> {
    let low = token.low.strip_suffix('x').filter(|n| !n.is_empty()).unwrap_or(&token.low);
    count(low).filter(|n| !token.quoted && (1..=99).contains(n))
}

fn product(tokens: &[Token]) -> Option<(String, usize)> {
    let mut words: Vec<&Token> = tokens.iter().skip_while(|t| t.is(&["and"])).collect();
    let mut many = 1;
    while let Some(first) = words.first() {
        if let Some(n) = times(first).filter(|_| words.len() > 1) {
            many = n;
        } else if !first
            .is(&["the", "a", "an", "x", "units", "pieces", "copies", "item", "product", "of", "my", "some"])
        {
            break;
        }
        words.remove(0);
    }
    // Which one is meant, the page's order says; and "all" is no product.
    if words
        .first()
        .is_some_and(|t| !t.quoted && (ordinal(&t.low).is_some() || t.is(&["all", "every", "each", "both"])))
    {
        return None;
    }
    let pronoun = words.len() == 1 && words[0].is(&["it", "this", "one", "that", "them"]);
    let name = match words.iter().find(|t| t.quoted) {
        Some(quoted) => fold(&quoted.text),
        None if pronoun => String::new(),
        None => fold(&joined(&words.into_iter().cloned().collect::<Vec<_>>())),
    };
    Some((name, many))
}

#[cfg(test)]
mod tests {
    use super::super::words::tokens;
    use super::*;

    fn said(text: &str) -> String {
        let words = tokens(text);
        let steps = read(&words[0], &words[1..]).unwrap_or_default();
        let one = |what: &What| match what {
            What::Cart(Cart::Add { product, count }) => format!("{count} {product}"),
            What::Cart(Cart::Remove { product }) => format!("-{product}"),
            _ => "open".to_owned(),
        };
        steps.iter().map(one).collect::<Vec<_>>().join(", ")
    }

    #[test]
    fn products_and_their_numbers_are_read() {
        for (text, is) in [
            ("Add the Red Kettle to the cart", "1 red kettle"),
            ("add two Blue Mugs to my shopping basket", "2 blue mugs"),
            ("put 3x \"Cup and Saucer\" in the bag", "3 cup and saucer"),
            ("add Salt and Pepper Set to cart", "1 salt and pepper set"),
            ("add the Red Kettle, a Teapot and 2 of the Blue Mugs to the cart", "1 red kettle, 1 teapot, 2 blue mugs"),
            ("add it to the cart", "1 "),
            ("add to cart", "1 "),
            ("remove the Red Kettle from the cart", "-red kettle"),
            ("take the Red Kettle out of my cart", "-red kettle"),
            ("go to the shopping cart", "open"),
            ("add all products to the cart", ""),
            ("add the first product to the cart", ""),
            ("add a note to the order", ""),
        ] {
            assert_eq!(said(text), is, "{text}");
        }
    }
}
