//! Plans whose chunks are in remote stores. [`crate::run`] is the same for local stores.
//!
//! Tasks take units of work by number until there are none: they fetch a chunk, decode it, and put what is selected of it
//! into place, while others fetch. Pieces of several plans that need the same chunk are one unit. To write, they encode a
//! chunk and send it, while others wait for answers. A chunk that is changed in part is fetched before, and sent on the
//! condition that it has not changed since; if it has, that is done again.

use std::collections::{HashMap, VecDeque};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use futures_util::future::{Either, select};
use object_store::ObjectMeta;
use object_store::path::Path;
use smallvec::{SmallVec, smallvec};
use tokio::sync::{Semaphore, watch};
use tokio::task::{AbortHandle, block_in_place};

use crate::cache::{Cache, Keep, LARGEST_SHARE, SMALLEST_SHARE};
use crate::chain::runs::Runs;
use crate::chain::shard::{Entry, Need, Shard};
use crate::chain::{Chain, Scratch};
use crate::error::{Error, Kind, Result};
use crate::plan::{Coords, Piece, Plan, Selection};
use crate::remote::change::{Conditions, Pauses, Put, too_slow, unchanged};
use crate::remote::client::{Answered, Client, Live};
use crate::remote::fetch::{HEAD, LEAST_IN_PARTS, Part, Parts, Place, names_version};
use crate::remote::flights::{Flights, Pilot, Seat};
use crate::remote::process::runtime;
use crate::run::{Array, Failure, Verb};
use crate::scatter::Memory;
use crate::threads::processors;

/// So many chunks may be fetched side by side, however large they are.
const LEAST_AT_ONCE: usize = 4;
/// How often the caller is asked whether to go on.
const PATIENCE: Duration = Duration::from_millis(20);
/// Bytes of a chunk that is sent by one request; obstore sends larger ones in parts.
const LARGEST_SENT: usize = 32 * 1024 * 1024;
/// Chunks of more bytes take so long to encode that other threads must look after what is on its way meanwhile.
const SOON_ENCODED: usize = 256 * 1024;
/// How long requests may go on that store something which was given up: what is broken off may still be stored, later.
const GRACE: Duration = Duration::from_secs(2);

/// A plan that is to be read or written.
pub struct Order {
    /// The array.
    pub array: Arc<Array>,
    /// What of it.
    pub plan: Plan,
    /// The caller's array, which is filled or stored. It is left alone once the order is done.
    pub memory: Memory,
    /// Where the array is: the store,
    pub client: Arc<Client>,
    /// what stands before the keys in it,
    pub prefix: Arc<str>,
    /// how large a value may be,
    pub most: u64,
    /// and how many bytes of chunks, decoded, may be on their way at once.
    pub bytes_in_flight: usize,
    /// How the store keeps writers apart who change parts of a chunk; None: otherwise.
    pub conditions: Option<Conditions>,
}

/// What became of an order: the numbers of the pieces that were refused, or what stopped it.
pub type Outcome = Result<Vec<usize>, Failure>;

/// Wakes up the caller that waits for orders of a batch.
pub type Bell = Box<dyn Fn() + Send + Sync>;

/// Orders that are being carried out.
pub struct Batch(Arc<Shared>);

struct Shared {
    verb: Verb,
    jobs: Vec<Job>,
    units: Units,
    next: AtomicUsize,
    is_stopped: AtomicBool,
    /// The first failure ends all orders, and not only its own.
    is_one: bool,
    scratches: Mutex<Vec<Scratch>>,
    /// As many large chunks are encoded at once.
    encoders: Semaphore,
    state: Mutex<State>,
    changed: Condvar,
    tasks: Mutex<Vec<AbortHandle>>,
    bell: Option<Bell>,
}

#[derive(Default)]
struct State {
    /// Tasks that have not ended.
    running: usize,
    /// Orders that are done and were not told of yet.
    done: VecDeque<usize>,
}

struct Job {
    order: Order,
    live: Arc<Live>,
    is_stopped: AtomicBool,
    /// How many tasks are putting something into place.
    writing: AtomicUsize,
    /// How many tasks are storing something.
    storing: AtomicUsize,
    /// What is on its way is given up, too.
    is_aborted: watch::Sender<bool>,
    left: AtomicUsize,
    refused: Mutex<Vec<usize>>,
    failure: Mutex<Option<Failure>>,
}

/// A piece: the number of its job, and its own.
type Member = (usize, usize);

enum Units {
    /// Each piece of the only job.
    Pieces(usize),
    /// Pieces that need the same chunk.
    Groups(Vec<SmallVec<[Member; 1]>>),
}

/// A piece, and where it is to go.
struct Target<'a> {
    job: &'a Job,
    number: usize,
    piece: Piece,
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Batch {
    /// Begin to carry out orders. If `is_one`, the first failure ends them all.
    ///
    /// # Errors
    /// If there is nothing to do it with.
    pub fn start(
        verb: Verb,
        orders: Vec<Order>,
        at_once: Option<usize>,
        is_one: bool,
        bell: Option<Bell>,
    ) -> Result<Self> {
        let runtime = runtime()?;
        let jobs = orders.into_iter().map(Job::new).collect::<Result<Vec<_>>>()?;
        let units = Units::of(&jobs);
        let tasks = tasks(verb, &jobs, units.len(), at_once);
        let done = (0..jobs.len()).filter(|&number| jobs[number].order.plan.is_empty()).collect();
        let shared = Arc::new(Shared {
            verb,
            jobs,
            units,
            next: AtomicUsize::new(0),
            is_stopped: AtomicBool::new(false),
            is_one,
            scratches: Mutex::default(),
            encoders: Semaphore::new(processors()),
            state: Mutex::new(State { running: tasks, done }),
            changed: Condvar::new(),
            tasks: Mutex::default(),
            bell,
        });
        let handles: Vec<_> = (0..tasks)
            .map(|_| {
                let running = Running(Arc::clone(&shared));
                runtime.spawn(async move { running.0.work().await }).abort_handle()
            })
            .collect();
        *locked(&shared.tasks) = handles;
        if shared.is_stopped.load(Ordering::Relaxed) {
            shared.stop();
        }
        Ok(Self(shared))
    }

    /// Wait until all is done; `interrupted` is asked now and then, and an error of it ends the work.
    ///
    /// # Errors
    /// That of `interrupted`.
    pub fn wait(&self, interrupted: &dyn Fn() -> Result<()>) -> Result<()> {
        let mut result = Ok(());
        let mut state = locked(&self.0.state);
        while state.running > 0 {
            let (held, waited) = self.0.changed.wait_timeout(state, PATIENCE).unwrap_or_else(PoisonError::into_inner);
            state = held;
            if waited.timed_out() && result.is_ok() {
                drop(state);
                result = interrupted();
                if result.is_err() {
                    self.0.stop();
                }
                state = locked(&self.0.state);
            }
        }
        result
    }

    /// Give up what is not done yet.
    pub fn stop(&self) {
        self.0.stop();
    }

    /// Give up one order, and return when nothing writes into its memory any more.
    pub fn give_up(&self, number: usize) {
        let Some(job) = self.0.jobs.get(number) else { return };
        job.is_stopped.store(true, Ordering::SeqCst);
        while job.writing.load(Ordering::SeqCst) > 0 {
            std::thread::sleep(Duration::from_micros(100));
        }
    }

    /// Give up all that is not done yet, even what has been sent.
    pub fn abort(&self) {
        self.0.is_stopped.store(true, Ordering::Relaxed);
        self.0.abort();
    }

    /// Begin nothing more of an order that is being stored, and break off what has been sent if it takes long. Return
    /// whether nothing is under way; otherwise the order will be done.
    #[must_use]
    pub fn end(&self, number: usize) -> bool {
        let Some(job) = self.0.jobs.get(number) else { return true };
        job.is_stopped.store(true, Ordering::SeqCst);
        if job.storing.load(Ordering::SeqCst) == 0 {
            return true;
        }
        let shared = Arc::downgrade(&self.0);
        if let Ok(runtime) = runtime() {
            runtime.spawn(async move {
                tokio::time::sleep(GRACE).await;
                if let Some(shared) = shared.upgrade() {
                    shared.jobs[number].is_aborted.send_replace(true);
                }
            });
        }
        false
    }

    /// Whether nothing is under way any more.
    #[must_use]
    pub fn is_over(&self) -> bool {
        locked(&self.0.state).running == 0
    }

    /// The numbers of the orders that were done since this was last asked.
    #[must_use]
    pub fn done(&self) -> Vec<usize> {
        locked(&self.0.state).done.drain(..).collect()
    }

    /// What became of an order.
    ///
    /// # Errors
    /// What stopped it.
    pub fn outcome(&self, number: usize) -> Outcome {
        let job = &self.0.jobs[number];
        if let Some(failure) = locked(&job.failure).take() {
            return Err(failure);
        }
        if job.left.load(Ordering::Acquire) > 0 {
            return Err(Failure { piece: None, error: Error::broken("given up") });
        }
        let mut refused = std::mem::take(&mut *locked(&job.refused));
        refused.sort_unstable();
        Ok(refused)
    }

    /// The key of a piece of an order.
    #[must_use]
    pub fn key(&self, number: usize, piece: usize) -> String {
        let Order { array, plan, .. } = &self.0.jobs[number].order;
        array.keys.key(&plan.piece(piece).coords)
    }

    /// The memory of an order.
    #[must_use]
    pub fn memory(&self, number: usize) -> &Memory {
        &self.0.jobs[number].order.memory
    }

    /// The plan of an order.
    #[must_use]
    pub fn plan(&self, number: usize) -> &Plan {
        &self.0.jobs[number].order.plan
    }
}

/// How many units are fetched side by side.
fn tasks(verb: Verb, jobs: &[Job], units: usize, at_once: Option<usize>) -> usize {
    let largest = jobs.iter().map(|job| job.bytes_of_piece(verb)).max().unwrap_or(1).max(1);
    let bytes = jobs.iter().map(|job| job.order.bytes_in_flight).min().unwrap_or(usize::MAX);
    let bound = (bytes / largest).max(LEAST_AT_ONCE);
    let wanted = at_once.unwrap_or_else(|| jobs.iter().map(|job| job.live.most_at_once).max().unwrap_or(1));
    wanted.min(bound).min(units).max(usize::from(units > 0))
}

impl Job {
    fn new(order: Order) -> Result<Self> {
        Ok(Self {
            live: order.client.live()?,
            is_stopped: AtomicBool::new(false),
            writing: AtomicUsize::new(0),
            storing: AtomicUsize::new(0),
            is_aborted: watch::Sender::new(false),
            left: AtomicUsize::new(order.plan.len()),
            refused: Mutex::default(),
            failure: Mutex::default(),
            order,
        })
    }

    /// About how many bytes are fetched for a piece: one from the middle of the plan represents all. A shard is stored as
    /// a whole.
    fn bytes_of_piece(&self, verb: Verb) -> usize {
        let (chain, plan) = (&self.order.array.codecs.chain, &self.order.plan);
        let is_in_parts = verb == Verb::Read && !plan.is_empty();
        let Some(shard) = chain.as_shard().filter(|_| is_in_parts) else { return chain.layout.nbytes };
        let piece = plan.piece(plan.len() / 2);
        let chunks = Plan::within(&piece.selection, &shard.inner.layout.shape).map_or(usize::MAX, |plan| plan.len());
        chunks.saturating_mul(shard.inner.layout.nbytes).min(chain.layout.nbytes)
    }

    fn key(&self, coords: &[u64]) -> String {
        let mut key = self.order.prefix.to_string();
        key.push_str(&self.order.array.keys.key(coords));
        key
    }

    fn place(&self, key: &str) -> Result<Place<'_>> {
        let path = Path::parse(key).map_err(|error| Error::refused(error.to_string()))?;
        Ok(Place { live: &self.live, path, most: self.order.most })
    }

    /// What tells a chunk from others, and from itself as it is read with other codecs.
    fn name(&self, key: &str) -> String {
        format!("{:p} {key}", Arc::as_ptr(&self.order.array.codecs))
    }

    /// Do something, until it is given up.
    async fn unless_aborted(&self, work: impl Future<Output = Result<()>>) -> Result<()> {
        let mut aborted = self.is_aborted.subscribe();
        let aborted = pin!(aborted.wait_for(|&is_aborted| is_aborted));
        match select(pin!(work), aborted).await {
            Either::Left((result, _)) => result,
            Either::Right(_) => Ok(()),
        }
    }

    fn fail(&self, piece: Option<usize>, error: Error) {
        self.is_stopped.store(true, Ordering::Relaxed);
        locked(&self.failure).get_or_insert(Failure { piece, error });
    }
}

impl Units {
    fn of(jobs: &[Job]) -> Self {
        if let [job] = jobs {
            return Self::Pieces(job.order.plan.len());
        }
        let mut groups: Vec<SmallVec<[Member; 1]>> = Vec::new();
        let mut known = HashMap::new();
        // In turn, so that none waits until another is done.
        let longest = jobs.iter().map(|job| job.order.plan.len()).max().unwrap_or(0);
        for number in 0..longest {
            for (at, job) in jobs.iter().enumerate().filter(|(_, job)| number < job.order.plan.len()) {
                let array = &job.order.array;
                let key = job.key(&job.order.plan.piece(number).coords);
                let place = (Arc::as_ptr(&job.live), Arc::as_ptr(&array.codecs), key);
                let group = *known.entry(place).or_insert_with(|| {
                    groups.push(smallvec![]);
                    groups.len() - 1
                });
                groups[group].push((at, number));
            }
        }
        Self::Groups(groups)
    }

    fn len(&self) -> usize {
        match self {
            Self::Pieces(count) => *count,
            Self::Groups(groups) => groups.len(),
        }
    }

    fn members(&self, number: usize) -> SmallVec<[Member; 1]> {
        match self {
            Self::Pieces(_) => smallvec![(0, number)],
            Self::Groups(groups) => groups[number].clone(),
        }
    }
}

/// A task, from when it is made until it is gone, however it ends.
struct Running(Arc<Shared>);

impl Drop for Running {
    fn drop(&mut self) {
        let mut state = locked(&self.0.state);
        state.running -= 1;
        let is_last = state.running == 0;
        drop(state);
        if is_last {
            self.0.ring();
        }
    }
}

impl Shared {
    fn ring(&self) {
        self.changed.notify_all();
        if let Some(bell) = &self.bell {
            bell();
        }
    }

    fn stop(&self) {
        self.is_stopped.store(true, Ordering::Relaxed);
        if self.verb == Verb::Write {
            // What has been sent may be stored even if it is given up, and then later than what the caller writes next.
            return;
        }
        self.abort();
    }

    fn abort(&self) {
        for task in &*locked(&self.tasks) {
            task.abort();
        }
    }

    async fn work(&self) {
        while !self.is_stopped.load(Ordering::Relaxed) {
            let number = self.next.fetch_add(1, Ordering::Relaxed);
            if number >= self.units.len() {
                return;
            }
            self.unit(number).await;
        }
    }

    async fn unit(&self, number: usize) {
        let members = self.units.members(number);
        let targets: SmallVec<[Target<'_>; 1]> = members
            .iter()
            .map(|&(job, number)| (&self.jobs[job], number))
            .filter(|(job, _)| !job.is_stopped.load(Ordering::Relaxed))
            .map(|(job, number)| Target { job, number, piece: job.order.plan.piece(number) })
            .collect();
        match self.verb {
            Verb::Read => {
                if let Err(error) = self.fetch(&targets).await {
                    for target in &targets {
                        self.failed(target, copied(&error));
                    }
                }
            }
            Verb::Write => {
                for target in &targets {
                    let _storing = Storing::of(self, target.job);
                    if target.job.is_stopped.load(Ordering::SeqCst) {
                        continue;
                    }
                    if let Err(error) = target.job.unless_aborted(self.send(target)).await {
                        self.failed(target, error);
                    }
                }
            }
        }
        for (job, _) in members {
            if self.jobs[job].left.fetch_sub(1, Ordering::AcqRel) == 1 {
                self.done(&self.jobs[job]);
            }
        }
    }

    fn failed(&self, Target { job, number, .. }: &Target<'_>, error: Error) {
        if error.kind == Kind::Refused {
            locked(&job.refused).push(*number);
            return;
        }
        job.fail(Some(*number), error);
        if self.is_one {
            self.stop();
        }
    }

    /// Tell that an order is done.
    fn done(&self, job: &Job) {
        let Some(number) = self.jobs.iter().position(|other| std::ptr::eq(job, other)) else { return };
        locked(&self.state).done.push_back(number);
        if let Some(bell) = &self.bell {
            bell();
        }
    }

    /// Fetch what the targets need of a chunk, and put it into place. All targets are pieces of the same chunk.
    async fn fetch(&self, targets: &[Target<'_>]) -> Result<()> {
        let Some(Target { job, piece, .. }) = targets.first() else { return Ok(()) };
        let chain = job.order.array.codecs.chain_of(&piece.coords)?;
        let key = job.key(&piece.coords);
        let place = job.place(&key)?;
        let are_parts = targets.iter().all(|target| is_part(chain, &target.piece));
        if let Some(shard) = chain.as_shard().filter(|_| are_parts) {
            return self.read_shard(&place, &key, chain, shard, targets).await;
        }
        if are_parts && chain.reads_runs() {
            let mut runs = Vec::new();
            for target in targets {
                runs.extend(chain.runs_of(&target.piece.selection)?);
            }
            if runs.iter().map(|run| run.end - run.start).sum::<u64>() <= chain.layout.nbytes as u64 / 2 {
                let parts = place.parts(runs, None).await?;
                return self.each(targets, |target, scratch| match &parts {
                    None => target.fill_missing(chain),
                    Some(parts) => target.read_runs(chain, parts, scratch),
                });
            }
        }
        if are_parts
            && let Some(runs) = few_runs(chain, targets)?
            && self.read_blocks(&place, &key, chain, &runs, targets).await?
        {
            return Ok(());
        }
        self.read_whole(&place, &key, chain, targets).await
    }

    /// Fetch the beginning of a compressed chunk and then the blocks that hold `runs`, and put what the targets need into place.
    /// Return false, with nothing put into place, if the whole chunk should be fetched.
    async fn read_blocks(
        &self,
        place: &Place<'_>,
        key: &str,
        chain: &Chain,
        runs: &Runs,
        targets: &[Target<'_>],
    ) -> Result<bool> {
        if place.live.ignores_ranges.load(Ordering::Relaxed) || place.live.lacks_versions.load(Ordering::Relaxed) {
            return Ok(false);
        }
        let name = targets[0].job.name(key);
        let head = match shared(&place.live.heads, &name, place.edge(HEAD, false)).await {
            Ok(Some(head)) => head,
            Ok(None) => return self.each(targets, |target, _| target.fill_missing(chain)).map(|()| true),
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
        let is_done = self.with_scratch(|scratch| {
            let is_done = chain.decode_runs(&parts, runs, &mut scratch.chunk)?;
            if is_done {
                let bytes = &scratch.chunk[..runs.span.len()];
                self.each(targets, |target, _| target.scatter(chain, bytes, runs.span.start))?;
            }
            Ok(is_done)
        })?;
        if !is_done && is_all {
            self.each(targets, |target, scratch| target.place(chain, data, scratch))?;
        }
        Ok(is_done || is_all)
    }

    async fn read_whole(&self, place: &Place<'_>, key: &str, chain: &Chain, targets: &[Target<'_>]) -> Result<()> {
        let name = targets[0].job.name(key);
        let mut pilot: Pilot<'_, Chunk> = match place.live.chunks.board(&name).await {
            Seat::Passenger(chunk) => {
                let chunk = chunk.map_err(Error::from)?;
                return self.each(targets, |target, scratch| match &chunk {
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
            return self.each(targets, |target, _| target.fill_missing(chain));
        };
        if !is_shared && targets.len() == 1 || chain.is_raw() || chain.is_made_of_shards() {
            pilot.land(Ok(Some(Stored::Raw(data.clone()))));
            return self.each(targets, |target, scratch| target.place(chain, &data, scratch));
        }
        let decoded = self.with_scratch(|scratch| chain.decoded(&data, scratch));
        let chunk = match decoded {
            Ok(chunk) => chunk,
            Err(error) => {
                pilot.land(Err(Reason::of(&error)));
                return Err(error);
            }
        };
        pilot.land(Ok(Some(Stored::Decoded(Arc::clone(&chunk)))));
        self.each(targets, |target, _| target.scatter(chain, &chunk, 0))
    }

    async fn read_shard(
        &self,
        place: &Place<'_>,
        key: &str,
        chain: &Chain,
        shard: &Shard,
        targets: &[Target<'_>],
    ) -> Result<()> {
        if shard.inner.as_shard().is_some() {
            return Err(Error::refused("a shard within a shard"));
        }
        let Some(index) = self.index_of(place, key, shard, targets[0].job).await? else {
            return self.each(targets, |target, _| target.fill_missing(chain));
        };
        // A chunk that several targets need is decoded once, unless each of them needs only a small part of it.
        let decoded = (targets.len() > 1).then(|| Cache::new(usize::MAX));
        let keep = decoded.as_ref().map(|chunks| Keep {
            chunks,
            place: Coords::new(),
            stamp: [0; 5],
            hold: None,
            share: Some(SMALLEST_SHARE),
        });
        let least = if names_version(&index.meta) { LEAST_IN_PARTS } else { usize::MAX };
        let mut needs = Vec::new();
        for target in targets {
            needs.extend(shard.needs(&index.entries, &target.piece.selection, least, keep.as_ref())?);
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
        self.each(targets, |target, scratch| {
            let (selection, memory) = (&target.piece.selection, &target.job.order.memory);
            shard.read(&parts, &index.entries, selection, memory, scratch, keep.as_ref())
        })
    }

    async fn index_of(&self, place: &Place<'_>, key: &str, shard: &Shard, job: &Job) -> Result<Option<Arc<Index>>> {
        let fetch = async {
            let Some((data, meta)) = place.edge(shard.index_size(), shard.index_at_end()).await? else {
                return Ok(None);
            };
            let entries = self.with_scratch(|scratch| shard.entries(&data, meta.size, scratch))?;
            Ok(Some(Arc::new(Index { entries, meta })))
        };
        shared(&place.live.indexes, &job.name(key), fetch).await
    }

    /// Store a chunk, or a part of one; delete one that need not be stored.
    async fn send(&self, target: &Target<'_>) -> Result<()> {
        let Target { job, piece, .. } = target;
        let chain = job.order.array.codecs.chain_of(&piece.coords)?;
        let key = job.key(&piece.coords);
        let place = job.place(&key)?;
        if is_part(chain, piece) {
            let conditions = job.order.conditions.ok_or_else(|| Error::refused("only a part"))?;
            return self.change(target, chain, &place, &key, conditions).await;
        }
        if chain.layout.nbytes > LARGEST_SENT {
            return Err(Error::refused("more than one request sends"));
        }
        let data = self.encoded(chain, |scratch| {
            let data = chain.encode(&piece.selection, &job.order.memory, scratch)?;
            Ok(data.map(Bytes::copy_from_slice))
        });
        let data = data.await?;
        let _permit = job.live.gate.pass().await;
        match data {
            Some(data) => place.put(data).await,
            None => place.delete().await,
        }
    }

    /// Change a part of a chunk, again and again until no other writer is faster.
    async fn change(
        &self,
        target: &Target<'_>,
        chain: &Chain,
        place: &Place<'_>,
        key: &str,
        conditions: Conditions,
    ) -> Result<()> {
        if chain.is_made_of_shards() && chain.as_shard().is_none() {
            return Err(Error::refused("a compressed shard is changed as a whole"));
        }
        let mut pauses: Option<Pauses> = None;
        loop {
            let turn = place.live.turns.take(key).await;
            let is_stopped = self.is_stopped.load(Ordering::Relaxed) || target.job.is_stopped.load(Ordering::SeqCst);
            if is_stopped || self.change_once(target, chain, place, conditions).await? == Put::Stored {
                return Ok(());
            }
            drop(turn);
            if pauses.as_ref().is_some_and(|pauses| pauses.are_over(conditions.patience)) {
                return Err(too_slow());
            }
            pauses.get_or_insert_default().pause().await?;
        }
    }

    async fn change_once(
        &self,
        Target { job, piece, .. }: &Target<'_>,
        chain: &Chain,
        place: &Place<'_>,
        conditions: Conditions,
    ) -> Result<Put> {
        let (old, meta) = place.current().await?.unzip();
        let condition =
            unchanged(meta.as_ref()).ok_or_else(|| Error::refused("a server that tells no versions apart"))?;
        let data = self.encoded(chain, |scratch| {
            let changed = chain.update(old.as_deref(), &piece.selection, &job.order.memory, scratch)?;
            if let Some(data) = changed {
                return Ok(Some(Bytes::copy_from_slice(data)));
            }
            if old.is_none() {
                return Ok(None);
            }
            // Another writer may be changing another part: it must find the value that it has read, or notice the change.
            chain.encode_empty(scratch).map(|data| Some(Bytes::copy_from_slice(data)))
        });
        match data.await? {
            Some(data) => place.put_if(data, &condition, conditions.are_doubtful).await,
            None => Ok(Put::Stored),
        }
    }

    /// Encode a chunk, without keeping those waiting that only look after requests.
    async fn encoded<T>(&self, chain: &Chain, encode: impl FnOnce(&mut Scratch) -> Result<T>) -> Result<T> {
        if chain.is_raw() || chain.layout.nbytes <= SOON_ENCODED {
            return self.with_scratch(encode);
        }
        let _permit = self.encoders.acquire().await;
        block_in_place(|| self.with_scratch(encode))
    }

    /// Do something for each target, with memory that is used again and again.
    fn each(&self, targets: &[Target<'_>], task: impl Fn(&Target<'_>, &mut Scratch) -> Result<()>) -> Result<()> {
        self.with_scratch(|scratch| {
            targets.iter().try_for_each(|target| {
                // The memory of what was given up may be gone.
                let _writing = Writing::to(target.job);
                if target.job.is_stopped.load(Ordering::SeqCst) { Ok(()) } else { task(target, scratch) }
            })
        })
    }

    fn with_scratch<T>(&self, task: impl FnOnce(&mut Scratch) -> Result<T>) -> Result<T> {
        let mut scratch = locked(&self.scratches).pop().unwrap_or_else(|| Scratch::new(1));
        let result = catch_unwind(AssertUnwindSafe(|| task(&mut scratch)))
            .unwrap_or_else(|_| Err(Error::broken("the engine failed")));
        locked(&self.scratches).push(scratch);
        result
    }
}

/// A guard while something is written into the memory of a job.
struct Writing<'a>(&'a Job);

impl<'a> Writing<'a> {
    fn to(job: &'a Job) -> Self {
        job.writing.fetch_add(1, Ordering::SeqCst);
        Self(job)
    }
}

impl Drop for Writing<'_> {
    fn drop(&mut self) {
        self.0.writing.fetch_sub(1, Ordering::SeqCst);
    }
}

/// A guard while something of a job is being stored.
struct Storing<'a> {
    shared: &'a Shared,
    job: &'a Job,
}

impl<'a> Storing<'a> {
    fn of(shared: &'a Shared, job: &'a Job) -> Self {
        job.storing.fetch_add(1, Ordering::SeqCst);
        Self { shared, job }
    }
}

impl Drop for Storing<'_> {
    fn drop(&mut self) {
        if self.job.storing.fetch_sub(1, Ordering::SeqCst) == 1 && self.job.is_stopped.load(Ordering::SeqCst) {
            self.shared.done(self.job);
        }
    }
}

impl Target<'_> {
    fn fill_missing(&self, chain: &Chain) -> Result<()> {
        chain.fill_missing(&self.piece.selection, &self.job.order.memory)
    }

    fn place(&self, chain: &Chain, data: &[u8], scratch: &mut Scratch) -> Result<()> {
        chain.place(data, &self.piece, &self.job.order.memory, scratch)
    }

    /// Put elements into place from the bytes of a decoded chunk that begin at `start`.
    fn scatter(&self, chain: &Chain, bytes: &[u8], start: usize) -> Result<()> {
        self.job.order.memory.scatter(&chain.layout, bytes, start, &self.piece.selection)
    }

    fn read_runs(&self, chain: &Chain, parts: &Parts, scratch: &mut Scratch) -> Result<()> {
        if chain.read_runs(parts, &self.piece.selection, &self.job.order.memory, scratch)? {
            Ok(())
        } else {
            Err(Error::refused("more than a part"))
        }
    }
}

/// Return the runs that hold what the targets need of a compressed chunk; None if the whole chunk should be fetched.
fn few_runs(chain: &Chain, targets: &[Target<'_>]) -> Result<Option<Runs>> {
    // The number of stored bytes is not known yet. It is assumed to be half the number of decoded bytes.
    let share = (chain.layout.nbytes >= 2 * LEAST_IN_PARTS).then_some(LARGEST_SHARE);
    let mut all = Vec::new();
    for target in targets {
        let Some(runs) = chain.few_runs(&target.piece.selection, share)? else { return Ok(None) };
        all.push(runs);
    }
    Ok(chain.in_few_blocks(all))
}

fn is_part(chain: &Chain, piece: &Piece) -> bool {
    let is_uncut = match &piece.selection {
        Selection::Mesh(axes) => axes.iter().map(|axis| axis.inner.len()).eq(chain.layout.shape.iter().copied()),
        Selection::Points(_) => false,
    };
    !(piece.whole && is_uncut)
}

// -- shared requests ------------------------------------------------------------------------

/// The answer to a request for a chunk, which readers share; None: there is no chunk.
pub type Chunk = Result<Option<Stored>, Reason>;
/// The answer to a request for the index of a shard; None: there is no shard.
pub type Indexed = Result<Option<Arc<Index>>, Reason>;
/// The answer to a request for the beginning of a chunk; None: there is no chunk.
pub type Headed = Result<Option<Part>, Reason>;

/// A chunk, encoded or decoded.
#[derive(Clone, Debug)]
pub enum Stored {
    /// The stored bytes.
    Raw(Bytes),
    /// The bytes of the elements.
    Decoded(Arc<[u8]>),
}

/// The index of a shard, and what the server said about the shard.
#[derive(Debug)]
pub struct Index {
    entries: Vec<Entry>,
    meta: ObjectMeta,
}

/// An error that several readers get.
#[derive(Clone, Debug)]
pub struct Reason {
    kind: Kind,
    message: String,
    answered: Option<Answered>,
}

impl Reason {
    fn of(error: &Error) -> Self {
        let answered = error.foreign.as_ref().and_then(|foreign| foreign.downcast_ref::<Answered>()).cloned();
        Self { kind: error.kind, message: error.message.clone(), answered }
    }
}

impl From<Reason> for Error {
    fn from(reason: Reason) -> Self {
        let foreign = reason.answered.map(|answered| Box::new(answered) as _);
        Self { kind: reason.kind, message: reason.message, foreign }
    }
}

fn copied(error: &Error) -> Error {
    Reason::of(error).into()
}

/// Send a request; or if another reader is about to send the same request, wait for the answer to that one.
async fn shared<T: Clone>(
    flights: &Flights<Result<T, Reason>>,
    name: &str,
    request: impl Future<Output = Result<T>>,
) -> Result<T> {
    let mut pilot = match flights.board(name).await {
        Seat::Passenger(answer) => return answer.map_err(Error::from),
        Seat::Pilot(pilot) => pilot,
    };
    pilot.depart();
    let answer = request.await;
    pilot.land(match &answer {
        Ok(answer) => Ok(answer.clone()),
        Err(error) => Err(Reason::of(error)),
    });
    answer
}
