//! Addresses and names that look like the operator's.
