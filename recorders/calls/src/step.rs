//! What is written down: one line of JSON for each step of the program.

use serde::Serialize;

use crate::stack::Frame;

/// A system call that changed the folder, made something durable, or wrote output; or what was stored between two calls.
#[derive(Serialize, Debug, Default, PartialEq)]
pub struct Step {
    /// The name or the number of the call; `store` for what was stored through a mapping.
    pub call: String,
    pub thread: i32,
    /// Where the call is made, innermost first.
    pub stack: Vec<Frame>,
    /// So many steps before this one were written while the call was under way. A flush does not cover what they changed.
    #[serde(skip_serializing_if = "is_none")]
    pub during: usize,
    pub effects: Vec<Effect>,
    /// What was durable when the call returned; with `everything`, all.
    pub durable: Vec<FlushedRange>,
    pub everything: bool,
    /// Lines that the program wrote to its standard output in this call.
    pub outputs: Vec<String>,
}

fn is_none(count: &usize) -> bool {
    *count == 0
}

/// A file or directory that was made durable: all of it; or only what was stored through mappings into its bytes from
/// `start` to `end`; or, with `own`, only what the step itself has written there. The file reaches to `end`, then.
#[derive(Serialize, Debug, PartialEq)]
pub struct FlushedRange {
    pub inode: u64,
    pub start: u64,
    pub end: Option<u64>,
    pub own: bool,
}

/// One change that can be durable by itself.
#[derive(Serialize, Debug, PartialEq)]
#[serde(tag = "kind", rename_all = "lowercase")]
pub enum Effect {
    /// A name stands for another inode than before; 0 for none.
    Name { folder: u64, name: String, inode: u64 },
    /// An inode that was not seen before.
    Inode {
        inode: u64,
        #[serde(rename = "type")]
        file_type: &'static str,
        mode: u32,
        target: String,
    },
    /// The size of a file in bytes.
    Size { inode: u64, size: u64 },
    /// The file or directory has extended attributes, which are not followed.
    Attributes { inode: u64 },
    /// The bytes of a block of a file, in hexadecimal, without the zeros at its end.
    Block { inode: u64, block: u64, bytes: String },
}
