//! The 402 answer: one body and one header that serve every client.
//!
//! The body has our own quote fields, `payment_request` and `context` for our SDKs, and `x402Version: 1` with `accepts` for
//! x402 v1 clients. The header `PAYMENT-REQUIRED` is for x402 v2. The quote id is in `extra`, which v2 clients echo.
//!
//! The 402 is the most frequent answer, and most of it never changes. So each tool's answer is rendered once, with
//! placeholders for the parts that change ([`Word`]), and split at them ([`Form`]). An answer is then the pieces joined.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use axum::response::Response;
use base::encoding::push_base64;
use base::money::Usdc;
use http::{HeaderName, HeaderValue, StatusCode};
use ledger::payments::quote::Quote;
use ledger::payments::reason::Reason;
use ledger::payments::wire::{MAX_TIMEOUT_SECS, PAYMENT_IDENTIFIER};
use platform::config::Config;
use platform::http::error::{PaymentContext, merge};
use platform::http::private_text;
use serde_json::{Map, Value, json};
use tools::bazaar;
use tools::spec::ToolSpec;

use super::order::Listing;

/// Longest value of the `PAYMENT-REQUIRED` header, in bytes. Clients echo all of it in their payment, and a gateway accepts
/// 10 KB of headers.
const MAX_HEADER_BYTES: usize = 3 * 1024;
/// Longest part of a seller's description in a 402, in bytes. A client may escape each letter to six bytes and echo it; the
/// echo still fits.
const MAX_SUMMARY_BYTES: usize = 600;

pub const PAYMENT_REQUIRED: HeaderName = HeaderName::from_static("payment-required");

/// Stock x402 clients refuse to pay more than this without a setting by their owner.
const CLIENT_DEFAULT_CAP: Usdc = Usdc::from_micro(1_000_000);

/// A price for one request.
pub struct Offer<'a> {
    pub config: &'a Config,
    pub forms: &'a Forms,
    pub tool: &'static ToolSpec,
    pub listing: Option<&'a Listing>,
    /// What the tool's quoter found, for the `context`.
    pub asked: Option<&'a Map<String, Value>>,
    /// Full URL of the request.
    pub resource: &'a str,
    pub quote: Quote,
    pub quote_id: &'a str,
    /// The caller's spendable credits before this quote, if the caller is known.
    pub credits_balance: Option<Usdc>,
    /// The caller has an access token, which pays from credits.
    pub by_token: bool,
}

impl Offer<'_> {
    /// 402 for a request without payment.
    pub fn unpaid(&self) -> Response {
        let words = self.words("payment_required");
        let body = match self.described() {
            Some([bazaar, _]) => unpaid(self.config, bazaar, |word| words.value(word)).to_string(),
            None => self.forms.of(self.config, self.tool).unpaid.fill(&words),
        };
        response(body, self.header(&words))
    }

    /// 402 for a refused payment, with the terms for a new one.
    pub fn refused(&self, reason: Reason, context: &PaymentContext) -> Response {
        let words = self.words(reason.as_str());
        let mut body = json!({
            "error": "payment_verification_failed",
            "code": 402,
            "message": format!("the payment was refused: {reason}; nothing was charged"),
            "reason": reason.as_str(),
            "stage": reason.stage(),
            "diagnostics": {"hint": reason.to_string()},
        });
        let bazaar = self.described().map_or_else(|| bazaar::http(self.tool), |[bazaar, _]| bazaar);
        let mut members = members(self.config, bazaar, |word| words.value(word));
        merge(&mut members, context.members());
        // The new quote, not the one that failed.
        members["quote_id"] = json!(self.quote_id);
        merge(&mut body, members);
        response(body.to_string(), self.header(&words))
    }

    /// How a seller's service is called, in full and without its schema. A seller may change it at any time, so it is not
    /// part of the tool's form.
    fn described(&self) -> Option<[Value; 2]> {
        let shape = self.listing?.input.as_ref()?;
        let of = |schema| bazaar::http_of_service(schema, shape.example.as_ref());
        Some([of(shape.schema.as_ref()), of(None)])
    }

    /// The header's value, with the fullest description of the call that fits.
    fn header(&self, words: &Words) -> String {
        let Some([full, brief]) = self.described() else {
            return self.forms.of(self.config, self.tool).header(self.config, self.tool, words);
        };
        let made = [Some(full), Some(brief), None].into_iter().map(|bazaar| {
            let mut header = String::new();
            let said = challenge(self.config, bazaar, |word| words.value(word));
            push_base64(said.to_string().as_bytes(), &mut header);
            header
        });
        shortest(made)
    }

    fn title(&self) -> &str {
        self.listing.map_or(self.tool.title, |listing| &listing.title)
    }

    /// A seller's description is cut to what fits in a header. The soul's page has all of it.
    fn summary(&self) -> &str {
        match self.listing {
            Some(listing) => &listing.summary[..listing.summary.floor_char_boundary(MAX_SUMMARY_BYTES)],
            None => self.tool.summary,
        }
    }

    fn message(&self) -> String {
        let (title, price) = (self.title(), self.quote.amount);
        let mut message = if self.by_token {
            format!(
                "{title} costs {price} USDC, which your access token pays from credits: repeat the request with this \
                 quote in X-Quote-ID; it needs neither a proof nor a payment"
            )
        } else if self.quote.credits > Usdc::ZERO {
            format!(
                "{title} costs {price} USDC, of which your credits pay {}: repeat the request with this quote, a fresh \
                 proof and a payment of the rest",
                self.quote.credits
            )
        } else {
            format!("{title} costs {price} USDC: repeat the request with a signed payment")
        };
        if let Some(kept) = self.listing.map(|listing| listing.kept_up_to).filter(|kept| *kept > Usdc::ZERO) {
            message.push_str(&format!(
                "; if the work fails, you get the price back as credits, less paid tools and model calls used, at most \
                 {kept}"
            ));
        }
        if self.quote.remaining() > CLIENT_DEFAULT_CAP && !self.by_token {
            message.push_str("; above 1 USD, x402 clients need their own spending cap raised first");
        }
        message
    }

    fn context(&self, expires: &str) -> Value {
        let mut context = json!({
            "tool": self.tool.name,
            "quote_id": self.quote_id,
            "total": self.quote.amount.to_string(),
            "expires_at": expires,
        });
        if let Some(listing) = self.listing {
            merge(&mut context, Value::Object(listing.context.clone()));
        }
        if let Some(asked) = self.asked {
            merge(&mut context, Value::Object(asked.clone()));
        }
        if self.quote.credits > Usdc::ZERO {
            context["credits_applied"] = json!(self.quote.credits.to_string());
        }
        if let Some(balance) = self.credits_balance {
            context["credits_balance"] = json!(balance.to_string());
        }
        if self.tool.sells_credits {
            context["top_up_usd"] = json!(self.quote.amount.to_string());
        }
        context
    }

    /// The values of the placeholders in this offer. `error` is the reason for the 402.
    fn words(&self, error: &str) -> Words {
        let remaining = self.quote.remaining();
        let expires = self.quote.expires.to_string();
        Words(Word::ALL.map(|word| match word {
            Word::Message => json_text(&self.message()),
            Word::QuoteId => json_text(self.quote_id),
            Word::Amount => json_text(&remaining.to_string()),
            Word::Micro => json_text(&remaining.micro().to_string()),
            Word::Expires => json_text(&expires),
            Word::Resource => json_text(self.resource),
            Word::Summary => json_text(self.summary()),
            Word::Context => self.context(&expires).to_string(),
            Word::Error => json_text(error),
        }))
    }
}

fn response(body: String, header: String) -> Response {
    let mut response = private_text(StatusCode::PAYMENT_REQUIRED, body);
    if let Ok(header) = HeaderValue::try_from(header) {
        response.headers_mut().insert(PAYMENT_REQUIRED, header);
    }
    response
}

/// A part that differs between two 402 answers for one tool. Everything else is constant for the process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Word {
    Message,
    QuoteId,
    /// The amount to sign for, in USDC as a decimal.
    Amount,
    /// The same in the token's atomic unit.
    Micro,
    Expires,
    Resource,
    Summary,
    Context,
    Error,
}

impl Word {
    const ALL: [Word; 9] = [
        Word::Message,
        Word::QuoteId,
        Word::Amount,
        Word::Micro,
        Word::Expires,
        Word::Resource,
        Word::Summary,
        Word::Context,
        Word::Error,
    ];

    /// The placeholder of this word in a form. No tool's text contains it.
    fn placeholder(self) -> Value {
        json!(format!("{BEFORE_WORD}{}{AFTER_WORD}", self as usize))
    }
}

const BEFORE_WORD: &str = "<word ";
const AFTER_WORD: &str = ">";

/// The JSON of each word, by its index.
struct Words([String; Word::ALL.len()]);

impl Words {
    fn text(&self, word: Word) -> &str {
        &self.0[word as usize]
    }

    fn value(&self, word: Word) -> Value {
        serde_json::from_str(self.text(word)).unwrap_or_default()
    }
}

fn json_text(text: &str) -> String {
    // A string always serialises.
    serde_json::to_string(text).unwrap_or_default()
}

/// The body of a 402 for a request without payment.
fn unpaid(config: &Config, bazaar: Value, word: impl Fn(Word) -> Value) -> Value {
    let mut body = json!({"error": "payment_required", "code": 402, "message": word(Word::Message)});
    merge(&mut body, members(config, bazaar, word));
    body
}

/// The payment terms, which every 402 body has. `bazaar` describes how to call the tool.
fn members(config: &Config, bazaar: Value, word: impl Fn(Word) -> Value) -> Value {
    let chain = &config.chain;
    let (pay_to, asset) = (config.payments.pay_to.to_string(), chain.token.address.to_string());
    json!({
        "quote_id": word(Word::QuoteId),
        "amount_usdc": word(Word::Amount),
        "pay_to": pay_to,
        "network": chain.caip2(),
        "expires_at": word(Word::Expires),
        "payment_request": {
            "chain_id": chain.chain_id,
            "token_address": asset,
            "amount": word(Word::Amount),
            "recipient": pay_to,
        },
        "context": word(Word::Context),
        "x402Version": 1,
        "extensions": extensions(Some(bazaar)),
        "accepts": [{
            "scheme": "exact",
            "network": chain.v1_name(),
            "maxAmountRequired": word(Word::Micro),
            "resource": word(Word::Resource),
            "description": word(Word::Summary),
            "mimeType": "application/json",
            "payTo": pay_to,
            "maxTimeoutSeconds": MAX_TIMEOUT_SECS,
            "asset": asset,
            "extra": {"name": chain.token.name, "version": chain.token.version},
        }],
    })
}

/// The content of the `PAYMENT-REQUIRED` header. `bazaar` describes how to call the tool.
fn challenge(config: &Config, bazaar: Option<Value>, word: impl Fn(Word) -> Value) -> Value {
    let chain = &config.chain;
    json!({
        "x402Version": 2,
        "error": word(Word::Error),
        "resource": {"url": word(Word::Resource), "description": word(Word::Summary), "mimeType": "application/json"},
        "accepts": [{
            "scheme": "exact",
            "network": chain.caip2(),
            "amount": word(Word::Micro),
            "asset": chain.token.address.to_string(),
            "payTo": config.payments.pay_to.to_string(),
            "maxTimeoutSeconds": MAX_TIMEOUT_SECS,
            "extra": {"name": chain.token.name, "version": chain.token.version, "quoteId": word(Word::QuoteId)},
        }],
        "extensions": extensions(bazaar),
    })
}

/// Descriptions of the call for the header, the longest first. The first one that fits is used, because a seller's long
/// texts leave less room.
const WAYS: [fn(&ToolSpec) -> Option<Value>; 3] =
    [|tool| Some(bazaar::http(tool)), |tool| Some(bazaar::http_brief(tool)), |_| None];

/// The 402 templates of one deployment, each made on first use.
#[derive(Clone, Default)]
pub struct Forms(Arc<Mutex<HashMap<&'static str, Arc<Form>>>>);

impl Forms {
    fn of(&self, config: &Config, tool: &'static ToolSpec) -> Arc<Form> {
        let mut made = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        made.entry(tool.name).or_insert_with(|| Arc::new(Form::new(config, tool))).clone()
    }
}

/// One tool's templates.
struct Form {
    unpaid: Pieces,
    headers: [OnceLock<Header>; WAYS.len()],
}

impl Form {
    fn new(config: &Config, tool: &ToolSpec) -> Form {
        Form { unpaid: Pieces::of(&unpaid(config, bazaar::http(tool), Word::placeholder)), headers: Default::default() }
    }

    /// The header's value, with the fullest description of the call that fits.
    fn header(&self, config: &Config, tool: &ToolSpec, words: &Words) -> String {
        shortest(self.headers.iter().zip(WAYS).map(|(header, way)| {
            header.get_or_init(|| Header::of(&challenge(config, way(tool), Word::placeholder))).fill(words)
        }))
    }
}

/// The first header that fits, or the last.
fn shortest(made: impl Iterator<Item = String>) -> String {
    let mut shortest = String::new();
    for header in made {
        shortest = header;
        if shortest.len() <= MAX_HEADER_BYTES {
            break;
        }
    }
    shortest
}

/// JSON split at its placeholders: each piece is followed by its word.
struct Pieces(Vec<(Box<str>, Option<Word>)>);

impl Pieces {
    fn of(value: &Value) -> Pieces {
        let text = value.to_string();
        let mut pieces = Vec::new();
        let mut rest = text.as_str();
        for (at, word) in Pieces::words_in(&text) {
            let begin = text.len() - rest.len();
            pieces.push((text[begin..at].into(), Some(word)));
            rest = &text[at + word.placeholder().to_string().len()..];
        }
        pieces.push((rest.into(), None));
        Pieces(pieces)
    }

    /// The placeholders in a text, with their positions.
    fn words_in(text: &str) -> Vec<(usize, Word)> {
        let places = Word::ALL.iter().flat_map(|word| {
            let placeholder = word.placeholder().to_string();
            let places: Vec<_> = text.match_indices(&placeholder).map(|(at, _)| (at, *word)).collect();
            places
        });
        let mut places: Vec<_> = places.collect();
        places.sort_unstable_by_key(|(at, _)| *at);
        places
    }

    fn fill(&self, words: &Words) -> String {
        let length = self.0.iter().map(|(piece, word)| piece.len() + word.map_or(0, |word| words.text(word).len()));
        let mut text = String::with_capacity(length.sum());
        for (piece, word) in &self.0 {
            text.push_str(piece);
            if let Some(word) = word {
                text.push_str(words.text(*word));
            }
        }
        text
    }
}

/// JSON in base64, split at its placeholders. The longest piece without placeholders is encoded beforehand. It must start
/// at a multiple of three bytes, so spaces are inserted before it (JSON allows them between tokens).
struct Header {
    before: Pieces,
    encoded: Box<str>,
    after: Pieces,
}

impl Header {
    fn of(value: &Value) -> Header {
        let Pieces(mut before) = Pieces::of(value);
        let longest = (0..before.len()).max_by_key(|index| before[*index].0.len()).unwrap_or_default();
        let mut after = before.split_off(longest);
        let (whole, rest) = after[0].0.split_at(after[0].0.len() / 3 * 3);
        let mut encoded = String::new();
        push_base64(whole.as_bytes(), &mut encoded);
        after[0].0 = rest.into();
        Header { before: Pieces(before), encoded: encoded.into(), after: Pieces(after) }
    }

    fn fill(&self, words: &Words) -> String {
        let mut before = self.before.fill(words);
        // Insert the spaces after the opening brace.
        before.insert_str(before.len().min(1), &"  "[..(3 - before.len() % 3) % 3]);
        let after = self.after.fill(words);
        let mut header = String::with_capacity((before.len() + after.len()) / 3 * 4 + self.encoded.len() + 8);
        push_base64(before.as_bytes(), &mut header);
        header.push_str(&self.encoded);
        push_base64(after.as_bytes(), &mut header);
        header
    }
}

/// The x402 extensions offered.
fn extensions(bazaar: Option<Value>) -> Value {
    let mut extensions = json!({PAYMENT_IDENTIFIER: payment_identifier()});
    if let Some(bazaar) = bazaar {
        extensions[bazaar::BAZAAR] = bazaar;
    }
    extensions
}

/// Offers the payment identifier extension: clients send an identifier only where it is offered.
fn payment_identifier() -> Value {
    json!({
        "info": {"required": false},
        "schema": {
            "$schema": "https://json-schema.org/draft/2020-12/schema",
            "type": "object",
            "properties": {
                "required": {"type": "boolean"},
                "id": {"type": "string", "minLength": 16, "maxLength": 128, "pattern": "^[a-zA-Z0-9_-]+$"},
            },
            "required": ["required"],
        },
    })
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use base::clock::Timestamp;
    use base::encoding::base64_any;
    use catalog::CATALOG;
    use ledger::payments::quote::Purchase;
    use platform::config::FeeShare;
    use serde_json::Map;
    use tools::spec::{MARKET, TOP_UP};

    use super::*;
    use crate::jobs::job::Lane;
    use crate::order::InputShape;

    fn config() -> Config {
        Config::read(|name| (name == "PAY_TO").then(|| "0x70997970C51812dc3A010C7d01b50e0d17dc79C8".to_owned()))
            .unwrap()
    }

    /// Listings with descriptions from none to more than a header can hold.
    fn listings() -> Vec<Option<Listing>> {
        let of = |summary: &str| Listing {
            soul: "counter".to_owned(),
            service: Some("statistics".to_owned()),
            terms: 3,
            price: Usdc::from_micro(500_000),
            fee: FeeShare::default(),
            kept_up_to: Usdc::from_micro(summary.len() as u64 % 2),
            kept_up_to_without_quote: Usdc::ZERO,
            lane: Lane::Souls,
            title: format!("\"{summary:.20}\""),
            summary: summary.to_owned(),
            input: None,
            context: Map::from_iter([("seller".to_owned(), json!({"name": summary, "<word 1>": "<word 2>"}))]),
            accepted: Map::new(),
            quoted: false,
            closed: None,
        };
        let long = "a \u{1f980} ".repeat(40);
        [None, Some(of("Words\u{0} \"counted\" \\ \u{2028}")), Some(of(&long)), Some(of(&"\u{1}".repeat(1000)))].into()
    }

    /// A client echoes the header in its payment, and some clients escape every non-ASCII letter.
    #[test]
    fn a_long_description_can_be_paid_for() {
        let (config, forms) = (config(), Forms::default());
        let now = Timestamp::from_secs(1_795_000_000);
        let tool = MARKET[0];
        for letter in ["a", "\u{e9}", "\u{7db2}", "\u{1f600}"] {
            let schema = json!({"type": "object", "description": letter.repeat(850 / letter.len())});
            let input = Some(InputShape { schema: Some(schema), example: Some(json!({})) });
            let listing = Listing { summary: letter.repeat(2000), input, ..listings().remove(1).unwrap() };
            let amount = Usdc::from_micro(500_000);
            let quote =
                Quote::offer(Purchase { tool: "x", body: &[1; 32] }, None, amount, now, Duration::from_secs(900));
            let offer = Offer {
                config: &config,
                forms: &forms,
                tool,
                listing: Some(&listing),
                asked: None,
                resource: "https://api.example.com/v1/soul/counter/services/statistics/execute",
                quote,
                quote_id: "quote_AbC-_9",
                credits_balance: None,
                by_token: false,
            };
            let header = offer.header(&offer.words("payment_required"));
            let said = String::from_utf8(base64_any(&header).unwrap()).unwrap();
            let escaped: usize = said.chars().map(|c| if c.is_ascii() { 1 } else { 6 * c.len_utf16() }).sum();
            assert!(
                header.len() <= MAX_HEADER_BYTES && escaped * 4 / 3 < 6 * 1024,
                "{letter}: {} {escaped}",
                header.len()
            );
        }
    }

    /// Joined pieces equal the answer rendered whole.
    #[test]
    fn joined_pieces_equal_the_answer_rendered_whole() {
        let (config, forms) = (config(), Forms::default());
        let resources = [
            "https://api.example.com/v1/tools/search",
            "https://api.example.com/v1/tools/search?",
            "https://[::1]:8402/v1/soul/a%22b/services/\u{e4}\"\\/execute",
            "",
            "<word 0>",
            "\"<word 4>\",\"accepts\":[]",
        ];
        let now = Timestamp::from_secs(1_795_000_000);
        let purchase = Purchase { tool: "x", body: &[1; 32] };
        let amounts = [1, 5_000, 1_000_001, 123_456_789_012].map(Usdc::from_micro);
        let credits = [Usdc::ZERO, Usdc::from_micro(1), Usdc::from_micro(u64::MAX)];
        let mut lengths = [0; WAYS.len()];
        for tool in CATALOG.iter().chain(MARKET).copied().chain([TOP_UP]) {
            for (case, listing) in listings().iter().enumerate() {
                for (index, resource) in resources.iter().enumerate() {
                    let amount = amounts[(case + index) % amounts.len()];
                    let quote = Quote::offer(purchase, None, amount, now, Duration::from_secs(900));
                    let quote = quote.with_credits(credits[index % credits.len()]);
                    let credits_balance = (index % 2 == 1).then_some(Usdc::from_micro(7));
                    let offer = Offer {
                        config: &config,
                        forms: &forms,
                        tool,
                        listing: listing.as_ref(),
                        asked: None,
                        resource,
                        quote,
                        quote_id: "quote_AbC-_9",
                        credits_balance,
                        by_token: index % 3 == 1,
                    };
                    let (words, form) = (offer.words("payment_required"), forms.of(&config, tool));
                    let whole = unpaid(&config, bazaar::http(tool), |word| words.value(word));
                    let pieces: Value = serde_json::from_str(&form.unpaid.fill(&words)).unwrap();
                    assert_eq!(pieces, whole, "{}", tool.name);
                    assert_eq!(pieces["accepts"][0]["resource"], *resource);

                    let header = form.header(&config, tool, &words);
                    let said: Value = serde_json::from_slice(&base64_any(&header).unwrap()).unwrap();
                    let way =
                        WAYS.iter().position(|way| said == challenge(&config, way(tool), |word| words.value(word)));
                    let way = way.unwrap_or_else(|| panic!("{}: {said}", tool.name));
                    lengths[way] += 1;
                    // Stored seller texts have no control characters, so the last case is only a test.
                    assert!(header.len() <= MAX_HEADER_BYTES || way == WAYS.len() - 1, "{}", tool.name);
                    assert!(way == 0 || listing.is_some(), "{} has too long a summary", tool.name);
                }
            }
        }
        assert!(lengths.iter().all(|times| *times > 0), "every way of describing the call was taken: {lengths:?}");
    }
}
