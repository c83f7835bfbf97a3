//! What is wrong with a settings file, and the reader that collects it.

use std::fmt;

use base::input::UNKNOWN;
use serde_json::{Map, Value};

/// One problem of a settings file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// JSON pointer of the member, such as `/tools/0/price/rate`.
    pub pointer: String,
    /// What to do, to be read behind the pointer: "must be …".
    pub message: String,
}

impl Problem {
    pub(crate) fn new(pointer: impl Into<String>, message: impl Into<String>) -> Problem {
        Problem { pointer: pointer.into(), message: message.into() }
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.pointer.is_empty() {
            f.write_str(&self.message)
        } else {
            write!(f, "{} {}", self.pointer, self.message)
        }
    }
}

/// Longest name in a message, in characters.
const MAX_SHOWN: usize = 64;

/// The pointer of a member.
pub(crate) fn below(pointer: &str, member: &str) -> String {
    let shown: String = member.chars().take(MAX_SHOWN).collect();
    format!("{pointer}/{}", shown.replace('~', "~0").replace('/', "~1"))
}

/// Reads the members of one object. The problems of all members are kept, and members that nobody asked for are a problem.
pub(crate) struct Reader<'a> {
    members: &'a Map<String, Value>,
    /// Pointer of the object.
    pub(crate) at: String,
    asked: Vec<&'static str>,
    pub(crate) problems: Vec<Problem>,
}

impl<'a> Reader<'a> {
    /// A reader of the object at this pointer; a value that is no object is a problem.
    pub(crate) fn new(value: &'a Value, at: &str) -> Result<Reader<'a>, Vec<Problem>> {
        let members = value.as_object().ok_or_else(|| vec![Problem::new(at, "must be an object")])?;
        Ok(Reader { members, at: at.to_owned(), asked: Vec::new(), problems: Vec::new() })
    }

    pub(crate) fn problem(&mut self, member: &str, message: impl Into<String>) {
        self.problems.push(Problem::new(below(&self.at, member), message));
    }

    pub(crate) fn has(&self, member: &str) -> bool {
        self.members.contains_key(member)
    }

    /// The member as it is; it counts as known.
    pub(crate) fn value(&mut self, member: &'static str) -> Option<&'a Value> {
        self.asked.push(member);
        self.members.get(member)
    }

    /// The member by its reader, whose error says what it must be. `None` if it is absent or wrong.
    pub(crate) fn optional<T>(
        &mut self,
        member: &'static str,
        read: impl FnOnce(&'a Value) -> Result<T, String>,
    ) -> Option<T> {
        match read(self.value(member)?) {
            Ok(value) => Some(value),
            Err(message) => {
                self.problem(member, message);
                None
            }
        }
    }

    /// The same for a member that has to be there.
    pub(crate) fn required<T>(
        &mut self,
        member: &'static str,
        read: impl FnOnce(&'a Value) -> Result<T, String>,
    ) -> Option<T> {
        if !self.has(member) {
            self.asked.push(member);
            self.problem(member, "is required");
            return None;
        }
        self.optional(member, read)
    }

    /// A member with problems of its own.
    pub(crate) fn inner<T>(
        &mut self,
        member: &'static str,
        read: impl FnOnce(&'a Value, &str) -> Result<T, Vec<Problem>>,
    ) -> Option<T> {
        let value = self.value(member)?;
        match read(value, &below(&self.at, member)) {
            Ok(value) => Some(value),
            Err(problems) => {
                self.problems.extend(problems);
                None
            }
        }
    }

    /// All problems, with the members that are not known.
    pub(crate) fn finish(mut self) -> Vec<Problem> {
        let unknown: Vec<&String> = self.members.keys().filter(|name| !self.asked.contains(&name.as_str())).collect();
        for name in unknown {
            self.problems.push(Problem::new(below(&self.at, name), UNKNOWN));
        }
        self.problems
    }
}

/// A text of `min..=max` characters, without control and invisible characters.
pub(crate) fn text(min: usize, max: usize) -> impl Fn(&Value) -> Result<String, String> {
    move |value| {
        let text = value.as_str().ok_or("must be a string")?;
        let length = text.chars().count();
        if length < min || length > max {
            return Err(format!("must have {min} to {max} characters (has {length})"));
        }
        match base::untrusted_text::hides_something(text, false) {
            true => Err(base::untrusted_text::HIDES.to_owned()),
            false => Ok(text.to_owned()),
        }
    }
}

/// A whole number in `min..=max`.
pub(crate) fn whole(min: u32, max: u32) -> impl Fn(&Value) -> Result<u32, String> {
    move |value| {
        let number = value.as_u64().and_then(|number| u32::try_from(number).ok());
        number
            .filter(|number| (min..=max).contains(number))
            .ok_or_else(|| format!("must be a whole number from {min} to {max}"))
    }
}

/// `true` or `false`.
pub(crate) fn boolean(value: &Value) -> Result<bool, String> {
    value.as_bool().ok_or_else(|| "must be true or false".to_owned())
}
