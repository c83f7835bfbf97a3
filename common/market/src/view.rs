//! The wire shapes of souls and services. Money is a JSON number here.

use base::money::Usdc;
use serde_json::{Value, json};

use super::recent::Purchases;
use super::service::{Conditions, Service, Terms};
use super::soul::{Soul, TextVersion};

/// The public profile. A suspended soul shows its status and no price.
pub fn soul(soul: &Soul, lately: Purchases) -> Value {
    let price = soul.price.filter(|_| soul.is_active());
    json!({
        "id": soul.id(),
        "name": soul.name,
        "slug": soul.slug,
        "ens_name": soul.ens_name,
        "bio": soul.bio,
        "avatar_url": soul.avatar_url,
        "status": soul.status,
        "soul_for_sale": price.is_some(),
        "soul_price": price.map(Usdc::to_number),
        "version": soul.version,
        "stats": {
            "total_jobs": soul.jobs,
            "avg_rating": soul.avg_rating(),
            "rating_count": soul.rating_count,
            "total_purchases": soul.purchases,
            "purchases_last_24h": lately.last_24h,
            "purchases_last_7d": lately.last_7d,
            "purchases_last_30d": lately.last_30d,
        },
    })
}

/// The soul as its seller sees it. A suspended one still shows its price.
pub fn own(soul: &Soul, lately: Purchases) -> Value {
    let mut shown = self::soul(soul, lately);
    shown["soul_price"] = json!(soul.price.map(Usdc::to_number));
    shown["payout_address"] = json!(soul.wallet.map(|wallet| wallet.to_string()));
    shown["payout_address_verified"] = json!(soul.wallet_verified);
    shown["created_at"] = json!(soul.created.to_string());
    shown["updated_at"] = json!(soul.updated.to_string());
    shown
}

/// The soul in the response to a registration.
pub fn registered(soul: &Soul) -> Value {
    json!({"id": soul.id(), "name": soul.name, "slug": soul.slug, "status": soul.status})
}

/// The first service in the response to a registration.
pub fn first_service(soul: &Soul, service: &Service) -> Value {
    json!({
        "id": service.id(&soul.slug), "name": service.terms.name, "slug": service.slug,
        "price_usd": service.terms.price.to_number(),
    })
}

/// A service in the public profile.
pub fn offer(soul: &Soul, service: &Service, on: Conditions) -> Value {
    let mut offer = first_service(soul, service);
    offer["description"] = json!(service.description);
    offer["input_schema"] = json!(service.terms.input_schema);
    offer["total_executions"] = json!(service.total_executions);
    // Extra members that a buyer may want before paying.
    offer["category"] = json!(service.category);
    offer["version"] = json!(service.terms.version);
    promises(&mut offer, &service.terms, on);
    // Only a trial of the current terms counts.
    let trial = service.trial.as_ref().filter(|trial| trial.version == service.terms.version);
    offer["tests"] = match trial {
        Some(trial) => json!({"passed": trial.passed, "total": trial.total, "at": trial.at.to_string()}),
        None => Value::Null,
    };
    offer
}

/// A service as its seller sees it.
pub fn service(soul: &Soul, service: &Service, on: Conditions) -> Value {
    let terms = &service.terms;
    let mut shown = offer(soul, service, on);
    shown["active"] = json!(service.active);
    shown["tools"] = json!(terms.tools);
    shown["tool_budget_usd"] = terms.tool_budget.to_number();
    shown["webhook_url"] = json!(terms.webhook_url);
    shown["program"] = json!(terms.program);
    shown["test_cases"] = json!(service.test_cases);
    shown["test_failures"] = json!(service.trial.as_ref().map(|trial| &trial.failures));
    shown["created_at"] = json!(service.created.to_string());
    shown["updated_at"] = json!(service.updated.to_string());
    shown
}

fn promises(offer: &mut Value, terms: &Terms, on: Conditions) {
    offer["sandbox"] = json!(terms.sandbox);
    offer["executor"] = json!(terms.done_by(on.has_model));
    offer["deadline_seconds"] = json!(terms.deadline_seconds);
    offer["kept_if_failed_up_to"] = terms.kept_if_failed_up_to(on).to_number();
    offer["output_schema"] = json!(terms.output_schema);
}

/// One version of a text's history, without the text.
pub fn version(version: &TextVersion) -> Value {
    json!({
        "version": version.version,
        "soul_hash": version.hash,
        "change_note": version.note,
        "created_at": version.at.to_string(),
    })
}
