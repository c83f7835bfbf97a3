//! Calls of the exchange, read out: WAV of what was said, made by espeak-ng from the transcript each time it is asked for.
//!
//! The words are strangers'. espeak-ng gets them on its standard input, without the characters that are more than words to
//! it, and none of the service's environment. It gets no `-m`, so markup is text.

use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use http::StatusCode;
use platform::http::ApiError;
use platform::store::StoreError;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::process::Command;
use tokio::sync::Semaphore;
use tokio::time::timeout;

use crate::config::Language;
use crate::dialogue::{Speaker, Turn};

/// Most seconds of a call. What is longer is cut, and [`CUT`] follows. In base64, it fits Lambda's limit of 6 MB.
pub const MAX_SECONDS: u32 = 180;
/// Samples a second: half of [`SPOKEN_RATE`].
pub const RATE: u32 = 11_025;
/// Bytes of a WAV's header.
pub const HEADER: usize = 44;
/// 16 bits, mono.
const SAMPLE: u16 = 2;
const MAX_BYTES: usize = MAX_SECONDS as usize * RATE as usize * SAMPLE as usize;
const SPOKEN_RATE: u32 = 2 * RATE;
const CUT: &str = "The rest of this call is in its transcript.";
/// Room for [`CUT`]: 10 s.
const CUT_BYTES: usize = 10 * RATE as usize * SAMPLE as usize;
/// Most characters of a turn, more than any has in the exchange.
const MAX_CHARS: usize = 4_000;
/// Longest work on a call; usual is a second.
const TIME_LIMIT: Duration = Duration::from_secs(20);
/// Calls that are read out at the same time.
static AT_ONCE: Semaphore = Semaphore::const_new(2);

/// A call as WAV, in two voices: 16 bits, mono, [`RATE`]. `program` is espeak-ng.
///
/// # Errors
/// If other calls are being read out, the program does not start, or it is too slow.
pub async fn wav(program: &Path, turns: &[Turn], language: Language) -> Result<Vec<u8>, ApiError> {
    let _turn = AT_ONCE.try_acquire().map_err(|_| busy())?;
    // At the time limit the future is dropped, which kills espeak-ng (`kill_on_drop`).
    let samples = timeout(TIME_LIMIT, read_out(program, turns, language)).await.map_err(StoreError::new)??;
    let length = u32::try_from(samples.len()).map_err(StoreError::new)?;
    Ok([header(length).as_slice(), &samples].concat())
}

/// Not a failure of ours to be logged: whoever has links can cause it.
fn busy() -> ApiError {
    ApiError::Later {
        status: StatusCode::SERVICE_UNAVAILABLE,
        code: "provider_unavailable",
        message: "other calls are being read out; try again in a few seconds".to_owned(),
        retry_after_secs: 2,
    }
}

async fn read_out(program: &Path, turns: &[Turn], language: Language) -> Result<Vec<u8>, StoreError> {
    let mut samples = Vec::new();
    for turn in turns {
        let (voice, room) = (voice_of(turn.speaker, language), MAX_BYTES.saturating_sub(samples.len()));
        let (spoken, is_whole) = speak(program, voice, &turn.text, room).await?;
        samples.extend(spoken);
        if !is_whole {
            // In English, whatever the call's language.
            let voice = voice_of(Speaker::Assistant, Language::En);
            samples.extend(speak(program, voice, CUT, CUT_BYTES).await?.0);
            break;
        }
    }
    Ok(samples)
}

/// The samples of a text, at most `room` bytes of them, and whether that is all.
async fn speak(program: &Path, voice: &str, text: &str, room: usize) -> Result<(Vec<u8>, bool), StoreError> {
    let mut child = Command::new(program)
        .args(["--stdin", "--stdout", "-b", "1", "-v", voice])
        .env_clear()
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .kill_on_drop(true)
        .spawn()
        .map_err(StoreError::new)?;
    let (Some(mut to), Some(from)) = (child.stdin.take(), child.stdout.take()) else {
        return Err(StoreError::new("espeak-ng has no pipes"));
    };
    // It reads everything before it speaks.
    to.write_all(plain(text).as_bytes()).await.map_err(StoreError::new)?;
    drop(to);
    let (mut wav, most) = (Vec::new(), HEADER + 2 * room);
    let one_more = u64::try_from(most + 1).map_err(StoreError::new)?;
    from.take(one_more).read_to_end(&mut wav).await.map_err(StoreError::new)?;
    let is_whole = wav.len() <= most;
    wav.truncate(most);
    if is_whole {
        // A text that makes it fail is left out: what others said is still heard.
        child.wait().await.map_err(StoreError::new)?;
    }
    Ok((samples(&wav)?, is_whole))
}

/// A text as espeak-ng gets it. `[[` would begin phonemes, U+0001 a command, and NUL end the text.
fn plain(text: &str) -> String {
    let plain = |letter: char| if letter.is_control() || matches!(letter, '[' | ']') { ' ' } else { letter };
    text.chars().take(MAX_CHARS).map(plain).collect()
}

/// The voices of espeak-ng: the assistant has the language's own.
fn voice_of(speaker: Speaker, language: Language) -> &'static str {
    let (assistant, caller) = match language {
        Language::En | Language::Multi => ("en-us", "en-us+f2"),
        Language::Es => ("es", "es+f2"),
        Language::Fr => ("fr", "fr+f2"),
        Language::De => ("de", "de+f2"),
        Language::Pt => ("pt", "pt+f2"),
        Language::It => ("it", "it+f2"),
        Language::Nl => ("nl", "nl+f2"),
    };
    match speaker {
        Speaker::Assistant => assistant,
        Speaker::Caller => caller,
    }
}

/// The samples of a WAV as espeak-ng writes it to a pipe, at half its rate. Its header names no length, as that is not known
/// then. Nothing at all is silence.
fn samples(wav: &[u8]) -> Result<Vec<u8>, StoreError> {
    let Some((found, samples)) = wav.split_at_checked(HEADER) else { return Ok(Vec::new()) };
    let expected = header_at(SPOKEN_RATE, 0);
    // All but the two lengths.
    if [0..4, 8..40].into_iter().any(|part| found[part.clone()] != expected[part]) {
        return Err(StoreError::new("espeak-ng does not speak as expected: 22,050 Hz, mono, 16 bits"));
    }
    let (pairs, _) = samples.as_chunks::<4>();
    let halved = |[a, b, c, d]: &[u8; 4]| i16::from_le_bytes([*a, *b]).midpoint(i16::from_le_bytes([*c, *d]));
    Ok(pairs.iter().flat_map(|pair| halved(pair).to_le_bytes()).collect())
}

fn header(length: u32) -> Vec<u8> {
    header_at(RATE, length)
}

/// The header of a WAV with so many bytes of samples.
fn header_at(rate: u32, length: u32) -> Vec<u8> {
    let (pcm, mono, bits) = (1_u16.to_le_bytes(), 1_u16.to_le_bytes(), (8 * SAMPLE).to_le_bytes());
    let (size, bytes_a_second) = ((length + 36).to_le_bytes(), (rate * u32::from(SAMPLE)).to_le_bytes());
    let (rate, align, length) = (rate.to_le_bytes(), SAMPLE.to_le_bytes(), length.to_le_bytes());
    let parts: [&[u8]; 11] =
        [b"RIFF", &size, b"WAVEfmt ", &[16, 0, 0, 0], &pcm, &mono, &rate, &bytes_a_second, &align, &bits, b"data"];
    [parts.concat().as_slice(), &length].concat()
}

#[cfg(test)]
mod tests {
    use std::fs::Permissions;
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn only_words_are_passed_on() {
        assert_eq!(plain("a [[h@l@U]] \u{1}+20A b\0c\nd <speak> $(x) --"), "a   h@l@U    +20A b c d <speak> $(x) --");
        assert_eq!(plain(&"ä".repeat(MAX_CHARS + 1)).chars().count(), MAX_CHARS);
    }

    #[test]
    fn sound_is_halved_and_other_sound_is_refused() {
        let mut wav = header_at(SPOKEN_RATE, 0x7fff_f000);
        assert_eq!(wav.len(), HEADER);
        for sample in [100_i16, 200, -32_768, -32_768, 7] {
            wav.extend(sample.to_le_bytes());
        }
        assert_eq!(samples(&wav).unwrap(), [150_i16.to_le_bytes(), (-32_768_i16).to_le_bytes()].concat());
        assert!(samples(&[]).unwrap().is_empty());
        wav[24] ^= 1;
        assert!(samples(&wav).is_err());
    }

    #[test]
    fn the_longest_call_fits_an_answer_of_lambda() {
        let base64 = (HEADER + MAX_BYTES + CUT_BYTES).div_ceil(3) * 4;
        assert!(base64 + 4_096 < platform::http::lambda::MAX_PAYLOAD_BYTES, "{base64}");
    }

    /// With a program that speaks without end, and after others are through.
    #[tokio::test]
    async fn what_is_too_long_is_cut() {
        let turn = |text: &str| Turn { speaker: Speaker::Caller, text: text.to_owned() };
        let folder = std::env::temp_dir().join(format!("spoken-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let (program, head) = (folder.join("speaker"), folder.join("head"));
        std::fs::write(&head, header_at(SPOKEN_RATE, 0)).unwrap();
        let script = format!("#!/bin/sh\n/bin/cat {}\nexec /bin/cat /dev/zero\n", head.display());
        std::fs::write(&program, script).unwrap();
        std::fs::set_permissions(&program, Permissions::from_mode(0o700)).unwrap();
        let turns = [turn("a"), turn("b")];
        let others = AT_ONCE.try_acquire_many(2).unwrap();
        let refused = wav(&program, &turns, Language::En).await;
        assert!(matches!(refused, Err(ApiError::Later { retry_after_secs: 2, .. })), "{refused:?}");
        drop(others);
        let wav = wav(&program, &turns, Language::En).await.unwrap();
        std::fs::remove_dir_all(&folder).unwrap();
        assert_eq!(wav.len(), HEADER + MAX_BYTES + CUT_BYTES);
        assert_eq!(wav[40..HEADER], u32::try_from(MAX_BYTES + CUT_BYTES).unwrap().to_le_bytes());
    }
}
