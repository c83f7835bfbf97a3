//! Messages: selling the sending of e-mail and texts, and phone numbers; the free routes around them (quotes, uploads, domains,
//! inboxes, numbers, unsubscribing); and the events of providers.

mod domains;
mod events;
mod inbox;
mod numbers;
mod page;
mod quote;
mod texts;
mod twilio;
mod unsubscribe;
mod uploads;

use std::sync::Arc;

use api::routes;
use axum::Router;
use axum::extract::{Request, State};
use axum::response::Response;
use axum::routing::{get, post};
use gate::app::App;
use gate::{Call, Gate};
use http::StatusCode;
use platform::http::{ApiError, read_body};
use platform::providers::sns::Certificates;
use tools::spec::ToolSpec;
use tools::{Runner, Toolbox};
use tools_sms::buy;

/// The group's name in the catalog and in the table of routes.
pub const GROUP: &str = "messaging";

/// Tools this function runs itself. The worker sends.
pub const RUNNERS: &[&Runner] = &[&buy::RUNNER];

/// State shared by the routes.
#[derive(Clone)]
struct Messaging {
    gate: Arc<Gate>,
    /// The certificates of SNS that this process has fetched.
    certificates: Certificates,
}

impl Messaging {
    fn app(&self) -> &App {
        &self.gate.app
    }

    fn toolbox(&self) -> &Toolbox {
        &self.gate.engine.toolbox
    }
}

pub fn router(gate: Arc<Gate>) -> Router {
    let mut router = Router::new()
        .route("/v1/tools/email/quote", post(quote::quote))
        .route("/v1/tools/email/uploads", post(uploads::announce))
        .route("/v1/tools/email/analytics/{domain}", get(domains::analytics))
        .route("/v1/tools/email/domains", get(domains::list))
        .route("/v1/tools/email/domains/{domain}/pause", post(domains::pause))
        .route("/v1/tools/email/domains/{domain}/resume", post(domains::resume))
        .route("/v1/tools/email/unsubscribe/{token}", get(unsubscribe::show).post(unsubscribe::unsubscribe))
        .route("/v1/tools/inbox", get(inbox::list))
        .route("/v1/tools/inbox/{emailId}", get(inbox::show))
        .route("/v1/tools/inbox/files/{token}", get(inbox::file))
        .route("/v1/tools/voice/numbers", get(numbers::list).post(numbers::buy))
        .route("/v1/tools/sms/inbox", get(texts::list))
        .route("/v1/tools/sms/inbox/{messageId}", get(texts::show))
        .route("/v1/providers/ses", post(events::ses))
        .route("/v1/providers/sms", post(events::sms))
        .route("/v1/providers/twilio/status", post(twilio::status))
        .route("/v1/providers/twilio/inbound", post(twilio::inbound));
    // The route of phone numbers sells them in its own way.
    let sold = |tool: &&'static ToolSpec| tool.group == GROUP && tool.name != buy::SPEC.name;
    for tool in gate.app.catalog.iter().copied().filter(sold) {
        for path in tool.paths {
            let sell = move |State(state): State<Messaging>, request: Request| sell(state, tool, request);
            router = router.route(path, post(sell));
        }
    }
    routes::finish(router.with_state(Messaging { gate, certificates: Certificates::default() }))
}

/// A paid tool of the catalog. Its body may contain attachments.
async fn sell(state: Messaging, tool: &'static ToolSpec, request: Request) -> Response {
    let (parts, body) = request.into_parts();
    let resource = state.app().resource_url(&parts);
    let answer = async {
        let body = read_body(body, gate::LARGEST_BODY_BYTES).await?;
        state.gate.call(Call { tool, listing: None, resource: &resource, headers: &parts.headers, body }).await
    };
    gate::respond(answer.await)
}

fn domain_not_found() -> ApiError {
    ApiError::Tool {
        status: StatusCode::NOT_FOUND,
        code: "domain_not_found",
        message: "you have no such domain, or its status does not allow this: GET /v1/tools/email/domains lists them"
            .to_owned(),
    }
}

fn email_not_found() -> ApiError {
    ApiError::Tool {
        status: StatusCode::NOT_FOUND,
        code: "email_not_found",
        message: "your inbox has no e-mail with this id; e-mails are kept for 30 days".to_owned(),
    }
}
