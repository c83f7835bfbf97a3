//! Hours in which nobody outside is called.
//!
//! The law of most countries, and courtesy, forbid calls at night (in the United States 47 CFR 64.1200(c)(1): before 8 and after
//! 21 h where the called person is). A number names only a country, so it has to be day in all of it.

use base::clock::Timestamp;
use base::hours::Zone;

/// Minutes since midnight: from 8:00 to 21:00.
const DAY: std::ops::Range<u16> = 8 * 60..21 * 60;

/// The time zones of countries: the westernmost, the easternmost, and those that have another summer time. Distant islands and
/// territories with a country code of their own are not among them.
const ZONES: [(&str, &[&str]); 25] = [
    ("AT", &["Europe/Vienna"]),
    // Darwin and Brisbane have no summer time.
    ("AU", &["Australia/Perth", "Australia/Brisbane", "Australia/Sydney"]),
    ("BE", &["Europe/Brussels"]),
    ("CA", &["America/Vancouver", "America/Halifax", "America/St_Johns"]),
    ("CH", &["Europe/Zurich"]),
    ("CZ", &["Europe/Prague"]),
    ("DE", &["Europe/Berlin"]),
    ("DK", &["Europe/Copenhagen"]),
    ("ES", &["Atlantic/Canary", "Europe/Madrid"]),
    ("FI", &["Europe/Helsinki"]),
    ("FR", &["Europe/Paris"]),
    ("GB", &["Europe/London"]),
    ("IE", &["Europe/Dublin"]),
    ("IN", &["Asia/Kolkata"]),
    ("IT", &["Europe/Rome"]),
    ("JP", &["Asia/Tokyo"]),
    ("LU", &["Europe/Luxembourg"]),
    ("NL", &["Europe/Amsterdam"]),
    ("NO", &["Europe/Oslo"]),
    ("NZ", &["Pacific/Auckland"]),
    ("PL", &["Europe/Warsaw"]),
    ("PT", &["Atlantic/Azores", "Europe/Lisbon"]),
    ("SE", &["Europe/Stockholm"]),
    ("SG", &["Asia/Singapore"]),
    ("US", &["Pacific/Honolulu", "America/Los_Angeles", "America/New_York"]),
];

/// Whether it is night somewhere in a country (ISO 3166-1 alpha-2). In countries whose zones are not listed, always.
pub fn is_quiet(region: &str, now: Timestamp) -> bool {
    let Some((_, zones)) = ZONES.iter().find(|(known, _)| *known == region) else { return true };
    let is_day = |zone: &&str| {
        let local = zone.parse::<Zone>().ok().and_then(|zone| zone.local(now));
        local.is_some_and(|(_, minute)| DAY.contains(&minute))
    };
    !zones.iter().all(is_day)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_has_to_be_day_in_all_of_a_country() {
        // 2026-11-20, winter in the north: Berlin is at UTC+1, New York at UTC-5, Honolulu at UTC-10.
        let at = |hour: i64, minute: i64| Timestamp::from_secs(1_795_132_800 + hour * 3600 + minute * 60);
        for (region, hour, minute, is_quiet_there) in [
            ("DE", 6, 59, true),
            ("DE", 7, 0, false),
            ("DE", 19, 59, false),
            ("DE", 20, 0, true),
            ("US", 17, 59, true), // 7:59 in Honolulu
            ("US", 18, 0, false),
            ("US", 25, 59, false), // 20:59 in New York
            ("US", 26, 0, true),
            ("PT", 8, 59, true), // 7:59 on the Azores
            ("PT", 9, 0, false),
            ("001", 12, 0, true),
            ("XX", 12, 0, true),
        ] {
            assert_eq!(is_quiet(region, at(hour, minute)), is_quiet_there, "{region} {hour}:{minute:02}");
        }
    }

    #[test]
    fn all_zones_are_known_and_leave_some_hours() {
        for (region, zones) in ZONES {
            assert!(zones.iter().all(|zone| zone.parse::<Zone>().is_ok()), "{region}");
            let quiet = (0..24).filter(|hour| is_quiet(region, Timestamp::from_secs(1_795_132_800 + hour * 3600)));
            assert!(quiet.count() < 24, "{region}");
        }
    }
}
