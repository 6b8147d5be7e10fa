//! The log disk: a file where the guest's dm-log-writes logs. It has no write cache.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;

use postcrash_wire::units::SECTOR_BYTES;

use crate::virtio::block::{Request, RequestKind, Status};
use crate::virtio::vhost::Connection;

/// Capacity. The file is only as long as what was written to it.
pub const SECTORS: u64 = (16 << 30) / SECTOR_BYTES as u64;

pub struct LogDisk {
    file: File,
}

impl LogDisk {
    pub fn create(path: &Path) -> io::Result<LogDisk> {
        let file = File::options().read(true).write(true).create(true).truncate(true).open(path)?;
        Ok(LogDisk { file })
    }

    /// Carry out the requests and interrupt the guest once.
    pub fn serve(&mut self, requests: &[Request], connection: &mut Connection) -> io::Result<()> {
        for request in requests {
            let (data, status) = self.execute(&request.kind)?;
            let written = request.answer(&connection.memory, &data, status)?;
            connection.queue.complete(request.head, written);
        }
        if !requests.is_empty() {
            connection.queue.notify();
        }
        Ok(())
    }

    fn execute(&self, kind: &RequestKind) -> io::Result<(Vec<u8>, Status)> {
        let mut data = Vec::new();
        match kind {
            kind if !kind.fits(&(0..SECTORS)) => return Ok((data, Status::Error)),
            RequestKind::Read { sector, bytes } => {
                data.resize(*bytes, 0);
                self.read(*sector * SECTOR_BYTES as u64, &mut data)?;
            }
            RequestKind::Write { sector, data } => self.file.write_all_at(data, *sector * SECTOR_BYTES as u64)?,
            RequestKind::Flush { .. } => {}
            RequestKind::Identify => data.extend_from_slice(b"postcrash-log"),
            RequestKind::Zero { .. } | RequestKind::Unsupported => return Ok((data, Status::Unsupported)),
        }
        Ok((data, Status::Ok))
    }

    /// Sectors that were never written read as zeros.
    fn read(&self, start: u64, out: &mut [u8]) -> io::Result<()> {
        let mut done = 0;
        while done < out.len() {
            match self.file.read_at(&mut out[done..], start + done as u64)? {
                0 => return Ok(()),
                count => done += count,
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_written_is_read_and_the_rest_is_zeros() {
        let folder = std::env::temp_dir().join(format!("postcrash-log-disk-{}", std::process::id()));
        let disk = LogDisk::create(&folder).expect("created");
        std::fs::remove_file(&folder).expect("it is there");
        let write = RequestKind::Write { sector: 3, data: vec![7; 512] };
        assert_eq!(disk.execute(&write).expect("written"), (Vec::new(), Status::Ok));
        let (data, _) = disk.execute(&RequestKind::Read { sector: 2, bytes: 1536 }).expect("read");
        assert_eq!(data, [vec![0; 512], vec![7; 512], vec![0; 512]].concat());
        for (kind, status) in [
            (RequestKind::Write { sector: SECTORS, data: vec![7; 512] }, Status::Error),
            (RequestKind::Read { sector: u64::MAX, bytes: 512 }, Status::Error),
            (RequestKind::Zero { sector: 0, sectors: 1, discard: true }, Status::Unsupported),
        ] {
            assert_eq!(disk.execute(&kind).expect("answered").1, status, "{kind:?}");
        }
    }
}
