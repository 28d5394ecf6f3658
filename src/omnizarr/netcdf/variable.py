"""Variables: arrays with shared dimensions and typed attributes, read and written like those of netCDF4-python.

Spec: NCZarr, "The NCZarr Data Model"; the names and their meaning are those of netCDF4-python.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final, TypeAlias, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

from omnizarr.errors import FixedAttributeError, SettingError
from omnizarr.model.datatypes.optional import is_optional
from omnizarr.netcdf import chars, chunk_cache, elements, filters, masking, quantize, selections, types
from omnizarr.netcdf.attributed import Attributed, Attributes
from omnizarr.netcdf.dimension import Dimension
from omnizarr.netcdf.header import Selection, VariableHeader
from omnizarr.netcdf.layouts import quirks
from omnizarr.netcdf.layouts.contract import FoundVariable, Stored
from omnizarr.netcdf.records import Place, place_of
from omnizarr.netcdf.types import AnyType, UserType
from omnizarr.nodes import chunking as layout
from omnizarr.nodes import resizing
from omnizarr.nodes.array import Array
from omnizarr.nodes.indexers import ArrayIndex, Index
from omnizarr.nodes.location import StorePath
from omnizarr.stores.local.directory import LocalStore
from omnizarr.stores.local.memory import MemoryStore
from omnizarr.support.text import visible_lines

if TYPE_CHECKING:
    from omnizarr.netcdf.group import Group

Masked: TypeAlias = "np.ma.MaskedArray[Any, np.dtype[Any]]"
_FILL_VALUE: Final = "_FillValue"
MAXSTRLEN: Final = "_nczarr_maxstrlen"
_QUANTIZED: Final = frozenset(quantize.ATTRIBUTES.values())
_OF_ATTRIBUTES: Final = frozenset({"_attributes", "_quantize", "_known_packing"})
_OF_HEADER: Final = frozenset({"_type", "_special", "_notes", "_stored", "_array", "_decode", "_encode"})
_FILLED_LATER: Final = _OF_ATTRIBUTES | _OF_HEADER
_FIRST_SETTINGS: Final = (
    *((name, True) for name in ("mask", "scale", "always_mask", "chartostring")),
    *((name, False) for name in ("_truncate", "_ncstring")),
)
_SETTINGS: Final = tuple(name for name, _ in _FIRST_SETTINGS)


class Variable(Attributed):
    """A variable, created by `Group.createVariable`.

    Selections are those of netCDF4-python: several lists or masks select orthogonally, and writing beyond the end
    of an unlimited dimension lengthens it, for all variables that have it. Missing values are masked, and
    ``scale_factor`` and ``add_offset`` are applied, unless you turn this off with `set_auto_maskandscale`.

    Threads can share a variable. Readers see an unlimited dimension grow only after its new data is stored.

    Examples
    --------
    >>> import numpy as np
    >>> from omnizarr import netcdf
    >>> ds = netcdf.Dataset({}, "w")
    >>> _ = ds.createDimension("time"), ds.createDimension("x", 3)
    >>> temp = ds.createVariable("temp", "i2", ("time", "x"), fill_value=-1)
    >>> temp.scale_factor = np.float32(0.5)
    >>> temp[0:2] = [[1, 2, 3], [4, 5, 6]]
    >>> temp.shape, temp[1, ::2].tolist()
    ((2, 3), [4.0, 6.0])
    """

    __slots__ = (
        *("_group", "_name", "_type", "_dims", "_special", "_notes", "_stored", "_array"),
        *("_decode", "_encode", "_known_packing", "mask", "scale", "always_mask", "chartostring", "_truncate"),
        *("_ncstring", "_quantize", "_cache_settings", "_found"),
    )

    mask: bool
    """Whether to mask missing values; see `set_auto_mask`."""
    scale: bool
    """Whether to scale values; see `set_auto_scale`."""
    always_mask: bool
    """Whether to return a masked array even if nothing is masked; see `set_always_mask`."""
    chartostring: bool
    """Whether chars with an attribute ``_Encoding`` become strings; see `set_auto_chartostring`."""

    _group: Group
    _name: str
    _dims: tuple[Dimension, ...]
    _found: FoundVariable | None
    _truncate: bool
    _ncstring: bool
    _cache_settings: chunk_cache.ChunkCache
    _array: Array
    _quantize: tuple[int, str] | None
    _known_packing: masking.Packing | None

    def __init__(self, group: Group, header: VariableHeader, dims: tuple[Dimension, ...], stored: Stored) -> None:
        self._begin(group, header.name, dims, None)
        self._adopt_header(header, stored)
        self._adopt_attributes(shown_attributes(header))

    @staticmethod
    def _of(group: Group, name: str, dims: tuple[Dimension, ...], found: FoundVariable) -> Variable:
        """Return a stored variable. Its properties are read at first use."""
        variable = Variable.__new__(Variable)
        variable._begin(group, name, dims, found)
        return variable

    def _begin(self, group: Group, name: str, dims: tuple[Dimension, ...], found: FoundVariable | None) -> None:
        put = object.__setattr__  # a dataset can have many variables, and their attributes take time
        put(self, "_session", group._session)
        put(self, "_group", group)
        put(self, "_name", name)
        put(self, "_dims", dims)
        put(self, "_found", found)
        put(self, "_cache_settings", chunk_cache.latest())
        for setting, value in _FIRST_SETTINGS:
            put(self, setting, value)

    def _describe(self, group: Group, name: str, dims: tuple[Dimension, ...], header: VariableHeader) -> None:
        """Become a variable that is stored in no array of Zarr."""
        self._begin(group, name, dims, None)
        self._type = header.type
        self._special = {each: value for each, value in header.special.items() if each not in _QUANTIZED}
        self._notes = header.notes
        self._adopt_attributes(shown_attributes(header))

    def _adopt_header(self, header: VariableHeader, stored: Stored) -> None:
        self._type = header.type
        self._special = {name: each for name, each in header.special.items() if name not in _QUANTIZED}
        self._notes = header.notes
        self._stored = stored
        # The settings of an array: directly readable chunks are not cached, and all chunks are stored if necessary.
        # Reading a part of such a chunk takes no longer than finding it in a cache, and caching it would mean reading
        # all of it first.
        config = self._session.config
        if stored.needs_chunks:
            config = replace(config, write_empty_chunks=True)
        filters, serializer, compressors = layout.split(stored.metadata.codecs)
        is_plain = serializer is not None and serializer.name == "bytes" and not (filters or compressors)
        if is_plain and isinstance(stored.where.store, LocalStore | MemoryStore):
            behaviour = replace(config, chunk_cache=0)
        else:
            behaviour = config
        self._adopt_array(Array(stored.where, stored.metadata, behaviour))

    def __getattr__(self, name: str) -> Any:
        # Python also calls this for empty slots: those of an existing variable are filled when needed.
        return self._filled(name) if name in _FILLED_LATER else super().__getattr__(name)

    def _filled(self, name: str) -> Any:
        """Return the value of a slot, after filling it and related slots if necessary."""
        with self._session.lock:  # under the lock, so that it does not overwrite changes by another thread
            try:
                return object.__getattribute__(self, name)
            except AttributeError:
                found = self._found
                if found is None:
                    raise
            if name in _OF_ATTRIBUTES:
                self._adopt_attributes(found.attributes)
            else:
                self._adopt_header(found.header, found.stored)
            return object.__getattribute__(self, name)

    # -- properties ---------------------------------------------------------------

    @property
    def name(self) -> str:
        """Name within the group. Assigning to it renames the variable."""
        return self._name

    @name.setter
    def name(self, name: str) -> None:
        self._group.renameVariable(self._name, name)

    @property
    def full_name(self) -> str:
        """Path from the root, such as ``/model/temp``."""
        return f"{self._group.full_name}/{self._name}"

    @property
    def dimensions(self) -> tuple[str, ...]:
        """The names of the dimensions."""
        return tuple([each.name for each in self._dims])

    @property
    def shape(self) -> tuple[int, ...]:
        """The current lengths of the dimensions."""
        return tuple([each.size for each in self._dims])

    @property
    def ndim(self) -> int:
        """Number of dimensions."""
        return len(self._dims)

    @property
    def size(self) -> int:
        """Number of elements."""
        return int(np.prod(self.shape, dtype=object))

    @property
    def dtype(self) -> Any:
        """NumPy type of the values before they are scaled; ``str`` for strings."""
        return str if self._type is types.STRING else self._type.dtype

    @property
    def datatype(self) -> Any:
        """The same as `dtype`; for a user-defined type, the `UserType`."""
        return self._type if isinstance(self._type, UserType) else self.dtype

    @property
    def nctype(self) -> AnyType:
        """The netCDF type, such as ``short``, ``char`` or ``string``."""
        return self._type

    @property
    def header(self) -> VariableHeader:
        """The variable as a value."""
        header = VariableHeader(
            name=self._name,
            type=self._type,
            dimensions=tuple([each.path for each in self._dims]),
            special=self._special,
            notes=self._notes,
        )
        return _with_shown(header, self._attributes)

    @property
    def array(self) -> Array:
        """The Zarr array of the variable, with the current lengths of the dimensions."""
        self._session.records.store()
        return self._current()

    def group(self) -> Group:
        """Return the group that contains the variable."""
        return self._group

    def get_dims(self) -> tuple[Dimension, ...]:
        """Return the dimensions."""
        return self._dims

    def chunking(self) -> str | list[int]:
        """Return the lengths of the chunks; "contiguous" for a scalar."""
        if not self._dims:
            return "contiguous"
        chunks = self._array.chunks
        return [each if isinstance(each, int) else max(each) for each in chunks]

    def filters(self) -> dict[str, Any]:
        """Return the filters of the chunks, in the form of netCDF4-python."""
        return filters.filters_dict(self._special)

    def endian(self) -> str:
        """Return the byte order of the stored values: "little", "big", or "native" if they have none."""
        found = self._special.get("_Endianness")
        return str(found.value) if found is not None else "native"

    def quantization(self) -> tuple[int, str] | None:
        """Return the number of digits kept, and the algorithm; None if all digits are kept."""
        return self._quantize

    def get_fill_value(self) -> Any:
        """Return the value of unwritten elements; None if it is undefined."""
        if "_FillValue" in self._attributes:
            return self._shown_fill_value()
        if "_NoFill" in self._special or isinstance(self._type, UserType):
            return None
        return self._type.default_fill

    def __len__(self) -> int:
        if not self._dims:
            raise TypeError("a scalar has no length")
        return self._dims[0].size

    # -- settings for reading and writing --------------------------------------------------

    def set_auto_mask(self, mask: bool) -> None:  # noqa: FBT001 - netCDF4-python's signature
        """Set whether to mask missing values in reads, and to fill masked elements in writes."""
        self.mask = bool(mask)

    def set_auto_scale(self, scale: bool) -> None:  # noqa: FBT001
        """Set whether to apply ``scale_factor``, ``add_offset`` and ``_Unsigned``."""
        self.scale = bool(scale)

    def set_auto_maskandscale(self, maskandscale: bool) -> None:  # noqa: FBT001
        """Call both `set_auto_mask` and `set_auto_scale`."""
        self.scale = self.mask = bool(maskandscale)

    def set_always_mask(self, always_mask: bool) -> None:  # noqa: FBT001
        """Set whether to always return masked arrays, or only if something is masked."""
        self.always_mask = bool(always_mask)

    def set_auto_chartostring(self, chartostring: bool) -> None:  # noqa: FBT001
        """Set whether to convert chars with an attribute ``_Encoding`` to strings, and back."""
        self.chartostring = bool(chartostring)

    def set_auto_truncate(self, truncate: bool) -> None:  # noqa: FBT001 - as the others
        """Set whether to cut strings that are too long for the variable, instead of raising ValueTypeError."""
        self._truncate = bool(truncate)
        self._adopt_array(self._array)

    def set_ncstring_attrs(self, ncstring_attrs: bool) -> None:  # noqa: FBT001
        """Set whether to store text attributes as string, or as char."""
        self._ncstring = bool(ncstring_attrs)

    def set_var_chunk_cache(
        self, size: int | None = None, nelems: int | None = None, preemption: float | None = None
    ) -> None:
        """Set the size of the cache of decoded chunks in bytes.

        `nelems` and `preemption` have no effect, but are kept.
        """
        self._session.check_open()
        self._cache_settings = self._cache_settings.changed(size, nelems, preemption)
        if size is not None:
            self._adopt_array(self._array.with_config({"chunk_cache": size}))

    def get_var_chunk_cache(self) -> tuple[int, int, float]:
        """Return the size of the cache of decoded chunks in bytes, and two numbers that have no effect."""
        cache = self._array.config.chunk_cache
        _, nelems, preemption = self._cache_settings
        return cache if isinstance(cache, int) else cache.limit, nelems, preemption

    def set_collective(self, value: bool) -> None:  # noqa: FBT001
        """Do nothing: reads and writes never wait for other processes."""

    def use_nc_get_vars(self, use_nc_get_vars: bool) -> None:  # noqa: FBT001
        """Do nothing: strided reads always use the same code."""

    # -- data -----------------------------------------------------------------------

    @overload
    def __getitem__(self, elem: ArrayIndex) -> Masked: ...
    @overload
    def __getitem__(self, elem: Index) -> Any: ...
    def __getitem__(self, elem: Any) -> Any:
        """Return the selected elements: a masked array, or plain values, as in netCDF4-python.

        Type checkers assume masked arrays for slices, which variables return unless you turn masking off.

        Raises
        ------
        BoundsCheckError, SelectionError
            If the selection is not valid (an IndexError).
        ChunkError
            If a stored chunk is broken.
        """
        self._session.check_open()
        data = self._read(elem)
        if self._is_encoded and selections.takes_last_whole(elem, self.shape):
            return chars.chartostring(data, encoding=str(self._attributes["_Encoding"].value))
        if self.mask or self.scale:
            return self._packing.unpack(data, mask=self.mask, scale=self.scale, always_mask=self.always_mask)
        return data

    def __setitem__(self, elem: Index, data: ArrayLike) -> None:
        """Store elements. Unlimited dimensions grow as needed.

        Raises
        ------
        ReadOnlyError
        BoundsCheckError, SelectionError, ShapeError
            If `data` does not fit the selection.
        ValueTypeError
            If `data` cannot be converted to the variable's type, or a string is longer than the variable allows.
        """
        self._session.check_open()
        if self._is_encoded:
            array = np.asanyarray(data)
            room = array.dtype.itemsize if array.dtype.kind == "S" else 0
            length = max(self.shape[-1], room) if self._dims[-1].isunlimited() else self.shape[-1]
            values = chars.for_writing(data, str(self._attributes["_Encoding"].value), length)
        else:
            least = self._attributes.get("least_significant_digit")
            if least is not None and self._type.dtype.kind == "f" and not isinstance(least.value, str):
                data = self._rounded(data, least.python)
            values = self._packing.pack(data, scale=self.scale)
        shape = self.shape
        unlimited = tuple([each.unlimited for each in self._dims])
        picked = selections.for_writing(elem, shape, unlimited, values.shape)
        values = picked.fit(values)
        if not values.size:
            return
        self._session.check_writable()
        if self._quantize is not None:
            digits, mode = self._quantize
            try:
                values = quantize.apply(values, mode, digits, self.get_fill_value())
            except SettingError as error:
                raise error.add(store=str(self._stored.where.store), path=self._stored.where.path)
        if self._encode is not None:
            values = self._encode(values)
        self._store(picked.selection, values, picked.grown)

    def _rounded(self, data: ArrayLike, digit: Any) -> Any:
        """Return data rounded as the attribute ``least_significant_digit`` says."""
        where = self._stored.where
        try:
            return quantize.least_significant_digit(np.ma.asanyarray(data), int(digit))
        except SettingError as error:
            raise error.add(store=str(where.store), path=where.path)
        except (TypeError, ValueError, OverflowError):
            raise SettingError(
                "the attribute least_significant_digit is no digit that values can be rounded to",
                store=str(where.store),
                path=where.path,
                found=digit,
                expected="an integer",
                remedy="remove the attribute, or correct it",
            ) from None

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:  # noqa: FBT001 - NumPy's
        if copy is False:
            raise ValueError("a variable is read from a store: the result is always a copy")
        return np.asarray(self[...], dtype)

    def getValue(self) -> Any:  # noqa: N802 - netCDF4-python's name
        """Return the value of a scalar. Raises IndexError for other variables."""
        if self._dims:
            raise IndexError("to retrieve values from a non-scalar variable, use slicing")
        return self[...]

    def assignValue(self, val: Any) -> None:  # noqa: N802 - netCDF4-python's name
        """Store the value of a scalar. Raises IndexError for other variables."""
        if self._dims:
            raise IndexError("to assign values to a non-scalar variable, use slicing")
        self[...] = val

    def read_raw(self, selection: Selection) -> NDArray[Any]:
        """Return stored values, neither masked nor scaled. See `omnizarr.netcdf.header.Source`."""
        self._session.records.store()
        array = self._current()
        data = array.get_basic_selection(0) if self._stored.is_scalar and array.ndim else array[selection]
        values = np.asanyarray(data)  # with the mask of an array whose elements may be missing
        return values if self._decode is None else self._decode(values)

    def write_raw(self, selection: Selection, values: NDArray[Any]) -> None:
        """Store values of the type's dtype unchanged, neither packed nor quantized. No dimension grows."""
        self._session.records.store()
        self._write(selection, values if self._encode is None else self._encode(values))

    def _read(self, elem: Any) -> Any:
        if self._session.records.waits and self._dims:
            waiting = self._waiting(elem)
            if waiting is not None:
                return waiting
        array = self._current()
        if self._dims and selections.is_basic(elem):
            data = array[elem]
        else:
            picked = selections.for_reading(elem, array.shape if self._dims else ())
            if self._dims:
                data = array.get_orthogonal_selection(picked.selection).reshape(picked.shape)
            else:
                data = array[0] if array.ndim else array[()]
                data = np.asanyarray(data) if self._decode is None else self._decode(np.asanyarray(data))
                return data[()] if self._type is types.STRING else data  # an array, but a str for a string
        return data if self._decode is None else self._decode(np.asanyarray(data))

    def _waiting(self, elem: Any) -> Any:
        """Return elements of which some are pending; None if none are, or if they have been stored now."""
        picked = selections.for_reading(elem, self.shape)
        found = self._session.records.read(self, picked.selection) if 0 not in picked.lengths else None
        if found is None:
            return None
        values = np.asarray(found.values, self._array.dtype)
        if found.before is not None:
            values = np.concatenate((self._current().get_orthogonal_selection(found.before), values))
        data = values.reshape(picked.shape)
        return data if self._decode is None else self._decode(data)

    def _current(self) -> Array:
        """Return the array with the current lengths of the dimensions, whatever its document states."""
        array, shape = self._array, self.shape  # read once, because other threads may change them
        if shape != array.shape and not self._stored.is_scalar:
            metadata = resizing.with_shape(self._stored.metadata, shape)
            self._array = array = Array(array.store_path, metadata, array.config)
        return array

    def _store(self, selection: Any, values: NDArray[Any], grown: tuple[int, ...]) -> None:
        """Write elements, or keep them pending if they are beyond the stored end."""
        records = self._session.records
        if place_of(self, selection) is not Place.INSIDE and records.write(self, selection, values, grown):
            return
        if records.waits:
            records.settle(self, selection)
        self._write(selection, values)

    def _write(self, selection: Any, values: NDArray[Any]) -> None:
        """Write elements before the stored end."""
        array = self._current()
        if self._stored.is_scalar:
            array[...] = values
        else:
            array.set_orthogonal_selection(selection, values)

    @property
    def _is_encoded(self) -> bool:
        """Whether chars are shown as strings."""
        return self._type is types.CHAR and self.chartostring and bool(self._dims) and "_Encoding" in self._attributes

    # -- attributes -------------------------------------------------------------------

    def getncattr(self, name: str, encoding: str = "utf-8") -> Any:
        """Return the value of an attribute, like `Group.getncattr`. The ``_FillValue`` of chars is bytes."""
        value = super().getncattr(name, encoding)
        return self._shown_fill_value() if name == "_FillValue" else value

    def _shown_fill_value(self) -> Any:
        value = self._attributes["_FillValue"].python
        is_char = self._type is types.CHAR and isinstance(value, str)
        return value.encode("utf-8", "surrogateescape") if is_char else value

    def setncatts(self, attributes: Mapping[str, Any]) -> None:
        """Set several attributes in one change.

        Raises FixedAttributeError for ``_FillValue``, which is an argument of `Group.createVariable`, and for
        ``_nczarr_maxstrlen`` if strings are stored already.
        """
        is_widened = MAXSTRLEN in attributes and self._type is types.STRING
        if is_widened and self.array.nchunks_initialized:
            raise FixedAttributeError(
                "strings are stored already, with the width that they had",
                path=self.full_name[1:],
                found=MAXSTRLEN,
                remedy="pass maxstrlen= to createVariable",
            )
        if self._ncstring:
            attributes = {name: self._attribute(name, each, as_string=True) for name, each in attributes.items()}
        super().setncatts(attributes)
        if is_widened:
            self._group.relength(self)

    def _refuse_reserved(self, name: str) -> None:
        super()._refuse_reserved(name)
        if name == "_FillValue":
            raise FixedAttributeError(
                "_FillValue is set when the variable is created",
                path=self.full_name[1:],
                remedy="pass fill_value= to createVariable",
            )

    def _change_attributes(self, change: Callable[[Attributes], Attributes]) -> None:
        session = self._session
        with session.lock:
            header = session.change_variable(
                self._stored.where,
                self._group.full_name,
                self._group.sizes(),
                lambda header: _with_shown(header, change(shown_attributes(header))),
            )
            self._adopt_attributes(shown_attributes(header))

    def _adopt_attributes(self, attributes: Attributes) -> None:
        put = object.__setattr__
        put(self, "_quantize", filters.quantization(attributes))
        put(self, "_known_packing", None)  # created when data is read or written
        put(self, "_attributes", attributes)

    @property
    def _packing(self) -> masking.Packing:
        """What the attributes mean for the values."""
        found = self._known_packing
        if found is None:
            no_fill = "_NoFill" in self._special
            attributes = self._attributes
            if _FILL_VALUE not in attributes:
                # Before v3, xarray masks by the fill value of the array, which netCDF does not show.
                mask = quirks.mask_of_xarray(self._stored.metadata, self._type)
                attributes = attributes if mask is None else {**attributes, _FILL_VALUE: mask}
            found = self._known_packing = masking.Packing.of(attributes, self._type, no_fill=no_fill)
        return found

    def _adopt_array(self, array: Array) -> None:
        self._array = array
        # Attributes are read when they are needed; `optional` arrays are never created here.
        fill = self._attributes[_FILL_VALUE].value[0] if is_optional(array.dtype) else None
        self._decode = elements.decoder(array.dtype, self._type, fill)
        self._encode = elements.encoder(array.dtype, self._type, fill, truncate=self._truncate)

    def _move(self, name: str, where: StorePath) -> None:
        """Use another name and place."""
        self._name = name
        self._restore(replace(self._stored, where=where))

    def _restore(self, stored: Stored) -> None:
        """Use another form of storage from now on."""
        config = self._array.config
        self._stored = stored
        self._adopt_array(Array(stored.where, stored.metadata, config))

    # -- Python protocols ------------------------------------------------------------------

    def __reduce__(self) -> tuple[Any, ...]:
        return operator.getitem, (self._group, self._name), {name: getattr(self, name) for name in _SETTINGS}

    def __setstate__(self, state: Mapping[str, bool]) -> None:
        for name, value in state.items():
            setattr(self, name, value)
        self._adopt_array(self._array)

    def __repr__(self) -> str:
        lines = [
            "<class 'omnizarr.netcdf.Variable'>",
            f"{self._type.name} {self._name}({', '.join(self.dimensions)})",
        ]
        lines += [f"    {name}: {value.python}" for name, value in self._attributes.items()]
        if self._group.parent is not None:
            lines.append(f"path = {self._group.path}")
        lines.append(
            f"unlimited dimensions: {', '.join(each.name for each in self._dims if each.isunlimited())}".rstrip()
        )
        lines.append(f"current shape = {self.shape}")
        fill = self.get_fill_value()
        own = "_FillValue" in self._attributes
        lines.append(
            "filling off" if fill is None else f"filling on, {'' if own else 'default '}_FillValue of {fill!r} used"
        )
        return visible_lines("\n".join(lines))


def shown_attributes(header: VariableHeader) -> Attributes:
    """Return the attributes that users see, including those that state how numbers are rounded."""
    return {**{name: each for name, each in header.special.items() if name in _QUANTIZED}, **header.attributes}


def _with_shown(header: VariableHeader, attributes: Attributes) -> VariableHeader:
    """Return a header with the attributes that users see."""
    kept = {name: each for name, each in header.special.items() if name not in _QUANTIZED}
    return replace(
        header,
        attributes={name: each for name, each in attributes.items() if name not in _QUANTIZED},
        special={**kept, **{name: each for name, each in attributes.items() if name in _QUANTIZED}},
    )
