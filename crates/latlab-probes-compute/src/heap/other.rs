//! Systems on which allocation is not measured yet.

use std::ffi::{CStr, c_void};

use latlab_probes_shared::prelude::*;

/// Never made here.
pub(crate) struct Region(std::convert::Infallible);

impl Region {
    pub(crate) fn base(&self) -> *mut u8 {
        match self.0 {}
    }

    pub(crate) fn word(&self, _offset: usize) -> *mut u64 {
        match self.0 {}
    }
}

pub(crate) fn new_pages(_bytes: usize) -> Result<Region> {
    Err(ProbeError::Other("new pages are measured on Linux only".to_owned()))
}

pub(crate) fn page_bytes() -> usize {
    4096
}

pub(crate) fn minor_faults() -> u64 {
    0
}

pub(crate) fn counts_faults() -> bool {
    false
}

pub(crate) fn symbol(_name: &CStr) -> Option<*mut c_void> {
    None
}

pub(crate) fn file_of(_name: &CStr) -> Option<String> {
    None
}
