//! Why a chunk could not be moved.
//!
//! Messages for users come from the engine in Python, which is asked about every chunk that fails here.
//! So an error here needs to say only what to do next.

use std::any::Any;
use std::fmt;

/// What to do about an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Nothing is wrong, but this is not known here: the engine in Python is to move the chunk.
    Refused,
    /// The stored bytes are broken, or a chunk is missing that may not be, or the system refuses: no chunk need be
    /// looked at any more, and the engine in Python says why.
    Broken,
    /// The user wants to stop.
    Interrupted,
    /// A store that is called back has failed, with an error of its own that is to be passed on.
    Foreign,
}

/// Why a chunk could not be moved.
pub struct Error {
    /// What is to be done.
    pub kind: Kind,
    /// What happened, for debugging this engine.
    pub message: String,
    /// The error of a store that was called back.
    pub foreign: Option<Box<dyn Any + Send>>,
}

/// What nearly everything here returns.
pub type Result<T, E = Error> = std::result::Result<T, E>;

impl Error {
    /// Something that is not known here.
    pub fn refused(message: impl Into<String>) -> Self {
        Self { kind: Kind::Refused, message: message.into(), foreign: None }
    }

    /// Something that cannot be right.
    pub fn broken(message: impl Into<String>) -> Self {
        Self { kind: Kind::Broken, message: message.into(), foreign: None }
    }

    /// The user wants to stop.
    #[must_use]
    pub fn interrupted(foreign: Box<dyn Any + Send>) -> Self {
        Self { kind: Kind::Interrupted, message: "interrupted".into(), foreign: Some(foreign) }
    }

    /// The error of a store that was called back.
    #[must_use]
    pub fn foreign(foreign: Box<dyn Any + Send>) -> Self {
        Self { kind: Kind::Foreign, message: "the store failed".into(), foreign: Some(foreign) }
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{:?}: {}", self.kind, self.message)
    }
}

impl fmt::Display for Error {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.message)
    }
}

impl std::error::Error for Error {}

impl From<std::io::Error> for Error {
    fn from(error: std::io::Error) -> Self {
        Self::broken(error.to_string())
    }
}

#[cfg(unix)]
impl From<rustix::io::Errno> for Error {
    fn from(error: rustix::io::Errno) -> Self {
        Self::broken(error.to_string())
    }
}
