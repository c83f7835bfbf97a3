//! Mail that strangers send to agents.
