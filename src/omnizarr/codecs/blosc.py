"""blosc: blocks that are shuffled and compressed, as C-Blosc 1 writes them.

Configuration: ``cname`` (blosclz, lz4, lz4hc, snappy, zlib, zstd), ``clevel`` 0 to 9, ``shuffle`` (noshuffle,
shuffle, bitshuffle; numcodecs writes 0, 1, 2, and -1 for automatic), ``typesize``
(item size if missing), ``blocksize`` (0: the library chooses). Decoding needs none of them.
Agrees with numcodecs and zarr-python. At most 2 GiB can be encoded at once. Snappy can be encoded only if numcodecs has
been built with it; it is decoded without, and so is what zarr 1.1 wrote with Zstandard 0.7 (see `blosc_frames`).

Spec: Zarr v3, "Blosc codec".
"""

from __future__ import annotations

from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any, Final

from omnizarr.codecs import blosc_frames
from omnizarr.codecs.compiled import Compiled, decompress_by
from omnizarr.codecs.configuration import REQUIRED, Fields
from omnizarr.codecs.contract import Buffer, BytesSpec, Configuration, Description
from omnizarr.codecs.record import ALL, B2B, Filter, Name, Parameters, Record, between, brief, integer, with_level
from omnizarr.codecs.streams import Compressor, check_size
from omnizarr.errors import ChunkError, ChunkSizeError, CodecError
from omnizarr.model import JSON, Named

_FIELDS: Final = ("cname", "clevel", "shuffle", "typesize", "blocksize")
COMPRESSORS: Final = ("blosclz", "lz4", "lz4hc", "snappy", "zlib", "zstd")
NEWEST_COMPRESSOR: Final = COMPRESSORS[-1]
"""Default of zarr 1.1 and later."""
SHUFFLES: Final = ("noshuffle", "shuffle", "bitshuffle")
"""Names of shuffles in v3, by their numbers in v2."""
_AUTOMATIC: Final = -1
_HEADER: Final = blosc_frames.HEADER
_FORMAT: Final = 2
LARGEST: Final = 2**31 - 1 - _HEADER
MAX_TYPESIZE: Final = 255
_SPEC: Final = 'Zarr v3, "Blosc codec"'


def _of_native(native: Any) -> Any:
    def compress(data: Buffer, cname: bytes, clevel: int, shuffle: int, blocksize: int, typesize: int) -> Buffer:
        return native.encode(("blosc", cname.decode(), clevel, shuffle, typesize, blocksize), data)  # type: ignore[no-any-return]

    return SimpleNamespace(
        compress=compress,
        decompress=decompress_by(native, ("blosc", "lz4", 5, 1, 1, 0)),
        list_compressors=lambda: [name for name in COMPRESSORS if name != "snappy"],
    )


blosc: Final[Any] = Compiled("blosc", _of_native)


@dataclass(frozen=True, slots=True)
class Blosc(Compressor):
    """C-Blosc 1."""

    cname: str
    clevel: int
    shuffle: int
    typesize: int
    blocksize: int
    decoded: BytesSpec

    def describe_native(self, _spec: BytesSpec) -> Description | None:
        """Return what the native engine takes; see `omnizarr.codecs.chain.describe_chain`."""
        return "blosc", self.cname, self.clevel, self.shuffle, self.typesize, self.blocksize

    def encode(self, data: Buffer) -> Buffer:
        """Return one Blosc buffer."""
        if len(data) > LARGEST:
            raise CodecError(
                "Blosc cannot encode this many bytes at once", found=f"{len(data)} bytes",
                expected=f"at most {LARGEST} bytes", remedy="choose smaller chunks or another compressor",
            )  # fmt: skip
        try:
            return blosc.compress(  # type: ignore[no-any-return]
                data, self.cname.encode(), self.clevel, self.shuffle, self.blocksize, self.typesize
            )
        except (RuntimeError, ValueError) as error:
            raise CodecError(f"cannot encode: {error}", found=self.cname) from error

    def decode(self, data: Buffer) -> Buffer:
        """Return the content of the buffer."""
        size = _size(data)
        check_size(size, self.decoded)
        return _run(data, size, None) if size else b""

    def decode_into(self, data: Buffer, out: memoryview) -> None:
        """Fill `out` with the content of the buffer."""
        size = _size(data)
        check_size(size, BytesSpec(len(out)))
        if size:
            _run(data, size, out)


def _size(data: Buffer) -> int:
    """Return the size in the header, after checking everything that the library would trust."""
    if len(data) < _HEADER:
        raise ChunkSizeError("too short for Blosc", found=f"{len(data)} bytes", expected=f"at least {_HEADER} bytes")
    if data[0] != _FORMAT:
        raise ChunkError("not the format of Blosc 1", found=f"version {data[0]}", expected=f"version {_FORMAT}")
    size, block, stored = (int.from_bytes(data[at : at + 4], "little") for at in (4, 8, 12))
    if stored > len(data):
        raise ChunkSizeError("the compressed bytes are cut off", found=f"{len(data)} bytes", expected=f"{stored} bytes")
    if stored < _HEADER or size > LARGEST or (size and not 0 < block <= size) or data[3] == 0:
        raise ChunkError("the Blosc header is broken", found=bytes(data[:_HEADER]).hex())
    return size


def _run(data: Buffer, size: int, out: memoryview | None) -> Buffer:
    if blosc_frames.is_needed(data, has_snappy="snappy" in blosc.list_compressors()):
        out = memoryview(bytearray(size)) if out is None else out
        blosc_frames.decode_into(data, out)
        return out
    try:
        return blosc.decompress(data, out)  # type: ignore[no-any-return]
    except (RuntimeError, ValueError, TypeError, MemoryError) as error:
        raise ChunkError(f"the compressed bytes are broken: {error}") from error


def bind(configuration: Configuration, decoded: BytesSpec) -> Blosc:
    """Return the codec of Zarr v3."""
    fields = Fields(configuration, _FIELDS, _SPEC)
    return _bind(fields, decoded, REQUIRED)


def bind_numcodecs(configuration: Configuration, decoded: BytesSpec) -> Blosc:
    """Return the codec of numcodecs."""
    return _bind(Fields(configuration, _FIELDS), decoded, "lz4")


def _bind(fields: Fields, decoded: BytesSpec, cname: str) -> Blosc:
    cname = fields.choice("cname", {name: name for name in COMPRESSORS}, cname)
    shuffle = _shuffle(fields, decoded.item_size)
    typesize = fields.integer("typesize", None, 0) if fields.has("typesize") else 0
    typesize = typesize or decoded.item_size
    return Blosc(
        cname=cname,
        clevel=fields.integer("clevel", 5, 0, 9),
        shuffle=shuffle,
        # The library treats larger items as bytes.
        typesize=typesize if typesize <= MAX_TYPESIZE else 1,
        blocksize=fields.integer("blocksize", 0, 0, LARGEST),
        decoded=decoded,
    )


def _shuffle(fields: Fields, item_size: int) -> int:
    value = fields.raw("shuffle", 1)
    if isinstance(value, str):
        return fields.choice("shuffle", {word: number for number, word in enumerate(SHUFFLES)})
    numbers = (_AUTOMATIC, *range(len(SHUFFLES)))
    if isinstance(value, bool) or value not in numbers:
        raise fields.reject("shuffle", "unknown 'shuffle'", value, f"one of {', '.join(map(repr, SHUFFLES))}")
    if value == _AUTOMATIC:
        return 2 if item_size == 1 else 1
    return int(value)


def named(cname: JSON, clevel: JSON, shuffle: str, item_size: int, blocksize: JSON = 0) -> Named:
    """Return Blosc as documents of v3 have it, for items of this size."""
    typesize = item_size if 0 < item_size <= MAX_TYPESIZE else 1
    configuration = {"cname": cname, "clevel": clevel, "shuffle": shuffle, "typesize": typesize}
    return Named("blosc", {**configuration, "blocksize": blocksize})


def _from_v2(given: Parameters, item_size: int) -> Named | None:
    shuffle = given.get("shuffle", 1)
    if shuffle == _AUTOMATIC:
        shuffle = 2 if item_size == 1 else 1
    if not given.keys() <= set(_FIELDS) or type(shuffle) is not int or not 0 <= shuffle < len(SHUFFLES):
        return None
    found = named(
        given.get("cname", "lz4"), given.get("clevel", 5), SHUFFLES[shuffle], item_size, given.get("blocksize", 0)
    )
    typesize = given.get("typesize")
    return Named("blosc", {**found.configuration, "typesize": typesize}) if typesize else found


def _to_v2(given: Parameters) -> dict[str, JSON] | None:
    if given.get("shuffle") not in SHUFFLES:
        return None
    return {
        "cname": given.get("cname"),
        "clevel": given.get("clevel"),
        "shuffle": SHUFFLES.index(given["shuffle"]),
        "blocksize": given.get("blocksize", 0),
    }


def _from_hdf5(parameters: tuple[int, ...], _item_size: int) -> dict[str, JSON]:
    # the filter finds out revision, format and type size itself; ncdump shows zeros
    block_size, level, shuffle, compressor = parameters[3:]
    return {
        "cname": COMPRESSORS[between("the compressor of blosc", compressor, 0, len(COMPRESSORS) - 1)],
        "clevel": between("the level of blosc", level, 0, 9),
        "shuffle": between("the shuffle of blosc", shuffle, 0, 2),
        "blocksize": block_size,
    }


def _to_hdf5(given: Parameters) -> tuple[int, ...]:
    name = given.get("cname", "lz4")
    compressor = COMPRESSORS.index(name) if name in COMPRESSORS else 1
    numbers = (integer(given, "blocksize", 0), integer(given, "clevel", 5), max(integer(given, "shuffle", 1), 0))
    return (0, 0, 0, *numbers, compressor)


def _words(given: Parameters) -> str:
    shuffle = given.get("shuffle")
    shuffled = {"shuffle": ", bytes shuffled", "bitshuffle": ", bits shuffled"}
    word = SHUFFLES[shuffle] if shuffle in (1, 2) else str(shuffle)
    name = f"blosc {brief(given.get('cname', ''))}"
    return f"{with_level(name, 'clevel')(given)}{shuffled.get(word, '')}"


CODECS = (
    Record(
        id="blosc", kind=B2B,
        names={
            "blosc": Name(bind, ALL, "core", ("clevel", "shuffle", "typesize", "blocksize")),
            "numcodecs.blosc": Name(bind_numcodecs, required=("cname", "clevel", "shuffle")),
        },
        parameters={"cname": str, "clevel": int, "shuffle": object, "typesize": int, "blocksize": int},
        note="numcodecs", is_compiled=True, native=True, compresses=True, words=_words,
        decodes_with={"cname": "lz4", "clevel": 1, "shuffle": "noshuffle", "blocksize": 0}, from_v2=_from_v2,
        to_v2=_to_v2, hdf5=Filter(32001, 7, _from_hdf5, _to_hdf5),
    ),
)  # fmt: skip
