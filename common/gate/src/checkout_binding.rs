//! A call that completes a checkout session (`market::checkout`): priced when the session is made, and claimed together
//! with it, so that a session is completed by one payment, and a payment completes one session.

use std::time::Duration;

use axum::response::Response;
use base::digest::sha256_parts;
use base::ids::RequestId;
use base::money::Usdc;
use ledger::payments::quote::Quote;
use platform::http::ApiError;
use platform::store::Write;

use super::Gate;
use super::order::{Call, Order};
use crate::jobs::job::Ordered;

/// The session a call completes.
pub struct CheckoutBinding {
    pub ordered: Ordered,
    /// Takes the session. Written with the claim, and if it is refused, nothing is claimed.
    pub taken: Option<Write>,
}

impl CheckoutBinding {
    /// What quotes and payments are bound to: the call's own digest, in this session.
    pub(super) fn bind(&self, body: &[u8; 32]) -> [u8; 32] {
        sha256_parts(&[b"checkout", self.ordered.session.as_bytes(), body])
    }
}

/// A price for a session.
pub struct Priced {
    /// micro-USDC
    pub amount: Usdc,
    /// The quote's token.
    pub quote: String,
    /// The job that is bought with it.
    pub request_id: RequestId,
}

impl Gate {
    /// Validates what a session asks for, and quotes it for as long as the session lives. Nothing is written.
    pub async fn price(
        &self,
        call: &Call<'_>,
        binding: &CheckoutBinding,
        validity: Duration,
    ) -> Result<Priced, ApiError> {
        let order = Order::read(call, None, &self.fetch_policy)?.in_checkout(Some(binding));
        self.check_open(&order).await?;
        // Today's terms: a session makes a quote of its own.
        if order.is_quoted() {
            return Err(ApiError::InvalidQuote);
        }
        let quote = Quote::offer(order.purchase(), None, order.price, self.app.clock.now(), validity)
            .under_terms(order.listing.map_or(0, |listing| listing.terms));
        Ok(Priced { amount: quote.amount, quote: quote.to_token(&self.quote_key), request_id: quote.request_id() })
    }

    /// Answers the call that completes a session.
    pub async fn complete(&self, call: Call<'_>, binding: &CheckoutBinding) -> Result<Response, ApiError> {
        self.call_in(call, Some(binding)).await
    }
}
