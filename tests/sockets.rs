//! `/v1/requests/subscribe`: real WebSocket clients before, during and after a job; strangers, invalid messages, dead
//! connections, limits; and the cost of a push.

use std::time::{Duration, Instant};

use base::ids::{AgentId, RequestId};
use futures_util::future::join_all;
use futures_util::{SinkExt, StreamExt};
use gate::jobs::job::{self, Job, Place, StoredResult};
use gate::jobs::store;
use gate::push::rows::{self, Watching};
use gate::push::{MAX_CONNECTIONS, Pusher, Sender, text_of};
use local::Stack;
use local::stack::Background;
use platform::config::Config;
use platform::net::PlainHttp;
use platform::store::{Db, Write};
use serde_json::{Value, json};
use tokio::net::TcpStream;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::client::IntoClientRequest;
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;
use tokio_tungstenite::tungstenite::{Error, Message};
use tools::Mode;

use crate::souls_market::{Shop, text};
use crate::support::payer::header;
use crate::support::proxy::{Life, Proxy, Seen};
use crate::support::{Payer, READ_PATH, VIN, VIN_PATH, eventually, run, stack, stack_with};

const PATH: &str = "/v1/requests/subscribe";

/// The client side of a connection.
struct Client(WebSocketStream<TcpStream>);

impl Client {
    /// Connects with these headers and this query.
    async fn try_connect(stack: &Stack, query: &str, headers: &[(&str, &str)]) -> Result<Client, (u16, Value)> {
        let host = stack.base_url.strip_prefix("http://").unwrap();
        let mut request = format!("ws://{host}{PATH}{query}").into_client_request().unwrap();
        for (name, value) in headers {
            request.headers_mut().append(http::HeaderName::try_from(*name).unwrap(), value.parse().unwrap());
        }
        let stream = TcpStream::connect(host).await.unwrap();
        match tokio_tungstenite::client_async(request, stream).await {
            Ok((stream, _)) => Ok(Client(stream)),
            Err(Error::Http(answer)) => {
                let body = answer.body().clone().unwrap_or_default();
                Err((answer.status().as_u16(), serde_json::from_slice(&body).unwrap_or_default()))
            }
            Err(error) => panic!("{error}"),
        }
    }

    /// Connects as the public SDK does, with everything in the URL.
    async fn connect(stack: &Stack, payer: &Payer) -> Client {
        let query = format!("?wallet={}&proof={}", payer.address(), escaped(&payer.proof("read")));
        Client::try_connect(stack, &query, &[]).await.unwrap_or_else(|refused| panic!("{refused:?}"))
    }

    async fn say(&mut self, message: &Value) {
        self.0.send(Message::text(message.to_string())).await.unwrap();
    }

    async fn next(&mut self) -> Value {
        let next = tokio::time::timeout(Duration::from_secs(30), self.0.next()).await.expect("a message in time");
        serde_json::from_str(next.expect("an open connection").expect("a message").to_text().unwrap()).unwrap()
    }

    /// Whether no message arrives for a while.
    async fn is_quiet(&mut self) -> bool {
        tokio::time::timeout(Duration::from_millis(600), self.0.next()).await.is_err()
    }

    /// Subscribes to the caller's jobs and returns their states.
    async fn subscribe(&mut self, ids: &[&str]) -> Vec<Value> {
        self.say(&json!({"subscribe": ids})).await;
        let ack = self.next().await;
        assert_eq!(ack, json!({"type": "subscribed", "requests": ids, "rejected": []}));
        let mut states = Vec::new();
        for _ in ids {
            states.push(self.next().await);
        }
        states
    }

    /// The messages until a job is over, including the last one.
    async fn until_over(&mut self, id: &str) -> Vec<Value> {
        let mut told = Vec::new();
        loop {
            let message = self.next().await;
            let over =
                message["request_id"] == id && ["completed", "failed"].iter().any(|end| message["status"] == *end);
            told.push(message);
            if over {
                return told;
            }
        }
    }
}

fn escaped(text: &str) -> String {
    text.replace('+', "%2B").replace('/', "%2F").replace('=', "%3D")
}

async fn read_page(payer: &Payer, stack: &Stack) -> String {
    let accepted = payer.buy(READ_PATH, &json!({"url": format!("{}/plain", stack.site_url)})).await.json();
    accepted["request_id"].as_str().unwrap_or_else(|| panic!("{accepted}")).to_owned()
}

/// Buys a job of a soul. Its worker ends it when the test does so.
async fn sold_job(shop: &Shop, payer: &Payer) -> String {
    let answer = payer.buy(&shop.execute_path(), &text("two words")).await;
    assert_eq!(answer.status, 202, "{}", answer.text);
    let body = answer.json();
    let job = body["soul_job_id"].as_str().unwrap_or_else(|| panic!("{body}"));
    RequestId::of_soul_job(job).unwrap().to_string()
}

fn soul_job(id: &str) -> String {
    id.parse::<RequestId>().unwrap().soul_job()
}

#[test]
fn a_job_is_followed_before_during_and_after() {
    run(async {
        let stack = stack().await;
        let shop = Shop::open(&stack, "followed").await;
        let payer = Payer::new(&stack).await;
        let id = sold_job(&shop, &payer).await;
        let (mut early, mut late) = (Client::connect(&stack, &payer).await, Client::connect(&stack, &payer).await);

        let [state] = &early.subscribe(&[&id]).await[..] else { panic!("one state") };
        assert!(["pending", "processing"].iter().any(|status| state["status"] == *status), "{state}");
        shop.claim(&soul_job(&id)).await;
        let progress = json!({"message": "half of it", "percent": 50});
        let said = shop.send("POST", &format!("/jobs/{}/progress", soul_job(&id)), &progress).await;
        assert_eq!(said.status, 200, "{}", said.text);
        loop {
            let told = early.next().await;
            assert_eq!((&told["request_id"], &told["status"]), (&json!(id), &json!("processing")), "{told}");
            if told["progress"] == progress {
                break;
            }
        }
        let [state] = &late.subscribe(&[&id]).await[..] else { panic!("one state") };
        assert_eq!((&state["status"], &state["progress"]), (&json!("processing"), &progress));

        let done = shop.send("POST", &format!("/jobs/{}/complete", soul_job(&id)), &json!({"result": "done"})).await;
        assert_eq!(done.status, 200, "{}", done.text);
        let polled = payer.finished(&id).await;
        for client in [&mut early, &mut late] {
            let told = client.until_over(&id).await;
            let last = told.last().unwrap();
            for member in ["request_id", "status", "result", "updated_at"] {
                assert_eq!(last[member], polled[member], "{member}");
            }
            assert_eq!(last.as_object().unwrap().len(), 4, "what the contract names and nothing else: {last}");
            assert!(client.is_quiet().await, "an end is told once");
        }
        // No subscription is left. A client that subscribes after the end gets the result at once.
        let left = rows::subscribers(&stack.app.db, id.parse().unwrap(), stack.app.clock.now()).await.unwrap();
        assert!(left.is_empty(), "{left:?}");
        assert_eq!(early.subscribe(&[&id]).await[0]["status"], "completed");
        let left = rows::subscribers(&stack.app.db, id.parse().unwrap(), stack.app.clock.now()).await.unwrap();
        assert!(left.is_empty(), "{left:?}");

        // A job of a tool, followed from its purchase; and one that fails.
        let id = read_page(&payer, &stack).await;
        early.say(&json!({"subscribe": [id]})).await;
        assert!(early.until_over(&id).await.last().unwrap()["result"]["markdown"].is_string());
        let failing = payer.buy(READ_PATH, &json!({"url": "http://no-such-host.invalid/"})).await.json();
        let id = failing["request_id"].as_str().unwrap();
        early.say(&json!({"subscribe": [id]})).await;
        let told = early.until_over(id).await;
        let last = told.last().unwrap();
        assert_eq!((&last["status"], &last["error_code"]), (&json!("failed"), &json!("provider_unavailable")));
        assert!(last["error"].is_string() && last.get("result").is_none(), "{last}");
    });
}

#[test]
fn strangers_learn_nothing_about_a_job() {
    run(async {
        let stack = stack().await;
        let (owner, stranger) = (Payer::new(&stack).await, Payer::new(&stack).await);
        let bought = owner.buy(VIN_PATH, &json!({"vin": VIN})).await.json();
        let own = stranger.buy(VIN_PATH, &json!({"vin": VIN})).await.json()["data"]["request_id"].clone();
        let foreign = bought["data"]["request_id"].as_str().unwrap_or_else(|| panic!("{bought}"));
        let unknown = "3f6b2f0e-0000-4000-8000-000000000000";
        let mut client = Client::connect(&stack, &stranger).await;
        client.say(&json!({"subscribe": [foreign, own, unknown, "nonsense", foreign]})).await;
        let ack = client.next().await;
        let rejected = json!([foreign, unknown, "nonsense"]);
        assert_eq!(ack, json!({"type": "subscribed", "requests": [own], "rejected": rejected}));
        assert_eq!(client.next().await["request_id"], own);
        assert!(client.is_quiet().await);
        for id in [foreign, unknown] {
            let id: RequestId = id.parse().unwrap();
            assert!(rows::subscribers(&stack.app.db, id, stack.app.clock.now()).await.unwrap().is_empty());
            let job = store::load_latest(&stack.app.db, id).await.unwrap();
            assert!(job.is_none_or(|job| !job.watched), "a stranger leaves no mark");
        }
    });
}

#[test]
fn the_upgrade_requires_a_proof() {
    run(async {
        let stack = stack().await;
        let (payer, other) = (Payer::new(&stack).await, Payer::new(&stack).await);
        let (wallet, foreign) = (payer.address().to_string(), other.address().to_string());
        let refused =
            async |query: String, headers: &[(&str, &str)]| match Client::try_connect(&stack, &query, headers).await {
                Ok(_) => panic!("{query} {headers:?} was let in"),
                Err((status, body)) => {
                    (status, body["error"].as_str().unwrap_or_default().to_owned(), body["reason"].clone())
                }
            };
        let no = |status: u16, error: &str, reason: Value| (status, error.to_owned(), reason);
        let bad = |reason: &str| no(401, "invalid_proof", json!(reason));
        let proof = |proof: &str| format!("?wallet={wallet}&proof={}", escaped(proof));

        // Older SDKs send no proof. They poll instead.
        assert_eq!(refused(format!("?wallet={wallet}"), &[]).await, no(401, "proof_required", Value::Null));
        assert_eq!(refused(String::new(), &[]).await, no(401, "proof_required", Value::Null));
        assert_eq!(refused(proof("forged"), &[]).await, bad("malformed"));
        assert_eq!(refused(proof(&other.proof("read")), &[]).await, bad("agent_mismatch"));
        assert_eq!(refused(proof(&payer.proof_at("read", 1_700_000_000)), &[]).await, bad("expired"));
        let mut forged: Value =
            serde_json::from_slice(&base::encoding::base64_any(&other.proof("read")).unwrap()).unwrap();
        forged["agent"] = json!(wallet);
        assert_eq!(refused(proof(&header(&forged)), &[]).await, bad("invalid"));
        assert_eq!(refused(format!("?wallet={}", "x".repeat(5000)), &[]).await.0, 400);
        // A bearer token in a URL is never accepted, in whatever parameter.
        let token = payer.token(&stack).await;
        let secret = token.strip_prefix("Bearer ").unwrap();
        for name in ["token", "access_token", "authorization", "proof"] {
            assert_eq!(refused(format!("?wallet={wallet}&{name}={secret}"), &[]).await.0, 401, "{name}");
        }
        let named = [("authorization", token.as_str()), ("x-agent-id", wallet.as_str())];
        assert_eq!(refused(format!("?wallet={foreign}"), &named).await, no(403, "agent_mismatch", Value::Null));

        // Accepted once: a proof in the URL (also with its plus signs unescaped) or in a header. A token is accepted in
        // a header.
        let good = payer.proof("read");
        Client::try_connect(&stack, &proof(&good), &[]).await.unwrap();
        assert_eq!(refused(proof(&good), &[]).await, bad("already_used"));
        Client::try_connect(&stack, &format!("?proof={}", payer.proof("write")), &[]).await.unwrap();
        let (proof, id) = (payer.proof("read"), payer.address().to_string());
        let headers = [("X-Agent-ID", id.as_str()), ("X-Agent-Proof", proof.as_str())];
        Client::try_connect(&stack, "", &headers).await.unwrap();
        let mut by_token = Client::try_connect(&stack, "", &[("authorization", &token)]).await.unwrap();
        by_token.say(&json!({"type": "ping"})).await;
        assert_eq!(by_token.next().await, json!({"type": "pong"}));
        // A request without an upgrade gets an ordinary answer.
        assert_eq!(payer.get(PATH).await.error(), (404, "not_found".to_owned()));
        assert_eq!(payer.client.post(PATH, &[], &json!({})).await.status, 405);

        // A revoked token no longer works, even on an open connection.
        let id = read_page(&payer, &stack).await;
        by_token.say(&json!({"subscribe": [id]})).await;
        assert_eq!(by_token.next().await["requests"], json!([id]));
        by_token.until_over(&id).await;
        let tokens = payer.get("/v1/agents/me/access-tokens").await.json();
        let token = tokens["data"]["tokens"][0]["id"].as_str().unwrap_or_else(|| panic!("{tokens}")).to_owned();
        assert_eq!(
            payer.change("DELETE", &format!("/v1/agents/me/access-tokens/{token}"), &json!({})).await.status,
            200
        );
        by_token.say(&json!({"subscribe": [id]})).await;
        assert_eq!(by_token.next().await["error"], "access_token_revoked");
    });
}

#[test]
fn invalid_messages_are_answered_and_keep_the_connection_open() {
    run(async {
        let stack = stack().await;
        let payer = Payer::new(&stack).await;
        let mut client = Client::connect(&stack, &payer).await;
        let many = json!({"subscribe": (0..101).map(|id| id.to_string()).collect::<Vec<_>>()}).to_string();
        let deep = "[".repeat(20_000);
        let long = json!({"subscribe": ["x".repeat(30_000)]}).to_string();
        let texts = ["", "{", "null", "[]", "7", "{}", r#"{"subscribe":7}"#, r#"{"type":"pong"}"#, &many, &deep, &long];
        for text in texts {
            client.0.send(Message::text(text.to_owned())).await.unwrap();
            let answer = client.next().await;
            assert_eq!((&answer["type"], &answer["error"]), (&json!("error"), &json!("invalid_request")), "{text}");
            assert!(answer["message"].is_string() && answer["details"].is_array(), "{answer}");
        }
        for bytes in [vec![0xff, 0xfe], vec![0; 10_000]] {
            client.0.send(Message::binary(bytes)).await.unwrap();
            assert_eq!(client.next().await["error"], "invalid_request");
        }
        // Binary frames that hold text are read as text.
        client.0.send(Message::binary(json!({"type": "ping"}).to_string())).await.unwrap();
        assert_eq!(client.next().await, json!({"type": "pong"}));
        client.0.send(Message::Ping(Vec::new().into())).await.unwrap();
        assert!(matches!(client.0.next().await, Some(Ok(Message::Pong(_)))));
        client.say(&json!({"subscribe": [], "unsubscribe": ["nonsense"]})).await;
        assert_eq!(client.next().await, json!({"type": "unsubscribed", "requests": []}));
        assert_eq!(client.next().await, json!({"type": "subscribed", "requests": [], "rejected": []}));

        // Only a frame that is too large for the gateway closes its own connection, with a reason. Others stay open.
        let mut huge = Client::connect(&stack, &payer).await;
        huge.0.send(Message::text("x".repeat(33 * 1024))).await.unwrap();
        loop {
            match huge.0.next().await {
                Some(Ok(Message::Close(Some(frame)))) => break assert_eq!(frame.code, CloseCode::Size),
                Some(Ok(_)) => {}
                other => panic!("{other:?}"),
            }
        }
        client.say(&json!({"type": "ping"})).await;
        assert_eq!(client.next().await, json!({"type": "pong"}));
    });
}

/// The number of rows in a partition of the agents table.
async fn rows_of(db: &Db, pk: String) -> usize {
    let query = platform::store::db::Query::new(&db.tables.agents, "#pk = :pk", 1000).latest().bind("pk", pk).unwrap();
    db.query::<Value>(query).await.unwrap().len()
}

#[test]
fn dead_connections_and_their_subscriptions_are_removed() {
    run(async {
        let stack = stack().await;
        let (db, now) = (&stack.app.db, || stack.app.clock.now());
        let shop = Shop::open(&stack, "mourned").await;
        let payer = Payer::new(&stack).await;
        let id = sold_job(&shop, &payer).await;
        let request: RequestId = id.parse().unwrap();
        let slots = || rows_of(db, format!("SOCKETS#{}", payer.agent()));

        // One client closes, one just drops the connection, and one is gone without notice from the gateway.
        let (mut polite, mut rude) = (Client::connect(&stack, &payer).await, Client::connect(&stack, &payer).await);
        let mut alive = Client::connect(&stack, &payer).await;
        for client in [&mut polite, &mut rude, &mut alive] {
            client.subscribe(&[&id]).await;
        }
        assert!(rows::open(db, "ghost=", payer.agent(), None, now()).await.unwrap());
        let ghost = rows::load(db, "ghost=", now()).await.unwrap().unwrap();
        assert_eq!(rows::watch(db, "ghost=", &ghost, &[request]).await.unwrap(), Watching::Yes);
        assert_eq!((rows::subscribers(db, request, now()).await.unwrap().len(), slots().await), (4, 4));
        polite.0.close(None).await.unwrap();
        drop(rude);
        eventually("two connections to be forgotten", || async { (slots().await == 2).then_some(()) }).await;
        assert_eq!(rows::subscribers(db, request, now()).await.unwrap().len(), 2);

        // The next push discovers the missing client. The live one gets the message.
        shop.claim(&soul_job(&id)).await;
        let progress = json!({"message": "going on", "percent": 1});
        shop.send("POST", &format!("/jobs/{}/progress", soul_job(&id)), &progress).await;
        assert_eq!(alive.next().await["progress"], progress);
        eventually("the ghost to be forgotten", || async { (slots().await == 1).then_some(()) }).await;
        assert_eq!(rows::subscribers(db, request, now()).await.unwrap().len(), 1);
        assert!(rows::load(db, "ghost=", now()).await.unwrap().is_none());

        // A subscription that was written while its connection was being removed.
        db.write(
            Write::put(
                &db.tables.agents,
                platform::store::Key::new(format!("WATCH#{id}"), "late="),
                &json!({
                    "until": now().plus(Duration::from_secs(60)).millis(), "expires": 0,
                }),
            )
            .unwrap(),
        )
        .await
        .unwrap();
        alive.say(&json!({"unsubscribe": [id]})).await;
        assert_eq!(alive.next().await, json!({"type": "unsubscribed", "requests": [id]}));
        shop.send("POST", &format!("/jobs/{}/complete", soul_job(&id)), &json!({"result": "done"})).await;
        eventually("it to be met as gone", || async {
            rows::subscribers(db, request, now()).await.unwrap().is_empty().then_some(())
        })
        .await;
        assert!(alive.is_quiet().await, "who unsubscribed is told nothing");

        // A message on an unknown connection closes it, so that its client reconnects. Only signed requests may send to
        // connections.
        let query = platform::store::db::Query::new(&db.tables.agents, "#pk = :pk", 9).latest();
        let slot: Vec<Value> = db.query(query.bind("pk", format!("SOCKETS#{}", payer.agent())).unwrap()).await.unwrap();
        let connection = slot[0]["connection"].as_str().unwrap();
        let outsider = crate::support::Client::new(stack.config.aws.socket_endpoint.as_deref().unwrap());
        let path = format!("/@connections/{}", escaped(connection));
        assert_eq!(outsider.send("POST", &path, &[], "hello").await.unwrap().status, 403);
        rows::close(db, connection).await;
        alive.say(&json!({"subscribe": [id]})).await;
        assert!(matches!(alive.0.next().await, Some(Ok(Message::Close(_)))));
    });
}

#[test]
fn concurrent_connections_and_subscriptions_stay_within_limits() {
    run(async {
        let stack = stack().await;
        let (db, now) = (&stack.app.db, stack.app.clock.now());
        let payer = Payer::new(&stack).await;
        let names: Vec<String> = (0..120).map(|number| format!("at-once-{number}")).collect();
        let opened = join_all(names.iter().map(|name| rows::open(db, name, payer.agent(), None, now))).await;
        let opened: Vec<_> = names.iter().zip(opened).filter(|(_, opened)| matches!(opened, Ok(true))).collect();
        // Some may have lost the race for a slot too often, but there are never too many.
        assert!(opened.len() <= usize::from(MAX_CONNECTIONS) && opened.len() >= 50, "{}", opened.len());
        let mut number = 0;
        while rows::open(db, &format!("filler-{number}"), payer.agent(), None, now).await.unwrap() {
            number += 1;
        }
        assert_eq!(rows_of(db, format!("SOCKETS#{}", payer.agent())).await, usize::from(MAX_CONNECTIONS));
        let query = format!("?proof={}", escaped(&payer.proof("read")));
        let refused = Client::try_connect(&stack, &query, &[]).await.err().unwrap();
        assert_eq!((refused.0, &refused.1["error"]), (429, &json!("too_many_connections")));
        // Another agent has its own limit. A closed connection frees its slot.
        Client::connect(&stack, &Payer::with(&stack, 0).await).await;
        let (gone, _) = opened[0];
        rows::close(db, gone).await;
        Client::connect(&stack, &payer).await;

        // One connection has at most a hundred subscriptions, also with concurrent requests.
        let (name, _) = opened[1];
        let connection = rows::load(db, name, now).await.unwrap().unwrap();
        let wishes: Vec<Vec<RequestId>> = (0..4).map(|_| (0..30).map(|_| RequestId::random()).collect()).collect();
        let told = join_all(wishes.iter().map(|wish| rows::watch(db, name, &connection, wish))).await;
        let told: Vec<Watching> = told.into_iter().map(Result::unwrap).collect();
        assert_eq!(told.iter().filter(|told| **told == Watching::Yes).count(), 3, "{told:?}");
        assert_eq!(told.iter().filter(|told| **told == Watching::Full).count(), 1, "{told:?}");
    });
}

/// The job ends after each single database request of a subscription. The client always learns of the end.
#[test]
fn a_job_that_ends_during_subscription_is_reported() {
    run(async {
        let database = local::database::start(None).await.expect("a database");
        let proxy = Proxy::start(&database, Life::immortal()).await;
        let stack = stack_with(|options| {
            let options = options.with("AWS_ENDPOINT_URL", &proxy.url);
            local::Options { background: Background::Worker, ..options }
        })
        .await;
        let direct = Pipe::new(&stack, &database);
        let http = platform::store::aws::SignedHttp::new(PlainHttp::new(None), &direct.config.aws);
        let consumer = local::stream::Consumer::Pusher(Box::new(pusher(
            &stack,
            &direct.db,
            stack.config.aws.socket_endpoint.clone(),
        )));
        tokio::spawn(local::stream::follow(stack.app.clone(), consumer, http, database.clone()));
        let payer = Payer::with(&stack, 10_000_000).await;
        let shop = Shop::open(&stack, "just-then").await;
        let mut client = Client::connect(&stack, &payer).await;
        for moment in 1..=7 {
            let id = sold_job(&shop, &payer).await;
            eventually("the job to be handed over", || async {
                let job = store::load_latest(&direct.db, id.parse().unwrap()).await.unwrap().unwrap();
                (job.handed_until.is_some() && job.lease_until.is_none()).then_some(())
            })
            .await;
            let (db_url, prefix, request) = (database.clone(), stack.environment.clone(), id.clone());
            let mut made = 0;
            proxy.inject_afterwards(move |_| {
                made += 1;
                if made == moment {
                    end_elsewhere(&db_url, &prefix, &request);
                }
                None
            });
            client.say(&json!({"subscribe": [id]})).await;
            if moment == 7 {
                // More requests than a subscription makes: the job ends after all of them.
                assert_eq!(client.next().await["type"], "subscribed");
                proxy.heal();
                end_elsewhere(&database, &stack.environment, &id);
            }
            let told = client.until_over(&id).await;
            assert_eq!(told.last().unwrap()["status"], "failed", "after request {moment}: {told:?}");
            proxy.heal();
        }
    });
}

/// Direct access to the database, without the proxy.
struct Pipe {
    config: Config,
    db: Db,
}

impl Pipe {
    fn new(stack: &Stack, database: &str) -> Pipe {
        let mut config = (*stack.config).clone();
        config.aws.endpoint = Some(database.to_owned());
        let db = Db::new(platform::store::aws::Aws::new(&config.aws).unwrap().dynamodb(), config.tables.clone());
        Pipe { config, db }
    }
}

/// Ends a job at once, from another thread that does not wait for this runtime.
fn end_elsewhere(database: &str, environment: &std::collections::HashMap<String, String>, id: &str) {
    let mut config = Config::read(|name| environment.get(name).cloned()).unwrap();
    config.aws.endpoint = Some(database.to_owned());
    let request: RequestId = id.parse().unwrap();
    let end = async move {
        let db = Db::new(platform::store::aws::Aws::new(&config.aws).unwrap().dynamodb(), config.tables.clone());
        let error = tools::ToolError::internal("it ended just then");
        let set = "SET #outcome = :failed, #error = :error REMOVE #open, #due, #handed_until";
        let write = Write::update(&db.tables.jobs, job::key(request), set).bind("failed", "failed").unwrap();
        db.write(write.bind("error", &error).unwrap()).await.unwrap();
    };
    let thread = std::thread::spawn(move || {
        tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(end);
    });
    // The database runs on this runtime too, so the runtime gets another worker thread while this one waits.
    tokio::task::block_in_place(|| thread.join().unwrap());
}

fn pusher(stack: &Stack, db: &Db, endpoint: Option<String>) -> Pusher {
    let mut config = (*stack.config).clone();
    config.aws.socket_endpoint = endpoint;
    let sender = Sender::new(&config, &PlainHttp::new(None)).unwrap();
    Pusher { db: db.clone(), blobs: stack.app.blobs.clone(), sender }
}

fn units(seen: &[Seen]) -> (f64, f64) {
    (seen.iter().map(|seen| seen.read_units).sum(), seen.iter().map(|seen| seen.write_units).sum())
}

/// Counts on the wire what subscribing and pushing cost. Nothing grows with the subscriptions of others.
#[test]
fn the_cost_of_a_push_depends_only_on_its_own_subscribers() {
    run(async {
        let database = local::database::start(None).await.expect("a database");
        let database = Proxy::start(&database, Life::immortal()).await;
        let stack = stack_with(|options| {
            let options = options.with("AWS_ENDPOINT_URL", &database.url).with("PAYMENT_HOLD_MS", "0");
            local::Options { background: Background::Worker, ..options }
        })
        .await;
        let (db, now) = (&stack.app.db, stack.app.clock.now());
        let pusher = pusher(&stack, db, stack.config.aws.socket_endpoint.clone());
        let shop = Shop::open(&stack, "counted-pushes").await;
        let payer = Payer::new(&stack).await;
        let id = sold_job(&shop, &payer).await;
        shop.claim(&soul_job(&id)).await;
        let load = async || store::load_latest(db, id.parse().unwrap()).await.unwrap().unwrap();
        database.take_seen();

        // A job without subscribers never invokes the pusher, so there is nothing to count.
        let unwatched = load().await;
        assert!(!unwatched.watched);
        database.take_seen();

        let mut client = Client::connect(&stack, &payer).await;
        let connect = units(&database.take_seen());
        client.subscribe(&[&id]).await;
        let subscribe = units(&database.take_seen());
        let job = load().await;
        database.take_seen();
        let push = async || {
            let began = Instant::now();
            pusher.tell(&job, now).await.unwrap();
            (units(&database.take_seen()), began.elapsed())
        };
        let (alone, _) = push().await;
        assert_eq!(client.next().await["request_id"], id);

        // Another agent follows ten thousand jobs on a hundred connections.
        let crowd = AgentId::of(evm::Address::from_bytes([7; 20]));
        for connection in 0..MAX_CONNECTIONS {
            let name = format!("crowd-{connection}");
            assert!(rows::open(db, &name, crowd, None, now).await.unwrap());
            let row = rows::load(db, &name, now).await.unwrap().unwrap();
            let requests: Vec<RequestId> = (0..100).map(|_| RequestId::random()).collect();
            assert_eq!(rows::watch(db, &name, &row, &requests).await.unwrap(), Watching::Yes);
        }
        database.take_seen();
        let (beside, took) = push().await;
        assert_eq!(client.next().await["request_id"], id);
        assert_eq!(beside, alone, "the same units beside 10,000 subscriptions of another's");
        assert_eq!(alone, (1.0, 0.0), "one query of the job's own partition");

        // A result too large for a message is not truncated. The client gets a "poll" message, which has no
        // `request_id`, so that clients which do not know it poll as well.
        let place = Place::Inline(json!("x".repeat(200_000)).to_string());
        let (provider, provider_request_id) = ("test".to_owned(), None);
        let mode = Mode::Embedded;
        let result = Some(StoredResult { place, provider, provider_request_id, mode });
        let large = Job { outcome: Some(job::Outcome::Completed), result, ..job.clone() };
        let told: Value = serde_json::from_str(&text_of(&*stack.app.blobs, &large).await.unwrap()).unwrap();
        assert_eq!((&told["type"], &told["requests"], told.get("request_id")), (&json!("poll"), &json!([id]), None));

        // The end also removes the subscription.
        let over = Job { outcome: Some(job::Outcome::Failed), ..job.clone() };
        pusher.tell(&over, now).await.unwrap();
        let end = units(&database.take_seen());
        assert_eq!(client.next().await["status"], "failed");
        println!(
            "units (read, write): connect {connect:?}, subscribe to one {subscribe:?}, push {alone:?}, beside 10,000 \
             others {beside:?} in {took:?}, last push {end:?}"
        );
        assert!(connect.1 <= 6.0, "source, all sources, proof, rate limit, slot, connection: {connect:?}");
        assert!(subscribe.1 <= 5.0 && subscribe.0 <= 2.0, "rate limit, connection, subscription, mark: {subscribe:?}");
        assert_eq!(end, (1.0, 2.0), "the subscription, and its place on the connection");
    });
}

/// A connection that hangs, one that fails and one that is gone delay no other.
#[test]
fn a_slow_connection_delays_no_other() {
    run(async {
        let stack = stack().await;
        let (db, now) = (&stack.app.db, stack.app.clock.now());
        let payer = Payer::new(&stack).await;
        let bought = payer.buy(VIN_PATH, &json!({"vin": VIN})).await.json();
        let id: RequestId = bought["data"]["request_id"].as_str().unwrap().parse().unwrap();
        let told = std::sync::Arc::new(std::sync::Mutex::new(Vec::<(String, Duration)>::new()));
        let (listener, began, log) =
            (tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap(), Instant::now(), told.clone());
        let endpoint = format!("http://{}/live", listener.local_addr().unwrap());
        let gateway = axum::Router::new().route(
            "/live/@connections/{id}",
            axum::routing::post(async move |axum::extract::Path(id): axum::extract::Path<String>| {
                if id.starts_with("slow") {
                    tokio::time::sleep(Duration::from_secs(60)).await;
                }
                log.lock().unwrap().push((id.clone(), began.elapsed()));
                http::StatusCode::from_u16(match () {
                    () if id.starts_with("gone") => 410,
                    () if id.starts_with("busy") => 503,
                    () => 200,
                })
                .unwrap()
            }),
        );
        tokio::spawn(async move { drop(axum::serve(listener, gateway).await) });
        for name in ["slow-1", "slow-2", "gone=", "busy=", "good-1=", "good-2="] {
            assert!(rows::open(db, name, payer.agent(), None, now).await.unwrap());
            let row = rows::load(db, name, now).await.unwrap().unwrap();
            rows::watch(db, name, &row, &[id]).await.unwrap();
        }
        let job = store::load_latest(db, id).await.unwrap().unwrap();
        let started = began.elapsed();
        pusher(&stack, db, Some(endpoint)).tell(&job, now).await.unwrap();
        assert!(began.elapsed() - started < Duration::from_secs(5), "a slow connection is given up");
        let told = told.lock().unwrap().clone();
        let of = |name: &str| told.iter().filter(|(id, _)| id.starts_with(name)).map(|(_, at)| *at).collect::<Vec<_>>();
        assert_eq!((of("good").len(), of("gone").len(), of("busy").len()), (2, 1, 3));
        assert!(of("good").iter().all(|at| *at - started < Duration::from_secs(1)), "{told:?}");
        assert!(rows::load(db, "gone=", now).await.unwrap().is_none());
        assert_eq!(rows::subscribers(db, id, now).await.unwrap().len(), 0, "the job is over");
    });
}
