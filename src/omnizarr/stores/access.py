"""How the native engine reaches a store directly, without a Python call for each value."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

if TYPE_CHECKING:
    from omnizarr.stores.base import Store
    from omnizarr.stores.manifests.manifest import AnyManifest


class Retries(NamedTuple):
    """How often and how long a request is repeated. Times are in seconds."""

    max_retries: int
    retry_timeout: float
    init_backoff: float
    max_backoff: float
    base: float


class Client(NamedTuple):
    """Everything that defines a client of an object store or a web server. Equal definitions can share a client."""

    kind: str
    """The class of obstore: ``S3Store``, ``GCSStore``, ``AzureStore`` or ``HTTPStore``."""
    url: str
    """The URL of a web server."""
    config: tuple[tuple[str, str], ...]
    options: tuple[tuple[str, str], ...]
    headers: tuple[tuple[str, bytes], ...]
    retries: Retries | None
    concurrency: int
    """Number of concurrent requests."""
    environment: tuple[tuple[str, str], ...]
    """The environment variables that also count."""

    def deleting_singly(self) -> Client:
        """Return the same client, which deletes a key of S3 by a request of its own: every server knows that.

        The native engine deletes one key at a time, and takes the answer 404 for a missing key.
        """
        if self.kind != "S3Store":
            return self
        config = {**dict(self.config), "disable_bulk_delete": "true"}
        return self._replace(config=tuple(sorted(config.items())))


class Access(NamedTuple):
    """A client, and where in its store the keys begin."""

    client: Client
    prefix: str
    max_value_bytes: int
    """Larger values are not fetched."""
    has_conditions: bool
    """Whether a value can be stored on the condition that it has not changed."""
    are_conditions_doubtful: bool
    """Whether it must still be seen that the server does not ignore such conditions."""
    ignores_ranges: bool = False
    """Whether the server has sent a whole value when a part was requested."""

    def __repr__(self) -> str:  # a client holds secrets
        return f"Access({self.client.kind!r}, prefix={self.prefix!r})"


class Opened(NamedTuple):
    """The version of a value in an object store or on a web server that was opened."""

    size: int
    e_tag: str | None
    version: str | None
    """What a server with versions calls it."""
    modified: int
    """The time of the last change in microseconds since 1970; 0 if the server does not tell."""


class Remote(NamedTuple):
    """Files that are not on this machine, all reached by the same client."""

    store: Store
    """The store of the first file, for messages."""
    access: Access
    files: tuple[tuple[str, str, Opened], ...]
    """Path in the store of the client, key in its own store, and the version that was opened, of each file."""


class Chunks(NamedTuple):
    """The chunks of an array in files of other formats."""

    grid: tuple[int, ...]
    """Number of chunks along each dimension."""
    manifest: AnyManifest
    """Where they lie, by number."""
    files: tuple[tuple[str, int, int, int, int], ...] | Remote
    """Of files of this machine: path without links, size in bytes, and time of the last change in nanoseconds."""


class Blocks(NamedTuple):
    """The chunks of an array in files of this machine, behind a header, with their numbers in the opposite order."""

    root: str
    """The directory, without links."""
    folder: str
    """What the paths of blocks begin with."""
    header: bytes
    """What each file begins with that is a whole chunk."""


class Divided(NamedTuple):
    """An array with smaller chunks than it is shown with: each is one piece of its file."""

    store: Store
    """Holds the array, at its root."""
    chunks: tuple[int, ...]
    """The shape of a chunk."""


class Found(NamedTuple):
    """Where some chunks lie, as the native engine gets it."""

    columns: tuple[Any, Any, Any]
    """Offsets, lengths, and numbers of files: buffers of 64, 64 and 32 bits for each chunk."""
    values: Mapping[int, bytes]
    first: int
    """The number of the first file that is new."""
    near: Sequence[tuple[tuple[str, int, int, int, int], bool]]
    """New files of this machine: what `File.status` says, and whether that must stay the same."""
    far: Sequence[tuple[str, str, Opened | None]]
    """New files elsewhere: path in the store of the client, key in messages, and the version that is read, if known."""
    way: tuple[Store, Access] | None
    """How files elsewhere are reached."""


class Finder(Protocol):
    """What finds chunks of one array in files when they are first needed."""

    is_index: bool
    """Whether it reads parts of an index that can also be read as a whole: then `verbs.chunks` tells where all lie."""
    near: Any
    """What of the native engine finds chunks in a file of this machine without it; None if nothing does."""

    def find(self, keys: Sequence[str], numbers: memoryview) -> Found | None:
        """Return where chunks lie; None if chunks are to be found in another way. Raises OmnizarrError.

        That is by the whole of an index, if this is one, and by asking the store for all chunks of the array otherwise.
        `numbers` has 64 bits for each key: the number of the chunk in the C order of the grid.
        """

    def opened(self, versions: Sequence[tuple[int, tuple[int, str | None, str | None, int]]]) -> None:
        """Learn which versions of files have been read, by number: the store reads the same."""
