"""The dialect ``v3-draft2020``: an entry point, documents below ``meta/root``, chunks below ``data/root``.

Reads what programs wrote after the draft of October 2020 (zarr-python 2.12 to 2.18, GDAL 3.4 to 3.7, zarrita,
xtensor-zarr), and the variants before and after it; `draft_entry` tells these apart by the entry point.

Writes strictly what the text of October 2020 requires. Members that were spelled differently are written back unchanged
until their values change.

Spec: Zarr v3 draft of 2020, "Metadata", "Storage protocol", "Node names".
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Final, NamedTuple

from omnizarr.errors import NotRepresentableError
from omnizarr.formats.contract import Documents
from omnizarr.formats.filters import Step, read_step
from omnizarr.formats.history.draft_codecs import URI_2020, dump_codecs, load_codecs, read_codec, write_codec_uri
from omnizarr.formats.history.draft_consolidated import DOCUMENT as CONSOLIDATED
from omnizarr.formats.history.draft_consolidated import dump_consolidated, load_consolidated
from omnizarr.formats.history.draft_entry import entry
from omnizarr.formats.history.draft_extensions import (
    read_codec_list,
    read_extensions,
    read_named,
    read_prototype,
    read_sharding,
)
from omnizarr.formats.history.draft_types import (
    ByteOrder,
    Elements,
    describe_type,
    read_elements,
    read_fill_value,
    write_data_type,
    write_fill_value,
)
from omnizarr.formats.keyspaces import KEYS_OF_2020
from omnizarr.formats.reader import Reader, is_list, join, read_chunk_lengths, read_lengths, read_object
from omnizarr.formats.spelling import Aspect, in_order_of, read_aspects, recall, remember, write_aspects
from omnizarr.formats.writer import Written, check_fresh, stored_order
from omnizarr.model import (
    JSON,
    UNDEFINED,
    ArrayMetadata,
    GroupMetadata,
    Metadata,
    Named,
    Report,
    Spelling,
    strict,
)

NAME: Final = "v3-draft2020"

_ARRAY = 'Zarr v3 draft of 2020, "Array metadata"'
_GROUP = 'Zarr v3 draft of 2020, "Group metadata"'
_GRID = 'Zarr v3 draft of 2020, "Regular grids"'
_LABEL = "the v3 draft of 2020"
_WRITTEN: Final = Written(title=_LABEL, spec=_ARRAY)
_NODES = ("array", "group")


_REQUIRED = ("shape", "data_type", "chunk_grid", "chunk_memory_layout", "fill_value")
_MEMBERS = (
    *_REQUIRED,
    *("extensions", "attributes", "compressor", "codecs", "storage_transformers"),
    *("dimension_separator", "dimension_names", "sharding"),
)


def load(documents: Documents, report: Report = strict) -> Metadata | None:
    """Return the metadata in the documents ``array`` and ``group`` of a node; the first takes precedence.

    Examples
    --------
    >>> load({"group": {"attributes": {"spam": "ham"}}}).attributes
    {'spam': 'ham'}
    """
    reader = Reader(report)
    below: dict[str, dict[str, JSON]] | None = None
    read: Documents = documents
    if CONSOLIDATED in documents:
        below = load_consolidated(documents[CONSOLIDATED], report)
        own = below.pop("", {})
        if not documents.keys() & set(_NODES):
            reader.note("", "there is only .zmetadata", _GROUP)
            read = own
    kind = next((name for name in _NODES if name in read), None)
    if kind is None:
        if below is None:
            return None
        copies = {CONSOLIDATED: documents[CONSOLIDATED]}
        spellings = remember(NAME, {"documents": (None, copies), CONSOLIDATED: ((below, {}, {}), copies)})
        return GroupMetadata(
            dialect=NAME, consolidated=below, implicit=True, spellings=spellings, notes=tuple(reader.notes)
        )
    if kind == "array" and "group" in read:
        reader.note("", "an array and a group at one path: the array counts", _GROUP)
    document = read[kind]
    if not isinstance(document, Mapping):
        spec = _ARRAY if kind == "array" else _GROUP
        reader.problem(
            "",
            f"the document of {'an' if kind == 'array' else 'a'} {kind} is not an object",
            found=document,
            expected="an object",
            spec=spec,
        )
        return None
    if "chunk_codecs" in document or isinstance(document.get("zarr_format"), str):
        return None  # a document of the draft of 2019
    if kind == "array":
        return _load_array(reader, document, documents)
    return _load_group(reader, document, documents, below)


def dump(metadata: Metadata) -> dict[str, JSON]:
    """Return the document of a node.

    Raises
    ------
    NotRepresentableError
        The draft cannot express something; the message names it.
    MetadataError
        Something that was created or changed since it was read is not valid.
    """
    memo = metadata.spellings.get(f"{NAME}:documents", Spelling(None, {}))
    stored = memo.document
    _check_unknown(metadata)
    documents: dict[str, JSON] = {}
    if isinstance(metadata, ArrayMetadata):
        written, fresh = _dump_array(metadata)
    else:
        written, fresh = _dump_group(metadata)
    kind = metadata.node_type
    original = stored.get(kind)
    documents = {name: value for name, value in stored.items() if name not in (kind, CONSOLIDATED)}
    # Whether a node must have a document. Implied groups, and groups that are only in .zmetadata, need none.
    if isinstance(metadata, ArrayMetadata) or metadata.node_type in stored:
        is_needed = True
    elif metadata.implicit:
        is_needed = bool(metadata.attributes)
    else:
        is_needed = CONSOLIDATED not in stored or bool(fresh) or metadata.consolidated is None
    if is_needed:
        documents[kind] = in_order_of(written, original)
    if isinstance(metadata, GroupMetadata):
        documents.update(_dump_copies(metadata, stored.get(CONSOLIDATED)))
    elif CONSOLIDATED in stored:
        documents[CONSOLIDATED] = stored[CONSOLIDATED]
    if fresh:
        check_fresh(load, {kind: written}, fresh)
    return in_order_of(documents, stored)


# Reading


class _Parts(NamedTuple):
    """The members of an array's document that describe its chunks, which shards combine."""

    grid: Named
    codecs: tuple[Named, ...]
    transformers: tuple[Named, ...]


def _load_array(reader: Reader, document: Mapping[str, JSON], documents: Documents) -> ArrayMetadata:
    is_late = "codecs" in document and "compressor" not in document  # November 2022
    for name in _REQUIRED:
        if name not in document and not (is_late and name == "chunk_memory_layout"):
            reader.problem(f"/{name}", f"{name} is missing", spec=_ARRAY)
    for name in ("attributes", "extensions"):
        if name not in document:
            reader.note(f"/{name}", f"{name} is missing, read as empty", _ARRAY)
    shape = read_lengths(reader, document.get("shape", []), "/shape", _ARRAY)
    attributes, hidden = _read_attributes(reader, document)
    steps = _read_filters(reader, hidden)
    elements = read_elements(reader, document.get("data_type", "u1"), steps, spec=_ARRAY, has_names=is_late)
    if is_late:
        codecs = read_codec_list(reader, document["codecs"], len(shape), elements.stored)
    else:
        codecs = _read_codecs(reader, document, steps, len(shape), elements)
    parts = _read_transformers(reader, document, _Parts(_read_grid(reader, document, shape), codecs, ()), shape)
    read_extensions(reader, document.get("extensions"), "/extensions", _ARRAY)
    unknown = _read_unknown(reader, document, _MEMBERS)
    metadata = ArrayMetadata(
        dialect=NAME,
        shape=shape,
        data_type=elements.data_type,
        byte_order=elements.byte_order,
        chunk_grid=parts.grid,
        chunk_key_encoding=_read_separator(reader, document),
        fill_value=read_fill_value(reader, document.get("fill_value"), elements, spec=_ARRAY),
        codecs=parts.codecs,
        attributes=attributes,
        dimension_names=_read_dimension_names(reader, document, len(shape), is_late=is_late),
        storage_transformers=parts.transformers,
        unknown=unknown,
        notes=tuple(reader.notes),
    )
    memos: dict[str, tuple[object, Mapping[str, JSON]]] = {
        "documents": (None, dict(documents)),
        "unknown": (unknown, {}),
        "attributes": (attributes, {"attributes": document["attributes"]} if "attributes" in document else {}),
        "filters": (metadata.codecs, {"filters": hidden} if hidden is not None else {}),
    }
    memos.update(read_aspects(metadata, document, _ASPECTS))
    return replace(metadata, spellings=remember(NAME, memos))


def _load_group(
    reader: Reader, document: Mapping[str, JSON], documents: Documents, below: dict[str, dict[str, JSON]] | None
) -> GroupMetadata:
    if "attributes" not in document:
        reader.note("/attributes", "attributes is missing, read as empty", _GROUP)
    attributes = _read_object(reader, document, "attributes", _GROUP)
    if "extensions" in document:
        reader.note("/extensions", "groups have no extensions", _GROUP)
        read_extensions(reader, document["extensions"], "/extensions", _GROUP)
    unknown = _read_unknown(reader, document, ("attributes", "extensions"))
    memos: dict[str, tuple[object, Mapping[str, JSON]]] = {
        "documents": (None, dict(documents)),
        "unknown": (unknown, {}),
        "attributes": (attributes, {"attributes": document["attributes"]} if "attributes" in document else {}),
        "extensions": (None, {"extensions": document["extensions"]} if "extensions" in document else {}),
    }
    if CONSOLIDATED in documents:
        memos[CONSOLIDATED] = ((below, attributes, unknown), {CONSOLIDATED: documents[CONSOLIDATED]})
    return GroupMetadata(
        dialect=NAME,
        attributes=attributes,
        consolidated=below,
        unknown=unknown,
        spellings=remember(NAME, memos),
        notes=tuple(reader.notes),
    )


def _read_object(reader: Reader, document: Mapping[str, JSON], name: str, spec: str) -> Mapping[str, JSON]:
    """Return a member that is an object; null, as zarrita wrote it, is an empty one."""
    value = document.get(name, {})
    if value is None:
        reader.note(f"/{name}", "null, read as empty", spec)
        return {}
    return read_object(reader, value, f"/{name}", spec)


def _read_unknown(reader: Reader, document: Mapping[str, JSON], known: tuple[str, ...]) -> dict[str, JSON]:
    unknown = {name: value for name, value in document.items() if name not in known}
    for name in unknown:
        reader.note(join("", name), f"member {name!r} is not defined, ignored", _ARRAY)
    return unknown


def _read_attributes(reader: Reader, document: Mapping[str, JSON]) -> tuple[Mapping[str, JSON], JSON]:
    """Return the attributes of the user, and the filters that zarr-python keeps among them (None: there are none)."""
    attributes = _read_object(reader, document, "attributes", _ARRAY)
    if not _are_filters(attributes.get("filters")):
        return attributes, None
    reader.note("/attributes/filters", "filters, which the draft does not have, as zarr-python wrote them", _ARRAY)
    return {name: value for name, value in attributes.items() if name != "filters"}, attributes["filters"]


def _are_filters(value: JSON) -> bool:
    """Whether an attribute states zarr-python's treatment of every chunk."""
    if not is_list(value) or not value:
        return False
    return all(isinstance(item, Mapping) and isinstance(item.get("id"), str) for item in value)


def _read_filters(reader: Reader, hidden: JSON) -> list[Step]:
    if not is_list(hidden):
        return []
    steps = (read_step(reader, item, join("/attributes/filters", index)) for index, item in enumerate(hidden))
    return [step for step in steps if step is not None]


def _read_codecs(
    reader: Reader, document: Mapping[str, JSON], filters: list[Step], ndim: int, elements: Elements
) -> tuple[Named, ...]:
    steps = list(filters)
    compressor = document.get("compressor")
    if "compressor" in document and compressor is None:
        reader.note("/compressor", "null, read as absent", _ARRAY)
    elif compressor is not None:
        step = _read_compressor(reader, compressor)
        steps.extend([step] if step is not None else [])
    layout = document.get("chunk_memory_layout", "C")
    leading: tuple[Named, ...] = ()
    if isinstance(layout, Mapping):
        leading = (read_named(reader, layout, "/chunk_memory_layout", _ARRAY),)
    elif layout not in ("C", "F"):
        expected = '"C", "F", or the object of an extension'
        reader.problem("/chunk_memory_layout", "no memory layout", found=layout, expected=expected, spec=_ARRAY)
    return leading + load_codecs(reader, steps, "F" if layout == "F" else "C", ndim, elements.stored)


def _read_compressor(reader: Reader, value: JSON) -> Step | None:
    compressor = read_object(reader, value, "/compressor", _ARRAY)
    uri = compressor.get("codec")
    if not isinstance(uri, str):
        if isinstance(value, Mapping):
            found = {"found": uri} if "codec" in compressor else {}
            expected = "the URI of a codec"
            reader.problem("/compressor/codec", "a compressor without a URI", **found, expected=expected, spec=_ARRAY)
        return None
    for member in compressor:
        if member not in ("codec", "configuration"):
            reader.note(join("/compressor", member), f"member {member!r} is not defined, ignored", _ARRAY)
    parameters = read_object(reader, compressor.get("configuration", {}), join("/compressor", "configuration"), _ARRAY)
    place = "/compressor/configuration"
    return read_codec(reader, uri, parameters, "/compressor/codec", spec=_ARRAY, at=place)


def _read_grid(reader: Reader, document: Mapping[str, JSON], shape: tuple[int, ...]) -> Named:
    regular = Named("regular", {"chunk_shape": [max(length, 1) for length in shape]})
    if "chunk_grid" not in document:
        return regular
    grid = document["chunk_grid"]
    if not isinstance(grid, Mapping):
        reader.problem("/chunk_grid", "not an object", found=grid, expected="an object", spec=_GRID)
        return regular
    if "extension" in grid:
        return read_named(reader, grid, "/chunk_grid", _GRID)
    if grid.get("type") != "regular":
        found = {"found": grid["type"]} if "type" in grid else {}
        expected = '"regular", or the object of an extension'
        reader.problem("/chunk_grid/type", "no type of chunk grid", **found, expected=expected, spec=_GRID)
    if "chunk_shape" not in grid:
        expected = "a list of lengths"
        reader.problem("/chunk_grid/chunk_shape", "chunk_shape is missing", expected=expected, spec=_GRID)
        return regular
    for member in grid:
        if member not in ("type", "chunk_shape", "separator"):
            reader.note(join("/chunk_grid", member), f"member {member!r} is not defined, ignored", _GRID)
    lengths = read_chunk_lengths(reader, grid["chunk_shape"], "/chunk_grid/chunk_shape", shape, _GRID)
    return Named("regular", {"chunk_shape": list(lengths)})


def _read_separator(reader: Reader, document: Mapping[str, JSON]) -> Named:
    """Return how chunks are called; without a separator where the document has none: older drafts have another."""
    grid = document.get("chunk_grid")
    separator: JSON = grid.get("separator") if isinstance(grid, Mapping) and "extension" not in grid else None
    pointer = "/chunk_grid/separator"
    if "dimension_separator" in document:
        # zarr-python repeats it here, and does not read it
        reader.note("/dimension_separator", "not defined, chunk_grid has the separator", _GRID)
        if separator is None:
            separator, pointer = document["dimension_separator"], "/dimension_separator"
    if separator is None:
        return Named(KEYS_OF_2020)
    if separator not in ("/", "."):
        expected = '"/" or "."'
        reader.problem(pointer, "no separator of chunk keys", found=separator, expected=expected, spec=_GRID)
        return Named(KEYS_OF_2020)
    return Named(KEYS_OF_2020, {"separator": separator})


def _read_transformers(reader: Reader, document: Mapping[str, JSON], parts: _Parts, shape: tuple[int, ...]) -> _Parts:
    if "sharding" in document:
        reader.note("/sharding", "shards, which the draft does not have, as a branch of zarrita wrote them", _ARRAY)
        return _Parts(*read_prototype(reader, document["sharding"], "/sharding", parts.grid, parts.codecs), ())
    pointer, value = "/storage_transformers", document.get("storage_transformers")
    if "storage_transformers" not in document:
        return parts
    reader.note(pointer, "storage transformers, which the draft does not have, as zarr-python wrote them", _ARRAY)
    if not is_list(value):
        reader.problem(pointer, "not a list", found=value, expected="a list", spec=_ARRAY)
        return parts
    if len(value) == 1 and (sharded := read_sharding(reader, value[0], join(pointer, 0), parts.grid, parts.codecs)):
        return _Parts(*sharded, ())
    named = tuple(read_named(reader, item, join(pointer, index), _ARRAY) for index, item in enumerate(value))
    return parts._replace(transformers=named)


def _read_dimension_names(
    reader: Reader, document: Mapping[str, JSON], ndim: int, *, is_late: bool
) -> tuple[str | None, ...] | None:
    names = document.get("dimension_names")
    if names is None:
        return None
    if not is_late:
        reader.note("/dimension_names", "dimension names, which later drafts have", _ARRAY)
    if not is_list(names) or len(names) != ndim or not all(name is None or isinstance(name, str) for name in names):
        expected = f"a list of {ndim} strings or nulls"
        reader.problem("/dimension_names", "no names of dimensions", found=names, expected=expected, spec=_ARRAY)
        return None
    return tuple(names)


# Writing


def _check_unknown(metadata: Metadata) -> None:
    if metadata.unknown and recall(metadata, NAME, "unknown", metadata.unknown) is None:
        name = next(iter(metadata.unknown))
        raise _WRITTEN.refuse(
            f"member {name!r} is not defined there",
            "drop it from `unknown`, or move it to the attributes",
            metadata.unknown[name],
        )


def _dump_array(metadata: ArrayMetadata) -> tuple[dict[str, JSON], set[str]]:
    """Return the document of an array, and which of its members are not as they were read."""
    written, fresh = write_aspects(metadata, NAME, _ASPECTS)
    hidden = recall(metadata, NAME, "filters", metadata.codecs) or {}
    attributes = recall(metadata, NAME, "attributes", metadata.attributes)
    had_filters = metadata.spellings.get(f"{NAME}:filters", Spelling(None, {})).document
    if attributes is None or (had_filters and not hidden):
        if _are_filters(metadata.attributes.get("filters")) or (hidden and "filters" in metadata.attributes):
            raise _WRITTEN.refuse(
                "an attribute 'filters' that zarr-python would apply to every chunk", "give it another name", "filters"
            )
        attributes = {"attributes": {**metadata.attributes, **hidden}}
        fresh.update(() if hidden else ("attributes",))
    return {**metadata.unknown, **written, **attributes}, fresh


def _dump_group(metadata: GroupMetadata) -> tuple[dict[str, JSON], set[str]]:
    attributes = recall(metadata, NAME, "attributes", metadata.attributes)
    fresh: set[str] = {"attributes"} if attributes is None else set()
    extensions = recall(metadata, NAME, "extensions", None) or {}
    if attributes is None:
        attributes = {"attributes": metadata.attributes}
    return {**metadata.unknown, **attributes, **extensions}, fresh


def _dump_copies(metadata: GroupMetadata, stored: JSON) -> Mapping[str, JSON]:
    # copies in other formats cannot be stored here, and can be made again
    nodes = metadata.consolidated
    if nodes is None or not all(name in _NODES for documents in nodes.values() for name in documents):
        return {}
    spelled = recall(metadata, NAME, CONSOLIDATED, (nodes, metadata.attributes, metadata.unknown))
    if spelled is not None:
        return {CONSOLIDATED: spelled[CONSOLIDATED]}
    own: Mapping[str, JSON] = {} if metadata.implicit else {"group": _dump_group(metadata)[0]}
    return {CONSOLIDATED: in_order_of(dump_consolidated({"": own, **nodes}, entry()), stored)}


def _separator(metadata: ArrayMetadata) -> JSON:
    """Return the separator of coordinates in keys of chunks. Older variants of the draft have keys like v2."""
    if metadata.chunk_key_encoding.name not in (KEYS_OF_2020, "v2"):
        return metadata.chunk_key_encoding.name
    return metadata.chunk_key_encoding.configuration.get("separator", "/")


def _shards(metadata: ArrayMetadata) -> JSON:
    """Return the chunk grid and the storage transformer for the codecs."""
    sharding = next((codec for codec in metadata.codecs if codec.name == "sharding_indexed"), None)
    return None if sharding is None else sharding.configuration.get("chunk_shape")


def _write_grid(metadata: ArrayMetadata) -> Mapping[str, JSON]:
    keys = metadata.chunk_key_encoding
    if _shards(metadata) is not None:
        raise _WRITTEN.refuse(
            "shards have no place there", "write the final v3, or inner chunks as chunks", "sharding_indexed"
        )
    if metadata.storage_transformers:
        raise _WRITTEN.refuse(
            f"storage transformer {metadata.storage_transformers[0].name!r} has no place there", "write the final v3"
        )
    chunk_shape = _WRITTEN.chunk_shape(metadata)
    if keys.name != KEYS_OF_2020:
        raise _WRITTEN.refuse(
            f"chunk key encoding {keys.name!r} has no place there",
            "leave the chunk key encoding out (and rename the chunks), or write v3",
            keys.name,
        )
    return {
        "chunk_grid": {
            "type": "regular",
            "chunk_shape": chunk_shape,
            "separator": keys.configuration.get("separator", "/"),
        }
    }


def _write_data_type(metadata: ArrayMetadata) -> Mapping[str, JSON]:
    order = _stored_order(metadata)
    try:
        return {"data_type": write_data_type(metadata.data_type, order)}
    except NotRepresentableError as error:
        text = describe_type(metadata.data_type, order)
        raise _WRITTEN.refuse(
            f"data type {text!r} has no place there", error.remedy or "write v2 or v3", metadata.data_type.name
        ) from error


def _stored_order(metadata: ArrayMetadata) -> ByteOrder:
    codecs = [codec for codec in metadata.codecs if codec.name != "sharding_indexed"]
    return stored_order(dump_codecs(codecs, len(metadata.shape), _LABEL), metadata)


def _write_fill_value(metadata: ArrayMetadata) -> Mapping[str, JSON]:
    if metadata.fill_value is UNDEFINED:
        return {"fill_value": None}
    if metadata.data_type.name == "omnizarr.object":
        return {"fill_value": metadata.fill_value}
    bound = _WRITTEN.type_of_fill_value(metadata, _stored_order(metadata))
    return {"fill_value": write_fill_value(metadata.fill_value, bound)}


def _write_codecs(metadata: ArrayMetadata) -> Mapping[str, JSON]:
    stack = dump_codecs(metadata.codecs, len(metadata.shape), _LABEL)
    if stack.filters:
        names = [str(step["id"]) for step in stack.filters]
        raise _WRITTEN.refuse(
            f"filter {names[0]!r} has no place there", "leave out the filters and re-encode, or write v2 or v3", names
        )
    written: dict[str, JSON] = {"chunk_memory_layout": stack.order}
    if stack.compressor is not None:
        configuration = {name: value for name, value in stack.compressor.items() if name != "id"}
        uri = write_codec_uri(str(stack.compressor["id"]), URI_2020)
        written["compressor"] = {"codec": uri, **({"configuration": configuration} if configuration else {})}
    return written


def _write_dimension_names(metadata: ArrayMetadata) -> Mapping[str, JSON]:
    names = metadata.dimension_names
    if names is None or all(name is None for name in names):
        return {}
    raise _WRITTEN.refuse(
        "dimension names have no place there",
        "put them into the attribute _ARRAY_DIMENSIONS, as GDAL does, or write the final v3",
        list(names),
    )


_ASPECTS: Mapping[str, Aspect] = {
    "shape": Aspect(("shape",), lambda m: m.shape, lambda m: {"shape": list(m.shape)}),
    "data_type": Aspect(("data_type",), lambda m: (m.data_type, m.byte_order, m.codecs), _write_data_type),
    # a chunk length of 0 is allowed only while the dimension is empty
    "chunk_grid": Aspect(
        ("chunk_grid", "storage_transformers", "dimension_separator", "sharding"),
        lambda m: (m.chunk_grid, [n == 0 for n in m.shape], _separator(m), _shards(m), m.storage_transformers),
        _write_grid,
    ),
    "codecs": Aspect(
        ("chunk_memory_layout", "compressor", "codecs"),
        lambda m: (m.codecs, m.data_type, len(m.shape)),
        _write_codecs,
    ),
    "fill_value": Aspect(("fill_value",), lambda m: (m.fill_value, m.data_type), _write_fill_value),
    "extensions": Aspect(("extensions",), lambda _: None, lambda _: {"extensions": []}),
    "dimension_names": Aspect(("dimension_names",), lambda m: m.dimension_names, _write_dimension_names),
}
