"""Files in a hierarchy that are not Zarr: a README, a Parquet table of SpatialData, the XML of OME.

`of` finds them with one listing. `omnizarr.nodes.erasing` tells documents and chunks apart from everything else; here
follows what the rest is: files of other programs, and leftovers of writers.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Final, NamedTuple

from omnizarr.formats.paths import Above
from omnizarr.model import ArrayMetadata, GroupMetadata, Metadata
from omnizarr.model import keys as chunk_keys
from omnizarr.nodes import erasing, naming, wording
from omnizarr.nodes.location import StorePath
from omnizarr.stores import LocalStore, Store
from omnizarr.support.text import visible
from omnizarr.tools.convert import temporary
from omnizarr.tools.streaming.few import FewChunks

SYSTEM: Final = re.compile(
    r"\.DS_Store|Thumbs\.db|desktop\.ini|\._.*|\.nfs[0-9a-f]{8,}|\.directory|\.fuse_hidden.*", re.IGNORECASE
)
"""Names of files of operating systems."""
TEMPORARY: Final = re.compile(
    r".*\.[0-9a-f]{32}\.partial"  # zarr-python 3, and 2 since 2.9
    r"|.*\.\w{8}\.partial"  # zarr-python before
    r"|.*\.__lock"  # TensorStore: what is being written, and locked
)
"""Names of temporary files of writers."""
LOCK: Final = re.compile(r"__zattr__\.lock|.*\.lock")
"""Names of lock files."""
_NUMBERS_BACKWARDS: Final = re.compile(r"[0-9]++(?:[./][0-9]++)*+")
_SHOWN: Final = 3


class Strangers(NamedTuple):
    """Keys in a hierarchy that do not belong to it. They are relative to its topmost node, and sorted.

    Attributes
    ----------
    files : tuple of str
        Files of other programs. Chunks of arrays that no longer exist are among them: their names do not tell them
        from files that somebody numbered.
    unnamed : tuple of str
        Files whose names cannot be keys; links that lead out of the store.
    leftovers : tuple of str
        Locks and temporary files of writers.
    is_known : bool
        Whether the store could be listed.
    """

    files: tuple[str, ...] = ()
    unnamed: tuple[str, ...] = ()
    leftovers: tuple[str, ...] = ()
    is_known: bool = True

    @property
    def remark(self) -> str:
        """What a copy leaves out: leftovers; "" if there are none."""
        if not self.leftovers:
            return ""
        return f"not carried: {wording.plural(len(self.leftovers), 'lock or temporary file')} ({some(self.leftovers)})"


def some(keys: Iterable[str]) -> str:
    """Return the first names of several, for a sentence.

    >>> some(["a", "b", "c", "d", "e"])
    'a, b, c and 2 more'
    """
    names = list(keys)
    more = len(names) - _SHOWN
    return ", ".join(names[:_SHOWN]) + (f" and {more:,} more" if more > 0 else "")


def counted(keys: Sequence[str]) -> str:
    """Return the number and first names of files.

    >>> counted(["README.md"])
    '1 file that is not Zarr (README.md)'
    """
    which = "file that is not Zarr" if len(keys) == 1 else "files that are not Zarr"
    return f"{len(keys):,} {which} ({visible(some(keys))})"


def above_numbers(key: str) -> str | None:
    """Return what is above the numbers of a key that looks like that of a chunk; None for other keys.

    >>> [above_numbers(key) for key in ("a/c/0/1", "a/0.1", "a/c0", "0", "a1/2", "a1", "a//1", "README")]
    ['a', 'a', 'a', '', 'a1', None, 'a/', None]
    """
    match = _NUMBERS_BACKWARDS.match(key[::-1])
    if match is None:
        return None
    start = len(key) - match.end()
    for begin in ("c/", "c"):
        if key.endswith(begin, 0, start) and key[: start - len(begin)][-1:] in {"", "/"}:
            return key[: max(0, start - len(begin) - 1)]
    if start and key[start - 1] != "/":  # the first number is the end of a name
        start = key.find("/", start) + 1
        if not start:
            return None
    return key[: max(0, start - 1)]


def is_on_its_way(key: str) -> bool:
    """Return whether a key is that of a temporary object of a conversion."""
    return f"/{temporary.NAME}/" in f"/{key}"


def is_system(key: str) -> bool:
    """Return whether a file is one that an operating system makes."""
    return SYSTEM.fullmatch(key.rpartition("/")[2]) is not None


def of(where: StorePath, nodes: Mapping[str, Metadata | None], few: FewChunks | None = None) -> Strangers:
    """Return the strangers below a node, for which the store is listed once.

    Parameters
    ----------
    where : StorePath
        The topmost node.
    nodes : mapping of str to Metadata or None
        All nodes, by path below that one; None for those that cannot be read.
    few : FewChunks, optional
        Notes the keys of chunks that are listed.

    Raises
    ------
    StoreError
        If the store fails.
    """
    keys = naming.listed(where, partial(_other_keys, where, nodes, few))
    if keys is None:
        return Strangers(is_known=False)
    kinds: dict[str, list[str]] = {"files": [], "unnamed": [], "leftovers": []}
    skip = len(where.prefix)
    for key in sorted(keys):
        kind, name = _kind_of(key[skip:]), key[skip:].rstrip("\0")
        if kind != "unnamed" or name not in nodes:  # else it is a node that cannot be read, and is reported so
            kinds[kind].append(name)
    files, unnamed, leftovers = (tuple(found) for found in kinds.values())
    return Strangers(files, unnamed, leftovers)


def _kind_of(key: str) -> str:
    name = key.rpartition("/")[2]
    if key.endswith("\0"):
        return "unnamed"
    if is_on_its_way(key) or TEMPORARY.fullmatch(name) or LOCK.fullmatch(name):
        return "leftovers"
    return "files"


def _other_keys(where: StorePath, nodes: Mapping[str, Metadata | None], few: FewChunks | None) -> list[str]:
    """Return the keys that are neither documents nor chunks. Memory grows with their number, not that of chunks."""
    known = {
        f"{where.prefix}{path}".rstrip("/"): isinstance(node, ArrayMetadata)
        for path, node in nodes.items()
        if node is not None
    }
    arrays = {path for path, is_array in known.items() if is_array}
    others = {
        f"{where.prefix}{path}".rstrip("/")
        for path, node in nodes.items()
        if isinstance(node, ArrayMetadata) and not chunk_keys.is_known(node.chunk_key_encoding.name)
    }
    hidden = Above(
        {
            f"{where.prefix}{path}".rstrip("/")
            for path, node in nodes.items()
            if isinstance(node, ArrayMetadata) and node.storage_transformers
        }
    )
    arrays_above = Above(arrays)
    listed = _listed(where.store, where.prefix)
    rest = [
        key
        for key in (listed if few is None else few.noting(listed))
        if not erasing.is_chunk(key, arrays_above) and next(hidden.of(key), None) is None
    ]
    data: list[str] = []
    own: tuple[str, ...] = ()
    if where.home is not None:
        data = [
            where.home.chunk_prefix(f"{where.prefix}{path}".rstrip("/"))
            for path, node in nodes.items()
            if not isinstance(node, GroupMetadata)
        ]
        own = (where.home.entry_key, *where.home.documents(where.path).values())
        known = {where.home.entry_key.rpartition("/")[0]: False}  # its document is not that of a node
    known = {path: is_array for path, is_array in known.items() if path not in others}
    is_ours = erasing.recogniser(where.store, own, [rest], data, known)
    return [key for key in rest if not is_ours(key)]


def _listed(store: Store, top: str) -> Iterator[str]:
    """Yield all keys; in a directory, also names that cannot be keys, each with a null character after it."""
    if not isinstance(store, LocalStore):
        yield from store.list_prefix(top)
        return
    pending = [top]
    while pending:
        listing = store.list_dir(pending.pop())
        yield from listing.keys
        yield from (f"{entry.rstrip('/')}\0" for entry in listing.others)
        pending.extend(listing.prefixes)
