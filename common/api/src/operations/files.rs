//! What the routes of files have in common: those of souls' jobs and of our own tools'.

use base::input::{Field, Kind};

use super::Answer;
use super::shape::{Member, Shape, has};

/// A file in a list.
pub static FILE: &[Member] = &[
    has("path", Shape::Text),
    has("size", Shape::Integer),
    has("content_type", Shape::Text),
    has("download_url", Shape::Text),
];

/// The header that asks for a part.
pub const RANGE: &[Field] = &[Field::optional(
    "Range",
    Kind::Text { min: 1, max: 100, format: Some(&super::shared::VISIBLE) },
    "A byte range, such as bytes=0-99",
)];

const DOWNLOADED: &[(&str, bool, &str)] = &[("Content-Disposition", true, "The file's name")];

/// The answers of a file's route.
pub const CONTENT: &[Answer] = &[
    Answer::other(200, "The file, with its own content type", &["*/*"]).headers(DOWNLOADED),
    Answer::other(206, "The requested part", &["*/*"]).headers(DOWNLOADED),
    Answer {
        headers: &[("Location", true, "A temporary URL of the file")],
        ..Answer::json(307, "A large file", Shape::Object(&[has("download_url", Shape::Uri)]))
    },
];

/// Its refusals.
pub const REFUSALS: &[(u16, &str)] =
    &[(403, "forbidden"), (404, "not_found"), (410, "result_expired"), (416, "range_not_satisfiable")];
