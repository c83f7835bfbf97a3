//! Every error a caller can get: one variant each, with its HTTP status, `error` code, message and body. `docs/ERRORS.md`
//! describes them for callers.
//!
//! Domain modules have their own small errors without status codes; handlers convert them. The cause in
//! [`ApiError::Unavailable`] is only logged, never shown to the caller.

use axum::response::{IntoResponse, Response};
use base::clock::Timestamp;
use base::input::FieldError;
use base::money::Usdc;
use base::tool_result::Unavailable;
use http::{HeaderValue, StatusCode, header};
use serde_json::{Value, json};

use super::limit::Taken;
use super::market::MarketError;
use super::private_json;
use crate::auth::ProofError;
use crate::store::StoreError;

#[derive(Debug)]
pub enum ApiError {
    /// The body, the query or a header is not valid.
    InvalidRequest(Vec<FieldError>),
    /// The quote is unknown, has expired, was used or belongs to another request.
    InvalidQuote,
    /// The quote is valid, but for another body, tool or agent.
    QuoteMismatch,
    /// The tool is called with the id of a quote; `at` is the path that gives one.
    QuoteIdRequired {
        at: &'static str,
    },
    /// A refusal that only one tool has.
    Tool {
        status: StatusCode,
        code: &'static str,
        message: String,
    },
    /// The price is above the caller's own `X-Max-Cost-USDC`.
    ExceedsCallerBudget {
        price: Usdc,
        cap: Usdc,
    },
    /// The route needs a proof of the wallet and got none.
    ProofRequired,
    /// A soul's job was asked for by nobody. `by_name`: the bare address of its buyer or its seller would do.
    PartyRequired {
        by_name: bool,
    },
    /// The tool also needs an agent proof beside the payment: it is about the wallet's own identity.
    AgentProofRequired,
    InvalidProof(ProofError),
    /// The bearer token is unknown or has expired.
    AccessTokenInvalid,
    /// A soul key on a route for agents.
    SoulKeyNotForAgents,
    /// The bearer token was revoked by its owner.
    AccessTokenRevoked,
    /// The token and `X-Agent-ID` name different agents.
    AgentMismatch,
    /// Called with an access token; only the wallet's own proof is accepted.
    WalletOnly,
    /// An attempt to change budgets with an access token.
    BudgetsReadOnly,
    /// The route needs a signed payment and cannot be used with an access token.
    ClosedToTokens,
    /// The wallet has no access token with this id.
    AccessTokenNotFound,
    TooManyAccessTokens {
        most: usize,
    },
    /// The operator has not configured what the request needs. `what` follows "this deployment has no".
    NotConfigured {
        what: String,
    },
    /// The signature of a card processor's event is missing, wrong or too old.
    Unauthorized,
    /// The idempotency key (`Idempotency-Key` or payment identifier) belongs to another purchase.
    IdempotencyKeyReused,
    /// A call with the same idempotency key is in progress.
    RequestInProgress,
    /// The purchase is known, but its result is no longer stored.
    ResultExpired,
    /// The charge would exceed a cap of the owner's budget.
    BudgetExceeded(Box<OverBudget>),
    /// The owner froze the agent, the token, the tool or the payee.
    Frozen {
        what: &'static str,
    },
    /// The access token's agent does not have enough credits.
    InsufficientCredits(Box<Shortfall>),
    /// A rule of the owner's policy forbids this call.
    ActionDenied {
        rule: String,
    },
    /// A rule of the owner's policy holds this call until a human approves it.
    ApprovalRequired {
        /// `None` in a dry run, which asks nobody.
        approval_id: Option<String>,
        approval: Box<Value>,
        message: &'static str,
    },
    /// The given approval does not release this call; the text says why.
    ApprovalInvalid(&'static str),
    TooManyPendingApprovals,
    /// The connection has reached its maximum number of followed jobs.
    TooManySubscriptions {
        most: usize,
    },
    /// The agent has reached its maximum number of open connections.
    TooManyConnections {
        most: u8,
    },
    /// Only a pending approval can be cancelled.
    ApprovalNotPending,
    /// The payment was used for another request.
    PaymentAlreadyUsed,
    /// The payment was put on chain for another purchase, here or at another deployment with the same payment address.
    PaymentForAnother {
        transaction: String,
    },
    /// The cursor does not come from a page of this route.
    InvalidCursor,
    /// The wallet is linked to another soul.
    WalletAlreadyLinked,
    /// A payout was requested, but no wallet is linked.
    WalletNotLinked,
    /// The payout cannot be made. `reason` is for programs, `message` for people.
    PayoutFailed {
        reason: &'static str,
        message: String,
    },
    /// The agent has no such receipt.
    ReceiptNotFound,
    /// No request with this idempotency key has been accepted so far. One may still be accepted later.
    SubmissionNotFound,
    NotFound,
    /// The agent has no notification with this id.
    NotificationNotFound,
    MethodNotAllowed {
        allow: String,
    },
    PayloadTooLarge {
        limit_bytes: usize,
    },
    UnsupportedMediaType,
    /// An emergency number gets no texts or calls.
    EmergencyNumber {
        /// As the caller wrote it.
        number: String,
    },
    /// A refusal that only one tool has, with `details` for programs.
    Detailed {
        status: StatusCode,
        code: &'static str,
        message: String,
        details: Value,
    },
    /// A refusal of a tool that ends after a while, such as the limit of a day.
    Later {
        status: StatusCode,
        code: &'static str,
        message: String,
        retry_after_secs: u64,
    },
    /// Finding out the price takes longer than a request. `begun` is for the quoter of the repeated request; it is not shown.
    QuotePending {
        begun: serde_json::Map<String, Value>,
        retry_after_secs: u64,
    },
    /// A text may not be published or sent. `places` names the fields if our own rules found them.
    ContentBlocked {
        categories: Vec<String>,
        places: Vec<FieldError>,
    },
    /// The slug of the soul or of the service is in use.
    SlugTaken,
    /// Another soul has exactly this text.
    SoulExists,
    /// The soul has no such service, or it is not open to buyers.
    ServiceNotFound,
    TooManyServices {
        most: usize,
    },
    /// A seller's route, called without a soul key.
    SoulKeyRequired,
    /// The soul key belongs to no soul, or another replaced it.
    SoulKeyUnknown,
    /// Too many requests in this window.
    RateLimited(Taken),
    /// An operator stopped all paid calls; the text is the reason.
    ServicePaused(String),
    /// An error of the marketplace.
    Market(MarketError),
    /// The payment could not be processed. Nothing was broadcast, so the same payment may be sent again.
    PaymentProcessing(Box<PaymentContext>),
    /// The payment could not be checked on chain. Nothing was claimed, so the same payment may be sent again.
    PaymentUnchecked(Box<PaymentContext>),
    /// The agent has no webhook with this id.
    WebhookNotFound,
    /// This event was not sent to this webhook.
    DeliveryNotFound,
    TooManyWebhooks {
        most: usize,
    },
    /// A disabled webhook gets no deliveries.
    WebhookDisabled,
    /// Only a finished delivery can be replayed.
    DeliveryPending,
    /// A dependency failed or did not answer.
    Unavailable(StoreError),
}

/// The cap a charge would exceed. Amounts in USDC.
#[derive(Clone, Debug)]
pub struct OverBudget {
    /// `daily`, `per_transaction`, `tool` or `payee`; of the access token: `token_daily`, `token_per_transaction` or
    /// `token_lifetime`.
    pub reason: &'static str,
    pub cap: Usdc,
    /// Counts against the cap; includes `in_flight`. Nothing counts against a cap per call but the charge.
    pub spent: Usdc,
    pub in_flight: Usdc,
    pub charge: Usdc,
    /// `None` for a cap that never resets.
    pub resets_at: Option<Timestamp>,
}

/// The credits a call needs and what is missing.
#[derive(Clone, Debug)]
pub struct Shortfall {
    pub required: Usdc,
    pub balance: Usdc,
    /// Owed beyond the balance; must be paid first.
    pub owed: Usdc,
    /// Held by the quote being redeemed.
    pub held: Usdc,
    pub quote_id: Option<String>,
    /// The page that describes topping up.
    pub docs_url: String,
}

impl Shortfall {
    fn missing(&self) -> Usdc {
        let there = self.held.checked_add(self.balance).unwrap_or(self.required);
        self.required.checked_sub(there).unwrap_or_default().checked_add(self.owed).unwrap_or(self.required)
    }
}

/// Facts about the payment in a refusal, so that the payer can match and correct it.
#[derive(Clone, Debug)]
pub struct PaymentContext {
    pub amount: Usdc,
    pub asset: String,
    pub network: String,
    pub pay_to: String,
    /// The signed amount; `None` if it does not fit in 64 bits.
    pub received: Option<Usdc>,
    pub quote_id: Option<String>,
    /// The authorization's nonce: the payer's own id for this attempt.
    pub attempt_id: String,
}

impl PaymentContext {
    /// The members `expected`, `received`, `quote_id` and `payment_attempt_id` of a refusal.
    pub fn members(&self) -> Value {
        json!({
            "expected": {"amount": self.amount.to_string(), "asset": self.asset, "network": self.network, "pay_to": self.pay_to},
            "received": {"amount": self.received.map(|amount| amount.to_string())},
            "quote_id": self.quote_id,
            "payment_attempt_id": self.attempt_id,
        })
    }
}

impl ApiError {
    /// One wrong field.
    pub fn field(path: &str, message: impl Into<String>) -> ApiError {
        ApiError::InvalidRequest(vec![FieldError::new(path, message)])
    }

    pub fn status(&self) -> StatusCode {
        match self {
            ApiError::InvalidRequest(_)
            | ApiError::InvalidQuote
            | ApiError::QuoteMismatch
            | ApiError::QuoteIdRequired { .. }
            | ApiError::InvalidCursor
            | ApiError::WalletNotLinked
            | ApiError::PayoutFailed { .. }
            | ApiError::EmergencyNumber { .. }
            | ApiError::ContentBlocked { .. }
            | ApiError::ExceedsCallerBudget { .. } => StatusCode::BAD_REQUEST,
            ApiError::SlugTaken | ApiError::SoulExists | ApiError::TooManyServices { .. } => StatusCode::CONFLICT,
            ApiError::ServiceNotFound => StatusCode::NOT_FOUND,
            ApiError::SoulKeyRequired | ApiError::SoulKeyUnknown => StatusCode::UNAUTHORIZED,
            ApiError::ProofRequired
            | ApiError::PartyRequired { .. }
            | ApiError::AgentProofRequired
            | ApiError::InvalidProof(_)
            | ApiError::AccessTokenInvalid
            | ApiError::SoulKeyNotForAgents
            | ApiError::AccessTokenRevoked => StatusCode::UNAUTHORIZED,
            ApiError::AgentMismatch
            | ApiError::WalletOnly
            | ApiError::BudgetsReadOnly
            | ApiError::BudgetExceeded(_)
            | ApiError::Frozen { .. } => StatusCode::FORBIDDEN,
            ApiError::InsufficientCredits(_) => StatusCode::PAYMENT_REQUIRED,
            ApiError::AccessTokenNotFound => StatusCode::NOT_FOUND,
            ApiError::TooManyAccessTokens { .. } => StatusCode::CONFLICT,
            ApiError::NotConfigured { .. } => StatusCode::SERVICE_UNAVAILABLE,
            ApiError::Unauthorized => StatusCode::UNAUTHORIZED,
            ApiError::IdempotencyKeyReused => StatusCode::UNPROCESSABLE_ENTITY,
            ApiError::RequestInProgress => StatusCode::CONFLICT,
            ApiError::ResultExpired => StatusCode::GONE,
            ApiError::ActionDenied { .. } | ApiError::ApprovalRequired { .. } | ApiError::ApprovalInvalid(_) => {
                StatusCode::FORBIDDEN
            }
            ApiError::TooManyPendingApprovals | ApiError::ApprovalNotPending => StatusCode::CONFLICT,
            ApiError::TooManySubscriptions { .. } => StatusCode::CONFLICT,
            ApiError::TooManyConnections { .. } => StatusCode::TOO_MANY_REQUESTS,
            ApiError::PaymentAlreadyUsed | ApiError::PaymentForAnother { .. } | ApiError::WalletAlreadyLinked => {
                StatusCode::CONFLICT
            }
            ApiError::SubmissionNotFound => StatusCode::NOT_FOUND,
            ApiError::ReceiptNotFound | ApiError::NotFound | ApiError::NotificationNotFound => StatusCode::NOT_FOUND,
            ApiError::MethodNotAllowed { .. } => StatusCode::METHOD_NOT_ALLOWED,
            ApiError::PayloadTooLarge { .. } => StatusCode::PAYLOAD_TOO_LARGE,
            ApiError::UnsupportedMediaType => StatusCode::UNSUPPORTED_MEDIA_TYPE,
            ApiError::WebhookNotFound | ApiError::DeliveryNotFound => StatusCode::NOT_FOUND,
            ApiError::TooManyWebhooks { .. } | ApiError::WebhookDisabled | ApiError::DeliveryPending => {
                StatusCode::CONFLICT
            }
            ApiError::RateLimited(_) => StatusCode::TOO_MANY_REQUESTS,
            ApiError::ServicePaused(_) => StatusCode::SERVICE_UNAVAILABLE,
            ApiError::Tool { status, .. } | ApiError::Detailed { status, .. } | ApiError::Later { status, .. } => {
                *status
            }
            ApiError::Market(error) => error.status(),
            ApiError::PaymentProcessing(_) => StatusCode::INTERNAL_SERVER_ERROR,
            ApiError::ClosedToTokens
            | ApiError::QuotePending { .. }
            | ApiError::PaymentUnchecked(_)
            | ApiError::Unavailable(_) => StatusCode::SERVICE_UNAVAILABLE,
        }
    }

    pub fn code(&self) -> &'static str {
        match self {
            ApiError::InvalidRequest(_) => "invalid_request",
            ApiError::InvalidQuote => "invalid_quote",
            ApiError::QuoteMismatch => "quote_mismatch",
            ApiError::ExceedsCallerBudget { .. } => "exceeds_caller_budget",
            ApiError::ProofRequired | ApiError::PartyRequired { .. } => "proof_required",
            ApiError::AgentProofRequired => "agent_proof_required",
            ApiError::InvalidProof(_) => "invalid_proof",
            ApiError::AccessTokenInvalid | ApiError::SoulKeyNotForAgents => "access_token_invalid",
            ApiError::AccessTokenRevoked => "access_token_revoked",
            ApiError::AgentMismatch => "agent_mismatch",
            ApiError::WalletOnly => "access_tokens_wallet_only",
            ApiError::BudgetsReadOnly => "budgets_read_only_for_access_tokens",
            ApiError::ClosedToTokens => "route_unavailable_for_access_tokens",
            ApiError::AccessTokenNotFound => "access_token_not_found",
            ApiError::TooManyAccessTokens { .. } => "too_many_access_tokens",
            ApiError::NotConfigured { .. } => "provider_unavailable",
            ApiError::Unauthorized => "unauthorized",
            ApiError::IdempotencyKeyReused => "idempotency_key_reused",
            ApiError::RequestInProgress => "request_in_progress",
            ApiError::ResultExpired => "result_expired",
            ApiError::BudgetExceeded(_) => "budget_exceeded",
            ApiError::Frozen { .. } => "frozen_by_owner",
            ApiError::InsufficientCredits(_) => "insufficient_credits",
            ApiError::ActionDenied { .. } => "action_denied_by_policy",
            ApiError::ApprovalRequired { .. } => "approval_required",
            ApiError::ApprovalInvalid(_) => "approval_invalid",
            ApiError::TooManyPendingApprovals => "too_many_pending_approvals",
            ApiError::TooManySubscriptions { .. } => "too_many_subscriptions",
            ApiError::TooManyConnections { .. } => "too_many_connections",
            ApiError::ApprovalNotPending => "approval_not_pending",
            ApiError::PaymentAlreadyUsed | ApiError::PaymentForAnother { .. } => "payment_already_used",
            ApiError::InvalidCursor => "invalid_cursor",
            ApiError::WalletAlreadyLinked => "wallet_already_linked",
            ApiError::WalletNotLinked => "wallet_not_linked",
            ApiError::PayoutFailed { .. } => "payout_failed",
            ApiError::ReceiptNotFound => "receipt_not_found",
            ApiError::SubmissionNotFound => "submission_not_found",
            ApiError::NotFound => "not_found",
            ApiError::NotificationNotFound => "notification_not_found",
            ApiError::MethodNotAllowed { .. } => "method_not_allowed",
            ApiError::PayloadTooLarge { .. } => "payload_too_large",
            ApiError::UnsupportedMediaType => "unsupported_media_type",
            ApiError::EmergencyNumber { .. } => "emergency_number_blocked",
            ApiError::ContentBlocked { .. } => "content_blocked",
            ApiError::SlugTaken => "slug_taken",
            ApiError::SoulExists => "soul_exists",
            ApiError::ServiceNotFound => "service_not_found",
            ApiError::TooManyServices { .. } => "too_many_services",
            ApiError::SoulKeyRequired | ApiError::SoulKeyUnknown => "unauthorized",
            // Marketplace routes use a different code for it.
            ApiError::RateLimited(_) if super::limit::on_marketplace() => "rate_limited",
            ApiError::RateLimited(_) => "rate_limit_exceeded",
            ApiError::ServicePaused(_) => "service_paused",
            ApiError::QuoteIdRequired { .. } => "quote_id_required",
            ApiError::Tool { code, .. } | ApiError::Detailed { code, .. } | ApiError::Later { code, .. } => code,
            ApiError::QuotePending { .. } => "quote_pending",
            ApiError::Market(error) => error.code(),
            ApiError::WebhookNotFound => "webhook_not_found",
            ApiError::DeliveryNotFound => "delivery_not_found",
            ApiError::TooManyWebhooks { .. } => "too_many_webhooks",
            ApiError::WebhookDisabled => "webhook_disabled",
            ApiError::DeliveryPending => "delivery_pending",
            ApiError::PaymentProcessing(_) => "payment_processing_error",
            ApiError::PaymentUnchecked(_) | ApiError::Unavailable(_) => "provider_unavailable",
        }
    }

    pub fn message(&self) -> String {
        match self {
            ApiError::InvalidRequest(errors) => listed(errors),
            ApiError::InvalidQuote => {
                "the quote is unknown, has expired, was used or belongs to another request; get a new one: from the tool's \
                 quote route if it has one, or by calling without payment"
                    .to_owned()
            }
            ApiError::QuoteMismatch => {
                "the quote was given for another body, tool or agent; repeat the quoted request unchanged".to_owned()
            }
            ApiError::ExceedsCallerBudget { price, cap } => {
                format!("the price {price} USDC is above your X-Max-Cost-USDC of {cap}; raise it to go on")
            }
            ApiError::ProofRequired => "this route needs the header x-agent-proof, signed by your wallet, or an access token (Authorization: Bearer)"
                .to_owned(),
            ApiError::PartyRequired { by_name } => {
                let name = if *by_name { "the wallet's address in X-Agent-ID, or " } else { "" };
                format!(
                    "a job is shown to its buyer and its seller: send {name}a proof of the wallet in x-agent-proof, an access \
                     token or the soul key (Authorization: Bearer)"
                )
            }
            ApiError::AgentProofRequired => {
                "this tool needs the header x-agent-proof in addition to the payment; nothing was charged".to_owned()
            }
            ApiError::InvalidProof(error) => error.to_string(),
            ApiError::AccessTokenInvalid => {
                "the access token is unknown or has expired; ask your owner for another".to_owned()
            }
            ApiError::SoulKeyNotForAgents => {
                "this is a soul's key, which sells and does not buy; send an access token or a proof of your wallet"
                    .to_owned()
            }
            ApiError::AccessTokenRevoked => "the access token was revoked by its owner; ask your owner".to_owned(),
            ApiError::AgentMismatch => {
                "X-Agent-ID names another agent than the access token; leave it out, or name the token's".to_owned()
            }
            ApiError::WebhookNotFound => "you have no webhook with this id".to_owned(),
            ApiError::DeliveryNotFound => "this event was not sent to this webhook".to_owned(),
            ApiError::TooManyWebhooks { most } => format!("an agent has at most {most} webhooks; delete one first"),
            ApiError::WebhookDisabled => "the webhook is disabled; enable it first".to_owned(),
            ApiError::DeliveryPending => "the delivery is still in progress; replay it once it is finished".to_owned(),
            ApiError::WalletOnly => "this route needs a proof signed by the wallet, not an access token".to_owned(),
            ApiError::BudgetsReadOnly => {
                "changing budgets needs a proof signed by the wallet; an access token can only read them".to_owned()
            }
            ApiError::ClosedToTokens => {
                "buying credits needs a payment signed by the wallet. This is permanent for access tokens: do not retry; ask \
                 your owner to top up. Nothing was charged"
                    .to_owned()
            }
            ApiError::AccessTokenNotFound => "this wallet has no access token with that id".to_owned(),
            ApiError::TooManyAccessTokens { most } => {
                format!("a wallet may have at most {most} active access tokens; revoke one first")
            }
            ApiError::NotConfigured { what } => format!("this deployment has no {what}; nothing was charged"),
            ApiError::Unauthorized => "the signature is missing, wrong or too old".to_owned(),
            ApiError::IdempotencyKeyReused => {
                "this Idempotency-Key was used for another request; repeat that one, or choose a new key".to_owned()
            }
            ApiError::RequestInProgress => {
                "a request with this Idempotency-Key is still in progress; repeat it unchanged in a few seconds"
                    .to_owned()
            }
            ApiError::ResultExpired => "this result is no longer stored; you were not charged again".to_owned(),
            // A cap per call.
            ApiError::BudgetExceeded(over) if over.reason.ends_with("per_transaction") => format!(
                "a charge of {} USDC exceeds the owner's {} cap of {} USDC",
                over.charge,
                over.reason.replace('_', " "),
                over.cap
            ),
            ApiError::BudgetExceeded(over) => format!(
                "a charge of {} USDC would exceed the owner's {} cap of {} USDC; {} USDC are spent or in progress",
                over.charge,
                over.reason.replace('_', " "),
                over.cap,
                over.spent
            ),
            ApiError::Frozen { what } => format!("the owner froze this {what}; nothing was charged"),
            ApiError::InsufficientCredits(short) if short.owed > Usdc::ZERO => format!(
                "the call costs {} USDC, and {} USDC of reversed credits must be repaid first; {} USDC are missing",
                short.required,
                short.owed,
                short.missing()
            ),
            ApiError::InsufficientCredits(short) => {
                format!("the call costs {} USDC; your credits are {} USDC short", short.required, short.missing())
            }
            ApiError::ActionDenied { rule } => {
                format!("the rule {rule} of this agent's action policy forbids this call")
            }
            ApiError::ApprovalRequired { message, .. } => (*message).to_owned(),
            ApiError::ApprovalInvalid(why) => (*why).to_owned(),
            ApiError::TooManySubscriptions { most } => {
                format!("a connection may follow at most {most} requests; unsubscribe from some, or open another one")
            }
            ApiError::TooManyConnections { most } => {
                format!("an agent may have at most {most} open connections; close one, or poll instead")
            }
            ApiError::TooManyPendingApprovals => {
                "20 approvals are pending already; wait for decisions, or cancel some".to_owned()
            }
            ApiError::ApprovalNotPending => "the approval is no longer pending".to_owned(),
            ApiError::PaymentAlreadyUsed => {
                "this payment was used for another request; repeat that request, or sign a new payment".to_owned()
            }
            ApiError::PaymentForAnother { transaction } => format!(
                "this payment was made for another purchase, in transaction {transaction}; sign a new payment for this one"
            ),
            ApiError::InvalidCursor => {
                "the cursor does not come from a page of this route and format; start again without a cursor".to_owned()
            }
            ApiError::WalletAlreadyLinked => {
                "this wallet is linked to another soul; a proof signed by the wallet moves it to you, unless that soul \
                 proved the wallet too"
                    .to_owned()
            }
            ApiError::WalletNotLinked => "link a wallet first: PUT /v1/soul/me/link-wallet".to_owned(),
            ApiError::PayoutFailed { message, .. } => message.clone(),
            ApiError::ReceiptNotFound => "you have no receipt or request with this id".to_owned(),
            ApiError::SubmissionNotFound => "no request with this key is accepted yet; ask again later".to_owned(),
            ApiError::NotFound => "nothing was found here; check the path and the id (tools: /v1/tools/discover)".to_owned(),
            ApiError::NotificationNotFound => "you have no notification with this id".to_owned(),
            ApiError::MethodNotAllowed { allow } => format!("this path accepts {allow}"),
            ApiError::PayloadTooLarge { limit_bytes } => format!("the body may have at most {limit_bytes} bytes"),
            ApiError::UnsupportedMediaType => "send the body as application/json".to_owned(),
            ApiError::EmergencyNumber { .. } => {
                "emergency numbers get no texts or calls from agents; nothing was charged".to_owned()
            }
            ApiError::ContentBlocked { categories, .. } => {
                format!("this may not be published or sent here ({})", categories.join(", "))
            }
            ApiError::SlugTaken => "this slug is in use; choose another".to_owned(),
            ApiError::SoulExists => "another soul already has exactly this text; write your own".to_owned(),
            ApiError::ServiceNotFound => "this soul has no such service".to_owned(),
            ApiError::TooManyServices { most } => {
                format!("a soul may have at most {most} services, disabled ones included; change one of them instead")
            }
            ApiError::SoulKeyRequired => {
                "this route needs the header Authorization: Bearer with the soul key you got at registration".to_owned()
            }
            ApiError::SoulKeyUnknown => "this soul key is unknown or was replaced".to_owned(),
            ApiError::RateLimited(taken) => format!(
                "at most {} {} in {} s; try again in {} s",
                taken.limit,
                taken.unit(),
                taken.window_secs,
                taken.reset_secs
            ),
            ApiError::ServicePaused(reason) if reason.is_empty() => {
                "paid calls are paused; nothing was charged".to_owned()
            }
            ApiError::ServicePaused(reason) => format!("paid calls are paused ({reason}); nothing was charged"),
            ApiError::QuoteIdRequired { at } => {
                format!("ask POST {at} for a quote first, and send its id in X-Quote-ID; nothing was charged")
            }
            ApiError::Tool { message, .. } | ApiError::Detailed { message, .. } | ApiError::Later { message, .. } => message.clone(),
            ApiError::QuotePending { retry_after_secs, .. } => format!(
                "the price is being found out: send the same request again in {retry_after_secs} seconds; nothing was charged"
            ),
            ApiError::Market(error) => error.message(),
            ApiError::PaymentProcessing(_) => {
                "the payment could not be processed; nothing was broadcast, and the same payment may be sent again"
                    .to_owned()
            }
            ApiError::PaymentUnchecked(_) => {
                "the payment cannot be checked on chain now; nothing was charged, so send the same payment again"
                    .to_owned()
            }
            ApiError::Unavailable(_) => "a service this one depends on is not answering; try again shortly".to_owned(),
        }
    }

    /// The response body.
    pub fn body(&self) -> Value {
        let mut body = json!({"error": self.code(), "message": self.message()});
        match self {
            ApiError::InvalidRequest(errors) => body["details"] = json!(errors),
            ApiError::InvalidCursor => {
                body["details"] = json!([FieldError::new("cursor", "does not come from one of your pages")]);
            }
            ApiError::InvalidProof(error) => body["reason"] = json!(error.reason()),
            ApiError::ExceedsCallerBudget { price, cap } => {
                let wrong = FieldError::new("X-Max-Cost-USDC", format!("is {cap}; the price is {price}"));
                body["details"] = json!([wrong]);
                body["price_usdc"] = json!(price.to_string());
                body["max_cost_usdc"] = json!(cap.to_string());
            }
            ApiError::BudgetExceeded(over) => {
                body["budget"] = json!({
                    "reason": over.reason,
                    "cap": over.cap.to_string(),
                    "spent": over.spent.to_string(),
                    "in_flight": over.in_flight.to_string(),
                    "charge": over.charge.to_string(),
                });
                if let Some(at) = over.resets_at {
                    body["budget"]["resets_at"] = json!(at.to_string());
                }
            }
            ApiError::Frozen { what } => body["reason"] = json!(what),
            ApiError::NotConfigured { .. } => body["reason"] = json!(Unavailable::ProviderNotConfigured.as_str()),
            ApiError::PayoutFailed { reason, .. } => body["reason"] = json!(reason),
            ApiError::InsufficientCredits(short) => {
                let members = json!({
                    "required_usdc": short.required.to_string(),
                    "credits_balance": short.balance.to_string(),
                    "shortfall_usdc": short.missing().to_string(),
                    "credits_owed": short.owed.to_string(),
                    "credits_reserved_on_quote": short.held.to_string(),
                    "quote_id": short.quote_id,
                    "top_up": {
                        "message": "the owner tops up with POST /v1/credits/top-up, paid from the wallet",
                        "docs_url": short.docs_url,
                    },
                });
                merge(&mut body, members);
            }
            ApiError::Market(error) => {
                if let Some(details) = error.details() {
                    body["details"] = json!(details);
                }
            }
            ApiError::EmergencyNumber { number } => body["blocked_number"] = json!(number),
            ApiError::ContentBlocked { categories, places } => {
                body["categories"] = json!(categories);
                if !places.is_empty() {
                    body["details"] = json!(places);
                }
            }
            ApiError::Detailed { details, .. } => body["details"] = details.clone(),
            ApiError::RateLimited(taken) => body["retry_after"] = json!(taken.reset_secs),
            ApiError::Later { retry_after_secs, .. } | ApiError::QuotePending { retry_after_secs, .. } => {
                body["retry_after"] = json!(retry_after_secs)
            }
            ApiError::ActionDenied { rule } => body["rule"] = json!(rule),
            ApiError::ApprovalRequired { approval_id: Some(approval_id), approval, .. } => {
                body["approval_id"] = json!(approval_id);
                body["approval"] = (**approval).clone();
            }
            ApiError::PaymentForAnother { transaction } => body["transaction"] = json!(transaction),
            ApiError::PaymentProcessing(context) => {
                body["code"] = json!(500);
                merge(&mut body, context.members());
            }
            ApiError::PaymentUnchecked(context) => merge(&mut body, context.members()),
            _ => {}
        }
        body
    }
}

/// Most wrong fields that a message tells; `details` has all.
const MAX_TOLD: usize = 3;

/// What is wrong with some fields, for people and models: many clients show them nothing but the message.
pub(super) fn listed(errors: &[FieldError]) -> String {
    let told = errors.iter().take(MAX_TOLD).map(|error| match error.path.as_str() {
        "" => error.message.clone(),
        path => format!("{path}: {}", error.message),
    });
    let told = told.collect::<Vec<_>>().join("; ");
    match errors.len() {
        0 | 1 => told,
        wrong if wrong > MAX_TOLD => format!("{wrong} fields are wrong: {told}; see details for the others"),
        wrong => format!("{wrong} fields are wrong: {told}"),
    }
}

/// Adds the members of one object to another.
pub fn merge(into: &mut Value, from: Value) {
    if let (Value::Object(into), Value::Object(from)) = (into, from) {
        into.extend(from);
    }
}

impl IntoResponse for ApiError {
    fn into_response(self) -> Response {
        let mut response = private_json(self.status(), &self.body());
        match &self {
            ApiError::MethodNotAllowed { allow } => {
                if let Ok(allow) = HeaderValue::from_str(allow) {
                    response.headers_mut().insert(header::ALLOW, allow);
                }
            }
            ApiError::Unavailable(cause) => {
                super::log::failure("dependency unavailable", cause);
                response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from_static("2"));
            }
            ApiError::RateLimited(taken) => {
                taken.write(response.headers_mut());
                response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from(taken.reset_secs));
            }
            ApiError::Later { retry_after_secs, .. } | ApiError::QuotePending { retry_after_secs, .. } => {
                response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from(*retry_after_secs));
            }
            ApiError::ServicePaused(_) => {
                response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from_static("60"));
            }
            // Only an operator can change this, so an early retry is useless.
            ApiError::NotConfigured { .. } => {
                response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from_static("3600"));
            }
            ApiError::RequestInProgress | ApiError::PaymentProcessing(_) | ApiError::PaymentUnchecked(_) => {
                response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from_static("2"));
            }
            _ => {}
        }
        response
    }
}

impl From<MarketError> for ApiError {
    fn from(error: MarketError) -> ApiError {
        ApiError::Market(error)
    }
}

impl From<StoreError> for ApiError {
    fn from(error: StoreError) -> ApiError {
        ApiError::Unavailable(error)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_names_the_wrong_fields() {
        let wrong = |path: &str| FieldError::new(path, "must be text");
        let message = |errors: Vec<FieldError>| ApiError::InvalidRequest(errors).message();
        assert_eq!(
            message(vec![FieldError::new("", "the body must be a JSON object")]),
            "the body must be a JSON object"
        );
        assert_eq!(message(vec![wrong("a.0")]), "a.0: must be text");
        assert_eq!(message(vec![wrong("a"), wrong("b")]), "2 fields are wrong: a: must be text; b: must be text");
        let four = message(["a", "b", "c", "d"].map(wrong).to_vec());
        assert!(
            four.starts_with("4 fields are wrong: a: ")
                && four.ends_with("c: must be text; see details for the others")
        );
    }

    /// `details` lists fields, as in every other error, and the amounts stand beside it.
    #[test]
    fn a_price_above_the_callers_cap_is_a_wrong_header() {
        let (price, cap) = (Usdc::from_micro(2_000), Usdc::from_micro(1_000));
        let body = ApiError::ExceedsCallerBudget { price, cap }.body();
        let details = json!([{"path": "X-Max-Cost-USDC", "message": "is 0.001000; the price is 0.002000"}]);
        assert_eq!(
            (&body["details"], &body["price_usdc"], &body["max_cost_usdc"]),
            (&details, &json!("0.002000"), &json!("0.001000"))
        );
    }

    #[test]
    fn every_error_has_its_status_and_code() {
        let context = PaymentContext {
            amount: Usdc::from_micro(2_000),
            asset: "0xa".to_owned(),
            network: "eip155:84532".to_owned(),
            pay_to: "0xb".to_owned(),
            received: None,
            quote_id: None,
            attempt_id: "0xc".to_owned(),
        };
        let taken = Taken { policy: "read", limit: 120, window_secs: 60, remaining: 0, reset_secs: 7 };
        let later = ApiError::Later {
            status: StatusCode::TOO_MANY_REQUESTS,
            code: "sms_limit_reached",
            message: "full".to_owned(),
            retry_after_secs: 9,
        };
        let pending = ApiError::QuotePending { begun: Default::default(), retry_after_secs: 10 };
        let rows: [(ApiError, u16, &str); 50] = [
            (pending, 503, "quote_pending"),
            (ApiError::field("vin", "is required"), 400, "invalid_request"),
            (ApiError::InvalidQuote, 400, "invalid_quote"),
            (ApiError::QuoteMismatch, 400, "quote_mismatch"),
            (ApiError::ExceedsCallerBudget { price: Usdc::ZERO, cap: Usdc::ZERO }, 400, "exceeds_caller_budget"),
            (ApiError::ProofRequired, 401, "proof_required"),
            (ApiError::PartyRequired { by_name: true }, 401, "proof_required"),
            (ApiError::AgentProofRequired, 401, "agent_proof_required"),
            (ApiError::InvalidProof(ProofError::Expired), 401, "invalid_proof"),
            (ApiError::AccessTokenInvalid, 401, "access_token_invalid"),
            (ApiError::AccessTokenRevoked, 401, "access_token_revoked"),
            (ApiError::AgentMismatch, 403, "agent_mismatch"),
            (ApiError::WalletOnly, 403, "access_tokens_wallet_only"),
            (ApiError::BudgetsReadOnly, 403, "budgets_read_only_for_access_tokens"),
            (ApiError::ClosedToTokens, 503, "route_unavailable_for_access_tokens"),
            (ApiError::ActionDenied { rule: "r".to_owned() }, 403, "action_denied_by_policy"),
            (
                ApiError::ApprovalRequired {
                    approval_id: Some("a".to_owned()),
                    approval: Box::default(),
                    message: "held",
                },
                403,
                "approval_required",
            ),
            (ApiError::ApprovalInvalid("used"), 403, "approval_invalid"),
            (ApiError::TooManyPendingApprovals, 409, "too_many_pending_approvals"),
            (ApiError::TooManySubscriptions { most: 100 }, 409, "too_many_subscriptions"),
            (ApiError::TooManyConnections { most: 100 }, 429, "too_many_connections"),
            (ApiError::ApprovalNotPending, 409, "approval_not_pending"),
            (ApiError::PaymentAlreadyUsed, 409, "payment_already_used"),
            (ApiError::PaymentForAnother { transaction: "0x1".to_owned() }, 409, "payment_already_used"),
            (ApiError::InvalidCursor, 400, "invalid_cursor"),
            (ApiError::WalletAlreadyLinked, 409, "wallet_already_linked"),
            (ApiError::WalletNotLinked, 400, "wallet_not_linked"),
            (ApiError::PayoutFailed { reason: "short", message: "short".to_owned() }, 400, "payout_failed"),
            (ApiError::ReceiptNotFound, 404, "receipt_not_found"),
            (ApiError::SubmissionNotFound, 404, "submission_not_found"),
            (ApiError::NotFound, 404, "not_found"),
            (ApiError::MethodNotAllowed { allow: "POST".to_owned() }, 405, "method_not_allowed"),
            (ApiError::PayloadTooLarge { limit_bytes: 1 }, 413, "payload_too_large"),
            (ApiError::NotificationNotFound, 404, "notification_not_found"),
            (ApiError::RateLimited(taken), 429, "rate_limit_exceeded"),
            (ApiError::ServicePaused("testing".to_owned()), 503, "service_paused"),
            (ApiError::EmergencyNumber { number: "911".to_owned() }, 400, "emergency_number_blocked"),
            (later, 429, "sms_limit_reached"),
            (ApiError::ContentBlocked { categories: Vec::new(), places: Vec::new() }, 400, "content_blocked"),
            (ApiError::SlugTaken, 409, "slug_taken"),
            (ApiError::SoulExists, 409, "soul_exists"),
            (ApiError::ServiceNotFound, 404, "service_not_found"),
            (ApiError::TooManyServices { most: 50 }, 409, "too_many_services"),
            (ApiError::SoulKeyRequired, 401, "unauthorized"),
            (ApiError::SoulKeyUnknown, 401, "unauthorized"),
            (ApiError::SoulKeyNotForAgents, 401, "access_token_invalid"),
            (ApiError::UnsupportedMediaType, 415, "unsupported_media_type"),
            (ApiError::PaymentProcessing(Box::new(context.clone())), 500, "payment_processing_error"),
            (ApiError::PaymentUnchecked(Box::new(context)), 503, "provider_unavailable"),
            (ApiError::Unavailable(StoreError::new("secret cause")), 503, "provider_unavailable"),
        ];
        for (error, status, code) in rows {
            assert_eq!((error.status().as_u16(), error.code()), (status, code));
            let body = error.body();
            assert_eq!(body["error"], code);
            assert!(body["message"].as_str().is_some_and(|message| !message.is_empty()));
            assert!(!body.to_string().contains("secret cause"));
        }
    }
}
