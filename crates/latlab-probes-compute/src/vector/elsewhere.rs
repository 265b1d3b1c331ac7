//! Architectures without kernels of their own.

use super::Kernels;

pub(super) fn available() -> Vec<&'static Kernels> {
    Vec::new()
}
