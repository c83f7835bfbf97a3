//! The operator's prices: everything that shows a price shows theirs, and an open quote keeps its own.

use std::collections::BTreeMap;

use base::ids::RequestId;
use base::money::Usdc;
use catalog::CATALOG;
use gate::jobs::{Job, store};
use local::{Options, Stack};
use serde_json::{Value, json};
use tools::spec::{Answer, Price};

use crate::mcp_calls::{self, tool_list};
use crate::souls_market::{Shop, text};
use crate::support::{Answer as Response, Client, Payer, VIN, VIN_PATH, chain, equipped_stack_with, run, stack_with};

/// Another price for every tool; those of whole cents for some, so that checkout sells them.
fn table() -> BTreeMap<&'static str, Usdc> {
    let other = |(index, price): (usize, Usdc)| match index % 2 {
        0 => 3 * price.micro() + 1_000 + index as u64,
        _ => 10_000 * (7 + index as u64),
    };
    // What a goal costs is its buyer's choice.
    let prices = CATALOG.iter().filter(|tool| tool.fee.is_none()).enumerate();
    prices.map(|(index, tool)| (tool.name, Usdc::from_micro(other((index, tool.price.usual()))))).collect()
}

fn as_variable(table: &BTreeMap<&'static str, Usdc>) -> String {
    json!(table.iter().map(|(name, price)| (*name, price.to_string())).collect::<BTreeMap<_, _>>()).to_string()
}

async fn discovered(client: &Client) -> Vec<Value> {
    let (mut found, mut next) = (Vec::new(), Some(String::new()));
    while let Some(cursor) = next {
        let page = client.get(&format!("/v1/tools/discover?limit=50&cursor={cursor}"), &[]).await.json();
        found.extend(page["tools"].as_array().expect("tools").clone());
        next = page["nextCursor"].as_str().map(str::to_owned);
    }
    found
}

#[test]
fn every_list_and_every_402_shows_the_operators_prices() {
    run(async {
        let table = table();
        let prices = as_variable(&table);
        let stack = equipped_stack_with(|options| options.with("PRICES", prices)).await;
        let client = Client::new(&stack.base_url);

        let discovered = discovered(&client).await;
        let overview = client.get("/", &[]).await.json();
        let openapi = client.get("/openapi.json", &[]).await.json();
        let mut texts = Vec::new();
        for path in ["/pricing", "/pricing.md"] {
            let list = client.get(path, &[]).await.text;
            let apart = "Some are counted apart, 10 a minute together: ";
            let titles = list.split_once(apart).and_then(|(_, after)| after.lines().next()).expect("the limits");
            assert!(titles.contains(CATALOG.find("research_people").expect("a tool").title), "{titles}");
        }
        for path in ["/llms-full.txt", "/skill.md", "/pricing.md"] {
            texts.push((path, client.get(path, &[]).await.text));
        }
        let page = client.get("/pricing", &[]).await.text;
        let listed = mcp_calls::call(&client, &[], "agora_price_list", json!({}), json!({})).await;
        let listed = listed["structuredContent"]["tools"].as_array().expect("a price list").clone();
        let over_mcp: Vec<Value> = tool_list(&client).await.concat();
        let manifest = client.get("/.well-known/acp/manifest.json", &[]).await.json();
        let products = manifest["products"].as_array().expect("products").clone();

        let by = |list: &[Value], member: &str, name: &str| {
            let found = list.iter().find(|tool| tool[member] == name).cloned();
            found.unwrap_or_else(|| panic!("{name} is not listed"))
        };
        for tool in CATALOG.iter() {
            let (name, price) = (tool.name, table.get(tool.name).copied().unwrap_or(tool.price.usual()));
            let decimal = price.to_string();
            assert_eq!(by(&discovered, "name", name)["price_usdc"], decimal, "{name}");
            assert_eq!(by(overview["tools"].as_array().unwrap(), "tool", name)["price_usdc"], decimal, "{name}");
            let mcp_name = tool.mcp_name("Agora");
            assert_eq!(by(&listed, "tool", &mcp_name)["from_usdc"], decimal, "{name}");
            let link = format!("{}{}", stack.base_url, tool.path());
            for (path, text) in &texts {
                let is_row = |line: &&str| line.contains(&format!("{link}`")) || line.contains(&format!("{link})"));
                let row = text.lines().filter(|line| line.contains(" USDC")).find(is_row);
                let row = row.unwrap_or_else(|| panic!("{name} is not in {path}"));
                assert!(row.contains(&format!("{decimal} USDC")), "{path}: {row}");
            }
            assert!(page.contains(&format!("{decimal} USDC")), "{name}");
            let number = price.to_number().to_string();
            for path in tool.paths {
                let described = &openapi["paths"][*path]["post"]["x-payment-info"]["price"];
                let least = if described["mode"] == "fixed" { &described["amount"] } else { &described["min"] };
                assert_eq!(*least, json!(number), "{path}");
            }
            let id = format!("agora-{}", name.replace('_', "-"));
            let product = products.iter().find(|product| product["id"] == id.as_str());
            let is_sold = tool.answer == Answer::Queued && price.micro().is_multiple_of(10_000);
            match tool.price {
                Price::Fixed(_) => {
                    let about = by(&over_mcp, "name", &mcp_name)["description"].as_str().unwrap().to_owned();
                    assert!(about.contains(&format!("Costs {decimal} USDC")), "{about}");
                    assert_eq!(product.is_some(), is_sold, "{name}");
                    if let Some(product) = product {
                        assert_eq!(product["default_price"]["unit_amount"], price.micro() / 10_000, "{name}");
                    }
                }
                Price::Of { .. } | Price::Own(_) | Price::Asked { .. } => assert!(product.is_none(), "{name}"),
            }
            if tool.quote_path.is_none() {
                let key: &[(&str, &str)] = if tool.needs_key { &[("idempotency-key", "one")] } else { &[] };
                let unpaid = client.post(tool.path(), key, &tool.example()).await;
                let asked = unpaid.base64_header("payment-required")["accepts"][0]["amount"].clone();
                // Who asks without a name may have to buy a number. A call has ten minutes, unless it says how many. The
                // example's task in a browser has nine steps at 0.002, and the price in the list is 0.005.
                let micro = price.micro();
                let expected = match name {
                    "sms" => micro + table["phone_number"].micro(),
                    "voice" => micro * 10 + table["phone_number"].micro(),
                    "browser" => micro / 5 * 18,
                    // What the shop of `equipped_stack` takes, and 5 %.
                    "commerce" => 28_060_000,
                    _ => micro,
                };
                assert_eq!(asked, expected.to_string(), "{name}: {}", unpaid.text);
            }
        }
    });
}

/// An asked price follows the operator's as well.
#[test]
fn a_quote_for_mails_is_at_the_operators_price() {
    run(async {
        let stack = stack_with(|options| options.with("PRICES", r#"{"email": "0.0071"}"#)).await;
        let payer = Payer::with(&stack, 0).await;
        let address = payer.address().to_string();
        let others = ["ada", "bob", "eve"].map(|name| format!("{name}@agents.test"));
        let body = json!({"to_address": others, "subject": "Hello", "body": "How are you?"});
        let quote = payer.client.post("/v1/tools/email/quote", &[("x-agent-id", &address)], &body).await;
        assert_eq!(quote.status, 200, "{}", quote.text);
        assert_eq!((&quote.json()["total_cost"], &quote.json()["service_fee"]), (&json!(0.0213), &json!(0.0213)));
    });
}

/// Two processes of one deployment, one after the other, with the same tables.
struct Deployment {
    database: String,
    relayer: Option<String>,
}

impl Deployment {
    async fn new() -> Deployment {
        Deployment { database: local::database::start(None).await.expect("a database"), relayer: None }
    }

    async fn start(&mut self, prices: &str) -> Stack {
        let change = |options: Options| {
            let options = options
                .with("SERVICE_SECRET", "a secret that two processes of one deployment share")
                .with("AWS_ENDPOINT_URL", &self.database)
                .with("PRICES", prices);
            match &self.relayer {
                Some(key) => options.with("RELAYER_PRIVATE_KEY", key),
                None => options,
            }
        };
        let stack = stack_with(change).await;
        self.relayer = stack.environment.get("RELAYER_PRIVATE_KEY").cloned();
        stack
    }
}

/// The job of a paid call. A result that comes at once has the id within its data.
async fn job(stack: &Stack, paid: &Response) -> Job {
    let answer = paid.json();
    let id = answer["request_id"].as_str().or(answer["data"]["request_id"].as_str());
    let id: RequestId = id.expect("an id").parse().expect("an id");
    store::load_latest(&stack.app.db, id).await.expect("the database answers").expect("a job")
}

#[test]
fn an_open_quote_keeps_its_price() {
    run(async {
        let mut deployment = Deployment::new().await;
        let first = deployment.start(r#"{"vin_decode": "0.006"}"#).await;
        let payer = Payer::new(&first).await;
        let body = json!({"vin": VIN});
        let unpaid = payer.client.post(VIN_PATH, &[], &body).await;
        let amount = |answer: &Response| {
            answer.base64_header("payment-required")["accepts"][0]["amount"].as_str().unwrap().to_owned()
        };
        assert_eq!(amount(&unpaid), "6000");
        first.kill().await;

        let second = deployment.start(r#"{"vin_decode": "0.009"}"#).await;
        let payer = payer.at(&second);
        assert_eq!(amount(&payer.client.post(VIN_PATH, &[], &body).await), "9000");
        let payment = payer.pay(&unpaid);
        let paid = payer.client.post(VIN_PATH, &[("payment-signature", &payment)], &body).await;
        assert_eq!(paid.status, 200, "{}", paid.text);
        assert_eq!(job(&second, &paid).await.price.micro(), 6_000);
    });
}

#[test]
fn an_open_quote_keeps_the_platforms_fee() {
    run(async {
        let mut deployment = Deployment::new().await;
        let first = deployment.start(r#"{"platform_fee": "0.05"}"#).await;
        let shop = Shop::open(&first, "sells-at-a-fee").await;
        let (path, body) = (shop.execute_path(), text("two words"));
        let payer = Payer::new(&first).await;
        let pricing = |answer: &Response| answer.json()["context"]["pricing"].clone();
        let unpaid = payer.client.post(&path, &[], &body).await;
        assert_eq!(pricing(&unpaid)["platform_fee"], "0.025000", "{}", unpaid.text);
        assert_eq!(pricing(&unpaid)["seller_revenue"], "0.475000");
        first.kill().await;

        let second = deployment.start(r#"{"platform_fee": "0.50"}"#).await;
        let payer = payer.at(&second);
        assert_eq!(pricing(&payer.client.post(&path, &[], &body).await)["platform_fee"], "0.250000");
        let payment = payer.pay(&unpaid);
        let paid = payer.client.post(&path, &[("payment-signature", &payment)], &body).await;
        assert_eq!(paid.status, 202, "{}", paid.text);
        let split = job(&second, &paid).await.sold.expect("a sale").split;
        assert_eq!((split.fee.micro(), split.revenue.micro()), (25_000, 475_000));
    });
}

/// A bad table stops the start, and the message has every problem.
#[test]
fn a_bad_table_stops_the_start() {
    run(async {
        let start = async |prices: &str| {
            let options = Options::in_memory(chain().await).with("PRICES", prices);
            Stack::start(options).await.err().map(|error| error.to_string())
        };
        let wrong = start(r#"{"web_read": "0", "email": "-1", "platform_fee": "0.9"}"#).await.expect("an error");
        for name in ["web_read", "email", "platform_fee"] {
            assert!(wrong.contains(&format!("PRICES {name} ")), "{wrong}");
        }
        let wrong = start(r#"{"web_raed": "1", "soul": "1"}"#).await.expect("an error");
        assert!(wrong.contains("\"web_raed\", which is not a tool") && wrong.contains("\"soul\""), "{wrong}");
    });
}
