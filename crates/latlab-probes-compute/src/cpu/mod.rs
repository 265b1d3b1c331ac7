//! What a core computes with what it holds already.

pub mod mix;
