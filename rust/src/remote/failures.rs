//! What goes wrong with requests, in the terms of the client of obstore.

use std::error::Error as StdError;
use std::fmt;
use std::io;

use object_store::client::{HttpError, HttpErrorKind};

use crate::error::{Error, Kind};

/// Why a request was not sent, or not followed up: obstore has to send it.
#[derive(Debug)]
pub struct Declined(&'static str);

impl fmt::Display for Declined {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.0)
    }
}

impl StdError for Declined {}

/// The error that says so.
#[must_use]
pub fn declined(why: &'static str) -> HttpError {
    HttpError::new(HttpErrorKind::Unknown, Declined(why))
}

/// What went wrong, in the terms of the client of obstore.
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

/// While a request was sent, or its answer waited for.
pub const SENDING: &str = "error sending request";
/// While an answer was received.
pub const RECEIVING: &str = "request or response body error";

/// An error of this kind.
pub fn failed(
    kind: HttpErrorKind,
    what: &'static str,
    source: impl Into<Box<dyn StdError + Send + Sync>>,
) -> HttpError {
    HttpError::new(kind, Failed { what, source: source.into() })
}

/// It has taken too long.
#[must_use]
pub fn timed_out(what: &'static str) -> HttpError {
    failed(HttpErrorKind::Timeout, what, io::Error::from(io::ErrorKind::TimedOut))
}

/// Of what kind an error of hyper is: it decides whether the request is sent again.
#[must_use]
pub fn kind_of(error: &hyper::Error) -> HttpErrorKind {
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

// -- errors of stores ---------------------------------------------------------------------

/// An error of a server or a connection, as obstore reports it.
#[derive(Clone, Debug)]
pub struct Answered {
    /// The name of obstore's exception.
    pub kind: &'static str,
    /// Its text.
    pub text: String,
}

/// An error that several readers get.
#[derive(Clone, Debug)]
pub struct Reason {
    kind: Kind,
    message: String,
    answered: Option<Answered>,
}

impl Reason {
    /// What an error says, for all of them.
    #[must_use]
    pub fn of(error: &Error) -> Self {
        let answered = error.foreign.as_ref().and_then(|foreign| foreign.downcast_ref::<Answered>()).cloned();
        Self { kind: error.kind, message: error.message.clone(), answered }
    }
}

impl From<Reason> for Error {
    fn from(reason: Reason) -> Self {
        let foreign = reason.answered.map(|answered| Box::new(answered) as _);
        Self { kind: reason.kind, message: reason.message, foreign }
    }
}
