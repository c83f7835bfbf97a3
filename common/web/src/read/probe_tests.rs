#[test]
fn probe() {
    use std::time::Instant;
    for unit in ["&&#&#x&ampx", "&", "&#", "&#x", "&ampx", "&amp;", "&&x"] {
        let html = unit.repeat(2_000_000 / unit.len());
        let t = Instant::now();
        let s = super::squeeze::squeeze(&html);
        let a = t.elapsed();
        let t = Instant::now();
        let p = super::parse::parse(&s.markup);
        let b = t.elapsed();
        let t = Instant::now();
        let n = p.document.text().len();
        let c = t.elapsed();
        let t = Instant::now();
        let m = p.document.md(None).len();
        let d = t.elapsed();
        let whole = html5ever::tendril::StrTendril::from(s.markup.as_str());
        let t = Instant::now();
        let _ = dom_query::Document::from(whole);
        let e = t.elapsed();
        println!("{unit} squeeze {a:?} parse {b:?} text {n} {c:?} md {m} {d:?} parse whole {e:?}");
    }
}
