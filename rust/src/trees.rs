//! Where the chunks of an HDF5 dataset lie whose index is a B-tree of version 1, by nodes that are read as they are needed.
//!
//! What `omnizarr.readers.hdf5.chunks` is in Python, which fetches the nodes. Whatever is unusual is refused, broken or
//! not, and the whole index read there: chunks that skip filters, chunks beyond the shape, chunks out of order.
//! [`index`] reads all kinds of indexes itself, from files of this machine.

pub mod index;

use std::collections::{HashMap, HashSet};

use crate::error::{Error, Result};
use crate::manifest::NOT_STORED;

/// The signature of a node, and the type of those of chunks.
const HEAD: &[u8] = b"TREE\x01";
const MOST_LEVELS: u8 = 64;
const COUNTABLE: u64 = 1 << 62;

/// What the file and the dataset say of all nodes.
#[derive(Debug)]
pub struct Form {
    /// The number of chunks along each dimension.
    pub grid: Vec<u64>,
    /// The shape of a chunk.
    pub chunk_shape: Vec<u64>,
    /// Bytes of an address.
    pub offset_size: usize,
    /// The largest number of entries of a node.
    pub most: usize,
    /// The byte of the file from which addresses count.
    pub base: u64,
    /// Bytes of the file.
    pub size: u64,
}

/// A node that is not here yet: its address, and the level that it must be of, if that is known.
pub type Wanted = (u64, Option<u8>);

/// The answer to a question.
#[derive(Debug, PartialEq, Eq)]
pub enum Answer {
    /// Nodes are to be added first.
    Missing(Vec<Wanted>),
    /// Offsets and lengths.
    Found(Vec<u64>, Vec<u64>),
}

/// For each entry the number of its first chunk, and what it leads to.
#[derive(Debug)]
struct Node {
    level: u8,
    numbers: Vec<u64>,
    children: Vec<u64>,
    lengths: Vec<u32>,
}

/// The nodes that are here.
#[derive(Debug)]
pub struct Tree {
    form: Form,
    root: u64,
    weights: Vec<u64>,
    nodes: HashMap<u64, Node>,
    left: u64,
}

impl Tree {
    /// A tree of which no node is here.
    ///
    /// # Errors
    /// If there are too many chunks to count, or the sizes cannot be.
    pub fn new(root: u64, form: Form) -> Result<Self> {
        let rank = form.grid.len();
        let is_known = rank == form.chunk_shape.len() && !form.chunk_shape.contains(&0);
        if rank == 0 || !is_known || !(1..=8).contains(&form.offset_size) || form.most == 0 || form.most > 1 << 17 {
            return Err(Error::refused("a tree of another form"));
        }
        let mut weights = vec![1_u64; rank];
        for axis in (0..rank - 1).rev() {
            weights[axis] = product(weights[axis + 1], form.grid[axis + 1])?;
        }
        product(weights[0], form.grid[0])?;
        let left = form.size;
        Ok(Self { form, root, weights, nodes: HashMap::new(), left })
    }

    fn entry(&self) -> usize {
        8 + 8 * (self.form.grid.len() + 1) + self.form.offset_size
    }

    fn head(&self) -> usize {
        8 + 2 * self.form.offset_size
    }

    /// Bytes of a node.
    #[must_use]
    pub fn node_bytes(&self) -> usize {
        self.head() + self.form.most * self.entry()
    }

    /// The number of nodes that are here.
    #[must_use]
    pub fn len(&self) -> usize {
        self.nodes.len()
    }

    /// Whether no node is here.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.nodes.is_empty()
    }

    /// Add nodes: the bytes of each, one behind the other.
    ///
    /// # Errors
    /// If they are no nodes of this tree, or have what is not known here. Those before remain.
    pub fn add(&mut self, wanted: &[Wanted], rows: &[u8]) -> Result<()> {
        let size = self.node_bytes();
        if wanted.len().checked_mul(size) != Some(rows.len()) {
            return Err(Error::refused("nodes of another size"));
        }
        for (&(address, level), row) in wanted.iter().zip(rows.chunks_exact(size)) {
            let node = self.parsed(row, level)?;
            // Nodes that do not overlap have no more entries than the file has room for.
            let bytes = (self.head() + node.numbers.len() * self.entry()) as u64;
            self.left = self.left.checked_sub(bytes).ok_or_else(|| Error::refused("more nodes than the file has"))?;
            self.nodes.insert(address, node);
        }
        Ok(())
    }

    fn parsed(&self, row: &[u8], level: Option<u8>) -> Result<Node> {
        let (own, count) = (row[5], usize::from(u16::from_le_bytes([row[6], row[7]])));
        if !row.starts_with(HEAD) || count > self.form.most || own > MOST_LEVELS || level.is_some_and(|it| it != own) {
            return Err(Error::refused("no node of this tree"));
        }
        let mut node = Node {
            level: own,
            numbers: Vec::with_capacity(count),
            children: Vec::with_capacity(count),
            lengths: Vec::with_capacity(count),
        };
        let (rank, last) = (self.form.grid.len(), 8 + 8 * (self.form.grid.len() + 1));
        for entry in row[self.head()..].chunks_exact(self.entry()).take(count) {
            let (length, mask) = (small(&entry[..4]), small(&entry[4..8]));
            let mut number = 0_u64;
            for axis in 0..rank {
                let (at, step) = (wide(&entry[8 + 8 * axis..16 + 8 * axis]), self.form.chunk_shape[axis]);
                let coordinate = at / step;
                if at % step != 0 || (axis > 0 && coordinate >= self.form.grid[axis]) {
                    return Err(Error::refused("a chunk beyond the grid"));
                }
                // The sum is smaller than a row of chunks: it does not overflow.
                number += product(coordinate, self.weights[axis])?;
            }
            if node.numbers.last().is_some_and(|&before| before >= number) {
                return Err(Error::refused("chunks out of order"));
            }
            let mut child = wide(&entry[last..]);
            if own == 0 {
                child = child.checked_add(self.form.base).ok_or_else(|| Error::refused("beyond the file"))?;
                let is_in_file = child.checked_add(u64::from(length)).is_some_and(|stop| stop <= self.form.size);
                if mask != 0 || !is_in_file {
                    return Err(Error::refused("a chunk that skips filters, or is beyond the file"));
                }
            }
            node.numbers.push(number);
            node.children.push(child);
            node.lengths.push(length);
        }
        Ok(node)
    }

    /// Return where chunks lie, by number, with `NOT_STORED` as the length of those that are not stored.
    ///
    /// # Errors
    /// If a node is of another level than its place.
    pub fn seek(&self, numbers: &[u64]) -> Result<Answer> {
        let (mut offsets, mut lengths) = (Vec::with_capacity(numbers.len()), Vec::with_capacity(numbers.len()));
        let (mut missing, mut seen) = (Vec::new(), HashSet::new());
        for &number in numbers {
            let mut place: Wanted = (self.root, None);
            let found = loop {
                let Some(node) = self.nodes.get(&place.0) else {
                    if seen.insert(place.0) {
                        missing.push(place);
                    }
                    break None;
                };
                if place.1.is_some_and(|level| level != node.level) {
                    return Err(Error::refused("a node of another level"));
                }
                let Some(at) = node.numbers.partition_point(|&first| first <= number).checked_sub(1) else {
                    break None;
                };
                if node.level == 0 {
                    break (node.numbers[at] == number).then(|| (node.children[at], u64::from(node.lengths[at])));
                }
                place = (node.children[at], Some(node.level - 1)); // so a loop ends
            };
            let (offset, length) = found.unwrap_or((0, NOT_STORED));
            offsets.push(offset);
            lengths.push(length);
        }
        Ok(if missing.is_empty() { Answer::Found(offsets, lengths) } else { Answer::Missing(missing) })
    }

    /// Return where all chunks of the grid lie, as `seek` does; or the next nodes of the whole tree that are to be added.
    ///
    /// # Errors
    /// If two ways lead to a node, or chunks are out of order or beyond the grid.
    pub fn whole(&self) -> Result<Answer> {
        let mut level: Vec<Wanted> = vec![(self.root, None)];
        let mut seen = HashSet::from([self.root]);
        loop {
            let missing: Vec<_> = level.iter().copied().filter(|place| !self.nodes.contains_key(&place.0)).collect();
            if !missing.is_empty() {
                return Ok(Answer::Missing(missing));
            }
            let nodes: Vec<_> = level.iter().filter_map(|place| self.nodes.get(&place.0)).collect();
            if level.iter().zip(&nodes).any(|(place, node)| place.1.is_some_and(|level| level != node.level)) {
                return Err(Error::refused("a node of another level"));
            }
            let Some(above) = nodes.first().map(|node| node.level).filter(|&above| above > 0) else {
                return self.all(&nodes);
            };
            level = Vec::with_capacity(nodes.iter().map(|node| node.children.len()).sum());
            for &child in nodes.iter().flat_map(|node| &node.children) {
                if !seen.insert(child) {
                    return Err(Error::refused("two ways to a node"));
                }
                level.push((child, Some(above - 1)));
            }
        }
    }

    fn all(&self, leaves: &[&Node]) -> Result<Answer> {
        let count = product(self.weights[0], self.form.grid[0])?;
        let count = usize::try_from(count).map_err(|_| Error::refused("too many chunks"))?;
        let (mut offsets, mut lengths) = (vec![0_u64; count], vec![NOT_STORED; count]);
        let mut next = 0;
        for node in leaves {
            for ((&number, &child), &length) in node.numbers.iter().zip(&node.children).zip(&node.lengths) {
                let at = usize::try_from(number).ok().filter(|&at| at < count && number >= next);
                let at = at.ok_or_else(|| Error::refused("chunks out of order, or beyond the grid"))?;
                (offsets[at], lengths[at]) = (child, u64::from(length));
                next = number + 1;
            }
        }
        Ok(Answer::Found(offsets, lengths))
    }
}

fn product(first: u64, second: u64) -> Result<u64> {
    let found = first.checked_mul(second).filter(|&found| found < COUNTABLE);
    found.ok_or_else(|| Error::refused("too many chunks to count"))
}

fn small(bytes: &[u8]) -> u32 {
    bytes.try_into().map_or(0, u32::from_le_bytes)
}

/// A number of up to eight bytes.
fn wide(bytes: &[u8]) -> u64 {
    let mut all = [0; 8];
    all[..bytes.len()].copy_from_slice(bytes);
    u64::from_le_bytes(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn form() -> Form {
        Form { grid: vec![2, 3], chunk_shape: vec![10, 5], offset_size: 8, most: 4, base: 0, size: 4096 }
    }

    /// A node with entries of a length, a mask, the first element of a chunk, and a child.
    fn node(level: u8, entries: &[(u32, u32, [u64; 2], u64)]) -> Vec<u8> {
        let mut row = b"TREE\x01".to_vec();
        row.push(level);
        row.extend(u16::try_from(entries.len()).unwrap().to_le_bytes());
        row.extend([255; 16]);
        for (length, mask, [y, x], child) in entries {
            row.extend(length.to_le_bytes());
            row.extend(mask.to_le_bytes());
            row.extend([*y, *x, 0, *child].iter().flat_map(|number| number.to_le_bytes()));
        }
        row.resize(24 + 4 * 40, 0);
        row
    }

    fn tree() -> Tree {
        Tree::new(100, form()).unwrap()
    }

    #[test]
    fn nodes_that_lead_to_chunks_are_asked_for() {
        let mut tree = tree();
        assert_eq!(tree.node_bytes(), 184);
        assert_eq!(tree.seek(&[4, 0]).unwrap(), Answer::Missing(vec![(100, None)]));
        tree.add(&[(100, None)], &node(1, &[(0, 0, [0, 0], 300), (0, 0, [10, 0], 500)])).unwrap();
        assert_eq!(tree.seek(&[4, 3]).unwrap(), Answer::Missing(vec![(500, Some(0))]));
        tree.add(&[(500, Some(0))], &node(0, &[(7, 0, [10, 0], 1000), (8, 0, [10, 10], 1100)])).unwrap();
        assert_eq!(tree.seek(&[5, 4]).unwrap(), Answer::Found(vec![1100, 0], vec![8, NOT_STORED]));
        assert_eq!(tree.whole().unwrap(), Answer::Missing(vec![(300, Some(0))]));
        tree.add(&[(300, Some(0))], &node(0, &[(9, 0, [0, 5], 2000)])).unwrap();
        let lengths = vec![NOT_STORED, 9, NOT_STORED, 7, NOT_STORED, 8];
        assert_eq!(tree.whole().unwrap(), Answer::Found(vec![0, 2000, 0, 1000, 0, 1100], lengths));
        assert_eq!((tree.len(), tree.is_empty()), (3, false));
    }

    #[test]
    fn what_is_unusual_is_refused() {
        let wrong = [
            node(1, &[(0, 0, [0, 0], 300)]),                        // of another level
            node(0, &[(9, 1, [0, 5], 2000)]),                       // skips a filter
            node(0, &[(9, 0, [0, 15], 2000)]),                      // beyond the shape
            node(0, &[(9, 0, [0, 4], 2000)]),                       // not on the grid
            node(0, &[(9, 0, [0, 5], 4090)]),                       // beyond the file
            node(0, &[(9, 0, [0, 5], u64::MAX)]),                   // beyond all files
            node(0, &[(9, 0, [0, 5], 2000), (9, 0, [0, 5], 2000)]), // twice
            node(0, &[(9, 0, [u64::MAX / 10 * 10, 5], 2000)]),      // too many
            [b"TREE\x00".as_slice(), &node(0, &[])[5..]].concat(),  // of a group
            [b"TREE\x01\x00\x05\x00", &node(0, &[])[8..]].concat(), // more entries than it has room for
            node(0, &[])[1..].to_vec(),                             // another size
        ];
        for row in wrong {
            assert!(tree().add(&[(300, Some(0))], &row).is_err());
        }
    }

    #[test]
    fn loops_end() {
        let mut tree = tree();
        tree.add(&[(100, None)], &node(1, &[(0, 0, [0, 0], 100), (0, 0, [10, 0], 500)])).unwrap();
        assert!(tree.seek(&[0]).is_err());
        assert!(tree.whole().is_err());
        let mut again = self::tree();
        again.add(&[(100, None)], &node(1, &[(0, 0, [0, 0], 300), (0, 0, [10, 0], 300)])).unwrap();
        assert!(again.whole().is_err());
        for address in 0..1000 {
            if again.add(&[(address, None)], &node(0, &[(1, 0, [0, 0], 1)])).is_err() {
                return;
            }
        }
        panic!("more nodes than the file has");
    }

    #[test]
    fn chunks_out_of_order_and_beyond_the_shape_are_refused_by_the_whole_only() {
        let mut tree = tree();
        tree.add(&[(100, None)], &node(0, &[(9, 0, [0, 5], 2000), (9, 0, [20, 0], 2000)])).unwrap();
        assert_eq!(tree.seek(&[1]).unwrap(), Answer::Found(vec![2000], vec![9]));
        assert!(tree.whole().is_err());
    }

    #[test]
    fn forms_that_cannot_be_are_refused() {
        for (grid, chunk_shape, offset_size, most) in [
            (vec![], vec![], 8, 4),
            (vec![2], vec![0], 8, 4),
            (vec![2, 2], vec![1], 8, 4),
            (vec![2], vec![1], 9, 4),
            (vec![2], vec![1], 8, 0),
            (vec![1 << 40, 1 << 40], vec![1, 1], 8, 4),
        ] {
            assert!(Tree::new(0, Form { grid, chunk_shape, offset_size, most, base: 0, size: 1 }).is_err());
        }
    }
}
