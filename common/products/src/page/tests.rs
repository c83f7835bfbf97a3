use rust_decimal::Decimal;
use url::Url;

use super::read;
use crate::{Price, Product};

fn products(html: &str) -> Vec<Product> {
    read(html, &Url::parse("https://shop.example/items/anvil").unwrap())
}

fn price(amount: &str, currency: &str) -> Option<Price> {
    Some(Price { amount: Decimal::from_str_exact(amount).unwrap(), currency: currency.to_owned() })
}

const JSON_LD: &str = r#"<script type="application/ld+json">{"@context":"https://schema.org","@type":"Product",
    "name":"Executive Anvil","brand":{"@type":"Brand","name":"ACME"},"sku":"A-1","gtin13":"4006381333931",
    "image":["/img/anvil.jpg"],"description":"<p>Sleeker than <b>the</b> Classic Anvil.</p>",
    "aggregateRating":{"@type":"AggregateRating","ratingValue":4.4,"reviewCount":89},
    "offers":{"@type":"Offer","price":119.99,"priceCurrency":"USD","availability":"https://schema.org/InStock"}}</script>"#;

const MICRODATA: &str = r#"<div itemscope itemtype="http://schema.org/Product"><span itemprop="name">Executive Anvil</span>
    <a itemprop="brand" href="/acme">ACME</a> <meta itemprop="sku" content="A-1"><meta itemprop="gtin13" content="4006381333931">
    <img itemprop="image" src=" /img/anvil.jpg "><div itemprop="description">Sleeker than <b>the</b> Classic
    Anvil.</div><div itemprop="aggregateRating" itemscope itemtype="http://schema.org/AggregateRating">
    <b itemprop="ratingValue">4.4</b> of <b itemprop="reviewCount"> 89 </b></div>
    <p itemprop="offers" itemscope itemtype="http://schema.org/Offer"><meta itemprop="priceCurrency" content="USD">
    $<b itemprop="price">119.99</b><link itemprop="availability" href="http://schema.org/InStock"></p></div>"#;

#[test]
fn all_notations_say_the_same() {
    let rdfa = MICRODATA
        .replace("itemscope itemtype=\"http://schema.org/Product\"", "vocab=\"http://schema.org/\" typeof=\"Product\"")
        .replace("itemscope itemtype=\"http://schema.org/", "typeof=\"")
        .replace("itemprop", "property");
    let expected = Product {
        id: "A-1".to_owned(),
        url: "https://shop.example/items/anvil".to_owned(),
        title: "Executive Anvil".to_owned(),
        price: price("119.99", "USD"),
        image_url: Some("https://shop.example/img/anvil.jpg".to_owned()),
        vendor: Some("ACME".to_owned()),
        rating: Some(4.4),
        review_count: Some(89),
        in_stock: Some(true),
        description: Some("Sleeker than the Classic Anvil.".to_owned()),
        gtin: Some("4006381333931".to_owned()),
        ..Product::default()
    };
    let all = format!("{JSON_LD}{MICRODATA}{rdfa}");
    for html in [JSON_LD, MICRODATA, &rdfa, &all] {
        assert_eq!(products(html), std::slice::from_ref(&expected), "{html}");
    }
}

#[test]
fn meta_tags_are_a_product_or_complete_one() {
    let head = "<meta property=og:type content=product><meta property=og:title content=Anvil>\
        <meta property=product:price:amount content=1299.50><meta property=product:price:currency content=EUR>\
        <meta property=product:sale_price:amount content=999><meta property=og:image content=//cdn.example/a.png>\
        <meta property=product:availability content='out of stock'>";
    let found = products(head);
    assert_eq!(
        (found.len(), &found[0].price, &found[0].list_price),
        (1, &price("999", "EUR"), &price("1299.50", "EUR"))
    );
    assert_eq!((found[0].in_stock, found[0].image_url.as_deref()), (Some(false), Some("https://cdn.example/a.png")));
    let both = products(&format!("{head}<div itemscope itemtype=https://schema.org/Product><p itemprop=name>Anvil"));
    assert_eq!((both.len(), &both[0].price), (1, &price("999", "EUR")));
    assert_eq!(products("<title>News</title><meta property=og:type content=article><p>No products."), []);
}

#[test]
fn groups_offers_and_lists() {
    let group = r#"<script type=application/ld+json>[{"@type":"ProductGroup","name":"Shirt","productGroupID":"S","hasVariant":[
        {"@type":"Product","sku":"S-1","name":"Shirt, red","offers":{"@type":"Offer","price":"20.00","priceCurrency":"EUR",
        "availability":"OutOfStock"}},{"@id":"x:blue"}]},{"@type":"Product","@id":"x:blue","sku":"S-2","name":"Shirt, blue",
        "image":{"@type":"ImageObject","url":"b.png"},"offers":[{"@type":"Offer","availability":"InStock",
        "priceSpecification":[{"price":25,"priceCurrency":"EUR"},{"price":30,"priceCurrency":"EUR",
        "priceType":"https://schema.org/ListPrice"}]}]}]</script>"#;
    let found = products(group);
    assert_eq!(found.len(), 1);
    assert_eq!((found[0].id.as_str(), found[0].in_stock), ("S", Some(true)));
    assert_eq!((&found[0].price, &found[0].list_price), (&price("25", "EUR"), &price("30", "EUR")));
    let variants: Vec<_> = found[0].variants.iter().map(|one| (one.id.as_str(), one.in_stock)).collect();
    assert_eq!(variants, [("S-1", Some(false)), ("S-2", Some(true))]);

    let aggregate = products(
        r#"<script type=application/ld+json>{"@graph":[{"@type":["Product","Car"],"name":"C","offers":{"@type":"AggregateOffer",
        "lowPrice":"1,299.00","highPrice":"2000","priceCurrency":"GBP"}},{"@type":"Product","name":"D","url":"/items/anvil",
        "offers":{"price":0,"priceCurrency":"GBP"}}],}</script>"#,
    );
    assert_eq!(aggregate.iter().map(|one| one.title.as_str()).collect::<Vec<_>>(), ["D", "C"]);
    assert_eq!((&aggregate[0].price, &aggregate[1].price), (&None, &price("1299.00", "GBP")));
}

#[test]
fn slices_and_mutations_do_not_panic() {
    let sample = format!("<meta property=og:type content=product>{JSON_LD}{MICRODATA}<p about=#x property=name>é");
    for at in (0..sample.len()).step_by(11) {
        if sample.is_char_boundary(at) {
            products(&sample[..at]);
            products(&sample[at..]);
            let letter = ["\"", "<", ">", "{", "]", "\\", "é", "\0"][at % 8];
            products(&format!("{}{letter}{}", &sample[..at], &sample[at..]));
        }
    }
}

#[test]
fn hostile_pages_are_cheap() {
    let offers: String = (0..200).map(|n| format!("{{\"@id\":\"o{n}\"}},")).collect();
    let shared =
        (0..200).map(|n| format!("{{\"@type\":\"Product\",\"@id\":\"o{n}\",\"name\":\"{n}\",\"offers\":[{offers}]}},"));
    for html in [
        "<div itemscope itemprop=a>".repeat(5_000),
        "<p itemprop=description>".repeat(5_000),
        format!("<div id=a itemscope itemtype=x/Product itemref='a a a'>{}", "<b itemscope itemref=a>".repeat(400)),
        format!("<script type=application/ld+json>{}</script>", "[{\"a\":".repeat(5_000)),
        format!(
            "<script type=application/ld+json>[{}1]</script>",
            "{\"@type\":\"Product\",\"name\":\"x\"},".repeat(10_000)
        ),
        format!("<script type=application/ld+json>{}</script>", "/*".repeat(100_000)),
        format!("<script type=application/ld+json>[{}1]</script>", shared.collect::<String>()),
    ] {
        assert!(products(&html).len() <= super::MAX_PRODUCTS);
    }
}
