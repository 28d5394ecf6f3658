# What the extension module offers to `omnizarr.engine.native`; see rust/src/py.rs.

from collections.abc import Sequence
from typing import Any, Self, TypeAlias

__version__: str

Rest: TypeAlias = tuple[list[tuple[int, ...]], bool, BaseException | None]
# Chunks that the engine in Python is to move; whether all others have been; an error to raise. None of it if nothing
# that was to be read is stored (only where `home` is given).

class Codecs:
    def __new__(
        cls,
        item: int,
        fill: bytes,
        write_empty: bool,
        missing_is_error: bool,
        shapes: Sequence[tuple[tuple[int, ...], Any]],
        lengths: Sequence[Sequence[tuple[int, int]]] | None,
    ) -> Self: ...

class ChunkCache:
    def __new__(cls, limit: int) -> Self: ...
    @property
    def nbytes(self) -> int: ...
    def get(self, place: Sequence[int]) -> Any: ...
    def put(self, place: Sequence[int], value: Any, nbytes: int) -> None: ...

class Engine:
    def __new__(
        cls,
        codecs: Codecs,
        keys: tuple[str, str, str, str],
        store: Any,
        *,
        root: str | None = None,
        fsync: bool = False,
        home: tuple[str, str] | None = None,
        blocks: tuple[str, str, bytes] | None = None,
        values: dict[str, Any] | None = None,
        concurrency: int = 1,
        most_in_flight: int = ...,
        is_conditional: bool = False,
        cache: tuple[ChunkCache, int] | None = None,
        manifest: Manifest | None = None,
        skipping: Sequence[tuple[int, Codecs]] = (),
    ) -> Self: ...
    @property
    def decodes(self) -> bool: ...
    def read(
        self,
        pieces: Any,
        out: Any,
        concurrency: int | None,
        stop: Stop | None = None,
        shared: ChunkCache | None = None,
    ) -> Rest | None: ...
    def write(
        self, pieces: Any, values: Any, concurrency: int | None, seen: tuple[int, ...] | None = None
    ) -> Rest | None: ...

class Sources:
    def __new__(cls, files: Sequence[tuple[str, int, int, int, int]]) -> Self: ...

class Manifest:
    def __new__(
        cls,
        sources: Sources,
        grid: Sequence[int],
        *,
        columns: tuple[Any, Any, Any, Any] | None = None,
        strided: tuple[int, Sequence[int], int, int, int, int, int, int] | None = None,
    ) -> Self: ...

class Stop:
    def __new__(cls) -> Self: ...
    def set(self) -> None: ...
    def is_set(self) -> bool: ...

class Objects:
    def __new__(cls, client: Any) -> Self: ...
    def get(
        self,
        path: str,
        span: tuple[int | None, int | None] | None = None,
        if_match: str | None = None,
        if_none_match: str | None = None,
        is_head: bool = False,
        most: int = ...,
    ) -> tuple[Any, tuple[int, int], list[tuple[str, str]], bytes | None]: ...
    def put(
        self,
        path: str,
        data: bytes,
        creates: bool = False,
        of: tuple[str | None, str | None] | None = None,
        attributes: list[tuple[str, str]] = ...,
    ) -> tuple[str | None, str | None]: ...
    def delete(self, paths: list[str]) -> None: ...
    def copy(self, path: str, target: str) -> None: ...
    def list_below(self, prefix: str, seconds: float) -> tuple[list[Any], list[str]]: ...
    def list(self, prefix: str) -> Pages: ...

class Pages:
    def next(self) -> list[Any] | None: ...

class RequestError(Exception): ...

class ShardIndexes:
    def __new__(cls, limit: int) -> Self: ...
    def begin(self) -> None: ...
    @staticmethod
    def nbytes_of(entries: int, key: int) -> int: ...
    @property
    def nbytes(self) -> int: ...

def encode(description: tuple[Any, ...], data: Any) -> bytes: ...
def decode(description: tuple[Any, ...], data: Any, limit: int) -> bytes: ...
def decode_into(description: tuple[Any, ...], data: Any, out: Any) -> None: ...
def place_samples(
    out: Any,
    chunks: Sequence[Any],
    places: tuple[Sequence[int], Any, Any],
    size: Sequence[int],
    axes: Sequence[int],
) -> None: ...
def lookup3(data: bytes) -> int: ...
def split(data: Any, is_text: bool) -> list[Any]: ...
def join(items: list[Any], is_text: bool) -> bytes: ...
def is_plain_json(text: bytes) -> bool: ...
def json_members(text: bytes, path: Sequence[str]) -> tuple[int, int, list[str], bytes] | None: ...

changes_copies: bool
"""Whether a part of a large shard is changed in a copy of its file that the system makes."""
reads_blocks: bool
"""Whether engines read blocks of N5 in directories."""

def settle() -> None: ...
def forget_after_fork() -> None: ...

# Only where files are those of POSIX:

def read_small(path: str) -> bytes | int | None: ...
def present(folder: str, names: Sequence[str]) -> list[int] | None: ...
def create_with(folder: str, name: str, data: Any) -> str: ...
def open_beneath(path: str, flags: int) -> int: ...
def set_file(folder: str, name: str, data: Any, replaces: bool) -> None: ...
def delete_file(root: str, parent: str, name: str) -> int | None: ...
