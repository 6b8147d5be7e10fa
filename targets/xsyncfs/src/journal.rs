//! Whether a file system keeps its changes in order: ext3 or ext4 with data=journal and barriers.

use std::fs::File;
use std::os::unix::fs::{FileExt, FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};

use anyhow::{bail, ensure, Context, Result};
use rustix::fs::{statx, AtFlags, StatxFlags, CWD};

use crate::mounts::{self, Mount};

const SUPERBLOCK_OFFSET: u64 = 1024;
const SUPERBLOCK_BYTES: usize = 1024;
const MAGIC: u16 = 0xEF53;
const FEATURE_ENCRYPT: u32 = 0x1_0000;
const DEFAULT_DATA_MASK: u32 = 0x60;
const DEFAULT_DATA_JOURNAL: u32 = 0x20;
const DEFAULT_NO_BARRIER: u32 = 0x100;

/// The mount whose root `path` is, after a check that its file system can be externally synchronous.
pub fn journalled_mount(path: &Path) -> Result<Mount> {
    let path = path.canonicalize().with_context(|| path.display().to_string())?;
    ensure!(path != Path::new("/"), "--fs /: the file system of the root is in use by the whole machine");
    let mount = mount_of(&path)?;
    ensure!(
        mount.point == path,
        "{} is no mount point, but a folder of {}: name that one, since all of a file system is externally synchronous",
        path.display(),
        mount.point.display()
    );
    if !["ext3", "ext4"].contains(&mount.kind.as_str()) {
        bail!("{} is {}: ext4 or ext3 is needed", path.display(), described(&mount));
    }
    let superblock = read_superblock(&mount).with_context(|| format!("superblock of {}", path.display()))?;
    check(&mount, &superblock).with_context(|| path.display().to_string())?;
    Ok(mount)
}

fn mount_of(path: &Path) -> Result<Mount> {
    let found = statx(CWD, path, AtFlags::empty(), StatxFlags::MNT_ID).context("statx")?;
    let mountinfo = std::fs::read("/proc/self/mountinfo").context("/proc/self/mountinfo")?;
    let mount = mounts::parse(&mountinfo).into_iter().find(|mount| mount.id == found.stx_mnt_id);
    mount.with_context(|| format!("{}: its mount is not in /proc/self/mountinfo", path.display()))
}

fn described(mount: &Mount) -> String {
    match mount.source.to_str() {
        Some(source) if source.starts_with("xsync-") => format!("taken by another xsync ({source})"),
        _ => mount.kind.clone(),
    }
}

/// What the mount options do not tell, since they are not shown where they are the file system's defaults.
fn read_superblock(mount: &Mount) -> Result<Vec<u8>> {
    let (major, minor) = mount.device;
    let candidates = [mount.source.clone(), PathBuf::from(format!("/dev/block/{major}:{minor}"))];
    let is_device = |path: &&PathBuf| {
        path.metadata()
            .is_ok_and(|meta| meta.file_type().is_block_device() && meta.rdev() == rustix::fs::makedev(major, minor))
    };
    let device = candidates.iter().find(is_device).context("there is no device file for it")?;
    let mut bytes = vec![0; SUPERBLOCK_BYTES];
    let file = File::open(device).with_context(|| device.display().to_string())?;
    file.read_exact_at(&mut bytes, SUPERBLOCK_OFFSET).with_context(|| device.display().to_string())?;
    Ok(bytes)
}

fn check(mount: &Mount, superblock: &[u8]) -> Result<()> {
    let number = |at: usize| u32::from_le_bytes(superblock[at..at + 4].try_into().expect("four bytes"));
    ensure!(number(0x38) as u16 == MAGIC, "its device does not hold ext4 (superblock magic)");
    let (features, defaults) = (number(0x60), number(0x100));
    let shown = mount.options.iter().find(|option| option.starts_with("data="));
    let by_default = shown.is_none() && defaults & DEFAULT_DATA_MASK == DEFAULT_DATA_JOURNAL;
    if !mount.has("data=journal") && !by_default {
        let mode = shown.map_or("data=ordered", String::as_str);
        bail!("it is mounted with {mode}, which keeps no order: mount it with -o data=journal");
    }
    let barriers_are_off = mount.has("nobarrier") || (defaults & DEFAULT_NO_BARRIER != 0 && !mount.has("barrier"));
    ensure!(!barriers_are_off, "barriers are off, so that a commit may not be on disk: mount it with -o barrier");
    ensure!(!mount.has("journal_async_commit"), "journal_async_commit does not wait for the journal's blocks");
    ensure!(!mount.has("lazytime"), "lazytime keeps times in memory after a commit: mount it with -o nolazytime");
    ensure!(!mount.has("ro"), "it is mounted read-only, perhaps because of an error: see the kernel's log");
    ensure!(features & FEATURE_ENCRYPT == 0, "it can have encrypted files, whose data is never journalled");
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn superblock(features: u32, defaults: u32) -> Vec<u8> {
        let mut bytes = vec![0; SUPERBLOCK_BYTES];
        bytes[0x38..0x3A].copy_from_slice(&MAGIC.to_le_bytes());
        bytes[0x60..0x64].copy_from_slice(&features.to_le_bytes());
        bytes[0x100..0x104].copy_from_slice(&defaults.to_le_bytes());
        bytes
    }

    fn mount(options: &str) -> Mount {
        let line = format!("2 1 8:1 / /mnt rw,relatime - ext4 /dev/sda1 {options}");
        mounts::parse(line.as_bytes()).remove(0)
    }

    fn refusal(options: &str, features: u32, defaults: u32) -> String {
        check(&mount(options), &superblock(features, defaults))
            .map_or_else(|error| error.to_string(), |()| String::new())
    }

    #[test]
    fn data_journal_is_needed_and_may_be_the_default() {
        assert_eq!(refusal("rw,data=journal", 0, 0), "");
        assert_eq!(refusal("rw", 0, DEFAULT_DATA_JOURNAL), "");
        assert!(refusal("rw", 0, 0).contains("data=ordered"));
        assert!(refusal("rw,data=writeback", 0, DEFAULT_DATA_JOURNAL).contains("data=writeback"));
        assert!(refusal("rw", 0, DEFAULT_DATA_MASK).contains("keeps no order"));
    }

    #[test]
    fn barriers_are_needed() {
        assert!(refusal("rw,nobarrier,data=journal", 0, 0).contains("barriers are off"));
        assert!(refusal("rw,data=journal", 0, DEFAULT_NO_BARRIER).contains("barriers are off"));
        assert_eq!(refusal("rw,barrier,data=journal", 0, DEFAULT_NO_BARRIER), "");
        assert!(refusal("rw,journal_async_commit,data=journal", 0, 0).contains("journal_async_commit"));
    }

    #[test]
    fn what_cannot_be_kept_in_order_is_refused() {
        assert!(refusal("ro,data=journal", 0, 0).contains("read-only"));
        assert!(refusal("rw,lazytime,data=journal", 0, 0).contains("lazytime"));
        assert!(refusal("rw,data=journal", FEATURE_ENCRYPT, 0).contains("encrypted"));
        assert!(check(&mount("rw,data=journal"), &[0; SUPERBLOCK_BYTES]).is_err());
    }
}
