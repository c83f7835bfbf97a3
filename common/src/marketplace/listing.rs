//! The listing of souls by how many jobs they did.

use crate::digest::sha256;

/// Partitions of a band: most souls did nothing yet.
const SHARDS: [u8; 3] = [16, 8, 4];

/// The partition of the index of listed souls that a soul with so many jobs is in: one band for each power of ten,
/// the full ones spread over several partitions.
pub fn band(slug: &str, jobs: u64) -> String {
    let band = jobs.checked_ilog10().map_or(0, |power| power + 1);
    let shards = SHARDS.get(band as usize).copied().unwrap_or(1);
    format!("LISTED#{band:02}#{:02}", sha256(slug.as_bytes())[0] % shards)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bands_are_powers_of_ten() {
        let band_of = |jobs| band("a-soul", jobs)[7..9].to_owned();
        assert_eq!([0, 1, 9, 10, 99, 100, 1_000_000].map(band_of), ["00", "01", "01", "02", "02", "03", "07"]);
        assert_eq!(band("a-soul", 5), band("a-soul", 7));
    }
}
