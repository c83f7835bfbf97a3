//! Addresses of the United States, as far as tables can check them: the state, the ZIP code, and that the two belong together.
//! The table of ZIP codes is by their first three digits (USPS Publication 65, ZIP code prefixes).

use base::input::FieldError;
use base::untrusted_text;
use serde_json::Value;

/// A code, a name, and ranges of the first three digits of ZIP codes.
type State = (&'static str, &'static str, &'static [(u16, u16)]);

/// States, the District of Columbia, territories and military post: code, name, and the first three digits of their ZIP codes.
const STATES: [State; 59] = [
    ("AL", "ALABAMA", &[(350, 369)]),
    ("AK", "ALASKA", &[(995, 999)]),
    ("AZ", "ARIZONA", &[(850, 865)]),
    ("AR", "ARKANSAS", &[(716, 729), (755, 755)]),
    ("CA", "CALIFORNIA", &[(900, 961)]),
    ("CO", "COLORADO", &[(800, 816)]),
    ("CT", "CONNECTICUT", &[(60, 69)]),
    ("DE", "DELAWARE", &[(197, 199)]),
    ("DC", "DISTRICT OF COLUMBIA", &[(200, 205), (569, 569)]),
    ("FL", "FLORIDA", &[(320, 349)]),
    ("GA", "GEORGIA", &[(300, 319), (398, 399)]),
    ("HI", "HAWAII", &[(967, 968)]),
    ("ID", "IDAHO", &[(832, 838)]),
    ("IL", "ILLINOIS", &[(600, 629)]),
    ("IN", "INDIANA", &[(460, 479)]),
    ("IA", "IOWA", &[(500, 528)]),
    ("KS", "KANSAS", &[(660, 679)]),
    ("KY", "KENTUCKY", &[(400, 427), (471, 471)]),
    ("LA", "LOUISIANA", &[(700, 714), (716, 716)]),
    ("ME", "MAINE", &[(39, 49)]),
    ("MD", "MARYLAND", &[(203, 219)]),
    ("MA", "MASSACHUSETTS", &[(10, 27), (55, 55)]),
    ("MI", "MICHIGAN", &[(480, 499)]),
    ("MN", "MINNESOTA", &[(550, 567)]),
    ("MS", "MISSISSIPPI", &[(386, 397)]),
    ("MO", "MISSOURI", &[(630, 658)]),
    ("MT", "MONTANA", &[(590, 599)]),
    ("NE", "NEBRASKA", &[(680, 693)]),
    ("NV", "NEVADA", &[(889, 898)]),
    ("NH", "NEW HAMPSHIRE", &[(30, 38)]),
    ("NJ", "NEW JERSEY", &[(70, 89)]),
    ("NM", "NEW MEXICO", &[(870, 884)]),
    ("NY", "NEW YORK", &[(5, 5), (63, 63), (90, 149)]),
    ("NC", "NORTH CAROLINA", &[(269, 289)]),
    ("ND", "NORTH DAKOTA", &[(580, 588)]),
    ("OH", "OHIO", &[(430, 459)]),
    ("OK", "OKLAHOMA", &[(730, 731), (734, 749)]),
    ("OR", "OREGON", &[(970, 979)]),
    ("PA", "PENNSYLVANIA", &[(150, 196)]),
    ("RI", "RHODE ISLAND", &[(28, 29)]),
    ("SC", "SOUTH CAROLINA", &[(290, 299)]),
    ("SD", "SOUTH DAKOTA", &[(570, 577)]),
    ("TN", "TENNESSEE", &[(370, 385)]),
    ("TX", "TEXAS", &[(733, 733), (750, 799), (885, 885)]),
    ("UT", "UTAH", &[(840, 847)]),
    ("VT", "VERMONT", &[(50, 59)]),
    ("VA", "VIRGINIA", &[(201, 201), (220, 246)]),
    ("WA", "WASHINGTON", &[(980, 994)]),
    ("WV", "WEST VIRGINIA", &[(247, 268)]),
    ("WI", "WISCONSIN", &[(530, 549)]),
    ("WY", "WYOMING", &[(820, 831), (834, 834)]),
    ("PR", "PUERTO RICO", &[(6, 7), (9, 9)]),
    ("VI", "VIRGIN ISLANDS", &[(8, 8)]),
    ("GU", "GUAM", &[(969, 969)]),
    ("AS", "AMERICAN SAMOA", &[(967, 967)]),
    ("MP", "NORTHERN MARIANA ISLANDS", &[(969, 969)]),
    ("AA", "ARMED FORCES AMERICAS", &[(340, 340)]),
    ("AE", "ARMED FORCES EUROPE", &[(90, 98)]),
    ("AP", "ARMED FORCES PACIFIC", &[(962, 966)]),
];

/// A checked address, in the words that shops expect.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Address {
    pub first_name: String,
    pub last_name: String,
    pub street: String,
    pub street2: Option<String>,
    pub city: String,
    /// Two capitals.
    pub state: &'static str,
    /// Five digits, or five and four with a hyphen.
    pub zip: String,
    /// With the country's code: `+14155550100`.
    pub phone: String,
    pub email: Option<String>,
}

/// Reads the member `shipping_address`.
///
/// # Errors
/// What is wrong, by the member's path.
pub fn read(value: &Value) -> Result<Address, Vec<FieldError>> {
    let mut wrong = Vec::new();
    let text = |name: &str| value[name].as_str().unwrap_or_default().split_whitespace().collect::<Vec<_>>().join(" ");
    let mut refuse = |name: &str, why: &str| wrong.push(FieldError::new(format!("shipping_address.{name}"), why));
    let hidden = |name: &str| value[name].as_str().is_some_and(has_hidden);
    const MEMBERS: [&str; 9] =
        ["first_name", "last_name", "street", "street2", "city", "state", "zip_code", "phone", "email"];
    for name in MEMBERS.into_iter().filter(|name| hidden(name)) {
        refuse(name, "must have no control characters and no line breaks");
    }
    let country = text("country");
    if !["", "US", "USA"].contains(&country.to_uppercase().as_str()) {
        refuse("country", "must be US: nothing is sent to other countries");
    }
    for name in ["first_name", "last_name", "street", "city"] {
        if !text(name).chars().any(char::is_alphanumeric) {
            refuse(name, "must have letters");
        }
    }
    let state = state_of(&text("state"));
    if state.is_none() {
        refuse("state", "must be a state of the United States, such as CA");
    }
    let zip = zip_of(&text("zip_code"));
    if zip.is_none() {
        refuse("zip_code", "must be a ZIP code such as 94107 or 94107-1234");
    }
    if let (Some((code, prefixes)), Some(zip)) = (state, &zip) {
        let first: u16 = zip[..3].parse().unwrap_or(0);
        if !prefixes.iter().any(|(from, to)| (*from..=*to).contains(&first)) {
            refuse("zip_code", &format!("is not a ZIP code of {code}"));
        }
    }
    let phone = phone_of(&text("phone"));
    if phone.is_none() {
        refuse("phone", "must be a phone number of the United States, such as +1 415 555 0100");
    }
    let email = Some(text("email")).filter(|email| !email.is_empty());
    if email.as_ref().is_some_and(|email| !base::contact::is_email(email)) {
        refuse("email", "must be an e-mail address");
    }
    match (state, zip, phone) {
        (Some((state, _)), Some(zip), Some(phone)) if wrong.is_empty() => Ok(Address {
            first_name: text("first_name"),
            last_name: text("last_name"),
            street: text("street"),
            street2: Some(text("street2")).filter(|line| !line.is_empty()),
            city: text("city"),
            state,
            zip,
            phone,
            email,
        }),
        _ => Err(wrong),
    }
}

/// Whether a text has letters that nobody sees, or line breaks.
pub fn has_hidden(text: &str) -> bool {
    text.chars().any(char::is_control) || untrusted_text::visible(text) != text
}

/// A state by its code or its name.
fn state_of(text: &str) -> Option<(&'static str, &'static [(u16, u16)])> {
    let text = text.to_uppercase().replace('.', "");
    STATES.iter().find(|(code, name, _)| text == *code || text == *name).map(|(code, _, zips)| (*code, *zips))
}

/// The two capitals of a state.
pub fn state_code(text: &str) -> Option<&'static str> {
    state_of(text).map(|(code, _)| code)
}

fn zip_of(text: &str) -> Option<String> {
    let digits: String = text.chars().filter(char::is_ascii_digit).collect();
    let is_plain = text.chars().all(|letter| letter.is_ascii_digit() || matches!(letter, '-' | ' '));
    match digits.len() {
        5 if is_plain => Some(digits),
        9 if is_plain => Some(format!("{}-{}", &digits[..5], &digits[5..])),
        _ => None,
    }
}

fn phone_of(text: &str) -> Option<String> {
    let digits: String = text.chars().filter(char::is_ascii_digit).collect();
    let is_plain = text.chars().all(|letter| letter.is_ascii_digit() || "+-.() ".contains(letter));
    let national = match digits.len() {
        10 if !text.starts_with('+') => digits.as_str(),
        11 if digits.starts_with('1') => &digits[1..],
        _ => return None,
    };
    // Area codes and exchanges begin with 2 to 9.
    let valid = |at: usize| national.as_bytes()[at] >= b'2';
    (is_plain && valid(0) && valid(3)).then(|| format!("+1{national}"))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn address(changes: &[(&str, &str)]) -> Value {
        let mut address = json!({
            "first_name": "Ada", "last_name": "Lovelace", "street": "1 Market  St", "city": "San Francisco",
            "state": "California", "zip_code": "94105 1234", "phone": "(415) 555-0100",
        });
        for (name, value) in changes {
            address[*name] = json!(value);
        }
        address
    }

    #[test]
    fn addresses_are_read_as_shops_expect_them() {
        let read = read(&address(&[])).unwrap();
        assert_eq!((read.state, read.zip.as_str(), read.phone.as_str()), ("CA", "94105-1234", "+14155550100"));
        assert_eq!((read.street.as_str(), read.email), ("1 Market St", None));
        for (state, zip) in [("ny", "10001"), ("D.C.", "20001"), ("PR", "00901"), ("AE", "09012"), ("WA", "98101")] {
            assert!(super::read(&address(&[("state", state), ("zip_code", zip)])).is_ok(), "{state} {zip}");
        }
    }

    #[test]
    fn wrong_addresses_are_refused_by_member() {
        for (name, value, at) in [
            ("country", "CA", "country"),
            ("state", "Ontario", "state"),
            ("state", "NY", "zip_code"),
            ("zip_code", "9410", "zip_code"),
            ("zip_code", "94105é", "zip_code"),
            ("phone", "555-0100", "phone"),
            ("phone", "+44 20 7946 0958", "phone"),
            ("phone", "+1 155 555 0100", "phone"),
            ("email", "ada", "email"),
            ("street", "--", "street"),
            ("first_name", " ", "first_name"),
            ("first_name", "A\u{1b}[31mda", "first_name"),
            ("street", "1 Main St\n2", "street"),
            ("city", "\u{202e}Paris", "city"),
        ] {
            let wrong = read(&address(&[(name, value)])).unwrap_err();
            assert_eq!(wrong[0].path, format!("shipping_address.{at}"), "{value}");
        }
    }
}
