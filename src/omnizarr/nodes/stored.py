"""The documents of a node as they are stored: rendered, and written in an order in which a node appears complete.

Spec: Zarr v3 core, "Storage"; Zarr v2, "Storage".
"""

from __future__ import annotations

import operator
from collections.abc import Mapping
from dataclasses import fields
from typing import Final

from omnizarr.errors import OmnizarrError
from omnizarr.formats import documents
from omnizarr.formats.contract import Dialect
from omnizarr.model import ArrayMetadata, Metadata
from omnizarr.nodes.detection import Documents
from omnizarr.nodes.location import StorePath, dialect_of
from omnizarr.support.memo import ById, Memo


def dump(where: StorePath, metadata: Metadata) -> Documents:
    """Return the documents of a node at a place. Raises NotRepresentableError, MetadataError."""
    dialect = dialect_of(where, metadata)
    try:
        return dialect.dump(dialect.keyspace.unsettle(metadata))
    except OmnizarrError as error:
        raise error.add(store=str(where.store), path=where.path)


def rendered(where: StorePath, metadata: Metadata) -> dict[str, bytes]:
    """Return the documents of a node at a place in stored form, by name. Raises the errors of `dump`."""
    # Arrays that are created together often have the same metadata object (`new_metadata.array_metadata`).
    kept = _rendered.get(metadata) if isinstance(metadata, ArrayMetadata) and where.home is None else None
    if kept is not None:
        return kept
    if isinstance(metadata, ArrayMetadata) and metadata.attributes and where.home is None:
        similar = _rendered_like_another(where, metadata)
        if similar is not None:
            return similar
    # An array is often changed soon after.
    render = documents.render_shared if isinstance(metadata, ArrayMetadata) else documents.render
    values = {name: render(document) for name, document in dump(where, metadata).items()}
    if isinstance(metadata, ArrayMetadata) and where.home is None and not metadata.attributes:
        _rendered.put(metadata, values)
    return values


_rendered: Final[ById[ArrayMetadata, dict[str, bytes]]] = ById()
"""Documents by the metadata that they were made of."""


def _rendered_like_another(where: StorePath, metadata: ArrayMetadata) -> dict[str, bytes] | None:
    """Return the document of a new array that differs from another one in attributes alone; None if there is none.

    Attributes whose name begins with an underscore can have a meaning in the format.
    """
    dialect = dialect_of(where, metadata)
    is_new = not (metadata.spellings or metadata.unknown or metadata.notes)
    if dialect.name != "v3" or not is_new or any(name.startswith("_") for name in metadata.attributes):
        return None
    parts = _but_attributes(metadata)
    key = tuple(map(id, parts))
    known = _templates.known(key)
    name = dialect.array_document
    if known is None:
        made = documents.template(dump(where, metadata)[name], "attributes")
        _templates.put(key, (parts, made))
        return None
    if known[1] is None:
        return None
    try:
        attributes = documents.to_json(metadata.attributes)
    except OmnizarrError:
        return None
    data = known[1].filled(attributes) if isinstance(attributes, dict) else None
    return None if data is None else {name: data}


_but_attributes: Final = operator.attrgetter(
    *(each.name for each in fields(ArrayMetadata) if each.name not in {"attributes", "spellings", "unknown", "notes"})
)
_templates: Final[Memo[tuple[tuple[object, ...], documents.Template | None]]] = Memo(exact=True)
"""By the identities of all else that metadata consist of, which are kept, so that no other object gets them."""


def write(where: StorePath, dialect: Dialect, values: Mapping[str, bytes]) -> None:
    """Write the documents of a node, with the one that makes it a node last, so that it appears complete."""
    keys = dialect.keyspace.documents(where.path)
    # a dialect lists first the documents that make a node
    for name in sorted(values, key=list(keys).index, reverse=True):
        where.store.set(keys[name], values[name])


def rewrite(where: StorePath, dialect: Dialect, metadata: Metadata, old: Documents) -> None:
    """Write the documents of a node that differ from `old`. The caller holds its lock."""
    new = dump(where, metadata)
    fresh = [name for name, document in new.items() if name not in old or not documents.is_same(document, old[name])]
    values = {name: documents.render_shared(new[name]) for name in fresh}
    changed = {name: value for name, value in values.items() if name not in old or value != documents.render(old[name])}
    write(where, dialect, changed)
    keys = dialect.keyspace.documents(where.path)
    for name in old:
        if name not in new:
            where.store.delete(keys[name])
