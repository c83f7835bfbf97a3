//! A ZIP archive of stored (uncompressed) files: pages are small, and their fonts and pictures are compressed already.
//! <https://pkware.cachefly.net/webdocs/casestudies/APPNOTE.TXT>, sections 4.3.7, 4.3.12 and 4.3.16.

/// Names are UTF-8 (general purpose bit 11).
const UTF8: u16 = 1 << 11;
/// The first of January 1980: the same files always give the same archive.
const DATE: u16 = (1 << 5) | 1;

/// Packs files in their order. Together they must be smaller than 4 GiB.
pub fn pack<'a>(files: impl Iterator<Item = (&'a str, &'a [u8])>) -> Vec<u8> {
    let (mut archive, mut directory, mut count) = (Vec::new(), Vec::new(), 0u16);
    for (name, bytes) in files {
        let offset = archive.len() as u32;
        let mut about = Vec::with_capacity(26);
        for number in [20, UTF8, 0, 0, DATE] {
            about.extend(u16::to_le_bytes(number));
        }
        about.extend(crc32(bytes).to_le_bytes());
        about.extend((bytes.len() as u32).to_le_bytes());
        about.extend((bytes.len() as u32).to_le_bytes());
        about.extend((name.len() as u16).to_le_bytes());
        about.extend(0u16.to_le_bytes());
        archive.extend(b"PK\x03\x04");
        archive.extend(&about);
        archive.extend(name.as_bytes());
        archive.extend(bytes);
        directory.extend(b"PK\x01\x02");
        // Made by: version 2.0 on MS-DOS, so that no attributes are meant.
        directory.extend(20u16.to_le_bytes());
        directory.extend(&about);
        directory.extend([0; 10]);
        directory.extend(offset.to_le_bytes());
        directory.extend(name.as_bytes());
        count += 1;
    }
    let (offset, size) = (archive.len() as u32, directory.len() as u32);
    archive.extend(directory);
    archive.extend(b"PK\x05\x06");
    archive.extend([0; 4]);
    archive.extend(count.to_le_bytes());
    archive.extend(count.to_le_bytes());
    archive.extend(size.to_le_bytes());
    archive.extend(offset.to_le_bytes());
    archive.extend([0; 2]);
    archive
}

fn crc32(bytes: &[u8]) -> u32 {
    let mut crc = u32::MAX;
    for byte in bytes {
        crc ^= u32::from(*byte);
        for _ in 0..8 {
            crc = (crc >> 1) ^ (0xedb8_8320 & 0u32.wrapping_sub(crc & 1));
        }
    }
    !crc
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    #[test]
    fn checksums_are_those_of_the_standard() {
        assert_eq!(crc32(b"123456789"), 0xcbf4_3926);
    }

    /// Python reads archives with code that nobody here wrote.
    #[test]
    fn another_program_reads_the_archive() {
        let files = [("index.html", &b"<p>A"[..]), ("a/b \u{e9}.css", b""), ("c", &[0, 255, 80, 75])];
        let path = std::env::temp_dir().join(format!("agora-zip-{}", std::process::id()));
        std::fs::write(&path, pack(files.into_iter())).unwrap();
        let program = "import sys, zipfile\nz = zipfile.ZipFile(sys.argv[1])\nassert z.testzip() is None\n\
                       print(ascii([(i.filename, z.read(i).hex()) for i in z.infolist()]))";
        let read = Command::new("python3").arg("-c").arg(program).arg(&path).output().unwrap();
        std::fs::remove_file(&path).unwrap();
        let read = String::from_utf8(read.stdout).unwrap();
        assert_eq!(read.trim(), r"[('index.html', '3c703e41'), ('a/b \xe9.css', ''), ('c', '00ff504b')]");
    }
}
