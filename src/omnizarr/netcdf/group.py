"""Groups: dimensions, variables, attributes, and groups below, with the names of netCDF4-python.

Spec: NCZarr, "The NCZarr Data Model".
"""

from __future__ import annotations

import operator
import posixpath
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from dataclasses import replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, NoReturn, Self

import numpy as np

from omnizarr.errors import (
    MetadataError,
    NodeExistsError,
    NodeNotFoundError,
    NotRepresentableError,
    OmnizarrError,
    UnknownDataTypeError,
)
from omnizarr.model import JSON, GroupMetadata
from omnizarr.netcdf import filters, types
from omnizarr.netcdf.attributed import Attributed, Attributes, checked_name
from omnizarr.netcdf.dimension import Dimension
from omnizarr.netcdf.header import Attribute, DimensionHeader, GroupHeader, VariableHeader
from omnizarr.netcdf.in_file import FORMATS, FileVariable, InFile
from omnizarr.netcdf.layouts.contract import Layout, Loaded
from omnizarr.netcdf.session import or_nothing
from omnizarr.netcdf.types import AnyType, UserType
from omnizarr.netcdf.variable import MAXSTRLEN, Variable
from omnizarr.nodes import hierarchy, holdings
from omnizarr.nodes.config import ArrayConfig
from omnizarr.nodes.location import StorePath
from omnizarr.stores import verbs
from omnizarr.support import suggestions
from omnizarr.support.text import visible_lines

if TYPE_CHECKING:
    from omnizarr.netcdf.session import Session

_NO_USER_TYPES: Final = "store its fields, or its numbers, in variables of atomic types"


class Group(Attributed):
    """A group, created by `Group.createGroup`. The `omnizarr.netcdf.Dataset` itself is the root group.

    Examples
    --------
    >>> from omnizarr import netcdf
    >>> ds = netcdf.Dataset({}, "w")
    >>> forecast = ds.createGroup("model/forecast")
    >>> forecast.path, forecast.parent.path
    ('/model/forecast', '/model')
    """

    __slots__ = (
        *("_dimensions", "_groups", "_name", "_notes", "_parent", "_special", "_types", "_variables", "_where"),
        "_no_fill",
    )

    def __init__(self, parent: Group, name: str) -> None:
        """Define a group directly below another one, like `Group.createGroup`, but raise an error if it exists."""
        session = parent._session
        session.check_writable()
        name = checked_name(name)
        with session.lock:
            parent._refuse(name, parent._groups, "group")
            parent._refuse(name, parent._variables, "variable")
            parent._add_group(GroupHeader(name=name), self)

    def _begin(self, session: Session, parent: Group | None, header: GroupHeader, loaded: Loaded) -> None:
        """Set the attributes of the object from a header."""
        self._session = session
        self._no_fill = False
        self._parent = parent
        self._name = header.name
        self._where: StorePath = loaded.groups[self.full_name]
        self._attributes = dict(header.attributes)
        self._special: Attributes = dict(header.special)
        self._types: dict[str, AnyType] = dict(header.types)
        self._notes = header.notes
        self._dimensions = {name: Dimension(self, each) for name, each in header.dimensions.items()}
        self._variables: dict[str, Variable] = {}
        # Groups below may refer to dimensions here, and the other way round.
        self._groups = {name: Group._of(session, self, each, loaded) for name, each in header.groups.items()}

    @staticmethod
    def _of(session: Session, parent: Group, header: GroupHeader, loaded: Loaded) -> Group:
        """Return a group that is already stored."""
        group = Group.__new__(Group)
        group._begin(session, parent, header, loaded)
        return group

    def _bind_variables(self, header: GroupHeader, loaded: Loaded, dims: Mapping[str, Dimension]) -> None:
        """Create the variables, once all dimensions of the dataset exist."""
        above = self.full_name
        for name in header.variables:
            found = loaded.variables[f"{above}/{name}"]
            own = tuple([dims[path] for path in found.dimensions])
            if isinstance(found, InFile):
                self._variables[name] = FileVariable.made(self, name, own, found)
            else:
                self._variables[name] = Variable._of(self, name, own, found)
        for name, group in self._groups.items():
            group._bind_variables(header.groups[name], loaded, dims)

    # -- properties ---------------------------------------------------------------

    @property
    def name(self) -> str:
        """Name; "/" for the root. Assigning to it renames the group."""
        return self._name or "/"

    @name.setter
    def name(self, name: str) -> None:
        if self._parent is None:
            raise NotRepresentableError("the root group has no name", found=name)
        self._parent.renameGroup(self._name, name)

    @property
    def path(self) -> str:
        """Path from the root, such as ``/model/forecast``; "/" for the root."""
        return self.full_name or "/"

    @property
    def full_name(self) -> str:
        """Path from the root with which names of variables and dimensions begin; "" for the root."""
        return "" if self._parent is None else f"{self._parent.full_name}/{self._name}"

    @property
    def parent(self) -> Group | None:
        """The group that contains this one; None for the root."""
        return self._parent

    @property
    def dimensions(self) -> Mapping[str, Dimension]:
        """The dimensions defined here, by name."""
        return MappingProxyType(self._dimensions)

    @property
    def variables(self) -> Mapping[str, Variable]:
        """The variables here, by name."""
        return MappingProxyType(self._variables)

    @property
    def groups(self) -> Mapping[str, Group]:
        """The groups directly below, by name."""
        return MappingProxyType(self._groups)

    @property
    def cmptypes(self) -> Mapping[str, UserType]:
        """The structs in the dataset, in the form in which netCDF shows them."""
        return self._types_of("compound")

    @property
    def enumtypes(self) -> Mapping[str, UserType]:
        """Types of named numbers: ``_bool_t`` if there are booleans."""
        return self._types_of("enum")

    @property
    def vltypes(self) -> Mapping[str, UserType]:
        """Types of variable length."""
        return self._types_of("vlen")

    def _types_of(self, kind: str) -> Mapping[str, UserType]:
        return {name: each for name, each in self._types.items() if isinstance(each, UserType) and each.kind == kind}

    @property
    def data_model(self) -> str:
        """The data model, under netCDF4-python's name: "NETCDF4", unless it is a file of another one."""
        said = self._root()._special.get("_Format") if self._session.file else None
        return "NETCDF4" if said is None else FORMATS.get(str(said.value), "NETCDF4")

    @property
    def file_format(self) -> str:
        """The same as `data_model`."""
        return self.data_model

    @property
    def disk_format(self) -> str:
        """The format on disk: "NCZARR"; "HDF5" or "NETCDF3" of a file."""
        if not self._session.file:
            return "NCZARR"
        return "NETCDF3" if self.data_model.startswith("NETCDF3") else "HDF5"

    @property
    def header(self) -> GroupHeader:
        """The group with everything below, as a value."""
        return GroupHeader(
            name=self._name,
            dimensions={name: each.header for name, each in dict(self._dimensions).items()},
            types=dict(self._types),
            variables={name: each.header for name, each in dict(self._variables).items()},
            attributes=dict(self._attributes),
            special=dict(self._special),
            groups={name: each.header for name, each in dict(self._groups).items()},
            notes=self._notes,
        )

    def sizes(self) -> dict[str, DimensionHeader]:
        """Return all dimensions of the dataset, by full name."""
        return {each.path: each.header for group in self._root().walk() for each in list(group._dimensions.values())}

    def walk(self) -> Iterator[Group]:
        """Yield this group and all groups below."""
        yield self
        for group in list(self._groups.values()):
            yield from group.walk()

    # -- the dataset -----------------------------------------------------

    def filepath(self, encoding: str | None = None) -> str:
        """Return the path or URL of the dataset."""
        return self._root().filepath(encoding)

    def isopen(self) -> bool:
        """Return whether the dataset is open."""
        return self._session.is_open

    @property
    def _isopen(self) -> int:
        """1 while the dataset is open, otherwise 0: what programs for netCDF4-python ask."""
        return int(self.isopen())

    @property
    def keepweakref(self) -> bool:
        """The keyword of the dataset, which has no effect: a dataset without references is always closed."""
        kept: bool = self._root()._keepweakref
        return kept

    def sync(self) -> None:
        """Call `Dataset.sync`."""
        self._root().sync()

    def close(self) -> None:
        """Close the dataset."""
        self._root().close()

    def acquire_context(self, needs_lock: bool = True) -> AbstractContextManager[Self]:  # noqa: FBT001, FBT002
        """Return a context manager that returns the group, which xarray's ``NetCDF4DataStore`` needs.

        Examples
        --------
        >>> import xarray
        >>> from omnizarr import netcdf
        >>> ds = netcdf.Dataset({}, "w")
        >>> ds.createVariable("depth", "f4").units = "m"
        >>> xarray.open_dataset(xarray.backends.NetCDF4DataStore(ds))["depth"].units
        'm'
        """
        return nullcontext(self)

    def _root(self) -> Group:
        group = self
        while group._parent is not None:
            group = group._parent
        return group

    def __getitem__(self, path: str) -> Variable | Group:
        """Return the variable or group at a path: ``ds["model/temp"]``. A leading slash means the root.

        Raises
        ------
        NodeNotFoundError
            If there is none (a KeyError).
        """
        self._session.check_open()
        if not isinstance(path, str):
            raise TypeError(f"{path!r}: variables and groups have names")
        group: Group = self._root() if path.startswith("/") else self
        parts = _parts(path)
        for at, part in enumerate(parts):
            if at == len(parts) - 1 and part in group._variables:
                return group._variables[part]
            if part not in group._groups:
                near = [*group._variables, *group._groups] if at == len(parts) - 1 else [*group._groups]
                raise NodeNotFoundError(
                    "there is no such variable or group", path=path.strip("/"), remedy=_near(part, near)
                )
            group = group._groups[part]
        return group

    def __contains__(self, path: object) -> bool:
        try:
            return isinstance(path, str) and self[path] is not None
        except NodeNotFoundError:
            return False

    def get_variables_by_attributes(self, **kwargs: Any) -> list[Variable]:
        """Return the variables here whose attributes have the given values, or satisfy the given functions.

        A function gets None for a missing attribute.

        >>> from omnizarr import netcdf
        >>> ds = netcdf.Dataset({}, "w")
        >>> ds.createVariable("lat", "f4").units = "degrees_north"
        >>> [each.name for each in ds.get_variables_by_attributes(units=lambda u: u is not None)]
        ['lat']
        """
        self._session.check_open()
        return [each for each in list(self._variables.values()) if all(map(_test(each), kwargs.items()))]

    # -- definitions ------------------------------------------------------------------

    def createDimension(self, dimname: str, size: int | None = None) -> Dimension:  # noqa: N802 - netCDF4-python's name
        """Define a dimension.

        Parameters
        ----------
        dimname : str
        size : int, optional
            Length; None or 0: unlimited. Other types than int raise a TypeError.

        Raises
        ------
        NodeExistsError
            If the group has a dimension of this name.
        NodeNameError, ReadOnlyError
        NotRepresentableError
            If it is unlimited, and the layout does not support that.
        """
        session = self._session
        session.check_writable()
        dimname = checked_name(dimname)
        length = 0 if size is None else operator.index(size)
        if length < 0 or length >= 2**63:
            raise MetadataError("the length of a dimension", path=dimname, found=size, expected="0 to 2^63-1")
        new = DimensionHeader(dimname, length, not length)
        with session.lock:
            self._refuse(dimname, self._dimensions, "dimension")
            self._adopt(GroupHeader(dimensions={dimname: new}))
        return self._dimensions[dimname]

    def _adopt(self, header: GroupHeader) -> None:
        """Set the dimensions and attributes from a header, in one change."""
        new = {name: each for name, each in header.dimensions.items() if name not in self._dimensions}
        _refuse_unlimited(self._session.layout, new.values())

        def adopted(old: GroupHeader) -> GroupHeader:
            for name in new:
                self._refuse(name, old.dimensions, "dimension")  # of another dataset object, or process
            attributes = {**old.attributes, **header.attributes}
            return replace(old, dimensions={**old.dimensions, **new}, attributes=attributes)

        if not (new or header.attributes):
            return
        changed = self._change(adopted)
        self._dimensions.update({name: Dimension(self, each) for name, each in new.items()})
        if header.attributes:
            self._adopt_attributes(changed)

    def createGroup(self, groupname: str) -> Group:  # noqa: N802 - netCDF4-python's name
        """Define a group and missing groups above it, and return it. An existing group is returned."""
        session = self._session
        session.check_writable()
        group = self
        for part in [checked_name(part) for part in _parts(groupname)]:
            with session.lock:
                if part not in group._groups:
                    group._refuse(part, group._variables, "variable")
                    group._add_group(GroupHeader(name=part))
                group = group._groups[part]
        return group

    def _add_group(self, header: GroupHeader, new: Group | None = None) -> Group:
        (group,) = self._add_groups([header], new)
        return group

    def _add_groups(self, headers: Sequence[GroupHeader], new: Group | None = None) -> list[Group]:
        """Create groups directly below, without members, all or none, and list them in one change."""
        made: dict[str, StorePath] = {}
        listed = {each.name: GroupHeader(name=each.name) for each in headers}
        try:
            for each in headers:
                made[each.name] = self._session.create_group(self._where / each.name, each)
            if made:
                self._change(lambda old: replace(old, groups={**old.groups, **listed}))
        except BaseException:
            for where in made.values():
                with suppress(OmnizarrError):
                    hierarchy.delete(where)
            raise
        found = []
        for each in headers:
            alone = Loaded(each, self._session.layout, groups={f"{self.full_name}/{each.name}": made[each.name]})
            group = Group.__new__(Group) if new is None else new
            group._begin(self._session, self, replace(each, groups={}), alone)
            self._groups[each.name] = group
            found.append(group)
        return found

    def createVariable(  # noqa: N802 - netCDF4-python's name
        self,
        varname: str,
        datatype: Any,
        dimensions: str | Dimension | Sequence[str | Dimension] = (),
        compression: str | None = None,
        zlib: bool = False,  # noqa: FBT001, FBT002 - netCDF4-python's signature
        complevel: int | None = 4,
        shuffle: bool = True,  # noqa: FBT001, FBT002
        szip_coding: str = "nn",
        szip_pixels_per_block: int = 8,
        blosc_shuffle: int = 1,
        fletcher32: bool = False,  # noqa: FBT001, FBT002
        contiguous: bool = False,  # noqa: FBT001, FBT002
        chunksizes: Sequence[int] | None = None,
        endian: str = "native",
        least_significant_digit: int | None = None,
        significant_digits: int | None = None,
        quantize_mode: str = "BitGroom",
        fill_value: Any = None,
        chunk_cache: int | None = None,
        *,
        maxstrlen: int | None = None,
    ) -> Variable:
        """Define a variable.

        Parameters
        ----------
        varname : str
            Name or path. Missing groups in the path are created.
        datatype : str, type, or numpy.dtype
            ``"f4"``, ``np.int16``, ``"S1"`` (char), ``str`` (string), ``"double"``; a byte order is kept.
        dimensions : sequence of str or Dimension
            Dimensions of this group or of groups above; () for a scalar.
        compression : str, optional
            "zlib", "zstd", "bzip2", "szip", "blosc_lz", "blosc_lz4", "blosc_lz4hc", "blosc_zlib" or "blosc_zstd".
        zlib : bool
            The same as ``compression="zlib"``.
        complevel : int
        shuffle : bool
            With zlib: whether to store bytes of equal significance together.
        szip_coding, szip_pixels_per_block, blosc_shuffle
            Parameters of these codecs.
        fletcher32 : bool
            Whether to store a checksum with each chunk.
        contiguous : bool
            Whether to store the variable in one chunk.
        chunksizes : sequence of int, optional
            Lengths of chunks along each dimension.
        endian : {"native", "little", "big"}
        least_significant_digit, significant_digits : int, optional
            Number of decimal digits to keep after the point, or in total. Fewer digits compress better.
        quantize_mode : {"BitGroom", "GranularBitRound", "BitRound"}
            Algorithm for `significant_digits`, which are bits for BitRound.
        fill_value : scalar or False, optional
            Value of unwritten elements. The default is netCDF's default. "default": the same, and an attribute
            states it. False: undefined. A char can be given as a number of one digit.
        chunk_cache : int, optional
            Bytes of decoded chunks to cache.
        maxstrlen : int, optional
            Maximum bytes of a string. The default is the attribute ``_nczarr_default_maxstrlen`` of the root, or 128.

        Raises
        ------
        NodeExistsError
            If the group has a variable of this name.
        NodeNotFoundError
            If a dimension does not exist.
        UnknownDataTypeError
            If netCDF has no such type, or it is user-defined, which NCZarr cannot store.
        NodeNameError, ReadOnlyError, MetadataError, ValueError
        """
        session = self._session
        session.check_writable()
        group, _, name = varname.rpartition("/")
        if group:
            options = {key: value for key, value in locals().items() if key in _OPTIONS}
            return self.createGroup(group).createVariable(name, datatype, dimensions, **options)
        name = checked_name(name)
        nc_type = _parsed_type(datatype)
        fill_value = self._fill_value(fill_value, nc_type)
        dims = self._found_dimensions(dimensions)
        special = filters.of_options(
            nc_type,
            tuple(each.header for each in dims),
            compression=compression,
            zlib=zlib,
            complevel=complevel,
            shuffle=shuffle,
            szip_coding=szip_coding,
            szip_pixels_per_block=szip_pixels_per_block,
            blosc_shuffle=blosc_shuffle,
            fletcher32=fletcher32,
            contiguous=contiguous,
            chunksizes=chunksizes,
            endian=_endian(endian, datatype),
            significant_digits=significant_digits,
            quantize_mode=quantize_mode,
            fill_value=fill_value,
        )
        attributes: Attributes = {}
        if fill_value is not None and fill_value is not False:
            attributes["_FillValue"] = _fill_attribute(fill_value, nc_type, name)
        if least_significant_digit is not None:
            attributes["least_significant_digit"] = Attribute.of(np.int64(least_significant_digit))
        if maxstrlen is not None:
            attributes[MAXSTRLEN] = _maxstrlen(maxstrlen, name)
        if chunk_cache is not None:
            ArrayConfig.of({"chunk_cache": chunk_cache})  # refused before anything is created
        header = VariableHeader(
            name=name,
            type=nc_type,
            dimensions=tuple(each.path for each in dims),
            attributes=attributes,
            special=special,
        )
        with session.lock:
            (variable,) = self._add_variables([(header, dims)])
        if chunk_cache is not None:
            variable.set_var_chunk_cache(chunk_cache)
        return variable

    def _fill_value(self, given: Any, nc_type: types.NcType) -> Any:
        """Return the fill value for "default", or for none after `Dataset.set_fill_off`."""
        if given is None:
            return False if self._root()._no_fill and not nc_type.is_text else None
        if not isinstance(given, str) or given != "default" or nc_type is types.STRING:
            return given
        return nc_type.default_fill

    def _add_variables(self, given: Sequence[tuple[VariableHeader, tuple[Dimension, ...]]]) -> list[Variable]:
        """Create variables, all or none, and list them in one change."""
        sizes = self.sizes()
        made: list[Variable] = []
        listed: dict[str, Mapping[str, JSON] | None] = {}
        try:
            for header, dims in given:
                variable, listed[header.name] = self._made(header, dims, sizes)
                made.append(variable)
            new = {each.name: each.header for each in made}
            self._change(lambda old: replace(old, variables={**old.variables, **new}), listed)
        except BaseException:
            with suppress(OmnizarrError):
                for each in made:
                    hierarchy.delete(each._stored.where)
            raise
        self._variables.update({each.name: each for each in made})
        return made

    def _made(
        self, header: VariableHeader, dims: tuple[Dimension, ...], sizes: Mapping[str, DimensionHeader]
    ) -> tuple[Variable, Mapping[str, JSON]]:
        """Store a new variable, which is not listed yet. Return it, and its entry in the group."""
        self._refuse(header.name, self._variables, "variable")
        self._refuse(header.name, self._groups, "group")
        session = self._session
        if isinstance(header.type, UserType) and session.layout.why_not(header.type):
            raise _no_user_type(header.name, header.type.name)
        default = self._root()._attributes.get("_nczarr_default_maxstrlen")
        said = MAXSTRLEN in header.attributes or MAXSTRLEN in header.special
        if header.type is types.STRING and not said and default is not None:
            header = replace(header, special={**header.special, MAXSTRLEN: default})
        where = self._where / header.name
        listed = session.create_array(where, header, self.full_name, sizes)
        with or_nothing(where):
            read, stored = session.read_variable(where, self.full_name, sizes, listed or None)
            return Variable(self, read, dims, stored), listed

    def _found_dimensions(self, given: str | Dimension | Sequence[str | Dimension]) -> tuple[Dimension, ...]:
        """Return dimensions by their names, as visible from here."""
        listed = [given] if isinstance(given, str | Dimension) else list(given)
        return tuple(each if isinstance(each, Dimension) else self._dimension(each) for each in listed)

    def _dimension(self, name: str) -> Dimension:
        group: Group | None = self
        seen: list[str] = []
        if "/" in name:
            at, _, name = name.rpartition("/")
            found = self._root()[at] if at else self._root()
            group = found if isinstance(found, Group) else None
        while group is not None:
            if name in group._dimensions:
                return group._dimensions[name]
            seen += group._dimensions
            group = group._parent
        raise NodeNotFoundError(
            "there is no such dimension in this group or those above",
            path=self.full_name[1:],
            found=name,
            remedy=_near(name, seen) or "create it with createDimension",
        )

    def _refuse(self, name: str, members: Mapping[str, object], kind: str) -> None:
        if name in members:
            raise NodeExistsError(
                f"there is a {kind} of this name already",
                store=str(self._where.store),
                path=f"{self.full_name}/{name}"[1:],
            )

    def createCompoundType(self, datatype: Any, datatype_name: str) -> NoReturn:  # noqa: N802
        """Raise UnknownDataTypeError: NCZarr has no user-defined types."""
        raise _no_user_type(datatype_name, "compound")

    def createVLType(self, datatype: Any, datatype_name: str) -> NoReturn:  # noqa: N802
        """Raise UnknownDataTypeError: NCZarr has no user-defined types."""
        raise _no_user_type(datatype_name, "vlen")

    def createEnumType(self, datatype: Any, datatype_name: str, enum_dict: Any) -> NoReturn:  # noqa: N802
        """Raise UnknownDataTypeError: NCZarr has no user-defined types."""
        raise _no_user_type(datatype_name, "enum")

    # -- renaming ---------------------------------------------------------------------

    def renameDimension(self, oldname: str, newname: str) -> None:  # noqa: N802
        """Rename a dimension."""
        newname = checked_name(newname)
        with self._renaming(oldname, newname, lambda: self._dimensions, "dimension"):
            dim = self._dimensions[oldname]
            users = self._users(dim)
            # Both names exist until all variables have the new one, so that concurrent readers find one of them.
            self._change(lambda old: replace(old, dimensions=_with_alias(old.dimensions, oldname, newname)))
            try:
                dim._name = newname
                self._restate(users)
            except BaseException:
                dim._name = oldname
                with suppress(OmnizarrError):
                    self._restate(users)
                    self._change(lambda old: replace(old, dimensions=_without(old.dimensions, newname)))
                raise
            self._dimensions = _renamed(self._dimensions, oldname, newname)
            self._change(
                lambda old: replace(old, dimensions=_renamed(_without(old.dimensions, newname), oldname, newname))
            )

    def renameVariable(self, oldname: str, newname: str) -> None:  # noqa: N802
        """Rename a variable. Its data moves with it."""
        newname = checked_name(newname)
        with self._renaming(oldname, newname, lambda: self._variables, "variable"):
            variable = self._variables[oldname]
            before, where = variable._stored.where, self._where / newname
            said = self._session.listed(before)
            listed = {oldname: None, newname: said} if isinstance(said, Mapping) else None
            _copy(before, where)
            with or_nothing(where):
                self._change(lambda old: replace(old, variables=_renamed(old.variables, oldname, newname)), listed)
            variable._move(newname, where)
            self._variables = _renamed(self._variables, oldname, newname)
            hierarchy.delete(before)

    def renameGroup(self, oldname: str, newname: str) -> None:  # noqa: N802
        """Rename a group. Everything in it moves with it."""
        newname = checked_name(newname)
        with self._renaming(oldname, newname, lambda: self._groups, "group"):
            group = self._groups[oldname]
            before, where = group._where, self._where / newname
            _copy(before, where)
            with or_nothing(where):
                self._change(lambda old: replace(old, groups=_renamed(old.groups, oldname, newname)))
            group._name = newname
            self._groups = _renamed(self._groups, oldname, newname)
            group._move(where)
            self._restate(self._users(*(dim for below in group.walk() for dim in below._dimensions.values())))
            hierarchy.delete(before)

    @contextmanager
    def _renaming(
        self, oldname: str, newname: str, members: Callable[[], Mapping[str, object]], kind: str
    ) -> Iterator[None]:
        self._session.check_writable()
        with self._session.lock:
            self._session.records.store()
            found = members()
            if oldname not in found:
                raise NodeNotFoundError(
                    f"there is no such {kind}",
                    path=f"{self.full_name}/{oldname}"[1:],
                    remedy=_near(oldname, list(found)),
                )
            self._refuse(newname, found, kind)
            yield

    def _move(self, where: StorePath) -> None:
        self._where = where
        for name, variable in self._variables.items():
            variable._move(name, where / name)
        for name, group in self._groups.items():
            group._move(where / name)

    def _restate(self, variables: Sequence[Variable]) -> None:
        """Write the names of the variables' dimensions again."""
        sizes = self.sizes()
        for each in variables:
            dimensions = each.header.dimensions
            self._session.change_variable(
                each._stored.where,
                each._group.full_name,
                sizes,
                lambda header, dimensions=dimensions: replace(header, dimensions=dimensions),  # type: ignore[misc]
            )

    def _users(self, *dims: Dimension) -> list[Variable]:
        """Return the variables that have one of the dimensions. They can only be here or below."""
        return [
            each
            for group in self._root().walk()
            for each in list(group._variables.values())
            if any(dim in dims for dim in each._dims)
        ]

    # -- attributes -------------------------------------------------------------------

    def _change_attributes(self, change: Callable[[Attributes], Attributes]) -> None:
        with self._session.lock:
            self._adopt_attributes(self._change(lambda old: replace(old, attributes=change(dict(old.attributes)))))

    def _adopt_attributes(self, stored: GroupMetadata) -> None:
        # Keep what a reader would find, because texts may have other spaces.
        self._attributes = dict(self._session.read_group(self._where, stored).attributes)

    def _change(
        self,
        change: Callable[[GroupHeader], GroupHeader],
        listed: Mapping[str, Mapping[str, JSON] | None] | None = None,
    ) -> GroupMetadata:
        """Apply `change` to the stored group, and return the content of its document."""
        return self._session.change_group(self._where, change, listed)

    def relength(self, variable: Variable) -> None:
        """Give string variables without stored data the width of the attribute ``_nczarr_maxstrlen``."""
        with self._session.lock:
            session, where = self._session, variable._stored.where
            session.retype(where, variable.header, self.full_name, self.sizes())
            listed = session.listed(where)
            variable._restore(session.read_variable(where, self.full_name, self.sizes(), listed)[1])

    # -- settings of all variables -------------------------------------------------------

    def set_auto_mask(self, value: bool) -> None:  # noqa: FBT001 - netCDF4-python's signature
        """Call `Variable.set_auto_mask` for all variables here and below."""
        self._for_all(lambda each: each.set_auto_mask(value))

    def set_auto_scale(self, value: bool) -> None:  # noqa: FBT001
        """Call `Variable.set_auto_scale` for all variables here and below."""
        self._for_all(lambda each: each.set_auto_scale(value))

    def set_auto_maskandscale(self, value: bool) -> None:  # noqa: FBT001
        """Call `Variable.set_auto_maskandscale` for all variables here and below."""
        self._for_all(lambda each: each.set_auto_maskandscale(value))

    def set_always_mask(self, value: bool) -> None:  # noqa: FBT001
        """Call `Variable.set_always_mask` for all variables here and below."""
        self._for_all(lambda each: each.set_always_mask(value))

    def set_auto_chartostring(self, value: bool) -> None:  # noqa: FBT001
        """Call `Variable.set_auto_chartostring` for all variables here and below."""
        self._for_all(lambda each: each.set_auto_chartostring(value))

    def set_ncstring_attrs(self, value: bool) -> None:  # noqa: FBT001
        """Call `Variable.set_ncstring_attrs` for all variables here and below."""
        self._for_all(lambda each: each.set_ncstring_attrs(value))

    def set_collective(self, value: bool) -> None:  # noqa: FBT001
        """Do nothing: reads and writes never wait for other processes."""

    def _for_all(self, do: Callable[[Variable], None]) -> None:
        for group in self.walk():
            for each in group._variables.values():
                do(each)

    # -- Python protocols ------------------------------------------------------------------

    def __reduce__(self) -> tuple[Any, ...]:
        return operator.getitem, (self._root(), self.path)

    def __repr__(self) -> str:
        lines = [f"<class 'omnizarr.netcdf.{type(self).__name__}'>"]
        if self._parent is None:
            lines.append(f"root group ({self.data_model} data model, file format {self.disk_format}):")
        else:
            lines.append(f"group {self.path}:")
        if not self._session.is_open:
            lines[-1] = "closed"
            return visible_lines("\n".join(lines))
        lines += [f"    {name}: {value.python}" for name, value in self._attributes.items()]
        sizes = ", ".join(f"{each.name}({each.size})" for each in self._dimensions.values())
        shown = ", ".join(
            f"{each.nctype.name} {each.name}({', '.join(each.dimensions)})" for each in self._variables.values()
        )
        lines.append(f"    dimensions(sizes): {sizes}")
        lines.append(f"    variables(dimensions): {shown}")
        lines.append(f"    groups: {', '.join(self._groups)}")
        return visible_lines("\n".join(line.rstrip() for line in lines))


_OPTIONS: Final = frozenset(
    {"compression", "zlib", "complevel", "shuffle", "szip_coding", "szip_pixels_per_block", "blosc_shuffle"}
    | {"fletcher32", "contiguous", "chunksizes", "endian", "least_significant_digit", "significant_digits"}
    | {"quantize_mode", "fill_value", "chunk_cache", "maxstrlen"}
)


def _refuse_unlimited(layout: Layout, dims: Iterable[DimensionHeader]) -> None:
    for each in dims:
        if each.unlimited and not layout.has_unlimited and "pure" not in layout.name:
            raise NotRepresentableError(
                f"layout {layout.name} of NCZarr has no unlimited dimensions",
                path=each.name,
                remedy='use layout "D", or give the dimension a length',
            )


def _near(name: str, names: Sequence[str]) -> str | None:
    return suggestions.meant(name, names, most=3)


def _renamed(members: Mapping[str, Any], old: str, new: str) -> dict[str, Any]:
    renamed = {}
    for name, each in members.items():
        named = (
            replace(each, name=new)
            if name == old and isinstance(each, DimensionHeader | VariableHeader | GroupHeader)
            else each
        )
        renamed[new if name == old else name] = named
    return renamed


def _with_alias(dims: Mapping[str, DimensionHeader], old: str, new: str) -> dict[str, DimensionHeader]:
    return {**dims, **({new: replace(dims[old], name=new)} if old in dims else {})}


def _without(dims: Mapping[str, DimensionHeader], name: str) -> dict[str, DimensionHeader]:
    return {each: dim for each, dim in dims.items() if each != name}


def _copy(source: StorePath, target: StorePath) -> None:
    """Copy a node. If that fails, remove what would become the data of a later node of this name."""
    try:
        hierarchy.copy(source, target)
    except NodeExistsError:
        raise
    except BaseException:
        with suppress(OmnizarrError):
            keys = [key[len(source.prefix) :] for key in holdings.keys(source)]
            verbs.delete_many(target.store, [target.prefix + key for key in keys])
        raise


def _maxstrlen(given: int, name: str) -> Attribute:
    if not 1 <= operator.index(given) < 2**31:
        raise MetadataError(
            "the longest string that a variable can hold", path=name, found=given, expected="1 to 2^31-1"
        )
    return Attribute(types.INT, np.array([given], types.INT.dtype))


def _test(variable: Variable) -> Callable[[tuple[str, Any]], bool]:
    def passes(wanted: tuple[str, Any]) -> bool:
        name, value = wanted
        found = variable._attributes.get(name)
        have = None if found is None else found.python
        if callable(value):
            return bool(value(have))
        return have is not None and bool(np.all(have == value))

    return passes


def _parts(path: str) -> list[str]:
    """Return the names in a path, with ``.`` and ``..`` resolved as far as possible."""
    return [part for part in posixpath.normpath(path).split("/") if part not in ("", ".")]


def _parsed_type(given: Any) -> types.NcType:
    if isinstance(given, UserType):
        raise _no_user_type(given.name, given.kind)
    return types.parse(given)


def _no_user_type(name: str, kind: str) -> UnknownDataTypeError:
    return UnknownDataTypeError(
        "NCZarr has no types that a program defines (compound, enum, opaque, vlen)",
        path=name,
        found=kind,
        expected=", ".join(types.TYPES),
        remedy=_NO_USER_TYPES,
        spec='NCZarr, "The NCZarr Data Model"',
    )


def _endian(endian: str, datatype: Any) -> str:
    """Return the byte order from the keyword or the type."""
    if endian not in ("native", "little", "big"):
        raise ValueError(f"endian={endian!r}: expected 'native', 'little' or 'big'")
    if endian == "native":
        try:
            order = np.dtype(datatype).byteorder
        except TypeError:
            order = "="
        return {"<": "little", ">": "big"}.get(order, endian)
    return endian


def _fill_attribute(value: Any, nc_type: types.NcType, name: str) -> Attribute:
    """Return a fill value as an attribute of the variable's type. Raises MetadataError if it is not valid."""
    try:
        if nc_type is types.CHAR:
            is_digit = isinstance(value, int | float | np.number) and value in range(10)
            text = value.decode("latin-1") if isinstance(value, bytes) else str(int(value) if is_digit else value)
            if len(text) > 1 or not text.isascii():  # JSON documents hold text, not bytes
                raise ValueError("it is one byte of ASCII")  # noqa: TRY301 - as NumPy does
            return Attribute(types.CHAR, text or "\0")
        if nc_type is types.STRING:
            return Attribute(types.STRING, np.array([str(value)], object))
        given = np.array([value])
        with np.errstate(all="ignore"):
            number = given.astype(nc_type.dtype).reshape(1)
        is_exact = given == number if nc_type.dtype.kind in "iu" else np.isfinite(number) == np.isfinite(given)
        if given.dtype.kind in "iufO" and not is_exact.all():
            raise OverflowError("it does not fit")  # noqa: TRY301 - as NumPy does
        return Attribute(nc_type, number)
    except (TypeError, ValueError, OverflowError) as error:
        raise MetadataError(
            f"no fill value for this type: {error}", path=name, found=repr(value), expected=nc_type.name
        ) from None
    except OmnizarrError as error:
        raise error.add(path=name)
