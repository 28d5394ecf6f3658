"""Chains of codecs, bound once to a chunk's shape, data type and fill value, then run.

The chain looks up the codecs in the document, checks that each fits the next (array to array, then one array to
bytes, then bytes to bytes), and runs them: in order to encode, in reverse to decode. Errors name the codec.

Spec: Zarr v3 core, "Codecs", "Determination of encoded representations".
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Iterator, Sequence
from copy import deepcopy
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from omnizarr.codecs import registry
from omnizarr.codecs.contract import (
    AnyArray,
    ArraySpec,
    ArrayToArray,
    ArrayToBytes,
    Buffer,
    BytesSpec,
    BytesToBytes,
    Codec,
    DecodesPart,
    Description,
    Lossy,
    Reading,
    ReadsPart,
    Source,
    WritesPart,
)
from omnizarr.codecs.streams import limit_of, most_of, within
from omnizarr.codecs.transpose import Transpose
from omnizarr.errors import (
    ChunkError,
    ChunkNotFoundError,
    ChunkSizeError,
    CodecError,
    ConflictError,
    OmnizarrError,
    Remedy,
    Setting,
    UnknownCodecError,
)
from omnizarr.model import Named
from omnizarr.model.datatypes.json_values import NAME as JSON_VALUES

_SPEC = 'Zarr v3, "Codecs"'
_MOVERS = frozenset({"sharding_indexed", "transpose", "reshape", "singleton_dim", "zarrs.squeeze"})
"""Codecs that move elements, whatever these are."""


class _Stored(NamedTuple):
    """How elements of a type are stored that most codecs cannot store: the message if it is done otherwise."""

    by: frozenset[str]
    values: str
    codec: str
    details: str = ""


_STORED = {
    "optional": _Stored(
        _MOVERS | {"optional", "zarrs.optional"},
        "values that may be missing",
        "optional",
        ", with the codecs of masks and of values in its configuration",
    ),
    JSON_VALUES: _Stored(_MOVERS | {"vlen-utf8"}, "JSON values", "vlen-utf8"),
}
_WORD_DTYPES: dict[int, np.dtype[Any]] = {1: np.dtype("u1"), 2: np.dtype("u2"), 4: np.dtype("u4"), 8: np.dtype("u8")}

Compute: TypeAlias = Callable[..., Any]
"""Takes a number of stored bytes, a function that decodes them and its arguments, and returns its result."""


@dataclass(frozen=True, slots=True, eq=False)
class Chain:
    """The codecs of a chunk, bound to its shape, data type and fill value.

    Attributes
    ----------
    spec : ArraySpec
        The decoded chunk.
    encoded : BytesSpec
        The stored bytes.
    filters : tuple of (str, ArrayToArray)
    serializer : (str, ArrayToBytes)
    compressors : tuple of (str, BytesToBytes)
        The codecs in the order of encoding, with their names in the document.
    is_plain : bool
        Whether the bytes before compression are the memory of the C-contiguous array.
    is_raw : bool
        Whether the stored bytes are this memory: plain, and not compressed.
    decodes_part, reads_part : bool
        Whether decoding (reading) a part of the chunk costs less than all of it.
    writes_part : bool
        Whether the serializer changes a part of the chunk, and leaves the others as they are stored.
    most_stored : int
        How many bytes a stored chunk may have: a larger one is refused before it is read.
    left_out : tuple of str
        Unknown codecs that are not needed for reading.
    filling : Chain, optional
        The same chain, but with the fill value for missing inner chunks, if this one raises an error for them.
        Partial writes must read first, and an inner chunk may be missing.
    """

    spec: ArraySpec
    encoded: BytesSpec
    filters: tuple[tuple[str, ArrayToArray], ...]
    serializer: tuple[str, ArrayToBytes]
    compressors: tuple[tuple[str, BytesToBytes], ...]
    is_plain: bool
    is_raw: bool
    decodes_part: bool
    reads_part: bool
    writes_part: bool
    most_stored: int
    left_out: tuple[str, ...] = ()
    filling: Chain | None = None

    def encode(self, array: AnyArray) -> Buffer:
        """Return the stored form of a whole chunk.

        Raises
        ------
        CodecError
            If a codec cannot encode these values.
        UnknownCodecError
            If a codec was left out, because readers that know it would expect its result.
        """
        if self.left_out:
            raise UnknownCodecError("the codec is not known, so that nothing can be written", codec=self.left_out[0])
        name = ""
        try:
            for name, array_codec in self.filters:
                array = array_codec.encode(array)
            name, serializer = self.serializer
            data = serializer.encode(array)
            self._check_length(data)
        except OmnizarrError as error:
            raise error.add(codec=name)
        except (ValueError, TypeError, RuntimeError, OverflowError) as error:
            raise CodecError(f"cannot encode: {error}", codec=name) from error
        return self.compress(data)

    def _check_length(self, data: Buffer) -> None:
        """Raise CodecError if elements of variable length take more bytes than decompressors will accept."""
        if not self.compressors or self.spec.nbytes is not None:
            return
        most = self.serializer[1].encoded.max_nbytes
        if most is not None and len(data) > most:
            raise CodecError(
                "the elements of the chunk are too long to be read again",
                found=f"{len(data)} bytes",
                expected=f"at most {most} bytes",
                remedy=Remedy("choose smaller chunks, or no compressor")
                | Remedy("raise {setting} for all readers", setting=Setting("array.variable_chunk_bytes")),
            )

    def decode(self, data: Buffer) -> AnyArray:
        """Return the decoded chunk of `data`. It may be read-only, or a view of `data`.

        Raises ChunkError if `data` is broken.
        """
        return self._decode_tail(data, len(self.compressors))

    def decode_into(self, data: Buffer, out: AnyArray) -> None:
        """Set ``out[...]`` to the whole chunk, without an intermediate copy if possible.

        Raises ChunkError if `data` is broken; `out` may then hold anything.
        """
        if self.is_plain and out.flags.c_contiguous:
            self._fill(data, memory_of(out))
        elif self.decodes_part:
            self.decode_part(data, tuple([slice(0, length, 1) for length in self.spec.shape]), out)
        else:
            out[...] = self._decode_tail(data, len(self.compressors))

    def decompress(self, data: Buffer) -> Buffer:
        """Return the serialized chunk in the encoded bytes `data`. Raises ChunkError if `data` is broken."""
        name = ""
        try:
            for name, codec in reversed(self.compressors):
                data = codec.decode(data)
        except OmnizarrError as error:
            raise error.add(codec=name)
        except (ValueError, TypeError, RuntimeError, OverflowError, MemoryError) as error:
            raise ChunkError(f"cannot decode: {error}", codec=name) from error
        return data

    def compress(self, data: Buffer) -> Buffer:
        """Return the stored form of the serialized chunk `data`. Raises CodecError."""
        name = ""
        try:
            for name, codec in self.compressors:
                data = codec.encode(data)
        except OmnizarrError as error:
            raise error.add(codec=name)
        except (ValueError, TypeError, RuntimeError, OverflowError) as error:
            raise CodecError(f"cannot encode: {error}", codec=name) from error
        return data

    def decode_part(self, data: Buffer, selection: tuple[Any, ...], out: AnyArray) -> None:
        """Set ``out[...] = decoded[selection]``. Raises ChunkError if `data` is broken."""
        mapped = self._through_filters(selection, out) if self.decodes_part else None
        if mapped is None:
            out[...] = self._decode_tail(data, len(self.compressors))[selection]
            return
        data = self.decompress(data)
        name, serializer = self.serializer
        try:
            serializer.decode_part(data, *mapped)  # type: ignore[attr-defined]
        except OmnizarrError as error:
            raise error.add(codec=name)
        except (ValueError, TypeError, RuntimeError, OverflowError, MemoryError) as error:
            raise ChunkError(f"cannot decode: {error}", codec=name) from error

    def read(self, source: Source, selection: tuple[Any, ...], out: AnyArray, compute: Compute | None = None) -> bool:
        """Set ``out[...] = decoded[selection]``, fetching no more than needed.

        Returns False if nothing is stored. `out` is then unchanged, unless the chunk was deleted meanwhile. `compute`
        calls what decodes, with the number of encoded bytes.
        """
        is_pinned = getattr(source, "is_pinned", False)
        try:
            return drive(self.reading(selection, out, is_pinned=is_pinned), source, compute)
        except ConflictError:
            if not is_pinned:
                raise
        # The chunk was replaced meanwhile. One request for the whole chunk returns one version.
        return drive(self.reading_all(selection, out), source, compute)

    def reading(self, selection: tuple[Any, ...], out: AnyArray, *, is_pinned: bool = False) -> Reading:
        """Do the same as `read`, but let the caller fetch the bytes.

        `is_pinned`: all answers are from one version of the chunk. If that version no longer exists, the caller
        starts again with `reading_all`.
        """
        if self.reads_part:
            mapped = self._through_filters(selection, out)
            if mapped is not None:
                name, serializer = self.serializer
                try:
                    return (yield from serializer.reading(*mapped, is_pinned=is_pinned))  # type: ignore[attr-defined, no-any-return]
                except OmnizarrError as error:
                    raise error.add(codec=name)
        return (yield from self.reading_all(selection, out))

    def reading_all(self, selection: tuple[Any, ...], out: AnyArray) -> Reading:
        """Set ``out[...] = decoded[selection]`` from the whole stored chunk, in one request."""
        values = yield None
        if values is None:
            return False
        self.decode_part(values[0], selection, out)
        return True

    def write(self, old: Buffer | None, selection: tuple[Any, ...], value: AnyArray) -> Buffer | None:
        """Return the stored form of the chunk `old` with ``decoded[selection] = value``.

        `old` None means that nothing was stored; None is returned if nothing must be stored.
        """
        if self.writes_part:
            mapped = self._through_filters(selection, value)
            if mapped is not None:
                before = None if old is None else self.decompress(old)
                name, serializer = self.serializer
                try:
                    new: Buffer | None = serializer.write(before, *mapped)  # type: ignore[attr-defined]
                    if new is None:
                        return None
                    self._check_length(new)
                except OmnizarrError as error:
                    raise error.add(codec=name)
                return self.compress(new)
        array = self.empty() if old is None else (self.filling or self).decode(old)
        if not array.flags.writeable or array.base is not None:
            array = array.copy()
        array[selection] = value
        return self.encode_unless_empty(array)

    def encode_unless_empty(self, array: AnyArray) -> Buffer | None:
        """Return the stored form of a whole chunk, or None if it need not be stored."""
        if not self.spec.policy.write_empty_chunks and self.is_empty(array):
            return None
        return self.encode(array)

    def empty(self) -> AnyArray:
        """Return a new chunk that contains only the fill value."""
        array = np.empty(self.spec.shape, dtype=self.spec.dtype)
        set_fill(array, self.spec)
        return array

    def is_empty(self, array: AnyArray) -> bool:
        """Return whether `array` contains only the fill value, bit for bit."""
        return holds_only(array, self.spec)

    def fill_missing(self, out: AnyArray) -> None:
        """Set `out` to the fill value. Raises ChunkNotFoundError if the array was opened with ``missing="error"``."""
        if self.spec.policy.missing == "error":
            raise ChunkNotFoundError(
                "the chunk is not stored",
                remedy=Remedy("open with {missing} to read it as the fill value", missing="fill"),
            )
        set_fill(out, self.spec)

    def _decode_tail(self, data: Buffer, compressors: int) -> AnyArray:
        """Undo the first compressors, up to this number."""
        name = ""
        try:
            for name, bytes_codec in self.compressors[compressors - 1 :: -1] if compressors else ():
                data = bytes_codec.decode(data)
            name, serializer = self.serializer
            array = serializer.decode(data)
            for name, array_codec in reversed(self.filters):
                array = array_codec.decode(array)
        except OmnizarrError as error:
            raise error.add(codec=name)
        except (ValueError, TypeError, RuntimeError, OverflowError, MemoryError) as error:
            raise ChunkError(f"cannot decode: {error}", codec=name) from error
        return array

    def _fill(self, data: Buffer, out: memoryview) -> None:
        """Decode a plain chunk into memory."""
        name = self.serializer[0]
        try:
            for position in range(len(self.compressors) - 1, -1, -1):
                name, codec = self.compressors[position]
                # Not `isinstance`, which takes as long for a protocol as decoding a small chunk.
                if position == 0 and (decode_into := getattr(codec, "decode_into", None)) is not None:
                    decode_into(data, out)
                    return
                data = codec.decode(data)
        except OmnizarrError as error:
            raise error.add(codec=name)
        except (ValueError, TypeError, RuntimeError, OverflowError, MemoryError) as error:
            raise ChunkError(f"cannot decode: {error}", codec=name) from error
        if len(data) != len(out):
            raise ChunkSizeError(
                "the chunk has the wrong size",
                codec=self.serializer[0],
                found=f"{len(data)} bytes",
                expected=f"{len(out)} bytes",
            )
        out[:] = data

    def _through_filters(self, selection: tuple[Any, ...], array: AnyArray) -> tuple[tuple[Any, ...], AnyArray] | None:
        """Return selection and array as seen after the filters, or None if they are unknown."""
        for _, codec in self.filters:
            if not isinstance(codec, Transpose):
                return None
            mapped = codec.map_selection(selection, array)
            if mapped is None:
                return None
            selection, array = mapped
        return selection, array


def bind(codecs: Sequence[Named], spec: ArraySpec) -> Chain:
    """Return the chain of `codecs` for chunks like `spec`. Unknown codecs that are not needed are left out.

    Raises
    ------
    UnknownCodecError
        If a needed codec is unknown.
    CodecError
        If a codec has the wrong position for its kind, or does not fit the one before it.
    """
    bound: list[tuple[str, Codec]] = []
    left_out: list[str] = []
    here: ArraySpec | BytesSpec = spec
    most = most_of(spec)
    for position, named in enumerate(codecs):
        try:
            codec = _bind_one(named, here, position)
        except UnknownCodecError:
            if named.must_understand:
                raise
            left_out.append(named.name)
            continue
        bound.append((named.name, codec))
        try:
            here = within(codec.encoded, most)
        except CodecError as error:
            raise error.add(codec=named.name, pointer=f"/codecs/{position}")
    if isinstance(here, ArraySpec):
        raise CodecError(
            "no codec turns the array into bytes",
            pointer="/codecs",
            found=[named.name for named in codecs],
            expected="exactly one array to bytes codec, such as 'bytes'",
            spec=_SPEC,
        )
    chain = _assemble(spec, here, bound)
    if spec.policy.missing == "error" and isinstance(chain.serializer[1], WritesPart):
        filling = bind(codecs, replace(spec, policy=replace(spec.policy, missing="fill")))
        chain = replace(chain, filling=filling)
    return replace(chain, left_out=tuple(left_out), writes_part=False) if left_out else chain


def without(codecs: Sequence[Named], mask: int, filters: int) -> list[Named]:
    """Return a chain without those of its codecs that a mask names, of which `filters` are before the serializer.

    Bit 0 of the mask is the first codec, bit 1 the next one, and so on. The serializer has no bit.

    >>> codecs = [Named(name) for name in ("delta", "bytes", "shuffle", "zlib")]
    >>> [codec.name for codec in without(codecs, 0b101, 1)]
    ['bytes', 'shuffle']
    """
    bits = [*range(filters), None, *range(filters, len(codecs) - 1)]
    return [named for named, bit in zip(codecs, bits, strict=True) if bit is None or not mask >> bit & 1]


def drive(reading: Reading, source: Source, compute: Compute | None = None) -> bool:
    """Answer the requests of `reading` from `source`, one after the other, and return its result."""
    answer = None
    while True:
        if compute is None or answer is None:
            is_over, wanted = _step(reading, answer)
        else:
            is_over, wanted = compute(sum(map(len, answer)), _step, reading, answer)
        if is_over:
            return wanted is True
        answer = source(wanted)


def _step(reading: Reading, answer: Sequence[Buffer] | None) -> tuple[bool, Any]:
    """Return whether `reading` has returned, and its result or request."""
    try:
        return False, reading.send(answer)
    except StopIteration as end:  # StopIteration cannot leave a thread as an exception
        return True, end.value


def _bind_one(named: Named, here: ArraySpec | BytesSpec, position: int) -> Codec:
    pointer = f"/codecs/{position}"
    try:
        entry = registry.find(named.name)
        kind = entry.kind
        gives = "array" if isinstance(here, ArraySpec) else "bytes"
        if kind != "array or bytes" and not kind.startswith(gives):
            raise CodecError(
                "a codec of this kind is not allowed in this position",
                codec=named.name,
                pointer=f"/codecs/{position}",
                found=f"{kind} codec behind {gives}",
                expected="array to array codecs, then one array to bytes codec, then bytes to bytes codecs",
                spec=_SPEC,
            )
        if isinstance(here, ArraySpec):
            name = here.data_type.named.name
            known_as = "optional" if here.data_type.is_optional else name
            stored = _STORED.get(known_as)
            if stored is not None and named.name not in stored.by:
                raise CodecError(
                    f"the codec cannot store {stored.values}",
                    codec=named.name,
                    pointer=f"/codecs/{position}",
                    found=f"{named.name} for the data type {name}",
                    expected=f"the codec {stored.codec}{stored.details}",
                    remedy=Remedy(f"leave out {{serializer}}, or make it the codec {stored.codec}", serializer=...),
                    spec=f"zarr-extensions, {known_as}",
                )
        codec: Codec = entry.bind(named.configuration, here)
    except OmnizarrError as error:
        if error.pointer is not None and not error.pointer.startswith(pointer):
            error.pointer = pointer + error.pointer
        raise error.add(codec=named.name, pointer=pointer)
    return codec


def memory_of(array: AnyArray) -> memoryview:
    """Return the memory of a C-contiguous array as writable bytes, without a copy."""
    return array.reshape(-1).view(np.uint8).data


def fill_of(spec: ArraySpec) -> Any:
    """Return the fill value in a form that NumPy assigns to many elements: boxed if it is an object."""
    if not spec.dtype.hasobject or spec.dtype.names is not None:
        return spec.fill_value
    box = np.empty((), dtype=object)
    box[()] = spec.fill_value
    return box


def set_fill(out: AnyArray, spec: ArraySpec) -> None:
    """Set elements to the fill value. Each gets a list or an object of its own, which its receiver may change."""
    out[...] = fill_of(spec)
    if isinstance(spec.fill_value, list | dict):
        for place in np.ndindex(out.shape):
            out[place] = deepcopy(spec.fill_value)


def _is_same(item: object, fill: object) -> bool:
    if isinstance(item, np.ndarray) or isinstance(fill, np.ndarray):
        return np.array_equal(item, fill)  # type: ignore[arg-type]
    if type(item) is not type(fill):
        return False
    if isinstance(item, list | tuple) and isinstance(fill, list | tuple):
        return len(item) == len(fill) and all(map(_is_same, item, fill))
    if isinstance(item, dict) and isinstance(fill, dict):
        return item.keys() == fill.keys() and all(_is_same(each, fill[name]) for name, each in item.items())
    if isinstance(item, float) and isinstance(fill, float) and item == fill == 0:
        return math.copysign(1, item) == math.copysign(1, fill)
    return item == fill


def holds_only(array: AnyArray, spec: ArraySpec) -> bool:
    """Return whether all elements equal the fill value, bit for bit (NaN equals the same NaN; -0.0 is not 0.0)."""
    if array.size == 0:
        return True
    if array.dtype.hasobject:
        return all(_is_same(item, spec.fill_value) for item in array.flat)
    fill = np.asarray(spec.fill_value, dtype=array.dtype)
    if array.dtype.kind == "T":
        return bool((array == fill).all())
    words = array.dtype.itemsize
    if words == 0:
        return True
    word = _WORD_DTYPES.get(words)
    if word is not None:
        wanted = fill.reshape(1).view(word)[0]
        first = array[(0,) * array.ndim]
        # Most chunks are not empty: checking the first element makes reading the rest unnecessary.
        if np.asarray(first, dtype=array.dtype).reshape(1).view(word)[0] != wanted:
            return False
        return bool((array.view(word) == wanted).all())
    octets = np.ascontiguousarray(array).reshape(-1).view(np.uint8).reshape(-1, words)
    return bool((octets == fill.reshape(1).view(np.uint8)).all())


def losses(chain: Chain) -> Iterator[tuple[str, str]]:
    """Yield the names of the codecs that do not bring back all values, and what they lose; also within shards."""
    for name, codec in (*chain.filters, chain.serializer):
        if isinstance(codec, Lossy) and codec.loss:
            yield name, codec.loss
        inner = getattr(codec, "inner", None)
        if isinstance(inner, Chain):
            yield from losses(inner)


def _most_stored(spec: ArraySpec, encoded: BytesSpec, serializer: ArrayToBytes, *, is_compressed: bool) -> int:
    if spec.nbytes is None and not is_compressed:
        return sys.maxsize  # nothing bounds the elements, and reading them takes about as much memory
    limit = None if isinstance(serializer, WritesPart) else limit_of(encoded)  # parts that were replaced may remain
    return most_of(spec) if limit is None else max(limit, spec.policy.variable_chunk_bytes, 1 << 20)


def _assemble(spec: ArraySpec, encoded: BytesSpec, bound: Sequence[tuple[str, Codec]]) -> Chain:
    at = next(i for i, (_, codec) in enumerate(bound) if isinstance(codec.encoded, BytesSpec))
    filters: Any = tuple(bound[:at])
    serializer: Any = bound[at]
    compressors: Any = tuple(bound[at + 1 :])
    is_plain = not filters and getattr(serializer[1], "is_plain", False)
    only_transposed = all(isinstance(codec, Transpose) for _, codec in filters)
    return Chain(
        spec=spec,
        encoded=encoded,
        filters=filters,
        serializer=serializer,
        compressors=compressors,
        is_plain=is_plain,
        is_raw=is_plain and not compressors,
        most_stored=_most_stored(spec, encoded, serializer[1], is_compressed=bool(compressors)),
        decodes_part=only_transposed and isinstance(serializer[1], DecodesPart),
        reads_part=not compressors and only_transposed and isinstance(serializer[1], ReadsPart),
        writes_part=only_transposed and isinstance(serializer[1], WritesPart),
    )


def describe_chain(chain: Chain) -> Description | None:
    """Return ``(filters, serializer, compressors)``, each described; None if one of them is not supported.

    A codec that packs bits is a filter here, followed by plain bytes.

    Examples
    --------
    >>> from omnizarr.model import datatypes
    >>> spec = ArraySpec((2, 3), datatypes.parse("int16"), np.int16(0))
    >>> describe_chain(bind([Named("bytes", {"endian": "big"}), Named("gzip", {"level": 3})], spec))
    ((), ('bytes', 2, (('swap', 0, 2, 1),)), (('gzip', 3),))
    """
    if chain.left_out:
        return None
    here: ArraySpec | BytesSpec = chain.spec
    described: list[Description | None] = []
    codecs: tuple[tuple[str, Codec], ...] = (*chain.filters, chain.serializer, *chain.compressors)
    for _, codec in codecs:
        described.append(describe(codec, here))
        here = codec.encoded
    if None in described:
        return None
    place = len(chain.filters)
    filters, serializer, compressors = tuple(described[:place]), described[place], tuple(described[place + 1 :])
    if serializer is not None and serializer[0] == "packbits":
        return (*filters, serializer), ("bytes", 1, ()), compressors
    return filters, serializer, compressors


def describe(codec: Codec, spec: ArraySpec | BytesSpec) -> Description | None:
    """Return the name and the arguments of a codec bound to `spec`; None if the native engine does not have it.

    Examples
    --------
    >>> from omnizarr.codecs import shuffle
    >>> describe(shuffle.bind({"elementsize": 8}, BytesSpec(64)), BytesSpec(64))
    ('shuffle', 8)
    """
    # its own method, not one that a class of another package inherits
    function = vars(type(codec)).get("describe_native")
    found: Description | None = None if function is None else function(codec, spec)
    return found
