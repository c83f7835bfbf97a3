//! The kind of answer a question wants (a number of some measure, a time, a place, a name, a reason), and whether a
//! sentence has one. Recognised by words and forms, in the supported languages.

use super::plan::Question;
use super::text::Sentence;
use super::words;

/// The kind of answer a question wants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wants {
    Anything,
    /// A number, in one of these measures unless the list is empty.
    Number(&'static [Measure]),
    Time,
    Place,
    Reason,
    Name,
    /// One side of a subject.
    Side(Side),
}

/// A side of a subject.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    History,
    Working,
    Figures,
    Risks,
}

/// A quantity that can be measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Measure {
    Length,
    Duration,
    Weight,
    Money,
    /// Area, volume or amount of data.
    Size,
    Power,
    Speed,
    Warmth,
    Share,
}

use Measure::{Duration, Length, Money, Power, Share, Size, Speed, Warmth, Weight};

/// Words after "how" (or "wie"), and names of quantities, with their measures.
const MEASURED: [(&str, &[Measure]); 14] = [
    ("high tall wide deep thick far height width depth thickness distance hoch breit tief dick weit", &[Length]),
    ("long length lang", &[Length, Duration]),
    ("old age alt duration", &[Duration]),
    ("heavy weight schwer", &[Weight]),
    ("large big size area volume gross", &[Size, Length, Power, Weight]),
    ("fast quick speed schnell", &[Speed]),
    ("hot cold warm temperature heiss kalt", &[Warmth]),
    ("expensive cost price fee fine salary teuer", &[Money]),
    ("percentage share", &[Share]),
    ("power", &[Power]),
    ("exact accurate close", &[]),
    ("often oft", &[]),
    ("many viele combien cuantos cuantas wieviel", &[]),
    ("much viel cuanto", &[]),
];

/// Units of each measure.
const UNITS: [(Measure, &str); 9] = [
    (
        Length,
        "m km cm mm metre meter kilometre kilometer centimetre centimeter millimetre millimeter mile foot feet ft inch yard",
    ),
    (
        Duration,
        "second minute hour day night week month year decade century min h sekunde minute stunde tag woche monat jahr",
    ),
    (Weight, "g kg mg gram gramme kilogram kilo tonne ton pound lb ounce gramm kilogramm"),
    (Money, "crown euro eur usd usdc dollar cent pound gbp chf franc yen penny pence krone million"),
    (
        Size,
        "byte kb mb gb tb kib mib gib pixel megapixel square hectare acre litre liter ml cubic gallon megabyte gigabyte",
    ),
    (Power, "watt kw mw kilowatt megawatt gigawatt kwh joule volt ampere horsepower lumen"),
    (Speed, "knot mph kmh"),
    (Warmth, "degree celsius fahrenheit kelvin grad"),
    (Share, "percent third quarter half fifth tenth prozent"),
];

/// Words that name a time.
const TIMES: &str = "january february march april may june july august september october november december monday tuesday \
    wednesday thursday friday saturday sunday spring summer autumn winter daily weekly morning afternoon evening night noon \
    midnight today tomorrow januar \
    februar marz mai juni juli oktober dezember montag dienstag mittwoch donnerstag freitag samstag sonntag";
const NUMBERS: &str = "two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen \
    eighteen nineteen twenty thirty forty fifty sixty seventy eighty ninety hundred thousand million billion dozen half \
    single zwei drei vier funf sechs sieben acht neun zehn elf zwolf hundert tausend deux trois quatre cinq dix cent mille dos \
    tres cuatro cinco diez cien mil";
/// Prepositions of place.
const PLACES: &str = "in at on near above below under behind beside inside within between off opposite am an auf bei neben uber \
    unter hinter im dans sur pres sous en sobre cerca";
const REASONS: &str = "because due owing reason cause caused causes therefore thus hence prevent avoid weil denn wegen deshalb \
    daher grund parce car raison porque debido razon";
const HISTORY: &str = "founded began begun origin former century histor introduc discover establish invent launch";
const WORKING: &str = "consist convert mechan principl process powered driven detect automat transform";
const RISKS: &str = "risk danger critic problem complain against delay fail failure concern fear warn wrong error damag refus reject \
    oppos hazard harm accident injur lawsuit";

/// The kind of answer wanted, and the question's words that express it. An answer need not repeat those words.
pub fn wanted(text: &str) -> (Wants, Vec<String>) {
    let words = words::words(text);
    let first = words.first().map_or("", String::as_str);
    let measure = |word: &str| {
        MEASURED.iter().find(|(asking, _)| asking.split(' ').any(|known| known == word)).map(|(_, measures)| *measures)
    };
    let says = |known: &[&str]| words.iter().find(|word| known.contains(&word.as_str())).cloned();
    let stems = |word: &str| words::terms(word);
    let how = words.iter().position(|word| matches!(word.as_str(), "how" | "wie"));
    if let Some(word) = how.and_then(|at| words.get(at + 1))
        && let Some(measures) = measure(word)
    {
        let costs =
            says(&["cost", "costs", "pay", "paid", "price", "kostet", "kosten"]).filter(|_| measures.is_empty());
        let measures: &[Measure] = if costs.is_some() { &[Money] } else { measures };
        return (Wants::Number(measures), [stems(word), costs.map(|word| stems(&word)).unwrap_or_default()].concat());
    }
    if ["combien", "cuanto", "cuantos", "cuantas", "wieviel"].contains(&first) {
        return (Wants::Number(&[]), Vec::new());
    }
    let asks_what = matches!(first, "what" | "was" | "which" | "que");
    if asks_what {
        let things = ["year", "date", "day", "month", "time"];
        if words
            .windows(2)
            .any(|pair| things.contains(&pair[1].as_str()) && matches!(pair[0].as_str(), "what" | "which"))
        {
            return (Wants::Time, Vec::new());
        }
        let money = ["cost", "costs", "price", "fee", "fine", "salary", "kostet"];
        if let Some(word) = says(&money) {
            return (Wants::Number(&[Money]), stems(&word));
        }
        let things =
            ["height", "length", "width", "depth", "weight", "temperature", "percentage", "distance", "speed", "age"];
        if let Some(word) = says(&things) {
            return (Wants::Number(measure(&word).unwrap_or_default()), stems(&word));
        }
        if says(&["number", "population"]).is_some() {
            return (Wants::Number(&[]), Vec::new());
        }
    }
    let since = words.windows(2).any(|pair| pair[0] == "since" && pair[1] == "when");
    let wants = match first {
        "when" | "wann" | "quand" | "cuando" => Wants::Time,
        _ if since => Wants::Time,
        "where" | "wo" | "ou" | "donde" => Wants::Place,
        "why" | "warum" | "pourquoi" => Wants::Reason,
        "who" | "wer" | "qui" | "quien" => Wants::Name,
        _ => Wants::Anything,
    };
    (wants, Vec::new())
}

impl Wants {
    /// Whether a sentence has the wanted kind of answer, apart from what the question itself says.
    pub fn met_by(self, sentence: &Sentence, question: &Question) -> bool {
        let text = sentence.text.as_str();
        match self {
            Wants::Anything => true,
            Wants::Number(_) => has_new_number(text, question) || says_one_of(text, NUMBERS),
            Wants::Time => has_time(text, question),
            Wants::Place => has_place(text),
            Wants::Reason => says_one_of(text, REASONS),
            Wants::Name => has_new_name(sentence, question),
            Wants::Side(Side::History) => has_year(text) || says_stem(text, HISTORY),
            Wants::Side(Side::Working) => says_stem(text, WORKING) || has_means(text),
            Wants::Side(Side::Figures) => UNITS.iter().any(|(measure, _)| has_unit(text, *measure)),
            Wants::Side(Side::Risks) => says_stem(text, RISKS),
        }
    }

    /// Whether a sentence under the right heading may answer without any word of the question itself.
    pub fn may_stand_alone(self) -> bool {
        !matches!(self, Wants::Anything | Wants::Side(Side::Working | Side::Risks))
    }

    /// Whether a text has a number in a wanted measure: "118 kg" is a weight without the word "weight".
    pub fn is_measured_in(self, text: &str) -> bool {
        match self {
            Wants::Number([]) => text.contains(|letter: char| letter.is_ascii_digit()) || says_one_of(text, NUMBERS),
            Wants::Number(measures) => measures.iter().any(|measure| has_unit(text, *measure)),
            _ => false,
        }
    }
}

/// Whether the text has a number with a unit of this measure, or its sign (€, %, °).
fn has_unit(text: &str, measure: Measure) -> bool {
    let signs: &[char] = match measure {
        Money => &['€', '$', '£', '¥'],
        Share => &['%'],
        Warmth => &['°'],
        _ => &[],
    };
    if text.contains(signs) {
        return true;
    }
    let units = UNITS.iter().find(|(known, _)| *known == measure).map_or("", |(_, units)| units);
    let words = words::words(text);
    let is_unit = |word: &String| {
        let single = word.strip_suffix('s').unwrap_or(word);
        units.split(' ').any(|unit| unit == word || unit == single)
    };
    let is_number = |word: &String| {
        word.starts_with(|letter: char| letter.is_ascii_digit()) || NUMBERS.split(' ').any(|number| number == word)
    };
    words.iter().enumerate().any(|(at, word)| {
        let joined = word.find(|letter: char| !letter.is_ascii_digit()).filter(|end| *end > 0);
        joined.is_some_and(|end| is_unit(&word[end..].to_owned()))
            || is_unit(word) && words[at.saturating_sub(3)..at].iter().any(is_number)
    })
}

fn has_new_number(text: &str, question: &Question) -> bool {
    let is_number = |word: &String| word.starts_with(|letter: char| letter.is_ascii_digit());
    words::words(text).iter().any(|word| is_number(word) && !question.terms.contains(word))
}

/// A year, a clock time, a month or another word of time that is not in the question.
fn has_time(text: &str, question: &Question) -> bool {
    let has_clock = text
        .as_bytes()
        .windows(3)
        .any(|three| three[0].is_ascii_digit() && matches!(three[1], b':' | b'h') && three[2].is_ascii_digit());
    let is_new = |word: &String| !words::terms(word).iter().any(|term| question.terms.contains(term));
    let new: Vec<String> = words::words(text).into_iter().filter(is_new).collect();
    let new = new.join(" ");
    has_clock || has_year(&new) || says_one_of(&new, TIMES) || has_unit(&new, Duration)
}

/// A preposition of place, not followed by a number.
fn has_place(text: &str) -> bool {
    let words = words::words(text);
    let is_before = |word: &str| PLACES.split_whitespace().any(|known| known == word);
    words.windows(2).any(|pair| is_before(&pair[0]) && !pair[1].starts_with(|letter: char| letter.is_ascii_digit()))
}

/// A means: `by a checksum`, but not `by Ada Stone`.
fn has_means(text: &str) -> bool {
    let follows = |word: &str| matches!(word, "a" | "an" | "the" | "means" | "using");
    words::words(text).windows(2).any(|pair| pair[0] == "by" && follows(&pair[1]))
}

/// A year from 1000 to 2099.
fn has_year(text: &str) -> bool {
    words::words(text)
        .iter()
        .any(|word| word.len() == 4 && word.parse::<u16>().is_ok_and(|year| (1000..2100).contains(&year)))
}

fn says_one_of(text: &str, known: &str) -> bool {
    words::words(text).iter().any(|word| {
        let single = word.strip_suffix('s').unwrap_or(word);
        known.split_whitespace().any(|known| known == word || known == single)
    })
}

/// Whether one of the words begins with one of these stems.
fn says_stem(text: &str, stems: &str) -> bool {
    let begins =
        |word: &String| stems.split_whitespace().any(|stem| word == stem || stem.len() > 3 && word.starts_with(stem));
    words::words(text).iter().any(begins)
}

/// Whether the sentence has a capitalised word that is neither in the question nor in its context. The first word counts
/// only if it is the only one.
fn has_new_name(sentence: &Sentence, question: &Question) -> bool {
    let said: Vec<&str> = sentence.text.split_whitespace().collect();
    let is_known =
        |term: &String| [&question.terms, &*sentence.under, &sentence.before].iter().any(|known| known.contains(term));
    let is_name = |word: &&str| {
        let word = super::plan::trimmed(word);
        word.starts_with(char::is_uppercase) && words::terms(word).iter().any(|term| !is_known(term))
    };
    said.iter().skip(1).any(is_name) || said.len() == 1 && said.first().is_some_and(is_name)
}

#[cfg(test)]
mod tests {
    use super::super::text;
    use super::*;

    #[test]
    fn answers_have_the_wanted_kind() {
        let met = |question: &str, text: &str| {
            let (question, read) = (Question::new(question), text::read(text, ""));
            question.wants.met_by(&read.sentences[0], &question)
        };
        assert!(met("When was the tower built?", "It was finished in 1862."));
        assert!(!met("When was the tower built?", "It was finished late."));
        assert!(!met("How many boats sailed in 1862?", "In 1862 boats sailed."));
        assert!(met("How many boats sailed in 1862?", "In 1862 twelve boats sailed."));
        assert!(met("Who built the tower?", "The tower was built by Ada Stone."));
        assert!(!met("Who built the Skerry tower?", "The Skerry tower was built by hand."));
        assert!(met("Why was the tower closed?", "It was closed because of the storm."));
        assert!(!met("Why was the tower closed?", "It was closed in 1902."));
        assert!(met("Where is the tower?", "It stands on a rock."));
    }

    #[test]
    fn measures_are_recognised_by_their_units() {
        let measured = |question: &str, text: &str| Question::new(question).wants.is_measured_in(text);
        for (question, text) in [
            ("How heavy is the bell?", "It weighs 118 kilograms."),
            ("How heavy is the bell?", "The bell has 118kg."),
            ("How long is the pier?", "It measures 2.5 km."),
            ("What does a ticket cost?", "Visitors pay €12 each."),
            ("How long does it take?", "Forty minutes."),
        ] {
            assert!(measured(question, text), "{question} {text}");
        }
        for (question, text) in [
            ("How heavy is the bell?", "It rings 12 times, and has a pound beside it."),
            ("What does a ticket cost?", "12 people had one."),
            ("How fast is the bell?", "It weighs 118 kilograms."),
        ] {
            assert!(!measured(question, text), "{question} {text}");
        }
    }
}
