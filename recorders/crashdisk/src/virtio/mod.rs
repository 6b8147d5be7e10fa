//! Virtio block devices over vhost-user: rings, requests, and the devices that are no test disk.

pub mod block;
pub mod log_disk;
pub mod mailbox;
pub mod memory;
pub mod poll;
pub mod vhost;
mod virtqueue;
