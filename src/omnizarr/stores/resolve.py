"""Find the store for a path, URL or object.

URLs, and the module that documents each:

=========================================  ====================================================  ============
``file:///path``, ``file:/path``           a directory, or a file that is an archive or database  `local`, `zip`
``memory://name``, ``memory://name/path``  values in this process, the same for the same name    `memory`
``s3://``, ``gs://``, ``az://``, ...       object stores                                         `object`
``s3+https://server/bucket/path``          a bucket of S3 on another server                      `object`
``http://``, ``https://``                  a web server                                          `object`
``sqlite:///path``                         an SQLite database                                    `sqlite`
``lmdb:///path``                           an LMDB environment                                   `lmdb`
``zip::https://...``, ``sftp://``, ...     chains, and every other scheme that fsspec knows      `fsspec`
``fsspec+s3://``, ``fsspec+https://``      the same URLs, but through fsspec               `fsspec`
``n5://PATH``, ``n5://URL``                N5 hierarchies whose names do not end with .n5        `readers.n5`
``precomputed://PATH``                     volumes of Neuroglancer, at a path or URL    `readers.precomputed`
``ocdbt://PATH``, ``ocdbt://PATH@v3``      a version of an OCDBT database, at a path or URL      `ocdbt`
``reference://``, ``reference::URL``       references of Kerchunk, as in fsspec            `references`
``s3://.../refs.json``, ``.../refs.parq``  references of Kerchunk, of any scheme                 `references`
``icechunk:///path@main``                  a branch, tag or snapshot of an Icechunk repository   `icechunk`
``icechunk+s3://bucket/path@main``         the same, in S3 (``gs``, ``az``, ``https``)           `icechunk`
``s3://bucket/x.zip|zip:a/|zarr3:``        pipelines of URLs: ZEP 8                              `pipelines`
=========================================  ====================================================  ============
"""

from __future__ import annotations

import itertools
import os
import re
from collections.abc import Mapping, MutableMapping, Sequence
from functools import lru_cache
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

from omnizarr.errors import NotRepresentableError, ReadOnlyError, SettingError, StoreError
from omnizarr.stores import kinds, pipelines, redaction, urls, verbs
from omnizarr.stores.base import Store
from omnizarr.stores.local.directory import LocalStore
from omnizarr.stores.local.memory import MemoryStore
from omnizarr.stores.urls import parse
from omnizarr.stores.wrap.wrappers import PrefixStore
from omnizarr.support import extras, suggestions
from omnizarr.support.lazy import Lazy

if TYPE_CHECKING:
    import zipfile

    from omnizarr.stores.local import zip as archives
    from omnizarr.stores.remote import references
else:
    references = Lazy("omnizarr.stores.remote.references")
    zipfile = Lazy("zipfile")
    archives = Lazy("omnizarr.stores.local.zip")

MODES = ("r", "r+", "a", "w", "w-", "x")
_READING: Final = (None, "r", "r+")

# What pathlib turns a URL into.
_lost_slash = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+):[/\\](?![/\\])").match

_below_zip = re.compile(r"\.zip[/\\]", re.IGNORECASE).finditer

_MAKERS: Final = ("zarr.json", ".zarray", ".zgroup")
"""Documents of Zarr, the most frequent first."""
_DOCUMENTS: Final = (".zgroup", ".zarray", "zarr.json", "meta", "attrs")

# The module that adapts a store of another library, by the library that defines its class or a base class:
# `adapt(storelike, mode, options) -> (Store, path) | None`.
_LIBRARIES: Final = {
    "obstore": "remote.object",
    "zarr": "remote.zarr_python",
    "icechunk": "remote.zarr_python",
    "fsspec": "remote.fsspec",
    "upath": "remote.fsspec",
}


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
    if mode is not None and mode not in MODES:
        raise ValueError(f"mode is {mode!r}, must be one of {', '.join(map(repr, MODES))}")
    options = dict(storage_options or {})
    if isinstance(storelike, str):
        return _from_text(storelike, mode, options)
    if mode is None:
        try:
            return resolve(storelike, "r+", storage_options)
        except ReadOnlyError:
            return resolve(storelike, "r", storage_options)
    kind: Any = type(storelike)  # mypy takes no type for hashable
    libraries = () if isinstance(storelike, Store) else _libraries_of(kind)
    if libraries:
        adapted = _adapted(storelike, libraries, mode, kinds.of_store(options))
        if adapted is not None:
            return _in_mode(adapted[0], mode), adapted[1]
    if isinstance(storelike, os.PathLike):
        return _from_pathlike(storelike, mode, options)
    if isinstance(storelike, Mapping):
        return _from_mapping(storelike, mode, options)
    kinds.refuse_options(options)
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


def _from_text(text: str, mode: str | None, options: dict[str, Any]) -> tuple[Store, str]:
    text, server = urls.plain(text)
    options = {**server, **options}
    if "|" in text and (piped := pipelines.resolve(text, mode, options, resolve, _member)) is not None:
        return piped
    if scheme := urls.scheme_of(text):
        return _from_url(text, scheme, mode, options)
    return _from_path(os.path.expanduser(text) if text[:1] == "~" else text, mode, options)


def _are_references(values: dict[str, Any]) -> bool:
    """Return whether a dictionary holds references of Kerchunk: texts and lists, where a store has bytes."""
    return any(isinstance(value, str | list | dict | int) for value in itertools.islice(values.values(), 1))


def _from_mapping(values: Mapping[str, Any], mode: str, options: dict[str, Any]) -> tuple[Store, str]:
    if isinstance(values, dict) and _are_references(values):
        return references.open_document(values, mode, options)
    kinds.refuse_options(options)
    if isinstance(values, MutableMapping):
        return MemoryStore(values, read_only=mode == "r"), ""
    return _in_mode(MemoryStore(values, read_only=True), mode), ""


def _adapted(storelike: Any, libraries: Sequence[str], mode: str, options: dict[str, Any]) -> tuple[Store, str] | None:
    """Return our store for a store of other libraries; None if it is only a mapping."""
    for module in libraries:
        if module == "remote.zarr_python" and isinstance(storelike, MutableMapping):
            continue  # the stores of zarr-python 2 are plain mappings
        return import_module(f"omnizarr.stores.{module}").adapt(storelike, mode, options)  # type: ignore[no-any-return]
    return None


@lru_cache(256)
def _libraries_of(kind: type) -> tuple[str, ...]:
    """Return the modules for the libraries that define a class and its base classes."""
    names = (base.__module__.partition(".")[0] for base in kind.__mro__)
    return tuple(_LIBRARIES[name] for name in names if name in _LIBRARIES)


def refuse_other_format(store: Store) -> None:
    """Raise SettingError if a new directory would have a name that promises a file of another format.

    Nodes below an existing hierarchy can have any name.
    """
    kind = other_format(store)
    if kind is None:
        return
    remedy = f"; {kind.remedy}" if kind.remedy.startswith("convert ") else ""
    raise SettingError(
        f"the name is that of {kind.title}, and a directory would be written",
        store=repr(store),
        expected=f"a name such as x.zarr, x.zip or x.sqlite{remedy}",
        remedy="choose another name, or pass omnizarr.stores.LocalStore(path) if you want a directory of this name",
    )


def other_format(store: Store) -> kinds.Kind | None:
    """Return the kind of files that the name of a new directory promises; None if it promises none, or is not new."""
    if type(store) is not LocalStore or store.knows_root:
        return None
    kind = kinds.foreign(store.root)
    return None if kind is None or os.path.exists(store.root) or _is_below_node(store.root) else kind


def _is_below_node(path: str) -> bool:
    above = os.path.dirname(os.path.abspath(path))
    while above != os.path.dirname(above):
        if any(os.path.isfile(os.path.join(above, name)) for name in (".zgroup", ".zarray", "zarr.json", "attrs")):
            return True
        above = os.path.dirname(above)
    return False


def is_reference_set(directory: str) -> bool:
    """Return whether a directory holds references of Kerchunk in Parquet."""
    name, _ = kinds.REFERENCES.markers[0]
    return os.path.isfile(os.path.join(directory, name)) and references.is_set(directory)


def _in_mode(store: Store, mode: str) -> Store:
    if mode == "r":
        return store if store.read_only else store.with_read_only()
    if store.read_only:
        raise ReadOnlyError(
            "the store is read-only", store=repr(store), found=f"mode {mode!r}", remedy='use mode "r", or another store'
        )
    return store


def _from_url(url: str, scheme: str, mode: str | None, options: dict[str, Any]) -> tuple[Store, str]:
    if "::" in url.partition("?")[0]:
        kind: kinds.Kind | None = kinds.REFERENCES if scheme in kinds.REFERENCES.schemes else kinds.FSSPEC
    elif scheme in urls.LOCAL:
        return _from_path(urls.path_of(url), mode, options)
    else:
        kind = kinds.of_scheme(scheme)
        if kind is None or not kind.is_local:
            name = parse.urlsplit(url).path.rstrip("/")
            if mode in _READING and (found := _folder_in_archive_at(url, mode, options)) is not None:
                return found
            file = kinds.of_name(name) or kinds.of_folder(name)
            if file is not None and file.opens and not file.is_local:
                opened = _opened(file, url, None, mode, options, is_named=True)
                if opened is not None:
                    return opened
            elif mode in _READING and (found := _in_file_at(url, mode, options)) is not None:
                return found
    if kind is None:
        _check_known(scheme, url)
        kind = kinds.FSSPEC
    opened = _opened(kind, url, None, mode, options, is_named=True)
    if opened is None:
        raise StoreError(f"this is not {kind.title}", found=redaction.redact(url))
    return opened


def _in_file_at(url: str, mode: str | None, options: dict[str, Any]) -> tuple[Store, str] | None:
    """Return what is at a URL that continues into a file of another format; None if it does not."""
    parts = parse.urlsplit(url)
    within = kinds.file_within(parts.path)
    kind = None if within is None else kinds.of_name(within[0])
    if within is None or kind is None or not kind.opens:
        return None
    opened = _opened(kind, parts._replace(path=within[0]).geturl(), None, mode, options, is_named=True)
    return None if opened is None else _below(opened, parse.unquote(within[1]))


def _folder_in_archive_at(url: str, mode: str | None, options: dict[str, Any]) -> tuple[Store, str] | None:
    """Return the hierarchy of another format at a URL that continues into an archive; None if it does not."""
    path = parse.urlsplit(url).path
    match = next(_below_zip(path), None)
    if match is None or kinds.of_folder(path[match.end() :]) is None:
        return None
    archive = parse.urlsplit(url)._replace(path=path[: match.end() - 1]).geturl()
    store, top = resolve(archive, "r", options)
    return _folder(store, top, parse.unquote(path[match.end() :]).strip("/"), options)


def _below(opened: tuple[Store, str], within: str) -> tuple[Store, str]:
    store, above = opened
    return store, f"{above}/{within}" if above else within


def _opened(
    kind: kinds.Kind, text: str, path: str | None, mode: str | None, options: dict[str, Any], *, is_named: bool
) -> tuple[Store, str] | None:
    """Return what the kind opens; if the user has given no mode, to be read if it cannot be written."""
    place = kinds.Place(text, path, mode or "r+", options, is_named, resolve)
    try:
        return kind.open(place)
    except ReadOnlyError:
        if mode is not None:
            raise
        return kind.open(place._replace(mode="r"))


def _check_known(scheme: str, url: str) -> None:
    """Raise StoreError if a scheme is unknown."""
    known = import_module("omnizarr.stores.remote.fsspec").known_protocols()
    if scheme in known:
        return
    near = suggestions.near_names(scheme, [*kinds.schemes(), *known], most=1)
    if near:
        remedy = f"did you mean '{near[0]}://'?"
    else:
        remedy = "is it misspelled?" if known else f"fsspec knows more schemes: {extras.remedy('fsspec')}"
    raise StoreError(
        f"no store is known for URLs that begin with '{scheme}://'",
        found=redaction.redact(url.partition("#")[0]),
        remedy=remedy,
    )


def _from_pathlike(given: os.PathLike[str], mode: str, options: dict[str, Any]) -> tuple[Store, str]:
    path = os.fsdecode(given)
    url = _lost_slash(path)
    if url is not None and url[1].lower() in kinds.schemes() and not os.path.exists(f"{url[1]}:"):
        raise ValueError(
            f"pathlib has made a path of a URL that began with '{url[1]}://'; give it as a str, or as a UPath"
        )
    return _from_path(path, mode, options)


def _from_path(path: str, mode: str | None, options: dict[str, Any]) -> tuple[Store, str]:
    if not path:
        raise ValueError("the path of a store cannot be empty; '.' is the current directory")
    directory = LocalStore(path, read_only=mode == "r")
    folder = kinds.of_folder(path)
    directory.is_missing = mode not in _READING and not os.path.exists(path)  # one look for the many below
    if folder is None and not options and not directory.is_missing and _is_zarr(path, directory):
        return directory, ""  # whatever else is in it
    return _from_name(path, directory, folder, mode, options)


def _from_name(
    path: str, directory: LocalStore, folder: kinds.Kind | None, mode: str | None, options: dict[str, Any]
) -> tuple[Store, str]:
    files = None if directory.is_missing else directory.files_at_root(kinds.markers())
    if files is None and not directory.is_missing and os.path.isfile(path):
        return _from_file(path, mode, options)
    if files is None and ".zip" in path.lower() and (found := _in_archive(path, mode, options)) is not None:
        return found
    if files is None and mode in _READING and (within := kinds.file_within(path.replace(os.sep, "/"))) is not None:
        outer = path[: len(within[0])]
        if os.path.isfile(outer):
            return _below(_from_file(outer, mode, options), within[1])
    is_new, is_zarr = files is None, True
    kind: kinds.Kind | None = None
    if is_new:
        kind = kinds.of_name(path) or folder
    elif files or folder is not None or not kinds.is_usual(path):  # Zarr can lie beside the file of another store
        is_zarr = bool(directory.files_at_root(_DOCUMENTS))
        path = path.rstrip("/\\")
        kind = folder or (kinds.of_marker(files[0]) if files else None if is_zarr else kinds.offered_for_name(path))
    if kind is not None and kind.opens:
        is_named = kind.has_name(path, is_new=is_new) or (is_new and kind is folder)
        if is_named or not is_zarr:
            opened = _opened(kind, path, path, mode, options, is_named=is_named)
            if opened is not None:
                return opened
    if options:
        kinds.refuse_options(options)
    return directory, ""


def _is_zarr(path: str, directory: LocalStore) -> bool:
    """Return whether a directory certainly is to be opened as Zarr: no name says anything else, and documents are."""
    return kinds.is_usual(path) and path[-1] not in "/\\" and any(map(directory.has_at_root, _MAKERS))


def _in_archive(path: str, mode: str | None, options: dict[str, Any]) -> tuple[Store, str] | None:
    """Return what is at a path within a zip archive, to be read; None if no file on the way is an archive."""
    for end in (match.end() - 1 for match in _below_zip(path)):
        archive, within = path[:end], path[end + 1 :].replace(os.sep, "/").strip("/")
        if within and mode in _READING and os.path.isfile(archive) and zipfile.is_zipfile(archive):
            if mode == "r+":
                raise ReadOnlyError(
                    "what is in a zip archive can only be read by its own path",
                    store=path,
                    remedy='open it with mode "r", or open the archive itself',
                )
            store = archives.ZipStore(archive, mode="r")
            if (folder := _folder(store, "", within, options)) is not None:
                return folder
            file, inside = within, ""
            if not store.exists(within):
                file, inside = kinds.file_within(within) or ("", "")
                if not file or not store.exists(file):
                    kinds.refuse_options(options)
                    return store, within
            try:
                opened = _member(store, file, options)
                return _below(opened, inside) if inside else opened
            except BaseException:
                store.close()
                raise
    return None


def _folder(store: Store, top: str, within: str, options: dict[str, Any]) -> tuple[Store, str] | None:
    """Return the hierarchy of another format that a directory in an archive is; None if no name says so."""
    kind = kinds.of_folder(within)
    if kind is None:
        return None
    names = within.split("/")
    end = next((at for at, name in enumerate(names, 1) if kinds.of_folder(name) is kind), 0)
    if not end:
        return None
    there = "/".join([top, *names[:end]]).strip("/")
    found = PrefixStore(store, there), "/".join(names[end:])
    url = f"{kind.schemes[0]}://{there}"
    return kind.open(kinds.Place(url, None, "r", options, is_named=True, resolve=lambda *_: found))


def _member(store: Store, name: str, options: dict[str, Any]) -> tuple[Store, str]:
    """Return the hierarchy of a file of another format in an archive."""
    by_name = kinds.of_name(name)
    kind = by_name if by_name is not None and by_name.opens and not by_name.is_local else None
    if kind is None:
        head = bytes(store.get(name, (0, kinds.HEAD)) or b"")
        kind = kinds.of_head(head)
        kind = kind if kind is not None and kind.opens and not kind.is_local else kinds.offered_for_head(head)
    if kind is not None:
        try:
            list(verbs.extents(store, [name]))
        except NotRepresentableError as error:
            raise StoreError(
                f"{kind.title} that is compressed in a zip archive, which cannot be read in place",
                store=repr(store),
                key=name,
                remedy="unpack the archive, or store the file in it without compression: zip -0",
            ) from error
        above, _, last = name.rpartition("/")
        # The file is asked for as one of a URL, whose directory is a place in the archive.
        url = f"memory:///{parse.quote(last)}"
        place = kinds.Place(url, None, "r", options, kind is by_name, lambda *_: (store, above))
        opened = kind.open(place)
        if opened is not None:
            return opened
    raise StoreError(
        "a file in a zip archive that is of no known format", store=repr(store), key=name, remedy="unpack the archive"
    )


def _from_file(path: str, mode: str | None, options: dict[str, Any]) -> tuple[Store, str]:
    by_name = kinds.of_name(path)
    if by_name is not None and by_name.opens and not by_name.is_local:
        opened = _opened(by_name, path, path, mode, options, is_named=True)
        if opened is not None:
            return opened
    with open(path, "rb") as file:
        head = file.read(kinds.HEAD)
    kind = by_head = kinds.of_head(head)
    if kind is None or not kind.opens:
        if by_name is not None and by_name.opens and by_name.has_name(path, is_new=True):
            kind = by_name
        else:
            kind = kinds.offered_for_head(head) or (kinds.ZIP if zipfile.is_zipfile(path) else None)
    if kind is not None:
        opened = _opened(kind, path, path, mode, options, is_named=kind is by_name)
        if opened is not None:
            return opened
    kinds.refuse_options(options)
    if by_head is None:
        raise StoreError(
            "a file that is neither a directory nor a zip archive", store=path, remedy="is it of another format?"
        )
    if by_head.opens:
        raise StoreError(f"a file that begins as {by_head.title}, and is none", store=path, remedy="is it complete?")
    raise StoreError(f"{by_head.title}, which cannot be opened in place", store=path, remedy=by_head.remedy or None)
