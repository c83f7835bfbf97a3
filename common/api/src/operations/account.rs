//! The agent's own account: budgets, access tokens, freezes, balance, notifications.

use base::input::{Field, Kind};
use base::money::Usdc;

use super::shape::{Member, Named, Shape, has, may};
use super::shared::OK;
use super::{Answer, Auth, Body, FLAG, IDEMPOTENCY_KEY, Link, Operation, schemas};

/// Largest cap of a budget or a token: a million million USDC.
pub const MOST_CAP: Usdc = Usdc::from_micro(1_000_000_000_000_000_000);
const CAP: Kind = Kind::Amount { min: Usdc::from_micro(1), max: MOST_CAP };

/// Body of `POST /v1/agents/me/access-tokens`.
pub static MINT: &[Field] = &[
    Field::optional("name", Kind::Text { min: 0, max: 100, format: None }, "What the token is for"),
    Field::optional(
        "expires_in_days",
        Kind::Integer { min: 1, max: 3650 },
        "After how many days it expires; never without",
    ),
    Field::optional("per_transaction", CAP, "The most that one call with it may cost, in USDC"),
    Field::optional("daily", CAP, "The most that may be charged with it in a day (UTC), in USDC"),
    Field::optional("lifetime", CAP, "The most that may be charged with it in all, in USDC"),
    Field::optional("per_transaction_usdc", CAP, "The same as `per_transaction`, as answers name it"),
    Field::optional("daily_usdc", CAP, "The same as `daily`, as answers name it"),
    Field::optional("lifetime_usdc", CAP, "The same as `lifetime`, as answers name it"),
];

/// Body of both routes that freeze.
pub static FREEZE: &[Field] = &[
    Field::required("what", Kind::Choice(&["agent", "token", "tool", "payee"]), "What to freeze"),
    Field::optional(
        "id",
        Kind::Text { min: 1, max: 64, format: None },
        "Its id: a token's id, a tool's name, a payee's id; none for `agent`",
    ),
];

const WALLET: Auth = Auth::Wallet { token_is_told: "access_tokens_wallet_only" };

static ME: &[Member] = &[
    has("agent_id", Shape::Uuid),
    has("wallet_address", Shape::Address),
    has("auth_mode", Shape::Choice(&["wallet", "access_token"])),
    OWN_TOKEN,
];

/// In answers to a token.
const OWN_TOKEN: Member = may("token", Shape::Extended(TOKEN_CAPS, TOKEN_SPENT))
    .about("The access token that asks: its own caps and spending");

const TOKEN_CAPS: &[Member] = &[
    has("id", Shape::Uuid),
    has("per_transaction_usdc", Shape::OrNull(&Shape::Usdc)),
    has("daily_usdc", Shape::OrNull(&Shape::Usdc)),
    has("lifetime_usdc", Shape::OrNull(&Shape::Usdc)),
];

const TOKEN_SPENT: &[Member] = &[
    has("spent_today_usdc", Shape::Usdc),
    SPENT,
    has("remaining_usdc", Shape::OrNull(&Shape::Usdc)).about("What its caps of today and for life leave; null without"),
];

const SPENT: Member =
    has("spent_usdc", Shape::OrNull(&Shape::Usdc)).about("In all; null for a token without a cap for life");

static CAPS: &[Member] = &[
    has("daily_usdc", Shape::OrNull(&Shape::Number)),
    has("per_transaction_usdc", Shape::OrNull(&Shape::Number)),
    has("alert_at", Shape::OrNull(&Shape::Number))
        .about("Share of the daily cap at which the owner is warned, at the latest at `pause_at`"),
    has("pause_at", Shape::OrNull(&Shape::Number)).about("Share of the daily cap at which charges stop"),
    has("alert_email", Shape::OrNull(&Shape::Text)),
    has("tools", Shape::Map(&Shape::Number)).about("Daily caps by tool"),
    has("payees", Shape::Map(&Shape::Number)).about("Daily caps by payee: `service`, or a soul's slug"),
];

static TODAY: &[Member] = &[
    has("spent_today_usdc", Shape::Usdc)
        .about("What counts against the caps of today: the sum of spent_usdc of all receipts of this UTC day"),
    has("remaining_usdc", Shape::OrNull(&Shape::Usdc)),
    has("pct_used", Shape::OrNull(&Shape::Number)).about("Percent of the daily cap: 50 is half"),
    has("resets_at", Shape::Time),
    OWN_TOKEN,
];

static TOKEN: &[Member] = &[
    has("id", Shape::Uuid),
    has("token_prefix", Shape::Text),
    has("name", Shape::OrNull(&Shape::Text)),
    has("source", Shape::Choice(&["wallet"])),
    has("created_at", Shape::Time),
    has("expires_at", Shape::OrNull(&Shape::Time)),
    has("revoked_at", Shape::OrNull(&Shape::Time)),
    has("last_used_at", Shape::OrNull(&Shape::Time)),
    has("created_by", Shape::Address),
    has("per_transaction_usdc", Shape::OrNull(&Shape::Usdc)),
    has("daily_usdc", Shape::OrNull(&Shape::Usdc)),
    has("lifetime_usdc", Shape::OrNull(&Shape::Usdc)),
];

static MINTED: &[Member] =
    &[has("token", Shape::OrNull(&Shape::Text)).about("The token itself, in this answer only; null in a replay")];

static FREEZES: &[Member] = &[
    has("agent", Shape::Bool),
    has("tokens", Shape::List(&Shape::Uuid)),
    has("tools", Shape::List(&Shape::Text)),
    has("payees", Shape::List(&Shape::Text)),
];

static BALANCE: &[Member] = &[
    has("on_chain_balance", Shape::Usdc),
    has("credits_balance", Shape::Usdc),
    has("credits_reserved", Shape::Usdc).about("Held for quotes that are not paid yet"),
    has("credits_owed", Shape::Usdc).about(
        "Credits from a card payment that was refunded or disputed after they were spent. New credits pay this first",
    ),
    has("currency", Shape::Choice(&["USDC"])),
    has("address", Shape::Address),
    has("chain_id", Shape::Integer),
];

/// A notification to an agent.
pub static NOTIFICATION: Named = Named {
    name: "Notification",
    about: "",
    shape: Shape::Object(&[
        has("id", Shape::Text),
        has("agentId", Shape::Uuid),
        has("type", Shape::Text).about(
            "job_completed, job_failed, credit_issued, budget_warning, budget_exceeded, approval_decided, soul_sale, \
             soul_job_completed, payout_completed, email_received, email_bounced, email_stopped, sms_completed, sms_received, \
             email_refused, webhook_failed, …",
        ),
        has("title", Shape::Text),
        may("body", Shape::Text),
        has("read", Shape::Bool),
        may("payload", Shape::Map(&Shape::Any)),
        has("metadata", Shape::Map(&Shape::Any)).about("The same as payload, for older clients"),
        has("createdAt", Shape::Time),
        has("created_at", Shape::Time),
    ]),
};

static READ: &[Member] = &[OK, has("updated", Shape::Integer)];

pub static OPERATIONS: &[Operation] = &[
    Operation::get("/v1/agents/me", "getAgent", "The agent that the proof or the token belongs to")
        .auth(Auth::Agent)
        .answers(&[Answer::ok("The agent", Shape::Object(&[OK, has("data", Shape::Object(ME))]))]),
    Operation::get("/v1/agents/me/budgets", "getBudgets", "The owner's caps, and today's spending")
        .auth(Auth::Agent)
        .answers(&[Answer::ok("Caps and spending", Shape::Object(&[OK, has("data", Shape::Extended(CAPS, TODAY))]))]),
    Operation::put("/v1/agents/me/budgets", "setBudgets", "Sets caps")
        .about(
            "Absent members stay as they are; `null` removes a cap. `tools` and `payees` replace all their caps. An unknown \
             member is refused. A budget is the wallet's: all its tokens together.",
        )
        .auth(Auth::Wallet { token_is_told: "budgets_read_only_for_access_tokens" })
        .headers(&[IDEMPOTENCY_KEY])
        .body(Body::Tools { schema: schemas::budgets, required: false })
        .answers(&[Answer::ok("The caps as they are now", Shape::Object(&[OK, has("data", Shape::Object(CAPS))]))])
        .refuses(NAMED)
        .beyond_schema("amounts have at most six decimals; tools and payees have to exist"),
    Operation::get("/v1/agents/me/access-tokens", "listAccessTokens", "Access tokens of this wallet")
        .auth(WALLET)
        .about("Newest first. Expired and revoked tokens are listed for 90 days.")
        .query(&[
            Field::optional(
                "active",
                Kind::Choice(&["true", "false"]),
                "`true`: only valid tokens; `false`: only expired and revoked ones",
            ),
            Field::optional("limit", Kind::Integer { min: 1, max: 100 }, "At most this many; default 100"),
            Field::optional("cursor", Kind::Text { min: 0, max: 1000, format: None }, "A page's next_cursor"),
        ])
        .answers(&[Answer::ok(
            "The tokens, without their secrets",
            Shape::Object(&[
                OK,
                has(
                    "data",
                    Shape::Object(&[
                        has(
                            "tokens",
                            Shape::List(&Shape::Extended(TOKEN, &[has("spent_today_usdc", Shape::Usdc), SPENT])),
                        ),
                        has("has_more", Shape::Bool),
                        has("next_cursor", Shape::OrNull(&Shape::Text)),
                    ]),
                ),
            ]),
        )])
        .refuses(&[(400, "invalid_cursor")])
        .beyond_schema("a cursor has to come from a page of yours"),
    Operation::post("/v1/agents/me/access-tokens", "mintAccessToken", "Mints an access token")
        .about(
            "It pays from credits, within the budget and within its own caps. They never change: mint another token and \
             revoke the first. Without caps it may spend all that the budget allows, and without `expires_in_days` it never \
             expires. It cannot change budgets, freezes, policies, webhooks or tokens. An unknown member is refused.",
        )
        .auth(WALLET)
        .headers(&[IDEMPOTENCY_KEY])
        .body(Body::Nullable(MINT))
        .answers(&[Answer::json(
            201,
            "The token, shown once",
            Shape::Object(&[OK, has("data", Shape::Extended(TOKEN, MINTED))]),
        )])
        .refuses(&[(409, "too_many_access_tokens"), (409, "request_in_progress"), (422, "idempotency_key_reused")])
        .beyond_schema("amounts have at most six decimals; a cap and its other name have to be equal")
        .links(&[Link {
            name: "revoke",
            status: 201,
            to: "revokeAccessToken",
            parameters: &[("id", "$response.body#/data/id")],
        }]),
    Operation::delete("/v1/agents/me/access-tokens/{id}", "revokeAccessToken", "Revokes an access token")
        .auth(WALLET)
        .answers(&[Answer::ok(
            "Revoked. The next request with it is refused",
            Shape::Object(&[OK, has("data", Shape::Object(&[has("id", Shape::Uuid), has("revoked_at", Shape::Time)]))]),
        )])
        .refuses(&[(404, "access_token_not_found")]),
    Operation::get("/v1/agents/me/freezes", "listFreezes", "Everything that is frozen")
        .auth(Auth::Agent)
        .answers(&[Answer::ok("Everything that is frozen", Shape::Object(&[OK, has("data", Shape::Object(FREEZES))]))]),
    Operation::post("/v1/agents/me/freezes", "freeze", "Stops an agent, a token, a tool or a payee at once")
        .auth(WALLET)
        .body(Body::Fields(FREEZE))
        .answers(&[Answer::ok(
            "Everything that is frozen now",
            Shape::Object(&[OK, has("data", Shape::Extended(FREEZES, &[has("credits_released", Shape::Usdc)]))]),
        )])
        .beyond_schema("`id` is required except for an agent, which has none, and has to be a token of yours, a tool, or a payee"),
    Operation::post("/v1/agents/me/freezes/lift", "liftFreeze", "Lifts a freeze")
        .auth(WALLET)
        .body(Body::Fields(FREEZE))
        .answers(&[Answer::ok(
            "Everything that is still frozen",
            Shape::Object(&[OK, has("data", Shape::Object(FREEZES))]),
        )])
        .beyond_schema("`id` is required except for an agent, which has none, and has to be a token of yours, a tool, or a payee"),
    Operation::get("/v1/tools/balance", "getBalance", "USDC on chain, and credits here")
        .auth(Auth::Agent)
        .answers(&[Answer::ok("The balances", Shape::Object(BALANCE))]),
    Operation::get("/v1/tools/notifications", "listNotifications", "Your notifications, newest first")
        .auth(Auth::Agent)
        .query(&[
            Field::optional("unread", FLAG, "Only unread ones"),
            Field::optional(
                "limit",
                Kind::Integer { min: 1, max: ledger::notifications::MOST_LISTED as i64 },
                "At most this many; default 50",
            ),
        ])
        .answers(&[Answer::ok(
            "Notifications",
            Shape::Object(&[
                has("notifications", Shape::List(&Shape::Ref(&NOTIFICATION))),
                has("count", Shape::Integer),
            ]),
        )]),
    Operation::patch("/v1/tools/notifications/read-all", "readAllNotifications", "Marks everything as read")
        .auth(Auth::Agent)
        .body(Body::Fields(&[]))
        .answers(&[Answer::ok("How many were unread", Shape::Object(READ))]),
    Operation::patch("/v1/tools/notifications/{id}/read", "readNotification", "Marks one as read")
        .auth(Auth::Agent)
        .body(Body::Fields(&[]))
        .answers(&[Answer::ok("Whether it was unread, as 0 or 1", Shape::Object(READ))])
        .refuses(&[(404, "notification_not_found")]),
];

/// Refusals of requests with an idempotency key.
pub const NAMED: &[(u16, &str)] = &[(409, "request_in_progress"), (422, "idempotency_key_reused")];
