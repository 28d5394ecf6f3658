"""Formats before v3 that no current program writes: described here, but implemented in modules that are imported later.

Detection needs names, keys and rules of every format each time; these are here. What reads and writes documents
is in a module for each format, which is imported when its first document is found. So programs that use only v2
and v3 need not wait for it.

Spec: Zarr v1; zarr 0.4; Zarr v3 drafts of 2019 and of 2020.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any, Final

from omnizarr.errors import NotRepresentableError
from omnizarr.formats import paths
from omnizarr.formats.contract import Consolidated, Dialect, EntryPoint, NewArrays, Nodes
from omnizarr.formats.keyspaces import KEYS_OF_2020, Early, Flat, Split
from omnizarr.model import JSON, ArrayMetadata, Named, Report, keys, strict


def _late(module: str, name: str) -> Callable[..., Any]:
    """Return a function of a module of this package that is imported when the function is called."""

    def call(*arguments: Any, **options: Any) -> Any:
        return getattr(import_module(f"omnizarr.formats.history.{module}"), name)(*arguments, **options)

    return call


def _load_no_copies(document: JSON, report: Report = strict) -> dict[str, dict[str, JSON]]:
    return {}


def _dump_no_copies(nodes: Nodes) -> dict[str, JSON]:
    raise NotRepresentableError(
        "there is no consolidated metadata in this format",
        remedy="convert to v2 or v3 and consolidate that",
    )


def _other_scalars(metadata: ArrayMetadata) -> tuple[Named, ...]:
    """Return the key that zarr-python and GDAL used for the chunk of an array without dimensions."""
    return () if metadata.shape else keys.others(metadata.chunk_key_encoding, 0)


_NO_COPIES: Final = Consolidated(None, _load_no_copies, _dump_no_copies, is_possible=False)
_DOTS: Final = Named("v2", {"separator": "."})

V1: Final = Dialect(
    name="v1",
    zarr_format=1,
    keyspace=Flat(("meta", "attrs")),
    array_document="meta",
    group_document="meta",
    attributes_document="attrs",
    load=_late("v1", "load"),
    dump=_late("v1", "dump"),
    consolidated=_NO_COPIES,
    new_arrays=NewArrays(
        _DOTS,
        has_filters=True,
        has_byte_order=True,
        has_undefined_fill_value=True,
        has_one_nan=True,
        compressor={"id": "blosc", "cname": "lz4", "clevel": 5, "shuffle": 1},
        fallback={"id": "zlib", "level": 1},
    ),
    check_name=paths.check_v2_name,
    has_groups=False,
)

V0: Final = Dialect(
    name="v0",
    zarr_format=0,
    keyspace=Flat(("__zmeta__", "__zattr__"), "__zdata__/"),
    array_document="__zmeta__",
    group_document="__zmeta__",
    attributes_document="__zattr__",
    load=_late("v0", "load"),
    dump=_late("v0", "dump"),
    consolidated=_NO_COPIES,
    new_arrays=NewArrays(
        Named("omnizarr.v0"),
        has_filters=True,
        has_byte_order=True,
        has_undefined_fill_value=True,
        has_one_nan=True,
        compressor={"id": "blosc", "cname": "blosclz", "clevel": 5, "shuffle": 1},
        fallback=None,
    ),
    check_name=paths.check_v2_name,
    has_groups=False,
)

DRAFT2019: Final = Dialect(
    name="v3-draft2019",
    zarr_format="3-draft2019",
    keyspace=Early(data="data", suffix="", glued=False, dialect="v3-draft2019", consolidated=None),
    array_document="array",
    group_document="group",
    attributes_document=None,
    load=_late("draft2019", "load"),
    dump=_late("draft2019", "dump"),
    consolidated=_NO_COPIES,
    new_arrays=NewArrays(
        _DOTS,
        has_filters=True,
        has_byte_order=True,
        has_undefined_fill_value=True,
        compressor={"id": "gzip", "level": 1},
    ),
    check_name=paths.check_draft_name,
    has_extensions=True,
    entry_point=EntryPoint(_late("draft_entry", "enter"), _late("draft2019", "entry"), is_optional=True),
    has_cases=False,
)

DRAFT2020: Final = Dialect(
    name="v3-draft2020",
    zarr_format="3-draft2020",
    keyspace=Split(),
    array_document="array",
    group_document="group",
    attributes_document=None,
    load=_late("draft2020", "load"),
    dump=_late("draft2020", "dump"),
    consolidated=Consolidated(
        ".zmetadata", _late("draft_consolidated", "load_consolidated"), _late("draft_consolidated", "dump_consolidated")
    ),
    new_arrays=NewArrays(
        Named(KEYS_OF_2020, {"separator": "/"}),
        has_filters=True,
        has_byte_order=True,
        has_undefined_fill_value=True,
        compressor={"id": "gzip", "level": 1},
    ),
    check_name=paths.check_draft_name,
    has_extensions=True,
    other_keys=_other_scalars,
    entry_point=EntryPoint(_late("draft_entry", "enter"), _late("draft_entry", "entry")),
)
