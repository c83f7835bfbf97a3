//! The nine categories of services.

use std::str::FromStr;

use serde::{Deserialize, Serialize};

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Category {
    Research,
    Build,
    Voice,
    Sms,
    Email,
    Judgment,
    Creative,
    Data,
    #[default]
    Custom,
}

pub const CATEGORIES: [Category; 9] = [
    Category::Research,
    Category::Build,
    Category::Voice,
    Category::Sms,
    Category::Email,
    Category::Judgment,
    Category::Creative,
    Category::Data,
    Category::Custom,
];

impl Category {
    pub const fn as_str(self) -> &'static str {
        match self {
            Category::Research => "research",
            Category::Build => "build",
            Category::Voice => "voice",
            Category::Sms => "sms",
            Category::Email => "email",
            Category::Judgment => "judgment",
            Category::Creative => "creative",
            Category::Data => "data",
            Category::Custom => "custom",
        }
    }
}

impl FromStr for Category {
    type Err = String;

    fn from_str(text: &str) -> Result<Category, String> {
        let found = CATEGORIES.into_iter().find(|category| category.as_str() == text);
        found.ok_or_else(|| format!("must be one of {}", CATEGORIES.map(Category::as_str).join(", ")))
    }
}
