//! The plan of an outbound call: what is shown with its price, and what it costs. Pure, and by rules: a plan is made before
//! anything is paid.

use std::time::Duration;

use base::money::Usdc;
use base::untrusted_text::visible;
use serde_json::{Map, Value, json};

use crate::call::started_minutes;
use crate::dialogue::sentences;

/// A minute, inbound or outbound, unless the operator set another price: 0.35 USDC.
pub const EACH: Usdc = Usdc::from_micro(350_000);
/// Most minutes of an outbound call.
pub const MAX_MINUTES: u32 = 30;
/// Minutes of an outbound call, if the caller says nothing.
pub const DEFAULT_MINUTES: u32 = 10;
/// Most numbers of one call.
pub const MAX_TARGETS: usize = 5;
/// Most success criteria and talking points of a plan.
pub const MAX_POINTS: usize = 5;
/// Most characters of one, and of the summary of an objective.
const MAX_POINT: usize = 200;
/// Words that an assistant says in a minute, with the answers between.
const WORDS_A_MINUTE: usize = 60;
/// A criterion that every call has.
const REACHED: &str = "A person or an assistant at the number has answered";

/// The price of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Price {
    /// The longest length, in minutes. The call is cut there.
    pub minutes: u32,
    /// Numbers that are called; each counts its own minutes.
    pub legs: u32,
    /// Of a minute, in micro-USDC.
    pub each: Usdc,
    /// Of the caller's number, in micro-USDC; 0 if it has one.
    pub fee: Usdc,
}

impl Price {
    /// The most that the call can cost. `None` beyond 64 bits, which no price of an operator reaches.
    pub fn most(&self) -> Option<Usdc> {
        let minutes = u64::from(self.minutes).checked_mul(u64::from(self.legs))?;
        Usdc::from_micro(self.each.micro().checked_mul(minutes)?).checked_add(self.fee)
    }

    /// What is charged: for each leg that reached somebody its begun minutes, at most those of the quote; and the fee if this
    /// call bought the number.
    pub fn used(&self, reached: &[Duration], bought: bool) -> Usdc {
        let legs = usize::try_from(self.legs).unwrap_or(usize::MAX);
        let minutes: u64 =
            reached.iter().take(legs).map(|leg| u64::from(started_minutes(*leg).min(self.minutes))).sum();
        let fee = if bought { self.fee.micro() } else { 0 };
        Usdc::from_micro(self.each.micro().saturating_mul(minutes).saturating_add(fee))
    }
}

/// The whole minutes that an amount of credits covers.
pub fn covered_minutes(credits: Usdc, each: Usdc) -> u32 {
    credits.micro().checked_div(each.micro()).map_or(u32::MAX, |minutes| u32::try_from(minutes).unwrap_or(u32::MAX))
}

/// The price of so many minutes.
pub fn price_of(minutes: u32, each: Usdc) -> Option<Usdc> {
    each.micro().checked_mul(u64::from(minutes)).map(Usdc::from_micro)
}

/// The plan that is shown with a price, without what depends on the caller: what counts as success, what is said, and how long
/// that takes. `objective` and `context` are the caller's texts.
pub fn plan(objective: &str, context: &str, targets: &[String], price: &Price) -> Map<String, Value> {
    let points = points(objective);
    let estimated = estimated_minutes(objective, context, price.minutes);
    let calls = Usdc::from_micro(price.most().unwrap_or_default().micro().saturating_sub(price.fee.micro()));
    let mut criteria: Vec<String> = vec![REACHED.to_owned()];
    criteria.extend(points.iter().take(MAX_POINTS - 1).map(|point| format!("Said, and answered: {point}")));
    let plan = json!({
        "target_numbers": targets,
        // Public clients read it. Several numbers are called one after the other.
        "conference_mode": false,
        "success_criteria": criteria,
        "estimated_duration_minutes": estimated,
        "complexity_score": complexity(points.len(), targets.len()),
        "pipeline_fee": Usdc::ZERO.to_string(),
        "phone_registration_fee": price.fee.to_string(),
        "estimated_call_cost": calls.to_string(),
        "needs_phone_registration": !price.fee.is_zero(),
        "objective_summary": cut(&one_line(objective)),
        "talking_points": points,
    });
    match plan {
        Value::Object(plan) => plan,
        _ => Map::new(),
    }
}

/// The sentences of an objective, in their order; at most [`MAX_POINTS`].
pub fn points(objective: &str) -> Vec<String> {
    let point = |sentence: &String| {
        let sentence = sentence.strip_suffix('.').unwrap_or(sentence);
        one_line(sentence.trim_start_matches(['-', '*', '•', ' ']))
    };
    let sentences = sentences(objective, &['\n', ';']);
    let points = sentences.iter().map(point).filter(|point| point.chars().any(char::is_alphanumeric));
    points.take(MAX_POINTS).map(|point| cut(&point)).collect()
}

fn one_line(text: &str) -> String {
    visible(text).split_whitespace().collect::<Vec<_>>().join(" ")
}

fn cut(text: &str) -> String {
    match text.char_indices().nth(MAX_POINT) {
        Some((end, _)) => format!("{}…", text[..end].trim_end()),
        None => text.to_owned(),
    }
}

/// One minute to reach somebody, and the time to say it; at most the longest length.
fn estimated_minutes(objective: &str, context: &str, most: u32) -> u32 {
    // Of the context, only a part is needed.
    let words = objective.split_whitespace().count() + context.split_whitespace().count() / 4;
    u32::try_from(words.div_ceil(WORDS_A_MINUTE)).unwrap_or(u32::MAX).saturating_add(1).min(most)
}

/// 1 to 10: points to make, and people to bring together.
fn complexity(points: usize, targets: usize) -> usize {
    (points + 2 * targets.saturating_sub(1)).clamp(1, 10)
}

#[cfg(test)]
mod tests {
    use super::*;

    const FEE: Usdc = Usdc::from_micro(5_000_000);

    fn price(minutes: u32, legs: u32, fee: Usdc) -> Price {
        Price { minutes, legs, each: EACH, fee }
    }

    #[test]
    fn minutes_of_each_leg_are_paid_and_a_number_only_by_who_buys_it() {
        let secs = Duration::from_secs;
        assert_eq!(price(10, 1, FEE).most(), Some(Usdc::from_micro(8_500_000)));
        assert_eq!(price(30, 5, Usdc::ZERO).most(), Some(Usdc::from_micro(52_500_000)));
        assert_eq!(Price { each: Usdc::from_micro(u64::MAX), ..price(2, 1, FEE) }.most(), None);
        for (legs, answered, bought, micro) in [
            (1, vec![], false, 0),
            (1, vec![], true, 5_000_000),
            (1, vec![secs(0)], false, 350_000),
            (1, vec![secs(61)], true, 5_700_000),
            (1, vec![secs(3600)], false, 3_500_000),
            (3, vec![secs(61), secs(60), secs(3600)], false, 13 * 350_000),
            (1, vec![secs(60), secs(60)], false, 350_000),
        ] {
            let price = price(10, legs, FEE);
            assert_eq!(price.used(&answered, bought).micro(), micro, "{legs} {answered:?} {bought}");
            assert!(price.used(&answered, bought) <= price.most().unwrap());
        }
    }

    #[test]
    fn credits_cover_whole_minutes() {
        for (micro, minutes) in [(0, 0), (349_999, 0), (350_000, 1), (699_999, 1), (3_500_000, 10)] {
            assert_eq!(covered_minutes(Usdc::from_micro(micro), EACH), minutes, "{micro}");
        }
        assert_eq!(covered_minutes(Usdc::from_micro(u64::MAX), Usdc::from_micro(1)), u32::MAX);
        assert_eq!(covered_minutes(Usdc::ZERO, Usdc::ZERO), u32::MAX, "calls are free");
        assert_eq!(price_of(10, EACH), Some(Usdc::from_micro(3_500_000)));
        assert_eq!(price_of(2, Usdc::from_micro(u64::MAX)), None);
    }

    #[test]
    fn a_plan_has_what_is_said_and_what_it_costs() {
        let objective = "Ask whether a table for 4.30 pm is free.\n- Book it for Ann;  thank them!\u{202e}";
        let plan = plan(objective, "", &["+12025550100".to_owned()], &price(10, 1, FEE));
        let expected = ["Ask whether a table for 4.30 pm is free", "Book it for Ann", "thank them!"];
        assert_eq!(plan["talking_points"], json!(expected));
        assert_eq!(plan["success_criteria"].as_array().unwrap().len(), 4);
        for (name, value) in [
            ("estimated_duration_minutes", json!(2)),
            ("estimated_call_cost", json!("3.500000")),
            ("phone_registration_fee", json!("5.000000")),
            ("pipeline_fee", json!("0.000000")),
            ("needs_phone_registration", json!(true)),
            ("conference_mode", json!(false)),
            ("complexity_score", json!(3)),
            ("target_numbers", json!(["+12025550100"])),
        ] {
            assert_eq!(plan[name], value, "{name}");
        }
    }

    #[test]
    fn long_texts_are_cut_and_estimated_within_the_length() {
        let long = "word ".repeat(1_000);
        let found = points(&long);
        assert_eq!((found.len(), found[0].chars().count()), (1, MAX_POINT));
        assert_eq!(estimated_minutes(&long, "", 10), 10);
        assert_eq!(points("a. b. c. d. e. f. g.").len(), MAX_POINTS);
        assert_eq!(points(" .;\n-"), Vec::<String>::new());
    }
}
