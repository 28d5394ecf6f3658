"""What a data model above Zarr adds to the tools. No tool knows netCDF, which registers itself here.

It is imported when a tool first asks, and can be missing.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from omnizarr.model import Note
    from omnizarr.nodes.location import StorePath
    from omnizarr.tools.check.report import Finding
    from omnizarr.tools.convert.report import Conversion
    from omnizarr.tools.convert.task import Task
    from omnizarr.tools.repair.transaction import RepairState

_MODULE: Final = "omnizarr.netcdf.tools"
"""It calls `register` when it is imported."""


class Extension:
    """The answers to what tools ask of a data model; these are those of Zarr alone."""

    def concerns(self, source: Any, target: Any) -> bool:
        """Return whether a conversion has a file of the data model at one end."""
        return False

    def shows(self, task: Task) -> bool:
        """Return whether the source is such a file behind a URL or in an archive, and the keywords fit it."""
        return False

    def convert(self, task: Task) -> Conversion:
        """Convert from or to a file of the data model."""
        raise NotImplementedError

    def notes(self, where: StorePath) -> Mapping[str, tuple[Note, ...]]:
        """Return what the data model corrects in nodes around a place and below it, by path in the store."""
        return {}

    def adopt_records(self, state: RepairState, findings: list[Finding]) -> None:
        """Repair unlimited dimensions that are shorter than their complete records."""

    def set_attributes(self, where: StorePath, values: Mapping[str, Any], nc_type: str | None) -> bool:
        """Set attributes of a node whose attributes have types; return False if that is not known here."""
        return False

    def delete_attributes(self, where: StorePath, names: Iterable[str]) -> bool:
        """Delete attributes of such a node; return the same."""
        return False


_registered: list[Extension] = []


def register(extension: Extension) -> None:
    """Let tools ask a data model."""
    _registered[:] = [extension]


def extension() -> Extension:
    """Return the data model; without one, an `Extension` that leaves everything to Zarr."""
    if not _registered:
        try:
            import_module(_MODULE)
        except ModuleNotFoundError as error:
            if error.name is None or not _MODULE.startswith(error.name):
                raise
            register(Extension())
    return _registered[0]
