//! The packed trace: behind all that the program says, so that a reader of its lines gets the trace as well.
//!
//! A line with `postcrash-trace` and the number of lines that follow; then the trace, compressed with zlib, in base64.

use std::io::{self, Write};

use base64::prelude::{Engine, BASE64_STANDARD};
use flate2::{write::ZlibEncoder, Compression};

/// Begins the packed trace.
const MARK: &str = "postcrash-trace";
/// Lines of recordings have at most 2,000 bytes.
const LINE_BYTES: usize = 1900;
/// The agent takes a mebibyte of lines, of which the program itself may need some.
const PACKED_BYTES_MAX: usize = 1_000_000;

/// Keeps what is written to it, and writes it packed when it is flushed: nothing leaves the program before its end.
pub struct Pack<W: Write> {
    kept: ZlibEncoder<Vec<u8>>,
    out: W,
}

impl<W: Write> Pack<W> {
    pub fn new(out: W) -> Self {
        Self { kept: ZlibEncoder::new(Vec::new(), Compression::default()), out }
    }
}

impl<W: Write> Write for Pack<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.kept.write(bytes)
    }

    /// The end of the trace. Fails if it is too long for a recording.
    fn flush(&mut self) -> io::Result<()> {
        self.kept.try_finish()?;
        let text = BASE64_STANDARD.encode(self.kept.get_ref());
        if text.len() > PACKED_BYTES_MAX {
            let message = format!(
                "the program does too much: packed, its calls and what they change have {} bytes, at most {PACKED_BYTES_MAX} fit",
                text.len()
            );
            return Err(io::Error::other(message));
        }
        let mut lines = vec![format!("{MARK} {}", text.len().div_ceil(LINE_BYTES))];
        lines.extend(text.as_bytes().chunks(LINE_BYTES).map(|line| String::from_utf8_lossy(line).into_owned()));
        self.out.write_all((lines.join("\n") + "\n").as_bytes())?;
        self.out.flush()
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use flate2::read::ZlibDecoder;

    use super::*;

    #[test]
    fn a_trace_that_is_too_long_is_refused() {
        let mut seed = 1u64;
        let mut noise = || {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (seed >> 56) as u8
        };
        let mut out = Vec::new();
        let mut pack = Pack::new(&mut out);
        pack.write_all(&(0..PACKED_BYTES_MAX).map(|_| noise()).collect::<Vec<_>>()).unwrap();
        assert!(pack.flush().unwrap_err().to_string().starts_with("the program does too much"));
        assert!(out.is_empty());
    }

    #[test]
    fn nothing_is_written_before_the_end_and_then_all() {
        let trace: Vec<u8> = (0..20_000u32).flat_map(|number| (number * number).to_le_bytes()).collect();
        let mut out = Vec::new();
        let mut pack = Pack::new(&mut out);
        pack.write_all(&trace).unwrap();
        assert!(pack.out.is_empty());
        pack.flush().unwrap();
        let text = String::from_utf8(out).unwrap();
        let (first, rest) = text.split_once('\n').unwrap();
        assert_eq!(first, format!("{MARK} {}", rest.lines().count()));
        assert!(rest.lines().all(|line| line.len() <= LINE_BYTES) && rest.lines().count() > 1);
        let packed = BASE64_STANDARD.decode(rest.lines().collect::<String>()).unwrap();
        let mut found = Vec::new();
        ZlibDecoder::new(&packed[..]).read_to_end(&mut found).unwrap();
        assert_eq!(found, trace);
    }
}
