"""The dialect ``v3``: one ``zarr.json`` per node.

Reads the final specification of Zarr v3 including its later clarifications and the registry of extensions, and
what writers of 2023 wrote by drafts close to it (each with a note). Writes strictly valid documents, except
that another spelling in a document is kept, unless its value changes.

Spec: Zarr v3 core, "Metadata", "Node names", "Extensions".
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import cache, partial
from typing import Any, Final

from omnizarr.codecs.contract import Buffer
from omnizarr.errors import (
    MetadataError,
    MissingDependencyError,
    NotRepresentableError,
    UnknownChunkKeyEncodingError,
    UnknownDataTypeError,
)
from omnizarr.formats import consolidated, paths
from omnizarr.formats.chains import LITTLE, read_codecs
from omnizarr.formats.contract import Consolidated, Dialect, Documents, NewArrays, Nodes
from omnizarr.formats.documents import name_of_nonfinite, notes_of, parse, value_at
from omnizarr.formats.extensions import SPEC as _EXTENSION
from omnizarr.formats.extensions import may_be_ignored, read_extension, read_understood, write_extension
from omnizarr.formats.keyspaces import Flat
from omnizarr.formats.reader import (
    Reader,
    is_list,
    is_object,
    join,
    overheard,
    problem_of,
    read_chunk_lengths,
    read_lengths,
    read_list,
    read_object,
)
from omnizarr.formats.spelling import Document, LateSpellings, in_order_of, recall, remember
from omnizarr.formats.writer import check_fresh
from omnizarr.model import (
    JSON,
    UNDEFINED,
    ArrayMetadata,
    GroupMetadata,
    Metadata,
    Named,
    Problem,
    Report,
    Spelling,
    datatypes,
    keys,
    strict,
)
from omnizarr.model.datatypes.lenient_fills import as_meant
from omnizarr.model.metadata import similar
from omnizarr.support.memo import Memo

NAME: Final = "v3"
DOCUMENT: Final = "zarr.json"

_LARGEST_DEFAULT = 2**20
"""Bytes of an element whose default is made: as a list, raw bits take many times their memory."""
_ARRAY = 'Zarr v3, "Array metadata"'
_GROUP = 'Zarr v3, "Group metadata"'
_SHAPE = 'Zarr v3, "shape"'
_GRID = 'Zarr v3, "Regular grids"'
_KEYS = 'Zarr v3, "Chunk key encodings"'
_GRID_OF_LENGTH_1: Final = {"name": "regular", "configuration": {"chunk_shape": [1]}}

_ARRAY_MEMBERS = (
    "shape",
    "data_type",
    "chunk_grid",
    "chunk_key_encoding",
    "fill_value",
    "codecs",
    "attributes",
    "dimension_names",
    "storage_transformers",
)
_GROUP_MEMBERS = ("attributes", "consolidated_metadata")
_FORMAT = ("zarr_format", "node_type")
_KNOWN_OF_ARRAYS = frozenset({*_FORMAT, *_ARRAY_MEMBERS})
_KNOWN_OF_GROUPS = frozenset({*_FORMAT, *_GROUP_MEMBERS})


def load(documents: Documents, report: Report = strict) -> Metadata | None:
    """Return the metadata in ``zarr.json``; None if there is none.

    Examples
    --------
    >>> load({"zarr.json": {"zarr_format": 3, "node_type": "group"}}).node_type
    'group'
    """
    if DOCUMENT not in documents:
        return None
    reader = Reader(report)
    document = documents[DOCUMENT]
    if not isinstance(document, Mapping):
        reader.problem("", "not an object", found=document, expected="an object", spec='Zarr v3, "Metadata"')
        return None
    found = document.get("zarr_format")
    if "zarr_format" not in document:
        reader.problem("/zarr_format", "zarr_format is missing", expected="3", spec='Zarr v3, "zarr_format"')
    elif found != 3 or type(found) is not int:
        draft = isinstance(found, str) and "purl.org" in found
        remedy = "this is the entry point of a hierarchy of the v3 draft of 2020" if draft else None
        message = "another zarr_format"
        reader.problem("/zarr_format", message, found=found, expected="3", remedy=remedy, spec='Zarr v3, "zarr_format"')
    reader.notes.extend(notes_of(document))
    match document.get("node_type"):
        case "array":
            return _load_array(reader, document)
        case "group":
            return _load_group(reader, document)
        case other:
            expected, spec = '"array" or "group"', 'Zarr v3, "node_type"'
            if "node_type" not in document:
                reader.problem("/node_type", "node_type is missing", expected=expected, spec=spec)
            else:
                reader.problem("/node_type", "unknown node_type", found=other, expected=expected, spec=spec)
            return None


def load_unread(texts: Mapping[str, Buffer]) -> GroupMetadata | None:
    """Return the group in an ordinary ``zarr.json`` with copies, which are parsed when they are requested.

    None if it is anything else: use `load`.
    """
    text = bytes(texts.get(DOCUMENT, b""))
    found = consolidated.scan_inline(text)
    if found is None:
        return None
    try:
        metadata = load({DOCUMENT: parse(found.members.without())}, strict)
    except MetadataError:
        return None
    if not isinstance(metadata, GroupMetadata) or metadata.notes:
        return None
    spellings = LateSpellings(_spellings_of, (text, found.nodes), len(text), metadata.spellings)
    return replace(metadata, consolidated=found.nodes, spellings=spellings)


def _spellings_of(about: tuple[bytes, Nodes]) -> Mapping[str, Spelling]:
    text, nodes = about
    metadata = load({DOCUMENT: parse(text)}, strict)
    if metadata is None:
        return {}
    name = f"{NAME}:consolidated_metadata"
    return {**metadata.spellings, name: replace(metadata.spellings[name], meaning=nodes)}


def dump(metadata: Metadata) -> dict[str, JSON]:
    """Return ``zarr.json`` for `metadata`.

    Raises
    ------
    NotRepresentableError
        Zarr v3 cannot express something; the message names it.
    MetadataError
        Something that was created or changed since it was read is not valid.
    """
    written: dict[str, JSON] = {"zarr_format": 3, "node_type": metadata.node_type}
    fresh = set()
    members = _WRITE_ARRAY if isinstance(metadata, ArrayMetadata) else _WRITE_GROUP
    is_spelled = isinstance(metadata.spellings, LateSpellings) or bool(metadata.spellings)
    for name, write in members.items():
        spelled = recall(metadata, NAME, name, _meaning(metadata, name)) if is_spelled else None
        if spelled is None:
            fresh.add(name)
            spelled = write(metadata)
        written.update(spelled)
    _check_unknown(metadata)
    written.update(metadata.unknown)
    if fresh:
        check_fresh(load, {DOCUMENT: written}, fresh)
    original = metadata.spellings.get(f"{NAME}:{DOCUMENT}", Spelling(None, {})).document
    return {DOCUMENT: in_order_of(written, original)}


# Reading


_VARYING: Final = frozenset({"shape", "attributes"})
"""The members that differ most between the arrays of a hierarchy."""

_SPELLINGS_VARYING: Final = frozenset({f"{NAME}:{name}" for name in (*_VARYING, "chunk_grid", DOCUMENT)})

_remembered: Final[Memo[ArrayMetadata]] = Memo(plain=True)
"""Arrays by their other members, without faults."""


def _load_array(reader: Reader, document: Mapping[str, JSON]) -> ArrayMetadata:
    """Return the metadata in the document of an array, based on a similar document that differs only in a few members.

    Chunk lengths of 1 or more mean the same whatever the shape is.
    """
    shape = document.get("shape")
    if reader.notes or not is_list(shape) or not shape:
        return _read_array(reader, document)
    faults: list[Problem] = []
    listening = overheard(reader, faults)
    made: list[ArrayMetadata] = []

    def read() -> ArrayMetadata:
        metadata = _read_array(listening, document)
        made.append(metadata)
        # Without the members that are specific to the next array, which may be large.
        spellings = {name: metadata.spellings[name] for name in metadata.spellings if name not in _SPELLINGS_VARYING}
        return replace(metadata, attributes={}, spellings=spellings)

    question = len(shape), [(name, value) for name, value in document.items() if name not in _VARYING]
    like = _remembered.get(question, read, keep=lambda metadata: not faults and not metadata.notes)
    if made:
        return made[0]
    lengths = read_lengths(reader, shape, "/shape", _SHAPE)
    attributes = read_object(reader, document.get("attributes", {}), "/attributes", _ARRAY)
    told = _text_or_all(document)
    spellings = LateSpellings(_spellings_like, (like, lengths, attributes, told), len(told))
    return similar(like, lengths, attributes, spellings, tuple(reader.notes))


_ATTRIBUTES: Final = '"attributes":'
_find_attributes: Final = re.compile(r'"attributes"[ \t\r\n]*:').findall
_MOST_AROUND: Final = 4096
"""Characters of a text without its attributes that is remembered."""
_framed: Final[Memo[ArrayMetadata]] = Memo(exact=True)
"""Arrays without attributes by their texts, in which these are left out."""


def load_plain(texts: Mapping[str, bytes], parse: Callable[[bytes], JSON]) -> ArrayMetadata | None:
    """Return the array in an ordinary text that differs from a known one in attributes only, which alone are parsed."""
    data = texts.get(DOCUMENT, b"")
    text = data.decode()
    name = text.find(_ATTRIBUTES)
    start = name + len(_ATTRIBUTES)
    if text.startswith(" ", start):
        start += 1
    if name <= 0 or text[name - 1] == "\\" or not text.startswith("{", start):
        return None
    attributes: Any
    attributes, stop = value_at(text, start)
    frame = text[:start] + text[stop:]
    like = _framed.known(frame)
    if like is None:
        around = f"{text[:start]}{{}}{text[stop:]}"
        like = _array_around(around, parse) if len(around) <= _MOST_AROUND else None
        if like is None:
            return None
        _framed.put(frame, like)
    return similar(like, like.shape, attributes, LateSpellings(_spellings_by(parse), data, len(data)))


def _array_around(text: str, parse: Callable[[bytes], JSON]) -> ArrayMetadata | None:
    """Return the array in a text whose attributes were replaced by ``{}``; None if that was another member."""
    if len(_find_attributes(text)) > 1:
        return None
    document = parse(text.encode())
    # Of a scalar, the attributes can say how its chunk is named.
    if not isinstance(document, Mapping) or not document.get("shape"):
        return None
    problems: list[Problem] = []
    found = load({DOCUMENT: document}, problems.append) if document.get("attributes") == {} else None
    return None if problems or not isinstance(found, ArrayMetadata) or found.notes else found


@cache
def _spellings_by(parse: Callable[[bytes], JSON]) -> Callable[[bytes], Mapping[str, Spelling]]:
    return partial(_spellings_in, parse)


def _spellings_in(parse: Callable[[bytes], JSON], data: bytes) -> Mapping[str, Spelling]:
    metadata = load({DOCUMENT: parse(data)}, strict)
    return {} if metadata is None else metadata.spellings


def _text_or_all(document: Mapping[str, JSON]) -> Mapping[str, JSON] | str:
    """Return the text of a document, which takes a fifth of the memory, or the document if it says something else."""
    if isinstance(document, Document) and document.text and document.said is None and not document.notes:
        return document.text
    return document


def _spellings_like(
    about: tuple[ArrayMetadata, tuple[int, ...], JSON, Mapping[str, JSON] | str],
) -> dict[str, Spelling]:
    """Return the memos of an array's document, or of its text, based on those of a similar one."""
    like, lengths, attributes, told = about
    document: Any = parse(told.encode()) if isinstance(told, str) else told
    memos: dict[str, tuple[object, Mapping[str, JSON]]] = {
        "shape": (lengths, {"shape": document["shape"]}),
        "chunk_grid": (_grid_meaning(like.chunk_grid, lengths), {"chunk_grid": document["chunk_grid"]}),
        "attributes": (attributes, {"attributes": attributes} if "attributes" in document else {}),
        DOCUMENT: (None, document),
    }
    return {**like.spellings, **remember(NAME, memos)}


def _read_array(reader: Reader, document: Mapping[str, JSON]) -> ArrayMetadata:
    for name in ("shape", "data_type", "chunk_grid", "chunk_key_encoding", "fill_value"):
        if name not in document:
            reader.problem(f"/{name}", f"{name} is missing", spec=_ARRAY)
    shape = read_lengths(reader, document.get("shape", []), "/shape", _SHAPE)
    data_type = read_understood(reader, document.get("data_type", "uint8"), "/data_type", Named("uint8"))
    bound = _bind(reader, data_type)
    codecs: tuple[Named, ...] = (LITTLE,)
    if "codecs" in document:
        codecs = read_codecs(reader, document["codecs"], "/codecs", len(shape), bound)
    else:
        reader.note("/codecs", "missing, read as little-endian bytes", _ARRAY)
    chunk_grid = _read_grid(reader, document, shape)
    chunk_key_encoding = _read_key_encoding(reader, document.get("chunk_key_encoding", "default"), len(shape))
    if _is_scalar_with_a_length(document) and chunk_key_encoding.name == "default":
        chunk_key_encoding = Named(keys.SCALAR_AS_VECTOR, chunk_key_encoding.configuration)
    values: dict[str, Any] = {
        "shape": shape,
        "data_type": data_type,
        "chunk_grid": chunk_grid,
        "chunk_key_encoding": chunk_key_encoding,
        "fill_value": _read_fill_value(reader, document, bound),
        "codecs": codecs,
        "attributes": read_object(reader, document.get("attributes", {}), "/attributes", _ARRAY),
        "dimension_names": _read_dimension_names(reader, document.get("dimension_names"), shape),
        "storage_transformers": _read_storage_transformers(reader, document.get("storage_transformers", [])),
    }
    if "dimension_names" in document and document["dimension_names"] is None:
        reader.note("/dimension_names", "null, read as absent", 'Zarr v3, "dimension_names"')
    unknown = _read_unknown(reader, document, _KNOWN_OF_ARRAYS)
    spellings: dict[str, Spelling] = {}
    metadata = ArrayMetadata(dialect=NAME, **values, unknown=unknown, spellings=spellings, notes=tuple(reader.notes))
    spellings.update(_memos(document, metadata, _ARRAY_MEMBERS))
    return metadata


def _load_group(reader: Reader, document: Mapping[str, JSON]) -> GroupMetadata:
    inline = document.get("consolidated_metadata")
    left_out: list[Problem] = []

    def report(problem: Problem) -> None:
        if problem.is_left_out:
            left_out.append(problem)
        reader.report(problem)

    spellings: dict[str, Spelling] = {}
    metadata = GroupMetadata(
        dialect=NAME,
        attributes=read_object(reader, document.get("attributes", {}), "/attributes", _GROUP),
        consolidated=None if inline is None else consolidated.load_inline(inline, report),
        unknown=_read_unknown(reader, document, _KNOWN_OF_GROUPS),
        spellings=spellings,
        notes=tuple(reader.notes),
    )
    # Omitted parts are not written again.
    spellings.update(_memos(document, metadata, _GROUP_MEMBERS[:1] if left_out else _GROUP_MEMBERS))
    return metadata


def _memos(document: Mapping[str, JSON], metadata: Metadata, members: tuple[str, ...]) -> dict[str, Spelling]:
    memos: dict[str, tuple[object, Mapping[str, JSON]]] = {
        name: (_meaning(metadata, name), {name: document[name]} if name in document else {}) for name in members
    }
    return remember(NAME, {**memos, DOCUMENT: (None, document)})


def _is_optional(name: str, value: JSON) -> bool:
    """Whether an unknown member may be ignored. `extensions` is a list of such members, which is proposed (ZEP 10)."""
    return all(map(may_be_ignored, value)) if name == "extensions" and is_list(value) else may_be_ignored(value)


def _read_unknown(reader: Reader, document: Mapping[str, JSON], known: frozenset[str]) -> dict[str, JSON]:
    """Return the members that no specification defines: those that state so may be ignored, others are problems."""
    unknown = {name: value for name, value in document.items() if name not in known}
    for name, value in unknown.items():
        if not _is_optional(name, value):
            reader.problem(
                join("", name),
                f"unknown member {name!r}",
                found=value,
                expected='an object with "must_understand": false, if it may be ignored',
                spec=_EXTENSION,
            )
    return unknown


def _bind(reader: Reader, named: Named) -> datatypes.DataType | None:
    """Return the data type; None if it is unknown, which matters only for reading chunks."""
    try:
        return datatypes.bind(named)
    except (UnknownDataTypeError, MissingDependencyError):
        return None
    except MetadataError as error:
        reader.report(problem_of(error, "/data_type", _ARRAY))
        return None


def _is_scalar_with_a_length(document: Mapping[str, JSON]) -> bool:
    """Return whether a scalar has a chunk as if it had one dimension, as netcdf-c's pull request 2918 writes it."""
    attributes = document.get("attributes")
    is_theirs = is_object(attributes) and is_object(attributes.get("_nczarr_array"))
    return is_theirs and document.get("shape") == [] and document.get("chunk_grid") == _GRID_OF_LENGTH_1


def _read_grid(reader: Reader, document: Mapping[str, JSON], shape: tuple[int, ...]) -> Named:
    regular = Named("regular", {"chunk_shape": [max(length, 1) for length in shape]})
    if "chunk_grid" not in document:
        return regular
    if _is_scalar_with_a_length(document):
        message = "not Zarr: a chunk of length 1 of a scalar, read as its one chunk"
        reader.note("/chunk_grid/configuration/chunk_shape", message, "NCZarr")
        return regular
    named = read_understood(reader, document["chunk_grid"], "/chunk_grid", regular)
    if named.name != "regular":
        return named
    pointer = "/chunk_grid/configuration/chunk_shape"
    if "chunk_shape" not in named.configuration:
        reader.problem(pointer, "chunk_shape is missing", expected="a list of lengths", spec=_GRID)
        return regular
    lengths = read_chunk_lengths(reader, named.configuration["chunk_shape"], pointer, shape, _GRID)
    return Named("regular", {**named.configuration, "chunk_shape": list(lengths)})


def _read_key_encoding(reader: Reader, value: JSON, ndim: int) -> Named:
    named = read_understood(reader, value, "/chunk_key_encoding", Named("default"))
    if named.name in {"default", "v2"}:
        separator = named.configuration.get("separator", "/")
        if separator not in ("/", "."):
            reader.problem(
                "/chunk_key_encoding/configuration/separator",
                "no separator of chunk keys",
                found=separator,
                expected='"/" or "."',
                spec=_KEYS,
            )
            return Named(named.name)
    elif named.name in keys.PROPOSED:
        try:
            keys.bind(named).check(ndim)
        except UnknownChunkKeyEncodingError:  # within another
            pass
        except MetadataError as error:
            reader.report(problem_of(error, "/chunk_key_encoding", _KEYS))
    return named


def _read_fill_value(reader: Reader, document: Mapping[str, JSON], bound: datatypes.DataType | None) -> JSON:
    value = document.get("fill_value")
    spec = 'Zarr v3, "fill_value"'
    if isinstance(value, float) and not math.isfinite(value):
        reader.note("/fill_value", "a bare token that is not JSON, read as the string of the same name", spec)
        value = name_of_nonfinite(value)
    if bound is None:
        return value
    if value is None and not (bound.has_null and "fill_value" in document):
        if "fill_value" in document:
            reader.note("/fill_value", "null, read as the default of the data type", spec)
    elif value == "" and bound.is_fixed_size and bound.dtype.kind in "biufcV":
        reader.note("/fill_value", "an empty string, read as the default of the data type", spec)
    else:
        meant = as_meant(value, bound.scalars)
        try:
            bound.fill_from_json(meant)
        except MetadataError as error:
            reader.report(problem_of(error, "/fill_value", spec))
        else:
            if meant is not value:
                reader.note("/fill_value", f"{json.dumps(value)}, read as {json.dumps(meant)}", spec)
            return meant
    if bound.is_fixed_size and bound.dtype.itemsize > _LARGEST_DEFAULT:
        if value is None or value == "":
            reader.problem(
                "/fill_value",
                "elements are too large for a default",
                found=f"{bound.dtype.itemsize} bytes for each",
                expected=f"at most {_LARGEST_DEFAULT}, or a fill value",
                spec=spec,
            )
        return value
    default: JSON = bound.fill_to_json(bound.default_fill_value)
    return default


def _read_dimension_names(reader: Reader, value: JSON, shape: tuple[int, ...]) -> tuple[str | None, ...] | None:
    spec = 'Zarr v3, "dimension_names"'
    if value is None:
        return None
    names = []
    for index, name in enumerate(read_list(reader, value, "/dimension_names", spec)):
        if name is not None and not isinstance(name, str):
            reader.problem(
                join("/dimension_names", index),
                "no name of a dimension",
                found=name,
                expected="a string or null",
                spec=spec,
            )
            name = None  # noqa: PLW2901
        names.append(name)
    if is_list(value) and len(names) != len(shape):
        reader.problem(
            "/dimension_names",
            f"{len(names)} names for {len(shape)} dimensions",
            found=value,
            expected=f"{len(shape)}, one per dimension of shape {list(shape)}",
            spec=spec,
        )
    return tuple(names) if len(names) == len(shape) else None


def _read_storage_transformers(reader: Reader, value: JSON) -> tuple[Named, ...]:
    spec = 'Zarr v3, "storage_transformers"'
    if value is None:
        reader.note("/storage_transformers", "null, read as an empty list", spec)
        return ()
    items = read_list(reader, value, "/storage_transformers", spec)
    found = (read_extension(reader, item, join("/storage_transformers", i)) for i, item in enumerate(items))
    return tuple(named for named in found if named is not None)


# Writing


def _meaning(metadata: Metadata, name: str) -> object:
    if isinstance(metadata, GroupMetadata):
        return metadata.attributes if name == "attributes" else metadata.consolidated
    if name == "chunk_grid":
        return _grid_meaning(metadata.chunk_grid, metadata.shape)
    return getattr(metadata, name)


def _grid_meaning(grid: Named, shape: tuple[int, ...]) -> object:
    # a chunk length of 0 is allowed only while the dimension is empty
    return grid, [length == 0 for length in shape]


def _refuse(what: str, remedy: str, found: object = None) -> NotRepresentableError:
    return NotRepresentableError(f"cannot be written as Zarr v3: {what}", found=found, remedy=remedy)


def _write_data_type(metadata: ArrayMetadata) -> JSON:
    named = metadata.data_type
    if named.name == "omnizarr.object":
        raise _refuse(
            "Python objects have no data type there", "convert them to strings or numbers, or write v2", named.name
        )
    if named.name == "omnizarr.vlen_array":
        raise _refuse("ragged arrays have no data type there", "write v2", named.name)
    _check_fields(named, ())
    return write_extension(named) if named.configuration else named.name


def _check_fields(named: Named, within: tuple[str, ...]) -> None:
    """Refuse fields of structured types that only v2 can say."""
    fields = named.configuration.get("fields")
    if named.name != "struct" or not is_list(fields):
        return
    for field in fields:
        if not isinstance(field, Mapping):
            continue
        path = (*within, str(field.get("name")))
        label = ".".join(path)
        if field.get("shape"):
            raise _refuse(
                f"field {label!r} is a sub-array",
                "split it into fields or an array of its own, or write v2",
                field["shape"],
            )
        if "byte_order" in field:
            raise _refuse(
                f"field {label!r} has a byte order of its own",
                "give all fields one byte order, or write v2",
                field["byte_order"],
            )
        inner = field.get("data_type")
        if isinstance(inner, Mapping) and isinstance(inner.get("name"), str):
            configuration = inner.get("configuration")
            if isinstance(configuration, Mapping):
                _check_fields(Named(str(inner["name"]), configuration), path)


def _write_fill_value(metadata: ArrayMetadata) -> JSON:
    if metadata.fill_value is not UNDEFINED:
        return metadata.fill_value
    # v3 has no undefined fill value, and any value serves where none was promised
    try:
        bound = datatypes.bind(metadata.data_type)
    except (UnknownDataTypeError, MissingDependencyError) as error:
        raise _refuse("an undefined fill value of an unknown data type", "give a fill value") from error
    return bound.fill_to_json(bound.default_fill_value)


def _write_codecs(metadata: ArrayMetadata) -> JSON:
    for codec in metadata.codecs:
        if codec.name.startswith("omnizarr."):
            raise _refuse(
                f"filter {codec.configuration.get('id')!r} that stands after a filter of bytes",
                "reorder the filters and re-encode, or write v2",
                dict(codec.configuration),
            )
    return [write_extension(codec) for codec in metadata.codecs]


def _write_consolidated(metadata: GroupMetadata) -> Mapping[str, JSON]:
    nodes = metadata.consolidated
    # copies in other formats cannot be stored here, and can be made again
    if nodes is None or not all(DOCUMENT in documents for documents in nodes.values()):
        return {}
    return {"consolidated_metadata": consolidated.dump_inline(nodes)}


def _check_unknown(metadata: Metadata) -> None:
    for name, value in metadata.unknown.items():
        if not _is_optional(name, value):
            raise _refuse(
                f"member {name!r} is not defined there",
                "drop it from `unknown`, or move it to the attributes",
                value,
            )


_WRITE_ARRAY: Mapping[str, Callable[[Any], Mapping[str, JSON]]] = {
    "shape": lambda m: {"shape": list(m.shape)},
    "data_type": lambda m: {"data_type": _write_data_type(m)},
    "chunk_grid": lambda m: {"chunk_grid": write_extension(m.chunk_grid)},
    "chunk_key_encoding": lambda m: {"chunk_key_encoding": write_extension(m.chunk_key_encoding)},
    "fill_value": lambda m: {"fill_value": _write_fill_value(m)},
    "codecs": lambda m: {"codecs": _write_codecs(m)},
    "attributes": lambda m: {"attributes": m.attributes},
    "dimension_names": lambda m: {} if m.dimension_names is None else {"dimension_names": list(m.dimension_names)},
    "storage_transformers": lambda m: (
        {"storage_transformers": [write_extension(t) for t in m.storage_transformers]} if m.storage_transformers else {}
    ),
}

_WRITE_GROUP: Mapping[str, Callable[[Any], Mapping[str, JSON]]] = {
    "attributes": lambda m: {"attributes": m.attributes},
    "consolidated_metadata": _write_consolidated,
}


V3: Final = Dialect(
    name=NAME,
    zarr_format=3,
    keyspace=Flat((DOCUMENT,)),
    array_document=DOCUMENT,
    group_document=DOCUMENT,
    attributes_document=None,
    load=load,
    dump=dump,
    consolidated=Consolidated(None, consolidated.load_inline, consolidated.dump_inline, consolidated.scan_inline),
    new_arrays=NewArrays(Named("default", {"separator": "/"})),
    check_name=paths.check_v3_name,
    why_reserved=paths.reserved_in_v3,
    load_unread=load_unread,
    load_plain=load_plain,
    has_dimension_names=True,
)
