"""The nodes and the chunks that a conversion would write, made one by one when they are asked for."""

from __future__ import annotations

import itertools
import operator
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Final

from omnizarr import indexing
from omnizarr.codecs.contract import Buffer
from omnizarr.engine import write
from omnizarr.errors import Function, NotRepresentableError, OmnizarrError, Remedy, StoreError
from omnizarr.formats import dialect_named, documents
from omnizarr.formats.contract import Dialect
from omnizarr.formats.conventions import Nodes
from omnizarr.formats.paths import upwards
from omnizarr.model import UNDEFINED, ArrayMetadata, GroupMetadata, Loss, Metadata
from omnizarr.model.grids import Coords
from omnizarr.nodes import bindings, detection
from omnizarr.nodes.consolidated import stored_copies
from omnizarr.nodes.detection import Found
from omnizarr.nodes.encoded import MOST_SOURCES, EncodedChunks
from omnizarr.nodes.location import StorePath
from omnizarr.nodes.stored import rendered
from omnizarr.nodes.walk import walk
from omnizarr.stores import MemoryStore, Span, Store
from omnizarr.stores.base import cut
from omnizarr.tools.convert.moving import Move, Sides, recompressing
from omnizarr.tools.convert.planning import Step, explicit, plan, step_of
from omnizarr.tools.convert.report import would_be_lost
from omnizarr.tools.convert.sources import Node, Source
from omnizarr.tools.streaming.regions import Regions
from omnizarr.tools.translate.coding import Encoding

_REMEMBERED: Final = 5.0
"""Seconds for which the view remembers a parsed document, unless the document itself is requested."""
_CROWDED: Final = 60.0
"""Seconds until nodes below a group are counted again that were too many for consolidated metadata."""
_MOST_REMEMBERED: Final = 10_000
"""Nodes."""
_ALL_SHOWN: Final = Remedy("{strict} shows what can be shown", strict=False).also(
    "{convert} lists what is lost", convert=Function("(..., dry_run=True)")
)


class ShownArray:
    """The chunks of an array in another format.

    Parameters
    ----------
    move : Move
        From the array to where a conversion would put it.
    kept : EncodedChunks
        Of all arrays of the view.
    """

    def __init__(self, move: Move, kept: EncodedChunks) -> None:
        self._move = move
        self._kept = kept
        self.source, self.target = move.sides()
        translation = move.translation
        self.is_through = translation.same_bytes and translation.same_fill
        """Stored chunks are handed on unchanged, and no others."""
        self._counts = self.target.grid.grid_shape

    @cached_property
    def _sides(self) -> Sides:
        return self._move.bound(MemoryStore())

    @cached_property
    def _become(self) -> Callable[[Coords, Buffer], Buffer]:
        return recompressing(self._sides)

    def coords_of(self, key: str) -> Coords | None:
        """Return the coordinates of the chunk with a key; None if the key is not a chunk's."""
        prefix = self.target.prefix
        return self.target.encoding.decode(key[len(prefix) :], len(self.target.grid.shape))

    def holds(self, coords: Coords) -> bool:
        """Whether the array has such a chunk."""
        return all(map(operator.lt, coords, self._counts))

    def value(self, coords: Coords, span: Span | None = None) -> Buffer | None:
        """Return the stored bytes of a chunk, or a part of them; None if the chunk is missing.

        Raises
        ------
        ChunkError
            If a chunk of the source is broken.
        CodecError, UnknownExtensionError
            If the codecs of the source, or of the target, cannot be run.
        """
        translation = self._move.translation
        if translation.same_bytes:
            stored = self.source.store.get(self.source.key_of(coords), span)
            if stored is not None or translation.same_fill:
                return stored
        key, how = self.target.key_of(coords), (translation.source, translation.target)
        store = self._sides.reading.store
        sources = [(store, each) for each in self._made_of(coords)]
        value = self._kept.get(key, how, sources, lambda: self._made(coords))
        return None if value is None else cut(value, span)

    def _made(self, coords: Coords) -> Buffer | None:
        """Return a chunk that is compressed or encoded again."""
        translation = self._move.translation
        if translation.same_elements and not translation.same_bytes:
            stored = self._recompressed(coords)
            if stored is not None or translation.same_fill:
                return stored
        return self._encoded(coords)

    def _recompressed(self, coords: Coords) -> Buffer | None:
        try:
            stored = self.source.value_of(coords)
            return None if stored is None else self._become(coords, stored)
        except OmnizarrError as error:
            key = self.source.key_of(coords)
            raise error.add(store=str(self.source.store), path=self.source.where.path, key=key, coords=coords)

    def _encoded(self, coords: Coords) -> Buffer | None:
        if self._is_absent(coords):
            return None
        store = MemoryStore()
        sides = self._sides._replace(writing=replace(self.target, store=store).bind(self._sides.writing.policy))
        box = self.target.grid.slices_of(coords)
        values = self._move.read_as_target(sides, box)
        write(sides.writing, indexing.basic(box, sides.writing.grid), values, 1)
        return store.get(self.target.key_of(coords))

    def _is_absent(self, coords: Coords) -> bool:
        """Whether a chunk has no stored elements, in an array that stores even chunks of the fill value."""
        if self.target.metadata.fill_value is not UNDEFINED or not self._move.translation.same_fill:
            return False
        return not any(map(self.source.store.exists, self._sources(coords)))

    @cached_property
    def _regions(self) -> Regions:
        return Regions(self.source.grid, (1,) * len(self.source.grid.shape))

    def _sources(self, coords: Coords) -> Iterator[str]:
        """Yield the keys of the source's chunks of which a chunk is made."""
        box = self.target.grid.slices_of(coords)[: len(self.source.grid.shape)]
        return (self.source.key_of(at) for number in self._regions.touched(box) for at in self._regions.chunks(number))

    def _made_of(self, coords: Coords) -> list[str]:
        """Return these keys, as many as can matter."""
        return list(itertools.islice(self._sources(coords), MOST_SOURCES + 1))

    def exists(self, coords: Coords) -> bool:
        """Whether something is stored of a chunk."""
        translation = self._move.translation
        if translation.same_elements and self.source.store.exists(self.source.key_of(coords)):
            return True
        needs_value = not (translation.same_elements and translation.same_fill)
        return needs_value and self.value(coords) is not None

    def size(self, coords: Coords) -> int | None:
        """Return the size in bytes of what `value` returns."""
        if self.is_through:
            return self.source.store.size(self.source.key_of(coords))
        value = self.value(coords)
        return None if value is None else len(value)

    def listed(self) -> Iterator[Coords]:
        """Yield the coordinates of all chunks that may be stored.

        Where chunks are encoded again, there may be some among them that hold only the fill value.
        """
        if not self._move.translation.same_fill:
            return self.target.grid.coords()
        if self._move.translation.same_elements:
            return self.source.listed()
        regions = Regions(self.target.grid, (1,) * len(self.target.grid.shape))
        holding = regions.holding(self.source.grid.slices_of(coords) for coords in self.source.listed())
        return (coords for number in holding for coords in regions.chunks(number))

    def listed_below(self) -> Iterator[str]:
        """Yield the keys of chunks, at least one for each common prefix up to the next slash."""
        keys = map(self.target.key_of, self.listed())
        if not self.target.key_of((0,) * len(self.target.grid.shape)).startswith(f"{self.target.prefix}c/"):
            return keys
        return itertools.islice(keys, 1)

    def listed_sizes(self) -> Iterator[tuple[Coords, int]]:
        """Yield the same coordinates, but of chunks that are stored, with the sizes of these."""
        if self.is_through:
            yield from self.source.sizes()
            return
        for coords in self.listed():
            found = self.size(coords)
            if found is not None:
                yield coords, found


@dataclass
class Shown:
    """A node in another format."""

    node: Node
    metadata: Metadata
    """Of the source."""
    began: float
    where: StorePath
    """In the source."""
    step: Step | None = None
    array: ShownArray | None = None


@dataclass(frozen=True)
class ViewTask:
    """How a hierarchy is to be shown."""

    format: str
    source_format: int | str | None
    encoding: Encoding
    strict: bool
    allow_pickle: bool
    most_copied: int | None = 0
    """Largest number of nodes below a group for which consolidated metadata is made if the source has none; None: no
    limit."""

    @property
    def dialect(self) -> Dialect:
        """The format, which a pickle has by its name alone."""
        return dialect_named(self.format)


class _Looked(Nodes):
    """The nodes of a hierarchy, each looked at when it is asked for."""

    __slots__ = ("_copied", "_shown")

    def __init__(self, shown: ShownHierarchy, copied: Mapping[str, Metadata]) -> None:
        super().__init__(copied)
        self._shown = shown
        self._copied = copied

    def __getitem__(self, path: str) -> Metadata:
        if path in self._copied:
            return self._copied[path]
        found = self._shown.look(path)
        if found is None:
            raise KeyError(path)
        return found.metadata

    def __iter__(self) -> Iterator[str]:
        return map(operator.attrgetter("node.path"), self._shown.walk(""))

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def __bool__(self) -> bool:
        return True  # known without counting them

    def arrays_in(self, group: str) -> Mapping[str, ArrayMetadata]:
        """Return the arrays directly below a group, by name; none if it cannot be looked at."""
        above = self._shown.look(group)
        below = () if above is None else self._shown.source.below(above.node)
        found = {node.path.rpartition("/")[2]: node.found for node in below}
        return {
            name: each.metadata
            for name, each in found.items()
            if isinstance(each, Found) and isinstance(each.metadata, ArrayMetadata)
        }

    def _beside(self, path: str) -> Iterable[ArrayMetadata]:
        if path in self._copied:
            return super()._beside(path)
        above = self._shown.look(path.rpartition("/")[0])
        below = () if above is None or not path else self._shown.source.below(above.node)
        found = (node.found.metadata for node in below if isinstance(node.found, Found))
        return [metadata for metadata in found if isinstance(metadata, ArrayMetadata)]


@dataclass
class ShownHierarchy:
    """The nodes of a hierarchy as another format has them.

    Attributes
    ----------
    root : Found
        The topmost node, as it was when it was opened.
    task : ViewTask
    view : Store
        In which the nodes are shown.
    """

    root: Found[Metadata]
    task: ViewTask
    view: Store
    source: Source = field(init=False)
    _known: dict[str, Shown] = field(init=False, default_factory=dict)
    _crowded: dict[str, float] = field(init=False, default_factory=dict)
    """When a group was found to have too many nodes below it."""
    _kept: EncodedChunks = field(init=False, default_factory=EncodedChunks)

    def __post_init__(self) -> None:
        self.source = Source(self.root)
        self._remember("", self.source.top(self.root))

    # -- nodes ------------------------------------------------------------------------

    def look(self, path: str, *, again: bool = False) -> Shown | None:
        """Return the node at a path, if there is one that can be read; `again`: as it is at this moment."""
        if not again and (known := self.known(path)) is not None:
            return known
        node = self._node(path)
        if node is None or not isinstance(node.found, Found):
            self._known.pop(path, None)
            return None
        return self._remember(path, node)

    def known(self, path: str) -> Shown | None:
        """Return the node at a path as it was when it was last looked at, if that was not long ago."""
        known = self._known.get(path)
        return known if known is not None and time.monotonic() - known.began < _REMEMBERED else None

    def known_array(self, path: str) -> tuple[str, ShownArray] | None:
        """Return the nearest array at a path or above that has been looked at not long ago, with its path."""
        for at in upwards(path):
            shown = self._known.get(at)
            if shown is not None and shown.array is not None and time.monotonic() - shown.began < _REMEMBERED:
                return at, shown.array
        return None

    def __getstate__(self) -> dict[str, object]:
        return {**self.__dict__, "_known": {}, "_crowded": {}, "_kept": EncodedChunks()}

    def _remember(self, path: str, node: Node) -> Shown | None:
        if not isinstance(node.found, Found):
            return None
        if len(self._known) >= _MOST_REMEMBERED:
            self._known.clear()
        shown = self._known[path] = Shown(node, node.found.metadata, time.monotonic(), node.found.where)
        return shown

    def _node(self, path: str) -> Node | None:
        if not path:
            where, wanted = self.source.where, self.task.source_format
            found = detection.detect(where, wanted) or detection.implied(where, wanted)
            return None if found is None else self.source.top(found)
        above, _, name = path.rpartition("/")
        group = self.look(above)
        return None if group is None else self.source.child(group.node, name)

    def walk(self, path: str) -> Iterator[Shown]:
        """Yield the nodes at a path and below that can be read, parents first, as they are at this moment."""
        top = self.look(path, again=True)
        for node in () if top is None else self.source.walk(top.node):
            found = self._remember(node.path, node)
            if found is not None:
                yield found

    def step(self, shown: Shown) -> Step:
        """Return the translated node.

        Raises
        ------
        NotRepresentableError
            If something is lost, and nothing may be.
        """
        if shown.step is None:
            shown.step = self._step(shown.node, {})
        return shown.step

    def _step(self, node: Node, copied: Mapping[str, Metadata]) -> Step:
        task = self.task
        # Chunks of v3 get keys of their own in any case.
        looks = task.strict or task.dialect.name != "v3"
        step = step_of(node, _Looked(self, copied), task.dialect, task.encoding, looks=looks)
        if task.strict and step.losses:
            raise would_be_lost(self.source.where, step.losses, _ALL_SHOWN)
        return step

    def array(self, shown: Shown) -> ShownArray | None:
        """Return the chunks of a node; None if it is not an array, or cannot be shown."""
        step = self.step(shown)
        if not step.is_array or step.found is None or step.translation is None:
            return None
        if shown.array is None:
            where, source = step.found.where, step.translation.source
            if isinstance(source, ArrayMetadata):
                source = bindings.with_keys_in_use(where, source)
            translation = replace(step.translation, source=source)
            target = StorePath(self.view, step.path)
            shown.array = ShownArray(Move(where, target, translation, allow_pickle=self.task.allow_pickle), self._kept)
        return shown.array

    # -- documents -------------------------------------------------------------------------

    def document(self, shown: Shown | None, name: str) -> Buffer | None:
        """Return the document of a node by its name; None if there is none."""
        if shown is None:
            return None
        step, dialect = self.step(shown), self.task.dialect
        found = self._documents(step)
        is_place = name == (dialect.consolidated.document or dialect.group_document)
        copied = self._copied(shown) if is_place and found else None
        if copied is not None:
            try:
                nodes = {path: _parsed(each) for path, each in self._below(shown, step, copied)}
                return {**found, **stored_copies(dialect, _parsed(found), nodes)}.get(name)
            except (StoreError, NotRepresentableError):
                raise
            except OmnizarrError:
                pass  # there is no consolidated metadata, as after a conversion
        return found.get(name)

    def _documents(self, step: Step) -> Mapping[str, Buffer]:
        if step.target is None:
            return {}
        target = explicit(step.target) if isinstance(step.target, GroupMetadata) else step.target
        return rendered(StorePath(self.view, step.path), target)

    def _copied(self, shown: Shown) -> list[Node] | None:
        """Return the nodes of which the consolidated metadata of a group has copies; None if it has no such metadata.

        The nodes that the source has copies of, or else all nodes.
        """
        group = shown.node
        if group.has_copies:
            return self._nodes_below(group, None)
        if not self._makes_copies(group):
            return None
        found = self._nodes_below(group, self.task.most_copied)
        if found is None:
            if len(self._crowded) >= _MOST_REMEMBERED:
                self._crowded.clear()
            self._crowded[group.path] = time.monotonic()
        return found

    def _makes_copies(self, group: Node) -> bool:
        """Return whether consolidated metadata is made for a group that has none, if few nodes are below it."""
        if group.group is None or self.task.most_copied == 0:
            return False
        crowded = self._crowded.get(group.path)
        if crowded is not None and time.monotonic() - crowded < _CROWDED:
            return False
        return group.copies is not None or self.source.can_be_listed

    def _nodes_below(self, group: Node, most: int | None) -> list[Node] | None:
        """Return the nodes below a group; None if there are more than `most`."""
        if group.copies is not None and self.source.can_be_copied:
            found = list(itertools.islice(self.source.copied(group), most if most is None else most + 1))
            return None if most is not None and len(found) > most else found
        listed = 0

        def below(node: Node) -> Iterator[Node]:
            nonlocal listed
            if most is not None:
                listed += len(self.source.names(node))
                if listed > most:
                    raise _CrowdedError
            return self.source.below(node)

        try:
            return [node for _, node in list(walk(group, below))]
        except _CrowdedError:
            return None

    def _below(self, shown: Shown, step: Step, copied: list[Node]) -> Iterator[tuple[str, Mapping[str, Buffer]]]:
        """Yield the documents of a group and of nodes below it, by paths from there, as `consolidated.gather` does."""
        group = shown.node
        metadata = {node.path: node.found.metadata for node in copied if isinstance(node.found, Found)}
        skip = len(group.path) + 1 if group.path else 0
        below = {node.path[skip:]: node for node in copied}
        yield "", self._documents(step)
        for path in sorted(below, key=lambda path: path.split("/")):  # as `consolidated.walk` meets them
            each = self._documents(self._step(below[path], metadata))
            if each:
                yield path, each

    def names(self, shown: Shown) -> set[str]:
        """Return the names of the documents of a node, without reading them."""
        found = set(self._documents(self.step(shown)))
        apart = self.task.dialect.consolidated.document
        return {*found, apart} if apart is not None and found and self._has_copies(shown) else found

    def _has_copies(self, shown: Shown) -> bool:
        """Return whether a group has consolidated metadata; its nodes are counted only if it matters how many."""
        group = shown.node
        if group.has_copies:
            return True
        if group.group is None or not self._makes_copies(group):
            return False
        return self.task.most_copied is None or self._copied(shown) is not None

    def check(self) -> None:
        """Raise NotRepresentableError if something is lost, and nothing may be."""
        if self.task.strict and (losses := self.losses):
            raise would_be_lost(self.source.where, losses, _ALL_SHOWN)

    @property
    def losses(self) -> tuple[Loss, ...]:
        """The current losses of all nodes."""
        top = self.look("", again=True)
        if top is None or not isinstance(top.node.found, Found):
            return ()
        return plan(top.node.found, self.task.dialect, self.task.encoding).losses


class _CrowdedError(Exception):
    """There are more nodes than are wanted."""


def _parsed(values: Mapping[str, Buffer]) -> detection.Documents:
    """Return documents, those of a group last, as `detection.read_documents` finds them."""
    return {name: documents.parse(values[name]) for name in sorted(values, key=".zgroup".__eq__)}
