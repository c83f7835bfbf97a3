//! Clauses that open, click, look for and move about.

use super::read::Reading;
use super::step::{How, What};
use super::target::{Kind, Many, Relation, Target};
use super::words::{Ordinal, Token, count, fold, joined, ordinal};

type Read = Option<Vec<What>>;

/// Words after which nothing says what is clicked: "to delete it", "when done".
const AFTER: [&str; 9] = ["when", "once", "if", "so", "until", "after", "because", "while", "using"];

/// Cuts a purpose or a time off the end of a clause.
#[must_use]
pub fn without_purpose(tokens: &[Token]) -> &[Token] {
    let end = tokens.iter().enumerate().skip(1).position(|(at, t)| {
        t.is(&AFTER)
            || (t.is(&["to"])
                && tokens.get(at + 1).is_some_and(|n| {
                    n.is(&[
                        "delete", "mark", "open", "see", "go", "continue", "submit", "save", "close", "remove", "get",
                        "view", "find", "complete", "finish", "confirm", "proceed", "add", "log", "sign", "start",
                        "show", "expand",
                    ])
                }))
    });
    end.map_or(tokens, |end| &tokens[..=end])
}

/// An address of the web, also without its scheme.
#[must_use]
pub fn address(text: &str) -> Option<String> {
    let full = if text.contains("://") { text.to_owned() } else { format!("https://{text}") };
    let url = url::Url::parse(&full).ok()?;
    let host = url.host_str()?;
    let known = matches!(url.scheme(), "http" | "https")
        && (text.contains("://") || (host.contains('.') && !host.ends_with('.')));
    let plain = !text.contains('@') && host.rsplit('.').next().is_some_and(|end| end.len() > 1 || text.contains("://"));
    (known && plain).then(|| url.to_string())
}

/// "open https://…", "go back", "go to the Pricing page".
pub fn open(verb: &Token, rest: &[Token], reading: &Reading) -> Read {
    if verb.is(&["open", "view", "visit"])
        && reading.explore
        && matches!(rest, [it] if it.is(&["it", "that"]))
        && let Some(context) = &reading.context
    {
        let target =
            Target { said: context.clone(), name: context.clone(), full: context.clone(), ..Target::default() };
        return Some(vec![What::Click { target, how: How::Once, explore: false }]);
    }
    if let Some((at, url)) = rest.iter().enumerate().find_map(|(at, t)| Some((at, address(&t.text)?))) {
        // What follows an address is a step of its own, or not understood.
        let dull = ["in", "the", "a", "browser", "page", "website", "site", "new", "tab", "first", "and"];
        return rest[at + 1..].iter().all(|t| t.is(&dull)).then(|| vec![What::Open(url)]);
    }
    if rest.first().is_some_and(|t| t.is(&["back"])) {
        let steps = rest.get(1).and_then(|t| count(&t.low)).unwrap_or(1).min(20);
        return Some(vec![What::Back; steps]);
    }
    let to = rest.iter().take_while(|t| t.is(&["to", "into", "up"])).count();
    if verb.is(&["go", "navigate", "return"]) && to == 0 {
        return None;
    }
    if let Some(words) = topic(&rest[to..]) {
        return Some(vec![click_step(Target::read(words), How::Once, reading)]);
    }
    let mut rest: Vec<Token> = rest[to..].to_vec();
    // "the Pricing page": pages are reached by their links.
    rest.retain(|t| !t.is(&["page", "screen", "website", "site"]) || t.quoted);
    let target = reading.target(without_purpose(&rest));
    (!target.name.is_empty() || target.kind.is_some()).then(|| vec![click_step(target, How::Once, reading)])
}

/// A click of a target, looked for if the clause before said so.
pub fn click_step(target: Target, how: How, reading: &Reading) -> What {
    What::Click { target, how, explore: reading.explore }
}

/// Names of keys as a session presses them; `None` if it is no key.
fn keys(text: &str) -> Option<String> {
    let mut out = Vec::new();
    for part in text.split('+') {
        let low = part.trim().to_lowercase();
        let key = match low.as_str() {
            "enter" | "return" => "Enter",
            "tab" => "Tab",
            "escape" | "esc" => "Escape",
            "space" | "spacebar" => "Space",
            "backspace" => "Backspace",
            "delete" | "del" => "Delete",
            "home" => "Home",
            "end" => "End",
            "pageup" => "PageUp",
            "pagedown" => "PageDown",
            "up" | "arrowup" => "ArrowUp",
            "down" | "arrowdown" => "ArrowDown",
            "left" | "arrowleft" => "ArrowLeft",
            "right" | "arrowright" => "ArrowRight",
            "ctrl" | "control" => "Control",
            "shift" => "Shift",
            "alt" => "Alt",
            "cmd" | "meta" | "command" => "Meta",
            one if one.chars().count() == 1 && text.contains('+') => {
                out.push(one.to_uppercase());
                continue;
            }
            _ => return None,
        };
        out.push(key.to_owned());
    }
    (!out.is_empty()).then(|| out.join("+"))
}

/// "click …", "press Enter", "click on the numbers in ascending order".
pub fn click(verb: &Token, rest: &[Token], reading: &Reading) -> Read {
    let rest = if rest.first().is_some_and(|t| t.is(&["on", "in", "into"])) { &rest[1..] } else { rest };
    if verb.is(&["press", "hit", "push", "tap"]) {
        let plain: Vec<&Token> = rest.iter().filter(|t| !t.is(&["the", "key"])).collect();
        if let [key] = plain.as_slice()
            && let Some(keys) = keys(&key.text).filter(|_| !key.quoted || keys(&key.text).is_none_or(|k| k != "Delete"))
        {
            return Some(vec![What::Press(keys)]);
        }
        if let [key, of, ..] = plain.as_slice()
            && (of.is(&["arrow"]) || (key.is(&["arrow"])))
        {
            let name = if key.is(&["arrow"]) { of } else { key };
            return keys(&name.text).map(|k| vec![What::Press(k)]);
        }
    }
    if let Some(at) = rest.iter().position(|t| t.is(&["ascending", "increasing"])) {
        let end = rest[..at].iter().rposition(|t| t.is(&["in"])).unwrap_or(at);
        return Some(vec![What::Ascending { target: Target::read(&rest[..end]), drag: false }]);
    }
    let how = if verb.is(&["double", "double-click", "doubleclick"]) {
        How::Double
    } else if verb.is(&["right", "right-click"]) {
        How::Right
    } else {
        How::Once
    };
    let rest = without_purpose(rest);
    let mut steps = Vec::new();
    // "click A and B", "click A, B and C": several things of one verb.
    for part in several(rest) {
        let target = reading.target(part);
        let empty =
            target.name.is_empty() && target.kind.is_none() && target.shape.is_none() && target.colour.is_none();
        if empty || is_beyond(part) {
            return None;
        }
        steps.push(click_step(target, how, reading));
    }
    (!steps.is_empty()).then_some(steps)
}

/// Whether a thing is described by what only a person sees or judges: its geometry, what it means.
fn is_beyond(tokens: &[Token]) -> bool {
    let geometry = ["center", "centre", "midpoint", "mid-point", "coordinate", "coordinates", "angle"];
    let judged = tokens.windows(2).any(|w| w[0].is(&["that", "which"]) && !w[1].is(&["says", "is", "has", "reads"]));
    let nameless =
        tokens.windows(3).any(|w| w[0].is(&["with"]) && w[1].is(&["the", "an"]) && w[2].is(&["icon", "picture"]));
    tokens.iter().any(|t| t.is(&geometry)) || judged || nameless
}

/// Parts of a list in which each part is quoted or has its own article.
fn several(tokens: &[Token]) -> Vec<&[Token]> {
    let mut out = Vec::new();
    let mut start = 0;
    for (at, token) in tokens.iter().enumerate().skip(1) {
        let next = tokens.get(at + 1);
        if token.is(&["and", "then"]) && next.is_some_and(|n| n.quoted || n.is(&["the", "button", "on"])) && at > start
        {
            out.push(&tokens[start..at]);
            start = at + 1;
        } else if tokens[at - 1].after == Some(',') && tokens[at - 1].quoted && token.quoted {
            out.push(&tokens[start..at]);
            start = at;
        }
    }
    out.push(&tokens[start..]);
    out.retain(|part| !part.is_empty());
    out
}

/// The words that a page shows of "the article about bees": "bees".
#[must_use]
pub fn topic(rest: &[Token]) -> Option<&[Token]> {
    const THINGS: &[&str] = &[
        "article", "post", "page", "product", "book", "story", "news", "entry", "recipe", "item", "question", "event",
        "job", "video", "one",
    ];
    let start = rest.iter().take_while(|t| t.is(&["the", "a", "an", "for", "blog", "news"])).count();
    let about = rest.get(start + 1)?;
    let is_thing = rest.get(start).is_some_and(|t| t.is(THINGS));
    let link = about.is(&["about", "on", "called", "titled", "named", "regarding"]);
    let words = &rest[start + 2..];
    let words = words.split_first().filter(|(t, _)| t.is(&["the", "a"])).map_or(words, |(_, more)| more);
    (is_thing && link && !words.is_empty()).then_some(words)
}

/// Whether "through the file tree", "between the tabs" follows.
#[must_use]
pub fn through(rest: &[Token]) -> bool {
    rest.first().is_some_and(|t| t.is(&["through", "between", "around", "among"]))
}

/// The next clause is to be looked for.
pub fn explore(reading: &mut Reading) -> Read {
    reading.explore = true;
    Some(Vec::new())
}

/// "find X", where what is done with X comes next.
pub fn find(rest: &[Token], reading: &mut Reading) -> Read {
    let rest = if rest.first().is_some_and(|t| t.is(&["for", "at"])) { &rest[1..] } else { rest };
    reading.explore = true;
    if rest.is_empty() {
        return Some(Vec::new());
    }
    if let Some(at) = rest.iter().position(|t| t.is(&["word"])) {
        let ordinal = rest[..at].iter().find_map(|t| ordinal(&t.low))?;
        let area = rest[at + 1..]
            .iter()
            .any(|t| t.is(&["area", "textarea", "field"]))
            .then(|| Target { kind: Some(Kind::Area), ..Target::default() });
        reading.kept = true;
        return Some(vec![What::Word { ordinal, area }]);
    }
    if let Some(words) = topic(rest) {
        let phrase = words.iter().find(|t| t.quoted).map_or_else(|| fold(&joined(words)), |t| fold(&t.text));
        reading.context = Some(phrase.clone());
        return Some(vec![What::Find(Target {
            name: phrase.clone(),
            full: phrase,
            said: joined(rest),
            ..Target::default()
        })]);
    }
    let target = reading.target(rest);
    // What is found says where the next steps are.
    let phrase = match &target.near {
        Some((Relation::Of, phrase)) if target.name.is_empty() || !target.quoted => {
            let named = rest.first().is_some_and(|t| t.quoted || t.text.chars().next().is_some_and(char::is_uppercase));
            if named { target.name.clone() } else { phrase.clone() }
        }
        _ => target.name.clone(),
    };
    if phrase.is_empty() {
        return None;
    }
    reading.context = Some(phrase.clone());
    Some(vec![What::Find(Target { name: phrase.clone(), full: phrase, said: joined(rest), ..Target::default() })])
}

/// "copy the text in the 2nd textarea".
pub fn copy(rest: &[Token], reading: &mut Reading) -> Read {
    let at = rest.iter().position(|t| t.is(&["in", "from", "of"]))?;
    let mut target = Target::read(&rest[at + 1..]);
    if target.name == "below" {
        target.name.clear();
        target.full.clear();
    }
    reading.kept = true;
    Some(vec![What::Copy(target)])
}

/// "expand the section Shipping".
pub fn expand(rest: &[Token]) -> Read {
    let plain: Vec<Token> = rest
        .iter()
        .filter(|t| !t.is(&["below", "above", "section", "sections", "menu", "panel", "pie"]))
        .cloned()
        .collect();
    let target = Target::read(&plain);
    Some(vec![What::Expand((!target.name.is_empty() || target.ordinal.is_some()).then_some(target))])
}

/// "submit", "submit the form", "submit when done".
pub fn submit(rest: &[Token], reading: &Reading) -> Read {
    let rest = without_purpose(rest);
    let plain: Vec<Token> = rest
        .iter()
        .filter(|t| !t.is(&["the", "form", "it", "when", "done", "your", "my", "answer", "to", "request"]))
        .cloned()
        .collect();
    if plain.is_empty() {
        return Some(vec![What::Submit]);
    }
    let target = reading.target(&plain);
    Some(vec![click_step(target, How::Once, reading)])
}

/// "close the dialog", "close it by clicking the x".
pub fn close(rest: &[Token], reading: &Reading) -> Read {
    if let Some(at) = rest.iter().position(|t| t.is(&["clicking", "pressing", "tapping"])) {
        return click(&rest[at], &rest[at + 1..], reading);
    }
    let target = Target { said: joined(rest), name: "close".to_owned(), full: "close".to_owned(), ..Target::default() };
    Some(vec![click_step(target, How::Once, reading)])
}

/// "delete the row of Ada", "accept the cookies": a button says the verb, and it belongs to what follows.
pub fn generic(verb: &Token, rest: &[Token], reading: &Reading) -> Read {
    const ACTS: [&str; 26] = [
        "delete",
        "remove",
        "add",
        "accept",
        "agree",
        "save",
        "cancel",
        "continue",
        "confirm",
        "like",
        "share",
        "edit",
        "star",
        "archive",
        "download",
        "play",
        "pause",
        "follow",
        "unfollow",
        "subscribe",
        "reject",
        "decline",
        "apply",
        "clear",
        "print",
        "reset",
    ];
    if !verb.is(&ACTS) {
        return None;
    }
    // "add 3 kettles": no rule counts.
    if rest.iter().any(|t| !t.quoted && t.low.parse::<u32>().is_ok()) {
        return None;
    }
    let clear_of = |t: &Token| {
        t.is(&["the", "all", "a", "an", "my", "it", "this", "to", "terms", "cookies", "changes", "form", "button"])
    };
    let to = rest.iter().rposition(|t| t.is(&["to"])).filter(|_| verb.is(&["add"]));
    if to.is_none() && verb.is(&["add"]) && rest.iter().any(|t| t.is(&["to"])) {
        return None;
    }
    let lists = ["cart", "basket", "bag", "list", "wishlist", "favorites", "favourites"];
    let cart = to.filter(|at| rest[*at..].iter().any(|t| t.is(&lists)));
    if to.is_some() && cart.is_none() {
        return None;
    }
    let mut name = verb.low.clone();
    let mut object = rest;
    if let Some(at) = cart {
        name = format!(
            "add {}",
            joined(&rest[at..].iter().filter(|t| !t.is(&["the", "my"])).cloned().collect::<Vec<_>>()).to_lowercase()
        );
        object = &rest[..at];
    }
    let words: Vec<Token> = object.iter().filter(|t| !clear_of(t)).cloned().collect();
    let phrase = words.iter().find(|t| t.quoted).map_or_else(|| super::clause::phrase(&words), |t| fold(&t.text));
    let mut target =
        Target { said: format!("{} {}", verb.text, joined(rest)), name: name.clone(), full: name, ..Target::default() };
    if rest.iter().any(|t| t.is(&["all", "every", "each"])) {
        target.many = Many::All;
    }
    target.ordinal = words.iter().find_map(|t| ordinal(&t.low)).filter(|o| *o != Ordinal::Last(1) || words.len() > 1);
    if verb.is(&["download"]) && !phrase.is_empty() && target.ordinal.is_none() {
        return Some(vec![What::Download(phrase)]);
    }
    if !phrase.is_empty() && target.ordinal.is_none() {
        target.near = Some((Relation::Of, phrase));
    } else if let Some(context) = &reading.context {
        target.near = Some((Relation::Of, context.clone()));
    }
    Some(vec![click_step(target, How::Once, reading)])
}

/// "upload \"photo.png\" to Picture": the names of given files, and the field that takes them.
pub fn upload(rest: &[Token], reading: &Reading) -> Read {
    let joiner = |t: &Token| t.is(&["to", "into", "in", "as", "for", "with", "using"]) && !t.quoted;
    let at = rest.iter().position(joiner).unwrap_or(rest.len());
    let is_name =
        |t: &&Token| t.quoted || t.text.rsplit_once('.').is_some_and(|(name, end)| !name.is_empty() && !end.is_empty());
    let files: Vec<String> = rest[..at].iter().filter(is_name).map(|t| t.text.clone()).collect();
    let field = reading.target(rest.get(at + 1..).unwrap_or_default());
    (!files.is_empty()).then(|| vec![What::Upload { files, field }])
}
