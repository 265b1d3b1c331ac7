//! Architectures without CPUID.

use crate::cpuid::Registers;

pub(crate) fn registers() -> Option<Registers> {
    None
}
