"""Check keys: find the stored chunks, and keys that belong to neither a chunk nor a document.

Spec: Zarr v3 core, "Chunk key encodings", "Storage"; Zarr v2, "Chunks".
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Final, NamedTuple, cast

from omnizarr.engine import Binding
from omnizarr.formats.keyspaces import Split
from omnizarr.formats.paths import Above, prefix
from omnizarr.model import UNDEFINED, ArrayMetadata, Named
from omnizarr.model import keys as chunk_keys
from omnizarr.model.key_forms import KeyEncoding
from omnizarr.nodes import erasing, holdings, wording
from omnizarr.nodes.location import StorePath, chunk_prefix
from omnizarr.stores import LocalStore
from omnizarr.stores.base import RESERVED
from omnizarr.stores.local import filelocks
from omnizarr.tools import strangers
from omnizarr.tools.check.bindings import Bindings
from omnizarr.tools.check.inventory import Inventory, Node, sizes_below
from omnizarr.tools.check.report import Findings
from omnizarr.tools.convert.journal import KEY as JOURNAL

_COMPANIONS = frozenset(
    {
        *erasing.NCZARR,
        # documents of formats that were not asked for
        *(".zarray", ".zgroup", ".zattrs", ".zmetadata", "zarr.json", "__zmeta__", "__zattr__"),
    }
)
_ENCODINGS: Final = (
    *(Named("default", {"separator": separator}) for separator in "/."),
    *(Named("v2", {"separator": separator}) for separator in "/."),
    *(Named("omnizarr.draft2020", {"separator": separator}) for separator in "/."),
    Named("omnizarr.v0"),
)


@dataclass(slots=True)
class Owner:
    """An array, as the keys below it meet it."""

    node: Node
    bindings: Bindings
    stored: int = 0

    @property
    def metadata(self) -> ArrayMetadata:
        """What its documents say, without attributes."""
        return cast("ArrayMetadata", self.node.metadata)

    @property
    def binding(self) -> Binding | None:
        """What reading its chunks needs; None: their keys are unknown."""
        return self.bindings.of(self.node)


class Chunk(NamedTuple):
    """A stored chunk."""

    owner: Owner
    binding: Binding
    key: str
    coords: tuple[int, ...]
    size: int | None
    """Size of its value in bytes, if the listing has it."""


class Keys:
    """All keys below a place, by kind.

    Parameters
    ----------
    findings : Findings
    where : StorePath
    inventory : Inventory
    bindings : Bindings
    others : iterable of str
        Keys that no listing has.
    is_complete : bool
        Whether chunks that are not found do not exist.
    """

    def __init__(
        self,
        findings: Findings,
        where: StorePath,
        inventory: Inventory,
        bindings: Bindings,
        others: Iterable[str] = (),
        *,
        is_complete: bool = True,
    ) -> None:
        self._others = others
        self._is_complete = is_complete
        self.findings = findings
        self.where = where
        self.inventory = inventory
        self.owners: dict[str, list[Owner]] = {}
        self._encodings = [chunk_keys.bind(named) for named in _ENCODINGS]
        self._orphans: dict[str, tuple[str, int]] = {}
        self._last: tuple[str, Sequence[Owner], str] = ("\0", (), "")
        # Keys below a document that cannot be interpreted may belong to it.
        silent = {path for path, _, problems in inventory.entries if problems}
        for node in inventory:
            if node.metadata is None:
                silent.add(node.dialect.keyspace.chunk_prefix(node.path)[:-1])
            if isinstance(node.metadata, ArrayMetadata):
                begin = chunk_prefix(node.where, node.metadata)[:-1]
                # equal texts are the same object, as there may be many
                place = node.path if begin == node.path else begin
                self.owners.setdefault(place, []).append(Owner(node, bindings))
        # Directories of nodes have no chunks of their own, but strays.
        self._arrays = {
            owner.node.path: owners
            for owners in self.owners.values()
            for owner in owners
            if owner.node.path not in self.owners
        }
        self._silent = Above(silent)
        self._nodes = Above(inventory.nodes)
        self._with_owners = Above({*self.owners, *self._arrays} if self._arrays else self.owners)

    def chunks(self, *, with_sizes: bool) -> Iterator[Chunk]:
        """Yield the stored chunks, and report other keys."""
        for key, size in self._listed(with_sizes=with_sizes):
            if self.inventory.knows(key):
                continue
            chunk = self._tell(key, size)
            if chunk is not None:
                yield chunk
        yield from self._transformed_chunks()
        for place, (key, count) in self._orphans.items():
            message = f"{wording.plural(count, 'chunk')}, but no document of an array"
            self.findings.add("orphan-chunks", place, message, key=key)
        if self._is_complete:
            self._count_missing()

    def _listed(self, *, with_sizes: bool) -> Iterator[tuple[str, int | None]]:
        """Yield every key, with the size of its value if that is wanted and a listing is the cheapest way."""
        listed = set[str]()
        if with_sizes and self.where.store.features.concurrency > 1 and self.where.store.features.listing == "complete":
            yield from sizes_below(self.where)
            return
        for key in holdings.listed(self.where):
            if self._others:
                listed.add(key)
            yield key, None
        yield from ((key, None) for key in self._others if key not in listed)

    def _transformed_chunks(self) -> Iterator[Chunk]:
        """Yield the chunks of arrays whose storage transformers decide which keys they have below."""
        for place, owners in self.owners.items():
            for owner in owners:
                if not owner.metadata.storage_transformers or owner.binding is None:
                    continue
                begin = prefix(place)
                grid = owner.binding.grid.grid_shape
                for key in owner.binding.store.list_prefix(begin):
                    coords = owner.binding.keys.decode(key[len(begin) :], len(grid))
                    if coords is not None and all(n < length for n, length in zip(coords, grid, strict=True)):
                        owner.stored += 1
                        yield Chunk(owner, owner.binding, key, coords, None)

    def _tell(self, key: str, size: int | None) -> Chunk | None:
        """Return the chunk of a key. If the key is not a chunk's, report it."""
        owners, begin = self._owners_of(key)
        rest = key[len(begin) :]
        for owner in owners:
            if owner.binding is None:
                break
            if owner.metadata.storage_transformers:
                return None
            coords = owner.binding.keys.decode(rest, len(owner.metadata.shape))
            if coords is None:
                continue
            grid = owner.binding.grid.grid_shape
            if all(number < length for number, length in zip(coords, grid, strict=True)):
                owner.stored += 1
                return Chunk(owner, owner.binding, key, coords, size)
            self.findings.add(
                "chunk-beyond-grid",
                owner.node.path,
                "a chunk beyond the shape of the array",
                key=key,
                found=f"chunk {coords}",
                expected=f"a grid of {wording.lengths(grid)} chunks",
            )
            return None
        self._explain(key, rest, owners)
        return None

    def _owners_of(self, key: str) -> tuple[Sequence[Owner], str]:
        """Return the arrays that have the longest prefix which a key begins with, and that prefix."""
        folder = key[: key.rfind("/") + 1]
        if self._last[0] == folder:
            return self._last[1], self._last[2]
        place = next(self._with_owners.of(folder), "")
        owners: Sequence[Owner] = self.owners.get(place) or self._arrays.get(place) or ()
        begin = prefix(place)
        self._last = (folder, owners, begin)
        return owners, begin

    def _explain(self, key: str, rest: str, owners: Sequence[Owner]) -> None:
        name = key.rpartition("/")[2]
        path = owners[0].node.path if owners else self._node_above(key)
        if strangers.SYSTEM.fullmatch(name):
            self.findings.add("system-file", path, "a file of an operating system", key=key)
        elif strangers.TEMPORARY.fullmatch(name):
            self.findings.add("temporary-file", path, "what a writer has left behind", key=key)
        elif strangers.LOCK.fullmatch(name):
            self.findings.add("lock-file", path, "a lock that was left", key=key)
        elif name in _COMPANIONS:
            return
        elif owners:
            self._explain_in_array(key, rest, owners)
        elif next(self._silent.of(key), None) is None:
            self._explain_alone(key, path)

    def _explain_in_array(self, key: str, rest: str, owners: Sequence[Owner]) -> None:
        owner = owners[0]
        ndim = len(owner.metadata.shape)
        binding = owner.binding
        if binding is None or self._is_of_conversion(key, owner.node.path):
            return
        expected = binding.keys.encode((0,) * ndim)
        for encoding in self._encodings:
            if encoding.decode(rest, ndim) is not None or (not ndim and rest in {"c", "0", "c0"}):
                message = "a chunk under a key of another encoding"
                self.findings.add("foreign-chunk-key", owner.node.path, message, key=key, found=rest,
                                  expected=f"keys like {expected!r}")  # fmt: skip
                return
        coords = _canonical(binding.keys, rest, ndim)
        if coords is not None:
            self.findings.add("misspelt-chunk-key", owner.node.path, "a chunk under a key that is misspelt", key=key,
                              found=rest, expected=repr(binding.keys.encode(coords)))  # fmt: skip
        elif ndim and strangers.above_numbers(rest) is not None:
            message = f"a chunk of another number of dimensions than {ndim}"
            self.findings.add("foreign-chunk-key", owner.node.path, message, key=key, found=rest,
                              expected=f"keys like {expected!r}")  # fmt: skip
        else:
            self.findings.add("stray-key", owner.node.path, "neither chunk nor document", key=key)

    def _is_of_conversion(self, key: str, path: str) -> bool:
        """Return whether a key belongs to an unfinished conversion, and report the conversion."""
        if strangers.is_on_its_way(key):
            self.findings.add("temporary-file", path, "elements that a conversion had on their way", key=key)
            return True
        if key.rpartition("/")[2] != JOURNAL:
            return False
        self.findings.add("unfinished-conversion", path, "a conversion began here and has not been completed", key=key)
        return True

    def _explain_alone(self, key: str, path: str) -> None:
        home = next((home for home in self.inventory.homes if key.startswith(prefix(home.root))), None)
        above = strangers.above_numbers(key)
        if self._is_of_conversion(key, path):
            return
        if home is not None and key.startswith(f"{prefix(home.root)}{home.data}/"):
            place = self._place_of_data(home, key)
        elif above is not None and ("/" in key or "." in key or key.isdigit()):
            place = above
        else:
            self.findings.add("foreign-file", path, "no part of the hierarchy", key=key)
            return
        first, count = self._orphans.get(place, (key, 0))
        self._orphans[place] = (min(first, key), count + 1)

    def _place_of_data(self, home: Split, key: str) -> str:
        below = key[len(f"{prefix(home.root)}{home.data}/") :]
        above = strangers.above_numbers(below)
        return prefix(home.root) + (below.rpartition("/")[0] if above is None else above)

    def _node_above(self, key: str) -> str:
        """Return the path of the nearest node above a key; if there is none, the path at which the check began."""
        return next(self._nodes.of(key), self.where.path)

    def _count_missing(self) -> None:
        for owners in self.owners.values():
            for owner in owners:
                missing = self.missing_of(owner)
                if not missing or (owner.stored == 0 and any(other.stored for other in owners)):
                    continue
                total = wording.plural(owner.binding.grid.nchunks if owner.binding else 0, "chunk")
                if owner.metadata.fill_value is UNDEFINED:
                    code, what = "undefined-chunks", "their values are undefined"
                else:
                    code, what = "missing-chunks", "the fill value is in their place"
                message = f"{missing:,} of {total} not stored: {what}"
                self.findings.add(code, owner.node.path, message, key=owner.node.marker.key)

    def check_leftovers(self) -> None:
        """Enter the temporary files and lock files of our own local store, which no listing shows."""
        store = self.where.store
        if not isinstance(store, LocalStore):
            return
        home, path = self.where.home, self.where.path
        tops = [path] if home is None else [home.directory(path), home.chunk_prefix(path)]
        for key, _ in chain.from_iterable(map(store.list_unnamed, tops)):
            if any(name.startswith(RESERVED) for name in key.split("/")):
                self._add_leftover(key, key.rpartition("/")[2])

    def _add_leftover(self, key: str, name: str) -> None:
        owners, _ = self._owners_of(key)
        path = owners[0].node.path if owners else self._node_above(key)
        if name.endswith(filelocks.SUFFIX):
            self.findings.add("lock-file", path, "a lock that omnizarr left", key=key)
        else:
            self.findings.add("temporary-file", path, "what omnizarr was writing when it was stopped", key=key)

    def missing_of(self, owner: Owner) -> int:
        """Return how many chunks of an array are not stored."""
        return 0 if owner.binding is None else max(0, owner.binding.grid.nchunks - owner.stored)

    @property
    def missing(self) -> int | None:
        """How many chunks are not stored in all; None if that is not known."""
        if not self._is_complete:
            return None
        return sum(
            min((self.missing_of(owner) for owner in owners if owner.binding is not None), default=0)
            for owners in self.owners.values()
        )


def _canonical(encoding: KeyEncoding, rest: str, ndim: int) -> tuple[int, ...] | None:
    """Return the coordinates that are meant by a key with superfluous zeros, signs or separators; None for others."""
    if not ndim:
        return None
    body = rest.removeprefix(encoding.encode((0,) * ndim).partition("0")[0])
    numbers = [number for number in re.split(r"[./]", body) if number]
    if len(numbers) != ndim or not all(re.fullmatch(r"\+?[0-9]{1,20}", number) for number in numbers):
        return None
    coords = tuple(map(int, numbers))
    return coords if encoding.encode(coords) != rest else None
