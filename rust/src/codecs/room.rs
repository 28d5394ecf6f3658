//! Room for what libraries write: buffers that grow without being cleared first, and that may fail to.

use std::mem::MaybeUninit;

use crate::error::{Error, Result};

/// Empty `out` and make room for `size` bytes.
///
/// # Errors
/// If there is not enough memory.
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
            // SAFETY: `decode` returned how many bytes it filled, and there was room for them.
            unsafe { out.set_len(written) };
            return Ok(());
        }
        if size == limit {
            return Err(Error::broken(format!("more than {limit} bytes")));
        }
        size = size.saturating_mul(2).max(64).min(limit);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Kind;

    /// Put 50 bytes into `out`.
    fn grow_to_fifty(guess: usize, limit: usize, out: &mut Vec<u8>) -> Result<()> {
        grow(out, guess, limit, |room| {
            assert!(room.len() <= limit);
            if room.len() < 50 {
                return Ok(None);
            }
            room[..50].fill(MaybeUninit::new(7));
            Ok(Some(50))
        })
    }

    #[test]
    fn any_guess_leads_to_enough_room() {
        for (guess, limit) in [(0, 50), (0, 63), (0, 64), (1, 51), (50, 50), (49, 1000), (usize::MAX, 60)] {
            let mut out = vec![1; 3];
            grow_to_fifty(guess, limit, &mut out).expect("enough room");
            assert_eq!(out, [7; 50], "{guess} {limit}");
        }
    }

    #[test]
    fn there_is_never_more_room_than_the_limit() {
        for (guess, limit) in [(0, 0), (0, 1), (100, 0), (10, 49), (usize::MAX, 49)] {
            let error = grow_to_fifty(guess, limit, &mut Vec::new()).expect_err("not enough room");
            assert_eq!(error.kind, Kind::Broken, "{guess} {limit}");
        }
    }

    #[test]
    fn room_that_no_machine_has_is_refused() {
        assert_eq!(clear(&mut Vec::new(), usize::MAX).expect_err("no memory").kind, Kind::Refused);
    }
}
