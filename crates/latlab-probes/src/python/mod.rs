//! Probes of the interpreter that latlab runs in.

pub(crate) mod object;
