//! Values that keep their beginning: the server copies it from the old value, and only what follows is sent.
//!
//! S3 makes an object of parts, and a part can be a range of another object (`UploadPartCopy`). Google's servers compose
//! objects, and Azure's take blocks from URLs; what they need would be another [`Copier`]. A store that has none stores
//! values as a whole, as does one whose server turns out not to know such requests: nothing here is an error.
//!
//! The crate sends what it has requests for, and signs URLs for the two that it lacks: a part that is a copy, and the
//! completion of an upload on a condition.

use std::fmt::Write as _;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use bytes::Bytes;
use futures_util::StreamExt;
use futures_util::future::join_all;
use hyper::header::{HeaderMap, HeaderName, HeaderValue, IF_MATCH};
use hyper::{Method, Request, StatusCode};
use object_store::aws::{AmazonS3, AmazonS3Builder, AmazonS3ConfigKey};
use object_store::client::HttpClient;
use object_store::multipart::MultipartStore;
use object_store::path::Path;
use object_store::signer::{SignedUrlOptions, Signer};
use object_store::{ObjectMeta, PutMultipartOptions, RetryConfig};
use tokio::sync::Semaphore;

use crate::error::Result;
use crate::remote::answers::strong;
use crate::remote::change::{NEVER, Put, mark, marked, same};
use crate::remote::fetch::Place;
use crate::remote::process::runtime;

/// A value is made with its old beginning only if that has at least so many bytes: S3 takes no smaller part but the last one.
pub const LEAST_COPIED: u64 = 5 * 1024 * 1024;
/// Larger beginnings are copied in parts of about this number of bytes, as servers copy parts at the same time.
const COPIED_AT_ONCE: u64 = 64 * 1024 * 1024;
/// S3 takes no more parts of an object.
const MOST_PARTS: u64 = 10_000;
/// What follows the beginning is sent in parts of this number of bytes.
const SENT_AT_ONCE: usize = 8 * 1024 * 1024;
/// As many parts of a value are copied at the same time.
const PARTS_AT_ONCE: usize = 4;
/// A request is sent again no more often than this: if it fails, the value is stored in another way, with more patience.
const MOST_RETRIES: usize = 3;
/// A server that has never made a value in this way is believed so often that another writer was faster.
const MOST_CONFLICTS: usize = 16;
/// A signature is good for so long.
const SIGNED_FOR: Duration = Duration::from_secs(900);
/// Longest answer: a list of all parts.
const LONGEST_ANSWER: usize = 8 * 1024 * 1024;

/// The option of a key with which the server encrypts, and which comes with each request.
const OWN_KEY: &str = "aws_sse_customer_key_base64";

/// Seconds for which a server is not asked again that failed, and of which it is not known whether it is able.
const REST: u64 = 30;
/// Errors of requests of any kind, which say nothing of copies: credentials and clocks, connections, and servers that are busy.
const PASSING: [&str; 11] = [
    "ExpiredToken",
    "InvalidToken",
    "InvalidAccessKeyId",
    "TokenRefreshRequired",
    "RequestTimeTooSkewed",
    "RequestTimeout",
    "IncompleteBody",
    "SlowDown",
    "Throttling",
    "InternalError",
    "ServiceUnavailable",
];

/// What is known of a server.
const UNKNOWN: u8 = 0;
const ABLE: u8 = 1;
const UNABLE: u8 = 2;

/// What asks a server to copy parts of values.
#[derive(Debug)]
pub struct Copier {
    store: AmazonS3,
    http: HttpClient,
    /// The bucket, as sources of copies name it.
    bucket: String,
    retries: RetryConfig,
    known: AtomicU8,
    /// How often another writer seemed to be faster before anything was made.
    conflicts: AtomicUsize,
    begun: Instant,
    /// Until how many seconds after the beginning nothing is tried, as it did not work, and never has.
    rests_until: AtomicU64,
}

/// Why a value was not made in this way.
enum Stop {
    /// Another writer was faster.
    Conflict,
    /// The server does not know how, or does not let us: it need not be asked again.
    Unable,
    /// It did not work this time.
    Failed,
}

/// An answer: the status, the headers, the body; and whether the request was sent before, and may have been carried out.
struct Answer {
    status: StatusCode,
    headers: HeaderMap,
    body: String,
    is_repeated: bool,
}

impl Copier {
    /// What asks the server of a store; None if it is set up so that its requests need more than is done here.
    #[must_use]
    pub fn new(builder: &AmazonS3Builder, store: &AmazonS3, http: HttpClient, retries: RetryConfig) -> Option<Self> {
        let value = |key| builder.get_config_value(&key);
        let is_on = |key| value(key).is_some_and(|text| text == "true");
        let is_special = is_on(AmazonS3ConfigKey::S3Express)
            || is_on(AmazonS3ConfigKey::SkipSignature)
            || value(AmazonS3ConfigKey::Checksum).is_some()
            || OWN_KEY.parse().ok().and_then(value).is_some();
        // A name with a colon is that of an access point, which sources of copies name in another way.
        let bucket = value(AmazonS3ConfigKey::Bucket).filter(|bucket| !is_special && !bucket.contains(':'))?;
        Some(Self {
            store: store.clone(),
            http,
            bucket,
            retries,
            known: AtomicU8::new(UNKNOWN),
            conflicts: AtomicUsize::new(0),
            begun: Instant::now(),
            rests_until: AtomicU64::new(0),
        })
    }

    /// Whether the server may be able to copy parts, and did not just fail.
    #[must_use]
    pub fn may_copy(&self) -> bool {
        self.known.load(Ordering::Relaxed) != UNABLE
            && self.begun.elapsed().as_secs() >= self.rests_until.load(Ordering::Relaxed)
    }

    /// Send a signed request, again if it fails as it need not.
    async fn send(
        &self,
        place: &Place<'_>,
        method: Method,
        query: &[(&str, &str)],
        headers: &[(HeaderName, String)],
        body: &str,
    ) -> Result<Answer, Stop> {
        let begun = Instant::now();
        let mut options = SignedUrlOptions::new().with_query(query.iter().copied());
        for (name, value) in headers {
            options = options.with_signed_header(name.clone(), HeaderValue::from_str(value).map_err(|_| Stop::Failed)?);
        }
        let mut pause = self.retries.backoff.init_backoff;
        for number in 0..=self.retries.max_retries.min(MOST_RETRIES) {
            let permit = place.live.gate.pass().await;
            let url = self.store.signed_url_opts(method.clone(), &place.path, SIGNED_FOR, &options).await;
            let mut request = Request::builder().method(method.clone()).uri(url.map_err(|_| Stop::Failed)?.as_str());
            for (name, value) in &options.signed_headers {
                request = request.header(name, value);
            }
            let request = request.body(body.to_owned().into()).map_err(|_| Stop::Failed)?;
            if let Ok(response) = self.http.execute(request).await {
                let (status, headers) = (response.status(), response.headers().clone());
                if let Some(body) = text_of(response.into_body().bytes_stream()).await {
                    // An answer can begin with success, and end with an error.
                    let is_late_error = status.is_success() && body.contains("<Error>");
                    let is_again = status.is_server_error() && status != StatusCode::NOT_IMPLEMENTED
                        || matches!(status, StatusCode::TOO_MANY_REQUESTS | StatusCode::REQUEST_TIMEOUT);
                    if !is_again && !is_late_error {
                        return Ok(Answer { status, headers, body, is_repeated: number > 0 });
                    }
                }
            }
            drop(permit);
            if begun.elapsed() > self.retries.retry_timeout || place.check().is_err() {
                break;
            }
            tokio::time::sleep(pause).await;
            pause = pause.mul_f64(self.retries.backoff.base).min(self.retries.backoff.max_backoff);
        }
        Err(Stop::Failed)
    }

    /// Make a range of the version `tag` of a value a part of its next one; return the name of the part.
    async fn copy(
        &self,
        place: &Place<'_>,
        upload: &str,
        number: usize,
        range: &Range<u64>,
        tag: &str,
    ) -> Result<String, Stop> {
        let number = number.to_string();
        let headers = [
            (HeaderName::from_static("x-amz-copy-source"), format!("{}/{}", self.bucket, escaped(place.path.as_ref()))),
            (HeaderName::from_static("x-amz-copy-source-range"), format!("bytes={}-{}", range.start, range.end - 1)),
            (HeaderName::from_static("x-amz-copy-source-if-match"), tag.to_owned()),
        ];
        let query = [("partNumber", number.as_str()), ("uploadId", upload)];
        let answer = self.send(place, Method::PUT, &query, &headers, "").await?;
        match answer.status {
            status if status.is_success() => {
                // Servers that do not know such requests store an empty part.
                let part = element(&answer.body, "CopyPartResult").and_then(|result| element(result, "ETag"));
                part.map(unescaped).ok_or(Stop::Unable)
            }
            StatusCode::PRECONDITION_FAILED => Err(Stop::Conflict),
            StatusCode::NOT_FOUND if self.known.load(Ordering::Relaxed) == ABLE => Err(Stop::Conflict),
            status => Err(refusal(status, &answer.body)),
        }
    }

    async fn complete(&self, place: &Place<'_>, upload: &str, parts: &[String], tag: &str) -> Result<Answer, Stop> {
        let mut body = String::from("<CompleteMultipartUpload xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\">");
        for (number, part) in (1..).zip(parts) {
            let part = part.replace('"', "&quot;");
            // To write into a string never fails.
            let _ = write!(body, "<Part><PartNumber>{number}</PartNumber><ETag>{part}</ETag></Part>");
        }
        body.push_str("</CompleteMultipartUpload>");
        self.send(place, Method::POST, &[("uploadId", upload)], &[(IF_MATCH, tag.to_owned())], &body).await
    }

    /// See whether the server keeps the conditions of copies and of completions, by some that cannot hold.
    async fn check_conditions(&self, place: &Place<'_>, upload: &str) -> Result<(), Stop> {
        match self.copy(place, upload, 1, &(0..LEAST_COPIED), NEVER).await {
            Err(Stop::Conflict) => {}
            Err(stop) => return Err(stop),
            Ok(_) => return Err(Stop::Unable),
        }
        // There is no such part: if the server takes no notice of the condition, it has nothing to complete.
        let answer = self.complete(place, upload, &[NEVER.to_owned()], NEVER).await?;
        match answer.status {
            StatusCode::PRECONDITION_FAILED => Ok(()),
            status if status.is_success() => Err(Stop::Unable),
            status => Err(refusal(status, &answer.body)),
        }
    }

    /// See whether the parts have the sizes that they should have: whether the server takes notice of ranges.
    async fn check_sizes(&self, place: &Place<'_>, upload: &str, sizes: &[u64]) -> Result<(), Stop> {
        let answer = self.send(place, Method::GET, &[("uploadId", upload)], &[], "").await?;
        if !answer.status.is_success() {
            return Err(refusal(answer.status, &answer.body));
        }
        let mut found = Vec::new();
        let mut rest = answer.body.as_str();
        while let Some(part) = element(rest, "Part") {
            found.push(element(part, "Size").and_then(|size| size.trim().parse().ok()).unwrap_or(u64::MAX));
            rest = rest.split_once("</Part>").map_or("", |(_, rest)| rest);
        }
        // A list of more than a thousand is divided.
        let expected = &sizes[..sizes.len().min(found.len().max(1))];
        if found == expected { Ok(()) } else { Err(Stop::Unable) }
    }
}

impl Place<'_> {
    /// Make a value of the first `kept` bytes of its version `old`, which are at least [`LEAST_COPIED`], and of `tail`, if it
    /// still is of that version. None if that was not possible: then nothing has changed.
    ///
    /// # Errors
    /// If the system has no random numbers.
    pub(super) async fn grow(
        &self,
        old: &ObjectMeta,
        kept: u64,
        tail: Bytes,
        are_doubtful: bool,
    ) -> Result<Option<Put>> {
        let (Some(copier), Some(tag)) = (&self.live.copier, strong(old)) else { return Ok(None) };
        if !copier.may_copy() {
            return Ok(None);
        }
        let grown = self.grow_by(copier, &tag, kept, tail, are_doubtful, &mark()?).await;
        let is_able = copier.known.load(Ordering::Relaxed) == ABLE;
        Ok(match grown {
            Ok(put) => Some(put),
            // A server that has never done it may give this answer always.
            Err(Stop::Conflict) => {
                let is_likely = is_able || copier.conflicts.fetch_add(1, Ordering::Relaxed) < MOST_CONFLICTS;
                is_likely.then_some(Put::Conflict)
            }
            Err(Stop::Failed) => {
                if !is_able {
                    copier.rests_until.store(copier.begun.elapsed().as_secs() + REST, Ordering::Relaxed);
                }
                None
            }
            Err(Stop::Unable) => {
                copier.known.store(UNABLE, Ordering::Relaxed);
                None
            }
        })
    }

    async fn grow_by(
        &self,
        copier: &Copier,
        tag: &str,
        kept: u64,
        tail: Bytes,
        are_doubtful: bool,
        mark: &str,
    ) -> Result<Put, Stop> {
        let permit = self.live.gate.pass().await;
        let options = PutMultipartOptions { attributes: marked(mark), ..PutMultipartOptions::default() };
        let id = copier.store.create_multipart_opts(&self.path, options).await.map_err(|error| stop(&error))?;
        drop(permit);
        let mut upload = Upload { store: copier.store.clone(), path: self.path.clone(), id: Some(id.clone()) };
        let id = &id;
        let is_checked = are_doubtful && copier.known.load(Ordering::Relaxed) == UNKNOWN;
        let result = async {
            if is_checked {
                copier.check_conditions(self, id).await?;
            }
            let ranges = divided(kept);
            let (at_once, has_failed) = (&Semaphore::new(PARTS_AT_ONCE), &AtomicBool::new(false));
            // After an error, copies that are on their way are waited for, so that none is made after the abort.
            let made = join_all((1..).zip(&ranges).map(|(number, range)| async move {
                let _permit = at_once.acquire().await;
                if has_failed.load(Ordering::Relaxed) {
                    return Err(Stop::Failed);
                }
                let part = copier.copy(self, id, number, range, tag).await;
                has_failed.fetch_or(part.is_err(), Ordering::Relaxed);
                part
            }));
            // The first one that failed comes before those that were not begun.
            let mut parts = made.await.into_iter().collect::<Result<Vec<_>, Stop>>()?;
            let mut sizes: Vec<u64> = ranges.iter().map(|range| range.end - range.start).collect();
            for start in (0..tail.len()).step_by(SENT_AT_ONCE) {
                let piece = tail.slice(start..tail.len().min(start + SENT_AT_ONCE));
                sizes.push(piece.len() as u64);
                let _permit = self.live.gate.pass().await;
                let part = copier.store.put_part(&self.path, id, parts.len(), piece.into()).await;
                parts.push(part.map_err(|error| stop(&error))?.content_id);
            }
            if is_checked {
                copier.check_sizes(self, id, &sizes).await?;
            }
            copier.complete(self, id, &parts, tag).await
        };
        let answer = match result.await {
            Ok(answer) => answer,
            Err(stop) => {
                upload.abort().await;
                // The answer may have been lost, and not the request.
                let is_ours = matches!(stop, Stop::Failed) && self.is_ours(mark).await;
                return if is_ours { Ok(Put::Stored(None)) } else { Err(stop) };
            }
        };
        if answer.status.is_success() {
            upload.id = None;
            copier.known.store(ABLE, Ordering::Relaxed);
            let version = answer.headers.get("x-amz-version-id").and_then(|version| version.to_str().ok());
            let tag = element(&answer.body, "ETag").map(unescaped);
            return Ok(Put::Stored(same(tag, version.map(ToOwned::to_owned))));
        }
        upload.abort().await;
        if answer.is_repeated && self.is_ours(mark).await {
            return Ok(Put::Stored(None));
        }
        match answer.status {
            StatusCode::PRECONDITION_FAILED | StatusCode::CONFLICT | StatusCode::NOT_FOUND => Err(Stop::Conflict),
            status => Err(refusal(status, &answer.body)),
        }
    }

    async fn is_ours(&self, mark: &str) -> bool {
        self.mark().await.is_ok_and(|found| found.as_deref() == Some(mark))
    }
}

/// An upload that has begun; without a name once it has been completed. One that is dropped is removed from the server.
struct Upload {
    store: AmazonS3,
    path: Path,
    id: Option<String>,
}

impl Upload {
    /// Remove the parts. If the server does not do that, it forgets them in its own time.
    async fn abort(&mut self) {
        if let Some(id) = &self.id {
            let _ = self.store.abort_multipart(&self.path, id).await;
        }
        self.id = None;
    }
}

impl Drop for Upload {
    fn drop(&mut self) {
        // It was given up.
        if let Some(id) = self.id.take()
            && let Ok(runtime) = runtime()
        {
            let (store, path) = (self.store.clone(), self.path.clone());
            runtime.spawn(async move { store.abort_multipart(&path, &id).await });
        }
    }
}

/// Divide the first `size` bytes of a value into ranges of about the same size, none of which is too small to be a part.
fn divided(size: u64) -> Vec<Range<u64>> {
    let count = size.div_ceil(COPIED_AT_ONCE.max(size.div_ceil(MOST_PARTS / 2))).max(1);
    let at = |number: u64| size / count * number + (size % count).min(number);
    (0..count).map(|number| at(number)..at(number + 1)).collect()
}

/// What an error of the crate means here.
fn stop(error: &object_store::Error) -> Stop {
    let text = error.to_string();
    let is_final =
        ["400", "403", "404", "405", "501"].iter().any(|code| text.contains(&format!("status code: {code}")));
    if is_final && !passes(&text) { Stop::Unable } else { Stop::Failed }
}

/// What an answer means that is no success: whether the server says that it does not know such requests, or forbids them.
fn refusal(status: StatusCode, body: &str) -> Stop {
    let is_final = match status {
        StatusCode::NOT_IMPLEMENTED | StatusCode::METHOD_NOT_ALLOWED | StatusCode::NOT_FOUND => true,
        StatusCode::BAD_REQUEST | StatusCode::FORBIDDEN => !passes(element(body, "Code").unwrap_or_default()),
        _ => false,
    };
    if is_final { Stop::Unable } else { Stop::Failed }
}

/// Whether a text names an error that says nothing of the kind of the request.
fn passes(text: &str) -> bool {
    PASSING.iter().any(|code| text.contains(code))
}

/// Receive the text of an answer; None if it breaks off, or is too long.
async fn text_of(mut stream: impl futures_util::Stream<Item = Result<Bytes, impl Sized>> + Unpin) -> Option<String> {
    let mut bytes = Vec::new();
    while let Some(frame) = stream.next().await {
        let frame = frame.ok()?;
        if bytes.len() + frame.len() > LONGEST_ANSWER {
            return None;
        }
        bytes.extend_from_slice(&frame);
    }
    String::from_utf8(bytes).ok()
}

/// What the first element of this name holds.
fn element<'a>(xml: &'a str, name: &str) -> Option<&'a str> {
    let (mut rest, end) = (xml, format!("</{name}>"));
    loop {
        rest = rest.split_once('<')?.1;
        let Some(after) = rest.strip_prefix(name) else { continue };
        if after.starts_with([' ', '>', '\t', '\r', '\n']) {
            let inner = after.split_once('>')?.1;
            return inner.split_once(&end).map(|(inner, _)| inner);
        }
    }
}

/// The name of a version in XML, as headers have it.
fn unescaped(text: &str) -> String {
    text.trim().replace("&quot;", "\"").replace("&#34;", "\"").replace("&amp;", "&")
}

/// A path as a source of a copy names it.
fn escaped(path: &str) -> String {
    path.bytes().fold(String::with_capacity(path.len()), |mut text, byte| {
        if byte.is_ascii_alphanumeric() || b"-._~/".contains(&byte) {
            text.push(byte.into());
        } else {
            // To write into a string never fails.
            let _ = write!(text, "%{byte:02X}");
        }
        text
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_neither_too_small_nor_too_many() {
        for size in [LEAST_COPIED, LEAST_COPIED + 1, COPIED_AT_ONCE, COPIED_AT_ONCE + 1, 5 << 40] {
            let ranges = divided(size);
            assert_eq!((ranges[0].start, ranges[ranges.len() - 1].end), (0, size));
            assert!(ranges.windows(2).all(|pair| pair[0].end == pair[1].start));
            let sizes = || ranges.iter().map(|range| range.end - range.start);
            assert!(sizes().all(|size| (LEAST_COPIED..=5 << 30).contains(&size)));
            assert!(ranges.len() as u64 <= MOST_PARTS / 2);
        }
    }

    #[test]
    fn elements_are_found_by_name() {
        let xml = "<?xml version=\"1.0\"?><CopyPartResult xmlns=\"x\"><ETagX>1</ETagX><ETag>&quot;2&quot;</ETag></CopyPartResult>";
        assert_eq!(
            element(xml, "CopyPartResult").and_then(|result| element(result, "ETag")).map(unescaped).unwrap(),
            "\"2\""
        );
        assert_eq!(element(xml, "Size"), None);
        assert_eq!(element("<Part", "Part"), None);
    }

    #[test]
    fn only_answers_about_such_requests_are_final() {
        let is_final = |status, code: &str| {
            matches!(refusal(status, &format!("<Error><Code>{code}</Code></Error>")), Stop::Unable)
        };
        assert!(is_final(StatusCode::NOT_IMPLEMENTED, "NotImplemented"));
        assert!(is_final(StatusCode::METHOD_NOT_ALLOWED, ""));
        assert!(is_final(StatusCode::BAD_REQUEST, "InvalidRequest"));
        assert!(is_final(StatusCode::FORBIDDEN, "AccessDenied"));
        assert!(!is_final(StatusCode::FORBIDDEN, "RequestTimeTooSkewed"));
        assert!(!is_final(StatusCode::BAD_REQUEST, "ExpiredToken"));
        assert!(!is_final(StatusCode::UNAUTHORIZED, "Unauthorized"));
        assert!(!is_final(StatusCode::CONFLICT, "OperationAborted"));
        assert!(matches!(refusal(StatusCode::FORBIDDEN, "no XML"), Stop::Unable));
    }

    #[test]
    fn sources_are_written_as_in_urls() {
        assert_eq!(escaped("a b/ä%41/c_0~.-"), "a%20b/%C3%A4%2541/c_0~.-");
    }
}
