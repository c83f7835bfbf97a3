//! Budgets: what the owner lets the agent spend.

use std::collections::BTreeMap;

use api::operations::account::MOST_CAP;
use axum::body::Body;
use axum::extract::State;
use axum::response::Response;
use base::contact::is_email;
use base::input::{self, FieldError};
use base::money::Usdc;
use gate::app::App;
use gate::idempotency::{self, Request};
use gate::{parse_body, respond};
use http::{HeaderMap, StatusCode};
use ledger::budget::{Budget, DEFAULT_ALERT_AT, WHOLE};
use ledger::freeze::SERVICE_PAYEE;
use ledger::{account, day};
use market::soul::{self, Slug};
use platform::auth::Scope;
use platform::http::{ApiError, read_body};
use serde_json::{Map, Value, json};
use tools::spec::Catalog;

use super::tokens;

const MAX_BODY_BYTES: usize = 16 * 1024;
/// Limit of tools, and of payees, with a cap of their own.
const MAX_NAMED_CAPS: usize = 50;
/// The members of the body.
const KNOWN: [&str; 7] = ["daily", "per_transaction", "alert_at", "pause_at", "alert_email", "tools", "payees"];
/// Members of [`show`]'s answer that are accepted too, so that it can be changed and sent back: other names of the caps, and
/// what says nothing about the caps, which is left out.
const OF_ANSWERS: [&str; 7] =
    ["daily_usdc", "per_transaction_usdc", "spent_today_usdc", "remaining_usdc", "pct_used", "resets_at", "token"];
const NOBODY: &str = "is not a payee: it must be `service` or a soul's slug";

/// `GET /v1/agents/me/budgets`: the caps, and today's spending; for an access token also its own.
pub async fn show(State(app): State<App>, headers: HeaderMap) -> Response {
    let answer = async {
        let caller = app.caller(&headers, Scope::Read).await?;
        let now = app.clock.now();
        let today = day::name(now);
        let (account, today) =
            tokio::join!(account::load(&app.db, caller.agent), day::load(&app.db, caller.agent, &today));
        let (budget, today) = (account?.budget, today?);
        let spent = today.committed;
        let limit = budget.as_ref().and_then(Budget::daily_limit);
        let mut about = caps(budget.as_ref());
        about["spent_today_usdc"] = json!(spent.to_string());
        let remaining = limit.map(|limit| limit.checked_sub(spent).unwrap_or_default().to_string());
        about["remaining_usdc"] = json!(remaining);
        about["pct_used"] = json!(budget.as_ref().and_then(|budget| budget.daily).map(|daily| per_cent(spent, daily)));
        about["resets_at"] = json!(day::resets_at(now).to_string());
        if let Some(token) = tokens::own(&app, &caller, &today).await? {
            about["token"] = token;
        }
        Ok(super::data(StatusCode::OK, &about))
    };
    respond(answer.await)
}

/// `PUT /v1/agents/me/budgets`: absent members stay as they are, `null` removes a cap, unknown members are refused. A new
/// wallet may start with this call.
pub async fn change(State(app): State<App>, headers: HeaderMap, body: Body) -> Response {
    let answer = async {
        let body = parse_body(&headers, &read_body(body, MAX_BODY_BYTES).await?)?;
        let change = Change::read(&body, app.catalog).map_err(ApiError::InvalidRequest)?;
        change.check_payees(&app).await?;
        let caller = match change.only_caps() {
            true => app.stopping_caller(&headers, Scope::Write).await?,
            false => app.caller(&headers, Scope::Write).await?,
        };
        let caller = caller.wallet_only(ApiError::BudgetsReadOnly)?;
        let set = async {
            let account = account::change_rules(&app.db, caller.agent, |account| {
                let budget = account.budget.get_or_insert_default();
                change.apply(budget);
                budget.wallet = budget.alert_email.as_ref().map(|_| caller.wallet);
                if *budget == Budget::default() {
                    account.budget = None;
                }
            });
            let caps = caps(account.await?.budget.as_ref());
            Ok((StatusCode::OK, json!({"success": true, "data": caps})))
        };
        let route = "PUT /v1/agents/me/budgets";
        let request = Request { caller: &caller, headers: &headers, route, body: &body, secret: None };
        idempotency::once(&app, request, set).await
    };
    respond(answer.await)
}

/// The change to each member: none, removal, or a new value.
#[derive(Default)]
struct Change {
    daily: Option<Option<Usdc>>,
    per_transaction: Option<Option<Usdc>>,
    alert_at: Option<u32>,
    pause_at: Option<u32>,
    alert_email: Option<Option<String>>,
    tools: Option<BTreeMap<String, Usdc>>,
    payees: Option<BTreeMap<String, Usdc>>,
}

impl Change {
    fn read(body: &Map<String, Value>, catalog: &Catalog) -> Result<Change, Vec<FieldError>> {
        let mut errors = input::only(&KNOWN, &OF_ANSWERS, body, "");
        let change = Change {
            daily: cap(body, "daily", "daily_usdc", &mut errors),
            per_transaction: cap(body, "per_transaction", "per_transaction_usdc", &mut errors),
            alert_at: read(body, "alert_at", share, &mut errors).map(|share| share.unwrap_or(DEFAULT_ALERT_AT)),
            pause_at: read(body, "pause_at", share, &mut errors).map(|share| share.unwrap_or(WHOLE)),
            alert_email: read(body, "alert_email", email, &mut errors),
            tools: named_caps(body, "tools", |name| tool(name, catalog), &mut errors),
            payees: named_caps(body, "payees", payee, &mut errors),
        };
        if errors.is_empty() { Ok(change) } else { Err(errors) }
    }

    /// Refuses caps for unknown payees: the owner would believe that they protect.
    async fn check_payees(&self, app: &App) -> Result<(), ApiError> {
        let mut wrong = Vec::new();
        for payee in self.payees.iter().flatten().map(|(payee, _)| payee).filter(|payee| *payee != SERVICE_PAYEE) {
            if soul::load(&app.db, payee).await?.is_none() {
                wrong.push(FieldError::new(format!("payees.{payee}"), NOBODY));
            }
        }
        if wrong.is_empty() { Ok(()) } else { Err(ApiError::InvalidRequest(wrong)) }
    }

    /// Whether the change only sets caps: an owner does that to stop spending, so it has a rate limit of its own.
    fn only_caps(&self) -> bool {
        let Change { daily, per_transaction, pause_at, alert_at, alert_email, tools, payees } = self;
        let is_other = alert_at.is_some() || alert_email.is_some() || tools.is_some() || payees.is_some();
        let clears = *daily == Some(None) || *per_transaction == Some(None) || *pause_at == Some(WHOLE);
        let sets = daily.is_some() || per_transaction.is_some() || pause_at.is_some();
        sets && !clears && !is_other
    }

    fn apply(&self, budget: &mut Budget) {
        fn set<T: Clone>(to: &mut T, value: &Option<T>) {
            if let Some(value) = value {
                *to = value.clone();
            }
        }
        set(&mut budget.daily, &self.daily);
        set(&mut budget.per_transaction, &self.per_transaction);
        set(&mut budget.alert_at, &self.alert_at);
        set(&mut budget.pause_at, &self.pause_at);
        set(&mut budget.alert_email, &self.alert_email);
        set(&mut budget.tools, &self.tools);
        set(&mut budget.payees, &self.payees);
    }
}

/// Reads a member that may be absent, null or a value.
fn read<T>(
    body: &Map<String, Value>,
    name: &str,
    parse: impl Fn(&Value) -> Result<T, String>,
    errors: &mut Vec<FieldError>,
) -> Option<Option<T>> {
    match body.get(name)? {
        Value::Null => Some(None),
        value => match parse(value) {
            Ok(value) => Some(Some(value)),
            Err(message) => {
                errors.push(FieldError::new(name, message));
                None
            }
        },
    }
}

/// Reads a cap, by its name or by `alias`, the one of answers. Both may be there if they are equal.
fn cap(body: &Map<String, Value>, name: &str, alias: &str, errors: &mut Vec<FieldError>) -> Option<Option<Usdc>> {
    let cap = read(body, name, amount, errors);
    let same = read(body, alias, amount, errors);
    if cap.is_some() && same.is_some() && cap != same {
        errors.push(FieldError::new(alias, format!("is the same as {name}: send one")));
    }
    cap.or(same)
}

fn amount(value: &Value) -> Result<Usdc, String> {
    let amount = match value {
        Value::Number(number) => Usdc::parse(&number.to_string()),
        Value::String(text) => Usdc::parse_plain(text),
        _ => return Err("must be a number above 0, or null".to_owned()),
    };
    match amount {
        Ok(Usdc::ZERO) => Err("must be above 0".to_owned()),
        Ok(amount) if amount > MOST_CAP => Err(format!("must be at most {MOST_CAP}")),
        Ok(amount) => Ok(amount),
        Err(error) => Err(error.to_string()),
    }
}

/// A share above 0 and up to 1, in millionths.
fn share(value: &Value) -> Result<u32, String> {
    let wrong = || "must be a number above 0 and at most 1, with at most six decimals, or null".to_owned();
    let share = Usdc::parse(&value.as_number().ok_or_else(wrong)?.to_string()).map_err(|_| wrong())?;
    u32::try_from(share.micro()).ok().filter(|share| (1..=WHOLE).contains(share)).ok_or_else(wrong)
}

/// An address that can stand in a mail header.
fn email(value: &Value) -> Result<String, String> {
    let email = value.as_str().filter(|text| is_email(text));
    email.map(str::to_owned).ok_or_else(|| "must be an e-mail address in ASCII, or null".to_owned())
}

/// Daily caps by name. A `null` cap is ignored; `null` instead of the object clears all. Each wrong cap is an error of its
/// own.
fn named_caps(
    body: &Map<String, Value>,
    member: &str,
    resolve: impl Fn(&str) -> Result<String, &'static str>,
    errors: &mut Vec<FieldError>,
) -> Option<BTreeMap<String, Usdc>> {
    let caps = match body.get(member)? {
        Value::Null => return Some(BTreeMap::new()),
        Value::Object(caps) if caps.len() <= MAX_NAMED_CAPS => caps,
        Value::Object(_) => {
            errors.push(FieldError::new(member, format!("may have at most {MAX_NAMED_CAPS} members")));
            return None;
        }
        _ => {
            errors.push(FieldError::new(member, "must be an object of daily caps by name, or null"));
            return None;
        }
    };
    let mut read: BTreeMap<String, Usdc> = BTreeMap::new();
    for (name, cap) in caps.iter().filter(|(_, cap)| !cap.is_null()) {
        // Refuses caps on unknown names: the owner would believe that they protect.
        match resolve(name).map_err(str::to_owned).and_then(|resolved| Ok((resolved, amount(cap)?))) {
            Ok((resolved, _)) if read.contains_key(&resolved) => {
                let message = format!("is another spelling of {resolved}: send one");
                errors.push(FieldError::new(format!("{member}.{name}"), message));
            }
            Ok((resolved, cap)) => drop(read.insert(resolved, cap)),
            Err(message) => errors.push(FieldError::new(format!("{member}.{name}"), message)),
        }
    }
    Some(read)
}

fn tool(name: &str, catalog: &Catalog) -> Result<String, &'static str> {
    catalog.name_of(name).map(str::to_owned).ok_or("is not a tool of this service")
}

/// The service itself, or a soul by its slug. Whether the soul exists is checked before the cap is set.
fn payee(name: &str) -> Result<String, &'static str> {
    let slug: Result<Slug, _> = name.parse();
    slug.map(|slug| slug.to_string()).map_err(|_| NOBODY)
}

fn caps(budget: Option<&Budget>) -> Value {
    let default = Budget::default();
    let shown = budget.unwrap_or(&default);
    let named = |caps: &BTreeMap<String, Usdc>| -> Map<String, Value> {
        caps.iter().map(|(name, cap)| (name.clone(), cap.to_number())).collect()
    };
    json!({
        "daily_usdc": shown.daily.map(Usdc::to_number),
        "per_transaction_usdc": shown.per_transaction.map(Usdc::to_number),
        "alert_at": budget.map(|budget| Usdc::from_micro(budget.alert_at.into()).to_number()),
        "pause_at": budget.map(|budget| Usdc::from_micro(budget.pause_at.into()).to_number()),
        "alert_email": shown.alert_email,
        "tools": named(&shown.tools),
        "payees": named(&shown.payees),
    })
}

/// The share of the cap that is spent, in per cent with two decimals.
fn per_cent(spent: Usdc, cap: Usdc) -> Value {
    let hundredths = u128::from(spent.micro()) * 10_000 / u128::from(cap.micro().max(1));
    serde_json::from_str(&format!("{}.{:02}", hundredths / 100, hundredths % 100)).unwrap_or(Value::Null)
}

#[cfg(test)]
mod tests {
    use catalog::CATALOG;

    use super::*;

    fn paths(body: Value) -> Vec<String> {
        let errors = Change::read(body.as_object().unwrap(), &CATALOG).err().unwrap_or_default();
        errors.into_iter().map(|error| error.path).collect()
    }

    #[test]
    fn members_may_be_absent_null_or_a_value() {
        let mut budget = Budget::default();
        let mut apply = |body: Value| {
            Change::read(body.as_object().unwrap(), &CATALOG).unwrap().apply(&mut budget);
            budget.clone()
        };
        let set = apply(json!({"daily": 5, "per_transaction": "0.5", "alert_at": 0.5, "pause_at": 0.9}));
        assert_eq!(set.daily, Some(Usdc::from_micro(5_000_000)));
        assert_eq!((set.alert_at, set.pause_at), (500_000, 900_000));
        let kept = apply(json!({"per_transaction": null}));
        assert_eq!((kept.daily, kept.per_transaction), (set.daily, None));
        let reset = apply(json!({"alert_at": null, "pause_at": null, "daily": null}));
        assert_eq!(reset, Budget::default());
    }

    #[test]
    fn every_wrong_member_is_reported() {
        let body = json!({"daily": 0, "per_transaction": -1, "alert_at": 0, "pause_at": 1.5, "alert_email": "x"});
        assert_eq!(paths(body), ["daily", "per_transaction", "alert_at", "pause_at", "alert_email"]);
        for daily in [json!(0.0000001), json!("x"), json!(true), json!([1]), json!(1e30), json!("NaN")] {
            assert_eq!(paths(json!({"daily": daily})), ["daily"], "{daily}");
        }
        let named = json!({"tools": {"vin_decode": 1, "vin": 1, "web_read": -1}, "payees": 5});
        assert_eq!(paths(named), ["tools.vin", "tools.web_read", "payees"]);
        assert_eq!(paths(json!({"dayly": null, "daily": "1e3"})), ["dayly", "daily"]);
        assert_eq!(paths(json!({"tools": {"web-read": 1, "web_read": 5}})), ["tools.web_read"], "one tool, two caps");
        assert_eq!(paths(json!({"tools": {"web-read": null, "web_read": 5}})), [""; 0]);
    }

    #[test]
    fn caps_have_the_names_of_answers_too() {
        let read = |body: Value| Change::read(body.as_object().unwrap(), &CATALOG).unwrap().daily;
        let two = Some(Some(Usdc::from_micro(2_000_000)));
        assert_eq!(read(json!({"daily_usdc": 2, "spent_today_usdc": "1.000000", "resets_at": "x"})), two);
        assert_eq!(read(json!({"daily_usdc": 2, "daily": "2.0"})), two);
        assert_eq!(read(json!({"daily_usdc": null})), Some(None));
        assert_eq!(paths(json!({"daily_usdc": 2, "daily": 3})), ["daily_usdc"]);
        assert_eq!(paths(json!({"per_transaction_usdc": null, "per_transaction": 3})), ["per_transaction_usdc"]);
        assert_eq!(paths(json!({"daily_usdc": 0})), ["daily_usdc"]);
    }
}
