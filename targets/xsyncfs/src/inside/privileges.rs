//! What the command may do: less than root, and nothing beyond the box.

use std::ffi::OsString;

use anyhow::{bail, Context, Result};
use rustix::process::{setrlimit, Gid, Pid, Resource, Rlimit, Uid};
use rustix::thread::{
    capability_is_in_bounding_set, remove_capability_from_bounding_set, set_capabilities, set_no_new_privs,
    set_thread_groups, set_thread_res_gid, set_thread_res_uid, unshare_unsafe, CapabilitySet, CapabilitySets,
    UnshareFlags,
};

/// What root keeps in the box: everything that concerns files, users and processes of the box.
const KEPT: CapabilitySet = CapabilitySet::CHOWN
    .union(CapabilitySet::DAC_OVERRIDE)
    .union(CapabilitySet::FOWNER)
    .union(CapabilitySet::FSETID)
    .union(CapabilitySet::KILL)
    .union(CapabilitySet::SETGID)
    .union(CapabilitySet::SETUID)
    .union(CapabilitySet::SETPCAP)
    .union(CapabilitySet::NET_BIND_SERVICE)
    .union(CapabilitySet::SYS_CHROOT)
    .union(CapabilitySet::SETFCAP);
/// A core file of this size is never written, neither to a file nor to a program outside. See core(5).
const NO_CORE: u64 = 1;

/// The user that the command runs as.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct User {
    name: String,
    home: OsString,
    uid: u32,
    gid: u32,
    groups: Vec<u32>,
}

impl User {
    /// The user of that name.
    pub fn named(name: &str) -> Result<User> {
        let passwd = std::fs::read_to_string("/etc/passwd").context("/etc/passwd")?;
        let group = std::fs::read_to_string("/etc/group").context("/etc/group")?;
        match find_user(name, &passwd, &group) {
            Some(user) => Ok(user),
            None => bail!("--user {name}: /etc/passwd has no such user"),
        }
    }

    /// What the environment says of a user.
    pub fn variables(&self) -> [(&'static str, OsString); 3] {
        [("USER", (&self.name).into()), ("LOGNAME", (&self.name).into()), ("HOME", self.home.clone())]
    }

    /// Become this user. This gives up all capabilities, unless the user is root.
    pub fn enter(&self) -> Result<()> {
        let groups: Vec<Gid> = self.groups.iter().map(|&group| Gid::from_raw(group)).collect();
        let (uid, gid) = (Uid::from_raw(self.uid), Gid::from_raw(self.gid));
        set_thread_groups(&groups).context("setgroups")?;
        set_thread_res_gid(gid, gid, gid).context("setresgid")?;
        set_thread_res_uid(uid, uid, uid).context("setresuid")
    }
}

fn find_user(name: &str, passwd: &str, group: &str) -> Option<User> {
    let fields = passwd.lines().map(|line| line.split(':').collect::<Vec<_>>());
    let found = fields.filter(|fields| fields.len() >= 6).find(|fields| fields[0] == name)?;
    let (uid, gid) = (found[2].parse().ok()?, found[3].parse().ok()?);
    let of_groups = group.lines().filter_map(|line| {
        let fields: Vec<_> = line.split(':').collect();
        let is_member = fields.get(3)?.split(',').any(|member| member == name);
        is_member.then(|| fields[2].parse().ok()).flatten()
    });
    let groups = std::iter::once(gid).chain(of_groups).collect();
    Some(User { name: name.to_owned(), home: found[5].into(), uid, gid, groups })
}

/// Enter a user namespace of the box. Its users are those of the outside, yet nobody outside but root may look into its
/// processes, and root in it has no power over what belongs to the outside.
pub fn enter_user_namespace() -> Result<()> {
    // SAFETY: descriptors stay shared.
    unsafe { unshare_unsafe(UnshareFlags::NEWUSER) }.context("user namespaces are needed (user.max_user_namespaces)")
}

/// The users and groups in the user namespace of the process are those of the outside.
pub fn map_users(pid: Pid) -> Result<()> {
    for map in ["uid_map", "gid_map"] {
        std::fs::write(format!("/proc/{}/{map}", pid.as_raw_nonzero()), "0 0 4294967295\n").context(map)?;
    }
    Ok(())
}

/// Give up everything that would reach beyond the box. What is run later cannot get it back.
pub fn drop_privileges() -> Result<()> {
    let limit = Rlimit { current: Some(NO_CORE), maximum: Some(NO_CORE) };
    setrlimit(Resource::Core, limit).context("setrlimit")?;
    for bit in 0..u64::BITS {
        let capability = CapabilitySet::from_bits_retain(1 << bit);
        match capability_is_in_bounding_set(capability) {
            Ok(true) if !KEPT.contains(capability) => {
                remove_capability_from_bounding_set(capability).context("capabilities")?;
            }
            Ok(_) => {}
            // The kernel has no more.
            Err(_) => break,
        }
    }
    let sets = CapabilitySets { effective: KEPT, permitted: KEPT, inheritable: CapabilitySet::empty() };
    set_capabilities(None, sets).context("capabilities")?;
    set_no_new_privs(true).context("no_new_privs")
}

#[cfg(test)]
mod tests {
    use super::*;

    const PASSWD: &str = "root:x:0:0:root:/root:/bin/sh\nann:x:7:8:Ann:/a:/bin/sh\nbroken:x\n";
    const GROUP: &str = "a:x:20:ann,bob\nb:x:21:bob\nc:x:22:bob,ann\nbroken\n";

    #[test]
    fn a_user_has_its_groups() {
        let ann = find_user("ann", PASSWD, GROUP).unwrap();
        assert_eq!((ann.uid, ann.gid, ann.groups.as_slice()), (7, 8, [8, 20, 22].as_slice()));
        assert_eq!(ann.variables()[2], ("HOME", "/a".into()));
    }

    #[test]
    fn who_is_not_there_is_not_found() {
        assert_eq!(find_user("eve", PASSWD, GROUP), None);
        assert_eq!(find_user("broken", PASSWD, GROUP), None);
    }
}
