//! Generates numbers from the source data and decodes them: the result must agree with the data.

use std::collections::BTreeSet;

use super::pattern::{self, Slot};
use super::vpic::{Element, Link, Maker, Vpic};
use super::{Vin, decode};

const COUNT: usize = 1_000;
const YEARS: &[u8] = b"ABCDEFGHJKLMNPRSTVWXY123456789";
const LETTERS: &[u8] = b"ABCDEFGHJKLMNPRSTUVWXYZ";
const NOW: u16 = 2026;

struct Dice(u64);

impl Dice {
    fn below(&mut self, end: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % end.max(1)
    }
}

/// A generated number and what the data says about it.
struct Made {
    vin: Vin,
    year: u16,
    /// Cars and light trucks: position 7 indicates the cycle. For others, the year is passed to `decode`.
    year_in_number: bool,
    models: BTreeSet<String>,
}

/// A number of this maker that matches a randomly chosen key, if one can be made.
fn made(vpic: &mut Vpic, code: &[u8], maker: &Maker, link: Link, dice: &mut Dice) -> Option<Made> {
    let schema = vpic.schema(link)?;
    let mut keys = Vec::new();
    schema.visit_keys(|key, rows| {
        if rows.iter().any(|row| row.element == Element::Model) {
            keys.push(key.to_vec());
        }
    });
    let key = (!keys.is_empty()).then(|| keys[dice.below(keys.len())].clone())?;
    let years: Vec<u16> = (1981..=NOW).filter(|year| link.covers(*year)).collect();
    let year = *years.get(dice.below(years.len()))?;
    let mut text = *b"00000000000000000";
    text[..3].copy_from_slice(&code[..3]);
    if code.len() == 6 {
        text[11..14].copy_from_slice(&code[3..]);
    }
    let wants_letter = year >= 2010;
    text[6] = if wants_letter { LETTERS[dice.below(LETTERS.len())] } else { b'1' };
    text[9] = YEARS[usize::from(year - 1980) % 30];
    text[14..].fill_with(|| b'0' + dice.below(10) as u8);
    for (position, slot) in pattern::slots(&key) {
        let place = position - 1;
        let fits = |character: &u8| slot.admits(*character);
        if slot == Slot::Any || place == 8 {
            continue;
        }
        let digits_first = (b'0'..=b'9').chain(LETTERS.iter().copied());
        let mut choices: Vec<u8> = digits_first.filter(fits).collect();
        if position == 7 && maker.is_car {
            choices.retain(|character| character.is_ascii_alphabetic() == wants_letter);
        }
        if position == 10 {
            choices.retain(|character| *character == text[9]);
        }
        if code.len() == 6 && (12..=14).contains(&position) {
            choices.retain(|character| *character == text[place]);
        }
        text[place] = *choices.get(dice.below(choices.len()))?;
    }
    let draft = Vin::parse(std::str::from_utf8(&text).ok()?).ok()?;
    text[8] = draft.check_digit();
    let vin = Vin::parse(std::str::from_utf8(&text).ok()?).ok()?;
    let mut models = BTreeSet::new();
    schema.visit_keys(|key, rows| {
        if pattern::matches(key, &vin) {
            let named = rows.iter().filter(|row| row.element == Element::Model);
            models.extend(named.filter_map(|row| vpic.text(&schema, row.value)));
        }
    });
    Some(Made { vin, year, year_in_number: maker.is_car, models })
}

#[test]
fn generated_numbers_decode_to_the_source_data() {
    let mut vpic = Vpic::open();
    let codes = vpic.codes();
    assert!(codes.len() > 1_000, "{}", codes.len());
    let mut dice = Dice(20_261_121);
    let (mut tried, mut same, mut wrong) = (0, 0, Vec::new());
    for _ in 0..200 * COUNT {
        if tried == COUNT {
            break;
        }
        let code = &codes[dice.below(codes.len())];
        let Some(maker) = vpic.maker(code) else { continue };
        if maker.links.is_empty() {
            continue;
        }
        let link = maker.links[dice.below(maker.links.len())];
        let Some(made) = made(&mut vpic, code, &maker, link, &mut dice) else { continue };
        tried += 1;
        let given = (!made.year_in_number).then_some(made.year);
        let found = decode(&made.vin, given, NOW);
        let model = found.model.clone().unwrap_or_default();
        if found.check_digit_valid && found.model_year == Some(made.year) && made.models.contains(&model) {
            same += 1;
        } else {
            wrong.push(format!("{} {} {:?}: {:?} {model}", made.vin, made.year, made.models, found.model_year));
        }
    }
    assert_eq!(tried, COUNT);
    let share = same as f64 * 100.0 / tried as f64;
    if std::env::var_os("PRINT_VIN").is_some() {
        println!("vin: {same} of {tried} generated numbers come back as the source data says ({share:.1} %)");
    }
    assert!(share >= 99.0, "{share}: {}", wrong.iter().take(20).cloned().collect::<Vec<_>>().join("\n"));
}
