"""How a store of obstore was set up, so that the native engine can do the same.

If something cannot be carried over exactly, the native engine asks the store itself for each value.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final

from omnizarr.stores.access import Client, Retries
from omnizarr.stores.remote import object_urls, redirects
from omnizarr.stores.urls import parse as urls
from omnizarr.support.lazy import Lazy

if TYPE_CHECKING:
    from urllib import request
else:
    request = Lazy("urllib.request")

CONCURRENCY: Final = 512
"""Number of concurrent requests, if no Python thread waits for each."""

_KINDS: Final = frozenset({"S3Store", "GCSStore", "AzureStore", "HTTPStore"})
_HONOURED: Final = frozenset(
    {
        *("allow_http", "connect_timeout", "default_content_type", "default_headers", "http1_only"),
        *(
            "pool_idle_timeout",
            "pool_max_idle_per_host",
            "randomize_addresses",
            "read_timeout",
            "timeout",
            "user_agent",
        ),
    }
)
_GIVEN: Final = frozenset({"prefix", "config", "client_options", "retry_config"})


def client_of(store: Any, kind: str, concurrency: int | None) -> tuple[Client, str] | None:
    """Return what defines a store of obstore, and the path where it begins; None if that is not completely known."""
    if kind not in _KINDS or type(store) is not getattr(object_urls.import_obstore(), kind):
        return None  # in memory, or a class of the user
    args, kwargs = store.__getnewargs_ex__()
    if not _GIVEN.issuperset(kwargs):
        return None  # credentials from Python
    options = redirects.without_bounds(kwargs.get("client_options") or {})  # the engine follows no redirects
    config = dict(kwargs.get("config") or {})
    if not _HONOURED.issuperset(options) or _text(options.get("http1_only", True)) != "true":
        return None
    url = str(args[0]) if args else ""
    if _has_proxy(url or config.get("endpoint") or config.get("base_url") or ""):
        return None
    headers = options.pop("default_headers", None) or {}
    client = Client(
        kind,
        url,
        tuple(_texts(config)),
        tuple(_texts(options)),
        tuple((name, _bytes(value)) for name, value in headers.items()),
        _retries(kwargs.get("retry_config")),
        CONCURRENCY if concurrency is None else concurrency,
        object_urls.variables(),
    )
    return client, str(kwargs.get("prefix") or "")


def _text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _bytes(value: str | bytes) -> bytes:
    return value if isinstance(value, bytes) else value.encode("latin-1")


def _texts(options: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    return ((name, _text(value)) for name, value in sorted(options.items()))


def _retries(config: Mapping[str, Any] | None) -> Retries | None:
    if config is None:
        return None
    backoff = config["backoff"]
    return Retries(
        config["max_retries"],
        config["retry_timeout"].total_seconds(),
        backoff["init_backoff"].total_seconds(),
        backoff["max_backoff"].total_seconds(),
        float(backoff["base"]),
    )


def _has_proxy(url: str) -> bool:
    """Return whether the environment names a proxy that may be used for a server."""
    if not redirects.has_proxy():
        return False
    host = urls.urlsplit(url).netloc.rpartition("@")[2]
    return not (host and request.proxy_bypass_environment(host))  # type: ignore[attr-defined]
