"""What a node is in another format, and an account of what that format has no words for.

Translating is pure: metadata in, metadata out. Everything is kept that the target can say; where it cannot, the nearest
that holds the same values is taken, and a remark says so. A `Loss` says what could not be carried at all. Whether the
target can say something is not decided here, but by its dialect: by writing it and reading it back.

Spec: the documents of all formats; ``_ARRAY_DIMENSIONS`` is the convention of xarray.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final, Literal, TypeAlias

import numpy as np

from omnizarr import creation, datatypes, grids, layout
from omnizarr.codecs import chain, registry
from omnizarr.codecs.values import named as named_codec
from omnizarr.creation import Coding
from omnizarr.datatypes import DataType
from omnizarr.datatypes.data_type import bytes_of
from omnizarr.datatypes.registry import SMALL_COMPLEX, SMALL_FLOATS, SMALL_INTEGERS
from omnizarr.dialects.contract import Dialect
from omnizarr.dialects.documents import to_json
from omnizarr.dialects.filters import byte_order_of, bytes_codec
from omnizarr.dialects.reading import is_list, join
from omnizarr.dialects.spelling import same
from omnizarr.errors import (
    MissingDependencyError,
    NodeNameError,
    NotRepresentableError,
    OmnizarrError,
    UnknownCodecError,
)
from omnizarr.model import JSON, UNDEFINED, ArrayMetadata, GroupMetadata, Metadata, Named, Problem
from omnizarr.tools.equivalence import bare, have_same_bytes, spec_of

KEEP: Final = "keep"
"""An option's value where the user says nothing: as it is in the source."""
DIMENSIONS: Final = "_ARRAY_DIMENSIONS"
"""The attribute that names the dimensions in formats without a place for that."""

_Values: TypeAlias = Literal["same", "cast", "raw", "integers"]
_Option: TypeAlias = tuple[Named, ...]

_TITLES: Final[Mapping[str, str]] = {
    "v0": "the format of zarr 0.4",
    "v1": "Zarr v1",
    "v2": "Zarr v2",
    "v3": "Zarr v3",
    "v3-draft2019": "the v3 draft of 2019",
    "v3-draft2020": "the v3 draft of 2020",
}
_EARLY: Final = frozenset({"v0", "v1", "v2"})
_COMPRESSORS: Final = frozenset({"blosc", "bz2", "gzip", "lz4", "lzma", "zlib", "zstd"})
_COMPRESSING: Final = frozenset({"n5_default", "pcodec", "zfp", "zfpy"})
"""Codecs that turn arrays into bytes, and compress them."""
_INEXACT: Final = frozenset({"astype", "cast_value", "delta", "fixedscaleoffset", "scale_offset", "zfp", "zfpy"})
"""Codecs that, given values they have decoded, may store others (``delta`` of floats, ``zfpy`` unless reversible)."""
_ZFPY_REVERSIBLE: Final = 5
_CNAMES: Final[Mapping[str, str]] = {"gzip": "zlib", "zlib": "zlib", "zstd": "zstd", "lz4": "lz4"}
"""What blosc has within that is like another compressor."""
_SEEN_AS: Final[Mapping[str, tuple[str, str | None]]] = {
    "astype": ("decode_dtype", None),
    "delta": ("dtype", "astype"),
    "fixedscaleoffset": ("dtype", "astype"),
    "quantize": ("dtype", "astype"),
}
"""Filters that look at the memory of an array as a type that they name, and what is that type where it is missing."""
_MOST_CHAINS: Final = 512
"""Chains of codecs that are tried, at most."""


@dataclass(frozen=True, slots=True)
class Loss:
    """Something that a conversion could not carry.

    Attributes
    ----------
    path : str
        Of the node.
    pointer : str
        JSON pointer of the member in the source's document.
    what, why : str
        In plain words.
    kept : str
        What stands there instead; empty if nothing does.
    """

    path: str
    pointer: str
    what: str
    why: str
    kept: str = ""


@dataclass(frozen=True, slots=True)
class Translation:
    """A node's metadata in another format.

    Attributes
    ----------
    source : Metadata
    target : Metadata, optional
        As the target's dialect reads it back; None if the node cannot be carried (a loss says why), or need not be (a
        group where there are none).
    losses : tuple of Loss
    remarks : tuple of str
        What is carried in other words.
    same_bytes : bool
        Stored chunks are chunks of the target as they are; their keys may differ.
    same_fill : bool
        Chunks that are missing read the same. If not, they must be written to keep the values.
    values : {"same", "cast", "raw", "integers"}
        What `carry` does to elements.
    """

    source: Metadata
    target: Metadata | None
    losses: tuple[Loss, ...] = ()
    remarks: tuple[str, ...] = ()
    same_bytes: bool = False
    same_fill: bool = True
    values: _Values = "same"

    def carry(self, values: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        """Return decoded elements of the source as the target has them, of the same shape.

        Examples
        --------
        >>> from omnizarr.dialects import DRAFT2020, V2
        >>> source = V2.load({".zarray": {"zarr_format": 2, "shape": [2], "chunks": [2], "dtype": "<M8[10s]",
        ...     "compressor": None, "filters": None, "fill_value": 0, "order": "C"}})
        >>> translate(source, DRAFT2020).carry(np.array([10, 20], "M8[10s]"))
        array([10, 20])
        """
        if not isinstance(self.source, ArrayMetadata) or not isinstance(self.target, ArrayMetadata):
            raise TypeError("only arrays have elements")
        wanted = datatypes.bind(self.target.data_type, self.target.byte_order).dtype
        match self.values:
            case "raw":
                stored = datatypes.bind(self.source.data_type, _stored_order(self.source)).dtype
                return np.ascontiguousarray(values.astype(stored)).view(wanted).reshape(values.shape)
            case "integers":
                native = np.ascontiguousarray(values.astype(values.dtype.newbyteorder("=")))
                return native.view(np.int64).reshape(values.shape).astype(wanted)
            case "cast":
                return values.astype(wanted)
        return values


@dataclass
class _Account:
    """What is said of one node on the way."""

    dialect: Dialect
    path: str
    pointers: Callable[[str], str]
    losses: list[Loss] = field(default_factory=list)
    remarks: list[str] = field(default_factory=list)

    @property
    def title(self) -> str:
        return title_of(self.dialect)

    def lose(self, pointer: str, what: str, why: str, kept: str = "") -> None:
        self.losses.append(Loss(self.path, pointer, what, why, kept))

    def remark(self, text: str) -> None:
        self.remarks.append(text)


@dataclass(frozen=True, slots=True)
class _Wishes:
    """What the user wants otherwise."""

    chunks: Any = None
    shards: Any = None
    filters: Any = KEEP
    serializer: Any = KEEP
    compressors: Any = KEEP
    codecs: Any = None

    @property
    def layout(self) -> bool:
        return self.chunks is not None or self.shards is not None

    @property
    def coding(self) -> bool:
        return self.codecs is not None or any(
            not _is_keep(w) for w in (self.filters, self.serializer, self.compressors)
        )


class _CannotCarryError(Exception):
    """Nothing that the target can say holds the values; the account says why."""


def title_of(dialect: Dialect) -> str:
    """Return what a format is called in a sentence: ``"Zarr v2"``, ``"the v3 draft of 2020"``."""
    return _TITLES.get(dialect.name, f"Zarr {dialect.name}")


def translate(
    metadata: Metadata,
    dialect: Dialect,
    *,
    path: str = "",
    siblings: Collection[str] = (),
    chunks: Any = None,
    shards: Any = None,
    filters: Any = KEEP,
    serializer: Any = KEEP,
    compressors: Any = KEEP,
    codecs: Any = None,
    in_place: bool = False,
) -> Translation:
    """Return a node's metadata in another format, with an account of what could not be carried.

    Parameters
    ----------
    metadata : ArrayMetadata or GroupMetadata
    dialect : Dialect
        The target.
    path : str
        Of the node in its hierarchy. All names in it must be possible in the target.
    siblings : collection of str
        Names of the nodes beside it: where names may not differ in case alone, the one that sorts first is carried.
    chunks, shards, filters, serializer, compressors, codecs
        As for `create_array`; what is not given stays as it is.
    in_place : bool
        The documents will lie beside the source's, and chunks keep their keys.

    Returns
    -------
    Translation
        Its `target` passes the target's own reading without problems or notes.

    Raises
    ------
    MetadataError, NotRepresentableError, CodecError
        If an option makes no sense, or is nothing that the target can have.

    Examples
    --------
    >>> from omnizarr.dialects import V2, V3
    >>> source = V2.load({".zarray": {"zarr_format": 2, "shape": [4], "chunks": [2], "dtype": ">i2", "order": "C",
    ...     "compressor": {"id": "zlib", "level": 1}, "filters": None, "fill_value": 0},
    ...     ".zattrs": {"_ARRAY_DIMENSIONS": ["time"]}})
    >>> found = translate(source, V3)
    >>> found.target.dimension_names, found.same_bytes, found.losses
    (('time',), True, ())
    """
    account = _Account(dialect, path, lambda member: _pointer(metadata.dialect, member))
    wishes = _Wishes(chunks, shards, filters, serializer, compressors, codecs)
    try:
        _check_names(account, siblings)
        if isinstance(metadata, ArrayMetadata):
            found = _translate_array(metadata, account, wishes, in_place=in_place)
        else:
            found = _translate_group(metadata, account)
    except _CannotCarryError:
        found = Translation(metadata, None)
    return replace(found, losses=tuple(account.losses), remarks=tuple(account.remarks))


def _pointer(dialect: str, member: str) -> str:
    """Return where a format keeps what the model calls `member`."""
    early = dialect in _EARLY
    match member:
        case "data_type":
            return "/dtype" if early else "/data_type"
        case "chunk_grid":
            return "/chunks" if early else "/chunk_grid"
        case "chunk_key_encoding":
            separators = {"v2": "/dimension_separator", "v3": "/chunk_key_encoding"}
            return separators.get(dialect, "" if early else "/chunk_grid/separator")
        case "attributes":
            return "" if early else "/attributes"
        case "codecs":
            return {"v2": "/filters", "v1": "/compression", "v0": "/cname", "v3-draft2019": "/chunk_codecs"}.get(
                dialect, "/codecs" if dialect == "v3" else "/compressor"
            )
    return f"/{member}"


def _check_names(account: _Account, siblings: Collection[str]) -> None:
    names = account.path.split("/") if account.path else []
    for name in names:
        try:
            account.dialect.check_name(name)
        except NodeNameError as error:
            rule = f"{error.message} in {account.title}"
            rule += f" ({error.spec})" if error.spec else ""
            account.lose("", f"the node {name!r}", f"{rule}; rename it first")
            raise _CannotCarryError from None
    if names and not account.dialect.has_cases:
        rivals = sorted(other for other in siblings if other < names[-1] and other.lower() == names[-1].lower())
        if rivals:
            why = f"in {account.title} no two nodes beside each other may differ in upper and lower case alone"
            account.lose("", f"the node {names[-1]!r}", f"{why}, and {rivals[0]!r} is there; rename one first")
            raise _CannotCarryError


# Groups, and what all nodes have


def _translate_group(source: GroupMetadata, account: _Account) -> Translation:
    if source.consolidated is not None:
        account.remark("the copies of the documents below (consolidated metadata) are not carried, but made anew")
    attributes = _attributes(source, account)
    if not account.dialect.has_groups:
        for name in attributes:
            why = f"{account.title} has no groups, so that their attributes have no place"
            account.lose(join(account.pointers("attributes"), name), f"attribute {name!r} of the group", why)
        _lose_unknown(source.unknown, account)
        account.remark("a group, of which there are none: its arrays lie in a directory of its name")
        return Translation(source, None)
    if source.implicit and account.dialect.name in ("v2", "v3"):
        account.remark("a group that no document spoke of gets one")
    target: Metadata = GroupMetadata(dialect=account.dialect.name)
    target = _with_attributes(target, attributes, account)
    target = _with_unknown(target, source, account)
    return Translation(source, _settled(target, account.dialect))


def _attributes(source: Metadata, account: _Account) -> dict[str, JSON]:
    """Return the attributes as strict JSON has them."""
    found: Any = to_json(source.attributes)
    changed = [name for name, value in source.attributes.items() if not same(value, found[name])]
    if changed:
        named = ", ".join(map(repr, changed))
        account.remark(f"numbers that JSON has no words for became the strings NaN, Infinity, -Infinity in {named}")
    return dict(found)


def _with_attributes(target: Metadata, attributes: Mapping[str, JSON], account: _Account) -> Metadata:
    whole = replace(target, attributes=dict(attributes))
    read, _ = _try(whole, account.dialect)
    if read is not None and same(read.attributes, whole.attributes):
        return whole
    kept: dict[str, JSON] = {}
    for name, value in attributes.items():
        read, why = _try(replace(target, attributes={name: value}), account.dialect)
        if read is not None and same(read.attributes, {name: value}):
            kept[name] = value
        else:
            account.lose(
                join(account.pointers("attributes"), name), f"attribute {name!r}", why or "it is read back otherwise"
            )
    return replace(target, attributes=kept)


def _with_unknown(target: Metadata, source: Metadata, account: _Account) -> Metadata:
    """Return `target` with those members that no text defines which may stand there."""
    if source.dialect == target.dialect:
        return replace(target, unknown=source.unknown, spellings=source.spellings)
    _lose_extensions(source, account)
    kept: dict[str, JSON] = {}
    # the text of v2 allows none in .zgroup
    is_open = not (isinstance(target, GroupMetadata) and target.dialect == "v2")
    for name, value in source.unknown.items():
        tried = replace(target, unknown={name: value})
        read, _ = _try(tried, account.dialect) if is_open else (None, "")
        if read is not None and same(read.unknown, tried.unknown) and same(read.attributes, target.attributes):
            kept[name] = value
            account.remark(f"member {name!r}, which no text defines, is kept")
        else:
            _lose_unknown({name: value}, account)
    return replace(target, unknown=kept)


def _lose_unknown(unknown: Mapping[str, JSON], account: _Account) -> None:
    for name in unknown:
        account.lose(
            join("", name), f"member {name!r}", f"no text defines it, and {account.title} allows no such members"
        )


def _lose_extensions(source: Metadata, account: _Account) -> None:
    """Account for extensions that may be ignored, which the model of the draft of 2020 keeps as spelled only."""
    memo = source.spellings.get(f"{source.dialect}:extensions")
    extensions = memo.document.get("extensions") if memo is not None else None
    if source.dialect != "v3-draft2020" or not is_list(extensions):
        return
    for position, extension in enumerate(extensions):
        uri = extension.get("extension") if isinstance(extension, Mapping) else extension
        why = f"{account.title} has no words for extensions of the draft; it may be ignored"
        account.lose(join("/extensions", position), f"extension {uri!r}", why)


def _try(metadata: Metadata, dialect: Dialect) -> tuple[Metadata | None, str]:
    """Return metadata as the dialect reads it after writing it; or None, and why it cannot be so."""
    problems: list[Problem] = []
    try:
        read = dialect.load(dialect.dump(metadata), problems.append)
    except OmnizarrError as error:
        return None, error.message.rpartition(": ")[2] if isinstance(error, NotRepresentableError) else error.message
    if problems:
        return None, problems[0].message
    if read is None or read.notes or type(read) is not type(metadata):
        return None, read.notes[0].message if read is not None and read.notes else "it is read as something else"
    return read, ""


def _settled(metadata: Metadata, dialect: Dialect) -> Metadata:
    """Return metadata as the dialect reads it after writing it. Raises what that raises."""
    read, _ = _try(metadata, dialect)
    if read is not None:
        return read
    read = dialect.load(dialect.dump(metadata))
    return metadata if read is None or metadata.spellings == {} else read


# Arrays


def _translate_array(source: ArrayMetadata, account: _Account, wishes: _Wishes, *, in_place: bool) -> Translation:
    dialect = account.dialect
    _refuse_transformers(source, account)
    try:
        spec = spec_of(source)
    except OmnizarrError as error:
        return _translate_unknown(source, account, error)
    shape = _shape(source, account)
    flat = source if dialect.new_arrays.has_filters is False else _without_shards(source, account)
    target, values = _with_data_type(source, spec.data_type, shape, account)
    target = replace(target, chunk_grid=_grid(flat, shape, wishes, account))
    target = _with_codecs(target, flat, source, wishes, account)
    target = _with_wishes(target, flat, spec.data_type, wishes, account)
    target, same_fill = _with_fill_value(target, source, spec.data_type, values, account)
    target = _with_keys(target, source, account, in_place=in_place)
    target = _with_names(target, source, account)
    whole = _with_unknown(target, source, account)
    read, why = _try(whole, dialect)
    if not isinstance(read, ArrayMetadata):
        account.lose("", "the array", f"{account.title} cannot hold it: {why}")
        raise _CannotCarryError
    _remark_byte_order(source, read, spec.data_type, account)
    _remark_parameters(source, read, account)
    same_bytes = source.shape == read.shape and have_same_bytes(source, read)
    return Translation(source, read, same_bytes=same_bytes, same_fill=same_fill, values=values)


def _refuse_transformers(source: ArrayMetadata, account: _Account) -> None:
    for position, named in enumerate(source.storage_transformers):
        pointer = join("/storage_transformers", position)
        why = f"it is not known here, so that chunks cannot be read, and {account.title} has no such thing"
        account.lose(pointer, f"storage transformer {named.name!r}", why)
        if named.must_understand:
            raise _CannotCarryError


def _translate_unknown(source: ArrayMetadata, account: _Account, error: OmnizarrError) -> Translation:
    """Return the translation of an array that nobody here can read: between formats that have the same names for it."""
    keys = account.dialect.new_arrays.chunk_key_encoding
    target = replace(source, dialect=account.dialect.name, chunk_key_encoding=keys, spellings={}, notes=(), unknown={})
    target = replace(target, attributes=_attributes(source, account))
    is_uri = ":" in source.data_type.name or source.dialect == account.dialect.name
    read, _ = _try(target, account.dialect) if is_uri else (None, "")
    if isinstance(read, ArrayMetadata) and have_same_bytes(source, read):
        _lose_unknown(source.unknown, account)
        account.remark(f"data type {source.data_type.name!r} is not known here, but has the same name in both formats")
        return Translation(source, read, same_bytes=True)
    pointer = "chunk_grid" if (error.pointer or "").startswith("/chunk_grid") else "data_type"
    named = source.chunk_grid if pointer == "chunk_grid" else source.data_type
    word = "chunk grid" if pointer == "chunk_grid" else "data type"
    account.lose(
        account.pointers(pointer),
        f"the array, for its {word} {named.name!r}",
        f"it cannot be read here: {error.message}",
    )
    raise _CannotCarryError


def _shape(source: ArrayMetadata, account: _Account) -> tuple[int, ...]:
    if source.shape:
        return source.shape
    read, why = _try(_new(account.dialect, (), datatypes.bind(Named("uint8"))), account.dialect)
    if read is not None:
        return ()
    account.lose(
        "/shape", "that the array has no dimensions", f"{account.title} has no such arrays: {why}", "shape (1,)"
    )
    return (1,)


def _new(dialect: Dialect, shape: tuple[int, ...], data_type: DataType) -> ArrayMetadata:
    """Return the metadata of a new array in one chunk, with the codecs that are the dialect's own choice."""
    return creation.array_metadata(dialect, shape=shape, dtype=data_type, chunks=[1] * len(shape), fill_value=None)


# Data types


def _with_data_type(
    source: ArrayMetadata, data_type: DataType, shape: tuple[int, ...], account: _Account
) -> tuple[ArrayMetadata, _Values]:
    """Return a plain new array of the nearest type that the target has, and what becomes of the elements."""
    reasons = []
    for named, values, order in _types(source, data_type):
        try:
            base = _new(account.dialect, shape, datatypes.bind(named, order))
        except OmnizarrError as error:
            reasons.append(error.message)
            continue
        if account.dialect.new_arrays.has_byte_order:
            base = replace(base, byte_order=order)
        read, why = _try(base, account.dialect)
        if isinstance(read, ArrayMetadata):
            _account_for_type(source, data_type, named, values, order, account)
            return base, values
        reasons.append(why)
    why = f"{account.title} has no such type, nor another that holds its values: {reasons[0]}"
    account.lose(account.pointers("data_type"), f"the array, for its data type {_shown(data_type)}", why)
    raise _CannotCarryError


def _types(source: ArrayMetadata, data_type: DataType) -> Iterator[tuple[Named, _Values, Literal["<", ">"]]]:
    """Yield data types that hold the values, nearest first, with the byte order of the elements."""
    stored = _stored_order(source)
    orders: list[Literal["<", ">"]] = [stored, "<"] if stored == ">" else ["<"]
    for order in orders:
        yield source.data_type, "same", order
    if source.data_type.name in ("struct", "structured"):
        yield _with_one_order(source.data_type), "same", "<"
    name = source.data_type.name
    if name in SMALL_FLOATS:
        yield Named("float32"), "cast", "<"
    elif name in SMALL_COMPLEX:
        yield Named("complex64"), "cast", "<"
    elif name in SMALL_INTEGERS:
        yield Named("uint8" if name.startswith("u") else "int8"), "cast", "<"
    if data_type.dtype.kind in "mM":
        for order in orders:
            yield Named("int64"), "integers", order
    if data_type.is_fixed_size and not _has_sub_arrays(data_type.dtype):
        yield Named(f"r{8 * data_type.dtype.itemsize}"), "raw", "<"


def _account_for_type(
    source: ArrayMetadata, data_type: DataType, named: Named, values: _Values, order: str, account: _Account
) -> None:
    pointer, shown = account.pointers("data_type"), _shown(data_type)
    why = f"{account.title} has no such type"
    match values:
        case "cast":
            account.remark(f"data type {shown} becomes {named.name}, which holds all its values")
        case "integers":
            unit = source.data_type.configuration.get("unit")
            factor = source.data_type.configuration.get("scale_factor", 1)
            what = "moments" if data_type.dtype.kind == "M" else "durations"
            kept = f"int64, counts of {factor} {unit}"
            account.lose(pointer, f"that elements are {what} ({shown})", f"{why} with this unit", kept)
        case "raw":
            endian = "" if byte_order_of(data_type.dtype) is None else ", " + _endian(_stored_order(source))
            kept = f"{named.name}, the {data_type.dtype.itemsize} bytes of each element{endian}"
            account.lose(pointer, f"what elements mean ({shown})", why, kept)
        case _ if not same(named, source.data_type):
            account.remark("fields with a byte order of their own are stored little-endian, as all others")
        case _ if order != _stored_order(source):
            account.remark(f"{account.title} has no big-endian {source.data_type.name}: stored little-endian")


def _with_one_order(named: Named) -> Named:
    """Return a structured type whose fields have no byte order of their own."""

    def plain(value: Any) -> Any:
        if isinstance(value, Mapping):
            return {name: plain(item) for name, item in value.items() if name != "byte_order"}
        return [plain(item) for item in value] if is_list(value) else value

    return Named(named.name, plain(named.configuration))


def _has_sub_arrays(dtype: np.dtype[Any]) -> bool:
    if dtype.subdtype is not None:
        return True
    return dtype.fields is not None and any(_has_sub_arrays(field[0]) for field in dtype.fields.values())


def _stored_order(metadata: ArrayMetadata) -> Literal["<", ">"]:
    """Return the byte order in which the elements themselves are stored, or seen by the first filter."""
    for codec in metadata.codecs:
        if codec.name == "bytes" and "endian" in codec.configuration:
            return ">" if codec.configuration["endian"] == "big" else "<"
        if codec.name == "sharding_indexed" and is_list(inner := codec.configuration.get("codecs")):
            return _stored_order(replace(metadata, codecs=tuple(named_codec(item) for item in inner)))
        if codec.name not in ("transpose", "reshape"):
            break
    return metadata.byte_order


def _shown(data_type: DataType) -> str:
    """Return what a scientist calls a data type."""
    return data_type.named.name if data_type.dtype.names is None else str(data_type.dtype)


def _endian(order: str) -> str:
    return "big-endian" if order == ">" else "little-endian"


def _remark_byte_order(source: ArrayMetadata, target: ArrayMetadata, data_type: DataType, account: _Account) -> None:
    if source.byte_order != target.byte_order and byte_order_of(data_type.dtype) is not None:
        before, after = _endian(source.byte_order), _endian(target.byte_order)
        account.remark(f"elements were {before} in memory, and are {after} now; the values are the same")


# Chunks


def _grid(source: ArrayMetadata, shape: tuple[int, ...], wishes: _Wishes, account: _Account) -> Named:
    if wishes.layout:
        return source.chunk_grid  # replaced below
    if len(shape) > len(source.shape):
        return grids.regular([1] * len(shape))
    grid = grids.bind(source.chunk_grid, source.shape)
    if grid.chunk_shape is not None and source.chunk_grid.name == "regular":
        return grids.regular([max(length, 1) for length in grid.chunk_shape])
    if not account.dialect.new_arrays.has_filters:
        return source.chunk_grid
    lengths = [max((*axis.sizes, 1)) for axis in grid.axes]
    lengths = [min(size, max(length, 1)) for size, length in zip(lengths, shape, strict=True)]
    account.remark(f"chunks of differing shapes become chunks of one shape, {tuple(lengths)}: encoded anew")
    return grids.regular(lengths)


def _without_shards(source: ArrayMetadata, account: _Account) -> ArrayMetadata:
    """Return an array as if each inner chunk of a shard were a chunk."""
    inner = layout.inner_chunk_shape(source.codecs)
    if inner is None:
        return source
    at = next(i for i, codec in enumerate(source.codecs) if codec.name == "sharding_indexed")
    within: Any = source.codecs[at].configuration.get("codecs", ())
    codecs = (*source.codecs[:at], *(named_codec(codec) for codec in within))
    count = math.prod(-(-length // size) for length, size in zip(source.shape, inner, strict=True))
    account.remark(
        f"{account.title} has no shards: their inner chunks, {tuple(inner)}, become chunks, encoded anew; "
        f"there are up to {count} keys"
    )
    return _without_shards(replace(source, chunk_grid=grids.regular(inner), codecs=codecs), account)


# Codecs


def _with_codecs(
    target: ArrayMetadata, flat: ArrayMetadata, source: ArrayMetadata, wishes: _Wishes, account: _Account
) -> ArrayMetadata:
    """Return `target` with codecs as near to the source's as it can have."""
    if wishes.codecs is not None:
        return target
    trial = replace(target, chunk_grid=_trial_grid(target))
    found = _search(trial, flat, exact=False)
    is_readable = _kinds_known(flat.codecs)
    if found is not None:
        kept = replace(target, codecs=found)
        anew = (
            wishes.layout or wishes.coding or not have_same_bytes(source, replace(kept, fill_value=source.fill_value))
        )
        if anew and is_readable and any(map(_is_inexact, flat.codecs)):
            found = _search(trial, flat, exact=True)
    if found is None or not (is_readable or same(found, flat.codecs)):
        unknown = next((codec for codec in flat.codecs if _kind(codec) is None), None)
        what = f"codec {unknown.name!r}" if unknown is not None else "its codecs"
        why = f"{what} cannot be run here, and {account.title} has no words for it"
        account.lose(_pointer_of_codec(source, unknown), "the array", why)
        raise _CannotCarryError
    _remark_codecs(flat.codecs, found, account)
    return replace(target, codecs=found)


def _trial_grid(target: ArrayMetadata) -> Named:
    return target.chunk_grid


def _search(target: ArrayMetadata, source: ArrayMetadata, *, exact: bool) -> tuple[Named, ...] | None:
    """Return the nearest chain that the target can have; `exact`: without codecs that could change values."""
    codecs = _for_memory(source, target)
    dialect = _dialect_of(target)
    data_type = datatypes.bind(target.data_type, target.byte_order)
    item_size = data_type.dtype.itemsize if data_type.is_fixed_size else 1
    default = tuple(codec for codec in target.codecs if _kind(codec) == "bytes to bytes")
    plain = tuple(codec for codec in target.codecs if _kind(codec) == "array to bytes")
    if not data_type.is_fixed_size or not plain:
        serializers = [plain]
    else:
        orders: list[Any] = [target.byte_order, "<", ">"]
        serializers = [(bytes_codec(data_type.with_byte_order(order).dtype),) for order in orders]
    has_filters = any(_is_filter(codec) for codec in codecs)
    keeps = [True, False] if has_filters and not (exact and any(map(_is_inexact, codecs))) else [not has_filters]
    tried = 0
    for keep in keeps:
        slots: list[list[_Option]] = []
        for codec in codecs:
            if _is_filter(codec):
                slots.append([(codec,)] if keep else [()])
            else:
                slots.append(_options(codec, item_size, default, serializers, exact=exact))
        if not any(bare(codec.name) in _COMPRESSORS for codec in codecs):
            slots.append([(), default])
        for option in _by_distance(slots):
            tried += 1
            if tried > _MOST_CHAINS:
                return None
            found = tuple(itertools.chain.from_iterable(option))
            settled = _accepted(replace(target, codecs=found), dialect)
            if settled is not None:
                return found
    return None


def _by_distance(slots: Sequence[Sequence[_Option]]) -> Iterable[tuple[_Option, ...]]:
    """Yield one option per slot, those with few changes first."""
    if math.prod(len(options) for options in slots) > _MOST_CHAINS:
        slots = [[options[0], *([options[-1]] if len(options) > 1 else [])] for options in slots]
    if len(slots) > _MOST_CHAINS.bit_length():
        return [tuple(options[0] for options in slots), tuple(options[-1] for options in slots)]
    places = itertools.product(*(range(len(options)) for options in slots))
    return (tuple(options[i] for options, i in zip(slots, chosen, strict=True)) for chosen in sorted(places, key=sum))


def _accepted(target: ArrayMetadata, dialect: Dialect) -> ArrayMetadata | None:
    """Return an array as it is read back, if it can be written, and its chain runs or is the one meant."""
    read, _ = _try(target, dialect)
    if not isinstance(read, ArrayMetadata) or not have_same_bytes(target, read):
        return None
    try:
        chain.bind(read.codecs, spec_of(read))
    except (UnknownCodecError, MissingDependencyError):
        return read
    except OmnizarrError:
        return None
    return read


def _options(
    codec: Named, item_size: int, default: _Option, serializers: list[_Option], *, exact: bool
) -> list[_Option]:
    """Return what a codec may become, nearest first; the empty tuple leaves it out."""
    kind, name = _kind(codec), bare(codec.name)
    if kind is None:
        return [(codec,)] if codec.must_understand else [(codec,), ()]
    if name == "transpose":
        return [(codec,), ()]
    if kind == "array to bytes":
        compressed = [(*serializer, *default) for serializer in serializers] if name in _COMPRESSING else serializers
        return compressed if exact and _is_inexact(codec) else [(codec,), *compressed]
    named = Named(f"numcodecs.{name}", codec.configuration)
    options: list[_Option] = [(codec,)]
    if named.name != codec.name and codec.name not in ("blosc", "crc32c", "gzip", "zstd"):
        options.append((named,))
    if name in _COMPRESSORS:
        return [*options, *_nearest_compressors(codec, name, item_size), default, ()]
    return [*options, ()]


def _nearest_compressors(codec: Named, name: str, item_size: int) -> Iterator[_Option]:
    level = codec.configuration.get("level", 1)
    level = min(max(level, 1), 9) if isinstance(level, int) else 1
    typesize = item_size if 0 < item_size <= 255 else 1
    if name == "blosc":
        cname = str(codec.configuration.get("cname", "lz4"))
        shuffle = codec.configuration.get("shuffle", "noshuffle")
        shuffle = shuffle if shuffle in ("noshuffle", "shuffle", "bitshuffle") else "shuffle"
        yield (_blosc(cname, codec.configuration.get("clevel", 5), shuffle, typesize),)
        return
    if name in ("zlib", "bz2", "gzip"):
        yield (Named("gzip" if name == "gzip" else f"numcodecs.{name}", {"level": level}),)
    if name == "gzip":
        yield (Named("numcodecs.zlib", {"level": level}),)
    if name in _CNAMES:
        yield (_blosc(_CNAMES[name], level, "noshuffle", typesize),)


def _blosc(cname: str, clevel: JSON, shuffle: JSON, typesize: int) -> Named:
    return Named("blosc", {"cname": cname, "clevel": clevel, "shuffle": shuffle, "typesize": typesize, "blocksize": 0})


def _for_memory(source: ArrayMetadata, target: ArrayMetadata) -> tuple[Named, ...]:
    """Return the codecs, where the first filter sees elements in the byte order that the target's have in memory."""
    if source.byte_order == target.byte_order:
        return source.codecs
    codecs = list(source.codecs)
    for at, codec in enumerate(codecs):
        name = bare(codec.name)
        if name not in _SEEN_AS:
            if name in ("transpose", "bitround"):
                continue
            break
        seen, made = _SEEN_AS[name]
        configuration = dict(codec.configuration)
        dtype = configuration.get(seen)
        if isinstance(dtype, str) and dtype[:1] == source.byte_order:
            configuration[seen] = target.byte_order + dtype[1:]
            if made is not None and configuration.get(made) is None:
                configuration[made] = dtype
        codecs[at] = Named(codec.name, configuration, codec.must_understand)
        break
    return tuple(codecs)


def _dialect_of(metadata: ArrayMetadata) -> Dialect:
    from omnizarr.places import dialect_named  # noqa: PLC0415

    return dialect_named(metadata.dialect)


def _kind(codec: Named) -> str | None:
    """Return what a codec takes and gives; None if nobody here knows."""
    try:
        return registry.find(codec.name).kind
    except MissingDependencyError:
        return "array to bytes" if bare(codec.name) in _COMPRESSING else "bytes to bytes"
    except OmnizarrError:
        return None


def _kinds_known(codecs: Iterable[Named]) -> bool:
    return all(_kind(codec) is not None or not codec.must_understand for codec in codecs)


def _is_filter(codec: Named) -> bool:
    return _kind(codec) == "array to array" and codec.name != "transpose"


def _is_inexact(codec: Named) -> bool:
    name = bare(codec.name)
    if name == "delta":
        return str(codec.configuration.get("dtype", ""))[1:2] not in ("i", "u")
    if name == "zfpy":
        return codec.configuration.get("mode") != _ZFPY_REVERSIBLE
    if name == "zfp":
        return codec.configuration.get("mode") != "reversible"
    return name in _INEXACT


def _pointer_of_codec(source: ArrayMetadata, codec: Named | None) -> str:
    if source.dialect == "v2" and codec is not None and codec is source.codecs[-1]:
        return "/compressor"
    pointer = _pointer(source.dialect, "codecs")
    is_list_of_v3 = source.dialect == "v3" and codec in source.codecs
    return join(pointer, source.codecs.index(codec)) if is_list_of_v3 and codec is not None else pointer


def _remark_codecs(before: Sequence[Named], after: Sequence[Named], account: _Account) -> None:
    """Say which codecs are not there any more, and which are new."""
    old, new = [bare(codec.name) for codec in before], [bare(codec.name) for codec in after]
    gone = [name for name in old if name not in new]
    come = [name for name in new if name not in old]
    if not gone and not come:
        return
    text = f"{account.title} has no words for {_listed(gone)} as it stands" if gone else "chunks need a compressor"
    account.remark(f"{text}: chunks are encoded anew" + (f" with {_listed(come)}" if come else " without"))


def _listed(names: Sequence[str]) -> str:
    *most, last = [f"codec {name!r}" for name in names]
    return f"{', '.join(most)} and {last}" if most else last


def _remark_parameters(source: ArrayMetadata, target: ArrayMetadata, account: _Account) -> None:
    """Say which parameters that do not matter to readers are other ones from here on."""
    after = {bare(codec.name): codec for codec in target.codecs}
    for codec in source.codecs:
        other = after.get(bare(codec.name))
        if other is None or codec.name in ("transpose", "bytes", "sharding_indexed"):
            continue
        for name, value in codec.configuration.items():
            found = other.configuration.get(name)
            if name in other.configuration and not same(value, found):
                account.remark(f"{name} of codec {bare(codec.name)!r} was {value!r}, and is {found!r} for new chunks")


# What the user wants otherwise


def _is_keep(wish: object) -> bool:
    return isinstance(wish, str) and wish == KEEP


def _with_wishes(
    target: ArrayMetadata, flat: ArrayMetadata, data_type: DataType, wishes: _Wishes, account: _Account
) -> ArrayMetadata:
    """Return `target` with the layout and the codecs that the user wants. Raises what `creation` raises."""
    if not (wishes.layout or wishes.coding):
        return target
    bound = datatypes.bind(target.data_type, target.byte_order)
    codecs, inner = target.codecs, layout.inner_chunk_shape(target.codecs)
    grid = grids.bind(target.chunk_grid, flat.shape)
    stored: Any = grid.chunk_shape
    if stored is None:
        stored = [list(axis.sizes) for axis in grid.axes]
    chunks, shards = wishes.chunks, wishes.shards
    within: tuple[Named, ...] = codecs
    if inner is not None:
        at = next(i for i, codec in enumerate(codecs) if codec.name == "sharding_indexed")
        items: Any = codecs[at].configuration.get("codecs", ())
        within = (*codecs[:at], *(named_codec(item) for item in items))
        shards = stored if wishes.chunks is None and shards is None else shards
    if chunks is None:
        chunks = stored if inner is None else inner
    made = creation.array_metadata(
        account.dialect,
        shape=target.shape,
        dtype=bound,
        chunks=chunks,
        shards=shards,
        coding=_coding(within, wishes, account.dialect),
        fill_value=None,
    )
    account.remark("chunks are laid out and encoded anew, as asked for")
    return replace(target, chunk_grid=made.chunk_grid, codecs=made.codecs)


def _coding(kept: tuple[Named, ...], wishes: _Wishes, dialect: Dialect) -> Coding:
    if wishes.codecs is not None:
        return Coding(codecs=wishes.codecs)
    at = next((i for i, codec in enumerate(kept) if _kind(codec) == "array to bytes"), 0)
    filters = list(kept[:at]) if _is_keep(wishes.filters) else wishes.filters
    compressors = list(kept[at + 1 :]) if _is_keep(wishes.compressors) else wishes.compressors
    if not dialect.new_arrays.has_filters:
        return Coding(filters, kept[at] if _is_keep(wishes.serializer) else wishes.serializer, compressors)
    serializer = [kept[at]] if kept[at].name != "bytes" else []
    if not _is_keep(wishes.serializer):
        return Coding(filters, wishes.serializer, compressors)
    listed = [*_several(filters), *serializer, *_several(compressors)]
    if isinstance(compressors, str):
        listed = [*_several(filters), *serializer, dialect.new_arrays.compressor]
    return Coding(codecs=listed)


def _several(given: Any) -> list[Any]:
    if given is None or isinstance(given, str):
        return []
    return list(given) if is_list(given) else [given]


# Fill values, keys, names of dimensions


def _with_fill_value(
    target: ArrayMetadata, source: ArrayMetadata, before: DataType, values: _Values, account: _Account
) -> tuple[ArrayMetadata, bool]:
    """Return `target` with the fill value, and whether missing chunks read the same."""
    after = datatypes.bind(target.data_type)
    has_undefined = account.dialect.new_arrays.has_undefined_fill_value
    default: JSON = after.fill_to_json(after.default_fill_value)
    if source.fill_value is UNDEFINED:
        if not has_undefined:
            why = f"{account.title} has no fill value that is undefined; missing chunks read as before"
            account.lose("/fill_value", "that missing chunks hold nothing in particular (null)", why, _text(default))
        return replace(target, fill_value=UNDEFINED if has_undefined else default), True
    little = before.with_byte_order("<") if values != "raw" else before.with_byte_order(_stored_order(source))
    scalar = little.fill_from_json(source.fill_value)
    wanted = _carried_fill(scalar, little, after, values)
    exact: JSON = source.fill_value if source.data_type.name == "omnizarr.object" else after.scalars.to_json(wanted)
    tried = replace(target, fill_value=exact)
    read, why = _try(tried, account.dialect)
    if isinstance(read, ArrayMetadata) and read.fill_value is not UNDEFINED:
        if _is_same_scalar(after.fill_from_json(read.fill_value), wanted, after):
            return tried, True
        kept = _text(read.fill_value)
        account.lose(
            "/fill_value", f"the fill value {_text(exact)}", f"{account.title} cannot tell it from {kept}", kept
        )
        return tried, False
    kept = "null (undefined)" if has_undefined else _text(default)
    account.lose("/fill_value", f"the fill value {_text(exact)}", f"{account.title} has no words for it: {why}", kept)
    fallback = replace(target, fill_value=UNDEFINED if has_undefined else default)
    return fallback, _is_same_scalar(after.default_fill_value, wanted, after)


def _carried_fill(scalar: Any, before: DataType, after: DataType, values: _Values) -> Any:
    match values:
        case "raw":
            return np.frombuffer(bytes_of(scalar, before.dtype), after.dtype)[0]
        case "integers":
            return np.frombuffer(bytes_of(scalar, before.dtype), after.dtype)[0]
        case "cast":
            return np.asarray(scalar).astype(after.dtype)[()]
    if before.dtype.names is not None:
        return np.asarray(scalar, before.dtype).astype(after.dtype)[()]
    return scalar


def _is_same_scalar(left: Any, right: Any, data_type: DataType) -> bool:
    if not data_type.is_fixed_size:
        return bool(left == right)
    return bytes_of(left, data_type.dtype) == bytes_of(right, data_type.dtype)


def _text(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."


def _with_keys(target: ArrayMetadata, source: ArrayMetadata, account: _Account, *, in_place: bool) -> ArrayMetadata:
    default = account.dialect.new_arrays.chunk_key_encoding
    kept = replace(target, chunk_key_encoding=source.chunk_key_encoding)
    read, why = _try(kept, account.dialect)
    is_possible = isinstance(read, ArrayMetadata) and same(read.chunk_key_encoding, source.chunk_key_encoding)
    if in_place:
        if not is_possible:
            reason = f"chunks that stay where they are have keys that {account.title} has no words for: {why}"
            account.lose(account.pointers("chunk_key_encoding"), "the array", reason)
            raise _CannotCarryError
        return kept
    if is_possible and (account.dialect.new_arrays.has_filters or source.dialect == account.dialect.name):
        return kept
    return replace(target, chunk_key_encoding=default)


def _with_names(target: ArrayMetadata, source: ArrayMetadata, account: _Account) -> ArrayMetadata:
    """Return `target` with attributes and names of dimensions, which older formats keep in an attribute."""
    attributes = _attributes(source, account)
    names = source.dimension_names
    if not account.dialect.new_arrays.has_filters:  # v3
        listed = attributes.get(DIMENSIONS)
        if names is None and DIMENSIONS in attributes and source.dialect != account.dialect.name:
            fits = is_list(listed) and len(listed) == len(target.shape) and all(isinstance(n, str) for n in listed)
            if fits and is_list(listed):
                names = tuple(str(name) for name in listed)
                del attributes[DIMENSIONS]
                account.remark(f"the attribute {DIMENSIONS} becomes dimension_names")
            else:
                account.remark(
                    f"the attribute {DIMENSIONS} names no {len(target.shape)} dimensions: it stays an attribute"
                )
        target = replace(target, dimension_names=names)
    elif names is not None:
        _name_by_attribute(names, attributes, account)
    found = _with_attributes(target, attributes, account)
    return found if isinstance(found, ArrayMetadata) else target


def _name_by_attribute(names: tuple[str | None, ...], attributes: dict[str, JSON], account: _Account) -> None:
    what, why = f"dimension_names {list(names)}", f"{account.title} has no place for them"
    if names and all(name is None for name in names):
        account.remark("dimension_names that are all null are left out")
    elif any(name is None for name in names):
        account.lose("/dimension_names", what, f"{why}, and the attribute {DIMENSIONS} holds no null")
    elif DIMENSIONS in attributes:
        if not same(attributes[DIMENSIONS], list(names)):
            kept = f"the attribute {DIMENSIONS}"
            account.lose("/dimension_names", what, f"{why}, and the attribute {DIMENSIONS} says something else", kept)
    else:
        attributes[DIMENSIONS] = list(names)
        account.remark(f"dimension_names become the attribute {DIMENSIONS}")
