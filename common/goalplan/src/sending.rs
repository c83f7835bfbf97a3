//! Every recipient and every quotation has one place, or the clause is refused.

use serde_json::{Value, json};

use super::tests::{Shelf, planned, refused, said, shown};

const A: &str = "ada@example.com";
const B: &str = "bob@example.org";

fn refused_with(text: &str, params: Value) {
    let plan = Shelf::new().plan_with(text, &params);
    assert!(plan.is_err(), "{text}: {plan:?}");
}

#[test]
fn one_clause_sends_one_message() {
    for text in [
        "Email \"You are hired\" to ada@example.com and \"You are rejected\" to bob@example.org.",
        "Email ada@example.com \"Your code is 12345\" and bob@example.org \"Your code is 67890\".",
        "Send ada@example.com the text \"One\" and bob@example.org the text \"Two\"",
        "Email ada@example.com \"x\", bob@example.org \"y\"",
        "Email ada@example.com \"x\" with the subject \"s\" and bob@example.org \"y\" with the subject \"t\"",
        "Decode the VIN 1HGCM82633A004352 and email ada@example.com the result and bob@example.org \"Seen\".",
        "Text +14155550100 \"One\" and +14155550101 \"Two\"",
        "Email ada@example.com \"a\" \"b\" \"c\"",
        "Email ada@example.com \"a\", bob@example.org",
        "Text +14155550100 saying hello and +14155550101 saying goodbye",
        "Text +14155550100 \"hi\" with the subject \"Greeting\"",
    ] {
        refused(text);
    }
    let plan = planned("Email ada@example.com and bob@example.org \"hi\" with the subject \"Greeting\"");
    assert_eq!(said(&plan, 0, "to_address"), json!({"value": [A, B]}));
    assert_eq!(said(&plan, 0, "subject"), json!({"value": "Greeting"}));
}

#[test]
fn an_address_beside_the_recipients_gets_nothing() {
    for text in [
        "Email ada@example.com \"Hi there\" from bob@example.org",
        "Email ada@example.com about bob@example.org \"He is late\"",
        "Text +14155550100 \"Call me\" from +14155550101",
        "Email the list sent to ada@example.com \"hi\"",
        "Email ada@example.com bob@example.org \"hi\"",
        "Email ada@example.com and me \"hi\"",
        "Email ada@example.com and bob@localhost \"hi\"",
        "Text +14155550100 and 4155550101 \"hi\"",
        "Send an email saying I am late to bob@example.org",
    ] {
        refused(text);
    }
    for (text, body) in [
        ("Email ada@example.com saying please contact bob@example.org", "please contact bob@example.org"),
        ("Email ada@example.com saying bob@example.org is away", "bob@example.org is away"),
        ("Email ada@example.com saying the word \"late\" is wrong", "the word \"late\" is wrong"),
    ] {
        let plan = planned(text);
        assert_eq!(shown(&plan), "email", "{text}");
        assert_eq!(said(&plan, 0, "to_address"), json!({"value": A}));
        assert_eq!(said(&plan, 0, "body"), json!({ "value": body }));
    }
}

#[test]
fn params_never_override_the_objective() {
    let people = json!({"customer": A, "manager": B});
    refused_with("Email the manager of the customer \"Hi\"", people.clone());
    refused_with("Email the manager and the customer \"Hi\"", people);
    let sides = json!({"buyer": A, "seller": B});
    refused_with("Email the buyer \"Order 5 has shipped\" and the seller \"Pay now\"", sides);
    refused_with("Email the customer \"Hi\"", json!({"customer": A, "to_address": B}));
    refused_with("Email ada@example.com \"Hi\"", json!({"to_address": B}));
    refused_with("Email me about the customer \"Hi\"", json!({"customer": A}));
    refused_with("Email the customer's friend \"Hi\"", json!({"customer": A}));
    refused_with("Email ada@example.com \"Your order has arrived.\"", json!({"body": "You owe 500 EUR"}));
    refused_with("Verify ada@example.com", json!({"email": B}));
    let plan = Shelf::new().plan_with("Verify it", &json!({"email": B})).unwrap();
    assert_eq!(said(&plan, 0, "email"), json!({"param": "email"}));
}

#[test]
fn each_sentence_is_planned_or_refused() {
    for text in [
        "Verify ada@example.com. The invoice must be paid, 500 EUR.",
        "Please keep this confidential from eve@example.net",
        "Search the web for lighthouses and research tide tables",
        "Decode the VIN 1HGCM82633A004352. What was the exchange rate from EUR to USD on 2024-03-03?",
        "Ada has the addresses ada@example.com and bob@example.org. Email her \"hi\"",
        "Eve has the address eve@example.net. Email it",
    ] {
        refused(text);
    }
    let plan = planned("Verify ada@example.com and bob@example.org and email her \"hi\"");
    assert_eq!(shown(&plan), "verify_email verify_email ? email");
    let plan = planned("What is the make of VIN 1HGCM82633A004352? Verify ada@example.com");
    assert_eq!(shown(&plan), "vin_decode verify_email");
}

#[test]
fn hostile_characters_and_counts_are_refused() {
    refused("Verify ada@example.com\0");
    refused("Search the web for rust and read each of the first -3 results");
    assert!(!refused(&"é".repeat(10_000)).clause.is_empty());
}

/// With a tool that talks on the phone.
fn with_voice() -> Shelf {
    let mut shelf = Shelf::new();
    let input = json!({"type": "object", "required": ["objective", "target_number"], "properties": {
        "objective": {"type": "string", "description": "What the call is to achieve"},
        "target_number": {"anyOf": [{"type": "string", "pattern": "^\\+[1-9]\\d{1,14}$"}, {"type": "array", "items": {"type": "string"}}]}}});
    shelf.0.push(("voice", "Calls a phone number and talks", "phone call ring dial", input, json!({}), true));
    shelf
}

#[test]
fn a_call_reaches_only_whom_it_names() {
    let shelf = with_voice();
    for text in [
        "Call +14155550100 from +14155550101 and ask for the price",
        "Call +14155550100 and say \"One\" and +14155550101 and say \"Two\"",
        "Call +14155550100 and tell them to wait and tell +14155550101 to come",
        "Call +14155550100 \"a\" \"b\"",
    ] {
        assert!(shelf.plan_with(text, &json!({})).is_err(), "{text}");
    }
    let plan = shelf.plan_with("Call +14155550100 and tell them to call back +14155550101", &json!({})).unwrap();
    assert_eq!(said(&plan, 0, "target_number"), json!({"value": "+14155550100"}));
    assert_eq!(said(&plan, 0, "objective"), json!({"value": "tell them to call back +14155550101"}));
    let customer = json!({"customer": "+14155550100"});
    let plan = shelf.plan_with("Call the customer and ask for the price", &customer).unwrap();
    assert_eq!(said(&plan, 0, "target_number"), json!({"param": "customer"}));
    let both = json!({"customer": "+14155550100", "objective": "sell"});
    assert!(shelf.plan_with("Call the customer and ask for the price", &both).is_err());
}

/// A small generator of numbers.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from((self.0 >> 33) % sides as u64).unwrap()
    }
}

#[test]
fn random_clauses_place_everything_once_or_are_refused() {
    const WHOM: [[&str; 3]; 2] = [[A, B, "eve@example.net"], ["+14155550100", "+14155550101", "+14155550102"]];
    const LINKS: &[&str] =
        &["and", "to", "from", "about", "saying", "with the subject", ",", "", "at", "the text", "and ask about"];
    const QUOTES: [&str; 3] = ["\"One.\"", "\"Two\"", "\"Three!\""];
    let shelf = with_voice();
    let mut dice = Dice(7);
    let mut planned = 0;
    for _ in 0..2_000 {
        let (verb, whom) = [("Email", WHOM[0]), ("Text", WHOM[1]), ("Send", WHOM[0]), ("Call", WHOM[1])][dice.roll(4)];
        let mut parts: Vec<&str> = whom[..1 + dice.roll(3)].iter().chain(&QUOTES[..dice.roll(4)]).copied().collect();
        for at in (1..parts.len()).rev() {
            parts.swap(at, dice.roll(at + 1));
        }
        let mut text = verb.to_owned();
        for part in &parts {
            text += &format!(" {} {part}", LINKS[if dice.roll(3) == 0 { 7 } else { dice.roll(LINKS.len()) }]);
        }
        let text = text.replace(" ,", ",");
        let Ok(plan) = shelf.plan_with(&text, &json!({})) else { continue };
        planned += 1;
        placed_once(&text, &parts, &serde_json::to_value(&plan.tasks).unwrap());
    }
    assert!(planned > 50, "{planned}");
}

fn placed_once(text: &str, parts: &[&str], tasks: &Value) {
    let mut recipients: Vec<&str> = Vec::new();
    let mut words: Vec<&str> = Vec::new();
    for task in tasks.as_array().unwrap() {
        for (name, source) in task["input"].as_object().unwrap() {
            let value = &source["value"];
            let all = value.as_array().map_or(vec![value], |items| items.iter().collect());
            let to = if name.starts_with("t") { &mut recipients } else { &mut words };
            to.extend(all.into_iter().filter_map(Value::as_str));
        }
    }
    // A subject may repeat the first words of a message.
    words.dedup_by(|one, other| other.starts_with(one.trim_end_matches(['.', '!'])));
    for part in parts {
        let bare = part.trim_matches('"');
        let sent = recipients.iter().filter(|one| **one == bare).count();
        let told = words.iter().filter(|one| one.contains(bare)).count();
        // The task of a call may repeat the number that is called.
        let is_repeated = sent == 1 && text.starts_with("Call");
        assert!(sent + told == 1 || is_repeated, "{text}: {part} in {tasks}");
    }
}
