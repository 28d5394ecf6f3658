//! Many chunks and an index of where they are, in one value: what `omnizarr.codecs.sharding` is in Python.

use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};

use smallvec::SmallVec;

use crate::cache::{Keep, share_of};
use crate::chain::runs::Runs;
use crate::chain::{Chain, Change, SMALL, Scratch, resized};
use crate::error::{Error, Result};
use crate::plan::{Piece, Plan, Selection};
use crate::scatter::Memory;
use crate::store::{Patches, Value};
use crate::threads::{map_on_threads, on_threads};

/// Chunks with at most this number of bytes between them are fetched together.
const GAP: u64 = 16 * 1024;
/// Chunks that are fetched together have at most this number of bytes, which fits into a processor's cache.
const LARGEST: u64 = 1024 * 1024;
/// If several threads share the work, groups of chunks may be smaller, but their limit is not below this.
const SMALLEST: u64 = 32 * 1024;
/// Writers may align chunks to a multiple of this number, which leaves unused bytes between them.
const ALIGNMENT: usize = 4096;
/// A shard is copied and changed only if the changed chunks are at most this fraction (one nth) of its chunks.
const LEAST_KEPT: usize = 4;
const MISSING: u64 = u64::MAX;

/// Offset and size of a chunk in the shard; None if the chunk is not stored.
pub type Entry = Option<(u64, usize)>;

/// A shard.
pub struct Shard {
    /// Number of inner chunks along each dimension.
    grid: Vec<usize>,
    /// Difference between the numbers in the index of neighbouring chunks along each dimension.
    strides: Vec<usize>,
    count: usize,
    /// The codecs of an inner chunk.
    pub inner: Chain,
    index: Chain,
    index_size: usize,
    index_at_end: bool,
    /// The numbers of the chunks in the order in which they are written; empty if that is the order of the numbers.
    sequence: Vec<usize>,
}

/// Appends the encoded chunk with this number to a shard; returns false if the chunk is not to be stored.
type Encode<'a> = dyn Fn(usize, &mut Scratch, &mut Vec<u8>) -> Result<bool> + Sync + 'a;

/// A chunk that is to be placed.
struct Wanted {
    /// The number of its piece in the plan.
    at: usize,
    /// Its number in the index.
    number: usize,
    offset: u64,
    size: usize,
    /// The bytes of the decoded chunk that are needed, if they are so few that fetching a part of the chunk may be enough.
    runs: Option<Runs>,
}

/// What a selection needs of one chunk of a shard.
pub struct Need {
    /// The range of bytes of the chunk in the shard.
    pub bytes: Range<u64>,
    /// The bytes of the decoded chunk that are needed, if they are so few that fetching a part of the chunk may be enough.
    pub runs: Option<Runs>,
}

impl Shard {
    /// Make a shard of a grid of chunks. Chunks are numbered in C order of the axes as permuted by `order`, and written in the
    /// order of `sequence`, which has all numbers, or none if they are written in this order.
    ///
    /// # Errors
    /// If the parts do not fit.
    pub fn new(
        grid: Vec<usize>,
        order: &[usize],
        inner: Chain,
        index: Chain,
        index_at_end: bool,
        sequence: Vec<usize>,
    ) -> Result<Self> {
        let mut strides = vec![0; grid.len()];
        let mut count = 1_usize;
        for &axis in order.iter().rev() {
            strides[axis] = count;
            count = count.checked_mul(grid[axis]).ok_or_else(|| Error::refused("so many chunks"))?;
        }
        let index_size = index.encoded_size().0.ok_or_else(|| Error::refused("an index of no fixed size"))?;
        if count.checked_mul(16) != Some(index.layout.nbytes) {
            return Err(Error::refused("an index of another size"));
        }
        if !sequence.is_empty() && !is_permutation(&sequence, count)? {
            return Err(Error::refused("an order of other chunks"));
        }
        Ok(Self { grid, strides, count, inner, index, index_size, index_at_end, sequence })
    }

    /// Return how many bytes a shard can have at most, if its writer did not waste space.
    #[must_use]
    pub fn bound(&self) -> usize {
        let largest = self.inner.encoded_size().1;
        self.count.saturating_mul(largest.saturating_add(ALIGNMENT)).saturating_add(self.index_size)
    }

    // -- the index ----------------------------------------------------------------

    /// Read the index of a shard.
    ///
    /// # Errors
    /// If it is broken.
    pub fn index_of(&self, value: &dyn Value, scratch: &mut Scratch) -> Result<Vec<Entry>> {
        let size = value.size()?;
        let wanted = self.index_size as u64;
        if size < wanted {
            return Err(Error::broken("the shard is shorter than its index"));
        }
        let start = if self.index_at_end { size - wanted } else { 0 };
        if let Some(bytes) = value.bytes() {
            let start = usize::try_from(start).map_err(|_| Error::broken("a place outside the shard"))?;
            return self.entries(&bytes[start..start + self.index_size], size, scratch);
        }
        let mut stored = filled(0, self.index_size)?;
        if value.read_at(start, &mut stored)? < self.index_size {
            return Err(Error::broken("the shard ends within its index"));
        }
        self.entries(&stored, size, scratch)
    }

    /// Decode an index. `size` is the size of the shard.
    ///
    /// # Errors
    /// If the index is broken, or has entries outside the shard.
    pub fn entries(&self, stored: &[u8], size: u64, scratch: &mut Scratch) -> Result<Vec<Entry>> {
        let mut numbers = filled(0, self.count * 16)?;
        self.index.decode(stored, &mut numbers, scratch)?;
        numbers
            .chunks_exact(16)
            .map(|row| {
                let (offset, nbytes) = (number(&row[..8]), number(&row[8..]));
                if offset == MISSING && nbytes == MISSING {
                    return Ok(None);
                }
                match (offset.checked_add(nbytes), usize::try_from(nbytes)) {
                    (Some(end), Ok(nbytes)) if end <= size => Ok(Some((offset, nbytes))),
                    _ => Err(Error::broken("a chunk lies outside the shard")),
                }
            })
            .collect()
    }

    /// Number of bytes of the stored index.
    #[must_use]
    pub fn index_size(&self) -> usize {
        self.index_size
    }

    /// Whether the index is at the end of the shard, and not at its beginning.
    #[must_use]
    pub fn index_at_end(&self) -> bool {
        self.index_at_end
    }

    /// Return what a selection needs of each chunk. [`Need::runs`] is None for a chunk that should be fetched as a whole: it has
    /// fewer than `least` bytes, or more of it is needed than [`share_of`] says, or probably more than half of its blocks.
    ///
    /// # Errors
    /// If the selection does not fit.
    pub fn needs(
        &self,
        entries: &[Entry],
        selection: &Selection,
        least: usize,
        keep: Option<&Keep<'_>>,
    ) -> Result<Vec<Need>> {
        let plan = Plan::within(selection, &self.inner.layout.shape)?;
        let mut needs = Vec::new();
        for at in 0..plan.len() {
            let piece = plan.piece(at);
            if let Some((offset, size)) = entries[self.number_of(&piece)?] {
                let share = share_of(keep).filter(|_| size >= least);
                let runs = self.inner.few_runs(&piece.selection, share)?;
                let runs = runs.and_then(|runs| self.inner.in_few_blocks(vec![runs]));
                needs.push(Need { bytes: offset..offset + size as u64, runs });
            }
        }
        Ok(needs)
    }

    /// Return the ranges of bytes of the shard that hold the blocks for a need. At least the beginning of the chunk has been
    /// fetched into `value`. Return the range of the whole chunk if it should be fetched as a whole.
    ///
    /// # Errors
    /// If the system fails.
    pub fn blocks_of(&self, need: &Need, value: &dyn Value) -> Result<Vec<Range<u64>>> {
        let Need { bytes, runs } = need;
        let size = usize::try_from(bytes.end - bytes.start).map_err(|_| Error::refused("so many bytes"))?;
        let part = Part { value, start: bytes.start, size };
        let blocks = runs.as_ref().map_or(Ok(None), |runs| self.inner.blocks_of(&part, runs))?;
        let within = |block: Range<u64>| bytes.start + block.start..bytes.start + block.end;
        Ok(blocks.map_or_else(|| vec![bytes.clone()], |blocks| blocks.into_iter().map(within).collect()))
    }

    /// Return the numbers of the chunks that a selection needs.
    ///
    /// # Errors
    /// If the selection does not fit.
    pub fn numbers(&self, selection: &Selection) -> Result<Vec<usize>> {
        let plan = Plan::within(selection, &self.inner.layout.shape)?;
        (0..plan.len()).map(|at| self.number_of(&plan.piece(at))).collect()
    }

    fn number_of(&self, piece: &Piece) -> Result<usize> {
        let mut number = 0;
        for ((&at, &count), &stride) in piece.coords.iter().zip(&self.grid).zip(&self.strides) {
            let at = usize::try_from(at).ok().filter(|&at| at < count);
            number += at.ok_or_else(|| Error::refused("a chunk outside the shard"))? * stride;
        }
        Ok(number)
    }

    // -- reading ------------------------------------------------------------------

    /// Put what is selected of the shard `data` into `memory`.
    ///
    /// # Errors
    /// If the shard is broken.
    pub fn place(&self, data: &[u8], selection: &Selection, memory: &Memory, scratch: &mut Scratch) -> Result<()> {
        let value = Bytes(data);
        let entries = self.index_of(&value, scratch)?;
        self.read(&value, &entries, selection, memory, scratch, None)
    }

    /// Put what is selected of the shard into `memory`, and fetch only what is needed.
    ///
    /// # Errors
    /// If the shard is broken.
    pub fn read(
        &self,
        value: &dyn Value,
        entries: &[Entry],
        selection: &Selection,
        memory: &Memory,
        scratch: &mut Scratch,
        keep: Option<&Keep<'_>>,
    ) -> Result<()> {
        let plan = Plan::within(selection, &self.inner.layout.shape)?;
        let mut wanted = Vec::new();
        for at in 0..plan.len() {
            let piece = plan.piece(at);
            let number = self.number_of(&piece)?;
            if let Some(chunk) = keep.and_then(|keep| keep.within(number).get()) {
                memory.scatter(&self.inner.layout, &chunk, 0, &piece.selection)?;
                continue;
            }
            match entries[number] {
                None => self.inner.fill_missing(&piece.selection, memory)?,
                Some((offset, size)) => {
                    if self.inner.encoded_size().0.is_some_and(|exact| exact != size) {
                        return Err(Error::broken("a chunk of the wrong size"));
                    }
                    let share = share_of(keep).filter(|_| size > SMALL && value.bytes().is_none());
                    let runs = self.inner.few_runs(&piece.selection, share)?;
                    wanted.push(Wanted { at, number, offset, size, runs });
                }
            }
        }
        wanted.sort_by_key(|chunk| chunk.offset);
        let total: usize = wanted.iter().map(|chunk| chunk.size).sum();
        // There are several groups for each thread, so that all threads have work until the end.
        let largest = (total / (4 * scratch.threads.max(1))) as u64;
        let groups = grouped(&wanted, if scratch.threads > 1 { largest.clamp(SMALLEST, LARGEST) } else { LARGEST });
        if scratch.threads <= 1 || groups.len() <= 1 {
            return groups
                .into_iter()
                .try_for_each(|group| self.read_group(value, &plan, group, memory, scratch, keep));
        }
        let next = AtomicUsize::new(0);
        let work = || {
            let mut scratch = Scratch::default();
            while let Some(group) = groups.get(next.fetch_add(1, Ordering::Relaxed)) {
                if let Err(error) = self.read_group(value, &plan, group, memory, &mut scratch, keep) {
                    next.store(groups.len(), Ordering::Relaxed);
                    return Err(error);
                }
            }
            Ok(())
        };
        on_threads(scratch.threads.min(groups.len()), work)
    }

    /// Fetch chunks that are near each other, and place them.
    fn read_group(
        &self,
        value: &dyn Value,
        plan: &Plan,
        group: &[Wanted],
        memory: &Memory,
        scratch: &mut Scratch,
        keep: Option<&Keep<'_>>,
    ) -> Result<()> {
        if let Some(shard) = self.inner.as_shard() {
            for chunk in group {
                let part = Part { value, start: chunk.offset, size: chunk.size };
                let entries = shard.index_of(&part, scratch)?;
                let keep = keep.map(|keep| keep.within(chunk.number));
                shard.read(&part, &entries, &plan.piece(chunk.at).selection, memory, scratch, keep.as_ref())?;
            }
            return Ok(());
        }
        let (Some(first), Some(end)) =
            (group.first(), group.iter().map(|chunk| chunk.offset + chunk.size as u64).max())
        else {
            return Ok(());
        };
        if let Wanted { runs: Some(runs), offset, size, .. } = first {
            let part = Part { value, start: *offset, size: *size };
            if self.inner.place_blocks(&part, runs, &plan.piece(first.at).selection, memory, scratch)? {
                return Ok(());
            }
        }
        if !group.iter().all(|chunk| value.holds(chunk.offset, chunk.size)) {
            return Err(Error::refused("bytes that were not fetched"));
        }
        let start = first.offset;
        let too_large = |_| Error::refused("so many bytes");
        let mut fetched = Vec::new();
        let (bytes, start) = if let Some(bytes) = value.bytes() {
            (bytes, 0)
        } else {
            if let [only] = group
                && keep.is_none()
                && self.inner.is_raw()
                && let Some(window) = memory.window(&self.inner.layout, &plan.piece(only.at).selection)
            {
                return match value.read_at(start, window)? {
                    size if size == window.len() => Ok(()),
                    _ => Err(Error::broken("the shard ends within a chunk")),
                };
            }
            fetched = std::mem::take(&mut scratch.fetched);
            let size = usize::try_from(end - start).map_err(too_large)?;
            let out = resized(&mut fetched, size)?;
            match value.read_at(start, out) {
                Ok(found) if found == size => {}
                Ok(_) => return Err(Error::broken("the shard ends within a chunk")),
                Err(error) => return Err(error),
            }
            (&fetched[..size], start)
        };
        let result = group.iter().try_for_each(|chunk| {
            let at = usize::try_from(chunk.offset - start).map_err(too_large)?;
            let data = bytes.get(at..at + chunk.size).ok_or_else(|| Error::broken("a chunk lies outside the shard"))?;
            match keep {
                None => self.inner.place(data, &plan.piece(chunk.at), memory, scratch),
                Some(keep) => {
                    self.inner.place_and_keep(data, &plan.piece(chunk.at), memory, scratch, &keep.within(chunk.number))
                }
            }
        });
        if !fetched.is_empty() {
            scratch.fetched = fetched;
        }
        result
    }

    // -- writing ------------------------------------------------------------------

    /// Put the shard with the selected elements, which are all of its elements, into `out`; return false if it need not be
    /// stored.
    ///
    /// # Errors
    /// If they cannot be encoded.
    pub fn encode(
        &self,
        selection: &Selection,
        values: &Memory,
        out: &mut Vec<u8>,
        scratch: &mut Scratch,
    ) -> Result<bool> {
        let Selection::Mesh(axes) = selection else { return Err(Error::refused("points cover no shard")) };
        let plan = Plan::within(selection, &self.inner.layout.shape)?;
        if plan.len() != self.count || axes.len() != self.grid.len() {
            return Err(Error::refused("another number of chunks"));
        }
        let mut places = filled(usize::MAX, self.count)?;
        for at in 0..plan.len() {
            places[self.number_of(&plan.piece(at))?] = at;
        }
        if places.contains(&usize::MAX) {
            return Err(Error::refused("a gap"));
        }
        self.assemble(out, scratch, &|number, scratch, target| match self.inner.encode(
            &plan.piece(places[number]).selection,
            values,
            scratch,
        )? {
            None => Ok(false),
            Some(data) => {
                target.extend_from_slice(data);
                Ok(true)
            }
        })
    }

    /// Change the selected elements of the shard `old`, and put it into `out`; return false if it has no chunks then.
    ///
    /// # Errors
    /// If the shard is broken, or the elements cannot be encoded.
    pub fn update(
        &self,
        old: Option<&[u8]>,
        changes: &[Change<'_>],
        out: &mut Vec<u8>,
        scratch: &mut Scratch,
    ) -> Result<bool> {
        let touched = Touched::by(self, changes)?;
        let entries = match old {
            Some(data) if !touched.is_covered => self.index_of(&Bytes(data), scratch)?,
            _ => filled(None, self.count)?,
        };
        let old = old.unwrap_or_default();
        let kept: usize = (0..self.count)
            .filter(|&number| touched.needs_old(number))
            .filter_map(|at| entries[at])
            .map(|(_, size)| size)
            .sum();
        if kept > old.len() {
            return Err(Error::broken("chunks overlap"));
        }
        let bytes_of = |at: usize| -> Result<Option<&[u8]>> {
            let Some((offset, size)) = entries[at] else { return Ok(None) };
            let range = usize::try_from(offset).ok().and_then(|start| old.get(start..start.checked_add(size)?));
            range.map(Some).ok_or_else(|| Error::broken("a chunk lies outside the shard"))
        };
        self.assemble(out, scratch, &|number, scratch, target| {
            let old = if touched.needs_old(number) { bytes_of(number)? } else { None };
            let data = if touched.is_touched(number) { touched.made(number, old, scratch)? } else { old };
            data.map(|data| target.extend_from_slice(data)).map_or(Ok(false), |()| Ok(true))
        })
    }

    /// Return the bytes of a shard that change if the selected elements do: whole chunks. None if the shard must be made again,
    /// because chunks get another size, or there are many of them.
    ///
    /// # Errors
    /// If the shard is broken, or the elements cannot be encoded.
    pub fn patches(&self, value: &dyn Value, change: &Change<'_>, scratch: &mut Scratch) -> Result<Option<Patches>> {
        let plan = Plan::within(change.selection, &self.inner.layout.shape)?;
        if plan.len() > self.count / LEAST_KEPT {
            return Ok(None);
        }
        let entries = self.index_of(value, scratch)?;
        let mut places = Vec::with_capacity(plan.len());
        for at in 0..plan.len() {
            let number = self.number_of(&plan.piece(at))?;
            let Some((offset, size)) = entries[number] else { return Ok(None) };
            places.push((offset, size, number, at));
        }
        places.sort_unstable();
        if !self.is_alone(&places, &entries, value.size()?) {
            return Ok(None);
        }
        let mut patches = Patches::with_capacity(places.len());
        for (offset, size, _, at) in places {
            let piece = plan.piece(at);
            let data = if piece.whole {
                self.inner.encode(&piece.selection, change.values, scratch)?
            } else {
                let mut old = Vec::new();
                old.try_reserve_exact(size).map_err(|_| Error::refused("so much memory"))?;
                old.resize(size, 0);
                if value.read_at(offset, &mut old)? < size {
                    return Err(Error::broken("a chunk lies outside the shard"));
                }
                let changes = [Change { selection: &piece.selection, values: change.values }];
                self.inner.update(Some(&old), &changes, scratch)?
            };
            match data {
                Some(data) if data.len() == size => patches.push((offset, data.to_vec())),
                _ => return Ok(None),
            }
        }
        Ok(Some(patches))
    }

    /// Return the ranges of bytes of a shard that its changed form needs apart from those that stay where they are: chunks that
    /// change in part. None if the shard should be made again, because many of its chunks change.
    ///
    /// # Errors
    /// If the selections do not fit.
    pub fn needed(&self, entries: &[Entry], changes: &[Change<'_>]) -> Result<Option<Vec<Range<u64>>>> {
        let touched = Touched::by(self, changes)?;
        let numbers: Vec<_> = (0..self.count).filter(|&number| touched.is_touched(number)).collect();
        if !self.index_at_end || numbers.len() > (self.count / LEAST_KEPT).max(1) {
            return Ok(None);
        }
        let old = numbers.into_iter().filter(|&number| touched.needs_old(number)).filter_map(|number| entries[number]);
        Ok(Some(old.map(|(offset, size)| offset..offset + size as u64).collect()))
    }

    /// Change the selected elements of a shard whose beginning stays: return how many of its bytes stay, and what follows
    /// them, which is the changed chunks and a new index. `old` has at least the bytes that are [`Shard::needed`]. None if the shard should
    /// be made again, because fewer than `least` bytes stay, or too many of them are not used any more.
    ///
    /// # Errors
    /// If the shard is broken, or the elements cannot be encoded.
    pub fn grown(
        &self,
        entries: &[Entry],
        old: &dyn Value,
        changes: &[Change<'_>],
        least: u64,
        scratch: &mut Scratch,
    ) -> Result<Option<(u64, Vec<u8>)>> {
        let touched = Touched::by(self, changes)?;
        let staying = || (0..self.count).filter(|&number| !touched.is_touched(number)).filter_map(|at| entries[at]);
        let kept = staying().map(|(offset, size)| offset + size as u64).max().unwrap_or(0);
        if kept < least || kept > old.size()?.saturating_sub(self.index_size as u64) {
            return Ok(None);
        }
        let mut entries = entries.to_vec();
        let mut tail = Vec::new();
        for number in (0..self.count).filter(|&number| touched.is_touched(number)) {
            let data = match entries[number] {
                Some((offset, size)) if touched.needs_old(number) => {
                    if !old.holds(offset, size) {
                        return Err(Error::refused("bytes that were not fetched"));
                    }
                    let mut bytes = filled(0, size)?;
                    if old.read_at(offset, &mut bytes)? < size {
                        return Err(Error::broken("a chunk lies outside the shard"));
                    }
                    touched.made(number, Some(&bytes), scratch)?
                }
                _ => touched.made(number, None, scratch)?,
            };
            entries[number] = data.map(|data| {
                let start = kept + tail.len() as u64;
                tail.extend_from_slice(data);
                (start, data.len())
            });
        }
        let used: u64 = entries.iter().flatten().map(|&(_, size)| size as u64).sum();
        let unused = (kept + tail.len() as u64).saturating_sub(used);
        if unused > used / LEAST_KEPT as u64 {
            return Ok(None);
        }
        tail.extend_from_slice(self.encode_index(&entries, scratch)?);
        Ok(Some((kept, tail)))
    }

    /// Whether chunks, sorted by their places, lie where no other chunk does, nor the index.
    fn is_alone(&self, places: &[(u64, usize, usize, usize)], entries: &[Entry], size: u64) -> bool {
        let index = self.index_size as u64;
        let (first, last) = if self.index_at_end { (0, size.saturating_sub(index)) } else { (index, size) };
        let end = |&(offset, size, ..): &(u64, usize, usize, usize)| offset.saturating_add(size as u64);
        places.iter().all(|place| first <= place.0 && end(place) <= last)
            && places.windows(2).all(|pair| end(&pair[0]) <= pair[1].0)
            && entries.iter().enumerate().all(|(number, entry)| {
                entry.is_none_or(|(offset, size)| {
                    // The first of the chunks that ends behind the beginning of this one.
                    let at = places.partition_point(|place| end(place) <= offset);
                    places
                        .get(at)
                        .is_none_or(|place| place.2 == number || offset.saturating_add(size as u64) <= place.0)
                })
            })
    }

    /// Make a shard of the chunks that `encode` appends. Return false if it stores no chunk.
    fn assemble(&self, out: &mut Vec<u8>, scratch: &mut Scratch, encode: &Encode<'_>) -> Result<bool> {
        out.clear();
        if !self.index_at_end {
            out.resize(self.index_size, 0);
        }
        let mut entries: Vec<Entry> = Vec::with_capacity(self.count);
        if scratch.threads <= 1 || self.count < 2 * scratch.threads {
            self.encode_run(encode, 0..self.count, out, &mut entries, scratch)?;
        } else {
            let share = self.count.div_ceil(scratch.threads);
            let run = |from: usize| {
                let (mut bytes, mut entries) = (Vec::new(), Vec::new());
                let places = from..(from + share).min(self.count);
                self.encode_run(encode, places, &mut bytes, &mut entries, &mut Scratch::default())?;
                Ok((bytes, entries))
            };
            let runs = map_on_threads(scratch.threads, (0..self.count).step_by(share), run)?;
            for (bytes, run) in runs {
                let base = out.len() as u64;
                entries.extend(run.into_iter().map(|entry| entry.map(|(offset, size)| (base + offset, size))));
                out.extend_from_slice(&bytes);
            }
        }
        if entries.iter().all(Option::is_none) {
            // If chunks that hold only the fill value are to be stored, `encode` has stored them.
            return Ok(false);
        }
        if !self.sequence.is_empty() {
            let written = std::mem::replace(&mut entries, filled(None, self.count)?);
            self.sequence.iter().zip(written).for_each(|(&number, entry)| entries[number] = entry);
        }
        let index = self.encode_index(&entries, scratch)?;
        if self.index_at_end {
            out.extend_from_slice(index);
        } else {
            out[..self.index_size].copy_from_slice(index);
        }
        Ok(true)
    }

    /// The stored form of an index.
    fn encode_index<'a>(&self, entries: &[Entry], scratch: &'a mut Scratch) -> Result<&'a [u8]> {
        let table: Vec<u8> = entries
            .iter()
            .flat_map(|entry| entry.map_or([MISSING; 2], |(offset, size)| [offset, size as u64]))
            .flat_map(u64::to_ne_bytes)
            .collect();
        let index = self.index.encode_bytes(&table, scratch)?;
        if index.len() != self.index_size {
            return Err(Error::broken("an index of another size"));
        }
        Ok(index)
    }

    /// Append the chunks at these places of the sequence to a shard, and where they are to `entries`.
    fn encode_run(
        &self,
        encode: &Encode<'_>,
        places: Range<usize>,
        out: &mut Vec<u8>,
        entries: &mut Vec<Entry>,
        scratch: &mut Scratch,
    ) -> Result<()> {
        for place in places {
            let start = out.len();
            let number = self.sequence.get(place).copied().unwrap_or(place);
            let is_stored = encode(number, scratch, out)?;
            entries.push(is_stored.then_some((start as u64, out.len() - start)));
        }
        Ok(())
    }
}

/// The pieces of changes, by the chunks of a shard.
struct Touched<'a> {
    shard: &'a Shard,
    changes: &'a [Change<'a>],
    plans: Vec<Plan>,
    /// Of each chunk the pieces that change it: the number of the change, and the number in its plan.
    places: Vec<SmallVec<[(usize, usize); 1]>>,
    /// Whether the first change alone replaces all chunks.
    is_covered: bool,
}

impl<'a> Touched<'a> {
    fn by(shard: &'a Shard, changes: &'a [Change<'a>]) -> Result<Self> {
        let plans = changes
            .iter()
            .map(|change| Plan::within(change.selection, &shard.inner.layout.shape))
            .collect::<Result<Vec<_>>>()?;
        let mut places: Vec<SmallVec<[(usize, usize); 1]>> = filled(SmallVec::new(), shard.count)?;
        let mut is_covered = plans.first().is_some_and(|plan| plan.len() == shard.count);
        for (number, plan) in plans.iter().enumerate() {
            for at in 0..plan.len() {
                let piece = plan.piece(at);
                places[shard.number_of(&piece)?].push((number, at));
                is_covered &= number > 0 || piece.whole;
            }
        }
        Ok(Self { shard, changes, plans, places, is_covered })
    }

    /// Whether a chunk changes.
    fn is_touched(&self, number: usize) -> bool {
        !self.places[number].is_empty()
    }

    /// Whether something of a chunk stays, or all of it.
    fn needs_old(&self, number: usize) -> bool {
        self.places[number].first().is_none_or(|&(change, at)| !self.plans[change].piece(at).whole)
    }

    /// Encode a chunk that changes; `old`: as it was, if that is needed. None if it is not to be stored.
    fn made<'b>(&'b self, number: usize, old: Option<&[u8]>, scratch: &'b mut Scratch) -> Result<Option<&'b [u8]>> {
        let shard: &Shard = self.shard;
        let pieces: SmallVec<[(Piece, &Memory); 1]> = self.places[number]
            .iter()
            .map(|&(change, at)| (self.plans[change].piece(at), self.changes[change].values))
            .collect();
        if let [(piece, values)] = pieces.as_slice()
            && piece.whole
        {
            return shard.inner.encode(&piece.selection, values, scratch);
        }
        let changes: SmallVec<[Change<'_>; 1]> =
            pieces.iter().map(|(piece, values)| Change { selection: &piece.selection, values }).collect();
        shard.inner.update(old, &changes, scratch)
    }
}

/// Return whether these are the numbers below `count`, each once.
fn is_permutation(numbers: &[usize], count: usize) -> Result<bool> {
    let mut seen = filled(false, count)?;
    let is_new = |&number: &usize| seen.get_mut(number).is_some_and(|seen| !std::mem::replace(seen, true));
    Ok(numbers.len() == count && numbers.iter().all(is_new))
}

/// Return the number that eight bytes in the byte order of the machine are.
fn number(bytes: &[u8]) -> u64 {
    bytes.try_into().map_or(MISSING, u64::from_ne_bytes)
}

/// Divide chunks, sorted by offset, into groups that are fetched together. A chunk that may be fetched in part is a group
/// of its own.
fn grouped(wanted: &[Wanted], largest: u64) -> Vec<&[Wanted]> {
    let mut groups = Vec::new();
    let mut rest = wanted;
    while let Some(first) = rest.first() {
        let mut end = first.offset + first.size as u64;
        let together = rest[1..].iter().take_while(|chunk| {
            let here = chunk.offset + chunk.size as u64;
            let is_whole = first.runs.is_none() && chunk.runs.is_none();
            let is_near =
                is_whole && chunk.offset <= end.saturating_add(GAP) && here.max(end) - first.offset <= largest;
            end = end.max(here);
            is_near
        });
        let (group, others) = rest.split_at(1 + together.count());
        groups.push(group);
        rest = others;
    }
    groups
}

/// Bytes in memory as a value.
pub struct Bytes<'a>(pub &'a [u8]);

impl Value for Bytes<'_> {
    fn bytes(&self) -> Option<&[u8]> {
        Some(self.0)
    }

    fn size(&self) -> Result<u64> {
        Ok(self.0.len() as u64)
    }

    fn read_at(&self, start: u64, out: &mut [u8]) -> Result<usize> {
        let rest = usize::try_from(start).ok().and_then(|start| self.0.get(start..)).unwrap_or_default();
        let size = rest.len().min(out.len());
        out[..size].copy_from_slice(&rest[..size]);
        Ok(size)
    }
}

/// A part of a value as a value of its own: a chunk of a shard.
struct Part<'a> {
    value: &'a dyn Value,
    start: u64,
    size: usize,
}

impl Value for Part<'_> {
    fn bytes(&self) -> Option<&[u8]> {
        let start = usize::try_from(self.start).ok()?;
        self.value.bytes()?.get(start..start.checked_add(self.size)?)
    }

    fn size(&self) -> Result<u64> {
        Ok(self.size as u64)
    }

    fn read_at(&self, start: u64, out: &mut [u8]) -> Result<usize> {
        let rest = (self.size as u64).saturating_sub(start);
        let size = usize::try_from(rest).map_or(out.len(), |rest| rest.min(out.len()));
        self.value.read_at(self.start.saturating_add(start), &mut out[..size])
    }

    fn holds(&self, start: u64, size: usize) -> bool {
        self.value.holds(self.start.saturating_add(start), size)
    }
}

/// Return `count` copies of a value.
fn filled<T: Clone>(value: T, count: usize) -> Result<Vec<T>> {
    let mut all = Vec::new();
    all.try_reserve_exact(count).map_err(|_| Error::refused("so much memory"))?;
    all.resize(count, value);
    Ok(all)
}
