"""Values in parts of other files: a set of Kerchunk references as a store.

The value of each key is a range of bytes in a file of any format (netCDF-4, GRIB, TIFF, ...), on this machine
or elsewhere. `reference_sets` documents how sets are written, `reference_targets` how the files are found. They
are read by ranges, through omnizarr's stores.

Guarantees
    References are read-only. A key that is not in the set has no value. A reference to a file that does not exist, or
    that is too short, is an error: such a chunk is lost, and does not read as the fill value. The error is not a
    FileNotFoundError, which other libraries treat as a missing chunk.
"""

from __future__ import annotations

import copy
import os
from collections.abc import Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final, TypeVar

from omnizarr.errors import (
    NodeNotFoundError,
    NotRepresentableError,
    OmnizarrError,
    ReadOnlyError,
    Remedy,
    StorageOption,
    StoreAccessError,
    StoreError,
)
from omnizarr.stores import bounded, trust, verbs
from omnizarr.stores.base import Features, Store, as_prefix
from omnizarr.stores.manifests.file import File
from omnizarr.stores.manifests.targets import Target, TargetStore
from omnizarr.stores.redaction import redact
from omnizarr.stores.remote import reference_sets
from omnizarr.stores.remote.reference_sets import METADATA, Partitions, References, Table
from omnizarr.stores.remote.reference_targets import Options, Targets, whole_machine
from omnizarr.stores.urls import LOCAL, path_in_fsspec, scheme_of
from omnizarr.support.lazy import Lazy

if TYPE_CHECKING:
    from omnizarr.stores.kinds import Place
    from omnizarr.stores.remote import fsspec as files
else:
    files = Lazy("omnizarr.stores.remote.fsspec")

T = TypeVar("T")

_MOST_FILES: Final = 1 << 16
_NODES: Final = ("zarr.json", ".zgroup", ".zarray", METADATA)
"""Documents that show that a directory, which a server may not list, is a hierarchy."""


class ReferenceStore(TargetStore):
    """A store of Kerchunk references.

    Parameters
    ----------
    references : str, path or mapping
        Path or URL of a JSON file, which may be compressed with gzip or Zstandard, or of a directory with references
        in Parquet; or the references themselves, as kerchunk returns them.
    target_protocol, target_options : str, mapping, optional
        Protocol and options for reading the references, if the path does not state them.
    remote_protocol, remote_options : str, mapping, optional
        Scheme of target paths without one, and options of its store.
    fs : fsspec.AbstractFileSystem, or mapping, optional
        The filesystem of the targets; or for each scheme, a filesystem or the options of the store.
    target : str, optional
        The file for references that do not name one.
    template_overrides : mapping, optional
        Values that replace those of templates.
    references : {"inside", "trusted"} or list of str, optional
        What the references may lead to. The default is their own directory, bucket or server, other buckets
        anonymously, and other public web servers; "inside": no others; "trusted": everything, as also files of this
        machine elsewhere, and private networks; a list: "inside", and what is below these paths and URLs.
    allow_local : bool, optional
        True: an older spelling of ``references="trusted"``.
    **options
        Options of the store that holds the references.

    Raises
    ------
    NodeNotFoundError
        If the file does not exist.
    StoreError
        If the file does not contain references.
    MissingDependencyError
        If a package that is needed to read them is not installed.

    Notes
    -----
    The options are those of fsspec's ``ReferenceFileSystem``, except `references` and `allow_local`. You can also pass
    them as `storage_options`.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> folder = tempfile.TemporaryDirectory()
    >>> file = pathlib.Path(folder.name, "a.bin")
    >>> _ = file.write_bytes(b"header and data")
    >>> refs = {"version": 1, "refs": {"a/0": [str(file), 11, 4], "a/1": "text"}}
    >>> store = ReferenceStore(refs, references=[folder.name])
    >>> bytes(store.get("a/0")), bytes(store.get("a/0", (1, None))), store.get("a/1"), store.get("a/2")
    (b'data', b'ata', b'text', None)
    >>> folder.cleanup()
    """

    _set: References
    _again = "make the references again"
    _lost = "if the file has moved, make the references again, or give storage options that lead to it"

    def __init__(self, references: str | os.PathLike[str] | Mapping[str, Any], /, **options: Any) -> None:
        given = Options.of(options)
        if isinstance(references, Mapping):
            self._begin("<references>", "", reference_sets.of_document(references, given.template_overrides), given)
            return
        url = _url_of(os.fspath(references), given)
        found = _load(url, given)
        if isinstance(found, OmnizarrError):
            raise found
        self._begin(url, _above(url), found, given)

    def _begin(self, name: str, base: str, references: References, given: Options) -> None:
        """Set everything. `base` is the directory to which the references are relative."""
        self._name, self._set = name, references
        has_options = bool(given.rest or given.remote_options) and given.remote_protocol is None
        sample = references.sample() if has_options else None
        url = given.remote_protocol and f"{given.remote_protocol}://" if sample is None else sample.url
        if given.rest and all(scheme_of(each or "") in {None, *LOCAL} for each in (base, url)):
            raise StoreError(
                "storage_options mean nothing to references and files of this machine",
                found=sorted(given.rest),
                expected=f"only {', '.join(sorted(Options.names()))}",
                remedy="leave them out",
            )
        self._targets = Targets(given, base, url)
        self._features: Features | None = None
        self._files: dict[str | None, File] = {}

    @classmethod
    def from_filesystem(cls, fs: Any) -> ReferenceStore:
        """Return the store of the references of an fsspec ``ReferenceFileSystem``, read through its own filesystems."""
        store = cls({"version": 1}, fs=dict(fs.fss), target=fs.target, allow_local=True)
        store._set, store._name = _set_of(fs.references)
        return store

    @property
    def features(self) -> Features:
        """The concurrency of the store of the targets; other processes see the same files."""
        if self._features is None:
            concurrency = 1
            with suppress(OmnizarrError):  # reported when the file is requested
                if (sample := self._set.sample()) is not None:
                    concurrency = self._targets.locate(sample.url)[0].features.concurrency
            self._features = Features(concurrency, is_shared=True, listing="complete")
        return self._features

    # -- reading ------------------------------------------------------------------

    def _made(self, url: str | None) -> File:
        return File(*self._targets.locate(url))

    def _leads(self, target: Target) -> str:
        return f"the reference leads to {_shown(target)}"

    def _file_of(self, key: str, target: Target) -> str:
        """Return the absolute path or the URL of the file of a target."""
        if target.url is not None and scheme_of(target.url) not in {None, *LOCAL}:
            return target.url
        store, name = self._targets.locate(target.url)
        folder, _, name = name.rpartition("/")
        base = verbs.folder(store, folder)
        if base is None:
            raise NotRepresentableError("the file of a reference has no path or URL", store=repr(self), key=key)
        return base + name

    # -- the store itself ------------------------------------------------

    def with_read_only(self, read_only: bool = True) -> Store:  # noqa: FBT001, FBT002 - zarr-python's signature
        """Return a store for the same references. A writable one is refused."""
        return copy.copy(super().with_read_only(read_only))

    def _refusal(self) -> ReadOnlyError:
        return cannot_write(repr(self))

    @property
    def place(self) -> str:
        """The name of the references, without secrets."""
        return redact(self._name)

    def __repr__(self) -> str:
        return f"ReferenceStore({self.place!r})"


def _shown(target: Target) -> str:
    return "no file" if target.url is None else redact(target.url)


def cannot_write(store: str) -> ReadOnlyError:
    """Return the error that references are read-only."""
    return ReadOnlyError(
        "references can only be read", store=store, remedy='open them with mode "r", and copy what you want to change'
    )


# -- finding references ------------------------------------------------------------------


def _url_of(references: str, options: Options) -> str:
    """Return the absolute path or the URL of references, with the protocol from the options."""
    if options.target_protocol not in {None, *LOCAL} and scheme_of(references) is None:
        return f"{options.target_protocol}://{references.lstrip('/')}"
    url = os.path.expanduser(references)
    path = _path_of(url)
    return url if path is None else os.path.abspath(path)


def _path_of(url: str) -> str | None:
    """Return the local path of a URL or path; None if it is not local."""
    scheme = scheme_of(url)
    if scheme is None:
        return url
    return path_in_fsspec(url) if scheme in LOCAL else None


def _above(url: str) -> str:
    """Return the directory of an absolute path or a URL."""
    if os.path.isabs(url):
        return os.path.dirname(url)
    head, query, tail = url.partition("?")
    return head.rstrip("/").rpartition("/")[0] + query + tail


def _file(url: str, options: Options) -> tuple[Store, str]:
    """Return the store that holds the references, and their key or that of their directory."""
    if os.path.isabs(url):
        return whole_machine(url)
    return Targets(Options(rest=options.of_references, references=trust.TRUSTED), "", url).locate(url.rstrip("/"))


def _load(url: str, options: Options) -> References | OmnizarrError:
    """Return the references at a path or URL; an error if there are none."""
    store, key = _file(url, options)
    is_directory = os.path.isabs(url) and os.path.isdir(url)
    try:
        found = _read(store, key, options, is_directory=is_directory)
    except OmnizarrError as error:
        raise error.add(store=redact(url))
    return found.add(store=redact(url)) if isinstance(found, OmnizarrError) else found


def _read(store: Store, key: str, options: Options, *, is_directory: bool) -> References | OmnizarrError:
    denied = None
    if key and not is_directory:
        try:
            table = reference_sets.read(store, key, options.template_overrides)
        except StoreAccessError as error:  # nginx denies access to a directory that it may not list
            denied = error
        else:
            if table is not None:
                return table
    documents = bounded.document(store, as_prefix(key) + METADATA)
    if documents is not None and reference_sets.is_metadata(bytes(documents)):
        return Partitions(store, key, documents)
    if denied is not None and not any(store.exists(f"{key}/{name}") for name in _NODES):
        raise denied
    if documents is None:
        return NodeNotFoundError(
            "there are no references here", expected=f"a JSON file, or a directory with {METADATA} and files in Parquet"
        )
    return StoreError(
        "a directory without references",
        found=f"{METADATA} of consolidated metadata",
        expected="references of Kerchunk in Parquet",
    )


def _set_of(references: Any) -> tuple[References, str]:
    """Return the set of an fsspec filesystem, and how to call the filesystem."""
    if type(references).__name__ != "LazyReferenceMapper":
        return Table(references), "<references>"
    if any(isinstance(key, tuple) for key in references._items):  # changed, and not saved  # noqa: SLF001
        return Table({key: references[key] for key in references}), str(references.root)
    store, name = files.place_in(references.fs, references.root)
    found = _read(store, name, Options(), is_directory=True)
    if isinstance(found, OmnizarrError):
        raise found
    return found, str(references.root)


# -- called by `omnizarr.stores.resolve` ------------------------------------------------------


def open_place(place: Place) -> tuple[Store, str] | None:
    """Return the store for references at a path or URL; None if there are none.

    If their name does not say so, they need trust.
    """
    url, path = place.text, place.path
    if path is None and scheme_of(url) == "reference":
        return _open_url(url, place.mode, place.options)
    if path is not None:
        if not is_set(path) if os.path.isdir(path) else path.lower().endswith((".parq", ".parquet")):
            return None
        url = os.path.abspath(path)
    if path is not None and not place.read_only:
        raise cannot_write(path)
    given = Options.of(place.options)
    if not place.is_named and not given.allow_local and trust.of(given.references) == trust.Trust(trust.INSIDE):
        raise trust.refused_set(place.text)
    if not place.read_only:
        store, key = _file(url, given)
        with suppress(StoreAccessError):  # as in `_read`
            if store.exists(key):  # asked first: they may be large
                raise cannot_write(redact(url))
    found = _load(url, given)
    if isinstance(found, OmnizarrError):
        if path is not None:
            raise found
        return None
    if not place.read_only:
        raise cannot_write(redact(url))
    opened = ReferenceStore.__new__(ReferenceStore)
    opened._begin(url, _above(url), found, given)  # noqa: SLF001 - of this module
    return opened, ""


def open_document(document: Mapping[str, Any], mode: str, options: Mapping[str, Any]) -> tuple[Store, str]:
    """Return the store for references in memory."""
    if mode != "r":
        raise cannot_write("<references>")
    return ReferenceStore(document, **options), ""


def is_set(path: str) -> bool:
    """Return whether a directory contains references in Parquet."""
    try:
        with open(os.path.join(path, METADATA), "rb") as file:
            return reference_sets.is_metadata(file.read(reference_sets.MOST_METADATA))
    except OSError:  # the store reports that the directory is something else
        return False


def _open_url(url: str, mode: str, options: Mapping[str, Any]) -> tuple[Store, str]:
    """Return the store of ``reference://path`` or ``reference::URL``, and the path in it. Options are those of fsspec.

    The references come from the option ``fo``, or from the rest of the chain.
    """
    if mode != "r":
        raise cannot_write(redact(url))
    given = {**options, **options.get("reference", {})}
    given.pop("reference", None)
    head, _, rest = url.partition("::")
    if rest:
        given.setdefault("fo", rest)
    references = given.pop("fo", None)
    if references is None:
        raise StoreError(
            "the URL names no references",
            found=redact(url),
            remedy=Remedy("name them by {fo}", fo=StorageOption("refs.json")),
        )
    scheme = scheme_of(references) if isinstance(references, str) else None
    if isinstance(given.get(scheme or ""), Mapping):
        given.setdefault("target_options", given.pop(scheme or ""))
    return ReferenceStore(references, **given), head.partition("://")[2].strip("/")
