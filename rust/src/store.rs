//! Where chunks are kept: keys and bytes.

use crate::error::Result;

/// What changes whenever a value does.
pub type Stamp = [u64; 5];

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

    /// What tells this version of the value from all others; None if nothing does.
    ///
    /// # Errors
    /// If the system fails.
    fn stamp(&self) -> Result<Option<Stamp>> {
        Ok(None)
    }
}

/// Keys and values. A key that is not there is ordinary.
pub trait Store: Send + Sync {
    /// Open the value of a key; None if there is no such key.
    ///
    /// # Errors
    /// If the system fails, or the key is one for the store in Python.
    fn open(&self, key: &str) -> Result<Option<Box<dyn Value + '_>>>;

    /// Open the values of several keys.
    ///
    /// # Errors
    /// If one of them cannot be opened, all fail.
    fn open_many(&self, keys: &[String]) -> Result<Vec<Option<Box<dyn Value + '_>>>> {
        keys.iter().map(|key| self.open(key)).collect()
    }

    /// Make `data` the value of a key: seen by others whole or not at all.
    ///
    /// # Errors
    /// If the system fails; then the old value is as it was, and nothing is left behind.
    fn set(&self, key: &str, data: &[u8]) -> Result<()>;

    /// Remove a key; one that is not there counts as removed.
    ///
    /// # Errors
    /// If the system fails.
    fn delete(&self, key: &str) -> Result<()>;

    /// Keep all others who lock the key out while `change` runs, in this process and in others.
    ///
    /// # Errors
    /// Those of `change`, and if the key cannot be locked.
    fn locked(&self, key: &str, change: &mut dyn FnMut() -> Result<()>) -> Result<()>;
}
