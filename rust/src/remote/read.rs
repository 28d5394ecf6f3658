//! Reading chunks: what the targets need of one is fetched, decoded, and put into place.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use bytes::Bytes;

use crate::cache::{Cache, Chunks, Keep, LARGEST_SHARE, SMALLEST_SHARE};
use crate::chain::Chain;
use crate::chain::runs::Runs;
use crate::chain::shard::Bytes as Whole;
use crate::chain::shard::{Need, Shard};
use crate::error::{Error, Kind, Result};
use crate::plan::Coords;
use crate::remote::answers::{Chunk, Index, Parts, Sharded, Stored, names_version};
use crate::remote::failures::Reason;
use crate::remote::fetch::{HEAD, LEAST_IN_PARTS, Place};
use crate::remote::flights::{Pilot, Seat, shared};
use crate::remote::job::{Target, Tools};

/// Shards of more bytes, decoded, are fetched in parts, which come side by side.
const LARGEST_WHOLE: usize = 64 * 1024 * 1024;
/// A shard of which at least one in this number of bytes is needed is fetched as a whole.
const LEAST_SHARE: usize = 2;

/// Fetch what the targets need of a chunk, and put it into place. All targets are pieces of the same chunk.
pub(super) async fn read(tools: &Tools, targets: &[Target<'_>]) -> Result<()> {
    let Some(Target { job, piece, .. }) = targets.first() else { return Ok(()) };
    let chain = job.order.array.chain_of(&piece.coords)?;
    let key = job.key(&piece.coords);
    Reading { tools, targets, chain, place: job.place(&key)?, name: job.name(&key) }.run().await
}

/// A chunk that is being read.
struct Reading<'a> {
    tools: &'a Tools,
    targets: &'a [Target<'a>],
    chain: &'a Chain,
    place: Place<'a>,
    /// What readers who want the same of it agree on.
    name: String,
}

impl Reading<'_> {
    async fn run(&self) -> Result<()> {
        let chain = self.chain;
        let are_parts = self.targets.iter().all(|target| target.is_part(chain));
        if let Some(shard) = chain.as_shard().filter(|_| are_parts) {
            return self.shard(shard).await;
        }
        if are_parts && let Some(runs) = self.runs()? {
            let parts = self.place.parts(runs, None).await?;
            return self.tools.each(self.targets, |target, scratch| match &parts {
                None => target.fill_missing(chain),
                Some(parts) => {
                    if chain.read_runs(parts, &target.piece.selection, &target.job.order.memory, scratch)? {
                        Ok(())
                    } else {
                        Err(Error::refused("more than a part"))
                    }
                }
            });
        }
        if are_parts
            && let Some(runs) = self.few_runs()?
            && self.blocks(&runs).await?
        {
            return Ok(());
        }
        self.whole().await
    }

    fn fill_missing(&self) -> Result<()> {
        self.tools.each(self.targets, |target, _| target.fill_missing(self.chain))
    }

    /// Return the ranges of bytes that the targets need of an uncompressed chunk; None if the whole chunk should be fetched.
    fn runs(&self) -> Result<Option<Vec<std::ops::Range<u64>>>> {
        if !self.chain.reads_runs() {
            return Ok(None);
        }
        let mut runs = Vec::new();
        for target in self.targets {
            runs.extend(self.chain.runs_of(&target.piece.selection)?);
        }
        let nbytes: u64 = runs.iter().map(|run| run.end - run.start).sum();
        Ok(Some(runs).filter(|_| nbytes <= self.chain.layout.nbytes as u64 / 2))
    }

    /// Return the runs that hold what the targets need of a compressed chunk; None if the whole chunk should be fetched.
    fn few_runs(&self) -> Result<Option<Runs>> {
        // The number of stored bytes is not known yet. It is assumed to be half the number of decoded bytes.
        let share = (self.chain.layout.nbytes >= 2 * LEAST_IN_PARTS).then_some(LARGEST_SHARE);
        let mut all = Vec::new();
        for target in self.targets {
            let Some(runs) = self.chain.few_runs(&target.piece.selection, share)? else { return Ok(None) };
            all.push(runs);
        }
        Ok(self.chain.in_few_blocks(all))
    }

    /// Fetch the beginning of a compressed chunk and then the blocks that hold `runs`, and put what the targets need into place.
    /// Return false, with nothing put into place, if the whole chunk should be fetched.
    async fn blocks(&self, runs: &Runs) -> Result<bool> {
        let Self { tools, targets, chain, place, name } = self;
        if place.live.ignores_ranges.load(Ordering::Relaxed) || place.live.lacks_versions.load(Ordering::Relaxed) {
            return Ok(false);
        }
        let head = match shared(&place.live.heads, name, place.edge(HEAD, false)).await {
            Ok(Some(head)) => head,
            Ok(None) => return self.fill_missing().map(|()| true),
            Err(error) if error.kind == Kind::Refused => return Ok(false),
            Err(error) => return Err(error),
        };
        let (data, meta) = &head;
        let is_all = data.len() as u64 == meta.size;
        if !is_all && !names_version(meta) {
            place.live.lacks_versions.store(true, Ordering::Relaxed);
            return Ok(false);
        }
        if meta.size > place.most {
            return Ok(false);
        }
        let fetched = Parts::of_head(&head);
        let parts = match chain.blocks_of(&fetched, runs)? {
            Some(blocks) => match place.more(fetched, blocks, meta).await {
                Ok(parts) => parts,
                Err(error) if error.kind == Kind::Refused => return Ok(false),
                Err(error) => return Err(error),
            },
            None if is_all => fetched,
            None => return Ok(false),
        };
        let is_done = tools.with_scratch(|scratch| {
            let is_done = chain.decode_runs(&parts, runs, &mut scratch.chunk)?;
            if is_done {
                let bytes = &scratch.chunk[..runs.span.len()];
                tools.each(targets, |target, _| target.scatter(chain, bytes, runs.span.start))?;
            }
            Ok(is_done)
        })?;
        if !is_done && is_all {
            tools.each(targets, |target, scratch| target.place(chain, data, scratch))?;
        }
        Ok(is_done || is_all)
    }

    async fn whole(&self) -> Result<()> {
        let Self { tools, targets, chain, place, name } = self;
        let mut pilot: Pilot<'_, Chunk> = match place.live.chunks.board(name).await {
            Seat::Passenger(chunk) => {
                let chunk = chunk.map_err(Error::from)?;
                return tools.each(targets, |target, scratch| match &chunk {
                    None => target.fill_missing(chain),
                    Some(Stored::Decoded(chunk)) => target.scatter(chain, chunk, 0),
                    Some(Stored::Raw(data)) => target.place(chain, data, scratch),
                });
            }
            Seat::Pilot(pilot) => pilot,
        };
        let permit = place.live.gate.pass().await;
        let is_shared = pilot.depart();
        let data = place.whole(chain.as_elements().and(Some(chain.layout.nbytes))).await;
        drop(permit);
        let data = match data {
            Ok(data) => data,
            Err(error) => {
                pilot.land(Err(Reason::of(&error)));
                return Err(error);
            }
        };
        let Some(data) = data else {
            pilot.land(Ok(None));
            return self.fill_missing();
        };
        if !is_shared && targets.len() == 1 || chain.is_raw() || chain.is_made_of_shards() {
            pilot.land(Ok(Some(Stored::Raw(data.clone()))));
            return tools.each(targets, |target, scratch| target.place(chain, &data, scratch));
        }
        let decoded = tools.with_scratch(|scratch| chain.decoded(&data, scratch));
        let chunk = match decoded {
            Ok(chunk) => chunk,
            Err(error) => {
                pilot.land(Err(Reason::of(&error)));
                return Err(error);
            }
        };
        pilot.land(Ok(Some(Stored::Decoded(Arc::clone(&chunk)))));
        tools.each(targets, |target, _| target.scatter(chain, &chunk, 0))
    }

    /// Fetch what the targets need of a shard: the whole shard, or its index, if it is not known, and then parts.
    async fn shard(&self, shard: &Shard) -> Result<()> {
        if shard.inner.as_shard().is_some() {
            return Err(Error::refused("a shard within a shard"));
        }
        let way = self.way();
        if let Some(way) = &way
            && let Some(answer) = self.place.live.shards.ride(way).await
        {
            return self.of_all(shard, answer);
        }
        if let Some(index) = self.kept() {
            match self.parts(shard, &index, true).await {
                Ok(true) => return Ok(()),
                Ok(false) => {}
                Err(error) if error.kind == Kind::Refused => {}
                Err(error) => return Err(error),
            }
        } else if let Some(way) = way.filter(|_| self.are_most()) {
            return self.all(shard, &way).await;
        }
        let Some(index) = self.index_of(shard).await? else { return self.fill_missing() };
        self.parts(shard, &index, false).await.map(|_| ())
    }

    /// The index of the shard, if it was fetched before.
    fn kept(&self) -> Option<Arc<Index>> {
        let Target { job, .. } = self.targets.first()?;
        let array = &job.order.array;
        job.order.indexes.as_ref()?.get(&job.live, &array.codecs, self.place.path.as_ref())
    }

    fn keep(&self, index: &Arc<Index>) {
        let Some(Target { job, .. }) = self.targets.first() else { return };
        if let Some(indexes) = &job.order.indexes {
            indexes.put(&job.live, &job.order.array.codecs, self.place.path.as_ref(), index);
        }
    }

    /// What readers agree on who keep indexes and want all of the shard.
    fn way(&self) -> Option<String> {
        let Target { job, .. } = self.targets.first()?;
        Some(job.order.indexes.as_ref()?.name_of(&self.name))
    }

    /// Whether so much of the shard is needed that it is fetched as a whole.
    fn are_most(&self) -> bool {
        let layout = &self.chain.layout;
        if layout.nbytes > LARGEST_WHOLE {
            return false;
        }
        let wanted = self.targets.iter().map(|target| target.piece.selection.len().saturating_mul(layout.item));
        wanted.fold(0, usize::saturating_add) >= layout.nbytes / LEAST_SHARE
    }

    /// Fetch the whole shard; or if another reader is fetching it, wait for that.
    async fn all(&self, shard: &Shard, way: &str) -> Result<()> {
        let shards = &self.place.live.shards;
        loop {
            if let Some(driver) = shards.drive(way) {
                let answer = self.fetched(shard).await.map_err(|error| Reason::of(&error));
                driver.arrive(answer.clone());
                return self.of_all(shard, answer);
            }
            if let Some(answer) = shards.ride(way).await {
                return self.of_all(shard, answer);
            }
        }
    }

    async fn fetched(&self, shard: &Shard) -> Result<Option<(Bytes, Arc<Index>)>> {
        let Some((data, meta)) = self.place.all().await? else { return Ok(None) };
        let entries = self.tools.with_scratch(|scratch| shard.index_of(&Whole(&data), scratch))?;
        let index = Arc::new(Index { entries, meta });
        self.keep(&index);
        Ok(Some((data, index)))
    }

    /// Put what the targets need of a whole shard into place.
    fn of_all(&self, shard: &Shard, answer: Sharded) -> Result<()> {
        let Some((data, index)) = answer.map_err(Error::from)? else { return self.fill_missing() };
        let decoded = self.shared(shard)?;
        let keep = decoded.as_ref().map(kept_in);
        self.tools.each(self.targets, |target, scratch| {
            let (selection, memory) = (&target.piece.selection, &target.job.order.memory);
            shard.read(&Whole(&data), &index.entries, selection, memory, scratch, keep.as_ref())
        })
    }

    /// Where chunks are kept that several targets need: each is decoded once, unless each of them needs only a small part
    /// of it. None if there is no such chunk.
    fn shared(&self, shard: &Shard) -> Result<Option<Chunks>> {
        let mut numbers = Vec::new();
        for target in self.targets {
            numbers.extend(shard.numbers(&target.piece.selection)?);
        }
        numbers.sort_unstable();
        Ok(numbers.windows(2).any(|pair| pair[0] == pair[1]).then(|| Cache::new(usize::MAX)))
    }

    /// Fetch what the targets need of a version of the shard. If nothing is there that they need and `must_be`, return
    /// false: it may be there by now.
    async fn parts(&self, shard: &Shard, index: &Index, must_be: bool) -> Result<bool> {
        let Self { tools, targets, place, .. } = self;
        let decoded = self.shared(shard)?;
        let keep = decoded.as_ref().map(kept_in);
        let least = if names_version(&index.meta) { LEAST_IN_PARTS } else { usize::MAX };
        let mut needs = Vec::new();
        for target in *targets {
            needs.extend(shard.needs(&index.entries, &target.piece.selection, least, keep.as_ref())?);
        }
        if must_be && needs.is_empty() {
            return Ok(false);
        }
        let first = needs.iter().map(|Need { bytes, runs }| match runs {
            Some(_) => bytes.start..bytes.end.min(bytes.start + HEAD as u64),
            None => bytes.clone(),
        });
        let parts = place.parts(first.collect(), Some(index.meta.clone())).await?;
        let mut parts = parts.ok_or_else(|| Error::refused("deleted"))?;
        let mut blocks = Vec::new();
        for need in needs.iter().filter(|need| need.runs.is_some()) {
            blocks.extend(shard.blocks_of(need, &parts)?);
        }
        if !blocks.is_empty() {
            parts = place.more(parts, blocks, &index.meta).await?;
        }
        tools.each(targets, |target, scratch| {
            let (selection, memory) = (&target.piece.selection, &target.job.order.memory);
            shard.read(&parts, &index.entries, selection, memory, scratch, keep.as_ref())
        })?;
        Ok(true)
    }

    async fn index_of(&self, shard: &Shard) -> Result<Option<Arc<Index>>> {
        let fetch = async {
            let Some((data, meta)) = self.place.edge(shard.index_size(), shard.index_at_end()).await? else {
                return Ok(None);
            };
            let entries = self.tools.with_scratch(|scratch| shard.entries(&data, meta.size, scratch))?;
            Ok(Some(Arc::new(Index { entries, meta })))
        };
        let found = shared(&self.place.live.indexes, &self.name, fetch).await?;
        if let Some(index) = &found {
            self.keep(index);
        }
        Ok(found)
    }
}

fn kept_in(chunks: &Chunks) -> Keep<'_> {
    Keep { chunks, place: Coords::new(), stamp: [0; 5], hold: None, share: Some(SMALLEST_SHARE) }
}
