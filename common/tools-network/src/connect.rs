//! How an account is connected: an intent with a link, the provider's callback, and the check of what it says.

use std::time::Duration;

use base::digest;
use base::ids::{AgentId, random_uuid};
use http::StatusCode;
use platform::http::{ApiError, log};
use platform::store::{Db, StoreError, Write, WriteError, daily};
use serde_json::{Value, json};
use tools::Toolbox;
use uuid::Uuid;

use crate::account::{self, Account, Grant, IDLE, MOST, Word};
use crate::intent::{self, Event, Intent, Status};
use crate::providers::{self, Login, Member, Provider};
use crate::view;

/// Links that an agent gets in a UTC day, that the deployment gives, and that it gives to agents without money behind them: wallets
/// cost nothing, and theirs must not use up everybody's.
const LINKS_A_DAY: u32 = 10;
const ALL_LINKS_A_DAY: u32 = 200;
pub const STRANGERS_LINKS_A_DAY: u32 = 160;
/// A login that cannot be checked for so long after its link's time is refused: each look at it asks the provider.
const CHECKED_FOR: Duration = Duration::from_secs(3600);
/// A change that others keep overtaking is given up after so many tries.
const TRIES: usize = 4;

/// What a login is asked for.
pub struct Wanted<'a> {
    pub agent: AgentId,
    /// The grant. `None`: the account keeps its own.
    pub grant: Option<Grant>,
    /// The account that is connected again.
    pub again: Option<&'a Account>,
    pub success_url: Option<&'a str>,
    pub failure_url: Option<&'a str>,
    /// The service's own origin.
    pub origin: &'a str,
}

/// Begins an intent: what its owner is told, with the link, once.
///
/// # Errors
/// 503 without a provider; 429 `connect_limit_reached`; 409 `too_many_accounts`, `connect_required`.
pub async fn begin(toolbox: &Toolbox, wanted: &Wanted<'_>) -> Result<Value, ApiError> {
    let provider = providers::needed(toolbox)?;
    let (db, now) = (&toolbox.db, toolbox.clock.now());
    if wanted.again.is_none() && open_accounts(db, wanted.agent).await? >= MOST {
        return Err(refusal(
            StatusCode::CONFLICT,
            "too_many_accounts",
            &format!("an agent has at most {MOST} accounts"),
        ));
    }
    if wanted.again.is_none() && is_full(toolbox, &*provider).await? {
        return Err(refusal(
            StatusCode::CONFLICT,
            "too_many_accounts",
            "this service has as many accounts as its operator allows (NETWORK_ACCOUNTS)",
        ));
    }
    let has_money = ledger::account::load(db, wanted.agent).await?.is_proven();
    let of_all = if has_money { ALL_LINKS_A_DAY } else { STRANGERS_LINKS_A_DAY };
    for (counter, most) in
        [(format!("RATE#network:{}", wanted.agent), LINKS_A_DAY), ("RATE#network".to_owned(), of_all)]
    {
        if !daily::take(db, counter, most, now).await? {
            return Err(ApiError::Later {
                status: StatusCode::TOO_MANY_REQUESTS,
                code: "connect_limit_reached",
                message: "no more login links today".to_owned(),
                retry_after_secs: daily::secs_left(now),
            });
        }
    }
    let token = const_hex::encode(digest::random::<32>());
    let intent =
        Intent::new(random_uuid(), wanted.agent, wanted.again.map(|account| account.id), wanted.grant.clone(), now);
    db.transact(&intent.begin(db, &token)?).await.map_err(StoreError::from)?;
    let callback = format!("{}/v1/tools/linkedin/connect/callback/{token}", wanted.origin);
    let login = Login {
        agent: wanted.agent,
        intent: intent.id,
        callback: &callback,
        expires_at: intent.expires_at,
        again: wanted.again.map(|account| account.upstream.as_str()),
        success_url: wanted.success_url,
        failure_url: wanted.failure_url,
        origin: wanted.origin,
    };
    let url = match (provider.link(&login).await, wanted.again) {
        (Ok(url), _) => url,
        (Err(providers::Trouble::LoggedOut), Some(account)) => {
            gone(db, account.clone(), now).await?;
            return Err(connect_required());
        }
        (Err(error), _) => return Err(error.refusal()),
    };
    let granted = wanted.again.map(|account| account.grant.clone()).unwrap_or_default();
    let mut issued = intent.view(&granted, now);
    issued["url"] = json!(url);
    Ok(issued)
}

/// The provider has no such account any more.
async fn gone(db: &Db, account: Account, now: base::clock::Timestamp) -> Result<(), StoreError> {
    if let Some(next) = account.told(Word::Deleted, now) {
        // Whoever was faster knows more.
        account.save(db, &next).await?;
    }
    Ok(())
}

/// 409: the account cannot be connected again.
pub fn connect_required() -> ApiError {
    ApiError::Detailed {
        status: StatusCode::CONFLICT,
        code: "connect_required",
        message: "the account is gone at the network's provider: connect a new one".to_owned(),
        details: json!({"next_action": "connect"}),
    }
}

fn refusal(status: StatusCode, code: &'static str, message: &str) -> ApiError {
    ApiError::Tool { status, code, message: message.to_owned() }
}

/// Most accounts of all agents at a provider: of those that bill each account, as many as the operator pays for.
fn most_at(toolbox: &Toolbox, provider: &dyn Provider) -> u32 {
    if provider.is_billed() { toolbox.config.network_accounts } else { u32::MAX }
}

/// Whether there is no room for another account at the provider.
async fn is_full(toolbox: &Toolbox, provider: &dyn Provider) -> Result<bool, StoreError> {
    if !provider.is_billed() {
        return Ok(false);
    }
    let open = account::open_at(&toolbox.db, provider.name()).await?;
    Ok(open >= i64::from(most_at(toolbox, provider)))
}

async fn open_accounts(db: &Db, agent: AgentId) -> Result<usize, StoreError> {
    Ok(account::list(db, agent).await?.iter().filter(|account| account.is_open()).count())
}

/// The provider says that somebody has logged in for an intent. Twice is once; a login that comes too late is forgotten at the
/// provider.
pub async fn logged_in(toolbox: &Toolbox, intent: Intent, upstream: &str) -> Result<Intent, ApiError> {
    let (db, now) = (&toolbox.db, toolbox.clock.now());
    let provider = providers::needed(toolbox)?;
    let is_late = intent.status_at(now) == Status::Expired || intent.status == Status::Cancelled;
    let is_second = intent.upstream.as_deref().is_some_and(|first| first != upstream);
    if is_late || is_second {
        forget_new(db, &*provider, upstream).await;
        return Ok(intent);
    }
    if let Some(status) = intent.status.after(Event::LoggedIn) {
        let next = Intent { status, upstream: Some(upstream.to_owned()), ..intent.clone() };
        db.write_if(intent.moved(db, &next)?).await?;
    }
    let Some(latest) = intent::load(db, intent.agent, intent.id).await? else { return Ok(intent) };
    verify(toolbox, latest).await
}

/// Checks at the provider what its callback said, and connects the account or refuses it. An intent that is not being verified stays
/// as it is.
pub async fn verify(toolbox: &Toolbox, mut intent: Intent) -> Result<Intent, ApiError> {
    let db = &toolbox.db;
    let Some(provider) = providers::of(toolbox) else { return Ok(intent) };
    for _ in 0..TRIES {
        let Some(upstream) = intent.upstream.clone().filter(|_| intent.status == Status::Verifying) else {
            return Ok(intent);
        };
        let is_over = toolbox.clock.now() >= intent.expires_at.plus(CHECKED_FOR);
        let member = match provider.member(&upstream).await {
            Ok(Some(Member { word: Word::Connecting, .. })) if !is_over => return Ok(intent),
            Ok(member) => member.filter(|member| member.word == Word::Ok),
            Err(error) => {
                log::failure("a login could not be checked", &error.detail());
                if !is_over {
                    return Ok(intent);
                }
                None
            }
        };
        let judged = judge(toolbox, &*provider, &intent, &upstream, member).await?;
        let writes = match &judged {
            Ok((account, writes)) => {
                let status = Status::Completed;
                let next = Intent { status, account: Some(account.id), ..intent.clone() };
                [writes.clone(), vec![intent.moved(db, &next)?]].concat()
            }
            Err((event, reason)) => {
                let status = intent.status.after(*event).unwrap_or(Status::Failed);
                let next = Intent { status, failure_reason: Some((*reason).to_owned()), ..intent.clone() };
                vec![intent.moved(db, &next)?]
            }
        };
        match db.apply(writes).await {
            Ok(()) if judged.is_err() => forget_new(db, &*provider, &upstream).await,
            Ok(()) | Err(WriteError::Refused(_)) => {}
            Err(WriteError::Failed(error)) => return Err(error.into()),
        }
        let Some(latest) = intent::load(db, intent.agent, intent.id).await? else { return Ok(intent) };
        intent = latest;
    }
    Ok(intent)
}

type Judged = Result<(Account, Vec<Write>), (Event, &'static str)>;

/// What an intent comes to, with the writes that connect its account.
async fn judge(
    toolbox: &Toolbox,
    provider: &dyn Provider,
    intent: &Intent,
    upstream: &str,
    member: Option<Member>,
) -> Result<Judged, StoreError> {
    let (db, now) = (&toolbox.db, toolbox.clock.now());
    let Some(member) = member else { return Ok(Err((Event::Refused, "source_not_ok"))) };
    let before = account::of_member(db, provider.name(), &member.id).await?;
    if let Some(id) = intent.reconnects {
        let Some(account) = account::load(db, intent.agent, id).await?.filter(Account::is_open) else {
            return Ok(Err((Event::GivenUp, "account_revoked")));
        };
        if account.member.as_deref() != Some(member.id.as_str()) || account.upstream != upstream {
            return Ok(Err((Event::Refused, "identity_mismatch")));
        }
        let grant = intent.grant.as_ref().map_or_else(|| account.grant.clone(), Grant::given);
        let next = Account {
            status: account::Status::Connected,
            grant_version: account.grant_version + u32::from(grant != account.grant),
            grant,
            reconnected_at: Some(now),
            last_status_at: Some(now),
            idle_revoke_at: now.plus(IDLE),
            display_name: member.name.or(account.display_name.clone()),
            tier: member.tier,
            ..account.clone()
        };
        let change = account.change(db, &next)?;
        return Ok(Ok((next, change)));
    }
    if before.as_ref().is_some_and(Account::is_open) {
        return Ok(Err((Event::Refused, "duplicate_member")));
    }
    if open_accounts(db, intent.agent).await? >= MOST || is_full(toolbox, provider).await? {
        return Ok(Err((Event::Refused, "too_many_accounts")));
    }
    let account = new_account(intent, provider.name(), upstream, member, now);
    let mut writes = account.connect(db, most_at(toolbox, provider))?;
    writes.push(take_member(db, &account, before.as_ref())?);
    Ok(Ok((account, writes)))
}

fn new_account(
    intent: &Intent,
    provider: &str,
    upstream: &str,
    member: Member,
    now: base::clock::Timestamp,
) -> Account {
    Account {
        // Of the intent, so that a repeated check makes the same.
        id: base::ids::uuid_of(&[b"network account", intent.id.as_bytes()]),
        agent: intent.agent,
        provider: provider.to_owned(),
        upstream: upstream.to_owned(),
        status: account::Status::Connected,
        display_name: member.name,
        member: Some(member.id),
        tier: member.tier,
        grant: intent.grant.as_ref().map(Grant::given).unwrap_or_default(),
        grant_version: 1,
        connected_at: now,
        reconnected_at: None,
        last_status_at: Some(now),
        revoked_at: None,
        idle_revoke_at: now.plus(IDLE),
        forgotten: false,
        revision: 0,
    }
}

/// The write by which a member belongs to an account. Refused if it belongs to another than the one that was seen.
fn take_member(db: &Db, account: &Account, before: Option<&Account>) -> Result<Write, StoreError> {
    let key = account::member_key(&account.provider, account.member.as_deref().unwrap_or_default());
    let put = Write::put(&db.tables.messages, key, &account.place())?;
    match before {
        None => Ok(put.only_if_new()),
        Some(before) => put.only_if("#account = :before").bind("before", before.id),
    }
}

/// Deletes an account at the provider that did not become one here, as far as that works now.
async fn forget_new(db: &Db, provider: &dyn Provider, upstream: &str) {
    let is_known = match account::of_upstream(db, provider.name(), upstream).await {
        Ok(known) => known.is_some(),
        Err(_) => true,
    };
    if !is_known && let Err(error) = provider.forget(upstream).await {
        log::failure("an account that was not connected stays at the network's provider", &error.detail());
    }
}

/// An intent as its owner sees it.
pub async fn shown(toolbox: &Toolbox, intent: &Intent) -> Result<Value, StoreError> {
    let (db, now) = (&toolbox.db, toolbox.clock.now());
    let id: Option<Uuid> = intent.account.or(intent.reconnects);
    let account = match id {
        Some(id) => account::load(db, intent.agent, id).await?,
        None => None,
    };
    let granted = account.as_ref().map(|account| account.grant.clone()).unwrap_or_default();
    let mut shown = intent.view(&granted, now);
    if let Some(account) = account.filter(|_| intent.account.is_some()) {
        shown["account"] = view::account(db, &account, now).await?;
    }
    Ok(shown)
}
