//! Requests over HTTP/1.1, for the crate `object_store`.
//!
//! A connection serves one request at a time; the one used last is used first. What only the client of obstore can do
//! (to follow redirects, to trust certificates of the system's own ways) is declined: see [`Declined`].

use std::collections::HashMap;
use std::error::Error as StdError;
use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use bytes::Bytes;
use http_body::{Body as _, Frame, SizeHint};
use hyper::body::Incoming;
use hyper::client::conn::http1::{self, SendRequest};
use hyper::header::{ACCEPT, HOST, HeaderMap, HeaderValue, LOCATION, USER_AGENT};
use hyper::http::uri::{Authority, PathAndQuery, Scheme};
use hyper::{StatusCode, Uri};
use hyper_util::rt::TokioIo;
use object_store::client::{
    HttpClient, HttpConnector, HttpError, HttpErrorKind, HttpRequest, HttpRequestBody, HttpResponse, HttpResponseBody,
    HttpService,
};
use object_store::{ClientConfigKey, ClientOptions};
use tokio::net::TcpStream;
use tokio::sync::Semaphore;
use tokio::time::{Sleep, sleep_until, timeout};
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::ServerName;
use tokio_rustls::rustls::{ClientConfig, RootCertStore};

/// What the client of obstore says it is.
const AGENT: &str = "object_store/0.14.2";
/// How long the addresses of a host are remembered.
const ADDRESSES_KEPT: Duration = Duration::from_secs(10);
/// How long an unused connection is kept by default.
const IDLE: Duration = Duration::from_secs(90);
/// How long fewer requests are sent after a server has asked for that.
const PAUSE: Duration = Duration::from_secs(1);
/// As many requests are sent at once in any case.
const LEAST_AT_ONCE: usize = 8;

/// Why a request was not sent, or not followed up: obstore has to send it.
#[derive(Debug)]
pub struct Declined(&'static str);

impl fmt::Display for Declined {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.0)
    }
}

impl StdError for Declined {}

fn declined(why: &'static str) -> HttpError {
    HttpError::new(HttpErrorKind::Unknown, Declined(why))
}

/// What went wrong, in the words of the client of obstore.
#[derive(Debug)]
struct Failed {
    what: &'static str,
    source: Box<dyn StdError + Send + Sync>,
}

impl fmt::Display for Failed {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.what)
    }
}

impl StdError for Failed {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        Some(self.source.as_ref())
    }
}

const SENDING: &str = "error sending request";
const RECEIVING: &str = "request or response body error";

fn failed(kind: HttpErrorKind, what: &'static str, source: impl Into<Box<dyn StdError + Send + Sync>>) -> HttpError {
    HttpError::new(kind, Failed { what, source: source.into() })
}

fn timed_out(what: &'static str) -> HttpError {
    failed(HttpErrorKind::Timeout, what, io::Error::from(io::ErrorKind::TimedOut))
}

/// Of what kind an error of hyper is: it decides whether the request is sent again.
fn kind_of(error: &hyper::Error) -> HttpErrorKind {
    if error.is_closed() || error.is_incomplete_message() || error.is_body_write_aborted() {
        return HttpErrorKind::Request;
    }
    if error.is_timeout() {
        return HttpErrorKind::Timeout;
    }
    let mut source = error.source();
    while let Some(error) = source {
        if let Some(error) = error.downcast_ref::<io::Error>() {
            match error.kind() {
                io::ErrorKind::TimedOut => return HttpErrorKind::Timeout,
                io::ErrorKind::ConnectionAborted
                | io::ErrorKind::ConnectionReset
                | io::ErrorKind::BrokenPipe
                | io::ErrorKind::UnexpectedEof => return HttpErrorKind::Interrupted,
                _ => {}
            }
        }
        source = error.source();
    }
    HttpErrorKind::Unknown
}

// -- how many requests are on their way ---------------------------------------------------

/// Lets so many requests pass at a time, and fewer while the server asks for that.
#[derive(Debug)]
pub struct Gate {
    permits: Arc<Semaphore>,
    most: usize,
    /// How many are taken away just now.
    shut: Arc<AtomicUsize>,
}

impl Gate {
    /// A gate for `most` requests at once.
    #[must_use]
    pub fn new(most: usize) -> Self {
        let most = most.clamp(1, Semaphore::MAX_PERMITS);
        Self { permits: Arc::new(Semaphore::new(most)), most, shut: Arc::default() }
    }

    /// Wait until one more request may be sent; it counts until what is returned is dropped.
    pub async fn pass(&self) -> Option<tokio::sync::SemaphorePermit<'_>> {
        self.permits.acquire().await.ok()
    }

    /// Let only half as many requests pass for a while.
    fn narrow(&self) {
        let open = self.most.saturating_sub(self.shut.load(Ordering::Relaxed));
        let fewer = open / 2;
        if fewer < LEAST_AT_ONCE {
            return;
        }
        // Those that have been sent already complain as well: one complaint of them all is enough.
        if self.shut.fetch_add(fewer, Ordering::Relaxed) != self.most - open {
            self.shut.fetch_sub(fewer, Ordering::Relaxed);
            return;
        }
        let (permits, shut) = (Arc::clone(&self.permits), Arc::clone(&self.shut));
        tokio::spawn(async move {
            let taken = permits.acquire_many(u32::try_from(fewer).unwrap_or(u32::MAX)).await;
            tokio::time::sleep(PAUSE).await;
            shut.fetch_sub(fewer, Ordering::Relaxed);
            drop(taken);
        });
    }
}

// -- settings -----------------------------------------------------------------------------

/// What all clients of one store share.
#[derive(Clone, Debug)]
pub struct Transport {
    headers: HeaderMap,
    gate: Arc<Gate>,
}

impl Transport {
    /// Send `headers` along with each request, unless it has them.
    #[must_use]
    pub fn new(mut headers: HeaderMap, gate: Arc<Gate>) -> Self {
        headers.entry(ACCEPT).or_insert(HeaderValue::from_static("*/*"));
        headers.entry(USER_AGENT).or_insert(HeaderValue::from_static(AGENT));
        Self { headers, gate }
    }
}

impl HttpConnector for Transport {
    fn connect(&self, options: &ClientOptions) -> object_store::Result<HttpClient> {
        let said = |key| options.get_config_value(&key);
        let duration = |key| said(key).and_then(|text| humantime::parse_duration(&text).ok());
        let is_true = |key| said(key).is_some_and(|text| text == "true");
        let mut headers = self.headers.clone();
        if let Some(agent) = said(ClientConfigKey::UserAgent).and_then(|text| text.try_into().ok()) {
            headers.insert(USER_AGENT, agent);
        }
        Ok(HttpClient::new(Client(Arc::new(Shared {
            headers,
            gate: Arc::clone(&self.gate),
            allow_http: is_true(ClientConfigKey::AllowHttp),
            connect_timeout: duration(ClientConfigKey::ConnectTimeout),
            read_timeout: duration(ClientConfigKey::ReadTimeout),
            timeout: duration(ClientConfigKey::Timeout),
            idle_timeout: duration(ClientConfigKey::PoolIdleTimeout).unwrap_or(IDLE),
            most_idle: said(ClientConfigKey::PoolMaxIdlePerHost).and_then(|text| text.parse().ok()),
            idle: Mutex::default(),
            addresses: Mutex::default(),
            turn: AtomicUsize::new(0),
        }))))
    }
}

// -- the client ---------------------------------------------------------------------------

#[derive(Clone, Debug)]
struct Client(Arc<Shared>);

/// A server.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Server {
    is_secure: bool,
    authority: Authority,
}

impl Server {
    fn port(&self) -> u16 {
        self.authority.port_u16().unwrap_or(if self.is_secure { 443 } else { 80 })
    }
}

/// An unused connection, and since when it is.
type Idle = (SendRequest<HttpRequestBody>, Instant);
/// The addresses of a server, and since when they are known.
type Addresses = Arc<tokio::sync::Mutex<Option<(Instant, Arc<[SocketAddr]>)>>>;

#[derive(Debug)]
struct Shared {
    headers: HeaderMap,
    gate: Arc<Gate>,
    allow_http: bool,
    connect_timeout: Option<Duration>,
    read_timeout: Option<Duration>,
    timeout: Option<Duration>,
    idle_timeout: Duration,
    most_idle: Option<usize>,
    idle: Mutex<HashMap<Server, Vec<Idle>>>,
    addresses: Mutex<HashMap<Server, Addresses>>,
    turn: AtomicUsize,
}

impl Shared {
    /// The connection used last, if there is one.
    fn take(&self, server: &Server) -> Option<SendRequest<HttpRequestBody>> {
        let mut all = self.idle.lock().ok()?;
        let idle = all.get_mut(server)?;
        while let Some((sender, since)) = idle.pop() {
            if since.elapsed() > self.idle_timeout {
                idle.clear();
            } else if !sender.is_closed() {
                return Some(sender);
            }
        }
        None
    }

    fn give_back(&self, server: &Server, sender: SendRequest<HttpRequestBody>) {
        if sender.is_closed() {
            return;
        }
        let Ok(mut all) = self.idle.lock() else { return };
        if !all.contains_key(server) {
            all.insert(server.clone(), Vec::new());
        }
        let Some(idle) = all.get_mut(server) else { return };
        if self.most_idle.is_none_or(|most| idle.len() < most) {
            idle.push((sender, Instant::now()));
        }
    }

    async fn addresses_of(&self, server: &Server) -> io::Result<Arc<[SocketAddr]>> {
        let known = match self.addresses.lock() {
            Ok(mut all) => Arc::clone(all.entry(server.clone()).or_default()),
            Err(_) => Addresses::default(),
        };
        // Others that ask for them wait for the same answer.
        let mut known = known.lock().await;
        if let Some((since, addresses)) = &*known
            && since.elapsed() < ADDRESSES_KEPT
        {
            return Ok(Arc::clone(addresses));
        }
        let host = server.authority.host();
        let host = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host);
        let found: Arc<[SocketAddr]> = tokio::net::lookup_host((host, server.port())).await?.collect();
        *known = Some((Instant::now(), Arc::clone(&found)));
        Ok(found)
    }

    /// Connect to a server, at one of its addresses after the other, beginning with another one each time.
    async fn dial(&self, server: &Server) -> Result<SendRequest<HttpRequestBody>, HttpError> {
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

    async fn connected(&self, server: &Server) -> Result<SendRequest<HttpRequestBody>, HttpError> {
        match self.connect_timeout {
            None => self.dial(server).await,
            Some(limit) => timeout(limit, self.dial(server)).await.unwrap_or_else(|_| Err(timed_out(SENDING))),
        }
    }
}

/// Speak HTTP over a connection.
async fn greeted<S>(stream: S) -> Result<SendRequest<HttpRequestBody>, HttpError>
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

async fn secured(server: &Server, stream: TcpStream) -> Result<SendRequest<HttpRequestBody>, HttpError> {
    let config = tls().ok_or_else(|| declined("no certificates to trust"))?;
    let host = server.authority.host();
    let host = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host);
    let name = ServerName::try_from(host.to_owned()).map_err(|_| declined("a name that no certificate has"))?;
    // obstore may trust what is not trusted here, and says what is wrong if it does not.
    let stream =
        TlsConnector::from(config).connect(name, stream).await.map_err(|_| declined("no secure connection"))?;
    greeted(stream).await
}

/// The certificates that the system trusts, read when first needed.
fn tls() -> Option<Arc<ClientConfig>> {
    static CONFIG: OnceLock<Option<Arc<ClientConfig>>> = OnceLock::new();
    CONFIG
        .get_or_init(|| {
            let mut roots = RootCertStore::empty();
            roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
            let builder = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()));
            let mut config =
                builder.with_safe_default_protocol_versions().ok()?.with_root_certificates(roots).with_no_client_auth();
            config.alpn_protocols = vec![b"http/1.1".to_vec()];
            Some(Arc::new(config))
        })
        .clone()
}

/// Await something until `limit` has passed, and not longer than until `deadline`.
async fn within<T>(
    limit: Option<Duration>,
    deadline: Option<Instant>,
    work: impl Future<Output = T>,
) -> Result<T, HttpError> {
    match soonest(limit, deadline) {
        None => Ok(work.await),
        Some(end) => tokio::time::timeout_at(end.into(), work).await.map_err(|_| timed_out(SENDING)),
    }
}

fn soonest(limit: Option<Duration>, deadline: Option<Instant>) -> Option<Instant> {
    let end = limit.map(|limit| Instant::now() + limit);
    end.into_iter().chain(deadline).min()
}

#[async_trait::async_trait]
impl HttpService for Client {
    async fn call(&self, mut request: HttpRequest) -> Result<HttpResponse, HttpError> {
        let shared = &self.0;
        let uri = request.uri();
        let (Some(scheme), Some(authority)) = (uri.scheme(), uri.authority()) else {
            return Err(declined("no URL"));
        };
        let is_secure = *scheme == Scheme::HTTPS;
        if !is_secure && (*scheme != Scheme::HTTP || !shared.allow_http) {
            return Err(declined("plain http"));
        }
        let server = Server { is_secure, authority: authority.clone() };
        let path = uri.path_and_query().cloned().unwrap_or_else(|| PathAndQuery::from_static("/"));
        for (name, value) in &shared.headers {
            request.headers_mut().entry(name).or_insert_with(|| value.clone());
        }
        let host = authority_of(&server).ok_or_else(|| declined("a host that no header can name"))?;
        request.headers_mut().entry(HOST).or_insert(host);
        *request.uri_mut() = Uri::from(path);
        let deadline = shared.timeout.map(|timeout| Instant::now() + timeout);
        loop {
            let (mut sender, is_used) = match shared.take(&server) {
                Some(sender) => (sender, true),
                None => (shared.connected(&server).await?, false),
            };
            if is_used && !sender.is_ready() && sender.ready().await.is_err() {
                continue;
            }
            match within(shared.read_timeout, deadline, sender.try_send_request(request)).await? {
                Ok(response) => return self.answered(response, sender, server, deadline),
                Err(mut error) => match error.take_message() {
                    // The server had closed it, and nothing was sent.
                    Some(unsent) if is_used => request = unsent,
                    _ => {
                        let error = error.into_error();
                        return Err(failed(kind_of(&error), SENDING, error));
                    }
                },
            }
        }
    }
}

fn authority_of(server: &Server) -> Option<HeaderValue> {
    let text = server.authority.as_str();
    HeaderValue::from_str(text.rsplit_once('@').map_or(text, |(_, host)| host)).ok()
}

impl Client {
    fn answered(
        &self,
        response: hyper::Response<Incoming>,
        sender: SendRequest<HttpRequestBody>,
        server: Server,
        deadline: Option<Instant>,
    ) -> Result<HttpResponse, HttpError> {
        let (parts, body) = response.into_parts();
        if parts.status.is_redirection()
            && parts.status != StatusCode::NOT_MODIFIED
            && parts.headers.contains_key(LOCATION)
        {
            return Err(declined("a redirect"));
        }
        if matches!(parts.status, StatusCode::TOO_MANY_REQUESTS | StatusCode::SERVICE_UNAVAILABLE) {
            self.0.gate.narrow();
        }
        let mut body =
            Body { incoming: body, sender: Some((sender, server)), shared: Arc::clone(&self.0), deadline, alarm: None };
        if body.incoming.is_end_stream() {
            body.give_back();
        }
        Ok(HttpResponse::from_parts(parts, HttpResponseBody::new(body)))
    }
}

/// The body of an answer. When it ends, its connection is free again.
struct Body {
    incoming: Incoming,
    sender: Option<(SendRequest<HttpRequestBody>, Server)>,
    shared: Arc<Shared>,
    deadline: Option<Instant>,
    alarm: Option<Pin<Box<Sleep>>>,
}

impl Body {
    fn give_back(&mut self) {
        if let Some((sender, server)) = self.sender.take() {
            self.shared.give_back(&server, sender);
        }
    }

    /// Whether nothing has come for too long.
    fn is_late(&mut self, context: &mut Context<'_>) -> bool {
        if self.alarm.is_none() {
            let end = soonest(self.shared.read_timeout, self.deadline);
            self.alarm = end.map(|end| Box::pin(sleep_until(end.into())));
        }
        self.alarm.as_mut().is_some_and(|alarm| alarm.as_mut().poll(context).is_ready())
    }
}

impl http_body::Body for Body {
    type Data = Bytes;
    type Error = HttpError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, HttpError>>> {
        let frame = match Pin::new(&mut self.incoming).poll_frame(context) {
            Poll::Pending if self.is_late(context) => {
                self.sender = None;
                return Poll::Ready(Some(Err(timed_out(RECEIVING))));
            }
            Poll::Pending => return Poll::Pending,
            Poll::Ready(frame) => frame,
        };
        self.alarm = None;
        if frame.is_none() || self.incoming.is_end_stream() {
            self.give_back();
        }
        Poll::Ready(frame.map(|frame| {
            frame.map_err(|error| {
                self.sender = None;
                failed(kind_of(&error), RECEIVING, error)
            })
        }))
    }

    fn is_end_stream(&self) -> bool {
        self.incoming.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.incoming.size_hint()
    }
}
