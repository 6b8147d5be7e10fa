//! What recoveries answered, found again by what they read.
//!
//! A recovery is a function of what it reads. So it gives the same answer on every disk that holds the same bytes in
//! all places that it read, whatever these disks hold elsewhere. The recoveries that were run are kept as a trie. Each
//! node names the place that is read next. One edge leads on for each content that was found there, and one for a
//! recovery that did not read the place (others had read it ahead, and nobody waited for it). A leaf gives the answer.
//! The order of the places does not matter for correctness.

use foldhash::{HashMap, HashMapExt};

/// Sectors that are read together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct SectorRange {
    pub sector: u64,
    pub sectors: u64,
}

/// A digest of the bytes of a place: 128 bits of BLAKE3, because recordings may be hostile.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Digest([u8; 16]);

impl Digest {
    pub fn of(bytes: &[u8]) -> Digest {
        let hash = blake3::hash(bytes);
        Digest(hash.as_bytes()[..16].try_into().expect("it has 32 bytes"))
    }
}

/// A disk whose versions are being chosen.
pub trait Disk {
    /// The digest of what this place holds, if that is settled.
    fn content(&mut self, place: SectorRange) -> Option<Digest>;
    /// Whether a recovery would have to wait for the content of this place, which is not settled.
    fn awaited(&self, place: SectorRange) -> bool;
    /// Settle the content of this place.
    fn decide(&mut self, place: SectorRange);
}

enum Node<A> {
    Read(SectorRange),
    Answer(A),
}

/// An edge of the trie.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Edge {
    /// This content was read in the place of this node.
    Content(usize, Digest),
    /// The place of this node was not read.
    Unread(usize),
}

/// Answers `A` to requests. All of them are forgotten once they take more memory than a limit.
pub struct Memo<A> {
    /// The first node of each request.
    roots: HashMap<Vec<u8>, usize>,
    nodes: Vec<Node<A>>,
    edges: HashMap<Edge, usize>,
    bytes: usize,
    bytes_max: usize,
}

impl<A> Memo<A> {
    /// A memo that may take about this many bytes.
    pub fn new(bytes_max: usize) -> Memo<A> {
        Memo { roots: HashMap::new(), nodes: Vec::new(), edges: HashMap::new(), bytes: 0, bytes_max }
    }

    /// The answer to `request` on a disk, if it is known. A place is decided only if recoveries that had read the same
    /// until then went on to read it.
    pub fn find(&self, request: &[u8], disk: &mut impl Disk) -> Option<&A> {
        let root = *self.roots.get(request)?;
        let mut settled = HashMap::new();
        loop {
            let mut open = None;
            let mut ahead = vec![root];
            while let Some(at) = ahead.pop() {
                let place = match &self.nodes[at] {
                    Node::Answer(answer) => return Some(answer),
                    Node::Read(place) => *place,
                };
                ahead.extend(self.edges.get(&Edge::Unread(at)));
                let known = settled.get(&place).copied().or_else(|| disk.content(place));
                match known {
                    Some(content) => {
                        settled.insert(place, content);
                        ahead.extend(self.edges.get(&Edge::Content(at, content)));
                    }
                    None => open = open.or_else(|| disk.awaited(place).then_some(place)),
                }
            }
            disk.decide(open?);
        }
    }

    /// Keep an `answer` that takes this many `bytes`, and everything that was read for it.
    pub fn keep(&mut self, request: &[u8], reads: &[(SectorRange, Digest)], answer: A, bytes: usize) {
        if self.bytes > self.bytes_max {
            *self = Memo::new(self.bytes_max);
        }
        let mut contents: HashMap<SectorRange, Digest> = reads.iter().copied().collect();
        let mut edge = None;
        let mut next = self.roots.get(request).copied();
        while let Some(at) = next {
            let Node::Read(place) = &self.nodes[at] else { return };
            let step = contents.remove(place).map_or(Edge::Unread(at), |content| Edge::Content(at, content));
            edge = Some(step);
            next = self.edges.get(&step).copied();
        }
        let before = self.nodes.len();
        for (place, _) in reads {
            let Some(content) = contents.remove(place) else { continue };
            let at = self.add(request, edge, Node::Read(*place));
            edge = Some(Edge::Content(at, content));
        }
        self.add(request, edge, Node::Answer(answer));
        let node = size_of::<Node<A>>() + 2 * size_of::<(Edge, usize)>();
        self.bytes += bytes + (self.nodes.len() - before) * node;
    }

    /// Add a node at the end of an edge, or as the first node of the request.
    fn add(&mut self, request: &[u8], edge: Option<Edge>, node: Node<A>) -> usize {
        let at = self.nodes.len();
        self.nodes.push(node);
        match edge {
            Some(edge) => self.edges.insert(edge, at),
            None => self.roots.insert(request.to_vec(), at),
        };
        at
    }
}
