"""What a convention is: a way of writing meaning into a hierarchy that no Zarr specification defines.

A convention is a frozen value of pure functions. They see nothing but metadata in the words of the model, and do no
I/O. `omnizarr.convert` asks each convention how its documents change between formats, `omnizarr.check` asks what is
wrong with them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

from omnizarr.model import Loss, Metadata

Nodes: TypeAlias = Mapping[str, Metadata]
"""The nodes of a hierarchy by path, without a leading slash; the root is ``""``."""


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
    """

    metadata: Metadata
    remarks: tuple[str, ...] = ()
    losses: tuple[Loss, ...] = ()


class Fault(NamedTuple):
    """One departure of a hierarchy from a convention.

    Attributes
    ----------
    code : str
        One of the codes of `omnizarr.check`.
    path : str
        Of the node.
    pointer : str
        JSON pointer below the attributes of the node (``"/multiscales/0/axes"``), or to a member of its document that
        the convention uses (``"/dimension_names"``).
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
    """

    name: str
    title: str
    spec: str
    attributes: frozenset[str]
    recognise: Callable[[str, Nodes], bool]
    carry: Callable[[Metadata, str, Nodes, str], Carried]
    faults: Callable[[str, Nodes], Iterator[Fault]]
