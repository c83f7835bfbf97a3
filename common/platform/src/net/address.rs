//! Which IP addresses are on the public internet.
//!
//! Refused are the ranges of the IANA special-purpose address registries and multicast. Special ranges that are globally
//! reachable (anycast relays, AS112) are refused too: no web site is there.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// An IPv4 network: its first address and the length of its prefix.
type V4Net = (Ipv4Addr, u32);
/// An IPv6 network: its first address and the length of its prefix.
type V6Net = (Ipv6Addr, u32);

const fn v4(a: u8, b: u8, c: u8, d: u8, prefix: u32) -> V4Net {
    (Ipv4Addr::new(a, b, c, d), prefix)
}

const fn v6(a: u16, b: u16, c: u16, prefix: u32) -> V6Net {
    (Ipv6Addr::new(a, b, c, 0, 0, 0, 0, 0), prefix)
}

const SPECIAL_V4: [V4Net; 19] = [
    v4(0, 0, 0, 0, 8),       // "this network"
    v4(10, 0, 0, 0, 8),      // private
    v4(100, 64, 0, 0, 10),   // carrier-grade NAT
    v4(127, 0, 0, 0, 8),     // loopback
    v4(169, 254, 0, 0, 16),  // link-local, cloud metadata
    v4(172, 16, 0, 0, 12),   // private
    v4(192, 0, 0, 0, 24),    // IETF protocol assignments
    v4(192, 0, 2, 0, 24),    // documentation
    v4(192, 31, 196, 0, 24), // AS112
    v4(192, 52, 193, 0, 24), // multicast relays
    v4(192, 88, 99, 0, 24),  // 6to4 relays
    v4(192, 168, 0, 0, 16),  // private
    v4(192, 175, 48, 0, 24), // AS112
    v4(198, 18, 0, 0, 15),   // benchmarking
    v4(198, 51, 100, 0, 24), // documentation
    v4(203, 0, 113, 0, 24),  // documentation
    v4(224, 0, 0, 0, 4),     // multicast
    v4(240, 0, 0, 0, 4),     // reserved
    v4(255, 255, 255, 255, 32),
];

/// The only block of global unicast addresses. Everything outside is special: `::`, `::1`, IPv4-mapped and -compatible
/// addresses, NAT64 (`64:ff9b::/96`, `64:ff9b:1::/48`), discard (`100::/64`), segment routing (`5f00::/16`), unique-local,
/// link-local, site-local, multicast.
const GLOBAL_UNICAST_V6: V6Net = v6(0x2000, 0, 0, 3);

const SPECIAL_V6: [V6Net; 5] = [
    v6(0x2001, 0, 0, 23),         // IETF protocols: Teredo, benchmarking, ORCHID
    v6(0x2001, 0xdb8, 0, 32),     // documentation
    v6(0x2002, 0, 0, 16),         // 6to4, carries an IPv4 address
    v6(0x2620, 0x4f, 0x8000, 48), // AS112
    v6(0x3fff, 0, 0, 20),         // documentation
];

/// Whether `ip` is an ordinary address on the public internet.
///
/// Addresses that contain another address (IPv4-mapped, 6to4, NAT64, Teredo) are always refused.
pub fn is_public(ip: IpAddr) -> bool {
    match ip {
        IpAddr::V4(ip) => !SPECIAL_V4.iter().any(|net| v4_contains(net, ip)),
        IpAddr::V6(ip) => v6_contains(&GLOBAL_UNICAST_V6, ip) && !SPECIAL_V6.iter().any(|net| v6_contains(net, ip)),
    }
}

fn v4_contains(&(network, prefix): &V4Net, ip: Ipv4Addr) -> bool {
    (network.to_bits() ^ ip.to_bits()).leading_zeros() >= prefix
}

fn v6_contains(&(network, prefix): &V6Net, ip: Ipv6Addr) -> bool {
    (network.to_bits() ^ ip.to_bits()).leading_zeros() >= prefix
}

#[cfg(test)]
mod tests {
    use super::*;

    fn public(text: &str) -> bool {
        is_public(text.parse().expect("an address"))
    }

    #[test]
    fn ordinary_addresses_are_public() {
        for text in [
            "1.1.1.1",
            "8.8.8.8",
            "9.255.255.255",
            "11.0.0.0",
            "100.63.255.255",
            "100.128.0.0",
            "126.255.255.255",
            "128.0.0.0",
            "169.253.255.255",
            "169.255.0.0",
            "172.15.255.255",
            "172.32.0.0",
            "192.0.1.0",
            "192.0.3.0",
            "192.167.255.255",
            "192.169.0.0",
            "198.17.255.255",
            "198.20.0.0",
            "203.0.112.255",
            "203.0.114.0",
            "223.255.255.255",
            "2001:200::1",
            "2001:4860:4860::8888",
            "2003::1",
            "2606:4700:4700::1111",
            "2a00:1450:4001:81b::200e",
            "3ffe::1",
        ] {
            assert!(public(text), "{text} should be public");
        }
    }

    #[test]
    fn special_ranges_are_refused_from_first_to_last_address() {
        for (first, last) in [
            ("0.0.0.0", "0.255.255.255"),
            ("10.0.0.0", "10.255.255.255"),
            ("100.64.0.0", "100.127.255.255"),
            ("127.0.0.0", "127.255.255.255"),
            ("169.254.0.0", "169.254.255.255"),
            ("172.16.0.0", "172.31.255.255"),
            ("192.0.0.0", "192.0.0.255"),
            ("192.0.2.0", "192.0.2.255"),
            ("192.31.196.0", "192.31.196.255"),
            ("192.52.193.0", "192.52.193.255"),
            ("192.88.99.0", "192.88.99.255"),
            ("192.168.0.0", "192.168.255.255"),
            ("192.175.48.0", "192.175.48.255"),
            ("198.18.0.0", "198.19.255.255"),
            ("198.51.100.0", "198.51.100.255"),
            ("203.0.113.0", "203.0.113.255"),
            ("224.0.0.0", "239.255.255.255"),
            ("240.0.0.0", "255.255.255.255"),
            ("::", "::1"),
            ("::ffff:8.8.8.8", "::ffff:127.0.0.1"),
            ("::8.8.8.8", "::127.0.0.1"),
            ("64:ff9b::8.8.8.8", "64:ff9b::a00:1"),
            ("64:ff9b:1::", "64:ff9b:1:ffff:ffff:ffff:ffff:ffff"),
            ("100::", "100::ffff:ffff:ffff:ffff"),
            ("100:0:0:1::", "1fff:ffff::"),
            ("2001::", "2001:1ff:ffff:ffff:ffff:ffff:ffff:ffff"),
            ("2001:2::", "2001:20::1"),
            ("2001:db8::", "2001:db8:ffff:ffff:ffff:ffff:ffff:ffff"),
            ("2002::", "2002:ffff:ffff:ffff:ffff:ffff:ffff:ffff"),
            ("2002:808:808::1", "2002:7f00:1::1"),
            ("2620:4f:8000::", "2620:4f:8000:ffff:ffff:ffff:ffff:ffff"),
            ("3fff::", "3fff:fff:ffff:ffff:ffff:ffff:ffff:ffff"),
            ("4000::", "5f00::1"),
            ("fc00::", "fdff:ffff:ffff:ffff:ffff:ffff:ffff:ffff"),
            ("fd00:ec2::254", "fd12:3456:789a::1"),
            ("fe80::", "febf:ffff:ffff:ffff:ffff:ffff:ffff:ffff"),
            ("fec0::", "feff:ffff:ffff:ffff:ffff:ffff:ffff:ffff"),
            ("ff00::", "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff"),
        ] {
            assert!(!public(first), "{first} should be refused");
            assert!(!public(last), "{last} should be refused");
        }
    }
}
