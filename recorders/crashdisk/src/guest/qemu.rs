//! QEMU: any kernel image, with KVM or without. The guest's root is an initramfs.

use std::io::{self, Write};
use std::path::Path;
use std::process::{Child, Command as Process};

use postcrash_wire::units::SECTOR_BYTES;

use crate::guest::config::{GuestConfig, Qemu, KERNEL_ARGUMENTS};
use crate::guest::process;
use crate::guest::sleep::{Sleep, Syscall, Thread};

/// Expedited grace periods make mounting and unmounting three times as fast. Mitigations are off because nothing in the
/// guest needs protection from speculation.
const FAST: &str = "rcupdate.rcu_expedited=1 mitigations=off nokaslr tsc=reliable audit=0 random.trust_cpu=on";
/// A plain CPU costs TCG half as much as a CPU with every feature that TCG can emulate. The kernel's checksums use SSE
/// 4.2.
const TCG_CPU: &str = "qemu64,+ssse3,+sse4.1,+sse4.2,+popcnt";
/// Three keys: print everything to the console; print the stacks of blocked tasks; print registers and stack of the
/// interrupted code.
pub const KEYS: &str = "9wp";
/// FUTEX_WAIT_BITSET: a thread uses it to wait for a condition. To wait for a lock it uses FUTEX_WAIT.
const FUTEX_WAIT_BITSET: u64 = 9;
const FUTEX_COMMAND_MASK: u64 = 0x7f;
const KVM_RUN: u64 = 0xae80;

impl Qemu {
    pub fn command(&self, config: &GuestConfig) -> Process {
        let mut process = Process::new(&self.program);
        let memory = format!("memory-backend-memfd,id=memory,size={}M,share=on", config.memory_mib);
        process
            .args([
                "-nodefaults",
                "-no-user-config",
                "-no-reboot",
                "-display",
                "none",
                "-name",
                "guest,debug-threads=on",
            ])
            .args(["-machine", "pc,memory-backend=memory", "-smp", "1", "-object", &memory])
            .args(if self.kvm { ["-accel", "kvm", "-cpu", "host"] } else { ["-accel", "tcg", "-cpu", TCG_CPU] })
            .args(["-m", &format!("{}M", config.memory_mib), "-serial", "chardev:console"])
            .args(["-chardev", "stdio,id=console,mux=on"])
            .arg("-kernel")
            .arg(&config.kernel)
            .arg("-initrd")
            .arg(&config.root)
            .args(["-append", &format!("console=ttyS0 {KERNEL_ARGUMENTS} {FAST}")]);
        for (number, path) in config.sockets().enumerate() {
            let path = escaped(&path);
            process
                .args(["-chardev", &format!("socket,id=disk{number},path={path}")])
                .args(["-device", &format!("vhost-user-blk-pci,chardev=disk{number},num-queues=1")]);
        }
        if let Some(plain) = &config.plain_disk {
            let path = escaped(plain);
            process
                .args(["-drive", &format!("id=plain,if=none,format=raw,file={path}")])
                .args(["-device", "virtio-blk-pci,drive=plain"]);
        }
        if let Some(log) = &self.blklogwrites {
            let disk = format!(
                "file.driver=null-co,file.read-zeroes=on,file.size={}",
                config.disk_sectors * SECTOR_BYTES as u64
            );
            let log = format!("log.driver=file,log.filename={},log-super-update-interval=1", escaped(log));
            process
                .args(["-blockdev", &format!("driver=blklogwrites,node-name=logged,discard=unmap,{disk},{log}")])
                .args(["-device", "virtio-blk-pci,drive=logged"]);
        }
        if self.virtual_time {
            process.args(["-icount", "shift=4,sleep=off"]);
        }
        process
    }

    /// Watch the virtual CPU, which is halted when the guest is idle, and the main loop, which brings it interrupts. In
    /// virtual time a halted CPU goes on at once, so there is nothing to see.
    pub fn sleep(&self, pid: u32) -> io::Result<Sleep> {
        let threads = match (virtual_cpu(pid)?, self.virtual_time) {
            (Some(cpu), false) => vec![Thread::of(pid, cpu, is_halted)?, Thread::of(pid, pid, is_polling)?],
            _ => Vec::new(),
        };
        Ok(Sleep::watching(threads))
    }
}

/// Press a magic SysRq key. On a serial console this is a break and then the key. QEMU sends a break for Ctrl-A b.
pub fn press(process: &mut Child, key: char) -> io::Result<()> {
    let keyboard = process.stdin.as_mut().ok_or(io::ErrorKind::NotConnected)?;
    write!(keyboard, "\x01b{key}")
}

/// A path, escaped for use within an option of QEMU.
fn escaped(path: &Path) -> String {
    path.display().to_string().replace(',', ",,")
}

/// The thread that runs the guest's CPU. `debug-threads` names it `CPU 0/TCG` or `CPU 0/KVM`.
fn virtual_cpu(pid: u32) -> io::Result<Option<u32>> {
    let name = |tid: &u32| std::fs::read_to_string(format!("/proc/{pid}/task/{tid}/comm")).unwrap_or_default();
    Ok(process::threads(pid)?.into_iter().find(|tid| name(tid).starts_with("CPU 0/")))
}

/// Whether the CPU waits for work under TCG, or is blocked inside of KVM_RUN.
fn is_halted(call: Syscall) -> bool {
    match call.number {
        libc::SYS_futex => call.arguments[1] & FUTEX_COMMAND_MASK == FUTEX_WAIT_BITSET,
        libc::SYS_ioctl => call.arguments[1] == KVM_RUN,
        _ => false,
    }
}

fn is_polling(call: Syscall) -> bool {
    [libc::SYS_ppoll, libc::SYS_poll].contains(&call.number)
}
