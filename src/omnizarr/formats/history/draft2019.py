"""The dialect ``v3-draft2019``: the draft of Zarr v3 of May 2019, documents ``array`` and ``group``.

The text of May 2019 defines documents, but no keys. The keys and the entry point ``zarr.json`` come from the next text,
of June 2019. `omnizarr.formats.history.draft2020` reads documents of that and of later texts: `load` ignores documents
without the marks of May 2019, which are a ``zarr_format`` of its own and ``chunk_codecs``.

``docs/formats/v3-draft-2019.md`` lists decisions on points that the text leaves open.

Spec: Zarr v3 draft of 2019, "Metadata", "Data types", "Chunk grids", "Node names".
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final

from omnizarr.errors import (
    NotRepresentableError,
)
from omnizarr.formats import filters
from omnizarr.formats.contract import Documents
from omnizarr.formats.filters import Step
from omnizarr.formats.history import draft_codecs, draft_types
from omnizarr.formats.history.draft_codecs import URI_2019
from omnizarr.formats.history.draft_extensions import read_extensions, read_named
from omnizarr.formats.history.draft_types import ByteOrder, Elements
from omnizarr.formats.reader import Reader, is_list, join, read_chunk_lengths, read_lengths, read_list, read_object
from omnizarr.formats.spelling import Aspect, in_order_of, read_aspects, remember, same, write_aspects
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
    keys,
    strict,
)
from omnizarr.model.datatypes.numeric import Complex
from omnizarr.model.datatypes.registry import RAW
from omnizarr.model.datatypes.typestr import VARIABLE

NAME: Final = "v3-draft2019"
LABEL: Final = "the v3 draft of 2019"
ZARR_FORMAT: Final = "http://purl.org/zarr/spec/protocol/core/3.0"

ARRAY: Final = "array"
GROUP: Final = "group"

_METADATA = 'Zarr v3 draft of 2019, "Metadata"'
_ARRAY = 'Zarr v3 draft of 2019, "Array metadata"'
_TYPES = 'Zarr v3 draft of 2019, "Core data types"'
_GRIDS = 'Zarr v3 draft of 2019, "Regular grids"'
_NAMES = 'Zarr v3 draft of 2019, "Node names"'

_WRITTEN: Final = Written(title=LABEL, spec=_ARRAY)

_VERSION = re.compile(r"(?P<scheme>https?)://purl\.org/zarr/spec/protocol/core/(?P<major>[0-9]+)\.(?P<minor>[0-9]+)")
_NODE_NAME = re.compile(r"[-A-Za-z0-9._]{1,255}")
_UNLISTED = re.compile(r">u[248]")

_OPTIONAL: Mapping[str, JSON] = {"extensions": [], "attributes": {}}
"""Members that the text demands, but whose absence leaves no doubt."""
_ARRAY_MEMBERS = (
    "zarr_format",
    "shape",
    "data_type",
    "chunk_grid",
    "chunk_memory_layout",
    "chunk_codecs",
    "fill_value",
    "extensions",
    "attributes",
)
_GROUP_MEMBERS = ("zarr_format", "extensions", "attributes")


def entry() -> JSON:
    """Return the entry point ``zarr.json`` of a new hierarchy.

    Examples
    --------
    >>> entry()["metadata_encoding"]
    'application/json'
    """
    return {"zarr_format": ZARR_FORMAT, "metadata_encoding": "application/json", "extensions": []}


def load(documents: Documents, report: Report = strict) -> Metadata | None:
    """Return the metadata in the documents of a node; None if they have no mark of May 2019.

    Examples
    --------
    >>> group = {"zarr_format": ZARR_FORMAT, "extensions": [], "attributes": {"spam": "ham"}}
    >>> load({"group": group}).attributes
    {'spam': 'ham'}
    >>> load({"group": {"attributes": {}}})  # of a later draft
    """
    kind = ARRAY if ARRAY in documents else GROUP
    document = documents.get(kind)
    if not isinstance(document, Mapping) or not (
        isinstance(document.get("zarr_format"), str) or "chunk_codecs" in document
    ):
        return None
    reader = Reader(report)
    if ARRAY in documents and GROUP in documents:
        reader.problem("", "one node is both an array and a group", remedy="delete the wrong document", spec=_NAMES)
    is_later = _read_format(reader, document)
    members = _ARRAY_MEMBERS if kind == ARRAY else _GROUP_MEMBERS
    for name in members[1:]:
        if name in document:
            continue
        if name in _OPTIONAL:
            reader.note(f"/{name}", "missing, read as empty", _METADATA)
        else:
            reader.problem(f"/{name}", f"{name} is missing", spec=_ARRAY)
    unknown = _read_unknown(reader, document, members, is_later=is_later)
    extensions = document.get("extensions", [])
    read_extensions(reader, read_list(reader, extensions, "/extensions", _METADATA), "/extensions", _METADATA)
    attributes = read_object(reader, document.get("attributes", {}), "/attributes", _METADATA)
    metadata: Metadata
    if kind == ARRAY:
        metadata = _load_array(reader, document, attributes, unknown)
    else:
        notes = tuple(reader.notes)
        metadata = GroupMetadata(dialect=NAME, attributes=attributes, unknown=unknown, notes=notes)
    memos: dict[str, tuple[object, Mapping[str, JSON]]] = {"document": (None, document)}
    memos.update(read_aspects(metadata, document, _aspects_of(metadata)))
    return replace(metadata, spellings=remember(NAME, memos))


def dump(metadata: Metadata) -> dict[str, JSON]:
    """Return the document of a node, under the name ``array`` or ``group``.

    Raises
    ------
    NotRepresentableError
        The draft cannot express something; the message names it.
    MetadataError
        Something that was created or changed since it was read is not valid.
    """
    kind = ARRAY if isinstance(metadata, ArrayMetadata) else GROUP
    original = metadata.spellings.get(f"{NAME}:document", Spelling(None, {})).document
    # Refuse members that no document of the draft had: the text reserves all names.
    for name, value in metadata.unknown.items():
        if name not in original or not same(original[name], value):
            raise _WRITTEN.refuse(
                f"member {name!r} has no place there", "drop it from `unknown`, or move it to the attributes", value
            )
    if isinstance(metadata, ArrayMetadata):
        _WRITTEN.refuse_names_and_transformers(metadata)
    # copies in other formats cannot be stored here, and can be made again
    elif metadata.dialect == NAME and metadata.consolidated is not None:
        raise _WRITTEN.refuse("consolidated metadata has no place there", "convert to v2 or v3 and consolidate that")
    written, fresh = write_aspects(metadata, NAME, _aspects_of(metadata))
    written.update(metadata.unknown)
    if fresh:
        check_fresh(load, {kind: written}, fresh)
    return {kind: in_order_of(written, original)}


# Reading


def _read_format(reader: Reader, document: Mapping[str, JSON]) -> bool:
    """Return whether the document is of a later minor version, which may have members that are to be ignored."""
    found = document.get("zarr_format")
    if "zarr_format" not in document:
        reader.problem("/zarr_format", "zarr_format is missing", expected=ZARR_FORMAT, spec=_METADATA)
        return False
    match = _VERSION.fullmatch(found) if isinstance(found, str) else None
    if match is None or match["major"].lstrip("0") != "3":
        reader.problem("/zarr_format", "another zarr_format", found=found, expected=ZARR_FORMAT, spec=_METADATA)
        return False
    is_later = match["minor"].lstrip("0") != ""
    if is_later:
        version = f"{match['major']}.{match['minor']}"
        reader.note("/zarr_format", f"version {version}, read as 3.0: what it added is ignored", _METADATA)
    elif found != ZARR_FORMAT:
        reader.note("/zarr_format", f"the URI {found!r}, read as {ZARR_FORMAT!r}", _METADATA)
    return is_later


def _read_unknown(
    reader: Reader, document: Mapping[str, JSON], members: tuple[str, ...], *, is_later: bool
) -> dict[str, JSON]:
    """Return the members whose names the text reserves."""
    unknown: dict[str, JSON] = {}
    for name, value in document.items():
        if name in members:
            continue
        unknown[name] = value
        if not is_later:
            reader.note(join("", name), f"unknown member {name!r}, ignored", _METADATA)
    return unknown


def _read_point(reader: Reader, value: JSON, pointer: str, expected: str) -> Named | None:
    """Return what an extension defines, under the URI of the extension; None if `value` is not such an object."""
    if not isinstance(value, Mapping):
        reader.problem(pointer, "not understood", found=value, expected=expected, spec=_ARRAY)
        return None
    uri = value.get("extension")
    if isinstance(uri, str) and not _is_uri(uri):
        # it must not pass for a name that means something here
        place = join(pointer, "extension")
        reader.problem(place, "not a URI", found=uri or "an empty string", expected="a URI", spec=_ARRAY)
        return None
    named = read_named(reader, value, pointer, _ARRAY)
    return named if named.name == uri else None


def _load_array(
    reader: Reader, document: Mapping[str, JSON], attributes: Mapping[str, JSON], unknown: Mapping[str, JSON]
) -> ArrayMetadata:
    shape = read_lengths(reader, document.get("shape", []), "/shape", _ARRAY)
    chunk_grid, chunk_key_encoding = _read_grid(reader, document, shape)
    value = document.get("chunk_memory_layout", "C")
    order, layout = "C", None
    if value in ("C", "F"):
        order = str(value)
    else:
        expected = '"C", "F", or an object with "extension" and "type"'
        layout = _read_point(reader, value, "/chunk_memory_layout", expected)
    steps = _read_steps(reader, document)
    elements = _read_elements(reader, document.get("data_type", "u1"), steps)
    codecs = draft_codecs.load_codecs(reader, steps, order, len(shape), elements.stored)
    return ArrayMetadata(
        dialect=NAME,
        shape=shape,
        data_type=elements.data_type,
        byte_order=elements.byte_order,
        chunk_grid=chunk_grid,
        chunk_key_encoding=chunk_key_encoding,
        fill_value=draft_types.read_fill_value(reader, document.get("fill_value"), elements, spec=_ARRAY),
        codecs=codecs if layout is None else (layout, *codecs),
        attributes=attributes,
        unknown=unknown,
        notes=tuple(reader.notes),
    )


def _read_grid(reader: Reader, document: Mapping[str, JSON], shape: tuple[int, ...]) -> tuple[Named, Named]:
    """Return the chunk grid, and how its chunks are called."""
    default = Named("regular", {"chunk_shape": [max(length, 1) for length in shape]})
    default_keys = keys.separated_by(".")
    value = document.get("chunk_grid", {"type": "regular", "chunk_shape": default.configuration["chunk_shape"]})
    if isinstance(value, Mapping) and "extension" not in value:
        return _read_regular_grid(reader, value, shape), _read_separator(reader, value, len(shape))
    expected = 'an object with "type" and "chunk_shape", or with "extension" and "type"'
    return _read_point(reader, value, "/chunk_grid", expected) or default, default_keys


def _read_regular_grid(reader: Reader, value: Mapping[str, JSON], shape: tuple[int, ...]) -> Named:
    if "type" not in value:
        reader.problem("/chunk_grid/type", "type is missing", expected='"regular"', spec=_ARRAY)
    elif value["type"] != "regular":
        reader.problem(
            "/chunk_grid/type",
            "a chunk grid that the text does not define",
            found=value["type"],
            expected='"regular", or an object with the "extension" that defines it',
            spec=_ARRAY,
        )
    pointer = "/chunk_grid/chunk_shape"
    if "chunk_shape" not in value:
        reader.problem(pointer, "chunk_shape is missing", expected="a list of lengths", spec=_ARRAY)
    for name in value:
        if name not in {"type", "chunk_shape", "separator"}:
            reader.note(join("/chunk_grid", name), f"unknown member {name!r}, ignored", _ARRAY)
    lengths = value.get("chunk_shape", [max(length, 1) for length in shape])
    return Named("regular", {"chunk_shape": list(read_chunk_lengths(reader, lengths, pointer, shape, _ARRAY))})


def _read_separator(reader: Reader, value: Mapping[str, JSON], ndim: int) -> Named:
    """Return how chunks are called: with any text between their coordinates."""
    separator, pointer = value.get("separator", "."), "/chunk_grid/separator"
    if not isinstance(separator, str):
        reader.problem(pointer, "no separator of chunk keys", found=separator, expected="a string", spec=_GRIDS)
        separator = "."
    if not separator.isascii():
        reader.note(pointer, f"{separator!r}, which is not ASCII", _GRIDS)
    is_used = ndim > 1 or separator in (".", "/")
    return keys.separated_by(separator if is_used else ".")


def _read_elements(reader: Reader, value: JSON, steps: Sequence[Step]) -> Elements:
    elements = draft_types.read_elements(reader, value, steps, spec=_TYPES, has_complex=True)
    if isinstance(value, str) and _UNLISTED.fullmatch(value):
        reader.note("/data_type", f"{value!r}, which the table of types leaves out", _TYPES)
    elif isinstance(value, str) and RAW.fullmatch(value):
        reader.note("/data_type", f"{value!r}, a type of later drafts", _TYPES)
    return elements


def _read_steps(reader: Reader, document: Mapping[str, JSON]) -> list[Step]:
    """Return the codecs of chunks, in the order of encoding."""
    steps = []
    for index, value in enumerate(read_list(reader, document.get("chunk_codecs", []), "/chunk_codecs", _ARRAY)):
        place = join("/chunk_codecs", index)
        if not isinstance(value, Mapping):
            reader.problem(place, "not a codec", found=value, expected='an object with "codec"', spec=_ARRAY)
            continue
        uri = value.get("codec")
        if not isinstance(uri, str) or not uri:
            found = {"found": uri} if "codec" in value else {}
            reader.problem(join(place, "codec"), "a codec without a URI", **found, expected="a URI", spec=_ARRAY)
            continue
        parameters = {name: parameter for name, parameter in value.items() if name != "codec"}
        inner = parameters.get("configuration")
        if parameters.keys() == {"configuration"} and isinstance(inner, Mapping):
            at = join(place, "configuration")
            reader.note(at, "parameters in an object of their own, as in later drafts", _ARRAY)
            parameters, place = dict(inner), at
        pointer = join("/chunk_codecs", index, "codec")
        steps.append(draft_codecs.read_codec(reader, uri, parameters, pointer, spec=_ARRAY, at=place))
    return steps


# Writing


def _aspects_of(metadata: Metadata) -> Mapping[str, Aspect]:
    return _ARRAY_ASPECTS if isinstance(metadata, ArrayMetadata) else _GROUP_ASPECTS


def _write_grid(metadata: ArrayMetadata) -> Mapping[str, JSON]:
    grid, encoding = metadata.chunk_grid, metadata.chunk_key_encoding
    if encoding.name not in {"v2", "omnizarr.draft2019"}:
        raise _WRITTEN.refuse(
            f"chunk key encoding {encoding.name!r} has no place there",
            "use chunk key encoding 'v2' (and rename the chunks), or write v3",
            encoding.name,
        )
    separator = encoding.configuration.get("separator", ".")
    if _is_uri(grid.name) and "type" in grid.configuration:
        return {"chunk_grid": {"extension": grid.name, **grid.configuration}}
    lengths = {"type": "regular", "chunk_shape": _WRITTEN.chunk_shape(metadata)}
    return {"chunk_grid": lengths if separator == "." else {**lengths, "separator": separator}}


def _dump_chain(metadata: ArrayMetadata) -> tuple[filters.Stack, JSON]:
    """Return the codecs in the terms of numcodecs, and the memory layout."""
    codecs = metadata.codecs
    layout: JSON = None
    if codecs and _is_uri(codecs[0].name) and "type" in codecs[0].configuration:
        layout = {"extension": codecs[0].name, **codecs[0].configuration}
        codecs = codecs[1:]
    stack = draft_codecs.dump_codecs(codecs, len(metadata.shape), LABEL)
    return stack, stack.order if layout is None else layout


def _write_codecs(metadata: ArrayMetadata) -> Mapping[str, JSON]:
    stack, layout = _dump_chain(metadata)
    codecs: list[JSON] = []
    for step in (*stack.filters, *([stack.compressor] if stack.compressor is not None else [])):
        parameters = {name: value for name, value in step.items() if name != "id"}
        codecs.append({"codec": draft_codecs.write_codec_uri(str(step["id"]), URI_2019), **parameters})
    return {"chunk_memory_layout": layout, "chunk_codecs": codecs}


def _stored_order(metadata: ArrayMetadata) -> ByteOrder:
    return stored_order(_dump_chain(metadata)[0], metadata)


def _write_data_type(metadata: ArrayMetadata) -> Mapping[str, JSON]:
    named, order = metadata.data_type, _stored_order(metadata)
    try:
        written = draft_types.write_data_type(named, order, has_complex=True)
    except NotRepresentableError as error:
        raise _refuse_type(named, order) from error
    if isinstance(written, str) and RAW.fullmatch(written):
        raise _refuse_type(named, order)
    if isinstance(written, str) and _UNLISTED.fullmatch(written):
        raise _WRITTEN.refuse(
            f"data type {written!r} has no place there: unsigned integers are little-endian",
            f"store it as {'<' + written[1:]!r}",
            written,
        )
    return {"data_type": written}


def _refuse_type(named: Named, byte_order: ByteOrder) -> NotRepresentableError:
    shown = named.name if named.name in VARIABLE else draft_types.describe_type(named, byte_order)
    return _WRITTEN.refuse(
        f"data type {shown!r} has no place there", f"{_nearest(named)}, or write v2 or v3", named.name
    )


_NEAREST: Mapping[str, str] = {
    r"numpy\..*": "convert it to a single unit, from years to attoseconds",
    r"b?float.*": "convert it to float32",
    r"complex.*": "convert it to complex64",
    r"u?int.*": "convert it to int8 or uint8",
    r"struct|structured": "split it into one array per field",
    r"fixed_length_utf32": "store its code points as uint32, along one more dimension",
    r"r[0-9]+|raw_bytes|null_terminated_bytes": "store its bytes as uint8, along one more dimension",
}
"""The nearest data types, by patterns of names."""


def _nearest(named: Named) -> str:
    found = (remedy for pattern, remedy in _NEAREST.items() if re.fullmatch(pattern, named.name))
    return next(found, "convert it to numbers")


def _write_fill_value(metadata: ArrayMetadata) -> Mapping[str, JSON]:
    if metadata.fill_value is UNDEFINED:
        return {"fill_value": None}
    bound = _WRITTEN.type_of_fill_value(metadata, _stored_order(metadata), "leave it undefined")
    written = draft_types.write_fill_value(metadata.fill_value, bound)
    if isinstance(bound.scalars, Complex) and is_list(written):
        # of one spelling with real numbers
        return {"fill_value": ["+Infinity" if part == "Infinity" else part for part in written]}
    return {"fill_value": written}


def _is_uri(name: str) -> bool:
    return ":" in name


def _meaning_of_grid(metadata: ArrayMetadata) -> object:
    # a chunk length of 0 is allowed only while the dimension is empty
    return metadata.chunk_grid, metadata.chunk_key_encoding, [length == 0 for length in metadata.shape]


_GROUP_ASPECTS: Mapping[str, Aspect] = {
    "zarr_format": Aspect(("zarr_format",), lambda _: None, lambda _: {"zarr_format": ZARR_FORMAT}),
    "extensions": Aspect(("extensions",), lambda _: None, lambda _: {"extensions": []}),
    "attributes": Aspect(("attributes",), lambda m: m.attributes, lambda m: {"attributes": m.attributes}),
}
_ARRAY_ASPECTS: Mapping[str, Aspect] = {
    "zarr_format": _GROUP_ASPECTS["zarr_format"],
    "shape": Aspect(("shape",), lambda m: m.shape, lambda m: {"shape": list(m.shape)}),
    "data_type": Aspect(("data_type",), lambda m: (m.data_type, m.byte_order, m.codecs), _write_data_type),
    "chunk_grid": Aspect(("chunk_grid",), _meaning_of_grid, _write_grid),
    "codecs": Aspect(
        ("chunk_memory_layout", "chunk_codecs"), lambda m: (m.codecs, m.data_type, len(m.shape)), _write_codecs
    ),
    "fill_value": Aspect(("fill_value",), lambda m: (m.fill_value, m.data_type), _write_fill_value),
    "extensions": _GROUP_ASPECTS["extensions"],
    "attributes": _GROUP_ASPECTS["attributes"],
}
