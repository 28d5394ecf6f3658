//! Chunks in files of other formats: a manifest says which bytes of which file each of them is.
//!
//! What `omnizarr.stores.manifests` is in Python. A chunk has no name but its number in the C order of the grid, in
//! decimal digits. A file is opened once for each plan, and must have the size and the time of change that were recorded
//! when the manifest was made, before and after the plan is run. Everything unusual is an error: the engine in Python
//! then reads the chunk again, and says what is wrong.

use std::collections::HashMap;
use std::fs::File;
use std::os::unix::fs::MetadataExt;
use std::sync::{Arc, Mutex, OnceLock};

use super::{READ, beneath, nanoseconds, read_fully};
use crate::error::{Error, Result};
use crate::store::{Change, Stamp, Store, Value};
use crate::threads::locked;

/// The length of a chunk that is not stored.
const NOT_STORED: u64 = u64::MAX;
/// Parts with at most this number of bytes between them are read together.
const GAP: u64 = 16 * 1024;
/// The most bytes that are read together for several parts.
const LARGEST: u64 = 16 * 1024 * 1024;
/// The most files that a plan has open at a time.
const MOST_OPEN: usize = 64;

/// A file, and what shows that it is the same.
#[derive(Clone, Debug)]
pub struct Source {
    /// An absolute path without links.
    pub path: Vec<u8>,
    /// Its size in bytes.
    pub size: u64,
    /// The time of its last change in nanoseconds since 1970.
    pub modified: i128,
}

/// Columns of numbers, by the number of the chunk.
#[derive(Clone, Debug)]
pub struct Columns {
    /// The first byte of each chunk.
    pub offsets: Vec<u64>,
    /// Bytes of each chunk.
    pub lengths: Vec<u64>,
    /// The file of each chunk; None: the first.
    pub files: Option<Vec<u32>>,
}

/// Chunks at regular distances: see `Strided` in Python.
#[derive(Clone, Debug)]
pub struct Strided {
    /// The first byte of the array.
    pub start: u64,
    /// Bytes from one chunk to the next along each dimension.
    pub steps: Vec<u64>,
    /// The dimension of the units.
    pub axis: usize,
    /// Units of the array.
    pub units: u64,
    /// Units of a chunk.
    pub per_chunk: u64,
    /// Bytes of a unit.
    pub unit: u64,
    /// Bytes from one unit to the next.
    pub stride: u64,
    /// The number of the file.
    pub file: u32,
}

/// Where the chunks of an array lie.
#[derive(Clone, Debug)]
pub enum Chunks {
    /// Anywhere.
    Columns(Columns),
    /// At regular distances.
    Strided(Strided),
}

/// The bytes of a chunk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Extent {
    file: u32,
    offset: u64,
    length: u64,
    parts: u64,
    stride: u64,
    padding: u64,
}

/// Where the chunks of an array lie, and in which files.
#[derive(Debug)]
pub struct Manifest {
    /// Number of chunks along each dimension.
    pub grid: Vec<u64>,
    /// Where they lie.
    pub chunks: Chunks,
    /// The codecs that each chunk skips.
    pub skipped: Option<Vec<u32>>,
    /// The files.
    pub sources: Arc<Vec<Source>>,
}

impl Manifest {
    /// Return the number of a chunk; None if there is no such chunk.
    #[must_use]
    pub fn number(&self, coords: &[u64]) -> Option<u64> {
        if coords.len() != self.grid.len() {
            return None;
        }
        self.grid.iter().zip(coords).try_fold(0_u64, |number, (&length, &coordinate)| {
            if coordinate >= length {
                return None;
            }
            number.checked_mul(length)?.checked_add(coordinate)
        })
    }

    /// Return which codecs a chunk skips.
    #[must_use]
    pub fn mask(&self, coords: &[u64]) -> u32 {
        let Some(skipped) = &self.skipped else { return 0 };
        let number = self.number(coords).and_then(|number| usize::try_from(number).ok());
        number.and_then(|number| skipped.get(number)).copied().unwrap_or(0)
    }

    fn find(&self, number: u64) -> Result<Option<Extent>> {
        match &self.chunks {
            Chunks::Columns(columns) => columns.find(number),
            Chunks::Strided(strided) => strided.find(number, &self.grid).map(Some),
        }
    }

    /// Return a store that reads its files, for one plan.
    #[must_use]
    pub fn session(&self) -> Session<'_> {
        Session { manifest: self, first: OnceLock::new(), others: Mutex::new(HashMap::new()) }
    }
}

fn outside() -> Error {
    Error::refused("a chunk outside the manifest")
}

impl Columns {
    fn find(&self, number: u64) -> Result<Option<Extent>> {
        let at = usize::try_from(number).map_err(|_| outside())?;
        let (&offset, &length) = self.offsets.get(at).zip(self.lengths.get(at)).ok_or_else(outside)?;
        if length == NOT_STORED {
            return Ok(None);
        }
        let file = match &self.files {
            None => 0,
            Some(files) => *files.get(at).ok_or_else(outside)?,
        };
        Ok(Some(Extent { file, offset, length, parts: 1, stride: 0, padding: 0 }))
    }
}

impl Strided {
    fn find(&self, number: u64, grid: &[u64]) -> Result<Extent> {
        let (mut rest, mut offset, mut place) = (number, Some(self.start), 0);
        for (axis, &length) in grid.iter().enumerate().rev() {
            if length == 0 {
                return Err(outside());
            }
            let coordinate = rest % length;
            rest /= length;
            let step = self.steps.get(axis).ok_or_else(outside)?;
            offset = step.checked_mul(coordinate).and_then(|step| step.checked_add(offset?));
            if axis == self.axis {
                place = coordinate;
            }
        }
        let first = place.checked_mul(self.per_chunk).ok_or_else(outside)?;
        let count = self.per_chunk.min(self.units.checked_sub(first).ok_or_else(outside)?);
        let missing = self.per_chunk - count;
        let padding = missing.checked_mul(self.unit).ok_or_else(outside)?;
        let offset = offset.ok_or_else(outside)?;
        if count == 1 || self.stride == self.unit {
            let length = count.checked_mul(self.unit).ok_or_else(outside)?;
            return Ok(Extent { file: self.file, offset, length, parts: 1, stride: 0, padding });
        }
        Ok(Extent { file: self.file, offset, length: self.unit, parts: count, stride: self.stride, padding })
    }
}

impl Extent {
    fn size(&self) -> Result<u64> {
        self.parts
            .checked_mul(self.length)
            .and_then(|size| size.checked_add(self.padding))
            .ok_or_else(|| Error::broken("larger than memory"))
    }
}

/// A file that is open.
struct Opened {
    file: File,
}

/// The files of one plan.
pub struct Session<'a> {
    manifest: &'a Manifest,
    /// The file of most manifests.
    first: OnceLock<Opened>,
    others: Mutex<HashMap<u32, Arc<Opened>>>,
}

/// A file of a session.
enum Held<'a> {
    First(&'a Opened),
    Other(Arc<Opened>),
}

impl Held<'_> {
    fn file(&self) -> &File {
        match self {
            Self::First(opened) => &opened.file,
            Self::Other(opened) => &opened.file,
        }
    }
}

fn check(file: &File, source: &Source) -> Result<()> {
    let metadata = file.metadata()?;
    let modified = nanoseconds(metadata.mtime(), metadata.mtime_nsec());
    if !metadata.is_file() || metadata.len() != source.size || modified != source.modified {
        return Err(Error::broken("the file has changed"));
    }
    Ok(())
}

fn opened(source: &Source) -> Result<Opened> {
    let file = File::from(beneath::open(&source.path, READ).map_err(|_| Error::broken("the file cannot be opened"))?);
    check(&file, source)?;
    Ok(Opened { file })
}

impl Session<'_> {
    fn source(&self, number: u32) -> Result<&Source> {
        self.manifest.sources.get(number as usize).ok_or_else(outside)
    }

    fn file(&self, number: u32) -> Result<Held<'_>> {
        if number == 0 {
            if let Some(first) = self.first.get() {
                return Ok(Held::First(first));
            }
            // Of several threads, one opens it for all; the others close theirs.
            let first = opened(self.source(0)?)?;
            return Ok(Held::First(self.first.get_or_init(|| first)));
        }
        if let Some(known) = locked(&self.others).get(&number) {
            return Ok(Held::Other(Arc::clone(known)));
        }
        let file = Arc::new(opened(self.source(number)?)?);
        let mut others = locked(&self.others);
        if others.len() >= MOST_OPEN {
            let full = std::mem::take(&mut *others);
            drop(others);
            self.check_others(&full)?;
            others = locked(&self.others);
        }
        others.insert(number, Arc::clone(&file));
        Ok(Held::Other(file))
    }

    fn check_others(&self, others: &HashMap<u32, Arc<Opened>>) -> Result<()> {
        others.iter().try_for_each(|(&number, opened)| check(&opened.file, self.source(number)?))
    }

    /// Check that no file has changed since it was opened.
    ///
    /// # Errors
    /// If one has.
    pub fn check(&self) -> Result<()> {
        if let Some(first) = self.first.get() {
            check(&first.file, self.source(0)?)?;
        }
        self.check_others(&locked(&self.others))
    }

    fn extent(&self, key: &str) -> Result<Option<Extent>> {
        self.manifest.find(key.parse().map_err(|_| outside())?)
    }
}

fn read_exactly(file: &File, start: u64, out: &mut [u8]) -> Result<()> {
    if read_fully(file, start, out)? < out.len() {
        return Err(Error::broken("the file ends before the chunk"));
    }
    Ok(())
}

impl Store for Session<'_> {
    fn open(&self, key: &str) -> Result<Option<Box<dyn Value + '_>>> {
        let Some(extent) = self.extent(key)? else { return Ok(None) };
        let source = self.source(extent.file)?;
        Ok(Some(Box::new(Part { file: self.file(extent.file)?, extent, source })))
    }

    fn read_all(&self, key: &str, _hint: usize, most: usize, into: &mut Vec<u8>) -> Result<bool> {
        let Some(extent) = self.extent(key)? else { return Ok(false) };
        let size = usize::try_from(extent.size()?).map_err(|_| Error::broken("larger than memory"))?;
        if size > most || extent.size()? > self.source(extent.file)?.size.saturating_add(extent.padding) {
            return Err(Error::broken("larger than it may be"));
        }
        // Old bytes need not be cleared.
        into.truncate(size);
        into.try_reserve_exact(size - into.len()).map_err(|_| Error::broken("larger than memory"))?;
        into.resize(size, 0);
        let part = Part { file: self.file(extent.file)?, extent, source: self.source(extent.file)? };
        part.read_at(0, into)?;
        Ok(true)
    }

    fn read_into(&self, key: &str, out: &mut [u8]) -> Result<Option<u64>> {
        let Some(extent) = self.extent(key)? else { return Ok(None) };
        let size = extent.size()?;
        if size == out.len() as u64 {
            let part = Part { file: self.file(extent.file)?, extent, source: self.source(extent.file)? };
            part.read_at(0, out)?;
        }
        Ok(Some(size))
    }

    fn set(&self, _key: &str, _data: &[u8]) -> Result<()> {
        Err(Error::refused("files of other formats can only be read"))
    }

    fn delete(&self, _key: &str) -> Result<()> {
        Err(Error::refused("files of other formats can only be read"))
    }

    fn locked(&self, _key: &str, _waiting: &dyn Fn() -> Result<()>, _change: &mut Change<'_>) -> Result<()> {
        Err(Error::refused("files of other formats can only be read"))
    }
}

/// A chunk in an open file.
struct Part<'a> {
    file: Held<'a>,
    extent: Extent,
    source: &'a Source,
}

impl Part<'_> {
    /// Fill `out` from byte `start` of the parts on, which lie apart.
    fn read_apart(&self, start: u64, out: &mut [u8]) -> Result<()> {
        let Extent { offset, length, stride, .. } = self.extent;
        let (first, last) = (start / length, (start + out.len() as u64 - 1) / length);
        let span = (last - first) * stride + length;
        let is_near = stride >= length && stride - length <= GAP && span <= LARGEST;
        let mut around = vec![0; if is_near { usize::try_from(span).unwrap_or(0) } else { 0 }];
        if is_near {
            read_exactly(self.file.file(), offset + first * stride, &mut around)?;
        }
        let mut done = 0;
        for number in first..=last {
            let skip = if number == first { start - first * length } else { 0 };
            let size = usize::try_from(length - skip).unwrap_or(usize::MAX).min(out.len() - done);
            let place = &mut out[done..done + size];
            if is_near {
                let at = usize::try_from((number - first) * stride + skip).unwrap_or(usize::MAX);
                let bytes = around.get(at..at + size).ok_or_else(|| Error::broken("the file ends before the chunk"))?;
                place.copy_from_slice(bytes);
            } else {
                read_exactly(self.file.file(), offset + number * stride + skip, place)?;
            }
            done += size;
        }
        Ok(())
    }
}

impl Value for Part<'_> {
    fn size(&self) -> Result<u64> {
        self.extent.size()
    }

    fn read_at(&self, start: u64, out: &mut [u8]) -> Result<usize> {
        let Extent { offset, length, parts, padding, .. } = self.extent;
        let stored = self.extent.size()? - padding;
        let available = usize::try_from(self.extent.size()?.saturating_sub(start)).unwrap_or(usize::MAX).min(out.len());
        let in_file = usize::try_from(stored.saturating_sub(start)).unwrap_or(usize::MAX).min(available);
        let (bytes, zeros) = out[..available].split_at_mut(in_file);
        zeros.fill(0);
        if bytes.is_empty() {
        } else if parts == 1 {
            let place = offset.checked_add(start).ok_or_else(outside)?;
            read_exactly(self.file.file(), place, bytes)?;
        } else if length > 0 {
            self.read_apart(start, bytes)?;
        }
        Ok(available)
    }

    fn stamp(&self) -> Result<Option<Stamp>> {
        // Times that differ in the bits that are cut off are centuries apart.
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
        let modified = self.source.modified as u64;
        let Extent { file, offset, length, .. } = self.extent;
        Ok(Some([u64::from(file), self.source.size, modified, offset, length]))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(name: &str, data: &[u8]) -> Source {
        let root = std::fs::canonicalize(std::env::temp_dir()).unwrap();
        let path = root.join(format!("omnizarr-manifest-{}-{name}", std::process::id()));
        std::fs::write(&path, data).unwrap();
        let metadata = std::fs::metadata(&path).unwrap();
        let modified = nanoseconds(metadata.mtime(), metadata.mtime_nsec());
        Source { path: path.to_str().unwrap().into(), size: metadata.len(), modified }
    }

    fn remove(manifest: &Manifest) {
        for source in manifest.sources.iter() {
            let _ = std::fs::remove_file(std::str::from_utf8(&source.path).unwrap());
        }
    }

    fn manifest(grid: &[u64], chunks: Chunks, sources: Vec<Source>) -> Manifest {
        Manifest { grid: grid.to_vec(), chunks, skipped: None, sources: Arc::new(sources) }
    }

    fn whole(session: &Session<'_>, key: &str) -> Option<Vec<u8>> {
        let mut into = vec![9; 3];
        session.read_all(key, 0, usize::MAX, &mut into).unwrap().then_some(into)
    }

    #[test]
    fn columns_say_where_chunks_lie() {
        let columns = Columns { offsets: vec![2, 0, 1], lengths: vec![3, NOT_STORED, 2], files: Some(vec![0, 0, 1]) };
        let sources = vec![written("a", b"0123456789"), written("b", b"abc")];
        let manifest = manifest(&[3], Chunks::Columns(columns), sources);
        let session = manifest.session();
        assert_eq!(whole(&session, "0").unwrap(), b"234");
        assert_eq!(whole(&session, "1"), None);
        assert_eq!(whole(&session, "2").unwrap(), b"bc");
        assert!(session.open("3").is_err());
        let mut out = [0; 3];
        assert_eq!(session.read_into("0", &mut out).unwrap(), Some(3));
        assert_eq!(&out, b"234");
        session.check().unwrap();
        assert_eq!((manifest.number(&[2]), manifest.number(&[3]), manifest.number(&[0, 0])), (Some(2), None, None));
        remove(&manifest);
    }

    #[test]
    fn records_are_read_from_between_others() {
        let data: Vec<u8> = (0..100).collect();
        let strided =
            Strided { start: 3, steps: vec![40], axis: 0, units: 9, per_chunk: 4, unit: 2, stride: 10, file: 0 };
        let manifest = manifest(&[3], Chunks::Strided(strided), vec![written("c", &data)]);
        let session = manifest.session();
        assert_eq!(whole(&session, "0").unwrap(), [3, 4, 13, 14, 23, 24, 33, 34]);
        assert_eq!(whole(&session, "2").unwrap(), [83, 84, 0, 0, 0, 0, 0, 0]);
        let value = session.open("1").unwrap().unwrap();
        let mut out = [0; 4];
        assert_eq!(value.read_at(3, &mut out).unwrap(), 4);
        assert_eq!(out, [54, 63, 64, 73]);
        remove(&manifest);
    }

    #[test]
    fn a_file_that_changed_or_is_too_short_is_an_error() {
        let columns = Columns { offsets: vec![2, 8], lengths: vec![3, 5], files: None };
        let manifest = manifest(&[2], Chunks::Columns(columns), vec![written("d", b"0123456789")]);
        let session = manifest.session();
        assert!(session.open("1").unwrap().unwrap().read_at(0, &mut [0; 5]).is_err());
        std::fs::write(std::str::from_utf8(&manifest.sources[0].path).unwrap(), b"01234567890").unwrap();
        assert!(session.check().is_err());
        assert!(manifest.session().open("0").is_err());
        remove(&manifest);
        assert!(manifest.session().open("0").is_err());
    }
}
