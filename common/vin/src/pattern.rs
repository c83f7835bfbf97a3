//! The keys under which vPIC stores its facts.
//!
//! A key describes positions 4 to 8 of a number and, after a `|`, positions 10 to 17. `*` matches any character, `#` any
//! digit, `[A-CX]` the listed characters, and any other character only itself. A key that ends early matches anything in
//! the remaining positions.

use crate::number::{LENGTH, Vin};

/// The characters a key allows at one position.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Slot<'a> {
    Any,
    Digit,
    Only(u8),
    OneOf(&'a [u8]),
}

/// The positions that a key describes, in order, and what it allows there.
pub struct Slots<'a> {
    rest: &'a [u8],
    position: usize,
}

pub fn slots(key: &[u8]) -> Slots<'_> {
    Slots { rest: key, position: 4 }
}

/// Whether a key matches a number.
pub fn matches(key: &[u8], vin: &Vin) -> bool {
    slots(key).all(|(position, slot)| slot.admits(vin.at(position)))
}

/// The digits at the positions where the key has `#`.
pub fn digits(key: &[u8], vin: &Vin) -> String {
    slots(key).filter(|&(_, slot)| slot == Slot::Digit).map(|(position, _)| char::from(vin.at(position))).collect()
}

impl<'a> Iterator for Slots<'a> {
    type Item = (usize, Slot<'a>);

    fn next(&mut self) -> Option<Self::Item> {
        if let [b'|', rest @ ..] = self.rest {
            self.rest = rest;
            self.position = 10;
        }
        let (slot, rest) = match self.rest {
            [] => return None,
            [b'*', rest @ ..] => (Slot::Any, rest),
            [b'#', rest @ ..] => (Slot::Digit, rest),
            [b'[', rest @ ..] => {
                let end = rest.iter().position(|&c| c == b']')?;
                (Slot::OneOf(&rest[..end]), &rest[end + 1..])
            }
            [character, rest @ ..] => (Slot::Only(*character), rest),
        };
        let position = self.position;
        if position > LENGTH {
            return None;
        }
        self.rest = rest;
        self.position += 1;
        Some((position, slot))
    }
}

impl Slot<'_> {
    pub fn admits(self, character: u8) -> bool {
        match self {
            Slot::Any => true,
            Slot::Digit => character.is_ascii_digit(),
            Slot::Only(own) => own == character,
            Slot::OneOf(class) => class_holds(class, character),
        }
    }
}

/// Whether a class (characters and ranges: `A-CX5-7`) contains a character.
fn class_holds(mut class: &[u8], character: u8) -> bool {
    loop {
        class = match class {
            [] => return false,
            [low, b'-', high, ..] if (*low..=*high).contains(&character) => return true,
            [_, b'-', _, rest @ ..] => rest,
            [own, ..] if *own == character => return true,
            [_, rest @ ..] => rest,
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_match_the_numbers_they_describe() {
        let vin = Vin::parse("1HGCM82633A004352").unwrap();
        for (key, expected) in [
            ("", true),
            ("CM826", true),
            ("CM", true),
            ("*M8", true),
            ("CM827", false),
            ("**#", true),
            ("#", false),
            ("[A-D]M[5-8]", true),
            ("[ABD]", false),
            ("[D-Z0-9]", false),
            ("[X0-9A-C]", true),
            ("*****|3A", true),
            ("*****|*A", true),
            ("*****|*B", false),
            ("CM826|*A", true),
            ("CM826|*A004352", true),
            ("CM826|*A004353", false),
            ("*****|*A0[0-4]", true),
        ] {
            assert_eq!(matches(key.as_bytes(), &vin), expected, "{key}");
        }
    }

    #[test]
    fn digits_come_from_the_positions_of_the_key() {
        let vin = Vin::parse("1HGCM82633A004352").unwrap();
        assert_eq!(digits(b"**#", &vin), "8");
        assert_eq!(digits(b"*M##", &vin), "82");
        assert_eq!(digits(b"CM", &vin), "");
    }

    #[test]
    fn malformed_keys_do_not_panic() {
        let vin = Vin::parse("1HGCM82633A004352").unwrap();
        for key in ["[", "[A-", "||||", "*****|*************", "]", "[]", "[-]"] {
            matches(key.as_bytes(), &vin);
        }
        assert!(!matches(b"[]", &vin));
    }
}
