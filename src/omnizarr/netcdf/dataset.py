"""Datasets: netCDF's name for a hierarchy, opened by a path or a URL.

Datasets, groups, variables and dimensions are thin: a header, and an `omnizarr.Array` for each variable, which
the engine reads and writes. The nodes of one open dataset share a `Session`. Each change is made to the documents
that are stored at that moment, under the lock of the node, so changes by other datasets, threads and processes
are kept.

Opening reads all documents and finds the dimensions. Everything else about a variable is interpreted at first
use, under the lock of the session, from the documents that were read.

Growth stores the data first, then the new length in the documents of all arrays that have the dimension, and last
in the group. A `Variable` reads with the length of its dimensions, even if the document of its array states
another one.

Spec: NCZarr, "Accessing Data Using the NCZarr Protocol"; the names are those of netCDF4-python.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final, Self, TypedDict, Unpack

from numpy.typing import NDArray

from omnizarr.api import opening
from omnizarr.engine.cache import ChunkCache
from omnizarr.errors import (
    Function,
    NodeExistsError,
    NotRepresentableError,
    OmnizarrError,
    Remedy,
    SettingError,
)
from omnizarr.model import Note
from omnizarr.netcdf import chunk_cache, copying, in_file, layouts, records, urls
from omnizarr.netcdf.group import Group
from omnizarr.netcdf.header import Attribute, GroupHeader, Selection, Source
from omnizarr.netcdf.layouts import elements, quirks
from omnizarr.netcdf.layouts.contract import Layout, Loaded
from omnizarr.netcdf.session import Session, read_only_file
from omnizarr.netcdf.variable import Variable
from omnizarr.nodes import consolidated, detection, hierarchy
from omnizarr.nodes.config import ArrayConfig
from omnizarr.nodes.location import StorePath, normalize
from omnizarr.stores import LocalStore, PrefixStore, Store, verbs
from omnizarr.stores.manifests.store import ManifestStore
from omnizarr.support.lazy import Lazy

if TYPE_CHECKING:
    from omnizarr.netcdf import files
    from omnizarr.netcdf.cdl import compiling, writing
    from omnizarr.stores.local import zip as archives
else:
    files = Lazy("omnizarr.netcdf.files")
    compiling = Lazy("omnizarr.netcdf.cdl.compiling")
    writing = Lazy("omnizarr.netcdf.cdl.writing")
    archives = Lazy("omnizarr.stores.local.zip")

_V3: Final = 3
_FORMATS: Final = ("NETCDF4", "NCZARR", "DEFAULT")
_MODES: Final = {"r": "r", "r+": "a", "a": "a", "w": "w", "x": "w-", "w-": "w-"}


class IgnoredKeywords(TypedDict, total=False):
    """Keywords of netCDF4-python that have no effect."""

    diskless: bool | None
    persist: bool | None
    keepweakref: bool | None
    memory: Any
    encoding: str | None
    parallel: bool | None
    comm: Any
    info: Any
    auto_complex: bool | None


class DatasetKeywords(IgnoredKeywords, total=False):
    """Keywords of `Dataset` other than place, mode and format."""

    clobber: bool
    layout: str | None
    zarr_format: int | None
    xarray: bool | None
    config: ArrayConfig | Mapping[str, Any] | None
    storage_options: Mapping[str, Any] | None
    buffered: bool


class Dataset(Group):
    """A netCDF dataset in Zarr: NCZarr as netCDF-C writes it, or any other hierarchy; or a netCDF file, to read.

    Files of netCDF-3, netCDF-4 and HDF5 are read in place, with the dimensions, types and attributes of the file. They
    cannot be written. `all_notes` names what netCDF cannot express, and what is broken.

    Parameters
    ----------
    filename : path, URL, Store, omnizarr.Group or mutable mapping
        ``x.zarr``, ``x.nc``, ``file:///data/x.zarr#mode=nczarr,zip``, ...; see `omnizarr.netcdf.urls`.
    mode : {"r", "r+", "a", "w", "x"}
        "r": read. "r+" and "a": read and write, and create the dataset if it does not exist. "w": create, and
        replace an existing one. "x": create; raise an error if it exists.
    clobber : bool
        With "w": whether to replace an existing dataset.
    format : str
        ``"NETCDF4"``, the only supported data model.
    layout : {"D", "C", "B", "A", "xarray", "pure", "E"}, optional
        How a new dataset stores netCDF's own metadata. "D": as netCDF-C 4.9.3 and later. "C": as 4.9.1 to
        4.9.2. "B": as 4.8.1 to 4.9.0. "A": as 4.8.0. "xarray": in a form that xarray also understands. "pure":
        not at all. "E", for Zarr v3: as in Appendix E of NCZarr.
    zarr_format : {2, 3}, optional
        Zarr format of a new dataset. The default is 2, the only one that netCDF-C reads.
    xarray : bool, optional
        Whether to read and write the attribute ``_ARRAY_DIMENSIONS``. The default is True.
    config : ArrayConfig or mapping, optional
        Settings of the arrays. By default, they share a cache of decoded chunks of 64 MiB, or of the size set
        by `omnizarr.netcdf.set_chunk_cache`.
    storage_options : mapping, optional
        Options of the store, such as credentials; see `omnizarr.stores.resolve`. Of an HDF5 file of this machine:
        ``{"references": "trusted"}``, or directories, for the other files that it may lead to.
    buffered : bool
        Whether data beyond the end of unlimited dimensions may stay in memory until `sync`, `close`, or a write
        after some seconds or many bytes. False: each write is stored when it returns. The modes "ws", "r+s" and
        "as" do the same.
    **ignored
        Keywords of netCDF4-python that have no effect. ``diskless``, ``persist``, ``memory``, ``parallel``,
        ``comm``, ``info`` and ``auto_complex`` raise an error if they request something. ``encoding`` and
        ``keepweakref`` are ignored; a dataset without references is always closed.

    Raises
    ------
    GroupNotFoundError
        If the dataset does not exist (a FileNotFoundError).
    NodeExistsError
        If the dataset exists and the mode is "x".
    ReadOnlyError
        If it is a netCDF file, and the mode is not "r".
    StoreError
        If it is a file of another format.
    SettingError
        If the URL has invalid settings.

    Examples
    --------
    >>> import numpy as np
    >>> from omnizarr import netcdf
    >>> values = {}  # or a path, or a URL
    >>> with netcdf.Dataset(values, "w") as ds:
    ...     ds.title = "sea surface temperature"
    ...     _ = ds.createDimension("time", None), ds.createDimension("lat", 3)
    ...     sst = ds.createVariable("sst", "f4", ("time", "lat"), zlib=True)
    ...     sst.units = "K"
    ...     sst[0] = [280.5, 281.0, 282.5]
    >>> netcdf.Dataset(values)["sst"][:].max()
    np.float32(282.5)
    """

    __slots__ = ("_consolidates", "_filename", "_keepweakref", "_layout_notes", "_owned", "_references", "_source")

    def __init__(
        self,
        filename: Any,
        mode: str = "r",
        clobber: bool = True,  # noqa: FBT001, FBT002 - netCDF4-python's signature
        format: str = "NETCDF4",  # noqa: A002 - netCDF4-python's name
        *,
        layout: str | None = None,
        zarr_format: int | None = None,
        xarray: bool | None = None,
        config: ArrayConfig | Mapping[str, Any] | None = None,
        storage_options: Mapping[str, Any] | None = None,
        buffered: bool = True,
        **ignored: Unpack[IgnoredKeywords],
    ) -> None:
        _check_keywords(format, ignored)
        self._keepweakref = bool(ignored.get("keepweakref"))
        records.store_all()
        wanted = _MODES.get(mode.removesuffix("s") or mode)
        if wanted is None:
            raise ValueError(f"mode={mode!r}: expected 'r', 'r+', 'a', 'w' or 'x'")
        if wanted == "w" and not clobber:
            wanted = "w-"
        self._owned: Store | None = None
        location = urls.parse(filename) if isinstance(filename, str | os.PathLike) else None
        self._source: Source | None = None
        self._references = (storage_options or {}).get("references")
        if location is not None and location.is_local and not location.storage and files.is_netcdf(location.place):
            if wanted != "r":
                raise read_only_file(location.place)
            path = Path(location.place).absolute()
            where = StorePath(LocalStore(path.parent, read_only=True), path.name)
            self._begin_file(where, files.source_at(path, references=self._references), str(filename), config)
            return
        chosen = _layout(layout, zarr_format, location) if wanted in ("w", "w-") else None
        where = self._locate(filename, location, wanted, storage_options)
        self._filename = str(filename) if isinstance(filename, str | os.PathLike) else str(where)
        source = files.source_in(where.store, references=self._references) if not where.path else None
        if source is not None and wanted == "r":
            self._begin_file(where, source, self._filename, config)
            return
        xarray = (location is None or location.xarray) if xarray is None else xarray
        # As in netCDF-C: programs that walk through a variable in small steps read each chunk many times.
        behaviour = ArrayConfig.of(config or {"chunk_cache": ChunkCache(chunk_cache.latest().size)})
        if chosen is not None or (wanted == "a" and detection.find(where) is None):
            chosen = chosen or _layout(layout, zarr_format, location)
            session = Session(where, chosen, behaviour, xarray)
            session.replaces = wanted == "w" and _has_remains(where)
            new = GroupHeader(special=layouts.new_special(chosen))
            place = session.create_group(where, new, overwrite=wanted == "w")
            if wanted == "w":
                store = place.store
                if isinstance(store, PrefixStore) and isinstance(store.store, archives.ZipStore):
                    verbs.delete_many(
                        store.store, [key for key in store.store.list() if not key.startswith(store.prefix)]
                    )
            loaded = Loaded(new, chosen, groups={"": place})
        else:
            loaded, session = self._open(where, location, behaviour, xarray=xarray)
        session.buffered = buffered and not mode.endswith("s")
        self._layout_notes = loaded.notes
        self._consolidates = location is not None and location.consolidated and wanted != "r"
        self._begin(session, None, loaded.root, loaded)
        dims = {each.path: each for group in self.walk() for each in group._dimensions.values()}
        self._bind_variables(loaded.root, loaded, dims)

    def _begin_file(
        self, where: StorePath, source: Source, name: str, config: ArrayConfig | Mapping[str, Any] | None
    ) -> None:
        """Become a netCDF file."""
        self._filename, self._source, self._layout_notes, self._consolidates = name, source, (), False
        session = Session(where, layouts.LAYOUTS["pure-v3"], ArrayConfig.of(config or {}), file=name)
        groups = {path: where for path, _ in source.root.walk()}
        loaded = Loaded(source.root, session.layout, in_file.found(source), groups)
        self._begin(session, None, loaded.root, loaded)
        dims = {each.path: each for group in self.walk() for each in group._dimensions.values()}
        self._bind_variables(loaded.root, loaded, dims)

    def _locate(
        self, filename: Any, location: urls.Location | None, mode: str, storage_options: Mapping[str, Any] | None
    ) -> StorePath:
        if location is None:
            return opening.locate(filename, None, mode, storage_options)[0]  # type: ignore[arg-type]
        store, path = location.open_store(mode, storage_options)
        self._owned = store
        where = StorePath(store, normalize(path))
        return detection.entered_above_the_store(where) or where

    def _open(
        self, where: StorePath, location: urls.Location | None, config: ArrayConfig, *, xarray: bool
    ) -> tuple[Loaded, Session]:
        zarr_format = None if location is None else location.zarr_format
        found = detection.open_group(where, zarr_format)
        if found.metadata.dialect not in ("v2", "v3"):
            raise NotRepresentableError(
                "netCDF stands on Zarr v2 and v3",
                store=str(where),
                found=found.metadata.dialect,
                remedy=Remedy("convert it first: {convert}", convert=Function("(old, new)")),
            )
        root = opening._opened_group(found, {"config": config})
        loaded = layouts.load(root, mode=None if location is None else location.mode, xarray=xarray)
        session = Session(found.where, loaded.layout, config, xarray, loaded.version)
        return loaded, session

    # -- the dataset ------------------------------------------------------------------

    @property
    def layout(self) -> str:
        """How netCDF's own metadata is stored: "A", "B", "C", "D", "xarray", "pure", "v3", "E" or "pure-v3"."""
        return self._session.layout.name

    @property
    def zarr_format(self) -> int:
        """The Zarr format of the dataset: 2 or 3."""
        return self._session.layout.zarr_format

    def filepath(self, encoding: str | None = None) -> str:
        """Return the path or URL of the dataset."""
        return self._filename

    def sync(self) -> None:
        """Store pending records, and read the current lengths of unlimited dimensions."""
        self._session.check_open()
        if self._source is not None:
            return
        with self._session.lock:
            self._session.records.store()
            for group in self.walk():
                unlimited = [each for each in group._dimensions.values() if each.isunlimited()]
                if unlimited:
                    stored = self._session.read_group(group._where).dimensions
                    for each in unlimited:
                        each.adopt(max(each.size, stored[each.name].size if each.name in stored else 0))

    def close(self) -> None:
        """Store pending records, and close files. A second call does nothing.

        If storing fails, the pending records are lost, and the error says so. Call `sync` first if you want to
        try again.
        """
        session = self._session
        try:
            if session.is_open:
                session.records.store()
                if self._consolidates:
                    consolidated.consolidate(session.root)
        except BaseException as error:
            lost = session.records.drop()
            if lost:
                error.add_note(f"what was written beyond the end of {lost} since the last sync is lost")
            raise
        finally:
            session.is_open = False
            if self._owned is not None:
                self._owned.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def all_notes(self) -> dict[str, tuple[Note, ...]]:
        """Return notes on mistakes of writers and how they are read, by full name of group ("/": root) or variable."""
        found: dict[str, tuple[Note, ...]] = {"/": self._layout_notes}
        for group in self.walk():
            found[group.path] = (*found.get(group.path, ()), *group._notes)
            found.update({each.full_name: each._notes for each in group._variables.values()})
        return {name: notes for name, notes in found.items() if notes}

    def set_fill_on(self) -> None:
        """Give variables that are created from now on a fill value: netCDF's default, if you pass none."""
        self._session.check_open()
        self._no_fill = False

    def set_fill_off(self) -> None:
        """Give variables that are created from now on no fill value, unless you pass one.

        This is like ``fill_value=False``.
        """
        self._session.check_open()
        self._no_fill = True

    def has_blosc_filter(self) -> bool:
        """Return whether Blosc is available as a `compression` of `Group.createVariable`: always True."""
        self._session.check_open()
        return True

    def has_bzip2_filter(self) -> bool:
        """Return whether bzip2 is available: always True."""
        self._session.check_open()
        return True

    def has_szip_filter(self) -> bool:
        """Return whether szip is available, which needs the extra ``omnizarr[szip]``."""
        self._session.check_open()
        return find_spec("imagecodecs") is not None

    def has_zstd_filter(self) -> bool:
        """Return whether Zstandard is available: always True.

        >>> from omnizarr import netcdf
        >>> netcdf.Dataset({}, "w").has_zstd_filter()
        True
        """
        self._session.check_open()
        return True

    def as_source(self, *, for_xarray: bool = False) -> Source:
        """Return the header of the dataset, and a way to read its data, for copies, conversions and CDL.

        Parameters
        ----------
        for_xarray : bool
            Whether to add attributes for what Zarr itself tells xarray: ``_FillValue`` for fill values of v2,
            which xarray masks, and ``dtype`` for booleans.
        """
        if self._source is not None:
            return self._source
        variables = {each.full_name: each for group in self.walk() for each in group._variables.values()}

        def read(name: str, selection: Selection) -> NDArray[Any]:
            self._session.check_open()
            return variables[name].read_raw(selection)

        root = _with_meanings(self.header, variables, "") if for_xarray else self.header
        return Source(root, read, lambda name: variables[name].array)

    def tocdl(self, coordvars: bool = False, data: bool = False, outfile: Any = None) -> str | None:  # noqa: FBT001, FBT002
        """Return the dataset as CDL, as ``ncdump`` prints it, or write it to a file.

        Parameters
        ----------
        coordvars : bool
            Whether to include the data of coordinate variables.
        data : bool
            Whether to include all data.
        outfile : path, optional
            The file to write.

        Examples
        --------
        >>> from omnizarr import netcdf
        >>> ds = netcdf.Dataset({}, "w")
        >>> _ = ds.createDimension("x", 2)
        >>> print(ds.tocdl().partition("// global")[0])
        netcdf memory {
        dimensions:
                x = 2 ;
        <BLANKLINE>
        <BLANKLINE>
        """
        parts = writing.dump(
            self.as_source(),
            name=urls.parse(self._filename).name if self._owned is not None or self._source is not None else "memory",
            header_only=not (data or coordvars),
            coordinates_only=coordvars and not data,
            special=True,
        )
        if outfile is None:
            return "".join(parts)
        with Path(outfile).open("w", encoding="utf-8") as file:
            file.writelines(parts)
        return None

    @staticmethod
    def fromcdl(
        cdlfilename: Any,
        ncfilename: Any = None,
        mode: str = "a",
        format: str = "NETCDF4",  # noqa: A002 - netCDF4-python's name
        **options: Unpack[DatasetKeywords],
    ) -> Dataset:
        """Create a dataset from a CDL file, and return it, opened in `mode`.

        Parameters
        ----------
        cdlfilename : path
        ncfilename : path or URL, optional
            The dataset to create. The default is the name of the CDL file with the ending ``.zarr``.
        mode, format, **options
            Arguments of `Dataset`. With ``clobber=True``, an existing dataset is replaced.

        Raises
        ------
        NodeExistsError
            If the dataset exists and `clobber` is not True (a FileExistsError).
        """
        target = Path(cdlfilename).with_suffix(".zarr") if ncfilename is None else ncfilename
        parsed = compiling.load(cdlfilename)
        options.setdefault("clobber", False)
        try:
            made = Dataset(target, "w", format=format, **options)
        except NodeExistsError as error:
            error.remedy = Remedy("pass {clobber} to replace it", clobber=True)
            raise
        try:
            copying.write(made, parsed.source)
        except BaseException:
            with suppress(OmnizarrError):
                hierarchy.clear(made._session.root)
            made.close()
            raise
        if mode.removesuffix("s") in ("a", "r+"):
            return made
        made.close()
        return Dataset(target, mode)

    def __reduce__(self) -> tuple[Any, ...]:
        session = self._session
        if self._source is not None:
            is_shown = isinstance(session.root.store, ManifestStore) and self._owned is None
            is_local = urls.parse(self._filename).is_local
            given = session.root if is_shown else os.path.abspath(self._filename) if is_local else self._filename  # noqa: PTH100 - a text
            options = {} if self._references is None else {"references": self._references}
            return partial(Dataset, config=session.config, storage_options=options), (given,)
        session.records.store()
        reopen = partial(Dataset, config=session.config, xarray=session.xarray, buffered=session.buffered)
        return reopen, (session.root, "r" if session.root.store.read_only else "r+")


def notes_of_store(dataset: Dataset) -> Sequence[str]:
    """Return what a file of another format than netCDF and HDF5 has that its store does not show."""
    if dataset._source is not None:
        return ()
    notes: Sequence[str] = dataset._session.root.store.about().get("notes", ())
    return notes


def _with_meanings(group: GroupHeader, variables: Mapping[str, Variable], path: str) -> GroupHeader:
    """Return a header with the attributes for what Zarr itself tells xarray."""
    found = {}
    for name, each in group.variables.items():
        mask = quirks.mask_of_xarray(variables[f"{path}/{name}"]._stored.metadata, each.type)
        added = {} if mask is None else {"_FillValue": mask}
        added |= {"dtype": Attribute.of("bool")} if each.type is elements.BOOL else {}
        found[name] = replace(each, attributes={**added, **each.attributes})
    groups = {name: _with_meanings(each, variables, f"{path}/{name}") for name, each in group.groups.items()}
    return replace(group, variables=found, groups=groups)


def _has_remains(where: StorePath) -> bool:
    """Return whether a place without a node has anything below: remains of a dataset that was partly replaced."""
    return bool(where.store.list_dir(where.prefix).prefixes) and detection.find(where) is None


def _check_keywords(format: str, ignored: Mapping[str, Any]) -> None:  # noqa: A002 - the keyword's name
    if format not in _FORMATS:
        raise ValueError(f"format={format!r}: expected 'NETCDF4'; for files of netCDF-3, see omnizarr.convert")
    for name, value in ignored.items():
        if name not in IgnoredKeywords.__annotations__:
            raise TypeError(f"unexpected keyword {name!r}")
        if value not in (None, False) and name not in ("encoding", "keepweakref"):
            raise ValueError(f"{name}={value!r} has no meaning for a dataset in Zarr")


def _layout(name: str | None, zarr_format: int | None, location: urls.Location | None) -> Layout:
    """Return the layout for a name, or for a format and mode. Raises SettingError."""
    said = None if location is None else location.zarr_format
    if zarr_format is not None and said is not None and zarr_format != said:
        raise SettingError("zarr_format and the URL contradict each other", found=f"{zarr_format} and v{said}")
    zarr_format = zarr_format or said
    if name is None:
        name = "pure" if location is not None and location.mode == "zarr" else "D"
    if zarr_format == _V3:
        name = {"pure": "pure-v3", "D": "v3", "xarray": "v3"}.get(name, name)
    chosen = layouts.LAYOUTS.get(name)
    if chosen is None or zarr_format not in (None, chosen.zarr_format):
        fitting = [each.name for each in layouts.LAYOUTS.values() if zarr_format in (None, each.zarr_format)]
        of_format = "" if zarr_format is None else f" of Zarr v{zarr_format}"
        raise SettingError(
            f"there is no such layout{of_format}", found=name, expected=f"one of {', '.join(fitting) or 'none'}"
        )
    return chosen
