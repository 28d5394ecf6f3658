//! Connections to servers: free ones, requests that wait for one, and connections that are being made.
//!
//! A request gets the first connection that exists, whether new or returned by another request. A new
//! connection is dialled only while a request waits. So a server that accepts few connections is read
//! over those few.
//!
//! All clients of a process share connections, as each request says who asks. Unused ones are kept for the next request: few
//! of a server for long, many for a short time, and only so many of all servers. A task closes the others in time.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant};

use hyper::client::conn::http1::SendRequest;
use object_store::client::{HttpError, HttpErrorKind};
use tokio::sync::oneshot;
use tokio::time::{sleep, timeout};

use crate::error::Error;
use crate::remote::dialler::{Dialler, Sender, Server};
use crate::remote::failures::{SENDING, declined, timed_out};
use crate::remote::process::{OfProcess, runtime};
use crate::threads::locked;

/// How many connections are begun at once at first: each that succeeds allows one more.
const FIRST_AT_ONCE: usize = 128;
/// How long none is begun after one could not be made, as long as there are others.
const PAUSE: Duration = Duration::from_secs(1);
/// How long unused ones are kept, unless a client says otherwise,
const IDLE: Duration = Duration::from_secs(90);
/// if there are no more than these of a server;
const MOST_FOR_LONG: usize = 16;
/// and how long the others.
const SHORT: Duration = Duration::from_secs(10);
/// How many unused ones of all servers are kept: as many as there may be requests at once.
const MOST_IDLE: usize = 512;
/// How often the unused ones are looked through.
const BETWEEN_SWEEPS: Duration = Duration::from_secs(1);

/// How connections are made, and how long they are kept: clients that agree on that share them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Terms {
    /// How long it may take to make one.
    pub connect_timeout: Option<Duration>,
    /// How long an unused one is kept, if it is one of few.
    pub idle_timeout: Option<Duration>,
    /// How many unused ones of a server are kept.
    pub most_idle: Option<usize>,
}

impl Terms {
    /// How long an unused connection is kept if `others` are unused that were used after it.
    fn patience(&self, others: usize) -> Duration {
        let idle_timeout = self.idle_timeout.unwrap_or(IDLE);
        if others < MOST_FOR_LONG { idle_timeout } else { idle_timeout.min(SHORT) }
    }
}

/// A server, and the terms of those who connect to it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Route {
    /// Where to.
    pub server: Server,
    /// And how.
    pub terms: Terms,
}

/// The connections of a process.
#[derive(Debug)]
pub struct Connections {
    pools: Mutex<Pools>,
    dialler: Dialler,
    most_idle: usize,
}

#[derive(Debug, Default)]
struct Pools {
    of: HashMap<Route, Pool>,
    /// How many connections are unused.
    idle: usize,
    /// A task is there that closes them in time.
    is_swept: bool,
}

type Waiting = oneshot::Sender<Result<Connection, HttpError>>;
/// The connections to one server.
#[derive(Debug)]
struct Pool {
    /// Unused connections, and since when, the last used last. There are none while a request waits.
    idle: Vec<(Sender, Instant)>,
    waiting: VecDeque<Waiting>,
    /// How many there are, used and unused.
    open: usize,
    /// How many are being made.
    begun: usize,
    /// As many may be begun at once.
    most_begun: usize,
    /// Until then none is begun if there are others.
    pause: Option<Instant>,
}

impl Default for Pool {
    fn default() -> Self {
        Self { idle: Vec::new(), waiting: VecDeque::new(), open: 0, begun: 0, most_begun: FIRST_AT_ONCE, pause: None }
    }
}

impl Pool {
    /// The connection used last, if there is one.
    fn take(&mut self, terms: &Terms) -> Option<Sender> {
        while let Some((sender, since)) = self.idle.pop() {
            if since.elapsed() > terms.patience(0) {
                // The others have not been used for longer.
                self.open -= 1 + self.idle.len();
                self.idle.clear();
            } else if sender.is_closed() {
                self.open -= 1;
            } else {
                return Some(sender);
            }
        }
        None
    }

    /// Close connections that have been unused for too long, and forget those that the server has closed.
    fn sweep(&mut self, terms: &Terms) {
        let (before, mut others) = (self.idle.len(), self.idle.len());
        self.idle.retain(|(sender, since)| {
            others -= 1;
            since.elapsed() <= terms.patience(others) && !sender.is_closed()
        });
        self.open -= before - self.idle.len();
    }

    fn is_needed(&self) -> bool {
        self.open > 0 || self.begun > 0 || !self.waiting.is_empty()
    }

    /// The request that has waited longest, and still waits.
    fn first(&mut self) -> Option<Waiting> {
        while let Some(waiting) = self.waiting.pop_front() {
            if !waiting.is_closed() {
                return Some(waiting);
            }
        }
        None
    }

    fn begin(&mut self) -> bool {
        while self.waiting.front().is_some_and(Waiting::is_closed) {
            self.waiting.pop_front();
        }
        let may_begin = self.begun < self.waiting.len().min(self.most_begun)
            && (self.open == 0 || self.pause.is_none_or(|end| Instant::now() >= end));
        self.begun += usize::from(may_begin);
        may_begin
    }
}

/// A connection that is used. One that is dropped is closed.
#[derive(Debug)]
pub struct Connection {
    sender: Option<Sender>,
    route: Route,
    connections: Arc<Connections>,
    /// It has served another request before.
    pub is_used: bool,
}

impl Connection {
    /// What requests are sent by; None once it has been given back.
    pub fn sender(&mut self) -> Option<&mut Sender> {
        self.sender.as_mut()
    }

    /// Let others use it.
    pub fn give_back(mut self) {
        let Some(sender) = self.sender.take() else { return };
        self.connections.take_back(&self.route, sender);
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        if self.sender.take().is_some() {
            self.connections.count(&self.route, |pool| pool.open -= 1);
            self.connections.begin(&self.route);
        }
    }
}

impl Connections {
    /// Those of this process.
    ///
    /// # Errors
    /// If there can be none.
    pub fn shared() -> Result<Arc<Self>, Error> {
        static SHARED: OfProcess<Connections> = OfProcess::new();
        SHARED.get(|| Ok(Self::new(MOST_IDLE.min(most_files() / 2))))
    }

    /// None yet; so many unused ones are kept at most.
    fn new(most_idle: usize) -> Self {
        Self { pools: Mutex::default(), dialler: Dialler::default(), most_idle }
    }

    fn pools(&self) -> MutexGuard<'_, Pools> {
        locked(&self.pools)
    }

    /// Look at a pool, or change it. Nothing that is a [`Connection`] may be dropped meanwhile: that takes the lock, too.
    fn count<T>(&self, route: &Route, task: impl FnOnce(&mut Pool) -> T) -> T {
        let mut pools = self.pools();
        let Pools { of, idle, .. } = &mut *pools;
        let pool = of.entry(route.clone()).or_default();
        let before = pool.idle.len();
        let result = task(pool);
        *idle = *idle - before + pool.idle.len();
        result
    }

    fn connection(self: &Arc<Self>, route: &Route, sender: Sender, is_used: bool) -> Connection {
        Connection { sender: Some(sender), route: route.clone(), connections: Arc::clone(self), is_used }
    }

    /// Wait for a connection, the first that is free or new.
    ///
    /// # Errors
    /// If none can be made, and there are no others.
    pub async fn get(self: &Arc<Self>, route: &Route) -> Result<Connection, HttpError> {
        let (waiting, mut answer) = oneshot::channel();
        let found = self.count(route, |pool| {
            let found = pool.take(&route.terms);
            if found.is_none() {
                pool.waiting.push_back(waiting);
            }
            found
        });
        if let Some(sender) = found {
            return Ok(self.connection(route, sender, true));
        }
        self.begin(route);
        loop {
            match timeout(PAUSE, &mut answer).await {
                Ok(answer) => return answer.unwrap_or_else(|_| Err(declined("no connection"))),
                // Perhaps the server takes more by now.
                Err(_) => self.begin(route),
            }
        }
    }

    /// Begin to make connections, as many as are waited for and may be.
    fn begin(self: &Arc<Self>, route: &Route) {
        let Ok(runtime) = runtime() else { return };
        while self.count(route, Pool::begin) {
            let (connections, route) = (Arc::clone(self), route.clone());
            runtime.spawn(async move {
                let dialled = connections.dialler.dial(&route.server);
                let made = match route.terms.connect_timeout {
                    None => dialled.await,
                    Some(limit) => timeout(limit, dialled).await.unwrap_or_else(|_| Err(timed_out(SENDING))),
                };
                connections.made(&route, made);
            });
        }
    }

    /// Hand a new connection, or the error that prevented it, to the request that has waited longest.
    fn made(self: &Arc<Self>, route: &Route, made: Result<Sender, HttpError>) {
        match made {
            Ok(sender) => {
                self.count(route, |pool| {
                    pool.begun -= 1;
                    pool.open += 1;
                    pool.most_begun += 1;
                });
                self.hand_on(self.connection(route, sender, false));
            }
            Err(error) => {
                let may_wait = matches!(error.kind(), HttpErrorKind::Connect | HttpErrorKind::Timeout);
                let first = self.count(route, |pool| {
                    pool.begun -= 1;
                    if may_wait && pool.open > 0 {
                        // The server takes no more than there are: they will be free again.
                        pool.most_begun = (pool.most_begun / 2).max(1);
                        pool.pause = Some(Instant::now() + PAUSE);
                        return None;
                    }
                    pool.first()
                });
                if let Some(first) = first {
                    let _ = first.send(Err(error));
                }
            }
        }
        self.begin(route);
    }

    fn take_back(self: &Arc<Self>, route: &Route, sender: Sender) {
        self.hand_on(self.connection(route, sender, true));
    }

    /// Give a connection to the request that has waited longest, or keep it.
    fn hand_on(self: &Arc<Self>, mut connection: Connection) {
        // Not within the lock: what is dropped takes it.
        while let Some(waiting) = self.next(&mut connection) {
            match waiting.send(Ok(connection)) {
                Err(Ok(returned)) => connection = returned,
                Ok(()) | Err(Err(_)) => return,
            }
        }
        if connection.sender.is_none() {
            self.keep_few();
        }
    }

    /// Return the request that waits for a connection; if none does, and the connection is good, keep it.
    fn next(&self, connection: &mut Connection) -> Option<Waiting> {
        let is_closed = connection.sender.as_ref().is_none_or(SendRequest::is_closed);
        if is_closed {
            return None;
        }
        let Connection { sender, route, .. } = connection;
        self.count(route, |pool| {
            let first = pool.first();
            if first.is_none()
                && route.terms.most_idle.is_none_or(|most| pool.idle.len() < most)
                && let Some(sender) = sender.take()
            {
                pool.idle.push((sender, Instant::now()));
            }
            first
        })
    }

    // -- closing what is not used -------------------------------------------------------------

    /// Of too many unused connections, close those that were used longest ago; see to it that the others are closed in time.
    fn keep_few(self: &Arc<Self>) {
        let mut pools = self.pools();
        while pools.idle > self.most_idle {
            let oldest = pools.of.values_mut().filter(|pool| !pool.idle.is_empty()).min_by_key(|pool| pool.idle[0].1);
            let Some(pool) = oldest else { break };
            pool.idle.remove(0);
            pool.open -= 1;
            pools.idle -= 1;
        }
        if pools.idle == 0 || pools.is_swept {
            return;
        }
        let Ok(runtime) = runtime() else { return };
        pools.is_swept = true;
        let connections = Arc::clone(self);
        runtime.spawn(async move {
            while connections.sweep() {
                sleep(BETWEEN_SWEEPS).await;
            }
        });
    }

    /// Close what has been unused for too long; return whether there is anything left to be closed.
    fn sweep(&self) -> bool {
        self.dialler.forget();
        let mut pools = self.pools();
        pools.of.retain(|route, pool| {
            pool.sweep(&route.terms);
            pool.is_needed()
        });
        pools.idle = pools.of.values().map(|pool| pool.idle.len()).sum();
        pools.is_swept = pools.idle > 0;
        pools.is_swept
    }
}

/// How many files this process may have open.
fn most_files() -> usize {
    #[cfg(unix)]
    let most: Option<u64> = rustix::process::getrlimit(rustix::process::Resource::Nofile).current;
    #[cfg(not(unix))]
    let most: Option<u64> = None;
    most.and_then(|most| usize::try_from(most).ok()).unwrap_or(usize::MAX)
}

#[cfg(test)]
mod tests {
    use tokio::net::{TcpListener, TcpStream};
    use tokio::sync::mpsc;

    use super::*;

    const TERMS: Terms = Terms { connect_timeout: None, idle_timeout: None, most_idle: None };

    /// A server that accepts connections, says nothing, and hands them over.
    async fn server() -> (Server, mpsc::UnboundedReceiver<TcpStream>) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let authority = listener.local_addr().unwrap().to_string().parse().unwrap();
        let (sender, receiver) = mpsc::unbounded_channel();
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let _ = sender.send(stream);
            }
        });
        (Server { is_secure: false, authority }, receiver)
    }

    /// Use so many connections at once, and give them back.
    async fn used(connections: &Arc<Connections>, route: &Route, count: usize) {
        let mut taken = Vec::new();
        for _ in 0..count {
            taken.push(connections.get(route).await.unwrap());
        }
        taken.into_iter().for_each(Connection::give_back);
    }

    fn idle(connections: &Connections, route: &Route) -> usize {
        connections.pools().of.get(route).map_or(0, |pool| pool.idle.len())
    }

    /// Wait until so many are unused, for at most five seconds.
    async fn settled(connections: &Connections, count: usize) -> bool {
        for _ in 0..100 {
            if connections.pools().idle == count {
                return true;
            }
            sleep(Duration::from_millis(50)).await;
        }
        false
    }

    fn on_the_runtime<T: Send + 'static>(task: impl Future<Output = T> + Send + 'static) -> T {
        let (sender, receiver) = std::sync::mpsc::channel();
        runtime().unwrap().spawn(async move { sender.send(task.await) });
        receiver.recv().unwrap()
    }

    #[test]
    fn of_too_many_those_that_were_used_longest_ago_are_closed() {
        on_the_runtime(async {
            let connections = Arc::new(Connections::new(3));
            let ((one, _accepted), (other, _also_accepted)) = (server().await, server().await);
            let (one, other) = (Route { server: one, terms: TERMS }, Route { server: other, terms: TERMS });
            used(&connections, &one, 3).await;
            assert_eq!((idle(&connections, &one), idle(&connections, &other)), (3, 0));
            used(&connections, &other, 2).await;
            assert_eq!((idle(&connections, &one), idle(&connections, &other)), (1, 2));
            used(&connections, &one, 1).await;
            used(&connections, &other, 3).await;
            assert_eq!((idle(&connections, &one), idle(&connections, &other)), (0, 3));
            assert_eq!(connections.pools().of.values().map(|pool| pool.open).sum::<usize>(), 3);
        });
    }

    #[test]
    fn unused_ones_are_closed_in_time_and_their_server_forgotten() {
        on_the_runtime(async {
            let connections = Arc::new(Connections::new(100));
            let (server, mut accepted) = server().await;
            let terms = Terms { idle_timeout: Some(Duration::from_millis(1)), ..TERMS };
            used(&connections, &Route { server, terms }, 4).await;
            assert!(settled(&connections, 0).await);
            assert!(connections.pools().of.is_empty());
            for _ in 0..4 {
                let stream = accepted.recv().await.unwrap();
                stream.readable().await.unwrap();
                assert_eq!(stream.try_read(&mut [0]).unwrap(), 0); // the end
            }
        });
    }

    #[test]
    fn those_that_the_server_has_closed_are_forgotten() {
        on_the_runtime(async {
            let connections = Arc::new(Connections::new(100));
            let (server, mut accepted) = server().await;
            let route = Route { server, terms: TERMS };
            used(&connections, &route, 2).await;
            drop(accepted.recv().await);
            assert!(settled(&connections, 1).await);
            assert_eq!(connections.pools().of[&route].open, 1);
        });
    }

    #[test]
    fn few_of_a_server_are_kept_for_long() {
        assert_eq!(TERMS.patience(MOST_FOR_LONG - 1), IDLE);
        assert_eq!(TERMS.patience(MOST_FOR_LONG), SHORT);
        let told = Terms { idle_timeout: Some(Duration::from_secs(1)), ..TERMS };
        assert_eq!(told.patience(MOST_FOR_LONG), Duration::from_secs(1));
    }
}
