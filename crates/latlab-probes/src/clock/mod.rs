//! The instrument itself.

pub(crate) mod read;
