"""How values are stored: special attributes, HDF5 filters, Zarr codecs, options of ``createVariable``.

netCDF names filters as HDF5 does, by numbers with unsigned parameters, and has special attributes for the oldest
three. NCZarr stores each as a codec of numcodecs.

Spec: NCZarr, "Codec Specifications"; the names and meanings of special attributes are those of ncgen and ncdump.
"""

from __future__ import annotations

import json
import operator
import re
import struct
from collections.abc import Iterator, Mapping, Sequence
from math import prod
from typing import Any, Final, Literal, NamedTuple, cast

import numpy as np

from omnizarr.codecs import portable, registry, szip
from omnizarr.codecs.record import Filter as HDF5Filter
from omnizarr.codecs.record import between
from omnizarr.errors import CodecError, MissingDependencyError, NotRepresentableError, SettingError, UnknownCodecError
from omnizarr.formats.filters import Step, dump_codec, load_codec, load_step, read_step
from omnizarr.formats.reader import Reader, is_integer
from omnizarr.model import JSON, Named, strict, thawed
from omnizarr.netcdf import quantize, types
from omnizarr.netcdf.header import Attribute, DimensionHeader
from omnizarr.netcdf.types import AnyType

SPEC: Final = 'NCZarr, "Codec Specifications"'

DEFLATE: Final = 1
SHUFFLE: Final = 2
FLETCHER32: Final = 3
SZIP: Final = 4
BZIP2: Final = 307
BLOSC: Final = 32001
ZSTD: Final = 32015

BLOSC_OPTIONS = ("blosc_lz", "blosc_lz4", "blosc_lz4hc", "blosc_snappy", "blosc_zlib", "blosc_zstd")
_UINT32 = 2**32
_POINTER_SIZE = 8
_OWN_ATTRIBUTES: Mapping[str, int] = {"_Fletcher32": FLETCHER32, "_Shuffle": SHUFFLE, "_DeflateLevel": DEFLATE}


class Filter(NamedTuple):
    """An HDF5 filter of a variable."""

    id: int
    parameters: tuple[int, ...] = ()

    def __str__(self) -> str:
        return ",".join(map(str, (self.id, *self.parameters)))


BY_NUMBER: Final = {
    DEFLATE: "zlib",
    SHUFFLE: "shuffle",
    FLETCHER32: "fletcher32",
    SZIP: "szip",
    BZIP2: "bz2",
    BLOSC: "blosc",
    ZSTD: "zstd",
}
"""The codecs of numcodecs that netCDF-C has for filters, by their number in HDF5; their records have the parameters.

Parameters: of zlib, bz2 and zstd the level; of szip the mask and the pixels per block; of blosc three that the
filter fills in (revision, format, type size), the block size, the level, the shuffle (0, 1, or 2 for bits) and
the number of the compressor. Shuffle and fletcher32 have none.
"""

_NUMBERS: Mapping[str, int] = {**{codec: number for number, codec in BY_NUMBER.items()}, "gzip": DEFLATE}


def _kind(number: int) -> HDF5Filter | None:
    """Return how netCDF-C turns a filter into a codec; None if it does not."""
    record = registry.of_numcodecs(BY_NUMBER.get(number, ""))
    return None if record is None else record.hdf5


# From special attributes to codecs


def chain(special: Mapping[str, Attribute], nc_type: AnyType) -> tuple[Named, ...]:
    """Return the bytes-to-bytes codecs that special attributes request.

    ``_Codecs`` alone defines the codecs, and other attributes are ignored. Otherwise, filters have the order of
    the attributes, with shuffle always immediately before deflate. ncdump prints ``_Fletcher32``, ``_Shuffle``,
    ``_DeflateLevel``, ``_Filter``, and ncgen applies them in this order. netCDF4-python's createVariable has the
    checksum last, like `of_options`.

    Parameters
    ----------
    special : mapping of str to Attribute
    nc_type : NcType or UserType
        Of the variable.

    Raises
    ------
    CodecError
        If an attribute is not valid.
    UnknownCodecError
        If there is no codec for a filter.

    Examples
    --------
    >>> from omnizarr.netcdf.types import FLOAT
    >>> special = {"_Shuffle": Attribute.of("true"), "_DeflateLevel": Attribute.of(4)}
    >>> [(each.name, dict(each.configuration)) for each in chain(special, FLOAT)]
    [('numcodecs.shuffle', {'elementsize': 4}), ('numcodecs.zlib', {'level': 4})]
    """
    element_size = _element_size(nc_type)
    if "_Codecs" in special:
        return tuple(_of_list(_codec_list(special["_Codecs"]), element_size))
    found: list[Named] = []
    for each in _filters(special):
        found.append(_codec(each, 1 if found else element_size, element_size))
    return tuple(found)


def widely_read(codecs: Sequence[Named], nc_type: AnyType, zarr_format: Literal[2, 3]) -> tuple[Named, ...]:
    """Return codecs that most readers of a format support, in place of rare ones.

    In v2, these are the codecs of numcodecs, so szip becomes zlib; in v3, those of `omnizarr.codecs.portable`.

    Parameters
    ----------
    codecs : sequence of Named
        Bytes-to-bytes codecs; see `chain`.
    nc_type : NcType or UserType
        Of the variable.
    zarr_format : {2, 3}

    Examples
    --------
    >>> from omnizarr.netcdf.types import FLOAT
    >>> deflated = Named("numcodecs.zlib", {"level": 4})
    >>> [each.name for each in widely_read([deflated, Named("numcodecs.fletcher32")], FLOAT, 3)]
    ['gzip', 'crc32c']
    >>> dict(widely_read([Named("numcodecs.shuffle", {"elementsize": 4}), deflated], FLOAT, 3)[0].configuration)
    {'cname': 'zlib', 'clevel': 4, 'shuffle': 'shuffle', 'typesize': 4, 'blocksize': 0}
    """
    if zarr_format == 2:
        zlib = Named("numcodecs.zlib", {"level": _USUAL_LEVEL})
        return tuple(zlib if codec.name == "numcodecs.szip" else codec for codec in codecs)
    if nc_type is types.STRING:  # no elements of one size
        codecs = [codec for codec in codecs if codec.name != "numcodecs.shuffle"]
    return tuple(codec for _, new in portable.replaced(codecs, _element_size(nc_type)) for codec in new)


_USUAL_LEVEL: Final = 5


def _element_size(nc_type: AnyType) -> int:
    """Return the element size that filters see. In netCDF-C, a string is a pointer."""
    if nc_type is types.STRING:
        return _POINTER_SIZE
    return 1 if nc_type.dtype.hasobject else nc_type.dtype.itemsize


def _of_list(listed: Sequence[Mapping[str, JSON]], element_size: int) -> Iterator[Named]:
    """Yield the bytes-to-bytes codecs among those in a JSON list, in the form of v2 or v3."""
    item_size = element_size
    reader = Reader(strict)
    for position, each in enumerate(listed):
        if "id" in each:
            step = cast("Step", read_step(reader, each, f"/{position}"))
            named = load_step(reader, step, item_size, element_size)
        else:
            named = Named(str(each["name"]), cast("Mapping[str, JSON]", each.get("configuration", {})))
        try:
            takes_bytes = "bytes to bytes" in registry.find(named.name).kind
        except (UnknownCodecError, MissingDependencyError):
            takes_bytes = True  # running it will show
        if takes_bytes:
            yield named
            item_size = 1


def parse(text: str) -> tuple[Filter, ...]:
    """Return the filters in the text of a ``_Filter`` attribute.

    Filters are separated by ``|``, their parameters by commas. A parameter is an unsigned number of 32 bits. A
    letter after it makes it ``b``, ``s`` (8 or 16 bits), ``f`` (the bits of a float), ``d`` or ``l`` (two
    numbers, the lower half of 64 bits first). A prefix in brackets, the number of the format, is ignored, as in
    netCDF-C.

    Examples
    --------
    >>> parse("307,9|32015,-1")
    (Filter(id=307, parameters=(9,)), Filter(id=32015, parameters=(4294967295,)))
    >>> parse("40000,1.5f,1L,-1b,0.5d")[0].parameters
    (1069547520, 1, 0, 255, 0, 1071644672)
    """
    body = _PREFIX.sub("", text, count=1)
    specs = body.removesuffix("|").split("|")
    return tuple(_parse_one(spec, text) for spec in specs) if body else ()


_PREFIX = re.compile(r"^\[\s*[-+]?[0-9]+[^]]*\]")
_ID = re.compile(r"\s*([0-9]{1,10})\s*")
_PARAMETER = re.compile(r"\s*([-+]?(?:[0-9]++(?:\.[0-9]*+)?|\.[0-9]++)(?:[eE][-+]?[0-9]+)?)([uU]?)([bBsSlLfFdD]?)\s*")


def _parse_one(spec: str, text: str) -> Filter:
    first, *rest = spec.split(",")
    match = _ID.fullmatch(first)
    if match is None or int(match[1]) >= _UINT32:
        raise _bad_filter(text, first)
    return Filter(int(match[1]), tuple(number for each in rest for number in _parse_parameter(each, text)))


def _parse_parameter(parameter: str, text: str) -> tuple[int, ...]:
    match = _PARAMETER.fullmatch(parameter)
    if match is None:
        raise _bad_filter(text, parameter)
    number, letter = match[1], match[3].lower()
    try:
        if letter == "d":
            return struct.unpack("<2I", struct.pack("<d", float(number)))
        if letter == "f" or (not letter and number.endswith(".")):
            return struct.unpack("<I", struct.pack("<f", float(number)))
        value = int(number)
    except (ValueError, OverflowError):
        raise _bad_filter(text, parameter) from None
    bits = 64 if letter == "l" else 32
    if not -(2 ** (bits - 1)) <= value < 2**bits:
        raise _bad_filter(text, parameter)
    if letter == "l":
        return (value % _UINT32, value % 2**64 // _UINT32)
    return (value % {"b": 2**8, "s": 2**16}.get(letter, _UINT32),)


def _bad_filter(text: str, part: str) -> CodecError:
    return CodecError(
        f"the attribute _Filter has an invalid part: {part!r}",
        found=text,
        expected="ids and parameters of filters of HDF5, as in '32015,3|307,9'",
        spec=SPEC,
    )


def _filters(special: Mapping[str, Attribute]) -> Iterator[Filter]:
    """Yield the filters of attributes other than ``_Codecs``, in order."""
    found: dict[int, Filter] = {}
    for name, attribute in special.items():
        if name in ("_Shuffle", "_DeflateLevel"):
            # deflate must compress shuffled bytes, whatever the order of the attributes
            for each in ("_Shuffle", "_DeflateLevel"):
                if each in special:
                    found.update(_own_filter(each, special[each]))
        elif name in _OWN_ATTRIBUTES:
            found.update(_own_filter(name, attribute))
        elif name == "_Filter":
            # a repeated filter replaces its parameters, as in netCDF-C
            found.update((each.id, each) for each in parse(_text(name, attribute)))
    yield from found.values()


def _own_filter(name: str, attribute: Attribute) -> dict[int, Filter]:
    number = _OWN_ATTRIBUTES[name]
    if name == "_DeflateLevel":
        return {number: Filter(number, (_number(name, attribute, 0, 9),))}
    return {number: Filter(number)} if _truth(name, attribute) else {}


def _codec(given: Filter, item_size: int, element_size: int) -> Named:
    kind = _kind(given.id)
    if kind is None:
        raise UnknownCodecError(
            f"the filter {given.id} of HDF5 has no codec",
            found=str(given),
            expected="one of " + ", ".join(f"{number} ({codec})" for number, codec in BY_NUMBER.items()),
            remedy="name another filter, or a codec of Zarr by the attribute _Codecs",
            spec=SPEC,
        )
    if len(given.parameters) < kind.length:
        raise CodecError(
            f"the filter {given.id} of HDF5 lacks parameters",
            codec=BY_NUMBER[given.id],
            found=str(given),
            expected=f"{kind.length} of them",
            spec=SPEC,
        )
    # stored shuffles and checksums have parameters that HDF5 filled in, which are ignored
    return load_codec(BY_NUMBER[given.id], kind.load(given.parameters[: kind.length], element_size), item_size)


def _codec_list(attribute: Attribute) -> list[Mapping[str, JSON]]:
    text = _text("_Codecs", attribute)
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        found = None
    if isinstance(found, Mapping):
        found = [found]
    if not isinstance(found, list) or not all(_is_codec(each) for each in found):
        raise CodecError(
            "the attribute _Codecs lists no codecs",
            found=text,
            expected='JSON such as [{"id": "zlib", "level": 4}]',
            spec=SPEC,
        )
    return found


def _is_codec(value: Any) -> bool:
    if not isinstance(value, Mapping):
        return False
    return isinstance(value.get("id"), str) or (
        isinstance(value.get("name"), str) and isinstance(value.get("configuration", {}), Mapping)
    )


# From codecs to special attributes


def special(codecs: Sequence[Named], item_size: int = 0) -> dict[str, Attribute]:
    """Return the special attributes that show `codecs`, as ``ncdump -s`` does.

    First those for HDF5 filters, then ``_Codecs`` with all codecs in the spelling of netCDF-C.

    Parameters
    ----------
    codecs : sequence of Named
        A whole chain, or its bytes-to-bytes codecs.
    item_size : int, optional
        Bytes in an element. A shuffle of this size has ``elementsize`` 0, as netCDF-C writes it.

    Examples
    --------
    >>> for name, attribute in special([Named("numcodecs.fletcher32"), Named("zstd", {"level": 3})], 4).items():
    ...     print(name, attribute.value)
    _Fletcher32 true
    _Filter 32015,3
    _Codecs [{"id": "fletcher32"},{"id": "zstd", "level": 3}]
    """
    steps = [_json_of_codec(codec, item_size) for codec in codecs if codec.name not in _NO_FILTERS]
    if not steps:
        return {}
    found = _attributes(_known_filters(steps))
    found["_Codecs"] = Attribute(types.CHAR, f"[{','.join(map(json.dumps, steps))}]")
    return found


_NO_FILTERS = frozenset({"bytes", "endian", "transpose"})
_BLOSC_ORDER = ("id", "clevel", "blocksize", "cname", "shuffle")


def _json_of_codec(codec: Named, item_size: int) -> dict[str, JSON]:
    """Return the JSON of a codec in ``_Codecs``, with the members in netCDF-C's order."""
    try:
        step = dump_codec(codec)
    except NotRepresentableError:
        return {"name": codec.name, "configuration": thawed(codec.configuration)}
    step = thawed(step)
    match step["id"]:
        case "shuffle" if step.get("elementsize") in (item_size, item_size if item_size in _SIZES else _POINTER_SIZE):
            step["elementsize"] = 0
        case "zstd" if is_integer(step.get("level")):
            step["level"] %= _UINT32
        case "blosc" if step.keys() == set(_BLOSC_ORDER):
            step = {key: step[key] for key in _BLOSC_ORDER}
    return step


_SIZES = (1, 2, 4, 8)


def _known_filters(steps: Sequence[Mapping[str, JSON]]) -> list[Filter]:
    return [
        Filter(number, kind.dump(step))
        for step in steps
        if (number := _NUMBERS.get(str(step.get("id")))) is not None and (kind := _kind(number)) is not None
    ]


def _attributes(filters: Sequence[Filter]) -> dict[str, Attribute]:
    """Return the attributes for HDF5 filters, in ncdump's order."""
    by_id = {each.id: each for each in filters}
    found: dict[str, Attribute] = {}
    for name, number in _OWN_ATTRIBUTES.items():
        if number in by_id:
            value = by_id[number].parameters[0] if number == DEFLATE else "true"
            found[name] = _int(value) if isinstance(value, int) else Attribute(types.CHAR, value)
    rest = [str(each) for each in filters if each.id not in _OWN_ATTRIBUTES.values()]
    if rest:
        found["_Filter"] = Attribute(types.CHAR, "|".join(rest))
    return found


# From options to special attributes, and back


def of_options(
    nc_type: AnyType,
    dimensions: Sequence[DimensionHeader] = (),
    *,
    compression: str | None = None,
    zlib: bool = False,
    complevel: int | None = 4,
    shuffle: bool = True,
    szip_coding: str = "nn",
    szip_pixels_per_block: int = 8,
    blosc_shuffle: int = 1,
    fletcher32: bool = False,
    contiguous: bool = False,
    chunksizes: Sequence[int] | None = None,
    endian: str = "native",
    significant_digits: int | None = None,
    quantize_mode: str = "BitGroom",
    fill_value: Any = None,
) -> dict[str, Attribute]:
    """Return the special attributes for options of netCDF4-python's ``createVariable``.

    The options mean the same as there. As there, filters and chunks of scalars are ignored.
    ``least_significant_digit`` is not a special attribute, but an ordinary one.

    Parameters
    ----------
    nc_type : NcType or UserType
        Type of the variable.
    dimensions : sequence of DimensionHeader
        Dimensions of the variable.
    compression : str, optional
        ``zlib``, ``szip``, ``zstd``, ``bzip2``, ``blosc_lz``, ``blosc_lz4``, ``blosc_lz4hc``, ``blosc_zlib`` or
        ``blosc_zstd``.
    zlib : bool, optional
        The older form of ``compression="zlib"``. It has no effect together with `compression`.
    complevel : int, optional
        Compression level; 0 turns any compression off.
    shuffle : bool, optional
        Whether to shuffle bytes before zlib. It has no effect with other compressors.
    szip_coding : {"nn", "ec"}, optional
    szip_pixels_per_block : int, optional
    blosc_shuffle : {0, 1, 2}, optional
        No shuffle, bytes, or bits.
    fletcher32 : bool, optional
    contiguous : bool, optional
        Whether to store the variable in one chunk.
    chunksizes : sequence of int, optional
        One per dimension. A 0 means the default for all.
    endian : {"native", "little", "big"}, optional
    significant_digits : int, optional
        Number of digits to keep; for mode BitRound, number of bits.
    quantize_mode : {"BitGroom", "GranularBitRound", "BitRound"}, optional
    fill_value : scalar, optional
        False: no fill value, which is the special attribute ``_NoFill``. Other values are the ordinary
        attribute ``_FillValue``.

    Returns
    -------
    dict of str to Attribute

    Raises
    ------
    SettingError
        If an option has an invalid value (a ValueError).

    Examples
    --------
    >>> time = DimensionHeader("time", 100)
    >>> special = of_options(types.FLOAT, [time], compression="zstd", complevel=3, fletcher32=True)
    >>> {name: attribute.python for name, attribute in special.items()}
    {'_Filter': '32015,3', '_Fletcher32': 'true'}
    """
    if endian not in ("native", "little", "big"):
        raise SettingError("the byte order means nothing", found=endian, expected="'native', 'little' or 'big'")
    name = compression or ("zlib" if zlib else None)
    given = _compression(
        name if complevel else None,
        _index("complevel", complevel or 0),
        szip_coding,
        _index("szip_pixels_per_block", szip_pixels_per_block),
        _index("blosc_shuffle", blosc_shuffle),
        shuffle=shuffle,
    )
    found: dict[str, Attribute] = {}
    if dimensions:
        found.update(_storage(dimensions, chunksizes, contiguous=contiguous))
        # in the order in which netCDF4-python applies them
        found.update(given)
        points = prod(each.size or 1 for each in dimensions)
        if name == "szip" and szip_pixels_per_block > points:
            raise SettingError(
                "a block of szip has more pixels than the variable", found=szip_pixels_per_block, expected=f"{points}"
            )
        if fletcher32:
            found["_Fletcher32"] = Attribute(types.CHAR, "true")
    if endian != "native":
        found["_Endianness"] = Attribute(types.CHAR, endian)
    if fill_value is False:
        found["_NoFill"] = Attribute(types.CHAR, "true")
    if significant_digits is not None:
        digits = _index("significant_digits", significant_digits)
        quantize.check(quantize_mode, digits, nc_type.dtype)
        found[quantize.ATTRIBUTES[quantize_mode]] = _int(digits)
    return found


def _index(name: str, value: Any) -> int:
    try:
        return operator.index(value)
    except TypeError:
        raise SettingError(f"{name} is not an integer", found=repr(value), expected="an integer") from None


def _compression(
    name: str | None, level: int, coding: str, pixels: int, blosc_shuffle: int, *, shuffle: bool
) -> dict[str, Attribute]:
    if name is None:
        return {}
    if name not in COMPRESSIONS:
        raise SettingError("no such compression", found=name, expected=f"one of {', '.join(COMPRESSIONS)}, or None")
    if name == "szip" and coding not in szip.CODINGS:
        raise SettingError("no such coding of szip", found=coding, expected="'nn' or 'ec'")
    match name:
        case "zlib":
            filters = [Filter(SHUFFLE)] if shuffle else []
            filters.append(Filter(DEFLATE, (level,)))
        case "szip":
            filters = [Filter(SZIP, (szip.CODINGS[coding], pixels))]
        case "zstd":
            filters = [Filter(ZSTD, (level % _UINT32,))]
        case "bzip2":
            filters = [Filter(BZIP2, (level,))]
        case _:
            filters = [Filter(BLOSC, (0, 0, 0, 0, level, blosc_shuffle, BLOSC_OPTIONS.index(name)))]
    try:
        for each in filters:
            _codec(each, 1, 1)
    except CodecError as error:
        raise SettingError(error.message, found=error.found, expected=error.expected) from None
    return _attributes(filters)


COMPRESSIONS: Final = (
    *("zlib", "szip", "zstd", "bzip2"),
    *("blosc_lz", "blosc_lz4", "blosc_lz4hc", "blosc_zlib", "blosc_zstd"),
)
"""The values of `compression` in netCDF4-python."""


def _storage(
    dimensions: Sequence[DimensionHeader], chunksizes: Sequence[int] | None, *, contiguous: bool
) -> dict[str, Attribute]:
    if contiguous:
        if chunksizes is not None:
            raise SettingError("a contiguous variable has no chunks", found=list(chunksizes), expected="no chunksizes")
        if any(each.unlimited for each in dimensions):
            raise SettingError(
                "a variable cannot be contiguous along an unlimited dimension",
                found=[each.name for each in dimensions if each.unlimited],
            )
        return {"_Storage": Attribute(types.CHAR, "contiguous")}
    if chunksizes is None:
        return {}
    if len(chunksizes) != len(dimensions):
        raise SettingError("a chunk has another rank", found=list(chunksizes), expected=f"{len(dimensions)} sizes")
    sizes = [_index("a chunk size", size) for size in chunksizes]
    for size, each in zip(sizes, dimensions, strict=True):
        if size < 0 or (size > each.size and not each.unlimited):
            raise SettingError(
                f"a chunk does not fit dimension {each.name!r}", found=size, expected=f"0 to {each.size}"
            )
    if 0 in sizes:
        return {}
    nc_type = types.INT if max(sizes) < 2**31 else types.INT64
    lengths = Attribute(nc_type, np.array(sizes, nc_type.dtype))
    return {"_Storage": Attribute(types.CHAR, "chunked"), "_ChunkSizes": lengths}


def filters_dict(special: Mapping[str, Attribute]) -> dict[str, Any]:
    """Return the result of netCDF4-python's ``Variable.filters()``.

    Examples
    --------
    >>> filters_dict({"_Filter": Attribute.of("4,32,8")})["szip"]
    {'coding': 'nn', 'pixels_per_block': 8}
    """
    found: dict[str, Any] = dict.fromkeys(("zlib", "szip", "zstd", "bzip2", "blosc", "shuffle"), False)
    found |= {"complevel": 0, "fletcher32": False}
    filters = _known_filters(_codec_list(special["_Codecs"])) if "_Codecs" in special else list(_filters(special))
    for number, parameters in filters:
        kind = _kind(number)
        if kind is None or len(parameters) < kind.length:
            continue
        match number:
            case 1 | 307 | 32015:
                found[OPTIONS[number]] = True
                found["complevel"] = parameters[0] - (_UINT32 if parameters[0] >= _UINT32 // 2 else 0)
            case 4:
                coding = "nn" if parameters[0] & szip.CODINGS["nn"] else "ec"
                found["szip"] = {"coding": coding, "pixels_per_block": parameters[1]}
            case 32001:
                found["complevel"] = parameters[4]
                if parameters[6] < len(BLOSC_OPTIONS):
                    found["blosc"] = {"compressor": BLOSC_OPTIONS[parameters[6]], "shuffle": parameters[5]}
            case _:
                found[OPTIONS[number]] = True
    return found


OPTIONS: Mapping[int, str] = {
    DEFLATE: "zlib",
    SHUFFLE: "shuffle",
    FLETCHER32: "fletcher32",
    BZIP2: "bzip2",
    ZSTD: "zstd",
}


def quantization(special: Mapping[str, Attribute]) -> tuple[int, str] | None:
    """Return the number of digits kept, and the mode, like netCDF4-python's ``Variable.quantization()``.

    Examples
    --------
    >>> quantization({"_QuantizeBitRoundNumberOfSignificantBits": Attribute.of(9)})
    (9, 'BitRound')
    """
    for mode, name in quantize.ATTRIBUTES.items():
        if name not in special:
            continue
        value = special[name].python
        if isinstance(value, int | np.integer | float | np.floating) and value > 0:
            return int(value), mode
    return None


# Reading attributes


def _text(name: str, attribute: Attribute) -> str:
    value = attribute.python
    if not isinstance(value, str):
        raise CodecError(f"the attribute {name} is not text", found=value)
    return value.rstrip("\0")


def _number(name: str, attribute: Attribute, low: int, high: int) -> int:
    value = attribute.python
    if isinstance(value, str):
        value = int(value) if re.fullmatch(r"\s*[-+]?[0-9]{1,10}\s*", value) else None
    if not isinstance(value, int | np.integer):
        raise CodecError(f"the attribute {name} is not an integer", found=attribute.python)
    return between(f"the attribute {name}", int(value), low, high)


def _truth(name: str, attribute: Attribute) -> bool:
    value = attribute.python
    found = {"true": True, "1": True, "false": False, "0": False}.get(str(value).strip().lower())
    if found is None:
        raise CodecError(f"the attribute {name} is neither true nor false", found=value, expected="'true' or 'false'")
    return found


def _int(value: int) -> Attribute:
    return Attribute(types.INT, np.array([value], types.INT.dtype))
