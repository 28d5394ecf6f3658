"""Whether a text is a URL, and which file of this machine a URL means.

Spec: RFC 8089, "The file URI scheme": ``file:/path``, ``file:///path`` and ``file://localhost/path`` mean the same.
"""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING, Final

from omnizarr.errors import StoreError
from omnizarr.stores.redaction import redact
from omnizarr.support.lazy import Lazy

if TYPE_CHECKING:
    from urllib import parse as parse
else:
    parse = Lazy("urllib.parse")

LOCAL: Final = frozenset({"file", "local"})
"""URL schemes of local files."""


def is_local(text: str) -> bool:
    """Return whether a path or URL means files of this machine."""
    scheme = scheme_of(text)
    return scheme is None or scheme in LOCAL


# AWS has the name of a bucket before the name of its server.
_of_server = re.compile(r"s3\+(https?)://([^/|?#]*)(/[^|]*)?(.*)", re.IGNORECASE | re.DOTALL).fullmatch
_in_its_name = re.compile(r"(.+)\.(s3[.-].*amazonaws\.com(?:\.cn)?)", re.IGNORECASE).fullmatch
_of_google = re.compile(r"gs\+(?:xml\+)?ngauth\+https?://[^/|]*/|gs\+xml://", re.IGNORECASE).match

# Two letters or more, because C:\\ is a drive. Chains of fsspec begin with the name of a filesystem.
_scheme_of = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+)(?:://|::)|(file|local):/", re.IGNORECASE).match
_hosts = re.compile(r"[a-z]+:(?://(?:localhost(?=/))?)?", re.IGNORECASE).match


def scheme_of(text: str) -> str | None:
    """Return the scheme of a URL; None for a path. A single letter is a drive.

    >>> scheme_of("s3://bucket/a.nc"), scheme_of("simplecache::s3://bucket/a.nc"), scheme_of("C:/a.nc")
    ('s3', 'simplecache', None)
    >>> scheme_of("file:/data/a.nc")
    'file'
    """
    match = _scheme_of(text)
    return None if match is None else (match[1] or match[2]).lower()


def plain(url: str) -> tuple[str, dict[str, str]]:
    """Return the usual form of a URL that names the server of a bucket as ZEP 8 and Neuroglancer do, and its options.

    The first part of the path is the bucket, unless the server is one of AWS that has it in its name. A server of
    ngauth, which hands out credentials to browsers, is left out, as by Neuroglancer in Python.

    >>> plain("s3+http://127.0.0.1:9000/bucket/a.zarr")
    ('s3://bucket/a.zarr', {'endpoint': 'http://127.0.0.1:9000'})
    >>> plain("s3+https://janelia.s3.us-east-1.amazonaws.com/a.zip|zip:")
    ('s3://janelia/a.zip|zip:', {'endpoint': 'https://s3.us-east-1.amazonaws.com'})
    >>> plain("gs+ngauth+https://example.org/bucket/a"), plain("s3://bucket/a")
    (('gs://bucket/a', {}), ('s3://bucket/a', {}))
    """
    if (match := _of_google(url)) is not None:
        return f"gs://{url[match.end() :]}", {}
    match = _of_server(url)
    if match is None:
        return url, {}
    protocol, server, path, rest = match[1].lower(), match[2], match[3] or "", match[4]
    named = _in_its_name(server)
    if named is not None:
        return f"s3://{named[1]}{path}{rest}", {"endpoint": f"{protocol}://{named[2]}"}
    if not server or not path.strip("/"):
        raise StoreError("the URL names no bucket", found=redact(url), expected=f"s3+{protocol}://SERVER/BUCKET/PATH")
    return f"s3:/{path}{rest}", {"endpoint": f"{protocol}://{server}"}


def path_of(url: str) -> str:
    """Return the path that the URL of a file means, decoded. Raises StoreError for a file of another machine.

    This is `urllib.request`'s rule, whose import takes 20 ms.

    >>> path_of("file:/data/a%20b.zarr"), path_of("file:///data/a.zarr"), path_of("file://localhost/data/a.zarr")
    ('/data/a b.zarr', '/data/a.zarr', '/data/a.zarr')
    """
    parts = parse.urlsplit(url)
    if parts.netloc.lower() not in ("", "localhost"):
        raise StoreError("a file of another machine", found=redact(url), expected="file:///path")
    return _without_slash(parse.unquote(parts.path))


def local_path(text: str) -> str | None:
    """Return the path that a text means if it is the URL of a file of this machine; None if it is anything else.

    >>> local_path("file:/data/a.zarr"), local_path("s3://bucket/a.zarr"), local_path("/data/a.zarr")
    ('/data/a.zarr', None, None)
    """
    return path_of(text) if scheme_of(text) in LOCAL and "::" not in text else None


def path_in_fsspec(url: str) -> str:
    """Return the path that the URL of a file means in fsspec: it is decoded only if there is no such file.

    >>> path_in_fsspec("file:///data/a.nc"), path_in_fsspec("file:///no%20such%20file.nc")
    ('/data/a.nc', '/no such file.nc')
    """
    match = _hosts(url)
    path = url if match is None else url[match.end() :]
    return _without_slash(parse.unquote(path) if "%" in path and not os.path.exists(path) else path)


def _without_slash(path: str) -> str:
    """Return a path without the slash before its drive: file:///C:/data is no directory of the root."""
    return path[1:] if os.name == "nt" and re.match(r"/[A-Za-z]:", path) else path
