//! Sections of what is known. Each text of the stock goes into one of them.

use super::opening::joined;
use super::orders::Orders;
use super::stock::{Listed, Stock, Told};
use super::text;
use super::topics::{self, Topic};
use super::words::Words;
use crate::brief::Kind;
use crate::plan::{Content, Item, Link, Offer, Section};

pub struct Maker {
    pub stock: Stock,
    pub orders: Orders,
    pub words: &'static Words,
    pub kind: Kind,
    pub name: String,
    pub english: bool,
    /// The site has a form.
    pub form: bool,
    /// Where the owner is reached: a page's path or `#contact`; empty if nowhere.
    pub contact: String,
    /// Further pages, by topic: a section about which a page tells all leads there.
    pub pages: Vec<(Topic, Link)>,
    /// The general sentence for sections about which nothing is known stands once on a site.
    pub said_neutral: bool,
}

/// Stems of names that any offer suits.
const GENERAL: &[&str] = &["featu", "offer", "benef", "what", "leist", "funkt", "prest", "angeb"];

/// Topics whose lists have a section of their own.
const OWN: [Topic; 5] = [Topic::Steps, Topic::Prices, Topic::Dishes, Topic::Programme, Topic::Contact];

const PARAGRAPH: usize = 600;
const PARAGRAPHS: usize = 8;

impl Maker {
    /// All of the named sections in their order.
    pub fn named(&mut self, names: &[String]) -> Vec<Section> {
        let mut made: Vec<Option<Section>> = vec![None; names.len()];
        let topics: Vec<Topic> = names.iter().map(|name| topics::of(name)).collect();
        // What is certain first; "About" takes what the others leave.
        let rank = |topic: Topic| match topic {
            Topic::About => 3,
            Topic::Offer => 2,
            Topic::Other | Topic::Action => 1,
            _ => 0,
        };
        let mut order: Vec<usize> =
            (0..names.len()).filter(|at| !matches!(topics[*at], Topic::Hero | Topic::Frame)).collect();
        order.sort_by_key(|at| rank(topics[*at]));
        for at in order {
            // "CTA" is the builder's word.
            let unnamed = matches!(
                names[at].to_lowercase().as_str(),
                "cta" | "call to action" | "call-to-action" | "call_to_action"
            );
            let heading = if unnamed { self.name.clone() } else { topics::heading(&names[at]) };
            if heading.is_empty() {
                continue;
            }
            let content = self.content(topics[at], &text::stems(&names[at])).map(|(_, content)| content);
            let content = content.unwrap_or_else(|| self.neutral(topics[at], &heading));
            made[at] = Some(Section { id: String::new(), heading, content });
        }
        let mut sections: Vec<Section> = made.into_iter().flatten().collect();
        self.part_contacts(&mut sections);
        sections
    }

    /// The sections of a kind about which something is known and which are not there yet.
    pub fn of_kind(&mut self) -> Vec<Section> {
        let mut sections = Vec::new();
        let order = topics::of_kind(self.kind);
        let mut made: Vec<Vec<Section>> = vec![Vec::new(); order.len()];
        // As above: what is certain first.
        let mut ranked: Vec<usize> = (0..order.len()).collect();
        ranked.sort_by_key(|at| order[*at] == Topic::About);
        for at in ranked {
            while let Some((heading, content)) = self.content(order[at], &[]) {
                let heading = heading.unwrap_or_else(|| self.heading(order[at]).to_owned());
                made[at].push(Section { id: String::new(), heading, content });
                if made[at].len() >= 6 {
                    break;
                }
            }
        }
        made.into_iter().for_each(|of_topic| sections.extend(of_topic));
        sections
    }

    /// Our word for a topic.
    pub fn heading(&self, topic: Topic) -> &'static str {
        let words = self.words;
        match topic {
            Topic::Prices => words.prices,
            Topic::Dishes => words.dishes,
            Topic::Hours => words.opening_hours,
            Topic::Programme => words.programme,
            Topic::Quotes => words.quotes,
            Topic::Questions => words.questions,
            Topic::Numbers => words.numbers,
            Topic::Steps => words.steps,
            Topic::Contact => words.contact,
            Topic::Offer => match self.kind {
                Kind::Saas | Kind::Product | Kind::Funnel | Kind::Event => words.features,
                Kind::Portfolio => words.works,
                Kind::Restaurant => words.dishes,
                Kind::Agency | Kind::Personal => words.services,
            },
            Topic::About | Topic::Hero | Topic::Frame | Topic::Action | Topic::Other => words.about,
        }
    }

    /// What the stock has about a topic, or about a section with the stems of its name; with a heading of the brief's if it has one.
    pub fn content(&mut self, topic: Topic, name: &[String]) -> Option<(Option<String>, Content)> {
        let stock = &mut self.stock;
        match topic {
            Topic::Prices | Topic::Dishes
                if !stock.offers.is_empty()
                    && (topic == Topic::Prices) != (self.kind == Kind::Restaurant && name.is_empty()) =>
            {
                let offers = std::mem::take(&mut stock.offers);
                Some((None, self.offers(topic, offers)))
            }
            Topic::Dishes if !stock.offers.is_empty() => {
                let offers = std::mem::take(&mut stock.offers);
                Some((None, self.offers(topic, offers)))
            }
            Topic::Hours if !stock.hours.is_empty() => {
                let rows = std::mem::take(&mut stock.hours);
                Some((None, Content::Table { intro: self.intro(Topic::Hours), rows }))
            }
            Topic::Programme if !stock.programme.is_empty() => {
                let rows = std::mem::take(&mut stock.programme);
                Some((None, Content::Table { intro: self.intro(Topic::Programme), rows }))
            }
            Topic::Quotes if !stock.quotes.is_empty() => {
                Some((None, Content::Quotes { quotes: std::mem::take(&mut stock.quotes) }))
            }
            Topic::Questions if !stock.questions.is_empty() => {
                Some((None, Content::Questions { items: std::mem::take(&mut stock.questions) }))
            }
            Topic::Numbers if !stock.numbers.is_empty() => {
                Some((None, Content::Facts { facts: std::mem::take(&mut stock.numbers) }))
            }
            Topic::Contact => self.contact_content().map(|content| (None, content)),
            Topic::About => self.about(),
            Topic::Offer | Topic::Other | Topic::Action | Topic::Steps => self.listed(topic, name),
            _ => self.list_of(topic).or_else(|| self.told_of(topic)),
        }
    }

    fn offers(&mut self, topic: Topic, offers: Vec<Offer>) -> Content {
        let intro = self.intro(topic);
        // Dishes have a price at the edge; offers with points are cards.
        if topic == Topic::Dishes || offers.len() > 6 {
            let unpriced = if topic == Topic::Dishes { self.unheaded() } else { Vec::new() };
            let items = offers.into_iter().map(|offer| {
                let text = if offer.points.is_empty() {
                    offer.text
                } else {
                    [vec![offer.text], offer.points]
                        .concat()
                        .into_iter()
                        .filter(|part| !part.is_empty())
                        .collect::<Vec<_>>()
                        .join(", ")
                };
                Item { title: offer.name, text, note: offer.price }
            });
            return Content::List { intro, items: items.chain(unpriced).collect() };
        }
        Content::Prices { intro, offers }
    }

    /// The items of lists without a heading of their own.
    fn unheaded(&mut self) -> Vec<Item> {
        let (taken, rest) =
            std::mem::take(&mut self.stock.lists).into_iter().partition(|list: &Listed| list.heading.is_empty());
        self.stock.lists = rest;
        taken.into_iter().flat_map(|list| list.items).collect()
    }

    /// Sentences of the topic that stand before its table or list.
    fn intro(&mut self, topic: Topic) -> String {
        let taken = self.take(|told| told.topic == topic, 2);
        taken.iter().fold(String::new(), |intro, told| joined(&intro, &told.text))
    }

    fn take(&mut self, wanted: impl Fn(&Told) -> bool, most: usize) -> Vec<Told> {
        let mut taken = Vec::new();
        self.stock.told.retain(|told| {
            let takes = taken.len() < most && wanted(told);
            if takes {
                taken.push(told.clone());
            }
            !takes
        });
        taken
    }

    fn told_of(&mut self, topic: Topic) -> Option<(Option<String>, Content)> {
        let taken = self.take(|told| told.topic == topic, PARAGRAPHS);
        (!taken.is_empty()).then(|| (None, Content::Text { paragraphs: paragraphs(&taken) }))
    }

    fn list_of(&mut self, topic: Topic) -> Option<(Option<String>, Content)> {
        // What a restaurant offers are dishes.
        let dishes = topic == Topic::Dishes && self.kind == Kind::Restaurant;
        let lists = &self.stock.lists;
        let at = lists
            .iter()
            .position(|list| list.topic == topic)
            .or_else(|| lists.iter().position(|list| dishes && list.topic == Topic::Offer))?;
        let list = self.stock.lists.remove(at);
        let intro = self.intro(topic);
        Some(content_of(list, topic, intro))
    }

    fn about(&mut self) -> Option<(Option<String>, Content)> {
        let taken = self.take(
            |told| {
                !matches!(
                    told.topic,
                    Topic::Hours | Topic::Prices | Topic::Contact | Topic::Programme | Topic::Dishes | Topic::Steps
                )
            },
            PARAGRAPHS,
        );
        (!taken.is_empty()).then(|| (None, Content::Text { paragraphs: paragraphs(&taken) }))
    }

    /// A list or sentences that suit a name; without a name, the next list.
    fn listed(&mut self, topic: Topic, name: &[String]) -> Option<(Option<String>, Content)> {
        let suits = |list: &Listed| topics::suits(name, &text::stems(&list.heading));
        let lists = &self.stock.lists;
        let at = lists
            .iter()
            .position(suits)
            .or_else(|| lists.iter().position(|list| list.topic == topic && topic != Topic::Other));
        let at = at.or_else(|| {
            (topic == Topic::Offer)
                .then(|| {
                    lists
                        .iter()
                        .position(|list| list.topic == Topic::Other || name.is_empty() && !OWN.contains(&list.topic))
                })
                .flatten()
        });
        let told = if name.is_empty() {
            Vec::new()
        } else {
            self.take(|told| topics::suits(name, &told.stems) && told.topic != Topic::Hours, 4)
        };
        if let Some(at) = at {
            let mut list = self.stock.lists.remove(at);
            let offered = list.topic == Topic::Offer && name.is_empty();
            if list.heading.is_empty() {
                // Lists that have no heading of their own are one.
                list.items.extend(self.unheaded());
            }
            let intro = told.iter().fold(String::new(), |intro, told| joined(&intro, &told.text));
            let (heading, content) = content_of(list, topic, intro);
            // What "we offer" are services, whatever the kind of site.
            let services = offered && !matches!(self.kind, Kind::Portfolio | Kind::Restaurant);
            return Some((heading.or(services.then(|| self.words.services.to_owned())), content));
        }
        if let Some(content) = self.short(topic).filter(|_| told.is_empty()) {
            return Some((None, content));
        }
        if !told.is_empty() {
            return Some((None, Content::Text { paragraphs: paragraphs(&told) }));
        }
        // Sentences under such a label, where nothing is a list.
        self.ordered(topic, name).or_else(|| if topic == Topic::Other { None } else { self.told_of(topic) })
    }

    /// "Works offline. Syncs across devices.": sentences as short as items are a list.
    fn short(&mut self, topic: Topic) -> Option<Content> {
        let short =
            |told: &Told| told.topic == Topic::Other && told.text.split(' ').count() <= 5 && told.text.ends_with('.');
        let sells = matches!(self.kind, Kind::Saas | Kind::Product | Kind::Funnel | Kind::Agency);
        if topic != Topic::Offer || !sells || self.stock.told.iter().filter(|told| short(told)).count() < 3 {
            return None;
        }
        let taken = self.take(short, 12);
        let item = |told: &Told| Item {
            title: told.text.trim_end_matches('.').to_owned(),
            text: String::new(),
            note: String::new(),
        };
        Some(Content::List { intro: String::new(), items: taken.iter().map(item).collect() })
    }

    /// What orders name, without claims.
    fn ordered(&mut self, topic: Topic, name: &[String]) -> Option<(Option<String>, Content)> {
        let all =
            topic == Topic::Offer && (name.is_empty() || name.iter().any(|stem| GENERAL.contains(&stem.as_str())));
        let wanted = |item: &String| all || topics::suits(name, &text::stems(item));
        let (topics, rest) = std::mem::take(&mut self.orders.topics).into_iter().partition::<Vec<_>, _>(wanted);
        // An item that only repeats the section's name says nothing.
        let topics: Vec<String> = topics
            .into_iter()
            .filter(|item| name.is_empty() || text::stems(item).iter().any(|stem| !name.contains(stem)))
            .collect();
        let (deeds, others) = std::mem::take(&mut self.orders.deeds).into_iter().partition::<Vec<_>, _>(wanted);
        (self.orders.topics, self.orders.deeds) = (rest, others);
        let nouns = topics.len();
        let heading = if topics.is_empty() && self.english { "What you can do" } else { self.words.features };
        let mut items: Vec<Item> = topics
            .into_iter()
            .chain(deeds)
            .map(|title| Item { title, text: String::new(), note: String::new() })
            .collect();
        match items.len() {
            0 => None,
            // One noun is no sentence.
            1 if all || nouns == 1 => None,
            1 => Some((None, Content::Text { paragraphs: vec![format!("{}.", items.remove(0).title)] })),
            _ => Some((Some(heading.to_owned()), Content::List { intro: String::new(), items })),
        }
    }

    /// How to reach the owner; nothing if there is no way.
    pub fn contact_content(&mut self) -> Option<Content> {
        let told = self.take(|told| told.topic == Topic::Contact, 3);
        let text = told.iter().fold(String::new(), |text, told| joined(&text, &told.text));
        let stock = &self.stock;
        let (email, phone, address) = (stock.email.clone(), stock.phone.clone(), stock.address.clone());
        let reached = self.form || !email.is_empty() || !phone.is_empty() || !address.is_empty();
        if !reached {
            return (!text.is_empty()).then(|| Content::Text { paragraphs: vec![text] });
        }
        Some(Content::Contact { text, email, phone, address, form: self.form })
    }

    /// "Address" and "Form" on one page: the details stand in the first, the form in the last.
    fn part_contacts(&mut self, sections: &mut [Section]) {
        let places: Vec<usize> =
            (0..sections.len()).filter(|at| matches!(sections[*at].content, Content::Contact { .. })).collect();
        let Some((first, later)) = places.split_first().filter(|(_, later)| !later.is_empty()) else { return };
        let details = ![&self.stock.email, &self.stock.phone, &self.stock.address].iter().all(|text| text.is_empty());
        let form_at = if self.form && details { later.last() } else { Some(first) };
        for at in &places {
            let has_form = self.form && Some(at) == form_at;
            let neutral =
                if at == first || has_form { None } else { Some(self.neutral(Topic::Other, &sections[*at].heading)) };
            match (neutral, &mut sections[*at].content) {
                (Some(neutral), content) => *content = neutral,
                (None, Content::Contact { email, phone, address, form, .. }) => {
                    *form = has_form;
                    if at != first {
                        [email, phone, address].into_iter().for_each(String::clear);
                    }
                }
                (None, _) => {}
            }
        }
    }

    /// A section about which nothing is known: a way to ask, or one sentence that claims nothing.
    pub fn neutral(&mut self, topic: Topic, heading: &str) -> Content {
        if let Some((_, link)) =
            self.pages.iter().find(|(of, link)| (*of == topic && topic != Topic::Other) || link.label == heading)
        {
            return Content::Action { text: String::new(), actions: vec![link.clone()] };
        }
        let ask = Link { label: self.words.write_us.to_owned(), to: self.contact.clone() };
        if topic == Topic::Action {
            // Where nobody can be written to, the page's first list is what remains to be seen.
            let actions = if self.contact.is_empty() { Vec::new() } else { vec![ask] };
            return Content::Action { text: String::new(), actions };
        }
        if self.english {
            return Content::Text { paragraphs: vec![line(topic, heading, &self.name, !self.contact.is_empty())] };
        }
        match (std::mem::replace(&mut self.said_neutral, true), self.contact.is_empty()) {
            (false, false) => Content::Text { paragraphs: vec![self.words.ask_more.to_owned()] },
            (false, true) => Content::Text { paragraphs: vec![self.words.to_come.to_owned()] },
            (true, false) => Content::Action { text: String::new(), actions: vec![ask] },
            (true, true) => Content::Text { paragraphs: Vec::new() },
        }
    }
}

/// The English sentence for a section about which nothing is known.
pub fn line(topic: Topic, heading: &str, site: &str, reached: bool) -> String {
    let named = heading.chars().skip(1).take(1).all(char::is_lowercase);
    let first = |change: fn(char) -> String| {
        heading.chars().take(1).map(change).chain([heading.chars().skip(1).collect()]).collect::<String>()
    };
    let lower = if named { first(|c| c.to_lowercase().collect()) } else { heading.to_owned() };
    match topic {
        Topic::Quotes => "Words from customers will stand here.".to_owned(),
        Topic::Programme => "Dates will be announced here.".to_owned(),
        Topic::Hours => "Please ask for the current hours.".to_owned(),
        Topic::Prices => "Please ask for current prices.".to_owned(),
        Topic::Questions if reached => "If you have a question, please write to us.".to_owned(),
        Topic::Questions => "Answers to common questions will stand here.".to_owned(),
        Topic::Contact => "Ways to reach us will stand here.".to_owned(),
        Topic::About if heading == "About" || heading.to_lowercase().ends_with(" us") => {
            format!("More about {} will follow here.", site)
        }
        _ if topic == Topic::Offer
            && heading.ends_with('s')
            && !heading.ends_with("ss")
            && !lower.starts_with("our ") =>
        {
            format!("{heading} will be shown here.")
        }
        _ => format!("More about {lower} will follow here."),
    }
}

fn content_of(list: Listed, topic: Topic, intro: String) -> (Option<String>, Content) {
    let heading = (!list.heading.is_empty()).then_some(list.heading);
    let items = list.items;
    let steps = topic == Topic::Steps || list.topic == Topic::Steps;
    (heading, if steps { Content::Steps { intro, items } } else { Content::List { intro, items } })
}

/// Sentences of one line as one paragraph.
fn paragraphs(told: &[Told]) -> Vec<String> {
    let mut paragraphs: Vec<(usize, String)> = Vec::new();
    for told in told {
        match paragraphs.last_mut() {
            Some((line, paragraph))
                if *line == told.line && paragraph.chars().count() + told.text.chars().count() < PARAGRAPH =>
            {
                *paragraph = joined(paragraph, &told.text);
            }
            _ => paragraphs.push((told.line, told.text.clone())),
        }
    }
    paragraphs.into_iter().map(|(_, paragraph)| paragraph).collect()
}
