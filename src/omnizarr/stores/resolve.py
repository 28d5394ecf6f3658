"""From what a user calls a store to a store."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, MutableMapping
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

from omnizarr.errors import NodeExistsError, ReadOnlyError, StoreError
from omnizarr.late import Late
from omnizarr.stores.base import Buffer, Store, as_prefix
from omnizarr.stores.local import LocalStore
from omnizarr.stores.memory import MemoryStore

if TYPE_CHECKING:
    import zipfile
    from urllib import parse

    from omnizarr.stores import zip as archives
else:
    zipfile = Late("zipfile")
    parse = Late("urllib.parse")
    archives = Late("omnizarr.stores.zip")

MODES = ("r", "r+", "a", "w", "w-", "x")

_scheme = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+)://").match  # of two letters or more: C:\\ is a drive

# Which module of this room opens URLs of a scheme: `open_url(url, mode, options) -> (Store, path)`. Every other scheme
# is looked for among those of fsspec.
_SCHEMES: Final = {
    **dict.fromkeys(("s3", "s3a", "gs", "gcs", "az", "azure", "adl", "abfs", "abfss", "http", "https"), "object"),
    "sqlite": "sqlite",
    "lmdb": "lmdb",
}

# Which module makes a store of what another library calls one, by the library that defines its class, or a class that
# it derives from: `adapt(storelike, mode, options) -> (Store, path) | None`.
_LIBRARIES: Final = {
    "obstore": "object",
    "zarr": "zarr_python",
    "icechunk": "zarr_python",
    "fsspec": "fsspec",
    "upath": "fsspec",
}

# What `memory://name` stands for. It lasts as long as the process, as the name can come back any time.
_named: dict[str, dict[str, Buffer]] = {}


def resolve(storelike: Any, mode: str = "r", storage_options: Mapping[str, Any] | None = None) -> tuple[Store, str]:
    """Return the store that `storelike` means, and the path in it where the hierarchy begins.

    Nothing is created: what does not exist yet comes into being with the first value, a zip archive when closed.

    Parameters
    ----------
    storelike : Store, path, str, mutable mapping or None
        A store; a directory; a zip archive (``*.zip``, or a file that is one); ``file://`` URL;
        ``memory://name``: values in this process, the same for the same name; ``memory://name/path``;
        a dictionary; None: new values in memory.
    mode : {"r", "r+", "a", "w", "w-", "x"}
        What will be done with it; with "r" the store is read-only.

    Returns
    -------
    store : Store
    path : str
        "" but for ``memory://name/path``, and for an archive that has everything in one folder, as
        one gets by packing a directory by hand: then the name of the folder.

    Raises
    ------
    StoreError
        The URL means a kind of store that is not there, or the path a file that is no archive.
    ReadOnlyError
        The store cannot be written, and the mode says that it will be.
    TypeError
        Nothing of the above.

    Examples
    --------
    >>> store, path = resolve({"zarr.json": b"{}"}, "r")
    >>> store.read_only, path, list(store.list())
    (True, '', ['zarr.json'])
    """
    if mode not in MODES:
        raise ValueError(f"mode is {mode!r}, must be one of {', '.join(map(repr, MODES))}")
    options = dict(storage_options or {})
    if isinstance(storelike, str) and _is_url(storelike):
        return _from_url(storelike, mode, options)
    adapted = None if isinstance(storelike, (str, Store)) else _adapted(storelike, mode, options)
    if adapted is not None:
        return adapted
    if options:
        raise StoreError("storage_options mean nothing to this store", found=sorted(options))
    if isinstance(storelike, str):
        return _from_path(os.path.expanduser(storelike), mode)
    if isinstance(storelike, Store):
        return _in_mode(storelike, mode), ""
    if storelike is None:
        return MemoryStore(read_only=mode == "r"), ""
    if isinstance(storelike, MutableMapping):
        return MemoryStore(storelike, read_only=mode == "r"), ""
    if isinstance(storelike, Mapping):
        return _in_mode(MemoryStore(dict(storelike), read_only=True), mode), ""
    if isinstance(storelike, os.PathLike):
        return _from_path(os.fsdecode(storelike), mode)
    raise TypeError(
        f"{type(storelike).__name__} is no store; give a path, a URL, a dictionary, None or an omnizarr.stores.Store"
    )


def _is_url(text: str) -> bool:
    return _scheme(text) is not None or "::" in text


def _adapted(storelike: Any, mode: str, options: dict[str, Any]) -> tuple[Store, str] | None:
    """Return what another library calls a store as one of ours; None if no library that is known made it."""
    for kind in type(storelike).__mro__:
        module = _LIBRARIES.get(kind.__module__.partition(".")[0])
        if module is not None:
            return import_module(f"omnizarr.stores.{module}").adapt(storelike, mode, options)  # type: ignore[no-any-return]
    return None


def _in_mode(store: Store, mode: str) -> Store:
    if mode == "r":
        return store if store.read_only else store.with_read_only()
    if store.read_only:
        raise ReadOnlyError(
            "the store is read-only", store=repr(store), found=f"mode {mode!r}", remedy='use mode "r", or another store'
        )
    return store


def _file_of(path: str) -> str:
    """Return the file that the path of a URL means, as `urllib.request` would (but that takes 20 ms to import)."""
    path = parse.unquote(path)
    # file:///C:/data: the drive is no directory of the root
    return path[1:] if os.name == "nt" and re.match(r"/[A-Za-z]:", path) else path


def _from_url(url: str, mode: str, options: dict[str, Any]) -> tuple[Store, str]:
    parts = parse.urlsplit(url)
    scheme = parts.scheme.lower()
    if "::" in url:  # a chain, as fsspec writes it
        return import_module("omnizarr.stores.fsspec").open_url(url, mode, options)  # type: ignore[no-any-return]
    if scheme in {"file", "local"} and parts.netloc in ("", "localhost") and not options:
        return _from_path(_file_of(parts.path), mode)
    if scheme == "memory" and not options:
        path = parse.unquote(parts.path).strip("/")
        return _named_memory(parts.netloc, mode), as_prefix(path).removesuffix("/")
    module = _SCHEMES.get(scheme, "fsspec")
    return import_module(f"omnizarr.stores.{module}").open_url(url, mode, options)  # type: ignore[no-any-return]


def _named_memory(name: str, mode: str) -> MemoryStore:
    if mode in ("r", "r+"):  # looking does not create
        return MemoryStore(_named.get(name, {}), read_only=mode == "r")
    return MemoryStore(_named.setdefault(name, {}))


def _from_path(path: str, mode: str) -> tuple[Store, str]:
    if not path:
        raise ValueError("the path of a store cannot be empty; '.' is the current directory")
    if os.path.isdir(path):
        return LocalStore(path, read_only=mode == "r"), ""
    is_file = os.path.isfile(path)
    if not (is_file or path.lower().endswith(".zip")):
        return LocalStore(path, read_only=mode == "r"), ""
    if is_file and mode in ("w-", "x"):
        raise NodeExistsError("the archive exists already", store=path, remedy='overwrite it with mode "w"')
    if is_file and not zipfile.is_zipfile(path):
        raise StoreError(
            "a file that is neither a directory nor a zip archive", store=path, remedy="is it of another format?"
        )
    store = archives.ZipStore(path, mode=mode)
    return store, "" if mode in ("w", "w-", "x") else _top_folder(store)


def _top_folder(store: Store) -> str:
    """Return the name of the folder that everything in the archive is in; "" if there is no such folder."""
    keys, prefixes = store.list_dir("")
    # What macOS adds to the archives it packs.
    folders = [prefix for prefix in prefixes if prefix != "__MACOSX/"]
    if len(folders) == 1 and all(key == ".DS_Store" for key in keys):
        return folders[0].removesuffix("/")
    return ""
