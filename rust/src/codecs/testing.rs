//! What the tests of all codecs do.

use super::Codec;
use crate::error::{Kind, Result};

/// Bytes from hexadecimal digits.
pub fn hex(digits: &str) -> Vec<u8> {
    let digit = |byte: u8| u8::try_from(char::from(byte).to_digit(16).expect("a hexadecimal digit")).expect("a byte");
    digits.as_bytes().chunks_exact(2).map(|pair| digit(pair[0]) << 4 | digit(pair[1])).collect()
}

/// Text that compresses well.
pub fn text() -> Vec<u8> {
    b"omnizarr reads chunks, ".repeat(5)
}

/// Bytes that look like numbers that grow, with some noise.
pub fn numbers(size: usize) -> Vec<u8> {
    let mut state = 1_u32;
    let mut noise = move || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        state >> 24
    };
    let bytes = |i: u32| (i / 3 * 256 + if i % 64 < 48 { 0 } else { noise() }).to_le_bytes();
    (0..).flat_map(bytes).take(size).collect()
}

/// Decode into `size` bytes in every way that there is, which must agree.
pub fn decoded(codec: &dyn Codec, data: &[u8], size: usize) -> Result<Vec<u8>> {
    let mut out = vec![0xa5; size];
    let result = codec.decode(data, &mut out);
    let mut any = vec![1, 2, 3];
    let result_any = codec.decode_any(data, size, &mut any);
    match (&result, result_any) {
        (Ok(()), Ok(())) => assert_eq!(any, out),
        (Ok(()), Err(error)) => assert_eq!(error.kind, Kind::Refused, "decode takes what decode_any finds broken"),
        (Err(_), any_result) => {
            assert!(any_result.is_err() || any.len() < size, "decode refuses what decode_any takes");
        }
    }
    result.map(|()| out)
}

/// Check that `data` decodes to `expected`, and neither into less room nor into more.
pub fn check(codec: &dyn Codec, data: &[u8], expected: &[u8]) {
    let size = expected.len();
    assert_eq!(decoded(codec, data, size).expect("sound bytes"), expected);
    assert!(codec.decode(data, &mut vec![0; size + 1]).is_err(), "too few bytes are not an error");
    let mut any = Vec::new();
    codec.decode_any(data, size + 100, &mut any).expect("sound bytes");
    assert_eq!(any, expected);
    if size > 0 {
        assert!(codec.decode(data, &mut vec![0; size - 1]).is_err(), "too many bytes are not an error");
        assert!(codec.decode_any(data, size - 1, &mut any).is_err(), "more bytes than the limit are not an error");
    }
}

/// Check that `data`, cut off anywhere, does not decode to `size` bytes.
pub fn check_cut_off(codec: &dyn Codec, data: &[u8], size: usize) {
    for end in 0..data.len() {
        assert!(decoded(codec, &data[..end], size).is_err(), "cut off at {end}");
    }
}

/// Check that what `codec` encodes decodes to the same, for bytes of several sizes; `out` is used again and again.
pub fn check_round_trips(codec: &dyn Codec) {
    let mut encoded = vec![7; 11];
    for size in [0, 1, 2, 15, 16, 17, 127, 128, 1001, 4096, 70_001] {
        let data = numbers(size);
        codec.encode(&data, &mut encoded).expect("bytes that can be encoded");
        check(codec, &encoded, &data);
    }
}
