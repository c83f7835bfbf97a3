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
                Action::Type { id: Some(id), text, .. } => {
                    acts.push(format!("{id}={text}"));
                    set(view, &id, |node| node.value = Some(text));
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
