//! Probes of the interpreter that latlab runs in.

pub mod object;
