"""The nearest chain of codecs that a format has.

A codec is kept if the target can express it, under any name. If not, it is replaced by one with the same output, else
by a related one, else by the target's default; checksums and shuffles are left out. Either all filters are kept or
none, because each takes the output of the one before it. Chunks that have to be encoded again go through no filter that
might change values once more: what was rounded stays rounded, and is stored unchanged.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from numbers import Integral
from typing import Any, Final, TypeAlias

from omnizarr.codecs import blosc, chain, registry
from omnizarr.codecs.registry import bare
from omnizarr.codecs.values import named as named_codec
from omnizarr.errors import MissingDependencyError, OmnizarrError, PickleDisabledError, UnknownCodecError
from omnizarr.formats.contract import Dialect
from omnizarr.formats.filters import bytes_codec
from omnizarr.formats.reader import is_integer, is_list
from omnizarr.formats.spelling import same
from omnizarr.model import ArrayMetadata, Named, datatypes, grids
from omnizarr.nodes import chunking, new_metadata
from omnizarr.nodes.equivalence import have_same_bytes, have_same_elements, spec_of
from omnizarr.nodes.new_metadata import Coding
from omnizarr.tools.advise import layouts
from omnizarr.tools.translate.losses import NodeLosses, attempt
from omnizarr.tools.translate.readers import for_readers

KEEP: Final = "keep"
"""Value of an option: as in the source."""
PORTABLE: Final = "portable"
"""The same for compressors, except those that few readers of the target know."""

_Option: TypeAlias = tuple[Named, ...]

_EARLY: Final = ("v0", "v1")
"""Formats whose programs have a Blosc of 2016 or before."""
_WORDS: Final[Mapping[str, str]] = {"transpose": "another order of elements than C", "sharding_indexed": "shards"}
"""Codecs without a name in the formats before v3."""
_MOST_CHAINS: Final = 512
"""Maximum number of chains that are tried."""
_ADDED: Final = 3
"""Distance between no compressor and one, in steps from one option to the next."""


@dataclass(frozen=True, slots=True)
class Encoding:
    """How the user wants arrays to be encoded, where not as in the source; see `omnizarr.convert`."""

    chunks: Any = None
    shards: Any = None
    filters: Any = KEEP
    serializer: Any = KEEP
    compressors: Any = PORTABLE
    codecs: Any = None
    in_place: bool = False
    strings: str | None = None
    """"fixed": strings of any length are measured, and become strings of the longest one's length."""

    @property
    def keeps_chunks(self) -> bool:
        """Whether stored chunks shall stay unchanged, where that is possible."""
        return self.in_place or self.compressors == KEEP

    @property
    def any_layout(self) -> bool:
        """Whether chunks shall be others."""
        return self.chunks is not None or self.shards is not None

    @property
    def any_coding(self) -> bool:
        """Whether codecs shall be others."""
        parts = (self.filters, self.serializer, self.compressors)
        return self.codecs is not None or not all(is_kept(part) for part in parts)

    @property
    def given(self) -> dict[str, Any]:
        """Return the keywords that ask for something else than the source has."""
        layout = {"chunks": self.chunks, "shards": self.shards, "codecs": self.codecs}
        coding = {"filters": self.filters, "serializer": self.serializer, "compressors": self.compressors}
        return {
            **{name: value for name, value in layout.items() if value is not None},
            **{name: value for name, value in coding.items() if not is_kept(value)},
        }

    @property
    def compressors_left(self) -> Any:
        """The treatment of compressors if the user gives none."""
        return self.compressors if is_kept(self.compressors) else PORTABLE

    def for_array(self, ndim: int, *, is_alone: bool) -> dict[str, Any]:
        """Return keywords of `translate`: in a hierarchy, lengths of chunks are for arrays of that many dimensions."""
        given = self.given
        layout = [given.get("chunks"), _shape_in(given.get("shards"))]
        if not is_alone and any(_is_row(lengths) and len(lengths) != ndim for lengths in layout):
            return {name: value for name, value in given.items() if name not in ("chunks", "shards")}
        return given


def _shape_in(shards: Any) -> Any:
    return shards.get("shape") if isinstance(shards, Mapping) else shards


def _is_row(lengths: object) -> bool:
    return isinstance(lengths, Sequence) and not isinstance(lengths, str)


def is_kept(option: object) -> bool:
    """Whether an option says to keep what there is."""
    return isinstance(option, str) and option in (KEEP, PORTABLE)


# Chunks


def with_nearest_grid(
    target: ArrayMetadata, source: ArrayMetadata, encoding: Encoding, account: NodeLosses
) -> ArrayMetadata:
    """Return `target` with the chunks of `source`, or with chunks of one shape where it can have no other."""
    if len(target.shape) != len(source.shape):
        return target
    grid = grids.bind(source.chunk_grid, source.shape)
    if source.chunk_grid.name == "regular" and grid.chunk_shape is not None:
        return replace(target, chunk_grid=grids.regular([max(length, 1) for length in grid.chunk_shape]))
    kept = replace(target, chunk_grid=source.chunk_grid)
    read, _ = attempt(kept, account.dialect)
    if read is not None:
        return kept
    lengths = []
    for axis, length in zip(grid.axes, source.shape, strict=True):
        lengths.append(min(max((*axis.sizes, 1)), max(length, 1)))
    if not encoding.any_layout:
        shape = tuple(lengths)
        account.remark(f"chunks of different shapes become chunks of one shape, {shape}, and are encoded again")
    return replace(target, chunk_grid=grids.regular(lengths))


def without_shards(source: ArrayMetadata, encoding: Encoding, account: NodeLosses) -> ArrayMetadata:
    """Return an array as it is if the target has shards; else as if each inner chunk of a shard were a chunk."""
    flat = source
    while account.dialect.new_arrays.has_filters and (inner := chunking.inner_chunk_shape(flat.codecs)) is not None:
        if len(inner) != len(flat.shape) or not all(is_integer(size) and size > 0 for size in inner):
            break  # no shards that could be read
        flat = replace(flat, chunk_grid=grids.regular(inner), codecs=within_shards(flat.codecs))
    if flat is not source and not encoding.any_layout:
        grid = grids.bind(flat.chunk_grid, flat.shape)
        account.remark(
            f"{account.title} has no shards: their inner chunks, {grid.chunk_shape}, become chunks, encoded again, "
            f"with up to {grid.nchunks} keys"
        )
    return flat


def within_shards(codecs: tuple[Named, ...]) -> tuple[Named, ...]:
    """Return the codecs of inner chunks, after the codecs that apply to the whole shard."""
    for at, codec in enumerate(codecs):
        if codec.name == "sharding_indexed":
            inner: Any = codec.configuration.get("codecs", ())
            return (*codecs[:at], *(named_codec(item) for item in inner))
    return codecs


# Codecs


def with_nearest_codecs(
    target: ArrayMetadata, flat: ArrayMetadata, source: ArrayMetadata, encoding: Encoding, account: NodeLosses
) -> ArrayMetadata:
    """Return `target` with the codecs nearest to the codecs of `flat` (the source without shards) that it can have.

    Raises CannotCarryError if chunks cannot be decoded here, and cannot stay unchanged either.
    """
    if encoding.codecs is not None:
        _check_readable(source, account)
        return target
    wanted = tuple(codec for codec in flat.codecs if not _is_replaced(codec, encoding))
    comes_from_elsewhere = source.dialect != "v3" or any(map(_only_reads, wanted))
    if account.dialect.name == "v3" and comes_from_elsewhere and not encoding.keeps_chunks:
        chunk_size = math.prod(max((*axis.sizes, 1)) for axis in grids.bind(target.chunk_grid, target.shape).axes)
        wanted = for_readers(wanted, _item_size(target), chunk_size, account)
    if target.data_type.name == "structured":
        wanted = tuple(map(_little, wanted))  # zarr-python 3.1 takes no notice of another order
    found = _search(target, replace(flat, codecs=wanted), account.dialect, exact=False)
    has_new = encoding.any_layout or encoding.any_coding
    if found is not None:
        kept = replace(target, codecs=found)
        if same(target.data_type, source.data_type):
            kept = replace(kept, fill_value=source.fill_value)
        if has_new or not (have_same_bytes(source, kept) or have_same_elements(source, kept)):
            _check_readable(source, account)
            if any(map(_is_inexact, wanted)):
                found = _search(target, replace(flat, codecs=wanted), account.dialect, exact=True)
    if found is None:
        _check_readable(source, account)
        raise account.fail(account.pointer("codecs"), "the array", f"{account.title} cannot express its codecs")
    _remark_codecs(wanted, found, account)
    return replace(target, codecs=found)


def _only_reads(codec: Named) -> bool:
    found = registry.record(codec.name)
    return found is not None and found.only_reads


def _little(codec: Named) -> Named:
    return Named("bytes", {"endian": "little"}) if codec.name == "bytes" and codec.configuration else codec


def _check_readable(source: ArrayMetadata, account: NodeLosses) -> None:
    """Raise CannotCarryError if chunks that have to be encoded again cannot be decoded here."""
    for at, codec in enumerate(source.codecs):
        if _kind(codec) is None and codec.must_understand:
            why = f"codec {codec.name!r} is not known here, and {account.title} cannot express it"
            raise account.fail(_pointer_of(source, at, account), "the array", why)
    try:
        chain.bind(source.codecs, spec_of(source))
    except (MissingDependencyError, PickleDisabledError):
        return
    except OmnizarrError as error:
        why = f"its chunks cannot be decoded: {error.message}"
        raise account.fail(account.pointer("codecs"), "the array", why) from None


def _pointer_of(source: ArrayMetadata, at: int, account: NodeLosses) -> str:
    if source.dialect == "v3":
        return account.pointer("codecs", at)
    is_last = at == len(source.codecs) - 1
    return "/compressor" if source.dialect == "v2" and is_last else account.pointer("codecs")


def _is_replaced(codec: Named, encoding: Encoding) -> bool:
    """Whether the user puts something else in place of a codec."""
    kind = _kind(codec)
    if kind == "bytes to bytes":
        return not is_kept(encoding.compressors)
    return kind == "array to array" and not is_kept(encoding.filters) and codec.name != "transpose"


def _search(target: ArrayMetadata, source: ArrayMetadata, dialect: Dialect, *, exact: bool) -> tuple[Named, ...] | None:
    """Return the nearest chain that the target can have; `exact`: without codecs that could change values."""
    codecs = _for_memory(source, target)
    default: _Option = tuple(codec for codec in target.codecs if _kind(codec) == "bytes to bytes")
    serializers = _serializers(target)
    item_size = _item_size(target)
    has_filters = any(_is_filter(codec) for codec in codecs)
    without = [False] if has_filters else []
    choices = without if exact and any(_is_inexact(c) and _is_filter(c) for c in codecs) else [True, *without]
    for keeps_filters in choices:
        slots: list[list[_Option]] = []
        for codec in codecs:
            if _is_filter(codec):
                slots.append([(codec,)] if keeps_filters else [()])
            else:
                slots.append(_options(codec, item_size, default, serializers, exact=exact))
        if not any(_kind(codec) in ("array to bytes", "array or bytes", None) for codec in codecs):
            slots.append(list(serializers))
        if not any(_compresses(codec) and _kind(codec) == "bytes to bytes" for codec in codecs):
            slots.append([(), *[()] * (_ADDED - 1), default])
        for option in itertools.islice(_by_distance(slots), _MOST_CHAINS):
            found = tuple(itertools.chain.from_iterable(option))
            if _is_possible(replace(target, codecs=found), dialect):
                return found
    return None


def _serializers(target: ArrayMetadata) -> list[_Option]:
    """Return what turns the target's elements into bytes, if no codec of the source does."""
    if target.data_type.name.startswith("omnizarr."):
        return []  # what the objects are is known to their own codec alone
    data_type = datatypes.bind(target.data_type, target.byte_order)
    if not data_type.is_fixed_size:
        return [tuple(codec for codec in target.codecs if _kind(codec) == "array to bytes")]
    found: list[_Option] = []
    for order in (target.byte_order, "<", ">"):
        option = (bytes_codec(data_type.with_byte_order("<" if order == "<" else ">").dtype),)
        if option not in found:
            found.append(option)
    return found


def _item_size(target: ArrayMetadata) -> int:
    data_type = datatypes.bind(target.data_type)
    return data_type.dtype.itemsize if data_type.is_fixed_size else 1


def _by_distance(slots: Sequence[Sequence[_Option]]) -> Iterable[tuple[_Option, ...]]:
    """Yield one option per slot, those with few changes first, each once."""
    if math.prod(len(options) for options in slots) > _MOST_CHAINS:
        # of very long chains all or nothing
        yield tuple(options[0] for options in slots)
        yield tuple(options[-1] for options in slots)
        return
    seen = set()
    places = itertools.product(*(range(len(options)) for options in slots))
    for chosen in sorted(places, key=sum):
        option = tuple(options[place] for options, place in zip(slots, chosen, strict=True))
        mark = repr(option)
        if mark not in seen:
            seen.add(mark)
            yield option


def _is_possible(target: ArrayMetadata, dialect: Dialect) -> bool:
    """Whether an array can be written and read back unchanged, with a chain that runs, as far as that can be told."""
    read, _ = attempt(target, dialect)
    if read is None or not have_same_bytes(target, read):
        return False
    try:
        chain.bind(read.codecs, spec_of(read))
    except (UnknownCodecError, MissingDependencyError, PickleDisabledError):
        return True
    except OmnizarrError:
        return False
    return True


def _options(
    codec: Named, item_size: int, default: _Option, serializers: list[_Option], *, exact: bool
) -> list[_Option]:
    """Return what a codec may become, nearest first; the empty tuple leaves it out."""
    kind, name = _kind(codec), bare(codec.name)
    if kind is None:
        return [(codec,)] if codec.must_understand else [(codec,), ()]
    if kind == "array to bytes":
        others = [(*option, *default) for option in serializers] if _compresses(codec) else serializers
        return others if exact and _is_inexact(codec) else [(codec,), *others]
    options: list[_Option] = [(codec,)]
    prefixed = Named(f"numcodecs.{name}", codec.configuration)
    plain = registry.record(name)
    if codec.name == name and (plain is None or not plain.names[name].status) and _kind(prefixed) == kind:
        options.append((prefixed,))
    if _compresses(codec):
        options += [*_akin(codec, name, item_size), default]
    return [*options, ()]


def _akin(codec: Named, name: str, item_size: int) -> Iterator[_Option]:
    """Yield compressors that are related to another one. Compressors with the same stream format come first."""
    level = codec.configuration.get("level", 1)
    level = min(max(level, 1), 9) if is_integer(level) else 1
    if name == "blosc":
        shuffle = codec.configuration.get("shuffle", "noshuffle")
        shuffle = str(shuffle) if shuffle in blosc.SHUFFLES else "shuffle"
        cname, clevel = codec.configuration.get("cname", "lz4"), codec.configuration.get("clevel", 5)
        yield (blosc.named(cname, clevel, shuffle, item_size),)
        return
    if name in ("bz2", "gzip", "zlib"):
        yield (Named("gzip" if name == "gzip" else f"numcodecs.{name}", {"level": level}),)
    if name == "gzip":
        yield (Named("numcodecs.zlib", {"level": level}),)
    record = registry.bare_record(name)
    if record is not None and record.in_blosc is not None:
        # Only formats before v2 need it; their programs fail on most of what the newest compressor makes today.
        cname = record.in_blosc(codec.configuration)[0]
        yield (blosc.named("zlib" if cname == blosc.NEWEST_COMPRESSOR else cname, level, "noshuffle", item_size),)


def _for_memory(source: ArrayMetadata, target: ArrayMetadata) -> tuple[Named, ...]:
    """Return the codecs, of which the first filter sees elements in the byte order that the target's have in memory."""
    if source.byte_order == target.byte_order:
        return source.codecs
    codecs = list(source.codecs)
    for at, codec in enumerate(codecs):
        name = bare(codec.name)
        if name in ("transpose", "bitround"):
            continue
        record = registry.bare_record(codec.name)
        parameter = record.memory_type if record is not None else None
        dtype = None if parameter is None else codec.configuration.get(parameter)
        if parameter is not None and isinstance(dtype, str) and dtype[:1] == source.byte_order:
            configuration = {**codec.configuration, parameter: target.byte_order + dtype[1:]}
            if name != "astype" and configuration.get("astype") is None:
                configuration["astype"] = dtype
            codecs[at] = Named(codec.name, configuration, codec.must_understand)
        break
    return tuple(codecs)


def _kind(codec: Named) -> str | None:
    """Return what a codec takes and gives; None if unknown."""
    try:
        return registry.find(codec.name).kind
    except MissingDependencyError:
        record = registry.record(codec.name)
        return None if record is None else record.kind
    except OmnizarrError:
        return None


def _is_filter(codec: Named) -> bool:
    return _kind(codec) == "array to array" and codec.name != "transpose"


def _is_inexact(codec: Named) -> bool:
    record = registry.bare_record(codec.name)
    if record is None:
        return False
    found = record.is_inexact
    return found if isinstance(found, bool) else found(codec.configuration)


def _compresses(codec: Named) -> bool:
    record = registry.bare_record(codec.name)
    return record is not None and record.compresses


def _remark_codecs(before: Sequence[Named], after: Sequence[Named], account: NodeLosses) -> None:
    """Say which codecs are not there any more, and which are new."""
    old, new = [bare(codec.name) for codec in before], [bare(codec.name) for codec in after]
    gone = [_WORDS.get(name, repr(name)) for name in dict.fromkeys(old) if name not in new]
    come = [repr(name) for name in dict.fromkeys(new) if name not in old and name != "bytes"]
    again = f"chunks are encoded again with {' and '.join(come)}" if come else "chunks are encoded again without"
    if gone:
        account.remark(f"{account.title} cannot have {' and '.join(gone)} here: {again}")
    elif come:
        account.remark(f"{account.title} has no chunks without compression: {again}")
    if account.dialect.name in _EARLY and any(
        codec.configuration.get("cname") == blosc.NEWEST_COMPRESSOR for codec in after
    ):
        newest = f"newer versions of {blosc.NEWEST_COMPRESSOR}"
        account.remark(f"zarr 0 and 1 fail on most of what {newest} compress: they read blosc with others")


def remark_parameters(source: ArrayMetadata, target: ArrayMetadata, account: NodeLosses) -> None:
    """Say which parameters, of no matter to readers, will be others for chunks that are written from here on."""
    after = {bare(codec.name): codec for codec in target.codecs}
    for codec in source.codecs:
        name = bare(codec.name)
        other = after.get(name)
        if other is None or other.name != codec.name or name in ("transpose", "bytes", "sharding_indexed"):
            continue
        for parameter, value in codec.configuration.items():
            found = other.configuration.get(parameter)
            if parameter in other.configuration and "dtype" not in parameter and not same(value, found):
                account.remark(f"{parameter} of {name!r} was {value!r}, and is {found!r} for what is written again")


# What the user wants otherwise


def with_encoding(target: ArrayMetadata, encoding: Encoding, account: NodeLosses) -> ArrayMetadata:
    """Return `target` with the layout and the codecs that the user wants. Raises what `create_array` raises."""
    if not (encoding.any_layout or encoding.any_coding):
        return target
    inner = chunking.inner_chunk_shape(target.codecs)
    grid = grids.bind(target.chunk_grid, target.shape)
    stored: Any = grid.chunk_shape
    if stored is None:
        stored = [_lengths(axis) for axis in grid.axes]
    data_type = datatypes.bind(target.data_type, target.byte_order)
    item_size = new_metadata.size_of(data_type)
    chunks = _within(encoding.chunks, target.shape, item_size, "chunks")
    shards = encoding.shards
    if inner is not None and chunks is None and shards is None:
        shards = stored
    if chunks is None:
        chunks = stored if inner is None else inner
    if account.dialect.name == "v3" and _is_automatic(shards):
        chunks, lengths = _automatic(target.shape, chunks, item_size)
        shards = {**shards, "shape": lengths} if isinstance(shards, Mapping) and lengths is not None else lengths
    shards = _within(shards, _covering(target.shape, chunks), item_size, "shards")
    made = new_metadata.array_metadata(
        account.dialect,
        shape=target.shape,
        dtype=data_type,
        chunks=chunks,
        shards=shards,
        coding=_coding(within_shards(target.codecs), encoding, account.dialect),
        fill_value=None,
    )
    found = replace(target, chunk_grid=made.chunk_grid, codecs=made.codecs)
    if (found.chunk_grid, found.codecs) != (target.chunk_grid, target.codecs):
        account.remark("chunks are laid out and encoded again, as asked for")
    with suppress(UnknownCodecError, MissingDependencyError, PickleDisabledError):
        chain.bind(
            found.codecs, spec_of(found)
        )  # shards that chunks do not divide are refused before anything is written
    return found


def _is_automatic(shards: Any) -> bool:
    if isinstance(shards, Mapping):
        shards = shards.get("shape")
    return shards is True or (isinstance(shards, str) and shards == "auto")


def _automatic(shape: tuple[int, ...], chunks: Any, item_size: int) -> tuple[Any, Any]:
    """Return chunks and shards as `omnizarr.advise` has them, for chunks that are given, or also for those ("auto")."""
    if is_list(chunks) and len(chunks) == len(shape) and all(isinstance(size, Integral) for size in chunks):
        return layouts.automatic(shape, tuple(int(size) for size in chunks), item_size)
    if chunks is True or chunks == "auto":
        return layouts.automatic(shape, None, item_size)
    return chunks, "auto"  # of different shapes, which shards cannot have


def _within(asked: Any, shape: Sequence[int], item_size: int, keyword: str) -> Any:
    """Return the lengths of chunks that a user asks for, none of them longer than the array.

    Raises MetadataError if one length is given for all dimensions, and the chunks would be very large.
    """
    if isinstance(asked, Mapping):
        return {**asked, "shape": _within(asked.get("shape"), shape, item_size, keyword)}
    is_one = isinstance(asked, Integral) and not isinstance(asked, bool) and int(asked) > 0
    lengths: Any = [asked] * len(shape) if is_one else asked
    if not is_list(lengths) or len(lengths) != len(shape):
        return asked
    pairs = zip(lengths, shape, strict=True)
    found = tuple(min(wanted, length or wanted) if isinstance(wanted, Integral) else wanted for wanted, length in pairs)
    if is_one:
        new_metadata.refuse_large(tuple(map(int, found)), item_size, keyword)
    return found


def _covering(shape: Sequence[int], chunks: Any) -> list[int]:
    """Return the lengths of the fewest chunks that cover an array; 0 where that is not known."""
    if not is_list(chunks) or len(chunks) != len(shape):
        return [0] * len(shape)
    pairs = zip(shape, chunks, strict=True)
    is_known = [isinstance(size, Integral) and int(size) > 0 for size in chunks]
    return [-(-length // size) * size if known else 0 for (length, size), known in zip(pairs, is_known, strict=True)]


def _lengths(axis: grids.Axis) -> list[int]:
    """Return the lengths of the chunks along one dimension, the last cut at its end."""
    found = [axis.chunk(number) for number in range(axis.count)]
    return [min(size, axis.length - start) for start, size in found] or [1]


def _coding(kept: tuple[Named, ...], encoding: Encoding, dialect: Dialect) -> Coding:
    if encoding.codecs is not None:
        return Coding(codecs=encoding.codecs)
    at = next(at for at, codec in enumerate(kept) if _kind(codec) not in ("array to array", None))
    transposes = [codec for codec in kept[:at] if codec.name == "transpose"]
    filters = list(kept[:at]) if is_kept(encoding.filters) else [*transposes, *_listed(encoding.filters)]
    serializer = kept[at] if is_kept(encoding.serializer) else encoding.serializer
    compressors = list(kept[at + 1 :]) if is_kept(encoding.compressors) else encoding.compressors
    if not dialect.new_arrays.has_filters or not is_kept(encoding.serializer):
        return Coding(filters, serializer, compressors)
    if isinstance(compressors, str):  # "auto"
        compressors = dialect.new_arrays.compressor
    plain = [] if kept[at].name == "bytes" else [serializer]
    return Coding(codecs=[*filters, *plain, *_listed(compressors)])


def _listed(given: Any) -> list[Any]:
    if given is None or isinstance(given, str):
        return []
    return list(given) if is_list(given) else [given]
