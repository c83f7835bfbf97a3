//! Steps of a plan.

use super::dates::Date;
use super::target::Target;
use super::words::Ordinal;

/// One step, and the words of the task that it comes from.
#[derive(Clone, Debug, PartialEq)]
pub struct Step {
    pub said: String,
    pub what: What,
    /// Only if there is something to do it with: "if asked about cookies, …".
    pub optional: bool,
}

impl Step {
    /// Its words without passwords and codes.
    #[must_use]
    pub fn goal(&self) -> String {
        hidden(&self.said, std::slice::from_ref(&self.what))
    }
}

/// Words without the passwords and codes that these steps type.
#[must_use]
pub fn hidden(said: &str, whats: &[What]) -> String {
    const SECRET: [&str; 7] = ["password", "passcode", "pin", "cvv", "cvc", "secret", "token"];
    let secret = |what: &What| match what {
        What::LogIn { password, .. } => Some(password.clone()),
        What::Fill { value: Value::Text(text), field, .. }
            if SECRET.iter().any(|word| field.said.to_lowercase().contains(word)) =>
        {
            Some(text.clone())
        }
        _ => None,
    };
    let mut out = said.to_owned();
    for secret in whats.iter().filter_map(secret).filter(|secret| !secret.is_empty()) {
        // The end of a sentence was taken off its last word.
        let end = secret.trim_end_matches(['!', '.']);
        out = out.replace(if end.is_empty() { secret.as_str() } else { end }, "•••");
    }
    out
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum How {
    Once,
    Double,
    Right,
    Hover,
}

/// What is typed.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    Text(String),
    /// What stands beside this label on the page.
    Labelled(String),
    /// What a step before it found or copied.
    Kept,
    /// The answer to the sum on the page.
    Answer,
    /// The text that the page shows outside of its elements.
    Shown,
    /// What completes from the first to the last letters.
    Completed {
        starts: String,
        ends: Option<String>,
    },
}

#[derive(Clone, Debug, PartialEq)]
pub enum Place {
    Onto(Target),
    /// Fractions of the area of all that can be moved: left to right, top to bottom.
    Grid(f64, f64),
    Position(Ordinal),
    /// By so many places, down or right if positive.
    By {
        x: i64,
        y: i64,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Edge {
    Top,
    Bottom,
    Up,
    Down,
}

/// Which of several is the best.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Measure {
    Money,
    Time,
    Number,
}

#[derive(Clone, Debug, PartialEq)]
pub enum What {
    Open(String),
    Back,
    Click {
        target: Target,
        how: How,
        explore: bool,
    },
    /// Of menus: each opens the next.
    Path(Vec<String>),
    Fill {
        value: Value,
        field: Target,
        enter: bool,
    },
    /// Every field whose label stands somewhere else on the page, with what is beside it there.
    FillLabelled,
    Choose {
        names: Vec<String>,
        list: Option<Target>,
    },
    Check {
        target: Target,
        on: bool,
    },
    Press(String),
    Scroll {
        target: Option<Target>,
        to: Edge,
    },
    Expand(Option<Target>),
    Wait {
        text: Option<String>,
        seconds: u32,
    },
    Find(Target),
    /// Keeps one word of the text.
    Word {
        ordinal: Ordinal,
        area: Option<Target>,
    },
    Copy(Target),
    LogIn {
        user: String,
        password: String,
    },
    /// Fields of a search, as words that name them and their value.
    Search {
        text: String,
        parts: Vec<(Vec<String>, String)>,
    },
    Submit,
    /// The file of this name.
    Download(String),
    /// Goes to the page of this name, unless it is there.
    Visit(String),
    Cart(super::shop::Cart),
    Date {
        date: Date,
        field: Option<Target>,
    },
    Time {
        text: String,
        field: Option<Target>,
    },
    Slide {
        value: f64,
        ordinal: Option<Ordinal>,
    },
    Colour(String),
    /// Files of these names.
    Upload {
        files: Vec<String>,
        field: Target,
    },
    Screenshot,
    Drag {
        what: Target,
        to: Place,
    },
    /// In order of their numbers.
    Ascending {
        target: Target,
        drag: bool,
    },
    Highlight(Target),
    /// Of everything in an editor.
    Style(String),
    Best {
        most: bool,
        measure: Measure,
        words: Vec<String>,
    },
    /// Presses the button until the number on the page is as wanted.
    Until {
        button: String,
        wanted: Wanted,
    },
    Guess {
        least: i64,
        most: i64,
    },
    Ask(super::answer::Question),
}

/// What a number has to be.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Wanted {
    Less(f64),
    Greater(f64),
    Even,
    Odd,
}

impl Wanted {
    /// Whether the number is so.
    #[must_use]
    pub fn holds(self, number: f64) -> bool {
        let half = (number / 2.0).fract().abs();
        match self {
            Self::Less(than) => number < than,
            Self::Greater(than) => number > than,
            Self::Even => half < 0.1,
            Self::Odd => (half - 0.5).abs() < 0.1,
        }
    }
}
