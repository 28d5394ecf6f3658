"""What a convention is: a way of writing meaning into a hierarchy that no Zarr specification defines.

A convention is a frozen value of pure functions. They see only metadata in the terms of the model, and do no
I/O. `omnizarr.convert` asks each convention how its documents change between formats, `omnizarr.check` asks what is
wrong with them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from omnizarr.model import ArrayMetadata, Loss, Metadata, Named


class Nodes(Mapping[str, Metadata]):
    """The nodes of a hierarchy by path, without a leading slash; the root is ``""``."""

    __slots__ = ("_arrays", "_nodes", "_told")

    def __init__(self, nodes: Mapping[str, Metadata]) -> None:
        self._nodes = nodes
        self._arrays: dict[str, list[ArrayMetadata]] | None = None
        self._told: dict[tuple[str, Callable[[ArrayMetadata], bool]], bool] = {}

    def __getitem__(self, path: str) -> Metadata:
        return self._nodes[path]

    def __iter__(self) -> Iterator[str]:
        return iter(self._nodes)

    def __len__(self) -> int:
        return len(self._nodes)

    def all_beside(self, path: str, holds: Callable[[ArrayMetadata], bool]) -> bool:
        """Return whether a predicate holds for all arrays directly below the group that the node at a path is in.

        Each group is looked at once for each predicate.
        """
        about = path.rpartition("/")[0], holds
        if about not in self._told:
            self._told[about] = all(map(holds, self._beside(path)))
        return self._told[about]

    def _beside(self, path: str) -> list[ArrayMetadata]:
        if self._arrays is None:
            self._arrays = {}
            for at, node in self._nodes.items():
                if isinstance(node, ArrayMetadata):
                    self._arrays.setdefault(at.rpartition("/")[0], []).append(node)
        return self._arrays.get(path.rpartition("/")[0], [])


class Carried(NamedTuple):
    """A node with its convention in the form that another format takes.

    Attributes
    ----------
    metadata : ArrayMetadata or GroupMetadata
        Still in the source's dialect: only what the convention is about differs.
    remarks : tuple of str
        What is carried in another form.
    losses : tuple of Loss
        What readers of the convention will not find again.
    chunk_key_encoding : Named, optional
        Of an array: the keys that readers of the convention expect, where chunks get new keys anyway. None if the
        usual ones will do.
    is_settled : bool
        The conventions that come later have nothing to carry with the node.
    """

    metadata: Metadata
    remarks: tuple[str, ...] = ()
    losses: tuple[Loss, ...] = ()
    chunk_key_encoding: Named | None = None
    is_settled: bool = False


class Fault(NamedTuple):
    """One departure of a hierarchy from a convention.

    Attributes
    ----------
    code : str
        One of the codes of `omnizarr.check`.
    path : str
        Of the node.
    pointer : str
        JSON pointer in the node's document as v3 has it (``"/attributes/multiscales/0/axes"``, ``"/shape"``).
    message : str
        What is wrong, in one clause.
    found, expected : object
        None where there is nothing to show.
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
        As reports show it: ``"xarray"``.
    title : str
        In a sentence: ``"xarray/CF"``.
    spec : str
        Where it is written down.
    attributes : frozenset of str
        Names of the attributes that it is about. `carry` and `faults` need no others.
    recognise : (path, nodes) -> bool
        Whether the node at a path follows the convention.
    carry : (metadata, path, nodes, dialect) -> Carried
        A node that follows the convention, for another format: the dialect of that name. `metadata` is the node as
        the conventions before this one carried it.
    faults : (path, nodes) -> iterator of Fault
        What is wrong with the node at a path, given that it follows the convention.
    files : (path, nodes) -> tuple of str
        Keys below the node at a path at which the convention keeps files that are not part of a Zarr hierarchy.
    """

    name: str
    title: str
    spec: str
    attributes: frozenset[str]
    recognise: Callable[[str, Nodes], bool]
    carry: Callable[[Metadata, str, Nodes, str], Carried]
    faults: Callable[[str, Nodes], Iterator[Fault]]
    files: Callable[[str, Nodes], tuple[str, ...]] = no_files
