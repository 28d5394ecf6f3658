"""Find the store for a path, URL or object.

URLs, and the module that documents each:

=========================================  ====================================================  ============
``file:///path``, ``file:/path``           a directory, or a file that is an archive or database  `local`, `zip`
``memory://name``, ``memory://name/path``  values in this process, the same for the same name    `memory`
``s3://``, ``gs://``, ``az://``, ...       object stores                                         `object`
``http://``, ``https://``                  a web server                                          `object`
``sqlite:///path``                         an SQLite database                                    `sqlite`
``lmdb:///path``                           an LMDB environment                                   `lmdb`
``zip::https://...``, ``sftp://``, ...     chains, and every other scheme that fsspec knows      `fsspec`
``fsspec+s3://``, ``fsspec+https://``      the same URLs, but through fsspec               `fsspec`
``reference://``, ``reference::URL``       references of Kerchunk, as in fsspec            `references`
``s3://.../refs.json``, ``.../refs.parq``  references of Kerchunk, of any scheme                 `references`
=========================================  ====================================================  ============
"""

from __future__ import annotations

import itertools
import os
import re
import sys
from collections.abc import Mapping, MutableMapping, Sequence
from contextlib import suppress
from functools import lru_cache
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

from omnizarr.errors import NodeExistsError, NodeNotFoundError, ReadOnlyError, SettingError, StoreError
from omnizarr.stores import registered, urls
from omnizarr.stores.base import Buffer, Store, as_prefix
from omnizarr.stores.local.directory import LocalStore
from omnizarr.stores.local.memory import MemoryStore
from omnizarr.stores.wrap.wrappers import PrefixStore
from omnizarr.support.lazy import Lazy

if TYPE_CHECKING:
    import zipfile
    from urllib import parse

    from omnizarr.stores import redaction
    from omnizarr.stores.local import zip as archives
    from omnizarr.stores.remote import references
    from omnizarr.support import suggestions
else:
    references = Lazy("omnizarr.stores.remote.references")
    suggestions = Lazy("omnizarr.support.suggestions")
    redaction = Lazy("omnizarr.stores.redaction")
    zipfile = Lazy("zipfile")
    parse = Lazy("urllib.parse")
    archives = Lazy("omnizarr.stores.local.zip")

MODES = ("r", "r+", "a", "w", "w-", "x")

# What pathlib turns a URL into.
_lost_slash = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+):[/\\](?![/\\])").match

# Databases are recognised by name: what a stranger called otherwise is not handed to a library of databases.
_DATABASES: Final = {
    ".sqlite": "database.sqlite",
    ".sqlite3": "database.sqlite",
    ".sqldb": "database.sqlite",
    ".lmdb": "database.lmdb",
}
# Of databases that exist; new ones do not get these names.
_EXISTING_DATABASES: Final = {".db": "database.sqlite", ".db3": "database.sqlite", ".mdb": "database.lmdb"}
_SQLITE_HEAD: Final = b"SQLite format 3\0"
_LMDB_HEAD: Final = (0xBEEFC0DE).to_bytes(4, sys.byteorder)  # after the 16 bytes with which a page begins
_LMDB_FILE: Final = "data.mdb"

# The module of this room that opens URLs of a scheme: `open_url(url, mode, options) -> (Store, path)`. Other
# schemes are looked up in fsspec.
_SCHEMES: Final = {
    **dict.fromkeys(
        ("s3", "s3a", "gs", "gcs", "az", "azure", "adl", "abfs", "abfss", "http", "https"), "remote.object"
    ),
    "sqlite": "database.sqlite",
    "lmdb": "database.lmdb",
    "reference": "remote.references",
}

# Endings of the names of files with references of Kerchunk, and of directories with references in Parquet.
_REFERENCES: Final = (".json", ".json.gz", ".json.zst")
_REFERENCE_SETS: Final = (".parq", ".parquet")
_TRUST: Final = "references"
_REFERENCE_SET_FILE: Final = ".zmetadata"
_FILES_OF_OTHERS: Final = (_REFERENCE_SET_FILE, _LMDB_FILE)  # in directories that are something else
_DOCUMENTS_OF_V2: Final = (".zgroup", ".zarray")
_DOCUMENTS: Final = (*_DOCUMENTS_OF_V2, "zarr.json", "meta", "attrs")

# Endings of the names of files of other formats.
_OTHER_FORMATS: Final = {
    **dict.fromkeys((".nc", ".nc3", ".nc4", ".cdf", ".netcdf"), "a netCDF file"),
    **dict.fromkeys((".h5", ".hdf5", ".he5", ".hdf", ".h5ad", ".nwb"), "an HDF5 file"),
    **dict.fromkeys((".tif", ".tiff"), "a TIFF file"),
    **dict.fromkeys((".grib", ".grib2", ".grb", ".grb2"), "a GRIB file"),
    **dict.fromkeys((".fits", ".fit"), "a FITS file"),
    **dict.fromkeys((".npy", ".npz"), "a NumPy file"),
    **dict.fromkeys((".parquet", ".feather", ".csv", ".xlsx"), "a table"),
    **dict.fromkeys((".tar", ".tgz", ".gz", ".7z", ".rar"), "an archive"),
    **dict.fromkeys((".png", ".jpg", ".jpeg"), "a picture"),
    ".n5": "an N5 hierarchy",
    ".mat": "a MATLAB file",
}
_CONVERTED: Final = {
    "a netCDF file": "; omnizarr.convert writes netCDF files",
    "an HDF5 file": "; omnizarr.convert writes .h5 and .hdf5 as netCDF-4, which is HDF5",
}

# The module that adapts a store of another library, by the library that defines its class or a base class:
# `adapt(storelike, mode, options) -> (Store, path) | None`.
_LIBRARIES: Final = {
    "obstore": "remote.object",
    "zarr": "remote.zarr_python",
    "icechunk": "remote.zarr_python",
    "fsspec": "remote.fsspec",
    "upath": "remote.fsspec",
}

# The stores of `memory://name`. They last as long as the process, because the name can be used again at any time.
_named: dict[str, dict[str, Buffer]] = {}


def resolve(
    storelike: Any, mode: str | None = "r", storage_options: Mapping[str, Any] | None = None
) -> tuple[Store, str]:
    """Return the store that `storelike` means, and the path in it where the hierarchy begins.

    This creates nothing. A new store is created with its first value, and a zip archive when it is closed.

    Parameters
    ----------
    storelike : object
        - a store of omnizarr;
        - a path, ``str`` or ``os.PathLike``: of a directory, a zip archive (``*.zip``, or a file that is one),
          an SQLite database, or references of Kerchunk;
        - a URL: the table at the beginning of this module lists all;
        - a dictionary, or any other mapping from keys to bytes;
        - a dictionary of references, as kerchunk returns it;
        - None: a new store in memory;
        - a store of obstore;
        - a filesystem of fsspec, an ``FSMap`` (from ``fsspec.get_mapper``), a ``UPath``;
        - a store of zarr-python 3, its own or of others (Icechunk's ``session.store``), or a ``StorePath``.

        If omnizarr has its own store for the data, it uses that: a ``LocalStore`` of zarr-python is opened as a
        directory, a ``UPath`` of a local file by its path.
    mode : {"r", "r+", "a", "w", "w-", "x"} or None
        What you will do with the store. "r": it is read-only. None: "r+", or "r" if it cannot be written.
    storage_options : mapping, optional
        For URLs: options of the store, such as credentials.

    Returns
    -------
    store : Store
    path : str
        The path within a ``memory://name/path`` or ``StorePath``; the name of the folder if a zip archive has
        everything in one folder, as archives packed by hand do; otherwise "".

    Raises
    ------
    StoreError
        If the URL means an unknown kind of store, the path is a file that is not an archive, or the store does
        not take the options.
    MissingDependencyError
        If a package that the store needs is not installed.
    ReadOnlyError
        If the mode is for writing and the store cannot be written.
    TypeError
        If `storelike` is none of the above.

    Examples
    --------
    >>> store, path = resolve({"zarr.json": b"{}"}, "r")
    >>> store.read_only, path, list(store.list())
    (True, '', ['zarr.json'])
    """
    if mode is None:
        try:
            return resolve(storelike, "r+", storage_options)
        except ReadOnlyError:
            return resolve(storelike, "r", storage_options)
    if mode not in MODES:
        raise ValueError(f"mode is {mode!r}, must be one of {', '.join(map(repr, MODES))}")
    options = dict(storage_options or {})
    if isinstance(storelike, str) and urls.scheme_of(storelike):
        return _from_url(storelike, mode, options)
    libraries = _libraries_of(type(storelike))  # type: ignore[arg-type]  # classes can be hashed
    if libraries and not isinstance(storelike, Store):
        adapted = _adapted(storelike, libraries, mode, _of_store(options))
        if adapted is not None:
            return _in_mode(adapted[0], mode), adapted[1]
    if isinstance(storelike, (str, os.PathLike)):
        return _from_pathlike(storelike, mode, options)
    if isinstance(storelike, Mapping):
        return _from_mapping(storelike, mode, options)
    if _of_store(options):
        raise _meaningless(options)
    if isinstance(storelike, Store):
        return _in_mode(storelike, mode), ""
    if storelike is None:
        return MemoryStore(read_only=mode == "r"), ""
    raise TypeError(
        f"{type(storelike).__name__} is not a store; give a path, a URL, a dictionary, None, an omnizarr.stores.Store, "
        "a store of obstore or of zarr-python 3, or a filesystem, FSMap or UPath of fsspec"
    )


def resolve_root(
    storelike: Any, mode: str | None = "r", storage_options: Mapping[str, Any] | None = None
) -> tuple[Store, str]:
    """Return the same as `resolve`, but the only folder of an archive as a store of its own, a `PrefixStore`.

    The folder is the root of its hierarchy. Documents of groups above it, written beside it, would split the
    archive into two hierarchies.
    """
    store, path = resolve(storelike, mode, storage_options)
    if path and isinstance(storelike, str | os.PathLike) and isinstance(store, archives.ZipStore):
        return PrefixStore(store, path), ""
    return store, path


def _are_references(values: dict[str, Any]) -> bool:
    """Return whether a dictionary holds references of Kerchunk: texts and lists, where a store has bytes."""
    return any(isinstance(value, str | list | dict | int) for value in itertools.islice(values.values(), 1))


def _from_mapping(values: Mapping[str, Any], mode: str, options: dict[str, Any]) -> tuple[Store, str]:
    if isinstance(values, dict) and _are_references(values):
        return references.open_document(values, mode, options)
    if _of_store(options):
        raise _meaningless(options)
    if isinstance(values, MutableMapping):
        return MemoryStore(values, read_only=mode == "r"), ""
    return _in_mode(MemoryStore(values, read_only=True), mode), ""


def _of_store(options: dict[str, Any]) -> dict[str, Any]:
    """Return options without the trust in references, which may be given for any hierarchy."""
    return {name: value for name, value in options.items() if name != _TRUST} if _TRUST in options else options


def _meaningless(options: Mapping[str, Any]) -> StoreError:
    return StoreError("storage_options mean nothing to this store", found=sorted(options), remedy="leave them out")


def _adapted(storelike: Any, libraries: Sequence[str], mode: str, options: dict[str, Any]) -> tuple[Store, str] | None:
    """Return our store for a store of other libraries; None if it is only a mapping."""
    for module in libraries:
        if module == "remote.zarr_python" and isinstance(storelike, MutableMapping):
            continue  # the stores of zarr-python 2 are plain mappings
        return import_module(f"omnizarr.stores.{module}").adapt(storelike, mode, options)  # type: ignore[no-any-return]
    return None


@lru_cache(maxsize=64)
def _libraries_of(kind: type) -> tuple[str, ...]:
    """Return the modules for the libraries that define a class and its base classes."""
    names = (base.__module__.partition(".")[0] for base in kind.__mro__)
    return tuple(_LIBRARIES[name] for name in names if name in _LIBRARIES)


def refuse_other_format(store: Store) -> None:
    """Raise SettingError if a new directory would have a name that promises a file of another format.

    Nodes below an existing hierarchy can have any name.
    """
    if type(store) is not LocalStore or store.knows_root:
        return
    title = other_format(store.root)
    if not title or os.path.exists(store.root) or _is_below_node(store.root):
        return
    raise SettingError(
        f"the name is that of {title}, and a directory would be written",
        store=repr(store),
        expected=f"a name such as x.zarr, x.zip or x.sqlite{_CONVERTED.get(title, '')}",
        remedy="choose another name, or pass omnizarr.stores.LocalStore(path) if you want a directory of this name",
    )


def other_format(path: str) -> str:
    """Return what files of other formats are, if a name ends as theirs do; else "".

    >>> other_format("data/x.tif"), other_format("x.zarr")
    ('a TIFF file', '')
    """
    name = os.path.basename(path).lower()
    found = (title for ending, title in _OTHER_FORMATS.items() if name.endswith(ending) and name != ending)
    return next(found, "")


def _is_below_node(path: str) -> bool:
    above = os.path.dirname(os.path.abspath(path))
    while above != os.path.dirname(above):
        if any(os.path.isfile(os.path.join(above, name)) for name in (*_DOCUMENTS_OF_V2, "zarr.json", "attrs")):
            return True
        above = os.path.dirname(above)
    return False


def _in_mode(store: Store, mode: str) -> Store:
    if mode == "r":
        return store if store.read_only else store.with_read_only()
    if store.read_only:
        raise ReadOnlyError(
            "the store is read-only", store=repr(store), found=f"mode {mode!r}", remedy='use mode "r", or another store'
        )
    return store


def _from_url(url: str, mode: str, options: dict[str, Any]) -> tuple[Store, str]:
    parts = parse.urlsplit(url)
    scheme = parts.scheme.lower()
    chained = "::" in url.partition("?")[0]
    if not chained and scheme not in {"file", "local", "sqlite", "lmdb"} and parts.path.lower().endswith(".zip"):
        folder, _, name = parts.path.rpartition("/")
        if name.lower() != ".zip":
            outer, path = _from_url(parts._replace(path=folder).geturl(), mode, options)
            is_encoded = scheme in {"memory", "http", "https"}
            archive = _archive_in(outer, as_prefix(path) + (parse.unquote(name) if is_encoded else name), mode)
            if archive is not None:
                return archive
    if not chained and scheme in urls.LOCAL:
        return _from_path(urls.path_of(url), mode, options)
    if not chained and scheme == "memory":
        if _of_store(options):
            raise _meaningless(options)
        path = parse.unquote(parts.path).strip("/")
        return _named_memory(parts.netloc, mode), as_prefix(path).removesuffix("/")
    if scheme == "reference":
        return references.open_url(url, mode, options)
    is_named_so = parts.path.lower().rstrip("/").endswith((*_REFERENCES, *_REFERENCE_SETS))
    if is_named_so and not chained and scheme not in {"sqlite", "lmdb"}:
        found = references.open_if_there(url, mode, options)
        if found is not None:
            return found
    module = "remote.fsspec" if chained or scheme.startswith("fsspec+") else _SCHEMES.get(scheme)
    if module is None:
        _check_known(scheme, url)
        module = "remote.fsspec"
    return import_module(f"omnizarr.stores.{module}").open_url(url, mode, _of_store(options))  # type: ignore[no-any-return]


def _archive_in(store: Store, key: str, mode: str) -> tuple[Store, str] | None:
    """Return the archive that is a value of a store; None if the name belongs to a folder."""
    try:
        archive = archives.ZipStore(key, store=store, mode=mode)
    except NodeNotFoundError:
        with suppress(StoreError):  # not every store can list
            if next(store.list_prefix(key), None) is not None:
                return None
        raise
    return archive, "" if mode in ("w", "w-", "x") else _top_folder(archive)


def _check_known(scheme: str, url: str) -> None:
    """Raise StoreError if a scheme is unknown."""
    known = import_module("omnizarr.stores.remote.fsspec").known_protocols()
    if scheme in known:
        return
    near = suggestions.near_names(scheme, ["file", "memory", *_SCHEMES, *known], most=1)
    if near:
        remedy = f"did you mean '{near[0]}://'?"
    else:
        remedy = "is it misspelled?" if known else "fsspec knows more schemes: pip install 'omnizarr[fsspec]'"
    raise StoreError(
        f"no store is known for URLs that begin with '{scheme}://'",
        found=redaction.redact(url.partition("#")[0]),
        remedy=remedy,
    )


def _named_memory(name: str, mode: str) -> MemoryStore:
    if mode in ("r", "r+"):  # looking must not create anything
        return MemoryStore(_named.get(name, {}), read_only=mode == "r")
    return MemoryStore(_named.setdefault(name, {}))


def _from_pathlike(path: str | os.PathLike[str], mode: str, options: dict[str, Any]) -> tuple[Store, str]:
    if isinstance(path, str):
        return _from_path(os.path.expanduser(path) if path[:1] == "~" else path, mode, options)
    path = os.fsdecode(path)
    url = _lost_slash(path)
    if url is not None and url[1].lower() in {*_SCHEMES, "file", "memory"} and not os.path.exists(f"{url[1]}:"):
        raise ValueError(
            f"pathlib has made a path of a URL that began with '{url[1]}://'; give it as a str, or as a UPath"
        )
    return _from_path(path, mode, options)


def _from_path(path: str, mode: str, options: dict[str, Any]) -> tuple[Store, str]:
    if not path:
        raise ValueError("the path of a store cannot be empty; '.' is the current directory")
    directory = LocalStore(path, read_only=mode == "r")
    files = directory.files_at_root(_FILES_OF_OTHERS)
    if files is not None:
        return _from_directory(directory, files, path, mode, options) if files or options else (directory, "")
    is_file = os.path.isfile(path)
    if is_file and _holds_references(path):
        return references.open_path(path, mode, options, is_named=path.lower().endswith(_REFERENCES))
    if _of_store(options):
        raise _meaningless(options)
    database = _database_at(path, is_file=is_file)
    if database is not None:
        return import_module(f"omnizarr.stores.{database}").open_path(path, mode), ""
    if not is_file and not path.lower().endswith(".zip"):
        return directory, ""
    if is_file and mode in ("w-", "x"):
        raise NodeExistsError("the archive exists already", store=path, remedy='overwrite it with mode "w"')
    if is_file and not zipfile.is_zipfile(path):
        raise StoreError(
            "a file that is neither a directory nor a zip archive", store=path, remedy="is it of another format?"
        )
    store = archives.ZipStore(path, mode=mode)
    return store, "" if mode in ("w", "w-", "x") else _top_folder(store)


def _from_directory(
    directory: LocalStore, files: Sequence[str], path: str, mode: str, options: dict[str, Any]
) -> tuple[Store, str]:
    if _REFERENCE_SET_FILE in files and _is_reference_set(path):
        is_named = path.lower().rstrip("/\\").endswith((*_REFERENCES, *_REFERENCE_SETS))
        return references.open_path(path, mode, options, is_named=is_named)
    if _of_store(options):
        raise _meaningless(options)
    if _LMDB_FILE in files:
        ending = os.path.splitext(path)[1].lower()
        if "database.lmdb" in (_DATABASES.get(ending), _EXISTING_DATABASES.get(ending)):
            return import_module("omnizarr.stores.database.lmdb").open_path(path, mode), ""
        if not directory.files_at_root(_DOCUMENTS):
            raise _unnamed_database(path, "LMDB")
    return directory, ""


def has_references(path: str) -> bool:
    """Return whether a path leads to references of Kerchunk: a JSON file, or a directory with references in Parquet."""
    return _is_reference_set(path) if os.path.isdir(path) else os.path.isfile(path) and _holds_references(path)


def _is_reference_set(directory: str) -> bool:
    # Documents of Zarr v2 are stored beside their consolidated metadata; references have only the consolidated
    # metadata.
    if not os.path.isfile(os.path.join(directory, _REFERENCE_SET_FILE)):
        return False
    documents = (os.path.join(directory, name) for name in _DOCUMENTS_OF_V2)
    return not any(map(os.path.isfile, documents)) and references.is_set(directory)


def _holds_references(path: str) -> bool:
    """Return whether a file holds references."""
    if path.lower().endswith(_REFERENCES):
        return True
    with open(path, "rb") as file:
        return file.read(64).lstrip()[:1] == b"{"


def _database_at(path: str, *, is_file: bool) -> str | None:
    """Return the module for the database that a path means, by its name.

    Raises StoreError if a file is a database and its name does not say so.
    """
    ending = os.path.splitext(path)[1].lower()
    if ending in _DATABASES or not is_file:
        return _DATABASES.get(ending)
    with open(path, "rb") as file:
        head = file.read(len(_LMDB_HEAD) + 16)
    is_sqlite = head.startswith(_SQLITE_HEAD)
    if not is_sqlite and head[16:] != _LMDB_HEAD:
        return None
    module = "database.sqlite" if is_sqlite else "database.lmdb"
    if _EXISTING_DATABASES.get(ending) != module:
        raise _unnamed_database(path, "SQLite" if is_sqlite else "LMDB")
    return module


def _unnamed_database(path: str, kind: str) -> StoreError:
    return StoreError(
        f"an {kind} database whose name does not say so",
        store=path,
        expected=f"a name that ends in .{kind.lower()}",
        remedy=f"if you trust where it comes from, open '{kind.lower()}://{os.path.abspath(path)}'",
    )


def _top_folder(store: Store) -> str:
    """Return the name of the folder that contains everything in the archive; "" if there is no such folder."""
    keys, prefixes = store.list_dir("")
    # Files that macOS adds to the archives it packs.
    folders = [prefix for prefix in prefixes if prefix != "__MACOSX/"]
    if len(folders) == 1 and all(key == ".DS_Store" for key in keys):
        return folders[0].removesuffix("/")
    return ""


registered.resolve = resolve
