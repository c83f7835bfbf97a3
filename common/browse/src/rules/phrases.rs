//! Phrasings of people, in families: what each does on a small page, or that it is refused.

use serde_json::{Value, json};

use super::*;

/// A site of a few pages: fields keep what is typed, and some elements lead to another page.
struct Site {
    pages: Vec<View>,
    /// Element and the page that it opens.
    leads: Vec<(&'static str, usize)>,
}

fn page(title: &str, nodes: &Value) -> View {
    serde_json::from_value(json!({
        "url": format!("https://a.example/{}", title.to_lowercase()), "title": title,
        "width": 800, "height": 600, "nodes": nodes,
    }))
    .expect("a view")
}

fn set(view: &mut View, id: &str, change: impl FnOnce(&mut crate::view::Node)) {
    change(view.nodes.iter_mut().find(|n| n.id.as_deref() == Some(id)).expect("the element"));
}

impl Site {
    /// Plays a task to its end: what was done, and how it ended.
    fn play(&self, task: &str) -> (Vec<String>, Decision) {
        let mut plan = Plan::read(task, Some("https://a.example/"), None).unwrap_or_else(|e| panic!("{task}: {e:?}"));
        let mut pages = self.pages.clone();
        let (mut at, mut done, mut acts) = (0, None, Vec::new());
        for _ in 0..60 {
            let view = &mut pages[at];
            let action = match plan.next(view, done.as_ref()) {
                Decision::Act { action, .. } => action,
                end => return (acts, end),
            };
            done = Some(Outcome::default());
            match action {
                Action::Type { id: Some(id), text, enter, .. } => {
                    acts.push(format!("{id}={text}"));
                    set(view, &id, |node| node.value = Some(text));
                    at = self.leads.iter().find(|(lead, _)| enter && *lead == id).map_or(at, |(_, page)| *page);
                }
                Action::Set { id, value } => {
                    acts.push(format!("{id}={value}"));
                    set(view, &id, |node| node.value = Some(value));
                }
                Action::Select { id, options } => {
                    acts.push(format!("{id}={}", options.join("+")));
                    set(view, &id, |node| node.value = options.into_iter().next());
                }
                Action::Check { id, on } => {
                    acts.push(format!("{id}:{on}"));
                    let state = if on { "checked" } else { "unchecked" };
                    set(view, &id, |node| node.states = vec![state.to_owned()]);
                }
                Action::Click { id, .. } => {
                    at = self.leads.iter().find(|(lead, _)| *lead == id).map_or(at, |(_, page)| *page);
                    acts.push(id);
                }
                Action::Wait { .. } => {}
                other => acts.push(format!("{other:?}")),
            }
        }
        panic!("{task} does not end: {acts:?}");
    }

    fn acts(&self, task: &str, expected: &[&str]) {
        let (acts, end) = self.play(task);
        assert_eq!(acts, expected, "{task}: {end:?}");
        assert!(matches!(end, Decision::Done { .. }), "{task}: {end:?}");
    }

    fn says(&self, task: &str, expected: &Value) {
        let (_, end) = self.play(task);
        let Decision::Done { output, .. } = end else { panic!("{task}: {end:?}") };
        assert_eq!(output, *expected, "{task}");
    }
}

fn refused(task: &str, part: &str) {
    let parts = Plan::read(task, Some("https://a.example/"), None).expect_err(task).parts;
    assert!(parts.iter().any(|p| p.contains(part)), "{task}: {parts:?}");
}

fn field(id: &str, name: &str, top: i64) -> Value {
    json!({"id": id, "role": "textbox", "tag": "input", "name": name, "value": "", "box": [100, top, 200, 20]})
}

fn button(id: &str, name: &str, top: i64) -> Value {
    json!({"id": id, "role": "button", "tag": "button", "name": name, "box": [100, top, 80, 20]})
}

fn form() -> Site {
    let mut arrival = field("in", "Check-in", 150);
    let mut departure = field("out", "Check-out", 180);
    arrival["type"] = json!("date");
    departure["type"] = json!("date");
    let start = page(
        "Form",
        &json!([
            field("name", "Name", 0), field("last", "Last name", 30), field("mail", "Email", 60),
            field("phone", "Phone", 90), field("text", "Message", 120), arrival, departure,
            {"id": "land", "role": "combobox", "tag": "select", "name": "Country", "value": "-",
                "options": ["-", "France", "Italy"], "box": [100, 210, 200, 20]},
            button("send", "Send", 240),
        ]),
    );
    let thanks = page("Thanks", &json!([{"text": "Thank you", "box": [0, 0, 90, 20]}]));
    Site { pages: vec![start, thanks], leads: vec![("send", 1)] }
}

#[test]
fn several_fields_of_one_sentence_are_filled() {
    let site = form();
    for (task, acts) in [
        (
            "Fill in Name with Ada Lovelace and Email with ada@example.com, then click Send",
            vec!["name=Ada Lovelace", "mail=ada@example.com", "send"],
        ),
        (
            "Could you please fill in Name with Ada, Email with a@b.c, and Message with Hi there, friend. Thanks!",
            vec!["name=Ada", "mail=a@b.c", "text=Hi there, friend"],
        ),
        (
            "Enter ada@example.com as email and +14155550100 as phone",
            vec!["mail=ada@example.com", "phone=+14155550100"],
        ),
        (
            "Type Ada in the Name field and a@b.c in the Email field, and after that press the Send button",
            vec!["name=Ada", "mail=a@b.c", "send"],
        ),
        (
            "I need you to set Check-in to 2026-12-01 and Check-out to 2026-12-03",
            vec!["in=2026-12-01", "out=2026-12-03"],
        ),
        (
            "Set Country to Italy, Name to Ada and Last name to Lovelace",
            vec!["land=Italy", "name=Ada", "last=Lovelace"],
        ),
        (
            "Enter the email address a@b.c, the phone number +44 20 7946 0000 and the message \"Open on Sunday?\"",
            vec!["mail=a@b.c", "phone=+44 20 7946 0000", "text=Open on Sunday?"],
        ),
        ("Fill in Name with \"Ada\" and Country with \"France\"", vec!["name=Ada", "land=France"]),
    ] {
        site.acts(task, &acts);
    }
    refused("Fill in the form", "in the form");
}

#[test]
fn lists_of_details_are_filled() {
    let site = form();
    let all = ["name=Ada Lovelace", "mail=ada@example.com", "phone=+14155550100", "send"];
    for task in [
        "Fill in the form with: name Ada Lovelace, email ada@example.com, phone +14155550100. Then click Send.",
        "Fill in the form:\nName: Ada Lovelace\nEmail: ada@example.com\nPhone: +14155550100\nClick Send",
        "Fill out the contact form using these details: Name: Ada Lovelace, Email: ada@example.com, Phone: +14155550100 \
         and click Send",
        "Please complete the form with the following details:\n- Name: Ada Lovelace\n- Email: ada@example.com\n\
         - Phone: +14155550100\n\nThen click Send",
        "Name: Ada Lovelace\nEmail: ada@example.com\nPhone: +14155550100\nClick Send",
        "1. Enter the name Ada Lovelace, the email ada@example.com and the phone number +14155550100\n2. Click Send",
        "On the page that opens, fill in the form with name Ada Lovelace, email ada@example.com and phone \
         +14155550100, and then send it",
    ] {
        site.acts(task, &all);
    }
    site.acts(
        "Fill in the form:\nName: Ada\nMessage: I would like a kettle, please.\nClick Send.",
        &["name=Ada", "text=I would like a kettle, please.", "send"],
    );
    refused("Fill in the form with: name Ada Lovelace, shoe size 42", "shoe size 42");
}

fn kettle() -> Site {
    let start = page(
        "Kettle",
        &json!([
            {"id": "h", "role": "heading", "tag": "h1", "name": "Red Kettle", "level": 1, "box": [0, 0, 200, 20]},
            {"text": "$35.00", "box": [0, 30, 80, 20]},
            {"id": "size", "role": "combobox", "tag": "select", "name": "Size", "value": "Small",
                "options": ["Small", "Large"], "box": [100, 60, 90, 20]},
            {"text": "Color", "box": [0, 90, 80, 20]},
            {"id": "red", "role": "radio", "tag": "input", "name": "Red", "states": ["unchecked"], "box": [0, 120, 20, 20]},
            {"id": "blue", "role": "radio", "tag": "input", "name": "Blue", "states": ["unchecked"], "box": [0, 150, 20, 20]},
            {"id": "many", "role": "spinbutton", "tag": "input", "type": "number", "name": "Quantity", "value": "1",
                "box": [100, 180, 90, 20]},
            {"id": "other", "role": "combobox", "tag": "select", "name": "Gift cards", "value": "0",
                "options": ["0", "3"], "box": [100, 210, 90, 20]},
            button("add", "Add to cart", 240),
        ]),
    );
    let cart = page("Cart", &json!([{"text": "Red Kettle is in your cart", "box": [0, 0, 90, 20]}]));
    Site { pages: vec![start, cart], leads: vec![("add", 1)] }
}

#[test]
fn variants_and_quantities_are_chosen() {
    let site = kettle();
    for (task, acts) in [
        ("Choose size Large", vec!["size=Large"]),
        ("select the colour blue", vec!["blue:true"]),
        ("Pick the large size", vec!["size=Large"]),
        ("Set the quantity to 3, then add it to the cart", vec!["many=3", "add"]),
        ("Change the quantity to 3", vec!["many=3"]),
        ("Choose Large as the size and Blue as the color", vec!["size=Large", "blue:true"]),
    ] {
        site.acts(task, &acts);
    }
}

#[test]
fn values_of_a_page_are_told() {
    kettle().says("Could you tell me the price?", &json!("$35.00"));
}

/// A list of products, one of them sold out, and a cart.
fn shop() -> Site {
    let product = |id: &str, name: &str, price: &str, top: i64| {
        vec![
            json!({"id": format!("{id}-h"), "role": "heading", "tag": "h3", "name": name, "level": 3, "box": [0, top, 200, 20]}),
            json!({"id": format!("{id}-a"), "role": "link", "tag": "a", "name": name, "in": format!("{id}-h"),
                "href": format!("https://a.example/{id}"), "box": [0, top, 200, 20]}),
            json!({"text": price, "box": [0, top + 20, 80, 20]}),
        ]
    };
    let mut nodes = vec![
        json!({"id": "home", "role": "link", "tag": "a", "name": "Home", "box": [0, 0, 50, 20]}),
        json!({"id": "cart", "role": "link", "tag": "a", "name": "Shopping basket (0)", "box": [60, 0, 90, 20]}),
        json!({"id": "help", "role": "link", "tag": "a", "name": "Contact us", "box": [160, 0, 90, 20]}),
    ];
    nodes.extend(product("pot", "Tea Pot", "$12.00", 100));
    nodes.push(json!({"text": "Sold out", "box": [100, 120, 80, 20]}));
    nodes.extend(product("red", "Red Kettle", "$35.00", 200));
    nodes.push(button("red-add", "Add to basket", 220));
    nodes.extend(product("blue", "Blue Mug", "$8.50", 300));
    nodes.push(button("blue-add", "Add to basket", 320));
    nodes.extend(product("cup", "Cup", "$3.00", 400));
    let mut cup = kettle().pages.remove(0);
    set(&mut cup, "h", |node| node.name = "Cup".to_owned());
    let cart = page(
        "Cart",
        &json!([
            {"id": "c", "role": "heading", "tag": "h1", "name": "Your cart", "level": 1, "box": [0, 0, 200, 20]},
            {"text": "Blue Mug", "cell": [1, 1, 0], "box": [0, 30, 80, 20]},
            {"id": "del1", "role": "button", "name": "Remove", "cell": [1, 1, 1], "box": [100, 30, 80, 20]},
            {"text": "Red Kettle", "cell": [1, 2, 0], "box": [0, 60, 80, 20]},
            {"id": "del2", "role": "button", "name": "Remove", "cell": [1, 2, 1], "box": [100, 60, 80, 20]},
            {"text": "Total", "cell": [1, 3, 0], "box": [0, 90, 80, 20]},
            {"text": "$43.50", "cell": [1, 3, 1], "box": [100, 90, 80, 20]},
        ]),
    );
    let contact = page(
        "Contact",
        &json!([
            {"id": "h1", "role": "heading", "tag": "h1", "name": "Contact", "level": 1, "box": [0, 0, 200, 20]},
            {"text": "Phone: +1 415 555 0100", "box": [0, 30, 200, 20]},
        ]),
    );
    let leads = vec![("cart", 1), ("cup-a", 2), ("help", 3)];
    Site { pages: vec![page("Shop", &json!(nodes)), cart, cup, contact], leads }
}

#[test]
fn carts_are_filled_and_emptied() {
    let site = shop();
    for (task, acts) in [
        ("Add the Red Kettle to the cart", vec!["red-add"]),
        ("Please add two Blue Mugs to the basket", vec!["blue-add", "blue-add"]),
        ("Add a Cup to the cart", vec!["cup-a", "add"]),
        ("Add 3 Cups to the bag, then go to the cart", vec!["cup-a", "many=3", "add"]),
        ("Go to the cart and remove the Red Kettle from the cart", vec!["cart", "del2"]),
        ("Remove the Red Kettle from my basket", vec!["cart", "del2"]),
        (
            "I'd like you to open the Cup page, choose size Large and then add it to the cart",
            vec!["cup-a", "size=Large", "add"],
        ),
    ] {
        let (done, end) = site.play(task);
        assert_eq!(done, acts, "{task}: {end:?}");
    }
    // The next product's button is not the button of what is sold out, or of what is not there.
    for task in ["Add the Tea Pot to the cart", "Add the Green Kettle to the cart"] {
        let (done, end) = site.play(task);
        assert!(done.is_empty() || done == ["pot-a"], "{task}: {done:?}");
        assert!(matches!(end, Decision::GiveUp { .. }), "{task}: {end:?}");
    }
    site.says("Go to the cart. What is the total?", &json!("$43.50"));
}

#[test]
fn questions_are_answered_where_the_thing_stands() {
    let site = shop();
    for (task, answer) in [
        ("Tell me the price of the Red Kettle", json!("$35.00")),
        ("What does the Blue Mug cost?", json!("$8.50")),
        ("How much does the Blue Mug cost?", json!("$8.50")),
        ("Find the price of the Tea Pot", json!("$12.00")),
        (
            "Get the availability and price of the Tea Pot",
            json!({"availability of tea pot": "Sold out", "price of tea pot": "$12.00"}),
        ),
        ("List the names of all products", json!(["Tea Pot", "Red Kettle", "Blue Mug", "Cup"])),
        (
            "Get the names and prices of the first two products",
            json!([
                {"name": "Tea Pot", "price": "$12.00"}, {"name": "Red Kettle", "price": "$35.00"},
            ]),
        ),
        ("What is the name of the first product?", json!("Tea Pot")),
        ("How many products are there?", json!(4)),
        ("return the phone number on the contact page", json!("+1 415 555 0100")),
        ("What is the total in the cart?", json!("$43.50")),
    ] {
        site.says(task, &answer);
    }
    // What the page does not say of it, the next product does not say either.
    let (_, end) = site.play("What is the availability of the Blue Mug?");
    assert!(matches!(end, Decision::GiveUp { .. }), "{end:?}");
}

/// A page of articles with a search, its results, and an article.
fn journal() -> Site {
    let link = |id: &str, name: &str, top: i64| {
        json!({"id": id, "role": "link", "tag": "a", "name": name,
        "href": format!("https://a.example/{id}"), "box": [0, top, 200, 20]})
    };
    let menu = || vec![link("home", "Home", 0), link("about", "About", 0)];
    let mut start = menu();
    start.extend([
        json!({"id": "q", "role": "searchbox", "tag": "input", "name": "Search", "value": "", "box": [0, 30, 200, 20]}),
        button("go", "Go", 30),
        link("bees", "The secret life of bees", 60),
        link("ants", "Ants", 90),
        link("list", "Price list (PDF)", 120),
        link("terms", "Download terms", 150),
        link("n", "Next page", 180),
    ]);
    let mut results = menu();
    results.extend([
        json!({"text": "2 results for bees", "box": [0, 30, 200, 20]}),
        link("r1", "Bees in town", 60),
        link("r2", "Honey bees", 90),
    ]);
    let article = json!([
        {"id": "t", "role": "heading", "tag": "h1", "name": "The secret life of bees", "level": 1, "box": [0, 0, 200, 20]},
        {"text": "By Ada Lovelace", "box": [0, 30, 200, 20]},
    ]);
    let pages = vec![page("Journal", &json!(start)), page("Results", &json!(results)), page("Article", &article)];
    Site { pages, leads: vec![("q", 1), ("bees", 2)] }
}

#[test]
fn pages_are_searched_turned_and_opened() {
    let site = journal();
    for (task, acts) in [
        ("Search for \"bees\" and open the first result", vec!["q=bees", "r1"]),
        ("Search for bees, then open the second result", vec!["q=bees", "r2"]),
        ("Open the article about bees", vec!["bees"]),
        ("Open the third link", vec!["bees"]),
        ("Go to the about page", vec!["about"]),
        ("go to the next page", vec!["n"]),
        ("Download the price list", vec!["list"]),
    ] {
        let (done, end) = site.play(task);
        assert_eq!(done, acts, "{task}: {end:?}");
    }
    site.says("Find the article about bees and tell me its author", &json!("Ada Lovelace"));
    site.says("Search for bees. How many results are there?", &json!(2));
    site.says("Search for bees and tell me how many results there are", &json!(2));
    site.says("Open the article about bees and tell me who the author is", &json!("Ada Lovelace"));
    let (done, _) = site.play("Scroll to the bottom");
    assert!(done[0].starts_with("Scroll"), "{done:?}");
}

#[test]
fn conditions_exceptions_and_repetition_stay_refused() {
    for (task, part) in [
        ("Add the Red Kettle to the cart if it costs less than 20 dollars", "if it costs"),
        ("Add all products except the Tea Pot to the cart", "except"),
        ("Add the cheapest product to the cart unless it is sold out", "unless"),
        ("Click Next until you see the Red Kettle", "until"),
        ("Fill in Name with Ada, but do not send the form", "not"),
        ("Log in as ada", "Log in as ada"),
    ] {
        refused(task, part);
    }
}

#[test]
fn no_step_shows_a_password() {
    for task in [
        "Enter ada@example.com as email and s3cret! as password",
        "Log in as ada / s3cret!",
        "Fill in the form:\nEmail: ada@example.com\nPassword: s3cret!",
        "Enter the username \"ada\" and the password \"s3cret!\" into the text fields",
    ] {
        let plan = Plan::read(task, None, None).expect("understood");
        assert!(plan.steps.iter().all(|step| !step.goal().contains("s3cret")), "{task}: {:?}", plan.steps);
    }
}
