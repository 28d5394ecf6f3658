//! Chunks in files of other formats: a manifest says which bytes of which file each of them is.
//!
//! What `omnizarr.stores.manifests` is in Python. A chunk has no name but its number in the C order of the grid, in
//! decimal digits. A file is opened once for each plan, and must have the size and the times of change that were recorded
//! when the manifest was made, before and after the plan is run. A chunk that is a whole file may change. Everything unusual is an error: the engine in Python
//! then reads the chunk again, and says what is wrong.

use std::collections::HashMap;
use std::fs::File;
use std::os::unix::fs::MetadataExt;
use std::sync::{Arc, Mutex, OnceLock};

use super::{READ, beneath, nanoseconds, read_fully};
use crate::error::{Error, Result};
use crate::manifest::{Extent, INLINE, Manifest, WHOLE, outside};
use crate::store::{Change, Stamp, Store, Value};
use crate::threads::locked;

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
    /// The same of its inode.
    pub changed: i128,
    /// The number of its inode; 0: it may be another one.
    pub number: u64,
    /// Whether it must be the same. A value that is a whole file may be replaced, as in a directory; the other facts then mean
    /// nothing.
    pub is_fixed: bool,
}

/// A file that is open, with its size and the time of its last change.
pub struct Opened {
    file: File,
    size: u64,
    modified: i128,
}

/// The files of one plan.
pub struct Session<'a> {
    manifest: &'a Manifest,
    sources: &'a [Option<Source>],
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
    fn opened(&self) -> &Opened {
        match self {
            Self::First(opened) => opened,
            Self::Other(opened) => opened,
        }
    }

    fn file(&self) -> &File {
        &self.opened().file
    }
}

/// Check that a file has not changed, and return its size and the time of its last change.
fn check(file: &File, source: &Source) -> Result<(u64, i128)> {
    let metadata = file.metadata()?;
    let modified = nanoseconds(metadata.mtime(), metadata.mtime_nsec());
    let changed = nanoseconds(metadata.ctime(), metadata.ctime_nsec());
    let is_same = metadata.len() == source.size
        && (modified, changed) == (source.modified, source.changed)
        && (source.number == 0 || source.number == metadata.ino());
    if !metadata.is_file() || (source.is_fixed && !is_same) {
        return Err(Error::broken("the file has changed"));
    }
    Ok((metadata.len(), modified))
}

impl Opened {
    /// Open a file.
    ///
    /// # Errors
    /// If it cannot be opened, or has changed.
    pub fn of(source: &Source) -> Result<Self> {
        let opened = beneath::open(&source.path, READ).map_err(|_| Error::broken("the file cannot be opened"))?;
        let file = File::from(opened);
        let (size, modified) = check(&file, source)?;
        Ok(Self { file, size, modified })
    }

    /// Fill `out` with the bytes from a place on.
    ///
    /// # Errors
    /// If the file ends before.
    pub fn read(&self, start: u64, out: &mut [u8]) -> Result<()> {
        read_exactly(&self.file, start, out)
    }

    /// Check that the file has not changed since it was opened.
    ///
    /// # Errors
    /// If it has.
    pub fn check(&self, source: &Source) -> Result<()> {
        check(&self.file, source).map(|_| ())
    }
}

impl<'a> Session<'a> {
    /// A store that reads the files of a manifest, for one plan.
    #[must_use]
    pub fn new(manifest: &'a Manifest, sources: &'a [Option<Source>]) -> Self {
        Self { manifest, sources, first: OnceLock::new(), others: Mutex::new(HashMap::new()) }
    }

    fn source(&self, number: u32) -> Result<&Source> {
        self.sources.get(number as usize).and_then(Option::as_ref).ok_or_else(outside)
    }

    fn file(&self, number: u32) -> Result<Held<'_>> {
        if number == 0 {
            if let Some(first) = self.first.get() {
                return Ok(Held::First(first));
            }
            // Of several threads, one opens it for all; the others close theirs.
            let first = Opened::of(self.source(0)?)?;
            return Ok(Held::First(self.first.get_or_init(|| first)));
        }
        if let Some(known) = locked(&self.others).get(&number) {
            return Ok(Held::Other(Arc::clone(known)));
        }
        let file = Arc::new(Opened::of(self.source(number)?)?);
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
        others.iter().try_for_each(|(&number, opened)| opened.check(self.source(number)?))
    }

    /// Check that no file has changed since it was opened.
    ///
    /// # Errors
    /// If one has.
    pub fn check(&self) -> Result<()> {
        if let Some(first) = self.first.get() {
            first.check(self.source(0)?)?;
        }
        self.check_others(&locked(&self.others))
    }

    /// Return a chunk; None if it is not stored.
    fn chunk(&self, key: &str) -> Result<Option<Chunk<'_>>> {
        let number = key.parse().map_err(|_| outside())?;
        let Some(mut extent) = self.manifest.find(number)? else { return Ok(None) };
        if extent.length == INLINE {
            return self.manifest.inline(number).map(|bytes| Some(Chunk::Inline(bytes))).ok_or_else(outside);
        }
        let file = self.file(extent.file)?;
        if extent.length == WHOLE {
            extent.length = file.opened().size;
        }
        Ok(Some(Chunk::Stored(Part { file, extent })))
    }
}

/// A chunk that is stored.
enum Chunk<'a> {
    Stored(Part<'a>),
    Inline(&'a [u8]),
}

fn read_exactly(file: &File, start: u64, out: &mut [u8]) -> Result<()> {
    if read_fully(file, start, out)? < out.len() {
        return Err(Error::broken("the file ends before the chunk"));
    }
    Ok(())
}

impl Store for Session<'_> {
    fn open(&self, key: &str) -> Result<Option<Box<dyn Value + '_>>> {
        Ok(match self.chunk(key)? {
            None => None,
            Some(Chunk::Stored(part)) => Some(Box::new(part)),
            Some(Chunk::Inline(bytes)) => Some(Box::new(Inline(bytes))),
        })
    }

    fn read_all(&self, key: &str, _hint: usize, most: usize, into: &mut Vec<u8>) -> Result<bool> {
        let part = match self.chunk(key)? {
            None => return Ok(false),
            Some(Chunk::Stored(part)) => part,
            Some(Chunk::Inline(bytes)) => {
                into.clear();
                into.extend_from_slice(bytes);
                return if bytes.len() > most { Err(Error::broken("larger than it may be")) } else { Ok(true) };
            }
        };
        let extent = &part.extent;
        let size = usize::try_from(extent.size()?).map_err(|_| Error::broken("larger than memory"))?;
        if size > most || extent.size()? > part.file.opened().size.saturating_add(extent.padding) {
            return Err(Error::broken("larger than it may be"));
        }
        // Old bytes need not be cleared.
        into.truncate(size);
        into.try_reserve_exact(size - into.len()).map_err(|_| Error::broken("larger than memory"))?;
        into.resize(size, 0);
        part.read_at(0, into)?;
        Ok(true)
    }

    fn read_into(&self, key: &str, out: &mut [u8]) -> Result<Option<u64>> {
        let size = match self.chunk(key)? {
            None => return Ok(None),
            Some(Chunk::Stored(part)) => {
                let size = part.extent.size()?;
                if size == out.len() as u64 {
                    part.read_at(0, out)?;
                }
                size
            }
            Some(Chunk::Inline(bytes)) => {
                if bytes.len() == out.len() {
                    out.copy_from_slice(bytes);
                }
                bytes.len() as u64
            }
        };
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

/// A chunk in memory.
struct Inline<'a>(&'a [u8]);

impl Value for Inline<'_> {
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

/// A chunk in an open file.
struct Part<'a> {
    file: Held<'a>,
    extent: Extent,
}

impl Part<'_> {
    /// Return where the parts begin and end that hold `size` bytes from `start` on, if they lie apart, but near each other.
    fn around(&self, start: u64, size: usize) -> Option<(u64, usize)> {
        let Extent { offset, length, stride, parts, .. } = self.extent;
        if parts <= 1 || length == 0 || size == 0 || start >= parts.saturating_mul(length) {
            return None;
        }
        let (first, last) = (start / length, ((start + size as u64 - 1) / length).min(parts - 1));
        let span = (last - first).saturating_mul(stride).saturating_add(length);
        let is_near = stride >= length && stride - length <= GAP && span <= LARGEST;
        is_near.then_some((offset + first * stride, usize::try_from(span).ok()?))
    }
}

impl Value for Part<'_> {
    fn size(&self) -> Result<u64> {
        self.extent.size()
    }

    fn read_at(&self, start: u64, out: &mut [u8]) -> Result<usize> {
        let file = self.file.file();
        let Some((from, size)) = self.around(start, out.len()) else {
            return self.extent.read(start, out, |place, out| read_exactly(file, place, out));
        };
        let mut around = vec![0; size];
        read_exactly(file, from, &mut around)?;
        self.extent.read(start, out, |place, out| {
            let at = usize::try_from(place - from).unwrap_or(usize::MAX);
            let bytes = at.checked_add(out.len()).and_then(|end| around.get(at..end));
            out.copy_from_slice(bytes.ok_or_else(outside)?);
            Ok(())
        })
    }

    fn stamp(&self) -> Result<Option<Stamp>> {
        // Times that differ in the bits that are cut off are centuries apart.
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
        let modified = self.file.opened().modified as u64;
        let Extent { file, offset, length, .. } = self.extent;
        Ok(Some([u64::from(file), self.file.opened().size, modified, offset, length]))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::manifest::{ASK, Chunks, Columns, Known, NOT_STORED, Strided};

    #[allow(clippy::unnecessary_wraps)] // files that are described are held so
    fn written(name: &str, data: &[u8]) -> Option<Source> {
        let root = std::fs::canonicalize(std::env::temp_dir()).unwrap();
        let path = root.join(format!("omnizarr-manifest-{}-{name}", std::process::id()));
        std::fs::write(&path, data).unwrap();
        let metadata = std::fs::metadata(&path).unwrap();
        let modified = nanoseconds(metadata.mtime(), metadata.mtime_nsec());
        let changed = nanoseconds(metadata.ctime(), metadata.ctime_nsec());
        let (size, number) = (metadata.len(), metadata.ino());
        Some(Source { path: path.to_str().unwrap().into(), size, modified, changed, number, is_fixed: true })
    }

    fn remove(sources: &[Option<Source>]) {
        for source in sources.iter().flatten() {
            let _ = std::fs::remove_file(std::str::from_utf8(&source.path).unwrap());
        }
    }

    fn manifest(grid: &[u64], chunks: Chunks) -> Manifest {
        Manifest { grid: grid.to_vec(), chunks, skipped: None }
    }

    fn whole(session: &Session<'_>, key: &str) -> Option<Vec<u8>> {
        let mut into = vec![9; 3];
        session.read_all(key, 0, usize::MAX, &mut into).unwrap().then_some(into)
    }

    #[test]
    fn columns_say_where_chunks_lie() {
        let columns = Columns { offsets: vec![2, 0, 1], lengths: vec![3, NOT_STORED, 2], files: Some(vec![0, 0, 1]) };
        let sources = vec![written("a", b"0123456789"), written("b", b"abc")];
        let manifest = manifest(&[3], Chunks::Columns(columns));
        let session = Session::new(&manifest, &sources);
        assert_eq!(whole(&session, "0").unwrap(), b"234");
        assert_eq!(whole(&session, "1"), None);
        assert_eq!(whole(&session, "2").unwrap(), b"bc");
        assert!(session.open("3").is_err());
        let mut out = [0; 3];
        assert_eq!(session.read_into("0", &mut out).unwrap(), Some(3));
        assert_eq!(&out, b"234");
        session.check().unwrap();
        assert_eq!((manifest.number(&[2]), manifest.number(&[3]), manifest.number(&[0, 0])), (Some(2), None, None));
        remove(&sources);
    }

    #[test]
    fn records_are_read_from_between_others() {
        let data: Vec<u8> = (0..100).collect();
        let strided =
            Strided { start: 3, steps: vec![40], axis: 0, units: 9, per_chunk: 4, unit: 2, stride: 10, file: 0 };
        let (manifest, sources) = (manifest(&[3], Chunks::Strided(strided)), [written("c", &data)]);
        let session = Session::new(&manifest, &sources);
        assert_eq!(whole(&session, "0").unwrap(), [3, 4, 13, 14, 23, 24, 33, 34]);
        assert_eq!(whole(&session, "2").unwrap(), [83, 84, 0, 0, 0, 0, 0, 0]);
        let value = session.open("1").unwrap().unwrap();
        let mut out = [0; 4];
        assert_eq!(value.read_at(3, &mut out).unwrap(), 4);
        assert_eq!(out, [54, 63, 64, 73]);
        remove(&sources);
    }

    #[test]
    fn a_file_that_changed_or_is_too_short_is_an_error() {
        let columns = Columns { offsets: vec![2, 8], lengths: vec![3, 5], files: None };
        let (manifest, sources) = (manifest(&[2], Chunks::Columns(columns)), [written("d", b"0123456789")]);
        let session = Session::new(&manifest, &sources);
        assert!(session.open("1").unwrap().unwrap().read_at(0, &mut [0; 5]).is_err());
        std::fs::write(std::str::from_utf8(&sources[0].as_ref().unwrap().path).unwrap(), b"01234567890").unwrap();
        assert!(session.check().is_err());
        assert!(Session::new(&manifest, &sources).open("0").is_err());
        remove(&sources);
        assert!(Session::new(&manifest, &sources).open("0").is_err());
    }

    #[test]
    fn whole_files_may_change_and_values_may_be_in_memory() {
        let mut known = Known::default();
        known.put(0, 0, WHOLE, 0);
        known.put_inline(1, b"xyz");
        known.put(2, 0, ASK, 0);
        let mut sources = [written("e", b"0123456789")];
        if let Some(source) = &mut sources[0] {
            source.is_fixed = false;
        }
        let manifest = manifest(&[3], Chunks::Known(known.into()));
        let session = Session::new(&manifest, &sources);
        assert_eq!(whole(&session, "1").unwrap(), b"xyz");
        let mut out = [0; 3];
        assert_eq!(session.read_into("1", &mut out).unwrap(), Some(3));
        assert_eq!(&out, b"xyz");
        assert_eq!(session.open("1").unwrap().unwrap().read_at(2, &mut out).unwrap(), 1);
        assert!(session.read_all("1", 0, 2, &mut Vec::new()).is_err());
        assert_eq!(session.open("2").err().unwrap().kind, crate::error::Kind::Refused);
        assert_eq!(whole(&session, "0").unwrap(), b"0123456789");
        std::fs::write(std::str::from_utf8(&sources[0].as_ref().unwrap().path).unwrap(), b"01").unwrap();
        session.check().unwrap();
        assert_eq!(whole(&Session::new(&manifest, &sources), "0").unwrap(), b"01");
        remove(&sources);
    }
}
