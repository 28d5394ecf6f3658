"""The contract of conventions: ways of writing meaning into a hierarchy that no Zarr specification defines.

A convention is a frozen value of pure functions. They see only metadata in the terms of the model, and do no I/O.
`omnizarr.convert` uses conventions to convert documents between formats, `omnizarr.check` to find violations.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from omnizarr.model import ArrayMetadata, Loss, Metadata, Named


class Nodes(Mapping[str, Metadata]):
    """The nodes of a hierarchy by path, without a leading slash; the root is ``""``.

    `wishes` are the versions of conventions that they shall become, by the names of the conventions. `memos` is for
    what conventions need of many nodes again, by keys of their own.
    """

    __slots__ = ("_arrays", "_nodes", "_told", "memos", "wishes")

    def __init__(
        self,
        nodes: Mapping[str, Metadata],
        wishes: Mapping[str, str] | None = None,
        memos: dict[tuple[str, str], Any] | None = None,
    ) -> None:
        self._nodes = nodes
        self._arrays: dict[str, list[str]] | None = None
        self.wishes: Mapping[str, str] = wishes or {}
        self.memos: dict[tuple[str, str], Any] = {} if memos is None else memos
        self._told: dict[tuple[str, Callable[[ArrayMetadata], bool]], bool] = {}

    def __getitem__(self, path: str) -> Metadata:
        return self._nodes[path]

    def __iter__(self) -> Iterator[str]:
        return iter(self._nodes)

    def __len__(self) -> int:
        return len(self._nodes)

    def all_beside(self, path: str, holds: Callable[[ArrayMetadata], bool]) -> bool:
        """Return whether a predicate holds for all arrays directly below the group that contains the node at a path.

        Each group is checked once for each predicate.
        """
        about = path.rpartition("/")[0], holds
        if about not in self._told:
            self._told[about] = all(map(holds, self._beside(path)))
        return self._told[about]

    def _beside(self, path: str) -> Iterable[ArrayMetadata]:
        return self.arrays_in(path.rpartition("/")[0]).values()

    def arrays_in(self, group: str) -> Mapping[str, ArrayMetadata]:
        """Return the arrays directly below a group, by name; a root that is an array counts as one."""
        if self._arrays is None:
            self._arrays = {}
            for at, node in self._nodes.items():
                if isinstance(node, ArrayMetadata):
                    self._arrays.setdefault(at.rpartition("/")[0], []).append(at)
        return _ArraysIn(group, self._nodes, self._arrays.get(group, ()))


class _ArraysIn(Mapping[str, ArrayMetadata]):
    """The arrays of a group by name, each taken from all nodes when it is asked for."""

    __slots__ = ("_group", "_nodes", "_paths")

    def __init__(self, group: str, nodes: Mapping[str, Metadata], paths: Sequence[str]) -> None:
        self._group = group
        self._nodes = nodes
        self._paths = paths

    def __getitem__(self, name: str) -> ArrayMetadata:
        node = self._nodes.get(f"{self._group}/{name}" if self._group else name)
        if not isinstance(node, ArrayMetadata) or "/" in name:
            raise KeyError(name)
        return node

    def __iter__(self) -> Iterator[str]:
        return (path.rpartition("/")[2] for path in self._paths)

    def __len__(self) -> int:
        return len(self._paths)


class Carried(NamedTuple):
    """A node with its convention converted for another format.

    Attributes
    ----------
    metadata : ArrayMetadata or GroupMetadata
        The metadata, still in the source's dialect. Only parts of the convention differ.
    remarks : tuple of str
        What was converted.
    losses : tuple of Loss
        What readers of the convention will not find any more.
    chunk_key_encoding : Named, optional
        For an array: the keys that readers of the convention expect, if chunks get new keys anyway. None: the
        usual ones.
    is_settled : bool
        Whether later conventions have nothing to convert in the node.
    """

    metadata: Metadata
    remarks: tuple[str, ...] = ()
    losses: tuple[Loss, ...] = ()
    chunk_key_encoding: Named | None = None
    is_settled: bool = False


class Fault(NamedTuple):
    """One violation of a convention in a hierarchy.

    Attributes
    ----------
    code : str
        One of the codes of `omnizarr.check`.
    path : str
        Path of the node.
    pointer : str
        JSON pointer in the node's document in the form of v3 (``"/attributes/multiscales/0/axes"``, ``"/shape"``).
    message : str
        What is wrong, in a few words.
    found, expected : object
        The actual value and the expected one; None if there is nothing to show.
    """

    code: str
    path: str
    pointer: str
    message: str
    found: object = None
    expected: object = None


def no_files(path: str, nodes: Nodes) -> tuple[str, ...]:
    """Return no keys."""
    return ()


@dataclass(frozen=True, slots=True)
class Convention:
    """One convention.

    Attributes
    ----------
    name : str
        The name in reports: ``"xarray"``.
    title : str
        The name in a sentence: ``"xarray/CF"``.
    spec : str
        The specification.
    attributes : frozenset of str
        Names of the attributes that the convention uses. `carry` and `faults` need no others.
    recognise : (path, nodes) -> bool
        Whether the node at a path follows the convention.
    carry : (metadata, path, nodes, dialect) -> Carried
        Converts a node that follows the convention for another format: the dialect of that name. `metadata` is
        the node as converted by the conventions before this one.
    faults : (path, nodes) -> iterator of Fault
        Yields violations in the node at a path, which follows the convention.
    files : (path, nodes) -> tuple of str
        Returns keys below the node at a path at which the convention stores files outside of the Zarr hierarchy.
    versions : tuple of str
        Versions in which a group of Zarr v3 may say the same, oldest first.
    """

    name: str
    title: str
    spec: str
    attributes: frozenset[str]
    recognise: Callable[[str, Nodes], bool]
    carry: Callable[[Metadata, str, Nodes, str], Carried]
    faults: Callable[[str, Nodes], Iterator[Fault]]
    files: Callable[[str, Nodes], tuple[str, ...]] = no_files
    versions: tuple[str, ...] = ()
