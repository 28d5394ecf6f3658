//! Runs a plan on several threads: what `omnizarr.engine.reference` is in Python.
//!
//! Threads take pieces by number until there are none. What this engine refuses is noted, and left to the caller; any
//! other error stops all threads after the piece they are at, and is returned with the number of its piece.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use crate::cache::{Cache, Keep, Shelf, share_of};
use crate::chain::shard::{Entry, Shard};
use crate::chain::{Chain, Change, SMALL, Scratch};
use crate::error::{Error, Kind, Result};
use crate::plan::{Coords, Piece, Plan, Selection};
use crate::scatter::Memory;
use crate::store::{Stamp, Store, Value};
use crate::threads::{locked, on_threads, processors};

/// With fewer bytes for each thread, an additional thread costs more time than it saves.
const BYTES_PER_THREAD: usize = 256 * 1024;
/// Opening and closing a file takes as long as copying this number of bytes.
const BYTES_PER_PIECE: usize = 16 * 1024;
/// A thread takes pieces with about this number of bytes at a time.
const BYTES_PER_BATCH: usize = 128 * 1024;
/// How often the caller is asked whether to go on.
const PATIENCE: Duration = Duration::from_millis(20);

/// How the key of a chunk is made from its coordinates.
#[derive(Clone, Debug, Default)]
pub struct Keys {
    /// The part of the key before the coordinates.
    pub head: String,
    /// The text between two coordinates.
    pub separator: String,
    /// The part of the key behind the coordinates.
    pub tail: String,
    /// The key of the only chunk of an array without dimensions.
    pub scalar: String,
    /// Keys are the numbers of chunks, in C order in this grid.
    pub grid: Option<Vec<u64>>,
}

impl Keys {
    /// The key of a chunk.
    #[must_use]
    pub fn key(&self, coords: &[u64]) -> String {
        if let Some(grid) = &self.grid {
            let number = |number: u64, (&length, &at): (&u64, &u64)| number.wrapping_mul(length).wrapping_add(at);
            return grid.iter().zip(coords).fold(0, number).to_string();
        }
        let [first, rest @ ..] = coords else { return self.scalar.clone() };
        let mut key = String::with_capacity(self.head.len() + self.tail.len() + 4 * coords.len());
        key.push_str(&self.head);
        // Writing into a string never fails.
        let _ = write!(key, "{first}");
        for number in rest {
            let _ = write!(key, "{}{number}", self.separator);
        }
        key.push_str(&self.tail);
        key
    }
}

/// The codecs of chunks of several shapes.
pub struct Uneven {
    /// Along each dimension the numbers at which chunks of another length begin, and their length.
    pub lengths: Vec<Vec<(u64, usize)>>,
    /// The codecs of each shape.
    pub chains: HashMap<Vec<usize>, Chain>,
}

impl Uneven {
    fn chain_of(&self, coords: &[u64]) -> Option<&Chain> {
        let shape: Option<Vec<usize>> = self
            .lengths
            .iter()
            .zip(coords)
            .map(|(lengths, number)| {
                let at = lengths.partition_point(|(first, _)| first <= number);
                Some(lengths.get(at.checked_sub(1)?)?.1)
            })
            .collect();
        self.chains.get(&shape?)
    }
}

/// The codecs of chunks, which all arrays with the same chunk metadata share.
pub struct Codecs {
    /// The codecs of a chunk; if chunks have several shapes, of the largest.
    pub chain: Chain,
    /// The codecs of all shapes, if there are several.
    pub uneven: Option<Uneven>,
}

impl Codecs {
    /// The codecs of one chunk.
    ///
    /// # Errors
    /// If there is no chunk of that shape.
    pub fn chain_of(&self, coords: &[u64]) -> Result<&Chain> {
        match &self.uneven {
            None => Ok(&self.chain),
            Some(uneven) => uneven.chain_of(coords).ok_or_else(|| Error::refused("a chunk of an unknown shape")),
        }
    }
}

/// An array.
pub struct Array {
    /// The keys of its chunks.
    pub keys: Keys,
    /// The codecs of its chunks.
    pub codecs: Arc<Codecs>,
    /// A cache of indexes of shards.
    pub indexes: Cache<Coords, Arc<[Entry]>>,
    /// A cache of decoded chunks, if the user wants one.
    pub chunks: Option<Shelf>,
    /// Which chunks skip codecs.
    pub skipping: Option<Skipping>,
}

/// Returns which codecs a chunk skips.
pub type Mask = Box<dyn Fn(&[u64]) -> u32 + Send + Sync>;

/// Chunks that skip codecs.
pub struct Skipping {
    /// Which codecs each skips.
    pub mask: Mask,
    /// The other codecs, by what is skipped.
    pub codecs: HashMap<u32, Arc<Codecs>>,
}

impl Array {
    /// The codecs of one chunk.
    ///
    /// # Errors
    /// If there is no chunk of that shape, or which skips these codecs.
    pub fn chain_of(&self, coords: &[u64]) -> Result<&Chain> {
        let Some(skipping) = &self.skipping else { return self.codecs.chain_of(coords) };
        match (skipping.mask)(coords) {
            0 => self.codecs.chain_of(coords),
            mask => {
                let unknown = || Error::refused("a chunk that skips other codecs");
                skipping.codecs.get(&mask).ok_or_else(unknown)?.chain_of(coords)
            }
        }
    }
}

/// What is done with a plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verb {
    /// Its elements are fetched from the store.
    Read,
    /// Its elements are stored.
    Write,
}

/// What stopped a plan.
#[derive(Debug)]
pub struct Failure {
    /// The number of the piece.
    pub piece: Option<usize>,
    /// What happened.
    pub error: Error,
}

/// How a plan is run, and by how many threads.
pub struct Job<'a> {
    /// The array.
    pub array: &'a Array,
    /// Decoded chunks that selections which are read at the same time share, if the array has no cache.
    pub shared: Option<&'a Shelf>,
    /// The store of the array.
    pub store: &'a dyn Store,
    /// The pieces of the array that are read or written.
    pub plan: &'a Plan,
    /// The caller's array.
    pub memory: &'a Memory,
    /// Number of elements in the caller's array.
    pub elements: usize,
    /// How many threads may work; None: at most as many as there are processors.
    pub threads: Option<usize>,
    /// How many chunks along each dimension others may ask for while this writes; None: all.
    pub seen: Option<&'a [u64]>,
    /// Once it is set, no thread goes on to another piece.
    pub stop: Option<&'a AtomicBool>,
    /// How many chunks were not stored.
    pub missing: &'a AtomicUsize,
    /// The calling thread calls this now and then; an error ends the work.
    pub interrupted: &'a (dyn Fn() -> Result<()> + Sync),
}

/// The numbers of the pieces that were refused, or what stopped a plan.
pub type Outcome = Result<Vec<usize>, Failure>;

/// Fill the arrays of several jobs, side by side where that is worth a thread; return what `Job::read` returns for each.
///
/// A job of much work is read by several threads, all others by one each. A job that was not begun, as another was
/// interrupted, has no result.
#[must_use]
pub fn read_all(jobs: &[Job<'_>], threads: Option<usize>, stop: &AtomicBool) -> Vec<Option<Outcome>> {
    let work: Vec<usize> = jobs.iter().map(|job| job.work(job.plan.len())).collect();
    let total = work.iter().fold(0_usize, |total, work| total.saturating_add(*work));
    let useful = (total / BYTES_PER_THREAD).max(1);
    let threads = threads.unwrap_or_else(processors).clamp(1, useful).min(jobs.len().max(1));
    let results: Vec<Mutex<Option<Outcome>>> = jobs.iter().map(|_| Mutex::new(None)).collect();
    let large = |number: usize| {
        threads > 1 && work[number] / BYTES_PER_THREAD >= threads && work[number] > total / (4 * threads)
    };
    let begin = |number: usize, job: &Job<'_>| {
        if stop.load(Ordering::Relaxed) {
            return;
        }
        let result = catch_unwind(AssertUnwindSafe(|| job.read()))
            .unwrap_or_else(|_| Err(Failure { piece: None, error: Error::broken("the engine failed") }));
        if matches!(&result, Err(Failure { error, .. }) if error.kind == Kind::Interrupted) {
            stop.store(true, Ordering::Relaxed);
        }
        *locked(&results[number]) = Some(result);
    };
    for (number, job) in jobs.iter().enumerate().filter(|(number, _)| large(*number)) {
        begin(number, job);
    }
    let next = AtomicUsize::new(0);
    let batch = (jobs.len() / (16 * threads)).clamp(1, 64);
    let ended = on_threads(threads, || {
        loop {
            let from = next.fetch_add(batch, Ordering::Relaxed);
            if from >= jobs.len() {
                return Ok(());
            }
            for number in (from..from.saturating_add(batch).min(jobs.len())).filter(|number| !large(*number)) {
                begin(number, &Job { threads: Some(1), ..jobs[number] });
            }
        }
    });
    let lost = || ended.as_ref().err().map(|error| Err(Failure { piece: None, error: Error::broken(&*error.message) }));
    results.into_iter().map(|result| result.into_inner().unwrap_or_default().or_else(lost)).collect()
}

impl Job<'_> {
    /// Fill the caller's array; return the numbers of the pieces that were refused.
    ///
    /// # Errors
    /// The first thing that goes wrong.
    pub fn read(&self) -> Result<Vec<usize>, Failure> {
        let chain = &self.array.codecs.chain;
        // If the store fetches parts better than this engine, pieces that are parts will be refused. Then nothing is fetched.
        let may_refuse = !self.store.reads_parts() && (chain.reads_runs() || chain.as_shard().is_some());
        let at_once = if may_refuse { None } else { self.store.at_once(chain.layout.nbytes) };
        let mut pieces = None;
        if self.array.chunks.is_some() && at_once.is_none() && self.array.codecs.chain.as_shard().is_none() {
            // One thread copies the chunks in the cache. Starting another thread would take longer.
            pieces = Some(self.each(None, 1, |piece, _, _| self.place_kept(piece), None)?);
        }
        let threads = self.threads(pieces.as_ref().map_or(self.plan.len(), Vec::len));
        self.each(pieces.as_deref(), threads, |piece, opened, scratch| self.read_piece(piece, opened, scratch), at_once)
    }

    /// Store the elements of the pieces of these numbers (None: all); return the numbers of those that were refused.
    ///
    /// # Errors
    /// The first thing that goes wrong.
    pub fn write(&self, chosen: Option<&[usize]>) -> Result<Vec<usize>, Failure> {
        let threads = self.threads(chosen.map_or(self.plan.len(), <[usize]>::len));
        self.each(chosen, threads, |piece, _, scratch| self.write_piece(piece, scratch), None)
    }

    /// Whether `write` does not refuse a piece because of the store.
    #[must_use]
    pub fn may_write(&self, number: usize) -> bool {
        self.store.changes_parts() || {
            let piece = self.plan.piece(number);
            let chain = self.array.chain_of(&piece.coords);
            piece.whole && chain.is_ok_and(|chain| is_uncut(chain, &piece.selection))
        }
    }

    /// Where decoded chunks are kept.
    fn chunks(&self) -> Option<&Shelf> {
        self.array.chunks.as_ref().or(self.shared)
    }

    /// How many threads have work to do on so many pieces.
    fn threads(&self, pieces: usize) -> usize {
        let at_once = self.store.concurrency();
        if at_once > 1 {
            // The threads wait for answers most of the time.
            return self.threads.unwrap_or(at_once).min(self.store.most_in_flight()).clamp(1, pieces.max(1));
        }
        let useful = (self.work(pieces) / BYTES_PER_THREAD).max(1);
        match self.threads {
            Some(threads) => threads.clamp(1, useful),
            None if useful == 1 => 1,
            None => processors().min(useful),
        }
    }

    /// Return how much work so many pieces are, in bytes that are decoded or copied.
    fn work(&self, pieces: usize) -> usize {
        let chain = &self.array.codecs.chain;
        let wanted = self.elements.saturating_mul(chain.layout.item);
        // The bytes to decode, which may be many more than those that are wanted.
        let nbytes = if chain.as_elements().is_some() {
            wanted
        } else if let Some(shard) = chain.as_shard() {
            self.touched(shard).saturating_mul(pieces).max(wanted)
        } else {
            pieces.saturating_mul(chain.layout.nbytes).max(wanted)
        };
        nbytes.saturating_add(pieces.saturating_mul(BYTES_PER_PIECE))
    }

    /// Return how many bytes of inner chunks a piece needs, estimated from the piece in the middle of the plan.
    fn touched(&self, shard: &Shard) -> usize {
        if shard.inner.as_elements().is_some() || self.plan.is_empty() {
            return 0;
        }
        let piece = self.plan.piece(self.plan.len() / 2);
        let chunks = Plan::within(&piece.selection, &shard.inner.layout.shape).map_or(0, |plan| plan.len());
        chunks.saturating_mul(shard.inner.layout.nbytes)
    }

    /// Return how many threads take pieces, and how many work on one piece.
    fn share(&self, threads: usize, pieces: usize) -> (usize, usize) {
        // Much of a shard may be in the cache: threads are started only for the rest of it.
        let is_kept = self.array.chunks.is_some() && self.array.codecs.chain.as_shard().is_some();
        let outer = if is_kept && self.store.concurrency() == 1 { 1 } else { threads.min(pieces).max(1) };
        (outer, threads / outer)
    }

    /// Call `task` with the pieces of these numbers (None: all); return the numbers of those that were refused.
    fn each(
        &self,
        chosen: Option<&[usize]>,
        threads: usize,
        task: impl Fn(&Piece, Opened<'_>, &mut Scratch) -> Result<()> + Sync,
        at_once: Option<usize>,
    ) -> Result<Vec<usize>, Failure> {
        let pieces = chosen.map_or(self.plan.len(), <[usize]>::len);
        let number_of = |at: usize| chosen.map_or(at, |chosen| chosen[at]);
        let (outer, inner) = self.share(threads, pieces);
        let largest = (pieces / (4 * outer)).max(1);
        let batch = (BYTES_PER_BATCH / self.array.codecs.chain.layout.nbytes.max(1)).clamp(1, largest);
        let batch = at_once.map_or(batch, |at_once| at_once.min(largest));
        let caller = thread::current().id();
        let next = AtomicUsize::new(0);
        let stopped = AtomicBool::new(false);
        let refused = Mutex::new(Vec::new());
        let failure = Mutex::new(None);
        let fail = |piece: Option<usize>, error: Error| {
            stopped.store(true, Ordering::Relaxed);
            if let Ok(mut failure) = failure.lock() {
                failure.get_or_insert(Failure { piece, error });
            }
        };
        let work = || {
            let mut scratch = Scratch::new(inner);
            let is_caller = thread::current().id() == caller;
            let mut asked = Instant::now();
            loop {
                let from = next.fetch_add(batch, Ordering::Relaxed);
                if from >= pieces {
                    return Ok(());
                }
                let numbers = (from..from.saturating_add(batch).min(pieces)).map(number_of);
                let mut opened = at_once.map_or_else(Vec::new, |_| self.open(numbers.clone())).into_iter();
                for number in numbers {
                    if stopped.load(Ordering::Relaxed) || self.stop.is_some_and(|stop| stop.load(Ordering::Relaxed)) {
                        return Ok(());
                    }
                    if is_caller && asked.elapsed() > PATIENCE {
                        if let Err(error) = (self.interrupted)() {
                            fail(None, error);
                            return Ok(());
                        }
                        asked = Instant::now();
                    }
                    let result = catch_unwind(AssertUnwindSafe(|| {
                        let opened = opened.next().transpose()?;
                        task(&self.plan.piece(number), opened, &mut scratch)
                    }))
                    .unwrap_or_else(|_| Err(Error::broken("the engine failed")));
                    match result {
                        Ok(()) => {}
                        Err(error) if error.kind == Kind::Refused => {
                            refused.lock().map(|mut refused| refused.push(number)).unwrap_or_default();
                        }
                        Err(error) => fail(Some(number), error),
                    }
                }
            }
        };
        let work = || {
            let mut result = Ok(());
            self.store.attached(&mut || result = work());
            result
        };
        if let Err(error) = on_threads(outer, work) {
            fail(None, error);
        }
        if let Ok(Some(failure)) = failure.into_inner() {
            return Err(failure);
        }
        let mut refused = refused.into_inner().unwrap_or_default();
        refused.sort_unstable();
        Ok(refused)
    }

    /// Open the values of pieces; the store is not asked for those that will be refused.
    fn open(&self, numbers: impl Iterator<Item = usize>) -> Vec<Result<Option<Box<dyn Value + '_>>>> {
        let mut keys = Vec::new();
        let pieces: Vec<Result<()>> = numbers
            .map(|number| {
                let piece = self.plan.piece(number);
                self.admit(self.array.chain_of(&piece.coords)?, &piece)?;
                keys.push(self.array.keys.key(&piece.coords));
                Ok(())
            })
            .collect();
        let mut opened = self.store.open_many(&keys).into_iter();
        let lost = || Err(Error::refused("the value did not arrive"));
        pieces.into_iter().map(|piece| piece.and_then(|()| opened.next().unwrap_or_else(lost))).collect()
    }

    fn admit(&self, chain: &Chain, piece: &Piece) -> Result<()> {
        if !self.store.reads_parts() && Self::is_part(chain, piece) {
            return Err(Error::refused("a part, of a store that knows better how to fetch it"));
        }
        Ok(())
    }

    // -- reading ------------------------------------------------------------------

    /// Put a chunk that is in the cache into place; refuse any other chunk.
    fn place_kept(&self, piece: &Piece) -> Result<()> {
        let chain = self.array.chain_of(&piece.coords)?;
        let missing = || Error::refused("not kept");
        let chunks = self.chunks().ok_or_else(missing)?;
        // Only the store knows whether the cached chunk is still current.
        let value = self.store.open(&self.array.keys.key(&piece.coords))?.ok_or_else(missing)?;
        let keep = chunks.keep(&piece.coords, value.stamp()?.ok_or_else(missing)?, value.hold());
        self.memory.scatter(&chain.layout, &keep.get().ok_or_else(missing)?, 0, &piece.selection)
    }

    fn read_piece(&self, piece: &Piece, opened: Opened<'_>, scratch: &mut Scratch) -> Result<()> {
        let chain = self.array.chain_of(&piece.coords)?;
        self.admit(chain, piece)?;
        if let Some(value) = opened {
            return match value {
                None => self.fill_missing(chain, piece),
                Some(value) => self.read_value(chain, value.as_ref(), piece, scratch),
            };
        }
        let key = self.array.keys.key(&piece.coords);
        if self.chunks().is_some()
            || chain.as_shard().is_some()
            || Self::is_part(chain, piece)
            || Self::has_blocks(chain, piece)
        {
            return match self.store.open(&key)? {
                None => self.fill_missing(chain, piece),
                Some(value) => self.read_value(chain, value.as_ref(), piece, scratch),
            };
        }
        if let Some(elements) = chain.as_elements()
            && let Some(window) = self.memory.window(&chain.layout, &piece.selection)
        {
            return match self.store.read_into(&key, window)? {
                None => self.fill_missing(chain, piece),
                Some(size) if size == window.len() as u64 => elements.decode(window),
                Some(_) => Err(Error::broken("the chunk has the wrong size")),
            };
        }
        let mut fetched = std::mem::take(&mut scratch.fetched);
        let result =
            self.store.read_all(&key, size_hint(chain), chain.most_stored(), &mut fetched).and_then(|is_there| {
                if is_there {
                    chain.place(&fetched, piece, self.memory, scratch)
                } else {
                    self.fill_missing(chain, piece)
                }
            });
        scratch.fetched = fetched;
        result
    }

    fn fill_missing(&self, chain: &Chain, piece: &Piece) -> Result<()> {
        self.missing.fetch_add(1, Ordering::Relaxed);
        chain.fill_missing(&piece.selection, self.memory)
    }

    fn is_part(chain: &Chain, piece: &Piece) -> bool {
        (chain.reads_runs() || chain.as_shard().is_some()) && !(piece.whole && is_uncut(chain, &piece.selection))
    }

    /// Whether a part of the blocks of a compressed chunk may be enough for a piece.
    fn has_blocks(chain: &Chain, piece: &Piece) -> bool {
        chain.reads_blocks() && !(piece.whole && is_uncut(chain, &piece.selection))
    }

    fn read_value(&self, chain: &Chain, value: &dyn Value, piece: &Piece, scratch: &mut Scratch) -> Result<()> {
        let is_shard = chain.as_shard().is_some();
        let stamp = if is_shard || self.chunks().is_some() { value.stamp()? } else { None };
        let keep = stamp.zip(self.chunks()).map(|(stamp, chunks)| chunks.keep(&piece.coords, stamp, value.hold()));
        if let Some(shard) = chain.as_shard() {
            let entries = self.index_of(shard, value, piece, stamp, scratch)?;
            return shard.read(value, &entries, &piece.selection, self.memory, scratch, keep.as_ref());
        }
        if let Some(chunk) = keep.as_ref().and_then(Keep::get) {
            return self.memory.scatter(&chain.layout, &chunk, 0, &piece.selection);
        }
        if keep.is_none()
            && value.bytes().is_none()
            && chain.reads_runs()
            && chain.read_runs(value, &piece.selection, self.memory, scratch)?
        {
            return Ok(());
        }
        if value.bytes().is_none()
            && Self::has_blocks(chain, piece)
            && value.size()? > SMALL as u64
            && let Some(runs) = chain.few_runs(&piece.selection, share_of(keep.as_ref()))?
            && chain.place_blocks(value, &runs, &piece.selection, self.memory, scratch)?
        {
            return Ok(());
        }
        with_all(value, chain.most_stored(), scratch, |data, scratch| match &keep {
            Some(keep) => chain.place_and_keep(data, piece, self.memory, scratch, keep),
            None => chain.place(data, piece, self.memory, scratch),
        })
    }

    fn index_of(
        &self,
        shard: &Shard,
        value: &dyn Value,
        piece: &Piece,
        stamp: Option<Stamp>,
        scratch: &mut Scratch,
    ) -> Result<Arc<[Entry]>> {
        // For bytes in memory, the index is decoded each time: the stamp would need an object that this cache does not keep.
        let stamp = stamp.filter(|_| value.bytes().is_none());
        if let Some(entries) = stamp.and_then(|stamp| self.array.indexes.get(&piece.coords, &stamp)) {
            return Ok(entries);
        }
        let entries: Arc<[Entry]> = shard.index_of(value, scratch)?.into();
        if let Some(stamp) = stamp {
            self.array.indexes.put(piece.coords.clone(), stamp, entries.clone(), size_of_val::<[Entry]>(&entries));
        }
        Ok(entries)
    }

    // -- writing ------------------------------------------------------------------

    fn write_piece(&self, piece: &Piece, scratch: &mut Scratch) -> Result<()> {
        let chain = self.array.chain_of(&piece.coords)?;
        let key = self.array.keys.key(&piece.coords);
        let is_unseen = self.seen.is_some_and(|seen| piece.coords.iter().zip(seen).any(|(at, count)| at >= count));
        let put = |data: Option<&[u8]>| match data {
            Some(data) if is_unseen => self.store.set_unseen(&key, data),
            Some(data) => self.store.set(&key, data),
            None => self.store.delete(&key),
        };
        if piece.whole && is_uncut(chain, &piece.selection) {
            return put(chain.encode(&piece.selection, self.memory, scratch)?);
        }
        if !self.store.changes_parts() {
            return Err(Error::refused("a part, of a value that others may be changing"));
        }
        let mut change = || {
            let change = Change { selection: &piece.selection, values: self.memory };
            // What this cannot do, or finds broken, is left to what follows.
            if self.store.patch(&key, &mut |value| chain.patches(value, &change, scratch)).unwrap_or(false) {
                return Ok(());
            }
            let mut fetched = std::mem::take(&mut scratch.fetched);
            let is_there = self.store.read_all(&key, size_hint(chain), chain.most_stored(), &mut fetched);
            let result = is_there.and_then(|is_there| {
                let old = is_there.then_some(fetched.as_slice());
                put(chain.update(old, &[change], scratch)?)
            });
            scratch.fetched = fetched;
            result
        };
        if is_unseen {
            return change(); // no other writer changes it
        }
        // A chunk at the edge of the array may hold more elements now, if others have made the array longer.
        self.store.locked(&key, self.interrupted, &mut change)
    }
}

/// The value that was opened for a piece. The outer None: it was not opened; the inner None: there is no value.
type Opened<'a> = Option<Option<Box<dyn Value + 'a>>>;

/// Return how many bytes a value probably has.
fn size_hint(chain: &Chain) -> usize {
    chain.encoded_size().0.unwrap_or(chain.layout.nbytes)
}

/// Whether a selection has as many elements along each dimension as the chunk.
#[must_use]
pub fn is_uncut(chain: &Chain, selection: &Selection) -> bool {
    match selection {
        Selection::Mesh(axes) => axes.iter().map(|axis| axis.inner.len()).eq(chain.layout.shape.iter().copied()),
        Selection::Points(_) => false,
    }
}

/// Call `then` with all bytes of a value, of which there are at most `most`.
fn with_all(
    value: &dyn Value,
    most: usize,
    scratch: &mut Scratch,
    then: impl FnOnce(&[u8], &mut Scratch) -> Result<()>,
) -> Result<()> {
    if let Some(bytes) = value.bytes() {
        return then(bytes, scratch);
    }
    let mut fetched = std::mem::take(&mut scratch.fetched);
    fetched.clear();
    let result = usize::try_from(value.size()?)
        .ok()
        .filter(|&size| size <= most && fetched.try_reserve_exact(size).is_ok())
        .ok_or_else(|| Error::broken("larger than it may be, or than memory"))
        .and_then(|size| {
            fetched.resize(size, 0);
            if value.read_at(0, &mut fetched)? < size {
                return Err(Error::broken("the value became shorter"));
            }
            then(&fetched, scratch)
        });
    scratch.fetched = fetched;
    result
}
