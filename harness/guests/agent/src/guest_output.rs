//! What the guest's kernel and the program that serves the mount said, for those who look for the cause of a failure.

use serde::Serialize;

use crate::helper;
use crate::lines::{last_lines, worst_lines, OWN};

/// What was said since the mount.
#[derive(Serialize)]
pub struct GuestOutput {
    /// In one line: the last warnings of the kernel, and the last lines of the helper. Empty if there are none.
    pub last: String,
    /// All of it.
    pub log: String,
}

impl GuestOutput {
    /// `log` is the kernel's log since the mount.
    pub fn since_mount(log: &str) -> GuestOutput {
        GuestOutput::of(log, &helper::last_output())
    }

    fn of(kernel: &str, helper: &str) -> GuestOutput {
        let last = [("the kernel says: ", worst_lines(kernel)), ("the helper says: ", last_lines(helper.lines()))];
        let kernel: Vec<&str> = kernel.lines().filter(|line| !line.contains(OWN)).collect();
        let log = [("kernel log:", kernel.join("\n")), ("output of the helper:", helper.to_owned())];
        GuestOutput { last: parts(last, "", ": "), log: parts(log, "\n", "\n\n") }
    }
}

/// The parts that are not empty, each behind its title.
fn parts(titled: [(&str, String); 2], between: &str, joint: &str) -> String {
    let present = titled.iter().filter(|(_, text)| !text.trim().is_empty());
    present.map(|(title, text)| [*title, text.trim()].join(between)).collect::<Vec<_>>().join(joint)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_warnings_and_the_last_lines_of_the_helper_are_told_in_one_line() {
        let log =
            "<6>[    1.1] fuse: init\n<15>postcrash-agent: no module x\n<3>[    1.2] A: one\n<4>[    1.3] A: two.\n";
        let output = GuestOutput::of(log, "myfs: block 7\nmyfs: bad magic\n\nmyfs: bad magic\n  giving\tup.\n");
        assert_eq!(
            output.last,
            "the kernel says: A: one; A: two: the helper says: myfs: block 7; myfs: bad magic; giving up"
        );
        assert!(output.log.starts_with("kernel log:\n<6>[    1.1] fuse: init\n<3>"));
        assert!(output
            .log
            .ends_with("\n\noutput of the helper:\nmyfs: block 7\nmyfs: bad magic\n\nmyfs: bad magic\n  giving\tup."));
        assert!(!output.log.contains("postcrash-agent"));
    }

    #[test]
    fn nothing_is_told_of_those_who_said_nothing() {
        let output = GuestOutput::of("<6>[    1.1] fuse: init\n", "");
        assert_eq!((output.last.as_str(), output.log.as_str()), ("", "kernel log:\n<6>[    1.1] fuse: init"));
        assert_eq!(GuestOutput::of("", "").log, "");
    }
}
