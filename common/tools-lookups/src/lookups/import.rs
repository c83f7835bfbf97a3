//! Reads registers as their publishers distribute them, into records of a snapshot ([`tools::snapshot`]).
//!
//! | name | file |
//! |---|---|
//! | `ofac` | `SDN.CSV`, with `ALT.CSV` for other names (sanctionslist.ofac.treas.gov) |
//! | `gleif` | golden copy of level 1, or a part of it, as CSV with its header (gleif.org) |
//! | `fdic` | institutions of BankFind as CSV with its header (banks.data.fdic.gov) |
//! | `npi` | a part of the NPPES monthly file as CSV with its header (download.cms.gov/nppes) |
//! | `edgar-tickers` | `company_tickers.json` (sec.gov/files/company_tickers.json) |
//!
//! A truncated or wrong file is refused ([`records`]), and so is a copy that seems worse than the current one ([`doubts`]),
//! because a record that is missing from a copy is reported as "nothing found".

use std::collections::{HashMap, HashSet};

use serde_json::{Value, json};
use tools::snapshot::{Pointer, Record};

/// Registers that are only published as a whole, with the minimum number of entries in a complete file.
const FEWEST: [(&str, usize); 2] = [("ofac", 5_000), ("edgar-tickers", 3_000)];
/// A copy with less than this share of the current copy's records is probably truncated.
const LEAST_SHARE: f64 = 0.8;
/// Rows in a thousand that may lack a key or a name; publishers' own files have a few.
const MOST_WITHOUT: usize = 10;

/// The records of a register's file; `other_names` is OFAC's second file. A damaged file is an error.
pub fn records(name: &str, text: &str, other_names: Option<&str>) -> Result<Vec<Record>, String> {
    match name {
        "ofac" => ofac(text, other_names),
        "gleif" => with_header(text, &["LEI", "Entity.LegalName"], entity),
        "fdic" => with_header(text, &["CERT", "NAME"], bank),
        "npi" => with_header(text, &["NPI", "Entity Type Code"], provider),
        "edgar-tickers" => tickers(text),
        _ => Err(format!("there is no register {name}")),
    }
}

/// Reasons not to publish a copy although its file is complete; the operator decides. Days are `YYYY-MM-DD`.
pub fn doubts(
    name: &str,
    as_of: &str,
    records: usize,
    has_other_names: bool,
    in_force: Option<&Pointer>,
) -> Vec<String> {
    let mut doubts = Vec::new();
    if let Some((_, fewest)) = FEWEST.iter().find(|(of, fewest)| *of == name && records < *fewest) {
        doubts.push(format!("{records} records cannot be the whole register: it has had more than {fewest} for years"));
    }
    if name == "ofac" && !has_other_names {
        doubts.push("without ALT.CSV, no entry is found by its other names".to_owned());
    }
    let Some(in_force) = in_force else { return doubts };
    if as_of < in_force.as_of.as_str() {
        doubts.push(format!("the copy in force is newer: {}", in_force.as_of));
    }
    if (records as f64) < in_force.records as f64 * LEAST_SHARE {
        doubts
            .push(format!("{records} records, but the copy in force has {}: is the file complete?", in_force.records));
    }
    doubts
}

/// Rows of CSV with a fixed number of columns; a truncated file is an error. An end-of-file mark (U+001A) is allowed.
fn whole(text: &str, columns: Option<usize>) -> Result<Vec<Vec<String>>, String> {
    let text = text.trim_start_matches('\u{feff}').trim_end_matches('\u{1a}');
    if !text.ends_with('\n') {
        return Err("its last line has no end: it was cut".to_owned());
    }
    if text.matches('"').count() % 2 == 1 {
        return Err("a quoted field has no end: it was cut, or is damaged".to_owned());
    }
    let rows = csv(text);
    let columns = columns.or(rows.first().map(Vec::len)).unwrap_or_default();
    let is_blank = |row: &Vec<String>| row.len() == 1 && row[0].trim().is_empty();
    let odd = rows.iter().enumerate().find(|(_, row)| row.len() != columns && !is_blank(row));
    if let Some((at, row)) = odd {
        return Err(format!(
            "row {} has {} columns and not {columns}: it is damaged, or another file",
            at + 1,
            row.len()
        ));
    }
    Ok(rows.into_iter().filter(|row| !is_blank(row)).collect())
}

/// Refuses a file in which too many rows lack a key or a name.
fn telling(rows: usize, records: Vec<Record>) -> Result<Vec<Record>, String> {
    let without = rows - records.len().min(rows);
    if without * 1_000 > rows * MOST_WITHOUT {
        return Err(format!("{without} of {rows} rows have no key or no name: it is damaged, or of another form"));
    }
    Ok(records)
}

/// Rows of CSV (RFC 4180): quoted fields may contain commas, doubled quotes and line breaks.
pub fn csv(text: &str) -> Vec<Vec<String>> {
    let (mut rows, mut row, mut field) = (Vec::new(), Vec::new(), String::new());
    let (mut quoted, mut letters) = (false, text.chars().peekable());
    while let Some(letter) = letters.next() {
        match (letter, quoted) {
            ('"', true) if letters.peek() == Some(&'"') => {
                letters.next();
                field.push('"');
            }
            ('"', _) => quoted = !quoted,
            (',', false) => row.push(std::mem::take(&mut field)),
            ('\n', false) => {
                row.push(std::mem::take(&mut field));
                rows.push(std::mem::take(&mut row));
            }
            ('\r', false) => {}
            (letter, _) => field.push(letter),
        }
    }
    if !field.is_empty() || !row.is_empty() {
        row.push(field);
        rows.push(row);
    }
    rows
}

/// A row, read by column name.
type Named<'a> = dyn Fn(&str) -> Option<&'a str> + 'a;

fn with_header(text: &str, needed: &[&str], record: fn(&Named<'_>) -> Option<Record>) -> Result<Vec<Record>, String> {
    let rows = whole(text, None)?;
    let Some((header, rows)) = rows.split_first() else { return Err("the file is empty".to_owned()) };
    let columns: HashMap<&str, usize> = header.iter().enumerate().map(|(at, name)| (name.trim(), at)).collect();
    if let Some(missing) = needed.iter().find(|name| !columns.contains_key(**name)) {
        return Err(format!("the file has no column {missing}"));
    }
    let records = rows.iter().filter_map(|row| {
        let named = |name: &str| {
            let text = row.get(*columns.get(name)?)?.trim();
            (!text.is_empty()).then_some(text)
        };
        record(&named)
    });
    telling(rows.len(), records.collect())
}

/// Kinds are `individual`, `vessel`, `aircraft`, or empty for everything else. `-0-` means empty.
fn ofac(text: &str, other_names: Option<&str>) -> Result<Vec<Record>, String> {
    let entries = whole(text, Some(12)).map_err(|why| format!("SDN.CSV: {why}"))?;
    let others = other_names.map(|text| whole(text, Some(5))).transpose().map_err(|why| format!("ALT.CSV: {why}"))?;
    let others = others.unwrap_or_default();
    let said = |row: &[String], at: usize| {
        row.get(at).map(|text| text.trim()).filter(|text| !text.is_empty() && *text != "-0-").map(str::to_owned)
    };
    let mut aliases: HashMap<String, Vec<String>> = HashMap::new();
    let known: HashSet<String> = entries.iter().filter_map(|row| said(row, 0)).collect();
    for row in &others {
        if let (Some(id), Some(name)) = (said(row, 0), said(row, 3)) {
            aliases.entry(id).or_default().push(name);
        }
    }
    let strangers = aliases.keys().filter(|id| !known.contains(*id)).count();
    if strangers * 1_000 > aliases.len() * MOST_WITHOUT {
        return Err(format!("ALT.CSV names {strangers} entries that SDN.CSV has not: take both of one day"));
    }
    let rows = entries.len();
    let records = entries.into_iter().filter_map(|row| {
        let (id, name) = (said(&row, 0)?, said(&row, 1)?);
        let others = aliases.remove(&id).unwrap_or_default();
        let programs: Vec<String> = said(&row, 3)
            .iter()
            .flat_map(|text| text.split("] ["))
            .map(|one| one.trim_matches(['[', ']', ' ']).to_owned())
            .collect();
        let value = json!({
            "id": id, "kind": said(&row, 2).unwrap_or_else(|| "entity".to_owned()), "name": name, "programs": programs,
            "title": said(&row, 4), "remarks": said(&row, 11), "aliases": others,
        });
        Some(Record { key: id, names: [vec![name], others].concat(), value })
    });
    telling(rows, records.collect())
}

fn entity(of: &Named<'_>) -> Option<Record> {
    let (lei, name) = (of("LEI")?, of("Entity.LegalName")?);
    let address = |kind: &str| {
        let part = |name: &str| of(&format!("Entity.{kind}.{name}")).map(str::to_owned);
        json!({
            "addressLines": part("FirstAddressLine").into_iter().collect::<Vec<_>>(), "city": part("City"),
            "region": part("Region"), "country": part("Country"), "postalCode": part("PostalCode"),
        })
    };
    let value = json!({"attributes": {
        "lei": lei,
        "entity": {
            "legalName": {"name": name}, "otherNames": [], "status": of("Entity.EntityStatus"),
            "jurisdiction": of("Entity.LegalJurisdiction"),
            "legalForm": {"id": of("Entity.LegalForm.EntityLegalFormCode")},
            "registeredAs": of("Entity.RegistrationAuthority.RegistrationAuthorityEntityID"),
            "creationDate": of("Entity.EntityCreationDate"),
            "legalAddress": address("LegalAddress"), "headquartersAddress": address("HeadquartersAddress"),
        },
        "registration": {
            "status": of("Registration.RegistrationStatus"),
            "initialRegistrationDate": of("Registration.InitialRegistrationDate"),
            "lastUpdateDate": of("Registration.LastUpdateDate"),
            "nextRenewalDate": of("Registration.NextRenewalDate"),
            "corroborationLevel": of("Registration.ValidationSources"),
        },
    }});
    Some(Record { key: lei.to_uppercase(), names: vec![name.to_owned()], value })
}

fn bank(of: &Named<'_>) -> Option<Record> {
    let (certificate, name) = (of("CERT")?, of("NAME")?);
    let thousands = |name: &str| of(name).and_then(|text| text.replace(',', "").parse::<i64>().ok()?.checked_mul(1000));
    let value = json!({"data": {
        "NAME": name, "CERT": certificate, "ACTIVE": of("ACTIVE"), "CITY": of("CITY"), "STALP": of("STALP"),
        "REGAGNT": of("REGAGNT"), "BKCLASS": of("BKCLASS"), "ESTYMD": of("ESTYMD"), "WEBADDR": of("WEBADDR"),
        "assets_usd": thousands("ASSET"), "deposits_usd": thousands("DEP"), "REPDTE": of("REPDTE"),
    }});
    Some(Record { key: certificate.to_owned(), names: vec![name.to_owned()], value })
}

/// Street addresses are left out, because an individual's practice may be their home.
fn provider(of: &Named<'_>) -> Option<Record> {
    let npi = of("NPI")?;
    let is_person = of("Entity Type Code")? == "1";
    let place = |what: &str| of(&format!("Provider Business Practice Location Address {what}"));
    let where_ = json!({
        "address_purpose": "LOCATION", "city": place("City Name"), "state": place("State Name"),
        "country_code": place("Country Code (If outside U.S.)"),
    });
    let specialties = (1..=15).filter_map(|at| {
        Some(json!({
            "code": of(&format!("Healthcare Provider Taxonomy Code_{at}"))?, "desc": null,
            "primary": of(&format!("Healthcare Provider Primary Taxonomy Switch_{at}")),
            "license": of(&format!("Provider License Number_{at}")),
            "state": of(&format!("Provider License Number State Code_{at}")),
        }))
    });
    let organization = of("Provider Organization Name (Legal Business Name)");
    let value = json!({
        "number": npi, "enumeration_type": if is_person { "NPI-1" } else { "NPI-2" },
        "basic": {
            "first_name": of("Provider First Name"), "last_name": of("Provider Last Name (Legal Name)"),
            "credential": of("Provider Credential Text"), "organization_name": organization,
            "status": if of("NPI Deactivation Date").is_none() { "A" } else { "D" },
            "enumeration_date": of("Provider Enumeration Date"), "last_updated": of("Last Update Date"),
        },
        "practice": [where_], "addresses": if is_person { json!([]) } else { json!([where_]) },
        "taxonomies": specialties.collect::<Vec<_>>(),
    });
    Some(Record { key: npi.to_owned(), names: organization.into_iter().map(str::to_owned).collect(), value })
}

fn tickers(text: &str) -> Result<Vec<Record>, String> {
    let json: Value = serde_json::from_str(text).map_err(|error| error.to_string())?;
    let rows = json.as_object().ok_or("the file is no object of companies")?;
    let records = rows.values().filter_map(|row| {
        let (ticker, name) = (row["ticker"].as_str()?.to_uppercase(), row["title"].as_str()?);
        let value = json!({"ticker": ticker, "name": name, "cik": row["cik_str"].as_u64()?.to_string()});
        Some(Record { key: ticker, names: vec![name.to_owned()], value })
    });
    telling(rows.len(), records.collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn published_register_files_are_read() {
        let sdn = "306,\"BANCO NACIONAL DE CUBA\",\"-0- \",\"CUBA\",\"-0- \",\"-0- \",\"-0- \",\"-0- \",\"-0- \",\"-0- \",\"-0- \",\"a.k.a. 'BNC'.\"\r\n\
                   35096,\"PUTIN, Vladimir \"\"V\"\"\",\"individual\",\"UKRAINE-EO13661] [RUSSIA-EO14024\",\"President\",-0-,-0-,-0-,-0-,-0-,-0-,-0-\r\n\u{1a}";
        let alt = "306,220,\"aka\",\"NATIONAL BANK OF CUBA\",\"-0- \"\r\n";
        let ofac = records("ofac", sdn, Some(alt)).unwrap();
        assert_eq!(ofac.len(), 2);
        assert_eq!(ofac[0].names, ["BANCO NACIONAL DE CUBA", "NATIONAL BANK OF CUBA"]);
        assert_eq!((&ofac[0].value["kind"], &ofac[0].value["title"]), (&json!("entity"), &Value::Null));
        assert_eq!(ofac[1].value["programs"], json!(["UKRAINE-EO13661", "RUSSIA-EO14024"]));
        assert_eq!(ofac[1].names, ["PUTIN, Vladimir \"V\""]);

        let fdic = "\u{feff}NAME,CERT,ACTIVE,ASSET\n\"Bank, of X\",7,1,\"1,000\"\n";
        let banks = records("fdic", fdic, None).unwrap();
        assert_eq!((banks[0].key.as_str(), &banks[0].value["data"]["assets_usd"]), ("7", &json!(1_000_000)));
        assert_eq!(records("fdic", "A,B\n1,2\n", None).unwrap_err(), "the file has no column CERT");

        let npi = "\"NPI\",\"Entity Type Code\",\"Provider First Name\",\"Provider Business Practice Location Address City Name\",\"Provider First Line Business Practice Location Address\"\n\"1234567893\",\"1\",\"ANA\",\"HOUSTON\",\"1 HOME ST\"\n";
        let providers = records("npi", npi, None).unwrap();
        assert!(!providers[0].value.to_string().contains("HOME"), "no street of a person");
        let tickers =
            records("edgar-tickers", r#"{"0":{"cik_str":320193,"ticker":"AAPL","title":"Apple Inc."}}"#, None);
        assert_eq!(tickers.unwrap()[0].value, json!({"ticker": "AAPL", "name": "Apple Inc.", "cik": "320193"}));
        let gleif = records(
            "gleif",
            "LEI,Entity.LegalName,Entity.LegalAddress.City\nDPRBOZP0K5RM2YE8UU08,LOCKHEED,WILMINGTON\n",
            None,
        );
        assert_eq!(gleif.unwrap()[0].value["attributes"]["entity"]["legalAddress"]["city"], "WILMINGTON");
        assert!(records("nothing", "", None).is_err());
    }

    #[test]
    fn truncated_and_wrong_files_are_refused() {
        let sdn = "306,\"BANCO, NACIONAL\",-0-,\"CUBA\",-0-,-0-,-0-,-0-,-0-,-0-,-0-,\"a.k.a.\"\r\n";
        let alt = "306,220,\"aka\",\"BNC\",-0-\r\n";
        let of =
            |name: &str, text: &str, others: Option<&str>| records(name, text, others).map(|records| records.len());
        assert_eq!(of("ofac", &format!("{sdn}\u{1a}"), Some(alt)), Ok(1));
        // A file cut at any byte is refused, even inside the last line break.
        let cut = (1..sdn.len() - 1).filter(|at| of("ofac", &sdn[..*at], None).is_ok()).count();
        assert_eq!(cut, 0);
        for (name, text, others, why) in [
            ("ofac", sdn, Some("306,220,\"aka\",\"BN"), "ALT.CSV: its last line has no end"),
            ("ofac", sdn, Some("9,220,\"aka\",\"BNC\",-0-\n"), "take both of one day"),
            ("ofac", alt, None, "row 1 has 5 columns and not 12"),
            ("ofac", "<html>\n<body>Maintenance</body>\n", None, "columns and not 12"),
            ("fdic", "CERT,NAME\n1,A\n2\n", None, "row 3 has 1 columns and not 2"),
            ("fdic", "CERT,NAME\n1,A\n2,\"B\n", None, "a quoted field has no end"),
            ("fdic", "CERT,NAME\n1,A\n,B\n", None, "1 of 2 rows have no key"),
            ("edgar-tickers", "{\"0\":{\"cik_str\":1,\"ticker\":\"A\",\"ti", None, "EOF"),
            ("edgar-tickers", "{\"0\":{\"error\":1}}", None, "1 of 1 rows"),
        ] {
            let refused = of(name, text, others).unwrap_err();
            assert!(refused.contains(why), "{text}: {refused}");
        }
    }

    #[test]
    fn a_worse_copy_raises_doubts() {
        let in_force =
            Pointer { generation: "g".to_owned(), as_of: "2026-11-20".to_owned(), records: 17_000, bytes: 1 };
        let of = |as_of: &str, records, others| doubts("ofac", as_of, records, others, Some(&in_force)).len();
        assert_eq!(of("2026-11-20", 17_000, true), 0);
        assert_eq!(of("2026-11-21", 16_900, true), 0);
        assert_eq!(of("2026-11-19", 17_000, true), 1, "older");
        assert_eq!(of("2026-11-21", 12_000, true), 1, "far smaller");
        assert_eq!(of("2026-11-21", 17_000, false), 1, "without other names");
        assert_eq!(doubts("ofac", "2026-11-21", 300, true, None).len(), 1, "not the whole list");
        assert_eq!(doubts("npi", "2026-11-21", 300, false, None).len(), 0, "parts of it are welcome");
    }
}
