//! The texts of the sites: topics turned into news articles, forum threads, product pages and so on.

use crate::dice::Dice;
use crate::skeleton::{self, Block, Doc};
use crate::topics::{Fact, Topic, topics};
use crate::{PageKind, SitePage, Truth};

const PEOPLE: [&str; 14] = [
    "Ada Fenwick",
    "Bjarne Tolliver",
    "Cora Hallam",
    "Dov Merrin",
    "Elspeth Rook",
    "Farid Quay",
    "Greta Lindqvist",
    "Hamish Osei",
    "Ines Calloway",
    "Jarek Stone",
    "Kirsi Vane",
    "Lorcan Pell",
    "Mirembe Adair",
    "Nils Thackeray",
];
const NICKS: [&str; 10] = [
    "otter_77",
    "slowlane",
    "Mrs Weatherby",
    "tinbox",
    "ferryman",
    "k-dot",
    "Hexwater Harry",
    "nightowl",
    "rusty.nail",
    "quaysider",
];
const ROLES: [&str; 6] = [
    "who has lived nearby for thirty years",
    "a teacher from Port Calder",
    "who speaks for the neighbours",
    "a regular visitor",
    "a retired engineer",
    "who runs the kiosk on the corner",
];
const NEWS_FILLER: [&str; 10] = [
    "Officials would not say on Tuesday whether the date could slip again.",
    "A spokeswoman for the county declined to comment further.",
    "The matter is on the agenda of the next public meeting.",
    "Similar plans in neighbouring districts have met with mixed success.",
    "Documents seen by this newspaper describe months of disagreement behind closed doors.",
    "For many people here it is a question of everyday life, not of politics.",
    "The opposition called the announcement overdue.",
    "Weather permitting, the first steps will be visible within weeks.",
    "How much of that will be kept remains to be seen.",
    "An independent review is expected before the end of the year.",
];
const BLOG_FILLER: [&str; 10] = [
    "I did not expect to have an opinion about this, and yet here we are.",
    "Regular readers know that I change my mind about twice a year.",
    "It rained while I wrote this, which may explain the tone.",
    "A friend who knows more than I do laughed when I told her.",
    "I took far too many notes, and I will spare you most of them.",
    "If you know better, write to me; I read everything.",
    "None of this was paid for by anybody but me.",
    "What stayed with me is how ordinary it all felt.",
    "I have been wrong before, so take it with some salt.",
    "Next month I will look at it again and report.",
];
const CHATTER: [&str; 8] = [
    "Thanks in advance!",
    "Same question here, following this thread.",
    "I tried that last year and it worked for me.",
    "Please use the search next time, this has come up before.",
    "That matches what I was told at the counter.",
    "Not sure about that, do you have a source?",
    "Edited to fix a typing error.",
    "Solved, thank you all.",
];

/// Escapes HTML's special characters.
pub fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

/// The pages that are about the topics.
pub fn pages() -> Vec<SitePage> {
    let mut pages = Vec::new();
    for (index, topic) in topics().iter().enumerate() {
        let blog = ["mirafell.example", "www.kitewind.example", "oldlantern.example"][index % 3];
        let forum = ["forum.calderland.example", "talk.fells.example"][index % 2];
        match topic.kind.as_str() {
            "civic" => {
                pages.push(news(topic, "news.harbourpost.example", 0));
                pages.push(news(topic, "www.calderledger.example", 1));
                pages.push(post(topic, blog));
                pages.push(thread(topic, forum));
                pages.push(entry(topic));
            }
            "science" => {
                pages.push(news(topic, "news.harbourpost.example", 0));
                pages.push(news(topic, "www.calderledger.example", 1));
                pages.push(post(topic, blog));
                pages.push(entry(topic));
            }
            "tech" => {
                pages.push(manual(topic, index));
                pages.push(reference(topic));
                pages.push(news(topic, "www.calderledger.example", 0));
                pages.push(post(topic, blog));
                pages.push(thread(topic, forum));
                pages.push(entry(topic));
            }
            "product" => {
                pages.push(product(topic, index));
                pages.push(post(topic, blog));
                pages.push(thread(topic, forum));
            }
            "food" => {
                pages.push(recipe(topic, index));
                pages.push(post(topic, blog));
                pages.push(thread(topic, forum));
            }
            _ => {
                pages.extend(company(topic, index));
                pages.push(news(topic, "news.harbourpost.example", 0));
            }
        }
    }
    pages
}

/// A page from a document: its skeleton makes the markup, its blocks are the known text.
fn finish(doc: Doc, kind: PageKind, topic: &'static Topic, facts: Vec<&Fact>) -> SitePage {
    let (body, boilerplate) = skeleton::render(&doc, kind);
    SitePage {
        host: doc.host.clone(),
        path: doc.path.clone(),
        content_type: "text/html; charset=utf-8".to_owned(),
        body: body.into_bytes(),
        headers: Vec::new(),
        kind,
        topic: Some(&topic.key),
        truth: Truth {
            title: doc.title.clone(),
            main_text: doc.blocks.iter().flat_map(Block::texts).collect(),
            boilerplate,
            published: doc.dated.then(|| doc.date.clone()),
            facts: facts.into_iter().map(|fact| (fact.question.clone(), fact.sentence.clone())).collect(),
            ..Truth::default()
        },
    }
}

fn doc(topic: &Topic, host: &str, path: String, title: String, dated: bool) -> (Doc, Dice) {
    let mut dice = Dice::of(&format!("{host}{path}{}", topic.key));
    let author = (*dice.one(&PEOPLE)).to_owned();
    let date = dice.day();
    let doc =
        Doc { host: host.to_owned(), path, title, author, date, dated, blocks: Vec::new(), variant: dice.below(12) };
    (doc, dice)
}

fn headline(topic: &Topic, which: usize) -> String {
    topic.headlines.get(which).or(topic.headlines.first()).cloned().unwrap_or_default()
}

fn quote(dice: &mut Dice, text: &str) -> String {
    let said = text.trim_end_matches('.');
    let (who, role) = (*dice.one(&PEOPLE), *dice.one(&ROLES));
    match dice.below(3) {
        0 => format!("“{said},” said {who}, {role}."),
        1 => format!("{who}, {role}, put it like this: “{said}.”"),
        _ => format!("“{said},” as {who} says, {role}."),
    }
}

fn news(topic: &'static Topic, host: &str, which: usize) -> SitePage {
    let year_path = ["/news/", "/articles/"][which];
    let (mut doc, mut dice) = doc(topic, host, format!("{year_path}{}", topic.key), headline(topic, which), true);
    let facts: Vec<&Fact> = match which {
        0 => topic.facts.iter().collect(),
        _ => topic.facts.iter().rev().skip(1).collect(),
    };
    let colours = dice.some(&topic.colour, topic.colour.len());
    let filler = dice.some(&NEWS_FILLER, 6);
    for (index, fact) in facts.iter().enumerate() {
        let after = filler[index % filler.len()];
        let text = match index {
            0 => format!("{} {after}", fact.sentence),
            _ if index % 2 == 0 => format!("{after} {} {}", fact.sentence, colours[index % colours.len()]),
            _ => fact.sentence.clone(),
        };
        doc.blocks.push(Block::Para(text));
        if index == 1 {
            doc.blocks.push(Block::Para(quote(&mut dice, colours[1])));
            doc.blocks.push(Block::Heading(
                ["What happens next", "The background", "A long story"][dice.below(3)].to_owned(),
            ));
        }
    }
    doc.blocks.push(Block::Para(format!("{} {}", colours[3], filler[5])));
    finish(doc, PageKind::News, topic, facts)
}

fn post(topic: &'static Topic, host: &str) -> SitePage {
    let path = match host {
        "mirafell.example" => format!("/2025/{}/", topic.key),
        "www.kitewind.example" => format!("/posts/{}.html", topic.key),
        _ => format!("/archive/{}.htm", topic.key),
    };
    let (mut doc, mut dice) = doc(topic, host, path, headline(topic, 1), true);
    let facts: Vec<&Fact> = topic.facts.iter().step_by(2).collect();
    let filler = dice.some(&BLOG_FILLER, 6);
    let colours = dice.some(&topic.colour, topic.colour.len());
    doc.blocks.push(Block::Para(format!("{} This is about {}.", filler[0], topic.subject)));
    doc.blocks.push(Block::Para(format!("{} {}", colours[0], filler[1])));
    for (index, fact) in facts.iter().enumerate() {
        doc.blocks.push(Block::Para(format!("{} {}", filler[2 + index % 3], fact.sentence)));
    }
    if dice.below(2) == 0 {
        doc.blocks.push(Block::Quote(colours[1].clone()));
    } else {
        doc.blocks.push(Block::List(vec![colours[1].clone(), colours[2].clone(), filler[4].to_string()]));
    }
    doc.blocks.push(Block::Para(format!("{} {}", colours[3], filler[5])));
    finish(doc, PageKind::Blog, topic, facts)
}

fn thread(topic: &'static Topic, host: &str) -> SitePage {
    let path = match host {
        "forum.calderland.example" => format!(
            "/viewtopic.php?t={}",
            1_000 + topic.key.len() * 37 + topic.key.bytes().map(usize::from).sum::<usize>()
        ),
        _ => format!("/t/{}/{}", topic.key, topic.key.len() * 11),
    };
    let asked = &topic.facts[1];
    let (mut doc, mut dice) = doc(topic, host, path, asked.question.clone(), false);
    let facts = vec![asked, &topic.facts[3]];
    let nicks = dice.some(&NICKS, 5);
    let chatter = dice.some(&CHATTER, 5);
    let colours = dice.some(&topic.colour, 3);
    let post = |nick: &str, paras: Vec<String>| Block::Post { author: nick.to_owned(), paras };
    doc.blocks.push(post(
        nicks[0],
        vec![
            format!("Hello everybody, I could not find anything about {} here. {}", topic.subject, asked.question),
            chatter[0].to_string(),
        ],
    ));
    doc.blocks.push(post(nicks[1], vec![colours[0].clone(), chatter[1].to_string()]));
    doc.blocks.push(post(nicks[2], vec![asked.sentence.clone(), chatter[2].to_string()]));
    doc.blocks.push(post(nicks[3], vec![format!("{} {}", colours[1], topic.facts[3].sentence)]));
    doc.blocks.push(post(nicks[0], vec![format!("{} {}", colours[2], chatter[3])]));
    finish(doc, PageKind::Forum, topic, facts)
}

fn entry(topic: &'static Topic) -> SitePage {
    let title = topic.subject.strip_prefix("the ").unwrap_or(&topic.subject);
    let mut letters = title.chars();
    let title =
        letters.next().map(|first| first.to_uppercase().collect::<String>() + letters.as_str()).unwrap_or_default();
    let (mut doc, mut dice) =
        doc(topic, "wiki.calderland.example", format!("/wiki/{}", topic.key), title.clone(), false);
    let facts: Vec<&Fact> = topic.facts.iter().take(3).collect();
    let colours = dice.some(&topic.colour, 3);
    doc.blocks
        .push(Block::Para(format!("{title} is a subject of this encyclopaedia of Calderland. {}", facts[0].sentence)));
    doc.blocks.push(Block::Heading("Description".to_owned()));
    doc.blocks.push(Block::Para(format!("{} {}", facts[1].sentence, colours[0])));
    doc.blocks.push(Block::Heading("History".to_owned()));
    doc.blocks.push(Block::Para(format!("{} {}", colours[1], facts[2].sentence)));
    doc.blocks
        .push(Block::List(vec![colours[2].clone(), format!("The article on {} was begun in 2019.", topic.subject)]));
    finish(doc, PageKind::Wiki, topic, facts)
}

fn manual(topic: &'static Topic, index: usize) -> SitePage {
    let host = format!("docs.{}.example", topic.key);
    let title = format!("Getting started with {}", topic.subject.trim_start_matches("the "));
    let (mut doc, _) = doc(topic, &host, "/guide/start.html".to_owned(), title, false);
    doc.variant = index;
    let name = topic.key.as_str();
    doc.blocks.push(Block::Para(format!(
        "This guide takes you from nothing to a first result with {}. {}",
        topic.subject, topic.colour[0]
    )));
    doc.blocks.push(Block::Heading("Installation".to_owned()));
    doc.blocks.push(Block::Code(format!(
        "curl -O https://docs.{name}.example/{name}.tar.gz\ntar xf {name}.tar.gz\n./{name}/install --prefix=/usr/local"
    )));
    doc.blocks.push(Block::Para(topic.facts[2].sentence.clone()));
    doc.blocks.push(Block::Heading("Configuration".to_owned()));
    doc.blocks.push(Block::Para(format!("{} {}", topic.facts[0].sentence, topic.colour[1])));
    doc.blocks.push(Block::List(vec![topic.colour[2].clone(), topic.colour[3].clone()]));
    doc.blocks.push(Block::Heading("When something goes wrong".to_owned()));
    doc.blocks.push(Block::Para(topic.facts[3].sentence.clone()));
    let facts = vec![&topic.facts[0], &topic.facts[2], &topic.facts[3]];
    finish(doc, PageKind::Docs, topic, facts)
}

fn reference(topic: &'static Topic) -> SitePage {
    let host = format!("docs.{}.example", topic.key);
    let title = format!("Reference of {}", topic.subject.trim_start_matches("the "));
    let (mut doc, _) = doc(topic, &host, "/reference/index.html".to_owned(), title, false);
    doc.blocks.push(Block::Para(format!("Everything about {} that did not fit into the guide.", topic.subject)));
    let row = |name: &str, text: &str| vec![name.to_owned(), text.to_owned()];
    doc.blocks.push(Block::Table(vec![
        row("Name", "Meaning"),
        row("--verbose", "Says what is done, one line for every step"),
        row("--dry-run", "Shows what would be done and changes nothing"),
        row("--jobs N", "Does N things at the same time"),
    ]));
    doc.blocks.push(Block::Heading("Notes".to_owned()));
    doc.blocks.push(Block::Para(topic.facts[1].sentence.clone()));
    doc.blocks.push(Block::Para(format!("{} {}", topic.colour[2], topic.facts[3].sentence)));
    finish(doc, PageKind::Docs, topic, vec![&topic.facts[1], &topic.facts[3]])
}

fn product(topic: &'static Topic, index: usize) -> SitePage {
    let host = match topic.key.split('-').next() {
        Some("brightkiln") => "shop.brightkiln.example",
        Some("gearloft") => "shop.gearloft.example",
        _ => "www.fellmarket.example",
    };
    let (mut doc, mut dice) = doc(topic, host, format!("/product/{}", topic.key), headline(topic, 0), false);
    doc.variant = index;
    let facts: Vec<&Fact> = topic.facts.iter().collect();
    doc.blocks.push(Block::Para(format!("{} {}", topic.colour[0], facts[0].sentence)));
    doc.blocks.push(Block::Para(format!("{} {}", facts[1].sentence, topic.colour[1])));
    doc.blocks.push(Block::List(facts[2..].iter().map(|fact| fact.sentence.clone()).collect()));
    let row = |name: &str, text: String| vec![name.to_owned(), text];
    doc.blocks.push(Block::Table(vec![
        row("Article number", format!("FM-{}", 10_000 + dice.below(89_999))),
        row("Country of origin", "Calderland".to_owned()),
        row("Delivery time", format!("{} working days", 2 + dice.below(6))),
    ]));
    doc.blocks.push(Block::Para(format!("{} {}", topic.colour[2], topic.colour[3])));
    finish(doc, PageKind::Product, topic, facts)
}

fn recipe(topic: &'static Topic, index: usize) -> SitePage {
    let (mut doc, _) =
        doc(topic, "table.saltandrye.example", format!("/recipes/{}/", topic.key), headline(topic, 0), true);
    doc.variant = index;
    let facts: Vec<&Fact> = topic.facts.iter().collect();
    doc.blocks.push(Block::Para(format!("{} {}", topic.colour[0], topic.colour[3])));
    doc.blocks.push(Block::Heading("Ingredients".to_owned()));
    doc.blocks.push(Block::Para(facts[1].sentence.clone()));
    doc.blocks
        .push(Block::List(["A large bowl and a wooden spoon", "Clean linen", "Patience"].map(str::to_owned).to_vec()));
    doc.blocks.push(Block::Heading("Method".to_owned()));
    doc.blocks.push(Block::List(vec![facts[2].sentence.clone(), topic.colour[1].clone(), facts[0].sentence.clone()]));
    doc.blocks.push(Block::Para(format!("{} {}", facts[3].sentence, topic.colour[2])));
    finish(doc, PageKind::Recipe, topic, facts)
}

fn company(topic: &'static Topic, index: usize) -> Vec<SitePage> {
    let host = format!("www.{}.example", topic.key);
    let name = topic.subject.trim_start_matches("the ").to_owned();
    let page = |path: &str, title: String, blocks: Vec<Block>, facts: Vec<&Fact>| {
        let (mut doc, _) = doc(topic, &host, path.to_owned(), title, false);
        doc.variant = index;
        doc.blocks = blocks;
        finish(doc, PageKind::Company, topic, facts)
    };
    let (facts, colour) = (&topic.facts, &topic.colour);
    let post =
        format!("Write to us at office@{}.example or call 0{}-{}.", topic.key, 300 + index, 4_410_000 + index * 7_919);
    vec![
        page(
            "/",
            name.clone(),
            vec![
                Block::Para(colour[0].clone()),
                Block::Heading("What we do".to_owned()),
                Block::Para(format!("{} {}", colour[1], colour[2])),
            ],
            Vec::new(),
        ),
        page(
            "/about",
            format!("About {name}"),
            vec![
                Block::Para(format!("{} {}", facts[0].sentence, colour[3])),
                Block::Para(facts[2].sentence.clone()),
                Block::List(vec![colour[1].clone(), colour[2].clone()]),
            ],
            vec![&facts[0], &facts[2]],
        ),
        page(
            "/contact",
            format!("Contact {name}"),
            vec![
                Block::Para(facts[1].sentence.clone()),
                Block::Para(post.clone()),
                Block::Table(vec![
                    vec!["Monday to Thursday".to_owned(), "8 am to 5 pm".to_owned()],
                    vec!["Friday".to_owned(), "8 am to 1 pm".to_owned()],
                ]),
            ],
            vec![&facts[1]],
        ),
        page(
            "/imprint",
            format!("Imprint of {name}"),
            vec![
                Block::Para(format!(
                    "Responsible for this site according to the press act of Calderland is {name}. {}",
                    facts[1].sentence
                )),
                Block::Para(facts[3].sentence.clone()),
                Block::Para(format!("Register of companies of Port Calder, number {}. {post}", 40_000 + index * 313)),
            ],
            vec![&facts[1], &facts[3]],
        ),
    ]
}
