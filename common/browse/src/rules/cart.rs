//! A shop's cart on the page that is there now: the button that belongs to a product, and to no other.

use super::Run;
use super::find::{Found, Page};
use super::run::{Memo, Move, click, not_found, wait_or};
use super::shop::{CARTS, Cart};
use super::words::{fold, number, parts};
use crate::action::Action;
use crate::view::Node;

/// Pages of products that are turned.
const MOST_PAGES: usize = 10;
/// What a page says beside a product that cannot be bought.
const SOLD: &[&str] = &["sold out", "out of stock", "unavailable", "currently unavailable", "notify me"];
const REMOVES: &[&str] = &["remove", "delete", "x", "×", "✕", "trash"];

/// Plays one step of a cart.
pub fn play(page: &Page<'_>, cart: &Cart, memo: &mut Memo, run: &mut Run) -> Move {
    match cart {
        Cart::Add { product, count } => add(page, product, *count, memo, run),
        Cart::Remove { product } => remove(page, product, memo),
        Cart::Open => open(page, memo),
    }
}

fn is_pressed(node: &Node) -> bool {
    matches!(node.role.as_str(), "button" | "link" | "clickable" | "menuitem")
}

fn words_of(node: &Node) -> Vec<String> {
    let hint = if node.name.is_empty() { node.hint.as_deref().unwrap_or_default() } else { "" };
    parts(&format!("{} {hint}", node.name))
}

fn says_cart(words: &[String]) -> bool {
    words.iter().any(|w| CARTS.contains(&w.as_str()))
}

fn adds(node: &Node) -> bool {
    let words = words_of(node);
    is_pressed(node) && words.first().is_some_and(|w| w == "add") && (words.len() == 1 || says_cart(&words))
}

fn removes(node: &Node) -> bool {
    let name = fold(&node.name);
    let first = words_of(node).into_iter().next().unwrap_or_default();
    is_pressed(node) && (REMOVES.contains(&name.as_str()) || REMOVES[..2].contains(&first.as_str()) || first == "trash")
}

/// Nodes that name a product, also in the singular.
#[must_use]
pub fn named(page: &Page<'_>, product: &str) -> Vec<usize> {
    let found = page.mentions(product);
    match product.strip_suffix('s') {
        Some(single) if found.is_empty() => page.mentions(single),
        _ => found,
    }
}

/// Whether the node at `at` starts the block of another product than the one named at `from`.
fn is_other(page: &Page<'_>, from: usize, at: usize) -> bool {
    let (a, b) = (&page.view.nodes[from], &page.view.nodes[at]);
    let heads = |n: &Node| n.role == "heading" || n.cell.is_some();
    match (a.cell, b.cell) {
        (Some(x), Some(y)) => x[0] != y[0] || x[1] != y[1],
        (Some(_), None) => true,
        _ => {
            let same = a.role == b.role && a.tag == b.tag && a.level == b.level;
            same && (heads(a) || a.role == "link") && fold(a.words()) != fold(b.words()) && !adds(b) && !removes(b)
        }
    }
}

/// The nodes of a product's block behind its name.
#[must_use]
pub fn block<'a>(page: &Page<'a>, from: usize) -> Vec<(usize, &'a Node)> {
    let nodes: &'a [crate::view::Node] = &page.view.nodes;
    let mut out = Vec::new();
    let mut priced = false;
    let mut left_price = false;
    for (at, node) in nodes.iter().enumerate().skip(from + 1) {
        // A text has no role that tells where the next product begins: its price does.
        let price = node.text.is_some() && node.words().contains(['$', '€', '£']) && number(node.words()).is_some();
        let is_text = nodes[from].text.is_some() && nodes[from].cell.is_none();
        if is_other(page, from, at) || (is_text && price && left_price) {
            break;
        }
        left_price |= priced && !price;
        priced |= price;
        out.push((at, node));
    }
    out
}

enum Offer<'a> {
    Button(Found<'a>),
    Sold,
    None,
}

/// The button of a product that does this.
fn offer<'a>(page: &Page<'a>, anchors: &[usize], does: impl Fn(&Node) -> bool) -> Offer<'a> {
    let mut sold = false;
    for anchor in anchors {
        // The button may name the product itself.
        let own = &page.view.nodes[*anchor];
        let mut nodes = vec![(*anchor, own)];
        nodes.extend(block(page, *anchor));
        for (index, node) in nodes {
            sold |= node.text.is_some() && SOLD.contains(&fold(node.words()).as_str());
            if !does(node) {
                sold |= is_pressed(node) && node.is("disabled") && SOLD.contains(&fold(&node.name).as_str());
                if sold {
                    break;
                }
                continue;
            }
            match node.id.as_deref() {
                Some(_) if node.is("disabled") => sold = true,
                Some(id) => return Offer::Button(Found { node, id, index, sure: true }),
                None => continue,
            }
            break;
        }
    }
    if sold { Offer::Sold } else { Offer::None }
}

/// Different things that hold the words of the product: which is meant, nobody knows.
#[must_use]
pub fn is_unclear(page: &Page<'_>, anchors: &[usize]) -> bool {
    let titles = anchors.iter().map(|at| &page.view.nodes[*at]).filter(|n| n.role == "heading" || n.role == "link");
    let mut names: Vec<String> = titles.filter(|n| !adds(n)).map(|n| fold(n.words())).collect();
    names.sort_unstable();
    names.dedup();
    names.len() > 1
}

fn add(page: &Page<'_>, product: &str, count: usize, memo: &mut Memo, run: &mut Run) -> Move {
    let by_field = memo.phase & 2 != 0;
    if memo.done >= if by_field { 1 } else { count } {
        return Move::Finished;
    }
    let anchors = if product.is_empty() { Vec::new() } else { named(page, product) };
    // "it" is what the page is about.
    let heads = || page.view.nodes.iter().position(|n| n.level == Some(1) && n.role == "heading");
    let anchors = if product.is_empty() { heads().into_iter().collect() } else { anchors };
    if is_unclear(page, &anchors) && memo.done == 0 {
        return Move::Stuck("target_not_found", format!("several products are called \"{product}\""));
    }
    let found = if product.is_empty() {
        let list = page.all_where(adds);
        match list.as_slice() {
            [one] if one.node.is("disabled") => Offer::Sold,
            [one] => Offer::Button(one.clone()),
            _ => offer(page, &anchors, adds),
        }
    } else {
        offer(page, &anchors, adds)
    };
    match found {
        Offer::Button(button) => {
            if count > 1
                && !by_field
                && memo.done == 0
                && let Some(action) = quantity(page, &anchors, button.index, count)
            {
                memo.phase |= 2;
                return Move::Act(action);
            }
            memo.done += 1;
            run.edited = false;
            Move::Act(click(button.id))
        }
        Offer::Sold => Move::Stuck("disabled", format!("\"{product}\" cannot be bought now")),
        Offer::None if memo.done > 0 => {
            Move::Stuck("target_not_found", format!("only {} of {count} \"{product}\" could be added", memo.done))
        }
        Offer::None => to_product(page, &anchors, memo).unwrap_or_else(|| wait_or(memo, not_found(product))),
    }
}

/// Opens the product's own page, or turns the page of a list on which it is not.
fn to_product(page: &Page<'_>, anchors: &[usize], memo: &mut Memo) -> Option<Move> {
    if anchors.is_empty() {
        let next = page.next_page().filter(|_| memo.tried.len() < MOST_PAGES)?;
        memo.tried.push(next.id.to_owned());
        return Some(Move::Act(click(next.id)));
    }
    if memo.phase & 1 != 0 {
        return None;
    }
    let link = anchors.iter().find_map(|at| link_at(page, *at))?;
    memo.phase |= 1;
    Some(Move::Act(click(&link)))
}

/// The link that a node is, or that is around it.
#[must_use]
pub fn link_at(page: &Page<'_>, at: usize) -> Option<String> {
    let node = &page.view.nodes[at];
    if matches!(node.role.as_str(), "link" | "clickable") {
        return node.id.clone();
    }
    let around = node.inside.as_deref().and_then(|id| page.view.element(id));
    around.filter(|n| matches!(n.role.as_str(), "link" | "clickable")).and_then(|n| n.id.clone())
}

/// Sets the number of pieces beside the button, where the page has a field for it.
fn quantity(page: &Page<'_>, anchors: &[usize], button: usize, count: usize) -> Option<Action> {
    let wanted = count.to_string();
    let near: Vec<usize> = anchors.iter().flat_map(|at| block(page, *at)).map(|(at, _)| at).collect();
    let (_, node, id) = page.elements().find(|(at, node, _)| {
        let names = format!("{} {} {}", node.name, page.label(*at), node.hint.as_deref().unwrap_or_default());
        let named = parts(&names).iter().any(|w| matches!(w.as_str(), "quantity" | "qty" | "amount" | "pieces"));
        let belongs = near.contains(at) || (anchors.is_empty() && at.abs_diff(button) < 8);
        belongs && named && (node.takes_text() || node.options.contains(&wanted))
    })?;
    let id = id.to_owned();
    Some(if node.takes_text() {
        Action::Type { id: Some(id), text: wanted, clear: true, enter: false }
    } else {
        Action::Select { id, options: vec![wanted] }
    })
}

fn remove(page: &Page<'_>, product: &str, memo: &mut Memo) -> Move {
    if memo.done > 0 {
        return Move::Finished;
    }
    let anchors = named(page, product);
    match offer(page, &anchors, removes) {
        Offer::Button(button) => {
            memo.done = 1;
            Move::Act(click(button.id))
        }
        _ if memo.phase == 0 && cart_link(page).is_some() && !is_open(page) => {
            memo.phase = 1;
            cart_link(page).map_or_else(|| not_found("the cart"), |id| Move::Act(click(id)))
        }
        _ => wait_or(memo, not_found(product)),
    }
}

/// Whether the page is the cart.
fn is_open(page: &Page<'_>) -> bool {
    let path = page.view.url.split(['?', '#']).next().unwrap_or_default();
    let last = path.trim_end_matches('/').rsplit('/').next().unwrap_or_default();
    let stem = last.split('.').next().unwrap_or_default();
    let heads = page.view.nodes.iter().filter(|n| n.level == Some(1)).map(|n| parts(&n.name));
    CARTS.contains(&stem) || heads.into_iter().any(|words| words.len() < 4 && says_cart(&words))
}

/// The link to the cart.
#[must_use]
pub fn cart_link<'a>(page: &Page<'a>) -> Option<&'a str> {
    const NOT: &[&str] = &["add", "remove", "empty", "clear", "update", "continue", "save"];
    let fits = page.elements().filter(|(_, node, _)| {
        let words = words_of(node);
        is_pressed(node)
            && !node.is("disabled")
            && says_cart(&words)
            && !words.iter().any(|w| NOT.contains(&w.as_str()))
    });
    let shortest = fits.min_by_key(|(at, node, _)| (parts(&node.name).len(), *at)).map(|(_, _, id)| id);
    // A drawing of a basket has an address.
    let by_address = || {
        page.elements().find(|(_, node, _)| {
            let path = node.href.as_deref().and_then(|href| href.split(['?', '#']).next()).unwrap_or_default();
            let last = path.trim_end_matches('/').rsplit('/').next().unwrap_or_default();
            node.role == "link" && CARTS.contains(&last.split('.').next().unwrap_or_default())
        })
    };
    shortest.or_else(|| by_address().map(|(_, _, id)| id))
}

fn open(page: &Page<'_>, memo: &mut Memo) -> Move {
    if memo.done > 0 || is_open(page) {
        return Move::Finished;
    }
    match cart_link(page) {
        Some(id) => {
            memo.done = 1;
            Move::Act(click(id))
        }
        None => wait_or(memo, not_found("the cart")),
    }
}
