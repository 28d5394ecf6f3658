//! Stores of the crate `object_store`, set up as obstore has set up its own.

use std::error::Error as StdError;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use hyper::header::HeaderMap;
use object_store::aws::AmazonS3Builder;
use object_store::azure::MicrosoftAzureBuilder;
use object_store::client::{HttpConnector as _, HttpError};
use object_store::gcp::GoogleCloudStorageBuilder;
use object_store::http::HttpBuilder;
use object_store::{BackoffConfig, ClientOptions, ObjectStore, RetryConfig};
use tokio::sync::OnceCell;

use crate::error::{Error, Result};
use crate::remote::answers::{Chunk, Headed, Indexed, Sharded};
use crate::remote::copies::Copier;
use crate::remote::failures::{Answered, Declined};
use crate::remote::flights::{Flights, Shuttles};
use crate::remote::process::OfProcess;
use crate::remote::transport::{Gate, Transport};

/// The kind of a store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cloud {
    /// S3, and servers with the same protocol.
    S3,
    /// Google Cloud Storage.
    Google,
    /// Azure Blob Storage.
    Azure,
    /// A web server.
    Http,
}

/// How often, and how long, a request is sent again.
#[derive(Clone, Debug)]
pub struct Retries {
    /// How often.
    pub max_retries: usize,
    /// For so long.
    pub retry_timeout: Duration,
    /// The first pause.
    pub init_backoff: Duration,
    /// The longest pause.
    pub max_backoff: Duration,
    /// What pauses grow by.
    pub base: f64,
}

/// All that makes a store.
#[derive(Clone, Debug)]
pub struct Setup {
    /// Of which kind it is.
    pub cloud: Cloud,
    /// Of a web server: where it is.
    pub url: String,
    /// Options of the cloud, by name.
    pub config: Vec<(String, String)>,
    /// Options of its client, by name.
    pub options: Vec<(String, String)>,
    /// Headers of each request.
    pub headers: HeaderMap,
    /// Repetitions; None: the default of the crate.
    pub retries: Option<Retries>,
    /// How many requests may be under way at once.
    pub concurrency: usize,
    /// Texts in an answer "not found" that mean that the bucket or container is missing, and not only the key.
    pub missing_places: Vec<String>,
}

/// A store, connected again by each process.
#[derive(Debug)]
pub struct Client {
    setup: Setup,
    live: OfProcess<Live>,
}

/// A store as one process has it.
#[derive(Debug)]
pub struct Live {
    /// The store.
    pub store: Arc<dyn ObjectStore>,
    /// Limits how many requests are under way at once.
    pub gate: Arc<Gate>,
    /// The server has once sent the whole value when it was asked for a part. So it is not asked for parts any more.
    pub ignores_ranges: AtomicBool,
    /// The server has once sent neither a strong `ETag` nor a version. So compressed chunks are fetched by one request, because
    /// parts could be of different versions.
    pub lacks_versions: AtomicBool,
    /// The server needs something that only obstore can do. So obstore sends all requests.
    pub is_declined: AtomicBool,
    /// The server understands requests for the last bytes of a value.
    pub knows_suffixes: bool,
    /// How many requests may be under way at once.
    pub most_at_once: usize,
    /// Requests for chunks, which readers share.
    pub chunks: Flights<Chunk>,
    /// Requests for indexes of shards, which readers share.
    pub indexes: Flights<Indexed>,
    /// Requests for the beginnings of chunks, which readers share.
    pub heads: Flights<Headed>,
    /// Requests for whole shards, which readers share who keep indexes.
    pub shards: Shuttles<Sharded>,
    /// Set once the server was seen to obey conditions.
    pub conditions: OnceCell<()>,
    /// What asks the server to copy parts of values; None if it cannot.
    pub copier: Option<Copier>,
    /// A request is not sent again before this time has passed.
    pub soonest_repetition: Duration,
    missing_places: Vec<String>,
}

impl Client {
    /// A store that is made when it is first needed.
    #[must_use]
    pub fn new(setup: Setup) -> Self {
        Self { setup, live: OfProcess::new() }
    }

    /// The store, as this process has it.
    ///
    /// # Errors
    /// If it cannot be made so.
    pub fn live(&self) -> Result<Arc<Live>> {
        self.live.get(|| self.setup.build())
    }
}

fn refused(error: impl std::fmt::Display) -> Error {
    Error::refused(error.to_string())
}

impl Setup {
    fn build(&self) -> Result<Live> {
        let gate = Arc::new(Gate::new(self.concurrency));
        let (store, copier) = self.store(Transport::new(self.headers.clone(), Arc::clone(&gate)))?;
        Ok(Live {
            store,
            copier,
            gate,
            ignores_ranges: AtomicBool::new(false),
            lacks_versions: AtomicBool::new(false),
            is_declined: AtomicBool::new(false),
            knows_suffixes: self.cloud != Cloud::Azure,
            most_at_once: self.concurrency,
            chunks: Flights::default(),
            indexes: Flights::default(),
            conditions: OnceCell::new(),
            soonest_repetition: self.retries().backoff.init_backoff,
            heads: Flights::default(),
            shards: Shuttles::default(),
            missing_places: self.missing_places.clone(),
        })
    }

    fn store(&self, transport: Transport) -> Result<(Arc<dyn ObjectStore>, Option<Copier>)> {
        let (options, retries) = (self.client_options()?, self.retries());
        let store: Arc<dyn ObjectStore> = match self.cloud {
            Cloud::S3 => {
                let mut builder = AmazonS3Builder::from_env();
                for (name, value) in &self.config {
                    builder = builder.with_config(name.parse().map_err(refused)?, value);
                }
                let http = transport.connect(&options).map_err(refused)?;
                let builder = builder.with_client_options(options).with_retry(retries.clone());
                let builder = builder.with_http_connector(transport);
                let store = builder.clone().build().map_err(refused)?;
                let copier = Copier::new(&builder, &store, http, retries);
                return Ok((Arc::new(store), copier));
            }
            Cloud::Google => {
                let mut builder = GoogleCloudStorageBuilder::from_env();
                for (name, value) in &self.config {
                    builder = builder.with_config(name.parse().map_err(refused)?, value);
                }
                let builder = builder.with_client_options(options).with_retry(retries).with_http_connector(transport);
                Arc::new(builder.build().map_err(refused)?)
            }
            Cloud::Azure => {
                let mut builder = MicrosoftAzureBuilder::from_env();
                for (name, value) in &self.config {
                    builder = builder.with_config(name.parse().map_err(refused)?, value);
                }
                let builder = builder.with_client_options(options).with_retry(retries).with_http_connector(transport);
                Arc::new(builder.build().map_err(refused)?)
            }
            Cloud::Http => {
                let builder = HttpBuilder::new().with_url(&self.url).with_client_options(options);
                Arc::new(builder.with_retry(retries).with_http_connector(transport).build().map_err(refused)?)
            }
        };
        Ok((store, None))
    }

    fn client_options(&self) -> Result<ClientOptions> {
        // Without any options, those of the environment apply.
        self.options.iter().try_fold(ClientOptions::new(), |options, (name, value)| {
            Ok(options.with_config(name.parse().map_err(refused)?, value))
        })
    }

    fn retries(&self) -> RetryConfig {
        let Some(retries) = &self.retries else { return RetryConfig::default() };
        RetryConfig {
            backoff: BackoffConfig {
                init_backoff: retries.init_backoff,
                max_backoff: retries.max_backoff,
                base: retries.base,
            },
            max_retries: retries.max_retries,
            retry_timeout: retries.retry_timeout,
        }
    }
}

impl Live {
    /// Whether the text of an error says that the place of all keys is missing.
    #[must_use]
    pub fn is_without_place(&self, text: &str) -> bool {
        self.missing_places.iter().any(|sign| text.contains(sign))
    }

    /// Translate an error; return None if it says that there is no such key.
    pub fn meaning(&self, error: &object_store::Error) -> Option<Error> {
        if is_by::<Declined>(error) {
            self.is_declined.store(true, Ordering::Relaxed);
            return Some(refused(error));
        }
        let text = || format!("{error}\n\nDebug source:\n{error:#?}");
        let kind = match error {
            object_store::Error::NotFound { .. } => {
                let text = text();
                // The crate reports 405, "method not allowed", as 404.
                let is_other = text.contains("status code: 405") || self.is_without_place(&text);
                return is_other.then(|| refused("not the key is missing"));
            }
            object_store::Error::PermissionDenied { .. } => "PermissionDeniedError",
            object_store::Error::Unauthenticated { .. } => "UnauthenticatedError",
            object_store::Error::Generic { .. } if is_final(error) => "GenericError",
            _ => return Some(refused(error)),
        };
        Some(Error::foreign(Box::new(Answered { kind, text: text() })))
    }
}

/// Whether an error, or one of its causes, is of the type `T`.
fn is_by<T: StdError + 'static>(error: &(dyn StdError + 'static)) -> bool {
    error.is::<T>() || error.source().is_some_and(is_by::<T>)
}

/// Whether obstore would get the same error, after as long a time.
fn is_final(error: &(dyn StdError + 'static)) -> bool {
    let is_http = is_by::<HttpError>(error);
    let text = error.to_string();
    let is_status = text.contains("non-2xx status code: 4") || text.contains("non-2xx status code: 5");
    // 416 is the answer to a range outside the value. Python then asks in another way.
    is_http || (is_status && !text.contains("status code: 416"))
}
