"""The dialect ``v1``: ``meta`` and ``attrs``, and the chunks ``1.0`` beside them. One array per directory; no groups.

zarr 1.0 and 1.1 are the only programs that wrote it. Where they departed from the text, reading follows them: in order
F they stored bytes in order C, unless the compression was blosc.

Spec: Zarr v1.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

from omnizarr.formats.contract import Documents
from omnizarr.formats.filters import Step
from omnizarr.formats.history import early
from omnizarr.formats.history.early import Format, Option
from omnizarr.formats.reader import Reader, is_integer, is_list, join
from omnizarr.formats.spelling import Aspect, recall, revision
from omnizarr.model import JSON, ArrayMetadata, Metadata, Named, Report, strict

NAME: Final = "v1"

_SPEC: Final = 'Zarr v1, "Metadata"'
_DOCUMENTS: Final = ("meta", "attrs")
_MEMBERS: Final = ("zarr_format", "shape", "chunks", "dtype", "compression", "compression_opts", "fill_value", "order")
_OPTIONS: Final = "/compression_opts"
_FORMAT: Final = Format(
    dialect=NAME,
    title="Zarr v1",
    spec=_SPEC,
    array_document="meta",
    attributes_document="attrs",
    members=_MEMBERS,
    codecs=("blosc", "numcodecs.blosc", "numcodecs.zlib", "numcodecs.bz2", "numcodecs.lzma"),
    key_encoding=Named("v2", {"separator": "."}),
)

_CHECKS: Final = (-1, 0, 1, 4, 10)
_EXTREME: Final = 1 << 31
_RAW: Final = 3
_NUMERAL: Final = re.compile("-?[0-9]{1,9}")


def _is_preset(value: Any) -> bool:
    return value is None or (is_integer(value) and value & ~_EXTREME in early.LEVELS)


def _is_filters(value: Any) -> bool:
    return value is None or (is_list(value) and all(isinstance(one, Mapping) and "id" in one for one in value))


_LZMA_OPTIONS: Mapping[str, Option] = {
    "format": Option(1, lambda value: is_integer(value) and value in (1, 2, 3), "1 (xz), 2 (alone) or 3 (raw)"),
    "check": Option(0, lambda value: is_integer(value) and value in _CHECKS, f"one of {', '.join(map(str, _CHECKS))}"),
    "preset": Option(None, _is_preset, "an integer from 0 to 9, perhaps with bit 31 set, or null"),
    "filters": Option(None, _is_filters, "a list of objects with an id, or null"),
}
_LOWEST_LEVELS: Mapping[str, int] = {"zlib": 0, "gzip": 0, "bz2": 1}
_COMPRESSIONS: Final = ("none", "blosc", "zlib", "gzip", "bz2", "lzma")


def load(documents: Documents, report: Report = strict) -> Metadata | None:
    """Return the metadata in the documents of an array; None if ``meta`` does not belong to Zarr.

    Examples
    --------
    >>> meta = {"zarr_format": 1, "shape": [20], "chunks": [10], "dtype": "<i4", "compression": "zlib",
    ...         "compression_opts": 1, "fill_value": 42, "order": "C"}
    >>> load({"meta": meta, "attrs": {}}).codecs[-1]
    Named(name='numcodecs.zlib', configuration={'level': 1}, must_understand=True)
    """
    document = documents.get("meta")
    # any program may call a file "meta"
    if not isinstance(document, Mapping) or not ("zarr_format" in document or {"shape", "chunks"} <= document.keys()):
        return None
    reader = Reader(report)
    found = document.get("zarr_format")
    if "zarr_format" not in document:
        reader.problem("/zarr_format", "zarr_format is missing", expected="1", spec=_SPEC)
    elif found != 1 or type(found) is not int:
        reader.problem("/zarr_format", "another zarr_format", found=found, expected="1", spec=_SPEC)
    for name in _MEMBERS[1:]:
        if name not in document:
            reader.problem(f"/{name}", f"{name} is missing", spec=_SPEC)
    attributes = _read_attributes(reader, documents)

    def read_steps(ndim: int) -> tuple[list[Step], str]:
        if not ndim:
            message = "no dimensions, for which the text has no chunk key: the chunk is looked for at '0'"
            reader.note("/shape", message, _SPEC)
        steps = _read_compression(reader, document)
        return steps, _read_order(reader, document, steps, ndim)

    return early.load_array(reader, documents, _FORMAT, attributes, read_steps, _ASPECTS)


def dump(metadata: Metadata) -> dict[str, JSON]:
    """Return the documents of an array, ``attrs`` even if it is empty.

    Raises
    ------
    NotRepresentableError
        Zarr v1 cannot express something, such as groups; the message names it.
    MetadataError
        Something that was created or changed since it was read is not valid.
    """
    array = early.refuse_group(metadata, _FORMAT)
    document = early.dump_array(array, _FORMAT, _ASPECTS, {"zarr_format": 1}, load)
    attributes = recall(array, NAME, "attrs", array.attributes)
    if not attributes:
        stored = early.stored_documents(array, _FORMAT).get("attrs")
        attributes = {"attrs": revision(array.attributes, stored)}
    return {"meta": document, **attributes}


# Reading


def _read_attributes(reader: Reader, documents: Documents) -> Mapping[str, JSON]:
    spec = 'Zarr v1, "Attributes"'
    if "attrs" not in documents:
        reader.note("", "attrs is missing, read as empty", spec)
        return {}
    value = documents["attrs"]
    if isinstance(value, Mapping):
        return value
    reader.problem("", "attrs is not an object", found=value, expected="an object", spec=spec)
    return {}


def _read_order(reader: Reader, document: Mapping[str, JSON], steps: Sequence[Step], ndim: int) -> str:
    """Return the order of the bytes that zarr 1 stored."""
    order = document.get("order", "C")
    if order not in ("C", "F"):
        reader.problem("/order", "no order", found=order, expected='"C" or "F"', spec=_SPEC)
    if order != "F":
        return "C"
    if ndim > 1 and not any(step.id == "blosc" for step in steps):
        reader.note("/order", "F, but zarr 1 stored order C without blosc: read as C", _SPEC)
        return "C"
    return "F"


def _read_compression(reader: Reader, document: Mapping[str, JSON]) -> list[Step]:
    """Return the compressor in the form of numcodecs; an empty list without a compressor."""
    name, options = document.get("compression"), document.get("compression_opts")
    match name:
        case None | "none":
            if name is None and "compression" in document:
                reader.note("/compression", 'null, read as "none"', _SPEC)
            if options is not None:
                reader.note(_OPTIONS, "options without a compression, ignored", _SPEC)
            return []
        case "zlib" | "gzip" | "bz2":
            if name == "gzip":
                reader.note("/compression", "gzip, by which zarr 1 meant a zlib stream", _SPEC)
            level = _read_level(reader, options, _LOWEST_LEVELS[name])
            return [Step("bz2" if name == "bz2" else "zlib", {"level": level}, "/compression")]
        case "blosc":
            return [Step("blosc", _read_options(reader, options, early.BLOSC_OPTIONS), "/compression")]
        case "lzma":
            return [Step("lzma", _read_lzma(reader, options), "/compression")]
    expected = f"one of {', '.join(_COMPRESSIONS)}"
    reader.problem("/compression", "unknown compression", found=name, expected=expected, spec=_SPEC)
    return []


def _read_level(reader: Reader, options: JSON, lowest: int) -> int:
    if options is None:
        reader.note(_OPTIONS, "null, read as 1", _SPEC)
        return 1
    level = options
    if isinstance(options, str) and _NUMERAL.fullmatch(options):
        level = int(options)
        reader.note(_OPTIONS, f"the string {options!r}, read as a number", _SPEC)
    if is_integer(level) and lowest <= level <= early.LEVELS[-1]:
        return level
    expected = f"an integer from {lowest} to {early.LEVELS[-1]}"
    reader.problem(_OPTIONS, "no valid level", found=options, expected=expected, spec=_SPEC)
    return 1


def _read_options(reader: Reader, options: JSON, known: Mapping[str, Option]) -> dict[str, JSON]:
    if options is None:
        reader.note(_OPTIONS, "null, read as the defaults", _SPEC)
        return {name: option.default for name, option in known.items()}
    if not isinstance(options, Mapping):
        expected = f"an object with {', '.join(known)}"
        reader.problem(_OPTIONS, "no options of this compression", found=options, expected=expected, spec=_SPEC)
        return {name: option.default for name, option in known.items()}
    for name in options:
        if name not in known:
            reader.note(join(_OPTIONS, name), "no option of this compression, ignored", _SPEC)
    return early.read_options(reader, options, known, _OPTIONS, _SPEC)


def _read_lzma(reader: Reader, options: JSON) -> dict[str, JSON]:
    found = _read_options(reader, options, _LZMA_OPTIONS)
    filters = join(_OPTIONS, "filters")
    if found["filters"] == []:
        reader.note(filters, "empty, read as null", _SPEC)
        found["filters"] = None
    if found["filters"] is not None and found["preset"] is not None:
        reader.note(join(_OPTIONS, "preset"), "a preset beside filters, ignored", _SPEC)
        found["preset"] = None
    if found["format"] == _RAW and found["filters"] is None:
        reader.problem(
            filters, "a raw stream needs its filters", found=None, expected="a list of objects with an id", spec=_SPEC
        )
    return found


# Writing


def _write_compression(metadata: ArrayMetadata, form: Format) -> Mapping[str, JSON]:
    stack = early.stack_of(metadata, form)
    compressor = dict(stack.compressor or {"id": "none"})
    name = compressor.pop("id")
    if stack.order == "F" and name != "blosc":
        raise form.refuse(
            f"order F with compression {name!r}, which zarr 1 would read as order C",
            "use order C, or compress with blosc",
            "order F",
        )
    options: JSON
    match name:
        case "blosc":
            options = {option: compressor.get(option, known.default) for option, known in early.BLOSC_OPTIONS.items()}
        case "lzma":
            options = {"format": 1, "check": -1, "preset": None, "filters": None}
            options |= {option: compressor[option] for option in options if option in compressor}
        case "none":
            options = None
        case _:
            options = compressor.get("level", 1)
    return {"compression": name, "compression_opts": options, "order": stack.order}


_ASPECTS: Mapping[str, Aspect] = {
    **early.ASPECTS,
    "codecs": Aspect(
        ("compression", "compression_opts", "order"),
        lambda m: (m.codecs, m.data_type, len(m.shape)),
        _write_compression,
    ),
}
