//! Who connects calls with numbers outside this deployment.

use platform::config::{Capability, Config};

/// The providers that have an adapter.
pub const NAMES: [&str; 1] = ["vapi"];

/// The provider in use: the first of `VOICE_PROVIDERS`.
pub fn chosen(config: &Config) -> Option<&'static str> {
    let first = config.providers.order(Capability::Voice).first()?;
    NAMES.into_iter().find(|name| name == first)
}
