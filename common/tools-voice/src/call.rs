//! What happens in an inbound call: a pure function of the number's settings, the time, the owner's credit, and what happens.
//!
//! ```text
//! ring ──► not in service            no settings, or switched off: nothing is recorded
//!      ├─► declined                  after hours with `decline`, no credit or budget, or frozen ([`Declined`])
//!      ├─► talking ───────────────► ended
//!      │      │  ▲ it failed          ▲
//!      │      ▼  │                    │ hung up, silence, or the length that credit and settings allow
//!      └─► transferred ───────────────┘
//! ```
//!
//! The mode is decided when it rings and stays. An assistant passes a call on only during business hours, and only if its
//! settings allow that; after hours the settings themselves do, or nobody.
//!
//! Credit for all minutes of the call is held when it is answered, so a call never costs more than there was, whatever else
//! runs. A call that ended too late (because nobody looked) ended when it had to.

use std::time::Duration;

use base::clock::Timestamp;
use serde::{Deserialize, Serialize};

use crate::config::{AfterHours, InboundConfig, Tool};

/// A caller of the exchange who says nothing for this long has hung up. Less than a minute, so that a call without a word costs
/// one minute and not two.
pub const SILENCE: Duration = Duration::from_secs(55);
const MINUTE: Duration = Duration::from_secs(60);

/// How a call is treated; the wire's `mode`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Mode {
    InHours,
    TakeMessage,
    Transfer,
    Decline,
}

/// Why a call was declined.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Declined {
    /// The settings say so for this hour.
    AfterHours,
    /// The owner's credits cover less than a minute.
    NoCredit,
    /// The owner's budget leaves less than a minute.
    OverBudget,
    /// The owner has frozen its calls, or has a debt.
    Frozen,
    /// Too many calls of the number failed today by the provider's fault, and cost nothing ([`crate::failures`]).
    TooManyFailures,
}

/// Why a call ended; the wire's `ended_reason`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Ended {
    CallerHungUp,
    /// Or the owner of the number that was called.
    AssistantHungUp,
    /// It was passed on: by the exchange, as a call of its own, or by the provider.
    Transferred,
    TransferFailed,
    /// It had the length that the settings allow.
    TimeLimit,
    /// It had the length that the credits and the budget covered.
    CreditLimit,
    Silence,
    /// The provider lost it, or its job was given up. It costs nothing.
    Failed,
    /// The owner froze its calls meanwhile.
    Frozen,
}

impl Ended {
    /// The reason as the caller sees it, who learns nothing about the callee's credits and freezes.
    pub fn to_caller(self) -> &'static str {
        match self {
            Ended::CallerHungUp => "caller_hung_up",
            Ended::AssistantHungUp | Ended::Frozen => "assistant_hung_up",
            Ended::Transferred => "transferred",
            Ended::TransferFailed => "transfer_failed",
            Ended::TimeLimit | Ended::CreditLimit => "time_limit",
            Ended::Silence => "silence",
            Ended::Failed => "failed",
        }
    }
}

/// Whether and how a call is answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// Nobody answers; it is not recorded.
    NotInService,
    /// It costs nothing.
    Declined {
        why: Declined,
        /// Said to the caller, if the owner set it.
        say: Option<String>,
    },
    /// [`State::minutes`] have to be held before anything is said.
    Answered { state: State },
}

/// An answered call.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct State {
    pub mode: Mode,
    pub phase: Phase,
    pub answered: Timestamp,
    /// The most it may last, in minutes, for which credit is held.
    pub minutes: u32,
    /// The credit, not the settings, limits the minutes.
    pub is_cut: bool,
    /// When the caller last said something.
    pub heard: Timestamp,
    /// It ends after this much silence, in seconds; 0: whoever carries it sees to that.
    #[serde(default)]
    pub silence_secs: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Phase {
    Talking,
    /// The caller is being passed on, or talks to the transfer number.
    Transferred,
    Ended {
        at: Timestamp,
        why: Ended,
    },
}

/// What happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// The caller said something.
    Heard,
    /// The assistant wants to do this.
    Uses(Tool),
    TransferFailed,
    /// The exchange passed the call to another number.
    PassedOn,
    HungUp,
    /// The owner of the number that was called hung up.
    CalleeHungUp,
    /// That owner froze its calls.
    Frozen,
    Failed,
    /// Only time has passed.
    Looked,
}

/// A call comes in. `credit`: the minutes that the owner's credits and budget cover. `ends_in_silence`: it is a call of the exchange.
pub fn ring(config: Option<&InboundConfig>, now: Timestamp, credit: u32, ends_in_silence: bool) -> Answer {
    let Some(config) = config.filter(|config| config.enabled) else { return Answer::NotInService };
    let mode = mode(config, now);
    if mode == Mode::Decline {
        return Answer::Declined { why: Declined::AfterHours, say: config.after_hours_message.clone() };
    }
    if credit == 0 {
        return Answer::Declined { why: Declined::NoCredit, say: None };
    }
    let phase = if mode == Mode::Transfer { Phase::Transferred } else { Phase::Talking };
    let silence_secs = if ends_in_silence { u32::try_from(SILENCE.as_secs()).unwrap_or(u32::MAX) } else { 0 };
    let minutes = config.max_minutes.min(credit);
    let is_cut = credit < config.max_minutes;
    Answer::Answered { state: State { mode, phase, answered: now, minutes, is_cut, heard: now, silence_secs } }
}

/// How a call at this time is treated.
pub fn mode(config: &InboundConfig, now: Timestamp) -> Mode {
    if config.business_hours.as_ref().is_none_or(|hours| hours.is_open(now)) {
        return Mode::InHours;
    }
    match config.after_hours {
        AfterHours::TakeMessage => Mode::TakeMessage,
        // The settings cannot be put without a number.
        AfterHours::Transfer if config.transfer_number.is_none() => Mode::TakeMessage,
        AfterHours::Transfer => Mode::Transfer,
        AfterHours::Decline => Mode::Decline,
    }
}

/// Something happens in an answered call. A call that has ended stays as it is, and so does one whose assistant may not do what it
/// wants.
pub fn next(config: &InboundConfig, state: &State, now: Timestamp, event: Event) -> State {
    // Reports may come out of order.
    let now = now.max(state.answered);
    let state = state.now(now);
    if state.ended().is_some() {
        return state;
    }
    let talking = state.phase == Phase::Talking;
    match event {
        Event::Heard if talking => State { heard: now, ..state },
        Event::Uses(tool @ Tool::TransferCall) => {
            let is_allowed = talking && state.mode == Mode::InHours && config.allows(tool);
            let phase = if is_allowed && config.transfer_number.is_some() { Phase::Transferred } else { state.phase };
            State { phase, ..state }
        }
        Event::Uses(tool @ Tool::EndCall) if talking && config.allows(tool) => {
            state.ending(now, Ended::AssistantHungUp)
        }
        Event::TransferFailed if talking => state,
        Event::TransferFailed if state.mode == Mode::InHours => State { phase: Phase::Talking, heard: now, ..state },
        Event::TransferFailed => state.ending(now, Ended::TransferFailed),
        Event::PassedOn if !talking => state.ending(now, Ended::Transferred),
        Event::HungUp => state.ending(now, Ended::CallerHungUp),
        Event::CalleeHungUp => state.ending(now, Ended::AssistantHungUp),
        Event::Frozen => state.ending(now, Ended::Frozen),
        Event::Failed => state.ending(now, Ended::Failed),
        Event::Looked | Event::Heard | Event::Uses(Tool::EndCall) | Event::PassedOn => state,
    }
}

/// The minutes that a call of this length is charged: each that was begun, and at least one.
pub fn started_minutes(length: Duration) -> u32 {
    u32::try_from(length.as_millis().div_ceil(MINUTE.as_millis())).unwrap_or(u32::MAX).max(1)
}

/// The seconds that a call of this length is shown with: each that was begun.
pub fn started_seconds(length: Duration) -> u64 {
    length.as_secs() + u64::from(length.subsec_nanos() > 0)
}

impl State {
    /// The latest end, and why it is that.
    pub fn must_end(&self) -> (Timestamp, Ended) {
        let limit = self.answered.plus(MINUTE * self.minutes);
        let by_limit = (limit, if self.is_cut { Ended::CreditLimit } else { Ended::TimeLimit });
        if self.silence_secs == 0 {
            return by_limit;
        }
        let silent = self.heard.plus(Duration::from_secs(u64::from(self.silence_secs)));
        if silent < limit { (silent, Ended::Silence) } else { by_limit }
    }

    /// The state at this time: a call that had to end has ended.
    pub fn now(&self, at: Timestamp) -> State {
        let (must_end, why) = self.must_end();
        if self.ended().is_none() && at >= must_end { self.ending(must_end, why) } else { self.clone() }
    }

    /// When and why it ended.
    pub fn ended(&self) -> Option<(Timestamp, Ended)> {
        match self.phase {
            Phase::Ended { at, why } => Some((at, why)),
            Phase::Talking | Phase::Transferred => None,
        }
    }

    /// How long it lasted, once it has ended.
    pub fn length(&self) -> Option<Duration> {
        let (at, _) = self.ended()?;
        Some(Duration::from_millis(
            u64::try_from(at.millis().saturating_sub(self.answered.millis())).unwrap_or_default(),
        ))
    }

    /// The minutes that it is charged, once it has ended; at most those that were held. None of a call that failed: that is the
    /// provider's fault, or ours. None of a call of the exchange that was to be passed on, and could not be before its caller
    /// said anything. (By a provider, strangers could make such calls without end at the operator's expense.)
    pub fn charged_minutes(&self) -> Option<u32> {
        match self.ended()? {
            (_, Ended::Failed) => Some(0),
            (_, Ended::TransferFailed) if self.silence_secs > 0 && self.heard == self.answered => Some(0),
            _ => Some(started_minutes(self.length()?).min(self.minutes)),
        }
    }

    fn ending(&self, at: Timestamp, why: Ended) -> State {
        State { phase: Phase::Ended { at, why }, ..self.clone() }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use tools_sms::number::Number;

    use super::*;
    use crate::config::Language;
    use crate::hours::{BusinessHours, Day, Window};

    const NOON: Timestamp = Timestamp::from_secs(1_795_176_000); // 2026-11-20T12:00:00Z, a Friday

    fn at(secs: i64) -> Timestamp {
        Timestamp::from_millis(NOON.millis() + secs * 1000)
    }

    fn open(days: &[Day]) -> Option<BusinessHours> {
        let window = Window { days: days.to_vec(), start: 9 * 60, end: 17 * 60 };
        Some(BusinessHours { timezone: "UTC".parse().unwrap(), windows: vec![window] })
    }

    fn config() -> InboundConfig {
        InboundConfig {
            prompt: "You answer for a bakery.".to_owned(),
            first_message: None,
            voice_id: None,
            language: Language::En,
            allowed_tools: vec![Tool::TransferCall, Tool::EndCall],
            transfer_number: Some(Number::fictitious(7)),
            business_hours: None,
            after_hours: AfterHours::TakeMessage,
            after_hours_message: Some("We are closed.".to_owned()),
            max_minutes: 10,
            webhook_url: None,
            enabled: true,
        }
    }

    fn answered(config: &InboundConfig, credit: u32) -> State {
        match ring(Some(config), NOON, credit, true) {
            Answer::Answered { state, .. } => state,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn hours_settings_and_credit_decide_how_a_call_is_answered() {
        let is = |config: InboundConfig, credit: u32, expected: &str| {
            let found = match ring(Some(&config), NOON, credit, true) {
                Answer::NotInService => "nobody".to_owned(),
                Answer::Declined { why, say } => format!("{why:?} {}", say.unwrap_or_default()),
                Answer::Answered { state } => {
                    format!("{:?} {} {} {:?}", state.mode, state.minutes, state.is_cut, state.phase)
                }
            };
            assert_eq!(found, expected, "{config:?} with {credit}");
        };
        let closed = |after_hours| InboundConfig { business_hours: open(&[Day::Mon]), after_hours, ..config() };
        assert_eq!(ring(None, NOON, 10, true), Answer::NotInService);
        is(InboundConfig { enabled: false, ..config() }, 10, "nobody");
        is(config(), 10, "InHours 10 false Talking");
        is(config(), 100, "InHours 10 false Talking");
        is(config(), 3, "InHours 3 true Talking");
        is(config(), 0, "NoCredit ");
        is(InboundConfig { business_hours: open(&[Day::Fri]), ..config() }, 10, "InHours 10 false Talking");
        is(closed(AfterHours::TakeMessage), 10, "TakeMessage 10 false Talking");
        is(closed(AfterHours::Transfer), 10, "Transfer 10 false Transferred");
        is(closed(AfterHours::Transfer), 0, "NoCredit ");
        is(closed(AfterHours::Decline), 10, "AfterHours We are closed.");
        is(closed(AfterHours::Decline), 0, "AfterHours We are closed.");
    }

    #[test]
    fn a_call_moves_as_the_table_says() {
        let only = |tools: &[Tool]| InboundConfig { allowed_tools: tools.to_vec(), ..config() };
        let closed = || InboundConfig { business_hours: open(&[Day::Mon]), ..config() };
        let passing = || InboundConfig { after_hours: AfterHours::Transfer, ..closed() };
        let (end, transfer) = (Event::Uses(Tool::EndCall), Event::Uses(Tool::TransferCall));
        for (name, config, events, is_passed_on, ended) in [
            ("an answer", config(), vec![(5, Event::Heard)], false, None),
            ("a look changes nothing", config(), vec![(54, Event::Looked)], false, None),
            ("hung up", config(), vec![(61, Event::HungUp)], false, Some((55, Ended::Silence, 1))),
            (
                "hung up after a word",
                config(),
                vec![(30, Event::Heard), (61, Event::HungUp)],
                false,
                Some((61, Ended::CallerHungUp, 2)),
            ),
            (
                "the callee hangs up",
                only(&[]),
                vec![(30, Event::CalleeHungUp)],
                false,
                Some((30, Ended::AssistantHungUp, 1)),
            ),
            (
                "frozen while it is passed on",
                config(),
                vec![(50, Event::Heard), (61, transfer), (62, Event::Frozen)],
                false,
                Some((62, Ended::Frozen, 2)),
            ),
            ("the assistant hangs up", config(), vec![(54, end)], false, Some((54, Ended::AssistantHungUp, 1))),
            ("it may not", only(&[]), vec![(5, end)], false, None),
            ("passed on", config(), vec![(5, transfer)], true, None),
            (
                "passed on inside the exchange",
                config(),
                vec![(5, transfer), (6, Event::PassedOn)],
                false,
                Some((6, Ended::Transferred, 1)),
            ),
            ("not passed on", config(), vec![(6, Event::PassedOn)], false, None),
            ("it may not pass on", only(&[Tool::EndCall]), vec![(5, transfer)], false, None),
            ("never after hours", closed(), vec![(5, transfer)], false, None),
            ("never twice", config(), vec![(5, transfer), (6, transfer)], true, None),
            ("no end while it is passed on", config(), vec![(5, transfer), (6, end)], true, None),
            ("nobody there", config(), vec![(5, transfer), (9, Event::TransferFailed)], false, None),
            (
                "nobody there after hours",
                passing(),
                vec![(9, Event::TransferFailed)],
                false,
                Some((9, Ended::TransferFailed, 0)),
            ),
            ("nothing is heard while it is passed on", config(), vec![(5, transfer), (54, Event::Heard)], true, None),
            (
                "nobody goes on with passing it on",
                config(),
                vec![(5, transfer), (601, Event::Looked)],
                false,
                Some((55, Ended::Silence, 1)),
            ),
            (
                "nobody begins to pass it on",
                passing(),
                vec![(601, Event::Looked)],
                false,
                Some((55, Ended::Silence, 1)),
            ),
            ("a late look", config(), vec![(86_400, Event::Heard)], false, Some((55, Ended::Silence, 1))),
            ("a report of before", config(), vec![(-5, Event::HungUp)], false, Some((0, Ended::CallerHungUp, 1))),
            (
                "nothing after the end",
                config(),
                vec![(5, Event::Failed), (6, Event::Heard)],
                false,
                Some((5, Ended::Failed, 0)),
            ),
        ] {
            let mut state = answered(&config, 100);
            for (secs, event) in events {
                state = next(&config, &state, at(secs), event);
            }
            assert_eq!(state.phase == Phase::Transferred, is_passed_on, "{name}");
            let found = state.ended().map(|(time, why)| (time, why, state.charged_minutes().unwrap()));
            assert_eq!(found, ended.map(|(secs, why, minutes)| (at(secs), why, minutes)), "{name}");
        }
    }

    /// Otherwise strangers could have numbers outside rung without end, and nobody would pay.
    #[test]
    fn only_the_exchange_tries_a_transfer_for_nothing() {
        let passing =
            InboundConfig { business_hours: open(&[Day::Mon]), after_hours: AfterHours::Transfer, ..config() };
        for (is_local, minutes) in [(true, 0), (false, 1)] {
            let Answer::Answered { state } = ring(Some(&passing), NOON, 100, is_local) else { panic!("not answered") };
            let ended = next(&passing, &state, at(9), Event::TransferFailed);
            assert_eq!(ended.charged_minutes(), Some(minutes), "{ended:?}");
        }
    }

    /// Whoever carries a call sees to its silence, and a person may talk where it was passed on.
    #[test]
    fn a_providers_call_ends_by_its_length_alone() {
        let Answer::Answered { state, .. } = ring(Some(&config()), NOON, 100, false) else { panic!("not answered") };
        let passed = next(&config(), &state, at(5), Event::Uses(Tool::TransferCall));
        for state in [state, passed] {
            assert_eq!(state.must_end(), (at(600), Ended::TimeLimit), "{state:?}");
        }
    }

    #[test]
    fn each_begun_minute_is_charged() {
        for (millis, minutes) in [(0, 1), (1, 1), (60_000, 1), (60_001, 2), (120_000, 2), (3_600_000, 60)] {
            assert_eq!(started_minutes(Duration::from_millis(millis)), minutes, "{millis}");
        }
    }

    #[test]
    fn a_state_survives_storage() {
        let state = answered(&config(), 3).ending(at(5), Ended::CreditLimit);
        let stored: State = serde_json::from_value(serde_json::to_value(&state).unwrap()).unwrap();
        assert_eq!(stored, state);
    }

    fn any_config() -> impl Strategy<Value = InboundConfig> {
        let days = prop::collection::vec(0usize..7, 1..4);
        let window = (days, 0u16..1439, 1u16..600).prop_map(|(days, start, length)| {
            const ALL: [Day; 7] = [Day::Mon, Day::Tue, Day::Wed, Day::Thu, Day::Fri, Day::Sat, Day::Sun];
            Window { days: days.into_iter().map(|day| ALL[day]).collect(), start, end: (start + length).min(1440) }
        });
        let zone = prop::sample::select(vec!["UTC", "Europe/Berlin", "America/New_York", "Asia/Kathmandu"]);
        let hours = prop::option::of((zone, prop::collection::vec(window, 1..5)));
        let after = prop::sample::select(vec![AfterHours::TakeMessage, AfterHours::Transfer, AfterHours::Decline]);
        let tools = prop::sample::subsequence(vec![Tool::TransferCall, Tool::EndCall], 0..=2);
        (hours, after, tools, any::<bool>(), 1u32..=60, prop::bool::weighted(0.9)).prop_map(
            |(hours, after_hours, allowed_tools, has_number, max_minutes, enabled)| InboundConfig {
                allowed_tools,
                transfer_number: has_number.then(|| Number::fictitious(7)),
                business_hours: hours.map(|(zone, windows)| BusinessHours { timezone: zone.parse().unwrap(), windows }),
                after_hours,
                max_minutes,
                enabled,
                ..config()
            },
        )
    }

    fn any_event() -> impl Strategy<Value = Event> {
        prop::sample::select(vec![
            Event::Heard,
            Event::Heard,
            Event::Uses(Tool::TransferCall),
            Event::Uses(Tool::EndCall),
            Event::TransferFailed,
            Event::PassedOn,
            Event::HungUp,
            Event::Failed,
            Event::Looked,
        ])
    }

    proptest! {
        /// Whatever happens, and whenever: a call does nothing that the settings forbid.
        #[test]
        fn a_call_never_does_what_the_settings_forbid(
            config in any_config(),
            week in 0i64..604_800,
            credit in 0u32..70,
            is_local in any::<bool>(),
            events in prop::collection::vec((any_event(), -30i64..400), 0..20),
        ) {
            let start = at(week);
            let is_open = config.business_hours.as_ref().is_none_or(|hours| hours.is_open(start));
            let mut state = match ring(Some(&config), start, credit, is_local) {
                Answer::NotInService => {
                    prop_assert!(!config.enabled);
                    return Ok(());
                }
                Answer::Declined { why: Declined::AfterHours, .. } => {
                    prop_assert!(!is_open && config.after_hours == AfterHours::Decline);
                    return Ok(());
                }
                Answer::Declined { why, .. } => {
                    prop_assert_eq!((why, credit), (Declined::NoCredit, 0));
                    return Ok(());
                }
                Answer::Answered { state } => state,
            };
            prop_assert!(config.enabled && credit > 0);
            prop_assert!(is_open || config.after_hours != AfterHours::Decline);
            prop_assert_eq!(is_open, state.mode == Mode::InHours);
            prop_assert!(state.minutes >= 1 && state.minutes <= credit.min(config.max_minutes));
            prop_assert_eq!(state.phase == Phase::Transferred, state.mode == Mode::Transfer);
            prop_assert!(state.phase == Phase::Talking || config.transfer_number.is_some());
            let mut now = start;
            for (event, after) in events {
                now = Timestamp::from_millis(now.millis() + after * 1000);
                let before = state;
                let after = next(&config, &before, now, event);
                if before.ended().is_some() {
                    prop_assert_eq!(&after, &before);
                }
                if after.phase == Phase::Transferred && before.phase == Phase::Talking {
                    prop_assert!(config.transfer_number.is_some());
                    prop_assert!(is_open && config.allows(Tool::TransferCall));
                    prop_assert_eq!(event, Event::Uses(Tool::TransferCall));
                }
                if let Some((_, Ended::AssistantHungUp)) = after.ended() {
                    prop_assert!(config.allows(Tool::EndCall));
                }
                state = after;
            }
            let late = next(&config, &state, Timestamp::from_millis(now.millis().max(start.millis()) + 7_200_000), Event::Looked);
            let length = late.length().unwrap();
            prop_assert!(length <= MINUTE * late.minutes, "{length:?}");
            prop_assert!(late.charged_minutes().unwrap() <= credit.min(config.max_minutes));
        }
    }
}
