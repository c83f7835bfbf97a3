//! The content types that answers may have, and whether a body is what it says.

/// A content type that a buyer may be given. There is none that a browser runs: no HTML, no SVG, no script.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Media {
    Json,
    Text,
    Markdown,
    Csv,
    Png,
    Jpeg,
    Gif,
    Webp,
    Pdf,
    Mp3,
    Wav,
    Ogg,
    Mp4,
    Zip,
    /// Any bytes; shown as a download only.
    Bytes,
}

impl Media {
    pub const ALL: [Media; 15] = [
        Media::Json,
        Media::Text,
        Media::Markdown,
        Media::Csv,
        Media::Png,
        Media::Jpeg,
        Media::Gif,
        Media::Webp,
        Media::Pdf,
        Media::Mp3,
        Media::Wav,
        Media::Ogg,
        Media::Mp4,
        Media::Zip,
        Media::Bytes,
    ];

    pub const fn as_str(self) -> &'static str {
        match self {
            Media::Json => "application/json",
            Media::Text => "text/plain",
            Media::Markdown => "text/markdown",
            Media::Csv => "text/csv",
            Media::Png => "image/png",
            Media::Jpeg => "image/jpeg",
            Media::Gif => "image/gif",
            Media::Webp => "image/webp",
            Media::Pdf => "application/pdf",
            Media::Mp3 => "audio/mpeg",
            Media::Wav => "audio/wav",
            Media::Ogg => "audio/ogg",
            Media::Mp4 => "video/mp4",
            Media::Zip => "application/zip",
            Media::Bytes => "application/octet-stream",
        }
    }

    /// The content type with exactly this name.
    pub fn named(name: &str) -> Option<Media> {
        Media::ALL.into_iter().find(|media| media.as_str() == name)
    }

    /// What a `content-type` header says; `None` for everything that is not on the list.
    pub fn of_header(header: &str) -> Option<Media> {
        let name = header.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
        match name.as_str() {
            "text/json" => Some(Media::Json),
            "image/jpg" => Some(Media::Jpeg),
            "audio/mp3" => Some(Media::Mp3),
            "audio/x-wav" | "audio/wave" | "audio/vnd.wave" => Some(Media::Wav),
            name if name.starts_with("application/") && name.ends_with("+json") => Some(Media::Json),
            name => Media::named(name),
        }
    }

    /// Whether a body can be of this type, by its first bytes. Texts must be UTF-8.
    pub fn fits(self, body: &[u8]) -> bool {
        match self {
            Media::Json | Media::Bytes => true,
            Media::Text | Media::Markdown | Media::Csv => std::str::from_utf8(body).is_ok() && !body.contains(&0),
            Media::Png => body.starts_with(b"\x89PNG\r\n\x1a\n"),
            Media::Jpeg => body.starts_with(b"\xff\xd8\xff"),
            Media::Gif => body.starts_with(b"GIF87a") || body.starts_with(b"GIF89a"),
            Media::Webp => is_riff(body, b"WEBP"),
            Media::Pdf => body.starts_with(b"%PDF-"),
            Media::Mp3 => body.starts_with(b"ID3") || matches!(body, [0xff, second, ..] if second & 0xe0 == 0xe0),
            Media::Wav => is_riff(body, b"WAVE"),
            Media::Ogg => body.starts_with(b"OggS"),
            Media::Mp4 => body.get(4..8) == Some(b"ftyp"),
            Media::Zip => body.starts_with(b"PK\x03\x04") || body.starts_with(b"PK\x05\x06"),
        }
    }
}

fn is_riff(body: &[u8], form: &[u8]) -> bool {
    body.starts_with(b"RIFF") && body.get(8..12) == Some(form)
}
