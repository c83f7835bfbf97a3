//! Pages that are mostly a table.

use crate::dice::Dice;
use crate::{PageKind, SitePage, Truth};

const HOST: &str = "data.openregister.example";
const PLACES: [&str; 10] = [
    "Port Calder",
    "Hexwater",
    "Ostermoor",
    "Sorrel Village",
    "Mill Weir",
    "Fellside",
    "Grey Wether",
    "Eastbank",
    "Lowmarsh",
    "Tarn Cross",
];
const SUBJECTS: [(&str, &str, &str); 9] = [
    ("population", "Inhabitants by municipality", "people"),
    ("rainfall", "Rainfall by station", "millimetres"),
    ("cycling", "Cyclists counted by station", "bicycles a day"),
    ("schools", "Pupils by municipality", "pupils"),
    ("libraries", "Loans by public library", "loans"),
    ("power", "Electricity made from wind", "megawatt hours"),
    ("fish", "Fish landed by harbour", "tonnes"),
    ("housing", "New flats by municipality", "flats"),
    ("waste", "Paper collected by municipality", "tonnes"),
];

pub fn pages() -> Vec<SitePage> {
    SUBJECTS.iter().enumerate().map(|(index, (key, title, unit))| page(index, key, title, unit)).collect()
}

fn page(index: usize, key: &str, title: &str, unit: &str) -> SitePage {
    let mut dice = Dice::of(key);
    let rows: Vec<(&str, usize, usize)> =
        PLACES.iter().map(|place| (*place, 100 + dice.below(9_000), 100 + dice.below(9_000))).collect();
    let intro = format!("The table shows {unit} for every place in the register, for two years.");
    let note = "Figures are preliminary until the end of the following year.";
    let boilerplate = format!("Download this table of {key} as a spreadsheet");
    let mut main_text = vec![intro.clone(), "Place".to_owned()];
    let mut html = String::new();
    for (place, before, now) in &rows {
        html.push_str(&match index % 3 {
            0 => format!("<tr><td>{place}</td><td>{before}</td><td>{now}</td></tr>\n"),
            1 => format!("<tr><th scope=row>{place}<td align=right>{before}<td align=right>{now}\n"),
            _ => format!("<div class=\"tr\"><div class=\"td\">{place}</div> <div class=\"td\">{before}</div> <div class=\"td\">{now}</div></div>\n"),
        });
        main_text.extend([(*place).to_owned(), before.to_string(), now.to_string()]);
    }
    main_text.push(note.to_owned());
    let nav: String = SUBJECTS
        .iter()
        .map(|(key, title, _)| format!("<li><a href=\"https://{HOST}/tables/{key}\">{title}</a></li>"))
        .collect();
    let table = match index % 3 {
        0 => format!(
            "<table class=\"data\"><thead><tr><th>Place</th><th>2024</th><th>2025</th></tr></thead><tbody>{html}</tbody></table>"
        ),
        1 => format!("<TABLE BORDER=1><CAPTION></CAPTION><TR><TH>Place<TH>2024<TH>2025\n{html}</TABLE>"),
        _ => format!(
            "<div class=\"table\"><div class=\"tr\"><div class=\"td\">Place</div> <div class=\"td\">2024</div> <div class=\"td\">2025</div></div>{html}</div>"
        ),
    };
    let body = format!(
        "<!DOCTYPE html><html lang=\"en\"><head><meta charset=\"utf-8\"><title>{title} - Open register</title></head><body><header><nav><ul>{nav}</ul></nav></header>\
         <main><h1>{title}</h1><p>{intro}</p>{table}<p>{note}</p></main><aside class=\"tools\"><button>{boilerplate}</button></aside><footer>Open register of Calderland</footer></body></html>"
    );
    let (place, _, now) = rows[index];
    let question = format!("How many {unit} are registered for {place} in 2025?");
    SitePage {
        host: HOST.to_owned(),
        path: format!("/tables/{key}"),
        content_type: "text/html; charset=utf-8".to_owned(),
        body: body.into_bytes(),
        headers: Vec::new(),
        kind: PageKind::Table,
        topic: None,
        truth: Truth {
            title: title.to_owned(),
            main_text,
            boilerplate: vec![boilerplate],
            facts: vec![(question, now.to_string())],
            ..Truth::default()
        },
    }
}
