"""The dialect ``v2``: ``.zarray`` or ``.zgroup``, ``.zattrs``, and at the top of a hierarchy perhaps ``.zmetadata``.

Arrays of Python objects have their codec as a filter, which determines the kind of the objects: strings and
byte strings become the types of that name, ragged arrays and others have names of omnizarr that no other
dialect can write.

Spec: Zarr v2, "Arrays", "Hierarchies".
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import cache, partial
from typing import Any, Final, Literal, NamedTuple

import numpy as np

from omnizarr.errors import MetadataError, MissingDependencyError, NotRepresentableError, UnknownDataTypeError
from omnizarr.formats import consolidated, paths
from omnizarr.formats.contract import Consolidated, Dialect, Documents, NewArrays
from omnizarr.formats.documents import name_of_nonfinite, notes_of, value_at
from omnizarr.formats.filters import Step, dump_chain, fit_szip, is_object_codec, load_chain, read_step
from omnizarr.formats.keyspaces import Flat
from omnizarr.formats.objects import TEXT_OF_OBJECTS, object_codec, read_objects
from omnizarr.formats.reader import Reader, join, overheard, problem_of, read_chunk_lengths, read_lengths, read_list
from omnizarr.formats.spelling import (
    Aspect,
    LateSpellings,
    in_order_of,
    read_aspects,
    recall,
    remember,
    revision,
    write_aspects,
)
from omnizarr.formats.writer import Written, check_fresh, stored_order
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
from omnizarr.model.datatypes import typestr
from omnizarr.model.metadata import similar
from omnizarr.support.memo import ById, Memo

NAME: Final = "v2"

_SPEC = 'Zarr v2, "Metadata"'
_WRITTEN: Final = Written(title="Zarr v2", spec=_SPEC)
_OBJECTS: Final = np.dtype(object)
_MEMBERS = (
    "zarr_format",
    "shape",
    "chunks",
    "dtype",
    "compressor",
    "fill_value",
    "order",
    "filters",
    "dimension_separator",
)


def load(documents: Documents, report: Report = strict) -> Metadata | None:
    """Return the metadata in the documents of a node; None if there is no node.

    A group that exists only in ``.zmetadata`` is read from there.

    Examples
    --------
    >>> load({".zgroup": {"zarr_format": 2}, ".zattrs": {"title": "ocean"}}).attributes
    {'title': 'ocean'}
    """
    reader = Reader(report)
    below: dict[str, dict[str, JSON]] | None = None
    if ".zmetadata" in documents:
        below = consolidated.load_zmetadata(documents[".zmetadata"], report)
        own = below.pop("", {})
        if not documents.keys() & {".zarray", ".zgroup"} and own.keys() & {".zarray", ".zgroup"}:
            reader.note("", "there is only .zmetadata", _SPEC)
            return _load_node(reader, own, documents, below)
    if not documents.keys() & {".zarray", ".zgroup"}:
        return None
    return _load_node(reader, documents, documents, below)


def _load_node(
    reader: Reader, documents: Documents, stored: Documents, below: dict[str, dict[str, JSON]] | None
) -> Metadata | None:
    """Return the node that `documents` describe. `stored` are the documents in the store."""
    if ".zarray" in documents and ".zgroup" in documents:
        reader.problem("", "one node has both .zarray and .zgroup", remedy="delete the wrong one", spec=_SPEC)
    kind = ".zarray" if ".zarray" in documents else ".zgroup"
    document = documents[kind]
    attributes: Mapping[str, JSON] = {}
    if ".zattrs" in documents:
        attributes = _read_attributes(reader, documents[".zattrs"])
    if not isinstance(document, Mapping):
        reader.problem("", f"{kind} is not an object", found=document, expected="an object", spec=_SPEC)
        return None
    found = document.get("zarr_format")
    if "zarr_format" not in document:
        reader.problem("/zarr_format", "zarr_format is missing", expected="2", spec=_SPEC)
    elif found != 2 or type(found) is not int:
        reader.problem("/zarr_format", "another zarr_format", found=found, expected="2", spec=_SPEC)
    for name in (kind, ".zattrs"):
        reader.notes.extend(
            replace(note, message=f"{name} is {note.message}") for note in notes_of(documents.get(name))
        )
    memos: dict[str, tuple[object, Mapping[str, JSON]]] = {
        "documents": (None, {name: stored[name] for name in stored}),
        ".zattrs": (attributes, {".zattrs": stored[".zattrs"]} if ".zattrs" in stored else {}),
    }
    if kind == ".zarray":
        return _load_array(reader, document, attributes, memos)
    unknown = {name: value for name, value in document.items() if name != "zarr_format"}
    if ".zmetadata" in stored:
        memos[".zmetadata"] = ((below, attributes, unknown), {".zmetadata": stored[".zmetadata"]})
    return GroupMetadata(
        dialect=NAME,
        attributes=attributes,
        consolidated=below,
        unknown=unknown,
        spellings=remember(NAME, memos),
        notes=tuple(reader.notes),
    )


def dump(metadata: Metadata) -> dict[str, JSON]:
    """Return the documents of a node; ``.zattrs`` only if there are attributes, or were when it was read.

    Raises
    ------
    NotRepresentableError
        Zarr v2 cannot express something; the message names it.
    MetadataError
        Something that was created or changed since it was read is not valid.
    """
    if isinstance(metadata, ArrayMetadata):
        kind = ".zarray"
        written, fresh = _dump_array(metadata)
    else:
        kind = ".zgroup"
        written, fresh = {"zarr_format": 2, **metadata.unknown}, set()
    memo = metadata.spellings.get(f"{NAME}:documents", Spelling(None, {}))
    original = memo.document.get(kind)
    documents: dict[str, JSON] = {}
    # if only .zmetadata describes a node, and continues to, nothing else need be written
    is_elsewhere = ".zmetadata" in memo.document and kind not in memo.document
    if not is_elsewhere or (isinstance(metadata, GroupMetadata) and metadata.consolidated is None):
        documents[kind] = in_order_of(written, original)
    attributes = recall(metadata, NAME, ".zattrs", metadata.attributes)
    if attributes is None:
        stored = memo.document.get(".zattrs")
        is_needed = bool(metadata.attributes) or stored is not None
        attributes = {".zattrs": revision(metadata.attributes, stored)} if is_needed else {}
    documents.update(attributes)
    if isinstance(metadata, GroupMetadata):
        documents.update(_dump_consolidated(metadata, written, memo.document.get(".zmetadata")))
    elif ".zmetadata" in memo.document:
        documents[".zmetadata"] = memo.document[".zmetadata"]
    if fresh:
        check_fresh(load, {kind: written}, fresh)
    return documents


def spelled(metadata: ArrayMetadata, member: str, value: JSON) -> ArrayMetadata:
    """Return an array whose ``.zarray`` has this `value` of a member as long as its meaning is the same.

    For writers whose readers need their own spelling, such as netCDF-C's of text.
    """
    memo = remember(NAME, {member: (_ASPECTS[member].meaning(metadata), {member: value})})
    return replace(metadata, spellings={**metadata.spellings, **memo})


# Reading


def _read_attributes(reader: Reader, value: JSON) -> Mapping[str, JSON]:
    if isinstance(value, Mapping):
        return value
    reader.problem("", ".zattrs is not an object", found=value, expected="an object", spec='Zarr v2, "Attributes"')
    return {}


class _Elements(NamedTuple):
    """The elements as described by ``dtype`` and the filters together."""

    data_type: Named
    byte_order: Literal["<", ">"]
    stored: np.dtype[Any]
    """Type of the elements before the chain, in their byte order."""
    bound: datatypes.DataType | None
    """None if the type is unknown."""


_remembered: Final[Memo[ArrayMetadata]] = Memo(plain=True)
"""Arrays without attributes by their valid ``.zarray``."""
_remembered_texts: Final[Memo[ArrayMetadata]] = Memo(exact=True)
"""The same by the text of that."""
_shared_memos: Final[ById[ArrayMetadata, Mapping[str, Spelling]]] = ById()
_MOST_TEXT: Final = 4096
"""Bytes of a ``.zarray`` that is remembered."""


def load_plain(texts: Mapping[str, bytes], parse: Callable[[bytes], JSON]) -> ArrayMetadata | None:
    """Return the array in ordinary texts. ``.zarray`` is parsed only if its text is not known."""
    data = texts.get(".zarray")
    if data is None or len(data) > _MOST_TEXT or len(texts) > 1 + (".zattrs" in texts):
        return None
    attributes: Any = {}
    if ".zattrs" in texts:
        text = texts[".zattrs"].decode()
        if not text.startswith("{"):
            return None
        attributes, _ = value_at(text, 0)
    like = _remembered_texts.known(data)
    if like is None:
        problems: list[Problem] = []
        found = load({".zarray": parse(data)}, problems.append)
        if problems or not isinstance(found, ArrayMetadata) or found.notes:
            return None
        _remembered_texts.put(data, like := found)
    length = sum(map(len, texts.values()))
    spellings = LateSpellings(_spellings_by(parse), texts, length, shared=_shared(like))
    return similar(like, like.shape, attributes, spellings)


def _shared(like: ArrayMetadata) -> Mapping[str, Spelling]:
    """Return the memos of all that ``.zarray`` says, whatever the attributes are."""
    if (found := _shared_memos.get(like)) is None:
        names = (f"{NAME}:{name}" for name in _ASPECTS)
        found = {name: memo for name in names if (memo := like.spellings.get(name)) is not None}
        _shared_memos.put(like, found)
    return found


@cache
def _spellings_by(parse: Callable[[bytes], JSON]) -> Callable[[Mapping[str, bytes]], Mapping[str, Spelling]]:
    return partial(_spellings_in, parse)


def _spellings_in(parse: Callable[[bytes], JSON], texts: Mapping[str, bytes]) -> Mapping[str, Spelling]:
    metadata = load({name: parse(text) for name, text in texts.items()}, strict)
    return {} if metadata is None else metadata.spellings


def _load_array(
    reader: Reader,
    document: Mapping[str, JSON],
    attributes: Mapping[str, JSON],
    memos: dict[str, tuple[object, Mapping[str, JSON]]],
) -> ArrayMetadata:
    """Return the metadata in ``.zarray`` with these attributes, based on an equal document if there was one."""
    if reader.notes:
        like = _read_array(reader, document)
    else:
        faults: list[Problem] = []
        listening = overheard(reader, faults)
        like = _remembered.get(
            list(document.items()),
            lambda: _read_array(listening, document),
            keep=lambda metadata: not faults and not metadata.notes,
        )
    spellings = {**remember(NAME, memos), **like.spellings}
    return similar(like, like.shape, attributes, spellings, like.notes)


def _read_array(reader: Reader, document: Mapping[str, JSON]) -> ArrayMetadata:
    """Return the metadata in ``.zarray``, with its spelling."""
    for name in _MEMBERS[:7]:
        if name not in document:
            reader.problem(f"/{name}", f"{name} is missing", spec=_SPEC)
    shape = read_lengths(reader, document.get("shape", []), "/shape", _SPEC)
    chunks = read_chunk_lengths(reader, document.get("chunks", [max(n, 1) for n in shape]), "/chunks", shape, _SPEC)
    values: list[tuple[JSON, str]] = []
    filters = document.get("filters")
    if "filters" not in document:
        reader.note("/filters", "missing, read as null", _SPEC)
    elif filters is not None:
        values = [(value, join("/filters", i)) for i, value in enumerate(read_list(reader, filters, "/filters", _SPEC))]
    if document.get("compressor") is not None:
        values.append((document["compressor"], "/compressor"))
    read = (read_step(reader, value, pointer) for value, pointer in values)
    steps = [step for step in read if step is not None]
    elements = _read_elements(reader, document.get("dtype", "|u1"), steps)
    order = document.get("order", "C")
    if order not in ("C", "F"):
        reader.problem("/order", "no order", found=order, expected='"C" or "F"', spec=_SPEC)
        order = "C"
    metadata = ArrayMetadata(
        dialect=NAME,
        shape=shape,
        data_type=elements.data_type,
        byte_order=elements.byte_order,
        chunk_grid=Named("regular", {"chunk_shape": list(chunks)}),
        chunk_key_encoding=_read_separator(reader, document),
        fill_value=_read_fill_value(reader, document, elements),
        codecs=fit_szip(
            load_chain(reader, steps, str(order), len(shape), elements.stored), shape, chunks, elements.stored
        ),
        unknown={name: value for name, value in document.items() if name not in _MEMBERS},
        notes=tuple(reader.notes),
    )
    return replace(metadata, spellings=remember(NAME, read_aspects(metadata, document, _ASPECTS)))


def _read_elements(reader: Reader, document: JSON, steps: list[Step]) -> _Elements:
    try:
        named, byte_order = typestr.load(document)
    except UnknownDataTypeError as error:
        if not isinstance(document, str):
            reader.report(problem_of(error, "/dtype", _SPEC))
        # kept under its name: only reading chunks needs it
        return _Elements(Named(str(document)), "<", np.dtype("V1"), None)
    except MetadataError as error:
        reader.report(problem_of(error, "/dtype", _SPEC))
        named, byte_order = Named("uint8"), "<"
    codec = object_codec(steps)
    if named.name == "omnizarr.object":
        named, byte_order = read_objects(reader, steps, "/filters", _SPEC)
    elif codec is not None and codec.id in TEXT_OF_OBJECTS and codec.id != "categorize":
        # zarr-python 3.0 wrote fixed-width types together with the codec of variable-width ones
        reader.note("/dtype", f"a fixed width, but stored by {codec.id!r}: read as variable", _SPEC)
        named = Named(TEXT_OF_OBJECTS[codec.id])
    try:
        bound = datatypes.bind(named, byte_order)
    except (UnknownDataTypeError, MissingDependencyError):
        return _Elements(named, byte_order, np.dtype("V1"), None)
    except MetadataError as error:
        reader.report(problem_of(error, "/dtype", _SPEC))
        return _Elements(named, byte_order, np.dtype("V1"), None)
    return _Elements(named, byte_order, bound.dtype if bound.is_fixed_size else _OBJECTS, bound)


def _read_separator(reader: Reader, document: Mapping[str, JSON]) -> Named:
    separator = document.get("dimension_separator", ".")
    if separator is None:
        reader.note("/dimension_separator", "null, read as absent", _SPEC)
        separator = "."
    elif separator not in ("/", "."):
        reader.problem(
            "/dimension_separator", "no separator of chunk keys", found=separator, expected='"." or "/"', spec=_SPEC
        )
        separator = "."
    return Named("v2", {"separator": separator})


def _read_fill_value(reader: Reader, document: Mapping[str, JSON], elements: _Elements) -> Any:
    value = document.get("fill_value")
    spec = 'Zarr v2, "Fill value encoding"'
    if isinstance(value, float) and not math.isfinite(value):
        reader.note("/fill_value", "a bare token that is not JSON, read as the string of the same name", spec)
        value = name_of_nonfinite(value)
    if value is None:
        return UNDEFINED
    if elements.bound is None or elements.data_type.name == "omnizarr.object":
        return value
    try:
        return typestr.fill_from_v2(value, elements.bound)
    except MetadataError as error:
        text = _plain_text(value, elements)
        if text is not None:
            reader.note("/fill_value", "not base64, read as plain text, as netCDF-C writes it", spec)
            return elements.bound.fill_to_json(text)
        reader.report(problem_of(error, "/fill_value", spec))
        return UNDEFINED


def _plain_text(value: JSON, elements: _Elements) -> np.bytes_ | None:
    """Return the text that netCDF-C wrote where Zarr has base64; None if it is none."""
    if elements.data_type.name != "null_terminated_bytes" or not isinstance(value, str):
        return None
    try:
        text = value.encode()
    except UnicodeEncodeError:
        return None
    return np.bytes_(text) if len(text) <= elements.stored.itemsize else None


def other_keys(metadata: ArrayMetadata) -> tuple[Named, ...]:
    """Return the keys of nested directories, if the document does not state the separator, as before zarr 2.8."""
    spelling = metadata.spellings.get(f"{NAME}:dimension_separator")
    is_silent = spelling is not None and not spelling.document
    return keys.others(metadata.chunk_key_encoding, len(metadata.shape)) if is_silent else ()


# Writing


def _dump_array(metadata: ArrayMetadata) -> tuple[dict[str, JSON], set[str]]:
    """Return ``.zarray``, and the names of members that differ from what was read."""
    _WRITTEN.refuse_names_and_transformers(metadata)
    written, fresh = write_aspects(metadata, NAME, _ASPECTS)
    return {**metadata.unknown, "zarr_format": 2, **written}, fresh


def _dump_consolidated(metadata: GroupMetadata, group: JSON, stored: JSON) -> Mapping[str, JSON]:
    # copies in other formats cannot be stored here, and can be made again
    if metadata.consolidated is None or not all(
        name in consolidated.V2_DOCUMENTS for documents in metadata.consolidated.values() for name in documents
    ):
        return {}
    spelled = recall(metadata, NAME, ".zmetadata", (metadata.consolidated, metadata.attributes, metadata.unknown))
    if spelled is not None:
        return spelled
    own: dict[str, JSON] = {".zgroup": group, ".zattrs": metadata.attributes}
    written = consolidated.dump_zmetadata({"": own, **metadata.consolidated})
    return {".zmetadata": in_order_of(written, stored)}


def _write_separator(metadata: ArrayMetadata) -> Mapping[str, JSON]:
    encoding = metadata.chunk_key_encoding
    if encoding.name != "v2":
        raise _WRITTEN.refuse(
            f"chunk key encoding {encoding.name!r} has no place there",
            "use chunk key encoding 'v2' (and rename the chunks), or write v3",
            encoding.name,
        )
    return {"dimension_separator": encoding.configuration.get("separator", ".")}


def _write_dtype(metadata: ArrayMetadata) -> Mapping[str, JSON]:
    order = _stored_order(metadata)
    try:
        return {"dtype": typestr.dump(metadata.data_type, order)}
    except NotRepresentableError as error:
        what = f"data type {str(error.found or metadata.data_type.name)!r} has no place there"
        raise _WRITTEN.refuse(what, "convert it to one that NumPy has, or write v3") from error


def _stored_order(metadata: ArrayMetadata) -> Literal["<", ">"]:
    return stored_order(dump_chain(metadata.codecs, len(metadata.shape)), metadata)


def _write_fill_value(metadata: ArrayMetadata) -> Mapping[str, JSON]:
    if metadata.fill_value is UNDEFINED:
        return {"fill_value": None}
    if metadata.data_type.name == "omnizarr.object":
        return {"fill_value": metadata.fill_value}
    bound = _WRITTEN.type_of_fill_value(metadata, _stored_order(metadata))
    return {"fill_value": typestr.fill_to_v2(metadata.fill_value, bound)}


def _write_codecs(metadata: ArrayMetadata) -> Mapping[str, JSON]:
    stack = dump_chain(metadata.codecs, len(metadata.shape))
    if metadata.data_type.name in typestr.VARIABLE:
        first = stack.filters[0]["id"] if stack.filters else None
        if not is_object_codec(first) and first != "categorize":
            raise _WRITTEN.refuse(
                f"data type {metadata.data_type.name!r} without an object codec",
                "put vlen-utf8, vlen-bytes, vlen-array or json2 first among the filters",
                first,
            )
    return {"order": stack.order, "filters": stack.filters or None, "compressor": stack.compressor}


_ASPECTS: Mapping[str, Aspect] = {
    "shape": Aspect(("shape",), lambda m: m.shape, lambda m: {"shape": list(m.shape)}),
    # a chunk length of 0 is allowed only while the dimension is empty
    "chunks": Aspect(
        ("chunks",), lambda m: (m.chunk_grid, [n == 0 for n in m.shape]), lambda m: {"chunks": _WRITTEN.chunk_shape(m)}
    ),
    "dtype": Aspect(("dtype",), lambda m: (m.data_type, m.byte_order, m.codecs), _write_dtype),
    "fill_value": Aspect(("fill_value",), lambda m: (m.fill_value, m.data_type), _write_fill_value),
    "codecs": Aspect(
        ("order", "filters", "compressor"), lambda m: (m.codecs, m.data_type, len(m.shape)), _write_codecs
    ),
    "dimension_separator": Aspect(("dimension_separator",), lambda m: m.chunk_key_encoding, _write_separator),
}


V2: Final = Dialect(
    name=NAME,
    zarr_format=2,
    keyspace=Flat((".zarray", ".zgroup", ".zattrs", ".zmetadata")),
    array_document=".zarray",
    group_document=".zgroup",
    attributes_document=".zattrs",
    load=load,
    dump=dump,
    consolidated=Consolidated(
        ".zmetadata", consolidated.load_zmetadata, consolidated.dump_zmetadata, consolidated.scan_zmetadata
    ),
    new_arrays=NewArrays(
        Named("v2", {"separator": "."}),
        has_filters=True,
        has_byte_order=True,
        has_undefined_fill_value=True,
        has_one_nan=True,
    ),
    load_plain=load_plain,
    check_name=paths.check_v2_name,
    other_keys=other_keys,
)
