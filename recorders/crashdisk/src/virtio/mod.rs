//! Virtio block devices over vhost-user: rings, requests, and the devices other than the test disk.

pub mod block;
pub mod log_disk;
pub mod mailbox;
pub mod memory;
pub mod poll;
pub mod shrunk;
pub mod vhost;
mod virtqueue;
