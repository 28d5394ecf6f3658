"""What the tools ask of netCDF: files, notes on its view of nodes, records left behind, types of attributes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from omnizarr.netcdf import repairs
from omnizarr.support.lazy import Lazy
from omnizarr.tools.extension import Extension, register

if TYPE_CHECKING:
    from omnizarr.model import Note
    from omnizarr.netcdf.tools import attributes, convert, records
    from omnizarr.nodes.location import StorePath
    from omnizarr.tools.check.report import Finding
    from omnizarr.tools.convert.report import Conversion
    from omnizarr.tools.convert.task import Task
    from omnizarr.tools.repair.transaction import RepairState
else:
    attributes = Lazy("omnizarr.netcdf.tools.attributes")
    convert = Lazy("omnizarr.netcdf.tools.convert")
    records = Lazy("omnizarr.netcdf.tools.records")


class NetCDF(Extension):
    """The data model of netCDF."""

    def concerns(self, source: Any, target: Any) -> bool:
        """Return whether there is a netCDF file at one end."""
        return convert.concerns(source, target)

    def shows(self, task: Task) -> bool:
        """Return whether there is one behind a URL or in an archive."""
        return convert.shows(task)

    def convert(self, task: Task) -> Conversion:
        """Convert from or to a netCDF file."""
        return convert.run(task)

    def notes(self, where: StorePath) -> Mapping[str, tuple[Note, ...]]:
        """Return what netCDF corrects in nodes of NCZarr."""
        return repairs.repairs(where)

    def adopt_records(self, state: RepairState, findings: list[Finding]) -> None:
        """Make unlimited dimensions as long as records are complete."""
        records.adopt_records(state, findings)

    def set_attributes(self, where: StorePath, values: Mapping[str, Any], nc_type: str | None) -> bool:
        """Set attributes with types of netCDF."""
        attributes.set_attributes(where, values, nc_type)
        return True

    def delete_attributes(self, where: StorePath, names: Iterable[str]) -> bool:
        """Delete attributes and the notes of their types."""
        attributes.delete_attributes(where, names)
        return True


register(NetCDF())
