//! Linux: the file whose blocks are measured, the transfers of its blocks, and what shows that they were
//! made.

mod device;
mod evidence;
mod flow;
mod places;
mod target;
mod timed;

pub(crate) use device::{Asked, Device, DeviceCount, DeviceTime};
pub(crate) use evidence::Evidence;
pub(crate) use flow::Flow;
pub(crate) use places::Places;
pub(crate) use target::{Target, whole};
pub(crate) use timed::Timed;
