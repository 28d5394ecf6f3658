"""Which programs read which codecs and data types of Zarr v3, and the names that most of them know.

The specification of v3 names few codecs and data types. Others are written under the names that zarr-python gave them,
which other programs do not know, or not all. An array that comes to v3 from another format gets compressors and
checksums that all read, if its user does not ask for others: elements are the same, and chunks that are decompressed
and compressed again go through no filter. If no widely known codec gives the same elements, a remark names the programs
that read it.

`tests/interop/test_readers.py` holds the table against these programs.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from omnizarr.codecs import portable, registry
from omnizarr.codecs.record import ALL, MOST, NONE, ONE, READERS
from omnizarr.codecs.registry import bare
from omnizarr.codecs.values import named as named_codec
from omnizarr.formats.reader import is_list
from omnizarr.model import ArrayMetadata, Named
from omnizarr.model.datatypes.registry import RAW
from omnizarr.tools.translate.losses import NodeLosses

DATA_TYPES: Final[Mapping[str, frozenset[str]]] = {
    **dict.fromkeys(("bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"), ALL),
    **dict.fromkeys(("float16", "float32", "float64", "complex64", "complex128"), ALL),
    **dict.fromkeys(("string", "bytes"), MOST),
    **dict.fromkeys(("fixed_length_utf32", "numpy.datetime64", "numpy.timedelta64"), MOST),
    **dict.fromkeys(("null_terminated_bytes", "raw_bytes", "structured"), ONE),
    "r*": frozenset({"zarrs"}),
    "struct": NONE,
}
"""The programs that read each data type of v3; zarr-python reads ``struct`` since 3.3, which needs Python 3.12."""


def for_readers(codecs: tuple[Named, ...], item_size: int, chunk_size: int, account: NodeLosses) -> tuple[Named, ...]:
    """Return codecs with compressors and checksums in place of those that few readers of v3 know.

    Chunks, of `chunk_size` elements, decode to equal values, and all other codecs stay the same.
    """
    found: list[Named] = []
    for old, new in portable.replaced(codecs, item_size, item_size * chunk_size):
        found += new
        if old != new:
            what = " and ".join(repr(bare(codec.name)) for codec in old)
            how = f"with {new[0].name!r}" if new else "without"
            account.remark(
                f"few readers of Zarr v3 know {what}: chunks are compressed again {how} (unless you ask to keep them)"
            )
    return tuple(found)


def structured(named: Named) -> Named | None:
    """Return the data type ``struct`` as zarr-python 3.1 has it; None if its fields cannot be said there."""
    fields: Any = named.configuration.get("fields")
    found: list[list[Any]] = []
    for field in fields if is_list(fields) else ():
        if not isinstance(field, Mapping) or field.get("shape") or "byte_order" in field:
            return None
        inner = field["data_type"]
        if isinstance(inner, Mapping) and inner.get("name") == "struct":
            record = structured(Named("struct", inner["configuration"]))
            if record is None:
                return None
            inner = {"name": record.name, "configuration": dict(record.configuration)}
        found.append([field["name"], inner])
    return Named("structured", {"fields": found}) if found else None


def remark_readers(target: ArrayMetadata, account: NodeLosses) -> None:
    """Say so if fewer than two of the programs that were asked read a codec of an array, or its data type."""
    name = "r*" if RAW.fullmatch(target.data_type.name) else target.data_type.name
    things = [("data type", name, DATA_TYPES.get(name))]
    for codec in _all_codecs(target.codecs):
        record = registry.record(codec.name)
        things.append(("codec", codec.name, None if record is None else record.names[codec.name].readers))
    for kind, name, readers in things:
        if readers is None or len(readers) > 1:
            continue
        others = [reader for reader in READERS if reader not in readers]
        text = f"{', '.join(others[:-1])} and {others[-1]} do not read it"
        account.remark(f"{kind} {name!r} is known to {', '.join(sorted(readers)) or 'few programs'}; {text}")


def _all_codecs(codecs: tuple[Named, ...]) -> Iterator[Named]:
    for codec in codecs:
        yield codec
        inner = codec.configuration.get("codecs") if codec.name == "sharding_indexed" else ()
        if is_list(inner):
            yield from _all_codecs(tuple(named_codec(item) for item in inner))
