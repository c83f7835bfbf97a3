//! The view over all frames of the current tab, and functions of the page script in the frame of an element.

use std::collections::HashSet;
use std::time::Duration;

use futures_util::future::{BoxFuture, join_all};
use serde_json::{Value, json};
use tokio::time::sleep;

use super::super::WINDOW;
use super::shared::{FrameName, Tab};
use super::{ActError, At, CLOSED, DIALOG_OPEN, NO_ANSWER, Session, refused};

/// The name of the world in which the page script runs.
const WORLD: &str = "agora";
/// Most frames of one view, and how deep they are looked for.
const MAX_FRAMES: usize = 20;
const MAX_DEPTH: usize = 4;
/// Most frames that are named in a session.
const MAX_NAMES: usize = 500;
/// Most characters of files, encoded, that one call sets: 10 MB.
const MAX_SENT: usize = 14_000_000;
/// Most elements of a frame that count as usable because the page listens to them.
const MAX_LISTENED: usize = 300;
/// Objects of a view are released together.
const GROUP: &str = "view";
/// After a frame is scrolled into view, the pages around it follow.
const SCROLL_TIME: Duration = Duration::from_millis(60);
/// Functions of the page script after which nobody waits for the page: they change nothing, or an act follows.
const LOOKS: [&str; 4] = ["text", "point", "snapshot", "focus"];

const SNAPSHOT: &str = "function(...listeners) { return agoraView.snapshot(listeners); }";
const CALL: &str = "function(name, args) { return agoraView[name](...args); }";
const ELEMENT: &str = "function(id) { return agoraView.element(id); }";
const SHOW: &str = "function(id) { agoraView.element(id)?.scrollIntoView({ block: 'nearest', inline: 'nearest', \
    behavior: 'instant' }); }";
/// Where the content of a frame's element begins.
const CORNER: &str = "function() {
  const box = this.getBoundingClientRect(), style = getComputedStyle(this);
  const left = this.clientLeft + parseFloat(style.paddingLeft), top = this.clientTop + parseFloat(style.paddingTop);
  return [box.x + left, box.y + top];
}";

/// A frame, and where its page script runs.
struct World {
    frame: String,
    session: String,
    context: Value,
}

/// A view that is being put together.
struct View {
    nodes: Vec<Value>,
    frames: usize,
}

impl Session {
    /// What the current tab shows, frames included: `{url, title, width, height, scroll, nodes, tabs, dialog,
    /// downloads}`. Ids in frames begin with the frame's name (`f1.e3`), and all boxes are in the window's CSS pixels.
    /// While a dialog is open, there are no nodes.
    pub async fn view(&self) -> Result<Value, ActError> {
        let tab = self.current()?;
        let mut view = match tab.dialog {
            None => match self.look(&tab).await {
                Err(ActError::Refused(why)) if why != DIALOG_OPEN && why != NO_ANSWER => {
                    // The page may just have been replaced by another.
                    self.rest().await?;
                    self.look(&self.current()?).await
                }
                looked => looked,
            },
            Some(_) => Err(refused(DIALOG_OPEN)),
        };
        if let (Err(ActError::Refused(_)), Some(_)) = (&view, self.current()?.dialog) {
            let (width, height) = WINDOW;
            let scroll = json!({"x": 0, "y": 0, "max_x": 0, "max_y": 0});
            view = Ok(json!({"width": width, "height": height, "scroll": scroll, "nodes": []}));
        }
        let mut view = view?;
        let tabs = self.tabs().await?;
        let state = self.shared.state();
        for about in ["url", "title"] {
            if view[about].is_null() {
                view[about] = tabs.get(state.current).map(|tab| tab[about].clone()).unwrap_or_default();
            }
        }
        view["tabs"] = json!(tabs);
        view["dialog"] = state.tab().and_then(|tab| tab.dialog.as_ref()).map_or(Value::Null, |dialog| dialog.to_json());
        view["downloads"] = json!(state.downloads.iter().map(|file| &file.name).collect::<Vec<_>>());
        Ok(view)
    }

    /// Calls a function of the page script. With an id, in the frame of that element, and its id there is the first
    /// argument; without one, in the main frame. Texts that are set or uploaded count as typed.
    ///
    /// # Errors
    /// If the element is gone, or the function says `error`.
    pub async fn call(&self, id: Option<&str>, name: &str, args: Vec<Value>) -> Result<Value, ActError> {
        let tab = self.free_tab()?;
        if name == "set" || name == "files" {
            let size: usize = args.iter().map(|arg| arg.to_string().len()).sum();
            if size > MAX_SENT {
                return Err(refused("the files are larger than 10 MB in all"));
            }
            let mut state = self.shared.state();
            let lists = args.iter().filter_map(Value::as_array).flatten();
            args.iter().chain(lists).filter_map(Value::as_str).for_each(|text| state.typed.add(text));
        }
        let (world, _, local) = self.located(&tab, id).await?;
        let args: Vec<Value> = local.map(Value::from).into_iter().chain(args).collect();
        let value = self.in_world(&world, CALL, &[json!({"value": name}), json!({"value": args})]).await;
        let value = match value {
            // The act opened a dialog, or closed the page.
            Err(ActError::Refused(why)) if why == DIALOG_OPEN || why == CLOSED => json!({"ok": true}),
            value => value?,
        };
        if let Some(error) = value["error"].as_str() {
            return Err(refused(error));
        }
        if !LOOKS.contains(&name) {
            self.rest().await?;
        }
        Ok(value)
    }

    /// A point of the window. An element is brought into view.
    pub(super) async fn point_of(&self, at: At<'_>, may_be_covered: bool) -> Result<(f64, f64), ActError> {
        let id = match at {
            At::Point(x, y) => return Ok((x, y)),
            At::Element(id) => id,
        };
        let tab = self.free_tab()?;
        let (world, around, local) = self.located(&tab, Some(id)).await?;
        if !around.is_empty() {
            // The page script sees only its own frame, which may be outside the window.
            self.in_world(&world, SHOW, &[json!({"value": local})]).await?;
            sleep(SCROLL_TIME).await;
        }
        let args = json!({"value": [local]});
        let point = self.in_world(&world, CALL, &[json!({"value": "point"}), args]).await?;
        let (Some(mut x), Some(mut y)) = (point["x"].as_f64(), point["y"].as_f64()) else {
            return Err(gone(id));
        };
        if let (Some(cover), false) = (point["covered"].as_str(), may_be_covered) {
            return Err(refused(format!("the element {id} is covered by {cover}")));
        }
        for (world, element) in around {
            let (_, corner) = self.framed(&world, &element).await?.ok_or_else(|| gone(id))?;
            (x, y) = (x + corner.0, y + corner.1);
        }
        Ok((x, y))
    }

    async fn look(&self, tab: &Tab) -> Result<Value, ActError> {
        let mut view = View { nodes: Vec::new(), frames: 0 };
        let world = self.world(&tab.target, &tab.session).await?;
        let mut whole = self.add_frame(&mut view, &world, "", (0.0, 0.0), 0).await?;
        whole["nodes"] = Value::Array(view.nodes);
        Ok(whole)
    }

    /// Adds the nodes of a frame and of those in it. Returns the rest of its snapshot.
    fn add_frame<'a>(
        &'a self,
        view: &'a mut View,
        world: &'a World,
        prefix: &'a str,
        (left, top): (f64, f64),
        depth: usize,
    ) -> BoxFuture<'a, Result<Value, ActError>> {
        Box::pin(async move {
            let listened = self.listened(world).await.unwrap_or_default();
            let mut snapshot = self.in_world(world, SNAPSHOT, &listened).await?;
            // Their objects are not needed any more; nobody waits for the response.
            self.send(Some(&world.session), "Runtime.releaseObjectGroup", json!({"objectGroup": GROUP}))?;
            let Value::Array(nodes) = snapshot["nodes"].take() else { return Err(refused("the page has no view")) };
            for mut node in nodes {
                let local = node["id"].as_str().map(str::to_owned);
                if let Some(local) = &local {
                    node["id"] = json!(format!("{prefix}{local}"));
                }
                if let Some([x, y]) = node["box"].as_array_mut().and_then(|sides| sides.first_chunk_mut()) {
                    *x = json!((x.as_f64().unwrap_or_default() + left).round() as i64);
                    *y = json!((y.as_f64().unwrap_or_default() + top).round() as i64);
                }
                let is_frame = node["frame"] == true && depth < MAX_DEPTH && view.frames < MAX_FRAMES;
                view.nodes.push(node);
                let Some(local) = local.filter(|_| is_frame) else { continue };
                view.frames += 1;
                // A frame that is just being loaded has no nodes.
                let Ok(Some((frame, corner))) = self.framed(world, &local).await else { continue };
                let session = self.shared.state().session_of(&frame, &world.session);
                let Some(name) = self.name(&frame, &world.frame, &local) else { continue };
                if let Ok(inner) = self.world(&frame, &session).await {
                    let corner = (left + corner.0, top + corner.1);
                    // The same holds here.
                    let _ = self.add_frame(view, &inner, &format!("{name}."), corner, depth + 1).await;
                }
            }
            Ok(snapshot)
        })
    }

    /// The elements of a frame that the page listens to for the pointer or keys, as arguments.
    async fn listened(&self, world: &World) -> Result<Vec<Value>, ActError> {
        let ask = json!({"expression": "document", "contextId": world.context, "objectGroup": GROUP});
        let document = self.in_page(&world.session, "Runtime.evaluate", ask).await?;
        let ask = json!({"objectId": document["result"]["objectId"], "depth": -1, "pierce": true});
        let found = self.in_page(&world.session, "DOMDebugger.getEventListeners", ask).await?;
        let is_use = |kind: &str| {
            ["click", "dblclick", "contextmenu"].contains(&kind)
                || ["mouse", "pointer", "key", "touch", "drag"].iter().any(|start| kind.starts_with(start))
        };
        let listeners = found["listeners"].as_array().map(Vec::as_slice).unwrap_or_default();
        let used = listeners.iter().filter(|one| one["type"].as_str().is_some_and(is_use));
        let mut seen = HashSet::new();
        let nodes = used.filter_map(|one| one["backendNodeId"].as_i64()).filter(|node| seen.insert(*node));
        let resolved = nodes.take(MAX_LISTENED).map(|node| {
            let ask = json!({"backendNodeId": node, "executionContextId": world.context, "objectGroup": GROUP});
            self.in_page(&world.session, "DOM.resolveNode", ask)
        });
        // Those that belong to a frame inside are refused, or resolve to nothing.
        let resolved = join_all(resolved).await.into_iter().filter_map(Result::ok);
        let elements = resolved.filter(|node| node["object"]["objectId"].is_string());
        let elements = elements.filter(|node| node["object"]["className"] != "HTMLDocument");
        Ok(elements.map(|node| json!({"objectId": node["object"]["objectId"]})).collect())
    }

    /// The frame that an element holds, and where its content begins in the frame around it.
    async fn framed(&self, world: &World, element: &str) -> Result<Option<(String, (f64, f64))>, ActError> {
        let object = self.object(world, ELEMENT, &[json!({"value": element})], false).await?["objectId"].take();
        if object.is_null() {
            return Ok(None);
        }
        let about = self.in_page(&world.session, "DOM.describeNode", json!({"objectId": object}));
        let ask = json!({"objectId": object, "functionDeclaration": CORNER, "returnByValue": true});
        let corner = self.in_page(&world.session, "Runtime.callFunctionOn", ask);
        let (about, corner) = futures_util::future::try_join(about, corner).await?;
        let corner = &corner["result"]["value"];
        let Some(frame) = about["node"]["frameId"].as_str() else { return Ok(None) };
        let side = |at: usize| corner[at].as_f64().unwrap_or_default();
        Ok(Some((frame.to_owned(), (side(0), side(1)))))
    }

    /// The frame of an element, the frames around it with the elements that hold them, innermost first, and its id
    /// there.
    async fn located<'a>(
        &self,
        tab: &Tab,
        id: Option<&'a str>,
    ) -> Result<(World, Vec<(World, String)>, Option<&'a str>), ActError> {
        let (name, local) = match id.and_then(|id| id.split_once('.')) {
            None => return Ok((self.world(&tab.target, &tab.session).await?, Vec::new(), id)),
            Some(parts) => parts,
        };
        let unknown = || gone(id.unwrap_or_default());
        let chain = {
            let state = self.shared.state();
            let number = name.strip_prefix('f').and_then(|number| number.parse::<usize>().ok());
            let mut at = number.and_then(|number| state.names.get(number.checked_sub(1)?)).ok_or_else(unknown)?;
            let mut chain = vec![at.clone()];
            while at.parent != tab.target {
                at = state.names.iter().find(|name| name.frame == at.parent).ok_or_else(unknown)?;
                if chain.len() > MAX_DEPTH {
                    return Err(unknown());
                }
                chain.push(at.clone());
            }
            chain
        };
        // From the outside to the inside.
        let mut world = self.world(&tab.target, &tab.session).await?;
        let mut around = Vec::new();
        for FrameName { frame, element, .. } in chain.into_iter().rev() {
            let session = self.shared.state().session_of(&frame, &world.session);
            let inner = self.world(&frame, &session).await.map_err(|error| match error {
                ActError::Refused(_) => unknown(),
                lost => lost,
            })?;
            around.insert(0, (std::mem::replace(&mut world, inner), element));
        }
        Ok((world, around, Some(local)))
    }

    /// The name of a frame, such as `f1`. It stays with the frame.
    fn name(&self, frame: &str, parent: &str, element: &str) -> Option<String> {
        let mut state = self.shared.state();
        let name = FrameName { frame: frame.to_owned(), parent: parent.to_owned(), element: element.to_owned() };
        let at = match state.names.iter().position(|known| known.frame == frame) {
            Some(at) => {
                state.names[at] = name;
                at
            }
            None if state.names.len() < MAX_NAMES => {
                state.names.push(name);
                state.names.len() - 1
            }
            None => return None,
        };
        Some(format!("f{}", at + 1))
    }

    /// The script's world in a frame. Its number is asked each time: another document has another, and numbers come
    /// again.
    async fn world(&self, frame: &str, session: &str) -> Result<World, ActError> {
        let ask = json!({"frameId": frame, "worldName": WORLD});
        let context = self.in_page(session, "Page.createIsolatedWorld", ask).await?["executionContextId"].take();
        Ok(World { frame: frame.to_owned(), session: session.to_owned(), context })
    }

    /// Calls a function in a frame and returns its value.
    async fn in_world(&self, world: &World, function: &str, args: &[Value]) -> Result<Value, ActError> {
        Ok(self.object(world, function, args, true).await?["value"].take())
    }

    /// The same, with plain arguments, in a frame that need not be known.
    pub(super) async fn in_frame(
        &self,
        frame: &str,
        session: &str,
        function: &str,
        args: &[Value],
    ) -> Result<Value, ActError> {
        let args: Vec<Value> = args.iter().map(|arg| json!({"value": arg})).collect();
        self.in_world(&self.world(frame, session).await?, function, &args).await
    }

    async fn object(&self, world: &World, function: &str, args: &[Value], by_value: bool) -> Result<Value, ActError> {
        let ask = json!({
            "functionDeclaration": function, "executionContextId": world.context, "arguments": args,
            "returnByValue": by_value, "awaitPromise": true, "objectGroup": GROUP, "userGesture": true,
        });
        let mut returned = self.in_page(&world.session, "Runtime.callFunctionOn", ask.clone()).await?;
        let error = returned["exceptionDetails"]["exception"]["description"].as_str().unwrap_or_default();
        if error.starts_with("ReferenceError: agoraView") {
            // The first call in this document.
            let script = json!({"expression": self.script, "contextId": world.context});
            self.in_page(&world.session, "Runtime.evaluate", script).await?;
            returned = self.in_page(&world.session, "Runtime.callFunctionOn", ask).await?;
        }
        if returned["exceptionDetails"].is_null() {
            Ok(returned["result"].take())
        } else {
            Err(refused("the page does not allow it"))
        }
    }

    /// The open tabs, as the view shows them.
    async fn tabs(&self) -> Result<Vec<Value>, ActError> {
        let targets = self.ask(None, "Target.getTargets", json!({})).await?.unwrap_or_default();
        let targets = targets["targetInfos"].as_array().map(Vec::as_slice).unwrap_or_default();
        let state = self.shared.state();
        let tabs = state.tabs.iter().enumerate().map(|(at, tab)| {
            let about = targets.iter().find(|about| about["targetId"] == tab.target.as_str()).unwrap_or(&Value::Null);
            json!({
                "number": at + 1, "url": about["url"].as_str().unwrap_or_default(),
                "title": about["title"].as_str().unwrap_or_default(), "current": at == state.current,
            })
        });
        Ok(tabs.collect())
    }
}

fn gone(id: &str) -> ActError {
    refused(format!("the element {id} is gone"))
}
