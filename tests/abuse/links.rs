//! Files handed out by link, and free routes that ask a provider.
