//! Finds the maker, the model year and the facts of a number.
//!
//! The check digit is not considered here: the same steps serve the given number and every number that [`crate::suggest`]
//! tries.
//!
//! If several patterns give the same fact, the order of vPIC's own decoder applies, computed when the data was made (see
//! `import.py`): first the schema whose years start later, then the pattern changed last. The make is that of the model.
//! Without a model it is the maker's only make, if there is exactly one. So make and model always belong together.

use crate::number::{FIRST_YEAR, Vin};
use crate::pattern::{self, Slot};
use crate::vpic::{Element, Maker, Schema, Vpic};

/// The positions that describe the vehicle; `unknown_positions` is a subset of them.
const DESCRIPTIVE: [usize; 6] = [4, 5, 6, 7, 8, 11];

/// Everything the data has about a number.
pub struct Resolution {
    pub maker: Option<Maker>,
    pub model_year: Option<u16>,
    pub year_remarks: Vec<YearRemark>,
    pub facts: Facts,
}

/// A remark about how the model year was determined.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum YearRemark {
    /// Position 10 is not a year code.
    NoCode,
    /// Position 10 means only years in the future.
    NotYet,
    /// The caller's year is not possible and was not used.
    GivenIgnored(u16),
    /// The number does not tell for certain which of these two years it is.
    Uncertain { taken: u16, other: u16 },
    /// Position 7 indicates `other`, but the maker is described only in `taken`.
    Unusual { taken: u16, other: u16 },
}

/// The facts for one maker and model year.
#[derive(Default)]
pub struct Facts {
    found: [Option<Fact>; Element::ALL.len()],
    /// Positions whose character the maker is not known to use.
    pub unknown_positions: Vec<usize>,
}

struct Fact {
    rank: u32,
    value: Option<String>,
    make: Option<String>,
    engine: u32,
}

impl Resolution {
    pub fn make(&self) -> Option<&str> {
        let of_model = self.facts.make_of_model();
        of_model.or_else(|| self.maker.as_ref()?.only_make.as_deref())
    }

    /// Whether make, model and year are known.
    pub fn is_decoded(&self) -> bool {
        self.make().is_some() && self.facts.text(Element::Model).is_some() && self.model_year.is_some()
    }

    /// Whether it is decoded and every character is one the maker is known to use.
    pub fn is_complete(&self) -> bool {
        self.is_decoded() && self.facts.unknown_positions.is_empty()
    }
}

impl Facts {
    pub fn text(&self, element: Element) -> Option<&str> {
        self.found[element as usize].as_ref()?.value.as_deref()
    }

    pub fn is_empty(&self) -> bool {
        self.count() == 0
    }

    fn make_of_model(&self) -> Option<&str> {
        let model = self.found[Element::Model as usize].as_ref()?;
        model.make.as_deref()
    }

    fn count(&self) -> usize {
        self.found.iter().flatten().count()
    }

    /// Stores a fact, unless the element already has one of higher rank.
    fn offer(&mut self, element: Element, fact: Fact) {
        let place = &mut self.found[element as usize];
        if place.as_ref().is_none_or(|held| held.rank < fact.rank) {
            *place = Some(fact);
        }
    }

    /// Adds the facts of a less important schema where they are missing.
    fn add_missing(&mut self, other: Facts) {
        for (held, found) in self.found.iter_mut().zip(other.found) {
            if held.is_none() {
                *held = found;
            }
        }
    }

    /// Adds the facts of the engine model where they are missing.
    fn add_engine(&mut self, vpic: &mut Vpic) {
        let Some(engine) = &self.found[Element::Engine as usize] else {
            return;
        };
        for (element, value) in vpic.engine_facts(engine.engine) {
            let fact = Fact { rank: 0, value: Some(value), make: None, engine: 0 };
            self.found[element as usize].get_or_insert(fact);
        }
    }
}

/// Resolves a number. `given_year` is the model year the caller knows.
pub fn resolve(vpic: &mut Vpic, vin: &Vin, given_year: Option<u16>, current_year: u16) -> Resolution {
    let maker = vpic.maker(&vin.maker_code());
    let latest_year = current_year.saturating_add(1);
    let (years, mut year_remarks) = possible_years(vin, given_year, latest_year);
    let (model_year, facts) = match years[..] {
        [] => (None, facts(vpic, maker.as_ref(), vin, None)),
        [only] => (Some(only), facts(vpic, maker.as_ref(), vin, Some(only))),
        [early, late, ..] => {
            let choice = choose(vpic, maker.as_ref(), vin, early, late);
            year_remarks.extend(choice.remark);
            (Some(choice.year), choice.facts)
        }
    };
    Resolution { maker, model_year, year_remarks, facts }
}

/// The possible model years of a number: none, one, or two in ascending order.
fn possible_years(vin: &Vin, given: Option<u16>, latest: u16) -> (Vec<u16>, Vec<YearRemark>) {
    let mut remarks = Vec::new();
    let coded = vin.coded_years();
    let possible: Vec<u16> = coded.into_iter().flatten().filter(|&y| y <= latest).collect();
    match coded {
        None => remarks.push(YearRemark::NoCode),
        Some(_) if possible.is_empty() => remarks.push(YearRemark::NotYet),
        Some(_) => {}
    }
    if let Some(given) = given {
        let fits = match coded {
            Some(_) => possible.contains(&given),
            None => (FIRST_YEAR..=latest).contains(&given),
        };
        if fits {
            return (vec![given], remarks);
        }
        remarks.push(YearRemark::GivenIgnored(given));
    }
    (possible, remarks)
}

struct Choice {
    year: u16,
    facts: Facts,
    remark: Option<YearRemark>,
}

/// Decides between the two years a year code can mean.
fn choose(vpic: &mut Vpic, maker: Option<&Maker>, vin: &Vin, early: u16, late: u16) -> Choice {
    match maker {
        Some(maker) if maker.is_car => {
            let (taken, other) = match vin.at(7).is_ascii_digit() {
                true => (early, late),
                false => (late, early),
            };
            choose_for_car(vpic, maker, vin, taken, other)
        }
        _ => choose_by_facts(vpic, maker, vin, early, late),
    }
}

/// On cars and light trucks, position 7 indicates the cycle: a digit until 2009, a letter since 2010. `usual` is the year
/// it indicates.
fn choose_for_car(vpic: &mut Vpic, maker: &Maker, vin: &Vin, usual: u16, unusual: u16) -> Choice {
    let described = |year| maker.links.iter().any(|link| link.covers(year));
    let (year, remark) = if !described(usual) && described(unusual) {
        let remark = YearRemark::Unusual { taken: unusual, other: usual };
        (unusual, Some(remark))
    } else {
        (usual, None)
    };
    Choice { year, facts: facts(vpic, Some(maker), vin, Some(year)), remark }
}

/// Takes the year with more facts about the vehicle; the later one if they are equal.
fn choose_by_facts(vpic: &mut Vpic, maker: Option<&Maker>, vin: &Vin, early: u16, late: u16) -> Choice {
    let early_facts = facts(vpic, maker, vin, Some(early));
    let late_facts = facts(vpic, maker, vin, Some(late));
    let worth = |facts: &Facts| (facts.text(Element::Model).is_some(), facts.count());
    let (taken, other, facts) =
        if worth(&early_facts) > worth(&late_facts) { (early, late, early_facts) } else { (late, early, late_facts) };
    Choice { year: taken, facts, remark: Some(YearRemark::Uncertain { taken, other }) }
}

/// The facts of a maker's schemas for a year, or for all years with `None`.
fn facts(vpic: &mut Vpic, maker: Option<&Maker>, vin: &Vin, year: Option<u16>) -> Facts {
    let mut all = Facts::default();
    let mut seen = Characters::default();
    let links = maker.map_or(&[][..], |maker| &maker.links);
    for &link in links {
        if year.is_some_and(|year| !link.covers(year)) {
            continue;
        }
        if let Some(schema) = vpic.schema(link) {
            all.add_missing(schema_facts(vpic, &schema, vin, &mut seen));
        }
    }
    all.add_engine(vpic);
    all.unknown_positions = seen.unknown();
    all
}

fn schema_facts(vpic: &Vpic, schema: &Schema, vin: &Vin, seen: &mut Characters) -> Facts {
    let mut facts = Facts::default();
    schema.visit_keys(|key, rows| {
        seen.note(key, vin);
        if !pattern::matches(key, vin) {
            return;
        }
        for row in rows {
            let text = |number| vpic.text(schema, number);
            let fact = match row.element {
                Element::Engine => Fact { rank: row.rank, value: None, make: None, engine: row.value },
                element => Fact {
                    rank: row.rank,
                    value: text(row.value).map(|text| filled_in(text, key, vin)),
                    make: (element == Element::Model).then(|| text(row.make)).flatten(),
                    engine: 0,
                },
            };
            facts.offer(row.element, fact);
        }
    });
    facts
}

/// A value of `#` stands for the number's digits at the key's `#` positions.
fn filled_in(text: String, key: &[u8], vin: &Vin) -> String {
    match text.as_str() {
        "#" => pattern::digits(key, vin),
        _ => text,
    }
}

/// Which positions the maker's keys describe, and at which of them the character is one the maker is known to use. Bit n is
/// position n.
#[derive(Default)]
struct Characters {
    described: u32,
    known: u32,
}

impl Characters {
    fn note(&mut self, key: &[u8], vin: &Vin) {
        for (position, slot) in pattern::slots(key) {
            if slot == Slot::Any {
                continue;
            }
            self.described |= 1 << position;
            if slot.admits(vin.at(position)) {
                self.known |= 1 << position;
            }
        }
    }

    fn unknown(&self) -> Vec<usize> {
        let unknown = self.described & !self.known;
        let is_unknown = |position: &usize| unknown & (1 << position) != 0;
        DESCRIPTIVE.into_iter().filter(is_unknown).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn years(text: &str, given: Option<u16>, current: u16) -> (Vec<u16>, Vec<YearRemark>) {
        possible_years(&Vin::parse(text).unwrap(), given, current + 1)
    }

    #[test]
    fn future_years_are_not_possible() {
        let number = "1HGCM826X3A004352";
        assert_eq!(years(number, None, 2026).0, [2003]);
        assert_eq!(years(number, None, 2031).0, [2003]);
        assert_eq!(years(number, None, 2032).0, [2003, 2033]);
        assert_eq!(years(number, None, 1990), (vec![], vec![YearRemark::NotYet]));
    }

    #[test]
    fn a_given_year_counts_when_position_10_allows_it() {
        let number = "1M8GDM9AXKP042788";
        assert_eq!(years(number, None, 2026).0, [1989, 2019]);
        assert_eq!(years(number, Some(1989), 2026), (vec![1989], vec![]));
        assert_eq!(years(number, Some(2019), 2026), (vec![2019], vec![]));
        let ignored = vec![YearRemark::GivenIgnored(2018)];
        assert_eq!(years(number, Some(2018), 2026), (vec![1989, 2019], ignored));
        let ignored = vec![YearRemark::GivenIgnored(2049)];
        assert_eq!(years(number, Some(2049), 2026), (vec![1989, 2019], ignored));
    }

    #[test]
    fn a_given_year_replaces_a_missing_code() {
        let number = "WVWZZZ1K00W000123";
        let no_code = vec![YearRemark::NoCode];
        assert_eq!(years(number, Some(2008), 2026), (vec![2008], no_code.clone()));
        assert_eq!(years(number, None, 2026), (vec![], no_code));
        let (found, remarks) = years(number, Some(2099), 2026);
        assert!(found.is_empty());
        assert_eq!(remarks, [YearRemark::NoCode, YearRemark::GivenIgnored(2099)]);
    }
}
