//! The calls of agents: where they may go, how much they may be together, and what reads them out.

use std::path::PathBuf;

use super::Reader;

/// Default: calls to numbers outside this deployment go to the United States and Canada, 10,000 minutes a day.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VoiceConfig {
    /// `VOICE_COUNTRIES`: comma-separated countries (ISO 3166-1 alpha-2) that may be called. They do not bind numbers of this
    /// deployment's agents. Stored in upper case. Default `US,CA`.
    pub countries: Vec<String>,
    /// `ESPEAK_PATH`: the program espeak-ng, which reads out calls inside the deployment. Default: none, so they have no
    /// recording. `make run` looks for it in `PATH`.
    pub espeak: Option<PathBuf>,
    /// `VOICE_DAILY_MINUTES`: most minutes of all agents' calls to numbers outside this deployment in a UTC day, from 1 to 100
    /// million. Default 10,000.
    pub daily_minutes: u32,
}

impl Default for VoiceConfig {
    fn default() -> VoiceConfig {
        VoiceConfig { countries: ["US", "CA"].map(str::to_owned).to_vec(), espeak: None, daily_minutes: 10_000 }
    }
}

impl VoiceConfig {
    pub(super) fn read(env: &mut Reader<'_>) -> VoiceConfig {
        let espeak = env.text("ESPEAK_PATH").map(PathBuf::from);
        if espeak.as_ref().is_some_and(|path| !path.is_file()) {
            env.problem("ESPEAK_PATH", "must be the path of espeak-ng");
        }
        let unset = VoiceConfig::default();
        let minutes = env.number("VOICE_DAILY_MINUTES", unset.daily_minutes.into(), 1..=100_000_000);
        VoiceConfig {
            countries: env.countries("VOICE_COUNTRIES", &unset.countries),
            espeak,
            daily_minutes: u32::try_from(minutes).unwrap_or(unset.daily_minutes),
        }
    }
}
