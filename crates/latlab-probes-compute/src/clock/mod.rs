//! The instrument itself.

pub mod read;
