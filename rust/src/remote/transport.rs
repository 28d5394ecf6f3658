//! Requests over HTTP/1.1, for the crate `object_store`.
//!
//! A connection serves one request at a time. What only the client of obstore can do
//! (to follow redirects, to trust certificates of the system's own ways) is declined: see [`crate::remote::failures::Declined`].

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use bytes::Bytes;
use http_body::{Body as _, Frame, SizeHint};
use hyper::body::Incoming;
use hyper::header::{ACCEPT, HOST, HeaderMap, HeaderValue, LOCATION, USER_AGENT};
use hyper::http::uri::{PathAndQuery, Scheme};
use hyper::{StatusCode, Uri};
use object_store::client::{
    HttpClient, HttpConnector, HttpError, HttpRequest, HttpResponse, HttpResponseBody, HttpService,
};
use object_store::{ClientConfigKey, ClientOptions};
use tokio::sync::Semaphore;
use tokio::time::{Sleep, sleep_until, timeout, timeout_at};

use crate::remote::connections::{Connection, Connections, Route, Terms};
use crate::remote::dialler::Server;
use crate::remote::failures::{RECEIVING, SENDING, declined, failed, kind_of, timed_out};

/// What the client of obstore says it is.
const AGENT: &str = "object_store/0.14.2";
/// How soon a connection that was given back must be good for the next request.
const READY: Duration = Duration::from_secs(1);
/// How long fewer requests are sent after a server has asked for that.
const PAUSE: Duration = Duration::from_secs(1);
/// Bytes of what a server says of an error.
const LONGEST_EXCUSE: usize = 64 * 1024;
/// As many requests are sent at once in any case.
const LEAST_AT_ONCE: usize = 8;

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
            read_timeout: duration(ClientConfigKey::ReadTimeout),
            timeout: duration(ClientConfigKey::Timeout),
            terms: Terms {
                connect_timeout: duration(ClientConfigKey::ConnectTimeout),
                idle_timeout: duration(ClientConfigKey::PoolIdleTimeout),
                most_idle: said(ClientConfigKey::PoolMaxIdlePerHost).and_then(|text| text.parse().ok()),
            },
            connections: Connections::shared()
                .map_err(|error| object_store::Error::Generic { store: "HTTP", source: error.message.into() })?,
        }))))
    }
}

// -- the client ---------------------------------------------------------------------------

#[derive(Clone, Debug)]
struct Client(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    headers: HeaderMap,
    gate: Arc<Gate>,
    allow_http: bool,
    read_timeout: Option<Duration>,
    timeout: Option<Duration>,
    terms: Terms,
    connections: Arc<Connections>,
}

/// Await something until `limit` has passed, and not longer than until `deadline`.
async fn within<T>(
    limit: Option<Duration>,
    deadline: Option<Instant>,
    work: impl Future<Output = T>,
) -> Result<T, HttpError> {
    match soonest(limit, deadline) {
        None => Ok(work.await),
        Some(end) => timeout_at(end.into(), work).await.map_err(|_| timed_out(SENDING)),
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
        let route = Route { server: Server { is_secure, authority: authority.clone() }, terms: shared.terms };
        let path = uri.path_and_query().cloned().unwrap_or_else(|| PathAndQuery::from_static("/"));
        for (name, value) in &shared.headers {
            request.headers_mut().entry(name).or_insert_with(|| value.clone());
        }
        let host = authority_of(&route.server).ok_or_else(|| declined("a host that no header can name"))?;
        request.headers_mut().entry(HOST).or_insert(host);
        *request.uri_mut() = Uri::from(path);
        let deadline = shared.timeout.map(|timeout| Instant::now() + timeout);
        loop {
            let mut connection = within(None, deadline, shared.connections.get(&route)).await??;
            let is_used = connection.is_used;
            let Some(sender) = connection.sender() else { continue };
            // A server may have answered before it has read the whole of what was sent before, and never read the rest.
            if is_used && !sender.is_ready() && !matches!(timeout(READY, sender.ready()).await, Ok(Ok(()))) {
                continue;
            }
            match within(shared.read_timeout, deadline, sender.try_send_request(request)).await? {
                Ok(response) => return self.answered(response, connection, deadline),
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
        connection: Connection,
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
        let most = if parts.status.is_success() { usize::MAX } else { LONGEST_EXCUSE };
        let mut body = Body {
            incoming: body,
            connection: Some(connection),
            read_timeout: self.0.read_timeout,
            deadline,
            alarm: None,
            most,
        };
        if body.incoming.is_end_stream() {
            body.give_back();
        }
        Ok(HttpResponse::from_parts(parts, HttpResponseBody::new(body)))
    }
}

/// The body of an answer. When it ends, its connection is free again.
struct Body {
    incoming: Incoming,
    connection: Option<Connection>,
    read_timeout: Option<Duration>,
    deadline: Option<Instant>,
    alarm: Option<Pin<Box<Sleep>>>,
    /// How much more is listened to.
    most: usize,
}

impl Body {
    fn give_back(&mut self) {
        if let Some(connection) = self.connection.take() {
            connection.give_back();
        }
    }

    /// Whether nothing has come for too long.
    fn is_late(&mut self, context: &mut Context<'_>) -> bool {
        if self.alarm.is_none() {
            let end = soonest(self.read_timeout, self.deadline);
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
                self.connection = None;
                return Poll::Ready(Some(Err(timed_out(RECEIVING))));
            }
            Poll::Pending => return Poll::Pending,
            Poll::Ready(frame) => frame,
        };
        self.alarm = None;
        if let Some(Ok(frame)) = &frame {
            self.most = self.most.saturating_sub(frame.data_ref().map_or(0, Bytes::len));
            if self.most == 0 {
                self.connection = None;
                return Poll::Ready(None);
            }
        }
        if frame.is_none() || self.incoming.is_end_stream() {
            self.give_back();
        }
        Poll::Ready(frame.map(|frame| {
            frame.map_err(|error| {
                self.connection = None;
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
