//! Where in its source a stopped thread is: the frames of its stack.

use std::collections::HashMap;
use std::fs;
use std::io::{self, Read};

use addr2line::Loader;
use framehop::x86_64::{CacheX86_64, UnwindRegsX86_64, UnwinderX86_64};
use framehop::{ExplicitModuleSectionInfo, FrameAddress, Module, Unwinder};
use object::{Object, ObjectSection};
use postcrash_stopped::{mappings, read, registers, Mapping};
use serde::Serialize;

const FRAMES_MAX: usize = 24;
const FILE_BYTES_MAX: u64 = 512 << 20;

/// One call on a stack. Without a line, the file is the program or library in which it is.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Frame {
    pub function: String,
    pub file: String,
    pub line: u32,
}

/// What is known of the processes that were looked at. Programs and libraries are read once.
#[derive(Default)]
pub struct Stacks {
    processes: HashMap<Vec<String>, UnwinderX86_64<Vec<u8>>>,
    sections: HashMap<String, Option<ExplicitModuleSectionInfo<Vec<u8>>>>,
    sources: HashMap<String, Option<Loader>>,
    frames: HashMap<(String, u64), Frame>,
    cache: CacheX86_64,
}

impl Stacks {
    /// The frames of a thread that stands in a system call, innermost first. As many as can be found out.
    pub fn of(&mut self, thread: libc::pid_t) -> Vec<Frame> {
        self.unwound(thread).unwrap_or_default()
    }

    fn unwound(&mut self, thread: libc::pid_t) -> io::Result<Vec<Frame>> {
        let registers = registers(thread)?;
        let modules = binaries(thread)?;
        let key: Vec<String> = modules.iter().map(|each| format!("{} {:x}", each.path, each.addresses.start)).collect();
        if !self.processes.contains_key(&key) {
            let unwinder = self.unwinder(thread, &modules);
            self.processes.insert(key.clone(), unwinder);
        }
        let mut read = |address: u64| word(thread, address).ok_or(());
        let start = UnwindRegsX86_64::new(registers.rip, registers.rsp, registers.rbp);
        let mut frames = self.processes[&key].iter_frames(registers.rip, start, &mut self.cache, &mut read);
        let mut addresses = Vec::new();
        while let Ok(Some(frame)) = frames.next() {
            addresses.push(match frame {
                FrameAddress::InstructionPointer(address) => address,
                FrameAddress::ReturnAddress(address) => address.get() - 1,
            });
            if addresses.len() == FRAMES_MAX {
                break;
            }
        }
        Ok(addresses.into_iter().filter_map(|address| self.frame_at(thread, &modules, address)).collect())
    }

    fn unwinder(&mut self, thread: libc::pid_t, modules: &[Mapping]) -> UnwinderX86_64<Vec<u8>> {
        let mut unwinder = UnwinderX86_64::new();
        for module in modules {
            let sections = self.sections.entry(module.path.clone()).or_insert_with(|| sections(thread, &module.path));
            if let Some(sections) = sections.clone() {
                let addresses = module.addresses.clone();
                unwinder.add_module(Module::new(module.path.clone(), addresses, module.addresses.start, sections));
            }
        }
        unwinder
    }

    /// What stands at an address, unless it is in no program or library.
    fn frame_at(&mut self, thread: libc::pid_t, modules: &[Mapping], address: u64) -> Option<Frame> {
        let module = modules.iter().find(|each| each.addresses.contains(&address))?;
        let key = (module.path.clone(), address - module.addresses.start);
        if let Some(known) = self.frames.get(&key) {
            return Some(known.clone());
        }
        let seen = seen_by(thread, &module.path);
        let source = self.sources.entry(module.path.clone()).or_insert_with(|| Loader::new(seen).ok());
        let mut frame = source.as_ref().map_or_else(Frame::default, |source| frame_in(source, key.1));
        if frame.line == 0 {
            frame.file = module.path.clone();
        }
        self.frames.insert(key, frame.clone());
        Some(frame)
    }
}

fn frame_in(source: &Loader, address: u64) -> Frame {
    let address = address + source.relative_address_base();
    let symbol = source.find_symbol(address).map(|name| addr2line::demangle_auto(name.into(), None).into_owned());
    let location = source.find_location(address).ok().flatten();
    let (file, line) = location.map_or(("", 0), |found| (found.file.unwrap_or(""), found.line.unwrap_or(0)));
    Frame { function: symbol.unwrap_or_default(), file: file.to_owned(), line }
}

/// A word of the thread's memory.
fn word(thread: libc::pid_t, address: u64) -> Option<u64> {
    let bytes = read(thread, address, 8).ok()?;
    bytes.try_into().ok().map(u64::from_ne_bytes)
}

/// The programs and libraries of a process: the first mapping of each, with the addresses up to the end of its last one.
fn binaries(thread: libc::pid_t) -> io::Result<Vec<Mapping>> {
    let mut found: Vec<Mapping> = Vec::new();
    for part in mappings(thread)? {
        match found.iter_mut().find(|each| each.path == part.path) {
            Some(known) => known.addresses.end = known.addresses.end.max(part.addresses.end),
            None if part.offset == 0 && part.mode.ends_with('p') => found.push(part),
            None => {}
        }
    }
    Ok(found)
}

/// A path of a process, as seen from here: it may have another root.
fn seen_by(thread: libc::pid_t, path: &str) -> String {
    format!("/proc/{thread}/root{path}")
}

/// What unwinding needs of a program or library. None if it is none.
fn sections(thread: libc::pid_t, path: &str) -> Option<ExplicitModuleSectionInfo<Vec<u8>>> {
    let file = fs::File::open(seen_by(thread, path)).ok()?;
    let mut bytes = Vec::new();
    file.take(FILE_BYTES_MAX).read_to_end(&mut bytes).ok()?;
    let object = object::File::parse(bytes.as_slice()).ok()?;
    let section = |name: &str| {
        let section = object.section_by_name(name)?;
        let data = section.data().ok()?.to_vec();
        Some((section.address()..section.address() + section.size(), data))
    };
    let (text_svma, text) = section(".text").unzip();
    let (eh_frame_svma, eh_frame) = section(".eh_frame").unzip();
    let (eh_frame_hdr_svma, eh_frame_hdr) = section(".eh_frame_hdr").unzip();
    let got_svma = section(".got").map(|(range, _)| range);
    Some(ExplicitModuleSectionInfo {
        base_svma: object.relative_address_base(),
        text_svma,
        text,
        eh_frame_svma,
        eh_frame,
        eh_frame_hdr_svma,
        eh_frame_hdr,
        got_svma,
        ..ExplicitModuleSectionInfo::default()
    })
}
