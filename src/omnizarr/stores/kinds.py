"""The kinds of stores and files: how each is recognised, and what opens it.

One record per kind, in one table; `omnizarr.stores.resolve` asks it. A kind without `Kind.opens` is recognised only for
errors. Packages add kinds under the entry points ``omnizarr.stores``. They are asked where the table opens nothing.
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable, Iterable, Iterator
from importlib import import_module
from types import ModuleType
from typing import Any, Final, NamedTuple, TypeAlias

from omnizarr.errors import StoreError
from omnizarr.model.plugins import Plugins
from omnizarr.stores import verbs
from omnizarr.stores.base import Store
from omnizarr.stores.local.directory import LocalStore
from omnizarr.stores.urls import parse, scheme_of

_TRUST: Final = "references"  # an option that may be given for any hierarchy


class Place(NamedTuple):
    """A place that one kind of store is asked to open.

    Attributes
    ----------
    text : str
        A path or a URL.
    path : str or None
        The path, if it is on this machine.
    mode : {"r", "r+", "a", "w", "w-", "x"}
        What the user will do.
    options : dict
        The user's `storage_options`.
    is_named : bool
        Whether the name or the scheme says what kind it is. If not, only the content does, which can be a stranger's.
    resolve : callable
        `omnizarr.stores.resolve`, for other places.
    """

    text: str
    path: str | None
    mode: str
    options: dict[str, Any]
    is_named: bool
    resolve: Callable[..., tuple[Store, str]]

    @property
    def read_only(self) -> bool:
        """Whether the user will only read."""
        return self.mode == "r"

    @property
    def of_store(self) -> dict[str, Any]:
        """The options without the trust in references, which may be given for any hierarchy."""
        return of_store(self.options)

    def refuse_options(self) -> None:
        """Raise StoreError if there are options."""
        refuse_options(self.options)

    def file(self) -> tuple[Store, str]:
        """Return the store that the file is in, and its key."""
        if self.path is not None:
            folder, name = os.path.split(os.path.abspath(self.path))
            return LocalStore(folder, read_only=self.read_only), name
        parts = parse.urlsplit(self.text)
        folder, _, name = parts.path.rpartition("/")
        store, path = self.resolve(parts._replace(path=folder).geturl(), self.mode, self.options)
        name = parse.unquote(name) if parts.scheme.lower() in {"memory", "http", "https"} else name
        return store, f"{path}/{name}" if path else name


Opener: TypeAlias = Callable[[Place], tuple[Store, str] | None]


class Kind(NamedTuple):
    """A kind of store or file.

    Attributes
    ----------
    title : str
        What it is, for errors: "an HDF5 file".
    opens : callable or str
        ``opens(place)`` returns the store for a `Place`, and the path in it where the hierarchy begins; None if the
        place is not of this kind after all. A string is a module of `omnizarr.stores` with a function `open_place`. ""
        if it can be recognised only.
    schemes : tuple of str
        The schemes of its URLs.
    endings : tuple of str
        How the names of its files end, in lower case, with the dot.
    existing : tuple of str
        The same, for files that exist; new ones do not get these names.
    heads : tuple of (int or None, bytes)
        What its files contain, and at which byte; None: after white space.
    markers : tuple of (str, bytes)
        A file in its directories, and what that contains within the first `HEAD` bytes. ``../name``: a file beside
        them, in the directory above.
    is_local : bool
        Whether only files and directories of this machine can be opened.
    is_foreign : bool
        Whether names with these endings promise something that is not Zarr, so that new directories do not get them.
    remedy : str
        What to do with it if it cannot be opened.
    """

    title: str
    opens: Opener | str = ""
    schemes: tuple[str, ...] = ()
    endings: tuple[str, ...] = ()
    existing: tuple[str, ...] = ()
    heads: tuple[tuple[int | None, bytes], ...] = ()
    markers: tuple[tuple[str, bytes], ...] = ()
    is_local: bool = False
    is_foreign: bool = False
    remedy: str = ""

    def has_name(self, path: str, *, is_new: bool = False) -> bool:
        """Return whether a name says that a file is of this kind; with `is_new`, that a new one would be."""
        names = self.endings if is_new else (*self.endings, *self.existing)
        return any(ending in names for ending in endings_of(path))

    def open(self, place: Place) -> tuple[Store, str] | None:
        """Return the store for a place, and the path in it; None if the place is not of this kind after all."""
        opens = self.opens
        return self.module().open_place(place) if isinstance(opens, str) else opens(place)

    def module(self) -> ModuleType:
        """Return the module that `opens` names. This is how kinds that contain each other import each other."""
        return _module(str(self.opens))


def _module(name: str) -> ModuleType:
    # `sys.modules` also holds modules that another thread is still importing; `import_module` waits for it.
    return import_module(f"omnizarr.stores.{name}")


HEAD: Final = 4096
"""Bytes at the beginning of a file by which it is recognised."""

PLUGINS: Final[Plugins[Any]] = Plugins("omnizarr.stores", "store", "")
"""What packages offer, by scheme or by ending: a `Kind`, or the function that opens it."""

OFFERED_READERS: Final[Plugins[Any]] = Plugins("omnizarr.readers", "reader", "")
"""Readers of packages, by ending: a `Kind`, or a function as `omnizarr.stores.manifests.opening` describes it."""

READERS: Final[dict[str, Kind]] = {}
"""Files of other formats that rooms above this one read, by ending. Packages that read them are asked first."""

VIEW: Final = ".zview"
"""How the names of saved views end. What opens them stands above this room, and registers itself."""

_OBJECTS: Final = ("s3", "s3a", "gs", "gcs", "az", "azure", "adl", "abfs", "abfss", "http", "https")
_HDF5: Final = b"\x89HDF\r\n\x1a\n"

DIRECTORY: Final = Kind("a directory", schemes=("file", "local"), is_local=True)
FSSPEC: Final = Kind("a filesystem of fsspec", "remote.fsspec")
ZIP: Final = Kind("a zip archive", "local.zip", endings=(".zip", ".ozx"), heads=((0, b"PK\3\4"), (0, b"PK\5\6")))
REFERENCES: Final = Kind(
    "references of Kerchunk",
    "remote.references",
    schemes=("reference",),
    existing=(".json", ".json.gz", ".json.zst", ".parq", ".parquet"),
    heads=((None, b"{"),),
    markers=((".zmetadata", b""),),
)
ICECHUNK: Final = Kind(
    "an Icechunk repository",
    "remote.icechunk",
    schemes=(
        "icechunk",
        *(f"icechunk+{name}" for name in ("file", "s3", "s3a", "gs", "gcs", "az", "abfs", "http", "https")),
    ),
    markers=(("refs/branch.main/ref.json", b""), ("repo", b"ICE\xf0\x9f\xa7\x8aCHUNK")),
    remedy="open it as icechunk:///path@main, or icechunk+s3://bucket/path@main",
)

KINDS: Final = (
    DIRECTORY,
    Kind("values in memory", "local.memory", schemes=("memory",)),
    Kind("an object store or a web server", "remote.object", schemes=_OBJECTS),
    ZIP,
    Kind(
        "an SQLite database",
        "database.sqlite",
        schemes=("sqlite",),
        endings=(".sqlite", ".sqlite3", ".sqldb"),
        existing=(".db", ".db3"),
        heads=((0, b"SQLite format 3\0"),),
        is_local=True,
    ),
    Kind(
        "an LMDB database",
        "database.lmdb",
        schemes=("lmdb",),
        endings=(".lmdb",),
        existing=(".mdb",),
        # after the 16 bytes with which a page begins
        heads=((16, (0xBEEFC0DE).to_bytes(4, "little")), (16, (0xBEEFC0DE).to_bytes(4, "big"))),
        markers=(("data.mdb", b""),),
        is_local=True,
    ),
    REFERENCES,
    ICECHUNK,
    Kind(
        "an OCDBT database of TensorStore",
        "database.ocdbt",
        schemes=("ocdbt",),
        markers=(("manifest.ocdbt", b""),),
        remedy='put "ocdbt://" before the path or URL',
    ),
    # -- recognised only ------------------------------------------------------------
    Kind(
        "a netCDF file",
        existing=(".nc", ".nc3", ".nc4", ".cdf", ".netcdf"),
        heads=((0, b"CDF\1"), (0, b"CDF\2"), (0, b"CDF\5")),
        is_foreign=True,
        remedy="convert reads and writes netCDF files",
    ),
    Kind(
        "an HDF5 file",
        existing=(".h5", ".hdf5", ".he5", ".hdf", ".h5ad", ".nwb"),
        heads=tuple((start, _HDF5) for start in (0, 512, 1024, 2048)),
        is_foreign=True,
        remedy="convert reads HDF5 files, and writes .h5 and .hdf5 as netCDF-4, which is HDF5",
    ),
    Kind(
        "a TIFF file",
        existing=(".tif", ".tiff", ".btf", ".tf8", ".gtiff", ".svs"),
        heads=tuple((0, head) for head in (b"II*\0", b"MM\0*", b"II+\0", b"MM\0+")),
        is_foreign=True,
        remedy="open it as an array: it can only be read",
    ),
    Kind(
        "a GRIB file",
        existing=(".grib", ".grib1", ".grib2", ".grb", ".grb2"),
        heads=((0, b"GRIB"),),
        is_foreign=True,
        remedy="open it as a group: it can only be read",
    ),
    Kind(
        "a FITS file",
        existing=(".fits", ".fit", ".fts", ".fz"),
        heads=((0, b"SIMPLE  ="),),
        is_foreign=True,
        remedy="open it as a group: it can only be read",
    ),
    Kind(
        "a NumPy file",
        existing=(".npy", ".npz"),
        heads=((0, b"\x93NUMPY"),),
        is_foreign=True,
        remedy="numpy.load reads it",
    ),
    Kind(
        "a table",
        existing=(".parquet", ".feather", ".csv", ".xlsx"),
        heads=((0, b"PAR1"), (0, b"ARROW1"), (0, b"FEA1")),
        is_foreign=True,
        remedy="pandas and pyarrow read it",
    ),
    Kind(
        "an archive",
        existing=(".tar", ".tgz", ".gz", ".7z", ".rar"),
        heads=((257, b"ustar"), (0, b"\x1f\x8b"), (0, b"7z\xbc\xaf\x27\x1c"), (0, b"Rar!"), (0, b"\x28\xb5\x2f\xfd")),
        is_foreign=True,
        remedy="unpack it; only zip archives are opened in place",
    ),
    Kind(
        "a picture",
        existing=(".png", ".jpg", ".jpeg"),
        heads=((0, b"\x89PNG"), (0, b"\xff\xd8\xff")),
        is_foreign=True,
    ),
    Kind("a MATLAB file", existing=(".mat",), heads=((0, b"MATLAB 5.0"),), is_foreign=True),
    Kind("an HDF4 file", heads=((0, b"\x0e\x03\x13\x01"),)),
    Kind(
        "an N5 hierarchy",
        existing=(".n5",),
        markers=(("attributes.json", b'"n5"'), ("attributes.json", b'"blockSize"')),
        is_foreign=True,
        remedy='put "n5://" before the path or URL',
    ),
    Kind(
        "a volume of Neuroglancer",
        markers=(("info", b'"data_type"'),),
        existing=(".precomputed",),
        is_foreign=True,
        remedy='put "precomputed://" before the path or URL',
    ),
)

_BY_SCHEME: Final = {scheme: kind for kind in KINDS for scheme in kind.schemes}
# Of two kinds with one ending, the first: a .parquet can be a set of references.
_BY_ENDING: Final = {ending: kind for kind in reversed(KINDS) for ending in (*kind.endings, *kind.existing)}
_FOREIGN: Final = {ending: kind for kind in KINDS if kind.is_foreign for ending in kind.existing}
_BY_MARKER: Final = {name: kind for kind in KINDS if kind.opens for name, _ in kind.markers}
_OF_FOLDERS: Final[dict[str, Kind]] = {}
_HEADS: Final = tuple((kind, *head) for kind in KINDS for head in kind.heads)


def schemes() -> Iterator[str]:
    """Return all schemes of URLs but those that fsspec knows."""
    return iter((*_BY_SCHEME, *(name for name in PLUGINS.names() if not name.startswith("."))))


def of_scheme(scheme: str) -> Kind | None:
    """Return what opens URLs of a scheme.

    >>> of_scheme("gs").title
    'an object store or a web server'
    """
    return _BY_SCHEME.get(scheme) or (FSSPEC if scheme.startswith("fsspec+") else _offered((scheme,)))


def is_icechunk(place: Any) -> bool:
    """Return whether something is the URL of a repository of Icechunk.

    >>> is_icechunk("icechunk:///data/repo@main"), is_icechunk("/data/repo"), is_icechunk(None)
    (True, False, False)
    """
    return isinstance(place, str) and scheme_of(place) in ICECHUNK.schemes


def is_repository(directory: str) -> bool:
    """Return whether a directory has the files of a repository of Icechunk, of its first or second format."""
    (reference, _), (entry, magic) = ICECHUNK.markers
    if os.path.isfile(os.path.join(directory, reference)):
        return os.path.isdir(os.path.join(directory, "snapshots"))
    try:
        with open(os.path.join(directory, entry), "rb") as file:
            return file.read(len(magic)) == magic
    except OSError:
        return False


def of_name(path: str) -> Kind | None:
    """Return the kind of files whose names end as a path does.

    >>> of_name("data/X.TIF").title, of_name("refs.json.gz").title, of_name("x.zarr"), of_name(".zip")
    ('a TIFF file', 'references of Kerchunk', None, None)
    """
    if is_usual(path):
        return None
    kind: Kind | None = None
    for ending in endings_of(path):
        kind = _BY_ENDING.get(ending)
        if kind is not None:
            break
    if kind is not None and kind.opens:
        return kind
    reader = next((READERS[ending] for ending in endings_of(path) if ending in READERS), None)
    return offered_for_name(path) or reader or kind


def foreign(path: str) -> Kind | None:
    """Return the kind that is not Zarr that a name promises.

    >>> foreign("x.parquet").title, foreign("x.json")
    ('a table', None)
    """
    return next((_FOREIGN[ending] for ending in endings_of(path) if ending in _FOREIGN), None)


def of_head(head: bytes) -> Kind | None:
    """Return the kind of a file by its first `HEAD` bytes.

    >>> of_head(b"GRIB....").title, of_head(b" {}").title, of_head(b"")
    ('a GRIB file', 'references of Kerchunk', None)
    """
    return _with_head(_HEADS, head)


def is_usual(path: str) -> bool:
    """Return whether a name has no ending, or that of Zarr: then neither the table nor packages are asked."""
    end = path.rfind("/") if os.sep == "/" else max(path.rfind("/"), path.rfind(os.sep))  # faster than os.path
    return path.endswith(".zarr") or path.find(".", end + 1) < 0


def offered_for_name(path: str) -> Kind | None:
    """Return the kind of a package for the ending of a name. The first time takes 10 ms."""
    return None if is_usual(path) else _offered(endings_of(path))


def offered_for_head(head: bytes) -> Kind | None:
    """Return the same of the kinds of packages, which are all imported for that, and of `READERS`."""
    names = sorted(PLUGINS.names() | OFFERED_READERS.names())
    offered = filter(None, (_offered((name,)) for name in names))
    known = itertools.chain(offered, dict.fromkeys(READERS.values()))
    return _with_head(((kind, *each) for kind in known for each in kind.heads), head)


def markers() -> tuple[str, ...]:
    """Return the files that show what opens the directory that they are in."""
    return tuple(_BY_MARKER)


def of_marker(name: str) -> Kind:
    """Return what opens a directory that contains a file of `markers`."""
    return _BY_MARKER[name]


def of_folder(path: str) -> Kind | None:
    """Return what opens directories whose names, or that of one above, end as this path says. See `add_folders`.

    >>> of_folder("data/x.zarr/a") is None
    True
    """
    lower = path.lower()
    for ending, kind in _OF_FOLDERS.items():
        at = lower.find(ending)
        while at >= 0:
            end = at + len(ending)
            if lower[end : end + 1] in ("", "/", os.sep) and lower.find(".zarr", end) < 0:
                return kind
            at = lower.find(ending, at + 1)
    return None


def file_within(path: str) -> tuple[str, str] | None:
    """Return the file of another format that a path or URL continues into, and the rest; None if no name says so.

    >>> file_within("data/x.h5/g/v"), file_within("x.zip/a.tif"), file_within("x.zarr/a")
    (('data/x.h5', 'g/v'), None, None)
    """
    at = path.find("/")
    while at >= 0:
        name = path[path.rfind("/", 0, at) + 1 : at]
        if not is_usual(name) and path[at:].strip("/") and any(is_file_ending(each) for each in endings_of(name)):
            return path[:at], path[at:].strip("/")
        at = path.find("/", at + 1)
    return None


def leads_to_file(path: str) -> bool:
    """Return whether a name in a path is that of a file of another format, or of a directory of one.

    >>> leads_to_file("a/x.h5/g"), leads_to_file("x.tif"), leads_to_file("x.zarr/a")
    (True, True, False)
    """
    return file_within(f"{path.strip('/')}/.") is not None or of_folder(path) is not None


def is_file_ending(ending: str) -> bool:
    """Return whether files whose names end so are read as hierarchies, by omnizarr's readers or those of packages."""
    kind = READERS.get(ending)
    return ending in kind.existing if kind is not None else ending in OFFERED_READERS.names()


def add_folders(kind: Kind) -> None:
    """Let a kind of rooms above this one open directories, by its endings, markers and schemes."""
    for ending in kind.endings:
        READERS[ending] = _OF_FOLDERS[ending] = kind
        _BY_ENDING[f"{ending}.zip"] = kind
    _BY_MARKER.update((name, kind) for name, _ in kind.markers)
    _BY_SCHEME.update((scheme, kind) for scheme in kind.schemes)


def of_directory(store: Store, prefix: str) -> Kind | None:
    """Return the kind of a directory that is not Zarr, by the files in it."""
    marks = [(kind, prefix + name, part) for kind in KINDS if kind.remedy for name, part in kind.markers]
    keys = list(dict.fromkeys(key for _, key, _ in marks))
    found = dict(verbs.get_many(store, ((key, (0, HEAD)) for key in keys)))
    heads = {key: bytes(head) for at, key in enumerate(keys) if (head := found[at]) is not None}
    return next((kind for kind, key, part in marks if key in heads and part in heads[key]), None)


def endings_of(path: str) -> Iterator[str]:
    """Yield the endings of a name in lower case, the longest first: ``.ome.tif``, ``.tif``."""
    name = os.path.basename(path).lower()
    start = name.find(".", 1)
    while start > 0:
        yield name[start:]
        start = name.find(".", start + 1)


def _offered(names: Iterable[str]) -> Kind | None:
    for name in names:
        found = PLUGINS.find(name)
        if found is not None:
            title = f"the store {name!r} of another package"
            return found if isinstance(found, Kind) else Kind(title, found, endings=(name,))
        found = OFFERED_READERS.find(name)
        if found is not None:
            title = f"the format {name!r} of another package"
            return found if isinstance(found, Kind) else Kind(title, _read_by(found), existing=(name,), is_foreign=True)
    return None


def _read_by(read: Callable[..., Any]) -> Opener:
    """Return what opens files by the reader of a package."""
    return lambda place: _module("manifests.opening").open_place(read, place)


def _with_head(among: Iterable[tuple[Kind, int | None, bytes]], head: bytes) -> Kind | None:
    start = head[:64].lstrip()
    for kind, position, expected in among:
        if start.startswith(expected) if position is None else head.startswith(expected, position):
            return kind
    return None


def of_store(options: dict[str, Any]) -> dict[str, Any]:
    """Return options without the trust in references, which may be given for any hierarchy."""
    return {name: value for name, value in options.items() if name != _TRUST} if _TRUST in options else options


def refuse_options(options: dict[str, Any]) -> None:
    """Raise StoreError if there are options, for a store that has none."""
    if found := of_store(options):
        raise StoreError("storage_options mean nothing to this store", found=sorted(found), remedy="leave them out")
