//! A call that completes a checkout session (`market::checkout`). It is priced when the session is created, and the session
//! is completed in the transaction of the claim. So one payment completes one session.

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

/// The session that a call completes.
pub struct CheckoutBinding {
    pub ordered: Ordered,
    /// The write that completes the session. It is part of the claim: if its condition fails, nothing is claimed.
    pub taken: Option<Write>,
}

impl CheckoutBinding {
    /// The digest that quotes and payments are bound to: the call's own digest within this session.
    pub(super) fn bind(&self, body: &[u8; 32]) -> [u8; 32] {
        sha256_parts(&[b"checkout", self.ordered.session.as_bytes(), body])
    }
}

/// The price of a session.
pub struct Priced {
    /// micro-USDC
    pub amount: Usdc,
    /// The quote's token.
    pub quote: String,
    /// The job that the quote buys.
    pub request_id: RequestId,
}

impl Gate {
    /// Validates what a session asks for, and quotes it for `validity`. Writes nothing.
    pub async fn price(
        &self,
        call: &Call<'_>,
        binding: &CheckoutBinding,
        validity: Duration,
    ) -> Result<Priced, ApiError> {
        let order = Order::read(call, None, &self.fetch_policy)?.in_checkout(Some(binding));
        self.check_open(&order).await?;
        // A session makes a quote of its own, at today's terms.
        if order.is_quoted() {
            return Err(ApiError::InvalidQuote);
        }
        let quote = Quote::offer(order.purchase(), None, order.price, self.app.clock.now(), validity);
        let quote = order.listing.map_or(quote, |listing| quote.under_terms(listing.terms, listing.fee));
        Ok(Priced { amount: quote.amount, quote: quote.to_token(&self.quote_key), request_id: quote.request_id() })
    }

    /// Answers the call that completes a session.
    pub async fn complete(&self, call: Call<'_>, binding: &CheckoutBinding) -> Result<Response, ApiError> {
        self.call_in(call, Some(binding)).await
    }
}
