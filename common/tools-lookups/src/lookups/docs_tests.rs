//! Checks that docs/LOOKUPS.md lists exactly the existing rows, and that its example compiles and works.

use std::fmt::Write;
use std::path::PathBuf;

use base::money::Usdc;

use super::*;

const MARK: &str = "<!-- Written by a test: BLESS=1 cargo test -p tools-lookups lookups::docs_tests -->\n";

fn page() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../docs/LOOKUPS.md")
}

fn table() -> String {
    let mut table = "\n| path | what | source | key | copy |\n|---|---|---|---|---|\n".to_owned();
    for row in ROWS.iter() {
        let key = match row.source.key {
            row::Key::None => "",
            row::Key::Header(..) | row::Key::Query(_) => "needed",
            row::Key::MayHeader(..) | row::Key::MayQuery(_) => "useful",
        };
        let copy = row.snapshot.map_or("", |snapshot| snapshot.name);
        let (path, what, source) = (row.spec.path(), row.spec.summary, row.source.name);
        let _ = writeln!(table, "| `{}` | {what} | {source} | {key} | {copy} |", path.trim_start_matches("/v1/tools/"));
    }
    table
}

#[test]
fn the_list_in_the_docs_is_up_to_date() {
    let text = std::fs::read_to_string(page()).unwrap();
    let (before, list) = text.split_once(MARK).expect("the page has its mark");
    if std::env::var_os("BLESS").is_some() {
        std::fs::write(page(), format!("{before}{MARK}{}", table())).unwrap();
    } else {
        assert!(list == table(), "docs/LOOKUPS.md is stale: BLESS=1 cargo test -p tools-lookups lookups::docs_tests");
    }
}

/// The example of docs/LOOKUPS.md, word for word. It shows that a new row needs only one file.
mod example {
    use base::input::Field;
    use serde_json::json;
    use tools::spec::ToolSpec;

    use super::super::row::*;

    static WORLD_BANK: Source = Source {
        provider: "worldbank",
        origin: "https://api.worldbank.org",
        name: "World Bank",
        url: "https://data.worldbank.org/",
        licence: "CC BY 4.0",
        per_second: 2.0,
        ..SOURCE
    };

    #[rustfmt::skip]
    pub static ROWS: &[Lookup] = &[
Lookup {
    spec: ToolSpec {
        name: "market_country_population",
        title: "Country population",
        summary: "People living in a country by year, newest first, by the World Bank",
        paths: &["/v1/tools/lookup/market-country-population"],
        input: &[Field::required("country", formed(&TOKEN), "ISO code, such as DE or DEU"), limit(50)],
        example: || json!({"country": "DE", "limit": 1}),
        ..LOOKUP
    },
    source: &WORLD_BANK,
    requests: &[Request {
        paths: &["/v2/country/{country}/indicator/SP.POP.TOTL"],
        query: &[Pair::One("format", "json"), Pair::One("per_page", "{limit=20}")],
        genuine: &["/0/page", "/0/message"],
        ..GET
    }],
    found: "/1",
    answer: &[rows("years", "/1", &[text("year", "/date"), integer("people", "/value")], 20)],
    keep: DAYS_7,
    ..ROW
},
    ];
}

#[test]
fn the_example_needs_one_file_and_works() {
    let text = std::fs::read_to_string(page()).unwrap();
    let blocks: Vec<&str> = text.split("```rust\n").skip(1).filter_map(|rest| rest.split("```").next()).collect();
    let files: Vec<&str> =
        blocks.iter().flat_map(|block| block.lines()).filter_map(|line| line.strip_prefix("// ")).collect();
    assert_eq!(files, ["common/tools-lookups/src/lookups/market.rs"]);
    let (_, literal) = blocks[0].split_once('\n').unwrap();
    let own = include_str!("docs_tests.rs");
    assert!(own.contains(literal), "the example here is the page's");
    let row = &example::ROWS[0];
    let serde_json::Value::Object(input) = row.spec.example() else { panic!("an object") };
    let paths = fill::paths(&row.requests[0], &input);
    assert_eq!(paths, ["/v2/country/DE/indicator/SP.POP.TOTL?format=json&per_page=1"]);
    let answer = serde_json::json!([{"page": 1}, [{"date": "2025", "value": 83_500_000}]]);
    let result = engine::result(row, answer, &input, "now");
    assert_eq!((&result["found"], &result["years"][0]["people"]), (&true.into(), &83_500_000.into()));
    assert_eq!(row.spec.price.usual(), Usdc::from_micro(5_000));
    assert_eq!(row.spec.deadline, std::time::Duration::from_secs(8));
}
