//! A server with the documented interface of Unipile's API, version 1 (its reference and its SDK `unipile-node-sdk` 1.9.3, read
//! 2026-11). It refuses what they do not allow, and a mood says how it fails.

mod asked;

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::http::{HeaderMap, Method, StatusCode, Uri};
use axum::response::{IntoResponse, Response};
use axum::{Json, Router};
use base::clock::{Clock, Timestamp};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use local::Options;
use serde_json::{Value, json};
use tokio::net::TcpListener;

use super::Client;
pub use asked::Asked;

pub const KEY: &str = "the-key-of-unipile";
/// What its webhooks carry.
pub const SECRET: &str = "the-secret-of-webhooks";

/// What becomes of the next changes.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum Mood {
    #[default]
    Good,
    /// It takes it, and says no id of it.
    Nameless,
    /// It takes it, and answers 500.
    ErrorAfter,
    /// It takes it, and never answers.
    Silent,
    /// It takes it, and the connection breaks within its answer.
    Cut,
    /// It takes it, and its webhook tells of it before it answers.
    ToldFirst,
    /// It answers 500 and has taken nothing.
    ErrorBefore,
    /// It answers 429, because the network allows no more now.
    TooMany,
    /// It has taken it, answers 500, and shows it to nobody.
    Hidden,
}

#[derive(Default)]
struct Book {
    mood: Mood,
    asked: Vec<Asked>,
    /// What changes were about, and their texts: `nothing` where nothing was taken.
    made: Vec<(String, String)>,
    /// Messages by account, the newest first.
    messages: HashMap<String, Vec<Value>>,
    /// Invitations by account, the newest first.
    invitations: HashMap<String, Vec<Value>>,
    /// Addresses for callbacks, by intent.
    callbacks: Vec<(String, String)>,
    /// Accounts that are gone.
    gone: HashSet<String>,
    /// Accounts that are gone after so many more pages.
    going: HashMap<String, usize>,
    /// It deletes no accounts now.
    keeps: bool,
    /// Members who have become connections.
    friends: HashSet<String>,
    /// Cursors are these from now on.
    cursors: u32,
    /// Most messages of a page, if that is less than was asked for.
    page: Option<usize>,
    /// Where the webhook posts to.
    webhook: Option<String>,
    /// What the documentation does not allow.
    strange: Vec<String>,
}

#[derive(Clone)]
pub struct Unipile {
    pub url: String,
    book: Arc<Mutex<Book>>,
}

impl Unipile {
    pub async fn start() -> Unipile {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let url = format!("http://{}", listener.local_addr().expect("an address"));
        let unipile = Unipile { url, book: Arc::default() };
        let router = Router::new().fallback(serve).with_state(unipile.clone());
        tokio::spawn(async move { axum::serve(listener, router).await });
        unipile
    }

    pub fn options(&self, options: Options) -> Options {
        options
            .with("NETWORK_PROVIDERS", "unipile")
            .with("PROVIDER_URLS", json!({"unipile": self.url}).to_string())
            .with("PROVIDER_KEYS", json!({"unipile": KEY, "unipile_webhook": SECRET}).to_string())
    }

    fn book(&self) -> MutexGuard<'_, Book> {
        self.book.lock().expect("the book")
    }

    pub fn is(&self, mood: Mood) {
        self.book().mood = mood;
    }

    /// Its webhook of messages posts to this origin.
    pub fn posts_to(&self, origin: &str) {
        self.book().webhook = Some(origin.to_owned());
    }

    /// What changes were about, and their texts.
    pub fn made(&self) -> Vec<(String, String)> {
        self.book().made.clone()
    }

    /// The requests since the last call of this.
    pub fn asked(&self) -> Vec<Asked> {
        std::mem::take(&mut self.book().asked)
    }

    pub fn strange(&self) -> Vec<String> {
        self.book().strange.clone()
    }

    /// The path where it says what came of an intent's link.
    pub fn callback(&self, intent: &str) -> String {
        let book = self.book();
        let (_, url) = book.callbacks.iter().find(|(name, _)| name == intent).expect("a callback");
        url.find("/v1/").map(|at| url[at..].to_owned()).expect("a path")
    }

    /// The account's owner deletes it at the network after so many more pages of messages.
    pub fn forget_after(&self, account: &str, pages: usize) {
        self.book().going.insert(account.to_owned(), pages);
    }

    /// Whether it deletes no accounts now.
    pub fn keeps_accounts(&self, keeps: bool) {
        self.book().keeps = keeps;
    }

    /// A member becomes a connection of every account.
    pub fn befriend(&self, member: &str) {
        self.book().friends.insert(member.to_owned());
    }

    /// Cursors that it gave are of no use any more.
    pub fn lose_cursors(&self) {
        self.book().cursors += 1;
    }

    /// Shows a message in an account.
    pub fn show(&self, account: &str, message: Value) {
        self.book().messages.entry(account.to_owned()).or_default().insert(0, message);
    }

    /// Gives an account messages of others, an hour apart, in pages of `page`.
    pub fn history(&self, account: &str, count: usize, page: usize) {
        let mut book = self.book();
        book.page = Some(page);
        let now = Clock::system().now();
        let of = |number: usize| {
            let at = now.minus(Duration::from_secs(3_600 * (number as u64 + 1)));
            message(
                account,
                &format!("chat-p-{}", number % 3),
                &format!("h{number}"),
                &format!("Number {number}"),
                false,
                at,
            )
        };
        book.messages.insert(account.to_owned(), (0..count).map(of).collect());
    }
}

/// A message as it lists it.
pub fn message(account: &str, chat: &str, id: &str, text: &str, is_own: bool, at: Timestamp) -> Value {
    let sender = if is_own { format!("member-{account}") } else { chat.trim_start_matches("chat-").to_owned() };
    json!({
        "object": "Message", "id": id, "account_id": account, "chat_id": chat, "chat_provider_id": format!("at-{chat}"),
        "provider_id": format!("at-{id}"), "sender_id": sender, "sender_attendee_id": format!("attendee-{sender}"),
        "text": text, "timestamp": at.to_string(), "is_sender": u8::from(is_own), "attachments": [], "reactions": [],
        "seen": 1, "seen_by": {}, "hidden": 0, "deleted": 0, "edited": 0, "is_event": 0, "delivered": 1, "behavior": null,
        "original": "{}",
    })
}

fn list(object: &str, items: Vec<Value>, cursor: Option<String>) -> Response {
    Json(json!({"object": object, "items": items, "cursor": cursor})).into_response()
}

fn error(status: StatusCode, kind: &str) -> Response {
    (status, Json(json!({"title": "An error", "type": format!("errors/{kind}"), "status": status.as_u16()})))
        .into_response()
}

async fn serve(State(at): State<Unipile>, method: Method, uri: Uri, headers: HeaderMap, body: Bytes) -> Response {
    let asked = Asked::read(&method, &uri, &headers, &body);
    at.book().asked.push(asked.clone());
    if headers.get("x-api-key").is_none_or(|key| key != KEY) {
        at.book().strange.push(format!("{method} {uri} without the key"));
        return error(StatusCode::UNAUTHORIZED, "missing_credentials");
    }
    match at.answer(&asked).await {
        Ok(answer) => answer,
        Err(wrong) => {
            at.book().strange.push(format!("{method} {uri}: {wrong}"));
            error(StatusCode::BAD_REQUEST, "invalid_parameters")
        }
    }
}

const JSON: &str = "application/json";
const FORM: &str = "multipart/form-data";

impl Unipile {
    async fn answer(&self, asked: &Asked) -> Result<Response, String> {
        let path: Vec<&str> = asked.path.iter().map(String::as_str).collect();
        // Whose account it is about.
        let account = match path.as_slice() {
            ["accounts", id, ..] => id,
            _ if asked.query.contains_key("account_id") => asked.asks("account_id"),
            _ => asked.text("account_id"),
        };
        if self.book().gone.contains(account) {
            return Ok(error(StatusCode::NOT_FOUND, "resource_not_found"));
        }
        Ok(match (asked.method.as_str(), path.as_slice()) {
            ("POST", ["hosted", "accounts", "link"]) => {
                let own = if asked.text("type") == "reconnect" { "reconnect_account" } else { "providers" };
                let optional = ["name", "notify_url", "success_redirect_url", "failure_redirect_url", "sync_limit"];
                asked.body_is(JSON, &["type", own, "api_url", "expiresOn"], &optional)?;
                let callback = (asked.text("name").to_owned(), asked.text("notify_url").to_owned());
                self.book().callbacks.push(callback);
                let link = json!({"object": "HostedAuthUrl", "url": "https://account.unipile.com/x"});
                (StatusCode::CREATED, Json(link)).into_response()
            }
            ("GET", ["accounts", id]) => {
                asked.query_is(&[], &[])?;
                Json(self.account(id)).into_response()
            }
            ("DELETE", ["accounts", _]) if self.book().keeps => {
                error(StatusCode::INTERNAL_SERVER_ERROR, "unexpected_error")
            }
            ("DELETE", ["accounts", _]) => Json(json!({"object": "AccountDeleted"})).into_response(),
            ("GET", ["accounts", _, "sync"]) => {
                asked.query_is(&[], &["before", "after", "linkedin_product"])?;
                Json(json!({"object": "AccountResync", "status": "SYNC_STARTED"})).into_response()
            }
            ("GET", ["users", "invite", "sent"]) => {
                asked.query_is(&["account_id"], &["limit", "cursor"])?;
                list("InvitationList", self.book().invitations.get(account).cloned().unwrap_or_default(), None)
            }
            ("DELETE", ["users", "invite", "sent", id]) => {
                asked.query_is(&["account_id"], &[])?;
                self.withdraw(account, id).await
            }
            ("POST", ["users", "invite"]) => {
                asked.body_is(JSON, &["account_id", "provider_id"], &["message", "user_email"])?;
                if asked.text("message").chars().count() > 300 {
                    return Err("a note of more than 300 characters".to_owned());
                }
                self.invite(account, asked.text("provider_id"), asked.text("message")).await
            }
            ("GET", ["users", id]) => {
                asked.query_is(&["account_id"], &["notify", "linkedin_api", "linkedin_sections"])?;
                Json(self.profile(id)).into_response()
            }
            ("POST", ["posts", "reaction"]) => {
                asked.body_is(JSON, &["account_id", "post_id"], &["reaction_type"])?;
                let answer = (StatusCode::CREATED, json!({"object": "ReactionAdded"}));
                self.make(asked.text("post_id"), asked.text("reaction_type"), answer, |_| ()).await
            }
            ("GET", ["messages"]) => {
                asked.query_is(&[], &["account_id", "limit", "cursor", "sender_id", "before", "after"])?;
                self.page(account, asked)?
            }
            ("POST", ["chats"]) => {
                asked.body_is(FORM, &["account_id", "attendees_ids"], &["text", "subject"])?;
                let chat = format!("chat-{}", asked.text("attendees_ids"));
                self.message(account, &chat, asked.text("text"), true).await
            }
            ("POST", ["chats", chat, "messages"]) => {
                asked.body_is(FORM, &[], &["text", "account_id", "thread_id", "quote_id"])?;
                self.message(account, chat, asked.text("text"), false).await
            }
            ("GET", ["chats", id]) => Json(json!({
                "object": "Chat", "id": id, "account_id": "an-account", "account_type": "LINKEDIN", "provider_id": format!("at-{id}"),
                "name": "Jane", "type": 0, "timestamp": null, "unread_count": 0, "archived": 0, "muted_until": null, "read_only": 0,
                "lastMessage": null,
            }))
            .into_response(),
            ("GET", ["chats", id, "attendees"]) => {
                let of = |member: &str, is_self: u8| json!({
                    "object": "ChatAttendee", "id": format!("attendee-{member}"), "account_id": "an-account", "provider_id": member,
                    "name": "Jane Doe", "is_self": is_self, "hidden": 0,
                    "specifics": {"provider": "LINKEDIN", "member_urn": format!("urn:{member}"), "network_distance": "DISTANCE_1"},
                });
                let items = [of(id.trim_start_matches("chat-"), 0), of("me", 1)];
                Json(json!({"object": "ChatAttendeeList", "items": items})).into_response()
            }
            _ => return Err("no such route".to_owned()),
        })
    }

    fn account(&self, id: &str) -> Value {
        // Whose id begins so has no paid plan.
        let is_free = id.starts_with("free");
        let mut im = json!({"id": format!("member-{id}"), "publicIdentifier": "ann", "username": "Ann", "premiumContractId": null});
        if !is_free {
            im["premiumFeatures"] = json!(["premium"]);
        }
        json!({
            "object": "Account", "id": id, "type": "LINKEDIN", "name": "Ann", "created_at": "2026-11-28T10:00:00.000Z", "groups": [],
            "connection_params": {"im": im}, "sources": [{"id": format!("{id}_MESSAGING"), "status": "OK"}],
        })
    }

    /// A member, by one of its two names: `jane`, or `p-jane` at the network.
    fn profile(&self, name: &str) -> Value {
        let public = name.trim_start_matches("p-");
        let id = format!("p-{public}");
        let is_friend = public.starts_with("friend") || self.book().friends.contains(&id);
        json!({
            "object": "UserProfile", "provider": "LINKEDIN", "provider_id": id, "public_identifier": public,
            "first_name": "Jane", "last_name": "Doe", "headline": "A member", "websites": [],
            "network_distance": if is_friend { "FIRST_DEGREE" } else { "SECOND_DEGREE" },
        })
    }

    fn page(&self, account: &str, asked: &Asked) -> Result<Response, String> {
        let mut book = self.book();
        match book.going.get_mut(account) {
            Some(0) => {
                book.gone.insert(account.to_owned());
                return Ok(error(StatusCode::NOT_FOUND, "resource_not_found"));
            }
            Some(left) => *left -= 1,
            None => {}
        }
        let prefix = format!("{} from ", book.cursors);
        let none = Vec::new();
        let all = book.messages.get(account).unwrap_or(&none);
        let limit: usize = asked.asks("limit").parse().unwrap_or(100);
        if !(1..=250).contains(&limit) {
            return Err("a limit beyond 250".to_owned());
        }
        let at = match asked.asks("cursor") {
            "" => 0,
            cursor => {
                let decoded = STANDARD.decode(cursor).ok().and_then(|bytes| String::from_utf8(bytes).ok());
                match decoded.and_then(|text| text.strip_prefix(&prefix)?.parse::<usize>().ok()) {
                    Some(at) => at,
                    None => return Ok(error(StatusCode::BAD_REQUEST, "invalid_parameters")),
                }
            }
        };
        let size = book.page.unwrap_or(limit).min(limit);
        let items: Vec<Value> = all.iter().skip(at).take(size).cloned().collect();
        let next = at + items.len();
        Ok(list("MessageList", items, (next < all.len()).then(|| STANDARD.encode(format!("{prefix}{next}")))))
    }

    async fn message(&self, account: &str, chat: &str, text: &str, is_new: bool) -> Response {
        let id = format!("m{}", self.book().made.len() + 1);
        let answer = match is_new {
            true => json!({"object": "ChatStarted", "chat_id": chat, "message_id": id}),
            false => json!({"object": "MessageSent", "message_id": id}),
        };
        let now = Clock::system().now();
        let said = message(account, chat, &id, text, true, now);
        // The owner writes the same to somebody else, by hand.
        let by_hand = message(account, "chat-p-stranger", &format!("{id}-by-hand"), text, true, now);
        if self.book().mood == Mood::ToldFirst {
            self.tell(account, &said).await;
        }
        let shows = |book: &mut Book| {
            let all = book.messages.entry(account.to_owned()).or_default();
            all.insert(0, said);
            all.insert(0, by_hand);
        };
        self.make(chat, text, (StatusCode::CREATED, answer), shows).await
    }

    async fn invite(&self, account: &str, member: &str, note: &str) -> Response {
        let id = format!("i{}", self.book().made.len() + 1);
        let invitation = json!({
            "object": "InvitationSent", "id": id, "invited_user": "Jane Doe", "invited_user_id": member,
            "invited_user_public_id": member.trim_start_matches("p-"), "invited_user_description": null, "date": "Sent today",
            "parsed_datetime": Clock::system().now().to_string(), "invitation_text": note,
        });
        let answer = json!({"object": "UserInvitationSent", "invitation_id": id});
        let shows = |book: &mut Book| book.invitations.entry(account.to_owned()).or_default().insert(0, invitation);
        self.make(member, note, (StatusCode::CREATED, answer), shows).await
    }

    async fn withdraw(&self, account: &str, id: &str) -> Response {
        let is_there = |item: &Value| item["id"] == id;
        if !self.book().invitations.get(account).is_some_and(|all| all.iter().any(is_there)) {
            return error(StatusCode::NOT_FOUND, "resource_not_found");
        }
        let shows =
            |book: &mut Book| book.invitations.entry(account.to_owned()).or_default().retain(|item| !is_there(item));
        self.make(id, "withdrawn", (StatusCode::OK, json!({"object": "InvitationCanceled"})), shows).await
    }

    /// Makes a change in the mood of now.
    async fn make(
        &self,
        about: &str,
        text: &str,
        (status, answer): (StatusCode, Value),
        shows: impl FnOnce(&mut Book),
    ) -> Response {
        let mood = {
            let mut book = self.book();
            let takes = !matches!(book.mood, Mood::ErrorBefore | Mood::TooMany);
            book.made.push((about.to_owned(), if takes { text } else { "nothing" }.to_owned()));
            if takes && book.mood != Mood::Hidden {
                shows(&mut book);
            }
            book.mood
        };
        match mood {
            Mood::Nameless => (status, Json(json!({"object": answer["object"]}))).into_response(),
            Mood::Good | Mood::ToldFirst => (status, Json(answer)).into_response(),
            Mood::ErrorAfter | Mood::ErrorBefore | Mood::Hidden => {
                error(StatusCode::INTERNAL_SERVER_ERROR, "unexpected_error")
            }
            Mood::TooMany => error(StatusCode::TOO_MANY_REQUESTS, "too_many_requests"),
            Mood::Silent => {
                tokio::time::sleep(Duration::from_secs(60)).await;
                error(StatusCode::INTERNAL_SERVER_ERROR, "unexpected_error")
            }
            Mood::Cut => {
                let pieces = [Ok("{"), Err(std::io::Error::other("cut"))];
                (status, Body::from_stream(futures_util::stream::iter(pieces))).into_response()
            }
        }
    }

    /// Its webhook tells of a message.
    async fn tell(&self, account: &str, message: &Value) {
        let origin = self.book().webhook.clone().expect("an address for webhooks");
        let headers = [("unipile-auth", SECRET)];
        let told = Client::new(&origin)
            .send("POST", "/v1/tools/linkedin/webhook/messaging", &headers, heard(account, message).to_string())
            .await;
        assert_eq!(told.expect("an answer").status, 200);
    }
}

/// What the webhook says of a message.
pub fn heard(account: &str, message: &Value) -> Value {
    json!({
        "account_id": account, "account_type": "LINKEDIN", "account_info": {"type": "LINKEDIN", "user_id": format!("member-{account}")},
        "event": "message_received", "webhook_name": "messages", "chat_id": message["chat_id"], "message_id": message["id"],
        "message": message["text"], "timestamp": message["timestamp"], "attachments": [], "attendees": [],
        "sender": {"attendee_id": message["sender_attendee_id"], "attendee_provider_id": message["sender_id"], "attendee_name": "Ann"},
    })
}
