//! What is mounted where, as /proc/PID/mountinfo tells it.

use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

/// A mount.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mount {
    pub id: u64,
    pub parent: u64,
    /// Major and minor number of the file system's device.
    pub device: (u32, u32),
    pub point: PathBuf,
    /// The type of the file system.
    pub kind: String,
    pub source: PathBuf,
    /// Of the mount and of the file system.
    pub options: Vec<String>,
}

impl Mount {
    /// Whether an option is set, as in `data=journal`.
    pub fn has(&self, option: &str) -> bool {
        self.options.iter().any(|set| set == option)
    }
}

/// Every mount of a mountinfo file. Lines that are not understood are left out.
pub fn parse(mountinfo: &[u8]) -> Vec<Mount> {
    mountinfo.split(|&byte| byte == b'\n').filter_map(parse_line).collect()
}

fn parse_line(line: &[u8]) -> Option<Mount> {
    let mut words = line.split(|&byte| byte == b' ');
    let (id, parent) = (number(words.next()?)?, number(words.next()?)?);
    let (major, minor) = std::str::from_utf8(words.next()?).ok()?.split_once(':')?;
    let _root = words.next()?;
    let point = unescaped(words.next()?);
    let own = words.next()?;
    let mut rest = words.skip_while(|word| *word != b"-").skip(1);
    let kind = String::from_utf8_lossy(rest.next()?).into_owned();
    let source = unescaped(rest.next()?);
    let options = [own, rest.next()?].join(&b',');
    Some(Mount {
        id,
        parent,
        device: (major.parse().ok()?, minor.parse().ok()?),
        point: point.into(),
        kind,
        source: source.into(),
        options: String::from_utf8_lossy(&options).split(',').map(str::to_owned).collect(),
    })
}

fn number(word: &[u8]) -> Option<u64> {
    std::str::from_utf8(word).ok()?.parse().ok()
}

/// Blanks, line ends and backslashes stand there as three octal digits.
fn unescaped(word: &[u8]) -> OsString {
    let mut bytes = Vec::with_capacity(word.len());
    let mut rest = word;
    while let Some((&byte, after)) = rest.split_first() {
        let code = (byte == b'\\').then(|| after.get(..3).and_then(octal)).flatten();
        bytes.push(code.unwrap_or(byte));
        rest = if code.is_some() { &after[3..] } else { after };
    }
    OsString::from_vec(bytes)
}

fn octal(digits: &[u8]) -> Option<u8> {
    u8::from_str_radix(std::str::from_utf8(digits).ok()?, 8).ok()
}

/// Whether `path` is `folder` or lies below it.
pub fn is_within(path: &Path, folder: &Path) -> bool {
    path.as_os_str().as_bytes() == folder.as_os_str().as_bytes() || path.starts_with(folder)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_read() {
        let line = b"36 35 98:0 /a /mnt/x\\040y rw,noatime master:1 shared:2 - ext4 /dev/vda rw,data=journal\n";
        let mounts = parse(line);
        assert_eq!(mounts.len(), 1);
        let mount = &mounts[0];
        assert_eq!((mount.id, mount.parent, mount.device), (36, 35, (98, 0)));
        assert_eq!(mount.point, Path::new("/mnt/x y"));
        assert_eq!((mount.kind.as_str(), mount.source.as_path()), ("ext4", Path::new("/dev/vda")));
        assert!(mount.has("noatime") && mount.has("data=journal") && !mount.has("data"));
    }

    #[test]
    fn a_line_that_is_cut_short_is_left_out() {
        for line in [&b""[..], b"36 35", b"36 35 98:0 / /mnt rw - ext4", b"x 35 98:0 / /mnt rw - ext4 /dev/vda rw"] {
            assert_eq!(parse(line), []);
        }
    }

    #[test]
    fn a_backslash_that_escapes_nothing_stays() {
        assert_eq!(unescaped(b"a\\9b\\1"), OsString::from("a\\9b\\1"));
        assert_eq!(unescaped(b"a\\134b"), OsString::from("a\\b"));
    }
}
