//! What may not be published: offers of forbidden things.

use std::sync::LazyLock;

use super::phrases::{Rule, RuleSet};

pub static PUBLISHED: LazyLock<RuleSet> = LazyLock::new(|| RuleSet::new(RULES));

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
    Rule { category: "sexual_minors", groups: &[SEXUAL, MINORS], gap: 4, unless: &[CARE] },
    Rule { category: "sexual_minors", groups: &[MINORS, SEXUAL], gap: 2, unless: &[CARE] },
    Rule {
        category: "sexual_minors",
        groups: &["child porn|child pornography|kiddie porn|jailbait"],
        gap: 0,
        unless: &[CARE],
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
        unless: &[DEFENCE],
    },
    Rule {
        category: "weapons",
        groups: &[TRADE, "illegal|unregistered|untraceable|stolen", "gun|guns|firearm*|weapon*|ammunition"],
        gap: 3,
        unless: &[DEFENCE],
    },
    Rule {
        category: "malware",
        groups: &[
            DO,
            "malware|ransomware|keylogger*|rootkit*|botnet*|spyware|infostealer*|computer virus*|\
        remote access trojan*|trojan horse*|ddos attack*|cryptojack*|computer worm*",
        ],
        gap: 4,
        unless: &[DEFENCE],
    },
    Rule {
        category: "malware",
        groups: &[DO, "phishing page*|phishing kit*|phishing site*|phishing email*|phishing campaign*"],
        gap: 4,
        unless: &["simulat*|training|awareness|detect*|report*|defen*|test*|protect*|prevent*|analy*"],
    },
    Rule { category: "illegal_goods", groups: &[TRADE, DRUGS], gap: 4, unless: &[TREATMENT] },
    Rule {
        category: "illegal_goods",
        groups: &["synthesize|synthesise|synthesizing|cook|cooking|manufacture|recipe for", DRUGS],
        gap: 3,
        unless: &[TREATMENT],
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
        unless: &["detect*|spot*|recogni*|toy|game|games|play|board|movie|prop|props|law|history|report*"],
    },
    Rule {
        category: "illegal_goods",
        groups: &[TRADE, "human organs|endangered species|rhino horn*|elephant ivory|stolen goods|trafficked"],
        gap: 3,
        unless: &[DEFENCE],
    },
    Rule {
        category: "fraud",
        groups: &[
            TRADE,
            "stolen credit card*|stolen card*|credit card dumps|cvv dumps|cvvs|fullz|stolen identit*|\
        stolen account*|hacked account*",
        ],
        gap: 3,
        unless: &["detect*|prevent*|report*|protect*|analy*|law|fiction*|novel*"],
    },
    Rule {
        category: "fraud",
        groups: &["launder|launders|laundering", "money|funds|proceeds|crypto|cash"],
        gap: 2,
        unless: &["anti|detect*|prevent*|report*|compliance|aml|law|laws|regulat*|risk|analy*|fiction*|\
        novel*|screen*|monitor*"],
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
        unless: &[CARE],
    },
    Rule {
        category: "violence",
        groups: &["hire a hitman|hitman for hire|hitman services|murder for hire|contract killing*|\
        assassination service*|swatting service*"],
        gap: 0,
        unless: &["novel*|fiction*|story|stories|game|history|news|journalis*|law|film|movie"],
    },
    Rule {
        category: "violence",
        groups: &[
            "plan|plans|planning|carry out|commit|organise|organize|execute",
            "terrorist attack*|mass shooting*|school shooting*|bombing*",
        ],
        gap: 3,
        unless: &[DEFENCE],
    },
];

#[cfg(test)]
mod tests {
    use super::*;

    fn broken(text: &str) -> Vec<&'static str> {
        PUBLISHED.broken(text)
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
