"""The dialect ``v0`` of zarr 0.4: ``__zmeta__``, perhaps ``__zattr__``, and below ``__zdata__`` chunks ``1.0.blosc``.

Each array is a directory of its own; chunks are in order C, and always compressed with Blosc. The documents do not
contain a format number. zarr 0.3 stored a pickle in ``__zmeta__``, which is not read.

Spec: the file ``PERSISTENCE.rst`` of zarr 0.4.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from omnizarr.codecs.blosc import NEWEST_COMPRESSOR
from omnizarr.formats.contract import Documents
from omnizarr.formats.filters import Step
from omnizarr.formats.history import early
from omnizarr.formats.history.early import Format
from omnizarr.formats.reader import Reader
from omnizarr.formats.spelling import Aspect, recall, revision
from omnizarr.model import JSON, ArrayMetadata, Metadata, Named, Report, strict

NAME: Final = "v0"

_SPEC: Final = 'zarr 0.4, "Configuration metadata"'
_DOCUMENTS: Final = ("__zmeta__", "__zattr__")
_DATA: Final = "__zdata__"
_MEMBERS: Final = ("shape", "chunks", "dtype", "fill_value", *early.BLOSC_OPTIONS)
_FORMAT: Final = Format(
    dialect=NAME,
    title="zarr 0.4's format",
    spec=_SPEC,
    array_document="__zmeta__",
    attributes_document="__zattr__",
    members=_MEMBERS,
    codecs=("blosc", "numcodecs.blosc"),
    key_encoding=Named("omnizarr.v0"),
)


def load(documents: Documents, report: Report = strict) -> Metadata | None:
    """Return the metadata in the documents of an array; None if there is no ``__zmeta__``.

    Examples
    --------
    >>> meta = {"shape": [20], "chunks": [10], "dtype": "<i4", "fill_value": 42,
    ...         "cname": "lz4", "clevel": 3, "shuffle": 1}
    >>> load({"__zmeta__": meta}).codecs[-1].configuration["clevel"]
    3
    """
    if "__zmeta__" not in documents:
        return None
    reader = Reader(report)
    document = documents["__zmeta__"]
    if not isinstance(document, Mapping):
        reader.problem("", "__zmeta__ is not an object", found=document, expected="an object", spec=_SPEC)
        return None
    for name in _MEMBERS:
        if name not in document:
            reader.problem(f"/{name}", f"{name} is missing", spec=_SPEC)
    value = documents.get("__zattr__", {})
    if isinstance(value, Mapping):
        attributes = value
    else:
        spec = 'zarr 0.4, "User metadata (attributes)"'
        reader.problem("", "__zattr__ is not an object", found=value, expected="an object", spec=spec)
        attributes = {}

    def read_steps(_: int) -> tuple[list[Step], str]:
        named = {name: document[name] for name in early.BLOSC_OPTIONS if name in document}
        # a missing member is a problem already, so it gets no note
        options = early.read_options(Reader(report), named, early.BLOSC_OPTIONS, "", _SPEC)
        return [Step("blosc", options, "")], "C"

    return early.load_array(reader, documents, _FORMAT, attributes, read_steps, _ASPECTS)


def dump(metadata: Metadata) -> dict[str, JSON]:
    """Return the documents of an array; ``__zattr__`` only if there are attributes, or were when it was read.

    Raises
    ------
    NotRepresentableError
        The format cannot express something, such as groups; the message names it.
    MetadataError
        Something that was created or changed since it was read is not valid.
    """
    array = early.refuse_group(metadata, _FORMAT)
    documents: dict[str, JSON] = {"__zmeta__": early.dump_array(array, _FORMAT, _ASPECTS, {}, load)}
    attributes = recall(array, NAME, "__zattr__", array.attributes)
    if attributes is None:
        stored = early.stored_documents(array, _FORMAT).get("__zattr__")
        is_needed = bool(array.attributes) or stored is not None
        attributes = {"__zattr__": revision(array.attributes, stored)} if is_needed else {}
    return {**documents, **attributes}


def _write_blosc(metadata: ArrayMetadata, form: Format) -> Mapping[str, JSON]:
    stack = early.stack_of(metadata, form)
    if stack.order == "F":
        raise form.refuse("order F", "re-encode in order C, or write v1", "order F")
    if stack.compressor is None:
        raise form.refuse("chunks without compression", "compress with blosc (clevel 0 stores), or write v1")
    compressor = stack.compressor
    cname = compressor.get("cname")
    if cname == NEWEST_COMPRESSOR:
        raise form.refuse(f"blosc with {cname}", "re-encode with another cname, such as lz4", cname)
    return {name: compressor.get(name, option.default) for name, option in early.BLOSC_OPTIONS.items()}


_ASPECTS: Mapping[str, Aspect] = {
    **early.ASPECTS,
    "codecs": Aspect(tuple(early.BLOSC_OPTIONS), lambda m: (m.codecs, m.data_type, len(m.shape)), _write_blosc),
}
