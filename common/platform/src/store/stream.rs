//! Events of a DynamoDB stream, as Lambda receives them.

use serde::Deserialize;

/// A batch of changes; only the members that are used. `I` is the type an item is read into.
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

/// One change. A created item has no old image, a deleted one no new image.
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
