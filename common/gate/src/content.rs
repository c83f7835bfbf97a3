//! Content safety of a call: the texts that its tool would send are judged before a price or a claim is made.

use ledger::payments::wire::Payment;
use platform::http::ApiError;
use tools::safety::judged_texts;

use super::Gate;
use super::order::Order;
use crate::limits::{self, Class, Subject};

impl Gate {
    /// Refuses a call whose texts may not be sent, unless it was bought before: a replay sells nothing new. Costs nothing
    /// for harmless texts, except the first question to a moderation server.
    pub(super) async fn check_content(&self, order: &Order<'_>, payment: Option<&Payment>) -> Result<(), ApiError> {
        if self.engine.toolbox.judge.known(&judged_texts(order.tool, &order.input)) == Some(Ok(())) {
            return Ok(());
        }
        match self.bought_already(order, payment).await {
            Ok(Some(_)) => Ok(()),
            Err(error @ ApiError::Unavailable(_)) => Err(error),
            // A payment or quote that does not fit buys nothing. What is wrong with it is judged later.
            Ok(None) | Err(_) => self.judge_counted(order, order.caller.is_some()).await,
        }
    }

    /// Like [`Gate::judge_content`], where no limit has counted the call's texts yet. A question to the moderation server
    /// counts as one for a price: for the proven caller, or else for the source address.
    pub(super) async fn judge_counted(&self, order: &Order<'_>, is_proven: bool) -> Result<(), ApiError> {
        if self.engine.toolbox.judge.known(&judged_texts(order.tool, &order.input)).is_none() {
            let caller = order.caller.as_ref().filter(|_| is_proven);
            let subject = caller.map_or_else(Subject::source, |caller| Subject::of(caller, Class::Quote));
            limits::take(&self.app, subject, Class::Quote).await?;
        }
        self.judge_content(order).await
    }

    /// Refuses a call whose texts may not be sent.
    pub(super) async fn judge_content(&self, order: &Order<'_>) -> Result<(), ApiError> {
        Ok(self.engine.toolbox.judge.check(order.tool, &order.input).await?)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use axum::body::Bytes;
    use base::input::{Field, Kind};
    use base::money::Usdc;
    use http::HeaderMap;
    use platform::config::Config;
    use platform::connections::Connections;
    use serde_json::json;
    use tools::spec::{NOTHING, Price, ToolSpec};

    use super::*;
    use crate::Call;

    static LETTER: ToolSpec = ToolSpec {
        name: "letter",
        title: "Letter",
        summary: "Sends a letter",
        group: "knowledge",
        paths: &["/v1/tools/letter"],
        price: Price::Fixed(Usdc::from_micro(1_000)),
        input: &[Field::required("body", Kind::Text { min: 1, max: 1000, format: None }, "Text")],
        judged: &["body"],
        example: || json!({"body": "Hello"}),
        output: || json!({"type": "object"}),
        ..ToolSpec::QUEUED
    };

    /// Without a caller and a payment, a call touches no table.
    async fn call(gate: &Gate, body: &str, dry_run: bool) -> (u16, Vec<String>) {
        let mut headers = HeaderMap::new();
        if dry_run {
            headers.insert("x-dry-run", "true".parse().unwrap());
        }
        let body = Bytes::from(json!({"body": body}).to_string());
        let resource = "https://tools.example/v1/tools/letter";
        match gate.call(Call { tool: &LETTER, listing: None, resource, headers: &headers, body }).await {
            Ok(answer) => (answer.status().as_u16(), Vec::new()),
            Err(ApiError::ContentBlocked { categories, .. }) => (400, categories),
            Err(error) => panic!("{error:?}"),
        }
    }

    #[tokio::test]
    async fn texts_are_judged_before_a_price_is_quoted() {
        let given = |name: &str| {
            let value = match name {
                "PAY_TO" => "0xf39fd6e51aad88f6f4ce6ab8827279cfffb92266",
                "SERVICE_SECRET" => "a secret of at least 32 characters",
                "JOB_QUEUE_URL" => "https://queue.example/jobs",
                "FACILITATOR_URL" => "https://facilitator.example",
                _ => return None,
            };
            Some(value.to_owned())
        };
        let config = Arc::new(Config::read(given).unwrap());
        let connections = Connections::open(&config).unwrap();
        let gate = Gate::open(&connections, config, &NOTHING, &[]).await.unwrap();
        for dry_run in [false, true] {
            let priced = if dry_run { 200 } else { 402 };
            assert_eq!(call(&gate, "The invoice is attached.", dry_run).await, (priced, vec![]));
            let blocked = (400, vec!["violence".to_owned()]);
            assert_eq!(call(&gate, "I will kill you.", dry_run).await, blocked);
        }
    }
}
