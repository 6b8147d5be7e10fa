//! Kernel modules. The file `/modules/NAME` lists the modules that NAME needs, one path a line, in the order of
//! loading.

use std::collections::HashSet;
use std::fs::{self, File};
use std::io;
use std::os::fd::AsRawFd;
use std::sync::Mutex;

use crate::sys::{check, errno};

const FOLDER: &str = "/modules";
/// The names that are loaded. Asking the kernel again would read every file again, which takes longer than a small
/// workload.
static LOADED: Mutex<Option<HashSet<String>>> = Mutex::new(None);

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
