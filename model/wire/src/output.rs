//! What a program says over the network, as the lines of text that recordings and traces have of it.

/// The address of the machine that programs in a guest can say something to: the guest's own, outside of any box.
pub const REMOTE: [u8; 4] = [192, 0, 2, 1];
/// The port at which it listens, for UDP and for TCP.
pub const PORT: u16 = 7000;

/// How something is sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Way {
    /// Each datagram is a line.
    Udp,
    /// Each line of the stream is one; what has no end is none yet.
    Tcp,
}

/// The lines of what was sent or received over one socket.
#[derive(Debug)]
pub struct Lines {
    way: Way,
    pending: Vec<u8>,
}

impl Lines {
    pub fn new(way: Way) -> Self {
        Self { way, pending: Vec::new() }
    }

    /// The lines that `bytes` complete. For UDP, `bytes` is a datagram.
    pub fn take(&mut self, bytes: &[u8]) -> Vec<String> {
        if self.way == Way::Udp {
            return vec![format!("udp {}", shown(bytes.strip_suffix(b"\n").unwrap_or(bytes)))];
        }
        self.pending.extend_from_slice(bytes);
        let Some(last) = self.pending.iter().rposition(|&byte| byte == b'\n') else { return Vec::new() };
        let whole: Vec<u8> = self.pending.drain(..=last).collect();
        whole[..last].split(|&byte| byte == b'\n').map(|line| format!("tcp {}", shown(line))).collect()
    }

    /// Whether nothing stands behind the last end of a line.
    pub fn is_whole(&self) -> bool {
        self.pending.is_empty()
    }
}

fn shown(bytes: &[u8]) -> String {
    bytes.escape_ascii().to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_datagram_is_a_line_whatever_it_holds() {
        let mut lines = Lines::new(Way::Udp);
        assert_eq!(lines.take(b"a\nb\n"), ["udp a\\nb"]);
        assert_eq!(lines.take(b""), ["udp "]);
        assert_eq!(lines.take(b"\xff"), ["udp \\xff"]);
    }

    #[test]
    fn a_stream_has_the_same_lines_however_it_is_cut() {
        let stream = b"one\ntwo\n\nthree\nrest";
        for cut in 0..stream.len() {
            let mut lines = Lines::new(Way::Tcp);
            let found = [lines.take(&stream[..cut]), lines.take(&stream[cut..])].concat();
            assert_eq!(found, ["tcp one", "tcp two", "tcp ", "tcp three"]);
            assert!(!lines.is_whole());
            lines.take(b"\n");
            assert!(lines.is_whole());
        }
    }
}
