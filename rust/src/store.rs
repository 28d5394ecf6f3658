//! Where chunks are kept: keys and bytes.

use std::any::Any;
use std::sync::Arc;

use crate::error::{Error, Result};

/// What changes whenever a value does.
pub type Stamp = [u64; 5];

/// Something that is kept, and never looked at.
pub type Hold = Arc<dyn Any + Send + Sync>;

/// Work that is done while a key is locked.
pub type Change<'a> = dyn FnMut() -> Result<()> + Send + 'a;

/// One version of a value, open for reading.
pub trait Value: Send + Sync {
    /// The bytes themselves, if they are in memory.
    fn bytes(&self) -> Option<&[u8]> {
        None
    }

    /// Size of the value.
    ///
    /// # Errors
    /// If the system fails.
    fn size(&self) -> Result<u64>;

    /// Fill `out` from the byte `start` on, and return how many bytes there were: fewer than `out` has
    /// only if the value ends before.
    ///
    /// # Errors
    /// If the system fails.
    fn read_at(&self, start: u64, out: &mut [u8]) -> Result<usize>;

    /// A stamp that distinguishes this version of the value from all others; None if there is none.
    ///
    /// # Errors
    /// If the system fails.
    fn stamp(&self) -> Result<Option<Stamp>> {
        Ok(None)
    }

    /// A resource to keep for as long as the stamp must distinguish the versions.
    fn hold(&self) -> Option<Hold> {
        None
    }
}

/// Keys and values. A key that does not exist is ordinary.
pub trait Store: Send + Sync {
    /// Open the value of a key; None if there is no such key.
    ///
    /// # Errors
    /// If the system fails, or the key is one for the store in Python.
    fn open(&self, key: &str) -> Result<Option<Box<dyn Value + '_>>>;

    /// How many values of about `nbytes` should be opened at once, as to ask for them costs; None if each
    /// should be read by itself.
    fn at_once(&self, _nbytes: usize) -> Option<usize> {
        None
    }

    /// Open the values of several keys.
    fn open_many(&self, keys: &[String]) -> Vec<Result<Option<Box<dyn Value + '_>>>> {
        keys.iter().map(|key| self.open(key)).collect()
    }

    /// Do `work` as one of the threads that ask this store again and again.
    fn attached(&self, work: &mut (dyn FnMut() + Send)) {
        work();
    }

    /// How many requests to send at once; 1 if each is answered immediately.
    fn concurrency(&self) -> usize {
        1
    }

    /// How many chunks may be on their way at once, so that they fit into memory.
    fn most_in_flight(&self) -> usize {
        usize::MAX
    }

    /// Whether `locked` keeps others from changing a value while a part of it is written.
    fn changes_parts(&self) -> bool {
        true
    }

    /// Whether reading parts of a value costs less than the whole, and parts are known to be of one version.
    fn reads_parts(&self) -> bool {
        true
    }

    /// Read the value of a key into `into`, in place of what that holds, and say whether there is such a key.
    ///
    /// `hint` is the size that the value probably has; with a good one, stores ask the system less.
    ///
    /// # Errors
    /// If the system fails, or the key is one for the store in Python; then `into` holds anything.
    fn read_all(&self, key: &str, hint: usize, into: &mut Vec<u8>) -> Result<bool> {
        let _ = hint;
        into.clear();
        let Some(value) = self.open(key)? else {
            return Ok(false);
        };
        if let Some(bytes) = value.bytes() {
            into.extend_from_slice(bytes);
        } else {
            let size = usize::try_from(value.size()?).map_err(|_| Error::broken("larger than memory"))?;
            into.try_reserve_exact(size).map_err(|_| Error::broken("larger than memory"))?;
            into.resize(size, 0);
            let read = value.read_at(0, into)?;
            into.truncate(read);
        }
        Ok(true)
    }

    /// Fill `out` from the value of a key, and return the size of the value. If it is larger than `out`, only its
    /// beginning is read; if it is smaller, the rest of `out` is undefined. None if there is no such key.
    ///
    /// # Errors
    /// If the system fails, or the key is one for the store in Python; then `out` holds anything.
    fn read_into(&self, key: &str, out: &mut [u8]) -> Result<Option<u64>> {
        let Some(value) = self.open(key)? else {
            return Ok(None);
        };
        let size = value.size()?;
        let available = usize::try_from(size).map_or(out.len(), |size| size.min(out.len()));
        if let Some(bytes) = value.bytes() {
            out[..available].copy_from_slice(&bytes[..available]);
            return Ok(Some(size));
        }
        let read = value.read_at(0, &mut out[..available])?;
        Ok(Some(if read < available { read as u64 } else { size }))
    }

    /// Make `data` the value of a key: seen by others whole or not at all.
    ///
    /// # Errors
    /// If the system fails; then the old value is unchanged, and no temporary files remain.
    fn set(&self, key: &str, data: &[u8]) -> Result<()>;

    /// Remove a key; one that does not exist counts as removed.
    ///
    /// # Errors
    /// If the system fails.
    fn delete(&self, key: &str) -> Result<()>;

    /// Run `change` while the key is locked against other threads and processes.
    ///
    /// `waiting` is called again and again while others hold the lock; an error of it ends the waiting. A thread that
    /// holds the lock already waits for itself.
    ///
    /// # Errors
    /// Those of `change` and of `waiting`, and if the key cannot be locked.
    fn locked(&self, key: &str, waiting: &dyn Fn() -> Result<()>, change: &mut Change<'_>) -> Result<()>;
}
