"""The files that Kerchunk references name: the store of each file, and its key there.

Paths and URLs in references
    ``s3://``, ``gs://``, ``az://``, ``https://`` are object stores, one for each bucket or host; other schemes and
    chains are those of fsspec. Without a scheme, it is a path of this machine, or, if `remote_protocol` names a
    scheme, a URL of that scheme. A relative path begins in the directory of the references. If there is no such
    file, it begins in the current directory, as in fsspec.

Options
    Those of fsspec's ``ReferenceFileSystem``: `remote_protocol`, `remote_options`, `fs`, `target`, and for the
    references themselves `target_protocol`, `target_options`, `template_overrides`. All others are options of the store
    that holds the references, and of targets in the same service.

Trust
    References may lead to their own directory, to their own server or bucket, and to what is public: other buckets
    anonymously, and other web servers. What else they may lead to, `references` says: see `omnizarr.stores.trust`. The
    user's credentials are used where the user says so: in `remote_options`, in `fs`, by trust.
"""

from __future__ import annotations

import os
import posixpath
from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from omnizarr.errors import Remedy, StorageOption, StoreError
from omnizarr.stores import trust
from omnizarr.stores.base import Store
from omnizarr.stores.local.directory import LocalStore
from omnizarr.stores.urls import LOCAL, parse, path_in_fsspec, scheme_of
from omnizarr.support.lazy import Lazy

if TYPE_CHECKING:
    from omnizarr.stores.remote import fsspec as files
    from omnizarr.stores.remote import object as objects
    from omnizarr.stores.remote import object_urls
else:
    files = Lazy("omnizarr.stores.remote.fsspec")
    objects = Lazy("omnizarr.stores.remote.object")
    object_urls = Lazy("omnizarr.stores.remote.object_urls")


_OF_THIS_MACHINE: Final = LOCAL | {"memory"}
_WITHOUT_EFFECT: Final = frozenset(
    {
        *("asynchronous", "cache_size", "loop", "max_block", "max_gap", "simple_templates", "skip_instance_cache"),
        *("use_listings_cache", "lazy"),
    }
)
"""Options of fsspec that have no effect here."""
_OF_THE_LOOP: Final = frozenset({"asynchronous", "loop"})
_MOST_KEPT: Final = 4096


@dataclass(frozen=True, slots=True)
class Options:
    """The options of a user for a set of references."""

    target: str | None = None
    target_protocol: str | None = None
    target_options: Mapping[str, Any] | None = None
    remote_protocol: str | None = None
    remote_options: Mapping[str, Any] | None = None
    fs: Any = None
    template_overrides: Mapping[str, str] | None = None
    allow_local: bool | None = None
    references: Any = None
    rest: Mapping[str, Any] = field(default_factory=dict)
    """Options of the store that holds the references."""

    @classmethod
    def names(cls) -> frozenset[str]:
        """Return the names of all options of references."""
        return frozenset(cls.__dataclass_fields__) - {"rest"}

    @classmethod
    def of(cls, given: Mapping[str, Any]) -> Options:
        """Return the options of references, and all others."""
        names = cls.names()
        known = {name: given[name] for name in names & given.keys()}
        if "ref_storage_args" in given:  # the older name
            known.setdefault("target_options", given["ref_storage_args"])
        others = given.keys() - names - _WITHOUT_EFFECT - {"ref_storage_args"}
        return cls(**known, rest={name: given[name] for name in others})

    @property
    def of_references(self) -> dict[str, Any]:
        """Options of the store that holds the references."""
        given = {**self.rest, **(self.target_options or {})}
        given.pop("compression", None)  # the file contains this itself
        return {name: value for name, value in given.items() if name not in _OF_THE_LOOP}


class Targets:
    """The files that the references of one set name.

    Parameters
    ----------
    options : Options
    base : str
        The directory of the references, or its URL; "" if they are in memory.
    sample : str, optional
        One of the URLs. `remote_options` are for its scheme, if no `remote_protocol` is given.
    """

    def __init__(self, options: Options, base: str, sample: str | None = None) -> None:
        self._options = options
        self._base = base
        scheme = scheme_of(base)
        self._is_remote = scheme is not None and scheme not in _OF_THIS_MACHINE
        self._trust = trust.of(trust.TRUSTED if options.allow_local else options.references, trust.PUBLIC)
        self._service = _service(options.remote_protocol or scheme_of(sample or ""))
        self._start()

    def _start(self) -> None:
        self._located: dict[str | None, tuple[Store, str]] = {}
        self._stores: dict[Hashable, Store] = {}

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name not in {"_located", "_stores"}}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._start()

    def locate(self, url: str | None) -> tuple[Store, str]:
        """Return the store of a file, and its key there. The file need not exist.

        Raises
        ------
        StoreAccessError
            If you did not say that the references may lead there.
        StoreError, MissingDependencyError
            If the URL does not lead to a store.
        """
        found = self._located.get(url)
        if found is None:
            found = self._locate(self._options.target if url is None else url)
            if len(self._located) >= _MOST_KEPT:
                self._located.clear()
            self._located[url] = found
        return found

    def _locate(self, url: str | None) -> tuple[Store, str]:
        if url is None:
            raise StoreError(
                "a reference that names no file", remedy=Remedy("name it by {target}", target=StorageOption("..."))
            )
        scheme, options = scheme_of(url), self._options
        fs = self._filesystem(scheme)
        if fs is not None:
            return files.place_in(fs, url)
        if scheme in LOCAL:
            return self._on_this_machine(path_in_fsspec(url))
        if scheme is not None:
            return self._elsewhere(url, scheme)
        if options.remote_protocol not in {None, *LOCAL}:
            return self._elsewhere(f"{options.remote_protocol}://{url.lstrip('/')}", str(options.remote_protocol))
        if self._is_remote and not os.path.isabs(url):
            return self._beside_the_references(url)
        return self._on_this_machine(url)

    def _filesystem(self, scheme: str | None) -> Any:
        """Return the filesystem of fsspec that the user passed for a scheme."""
        given = self._options.fs
        if given is None or isinstance(given, Mapping):
            found = None if given is None else given.get(scheme)
            return None if isinstance(found, Mapping) else found
        protocols = (given.protocol,) if isinstance(given.protocol, str) else given.protocol
        return given if scheme is None or scheme in protocols else None

    # -- this machine ---------------------------------------------------------------

    def _on_this_machine(self, path: str) -> tuple[Store, str]:
        path = os.path.abspath(path if os.path.isabs(path) or self._is_remote else self._relative(path))
        if self._trust.is_complete:
            return whole_machine(path)
        found = trust.root_of(path, [*self._own_directories(), *self._trust.directories])
        if found is None:
            raise trust.refused_target(path)
        root, key = found
        return self._stores.setdefault(root, LocalStore(root, read_only=True)), key

    def _own_directories(self) -> list[str]:
        """Return the directory of the references; for references in memory, the current one."""
        return [self._base or os.curdir] if scheme_of(self._base) is None else []

    def _relative(self, path: str) -> str:
        """Return the file of a relative path: beside the references, otherwise in the current directory."""
        beside = os.path.join(self._base, path)
        if not self._base or not os.path.exists(path) or not os.path.exists(beside):
            return path if os.path.exists(path) else beside
        if not os.path.samefile(path, beside):
            raise StoreError(
                "a relative path in a reference means two files",
                found=f"{os.path.abspath(beside)} and {os.path.abspath(path)}",
                remedy="open the references in the directory that they lie in",
            )
        return path

    # -- other machines --------------------------------------------------------------------

    def _beside_the_references(self, path: str) -> tuple[Store, str]:
        """Return a file in or below the remote directory of the references."""
        joined = posixpath.normpath(path)
        if joined.startswith("../") or scheme_of(self._base) is None:
            raise StoreError("a relative path in a reference leads out of the directory of the references", found=path)
        head, query, tail = self._base.partition("?")
        is_encoded = scheme_of(self._base) in {"http", "https"}
        url = f"{head.rstrip('/')}/{parse.quote(joined) if is_encoded else joined}{query}{tail}"
        return self._elsewhere(url, str(scheme_of(url)))

    def _elsewhere(self, url: str, scheme: str) -> tuple[Store, str]:
        service = object_urls.backend_of(scheme)
        is_object = service is not None and "::" not in url.partition("?")[0]
        has_credentials = self._is_trusted(url, scheme, is_object=is_object)
        if not is_object:
            # Also `memory`, which means something else to fsspec.
            return files.file_at(url, self._options_for(scheme, url))
        head, _, rest = url.partition("://")
        host, _, key = rest.partition("/")
        root = f"{head}://{host}"
        if service == "http":
            parts = parse.urlsplit(url)
            root, key = parts._replace(path="/", fragment="").geturl(), parse.unquote(parts.path).strip("/")
        store = self._stores.get(root)
        if store is None:
            options = self._options_for(scheme, url, has_credentials=has_credentials)
            store = objects.ObjectStore.from_url(root, options, read_only=True)
            if service == "http" and not has_credentials:
                store = store.on_public_servers()
            if len(self._stores) >= _MOST_KEPT:
                self._stores.clear()
            self._stores[root] = store
        return store, key

    def _is_trusted(self, url: str, scheme: str, *, is_object: bool) -> bool:
        """Return whether a URL may be read with the credentials of the user; False: only without any.

        Raises StoreAccessError if it may not be read at all.
        """
        options = self._options
        if self._trust.covers(url) or trust.is_same_place(url, self._base):
            return True
        named = {options.remote_protocol, *(options.fs if isinstance(options.fs, Mapping) else ())}
        if scheme in named and not is_object and "::" not in url.partition("?")[0]:
            return True
        if is_object and self._trust.word == trust.PUBLIC and trust.is_public(url):
            return False
        raise trust.refused_target(url)

    def _options_for(self, scheme: str, url: str, *, has_credentials: bool = True) -> dict[str, Any]:
        """Return the options of the store that holds the targets of a scheme, in the bucket or on the host of a URL."""
        options = self._options
        service = _service(scheme)
        by_scheme = options.fs.get(scheme) if isinstance(options.fs, Mapping) else None
        given: Mapping[str, Any] | None = None
        if isinstance(by_scheme, Mapping):
            given = by_scheme
        elif options.remote_options is not None:
            given = options.remote_options if service == self._service else None
        elif not self._is_remote:
            given = options.rest if options.rest and service == self._service else None
        elif trust.is_same_place(url, self._base) or (has_credentials and service == _service(scheme_of(self._base))):
            # Headers and tokens are for the host of the references.
            given = options.of_references if service != "http" or trust.is_same_place(url, self._base) else {}
        if given is None:
            own = options.of_references if service == _service(scheme_of(self._base)) else {}
            given = {} if has_credentials else object_urls.anonymous(scheme, own)
        return {name: value for name, value in given.items() if name not in _OF_THE_LOOP}


def whole_machine(path: str) -> tuple[Store, str]:
    """Return a store of all files, and the key of an absolute path: links may lead out of its directory."""
    drive, below = os.path.splitdrive(path)
    return LocalStore(drive + os.sep, read_only=True), below.replace(os.sep, "/").lstrip("/")


def _service(scheme: str | None) -> str | None:
    """Return one name for all schemes of one service."""
    return None if scheme is None else object_urls.backend_of(scheme) or scheme
