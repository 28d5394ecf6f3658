"""Codecs as users name them: small values with a name and a configuration.

They do not run. You pass them to `create_array`, and find them in an array's ``filters``, ``serializer`` and
``compressors``. `to_dict` returns their form in documents.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, ClassVar, TypeAlias

from omnizarr.model import JSON, Named


class _Word(StrEnum):
    """A value of a configuration: one of a few strings, which is shown as a string."""

    def __repr__(self) -> str:
        return repr(self.value)


class Endian(_Word):
    """Byte order of stored elements, for `BytesCodec`."""

    big = "big"
    little = "little"


class BloscShuffle(_Word):
    """How Blosc rearranges bytes before it compresses them, for `BloscCodec`."""

    noshuffle = "noshuffle"
    shuffle = "shuffle"
    bitshuffle = "bitshuffle"


class BloscCname(_Word):
    """The compressor that Blosc uses, for `BloscCodec`."""

    lz4 = "lz4"
    lz4hc = "lz4hc"
    blosclz = "blosclz"
    zstd = "zstd"
    snappy = "snappy"
    zlib = "zlib"


class ShardingCodecIndexLocation(_Word):
    """The position of the index in a shard, for `ShardingCodec`."""

    start = "start"
    end = "end"


@dataclass(frozen=True)
class Codec:
    """Any codec, by name.

    Examples
    --------
    >>> Codec("numcodecs.shuffle", {"elementsize": 4}).to_dict()
    {'name': 'numcodecs.shuffle', 'configuration': {'elementsize': 4}}
    """

    name: str
    configuration: Mapping[str, Any] = field(default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        """Return the codec in the form of a v3 document."""
        return _document(self.name, dict(self.configuration))


class _Value:
    """A codec whose fields are its configuration."""

    name: ClassVar[str]
    words: ClassVar[Mapping[str, type[_Word]]] = {}
    """Fields with one of a few words."""

    def __post_init__(self) -> None:
        for name, kind in self.words.items():
            # Other words are kept, and raise an error when the codec is bound.
            value = getattr(self, name)
            value = getattr(value, "value", value)
            object.__setattr__(self, name, kind(value) if value in list(kind) else value)

    @property
    def configuration(self) -> dict[str, Any]:
        """The configuration in the form of a v3 document, without undetermined values."""
        return {name: _plain(value) for name, value in vars(self).items() if value is not None}

    def to_dict(self) -> dict[str, Any]:
        """Return the codec in the form of a v3 document."""
        return _document(self.name, self.configuration)


@dataclass(frozen=True, kw_only=True)
class BytesCodec(_Value):
    """Array to bytes: the elements in C order. Spec: Zarr v3, "Bytes codec".

    Parameters
    ----------
    endian : {"little", "big"} or Endian, optional
        None for data types of single bytes.
    """

    name: ClassVar[str] = "bytes"
    words: ClassVar[Mapping[str, type[_Word]]] = {"endian": Endian}
    endian: str | None = "little"


@dataclass(frozen=True, kw_only=True)
class TransposeCodec(_Value):
    """Array to array: the axes in another order. Spec: Zarr v3, "Transpose codec".

    Parameters
    ----------
    order : iterable of int
        Axis i of the encoded array is axis ``order[i]`` of the decoded one.
    """

    name: ClassVar[str] = "transpose"
    order: Iterable[int]

    def __post_init__(self) -> None:
        object.__setattr__(self, "order", tuple(int(axis) for axis in self.order))


@dataclass(frozen=True, kw_only=True)
class GzipCodec(_Value):
    """Bytes to bytes: gzip. Spec: Zarr v3, "Gzip codec".

    Parameters
    ----------
    level : int
        0 (none) to 9.
    """

    name: ClassVar[str] = "gzip"
    level: int = 5


@dataclass(frozen=True, kw_only=True)
class ZstdCodec(_Value):
    """Bytes to bytes: Zstandard. Spec: zarr-extensions, "zstd".

    Parameters
    ----------
    level : int
        -131072 to 22; 0 means the library's default.
    checksum : bool
    """

    name: ClassVar[str] = "zstd"
    level: int = 0
    checksum: bool = False


@dataclass(frozen=True, kw_only=True)
class BloscCodec(_Value):
    """Bytes to bytes: Blosc. Spec: Zarr v3, "Blosc codec".

    Parameters
    ----------
    cname : str or BloscCname
        ``"blosclz"``, ``"lz4"``, ``"lz4hc"``, ``"snappy"``, ``"zlib"`` or ``"zstd"``.
    clevel : int
        0 (none) to 9.
    shuffle : {"noshuffle", "shuffle", "bitshuffle"} or BloscShuffle, optional
        None: chosen for the data type.
    typesize : int, optional
        None: the item size of the data type.
    blocksize : int
        0: Blosc chooses.
    """

    name: ClassVar[str] = "blosc"
    words: ClassVar[Mapping[str, type[_Word]]] = {"cname": BloscCname, "shuffle": BloscShuffle}
    typesize: int | None = None
    cname: str = "zstd"
    clevel: int = 5
    shuffle: str | None = None
    blocksize: int = 0


@dataclass(frozen=True)
class Crc32cCodec(_Value):
    """Bytes to bytes: a CRC-32C checksum after the bytes. Spec: Zarr v3, "CRC32C checksum codec"."""

    name: ClassVar[str] = "crc32c"


@dataclass(frozen=True)
class VLenUTF8Codec(_Value):
    """Array to bytes: strings of variable length. Spec: zarr-extensions, "vlen-utf8"."""

    name: ClassVar[str] = "vlen-utf8"


@dataclass(frozen=True)
class VLenBytesCodec(_Value):
    """Array to bytes: byte strings of variable length. Spec: zarr-extensions, "vlen-bytes"."""

    name: ClassVar[str] = "vlen-bytes"


@dataclass(frozen=True, kw_only=True)
class ScaleOffset(_Value):
    """Array to array: ``(x - offset) * scale`` in the array's own type. Spec: zarr-extensions, "scale_offset"."""

    name: ClassVar[str] = "scale_offset"
    offset: JSON = 0
    scale: JSON = 1


@dataclass(frozen=True, kw_only=True)
class CastValue(_Value):
    """Array to array: the values in another data type. Spec: zarr-extensions, "cast_value"."""

    name: ClassVar[str] = "cast_value"
    data_type: JSON
    rounding: str = "nearest-even"
    out_of_range: str | None = None
    scalar_map: Mapping[str, Any] | None = None


@dataclass(frozen=True, kw_only=True)
class ShardingCodec(_Value):
    """Array to bytes: a shard, many inner chunks and an index in one value. Spec: Zarr v3, "Sharding codec".

    Parameters
    ----------
    chunk_shape : iterable of int
        Shape of an inner chunk.
    codecs, index_codecs : iterable of codecs
    index_location : {"end", "start"} or ShardingCodecIndexLocation
    """

    name: ClassVar[str] = "sharding_indexed"
    words: ClassVar[Mapping[str, type[_Word]]] = {"index_location": ShardingCodecIndexLocation}
    chunk_shape: Iterable[int]
    codecs: Iterable[Any] = (BytesCodec(),)
    index_codecs: Iterable[Any] = (BytesCodec(), Crc32cCodec())
    index_location: str = "end"

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "chunk_shape", tuple(int(length) for length in self.chunk_shape))
        object.__setattr__(self, "codecs", tuple(map(value_of, self.codecs)))
        object.__setattr__(self, "index_codecs", tuple(map(value_of, self.index_codecs)))


CodecValue: TypeAlias = Codec | _Value

_CLASSES: Mapping[str, Callable[..., CodecValue]] = {kind.name: kind for kind in _Value.__subclasses__()}


def value_of(codec: Any) -> CodecValue:
    """Return the value for a codec given as a value, a `Named`, a name, a document, or an object with ``to_dict``.

    Raises TypeError for anything else.

    >>> value_of({"name": "gzip", "configuration": {"level": 1}})
    GzipCodec(level=1)
    """
    if isinstance(codec, (Codec, _Value)):
        return codec
    if isinstance(codec, str):
        codec = {"name": codec}
    if isinstance(codec, Named):
        codec = {"name": codec.name, "configuration": codec.configuration}
    if not isinstance(codec, Mapping) and callable(getattr(codec, "to_dict", None)):
        codec = codec.to_dict()
    if not isinstance(codec, Mapping) or not isinstance(codec.get("name"), str):
        raise TypeError(f"not a codec: {codec!r}; expected a codec value, a name, or a dictionary with a 'name'")
    name, configuration = codec["name"], dict(codec.get("configuration") or {})
    if name == "bytes":
        configuration.setdefault("endian", None)
    try:
        return _CLASSES[name](**configuration)
    except (KeyError, TypeError, ValueError):
        # There is no class for it, or its class cannot hold the configuration: it is kept, and refused when it is
        # bound.
        return Codec(name, configuration)


def named(codec: Any) -> Named:
    """Return the model's `Named` for a codec in any form that `value_of` accepts."""
    if isinstance(codec, Named):
        return codec
    value = value_of(codec)
    return Named(value.name, _plain(value.configuration))


def _document(name: str, configuration: dict[str, Any]) -> dict[str, Any]:
    return {"name": name, "configuration": configuration} if configuration else {"name": name}


def _plain(value: Any) -> Any:
    """Return a part of a configuration as JSON values; enumeration members become their values."""
    if isinstance(value, (Codec, _Value)):
        return value.to_dict()
    if isinstance(value, Mapping):
        return {name: _plain(item) for name, item in value.items()}
    if isinstance(value, (tuple, list)):
        return [_plain(item) for item in value]
    return getattr(value, "value", value)
