//! What a browser task sees, may do and does next.
