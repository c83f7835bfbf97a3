use url::Url;

use super::{Kind, Problem, Shop, read};
use crate::Product;

fn shop() -> Shop {
    Shop { url: Url::parse("https://shop.example/").ok(), currency: None, now: 1_772_107_200 }
}

fn all(feed: &[u8]) -> Vec<Result<Product, Problem>> {
    read(feed, None, shop()).collect()
}

fn line(product: &Product) -> String {
    let price =
        |price: &Option<crate::Price>| price.as_ref().map(|price| format!("{} {}", price.amount, price.currency));
    format!(
        "{} {} {} {:?} {:?} {:?}",
        product.id,
        product.url,
        product.title,
        price(&product.price),
        price(&product.list_price),
        product.in_stock
    )
}

const TEXT: &str = "id\ttitle\tdescription\tlink\timage link\tprice\tsale_price\tsale_price_effective_date\tavailability\tbrand\n\
    1\tRed <b>shirt</b>\t\"Two\nlines, \"\"quoted\"\"\"\t/p/1\t/i/1.jpg\t20.00 EUR\t15.00 EUR\t2026-02-01/2026-03-01\tin_stock\tACME\n\
    2\tBlue shirt\t5\" wide\thttps://shop.example/p/2\t\t20.00 EUR\t15.00 EUR\t2026-03-01/2026-04-01\tout of stock\tACME\n\
    \n\
    3\tNo price\tx\tjavascript:x()\t\t1 EUR\n\
    4\t\"Unclosed\tx\t/p/4\t\tfree money\n\
    5\tLast\t\t/p/5\n";

const XML: &str = r#"<?xml version="1.0" encoding="UTF-8"?><rss version="2.0" xmlns:g="http://base.google.com/ns/1.0"
    xmlns:media="http://search.yahoo.com/mrss/"><channel><title>Shop</title><link>https://shop.example</link>
    <item><g:id>1</g:id><title>plain</title><g:title><![CDATA[Red shirt]]></g:title><link>/p/1?a=1&amp;b=2</link>
    <g:shipping><g:country>US</g:country><g:price>6.49 USD</g:price></g:shipping><media:title>no</media:title>
    <g:price>20.00 EUR</g:price><g:sale_price>15.00 EUR</g:sale_price><g:availability>in stock</g:availability></item>
    <item><g:id>2</g:id><title>A &eacute; B</title><link>/p/2</link></item>
    <item><g:id>3</g:id><title>Fish &#38; chips</title><link>/p/3</link><g:price>0 EUR</g:price></item></channel></rss>"#;

#[test]
fn text_files_are_read() {
    let found = all(TEXT.as_bytes());
    let lines: Vec<String> = found.iter().flatten().map(line).collect();
    assert_eq!(
        lines,
        [
            "1 https://shop.example/p/1 Red shirt Some(\"15.00 EUR\") Some(\"20.00 EUR\") Some(true)",
            "2 https://shop.example/p/2 Blue shirt Some(\"20.00 EUR\") None Some(false)",
            "5 https://shop.example/p/5 Last None None None",
        ]
    );
    assert_eq!(found[0].as_ref().unwrap().description.as_deref(), Some("Two lines, \"quoted\""));
    let problems: Vec<String> = found.iter().filter_map(|one| one.as_ref().err()).map(ToString::to_string).collect();
    assert!(problems[0].starts_with("6: item 3: the link is not an http or https address"), "{problems:?}");
    assert!(problems[1].starts_with("7: the price is not an amount above 0 with a currency"), "{problems:?}");
    let csv = "\u{feff}\"ID\";\"Title\";\"Link\";\"Price\"\r\n\"a;b\";Caf\u{e9};/p;\"1.299,00 \u{20ac}\"\r\n";
    let found = all(csv.as_bytes());
    assert_eq!(line(found[0].as_ref().unwrap()), "a;b https://shop.example/p Café Some(\"1299.00 EUR\") None None");
    assert_eq!(all(b"id,title,link\n1,Caf\xe9,/p\n")[0].as_ref().unwrap().title, "Café");
}

#[test]
fn xml_is_read() {
    let found = all(XML.as_bytes());
    let lines: Vec<String> = found.iter().flatten().map(line).collect();
    assert_eq!(
        lines,
        [
            "1 https://shop.example/p/1?a=1&b=2 Red shirt Some(\"15.00 EUR\") Some(\"20.00 EUR\") Some(true)",
            "3 https://shop.example/p/3 Fish & chips None None None",
        ]
    );
    let problem = found[1].as_ref().unwrap_err();
    assert_eq!((problem.at, problem.message.contains("&eacute; is not an entity")), (2, true));
    let atom = r#"<feed xmlns="http://www.w3.org/2005/Atom" xmlns:x="http://base.google.com/ns/1.0"><title>S</title>
        <entry><x:id>9</x:id><title>Tea</title><link rel="self" href="/self"/><link href="/tea"/><summary>Green</summary>
        <x:price>3 GBP</x:price></entry></feed>"#;
    let found = all(atom.as_bytes());
    assert_eq!(line(found[0].as_ref().unwrap()), "9 https://shop.example/tea Tea Some(\"3 GBP\") None None");
    assert_eq!(found[0].as_ref().unwrap().description.as_deref(), Some("Green"));
}

#[test]
fn files_that_cannot_be_read_are_refused_with_words() {
    let deep = format!("<rss>{}", "<a>".repeat(1_000));
    let long = format!("<rss><item><title>{}", "x".repeat(3_000_000));
    for (feed, words) in [
        ("", "the file is empty"),
        ("some,text\n", "the first line must name the fields"),
        ("<!DOCTYPE r [<!ENTITY a \"b\">]><rss/>", "DTD"),
        ("<?xml version='1.0' encoding='utf-16'?><rss/>", "UTF-8"),
        ("<html></html>", "no items"),
        ("<rss><channel><item></channel></rss>", "broken"),
        ("<rss><channel>", "ends before"),
        (&deep, "nested"),
        (&long, "too long"),
    ] {
        let found = all(feed.as_bytes());
        let problem = found.last().unwrap().as_ref().unwrap_err();
        assert!(problem.message.contains(words), "{problem}");
    }
    assert!(all(b"\xff\xfei\0d\0").last().unwrap().is_err());
}

#[test]
fn slices_and_mutations_do_not_panic() {
    for (sample, kind) in [(TEXT, Kind::Text), (XML, Kind::Xml)] {
        for at in 0..sample.len() {
            let mut bytes = sample.as_bytes().to_vec();
            bytes[at] = [b'"', b'<', b'&', b'\t', 0xff, b'>', b'\n', b','][at % 8];
            assert!(read(&bytes[..], Some(kind), shop()).count() < 20);
            assert!(read(&sample.as_bytes()[at..], Some(kind), shop()).count() < 20);
            assert!(read(&sample.as_bytes()[..at], Some(kind), shop()).count() < 20);
        }
    }
}

#[test]
fn hostile_files_are_cheap() {
    let header = "id\ttitle\tlink\n";
    let quotes = format!("{header}{}", "1\t\"a\tx\n".repeat(20_000));
    assert_eq!(all(quotes.as_bytes()).len(), 20_000);
    let long = format!("{header}{}\n1\tx\t/p\n", "x".repeat(2_000_000));
    assert!(all(long.as_bytes())[0].is_err() && all(long.as_bytes())[1].is_ok());
    let attributes = format!("<rss><item {}/></rss>", (0..20_000).map(|n| format!("a{n}='' ")).collect::<String>());
    assert_eq!(all(attributes.as_bytes()).len(), 1);
}
