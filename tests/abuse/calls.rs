//! Calls and texts that fail for free or keep what others need.
