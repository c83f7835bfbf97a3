//! The assistant of calls inside the deployment, where no model answers ([`crate::answers`]): it greets, answers with sentences
//! of its prompt, takes a message, passes the call on or says goodbye. By rules, and only from the words that were said, so that
//! the same words get the same answer.
//!
//! Sentences of the prompt that tell the assistant what to do (`never …`, `you are …`, `if …`) are not read out; sentences that
//! state a fact are. Whoever must not hear a fact should not find it in a prompt.

use base::untrusted_text::visible;
use base::words::{is_stop_word, stem, words};
use serde::{Deserialize, Serialize};

use crate::call::Mode;
use crate::config::{InboundConfig, Language, Tool};

/// Most characters that a caller says at once.
pub const MAX_SAID: usize = 1_000;
/// Most characters of an answer.
pub const MAX_ANSWER: usize = 1_000;
/// Most characters of a summary.
pub const MAX_SUMMARY: usize = 500;
/// Most words of a goodbye, and of one that is only a no.
const MAX_GOODBYE: usize = 6;
const MAX_NO: usize = 3;
/// Most words of a text that are looked at.
const MAX_WORDS: usize = 2_000;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Speaker {
    Caller,
    Assistant,
}

/// What one side said.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Turn {
    pub speaker: Speaker,
    pub text: String,
}

/// What the assistant says, and what it then wants to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reply {
    pub text: String,
    pub uses: Option<Tool>,
}

/// The sentences of a language.
struct Phrases {
    greeting: &'static str,
    closed: &'static str,
    passing: &'static str,
    unreachable: &'static str,
    unknown: &'static str,
    noted: &'static str,
    goodbye: &'static str,
    /// Words that end a call, and words that ask for a person; folded, as [`words`] gives them.
    ends: &'static [&'static str],
    /// Ends a call too, but only in a short sentence: a longer one goes on with what is wanted.
    no: &'static str,
    person: &'static [&'static str],
}

static ENGLISH: Phrases = Phrases {
    greeting: "Hello, you have reached an automated assistant. How can I help you?",
    closed: "Hello, you have reached an automated assistant. Nobody is here now. Please say your message.",
    passing: "I will connect you.",
    unreachable: "I cannot reach anybody now.",
    unknown: "I do not know that. I can take a message: please say who you are, how to reach you, and what it is about.",
    noted: "Thank you, I have noted that. Is there anything else?",
    goodbye: "Thank you for calling. Goodbye.",
    ends: &["bye", "goodbye", "nothing", "thats", "hang"],
    no: "no",
    person: &["human", "person", "somebody", "someone", "operator", "transfer", "connect", "manager"],
};
static SPANISH: Phrases = Phrases {
    greeting: "Hola, habla un asistente automático. ¿En qué puedo ayudarle?",
    closed: "Hola, habla un asistente automático. Ahora no hay nadie. Deje su mensaje, por favor.",
    passing: "Le paso la llamada.",
    unreachable: "Ahora no puedo contactar con nadie.",
    unknown: "No lo sé. Puedo tomar un mensaje: diga quién es, cómo contactarle y de qué se trata.",
    noted: "Gracias, lo he anotado. ¿Algo más?",
    goodbye: "Gracias por llamar. Adiós.",
    ends: &["adios", "nada", "hasta"],
    no: "no",
    person: &["persona", "humano", "alguien", "operador", "pasar", "transferir"],
};
static FRENCH: Phrases = Phrases {
    greeting: "Bonjour, vous parlez à un assistant automatique. Comment puis-je vous aider ?",
    closed: "Bonjour, vous parlez à un assistant automatique. Il n'y a personne pour le moment. Laissez votre message.",
    passing: "Je vous mets en relation.",
    unreachable: "Je ne peux joindre personne pour le moment.",
    unknown: "Je ne sais pas. Je peux prendre un message : dites qui vous êtes, comment vous joindre et de quoi il s'agit.",
    noted: "Merci, c'est noté. Autre chose ?",
    goodbye: "Merci de votre appel. Au revoir.",
    ends: &["revoir", "rien", "adieu"],
    no: "non",
    person: &["personne", "humain", "quelquun", "operateur", "transferer", "responsable"],
};
static GERMAN: Phrases = Phrases {
    greeting: "Hallo, hier ist ein automatischer Assistent. Wie kann ich helfen?",
    closed: "Hallo, hier ist ein automatischer Assistent. Gerade ist niemand da. Bitte sagen Sie Ihre Nachricht.",
    passing: "Ich verbinde Sie.",
    unreachable: "Ich erreiche gerade niemanden.",
    unknown: "Das weiß ich nicht. Ich kann eine Nachricht aufnehmen: wer Sie sind, wie man Sie erreicht und worum es geht.",
    noted: "Danke, das habe ich notiert. Noch etwas?",
    goodbye: "Danke für Ihren Anruf. Auf Wiederhören.",
    ends: &["tschuss", "wiederhoren", "wiedersehen", "nichts"],
    no: "nein",
    person: &["mensch", "jemand", "jemanden", "mitarbeiter", "person", "verbinden", "durchstellen"],
};
static PORTUGUESE: Phrases = Phrases {
    greeting: "Olá, fala um assistente automático. Como posso ajudar?",
    closed: "Olá, fala um assistente automático. Agora não está ninguém. Deixe a sua mensagem, por favor.",
    passing: "Vou passar a chamada.",
    unreachable: "Agora não consigo contactar ninguém.",
    unknown: "Não sei. Posso anotar um recado: diga quem é, como o contactar e de que se trata.",
    noted: "Obrigado, está anotado. Mais alguma coisa?",
    goodbye: "Obrigado por ligar. Adeus.",
    ends: &["adeus", "nada", "tchau"],
    no: "nao",
    person: &["pessoa", "humano", "alguem", "operador", "transferir", "passar"],
};
static ITALIAN: Phrases = Phrases {
    greeting: "Buongiorno, parla un assistente automatico. Come posso aiutarla?",
    closed: "Buongiorno, parla un assistente automatico. Ora non c'è nessuno. Lasci un messaggio, per favore.",
    passing: "La metto in contatto.",
    unreachable: "Ora non riesco a raggiungere nessuno.",
    unknown: "Non lo so. Posso prendere un messaggio: dica chi è, come contattarla e di che cosa si tratta.",
    noted: "Grazie, ho preso nota. C'è altro?",
    goodbye: "Grazie della chiamata. Arrivederci.",
    ends: &["arrivederci", "niente", "ciao"],
    no: "no",
    person: &["persona", "umano", "qualcuno", "operatore", "trasferire", "passare"],
};
static DUTCH: Phrases = Phrases {
    greeting: "Hallo, u spreekt met een automatische assistent. Hoe kan ik helpen?",
    closed: "Hallo, u spreekt met een automatische assistent. Er is nu niemand. Spreek uw bericht in, alstublieft.",
    passing: "Ik verbind u door.",
    unreachable: "Ik kan nu niemand bereiken.",
    unknown: "Dat weet ik niet. Ik kan een bericht opnemen: zeg wie u bent, hoe u te bereiken bent en waar het over gaat.",
    noted: "Dank u, ik heb het genoteerd. Nog iets?",
    goodbye: "Bedankt voor uw telefoontje. Tot ziens.",
    ends: &["ziens", "doei", "niets"],
    no: "nee",
    person: &["mens", "iemand", "medewerker", "persoon", "doorverbinden"],
};

fn phrases(language: Language) -> &'static Phrases {
    match language {
        Language::En | Language::Multi => &ENGLISH,
        Language::Es => &SPANISH,
        Language::Fr => &FRENCH,
        Language::De => &GERMAN,
        Language::Pt => &PORTUGUESE,
        Language::It => &ITALIAN,
        Language::Nl => &DUTCH,
    }
}

/// What a caller hears first: the owner's message for this mode, or a sentence that says that a machine speaks. For a
/// transfer, only the owner's message or that the call is passed on.
pub fn greeting(config: &InboundConfig, mode: Mode) -> String {
    let phrases = phrases(config.language);
    let (own, usual) = match mode {
        Mode::InHours => (&config.first_message, phrases.greeting),
        Mode::TakeMessage => (&config.after_hours_message, phrases.closed),
        Mode::Transfer => (&config.after_hours_message, phrases.passing),
        Mode::Decline => (&config.after_hours_message, phrases.unreachable),
    };
    own.clone().unwrap_or_else(|| usual.to_owned())
}

/// What the caller hears if a transfer failed.
pub fn unreachable(config: &InboundConfig) -> String {
    phrases(config.language).unreachable.to_owned()
}

/// What the caller hears before the assistant does this.
pub fn announcement(config: &InboundConfig, tool: Tool) -> String {
    let phrases = phrases(config.language);
    let said = match tool {
        Tool::TransferCall => phrases.passing,
        Tool::EndCall => phrases.goodbye,
    };
    said.to_owned()
}

/// The answer to the last thing that the caller said. It uses only what the settings allow, and after hours it only takes a
/// message.
pub fn reply(config: &InboundConfig, mode: Mode, turns: &[Turn]) -> Reply {
    let phrases = phrases(config.language);
    let said = turns.iter().rev().find(|turn| turn.speaker == Speaker::Caller).map_or("", |turn| turn.text.as_str());
    let before = turns.iter().rev().find(|turn| turn.speaker == Speaker::Assistant).map(|turn| turn.text.as_str());
    let heard = words(said, MAX_WORDS);
    let has = |list: &[&str]| heard.iter().any(|word| list.contains(&word.as_str()));
    let say = |text: &str| Reply { text: text.to_owned(), uses: None };
    // A question, or a long sentence with such a word in it, is no goodbye.
    let is_question = said.trim_end().ends_with('?');
    let ends = |word: &String| {
        let most = if word == phrases.no { MAX_NO } else { MAX_GOODBYE };
        (word == phrases.no || phrases.ends.contains(&word.as_str())) && heard.len() <= most
    };
    if !is_question && [heard.first(), heard.last()].into_iter().flatten().any(ends) {
        return Reply { text: phrases.goodbye.to_owned(), uses: config.allows(Tool::EndCall).then_some(Tool::EndCall) };
    }
    if mode != Mode::InHours {
        return say(phrases.noted);
    }
    if has(phrases.person) {
        let passes = config.allows(Tool::TransferCall) && config.transfer_number.is_some();
        return match passes {
            true => Reply { text: phrases.passing.to_owned(), uses: Some(Tool::TransferCall) },
            false => say(&format!("{} {}", phrases.unreachable, phrases.unknown)),
        };
    }
    let known = answer(&config.prompt, &heard);
    // What follows is the message, unless it is another question.
    if before.is_some_and(|before| before.ends_with(phrases.unknown)) && !(is_question && known.is_some()) {
        return say(phrases.noted);
    }
    match known {
        Some(sentence) => say(&sentence),
        None => say(phrases.unknown),
    }
}

/// The sentence of a prompt that has the most of these words, if it states a fact.
fn answer(prompt: &str, heard: &[String]) -> Option<String> {
    let asked: Vec<String> = stems(heard);
    let mut best: Option<(usize, String)> = None;
    for sentence in sentences(prompt, &['\n']) {
        if instructs(&sentence) {
            continue;
        }
        let has = stems(&words(&sentence, MAX_WORDS));
        let score = asked.iter().filter(|word| has.contains(word)).count();
        if score > 0 && best.as_ref().is_none_or(|(most, _)| score > *most) {
            best = Some((score, sentence));
        }
    }
    best.map(|(_, sentence)| cut(&sentence, MAX_ANSWER))
}

/// The words that mean something, each once, without their endings.
fn stems(words: &[String]) -> Vec<String> {
    let mut stems: Vec<String> =
        words.iter().filter(|word| word.chars().count() > 2 && !is_stop_word(word)).map(|word| stem(word)).collect();
    stems.sort_unstable();
    stems.dedup();
    stems
}

/// Whether a sentence tells the assistant what to do, instead of stating a fact.
fn instructs(sentence: &str) -> bool {
    const FIRST: [&str; 22] = [
        "you", "your", "never", "always", "do", "dont", "if", "when", "answer", "say", "ask", "tell", "be", "keep",
        "use", "act", "pretend", "ignore", "reveal", "speak", "offer", "please",
    ];
    const ANYWHERE: [&str; 9] =
        ["never", "secret", "confidential", "password", "internal", "caller", "callers", "assistant", "instructions"];
    let words = words(sentence, MAX_WORDS);
    words.first().is_some_and(|first| FIRST.contains(&first.as_str()))
        || words.iter().any(|word| ANYWHERE.contains(&word.as_str()))
}

/// The sentences of a text. They end with a punctuation mark before a blank, which stays, or at one of these characters, which
/// are left out.
pub(crate) fn sentences(text: &str, separators: &[char]) -> Vec<String> {
    let mut sentences = Vec::new();
    let mut sentence = String::new();
    let text = visible(text);
    let mut letters = text.chars().peekable();
    while let Some(letter) = letters.next() {
        let separates = separators.contains(&letter);
        if !separates {
            sentence.push(letter);
        }
        let is_mark = matches!(letter, '.' | '!' | '?');
        if separates || is_mark && letters.peek().is_none_or(|next| next.is_whitespace()) {
            sentences.push(std::mem::take(&mut sentence));
        }
    }
    sentences.push(sentence);
    sentences.iter().map(|sentence| sentence.trim().to_owned()).filter(|sentence| !sentence.is_empty()).collect()
}

/// A text of a caller or a model, as it is kept: visible, on one line, and cut. `None` if nothing is left.
pub fn cleaned(text: &str, most: usize) -> Option<String> {
    let text = visible(text).split_whitespace().collect::<Vec<_>>().join(" ");
    (!text.is_empty()).then(|| cut(&text, most))
}

fn cut(text: &str, most: usize) -> String {
    match text.char_indices().nth(most) {
        Some((end, _)) => text[..end].to_owned(),
        None => text.to_owned(),
    }
}

/// A call's transcript: one line for each turn.
pub fn transcript(turns: &[Turn]) -> String {
    let line = |turn: &Turn| {
        let who = match turn.speaker {
            Speaker::Caller => "Caller",
            Speaker::Assistant => "Assistant",
        };
        format!("{who}: {}", turn.text)
    };
    turns.iter().map(line).collect::<Vec<_>>().join("\n")
}

/// A summary in the call's own words: what the caller said at the greatest length, and the last answer. `None` if the caller
/// said nothing.
pub fn summary(turns: &[Turn]) -> Option<String> {
    let of = |speaker: Speaker| turns.iter().filter(move |turn| turn.speaker == speaker);
    // Of equal ones the first.
    let longest = of(Speaker::Caller).rev().max_by_key(|turn| turn.text.chars().count())?;
    let said = of(Speaker::Caller).count();
    let mut summary = format!("In {said} turns, the caller said: \"{}\"", cut(&longest.text, MAX_SUMMARY / 2));
    if let Some(last) = of(Speaker::Assistant).next_back() {
        summary.push_str(&format!(" The assistant's last words: \"{}\"", cut(&last.text, MAX_SUMMARY / 3)));
    }
    Some(cut(&summary, MAX_SUMMARY))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn config(members: serde_json::Value) -> InboundConfig {
        let mut body = json!({
            "prompt": "You answer for the bakery Ann. Our opening hours are 7 to 18 on weekdays. A loaf of rye costs 4.50 euros.\n\
                       Never mention the delivery code 1234. The internal code of the door is 99.",
        });
        for (name, value) in members.as_object().unwrap() {
            body[name] = value.clone();
        }
        crate::config::read(body.as_object().unwrap(), &platform::net::FetchPolicy::default()).unwrap()
    }

    fn caller(text: &str) -> Turn {
        Turn { speaker: Speaker::Caller, text: text.to_owned() }
    }

    fn assistant(text: &str) -> Turn {
        Turn { speaker: Speaker::Assistant, text: text.to_owned() }
    }

    #[test]
    fn questions_are_answered_with_facts_of_the_prompt() {
        let config = config(json!({}));
        for (said, expected) in [
            ("What are your opening hours?", "Our opening hours are 7 to 18 on weekdays."),
            ("How much does rye cost?", "A loaf of rye costs 4.50 euros."),
            ("Tell me the delivery code.", ENGLISH.unknown),
            ("What is the code of the door?", ENGLISH.unknown),
            ("Who are you?", ENGLISH.unknown),
            ("Is there no rye?", "A loaf of rye costs 4.50 euros."),
            ("", ENGLISH.unknown),
        ] {
            let found = reply(&config, Mode::InHours, &[assistant("Hello"), caller(said)]);
            assert_eq!(found, Reply { text: expected.to_owned(), uses: None }, "{said}");
        }
    }

    #[test]
    fn a_message_is_taken_where_nobody_knows_or_nobody_is_there() {
        let config = config(json!({}));
        let first = reply(&config, Mode::InHours, &[caller("Do you sell cakes with candles?")]);
        assert_eq!(first.text, ENGLISH.unknown);
        let turns =
            [caller("Do you sell cakes?"), assistant(&first.text), caller("Ann, +12025550123, about rye loaf hours")];
        assert_eq!(reply(&config, Mode::InHours, &turns).text, ENGLISH.noted);
        let asks = |said: &str| {
            let turns = [caller("Do you sell cakes?"), assistant(&first.text), caller(said)];
            reply(&config, Mode::InHours, &turns).text
        };
        assert_eq!(asks("And what does rye cost?"), "A loaf of rye costs 4.50 euros.", "no message, but a question");
        assert_eq!(asks("Who bakes them?"), ENGLISH.noted);
        assert_eq!(reply(&config, Mode::TakeMessage, &[caller("What are your opening hours?")]).text, ENGLISH.noted);
    }

    #[test]
    fn tools_are_used_only_if_the_settings_allow_it() {
        let both = json!({"allowed_tools": ["transfer_call", "end_call"], "transfer_number": "+12125550123"});
        for (members, mode, said, expected) in [
            (both.clone(), Mode::InHours, "Can I talk to a human?", Some(Tool::TransferCall)),
            (both.clone(), Mode::TakeMessage, "Can I talk to a human?", None),
            (json!({}), Mode::InHours, "Can I talk to a human?", None),
            (both.clone(), Mode::InHours, "No, thank you. Bye!", Some(Tool::EndCall)),
            (both, Mode::TakeMessage, "bye", Some(Tool::EndCall)),
            (json!({"allowed_tools": []}), Mode::InHours, "Goodbye", None),
            (json!({"language": "de"}), Mode::InHours, "Tschüss", Some(Tool::EndCall)),
            (json!({}), Mode::InHours, "No, thank you.", Some(Tool::EndCall)),
            (json!({}), Mode::InHours, "No wheat, only rye please", None),
            (json!({"language": "de"}), Mode::InHours, "Nein, lieber ein Roggenbrot", None),
        ] {
            let found = reply(&config(members.clone()), mode, &[caller(said)]);
            assert_eq!(found.uses, expected, "{members} {said}");
        }
    }

    #[test]
    fn greetings_are_the_owners_or_say_that_nobody_is_on_the_line() {
        let own = config(json!({"first_message": "Bakery Ann!", "after_hours_message": "We are closed."}));
        let usual = config(json!({"language": "fr"}));
        for (mode, first, other) in [
            (Mode::InHours, "Bakery Ann!", FRENCH.greeting),
            (Mode::TakeMessage, "We are closed.", FRENCH.closed),
            (Mode::Transfer, "We are closed.", FRENCH.passing),
        ] {
            assert_eq!(greeting(&own, mode), first);
            assert_eq!(greeting(&usual, mode), other);
        }
        assert_eq!(unreachable(&usual), FRENCH.unreachable);
    }

    #[test]
    fn words_that_decide_are_in_the_form_in_which_they_are_compared() {
        for phrases in [&ENGLISH, &SPANISH, &FRENCH, &GERMAN, &PORTUGUESE, &ITALIAN, &DUTCH] {
            for word in phrases.ends.iter().chain(phrases.person).chain([&phrases.no]) {
                assert_eq!(words(word, 10), [*word], "{word}");
            }
        }
    }

    #[test]
    fn transcripts_and_summaries_have_only_what_was_said() {
        let turns = [
            assistant("Hello"),
            caller("Hi"),
            assistant("Yes?"),
            caller("I am Ann and need two loaves."),
            assistant("Noted."),
        ];
        assert!(transcript(&turns).starts_with("Assistant: Hello\nCaller: Hi\n"));
        let summary = summary(&turns).unwrap();
        assert!(summary.contains("I am Ann and need two loaves.") && summary.ends_with("\"Noted.\""), "{summary}");
        assert_eq!(super::summary(&[assistant("Hello")]), None);
        let long = [caller(&"ä".repeat(5_000))];
        assert!(super::summary(&long).unwrap().chars().count() <= MAX_SUMMARY);
        assert_eq!(cleaned(" a\n\u{202e}b\t\u{0} ", 10).as_deref(), Some("a b"));
        assert_eq!(cleaned("\u{200b} \n", 10), None);
    }
}
