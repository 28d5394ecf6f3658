"""Plan a conversion: translate every node of a hierarchy before anything is written."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any, Final, NamedTuple

import numpy as np

from omnizarr.api.creating import create_array
from omnizarr.codecs import portable
from omnizarr.codecs.contract import ChunkPolicy
from omnizarr.errors import (
    ChunkError,
    CodecError,
    InvalidKeyError,
    MetadataError,
    NotRepresentableError,
    OmnizarrError,
    StoreLimitError,
    UnknownExtensionError,
    ValueTypeError,
)
from omnizarr.formats import conventions
from omnizarr.formats.contract import Dialect
from omnizarr.formats.conventions import Nodes, georeferencing
from omnizarr.formats.keyspaces import Split
from omnizarr.formats.paths import paths_above
from omnizarr.formats.spelling import same, without_copies
from omnizarr.model import JSON, ArrayMetadata, GroupMetadata, Metadata, grids
from omnizarr.model import keys as chunk_keys
from omnizarr.model.datatypes.strings import UTF32_BYTES
from omnizarr.nodes import bindings, detection, naming, stored
from omnizarr.nodes.array import Array
from omnizarr.nodes.detection import Found
from omnizarr.nodes.location import StorePath
from omnizarr.nodes.packing import Packing
from omnizarr.stores import MemoryStore, verbs
from omnizarr.tools import unshown
from omnizarr.tools.convert import files, journal
from omnizarr.tools.convert.report import How, NodeReport
from omnizarr.tools.convert.sources import Node, Source, is_failure, is_implied
from omnizarr.tools.streaming.chunks import Chunks, read
from omnizarr.tools.streaming.few import FewChunks
from omnizarr.tools.translate.coding import Encoding
from omnizarr.tools.translate.elements import as_text, value_kind
from omnizarr.tools.translate.losses import shown
from omnizarr.tools.translate.translation import Loss, Translation, translate


@dataclass(frozen=True, slots=True)
class Step:
    """One node.

    Attributes
    ----------
    path : str
        Below the root of what is converted.
    found : Found, optional
        None if it cannot be read.
    translation : Translation, optional
        None if the node cannot be read.
    losses : tuple of Loss
    remarks : tuple of str
    has_copies : bool
        A group with consolidated metadata.
    files : tuple of str
        Keys below a group, of files that a convention keeps there.
    is_added : bool
        Whether the source does not have it: the convention that was asked for does.
    """

    path: str
    found: Found[Metadata] | None
    translation: Translation | None
    losses: tuple[Loss, ...]
    remarks: tuple[str, ...] = ()
    has_copies: bool = False
    files: tuple[str, ...] = ()
    is_added: bool = False

    @property
    def target(self) -> Metadata | None:
        """The node's metadata in the target; None if it is left out."""
        return None if self.translation is None else self.translation.target

    @property
    def is_array(self) -> bool:
        """Whether it is an array that is not left out."""
        return isinstance(self.target, ArrayMetadata)

    def report(self, *, in_place: bool = False) -> NodeReport:
        """Return the plan for the node."""
        node_type = "" if self.found is None else self.found.metadata.node_type
        how: How = "left out" if self.target is None else "documents"
        if self.is_array and self.translation is not None and not in_place:
            by_chunks: How = "copied" if self.translation.same_bytes else "recompressed"
            how = by_chunks if self.translation.same_elements else "encoded"
        followed = {} if self.translation is None else self.translation.conventions
        return NodeReport(self.path, node_type, how, losses=self.losses, remarks=self.remarks, conventions=followed)


class Plan(NamedTuple):
    """All nodes, parents first; and the keys, below the topmost, of files that are not Zarr and are carried.

    `few` knows which chunks arrays of a remote source have, if they are few.
    """

    source: Found[Metadata]
    dialect: Dialect
    options: Encoding
    steps: tuple[Step, ...]
    files: tuple[str, ...] = ()
    few: FewChunks | None = None

    @property
    def losses(self) -> tuple[Loss, ...]:
        """What cannot be carried."""
        return tuple(loss for step in self.steps for loss in step.losses)

    def journal(self, *, verify: bool) -> journal.Journal:
        """Return the journal of the conversion."""
        source, target = self.digests()
        return journal.Journal(
            source=str(self.source.where),
            source_format=self.source.metadata.dialect,
            target_format=self.dialect.name,
            options={name: repr(value) for name, value in self.options.given.items()},
            source_digest=source,
            target_digest=target,
            verify=verify,
        )

    def digests(self, *, is_old: bool = False) -> tuple[str, str]:
        """Return digests of the documents of source and target, for the journal."""
        source, target = (
            journal.digest(self._documents(of_target=of_target), is_old=is_old) for of_target in (False, True)
        )
        return source, target

    def _documents(self, *, of_target: bool) -> Iterator[tuple[str, Mapping[str, JSON]]]:
        for step in self.steps:
            if step.found is None or (not of_target and is_implied(step.found.metadata)):
                yield step.path, {}
            elif not of_target:
                yield step.path, stored.dump(step.found.where, without_copies(step.found.metadata))
            elif step.target is not None:
                yield step.path, self.dialect.dump(step.target)


def explicit(metadata: GroupMetadata) -> GroupMetadata:
    """Return a group as it gets its own documents, which first has no copies of others."""
    return replace(metadata, implicit=False, consolidated=None)


def plan(
    source: Found[Metadata],
    dialect: Dialect,
    options: Encoding,
    *,
    in_place: bool = False,
    wishes: Mapping[str, str] | None = None,
) -> Plan:
    """Return the plan for a node and everything below it. Reads documents only.

    `wishes` are versions that conventions shall become, by their names.

    Raises
    ------
    MetadataError, NotRepresentableError, CodecError
        If an option is not valid for an array, or is nothing that the target can have.
    """
    whole = Source(source)
    walked = list(whole.walk(whole.top(source), concurrency=source.where.store.features.concurrency))
    known = {node.path: node.found.metadata for node in walked if isinstance(node.found, Found)}
    nodes = Nodes(known, wishes)
    added = dict(_added(nodes, walked)) if georeferencing.NAME in nodes.wishes else {}
    if added:
        more = {path: found.metadata for path, found in added.items()}
        nodes = Nodes({**known, **more}, wishes, nodes.memos)
        walked += [Node(path, found) for path, found in added.items()]
    is_alone = isinstance(source.metadata, ArrayMetadata)
    steps = [step_of(node, nodes, dialect, options, is_alone=is_alone, in_place=in_place) for node in walked]
    steps = [
        replace(step, is_added=True, remarks=(*step.remarks, _ADDED)) if step.path in added else step for step in steps
    ]
    if source.where.store.exists(source.where.prefix + journal.KEY):
        what, why = "arrays that do not exist yet", "the source is itself a conversion that was not finished"
        steps[0] = replace(steps[0], losses=(Loss("", "", what, f"{why}: resume that first"), *steps[0].losses))
    if losses := tuple(unshown.noted(source.where, is_array=is_alone)):
        steps[0] = replace(steps[0], losses=(*losses, *steps[0].losses))
    if whole.remark:
        steps[0] = replace(steps[0], remarks=(f"the source cannot be listed: {whole.remark}", *steps[0].remarks))
    made = Plan(source, dialect, options, tuple(_without_empty_groups(steps, dialect)))
    return made if in_place else _with_files(made)


def _added(nodes: Nodes, walked: Iterable[Node]) -> Iterator[tuple[str, Found[Metadata]]]:
    """Yield the arrays that a convention wants beside those of the source, by path."""
    there = {node.path: node.found for node in walked if isinstance(node.found, Found)}
    for path in georeferencing.needed(nodes):
        found = there[path]
        values = None
        if isinstance(found.metadata, ArrayMetadata) and found.metadata.shape[0] <= _LONGEST_LINE:
            with suppress(ChunkError, CodecError, MetadataError, UnknownExtensionError):
                packing = Packing.of_array(found.metadata)
                values, hidden = packing.decoded(np.asarray(Array(found.where, found.metadata)[...]))
                values = None if hidden is not None and hidden.any() else values
        georeferencing.give(nodes, path, values)
    store = MemoryStore({})
    for made in georeferencing.additions(nodes):
        keywords: dict[str, Any] = {"dimension_names": made.names, "attributes": made.attributes, "zarr_format": 3}
        place = StorePath(store, made.path)
        create_array(place, data=made.values, chunks=made.values.shape, **keywords)
        yield made.path, detection.open_node(place)


_ADDED: Final = "the source does not have it: the convention needs it"
_LONGEST_LINE: Final = 2**24
"""Coordinates that are read, at most."""


def _with_files(made: Plan) -> Plan:
    """Return a plan with the files that are not Zarr; those without a place in the target are losses."""
    nodes = {step.path: None if step.found is None else step.found.metadata for step in made.steps}
    known = (f"{step.path}/{name}".lstrip("/") for step in made.steps for name in step.files)
    where = made.source.where
    few = FewChunks(where, _arrays(made.steps)) if naming.is_far(where.store) else None
    found = files.found_below(where, nodes, known, few)
    top, *others = made.steps
    top = replace(top, remarks=(*top.remarks, *files.told_of(found)))
    made = made._replace(steps=(top, *others), files=found.files, few=few)
    return _without(made, files.for_dialect(found, made.dialect))


def _arrays(steps: Iterable[Step]) -> frozenset[str]:
    """Return the paths of arrays of a source, as its store knows them."""
    return frozenset(step.found.where.path for step in steps if step.is_array and step.found and not step.is_added)


def _without(made: Plan, lost: Mapping[str, str]) -> Plan:
    """Return a plan without some files, which are losses of the nodes that they are below."""
    if not lost:
        return made
    losses: dict[str, list[Loss]] = {}
    for loss in files.losses_of(lost, (step.path for step in made.steps)):
        losses.setdefault(loss.path, []).append(loss)
    steps = (replace(step, losses=(*step.losses, *losses.get(step.path, ()))) for step in made.steps)
    return made._replace(steps=tuple(steps), files=tuple(key for key in made.files if key not in lost))


def fitted(made: Plan, place: StorePath) -> Plan:
    """Return a plan with what the target's store can hold; nodes and files that it cannot are losses."""
    made = made._replace(steps=tuple(_fitted(_as_stored(step, place), made.dialect, place) for step in made.steps))
    return _without(made, files.for_place(made.files, (step.path for step in made.steps), place))


def _as_stored(step: Step, place: StorePath) -> Step:
    """Return a step with the codecs and chunks of a store that holds arrays in a format of its own, such as N5."""
    made = step.translation
    if made is None or not isinstance(made.target, ArrayMetadata):
        return step
    try:
        target = verbs.as_stored(place.store, place.prefix + step.path, made.target, True)  # noqa: FBT003 - verbs have no keywords
    except NotRepresentableError as error:
        found = "" if error.found is None else f" (found {error.found})"
        loss = Loss(step.path, error.pointer or "", "the array", f"{error.message}{found}")
        return replace(step, translation=replace(made, target=None), losses=(*step.losses, loss))
    if target == made.target:
        return step
    same_fill = made.same_fill and target.fill_value == made.target.fill_value
    made = replace(made, target=target, same_bytes=False, same_elements=False, same_fill=same_fill)
    return replace(step, translation=made)


def _fitted(step: Step, dialect: Dialect, place: StorePath) -> Step:
    if step.target is None or step.translation is None or not step.path:
        return step
    keyspace = dialect.keyspace
    if isinstance(keyspace, Split):
        keyspace = replace(keyspace, root=place.path)
    path = f"{place.prefix}{step.path}"
    keys = list(keyspace.documents(path).values())
    if isinstance(step.target, ArrayMetadata):
        keys += [f"{keyspace.chunk_prefix(path)}{key}" for key in _last_chunk(step.target)]
    try:
        for key in keys:
            verbs.check_storable(place.store, key)
    except (InvalidKeyError, StoreLimitError) as error:
        why = f"{place.store} has no room for its keys: {error.message}"
        loss = Loss(step.path, "", f"the node {step.path!r}", why)
        return replace(step, translation=replace(step.translation, target=None), losses=(*step.losses, loss))
    return step


def _last_chunk(metadata: ArrayMetadata) -> Iterator[str]:
    """Yield the key of an array's last chunk, which is the longest."""
    try:
        grid = grids.bind(metadata.chunk_grid, metadata.shape)
        yield chunk_keys.bind(metadata.chunk_key_encoding).encode(tuple(max(0, n - 1) for n in grid.grid_shape))
    except OmnizarrError:
        return  # of an extension that is not known here


def _without_empty_groups(steps: Sequence[Step], dialect: Dialect) -> Iterator[Step]:
    """Say of groups in which no array will be that they are lost to a format without groups."""
    above = {""} if any(step.is_array for step in steps) else set()
    for step in steps:
        above.update(paths_above(step.path) if step.is_array else ())
    for step in steps:
        if step.target is None and step.remarks and not dialect.has_groups and step.path not in above:
            why = "the format has no groups, and no array is in it that would need a directory"
            yield replace(step, losses=(*step.losses, Loss(step.path, "", "the group", why)), remarks=())
        else:
            yield step


_ONLY_A_COPY: Final = "only consolidated metadata describes it"


def step_of(
    node: Node,
    nodes: Nodes,
    dialect: Dialect,
    options: Encoding,
    *,
    is_alone: bool = False,
    in_place: bool = False,
    looks: bool = True,
) -> Step:
    """Return the plan for a node.

    Parameters
    ----------
    node : Node
    nodes : Nodes
        Of the whole hierarchy, for conventions.
    dialect : Dialect
        The target.
    options : Encoding
    is_alone : bool
        The array is not a part of a hierarchy.
    in_place : bool
    looks : bool
        Look for chunks where they make a difference: to the keys of others, and to what is lost.

    Raises
    ------
    MetadataError, NotRepresentableError, CodecError
        If an option is not valid for an array.
    StoreError
        If the store fails.
    """
    if isinstance(node.found, OmnizarrError):
        loss = Loss(node.path, "", "the node", f"it cannot be read: {node.found}")
        return Step(node.path, None, None, (loss,))
    try:
        return _step(node, node.found, nodes, dialect, options, is_alone=is_alone, in_place=in_place, looks=looks)
    except OmnizarrError as error:
        if options.given or is_failure(error):
            raise error.add(path=node.found.where.path)
        loss = Loss(node.path, error.pointer or "", "the node", f"it cannot be translated: {error}")
        return Step(node.path, None, None, (loss,))


def _step(
    node: Node,
    found: Found[Metadata],
    nodes: Nodes,
    dialect: Dialect,
    options: Encoding,
    *,
    is_alone: bool,
    in_place: bool,
    looks: bool,
) -> Step:
    metadata = without_copies(found.metadata)
    keywords: dict[str, Any] = {}
    if isinstance(metadata, ArrayMetadata):
        metadata = bindings.with_keys_in_use(found.where, metadata) if looks else metadata
        keywords = options.for_array(len(metadata.shape), is_alone=is_alone)
    left = {"compressors": options.compressors_left}
    wanted: dict[str, Any] = {"path": node.path, "nodes": nodes, "siblings": node.siblings, **left, **keywords}
    if options.strings == "fixed" and isinstance(metadata, ArrayMetadata) and metadata.data_type.name in _TEXTS:
        length, why = _longest(Chunks.of(found.where, metadata))
        if why:
            loss = Loss(node.path, "/data_type", "the array, for its strings", why)
            return Step(node.path, found, Translation(metadata, None, (loss,)), (loss,))
        wanted["characters"] = left["characters"] = length
    made = translate(metadata, dialect, in_place=in_place, **wanted)
    if made.same_elements and keywords and not _has_codecs_already(made, translate(metadata, dialect, **left)):
        # Readers would accept the chunks unchanged, but the user wants others.
        made = replace(made, same_bytes=False, same_elements=False)
    if not made.same_bytes and "compressors" not in keywords and (name := _that_cannot_encode(made.target)):
        # Read it can be: blosc with snappy, of old.
        made = translate(metadata, dialect, **{**wanted, "compressors": "auto"})
        made = replace(made, remarks=(*made.remarks, f"chunks can be read here with {name!r}, but not written"))
    made = _without_losses_of_missing(made, found.where) if looks else made
    made = _with_loss_of_values(made, found.where, node.path) if looks and made.values == "text" else made
    remarks = (_ONLY_A_COPY, *made.remarks) if node.is_copy else made.remarks
    where = found.where
    kept = () if in_place else conventions.files(node.path, nodes)
    kept = tuple(key for key in kept if where.store.exists(where.prefix + key))
    return Step(node.path, found, made, made.losses, remarks, node.has_copies, kept)


def _without_losses_of_missing(made: Translation, where: StorePath) -> Translation:
    """Return a translation without the losses that concern missing chunks, if none is missing."""
    if not made.of_missing or not isinstance(made.source, ArrayMetadata) or Chunks.of(where, made.source).lacks_some():
        return made
    losses = tuple(loss for loss in made.losses if loss not in made.of_missing)
    remarks = (f"{loss.what} becomes {loss.kept}; no chunk is missing" for loss in made.of_missing)
    return replace(made, losses=losses, remarks=(*made.remarks, *remarks), of_missing=())


def _with_loss_of_values(made: Translation, where: StorePath, path: str) -> Translation:
    """Return the translation of objects to text, with a loss if they are not all texts already.

    Without a target if a value has no text, as bytes in MessagePack.
    """
    if not isinstance(made.source, ArrayMetadata):
        return made
    kind = value_kind(made.source)
    chunks = Chunks.of(where, made.source)
    binding = chunks.bind(ChunkPolicy(missing="fill"))
    losses: list[Loss] = []
    for coords in chunks.stored():
        values = read(binding, chunks.grid.slices_of(coords), None, {})
        others = [value for value in values.flat if not isinstance(value, str)]
        if others and not losses:
            what = f"that elements are {kind} values, such as {shown(others[0])}"
            losses.append(Loss(path, "/filters", what, "the target has no such type", "their JSON text"))
        if losses and kind == "JSON":
            break
        try:
            as_text(values)
        except ValueTypeError as error:
            loss = Loss(path, "/filters", f"the array, for elements such as {error.found}", error.message)
            return replace(made, target=None, losses=(*made.losses, loss))
    return replace(made, losses=(*made.losses, *losses))


_TEXTS: Final = ("string", "variable_length_utf8")
_LONGEST: Final = 2**14
"""Characters of a string that gets a fixed length, at most."""
_LARGEST: Final = 2**28
"""Bytes of a chunk of such strings, at most."""


def _longest(chunks: Chunks) -> tuple[int, str]:
    """Return how many characters the longest string of an array has, at least 1; and why that cannot be its length."""
    binding = chunks.bind(ChunkPolicy(missing="fill"))
    fill = str(binding.spec.fill_value)
    longest, ends_in_nul = max(1, len(fill)), fill.endswith("\0")
    largest = 1
    for coords in chunks.stored():
        values = read(binding, chunks.grid.slices_of(coords), None, {})
        largest = max(largest, values.size)
        for value in values.flat:
            longest = max(longest, len(value))
            ends_in_nul = ends_in_nul or value.endswith("\0")
        if longest > _LONGEST:
            found = f"one has {longest} characters, and fixed strings get {_LONGEST} at most"
            return longest, f"{found}: keep strings of any length"
    if ends_in_nul:
        return longest, "one ends with U+0000, which pads fixed strings: keep strings of any length"
    if (size := largest * longest * UTF32_BYTES) > _LARGEST:
        found = (
            f"of {longest} characters, as the longest, a chunk takes {size} bytes, and {_LARGEST} at most are written"
        )
        return longest, f"{found}: rechunk to smaller chunks first, or keep strings of any length"
    return longest, ""


def _that_cannot_encode(target: Metadata | None) -> str:
    """Return the name of a compressor of an array that cannot compress here; "" if all can, or are not known."""
    return portable.that_cannot_encode(target.codecs) if isinstance(target, ArrayMetadata) else ""


def _has_codecs_already(made: Translation, unasked: Translation) -> bool:
    """Whether an array has the codecs that the user wants, in every word, without asking for them."""
    return (
        isinstance(made.target, ArrayMetadata)
        and isinstance(unasked.target, ArrayMetadata)
        and same(made.target.codecs, unasked.target.codecs)
    )
