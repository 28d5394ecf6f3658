"""URL pipelines: where a store is, and what is in it, in segments that ``|`` separates.

``s3://bucket/all.zip|zip:em/|zarr3:labels`` is an array of Zarr v3 in an archive in a bucket. The first segment is a
URL (or a path), each other one says how to read what those before it lead to:

======================================  ========================================================================
``zip:PATH``                            a path in a zip archive
``gzip:``                               the decompressed file
``byte-range:START-STOP``               a part of a file
``ocdbt:PATH``, ``ocdbt:@v3/PATH``      a path in a version of an OCDBT database
``icechunk:@branch.main/PATH``          a branch, tag or snapshot of an Icechunk repository
``zarr3:PATH``, ``zarr2:``, ``zarr:``   a node of Zarr, of that format or of any
``n5:PATH``                             a node of N5
``neuroglancer-precomputed:``           a volume of Neuroglancer
``tiff:``                               a TIFF file
``json:/POINTER``                       a value in a JSON document, as an array without dimensions
``..:PATH``                             a path beside what the segment before it was in
======================================  ========================================================================

The colon can be left out behind a name without a path. Special characters in paths are percent-encoded, ``@`` at the
beginning of the path in a database, too.

Spec: ZEP 8, a draft; the documentation of Neuroglancer and TensorStore.
"""

from __future__ import annotations

import io
import json
import os
import re
import zlib
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from omnizarr.errors import OmnizarrError, ReadOnlyError, StoreError
from omnizarr.stores import kinds, urls, verbs
from omnizarr.stores.base import Store
from omnizarr.stores.local.memory import MemoryStore
from omnizarr.stores.redaction import redact
from omnizarr.stores.urls import parse
from omnizarr.stores.wrap.wrappers import PrefixStore, WrapperStore
from omnizarr.support import suggestions
from omnizarr.support.lazy import Lazy

if TYPE_CHECKING:
    import gzip
else:
    gzip = Lazy("gzip")

_LARGEST: Final = 2**30
"""Bytes of a file that is decompressed, or cut out of another one, in memory."""
_LARGEST_DOCUMENT: Final = 2**26
"""Bytes of a JSON document of which a value is shown."""
_UP: Final = ".."
_ZARR: Final[Mapping[str, tuple[str, ...]]] = {
    "zarr": (),
    "zarr2": (".zarray", ".zgroup"),
    "zarr3": ("zarr.json",),
}
"""Segments of Zarr, and the documents of that format."""
_READING: Final = (None, "r")
_adapter = re.compile(r"([a-z][a-z0-9+.-]*|[.][.])(?::(.*))?", re.DOTALL).fullmatch
_range = re.compile("([0-9]+)-([0-9]+)").fullmatch
_digits = re.compile("0|[1-9][0-9]*").fullmatch
_version = re.compile(r"@([^/]*)(?:/(.*))?", re.DOTALL).fullmatch

Resolve = Callable[[Any, Any, Any], tuple[Store, str]]
Member = Callable[[Store, str, dict[str, Any]], tuple[Store, str]]


class Segment(NamedTuple):
    """One part of a pipeline behind the first: its name, its path as it is written, and its number from 1 on."""

    name: str
    path: str
    number: int

    @property
    def text(self) -> str:
        """The segment, as it is written."""
        return f"{self.name}:{self.path}"

    @property
    def within(self) -> str:
        """The path, decoded, without slashes around it."""
        return str(parse.unquote(self.path)).strip("/")


class _Here(NamedTuple):
    """What the segments so far lead to."""

    store: Store
    key: str
    is_open: bool = False
    """Whether it is a hierarchy."""


def split(text: str) -> tuple[str, list[Segment]] | None:
    """Return the first segment of a pipeline, and the others; None if a text is no pipeline.

    Raises StoreError if a segment has a name that is not known.

    >>> split("s3://bucket/all.zip|zip:em/|zarr3")
    ('s3://bucket/all.zip', [Segment(name='zip', path='em/', number=1), Segment(name='zarr3', path='', number=2)])
    >>> split("a|b") is None
    True
    """
    if "|" not in text:
        return None
    root, *rest = text.split("|")
    matches = [_adapter(each) for each in rest]
    first = matches[0]
    is_pipeline = first is not None and (first[1] in _OPENERS or first[2] is not None)
    if not is_pipeline and urls.scheme_of(root) is None:
        return None  # the name of a file can have such a letter
    if not root:
        raise StoreError("the first segment of the pipeline is missing", found=redact(text), expected="a URL or a path")
    segments = []
    for number, (match, each) in enumerate(zip(matches, rest, strict=True), 1):
        name = each if match is None else match[1]
        if name not in _OPENERS and name != _UP:
            near = suggestions.near_names(name, list(_OPENERS), most=1)
            raise StoreError(
                f"segment {number} of the pipeline, {redact(each)!r}, is not known",
                found=redact(text),
                expected=", ".join(f"{known}:" for known in _OPENERS),
                remedy=f"did you mean '{near[0]}:'?" if near else None,
            )
        path = (match[2] if match is not None else "") or ""
        if name != _UP:
            segments.append(Segment(name, path, number))
        elif segments:
            root = _beside(root, segments, path)
        else:
            raise StoreError(
                f"segment {number} of the pipeline, {redact(each)!r}, leads out of nothing",
                found=redact(text),
                expected="a segment such as zip: before it",
            )
    return root, segments


def _beside(root: str, segments: list[Segment], path: str) -> str:
    """Leave out the last segment, and change the path of the one before it; return the first segment."""
    segments.pop()
    if segments:
        last = segments[-1]
        base = f"/{last.path}"
        segments[-1] = last._replace(path=parse.urljoin(base, path).lstrip("/"))
        return root
    if urls.scheme_of(root) is None:
        return os.path.normpath(os.path.join(os.path.dirname(root), parse.unquote(path)))
    parts = parse.urlsplit(root)
    return parse.urlunsplit(parts._replace(path=parse.urljoin(parts.path or "/", path)))


def is_pipeline(text: str) -> bool:
    """Return whether a text is a pipeline, perhaps with a wrong segment.

    >>> is_pipeline("file:///a.zip|zip:"), is_pipeline("a|b")
    (True, False)
    """
    try:
        return split(text) is not None
    except StoreError:
        return True


def of(store: Store, path: str, zarr_format: int | str) -> str | None:
    """Return the pipeline that leads to a node; None if there is none, as for values in memory.

    >>> from omnizarr.stores import LocalStore
    >>> of(LocalStore("/data/x y.zarr"), "em/a", 3)
    'file:///data/x%20y.zarr/|zarr3:em/a'
    """
    below = parse.quote(path.strip("/"))
    name = type(store).__name__
    if name in _SHOWN:
        base = _base(getattr(store, "store", None))
        return None if base is None else f"{base}|{_SHOWN[name]}:{below}"
    base = _base(store)
    segment = f"zarr{zarr_format}"
    return f"{base}|{segment}:{below}" if base is not None and segment in _ZARR else None


_SHOWN: Final[Mapping[str, str]] = {"N5Store": "n5", "PrecomputedStore": "neuroglancer-precomputed"}
"""Segments of stores that show a directory of another format, by the names of their classes."""


def _base(store: Any) -> str | None:
    """Return the segments that lead to the root of a store, which end with a slash or a colon."""
    if store is None:
        return None
    name, inner = type(store).__name__, getattr(store, "store", None)
    if isinstance(store, PrefixStore):
        above = _base(store.store)
        return None if above is None else f"{above}{parse.quote(store.prefix)}"
    if name == "ZipStore":
        if not isinstance(store.path, str):
            return None
        outer = _base(inner) if inner is not None else _url(os.path.abspath(store.path), is_file=True)
        if outer is None:
            return None
        return f"{outer}{parse.quote(store.path) if inner is not None else ''}|zip:"
    if name == "OcdbtStore":
        outer = _base(inner)
        version = f"@{parse.quote(store.version, safe='')}/" if store.version else ""
        return None if outer is None else f"{outer}|ocdbt:{version}"
    if name == "IcechunkStore":
        place, segment = store.pipeline
        return f"{_url(place) if urls.scheme_of(place) is None else place.rstrip('/') + '/'}|{segment}"
    if isinstance(inner, Store) and not hasattr(store, "path"):  # a wrapper, which shows the same keys
        return _base(inner) if isinstance(store, WrapperStore) else None
    where = verbs.folder(store, "")
    if where is None or urls.scheme_of(where) is None:
        return None if where is None else _url(where)
    if "|" in where:
        return None  # it would be read as another segment
    server = getattr(store, "server", None)
    return where if server is None else f"s3+{server}/{where.removeprefix('s3://')}"


def _url(path: str, *, is_file: bool = False) -> str:
    """Return the URL of a path of this machine."""
    path = parse.quote(os.path.abspath(path).replace(os.sep, "/"))
    return f"file://{'' if path.startswith('/') else '/'}{path}{'' if is_file else '/'}"


def resolve(
    text: str, mode: str | None, options: dict[str, Any], resolve_other: Resolve, member: Member
) -> tuple[Store, str] | None:
    """Return the store that a pipeline leads to, and the path in it; None if a text is no pipeline.

    Parameters
    ----------
    text : str
    mode : str or None
        All but a pipeline of Zarr alone can only be read.
    options : dict
        Of the store of the first segment.
    resolve_other, member : callable
        What resolves other texts, and what opens a file in a store.

    Raises
    ------
    StoreError
        It names the segment that is wrong.
    """
    found = split(text)
    if found is None:
        return None
    root, segments = found
    if all(segment.name in _ZARR for segment in segments):
        where = root.rstrip("/")
        parts = [segment.path.strip("/") if urls.scheme_of(root) else segment.within for segment in segments]
        store, path = resolve_other("/".join([where, *filter(None, parts)]), mode, options)
        _check_formats(store, path, segments)
        return store, path
    if mode not in _READING:
        raise ReadOnlyError(
            "what a pipeline leads to can only be read",
            store=redact(text),
            found=f"mode {mode!r}",
            remedy='use mode "r", or convert a copy of it',
        )
    place = _Pipeline(root, options, resolve_other, member)
    here: _Here | None = None
    for segment in segments:
        try:
            here = _OPENERS[segment.name](place, here, segment)
        except OmnizarrError as error:
            error.message = f"segment {segment.number} of the pipeline, {redact(segment.text)!r}: {error.message}"
            raise
    if here is None:
        return None
    _check_formats(here.store, here.key, segments)
    if not here.is_open and here.key and not segments[-1].path.endswith("/") and here.store.exists(here.key):
        return member(here.store, here.key, {})
    return here.store, here.key


def _check_formats(store: Store, path: str, segments: list[Segment]) -> None:
    """Raise StoreError if the last segment names a format of Zarr, and the node is of the other one."""
    wanted = _ZARR.get(segments[-1].name, ())
    others = [name for names in _ZARR.values() for name in names if name not in wanted]
    prefix = f"{path}/" if path else ""
    if wanted and not any(store.exists(prefix + name) for name in wanted):
        there = next((name for name in others if store.exists(prefix + name)), None)
        if there is not None:
            raise StoreError(
                f"segment {segments[-1].number} of the pipeline, {redact(segments[-1].text)!r}: the node is of another "
                "format",
                store=repr(store),
                key=prefix + there,
                expected=" or ".join(wanted),
                remedy="leave out the number: zarr:",
            )


class _Pipeline(NamedTuple):
    """What opens the segments of a pipeline."""

    root: str
    options: dict[str, Any]
    resolve: Resolve
    member: Member

    @property
    def path(self) -> str | None:
        """The path of the first segment, if it is on this machine."""
        return urls.local_path(self.root) if urls.scheme_of(self.root) else os.path.expanduser(self.root)

    def directory(self, here: _Here | None) -> Store:
        """Return the store of the directory that the segments lead to."""
        store, key = self.resolve(self.root.rstrip("/"), "r", self.options) if here is None else (here.store, here.key)
        key = key.strip("/")
        return PrefixStore(store, key) if key else store

    def file(self, here: _Here | None) -> tuple[Store, str]:
        """Return the store of the file that the segments lead to, and its key."""
        if here is not None:
            store, key = here.store, here.key
        else:
            store, key = kinds.Place(self.root, self.path, "r", self.options, True, self.resolve).file()  # noqa: FBT003
        if not key or key.endswith("/") or not store.exists(key):
            raise StoreError("there is no file", store=repr(store), key=key)
        return store, key


def _zip(place: _Pipeline, here: _Here | None, segment: Segment) -> _Here:
    archives: Any = kinds.ZIP.module()
    store, key = place.file(here)
    path = place.path if here is None else None
    archive = archives.ZipStore(key, store=store) if path is None else archives.ZipStore(path)
    return _Here(archive, segment.within)


def _gzip(place: _Pipeline, here: _Here | None, segment: Segment) -> _Here:
    if segment.path:
        raise StoreError("it has no path", found=segment.text, expected=f"{segment.name}:")
    store, key = place.file(here)
    packed = io.BytesIO(bytes(store.get(key) or b""))
    try:
        with gzip.GzipFile(fileobj=packed) as file:
            values = file.read(_LARGEST + 1)
    except (zlib.error, EOFError, OSError) as error:
        raise StoreError("the file is not in the format of gzip, or is cut off", store=repr(store), key=key) from error
    if len(values) > _LARGEST:
        raise StoreError(
            "the file is too large to be decompressed in memory",
            store=repr(store),
            key=key,
            expected=f"at most {_LARGEST} bytes",
            remedy="decompress it first",
        )
    name = key.rpartition("/")[2]
    return _file(name[:-3] if name.lower().endswith(".gz") else name, values)


def _byte_range(place: _Pipeline, here: _Here | None, segment: Segment) -> _Here:
    match = _range(segment.path)
    start, stop = (int(match[1]), int(match[2])) if match is not None else (0, 0)
    if not start < stop or stop - start > _LARGEST:
        expected = f"START-STOP, at most {_LARGEST} bytes apart"
        raise StoreError("this is no range of bytes", found=segment.path, expected=expected)
    store, key = place.file(here)
    values = bytes(store.get(key, (start, stop)) or b"")
    if len(values) != stop - start:
        raise StoreError(
            "the file ends before the range", store=repr(store), key=key, found=f"{len(values)} bytes of the range"
        )
    return _file(key.rpartition("/")[2], values)


def _file(name: str, values: bytes) -> _Here:
    return _Here(MemoryStore({name: values}, read_only=True), name)


def _ocdbt(place: _Pipeline, here: _Here | None, segment: Segment) -> _Here:
    databases: Any = kinds.of_marker("manifest.ocdbt").module()
    version, path = _versioned(segment)
    store: Any
    if here is None:
        store, above = place.resolve(f"ocdbt://{place.root.rstrip('/')}", "r", place.options)
        if above:
            raise StoreError("there is no OCDBT database here", store=place.root)
        store = store.store
    else:
        store = place.directory(here)
    return _Here(databases.OcdbtStore(store, version), path)


def _versioned(segment: Segment) -> tuple[str | None, str]:
    """Return the version that a path begins with, and the rest."""
    match = _version(segment.path)
    if match is None:
        return None, segment.within
    if not match[1]:
        raise StoreError("the version is missing", found=segment.text, expected=f"{segment.name}:@VERSION/PATH")
    return parse.unquote(match[1]), parse.unquote(match[2] or "").strip("/")


def _icechunk(place: _Pipeline, here: _Here | None, segment: Segment) -> _Here:
    if here is not None:
        raise StoreError("a repository of Icechunk has to be in a directory or a bucket", found=segment.text)
    version, path = _versioned(segment)
    ref = "main" if version is None else version
    for prefix in ("branch.", "tag."):
        ref = ref.removeprefix(prefix) if ref.startswith(prefix) else ref
    scheme = urls.scheme_of(place.root)
    if scheme is None or scheme in urls.LOCAL:
        where = urls.path_of(place.root) if scheme else os.path.abspath(os.path.expanduser(place.root))
        url = f"icechunk://{where.rstrip('/')}"
    else:
        url = f"icechunk+{place.root.rstrip('/')}"
    store, above = place.resolve(f"{url}@{parse.quote(ref, safe='')}", "r", place.options)
    return _Here(store, "/".join(filter(None, (above, path))), is_open=True)


def _zarr(place: _Pipeline, here: _Here | None, segment: Segment) -> _Here:
    if here is None:
        store, key = place.resolve(place.root.rstrip("/"), "r", place.options)
    else:
        store, key = here.store, here.key
    return _Here(store, "/".join(filter(None, (key.strip("/"), segment.within))), is_open=True)


def _folder(scheme: str) -> Callable[[_Pipeline, _Here | None, Segment], _Here]:
    """Return what opens a directory of another format, by the scheme of its kind."""

    def open_folder(place: _Pipeline, here: _Here | None, segment: Segment) -> _Here:
        if here is None:
            url = f"{scheme}://{place.root.rstrip('/')}"
            store, above = place.resolve(url, "r", place.options)
        else:
            store, key = here.store, here.key.strip("/")
            name = key.rpartition("/")[2] or "x"
            found = (PrefixStore(store, key) if key else store), ""
            kind = kinds.of_scheme(scheme)
            opened = kind and kind.open(
                kinds.Place(f"{scheme}://{name}", None, "r", {}, True, resolve=lambda *_: found)  # noqa: FBT003
            )
            if opened is None:
                raise StoreError("there is no such hierarchy", store=repr(store), path=key)
            store, above = opened
        return _Here(store, "/".join(filter(None, (above, segment.within))), is_open=True)

    return open_folder


def _json(place: _Pipeline, here: _Here | None, segment: Segment) -> _Here:
    store, key = place.file(here)
    size = store.size(key) or 0
    if size > _LARGEST_DOCUMENT:
        most = f"at most {_LARGEST_DOCUMENT} bytes"
        raise StoreError("the document is too large", store=repr(store), key=key, found=f"{size} bytes", expected=most)
    try:
        value = json.loads(bytes(store.get(key) or b""), parse_constant=_refused)
    except (ValueError, RecursionError) as error:
        raise StoreError(f"the file is no JSON: {error}", store=repr(store), key=key) from error
    pointer = str(parse.unquote(segment.path))
    if pointer and not pointer.startswith("/"):
        raise StoreError("this is no JSON pointer", found=pointer, expected="/MEMBER/NUMBER, or nothing")
    for part in pointer.split("/")[1:]:
        name = part.replace("~1", "/").replace("~0", "~")
        try:
            value = value[int(name) if _digits(name) else len(value)] if isinstance(value, list) else value[name]
        except (LookupError, TypeError, ValueError):  # ValueError: more digits than Python converts
            near = suggestions.near_names(name, list(value), most=1) if isinstance(value, dict) else ()
            raise StoreError(
                "there is no such value in the document",
                store=repr(store),
                key=key,
                found=pointer,
                remedy=f"did you mean {near[0]!r}?" if near else None,
            ) from None
    members = {"zarr_format": 2, "shape": [], "chunks": [], "dtype": "|O", "order": "C", "fill_value": None}
    document = {**members, "compressor": None, "filters": [{"id": "json2"}]}
    chunk = [value, "|O", []]
    found = {".zarray": json.dumps(document).encode(), "0": json.dumps(chunk).encode()}
    return _Here(MemoryStore(found, read_only=True), "", is_open=True)


def _refused(name: str) -> None:
    raise ValueError(f"{name} is not JSON")


def _tiff(place: _Pipeline, here: _Here | None, segment: Segment) -> _Here:
    store, key = place.file(here)
    opened, path = place.member(store, key, {})
    return _Here(opened, "/".join(filter(None, (path, segment.within))), is_open=True)


_OPENERS: Final[Mapping[str, Callable[[_Pipeline, _Here | None, Segment], _Here]]] = {
    "zip": _zip,
    "gzip": _gzip,
    "byte-range": _byte_range,
    "ocdbt": _ocdbt,
    "icechunk": _icechunk,
    "zarr": _zarr,
    "zarr2": _zarr,
    "zarr3": _zarr,
    "n5": _folder("n5"),
    "neuroglancer-precomputed": _folder("precomputed"),
    "tiff": _tiff,
    "json": _json,
}
