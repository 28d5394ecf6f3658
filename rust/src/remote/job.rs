//! Orders, the jobs that they become, and what tasks need to work on the pieces of jobs.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use futures_util::future::{Either, select};
use object_store::path::Path;
use smallvec::SmallVec;
use tokio::sync::{Semaphore, watch};
use tokio::task::block_in_place;

use crate::chain::{Chain, Scratch};
use crate::error::{Error, Result};
use crate::plan::{Piece, Plan};
use crate::remote::change::Conditions;
use crate::remote::client::{Client, Live};
use crate::remote::fetch::Place;
use crate::remote::indexes::Indexes;
use crate::remote::located::{Located, bytes_of_request};
use crate::run::{Array, Failure, Verb, is_uncut};
use crate::scatter::Memory;
use crate::threads::{locked, processors};

/// Chunks of more bytes take so long to encode that other threads must look after what is on its way meanwhile.
const SOON_ENCODED: usize = 256 * 1024;

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
    /// Where the chunks lie, if they are in files of another format.
    pub located: Option<Arc<Located>>,
    /// Indexes of shards that were fetched before.
    pub indexes: Option<Arc<Indexes>>,
}

/// An order that is being carried out.
pub(super) struct Job {
    pub order: Order,
    pub live: Arc<Live>,
    /// What it shares with others of its batch.
    pub tools: Arc<Tools>,
    /// Nothing more of it is begun.
    pub is_stopped: AtomicBool,
    /// How many tasks are putting something into place.
    pub writing: AtomicUsize,
    /// How many tasks are storing something.
    pub storing: AtomicUsize,
    /// What is on its way is given up, too.
    pub is_aborted: watch::Sender<bool>,
    /// How many pieces are not done yet.
    pub left: AtomicUsize,
    /// The numbers of the pieces that were refused.
    pub refused: Mutex<Vec<usize>>,
    /// What stopped it.
    pub failure: Mutex<Option<Failure>>,
}

/// A piece: the number of its job, and its own.
pub(super) type Member = (usize, usize);
/// Pieces that a task works on together.
pub(super) type Members = SmallVec<[Member; 1]>;

/// A piece, and where it is to go.
pub(super) struct Target<'a> {
    pub job: &'a Arc<Job>,
    pub number: usize,
    pub piece: Piece,
}

impl Job {
    pub fn new(order: Order, tools: &Arc<Tools>) -> Result<Self> {
        Ok(Self {
            live: order.client.live()?,
            tools: Arc::clone(tools),
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
    pub fn bytes_of_piece(&self, verb: Verb) -> usize {
        let (chain, plan) = (&self.order.array.codecs.chain, &self.order.plan);
        if self.order.located.is_some() {
            return bytes_of_request(self);
        }
        let is_in_parts = verb == Verb::Read && !plan.is_empty();
        let Some(shard) = chain.as_shard().filter(|_| is_in_parts) else { return chain.layout.nbytes };
        let piece = plan.piece(plan.len() / 2);
        let chunks = Plan::within(&piece.selection, &shard.inner.layout.shape).map_or(usize::MAX, |plan| plan.len());
        chunks.saturating_mul(shard.inner.layout.nbytes).min(chain.layout.nbytes)
    }

    pub fn key(&self, coords: &[u64]) -> String {
        let mut key = self.order.prefix.to_string();
        key.push_str(&self.order.array.keys.key(coords));
        key
    }

    pub fn place(&self, key: &str) -> Result<Place<'_>> {
        let path = Path::parse(key).map_err(|error| Error::refused(error.to_string()))?;
        Ok(Place { live: &self.live, path, most: self.order.most })
    }

    /// What tells a chunk from others, and from itself as it is read with other codecs.
    pub fn name(&self, key: &str) -> String {
        format!("{:p} {key}", Arc::as_ptr(&self.order.array.codecs))
    }

    /// Whether nothing more of it is begun.
    pub fn has_ended(&self) -> bool {
        self.tools.is_stopped.load(Ordering::Relaxed) || self.is_stopped.load(Ordering::SeqCst)
    }

    /// Do something, until it is given up.
    pub async fn unless_aborted(&self, work: impl Future<Output = Result<()>>) -> Result<()> {
        let mut aborted = self.is_aborted.subscribe();
        let aborted = pin!(aborted.wait_for(|&is_aborted| is_aborted));
        match select(pin!(work), aborted).await {
            Either::Left((result, _)) => result,
            Either::Right(_) => Ok(()),
        }
    }

    pub fn fail(&self, piece: Option<usize>, error: Error) {
        self.is_stopped.store(true, Ordering::Relaxed);
        locked(&self.failure).get_or_insert(Failure { piece, error });
    }
}

impl Target<'_> {
    pub fn fill_missing(&self, chain: &Chain) -> Result<()> {
        chain.fill_missing(&self.piece.selection, &self.job.order.memory)
    }

    pub fn place(&self, chain: &Chain, data: &[u8], scratch: &mut Scratch) -> Result<()> {
        chain.place(data, &self.piece, &self.job.order.memory, scratch)
    }

    /// Put elements into place from the bytes of a decoded chunk that begin at `start`.
    pub fn scatter(&self, chain: &Chain, bytes: &[u8], start: usize) -> Result<()> {
        self.job.order.memory.scatter(&chain.layout, bytes, start, &self.piece.selection)
    }

    /// Whether the piece is less than its whole chunk.
    pub fn is_part(&self, chain: &Chain) -> bool {
        is_part(&self.piece, chain)
    }
}

/// Whether a piece is less than its whole chunk.
pub(super) fn is_part(piece: &Piece, chain: &Chain) -> bool {
    !(piece.whole && is_uncut(chain, &piece.selection))
}

/// What the tasks of a batch share.
pub(super) struct Tools {
    /// Memory that is used again and again.
    scratches: Mutex<Vec<Scratch>>,
    /// As many large chunks are encoded at once.
    encoders: Semaphore,
    /// Nothing more is begun.
    pub is_stopped: AtomicBool,
}

impl Tools {
    /// The tools of a new batch.
    pub fn new() -> Self {
        Self { scratches: Mutex::default(), encoders: Semaphore::new(processors()), is_stopped: AtomicBool::new(false) }
    }

    /// Encode a chunk, without keeping those waiting that only look after requests.
    pub async fn encoded<T>(&self, chain: &Chain, encode: impl FnOnce(&mut Scratch) -> Result<T>) -> Result<T> {
        if chain.is_raw() || chain.layout.nbytes <= SOON_ENCODED {
            return self.with_scratch(encode);
        }
        let _permit = self.encoders.acquire().await;
        block_in_place(|| self.with_scratch(encode))
    }

    /// Do something for each target, with memory that is used again and again.
    pub fn each(&self, targets: &[Target<'_>], task: impl Fn(&Target<'_>, &mut Scratch) -> Result<()>) -> Result<()> {
        self.with_scratch(|scratch| {
            targets.iter().try_for_each(|target| {
                // The memory of what was given up may be gone.
                let _writing = Writing::to(target.job);
                if target.job.is_stopped.load(Ordering::SeqCst) { Ok(()) } else { task(target, scratch) }
            })
        })
    }

    pub fn with_scratch<T>(&self, task: impl FnOnce(&mut Scratch) -> Result<T>) -> Result<T> {
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
