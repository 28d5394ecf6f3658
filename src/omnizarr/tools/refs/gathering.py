"""What references say: the documents of a hierarchy in the format of the references, and where its chunks lie."""

from __future__ import annotations

from collections.abc import Callable, Container, Mapping
from dataclasses import dataclass, replace

from omnizarr.codecs import registry
from omnizarr.errors import NotRepresentableError, OmnizarrError, Remedy
from omnizarr.formats.contract import Dialect
from omnizarr.model import ArrayMetadata, GroupMetadata, Metadata, grids
from omnizarr.model import keys as chunk_keys
from omnizarr.model.key_forms import KeyEncoding
from omnizarr.nodes import chunking, detection, placement
from omnizarr.nodes.detection import Found
from omnizarr.nodes.location import StorePath, chunk_prefix, dialect_of
from omnizarr.nodes.placement import Placement
from omnizarr.nodes.stored import rendered, write
from omnizarr.stores import MemoryStore, verbs
from omnizarr.support.progress import Tick
from omnizarr.tools.convert.planning import Step, explicit, plan
from omnizarr.tools.convert.sources import Source
from omnizarr.tools.translate.coding import KEEP, Encoding, within_shards

Place = Callable[[Tick], Placement]
"""Finds out where the chunks of an array lie."""


@dataclass(frozen=True, slots=True)
class Described:
    """A hierarchy as references will have it.

    Attributes
    ----------
    root : Found
        Its topmost node, with the documents of the whole hierarchy below it.
    places : mapping of str to callable
        For each array, by its path below the root, what finds out where its chunks lie.
    remarks : tuple of str
    """

    root: Found[Metadata]
    places: Mapping[str, Place]
    remarks: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Laid:
    """An array in the references.

    Attributes
    ----------
    path : str
    metadata : ArrayMetadata
    encoding : KeyEncoding
        Of its chunks in the references.
    """

    path: str
    metadata: ArrayMetadata
    encoding: KeyEncoding

    @property
    def prefix(self) -> str:
        """What the keys of chunks begin with."""
        return f"{self.path}/" if self.path else ""


@dataclass(frozen=True, slots=True)
class Gathered:
    """What the references say, but where chunks lie.

    Attributes
    ----------
    documents : mapping of str to bytes
        By key.
    groups : int
        Number of groups.
    arrays : tuple of Laid
    remarks : tuple of str
    losses : tuple of str
        What the format cannot express.
    """

    documents: Mapping[str, bytes]
    groups: int
    arrays: tuple[Laid, ...]
    remarks: tuple[str, ...]
    losses: tuple[str, ...]


# -- hierarchies ------------------------------------------------------------------------------


def described(found: Found[Metadata], *, inner: bool) -> Described:
    """Return a stored hierarchy. With `inner`, its arrays have no shards, and their inner chunks are chunks."""
    source = Source(found)
    nodes = list(source.walk(source.top(found), concurrency=found.where.store.features.concurrency))
    places: dict[str, Place] = {}
    changed: dict[str, ArrayMetadata] = {}
    for node in nodes:
        if isinstance(node.found, OmnizarrError):
            raise node.found.add(path=f"{found.where.prefix}{node.path}")
        metadata = node.found.metadata
        if isinstance(metadata, ArrayMetadata):
            is_split = inner and chunking.inner_chunk_shape(metadata.codecs) is not None
            where, stored = (node.found.where, metadata) if is_split else divided(node.found.where, metadata)
            places[node.path] = _placing(where, stored, inner=is_split)
            if is_split or stored is not metadata:
                changed[node.path] = without_shards(metadata) if is_split else stored
    remarks = (f"the source cannot be listed: {source.remark}",) if source.remark else ()
    if not changed:
        return Described(found, places, remarks)
    documents = MemoryStore()
    for node in nodes:
        if isinstance(node.found, Found):
            store_documents(documents, node.path, changed.get(node.path, node.found.metadata))
    return Described(detection.open_node(StorePath(documents)), places, remarks)


def divided(where: StorePath, metadata: ArrayMetadata) -> tuple[StorePath, ArrayMetadata]:
    """Return where an array is stored, and its metadata: in smaller chunks, if those are single pieces of a file.

    The records of several variables of netCDF-3 lie between each other. So a chunk of several records is many pieces.
    """
    found = verbs.divided(where.store, chunk_prefix(where, metadata))
    if found is None:
        return where, metadata
    return StorePath(found.store), replace(metadata, chunk_grid=grids.regular(found.chunks), spellings={}, notes=())


def _placing(where: StorePath, metadata: ArrayMetadata, *, inner: bool) -> Place:
    def place(tick: Tick) -> Placement:
        find = placement.placed_within_shards if inner else placement.placed
        return find(where, metadata, tick)

    return place


def without_shards(metadata: ArrayMetadata) -> ArrayMetadata:
    """Return an array as if each inner chunk of its shards were a chunk."""
    shape = chunking.inner_chunk_shape(metadata.codecs)
    if shape is None:
        return metadata
    return replace(
        metadata, chunk_grid=grids.regular(shape), codecs=within_shards(metadata.codecs), spellings={}, notes=()
    )


def store_documents(store: MemoryStore, path: str, metadata: Metadata) -> None:
    """Store the documents of a node."""
    where = StorePath(store, path)
    if isinstance(metadata, GroupMetadata):
        metadata = explicit(metadata)
    write(where, dialect_of(where, metadata), rendered(where, metadata))


# -- in the format of the references ----------------------------------------------------------


def gathered(given: Described, dialect: Dialect, missing: Container[str] = ()) -> Gathered:
    """Return a hierarchy in the format of the references. In the arrays `missing`, by path, chunks are not stored.

    Raises NotRepresentableError if an array, or its chunks as they are, cannot be said in the format.
    """
    made = plan(given.root, dialect, Encoding(compressors=KEEP))
    where = given.root.where
    documents: dict[str, bytes] = {}
    arrays: list[Laid] = []
    groups = 0
    remarks, losses = list(given.remarks), list[str]()
    own: dict[str, list[str]] = {}
    for step in made.steps:
        metadata = _carried(step, dialect, where)
        if metadata is None:
            continue
        losses += [f"/{step.path}: {loss.what} is lost: {loss.why}" for loss in step.losses]
        if step.path in missing and isinstance(metadata, ArrayMetadata) and (told := _with_fill(step, metadata)):
            metadata, loss = told
            losses.append(f"/{step.path}: {loss}")
        prefix = f"{step.path}/" if step.path else ""
        place = StorePath(where.store, step.path)
        documents.update((f"{prefix}{name}", value) for name, value in rendered(place, metadata).items())
        if isinstance(metadata, ArrayMetadata):
            arrays.append(Laid(step.path, metadata, chunk_keys.bind(metadata.chunk_key_encoding)))
            for codec in metadata.codecs:
                record = registry.record(codec.name)
                if record is not None and record.only_reads:
                    own.setdefault(codec.name, []).append(f"/{step.path}")
        else:
            groups += 1
    for name, paths in own.items():
        others = f" and {len(paths) - 1} more arrays" if len(paths) > 1 else ""
        remarks.append(
            f"only omnizarr reads {paths[0]}{others}: zarr-python has no codec {name!r}; convert the file for it"
        )
    if made.files:
        remarks.append(f"{len(made.files)} files that are not Zarr are left out")
    return Gathered(documents, groups, tuple(arrays), (*remarks, *losses), tuple(losses))


def _carried(step: Step, dialect: Dialect, where: StorePath) -> Metadata | None:
    """Return the metadata of a node in the format of the references; None for a group that needs none."""
    target, title = step.target, f"Zarr {dialect.name}"
    if target is None:
        loss = next(iter(step.losses), None)
        if loss is None:
            return None
        raise NotRepresentableError(
            f"{title} cannot express a node: {loss.what}: {loss.why}",
            store=str(where.store),
            path=f"{where.prefix}{step.path}",
        )
    if isinstance(target, GroupMetadata):
        return explicit(target)
    translation = step.translation
    if translation is None or translation.same_bytes:
        return target
    reasons = [remark for remark in step.remarks if "again" in remark]
    source = translation.source
    has_shards = isinstance(source, ArrayMetadata) and chunking.inner_chunk_shape(source.codecs) is not None
    other = Remedy("refer to inner chunks, with {inner}", inner=True) if has_shards else None
    format_3 = Remedy("write documents of Zarr v3, with {zarr_format}", zarr_format=3)
    raise NotRepresentableError(
        f"stored chunks are not chunks of {title} as they are: {'; '.join(reasons) or 'their codecs differ'}",
        store=str(where.store),
        path=f"{where.prefix}{step.path}",
        found=", ".join(each.name for each in source.codecs) if isinstance(source, ArrayMetadata) else None,
        expected=", ".join(each.name for each in target.codecs),
        remedy=other if dialect.name == "v3" else format_3 if other is None else other | format_3,
    )


def _with_fill(step: Step, target: ArrayMetadata) -> tuple[ArrayMetadata, str] | None:
    """Return an array whose missing chunks read the same as in the source, and what is lost; None if they do anyway."""
    translation = step.translation
    if translation is None or translation.same_fill or not isinstance(translation.source, ArrayMetadata):
        return None
    fill = translation.source.fill_value
    return replace(target, fill_value=fill), (
        f"xarray reads elements that equal the fill value {fill!r} as missing, unless you pass mask_and_scale=False, "
        "as chunks are not stored"
    )
