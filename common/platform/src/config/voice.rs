//! The calls of agents: where they may go.

use super::Reader;

/// Default: calls to numbers outside this deployment go to the United States and Canada.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VoiceConfig {
    /// `VOICE_COUNTRIES`: comma-separated countries (ISO 3166-1 alpha-2) that may be called. They do not bind numbers of this
    /// deployment's agents. Stored in upper case. Default `US,CA`.
    pub countries: Vec<String>,
}

impl Default for VoiceConfig {
    fn default() -> VoiceConfig {
        VoiceConfig { countries: ["US", "CA"].map(str::to_owned).to_vec() }
    }
}

impl VoiceConfig {
    pub(super) fn read(env: &mut Reader<'_>) -> VoiceConfig {
        VoiceConfig { countries: env.countries("VOICE_COUNTRIES", &VoiceConfig::default().countries) }
    }
}
