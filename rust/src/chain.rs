//! The codecs of a chunk, bound to its shape: what `omnizarr.codecs.chain` is in Python.
//!
//! Transposing moves no bytes here: the [`Layout`] says where each element lies in the stored order.

use std::ops::Range;
use std::sync::Arc;

use crate::cache::{Keep, LARGEST_SHARE};
use crate::codecs::elements::Elements;
use crate::codecs::{Codec, Encoded, Filter};
use crate::error::{Error, Result};
use crate::plan::{Piece, Selection};
use crate::scatter::{Layout, Memory};
use crate::store::{Patches, Value};
use crate::threads::map_on_threads;
use runs::{Runs, merged, runs_of};
use shard::{Bytes, Shard};

pub mod runs;
pub mod shard;

/// Runs with at most this number of bytes between them are fetched together.
const GAP: usize = 16 * 1024;
/// Values up to this size are fetched whole: to find out which parts of them are needed would take longer.
pub const SMALL: usize = 64 * 1024;
/// To find out which blocks hold a point takes about as long as to decode this number of bytes.
const BYTES_PER_POINT: usize = 256;
/// Bytes of a decoded block, about as many as C-Blosc chooses for medium levels.
const TYPICAL_BLOCK: usize = 256 * 1024;
/// Encoded data is assumed to have at most twice as many bytes as the decoded data, and this number more.
const SLACK: usize = 4096;
/// Compressors that fail to compress add less than one byte for this number.
const GROWTH: usize = 32;
/// A chunk may always take this number of bytes, stored and at each step of its codecs, and this number for each byte that it
/// has in memory. The engine in Python, which is asked where these are too few, knows what the user allows.
const MOST: usize = 256 * 1024 * 1024;
const MOST_FOR_ONE: usize = 16;
/// Several threads decode parts of one chunk only if each part has at least this number of bytes.
const LEAST_PART: usize = 256 * 1024;

/// How elements become bytes.
pub enum Serializer {
    /// The elements follow one another.
    Elements(Elements),
    /// The chunk is a shard, which holds smaller chunks.
    Shard(Box<Shard>),
}

/// How chunks are treated that are not stored, or hold only the fill value.
#[derive(Clone, Copy, Debug, Default)]
pub struct Policy {
    /// Chunks that hold only the fill value are stored.
    pub write_empty: bool,
    /// To read a chunk that is not stored is an error.
    pub missing_is_error: bool,
}

/// The codecs of one chunk.
pub struct Chain {
    /// Where the elements lie in the decoded chunk.
    pub layout: Layout,
    /// The bytes of the fill value.
    pub fill: Box<[u8]>,
    /// How chunks are treated that are not stored, or hold only the fill value.
    pub policy: Policy,
    filters: Vec<Box<dyn Filter>>,
    /// Encodes elements as bytes.
    pub serializer: Serializer,
    compressors: Vec<Box<dyn Codec>>,
    /// Number of bytes before each compressor and after the last one: exactly, if that is known, and at most.
    sizes: Vec<(Option<usize>, usize)>,
}

/// Elements of a chunk that are to be changed.
#[derive(Clone, Copy)]
pub struct Change<'a> {
    /// Which.
    pub selection: &'a Selection,
    /// The caller's array, which has the new ones.
    pub values: &'a Memory,
}

/// Memory that is used again and again.
#[derive(Default)]
pub struct Scratch {
    /// How many threads may work on one chunk.
    pub threads: usize,
    /// A decoded chunk.
    pub chunk: Vec<u8>,
    /// The stored form of a chunk, or that form without its compressors.
    pub stored: Vec<u8>,
    /// Bytes that were fetched from the store.
    pub fetched: Vec<u8>,
    one: Vec<u8>,
    other: Vec<u8>,
}

impl Scratch {
    /// Memory of a task that may use this number of threads.
    #[must_use]
    pub fn new(threads: usize) -> Self {
        Self { threads, ..Self::default() }
    }
}

/// Return how many bytes compression makes, at most, of a number of bytes that is known exactly, or at most.
fn compressed((exact, most): (Option<usize>, usize)) -> usize {
    let more = if exact.is_some() { most } else { most / GROWTH };
    most.saturating_add(more).saturating_add(SLACK)
}

impl Chain {
    /// Bind codecs to each other.
    ///
    /// # Errors
    /// If the codecs do not fit together.
    pub fn new(
        layout: Layout,
        fill: Box<[u8]>,
        policy: Policy,
        filters: Vec<Box<dyn Filter>>,
        serializer: Serializer,
        compressors: Vec<Box<dyn Codec>>,
    ) -> Result<Self> {
        if fill.len() != layout.item {
            return Err(Error::refused("a fill value of another size"));
        }
        let nbytes = filters.last().map_or(layout.nbytes, |filter| filter.encoded_size());
        let most = MOST.max(layout.nbytes.saturating_mul(MOST_FOR_ONE));
        let mut size = match &serializer {
            Serializer::Elements(_) => (Some(nbytes), nbytes),
            Serializer::Shard(shard) if filters.is_empty() => (None, shard.bound().min(most)),
            Serializer::Shard(_) => return Err(Error::refused("filters before shards")),
        };
        let mut sizes = Vec::with_capacity(compressors.len());
        for codec in &compressors {
            sizes.push(size);
            size = match size.0.and_then(|exact| codec.encoded_size(exact)) {
                Some(exact) => (Some(exact), exact),
                None => (None, compressed(size).min(most)),
            };
        }
        sizes.push(size);
        Ok(Self { layout, fill, policy, filters, serializer, compressors, sizes })
    }

    /// Whether the stored bytes are those of the elements.
    #[must_use]
    pub fn is_raw(&self) -> bool {
        self.compressors.is_empty() && self.is_plain()
    }

    /// Whether the bytes that the compressors encode are those of the elements.
    fn is_plain(&self) -> bool {
        self.filters.is_empty() && matches!(&self.serializer, Serializer::Elements(elements) if elements.is_plain())
    }

    /// Return the shard, if the stored bytes are one and not compressed.
    #[must_use]
    pub fn as_shard(&self) -> Option<&Shard> {
        match &self.serializer {
            Serializer::Shard(shard) if self.compressors.is_empty() => Some(shard),
            _ => None,
        }
    }

    /// Return the serializer, if the stored bytes are those of the elements, perhaps in another byte order.
    #[must_use]
    pub fn as_elements(&self) -> Option<&Elements> {
        match &self.serializer {
            Serializer::Elements(elements) if self.compressors.is_empty() && self.filters.is_empty() => Some(elements),
            _ => None,
        }
    }

    /// Return how many bytes a stored chunk may have: a larger one is refused before it is read.
    #[must_use]
    pub fn most_stored(&self) -> usize {
        let most = match self.serializer {
            Serializer::Elements(_) => self.encoded_size().1,
            Serializer::Shard(_) => self.layout.nbytes.saturating_mul(MOST_FOR_ONE), // replaced parts may remain
        };
        most.max(MOST)
    }

    /// Return the number of bytes of an encoded chunk: exactly, if that is known, and at most.
    #[must_use]
    pub fn encoded_size(&self) -> (Option<usize>, usize) {
        self.sizes[self.compressors.len()]
    }

    // -- decoding -----------------------------------------------------------------

    /// Decode the chunk `data`, and put the elements that `piece` selects into `memory`.
    ///
    /// # Errors
    /// If `data` is broken, or of a form that is not known here.
    pub fn place(&self, data: &[u8], piece: &Piece, memory: &Memory, scratch: &mut Scratch) -> Result<()> {
        let Piece { selection, .. } = piece;
        if let Serializer::Shard(shard) = &self.serializer {
            if self.compressors.is_empty() {
                return shard.place(data, selection, memory, scratch);
            }
            let mut whole = std::mem::take(&mut scratch.chunk);
            let result = self
                .decompress(data, scratch, &mut whole)
                .and_then(|()| shard.place(&whole, selection, memory, scratch));
            scratch.chunk = whole;
            return result;
        }
        if self.is_raw() {
            self.check_size(data.len())?;
            return memory.scatter(&self.layout, data, 0, selection);
        }
        if let Some(window) = memory.window(&self.layout, selection) {
            return self.decode(data, window, scratch);
        }
        if let Some(runs) = self.few_runs(selection, Some(LARGEST_SHARE))?
            && self.place_blocks(&Bytes(data), &runs, selection, memory, scratch)?
        {
            return Ok(());
        }
        let mut chunk = std::mem::take(&mut scratch.chunk);
        let result = self
            .decode(data, resized(&mut chunk, self.layout.nbytes)?, scratch)
            .and_then(|()| memory.scatter(&self.layout, &chunk[..self.layout.nbytes], 0, selection));
        scratch.chunk = chunk;
        result
    }

    /// Do what [`Chain::place`] does, and keep the decoded chunk.
    ///
    /// # Errors
    /// If `data` is broken, or of a form that is not known here.
    pub fn place_and_keep(
        &self,
        data: &[u8],
        piece: &Piece,
        memory: &Memory,
        scratch: &mut Scratch,
        keep: &Keep<'_>,
    ) -> Result<()> {
        if matches!(self.serializer, Serializer::Shard(_)) {
            return self.place(data, piece, memory, scratch);
        }
        let mut chunk = std::mem::take(&mut scratch.chunk);
        let result = self
            .decode(data, resized(&mut chunk, self.layout.nbytes)?, scratch)
            .and_then(|()| memory.scatter(&self.layout, &chunk[..self.layout.nbytes], 0, &piece.selection));
        if result.is_ok() {
            keep.put(Arc::from(&chunk[..self.layout.nbytes]));
        }
        scratch.chunk = chunk;
        result
    }

    /// Put what `selection` selects of an uncompressed chunk into `memory`, and fetch only the runs of bytes that it needs.
    /// Return false if the whole chunk should be fetched, or cannot be read in parts.
    ///
    /// # Errors
    /// If the value is broken.
    pub fn read_runs(
        &self,
        value: &dyn Value,
        selection: &Selection,
        memory: &Memory,
        scratch: &mut Scratch,
    ) -> Result<bool> {
        let Serializer::Elements(elements) = &self.serializer else { return Ok(false) };
        if value.size()? != self.layout.nbytes as u64 {
            return Err(Error::broken("the chunk has the wrong size"));
        }
        let runs = runs_of(&self.layout, selection, GAP)?;
        if runs.nbytes() > self.layout.nbytes / 2 {
            return Ok(false);
        }
        let base = runs.span.start;
        // Bytes between the runs may be anything, and are never read.
        let chunk = resized(&mut scratch.chunk, runs.span.len())?;
        for run in runs.runs {
            let out = &mut chunk[run.start - base..run.end - base];
            if value.read_at(run.start as u64, out)? < out.len() {
                return Err(Error::broken("the chunk is too short"));
            }
            elements.decode(out)?;
        }
        memory.scatter(&self.layout, chunk, base, selection)?;
        Ok(true)
    }

    /// Put what `selection` selects of a compressed chunk into `memory`, and fetch and decode only the blocks that hold it.
    ///
    /// `runs` are those of [`Chain::few_runs`], for this selection and perhaps others. Return false if the chunk should be
    /// decoded as a whole: because too many blocks are needed, because it has no blocks, or because something is broken,
    /// which decoding the whole chunk reports.
    ///
    /// # Errors
    /// If the system fails, or a place is outside the chunk.
    pub fn place_blocks(
        &self,
        value: &dyn Value,
        runs: &Runs,
        selection: &Selection,
        memory: &Memory,
        scratch: &mut Scratch,
    ) -> Result<bool> {
        let is_done = self.decode_runs(value, runs, &mut scratch.chunk)?;
        if is_done {
            let Range { start, .. } = runs.span;
            memory.scatter(&self.layout, &scratch.chunk[..runs.span.len()], start, selection)?;
        }
        Ok(is_done)
    }

    /// Decode the bytes within `runs` of a compressed chunk into `chunk`, and fetch only the blocks that hold them.
    ///
    /// Afterwards, `chunk` begins with the bytes of the span of `runs`, of which those between runs may be anything. Return
    /// false in the cases in which [`Chain::place_blocks`] returns false.
    ///
    /// # Errors
    /// If the system fails.
    pub fn decode_runs(&self, value: &dyn Value, runs: &Runs, chunk: &mut Vec<u8>) -> Result<bool> {
        let ([codec], Serializer::Elements(elements)) = (self.compressors.as_slice(), &self.serializer) else {
            return Ok(false);
        };
        let Runs { runs, span } = runs;
        let chunk = resized(chunk, span.len())?;
        let fetch = |encoded: &Encoded<'_>| codec.fetch_runs(encoded, self.layout.nbytes, runs, span.start, chunk);
        if !with_encoded(value, fetch)?.unwrap_or(false) {
            return Ok(false);
        }
        for run in runs {
            elements.decode(&mut chunk[run.start - span.start..run.end - span.start])?;
        }
        Ok(true)
    }

    /// Return the ranges of bytes that [`Chain::decode_runs`] fetches of a value, of which at least the beginning must be
    /// there. Return None if the whole chunk should be fetched, or more of its beginning is needed to know.
    ///
    /// # Errors
    /// If the system fails.
    pub fn blocks_of(&self, value: &dyn Value, runs: &Runs) -> Result<Option<Vec<Range<u64>>>> {
        let [codec] = self.compressors.as_slice() else { return Ok(None) };
        let ranges = with_encoded(value, |encoded| codec.ranges_of(encoded, self.layout.nbytes, &runs.runs))?;
        let ranges = ranges.unwrap_or(None);
        Ok(ranges.map(|ranges| ranges.iter().map(|range| range.start as u64..range.end as u64).collect()))
    }

    /// Return the bytes of the decoded chunk that hold what `selection` selects; None if the chunk cannot be decoded in parts,
    /// if more than one in `share` of its bytes are needed, if very many points are selected, or if `share` is None.
    ///
    /// # Errors
    /// If a place is outside the chunk.
    pub fn few_runs(&self, selection: &Selection, share: Option<usize>) -> Result<Option<Runs>> {
        let Some(share) = share.filter(|_| self.reads_blocks()) else { return Ok(None) };
        if matches!(selection, Selection::Points(points) if points.outer.len() > self.layout.nbytes / BYTES_PER_POINT) {
            return Ok(None);
        }
        let runs = runs_of(&self.layout, selection, GAP)?;
        Ok(Some(runs).filter(|runs| !runs.runs.is_empty() && runs.nbytes() <= self.layout.nbytes / share))
    }

    /// Return the bytes that are in any of several results of [`Chain::few_runs`]; None if they probably are in more than half
    /// of the blocks. This is for remote stores, where it takes a request to find out in which blocks they are.
    #[must_use]
    pub fn in_few_blocks(&self, several: Vec<Runs>) -> Option<Runs> {
        let runs = several.into_iter().reduce(|runs, other| runs.united(other, GAP))?;
        let blocks = merged(runs.runs.clone(), TYPICAL_BLOCK);
        let needed: usize = blocks.iter().map(|run| run.len().max(TYPICAL_BLOCK)).sum();
        (needed <= self.layout.nbytes / LARGEST_SHARE).then_some(runs)
    }

    /// Whether parts of a compressed chunk can be fetched and decoded by themselves.
    #[must_use]
    pub fn reads_blocks(&self) -> bool {
        let [codec] = self.compressors.as_slice() else { return false };
        self.layout.nbytes > SMALL
            && codec.fetches_runs()
            && self.filters.is_empty()
            && matches!(self.serializer, Serializer::Elements(_))
    }

    /// Return the ranges of bytes that [`Chain::read_runs`] reads of a value.
    ///
    /// # Errors
    /// If a place is outside the chunk.
    pub fn runs_of(&self, selection: &Selection) -> Result<Vec<Range<u64>>> {
        let runs = runs_of(&self.layout, selection, GAP)?.runs;
        Ok(runs.into_iter().map(|run| run.start as u64..run.end as u64).collect())
    }

    /// Whether a part of a chunk can be fetched and read by itself.
    #[must_use]
    pub fn reads_runs(&self) -> bool {
        self.layout.nbytes > SMALL && self.as_elements().is_some()
    }

    /// Whether the stored bytes are a shard, compressed or not.
    #[must_use]
    pub fn is_made_of_shards(&self) -> bool {
        matches!(self.serializer, Serializer::Shard(_))
    }

    /// Return the elements of a whole chunk, in the order in which they are stored.
    ///
    /// # Errors
    /// If `data` is broken, or of a form that is not known here.
    pub fn decoded(&self, data: &[u8], scratch: &mut Scratch) -> Result<Arc<[u8]>> {
        let mut chunk = std::mem::take(&mut scratch.chunk);
        let result = resized(&mut chunk, self.layout.nbytes)
            .and_then(|out| self.decode(data, out, scratch))
            .map(|()| Arc::from(&chunk[..self.layout.nbytes]));
        scratch.chunk = chunk;
        result
    }

    /// Fill `out` with the elements of a whole chunk, in the order in which they are stored.
    ///
    /// # Errors
    /// If `data` is broken, or of a form that is not known here.
    pub fn decode(&self, data: &[u8], out: &mut [u8], scratch: &mut Scratch) -> Result<()> {
        let Serializer::Elements(elements) = &self.serializer else {
            return Err(Error::refused("a shard is decoded in place"));
        };
        if self.filters.is_empty() {
            self.decompress_into(data, out, scratch)?;
            return elements.decode(out);
        }
        let mut filtered = std::mem::take(&mut scratch.stored);
        let result = self.unfilter(data, out, &mut filtered, elements, scratch);
        scratch.stored = filtered;
        result
    }

    fn unfilter(
        &self,
        data: &[u8],
        out: &mut [u8],
        filtered: &mut Vec<u8>,
        elements: &Elements,
        scratch: &mut Scratch,
    ) -> Result<()> {
        let size = self.filters[self.filters.len() - 1].encoded_size();
        self.decompress_into(data, resized(filtered, size)?, scratch)?;
        elements.decode(&mut filtered[..size])?;
        let mut other = std::mem::take(&mut scratch.other);
        let result = (|| {
            for number in (1..self.filters.len()).rev() {
                let before = self.filters[number - 1].encoded_size();
                self.filters[number]
                    .decode(&filtered[..self.filters[number].encoded_size()], resized(&mut other, before)?)?;
                std::mem::swap(filtered, &mut other);
            }
            self.filters[0].decode(&filtered[..self.filters[0].encoded_size()], out)
        })();
        scratch.other = other;
        result
    }

    /// Undo all compressors. The result has the size of `out`.
    fn decompress_into(&self, data: &[u8], out: &mut [u8], scratch: &mut Scratch) -> Result<()> {
        let Scratch { one, other, threads, .. } = scratch;
        let mut data = data;
        for (number, codec) in self.compressors.iter().enumerate().rev() {
            if number == 0 {
                return decode_on(*threads, codec.as_ref(), data, out);
            }
            if let Some(view) = codec.decode_view(data) {
                data = view?;
                continue;
            }
            // `data` may borrow from `other`, so the new bytes are decoded into the memory of `one`; then the two are swapped.
            let limit = self.sizes[number];
            let target = std::mem::take(one);
            let target = decode_stage(codec.as_ref(), data, limit, target)?;
            *one = std::mem::replace(other, target);
            data = other.as_slice();
        }
        if data.len() != out.len() {
            return Err(Error::broken("the chunk has the wrong size"));
        }
        out.copy_from_slice(data);
        Ok(())
    }

    /// Undo all compressors. The size of the result is not known before.
    fn decompress(&self, data: &[u8], scratch: &mut Scratch, out: &mut Vec<u8>) -> Result<()> {
        let Scratch { one, other, .. } = scratch;
        let mut data = data;
        for (number, codec) in self.compressors.iter().enumerate().rev() {
            if let Some(view) = codec.decode_view(data) {
                data = view?;
                continue;
            }
            let target = decode_stage(codec.as_ref(), data, self.sizes[number], std::mem::take(one))?;
            *one = std::mem::replace(other, target);
            data = other.as_slice();
        }
        if data.len() > self.sizes[0].1 {
            return Err(Error::broken("too long"));
        }
        out.clear();
        out.extend_from_slice(data);
        Ok(())
    }

    /// Check the size of a chunk that is not compressed.
    ///
    /// # Errors
    /// If it is wrong.
    pub fn check_size(&self, size: usize) -> Result<()> {
        if size == self.layout.nbytes { Ok(()) } else { Err(Error::broken("the chunk has the wrong size")) }
    }

    /// Set the selected elements to the fill value, because their chunk is not stored.
    ///
    /// # Errors
    /// If to read such a chunk is an error.
    pub fn fill_missing(&self, selection: &Selection, memory: &Memory) -> Result<()> {
        if self.policy.missing_is_error {
            return Err(Error::broken("the chunk is not stored"));
        }
        memory.fill(&self.layout, &self.fill, selection)
    }

    // -- encoding -----------------------------------------------------------------

    /// Return the stored form of a chunk, all elements of which are selected; None if it need not be stored.
    ///
    /// The returned slice is of the scratch or of the caller's memory.
    ///
    /// # Errors
    /// If these elements cannot be encoded.
    pub fn encode<'a>(
        &self,
        selection: &Selection,
        values: &'a Memory,
        scratch: &'a mut Scratch,
    ) -> Result<Option<&'a [u8]>> {
        if let Serializer::Shard(shard) = &self.serializer {
            let mut whole = std::mem::take(&mut scratch.stored);
            let is_stored = shard.encode(selection, values, &mut whole, scratch);
            scratch.stored = whole;
            return if is_stored? { self.compress_stored(scratch).map(Some) } else { Ok(None) };
        }
        if !self.policy.write_empty && values.holds_only(&self.layout, &self.fill, selection)? {
            return Ok(None);
        }
        if let Some(chunk) = values.chunk(&self.layout, selection) {
            if self.is_raw() {
                return Ok(Some(chunk));
            }
            return self.encode_bytes(chunk, scratch).map(Some);
        }
        let mut chunk = std::mem::take(&mut scratch.chunk);
        let out = resized(&mut chunk, self.layout.nbytes)?;
        let result = values.gather(&self.layout, out, selection);
        scratch.chunk = chunk;
        result?;
        self.encode_chunk(scratch).map(Some)
    }

    /// Return the stored form of the chunk in `scratch.chunk`.
    fn encode_chunk<'a>(&self, scratch: &'a mut Scratch) -> Result<&'a [u8]> {
        if self.is_raw() {
            return Ok(&scratch.chunk[..self.layout.nbytes]);
        }
        let chunk = std::mem::take(&mut scratch.chunk);
        let result = self.encode_bytes(&chunk[..self.layout.nbytes], scratch).map(<[u8]>::len);
        scratch.chunk = chunk;
        result.map(|size| &scratch.stored[..size])
    }

    /// Return the stored form of a chunk whose elements are in the order in which they are stored.
    ///
    /// # Errors
    /// If they cannot be encoded.
    pub fn encode_bytes<'a>(&self, chunk: &[u8], scratch: &'a mut Scratch) -> Result<&'a [u8]> {
        let Serializer::Elements(elements) = &self.serializer else {
            return Err(Error::refused("a shard is encoded by its chunks"));
        };
        let Scratch { one, other, stored, .. } = scratch;
        let mut data = chunk;
        for filter in &self.filters {
            let mut target = std::mem::take(one);
            filter.encode(data, resized(&mut target, filter.encoded_size())?)?;
            target.truncate(filter.encoded_size());
            *one = std::mem::replace(other, target);
            data = other.as_slice();
        }
        if !elements.is_plain() {
            let mut target = std::mem::take(one);
            target.clear();
            target.extend_from_slice(data);
            elements.encode(&mut target);
            *one = std::mem::replace(other, target);
            data = other.as_slice();
        }
        if self.compressors.is_empty() {
            stored.clear();
            stored.extend_from_slice(data);
            return Ok(stored);
        }
        for (number, codec) in self.compressors.iter().enumerate() {
            if number + 1 == self.compressors.len() {
                codec.encode(data, stored)?;
                break;
            }
            let mut target = std::mem::take(one);
            codec.encode(data, &mut target)?;
            *one = std::mem::replace(other, target);
            data = other.as_slice();
        }
        Ok(stored)
    }

    /// Return the stored form of a chunk that holds only the fill value, though it need not be stored.
    ///
    /// # Errors
    /// If it cannot be encoded, or is a shard.
    pub fn encode_empty<'a>(&self, scratch: &'a mut Scratch) -> Result<&'a [u8]> {
        if self.is_made_of_shards() {
            return Err(Error::refused("a shard without chunks"));
        }
        fill(resized(&mut scratch.chunk, self.layout.nbytes)?, &self.fill);
        self.encode_chunk(scratch)
    }

    /// Compress the bytes in `scratch.stored`.
    fn compress_stored<'a>(&self, scratch: &'a mut Scratch) -> Result<&'a [u8]> {
        let Scratch { one, stored, .. } = scratch;
        for codec in &self.compressors {
            codec.encode(stored, one)?;
            std::mem::swap(one, stored);
        }
        Ok(stored)
    }

    /// Make changes, one after the other, in the stored chunk `old` (None: the chunk is not stored), and return its new stored
    /// form; None if it need not be stored.
    ///
    /// # Errors
    /// If `old` is broken, or the elements cannot be encoded.
    pub fn update<'a>(
        &self,
        old: Option<&[u8]>,
        changes: &[Change<'_>],
        scratch: &'a mut Scratch,
    ) -> Result<Option<&'a [u8]>> {
        if let Serializer::Shard(shard) = &self.serializer {
            let mut plain = std::mem::take(&mut scratch.chunk);
            let mut whole = std::mem::take(&mut scratch.stored);
            let is_stored = match old {
                Some(data) if !self.compressors.is_empty() => self
                    .decompress(data, scratch, &mut plain)
                    .and_then(|()| shard.update(Some(&plain), changes, &mut whole, scratch)),
                _ => shard.update(old, changes, &mut whole, scratch),
            };
            (scratch.chunk, scratch.stored) = (plain, whole);
            return if is_stored? { self.compress_stored(scratch).map(Some) } else { Ok(None) };
        }
        let mut chunk = std::mem::take(&mut scratch.chunk);
        let out = resized(&mut chunk, self.layout.nbytes)?;
        let decoded = if let Some(data) = old {
            self.decode(data, out, scratch)
        } else {
            fill(out, &self.fill);
            Ok(())
        };
        let result = decoded.and_then(|()| {
            changes.iter().try_for_each(|change| change.values.gather(&self.layout, out, change.selection))
        });
        let is_empty = !self.policy.write_empty && holds_only(out, &self.fill);
        scratch.chunk = chunk;
        result?;
        if is_empty { Ok(None) } else { self.encode_chunk(scratch).map(Some) }
    }
}

impl Chain {
    /// Return the bytes that a change makes different in a stored chunk; None if the whole chunk must be stored again.
    ///
    /// # Errors
    /// If the chunk is broken, or the elements cannot be encoded.
    pub fn patches(&self, value: &dyn Value, change: &Change<'_>, scratch: &mut Scratch) -> Result<Option<Patches>> {
        match &self.serializer {
            Serializer::Shard(shard) if self.compressors.is_empty() => shard.patches(value, change, scratch),
            _ => Ok(None),
        }
    }
}

/// Call `then` with the bytes of a value. They are fetched when `then` reads them.
///
/// The outer result is an error if the size of the value cannot be found out. The inner result is that of `then`.
fn with_encoded<T>(value: &dyn Value, then: impl FnOnce(&Encoded<'_>) -> Result<T>) -> Result<Result<T>> {
    let length = usize::try_from(value.size()?).unwrap_or(0);
    let fetch = |start: usize, out: &mut [u8]| {
        if !value.holds(start as u64, out.len()) {
            return Err(Error::refused("bytes that were not fetched"));
        }
        if value.read_at(start as u64, out)? < out.len() {
            return Err(Error::broken("the value became shorter"));
        }
        Ok(())
    };
    Ok(then(&Encoded { length, bytes: value.bytes(), fetch: &fetch }))
}

/// Undo a compressor whose input came from another compressor.
fn decode_stage(codec: &dyn Codec, data: &[u8], size: (Option<usize>, usize), mut out: Vec<u8>) -> Result<Vec<u8>> {
    match size.0 {
        Some(exact) => {
            resized(&mut out, exact)?;
            out.truncate(exact);
            codec.decode(data, &mut out)?;
        }
        None => codec.decode_any(data, size.1, &mut out)?,
    }
    Ok(out)
}

/// Undo the first compressor, on several threads if it can decode parts.
fn decode_on(threads: usize, codec: &dyn Codec, data: &[u8], out: &mut [u8]) -> Result<()> {
    let Some(part) = codec.part_size(data).filter(|_| threads > 1 && out.len() >= 2 * LEAST_PART) else {
        return codec.decode(data, out);
    };
    let size = out.len();
    let share = size.div_ceil(threads).max(LEAST_PART).next_multiple_of(part.max(1));
    let decode = |(number, out): (usize, &mut [u8])| {
        codec.decode_part(data, size, number * share, out).unwrap_or_else(|| Err(Error::refused("no parts")))
    };
    map_on_threads(threads, out.chunks_mut(share).enumerate(), decode).map(drop)
}

/// Return the first `size` bytes of a buffer, which becomes longer if necessary. They may hold anything.
///
/// # Errors
/// If there is too little memory.
pub fn resized(buffer: &mut Vec<u8>, size: usize) -> Result<&mut [u8]> {
    if buffer.len() < size {
        // The memory is reserved first, because `vec!` cannot report a failure. Zeros from the system take no memory until
        // they are written to, so a chunk with a wrong large size in its header costs nothing.
        Vec::<u8>::new().try_reserve_exact(size).map_err(|_| Error::refused("so much memory"))?;
        *buffer = Vec::new();
        *buffer = vec![0; size];
    }
    Ok(&mut buffer[..size])
}

/// Fill `out` with copies of an element.
pub fn fill(out: &mut [u8], element: &[u8]) {
    match element {
        [] => {}
        [first, rest @ ..] if rest.iter().all(|byte| byte == first) => out.fill(*first),
        _ => out.chunks_exact_mut(element.len()).for_each(|place| place.copy_from_slice(element)),
    }
}

/// Whether bytes are only copies of an element.
#[must_use]
pub fn holds_only(bytes: &[u8], element: &[u8]) -> bool {
    // The first element is compared, and then each element with the one before it.
    let size = element.len();
    size == 0 || bytes.len() < size || (bytes[..size] == *element && bytes[size..] == bytes[..bytes.len() - size])
}
