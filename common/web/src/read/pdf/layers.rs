//! Layers (optional content): which of them the file shows when it is opened.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};

use lopdf::{Dictionary, Document, Object, ObjectId};

const MAX_LAYERS: usize = 20_000;
/// Maximum number of parts of one condition.
const MAX_PARTS: usize = 200;
const MAX_DEPTH: usize = 12;

pub(super) struct Layers<'a> {
    document: &'a Document,
    off: BTreeSet<ObjectId>,
    /// Conditions answered before.
    known: RefCell<BTreeMap<ObjectId, bool>>,
}

impl<'a> Layers<'a> {
    pub(super) fn of(document: &'a Document) -> Layers<'a> {
        let mut layers = Layers { document, off: BTreeSet::new(), known: RefCell::default() };
        let all = document.catalog().ok().and_then(|catalog| document.get_dict_in_dict(catalog, b"OCProperties").ok());
        let Some(all) = all else { return layers };
        let Ok(usual) = document.get_dict_in_dict(all, b"D") else { return layers };
        if usual.get_deref(b"BaseState", document).and_then(Object::as_name).is_ok_and(|state| state == b"OFF") {
            layers.off.extend(layers.listed(all, b"OCGs"));
        }
        for id in layers.listed(usual, b"ON") {
            layers.off.remove(&id);
        }
        let off = layers.listed(usual, b"OFF");
        layers.off.extend(off);
        // Layers that are switched by the event of viewing say themselves whether they are seen.
        let events = usual.get_deref(b"AS", document).and_then(Object::as_array).ok();
        for event in events.into_iter().flatten().take(32) {
            let Ok(event) = document.dereference(event).and_then(|(_, event)| event.as_dict()) else { continue };
            if !event.get(b"Event").and_then(Object::as_name).is_ok_and(|event| event == b"View") {
                continue;
            }
            for id in layers.listed(event, b"OCGs") {
                let usage = document.get_dictionary(id).and_then(|layer| document.get_dict_in_dict(layer, b"Usage"));
                let view = usage.and_then(|usage| document.get_dict_in_dict(usage, b"View"));
                match view.and_then(|view| view.get(b"ViewState")).and_then(Object::as_name) {
                    Ok(b"OFF") => {
                        layers.off.insert(id);
                    }
                    Ok(b"ON") => {
                        layers.off.remove(&id);
                    }
                    _ => {}
                }
            }
        }
        layers
    }

    fn listed(&self, dictionary: &Dictionary, name: &[u8]) -> Vec<ObjectId> {
        let list = dictionary.get_deref(name, self.document).and_then(Object::as_array);
        let ids = list.into_iter().flatten().filter_map(|id| id.as_reference().ok());
        ids.take(MAX_LAYERS).collect()
    }

    /// Whether content that belongs to this layer, or depends on layers in this way, is hidden.
    pub(super) fn hides(&self, content: &Object) -> bool {
        let id = content.as_reference().ok();
        if let Some(known) = id.and_then(|id| self.known.borrow().get(&id).copied()) {
            return known;
        }
        let hides = !self.shows(content, 0, &mut MAX_PARTS.clone());
        if let Some(id) = id
            && self.known.borrow().len() < MAX_LAYERS
        {
            self.known.borrow_mut().insert(id, hides);
        }
        hides
    }

    fn shows(&self, content: &Object, depth: usize, parts: &mut usize) -> bool {
        let Ok((id, value)) = self.document.dereference(content) else { return true };
        if depth > MAX_DEPTH || *parts == 0 {
            return true;
        }
        *parts -= 1;
        let Ok(condition) = value.as_dict() else { return true };
        if let Ok(expression) = condition.get_deref(b"VE", self.document).and_then(Object::as_array) {
            return self.holds(expression, depth + 1, parts);
        }
        let Ok(members) = condition.get(b"OCGs") else {
            return id.is_none_or(|id| !self.off.contains(&id));
        };
        let members: Vec<&Object> = match self.document.dereference(members) {
            Ok((_, Object::Array(list))) => list.iter().take(MAX_PARTS).collect(),
            Ok((_, Object::Dictionary(_))) => vec![members],
            _ => return true,
        };
        // References to nothing do not count.
        let mut states = members
            .iter()
            .filter_map(|member| {
                let found = self.document.dereference(member).is_ok_and(|(_, member)| member.as_dict().is_ok());
                found.then(|| member.as_reference().is_ok_and(|id| !self.off.contains(&id)))
            })
            .peekable();
        if states.peek().is_none() {
            return true;
        }
        match condition.get_deref(b"P", self.document).and_then(Object::as_name) {
            Ok(b"AllOn") => states.all(|on| on),
            Ok(b"AnyOff") => states.any(|on| !on),
            Ok(b"AllOff") => states.all(|on| !on),
            _ => states.any(|on| on),
        }
    }

    /// Whether `[/And ...]`, `[/Or ...]` or `[/Not ...]` holds.
    fn holds(&self, expression: &[Object], depth: usize, parts: &mut usize) -> bool {
        let Some((Object::Name(operator), operands)) = expression.split_first() else { return true };
        if depth > MAX_DEPTH {
            return true;
        }
        let mut states = operands.iter().map(|operand| match self.document.dereference(operand) {
            Ok((_, Object::Array(inner))) if *parts > 0 => {
                *parts -= 1;
                self.holds(inner, depth + 1, parts)
            }
            _ => self.shows(operand, depth + 1, parts),
        });
        match operator.as_slice() {
            b"And" => states.all(|on| on),
            b"Or" => states.any(|on| on),
            b"Not" => !states.next().unwrap_or(false),
            _ => true,
        }
    }
}
