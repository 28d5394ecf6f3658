//! The target `lz4`, for cargo-fuzz.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| {
    omnizarr_native_fuzz::lz4(input);
});
