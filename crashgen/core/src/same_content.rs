//! Finds which sources give a sector the same bytes.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};

use crate::ground::Content;
use crate::piece::Source;

/// Replaces each source by the first one that gives its sector the same bytes, so that equal contents compare equal. A
/// source whose bytes are not settled stays as it is.
pub(crate) struct SameContent<'a> {
    content: &'a Content<'a>,
    /// By sector and source: the source that replaces it.
    known: HashMap<(u64, Source), Source>,
    /// The sources that replace others, by sector and a hash of the bytes.
    firsts: HashMap<(u64, u64), Vec<Source>>,
}

impl<'a> SameContent<'a> {
    pub fn new(content: &'a Content<'a>) -> Self {
        SameContent { content, known: HashMap::new(), firsts: HashMap::new() }
    }

    pub fn first(&mut self, sector: u64, source: Source) -> Source {
        if let Some(&first) = self.known.get(&(sector, source)) {
            return first;
        }
        let Some(bytes) = self.content.settled(source, sector) else { return source };
        let mut hasher = DefaultHasher::new();
        bytes.hash(&mut hasher);
        let place = (sector, hasher.finish());
        let alike = self.firsts.get(&place).map_or(&[][..], |sources| sources);
        let same = alike.iter().copied().find(|&known| self.content.settled(known, sector) == Some(bytes));
        if same.is_none() {
            self.firsts.entry(place).or_default().push(source);
        }
        self.known.insert((sector, source), same.unwrap_or(source));
        same.unwrap_or(source)
    }
}
