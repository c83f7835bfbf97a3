//! One step on the page: an [`Action`] as acts of the session.

use std::time::Duration;

use browse::{Action, Spot};
use platform::providers::browser::{ActError, At, Click, Session};
use serde_json::{Value, json};
use tokio::time::{Instant, sleep};

/// A file that the task may upload, with its content.
#[derive(Clone, Debug)]
pub struct Upload {
    pub name: String,
    pub content_type: String,
    /// In base64, as the page's script takes it.
    pub content: String,
}

/// Longest wait that a step may ask for, in seconds.
const MAX_WAIT: f64 = 10.0;
/// Longest wait for a text.
const TEXT_WAIT: Duration = Duration::from_secs(8);
/// Interval of looks for a text.
const LOOK: Duration = Duration::from_millis(250);
const ONCE: Click = Click { button: "left", count: 1 };

/// Does one step. A picture, if it was to make one.
///
/// # Errors
/// If the page does not take it, or the browser is lost.
pub async fn act(session: &Session, action: &Action, uploads: &[Upload]) -> Result<Option<Vec<u8>>, ActError> {
    let by_script = async |id: Option<&str>, name: &str, args: Vec<Value>| said(&session.call(id, name, args).await?);
    match action {
        Action::Open { url } => session.goto(url).await?,
        Action::Click { id, double, right } => {
            let button = if *right { "right" } else { "left" };
            session.click(At::Element(id), Click { button, count: if *double { 2 } else { 1 } }).await?;
        }
        Action::ClickAt { x, y } => session.click(At::Point(*x, *y), ONCE).await?,
        Action::Type { id, text, clear, enter } => {
            if let Some(id) = id {
                by_script(Some(id), if *clear { "clear" } else { "focus" }, Vec::new()).await?;
            }
            session.type_text(text).await?;
            if *enter {
                session.press("Enter").await?;
            }
        }
        Action::Clear { id } => by_script(Some(id), "clear", Vec::new()).await?,
        Action::Select { id, options } => by_script(Some(id), "select", vec![json!(options)]).await?,
        Action::Check { id, on } => by_script(Some(id), "check", vec![json!(on)]).await?,
        Action::Set { id, value } => by_script(Some(id), "set", vec![json!(value)]).await?,
        Action::Press { keys } => session.press(keys).await?,
        Action::Hover { id } => session.hover(At::Element(id)).await?,
        Action::Drag { from, to } => session.drag(at(from), at(to)).await?,
        Action::Scroll { id: Some(id), dx, dy } => by_script(Some(id), "scroll", vec![json!(dx), json!(dy)]).await?,
        Action::Scroll { id: None, dx, dy } => {
            by_script(None, "scroll", vec![Value::Null, json!(dx), json!(dy)]).await?
        }
        Action::Upload { id, files } => by_script(Some(id), "files", vec![given(files, uploads)?]).await?,
        Action::Back {} => session.back().await?,
        Action::Tab { number } => session.tab(usize::try_from(*number).unwrap_or(usize::MAX)).await?,
        Action::CloseTab {} => session.close_tab().await?,
        Action::Wait { text: Some(text), .. } => wait_for(session, text).await?,
        Action::Wait { text: None, seconds } => {
            let seconds = seconds.filter(|seconds| seconds.is_finite()).unwrap_or(1.0);
            sleep(Duration::from_secs_f64(seconds.clamp(0.0, MAX_WAIT))).await;
        }
        Action::Screenshot { .. } => return session.screenshot().await.map(Some),
        Action::Dialog { accept, text } => session.dialog(*accept, text.as_deref()).await?,
        Action::Done { .. } => {}
    }
    Ok(None)
}

fn at(spot: &Spot) -> At<'_> {
    match spot {
        Spot::Element(id) => At::Element(id),
        Spot::Point([x, y]) => At::Point(*x, *y),
    }
}

/// The files of these names, for the page's script.
fn given(names: &[String], uploads: &[Upload]) -> Result<Value, ActError> {
    let find = |name: &String| {
        let found = uploads.iter().find(|upload| upload.name == *name);
        let found = found.ok_or_else(|| ActError::Refused(format!("no file of this name was given: {name}")))?;
        Ok(json!({"name": found.name, "type": found.content_type, "base64": found.content}))
    };
    names.iter().map(find).collect()
}

/// What the page's script says: `{ok: true}`, `{gone: true}` or `{error: …}`.
fn said(answer: &Value) -> Result<(), ActError> {
    match answer["error"].as_str() {
        Some(why) => Err(ActError::Refused(why.to_owned())),
        None if answer["gone"] == true => Err(ActError::Refused("the element is not there any more".to_owned())),
        None => Ok(()),
    }
}

async fn wait_for(session: &Session, text: &str) -> Result<(), ActError> {
    let (text, until) = (text.to_lowercase(), Instant::now() + TEXT_WAIT);
    loop {
        let shown = session.call(None, "text", Vec::new()).await?;
        if shown["text"].as_str().is_some_and(|shown| shown.to_lowercase().contains(&text)) {
            return Ok(());
        }
        if Instant::now() >= until {
            return Err(ActError::Refused("the text did not appear".to_owned()));
        }
        sleep(LOOK).await;
    }
}
