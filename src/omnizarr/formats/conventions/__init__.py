"""Conventions above the formats: the meaning of attributes and names for xarray, OME-Zarr and others.

`CONVENTIONS` is the table. To add one, write a module with a `Convention`, and add it here. Packages offer theirs
under the entry point `omnizarr.conventions`; they are asked last.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Any, Final, NamedTuple

from omnizarr.errors import OmnizarrError
from omnizarr.formats.conventions.anndata import ANNDATA
from omnizarr.formats.conventions.contract import Carried, Convention, Fault, Nodes, no_files
from omnizarr.formats.conventions.gdal import GDAL
from omnizarr.formats.conventions.georeferencing import GEOREFERENCE
from omnizarr.formats.conventions.nczarr import NCZARR
from omnizarr.formats.conventions.ome import OME
from omnizarr.formats.conventions.registered import CONVENTIONS as REGISTERED
from omnizarr.formats.conventions.registered import nz
from omnizarr.formats.conventions.xarray import XARRAY
from omnizarr.model import GroupMetadata, Loss, Metadata, Named, plugins
from omnizarr.model.plugins import Plugins
from omnizarr.support.warned import warn

__all__ = [
    "CONVENTIONS",
    "PLUGINS",
    "Carried",
    "CarriedAll",
    "Convention",
    "Fault",
    "Nodes",
    "carry",
    "faults",
    "files",
    "followed",
    "known",
    "oldest",
    "settled",
    "title_of",
]

CONVENTIONS: Final[tuple[Convention, ...]] = (
    ANNDATA,
    OME,
    GDAL,
    *REGISTERED,
    XARRAY,
    NCZARR,
    nz.CONVENTION,
    GEOREFERENCE,
)
"""The conventions in the order in which they are applied."""


class CarriedAll(NamedTuple):
    """A node with all its conventions converted for another format.

    Attributes
    ----------
    metadata : ArrayMetadata or GroupMetadata
        The metadata, still in the source's dialect.
    remarks : mapping of str to (tuple of str)
        What was converted, by the names of the conventions that the node follows.
    losses : tuple of Loss
    chunk_key_encoding : Named, optional
        As in `Carried`.
    """

    metadata: Metadata
    remarks: Mapping[str, tuple[str, ...]]
    losses: tuple[Loss, ...] = ()
    chunk_key_encoding: Named | None = None


PLUGINS: Final[Plugins[Any]] = Plugins("omnizarr.conventions", "convention", "")
"""What packages offer: a `Convention`, under its name."""


def known() -> tuple[Convention, ...]:
    """Return all conventions: those of omnizarr, then those of packages, by name.

    What cannot be imported, or is no `Convention`, is left out with a warning.
    """
    names = PLUGINS.names()
    return (*CONVENTIONS, *_offered(tuple(sorted(names)), plugins.generation())) if names else CONVENTIONS


@lru_cache(4)
def _offered(names: tuple[str, ...], _generation: int) -> tuple[Convention, ...]:
    found = []
    for name in names:
        try:
            made = PLUGINS.find(name)
        except OmnizarrError as error:
            warn(f"the convention {name!r} is not checked and not carried: {error}", UserWarning)
            continue
        if isinstance(made, Convention):
            found.append(made)
        else:
            warn(f"the entry point {name!r} of omnizarr.conventions is no Convention: it is ignored", UserWarning)
    return tuple(found)


def followed(path: str, nodes: Nodes) -> Iterator[Convention]:
    """Yield the conventions that the node at a path follows."""
    return (convention for convention in known() if convention.recognise(path, nodes))


def title_of(name: str) -> str:
    """Return the name of a convention in a sentence."""
    return next((convention.title for convention in known() if convention.name == name), name)


def carry(path: str, nodes: Nodes, metadata: Metadata, dialect: str) -> CarriedAll:
    """Return the node at a path with its conventions converted for the dialect of that name.

    `metadata` is what to convert: ``nodes[path]``, or a changed version of it.

    Examples
    --------
    >>> from omnizarr.formats import V2
    >>> array = V2.load({".zarray": {"zarr_format": 2, "shape": [4], "chunks": [2], "dtype": "<i2", "order": "C",
    ...     "compressor": None, "filters": None, "fill_value": -99}, ".zattrs": {"_ARRAY_DIMENSIONS": ["time"]}})
    >>> found = carry("depth", Nodes({"depth": array}), array, "v3")
    >>> found.metadata.dimension_names, dict(found.metadata.attributes), list(found.remarks)
    (('time',), {'_FillValue': -99}, ['xarray'])
    """
    remarks: dict[str, tuple[str, ...]] = {}
    losses: list[Loss] = []
    keys: Named | None = None
    is_other = metadata.dialect != dialect
    for convention in followed(path, nodes):
        remarks[convention.name] = ()
        if is_other or convention.name in nodes.wishes:
            found = convention.carry(metadata, path, nodes, dialect)
            metadata = found.metadata
            remarks[convention.name] = found.remarks
            losses += found.losses
            keys = keys or found.chunk_key_encoding
            if found.is_settled:
                break
    return CarriedAll(metadata, remarks, tuple(losses), keys)


def oldest(path: str, group: GroupMetadata) -> GroupMetadata:
    """Return a group of v3 in the oldest version of each convention that says all of it."""
    for convention in _versioned(path, group):
        group = _in_version(path, group, convention, convention.versions[0]) or group
    return group


def settled(path: str, group: GroupMetadata) -> GroupMetadata:
    """Return a group of v3 so that those that say the same, in whatever version of their conventions, are the same."""
    for convention in _versioned(path, group):
        for version in (*reversed(convention.versions), convention.versions[0]):
            group = _in_version(path, group, convention, version) or group
    return group


def _versioned(path: str, group: GroupMetadata) -> list[Convention]:
    nodes = Nodes({path: group})
    return [each for each in known() if each.versions and each.recognise(path, nodes)]


def _in_version(path: str, group: GroupMetadata, convention: Convention, version: str) -> GroupMetadata | None:
    """Return a group in a version of a convention; None if something of it would be lost."""
    found = convention.carry(group, path, Nodes({path: group}, {convention.name: version}), "v3")
    return found.metadata if isinstance(found.metadata, GroupMetadata) and not found.losses else None


def files(path: str, nodes: Nodes) -> tuple[str, ...]:
    """Return the keys below the node at a path at which its conventions store files outside of the hierarchy."""
    known_to_have = (convention for convention in known() if convention.files is not no_files)
    return tuple(
        key
        for convention in known_to_have
        if convention.recognise(path, nodes)
        for key in convention.files(path, nodes)
    )


def faults(path: str, nodes: Nodes) -> Iterator[Fault]:
    """Yield the violations of the conventions that the node at a path follows."""
    for convention in followed(path, nodes):
        yield from convention.faults(path, nodes)
