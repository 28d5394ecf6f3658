//! New connections to servers: their addresses, TLS, and the begin of HTTP.

use std::collections::HashMap;
use std::error::Error as StdError;
use std::io;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use hyper::client::conn::http1::{self, SendRequest};
use hyper::http::uri::Authority;
use hyper_util::rt::TokioIo;
use object_store::client::{HttpError, HttpErrorKind, HttpRequestBody};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::ServerName;
use tokio_rustls::rustls::{self, ClientConfig, RootCertStore};

use crate::error::Error;
use crate::remote::failures::{SENDING, declined, failed};
use crate::remote::process::OfProcess;
use crate::threads::locked;

/// How long the addresses of a host are remembered.
const ADDRESSES_KEPT: Duration = Duration::from_secs(10);

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

/// What sends requests over a connection.
pub type Sender = SendRequest<HttpRequestBody>;
/// The addresses of a server or why they are not known, and since when.
type Found = Result<Arc<[SocketAddr]>, (io::ErrorKind, String)>;
type Addresses = Arc<tokio::sync::Mutex<Option<(Instant, Found)>>>;

/// Makes connections, and remembers the addresses of servers for a while.
#[derive(Debug, Default)]
pub struct Dialler {
    addresses: Mutex<HashMap<Server, Addresses>>,
    turn: AtomicUsize,
}

impl Dialler {
    /// Connect to a server, at one of its addresses after the other, beginning with another one each time.
    ///
    /// # Errors
    /// If it does not answer at any of them, or does not speak TLS as it must.
    pub async fn dial(&self, server: &Server) -> Result<Sender, HttpError> {
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

    /// Forget addresses that have been known for too long.
    pub fn forget(&self) {
        locked(&self.addresses).retain(|_, known| {
            known
                .try_lock()
                .map_or(true, |known| known.as_ref().is_none_or(|(since, _)| since.elapsed() < ADDRESSES_KEPT))
        });
    }

    async fn addresses_of(&self, server: &Server) -> io::Result<Arc<[SocketAddr]>> {
        let known = Arc::clone(locked(&self.addresses).entry(server.clone()).or_default());
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
