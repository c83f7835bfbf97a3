//! Reads a response body and decompresses it as it arrives, within the policy's caps.
//!
//! It never holds more than the decoded cap plus one buffer of the decompressor.

use std::io::{self, Write};

use flate2::write::{DeflateDecoder, GzDecoder, ZlibDecoder};

use super::fetch::FetchError;
use super::policy::FetchPolicy;

/// Compressed bytes per step. It is small because the ratio is checked only between steps, and a kilobyte can decompress to
/// a megabyte.
const STEP_BYTES: usize = 1024;

/// A body being received.
pub(super) struct BodyReader {
    decoder: Decoder,
    raw_bytes: usize,
    max_raw_bytes: usize,
    cut: bool,
}

/// The result.
pub(super) struct ReceivedBody {
    pub(super) bytes: Vec<u8>,
    /// The body was longer than a cap, or its compressed stream ended early.
    pub(super) truncated: bool,
}

/// The compression of the body.
enum Decoder {
    Identity(Unpacked),
    Gzip(GzDecoder<Unpacked>),
    /// `deflate`, before its first two bytes tell whether it has a zlib header.
    Deflate {
        start: Vec<u8>,
        unpacked: Unpacked,
    },
    Zlib(ZlibDecoder<Unpacked>),
    RawDeflate(DeflateDecoder<Unpacked>),
}

/// The decoded bytes. A write that would exceed the cap or the permitted ratio fails.
struct Unpacked {
    bytes: Vec<u8>,
    raw_bytes: usize,
    max_bytes: usize,
    max_ratio: usize,
    ratio_free_bytes: usize,
    stopped: Option<Stopped>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Stopped {
    AtCap,
    ByRatio,
}

impl BodyReader {
    /// A reader for this `Content-Encoding`; only those we offered are accepted.
    pub(super) fn new(encoding: &str, policy: &FetchPolicy) -> Result<Self, FetchError> {
        let unpacked = Unpacked {
            bytes: Vec::new(),
            raw_bytes: 0,
            max_bytes: policy.max_decoded_bytes,
            max_ratio: policy.max_decompression_ratio,
            ratio_free_bytes: policy.ratio_free_bytes,
            stopped: None,
        };
        let decoder = match encoding.trim().to_ascii_lowercase().as_str() {
            "" | "identity" => Decoder::Identity(unpacked),
            "gzip" | "x-gzip" => Decoder::Gzip(GzDecoder::new(unpacked)),
            "deflate" => Decoder::Deflate { start: Vec::new(), unpacked },
            _ => {
                return Err(FetchError::Protocol("it uses a content encoding that was not requested"));
            }
        };
        Ok(Self { decoder, raw_bytes: 0, max_raw_bytes: policy.max_raw_bytes, cut: false })
    }

    /// Takes the next piece. Returns false when no more is needed.
    pub(super) fn push(&mut self, piece: &[u8]) -> Result<bool, FetchError> {
        let room = self.max_raw_bytes - self.raw_bytes;
        if piece.len() > room {
            self.cut = true;
        }
        for step in piece[..piece.len().min(room)].chunks(STEP_BYTES) {
            self.raw_bytes += step.len();
            self.settle_deflate_form(step);
            self.decoder.unpacked_mut().raw_bytes = self.raw_bytes;
            let written = self.decoder.write(step);
            if !self.judge(written)? {
                return Ok(false);
            }
        }
        Ok(!self.cut)
    }

    /// The body, once the server has sent all of it or no more is needed.
    pub(super) fn finish(mut self) -> Result<ReceivedBody, FetchError> {
        let flushed = self.decoder.finish();
        // A stream that ends early counts as truncated, not as an error. Browsers do the same.
        if flushed.is_err() {
            self.cut = true;
        }
        self.judge(flushed.or(Ok(Progress::More)))?;
        let bytes = std::mem::take(&mut self.decoder.unpacked_mut().bytes);
        Ok(ReceivedBody { bytes, truncated: self.cut })
    }

    /// Servers send `deflate` with and without the zlib header that the standard requires.
    fn settle_deflate_form(&mut self, piece: &[u8]) {
        let Decoder::Deflate { start, unpacked } = &mut self.decoder else {
            return;
        };
        let mut head = start.iter().chain(piece).copied();
        let (Some(first), Some(second)) = (head.next(), head.next()) else {
            return;
        };
        let is_zlib = first & 0x0f == 8 && u16::from_be_bytes([first, second]).is_multiple_of(31);
        let unpacked = unpacked.take();
        let start = std::mem::take(start);
        self.decoder = if is_zlib {
            Decoder::Zlib(ZlibDecoder::new(unpacked))
        } else {
            Decoder::RawDeflate(DeflateDecoder::new(unpacked))
        };
        // At most one byte; writing it cannot fail.
        let _ = self.decoder.write(&start);
    }

    /// Maps the result of a write to "more", "enough" or an error.
    fn judge(&mut self, written: io::Result<Progress>) -> Result<bool, FetchError> {
        match (self.decoder.unpacked_mut().stopped, written) {
            (Some(Stopped::ByRatio), _) => Err(FetchError::DecompressionLimit),
            (Some(Stopped::AtCap), _) => {
                self.cut = true;
                Ok(false)
            }
            (None, Err(_)) => Err(FetchError::Protocol("the compressed body is damaged")),
            (None, Ok(Progress::Ended)) => Ok(false),
            (None, Ok(Progress::More)) => Ok(true),
        }
    }
}

/// Whether a compressed stream has reached its end mark.
enum Progress {
    More,
    Ended,
}

impl Decoder {
    fn write(&mut self, piece: &[u8]) -> io::Result<Progress> {
        match self {
            Self::Identity(unpacked) => write_until_end(unpacked, piece),
            Self::Gzip(decoder) => write_until_end(decoder, piece),
            Self::Zlib(decoder) => write_until_end(decoder, piece),
            Self::RawDeflate(decoder) => write_until_end(decoder, piece),
            Self::Deflate { start, .. } => {
                start.extend_from_slice(piece);
                Ok(Progress::More)
            }
        }
    }

    /// Flushes the decompressor. An error means that the stream had not ended.
    fn finish(&mut self) -> io::Result<Progress> {
        match self {
            Self::Identity(_) | Self::Deflate { .. } => {}
            Self::Gzip(decoder) => decoder.try_finish()?,
            Self::Zlib(decoder) => decoder.try_finish()?,
            Self::RawDeflate(decoder) => decoder.try_finish()?,
        }
        Ok(Progress::Ended)
    }

    fn unpacked_mut(&mut self) -> &mut Unpacked {
        match self {
            Self::Identity(unpacked) | Self::Deflate { unpacked, .. } => unpacked,
            Self::Gzip(decoder) => decoder.get_mut(),
            Self::Zlib(decoder) => decoder.get_mut(),
            Self::RawDeflate(decoder) => decoder.get_mut(),
        }
    }
}

/// Like `write_all`, but a compressed stream may end before its input does. What follows its end mark is ignored, as
/// browsers do.
fn write_until_end(writer: &mut impl Write, mut piece: &[u8]) -> io::Result<Progress> {
    while !piece.is_empty() {
        match writer.write(piece)? {
            0 => return Ok(Progress::Ended),
            taken => piece = &piece[taken..],
        }
    }
    Ok(Progress::More)
}

impl Unpacked {
    /// Moves the (still empty) buffer out, for the decoder that is now known.
    fn take(&mut self) -> Self {
        Self { bytes: std::mem::take(&mut self.bytes), ..*self }
    }

    fn beyond_ratio(&self) -> bool {
        self.bytes.len() > self.ratio_free_bytes && self.bytes.len() / self.max_ratio > self.raw_bytes
    }
}

impl Write for Unpacked {
    fn write(&mut self, piece: &[u8]) -> io::Result<usize> {
        let room = self.max_bytes - self.bytes.len();
        self.bytes.extend_from_slice(&piece[..piece.len().min(room)]);
        if self.beyond_ratio() {
            self.stopped = Some(Stopped::ByRatio);
        } else if piece.len() > room {
            self.stopped = Some(Stopped::AtCap);
        }
        match self.stopped {
            None => Ok(piece.len()),
            Some(_) => Err(io::Error::other("no more is wanted")),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use flate2::Compression;
    use flate2::write::{DeflateEncoder, GzEncoder, ZlibEncoder};

    fn policy() -> FetchPolicy {
        let mut policy = FetchPolicy::default();
        policy.max_raw_bytes = 2_000;
        policy.max_decoded_bytes = 20_000;
        policy
    }

    /// Feeds `raw` in pieces of `step` bytes, as a network would.
    fn receive(encoding: &str, raw: &[u8], step: usize) -> Result<ReceivedBody, FetchError> {
        receive_under(&policy(), encoding, raw, step)
    }

    fn receive_under(
        policy: &FetchPolicy,
        encoding: &str,
        raw: &[u8],
        step: usize,
    ) -> Result<ReceivedBody, FetchError> {
        let mut reader = BodyReader::new(encoding, policy)?;
        for piece in raw.chunks(step) {
            if !reader.push(piece)? {
                break;
            }
        }
        reader.finish()
    }

    fn gzip(plain: &[u8]) -> Vec<u8> {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
        encoder.write_all(plain).unwrap();
        encoder.finish().unwrap()
    }

    /// Text that compresses only moderately.
    fn prose(length: usize) -> Vec<u8> {
        let words = (0u64..).flat_map(|n| (n * n * 7919).to_string().into_bytes());
        words.take(length).collect()
    }

    #[test]
    fn all_encodings_decode_to_the_same_bytes() {
        let plain = prose(1_500);
        let mut zlib = ZlibEncoder::new(Vec::new(), Compression::fast());
        zlib.write_all(&plain).unwrap();
        let mut raw = DeflateEncoder::new(Vec::new(), Compression::fast());
        raw.write_all(&plain).unwrap();
        let packed = [
            ("", plain.clone()),
            ("identity", plain.clone()),
            ("gzip", gzip(&plain)),
            (" X-GZIP ", gzip(&plain)),
            ("deflate", zlib.finish().unwrap()),
            ("deflate", raw.finish().unwrap()),
        ];
        for (encoding, bytes) in packed {
            for step in [1, 7, 10_000] {
                let body = receive(encoding, &bytes, step).unwrap();
                assert!(body.bytes == plain, "{encoding} in steps of {step}");
                assert!(!body.truncated);
            }
        }
    }

    #[test]
    fn empty_bodies_are_empty() {
        for encoding in ["", "deflate"] {
            let body = receive(encoding, b"", 1).unwrap();
            assert!(body.bytes.is_empty() && !body.truncated);
        }
    }

    #[test]
    fn a_long_body_is_cut_at_the_raw_cap() {
        let body = receive("", &prose(2_001), 300).unwrap();
        assert_eq!((body.bytes.len(), body.truncated), (2_000, true));
        let whole = receive("", &prose(2_000), 300).unwrap();
        assert_eq!((whole.bytes.len(), whole.truncated), (2_000, false));
    }

    #[test]
    fn a_long_packed_body_is_cut_at_the_decoded_cap() {
        let packed = gzip(&b"0123456789abcdefghijklmnopqrstuvwxyz".repeat(20).repeat(28));
        assert!(packed.len() < 2_000);
        let body = receive("gzip", &packed, 50).unwrap();
        assert_eq!((body.bytes.len(), body.truncated), (20_000, true));
    }

    #[test]
    fn a_decompression_bomb_is_an_error_in_every_encoding() {
        let bomb = vec![0; 50_000_000];
        let mut zlib = ZlibEncoder::new(Vec::new(), Compression::best());
        zlib.write_all(&bomb).unwrap();
        for (encoding, raw) in [("gzip", gzip(&bomb)), ("deflate", zlib.finish().unwrap())] {
            for step in [100, 1_000_000] {
                let outcome = receive_under(&FetchPolicy::default(), encoding, &raw, step);
                assert!(matches!(outcome, Err(FetchError::DecompressionLimit)), "{encoding}");
            }
        }
    }

    #[test]
    fn a_stream_that_ends_early_gives_what_arrived() {
        let plain = prose(1_500);
        let packed = gzip(&plain);
        let body = receive("gzip", &packed[..packed.len() - 20], 50).unwrap();
        assert!(body.truncated);
        assert!(plain.starts_with(&body.bytes) && body.bytes.len() > 1_000);
    }

    #[test]
    fn damage_and_unknown_encodings_are_protocol_errors() {
        let mut packed = gzip(&prose(1_500));
        packed[20..40].fill(0xff);
        assert!(matches!(receive("gzip", &packed, 64), Err(FetchError::Protocol(_))));
        for encoding in ["br", "zstd", "gzip, gzip", "compress"] {
            assert!(matches!(receive(encoding, b"x", 1), Err(FetchError::Protocol(_))));
        }
    }

    #[test]
    fn bytes_after_the_end_of_a_stream_are_ignored() {
        let mut packed = gzip(b"hello");
        packed.extend_from_slice(b"trailing rubbish");
        for step in [1, 1_000] {
            let body = receive("gzip", &packed, step).unwrap();
            assert_eq!((body.bytes.as_slice(), body.truncated), (&b"hello"[..], false));
        }
    }
}
