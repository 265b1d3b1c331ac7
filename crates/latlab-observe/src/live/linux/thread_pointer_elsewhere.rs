//! Architectures on which the thread pointer was not tried: an own registration is used where there is none
//! yet.

/// A registration of our own may have any signature.
pub(crate) const SIGNATURE: u32 = 0x5305_3053;

/// Unknown.
pub(crate) fn thread_pointer() -> Option<usize> {
    None
}
