//! Publicly known numbers of many kinds of vehicles, and the possible errors of a number.

use vin::{Decoded, Vin, VinError, decode};

fn read(text: &str) -> Decoded {
    read_with_year(text, None)
}

fn read_with_year(text: &str, model_year: Option<u16>) -> Decoded {
    decode(&Vin::parse(text).expect("a well-formed number"), model_year, 2026)
}

fn notes_with(found: &Decoded, words: &str) -> usize {
    found.notes.iter().filter(|note| note.contains(words)).count()
}

#[test]
fn vehicles_of_many_makers() {
    let expected = [
        ("1HGCM82633A004352", 2003, "Honda", "Accord", "Coupe", "MARYSVILLE"),
        ("5YJ3E1EA5KF328931", 2019, "Tesla", "Model 3", "Sedan/Saloon", "FREMONT"),
        (
            "KM8K2CAB4PU001140",
            2023,
            "Hyundai",
            "Kona",
            "Sport Utility Vehicle (SUV)/Multi-Purpose Vehicle (MPV)",
            "ULSAN",
        ),
        ("5YJSA1DG9DFP14705", 2013, "Tesla", "Model S", "Hatchback/Liftback/Notchback", "FREMONT"),
        (
            "5GZCZ43D13S812715",
            2003,
            "Saturn",
            "Vue",
            "Sport Utility Vehicle (SUV)/Multi-Purpose Vehicle (MPV)",
            "SPRINGHILL",
        ),
        (
            "5N1AN0NU6BC506916",
            2011,
            "Nissan",
            "Xterra",
            "Sport Utility Vehicle (SUV)/Multi-Purpose Vehicle (MPV)",
            "SMYRNA",
        ),
        ("JNKCA31A61T027494", 2001, "Infiniti", "I30", "Sedan/Saloon", "YOKOSUKA CITY"),
        ("4USBT53544LT26841", 2004, "BMW", "Z4", "Convertible/Cabriolet", "SPARTANBURG"),
        // A pickup, two tractors, a bus, a motorcycle, a trailer, and a trailer
        // of a maker of few vehicles, which has 9 in position 3.
        ("1FTFW1ET9DFC10312", 2013, "Ford", "F-150", "Pickup", "DEARBORN"),
        ("1FUJGLDR2CSBX1234", 2012, "Freightliner", "Cascadia", "Truck-Tractor", "SALTILLO"),
        ("1XKAD49X0AJ000001", 2010, "Kenworth", "T6 Series", "Truck-Tractor", "CHILLICOTHE"),
        ("1M8GDM9AXKP042788", 1989, "Motor Coach Industries", "102C3 Intercity", "Bus", "PEMBINA"),
        ("JH2SC5904AK000001", 2010, "Honda", "CBR1000RR", "Motorcycle - Sport", "KUMAMOTO"),
        ("1GRAA0628AB700001", 2010, "Great Dane Trailers", "Great Dane Trailers", "Trailer", "BRAZIL"),
        ("1F9M775D9RD413979", 2024, "Midwest Industrial Tanks", "Midwest Industrial Tanks", "Trailer", "DE WITT"),
    ];
    for (text, year, make, model, body, city) in expected {
        let found = read(text);
        assert!(found.decoded && found.check_digit_valid, "{text}");
        assert_eq!(found.model_year, Some(year), "{text}");
        assert_eq!(found.make.as_deref(), Some(make), "{text}");
        assert_eq!(found.model.as_deref(), Some(model), "{text}");
        assert_eq!(found.body_class.as_deref(), Some(body), "{text}");
        assert_eq!(found.plant_city.as_deref(), Some(city), "{text}");
        assert_eq!(found.suggested_vin, None, "{text}");
    }
}

#[test]
fn every_member_of_one_vehicle() {
    let found = serde_json::to_value(read("1hgcm82633a004352")).expect("JSON");
    let expected = serde_json::json!({
        "vin": "1HGCM82633A004352",
        "decoded": true,
        "check_digit_valid": true,
        "make": "Honda",
        "model": "Accord",
        "trim": "EX-V6",
        "series": null,
        "body_class": "Coupe",
        "vehicle_type": "Passenger Car",
        "drive_type": null,
        "fuel_type": "Gasoline",
        "transmission": null,
        "gross_vehicle_weight_rating": "Class 1C: 4,001 - 5,000 lb (1,814 - 2,268 kg)",
        "manufacturer": "AMERICAN HONDA MOTOR CO., INC.",
        "plant_city": "MARYSVILLE",
        "plant_state": "OHIO",
        "plant_country": "UNITED STATES (USA)",
        "suggested_vin": null,
        "model_year": 2003,
        "doors": 2,
        "engine_cylinders": 6,
        "engine_displacement_l": null,
        "engine_horsepower": null,
        "notes": [],
    });
    assert_eq!(found, expected);
}

#[test]
fn engines_are_described_in_several_ways() {
    // In litres, in cubic centimetres, and in cubic inches of the engine model.
    let litres = |text| read(text).engine_displacement_l;
    assert_eq!(litres("KM8K2CAB4PU001140"), Some(2.0));
    assert_eq!(litres("JH2SC5904AK000001"), Some(0.999));
    assert_eq!(litres("1BADRBKH7MWP42799"), Some(12.094));
    // The power is known through the engine model only.
    let accord = read("1HGCS1B34BML69817");
    assert_eq!(accord.engine_horsepower, Some(190.0));
    // This maker writes the number of cylinders into position 6.
    assert_eq!(read("LDYAS4AB36N000001").engine_cylinders, Some(4));
    assert_eq!(read("LDYAS2AB36N000001").engine_cylinders, Some(2));
}

#[test]
fn numbers_from_before_1981_are_too_short() {
    assert_eq!(Vin::parse("194677S106437"), Err(VinError::Length(13)));
}

#[test]
fn a_wrong_check_digit_is_noted_and_the_number_decoded() {
    let found = read("1HGCM82643A004352");
    assert!(found.decoded && !found.check_digit_valid);
    assert_eq!(found.model.as_deref(), Some("Accord"));
    assert_eq!(found.suggested_vin, None);
    assert_eq!(notes_with(&found, "check digit"), 1);
    assert_eq!(notes_with(&found, "other markets"), 0);
}

#[test]
fn european_numbers_need_no_check_digit() {
    let found = read("WP0ZZZ99ZTS392124");
    assert!(found.decoded && !found.check_digit_valid);
    assert_eq!(found.make.as_deref(), Some("Porsche"));
    assert_eq!(found.model.as_deref(), Some("911"));
    assert_eq!(found.model_year, Some(1996));
    assert_eq!(notes_with(&found, "other markets"), 1);
}

#[test]
fn one_mistyped_character_is_found() {
    // In a descriptor, so that there is no model; in the plant's position, with
    // all else well; and in the maker's code.
    for (text, position) in [("1HGXM82633A004352", 4), ("1HGCM82633X004352", 11), ("1ZGCM82633A004352", 2)] {
        let found = read(text);
        let suggested = found.suggested_vin.as_deref();
        assert_eq!(suggested, Some("1HGCM82633A004352"), "{text}");
        let words = format!("in position {position} the check digit is right");
        assert_eq!(notes_with(&found, &words), 1, "{text}");
    }
    let found = read("1HGCM82633X004352");
    assert_eq!(notes_with(&found, "not known to use 'X' in position 11"), 1);
}

#[test]
fn an_unknown_maker_is_noted() {
    let found = read("11111111111111111");
    assert!(!found.decoded && found.check_digit_valid);
    assert_eq!(found.make, None);
    assert_eq!(found.model_year, Some(2001));
    assert_eq!(notes_with(&found, "the code 111 (positions 1 to 3)"), 1);
    let found = read("1Z9AA11A0FA000000");
    assert_eq!(notes_with(&found, "the code 1Z9000 (positions 1 to 3 and 12 to 14)"), 1);
}

#[test]
fn the_given_model_year_decides_between_two() {
    let bus = "1M8GDM9AXKP042788";
    assert_eq!(notes_with(&read(bus), "1989 and 2019"), 1);
    let found = read_with_year(bus, Some(1989));
    assert_eq!(found.model_year, Some(1989));
    assert!(found.notes.is_empty());
    let found = read_with_year(bus, Some(2019));
    assert_eq!(found.model_year, Some(2019));
    assert_eq!(found.model.as_deref(), Some("D4520"));
    let found = read_with_year(bus, Some(1990));
    assert_eq!(found.model_year, Some(1989));
    assert_eq!(notes_with(&found, "1990, does not fit position 10"), 1);
}

#[test]
fn position_7_tells_the_cycle_of_cars() {
    // A digit there: 1980 to 2009. A letter: 2010 to 2039.
    assert_eq!(read("1HGCM82633A004352").model_year, Some(2003));
    assert_eq!(read("5YJ3E1EA5KF328931").model_year, Some(2019));
    // Unless the maker is described only in the other year.
    let found = read("WVWZZZ1KZAW000123");
    assert_eq!(found.model_year, Some(2010));
    assert_eq!(notes_with(&found, "Position 7 is '1'"), 1);
}

#[test]
fn an_invalid_year_code_gives_no_year() {
    let found = read("1HGCM826703004352");
    assert!(!found.decoded);
    assert_eq!(found.model_year, None);
    assert_eq!(found.make.as_deref(), Some("Honda"));
    assert_eq!(notes_with(&found, "no model year"), 1);
}

#[test]
fn off_road_vehicles_and_gliders_are_noted() {
    assert_eq!(notes_with(&read("JYE8ET007FTG21097"), "off-road"), 1);
    assert_eq!(notes_with(&read("1CYK2BX327T912537"), "glider"), 1);
}
