"""Repositories of Icechunk, to be written: the package icechunk writes documents, manifests and chunks, and commits."""

from __future__ import annotations

import os
import re
import shutil
import sys
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, nullcontext, suppress
from dataclasses import replace
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final, TypeVar

from omnizarr.errors import (
    ConflictError,
    InvalidKeyError,
    MissingDependencyError,
    NotRepresentableError,
    OmnizarrError,
    ReadOnlyError,
    Remedy,
    StorageOption,
    StoreAccessError,
    StoreError,
)
from omnizarr.stores import failures, kinds, trust, verbs
from omnizarr.stores.base import Buffer, Features, Listing, Span, Store, answers, as_prefix, check_key, listing
from omnizarr.stores.local import filelocks
from omnizarr.stores.local.memory import MemoryStore
from omnizarr.stores.redaction import redact
from omnizarr.stores.remote import icechunk, object_urls
from omnizarr.stores.remote.icechunk import MAIN, SCHEME, Address
from omnizarr.stores.remote.icechunk_objects import MAGIC, VERSION_AT
from omnizarr.stores.remote.zarr_python import ZarrPythonStore
from omnizarr.stores.urls import parse as urls
from omnizarr.stores.urls import scheme_of
from omnizarr.support import extras

if TYPE_CHECKING:
    from datetime import datetime


T = TypeVar("T")
_List = list  # within the class, `list` is a method
_PARTS: Final = frozenset({"refs", "snapshots", "manifests", "chunks", "transactions", "config.yaml"})
"""What a repository consists of, in a bucket."""
_SAME_SHAPE: Final = Remedy("convert with chunks of one shape: {chunks}", chunks=(100, 100))
_is_zarr_key = re.compile(r"(?:.*/)?(?:zarr\.json|c(?:/[0-9]+)*)", re.DOTALL).fullmatch
_unauthorized = re.compile(r"resolves to the url prefix (\S+?), to be able").search
_uncontained = re.compile(r"can handle the chunk location \((.*?)\)", re.DOTALL).search
_is_absent = re.compile(r"ref not found|invalid ref name|snapshot not found|object not found|not found").search


# -- repositories ---------------------------------------------------------------------------


def package() -> Any:
    """Return the package icechunk. Raises MissingDependencyError if it is not installed."""
    is_ours = SCHEME not in sys.modules
    try:
        module: Any = import_module("icechunk")
    except ImportError as error:
        raise MissingDependencyError(
            f"repositories of Icechunk need the package 'icechunk', which cannot be imported ({error})",
            remedy=extras.remedy("icechunk"),
        ) from error
    if is_ours and not os.environ.get("ICECHUNK_LOG"):
        # It warns of directories whenever one is opened, also to be read.
        module.set_logs_filter("error")
    return module


class Repository:
    """A repository, opened to be written.

    Parameters
    ----------
    address : Address
    options : mapping of str to object
        As for the object store that it is in: see `omnizarr.stores.remote.object_urls`; and `references`, which says
        from where virtual chunks may be read.
    create : bool
        Whether to create it, if there is none.
    """

    def __init__(self, address: Address, options: Mapping[str, Any], *, create: bool = False) -> None:
        self.address = address
        self.is_new = False
        self._options = {name: value for name, value in options.items() if name != "references"}
        self._package = package()
        found = self._package.Repository
        if not self.is_there(address, options):
            self._check_version()
            if not create:
                raise icechunk.missing(address)
            self._check_room()
            self.is_new = True
        storage = self.call(lambda: _storage(self._package, address, dict(self._options)))
        if self.is_new:
            self.call(lambda: found.create(storage))
        self._opened = self.call(lambda: found.open(storage))

    @classmethod
    def is_there(cls, address: Address, options: Mapping[str, Any]) -> bool:
        """Return whether there is a repository that the package icechunk can write."""
        module = package()
        if address.service == "file" and not kinds.is_repository(address.path):  # asking would make a directory
            return False
        given = {name: value for name, value in options.items() if name != "references"}
        try:
            return bool(module.Repository.exists(_storage(module, address, given)))
        except module.IcechunkError as error:
            raise failure(error, str(address)) from error

    def _check_version(self) -> None:
        """Raise StoreError if there is a repository of a version of the format that the package does not know."""
        head = bytes(icechunk.files_of(self.address, self._options).get("repo", (0, VERSION_AT + 1)) or b"")
        if head.startswith(MAGIC) and len(head) > VERSION_AT:
            version = head[VERSION_AT]
            raise StoreError(
                f"the repository has version {version} of the format of Icechunk, which the package icechunk "
                f"{self._package.__version__} does not write",
                store=self.address.base,
                remedy=f"pip install 'icechunk>={version}'",
            )

    def _check_room(self) -> None:
        """Raise StoreError if something else is where a new repository would be."""
        place = self.address.place
        if self.address.service != "file" or not os.path.lexists(place):
            return
        if not os.path.isdir(place) or os.listdir(place):
            raise StoreError(
                "something else is where the new repository would be",
                store=self.address.base,
                remedy="move it away, or choose another place",
            )

    def add_containers(self, prefixes: Iterable[str], options: dict[str, Any]) -> None:
        """Let the repository have virtual chunks below some URLs, from now on, and this object write them."""
        package, opened = self._package, self._opened
        config = opened.config
        known = config.virtual_chunk_containers or {}
        allowed: dict[str, Any] = {}
        for prefix in prefixes:
            allowed[prefix] = None
            if prefix not in {each.url_prefix for each in known.values()}:
                store = self.call(lambda prefix=prefix: _container_store(package, prefix, options))  # type: ignore[misc]
                made = self.call(lambda prefix=prefix, store=store: package.VirtualChunkContainer(prefix, store))  # type: ignore[misc]
                self.call(lambda made=made: config.set_virtual_chunk_container(made))  # type: ignore[misc]
        self._opened = self.call(lambda: opened.reopen(config=config, authorize_virtual_chunk_access=allowed or None))
        self.call(self._opened.save_config)

    # -- sessions ---------------------------------------------------------------------------

    def session(self) -> Session:
        """Return a session that writes to the branch. Raises ReadOnlyError if it is a tag or a snapshot."""
        kind, name = self.address.named()
        if self.is_new:
            if kind in {None, "branch"} and name != MAIN:
                tip = self.call(lambda: self._opened.lookup_branch(MAIN))
                self.call(lambda: self._opened.create_branch(name, tip))
            kind = kind or "branch"
        else:
            kind, _ = icechunk.Repository(self.address, self._options).find()
        if kind != "branch":
            raise ReadOnlyError(
                f"a {kind} of an Icechunk repository never changes",
                store=str(self.address),
                expected="a branch",
                remedy=f"write to a branch, such as {self.address.base}@{MAIN}",
            )
        return Session(self, self.call(lambda: self._opened.writable_session(name)), name)

    def remove(self) -> None:
        """Remove a repository that was created here, and has no commit and no tag."""
        tip = self.call(lambda: self._opened.lookup_branch(MAIN))
        if not self.is_new or self.call(lambda: self._opened.lookup_snapshot(tip)).parent_id is not None:
            return
        if self.address.service == "file":
            shutil.rmtree(self.address.place, ignore_errors=True)
            return
        store = self._objects()
        keys = list(store.list())
        names = {key.partition("/")[0] for key in keys}
        snapshots = [key for key in keys if key.startswith("snapshots/")]
        branches = self.call(lambda: {self._opened.lookup_branch(name) for name in self._opened.list_branches()})
        if branches == {tip} and not self.call(self._opened.list_tags) and len(snapshots) == 1 and names <= _PARTS:
            # What makes it a repository goes first: one that is half removed is none.
            for key in sorted(keys, key=lambda key: (key.partition("/")[0] != "refs", key)):
                store.delete(key)

    def _objects(self) -> Store:
        """Return the objects of a repository in a bucket."""
        objects = import_module("omnizarr.stores.remote.object")
        store: Store = objects.ObjectStore.from_url(self.address.place, self._options)
        return store

    # -- errors -----------------------------------------------------------------------------

    def call(self, function: Callable[[], T]) -> T:
        """Call a function of icechunk, and raise its errors as errors of omnizarr."""
        try:
            return function()
        except OmnizarrError:
            raise
        except Exception as error:
            raise self._failure(error) from error
        except BaseException as error:
            if type(error).__name__ != "PanicException":
                raise
            raise self._failure(error) from error

    def _failure(self, error: BaseException) -> OmnizarrError:
        return failure(error, str(self.address))


def failure(error: BaseException, store: str, key: str = "") -> OmnizarrError:
    """Return the error of omnizarr for one of icechunk, whose text has many lines."""
    text = " ".join(str(error).split())
    if target := _unauthorized(text) or _uncontained(text):
        if "no virtual chunk container" in text:
            return StoreAccessError(
                "a virtual chunk lies outside of the containers of the repository",
                store=store,
                key=key or None,
                found=redact(target[1]),
                remedy="add a virtual chunk container to the configuration of the repository, if you trust it",
            )
        return trust.refused_target(target[1].rstrip(",")).add(store=store, key=key or None)
    made = failures.translate(error, store, key)
    made.message = redact(_first_line(error))
    made.store = store
    return made


def _first_line(error: BaseException) -> str:
    lines = [line.strip(" x|") for line in str(error).splitlines()]
    first = next(filter(None, lines), type(error).__name__)
    causes = [line.partition("->")[2].strip() for line in str(error).splitlines() if "->" in line]
    last = causes[-1] if causes else ""
    return first if not last or last in first or first in last else f"{first}: {last}"


# -- where it is ------------------------------------------------------------------------------


def _storage(package: Any, address: Address, options: dict[str, Any]) -> Any:
    """Return icechunk's storage for an address, with options in the spelling of any library."""
    path = address.path or None
    if address.service in {"http", "https"}:
        raise ReadOnlyError(
            "a repository on a web server can only be read",
            store=str(address),
            remedy="write to a directory or a bucket",
        )
    if address.service == "file":
        if options:
            message = "storage_options mean nothing to a directory"
            raise StoreError(message, found=sorted(options), remedy="leave them out")
        return package.local_filesystem_storage(address.path)
    if address.service == "s3":
        return package.s3_storage(bucket=address.bucket, prefix=path, **_s3_options(options))
    config = object_urls.plain_options(address.service, options)
    if address.service == "gs":
        return package.gcs_storage(bucket=address.bucket, prefix=path, **_gs_options(config))
    return package.azure_storage(container=address.bucket, prefix=path or "", **_az_options(config))


def _s3_options(options: dict[str, Any]) -> dict[str, Any]:
    config = object_urls.plain_options("s3", options)
    names = {"endpoint": "endpoint_url", "skip_signature": "anonymous"}
    config = {names.get(name, name): value for name, value in config.items()}
    endpoint = str(config.get("endpoint_url", ""))
    hosted = str(config.pop("virtual_hosted_style_request", "")).lower() in {"true", "1"}
    config["allow_http"] = bool(config.get("allow_http")) or endpoint.startswith("http://")
    config["force_path_style"] = bool(endpoint) and not hosted
    if str(config.get("anonymous", "")).lower() in {"true", "1"}:
        config["anonymous"] = True
    else:
        config.pop("anonymous", None)
        config["from_env"] = "access_key_id" not in config
    return _known(
        config,
        "endpoint_url anonymous allow_http force_path_style from_env region access_key_id secret_access_key "
        "session_token",
    )


def _gs_options(config: dict[str, Any]) -> dict[str, Any]:
    names = {"service_account": "service_account_file", "skip_signature": "anonymous"}
    config = {names.get(name, name): value for name, value in config.items()}
    if not config:
        return {"from_env": True}
    if "base_url" in config:
        config["config"] = {"google_base_url": str(config.pop("base_url"))}
    return _known(
        config, "service_account_file service_account_key application_credentials bearer_token anonymous config"
    )


def _az_options(config: dict[str, Any]) -> dict[str, Any]:
    names = {"account_name": "account", "account_key": "access_key", "sas_key": "sas_token", "token": "bearer_token"}
    config = {names.get(name, name): value for name, value in config.items()}
    config.setdefault("account", os.environ.get("AZURE_STORAGE_ACCOUNT_NAME", ""))
    if not config["account"]:
        remedy = Remedy("give it by {account_name}", account_name=StorageOption("..."))
        raise StoreError("the account of Azure is not known", remedy=remedy)
    if len(config) == 1:
        config["from_env"] = True
    return _known(config, "account access_key sas_token bearer_token from_env")


def _known(config: dict[str, Any], names: str) -> dict[str, Any]:
    for name in config:
        if name not in names.split():
            message = "icechunk has no such option of a store"
            raise StoreError(message, found=name, expected=names, remedy="leave it out")
    return config


# -- stores ---------------------------------------------------------------------------------


class _Below(ZarrPythonStore):
    """What both stores have in common: Icechunk lists only below nodes, and its errors have many lines."""

    _address: Address

    @property
    def features(self) -> Features:
        """64 concurrent requests; all keys are listed."""
        return super().features

    @property
    def place(self) -> str:
        """The URL."""
        return str(self._address)

    def list_prefix(self, prefix: str) -> Iterator[str]:
        """Yield the keys under `prefix`: those below the nearest node above it that begin so."""
        prefix = as_prefix(prefix)
        node = prefix.rstrip("/")
        while node and not super().exists(f"{node}/zarr.json"):
            node, _, name = node.rpartition("/")
            if name != "c" and not name.isdecimal():  # nothing is below what is neither a node nor a part of a key
                return
        below = super().list_prefix(node)
        yield from (key for key in below if key.startswith(prefix))

    def list_dir(self, prefix: str) -> Listing:
        """List the names, of what is below a node."""
        prefix = as_prefix(prefix)
        if prefix and not super().exists(f"{prefix}zarr.json"):
            keys = ((key, key.find("/", len(prefix))) for key in self.list_prefix(prefix))
            return listing({key if end < 0 else key[: end + 1] for key, end in keys}, prefix)
        return super().list_dir(prefix)

    def _bytes(self, value: Any) -> Buffer:
        """Return the bytes of a value without a copy, as chunks may be large."""
        return memoryview(value.as_numpy_array())

    def _told(self, result: Callable[[], T], key: str) -> T:
        return _told(result, str(self._address), key)


def _container_store(package: Any, prefix: str, options: dict[str, Any]) -> Any:
    """Return what tells icechunk how to reach files below a URL. It is kept in the repository, without secrets."""
    scheme = scheme_of(prefix)
    if scheme in {"file", "local"}:
        return package.local_filesystem_store(urls.urlsplit(prefix).path)
    if scheme == "s3":
        given = _s3_options(options)
        names = ("region", "endpoint_url", "allow_http", "anonymous", "force_path_style")
        return package.s3_store(**{name: given[name] for name in names if name in given})
    return package.gcs_store() if scheme == "gs" else package.http_store()


def _told(result: Callable[[], T], store: str, key: str) -> T:
    try:
        return result()
    except OmnizarrError:
        raise
    except Exception as error:
        if type(error).__module__ == "builtins" and not isinstance(error, OSError | KeyError):
            raise
        raise failure(error, store, key) from error
    except BaseException as error:
        if type(error).__name__ != "PanicException":
            raise
        raise failure(error, store, key) from error


def _check_key(store: Store, key: str) -> None:
    check_key(key)
    if not _is_zarr_key(key):
        raise InvalidKeyError("Icechunk holds documents and chunks of Zarr v3 only", key=key, store=repr(store))


def check_grid(name: str, store: Store, path: str) -> None:
    """Raise NotRepresentableError for a chunk grid that Icechunk holds no arrays of."""
    if name != "regular":
        raise NotRepresentableError(
            "Icechunk holds arrays with chunks of one shape only",
            store=str(store),
            path=path or "/",
            pointer="/chunk_grid",
            found=f"a {name} grid",
            remedy=_SAME_SHAPE,
        )


class SessionStore(_Below):
    """The hierarchy of a session that is being written. Its journals, which are none of Zarr, stay in memory.

    Icechunk takes a chunk only below the document of its array, and keys of Zarr v3 only, with ``/`` between numbers.
    """

    documents_first = True

    def __init__(self, store: Any, address: Address) -> None:
        super().__init__(store)
        self._address = address
        self._beside: dict[str, bytes] = {}

    @property
    def features(self) -> Features:
        """64 concurrent requests; all keys are listed."""
        return super().features

    def origin(self) -> tuple[Hashable, str]:
        """Return the identity of the repository, as that of its snapshots differs."""
        return (f"{SCHEME} session", self._address.place, id(self._store)), ""

    @answers(verbs.check_storable)
    def _check_storable(self, key: str) -> None:
        """Raise InvalidKeyError for keys that Icechunk has no place for."""
        _check_key(self, key)

    def get(self, key: str, span: Span | None = None) -> Buffer | None:
        """Read the value."""
        if _is_zarr_key(key):
            return super().get(key, span)
        check_key(key)
        value = self._beside.get(key)
        return value if value is None or span is None else value[slice(*span)]

    def exists(self, key: str) -> bool:
        """Ask the session."""
        return super().exists(key) if _is_zarr_key(key) else self.get(key) is not None

    def size(self, key: str) -> int | None:
        """Ask the session."""
        value = None if _is_zarr_key(key) else self.get(key)
        return super().size(key) if value is None and _is_zarr_key(key) else None if value is None else len(value)

    def set(self, key: str, value: Buffer) -> None:
        """Store a copy of the value, until the session is committed."""
        if _is_zarr_key(key):
            super().set(key, value)
        else:
            check_key(key)
            self._beside[key] = bytes(value)

    def delete(self, key: str) -> None:
        """Remove the key."""
        if _is_zarr_key(key):
            super().delete(key)
        else:
            check_key(key)
            self._beside.pop(key, None)

    def list_prefix(self, prefix: str) -> Iterator[str]:
        """Yield the keys under `prefix`."""
        yield from super().list_prefix(prefix)
        yield from (key for key in list(self._beside) if key.startswith(as_prefix(prefix)))

    def __repr__(self) -> str:
        return f"SessionStore({self.place!r})"


class PlannedStore(MemoryStore):
    """A repository that does not exist, for plans of what would be written into it."""

    documents_first = True

    @answers(verbs.check_storable)
    def _check_storable(self, key: str) -> None:
        """Raise InvalidKeyError for keys that Icechunk has no place for."""
        _check_key(self, key)


class Session:
    """A session that writes to a branch: all of it is committed at once, or nothing."""

    def __init__(self, repository: Repository, session: Any, branch: str) -> None:
        self._repository = repository
        self._session = session
        self.branch = branch
        self.store = SessionStore(session.store, replace(repository.address, within=""))

    @property
    def session(self) -> Any:
        """The session of icechunk."""
        return self._session

    def set_virtual(self, path: str, chunks: Iterable[tuple[_List[int], str, int, int, datetime | None]]) -> None:
        """Set chunks of an array that lie in other files: coordinates, URL, offset, length, and time of last change.

        Raises StoreError if icechunk takes one of them not.
        """
        repository = self._repository
        make = repository._package.VirtualChunkSpec  # noqa: SLF001 - of this module
        specs = [
            make(coords, url, offset, length, last_updated_at_checksum=changed)
            for coords, url, offset, length, changed in chunks
        ]
        store: Any = self._session.store
        failed = repository.call(lambda: store.set_virtual_refs(path, specs, validate_containers=True))
        if failed:
            raise StoreError(
                "Icechunk takes no such virtual chunks",
                store=str(repository.address),
                path=path,
                found=f"{len(failed)} chunks, such as {tuple(failed[0])}",
                expected="chunks within the containers of the repository",
            )

    def commit(self, message: str) -> str:
        """Commit, and return the snapshot. Raises ConflictError if others have changed the same nodes."""
        package = self._repository._package  # noqa: SLF001 - of this module
        try:
            with self._alone():
                return str(self._session.commit(message, rebase_with=package.ConflictDetector()))
        except (package.ConflictError, package.RebaseFailedError) as error:
            raise ConflictError(
                "others have committed changes of the same nodes in the meantime; nothing was committed",
                store=str(self._repository.address),
                remedy="do it again",
            ) from error
        except Exception as error:
            raise failure(error, str(self._repository.address)) from error

    def _alone(self) -> AbstractContextManager[object]:
        """Exclude other processes of omnizarr: in a directory, icechunk itself may lose one of two commits."""
        address = self._repository.address
        if address.service != "file":
            return nullcontext()
        return filelocks.lock(os.path.join(address.place, ".omnizarr-commit.lock"), lambda: None)

    def discard(self) -> None:
        """Forget all that was written; and the repository, if it was made for this session."""
        with suppress(Exception):
            self._session.discard_changes()
        if self._repository.is_new:
            with suppress(OmnizarrError):
                self._repository.remove()
