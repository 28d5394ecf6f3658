//! Room for what libraries write: buffers that grow without being cleared first, and that may fail to.

use std::mem::MaybeUninit;

use crate::error::{Error, Result};

/// Empty `out` and make room for `size` bytes.
///
/// # Errors
/// If there is no memory for so many.
pub fn clear(out: &mut Vec<u8>, size: usize) -> Result<()> {
    out.clear();
    out.try_reserve(size).map_err(|_| Error::refused(format!("no memory for {size} bytes")))
}

/// Put what `decode` makes into `out`, giving it more and more room until it says that it is enough.
///
/// `decode` returns how many bytes it wrote, None if there was not enough room; `guess` says where to begin, and
/// it is never given more than `limit`.
///
/// # Errors
/// If `decode` fails, or more than `limit` bytes are needed.
#[allow(unsafe_code)]
pub fn grow(
    out: &mut Vec<u8>,
    guess: usize,
    limit: usize,
    mut decode: impl FnMut(&mut [MaybeUninit<u8>]) -> Result<Option<usize>>,
) -> Result<()> {
    let mut size = guess.min(limit);
    loop {
        clear(out, size)?;
        let room = &mut out.spare_capacity_mut()[..size];
        if let Some(written) = decode(room)? {
            assert!(written <= size, "more was written than there was room for");
            // SAFETY: `decode` says that it filled so many, and there was room for them.
            unsafe { out.set_len(written) };
            return Ok(());
        }
        if size == limit {
            return Err(Error::broken(format!("more than {limit} bytes")));
        }
        size = size.saturating_mul(2).clamp(64, limit);
    }
}
