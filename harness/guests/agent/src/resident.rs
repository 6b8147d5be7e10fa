//! Programs that run at every crash state stay in the guest's memory.
//!
//! hostfs, the root of user-mode Linux, forgets a file's pages once nobody has the file open. A checker that runs a
//! thousand times would be read from the host a thousand times, page by page, with its libraries.

use std::fs::File;
use std::iter;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Mutex;

const LOADER: &str = "/lib64/ld-linux-x86-64.so.2";

/// Programs, each with its files, which stay open.
static RESIDENT: Mutex<Vec<(PathBuf, Vec<File>)>> = Mutex::new(Vec::new());

/// Keep the program and its libraries open from now on. A file that cannot be opened is left to the program's run.
pub fn keep(program: &Path) {
    let mut resident = RESIDENT.lock().expect("nothing panics while it is locked");
    if resident.iter().any(|(kept, _)| kept == program) {
        return;
    }
    let files = iter::once(program.into()).chain(libraries(program)).filter_map(|file| File::open(file).ok());
    resident.push((program.into(), files.collect()));
}

/// The files that the loader maps for a program. None for a program without libraries, or without this loader.
fn libraries(program: &Path) -> Vec<PathBuf> {
    let listed = Command::new(LOADER).arg("--list").arg(program).env_clear().stdin(Stdio::null()).output();
    let listed = listed.map(|output| output.stdout).unwrap_or_default();
    let text = String::from_utf8_lossy(&listed);
    text.split_whitespace().filter(|word| word.starts_with('/')).map(PathBuf::from).collect()
}
