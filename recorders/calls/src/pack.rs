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

    /// The end of the trace.
    fn flush(&mut self) -> io::Result<()> {
        self.kept.try_finish()?;
        let text = BASE64_STANDARD.encode(self.kept.get_ref());
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
