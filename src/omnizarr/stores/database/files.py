"""What the databases have in common that are files: their URLs, and the lock files beside them."""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextlib import AbstractContextManager
from hashlib import sha256
from typing import Any
from urllib.parse import unquote, urlsplit

from omnizarr.errors import StoreError
from omnizarr.stores.base import RESERVED
from omnizarr.stores.local import filelocks


def path_of(url: str) -> str:
    """Return the path that a URL with nothing but a scheme and a path means.

    >>> path_of("sqlite:///path/to/a%20b.sqlite")
    '/path/to/a b.sqlite'
    """
    parts = urlsplit(url)
    if parts.netloc not in ("", "localhost") or parts.query or parts.fragment or not parts.path.strip("/"):
        shown = f"{parts.scheme}://{parts.path}"
        expected = f"{parts.scheme}:///path/to/database"
        raise StoreError("not the URL of a database", found=shown, expected=expected)
    path = unquote(parts.path)
    return path[1:] if os.name == "nt" and path[2:3] == ":" else path


def check_options(options: Mapping[str, Any], known: set[str]) -> None:
    """Raise StoreError if there are options that mean nothing."""
    unknown = sorted(options.keys() - known)
    if unknown:
        raise StoreError("storage_options mean nothing to this store", found=unknown, expected=sorted(known))


def lock(path: str, key: str) -> AbstractContextManager[object]:
    """Lock a key by a file beside the database; whoever locks another one does not wait."""
    folder, name = os.path.split(os.path.realpath(path))
    digest = sha256(f"{name}/{key}".encode()).hexdigest()[:40]
    file = os.path.join(folder, f"{RESERVED}{digest}{filelocks.SUFFIX}")
    return filelocks.lock(file, lambda: os.makedirs(folder, exist_ok=True))
