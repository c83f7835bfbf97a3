//! What may not be sent to somebody: threats, extortion, phishing, fraud, offers of forbidden things, leaked secrets.
//!
//! A wrong refusal is worse here than a miss: agents send invoices, security notices and news. So the rules name whole
//! phrases, and what an honest sender may also write ("reset your password", "your account is locked") is in none of them.

use std::sync::LazyLock;

use base::untrusted_text::visible;

use super::phrases::{self, Rule, RuleSet};
use super::{SECRETS, leaks};

static SENT: LazyLock<RuleSet> = LazyLock::new(|| RuleSet::new(RULES));

const SELL: &str = "sell|sells|selling|buy|buying|ship|ships|shipping";
/// Reports and stories about crime.
const NEWS: &str = "report*|police|court|law|laws|legal|seiz*|arrest*|sentenc*|convict*|charged|accused|suspect*|\
        criminal*|gang|gangs|hacker*|attacker*|actors|forum*|news|journalis*|study|research*|trial*|history|\
        histor*|novel*|fiction*|story|stories|book*|film*|movie*|series|episode*|album|game|games|song*|lyrics|script";
const DEFENCE: &str = "detect*|defen*|protect*|prevent*|analy*|recover*|insur*|cover*|solution*|software|backup*|\
        training|simulat*|mitigat*|treat*|addict*|rehab*|test*|screen*|clinic*|overdose*|replac*|compliance|aml|anti";
const CARE: &str = "abuse|prevent*|support*|helpline*|hotline*|crisis|therap*|counsel*|safe*|recover*|survivor*|\
        educat*|health|law|laws|legal|protect*|detect*|report*|police|court|arrest*|convict*|charged|news|research*";
const PAY: &str = "pay|payment|send|transfer|deposit";
const COINS: &str = "bitcoin|bitcoins|btc|monero|xmr|usdt|ethereum|eth|litecoin|crypto|cryptocurrency";
const ODD_MONEY: &str = "bitcoin|bitcoins|btc|monero|xmr|usdt|crypto|cryptocurrency|gift card*|itunes card*|\
        steam card*|google play card*|western union|moneygram";
const CREDENTIALS: &str = "password|passwords|online banking|internet banking|bank login|banking login|\
        banking credentials|bank pin|card pin|atm pin|cvv|cvv2|cvc|private key|private keys";
const RECOVERY_PHRASE: &str = "seed phrase|recovery phrase|secret phrase|wallet phrase|secret recovery phrase|\
        mnemonic phrase|12 word phrase|24 word phrase|twelve word phrase";
const EXPOSE: &str = "to all your contacts|to everyone you know|to your friends and family|to your family and friends|\
        leak your|leak the video*|publish your private|your nudes|your nude*|your intimate*|the sex tape|your sex tape";

/// Signs that mean something only together; see [`TOGETHER`].
const HAS_MATERIAL: &str = "(has material)";
const TOOK_FILES: &str = "(took files)";
const WANTS_COINS: &str = "(wants coins)";
const WOULD_EXPOSE: &str = "(would expose)";
const WOULD_DESTROY: &str = "(would destroy)";
const THREATENS_ARREST: &str = "(threatens arrest)";
const WANTS_ODD_MONEY: &str = "(wants odd money)";

/// A text with all these signs, in any sentences, is of the category.
const TOGETHER: &[(&str, &[&str])] = &[
    ("extortion", &[HAS_MATERIAL, WANTS_COINS, WOULD_EXPOSE]),
    ("extortion", &[TOOK_FILES, WANTS_COINS, WOULD_DESTROY]),
    ("fraud", &[THREATENS_ARREST, WANTS_ODD_MONEY]),
];

/// Categories that a text with a word of [`WARNS`] is about, not guilty of.
const DECEITS: &[&str] = &["phishing", "fraud", "extortion"];
const WARNS: &str = "scam|scams|scammer*|scamming|fraudster*|phishing|phish|vishing|smishing|sextortion|extortion*|\
        blackmail*|ransomware|impersonat*|imposter*|impostor*";

const RULES: &[Rule] = &[
    Rule {
        category: "phishing",
        groups: &[
            "reply with your|respond with your|reply back with your|reply to this email with your|\
        reply to this message with your|send us your|send me your|text us your|text me your|email us your|\
        email me your|message us your|tell us your|tell me your|give us your|give me your|provide us your|\
        provide us with your|forward us your|forward me your",
            CREDENTIALS,
        ],
        gap: 3,
        unless: &[
            "feedback|fingerprint|public|preference*|page|website|logo|screenshot*|question*|request*|idea*|thoughts|manager*|policy|policies|hint*|reset*|protected|wifi|wi|zip|\
        pdf|document*|file|files|meeting|zoom|order|forgot*|lost|new|ask|asks|asking|asked|anyone|anybody|someone|\
        somebody|nobody|example*",
        ],
    },
    Rule {
        category: "phishing",
        groups: &["send|share|submit|provide|validate", "your", RECOVERY_PHRASE],
        gap: 1,
        unless: &[
            "ask|asks|asking|asked|anyone|anybody|someone|somebody|nobody|whoever|thief|thieves|attacker*|hacker*|\
        criminal*|beware|if|risk*|lose|lost|stolen|steal*|example*",
        ],
    },
    Rule {
        category: "fraud",
        groups: &[
            SELL,
            "stolen credit card*|stolen card*|credit card dumps|cvv dumps|cvvs|fullz|stolen identit*|stolen account*|\
        hacked account*",
        ],
        gap: 3,
        unless: &[NEWS, DEFENCE],
    },
    Rule {
        category: "fraud",
        groups: &["launder your money|launder your funds|launder your crypto|launder your cash"],
        gap: 0,
        unless: &[NEWS, DEFENCE],
    },
    Rule {
        category: "fraud",
        groups: &[
            "processing fee|release fee|clearance fee|transfer fee|customs fee|upfront fee",
            "claim|release|receive|collect",
            "prize|winnings|inheritance|jackpot",
        ],
        gap: 6,
        unless: &[NEWS],
    },
    Rule {
        category: "fraud",
        groups: &["double your", COINS],
        gap: 0,
        unless: &["reward*|cashback|points|bonus*|fee|fees|knowledge|audience|traffic|sales|skills"],
    },
    Rule {
        category: "fraud",
        groups: &[
            "send|deposit",
            COINS,
            "get double|receive double|double back|get twice|receive twice|2x back|double the amount",
        ],
        gap: 6,
        unless: &["reward*|cashback|points|bonus*"],
    },
    Rule {
        category: THREATENS_ARREST,
        groups: &[
            "a warrant for your arrest|an arrest warrant in your name|you will be arrested|you will be deported|\
        you will be jailed|police will arrest you|officers will arrest you|youll be arrested|to avoid arrest|\
        to avoid jail|to avoid deportation",
        ],
        gap: 0,
        unless: &["law|lawyer*|attorney*|novel*|film*|movie*|story|game"],
    },
    Rule { category: WANTS_ODD_MONEY, groups: &[PAY, ODD_MONEY], gap: 6, unless: &[] },
    Rule {
        category: "extortion",
        groups: &[
            "if you dont|if you do not|if you refuse|if you fail|unless you",
            "pay|send me|send us|transfer",
            EXPOSE,
        ],
        gap: 10,
        unless: &[],
    },
    Rule {
        category: "extortion",
        groups: &[
            "i will|we will|ill|well|im going to|i am going to|were going to|we are going to|will be sent|will go",
            EXPOSE,
            "unless you pay|if you dont pay|if you do not pay|if you refuse to pay|unless i receive|unless we receive",
        ],
        gap: 10,
        unless: &[],
    },
    Rule {
        category: HAS_MATERIAL,
        groups: &[
            "i recorded you|we recorded you|i filmed you|i have recorded you|i have filmed you|recorded a video of you|\
        i hacked your|i have hacked your|we hacked your|we have hacked your|i infected your|access to your webcam|\
        access to your camera|access to all your|your intimate|your nudes|your nude|malware on your|adult sites|\
        adult websites|adult videos|porn sites",
        ],
        gap: 0,
        unless: &["consent|training|course|call"],
    },
    Rule { category: WANTS_COINS, groups: &[PAY, COINS], gap: 6, unless: &[] },
    Rule {
        category: WOULD_EXPOSE,
        groups: &["to all your contacts|to everyone you know|your friends and family|your family and friends|\
        your relatives|everyone will see|delete the video|destroy the video|delete the recording|destroy the recording"],
        gap: 0,
        unless: &[],
    },
    Rule {
        category: TOOK_FILES,
        groups: &[
            "your files|all your files|your data|all your data|your network|your servers|your systems|your documents|\
        your databases",
            "been encrypted|were encrypted|been stolen|were stolen|been exfiltrated|been locked|been downloaded",
        ],
        gap: 4,
        unless: &[],
    },
    Rule {
        category: WOULD_DESTROY,
        groups: &[
            "decryption key|decryption tool|decryptor|decrypt your|decrypt them|publish your|leak your|sell your data|\
        will be published|will be leaked|lost forever|files will be deleted|data will be deleted",
        ],
        gap: 0,
        unless: &[],
    },
    Rule {
        category: "malware",
        groups: &[
            "sell|sells|selling|buy|buying|rent|renting",
            "ransomware|keylogger*|botnet*|infostealer*|stealer logs|remote access trojan*|phishing kit*|\
        phishing page*|ddos attack*|exploit kit*|rootkit*|spyware",
        ],
        gap: 3,
        unless: &[NEWS, DEFENCE],
    },
    Rule {
        category: "violence",
        groups: &[
            "i will|ill|we will|im going to|i am going to|were going to|we are going to|im gonna|gonna",
            "kill|murder|behead|slaughter|rape|strangle",
            "you|your family|your kids|your children|your wife|your husband|your daughter|your son|your mother|\
        your parents",
        ],
        gap: 3,
        unless: &[
            "not|never|wont|dont|kindness|laugh*|jok*|match|league|round|character*|scene*|play|chapter*|quote*|\
        game|games|film*|movie*|story|stories|novel*|lyrics|song*|script|dialog*|said|says|told|wrote|plan|plans|subscription*|process*|bug*",
        ],
    },
    Rule {
        category: "violence",
        groups: &["i|we|ive|weve", "planted|placed|hid|hidden", "bomb|bombs|explosives|explosive device*"],
        gap: 2,
        unless: &[
            "bath|photo|seed|cocoa|chocolate|cherry|quarry|blast*|exercise|drill|training|soap*|shower|cart|basket|\
        order|game|film*|movie*|story|novel*|lyrics|song*|script",
        ],
    },
    Rule {
        category: "violence",
        groups: &["there is a bomb|theres a bomb|bomb will explode|bomb will go off|bomb will detonate"],
        gap: 0,
        unless: &[
            "threat*|suspect*|unexploded|disposal|wwii|war|exercise|drill|training|procedure*|if|bath|game|film*|\
        movie*|story|novel*|lyrics|song*|script|cyclone",
        ],
    },
    Rule {
        category: "violence",
        groups: &["hire a hitman|hitman for hire|hitman services|murder for hire|swatting service*"],
        gap: 0,
        unless: &[NEWS],
    },
    Rule {
        category: "self_harm",
        groups: &[
            "go kill yourself|just kill yourself|please kill yourself|you should kill yourself|go hang yourself|\
        you should hang yourself|you should commit suicide",
        ],
        gap: 0,
        unless: &[CARE, "told|said|says|wrote|heard|feel*|thought*|voice*"],
    },
    Rule {
        category: "sexual_minors",
        groups: &["child porn|child pornography|kiddie porn|jailbait"],
        gap: 0,
        unless: &[CARE],
    },
    Rule {
        category: "sexual_minors",
        groups: &[
            "nude|naked|sexual|sexually explicit|pornographic|erotic",
            "photos|pictures|pics|images|videos|content|material",
            "of|with|from|showing",
            "child|children|minors|underage|preteen|preteens|toddlers|kids|schoolgirls|schoolboys|lolis",
        ],
        gap: 0,
        unless: &[CARE, "polic*|prohibit*|moderat*|remov*|ban|bans|banned"],
    },
    Rule {
        category: "illegal_goods",
        groups: &[SELL, "cocaine|heroin|crystal meth|crack cocaine|mdma"],
        gap: 4,
        unless: &[NEWS, DEFENCE, "not|no|never"],
    },
    Rule {
        category: "illegal_goods",
        groups: &[
            SELL,
            "fake|forged|counterfeit",
            "passport*|banknote*|driver license*|drivers license*|driving licence*|id card*|identity document*|currency",
        ],
        gap: 2,
        unless: &[NEWS, DEFENCE, "spot*|recogni*|toy|play|prop|props"],
    },
    Rule {
        category: "weapons",
        groups: &[SELL, "untraceable|unregistered", "gun|guns|firearm*"],
        gap: 2,
        unless: &[NEWS, DEFENCE],
    },
    Rule {
        category: "weapons",
        groups: &[
            "how to make|how to build|instructions to make|instructions to build|instructions for making|steps to make|\
        steps to build|recipe for",
            "pipe bomb*|nail bomb*|nerve agent*|nerve gas|sarin|ricin|mustard gas|chemical weapon*|biological weapon*",
        ],
        gap: 3,
        unless: &[NEWS, DEFENCE],
    },
];

/// The violated categories of a text that would be sent, sorted and without duplicates. Empty if it may be sent.
pub fn categories(text: &str) -> Vec<&'static str> {
    let text = visible(text);
    let plain = paragraphs(&text);
    let signs = SENT.broken(&plain);
    let mut found: Vec<&str> = signs.iter().copied().filter(|sign| !sign.starts_with('(')).collect();
    let together = TOGETHER.iter().filter(|(_, needed)| needed.iter().all(|sign| signs.contains(sign)));
    found.extend(together.map(|(category, _)| *category));
    if found.iter().any(|category| DECEITS.contains(category))
        && phrases::words(&plain).iter().any(|word| phrases::is_one_of(word, WARNS))
    {
        found.retain(|category| !DECEITS.contains(category));
    }
    if leaks::was_leaked(&text) {
        found.push(SECRETS);
    }
    found.sort_unstable();
    found.dedup();
    found
}

/// The text with each paragraph in one line, because mails are wrapped within sentences. HTML tags are removed.
fn paragraphs(text: &str) -> String {
    let text = without_tags(text);
    let mut plain = String::with_capacity(text.len());
    for line in text.lines().map(str::trim) {
        // A list's item, or an empty line, begins a paragraph.
        let begins = line.is_empty() || line.starts_with(['-', '*', '•', '+', '>', '#']);
        let ended = plain.is_empty() || plain.ends_with([':', '\n']);
        plain.push(if begins || ended { '\n' } else { ' ' });
        plain.push_str(line);
    }
    plain
}

/// Tags that occur within a sentence.
const INLINE: &[&str] =
    &["a", "b", "i", "u", "s", "em", "strong", "span", "font", "small", "big", "sub", "sup", "mark"];

fn without_tags(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, behind)) = rest.split_once('<') {
        plain.push_str(before);
        let opens = behind.starts_with(|letter: char| letter.is_ascii_alphabetic() || matches!(letter, '/' | '!'));
        if !opens {
            plain.push('<');
            rest = behind;
            continue;
        }
        match behind.split_once('>') {
            Some((tag, after)) => {
                let name = tag.trim_start_matches('/').split(|letter: char| !letter.is_ascii_alphanumeric()).next();
                let name = name.unwrap_or_default().to_ascii_lowercase();
                plain.push_str(if INLINE.contains(&name.as_str()) { "" } else { "\n\n" });
                rest = after;
            }
            // No tag is closed from here on.
            None => break,
        }
    }
    plain.push_str(rest);
    plain
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ordinary_messages_may_be_sent() {
        for text in [
            // Invoices and payments.
            "Dear Ms Weber,\n\nplease find attached invoice 2026-114 over EUR 1,240.00, due on 30 November. Pay by bank transfer \
             to DE89 3704 0044 0532 0130 00, or by card at https://pay.example.com/i/114?token=\
             eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk.\n\nKind regards",
            "Final reminder: invoice 114 is 60 days overdue. If you do not pay within 14 days, we will hand the claim over to a \
             collection agency and a court may issue an order against you.",
            "Our bank details have changed. Please call the number you know before you transfer money to the new account.",
            "You can pay with card, SEPA transfer or bitcoin. Your files are encrypted at rest, and you can recover your files at \
             any time.",
            "If you do not send us the signed release, we cannot publish your photos. If you don't send a plumber, the pipe will \
             leak.",
            "A customs fee of EUR 4.10 is due before we can release your parcel 00340434.",
            "We accept gift cards. Buy a gift card for Anna and send me the code, thank you!",
            "To order a replacement for a stolen card, call us. Never share your PIN with anyone.",
            // Password resets and security notices.
            "You asked to reset your password. Use this link within 30 minutes: \
             https://app.example.com/reset?token=reset_4f3edf983ac636a65a842ce7c78d9aa706d3b113bce9c46f30d7d21715b23b1d \
             If it was not you, ignore this mail. We will never ask you for your password.",
            "Your verification code is 493 201. Enter it to log in. Do not share it with anybody.",
            "Your account was locked after five failed attempts. Confirm your identity at https://example.com/unlock to use it \
             again, or reply to this mail to reset your password.",
            "We detected a sign-in from a new device in Lyon. If this was not you, change your password and enter your recovery \
             code.",
            "On 3 November an attacker had access to all your order data. Passwords were stored as hashes. Your data has been \
             downloaded; we have told the authority.",
            "Beware of scams: criminals claim that they recorded you and demand that you pay in bitcoin, or they send the video \
             to all your contacts. Do not pay. Another scam: 'there is a warrant for your arrest, pay with gift cards'.",
            "Attackers send malware and phishing emails that ask: reply with your password. Report them to security@example.com.",
            "If anyone asks you to share your seed phrase, hang up. Keep your recovery phrase on paper.",
            "Send us your feedback on the new password manager. Email us to reset your password.",
            "Security training next week: how ransomware gangs work, and why hackers sell ransomware as a service.",
            "Access key AKIAY3RXBN7QKD5TL2VM will be rotated on Friday. Your webhook secret is \
             whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw1x2y.",
            // Sales, support and news.
            "Our tool will kill your cloud bill: 40 percent less in a week, guaranteed. Reply with your availability for a call.",
            "Double your bitcoin rewards this week! We'll beat any price, and I'll shoot you an email with the details.",
            "We sell antivirus software that protects your network against ransomware, spyware and botnets.",
            "Kids' nude portraits? No: nude-coloured tights for children, photos of our new collection, and cookbooks.",
            "In the news: a man was sentenced for selling cocaine; police seized fake passports; he had laundered money and paid \
             in bitcoin.",
            "Your order has shipped: 2 bath bombs, 1 glue gun, 1 novel 'The Hitman'. We placed bath bombs in your basket.",
            "Blasting notice: explosives will be detonated at the quarry on Tuesday at 11:00.",
            "The training is hard, but it will not kill you. See you on Monday!",
            "For the restore, enter your recovery phrase on the device itself.",
            "Contest: no processing fee to claim your prize; just show this mail.",
            "We are going to kill the old server tonight; please send me your private key fingerprint.",
            "Please tell me your passcode for the gate, so that the courier can leave the parcel.",
            "We recorded you for training, with your consent. Pay in ETH or USD; delete the recording whenever you like.",
            "The court issued a warrant for your arrest. As your attorney I advise you to appear. My invoice can be paid in \
             bitcoin.",
            "Tonight: 'I Will Kill You' (film) and 'There Is a Bomb' (series). We ship MDM agents, not MDMA.",
            // Health.
            "Your appointment with Dr Okafor (cardiology) is on 2 December at 09:40. Please bring your insurance card and a list \
             of your medication, such as fentanyl patches. Reply CANCEL to cancel.",
            "Your sexual health screening results are ready. Our clinic supplies naloxone for heroin overdoses.",
            "If you have thoughts of suicide or feel that you want to kill yourself, call 988. You are not alone.",
            "<p>Hello <b>Ada</b>,</p><p>your <a href=\"https://maps.example.com/?key=AIzaSyD4x7Qm2kLp9Rt5Vw8Yz1Bc3De6Fg0HjKn\">\
             meeting</a> is at 5 < 6 o'clock.</p>",
            "",
        ] {
            assert_eq!(categories(text), Vec::<&str>::new(), "{text}");
        }
    }

    #[test]
    fn clear_abuse_may_not_be_sent() {
        let pem = format!(
            "Here is her key:\n-----BEGIN PRIVATE KEY-----\n{}\n-----END PRIVATE KEY-----",
            "MHcCAQEEIIrYSSNQ".repeat(4)
        );
        for (text, category) in [
            ("This is your bank. Reply with your online banking password within 24 hours.", "phishing"),
            ("IT desk: your mailbox is full. Send us your username\nand password to keep it.", "phishing"),
            ("Please reply to this email with your card number and CVV.", "phishing"),
            ("To receive the airdrop, submit your seed phrase at http://wallet.example.net", "phishing"),
            ("Validate your 12 word phrase now", "phishing"),
            ("Selling fullz and CVV dumps, fresh daily", "fraud"),
            ("Pay the processing fee of $200 and you can claim your prize of one million.", "fraud"),
            ("This is the tax office. There is a warrant for your arrest. Pay 900 USD in gift cards today.", "fraud"),
            ("Send 1 BTC to this address and get double in an hour.", "fraud"),
            ("Double your bitcoin in one day", "fraud"),
            (
                "I recorded you through your webcam.\nSend 900 USD in bitcoin to bc1q0.\nOr the video goes to all your contacts.",
                "extortion",
            ),
            ("If you don't pay 500 dollars, I will send your nudes to everyone you know.", "extortion"),
            ("I will send the video to all your contacts unless you pay.", "extortion"),
            (
                "All your files have been encrypted. Pay 2 BTC for the decryption key, or your data will be published.",
                "extortion",
            ),
            ("We sell undetectable keyloggers and rent botnets.", "malware"),
            ("I will find you and kill you.", "violence"),
            ("I'm going to murder your family", "violence"),
            ("I will k\u{200b}ill <b>you</b>", "violence"),
            ("We planted a bomb in your office.", "violence"),
            ("Nobody likes you, go kill yourself", "self_harm"),
            ("child porn, cheap", "sexual_minors"),
            ("I have naked pictures of children to trade", "sexual_minors"),
            ("I sell pure cocaine, shipped worldwide.", "illegal_goods"),
            ("Buy fake passports and counterfeit banknotes here", "illegal_goods"),
            ("We ship untraceable guns", "weapons"),
            ("Recipe for sarin: take", "weapons"),
            (pem.as_str(), "secrets"),
            ("use this: ghp_16C7e42F292c6912E7710c838347Ae178B4a", "secrets"),
            ("his seed phrase: legal winner thank year wave sausage worth useful legal winner thank yellow", "secrets"),
        ] {
            assert!(categories(text).contains(&category), "{text}: {:?}", categories(text));
        }
    }
}
