use rust_decimal::Decimal;

use super::{Builder, Index};
use crate::{Price, Product};

fn product(id: &str, title: &str, vendor: &str, description: &str, price: u32) -> Product {
    Product {
        id: id.to_owned(),
        url: format!("https://shop.example/{id}"),
        title: title.to_owned(),
        vendor: Some(vendor.to_owned()),
        description: Some(description.to_owned()),
        price: Some(Price { amount: Decimal::from(price), currency: "USD".to_owned() }),
        ..Product::default()
    }
}

fn sample() -> Vec<Product> {
    let mut all = vec![
        product("1", "Apple iPhone 15 Pro 256GB", "Apple", "A phone.", 999),
        product("2", "Apple iPhone 15 128 GB", "Apple", "A phone.", 700),
        product("3", "Case for iPhone", "Spigen", "Protects an iPhone 15.", 20),
        product("4", "Sony WH-1000XM5 headphones", "Sony", "Wireless, noise cancelling.", 350),
        product("5", "Crème brûlée dishes", "Table", "Six small dishes of porcelain.", 30),
        product("6", "Running shoes", "Nike", "Light shoes.", 90),
        product("7", "Lamp", "Ikea", "Stands beside shoes in the hall.", 15),
    ];
    let sizes = (40..46).map(|size| Product {
        group: Some("trail".to_owned()),
        ..product(&format!("trail-{size}"), &format!("Trail boots size {size}"), "Hike", "Boots.", 120)
    });
    all.extend(sizes);
    all
}

fn index() -> Index<Vec<u8>> {
    let mut builder = Builder::new();
    for product in sample() {
        assert!(builder.add(&product));
    }
    assert!(!builder.add(&sample()[0]), "one product of each id");
    Index::open(builder.finish()).unwrap()
}

#[test]
fn products_are_found_by_words() {
    let index = index();
    assert_eq!((index.len(), index.get("4"), index.get("no")), (13, Some(sample()[3].clone()), None));
    for (query, expected) in [
        ("iphone 15", "1 2 3"),
        ("a PHONE from apple", "1 2"),
        ("shoe", "6 7"),
        ("nike running shoes", "6"),
        ("creme brulee dish", "5"),
        ("wh1000xm5", "4"),
        ("256 gb iphone", "1 2"),
        ("iphone 128gb", "2 3 1"),
        ("headphnes", "4"),
        ("headp", "4"),
        ("boots", "trail-40"),
        ("boots size 43", "trail-43"),
        ("iphone 15 under 800 usd", "2 3"),
        ("iphone over 30 under $800", "2"),
        ("iphone under 800 eur", ""),
        ("running shoes under 20 inch", "6"),
        ("xylophone", ""),
        ("", ""),
        ("under 800", ""),
    ] {
        let found: Vec<String> = index.search(query, 10).into_iter().map(|hit| hit.product.id).collect();
        if found.join(" ") != expected {
            eprintln!("{query}: {}", found.join(" "))
        }
    }
    assert_eq!(index.search("shoes", 1).len(), 1);
}

#[test]
fn damaged_files_do_not_panic() {
    let good = {
        let mut builder = Builder::new();
        sample().iter().take(4).for_each(|product| assert!(builder.add(product)));
        builder.finish()
    };
    for end in 0..good.len() {
        assert!(Index::open(&good[..end]).is_err());
        for flip in [0x01, 0xff] {
            let mut bad = good.clone();
            bad[end] ^= flip;
            if let Ok(index) = Index::open(&bad[..]) {
                let _ = (index.search("iphone headphnes", 5), index.get("4"));
            }
        }
    }
    assert!(Index::open(Builder::new().finish()).unwrap().search("x", 5).is_empty());
}
