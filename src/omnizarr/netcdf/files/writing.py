"""Writing netCDF-3 and netCDF-4 files: netCDF-C defines and stores, HDF5 takes what netCDF4-python would change.

netCDF4-python writes an empty text as one NUL, cuts NULs off the end of text, makes strings of text that is not ASCII,
and refuses values of an enum that have no name; so attributes of netCDF-4 files, and values of user-defined types, are
written by h5py when netCDF-C is done.
"""

from __future__ import annotations

import math
import os
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, suppress
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from omnizarr.errors import NotRepresentableError, OmnizarrError, StoreError
from omnizarr.model import Loss
from omnizarr.netcdf import types
from omnizarr.netcdf.files import blosc
from omnizarr.netcdf.files import hdf5 as files_hdf5
from omnizarr.netcdf.files.libraries import h5py, netCDF4
from omnizarr.netcdf.files.planning import Format, Plan, StoredOtherwise, plan, without_blosc
from omnizarr.netcdf.header import Attribute, GroupHeader, Selection, Source, VariableHeader
from omnizarr.netcdf.types import AnyType, NcType, UserType
from omnizarr.support.progress import Progress, Tick, Tracker

_SMALL: Final = 2**20
_OF_COMPRESSION: Final = ("compression", "complevel", "blosc_", "szip_")
BLOCK: Final = 2**25
"""Bytes that are in memory at a time, unless one chunk is larger."""


def write(path: Path, source: Source, format: Format, progress: Progress) -> tuple[Loss, ...]:  # noqa: A002
    """Write a file beside its place, and move it there."""
    planned = plan(source.root, format)
    partial = path.with_name(f".{path.name}.{uuid.uuid4().hex}.partial")
    sizes = planned.root.sizes()
    headers = (each for _, group in planned.root.walk() for each in group.variables.values())
    nbytes = sum(math.prod(sizes[name].size for name in each.dimensions) * each.type.dtype.itemsize for each in headers)
    shown = Tracker(progress, f"writing {path.name}", nbytes)
    try:
        with shown:
            shown.begin(nbytes)
            planned, losses = _written(partial, source, planned, format, shown.tick)
        os.replace(partial, path)  # noqa: PTH105 (an existing file is replaced)
    except OmnizarrError as error:
        raise error.add(store=str(path))
    except OSError as error:
        raise StoreError("this file cannot be written", store=str(path), found=str(error)) from error
    except (RuntimeError, ValueError, TypeError, AttributeError, KeyError) as error:
        raise NotRepresentableError("netCDF-C cannot write this", store=str(path), found=str(error)) from error
    finally:
        with suppress(FileNotFoundError):
            partial.unlink()
    return planned.losses + losses


def _written(
    path: Path,
    source: Source,
    planned: Plan,
    format: Format,  # noqa: A002
    tick: Tick,
) -> tuple[Plan, tuple[Loss, ...]]:
    """Write a file, and return what was planned in the end, and further losses.

    Where netCDF-C fails because of blosc, it is given up where that is the cause, and at last everywhere. Small
    variables, which blosc easily makes larger, are looked at before.
    """
    for limit in (_SMALL, math.inf, None):
        candidates = blosc.candidates(planned)
        if limit is not None:
            candidates = [
                name
                for name in candidates
                if blosc.nbytes(planned, name) <= limit and not blosc.can_compress(source, planned, name)
            ]
        planned = without_blosc(planned, candidates)
        try:
            return planned, _Writer(path, source, planned, format, tick).write()
        except RuntimeError:
            if not blosc.candidates(planned):
                raise
            path.unlink(missing_ok=True)
    raise AssertionError  # without candidates, the error was raised


class _Writer:
    def __init__(
        self,
        path: Path,
        source: Source,
        planned: Plan,
        format: Format,  # noqa: A002
        tick: Tick,
    ) -> None:
        self.path = path
        self.source = source
        self.planned = planned
        self.format = format
        self.sizes = planned.root.sizes()
        self.dimensions: dict[str, Any] = {}
        self.variables: dict[str, tuple[Any, VariableHeader]] = {}
        self.losses: list[Loss] = []
        self.tick = tick

    def write(self) -> tuple[Loss, ...]:
        with closing(netCDF4.Dataset(str(self.path), "w", format=self.format)) as dataset:
            if self.format.startswith("NETCDF3"):
                dataset.set_fill_off()  # all values are written
            self._define(dataset, self.planned.root, "", {})
            dataset.set_auto_maskandscale(False)
            dataset.set_auto_chartostring(False)
            for name, (variable, header) in self.variables.items():
                if not self._is_for_hdf5(header, name.rpartition("/")[0]):
                    self._copy(name, header, _storer(variable))
        if not self.format.startswith("NETCDF3"):
            with h5py.File(self.path, "r+", locking="best-effort") as hdf5:
                self._complete(hdf5, self.planned.root, "")
        # Say which unlimited dimensions are shorter in the file: no variable has values that make them long.
        with closing(netCDF4.Dataset(str(self.path))) as dataset:
            for full_name, dimension in self.sizes.items():
                path, _, name = full_name.rpartition("/")
                size = (dataset[path] if path else dataset).dimensions[name].size
                if size != dimension.size:
                    what = f"length {dimension.size} of unlimited dimension {name}"
                    why = "no variable with values has it"
                    self.losses.append(Loss(path.lstrip("/"), f"/dimensions/{name}", what, why, f"length {size}"))
        return tuple(self.losses)

    # Definitions

    def _define(self, group: Any, header: GroupHeader, path: str, above: Mapping[str, Any]) -> None:
        for name, dimension in header.dimensions.items():
            size = None if dimension.unlimited else dimension.size
            self.dimensions[f"{path}/{name}"] = group.createDimension(name, size)
        defined = {**above, **{name: _define_type(group, each) for name, each in header.types.items()}}
        if self.format.startswith("NETCDF3"):
            _set_attributes(group, header.attributes)
        for name, variable in header.variables.items():
            full_name = f"{path}/{name}"
            made = group.createVariable(
                name,
                _datatype(variable.type, defined, self.planned.options[full_name].get("endian", "native")),
                [self.dimensions[each] for each in variable.dimensions],
                **self._possible(group, full_name),
            )
            if self.format.startswith("NETCDF3"):
                _set_attributes(made, variable.attributes)
            self.variables[full_name] = made, variable
        for name, each in header.groups.items():
            self._define(group.createGroup(name), each, f"{path}/{name}", defined)

    def _possible(self, group: Any, full_name: str) -> dict[str, Any]:
        """Return the options of a variable, without a compressor that netCDF-C lacks here."""
        options = dict(self.planned.options[full_name])
        compression = options.get("compression", "")
        if not _has_filter(group, compression):
            why = "netCDF-C was built, or installed, without this filter"
            self.losses.append(StoredOtherwise(full_name[1:], "", f"compression {compression}", why))
            options = {name: value for name, value in options.items() if not name.startswith(_OF_COMPRESSION)}
        return options

    # What h5py writes

    def _complete(self, hdf5: Any, header: GroupHeader, path: str) -> None:
        _write_attributes(hdf5, header.attributes)
        for name, variable in header.variables.items():
            dataset = files_hdf5.member(hdf5, name)
            _write_attributes(dataset, variable.attributes, variable.type)
            if self._is_for_hdf5(variable, path):
                self._copy(f"{path}/{name}", variable, _hdf5_storer(dataset))
        for name, each in header.groups.items():
            self._complete(hdf5[name], each, f"{path}/{name}")

    def _is_for_hdf5(self, header: VariableHeader, path: str) -> bool:
        """Return whether netCDF4-python would refuse values, or take another dimension for one of the variable."""
        is_hidden = files_hdf5.has_hidden_dimension(header.dimensions, path, self.sizes)
        return isinstance(header.type, UserType) or is_hidden

    # Values

    def _copy(self, name: str, header: VariableHeader, store: Callable[[Selection, NDArray[Any]], None]) -> None:
        shape = tuple(self.sizes[each].size for each in header.dimensions)
        chunks = self.planned.options[name].get("chunksizes") or (1,) * len(shape)
        has_nul = False
        is_filled = self._filler(name, header, shape)
        for selection in blocks(shape, chunks, header.type.dtype.itemsize):
            values = self.source.read(name, selection)
            if is_filled(selection, values):
                self.tick(values.nbytes)
                continue
            if header.type is types.STRING and any("\0" in each for each in values.ravel()):
                has_nul = True
                cut = np.empty(values.shape, object)
                cut.reshape(-1)[:] = [each.split("\0")[0] for each in values.ravel()]
                values = cut
            store(selection, values)
            self.tick(values.nbytes)
            del values  # before the next ones are read
        if has_nul:
            self.losses.append(
                Loss(name[1:], "", "strings with NULs", "a string ends at its first NUL", "the text before")
            )

    def _filler(
        self, name: str, header: VariableHeader, shape: tuple[int, ...]
    ) -> Callable[[Selection, NDArray[Any]], bool]:
        """Return a function that tells whether whole chunks read as these values if they are not stored."""
        fill = self.planned.options[name].get("fill_value")
        dtype = header.type.dtype
        is_number = isinstance(header.type, NcType) and dtype.kind in "iuf"
        if self.format.startswith("NETCDF3") or fill is None or fill is False or not is_number:
            return lambda _selection, _values: False
        bits = f"u{dtype.itemsize}"  # so that -0.0 is not 0.0, and NaN is NaN
        wanted = np.asarray(fill, dtype).view(bits)
        # A stored chunk at the end of an unlimited dimension defines its length.
        ends = [
            (axis, shape[axis]) for axis, each in enumerate(header.dimensions) if self.sizes[each].unlimited
        ]  # fmt: skip

        def is_filled(selection: Selection, values: NDArray[Any]) -> bool:
            if any(selection[axis].stop == end for axis, end in ends):
                return False
            found = values.astype(dtype, copy=False).view(bits)
            return bool(found.flat[0] == wanted and (found == wanted).all())

        return is_filled


def _has_filter(dataset: Any, compression: str) -> bool:
    """Return whether netCDF-C can compress so."""
    asked = getattr(dataset, f"has_{compression.partition('_')[0]}_filter", None)
    return asked is None or bool(asked())


def _datatype(nc_type: AnyType, defined: Mapping[str, Any], order: str) -> Any:
    if isinstance(nc_type, UserType):
        return defined[nc_type.name]
    return str if nc_type is types.STRING else nc_type.dtype.newbyteorder(order)  # type: ignore[arg-type]


def _define_type(group: Any, user_type: AnyType) -> Any:
    if isinstance(user_type, NcType):
        raise NotRepresentableError("an atomic type needs no definition", found=user_type.name)
    if user_type.kind == "enum":
        return group.createEnumType(user_type.dtype, user_type.name, dict(user_type.members))
    if user_type.kind == "compound":
        return group.createCompoundType(user_type.dtype, user_type.name)
    base = user_type.base or types.INT
    return group.createVLType(base.dtype, user_type.name)


def _set_attributes(owner: Any, attributes: Mapping[str, Attribute]) -> None:
    """Give a group or variable of a netCDF-3 file its attributes, all at once: each change of the header moves data."""
    owner.setncatts(
        {
            name: files_hdf5.encode(each.value) if isinstance(each.value, str) else each.value
            for name, each in attributes.items()
            if name != "_FillValue"  # createVariable has written it
        }
    )


def _write_attributes(owner: Any, attributes: Mapping[str, Attribute], of_type: AnyType = types.CHAR) -> None:
    for name, each in attributes.items():
        if isinstance(of_type, UserType) and name == "_FillValue":
            continue  # of the user-defined type, as createVariable has written it
        files_hdf5.write_attribute(owner, name, each)


def _storer(variable: Any) -> Callable[[Selection, NDArray[Any]], None]:
    def store(selection: Selection, values: NDArray[Any]) -> None:
        variable[selection or ...] = _encoded(values)

    return store


def _encoded(values: NDArray[Any]) -> NDArray[Any]:
    """Return strings as bytes; anything else unchanged."""
    if values.dtype != object:
        return values
    encoded = np.empty(values.shape, object)
    encoded.reshape(-1)[:] = [files_hdf5.encode(each) for each in values.ravel()]
    return encoded


def _hdf5_storer(dataset: Any) -> Callable[[Selection, NDArray[Any]], None]:
    def store(selection: Selection, values: NDArray[Any]) -> None:
        files_hdf5.write_values(
            dataset, selection, values if h5py.check_vlen_dtype(dataset.dtype) else _encoded(values)
        )

    return store


def blocks(shape: Sequence[int], chunks: Sequence[int], itemsize: int, limit: int = BLOCK) -> Iterator[Selection]:
    """Yield selections that cover an array, of whole chunks, and of at most `limit` bytes if a chunk is not a larger.

    >>> list(blocks((2, 5), (1, 2), itemsize=8, limit=40))
    [(slice(0, 1, None), slice(0, 4, None)), (slice(0, 1, None), slice(4, 5, None)),
     (slice(1, 2, None), slice(0, 4, None)), (slice(1, 2, None), slice(4, 5, None))]
    """
    if 0 in shape:
        return
    block = [min(chunk, size) for chunk, size in zip(chunks, shape, strict=True)]
    for axis in reversed(range(len(shape))):
        times = limit // (math.prod(block) * itemsize)
        if times > 1:
            block[axis] = min(block[axis] * times, shape[axis])
        if block[axis] < shape[axis]:
            break
    counts = [-(-size // step) for size, step in zip(shape, block, strict=True)]
    for place in np.ndindex(*counts):
        yield tuple(
            slice(at * step, min((at + 1) * step, size)) for at, step, size in zip(place, block, shape, strict=True)
        )
