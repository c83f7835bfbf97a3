//! Compares the decoder with answers computed directly from the source database by another program
//! (`assets/vpic/cases.py`).

use serde_json::{Map, Value};
use vin::{Vin, decode};

const CURRENT_YEAR: u16 = 2026;

fn cases() -> Vec<(String, Option<u16>, Map<String, Value>)> {
    let packed = include_bytes!("cases.json.z");
    let json = miniz_oxide::inflate::decompress_to_vec_zlib(packed).expect("a whole file");
    serde_json::from_slice(&json).expect("cases in JSON")
}

/// The members of an answer that the cases contain: all that are not null, except the notes and the number.
fn stated_members(answer: Value) -> Map<String, Value> {
    let Value::Object(mut members) = answer else {
        panic!("an answer is an object");
    };
    assert_eq!(members.len(), 24, "every member is always there");
    members.remove("notes");
    members.remove("vin");
    members.retain(|_, value| !value.is_null());
    members
}

#[test]
fn decoding_agrees_with_the_database() {
    let cases = cases();
    assert!(cases.len() >= 1_500);
    let mut wrong = Vec::new();
    for (text, given, expected) in &cases {
        let number = Vin::parse(text).expect("a well-formed number");
        let answer = decode(&number, *given, CURRENT_YEAR);
        let found = stated_members(serde_json::to_value(&answer).expect("JSON"));
        if found != *expected {
            wrong.push(format!("{text} {given:?}\n  {found:?}\n  {expected:?}"));
        }
    }
    assert!(wrong.is_empty(), "{} differ:\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn the_cases_cover_enough_members() {
    let cases = cases();
    let with = |member: &str| cases.iter().filter(|case| case.2.contains_key(member)).count();
    assert!(with("model") > 1_000);
    assert!(with("engine_displacement_l") > 100);
    assert!(with("suggested_vin") > 10);
    let failed = |case: &&(_, _, Map<String, Value>)| case.2["decoded"] == false;
    assert!(cases.iter().filter(failed).count() > 10);
}
