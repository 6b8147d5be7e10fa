//! Messages from the agent to the crash disk.

use thiserror::Error;

/// One message. On the mailbox it is a kind byte and then the fields, little-endian.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Message {
    /// Operation number `op` (set-up included, from 0) is about to start.
    Started { op: u32 },
    /// Operation number `op` returned; `errno` is 0 for success.
    Returned { op: u32, errno: u32 },
    /// The set-up is on the device, so recording begins.
    Durable,
    /// A thread of a program begins a system call. Threads are numbered from 1.
    Called { thread: u32, program: String, call: String },
    /// It ends with this result; an error is a negative errno. [`NO_RESULT`] if it never returns.
    CallEnded { thread: u32, result: i64 },
    /// The command is finished. The payload is its result (JSON of an observation, or empty).
    Done(Vec<u8>),
    /// The command failed for a reason that does not lie in the target. `log` is what was said on the way.
    Failed { reason: String, log: String },
}

/// The result of a system call whose thread ends, or runs another program, before it returns.
pub const NO_RESULT: i64 = i64::MIN;

#[derive(Debug, Error, PartialEq, Eq)]
#[error("the guest agent sent a message that cannot be read: {0}")]
pub struct MessageError(&'static str);

impl Message {
    pub fn encode(&self) -> Vec<u8> {
        match self {
            Message::Started { op } => [&[1][..], &op.to_le_bytes()].concat(),
            Message::Returned { op, errno } => [&[2][..], &op.to_le_bytes(), &errno.to_le_bytes()].concat(),
            Message::Durable => vec![3],
            Message::Done(payload) => [&[4][..], payload].concat(),
            Message::Failed { reason, log } => [&[5][..], reason.as_bytes(), &[0], log.as_bytes()].concat(),
            Message::Called { thread, program, call } => {
                [&[6][..], &thread.to_le_bytes(), program.as_bytes(), &[0], call.as_bytes()].concat()
            }
            Message::CallEnded { thread, result } => [&[7][..], &thread.to_le_bytes(), &result.to_le_bytes()].concat(),
        }
    }

    pub fn decode(bytes: &[u8]) -> Result<Message, MessageError> {
        let (kind, rest) = bytes.split_first().ok_or(MessageError("it is empty"))?;
        let word = |at: usize| -> Result<u32, MessageError> {
            let field = rest.get(at..at + 4).ok_or(MessageError("a field is missing"))?;
            Ok(u32::from_le_bytes(field.try_into().expect("four bytes")))
        };
        match kind {
            1 => Ok(Message::Started { op: word(0)? }),
            2 => Ok(Message::Returned { op: word(0)?, errno: word(4)? }),
            3 => Ok(Message::Durable),
            4 => Ok(Message::Done(rest.to_vec())),
            5 => two_texts(rest).map(|(reason, log)| Message::Failed { reason, log }),
            6 => {
                let thread = word(0)?;
                two_texts(&rest[4..]).map(|(program, call)| Message::Called { thread, program, call })
            }
            7 => Ok(Message::CallEnded {
                thread: word(0)?,
                result: (u64::from(word(4)?) | u64::from(word(8)?) << 32) as i64,
            }),
            _ => Err(MessageError("its kind is unknown")),
        }
    }
}

/// Two texts with a zero between them.
fn two_texts(bytes: &[u8]) -> Result<(String, String), MessageError> {
    let end = bytes.iter().position(|&byte| byte == 0).ok_or(MessageError("a field is missing"))?;
    let text = |bytes| String::from_utf8_lossy(bytes).into_owned();
    Ok((text(&bytes[..end]), text(&bytes[end + 1..])))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_message_survives_the_mailbox() {
        let messages = [
            Message::Started { op: 3 },
            Message::Returned { op: 3, errno: 28 },
            Message::Durable,
            Message::Called { thread: 2, program: "sh".into(), call: "sync()".into() },
            Message::CallEnded { thread: 2, result: -28 },
            Message::Done(b"{}".to_vec()),
            Message::Failed { reason: "no module".into(), log: "kernel log:\nfuse: init".into() },
        ];
        for message in messages {
            assert_eq!(Message::decode(&message.encode()), Ok(message));
        }
    }

    #[test]
    fn a_broken_message_is_an_error() {
        for bytes in
            [&[][..], &[9], &[1, 0], &[2, 0, 0, 0, 0], &[5, 7], &[6, 0, 0, 0, 0, 7], &[7, 0, 0, 0, 0, 0, 0, 0, 0]]
        {
            assert!(Message::decode(bytes).is_err());
        }
    }
}
