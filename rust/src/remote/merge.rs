//! Parts of chunks are changed: what tasks of this process change in the same chunk at the same time is stored together.
//!
//! Each change waits in the queue of its key. A task, the writer of the key, fetches the chunk, makes all changes that wait by
//! then, in the order in which they came, and stores the result on the condition that no other writer was faster; otherwise it
//! does that again. Changes that come while it stores wait for its next round, for which it knows the value already. It
//! ends when no change waits. A change is answered when a value with it has been stored, and not before.
//!
//! A change can be given up until it is made. The writer belongs to no batch, so it goes on for the others; only a request
//! for which no task waits any more is broken off.

use std::collections::{HashMap, VecDeque};
use std::pin::pin;
use std::sync::{Arc, Mutex};
use std::time::Instant;

use bytes::Bytes;
use futures_util::future::{Either, join_all, select};
use object_store::PutMode;
use tokio::sync::oneshot;

use crate::chain::shard::Shard;
use crate::chain::{Chain, Change, Scratch};
use crate::error::{Error, Result};
use crate::plan::{Coords, Piece};
use crate::remote::change::{Conditions, Pauses, Put, too_slow, unchanged};
use crate::remote::client::Live;
use crate::remote::copies::{Copier, LEAST_COPIED};
use crate::remote::failures::Reason;
use crate::remote::fetch::Place;
use crate::remote::job::Job;
use crate::remote::process::{OfProcess, runtime};
use crate::threads::locked;

/// Change a part of a chunk, and return when it is stored, or when the job has ended before.
///
/// # Errors
/// If the store fails, the chunk is broken, or other writers are faster for too long.
pub(super) async fn change(job: &Arc<Job>, piece: Piece, conditions: Conditions) -> Result<()> {
    static QUEUES: OfProcess<Queues> = OfProcess::new();
    let queues = QUEUES.get(|| Ok(Queues::default()))?;
    let name = (Arc::as_ptr(&job.live) as usize, job.key(&piece.coords));
    let (sender, answer) = oneshot::channel();
    let wanted = Arc::new(Mutex::new(Some(Wanted { job: Arc::clone(job), piece })));
    let _ticket = Ticket(Arc::clone(&wanted));
    if queues.push(&name, Waiting { wanted, conditions, answer: sender, met: None }) {
        let writer = Writer { queues, name, _live: Arc::clone(&job.live), is_over: false };
        runtime()?.spawn(writer.run());
    }
    match answer.await {
        Ok(answer) => answer.map_err(Error::from),
        Err(_) => Err(Error::refused("the writer of the chunk failed")),
    }
}

/// A change that a task waits for. The memory of its job lives as long as this.
struct Wanted {
    job: Arc<Job>,
    piece: Piece,
}

/// Held by the task that waits for a change. Once it is dropped, the memory of the job is not read any more.
struct Ticket(Arc<Mutex<Option<Wanted>>>);

impl Drop for Ticket {
    fn drop(&mut self) {
        drop(locked(&self.0).take());
    }
}

/// A change in a queue.
struct Waiting {
    /// None: it has been given up.
    wanted: Arc<Mutex<Option<Wanted>>>,
    conditions: Conditions,
    answer: oneshot::Sender<Result<(), Reason>>,
    /// When another writer was first faster.
    met: Option<Instant>,
}

impl Waiting {
    /// Its job, and the coordinates of its chunk; None if it need not be made any more.
    fn aim(&self) -> Option<(Arc<Job>, Coords)> {
        let wanted = locked(&self.wanted);
        let Wanted { job, piece } = wanted.as_ref().filter(|wanted| !wanted.job.has_ended())?;
        Some((Arc::clone(job), piece.coords.clone()))
    }
}

/// A client, by its place in memory, and a key in its store.
type Name = (usize, String);

/// Changes that wait, by key. Each key that is there has a writer.
#[derive(Default)]
struct Queues(Mutex<HashMap<Name, VecDeque<Waiting>>>);

impl Queues {
    /// Add a change; return whether its key needs a writer.
    fn push(&self, name: &Name, waiting: Waiting) -> bool {
        let mut queues = locked(&self.0);
        let is_new = !queues.contains_key(name);
        queues.entry(name.clone()).or_default().push_back(waiting);
        is_new
    }
}

// -- changes that are made together -----------------------------------------------------------

/// Changes that are made together: of a chunk with the same codecs, and with the same limits.
struct Group {
    /// The job of the first one. It has what is needed to encode.
    job: Arc<Job>,
    coords: Coords,
    conditions: Conditions,
    changes: Vec<Waiting>,
}

impl Group {
    fn takes(&self, waiting: &Waiting) -> bool {
        waiting.aim().is_none_or(|(job, coords)| {
            coords == self.coords
                && waiting.conditions == self.conditions
                && job.order.most == self.job.order.most
                && Arc::ptr_eq(&job.order.array.codecs, &self.job.order.array.codecs)
        })
    }

    fn answer(self, answer: &Result<(), Reason>) {
        for waiting in self.changes {
            let _ = waiting.answer.send(answer.clone());
        }
    }

    /// Do something as long as a task waits for it.
    async fn unless_alone<T>(&mut self, work: impl Future<Output = T>) -> Option<T> {
        let gone = join_all(self.changes.iter_mut().map(|waiting| waiting.answer.closed()));
        match select(pin!(work), gone).await {
            Either::Left((result, _)) => Some(result),
            Either::Right(_) => None,
        }
    }

    /// Make the changes in the chunk `old`, and return what is to be stored; None if there is nothing to be stored.
    fn made(&self, chain: &Chain, old: Option<&[u8]>, scratch: &mut Scratch) -> Result<Option<Bytes>> {
        self.with_changes(|changes| Self::made_of(changes, chain, old, scratch)).unwrap_or(Ok(None))
    }

    /// Do something with the changes that are still wanted; None if there is none.
    fn with_changes<T>(&self, work: impl FnOnce(&[Change<'_>]) -> T) -> Option<T> {
        let held: Vec<_> = self.changes.iter().map(|waiting| locked(&waiting.wanted)).collect();
        let changes: Vec<Change<'_>> = held
            .iter()
            .filter_map(|wanted| wanted.as_ref())
            .filter(|wanted| !wanted.job.has_ended())
            .map(|Wanted { job, piece }| Change { selection: &piece.selection, values: &job.order.memory })
            .collect();
        (!changes.is_empty()).then(|| work(&changes))
    }

    fn made_of(
        changes: &[Change<'_>],
        chain: &Chain,
        old: Option<&[u8]>,
        scratch: &mut Scratch,
    ) -> Result<Option<Bytes>> {
        if let Some(data) = chain.update(old, changes, scratch)? {
            return Ok(Some(Bytes::copy_from_slice(data)));
        }
        if old.is_none() {
            // By themselves, changes with other elements would have stored a chunk, which later ones do not delete.
            let mut are_empty = true;
            for change in changes {
                are_empty = are_empty && change.values.holds_only(&chain.layout, &chain.fill, change.selection)?;
            }
            if are_empty {
                return Ok(None);
            }
        }
        // Another writer may be changing another part: it must find the value that it has read, or notice the change.
        chain.encode_empty(scratch).map(|data| Some(Bytes::copy_from_slice(data)))
    }
}

// -- the writer of a key ----------------------------------------------------------------------

/// A value, and the condition that it is still the value.
type Known = (Option<Bytes>, PutMode);

/// What became of a group.
enum Done {
    /// All of it is stored; this is the value now, if it is known.
    Stored(Option<Known>),
    /// As many of the changes, the first ones, need nothing to be stored.
    Nothing(usize),
    /// Another writer was faster.
    Conflict,
    /// The changes could not be made.
    Unmade(Error),
}

/// The task that changes the value of a key.
struct Writer {
    queues: Arc<Queues>,
    name: Name,
    /// As long as it is there, its place in memory belongs to no other.
    _live: Arc<Live>,
    is_over: bool,
}

impl Drop for Writer {
    fn drop(&mut self) {
        if !self.is_over {
            // It has failed. The tasks that wait for an answer notice that there will be none.
            let queue = locked(&self.queues.0).remove(&self.name);
            drop(queue);
        }
    }
}

impl Writer {
    async fn run(mut self) -> Result<()> {
        let (mut known, mut pauses): (Option<Known>, Option<Pauses>) = (None, None);
        // Number of changes that are made one by one, because they cannot be made together.
        let mut single = 0_usize;
        while let Some(mut group) = self.first(single > 0) {
            let is_guess = known.is_some();
            let done = self.once(&mut group, known.take(), single > 0).await;
            single = single.saturating_sub(1);
            match done {
                // No task waits for it any more.
                None => {}
                Some(Ok(Done::Stored(now))) => {
                    (known, pauses) = (now, None);
                    group.answer(&Ok(()));
                }
                Some(Ok(Done::Nothing(count))) => {
                    let rest = group.changes.split_off(count);
                    group.answer(&Ok(()));
                    self.put_back(rest);
                }
                Some(Ok(Done::Conflict)) if is_guess => self.put_back(group.changes),
                Some(Ok(Done::Conflict)) => {
                    self.put_back(met(group));
                    pauses.get_or_insert_default().pause().await?;
                }
                Some(Ok(Done::Unmade(_))) if group.changes.len() > 1 => {
                    single = group.changes.len();
                    self.put_back(group.changes);
                }
                Some(Ok(Done::Unmade(error)) | Err(error)) => group.answer(&Err(Reason::of(&error))),
            }
        }
        Ok(())
    }

    /// Take the changes that wait, or only the first; without any the writer ends.
    fn first(&mut self, is_single: bool) -> Option<Group> {
        let queues = Arc::clone(&self.queues);
        let mut queues = locked(&queues.0);
        while let Some(first) = queues.get_mut(&self.name).and_then(VecDeque::pop_front) {
            let Some((job, coords)) = first.aim() else {
                let _ = first.answer.send(Ok(()));
                continue;
            };
            let mut group = Group { job, coords, conditions: first.conditions, changes: vec![first] };
            drop(queues);
            if !is_single {
                self.join(&mut group);
            }
            return Some(group);
        }
        queues.remove(&self.name);
        self.is_over = true;
        None
    }

    /// Let more changes that wait join a group.
    fn join(&self, group: &mut Group) {
        let mut queues = locked(&self.queues.0);
        let Some(queue) = queues.get_mut(&self.name) else { return };
        while queue.front().is_some_and(|waiting| group.takes(waiting)) {
            group.changes.extend(queue.pop_front());
        }
    }

    fn put_back(&self, changes: Vec<Waiting>) {
        if let Some(queue) = locked(&self.queues.0).get_mut(&self.name) {
            changes.into_iter().rev().for_each(|waiting| queue.push_front(waiting));
        }
    }

    /// Make the changes of a group once, and store them; None if no task waits for that any more.
    async fn once(&self, group: &mut Group, known: Option<Known>, is_single: bool) -> Option<Result<Done>> {
        let job = Arc::clone(&group.job);
        let coords = group.coords.clone();
        let place = match job.place(&self.name.1) {
            Ok(place) => place,
            Err(error) => return Some(Err(error)),
        };
        let chain = match job.order.array.chain_of(&coords) {
            Ok(chain) => chain,
            Err(error) => return Some(Err(error)),
        };
        let mut known = known;
        // Number of changes that came before the value was requested.
        let mut sure = if known.is_none() { group.changes.len() } else { 0 };
        if let Some(shard) = chain.as_shard().filter(|_| known.is_none() && may_grow(&place, chain)) {
            match self.grown(group, &place, chain, shard, is_single).await? {
                Grown::Done(done) => return Some(done),
                Grown::Missing => known = Some((None, PutMode::Create)),
                Grown::No => sure = group.changes.len(),
            }
        }
        let found = match known {
            Some(known) => Ok(known),
            None => group.unless_alone(current(&place)).await?,
        };
        if !is_single {
            self.join(group);
        }
        let (old, condition) = match found {
            Ok(found) => found,
            Err(error) => return Some(Err(error)),
        };
        let made = job.tools.encoded(chain, |scratch| group.made(chain, old.as_deref(), scratch)).await;
        let data = match made {
            Ok(Some(data)) => data,
            // What came later may have to replace what another writer has stored in between.
            Ok(None) => return Some(Ok(Done::Nothing(sure))),
            Err(error) => return Some(Ok(Done::Unmade(error))),
        };
        let are_doubtful = group.conditions.are_doubtful;
        let put = group.unless_alone(place.put_if(data.clone(), &condition, are_doubtful)).await?;
        Some(put.map(|put| match put {
            Put::Stored(condition) => Done::Stored(condition.map(|condition| (Some(data), condition))),
            Put::Conflict => Done::Conflict,
        }))
    }
}

/// What became of a change that leaves most of a shard where it is.
enum Grown {
    /// It was made, or another writer was faster.
    Done(Result<Done>),
    /// There is no shard.
    Missing,
    /// The shard must be made again.
    No,
}

/// Whether the server may be able to copy parts of a chunk that are large enough for that.
fn may_grow(place: &Place<'_>, chain: &Chain) -> bool {
    chain.layout.nbytes as u64 > LEAST_COPIED && place.live.copier.as_ref().is_some_and(Copier::may_copy)
}

impl Writer {
    /// Make the changes of a group in a shard whose other chunks stay where they are. Whatever is wrong is left to those who
    /// make the shard again. None if no task waits for it any more.
    async fn grown(
        &self,
        group: &mut Group,
        place: &Place<'_>,
        chain: &Chain,
        shard: &Shard,
        is_single: bool,
    ) -> Option<Grown> {
        let Ok(index) = group.unless_alone(place.edge(shard.index_size(), shard.index_at_end())).await? else {
            return Some(Grown::No);
        };
        let Some((data, meta)) = index else { return Some(Grown::Missing) };
        if meta.size < LEAST_COPIED || meta.size > place.most {
            return Some(Grown::No);
        }
        let tools = Arc::clone(&group.job.tools);
        let Ok(entries) = tools.with_scratch(|scratch| shard.entries(&data, meta.size, scratch)) else {
            return Some(Grown::No);
        };
        if !is_single {
            self.join(group);
        }
        let needed = group.with_changes(|changes| shard.needed(&entries, changes));
        let Some(Ok(Some(needed))) = needed else { return Some(Grown::No) };
        let Ok(Some(old)) = group.unless_alone(place.parts(needed, Some(meta.clone()))).await? else {
            return Some(Grown::No);
        };
        let made = tools.encoded(chain, |scratch| {
            let made = group.with_changes(|changes| shard.grown(&entries, &old, changes, LEAST_COPIED, scratch));
            made.unwrap_or(Ok(None))
        });
        let made = made.await.ok().flatten().filter(|(kept, tail)| kept + tail.len() as u64 <= place.most);
        let Some((kept, tail)) = made else { return Some(Grown::No) };
        let are_doubtful = group.conditions.are_doubtful;
        Some(match group.unless_alone(place.grow(&meta, kept, tail.into(), are_doubtful)).await? {
            Ok(Some(Put::Stored(_))) => Grown::Done(Ok(Done::Stored(None))),
            Ok(Some(Put::Conflict)) => Grown::Done(Ok(Done::Conflict)),
            Ok(None) => Grown::No,
            Err(error) => Grown::Done(Err(error)),
        })
    }
}

/// Fetch a value, and tell what is true as long as it is the value.
async fn current(place: &Place<'_>) -> Result<Known> {
    let (old, meta) = place.current().await?.unzip();
    let condition = unchanged(meta.as_ref()).ok_or_else(|| Error::refused("a server that tells no versions apart"))?;
    Ok((old, condition))
}

/// Note that another writer was faster. Changes that have waited for too long get an error; return the others.
fn met(group: Group) -> Vec<Waiting> {
    let mut others = Vec::with_capacity(group.changes.len());
    for mut waiting in group.changes {
        match waiting.met {
            Some(first) if first.elapsed() > waiting.conditions.patience => {
                let _ = waiting.answer.send(Err(Reason::of(&too_slow())));
            }
            _ => {
                waiting.met.get_or_insert_with(Instant::now);
                others.push(waiting);
            }
        }
    }
    others
}
