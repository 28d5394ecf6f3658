//! Where chunks lie, by those parts of an index that lead to them, which are read from the file as they are needed.
//!
//! All kinds of indexes that have parts: B-trees of both versions, fixed arrays and extensible arrays. Parts are kept, in
//! little memory. Whatever is unusual is refused, broken or not, and Python reads the whole index: it then says what is
//! wrong.

use std::collections::HashMap;
use std::sync::Arc;

use super::{COUNTABLE, Form, MOST_LEVELS, Node, Tree, product, small, wide};
use crate::codecs::checksums::lookup3;
use crate::error::{Error, Result};
use crate::manifest::NOT_STORED;

/// The most bytes of a part, and of all that are kept.
const LARGEST: u64 = 1 << 24;
const MOST_KEPT: usize = 1 << 24;
/// Bytes of a checksum.
const SEAL: usize = 4;

/// Reads bytes of the file from a place on: as many as there is room for.
pub type Read<'a> = &'a dyn Fn(u64, &mut [u8]) -> Result<()>;

/// Which index it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A B-tree of version 1.
    Nodes,
    /// A B-tree of version 2.
    Records,
    /// A fixed array.
    Fixed,
    /// An extensible array.
    Extensible,
}

/// What the file and the dataset say of chunks that an element of an index leads to.
#[derive(Debug)]
pub struct Chunk {
    /// Bytes of a chunk without filters.
    pub bytes: u64,
    /// The number of filters.
    pub filters: u32,
    /// Bytes of a length in the file.
    pub length_size: usize,
    /// The dimension that may grow, by which an array of elements counts first.
    pub first: usize,
    /// The lengths by which it counts.
    pub lengths: Vec<u64>,
}

/// An index of which no part is here.
#[derive(Debug)]
pub struct Index {
    kind: Kind,
    address: u64,
    tree: Tree,
    chunk: Chunk,
    /// More parts than it has: if parts are needed again and again, the whole index is better read.
    most: u64,
}

/// Parts that are here.
#[derive(Default)]
pub struct Kept {
    head: Option<Arc<Head>>,
    parts: HashMap<u64, Arc<Part>>,
    bytes: usize,
    /// The number of parts that were read.
    count: u64,
}

enum Head {
    Nodes,
    Records(Records),
    Fixed(Fixed),
    Extensible(Extensible),
}

struct Records {
    size: usize,
    node: u64,
    depth: u16,
    root: Option<(u64, u64)>,
    /// Bytes of the numbers of records: in a node, and in all nodes below one of each level.
    widths: Vec<usize>,
}

struct Fixed {
    size: usize,
    bits: u32,
    count: u64,
    block: u64,
    /// Which pages are stored, by bits; None: there are no pages.
    marks: Option<Vec<u8>>,
}

struct Extensible {
    size: usize,
    bits: u32,
    in_index: u64,
    least: u64,
    pointers: u64,
    page_bits: u32,
    count: u64,
    /// Elements in the first block, and the addresses in it.
    inner: Vec<u8>,
    addresses: Vec<u8>,
}

enum Part {
    Node(Node),
    Records {
        level: u16,
        count: u64,
        numbers: Vec<u64>,
        raw: Vec<u8>,
        children: Vec<(u64, u64)>,
    },
    Elements(Vec<u8>),
    /// Marks of pages, with the bytes of those of one block, and addresses of blocks.
    Table(Vec<u8>, Vec<u8>),
}

/// The leaf in which the last chunk was found, and the numbers of all chunks that it can have.
type Leaf = Option<(u64, u64, Arc<Part>)>;

/// Offset and length of a chunk that is stored.
type Place = Option<(u64, u64)>;

impl Index {
    /// An index at an address.
    ///
    /// # Errors
    /// If there are too many chunks to count, or the sizes cannot be.
    pub fn new(kind: Kind, address: u64, form: Form, chunk: Chunk) -> Result<Self> {
        let is_array = matches!(kind, Kind::Fixed | Kind::Extensible);
        let is_wrong = is_array && (chunk.lengths.len() != form.grid.len() || chunk.first >= form.grid.len());
        if is_wrong || !(1..=8).contains(&chunk.length_size) || chunk.filters > 32 {
            return Err(Error::refused("an index of another form"));
        }
        let per_part = match kind {
            Kind::Nodes => form.most as u64,
            Kind::Records => 32,
            Kind::Fixed => 1024,
            Kind::Extensible => 512,
        };
        let tree = Tree::new(address, form)?;
        let most = 1024 + 4 * (product(tree.weights[0], tree.form.grid[0])? / per_part);
        Ok(Self { kind, address, tree, chunk, most })
    }

    fn form(&self) -> &Form {
        &self.tree.form
    }

    /// Return where chunks lie, by number, with `NOT_STORED` as the length of those that are not stored.
    ///
    /// # Errors
    /// If something is unusual, or more would be read than the file has.
    pub fn seek(&self, numbers: &[u64], kept: &mut Kept, read: Read<'_>) -> Result<(Vec<u64>, Vec<u64>)> {
        let mut walk = Walk { index: self, kept, read, left: self.form().size };
        let head = walk.head()?;
        let (mut offsets, mut lengths) = (Vec::with_capacity(numbers.len()), Vec::with_capacity(numbers.len()));
        let mut leaf = None;
        for &number in numbers {
            let found = match &*head {
                Head::Nodes => walk.node(number, &mut leaf)?,
                Head::Records(records) => walk.record(records, number, &mut leaf)?,
                Head::Fixed(fixed) => walk.in_fixed(fixed, self.position(number)?, &mut leaf)?,
                Head::Extensible(array) => walk.in_extensible(array, self.position(number)?, &mut leaf)?,
            };
            let (offset, length) = found.unwrap_or((0, NOT_STORED));
            offsets.push(offset);
            lengths.push(length);
        }
        Ok((offsets, lengths))
    }

    /// Return the position of a chunk in an array of elements.
    fn position(&self, number: u64) -> Result<u64> {
        let (grid, first) = (&self.form().grid, self.chunk.first);
        let (mut rest, mut weight, mut found, mut growing) = (number, 1_u64, 0_u64, 0);
        for axis in (0..grid.len()).rev() {
            let coordinate = if axis == 0 { rest } else { rest % grid[axis].max(1) };
            rest /= grid[axis].max(1);
            if axis == first {
                growing = coordinate;
                continue;
            }
            found = product(coordinate, weight)?.checked_add(found).ok_or_else(uncountable)?;
            weight = product(weight, self.chunk.lengths[axis].max(1))?;
        }
        product(growing, weight)?.checked_add(found).ok_or_else(uncountable)
    }

    /// Return where the chunk of an element or a record lies.
    fn place(&self, raw: &[u8]) -> Result<Place> {
        let o = self.form().offset_size;
        let address = wide(&raw[..o]);
        if is_undefined(&raw[..o]) {
            return Ok(None);
        }
        let mut length = self.chunk.bytes;
        if self.chunk.filters > 0 {
            let stop = raw.len() - 4;
            length = wide(&raw[o..stop]);
            let all = u32::MAX.checked_shr(32 - self.chunk.filters).unwrap_or(0);
            if small(&raw[stop..]) & all != 0 {
                return Err(Error::refused("a chunk that skips filters"));
            }
        }
        let offset = address.checked_add(self.form().base).ok_or_else(beyond)?;
        if offset.checked_add(length).is_none_or(|stop| stop > self.form().size) {
            return Err(beyond());
        }
        Ok(Some((offset, length)))
    }

    /// Check the bytes of an element.
    fn checked_size(&self, size: usize) -> Result<usize> {
        let o = self.form().offset_size;
        let is_known = if self.chunk.filters > 0 { (o + 5..=o + 12).contains(&size) } else { size == o };
        if is_known { Ok(size) } else { Err(Error::refused("elements of another size")) }
    }
}

/// Numbers that are taken from the bytes of a structure, one after the other.
struct Cursor<'a>(&'a [u8]);

impl<'a> Cursor<'a> {
    fn take(&mut self, count: usize) -> Result<&'a [u8]> {
        let (taken, rest) =
            self.0.split_at_checked(count).ok_or_else(|| Error::refused("a structure that is too short"))?;
        self.0 = rest;
        Ok(taken)
    }

    fn number(&mut self, size: usize) -> Result<u64> {
        self.take(size).map(wide)
    }

    fn address(&mut self, size: usize) -> Result<Option<u64>> {
        self.take(size).map(|raw| (!is_undefined(raw)).then(|| wide(raw)))
    }
}

/// One call of `seek`.
struct Walk<'a> {
    index: &'a Index,
    kept: &'a mut Kept,
    read: Read<'a>,
    /// How many bytes may be read: those that are no parts of the same file twice.
    left: u64,
}

impl Walk<'_> {
    /// Read bytes at an address; those behind the end of the file are zero if it may be short.
    fn raw(&mut self, address: u64, length: u64, may_be_short: bool) -> Result<Vec<u8>> {
        let form = self.index.form();
        let start = address.checked_add(form.base).filter(|&start| start < form.size).ok_or_else(beyond)?;
        let there = length.min(form.size - start);
        if length > LARGEST || (there < length && !may_be_short) {
            return Err(beyond());
        }
        self.left = self.left.checked_sub(there).ok_or_else(|| Error::refused("more parts than the file has"))?;
        let mut bytes = vec![0; usize::try_from(length).map_err(|_| beyond())?];
        (self.read)(start, &mut bytes[..usize::try_from(there).map_err(|_| beyond())?])?;
        Ok(bytes)
    }

    /// Read a structure with its checksum, which is cut off.
    fn sealed(&mut self, address: u64, length: u64, signature: &[u8]) -> Result<Vec<u8>> {
        let mut bytes = self.raw(address, length, false)?;
        let end = bytes.len().checked_sub(SEAL).ok_or_else(beyond)?;
        if !bytes.starts_with(signature) || small(&bytes[end..]) != lookup3(&bytes[..end]) {
            return Err(Error::refused("another structure, or a wrong checksum"));
        }
        bytes.truncate(end);
        Ok(bytes)
    }

    /// Return the part at an address, which `load` reads if it is not here.
    fn part(&mut self, address: u64, load: impl FnOnce(&mut Self) -> Result<(Part, usize)>) -> Result<Arc<Part>> {
        if let Some(known) = self.kept.parts.get(&address) {
            return Ok(Arc::clone(known));
        }
        self.kept.count += 1;
        if self.kept.count > self.index.most {
            return Err(Error::refused("the whole index is better read"));
        }
        let (part, bytes) = load(self)?;
        self.kept.bytes += bytes + size_of::<Part>();
        if self.kept.bytes > MOST_KEPT {
            self.kept.parts.clear();
            self.kept.bytes = bytes;
        }
        let part = Arc::new(part);
        self.kept.parts.insert(address, Arc::clone(&part));
        Ok(part)
    }

    fn head(&mut self) -> Result<Arc<Head>> {
        if let Some(head) = &self.kept.head {
            return Ok(Arc::clone(head));
        }
        let head = Arc::new(match self.index.kind {
            Kind::Nodes => Head::Nodes,
            Kind::Records => Head::Records(self.records()?),
            Kind::Fixed => Head::Fixed(self.fixed()?),
            Kind::Extensible => Head::Extensible(self.extensible()?),
        });
        self.kept.head = Some(Arc::clone(&head));
        Ok(head)
    }

    // -- B-trees of version 1 ------------------------------------------------------------

    fn node(&mut self, number: u64, leaf: &mut Leaf) -> Result<Place> {
        let tree = &self.index.tree;
        if let Some((first, stop, part)) = leaf
            && (*first..*stop).contains(&number)
            && let Part::Node(node) = &**part
        {
            return Ok(of_leaf(node, number));
        }
        let (mut address, mut level, mut first, mut stop) = (self.index.address, None, 0, u64::MAX);
        loop {
            let part = self.part(address, |walk| {
                let row = walk.raw(address, tree.node_bytes() as u64, true)?;
                let node = tree.parsed(&row, level)?;
                let bytes = node.numbers.len() * 20;
                Ok((Part::Node(node), bytes))
            })?;
            let Part::Node(node) = &*part else { return Err(two_ways()) };
            if level.is_some_and(|level| level != node.level) {
                return Err(two_ways());
            }
            check_within(&node.numbers, first, stop)?;
            if node.level == 0 {
                let found = of_leaf(node, number);
                *leaf = Some((first, stop, part));
                return Ok(found);
            }
            let after = node.numbers.partition_point(|&each| each <= number);
            let Some(at) = after.checked_sub(1) else { return Ok(None) };
            first = first.max(node.numbers[at]);
            stop = node.numbers.get(after).map_or(stop, |&next| stop.min(next));
            // So a loop ends.
            (address, level) = (node.children[at], Some(node.level - 1));
        }
    }

    // -- B-trees of version 2 ------------------------------------------------------------

    fn records(&mut self) -> Result<Records> {
        let (form, chunk) = (self.index.form(), &self.index.chunk);
        let (o, rank) = (form.offset_size, form.grid.len());
        let raw = self.sealed(self.index.address, (22 + o + chunk.length_size) as u64, b"BTHD\0")?;
        let mut cursor = Cursor(&raw[5..]);
        let (kind, node, size, depth) = (cursor.number(1)?, cursor.number(4)?, cursor.number(2)?, cursor.number(2)?);
        cursor.take(2)?;
        let (root, count) = (cursor.address(o)?, cursor.number(2)?);
        let expected = if chunk.filters > 0 { 11 } else { 10 };
        let wide_size = usize::try_from(size).map_err(|_| beyond())?;
        self.index.checked_size(wide_size.checked_sub(8 * rank).ok_or_else(beyond)?)?;
        if kind != expected || node < 10 + size || node > LARGEST || depth > u64::from(MOST_LEVELS) {
            return Err(Error::refused("a tree of another form"));
        }
        let mut most = (node - 10) / size;
        let wide = width(most);
        let (mut widths, mut cumulated) = (vec![wide, 0], most);
        for _ in 0..depth {
            let pointer = (o + wide + widths[widths.len() - 1]) as u64;
            most = (node - 10).saturating_sub(pointer) / (size + pointer);
            cumulated = most.saturating_add(1).saturating_mul(cumulated).saturating_add(most).min(1 << 63);
            widths.push(width(cumulated));
        }
        let depth = u16::try_from(depth).map_err(|_| beyond())?;
        Ok(Records { size: wide_size, node, depth, root: root.map(|root| (root, count)), widths })
    }

    fn record(&mut self, records: &Records, number: u64, leaf: &mut Leaf) -> Result<Place> {
        let width = records.size - 8 * self.index.form().grid.len();
        let index = self.index;
        let at_place = |raw: &[u8], at: usize| index.place(&raw[at * records.size..at * records.size + width]);
        if let Some((first, stop, part)) = leaf
            && (*first..*stop).contains(&number)
            && let Part::Records { numbers, raw, .. } = &**part
        {
            return numbers.binary_search(&number).map_or(Ok(None), |at| at_place(raw, at));
        }
        let Some((mut address, mut count)) = records.root else { return Ok(None) };
        let (mut first, mut stop) = (0, u64::MAX);
        for level in (0..=records.depth).rev() {
            let part = self.part(address, |walk| walk.node_of_records(records, address, count, level))?;
            let Part::Records { level: own, count: held, numbers, raw, children } = &*part else {
                return Err(two_ways());
            };
            if *own != level || *held != count {
                return Err(two_ways());
            }
            check_within(numbers, first, stop)?;
            let at = match numbers.binary_search(&number) {
                Ok(at) => {
                    let found = at_place(raw, at);
                    if level == 0 {
                        *leaf = Some((first, stop, part));
                    }
                    return found;
                }
                Err(at) => at,
            };
            if level == 0 {
                *leaf = Some((first, stop, part));
                return Ok(None);
            }
            first = at.checked_sub(1).map_or(first, |before| first.max(numbers[before] + 1));
            stop = numbers.get(at).map_or(stop, |&next| stop.min(next));
            (address, count) = children[at];
        }
        Ok(None)
    }

    fn node_of_records(&mut self, records: &Records, address: u64, count: u64, level: u16) -> Result<(Part, usize)> {
        let (o, rank, size) = (self.index.form().offset_size, self.index.form().grid.len(), records.size);
        let wide_count = records.widths[0];
        let pointer = if level > 0 { o + wide_count + records.widths[usize::from(level)] } else { 0 };
        // Neither number is large: `count` has 8 bytes at most, and what is beyond a node is refused.
        let each = (size + pointer) as u64;
        let length = count.checked_mul(each).and_then(|length| length.checked_add((6 + pointer + SEAL) as u64));
        let length = length.filter(|&length| length <= records.node).ok_or_else(beyond)?;
        let raw = self.sealed(address, length, if level > 0 { b"BTIN\0" } else { b"BTLF\0" })?;
        if raw[5] != if self.index.chunk.filters > 0 { 11 } else { 10 } {
            return Err(two_ways());
        }
        let end = 6 + usize::try_from(count).map_err(|_| beyond())? * size;
        let mut numbers: Vec<u64> = Vec::with_capacity((end - 6) / size);
        for record in raw[6..end].chunks_exact(size) {
            let mut number = 0;
            for (axis, coordinate) in record[size - 8 * rank..].chunks_exact(8).map(wide).enumerate() {
                if axis > 0 && coordinate >= self.index.form().grid[axis] {
                    return Err(Error::refused("a chunk beyond the grid"));
                }
                number += product(coordinate, self.index.tree.weights[axis])?;
            }
            if number >= COUNTABLE || numbers.last().is_some_and(|&before| before >= number) {
                return Err(Error::refused("chunks out of order"));
            }
            numbers.push(number);
        }
        let mut children = Vec::new();
        if level > 0 {
            for entry in raw[end..].chunks_exact(pointer) {
                let mut cursor = Cursor(entry);
                children.push((cursor.address(o)?.ok_or_else(beyond)?, cursor.number(wide_count)?));
            }
            if children.len() != numbers.len() + 1 {
                return Err(two_ways());
            }
        }
        let bytes = raw.len() + 8 * numbers.len() + 16 * children.len();
        Ok((Part::Records { level, count, numbers, raw: raw[6..end].to_vec(), children }, bytes))
    }

    // -- fixed arrays --------------------------------------------------------------------

    fn fixed(&mut self) -> Result<Fixed> {
        let (o, l) = (self.index.form().offset_size, self.index.chunk.length_size);
        let raw = self.sealed(self.index.address, (8 + l + o + SEAL) as u64, b"FAHD\0")?;
        let mut cursor = Cursor(&raw[6..]);
        let (size, bits, count) = (cursor.number(1)?, cursor.number(1)?, cursor.number(l)?);
        let block = cursor.address(o)?.ok_or_else(|| Error::refused("an array without a block"))?;
        let least = self.index.chunk.lengths.iter().try_fold(1, |before, &each| product(before, each))?;
        if bits > 24 || count < least || count >= COUNTABLE {
            return Err(Error::refused("an array of another form"));
        }
        let size = self.index.checked_size(usize::try_from(size).map_err(|_| beyond())?)?;
        let mut found = Fixed { size, bits: u32::try_from(bits).map_err(|_| beyond())?, count, block, marks: None };
        if count > 1 << bits {
            let pages = ((count - 1) >> bits) + 1;
            let raw = self.sealed(block, (6 + o + SEAL) as u64 + pages.div_ceil(8), b"FADB\0")?;
            found.marks = Some(raw[6 + o..].to_vec());
        }
        Ok(found)
    }

    fn in_fixed(&mut self, fixed: &Fixed, position: u64, leaf: &mut Leaf) -> Result<Place> {
        if let Some(found) = self.of_elements(leaf, position, fixed.size) {
            return found;
        }
        if position >= fixed.count {
            return Ok(None);
        }
        let (o, size) = (self.index.form().offset_size, fixed.size as u64);
        let Some(marks) = &fixed.marks else {
            let head = 6 + o;
            let length = product(fixed.count, size)?;
            let part = self.part(fixed.block, |walk| {
                let raw = walk.sealed(fixed.block, length + (head + SEAL) as u64, b"FADB\0")?;
                Ok(elements(raw[head..].to_vec()))
            })?;
            *leaf = Some((0, fixed.count, part));
            return self.of_elements(leaf, position, fixed.size).unwrap_or(Ok(None));
        };
        let page = position >> fixed.bits;
        if !is_marked(marks, page) {
            return Ok(None);
        }
        let first = page << fixed.bits;
        let count = (1 << fixed.bits).min(fixed.count - first);
        let start = fixed.block.checked_add((6 + o + marks.len() + SEAL) as u64).ok_or_else(beyond)?;
        let place = product(page, (size << fixed.bits) + SEAL as u64)?.checked_add(start).ok_or_else(beyond)?;
        let part = self.part(place, |walk| walk.sealed(place, count * size + SEAL as u64, b"").map(elements))?;
        *leaf = Some((first, first + count, part));
        self.of_elements(leaf, position, fixed.size).unwrap_or(Ok(None))
    }

    /// Return where a chunk lies if its element is in the part that was used last.
    fn of_elements(&self, leaf: &Leaf, position: u64, size: usize) -> Option<Result<Place>> {
        let Some((first, stop, part)) = leaf else { return None };
        if !(*first..*stop).contains(&position) {
            return None;
        }
        let Part::Elements(raw) = &**part else { return Some(Err(two_ways())) };
        let at = usize::try_from(position - first).ok()?.checked_mul(size)?;
        let element = raw.get(at..at.checked_add(size)?);
        Some(element.map_or_else(|| Err(two_ways()), |element| self.index.place(element)))
    }

    // -- extensible arrays ---------------------------------------------------------------

    fn extensible(&mut self) -> Result<Extensible> {
        let (o, l) = (self.index.form().offset_size, self.index.chunk.length_size);
        let raw = self.sealed(self.index.address, (12 + 6 * l + o + SEAL) as u64, b"EAHD\0")?;
        let mut cursor = Cursor(&raw[6..]);
        let mut one = || cursor.number(1);
        let (size, bits, in_index, least, pointers, page_bits) = (one()?, one()?, one()?, one()?, one()?, one()?);
        cursor.take(4 * l)?;
        let count = cursor.number(l)?;
        cursor.take(l)?;
        let block = cursor.address(o)?.ok_or_else(|| Error::refused("an array without a block"))?;
        let bits = u32::try_from(bits).map_err(|_| beyond())?;
        let is_valid = (1..=64).contains(&bits) && least.is_power_of_two() && pointers.is_power_of_two();
        if !is_valid || pointers < 2 || page_bits > 24 || u64::BITS - least.leading_zeros() > bits {
            return Err(Error::refused("an array of another form"));
        }
        let size = self.index.checked_size(usize::try_from(size).map_err(|_| beyond())?)?;
        let page_bits = u32::try_from(page_bits).map_err(|_| beyond())?;
        let mut found = Extensible {
            size,
            bits,
            in_index,
            least,
            pointers,
            page_bits,
            count,
            inner: Vec::new(),
            addresses: Vec::new(),
        };
        let addresses = 2 * (pointers - 1) + u64::from(found.supers().saturating_sub(found.first_super()));
        let own = in_index * size as u64;
        let raw = self.sealed(block, (6 + o + SEAL) as u64 + own + addresses * o as u64, b"EAIB\0")?;
        let (inner, rest) = raw[6 + o..].split_at(usize::try_from(own).map_err(|_| beyond())?);
        (found.inner, found.addresses) = (inner.to_vec(), rest.to_vec());
        Ok(found)
    }

    fn in_extensible(&mut self, array: &Extensible, position: u64, leaf: &mut Leaf) -> Result<Place> {
        if position >= array.count {
            return Ok(None);
        }
        if let Some(found) = self.of_elements(leaf, position, array.size) {
            return found;
        }
        let o = self.index.form().offset_size;
        if position < array.in_index {
            let at = usize::try_from(position).map_err(|_| beyond())? * array.size;
            return self.index.place(array.inner.get(at..at + array.size).ok_or_else(beyond)?);
        }
        let ahead = position - array.in_index;
        let group = (ahead / array.least + 1).ilog2();
        if group >= array.supers() {
            return Ok(None);
        }
        let length = array.least.checked_shl(group.div_ceil(2)).filter(|&it| it < COUNTABLE).ok_or_else(uncountable)?;
        let within = ahead - array.least * ((1 << group) - 1);
        let (number, in_block) = (within / length, within % length);
        let head = 6 + o + (array.bits as usize).div_ceil(8);
        let is_paged = length > 1 << array.page_bits;
        let pages = if is_paged { length >> array.page_bits } else { 0 };
        let block = if group < array.first_super() {
            let before = ((2 + u64::from(group % 2)) << (group / 2)) - 2;
            if is_paged { None } else { address_in(&array.addresses, before + number, o)? }
        } else {
            let at = 2 * (array.pointers - 1) + u64::from(group - array.first_super());
            let Some(address) = address_in(&array.addresses, at, o)? else { return Ok(None) };
            let blocks = 1_u64 << (group / 2);
            let of_marks = product(blocks, pages.div_ceil(8))?;
            let bytes = product(blocks, o as u64)?.checked_add(of_marks).ok_or_else(beyond)?;
            let part = self.part(address, |walk| {
                let raw =
                    walk.sealed(address, bytes.checked_add((head + SEAL) as u64).ok_or_else(beyond)?, b"EASB\0")?;
                let (marks, addresses) = raw[head..].split_at(usize::try_from(of_marks).map_err(|_| beyond())?);
                Ok((Part::Table(marks.to_vec(), addresses.to_vec()), raw.len()))
            })?;
            let Part::Table(marks, addresses) = &*part else { return Err(two_ways()) };
            if is_paged && !is_marked(marks, number * pages + (in_block >> array.page_bits)) {
                return Ok(None);
            }
            address_in(addresses, number, o)?
        };
        let Some(block) = block else { return Ok(None) };
        let size = array.size as u64;
        let part;
        if is_paged {
            let page = in_block >> array.page_bits;
            let bytes = (size << array.page_bits) + SEAL as u64;
            let place = product(page, bytes)?.checked_add((head + SEAL) as u64);
            let place = place.and_then(|place| place.checked_add(block)).ok_or_else(beyond)?;
            part = self.part(place, |walk| walk.sealed(place, bytes, b"").map(elements))?;
            let first = position - in_block % (1 << array.page_bits);
            *leaf = Some((first, first + (1 << array.page_bits), part));
        } else {
            let bytes = product(length, size)?.checked_add((head + SEAL) as u64).ok_or_else(beyond)?;
            part = self
                .part(block, |walk| walk.sealed(block, bytes, b"EADB\0").map(|raw| elements(raw[head..].to_vec())))?;
            *leaf = Some((position - in_block, position - in_block + length, part));
        }
        self.of_elements(leaf, position, array.size).unwrap_or(Ok(None))
    }
}

impl Extensible {
    /// The number of groups of data blocks: each has twice as many elements as the one before.
    fn supers(&self) -> u32 {
        1 + self.bits - self.least.ilog2()
    }

    /// The first group of which the addresses are in a secondary block.
    fn first_super(&self) -> u32 {
        2 * self.pointers.ilog2()
    }
}

/// Check that the chunks of a node, which are in order, are between those beside it. Otherwise some are not found.
fn check_within(numbers: &[u64], first: u64, stop: u64) -> Result<()> {
    let is_within =
        numbers.first().is_none_or(|&least| least >= first) && numbers.last().is_none_or(|&most| most < stop);
    if is_within { Ok(()) } else { Err(Error::refused("chunks out of order")) }
}

fn elements(raw: Vec<u8>) -> (Part, usize) {
    let bytes = raw.len();
    (Part::Elements(raw), bytes)
}

fn of_leaf(node: &Node, number: u64) -> Place {
    node.numbers.binary_search(&number).ok().map(|at| (node.children[at], u64::from(node.lengths[at])))
}

fn address_in(addresses: &[u8], number: u64, size: usize) -> Result<Option<u64>> {
    let at = usize::try_from(number).ok().and_then(|number| number.checked_mul(size)).ok_or_else(beyond)?;
    let rest = addresses.get(at..).ok_or_else(beyond)?;
    Cursor(rest).address(size)
}

/// Whether a bit is set, of which the first is the highest of the first byte.
fn is_marked(marks: &[u8], number: u64) -> bool {
    let byte = usize::try_from(number / 8).ok().and_then(|at| marks.get(at));
    byte.is_some_and(|byte| byte & (0x80 >> (number % 8)) != 0)
}

fn is_undefined(raw: &[u8]) -> bool {
    raw.iter().all(|&byte| byte == 0xff)
}

/// The bytes that a number up to `limit` takes.
fn width(limit: u64) -> usize {
    limit.max(1).ilog2() as usize / 8 + 1
}

fn beyond() -> Error {
    Error::refused("a part of the index that cannot be there")
}

fn two_ways() -> Error {
    Error::refused("a part of the index that is another one, too")
}

fn uncountable() -> Error {
    Error::refused("too many chunks to count")
}

#[cfg(test)]
mod tests {
    use super::*;

    const SIZE: usize = 4096;

    fn index(kind: Kind, address: u64) -> Index {
        let form =
            Form { grid: vec![2, 3], chunk_shape: vec![10, 5], offset_size: 8, most: 4, base: 0, size: SIZE as u64 };
        Index::new(kind, address, form, Chunk { bytes: 50, filters: 0, length_size: 8, first: 0, lengths: vec![4, 3] })
            .unwrap()
    }

    fn file(parts: &[(usize, &[u8])]) -> Vec<u8> {
        let mut bytes = vec![0; SIZE];
        for (at, part) in parts {
            bytes[*at..*at + part.len()].copy_from_slice(part);
        }
        bytes
    }

    fn sealed(parts: &[&[u8]]) -> Vec<u8> {
        let mut bytes = parts.concat();
        bytes.extend(lookup3(&bytes).to_le_bytes());
        bytes
    }

    type Found = Result<(Vec<u64>, Vec<u64>)>;

    fn seek(index: &Index, bytes: &[u8], numbers: &[u64]) -> Found {
        index.seek(numbers, &mut Kept::default(), &|start, out| {
            let start = usize::try_from(start).unwrap();
            out.copy_from_slice(&bytes[start..start + out.len()]);
            Ok(())
        })
    }

    fn fixed(size: u8, bits: u8, count: u64) -> Vec<u8> {
        sealed(&[b"FAHD\0\0", &[size, bits], &count.to_le_bytes(), &1000_u64.to_le_bytes()])
    }

    #[test]
    fn elements_of_a_fixed_array_are_found() {
        let places: Vec<_> = [100, u64::MAX, 300, 400, 500, 4090].iter().chain(&[0; 6]).copied().collect();
        let raw: Vec<_> = places.iter().flat_map(|place: &u64| place.to_le_bytes()).collect();
        let block = sealed(&[b"FADB\0\0", &[0; 8], &raw]);
        let bytes = file(&[(10, &fixed(8, 10, 12)), (1000, &block)]);
        let array = index(Kind::Fixed, 10);
        let found = seek(&array, &bytes, &[2, 1, 4, 2]).unwrap();
        assert_eq!(found, (vec![300, 0, 500, 300], vec![50, NOT_STORED, 50, 50]));
        assert!(seek(&array, &bytes, &[5]).is_err()); // beyond the file
        let mut wrong = bytes;
        wrong[1030] ^= 1;
        assert!(seek(&array, &wrong, &[2]).is_err());
    }

    #[test]
    fn sizes_that_cannot_be_are_refused_at_once() {
        for (size, bits, count) in
            [(0, 10, 12), (255, 10, 12), (8, 255, 12), (8, 0, u64::MAX), (8, 24, 1 << 23), (8, 10, 11)]
        {
            assert!(seek(&index(Kind::Fixed, 10), &file(&[(10, &fixed(size, bits, count))]), &[0]).is_err());
        }
        for bytes in
            [[255; 6], [8, 64, 0, 1, 2, 255], [8, 64, 0, 1, 128, 10], [8, 64, 0, 3, 4, 10], [8, 3, 0, 128, 4, 10]]
        {
            let rest = [&[0; 32], &u64::MAX.to_le_bytes()[..], &[0; 8], &1000_u64.to_le_bytes()].concat();
            let head = sealed(&[b"EAHD\0\0", &bytes, &rest]);
            assert!(seek(&index(Kind::Extensible, 10), &file(&[(10, &head)]), &[0, 5]).is_err());
        }
        for (node, size, depth) in
            [(u32::MAX, 24_u16, 3_u16), (2048, 24, 65), (20, 24, 0), (2048, 0, 0), (2048, 24, 64)]
        {
            let sizes = [&node.to_le_bytes()[..], &size.to_le_bytes(), &depth.to_le_bytes(), &[0; 2]].concat();
            let head = sealed(&[b"BTHD\0\x0a", &sizes, &10_u64.to_le_bytes(), &[255; 2], &[255; 8]]);
            assert!(seek(&index(Kind::Records, 10), &file(&[(10, &head)]), &[0]).is_err());
        }
    }

    #[test]
    fn a_node_with_chunks_of_the_one_beside_it_is_refused() {
        let node = |level: u8, entries: &[([u64; 2], u64)]| {
            let mut row = [b"TREE\x01", &[level, u8::try_from(entries.len()).unwrap(), 0][..], &[255; 16]].concat();
            for ([y, x], child) in entries {
                let numbers = [1, *y, *x, 0, *child];
                row.extend(numbers.iter().flat_map(|number| number.to_le_bytes()));
            }
            row
        };
        let (root, second) = (node(1, &[([0, 0], 1000), ([10, 0], 2000)]), node(0, &[([10, 0], 7), ([10, 10], 8)]));
        let array = index(Kind::Nodes, 10);
        for (within, first) in
            [(true, node(0, &[([0, 0], 5), ([0, 10], 6)])), (false, node(0, &[([0, 0], 5), ([10, 5], 6)]))]
        {
            let found = seek(&array, &file(&[(10, &root), (1000, &first), (2000, &second)]), &[0, 3, 4]);
            let expected = (vec![5, 7, 0], vec![1, 1, NOT_STORED]);
            assert_eq!(found.ok(), within.then_some(expected));
        }
    }

    #[test]
    fn loops_end_and_no_more_is_read_than_the_file_has() {
        let mut root = b"TREE\x01\x01\x01\0".to_vec();
        root.extend([255; 16]);
        root.extend([0; 32].iter().chain(&10_u64.to_le_bytes()));
        assert!(seek(&index(Kind::Nodes, 10), &file(&[(10, &root)]), &[3]).is_err());
        let array = index(Kind::Nodes, 10);
        let mut kept = Kept::default();
        let leaf = file(&[(10, b"TREE\x01\0\0\0")]);
        for _ in 0..100_000 {
            kept.parts.clear();
            let read = |start: u64, out: &mut [u8]| {
                let start = usize::try_from(start).unwrap();
                out.copy_from_slice(&leaf[start..start + out.len()]);
                Ok(())
            };
            if array.seek(&[3], &mut kept, &read).is_err() {
                assert_eq!(kept.count, array.most + 1);
                return;
            }
        }
        panic!("the same part is read for ever");
    }
}
