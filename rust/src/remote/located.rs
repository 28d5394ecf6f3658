//! Chunks in files of other formats, read from the version of a file that was opened: near ones are fetched together.
//!
//! What `omnizarr.stores.manifests.store` is in Python, which is asked about whatever fails here, and says why.

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::{Arc, Mutex, OnceLock};
use std::time::{Duration, SystemTime};

use object_store::ObjectMeta;
use object_store::path::Path;
use smallvec::smallvec;

use crate::chain::Chain;
use crate::error::{Error, Result};
use crate::manifest::{Extent, INLINE, Manifest, WHOLE, outside};
use crate::plan::Piece;
use crate::remote::answers::{Parts, are_same};
use crate::remote::failures::Reason;
use crate::remote::fetch::{GAP, Place};
use crate::remote::job::{Job, Members, Target, Tools, is_part};
use crate::store::Value;
use crate::threads::locked;

/// The most bytes that are fetched together for several chunks. With more, too few processors would decode what has come.
const LARGEST: u64 = 2 * 1024 * 1024;
/// The least number of requests that the bytes in flight must be enough for.
const LEAST_REQUESTS: usize = 4;
/// Number of chunks that are put into the order of their places at a time.
const AT_A_TIME: usize = 4096;
/// After as many decoded bytes, others may use the thread.
const PATIENCE: usize = 256 * 1024;

/// A file, and the version of it that is read.
#[derive(Debug)]
pub struct File {
    /// The path in the store of its client.
    pub path: String,
    /// What messages call it.
    pub key: String,
    /// The version; the first answer tells it, if it is not known before.
    pin: OnceLock<ObjectMeta>,
}

/// What tells versions of a file apart: size in bytes, `ETag`, version, and the time of the last change in microseconds since
/// 1970.
pub type Version = (u64, Option<String>, Option<String>, u64);

impl File {
    /// Describe a file.
    ///
    /// # Errors
    /// If the version says a time that cannot be.
    pub fn new(path: String, key: String, version: Option<Version>) -> Result<Self> {
        let file = Self { path, key, pin: OnceLock::new() };
        if let Some((size, e_tag, version, modified)) = version {
            let modified = SystemTime::UNIX_EPOCH.checked_add(Duration::from_micros(modified));
            let last_modified = modified.ok_or_else(|| Error::refused("a date out of range"))?.into();
            // A path that is none is refused when it is asked for.
            let location = file.path().unwrap_or_default();
            let _ = file.pin.set(ObjectMeta { location, last_modified, size, e_tag, version });
        }
        Ok(file)
    }

    fn path(&self) -> Result<Path> {
        Path::parse(&self.path).map_err(|error| Error::refused(error.to_string()))
    }

    /// The version, as far as it is known.
    #[must_use]
    pub fn version(&self) -> Option<Version> {
        let ObjectMeta { last_modified, size, e_tag, version, .. } = self.pin.get()?;
        let since = SystemTime::from(*last_modified).duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        let modified = u64::try_from(since.as_micros()).unwrap_or(u64::MAX);
        Some((*size, e_tag.clone(), version.clone(), modified))
    }

    /// Check that an answer is of the version that is read: if several first requests are on their way, one decides.
    fn check(&self, meta: &ObjectMeta) -> Result<()> {
        let known = self.pin.get_or_init(|| meta.clone());
        if known.size != meta.size || !are_same(known, meta) {
            return Err(Error::refused("a file of another version"));
        }
        Ok(())
    }
}

/// Where the chunks of an array lie, and in which files.
#[derive(Debug)]
pub struct Located {
    /// The chunks.
    pub manifest: Arc<Manifest>,
    /// The files, all of one client.
    pub files: Arc<Vec<Option<Arc<File>>>>,
}

impl Located {
    fn find(&self, coords: &[u64]) -> Result<Option<Extent>> {
        self.manifest.find(self.manifest.number(coords).ok_or_else(outside)?)
    }

    fn file(&self, number: u32) -> Result<&File> {
        self.files.get(number as usize).and_then(Option::as_deref).ok_or_else(outside)
    }

    fn inline(&self, coords: &[u64]) -> Option<&Arc<[u8]>> {
        self.manifest.inline(self.manifest.number(coords)?)
    }

    /// The number of the file of a chunk, and the version of it that is read, if that is known.
    #[must_use]
    pub fn version(&self, coords: &[u64]) -> Option<(u32, Version)> {
        let file = self.find(coords).ok()??.file;
        Some((file, self.file(file).ok()?.version()?))
    }

    /// What messages call the file of a chunk.
    #[must_use]
    pub fn key(&self, coords: &[u64]) -> String {
        let extent = self.find(coords).ok().flatten();
        extent.and_then(|extent| self.file(extent.file).ok()).map_or_else(String::new, |file| file.key.clone())
    }
}

/// How many bytes a request for several chunks may have.
fn most_together(job: &Job) -> u64 {
    LARGEST.min((job.order.bytes_in_flight / LEAST_REQUESTS) as u64)
}

/// About how many bytes are in memory for one request.
pub(super) fn bytes_of_request(job: &Job) -> usize {
    let chunk = job.order.array.codecs.chain.layout.nbytes;
    usize::try_from(most_together(job)).unwrap_or(usize::MAX).max(chunk)
}

// -- what is fetched together -----------------------------------------------------------

/// Pieces of several jobs, in the order in which they are read.
#[derive(Default)]
pub(super) struct Walk(Mutex<Walked>);

#[derive(Default)]
struct Walked {
    /// Jobs, and their first piece that has no place in the order yet.
    jobs: VecDeque<(usize, usize)>,
    /// Pieces that are fetched together.
    ready: VecDeque<Members>,
}

/// A piece, and the bytes of a file that hold what it needs; None: of none.
struct Wanted {
    number: usize,
    place: Option<(u32, Range<u64>)>,
}

impl Walk {
    /// Begin with the first pieces of all jobs that are read from files.
    pub fn new(jobs: &[Arc<Job>]) -> Self {
        let is_located = |job: &Job| job.order.located.is_some() && !job.order.plan.is_empty();
        let jobs = jobs.iter().enumerate().filter(|(_, job)| is_located(job)).map(|(at, _)| (at, 0)).collect();
        Self(Mutex::new(Walked { jobs, ready: VecDeque::new() }))
    }

    /// Return the next pieces that are fetched together; None after all others.
    pub fn next(&self, jobs: &[Arc<Job>]) -> Option<Members> {
        let mut walked = locked(&self.0);
        while walked.ready.is_empty() {
            let (at, first) = walked.jobs.pop_front()?;
            let job = &jobs[at];
            let stop = first.saturating_add(AT_A_TIME).min(job.order.plan.len());
            walked.ready = together(job, at, first..stop);
            if stop < job.order.plan.len() {
                walked.jobs.push_back((at, stop)); // in turn, so that none waits until another is done
            }
        }
        walked.ready.pop_front()
    }
}

/// Return which pieces of a job are fetched by one request.
fn together(job: &Job, at: usize, numbers: Range<usize>) -> VecDeque<Members> {
    let most = most_together(job);
    let mut wanted: Vec<Wanted> = numbers.map(|number| Wanted { number, place: place_of(job, number) }).collect();
    wanted.sort_by_key(|wanted| wanted.place.as_ref().map(|(file, range)| (*file, range.start)));
    let mut groups: VecDeque<Members> = VecDeque::new();
    let mut last: Option<(u32, Range<u64>)> = None;
    for Wanted { number, place } in wanted {
        let member = (at, number);
        let joined = match (&last, &place) {
            (Some((file, around)), Some((other, range))) if file == other => {
                let end = around.end.max(range.end);
                let is_near = range.start <= around.end.saturating_add(GAP) && end - around.start <= most;
                is_near.then_some((*file, around.start..end))
            }
            _ => None,
        };
        if let (Some(joined), Some(group)) = (joined, groups.back_mut()) {
            group.push(member);
            last = Some(joined);
        } else {
            groups.push_back(smallvec![member]);
            last = place;
        }
    }
    groups
}

/// Return where the bytes lie that a piece needs; None if it needs none, or something is wrong, which reading it tells.
fn place_of(job: &Job, number: usize) -> Option<(u32, Range<u64>)> {
    let piece = job.order.plan.piece(number);
    let extent = job.order.located.as_ref()?.find(&piece.coords).ok()??;
    if extent.length == INLINE {
        return None;
    }
    let chain = job.order.array.chain_of(&piece.coords).ok()?;
    let ranges = ranges_of(chain, &piece, is_part(&piece, chain), &extent).ok()?;
    let start = ranges.iter().map(|range| range.start).min()?;
    let stop = ranges.iter().map(|range| range.end).max()?;
    Some((extent.file, start..stop))
}

/// Return the ranges of a file that hold what a piece needs of its chunk.
fn ranges_of(chain: &Chain, piece: &Piece, is_part: bool, extent: &Extent) -> Result<Vec<Range<u64>>> {
    let Extent { offset, length, parts, stride, .. } = *extent;
    let stop = extent.stop()?;
    if length == WHOLE {
        return Ok(std::iter::once(offset..stop).collect());
    }
    if parts == 1 && is_part && chain.reads_runs() {
        let runs = chain.runs_of(&piece.selection)?;
        if runs.iter().map(|run| run.end - run.start).sum::<u64>() <= chain.layout.nbytes as u64 / 2 {
            let inside = |at: u64| offset + at.min(length);
            return Ok(runs.iter().map(|run| inside(run.start)..inside(run.end)).collect());
        }
    }
    let lies_apart = parts > 1 && stride.checked_sub(length).ok_or_else(outside)? > GAP;
    if !lies_apart {
        return Ok(std::iter::once(offset..stop).collect());
    }
    Ok((0..parts).map(|number| offset + number * stride).map(|start| start..start + length).collect())
}

// -- reading them ---------------------------------------------------------------------------

/// A piece that failed, by its place among the targets.
pub(super) type Failed = (usize, Error);

/// Fetch what targets of one file need, and put it into place.
pub(super) async fn read(tools: &Tools, targets: &[Target<'_>]) -> Vec<Failed> {
    let mut failed = Vec::new();
    let mut wanted: Vec<Range<u64>> = Vec::new();
    let mut found = Vec::new();
    for (at, target) in targets.iter().enumerate() {
        match Found::of(target) {
            Ok(None) => failed.extend(missing(tools, target).err().map(|error| (at, error))),
            Ok(Some((place, _))) if place.extent.length == WHOLE => {
                failed.extend(whole(tools, target, place).await.err().map(|error| (at, error)));
            }
            Ok(Some((place, ranges))) => {
                wanted.extend(ranges);
                found.push((at, target, place));
            }
            Err(error) => failed.push((at, error)),
        }
    }
    let Some((_, first, place)) = found.first() else { return failed };
    let parts = match fetch(first.job, place.file, wanted).await {
        Ok(parts) => parts,
        Err(error) => {
            let reason = Reason::of(&error);
            failed.extend(found.iter().map(|(at, ..)| (*at, reason.clone().into())));
            return failed;
        }
    };
    let mut decoded = 0;
    for (at, target, place) in &found {
        if let Err(error) = place.put(tools, target, &parts) {
            failed.push((*at, error));
        }
        decoded += place.chain.layout.nbytes;
        if decoded >= PATIENCE {
            tokio::task::yield_now().await;
            decoded = 0;
        }
    }
    failed
}

/// Put a chunk into place that is not stored, or in memory.
fn missing(tools: &Tools, target: &Target<'_>) -> Result<()> {
    let order = &target.job.order;
    let chain = order.array.chain_of(&target.piece.coords)?;
    let inline = order.located.as_ref().and_then(|located| located.inline(&target.piece.coords));
    tools.each(std::slice::from_ref(target), |target, scratch| match inline {
        None => target.fill_missing(chain),
        Some(bytes) if bytes.len() as u64 > order.most => Err(Error::refused("larger than a value may be")),
        Some(bytes) => target.place(chain, bytes, scratch),
    })
}

async fn fetch(job: &Job, file: &File, wanted: Vec<Range<u64>>) -> Result<Parts> {
    let most = wanted.iter().map(|range| range.end).max().unwrap_or(0);
    let place = Place { live: &job.live, path: file.path()?, most };
    let (parts, meta) = place.parts_of(wanted, file.pin.get().cloned()).await?.ok_or_else(gone)?;
    if let Some(meta) = meta {
        if most > meta.size {
            return Err(Error::refused("a file that ends before a chunk does"));
        }
        file.check(&meta)?;
    }
    Ok(parts)
}

fn gone() -> Error {
    Error::refused("the file is gone")
}

/// Fetch a file that is a chunk. Like a value in a directory, it may be replaced.
async fn whole(tools: &Tools, target: &Target<'_>, mut found: Found<'_>) -> Result<()> {
    let job = target.job;
    let place = Place { live: &job.live, path: found.file.path()?, most: job.order.most };
    let bytes = {
        let _permit = job.live.gate.pass().await;
        place.whole(None).await?.ok_or_else(gone)?
    };
    found.extent.length = bytes.len() as u64;
    let parts = Parts { size: found.extent.length, parts: vec![(0, bytes)] };
    found.put(tools, target, &parts)
}

/// A chunk that is stored.
struct Found<'a> {
    chain: &'a Chain,
    extent: Extent,
    file: &'a File,
}

impl<'a> Found<'a> {
    /// Return where the chunk of a target is, and the ranges that are needed of it; None if it is in no file.
    fn of(target: &Target<'a>) -> Result<Option<(Self, Vec<Range<u64>>)>> {
        let order = &target.job.order;
        let located = order.located.as_ref().ok_or_else(outside)?;
        let Some(extent) = located.find(&target.piece.coords)? else { return Ok(None) };
        if extent.length == INLINE {
            return Ok(None);
        }
        let (chain, file) = (order.array.chain_of(&target.piece.coords)?, located.file(extent.file)?);
        let size = file.pin.get().map_or(u64::MAX, |pin| pin.size);
        if extent.length != WHOLE && (extent.size()? > order.most || extent.stop()? > size) {
            return Err(Error::refused("larger than a value may be, or than its file"));
        }
        let is_part = target.is_part(chain);
        if is_part && chain.as_shard().is_some() {
            return Err(Error::refused("a part of a shard in a file"));
        }
        let ranges = ranges_of(chain, &target.piece, is_part, &extent)?;
        Ok(Some((Self { chain, extent, file }, ranges)))
    }

    /// Put what the target needs into place.
    fn put(&self, tools: &Tools, target: &Target<'_>, parts: &Parts) -> Result<()> {
        let Self { chain, extent, .. } = self;
        tools.each(std::slice::from_ref(target), |target, scratch| {
            if let Some(bytes) = self.bytes(parts) {
                return target.place(chain, bytes, scratch);
            }
            let value = Within { extent, parts };
            let (selection, memory) = (&target.piece.selection, &target.job.order.memory);
            let may_be_part = extent.parts == 1 && target.is_part(chain) && chain.reads_runs();
            if may_be_part && chain.read_runs(&value, selection, memory, scratch)? {
                return Ok(());
            }
            let size = usize::try_from(extent.size()?).map_err(|_| Error::refused("larger than memory"))?;
            let mut data = std::mem::take(&mut scratch.fetched);
            data.clear();
            data.resize(size, 0);
            let result = value.read_at(0, &mut data).and_then(|_| target.place(chain, &data, scratch));
            scratch.fetched = data;
            result
        })
    }

    /// The bytes of a chunk that lies in one piece, if they were fetched together.
    fn bytes<'b>(&self, parts: &'b Parts) -> Option<&'b [u8]> {
        let Extent { offset, length, padding, parts: count, .. } = self.extent;
        if count != 1 || padding > 0 {
            return None;
        }
        parts.parts.iter().find_map(|(start, bytes)| {
            let from = usize::try_from(offset.checked_sub(*start)?).ok()?;
            bytes.get(from..from.checked_add(usize::try_from(length).ok()?)?)
        })
    }
}

/// The value of a chunk, in the parts of a file that were fetched.
struct Within<'a> {
    extent: &'a Extent,
    parts: &'a Parts,
}

impl Value for Within<'_> {
    fn size(&self) -> Result<u64> {
        self.extent.size()
    }

    fn read_at(&self, start: u64, out: &mut [u8]) -> Result<usize> {
        self.extent.read(start, out, |place, out| {
            if self.parts.holds(place, out.len()) && self.parts.read_at(place, out)? == out.len() {
                return Ok(());
            }
            Err(Error::refused("bytes that were not fetched"))
        })
    }
}
