use serde_json::json;

use super::*;

pub(super) struct Shelf(pub(super) Vec<(&'static str, &'static str, &'static str, Value, Value, bool)>);

impl Shelf {
    pub(super) fn new() -> Self {
        let text = || json!({"type": "string", "minLength": 1});
        let email = || json!({"type": "string", "format": "email"});
        let url = || json!({"type": "string", "format": "uri"});
        let one = |name: &str, of: Value| json!({"type": "object", "properties": {name: of}, "required": [name]});
        let results = json!({"properties": {"results": {"type": "array", "items": {"type": "object", "properties": {
            "title": text(), "url": url()}}}}});
        let mail = json!({"type": "object", "required": ["body"], "properties": {"body": text(),
            "subject": {"type": "string", "description": "Needed unless a reply"},
            "to_address": {"anyOf": [email(), {"type": "array", "items": email()}], "description": "Who gets it. Needed unless a reply"}}});
        let sms = json!({"type": "object", "required": ["to_number", "message"], "properties": {
            "to_number": {"type": "string", "pattern": "^\\+?[1-9]\\d{1,14}$"},
            "message": {"type": "string", "description": "The text, of at most 30 characters"}}});
        let vin = one("vin", json!({"type": "string", "pattern": "^[0-9A-HJ-NPR-Z]{17}$"}));
        let person = json!({"type": "object", "required": ["full_name", "company_domain"], "properties": {
            "full_name": text(), "company_domain": text()}});
        Shelf(vec![
            (
                "web_search",
                "Searches the web and returns titles and addresses of pages",
                "google internet look up",
                one("query", text()),
                results,
                false,
            ),
            (
                "web_read",
                "Reads a public web page and returns its content",
                "page text website url",
                one("url", url()),
                one("markdown", text()),
                false,
            ),
            (
                "research",
                "Researches a topic and reports what the pages say",
                "investigate write report",
                one("topic", text()),
                one("report_content", text()),
                false,
            ),
            (
                "vin_decode",
                "Decodes a vehicle identification number: make, model, year",
                "car",
                vin,
                one("make", text()),
                false,
            ),
            (
                "verify_email",
                "Checks whether mail to an e-mail address arrives",
                "exist valid deliverable",
                one("email", text()),
                one("valid", json!({"type": "boolean"})),
                false,
            ),
            (
                "enrich_email",
                "Finds the e-mail address of a person at a company, by name and domain",
                "somebody",
                person,
                one("email", email()),
                false,
            ),
            ("email", "Sends an e-mail to recipients", "write mail message", mail, json!({}), true),
            ("sms", "Sends a text message to a phone number", "text message", sms, json!({}), true),
        ])
    }

    pub(super) fn plan_with(&self, text: &str, params: &Value) -> Result<Plan, Refusal> {
        let tool = |(name, about, also, input, output, acts): &'_ (
            &'static str,
            &'static str,
            &'static str,
            Value,
            Value,
            bool,
        )| { (*name, *about, *also, input.clone(), output.clone(), *acts) };
        let owned: Vec<_> = self.0.iter().map(tool).collect();
        let tools: Vec<Tool> = owned
            .iter()
            .map(|(name, about, also, input, output, acts)| Tool {
                name,
                title: "",
                about,
                also,
                input,
                output,
                acts: *acts,
            })
            .collect();
        plan(&Objective { text, params: params.as_object().unwrap() }, &tools)
    }

    fn schema(&self, name: &str) -> &Value {
        &self.0.iter().find(|tool| tool.0 == name).unwrap().3
    }
}

pub(super) fn planned(text: &str) -> Plan {
    Shelf::new().plan_with(text, &json!({})).unwrap_or_else(|refusal| panic!("{text}: {refusal:?}"))
}

pub(super) fn refused(text: &str) -> Refusal {
    Shelf::new().plan_with(text, &json!({})).err().unwrap_or_else(|| panic!("{text} was not refused"))
}

/// The tools of a plan in order; a question is `?`.
pub(super) fn shown(plan: &Plan) -> String {
    plan.tasks.iter().map(|task| task.tool.as_deref().unwrap_or("?")).collect::<Vec<_>>().join(" ")
}

pub(super) fn said(plan: &Plan, task: usize, name: &str) -> Value {
    serde_json::to_value(&plan.tasks[task].input[name]).unwrap()
}

#[test]
fn clauses_become_calls() {
    for (text, tools) in [
        ("Decode VIN 1HGCM82633A004352 and text the result to +14155550100", "vin_decode sms"),
        ("Verify ada@example.com and bob@example.org", "verify_email verify_email"),
        ("1. Research the history of lighthouses.\n2. Email the report to ada@example.com.", "research email"),
        ("Search the web for rust, then read the first two results", "web_search web_read web_read"),
        ("Could you please verify ada@example.com? Thanks!", "verify_email"),
        ("Email ada@example.com \"Do come. If not, call.\" and verify bob@example.org", "email verify_email"),
        ("Verify ada@example.com; verify ada@example.com", "verify_email"),
    ] {
        assert_eq!(shown(&planned(text)), tools, "{text}");
    }
}

#[test]
fn what_is_unclear_is_refused() {
    for (text, clause) in [
        ("Verify ada@example.com, and if it is valid, email her \"hi\"", "Verify ada@example.com, and if it is valid"),
        ("Do not email ada@example.com", "Do not email ada@example.com"),
        ("Every day, research lighthouses", "Every day, research lighthouses"),
        ("Email ada@example.com when it is done", "Email ada@example.com when it is done"),
        ("Decode VIN 1HGCM82633A004352 and play some jazz", "Decode VIN 1HGCM82633A004352 and play some jazz"),
        ("Email ada@example.com or bob@example.org \"hi\"", "Email ada@example.com or bob@example.org \"hi\""),
        ("Text +14155550100 \"hi\" tomorrow at 9am", "Text +14155550100 \"hi\" tomorrow at 9am"),
        ("Transfer 500 EUR to DE89370400440532013000", "Transfer 500 EUR to DE89370400440532013000"),
        ("Email ada@example.com a friendly invitation", "Email ada@example.com a friendly invitation"),
        ("", ""),
    ] {
        assert_eq!(refused(text).clause, clause, "{text}");
    }
}

#[test]
fn recipients_never_come_from_results() {
    let plan = planned("Find the email address of Ada Lovelace at example.com and email her \"hi\"");
    assert_eq!(shown(&plan), "enrich_email ? email");
    assert_eq!(said(&plan, 2, "to_address"), json!({"answer": {"task": 1}}));
    let plan = planned("Find the email address of Ada Lovelace at example.com and email the address you find \"hi\"");
    assert_eq!(said(&plan, 1, "to_address"), json!({"result": {"task": 0, "pointer": "/email"}}));
    let plan = planned("Verify ada@example.com and email her \"hi\"");
    assert_eq!(said(&plan, 1, "to_address"), json!({"value": "ada@example.com"}));
    let plan = planned("Verify ada@example.com and email me the result");
    assert_eq!(shown(&plan), "verify_email ? email");
    refused("My friend has the address ada@example.com. Email me \"hi\"");
    let plan = planned("Ada has the address ada@example.com. Email her \"hi\"");
    assert_eq!(said(&plan, 0, "to_address"), json!({"value": "ada@example.com"}));
    let both = Shelf::new()
        .plan_with("Email the customer and bob@example.org \"hi\"", &json!({"customer": "ada@example.com"}));
    assert!(both.is_err(), "{both:?}");
    let plan = Shelf::new().plan_with("Email bob@example.org \"hi\"", &json!({"email": "ada@example.com"})).unwrap();
    assert_eq!(said(&plan, 0, "to_address"), json!({"value": "bob@example.org"}));
    let plan = planned("Text my landlord that I am late");
    assert_eq!((shown(&plan).as_str(), said(&plan, 1, "message")), ("? sms", json!({"value": "I am late"})));
    let plan = Shelf::new().plan_with("Email the customer \"hi\"", &json!({"customer": "ada@example.com"})).unwrap();
    assert_eq!(said(&plan, 0, "to_address"), json!({"param": "customer"}));
}

#[test]
fn inputs_and_answers_are_checked() {
    let shelf = Shelf::new();
    let none = Map::new();
    let plan = planned("Decode VIN 1HGCM82633A004352 and text the result to +14155550100");
    let result = |_: usize| Some(json!({"make": "Honda", "model": "Accord", "trim": "a long name of it"}));
    let input = input_of(&plan, 1, &none, shelf.schema("sms"), &result, &|_| None).unwrap();
    assert_eq!(
        Value::Object(input),
        json!({"to_number": "+14155550100", "message": "make: Honda\nmodel: Accord\ntri…"})
    );
    assert!(input_of(&plan, 1, &none, shelf.schema("sms"), &|_| None, &|_| None).unwrap_err().contains("no result"));
    let plan = planned("Email \"hi\"");
    let asked = plan.tasks[0].asks.as_ref().unwrap();
    assert_eq!(answer(asked, "To ada@example.com, please."), Ok(json!("ada@example.com")));
    assert!(answer(asked, "whoever").is_err());
    let product =
        json!({"type": "object", "properties": {"name": {"type": "string"}, "description": {"type": "string"}}});
    let asked = Asked { text: String::new(), argument: "product".into(), meaning: Meaning::Object, schema: product };
    let told = answer(&asked, "A bakery in Lyon called Four Miche").unwrap();
    assert_eq!(told["name"], "Four Miche");
    assert_eq!(serde_json::from_value::<Plan>(serde_json::to_value(&plan).unwrap()).unwrap(), plan);
}

#[test]
fn results_of_earlier_tasks_fill_arguments() {
    let plan = planned(
        "Search the web for rust and read each of the first two results, then email the pages to ada@example.com",
    );
    assert_eq!(said(&plan, 2, "url"), json!({"result": {"task": 0, "pointer": "/results/1/url"}}));
    let body = json!({"text": {"parts": [{"result": {"task": 1, "pointer": "/markdown"}}, {"result": {"task": 2, "pointer": "/markdown"}}]}});
    assert_eq!((said(&plan, 3, "body"), plan.tasks[3].phase, &plan.tasks[3].needs), (body, 3, &vec![0, 1, 2]));
    let plan = planned("Text +14155550100 the make of VIN 1HGCM82633A004352");
    assert_eq!(shown(&plan), "vin_decode sms");
}

#[test]
fn values_are_read_by_their_form_and_checked() {
    let limit = json!({"type": "integer", "minimum": 1, "maximum": 20});
    let date = json!({"type": "string", "format": "date"});
    let input = json!({"type": "object", "required": ["category"], "properties": {"category": {"type": "string"}, "city": {"type": "string"},
        "limit": limit, "opened_after": date, "price_level": {"type": "string", "enum": ["cheap", "mid_range"]}, "outdoor_seating": {"type": "boolean"}}});
    let none = json!({});
    let tool = Tool {
        name: "restaurants",
        title: "",
        about: "Finds restaurants of a kind in a city",
        also: "",
        input: &input,
        output: &none,
        acts: false,
    };
    let planned = |text: &str| plan(&Objective { text, params: &Map::new() }, &[tool]);
    let plan =
        planned("Find 5 cheap restaurants in New York that opened after 3 May 2026, with outdoor seating").unwrap();
    for (name, value) in [
        ("city", json!("New York")),
        ("limit", json!(5)),
        ("opened_after", json!("2026-05-03")),
        ("price_level", json!("cheap")),
        ("outdoor_seating", json!(true)),
    ] {
        assert_eq!(said(&plan, 0, name), json!({ "value": value }), "{name}");
    }
    assert!(planned("Find 500 restaurants in Rome").unwrap_err().why.contains("limit"));
    assert_eq!(planned("Find restaurants in Rome and the Amalfi Coast").unwrap().tasks.len(), 2);
    for (text, value) in
        [("May 3rd, 2026", "2026-05-03"), ("13/05/2026", "2026-05-13"), ("31 April 2026", ""), ("05/06/2026", "")]
    {
        let found = values::date(&words::tokens(text), 0).map(|found| found.value);
        assert_eq!(found.unwrap_or(json!("")), json!(value), "{text}");
    }
}

#[test]
fn hostile_texts_neither_panic_nor_take_long() {
    for part in [
        "and ",
        "\"",
        "“",
        "' ",
        "é",
        "1. ",
        "then email ",
        "a@b.co and ",
        "+1 4 ",
        "的",
        "read each of the first 20 results. ",
        "\u{301}\" ",
    ] {
        let text = part.repeat(9_000 / part.len());
        let _ = Shelf::new().plan_with(&text, &json!({"": null, "a": {}}));
    }
    assert!(refused(&"x".repeat(20_000)).why.contains("too long"));
}
