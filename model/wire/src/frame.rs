//! Layout of commands and messages on the mailbox device: a 4-byte little-endian length, then the payload.

use thiserror::Error;

/// Bytes of the length field.
pub const HEADER_BYTES: usize = 4;
/// The mailbox is read and written in multiples of this.
pub const ALIGNMENT_BYTES: usize = 4096;
/// Largest payload. A guest that announces a larger one is broken.
pub const PAYLOAD_BYTES_MAX: usize = 64 << 20;
/// Where frames start on the device, in both directions. The kernel's partition scan may use the space before.
pub const START_BYTES: u64 = 1 << 20;
/// Capacity of the mailbox device: one frame of the largest size, and the same space at the end as at the start.
pub const MAILBOX_BYTES: u64 = START_BYTES * 2 + PAYLOAD_BYTES_MAX as u64;

#[derive(Debug, Error, PartialEq, Eq)]
pub enum FrameError {
    #[error("mailbox frame announces {0} bytes, more than {PAYLOAD_BYTES_MAX}")]
    TooLong(usize),
    #[error("mailbox frame is shorter than its header")]
    Short,
}

/// The payload as a frame, padded with zeros to a multiple of [`ALIGNMENT_BYTES`].
pub fn encode(payload: &[u8]) -> Vec<u8> {
    let total = (HEADER_BYTES + payload.len()).next_multiple_of(ALIGNMENT_BYTES);
    let mut frame = Vec::with_capacity(total);
    frame.extend_from_slice(&(payload.len() as u32).to_le_bytes());
    frame.extend_from_slice(payload);
    frame.resize(total, 0);
    frame
}

/// Length of the payload that the start of a frame announces.
pub fn payload_length(frame: &[u8]) -> Result<usize, FrameError> {
    let header = frame.get(..HEADER_BYTES).ok_or(FrameError::Short)?;
    let length = u32::from_le_bytes(header.try_into().expect("four bytes")) as usize;
    if length > PAYLOAD_BYTES_MAX {
        return Err(FrameError::TooLong(length));
    }
    Ok(length)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_frame_is_padded_and_announces_its_payload() {
        let frame = encode(&[7; 5000]);
        assert_eq!(frame.len(), 8192);
        assert_eq!(payload_length(&frame), Ok(5000));
        assert_eq!(&frame[HEADER_BYTES..HEADER_BYTES + 5000], &[7; 5000]);
    }

    #[test]
    fn a_hostile_length_is_refused() {
        assert_eq!(payload_length(&[0xff; 8]), Err(FrameError::TooLong(0xffff_ffff)));
        assert_eq!(payload_length(&[1, 2]), Err(FrameError::Short));
    }
}
