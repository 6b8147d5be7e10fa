//! Kernel modules. The file `/modules/NAME` lists the modules that NAME needs, one path a line, in the order of
//! loading.
//!
//! The kernel asks for others itself when a mount needs them (`request_module`): formats of quotas, algorithms. It runs
//! this program then, in place of modprobe(8). NAME is the name that the kernel asks for.

use std::collections::HashSet;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::fd::AsRawFd;
use std::sync::Mutex;

use crate::kernel_log::{LOG_DEVICE, NO_MODULE};
use crate::sys::{check, errno};

const FOLDER: &str = "/modules";
/// How the kernel calls its program for modules: kernel/kmod.c, call_modprobe.
pub const MODPROBE_ARGUMENTS: [&str; 2] = ["-q", "--"];
/// Where the kernel is told which program this is.
const MODPROBE_SETTING: &str = "/proc/sys/kernel/modprobe";
/// How the kernel begins the name of a file system's module. Its list has the name of the file system alone.
const FILE_SYSTEM: &str = "fs-";
/// The names that are loaded. Asking the kernel again would read every file again, which takes longer than a small
/// workload.
static LOADED: Mutex<Option<HashSet<String>>> = Mutex::new(None);

/// Have the kernel run this program when it asks for a module. A kernel without this setting asks for none.
pub fn serve_kernel() {
    let _ = fs::write(MODPROBE_SETTING, "/init\n");
}

/// What this program does in place of modprobe. False if the module is not there, or if it cannot be loaded. This is noted
/// in the kernel's log, below the level of what judges read.
pub fn load_for_kernel(name: &str) -> bool {
    let result = load(name.strip_prefix(FILE_SYSTEM).unwrap_or(name));
    let note = match &result {
        Ok(true) => return true,
        Ok(false) => format!("<7>{NO_MODULE}{name}\n"),
        Err(error) => format!("<7>{NO_MODULE}{name} ({error})\n"),
    };
    let _ = OpenOptions::new().write(true).open(LOG_DEVICE).and_then(|mut log| log.write_all(note.as_bytes()));
    false
}

/// Load the modules that `name` needs. False if there is no list for `name`.
pub fn load(name: &str) -> io::Result<bool> {
    let mut loaded = LOADED.lock().expect("nothing panics while it is locked");
    let loaded = loaded.get_or_insert_with(HashSet::new);
    if loaded.contains(name) {
        return Ok(true);
    }
    let list = match fs::read_to_string(format!("{FOLDER}/{name}")) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
        other => other?,
    };
    list.lines().try_for_each(load_file)?;
    loaded.insert(name.to_owned());
    Ok(true)
}

/// Load one module. It is no error if the module is loaded already, or if it is for a feature that this CPU lacks.
fn load_file(path: &str) -> io::Result<()> {
    let file = File::open(path).map_err(|e| io::Error::new(e.kind(), format!("{path}: {e}")))?;
    // SAFETY: a descriptor, an empty parameter string and no flags.
    match check(unsafe { libc::syscall(libc::SYS_finit_module, file.as_raw_fd(), c"".as_ptr(), 0) }) {
        Err(e) if ![libc::EEXIST, libc::ENODEV].contains(&errno(&e)) => {
            Err(io::Error::new(e.kind(), format!("{path}: {e}")))
        }
        _ => Ok(()),
    }
}
