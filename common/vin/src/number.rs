//! The number itself: 17 characters, a check digit and a year code.
//!
//! A [`Vin`] always holds 17 characters of `0-9` and `A-Z` without I, O and Q. Positions are counted from 1, as in all
//! literature about VINs.

use std::fmt;

pub const LENGTH: usize = 17;

/// The characters a number may contain.
pub const ALPHABET: &[u8; 33] = b"0123456789ABCDEFGHJKLMNPRSTUVWXYZ";

/// The first model year that a year code can mean.
pub const FIRST_YEAR: u16 = 1980;

const YEAR_CODES: &[u8; 30] = b"ABCDEFGHJKLMNPRSTVWXY123456789";

/// The weight of each position in the check digit's sum; the check digit itself has weight 0.
const WEIGHTS: [u32; LENGTH] = [8, 7, 6, 5, 4, 3, 2, 10, 0, 9, 8, 7, 6, 5, 4, 3, 2];

/// A well-formed vehicle identification number, in upper case.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Vin([u8; LENGTH]);

/// Why a text is not a vehicle identification number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum VinError {
    /// It has this many characters instead of 17. (Numbers from before 1981 are shorter.)
    Length(usize),
    /// It has a character that is not allowed, at this position.
    Character { position: usize, found: char },
}

impl Vin {
    /// Reads a number; lower case is accepted.
    pub fn parse(text: &str) -> Result<Vin, VinError> {
        let length = text.chars().count();
        if length != LENGTH {
            return Err(VinError::Length(length));
        }
        let mut characters = [0; LENGTH];
        for (index, found) in text.chars().enumerate() {
            characters[index] = vin_character(found).ok_or(VinError::Character { position: index + 1, found })?;
        }
        Ok(Vin(characters))
    }

    pub fn as_str(&self) -> &str {
        std::str::from_utf8(&self.0).expect("a Vin holds ASCII only")
    }

    /// Whether position 9 is the correct check digit.
    pub fn check_digit_valid(&self) -> bool {
        self.at(9) == self.check_digit()
    }

    /// The correct check digit, computed from the other 16 characters.
    pub fn check_digit(&self) -> u8 {
        let sum: u32 = self.0.iter().zip(WEIGHTS).map(|(&character, weight)| transliterate(character) * weight).sum();
        b"0123456789X"[(sum % 11) as usize]
    }

    /// The character at a position (1 to 17).
    pub(crate) fn at(&self, position: usize) -> u8 {
        self.0[position - 1]
    }

    /// A copy with another character at a position (1 to 17).
    pub(crate) fn with(&self, position: usize, character: u8) -> Vin {
        let mut changed = *self;
        changed.0[position - 1] = character;
        changed
    }

    /// The maker's code: positions 1 to 3. Makers of few vehicles have a 9 in position 3; their code also has positions 12
    /// to 14.
    pub(crate) fn maker_code(&self) -> Vec<u8> {
        let mut code = self.0[..3].to_vec();
        if code[2] == b'9' {
            code.extend_from_slice(&self.0[11..14]);
        }
        code
    }

    /// The two model years that position 10 can mean, thirty years apart.
    pub(crate) fn coded_years(&self) -> Option<[u16; 2]> {
        let code = YEAR_CODES.iter().position(|&c| c == self.at(10))?;
        let early = FIRST_YEAR + code as u16;
        Some([early, early + 30])
    }

    /// Whether the number was assigned for North America, where the check digit is mandatory.
    pub(crate) fn is_north_american(&self) -> bool {
        matches!(self.at(1), b'1'..=b'5' | b'7')
    }
}

fn vin_character(found: char) -> Option<u8> {
    let character = u8::try_from(found).ok()?.to_ascii_uppercase();
    ALPHABET.contains(&character).then_some(character)
}

/// The value of a character in the check digit's sum.
fn transliterate(character: u8) -> u32 {
    let value = match character {
        b'0'..=b'9' => character - b'0',
        b'A'..=b'H' => character - b'A' + 1,
        b'J'..=b'R' => character - b'J' + 1,
        _ => character - b'S' + 2,
    };
    value.into()
}

impl fmt::Display for Vin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl fmt::Debug for Vin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Vin({self})")
    }
}

impl fmt::Display for VinError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            VinError::Length(length) => {
                write!(f, "a vehicle identification number has 17 characters, this has {length}")
            }
            VinError::Character { position, found } => {
                write!(f, "{found:?} at position {position} cannot occur in a vehicle identification number")
            }
        }
    }
}

impl std::error::Error for VinError {}

#[cfg(test)]
mod tests {
    use super::*;

    fn vin(text: &str) -> Vin {
        Vin::parse(text).unwrap()
    }

    #[test]
    fn check_digits_are_computed() {
        for (text, expected) in [
            ("11111111111111111", b'1'),
            ("1M8GDM9AXKP042788", b'X'),
            ("1HGCM82633A004352", b'3'),
            ("5GZCZ43D13S812715", b'1'),
            ("5YJSA1DG9DFP14705", b'9'),
        ] {
            assert_eq!(vin(text).check_digit(), expected, "{text}");
        }
        assert!(vin("1M8GDM9AXKP042788").check_digit_valid());
        assert!(!vin("1M8GDM9A1KP042788").check_digit_valid());
    }

    #[test]
    fn changing_a_character_to_another_value_breaks_the_check_digit() {
        let right = vin("1M8GDM9AXKP042788");
        for position in (1..=LENGTH).filter(|&position| position != 9) {
            for &character in ALPHABET {
                let changed = right.with(position, character);
                let same = transliterate(character) == transliterate(right.at(position));
                assert_eq!(changed.check_digit_valid(), same, "{changed}");
            }
        }
    }

    #[test]
    fn numbers_are_parsed_or_refused_with_a_reason() {
        assert_eq!(vin("1m8gdm9axkp042788").as_str(), "1M8GDM9AXKP042788");
        // A number from before 1981, when seventeen characters became the rule.
        assert_eq!(Vin::parse("194677S106437"), Err(VinError::Length(13)));
        assert_eq!(Vin::parse(""), Err(VinError::Length(0)));
        for (text, position, found) in [
            ("1M8GDM9AXKPO42788", 12, 'O'),
            ("iM8GDM9AXKP042788", 1, 'i'),
            ("1M8GDM9AXKP04278Q", 17, 'Q'),
            ("1M8GDM9AXKP04278é", 17, 'é'),
            ("1M8GDM9AXKP 42788", 12, ' '),
        ] {
            let expected = VinError::Character { position, found };
            assert_eq!(Vin::parse(text), Err(expected), "{text}");
        }
    }

    #[test]
    fn year_codes_run_for_thirty_years() {
        let years = |code: u8| vin("11111111111111111").with(10, code).coded_years();
        assert_eq!(years(b'A'), Some([1980, 2010]));
        assert_eq!(years(b'H'), Some([1987, 2017]));
        assert_eq!(years(b'J'), Some([1988, 2018]));
        assert_eq!(years(b'N'), Some([1992, 2022]));
        assert_eq!(years(b'P'), Some([1993, 2023]));
        assert_eq!(years(b'R'), Some([1994, 2024]));
        assert_eq!(years(b'T'), Some([1996, 2026]));
        assert_eq!(years(b'V'), Some([1997, 2027]));
        assert_eq!(years(b'Y'), Some([2000, 2030]));
        assert_eq!(years(b'1'), Some([2001, 2031]));
        assert_eq!(years(b'9'), Some([2009, 2039]));
        for code in *b"0UZ" {
            assert_eq!(years(code), None);
        }
    }

    #[test]
    fn makers_of_few_vehicles_have_longer_codes() {
        assert_eq!(vin("1HGCM82633A004352").maker_code(), b"1HG");
        assert_eq!(vin("1A9AB2AA0FB123456").maker_code(), b"1A9123");
    }
}
