//! Registration, and every change a seller makes to its soul and services. Each change is one transaction ([`commit`]),
//! whose conditions decide races. The public index is updated right after it ([`index::update`]).

use std::time::Duration;

use base::clock::Timestamp;
use base::digest::{random, sha256};
use base::input::FieldError;
use base::money::Usdc;
use gate::app::App;
use gate::limits::{self, Class, Subject};
use gate::work::program::inspect;
use platform::http::{ApiError, log};
use platform::store::{StoreError, Write, WriteError};
use serde_json::{Map, Value};

use super::afford::{self, TextOf};
use super::form::{ProfileChange, SoulForm};
use super::index;
use super::ranking::Standing;
use super::recent::Purchases;
use super::safety;
use super::service::{self, MAX_SERVICES, Service};
use super::service_form::{self, Change, DeploymentLimits};
use super::soul::{self, Slug, Soul, SoulPointer, SoulStatus, TextVersion};
use super::trials;
use super::{Market, view, webhook};

/// Retries of a change when another writer came first.
const TRIES: u32 = 8;

/// The webhook number of a service that is created by a registration.
pub const FIRST_WEBHOOK: u32 = 1;

/// A new registration. The key is not stored anywhere.
pub struct Registered {
    pub soul: Soul,
    pub key: String,
    pub service: Option<Service>,
}

/// Registers a soul and, if given, its first service.
///
/// Only a valid body that passes the safety rules counts against the rate limit of its source. Taken slugs and texts are
/// refused after the request was counted, so guessing them is limited. A repeated registration fails because the slug is
/// taken, unless `named` is the key that the soul was created with.
pub async fn register(
    market: &Market,
    body: &Map<String, Value>,
    named: Option<String>,
) -> Result<Registered, ApiError> {
    let now = market.app.clock.now();
    let first = body.get("service").filter(|service| !service.is_null());
    let text = |name: &str| body.get(name).and_then(Value::as_str).unwrap_or_default();
    let ground = market.ground(TextOf { soul: text("slug"), bytes: text("soul_md").len() });
    let service = first.map(|service| match service.as_object() {
        Some(service) => service_form::create(service, &ground, now),
        None => Err(vec![FieldError::new("", "must be an object")]),
    });
    let (form, service) = match (SoulForm::read(body, &market.app.config.service_name), service.transpose()) {
        (Ok(form), Ok(service)) => (form, service),
        (form, service) => {
            let mut errors = form.err().unwrap_or_default();
            errors.extend(schema::under("service", service.err().unwrap_or_default()));
            return Err(ApiError::InvalidRequest(errors));
        }
    };
    let described = service.as_ref().map(|(_, change)| change.texts()).unwrap_or_default();
    let described: Vec<(String, String)> =
        described.into_iter().map(|(path, text)| (format!("service.{path}"), text)).collect();
    let mut texts = form.texts();
    texts.extend(described.iter().map(|(path, text)| (path.as_str(), text.as_str())));
    safety::check(&texts)?;
    let service = service.as_ref().map(|(service, _)| service.clone());
    if let Some(key) = &named
        && let Some(there) = soul::load_latest(&market.app.db, form.slug.as_str()).await?
        && there.key_hash == soul::key_hash(key)
    {
        // Created before, but the answer was lost: the retry does not count.
        return Ok(Registered { soul: there, key: key.clone(), service });
    }
    limits::take(&market.app, Subject::source(), Class::Register).await?;
    safety::moderate(market, &texts).await?;
    drop(texts);
    enter(&market.app, form, service, named.unwrap_or_else(soul::new_key), now).await
}

async fn enter(
    app: &App,
    form: SoulForm,
    service: Option<Service>,
    key: String,
    now: Timestamp,
) -> Result<Registered, ApiError> {
    let souls = &app.db.tables.souls;
    let text_hash = const_hex::encode(sha256(form.soul_md.as_bytes()));
    let soul = Soul {
        slug: form.slug,
        name: form.name,
        bio: form.bio,
        avatar_url: form.avatar_url,
        status: SoulStatus::Active,
        key_hash: soul::key_hash(&key),
        price: form.price,
        version: 1,
        text_hash: text_hash.clone(),
        text_bytes: Some(form.soul_md.len()),
        wallet: None,
        wallet_verified: false,
        ens_name: None,
        jobs: 0,
        purchases: 0,
        buyers: 0,
        standing: Standing::default(),
        rating_sum: 0,
        rating_count: 0,
        services: service.iter().len().try_into().unwrap_or_default(),
        listed: None,
        created: now,
        updated: now,
    };
    // The blob comes before the record that refers to it. If the soul is refused the blob stays; its name is its hash.
    app.blobs.put(&soul::text_blob(&text_hash), "text/markdown; charset=utf-8", form.soul_md.into_bytes()).await?;
    let leads = SoulPointer { soul: soul.slug.clone() };
    let slug = soul.slug.as_str();
    let mut writes = vec![
        Write::put(souls, soul::key(slug), &soul)?.only_if_new(),
        Write::put(souls, soul::text_key(&text_hash), &leads)?.only_if_new(),
        Write::put(souls, soul::key_key(&soul.key_hash), &leads)?.only_if_new(),
        Write::put(souls, soul::version_key(slug, 1), &version(1, &text_hash, None, now))?,
    ];
    if let Some(service) = &service {
        writes.push(Write::put(souls, service::key(slug, service.slug.as_str()), service)?.only_if_new());
        writes.push(terms_write(app, slug, service)?);
        writes.extend(trials::ask(&app.db, &soul.slug, service, now)?);
    }
    match commit(app, &soul.slug, writes).await {
        Ok(()) => {}
        Err(refused) if refused.refused(0).is_some() => return made_before(app, soul, key, service).await,
        Err(refused) if refused.refused(1).is_some() => return Err(ApiError::SoulExists),
        Err(error) => return Err(unavailable(error)),
    }
    Ok(Registered { soul, key, service })
}

/// The existing soul of this slug, if its key is the key of this registration: then the same request created it and the
/// answer was lost. Else an error, because the slug is taken.
async fn made_before(app: &App, asked: Soul, key: String, service: Option<Service>) -> Result<Registered, ApiError> {
    let there = latest(app, &asked.slug).await?;
    if there.key_hash != asked.key_hash {
        return Err(ApiError::SlugTaken);
    }
    Ok(Registered { soul: there, key, service })
}

/// Changes the members of a soul's profile that are present in the body. Returns the soul after the change.
///
/// A member that is stored already is not written again, so a body that repeats it does not undo a concurrent change. The
/// others are written by attribute, so that counters and concurrent changes of other members stay. A new name or bio counts
/// like a new text, because it brings new words into the search index.
pub async fn change_profile(market: &Market, soul: &Soul, body: &Map<String, Value>) -> Result<Soul, ApiError> {
    let app = &market.app;
    // The purchases are not compared.
    let shown = view::own(soul, Purchases::default());
    let change = ProfileChange::read(body, &shown, &app.config.service_name).map_err(ApiError::InvalidRequest)?;
    let name = change.name.filter(|name| *name != soul.name);
    let bio = change.bio.filter(|bio| *bio != soul.bio);
    let avatar_url = change.avatar_url.filter(|url| *url != soul.avatar_url);
    let (mut set, mut gone) = (vec!["#updated = :now"], Vec::new());
    if name.is_some() {
        set.push("#name = :name");
    }
    for (value, new, attribute) in
        [(&bio, "#bio = :bio", "#bio"), (&avatar_url, "#avatar_url = :avatar_url", "#avatar_url")]
    {
        match value {
            Some(Some(_)) => set.push(new),
            Some(None) => gone.push(attribute),
            None => {}
        }
    }
    if set.len() + gone.len() == 1 {
        return Ok(soul.clone());
    }
    if name.is_some() || bio.is_some() {
        let mut texts = Vec::new();
        texts.extend(name.as_deref().map(|name| ("name", name)));
        texts.extend(bio.as_ref().and_then(|bio| Some(("bio", bio.as_deref()?))));
        safety::check(&texts)?;
        limits::take(app, Subject::Soul(soul.id()), Class::Publish).await?;
        safety::moderate(market, &texts).await?;
    }
    let remove = if gone.is_empty() { String::new() } else { format!(" REMOVE {}", gone.join(", ")) };
    let expression = format!("SET {}{remove}", set.join(", "));
    let mut write = Write::update(&app.db.tables.souls, soul::key(soul.slug.as_str()), &expression)
        .only_if("#key_hash = :key")
        .bind("now", app.clock.now())?
        .bind("key", &soul.key_hash)?;
    for (attribute, value) in [("name", name), ("bio", bio.flatten()), ("avatar_url", avatar_url.flatten())] {
        if let Some(value) = value {
            write = write.bind(attribute, value)?;
        }
    }
    match commit(app, &soul.slug, vec![write]).await {
        Ok(()) => latest(app, &soul.slug).await,
        // The key was replaced meanwhile. What it asked for before counts no more.
        Err(WriteError::Refused(_)) => Err(ApiError::SoulKeyUnknown),
        Err(error) => Err(unavailable(error)),
    }
}

/// Publishes a new text. The same text keeps the version. A text that belongs to another soul is refused.
pub async fn change_text(
    market: &Market,
    slug: &Slug,
    text: String,
    note: Option<String>,
) -> Result<(u32, String), ApiError> {
    let app = &market.app;
    let (souls, now) = (&app.db.tables.souls, app.clock.now());
    let mut texts = vec![("soul_md", text.as_str())];
    texts.extend(note.as_deref().map(|note| ("change_note", note)));
    safety::publishable(market, &texts).await?;
    let hash = const_hex::encode(sha256(text.as_bytes()));
    let mut stored = false;
    for _ in 0..TRIES {
        let soul = latest(app, slug).await?;
        if soul.text_hash == hash {
            return Ok((soul.version, hash));
        }
        if !stored {
            check_services_afford(market, slug, text.len()).await?;
            limits::take(app, Subject::Soul(soul.id()), Class::Publish).await?;
            let bytes = text.clone().into_bytes();
            app.blobs.put(&soul::text_blob(&hash), "text/markdown; charset=utf-8", bytes).await?;
            stored = true;
        }
        let next = soul.version + 1;
        let change = "SET #version = :next, #text_hash = :hash, #text_bytes = :bytes, #updated = :now";
        let change = Write::update(souls, soul::key(slug.as_str()), change)
            .only_if("#version = :version")
            .bind("next", next)?
            .bind("hash", &hash)?
            .bind("bytes", text.len())?
            .bind("now", now)?
            .bind("version", soul.version)?;
        // A soul keeps the claim on all its texts, so that a buyer of one cannot register it.
        let claim = Write::put(souls, soul::text_key(&hash), &SoulPointer { soul: slug.clone() })?
            .only_if("attribute_not_exists(#pk) OR #soul = :soul")
            .bind("soul", slug)?;
        let kept = version(next, &hash, note.clone(), now);
        let kept = Write::put(souls, soul::version_key(slug.as_str(), next), &kept)?.only_if_new();
        match commit(app, slug, vec![claim, change, kept]).await {
            Ok(()) => return Ok((next, hash)),
            Err(refused) if refused.refused(0).is_some() => return Err(ApiError::SoulExists),
            Err(WriteError::Refused(_)) => {}
            Err(error) => return Err(unavailable(error)),
        }
    }
    Err(ApiError::RequestInProgress)
}

/// Refuses a text that is too long for the price of a model service.
async fn check_services_afford(market: &Market, slug: &Slug, bytes: usize) -> Result<(), ApiError> {
    if !market.has_model() {
        return Ok(());
    }
    let (app, text) = (&market.app, TextOf { soul: slug.as_str(), bytes });
    let fee = app.config.prices.platform_fee;
    let services = service::of_soul_latest(&app.db, slug.as_str()).await?;
    let wrong: Vec<FieldError> = services
        .iter()
        .filter_map(|service| Some((service, afford::too_cheap(app.catalog, market.model, fee, text, service)?)))
        .map(|(service, least)| {
            let message = format!("with this text the service {} would have to cost at least {least}", service.slug);
            FieldError::new("soul_md", message)
        })
        .collect();
    if wrong.is_empty() { Ok(()) } else { Err(ApiError::InvalidRequest(wrong)) }
}

/// Sets the price of the text. 0 is free, `None` is not for sale.
pub async fn change_price(app: &App, slug: &Slug, price: Option<Usdc>) -> Result<(), ApiError> {
    let key = soul::key(slug.as_str());
    let expression = match price {
        Some(_) => "SET #price = :price, #updated = :now",
        None => "SET #updated = :now REMOVE #price",
    };
    let mut write = Write::update(&app.db.tables.souls, key, expression)
        .only_if("attribute_exists(#pk)")
        .bind("now", app.clock.now())?;
    if let Some(price) = price {
        write = write.bind("price", price)?;
    }
    commit(app, slug, vec![write]).await.map_err(unavailable)
}

/// Replaces a soul's key. The old key is invalid at once. If the answer with the new key is lost, only an operator can
/// help (docs/DEPLOY.md).
pub async fn rotate_key(app: &App, soul: &Soul) -> Result<String, ApiError> {
    let souls = &app.db.tables.souls;
    let fresh = soul::new_key();
    let hash = soul::key_hash(&fresh);
    let change = Write::update(souls, soul::key(soul.slug.as_str()), "SET #key_hash = :new, #updated = :now")
        .only_if("#key_hash = :old")
        .bind("new", &hash)?
        .bind("old", &soul.key_hash)?
        .bind("now", app.clock.now())?;
    let leads = Write::put(souls, soul::key_key(&hash), &SoulPointer { soul: soul.slug.clone() })?.only_if_new();
    let gone = Write::delete(souls, soul::key_key(&soul.key_hash));
    match app.db.transact(&[change, leads, gone]).await {
        Ok(()) => Ok(fresh),
        // A concurrent rotation with the same key won, so this key is invalid now.
        Err(WriteError::Refused(_)) => Err(ApiError::SoulKeyUnknown),
        Err(error) => Err(unavailable(error)),
    }
}

/// The result of a change: the service, and the webhook secret if it is new.
pub struct Offered {
    pub service: Service,
    pub webhook_secret: Option<String>,
}

/// Adds a service.
pub async fn add_service(market: &Market, soul: &Soul, body: &Map<String, Value>) -> Result<Offered, ApiError> {
    let (app, now) = (&market.app, market.app.clock.now());
    let ground = market.ground(TextOf::soul(soul));
    let (service, change) = service_form::create(body, &ground, now).map_err(ApiError::InvalidRequest)?;
    publishable(market, &change).await?;
    let slug = soul.slug.as_str();
    let souls = &app.db.tables.souls;
    let counted = Write::update(souls, soul::key(slug), "ADD #services :one")
        .only_if("attribute_exists(#pk) AND (attribute_not_exists(#services) OR #services < :most)")
        .bind("one", 1)?
        .bind("most", MAX_SERVICES)?;
    let put = Write::put(souls, service::key(slug, service.slug.as_str()), &service)?.only_if_new();
    let mut writes = vec![put, counted, terms_write(app, slug, &service)?];
    writes.extend(trials::ask(&app.db, &soul.slug, &service, now)?);
    match commit(app, &soul.slug, writes).await {
        Ok(()) => Ok(market.offered(&soul.slug, service, 0)),
        Err(refused) if refused.refused(0).is_some() => Err(ApiError::SlugTaken),
        Err(refused) if refused.refused(1).is_some() => Err(ApiError::TooManyServices { most: MAX_SERVICES }),
        Err(error) => Err(unavailable(error)),
    }
}

/// Changes the members of a service that are present in the body.
pub async fn change_service(
    market: &Market,
    soul: &Soul,
    name: &str,
    body: &Map<String, Value>,
) -> Result<Offered, ApiError> {
    let ground = market.ground(TextOf::soul(soul));
    let change = Change::read(body, name, &ground).map_err(ApiError::InvalidRequest)?;
    // Existence is public, so it is checked before anything else.
    find_service(&market.app, &soul.slug, name).await?;
    publishable(market, &change).await?;
    let changed = |service: &Service| change.apply(service, &ground).map_err(ApiError::InvalidRequest);
    update_service(market, &soul.slug, name, changed).await
}

/// Gives a service its program.
pub async fn change_program(market: &Market, soul: &Soul, name: &str, bytes: Vec<u8>) -> Result<Offered, ApiError> {
    let runs_programs = |service: &Service| match service.terms.executor {
        service::Executor::Program => Ok(()),
        _ => Err(ApiError::field("executor", "must be program before a program is uploaded")),
    };
    let service = find_service(&market.app, &soul.slug, name).await?;
    runs_programs(&service)?;
    // A program that cannot start is refused at upload, before it is sold.
    inspect(&bytes).map_err(|problems| {
        ApiError::InvalidRequest(problems.into_iter().map(|problem| FieldError::new("", problem)).collect())
    })?;
    let hash = const_hex::encode(sha256(&bytes));
    if service.terms.program.as_ref() == Some(&hash) {
        return Ok(market.offered(&soul.slug, service.clone(), service.terms.webhook_number));
    }
    limits::take(&market.app, Subject::Soul(soul.id()), Class::Publish).await?;
    let mut uploaded = service.terms;
    uploaded.program = Some(hash);
    uploaded.program_copy = Some(const_hex::encode(random::<8>()));
    let blob = uploaded.program_blob().unwrap_or_default();
    market.app.blobs.put(&blob, "application/wasm", bytes).await?;
    let changed = |service: &Service| {
        runs_programs(service)?;
        let mut changed = service.clone();
        changed.terms.program.clone_from(&uploaded.program);
        changed.terms.program_copy.clone_from(&uploaded.program_copy);
        Ok(changed)
    };
    let offered = update_service(market, &soul.slug, name, changed).await;
    // A failed write may still have been applied. A refused one was not.
    if !matches!(offered, Ok(_) | Err(ApiError::Unavailable(_))) {
        market.app.blobs.delete(&blob).await?;
    }
    offered
}

/// Takes a service off the market. Idempotent.
pub async fn disable_service(market: &Market, soul: &Soul, name: &str) -> Result<(), ApiError> {
    let changed = |service: &Service| Ok(Service { active: false, ..service.clone() });
    update_service(market, &soul.slug, name, changed).await.map(drop)
}

/// Applies a change to the latest record. Changed terms become a new version, which is kept. Everything is written by
/// attribute, so that counters and concurrent changes are not overwritten.
async fn update_service(
    market: &Market,
    soul: &Slug,
    name: &str,
    change: impl Fn(&Service) -> Result<Service, ApiError>,
) -> Result<Offered, ApiError> {
    let app = &market.app;
    let (souls, key) = (&app.db.tables.souls, service::key(soul.as_str(), name));
    for _ in 0..TRIES {
        let before = find_service(app, soul, name).await?;
        let mut after = change(&before)?;
        if after == before {
            return Ok(market.offered(soul, after, before.terms.webhook_number));
        }
        // Strictly later than before, even if the clock is not: the next condition compares it.
        after.updated = app.clock.now().max(before.updated.plus(Duration::from_millis(1)));
        let new_terms = after.terms != before.terms;
        if new_terms {
            after.terms.version = before.terms.version + 1;
            let quote_ttl = app.config.payments.soul_quote_ttl;
            after.terms = after.terms.noting_raise(&before.terms, market.conditions(), after.updated, quote_ttl);
        }
        let described = if after.description.is_some() { ", #description = :description" } else { "" };
        let tested = if after.test_cases.is_empty() { "" } else { ", #test_cases = :test_cases" };
        let mut gone: Vec<&str> = Vec::new();
        if after.description.is_none() {
            gone.push("#description");
        }
        if after.test_cases.is_empty() {
            gone.push("#test_cases");
        }
        let remove = if gone.is_empty() { String::new() } else { format!(" REMOVE {}", gone.join(", ")) };
        let expression = format!(
            "SET #terms = :terms, #active = :active, #category = :category, #updated = :now{described}{tested}{remove}"
        );
        // Every change of a service alters the version or the time, so a concurrent change makes this condition fail.
        let mut write = Write::update(souls, key.clone(), &expression)
            .only_if("#terms.#version = :version AND #updated = :before")
            .bind("terms", &after.terms)?
            .bind("active", after.active)?
            .bind("category", after.category)?
            .bind("now", after.updated)?
            .bind("version", before.terms.version)?
            .bind("before", before.updated)?;
        if let Some(description) = &after.description {
            write = write.bind("description", description)?;
        }
        if !after.test_cases.is_empty() {
            write = write.bind("test_cases", serde_json::to_string(&after.test_cases).map_err(StoreError::new)?)?;
        }
        let mut writes = vec![write];
        if new_terms {
            writes.push(terms_write(app, soul.as_str(), &after)?);
            let replaced = service::terms_key(soul.as_str(), name, before.terms.version);
            let replaced = Write::update(souls, replaced, "SET #expires = :expires")
                .only_if("attribute_exists(#pk)")
                .bind("expires", after.updated.plus(service::KEEP_REPLACED).secs())?;
            writes.push(replaced);
        }
        if new_terms || after.test_cases != before.test_cases || after.active != before.active {
            writes.extend(trials::ask(&app.db, soul, &after, after.updated)?);
        }
        // Copied before the change, so that a sold job always finds its program in one of the two places.
        let is_replaced = after.terms.program_blob() != before.terms.program_blob();
        let replaced = if is_replaced { service::copy_replaced(&*app.blobs, &before.terms).await? } else { None };
        match commit(app, soul, writes).await {
            Ok(()) => {
                if let Some(blob) = replaced
                    && let Err(error) = app.blobs.delete(&blob).await
                {
                    log::failure("a replaced program was not deleted", &error);
                }
                return Ok(market.offered(soul, after, before.terms.webhook_number));
            }
            Err(WriteError::Refused(_)) => {}
            Err(error) => return Err(unavailable(error)),
        }
    }
    Err(ApiError::RequestInProgress)
}

impl Market {
    /// The limits of this deployment that service forms check.
    pub fn ground<'a>(&'a self, text: TextOf<'a>) -> DeploymentLimits<'a> {
        DeploymentLimits {
            catalog: self.app.catalog,
            model: self.model,
            fee: self.app.config.prices.platform_fee,
            text,
            policy: &self.gate.fetch_policy,
        }
    }

    /// The webhook secret is returned only when the URL is new.
    fn offered(&self, soul: &Slug, service: Service, number_before: u32) -> Offered {
        let number = service.terms.webhook_number;
        let is_new = service.terms.webhook_url.is_some() && number != number_before;
        let secret = || webhook::secret(&self.webhook_key, soul.as_str(), service.slug.as_str(), number);
        Offered { webhook_secret: is_new.then(secret), service }
    }
}

impl Registered {
    /// The secret of the first service's webhook, if it has one.
    pub fn webhook_secret(&self, market: &Market) -> Option<String> {
        let service = self.service.as_ref().filter(|service| service.terms.webhook_url.is_some())?;
        let number = service.terms.webhook_number;
        Some(webhook::secret(&market.webhook_key, self.soul.slug.as_str(), service.slug.as_str(), number))
    }
}

/// Suspends a soul or reactivates it, on an operator's behalf (docs/DEPLOY.md). A suspended soul sells nothing new;
/// sold jobs finish, and payouts wait.
pub async fn suspend(app: &App, slug: &Slug, suspended: bool) -> Result<(), WriteError> {
    let expression = if suspended { "SET #status = :status REMOVE #listed" } else { "SET #status = :status" };
    let status = if suspended { SoulStatus::Suspended } else { SoulStatus::Active };
    let write = Write::update(&app.db.tables.souls, soul::key(slug.as_str()), expression)
        .only_if("attribute_exists(#pk)")
        .bind("status", status)
        .map_err(WriteError::Failed)?;
    commit(app, slug, vec![write]).await
}

/// Commits a change of a soul or its services in one transaction, then updates the index. Refusals are numbered in the
/// order of `writes`.
pub async fn commit(app: &App, slug: &Slug, mut writes: Vec<Write>) -> Result<(), WriteError> {
    // If the process dies before the index is updated, the scheduler finds this mark.
    writes.push(index::pending(&app.db, slug, app.clock.now()).map_err(WriteError::Failed)?);
    app.db.apply(writes).await?;
    // Index errors are only logged: the change is made, and its answer may hold a key that is shown once.
    if let Err(error) = index::update(&app.db, slug, app.clock.now()).await {
        log::failure("a soul's index is behind", &error);
    }
    Ok(())
}

async fn publishable(market: &Market, change: &Change) -> Result<(), ApiError> {
    let texts = change.texts();
    let texts: Vec<(&str, &str)> = texts.iter().map(|(path, text)| (*path, text.as_str())).collect();
    safety::publishable(market, &texts).await
}

async fn find_service(app: &App, soul: &Slug, name: &str) -> Result<Service, ApiError> {
    service::load_latest(&app.db, soul.as_str(), name).await?.ok_or(ApiError::ServiceNotFound)
}

async fn latest(app: &App, slug: &Slug) -> Result<Soul, ApiError> {
    soul::load_latest(&app.db, slug.as_str()).await?.ok_or(ApiError::NotFound)
}

fn terms_write(app: &App, soul: &str, service: &Service) -> Result<Write, StoreError> {
    let key = service::terms_key(soul, service.slug.as_str(), service.terms.version);
    Ok(Write::put(&app.db.tables.souls, key, &service.terms)?.only_if_new())
}

fn version(version: u32, hash: &str, note: Option<String>, at: Timestamp) -> TextVersion {
    TextVersion { version, hash: hash.to_owned(), note, at }
}

fn unavailable(error: WriteError) -> ApiError {
    ApiError::Unavailable(error.into())
}
