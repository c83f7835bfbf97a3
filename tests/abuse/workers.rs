//! Jobs that hold workers without paying.
