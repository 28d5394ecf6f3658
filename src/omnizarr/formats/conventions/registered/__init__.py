"""The conventions of https://github.com/zarr-conventions, which nodes name in ``zarr_conventions``: one module each.

`REGISTERED` is the table of facts. They are drafts: `Known.state` says how far each has come.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from omnizarr.formats.conventions.contract import Convention, Fault, Nodes
from omnizarr.formats.conventions.registered import cf, dggs, licence, multiscales, nz, proj, spatial, uom
from omnizarr.formats.conventions.registered.records import LIST, Known, faults_of_list, unchanged

__all__ = ["CONVENTIONS", "REGISTERED"]

REGISTERED: Final[tuple[Known, ...]] = (
    multiscales.MULTISCALES,
    spatial.SPATIAL,
    proj.PROJ,
    licence.LICENCE,
    uom.UOM,
    cf.CF,
    dggs.DGGS,
    nz.NZ,
)
"""All conventions that omnizarr knows by their records."""


def _recognise(path: str, nodes: Nodes) -> bool:
    return LIST in nodes[path].attributes


def _faults(path: str, nodes: Nodes) -> Iterator[Fault]:
    return faults_of_list(path, nodes, REGISTERED)


_RECORDS: Final = Convention(
    name="zarr-conventions",
    title=LIST,
    spec="https://github.com/zarr-conventions/zarr-conventions-spec",
    attributes=frozenset({LIST}),
    recognise=_recognise,
    carry=unchanged,
    faults=_faults,
)

CONVENTIONS: Final[tuple[Convention, ...]] = (
    _RECORDS,
    *(module.CONVENTION for module in (multiscales, spatial, proj, licence, uom, cf, dggs)),
)
"""The list of records, and the conventions that it can name; but NZ-1.0, which comes after that of xarray."""
