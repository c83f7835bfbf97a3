//! The mouse and the keyboard.

use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::sleep;

use super::shared::{Shared, Tab};
use super::{ActError, CALL_TIME, Session, refused};

/// Longest text that is typed key by key, in characters. A longer one is inserted at once.
const MAX_KEYS: usize = 200;
/// Moves of the mouse in a drag.
const DRAG_MOVES: u32 = 8;
/// Pause between them: pages look at the pointer once per frame.
const DRAG_PAUSE: Duration = Duration::from_millis(16);

/// Where an act takes place.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum At<'a> {
    /// An element, by its id in the view.
    Element(&'a str),
    /// A point of the window, in CSS pixels from the left and from the top.
    Point(f64, f64),
}

/// How a mouse button is pressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Click {
    /// `left` or `right`.
    pub button: &'static str,
    /// 2 for a double click.
    pub count: u32,
}

impl Default for Click {
    fn default() -> Self {
        Click { button: "left", count: 1 }
    }
}

/// While it lives, something is typed.
struct Typing<'a>(&'a Shared);

impl Typing<'_> {
    fn begin(shared: &Shared) -> Typing<'_> {
        shared.state().typed.is_typing = true;
        Typing(shared)
    }
}

impl Drop for Typing<'_> {
    fn drop(&mut self) {
        self.0.state().typed.is_typing = false;
    }
}

impl Session {
    /// # Errors
    /// If the element is gone or covered, or there is no such button.
    pub async fn click(&self, at: At<'_>, click: Click) -> Result<(), ActError> {
        if !matches!(click.button, "left" | "right") {
            return Err(refused("only the left and the right button can be pressed"));
        }
        let tab = self.free_tab()?;
        let (x, y) = self.point_of(at, false).await?;
        self.mouse(&tab, "mouseMoved", (x, y), "none", 0).await?;
        for count in 1..=click.count {
            self.mouse(&tab, "mousePressed", (x, y), click.button, count).await?;
            self.mouse(&tab, "mouseReleased", (x, y), click.button, count).await?;
        }
        self.rest().await
    }

    /// Moves the mouse there.
    ///
    /// # Errors
    /// If the element is gone or covered.
    pub async fn hover(&self, at: At<'_>) -> Result<(), ActError> {
        let tab = self.free_tab()?;
        let point = self.point_of(at, false).await?;
        self.mouse(&tab, "mouseMoved", point, "none", 0).await?;
        self.rest().await
    }

    /// Presses the mouse at one place and releases it at another. Both must fit into the window.
    ///
    /// # Errors
    /// If an element is gone or covered.
    pub async fn drag(&self, from: At<'_>, to: At<'_>) -> Result<(), ActError> {
        let tab = self.free_tab()?;
        // Bringing the target into view may move the start.
        self.point_of(to, true).await?;
        let start = self.point_of(from, false).await?;
        let end = self.point_of(to, true).await?;
        self.mouse(&tab, "mouseMoved", start, "none", 0).await?;
        self.mouse(&tab, "mousePressed", start, "left", 1).await?;
        for step in 1..=DRAG_MOVES {
            let part = f64::from(step) / f64::from(DRAG_MOVES);
            let point = (start.0 + (end.0 - start.0) * part, start.1 + (end.1 - start.1) * part);
            self.mouse(&tab, "mouseMoved", point, "left", 1).await?;
            sleep(DRAG_PAUSE).await;
        }
        // Only a second move at the target counts as over it.
        self.mouse(&tab, "mouseMoved", end, "left", 1).await?;
        self.mouse(&tab, "mouseReleased", end, "left", 1).await?;
        self.rest().await
    }

    /// Types a text where the focus is; a line break is the Enter key.
    pub async fn type_text(&self, text: &str) -> Result<(), ActError> {
        let tab = self.free_tab()?;
        self.shared.state().typed.add(text);
        let _typing = Typing::begin(&self.shared);
        let mut sent = Vec::new();
        if text.chars().count() > MAX_KEYS && !text.contains('\n') {
            sent.push(self.send(Some(&tab.session), "Input.insertText", json!({"text": text}))?);
        } else {
            for sign in text.chars().filter(|sign| *sign != '\r') {
                let mut utf8 = [0; 4];
                let key = key(match sign {
                    '\n' => "Enter",
                    '\t' => "Tab",
                    _ => sign.encode_utf8(&mut utf8),
                });
                let Some(key) = key else {
                    let text = json!({"text": sign.to_string()});
                    sent.push(self.send(Some(&tab.session), "Input.insertText", text)?);
                    continue;
                };
                for event in key.events(0) {
                    sent.push(self.send(Some(&tab.session), "Input.dispatchKeyEvent", event)?);
                }
            }
        }
        for sent in sent {
            if self.answer(Some(&tab.session), sent, CALL_TIME).await?.is_none() {
                break;
            }
        }
        self.rest().await
    }

    /// Presses a key, such as `Enter`, `ArrowDown`, `a`, or several at once, such as `Control+A`.
    ///
    /// # Errors
    /// If there is no such key, or it would use the clipboard, which sessions share.
    pub async fn press(&self, keys: &str) -> Result<(), ActError> {
        let tab = self.free_tab()?;
        let unknown = || refused(format!("there is no key {keys}"));
        let (held, last) = match keys.strip_suffix('+') {
            Some(held) => (held.strip_suffix('+').unwrap_or(held), "+"),
            None => keys.rsplit_once('+').unwrap_or(("", keys)),
        };
        let mut modifiers = Vec::new();
        for name in held.split('+').filter(|name| !name.is_empty()) {
            modifiers.push(modifier(name).ok_or_else(unknown)?);
        }
        let mask = modifiers.iter().fold(0, |mask, (bit, ..)| mask | bit);
        if uses_clipboard(mask, last) {
            return Err(refused("there is no clipboard; type the text instead"));
        }
        let pressed = match modifier(last) {
            Some((bit, name, code)) => held_events(bit, name, code).to_vec(),
            None => key(last).ok_or_else(unknown)?.events(mask).to_vec(),
        };
        let down = modifiers.iter().map(|(bit, name, code)| held_events(*bit, name, *code)[0].clone());
        let up = modifiers.iter().rev().map(|(bit, name, code)| held_events(*bit, name, *code)[1].clone());
        for event in down.chain(pressed).chain(up) {
            self.ask(Some(&tab.session), "Input.dispatchKeyEvent", event).await?;
        }
        self.rest().await
    }

    /// A dialog that opens meanwhile ends the wait: the act has had its effect.
    async fn mouse(&self, tab: &Tab, kind: &str, (x, y): (f64, f64), button: &str, count: u32) -> Result<(), ActError> {
        let buttons = match (kind, button) {
            ("mouseReleased", _) | (_, "none") => 0,
            (_, "right") => 2,
            _ => 1,
        };
        let event = json!({"type": kind, "x": x, "y": y, "button": button, "buttons": buttons, "clickCount": count});
        self.ask(Some(&tab.session), "Input.dispatchMouseEvent", event).await.map(drop)
    }
}

/// A key of an American keyboard.
struct Key {
    name: String,
    code: String,
    /// The Windows virtual key code.
    number: u32,
    /// What it types.
    text: Option<String>,
}

impl Key {
    /// Down and up. With `Control`, `Alt` or `Meta` it types nothing.
    fn events(&self, modifiers: u32) -> [Value; 2] {
        let text = self.text.as_ref().filter(|_| modifiers & !SHIFT == 0);
        let name = if modifiers == SHIFT { self.name.to_uppercase() } else { self.name.clone() };
        let name = if self.name.chars().count() == 1 { name } else { self.name.clone() };
        let mut down = json!({
            "type": "keyDown", "modifiers": modifiers, "key": name, "code": self.code,
            "windowsVirtualKeyCode": self.number,
        });
        let mut up = down.clone();
        up["type"] = json!("keyUp");
        match text {
            Some(text) => down["text"] = json!(if modifiers == SHIFT { text.to_uppercase() } else { text.clone() }),
            None => down["type"] = json!("rawKeyDown"),
        }
        if modifiers & !SHIFT == CONTROL {
            // Without a keyboard of the system, the browser does not know these by itself.
            let command = match self.name.as_str() {
                "a" | "A" => "selectAll",
                "z" | "Z" => "undo",
                _ => return [down, up],
            };
            down["commands"] = json!([command]);
        }
        [down, up]
    }
}

const ALT: u32 = 1;
const CONTROL: u32 = 2;
const SHIFT: u32 = 8;

fn uses_clipboard(modifiers: u32, name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    match modifiers & !ALT {
        0 => false,
        SHIFT => matches!(name.as_str(), "insert" | "delete"),
        _ => matches!(name.as_str(), "c" | "x" | "v" | "insert"),
    }
}

/// The bit, name and code of a key that is held.
fn modifier(name: &str) -> Option<(u32, &'static str, u32)> {
    Some(match name.to_ascii_lowercase().as_str() {
        "alt" => (ALT, "Alt", 18),
        "control" | "ctrl" => (CONTROL, "Control", 17),
        "meta" => (4, "Meta", 91),
        "shift" => (SHIFT, "Shift", 16),
        _ => return None,
    })
}

fn held_events(bit: u32, name: &str, number: u32) -> [Value; 2] {
    let code = format!("{name}Left");
    let down = json!({
        "type": "rawKeyDown", "modifiers": bit, "key": name, "code": code, "windowsVirtualKeyCode": number,
    });
    let up = json!({"type": "keyUp", "modifiers": 0, "key": name, "code": code, "windowsVirtualKeyCode": number});
    [down, up]
}

/// A key by its name, or by the ASCII sign that it types.
fn key(name: &str) -> Option<Key> {
    let mut signs = name.chars();
    if let (Some(sign), None) = (signs.next(), signs.next()) {
        if !(' '..='~').contains(&sign) {
            return None;
        }
        let upper = sign.to_ascii_uppercase();
        let code = match sign {
            'a'..='z' | 'A'..='Z' => format!("Key{upper}"),
            '0'..='9' => format!("Digit{sign}"),
            ' ' => "Space".to_owned(),
            _ => String::new(),
        };
        // Other signs have codes of their own, and their ASCII numbers would mean other keys.
        let number = if upper.is_ascii_alphanumeric() || sign == ' ' { u32::from(upper) } else { 0 };
        return Some(Key { name: sign.to_string(), code, number, text: Some(sign.to_string()) });
    }
    let name = match name.to_ascii_lowercase().as_str() {
        "esc" => "Escape".to_owned(),
        "return" => "Enter".to_owned(),
        "up" | "down" | "left" | "right" => format!("Arrow{}", capital(name)),
        "space" => return key(" "),
        _ => name.to_owned(),
    };
    const NAMED: [(&str, u32); 14] = [
        ("Enter", 13),
        ("Tab", 9),
        ("Escape", 27),
        ("Backspace", 8),
        ("Delete", 46),
        ("Insert", 45),
        ("Home", 36),
        ("End", 35),
        ("PageUp", 33),
        ("PageDown", 34),
        ("ArrowLeft", 37),
        ("ArrowUp", 38),
        ("ArrowRight", 39),
        ("ArrowDown", 40),
    ];
    let function = name.strip_prefix(['F', 'f']).and_then(|number| number.parse::<u32>().ok());
    if let Some(number) = function.filter(|number| (1..=12).contains(number)) {
        let name = format!("F{number}");
        return Some(Key { code: name.clone(), name, number: 111 + number, text: None });
    }
    let (name, number) = NAMED.iter().find(|(known, _)| known.eq_ignore_ascii_case(&name))?;
    let text = (*name == "Enter").then(|| "\r".to_owned());
    Some(Key { name: (*name).to_owned(), code: (*name).to_owned(), number: *number, text })
}

fn capital(word: &str) -> String {
    let lower = word.to_ascii_lowercase();
    lower[..1].to_ascii_uppercase() + &lower[1..]
}
