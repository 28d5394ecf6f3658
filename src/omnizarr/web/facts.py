"""Answers to the page of `view` as JSON: the tree, facts of a node, labels, values, chunks and findings.

Paths are relative to the node that was opened. All functions read from the store, and are to be called in threads.
"""

from __future__ import annotations

import math
import time
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from typing import Any, Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from omnizarr.codecs import registry
from omnizarr.engine.cache import ChunkCache
from omnizarr.errors import (
    ContainsGroupError,
    NodeNotFoundError,
    OmnizarrError,
    SelectionError,
    StoreError,
)
from omnizarr.formats.conventions import Nodes, calendars, display, meaning, presentation
from omnizarr.formats.conventions.ome import reading, summary
from omnizarr.formats.reader import is_list
from omnizarr.model import ArrayMetadata, Metadata, grids
from omnizarr.model.datatypes.optional import is_optional
from omnizarr.netcdf.cdl.times import Times
from omnizarr.netcdf.header import Attribute
from omnizarr.nodes import bindings, consolidated, extremes, holdings, info, info_rows, showing
from omnizarr.nodes.array import Array
from omnizarr.nodes.group import Group
from omnizarr.nodes.info import ArrayFacts
from omnizarr.nodes.location import normalize
from omnizarr.nodes.members import UnreadableNode
from omnizarr.nodes.showing.meaning import Setting
from omnizarr.nodes.showing.slices import as_selector
from omnizarr.pictures.numbers import numbers_of
from omnizarr.stores import pool
from omnizarr.stores.base import NOT_LISTED
from omnizarr.stores.redaction import redact
from omnizarr.support.locks import RLock
from omnizarr.tools import describe, reaching
from omnizarr.tools.check import check
from omnizarr.tools.survey import Survey
from omnizarr.web import small
from omnizarr.web.documents import array_model_of, documents_of, format_of, model_of
from omnizarr.web.drawn import drawn_type, marks_of_optional, shown_as
from omnizarr.web.members import Members
from omnizarr.web.plain import (
    floats_of,
    json_text,
    numbers,
    optional_texts,
    packing_facts,
    plain,
    texts,
    unpacked_texts,
    words,
)
from omnizarr.web.search import Index
from omnizarr.web.selections import is_integer, range_of, selection_of
from omnizarr.web.stopping import Stop, StoppedError, never

StoredChunks: TypeAlias = tuple[tuple[int, ...], frozenset[tuple[int, ...]]]
"""The shape of the chunks of an array, and the coordinates of those that are stored."""

MOST_NODES: Final = 1000
"""Nodes of one answer."""
MOST_BINS: Final = 4096
"""Bins of a line."""
MOST_VALUES: Final = 10_000
"""Elements, and labels, of one answer."""
MOST_CHUNKS: Final = 200_000
"""Chunks of one map."""
MOST_FINDINGS: Final = 10_000

_MOST_COUNTED: Final = 50_000
_MOST_COUNTED_FAR: Final = 1000
"""Keys that are listed to count the stored chunks of an array; in a remote store, the keys of one request."""
_STORED: Final = 30.0
"""Seconds for which the list of stored chunks is kept."""
_MOST_STORED: Final = 16
_MOST_SETTINGS: Final = 64
_MOST_LABELS: Final = 8
"""Label images of an image."""
_MOST_ASKED: Final = 400
"""Maximum number of chunks that are requested one by one if a store cannot list."""
_FRESH: Final = 10.0
"""Seconds for which a node is remembered."""
_MOST_REMEMBERED: Final = 512
_CACHE: Final = 2**27
"""Bytes of decoded chunks that are kept for a hierarchy."""


class Dataset:
    """A hierarchy that is being looked at.

    Parameters
    ----------
    node : Array or Group
    location : str
        What was opened: a path or a URL, without credentials. The page says it in the Python line that reads the same.

    Examples
    --------
    >>> import omnizarr
    >>> root = omnizarr.create_group({})
    >>> root["ocean/temp"] = [280.5, 281.0]
    >>> dataset = Dataset(root, "memory")
    >>> [node["path"] for node in dataset.tree("ocean")["nodes"]]
    ['ocean/temp']
    >>> dataset.values("ocean/temp", [[0, 2, 1]])["values"]
    ['280.5', '281.0']
    """

    def __init__(self, node: Array | Group, location: str) -> None:
        self.root = reaching.with_members(node)
        self.location = redact(location)
        self._cache = ChunkCache(_CACHE)
        self._guard = RLock()
        self._known: OrderedDict[str, tuple[float, Array | Group]] = OrderedDict()
        self._members = Members()
        self._index: Index | None = None
        self._stored: dict[str, tuple[float, StoredChunks | None]] = {}
        self._settings: dict[str, tuple[Array, Setting]] = {}

    @property
    def name(self) -> str:
        """The last part of the location."""
        return self.location.rstrip("/").rpartition("/")[2] or self.location

    def summary(self) -> dict[str, Any]:
        """Return what it is, in a line."""
        return {
            "name": self.name,
            "location": self.location,
            "format": format_of(self.root, model_of(self.root).dialect),
            "kind": _kind(self.root),
        }

    # -- nodes ----------------------------------------------------------------------------

    def node(self, path: str) -> Array | Group:
        """Return the node at a path; it is remembered for a few seconds.

        Raises
        ------
        NodeNotFoundError
            If there is none.
        MetadataError
            If it cannot be understood.
        """
        path = normalize(path)
        now = time.monotonic()
        with self._guard:
            known = self._known.get(path)
        if known is not None and now - known[0] < _FRESH:
            return known[1]
        return self._remember(path, self._open(path))

    def _remember(self, path: str, node: Array | Group) -> Array | Group:
        """Remember a node for a few seconds, and return it with the cache of this hierarchy."""
        if isinstance(node, Array):
            node = node.with_config(replace(node.config, chunk_cache=self._cache))
        with self._guard:
            self._known[path] = time.monotonic(), node
            self._known.move_to_end(path)
            if len(self._known) > _MOST_REMEMBERED:
                self._known.popitem(last=False)
        return node

    def _open(self, path: str) -> Array | Group:
        root = self.root
        if isinstance(root, Array):
            if path:
                raise NodeNotFoundError("there is nothing below an array", store=str(root.store), path=path)
            return Array.open(root.store_path, config=root.config)
        return root[path]

    def array(self, path: str) -> Array:
        """Return the array at a path.

        Raises
        ------
        ContainsGroupError
            If there is a group.
        """
        node = self.node(path)
        if not isinstance(node, Array):
            raise ContainsGroupError("there is a group, not an array", store=str(node.store), path=node.path)
        return node

    def path_of(self, path: str) -> str:
        """Return a path in the store as one from the root."""
        return path[len(self.root.store_path.prefix) :] if path != self.root.path else ""

    def setting(self, path: str) -> Setting:
        """Return what documents say of the array at a path, as long as the array is remembered."""
        array = self.array(path)
        known = self._settings.get(path)
        if known is not None and known[0] is array:
            return known[1]
        if array.path == self.root.path:
            found = Setting.of(showing.in_its_group(array))
        elif isinstance(self.root, Group) and reaching.source_of(self.root) == "consolidated":
            found = Setting.of(array, _Looked(self))
        else:
            found = Setting.of(array)
        if len(self._settings) >= _MOST_SETTINGS:
            self._settings.clear()
        self._settings[path] = array, found
        return found

    def tree(self, path: str = "", offset: int = 0, limit: int = 500) -> dict[str, Any]:
        """Return a page of the nodes directly below a group.

        ``next`` is the offset of the next page; None: this is the last. Not every listed name is a node, so a page can
        have fewer nodes than its limit.
        """
        group = self.node(path)
        if not isinstance(group, Group):
            return {"path": path, "kind": "array", "total": 0, "nodes": [], "next": None, "note": None}
        page = self._page(group, offset, limit)
        return page | {"nodes": [self.entry(node) for _, node in page["nodes"] if node is not None]}

    def members(self, path: str = "", offset: int = 0, limit: int = 100) -> dict[str, Any]:
        """Return a page of the nodes directly below a group, with what a table of them shows.

        Like `tree`, but each listed name has its place: one that is not a node has the kind ``"nothing"``.
        """
        group = self.node(path)
        if not isinstance(group, Group):
            raise SelectionError("an array has no members", path=path)
        page = self._page(group, offset, limit)
        nodes = []
        for name, node in page["nodes"]:
            if node is None:
                nodes.append({"path": f"{page['path']}/{name}".lstrip("/"), "name": name, "kind": "nothing"})
                continue
            if not isinstance(node, UnreadableNode):
                self._remember(self.path_of(node.path), node)
            nodes.append(self.entry(node) | self._row(node))
        return page | {"nodes": nodes}

    def _page(self, group: Group, offset: int, limit: int) -> dict[str, Any]:
        """Return a page of members as the page asks for it, with names and nodes as ``nodes``."""
        if offset < 0 or not 0 < limit <= MOST_NODES:
            raise SelectionError("no page", found=f"{limit} from {offset}", expected=f"1 to {MOST_NODES} from 0 on")
        note = reaching.remark(group) or None
        total, nodes = 0, []
        try:
            listing = self._members.of(group)
        except NOT_LISTED as error:
            note = words(error) if note is None else note
        else:
            total, nodes = len(listing.names), list(listing.page(offset, limit))
        following = offset + limit
        return {
            "path": self.path_of(group.path),
            "kind": "group",
            "total": total,
            "nodes": nodes,
            "next": following if following < total else None,
            "note": note,
        }

    def _row(self, node: Array | Group | UnreadableNode) -> dict[str, Any]:
        """Return what a table of members shows of a node besides its entry."""
        if isinstance(node, UnreadableNode):
            return {}
        attributes = model_of(node).attributes
        row: dict[str, Any] = {"title": presentation.title_of(attributes)}
        if not isinstance(node, Array):
            return row | {"is_picture": presentation.image_of(node.path, _Looked(self).nodes()) is not None}
        metadata = array_model_of(node)
        facts = info.of_array(node.store_path, metadata)
        names = node.dimension_names
        return row | {
            "dimensions": None if names is None else list(names),
            "units": presentation.units_of(attributes),
            "size": facts.bytes_logical,
            "is_picture": bool(node.ndim) and 0 not in node.shape and shown_as(node) != "table",
        }

    def small(self, path: str = "") -> small.Small | None:
        """Return a small picture of a node; None if it has none."""
        return small.picture_of(self.node(path))

    def entry(self, node: Array | Group | UnreadableNode) -> dict[str, Any]:
        """Return a node in a line."""
        path = self.path_of(node.path)
        entry: dict[str, Any] = {"path": path, "name": node.basename if path else self.name, "kind": _kind(node)}
        if isinstance(node, Array):
            metadata = array_model_of(node)
            entry |= {"shape": list(metadata.shape), "dtype": info.type_name(metadata)}
        elif isinstance(node, UnreadableNode):
            entry["error"] = str(node.error)
        return entry

    def search(self, text: str, limit: int = 200, stop: Stop = never) -> dict[str, Any]:
        """Return nodes whose path contains a text, whatever its case, in the order of the hierarchy.

        Returns
        -------
        dict
            ``more``: there may be others.
        """
        if not isinstance(self.root, Group):
            return {"nodes": [], "more": False}
        with self._guard:
            if self._index is None or self._index.is_old:
                self._index = Index(self.root, self.entry)
            index = self._index
        nodes, more = index.find(text.casefold(), min(max(limit, 1), MOST_NODES), stop)
        return {"nodes": nodes, "more": more}

    # -- facts ----------------------------------------------------------------------------

    def info(self, path: str = "") -> dict[str, Any]:
        """Describe a node: its facts, attributes, codecs, documents, storage, and how to draw it."""
        path = normalize(path)
        try:
            node: Array | Group | UnreadableNode = self.node(path)
        except (NodeNotFoundError, StoreError):
            raise
        except OmnizarrError as error:
            where = self.root.store_path
            node = UnreadableNode(where.at(f"{where.prefix}{path}"), error)
        if isinstance(node, Array):
            return self._array_info(path, node)
        return self._group_info(path, node) if isinstance(node, Group) else self._unreadable_info(path, node)

    def _array_info(self, path: str, array: Array) -> dict[str, Any]:
        said = meaning.of(array.path, self.setting(path).around.nodes())
        facts = replace(_facts_of(array), meaning=said)
        return {
            "path": path,
            "kind": "array",
            "format": format_of(array, facts.dialect),
            "facts": _titled(info_rows.rows(facts, json_text)),
            "attributes": plain(facts.attributes),
            "codecs": [
                {"name": codec.name, "configuration": plain(codec.configuration), "text": registry.words(codec)}
                for codec in facts.chain
            ],
            "documents": documents_of(array),
            "storage": {
                "stored": facts.bytes_stored,
                "size": facts.bytes_logical,
                "chunks": facts.expected,
                "chunks_stored": facts.stored,
            },
            "notes": [note.message for note in facts.notes],
            "error": facts.problem,
            "draw": path,
            "array": self._drawing(path, array, facts),
        }

    def _drawing(self, path: str, array: Array, facts: ArrayFacts) -> dict[str, Any]:
        setting = self.setting(path)
        image = setting.image
        view, colours = presentation.picture(setting.dimensions, is_bytes=facts.data_type == "uint8")
        attributes = facts.attributes
        return {
            "shape": list(facts.shape),
            "dtype": drawn_type(array, facts.data_type),
            "type": facts.data_type,
            "chunks": list(facts.chunks or facts.shape),
            "shards": None if facts.shards is None else list(facts.shards),
            "fill": plain(facts.fill_value) if facts.has_fill_value else None,
            "show": shown_as(array),
            "units": presentation.units_of(attributes),
            "title": presentation.title_of(attributes),
            **packing_facts(setting.packing),
            **marks_of_optional(array),
            "flags": [plain(flag._asdict()) for flag in display.flags(attributes)],
            "dimensions": [plain(asdict(dimension)) for dimension in setting.dimensions],
            "auxiliaries": list(self._auxiliaries(setting)),
            "levels": [] if image is None else list(self._levels(image, setting)),
            "channels": [] if image is None else [channel._asdict() for channel in image.channels],
            "view": list(view),
            "colours": colours,
            "place": plain(self._place(setting)),
            "labels": [] if image is None else list(self._label_images(image, setting)),
        }

    def _label_images(self, image: presentation.Image, setting: Setting) -> Iterator[dict[str, Any]]:
        """Yield the label images of an image that can be drawn over it, seen from its full resolution.

        Each has its ``name``; the ``path``, ``dtype`` and ``shape`` of its full resolution; ``dimensions``: for each of
        its dimensions, that of the image; ``levels``; and ``colours`` by label, in hexadecimal digits.
        """
        nodes = setting.around.nodes()
        above = f"{image.level.group}/labels".lstrip("/")
        listed = reading.members(above, nodes).get("labels") if image.level.number == 0 and above in nodes else None
        names = [each.name for each in setting.dimensions]
        for name in list(listed)[:_MOST_LABELS] if is_list(listed) else ():
            found = presentation.image_of(reading.resolve(above, str(name)), nodes)
            arrays = [] if found is None else [setting.around.array(at) for at in found.paths()]
            levels = [array for array in arrays if array is not None]
            if found is None or not levels or levels[0].dtype.kind not in "iu":
                continue
            own = presentation.names_of(array_model_of(levels[0]), found)
            if not all(each in names for each in own) or len(set(own)) != len(own):
                continue
            yield {
                "name": str(name),
                "path": self.path_of(levels[0].path),
                "dtype": info.type_name(array_model_of(levels[0])),
                "shape": list(levels[0].shape),
                "dimensions": [names.index(each) for each in own],
                "levels": [{"path": self.path_of(each.path), "shape": list(each.shape)} for each in levels],
                "colours": display.label_colours(reading.members(found.level.group, nodes)),
            }

    def _place(self, setting: Setting) -> dict[str, Any] | None:
        """Return where an array lies: its ``crs`` in words, and its ``bounds``; None if nothing says it."""
        place = setting.place
        if place is None:
            return None
        bounds = None if place.placement is None else place.placement.bounds
        return {
            "crs": None if place.crs is None else place.crs.label,
            "bounds": None if bounds is None else list(bounds),
        }

    def _auxiliaries(self, setting: Setting) -> Iterator[dict[str, Any]]:
        """Yield the coordinates along several dimensions that the page can ask for by their path."""
        if setting.array.path.startswith(self.root.store_path.prefix) and isinstance(self.root, Group):
            for each in setting.auxiliaries:
                yield plain(each._asdict() | {"path": self.path_of(each.path)})

    def _levels(self, image: presentation.Image, setting: Setting) -> Iterator[dict[str, Any]]:
        """Yield path and shape of the levels of an image that exist."""
        for path in image.paths():
            array = setting.around.array(path)
            if array is not None:
                yield {"path": self.path_of(path), "shape": list(array.shape)}

    def _group_info(self, path: str, group: Group) -> dict[str, Any]:
        metadata = model_of(group)
        around = _Looked(self)
        image = presentation.image_of(group.path, around.nodes())
        finest = None if image is None else next((at for at in image.paths() if around.array(at) is not None), None)
        is_implicit = not isinstance(metadata, ArrayMetadata) and metadata.implicit
        rows = [["Kind", "group without a document of its own" if is_implicit else "group"]]
        rows.append(["Consolidated", _consolidated(group)])
        if note := reaching.remark(group):
            rows.append(["Note", note])
        rows += _titled(meaning.rows(meaning.of(group.path, around.nodes())))
        return {
            "path": path,
            "kind": "group",
            "format": format_of(group, metadata.dialect),
            "facts": rows,
            "attributes": plain(metadata.attributes),
            "codecs": [],
            "documents": documents_of(group),
            "storage": None,
            "notes": [note.message for note in metadata.notes],
            "error": None,
            "draw": None if finest is None else self.path_of(finest),
            "array": None,
            "plate": self._plate(group.path, around.nodes()),
        }

    def _plate(self, path: str, nodes: Nodes) -> dict[str, Any] | None:
        """Return rows, columns and wells of a plate of OME-Zarr; None if the group is none."""
        found = summary.plate(path, nodes)
        if found is None:
            return None
        return found | {"wells": [well | {"path": self.path_of(well["path"])} for well in found["wells"]]}

    def _unreadable_info(self, path: str, node: UnreadableNode) -> dict[str, Any]:
        return {
            "path": path,
            "kind": "unreadable",
            "format": "",
            "facts": [["Kind", "unreadable"]],
            "attributes": {},
            "codecs": [],
            "documents": documents_of(node),
            "storage": None,
            "notes": [],
            "error": str(node.error),
            "draw": None,
            "array": None,
        }

    # -- elements -------------------------------------------------------------------------

    def labels(
        self, path: str, dimension: int, start: int = 0, stop: int | None = None, step: int = 1
    ) -> dict[str, Any]:
        """Return the labels along a dimension: numbers, or text; of times in ISO 8601.

        Times in another calendar than ours come with the numbers that are stored, as ``numbers``.
        Where nothing names them they are the places of the samples, of OME-Zarr in its units, else counted from 0.
        """
        path = normalize(path)
        array = self.array(path)
        if not 0 <= dimension < array.ndim:
            raise SelectionError("no such dimension", path=path, found=dimension, expected=f"0 to {array.ndim - 1}")
        places = range_of(start, array.shape[dimension] if stop is None else stop, step, array.shape[dimension])
        if len(places) > MOST_VALUES:
            raise SelectionError("too many labels at once", found=len(places), expected=f"{MOST_VALUES} at most")
        setting = self.setting(path)
        found, beside = setting.dimensions[dimension], setting.read(dimension, as_selector(places))
        if beside is not None:
            attributes, values = beside
            if values.dtype.kind in "mM":
                return {"labels": texts(values), "units": None}
            if values.dtype.kind not in "iuf":
                return {"labels": texts(values), "units": found.units}
            label = _label_of(attributes)
            if label is None:
                return {"labels": numbers(values), "units": found.units}
            labels = [label(float(value)) for value in values]
            # The page reckons with the days of its own calendar alone.
            calendar = str(attributes.get("calendar") or "standard").lower()
            is_ours = calendar in ("standard", "gregorian", "proleptic_gregorian")
            return {"labels": labels, "units": None} | ({} if is_ours else {"numbers": numbers(values)})
        if found.step is None:
            return {"labels": list(places), "units": None}
        return {"labels": [found.origin + found.step * place for place in places], "units": found.units}

    def line(
        self,
        path: str,
        dimension: int,
        at: Sequence[int],
        start: int = 0,
        stop: int | None = None,
        *,
        step: int | None = None,
        part: str = "magnitude",
        fill_is_missing: bool = False,
        gone: Stop = never,
    ) -> dict[str, Any]:
        """Return the elements along a dimension, unpacked: the smallest and largest of each bin of a long line.

        Parameters
        ----------
        path : str
        dimension : int
        at : sequence of int
            Index for each dimension; that of `dimension` is not used.
        start, stop : int
            Of the line; to its end by default.
        step : int, optional
            Elements of a bin; as few as there may be by default, for at most 4096 bins.
        part : {"magnitude", "phase", "real", "imaginary"}
            Of complex numbers.
        fill_is_missing : bool
            Whether the fill value of the array means that an element is missing.
        gone : callable, optional
            Asked repeatedly whether to stop.

        Returns
        -------
        dict
            ``step``, the elements of a bin; ``low`` and ``high``, the smallest and largest of each (None: no number);
            ``share``, the part of each bin that was read; ``error``, why chunks could not be read.

        Raises
        ------
        SelectionError
            If it does not fit the array, or elements are no numbers.
        StoppedError
            If it was to be stopped.
        """
        array = self.array(path)
        if shown_as(array) == "table":
            raise SelectionError("a line consists of numbers", path=path, found=str(array.dtype))
        if not 0 <= dimension < array.ndim or not isinstance(at, list | tuple):
            expected = f"0 to {array.ndim - 1}, and a list of indices"
            raise SelectionError("no such line", path=path, found=(dimension, at), expected=expected)
        wanted = [
            [start, array.shape[dimension] if stop is None else stop] if k == dimension else index
            for k, index in enumerate(at)
        ]
        ranges, _ = selection_of(wanted, array.shape)
        answer: dict[str, Any] = {"step": 1, "low": [], "high": [], "share": 1.0, "error": None}
        if not ranges[dimension]:
            return answer
        length = len(ranges[dimension])
        width = -(-length // MOST_BINS) if step is None else step
        if width < 1 or length > width * MOST_BINS:
            raise SelectionError("too many bins", path=path, found=step, expected=f"{-(-length // MOST_BINS)} or more")
        packing = self.setting(normalize(path)).packing
        if fill_is_missing and array.fill_value is not None and array.dtype.kind in "iuf":
            packing = packing.also_missing(array.fill_value)

        def decode(stored: NDArray[Any]) -> extremes.Decoded:
            is_masked = stored.dtype.names is not None
            values, hidden = (floats_of(stored), None) if is_masked else packing.decoded(stored)
            chosen = _PARTS[part](values) if values.dtype.kind == "c" and part in _PARTS else values
            found = numbers_of(chosen, hidden).values
            return extremes.Decoded(found, found)

        def end_if_gone() -> None:
            if gone():
                raise StoppedError

        selection = [places if k == dimension else places[0] for k, places in enumerate(ranges)]
        keywords: dict[str, Any] = {"fields": list(array.dtype.names or ())} if is_optional(array.dtype) else {}
        found = extremes.read(
            array, selection, dimension, width, decode, between=end_if_gone, skips_broken=True, **keywords
        )
        low, high = (np.where(found.is_empty, np.nan, each) for each in (found.low, found.high))
        error = None if found.error is None else words(found.error)
        return {"step": found.width, "low": numbers(low), "high": numbers(high), "share": found.share, "error": error}

    def values(self, path: str, select: Sequence[Any]) -> dict[str, Any]:
        """Return elements as text: unpacked, ``"missing"`` where they are missing or not valid; of records each field.

        Parameters
        ----------
        path : str
        select : sequence
            For each dimension an integer, or ``[start, stop, step]``.

        Raises
        ------
        SelectionError
            If it does not fit the array, or selects too many elements.
        """
        array = self.array(path)
        ranges, shape = selection_of(select, array.shape)
        count = math.prod(map(len, ranges))
        if count > MOST_VALUES:
            raise SelectionError("too many elements at once", found=count, expected=f"{MOST_VALUES} at most")
        is_masked = is_optional(array.dtype)
        fields = None if array.dtype.names is None or is_masked else list(array.dtype.names)
        if not count:
            return {"shape": shape, "fields": fields, "values": np.empty(shape, np.bool_).tolist()}
        chosen = tuple(slice(places[0], places[-1] + 1, places.step) for places in ranges)
        if is_masked:
            records = array.get_basic_selection(chosen or ..., fields=list(array.dtype.names or ()))
            return {"shape": shape, "fields": None, "values": optional_texts(np.asarray(records).reshape(shape))}
        stored = np.asarray(array.get_basic_selection(chosen or ..., fields=fields)).reshape(shape)
        packing = self.setting(normalize(path)).packing
        return {"shape": shape, "fields": fields, "values": unpacked_texts(packing, stored)}

    # -- chunks ---------------------------------------------------------------------------

    def chunks(self, path: str, stop: Stop = never) -> dict[str, Any]:
        """Return which chunks (shards) of an array are stored, and how large they are.

        The grid is never walked: memory and time grow with the number of stored chunks, and end at `MOST_CHUNKS`.
        """
        array = self.array(path)
        where, metadata = array.store_path, array_model_of(array)
        facts = info.of_array(where, metadata)
        grid = grids.bind(metadata.chunk_grid, metadata.shape)
        note: str | None = None
        found: Iterator[tuple[tuple[int, ...], int | None]] = iter(())
        truncated = False
        if where.store.supports_listing:
            found = holdings.chunk_sizes(where, metadata)
        elif grid.nchunks <= _MOST_ASKED:
            # Coordinates and size of the chunks that a store has which cannot list them.
            binding = bindings.bind(array.store_path, array_model_of(array), array.config.policy)

            def look(coords: tuple[int, ...]) -> tuple[tuple[int, ...], int] | None:
                size = binding.store.size(binding.prefix + binding.keys.encode(coords))
                return None if size is None else (coords, size)

            found = filter(None, pool.results(look, grid.coords(), max(array.store.features.concurrency, 1)))
        else:
            note, truncated = "the server cannot list what is stored", True
        sizes: dict[str, int | None] = {}
        for coords, size in found:
            if len(sizes) >= MOST_CHUNKS or stop():
                truncated = True
                break
            sizes[",".join(map(str, coords))] = size
        return {
            "grid": list(grid.grid_shape),
            "chunk_shape": None if grid.chunk_shape is None else list(grid.chunk_shape),
            "shards": facts.shards is not None,
            "sizes": sizes,
            "size_full": None if grid.chunk_shape is None else facts.nbytes_of(grid.chunk_shape),
            "truncated": truncated,
            "note": note,
        }

    def stored(self, path: str, stop: Stop = never) -> StoredChunks | None:
        """Return the shape of the chunks (shards) of an array, and the coordinates of those that are stored.

        None if they differ in shape, or not all are known. It is remembered for half a minute.
        """
        known = self._stored.get(path)
        if known is not None and time.monotonic() - known[0] < _STORED:
            return known[1]
        began = time.monotonic()
        map_ = self.chunks(path, stop)
        found: StoredChunks | None = None
        if not map_["truncated"] and map_["chunk_shape"] is not None:
            coords = frozenset(tuple(map(int, key.split(","))) if key else () for key in map_["sizes"])
            found = tuple(map_["chunk_shape"]), coords
        if not stop():
            if len(self._stored) >= _MOST_STORED:
                self._stored.clear()
            self._stored[path] = began, found
        return found

    def nearest(self, path: str, at: Sequence[Any], drawn: Sequence[Any], stop: Stop = never) -> dict[str, Any]:
        """Return where the stored chunk (shard) is that is nearest to an element: in its plane, if there is one.

        Parameters
        ----------
        path : str
        at : sequence of int
            The element.
        drawn : sequence of int
            The dimensions of the plane.

        Returns
        -------
        dict
            ``known``: how many chunks are known to be stored; None: that cannot be told. ``in_plane``; ``start`` and
            ``stop`` of the chunk along each dimension.
        """
        array = self.array(path)
        expected = f"{array.ndim} integers inside {array.shape}, and dimensions"
        is_inside = (
            isinstance(at, list)
            and len(at) == array.ndim
            and all(is_integer(n) and 0 <= n < size for n, size in zip(at, array.shape, strict=True))
        )
        if not is_inside or not all(is_integer(k) and 0 <= k < array.ndim for k in drawn):
            raise SelectionError("an element that does not fit", found=json_text(at), expected=expected)
        nowhere: dict[str, Any] = {"known": None, "in_plane": False, "start": [], "stop": []}
        found = self.stored(path, stop)
        if found is None:
            return nowhere
        shape, coords = found
        if not coords:
            return nowhere | {"known": 0}
        chunks = np.array(list(coords), np.float64).reshape(len(coords), array.ndim)
        apart = np.abs(chunks - [index // side for index, side in zip(at, shape, strict=True)])
        free = [k for k in range(array.ndim) if k not in drawn]
        # Outside of the plane first: lexsort takes the last key as the first one.
        order = np.lexsort((np.hypot.reduce(apart[:, list(drawn)], axis=1), apart[:, free].sum(axis=1)))
        best = [int(n) for n in chunks[order[0]]]
        return {
            "known": len(coords),
            "in_plane": not apart[order[0], free].any(),
            "start": [n * side for n, side in zip(best, shape, strict=True)],
            "stop": [min((n + 1) * side, size) for n, side, size in zip(best, shape, array.shape, strict=True)],
        }

    def check(self, path: str = "", *, data: bool = False, stop: Stop = never) -> dict[str, Any]:
        """Return the findings of `omnizarr.check` at a node and below it; `data` decodes all chunks.

        Raises
        ------
        StoppedError
            If `stop` returns True while chunks are checked.
        """
        where = self.root.store_path
        where = where.at(f"{where.prefix}{normalize(path)}".rstrip("/"))

        def tick(_: int) -> None:
            if stop():
                raise StoppedError

        report = check(where, data=data, progress=tick)
        findings = report.findings[:MOST_FINDINGS]
        decoders: dict[str, Callable[[str], tuple[int, ...] | None] | None] = {}
        found = []
        for finding in findings:
            at = self.path_of(finding.path)
            if at not in decoders:
                # None for a node without chunks.
                try:
                    node = self.node(at)
                    decoders[at] = (
                        holdings.key_decoder(node.store_path, array_model_of(node)) if isinstance(node, Array) else None
                    )
                except OmnizarrError:
                    decoders[at] = None
            decode = decoders[at]
            coords = None if finding.key is None or decode is None else decode(finding.key)
            found.append(
                {
                    "code": finding.code,
                    "severity": finding.severity,
                    "path": at,
                    "key": finding.key,
                    "message": finding.text,
                    "coords": None if coords is None else list(coords),
                }
            )
        return {"findings": found, "complete": len(findings) == len(report.findings)}


_PARTS: Final[Mapping[str, Callable[[NDArray[Any]], NDArray[Any]]]] = {
    "magnitude": np.abs,
    "phase": np.angle,
    "real": np.real,
    "imaginary": np.imag,
}


class _Looked(Mapping[str, Metadata]):
    """The metadata of nodes by their paths in the store, each opened when it is asked for; none is listed."""

    def __init__(self, dataset: Dataset) -> None:
        self._dataset = dataset

    def nodes(self) -> Nodes:
        return Nodes(self)

    def array(self, path: str) -> Array | None:
        node = self._node(path)
        return node if isinstance(node, Array) else None

    def _node(self, path: str) -> Array | Group | None:
        root = self._dataset.root
        if path != root.path and not path.startswith(root.store_path.prefix):
            return None
        try:
            return self._dataset.node(self._dataset.path_of(path))
        except (OmnizarrError, NotImplementedError):
            return None

    def __getitem__(self, path: str) -> Metadata:
        node = self._node(path)
        if node is None:
            raise KeyError(path)
        return model_of(node)

    def __iter__(self) -> Iterator[str]:
        return iter(())

    def __len__(self) -> int:
        return 0


# -- nodes --------------------------------------------------------------------------------


def _titled(rows: Iterable[tuple[str, str]]) -> list[list[str]]:
    return [[name[0].upper() + name[1:], value] for name, value in rows]


def _kind(node: Array | Group | UnreadableNode) -> str:
    return "array" if isinstance(node, Array) else "group" if isinstance(node, Group) else "unreadable"


def _consolidated(group: Group) -> str:
    """Return whether a group has consolidated metadata, and where its members come from, in words."""
    if reaching.source_of(group) == "consolidated":
        return "yes"
    try:
        held = consolidated.held_at(group.store_path, None, prefer=model_of(group).dialect)
    except OmnizarrError as error:
        return f"broken: {error.args[0]}"
    return "no" if held is None else "yes; members are read from their own documents"


class _TooManyError(Exception):
    """More keys than are counted."""


def _facts_of(array: Array) -> ArrayFacts:
    """Return the facts of an array. Stored chunks are counted if that is quick."""
    most = _MOST_COUNTED_FAR if array.store.features.concurrency > 1 else _MOST_COUNTED
    counted = 0

    def tick(more: int) -> None:
        nonlocal counted
        counted += more
        if counted > most:
            raise _TooManyError

    try:
        return describe.describe_array(array, tick)
    except (_TooManyError, StoreError):
        return describe.describe_array(array, survey=Survey())


def _label_of(attributes: Mapping[str, Any]) -> Callable[[float], str | None] | None:
    """Return how a number that means a time is written, in ISO 8601; None if numbers mean no times.

    Times too far away are numbers. Of units that only netcdf-c knows, such as months, dates are as ``ncdump -t`` has
    them.
    """
    times = calendars.Times.of(attributes)
    said = {name: attributes.get(name) for name in ("units", "calendar")}
    others = Times.of({name: Attribute.of(value) for name, value in said.items() if isinstance(value, str)}, "T")
    if times is None and others is None:
        return None

    def label(value: float) -> str | None:
        if not np.isfinite(value):
            return None
        if times is not None:
            text = None if times.moment(value) is None else times.text(value)
        else:
            text = None if others is None else others.text(value)
        if text is None:
            return str(value)
        date, _, clock = text.partition("T")
        return f"{date}T{clock}:00" if clock and ":" not in clock else text

    return label
