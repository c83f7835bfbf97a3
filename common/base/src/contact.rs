//! Checks of contact addresses: e-mail, domain, phone.

/// An e-mail address that is safe in a mail header: ASCII, no quotes, no comments, a domain with a dot.
pub fn is_email(text: &str) -> bool {
    let Some((local, domain)) = text.split_once('@') else { return false };
    let is_atom = |byte: u8| byte.is_ascii_alphanumeric() || b".!#$%&'*+-/=?^_`{|}~".contains(&byte);
    let good_local = (1..=64).contains(&local.len())
        && local.bytes().all(is_atom)
        && !local.starts_with('.')
        && !local.ends_with('.')
        && !local.contains("..");
    good_local && is_domain(domain)
}

/// A domain name of at least two labels.
pub fn is_domain(text: &str) -> bool {
    let is_label = |label: &str| {
        (1..=63).contains(&label.len())
            && label.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
            && !label.starts_with('-')
            && !label.ends_with('-')
    };
    // If the last label is a number, it is an IP address.
    let is_address = text.rsplit('.').next().is_some_and(|last| last.bytes().all(|byte| byte.is_ascii_digit()));
    text.len() <= 253 && text.contains('.') && text.split('.').all(is_label) && !is_address
}

/// A phone number in E.164 form; the plus is optional.
pub fn is_phone(text: &str) -> bool {
    let digits = text.strip_prefix('+').unwrap_or(text);
    (2..=15).contains(&digits.len()) && !digits.starts_with('0') && digits.bytes().all(|byte| byte.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_addresses_safe_in_a_header_are_accepted() {
        for good in ["a@b.co", "first.last+tag@mail.example.com", "o'neill@example.org"] {
            assert!(is_email(good), "{good}");
        }
        for bad in ["", "a", "@b.co", "a@", "a@b", "a b@c.de", "a@b.co\r\nBcc: x@y.zz", "\"a\"@b.co", "a@b.co,c@d.ef"] {
            assert!(!is_email(bad), "{bad}");
        }
        assert!(is_phone("+15551234567") && is_phone("4915112345678"));
        assert!(!is_phone("+0155512345") && !is_phone("+1 555") && !is_phone("+"));
    }
}
