//! A reader with limits.

use std::io::{BufRead, Error, Read, Result};

use super::Kind;

/// Reads at most so many bytes, in total and since [`Bounded::allow`].
pub(super) struct Bounded<R> {
    inner: R,
    left: u64,
    allowed: u64,
}

impl<R: BufRead> Bounded<R> {
    pub(super) fn new(inner: R, most: u64) -> Self {
        Self { inner, left: most, allowed: u64::MAX }
    }

    /// Allows so many bytes from here on.
    pub(super) fn allow(&mut self, bytes: u64) {
        self.allowed = bytes;
    }

    /// The kind of the file, by its first bytes.
    pub(super) fn kind(&mut self) -> Option<Kind> {
        let start = self.fill_buf().ok()?;
        let start = start.strip_prefix(b"\xef\xbb\xbf").unwrap_or(start);
        let first = start.iter().find(|byte| !byte.is_ascii_whitespace())?;
        Some(if *first == b'<' { Kind::Xml } else { Kind::Text })
    }
}

impl<R: BufRead> BufRead for Bounded<R> {
    fn fill_buf(&mut self) -> Result<&[u8]> {
        let most = self.left.min(self.allowed);
        let bytes = self.inner.fill_buf()?;
        if most == 0 && !bytes.is_empty() {
            let whole = self.left == 0;
            return Err(Error::other(if whole { "the file is too long" } else { "an element or text is too long" }));
        }
        let most = usize::try_from(most).unwrap_or(usize::MAX);
        Ok(&bytes[..bytes.len().min(most)])
    }

    fn consume(&mut self, bytes: usize) {
        let read = u64::try_from(bytes).unwrap_or(u64::MAX);
        self.left = self.left.saturating_sub(read);
        self.allowed = self.allowed.saturating_sub(read);
        self.inner.consume(bytes);
    }
}

impl<R: BufRead> Read for Bounded<R> {
    fn read(&mut self, into: &mut [u8]) -> Result<usize> {
        let bytes = self.fill_buf()?;
        let size = bytes.len().min(into.len());
        into[..size].copy_from_slice(&bytes[..size]);
        self.consume(size);
        Ok(size)
    }
}
