"""Making the digests of a hierarchy: of its values and meaning, or of its stored bytes."""

from __future__ import annotations

import hashlib
import json
import math
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path
from typing import Any, Final

import numpy as np

from omnizarr.api.opening import locate
from omnizarr.codecs.contract import AnyArray, Buffer
from omnizarr.engine import budget
from omnizarr.errors import NodeNotFoundError, OmnizarrError
from omnizarr.model import grids
from omnizarr.nodes import detection, holdings
from omnizarr.nodes.copying import pieces, reads_parts, steadily
from omnizarr.nodes.location import StorePath
from omnizarr.stores import LocalStore, Store, pool
from omnizarr.support import amounts
from omnizarr.support.progress import Progress, Tick, Tracker
from omnizarr.tools import strangers
from omnizarr.tools.digest.hash_tree import SIZE, HashTree, block_shape, hashing
from omnizarr.tools.digest.report import Digest, NodeDigest
from omnizarr.tools.digest.serializing import canonical_json, serialized
from omnizarr.tools.streaming.chunks import Chunks, box_of, part_of
from omnizarr.tools.streaming.executors import Executor, Question, executor
from omnizarr.tools.streaming.nodes import Hierarchy, Node, NodesBelow, documents_of, hierarchy, metadata_of
from omnizarr.tools.streaming.regions import Box
from omnizarr.tools.streaming.several import QUIET, worked_on
from omnizarr.tools.streaming.walking import Effort, Elements, Walk, chunks_of, walk

TAG: Final = "omnizarr1"
"""The version of the manual's definition of digests."""
_PIECE: Final = 16 * 2**20
"""Bytes of a stored value that are read at once; a larger one is read in such pieces."""


def run(
    store: Any,
    *,
    path: str | None,
    zarr_format: int | str | None,
    algorithm: str,
    allow_pickle: bool,
    concurrency: int | None,
    scheduler: Any,
    max_memory: int | str | None,
    progress: Progress,
    storage_options: Mapping[str, Any] | None,
) -> Digest:
    """Return the digests of a hierarchy; see `omnizarr.digest`."""
    effort = Effort(amounts.limit(max_memory, "max_memory"), concurrency, allow_pickle)
    hashing(algorithm)
    with ExitStack() as opened:
        found = hierarchy(opened, store, path, zarr_format, storage_options)
        workers = opened.enter_context(executor(scheduler))
        others = strangers.of(found.top.where, metadata_of(found), found.nodes.few).files
        made = of_hierarchy(found, algorithm, effort, workers, progress)
        return replace(made, left_out=tuple(key for key in others if not strangers.is_system(key)))


def of_hierarchy(found: Hierarchy, algorithm: str, effort: Effort, workers: Executor, progress: Progress) -> Digest:
    """Return the digests of all nodes. Raises the error of the first that cannot be read."""
    digests: dict[str, NodeDigest] = {}
    members: dict[str, dict[str, str]] = {}
    sizes = [_nbytes(found.nodes, at, effort) for at in reversed(found.nodes)]  # members before their group
    with Tracker(progress, "digesting", sum(sizes)) as shown:
        next_size = iter(sizes).__next__

        def begin(at: str) -> Tick:
            shown.begin(next_size(), at)
            return shown.tick

        def hashed(at: str, effort: Effort, tick: Tick) -> bytes:
            return values_of(found.nodes[at], algorithm, effort, workers, tick)

        def arrays(at: str) -> list[Chunks]:
            return chunks_in(found.nodes[at])

        store = found.top.where.store
        for at, values in worked_on(reversed(found.nodes), hashed, arrays, effort, workers, store, begin, QUIET):
            node = found.nodes[at]
            digest = of_node(node, members.pop(at, {}), algorithm, values)
            digests[at] = NodeDigest(
                at, "" if node.meaning is None else node.meaning.kind, f"{TAG}:{algorithm}:{digest}"
            )
            above, _, name = at.rpartition("/")
            members.setdefault(above, {})[name] = digest
    return Digest(tuple(digests[at] for at in found.nodes))


def values_of(node: Node, algorithm: str, effort: Effort, workers: Executor, tick: Tick) -> bytes:
    """Return the digest of the elements of a node, none of a group. Raises its error if it cannot be read."""
    if node.meaning is None or node.found is None:
        raise node.error or OmnizarrError("the node cannot be read", path=node.path)
    elements = node.elements(effort)
    if elements is None:
        return b""
    workers.expect(node.found.where.store, documents_of(node.found))
    return of_values(elements, algorithm, workers, tick)


def chunks_in(node: Node) -> list[Chunks]:
    """Return those of an array; none of another node."""
    return [] if node.array is None else [Chunks.of(node.array.where, node.array.metadata)]


def of_node(node: Node, members: Mapping[str, str], algorithm: str, values: bytes) -> str:
    """Return the digest of a node in hexadecimal digits, given those of its members and its elements."""
    if node.meaning is None:
        raise node.error or OmnizarrError("the node cannot be read", path=node.path)
    if node.array is None:
        return summed(algorithm, {"kind": "group", "attributes": node.meaning.attributes, "members": members})
    return summed(
        algorithm,
        {
            "kind": "array",
            "attributes": node.meaning.attributes,
            "shape": node.meaning.shape,
            "data_type": node.meaning.data_type,
            "dimension_names": node.meaning.dimension_names,
            "values": values.hex(),
        },
    )


def summed(algorithm: str, document: Mapping[str, Any]) -> str:
    """Return the digest of a node, given what is to be said of it."""
    return hashing(algorithm)(f"{TAG}\n".encode() + canonical_json(document)).hex()


def _nbytes(nodes: NodesBelow, path: str, effort: Effort) -> int:
    return nodes.elements(path, effort).values_bytes() if nodes.is_array(path) else 0


# Elements


def of_values(elements: Elements, algorithm: str, workers: Executor, tick: Tick) -> bytes:
    """Return the digest of the elements of an array."""
    hashed = hashing(algorithm)
    spec, shape = elements.bind().spec, elements.metadata.shape
    if not math.prod(shape):
        return hashed(b"")
    fill = box_of(spec.fill_value, spec.dtype)
    tree = HashTree(shape, hashed, lambda lengths: hashed(serialized(_full(fill, lengths))))
    sides = block_shape(shape)
    blocks = grids.bind(grids.regular(sides), shape)
    size = elements.chunks.element_bytes()
    laid = walk(blocks, [chunks_of(elements)], size, elements.effort)
    for start, digests in workers.ask(_Hashing(elements, laid, algorithm), laid.holding([elements]), tick):
        tree.add(start, digests)
    return tree.root()


def _full(fill: AnyArray, lengths: tuple[int, ...]) -> AnyArray:
    values = np.empty(lengths, fill.dtype)
    values[...] = fill
    return values


@dataclass(frozen=True)
class _Hashing(Question[int, tuple[tuple[int, ...], AnyArray]]):
    """Read a region, and return the digests of the blocks in it."""

    elements: Elements
    laid: Walk
    algorithm: str

    @property
    def at_once(self) -> int:
        return self.laid.at_once

    def begin(self) -> Callable[[int], tuple[int, tuple[tuple[int, ...], AnyArray]]]:
        hashed, read = hashing(self.algorithm), self.elements.reader(self.at_once)
        regions = self.laid.regions
        sides = block_shape(self.elements.metadata.shape)

        def digests_of(number: int) -> tuple[int, tuple[tuple[int, ...], AnyArray]]:
            box = regions.box(number)
            values = read(box)
            counts = tuple(-(-length // side) for length, side in zip(values.shape, sides, strict=True))
            digests = bytearray()
            for at in product(*map(range, counts)):
                place: Box = tuple(slice(n * side, (n + 1) * side) for n, side in zip(at, sides, strict=True))
                digests += hashed(serialized(part_of(values, place)))
            start = tuple(part.start // side for part, side in zip(box, sides, strict=True))
            return values.nbytes, (start, np.frombuffer(digests, np.uint8).reshape(*counts, SIZE))

        return digests_of


# Stored bytes


def of_bytes(store: Any, path: str | None, concurrency: int | None, storage_options: Any, progress: Progress) -> str:
    """Return DANDI's checksum of everything that is stored below a place.

    Spec: https://github.com/dandi/zarr_checksum
    """
    where, _ = locate(store, path, "r", storage_options if isinstance(store, str) and "://" in store else None)
    with ExitStack() as opened:
        if isinstance(store, (str, os.PathLike)):
            opened.callback(where.store.close)
        return _of_keys(where, concurrency, progress, is_given=not isinstance(store, (str, os.PathLike)))


def _of_keys(where: StorePath, concurrency: int | None, progress: Progress, *, is_given: bool) -> str:
    sizes = dict(holdings.sizes(where))
    if not sizes and _is_missing(where, is_given=is_given):
        raise detection.not_found(where, NodeNotFoundError)
    workers = concurrency or max(pool.default_concurrency(), where.store.features.concurrency)
    largest = max(sizes, key=sizes.__getitem__, default="")
    piece = sizes.get(largest, 0)
    in_pieces = piece > _PIECE and reads_parts(where.store, largest)
    piece = _PIECE if in_pieces else piece
    workers = min(workers, max(1, budget.total() // max(piece, 1)))

    def look(key: str) -> tuple[list[str], str, int]:
        told = 0

        def hashed() -> tuple[str, int]:
            nonlocal told
            found, nbytes = hashlib.md5(usedforsecurity=False), 0
            for data in _read(where.store, key, in_pieces=in_pieces and sizes[key] > _PIECE):
                found.update(data)
                nbytes += len(data)
                if nbytes > told:  # not twice, if the value was replaced and is read again
                    shown.tick(nbytes - told)
                    told = nbytes
            return found.hexdigest(), nbytes

        return (key.removeprefix(where.prefix).split("/"), *steadily(hashed))

    with Tracker(progress, "digesting", sum(sizes.values())) as shown:
        return _of_directory(list(pool.results(look, sizes, workers)))[0]


def _read(store: Store, key: str, *, in_pieces: bool) -> Iterator[Buffer]:
    """Yield a value, whole or in pieces of one version; nothing if it is missing."""
    if in_pieces:
        return pieces(store, key, _PIECE)
    value = store.get(key)
    return iter(() if value is None else (value,))


def _is_missing(where: StorePath, *, is_given: bool) -> bool:
    """Return whether a place without keys does not exist: only directories, and a store that is given, can be empty."""
    if isinstance(where.store, LocalStore):
        return not Path(where.store.root, where.path).is_dir()
    return bool(where.path) or not is_given


def _of_directory(files: Iterable[tuple[list[str], str, int]]) -> tuple[str, int, int]:
    """Return checksum, count and size of files, each with the names that lead to it."""
    own: list[dict[str, Any]] = []
    below: dict[str, list[tuple[list[str], str, int]]] = {}
    for (name, *rest), md5, size in files:
        if rest:
            below.setdefault(name, []).append((rest, md5, size))
        else:
            own.append({"digest": md5, "name": name, "size": size})
    directories = []
    count, total = len(own), sum(each["size"] for each in own)
    for name, members in below.items():
        digest, number, size = _of_directory(members)
        directories.append({"digest": digest, "name": name, "size": size})
        count, total = count + number, total + size
    manifest = {"directories": sorted(directories, key=_by_name), "files": sorted(own, key=_by_name)}
    text = json.dumps(manifest, separators=(",", ":"))
    return f"{hashlib.md5(text.encode(), usedforsecurity=False).hexdigest()}-{count}--{total}", count, total


def _by_name(entry: Mapping[str, Any]) -> str:
    return str(entry["name"])
