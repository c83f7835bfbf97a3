//! Stub until merged.
pub struct Words {
    pub sent: &'static str,
    pub not_sent: &'static str,
    pub back_home: &'static str,
}
pub fn words(_: &str) -> &'static Words {
    &Words { sent: "Sent", not_sent: "Not sent", back_home: "Back" }
}
pub fn dir(_: &str) -> &'static str {
    "ltr"
}
