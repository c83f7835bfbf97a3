//! Accounts of the professional network: two agents meet in the local network; limits hold under parallel calls; a grant that ends
//! stops what is queued; what a provider's faults leave open is sent once or said to be open.

mod crashes;
mod faults;
mod settled;
pub mod unipile;

use base::ids::RequestId;
use futures_util::future::join_all;
use local::Stack;
use serde_json::{Value, json};
use tools::spec::Claiming;
use tools_network::action::Kind;
use tools_network::claiming;
use tools_network::providers::local::members;

use crate::support::{Answer, Payer, books, eventually, run, stack_with};

pub const ROOT: &str = "/v1/tools/linkedin";
const ALL: [&str; 5] = ["read", "reply", "view_profile", "react", "invite"];

/// A wallet with credits, and its token.
pub struct Agent {
    pub payer: Payer,
    pub token: String,
}

impl Agent {
    pub async fn new(stack: &Stack) -> Agent {
        let payer = Payer::with(stack, 0).await;
        payer.give_credits(stack, 5_000_000).await;
        let token = payer.token(stack).await;
        Agent { payer, token }
    }

    pub fn at(&self, stack: &Stack) -> Agent {
        Agent { payer: self.payer.at(stack), token: self.token.clone() }
    }

    /// A free route.
    pub async fn get(&self, path: &str) -> Answer {
        self.payer.client.get(&format!("{ROOT}/{path}"), &[("authorization", &self.token)]).await
    }

    pub async fn post(&self, path: &str, body: &Value) -> Answer {
        self.payer.client.post(&format!("{ROOT}/{path}"), &[("authorization", &self.token)], body).await
    }

    /// A paid call with an idempotency key.
    pub async fn buy(&self, path: &str, body: &Value, key: &str) -> Answer {
        let headers = [("authorization", self.token.as_str()), ("idempotency-key", key)];
        self.payer.client.post(&format!("{ROOT}/{path}"), &headers, body).await
    }

    /// Gives an account up.
    pub async fn gives_up(&self, account: &str) -> Value {
        let path = format!("{ROOT}/accounts/{account}");
        let headers = [("authorization", self.token.as_str())];
        let gone = self.payer.client.send("DELETE", &path, &headers, "").await.expect("an answer");
        assert_eq!(gone.status, 200, "{}", gone.text);
        gone.json()
    }

    /// The end of a job, read with the token: it does not matter what time it is.
    pub async fn ended(&self, id: &str) -> Value {
        eventually("the job to end", || async {
            let headers = [("authorization", self.token.as_str())];
            let job = self.payer.client.get(&format!("/v1/requests/{id}"), &headers).await.json();
            (job["status"] == "completed" || job["status"] == "failed").then_some(job)
        })
        .await
    }

    /// Buys, and waits for the end.
    pub async fn done(&self, path: &str, body: &Value, key: &str) -> Value {
        let accepted = self.buy(path, body, key).await;
        assert_eq!(accepted.status, 202, "{path}: {}", accepted.text);
        self.ended(accepted.json()["request_id"].as_str().expect("an id")).await
    }

    /// Connects an account of the local network: its id and its member's.
    pub async fn joins(&self, name: &str) -> (String, String) {
        let wanted = [&ALL[..], &["comment"]].concat();
        let issued = self.post("connect", &json!({"requested_actions": wanted})).await;
        assert_eq!(issued.status, 201, "{}", issued.text);
        let issued = issued.json();
        let code = self.post("local/code", &json!({"name": name})).await.json();
        let url = issued["url"].as_str().expect("a link");
        let path = url.find("/v1/").map(|at| &url[at..]).expect("a path");
        let page = self.payer.client.get(path, &[]).await;
        assert!(page.status == 200 && page.text.contains("Local network of this service"), "{}", page.text);
        assert!(!page.text.contains("<script"), "{}", page.text);
        let form = [("content-type", "application/x-www-form-urlencoded")];
        let enter = |code: String| self.payer.client.send("POST", path, &form, format!("code={code}"));
        assert_eq!(enter("WRONG".to_owned()).await.expect("an answer").status, 400);
        let entered = enter(code["code"].as_str().expect("a code").to_owned()).await.expect("an answer");
        assert!(entered.status == 200 && entered.text.contains("You are logged in"), "{}", entered.text);
        let intent = self.get(&format!("connect/{}", issued["intent_id"].as_str().expect("an id"))).await.json();
        assert_eq!((&intent["status"], &intent["type"]), (&json!("completed"), &json!("create")), "{intent}");
        let account = &intent["account"];
        assert_eq!(account["allowed_actions"], json!(ALL), "{account}");
        let text = |name: &str| account[name].as_str().expect("a text").to_owned();
        (text("id"), text("member_urn"))
    }
}

pub async fn local_stack() -> Stack {
    stack_with(|options| options.with("NETWORK_PROVIDERS", "local")).await
}

/// Two agents become connections.
pub async fn friends(stack: &Stack) -> [(Agent, String, String); 2] {
    let (ann, bob) = (Agent::new(stack).await, Agent::new(stack).await);
    let (of_ann, ann_id) = ann.joins("Ann").await;
    let (of_bob, bob_id) = bob.joins("Bob").await;
    let body = json!({"account_id": of_ann, "profile": bob_id, "note": "We met in Lyon."});
    let job = ann.done("invite", &body, "invite-bob").await;
    assert_eq!(job["result"]["status"], "sent", "{job}");
    let here = bob.get("local").await.json();
    assert_eq!(here["invitations"][0]["note"], "We met in Lyon.", "{here}");
    let accepted = bob.post(&format!("local/invitations/{ann_id}/accept"), &json!({})).await;
    assert_eq!(accepted.json()["status"], "connected", "{}", accepted.text);
    let invitation = job["result"]["invitation_id"].as_str().expect("an id").to_owned();
    let seen = ann.get(&format!("accounts/{of_ann}/invitations/{invitation}")).await.json();
    assert_eq!(seen["status"], "accepted", "{seen}");
    [(ann, of_ann, ann_id), (bob, of_bob, bob_id)]
}

/// An invitation whose payment came to nothing holds nobody up: the member can be invited, by the same purchase or another.
#[test]
fn an_invitation_that_was_never_paid_is_none() {
    run(async {
        let stack = local_stack().await;
        let (ann, bob) = (Agent::new(&stack).await, Agent::new(&stack).await);
        let ((of_ann, _), (_, bob_id)) = (ann.joins("Ann").await, bob.joins("Bob").await);
        let body = json!({"account_id": of_ann, "profile": bob_id});
        let (input, none) = (body.as_object().expect("an object"), serde_json::Map::new());
        let (toolbox, db) = (&stack.toolboxes["worker"], &stack.app.db);
        let agent = ann.payer.agent();
        for request in [1, 1, 2] {
            let request_id = RequestId::from_bytes([request; 16]);
            let price = base::money::Usdc::from_micro(20_000);
            let now = toolbox.clock.now();
            let claiming = Claiming { agent, request_id, input, locked: &none, price, now };
            let writes = claiming::claim(toolbox, claiming, Kind::Invite).await.expect("the claim's writes");
            db.transact(&writes).await.expect("a claim");
        }
        let job = ann.done("invite", &body, "invite").await;
        assert_eq!(job["result"]["status"], "sent", "{job}");
        let again = ann.buy("invite", &body, "again").await;
        assert_eq!(again.error(), (409, "duplicate_request".to_owned()), "{}", again.text);
    });
}

/// A link logs in once. Whoever has somebody's link to connect again, and enters a code of its own, reaches no account that is in use.
#[test]
fn a_login_moves_no_account_that_is_in_use() {
    run(async {
        let stack = local_stack().await;
        let (ann, eve) = (Agent::new(&stack).await, Agent::new(&stack).await);
        let (of_ann, ann_id) = ann.joins("Ann").await;
        let account = tools_network::account::list(&stack.app.db, ann.payer.agent()).await.unwrap().remove(0);
        let issued = ann.post(&format!("accounts/{of_ann}/reconnect"), &json!({})).await.json();
        let url = issued["url"].as_str().expect("a link").to_owned();
        let path = url.find("/v1/").map(|at| &url[at..]).expect("a path");
        let page = ann.payer.client.get(path, &[]).await;
        assert!(page.text.contains("read, reply, view profile, react, invite"), "{}", page.text);
        let enter = |code: Value| {
            let form = [("content-type", "application/x-www-form-urlencoded")];
            let body = format!("code={}", code["code"].as_str().expect("a code"));
            let client = &ann.payer.client;
            async move { client.send("POST", path, &form, body).await.expect("an answer") }
        };
        let entered = enter(eve.post("local/code", &json!({"name": "Eve"})).await.json()).await;
        assert!(entered.text.contains("The account was not connected"), "{}", entered.text);
        let again = enter(ann.post("local/code", &json!({"name": "Ann"})).await.json()).await;
        assert_eq!(again.status, 410, "a page is used once: {}", again.text);
        let intent = ann.get(&format!("connect/{}", issued["intent_id"].as_str().expect("an id"))).await.json();
        assert_eq!(
            (&intent["status"], &intent["failure_reason"]),
            (&json!("failed"), &json!("identity_mismatch")),
            "{intent}"
        );
        let session = members::session(&stack.app.db, &account.upstream).await.unwrap().expect("a session");
        assert_eq!((session.member.to_string(), session.is_over), (ann_id, false));

        // Giving it up and connecting it again makes no new places.
        let body = json!({"account_id": of_ann, "identifier": eve.payer.agent().to_string()});
        ann.done("profile-view", &body, "view").await;
        ann.gives_up(&of_ann).await;
        let (of_ann, _) = ann.joins("Ann").await;
        let account = ann.get(&format!("accounts/{of_ann}")).await.json();
        assert_eq!(account["limits"]["profile_views"]["remaining"], 99, "{account}");
    });
}

#[test]
fn two_agents_meet_in_the_local_network() {
    run(async {
        let stack = local_stack().await;
        let [(ann, of_ann, _), (bob, of_bob, bob_id)] = friends(&stack).await;

        let body = json!({"account_id": of_ann, "profile": bob_id, "text": "Shall we talk on Thursday?"});
        let accepted = ann.buy("message", &body, "hello").await.json();
        assert_eq!(accepted["tool"], "linkedin", "{accepted}");
        let left = &accepted["linkedin"]["headroom"];
        assert_eq!(
            (&left["limit"], accepted["linkedin"]["action"].as_str()),
            (&json!(50), Some("message")),
            "{accepted}"
        );
        let job = ann.ended(accepted["request_id"].as_str().expect("an id")).await;
        assert_eq!(job["result"]["status"], "sent", "{job}");
        assert_eq!(ann.buy("message", &body, "hello").await.json()["request_id"], accepted["request_id"]);

        // It is at both, once, whatever reads it.
        let inbox = bob.get(&format!("accounts/{of_bob}/messages")).await.json();
        let message = &inbox["messages"][0];
        assert_eq!((&message["text"], &message["direction"]), (&body["text"], &json!("inbound")), "{inbox}");
        let reply = json!({
            "account_id": of_bob, "conversation_id": message["conversation_id"], "text": "Thursday at ten suits me.",
        });
        let job = bob.done("reply", &reply, "reply").await;
        assert_eq!(job["result"]["status"], "sent", "{job}");
        let job = ann.done("sync", &json!({"account_id": of_ann}), "sync").await;
        let counts = ["messages_seen", "messages_inserted", "pages"].map(|name| job["result"][name].as_u64());
        assert_eq!((counts, &job["result"]["outcome"]), ([Some(2), Some(0), Some(1)], &json!("exhausted")), "{job}");
        let inbox = ann.get(&format!("accounts/{of_ann}/messages?limit=1")).await.json();
        assert_eq!((&inbox["messages"][0]["text"], &inbox["has_more"]), (&reply["text"], &json!(true)), "{inbox}");
        let next = inbox["next_cursor"].as_str().expect("a cursor").replace('#', "%23");
        let next = ann.get(&format!("accounts/{of_ann}/messages?limit=1&cursor={next}")).await.json();
        assert_eq!((&next["messages"][0]["text"], &next["has_more"]), (&body["text"], &json!(false)), "{next}");
        assert_eq!(
            (&next["sync_state"], &next["coverage"]["message_count"]),
            (&json!("complete"), &json!(2)),
            "{next}"
        );
        let chats = ann.get(&format!("accounts/{of_ann}/conversations")).await.json();
        let chat = &chats["conversations"][0];
        assert_eq!((&chat["name"], &chat["attendees_synced"]), (&json!("Bob"), &json!(true)), "{chats}");

        let post = bob.post("local/posts", &json!({"text": "The lamp turns against the sun."})).await.json();
        let react = json!({"account_id": of_ann, "post_id": post["post_id"], "reaction_type": "insightful"});
        assert_eq!(ann.done("react", &react, "react").await["result"]["status"], "sent");
        assert_eq!(bob.get("local").await.json()["posts"][0]["reactions"], json!({"insightful": 1}));
        let view = json!({"account_id": of_ann, "identifier": bob_id});
        let profile = ann.done("profile-view", &view, "view").await["result"]["profile"].clone();
        assert_eq!((&profile["name"], &profile["network_distance"]), (&json!("Bob"), &json!("FIRST_DEGREE")));
        let account = ann.get(&format!("accounts/{of_ann}")).await.json();
        for (limit, used) in [("invites", 1), ("messages", 1), ("reactions", 1), ("profile_views", 1)] {
            let is = (&account["limits"][limit]["used"], &account["limits"][limit]["pending"]);
            assert_eq!(is, (&json!(used), &json!(0)), "{limit}: {account}");
        }
        // Whoever is connected is not invited, and that costs nothing.
        let before = books::audit(&stack.app.db, ann.payer.agent()).await.credits;
        let job = ann.done("invite", &json!({"account_id": of_ann, "profile": bob_id}), "again").await;
        assert_eq!(job["result"]["status"], "already_connected", "{job}");
        assert_eq!(books::audit(&stack.app.db, ann.payer.agent()).await.credits, before);
        books::audit(&stack.app.db, bob.payer.agent()).await;
    });
}

#[test]
fn what_is_not_allowed_is_refused_before_a_price() {
    run(async {
        let stack = local_stack().await;
        let ann = Agent::new(&stack).await;
        let (of_ann, ann_id) = ann.joins("Ann").await;
        let eve = Agent::new(&stack).await;
        let message = |text: &str| json!({"account_id": of_ann, "profile": ann_id, "text": text});
        let nobody = "00000000-0000-4000-8000-000000000000";
        let misspelt = json!({"account_id": of_ann, "profile": ann_id, "text": "Hello", "txet": "x"});
        let reply = json!({"account_id": of_ann, "conversation_id": nobody, "text": "Hello"});
        for (who, path, body, status, code) in [
            (&eve, "message", message("Hello"), 404, "account_not_found"),
            (&ann, "message", misspelt, 400, "invalid_request"),
            (&ann, "message", message(""), 400, "invalid_request"),
            (&ann, "reply", reply, 404, "conversation_not_found"),
            (
                &ann,
                "invite/withdraw",
                json!({"account_id": of_ann, "invitation_id": nobody}),
                404,
                "invitation_not_found",
            ),
            (&eve, "sync", json!({"account_id": of_ann}), 404, "account_not_found"),
        ] {
            let refused = who.buy(path, &body, path).await;
            assert_eq!(refused.error(), (status, code.to_owned()), "{path} {body}: {}", refused.text);
        }
        let keyless = ann.post("message", &message("Hello")).await;
        assert_eq!(keyless.error(), (400, "idempotency_key_required".to_owned()), "{}", keyless.text);
        // A member who is no connection gets no message, and it is paid back.
        let (_, eve_id) = eve.joins("Eve").await;
        let body = json!({"account_id": of_ann, "profile": eve_id, "text": "Hello"});
        let job = ann.done("message", &body, "stranger").await;
        assert_eq!(
            (&job["status"], &job["error_reason"]),
            (&json!("failed"), &json!("recipient_not_connected")),
            "{job}"
        );
        let account = ann.get(&format!("accounts/{of_ann}")).await.json();
        // The look at the member counts.
        assert_eq!(account["limits"]["messages"]["remaining"], 49, "{account}");
        // The same member is connected once, by whomever.
        for path in ["accounts/x", "connect/x", "sync/x"] {
            assert_eq!(ann.get(path).await.status, 404, "{path}");
        }
        assert_eq!(eve.get(&format!("accounts/{of_ann}")).await.error(), (404, "account_not_found".to_owned()));
        books::audit(&stack.app.db, ann.payer.agent()).await;

        let bare = crate::support::stack().await;
        let agent = Agent::new(&bare).await;
        for refused in [
            agent.buy("message", &message("Hello"), "none").await,
            agent.post("connect", &json!({"requested_actions": ["read"]})).await,
        ] {
            assert_eq!(refused.error(), (503, "provider_unavailable".to_owned()), "{}", refused.text);
        }
        assert_eq!(agent.get("local").await.status, 404);
    });
}

#[test]
fn of_two_hundred_parallel_invitations_the_limit_is_sent_and_charged() {
    run(async {
        let stack = local_stack().await;
        let ann = Agent::new(&stack).await;
        let (of_ann, _) = ann.joins("Ann").await;
        // Members who never log in elsewhere: their rows are enough.
        let db = &stack.app.db;
        let members = join_all((0..200_u8).map(|index| {
            let agent = base::ids::AgentId::from_bytes([index; 16]);
            tools_network::providers::local::members::join(db, agent, "M", "One of many", stack.app.clock.now())
        }))
        .await;
        let before = books::audit(db, ann.payer.agent()).await.credits.micro();
        let answers = join_all(members.into_iter().enumerate().map(|(index, member)| {
            let body = json!({"account_id": of_ann, "profile": member.expect("a member").id});
            let ann = &ann;
            async move { ann.buy("invite", &body, &format!("invite-{index}")).await }
        }))
        .await;
        let mut sent = 0;
        for answer in &answers {
            match answer.status {
                202 => {
                    let job = ann.ended(answer.json()["request_id"].as_str().expect("an id")).await;
                    assert_eq!(job["result"]["status"], "sent", "{job}");
                    sent += 1;
                }
                _ => {
                    assert_eq!(answer.error(), (429, "account_send_limit".to_owned()), "{}", answer.text);
                    assert!(answer.json()["details"]["resets_at"].is_string(), "{}", answer.text);
                }
            }
        }
        assert_eq!(sent, 25);
        assert_eq!(before - books::audit(db, ann.payer.agent()).await.credits.micro(), 25 * 20_000);
        let invitations = ann.get(&format!("accounts/{of_ann}/invitations?status=sent&limit=100")).await.json();
        let all = invitations["invitations"].as_array().expect("a list");
        assert_eq!(all.len(), 25, "{invitations}");

        // One of them is taken back; its member may be invited again, on another day.
        let first = all[0]["invitation_id"].as_str().expect("an id");
        let take_back = json!({"account_id": of_ann, "invitation_id": first});
        for (key, status) in [("one", "withdrawn"), ("two", "already_withdrawn")] {
            let job = ann.done("invite/withdraw", &take_back, key).await;
            assert_eq!(job["result"]["status"], status, "{job}");
        }
        let profile = &all[1]["profile"];
        let again = ann.buy("invite", &json!({"account_id": of_ann, "profile": profile}), "twice").await;
        assert_eq!(again.error(), (409, "duplicate_request".to_owned()), "{}", again.text);
        books::audit(db, ann.payer.agent()).await;
    });
}

#[test]
fn a_grant_that_ends_takes_everything_with_it() {
    run(async {
        let stack = local_stack().await;
        let [(ann, of_ann, _), (_, _, bob_id)] = friends(&stack).await;
        let gone = ann.gives_up(&of_ann).await;
        assert_eq!((&gone["status"], &gone["upstream_deleted"]), (&json!("revoked"), &json!(true)), "{gone}");
        let body = json!({"account_id": of_ann, "profile": bob_id, "text": "Hello"});
        assert_eq!(ann.buy("message", &body, "late").await.error(), (403, "grant_missing".to_owned()));
        assert_eq!(ann.get("accounts").await.json()["accounts"], json!([]));
        let all = ann.get("accounts?include_revoked=true").await.json();
        let account = &all["accounts"][0];
        assert_eq!((&account["allowed_actions"], &account["grant_version"]), (&json!([]), &json!(2)), "{all}");
        let again = ann.post(&format!("accounts/{of_ann}/reconnect"), &json!({})).await;
        assert_eq!(again.error(), (409, "connect_required".to_owned()), "{}", again.text);
        // The member may be connected again, as another account.
        let (new, _) = ann.joins("Ann").await;
        assert_ne!(new, of_ann);
        // Who logs in as somebody else does not get the account.
        let issued =
            ann.post(&format!("accounts/{new}/reconnect"), &json!({"requested_actions": ["read"]})).await.json();
        let eve = Agent::new(&stack).await;
        let code = eve.post("local/code", &json!({})).await.json();
        let url = issued["url"].as_str().expect("a link");
        let path = url.find("/v1/").map(|at| &url[at..]).expect("a path");
        let form = [("content-type", "application/x-www-form-urlencoded")];
        let code = format!("code={}", code["code"].as_str().expect("a code"));
        let entered = ann.payer.client.send("POST", path, &form, code).await.expect("an answer");
        assert!(entered.text.contains("was not connected"), "{}", entered.text);
        let intent = ann.get(&format!("connect/{}", issued["intent_id"].as_str().expect("an id"))).await.json();
        assert_eq!(
            (&intent["status"], &intent["failure_reason"]),
            (&json!("failed"), &json!("identity_mismatch")),
            "{intent}"
        );
    });
}

/// The job of an accepted call.
pub fn id_of(accepted: &Answer) -> RequestId {
    assert_eq!(accepted.status, 202, "{}", accepted.text);
    accepted.json()["request_id"].as_str().expect("an id").parse().expect("an id")
}
