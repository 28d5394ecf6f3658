//! Where chunks are kept: keys and bytes.

use std::any::Any;
use std::sync::Arc;

use crate::error::{Error, Result};

/// Numbers that are different for each version of a value.
pub type Stamp = [u64; 5];

/// An object that is only kept alive.
pub type Hold = Arc<dyn Any + Send + Sync>;

/// Work that is done while a key is locked.
pub type Change<'a> = dyn FnMut() -> Result<()> + Send + 'a;

/// Bytes that are to be other ones, by their place in a value.
pub type Patches = Vec<(u64, Vec<u8>)>;

/// What looks at a value, and says which of its bytes become other ones; None if the value must be made again.
pub type Patch<'a> = dyn FnMut(&dyn Value) -> Result<Option<Patches>> + Send + 'a;

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

    /// Fill `out` with the bytes that begin at `start`, and return how many there were: fewer than `out` has only if the value
    /// ends before.
    ///
    /// # Errors
    /// If the system fails.
    fn read_at(&self, start: u64, out: &mut [u8]) -> Result<usize>;

    /// Whether `size` bytes from `start` on have been fetched, for values of which only parts have been fetched.
    fn holds(&self, _start: u64, _size: usize) -> bool {
        true
    }

    /// Return the stamp of this version of the value; None if versions cannot be distinguished.
    ///
    /// # Errors
    /// If the system fails.
    fn stamp(&self) -> Result<Option<Stamp>> {
        Ok(None)
    }

    /// Return an object that must live as long as the stamp is compared.
    fn hold(&self) -> Option<Hold> {
        None
    }
}

/// Keys and values. A missing key is not an error.
pub trait Store: Send + Sync {
    /// Open the value of a key; None if there is no such key.
    ///
    /// # Errors
    /// If the system fails, or the key is one for the store in Python.
    fn open(&self, key: &str) -> Result<Option<Box<dyn Value + '_>>>;

    /// Return how many values of about `nbytes` should be opened by one call, because calls are slow; None if each value should
    /// be opened by itself.
    fn at_once(&self, _nbytes: usize) -> Option<usize> {
        None
    }

    /// Open the values of several keys.
    fn open_many(&self, keys: &[String]) -> Vec<Result<Option<Box<dyn Value + '_>>>> {
        keys.iter().map(|key| self.open(key)).collect()
    }

    /// Run `work`, which calls this store many times, on this thread.
    fn attached(&self, work: &mut (dyn FnMut() + Send)) {
        work();
    }

    /// Return how many requests to send at once; 1 if each is answered immediately.
    fn concurrency(&self) -> usize {
        1
    }

    /// Return how many chunks may be in memory at once while they are fetched or stored.
    fn most_in_flight(&self) -> usize {
        usize::MAX
    }

    /// Whether a part of a value can be written: while [`Store::locked`] runs, nothing else changes the value.
    fn changes_parts(&self) -> bool {
        true
    }

    /// Whether reading parts of a value costs less than reading the whole value, and all parts are of the same version.
    fn reads_parts(&self) -> bool {
        true
    }

    /// Replace the contents of `into` by the value of a key; return false if there is no such key.
    ///
    /// `hint` is the probable size of the value. If it is right, some stores need fewer system calls. A value of more than `most`
    /// bytes is not read.
    ///
    /// # Errors
    /// If the system fails, or the key is one for the store in Python; then `into` holds anything.
    fn read_all(&self, key: &str, hint: usize, most: usize, into: &mut Vec<u8>) -> Result<bool> {
        let _ = hint;
        into.clear();
        let Some(value) = self.open(key)? else {
            return Ok(false);
        };
        if let Some(bytes) = value.bytes() {
            into.extend_from_slice(bytes);
        } else {
            let size = usize::try_from(value.size()?).map_err(|_| Error::broken("larger than memory"))?;
            if size > most {
                return Err(Error::broken("larger than it may be"));
            }
            into.try_reserve_exact(size).map_err(|_| Error::broken("larger than memory"))?;
            into.resize(size, 0);
            let read = value.read_at(0, into)?;
            into.truncate(read);
        }
        Ok(true)
    }

    /// Copy the value of a key into `out`, as far as there is room, and return the size of the value. If the value is smaller
    /// than `out`, the rest of `out` may hold anything. Return None if there is no such key.
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

    /// Make `data` the value of a key. Readers see either the old or the new value, never a part of it.
    ///
    /// # Errors
    /// If the system fails. Then the old value is unchanged, and there are no temporary files.
    fn set(&self, key: &str, data: &[u8]) -> Result<()>;

    /// Make `data` the value of a key that readers ask for when a document is stored that says so. Until then, a writer that
    /// is killed may leave a part of it.
    ///
    /// # Errors
    /// Those of `set`.
    fn set_unseen(&self, key: &str, data: &[u8]) -> Result<()> {
        self.set(key, data)
    }

    /// Replace the value of a key by one of the same size that differs in a few places, without reading the others. Return false
    /// if that is not possible: then nothing has changed. The key must be locked.
    ///
    /// # Errors
    /// Those of `patch`, and if the system fails.
    fn patch(&self, key: &str, patch: &mut Patch<'_>) -> Result<bool> {
        let _ = (key, patch);
        Ok(false)
    }

    /// Remove a key. A missing key is not an error.
    ///
    /// # Errors
    /// If the system fails.
    fn delete(&self, key: &str) -> Result<()>;

    /// Run `change` while the key is locked against other threads and processes.
    ///
    /// `waiting` is called again and again while others hold the lock; if it returns an error, this method returns it. A thread
    /// that already holds the lock would wait for ever.
    ///
    /// # Errors
    /// Those of `change` and of `waiting`, and if the key cannot be locked.
    fn locked(&self, key: &str, waiting: &dyn Fn() -> Result<()>, change: &mut Change<'_>) -> Result<()>;
}
