//! Mail that agents send.
