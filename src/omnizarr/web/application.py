"""The web application that serves one hierarchy."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from typing import Any, Final

from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.middleware.cors import CORSMiddleware
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Mount, Route

from omnizarr.api.opening import locate
from omnizarr.errors import NotRepresentableError
from omnizarr.nodes import detection
from omnizarr.nodes.location import StorePath
from omnizarr.stores import PrefixStore, Store
from omnizarr.tools.translate.translated import TranslatedStore
from omnizarr.web.compression import Compressed
from omnizarr.web.guards import KnownHost, SafeHeaders, TokenRequired, check_hosts, check_origins, check_token
from omnizarr.web.keys import DOCUMENTS, Keys

_EXPOSED: Final = ("Accept-Ranges", "Content-Length", "Content-Range", "ETag")
_NO_OTHERS: Final = {"Cross-Origin-Resource-Policy": "same-origin"}
FEW: Final = 1_000
"""Default limit of nodes below a group for which consolidated metadata is made."""
_ALLOWED: Final = ("Authorization", "If-Match", "If-None-Match", "If-Range", "Range")


def application(
    source: Any,
    *,
    zarr_format: int | str = 3,
    raw: bool = False,
    path: str | None = None,
    source_format: int | str | None = None,
    consolidated: bool | int = FEW,
    token: str | None = None,
    hosts: Iterable[str] | None = None,
    origins: Iterable[str] = (),
    allow_pickle: bool = False,
    storage_options: Mapping[str, Any] | None = None,
) -> Starlette:
    """Return an ASGI application that serves a hierarchy, read-only, for a server of your own.

    Parameters
    ----------
    source, zarr_format, raw, path, source_format, consolidated, token, origins, allow_pickle, storage_options
        As in `omnizarr.serve`.
    hosts : iterable of str, optional
        Host names of the server, in addition to those of the loopback. Requests to other names are refused. By
        default every name is allowed.

    Returns
    -------
    Starlette

    Raises
    ------
    NodeNotFoundError
        If the source does not exist.

    Examples
    --------
    >>> import omnizarr
    >>> from omnizarr.web.application import application
    >>> app = application(omnizarr.create_group({}))
    """
    store = store_of(
        source,
        zarr_format=zarr_format,
        raw=raw,
        path=path,
        source_format=source_format,
        consolidated=consolidated,
        allow_pickle=allow_pickle,
        storage_options=storage_options,
    )
    what = "the stored bytes of a Zarr hierarchy" if raw else f"a hierarchy as Zarr v{zarr_format}"

    async def front(_: Request) -> Response:
        return PlainTextResponse(f"omnizarr serves {what} at this address.\n")

    return guarded(
        [Route("/", front), Mount("/", Compressed(Keys(store), DOCUMENTS))], token=token, hosts=hosts, origins=origins
    )


def store_of(
    source: Any,
    *,
    zarr_format: int | str = 3,
    raw: bool = False,
    path: str | None = None,
    source_format: int | str | None = None,
    consolidated: bool | int = FEW,
    allow_pickle: bool = False,
    storage_options: Mapping[str, Any] | None = None,
) -> Store:
    """Return a store with the keys and values to serve: of the hierarchy in a format, or as stored.

    Raises
    ------
    NodeNotFoundError
        If the source does not exist.
    NotRepresentableError
        If stored bytes of a node of a draft of Zarr v3 are requested, whose keys are in several places.
    """
    if not raw:
        return TranslatedStore(
            source,
            zarr_format,
            path=path,
            source_format=source_format,
            consolidated=consolidated,
            allow_pickle=allow_pickle,
            storage_options=storage_options,
        )
    where, _ = locate(source, path, "r", storage_options)
    try:
        where = detection.open_node(where, source_format).where
        root = _root_of(where)
    except BaseException:
        if isinstance(source, str | os.PathLike):
            where.store.close()
        raise
    return PrefixStore(where.store, root) if root else where.store


def _root_of(where: StorePath) -> str:
    """Return the path that contains all keys of a node."""
    if where.home is None:
        return where.path
    if where.path != where.home.root:
        raise NotRepresentableError(
            "in this format a node has keys in several places, which are served with those of its whole hierarchy",
            store=str(where.store),
            path=where.path,
            remedy=f"serve the hierarchy, at path {where.home.root!r}",
        )
    return where.home.root


def guarded(
    routes: Iterable[Route | Mount],
    *,
    token: str | None = None,
    hosts: Iterable[str] | None = None,
    origins: Iterable[str] = (),
) -> Starlette:
    """Return an application with these routes that only permitted clients can use: by token, host name and origin.

    Parameters
    ----------
    routes : iterable of Route or Mount
    token : str, optional
        See `omnizarr.web.guards.TokenRequired`.
    hosts : iterable of str, optional
        See `omnizarr.web.guards.KnownHost`; None: every name is allowed.
    origins : iterable of str
        Origins of web pages that may read the data, such as ``https://example.org``; ``"*"`` means every page. By
        default, none may.

    Raises
    ------
    ValueError
        If a URL cannot contain the token unchanged, or an origin or the name of a host is not valid.
    """
    origins = tuple(origins)
    check_origins(origins)
    middleware = [Middleware(SafeHeaders, {"X-Content-Type-Options": "nosniff"} | ({} if origins else _NO_OTHERS))]
    if origins:  # never with credentials: a cookie counts for pages of this server only
        middleware.append(
            Middleware(CORSMiddleware, origins, ("GET", "HEAD"), _ALLOWED, expose_headers=_EXPOSED, max_age=86_400)
        )
    if hosts is not None:
        hosts = tuple(hosts)
        check_hosts(hosts)
        middleware.append(Middleware(KnownHost, hosts))
    if token is not None:
        check_token(token)
        middleware.append(Middleware(TokenRequired, token))
    return Starlette(routes=list(routes), middleware=middleware)
