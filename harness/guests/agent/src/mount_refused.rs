//! Why a mount failed: what the kernel said of it.

use std::fmt::Write;
use std::io;

use postcrash_wire::Mount;

use crate::kernel_log::{parsed, NO_MODULE};
use crate::lines::{kernel_lines, last_lines, worst_lines};

/// Names of modules that file systems ask for on every kernel and do without.
const DONE_WITHOUT: &str = "-all";

/// One line that says why the mount failed: the error, what the kernel's log says of it, and which modules the kernel
/// asked for in vain.
pub fn why(mount: &Mount, error: &io::Error, log: &str) -> String {
    let mut why = format!("{} does not mount", mount.fstype);
    if !mount.options.is_empty() {
        let _ = write!(why, " with {}", mount.options);
    }
    let _ = write!(why, ": {}", plain(error));
    let reason = kernel_reason(mount, log);
    if !reason.is_empty() {
        let _ = write!(why, ": the kernel says: {reason}");
    }
    why + &missing(log)
}

/// Which modules the kernel asked for in vain, as the end of an error. Empty if there are none.
pub fn missing(log: &str) -> String {
    match &asked_in_vain(log)[..] {
        [] => String::new(),
        names => format!(": the guest does not have what the kernel asks for: {}", names.join(", ")),
    }
}

/// The error without its number.
fn plain(error: &io::Error) -> String {
    let text = error.to_string();
    text.split_once(" (os error ").map_or(text.clone(), |(words, _)| words.to_owned())
}

/// The last warnings and errors. If there are none, the last lines of any level; but a helper says itself what it tried.
fn kernel_reason(mount: &Mount, log: &str) -> String {
    match worst_lines(log) {
        none if none.is_empty() && mount.helper.is_empty() => last_lines(kernel_lines(log).map(|(_, text)| text)),
        worst => worst,
    }
}

fn asked_in_vain(log: &str) -> Vec<&str> {
    let mut names: Vec<&str> = Vec::new();
    for (_, text) in log.lines().filter_map(parsed) {
        if let Some(name) = text.strip_prefix(NO_MODULE) {
            if !name.ends_with(DONE_WITHOUT) && !names.contains(&name) {
                names.push(name);
            }
        }
    }
    names
}

#[cfg(test)]
mod tests {
    use std::io;

    use postcrash_wire::Mount;

    use super::why;

    fn refused(options: &str, errno: i32, log: &str) -> String {
        let mount = Mount { fstype: "ext4".into(), options: options.into(), helper: Vec::new(), disks: Vec::new() };
        why(&mount, &io::Error::from_raw_os_error(errno), log)
    }

    #[test]
    fn the_last_lines_of_the_log_and_what_it_asked_for_are_told_in_one_line() {
        let log = "<6>[    1.1] loop: loaded\n<3>[    1.2] EXT4-fs: one\n<3>[    1.2] EXT4-fs: two.\n\
                   <4>[    1.3] EXT4-fs: three\n<4>[    1.3] EXT4-fs: three\n<3>[    1.4] EXT4-fs: four\n\
                   <15>[    1.5] postcrash-agent: no module quota_v2\n<15>postcrash-agent: no module crypto-x-all\n";
        assert_eq!(
            refused("usrquota", libc::ESRCH, log),
            "ext4 does not mount with usrquota: No such process: the kernel says: EXT4-fs: two; EXT4-fs: three; \
             EXT4-fs: four: the guest does not have what the kernel asks for: quota_v2"
        );
    }

    #[test]
    fn a_note_is_told_if_there_is_nothing_worse() {
        let log = "<7>[    1.1] postcrash-agent: state 7;\n<6>[    1.2] F2FS-fs (vda): not supported\n";
        assert_eq!(
            refused("", libc::EINVAL, log),
            "ext4 does not mount: Invalid argument: the kernel says: F2FS-fs (vda): not supported"
        );
        assert_eq!(refused("a", libc::EINVAL, ""), "ext4 does not mount with a: Invalid argument");
    }
}
