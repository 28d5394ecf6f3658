"""The keywords that create arrays: their types, their defaults, and signatures that show all of them.

Each function that creates arrays takes ``**options: Unpack[...]`` of one of these types, so type checkers and
editors know the keywords. `shows` gives it the signature that `help` prints. `omnizarr.create_array` documents
their meaning.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping
from enum import Enum
from os import PathLike
from typing import TYPE_CHECKING, Any, Final, Literal, Protocol, TypeAlias, TypedDict, TypeVar

from omnizarr.nodes.config import ArrayConfig
from omnizarr.nodes.location import StorePath
from omnizarr.nodes.node import NodeProperties
from omnizarr.stores import Store
from omnizarr.support import suggestions

if TYPE_CHECKING:
    from numpy.typing import DTypeLike

    from omnizarr.model import Named

F = TypeVar("F", bound=Callable[..., Any])


class ForeignStore(Protocol):
    """A store of obstore or zarr-python, or a filesystem of fsspec: `omnizarr.stores.resolve` knows them."""

    @property
    def get(self) -> Callable[..., Any]:
        """What fetches a value."""


StoreLike: TypeAlias = "str | PathLike[str] | Store | StorePath | NodeProperties | Mapping[str, Any] | ForeignStore"
"""A place: a path, a URL, a store of omnizarr or of another library, a node, or a mapping of keys to values."""


class HasConfig(Protocol):
    """A codec of numcodecs."""

    def get_config(self) -> Any:
        """Return its document."""


class HasDict(Protocol):
    """A codec, or another extension, of `omnizarr.codecs` or of zarr-python."""

    def to_dict(self) -> Any:
        """Return its document."""


CodecLike: TypeAlias = "str | Mapping[str, Any] | HasConfig | HasDict"
"""A codec: its name, its document, or an object of `omnizarr.codecs`, numcodecs or zarr-python."""
CodecsLike: TypeAlias = "CodecLike | Iterable[CodecLike] | None"
"""One codec or several; None: no codec."""
ChunksLike: TypeAlias = "int | str | Iterable[int | Iterable[int] | None] | Mapping[str, Any] | None"
"""A shape of chunks, the word "auto", a bool, or the document of a chunk grid."""
DataTypeLike: TypeAlias = "DTypeLike | Mapping[str, Any] | Named"
"""A data type of NumPy, a name, or a document of Zarr v3."""
Shape: TypeAlias = "int | Iterable[int]"
Mode: TypeAlias = Literal["r", "r+", "a", "w", "w-", "x"]


class BehaviourOptions(TypedDict, total=False):
    """Settings of an open array."""

    config: ArrayConfig | Mapping[str, Any] | None
    write_empty_chunks: bool | None
    missing: Literal["fill", "error"] | None
    allow_pickle: bool | None
    concurrency: int | None


class BaseOptions(BehaviourOptions, total=False):
    """The keywords of every function that creates arrays."""

    codecs: CodecsLike
    compressor: CodecLike | None
    object_codec: CodecLike | None
    order: Literal["C", "F"] | None
    attributes: Mapping[str, Any] | None
    chunk_key_encoding: str | Mapping[str, Any] | HasDict | None
    dimension_separator: Literal[".", "/"] | None
    dimension_names: Iterable[str | None] | None
    overwrite: bool
    write_data: bool
    storage_transformers: Iterable[Any]


class ChunkOptions(TypedDict, total=False):
    """Chunks, and the codecs of each kind."""

    chunks: ChunksLike
    shards: ChunksLike
    filters: CodecsLike
    compressors: CodecsLike
    serializer: CodecLike | None


class ShapeOption(TypedDict, total=False):
    """The shape, if it is not a parameter of its own."""

    shape: int | Iterable[int] | None


class DtypeOption(TypedDict, total=False):
    """The data type, if it is not a parameter of its own."""

    dtype: DataTypeLike


class FillValueOption(TypedDict, total=False):
    """The fill value, for functions that do not set all elements to one value."""

    fill_value: object


class FormatOption(TypedDict, total=False):
    """The format, if it is not that of the group."""

    zarr_format: int | str | None


class DataOption(TypedDict, total=False):
    """The data to store in the array."""

    data: Any


class IgnoredOptions(TypedDict, total=False):
    """Keywords of zarr-python that have no effect."""

    cache_attrs: object
    cache_metadata: object
    chunk_store: object
    meta_array: object


class CopyOptions(BaseOptions, ShapeOption, DtypeOption, FillValueOption, FormatOption, total=False):
    """Keywords of ``from_array`` other than those that it takes from the source."""


class RequireOptions(BaseOptions, ChunkOptions, FillValueOption, total=False):
    """Keywords for an array that may exist: ``Group.require_array``."""


class FillOptions(BaseOptions, ChunkOptions, DtypeOption, total=False):
    """Keywords for a member of a group with one value: ``Group.full``."""


class MemberOptions(FillOptions, FillValueOption, total=False):
    """Keywords for a member of a group: ``Group.zeros``."""


class MemberLikeFillOptions(FillOptions, ShapeOption, FormatOption, total=False):
    """Keywords for a member of a group like another array, with one value: ``Group.full_like``."""


class MemberLikeOptions(MemberLikeFillOptions, FillValueOption, total=False):
    """Keywords for a member of a group like another array: ``Group.zeros_like``."""


class ArrayOptions(MemberOptions, ShapeOption, DataOption, total=False):
    """All keywords that describe an array: ``create_array``."""


class OpenArrayOptions(ArrayOptions, IgnoredOptions, total=False):
    """Keywords for modes that create: ``open_array``."""


class OpenOptions(OpenArrayOptions, total=False):
    """Keywords for an array or a group: ``open``."""

    use_consolidated: bool | str | None
    check_consolidated: bool


class PlaceOptions(FormatOption, total=False):
    """The place of an array or a group within the store."""

    storage_options: Mapping[str, Any] | None
    synchronizer: Any


class OpenLikeOptions(OpenArrayOptions, PlaceOptions, total=False):
    """Keywords for an array like another one: ``open_like``."""

    mode: Mode | None


class OpenConsolidatedOptions(BehaviourOptions, PlaceOptions, IgnoredOptions, total=False):
    """Keywords for a group with consolidated metadata, and its place: ``open_consolidated``."""

    store: StoreLike | None
    mode: Mode | None
    path: str | None
    attributes: Mapping[str, Any] | None
    check_consolidated: bool


class FromZarrOptions(BehaviourOptions, PlaceOptions, total=False):
    """Keywords for an array that dask reads: ``from_zarr``."""

    path: str | None
    storage_transformers: Iterable[Any]


class ToZarrOptions(ArrayOptions, FormatOption, total=False):
    """Keywords for a new array that dask writes: ``to_zarr``."""

    name: str | None
    synchronizer: Any


class SaveOptions(MemberOptions, ShapeOption, total=False):
    """Keywords for given values: ``save_array``."""


class PlacedFillOptions(FillOptions, FormatOption, IgnoredOptions, total=False):
    """Keywords with the place, for an array with one value: ``full``."""

    store: StoreLike | None
    path: str | None
    mode: Literal["a", "w", "w-"] | None
    storage_options: Mapping[str, Any] | None
    synchronizer: Any
    chunk_shape: ChunksLike


class PlacedOptions(PlacedFillOptions, FillValueOption, total=False):
    """Keywords with the place: ``zeros``, ``array``."""


class CreateOptions(PlacedOptions, DataOption, total=False):
    """Keywords with the place and data: ``create``."""


class LikeFillOptions(PlacedFillOptions, ShapeOption, total=False):
    """Keywords for an array like another one, with one value: ``full_like``."""


class LikeOptions(PlacedOptions, ShapeOption, total=False):
    """Keywords for an array like another one: ``zeros_like``."""


class _Default(Enum):
    """Marks a fill value that was not passed."""

    DEFAULT = "default"

    def __repr__(self) -> str:
        return "DEFAULT"


DEFAULT: Final = _Default.DEFAULT

DEFAULTS: Final[Mapping[str, Any]] = {
    "shape": None,
    "dtype": None,
    "data": None,
    "chunks": "auto",
    "shards": None,
    "filters": "auto",
    "compressors": "auto",
    "compressor": "auto",
    "serializer": "auto",
    "codecs": None,
    "object_codec": None,
    "fill_value": DEFAULT,
    "order": None,
    "attributes": None,
    "chunk_key_encoding": None,
    "dimension_separator": None,
    "dimension_names": None,
    "overwrite": False,
    "config": None,
    "write_empty_chunks": None,
    "missing": None,
    "allow_pickle": None,
    "concurrency": None,
    "write_data": True,
    "storage_transformers": (),
}
"""The default of each keyword of `ArrayOptions`. Keywords for the place of an array are None by default."""


def completed(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return options completed with the defaults. Raises TypeError for an unknown one."""
    check(options, DEFAULTS)
    return {**DEFAULTS, **options}


def check(options: Iterable[str], known: Iterable[str]) -> None:
    """Raise TypeError for an unknown keyword, like Python, and suggest similar ones."""
    for name in options:
        if name not in known:
            near = suggestions.question(suggestions.near_names(name, known))
            raise TypeError(f"got an unexpected keyword argument {name!r}" + (f"; {near}" if near else ""))


def shows(*types: type) -> Callable[[F], F]:
    """Return a decorator: `inspect.signature` and `help` then show the keywords of `types` instead of ``**options``."""

    def decorated(function: F) -> F:
        signature = inspect.signature(function)
        named = [each for each in signature.parameters.values() if each.kind is not each.VAR_KEYWORD]
        more = [parameter for each in types for parameter in _parameters(each)]
        function.__signature__ = signature.replace(parameters=[*named, *more])  # type: ignore[attr-defined]
        return function

    return decorated


def _parameters(options: type) -> list[inspect.Parameter]:
    order = {name: number for number, name in enumerate(DEFAULTS)}
    return [
        inspect.Parameter(
            name,
            inspect.Parameter.KEYWORD_ONLY,
            default=DEFAULTS.get(name),
            annotation=getattr(annotation, "__forward_arg__", annotation),
        )
        for name, annotation in sorted(options.__annotations__.items(), key=lambda item: order.get(item[0], len(order)))
    ]
