"""Variables of netCDF-3 and netCDF-4 files, read in place: the names of netCDF4-python, and nothing that writes.

Types, attributes, dimensions and user-defined types are those of the file, not those of the Zarr arrays that show it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from omnizarr.errors import NotRepresentableError
from omnizarr.netcdf import masking, selections, types
from omnizarr.netcdf.attributed import Attributes
from omnizarr.netcdf.header import Attribute, GroupHeader, Selection, Source, VariableHeader
from omnizarr.netcdf.layouts.contract import Stored
from omnizarr.netcdf.types import UserType
from omnizarr.netcdf.variable import Variable, shown_attributes

if TYPE_CHECKING:
    from omnizarr.netcdf.group import Group
    from omnizarr.nodes.array import Array

FORMATS: Final = {
    "classic": "NETCDF3_CLASSIC",
    "64-bit offset": "NETCDF3_64BIT_OFFSET",
    "cdf5": "NETCDF3_64BIT_DATA",
    "netCDF-4 classic model": "NETCDF4_CLASSIC",
    "netCDF-4": "NETCDF4",
}
"""The names of netCDF4-python for what ``_Format`` says."""


class InFile(NamedTuple):
    """A variable of a file that was found; see `omnizarr.netcdf.layouts.contract.FoundVariable`."""

    header: VariableHeader
    source: Source

    @property
    def dimensions(self) -> tuple[str, ...]:
        """Full names of its dimensions."""
        return self.header.dimensions

    @property
    def attributes(self) -> dict[str, Attribute]:
        """Its attributes."""
        return shown_attributes(self.header)

    @property
    def stored(self) -> Stored:
        """Raise NotRepresentableError: it is not stored as an array of Zarr."""
        raise NotRepresentableError("a variable of a file is stored as no array of Zarr", path=self.header.name)


def found(source: Source) -> dict[str, InFile]:
    """Return the variables of a file by full name."""
    return {f"{path}/{name}": InFile(each, source) for path, group in source.root.walk() for name, each in _each(group)}


def _each(group: GroupHeader) -> Sequence[tuple[str, VariableHeader]]:
    return [*group.variables.items()]


class FileVariable(Variable):
    """A variable of a netCDF file that is opened in place. It can only be read."""

    __slots__ = ("_source",)

    _source: Source

    @staticmethod
    def made(group: Group, name: str, dims: Any, found: InFile) -> FileVariable:
        """Return the variable."""
        made = FileVariable.__new__(FileVariable)
        made._describe(group, name, dims, found.header)
        object.__setattr__(made, "_source", found.source)
        return made

    @property
    def dtype(self) -> Any:
        """NumPy type of the values before they are scaled; ``str`` for strings, that of the numbers for vlen types."""
        base = self._type.base if isinstance(self._type, UserType) and self._type.kind == "vlen" else None
        return super().dtype if base is None else base.dtype

    def get_fill_value(self) -> Any:
        """Return the value of unwritten elements; None if it is undefined, as for strings."""
        is_text = self._type is types.STRING and "_FillValue" not in self._attributes
        return None if is_text else super().get_fill_value()

    @property
    def array(self) -> Array:
        """The Zarr array that shows what the file stores of the variable.

        It may be shorter than the dimensions. Raises NotRepresentableError if Zarr v3 has no such data type.
        """
        self._session.check_open()
        array = self._source.array(self.full_name)
        if array is None:
            raise NotRepresentableError(
                "Zarr v3 has no array with such elements", path=self.full_name[1:], found=str(self._type)
            )
        return array

    @property
    def _is_classic(self) -> bool:
        return str(self._source.root.special["_Format"].value) not in {"netCDF-4", "netCDF-4 classic model"}

    def filters(self) -> Any:
        """Return the filters of the chunks, in the form of netCDF4-python; None in netCDF-3."""
        return None if self._is_classic else super().filters()

    def chunking(self) -> Any:
        """Return the lengths of the chunks; "contiguous" if there are none; None in netCDF-3."""
        if self._is_classic:
            return None
        sizes = self._special.get("_ChunkSizes")
        return "contiguous" if sizes is None else [int(each) for each in np.atleast_1d(np.asarray(sizes.value))]

    def set_auto_truncate(self, truncate: bool) -> None:  # noqa: FBT001 - as the others
        """Do nothing: the variable can only be read."""

    def set_var_chunk_cache(
        self, size: int | None = None, nelems: int | None = None, preemption: float | None = None
    ) -> None:
        """Set what `get_var_chunk_cache` returns: chunks of files are not kept."""
        self._session.check_open()
        object.__setattr__(self, "_cache_settings", self._cache_settings.changed(size, nelems, preemption))

    def get_var_chunk_cache(self) -> tuple[int, int, float]:
        """Return the numbers that were set; they have no effect."""
        size, nelems, preemption = self._cache_settings
        return size, nelems, preemption

    def read_raw(self, selection: Selection) -> NDArray[Any]:
        """Return stored values, neither masked nor scaled. See `omnizarr.netcdf.header.Source`."""
        return self._source.read(self.full_name, selection)

    def _read(self, elem: Any) -> Any:
        picked = selections.for_reading(elem, self.shape)
        if not self._dims:
            data = self._source.read(self.full_name, ())
            return data[()] if data.dtype.hasobject and not data.dtype.names else data
        data = self._selected(picked.selection, picked.lengths).reshape(picked.shape)
        return data if data.ndim or data.dtype.kind != "O" else data[()]  # a text, or the numbers of a list

    def _selected(self, selection: Sequence[Any], lengths: tuple[int, ...]) -> NDArray[Any]:
        dtype, name = self._type.dtype, self.full_name
        if 0 in lengths:
            return np.empty(lengths, dtype)
        indices = [
            np.arange(*each.indices(size)) if isinstance(each, slice) else np.asarray(each)
            for each, size in zip(selection, self.shape, strict=True)
        ]
        box = tuple(slice(int(each.min()), int(each.max()) + 1) for each in indices)
        is_box = all(len(each) == part.stop - part.start for each, part in zip(indices, box, strict=True))
        array = None if is_box or dtype.kind not in "iufS" else self._source.array(name)
        if array is not None and array.shape == self.shape and array.dtype.kind in "biufS":
            # only the chunks that are selected
            data: NDArray[Any] = np.asarray(array.get_orthogonal_selection(tuple(selection)))
            return data.view(dtype) if data.dtype.kind == "b" else data.astype(dtype, copy=False)
        data = self._source.read(name, box)
        inner = [each - part.start for each, part in zip(indices, box, strict=True)]
        chosen: NDArray[Any] = data[np.ix_(*inner)]
        return chosen

    def _change_attributes(self, change: Callable[[Attributes], Attributes]) -> None:
        """Raise ReadOnlyError."""
        self._session.check_writable()

    @property
    def _packing(self) -> masking.Packing:
        packing = self._known_packing
        if packing is None:
            packing = masking.Packing.of(self._attributes, self._type, no_fill="_NoFill" in self._special)
            object.__setattr__(self, "_known_packing", packing)
        return packing

    def __setstate__(self, state: Any) -> None:
        for name, value in state.items():
            object.__setattr__(self, name, value)
