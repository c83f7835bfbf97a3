//! A seller's test cases, judged.
