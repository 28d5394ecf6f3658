//! Values in files, keys as their paths below one directory.
//!
//! The same files, temporary files and lock files as `omnizarr.stores.local.directory`, whose text says what
//! is promised: both stores work in one directory at the same time, in this process and in others. What needs
//! more than a look at one file is refused, and so left to that store: symbolic links (it follows those that
//! stay inside), and file systems that lock no files.
//!
//! Reading
//!     takes three calls of the system: open, read, close. Room for a byte more than is expected shows that the file ends,
//!     in place of asking for its size, which costs 5 % of reading 16 KiB.
//!
//! Writing
//!     takes four: create, write, close, rename. The last is a fourth to a third of it for 16 KiB, the price of values
//!     that are whole or not there at all. Files without a name (`O_TMPFILE`) that are linked into place save some of
//!     that where the key is new, and cost more than they save where it is not.
//!     Chunks beyond the end of an array that is becoming longer are seen when the array has its new shape, and until then
//!     may be there in part. They are written under their own name, without a temporary file: this halves the time that 2 KiB
//!     take. If there is something under that name, if the value is large, or if what is written must be on the disk, it
//!     is done as always. A reader that opened the array while it was longer can find a small one empty for a moment.
//!
//! Stamps
//!     tell versions of a value apart by what the file system says of its file. It counts time in ticks (1 to 10 ms, as
//!     the system was built), and gives the number of a file that is gone to the next one: of two values that are
//!     written within a tick the second can look like the first in every respect. So a file has a stamp only if its last
//!     change is well behind the time at which it was looked at; whatever is written from then on shows
//!     another time.
//!
//! Paths
//!     are given in full, and opened with no link on the way (`beneath`). A directory is not kept open: it would stay the
//!     same when another takes its place, and then values would be read from, or written to, the wrong place. So writing
//!     opens the directory and closes it again. Only while a thread writes one selection beyond the end of an array, whose lock
//!     its caller holds, does it keep the directory open.

mod beneath;
pub mod blocks;
mod locks;
pub mod manifest;
pub mod removal;
pub mod small;
#[cfg(test)]
mod tests;

use std::cell::RefCell;
use std::fs::{File, Metadata};
use std::hash::{BuildHasher, RandomState};
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime};

use rustix::buffer::spare_capacity;
use rustix::fd::OwnedFd;
use rustix::fs::{AtFlags, FileType, Mode, OFlags, Stat};
use rustix::io::{Errno, IoSliceMut, retry_on_intr};
use rustix::{fs, io};

use crate::error::{Error, Result};
use crate::store::{Change, Patch, Stamp, Store, Value};
pub use beneath::open;
pub use locks::forget_after_fork;

/// Larger values are written to a temporary file also before readers look for them, which costs them little: a reader that
/// opened the array when it was longer, or a program that runs after this one was killed, would find a part of one.
const LARGEST_IN_PLACE: usize = 1 << 16;

/// How the names of our own files begin; no segment of a key may.
const RESERVED: &str = ".omnizarr-";
/// A named pipe in the place of a file must not make us wait for its writer, nor a link lead us anywhere.
const READ: OFlags = OFlags::RDONLY.union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC).union(OFlags::NONBLOCK);
const CREATE: OFlags = OFlags::WRONLY.union(OFlags::CREATE).union(OFlags::EXCL).union(OFlags::CLOEXEC);
/// Permissions of directories and of files; the system takes the umask away.
const OF_DIRECTORIES: Mode = Mode::from_raw_mode(0o777);
const OF_FILES: Mode = Mode::from_raw_mode(0o666);
/// To create a directory that others keep removing.
const ATTEMPTS: usize = 1000;
/// A change that is back further than so long was made in another tick of the clock; ten of the longest
/// there are.
const SETTLED: Duration = Duration::from_millis(100);
/// The same for file systems that write down no fractions of seconds (at most hundredths): some count every other one.
const SETTLED_COARSELY: Duration = Duration::from_secs(3);
const NANOSECONDS: i128 = 1_000_000_000;
/// The finest step that a time counts as coarse of: 10 ms, in nanoseconds.
const COARSE: i128 = 10_000_000;
/// Smaller values are read and written as fast.
const LEAST_PATCHED: u64 = 1 << 20;
/// Longer names are hashed, which keeps the name of a lock file well below the limit of 255 bytes.
const LONGEST_LOCKED: usize = 60;

thread_local! {
    /// The directory in which this thread wrote unseen values last, and its path.
    static FOLDER: RefCell<Option<(Vec<u8>, OwnedFd)>> = const { RefCell::new(None) };
}

/// Closes the directory that this thread has kept open.
struct Closing;

impl Drop for Closing {
    fn drop(&mut self) {
        FOLDER.take();
    }
}

/// A store in a directory of the local file system.
pub struct Files {
    /// The directory, with a slash at its end.
    base: Vec<u8>,
    fsync: bool,
    /// The directory of the array whose chunks these are, and a document that it has: if that is gone, the directory is not
    /// made again.
    home: Option<(Vec<u8>, Vec<u8>)>,
}

impl Files {
    /// The store in the directory `root`, an absolute path without links: what has links on its way is refused. It need
    /// not exist: the first value written creates it.
    ///
    /// With `fsync`, writing waits until each value, and the name it is found under, is on the disk.
    #[must_use]
    pub fn new(root: PathBuf, fsync: bool) -> Self {
        let mut base = root.into_os_string().into_vec();
        while base.last() == Some(&b'/') {
            base.pop();
        }
        base.push(b'/');
        Self { base, fsync, home: None }
    }

    /// The same for the chunks of an array: its directory is not made unless `document` is there. Both are keys.
    #[must_use]
    pub fn of_array(mut self, folder: &str, document: &str) -> Self {
        self.home = Some((without_slash(&self.path(folder)).to_vec(), self.path(document)));
        self
    }

    fn path(&self, key: &str) -> Vec<u8> {
        let mut path = Vec::with_capacity(self.base.len() + key.len());
        path.extend_from_slice(&self.base);
        path.extend_from_slice(key.as_bytes());
        path
    }

    // -- directories ---------------------------------------------------------------------------------------------------

    /// Open the directory `parent`, which exists.
    fn opened(&self, parent: &str) -> io::Result<OwnedFd> {
        beneath::folder(&self.path(parent))
    }

    /// Open the directory `parent`, and create it if it does not exist.
    fn made(&self, parent: &str) -> Result<OwnedFd> {
        for _ in 0..ATTEMPTS {
            match self.opened(parent) {
                Ok(folder) => return Ok(folder),
                Err(Errno::NOENT) => {}
                Err(error) => return Err(failure(error)),
            }
            if let Some(folder) = self.create_directories(parent)? {
                return Ok(folder);
            }
        }
        Err(Error::broken("the directory is removed again and again"))
    }

    /// Create and open a directory with those above it; None if another thread or process prunes at the same time.
    fn create_directories(&self, parent: &str) -> Result<Option<OwnedFd>> {
        let path = self.path(parent);
        let mut missing = vec![without_slash(&path)];
        let mut folder = loop {
            let next = above(missing[missing.len() - 1]);
            match beneath::folder(next) {
                Ok(folder) => break folder,
                Err(Errno::NOENT) if next != b"/" => missing.push(next),
                Err(error) => return Err(failure(error)),
            }
        };
        if let Some((home, document)) = &self.home
            && missing.contains(&home.as_slice())
            && fs::stat(&document[..]).is_err()
        {
            return Err(Error::refused("the array is gone"));
        }
        for path in missing.iter().rev() {
            let name = last_of(path);
            match fs::mkdirat(&folder, name, OF_DIRECTORIES) {
                Ok(()) | Err(Errno::EXIST) => {}
                Err(Errno::NOENT) => return Ok(None),
                Err(error) => return Err(error.into()),
            }
            if self.fsync {
                sync_directory(&folder)?;
            }
            folder = match beneath::below(&folder, name) {
                Ok(next) => next,
                Err(Errno::NOENT) => return Ok(None),
                Err(error) => return Err(failure(error)),
            };
        }
        Ok(Some(folder))
    }

    /// Remove the directory `parent` and those above it, as far as they are empty, up to the root; return how many.
    fn prune(&self, mut parent: &str) -> usize {
        let mut count = 0;
        while !parent.is_empty() {
            let (above, name) = split(parent);
            let removed = self.opened(above).and_then(|folder| fs::unlinkat(&folder, name, AtFlags::REMOVEDIR));
            if removed.is_err() {
                break;
            }
            count += 1;
            parent = above;
        }
        count
    }

    // -- reading -------------------------------------------------------------------------------------------------------

    /// Open the file of a key; None if there is nothing under this name. It may still be a directory or a device.
    fn open_file(&self, key: &str) -> Result<Option<File>> {
        check_key(key)?;
        match beneath::open(&self.path(key), READ) {
            Ok(file) => Ok(Some(File::from(file))),
            Err(error) if error != Errno::LOOP && is_absence(error) => Ok(None),
            Err(error) => Err(failure(error)),
        }
    }

    // -- writing -------------------------------------------------------------------------------------------------------

    /// Write a temporary file, and rename it; nothing is left if that fails.
    fn place(&self, key: &str, data: &[u8]) -> Result<()> {
        let (parent, name) = split(key);
        for _ in 0..ATTEMPTS {
            match write_in(&self.made(parent)?, name, data, self.fsync) {
                // Another writer has the same name, or the directory was removed meanwhile, and all that was in it.
                Err(Errno::EXIST | Errno::NOENT) => {}
                done => return Ok(done?),
            }
        }
        Err(Error::broken("the directory is removed again and again"))
    }
}

impl Store for Files {
    fn open(&self, key: &str) -> Result<Option<Box<dyn Value + '_>>> {
        // Before the file is looked at: a thread may have to wait in between.
        let now = SystemTime::UNIX_EPOCH.elapsed().unwrap_or_default();
        let Some(file) = self.open_file(key)? else {
            return Ok(None);
        };
        let metadata = file.metadata()?;
        if !metadata.is_file() {
            return Ok(None);
        }
        Ok(Some(Box::new(Open { file, metadata, now })))
    }

    fn read_all(&self, key: &str, hint: usize, most: usize, into: &mut Vec<u8>) -> Result<bool> {
        into.clear();
        let Some(file) = self.open_file(key)? else {
            return Ok(false);
        };
        // With room for a byte more than there is, a single call reads the file and shows that it ends.
        reserve(into, hint.saturating_add(1))?;
        let room = into.capacity();
        let read = match retry_on_intr(|| io::pread(&file, spare_capacity(into), 0)) {
            Ok(read) => read,
            Err(error) if is_absence(error) => return Ok(false),
            Err(error) => return Err(error.into()),
        };
        if 0 < read && read < room {
            return Ok(true);
        }
        // Larger than expected, or a device.
        let metadata = file.metadata()?;
        if !metadata.is_file() {
            return Ok(false);
        }
        let size = metadata.len();
        let needed = usize::try_from(size).map_err(|_| Error::broken("larger than memory"))?;
        if needed > most {
            return Err(Error::broken("larger than it may be"));
        }
        reserve(into, needed)?;
        while (into.len() as u64) < size {
            let place = into.len() as u64;
            if retry_on_intr(|| io::pread(&file, spare_capacity(into), place))? == 0 {
                break;
            }
        }
        Ok(true)
    }

    fn read_into(&self, key: &str, out: &mut [u8]) -> Result<Option<u64>> {
        let Some(file) = self.open_file(key)? else {
            return Ok(None);
        };
        // A byte more than fits: if it is not read, then the file ends here, and need not be asked for its size.
        let mut spare = [0];
        match retry_on_intr(|| io::preadv(&file, &mut [IoSliceMut::new(out), IoSliceMut::new(&mut spare)], 0)) {
            Ok(read) if read == out.len() => return Ok(Some(read as u64)),
            Ok(_) => {}
            Err(error) if is_absence(error) => return Ok(None),
            Err(error) => return Err(error.into()),
        }
        let metadata = file.metadata()?;
        if !metadata.is_file() {
            return Ok(None);
        }
        let size = metadata.len();
        let available = usize::try_from(size).map_or(out.len(), |size| size.min(out.len()));
        let read = read_fully(&file, 0, &mut out[..available])?;
        Ok(Some(if read < available { read as u64 } else { size }))
    }

    fn set(&self, key: &str, data: &[u8]) -> Result<()> {
        check_key(key)?;
        self.place(key, data)
    }

    fn set_unseen(&self, key: &str, data: &[u8]) -> Result<()> {
        check_key(key)?;
        if self.fsync || data.len() > LARGEST_IN_PLACE {
            return self.place(key, data);
        }
        let (parent, name) = split(key);
        let path = self.path(parent);
        let folder = match FOLDER.take().filter(|(known, _)| *known == path) {
            Some((_, folder)) => folder,
            None => self.made(parent)?,
        };
        match write_new(&folder, name.as_bytes(), data, false) {
            // An older value, or the directory was removed meanwhile.
            Err(Errno::EXIST | Errno::NOENT) => self.place(key, data),
            done => {
                FOLDER.set(Some((path, folder)));
                Ok(done?)
            }
        }
    }

    fn attached(&self, work: &mut (dyn FnMut() + Send)) {
        let _closing = Closing;
        work();
    }

    fn patch(&self, key: &str, patch: &mut Patch<'_>) -> Result<bool> {
        let Some(file) = self.open_file(key)? else {
            return Ok(false);
        };
        let metadata = file.metadata()?;
        if !metadata.is_file() || metadata.len() < LEAST_PATCHED {
            return Ok(false);
        }
        let value = Open { file, metadata, now: Duration::ZERO };
        let Some(patches) = patch(&value)? else {
            return Ok(false);
        };
        let size = value.metadata.len();
        let fits = |(start, data): &(u64, Vec<u8>)| start.checked_add(data.len() as u64).is_some_and(|end| end <= size);
        if !patches.iter().all(fits) {
            return Err(Error::broken("a place outside the value"));
        }
        let (parent, name) = split(key);
        let folder = self.opened(parent).map_err(failure)?;
        let temporary = own_name(&unique_name(), ".tmp");
        // The system need not have such a copy, as between file systems: then the caller makes the value again.
        if copy_patched(&folder, &temporary, &value.file, size, &patches, self.fsync).is_err() {
            return Ok(false);
        }
        fs::renameat(&folder, &temporary[..], &folder, name).inspect_err(|_| discard(&folder, &temporary))?;
        if self.fsync {
            sync_directory(&folder)?;
        }
        Ok(true)
    }

    fn delete(&self, key: &str) -> Result<()> {
        check_key(key)?;
        let (parent, name) = split(key);
        let removed = match self.opened(parent) {
            Ok(folder) => remove(&folder, name),
            Err(error) => Err(error),
        };
        match removed {
            Ok(true) => drop(self.prune(parent)),
            Ok(false) => {}
            Err(error) if error != Errno::LOOP && is_absence(error) => {}
            Err(error) => return Err(failure(error)),
        }
        Ok(())
    }

    fn locked(&self, key: &str, waiting: &dyn Fn() -> Result<()>, change: &mut Change<'_>) -> Result<()> {
        check_key(key)?;
        let (parent, name) = split(key);
        let _pruned = Pruned { files: self, key, parent };
        let (folder, name) = (self.path(parent), lock_name(name));
        let _lock = locks::acquire(&folder, &name, &|| self.made(parent), waiting)?;
        change()
    }
}

/// A file that is open for reading. Values are replaced, not changed, so it is one version of its value.
struct Open {
    file: File,
    metadata: Metadata,
    /// Not later than the metadata; since 1970.
    now: Duration,
}

impl Value for Open {
    fn size(&self) -> Result<u64> {
        Ok(self.metadata.len())
    }

    fn read_at(&self, start: u64, out: &mut [u8]) -> Result<usize> {
        let rest = self.metadata.len().saturating_sub(start);
        let available = usize::try_from(rest).map_or(out.len(), |rest| rest.min(out.len()));
        Ok(read_fully(&self.file, start, &mut out[..available])?)
    }

    fn stamp(&self) -> Result<Option<Stamp>> {
        let metadata = &self.metadata;
        let modified = nanoseconds(metadata.mtime(), metadata.mtime_nsec());
        let changed = nanoseconds(metadata.ctime(), metadata.ctime_nsec());
        if !is_settled(modified, changed, self.now) {
            return Ok(None);
        }
        // Times that differ in the bits that are cut off are centuries apart.
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
        Ok(Some([metadata.dev(), metadata.ino(), metadata.len(), modified as u64, changed as u64]))
    }
}

fn nanoseconds(seconds: i64, rest: i64) -> i128 {
    i128::from(seconds) * NANOSECONDS + i128::from(rest)
}

/// Whether whatever changes a file from `now` on shows another time than its last change did. A time in the future
/// means that clocks disagree; then the answer is always false.
fn is_settled(modified: i128, changed: i128, now: Duration) -> bool {
    let is_coarse = modified % COARSE == 0 && changed % COARSE == 0;
    let settled = if is_coarse { SETTLED_COARSELY } else { SETTLED };
    let passed = i128::try_from(now.as_nanos()).map_or(0, |now| now - modified.max(changed));
    passed > i128::try_from(settled.as_nanos()).unwrap_or(i128::MAX)
}

/// The directories that a lock file has kept others from removing, or that were made for it alone.
struct Pruned<'a> {
    files: &'a Files,
    key: &'a str,
    parent: &'a str,
}

impl Drop for Pruned<'_> {
    fn drop(&mut self) {
        if fs::lstat(self.files.path(self.key)).is_err_and(is_absence) {
            self.files.prune(self.parent);
        }
    }
}

// -- keys and paths ----------------------------------------------------------------------------------------------------

/// Refuse what cannot be a key; see `omnizarr.stores.base.is_key`.
fn check_key(key: &str) -> Result<()> {
    let bytes = key.as_bytes();
    let is_drive = bytes.len() >= 2
        && bytes[0].is_ascii_alphabetic()
        && bytes[1] == b':'
        && matches!(bytes.get(2), None | Some(b'/'));
    let is_name = |name: &str| !matches!(name, "" | "." | "..") && !name.starts_with(RESERVED);
    if is_drive || bytes.iter().any(|byte| matches!(byte, 0 | b'\\')) || !key.split('/').all(is_name) {
        return Err(Error::refused("no key"));
    }
    Ok(())
}

/// The directory of a key, and its name there.
fn split(key: &str) -> (&str, &str) {
    key.rsplit_once('/').unwrap_or(("", key))
}

/// The directory that a path is in.
fn above(path: &[u8]) -> &[u8] {
    match without_slash(path).iter().rposition(|&byte| byte == b'/') {
        None => b".",
        Some(0) => b"/",
        Some(end) => without_slash(&path[..end]),
    }
}

fn without_slash(path: &[u8]) -> &[u8] {
    path.strip_suffix(b"/").filter(|rest| !rest.is_empty()).unwrap_or(path)
}

/// The name that a path ends with.
fn last_of(path: &[u8]) -> &[u8] {
    let end = path.iter().rposition(|&byte| byte == b'/').map_or(0, |end| end + 1);
    &path[end..]
}

/// The name of a file of our own: a reserved beginning, a name and an ending.
fn own_name(name: &[u8], ending: &str) -> Vec<u8> {
    [RESERVED.as_bytes(), name, ending.as_bytes()].concat()
}

/// The name of the lock file beside a value.
fn lock_name(name: &str) -> Vec<u8> {
    if name.chars().count() <= LONGEST_LOCKED {
        return own_name(name.as_bytes(), locks::ENDING);
    }
    let hash = blake2b_simd::Params::new().hash_length(16).hash(name.as_bytes());
    own_name(hash.to_hex().as_bytes(), locks::ENDING)
}

/// Sixteen hexadecimal digits that are almost certainly unique among processes, threads and machines. A forked
/// child may get the same digits as its parent; then the second of them needs another attempt.
fn unique_name() -> [u8; 16] {
    static COUNTER: AtomicU64 = AtomicU64::new(0);
    // Keyed by randomness of the system.
    let now = SystemTime::UNIX_EPOCH.elapsed().map_or(0, |elapsed| elapsed.as_nanos());
    let number = RandomState::new().hash_one((COUNTER.fetch_add(1, Ordering::Relaxed), now));
    std::array::from_fn(|digit| b"0123456789abcdef"[(number >> (60 - 4 * digit) & 15) as usize])
}

// -- the system --------------------------------------------------------------------------------------------------------

/// Whether an error says that there is no such file. A directory, a pipe or a socket is not a value either.
fn is_absence(error: Errno) -> bool {
    use Errno as E;
    matches!(error, E::NOENT | E::NOTDIR | E::ISDIR | E::NAMETOOLONG | E::NXIO | E::SPIPE | E::LOOP)
}

fn type_of(status: &Stat) -> FileType {
    FileType::from_raw_mode(status.st_mode)
}

/// What the engine makes of an error in opening a directory or a file: the store in Python follows links that stay inside.
fn failure(error: Errno) -> Error {
    if error == Errno::LOOP { Error::refused("a symbolic link") } else { error.into() }
}

/// Fill `out` as far as the file reaches, and return how far that is.
fn read_fully(file: &File, start: u64, out: &mut [u8]) -> io::Result<usize> {
    let mut done = 0;
    while done < out.len() {
        // The system reads 2 GiB at most at once, and a network file system as much as it likes.
        match retry_on_intr(|| io::pread(file, &mut out[done..], start + done as u64))? {
            0 => break,
            read => done += read,
        }
    }
    Ok(done)
}

/// Make room for `size` bytes in all.
fn reserve(buffer: &mut Vec<u8>, size: usize) -> Result<()> {
    let more = size.saturating_sub(buffer.len());
    buffer.try_reserve_exact(more).map_err(|_| Error::broken("larger than memory"))
}

/// Write a temporary file in a directory, and rename it; nothing is left if that fails.
fn write_in(folder: &OwnedFd, name: &str, data: &[u8], fsync: bool) -> io::Result<()> {
    let temporary = own_name(&unique_name(), ".tmp");
    write_new(folder, &temporary, data, fsync)?;
    fs::renameat(folder, &temporary[..], folder, name).inspect_err(|_| discard(folder, &temporary))?;
    if fsync { sync_directory(folder) } else { Ok(()) }
}

/// Write a file that must not exist yet. If that fails, no file remains.
fn write_new(folder: &OwnedFd, name: &[u8], data: &[u8], fsync: bool) -> io::Result<()> {
    let file = retry_on_intr(|| fs::openat(folder, name, CREATE, OF_FILES))?;
    let mut rest = data;
    let written = loop {
        if rest.is_empty() {
            break Ok(());
        }
        // The system writes 2 GiB at most at once.
        match retry_on_intr(|| io::write(&file, rest)) {
            Ok(0) => break Err(Errno::IO),
            Ok(written) => rest = &rest[written..],
            Err(error) => break Err(error),
        }
    };
    let written = written.and_then(|()| if fsync { retry_on_intr(|| fs::fsync(&file)) } else { Ok(()) });
    let closed = close(file);
    written.and(closed).inspect_err(|_| discard(folder, name))
}

/// Close a file. Network file systems say only now that the disk is full.
fn close(file: OwnedFd) -> io::Result<()> {
    match nix::unistd::close(file) {
        Ok(()) | Err(nix::errno::Errno::EINTR) => Ok(()),
        Err(error) => Err(Errno::from_raw_os_error(error as i32)),
    }
}

/// Make a file that is a copy of another one, but for some places. The system copies, without the memory of this process; file
/// systems that can share the blocks of both files. If that fails, no file remains.
fn copy_patched(
    folder: &OwnedFd,
    name: &[u8],
    old: &File,
    size: u64,
    patches: &[(u64, Vec<u8>)],
    fsync: bool,
) -> io::Result<()> {
    let file = retry_on_intr(|| fs::openat(folder, name, CREATE, OF_FILES))?;
    let written = copy(old, &file, size)
        .and_then(|()| patches.iter().try_for_each(|(start, data)| write_at(&file, *start, data)))
        .and_then(|()| if fsync { retry_on_intr(|| fs::fsync(&file)) } else { Ok(()) });
    let closed = close(file);
    written.and(closed).inspect_err(|_| discard(folder, name))
}

/// Let the system copy `size` bytes from the beginning of a file to another one.
#[cfg(target_os = "linux")]
fn copy(from: &File, to: &OwnedFd, size: u64) -> io::Result<()> {
    let (mut read, mut written) = (0, 0);
    while read < size {
        let rest = usize::try_from(size - read).unwrap_or(usize::MAX).min(1 << 30);
        if retry_on_intr(|| fs::copy_file_range(from, Some(&mut read), to, Some(&mut written), rest))? == 0 {
            return Err(Errno::IO); // it has become shorter
        }
    }
    Ok(())
}

#[cfg(not(target_os = "linux"))]
fn copy(_: &File, _: &OwnedFd, _: u64) -> io::Result<()> {
    Err(Errno::NOSYS)
}

fn write_at(file: &OwnedFd, start: u64, data: &[u8]) -> io::Result<()> {
    let mut done = 0;
    while done < data.len() {
        match retry_on_intr(|| io::pwrite(file, &data[done..], start + done as u64))? {
            0 => return Err(Errno::IO),
            written => done += written,
        }
    }
    Ok(())
}

/// Remove a file from a directory; false if there is none, or a directory.
fn remove(folder: &OwnedFd, name: &str) -> io::Result<bool> {
    match fs::unlinkat(folder, name, AtFlags::empty()) {
        Ok(()) => Ok(true),
        Err(error) if is_absence(error) || is_directory(folder, name) => Ok(false),
        Err(error) => Err(error),
    }
}

fn is_directory(folder: &OwnedFd, name: &str) -> bool {
    fs::statat(folder, name, AtFlags::SYMLINK_NOFOLLOW).is_ok_and(|status| type_of(&status) == FileType::Directory)
}

/// Remove a file, if that is possible.
fn discard(folder: &OwnedFd, name: &[u8]) {
    let _ = fs::unlinkat(folder, name, AtFlags::empty());
}

/// Wait until the names in a directory are on the disk.
fn sync_directory(folder: &OwnedFd) -> io::Result<()> {
    let file = retry_on_intr(|| fs::openat(folder, ".", OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty()))?;
    retry_on_intr(|| fs::fsync(&file))
}
