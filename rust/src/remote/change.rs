//! Values that are changed in part: stored on the condition that they have not changed since they were read.
//!
//! `omnizarr.stores.remote.object` says how: an answer that is lost must not make a change happen twice, and a server that
//! takes no notice of conditions must not be trusted.

use std::time::{Duration, Instant};

use bytes::Bytes;
use object_store::{Attribute, Attributes, GetOptions, ObjectMeta, PutMode, PutOptions, PutResult, UpdateVersion};

use crate::error::{Error, Kind, Result};
use crate::remote::answers::{Part, is_strong};
use crate::remote::failures::Answered;
use crate::remote::fetch::Place;

/// Metadata stored with a value, by which its writer recognizes it.
const MARK: &str = "omnizarrwrite";
/// An `ETag` that no value has.
pub(super) const NEVER: &str = "\"00000000000000000000000000000000\"";
/// The pause after the first conflict is no longer than this; later ones may be twice as long as the one before,
const FIRST_PAUSE: Duration = Duration::from_millis(5);
/// but not longer than this.
const LONGEST_PAUSE: Duration = Duration::from_secs(1);

/// How a store keeps writers apart: by conditions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Conditions {
    /// It has to be seen that the server takes notice of them.
    pub are_doubtful: bool,
    /// For so long conflicts are no error.
    pub patience: Duration,
}

/// What became of a write on a condition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Put {
    /// The value is stored. This is the condition that it still is, if the server has told its version.
    Stored(Option<PutMode>),
    /// Another writer was faster.
    Conflict,
}

/// The condition that a value is still as it was read; None if the server does not tell its versions apart.
#[must_use]
pub fn unchanged(meta: Option<&ObjectMeta>) -> Option<PutMode> {
    let Some(meta) = meta else { return Some(PutMode::Create) };
    same(meta.e_tag.clone(), meta.version.clone())
}

/// The condition that a value is of the version with this `ETag` and this name.
pub(super) fn same(e_tag: Option<String>, version: Option<String>) -> Option<PutMode> {
    let e_tag = e_tag.filter(|tag| is_strong(tag));
    (e_tag.is_some() || version.is_some()).then_some(PutMode::Update(UpdateVersion { e_tag, version }))
}

impl Place<'_> {
    /// Fetch the value with what the server tells of it; None if there is none.
    ///
    /// # Errors
    /// If the store fails, or the value is too large.
    pub async fn current(&self) -> Result<Option<Part>> {
        let _permit = self.live.gate.pass().await;
        match self.ask(None, None).await? {
            None => Ok(None),
            Some(result) => self.receive(result).await.map(Some),
        }
    }

    /// Make `data` the value if the condition holds.
    ///
    /// # Errors
    /// If the store fails. Then the value may be either.
    pub async fn put_if(&self, data: Bytes, condition: &PutMode, are_doubtful: bool) -> Result<Put> {
        let put = self.put_marked(data.clone(), condition, &mark()?).await?;
        if matches!(put, Put::Stored(_)) && are_doubtful {
            self.check_conditions(data).await?;
        }
        Ok(put)
    }

    /// Store the value with a mark, by which it is recognized if the answer is lost. It is sent again by the crate or here; if
    /// it was stored the first time, the condition does not hold any more.
    async fn put_marked(&self, data: Bytes, condition: &PutMode, mark: &str) -> Result<Put> {
        let begun = Instant::now();
        let mut is_last = false;
        loop {
            let error = match self.send(data.clone(), condition, Some(mark)).await? {
                Ok(result) => return Ok(Put::Stored(same(result.e_tag, result.version))),
                Err(error) => error,
            };
            let mut failure = None;
            if self.is_conflict(&error) {
                if begun.elapsed() < self.live.soonest_repetition {
                    return Ok(Put::Conflict);
                }
            } else {
                // Without a meaning: there is no such key any more.
                let Some(meant) = self.live.meaning(&error) else { return Ok(Put::Conflict) };
                if meant.kind == Kind::Refused || is_denied(&error) {
                    return Err(meant);
                }
                if is_unknown(&error) {
                    return Err(Error::refused("a server without conditions"));
                }
                failure = Some(meant);
            }
            let found = self.seen().await?;
            if found.as_ref().is_some_and(|found| found.mark.as_deref() == Some(mark)) {
                return Ok(Put::Stored(None));
            }
            // A server may break the connection off before it has read a large value that it refuses.
            if excludes(condition, found.as_ref()) {
                return Ok(Put::Conflict);
            }
            match failure {
                None => return Ok(Put::Conflict),
                Some(failure) if is_last => return Err(failure),
                Some(_) => is_last = true,
            }
        }
    }

    /// Whether the condition does not hold. The crate takes an answer that there is no place for keys for this, too.
    fn is_conflict(&self, error: &object_store::Error) -> bool {
        matches!(error, object_store::Error::AlreadyExists { .. } | object_store::Error::Precondition { .. })
            && !self.live.is_without_place(&error.to_string())
    }

    async fn send(
        &self,
        data: Bytes,
        condition: &PutMode,
        mark: Option<&str>,
    ) -> Result<Result<PutResult, object_store::Error>> {
        self.check()?;
        let attributes = mark.map(marked).unwrap_or_default();
        let options = PutOptions { mode: condition.clone(), attributes, ..PutOptions::default() };
        let _permit = self.live.gate.pass().await;
        Ok(self.live.store.put_opts(&self.path, data.into(), options).await)
    }

    /// The mark of the value that is stored.
    pub(super) async fn mark(&self) -> Result<Option<String>> {
        Ok(self.seen().await?.and_then(|found| found.mark))
    }

    /// What tells the value that is stored from others; None if there is none.
    async fn seen(&self) -> Result<Option<Seen>> {
        let options = GetOptions { head: true, ..GetOptions::default() };
        let _permit = self.live.gate.pass().await;
        match self.live.store.get_opts(&self.path, options).await {
            Ok(found) => {
                let mark = found.attributes.get(&Attribute::Metadata(MARK.into()));
                Ok(Some(Seen { mark: mark.map(|mark| mark.as_ref().to_owned()), e_tag: found.meta.e_tag }))
            }
            Err(error) => self.live.meaning(&error).map_or(Ok(None), Err),
        }
    }

    /// See, once, whether the server refuses what was just stored on a condition that cannot hold.
    async fn check_conditions(&self, data: Bytes) -> Result<()> {
        let never = PutMode::Update(UpdateVersion { e_tag: Some(NEVER.to_owned()), version: None });
        let checked = self.live.conditions.get_or_try_init(|| async {
            match self.send(data, &never, None).await.map_err(Some)? {
                // The store in Python tries that again, and says what is wrong.
                Ok(_) => Err(Some(Error::refused("a server that takes no notice of conditions"))),
                Err(error) if self.is_conflict(&error) => Ok(()),
                // The value itself is stored; the next write will tell.
                Err(error) => Err(self.live.meaning(&error).filter(|failure| failure.kind == Kind::Refused)),
            }
        });
        match checked.await {
            Ok(()) | Err(None) => Ok(()),
            Err(Some(error)) => Err(error),
        }
    }
}

/// What tells a stored value from others.
#[derive(Debug)]
struct Seen {
    mark: Option<String>,
    e_tag: Option<String>,
}

/// Whether a condition cannot hold, because of what is stored.
fn excludes(condition: &PutMode, found: Option<&Seen>) -> bool {
    match (condition, found) {
        (PutMode::Create, found) => found.is_some(),
        (PutMode::Update(_), None) => true,
        (PutMode::Update(wanted), Some(found)) => match (&wanted.e_tag, &found.e_tag) {
            (Some(wanted), Some(found)) => is_strong(found) && wanted != found,
            _ => false,
        },
        (PutMode::Overwrite, _) => false,
    }
}

/// Whether the server does not know what it is asked to do.
fn is_unknown(error: &object_store::Error) -> bool {
    let text = error.to_string();
    text.contains("status code: 501") || text.contains("NotImplemented")
}

fn is_denied(error: &object_store::Error) -> bool {
    matches!(error, object_store::Error::PermissionDenied { .. } | object_store::Error::Unauthenticated { .. })
}

/// The error of a writer that was too slow for too long.
#[must_use]
pub fn too_slow() -> Error {
    Error::foreign(Box::new(Answered { kind: "PreconditionError", text: "another writer was faster".to_owned() }))
}

/// What is stored with a value that has this mark.
pub(super) fn marked(mark: &str) -> Attributes {
    [(Attribute::Metadata(MARK.into()), mark.to_owned())].into_iter().collect()
}

pub(super) fn mark() -> Result<String> {
    use std::fmt::Write as _;

    let mut text = String::with_capacity(32);
    for _ in 0..2 {
        // To write into a string never fails.
        let _ = write!(text, "{:016x}", random()?);
    }
    Ok(text)
}

fn random() -> Result<u64> {
    getrandom::u64().map_err(|error| Error::refused(error.to_string()))
}

/// How long to wait after conflicts: for random times, so that writers that met once do not meet again.
pub struct Pauses {
    longest: Duration,
}

impl Pauses {
    /// The pauses after a first conflict.
    #[must_use]
    pub fn new() -> Self {
        Self { longest: FIRST_PAUSE }
    }

    /// Wait for a while.
    ///
    /// # Errors
    /// If the system has no random numbers.
    pub async fn pause(&mut self) -> Result<()> {
        #[allow(clippy::cast_precision_loss)]
        let share = random()? as f64 / u64::MAX as f64;
        tokio::time::sleep(self.longest.mul_f64(share)).await;
        self.longest = (2 * self.longest).min(LONGEST_PAUSE);
        Ok(())
    }
}

impl Default for Pauses {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn meta(e_tag: Option<&str>, version: Option<&str>) -> ObjectMeta {
        let (e_tag, version) = (e_tag.map(Into::into), version.map(Into::into));
        ObjectMeta { location: "a".into(), last_modified: std::time::UNIX_EPOCH.into(), size: 1, e_tag, version }
    }

    #[test]
    fn a_condition_names_the_version_that_was_read() {
        assert_eq!(unchanged(None), Some(PutMode::Create));
        let version = UpdateVersion { e_tag: Some("\"1\"".into()), version: None };
        assert_eq!(unchanged(Some(&meta(Some("\"1\""), None))), Some(PutMode::Update(version)));
        let version = UpdateVersion { e_tag: None, version: Some("7".into()) };
        assert_eq!(unchanged(Some(&meta(Some("W/\"1\""), Some("7")))), Some(PutMode::Update(version)));
    }

    #[test]
    fn what_is_stored_excludes_a_condition_on_another_version() {
        let seen = |e_tag: &str| Some(Seen { mark: None, e_tag: Some(e_tag.to_owned()) });
        let condition = unchanged(Some(&meta(Some("\"1\""), None))).unwrap();
        assert!(excludes(&condition, seen("\"2\"").as_ref()));
        assert!(excludes(&condition, None));
        assert!(!excludes(&condition, seen("\"1\"").as_ref()));
        assert!(!excludes(&condition, seen("W/\"2\"").as_ref()));
        assert!(excludes(&PutMode::Create, seen("\"1\"").as_ref()));
        assert!(!excludes(&PutMode::Create, None));
    }

    #[test]
    fn there_is_no_condition_without_versions() {
        assert_eq!(unchanged(Some(&meta(None, None))), None);
        assert_eq!(unchanged(Some(&meta(Some("W/\"1\""), None))), None);
    }

    #[test]
    fn marks_differ() {
        let marks: std::collections::HashSet<_> = (0..100).map(|_| mark().unwrap()).collect();
        assert_eq!(marks.len(), 100);
        assert!(marks.iter().all(|mark| mark.len() == 32));
    }
}
