//! The lines of a log that say why something failed, as one line.

use crate::kernel_log::parsed;

/// The last lines say why; those before them say what was tried.
const LINES_MAX: usize = 3;
const LINE_BYTES_MAX: usize = 300;
const LEVEL_WARNING: u32 = 4;
/// How our own lines in the kernel's log begin.
pub const OWN: &str = "postcrash-agent: ";

/// The last warnings and errors of the kernel's log, in one line.
pub fn worst_lines(log: &str) -> String {
    last_lines(kernel_lines(log).filter(|(level, _)| *level <= LEVEL_WARNING).map(|(_, text)| text))
}

/// The lines of the kernel's log that are not ours, with their levels.
pub fn kernel_lines(log: &str) -> impl Iterator<Item = (u32, &str)> {
    log.lines().filter_map(parsed).filter(|(_, text)| !text.starts_with(OWN))
}

/// The last lines, in one line, without those that repeat the one before them.
pub fn last_lines<'a>(lines: impl Iterator<Item = &'a str>) -> String {
    let mut kept: Vec<String> = Vec::new();
    for text in lines.filter(|text| !text.trim().is_empty()) {
        let shown = text.trim().trim_end_matches('.').chars().map(|each| if each.is_control() { ' ' } else { each });
        let line: String = shown.take(LINE_BYTES_MAX).collect();
        if kept.last() != Some(&line) {
            kept.push(line);
        }
    }
    kept.split_off(kept.len().saturating_sub(LINES_MAX)).join("; ")
}
