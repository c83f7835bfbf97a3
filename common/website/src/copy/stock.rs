//! What a brief and its source tell, sorted: sections are made of it, and each text is used once.

mod parts;

use std::collections::HashSet;

use parts::{enumeration, item, labelled, numbered, numbers, offered, reported};

use super::orders::{is_order, told_before};
use super::sentences::{self, Line};
use super::topics::{self, Topic};
use super::{contact, money, quoted, text, times};
use crate::brief::Brief;
use crate::plan::{Fact, Item, Offer, Quoted};

/// A sentence that reads as copy.
#[derive(Clone, Debug)]
pub struct Told {
    pub text: String,
    /// Of the text and of the heading above it.
    pub stems: Vec<String>,
    pub topic: Topic,
    /// Sentences of one line make one paragraph.
    pub line: usize,
}

#[derive(Clone, Debug)]
pub struct Listed {
    pub heading: String,
    pub topic: Topic,
    pub items: Vec<Item>,
}

#[derive(Clone, Debug, Default)]
pub struct Stock {
    pub told: Vec<Told>,
    pub lists: Vec<Listed>,
    pub offers: Vec<Offer>,
    pub hours: Vec<Fact>,
    pub programme: Vec<Fact>,
    pub quotes: Vec<Quoted>,
    pub questions: Vec<Item>,
    pub numbers: Vec<Fact>,
    pub email: String,
    pub phone: String,
    pub address: String,
    pub orders: Vec<String>,
    /// The line of the first list: what stands below it opens no site.
    pub first_list: Option<usize>,
}

/// Longest text of a source that is read, in characters.
const SOURCE_CHARS: usize = 20_000;
const MOST: usize = 40;

/// Sorts what the brief and its source say.
pub fn gather(brief: &Brief) -> Stock {
    let mut reader = Reader::default();
    reader.read(&brief.description, true);
    if let Some(pricing) = &brief.pricing {
        reader.heading = "Prices".to_owned();
        reader.topic = Topic::Prices;
        reader.read(pricing, true);
    }
    reader.close_list();
    if let Some(source) = &brief.source {
        let source: String = source.chars().take(SOURCE_CHARS).collect();
        reader.heading.clear();
        reader.topic = Topic::Other;
        reader.read(&source, false);
    }
    reader.finish()
}

/// The same for a page's purpose.
pub fn gather_text(text: &str) -> Stock {
    let mut reader = Reader::default();
    reader.read(text, true);
    reader.finish()
}

#[derive(Default)]
struct Reader {
    stock: Stock,
    seen: HashSet<String>,
    heading: String,
    topic: Topic,
    /// Points since the last heading, and the sentences they were.
    open: Vec<Item>,
    pairs: bool,
    line: usize,
    /// A question whose answer may be the next line.
    asked: Option<String>,
    marked_questions: bool,
    /// The sentences that priced things, dates and questions came from: one alone makes no list.
    priced: Vec<(String, Topic)>,
    dated: Vec<(String, Topic)>,
    questioned: Vec<(String, Topic)>,
}

impl Reader {
    fn read(&mut self, text: &str, orders_count: bool) {
        for line in sentences::lines(text) {
            self.line += 1;
            match line {
                Line::Heading(heading) => {
                    self.close_list();
                    self.asked = None;
                    let ordered = is_order(&heading) || heading.split(' ').count() > 8;
                    self.topic = if ordered { Topic::Other } else { topics::of(&heading) };
                    self.heading = if ordered { String::new() } else { heading };
                }
                Line::Point(point) => self.point(&point, orders_count),
                Line::Sentences(sentences) => self.sentences(sentences, orders_count),
            }
        }
    }

    fn point(&mut self, point: &str, orders_count: bool) {
        if is_order(point) {
            if orders_count {
                self.stock.orders.push(point.to_owned());
            }
            return;
        }
        self.reach(point);
        if self.is_reach(point) {
            return;
        }
        if self.fact(point) {
            return;
        }
        self.stock.first_list.get_or_insert(self.line);
        self.open.push(item(point));
    }

    fn sentences(&mut self, sentences: Vec<String>, orders_count: bool) {
        let line = sentences.join(" ");
        if let Some(question) = quoted::marked(&line, &["q", "question", "frage", "f"]) {
            self.asked = Some(question.to_owned());
            if let Some((question, answer)) = question.split_once(" A: ") {
                self.answer(question, answer);
                self.asked = None;
            }
            self.marked_questions = true;
            return;
        }
        if let Some(answer) = quoted::marked(&line, &["a", "answer", "antwort", "réponse", "r"])
            && let Some(question) = self.asked.take()
        {
            self.answer(&question, answer);
            return;
        }
        let quotes = if is_order(&line) { Vec::new() } else { quoted::quotes(&line) };
        if !quotes.is_empty() {
            self.close_list();
            self.stock.quotes.extend(quotes);
            return;
        }
        let mut rest = sentences.into_iter().peekable();
        while let Some(sentence) = rest.next() {
            let question = sentence.ends_with(['?', '？']) && !is_order(&sentence);
            if question {
                let answer = rest.next_if(|next| !next.ends_with(['?', '？']) && !is_order(next));
                match answer {
                    Some(answer) => self.answer(&sentence, &answer),
                    None => self.asked = Some(sentence),
                }
                continue;
            }
            if let Some(question) = self.asked.take() {
                if is_order(&sentence) {
                    self.tell(&question);
                } else {
                    self.answer(&question, &sentence);
                    continue;
                }
            }
            // Of a page, only whole sentences: no labels of its navigation.
            let whole = sentence.ends_with(['.', '!', '。', '！'])
                && (sentence.split(' ').count() >= 4 || sentence.chars().any(|c| c >= '\u{2e80}'));
            if !orders_count && !whole && contact::email(&sentence).or_else(|| contact::phone(&sentence)).is_none() {
                continue;
            }
            self.sentence(&sentence, orders_count);
        }
    }

    fn answer(&mut self, question: &str, answer: &str) {
        self.questioned.push((format!("{question} {answer}"), self.topic));
        self.stock.questions.push(Item {
            title: text::bounded(question, 200),
            text: text::bounded(answer, 600),
            note: String::new(),
        });
    }

    fn sentence(&mut self, sentence: &str, orders_count: bool) {
        let reported = reported(sentence);
        let sentence = reported.as_deref().unwrap_or(sentence);
        if orders_count || !is_order(sentence) {
            self.reach(sentence);
        }
        if is_order(sentence) {
            if orders_count {
                self.stock.orders.push(sentence.to_owned());
                if let Some(told) = told_before(sentence) {
                    self.tell(&told);
                }
            }
            return;
        }
        if self.is_reach(sentence) {
            return;
        }
        if self.fact(sentence) {
            return;
        }
        if let Some((label, rest)) = labelled(sentence) {
            let topic = topics::of(label);
            if let Some(items) = numbered(rest).or_else(|| enumeration(rest, 2)) {
                self.close_list();
                self.stock.lists.push(Listed { heading: topics::heading(label), topic, items });
                return;
            }
            if topic == Topic::Other {
                self.stock.first_list.get_or_insert(self.line);
                self.pairs |= self.open.is_empty();
                self.open.push(Item { title: text::capital(label), text: text::capital(rest), note: String::new() });
                return;
            }
            let (heading, outer) = (std::mem::replace(&mut self.heading, label.to_owned()), self.topic);
            self.topic = topic;
            self.tell(&text::capital(rest));
            self.heading = heading;
            self.topic = outer;
            return;
        }
        if let Some(items) = offered(sentence) {
            self.close_list();
            self.stock.lists.push(Listed { heading: String::new(), topic: Topic::Offer, items });
            return;
        }
        self.tell(sentence);
    }

    /// Takes how to reach the owner.
    fn reach(&mut self, sentence: &str) {
        let stock = &mut self.stock;
        if stock.email.is_empty() {
            stock.email = contact::email(sentence).unwrap_or_default();
        }
        if stock.phone.is_empty() {
            stock.phone = contact::phone(sentence).unwrap_or_default();
        }
        if stock.address.is_empty() && !is_order(sentence) {
            stock.address = contact::address(sentence).unwrap_or_default();
        }
    }

    /// Whether a sentence only tells how to reach the owner.
    fn is_reach(&self, sentence: &str) -> bool {
        let known = [self.stock.email.as_str(), &self.stock.phone, &self.stock.address];
        let any = known.iter().any(|known| !known.is_empty() && sentence.contains(known));
        any && contact::is_only_contact(sentence, &known)
    }

    /// Takes a sentence or a point as hours, a programme, prices or numbers.
    fn fact(&mut self, sentence: &str) -> bool {
        let (label, rest) =
            labelled(sentence).map_or((Topic::Other, sentence), |(label, rest)| (topics::of(label), rest));
        let hours = if label == Topic::Hours { rest } else { sentence };
        if times::are_hours(sentence) || label == Topic::Hours {
            match times::hours(hours) {
                Some(rows) => self.stock.hours.extend(rows),
                None => self.tell_of(&text::capital(hours), Topic::Hours),
            }
            return true;
        }
        let dated = if label == Topic::Programme { rest } else { sentence };
        if let Some(rows) = times::programme(dated) {
            self.dated.push((sentence.to_owned(), self.topic));
            self.stock.programme.extend(rows);
            return true;
        }
        let priced = if matches!(label, Topic::Prices | Topic::Dishes) { rest } else { sentence };
        if let Some(mut offers) =
            money::offers(priced).filter(|_| money::has_amount(priced) || self.topic == Topic::Prices)
        {
            self.priced.push((sentence.to_owned(), Topic::Prices));
            self.stock.offers.append(&mut offers);
            return true;
        }
        if let Some(mut numbers) = numbers(sentence) {
            self.stock.numbers.append(&mut numbers);
            return true;
        }
        false
    }

    fn tell(&mut self, sentence: &str) {
        let topic = match self.topic {
            _ if money::has_amount(sentence) => Topic::Prices,
            Topic::Other if times::tells_when(sentence) => Topic::Programme,
            topic => topic,
        };
        self.tell_of(sentence, topic);
    }

    fn tell_of(&mut self, sentence: &str, topic: Topic) {
        // One word for thousands of characters is no copy.
        let wordy = sentence.split(' ').all(|word| word.chars().count() <= 60 || word.chars().any(|c| c >= '\u{2e80}'));
        let says = sentence.chars().filter(|c| c.is_alphabetic()).count() >= 2;
        if !wordy || !says || self.stock.told.len() >= MOST || !self.seen.insert(sentence.to_lowercase()) {
            return;
        }
        let sentence = text::bounded(sentence, 600);
        let mut stems = text::stems(&sentence);
        stems.extend(text::stems(&self.heading));
        self.stock.told.push(Told { text: sentence, stems, topic, line: self.line });
    }

    /// Ends a list of points; one point alone is a sentence.
    fn close_list(&mut self) {
        let mut items = std::mem::take(&mut self.open);
        let pairs = std::mem::take(&mut self.pairs);
        match items.len() {
            0 => {}
            1 => {
                let item = items.remove(0);
                let joint = if pairs { ": " } else { " – " };
                let whole =
                    if item.text.is_empty() { item.title } else { format!("{}{joint}{}", item.title, item.text) };
                self.tell(&whole);
            }
            _ => {
                items.truncate(MOST);
                let heading = if self.heading.is_empty() { String::new() } else { topics::heading(&self.heading) };
                self.stock.lists.push(Listed { heading, topic: self.topic, items });
            }
        }
    }

    fn finish(mut self) -> Stock {
        self.close_list();
        if let Some(question) = self.asked.take() {
            self.tell(&question);
        }
        if self.stock.offers.len() == 1 {
            self.stock.offers.clear();
            self.put_back(|reader| std::mem::take(&mut reader.priced));
        }
        if self.stock.programme.len() == 1 {
            self.stock.programme.clear();
            self.put_back(|reader| std::mem::take(&mut reader.dated));
        }
        if self.stock.questions.len() == 1 && !self.marked_questions {
            self.stock.questions.clear();
            self.put_back(|reader| std::mem::take(&mut reader.questioned));
        }
        let stock = &mut self.stock;
        stock.offers.truncate(MOST);
        stock.programme.truncate(MOST);
        stock.hours.truncate(14);
        stock.questions.truncate(20);
        stock.quotes.truncate(12);
        stock.numbers.truncate(8);
        stock.lists.truncate(12);
        bound(stock);
        self.stock
    }

    fn put_back(&mut self, taken: impl Fn(&mut Reader) -> Vec<(String, Topic)>) {
        for (sentence, topic) in taken(self) {
            self.tell_of(&sentence, topic);
        }
    }
}

fn bound(stock: &mut Stock) {
    for item in stock.lists.iter_mut().flat_map(|list| &mut list.items) {
        if let Some((text, price)) = money::split_price(&item.text) {
            (item.text, item.note) = (text, price);
        }
        item.title = text::cut(&item.title, 120);
        item.text = text::bounded(&item.text, 400);
    }
    for offer in &mut stock.offers {
        offer.name = text::cut(&offer.name, 80);
        offer.price = text::cut(&offer.price, 40);
        offer.text = text::bounded(&offer.text, 300);
        offer.points.truncate(10);
        offer.points.iter_mut().for_each(|point| *point = text::cut(point, 120));
    }
    for row in stock.hours.iter_mut().chain(&mut stock.programme).chain(&mut stock.numbers) {
        row.label = text::cut(&row.label, 120);
        row.value = text::cut(&row.value, 200);
    }
    for quote in &mut stock.quotes {
        quote.text = text::bounded(&quote.text, 600);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stock(description: &str) -> Stock {
        gather(&Brief { description: description.to_owned(), ..Brief::default() })
    }

    #[test]
    fn facts_are_sorted() {
        let stock = stock(
            "A bakery in Lyon. Open Tuesday to Sunday, 7 to 19. Sourdough 4.50, croissant 1.30. We offer bread, cakes and coffee. \
             Call +33 4 78 00 11 22 or write to hi@levain.example. Please add a contact form. Mention that we bake at night.\n\
             120 seats, 14 beers on tap and 3 cooks.\n\
             “The best bread in town.” – Anna\n\
             Do you deliver? No, we do not.\n\
             Can I order? Yes, by phone.",
        );
        assert_eq!(stock.hours.len(), 1);
        assert_eq!(stock.offers.len(), 2);
        assert_eq!(stock.lists[0].items.len(), 3);
        assert_eq!(stock.phone, "+33 4 78 00 11 22");
        assert_eq!(stock.email, "hi@levain.example");
        assert_eq!(stock.orders, ["Please add a contact form."]);
        assert_eq!(stock.numbers.len(), 3);
        assert_eq!(stock.quotes.len(), 1);
        assert_eq!(stock.questions.len(), 2);
        let told: Vec<&str> = stock.told.iter().map(|told| told.text.as_str()).collect();
        assert_eq!(told, ["A bakery in Lyon.", "We bake at night."]);
    }

    #[test]
    fn one_alone_is_no_list() {
        let stock = stock("A class costs €45.\n- Bring an apron");
        assert!(stock.offers.is_empty() && stock.lists.is_empty());
        assert_eq!(stock.told.len(), 2);
    }
}
