"""Common parts of the formats before v2: NumPy's types, chunks of one shape, one compressor, no groups.

Spec: Zarr v1, "Metadata"; for v0 the file ``PERSISTENCE.rst`` of zarr 0.4.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, Literal, NamedTuple

import numpy as np

from omnizarr.codecs.blosc import COMPRESSORS
from omnizarr.errors import MetadataError, MissingDependencyError, NotRepresentableError, UnknownDataTypeError
from omnizarr.formats.contract import Documents, Load
from omnizarr.formats.filters import Stack, Step, dump_chain, load_chain
from omnizarr.formats.history import fills
from omnizarr.formats.reader import Reader, is_integer, is_list, join, problem_of, read_chunk_lengths, read_lengths
from omnizarr.formats.spelling import Aspect, in_order_of, read_aspects, remember, write_aspects
from omnizarr.formats.writer import Written, check_fresh, stored_order
from omnizarr.model import (
    JSON,
    UNDEFINED,
    ArrayMetadata,
    GroupMetadata,
    Metadata,
    Named,
    Spelling,
    Undefined,
    datatypes,
)
from omnizarr.model.datatypes import typestr

SHUFFLES: Final = (0, 1, 2)
LEVELS: Final = range(10)

_REMEDIES: Mapping[str, str] = {
    "gzip": "re-encode with numcodecs.zlib (what v1 calls gzip is a zlib stream), or write v2",
    "sharding_indexed": "re-encode with the inner chunks as chunks and blosc as compressor",
    "zstd": "re-encode with blosc (cname lz4, or zlib for size), or write v2",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Format(Written):
    """How a format is written, and its name in errors."""

    dialect: str
    array_document: str
    attributes_document: str
    members: tuple[str, ...]
    """Members of that document, in the order of the specification."""
    codecs: tuple[str, ...]
    """Names of the compressors that it has."""
    key_encoding: Named


class Elements(NamedTuple):
    """The description of elements in ``dtype``."""

    data_type: Named
    byte_order: Literal["<", ">"]
    stored: np.dtype[Any]
    bound: datatypes.DataType | None
    """None if the type is not known here."""


class Option(NamedTuple):
    """One option of a compressor."""

    default: JSON
    is_valid: Callable[[Any], bool]
    expected: str


BLOSC_OPTIONS: Mapping[str, Option] = {
    "cname": Option("lz4", lambda value: value in COMPRESSORS, f"one of {', '.join(COMPRESSORS)}"),
    "clevel": Option(5, lambda value: is_integer(value) and value in LEVELS, "an integer from 0 to 9"),
    "shuffle": Option(1, lambda value: is_integer(value) and value in SHUFFLES, "0, 1 or 2"),
}


# Reading


def read_elements(reader: Reader, document: JSON, spec: str) -> Elements:
    """Parse the member ``dtype``."""
    try:
        named, byte_order = typestr.load(document)
    except UnknownDataTypeError as error:
        if not isinstance(document, str):
            reader.report(problem_of(error, "/dtype", spec)._replace(spec=spec))
        # kept under its name: only reading chunks needs it
        return Elements(Named(str(document)), "<", np.dtype("V1"), None)
    except MetadataError as error:
        reader.report(problem_of(error, "/dtype", spec)._replace(spec=spec))
        document, named, byte_order = "|u1", Named("uint8"), "<"
    _note_departures(reader, document, "/dtype", spec)
    if named.name == "omnizarr.object":
        reader.note("/dtype", "Python objects, of which zarr stored no more than addresses: no chunk can be read", spec)
        named = Named("omnizarr.object", {"object_codec": None})
    try:
        bound = datatypes.bind(named, byte_order)
    except (UnknownDataTypeError, MissingDependencyError):
        return Elements(named, byte_order, np.dtype("V1"), None)
    except MetadataError as error:
        reader.report(problem_of(error, "/dtype", spec))
        return Elements(named, byte_order, np.dtype("V1"), None)
    return Elements(named, byte_order, bound.dtype, bound if bound.is_fixed_size else None)


def _note_departures(reader: Reader, document: JSON, pointer: str, spec: str) -> None:
    """Note parts of a type that are valid in v2, but not in the text of v1 or in NumPy."""
    if is_list(document):
        for i, (name, item, *shape) in enumerate(document):
            if not isinstance(name, str):
                reader.note(join(pointer, i, 0), "a field with a title, which zarr wrote but could not read", spec)
            if shape:
                reader.note(join(pointer, i, 2), "a field with a shape, which zarr wrote but could not read", spec)
            _note_departures(reader, item, join(pointer, i, 1), spec)
    elif isinstance(document, str) and document in typestr.BARE:
        reader.problem(pointer, "no type of NumPy", found=document, expected="a typestr", spec=spec)
    elif isinstance(document, str) and document[0] not in "<>|":
        reader.note(pointer, "no byte order, and none needed", spec)


def read_fill_value(reader: Reader, value: JSON, elements: Elements, spec: str) -> JSON | Undefined:
    """Return the member ``fill_value`` in the terms of v3."""
    if value is None:
        return UNDEFINED
    if elements.bound is None:
        return value
    try:
        return fills.load(value, elements.bound, lambda pointer, message: reader.note(pointer, message, spec))
    except MetadataError as error:
        reader.report(problem_of(error, "/fill_value", spec)._replace(spec=spec))
        return UNDEFINED


def read_options(
    reader: Reader, options: Mapping[str, JSON], known: Mapping[str, Option], pointer: str, spec: str
) -> dict[str, JSON]:
    """Return the options of a compressor, the defaults for those that are missing."""
    found: dict[str, JSON] = {}
    for name, option in known.items():
        value = options.get(name, option.default)
        if name not in options:
            reader.note(join(pointer, name), f"missing, read as {option.default!r}", spec)
        elif not option.is_valid(value):
            reader.problem(join(pointer, name), f"no valid {name}", found=value, expected=option.expected, spec=spec)
            value = option.default
        found[name] = value
    return found


def load_array(
    reader: Reader,
    documents: Documents,
    form: Format,
    attributes: Mapping[str, JSON],
    read_steps: Callable[[int], tuple[Sequence[Step], str]],
    aspects: Mapping[str, Aspect],
) -> ArrayMetadata:
    """Return the metadata in the documents of an array, and how they spell it.

    `read_steps` takes the number of dimensions, and returns the compressor and the order of the elements.
    """
    document, spec = documents[form.array_document], form.spec
    assert isinstance(document, Mapping)  # noqa: S101 - which is checked before
    shape = read_lengths(reader, document.get("shape", []), "/shape", spec)
    chunks = read_chunk_lengths(reader, document.get("chunks", [max(n, 1) for n in shape]), "/chunks", shape, spec)
    elements = read_elements(reader, document.get("dtype", "|u1"), spec)
    steps, order = read_steps(len(shape))
    metadata = ArrayMetadata(
        dialect=form.dialect,
        shape=shape,
        data_type=elements.data_type,
        byte_order=elements.byte_order,
        chunk_grid=Named("regular", {"chunk_shape": list(chunks)}),
        chunk_key_encoding=form.key_encoding,
        fill_value=read_fill_value(reader, document.get("fill_value"), elements, spec),
        codecs=load_chain(reader, steps, order, len(shape), elements.stored),
        attributes=attributes,
        unknown={name: value for name, value in document.items() if name not in form.members},
        notes=tuple(reader.notes),
    )
    memos = read_aspects(metadata, document, aspects)
    memos["documents"] = (None, documents)
    beside = form.attributes_document
    memos[beside] = (attributes, {beside: documents[beside]} if beside in documents else {})
    return replace(metadata, spellings=remember(form.dialect, memos))


# Writing


def refuse_group(metadata: Metadata, form: Format) -> ArrayMetadata:
    """Return `metadata`, if it is of an array."""
    if isinstance(metadata, GroupMetadata):
        raise form.refuse(
            "groups have no place there",
            "write its arrays alone (a directory of arrays is listed as a group), or write v2",
            "a group",
        )
    return metadata


def dump_array(
    metadata: ArrayMetadata, form: Format, aspects: Mapping[str, Aspect], head: Mapping[str, JSON], load: Load
) -> dict[str, JSON]:
    """Return the document of an array: unchanged members as they were read, the rest in the terms of the text.

    Raises
    ------
    NotRepresentableError
        If the format cannot express something.
    MetadataError
        If what is new is not valid.
    """
    form.refuse_names_and_transformers(metadata)
    encoding, wanted = metadata.chunk_key_encoding, form.key_encoding
    separator = wanted.configuration.get("separator", ".")
    if encoding.name != wanted.name or encoding.configuration.get("separator", ".") != separator:
        described = {"name": encoding.name, **encoding.configuration}
        raise form.refuse(
            f"chunk key encoding {encoding.name!r} with these separators has no place there",
            f"use {wanted.name!r} with the separator {separator!r} (and rename the chunks), or write v2",
            described,
        )
    written, fresh = write_aspects(metadata, form.dialect, aspects, form)
    document = in_order_of({**metadata.unknown, **head, **written}, dict.fromkeys(form.members))
    if fresh:
        check_fresh(load, {form.array_document: document}, fresh)
    return in_order_of(document, stored_documents(metadata, form).get(form.array_document))


def stored_documents(metadata: Metadata, form: Format) -> Mapping[str, JSON]:
    """Return the documents that were read."""
    return metadata.spellings.get(f"{form.dialect}:documents", Spelling(None, {})).document


def stack_of(metadata: ArrayMetadata, form: Format) -> Stack:
    """Return order and compressor. Raises NotRepresentableError for codecs that the format does not have."""
    for codec in metadata.codecs:
        if codec.name not in ("transpose", "bytes", *form.codecs):
            raise form.refuse(
                f"codec {codec.name!r} has no place there",
                _REMEDIES.get(codec.name, f"re-encode with {_any_of(form.codecs)} alone, or write v2"),
                dict(codec.configuration) or None,
            )
    try:
        stack = dump_chain(metadata.codecs, len(metadata.shape))
    except NotRepresentableError as error:
        raise form.refuse("the order of the elements within chunks", "re-encode in order C", error.found) from error
    if stack.filters:
        found = [step["id"] for step in (*stack.filters, *([stack.compressor] if stack.compressor else ()))]
        raise form.refuse("there is one compressor, no filters", "re-encode with one of them, or write v2", found)
    if stack.compressor is not None and stack.compressor.get("blocksize"):
        raise form.refuse(
            "a block size of blosc has no place there", "leave it to the library (0)", stack.compressor["blocksize"]
        )
    return stack


def _any_of(names: Collection[str]) -> str:
    *most, last = names
    return f"{', '.join(most)} or {last}" if most else last


def write_shape(metadata: ArrayMetadata, form: Format) -> Mapping[str, JSON]:
    """Return the member ``shape``."""
    if not metadata.shape:
        raise form.refuse(
            "an array without dimensions, whose chunk would have no key",
            "use shape (1,), or write v2",
            "shape ()",
        )
    return {"shape": list(metadata.shape)}


def _write_chunks(metadata: ArrayMetadata, form: Format) -> Mapping[str, JSON]:
    return {"chunks": form.chunk_shape(metadata)}


def write_dtype(metadata: ArrayMetadata, form: Format) -> Mapping[str, JSON]:
    """Return the member ``dtype``."""
    named = metadata.data_type
    what = f"data type {named.name!r} has no place there"
    if named.name in typestr.VARIABLE:
        raise form.refuse(
            what, "use a fixed length, such as '<U16' for text or '|S16' for bytes, or write v2", named.name
        )
    if named.name in typestr.BARE:
        raise form.refuse(what, "convert it to one that NumPy has, or write v2", named.name)
    order = stored_order(stack_of(metadata, form), metadata)
    try:
        document = typestr.dump(named, order)
    except NotRepresentableError as error:
        raise form.refuse(what, "convert it to one that NumPy has, or write v3", error.found) from error
    if _has_sub_arrays(document):
        raise form.refuse("fields that are arrays", "make one field of each element, or write v2", document)
    return {"dtype": document}


def _has_sub_arrays(document: JSON) -> bool:
    return is_list(document) and any(len(field) > 2 or _has_sub_arrays(field[1]) for field in document)  # name, type


def write_fill_value(metadata: ArrayMetadata, form: Format) -> Mapping[str, JSON]:
    """Return the member ``fill_value``."""
    if metadata.fill_value is UNDEFINED:
        return {"fill_value": None}
    bound = form.type_of_fill_value(metadata, stored_order(stack_of(metadata, form), metadata))
    try:
        return {"fill_value": fills.dump(metadata.fill_value, bound)}
    except NotRepresentableError as error:
        raise form.refuse(error.message, str(error.remedy), error.found) from error


ASPECTS: Mapping[str, Aspect] = {
    "shape": Aspect(("shape",), lambda m: m.shape, write_shape),
    # a chunk length of 0 is allowed only while the dimension is empty
    "chunks": Aspect(("chunks",), lambda m: (m.chunk_grid, [n == 0 for n in m.shape]), _write_chunks),
    "dtype": Aspect(("dtype",), lambda m: (m.data_type, m.byte_order, m.codecs), write_dtype),
    "fill_value": Aspect(("fill_value",), lambda m: (m.fill_value, m.data_type), write_fill_value),
}
