//! Replaces `settings` with a crate that writes files atomically, as its documentation shows it: the crate by whose name
//! this program is called.

use std::env;
use std::fs::File;
use std::io::{self, Write};

const CONTENT: &[u8] = b"the new content\n";

fn main() -> io::Result<()> {
    let called = env::args().next().unwrap_or_default();
    match called.rsplit('/').next() {
        Some("atomicwrites") => atomicwrites()?,
        Some("atomic-write-file" | "atomic-write-file-unnamed") => atomic_write_file()?,
        Some("tempfile") => tempfile(|_| Ok(()))?,
        Some("tempfile-synced") => tempfile(File::sync_all)?,
        _ => return Err(io::Error::other(called)),
    }
    println!("replaced");
    Ok(())
}

fn atomicwrites() -> io::Result<()> {
    let file = atomicwrites::AtomicFile::new("settings", atomicwrites::AllowOverwrite);
    Ok(file.write(|file| file.write_all(CONTENT))?)
}

fn atomic_write_file() -> io::Result<()> {
    let mut file = atomic_write_file::AtomicWriteFile::options().open("settings")?;
    file.write_all(CONTENT)?;
    file.commit()
}

/// `persist` says that it does not synchronise; `sync` is what its user does before.
fn tempfile(sync: impl Fn(&File) -> io::Result<()>) -> io::Result<()> {
    let mut file = tempfile::NamedTempFile::new_in(".")?;
    file.write_all(CONTENT)?;
    sync(file.as_file())?;
    file.persist("settings")?;
    Ok(())
}
