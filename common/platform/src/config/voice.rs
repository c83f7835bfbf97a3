//! The calls of agents: where they may go, and what reads them out.

use std::path::PathBuf;

use super::Reader;

/// Default: calls to numbers outside this deployment go to the United States and Canada.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VoiceConfig {
    /// `VOICE_COUNTRIES`: comma-separated countries (ISO 3166-1 alpha-2) that may be called. They do not bind numbers of this
    /// deployment's agents. Stored in upper case. Default `US,CA`.
    pub countries: Vec<String>,
    /// `ESPEAK_PATH`: the program espeak-ng, which reads out calls inside the deployment. Default: none, so they have no
    /// recording. `make run` looks for it in `PATH`.
    pub espeak: Option<PathBuf>,
}

impl Default for VoiceConfig {
    fn default() -> VoiceConfig {
        VoiceConfig { countries: ["US", "CA"].map(str::to_owned).to_vec(), espeak: None }
    }
}

impl VoiceConfig {
    pub(super) fn read(env: &mut Reader<'_>) -> VoiceConfig {
        let espeak = env.text("ESPEAK_PATH").map(PathBuf::from);
        if espeak.as_ref().is_some_and(|path| !path.is_file()) {
            env.problem("ESPEAK_PATH", "must be the path of espeak-ng");
        }
        VoiceConfig { countries: env.countries("VOICE_COUNTRIES", &VoiceConfig::default().countries), espeak }
    }
}
