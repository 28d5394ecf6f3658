"""How the native engine reaches a store by itself, without asking an object of Python for each value."""

from __future__ import annotations

from typing import NamedTuple


class Retries(NamedTuple):
    """How often and how long a request is sent again; times in seconds."""

    max_retries: int
    retry_timeout: float
    init_backoff: float
    max_backoff: float
    base: float


class Client(NamedTuple):
    """All that makes a client of an object store or a web server: two that are equal can be one."""

    kind: str
    """The class of obstore: ``S3Store``, ``GCSStore``, ``AzureStore`` or ``HTTPStore``."""
    url: str
    """Of a web server."""
    config: tuple[tuple[str, str], ...]
    options: tuple[tuple[str, str], ...]
    headers: tuple[tuple[str, bytes], ...]
    retries: Retries | None
    concurrency: int
    """Requests at once."""
    environment: tuple[tuple[str, str], ...]
    """The variables that count as well."""


class Access(NamedTuple):
    """A client, and where in its store the keys begin."""

    client: Client
    prefix: str
    max_value_bytes: int
    """Larger values are not fetched."""

    def __repr__(self) -> str:  # a client has secrets
        return f"Access({self.client.kind!r}, prefix={self.prefix!r})"
