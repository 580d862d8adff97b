//! What is kept of a name in a directory, and of a directory as a whole.
//!
//! A directory is one object: its names in order, each with what it is. Whatever was left out stands there too, with the
//! reason, so that a snapshot never looks as if something had not been there. Times are not kept: a file that comes back
//! is new to a build, which would otherwise take what it made of the other version for up to date.

use interlock_core::Digest;

use crate::bytes::{Unread, Written};

/// A name that was there, and what it was.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Node {
    /// File, link, directory, or left out.
    pub kind: Kind,
    /// The twelve bits of permissions.
    pub mode: u32,
    /// User and group by number.
    pub owner: (u32, u32),
    /// The attributes of the user's own namespace, by name.
    pub xattrs: Vec<(Vec<u8>, Vec<u8>)>,
    /// The inode of a file that had several names: bytes go back into it as long as it is the same one.
    pub inode: Option<u64>,
}

/// What a name stood for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Kind {
    /// A file.
    File {
        /// Its length.
        size: u64,
        /// Where its bytes are.
        content: Content,
    },
    /// A symbolic link.
    Link {
        /// What it says, which nobody follows.
        target: Vec<u8>,
    },
    /// A directory.
    Directory {
        /// The object that holds its names.
        tree: Digest,
    },
    /// Something that is not kept.
    LeftOut {
        /// Why.
        why: Why,
        /// Whether it is a directory.
        is_directory: bool,
    },
}

/// How the bytes of a file are stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Content {
    /// As one object.
    Whole(Digest),
    /// In pieces; the object lists them. What is in no piece is zero.
    Pieces(Digest),
    /// As a file of its own, which may be another name of the project's.
    Linked(Digest),
}

/// Why something is not kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Why {
    /// It can be made again: the operator's list names it.
    Regenerable,
    /// It is a place of secrets.
    Secret,
    /// The file is larger than what is kept.
    TooLarge,
    /// It is neither file nor link nor directory.
    Special,
    /// Another file system is mounted there.
    OtherFileSystem,
    /// It could not be read.
    Unreadable,
    /// It is Interlock's own.
    Own,
}

impl Why {
    /// All of them, in the order of their numbers in the store.
    pub const ALL: [Why; 7] =
        [Why::Regenerable, Why::Secret, Why::TooLarge, Why::Special, Why::OtherFileSystem, Why::Unreadable, Why::Own];

    /// The word for it.
    pub fn word(self) -> &'static str {
        match self {
            Why::Regenerable => "regenerable",
            Why::Secret => "secret",
            Why::TooLarge => "too large",
            Why::Special => "neither file nor link nor directory",
            Why::OtherFileSystem => "on another file system",
            Why::Unreadable => "unreadable",
            Why::Own => "Interlock's own",
        }
    }
}

impl Node {
    /// Whether two nodes are alike, whatever lies beneath them and whatever other names they have.
    pub(crate) fn is_like(&self, other: &Node) -> bool {
        let kinds = match (&self.kind, &other.kind) {
            (Kind::Directory { .. }, Kind::Directory { .. }) => true,
            (Kind::File { size, content }, Kind::File { size: other_size, content: other_content }) => {
                size == other_size && content.digest() == other_content.digest()
            }
            (one, other) => one == other,
        };
        kinds && self.mode == other.mode && self.owner == other.owner && self.xattrs == other.xattrs
    }

    pub(crate) fn is_directory(&self) -> bool {
        matches!(self.kind, Kind::Directory { .. })
    }

    pub(crate) fn is_left_out(&self) -> bool {
        matches!(self.kind, Kind::LeftOut { .. })
    }

    pub(crate) fn left_out(why: Why, is_directory: bool) -> Node {
        Node { kind: Kind::LeftOut { why, is_directory }, mode: 0, owner: (0, 0), xattrs: Vec::new(), inode: None }
    }

    pub(crate) fn write(&self, to: &mut Written) {
        match &self.kind {
            Kind::File { size, content } => {
                let (tag, digest) = match content {
                    Content::Whole(digest) => (0, digest),
                    Content::Pieces(digest) => (1, digest),
                    Content::Linked(digest) => (2, digest),
                };
                to.u8(tag);
                to.u64(*size);
                to.digest(*digest);
            }
            Kind::Link { target } => {
                to.u8(3);
                to.text(target);
            }
            Kind::Directory { tree } => {
                to.u8(4);
                to.digest(*tree);
            }
            Kind::LeftOut { why, is_directory } => {
                to.u8(5);
                to.u8(Why::ALL.iter().position(|known| known == why).and_then(|at| u8::try_from(at).ok()).unwrap_or(0));
                to.u8(u8::from(*is_directory));
            }
        }
        to.u32(self.mode);
        to.u32(self.owner.0);
        to.u32(self.owner.1);
        to.u32(u32::try_from(self.xattrs.len()).unwrap_or(u32::MAX));
        for (name, value) in &self.xattrs {
            to.text(name);
            to.text(value);
        }
        // No file has the inode zero.
        to.u64(self.inode.unwrap_or(0));
    }

    pub(crate) fn read(from: &mut Unread<'_>) -> Option<Node> {
        let kind = match from.u8()? {
            tag @ 0..=2 => {
                let (size, digest) = (from.u64()?, from.digest()?);
                let content = match tag {
                    0 => Content::Whole(digest),
                    1 => Content::Pieces(digest),
                    _ => Content::Linked(digest),
                };
                Kind::File { size, content }
            }
            3 => Kind::Link { target: from.text()?.to_vec() },
            4 => Kind::Directory { tree: from.digest()? },
            5 => {
                let why = *Why::ALL.get(usize::from(from.u8()?))?;
                Kind::LeftOut { why, is_directory: from.u8()? == 1 }
            }
            _ => return None,
        };
        let (mode, owner) = (from.u32()?, (from.u32()?, from.u32()?));
        let mut xattrs = Vec::new();
        for _ in 0..from.u32()? {
            xattrs.push((from.text()?.to_vec(), from.text()?.to_vec()));
        }
        let inode = Some(from.u64()?).filter(|inode| *inode != 0);
        Some(Node { kind, mode, owner, xattrs, inode })
    }
}

impl Content {
    pub(crate) fn digest(&self) -> Digest {
        match self {
            Content::Whole(digest) | Content::Pieces(digest) | Content::Linked(digest) => *digest,
        }
    }
}

/// The names of a directory, in order.
pub(crate) type Tree = Vec<(Vec<u8>, Node)>;

const TREE_MARK: &[u8] = b"tree 1\n";

/// The object of a directory whose names are given in order.
pub(crate) fn write_tree<'a>(names: impl Iterator<Item = (&'a [u8], &'a Node)>) -> Vec<u8> {
    let mut to = Written(TREE_MARK.to_vec());
    for (name, node) in names {
        to.text(name);
        node.write(&mut to);
    }
    to.0
}

/// Reads the object of a directory; `None` if it is none, or a name in it could lead elsewhere.
pub(crate) fn read_tree(bytes: &[u8]) -> Option<Tree> {
    let mut from = Unread(bytes.strip_prefix(TREE_MARK)?);
    let mut tree: Tree = Vec::new();
    while from.end().is_none() {
        let name = from.text()?.to_vec();
        let is_in_order = tree.last().is_none_or(|(last, _)| *last < name);
        if !is_in_order || !is_name(&name) {
            return None;
        }
        tree.push((name, Node::read(&mut from)?));
    }
    Some(tree)
}

/// Whether bytes can be the name of something in a directory.
pub(crate) fn is_name(name: &[u8]) -> bool {
    !name.is_empty() && name != b"." && name != b".." && !name.iter().any(|byte| *byte == b'/' || *byte == 0)
}

/// A piece of a file: where it begins, how long it is, and its object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Piece {
    pub(crate) offset: u64,
    pub(crate) len: u32,
    pub(crate) digest: Digest,
}

const PIECES_MARK: &[u8] = b"pieces 1\n";

pub(crate) fn write_pieces(pieces: &[Piece]) -> Vec<u8> {
    let mut to = Written(PIECES_MARK.to_vec());
    for piece in pieces {
        to.u64(piece.offset);
        to.u32(piece.len);
        to.digest(piece.digest);
    }
    to.0
}

/// Reads the pieces of a file of a size; `None` if they are out of order or reach beyond it.
pub(crate) fn read_pieces(bytes: &[u8], size: u64) -> Option<Vec<Piece>> {
    let mut from = Unread(bytes.strip_prefix(PIECES_MARK)?);
    let (mut pieces, mut reached) = (Vec::new(), 0);
    while from.end().is_none() {
        let piece = Piece { offset: from.u64()?, len: from.u32()?, digest: from.digest()? };
        let end = piece.offset.checked_add(u64::from(piece.len))?;
        if piece.offset < reached || end > size {
            return None;
        }
        reached = end;
        pieces.push(piece);
    }
    Some(pieces)
}
