//! The rule list: phrases that offer forbidden things.
//!
//! A rule is a sequence of word groups in one sentence with few words between them: *sells* and, within a few words,
//! *cocaine*. A rule does not apply if the sentence, or the line that opens its list, forbids it first ("never", "refuse"),
//! or if the sentence is about working against it ("malware analysis").

use std::collections::HashMap;
use std::sync::LazyLock;

/// One rule. Alternatives are lower-case and separated by `|`. A `*` at the end stands for any ending. A space joins
/// adjacent words.
struct Rule {
    category: &'static str,
    /// One alternative of each group must occur, in this order. In the first group, the first word has no `*`.
    groups: &'static [&'static str],
    /// Most words between two groups.
    gap: usize,
    /// A sentence with one of these is harmless.
    unless: &'static str,
}

const DO: &str = "make|makes|making|build|builds|building|create|creates|creating|write|writes|writing|\
        develop|develops|developing|produce|produces|construct|constructing|assemble|generate|\
        generates|generating|deploy|deploys|deploying|provide|provides|offer|offers|offering|\
        deliver|delivers|sell|sells|selling|buy|order|custom|synthesize|synthesise|synthesizing|\
        cook|cooking|recipe|recipes|instructions|tutorial|blueprint|blueprints|launch|launches|\
        launching|run|runs|running|send|sends|sending";
const TRADE: &str = "sell|sells|selling|buy|buying|order|ship|ships|shipping|deliver|delivers|delivering|\
        supply|supplies|supplying|import|smuggle|smuggling|offer|offers|offering|vendor of|source";
const DEFENCE: &str = "analy*|detect*|defen*|remov*|report*|research*|protect*|prevent*|scan*|awareness|training|\
        simulat*|mitigat*|signature*|remediat*|forensic*|recover*|history|historical|novel*|\
        fiction*|law|legal|laws|compliance|regulat*|news|journalis*";
const CARE: &str = "prevent*|support*|helpline*|hotline*|crisis|therap*|counsel*|safe*|cope|coping|recover*|\
        aware*|survivor*|education*|health|abuse|law|legal|research*|protect*|detect*|report*";
const DRUGS: &str = "cocaine|heroin|fentanyl|methamphetamine|crystal meth|crack cocaine|mdma|meth";
const TREATMENT: &str = "addict*|treat*|recover*|rehab*|detect*|polic*|law|laws|legal|research*|overdose*|\
        prevent*|history|historical|novel*|fiction*|news|journalis*|interaction*|test*";
const SEXUAL: &str = "sexual|sexually|sexualised|sexualized|porn|pornography|pornographic|nude|nudes|erotic|\
        erotica";
const MINORS: &str = "child|children|minor|minors|underage|preteen|preteens|toddler|toddlers|kids|schoolgirl|\
        schoolgirls|schoolboy|schoolboys|loli|lolis|shota";

const RULES: &[Rule] = &[
    Rule { category: "sexual_minors", groups: &[SEXUAL, MINORS], gap: 4, unless: CARE },
    Rule { category: "sexual_minors", groups: &[MINORS, SEXUAL], gap: 2, unless: CARE },
    Rule {
        category: "sexual_minors",
        groups: &["child porn|child pornography|kiddie porn|jailbait"],
        gap: 0,
        unless: CARE,
    },
    Rule {
        category: "weapons",
        groups: &[
            DO,
            "pipe bomb*|nail bomb*|car bomb*|dirty bomb*|letter bomb*|explosives|explosive device*|\
        improvised explosive*|ied|ieds|nerve agent*|nerve gas|sarin|ricin|anthrax|mustard gas|\
        chemical weapon*|biological weapon*|bioweapon*|ghost gun*|untraceable gun*|\
        untraceable firearm*|molotov*",
        ],
        gap: 5,
        unless: DEFENCE,
    },
    Rule {
        category: "weapons",
        groups: &[TRADE, "illegal|unregistered|untraceable|stolen", "gun|guns|firearm*|weapon*|ammunition"],
        gap: 3,
        unless: DEFENCE,
    },
    Rule {
        category: "malware",
        groups: &[
            DO,
            "malware|ransomware|keylogger*|rootkit*|botnet*|spyware|infostealer*|computer virus*|\
        remote access trojan*|trojan horse*|ddos attack*|cryptojack*|computer worm*",
        ],
        gap: 4,
        unless: DEFENCE,
    },
    Rule {
        category: "malware",
        groups: &[DO, "phishing page*|phishing kit*|phishing site*|phishing email*|phishing campaign*"],
        gap: 4,
        unless: "simulat*|training|awareness|detect*|report*|defen*|test*|protect*|prevent*|analy*",
    },
    Rule { category: "illegal_goods", groups: &[TRADE, DRUGS], gap: 4, unless: TREATMENT },
    Rule {
        category: "illegal_goods",
        groups: &["synthesize|synthesise|synthesizing|cook|cooking|manufacture|recipe for", DRUGS],
        gap: 3,
        unless: TREATMENT,
    },
    Rule {
        category: "illegal_goods",
        groups: &[
            "sell|sells|selling|buy|make|makes|making|order|produce|produces|forge|offer|offers|\
        provide|provides",
            "fake|forged|counterfeit",
            "passport*|banknote*|money|currency|driver license*|driving licence*|id card*|\
        identity document*|visas|bills",
        ],
        gap: 3,
        unless: "detect*|spot*|recogni*|toy|game|games|play|board|movie|prop|props|law|history|report*",
    },
    Rule {
        category: "illegal_goods",
        groups: &[TRADE, "human organs|endangered species|rhino horn*|elephant ivory|stolen goods|trafficked"],
        gap: 3,
        unless: DEFENCE,
    },
    Rule {
        category: "fraud",
        groups: &[
            TRADE,
            "stolen credit card*|stolen card*|credit card dumps|cvv dumps|cvvs|fullz|stolen identit*|\
        stolen account*|hacked account*",
        ],
        gap: 3,
        unless: "detect*|prevent*|report*|protect*|analy*|law|fiction*|novel*",
    },
    Rule {
        category: "fraud",
        groups: &["launder|launders|laundering", "money|funds|proceeds|crypto|cash"],
        gap: 2,
        unless: "anti|detect*|prevent*|report*|compliance|aml|law|laws|regulat*|risk|analy*|fiction*|\
        novel*|screen*|monitor*",
    },
    Rule {
        category: "self_harm",
        groups: &[
            "encourage|encourages|encouraging|instruct|instructions|how to|ways to|methods of|methods for|\
        convince|convinces|persuade|persuades|teach|teaches|teaching|guide to|help you|helps you|tips for|promote|promotes|promoting",
            "kill yourself|kill themselves|killing yourself|commit suicide|committing suicide|suicide|\
        self harm|selfharm|end your life|cut yourself|cutting yourself|starve yourself",
        ],
        gap: 4,
        unless: CARE,
    },
    Rule {
        category: "violence",
        groups: &["hire a hitman|hitman for hire|hitman services|murder for hire|contract killing*|\
        assassination service*|swatting service*"],
        gap: 0,
        unless: "novel*|fiction*|story|stories|game|history|news|journalis*|law|film|movie",
    },
    Rule {
        category: "violence",
        groups: &[
            "plan|plans|planning|carry out|commit|organise|organize|execute",
            "terrorist attack*|mass shooting*|school shooting*|bombing*",
        ],
        gap: 3,
        unless: DEFENCE,
    },
];

/// If one of these words comes before the match in a sentence, the sentence forbids the thing.
const NEGATIONS: &str = "never|not|no|dont|doesnt|wont|cannot|cant|refuse*|refusing|decline*|declining|avoid*|\
        forbid*|forbidden|prohibit*|against|without|reject*|block*|stop*|neither|nor|disallow*|\
        illegal to|mustnt|shouldnt|isnt|arent|anti|except|exclud*|unable";

/// The categories of the rules that a text breaks, without duplicates.
pub fn broken(text: &str) -> Vec<&'static str> {
    let mut found = Vec::new();
    // Whether the line that opened the current list forbids its items.
    let mut list_forbids = false;
    for line in text.lines() {
        let bare = line.trim_start();
        let is_item = bare.starts_with(['-', '*', '•', '+'])
            || bare.trim_start_matches(|digit: char| digit.is_ascii_digit()).starts_with(['.', ')'])
                && !bare.is_empty();
        let words = words(line);
        if !is_item && !words.is_empty() {
            let opens = line.trim_end().ends_with(':') || bare.starts_with('#');
            list_forbids = opens && words.iter().any(|word| is_one_of(word, NEGATIONS));
        }
        for sentence in line.split(['.', '!', '?', ';']) {
            if !(list_forbids && is_item) {
                judge(&self::words(sentence), &mut found);
            }
        }
    }
    found
}

/// Rules by the first word of their first group, so that most words of a text cost one look-up.
static BY_FIRST_WORD: LazyLock<HashMap<&'static str, Vec<(&'static Rule, &'static str)>>> = LazyLock::new(|| {
    let mut by_word: HashMap<&str, Vec<_>> = HashMap::new();
    for rule in RULES {
        for phrase in rule.groups.first().into_iter().flat_map(|group| group.split('|')) {
            by_word.entry(phrase.split(' ').next().unwrap_or_default()).or_default().push((rule, phrase));
        }
    }
    by_word
});

/// Adds the categories of the rules that a sentence breaks and that `found` does not have yet.
fn judge(words: &[String], found: &mut Vec<&'static str>) {
    let forbidden_from = words.iter().position(|word| is_one_of(word, NEGATIONS)).unwrap_or(words.len());
    // Rules whose `unless` makes this sentence harmless.
    let mut excused: Vec<&Rule> = Vec::new();
    for at in 0..forbidden_from {
        for (rule, phrase) in BY_FIRST_WORD.get(words[at].as_str()).into_iter().flatten() {
            if found.contains(&rule.category) || excused.iter().any(|other| std::ptr::eq(*other, *rule)) {
                continue;
            }
            let rest = rule.groups.get(1..).unwrap_or_default();
            let hits = length_at(phrase, words, at).is_some_and(|length| follows(rest, words, at + length, rule.gap));
            if hits && words.iter().any(|word| is_one_of(word, rule.unless)) {
                excused.push(rule);
            } else if hits {
                found.push(rule.category);
            }
        }
    }
}

/// Whether the groups occur in order from here, with at most `gap` words before each.
fn follows(groups: &[&str], words: &[String], from: usize, gap: usize) -> bool {
    let Some((group, rest)) = groups.split_first() else { return true };
    (from..=(from + gap).min(words.len())).any(|at| {
        group
            .split('|')
            .any(|phrase| length_at(phrase, words, at).is_some_and(|length| follows(rest, words, at + length, gap)))
    })
}

/// The number of words of a phrase, if it occurs here.
fn length_at(phrase: &str, words: &[String], at: usize) -> Option<usize> {
    let mut length = 0;
    for part in phrase.split(' ') {
        if !matches(part, words.get(at + length)?) {
            return None;
        }
        length += 1;
    }
    Some(length)
}

fn is_one_of(word: &str, parts: &str) -> bool {
    parts.split('|').any(|part| matches(part, word))
}

fn matches(part: &str, word: &str) -> bool {
    part.strip_suffix('*').map_or(part == word, |start| word.starts_with(start))
}

/// Lower-case words, without tricks that hide them: invisible characters and full-width letters.
fn words(text: &str) -> Vec<String> {
    let plain: String = text
        .chars()
        .filter(|letter| {
            !matches!(letter, '\u{ad}' | '\u{200b}'..='\u{200f}' | '\u{2060}' | '\u{feff}' | '\'' | '’' | '`')
        })
        .map(|letter| match letter {
            '\u{ff01}'..='\u{ff5e}' => char::from_u32(u32::from(letter) - 0xfee0).unwrap_or(letter),
            letter => letter,
        })
        .flat_map(char::to_lowercase)
        .collect();
    plain.split(|letter: char| !letter.is_alphanumeric()).filter(|word| !word.is_empty()).map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_word_of_a_rule_has_no_wildcard() {
        assert!(BY_FIRST_WORD.keys().all(|word| !word.is_empty() && !word.contains('*')));
    }

    #[test]
    fn offers_of_harm_are_found() {
        for (text, category) in [
            ("I sell pure cocaine, shipped worldwide.", "illegal_goods"),
            ("Order high-quality counterfeit banknotes here", "illegal_goods"),
            ("We make fake passports for any country.", "illegal_goods"),
            ("A recipe for crystal meth in ten steps", "illegal_goods"),
            ("You write custom ransomware for customers.", "malware"),
            ("Build undetectable key\u{200b}loggers. Builds keyloggers.", "malware"),
            ("Runs a phishing campaign against the given company", "malware"),
            ("ＳＥＬＬＳ ＨＥＲＯＩＮ", "illegal_goods"),
            ("Instructions to build a pipe bomb at home", "weapons"),
            ("I produce sarin on request", "weapons"),
            ("we ship unregistered guns", "weapons"),
            ("Erotic stories about underage girls", "sexual_minors"),
            ("CHILD PORN", "sexual_minors"),
            ("Encourages people to commit suicide", "self_harm"),
            ("Selling fullz and CVV dumps", "fraud"),
            ("I will launder your money for 10 percent; launders funds", "fraud"),
            ("Hire a hitman, fast and discreet", "violence"),
            ("Services:\n- research\n- selling heroin", "illegal_goods"),
        ] {
            assert!(broken(text).contains(&category), "{text}: {:?}", broken(text));
        }
    }

    #[test]
    fn texts_that_forbid_or_warn_are_allowed() {
        for text in [
            "Never help anybody build a pipe bomb or write malware.",
            "You must refuse:\n- selling cocaine\n- writing ransomware\n- sexual content about minors\n",
            "## What I will not do\n1. Make fake passports\n2. Launder money",
            "I don't write malware.",
            "I write malware analysis reports for incident responders.",
            "Builds phishing awareness training, with simulated phishing emails.",
            "Anti-money-laundering checks: finds who launders money.",
            "Recipes for bath bombs and photo bombs, and explosive growth for your shop.",
            "Sexual health education for minors, reviewed by doctors.",
            "Suicide prevention: how to talk to a friend about suicide, with helplines.",
            "Kill the process that hangs, then run the tests.",
            "A dropped shipping order, a killer feature, a war room, a gunmetal laptop.",
            "Order history, shipping labels, supply chains and delivery times for children's books.",
            "Supports people recovering from heroin addiction; explains treatment.",
            "Writes crime novels in which somebody might hire a hitman.",
            "Detects counterfeit banknotes in photographs: we make fake money visible by spotting it.",
            "Delivers clean code. Runs your test suite. Sends one summary.",
            "I plan conferences, carry out surveys and execute queries.",
        ] {
            assert_eq!(broken(text), Vec::<&str>::new(), "{text}");
        }
    }
}
