//! Payouts: once a minute, sends what sellers asked for and finds out what became of what was sent. The only function
//! that may read the treasury's key; it serves no request.

use gate::app::App;
use ledger::payments::treasury::Treasury;
use market::payouts::{self, PayoutRunReport};
use platform::store::StoreError;

/// One run.
pub async fn run(app: &App, treasury: &Treasury) -> Result<PayoutRunReport, StoreError> {
    payouts::run(&app.db, treasury, app.clock.now()).await
}
