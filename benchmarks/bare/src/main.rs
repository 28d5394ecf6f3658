//! Fetches files from a web server with hyper and nothing else: the least that a client in Rust takes.
//!
//! `bare ADDRESS REQUESTS RUNS`, with one path per line on the standard input. REQUESTS are sent at once, each over a
//! connection of its own that is used again, also by the next run. The first run is not measured. The output is JSON:
//! the seconds and the seconds of the processor of each run, and the number of bytes that one run has fetched.

use std::error::Error;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use bytes::Bytes;
use http_body_util::{BodyExt, Empty};
use hyper::Request;
use hyper::client::conn::http1::{self, SendRequest};
use hyper::header::HOST;
use hyper_util::rt::TokioIo;
use rustix::time::{ClockId, clock_gettime};
use tokio::net::TcpStream;

type Failure = Box<dyn Error + Send + Sync>;
type Sender = SendRequest<Empty<Bytes>>;

/// As many threads as the native engine has (`rust/src/remote/process.rs`).
const WORKERS: std::ops::RangeInclusive<usize> = 2..=8;

struct Work {
    address: String,
    paths: Vec<String>,
    next: AtomicUsize,
    bytes: AtomicUsize,
}

async fn connected(address: &str) -> Result<Sender, Failure> {
    let stream = TcpStream::connect(address).await?;
    stream.set_nodelay(true)?;
    let (sender, connection) = http1::handshake(TokioIo::new(stream)).await?;
    tokio::spawn(connection);
    Ok(sender)
}

/// Fetch one path after the other over a connection until there are none; return the connection.
async fn fetch(work: Arc<Work>, sender: Option<Sender>) -> Result<Option<Sender>, Failure> {
    let mut sender = sender;
    while let Some(path) = work.paths.get(work.next.fetch_add(1, Ordering::Relaxed)) {
        let mut open = match sender.take().filter(|open| !open.is_closed()) {
            Some(open) => open,
            None => connected(&work.address).await?,
        };
        open.ready().await?;
        let request = Request::get(path).header(HOST, &work.address).body(Empty::new())?;
        let answer = open.send_request(request).await?;
        if !answer.status().is_success() {
            return Err(format!("{path}: {}", answer.status()).into());
        }
        let body = answer.into_body().collect().await?.to_bytes();
        work.bytes.fetch_add(body.len(), Ordering::Relaxed);
        sender = Some(open);
    }
    Ok(sender)
}

fn processor() -> Duration {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    Duration::new(time.tv_sec.unsigned_abs(), u32::try_from(time.tv_nsec).unwrap_or(0))
}

async fn run(address: String, requests: usize, runs: usize, paths: Vec<String>) -> Result<String, Failure> {
    let mut senders: Vec<Option<Sender>> = (0..requests.min(paths.len())).map(|_| None).collect();
    let (mut seconds, mut processors, mut bytes, mut paths) = (Vec::new(), Vec::new(), 0, paths);
    for number in 0..=runs {
        let (next, counted) = (AtomicUsize::new(0), AtomicUsize::new(0));
        let work = Arc::new(Work { address: address.clone(), paths, next, bytes: counted });
        let (spent, begun) = (processor(), Instant::now());
        let tasks: Vec<_> = senders.drain(..).map(|sender| tokio::spawn(fetch(Arc::clone(&work), sender))).collect();
        for task in tasks {
            senders.push(task.await??);
        }
        if number > 0 {
            seconds.push(begun.elapsed().as_secs_f64());
            processors.push((processor() - spent).as_secs_f64());
        }
        let work = Arc::into_inner(work).ok_or("a task is still there")?;
        (paths, bytes) = (work.paths, work.bytes.into_inner());
    }
    Ok(format!(r#"{{"seconds": {seconds:?}, "processor": {processors:?}, "bytes": {bytes}}}"#))
}

fn main() -> Result<(), Failure> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [address, requests, runs] = arguments.as_slice() else { return Err("bare ADDRESS REQUESTS RUNS".into()) };
    let paths = io::stdin().lines().collect::<Result<Vec<_>, _>>()?;
    let threads = std::thread::available_parallelism()?.get().clamp(*WORKERS.start(), *WORKERS.end());
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(threads).enable_io().build()?;
    println!("{}", runtime.block_on(run(address.clone(), requests.parse()?, runs.parse()?, paths))?);
    Ok(())
}
