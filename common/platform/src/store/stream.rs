//! Changes of a table, as its stream hands them to a function.

use serde::Deserialize;

/// A batch of changes. Only what is read is named. `I` is how an item is read.
#[derive(Debug, Deserialize)]
#[serde(bound = "I: Deserialize<'de>")]
pub struct StreamEvent<I> {
    #[serde(rename = "Records", default = "Vec::new")]
    pub records: Vec<StreamRecord<I>>,
}

#[derive(Debug, Deserialize)]
#[serde(bound = "I: Deserialize<'de>")]
pub struct StreamRecord<I> {
    pub dynamodb: Change<I>,
}

/// One change. What was created has no old image, what was deleted no new one.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase", bound = "I: Deserialize<'de>")]
pub struct Change<I> {
    #[serde(default)]
    pub sequence_number: String,
    #[serde(default)]
    pub new_image: Option<I>,
    #[serde(default)]
    pub old_image: Option<I>,
}
