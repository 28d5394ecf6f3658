//! Connections to servers: free ones, requests that wait for one, and connections that are being made.
//!
//! A request gets the first connection that exists, whether new or returned by another request. A new
//! connection is dialled only while a request waits. So a server that accepts few connections is read
//! over those few.

use std::collections::{HashMap, VecDeque};
use std::error::Error as StdError;
use std::io;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use hyper::client::conn::http1::{self, SendRequest};
use hyper::http::uri::Authority;
use hyper_util::rt::TokioIo;
use object_store::client::{HttpError, HttpErrorKind, HttpRequestBody};
use tokio::net::TcpStream;
use tokio::sync::oneshot;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::ServerName;
use tokio_rustls::rustls::{self, ClientConfig, RootCertStore};

use crate::error::Error;
use crate::remote::failures::{SENDING, declined, failed, timed_out};
use crate::remote::process::{OfProcess, runtime};

/// How long the addresses of a host are remembered.
const ADDRESSES_KEPT: Duration = Duration::from_secs(10);
/// How many connections are begun at once at first: each that succeeds allows one more.
const FIRST_AT_ONCE: usize = 128;
/// How long none is begun after one could not be made, as long as there are others.
const PAUSE: Duration = Duration::from_secs(1);

/// A server.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Server {
    /// Whether it is reached over TLS.
    pub is_secure: bool,
    /// Its name and its port.
    pub authority: Authority,
}

impl Server {
    fn port(&self) -> u16 {
        self.authority.port_u16().unwrap_or(if self.is_secure { 443 } else { 80 })
    }

    fn host(&self) -> &str {
        let host = self.authority.host();
        host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host)
    }
}

/// How connections are made, and how long they are kept.
#[derive(Clone, Copy, Debug)]
pub struct Terms {
    /// How long it may take to make one.
    pub connect_timeout: Option<Duration>,
    /// How long an unused one is kept.
    pub idle_timeout: Duration,
    /// How many unused ones of a server are kept.
    pub most_idle: Option<usize>,
}

/// The connections of a client.
#[derive(Debug)]
pub struct Connections {
    terms: Terms,
    pools: Mutex<HashMap<Server, Pool>>,
    addresses: Mutex<HashMap<Server, Addresses>>,
    turn: AtomicUsize,
}

type Sender = SendRequest<HttpRequestBody>;
type Waiting = oneshot::Sender<Result<Connection, HttpError>>;
/// The addresses of a server or why they are not known, and since when.
type Found = Result<Arc<[SocketAddr]>, (io::ErrorKind, String)>;
type Addresses = Arc<tokio::sync::Mutex<Option<(Instant, Found)>>>;

/// The connections to one server.
#[derive(Debug)]
struct Pool {
    /// Unused connections, and since when. There are none while a request waits.
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
    fn take(&mut self, idle_timeout: Duration) -> Option<Sender> {
        while let Some((sender, since)) = self.idle.pop() {
            if since.elapsed() > idle_timeout {
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
    server: Server,
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
        self.connections.take_back(&self.server, sender);
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        if self.sender.take().is_some() {
            self.connections.count(&self.server, |pool| pool.open -= 1);
            self.connections.begin(&self.server);
        }
    }
}

impl Connections {
    /// None yet.
    #[must_use]
    pub fn new(terms: Terms) -> Self {
        Self { terms, pools: Mutex::default(), addresses: Mutex::default(), turn: AtomicUsize::new(0) }
    }

    /// Look at a pool, or change it. Nothing that is a [`Connection`] may be dropped meanwhile: that takes the lock, too.
    fn count<T>(&self, server: &Server, task: impl FnOnce(&mut Pool) -> T) -> T {
        let mut pools = self.pools.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(pool) = pools.get_mut(server) {
            return task(pool);
        }
        task(pools.entry(server.clone()).or_default())
    }

    fn connection(self: &Arc<Self>, server: &Server, sender: Sender, is_used: bool) -> Connection {
        Connection { sender: Some(sender), server: server.clone(), connections: Arc::clone(self), is_used }
    }

    /// Wait for a connection, the first that is free or new.
    ///
    /// # Errors
    /// If none can be made, and there are no others.
    pub async fn get(self: &Arc<Self>, server: &Server) -> Result<Connection, HttpError> {
        let (waiting, mut answer) = oneshot::channel();
        let found = self.count(server, |pool| {
            let found = pool.take(self.terms.idle_timeout);
            if found.is_none() {
                pool.waiting.push_back(waiting);
            }
            found
        });
        if let Some(sender) = found {
            return Ok(self.connection(server, sender, true));
        }
        self.begin(server);
        loop {
            match timeout(PAUSE, &mut answer).await {
                Ok(answer) => return answer.unwrap_or_else(|_| Err(declined("no connection"))),
                // Perhaps the server takes more by now.
                Err(_) => self.begin(server),
            }
        }
    }

    /// Begin to make connections, as many as are waited for and may be.
    fn begin(self: &Arc<Self>, server: &Server) {
        let Ok(runtime) = runtime() else { return };
        while self.count(server, Pool::begin) {
            let (connections, server) = (Arc::clone(self), server.clone());
            runtime.spawn(async move {
                let made = connections.connected(&server).await;
                connections.made(&server, made);
            });
        }
    }

    /// Hand a new connection, or the error that prevented it, to the request that has waited longest.
    fn made(self: &Arc<Self>, server: &Server, made: Result<Sender, HttpError>) {
        match made {
            Ok(sender) => {
                self.count(server, |pool| {
                    pool.begun -= 1;
                    pool.open += 1;
                    pool.most_begun += 1;
                });
                self.hand_on(self.connection(server, sender, false));
            }
            Err(error) => {
                let may_wait = matches!(error.kind(), HttpErrorKind::Connect | HttpErrorKind::Timeout);
                let first = self.count(server, |pool| {
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
        self.begin(server);
    }

    fn take_back(self: &Arc<Self>, server: &Server, sender: Sender) {
        self.hand_on(self.connection(server, sender, true));
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
    }

    /// Return the request that waits for a connection; if none does, and the connection is good, keep it.
    fn next(&self, connection: &mut Connection) -> Option<Waiting> {
        let is_closed = connection.sender.as_ref().is_none_or(SendRequest::is_closed);
        if is_closed {
            return None;
        }
        let sender = &mut connection.sender;
        self.count(&connection.server, |pool| {
            let first = pool.first();
            if first.is_none()
                && self.terms.most_idle.is_none_or(|most| pool.idle.len() < most)
                && let Some(sender) = sender.take()
            {
                pool.idle.push((sender, Instant::now()));
            }
            first
        })
    }

    // -- making one ---------------------------------------------------------------------------

    async fn connected(&self, server: &Server) -> Result<Sender, HttpError> {
        match self.terms.connect_timeout {
            None => self.dial(server).await,
            Some(limit) => timeout(limit, self.dial(server)).await.unwrap_or_else(|_| Err(timed_out(SENDING))),
        }
    }

    /// Connect to a server, at one of its addresses after the other, beginning with another one each time.
    async fn dial(&self, server: &Server) -> Result<Sender, HttpError> {
        let connect = |error| failed(HttpErrorKind::Connect, SENDING, error);
        let addresses = self.addresses_of(server).await.map_err(connect)?;
        let first = self.turn.fetch_add(1, Ordering::Relaxed);
        let mut last = io::Error::new(io::ErrorKind::NotFound, "failed to lookup address information: none");
        for number in 0..addresses.len() {
            match TcpStream::connect(addresses[first.wrapping_add(number) % addresses.len()]).await {
                Ok(stream) => {
                    let _ = stream.set_nodelay(true);
                    return if server.is_secure { secured(server, stream).await } else { greeted(stream).await };
                }
                Err(error) => last = error,
            }
        }
        Err(connect(last))
    }

    async fn addresses_of(&self, server: &Server) -> io::Result<Arc<[SocketAddr]>> {
        let known = match self.addresses.lock() {
            Ok(mut all) => Arc::clone(all.entry(server.clone()).or_default()),
            Err(_) => Addresses::default(),
        };
        // Others that ask for them meanwhile wait for the same answer.
        let asked = Instant::now();
        let mut known = known.lock().await;
        let found = match &*known {
            Some((since, Ok(addresses))) if since.elapsed() < ADDRESSES_KEPT => Ok(Arc::clone(addresses)),
            Some((since, Err(reason))) if *since >= asked => Err(reason.clone()),
            _ => {
                let found = tokio::net::lookup_host((server.host(), server.port())).await;
                let found = found.map(Iterator::collect).map_err(|error| (error.kind(), error.to_string()));
                known.insert((Instant::now(), found)).1.clone()
            }
        };
        found.map_err(|(kind, text)| io::Error::new(kind, text))
    }
}

/// Speak HTTP over a connection.
async fn greeted<S>(stream: S) -> Result<Sender, HttpError>
where
    S: tokio::io::AsyncRead + tokio::io::AsyncWrite + Unpin + Send + 'static,
{
    let (sender, connection) =
        http1::handshake(TokioIo::new(stream)).await.map_err(|error| failed(HttpErrorKind::Connect, SENDING, error))?;
    tokio::spawn(async move {
        let _ = connection.await;
    });
    Ok(sender)
}

async fn secured(server: &Server, stream: TcpStream) -> Result<Sender, HttpError> {
    let config = tls().ok_or_else(|| declined("no certificates to trust"))?;
    let name =
        ServerName::try_from(server.host().to_owned()).map_err(|_| declined("a name that no certificate has"))?;
    match TlsConnector::from(config).connect(name, stream).await {
        Ok(stream) => greeted(stream).await,
        // obstore may trust what is not trusted here, and says what is wrong if it does not.
        Err(error) if error.get_ref().is_some_and(<dyn StdError + Send + Sync>::is::<rustls::Error>) => {
            Err(declined("no secure connection"))
        }
        Err(error) => Err(failed(HttpErrorKind::Connect, SENDING, error)),
    }
}

/// The certificates that the system trusts, read when a process first needs them.
fn tls() -> Option<Arc<ClientConfig>> {
    static CONFIG: OfProcess<ClientConfig> = OfProcess::new();
    CONFIG
        .get(|| {
            let mut roots = RootCertStore::empty();
            roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
            let builder = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()));
            let builder =
                builder.with_safe_default_protocol_versions().map_err(|error| Error::refused(error.to_string()))?;
            let mut config = builder.with_root_certificates(roots).with_no_client_auth();
            config.alpn_protocols = vec![b"http/1.1".to_vec()];
            Ok(config)
        })
        .ok()
}
