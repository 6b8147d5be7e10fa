//! Takes from user-mode Linux what a guest does not need, before its kernel starts: the host's files but the few that
//! it reads, the host's network, and root's rights.
//!
//! The process gets a root of its own in memory, where only these are: programs and libraries of the host, the kernel,
//! the guest's root, and the sockets of its disks. All but the sockets can only be read. It runs as a user whom nothing
//! belongs to, so it can neither signal nor trace processes of others. This takes root; a process of another user
//! already has no more than this user's rights.

use std::ffi::CString;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::chown;
use std::path::{Path, PathBuf};

use crate::guest::config::{GuestConfig, Uml};
use crate::guest::uml;

/// Where the new root is made, within the guest's work folder.
const ROOT: &str = "root";
/// Only folders, and the small files of a running kernel, are in it.
const ROOT_OPTIONS: &std::ffi::CStr = c"mode=755,size=16m";
const MEMORY: &str = "/dev/shm";
/// What programs need of the host: folders, and devices.
const HOST_FOLDERS: [&str; 5] = ["/usr", "/bin", "/sbin", "/lib", "/lib64"];
const HOST_DEVICES: [&str; 3] = ["/dev/null", "/dev/random", "/dev/urandom"];
/// What the kernel's process can see of itself. Linux 7.2 looks there for its own program. For the process that mounts
/// it, this is the folder with its number, so that no other process is there.
const OWN_PROCESS: &str = "/proc/self";
/// keyctl(2): have a new keyring in place of root's.
const JOIN_SESSION_KEYRING: libc::c_long = 1;
/// A kernel of the stock has its C library beside it, with this loader.
const LOADER: &str = "lib/ld-linux-x86-64.so.2";
/// Nobody's user ids. A guest's is one of these, by the process that starts it.
const FIRST_USER: u32 = 0x5043_0000;
const USERS: u32 = 0x1_0000;

/// What the child does between fork and exec: everything is ready, so that it only makes system calls.
#[derive(Debug)]
pub struct Confinement {
    root: CString,
    memory: CString,
    memory_options: CString,
    folders: Vec<CString>,
    files: Vec<CString>,
    mounts: Vec<Mount>,
    work: CString,
    user: u32,
}

#[derive(Debug)]
struct Mount {
    from: CString,
    to: CString,
    is_writable: bool,
}

impl Confinement {
    /// How this guest is confined. None if it is to see the host, or if this process is not root's.
    pub fn of(config: &GuestConfig, uml: &Uml) -> io::Result<Option<Confinement>> {
        // SAFETY: a plain system call.
        if config.sees_host || unsafe { libc::geteuid() } != 0 {
            return Ok(None);
        }
        let user = FIRST_USER + std::process::id() % USERS;
        let root = config.work.join(ROOT);
        std::fs::create_dir_all(&root)?;
        let mut made = Confinement {
            root: text(&root)?,
            memory: text(&below(&root, Path::new(MEMORY)))?,
            memory_options: CString::new(format!("mode=1777,size={}", config.memory_bytes()))?,
            folders: Vec::new(),
            files: Vec::new(),
            mounts: Vec::new(),
            work: text(&below(&root, &config.work))?,
            user,
        };
        for folder in HOST_FOLDERS.map(Path::new).into_iter().filter(|path| path.exists()) {
            made.show(&root, folder, false)?;
        }
        for path in [&HOST_DEVICES[..], &[OWN_PROCESS]].concat() {
            made.show(&root, Path::new(path), true)?;
        }
        made.add_folders(&root, &config.work)?;
        let beside = config.kernel.parent().filter(|folder| folder.join(LOADER).exists());
        let libraries = beside.map(|folder| folder.join("lib"));
        let read = [config.kernel.clone(), config.root.clone()].into_iter().chain(libraries).chain(uml::preloaded(uml));
        for path in read.filter(|path| path.exists()) {
            made.show(&root, &path, false)?;
        }
        for path in config.sockets().chain(config.plain_disk.clone()) {
            chown(&path, Some(user), Some(user))?;
            made.show(&root, &path, true)?;
        }
        Ok(Some(made))
    }

    /// Show a file or folder of the host at the same path of the new root.
    fn show(&mut self, root: &Path, path: &Path, is_writable: bool) -> io::Result<()> {
        let path = std::path::absolute(path)?;
        if self.mounts.iter().any(|each| !each.is_writable && path.starts_with(as_path(&each.from))) {
            return Ok(()); // it is there with the folder around it
        }
        let to = below(root, &path);
        if path.is_dir() {
            self.add_folders(root, &path)?;
        } else {
            self.add_folders(root, path.parent().unwrap_or(Path::new("/")))?;
            self.files.push(text(&to)?);
        }
        self.mounts.push(Mount { from: text(&path)?, to: text(&to)?, is_writable });
        Ok(())
    }

    /// Make a folder of the new root, with those around it.
    fn add_folders(&mut self, root: &Path, path: &Path) -> io::Result<()> {
        let mut around: Vec<_> = path.ancestors().filter(|each| each.parent().is_some()).collect();
        around.reverse();
        for each in around {
            let folder = text(&below(root, each))?;
            if !self.folders.contains(&folder) {
                self.folders.push(folder);
            }
        }
        Ok(())
    }

    /// Confine the calling process. Only system calls are made, because this is called between fork and exec.
    pub fn enter(&self) -> io::Result<()> {
        // SAFETY: the texts end with a zero and live through the calls.
        unsafe {
            libc::umask(0o022);
            check(libc::unshare(libc::CLONE_NEWNS | libc::CLONE_NEWNET | libc::CLONE_NEWIPC | libc::CLONE_NEWUTS))?;
            mount(None, c"/".as_ptr(), None, libc::MS_REC | libc::MS_SLAVE)?;
            mount(Some(c"tmpfs".as_ptr()), self.root.as_ptr(), Some(ROOT_OPTIONS.as_ptr()), libc::MS_NOSUID)?;
            for folder in &self.folders {
                made(libc::mkdir(folder.as_ptr(), 0o755))?;
            }
            made(libc::mkdir(self.memory.as_ptr(), 0o755))?;
            let flags = libc::MS_NOSUID | libc::MS_NODEV;
            let options = self.memory_options.as_ptr();
            mount(Some(c"tmpfs".as_ptr()), self.memory.as_ptr(), Some(options), flags)?;
            for folder in &self.folders {
                made(libc::mkdir(folder.as_ptr(), 0o755))?; // what is within the memory's folder
            }
            check(libc::chown(self.work.as_ptr(), self.user, self.user))?;
            for file in &self.files {
                check(libc::close(check(libc::open(file.as_ptr(), libc::O_CREAT | libc::O_CLOEXEC, 0o644))?))?;
            }
            for each in &self.mounts {
                each.make()?;
            }
            check(libc::chroot(self.root.as_ptr()))?;
            check(libc::chdir(c"/".as_ptr()))?;
            check(libc::setgroups(0, std::ptr::null()))?;
            check(libc::setresgid(self.user, self.user, self.user))?;
            check(libc::setresuid(self.user, self.user, self.user))?;
            check(libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))?;
            libc::syscall(libc::SYS_keyctl, JOIN_SESSION_KEYRING, 0); // a host without keys has none to hide
        }
        Ok(())
    }
}

impl Mount {
    /// # Safety
    /// Only between fork and exec, in a mount namespace of its own.
    unsafe fn make(&self) -> io::Result<()> {
        mount(Some(self.from.as_ptr()), self.to.as_ptr(), None, libc::MS_BIND)?;
        if self.is_writable {
            return Ok(());
        }
        let flags = libc::MS_BIND | libc::MS_REMOUNT | libc::MS_RDONLY | libc::MS_NOSUID | libc::MS_NODEV;
        mount(None, self.to.as_ptr(), None, flags)
    }
}

/// Mount `from`, which is a file, a folder or `tmpfs`, at `to`.
unsafe fn mount(
    from: Option<*const libc::c_char>,
    to: *const libc::c_char,
    options: Option<*const libc::c_char>,
    flags: libc::c_ulong,
) -> io::Result<()> {
    let (source, none) = (from.unwrap_or(std::ptr::null()), std::ptr::null());
    let kind = if options.is_some() { c"tmpfs".as_ptr() } else { none };
    check(libc::mount(source, to, kind, flags, options.unwrap_or(none).cast())).map(|_| ())
}

fn check(answer: libc::c_int) -> io::Result<libc::c_int> {
    if answer < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(answer)
}

/// Like `check`, for something that may be there already.
fn made(answer: libc::c_int) -> io::Result<()> {
    match check(answer) {
        Err(error) if error.raw_os_error() != Some(libc::EEXIST) => Err(error),
        _ => Ok(()),
    }
}

fn below(root: &Path, path: &Path) -> PathBuf {
    root.join(path.strip_prefix("/").unwrap_or(path))
}

fn text(path: &Path) -> io::Result<CString> {
    Ok(CString::new(path.as_os_str().as_bytes())?)
}

fn as_path(text: &CString) -> &Path {
    Path::new(std::ffi::OsStr::from_bytes(text.as_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::guest::config::Engine;
    use std::os::unix::net::UnixListener;
    use std::os::unix::process::CommandExt;
    use std::process::Command;

    fn config(folder: &Path) -> GuestConfig {
        let [work, root] = ["work", "guest-root"].map(|name| folder.join(name));
        for made in [&work, &root] {
            std::fs::create_dir_all(made).expect("a folder");
        }
        std::fs::write(folder.join("secret"), "of the host").expect("a file");
        std::fs::write(root.join("init"), "of the guest").expect("a file");
        let config = serde_json::json!({
            "engine": {"name": "uml", "preload": null, "measures_raid6": false},
            "kernel": "/bin/sh", "root": root, "work": work, "memory_mib": 1, "disk_sectors": 8, "cpu": 0,
            "boot_timeout_s": 1.0, "command_timeout_s": 1.0,
        });
        serde_json::from_value(config).expect("a configuration")
    }

    /// What a program that runs in place of the kernel prints. It is a guest that has been taken over.
    fn printed(config: &GuestConfig, program: &str) -> String {
        let Engine::Uml(uml) = &config.engine else { unreachable!("it is made above") };
        let _sockets: Vec<_> = config.sockets().map(|path| UnixListener::bind(path).expect("a socket")).collect();
        let confinement = Confinement::of(config, uml).expect("it is ready").expect("tests run as root");
        let mut process = Command::new("/bin/sh");
        process.args(["-c", program]);
        // SAFETY: it only makes system calls.
        let output = unsafe { process.pre_exec(move || confinement.enter()) }.output().expect("it runs");
        String::from_utf8(output.stdout).expect("text") + &String::from_utf8_lossy(&output.stderr)
    }

    #[test]
    fn a_kernel_that_was_taken_over_sees_and_changes_nothing_of_the_host() {
        let folder = tempfile::tempdir().expect("a folder");
        let config = config(folder.path());
        let place = folder.path().display();
        let attack = format!(
            "cat {place}/guest-root/init; echo; ls {place}; ls -d /etc /home /proc/[0-9]* /var 2>&- | grep . ;
             for file in {place}/guest-root/init /usr/taken {place}/taken /taken /lib/taken; do
                 (echo taken >$file) 2>&- && echo wrote $file; done;
             for file in {place}/work/guest /dev/shm/memory; do (echo needed >$file) 2>&- && echo needs $file; done;
             kill -0 {} 2>&- && echo signals; [ -S {place}/work/disk ] && echo disk;
             [ -e /proc/self/exe ] && echo itself; id -u",
            std::process::id()
        );
        let user = FIRST_USER + std::process::id() % USERS;
        let expected = format!(
            "of the guest\nguest-root\nwork\nneeds {place}/work/guest\nneeds /dev/shm/memory\ndisk\nitself\n{user}\n"
        );
        assert_eq!(printed(&config, &attack), expected);
        assert!(!Path::new("/dev/shm/memory").exists());
        assert!(!folder.path().join("work/guest").exists());
    }

    #[test]
    fn a_guest_that_runs_programs_of_the_host_is_not_confined() {
        let folder = tempfile::tempdir().expect("a folder");
        let config = GuestConfig { sees_host: true, ..config(folder.path()) };
        let Engine::Uml(uml) = &config.engine else { unreachable!("it is made above") };
        assert!(Confinement::of(&config, uml).expect("it is ready").is_none());
    }
}
