//! Payouts: once a minute, sends what sellers requested and checks payments that were sent before. No other function may
//! read the treasury's key; this one serves no requests.

use gate::app::App;
use ledger::payments::treasury::Treasury;
use market::payouts::{self, PayoutRunReport};
use platform::store::StoreError;

pub async fn run(app: &App, treasury: &Treasury) -> Result<PayoutRunReport, StoreError> {
    payouts::run(&app.db, treasury, app.clock.now()).await
}
