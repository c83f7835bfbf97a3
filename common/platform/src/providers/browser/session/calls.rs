//! Calls of the browser's methods, and what ends the wait for their responses.

use std::time::Duration;

use serde_json::Value;
use tokio::sync::oneshot;
use tokio::time::{Instant, sleep};

use super::link::Call;
use super::shared::{Shared, Tab};
use super::{ActError, CALL_TIME, CLOSED, DIALOG_OPEN, NO_ANSWER, Session, TICK, refused};

/// How the browser answers calls of a page that was closed before they arrived.
const NO_SESSION: &str = "Session with given id not found";

/// A response that is awaited.
pub(super) type Awaited = oneshot::Receiver<Result<Value, String>>;

impl Session {
    fn lost(&self) -> Option<ActError> {
        self.shared.state().lost.clone().map(ActError::Lost)
    }

    /// Whether an open dialog keeps a page from responding.
    fn is_blocked(&self, session: &str) -> bool {
        let state = self.shared.state();
        let is_helper = state.helper.as_ref().is_some_and(|helper| helper.session == session);
        !is_helper && state.tab().is_some_and(|tab| tab.dialog.is_some())
    }

    pub(super) async fn wait_for(&self, is_so: impl Fn(&Shared) -> bool) -> Result<(), ActError> {
        let until = Instant::now() + CALL_TIME;
        while !is_so(&self.shared) {
            if let Some(lost) = self.lost() {
                return Err(lost);
            }
            if Instant::now() > until {
                return Err(refused("the browser does not respond"));
            }
            sleep(TICK).await;
        }
        Ok(())
    }

    /// Calls a method of a tab's page.
    pub(super) async fn on(&self, tab: &Tab, method: &'static str, params: Value) -> Result<Value, ActError> {
        self.in_page(&tab.session, method, params).await
    }

    /// Calls a method of a page or frame. It is refused if a dialog opens or the page closes meanwhile.
    pub(super) async fn in_page(&self, session: &str, method: &'static str, params: Value) -> Result<Value, ActError> {
        let answer = self.ask(Some(session), method, params).await?;
        answer.ok_or_else(|| refused(if self.is_blocked(session) { DIALOG_OPEN } else { CLOSED }))
    }

    /// Calls a method; `session`: the page, `None` for the browser itself. There is no result if a dialog opens or the
    /// page closes before it.
    pub(super) async fn ask(
        &self,
        session: Option<&str>,
        method: &'static str,
        params: Value,
    ) -> Result<Option<Value>, ActError> {
        let at = self.send(session, method, params)?;
        self.answer(session, at, CALL_TIME).await
    }

    pub(super) fn send(&self, session: Option<&str>, method: &'static str, params: Value) -> Result<Awaited, ActError> {
        let (answer, received) = oneshot::channel();
        let call = Call { session: session.map(str::to_owned), method, params, answer };
        let lost = |_| self.lost().unwrap_or_else(|| ActError::Lost("the connection broke".to_owned()));
        self.calls.send(call).map_err(lost)?;
        Ok(received)
    }

    pub(super) async fn answer(
        &self,
        session: Option<&str>,
        mut received: Awaited,
        time: Duration,
    ) -> Result<Option<Value>, ActError> {
        let until = Instant::now() + time;
        loop {
            tokio::select! {
                biased;
                answer = &mut received => return match answer {
                    Ok(Ok(value)) => Ok(Some(value)),
                    Ok(Err(error)) if error == CLOSED || error.starts_with(NO_SESSION) => Ok(None),
                    Ok(Err(error)) => Err(refused(format!("the browser answered: {error}"))),
                    Err(_) => Err(self.lost().unwrap_or_else(|| ActError::Lost("the connection broke".to_owned()))),
                },
                () = sleep(TICK) => {
                    if let Some(lost) = self.lost() {
                        return Err(lost);
                    }
                    if session.is_some_and(|session| self.is_blocked(session)) {
                        return Ok(None);
                    }
                    if Instant::now() > until {
                        return Err(refused(NO_ANSWER));
                    }
                }
            }
        }
    }
}
