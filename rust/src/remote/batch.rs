//! Plans whose chunks are in remote stores. [`crate::run`] is the same for local stores.
//!
//! Tasks take units of work by number until there are none: they fetch a chunk, decode it, and put what is selected of it
//! into place, while others fetch. Pieces of several plans that need the same chunk are one unit. To write, they encode a
//! chunk and send it, while others wait for answers.

use std::collections::{HashMap, VecDeque};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Duration;

use futures_util::future::join_all;
use smallvec::{SmallVec, smallvec};
use tokio::task::AbortHandle;

use crate::error::{Error, Kind, Result};
use crate::plan::Plan;
use crate::remote::failures::Reason;
use crate::remote::job::{Job, Members, Order, Target, Tools};
use crate::remote::located::Walk;
use crate::remote::process::runtime;
use crate::remote::{located, read, write};
use crate::run::{Failure, Verb};
use crate::scatter::Memory;
use crate::threads::locked;

/// Maximum number of chunks that are fetched concurrently, whatever their size.
const LEAST_AT_ONCE: usize = 4;
/// How often the caller is asked whether to go on.
const PATIENCE: Duration = Duration::from_millis(20);
/// How long requests may go on that store something which was given up: what is broken off may still be stored, later.
const GRACE: Duration = Duration::from_secs(2);

/// What became of an order: the numbers of the pieces that were refused, or what stopped it.
pub type Outcome = Result<Vec<usize>, Failure>;

/// Wakes up the caller that waits for orders of a batch.
pub type Bell = Box<dyn Fn() + Send + Sync>;

/// Orders that are being carried out.
pub struct Batch(Arc<Shared>);

struct Shared {
    verb: Verb,
    jobs: Vec<Arc<Job>>,
    units: Units,
    /// The first failure ends all orders, and not only its own.
    is_one: bool,
    tools: Arc<Tools>,
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

/// What tasks take in turn.
struct Units {
    next: AtomicUsize,
    chunks: Chunks,
    /// Pieces that are in files of other formats.
    walk: Walk,
    /// No more than these: how many of them the walk joins is not known before.
    most: usize,
}

enum Chunks {
    /// Each piece of the only job.
    Pieces(usize),
    /// Pieces that need the same chunk.
    Groups(Vec<Members>),
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
        let tools = Arc::new(Tools::new());
        let jobs = orders.into_iter().map(|order| Job::new(order, &tools).map(Arc::new)).collect::<Result<Vec<_>>>()?;
        if verb == Verb::Write && jobs.iter().any(|job| job.order.located.is_some()) {
            return Err(Error::refused("files of other formats can only be read"));
        }
        let units = Units::of(&jobs);
        let tasks = tasks(verb, &jobs, units.most, at_once);
        let done = (0..jobs.len()).filter(|&number| jobs[number].order.plan.is_empty()).collect();
        let shared = Arc::new(Shared {
            verb,
            jobs,
            units,
            is_one,
            tools,
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
        if shared.tools.is_stopped.load(Ordering::Relaxed) {
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
        self.0.tools.is_stopped.store(true, Ordering::Relaxed);
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
        let Order { array, plan, located, .. } = &self.0.jobs[number].order;
        let coords = plan.piece(piece).coords;
        located.as_ref().map_or_else(|| array.keys.key(&coords), |located| located.key(&coords))
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
fn tasks(verb: Verb, jobs: &[Arc<Job>], units: usize, at_once: Option<usize>) -> usize {
    let largest = jobs.iter().map(|job| job.bytes_of_piece(verb)).max().unwrap_or(1).max(1);
    let bytes = jobs.iter().map(|job| job.order.bytes_in_flight).min().unwrap_or(usize::MAX);
    let bound = (bytes / largest).max(LEAST_AT_ONCE);
    let wanted = at_once.unwrap_or_else(|| jobs.iter().map(|job| job.live.most_at_once).max().unwrap_or(1));
    wanted.min(bound).min(units).max(usize::from(units > 0))
}

impl Units {
    fn of(jobs: &[Arc<Job>]) -> Self {
        let chunks = Chunks::of(jobs);
        let located: usize =
            jobs.iter().filter(|job| job.order.located.is_some()).map(|job| job.order.plan.len()).sum();
        let most = chunks.len().saturating_add(located);
        Self { next: AtomicUsize::new(0), chunks, walk: Walk::new(jobs), most }
    }

    /// Return the next pieces that are read or stored together; None after all others.
    fn take(&self, jobs: &[Arc<Job>]) -> Option<Members> {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        if number < self.chunks.len() { Some(self.chunks.members(number)) } else { self.walk.next(jobs) }
    }
}

impl Chunks {
    /// All pieces that are not in files of other formats.
    fn of(jobs: &[Arc<Job>]) -> Self {
        if let [job] = jobs {
            return Self::Pieces(if job.order.located.is_none() { job.order.plan.len() } else { 0 });
        }
        let mut groups: Vec<Members> = Vec::new();
        let mut known = HashMap::new();
        // In turn, so that none waits until another is done.
        let longest =
            jobs.iter().filter(|job| job.order.located.is_none()).map(|job| job.order.plan.len()).max().unwrap_or(0);
        for number in 0..longest {
            let is_there = |job: &Job| job.order.located.is_none() && number < job.order.plan.len();
            for (at, job) in jobs.iter().enumerate().filter(|(_, job)| is_there(job)) {
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

    fn members(&self, number: usize) -> Members {
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
        self.tools.is_stopped.store(true, Ordering::Relaxed);
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
        while !self.tools.is_stopped.load(Ordering::Relaxed) {
            let Some(members) = self.units.take(&self.jobs) else { return };
            self.unit(members).await;
        }
    }

    async fn unit(&self, members: Members) {
        let targets: SmallVec<[Target<'_>; 1]> = members
            .iter()
            .map(|&(job, number)| (&self.jobs[job], number))
            .filter(|(job, _)| !job.is_stopped.load(Ordering::Relaxed))
            .map(|(job, number)| Target { job, number, piece: job.order.plan.piece(number) })
            .collect();
        match self.verb {
            Verb::Read if targets.iter().any(|target| target.job.order.located.is_some()) => {
                for (at, error) in located::read(&self.tools, &targets).await {
                    self.failed(&targets[at], error);
                }
            }
            Verb::Read => {
                if let Err(error) = read::read(&self.tools, &targets).await {
                    for target in &targets {
                        self.failed(target, Reason::of(&error).into());
                    }
                }
            }
            Verb::Write => {
                // Parts of a chunk are stored together. Whole chunks before and after them keep their place in the order.
                for some in targets.chunk_by(|one, other| is_part(one) && is_part(other)) {
                    join_all(some.iter().map(|target| self.store(target))).await;
                }
            }
        }
        for (job, _) in members {
            if self.jobs[job].left.fetch_sub(1, Ordering::AcqRel) == 1 {
                self.done(&self.jobs[job]);
            }
        }
    }

    async fn store(&self, target: &Target<'_>) {
        let _storing = Storing::of(self, target.job);
        if target.job.is_stopped.load(Ordering::SeqCst) {
            return;
        }
        if let Err(error) = target.job.unless_aborted(write::write(target)).await {
            self.failed(target, error);
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
        let Some(number) = self.jobs.iter().position(|other| std::ptr::eq(job, Arc::as_ptr(other))) else { return };
        locked(&self.state).done.push_back(number);
        if let Some(bell) = &self.bell {
            bell();
        }
    }
}

fn is_part(target: &Target<'_>) -> bool {
    target.job.order.array.chain_of(&target.piece.coords).is_ok_and(|chain| target.is_part(chain))
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
