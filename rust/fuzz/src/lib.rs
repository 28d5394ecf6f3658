//! What fuzzing checks, one function per target.
//!
//! An input is four bytes, little-endian, of which the lower bits say how many bytes are to be decoded, and then the
//! bytes that are decoded. Whatever these are, nothing panics and nothing is written outside; the same bytes always
//! decode to the same; and all ways of decoding agree.

use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash, Hasher};

use omnizarr_native::chain::shard::Shard;
use omnizarr_native::chain::{Chain, Policy, Scratch, Serializer};
use omnizarr_native::codecs::bind::{Argument, filter};
use omnizarr_native::codecs::blosc::Blosc;
use omnizarr_native::codecs::checksums::{Checksum, Kind};
use omnizarr_native::codecs::deflate::{Gzip, Zlib};
use omnizarr_native::codecs::elements::Elements;
use omnizarr_native::codecs::lz4::Lz4;
use omnizarr_native::codecs::shuffle::Shuffle;
use omnizarr_native::codecs::zstd::Zstd;
use omnizarr_native::codecs::{Codec, Filter};
use omnizarr_native::error;
use omnizarr_native::plan::{Axis, Places, Selection};
use omnizarr_native::scatter::{Layout, Memory};
use omnizarr_native::store::Value;

/// Bytes before the data of an input.
pub const HEADER: usize = 4;

/// Bytes that an input can ask for.
pub const LARGEST: usize = (1 << 16) - 1;

/// Bytes on both sides of a buffer, which must stay as they are.
const FENCE: usize = 64;

/// A target as the driver knows it.
pub struct Target {
    /// What it is called.
    pub name: &'static str,
    /// Try one input. Returns a number that is the same for inputs with the same fate.
    pub run: fn(&[u8]) -> u64,
    /// Sound inputs, from which others are made.
    pub seeds: fn() -> Vec<Vec<u8>>,
}

/// All targets; each is a file in `fuzz_targets/`, too.
pub const TARGETS: &[Target] = &[
    Target { name: "gzip", run: gzip, seeds: gzip_seeds },
    Target { name: "zlib", run: zlib, seeds: zlib_seeds },
    Target { name: "zstd", run: zstd, seeds: zstd_seeds },
    Target { name: "lz4", run: lz4, seeds: lz4_seeds },
    Target { name: "blosc", run: blosc, seeds: blosc_seeds },
    Target { name: "checksums", run: checksums, seeds: checksums_seeds },
    Target { name: "shuffle", run: shuffle, seeds: shuffle_seeds },
    Target { name: "filters", run: filters, seeds: filters_seeds },
    Target { name: "shard", run: shard, seeds: shard_seeds },
];

/// Decode gzip members.
pub fn gzip(input: &[u8]) -> u64 {
    decode(&Gzip::new(6).expect("a level"), input)
}

/// Decode a zlib stream.
pub fn zlib(input: &[u8]) -> u64 {
    decode(&Zlib::new(6).expect("a level"), input)
}

/// Decode Zstandard frames.
pub fn zstd(input: &[u8]) -> u64 {
    decode(&Zstd::new(0, false), input)
}

/// Decode an LZ4 block.
pub fn lz4(input: &[u8]) -> u64 {
    decode(&Lz4::new(1), input)
}

/// Decode a Blosc buffer, whole and in parts.
pub fn blosc(input: &[u8]) -> u64 {
    decode(&Blosc::new("lz4", 5, 1, 4, 0).expect("a configuration"), input)
}

/// Verify checksums; the last byte of the size says which.
pub fn checksums(input: &[u8]) -> u64 {
    let which = input.get(3).copied().unwrap_or_default();
    let kind = [Kind::Crc32c, Kind::Crc32, Kind::Adler32, Kind::Fletcher32][usize::from(which & 3)];
    decode(&Checksum::new(kind, which & 4 != 0), input)
}

/// Undo a byte shuffle; the last byte of the size says of how many bytes.
pub fn shuffle(input: &[u8]) -> u64 {
    decode(&Shuffle::new(usize::from(input.get(3).copied().unwrap_or_default())), input)
}

/// Elements that each filter is given.
const ELEMENTS: usize = 24;

/// The filters, and how many bytes they decode to.
fn all_filters() -> Vec<(Box<dyn Filter>, usize)> {
    use Argument::{Bool, Float, Int, Text};
    let count = || Int(24);
    let text = |name: &str| Text(name.into());
    let types = |decoded: &str, encoded: &str| [count(), text(decoded), text(encoded)];
    let mut filters = Vec::new();
    let mut add = |name: &str, item: usize, arguments: Vec<Argument>| {
        filters.push((filter(name, &arguments).expect("a filter"), item * ELEMENTS));
    };
    for (decoded, encoded, item) in [("<i4", "<i2", 4), (">f8", "<f4", 8), ("<f4", ">i4", 4), ("|u1", "<u8", 1)] {
        add("astype", item, types(decoded, encoded).to_vec());
    }
    for (decoded, encoded, item) in [("<i4", "<i2", 4), (">f8", "<f8", 8), ("|u1", "|u1", 1), ("<i8", ">i8", 8)] {
        add("delta", item, types(decoded, encoded).to_vec());
    }
    for (decoded, encoded, item) in [("<f8", "|u1", 8), ("<f4", "<i2", 4)] {
        add("fixedscaleoffset", item, [&types(decoded, encoded)[..], &[Float(1.5), Float(10.0)]].concat());
    }
    add("quantize", 4, [&types("<f4", "<f4")[..], &[Float(8.0)]].concat());
    add("bitround", 4, vec![count(), Int(4), Bool(false), Int(23), Int(5)]);
    add("bitround", 8, vec![count(), Int(8), Bool(true), Int(52), Int(50)]);
    add("packbools", 1, vec![count()]);
    for padding in ["none", "first_byte", "last_byte"] {
        add("packbits", 1, vec![count(), Int(1), Bool(false), Int(0), Int(2), Bool(true), text(padding)]);
        add("packbits", 2, vec![count(), Int(2), Bool(true), Int(3), Int(14), Bool(false), text(padding)]);
    }
    filters
}

/// Undo and do a filter; the first byte of the size says which.
pub fn filters(input: &[u8]) -> u64 {
    let Some((header, data)) = input.split_first_chunk::<HEADER>() else { return 0 };
    let mut filters = all_filters();
    let number = usize::from(header[0]) % filters.len();
    let (filter, size) = filters.swap_remove(number);
    let mut data = data.to_vec();
    data.resize(filter.encoded_size(), 0xff);
    let (result, out) = fenced(size, 0xa5, |out| filter.decode(&data, out));
    let (again, same) = fenced(size, 0x5a, |out| filter.decode(&data, out));
    assert_eq!(result.is_ok(), again.is_ok());
    if result.is_ok() {
        assert_eq!(out, same, "some bytes were left as they had been");
    }
    data.resize(size, 0x7f);
    let (result, out) = fenced(filter.encoded_size(), 0xa5, |out| filter.encode(&data, out));
    let (again, same) = fenced(filter.encoded_size(), 0x5a, |out| filter.encode(&data, out));
    assert_eq!(result.is_ok(), again.is_ok());
    if result.is_ok() {
        assert_eq!(out, same, "some bytes were left as they had been");
    }
    fate(&result, &again, number, None)
}

/// Numbers of 16 bits in each chunk of a shard, and chunks in it.
const CHUNK: usize = 100;
const CHUNKS: usize = 5;

/// A value in memory, or one that has to be read.
struct Bytes<'a> {
    data: &'a [u8],
    is_read: bool,
}

impl Value for Bytes<'_> {
    fn bytes(&self) -> Option<&[u8]> {
        (!self.is_read).then_some(self.data)
    }

    fn size(&self) -> error::Result<u64> {
        Ok(self.data.len() as u64)
    }

    fn read_at(&self, start: u64, out: &mut [u8]) -> error::Result<usize> {
        let rest = usize::try_from(start).ok().and_then(|start| self.data.get(start..)).unwrap_or_default();
        let size = rest.len().min(out.len());
        out[..size].copy_from_slice(&rest[..size]);
        Ok(size)
    }
}

fn chain(shape: &[usize], item: usize, compressors: Vec<Box<dyn Codec>>) -> Chain {
    let layout = Layout::new(shape, &(0..shape.len()).collect::<Vec<_>>(), item).expect("a layout");
    let elements = Serializer::Elements(Elements::new(item, Vec::new()).expect("elements"));
    let fill = vec![0xee; item].into();
    Chain::new(layout, fill, Policy::default(), Vec::new(), elements, compressors).expect("codecs that fit")
}

/// A shard of which the lower bits of `which` say how it is made.
fn shard_of(which: u8) -> Shard {
    let inner: Vec<Box<dyn Codec>> = if which & 1 == 0 { Vec::new() } else { vec![Box::new(Lz4::new(1))] };
    let index: Vec<Box<dyn Codec>> =
        if which & 2 == 0 { Vec::new() } else { vec![Box::new(Checksum::new(Kind::Crc32c, false))] };
    let index = chain(&[CHUNKS, 2], 8, index);
    Shard::new(vec![CHUNKS], &[0], chain(&[CHUNK], 2, inner), index, which & 4 == 0).expect("a shard")
}

/// Read the index of a shard, then all of its chunks; the last byte of the size says how it is made.
#[allow(unsafe_code)]
pub fn shard(input: &[u8]) -> u64 {
    let Some((header, data)) = input.split_first_chunk::<HEADER>() else { return 0 };
    let which = header[3];
    let shard = shard_of(which);
    let value = Bytes { data, is_read: which & 8 != 0 };
    let mut scratch = Scratch::default();
    let entries = match shard.index_of(&value, &mut scratch) {
        Ok(entries) => entries,
        Err(error) => return fate(&Err(error), &Ok(()), 0, None),
    };
    assert_eq!(entries.len(), CHUNKS);
    for &(offset, size) in entries.iter().flatten() {
        assert!(offset + size as u64 <= data.len() as u64, "a chunk outside the shard");
    }
    let mut read = |byte: u8| {
        fenced(CHUNKS * CHUNK * 2, byte, |out| {
            // SAFETY: all elements lie inside `out`, which is used by nothing else meanwhile.
            let memory = unsafe { Memory::new(out.as_mut_ptr(), vec![CHUNKS * CHUNK], vec![2], 2) };
            let places = Places::first(CHUNKS * CHUNK);
            let selection = Selection::Mesh([Axis { inner: places.clone(), outer: places }].into_iter().collect());
            shard.read(&value, &entries, &selection, &memory, &mut scratch, None)
        })
    };
    let ((result, out), (again, same)) = (read(0xa5), read(0x5a));
    assert_eq!(result.is_ok(), again.is_ok());
    if result.is_ok() {
        assert_eq!(out, same, "some bytes were left as they had been");
    }
    fate(&result, &again, entries.iter().flatten().count(), None)
}

/// Decode in every way that there is, and compare.
fn decode(codec: &dyn Codec, input: &[u8]) -> u64 {
    let Some((header, data)) = input.split_first_chunk::<HEADER>() else { return 0 };
    let size = u32::from_le_bytes(*header) as usize & LARGEST;
    let (result, out) = fenced(size, 0xa5, |out| codec.decode(data, out));
    let mut any = Vec::new();
    let result_any = codec.decode_any(data, size, &mut any);
    match (&result, &result_any) {
        (Ok(()), Ok(())) => assert_eq!(any, out, "decode and decode_any differ"),
        (Ok(()), Err(error)) => assert_eq!(error.kind, error::Kind::Refused, "decode takes what decode_any does not"),
        (Err(_), Ok(())) => assert!(any.len() < size, "decode_any takes what decode does not"),
        (Err(_), Err(_)) => {}
    }
    if result.is_ok() {
        let (again, same) = fenced(size, 0x5a, |out| codec.decode(data, out));
        again.expect("what was decoded once");
        assert_eq!(same, out, "some bytes were left as they had been");
    }
    if let Some(view) = codec.decode_view(data) {
        match view {
            Ok(view) if view.len() == size => {
                assert_eq!(view, result.as_ref().map(|()| &out[..]).expect("as the view"));
            }
            _ => assert!(result.is_err(), "decode takes what decode_view does not"),
        }
    }
    let step = codec.part_size(data);
    assert_ne!(step, Some(0), "a part of no bytes");
    for (start, stop) in parts(size, step, data) {
        let (result_part, part) =
            fenced(stop - start, 0xc3, |out| codec.decode_part(data, size, start, out).unwrap_or(Ok(())));
        // A part may be sound where the whole is not, but not the other way round.
        if result.is_ok() && codec.decode_part(data, size, 0, &mut []).is_some() {
            result_part.expect("a part of what was decoded");
            assert_eq!(part, out[start..stop], "a part differs from the whole");
        }
    }
    fate(&result, &result_any, any.len(), step)
}

/// Some parts, at their usual places and at others.
fn parts(size: usize, step: Option<usize>, data: &[u8]) -> Vec<(usize, usize)> {
    let mut hasher = DefaultHasher::new();
    data.hash(&mut hasher);
    let random = hasher.finish();
    let place = |shift: u32| usize::try_from(random >> shift & 0xf_ffff).unwrap_or_default() % (size + 1);
    let (low, high) = (place(0).min(place(20)), place(0).max(place(20)));
    let mut parts = vec![(low, high), (0, low), (high, size), (low, (low + 1).min(size))];
    if let Some(step) = step {
        parts.extend((0..size).step_by(step).take(4).map(|start| (start, (start + step).min(size))));
    }
    parts
}

/// Call `fill` with a buffer of a size, full of `byte`, and check that it was the only one written to.
fn fenced<T>(size: usize, byte: u8, fill: impl FnOnce(&mut [u8]) -> T) -> (T, Vec<u8>) {
    let mut memory = vec![byte; FENCE + size + FENCE];
    let result = fill(&mut memory[FENCE..FENCE + size]);
    let is_whole = |fence: &[u8]| fence.iter().all(|&found| found == byte);
    assert!(is_whole(&memory[..FENCE]), "written before the buffer");
    assert!(is_whole(&memory[FENCE + size..]), "written behind the buffer");
    (result, memory[FENCE..FENCE + size].to_vec())
}

/// A number for what became of an input: errors tell much of the way that it took.
fn fate(result: &error::Result<()>, result_any: &error::Result<()>, size: usize, step: Option<usize>) -> u64 {
    let mut hasher = DefaultHasher::new();
    for result in [result, result_any] {
        // without the numbers in it
        let message = result.as_ref().err().map_or("", |error| &error.message);
        message.split(|c: char| c.is_ascii_digit()).collect::<String>().hash(&mut hasher);
    }
    (size.checked_ilog2(), step).hash(&mut hasher);
    hasher.finish()
}

/// The input that asks for `size` bytes.
fn input(size: usize, data: &[u8]) -> Vec<u8> {
    [&u32::try_from(size).expect("a small size").to_le_bytes(), data].concat()
}

/// Bytes of several sizes and kinds: equal ones, numbers that grow, noise.
fn samples() -> Vec<Vec<u8>> {
    let mut state = 1_u32;
    let mut noise = move || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        state.to_le_bytes()[3]
    };
    let mut samples = vec![Vec::new(), vec![7], vec![0; 300], vec![1; 5000]];
    for size in [17, 129, 600, 3001] {
        samples.push((0_u32..).flat_map(|i| (i / 3).to_le_bytes()).take(size).collect());
        samples.push((0..size).map(|_| noise()).collect());
        samples.push((0..size).map(|i| if i % 9 == 0 { noise() } else { b'a' }).collect());
    }
    samples
}

/// What codecs make of the samples.
fn encoded<'a>(codecs: impl IntoIterator<Item = &'a dyn Codec>) -> Vec<Vec<u8>> {
    let mut inputs = Vec::new();
    let mut out = Vec::new();
    for codec in codecs {
        for sample in samples() {
            codec.encode(&sample, &mut out).expect("bytes that can be encoded");
            inputs.push(input(sample.len(), &out));
        }
    }
    inputs
}

fn gzip_seeds() -> Vec<Vec<u8>> {
    let codecs = [0, 1, 6, 9].map(|level| Gzip::new(level).expect("a level"));
    let mut seeds = encoded(codecs.iter().map(|codec| codec as &dyn Codec));
    let mut out = Vec::new();
    codecs[1].encode(b"omnizarr", &mut out).expect("bytes");
    seeds.push(input(16, &out.repeat(2)));
    seeds.push(input(8, &[&out[..], &[0; 8]].concat()));
    // a header with extra bytes, a name and a comment, and one with a checksum
    seeds.push(input(8, &[&out[..3], &[0x1c], &out[4..10], b"\x02\0ab", b"name\0", b"comment\0", &out[10..]].concat()));
    seeds.push(input(8, &[&out[..3], &[0x02], &out[4..10], b"\x12\x34", &out[10..]].concat()));
    seeds
}

fn zlib_seeds() -> Vec<Vec<u8>> {
    let codecs = [0, 1, 6, 9].map(|level| Zlib::new(level).expect("a level"));
    encoded(codecs.iter().map(|codec| codec as &dyn Codec))
}

fn zstd_seeds() -> Vec<Vec<u8>> {
    let codecs = [Zstd::new(-5, false), Zstd::new(1, true), Zstd::new(3, false), Zstd::new(19, true)];
    let mut seeds = encoded(codecs.iter().map(|codec| codec as &dyn Codec));
    let mut out = Vec::new();
    codecs[1].encode(b"omnizarr reads omnizarr", &mut out).expect("bytes");
    let skippable = b"\x50\x2a\x4d\x18\x02\0\0\0ab";
    seeds.push(input(46, &[&out[..], skippable, &out[..], skippable].concat()));
    // a frame that does not state its size: a block as it is, one byte repeated, and an empty last block
    let silent = b"\x28\xb5\x2f\xfd\x00\x58\x18\0\0abc\x4a\0\0x\x01\0\0";
    seeds.push(input(12, silent));
    seeds.push(input(24, &silent.repeat(2)));
    seeds
}

fn lz4_seeds() -> Vec<Vec<u8>> {
    let codecs = [Lz4::new(1), Lz4::new(50)];
    encoded(codecs.iter().map(|codec| codec as &dyn Codec))
}

fn blosc_seeds() -> Vec<Vec<u8>> {
    let mut codecs = Vec::new();
    for name in ["blosclz", "lz4", "lz4hc", "zlib", "zstd"] {
        for shuffle in 0..3 {
            for (level, typesize, blocksize) in
                [(5, 4, 0), (9, 2, 512), (1, 3, 130), (5, 8, 1000), (5, 17, 0), (0, 1, 0)]
            {
                codecs.push(Blosc::new(name, level, shuffle, typesize, blocksize).expect("a configuration"));
            }
        }
    }
    encoded(codecs.iter().map(|codec| codec as &dyn Codec))
}

fn checksums_seeds() -> Vec<Vec<u8>> {
    let mut seeds = Vec::new();
    for which in 0..8 {
        let kind = [Kind::Crc32c, Kind::Crc32, Kind::Adler32, Kind::Fletcher32][usize::from(which & 3_u8)];
        let codec = Checksum::new(kind, which & 4 != 0);
        for mut seed in encoded([&codec as &dyn Codec]) {
            seed[3] = which;
            seeds.push(seed);
        }
    }
    seeds
}

fn shuffle_seeds() -> Vec<Vec<u8>> {
    let mut seeds = Vec::new();
    for item in [0, 1, 2, 3, 4, 8, 16, 255] {
        for sample in samples() {
            let mut seed = input(sample.len(), &sample);
            seed[3] = item;
            seeds.push(seed);
        }
    }
    seeds
}

fn filters_seeds() -> Vec<Vec<u8>> {
    let number_of = |number: usize| u8::try_from(number).expect("few filters");
    let samples = samples();
    let pairs = (0..all_filters().len()).flat_map(|number| samples.iter().map(move |sample| (number, sample)));
    pairs.map(|(number, sample)| [&[number_of(number), 0, 0, 0], &sample[..sample.len().min(400)]].concat()).collect()
}

fn shard_seeds() -> Vec<Vec<u8>> {
    let mut seeds = Vec::new();
    for which in 0..16 {
        let codec = Lz4::new(1);
        let mut chunks = Vec::new();
        let mut index = Vec::new();
        let index_size = 16 * CHUNKS + if which & 2 == 0 { 0 } else { 4 };
        let start = if which & 4 == 0 { 0 } else { index_size };
        for number in 0..CHUNKS {
            if number == 2 {
                index.extend([0xff; 16]);
                continue;
            }
            let chunk = vec![u8::try_from(number).expect("few chunks"); 2 * CHUNK];
            let mut encoded = chunk.clone();
            if which & 1 != 0 {
                codec.encode(&chunk, &mut encoded).expect("bytes");
            }
            index.extend(((start + chunks.len()) as u64).to_le_bytes());
            index.extend((encoded.len() as u64).to_le_bytes());
            chunks.extend(encoded);
        }
        if which & 2 != 0 {
            index.extend(Kind::Crc32c.of(&index).to_le_bytes());
        }
        let (first, last) = if which & 4 == 0 { (chunks, index) } else { (index, chunks) };
        seeds.push([&[0, 0, 0, which], &first[..], &last[..]].concat());
    }
    seeds
}
